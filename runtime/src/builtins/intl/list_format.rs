//! `Intl.ListFormat` (ECMA-402 13).

use super::locale::available_lists;
use super::pack::{self, PHRASES};
use super::{MATCHERS, SUPPORTED_LOCALES_OF, choice, incompatible, needs_new, resolved_of};
use crate::builtins::{Body, Global, Row, arg, native, prelude};
use crate::charge::Buffer;
use crate::heap::InternalSlots;
use crate::thrown::Result;
use crate::value::Value;
use crate::vm::Vm;

/// The constructor.
pub const CONSTRUCTOR: Global = Global {
    name: "ListFormat",
    length: 0,
    call: Body::Native(|vm, _, _| Err(needs_new(vm, "ListFormat"))),
    construct: Some(Body::Native(construct)),
    functions: &[SUPPORTED_LOCALES_OF],
    numbers: &[],
};

/// Its methods. The list may be any iterable, so those that read one are in the prelude.
pub const METHODS: &[Row] = &[
    native("resolvedOptions", 0, resolved_options),
    prelude("format", 1, "ListFormat_format"),
    prelude("formatToParts", 1, "ListFormat_formatToParts"),
];

/// Functions that only the prelude can call.
pub const INTRINSICS: &[Row] = &[
    native("$listFormat", 2, check_receiver),
    native("$listItem", 1, check_item),
    native("$formatList", 2, format),
    native("$formatListToParts", 2, format_to_parts),
];

/// The internal slots of an `Intl.ListFormat`.
#[derive(Clone, Debug)]
pub struct ListFormat {
    locale: String,
    data: &'static str,
    kind: usize,
    style: usize,
}

const TYPES: &[&str] = &["conjunction", "disjunction", "unit"];
const STYLES: &[&str] = &["long", "short", "narrow"];

/// `new Intl.ListFormat(locales, options)`
fn construct(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let service = "Intl.ListFormat";
    vm.work(4)?;
    let requested = resolved_of(vm, arg(arguments, 0), available_lists)?;
    let options = super::options_object(vm, arg(arguments, 1))?;
    choice(vm, options, service, "localeMatcher", MATCHERS)?;
    let kind = choice(vm, options, service, "type", TYPES)?.unwrap_or(0);
    let style = choice(vm, options, service, "style", STYLES)?.unwrap_or(0);
    let format = ListFormat { locale: requested.tag(|_, _| false), data: requested.locale.data, kind, style };
    Ok(vm.heap.new_with_slots(InternalSlots::ListFormat(Box::new(format))))
}

fn receiver(vm: &mut Vm, this: Value, method: &str) -> Result<ListFormat> {
    match vm.heap.internal_slots_of(this) {
        Some(InternalSlots::ListFormat(format)) => Ok((**format).clone()),
        _ => Err(incompatible(vm, this, "ListFormat", method)),
    }
}

/// `list.resolvedOptions()`
fn resolved_options(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let format = receiver(vm, this, "resolvedOptions")?;
    let object = vm.heap.new_object();
    super::put_text(vm, object, "locale", &format.locale);
    super::put_text(vm, object, "type", TYPES[format.kind]);
    super::put_text(vm, object, "style", STYLES[format.style]);
    Ok(object)
}

/// `$listFormat(self, method)`: an error where the receiver is another value.
fn check_receiver(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let method = if vm.truthy(arg(arguments, 1)) { "formatToParts" } else { "format" };
    receiver(vm, arg(arguments, 0), method)?;
    Ok(Value::UNDEFINED)
}

/// `$listItem(value)`: an error where an item is no string.
fn check_item(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let item = arg(arguments, 0);
    if item.is_string() {
        return Ok(Value::UNDEFINED);
    }
    let what = vm.describe(item);
    Err(vm.type_error(&format!("Iterable yielded {what} which is not a string")))
}

/// A piece of a formatted list.
#[derive(Clone, Copy)]
enum Piece {
    Text(&'static str),
    Item(Value),
}

/// The pieces of a list of strings in their order.
fn pieces(vm: &mut Vm, format: &ListFormat, list: Value) -> Result<Buffer<Piece>> {
    let items = vm.charged_items_copy(list)?;
    vm.work(2 + items.len())?;
    let key = ["s", "o", "u"][format.kind];
    let style = ["l", "s", "n"][format.style];
    // bounded: two letters
    let patterns = PHRASES.get(format.data, &format!("l/{key}{style}")).unwrap_or_default();
    let [two, start, middle, end]: [&'static str; 4] = pack::fields(patterns);
    let mut out = Buffer::new();
    let mut fronts = Buffer::new();
    let count = items.len();
    for (index, &item) in items.iter().enumerate() {
        if index == 0 {
            out.push(vm, Piece::Item(item))?;
            continue;
        }
        let pattern = match index {
            _ if index + 1 == count && count == 2 => fitting(vm, format.data, two, item),
            _ if index + 1 == count => fitting(vm, format.data, end, item),
            1 => start,
            _ => middle,
        };
        let (before, rest) = pattern.split_once("{0}").unwrap_or(("", pattern));
        let (between, behind) = rest.split_once("{1}").unwrap_or((rest, ""));
        if !before.is_empty() {
            fronts.push(vm, before)?;
        }
        if !between.is_empty() {
            out.push(vm, Piece::Text(between))?;
        }
        out.push(vm, Piece::Item(item))?;
        if !behind.is_empty() {
            out.push(vm, Piece::Text(behind))?;
        }
    }
    if fronts.is_empty() {
        return Ok(out);
    }
    let mut all = Buffer::new();
    all.extend(vm, fronts.iter().rev().map(|&front| Piece::Text(front)))?;
    all.extend(vm, out)?;
    Ok(all)
}

/// The pattern that fits what comes next: in Spanish "y" becomes "e" and "o" becomes "u" before the same sound, in Hebrew
/// a hyphen stands before another script.
fn fitting(vm: &Vm, locale: &str, pattern: &'static str, item: Value) -> &'static str {
    let language = locale.split('-').next().unwrap_or_default();
    if !matches!(language, "es" | "he") {
        return pattern;
    }
    // charged: a few characters
    let bytes = vm.heap.bytes(item);
    let at = |index: usize| bytes.get(index).map(u8::to_ascii_lowercase);
    match pattern {
        "{0} y {1}" => {
            let is_i = at(0) == Some(b'i')
                || at(0) == Some(b'h') && at(1) == Some(b'i') && !matches!(at(2), Some(b'a' | b'e'));
            if is_i { "{0} e {1}" } else { pattern }
        }
        "{0} o {1}" => {
            let is_eleven = bytes.starts_with(b"11") && matches!(at(2), None | Some(b' '));
            let is_o = matches!(at(0), Some(b'o' | b'8')) || at(0) == Some(b'h') && at(1) == Some(b'o') || is_eleven;
            if is_o { "{0} u {1}" } else { pattern }
        }
        "{0} \u{5d5}{1}" => {
            let first = crate::wtf8::first_code_point(bytes).map(|(point, _)| point);
            let is_hebrew = first.is_none_or(|point| matches!(point, 0x591..=0x5f4 | 0xfb1d..=0xfb4f));
            if is_hebrew { pattern } else { "{0} \u{5d5}-{1}" }
        }
        _ => pattern,
    }
}

/// `$formatList(self, strings)`
fn format(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let format = receiver(vm, arg(arguments, 0), "format")?;
    let pieces = pieces(vm, &format, arg(arguments, 1))?;
    let mut out = Buffer::new();
    for &piece in pieces.iter() {
        match piece {
            Piece::Text(text) => out.extend_from_slice(vm, text.as_bytes())?,
            Piece::Item(item) => vm.charged_append(item, &mut out)?,
        }
    }
    Ok(vm.string_of(out))
}

/// `$formatListToParts(self, strings)`
fn format_to_parts(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let format = receiver(vm, arg(arguments, 0), "formatToParts")?;
    let pieces = pieces(vm, &format, arg(arguments, 1))?;
    let mut items = Buffer::new();
    for &piece in pieces.iter() {
        let (kind, value) = match piece {
            Piece::Text(text) => ("literal", vm.string(text)),
            Piece::Item(item) => ("element", item),
        };
        vm.work(1)?;
        let object = vm.heap.new_object();
        super::put_text(vm, object, "type", kind);
        super::put(vm, object, "value", value);
        items.push(vm, object)?;
    }
    Ok(vm.array_of(items))
}
