//! `Date`: a point in time, in UTC (ECMAScript 21.4). The local time zone is UTC: every method and
//! its UTC counterpart are the same function.

pub mod calendar;
mod parse;
mod text;

use super::{Body, Global, Row, arg, native};
use crate::eval::convert::Hint;
use crate::eval::vm::Vm;
use crate::heap::InternalSlots;
use crate::value::Value;
use crate::value::family::Family;
use crate::value::thrown::Result;
use calendar::{Fields, MS_PER_DAY, full_year, make_date, make_day, make_time, time_clip};
use text::{date_text, full_text, iso_text, time_text, utc_text};

/// The constructor and functions.
pub const GLOBALS: &[Global] = &[Global {
    name: "Date",
    length: 7,
    call: Body::Native(date),
    construct: Some(Body::Native(new_date)),
    functions: &[native("UTC", 7, utc), native("now", 0, now), native("parse", 1, parse)],
    numbers: &[],
}];

const YEAR: u8 = 0;
const MONTH: u8 = 1;
const DAY: u8 = 2;
const HOUR: u8 = 3;
const MINUTE: u8 = 4;
const SECOND: u8 = 5;
const MS: u8 = 6;
const WEEKDAY: u8 = 7;

/// Methods of dates.
pub const METHODS: &[Row] = &[
    native("getDate", 0, get::<DAY>),
    native("getDay", 0, get::<WEEKDAY>),
    native("getFullYear", 0, get::<YEAR>),
    native("getHours", 0, get::<HOUR>),
    native("getMilliseconds", 0, get::<MS>),
    native("getMinutes", 0, get::<MINUTE>),
    native("getMonth", 0, get::<MONTH>),
    native("getSeconds", 0, get::<SECOND>),
    native("getTime", 0, get_time),
    native("getTimezoneOffset", 0, get_timezone_offset),
    native("getUTCDate", 0, get::<DAY>),
    native("getUTCDay", 0, get::<WEEKDAY>),
    native("getUTCFullYear", 0, get::<YEAR>),
    native("getUTCHours", 0, get::<HOUR>),
    native("getUTCMilliseconds", 0, get::<MS>),
    native("getUTCMinutes", 0, get::<MINUTE>),
    native("getUTCMonth", 0, get::<MONTH>),
    native("getUTCSeconds", 0, get::<SECOND>),
    native("getYear", 0, get_year),
    native("setDate", 1, set::<DAY, 1, false>),
    native("setFullYear", 3, set::<YEAR, 3, false>),
    native("setHours", 4, set::<HOUR, 4, false>),
    native("setMilliseconds", 1, set::<MS, 1, false>),
    native("setMinutes", 3, set::<MINUTE, 3, false>),
    native("setMonth", 2, set::<MONTH, 2, false>),
    native("setSeconds", 2, set::<SECOND, 2, false>),
    native("setTime", 1, set_time),
    native("setUTCDate", 1, set::<DAY, 1, true>),
    native("setUTCFullYear", 3, set::<YEAR, 3, true>),
    native("setUTCHours", 4, set::<HOUR, 4, true>),
    native("setUTCMilliseconds", 1, set::<MS, 1, true>),
    native("setUTCMinutes", 3, set::<MINUTE, 3, true>),
    native("setUTCMonth", 2, set::<MONTH, 2, true>),
    native("setUTCSeconds", 2, set::<SECOND, 2, true>),
    native("setYear", 1, set_year),
    native("toDateString", 0, to_date_string),
    native("toISOString", 0, to_iso_string),
    native("toJSON", 1, to_json),
    native("toString", 0, to_string),
    native("toTimeString", 0, to_time_string),
    native("toUTCString", 0, to_utc_string),
    native("valueOf", 0, get_time),
];

pub(super) const INVALID: &str = "Invalid Date";

/// The time of the host.
pub fn current(vm: &Vm) -> f64 {
    time_clip(vm.schedule.unix_ms(&vm.heap.meter).floor())
}

/// A date as `util.inspect` prints it.
pub fn inspected(&Date(time): &Date) -> String {
    if time.is_nan() { INVALID.into() } else { iso_text(time) }
}

/// The internal slots of a `Date`: milliseconds since 1970-01-01 UTC, an integer within ±8.64e15, or NaN.
#[derive(Clone, Copy)]
pub struct Date(pub f64);

impl InternalSlots for Date {
    fn family(&self) -> Family {
        Family::Date
    }

    fn structured_clone(&self) -> Option<Box<dyn InternalSlots>> {
        Some(Box::new(*self))
    }

    fn prefers_string(&self) -> bool {
        true
    }
}

/// `Date()`: the time as text, whatever is given.
fn date(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    let text = full_text(current(vm));
    Ok(vm.heap.string(&text))
}

/// `new Date(…)`
fn new_date(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let time = match arguments {
        [] => current(vm),
        &[value] => match vm.heap.slots::<Date>(value) {
            Some(&Date(time)) => time,
            _ => {
                let value = vm.to_primitive(value, Hint::Default)?;
                if value.is_string() { parsed(vm, value)? } else { vm.to_number(value)? }
            }
        },
        _ => components(vm, arguments)?,
    };
    Ok(vm.heap.new_with_slots(Date(time_clip(time))))
}

/// `Date.UTC(year, …)`
fn utc(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    components(vm, arguments).map(|time| Value::foreign_number(time_clip(time)))
}

/// `Date.now()`
fn now(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Ok(Value::foreign_number(current(vm)))
}

/// `Date.parse(text)`
fn parse(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let text = vm.to_string(arg(arguments, 0))?;
    parsed(vm, text).map(Value::foreign_number)
}

/// Bytes of the longest text that is parsed as a date, as the parser charges nothing.
const MAX_DATE_BYTES: u32 = 1 << 20;

fn parsed(vm: &mut Vm, text: Value) -> Result<f64> {
    if vm.heap.str(text).bytes > MAX_DATE_BYTES {
        return Ok(f64::NAN);
    }
    vm.work(vm.heap.str(text).bytes as usize / 8)?;
    Ok(parse::parse(&vm.heap.charged_text(text)?).map_or(f64::NAN, time_clip))
}

/// The time of year, month, day, hours, minutes, seconds and milliseconds.
fn components(vm: &mut Vm, arguments: &[Value]) -> Result<f64> {
    let mut parts = [f64::NAN, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    for (part, &argument) in parts.iter_mut().zip(arguments) {
        *part = vm.to_number(argument)?;
    }
    let [year, month, day, hour, minute, second, ms] = parts;
    Ok(make_date(make_day(full_year(year), month, day), make_time(hour, minute, second, ms)))
}

/// The time of a receiver.
pub(super) fn this_time(vm: &mut Vm, this: Value) -> Result<f64> {
    match vm.heap.slots::<Date>(this) {
        Some(&Date(time)) => Ok(time),
        _ => Err(vm.type_error("this is not a Date object.")),
    }
}

/// `date.getHours()` and the other getters of fields
fn get<const FIELD: u8>(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let time = this_time(vm, this)?;
    if time.is_nan() {
        return Ok(Value::foreign_number(f64::NAN));
    }
    let fields = Fields::from_time(time);
    Ok(Value::number(match FIELD {
        YEAR => fields.year,
        MONTH => fields.month,
        DAY => fields.day,
        HOUR => fields.hour,
        MINUTE => fields.minute,
        SECOND => fields.second,
        MS => fields.ms,
        _ => fields.weekday,
    } as f64))
}

/// `date.getTime()`
fn get_time(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    this_time(vm, this).map(Value::foreign_number)
}

/// `date.getTimezoneOffset()`
fn get_timezone_offset(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let time = this_time(vm, this)?;
    Ok(Value::foreign_number(if time.is_nan() { time } else { 0.0 }))
}

/// `date.getYear()`: years since 1900
fn get_year(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    check_date(vm, this, "getYear")?;
    let time = this_time(vm, this)?;
    Ok(Value::foreign_number(if time.is_nan() { time } else { (Fields::from_time(time).year - 1900) as f64 }))
}

fn set_time_value(vm: &mut Vm, this: Value, time: f64) -> Result {
    let time = time_clip(time);
    if let Some(date) = vm.heap.slots_mut::<Date>(this) {
        date.0 = time;
    }
    Ok(Value::foreign_number(time))
}

/// `date.setHours(hours, minutes, seconds, ms)` and the other setters of fields: up to `COUNT` fields from the first.
fn set<const FIRST: u8, const COUNT: usize, const UTC: bool>(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    const NAMES: [[&str; 2]; 7] = [
        ["setFullYear", "setUTCFullYear"],
        ["setMonth", "setUTCMonth"],
        ["setDate", "setUTCDate"],
        ["setHours", "setUTCHours"],
        ["setMinutes", "setUTCMinutes"],
        ["setSeconds", "setUTCSeconds"],
        ["setMilliseconds", "setUTCMilliseconds"],
    ];
    let first = usize::from(FIRST);
    check_date(vm, this, NAMES[first][usize::from(UTC)])?;
    let mut given = [vm.to_number(arg(arguments, 0))?, f64::NAN, f64::NAN, f64::NAN];
    // As in V8, the time is read between the first conversion and the others. A year makes an invalid date valid;
    // other fields leave it invalid.
    let time = match this_time(vm, this)? {
        time if time.is_nan() && FIRST == YEAR => 0.0,
        time => time,
    };
    if time.is_nan() {
        return Ok(Value::foreign_number(time));
    }
    let count = arguments.len().clamp(1, COUNT);
    for (index, number) in given.iter_mut().enumerate().take(count).skip(1) {
        *number = vm.to_number(arg(arguments, index))?;
    }
    let fields = Fields::from_time(time);
    let mut parts = [fields.year, fields.month, fields.day, fields.hour, fields.minute, fields.second, fields.ms]
        .map(|field| field as f64);
    parts[first..first + count].copy_from_slice(&given[..count]);
    let [year, month, day, hour, minute, second, ms] = parts;
    let day = if FIRST < HOUR { make_day(year, month, day) } else { (time / MS_PER_DAY).floor() };
    set_time_value(vm, this, make_date(day, make_time(hour, minute, second, ms)))
}

/// A `TypeError` in the words of V8 for methods that change a date or write it.
pub(super) fn check_date(vm: &mut Vm, this: Value, method: &str) -> Result<()> {
    if vm.heap.has_slots::<Date>(this) {
        return Ok(());
    }
    let what = vm.to_text_lossy(this);
    Err(vm.type_error(&brief!("Method Date.prototype.{method} called on incompatible receiver {what}")))
}

/// `date.setTime(ms)`
fn set_time(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check_date(vm, this, "setTime")?;
    let time = vm.to_number(arg(arguments, 0))?;
    set_time_value(vm, this, time)
}

/// `date.setYear(year)`
fn set_year(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    check_date(vm, this, "setYear")?;
    let year = vm.to_number(arg(arguments, 0))?;
    let time = this_time(vm, this)?;
    if year.is_nan() {
        return set_time_value(vm, this, year);
    }
    let time = if time.is_nan() { 0.0 } else { time };
    let fields = Fields::from_time(time);
    let day = make_day(full_year(year), fields.month as f64, fields.day as f64);
    set_time_value(vm, this, make_date(day, time.rem_euclid(MS_PER_DAY)))
}

fn written(vm: &mut Vm, this: Value, method: &str, write: fn(f64) -> String) -> Result {
    check_date(vm, this, method)?;
    let time = this_time(vm, this)?;
    if time.is_nan() {
        return Ok(vm.heap.string(INVALID));
    }
    Ok(vm.heap.string(&write(time)))
}

/// `date.toDateString()`
fn to_date_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    written(vm, this, "toDateString", date_text)
}

/// `date.toUTCString()`
fn to_utc_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    written(vm, this, "toUTCString", utc_text)
}

/// `date.toISOString()`
fn to_iso_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    check_date(vm, this, "toISOString")?;
    let time = this_time(vm, this)?;
    if time.is_nan() {
        return Err(vm.range_error("Invalid time value"));
    }
    Ok(vm.heap.string(&iso_text(time)))
}

/// `date.toJSON()`: for whatever has a `toISOString` (21.4.4.37)
fn to_json(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    if this.is_nullish() {
        return Err(vm.type_error("Cannot convert undefined or null to object"));
    }
    let primitive = vm.to_primitive(this, Hint::Number)?;
    if primitive.is_number() && !primitive.as_number().is_finite() {
        return Ok(Value::NULL);
    }
    let name = vm.heap.intern_text("toISOString");
    let method = vm.get(this, name)?;
    if !method.is_callable() {
        return Err(vm.type_error("toISOString is not a function"));
    }
    vm.call_nested(method, this, &[])
}

/// `date.toString()`
fn to_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    written(vm, this, "toString", full_text)
}

/// `date.toTimeString()`
fn to_time_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    written(vm, this, "toTimeString", time_text)
}
