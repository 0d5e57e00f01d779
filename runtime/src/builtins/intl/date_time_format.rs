//! `Intl.DateTimeFormat` (ECMA-402 11), and `toLocaleString` of dates with it.

mod options;

use super::{LOCALE, SUPPORTED_LOCALES_OF, incompatible, incompatible_wrapper, parts_value};
use crate::builtins::ClosureFn;
use crate::builtins::date::calendar::{self, MS_PER_DAY, time_clip};
use crate::builtins::date::current;
use crate::builtins::{Body, Global, Row, arg, getter, native};
use crate::eval::vm::Vm;
use crate::heap::{Action, InternalSlots, block};
use crate::value::Value;
use crate::value::family::Family;
use crate::value::thrown::Result;
pub use agentscript_intl::date::Wanted;
use agentscript_intl::date::{self, Fields, Moment, Resolved};

/// The constructor.
pub const CONSTRUCTOR: Global = Global {
    name: "DateTimeFormat",
    length: 0,
    call: Body::Native(new_format),
    construct: Some(Body::Native(new_format)),
    functions: &[SUPPORTED_LOCALES_OF],
    numbers: &[],
};

/// The internal slots of an `Intl.DateTimeFormat`.
#[derive(Clone, Debug)]
pub struct DateTimeFormat {
    format: date::DateTimeFormat,
    /// The function of `format`, once it was read.
    pub function: Value,
}

impl InternalSlots for DateTimeFormat {
    fn family(&self) -> Family {
        Family::DateTimeFormat
    }

    fn tag(&self) -> &'static str {
        "Intl.DateTimeFormat"
    }

    fn cost(&self) -> usize {
        LOCALE + self.format.allocations().map(block).sum::<usize>()
    }

    fn trace(&self, reach: &mut dyn FnMut(Value)) {
        reach(self.function);
    }
}

/// Methods of formats.
pub const METHODS: &[Row] = &[
    getter("format", format),
    native("formatRange", 2, format_range),
    native("formatRangeToParts", 2, format_range_to_parts),
    native("formatToParts", 1, format_to_parts),
    native("resolvedOptions", 0, resolved_options),
];

/// Steps of reading options and finding a pattern.
const READING: usize = 128;
/// Steps of finding the patterns of a range.
const RANGE: usize = 1500;

/// A date as locale-dependent text: `toLocaleString` and similar methods.
pub fn locale_text(vm: &mut Vm, time: f64, locales: Value, options: Value, wanted: Wanted) -> Result<String> {
    vm.work(READING)?;
    let format = options::read(vm, locales, options, wanted)?;
    Ok(format.text(&moment(&format, time)))
}

/// `new Intl.DateTimeFormat(locales, options)`, with or without `new`
fn new_format(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    vm.work(READING)?;
    let format = options::read(vm, arg(arguments, 0), arg(arguments, 1), Wanted::Format)?;
    let format = DateTimeFormat { format, function: Value::UNDEFINED };
    Ok(vm.heap.new_with_slots(format))
}

/// The format of a receiver; a copy, because functions of the script may run while it is used.
fn this_format(vm: &mut Vm, this: Value, method: &str) -> Result<DateTimeFormat> {
    vm.work(16)?;
    if let Some(format) = vm.heap.slots::<DateTimeFormat>(this) {
        return Ok(format.clone());
    }
    Err(match method {
        "get format" | "resolvedOptions" => incompatible_wrapper(vm, this, "DateTimeFormat", method),
        _ => incompatible(vm, this, "DateTimeFormat", method),
    })
}

/// The time of an argument; the present time without one.
fn time(vm: &mut Vm, value: Value) -> Result<f64> {
    let time = if value.is_undefined() { current(vm) } else { vm.to_number(value)? };
    clipped(vm, time)
}

fn clipped(vm: &mut Vm, time: f64) -> Result<f64> {
    let time = time_clip(time);
    if time.is_nan() {
        return Err(vm.range_error("Invalid time value"));
    }
    Ok(time)
}

/// A time, which must be finite, in the zone of a format.
fn moment(format: &date::DateTimeFormat, time: f64) -> Moment {
    let local = time + f64::from(format.zone().offset(time)) * 1000.0;
    let calendar::Fields { year, month, day, hour, minute, second, ms, weekday } = calendar::Fields::from_time(local);
    let fields = Fields { year, month, day, hour, minute, second, ms, weekday };
    Moment { time, days: (local / MS_PER_DAY).floor() as i64, fields }
}

/// `format.format`: a function bound to the format, always the same one
fn format(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let format = this_format(vm, this, "get format")?;
    if !format.function.is_undefined() {
        return Ok(format.function);
    }
    let function =
        vm.heap.new_native_closure(Action::Native(&FORMAT_NOW), [this, Value::number(1.0), Value::UNDEFINED]);
    if let Some(format) = vm.heap.slots_mut::<DateTimeFormat>(this) {
        format.function = function;
    }
    Ok(function)
}

static FORMAT_NOW: ClosureFn = ClosureFn { length: 1, call: format_now };

fn format_now(vm: &mut Vm, function: Value, arguments: &[Value]) -> Result {
    let [format, ..] = vm.heap.native_closures[function.index()].data;
    let format = this_format(vm, format, "get format")?.format;
    let time = time(vm, arg(arguments, 0))?;
    Ok(vm.heap.string(&format.text(&moment(&format, time))))
}

/// The two times of a range.
fn times(vm: &mut Vm, arguments: &[Value]) -> Result<(f64, f64)> {
    let (from, to) = (arg(arguments, 0), arg(arguments, 1));
    if from.is_undefined() || to.is_undefined() {
        return Err(vm.type_error("Invalid time value"));
    }
    // Both are converted before one is refused.
    let (from, to) = (vm.to_number(from)?, vm.to_number(to)?);
    Ok((clipped(vm, from)?, clipped(vm, to)?))
}

/// `format.formatRange(from, to)`
fn format_range(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let format = this_format(vm, this, "formatRange")?.format;
    let charge = vm.work(RANGE)?;
    let (from, to) = times(vm, arguments)?;
    let (from, to) = (moment(&format, from), moment(&format, to));
    let text = match format.range(&from, &to) {
        Some(parts) => charge.joined(&charge.list(parts.into_iter().map(|(part, _)| part.text)), ""),
        None => format.text(&from),
    };
    Ok(vm.heap.string(&text))
}

/// `format.formatRangeToParts(from, to)`
fn format_range_to_parts(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let format = this_format(vm, this, "formatRangeToParts")?.format;
    let charge = vm.work(RANGE)?;
    let (from, to) = times(vm, arguments)?;
    let (from, to) = (moment(&format, from), moment(&format, to));
    let parts = format.range(&from, &to);
    let shared = |part| (part, "shared");
    let parts = parts.unwrap_or_else(|| charge.list(format.parts(&from).into_iter().map(shared)));
    parts_value(vm, parts.iter().map(|(part, source)| (part.kind, &*part.text, Some(*source))))
}

/// `format.formatToParts(date)`
fn format_to_parts(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let format = this_format(vm, this, "formatToParts")?.format;
    let time = time(vm, arg(arguments, 0))?;
    let parts = format.parts(&moment(&format, time));
    parts_value(vm, parts.iter().map(|part| (part.kind, &*part.text, None)))
}

/// `format.resolvedOptions()`
fn resolved_options(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let format = this_format(vm, this, "resolvedOptions")?;
    let object = vm.heap.new_object();
    for (name, value) in format.format.resolved() {
        let name = vm.heap.intern_text(name);
        let value = match value {
            Resolved::Text(text) => vm.heap.string(&text),
            Resolved::Flag(flag) => Value::bool(flag),
            Resolved::Number(number) => Value::number(f64::from(number)),
        };
        vm.heap.set_own(object, name, value);
    }
    Ok(object)
}
