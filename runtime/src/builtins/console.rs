//! `console`: what a script logs, as lines of text.

mod format;
mod table;
mod time;

use super::inspect::{Options, too_much};
use super::{Body, Global, arg, native};
use crate::builtins::inspect;
use crate::builtins::tool;
use crate::eval::vm::Vm;
use crate::heap::block;
use crate::interface::error_code::ErrorCode;
use crate::meter::Charge;
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

/// Add a line to the log.
fn log_line(vm: &mut Vm, prefix: &str, text: &str) -> Result {
    let indent = " ".repeat(vm.output.console.indent);
    let limits = &vm.heap.meter.limits;
    let (max_bytes, max_calls) = (limits.max_console_bytes as usize, limits.max_console_calls);
    vm.heap.charge_bytes(text.len())?;
    let lines = 1 + if indent.is_empty() { 0 } else { memchr::memchr_iter(b'\n', text.as_bytes()).count() };
    let length = prefix.len() + text.len() + lines * indent.len();
    vm.output.log_bytes += length;
    vm.output.log_calls += 1;
    if vm.output.log_calls > max_calls {
        return Err(Thrown::limit(
            ErrorCode::ConsoleLimit,
            brief!("The script exceeded its console limit of {max_calls} calls; log less"),
        ));
    }
    if vm.output.log_bytes > max_bytes {
        return Err(too_much(max_bytes));
    }
    let charge = vm.work(1 + length / 16)?;
    let _hold = vm.heap.hold(2 * length)?;
    let text = if lines == 1 { text.into() } else { text.replace('\n', &brief!("\n{indent}")) };
    let line = charge.text(format_args!("{prefix}{indent}{text}"));
    vm.heap.meter.keep_bytes(size_of::<String>() + block(line.len()));
    vm.output.logs.push(line);
    Ok(Value::UNDEFINED)
}

/// An error where text of so many bytes is more than a script may log.
fn check_line(vm: &mut Vm, bytes: usize) -> Result<Charge> {
    let limit = vm.heap.meter.limits.max_console_bytes as usize;
    if bytes > limit { Err(too_much(limit)) } else { vm.heap.charge_bytes(bytes) }
}

/// The text of a string that is logged; an error, before anything is read, where it is too long.
fn line_text(vm: &mut Vm, string: Value) -> Result<String> {
    let bytes = vm.heap.str(string).bytes as usize;
    let charge = check_line(vm, bytes)?;
    vm.reserve(4 * bytes)?;
    Ok(vm.heap.read_text(string, charge).into())
}

/// How `console` prints objects.
fn console_options(vm: &Vm) -> Options {
    Options { limit: vm.heap.meter.limits.max_console_bytes as usize, ..Options::default() }
}

fn log(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let text = format::format(vm, arguments)?;
    log_line(vm, LOG, &text)
}

fn warn(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let text = format::format(vm, arguments)?;
    log_line(vm, WARN, &text)
}

fn error(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let text = format::format(vm, arguments)?;
    log_line(vm, ERROR, &text)
}

/// `console.trace(...)`, without the call stack.
fn trace(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let text = format::format(vm, arguments)?;
    let text = if text.is_empty() { "Trace".into() } else { String::from("Trace: ") + &text };
    log_line(vm, ERROR, &text)
}

/// `console.dir(value, {depth, showHidden, breakLength})`
fn dir(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let mut options = console_options(vm);
    let given = arg(arguments, 1);
    if given.is(Kind::Object) {
        let depth = tool::option(vm, given, "depth")?;
        let hidden = tool::option(vm, given, "showHidden")?;
        let columns = tool::option(vm, given, "breakLength")?;
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
    let text = inspect::inspect(vm, arg(arguments, 0), options)?;
    log_line(vm, LOG, &text)
}

fn table(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    match table::table(vm, arg(arguments, 0), arg(arguments, 1))? {
        Some(text) => log_line(vm, LOG, &text),
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
        text.push_str(&line_text(vm, shown)?);
        *first = vm.heap.string(&text);
        text = format::format(vm, &rest)?;
    }
    log_line(vm, WARN, &text)
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
    let bytes = vm.heap.atoms.text(label).len();
    let charge = check_line(vm, bytes)?;
    let text = charge.text(format_args!("{}: {count}", crate::text::wtf8::lossy(vm.heap.atoms.text(label))));
    log_line(vm, LOG, &text)
}

fn count_reset(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    // Node looks up the label as it is given, and counters have texts.
    let is_text = arguments.first().is_none_or(|label| label.is_undefined() || label.is_string());
    let label = label(vm, arguments)?;
    if !is_text || vm.output.console.counts.remove(&label).is_none() {
        let bytes = vm.heap.atoms.text(label).len();
        let charge = check_line(vm, bytes)?;
        let label = crate::text::wtf8::lossy(vm.heap.atoms.text(label));
        let text = charge.text(format_args!("Count for '{label}' does not exist"));
        return log_line(vm, WARN, &text);
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

#[cfg(test)]
mod tests {
    use crate::text::brief::MAX_BRIEF;
    use crate::{CompileOptions, Inputs, Policy, Preset, test_host};

    /// The length of each log line and of each item of the result.
    fn lengths(script: &str) -> (Vec<usize>, String) {
        let policy = Policy::preset(Preset::Experimental);
        let script = crate::compile(script, &CompileOptions::for_policy(&policy)).expect("it compiles");
        let outcome = test_host::finish(script.start(Inputs::default(), &policy), |_| unreachable!("no calls"));
        (outcome.logs.iter().map(String::len).collect(), outcome.result.expect("it succeeds"))
    }

    #[test]
    fn long_texts_are_whole() {
        const LONG: usize = 20_000;
        const { assert!(LONG > MAX_BRIEF) };
        let (logs, result) = lengths(
            "const long = 'x'.repeat(20_000), error = new Error(long);
            console.log(long); console.log('%s', long); console.trace(long); console.count(long); console.countReset(long);
            console.countReset(long); console.timeLog(long); console.time('t'); console.group(long); console.warn(long);
            console.groupEnd(); console.log(new RegExp(long)); console.log({ [long]: 1 }); console.log(10n ** 20_000n);
            const named = { [long]: () => 1 }[long]; error.stack = `Error: ${long}`; console.log(named); console.log(error);
            console.table([{ [long]: 1 }]);
            return [String(new RegExp(long)).length, String(named).length > 0, escape('é'.repeat(9_000)).length];",
        );
        assert!(logs.iter().all(|&length| length >= LONG), "{logs:?}");
        assert_eq!(logs.len(), 14, "{logs:?}");
        assert_eq!(result, "[20002,true,27000]");
    }
}
