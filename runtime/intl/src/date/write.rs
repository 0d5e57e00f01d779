//! Times as the parts of a pattern.
//!
//! bounded: by a pattern

use super::pattern::{Field, Item, Kind, fields};
use super::symbols::Width;
use super::{DateTimeFormat, Fields, Moment};
use crate::locale::with_digits;

/// A part of a formatted date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What `formatToParts` calls it.
    pub kind: &'static str,
    /// Its text.
    pub text: String,
}

impl DateTimeFormat {
    /// A time as text; V8 uses plain spaces here, unlike in parts.
    pub fn text(&self, time: &Moment) -> String {
        self.parts(time).into_iter().map(|part| part.text.replace('\u{202f}', " ")).collect()
    }

    /// A time by parts.
    pub fn parts(&self, time: &Moment) -> Vec<Part> {
        self.parts_of(&self.pattern, time)
    }

    /// The fields of a time in the calendar of the format.
    pub(super) fn local(&self, time: &Moment) -> Fields {
        self.calendar.fields(time.fields, time.days)
    }

    /// A time by the parts of a pattern.
    pub(super) fn parts_of(&self, pattern: &[Item], time: &Moment) -> Vec<Part> {
        let at = self.local(time);
        let part = |item: &Item| match item {
            Item::Literal(text) => Part { kind: "literal", text: text.clone() },
            Item::Field(field) => {
                let text = match field.kind() {
                    Kind::Zone => self.zone.name_at(time.time, (field.letter, field.count), &self.zone_names),
                    _ => self.field_text(*field, &at, pattern),
                };
                Part { kind: part_name(field.kind()), text }
            }
        };
        pattern.iter().map(part).collect()
    }

    fn field_text(&self, field: Field, at: &Fields, pattern: &[Item]) -> String {
        let count = usize::from(field.count);
        let digits = |number: i64| with_digits(&format!("{number:0count$}"), &self.digits);
        let width = Width::of(field.count);
        let name = |list, is_alone, index: i64| self.symbols.name(list, is_alone, width, index as usize).to_owned();
        let (era, year) = self.calendar.era_year(at);
        match field.letter {
            b'G' => self.symbols.era(width, era).to_owned(),
            b'y' if count == 2 => digits(year.rem_euclid(100)),
            b'y' => digits(year),
            b'M' | b'L' if count < 3 => digits(at.month + 1),
            b'M' | b'L' => name("months", field.letter == b'L', at.month),
            b'E' | b'c' => name("days", field.letter == b'c', at.weekday),
            b'd' => digits(at.day),
            b'a' => name("periods", false, i64::from(at.hour >= 12)),
            b'B' => self.day_period(field, at, pattern),
            b'h' => digits((at.hour + 11) % 12 + 1),
            b'K' => digits(at.hour % 12),
            b'H' => digits(at.hour),
            b'k' => digits((at.hour + 23) % 24 + 1),
            b'm' => digits(at.minute),
            b's' => digits(at.second),
            _ => with_digits(format!("{:03}", at.ms).get(..count.min(3)).unwrap_or_default(), &self.digits),
        }
    }

    /// The part of the day; noon only if the shown minutes and seconds are zero.
    fn day_period(&self, field: Field, at: &Fields, pattern: &[Item]) -> String {
        let shows = |kind: Kind| fields(pattern).any(|field| field.kind() == kind);
        let is_exact = (at.minute == 0 || !shows(Kind::Minute)) && (at.second == 0 || !shows(Kind::Second));
        let name = |index| self.symbols.name("periods", false, Width::of(field.count), index);
        let noon = self.symbols.noon().filter(|_| at.hour == 12 && is_exact).map(name).filter(|name| !name.is_empty());
        let part = || self.symbols.period_at(at.hour).map(name).filter(|name| !name.is_empty());
        noon.or_else(part).unwrap_or_else(|| name(usize::from(at.hour >= 12))).to_owned()
    }
}

fn part_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Era => "era",
        Kind::Year => "year",
        Kind::Month => "month",
        Kind::Weekday => "weekday",
        Kind::Day => "day",
        Kind::DayPeriod => "dayPeriod",
        Kind::Hour => "hour",
        Kind::Minute => "minute",
        Kind::Second => "second",
        Kind::Fraction => "fractionalSecond",
        Kind::Zone => "timeZoneName",
    }
}
