//! Ranges of two times, by the interval patterns of CLDR. Common fields are shown once if there is a pattern for the
//! greatest field that differs, else both times in full. The steps are those of ICU's `DateIntervalFormat`.
//!
//! bounded: by the patterns of a locale

use super::calendar::Calendar;
use super::pattern::{Field, Generator, Item, KINDS, Kind, fields, joined as glued, parse};
use super::write::Part;
use super::{DateTimeFormat, Fields, Moment};

/// A part of a range, and which time it is from.
pub type Ranged = (Part, &'static str);

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

/// How a range is shown, by the greatest field that differs.
#[derive(Clone, Default)]
enum Interval {
    /// Nothing is known: both times in full, if the field is shown at all.
    #[default]
    None,
    /// Both times by this pattern.
    Full(Vec<Item>),
    /// The first and the second time.
    Split(Vec<Item>, Vec<Item>),
}

/// The intervals, by [`Difference`] from the era to minutes.
type Intervals = [Interval; Difference::Second as usize];

/// How all ranges of a format are shown.
struct Plan {
    /// A single time.
    single: Vec<Item>,
    intervals: Intervals,
    /// The patterns of the date and of the time, where both are shown.
    date: Vec<Item>,
    time: Vec<Item>,
    glue: &'static str,
}

impl DateTimeFormat {
    /// A range by parts, each with the time that it is from; `None` where both times look the same.
    pub fn range(&self, from: &Moment, to: &Moment) -> Option<Vec<Ranged>> {
        let difference = difference(self.calendar, &self.local(from), &self.local(to));
        if difference == Difference::None {
            return None;
        }
        let plan = self.plan();
        let parts = match plan.intervals.get(difference as usize) {
            Some(Interval::Split(first, second)) => {
                let mut parts = self.parts_of(first, from);
                parts.extend(self.parts_of(second, to));
                parts
            }
            Some(Interval::Full(pattern)) => self.both(&plan, pattern, from, to, difference),
            _ if is_ignored(&plan.single, difference) => return None,
            _ => self.both(&plan, &plan.single, from, to, difference),
        };
        Some(sources(joined(parts)))
    }

    /// Both times by one pattern; of times on one day the date is shown once.
    fn both(&self, plan: &Plan, pattern: &[Item], from: &Moment, to: &Moment, difference: Difference) -> Vec<Part> {
        let is_same_day = difference > Difference::Day && !plan.date.is_empty() && !plan.time.is_empty();
        if !is_same_day {
            return self.fallback(pattern, from, to);
        }
        let mut parts = Vec::new();
        for piece in pieces(plan.glue) {
            match piece {
                Piece::Text(text) => parts.push(literal(text)),
                Piece::Argument(0) => parts.extend(self.fallback(&plan.time, from, to)),
                Piece::Argument(_) => parts.extend(self.parts_of(&plan.date, from)),
            }
        }
        parts
    }

    fn fallback(&self, pattern: &[Item], from: &Moment, to: &Moment) -> Vec<Part> {
        let mut parts = Vec::new();
        for piece in pieces(self.symbols.fallback()) {
            match piece {
                Piece::Text(text) => parts.push(literal(text)),
                Piece::Argument(number) => parts.extend(self.parts_of(pattern, if number == 0 { from } else { to })),
            }
        }
        parts
    }

    /// What `initializePattern` of ICU finds for the fields of the format.
    fn plan(&self) -> Plan {
        let generator = self.generator();
        let request = requested(&self.pattern);
        let (date, time): (Vec<Field>, Vec<Field>) =
            request.iter().filter(|field| has_interval(field)).partition(|field| !is_time(field.kind()));
        // Parts of the day are short with hours, unless they are narrow.
        let mut time = time;
        if time.iter().any(|field| field.kind() == Kind::Hour) {
            for field in time.iter_mut().filter(|field| field.letter == b'B' && field.count == 4) {
                field.count = 3;
            }
        }
        let [short_date, short_time] = [&date, &time].map(|part| normalized(part));
        let mut plan = Plan {
            single: generator.best_with_own_hours(&request),
            intervals: Intervals::default(),
            date: Vec::new(),
            time: Vec::new(),
            glue: self.symbols.glue(2),
        };
        let found = self.separate(&generator, &mut plan, &short_date, &short_time);
        let has = |kind: Kind| date.iter().any(|field| field.kind() == kind);
        match (date.is_empty(), time.is_empty()) {
            (true, false) => {
                // With the date.
                let mut whole = time;
                for field in whole.iter_mut().filter(|field| field.kind() == Kind::Hour) {
                    field.count = 1;
                }
                whole.extend([b'y', b'M', b'd'].map(|letter| Field { letter, count: 1 }));
                let pattern = generator.best_with_own_hours(&whole);
                for difference in [Difference::Day, Difference::Month, Difference::Year] {
                    plan.intervals[difference as usize] = Interval::Full(pattern.clone());
                }
                whole.push(Field { letter: b'G', count: 1 });
                plan.intervals[Difference::Era as usize] = Interval::Full(generator.best_with_own_hours(&whole));
            }
            (false, false) if found => {
                let mut whole = request.clone();
                for (kind, letter, difference) in [
                    (Kind::Day, b'd', Difference::Day),
                    (Kind::Month, b'M', Difference::Month),
                    (Kind::Year, b'y', Difference::Year),
                    (Kind::Era, b'G', Difference::Era),
                ] {
                    // Months that stand alone do not count.
                    if !has(kind) || kind == Kind::Month && !date.iter().any(|field| field.letter == b'M') {
                        whole.insert(0, Field { letter, count: 1 });
                        let pattern = generator.best_with_own_hours(&whole);
                        plan.intervals[difference as usize] = Interval::Full(pattern);
                    }
                }
                let date = generator.best_with_own_hours(&date);
                for difference in [Difference::Half, Difference::Hour, Difference::Minute] {
                    let interval = &mut plan.intervals[difference as usize];
                    if let Interval::Split(first, second) = interval {
                        let range: Vec<Item> = first.iter().chain(second.iter()).cloned().collect();
                        *interval = split(&glued(plan.glue, &[&range, &date]));
                    }
                }
            }
            _ => {}
        }
        plan
    }

    /// Takes the intervals from the nearest skeleton of CLDR; gives whether there is one with the same fields.
    fn separate(&self, generator: &Generator, plan: &mut Plan, date: &[Field], time: &[Field]) -> bool {
        let skeleton = if time.is_empty() { date } else { time };
        let Some((best, mut match_)) = self.best_skeleton(skeleton) else { return false };
        if !date.is_empty() {
            plan.date = generator.best_with_own_hours(date);
        }
        if !time.is_empty() {
            plan.time = generator.best_with_own_hours(time);
        }
        if match_ == Match::Other {
            return false;
        }
        let (mut skeleton, mut best) = (skeleton.to_vec(), best);
        if time.is_empty() {
            let steps =
                [(Difference::Day, b'd'), (Difference::Month, b'M'), (Difference::Year, b'y'), (Difference::Era, b'G')];
            for (difference, letter) in steps {
                let mut extended = None;
                let mut pattern = self.interval(&best, difference);
                let mut from = best.clone();
                if pattern.is_none() {
                    if is_ignored_in(best.iter().copied(), difference) {
                        continue;
                    }
                    let field = Field { letter, count: 1 };
                    let [more, more_best] = [&skeleton, &best].map(|fields| {
                        let mut fields = fields.clone();
                        fields.insert(0, field);
                        fields
                    });
                    pattern = self.interval(&more_best, difference);
                    from = more_best.clone();
                    if pattern.is_none()
                        && match_ == Match::Same
                        && let Some((nearest, how)) = self.best_skeleton(&more_best)
                    {
                        match_ = how;
                        if how != Match::Other {
                            pattern = self.interval(&nearest, difference);
                            from = nearest;
                        }
                    }
                    extended = Some((more, more_best));
                }
                if let Some(pattern) = pattern {
                    let wanted = extended.as_ref().map_or(&skeleton, |(more, _)| more);
                    plan.intervals[difference as usize] = split(&adjusted(parse(pattern), wanted, &from, match_));
                    if let Some((more, more_best)) = extended.filter(|_| difference != Difference::Day) {
                        (skeleton, best) = (more, more_best);
                    }
                }
            }
        } else {
            for difference in [Difference::Minute, Difference::Hour, Difference::Half] {
                let mut pattern = self.interval(&best, difference);
                if pattern.is_none()
                    && difference == Difference::Half
                    && !is_ignored_in(best.iter().copied(), difference)
                {
                    pattern = self.interval(&best, Difference::Hour);
                }
                if let Some(pattern) = pattern {
                    plan.intervals[difference as usize] = split(&adjusted(parse(pattern), &skeleton, &best, match_));
                }
            }
        }
        true
    }

    /// The interval pattern of a skeleton.
    fn interval(&self, skeleton: &[Field], difference: Difference) -> Option<&'static str> {
        let letters: &[&str] = match difference {
            Difference::Era => &["G"],
            Difference::Year => &["y"],
            Difference::Month => &["M"],
            Difference::Day => &["d"],
            Difference::Half => &["a", "B"],
            Difference::Hour => &["h", "H"],
            Difference::Minute => &["m"],
            _ => &[],
        };
        let wanted = widths(skeleton);
        let mut found = self.symbols.intervals().into_iter().filter_map(|(key, pattern)| {
            let (name, letter) = key.split_once('/')?;
            (letters.contains(&letter) && widths(&skeleton_fields(name)) == wanted).then_some(pattern)
        });
        found.next()
    }

    /// The nearest skeleton of an interval pattern.
    fn best_skeleton(&self, wanted: &[Field]) -> Option<(Vec<Field>, Match)> {
        let is_replaced = wanted.iter().any(|field| matches!(field.letter, b'z' | b'k' | b'K' | b'a' | b'b'));
        let letter = |field: &Field| match field.letter {
            b'z' => b'v',
            b'k' => b'H',
            b'K' => b'h',
            letter => letter,
        };
        let kept = wanted.iter().filter(|field| !matches!(field.letter, b'a' | b'b'));
        let wanted: Vec<Field> = kept.map(|field| Field { letter: letter(field), ..*field }).collect();
        let wanted = widths(&wanted);
        let mut best: Option<(i32, &str, Match)> = None;
        let mut last = "";
        for (key, _) in self.symbols.intervals() {
            let Some((name, _)) = key.split_once('/') else { continue };
            if name == last {
                continue;
            }
            last = name;
            let (mut distance, mut how) = (0, Match::Widths);
            for (at, (wanted, given)) in wanted.iter().zip(widths(&skeleton_fields(name))).enumerate() {
                let (wanted, given) = (i32::from(*wanted), i32::from(given));
                if wanted == given {
                    continue;
                }
                if wanted == 0 || given == 0 {
                    how = Match::Other;
                    distance += 0x1000;
                } else if at == usize::from(b'M' - b'A') && (wanted > 2) != (given > 2) {
                    distance += 0x100;
                } else {
                    distance += (wanted - given).abs();
                }
            }
            if best.is_none_or(|(least, ..)| distance < least) {
                best = Some((distance, name, if distance == 0 { Match::Same } else { how }));
            }
        }
        let (_, name, how) = best?;
        Some((skeleton_fields(name), if is_replaced && how != Match::Other { Match::Letters } else { how }))
    }
}

/// How a skeleton matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
    Same,
    /// Only lengths of fields differ.
    Widths,
    /// Letters for the same field differ, too.
    Letters,
    /// It has other fields.
    Other,
}

fn skeleton_fields(skeleton: &str) -> Vec<Field> {
    fields(&parse(skeleton)).collect()
}

/// The lengths of fields by letter, from `A` to `z`.
fn widths(fields: &[Field]) -> [u8; 58] {
    let mut out = [0; 58];
    for field in fields {
        if let Some(width) = out.get_mut(usize::from(field.letter.wrapping_sub(b'A'))) {
            *width += field.count;
        }
    }
    out
}

/// The fields that a pattern shows, as a request for it would have them: in order, the last of each kind.
fn requested(pattern: &[Item]) -> Vec<Field> {
    let mut out = [None; KINDS];
    for field in fields(pattern) {
        out[field.kind() as usize] = Some(field);
    }
    let is_half = |field: &Field| field.letter == b'a';
    out.into_iter().flatten().filter(|field| !is_half(field)).collect()
}

/// An interval pattern with fields as long as requested.
fn adjusted(mut pattern: Vec<Item>, wanted: &[Field], best: &[Field], how: Match) -> Vec<Item> {
    if how == Match::Same {
        return pattern;
    }
    let has = |letter: u8| wanted.iter().any(|field| field.letter == letter);
    let (wanted_widths, mut best_widths) = (widths(wanted), widths(best));
    let index = |letter: u8| usize::from(letter - b'A');
    for item in &mut pattern {
        let Item::Field(field) = item else { continue };
        if how == Match::Letters {
            field.letter = match field.letter {
                b'v' if has(b'z') => b'z',
                b'h' if has(b'K') => b'K',
                b'H' if has(b'k') => b'k',
                letter => letter,
            };
        }
        if field.letter == b'a' && best_widths[index(b'a')] == 0 {
            best_widths[index(b'a')] = 1;
        }
        let letter = if field.letter == b'L' { b'M' } else { field.letter };
        let (given, asked) = (best_widths[index(letter)], wanted_widths[index(letter)]);
        if given == field.count && asked > given {
            field.count = asked;
        }
    }
    pattern
}

/// An interval pattern in two: the first field that is there before begins the second one.
fn split(pattern: &[Item]) -> Interval {
    let mut seen = Vec::new();
    let mut last = 0;
    for (at, item) in pattern.iter().enumerate() {
        let Item::Field(field) = item else { continue };
        if seen.contains(&field.letter) && last != field.letter {
            let (first, second) = pattern.split_at(at);
            return Interval::Split(first.to_vec(), second.to_vec());
        }
        if last == field.letter {
            // Between two equal ones there is text.
            let (first, second) = pattern.split_at(at);
            return Interval::Split(first.to_vec(), second.to_vec());
        }
        seen.push(field.letter);
        last = field.letter;
    }
    Interval::Split(pattern.to_vec(), Vec::new())
}

/// A piece of a format with arguments.
enum Piece {
    Text(&'static str),
    Argument(usize),
}

fn pieces(format: &'static str) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut rest = format;
    while let Some((before, (argument, after))) =
        rest.split_once('{').and_then(|(before, after)| Some((before, after.split_once('}')?)))
    {
        if !before.is_empty() {
            out.push(Piece::Text(before));
        }
        out.push(Piece::Argument(argument.parse().unwrap_or_default()));
        rest = after;
    }
    if !rest.is_empty() {
        out.push(Piece::Text(rest));
    }
    out
}

fn literal(text: &str) -> Part {
    Part { kind: "literal", text: text.to_owned() }
}

/// Which time parts are from: what lies between the first and the last field that is there twice.
fn sources(parts: Vec<Part>) -> Vec<Ranged> {
    let mut spans: [Option<(usize, usize)>; 2] = [None, None];
    for (at, part) in parts.iter().enumerate().filter(|(_, part)| part.kind != "literal") {
        let again = parts.iter().enumerate().skip(at + 1).find(|(_, other)| other.kind == part.kind);
        let Some((again, _)) = again else { continue };
        for (span, at) in spans.iter_mut().zip([at, again]) {
            let (start, end) = span.unwrap_or((at, at));
            *span = Some((start.min(at), end.max(at)));
        }
    }
    let source = |at: usize| {
        let is_in = |span: Option<(usize, usize)>| span.is_some_and(|(start, end)| (start..=end).contains(&at));
        if is_in(spans[0]) {
            "startRange"
        } else if is_in(spans[1]) {
            "endRange"
        } else {
            "shared"
        }
    };
    parts.into_iter().enumerate().map(|(at, part)| (part, source(at))).collect()
}

/// Whether a pattern shows nothing as fine as this.
fn is_ignored(pattern: &[Item], difference: Difference) -> bool {
    is_ignored_in(fields(pattern), difference)
}

fn is_ignored_in(mut fields: impl Iterator<Item = Field>, difference: Difference) -> bool {
    let level = match difference {
        Difference::Era => 0,
        Difference::Year => 10,
        Difference::Month => 20,
        Difference::Day => 30,
        Difference::Half => 40,
        Difference::Hour => 50,
        Difference::Minute => 60,
        Difference::Second => 70,
        Difference::Ms | Difference::None => 80,
    };
    !fields.any(|field| self::level(field) >= level)
}

fn difference(calendar: Calendar, from: &Fields, to: &Fields) -> Difference {
    use Difference::*;
    let parts = |at: &Fields| {
        let ((era, year), half) = (calendar.era_year(at), at.hour / 12);
        [era as i64, year, at.month, at.day, half, at.hour, at.minute, at.second, at.ms]
    };
    let kinds = [Era, Year, Month, Day, Half, Hour, Minute, Second, Ms];
    let differs = parts(from).into_iter().zip(parts(to)).zip(kinds).find(|((from, to), _)| from != to);
    differs.map_or(None, |(_, kind)| kind)
}

/// The level of a field, from eras to milliseconds.
fn level(field: Field) -> i32 {
    match field.kind() {
        Kind::Era | Kind::Zone => 0,
        Kind::Year => 10,
        Kind::Month => 20,
        Kind::Weekday | Kind::Day => 30,
        Kind::DayPeriod if field.letter == b'a' => 40,
        Kind::DayPeriod => -1,
        Kind::Hour => 50,
        Kind::Minute => 60,
        Kind::Second => 70,
        Kind::Fraction => 80,
    }
}

fn is_time(kind: Kind) -> bool {
    kind >= Kind::DayPeriod
}

/// Fields as interval patterns have them.
fn normalized(fields: &[Field]) -> Vec<Field> {
    let short = |field: &Field| {
        let is_number = matches!(field.letter, b'M' | b'd' | b'h' | b'K' | b'H' | b'k' | b'm') && field.count <= 2;
        let is_one = is_number || matches!(field.letter, b'z' | b'v') || field.letter == b'E' && field.count <= 3;
        if is_one { Field { count: 1, ..*field } } else { *field }
    };
    fields.iter().map(short).collect()
}

/// Whether a field may be part of an interval pattern: offsets are not.
fn has_interval(field: &Field) -> bool {
    field.letter != b'O'
}

/// Parts with adjacent literals joined.
fn joined(parts: Vec<Part>) -> Vec<Part> {
    let mut out: Vec<Part> = Vec::new();
    for part in parts {
        match out.last_mut() {
            Some(last) if last.kind == "literal" && part.kind == "literal" => last.text.push_str(&part.text),
            _ => out.push(part),
        }
    }
    out
}
