//! The options of a date format: plain data, what they resolve to, and `resolvedOptions`.
//!
//! bounded: by a pattern, and by the table of fields

use super::calendar::{self, Calendar};
use super::pattern::{Field, Generator, Item, Kind, fields, joined, parse};
use super::symbols::Symbols;
use crate::locale::{Available, Resolved as Requested, digits, numbering_system};
use crate::zone::{self, Zone};
use std::sync::Arc;

/// The default fields, where the options name none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// `toLocaleDateString`: the date, of which a field is required.
    Date,
    /// `toLocaleTimeString`: the time, of which a field is required.
    Time,
    /// `toLocaleString`: both.
    Any,
    /// A format: the date.
    Format,
}

/// The options that choose the calendar, the digits and the clock of a format beside its locale.
#[derive(Clone, Debug, Default)]
pub struct Preferences {
    /// The option `calendar`, of the form of a type.
    pub calendar: Option<String>,
    /// The option `numberingSystem`, of the form of a type.
    pub numbering: Option<String>,
    /// The option `hour12`.
    pub hour12: Option<bool>,
    /// The option `hourCycle`, an index of [`CYCLES`].
    pub hour_cycle: Option<usize>,
}

/// The first half of the options, resolved: calendar, digits and clock of a locale.
#[derive(Clone, Debug)]
pub struct Conventions {
    requested: Requested,
    preferences: Preferences,
    calendar: Calendar,
    numbering: &'static str,
    digits: [char; 10],
    /// An index of [`CYCLES`].
    cycle: usize,
    /// Whether the calendar and the numbering system of the tag are used.
    tag_calendar: bool,
    tag_numbering: bool,
}

/// The second half of the options.
#[derive(Clone, Debug)]
pub struct Request {
    /// The zone.
    pub zone: Zone,
    /// The fields that are asked for.
    pub fields: Vec<Field>,
    /// `dateStyle` and `timeStyle`, indices of [`STYLES`].
    pub styles: [Option<usize>; 2],
}

/// A date format.
#[derive(Clone, Debug)]
pub struct DateTimeFormat {
    /// The resolved locale.
    locale: String,
    /// The name of its data.
    data: &'static str,
    /// Its patterns and names.
    pub(super) symbols: Symbols,
    /// How it names zones.
    pub(super) zone_names: zone::Locale,
    pub(super) calendar: Calendar,
    numbering: &'static str,
    /// The digits of the numbering system.
    pub(super) digits: [char; 10],
    pub(super) zone: Zone,
    /// What is shown.
    pub(super) pattern: Vec<Item>,
    /// The indices of `dateStyle` and `timeStyle` among [`STYLES`].
    styles: [Option<usize>; 2],
    hour_cycle: Option<u8>,
}

/// A value of `resolvedOptions`.
pub enum Resolved {
    /// A string.
    Text(String),
    /// A boolean.
    Flag(bool),
    /// A number.
    Number(u8),
}

/// The values of the options `dateStyle` and `timeStyle`.
pub const STYLES: &[&str] = &["full", "long", "medium", "short"];
const TEXTS: &[&str] = &["narrow", "short", "long"];
const NUMBERS: &[&str] = &["2-digit", "numeric"];
const ZONES: &[&str] = &["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"];
/// The values of the option `hourCycle`.
pub const CYCLES: &[&str] = &["h11", "h12", "h23", "h24"];
const LETTERS: [u8; 4] = *b"KhHk";

/// The fields in the order in which they are read: options, words of their values, and the letters of these. The number of
/// digits of seconds has no words.
const FIELDS: &[(&str, Kind, &[&str], &[&str])] = &[
    ("weekday", Kind::Weekday, TEXTS, &["EEEEE", "EEE", "EEEE"]),
    ("era", Kind::Era, TEXTS, &["GGGGG", "GGG", "GGGG"]),
    ("year", Kind::Year, NUMBERS, &["yy", "y"]),
    ("month", Kind::Month, &["2-digit", "numeric", "narrow", "short", "long"], &["MM", "M", "MMMMM", "MMM", "MMMM"]),
    ("day", Kind::Day, NUMBERS, &["dd", "d"]),
    ("dayPeriod", Kind::DayPeriod, TEXTS, &["BBBBB", "B", "BBBB"]),
    ("hour", Kind::Hour, NUMBERS, &["hh", "h"]),
    ("minute", Kind::Minute, NUMBERS, &["mm", "m"]),
    ("second", Kind::Second, NUMBERS, &["ss", "s"]),
    ("fractionalSecondDigits", Kind::Fraction, &[], &[]),
    ("timeZoneName", Kind::Zone, ZONES, &["z", "zzzz", "O", "OOOO", "v", "vvvv"]),
];

/// The options that `resolvedOptions` derives from the fields of a pattern.
const RESOLVED: &[(&str, &[(&str, &str)])] = &[
    (
        "weekday",
        &[
            ("EEEEE", "narrow"),
            ("EEEE", "long"),
            ("EEE", "short"),
            ("ccccc", "narrow"),
            ("cccc", "long"),
            ("ccc", "short"),
        ],
    ),
    ("era", &[("GGGGG", "narrow"), ("GGGG", "long"), ("GGG", "short")]),
    ("year", &[("yy", "2-digit"), ("y", "numeric")]),
    (
        "month",
        &[
            ("MMMMM", "narrow"),
            ("MMMM", "long"),
            ("MMM", "short"),
            ("MM", "2-digit"),
            ("M", "numeric"),
            ("LLLLL", "narrow"),
            ("LLLL", "long"),
            ("LLL", "short"),
            ("LL", "2-digit"),
            ("L", "numeric"),
        ],
    ),
    ("day", &[("dd", "2-digit"), ("d", "numeric")]),
    (
        "dayPeriod",
        &[("BBBBB", "narrow"), ("bbbbb", "narrow"), ("BBBB", "long"), ("bbbb", "long"), ("B", "short"), ("b", "short")],
    ),
    (
        "hour",
        &[
            ("HH", "2-digit"),
            ("H", "numeric"),
            ("hh", "2-digit"),
            ("h", "numeric"),
            ("kk", "2-digit"),
            ("k", "numeric"),
            ("KK", "2-digit"),
            ("K", "numeric"),
        ],
    ),
    ("minute", &[("mm", "2-digit"), ("m", "numeric")]),
    ("second", &[("ss", "2-digit"), ("s", "numeric")]),
    (
        "timeZoneName",
        &[
            ("zzzz", "long"),
            ("z", "short"),
            ("OOOO", "longOffset"),
            ("O", "shortOffset"),
            ("vvvv", "longGeneric"),
            ("v", "shortGeneric"),
        ],
    ),
];

/// An option that asks for a field.
#[derive(Clone, Copy, Debug)]
pub struct FieldOption {
    /// Its name.
    pub name: &'static str,
    /// Its values; none for the number of digits of seconds.
    pub words: &'static [&'static str],
    kind: Kind,
    letters: &'static [&'static str],
}

/// The options that ask for fields, in the order in which they are read.
pub fn field_options() -> impl Iterator<Item = FieldOption> {
    FIELDS.iter().map(|&(name, kind, words, letters)| FieldOption { name, words, kind, letters })
}

impl FieldOption {
    /// The field of a value: an index of its words, or the number of digits.
    pub fn field(&self, conventions: &Conventions, value: usize) -> Option<Field> {
        if self.kind == Kind::Fraction {
            return Some(Field { letter: b'S', count: value as u8 });
        }
        let mut field = fields(&parse(self.letters.get(value)?)).next()?;
        if self.kind == Kind::Hour {
            field.letter = LETTERS[conventions.cycle];
        }
        Some(field)
    }
}

/// A pattern as CLDR writes it, without quotes.
fn pattern_text(pattern: &[Item]) -> String {
    let mut text = String::new();
    for item in pattern {
        match item {
            Item::Literal(literal) => text.push_str(literal),
            Item::Field(field) => text.extend(std::iter::repeat_n(char::from(field.letter), field.count.into())),
        }
    }
    text
}

impl Conventions {
    /// Those of the requested locale; the name of the calendar where dates cannot be shown in it.
    pub fn new(requested: Requested, preferences: Preferences) -> Result<Self, &'static str> {
        let in_locale = requested.keyword("hc").and_then(cycle_of);
        let default = in_locale.or_else(|| cycle_of(requested.locale.hour_cycle)).unwrap_or(1);
        let is_odd = default == 0 || default == 2;
        let cycle = match preferences.hour12 {
            Some(true) => usize::from(!is_odd),
            Some(false) => {
                if is_odd {
                    2
                } else {
                    3
                }
            }
            None => preferences.hour_cycle.unwrap_or(default),
        };
        let Extensions { calendar, numbering, tag_calendar, tag_numbering } =
            extensions(&requested, preferences.calendar.as_deref(), preferences.numbering.as_deref());
        let calendar = Calendar::find(calendar, requested.locale.data).ok_or(calendar)?;
        let digits = digits(numbering).unwrap_or(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
        Ok(Self { requested, preferences, calendar, numbering, digits, cycle, tag_calendar, tag_numbering })
    }
}

impl DateTimeFormat {
    /// The format of the options; `wanted` has the default fields.
    pub fn new(conventions: Conventions, request: Request, wanted: Wanted) -> Self {
        let Conventions { requested, preferences, calendar, numbering, digits, cycle, tag_calendar, tag_numbering } =
            conventions;
        let Request { zone, mut fields, styles } = request;
        let Available { data, .. } = requested.locale;
        let symbols = Symbols::new(data, calendar, numbering);
        let pattern = if styles == [None, None] {
            complete(&mut fields, wanted, LETTERS[cycle]);
            with_cycle(symbols.generator(data).best(&fields), cycle)
        } else {
            styled(&symbols, data, styles, cycle)
        };
        let has_hour = styles[1].is_some() || fields.iter().any(|field| field.kind() == Kind::Hour);
        let is_default = preferences.hour12.is_none() && preferences.hour_cycle.is_none();
        let locale = requested.tag(|key, value| match key {
            "ca" => tag_calendar,
            "nu" => tag_numbering,
            "hc" => cycle_of(value).is_some_and(|own| is_default || has_hour && own == cycle),
            _ => false,
        });
        Self {
            locale,
            data,
            symbols,
            zone_names: zone::Locale::new(data, digits),
            calendar,
            numbering,
            digits,
            zone,
            pattern,
            styles,
            hour_cycle: has_hour.then_some(cycle as u8),
        }
    }

    /// Its zone.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// Whether it shows the name of the zone.
    pub fn names_zone(&self) -> bool {
        fields(&self.pattern).any(|field| field.kind() == Kind::Zone)
    }

    /// Bytes of each allocation of its pattern.
    pub fn allocations(&self) -> impl Iterator<Item = usize> {
        let texts = self.pattern.iter().filter_map(|item| match item {
            Item::Literal(text) => Some(text.capacity()),
            Item::Field(_) => None,
        });
        std::iter::once(self.pattern.capacity() * size_of::<Item>()).chain(texts)
    }

    /// The patterns of the locale.
    pub fn generator(&self) -> Arc<Generator> {
        self.symbols.generator(self.data)
    }

    /// The members of the result of `resolvedOptions`, in their order.
    pub fn resolved(&self) -> Vec<(&'static str, Resolved)> {
        let text = |text: &str| Resolved::Text(text.into());
        let mut out = vec![
            ("locale", text(&self.locale)),
            ("calendar", text(self.calendar.name())),
            ("numberingSystem", text(self.numbering)),
            ("timeZone", text(self.zone.name)),
        ];
        if let Some(cycle) = self.hour_cycle {
            out.push(("hourCycle", text(CYCLES[usize::from(cycle)])));
            out.push(("hour12", Resolved::Flag(cycle < 2)));
        }
        if self.styles == [None, None] {
            // As in V8, the fields are searched in the text of the pattern, quoted words included.
            let pattern = pattern_text(&self.pattern);
            for &(name, letters) in RESOLVED {
                if let Some(&(_, word)) = letters.iter().find(|(letters, _)| pattern.contains(letters)) {
                    out.push((name, text(word)));
                }
                let count = pattern.matches('S').count().min(3);
                if name == "second" && count > 0 {
                    out.push(("fractionalSecondDigits", Resolved::Number(count as u8)));
                }
            }
        }
        for (name, style) in ["dateStyle", "timeStyle"].into_iter().zip(self.styles) {
            out.extend(style.map(|style| (name, text(STYLES[style]))));
        }
        out
    }
}

/// The default fields, if none of the relevant ones was requested.
fn complete(request: &mut Vec<Field>, wanted: Wanted, hour: u8) {
    let is_date = |kind: Kind| matches!(kind, Kind::Weekday | Kind::Year | Kind::Month | Kind::Day);
    let is_time =
        |kind: Kind| matches!(kind, Kind::DayPeriod | Kind::Hour | Kind::Minute | Kind::Second | Kind::Fraction);
    let (dates, times) = (wanted != Wanted::Time, wanted != Wanted::Date);
    if request.iter().any(|field| dates && is_date(field.kind()) || times && is_time(field.kind())) {
        return;
    }
    let one = |letter| Field { letter, count: 1 };
    if dates {
        request.extend([b'y', b'M', b'd'].map(one));
    }
    if matches!(wanted, Wanted::Time | Wanted::Any) {
        request.extend([hour, b'm', b's'].map(one));
    }
}

/// The pattern of `dateStyle` and `timeStyle`.
fn styled(symbols: &Symbols, data: &'static str, [date, time]: [Option<usize>; 2], cycle: usize) -> Vec<Item> {
    let date_pattern = date.map(|style| parse(symbols.date_style(style)));
    let Some(style) = time else { return date_pattern.unwrap_or_default() };
    let mut pattern = parse(symbols.time_style(style));
    if let Some((date, date_pattern)) = date.zip(date_pattern) {
        pattern = joined(symbols.glue_at(date), &[&pattern, &date_pattern]);
    }
    let hour = fields(&pattern).find(|field| field.kind() == Kind::Hour);
    if hour.is_none_or(|hour| hour.letter == LETTERS[cycle]) {
        return pattern;
    }
    // Another one for the same fields.
    let is_kept = |field: &Field| !matches!(field.letter, b'a' | b'b' | b'B');
    let mut request: Vec<Field> = fields(&pattern).filter(is_kept).collect();
    for field in request.iter_mut().filter(|field| field.kind() == Kind::Hour) {
        field.letter = LETTERS[cycle];
    }
    with_cycle(symbols.generator(data).best(&request), cycle)
}

/// A pattern with hours of this cycle, which a space separates from a day before.
fn with_cycle(pattern: Vec<Item>, cycle: usize) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::new();
    for item in pattern {
        match item {
            Item::Field(field) if field.kind() == Kind::Hour => {
                if matches!(out.last(), Some(Item::Field(Field { letter: b'd', .. }))) {
                    out.push(Item::Literal(" ".into()));
                }
                out.push(Item::Field(Field { letter: LETTERS[cycle], ..field }));
            }
            item => out.push(item),
        }
    }
    out
}

/// The index of a word among [`CYCLES`].
fn cycle_of(word: &str) -> Option<usize> {
    CYCLES.iter().position(|&cycle| cycle == word)
}

/// The keywords of a tag and the options of a format together.
struct Extensions {
    calendar: &'static str,
    numbering: &'static str,
    /// Whether the calendar and the numbering system of the tag are used.
    tag_calendar: bool,
    tag_numbering: bool,
}

fn extensions(requested: &Requested, calendar: Option<&str>, numbering: Option<&str>) -> Extensions {
    let known_calendar = |name: &str| {
        let name = match name {
            "islamicc" => "islamic-civil",
            "ethiopic-amete-alem" => "ethioaa",
            name => name,
        };
        calendar::NAMES.iter().copied().find(|known| known.eq_ignore_ascii_case(name))
    };
    let in_tag = |key: &str, option: Option<&str>| {
        // An option replaces what is in the tag, also one that is unknown.
        let value = requested.keyword(key)?;
        option.is_none_or(|option| option == value).then_some(value)
    };
    let tag_calendar = in_tag("ca", calendar).and_then(known_calendar);
    let tag_numbering = in_tag("nu", numbering).and_then(numbering_system);
    let locale = requested.locale;
    Extensions {
        calendar: calendar.and_then(known_calendar).or(tag_calendar).unwrap_or(locale.calendar),
        numbering: numbering.and_then(numbering_system).or(tag_numbering).unwrap_or(locale.numbering),
        tag_calendar: tag_calendar.is_some(),
        tag_numbering: tag_numbering.is_some(),
    }
}
