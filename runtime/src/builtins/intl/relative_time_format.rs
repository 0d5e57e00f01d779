//! `Intl.RelativeTimeFormat` (ECMA-402 18).

use super::number_format::{finite, numbering, room};
use super::{SUPPORTED_LOCALES_OF, choice, incompatible, needs_new, resolved, word};
use crate::builtins::{Body, Global, Row, arg, native};
use crate::eval::vm::Vm;
use crate::heap::InternalSlots;
use crate::meter::buffer::Buffer;
use crate::value::Value;
use crate::value::family::Family;
use crate::value::thrown::Result;
use agentscript_intl::number::{Mode, NumberFormat, Options, Part};
use agentscript_intl::relative_time::{self, NUMERIC, STYLES};

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

impl InternalSlots for RelativeTimeFormat {
    fn family(&self) -> Family {
        Family::RelativeTimeFormat
    }

    fn tag(&self) -> &'static str {
        "Intl.RelativeTimeFormat"
    }

    fn cost(&self) -> usize {
        NumberFormat::BESIDE
    }
}

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
    let (locale, numbering) = numbering(vm, &requested, options)?;
    let style = choice(vm, options, service, "style", STYLES)?.unwrap_or(0);
    let is_auto = choice(vm, options, service, "numeric", NUMERIC)? == Some(1);
    let digits = Options { mode: Mode::HalfEven, ..Options::plain(locale, numbering) };
    let number = NumberFormat::new(digits, requested.locale.data);
    let format = RelativeTimeFormat { number, style, is_auto };
    Ok(vm.heap.new_with_slots(format))
}

fn receiver(vm: &mut Vm, this: Value, method: &str) -> Result<RelativeTimeFormat> {
    match vm.heap.slots::<RelativeTimeFormat>(this) {
        Some(format) => Ok(format.clone()),
        _ => Err(incompatible(vm, this, "RelativeTimeFormat", method)),
    }
}

/// `relative.resolvedOptions()`
fn resolved_options(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let format = receiver(vm, this, "resolvedOptions")?;
    let object = vm.heap.new_object();
    super::put_text(vm, object, "locale", &format.number.options.locale);
    super::put_text(vm, object, "style", STYLES[format.style]);
    super::put_text(vm, object, "numeric", NUMERIC[usize::from(format.is_auto)]);
    super::put_text(vm, object, "numberingSystem", &format.number.options.numbering);
    Ok(object)
}

/// The parts of a relative time, with the unit.
fn parts(vm: &mut Vm, this: Value, arguments: &[Value], method: &str) -> Result<(Vec<Part>, &'static str)> {
    let format = receiver(vm, this, method)?;
    let number = vm.to_number(arg(arguments, 0))?;
    let name = word(vm, arg(arguments, 1))?;
    if !number.is_finite() {
        let message = brief!("Value need to be finite number for Intl.RelativeTimeFormat.prototype.{method}()");
        return Err(vm.range_error(&message));
    }
    let Some(unit) = relative_time::unit(&name) else {
        let message = brief!("Invalid unit argument for Intl.RelativeTimeFormat.prototype.{method}() '{name}'");
        return Err(vm.range_error(&message));
    };
    vm.work(8)?;
    if format.is_auto
        && let Some(text) = relative_time::named(&format.number, format.style, unit, number)
    {
        return Ok(([("literal", text.into())].into(), unit));
    }
    let quantity = finite(vm, number.abs())?;
    let _hold = room(vm, &quantity)?;
    Ok((relative_time::parts(&format.number, format.style, unit, &quantity, number.is_sign_negative()), unit))
}

/// `relative.format(value, unit)`
fn format(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let (parts, _) = parts(vm, this, arguments, "format")?;
    let mut out = Buffer::new();
    for (_, text) in &parts {
        out.extend_from_slice(vm, text.as_bytes())?;
    }
    vm.work(1 + out.len() / 16)?;
    Ok(vm.heap.string_of(out))
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
    Ok(vm.heap.array_of(items))
}
