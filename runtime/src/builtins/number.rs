//! `Number`, and the global functions that read and test numbers.

pub mod format;

use super::{Body, Global, Row, arg, native};
use crate::eval::operator::bigint_number;
use crate::eval::vm::Vm;
use crate::heap::Class;
use crate::value::numeric::{is_space, leading_text, number_text, parse_radix, to_int32};
use crate::value::thrown::Result;
use crate::value::{Kind, Value};
use format::{exponential, fixed, precise, radix_text};

/// The constructor and functions.
pub const GLOBALS: &[Global] = &[
    Global {
        name: "Number",
        length: 1,
        call: Body::Native(number),
        construct: None,
        functions: &[
            native("isFinite", 1, is_finite_number),
            native("isInteger", 1, is_integer),
            native("isNaN", 1, is_nan_number),
            native("isSafeInteger", 1, is_safe_integer),
            native("parseFloat", 1, parse_float),
            native("parseInt", 2, parse_int),
        ],
        numbers: &[
            ("EPSILON", f64::EPSILON),
            ("MAX_SAFE_INTEGER", MAX_SAFE),
            ("MAX_VALUE", f64::MAX),
            ("MIN_SAFE_INTEGER", -MAX_SAFE),
            ("MIN_VALUE", 5e-324),
            ("NEGATIVE_INFINITY", f64::NEG_INFINITY),
            ("NaN", f64::NAN),
            ("POSITIVE_INFINITY", f64::INFINITY),
        ],
    },
    Global::function(native("isFinite", 1, is_finite)),
    Global::function(native("isNaN", 1, is_nan)),
    Global::function(native("parseFloat", 1, parse_float)),
    Global::function(native("parseInt", 2, parse_int)),
];

/// Methods of numbers.
pub const METHODS: &[Row] = &[
    native("toExponential", 1, to_exponential),
    native("toFixed", 1, to_fixed),
    native("toPrecision", 1, to_precision),
    native("toString", 1, to_string),
    native("valueOf", 0, value_of),
];

/// The largest integer below which all integers are doubles.
pub const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// `Number(value)`
fn number(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let Some(&value) = arguments.first() else { return Ok(Value::ZERO) };
    let value = vm.to_numeric(value)?;
    if value.is(Kind::BigInt) {
        return Ok(Value::number(bigint_number(vm.heap.charged_bigint(value)?)));
    }
    Ok(value)
}

/// `Number.isFinite(value)`
fn is_finite_number(_: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Ok(test(arguments, f64::is_finite))
}

/// `Number.isInteger(value)`
fn is_integer(_: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Ok(test(arguments, |number| number.fract() == 0.0))
}

/// `Number.isNaN(value)`
fn is_nan_number(_: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Ok(test(arguments, f64::is_nan))
}

/// `Number.isSafeInteger(value)`
fn is_safe_integer(_: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Ok(test(arguments, |number| number.fract() == 0.0 && number.abs() <= MAX_SAFE))
}

fn test(arguments: &[Value], holds: impl Fn(f64) -> bool) -> Value {
    let value = arg(arguments, 0);
    Value::bool(value.is_number() && holds(value.as_number()))
}

/// `parseFloat(text)`: the number that the text begins with (ECMAScript 19.2.4)
fn parse_float(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let value = arg(arguments, 0);
    if value.is_number() && value.as_number() != 0.0 {
        // Printing and parsing a number gives the same, except for the sign of zero.
        return Ok(value);
    }
    let text = vm.to_string(value)?;
    Ok(Value::number(leading_number(leading_text(vm.heap.charged_bytes(text)?))))
}

fn leading_number(text: &str) -> f64 {
    let text = text.trim_start_matches(is_space);
    let (sign, rest) = match text.as_bytes() {
        [b'-', ..] => (-1.0, &text[1..]),
        [b'+', ..] => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if rest.starts_with("Infinity") {
        return sign * f64::INFINITY;
    }
    let bytes = rest.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    let mut end = whole;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        if whole + fraction > 0 {
            end += 1 + fraction;
        }
    }
    if end == 0 {
        return f64::NAN;
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let signed = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = bytes.get(end + 1 + signed..).map_or(0, |_| digits(end + 1 + signed));
        if exponent > 0 {
            end += 1 + signed + exponent;
        }
    }
    sign * rest[..end].parse().unwrap_or(f64::NAN)
}

/// `parseInt(text, radix)`: the integer that the text begins with (ECMAScript 19.2.5)
fn parse_int(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (value, radix) = (arg(arguments, 0), arg(arguments, 1));
    if value.is_number() && radix.is_undefined() {
        let number = value.as_number();
        if number.fract() == 0.0 && number.abs() < 1e15 && number != 0.0 {
            return Ok(value);
        }
    }
    let text = vm.to_string(value)?;
    let radix = to_int32(vm.to_number(radix)?);
    Ok(Value::number(leading_integer(leading_text(vm.heap.charged_bytes(text)?), radix)))
}

fn leading_integer(text: &str, radix: i32) -> f64 {
    let text = text.trim_start_matches(is_space);
    let (sign, rest) = match text.as_bytes() {
        [b'-', ..] => (-1.0, &text[1..]),
        [b'+', ..] => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    let prefixed = matches!(rest.as_bytes(), [b'0', b'x' | b'X', ..]) && matches!(radix, 0 | 16);
    let (radix, rest) = match (radix, prefixed) {
        (_, true) => (16, &rest[2..]),
        (0, _) => (10, rest),
        (2..=36, _) => (radix as u32, rest),
        _ => return f64::NAN,
    };
    let end = rest.find(|c: char| !c.is_digit(radix)).unwrap_or(rest.len());
    let digits = rest[..end].trim_start_matches('0');
    sign * match radix {
        _ if end == 0 => f64::NAN,
        _ if digits.is_empty() => 0.0,
        _ if digits.len() <= 10 => parse_radix(digits, radix),
        10 => digits.parse().unwrap_or(f64::NAN),
        _ if radix.is_power_of_two() => parse_radix(digits, radix),
        _ => summed(digits, radix),
    }
}

/// The value of many digits in a radix that is no power of two. As in V8 it is summed up in parts
/// that fit 32 bits, and every part rounds.
fn summed(digits: &str, radix: u32) -> f64 {
    let (mut value, mut part, mut multiplier) = (0.0, 0_u32, 1_u32);
    for digit in digits.chars().filter_map(|c| c.to_digit(radix)) {
        if multiplier * radix > u32::MAX / 36 {
            value = value * f64::from(multiplier) + f64::from(part);
            (part, multiplier) = (0, 1);
        }
        part = part * radix + digit;
        multiplier *= radix;
    }
    value * f64::from(multiplier) + f64::from(part)
}

/// `isFinite(value)`
fn is_finite(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Ok(Value::bool(vm.to_number(arg(arguments, 0))?.is_finite()))
}

/// `isNaN(value)`
fn is_nan(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Ok(Value::bool(vm.to_number(arg(arguments, 0))?.is_nan()))
}

/// `number.toExponential(digits)`
fn to_exponential(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let number = receiver(vm, this, "toExponential")?;
    let argument = arg(arguments, 0);
    let digits = vm.to_integer(argument)?;
    if !number.is_finite() {
        return Ok(vm.heap.string(&number_text(number)));
    }
    if !(0.0..=100.0).contains(&digits) {
        return Err(vm.range_error("toExponential() argument must be between 0 and 100"));
    }
    let digits = (!argument.is_undefined()).then_some(digits as usize);
    Ok(vm.heap.string(&exponential(number, digits)))
}

/// `number.toFixed(digits)`
fn to_fixed(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let number = receiver(vm, this, "toFixed")?;
    let digits = vm.to_integer(arg(arguments, 0))?;
    if !(0.0..=100.0).contains(&digits) {
        return Err(vm.range_error("toFixed() digits argument must be between 0 and 100"));
    }
    if !number.is_finite() || number.abs() >= 1e21 {
        return Ok(vm.heap.string(&number_text(number)));
    }
    Ok(vm.heap.string(&fixed(number, digits as usize)))
}

/// `number.toPrecision(digits)`
fn to_precision(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let number = receiver(vm, this, "toPrecision")?;
    let argument = arg(arguments, 0);
    let digits = if argument.is_undefined() { 0.0 } else { vm.to_integer(argument)? };
    if argument.is_undefined() || !number.is_finite() {
        return Ok(vm.heap.string(&number_text(number)));
    }
    if !(1.0..=100.0).contains(&digits) {
        return Err(vm.range_error("toPrecision() argument must be between 1 and 100"));
    }
    Ok(vm.heap.string(&precise(number, digits as usize)))
}

/// `number.toString(radix)`
fn to_string(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let number = receiver(vm, this, "toString")?;
    match radix_argument(vm, arg(arguments, 0))? {
        10 => vm.to_string(Value::foreign_number(number)),
        radix => Ok(vm.heap.string(&radix_text(number, radix))),
    }
}

/// `number.valueOf()`
fn value_of(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    Ok(Value::foreign_number(receiver(vm, this, "valueOf")?))
}

pub(super) fn receiver(vm: &mut Vm, this: Value, method: &str) -> Result<f64> {
    if this.is_number() {
        return Ok(this.as_number());
    }
    Err(vm.type_error(&brief!("Number.prototype.{method} requires that 'this' be a Number")))
}

/// The radix argument of `toString`.
pub fn radix_argument(vm: &mut Vm, argument: Value) -> Result<u32> {
    if argument.is_undefined() {
        return Ok(10);
    }
    let radix = vm.to_integer(argument)?;
    if (2.0..=36.0).contains(&radix) {
        return Ok(radix as u32);
    }
    Err(vm.throw(Class::RangeError, "toString() radix argument must be between 2 and 36"))
}
