//! The rules of CLDR for plural categories (UTS 35, part 3, section 5).
//!
//! bounded: by the rules, which are part of the program

use super::pack::RULES;

/// The letters of the categories, with their names, in the order of `resolvedOptions`.
pub const CATEGORIES: [(char, &str); 6] =
    [('f', "few"), ('m', "many"), ('o', "one"), ('t', "two"), ('z', "zero"), ('x', "other")];

/// The letter of the category of everything else.
pub const OTHER: char = 'x';

/// What rules look at of a number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Operands {
    /// The absolute value.
    pub n: f64,
    /// The integer digits, the last 18 of them.
    pub i: u64,
    /// How many fraction digits are shown.
    pub v: u64,
    /// How many without zeros at the end.
    pub w: u64,
    /// The fraction digits that are shown, the first 18 of them.
    pub f: u64,
    /// The same without zeros at the end.
    pub t: u64,
    /// The exponent of a compact or scientific notation.
    pub e: i64,
}

impl Operands {
    /// Of the digits before and behind the point.
    pub fn new(whole: &str, fraction: &str, exponent: i64) -> Self {
        let integer = |digits: &str| digits.bytes().fold(0, |sum: u64, digit| sum * 10 + u64::from(digit - b'0'));
        let first = |digits: &str| integer(&digits[..digits.len().min(18)]);
        let short = fraction.trim_end_matches('0');
        Self {
            n: decimal(whole, short),
            i: integer(&whole[whole.len().saturating_sub(18)..]),
            v: fraction.len() as u64,
            w: short.len() as u64,
            f: first(fraction),
            t: first(short),
            e: exponent,
        }
    }
}

/// The number that digits stand for; of many, with the first ones only.
fn decimal(whole: &str, fraction: &str) -> f64 {
    let kept = whole.len().min(40);
    let fraction = &fraction[..fraction.len().min(40)];
    format!("{}.{fraction}0e{}", &whole[..kept], whole.len() - kept).parse().unwrap_or(f64::NAN)
}

/// The longest beginning of a tag that has rules.
pub fn available(tag: &str) -> Option<&str> {
    let mut tag = tag;
    loop {
        if tag != "und" && RULES.root(&format!("c/{tag}")).is_some() {
            return Some(tag);
        }
        tag = &tag[..tag.rfind('-')?];
    }
}

/// The tag itself where there are rules and no other data.
pub fn without_data(tag: &str) -> Option<&'static str> {
    WITHOUT_DATA.iter().copied().find(|&language| language == tag)
}

/// Languages of which CLDR has only rules.
const WITHOUT_DATA: &[&str] = &[
    "an", "ars", "bal", "dv", "guw", "hnj", "io", "iu", "jbo", "kaj", "kcg", "lld", "nah", "nr", "ny", "osa", "pap",
    "sdh", "sgs", "sma", "smi", "smj", "sms", "ss", "ssy", "tig", "tpi", "ts", "ve", "vo", "wa",
];

/// The rules of a language: a letter and a condition each.
fn rules(tag: &str, is_ordinal: bool) -> &'static str {
    let kind = if is_ordinal { 'o' } else { 'c' };
    let mut tag = tag;
    loop {
        if let Some(rules) = RULES.root(&format!("{kind}/{tag}")) {
            return rules;
        }
        match tag.rfind('-') {
            Some(end) => tag = &tag[..end],
            None => return "x",
        }
    }
}

/// The letter of the category of a number in a locale.
pub fn category(tag: &str, is_ordinal: bool, operands: &Operands) -> char {
    let list = rules(tag, is_ordinal).split(super::pack::FIELD);
    let mut found = list.filter_map(|rule| {
        let mut letters = rule.chars();
        let letter = letters.next()?;
        (letter != OTHER && is_true(letters.as_str(), operands)).then_some(letter)
    });
    found.next().unwrap_or(OTHER)
}

/// The letters of the categories that a locale has.
pub fn categories(tag: &str, is_ordinal: bool) -> impl Iterator<Item = char> {
    rules(tag, is_ordinal).split(super::pack::FIELD).filter_map(|rule| rule.chars().next())
}

/// The letter of the category of a range.
pub fn of_range(tag: &str, start: char, end: char) -> char {
    let language = tag.split('-').next().unwrap_or_default();
    let table = RULES.root(&format!("r/{language}")).unwrap_or_default();
    let mut rows = table.as_bytes().chunks_exact(3);
    rows.find(|row| char::from(row[0]) == start && char::from(row[1]) == end).map_or(OTHER, |row| char::from(row[2]))
}

/// Whether a condition holds: relations joined by `and`, these by `or`.
fn is_true(condition: &str, operands: &Operands) -> bool {
    condition.split(" or ").any(|all| all.split(" and ").all(|relation| holds(relation.trim(), operands)))
}

/// `n % 10 != 1,3..5`
fn holds(relation: &str, operands: &Operands) -> bool {
    let Some((left, right)) = relation.split_once('=') else { return false };
    let (left, is_negated) = match left.strip_suffix('!') {
        Some(left) => (left, true),
        None => (left, false),
    };
    let mut words = left.split_whitespace();
    let operand = words.next().unwrap_or_default();
    let modulus = words.nth(1).and_then(|text| text.parse::<u64>().ok());
    let value = match operand {
        "n" => operands.n,
        "i" => operands.i as f64,
        "v" => operands.v as f64,
        "w" => operands.w as f64,
        "f" => operands.f as f64,
        "t" => operands.t as f64,
        _ => operands.e as f64,
    };
    // As in ICU all operands are doubles.
    let value = modulus.map_or(value, |modulus| value % modulus as f64);
    let number = |text: &str| text.trim().parse::<f64>().unwrap_or(f64::NAN);
    let is_in = right.split(',').any(|range| match range.split_once("..") {
        Some((first, last)) => value.fract() == 0.0 && value >= number(first) && value <= number(last),
        None => value == number(range),
    });
    is_in != is_negated
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tag: &str, whole: &str, fraction: &str) -> char {
        category(tag, false, &Operands::new(whole, fraction, 0))
    }

    #[test]
    fn categories_follow_the_rules() {
        assert_eq!(of("en", "1", ""), 'o');
        assert_eq!(of("en", "1", "0"), 'x');
        assert_eq!(of("ru", "2", ""), 'f');
        assert_eq!(of("ru", "12", ""), 'm');
        assert_eq!(of("ar", "0", ""), 'z');
        assert_eq!(of("pt-PT", "0", ""), 'x');
        assert_eq!(of("pt-BR", "0", ""), 'o');
        assert_eq!(category("en", true, &Operands::new("22", "", 0)), 't');
    }
}
