//! `Date.parse`: the format of ECMAScript (21.4.1.32), and the legacy parser of V8 for other texts. It classifies
//! numbers by the characters next to them, months and zones by name, and allows other words only before the first
//! number.

use super::calendar::{make_date, make_day, make_time};
use crate::value::numeric::is_space;

/// The time of a text, not yet clipped to the range of dates.
pub fn parse(text: &str) -> Option<f64> {
    let mut scanner = Scanner::new(text);
    let mut parts = Parts::default();
    match parts.standard(&mut scanner) {
        Standard::Invalid => return None,
        Standard::Done => {}
        Standard::Rest(token) => parts.legacy(&mut scanner, token)?,
    }
    parts.time()
}

/// Significant digits of a number; further ones are skipped.
const SIGNIFICANT: usize = 9;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token {
    /// Its value, and how many digits it has.
    Number(i64, usize),
    Symbol(u8),
    Space,
    /// What it means, and how many characters it has.
    Word(Word, usize),
    Other,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Word {
    /// From 1.
    Month(i64),
    /// Hours that are added.
    HalfDay(i64),
    /// Hours east of Greenwich.
    Zone(i64),
    Separator,
    Unknown,
}

impl Token {
    /// The value of a number of so many digits.
    fn digits(self, count: usize) -> Option<i64> {
        match self {
            Self::Number(value, length) if length == count => Some(value),
            _ => None,
        }
    }

    fn sign(self) -> Option<i64> {
        match self {
            Self::Symbol(b'+') => Some(1),
            Self::Symbol(b'-') => Some(-1),
            _ => None,
        }
    }
}

/// The tokens of a text, with one token of lookahead.
struct Scanner<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    peeked: Token,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Self {
        let mut scanner = Self { rest: text.chars().peekable(), peeked: Token::End };
        scanner.next();
        scanner
    }

    fn next(&mut self) -> Token {
        let token = self.scan();
        std::mem::replace(&mut self.peeked, token)
    }

    fn skip(&mut self, symbol: u8) -> bool {
        let found = self.peeked == Token::Symbol(symbol);
        if found {
            self.next();
        }
        found
    }

    fn scan(&mut self) -> Token {
        let Some(&first) = self.rest.peek() else { return Token::End };
        match first {
            '0'..='9' => self.number(),
            '(' => {
                let mut depth = 0_usize;
                for c in self.rest.by_ref() {
                    match c {
                        '(' => depth += 1,
                        ')' => depth -= 1,
                        _ => {}
                    }
                    if depth == 0 {
                        break;
                    }
                }
                Token::Other
            }
            _ if is_space(first) => {
                self.rest.next();
                Token::Space
            }
            'A'.. => self.word(),
            _ => {
                self.rest.next();
                match first {
                    ':' | '-' | '+' | '.' | ')' => Token::Symbol(first as u8),
                    _ => Token::Other,
                }
            }
        }
    }

    fn number(&mut self) -> Token {
        let (mut value, mut length, mut significant) = (0, 0, 0);
        while let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(10)) {
            self.rest.next();
            length += 1;
            if significant > 0 || digit > 0 {
                if significant < SIGNIFICANT {
                    value = value * 10 + i64::from(digit);
                }
                significant += 1;
            }
        }
        Token::Number(value, length)
    }

    fn word(&mut self) -> Token {
        let (mut prefix, mut length) = ([0_u8; 3], 0);
        while let Some(&c) = self.rest.peek()
            && c >= 'A'
            && !is_space(c)
        {
            self.rest.next();
            // UTF-16 code units are counted, and only those of ASCII can be part of a known word.
            if let Some(place) = prefix.get_mut(length) {
                *place = if c.is_ascii() { c as u8 | 0x20 } else { 0xff };
            }
            length += c.len_utf16();
        }
        let known = match (&prefix, length) {
            (b"am\0", 2) => Word::HalfDay(0),
            (b"pm\0", 2) => Word::HalfDay(12),
            (b"ut\0", 2) | (b"utc" | b"gmt", 3) | (b"z\0\0", 1) => Word::Zone(0),
            (b"edt", 3) => Word::Zone(-4),
            (b"est" | b"cdt", 3) => Word::Zone(-5),
            (b"cst" | b"mdt", 3) => Word::Zone(-6),
            (b"mst" | b"pdt", 3) => Word::Zone(-7),
            (b"pst", 3) => Word::Zone(-8),
            (b"t\0\0", 1) => Word::Separator,
            _ => month(&prefix).map_or(Word::Unknown, Word::Month),
        };
        Token::Word(known, length)
    }
}

/// The month whose name begins so.
fn month(prefix: &[u8; 3]) -> Option<i64> {
    let names = super::calendar::MONTHS;
    let index = names.iter().position(|name| name.as_bytes()[..3].eq_ignore_ascii_case(prefix))?;
    Some(index as i64 + 1)
}

/// The result of parsing a text in the format of ECMAScript.
enum Standard {
    Done,
    /// Invalid, and not for the legacy parser either.
    Invalid,
    /// From this token on it is for the legacy parser.
    Rest(Token),
}

/// The fields of a date found so far.
#[derive(Default)]
struct Parts {
    day: Vec<i64>,
    named_month: Option<i64>,
    is_standard: bool,
    clock: Vec<i64>,
    half_day: Option<i64>,
    sign: Option<i64>,
    hour: Option<i64>,
    minute: Option<i64>,
}

impl Parts {
    fn standard(&mut self, scanner: &mut Scanner<'_>) -> Standard {
        if let Some(sign) = scanner.peeked.sign() {
            let token = scanner.next();
            let Some(year) = scanner.peeked.digits(6) else { return Standard::Rest(token) };
            scanner.next();
            if sign < 0 && year == 0 {
                return Standard::Rest(token);
            }
            self.day.push(sign * year);
        } else if let Some(year) = scanner.peeked.digits(4) {
            scanner.next();
            self.day.push(year);
        } else {
            return Standard::Rest(scanner.next());
        }
        for largest in [12, 31] {
            if !scanner.skip(b'-') {
                break;
            }
            match scanner.peeked.digits(2) {
                Some(part) if (1..=largest).contains(&part) => self.day.push(part),
                _ => return Standard::Rest(scanner.next()),
            }
            scanner.next();
        }
        if matches!(scanner.peeked, Token::Word(Word::Separator, _)) {
            if self.standard_clock(scanner).is_none() {
                return Standard::Invalid;
            }
        } else if scanner.peeked != Token::End {
            return Standard::Rest(scanner.next());
        }
        self.is_standard = true;
        Standard::Done
    }

    /// `T10:00:00.000+02:00`
    fn standard_clock(&mut self, scanner: &mut Scanner<'_>) -> Option<()> {
        let part = |scanner: &mut Scanner<'_>, largest: i64| {
            let value = scanner.peeked.digits(2).filter(|value| (0..=largest).contains(value));
            scanner.next();
            value
        };
        scanner.next();
        let hour = part(scanner, 24)?;
        // The end of a day is the only time with this hour.
        let largest = if hour == 24 { 0 } else { 59 };
        if !scanner.skip(b':') {
            return None;
        }
        let minute = part(scanner, largest)?;
        self.clock.extend([hour, minute]);
        if scanner.skip(b':') {
            let second = part(scanner, largest)?;
            self.clock.push(second);
            if scanner.skip(b'.') {
                let Token::Number(value, length) = scanner.next() else { return None };
                if hour == 24 && value > 0 {
                    return None;
                }
                self.clock.push(milliseconds(value, length));
            }
        }
        if matches!(scanner.peeked, Token::Word(Word::Zone(_), 1)) {
            scanner.next();
            self.set_zone(0);
        } else if let Some(sign) = scanner.peeked.sign() {
            scanner.next();
            self.sign = Some(sign);
            let (hour, minute) = match scanner.peeked.digits(4) {
                Some(both) => {
                    scanner.next();
                    (both / 100, both % 100)
                }
                None => {
                    let hour = part(scanner, 23)?;
                    if !scanner.skip(b':') {
                        return None;
                    }
                    (hour, part(scanner, 59)?)
                }
            };
            if hour > 23 || minute > 59 {
                return None;
            }
            (self.hour, self.minute) = (Some(hour), Some(minute));
        }
        (scanner.peeked == Token::End).then_some(())
    }

    fn legacy(&mut self, scanner: &mut Scanner<'_>, first: Token) -> Option<()> {
        let (mut token, mut has_number) = (first, !self.day.is_empty());
        while token != Token::End {
            match token {
                Token::Number(value, _) => {
                    has_number = true;
                    self.number(scanner, value)?;
                }
                Token::Word(word, _) => match word {
                    Word::HalfDay(hours) if !self.clock.is_empty() => self.half_day = Some(hours),
                    Word::Month(month) => {
                        self.named_month = Some(month);
                        scanner.skip(b'-');
                    }
                    Word::Zone(hours) if has_number => self.set_zone(hours),
                    _ if has_number || matches!(scanner.peeked, Token::Number(..)) => return None,
                    _ => {}
                },
                Token::Symbol(b'+' | b'-') if self.is_utc() || !self.clock.is_empty() => {
                    self.sign = token.sign();
                    let (mut value, mut length) = (0, 0);
                    if let Token::Number(number, digits) = scanner.peeked {
                        (value, length) = (number, digits);
                        scanner.next();
                    }
                    has_number = true;
                    (self.hour, self.minute) = match length {
                        _ if scanner.peeked == Token::Symbol(b':') => (Some(value), None),
                        1 | 2 => (Some(value), Some(0)),
                        3 | 4 => (Some(value / 100), Some(value % 100)),
                        _ => return None,
                    };
                }
                Token::Symbol(b'+' | b'-' | b')') if has_number => return None,
                Token::Symbol(_) | Token::Space | Token::Other | Token::End => {}
            }
            token = scanner.next();
        }
        Some(())
    }

    fn number(&mut self, scanner: &mut Scanner<'_>, value: i64) -> Option<()> {
        if scanner.skip(b':') {
            if scanner.skip(b':') {
                if !self.clock.is_empty() {
                    return None;
                }
                self.clock.extend([value, 0]);
            } else {
                self.add_clock(value)?;
                scanner.skip(b'.');
            }
        } else if scanner.skip(b'.') && self.expects_clock(value) {
            self.add_clock(value)?;
            let Token::Number(value, length) = scanner.next() else { return None };
            self.add_clock(milliseconds(value, length))?;
            self.clock.resize(4, 0);
        } else if self.hour.is_some() && self.minute.is_none() && (0..60).contains(&value) {
            self.minute = Some(value);
        } else if self.expects_clock(value) {
            self.add_clock(value)?;
            self.clock.resize(4, 0);
            if !matches!(
                scanner.peeked,
                Token::End | Token::Space | Token::Word(Word::Zone(_), 1) | Token::Symbol(b'+' | b'-')
            ) {
                return None;
            }
        } else {
            if self.day.len() == 3 {
                return None;
            }
            self.day.push(value);
            scanner.skip(b'-');
        }
        Some(())
    }

    fn add_clock(&mut self, value: i64) -> Option<()> {
        (self.clock.len() < 4).then(|| self.clock.push(value))
    }

    /// Whether a number can be the next field of a time.
    fn expects_clock(&self, value: i64) -> bool {
        match self.clock.len() {
            1 | 2 => (0..60).contains(&value),
            3 => (0..1000).contains(&value),
            _ => false,
        }
    }

    fn set_zone(&mut self, hours: i64) {
        self.sign = Some(if hours < 0 { -1 } else { 1 });
        (self.hour, self.minute) = (Some(hours.abs()), Some(0));
    }

    fn is_utc(&self) -> bool {
        self.hour == Some(0) && self.minute == Some(0)
    }

    fn time(mut self) -> Option<f64> {
        let (year, month, day) = self.date()?;
        self.clock.resize(4, 0);
        let &[hour, minute, second, ms] = self.clock.as_slice() else { return None };
        let hour = match self.half_day {
            Some(_) if hour > 12 => return None,
            Some(hours) => hour % 12 + hours,
            None => hour,
        };
        let is_clock = hour < 24 && minute < 60 && second < 60 && ms < 1000;
        if !is_clock && (hour, minute, second, ms) != (24, 0, 0, 0) {
            return None;
        }
        let offset =
            self.sign.map_or(0, |sign| sign * (self.hour.unwrap_or(0) * 3_600_000 + self.minute.unwrap_or(0) * 60_000));
        let day = make_day(year as f64, (month - 1) as f64, day as f64);
        Some(make_date(day, make_time(hour as f64, minute as f64, second as f64, ms as f64)) - offset as f64)
    }

    fn date(&mut self) -> Option<(i64, i64, i64)> {
        if self.day.is_empty() {
            return None;
        }
        let is_day = |value: i64| (1..=31).contains(&value);
        self.day.resize(3, 1);
        let &[first, second, third] = self.day.as_slice() else { return None };
        let (year, month, day) = match self.named_month {
            None if self.is_standard || !is_day(first) => (first, second, third),
            None => (third, first, second),
            Some(month) if !is_day(first) => (first, month, second),
            Some(month) => (second, month, first),
        };
        let year = match year {
            0..50 if !self.is_standard => year + 2000,
            50..100 if !self.is_standard => year + 1900,
            _ => year,
        };
        ((1..=12).contains(&month) && is_day(day) && year.abs() < 1 << 30).then_some((year, month, day))
    }
}

/// The milliseconds that stand behind a point, from their value and how many digits they have.
fn milliseconds(value: i64, length: usize) -> i64 {
    match length {
        1 => value * 100,
        2 => value * 10,
        3 => value,
        _ => value / 10_i64.pow(length.min(SIGNIFICANT) as u32 - 3),
    }
}
