//! Times as the parts of a pattern.
//!
//! bounded: by a pattern

use super::DateTimeFormat;
use super::pattern::{Field, Item, Kind, fields};
use crate::builtins::date::calendar::{DAYS, Fields, MONTHS};
use crate::builtins::intl::zone::Style;

/// A part of a formatted date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What `formatToParts` calls it.
    pub kind: &'static str,
    /// Its text.
    pub text: String,
}

impl DateTimeFormat {
    /// A time, which must be finite, as text; V8 uses plain spaces here, unlike in parts.
    pub fn text(&self, time: f64) -> String {
        self.parts(time).into_iter().map(|part| part.text.replace('\u{202f}', " ")).collect()
    }

    /// A time, which must be finite, by parts.
    pub fn parts(&self, time: f64) -> Vec<Part> {
        self.parts_of(&self.pattern, time)
    }

    /// The fields of a time in the zone of the format.
    pub(super) fn local(&self, time: f64) -> Fields {
        Fields::from_time(time + f64::from(self.zone.offset(time)) * 1000.0)
    }

    /// A time by the parts of a pattern.
    pub(super) fn parts_of(&self, pattern: &[Item], time: f64) -> Vec<Part> {
        let at = self.local(time);
        let part = |item: &Item| match item {
            Item::Literal(text) => Part { kind: "literal", text: text.clone() },
            Item::Field(field) => {
                let text = match field.kind() {
                    Kind::Zone => self.zone.name_at(time, zone_style(*field)),
                    Kind::DayPeriod if field.letter == b'B' => day_period(*field, &at, &self.pattern).to_owned(),
                    _ => field_text(*field, &at),
                };
                Part { kind: part_name(field.kind()), text }
            }
        };
        pattern.iter().map(part).collect()
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

fn zone_style(field: Field) -> Style {
    match (field.letter, field.count) {
        (b'z', 4) => Style::Long,
        (b'O', 4) => Style::LongOffset,
        (b'O', _) => Style::ShortOffset,
        (b'v', 4) => Style::LongGeneric,
        (b'v', _) => Style::ShortGeneric,
        _ => Style::Short,
    }
}

fn field_text(field: Field, at: &Fields) -> String {
    let count = usize::from(field.count);
    let digits = |number: i64| format!("{number:0count$}");
    let name = |name: &str| match count {
        4 => name.to_owned(),
        5 => name[..1].to_owned(),
        _ => name[..3].to_owned(),
    };
    match field.letter {
        b'G' => match (count, at.year > 0) {
            (4, true) => "Anno Domini",
            (4, false) => "Before Christ",
            (5, true) => "A",
            (5, false) => "B",
            (_, true) => "AD",
            (_, false) => "BC",
        }
        .to_owned(),
        b'y' => {
            let year = if at.year > 0 { at.year } else { 1 - at.year };
            if count == 2 { digits(year % 100) } else { digits(year) }
        }
        b'M' | b'L' if count < 3 => digits(at.month + 1),
        b'M' | b'L' => name(MONTHS[at.month as usize]),
        b'E' | b'c' => name(DAYS[at.weekday as usize]),
        b'd' => digits(at.day),
        b'a' => (if at.hour < 12 { "AM" } else { "PM" }).to_owned(),
        b'h' => digits((at.hour + 11) % 12 + 1),
        b'K' => digits(at.hour % 12),
        b'H' => digits(at.hour),
        b'k' => digits((at.hour + 23) % 24 + 1),
        b'm' => digits(at.minute),
        b's' => digits(at.second),
        _ => format!("{:03}", at.ms)[..count.min(3)].to_owned(),
    }
}

/// The part of the day; noon only if the shown minutes and seconds are zero.
fn day_period(field: Field, at: &Fields, pattern: &[Item]) -> &'static str {
    let shows = |kind: Kind| fields(pattern).any(|field| field.kind() == kind);
    let is_full = (at.minute == 0 || !shows(Kind::Minute)) && (at.second == 0 || !shows(Kind::Second));
    match at.hour {
        12 if is_full && field.count == 5 => "n",
        12 if is_full => "noon",
        0..12 => "in the morning",
        12..18 => "in the afternoon",
        18..21 => "in the evening",
        _ => "at night",
    }
}
