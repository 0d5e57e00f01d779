//! Ranges of two times, by the interval patterns of en-US: what both times share is shown once, where
//! the pattern has its parts in the usual order; else both times are shown in full.

use super::DateTimeFormat;
use super::pattern::{Field, Item, Kind, best, fields};
use super::write::Part;
use crate::builtins::date::calendar::Fields;

/// What stands between the times.
const DASH: &str = "\u{2009}\u{2013}\u{2009}";

/// A part of a range, and which time it is from.
type Ranged = (Part, &'static str);

/// The most significant field in which two times differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Difference {
    Era,
    Year,
    Month,
    Day,
    Half,
    Hour,
    Minute,
    Second,
    Ms,
    None,
}

impl DateTimeFormat {
    /// A range by parts, each with the time that it is from; `None` where both times look the same.
    pub fn range(&self, from: f64, to: f64) -> Option<Vec<Ranged>> {
        let difference = difference(&self.local(from), &self.local(to));
        let mut request: Vec<Field> = fields(&self.pattern).filter(|field| field.letter != b'a').collect();
        let finest = fields(&self.pattern).map(level).max();
        if difference == Difference::None || finest.is_none_or(|finest| finest < difference) {
            return None;
        }
        // Offsets are no part of interval patterns.
        let mut split = match request.iter().any(|field| is_time(field.kind()) && field.letter != b'O') {
            false => {
                request.retain(|field| field.letter != b'O');
                dates(&request, difference)
            }
            true => times(&request, difference),
        };
        let mut parts: Vec<Ranged> = Vec::new();
        let mut add = |items: &[Item], time: f64, source: &'static str| {
            parts.extend(self.parts_of(items, time).into_iter().map(|part| (part, source)));
        };
        // What stands behind the last field of a time belongs to neither.
        let behind: Vec<Item> = split.middle.pop_if(|item| matches!(item, Item::Literal(_))).into_iter().collect();
        add(&split.before, from, "shared");
        add(&split.middle, from, "startRange");
        add(&behind, from, "shared");
        add(&[Item::Literal(DASH.into())], from, "shared");
        add(&split.middle, to, "endRange");
        add(&behind, from, "shared");
        add(&split.after, from, "shared");
        Some(joined(parts))
    }
}

/// A pattern for a range.
#[derive(Default)]
struct Split {
    before: Vec<Item>,
    /// Shown for each time.
    middle: Vec<Item>,
    after: Vec<Item>,
}

impl Split {
    /// A pattern whose items before `start` and from `end` on are shown once.
    fn at(pattern: &[Item], start: usize, end: usize) -> Self {
        let part = |from: usize, to: usize| pattern.get(from..to).unwrap_or_default().to_vec();
        Self { before: part(0, start), middle: part(start, end), after: part(end, pattern.len()) }
    }

    fn full(pattern: &[Item]) -> Self {
        Self::at(pattern, 0, pattern.len())
    }
}

/// A range of dates without times.
fn dates(request: &[Field], difference: Difference) -> Split {
    let has = |kind: Kind| request.iter().any(|field| field.kind() == kind);
    let [era, year, month, weekday, day] = [Kind::Era, Kind::Year, Kind::Month, Kind::Weekday, Kind::Day].map(has);
    let is_usual = match (year, month, day) {
        (true, true, true) => true,
        (true, true, false) | (true, false, false) => !weekday,
        (false, true, true) => !era,
        (false, true, false) | (false, false, true) => !weekday && !era,
        (false, false, false) | (true, false, true) => false,
    };
    if !is_usual {
        return Split::full(&best(request));
    }
    let mut request: Vec<Field> = request.iter().copied().map(short).collect();
    if day && !month {
        extend(&mut request, difference, Difference::Month);
        extend(&mut request, difference, Difference::Year);
        extend(&mut request, difference, Difference::Era);
    } else {
        if day && difference == Difference::Year {
            extend(&mut request, difference, Difference::Year);
        }
        if year {
            extend(&mut request, difference, Difference::Era);
        }
    }
    let pattern = best(&request);
    let is_text = request.iter().any(|field| field.kind() == Kind::Month && field.count > 2);
    // The position of the literal before a field.
    let before = |kind: Kind| {
        let at = pattern.iter().position(|item| matches!(item, Item::Field(field) if field.kind() == kind));
        at.map(|at| at.saturating_sub(1))
    };
    let end = match difference {
        Difference::Era => None,
        Difference::Year => before(Kind::Era),
        _ if is_text => before(Kind::Year),
        _ => before(Kind::Era),
    };
    let start = match difference {
        Difference::Day if is_text && !weekday => before(Kind::Day).map(|at| at + 1),
        _ => None,
    };
    Split::at(&pattern, start.unwrap_or(0), end.unwrap_or(pattern.len()))
}

/// A range of times, with or without dates.
fn times(request: &[Field], difference: Difference) -> Split {
    let has = |kind: Kind| request.iter().any(|field| field.kind() == kind);
    let is_usual = has(Kind::Hour) && !has(Kind::Second) && !has(Kind::Fraction);
    let (date, time): (Vec<Field>, Vec<Field>) = request.iter().partition(|field| !is_time(field.kind()));
    let shown = |field: &Field| field.letter != b'O';
    let short_time: Vec<Field> = time.iter().copied().filter(shown).map(short).collect();
    if difference <= Difference::Day || !is_usual && date.is_empty() {
        let mut whole: Vec<Field> = date.iter().chain(&short_hours(&time)).copied().collect();
        let differing = match difference {
            Difference::Era => Kind::Era,
            Difference::Year => Kind::Year,
            Difference::Month => Kind::Month,
            _ => Kind::Day,
        };
        if difference <= Difference::Day && !has(differing) && (is_usual || date.is_empty()) {
            if date.is_empty() {
                whole.extend([b'y', b'M', b'd'].map(|letter| Field { letter, count: 1 }));
            }
            whole.retain(shown);
            for wanted in [Difference::Day, Difference::Month, Difference::Year, Difference::Era] {
                extend(&mut whole, difference, wanted);
            }
        }
        return Split::full(&best(&whole));
    }
    let time = best(&short_time);
    let position = |kind: Kind| time.iter().position(|item| matches!(item, Item::Field(field) if field.kind() == kind));
    let zone = position(Kind::Zone).map(|at| at.saturating_sub(1));
    let end = match difference {
        _ if !is_usual => None,
        Difference::Half => zone,
        _ => position(Kind::DayPeriod).map(|at| at.saturating_sub(1)).or(zone),
    };
    let mut split = Split::at(&time, 0, end.unwrap_or(time.len()));
    if !date.is_empty() {
        split.before = best(&date.into_iter().map(short).collect::<Vec<_>>());
        split.before.push(Item::Literal(", ".into()));
    }
    split
}

/// Adds the field of `wanted`, where the times differ in it or in one that is more significant.
fn extend(request: &mut Vec<Field>, difference: Difference, wanted: Difference) {
    let letter = match wanted {
        Difference::Era => b'G',
        Difference::Year => b'y',
        Difference::Month => b'M',
        _ => b'd',
    };
    let field = Field { letter, count: 1 };
    if difference <= wanted && request.iter().all(|other| other.kind() != field.kind()) {
        request.push(field);
    }
}

fn difference(from: &Fields, to: &Fields) -> Difference {
    let fields: [(Difference, fn(&Fields) -> i64); 9] = [
        (Difference::Era, |at| i64::from(at.year > 0)),
        (Difference::Year, |at| at.year),
        (Difference::Month, |at| at.month),
        (Difference::Day, |at| at.day),
        (Difference::Half, |at| at.hour / 12),
        (Difference::Hour, |at| at.hour),
        (Difference::Minute, |at| at.minute),
        (Difference::Second, |at| at.second),
        (Difference::Ms, |at| at.ms),
    ];
    let differs = fields.into_iter().find(|(_, of)| of(from) != of(to));
    differs.map_or(Difference::None, |(difference, _)| difference)
}

/// The finest difference that a field shows.
fn level(field: Field) -> Difference {
    match field.kind() {
        Kind::Year => Difference::Year,
        Kind::Month => Difference::Month,
        Kind::Weekday | Kind::Day => Difference::Day,
        Kind::DayPeriod if field.letter == b'a' => Difference::Half,
        Kind::Hour => Difference::Hour,
        Kind::Minute => Difference::Minute,
        Kind::Second => Difference::Second,
        Kind::Fraction => Difference::Ms,
        Kind::Era | Kind::DayPeriod | Kind::Zone => Difference::Era,
    }
}

fn is_time(kind: Kind) -> bool {
    kind >= Kind::DayPeriod
}

/// A field as interval patterns have it: neither two digits nor long names of zones are asked for.
fn short(field: Field) -> Field {
    let is_number = matches!(field.letter, b'M' | b'd' | b'h' | b'K' | b'H' | b'k' | b'm') && field.count <= 2;
    if is_number || matches!(field.letter, b'z' | b'v') { Field { count: 1, ..field } } else { field }
}

/// Fields whose hours are as long as their pattern has them.
fn short_hours(fields: &[Field]) -> Vec<Field> {
    let hour = |field: &Field| if field.kind() == Kind::Hour { short(*field) } else { *field };
    fields.iter().map(hour).collect()
}

/// Parts without literals that follow each other.
fn joined(parts: Vec<Ranged>) -> Vec<Ranged> {
    let mut out: Vec<Ranged> = Vec::new();
    for (part, source) in parts {
        match out.last_mut() {
            Some((last, from)) if last.kind == "literal" && part.kind == "literal" && *from == source => {
                last.text.push_str(&part.text);
            }
            _ => out.push((part, source)),
        }
    }
    out
}
