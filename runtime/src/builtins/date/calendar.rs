//! Arithmetic of times and days in the proleptic Gregorian calendar (ECMAScript 21.4.1). Pure numbers.

/// Milliseconds of a day.
pub const MS_PER_DAY: f64 = 86_400_000.0;
/// The longest time from 1970-01-01 that a date holds, in milliseconds: 100 million days.
pub const MAX_TIME: f64 = 8.64e15;

/// Names of the days of the week, from Sunday.
pub const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// Names of the months.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

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

impl Fields {
    /// The fields of a time, which must be finite.
    pub fn from_time(time: f64) -> Self {
        let time = time as i64;
        let (days, rest) = (time.div_euclid(86_400_000), time.rem_euclid(86_400_000));
        let (year, month, day) = civil(days);
        Self {
            year,
            month,
            day,
            hour: rest / 3_600_000,
            minute: rest / 60_000 % 60,
            second: rest / 1000 % 60,
            ms: rest % 1000,
            weekday: (days + 4).rem_euclid(7),
        }
    }
}

/// Year, month from 0 and day from 1 of a day counted from 1970-01-01.
pub fn civil(days: i64) -> (i64, i64, i64) {
    // Years are counted from March, so that the leap day is the last one; 400 years have 146,097 days.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = (march_month + 2) % 12;
    (year_of_era + era * 400 + i64::from(month < 2), month, day)
}

/// The day, counted from 1970-01-01, on which a month begins; `month` is from 0.
pub fn first_day(year: i64, month: i64) -> i64 {
    let year = if month < 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 10) % 12) + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// `MakeDay` (21.4.1.28): fractions are cut, months and days may be out of their range.
pub fn make_day(year: f64, month: f64, date: f64) -> f64 {
    if !(year.is_finite() && month.is_finite() && date.is_finite()) {
        return f64::NAN;
    }
    let (year, month, date) = (year.trunc(), month.trunc(), date.trunc());
    let year = year + (month / 12.0).floor();
    // Beyond this no date is in range, and the sums below are exact within it.
    if year.abs() > 1e7 || month.abs() > 1e10 {
        return f64::NAN;
    }
    let month = (month as i64).rem_euclid(12);
    first_day(year as i64, month) as f64 + date - 1.0
}

/// `MakeTime` (21.4.1.27)
pub fn make_time(hour: f64, minute: f64, second: f64, ms: f64) -> f64 {
    if !(hour.is_finite() && minute.is_finite() && second.is_finite() && ms.is_finite()) {
        return f64::NAN;
    }
    hour.trunc() * 3_600_000.0 + minute.trunc() * 60_000.0 + second.trunc() * 1000.0 + ms.trunc()
}

/// `MakeDate` (21.4.1.29)
pub fn make_date(day: f64, time: f64) -> f64 {
    let date = day * MS_PER_DAY + time;
    if date.is_finite() { date } else { f64::NAN }
}

/// A time within the range of dates, without fractions of a millisecond; else NaN (21.4.1.31).
pub fn time_clip(time: f64) -> f64 {
    if time.abs() <= MAX_TIME { time.trunc() + 0.0 } else { f64::NAN }
}

/// The years 0 to 99 of constructors are those of the 20th century (21.4.1.30).
pub fn full_year(year: f64) -> f64 {
    let whole = year.trunc();
    if (0.0..=99.0).contains(&whole) { 1900.0 + whole } else { year }
}
