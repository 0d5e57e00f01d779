//! Data of CLDR for the dates of a locale in a calendar.
//!
//! bounded: by the data of a locale

use super::calendar::Calendar;
use super::pattern::Generator;
use crate::pack::{DATES, View};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The patterns and names of a locale.
#[derive(Clone, Copy, Debug)]
pub struct Symbols {
    view: View,
    calendar: Calendar,
    /// The decimal separator.
    pub decimal: &'static str,
}

/// The names of the styles in keys.
const STYLES: [&str; 4] = ["full", "long", "medium", "short"];

/// In the order of the lists of `periods/…`.
pub const PERIODS: [&str; 12] = [
    "am",
    "pm",
    "midnight",
    "noon",
    "morning1",
    "morning2",
    "afternoon1",
    "afternoon2",
    "evening1",
    "evening2",
    "night1",
    "night2",
];

/// The forms of names: wide, abbreviated, narrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// `January`
    Wide,
    /// `Jan`
    Abbreviated,
    /// `J`
    Narrow,
}

impl Width {
    /// That of a field of this length.
    pub fn of(count: u8) -> Self {
        match count {
            4 => Self::Wide,
            5 => Self::Narrow,
            _ => Self::Abbreviated,
        }
    }

    fn key(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Abbreviated => "abbreviated",
            Self::Narrow => "narrow",
        }
    }
}

impl Symbols {
    /// Those of a locale, by the name of its data.
    pub fn new(data: &str, calendar: Calendar, numbering: &str) -> Self {
        let view = DATES.view(data);
        let decimal = view.get(&format!("decimal/{numbering}")).or_else(|| view.get("decimal/latn")).unwrap_or(".");
        Self { view, calendar, decimal }
    }

    fn patterns(&self, key: &str) -> &'static str {
        self.view.text(&format!("{}/{key}", self.calendar.patterns()))
    }

    /// The pattern of a `dateStyle`.
    pub fn date_style(&self, style: usize) -> &'static str {
        self.patterns(&format!("date/{}", STYLES[style]))
    }

    /// The pattern of a `timeStyle`.
    pub fn time_style(&self, style: usize) -> &'static str {
        self.view.text(&format!("gregorian/time/{}", STYLES[style]))
    }

    /// How a date and a time at which something happens are joined.
    pub fn glue_at(&self, style: usize) -> &'static str {
        match self.patterns(&format!("at/{}", STYLES[style])) {
            "" => self.glue(style),
            glue => glue,
        }
    }

    /// How a date and a time are joined.
    pub fn glue(&self, style: usize) -> &'static str {
        self.patterns(&format!("glue/{}", STYLES[style]))
    }

    /// The patterns by the fields that they show.
    pub fn available(&self) -> Vec<(&'static str, &'static str)> {
        self.view.with_prefix(self.calendar.available())
    }

    /// The patterns of ranges, by fields and the greatest one that differs.
    pub fn intervals(&self) -> Vec<(&'static str, &'static str)> {
        self.view.with_prefix(self.calendar.intervals())
    }

    /// How two times are joined.
    pub fn fallback(&self) -> &'static str {
        self.patterns("interval/fallback")
    }

    /// How a field is appended.
    pub fn append(&self, field: &str) -> &'static str {
        self.view.text(&format!("append/{field}"))
    }

    /// The name of a field.
    pub fn field_name(&self, field: &str) -> &'static str {
        self.view.text(&format!("fields/{field}"))
    }

    /// A name in a list: of `months`, `days` or `periods`; empty where there is none.
    pub fn name(&self, list: &str, is_alone: bool, width: Width, index: usize) -> &'static str {
        let form = if is_alone { "stand-alone" } else { "format" };
        let calendar = if list == "months" { self.calendar.months() } else { "gregorian" };
        let names = self.view.text(&format!("{calendar}/{list}/{form}/{}", width.key()));
        names.split('|').nth(index).unwrap_or_default()
    }

    /// The name of an era.
    pub fn era(&self, width: Width, index: usize) -> &'static str {
        let list = match width {
            Width::Wide => "names",
            Width::Abbreviated => "abbr",
            Width::Narrow => "narrow",
        };
        let names = self.view.text(&format!("{}/eras/{list}", self.calendar.patterns()));
        names.split('|').nth(index).unwrap_or_default()
    }

    /// The part of the day at an hour, as an index of [`PERIODS`].
    pub fn period_at(&self, hour: i64) -> Option<usize> {
        let number = |text: &str| text.parse::<i64>().unwrap_or_default() / 60;
        let holds = |times: &str| {
            let (from, before) = times.split_once('-')?;
            let (from, before) = (number(from), number(before));
            let is_in = if from < before { (from..before).contains(&hour) } else { hour >= from || hour < before };
            is_in.then_some(())
        };
        self.rules().find_map(|(name, times)| holds(times).and_then(|()| period(name)))
    }

    /// Noon, where the locale has it.
    pub fn noon(&self) -> Option<usize> {
        self.rules().find(|(name, _)| *name == "noon").and_then(|(name, _)| period(name))
    }

    fn rules(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.view.text("periods").split('|').filter_map(|rule| rule.split_once('='))
    }

    /// The patterns for fields, made once a process for a locale.
    pub fn generator(&self, data: &'static str) -> Arc<Generator> {
        type Key = (&'static str, &'static str, &'static str);
        static GENERATORS: LazyLock<Mutex<HashMap<Key, Arc<Generator>>>> = LazyLock::new(Mutex::default);
        let mut known = GENERATORS.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (data, self.calendar.patterns(), self.decimal);
        Arc::clone(known.entry(key).or_insert_with(|| Arc::new(Generator::new(self))))
    }
}

fn period(name: &str) -> Option<usize> {
    PERIODS.iter().position(|&period| period == name)
}
