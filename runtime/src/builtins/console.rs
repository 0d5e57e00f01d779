//! `console`: what a script logs, as lines of text.

mod format;
mod table;
mod time;

use super::inspect::{Options, too_much};
use super::{Body, Global, arg, native};
use crate::eval::vm::Vm;
use crate::heap::block;
use crate::interface::error_code::ErrorCode;
use crate::meter::buffer::Buffer;
use crate::value::atom::Atom;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};

/// `console`
pub const GLOBALS: &[Global] = &[Global {
    name: "console",
    length: 0,
    call: Body::Namespace,
    construct: None,
    functions: &[
        native("log", 0, log),
        native("info", 0, log),
        native("debug", 0, log),
        native("warn", 0, warn),
        native("error", 0, error),
        native("trace", 0, trace),
        native("dir", 0, dir),
        native("dirxml", 0, log),
        native("table", 0, table),
        native("assert", 0, assert),
        native("count", 0, count),
        native("countReset", 0, count_reset),
        native("group", 0, group),
        native("groupCollapsed", 0, group),
        native("groupEnd", 0, group_end),
        native("time", 0, time::start),
        native("timeLog", 0, time::log),
        native("timeEnd", 0, time::end),
        native("clear", 0, nothing),
        native("profile", 0, nothing),
        native("profileEnd", 0, nothing),
        native("timeStamp", 0, nothing),
    ],
    numbers: &[],
}];

/// Columns of indentation of one group, and of all at most.
const GROUP: usize = 2;
const DEEPEST_GROUP: usize = 100;

const LOG: &str = "";
const WARN: &str = "[warn] ";
const ERROR: &str = "[error] ";

impl Vm {
    /// Add a line to the log.
    fn log_line(&mut self, prefix: &str, text: &str) -> Result {
        let indent = " ".repeat(self.output.console.indent);
        let limits = &self.heap.meter.limits;
        let (max_bytes, max_calls) = (limits.max_console_bytes as usize, limits.max_console_calls);
        self.heap.charge_bytes(text.len())?;
        let lines = 1 + if indent.is_empty() { 0 } else { memchr::memchr_iter(b'\n', text.as_bytes()).count() };
        let length = prefix.len() + text.len() + lines * indent.len();
        self.output.log_bytes += length;
        self.output.log_calls += 1;
        if self.output.log_calls > max_calls {
            return Err(Thrown::limit(
                ErrorCode::ConsoleLimit,
                // bounded: a number
                format!("The script exceeded its console limit of {max_calls} calls; log less"),
            ));
        }
        if self.output.log_bytes > max_bytes {
            return Err(too_much(max_bytes));
        }
        self.work(1 + length / 16)?;
        let _hold = self.heap.hold(2 * length)?;
        // bounded: by what a script may log
        let text = if lines == 1 { text.to_owned() } else { text.replace('\n', &format!("\n{indent}")) };
        let line = format!("{prefix}{indent}{text}"); // bounded: the same
        self.heap.meter.keep_bytes(size_of::<String>() + block(line.len()));
        self.output.logs.push(line);
        Ok(Value::UNDEFINED)
    }

    /// An error where text of so many bytes is more than a script may log.
    fn check_line(&mut self, bytes: usize) -> Result<()> {
        let limit = self.heap.meter.limits.max_console_bytes as usize;
        if bytes > limit { Err(too_much(limit)) } else { self.heap.charge_bytes(bytes) }
    }

    /// The text of a string that is logged; an error, before anything is read, where it is too long.
    fn line_text(&mut self, string: Value) -> Result<String> {
        let bytes = self.heap.str(string).bytes as usize;
        self.check_line(bytes)?;
        self.reserve(4 * bytes)?;
        Ok(self.heap.text(string).into_owned()) // charged: above
    }

    /// How `console` prints objects.
    fn console_options(&self) -> Options {
        Options { limit: self.heap.meter.limits.max_console_bytes as usize, ..Options::default() }
    }
}

fn log(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let text = vm.format(arguments)?;
    vm.log_line(LOG, &text)
}

fn warn(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let text = vm.format(arguments)?;
    vm.log_line(WARN, &text)
}

fn error(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let text = vm.format(arguments)?;
    vm.log_line(ERROR, &text)
}

/// `console.trace(...)`, without the call stack.
fn trace(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let text = vm.format(arguments)?;
    // bounded: by what a script may log
    let text = if text.is_empty() { "Trace".to_owned() } else { format!("Trace: {text}") };
    vm.log_line(ERROR, &text)
}

/// `console.dir(value, {depth, showHidden, breakLength})`
fn dir(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let mut options = vm.console_options();
    let given = arg(arguments, 1);
    if given.is(Kind::Object) {
        let depth = vm.option(given, "depth")?;
        let hidden = vm.option(given, "showHidden")?;
        let columns = vm.option(given, "breakLength")?;
        match depth.kind() {
            Kind::Null => options.depth = usize::MAX,
            Kind::Number => options.depth = depth.as_number() as usize,
            _ => {}
        }
        options.hidden = vm.truthy(hidden);
        if columns.is_number() {
            options.columns = (columns.as_number() as usize).max(1);
        }
    }
    let text = vm.inspect(arg(arguments, 0), options)?;
    vm.log_line(LOG, &text)
}

fn table(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    match vm.table(arg(arguments, 0), arg(arguments, 1))? {
        Some(text) => vm.log_line(LOG, &text),
        None => log(vm, this, &[arg(arguments, 0)]),
    }
}

fn assert(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    if vm.truthy(arg(arguments, 0)) {
        return Ok(Value::UNDEFINED);
    }
    let mut rest = Buffer::new();
    rest.extend_from_slice(vm, arguments.get(1..).unwrap_or_default())?;
    let mut text = String::from("Assertion failed");
    if let Some(first) = rest.first_mut() {
        text.push_str(": ");
        let shown = vm.to_string(*first)?;
        text.push_str(&vm.line_text(shown)?);
        *first = vm.heap.string(&text);
        text = vm.format(&rest)?;
    }
    vm.log_line(WARN, &text)
}

/// A function whose effect needs a terminal or an inspector: here it has none.
fn nothing(_: &mut Vm, _: Value, _: &[Value]) -> Result {
    Ok(Value::UNDEFINED)
}

/// Bytes that an entry of the tables of labels takes.
const ENTRY: usize = 48;

/// The label of a counter or a timer.
fn label(vm: &mut Vm, arguments: &[Value]) -> Result<Atom> {
    match arg(arguments, 0) {
        Value::UNDEFINED => Ok(vm.heap.intern_text("default")),
        label => {
            let label = vm.to_string(label)?;
            Ok(vm.heap.intern(label))
        }
    }
}

fn count(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let label = label(vm, arguments)?;
    let labels = vm.output.console.counts.len();
    let count = vm.output.console.counts.entry(label).or_insert(0);
    *count += 1;
    let count = *count;
    vm.heap.meter.keep_bytes((vm.output.console.counts.len() - labels) * ENTRY);
    let text = format!(": {count}"); // bounded: a number
    vm.check_line(vm.heap.atoms.text(label).len())?;
    let text = crate::text::wtf8::lossy(vm.heap.atoms.text(label)).into_owned() + &text; // charged: above
    vm.log_line(LOG, &text)
}

fn count_reset(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    // Node looks up the label as it is given, and counters have texts.
    let is_text = arguments.first().is_none_or(|label| label.is_undefined() || label.is_string());
    let label = label(vm, arguments)?;
    if !is_text || vm.output.console.counts.remove(&label).is_none() {
        vm.check_line(vm.heap.atoms.text(label).len())?;
        let text = format!("Count for '{}' does not exist", crate::text::wtf8::lossy(vm.heap.atoms.text(label))); // bounded: above
        return vm.log_line(WARN, &text);
    }
    Ok(Value::UNDEFINED)
}

fn group(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if !arguments.is_empty() {
        log(vm, this, arguments)?;
    }
    vm.output.console.indent = (vm.output.console.indent + GROUP).min(DEEPEST_GROUP);
    Ok(Value::UNDEFINED)
}

fn group_end(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    vm.output.console.indent = vm.output.console.indent.saturating_sub(GROUP);
    Ok(Value::UNDEFINED)
}
