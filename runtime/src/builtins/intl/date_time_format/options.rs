//! The options of a format: reading and resolving them, and `resolvedOptions`.

use super::calendar::{self, Calendar};
use super::pattern::{Field, Generator, Item, Kind, fields, joined, parse};
use super::symbols::Symbols;
use crate::builtins::intl::locale::{Resolved as Requested, by_bytes, digits, numbering_system};
use crate::builtins::intl::zone::{self, Zone};
use crate::builtins::intl::{MATCHERS, choice, flag, number, option, options, resolved, word};
use crate::heap::block;
use crate::thrown::Result;
use crate::value::Value;
use crate::vm::Vm;
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
    /// `Intl.DateTimeFormat`: the date.
    Format,
}

/// An `Intl.DateTimeFormat`.
#[derive(Clone, Debug)]
pub struct DateTimeFormat {
    /// The resolved locale.
    locale: String,
    /// The name of its data.
    data: &'static str,
    /// Its patterns and names.
    pub symbols: Symbols,
    /// How it names zones.
    pub zone_names: zone::Locale,
    /// The calendar.
    pub calendar: Calendar,
    numbering: &'static str,
    /// The digits of the numbering system.
    pub digits: [char; 10],
    /// Its zone.
    pub zone: Zone,
    /// What is shown.
    pub pattern: Vec<Item>,
    /// The indices of `dateStyle` and `timeStyle` among [`STYLES`].
    pub styles: [Option<usize>; 2],
    hour_cycle: Option<u8>,
    /// The function of `format`, once it was read.
    pub function: Value,
}

impl DateTimeFormat {
    /// Bytes of its pattern.
    pub fn cost(&self) -> usize {
        let texts = self.pattern.iter().map(|item| match item {
            Item::Literal(text) => block(text.capacity()),
            Item::Field(_) => 0,
        });
        block(self.pattern.capacity() * size_of::<Item>()) + texts.sum::<usize>()
    }
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

impl Wanted {
    /// The name of the service in messages.
    fn service(self) -> &'static str {
        match self {
            Self::Date => "Date.prototype.toLocaleDateString",
            Self::Time => "Date.prototype.toLocaleTimeString",
            Self::Any => "Date.prototype.toLocaleString",
            Self::Format => "Intl.DateTimeFormat",
        }
    }

    /// The style that it cannot have.
    fn other_style(self) -> Option<&'static str> {
        match self {
            Self::Date => Some("timeStyle"),
            Self::Time => Some("dateStyle"),
            Self::Any | Self::Format => None,
        }
    }
}

const STYLES: &[&str] = &["full", "long", "medium", "short"];
const TEXTS: &[&str] = &["narrow", "short", "long"];
const NUMBERS: &[&str] = &["2-digit", "numeric"];
const ZONES: &[&str] = &["short", "long", "shortOffset", "longOffset", "shortGeneric", "longGeneric"];
const CYCLES: &[&str] = &["h11", "h12", "h23", "h24"];
const LETTERS: [u8; 4] = *b"KhHk";

/// The fields in the order in which they are read, with the letters of their values.
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

/// A pattern as CLDR writes it, without quotes.
fn pattern_text(pattern: &[Item]) -> String {
    let mut text = String::new(); // bounded: by a pattern
    for item in pattern {
        match item {
            Item::Literal(literal) => text.push_str(literal),
            Item::Field(field) => text.extend(std::iter::repeat_n(char::from(field.letter), field.count.into())),
        }
    }
    text
}

impl DateTimeFormat {
    /// Reads the arguments of a constructor (ECMA-402 11.1.2).
    pub fn read(vm: &mut Vm, locales: Value, given: Value, wanted: Wanted) -> Result<Self> {
        let given = options(vm, given)?;
        if let Some(name) = wanted.other_style()
            && !option(vm, given, name)?.is_undefined()
        {
            return Err(vm.type_error(&format!("Invalid option : {name}"))); // bounded: a name of ours
        }
        let requested = resolved(vm, locales)?;
        let service = wanted.service();
        choice(vm, given, service, "localeMatcher", MATCHERS)?;
        // As in V8, the case of a calendar does not matter, and that of a numbering system does.
        let calendar = type_option(vm, given, "calendar", "Invalid calendar")?.map(|name| name.to_ascii_lowercase());
        let numbering = type_option(vm, given, "numberingSystem", "Invalid numberingSystem")?;
        let hour12 = flag(vm, given, "hour12")?;
        let hour_cycle = choice(vm, given, service, "hourCycle", CYCLES)?;
        let in_locale = requested.keyword("hc").and_then(cycle_of);
        let default = in_locale.or_else(|| cycle_of(requested.locale.hour_cycle)).unwrap_or(1);
        let is_odd = default == 0 || default == 2;
        let cycle = match hour12 {
            Some(true) => usize::from(!is_odd),
            Some(false) => {
                if is_odd {
                    2
                } else {
                    3
                }
            }
            None => hour_cycle.unwrap_or(default),
        };
        let Extensions { calendar, numbering, tag_calendar, tag_numbering } =
            extensions(&requested, calendar.as_deref(), numbering.as_deref());
        let data = requested.locale.data;
        let Some(calendar) = Calendar::find(calendar, data) else {
            let tag = requested.locale.tag;
            // bounded: names of a calendar and of a locale
            let message = format!(
                "Dates of '{tag}' in the calendar '{calendar}' are not supported; give the option calendar: 'gregory'"
            );
            return Err(vm.range_error(&message));
        };
        let symbols = Symbols::new(data, calendar, numbering);
        let digits = digits(numbering).unwrap_or(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
        let zone_names = zone::Locale::new(data, digits);
        let zone = option(vm, given, "timeZone")?;
        let zone = if zone.is_undefined() {
            Zone::utc()
        } else {
            let name = word(vm, zone)?;
            match Zone::find(&name) {
                Some(zone) => zone,
                None => {
                    let limits = Zone::LIMITS.map(|limits| format!("; {limits}")).unwrap_or_default(); // bounded: a constant
                    return Err(vm.range_error(&format!("Invalid time zone specified: {name}{limits}"))); // bounded: a word
                }
            }
        };
        let mut request = Vec::new(); // bounded: by FIELDS
        let mut explicit = None;
        for &(name, kind, words, letters) in FIELDS {
            let field = if kind == Kind::Fraction {
                number(vm, given, name, (1.0, 3.0))?.map(|count| Field { letter: b'S', count: count as u8 })
            } else {
                let index = choice(vm, given, service, name, words)?;
                index.and_then(|index| fields(&parse(letters[index])).next())
            };
            if let Some(mut field) = field {
                if kind != Kind::Fraction {
                    explicit.get_or_insert(name);
                }
                if kind == Kind::Hour {
                    field.letter = LETTERS[cycle];
                }
                request.push(field);
            }
        }
        _ = choice(vm, given, service, "formatMatcher", &["best fit", "basic"])?;
        let styles =
            [choice(vm, given, service, "dateStyle", STYLES)?, choice(vm, given, service, "timeStyle", STYLES)?];
        let pattern = if styles == [None, None] {
            complete(&mut request, wanted, LETTERS[cycle]);
            with_cycle(symbols.generator(data).best(&request), cycle)
        } else {
            // V8 names the digits of seconds last.
            let fraction =
                || request.iter().any(|field| field.kind() == Kind::Fraction).then_some("fractionalSecondDigits");
            if let Some(name) = explicit.or_else(fraction) {
                let style = if styles[0].is_some() { "dateStyle" } else { "timeStyle" };
                return Err(vm.type_error(&format!("Can't set option {name} when {style} is used")));
            }
            styled(&symbols, data, styles, cycle)
        };
        if let Some(limits) = Zone::LIMITS
            && fields(&pattern).any(|field| field.kind() == Kind::Zone)
        {
            return Err(vm.range_error(&format!("The name of the time zone is not available: {limits}"))); // bounded: a constant
        }
        let has_hour = styles[1].is_some() || request.iter().any(|field| field.kind() == Kind::Hour);
        let is_default = hour12.is_none() && hour_cycle.is_none();
        let tag = requested.tag(|key, value| match key {
            "ca" => tag_calendar,
            "nu" => tag_numbering,
            "hc" => cycle_of(value).is_some_and(|own| is_default || has_hour && own == cycle),
            _ => false,
        });
        let hour_cycle = has_hour.then_some(cycle as u8);
        let function = Value::UNDEFINED;
        Ok(Self {
            locale: tag,
            data,
            symbols,
            zone_names,
            calendar,
            numbering,
            digits,
            zone,
            pattern,
            styles,
            hour_cycle,
            function,
        })
    }

    /// The patterns of the locale.
    pub fn generator(&self) -> Arc<Generator> {
        self.symbols.generator(self.data)
    }

    /// What `resolvedOptions` says, in its order.
    pub fn resolved(&self) -> Vec<(&'static str, Resolved)> {
        let text = |text: &str| Resolved::Text(text.into());
        // bounded: by the table below
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
    // bounded: by a pattern
    let mut request: Vec<Field> = fields(&pattern).filter(is_kept).collect();
    for field in request.iter_mut().filter(|field| field.kind() == Kind::Hour) {
        field.letter = LETTERS[cycle];
    }
    with_cycle(symbols.generator(data).best(&request), cycle)
}

/// A pattern with hours of this cycle, which a space separates from a day before.
fn with_cycle(pattern: Vec<Item>, cycle: usize) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::new(); // bounded: by a pattern
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

/// An option that is a type of an extension of a tag: it may be one that nobody knows.
fn type_option(vm: &mut Vm, given: Value, name: &str, message: &str) -> Result<Option<String>> {
    let value = option(vm, given, name)?;
    if value.is_undefined() {
        return Ok(None);
    }
    let text = word(vm, value)?;
    let is_part = |part: &str| (3..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !text.split('-').all(is_part) {
        let text = by_bytes(&text);
        return Err(vm.range_error(&format!("{message} : {text}"))); // bounded: a word
    }
    Ok(Some(text))
}

/// What a tag and the options of a format have together.
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
