//! Time zones: their offsets, from the bundled database, and their names in English.
//!
//! `zones.txt` is written by `tests/node/zones.mjs`, which describes it.
//!
//! bounded: by the longest line of `zones.txt`; what names a zone is a word, see [`super::word`]

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
pub enum Style {
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
    for line in include_str!("zones.txt").lines() {
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

    /// The name of the zone at a time.
    pub fn name_at(&self, time: f64, style: Style) -> String {
        let offset = self.offset(time);
        let minute = (time / MINUTE).floor();
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
        match if is_long { long } else { short } {
            "" => offset_text(offset, is_long),
            name => name.to_owned(),
        }
    }
}

/// `GMT-05:00` or `GMT-5`
fn offset_text(offset: i32, is_long: bool) -> String {
    let sign = if offset < 0 { '-' } else { '+' };
    let (hours, minutes, seconds) = (offset.abs() / 3600, offset.abs() / 60 % 60, offset.abs() % 60);
    let mut text = if is_long { format!("GMT{sign}{hours:02}") } else { format!("GMT{sign}{hours}") };
    if is_long || minutes > 0 || seconds > 0 {
        text.push_str(&format!(":{minutes:02}"));
    }
    if seconds > 0 {
        text.push_str(&format!(":{seconds:02}"));
    }
    text
}
