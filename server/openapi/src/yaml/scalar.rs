//! Plain scalars by the core schema of YAML 1.2 (section 10.3.2), and what authors mean who know YAML 1.1.

use serde_json::{Number, Value};

/// A plain scalar.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// `null`, `true`, a number: a value that JSON has.
    Value(Value),
    /// `.inf`, `.nan`, or a number that is too large.
    NotFinite,
    /// All else.
    Text,
}

/// Resolves a plain scalar.
pub fn core(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Value(Value::Null),
        "true" | "True" | "TRUE" => Scalar::Value(true.into()),
        "false" | "False" | "FALSE" => Scalar::Value(false.into()),
        _ => number(text),
    }
}

fn number(text: &str) -> Scalar {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(text, ".nan" | ".NaN" | ".NAN") || matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Scalar::NotFinite;
    }
    let (digits, radix) = match (text.strip_prefix("0o"), text.strip_prefix("0x")) {
        (Some(digits), _) => (digits, 8),
        (_, Some(digits)) => (digits, 16),
        (None, None) => (unsigned, 10),
    };
    if !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix)) {
        let signed = if radix == 10 { text } else { digits };
        let whole = i64::from_str_radix(signed, radix).map(Number::from);
        return match whole.or_else(|_| u64::from_str_radix(signed, radix).map(Number::from)) {
            Ok(number) => Scalar::Value(number.into()),
            Err(_) if radix == 10 => float(text),
            Err(_) => float(&u128::from_str_radix(digits, radix).unwrap_or(u128::MAX).to_string()),
        };
    }
    if is_float(unsigned) { float(text) } else { Scalar::Text }
}

/// `[0-9]+(\.[0-9]*)?|\.[0-9]+`, and an exponent.
fn is_float(unsigned: &str) -> bool {
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (number, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    are_digits(whole)
        && are_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && are_digits(exponent))
}

fn float(text: &str) -> Scalar {
    match text.parse().ok().and_then(Number::from_f64) {
        Some(number) => Scalar::Value(number.into()),
        None => Scalar::NotFinite,
    }
}

/// Returns what a truth value is that is written as in YAML 1.1, or as a text.
pub fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" => Some(true),
        "false" | "no" | "off" | "n" => Some(false),
        _ => None,
    }
}

/// Returns a number that is written with `_` between its digits, as in YAML 1.1.
pub fn grouped(text: &str) -> Option<Value> {
    let is_number = text.contains('_') && text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    match core(&text.replace('_', "")) {
        Scalar::Value(value @ Value::Number(_)) if is_number => Some(value),
        Scalar::Value(_) | Scalar::NotFinite | Scalar::Text => None,
    }
}
