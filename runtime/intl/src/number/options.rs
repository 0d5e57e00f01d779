//! The options of a number format: plain data, with the words of ECMA-402 for them.
//!
//! bounded: by a table

use super::decimal::Mode;

/// The resolved options.
#[derive(Clone, Debug)]
pub struct Options {
    /// The resolved tag.
    pub locale: String,
    /// The numbering system.
    pub numbering: String,
    /// How a number is written.
    pub style: Style,
    /// The code of the currency; empty without one.
    pub currency: String,
    /// How that is written.
    pub currency_display: CurrencyDisplay,
    /// Whether amounts below zero have the form of accounting.
    pub accounting: bool,
    /// The unit; empty without one.
    pub unit: String,
    /// How that is written: short, narrow, long.
    pub unit_display: usize,
    /// How large and small numbers are written.
    pub notation: Notation,
    /// Whether compact numbers are long.
    pub compact_long: bool,
    /// When digits are grouped.
    pub grouping: Grouping,
    /// When a sign is written.
    pub sign_display: SignDisplay,
    /// The least number of digits before the point.
    pub min_integer: usize,
    /// The least and most digits.
    pub rounding: Rounding,
    /// Where what is between two results is rounded to.
    pub mode: Mode,
    /// Of what the last digits are a multiple.
    pub increment: u32,
    /// Whether integers have no zeros behind the point.
    pub strip_zeros: bool,
}

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `1`
    Decimal,
    /// `1%`
    Percent,
    /// `$1`
    Currency,
    /// `1 km`
    Unit,
}

/// How a currency is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurrencyDisplay {
    /// `USD 1`
    Code,
    /// `US$1`
    Symbol,
    /// `$1`
    Narrow,
    /// `1 US dollar`
    Name,
}

/// How large and small numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// `1000`
    Standard,
    /// `1E3`
    Scientific,
    /// `1E3`, with exponents that are multiples of three
    Engineering,
    /// `1K`
    Compact,
}

/// When digits are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Never.
    Never,
    /// From two digits before the first group on.
    Min2,
    /// As the locale has it.
    Auto,
    /// Always.
    Always,
}

/// When a sign is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignDisplay {
    /// If the number is negative.
    Auto,
    /// Never.
    Never,
    /// Always.
    Always,
    /// But for zero.
    ExceptZero,
    /// If the number is negative, and not zero.
    Negative,
}

/// The minimum and maximum numbers of digits.
#[derive(Clone, Copy, Debug)]
pub enum Rounding {
    /// Digits behind the point.
    Fraction { min: usize, max: usize },
    /// Digits from the first one that is not zero on.
    Significant { min: usize, max: usize },
    /// Both, of which the one with more or fewer digits counts.
    Both { fraction: (usize, usize), significant: (usize, usize), more: bool },
}

/// The values of the option `style`.
pub const STYLES: &[(&str, Style)] =
    &[("decimal", Style::Decimal), ("percent", Style::Percent), ("currency", Style::Currency), ("unit", Style::Unit)];
/// The values of the option `currencyDisplay`.
pub const CURRENCY_DISPLAYS: &[(&str, CurrencyDisplay)] = &[
    ("code", CurrencyDisplay::Code),
    ("symbol", CurrencyDisplay::Symbol),
    ("narrowSymbol", CurrencyDisplay::Narrow),
    ("name", CurrencyDisplay::Name),
];
/// The values of the option `currencySign`: whether it is the one of accounting.
pub const CURRENCY_SIGNS: &[(&str, bool)] = &[("standard", false), ("accounting", true)];
/// The values of the option `unitDisplay`, by number.
pub const UNIT_DISPLAYS: &[(&str, usize)] = &[("short", 0), ("narrow", 1), ("long", 2)];
/// The values of the option `notation`.
pub const NOTATIONS: &[(&str, Notation)] = &[
    ("standard", Notation::Standard),
    ("scientific", Notation::Scientific),
    ("engineering", Notation::Engineering),
    ("compact", Notation::Compact),
];
/// The values of the option `compactDisplay`: whether it is long.
pub const COMPACT_DISPLAYS: &[(&str, bool)] = &[("short", false), ("long", true)];
/// The values of the option `signDisplay`.
pub const SIGN_DISPLAYS: &[(&str, SignDisplay)] = &[
    ("auto", SignDisplay::Auto),
    ("never", SignDisplay::Never),
    ("always", SignDisplay::Always),
    ("exceptZero", SignDisplay::ExceptZero),
    ("negative", SignDisplay::Negative),
];
/// The values of the option `roundingPriority`: whether more digits count.
pub const PRIORITIES: &[(&str, Option<bool>)] =
    &[("auto", None), ("morePrecision", Some(true)), ("lessPrecision", Some(false))];
/// The values of the option `trailingZeroDisplay`: whether integers have no zeros behind the point.
pub const ZERO_DISPLAYS: &[(&str, bool)] = &[("auto", false), ("stripIfInteger", true)];
/// The values of the option `roundingIncrement`.
pub const INCREMENTS: &[u32] = &[1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000];

impl Options {
    /// The default options.
    pub fn plain(locale: String, numbering: String) -> Self {
        Self {
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
        }
    }

    /// The options about digits, as `resolvedOptions` gives them.
    pub fn digit_options(&self) -> Vec<(&'static str, usize)> {
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
}
