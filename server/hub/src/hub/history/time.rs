//! Times as people read and write them, in UTC.

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

/// Returns a time in milliseconds since 1970 for people: `2026-11-23 08:00:00`.
#[must_use]
pub fn format_time(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map(|time| time.strftime("%Y-%m-%d %H:%M:%S").to_string()).unwrap_or_default()
}

/// Parses a time (`2026-11-23`, `2026-11-23T08:00:00Z`), or how long ago it was (`30m`, `2h`, `7d`). Returns milliseconds
/// since 1970; `None` if it is none.
#[must_use]
pub fn parse_time(text: &str) -> Option<i64> {
    let now = || Timestamp::now().to_zoned(TimeZone::UTC);
    let ago = || now().checked_sub(text.parse::<Span>().ok()?).ok().map(|time| time.timestamp());
    let date = || text.parse::<jiff::civil::Date>().ok()?.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp());
    text.parse::<Timestamp>().ok().or_else(date).or_else(ago).map(Timestamp::as_millisecond)
}
