//! Numbers and text: the conversions of ECMAScript 7.1 that need no run.

use num_bigint::BigInt;
use num_traits::ToPrimitive as _;

/// A double as `Number.prototype.toString` writes it in base ten.
pub fn number_text(number: f64) -> String {
    NumberText::default().format(number).to_owned()
}

/// Room for the text of a number.
#[derive(Default)]
pub struct NumberText {
    integer: Option<itoa::Buffer>,
    other: Option<ryu_js::Buffer>,
}

impl NumberText {
    /// The text of a number.
    #[inline]
    pub fn format(&mut self, number: f64) -> &str {
        let integer = number as i64;
        if integer as f64 == number && number.abs() < 1e15 {
            return self.integer.insert(itoa::Buffer::new()).format(integer);
        }
        self.other.insert(ryu_js::Buffer::new()).format(number)
    }
}

/// The number of a text (ECMAScript 7.1.4.1.1), or NaN.
pub fn text_number(text: &str) -> f64 {
    let text = text.trim_matches(is_space);
    let radix = |radix: u32, is_digit: fn(u8) -> bool| {
        let digits = &text[2..];
        let valid = !digits.is_empty() && digits.bytes().all(is_digit);
        if valid { parse_radix(digits, radix) } else { f64::NAN }
    };
    match text.as_bytes() {
        [] => 0.0,
        [b'0', b'x' | b'X', ..] => radix(16, |digit| digit.is_ascii_hexdigit()),
        [b'0', b'o' | b'O', ..] => radix(8, |digit| matches!(digit, b'0'..=b'7')),
        [b'0', b'b' | b'B', ..] => radix(2, |digit| matches!(digit, b'0' | b'1')),
        _ => match text {
            "Infinity" | "+Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            // Rust also reads "inf", "nan" and the like.
            _ if text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) => {
                text.parse().unwrap_or(f64::NAN)
            }
            _ => f64::NAN,
        },
    }
}

/// The number of a text of a few digits.
#[inline]
pub fn small_integer(text: &[u8]) -> Option<f64> {
    let is_small = (1..=15).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    is_small.then(|| text.iter().fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0')) as f64)
}

/// The value of digits in a radix, rounded once.
pub fn parse_radix(digits: &str, radix: u32) -> f64 {
    if digits.len() <= 10 {
        return u64::from_str_radix(digits, radix).map_or(f64::NAN, |number| number as f64);
    }
    match radix {
        2 | 4 | 8 | 16 | 32 => binary_number(digits, radix),
        _ => BigInt::parse_bytes(digits.as_bytes(), radix).and_then(|number| number.to_f64()).unwrap_or(f64::NAN),
    }
}

/// The same for a radix that is a power of two, with any number of digits: the first 64 significant bits and whether
/// any later bit is set decide the value.
fn binary_number(digits: &str, radix: u32) -> f64 {
    let bits = radix.trailing_zeros();
    let (mut mantissa, mut dropped, mut sticky) = (0_u64, 0_i32, false);
    for digit in digits.bytes().filter_map(|digit| char::from(digit).to_digit(radix)) {
        if mantissa.leading_zeros() >= bits {
            mantissa = mantissa << bits | u64::from(digit);
            continue;
        }
        for bit in (0..bits).rev().map(|shift| u64::from(digit >> shift & 1)) {
            if mantissa >> 63 == 0 {
                mantissa = mantissa << 1 | bit;
            } else {
                dropped += 1;
                sticky |= bit == 1;
            }
        }
        if dropped > 960 {
            return f64::INFINITY;
        }
    }
    (mantissa | u64::from(sticky)) as f64 * 2_f64.powi(dropped)
}

/// The longest prefix of WTF-8 that is UTF-8: up to the first lone surrogate.
pub fn leading_text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_else(|error| {
        std::str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default()
    })
}

/// White space and line ends of the language, which `trim` removes.
pub fn is_space(c: char) -> bool {
    matches!(c, '\u{9}'..='\u{d}' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}'
        | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{feff}')
}

/// The low 32 bits of a number (ECMAScript 7.1.6).
#[inline(always)]
pub fn to_int32(number: f64) -> i32 {
    near_int32(number).unwrap_or_else(|| far_int32(number))
}

/// The low 32 bits of a number that is an integer of up to 51 bits.
#[inline(always)]
pub fn near_int32(number: f64) -> Option<i32> {
    // The sum of the constant and such an integer has the integer in its low bits.
    let sum = number + IN_LOW_BITS;
    let int = sum.to_bits() as i32;
    let is_near = f64::from(int) == number || (sum - IN_LOW_BITS == number && number.abs() <= 2_251_799_813_685_248.0);
    is_near.then_some(int)
}

/// 1.5·2⁵²: added to a small integer, it leaves that in the low bits of the sum. That is cheaper than
/// a cast: those of Rust saturate.
const IN_LOW_BITS: f64 = 6_755_399_441_055_744.0;

/// The 32-bit integer that a number is; −0 is 0.
#[inline(always)]
pub fn as_int32(number: f64) -> Option<i32> {
    let int = (number + IN_LOW_BITS).to_bits() as i32;
    (f64::from(int) == number).then_some(int)
}

#[inline(never)]
fn far_int32(number: f64) -> i32 {
    if number.abs() < 9_223_372_036_854_775_808.0 {
        return number as i64 as i32;
    }
    if !number.is_finite() {
        return 0;
    }
    // The remainder is exact and fits.
    (number % 4_294_967_296.0) as i64 as i32
}
