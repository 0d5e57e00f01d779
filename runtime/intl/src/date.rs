//! Dates as text (ECMA-402 11).
//!
//! bounded: by the patterns of a locale

mod calendar;
mod options;
mod pattern;
mod range;
mod symbols;
mod write;

pub use options::*;
pub use pattern::Field;
pub use range::Ranged;
pub use write::Part;

/// A time in the zone of a format.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Milliseconds since 1970-01-01 UTC, finite.
    pub time: f64,
    /// The day in the zone, counted from 1970-01-01.
    pub days: i64,
    /// The fields in the zone.
    pub fields: Fields,
}

/// The fields of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// The year; 0 is 1 BC.
    pub year: i64,
    /// From 0.
    pub month: i64,
    /// Day of the month, from 1.
    pub day: i64,
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 0 to 59.
    pub second: i64,
    /// 0 to 999.
    pub ms: i64,
    /// From Sunday, 0.
    pub weekday: i64,
}
