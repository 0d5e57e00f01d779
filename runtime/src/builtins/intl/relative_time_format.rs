//! `Intl.RelativeTimeFormat` (ECMA-402 18).

use super::number_format::{self, NumberFormat};
use super::pack::{self, FIELD, PHRASES};
use super::{SUPPORTED_LOCALES_OF, choice, incompatible, needs_new, resolved, word};
use crate::builtins::{Body, Global, Row, arg, native};
use crate::charge::Buffer;
use crate::heap::InternalSlots;
use crate::thrown::Result;
use crate::value::Value;
use crate::vm::Vm;
use number_format::Part;

/// The constructor.
pub const CONSTRUCTOR: Global = Global {
    name: "RelativeTimeFormat",
    length: 0,
    call: Body::Native(|vm, _, _| Err(needs_new(vm, "RelativeTimeFormat"))),
    construct: Some(Body::Native(construct)),
    functions: &[SUPPORTED_LOCALES_OF],
    numbers: &[],
};

/// Its methods.
pub const METHODS: &[Row] = &[
    native("resolvedOptions", 0, resolved_options),
    native("format", 2, format),
    native("formatToParts", 2, format_to_parts),
];

/// The internal slots of an `Intl.RelativeTimeFormat`.
#[derive(Clone, Debug)]
pub struct RelativeTimeFormat {
    /// Locale, numbering system and digits.
    number: NumberFormat,
    style: usize,
    is_auto: bool,
}

const STYLES: &[&str] = &["long", "short", "narrow"];
const NUMERIC: &[&str] = &["always", "auto"];
const UNITS: &[&str] = &["second", "minute", "hour", "day", "week", "month", "quarter", "year"];

/// `new Intl.RelativeTimeFormat(locales, options)`
fn construct(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let service = "Intl.RelativeTimeFormat";
    vm.work(8)?;
    let requested = resolved(vm, arg(arguments, 0))?;
    let options = arg(arguments, 1);
    if options == Value::NULL {
        return Err(vm.type_error("Intl.RelativeTimeFormat called on null or undefined"));
    }
    choice(vm, options, service, "localeMatcher", super::MATCHERS)?;
    let (locale, numbering) = number_format::numbering(vm, &requested, options)?;
    let style = choice(vm, options, service, "style", STYLES)?.unwrap_or(0);
    let is_auto = choice(vm, options, service, "numeric", NUMERIC)? == Some(1);
    let number = NumberFormat::plain(locale, numbering, requested.locale.data).half_even();
    let format = RelativeTimeFormat { number, style, is_auto };
    Ok(vm.heap.new_with_slots(InternalSlots::RelativeTimeFormat(Box::new(format))))
}

fn receiver(vm: &mut Vm, this: Value, method: &str) -> Result<RelativeTimeFormat> {
    match vm.heap.internal_slots_of(this) {
        Some(InternalSlots::RelativeTimeFormat(format)) => Ok((**format).clone()),
        _ => Err(incompatible(vm, this, "RelativeTimeFormat", method)),
    }
}

/// `relative.resolvedOptions()`
fn resolved_options(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let format = receiver(vm, this, "resolvedOptions")?;
    let object = vm.heap.new_object();
    super::put_text(vm, object, "locale", &format.number.locale);
    super::put_text(vm, object, "style", STYLES[format.style]);
    super::put_text(vm, object, "numeric", NUMERIC[usize::from(format.is_auto)]);
    super::put_text(vm, object, "numberingSystem", &format.number.numbering);
    Ok(object)
}

/// The parts of a relative time, with the unit.
fn parts(vm: &mut Vm, this: Value, arguments: &[Value], method: &str) -> Result<(Vec<Part>, &'static str)> {
    let format = receiver(vm, this, method)?;
    let number = vm.to_number(arg(arguments, 0))?;
    let name = word(vm, arg(arguments, 1))?;
    if !number.is_finite() {
        let message = format!("Value need to be finite number for Intl.RelativeTimeFormat.prototype.{method}()");
        return Err(vm.range_error(&message));
    }
    let singular = name.strip_suffix('s').unwrap_or(&name);
    let Some(&unit) = UNITS.iter().find(|unit| **unit == name || **unit == singular) else {
        let message = format!("Invalid unit argument for Intl.RelativeTimeFormat.prototype.{method}() '{name}'");
        return Err(vm.range_error(&message));
    };
    vm.work(8)?;
    let style = ["l", "s", "n"][format.style];
    let locale = format.number.data_locale();
    if format.is_auto
        && let Some(text) = named(locale, unit, style, number)
    {
        return Ok(([("literal", text.into())].into(), unit));
    }
    let direction = if number.is_sign_negative() { '-' } else { '+' };
    // bounded: a unit and a letter
    let forms = PHRASES.get(locale, &format!("{direction}/{unit}/{style}")).unwrap_or_default();
    let (digits, letter) = number_format::plain_parts(vm, &format.number, number.abs())?;
    let pattern = pack::form(forms, letter).unwrap_or("{0}");
    let Some((before, behind)) = pattern.split_once("{0}") else {
        return Ok(([("literal", pattern.into())].into(), unit));
    };
    let around = |text: &'static str| (!text.is_empty()).then(|| ("literal", text.into()));
    // bounded: by the digits, which are counted
    Ok((around(before).into_iter().chain(digits).chain(around(behind)).collect(), unit))
}

/// The word for a number of units, such as "yesterday". As in ICU, numbers nearly as large have it too.
fn named(locale: &str, unit: &str, style: &str, number: f64) -> Option<&'static str> {
    if number.abs() >= 2.1 {
        return None;
    }
    let hundredths = (number * 100.0 + if number < 0.0 { -0.5 } else { 0.5 }).trunc();
    if hundredths % 100.0 != 0.0 {
        return None;
    }
    let wanted = (hundredths / 100.0) as i32;
    // bounded: a unit and a letter
    let words = PHRASES.get(locale, &format!("=/{unit}/{style}"))?;
    words.split(FIELD).find_map(|word| {
        let (value, text) = word.split_once(' ')?;
        (value.parse() == Ok(wanted)).then_some(text)
    })
}

/// `relative.format(value, unit)`
fn format(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let (parts, _) = parts(vm, this, arguments, "format")?;
    let mut out = Buffer::new();
    for (_, text) in &parts {
        out.extend_from_slice(vm, text.as_bytes())?;
    }
    vm.work(1 + out.len() / 16)?;
    Ok(vm.string_of(out))
}

/// `relative.formatToParts(value, unit)`
fn format_to_parts(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let (parts, unit) = parts(vm, this, arguments, "formatToParts")?;
    let mut items = Buffer::new();
    for (kind, text) in &parts {
        vm.work(1 + text.len() / 16)?;
        let object = vm.heap.new_object();
        super::put_text(vm, object, "type", kind);
        super::put_text(vm, object, "value", text);
        if *kind != "literal" {
            super::put_text(vm, object, "unit", unit);
        }
        items.push(vm, object)?;
    }
    Ok(vm.array_of(items))
}
