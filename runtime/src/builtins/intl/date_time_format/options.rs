//! The options of a format: reading and resolving them, and `resolvedOptions`.

use super::pattern::{Field, Item, Kind, best, fields, parse};
use crate::builtins::intl::zone::Zone;
use crate::builtins::intl::{canonical_locales, choice, flag, number, option, options, resolved};
use crate::thrown::Result;
use crate::value::Value;
use crate::vm::Vm;

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

/// A value of `resolvedOptions`.
pub enum Resolved {
    /// A string.
    Text(String),
    /// A boolean.
    Flag(bool),
    /// A number.
    Number(u8),
}

const SERVICE: &str = "Intl.DateTimeFormat";
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
    ("dayPeriod", &[("BBBBB", "narrow"), ("BBBB", "long"), ("B", "short")]),
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
        let locale = resolved(vm, locales)?.tag(|_, _| false);
        let tags = canonical_locales(vm, locales)?;
        let given = options(vm, given)?;
        for (name, message) in [("calendar", "Invalid calendar"), ("numberingSystem", "Invalid numberingSystem")] {
            let value = option(vm, given, name)?;
            if !value.is_undefined() {
                let text = crate::builtins::intl::word(vm, value)?;
                let is_type = text
                    .split('-')
                    .all(|part| (3..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric()));
                if !is_type {
                    return Err(vm.range_error(&format!("{message} : {text}")));
                }
            }
        }
        let hour12 = flag(vm, given, "hour12")?;
        let hour_cycle = choice(vm, given, SERVICE, "hourCycle", CYCLES)?;
        let in_locale = || {
            let tag = tags.first()?;
            // bounded: a word
            CYCLES.iter().position(|cycle| tag.contains("-u-") && tag.contains(&format!("-hc-{cycle}")))
        };
        let cycle = match hour12 {
            Some(true) => 1,
            Some(false) => 3,
            None => hour_cycle.or_else(in_locale).unwrap_or(1),
        };
        let zone = option(vm, given, "timeZone")?;
        let zone = if zone.is_undefined() {
            Zone::utc()
        } else {
            let name = crate::builtins::intl::word(vm, zone)?;
            match Zone::find(&name) {
                Some(zone) => zone,
                None => return Err(vm.range_error(&format!("Invalid time zone specified: {name}"))),
            }
        };
        let mut request = Vec::new(); // bounded: by FIELDS
        let mut explicit = None;
        for &(name, kind, words, letters) in FIELDS {
            let field = if kind == Kind::Fraction {
                number(vm, given, name, (1.0, 3.0))?.map(|count| Field { letter: b'S', count: count as u8 })
            } else {
                let index = choice(vm, given, SERVICE, name, words)?;
                index.and_then(|index| fields(&parse(letters[index])).next())
            };
            if let Some(mut field) = field {
                explicit.get_or_insert(name);
                if kind == Kind::Hour {
                    field.letter = LETTERS[cycle];
                }
                request.push(field);
            }
        }
        _ = choice(vm, given, SERVICE, "formatMatcher", &["best fit", "basic"])?;
        let styles =
            [choice(vm, given, SERVICE, "dateStyle", STYLES)?, choice(vm, given, SERVICE, "timeStyle", STYLES)?];
        let pattern = if styles == [None, None] {
            complete(&mut request, wanted, LETTERS[cycle]);
            best(&request)
        } else {
            if let Some(name) = explicit {
                let style = if styles[0].is_some() { "dateStyle" } else { "timeStyle" };
                return Err(vm.type_error(&format!("Can't set option {name} when {style} is used")));
            }
            match (wanted, styles) {
                (Wanted::Date, [_, Some(_)]) => return Err(vm.type_error("Invalid option : timeStyle")),
                (Wanted::Time, [Some(_), _]) => return Err(vm.type_error("Invalid option : dateStyle")),
                _ => {}
            }
            styled(styles, cycle)
        };
        let has_hour = styles[1].is_some() || request.iter().any(|field| field.kind() == Kind::Hour);
        let locale = match in_locale() {
            Some(own) if hour12.is_none() && hour_cycle.is_none_or(|cycle| cycle == own) => {
                format!("{locale}-u-hc-{}", CYCLES[own]) // bounded: a locale that there is
            }
            _ => locale,
        };
        let hour_cycle = has_hour.then_some(cycle as u8);
        Ok(Self { locale, zone, pattern, styles, hour_cycle, function: Value::UNDEFINED })
    }

    /// What `resolvedOptions` says, in its order.
    pub fn resolved(&self) -> Vec<(&'static str, Resolved)> {
        let text = |text: &str| Resolved::Text(text.into());
        // bounded: by the table below
        let mut out = vec![
            ("locale", text(&self.locale)),
            ("calendar", text("gregory")),
            ("numberingSystem", text("latn")),
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
                if name == "second"
                    && let Some(field) = fields(&self.pattern).find(|field| field.kind() == Kind::Fraction)
                {
                    out.push(("fractionalSecondDigits", Resolved::Number(field.count)));
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
fn styled([date, time]: [Option<usize>; 2], cycle: usize) -> Vec<Item> {
    let date_text = date.map_or("", |style| ["EEEE, MMMM d, y", "MMMM d, y", "MMM d, y", "M/d/yy"][style]);
    let time_text = time.map_or("", |style| match cycle {
        0 | 1 => ["h:mm:ss~a zzzz", "h:mm:ss~a z", "h:mm:ss~a", "h:mm~a"][style],
        _ => ["HH:mm:ss zzzz", "HH:mm:ss z", "HH:mm:ss", "HH:mm"][style],
    });
    let glue = match (date, time) {
        (Some(0 | 1), Some(_)) => " 'at' ",
        (Some(_), Some(_)) => ", ",
        _ => "",
    };
    let mut pattern = parse(&format!("{date_text}{glue}{time_text}")); // bounded: by the longest styles
    for item in &mut pattern {
        if let Item::Field(field) = item
            && field.kind() == Kind::Hour
        {
            field.letter = LETTERS[cycle];
        }
    }
    pattern
}
