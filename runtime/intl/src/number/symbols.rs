//! Data of CLDR for a formatter: symbols, digits, patterns, names of its currency or unit.
//!
//! bounded: by the packs, which are part of the program

use super::{CurrencyDisplay, Notation, NumberFormat, SignDisplay, Style};
use crate::pack::{self, CURRENCIES, FIELD, NUMBERS, RULES, UNITS};
use std::borrow::Cow;

/// The data of a formatter.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// The name of the locale in the packs.
    pub locale: &'static str,
    pub symbols: Symbols,
    /// The pattern of the number with its sign, percent sign or currency.
    pub pattern: Pattern,
    /// The symbol or code of the currency.
    pub currency: Cow<'static, str>,
    /// The least number of digits before the first group of a number that is grouped.
    pub least_group: usize,
    /// The patterns of a compact notation.
    pub compact: &'static str,
    /// What is around the number as a whole: a unit, or the name of a currency.
    pub outer: Option<Outer>,
    /// Two numbers.
    pub range: &'static str,
}

/// Symbols and digits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Symbols {
    pub decimal: &'static str,
    pub group: &'static str,
    pub minus: &'static str,
    pub plus: &'static str,
    pub percent: &'static str,
    pub exponential: &'static str,
    pub infinity: &'static str,
    pub nan: &'static str,
    pub approximately: &'static str,
    pub digits: [char; 10],
}

/// A unit or the name of a currency around a number.
#[derive(Clone, Debug)]
pub struct Outer {
    /// The type of the part.
    pub kind: &'static str,
    /// Letters of plural categories with their patterns.
    forms: Vec<(char, String)>,
}

impl Outer {
    /// The pattern for a plural category.
    pub fn form(&self, letter: char) -> &str {
        let find = |letter| self.forms.iter().find(|(one, _)| *one == letter);
        find(letter).or_else(|| find('x')).map_or("{0}", |(_, form)| form)
    }
}

/// A pattern: affixes of numbers, and their groups.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pattern {
    positive: (&'static str, &'static str),
    negative: Option<(&'static str, &'static str)>,
    /// Digits of the group before the point, and of the groups before it; 0 for none.
    pub groups: (usize, usize),
    /// How many digits it has before the point.
    pub whole: usize,
}

impl Pattern {
    /// Read a pattern.
    pub fn parse(pattern: &'static str) -> Self {
        let (positive, number, rest) = side(pattern);
        let negative = rest.strip_prefix(';').map(|rest| side(rest).0);
        let whole = number.split('.').next().unwrap_or_default();
        let mut groups = whole.rsplit(',').map(str::len);
        let first = groups.next().unwrap_or_default();
        let second = groups.next().unwrap_or_default();
        let has_third = groups.next().is_some();
        let groups = match whole.contains(',') {
            false => (0, 0),
            true => (first, if has_third { second } else { first }),
        };
        Self { positive, negative, groups, whole: whole.bytes().filter(|&byte| byte == b'0').count() }
    }

    /// The affixes for a sign, with `sign` in place of a minus sign (`patternInfoToStringBuilder` of ICU).
    pub fn affixes(&self, sign: Sign, approximately: bool) -> Affixes {
        let has = |affixes: (&str, &str), what: char| affixes.0.contains(what) || affixes.1.contains(what);
        let plus_for_minus = sign == Sign::Plus && !has(self.positive, '+');
        let negative = self
            .negative
            .filter(|&negative| sign == Sign::Minus || has(negative, '-') && (plus_for_minus || approximately));
        let prepend = negative.is_none() && (sign == Sign::Minus || plus_for_minus || approximately);
        let (prefix, suffix) = negative.unwrap_or(self.positive);
        let minus = match (approximately, sign) {
            (true, _) if plus_for_minus => "~+",
            (true, Sign::Minus) => "~-",
            (true, _) => "~",
            (false, _) if plus_for_minus => "+",
            (false, _) => "-",
        };
        Affixes { prepend, prefix, suffix, minus }
    }
}

/// Affixes of a pattern, not yet replaced by symbols.
#[derive(Clone, Copy, Debug)]
pub struct Affixes {
    /// Whether the sign stands before the prefix, which does not have it.
    pub prepend: bool,
    pub prefix: &'static str,
    pub suffix: &'static str,
    /// What stands in place of a minus sign: `-`, `+`, `~`.
    pub minus: &'static str,
}

/// Which sign is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    None,
    Plus,
    Minus,
}

/// One side of a pattern: prefix and suffix, the number between them, and what follows.
fn side(pattern: &'static str) -> ((&'static str, &'static str), &'static str, &'static str) {
    let is_number = |letter: char| matches!(letter, '#' | ',' | '.' | '0'..='9');
    let first = unquoted(pattern, is_number);
    let (prefix, rest) = pattern.split_at(first);
    let last = rest.find(|letter: char| !is_number(letter)).unwrap_or(rest.len());
    let (number, rest) = rest.split_at(last);
    let (suffix, rest) = rest.split_at(unquoted(rest, |letter| letter == ';'));
    ((prefix, suffix), number, rest)
}

/// Where a letter stands outside quotes; the end where there is none.
fn unquoted(text: &str, is: impl Fn(char) -> bool) -> usize {
    let mut quoted = false;
    for (index, letter) in text.char_indices() {
        if letter == '\'' {
            quoted = !quoted;
        } else if !quoted && is(letter) {
            return index;
        }
    }
    text.len()
}

/// Whether there is a numbering system of that name whose digits are numbers.
pub fn is_numbering(name: &str) -> bool {
    RULES.root(&format!("n/{name}")).is_some()
}

/// How many fraction digits a currency has.
pub fn fraction_digits(code: &str) -> usize {
    RULES.root(&format!("f/{code}")).and_then(|digits| digits.parse().ok()).unwrap_or(2)
}

/// A text of a numbering system; that of `latn` where it has none of its own.
fn of(locale: &str, key: &str, system: &str) -> &'static str {
    let find = |system: &str| NUMBERS.get(locale, &format!("{key}/{system}"));
    find(system).or_else(|| find("latn")).unwrap_or_default()
}

impl Symbols {
    fn new(locale: &str, system: &str, monetary: bool) -> Self {
        let symbols = of(locale, "s", system);
        let [decimal, group, minus, plus, percent, exponential, infinity, nan, approximately, point, comma] =
            pack::fields(symbols);
        let or = |own: &'static str, other| if monetary && !own.is_empty() { own } else { other };
        let digits = RULES.root(&format!("n/{system}")).unwrap_or("0123456789");
        let mut letters = digits.chars();
        Self {
            decimal: or(point, decimal),
            group: or(comma, group),
            minus,
            plus,
            percent,
            exponential,
            infinity,
            nan,
            approximately,
            digits: std::array::from_fn(|_| letters.next().unwrap_or('0')),
        }
    }

    /// Digits of ASCII as those of the numbering system.
    pub fn localized(&self, digits: String) -> String {
        if self.digits[0] == '0' {
            return digits;
        }
        digits.bytes().map(|digit| self.digits[usize::from(digit - b'0') % 10]).collect()
    }
}

/// What a formatter needs, from its options.
pub fn data(format: &NumberFormat, locale: &'static str) -> Data {
    let system = format.options.numbering.as_str();
    let is_currency = format.options.style == Style::Currency;
    let is_named = is_currency && format.options.currency_display == CurrencyDisplay::Name;
    let mut symbols = Symbols::new(locale, system, is_currency);
    let mut pattern = match format.options.style {
        Style::Currency if is_named => "d",
        // As in V8, a sign that is never shown has no form for accounting.
        Style::Currency if format.options.accounting && format.options.sign_display != SignDisplay::Never => "a",
        Style::Currency => "c",
        Style::Percent if format.options.notation != Notation::Compact => "p",
        Style::Unit if format.is_percent_sign() => "p",
        Style::Decimal | Style::Percent | Style::Unit => "d",
    };
    let mut currency = Cow::Borrowed("");
    let mut own_pattern = "";
    if is_currency {
        let fields = CURRENCIES.get(locale, &format!("s/{}", format.options.currency)).map(pack::fields);
        let [symbol, narrow, decimal, group, own] = fields.unwrap_or_default();
        let known = match format.options.currency_display {
            CurrencyDisplay::Symbol => symbol,
            CurrencyDisplay::Narrow => narrow,
            CurrencyDisplay::Code | CurrencyDisplay::Name => "",
        };
        currency = if known.is_empty() { Cow::Owned(format.options.currency.clone()) } else { known.into() };
        if !decimal.is_empty() {
            symbols.decimal = decimal;
        }
        if !group.is_empty() {
            symbols.group = group;
        }
        if !is_named {
            // With separators of its own comes a pattern: as in ICU, for all signs.
            let has_separators = !decimal.is_empty() || !group.is_empty();
            own_pattern = if own.is_empty() && has_separators { of(locale, "c", system) } else { own };
        }
    }
    let text = if own_pattern.is_empty() { of(locale, pattern, system) } else { own_pattern };
    pattern = match format.options.notation {
        Notation::Compact if is_currency && !is_named => "cc",
        Notation::Compact if format.options.compact_long => "cl",
        Notation::Compact => "cs",
        Notation::Standard | Notation::Scientific | Notation::Engineering => "",
    };
    Data {
        locale,
        symbols,
        pattern: Pattern::parse(text),
        currency,
        least_group: NUMBERS.get(locale, "group").and_then(|text| text.parse().ok()).unwrap_or(1),
        compact: if pattern.is_empty() { "" } else { of(locale, pattern, system) },
        outer: outer(format, locale, system),
        range: of(locale, "r", system),
    }
}

fn outer(format: &NumberFormat, locale: &str, _system: &str) -> Option<Outer> {
    match format.options.style {
        Style::Unit if format.is_percent_sign() => None,
        Style::Unit => {
            Some(Outer { kind: "unit", forms: unit(locale, &format.options.unit, format.options.unit_display) })
        }
        Style::Percent if format.options.notation == Notation::Compact => {
            Some(Outer { kind: "unit", forms: unit(locale, "percent", 0) })
        }
        Style::Currency if format.options.currency_display == CurrencyDisplay::Name => {
            let names = CURRENCIES.get(locale, &format!("n/{}", format.options.currency)).unwrap_or_default();
            let (display, forms) = names.split_once(FIELD).unwrap_or((names, ""));
            let name = |letter| match pack::form(forms, letter) {
                Some(name) => name,
                None if display.is_empty() => format.options.currency.as_str(),
                None => display,
            };
            // As in ICU, the patterns are those of Latin digits.
            let patterns = of(locale, "u", "latn");
            let pattern = |letter| pack::form(patterns, letter).unwrap_or("{0} {1}");
            let forms = "zotfmx".chars().map(|letter| (letter, pattern(letter).replace("{1}", name(letter)))).collect();
            Some(Outer { kind: "currency", forms })
        }
        Style::Currency | Style::Percent | Style::Decimal => None,
    }
}

/// The patterns of a unit by plural category; widths are short, narrow and long.
fn unit(locale: &str, unit: &str, width: usize) -> Vec<(char, String)> {
    let letter = ["s", "n", "l"][width.min(2)];
    let find = |unit: &str| UNITS.get(locale, &format!("{letter}/{unit}")).unwrap_or_default();
    // The last field is what stands behind another unit.
    let forms = |unit: &str| {
        let all = find(unit);
        all.rsplit_once(FIELD).unwrap_or((all, ""))
    };
    let letters =
        |forms: &'static str| forms.split(FIELD).filter_map(|form| Some((form.chars().next()?, form.get(1..)?)));
    let simple = forms(unit).0;
    if !simple.is_empty() {
        return letters(simple).map(|(letter, form)| (letter, form.to_owned())).collect();
    }
    let Some((first, second)) = unit.split_once("-per-") else { return Vec::new() };
    let behind = forms(second).1;
    let pattern = match behind.strip_prefix('p') {
        Some(pattern) => pattern.to_owned(),
        None => {
            let name = behind.get(1..).unwrap_or_default().replace("{0}", "");
            find("per").replace("{1}", name.trim())
        }
    };
    letters(forms(first).0).map(|(letter, form)| (letter, pattern.replace("{0}", form))).collect()
}
