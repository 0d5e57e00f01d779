//! From a number and the options of a formatter to typed parts, by ICU's patterns for English.
//!
//! charged: by the callers, see `quantity` and `room` in the module above

use super::decimal::{Decimal, Quantity};
use super::units;
use super::{CurrencyDisplay, Grouping, Notation, NumberFormat, Rounding, SignDisplay, Style};
use std::borrow::Cow;

/// A piece of a formatted number: its type in `formatToParts`, and its text.
pub type Part = (&'static str, Cow<'static, str>);

/// A part of a range, and of which of its numbers it is.
pub type Sourced = (Part, &'static str);

/// A formatted number: the digits and their affixes.
#[derive(Clone, Debug, Default)]
pub struct Formatted {
    /// Sign and currency before the number.
    pub before: Vec<Part>,
    /// Digits, with the exponent.
    pub number: Vec<Part>,
    /// The power of ten as a word or a letter.
    pub compact: Vec<Part>,
    /// Percent sign or closing bracket.
    pub behind: Vec<Part>,
    /// The unit, or the currency as a name.
    pub unit: Vec<Part>,
    /// The rounded quantity.
    pub rounded: Option<Decimal>,
}

impl Formatted {
    /// All parts in order.
    pub fn into_parts(mut self) -> Vec<Part> {
        self.before.append(&mut self.number);
        for mut more in [self.compact, self.behind, self.unit] {
            self.before.append(&mut more);
        }
        self.before
    }
}

/// Names of powers of a thousand, short and long.
const COMPACT: &[(&str, &str)] = &[("K", "thousand"), ("M", "million"), ("B", "billion"), ("T", "trillion")];

impl NumberFormat {
    /// Format a quantity.
    pub fn format(&self, quantity: &Quantity) -> Formatted {
        let mut out = Formatted::default();
        let (mut is_one, mut compacted) = (false, false);
        let mut shown = quantity.clone();
        match &mut shown {
            Quantity::NaN => out.number.push(("nan", "NaN".into())),
            Quantity::Infinite(_) => out.number.push(("infinity", "∞".into())),
            Quantity::Finite(decimal) => {
                if self.style == Style::Percent {
                    decimal.shift(2);
                }
                let exponent = self.scale(decimal);
                let fraction = self.round(decimal);
                is_one = exponent == 0 && fraction == 0 && decimal.parts(1, 0) == ("1".to_owned(), String::new());
                self.digits(decimal, fraction, &mut out.number);
                match self.notation {
                    Notation::Standard => {}
                    Notation::Scientific | Notation::Engineering => exponent_parts(exponent, &mut out.number),
                    Notation::Compact => {
                        compacted = exponent > 0;
                        self.compact_parts(exponent, &mut out.compact);
                    }
                }
                out.rounded = Some(decimal.clone());
            }
        }
        let sign = self.sign(&shown);
        self.wrap(sign, is_one, compacted, &mut out);
        out
    }

    /// Divide by the power of ten of the notation; gives its exponent.
    fn scale(&self, decimal: &mut Decimal) -> i64 {
        if self.notation == Notation::Standard || decimal.is_zero() {
            return 0;
        }
        let magnitude = decimal.magnitude();
        let first = self.exponent(magnitude);
        decimal.shift(-first);
        let mut rounded = decimal.clone();
        self.round(&mut rounded);
        let second = self.exponent(magnitude + 1);
        if rounded.is_zero() || rounded.magnitude() == magnitude - first || first == second {
            return first;
        }
        decimal.shift(first - second);
        second
    }

    /// The exponent of numbers of a magnitude.
    fn exponent(&self, magnitude: i64) -> i64 {
        match self.notation {
            Notation::Standard => 0,
            Notation::Scientific => magnitude,
            Notation::Engineering => magnitude.div_euclid(3) * 3,
            Notation::Compact => (magnitude.div_euclid(3) * 3).clamp(0, 12),
        }
    }

    /// Round; gives the minimum number of fraction digits.
    fn round(&self, decimal: &mut Decimal) -> usize {
        let significant = |decimal: &Decimal, digits: usize| decimal.magnitude() - digits as i64 + 1;
        let fraction = match self.rounding {
            Rounding::Fraction { min, max } => {
                decimal.round(-(max as i64), self.increment, self.mode);
                min as i64
            }
            Rounding::Significant { min, max } => {
                decimal.round(significant(decimal, max), 1, self.mode);
                -significant(decimal, min)
            }
            Rounding::Both { fraction: (min, max), significant: (least, most), more } => {
                let by_fraction = -(max as i64);
                let mut by_significant = significant(decimal, most);
                let magnitude = decimal.magnitude();
                let digit = if more { by_fraction.min(by_significant) } else { by_fraction.max(by_significant) };
                decimal.round(digit, 1, self.mode);
                if !decimal.is_zero() && decimal.magnitude() != magnitude && by_fraction == by_significant {
                    by_significant += 1;
                }
                if more == (by_significant <= by_fraction) { -significant(decimal, least) } else { min as i64 }
            }
        };
        if self.strip_zeros && !decimal.has_fraction() {
            return 0;
        }
        let shown = usize::try_from(fraction).unwrap_or(0);
        shown.max(decimal.parts(0, 0).1.len())
    }

    /// The digits of a number, in groups.
    fn digits(&self, decimal: &Decimal, fraction: usize, out: &mut Vec<Part>) {
        let (whole, fraction) = decimal.parts(self.min_integer, fraction);
        let least = match self.grouping {
            Grouping::Never => usize::MAX,
            Grouping::Auto if self.notation == Notation::Compact => 5,
            Grouping::Auto | Grouping::Always => 4,
            Grouping::Min2 => 5,
        };
        if whole.len() < least {
            out.push(("integer", whole.into()));
        } else {
            let first = (whole.len() - 1) % 3 + 1;
            out.push(("integer", whole[..first].to_owned().into()));
            for start in (first..whole.len()).step_by(3) {
                out.push(("group", ",".into()));
                out.push(("integer", whole[start..start + 3].to_owned().into()));
            }
        }
        if !fraction.is_empty() {
            out.push(("decimal", ".".into()));
            out.push(("fraction", fraction.into()));
        }
    }

    fn compact_parts(&self, exponent: i64, out: &mut Vec<Part>) {
        let Some(&(short, long)) = usize::try_from(exponent / 3 - 1).ok().and_then(|index| COMPACT.get(index)) else {
            return;
        };
        let is_symbol = self.style == Style::Currency && self.currency_display != CurrencyDisplay::Name;
        if self.compact_long && !is_symbol {
            out.push(("literal", " ".into()));
            out.push(("compact", long.into()));
        } else {
            out.push(("compact", short.into()));
        }
    }

    /// The sign that is shown: `Some(true)` is minus.
    fn sign(&self, shown: &Quantity) -> Option<bool> {
        let negative = shown.is_negative();
        let is_zero = shown.is_zero() || matches!(shown, Quantity::NaN);
        match self.sign_display {
            SignDisplay::Auto => negative.then_some(true),
            SignDisplay::Always => Some(negative),
            SignDisplay::Never => None,
            SignDisplay::ExceptZero => (!is_zero).then_some(negative),
            SignDisplay::Negative => (negative && !is_zero).then_some(true),
        }
    }

    /// The affixes of the number.
    fn wrap(&self, sign: Option<bool>, is_one: bool, compacted: bool, out: &mut Formatted) {
        let plural = usize::from(!is_one);
        let is_symbol = self.style == Style::Currency && self.currency_display != CurrencyDisplay::Name;
        let brackets = is_symbol && self.accounting && sign == Some(true) && !compacted;
        match sign {
            _ if brackets => out.before.push(("literal", "(".into())),
            Some(true) => out.before.push(("minusSign", "-".into())),
            Some(false) => out.before.push(("plusSign", "+".into())),
            None => {}
        }
        match self.style {
            Style::Decimal => {}
            Style::Percent if self.notation == Notation::Compact => out.unit.push(("unit", "%".into())),
            Style::Percent => out.behind.push(("percentSign", "%".into())),
            Style::Currency if is_symbol => {
                let symbol = self.currency_symbol();
                // A space keeps letters and digits apart.
                let is_word = symbol.chars().last().is_some_and(|last| last.is_alphabetic() || last == '.');
                out.before.push(("currency", symbol.into()));
                if is_word && matches!(out.number.first(), Some(("integer", _))) {
                    out.before.push(("literal", "\u{a0}".into()));
                }
            }
            Style::Currency => {
                out.unit.push(("literal", " ".into()));
                out.unit.push(("currency", self.currency_name(plural).into()));
            }
            // ICU takes it for a percent sign.
            Style::Unit if self.unit == "percent" && self.unit_display < 2 => out.behind.push(("unit", "%".into())),
            Style::Unit => {
                let in_full = self.notation == Notation::Compact;
                unit_parts(&self.unit, self.unit_display, plural, in_full, &mut out.unit);
            }
        }
        if brackets {
            out.behind.push(("literal", ")".into()));
        }
    }
}

fn exponent_parts(exponent: i64, out: &mut Vec<Part>) {
    out.push(("exponentSeparator", "E".into()));
    if exponent < 0 {
        out.push(("exponentMinusSign", "-".into()));
    }
    out.push(("exponentInteger", exponent.unsigned_abs().to_string().into()));
}

/// A unit after a number; `plural` is 0 for one and 1 for any other number.
pub fn unit_parts(unit: &str, display: usize, plural: usize, in_full: bool, out: &mut Vec<Part>) {
    let text = match units::find(unit) {
        Some(texts) => texts[display][plural].to_owned(),
        None => {
            let (first, second) = unit.split_once("-per-").unwrap_or((unit, ""));
            let first_text = units::find(first).map_or("", |texts| texts[display][plural]);
            let per = units::per(second).map_or("", |texts| texts[display]);
            // ICU writes nothing but the sign here, except where the number is compact or a range.
            if first == "percent" && display < 2 && !in_full {
                first_text.to_owned()
            } else {
                format!("{first_text}{per}")
            }
        }
    };
    let trimmed = text.trim_start();
    if trimmed.len() < text.len() {
        out.push(("literal", " ".into()));
    }
    out.push(("unit", trimmed.to_owned().into()));
}

/// Two numbers with a dash; common affixes are written once where ICU does so.
pub fn range(format: &NumberFormat, start: &Quantity, end: &Quantity) -> Vec<Sourced> {
    let (first, second) = (format.format(start), format.format(end));
    let text = |formatted: &Formatted| formatted.clone().into_parts();
    if start.is_negative() == end.is_negative() && text(&first) == text(&second) {
        let mut parts = first.into_parts();
        // ICU leaves it out in a pattern with brackets.
        if !matches!(parts.first(), Some(("literal", _))) {
            parts.insert(0, ("approximatelySign", "~".into()));
        }
        return parts.into_iter().map(|part| (part, "shared")).collect();
    }
    // Sign, currency and power of ten are written once where they are the same and more than one character.
    let (around, other) = (around(&first), around(&second));
    let length: usize = around.iter().map(|(_, text)| text.chars().count()).sum();
    let once = around == other && length > 1;
    let dash = if !once && length > 0 || is_scientific(&first) { " – " } else { "–" };
    let mut out = Vec::new();
    let mut push = |parts: Vec<Part>, source| out.extend(parts.into_iter().map(|part| (part, source)));
    push(first.before, if once { "shared" } else { "startRange" });
    push(first.number, "startRange");
    if !once {
        push([first.compact, first.behind].concat(), "startRange");
    }
    push(vec![("literal", dash.into())], "shared");
    if !once {
        push(second.before, "endRange");
    }
    push(second.number, "endRange");
    push([second.compact, second.behind].concat(), if once { "shared" } else { "endRange" });
    let unit = match (second.unit.len(), format.style) {
        (1.., Style::Unit) => {
            let mut unit = Vec::new();
            unit_parts(&format.unit, format.unit_display, 1, true, &mut unit);
            unit
        }
        (1.., Style::Currency) => {
            vec![("literal", " ".into()), ("currency", format.currency_name(1).into())]
        }
        _ => second.unit,
    };
    push(unit, "shared");
    out
}

/// The affixes of a number, without the space between letters and digits.
fn around(formatted: &Formatted) -> Vec<Part> {
    let parts = [&formatted.before[..], &formatted.compact, &formatted.behind].concat();
    parts.into_iter().filter(|(_, text)| text != "\u{a0}").collect()
}

fn is_scientific(formatted: &Formatted) -> bool {
    formatted.number.iter().any(|(kind, _)| *kind == "exponentInteger")
}
