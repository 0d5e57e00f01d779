//! Exact decimal numbers, and rounding them as ICU does: to a power of ten, or a multiple of one.
//!
//! charged: by the callers, by the width of the numbers

use std::cmp::Ordering;

/// What is formatted.
#[derive(Clone, Debug)]
pub enum Quantity {
    /// Not a number.
    NaN,
    /// Infinite; whether it is negative.
    Infinite(bool),
    /// A number.
    Finite(Decimal),
}

impl Quantity {
    /// Whether it has a minus sign, zero included.
    pub fn is_negative(&self) -> bool {
        match self {
            Self::NaN => false,
            Self::Infinite(negative) => *negative,
            Self::Finite(decimal) => decimal.negative,
        }
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        matches!(self, Self::Finite(decimal) if decimal.is_zero())
    }
}

/// A decimal number: `0.d1d2d3… × 10^point`, with no zeros at either end of its digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// Whether there is a minus sign; zero may have one.
    pub negative: bool,
    digits: Vec<u8>,
    point: i64,
}

/// Rounding modes, in the order of [`MODES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Towards positive infinity.
    Ceil,
    /// Towards negative infinity.
    Floor,
    /// Away from zero.
    Expand,
    /// Towards zero.
    Trunc,
    /// To the nearest, ties towards positive infinity.
    HalfCeil,
    /// To the nearest, ties towards negative infinity.
    HalfFloor,
    /// To the nearest, ties away from zero.
    HalfExpand,
    /// To the nearest, ties towards zero.
    HalfTrunc,
    /// To the nearest, ties to the even one.
    HalfEven,
}

/// The modes by their names in ECMA-402.
pub const MODES: &[(&str, Mode)] = &[
    ("ceil", Mode::Ceil),
    ("floor", Mode::Floor),
    ("expand", Mode::Expand),
    ("trunc", Mode::Trunc),
    ("halfCeil", Mode::HalfCeil),
    ("halfFloor", Mode::HalfFloor),
    ("halfExpand", Mode::HalfExpand),
    ("halfTrunc", Mode::HalfTrunc),
    ("halfEven", Mode::HalfEven),
];

impl Decimal {
    /// The number of a text of digits, with or without a sign, a point and an exponent; `None` where it
    /// is none of these.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, text) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        // A text may be very long: it is searched and checked by many bytes at a time.
        let (mantissa, exponent) = match memchr::memchr2(b'e', b'E', text.as_bytes()) {
            Some(at) => (&text[..at], &text[at + 1..]),
            None => (text, "0"),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let parts = [whole.as_bytes(), fraction.as_bytes()];
        let are_digits = |chunk: &[u8]| chunk.iter().fold(true, |are_digits, byte| are_digits & byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !parts.iter().all(|part| part.chunks(256).all(are_digits)) {
            return None;
        }
        let exponent: i64 = exponent.parse().ok()?;
        let mut digits = Vec::with_capacity(whole.len() + fraction.len());
        for part in parts {
            digits.extend(part.iter().map(|byte| byte - b'0'));
        }
        let point = (whole.len() as i64).saturating_add(exponent);
        Some(Self { negative, digits, point }.normal())
    }

    fn normal(mut self) -> Self {
        let end = self.digits.iter().rposition(|&digit| digit != 0).map_or(0, |last| last + 1);
        self.digits.truncate(end);
        let zeros = self.digits.iter().take_while(|&&digit| digit == 0).count();
        self.digits.drain(..zeros);
        self.point -= zeros as i64;
        if self.digits.is_empty() {
            self.point = 0;
        }
        self
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The power of ten of its first digit; 0 for zero.
    pub fn magnitude(&self) -> i64 {
        if self.is_zero() { 0 } else { self.point - 1 }
    }

    /// Multiply by a power of ten.
    pub fn shift(&mut self, places: i64) {
        if !self.is_zero() {
            self.point = self.point.saturating_add(places);
        }
    }

    /// How many digits are needed to write it out.
    pub fn width(&self) -> usize {
        let before = self.point.unsigned_abs() as usize;
        before.saturating_add(self.digits.len())
    }

    /// Whether it has digits behind the point.
    pub fn has_fraction(&self) -> bool {
        self.digits.len() as i64 > self.point
    }

    /// Round to a multiple of `increment × 10^magnitude`.
    pub fn round(&mut self, magnitude: i64, increment: u32, mode: Mode) {
        let kept = self.point - magnitude;
        if self.is_zero() || increment == 1 && kept >= self.digits.len() as i64 {
            return;
        }
        let keep = usize::try_from(kept).unwrap_or(0);
        let rest = &self.digits[keep.min(self.digits.len())..];
        // How the dropped digits compare with half a unit of the last kept one.
        let half = match rest {
            _ if kept < 0 => Ordering::Less,
            [] => Ordering::Less,
            [5] => Ordering::Equal,
            [first, ..] => first.cmp(&5).then(Ordering::Greater),
        };
        let is_exact = rest.is_empty();
        let mut digits = self.digits[..keep.min(self.digits.len())].to_vec();
        digits.resize(keep, 0);
        let (excess, half) = multiple(&digits, increment, half, is_exact);
        if is_exact && excess == 0 {
            return;
        }
        let is_odd = quotient_is_odd(&digits, increment);
        let up = match mode {
            Mode::Ceil => !self.negative,
            Mode::Floor => self.negative,
            Mode::Expand => true,
            Mode::Trunc => false,
            Mode::HalfCeil => half == Ordering::Greater || half == Ordering::Equal && !self.negative,
            Mode::HalfFloor => half == Ordering::Greater || half == Ordering::Equal && self.negative,
            Mode::HalfExpand => half != Ordering::Less,
            Mode::HalfTrunc => half == Ordering::Greater,
            Mode::HalfEven => half == Ordering::Greater || half == Ordering::Equal && is_odd,
        };
        subtract(&mut digits, excess);
        if up {
            add(&mut digits, increment);
        }
        let point = magnitude + digits.len() as i64;
        *self = Self { negative: self.negative, digits, point }.normal();
    }

    /// The digits before and behind the point, with at least so many of each.
    pub fn parts(&self, whole: usize, fraction: usize) -> (String, String) {
        let digit = |index: i64| {
            let digit = usize::try_from(index).ok().and_then(|index| self.digits.get(index));
            char::from(b'0' + digit.copied().unwrap_or(0))
        };
        let before = self.point.max(whole as i64);
        let behind = (self.digits.len() as i64 - self.point).max(fraction as i64);
        let before = (self.point - before..self.point).map(digit).collect();
        let behind = (self.point..self.point + behind).map(digit).collect();
        (before, behind)
    }
}

/// What digits have beyond a multiple of the increment, and how that, with what was dropped, compares
/// with half of the increment.
fn multiple(digits: &[u8], increment: u32, half: Ordering, is_exact: bool) -> (u32, Ordering) {
    let excess = digits.iter().fold(0, |rest, &digit| (rest * 10 + u32::from(digit)) % increment);
    let half = match (excess * 2).cmp(&increment) {
        _ if excess * 2 + 1 == increment => half,
        Ordering::Equal if is_exact => Ordering::Equal,
        Ordering::Equal => Ordering::Greater,
        other => other,
    };
    (excess, half)
}

/// Whether digits divided by the increment are odd.
fn quotient_is_odd(digits: &[u8], increment: u32) -> bool {
    let rest = digits.iter().fold(0, |rest, &digit| (rest * 10 + u32::from(digit)) % (increment * 2));
    rest >= increment
}

fn subtract(digits: &mut [u8], mut amount: u32) {
    for digit in digits.iter_mut().rev() {
        let part = (amount % 10) as u8;
        amount /= 10;
        if *digit < part {
            *digit += 10;
            amount += 1;
        }
        *digit -= part;
    }
}

fn add(digits: &mut Vec<u8>, mut amount: u32) {
    for digit in digits.iter_mut().rev() {
        amount += u32::from(*digit);
        *digit = (amount % 10) as u8;
        amount /= 10;
    }
    while amount > 0 {
        digits.insert(0, (amount % 10) as u8);
        amount /= 10;
    }
}
