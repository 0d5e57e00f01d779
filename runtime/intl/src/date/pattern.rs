//! The pattern of a locale for requested fields, by their distance to the fields of the patterns of CLDR (UTS 35, part
//! 4, "Matching Skeletons"). The order of the patterns is that of ICU, because of equal distances the
//! first one counts.
//!
//! bounded: by the patterns of a locale, and by a request that has a field of a kind once

use super::symbols::Symbols;

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

/// The number of kinds.
pub const KINDS: usize = Kind::Zone as usize + 1;
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
            b'E' | b'c' | b'e' => Kind::Weekday,
            b'd' => Kind::Day,
            b'a' | b'b' | b'B' => Kind::DayPeriod,
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
            b'e' => text - STEP,
            b'b' => text - STEP,
            b'B' => text - 3 * STEP,
            b'H' => number + 10 * STEP,
            b'k' => number + 11 * STEP,
            b'K' => number + STEP,
            b'v' => text - 2 * STEP,
            b'O' => text - STEP,
            b'z' => text,
            b'Z' if count == 4 => LONG - STEP,
            b'Z' if count == 5 => SHORT - STEP,
            b'Z' => NARROW - STEP,
            _ => number,
        }
    }

    /// The same with the least length of its form.
    fn base(self) -> Self {
        let count = match (self.letter, self.count) {
            (b'M' | b'L', 1 | 2) => 1,
            (b'M' | b'L' | b'c' | b'e', 3) => 3,
            (b'v' | b'z' | b'O', 4) => 4,
            (b'G' | b'M' | b'L' | b'E' | b'c' | b'e' | b'a' | b'b' | b'B', count @ 4..) => count,
            _ => 1,
        };
        Self { count, ..self }
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

/// A pattern of a locale.
#[derive(Clone, Debug)]
struct Known {
    skeleton: Skeleton,
    pattern: Vec<Item>,
    /// Its fields in their shortest form, by which ICU orders patterns.
    base: Vec<Field>,
    /// Whether CLDR names its fields, which else are those of the pattern.
    is_named: bool,
}

/// The patterns of a locale and a calendar.
#[derive(Debug)]
pub struct Generator {
    known: Vec<Known>,
    /// How fields are appended, by kind, and their names.
    append: Vec<(&'static str, &'static str)>,
    /// How date and time are joined: full, long, medium, short.
    glue: [&'static str; 4],
    decimal: &'static str,
}

/// The names of [`Kind`]s in `append/…` and `fields/…`; CLDR has none for some.
const APPENDED: [(&str, &str); KINDS] = [
    ("Era", "era"),
    ("Year", "year"),
    ("Month", "month"),
    ("Day-Of-Week", "weekday"),
    ("Day", "day"),
    ("", "dayperiod"),
    ("Hour", "hour"),
    ("Minute", "minute"),
    ("Second", "second"),
    ("", ""),
    ("Timezone", "zone"),
];

impl Generator {
    /// The patterns of a locale.
    pub fn new(symbols: &Symbols) -> Self {
        let mut this = Self { known: Vec::new(), append: Vec::new(), glue: [""; 4], decimal: symbols.decimal };
        for letter in *b"GyMEdaHmsSv" {
            this.add(vec![Item::Field(Field { letter, count: 1 })], None);
        }
        for style in 0..4 {
            this.add(parse(symbols.date_style(style)), None);
            this.add(parse(symbols.time_style(style)), None);
            this.glue[style] = symbols.glue_at(style);
        }
        for (skeleton, pattern) in symbols.available() {
            this.add(parse(pattern), Some(skeleton));
        }
        // Those of a letter follow each other, in the order in which they were added.
        this.known.sort_by_key(|known| known.base.first().map_or(0, |field| field.letter));
        for (kind, (append, field)) in APPENDED.into_iter().enumerate() {
            let format = if append.is_empty() { "" } else { symbols.append(append) };
            let name = if field.is_empty() { "" } else { symbols.field_name(field) };
            let format = if format.is_empty() { "{0} \u{251c}{2}: {1}\u{2524}" } else { format };
            this.append.push((format, if name.is_empty() && kind == Kind::Fraction as usize { "F14" } else { name }));
        }
        this
    }

    /// Adds a pattern, unless what there is comes first.
    fn add(&mut self, pattern: Vec<Item>, named: Option<&str>) {
        let is_named = named.is_some();
        let skeleton = match named {
            Some(text) => Skeleton::from_fields(fields(&parse(text))),
            None => Skeleton::from_fields(fields(&pattern)),
        };
        let own = skeleton.fields.iter().enumerate().filter_map(|(kind, field)| Some((kind, (*field)?)));
        let added = |kind: usize| kind == Kind::DayPeriod as usize && skeleton.has_added_period;
        let base: Vec<Field> = own.filter(|&(kind, _)| !added(kind)).map(|(_, field)| field.base()).collect();
        if base.is_empty() || !is_named && self.known.iter().any(|known| known.base == base) {
            return;
        }
        let is_same = |known: &Known| known.base == base && known.skeleton.grades() == skeleton.grades();
        let new = Known { skeleton, pattern, base: base.clone(), is_named };
        match self.known.iter_mut().find(|known| is_same(known)) {
            Some(known) if known.is_named => {}
            Some(known) => *known = new,
            None => self.known.push(new),
        }
    }

    /// The pattern for these fields.
    pub fn best(&self, request: &[Field]) -> Vec<Item> {
        self.assembled(&Skeleton::from_fields(request.iter().copied()))
    }

    /// The pattern for these fields, with hours as long as the pattern has them.
    pub fn best_with_own_hours(&self, request: &[Field]) -> Vec<Item> {
        self.assembled(&Skeleton { own_hours: true, ..Skeleton::from_fields(request.iter().copied()) })
    }

    fn assembled(&self, wanted: &Skeleton) -> Vec<Item> {
        let all = wanted.mask();
        let Some((known, missing)) = self.nearest(wanted, all) else { return Vec::new() };
        if missing == 0 && known.skeleton.mask() & !all == 0 {
            return merged(wanted.adjusted(known.pattern.clone(), known));
        }
        let date = self.appended(wanted, all & !TIME);
        let time = self.appended(wanted, all & TIME);
        if date.is_empty() || time.is_empty() {
            return merged(if date.is_empty() { time } else { date });
        }
        let style = match wanted.fields[Kind::Month as usize].map(|field| field.count) {
            Some(4) if wanted.fields[Kind::Weekday as usize].is_some() => 0,
            Some(4) => 1,
            Some(3) => 2,
            _ => 3,
        };
        joined(self.glue[style], &[&time, &date])
    }

    /// The nearest pattern for the fields in the mask, and which of them are missing in it.
    fn nearest(&self, wanted: &Skeleton, mask: u16) -> Option<(&Known, u16)> {
        // Of two at the same distance the one that lacks later fields, else the first one.
        let ranked = self.known.iter().map(|known| (wanted.distance(&known.skeleton, mask), known));
        let best = ranked.min_by_key(|&((distance, missing), _)| (distance, std::cmp::Reverse(missing)));
        best.map(|((_, missing), known)| (known, missing))
    }

    /// The nearest pattern for the fields in the mask; more patterns are appended where some are missing.
    fn appended(&self, wanted: &Skeleton, mask: u16) -> Vec<Item> {
        if mask == 0 {
            return Vec::new();
        }
        let Some((known, mut missing)) = self.nearest(wanted, mask) else { return Vec::new() };
        let mut pattern = wanted.adjusted(known.pattern.clone(), known);
        let [second, fraction] = [Kind::Second, Kind::Fraction].map(|kind| 1_u16 << kind as usize);
        let mut last = 0;
        while missing != 0 && missing != last {
            if missing & (second | fraction) == fraction && mask & (second | fraction) == second | fraction {
                let is_second = |item: &Item| matches!(item, Item::Field(field) if field.kind() == Kind::Second);
                if let (Some(at), Some(field)) =
                    (pattern.iter().position(is_second), wanted.fields[Kind::Fraction as usize])
                {
                    pattern.splice(at + 1..at + 1, [Item::Literal(self.decimal.into()), Item::Field(field)]);
                }
                missing &= !fraction;
                continue;
            }
            let start = missing;
            let Some((more, still)) = self.nearest(wanted, missing) else { break };
            missing = still;
            let found = start & !missing;
            let kind = 15_u32.saturating_sub(found.leading_zeros()) as usize;
            let more = wanted.adjusted(more.pattern.clone(), more);
            if let Some(&(format, name)) = self.append.get(kind).filter(|_| found != 0) {
                let name = Item::Literal(name.into());
                pattern = joined(format, &[&pattern, &more, &[name]]);
            }
            // As in ICU, one pattern is appended, and the rest is left out.
            last = missing;
        }
        pattern
    }
}

/// The fields of a request or of a pattern, by kind.
#[derive(Clone, Copy, Debug, Default)]
struct Skeleton {
    fields: [Option<Field>; KINDS],
    /// Whether hours have the length of the pattern, not of the request.
    own_hours: bool,
    /// Whether the field of the half day was added to the hours.
    has_added_period: bool,
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
            Some(b'h' | b'K') if period.is_none() => {
                *period = Some(Field { letter: b'a', count: 1 });
                this.has_added_period = true;
            }
            Some(b'H' | b'k') => *period = None,
            _ => {}
        }
        this
    }

    fn mask(&self) -> u16 {
        self.fields.iter().enumerate().map(|(kind, field)| u16::from(field.is_some()) << kind).sum()
    }

    fn grades(&self) -> [i32; KINDS] {
        self.fields.map(|field| field.map_or(0, Field::grade))
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

    /// A pattern with fields of the requested length.
    fn adjusted(&self, mut pattern: Vec<Item>, known: &Known) -> Vec<Item> {
        for item in &mut pattern {
            let Item::Field(field) = item else { continue };
            let kind = field.kind();
            let Some(wanted) = self.fields[kind as usize] else { continue };
            let keeps_length = match kind {
                Kind::Minute | Kind::Second => true,
                Kind::Hour if self.own_hours => true,
                _ if !known.is_named => false,
                _ => {
                    let given = known.skeleton.fields[kind as usize].map_or(0, |field| field.count);
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
}

/// A pattern with the arguments in the places of `{0}`, `{1}`, ….
pub fn joined(format: &str, arguments: &[&[Item]]) -> Vec<Item> {
    let mut out = Vec::new();
    let mut rest = format;
    while let Some((before, (argument, after))) =
        rest.split_once('{').and_then(|(before, after)| Some((before, after.split_once('}')?)))
    {
        out.extend(parse(before));
        let number = argument.parse().ok().and_then(|number: usize| arguments.get(number));
        out.extend(number.into_iter().flat_map(|items| items.iter().cloned()));
        rest = after;
    }
    out.extend(parse(rest));
    merged(out)
}

/// A pattern as CLDR writes it.
pub fn parse(text: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let mut is_quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let is_letter = match c {
            '\'' if chars.next_if_eq(&'\'').is_none() => {
                is_quoted = !is_quoted;
                continue;
            }
            _ => c.is_ascii_alphabetic() && !is_quoted,
        };
        // The year of a week beside a day and a month is a mistake, which German of Switzerland has.
        let c = if is_letter && c == 'Y' { 'y' } else { c };
        match items.last_mut() {
            Some(Item::Field(field)) if is_letter && c == char::from(field.letter) => field.count += 1,
            _ if is_letter => items.push(Item::Field(Field { letter: c as u8, count: 1 })),
            Some(Item::Literal(text)) => text.push(c),
            _ => items.push(Item::Literal(c.into())),
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
pub fn merged(pattern: Vec<Item>) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::new();
    for item in pattern {
        match (out.last_mut(), item) {
            (Some(Item::Literal(text)), Item::Literal(more)) => text.push_str(&more),
            (_, item) => out.push(item),
        }
    }
    out
}
