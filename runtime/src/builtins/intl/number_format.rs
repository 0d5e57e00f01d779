//! `Intl.NumberFormat` (ECMA-402 16), `toLocaleString` of numbers and BigInts.
//!
//! Numbers are exact decimals: the digits that identify a double, all digits of a BigInt or a text.
//! Options are read here, numbers become text in [`pattern`], ranges of them in [`range`].

mod decimal;
mod options;
mod pattern;
mod range;
mod symbols;
mod units;

use super::{SUPPORTED_LOCALES_OF, parts_value};
use crate::builtins::{Body, Global, Row, arg, bigint, getter, native};
use crate::charge::{Buffer, Hold};
use crate::convert::Hint;
use crate::heap::{Action, InternalSlots};
use crate::numeric::{is_space, number_text, text_number};
use crate::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use crate::vm::Vm;
use decimal::{Decimal, Mode, Quantity};
pub use options::{for_plurals, numbering};
use options::{read, resolved_options};
pub use pattern::Part;
use std::sync::Arc;
use symbols::Data;

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
    /// The resolved tag.
    pub locale: String,
    /// The numbering system.
    pub numbering: String,
    style: Style,
    currency: String,
    currency_display: CurrencyDisplay,
    accounting: bool,
    unit: String,
    /// Short, narrow, long.
    unit_display: usize,
    notation: Notation,
    compact_long: bool,
    grouping: Grouping,
    sign_display: SignDisplay,
    min_integer: usize,
    rounding: Rounding,
    mode: Mode,
    increment: u32,
    strip_zeros: bool,
    /// Whether it formats a range.
    is_range: bool,
    data: Arc<Data>,
    /// The function of `format`, `undefined` until it is read.
    pub bound: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Decimal,
    Percent,
    Currency,
    Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CurrencyDisplay {
    Code,
    Symbol,
    Narrow,
    Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    Standard,
    Scientific,
    Engineering,
    Compact,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grouping {
    Never,
    Min2,
    Auto,
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SignDisplay {
    Auto,
    Never,
    Always,
    ExceptZero,
    Negative,
}

/// The minimum and maximum numbers of digits.
#[derive(Clone, Copy, Debug)]
enum Rounding {
    Fraction { min: usize, max: usize },
    Significant { min: usize, max: usize },
    Both { fraction: (usize, usize), significant: (usize, usize), more: bool },
}

/// Numbers with more digits than this are not written out in full.
const MAX_WIDTH: usize = 100_000_000;

/// `new Intl.NumberFormat(locales, options)`, the same without `new`
fn construct(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let format = read(vm, arg(arguments, 0), arg(arguments, 1), "Intl.NumberFormat")?;
    Ok(vm.heap.new_with_slots(InternalSlots::NumberFormat(Box::new(format))))
}

/// `toLocaleString` of a number or BigInt; `service` is its name in messages.
pub fn to_locale_string(vm: &mut Vm, value: Value, arguments: &[Value], service: &str) -> Result {
    let format = read(vm, arg(arguments, 0), arg(arguments, 1), service)?;
    let quantity = quantity(vm, value)?;
    text(vm, &format, &quantity)
}

/// The letter of the plural category of a number with the digits of a formatter.
pub fn plural_of(vm: &mut Vm, format: &NumberFormat, number: f64, is_ordinal: bool) -> Result<char> {
    let quantity = finite(vm, number)?;
    let _hold = room(vm, &quantity)?;
    let Quantity::Finite(mut decimal) = quantity else { return Ok(super::plurals::OTHER) };
    let fraction = format.round(&mut decimal);
    Ok(format.plural(&decimal, fraction, 0, is_ordinal))
}

/// The parts of a number, and the letter of its plural category.
pub fn plain_parts(vm: &mut Vm, format: &NumberFormat, number: f64) -> Result<(Vec<Part>, char)> {
    let letter = plural_of(vm, format, number, false)?;
    let quantity = finite(vm, number)?;
    let _hold = room(vm, &quantity)?;
    Ok((format.parts(&quantity), letter))
}

impl NumberFormat {
    /// About how many bytes its texts and data take beside it.
    pub const BESIDE: usize = size_of::<Data>() + 512;

    /// A formatter without options; `data` is the name of the locale in the packs.
    pub fn plain(locale: String, numbering: String, data: &'static str) -> Self {
        let mut format = Self {
            locale,
            numbering,
            style: Style::Decimal,
            currency: String::default(),
            currency_display: CurrencyDisplay::Symbol,
            accounting: false,
            unit: String::default(),
            unit_display: 0,
            notation: Notation::Standard,
            compact_long: false,
            grouping: Grouping::Auto,
            sign_display: SignDisplay::Auto,
            min_integer: 1,
            rounding: Rounding::Fraction { min: 0, max: 3 },
            mode: Mode::HalfExpand,
            increment: 1,
            strip_zeros: false,
            is_range: false,
            data: Arc::default(),
            bound: Value::UNDEFINED,
        };
        format.data = Arc::new(symbols::data(&format, data));
        format
    }

    /// The same, rounding halves to even digits.
    pub fn half_even(mut self) -> Self {
        self.mode = Mode::HalfEven;
        self
    }

    /// Prepare for formatting a range, where ICU and V8 differ from themselves: units of percent have their denominator,
    /// and digits are those of the locale where an option asks for Latin ones.
    fn for_range(&mut self) {
        let is_percent = self.unit.starts_with("percent-per-");
        let default = super::locale::available(&self.locale).map_or("latn", |locale| locale.numbering);
        let is_latin = self.numbering == "latn" && default != "latn" && !self.locale.contains("-nu-");
        if is_percent || is_latin {
            self.is_range = true;
            if is_latin {
                self.numbering = default.into();
            }
            self.data = Arc::new(symbols::data(self, self.data.locale));
        }
    }

    /// The name of the locale in the packs.
    pub fn data_locale(&self) -> &'static str {
        self.data.locale
    }

    /// The options about digits, as `resolvedOptions` gives them.
    pub fn digit_options(&self) -> Vec<(&'static str, usize)> {
        // bounded: five
        let mut out = vec![("minimumIntegerDigits", self.min_integer)];
        let (fraction, significant) = match self.rounding {
            Rounding::Fraction { min, max } => (Some((min, max)), None),
            Rounding::Significant { min, max } => (None, Some((min, max))),
            Rounding::Both { significant, .. } => (None, Some(significant)),
        };
        if let Some((min, max)) = fraction {
            out.extend([("minimumFractionDigits", min), ("maximumFractionDigits", max)]);
        }
        if let Some((min, max)) = significant {
            out.extend([("minimumSignificantDigits", min), ("maximumSignificantDigits", max)]);
        }
        out
    }

    /// Whether the unit is written as a percent sign: short, and not compact.
    fn is_percent_sign(&self) -> bool {
        let is_percent = self.unit == "percent" || self.unit.starts_with("percent-per-") && !self.is_range;
        is_percent && self.unit_display < 2 && self.notation != Notation::Compact
    }
}

/// ToIntlMathematicalValue (ECMA-402 16.5.16).
fn quantity(vm: &mut Vm, value: Value) -> Result<Quantity> {
    let value = vm.to_primitive(value, Hint::Number)?;
    if value.is(Kind::BigInt) {
        return integer(vm, value);
    }
    if value.is_string() {
        let bytes = vm.heap.str(value).bytes as usize;
        vm.work(bytes / 16)?;
        // The text and its digits.
        let _hold = vm.hold(3 * bytes)?;
        let text = vm.heap.text(value).into_owned(); // charged: above
        if has_prefix(&text) {
            let exact = bigint::parse(vm, value)?.map(|exact| vm.heap.new_bigint(exact));
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
    let _hold = vm.hold(3 * vm.heap.bigints[value.index()].bits() as usize)?; // bounded: the number of bits
    let text = bigint::text(vm, value, 10)?;
    vm.work(text.len())?;
    Ok(Decimal::parse(&text).map_or(Quantity::NaN, Quantity::Finite))
}

/// Whether a text has a prefix of an integer in base 2, 8 or 16, such as `0x`.
fn has_prefix(text: &str) -> bool {
    matches!(text.trim_start_matches(is_space).as_bytes(), [b'0', b'b' | b'B' | b'o' | b'O' | b'x' | b'X', ..])
}

fn finite(vm: &mut Vm, number: f64) -> Result<Quantity> {
    if number.is_nan() {
        return Ok(Quantity::NaN);
    }
    if number.is_infinite() {
        return Ok(Quantity::Infinite(number < 0.0));
    }
    let sign = if number.is_sign_negative() { "-" } else { "" };
    // bounded: a number
    match Decimal::parse(&format!("{sign}{}", number_text(number.abs()))) {
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

fn text(vm: &mut Vm, format: &NumberFormat, quantity: &Quantity) -> Result {
    let _hold = room(vm, quantity)?;
    let parts = format.parts(quantity);
    joined(vm, parts.iter().map(|(_, text)| &**text))
}

/// Room for the parts of a number.
fn room(vm: &mut Vm, quantity: &Quantity) -> Result<Hold> {
    vm.hold(parts_cost(quantity))
}

/// Bytes of the parts of a number: for three digits two of them, with a text each.
fn parts_cost(quantity: &Quantity) -> usize {
    const DIGIT: usize = (2 * size_of::<Part>() + 32) / 3 + 16;
    match quantity {
        Quantity::NaN | Quantity::Infinite(_) => 0,
        Quantity::Finite(decimal) => decimal.width().saturating_mul(DIGIT),
    }
}

/// The texts of all parts, charged for.
fn joined<'a>(vm: &mut Vm, parts: impl Iterator<Item = &'a str>) -> Result {
    let mut text = Buffer::new();
    for part in parts {
        text.extend_from_slice(vm, part.as_bytes())?;
    }
    vm.work(4 + text.len() / 16)?;
    Ok(vm.string_of(text))
}

/// The internal slots of a receiver.
fn receiver(vm: &mut Vm, this: Value, method: &str) -> Result<NumberFormat> {
    match vm.heap.internal_slots_of(this) {
        Some(InternalSlots::NumberFormat(format)) => Ok((**format).clone()),
        _ => Err(incompatible(vm, this, method)),
    }
}

/// The same of a method that takes a wrapper.
fn unwrapped(vm: &mut Vm, this: Value, method: &str) -> Result<NumberFormat> {
    match vm.heap.internal_slots_of(this) {
        Some(InternalSlots::NumberFormat(format)) => Ok((**format).clone()),
        _ => Err(super::incompatible_wrapper(vm, this, "NumberFormat", method)),
    }
}

#[cold]
fn incompatible(vm: &mut Vm, this: Value, method: &str) -> Thrown {
    let what = vm.describe(this);
    vm.type_error(&format!("Method Intl.NumberFormat.prototype.{method} called on incompatible receiver {what}"))
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
    let known = match vm.heap.internal_slots_of(this) {
        Some(InternalSlots::NumberFormat(format)) => format.bound,
        _ => return Err(incompatible(vm, this, "format")),
    };
    if !known.is_undefined() {
        return Ok(known);
    }
    let function = vm.heap.new_native_closure(Action::Native(bound_format), [this, Value::UNDEFINED, Value::UNDEFINED]);
    if let Some(InternalSlots::NumberFormat(format)) = vm.heap.internal_slots_of_mut(this) {
        format.bound = function;
    }
    Ok(function)
}

/// A call of the function that `format.format` returns.
fn bound_format(vm: &mut Vm, function: Value, arguments: &[Value]) -> Result {
    let this = vm.heap.native_closures[function.index()].data[0];
    let format = receiver(vm, this, "format")?;
    let quantity = quantity(vm, arg(arguments, 0))?;
    text(vm, &format, &quantity)
}
