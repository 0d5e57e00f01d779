//! Calendars: the names that `Intl.DateTimeFormat` knows, and the fields of a day in shown ones.

use super::Fields;

/// A calendar that dates can be shown in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calendar {
    /// As in `Date`.
    Gregorian,
    /// The same with years from 543 BC.
    Buddhist,
    /// The Solar Hijri calendar of Iran.
    Persian,
}

/// The calendars of Node.
pub const NAMES: &[&str] = &[
    "buddhist",
    "chinese",
    "coptic",
    "dangi",
    "ethioaa",
    "ethiopic",
    "gregory",
    "hebrew",
    "indian",
    "islamic",
    "islamic-civil",
    "islamic-rgsa",
    "islamic-tbla",
    "islamic-umalqura",
    "iso8601",
    "japanese",
    "persian",
    "roc",
];

impl Calendar {
    /// The calendar of a name, if there are patterns of it in a locale.
    pub fn find(name: &str, data: &str) -> Option<Self> {
        match (name, data.split('-').next()) {
            ("gregory", _) => Some(Self::Gregorian),
            ("buddhist", Some("th")) => Some(Self::Buddhist),
            ("persian", Some("fa")) => Some(Self::Persian),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gregorian => "gregory",
            Self::Buddhist => "buddhist",
            Self::Persian => "persian",
        }
    }

    /// The prefix of its patterns and eras in the pack.
    pub fn patterns(self) -> &'static str {
        match self {
            Self::Gregorian => "gregorian",
            Self::Buddhist => "buddhist",
            Self::Persian => "persian",
        }
    }

    /// The prefix of its patterns by fields.
    pub fn available(self) -> &'static str {
        match self {
            Self::Gregorian => "gregorian/available/",
            Self::Buddhist => "buddhist/available/",
            Self::Persian => "persian/available/",
        }
    }

    /// The prefix of its patterns of ranges.
    pub fn intervals(self) -> &'static str {
        match self {
            Self::Gregorian => "gregorian/interval/",
            Self::Buddhist => "buddhist/interval/",
            Self::Persian => "persian/interval/",
        }
    }

    /// Whose names of months it has in the pack.
    pub fn months(self) -> &'static str {
        match self {
            Self::Gregorian | Self::Buddhist => "gregorian",
            Self::Persian => "persian",
        }
    }

    /// The index of the era, and the year in it.
    pub fn era_year(self, at: &Fields) -> (usize, i64) {
        match self {
            Self::Gregorian if at.year > 0 => (1, at.year),
            Self::Gregorian => (0, 1 - at.year),
            Self::Buddhist | Self::Persian => (0, at.year),
        }
    }

    /// The fields of a time in this calendar, from those in the Gregorian one; `days` are from 1970-01-01.
    pub fn fields(self, at: Fields, days: i64) -> Fields {
        match self {
            Self::Gregorian => at,
            Self::Buddhist => Fields { year: at.year + 543, ..at },
            Self::Persian => {
                let (year, month, day) = persian(days);
                Fields { year, month, day, ..at }
            }
        }
    }
}

/// Julian day numbers of 1970-01-01 and of the first day of the Persian calendar.
const UNIX: i64 = 2_440_588;
const PERSIAN: i64 = 1_948_320;

/// Years that the leap rule of 33 years makes leap years and observation does not; the next one is one.
const MOVED: [i64; 78] = [
    1502, 1601, 1634, 1667, 1700, 1733, 1766, 1799, 1832, 1865, 1898, 1931, 1964, 1997, 2030, 2059, 2063, 2096, 2129,
    2158, 2162, 2191, 2195, 2224, 2228, 2257, 2261, 2290, 2294, 2323, 2327, 2356, 2360, 2389, 2393, 2422, 2426, 2455,
    2459, 2488, 2492, 2521, 2525, 2554, 2558, 2587, 2591, 2620, 2624, 2653, 2657, 2686, 2690, 2719, 2723, 2748, 2752,
    2756, 2781, 2785, 2789, 2818, 2822, 2847, 2851, 2855, 2880, 2884, 2888, 2913, 2917, 2921, 2946, 2950, 2954, 2979,
    2983, 2987,
];

/// Year, month from 0 and day from 1 in the Persian calendar, by the rule of 33 years with its corrections.
fn persian(days: i64) -> (i64, i64, i64) {
    let since = days + UNIX - PERSIAN;
    let first = |year: i64| {
        let day = 365 * (year - 1) + (8 * year + 21).div_euclid(33);
        if MOVED.contains(&(year - 1)) { day - 1 } else { day }
    };
    let mut year = 1 + (33 * since + 3).div_euclid(12_053);
    let mut of_year = since - first(year);
    if of_year < 0 {
        year -= 1;
        of_year = since - first(year);
    } else if of_year == 365 && MOVED.contains(&year) {
        year += 1;
        of_year = 0;
    }
    let month = if of_year < 216 { of_year / 31 } else { (of_year - 6) / 30 };
    let before = if month < 7 { month * 31 } else { month * 30 + 6 };
    (year, month, of_year - before + 1)
}
