//! `Intl.ListFormat` (ECMA-402 13).

use super::{LOCALE, MATCHERS, SUPPORTED_LOCALES_OF, choice, incompatible, needs_new, resolved_of};
use crate::builtins::{Body, Global, Row, arg, native, prelude};
use crate::eval::vm::Vm;
use crate::heap::InternalSlots;
use crate::meter::buffer::Buffer;
use crate::value::Value;
use crate::value::family::Family;
use crate::value::thrown::Result;
use agentscript_intl::list::{Join, Patterns, STYLES, TYPES};
use agentscript_intl::locale::available_lists;

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

impl InternalSlots for ListFormat {
    fn family(&self) -> Family {
        Family::ListFormat
    }

    fn tag(&self) -> &'static str {
        "Intl.ListFormat"
    }

    fn cost(&self) -> usize {
        LOCALE
    }
}

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
    Ok(vm.heap.new_with_slots(format))
}

fn receiver(vm: &mut Vm, this: Value, method: &str) -> Result<ListFormat> {
    match vm.heap.slots::<ListFormat>(this) {
        Some(format) => Ok(format.clone()),
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
    Err(vm.type_error(&brief!("Iterable yielded {what} which is not a string")))
}

/// A piece of a formatted list.
#[derive(Clone, Copy)]
enum Piece {
    Text(&'static str),
    Item(Value),
}

/// The pieces of a list of strings in their order.
fn pieces(vm: &mut Vm, format: &ListFormat, list: Value) -> Result<Buffer<Piece>> {
    let items = vm.heap.charged_items_copy(list)?;
    let charge = vm.work(2 + items.len())?;
    let patterns = Patterns::new(format.data, format.kind, format.style);
    let mut out = Buffer::new();
    let mut fronts = Buffer::new();
    for (index, &item) in items.iter().enumerate() {
        if index == 0 {
            out.push(vm, Piece::Item(item))?;
            continue;
        }
        let Join { before, between, behind } = patterns.between(index, items.len(), vm.heap.read_bytes(item, charge));
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

/// `$formatList(self, strings)`
fn format(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let format = receiver(vm, arg(arguments, 0), "format")?;
    let pieces = pieces(vm, &format, arg(arguments, 1))?;
    let mut out = Buffer::new();
    for &piece in pieces.iter() {
        match piece {
            Piece::Text(text) => out.extend_from_slice(vm, text.as_bytes())?,
            Piece::Item(item) => vm.heap.charged_append(item, &mut out)?,
        }
    }
    Ok(vm.heap.string_of(out))
}

/// `$formatListToParts(self, strings)`
fn format_to_parts(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let format = receiver(vm, arg(arguments, 0), "formatToParts")?;
    let pieces = pieces(vm, &format, arg(arguments, 1))?;
    let mut items = Buffer::new();
    for &piece in pieces.iter() {
        let (kind, value) = match piece {
            Piece::Text(text) => ("literal", vm.heap.string(text)),
            Piece::Item(item) => ("element", item),
        };
        vm.work(1)?;
        let object = vm.heap.new_object();
        super::put_text(vm, object, "type", kind);
        super::put(vm, object, "value", value);
        items.push(vm, object)?;
    }
    Ok(vm.heap.array_of(items))
}
