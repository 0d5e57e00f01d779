//! Dates as locale-independent text (ECMAScript 21.4.4.41).
//!
//! Bounded by a date

use super::calendar::{DAYS, Fields, MONTHS};

/// `1970-01-01T00:00:00.000Z`, with six digits and a sign for years beyond four digits (21.4.1.32).
pub fn iso_text(time: f64) -> String {
    let Fields { year, month, day, hour, minute, second, ms, .. } = Fields::from_time(time);
    let year = match year {
        0..=9999 => format!("{year:04}"),
        _ => format!("{year:+07}"),
    };
    format!("{year}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z", month + 1)
}

/// `Thu Jan 01 1970`
pub fn date_text(time: f64) -> String {
    let fields = Fields::from_time(time);
    format!("{} {} {:02} {}", day_name(&fields), month_name(&fields), fields.day, year_text(fields.year))
}

/// `00:00:00 GMT+0000 (Coordinated Universal Time)`
pub fn time_text(time: f64) -> String {
    let Fields { hour, minute, second, .. } = Fields::from_time(time);
    format!("{hour:02}:{minute:02}:{second:02} GMT+0000 (Coordinated Universal Time)")
}

/// Both of them.
pub fn full_text(time: f64) -> String {
    format!("{} {}", date_text(time), time_text(time))
}

/// `Thu, 01 Jan 1970 00:00:00 GMT`
pub fn utc_text(time: f64) -> String {
    let fields = Fields::from_time(time);
    let Fields { hour, minute, second, .. } = fields;
    let (weekday, month, year) = (day_name(&fields), month_name(&fields), year_text(fields.year));
    format!("{weekday}, {:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT", fields.day)
}

fn day_name(fields: &Fields) -> &'static str {
    &DAYS[fields.weekday as usize][..3]
}

fn month_name(fields: &Fields) -> &'static str {
    &MONTHS[fields.month as usize][..3]
}

/// At least four digits behind the sign.
fn year_text(year: i64) -> String {
    if year < 0 { format!("-{:04}", -year) } else { format!("{year:04}") }
}
