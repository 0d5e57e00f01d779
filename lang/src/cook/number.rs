//! Numbers: from source text to values, and to property keys.

use crate::ast::{Arena, Text};
use crate::diagnostic::{Diagnostic, Result};
use std::borrow::Cow;

/// Longest BigInt literal: converting to base ten takes quadratic time.
const MAX_BIGINT: usize = 20_000;

/// Returns the value of a numeric literal.
pub(crate) fn number(text: &str) -> f64 {
    if let Some(value) = short(text) {
        return f64::from(value);
    }
    let text = plain(text);
    match radix(&text) {
        Some((bits, digits)) => binary(digits, bits),
        // Rust parses every number that the lexer accepts.
        None => text.parse().unwrap_or(f64::NAN),
    }
}

/// Returns the value of a few digits.
fn short(text: &str) -> Option<u32> {
    const MAX_DIGITS: usize = 9;
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u32::from(byte - b'0'));
    match text.len() {
        0..=MAX_DIGITS => text.bytes().try_fold(0, |value, byte| Some(value * 10 + digit(byte)?)),
        _ => None,
    }
}

/// Returns a literal without separators.
fn plain(text: &str) -> Cow<'_, str> {
    if text.contains('_') { Cow::Owned(text.replace('_', "")) } else { Cow::Borrowed(text) }
}

/// Returns the number of bits per digit, and the digits behind `0x`, `0o`, `0b`.
fn radix(text: &str) -> Option<(u32, &str)> {
    let bits = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => 4,
        [b'0', b'o' | b'O', ..] => 3,
        [b'0', b'b' | b'B', ..] => 1,
        _ => return None,
    };
    Some((bits, &text[2..]))
}

/// Rounded to nearest, ties to even: the first 64 significant bits decide, and whether any bit
/// behind them is set.
fn binary(digits: &str, bits: u32) -> f64 {
    let mut mantissa = 0_u64;
    let mut dropped = 0_i32;
    let mut sticky = false;
    for digit in digits.chars().filter_map(|digit| digit.to_digit(16)) {
        for bit in (0..bits).rev().map(|shift| u64::from(digit >> shift & 1)) {
            if mantissa >> 63 == 0 {
                mantissa = mantissa << 1 | bit;
            } else {
                dropped = dropped.saturating_add(1);
                sticky |= bit == 1;
            }
        }
    }
    let value = (mantissa | u64::from(sticky)) as f64;
    if dropped > 960 { f64::INFINITY } else { value * 2_f64.powi(dropped) }
}

/// Returns the digits of a BigInt literal in base ten.
pub(crate) fn bigint<'s>(arena: &'s Arena, text: &'s str, start: u32) -> Result<&'s str> {
    let source = text.strip_suffix('n').unwrap_or(text);
    if source.len() > MAX_BIGINT {
        return Err(Diagnostic::syntax("this BigInt is too long", super::span_of(text, start)).into());
    }
    let digits = plain(source);
    Ok(arena.text(match radix(&digits) {
        Some((bits, digits)) => Cow::Owned(decimal(digits, bits)),
        None => digits,
    }))
}

/// Returns the digits in base ten of digits of `bits` bits each.
fn decimal(digits: &str, bits: u32) -> String {
    const LIMB: u64 = 1_000_000_000_000_000_000;
    let mut limbs = vec![0_u64];
    // As many digits at a time as 60 bits hold: a shifted limb and the carry fit 128 bits.
    for part in digits.as_bytes().chunks((60 / bits) as usize) {
        let digits = part.iter().filter_map(|&digit| char::from(digit).to_digit(16));
        let (mut carry, mut shift) = (0_u128, 0);
        for digit in digits {
            carry = carry << bits | u128::from(digit);
            shift += bits;
        }
        for limb in &mut limbs {
            let wide = (u128::from(*limb) << shift) + carry;
            *limb = (wide % u128::from(LIMB)) as u64;
            carry = wide / u128::from(LIMB);
        }
        // 60 bits can be more than one limb.
        while carry > 0 {
            limbs.push((carry % u128::from(LIMB)) as u64);
            carry /= u128::from(LIMB);
        }
    }
    let mut text = limbs.pop().unwrap_or(0).to_string();
    text.extend(limbs.iter().rev().map(|limb| format!("{limb:018}")));
    text
}

/// Returns a numeric literal as a property key.
pub(crate) fn number_key<'s>(arena: &'s Arena, text: &'s str) -> Text<'s> {
    if text == "0" || text.len() < 16 && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.as_bytes();
    }
    arena.text(number_text(number(text)).into()).as_bytes()
}

/// Returns a number as `String(number)` gives it.
pub(crate) fn number_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    if value == 0.0 {
        return "0".into();
    }
    // The shortest digits that parse as the same number, with the point where ECMAScript puts it.
    let shortest = format!("{:e}", value.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits = mantissa.replace('.', "");
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let point = exponent.parse::<i32>().unwrap_or(0) + 1;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    let sign = if value < 0.0 { "-" } else { "" };
    let at = usize::try_from(point).unwrap_or(0);
    match point {
        _ if count <= point && point <= 21 => format!("{sign}{digits}{}", zeros(point - count)),
        1..=21 => format!("{sign}{}.{}", &digits[..at], &digits[at..]),
        -5..=0 => format!("{sign}0.{}{digits}", zeros(-point)),
        _ => {
            let fraction = if count > 1 { format!(".{}", &digits[1..]) } else { String::new() };
            format!("{sign}{}{fraction}e{:+}", &digits[..1], point - 1)
        }
    }
}
