//! `Date`: a point in time, in UTC (ECMAScript 21.4).

use super::{Body, Global, Row, native};
use crate::error::Result;
use crate::heap::Exotic;
use crate::value::Value;
use crate::vm::Vm;

/// The constructor and functions.
pub const GLOBALS: &[Global] = &[Global {
    name: "Date",
    length: 7,
    call: Body::Native(now),
    construct: Some(Body::Native(new_date)),
    functions: &[native("now", 0, now)],
    numbers: &[],
}];

/// Methods of dates.
pub const METHODS: &[Row] = &[native("getTime", 0, get_time), native("valueOf", 0, get_time)];

/// The longest time from 1970-01-01 that a date holds, in milliseconds: 100 million days.
pub const MAX_TIME: f64 = 8.64e15;

/// `Date.now()`
fn now(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Ok(Value::number(vm.host.inputs.clock.unix_ms().floor()))
}

/// `new Date(…)`
fn new_date(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let time = match arguments.first() {
        None => now(vm, this, arguments)?.as_number(),
        Some(&value) => vm.to_number(value)?,
    };
    Ok(vm.heap.new_exotic(Exotic::Date(time_clip(time))))
}

/// A time within the range of dates, without fractions of a millisecond; else NaN (21.4.1.31).
fn time_clip(time: f64) -> f64 {
    if time.abs() <= MAX_TIME { time.trunc() + 0.0 } else { f64::NAN }
}

/// The time of a receiver.
fn this_time(vm: &mut Vm, this: Value) -> Result<f64> {
    match vm.heap.exotic(this) {
        Some(&Exotic::Date(time)) => Ok(time),
        _ => Err(vm.type_error("this is not a Date object.")),
    }
}

/// `date.getTime()`
fn get_time(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    this_time(vm, this).map(Value::foreign_number)
}
