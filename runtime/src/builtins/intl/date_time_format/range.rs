//! Ranges of two times, by the interval patterns of en-US: common fields are shown once if the pattern has the usual
//! order, else both times in full.
//!
//! bounded: by two patterns

use super::DateTimeFormat;
use super::pattern::{Field, Item, Kind, best, best_with_own_hours, fields};
use super::write::Part;
use crate::builtins::date::calendar::Fields;

/// The separator of the times.
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
        let request: Vec<Field> = fields(&self.pattern).filter(|field| field.letter != b'a').collect();
        let mut finest = fields(&self.pattern).map(level).max();
        if request.iter().all(|field| is_time(field.kind())) && finest == Some(Difference::Era) {
            // The part of the day alone is that of a day.
            finest = Some(Difference::Day);
        }
        if difference == Difference::None || finest.is_none_or(|finest| finest < difference) {
            return None;
        }
        // Offsets are no part of interval patterns.
        let mut split = match request.iter().any(|field| is_time(field.kind()) && has_interval(field)) {
            false => dates(&request, difference),
            true => times(&request, difference),
        };
        let mut parts: Vec<Ranged> = Vec::new();
        let mut add = |items: &[Item], time: f64, source: &'static str| {
            parts.extend(self.parts_of(items, time).into_iter().map(|part| (part, source)));
        };
        // Text after the last field of a time is shared.
        let behind: Vec<Item> = split.middle.pop_if(|item| matches!(item, Item::Literal(_))).into_iter().collect();
        add(&split.before, from, "shared");
        add(&split.middle, from, "startRange");
        add(&behind, from, "shared");
        add(&[Item::Literal(DASH.into())], from, "shared");
        add(&split.middle, to, "endRange");
        add(&behind, from, "shared");
        add(&split.after, to, "shared");
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
    // A month that stands alone has no interval pattern.
    let is_alone = request.iter().any(|field| field.letter == b'L');
    if !is_usual || is_alone && !request.iter().all(has_interval) {
        return Split::full(&best(request));
    }
    let mut request: Vec<Field> = request.iter().copied().filter(has_interval).map(short).collect();
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
    // Parts of the day have no interval patterns with a zone.
    let is_zoned = request.iter().any(|field| field.kind() == Kind::Zone && has_interval(field));
    let is_plain = !has(Kind::DayPeriod) || !is_zoned;
    let is_usual = is_plain && has(Kind::Hour) && !has(Kind::Second) && !has(Kind::Fraction);
    let (date, time): (Vec<Field>, Vec<Field>) = request.iter().partition(|field| !is_time(field.kind()));
    if difference <= Difference::Day || !is_usual && date.is_empty() {
        let mut whole = request.to_vec();
        let is_shown = match difference {
            Difference::Era => has(Kind::Era),
            Difference::Year => has(Kind::Year),
            // A month that stands alone does not count.
            Difference::Month => request.iter().any(|field| field.letter == b'M'),
            _ => has(Kind::Day),
        };
        if difference <= Difference::Day && !is_shown && (is_usual || date.is_empty()) {
            if date.is_empty() {
                whole.retain(has_interval);
                whole.extend([b'y', b'M', b'd'].map(|letter| Field { letter, count: 1 }));
            }
            for wanted in [Difference::Day, Difference::Month, Difference::Year, Difference::Era] {
                extend(&mut whole, difference, wanted);
            }
        }
        return Split::full(&best_with_own_hours(&whole));
    }
    let time: Vec<Field> = time.into_iter().filter(has_interval).map(short).collect();
    let mut time = best(&time);
    for item in &mut time {
        // Hours alone are written `13h UTC`, but not in a range.
        if let Item::Literal(text) = item
            && is_usual
            && text == "h "
        {
            *text = " ".into();
        }
    }
    let position = |kind: Kind| time.iter().position(|item| matches!(item, Item::Field(field) if field.kind() == kind));
    let zone = position(Kind::Zone).map(|at| at.saturating_sub(1));
    let end = match difference {
        _ if !is_usual => None,
        Difference::Half => zone,
        _ => position(Kind::DayPeriod).map(|at| at.saturating_sub(1)).or(zone),
    };
    let mut split = Split::at(&time, 0, end.unwrap_or(time.len()));
    if !date.is_empty() {
        let date: Vec<Field> = if is_usual { date } else { date.into_iter().map(short).collect() };
        split.before = best(&date);
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
    use Difference::*;
    let parts = |at: &Fields| {
        let (era, half) = (i64::from(at.year > 0), at.hour / 12);
        [era, at.year, at.month, at.day, half, at.hour, at.minute, at.second, at.ms]
    };
    let kinds = [Era, Year, Month, Day, Half, Hour, Minute, Second, Ms];
    let differs = parts(from).into_iter().zip(parts(to)).zip(kinds).find(|((from, to), _)| from != to);
    differs.map_or(None, |(_, kind)| kind)
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

/// A field as interval patterns have it: without two-digit forms and long names of zones.
fn short(field: Field) -> Field {
    let is_number = matches!(field.letter, b'M' | b'd' | b'h' | b'K' | b'H' | b'k' | b'm') && field.count <= 2;
    if is_number || matches!(field.letter, b'z' | b'v') { Field { count: 1, ..field } } else { field }
}

/// Whether a field may be part of an interval pattern: offsets are not.
fn has_interval(field: &Field) -> bool {
    field.letter != b'O'
}

/// Parts with adjacent literals joined.
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
