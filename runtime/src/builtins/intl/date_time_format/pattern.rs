//! The pattern of en-US for requested fields, by the distance between them and the fields of the patterns of CLDR (UTS
//! 35, part 4, "Matching Skeletons").
//!
//! bounded: by the tables of patterns, and by a request that has a field of a kind once

use std::sync::LazyLock;

/// A kind of field, in the order of significance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// `AD`
    Era,
    /// `2024`
    Year,
    /// `January`
    Month,
    /// `Monday`
    Weekday,
    /// `31`
    Day,
    /// `AM`, `at night`
    DayPeriod,
    /// `12`
    Hour,
    /// `59`
    Minute,
    /// `59`
    Second,
    /// `999`
    Fraction,
    /// `UTC`
    Zone,
}

const KINDS: usize = Kind::Zone as usize + 1;
const FIRST_OF_TIME: usize = Kind::DayPeriod as usize;
const TIME: u16 = !0 << FIRST_OF_TIME;

/// A letter of a pattern, and how often it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// As in patterns of CLDR.
    pub letter: u8,
    /// How often.
    pub count: u8,
}

impl Field {
    /// What it shows.
    pub fn kind(self) -> Kind {
        match self.letter {
            b'G' => Kind::Era,
            b'y' => Kind::Year,
            b'M' | b'L' => Kind::Month,
            b'E' | b'c' => Kind::Weekday,
            b'd' => Kind::Day,
            b'a' | b'B' => Kind::DayPeriod,
            b'h' | b'H' | b'k' | b'K' => Kind::Hour,
            b'm' => Kind::Minute,
            b's' => Kind::Second,
            b'S' => Kind::Fraction,
            _ => Kind::Zone,
        }
    }

    /// Its value on the scale of distances: positive for numbers, negative for texts.
    fn grade(self) -> i32 {
        const NARROW: i32 = -0x101;
        const SHORT: i32 = -0x103;
        const LONG: i32 = -0x104;
        const STEP: i32 = 0x10;
        let count = i32::from(self.count);
        let text = match count {
            ..=3 => SHORT,
            4 => LONG,
            _ => NARROW,
        };
        let number = 0x100 + count;
        match self.letter {
            b'M' if count < 3 => number,
            b'L' if count < 3 => number + STEP,
            b'G' | b'M' | b'E' | b'a' => text,
            b'L' => text - STEP,
            b'c' => text - 2 * STEP,
            b'B' => text - 3 * STEP,
            b'H' => number + 10 * STEP,
            b'k' => number + 11 * STEP,
            b'K' => number + STEP,
            b'v' => text - 2 * STEP,
            b'O' => text - STEP,
            b'z' => text,
            _ => number,
        }
    }

    fn is_number(self) -> bool {
        self.grade() > 0
    }
}

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Text as it is.
    Literal(String),
    /// The value of a field.
    Field(Field),
}

/// The patterns of en-US by what they show; `~` is a narrow no-break space. Of equally near ones, the one that lacks
/// less significant fields is taken, then the first.
const PATTERNS: &[(&str, &str)] = &[
    ("Bh", "h B"),
    ("Bhm", "h:mm B"),
    ("Bhms", "h:mm:ss B"),
    ("E", "ccc"),
    ("EBh", "E h B"),
    ("EBhm", "E h:mm B"),
    ("EBhms", "E h:mm:ss B"),
    ("Ed", "d E"),
    ("Eh", "E h~a"),
    ("EHm", "E HH:mm"),
    ("EHms", "E HH:mm:ss"),
    ("Ehm", "E h:mm~a"),
    ("Ehms", "E h:mm:ss~a"),
    ("G", "G"),
    ("Gy", "y G"),
    ("GyM", "M/y G"),
    ("GyMd", "M/d/y G"),
    ("GyMEd", "E, M/d/y G"),
    ("GyMMM", "MMM y G"),
    ("GyMMMd", "MMM d, y G"),
    ("GyMMMEd", "E, MMM d, y G"),
    ("H", "HH"),
    ("Hm", "HH:mm"),
    ("Hms", "HH:mm:ss"),
    ("Hmsv", "HH:mm:ss v"),
    ("Hmv", "HH:mm v"),
    ("Hv", "HH'h' v"),
    ("M", "L"),
    ("MEd", "E, M/d"),
    ("MMM", "LLL"),
    ("MMMEd", "E, MMM d"),
    ("MMMMd", "MMMM d"),
    ("MMMd", "MMM d"),
    ("Md", "M/d"),
    ("S", "S"),
    ("a", "a"),
    ("d", "d"),
    ("h", "h~a"),
    ("hm", "h:mm~a"),
    ("hms", "h:mm:ss~a"),
    ("hmsv", "h:mm:ss~a v"),
    ("hmv", "h:mm~a v"),
    ("hv", "h~a v"),
    ("m", "m"),
    ("ms", "mm:ss"),
    ("s", "s"),
    ("v", "v"),
    ("y", "y"),
    ("yyMd", "M/d/yy"),
    ("yMMMMEEEEd", "EEEE, MMMM d, y"),
    ("yMMMMd", "MMMM d, y"),
    ("yMMMd", "MMM d, y"),
    ("yM", "M/y"),
    ("yMEd", "E, M/d/y"),
    ("yMMM", "MMM y"),
    ("yMMMEd", "E, MMM d, y"),
    ("yMMMM", "MMMM y"),
    ("yMd", "M/d/y"),
];

/// The same, read once a process.
static KNOWN: LazyLock<Vec<(Skeleton, Vec<Item>)>> = LazyLock::new(|| {
    let known = |&(skeleton, pattern): &(&str, &str)| (Skeleton::from_fields(fields(&parse(skeleton))), parse(pattern));
    PATTERNS.iter().map(known).collect()
});

/// The fields of a request or of a pattern, by kind.
#[derive(Clone, Copy, Default)]
struct Skeleton {
    fields: [Option<Field>; KINDS],
    /// Whether hours have the length of the pattern, not of the request.
    own_hours: bool,
}

impl Skeleton {
    fn from_fields(fields: impl Iterator<Item = Field>) -> Self {
        let mut this = Self::default();
        for field in fields {
            this.fields[field.kind() as usize] = Some(field);
        }
        let has = |kind: Kind| this.fields[kind as usize].is_some();
        if has(Kind::Minute) && has(Kind::Fraction) && !has(Kind::Second) {
            this.fields[Kind::Second as usize] = Some(Field { letter: b's', count: 1 });
        }
        // Only hours of half days have the field for the half.
        let hour = this.fields[Kind::Hour as usize].map(|hour| hour.letter);
        let period = &mut this.fields[Kind::DayPeriod as usize];
        match hour {
            Some(b'h' | b'K') => _ = period.get_or_insert(Field { letter: b'a', count: 1 }),
            Some(_) => *period = None,
            None => {}
        }
        this
    }

    fn mask(&self) -> u16 {
        self.fields.iter().enumerate().map(|(kind, field)| u16::from(field.is_some()) << kind).sum()
    }

    /// The distance of a pattern from the requested fields in the mask, and which of them it lacks.
    fn distance(&self, pattern: &Self, mask: u16) -> (i32, u16) {
        let (mut distance, mut missing) = (0, 0);
        for (kind, (wanted, given)) in self.fields.iter().zip(&pattern.fields).enumerate() {
            let wanted = wanted.filter(|_| mask & 1 << kind != 0);
            match (wanted, given) {
                (None, None) => {}
                (None, Some(_)) => distance += 0x10000,
                (Some(_), None) => {
                    distance += 0x1000;
                    missing |= 1 << kind;
                }
                (Some(wanted), Some(given)) => distance += (wanted.grade() - given.grade()).abs(),
            }
        }
        (distance, missing)
    }

    /// The nearest pattern, and which fields are missing in it.
    fn nearest(&self, mask: u16) -> (Vec<Item>, u16) {
        // Of two at the same distance the one that lacks later fields, else the first one.
        let ranked = KNOWN.iter().map(|(skeleton, pattern)| (self.distance(skeleton, mask), skeleton, pattern));
        let best = ranked.min_by_key(|&((distance, missing), ..)| (distance, std::cmp::Reverse(missing)));
        let Some(((_, missing), skeleton, pattern)) = best else { return (Vec::new(), 0) };
        (self.adjusted(pattern.clone(), skeleton), missing)
    }

    /// A pattern with fields of the requested length.
    fn adjusted(&self, mut pattern: Vec<Item>, skeleton: &Self) -> Vec<Item> {
        for item in &mut pattern {
            let Item::Field(field) = item else { continue };
            let kind = field.kind();
            let Some(wanted) = self.fields[kind as usize] else { continue };
            let keeps_length = match kind {
                Kind::Minute | Kind::Second => true,
                Kind::Hour if self.own_hours => true,
                _ => {
                    let given = skeleton.fields[kind as usize].map_or(0, |field| field.count);
                    given == wanted.count || field.is_number() != wanted.is_number()
                }
            };
            if !keeps_length {
                field.count = wanted.count;
            }
            if !matches!(kind, Kind::Month | Kind::Weekday | Kind::Year) {
                field.letter = wanted.letter;
            }
        }
        pattern
    }

    /// The nearest pattern for the fields in the mask; one more pattern is appended where some are missing.
    fn appended(&self, mask: u16) -> Vec<Item> {
        let (mut pattern, mut missing) = self.nearest(mask);
        let [second, fraction] = [Kind::Second, Kind::Fraction].map(|kind| 1_u16 << kind as usize);
        if missing & (second | fraction) == fraction && mask & self.mask() & second != 0 {
            let is_second = |item: &Item| matches!(item, Item::Field(field) if field.kind() == Kind::Second);
            if let (Some(at), Some(field)) = (pattern.iter().position(is_second), self.fields[Kind::Fraction as usize])
            {
                pattern.splice(at + 1..at + 1, [Item::Literal(".".into()), Item::Field(field)]);
            }
            missing &= !fraction;
        }
        if missing == 0 {
            return pattern;
        }
        let (more, still) = self.nearest(missing);
        let found = missing & !still;
        let (before, after) = append_format(15_u32.saturating_sub(found.leading_zeros()) as usize);
        pattern.push(Item::Literal(before.into()));
        pattern.extend(more);
        if !after.is_empty() {
            pattern.push(Item::Literal(after.into()));
        }
        pattern
    }
}

/// What stands before and after a field that is appended.
fn append_format(kind: usize) -> (&'static str, &'static str) {
    match kind {
        2 => (" (month: ", ")"),
        4 => (" (day: ", ")"),
        5 => (" \u{251c}AM/PM: ", "\u{2524}"),
        6 => (" (hour: ", ")"),
        7 => (" (minute: ", ")"),
        8 => (" (second: ", ")"),
        9 => (" \u{251c}F14: ", "\u{2524}"),
        _ => (" ", ""),
    }
}

/// The pattern for these fields.
pub fn best(request: &[Field]) -> Vec<Item> {
    assembled(Skeleton::from_fields(request.iter().copied()))
}

/// The pattern for these fields, with hours as long as the pattern has them.
pub fn best_with_own_hours(request: &[Field]) -> Vec<Item> {
    assembled(Skeleton { own_hours: true, ..Skeleton::from_fields(request.iter().copied()) })
}

fn assembled(skeleton: Skeleton) -> Vec<Item> {
    let all = skeleton.mask();
    let (pattern, missing) = skeleton.nearest(all);
    if missing == 0 && fields(&pattern).all(|field| all & 1 << field.kind() as usize != 0) {
        return merged(pattern);
    }
    merged(match (all & !TIME != 0, all & TIME != 0) {
        (true, true) => {
            let mut pattern = skeleton.appended(all & !TIME);
            let is_long = matches!(skeleton.fields[Kind::Month as usize], Some(Field { count: 4, .. }));
            pattern.push(Item::Literal(if is_long { " at " } else { ", " }.into()));
            pattern.extend(skeleton.appended(all & TIME));
            pattern
        }
        (is_date, _) => skeleton.appended(if is_date { all & !TIME } else { all & TIME }),
    })
}

/// A pattern as CLDR writes it.
pub fn parse(text: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let mut is_quoted = false;
    for c in text.chars() {
        match (c, items.last_mut()) {
            ('\'', _) => is_quoted = !is_quoted,
            (c, Some(Item::Field(field))) if !is_quoted && c == char::from(field.letter) => field.count += 1,
            (c, _) if !is_quoted && c.is_ascii_alphabetic() => {
                items.push(Item::Field(Field { letter: c as u8, count: 1 }));
            }
            (c, last) => {
                let c = if c == '~' { '\u{202f}' } else { c };
                match last {
                    Some(Item::Literal(text)) => text.push(c),
                    _ => items.push(Item::Literal(c.into())),
                }
            }
        }
    }
    items
}

/// The fields of a pattern.
pub fn fields(pattern: &[Item]) -> impl Iterator<Item = Field> + '_ {
    pattern.iter().filter_map(|item| match item {
        Item::Field(field) => Some(*field),
        Item::Literal(_) => None,
    })
}

/// A pattern with adjacent literals joined.
fn merged(pattern: Vec<Item>) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::new();
    for item in pattern {
        match (out.last_mut(), item) {
            (Some(Item::Literal(text)), Item::Literal(more)) => text.push_str(&more),
            (_, item) => out.push(item),
        }
    }
    out
}
