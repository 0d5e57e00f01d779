//! `Intl.NumberFormat` (ECMA-402 16), `toLocaleString` of numbers and BigInts.
//!
//! Numbers are exact decimals: the digits that identify a double, all digits of a BigInt or a text. [`options`] reads
//! options, [`range`] formats ranges.

mod options;
mod range;

use super::{SUPPORTED_LOCALES_OF, parts_value};
use crate::builtins::{Body, ClosureFn, Global, Row, arg, getter, native};
use crate::eval::convert::Hint;
use crate::eval::vm::Vm;
use crate::heap::{Action, InternalSlots};
use crate::meter::buffer::{Buffer, Hold};
use crate::value::family::Family;
use crate::value::numeric::{is_space, number_text, text_number};
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use agentscript_intl::number::{self, Decimal, Quantity};
pub use options::{for_plurals, numbering};
use options::{read, resolved_options};

/// The constructor.
pub const CONSTRUCTOR: Global = Global {
    name: "NumberFormat",
    length: 0,
    call: Body::Native(construct),
    construct: Some(Body::Native(construct)),
    functions: &[SUPPORTED_LOCALES_OF],
    numbers: &[],
};

/// Its methods.
pub const METHODS: &[Row] = &[
    native("resolvedOptions", 0, resolved_options),
    native("formatToParts", 1, format_to_parts),
    getter("format", get_format),
    native("formatRange", 2, range::format_range),
    native("formatRangeToParts", 2, range::format_range_to_parts),
];

/// The internal slots of an `Intl.NumberFormat`.
#[derive(Clone, Debug)]
pub struct NumberFormat {
    /// The format.
    pub format: number::NumberFormat,
    /// The function of `format`, `undefined` until it is read.
    pub bound: Value,
}

impl InternalSlots for NumberFormat {
    fn family(&self) -> Family {
        Family::NumberFormat
    }

    fn tag(&self) -> &'static str {
        "Intl.NumberFormat"
    }

    fn cost(&self) -> usize {
        number::NumberFormat::BESIDE
    }

    fn trace(&self, reach: &mut dyn FnMut(Value)) {
        reach(self.bound);
    }
}

/// Numbers with more digits than this are not written out in full.
const MAX_WIDTH: usize = 100_000_000;

/// `new Intl.NumberFormat(locales, options)`, the same without `new`
fn construct(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let format = read(vm, arg(arguments, 0), arg(arguments, 1), "Intl.NumberFormat")?;
    let format = NumberFormat { format, bound: Value::UNDEFINED };
    Ok(vm.heap.new_with_slots(format))
}

/// `toLocaleString` of a number or BigInt; `service` is its name in messages.
pub fn to_locale_string(vm: &mut Vm, value: Value, arguments: &[Value], service: &str) -> Result {
    let format = read(vm, arg(arguments, 0), arg(arguments, 1), service)?;
    let quantity = quantity(vm, value)?;
    text(vm, &format, &quantity)
}

/// The letter of the plural category of a number with the digits of a formatter.
pub fn plural_of(vm: &mut Vm, format: &number::NumberFormat, number: f64, is_ordinal: bool) -> Result<char> {
    let quantity = finite(vm, number)?;
    let _hold = room(vm, &quantity)?;
    Ok(format.plural_of(&quantity, is_ordinal))
}

/// ToIntlMathematicalValue (ECMA-402 16.5.16).
fn quantity(vm: &mut Vm, value: Value) -> Result<Quantity> {
    let value = vm.to_primitive(value, Hint::Number)?;
    if value.is(Kind::BigInt) {
        return integer(vm, value);
    }
    if value.is_string() {
        let bytes = vm.heap.str(value).bytes as usize;
        let charge = vm.work(bytes / 16)?;
        // The text and its digits.
        let _hold = vm.heap.hold(3 * bytes)?;
        let text = String::from(vm.heap.read_text(value, charge));
        if has_prefix(&text) {
            let exact = crate::eval::bigint::parse(vm, value)?.map(|exact| vm.heap.new_bigint(exact));
            return exact.map_or(Ok(Quantity::NaN), |exact| integer(vm, exact));
        }
        let number = text_number(&text);
        if number.is_finite() {
            vm.work(bytes / 16)?;
            if let Some(decimal) = Decimal::parse(text.trim_matches(is_space)) {
                return charged(vm, decimal);
            }
        }
        return finite(vm, number);
    }
    let number = vm.to_number(value)?;
    finite(vm, number)
}

/// A BigInt, exactly.
fn integer(vm: &mut Vm, value: Value) -> Result<Quantity> {
    // With room for the digits, and for what is written of them.
    let _hold = vm.heap.hold(3 * vm.heap.bigint_bits(value) as usize)?;
    let text = crate::eval::bigint::text(vm, value, 10)?;
    vm.work(text.len())?;
    Ok(Decimal::parse(&text).map_or(Quantity::NaN, Quantity::Finite))
}

/// Whether a text has a prefix of an integer in base 2, 8 or 16, such as `0x`.
fn has_prefix(text: &str) -> bool {
    matches!(text.trim_start_matches(is_space).as_bytes(), [b'0', b'b' | b'B' | b'o' | b'O' | b'x' | b'X', ..])
}

/// A number, charged for.
pub fn finite(vm: &mut Vm, number: f64) -> Result<Quantity> {
    if number.is_nan() {
        return Ok(Quantity::NaN);
    }
    if number.is_infinite() {
        return Ok(Quantity::Infinite(number < 0.0));
    }
    let sign = if number.is_sign_negative() { "-" } else { "" };
    match Decimal::parse(&brief!("{sign}{}", number_text(number.abs()))) {
        Some(decimal) => charged(vm, decimal),
        None => Ok(Quantity::NaN),
    }
}

/// Charge for the digits of a number that is written out.
fn charged(vm: &mut Vm, decimal: Decimal) -> Result<Quantity> {
    let width = decimal.width();
    if width > MAX_WIDTH {
        return Err(vm.range_error("Invalid string length"));
    }
    vm.reserve(width.saturating_mul(4))?;
    vm.work(1 + width / 16)?;
    Ok(Quantity::Finite(decimal))
}

fn text(vm: &mut Vm, format: &number::NumberFormat, quantity: &Quantity) -> Result {
    let _hold = room(vm, quantity)?;
    let parts = format.parts(quantity);
    joined(vm, parts.iter().map(|(_, text)| &**text))
}

/// Room for the parts of a number.
pub fn room(vm: &mut Vm, quantity: &Quantity) -> Result<Hold> {
    vm.heap.hold(quantity.cost())
}

/// The texts of all parts, charged for.
fn joined<'a>(vm: &mut Vm, parts: impl Iterator<Item = &'a str>) -> Result {
    let mut text = Buffer::new();
    for part in parts {
        text.extend_from_slice(vm, part.as_bytes())?;
    }
    vm.work(4 + text.len() / 16)?;
    Ok(vm.heap.string_of(text))
}

/// The internal slots of a receiver.
fn receiver(vm: &mut Vm, this: Value, method: &str) -> Result<number::NumberFormat> {
    match vm.heap.slots::<NumberFormat>(this) {
        Some(format) => Ok(format.format.clone()),
        _ => Err(incompatible(vm, this, method)),
    }
}

/// The same of a method that takes a wrapper.
fn unwrapped(vm: &mut Vm, this: Value, method: &str) -> Result<number::NumberFormat> {
    match vm.heap.slots::<NumberFormat>(this) {
        Some(format) => Ok(format.format.clone()),
        _ => Err(super::incompatible_wrapper(vm, this, "NumberFormat", method)),
    }
}

#[cold]
fn incompatible(vm: &mut Vm, this: Value, method: &str) -> Thrown {
    let what = vm.describe(this);
    vm.type_error(&brief!("Method Intl.NumberFormat.prototype.{method} called on incompatible receiver {what}"))
}

/// `format.formatToParts(value)`
fn format_to_parts(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let format = receiver(vm, this, "formatToParts")?;
    let quantity = quantity(vm, arg(arguments, 0))?;
    let _hold = room(vm, &quantity)?;
    let parts = format.parts(&quantity);
    vm.work(8 + parts.len())?;
    parts_value(vm, parts.iter().map(|(kind, text)| (*kind, &**text, None)))
}

/// `format.format`: a function bound to the formatter, always the same one.
fn get_format(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let known = match vm.heap.slots::<NumberFormat>(this) {
        Some(format) => format.bound,
        _ => return Err(incompatible(vm, this, "format")),
    };
    if !known.is_undefined() {
        return Ok(known);
    }
    let function =
        vm.heap.new_native_closure(Action::Native(&BOUND_FORMAT), [this, Value::UNDEFINED, Value::UNDEFINED]);
    if let Some(format) = vm.heap.slots_mut::<NumberFormat>(this) {
        format.bound = function;
    }
    Ok(function)
}

static BOUND_FORMAT: ClosureFn = ClosureFn { length: 1, call: bound_format };

/// A call of the function that `format.format` returns.
fn bound_format(vm: &mut Vm, function: Value, arguments: &[Value]) -> Result {
    let this = vm.heap.native_closures[function.index()].data[0];
    let format = receiver(vm, this, "format")?;
    let quantity = quantity(vm, arg(arguments, 0))?;
    text(vm, &format, &quantity)
}
