//! Time zones: their offsets, from the bundled database, and their names.
//!
//! `data/zones.txt` has the names in English by time; `tests/node/zones.mjs` writes and describes it. The names of other
//! locales are found by the English ones.
//!
//! bounded: by the longest line of `zones.txt`, and by the name of a zone

use super::locale::with_digits;
use super::pack::ZONES;
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use std::collections::HashMap;
use std::sync::LazyLock;

/// A time zone.
#[derive(Clone, Debug)]
pub struct Zone {
    /// Its canonical name.
    pub name: &'static str,
    rules: TimeZone,
    names: &'static Names,
}

/// How a zone is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// `EST`
    Short,
    /// `Eastern Standard Time`
    Long,
    /// `GMT-5`
    ShortOffset,
    /// `GMT-05:00`
    LongOffset,
    /// `ET`
    ShortGeneric,
    /// `Eastern Time`
    LongGeneric,
}

impl Style {
    /// That of a field of a pattern (UTS 35).
    fn of(letter: u8, count: u8) -> Self {
        match (letter, count) {
            (b'z', 4) => Self::Long,
            (b'O', 4) => Self::LongOffset,
            (b'O', _) => Self::ShortOffset,
            (b'v', 4) => Self::LongGeneric,
            (b'v', _) => Self::ShortGeneric,
            _ => Self::Short,
        }
    }
}

/// The last millisecond of the year 9999, and the first one of the year -9999: what the database covers.
const LAST: f64 = 253_402_300_799_999.0;
const FIRST: f64 = -377_705_023_200_000.0;
/// Milliseconds of 400 years, after which days of the week and rules repeat.
const CYCLE: f64 = 146_097.0 * 86_400_000.0;
const MINUTE: f64 = 60_000.0;

/// The names of one zone.
#[derive(Debug, Default)]
struct Names {
    /// From a minute on: offset in minutes and pair of names.
    periods: Vec<(f64, Vec<(i32, usize)>)>,
    /// From a minute on: pair of generic names.
    generic: Vec<(f64, Option<usize>)>,
}

struct Table {
    /// Long and short names; empty where the offset is shown instead.
    pairs: Vec<(&'static str, &'static str)>,
    /// By name in lower case: the canonical name, and its own.
    zones: HashMap<String, (&'static str, &'static str)>,
    names: HashMap<&'static str, Names>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table { pairs: Vec::new(), zones: HashMap::new(), names: HashMap::new() };
    for line in include_str!("data/zones.txt").lines() {
        if let Some(pair) = line.strip_prefix('=') {
            table.pairs.push(pair.split_once(';').unwrap_or((pair, "")));
        } else if let Some((alias, zone)) = line.split_once('>') {
            table.zones.insert(alias.to_ascii_lowercase(), (zone, alias));
        } else if let Some((zone, periods)) = line.split_once('|') {
            table.zones.insert(zone.to_ascii_lowercase(), (zone, zone));
            table.names.entry(zone).or_default().periods = periods.split('|').map(period).collect();
        } else if let Some((zone, periods)) = line.split_once('~') {
            let generic = |text: &str| {
                let (from, pair) = text.split_once(',').unwrap_or((text, ""));
                (from.parse().unwrap_or(f64::NEG_INFINITY), pair.parse().ok())
            };
            table.names.entry(zone).or_default().generic = periods.split('~').map(generic).collect();
        }
    }
    table
});

fn period(text: &str) -> (f64, Vec<(i32, usize)>) {
    let mut parts = text.split(',');
    let from = parts.next().and_then(|from| from.parse().ok()).unwrap_or(f64::NEG_INFINITY);
    let pair = |part: &str| {
        let (offset, pair) = part.split_once('=')?;
        Some((offset.parse().ok()?, pair.parse().ok()?))
    };
    (from, parts.filter_map(pair).collect())
}

impl Zone {
    /// Why a zone is not found although there is one of its name: all are here.
    pub const LIMITS: Option<&'static str> = None;

    /// The zone of a name, in whatever case.
    pub fn find(name: &str) -> Option<Self> {
        let &(canonical, own) = TABLE.zones.get(&name.to_ascii_lowercase())?;
        let names = TABLE.names.get(canonical)?;
        let database = TimeZoneDatabase::bundled();
        let rules = match canonical {
            "UTC" => TimeZone::UTC,
            _ => database.get(own).or_else(|_| database.get(canonical)).ok()?,
        };
        Some(Self { name: canonical, rules, names })
    }

    /// The default zone.
    pub fn utc() -> Self {
        static NONE: Names = Names { periods: Vec::new(), generic: Vec::new() };
        let names = TABLE.names.get("UTC").unwrap_or(&NONE);
        Self { name: "UTC", rules: TimeZone::UTC, names }
    }

    /// Seconds that clocks are ahead of UTC at a time, which must be finite.
    pub fn offset(&self, time: f64) -> i32 {
        let covered = if time > LAST - CYCLE { time - ((time - LAST) / CYCLE + 1.0).ceil() * CYCLE } else { time };
        let stamp = Timestamp::from_millisecond(covered.max(FIRST) as i64).unwrap_or(Timestamp::MIN);
        self.rules.to_offset(stamp).seconds()
    }

    /// The name of the zone at a time, as a field of a pattern asks for it.
    pub fn name_at(&self, time: f64, (letter, count): (u8, u8), locale: &Locale) -> String {
        let style = Style::of(letter, count);
        let offset = self.offset(time);
        let minute = (time / MINUTE).floor();
        let is_generic = matches!(style, Style::ShortGeneric | Style::LongGeneric);
        let pair = match style {
            Style::ShortOffset | Style::LongOffset => None,
            Style::Short | Style::Long => {
                // Behind the year 9999 only UTC has its name.
                let is_named = time <= LAST || self.name == "UTC";
                let period = self.names.periods.iter().rev().find(|(from, _)| is_named && *from <= minute);
                let named = period.and_then(|(_, names)| names.iter().find(|(at, _)| at * 60 == offset));
                named.map(|&(_, pair)| pair)
            }
            Style::ShortGeneric | Style::LongGeneric => {
                // The first one names the zone, as is done where there is nothing else.
                let minute = if time > LAST { f64::NEG_INFINITY } else { minute };
                self.names.generic.iter().rev().find(|(from, _)| *from <= minute).and_then(|&(_, pair)| pair)
            }
        };
        let (long, short) = pair.and_then(|pair| TABLE.pairs.get(pair).copied()).unwrap_or_default();
        let is_long = matches!(style, Style::Long | Style::LongOffset | Style::LongGeneric);
        if locale.data == "en" {
            return match if is_long { long } else { short } {
                "" => locale.offset_text(offset, is_long),
                name => name.to_owned(),
            };
        }
        let width = if is_long { "long" } else { "short" };
        let (base, is_partial) = match long.split_once(" (") {
            Some((base, _)) => (base, true),
            None => (long, false),
        };
        let named = locale.name(&format!("{width}/{base}")).filter(|_| !base.is_empty());
        match named {
            Some(name) if is_partial => {
                let place = locale.place(self.name).unwrap_or_default();
                locale.text("fallback").replace("{0}", &place).replace("{1}", name)
            }
            Some(name) => name.to_owned(),
            None => match locale.place(self.name).filter(|_| is_generic && pair.is_some()) {
                Some(place) => locale.text("region").replace("{0}", &place),
                None => locale.offset_text(offset, is_long),
            },
        }
    }
}

/// How a locale names zones.
#[derive(Clone, Debug)]
pub struct Locale {
    /// The name of its data. It is unpacked when a zone is named: most formats name none.
    data: &'static str,
    digits: [char; 10],
}

impl Locale {
    /// By the name of the data of the locale.
    pub fn new(data: &'static str, digits: [char; 10]) -> Self {
        Self { data, digits }
    }

    fn name(&self, key: &str) -> Option<&'static str> {
        ZONES.get(self.data, key)
    }

    /// The text of a key that all locales have.
    fn text(&self, key: &str) -> &'static str {
        self.name(key).unwrap_or_default()
    }

    /// The place that stands for a zone.
    fn place(&self, zone: &str) -> Option<String> {
        let key = self.name(&format!("place/{zone}"))?;
        // A city without a name has that of the zone.
        let own = || key.rsplit('/').next().filter(|_| key.starts_with("city/")).map(|name| name.replace('_', " "));
        self.name(key).map(str::to_owned).or_else(own)
    }

    /// `GMT-05:00` or `GMT-5`
    fn offset_text(&self, offset: i32, is_long: bool) -> String {
        let formats = self.text("hours").split_once(';').unwrap_or_default();
        let format = if offset < 0 { formats.1 } else { formats.0 };
        let (hours, minutes, seconds) = (offset.abs() / 3600, offset.abs() / 60 % 60, offset.abs() % 60);
        let (prefix, rest) = format.split_at(format.find('H').unwrap_or(format.len()));
        let (separator, suffix) = rest.trim_start_matches('H').split_once("mm").unwrap_or_default();
        let number = |number: i32, least: usize| with_digits(&format!("{number:0least$}"), &self.digits);
        let mut text = format!("{prefix}{}", number(hours, if is_long { 2 } else { 1 }));
        // As in ICU, a format of hours ends behind them.
        if is_long || minutes > 0 || seconds > 0 {
            text += &format!("{separator}{}", number(minutes, 2));
            if seconds > 0 {
                text += &format!("{separator}{}", number(seconds, 2));
            }
            text += suffix;
        }
        self.text("gmt").replace("{0}", &text)
    }
}
