//! Numbers as text: fixed, precise, in any radix. Pure functions of
//! doubles; the digits are exact, and a tie is rounded away from zero.
//!
//! Bounded by the digits of a double, which are no more than [`ALL_DIGITS`]

use crate::value::numeric::number_text;

/// More digits than a double has behind its point.
const ALL_DIGITS: usize = 1100;

/// `number.toFixed(digits)` of a finite number below 1e21 (ECMAScript 21.1.3.3)
pub fn fixed(number: f64, digits: usize) -> String {
    // Negative zero has no sign here; what is rounded to it has one.
    let sign = if number < 0.0 { "-" } else { "" };
    let number = number.abs();
    let text = round_ties_up(|places| format!("{number:.places$}"), digits);
    format!("{sign}{text}")
}

/// `number.toExponential(digits)` of a finite number (ECMAScript 21.1.3.2)
pub fn exponential(number: f64, digits: Option<usize>) -> String {
    let (mantissa, exponent) = scientific(number.abs(), digits);
    let sign = if number < 0.0 { "-" } else { "" };
    format!("{sign}{mantissa}e{exponent:+}")
}

/// `number.toPrecision(digits)` of a finite number (ECMAScript 21.1.3.5)
pub fn precise(number: f64, digits: usize) -> String {
    let (mantissa, exponent) = scientific(number.abs(), Some(digits - 1));
    let sign = if number < 0.0 { "-" } else { "" };
    if exponent < -6 || exponent >= digits as i32 {
        return format!("{sign}{mantissa}e{exponent:+}");
    }
    let all: String = mantissa.chars().filter(|&c| c != '.').collect();
    if exponent < 0 {
        let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
        return format!("{sign}0.{zeros}{all}");
    }
    match all.split_at(exponent as usize + 1) {
        (whole, "") => format!("{sign}{whole}"),
        (whole, fraction) => format!("{sign}{whole}.{fraction}"),
    }
}

/// Mantissa and exponent, with so many digits behind the point, or as many as identify the number.
fn scientific(number: f64, digits: Option<usize>) -> (String, i32) {
    let text = match digits {
        None => {
            let (digits, point) = shortest(number);
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            return (format!("{first}{dot}{rest}"), point - 1);
        }
        Some(digits) => round_ties_up(|places| format!("{number:.places$e}"), digits),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.to_owned(), exponent.parse().unwrap_or(0))
}

/// The digits that identify a number which is not negative, and how many of them are before the point.
fn shortest(number: f64) -> (String, i32) {
    let text = number_text(number);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    let point = whole.len() as i32 + exponent.parse::<i32>().unwrap_or(0) - (all.len() - digits.len()) as i32;
    match digits.trim_end_matches('0') {
        "" => ("0".to_owned(), 1),
        digits => (digits.to_owned(), point),
    }
}

/// Rust's exact formatting rounds ties to even; the language rounds them up.
fn round_ties_up(format: impl Fn(usize) -> String, places: usize) -> String {
    let split = |text: String| match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa.to_owned(), format!("e{exponent}")),
        None => (text, String::new()),
    };
    let (longer, exponent) = split(format(places + 1));
    let is_tie = longer.ends_with('5') && split(format(ALL_DIGITS)).0.trim_end_matches('0') == longer;
    if !is_tie {
        return format(places);
    }
    // Up is to even already where the digit before the tie is odd.
    let mut digits = longer.into_bytes();
    digits.pop();
    digits.pop_if(|last| *last == b'.');
    match digits.last_mut() {
        Some(last) if *last % 2 == 0 => *last += 1,
        _ => return format(places),
    }
    digits.into_iter().map(char::from).collect::<String>() + &exponent
}

/// `number.toString(radix)`: digits until the number is identified, as in V8.
pub fn radix_text(number: f64, radix: u32) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let value = number.abs();
    let base = f64::from(radix);
    let mut whole = value.floor();
    let mut fraction = value - whole;
    // Half the distance to the next double: the precision that the digits need.
    let mut delta = (0.5 * (value.next_up() - value)).max(f64::from_bits(1));
    let mut digits: Vec<u32> = Vec::new();
    while fraction >= delta {
        fraction *= base;
        delta *= base;
        let digit = fraction as u32;
        digits.push(digit);
        fraction -= f64::from(digit);
        let up = fraction > 0.5 || fraction == 0.5 && digit & 1 == 1;
        if up && fraction + delta > 1.0 {
            whole += round_up(&mut digits, radix);
            break;
        }
    }
    let mut reversed = Vec::new();
    while whole / base >= 9_007_199_254_740_992.0 {
        // Digits beyond the precision of a double.
        whole /= base;
        reversed.push(0);
    }
    loop {
        let digit = whole % base;
        reversed.push(digit as u32);
        whole = (whole - digit) / base;
        if whole <= 0.0 {
            break;
        }
    }
    let character = |digit: &u32| char::from_digit(*digit, radix).unwrap_or('0');
    let mut text = String::new();
    if number < 0.0 {
        text.push('-');
    }
    text.extend(reversed.iter().rev().map(character));
    if !digits.is_empty() {
        text.push('.');
        text.extend(digits.iter().map(character));
    }
    text
}

/// Increment the last digit; gives the carry to the integer part.
fn round_up(digits: &mut Vec<u32>, radix: u32) -> f64 {
    while let Some(digit) = digits.pop() {
        if digit + 1 < radix {
            digits.push(digit + 1);
            return 0.0;
        }
    }
    1.0
}
