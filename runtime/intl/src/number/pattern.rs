//! From a number and the options of a formatter to typed parts: the digits, the modifiers around them, and
//! the trimming of spaces.
//!
//! charged: by the callers, by the width of the numbers

use super::decimal::{Decimal, Quantity};
use super::symbols::{Affixes, Data, Pattern, Sign};
use super::{Grouping, Notation, NumberFormat, Rounding, SignDisplay, Style};
use crate::pack::FIELD;
use crate::plurals::{self, Operands};
use std::borrow::Cow;

/// A piece of a formatted number: its type in `formatToParts`, and its text.
pub type Part = (&'static str, Cow<'static, str>);

/// A part of a range, and of which of its numbers it is.
pub type Sourced = (Part, &'static str);

/// The type of text that belongs to no field.
pub const LITERAL: &str = "literal";

/// What stands around a number: sign, percent sign, currency, compact word.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Affixed {
    pub prefix: Vec<Part>,
    pub suffix: Vec<Part>,
}

impl Affixed {
    /// How many characters it has.
    pub fn length(&self) -> usize {
        self.prefix.iter().chain(&self.suffix).map(|(_, text)| text.chars().count()).sum()
    }

    /// Whether a space separates a currency before a number from its first digit.
    fn is_spaced_before(&self, number: &[Part]) -> bool {
        let is_digit = number.first().and_then(|(_, text)| text.chars().next()).is_some_and(is_digit);
        let currency = self.prefix.last().filter(|(kind, _)| *kind == "currency");
        is_digit && currency.and_then(|(_, text)| text.chars().next_back()).is_some_and(is_spaced)
    }

    /// Whether a space separates a currency behind a number from its last digit.
    fn is_spaced_behind(&self, number: &[Part]) -> bool {
        let is_digit = number.last().and_then(|(_, text)| text.chars().next_back()).is_some_and(is_digit);
        let currency = self.suffix.first().filter(|(kind, _)| *kind == "currency");
        is_digit && currency.and_then(|(_, text)| text.chars().next()).is_some_and(is_spaced)
    }

    /// Put it around a number, with a space between a currency of letters and a digit.
    pub fn around(mut self, number: Vec<Part>) -> Vec<Part> {
        let space = || (LITERAL, Cow::Borrowed("\u{a0}"));
        let (before, behind) = (self.is_spaced_before(&number), self.is_spaced_behind(&number));
        self.prefix.extend(before.then(space));
        self.prefix.extend(number);
        self.prefix.extend(behind.then(space));
        self.prefix.append(&mut self.suffix);
        self.prefix
    }
}

/// Whether a character is a decimal digit; zero of the Chinese ones is none.
fn is_digit(letter: char) -> bool {
    letter.is_numeric() && letter != '〇'
}

/// Whether a space separates a character of a currency from a digit: neither a symbol nor a space.
fn is_spaced(letter: char) -> bool {
    !matches!(letter, '$' | '+' | '<'..='>' | '^' | '`' | '|' | '~' | '\u{a2}'..='\u{a9}' | '\u{ac}' | '\u{ae}'..='\u{b1}' | '\u{b4}'
        | '\u{58f}' | '\u{60b}' | '\u{7fe}' | '\u{7ff}' | '\u{9f2}' | '\u{9f3}' | '\u{9fb}' | '\u{af1}' | '\u{bf9}' | '\u{e3f}'
        | '\u{17db}' | '\u{20a0}'..='\u{20cf}' | '\u{a838}' | '\u{fdfc}' | '\u{fe69}' | '\u{ff04}' | '\u{ffe0}' | '\u{ffe1}'
        | '\u{ffe5}' | '\u{ffe6}')
        && !letter.is_whitespace()
}

/// A formatted number: the digits, and what is around them.
#[derive(Clone, Debug, Default)]
pub struct Formatted {
    /// Digits, with the exponent.
    pub number: Vec<Part>,
    /// What is around the digits.
    pub affixed: Affixed,
    /// The letter of the plural category, which chooses the unit.
    pub plural: char,
}

impl NumberFormat {
    /// All parts of a formatted quantity.
    pub fn parts(&self, quantity: &Quantity) -> Vec<Part> {
        let formatted = self.format(quantity, false);
        self.whole(formatted)
    }

    /// All parts in order.
    pub fn whole(&self, formatted: Formatted) -> Vec<Part> {
        let parts = formatted.affixed.around(formatted.number);
        trimmed(self.in_unit(parts, formatted.plural))
    }

    /// Put the unit or the name of the currency around parts.
    fn in_unit(&self, parts: Vec<Part>, plural: char) -> Vec<Part> {
        let Some(outer) = &self.data.outer else { return parts };
        if !outer.form(plural).contains("{0}") {
            // Some forms stand for the number too.
            return [(outer.kind, outer.form(plural).to_owned().into())].into();
        }
        let (before, behind) = self.unit_affixes(plural);
        before.into_iter().chain(parts).chain(behind).collect()
    }

    /// What the unit or the name of the currency is before and behind a number.
    fn unit_affixes(&self, plural: char) -> (Option<Part>, Option<Part>) {
        let Some(outer) = &self.data.outer else { return (None, None) };
        let (before, behind) = outer.form(plural).split_once("{0}").unwrap_or_default();
        let part = |text: &str| (!text.is_empty()).then(|| (outer.kind, Cow::Owned(text.to_owned())));
        (part(before), part(behind))
    }

    /// Format a quantity; `approximately` shows a sign for that.
    pub fn format(&self, quantity: &Quantity, approximately: bool) -> Formatted {
        let data = &*self.data;
        let mut out = Formatted { plural: plurals::OTHER, ..Formatted::default() };
        let mut shown = quantity.clone();
        let mut compact = None;
        match &mut shown {
            Quantity::NaN => out.number.push(("nan", data.symbols.nan.into())),
            Quantity::Infinite(_) => out.number.push(("infinity", data.symbols.infinity.into())),
            Quantity::Finite(decimal) => {
                if self.options.style == Style::Percent {
                    decimal.shift(2);
                }
                // The plural category of compact numbers is that of the number in full, as in ICU.
                if data.outer.is_some() && self.options.notation == Notation::Compact {
                    let mut full = decimal.clone();
                    let fraction = self.round(&mut full);
                    out.plural = self.plural(&full, fraction, 0, false);
                }
                let exponent = self.scale(decimal);
                let fraction = self.round(decimal);
                self.digits(decimal, fraction, &mut out.number);
                match self.options.notation {
                    Notation::Standard => {}
                    Notation::Scientific | Notation::Engineering => self.exponent_parts(exponent, &mut out.number),
                    Notation::Compact => compact = self.compact_pattern(decimal, fraction, exponent),
                }
                if data.outer.is_some() && self.options.notation != Notation::Compact {
                    out.plural = self.plural(decimal, fraction, exponent, false);
                }
            }
        }
        let sign = self.sign(&shown);
        out.affixed = match compact {
            Some(pattern) => {
                let pattern = Pattern::parse(pattern);
                // Some stand for the number too, such as "mille".
                if pattern.whole == 0 {
                    out.number.clear();
                }
                self.affixed(pattern.affixes(sign, approximately), "compact")
            }
            None => self.affixed(data.pattern.affixes(sign, approximately), LITERAL),
        };
        out
    }

    /// The digits before and behind the point, as plural rules see them, and the category.
    pub fn plural(&self, decimal: &Decimal, fraction: usize, exponent: i64, is_ordinal: bool) -> char {
        let mut decimal = decimal.clone();
        decimal.shift(exponent);
        let fraction = usize::try_from(fraction as i64 - exponent).unwrap_or(0);
        let (whole, fraction) = decimal.parts(1, fraction);
        let operands = Operands::new(&whole, &fraction, exponent);
        plurals::category(self.data.locale, is_ordinal, &operands)
    }

    /// Divide by the power of ten of the notation; gives its exponent.
    pub fn scale(&self, decimal: &mut Decimal) -> i64 {
        if self.options.notation == Notation::Standard || decimal.is_zero() {
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
        match self.options.notation {
            Notation::Standard => 0,
            Notation::Scientific => magnitude,
            Notation::Engineering => magnitude.div_euclid(3) * 3,
            Notation::Compact => self.compact_row(magnitude).map_or(0, |(power, mut forms)| {
                let zeros = |pattern: &'static str| if pattern == "0" { 0 } else { Pattern::parse(pattern).whole };
                let zeros = forms.find_map(|(_, pattern)| Some(zeros(pattern)).filter(|&zeros| zeros > 0)).unwrap_or(0);
                if zeros == 0 { 0 } else { power - zeros as i64 + 1 }
            }),
        }
    }

    /// The patterns for numbers of a magnitude, with the magnitude they are for.
    fn compact_row(&self, magnitude: i64) -> Option<(i64, impl Iterator<Item = (char, &'static str)>)> {
        let rows =
            || self.data.compact.split(FIELD).filter_map(|row| Some((i64::from(*row.as_bytes().first()?) - 64, row)));
        let most = rows().map(|(power, _)| power).max()?;
        let power = magnitude.min(most);
        let forms = move |(one, row): (i64, &'static str)| {
            (one == power).then_some((char::from(*row.as_bytes().get(1)?), row.get(2..)?))
        };
        let mut all = rows().filter_map(forms).peekable();
        all.peek()?;
        Some((power, all))
    }

    /// The pattern of a rounded number that has been divided; `None` where it is written as without the notation.
    fn compact_pattern(&self, decimal: &Decimal, fraction: usize, exponent: i64) -> Option<&'static str> {
        let magnitude = if decimal.is_zero() { 0 } else { decimal.magnitude() + exponent };
        let (_, forms) = self.compact_row(magnitude)?;
        let forms: Vec<_> = forms.collect();
        let find = |letter: char| forms.iter().find(|(one, _)| *one == letter).map(|&(_, pattern)| pattern);
        let (whole, behind) = decimal.parts(1, fraction);
        let exact = match whole.as_str() {
            "0" | "1" if !decimal.has_fraction() => find(if whole == "0" { '0' } else { '1' }),
            _ => None,
        };
        let by_plural = || {
            let letter = plurals::category(self.data.locale, false, &Operands::new(&whole, &behind, 0));
            find(letter).or_else(|| find(plurals::OTHER))
        };
        exact.or_else(by_plural).filter(|pattern| *pattern != "0")
    }

    /// Round; gives the number of fraction digits that are shown.
    pub fn round(&self, decimal: &mut Decimal) -> usize {
        let significant = |decimal: &Decimal, digits: usize| decimal.magnitude() - digits as i64 + 1;
        let fraction = match self.options.rounding {
            Rounding::Fraction { min, max } => {
                decimal.round(-(max as i64), self.options.increment, self.options.mode);
                min as i64
            }
            Rounding::Significant { min, max } => {
                decimal.round(significant(decimal, max), 1, self.options.mode);
                -significant(decimal, min)
            }
            Rounding::Both { fraction: (min, max), significant: (least, most), more } => {
                let by_fraction = -(max as i64);
                let mut by_significant = significant(decimal, most);
                let magnitude = decimal.magnitude();
                let digit = if more { by_fraction.min(by_significant) } else { by_fraction.max(by_significant) };
                decimal.round(digit, 1, self.options.mode);
                if !decimal.is_zero() && decimal.magnitude() != magnitude && by_fraction == by_significant {
                    by_significant += 1;
                }
                if more == (by_significant <= by_fraction) { -significant(decimal, least) } else { min as i64 }
            }
        };
        if self.options.strip_zeros && !decimal.has_fraction() {
            return 0;
        }
        let shown = usize::try_from(fraction).unwrap_or(0);
        shown.max(decimal.parts(0, 0).1.len())
    }

    /// The digits of a number, in groups.
    fn digits(&self, decimal: &Decimal, fraction: usize, out: &mut Vec<Part>) {
        let symbols = &self.data.symbols;
        let (whole, fraction) = decimal.parts(self.options.min_integer, fraction);
        let (mut first, mut second) = self.data.pattern.groups;
        let least = match self.options.grouping {
            Grouping::Never => {
                first = 0;
                1
            }
            Grouping::Auto if self.options.notation != Notation::Compact => self.data.least_group,
            Grouping::Auto | Grouping::Min2 => self.data.least_group.max(2),
            Grouping::Always => 1,
        };
        if first == 0 && self.options.grouping == Grouping::Always {
            first = 3;
        }
        second = if second == 0 { first } else { second };
        let mut rest = whole.as_str();
        if first > 0 && whole.len() >= first + least {
            let mut at = whole.len() - first;
            let mut starts = Vec::new();
            while at > 0 {
                starts.push(at);
                at = at.saturating_sub(second);
            }
            let mut from = 0;
            for &start in starts.iter().rev() {
                out.push(("integer", symbols.localized(whole[from..start].to_owned()).into()));
                out.push(("group", symbols.group.into()));
                from = start;
            }
            rest = &whole[from..];
        }
        if !rest.is_empty() {
            out.push(("integer", symbols.localized(rest.to_owned()).into()));
        }
        if !fraction.is_empty() {
            out.push(("decimal", symbols.decimal.into()));
            out.push(("fraction", symbols.localized(fraction).into()));
        }
    }

    fn exponent_parts(&self, exponent: i64, out: &mut Vec<Part>) {
        let symbols = &self.data.symbols;
        out.push(("exponentSeparator", symbols.exponential.into()));
        if exponent < 0 {
            out.push(("exponentMinusSign", symbols.minus.into()));
        }
        out.push(("exponentInteger", symbols.localized(exponent.unsigned_abs().to_string()).into()));
    }

    /// The sign that is shown.
    fn sign(&self, shown: &Quantity) -> Sign {
        let negative = shown.is_negative();
        let is_zero = shown.is_zero() || matches!(shown, Quantity::NaN);
        let either = if negative { Sign::Minus } else { Sign::Plus };
        match self.options.sign_display {
            SignDisplay::Auto if negative => Sign::Minus,
            SignDisplay::Always => either,
            SignDisplay::ExceptZero if !is_zero => either,
            SignDisplay::Negative if negative && !is_zero => Sign::Minus,
            SignDisplay::Auto | SignDisplay::Never | SignDisplay::ExceptZero | SignDisplay::Negative => Sign::None,
        }
    }

    /// Affixes with the symbols of the locale; `kind` is the type of their text.
    fn affixed(&self, affixes: Affixes, kind: &'static str) -> Affixed {
        let mut out = Affixed::default();
        if affixes.prepend {
            self.signs(affixes.minus, &mut out.prefix);
        }
        self.replaced(affixes.prefix, affixes.minus, kind, &mut out.prefix);
        self.replaced(affixes.suffix, affixes.minus, kind, &mut out.suffix);
        out
    }

    fn signs(&self, signs: &str, out: &mut Vec<Part>) {
        let symbols = &self.data.symbols;
        out.extend(signs.chars().map(|sign| match sign {
            '~' => ("approximatelySign", symbols.approximately.into()),
            '+' => ("plusSign", symbols.plus.into()),
            _ => ("minusSign", symbols.minus.into()),
        }));
    }

    /// An affix with symbols instead of their placeholders (`AffixUtils::unescape` of ICU).
    fn replaced(&self, affix: &'static str, minus: &str, kind: &'static str, out: &mut Vec<Part>) {
        let data = &*self.data;
        let mut quoted = false;
        let mut letters = affix.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '\'' if letters.next_if_eq(&'\'').is_some() => push(out, kind, '\''),
                '\'' => quoted = !quoted,
                _ if quoted => push(out, kind, letter),
                '-' => self.signs(minus, out),
                '+' => self.signs("+", out),
                '%' if self.options.style == Style::Unit => out.push(("unit", data.symbols.percent.into())),
                '%' => out.push(("percentSign", data.symbols.percent.into())),
                '¤' => out.push(("currency", data.currency.clone())),
                _ => push(out, kind, letter),
            }
        }
    }
}

/// Append a character to the last part where that is of the same type.
fn push(out: &mut Vec<Part>, kind: &'static str, letter: char) {
    match out.last_mut() {
        Some((last, text)) if *last == kind => text.to_mut().push(letter),
        _ => out.push((kind, letter.to_string().into())),
    }
}

/// Parts without spaces and invisible marks at their ends, which become literals of their own, and without neighbours of
/// one type.
pub fn trimmed(parts: Vec<Part>) -> Vec<Part> {
    let mut out = Vec::new();
    let mut push = |part: Part| join(&mut out, part);
    let mut fields = Vec::new();
    parts.into_iter().for_each(|part| join(&mut fields, part));
    for (kind, text) in fields {
        let inner = text.trim_matches(is_ignorable);
        if matches!(kind, LITERAL | "group") || inner.len() == text.len() {
            push((kind, text));
        } else if inner.is_empty() {
            push((LITERAL, text));
        } else {
            let start = text.len() - text.trim_start_matches(is_ignorable).len();
            let end = start + inner.len();
            push((LITERAL, text[..start].to_owned().into()));
            push((kind, inner.to_owned().into()));
            push((LITERAL, text[end..].to_owned().into()));
        }
    }
    out
}

/// Append a part: to the last one where that is of the same type, digits excepted.
fn join(out: &mut Vec<Part>, (kind, text): Part) {
    match out.last_mut() {
        _ if text.is_empty() => {}
        Some((last, before)) if *last == kind && !matches!(kind, "integer" | "group") => {
            before.to_mut().push_str(&text)
        }
        _ => out.push((kind, text)),
    }
}

/// Spaces, and marks of direction and variation.
fn is_ignorable(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        | '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

impl Data {
    /// The pattern of a range: what stands before, between and behind the numbers.
    fn range(&self) -> [&'static str; 3] {
        let parts = self.range.split_once("{0}").and_then(|(before, rest)| {
            let (between, behind) = rest.split_once("{1}")?;
            Some([before, between, behind])
        });
        parts.unwrap_or(["", "–", ""])
    }
}

/// Two numbers; what is common to both is written once where ICU does so.
pub fn range(format: &NumberFormat, start: &Quantity, end: &Quantity) -> Vec<Sourced> {
    let (first, second) = (format.format(start, false), format.format(end, false));
    // Zeros differ only where their signs are shown.
    let are_zeros = start.is_zero() && end.is_zero();
    let is_same = (are_zeros || start.is_negative() == end.is_negative())
        && first.number == second.number
        && first.affixed == second.affixed
        && first.plural == second.plural;
    if is_same {
        let parts = format.whole(format.format(start, true));
        return parts.into_iter().map(|part| (part, "shared")).collect();
    }
    // The affixes are written once where they are the same and more than one character.
    let length = first.affixed.length();
    let is_scientific = first.number.iter().any(|(kind, _)| *kind == "exponentInteger");
    let once = first.affixed == second.affixed && length > 1;
    let is_spaced = !once && length > 0 || is_scientific;
    let [before, between, behind] = format.data.range();
    let mut dash = between.to_owned();
    let is_space = |letter: Option<char>| {
        letter.is_some_and(|letter| {
            letter.is_ascii_whitespace()
                || matches!(letter, '\u{85}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}')
        })
    };
    if is_spaced {
        if !is_space(dash.chars().next()) {
            dash.insert(0, ' ');
        }
        if !is_space(dash.chars().next_back()) {
            dash.push(' ');
        }
    }
    let plural = plurals::of_range(format.data.locale, first.plural, second.plural);
    let mut shared = if once { first.affixed.clone() } else { Affixed::default() };
    let (has_space, has_space_behind) =
        (shared.is_spaced_before(&first.number), shared.is_spaced_behind(&second.number));
    let piece = |one: Formatted| if once { one.number } else { one.affixed.around(one.number) };
    // A prefix that is written once stands before the unit, a suffix behind the numbers.
    let mut inner: Vec<Part> = std::mem::take(&mut shared.suffix);
    let start = piece(first);
    let end = piece(second);
    let literal = |text: &str| (LITERAL, Cow::Owned(text.to_owned()));
    let mut parts = shared.prefix;
    let (before_unit, behind_unit) = format.unit_affixes(plural);
    parts.extend(before_unit);
    // Marks of where the numbers begin and end: ICU does not count the space that it puts behind a currency.
    let shift = usize::from(has_space);
    if has_space {
        parts.push(literal("\u{a0}"));
    }
    parts.push(literal(before));
    let first_at = units(&parts) - shift;
    parts.extend(start);
    let first_end = units(&parts) - shift;
    parts.push(literal(&dash));
    let second_at = units(&parts) - shift;
    parts.extend(end);
    let second_end = units(&parts) - shift;
    parts.push(literal(behind));
    if has_space_behind {
        parts.push(literal("\u{a0}"));
    }
    parts.append(&mut inner);
    parts.extend(behind_unit);
    let mut at = 0;
    let sourced = trimmed(parts).into_iter().map(|part| {
        let from = at;
        at += part.1.encode_utf16().count();
        let source = match (from, at) {
            _ if from >= first_at && at <= first_end => "startRange",
            _ if from >= second_at && at <= second_end => "endRange",
            _ => "shared",
        };
        (part, source)
    });
    sourced.collect()
}

/// How many UTF-16 code units parts have.
fn units(parts: &[Part]) -> usize {
    parts.iter().map(|(_, text)| text.encode_utf16().count()).sum()
}
