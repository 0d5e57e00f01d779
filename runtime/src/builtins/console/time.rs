//! `console.time`, `timeLog` and `timeEnd`. The time is that of the script, so that a replay logs the same.

use super::{ENTRY, LOG, WARN, label};
use crate::builtins::console::{self, format};
use crate::builtins::number::format::fixed;
use crate::eval::vm::Vm;
use crate::meter::buffer::Buffer;
use crate::value::Value;
use crate::value::atom::Atom;
use crate::value::numeric::number_text;
use crate::value::thrown::Result;
use std::time::Duration;

/// `console.time(label)`
pub(super) fn start(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let label = label(vm, arguments)?;
    let now = vm.schedule.script_time(&vm.heap.meter);
    if vm.output.console.timers.contains_key(&label) {
        return warn(vm, label, ["Label '", "' already exists for console.time()"]);
    }
    vm.output.console.timers.insert(label, now);
    vm.heap.meter.keep_bytes(ENTRY);
    Ok(Value::UNDEFINED)
}

/// `console.timeLog(label, ...values)`
pub(super) fn log(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let label = label(vm, arguments)?;
    let data = arguments.get(1..).unwrap_or_default();
    show(vm, label, "timeLog", data)
}

/// `console.timeEnd(label)`
pub(super) fn end(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let label = label(vm, arguments)?;
    show(vm, label, "timeEnd", &[])?;
    vm.output.console.timers.remove(&label);
    Ok(Value::UNDEFINED)
}

fn show(vm: &mut Vm, label: Atom, method: &str, data: &[Value]) -> Result {
    let Some(&began) = vm.output.console.timers.get(&label) else {
        return warn(vm, label, ["No such label '", &brief!("' for console.{method}()")]);
    };
    let duration = text(vm.schedule.script_time(&vm.heap.meter).saturating_sub(began));
    let mut values = Buffer::new();
    for value in [vm.heap.string("%s: %s"), vm.heap.atom_string(label), vm.heap.string(&duration)] {
        values.push(vm, value)?;
    }
    values.extend_from_slice(vm, data)?;
    let text = format::format(vm, &values)?;
    console::log_line(vm, LOG, &text)
}

/// A line on a label; Node warns on its standard error.
fn warn(vm: &mut Vm, label: Atom, [before, behind]: [&str; 2]) -> Result {
    let bytes = vm.heap.atoms.text(label).len();
    let charge = console::check_line(vm, bytes)?;
    let label = crate::text::wtf8::lossy(vm.heap.atoms.text(label));
    let text = charge.text(format_args!("{before}{label}{behind}"));
    console::log_line(vm, WARN, &text)
}

/// A duration as Node writes it: `1.234ms`, `1.500s`, `2:03.000 (m:ss.mmm)`.
fn text(duration: Duration) -> String {
    let ms = duration.as_secs_f64() * 1_000.0;
    let (minutes, seconds) = ((ms / 60_000.0).floor(), ms % 60_000.0 / 1_000.0);
    if ms < 1_000.0 {
        return brief!("{}ms", number_text(fixed(ms, 3).parse().unwrap_or(ms)));
    }
    if minutes == 0.0 {
        return brief!("{}s", fixed(seconds, 3));
    }
    let seconds = brief!("{:0>6}", fixed(seconds, 3));
    match (minutes / 60.0).floor() {
        0.0 => brief!("{minutes}:{seconds} (m:ss.mmm)"),
        hours => brief!("{hours}:{:0>2}:{seconds} (h:mm:ss.mmm)", minutes % 60.0),
    }
}
