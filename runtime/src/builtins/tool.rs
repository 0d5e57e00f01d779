//! Functions of the host in every run: tool calls, messages, and running several in parallel.
//!
//! Nothing here runs a tool. A call is queued for the host and gives a promise, which [`settle::settle_call`] settles with
//! the host's answer.

pub mod fetch;
pub(in crate::builtins) mod function;
mod parse_text;
pub(crate) mod settle;
pub(in crate::builtins) mod waiting;

use super::abort::Listener;
use super::registry::registry;
use super::{Row, arg, native, prelude};
use crate::builtins::abort;
use crate::eval::calls::{Open, Style};
use crate::eval::json::{self, LEVELS};
use crate::eval::property;
use crate::eval::vm::Vm;
use crate::heap::Class;
use crate::heap::object::{FROZEN, NON_EXTENSIBLE, SEALED};
use crate::interface::dialect::Dialect;
use crate::interface::error_code::ErrorCode;
use crate::interface::host::Message;
use crate::interface::outcome::cut_text;
use crate::meter::buffer::{Buffer, Hold};
use crate::value::atom::{Atom, known};
use crate::value::family::Family;
use crate::value::thrown::{Cause, Result, Thrown};
use crate::value::{Kind, Value};
use agentscript_lang::Refusal;

/// The functions that the host has in every run, by dialect. The input of the run is no function: see
/// [`context_value`].
pub const FUNCTIONS: &[(Dialect, &[Row])] = &[
    (
        Dialect::Async,
        &[
            native("callTool", 2, call_tool),
            native("getTool", 1, get_tool),
            native("mcpLog", 2, mcp_log),
            native("mcpNotify", 2, mcp_notify),
            native("parseText", 1, parse_text::parse_text),
            prelude("parallel", 2, "tool_parallel"),
            prelude("sleep", 1, "timer_sleep"),
            prelude("__safe_parallel", 2, "tool_parallel"),
        ],
    ),
    (
        Dialect::Sync,
        &[
            prelude("call_tool", 3, "tool_call_tool"),
            prelude("call_tools", 1, "tool_call_tools"),
            native("parseText", 1, parse_text::parse_text),
            prelude("sleep", 1, "timer_sleep_now"),
        ],
    ),
];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[
    native("$call_tool", 3, waiting::call_tool),
    native("$call_tools", 1, waiting::call_tools),
    prelude("$wait_for", 1, "tool_wait_for"),
    native("$parallel_jobs", 2, parallel_jobs),
    native("$parallel_width", 2, parallel_width),
    native("$parallel_failed", 2, parallel_failed),
];

/// Steps of a message beside its text.
const MESSAGE_WORK: usize = 256;
/// Longest name of a tool, in bytes, and how much of a longer one is printed in messages.
const MAX_NAME: usize = 256;
const SHOWN_NAME: usize = 64;
/// Of `parallel`: most functions, the default concurrency, and the highest.
const MAX_PARALLEL: usize = 100;
const PARALLEL: f64 = 10.0;
const WIDEST: f64 = 20.0;

/// `callTool(name, input, {throwOnError, timeoutMs, signal})`
fn call_tool(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let name = arg(arguments, 0);
    if !name.is_string() {
        let what = what(vm, name);
        let error = vm.type_error(&brief!("callTool expects the name of a tool as a string, not {what}"));
        return as_rejection(vm, Err(error));
    }
    let call = start_call(vm, name, arg(arguments, 1), arg(arguments, 2));
    as_rejection(vm, call)
}

/// `getTool(name)`
fn get_tool(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let name = arg(arguments, 0);
    if !name.is_string() {
        let what = what(vm, name);
        return Err(vm.type_error(&brief!("getTool expects the name of a tool as a string, not {what}")));
    }
    let name = tool_name(vm, name)?;
    match vm.host.tools.describe(&name) {
        Some(text) => json::parse(vm, text, 0),
        None => {
            let message = brief!("Tool '{name}' was not found{}", suggestion(vm, &name));
            Err(tool_not_found(vm, &message, &name))
        }
    }
}

/// `mcpLog(level, message, metadata)`
fn mcp_log(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let mut hold = Hold::NONE;
    let level = message_text(vm, arg(arguments, 0), &mut hold)?;
    let message = match arg(arguments, 1) {
        data if data.is_object() => json::to_json(vm, data)?.unwrap_or_default(),
        text => message_text(vm, text, &mut hold)?,
    };
    hold.grow(vm, message.len())?;
    let metadata = match arg(arguments, 2) {
        data if data.is_nullish() => None,
        data => match json::to_json(vm, data)? {
            Some(text) if text.starts_with('{') => Some(text),
            Some(_) | None => return Err(vm.type_error("The metadata of mcpLog must be a JSON object")),
        },
    };
    let length = level.len() + message.len() + metadata.as_ref().map_or(0, String::len);
    send(vm, length, Message::Log { level, message, metadata })
}

/// `mcpNotify(event, payload)`
fn mcp_notify(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let mut hold = Hold::NONE;
    let event = message_text(vm, arg(arguments, 0), &mut hold)?;
    let payload = json::to_json(vm, arg(arguments, 1))?.unwrap_or_else(|| "null".into());
    send(vm, event.len() + payload.len(), Message::Notify { event, payload })
}

/// The text of a part of a message, charged and counted.
fn message_text(vm: &mut Vm, value: Value, hold: &mut Hold) -> Result<String> {
    let string = vm.to_string(value)?;
    hold.grow(vm, vm.heap.str(string).bytes as usize)?;
    vm.heap.charged_string(string)
}

/// `$parallel_jobs(items, worker)`: the items, once they can be run.
fn parallel_jobs(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (items, worker) = (arg(arguments, 0), arg(arguments, 1));
    if !items.is(Kind::Array) {
        let what = what(vm, items);
        let message = brief!("parallel expects an array of functions, or an array and a function, not {what}");
        return Err(vm.type_error(&message));
    }
    if vm.heap.length(items) > MAX_PARALLEL {
        let message = brief!("Cannot execute more than {MAX_PARALLEL} operations in parallel");
        return Err(vm.throw(Class::Error, &message));
    }
    let items = vm.heap.charged_items_copy(items)?;
    if !worker.is_callable()
        && let Some((index, &item)) = items.iter().enumerate().find(|(_, item)| !item.is_callable())
    {
        let what = what(vm, item);
        let message = brief!("parallel expects functions, but item {index} is {what}; write () => callTool(...)");
        return Err(vm.type_error(&message));
    }
    Ok(vm.heap.array_of(items))
}

/// `$parallel_width(options, count)`: how many jobs run at a time.
fn parallel_width(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let width = option(vm, arg(arguments, 0), "maxConcurrency")?;
    let width = if width.is_number() { width.as_number() } else { PARALLEL };
    let width = if width.is_nan() { PARALLEL } else { width.floor().clamp(1.0, WIDEST) };
    Ok(Value::number(width.min(arg(arguments, 1).as_number())))
}

/// `$parallel_failed(failures, results)`: the error of those, which are pairs of index and reason. It is a failure of the
/// tool whose failure the first reason is, and was made where that one was. The results of the others are in its details.
fn parallel_failed(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let mut failures = Buffer::new();
    for pair in vm.heap.charged_items_copy(arg(arguments, 0))? {
        let Some([index, reason]) = vm.heap.first_items(pair) else { continue };
        let is_error = reason.is(Kind::Object) && vm.heap.class(reason).is_error();
        let message = if is_error { vm.get(reason, known::MESSAGE)? } else { reason };
        let message = vm.to_string(message)?;
        failures.push(vm, (index.as_number() as usize, message, reason))?;
    }
    failures.sort_by_key(|&(index, ..)| index);
    let mut results = vm.heap.charged_items_copy(arg(arguments, 1))?;
    let mut text = Buffer::new();
    let start = brief!("{} of {} parallel operations failed:", failures.len(), results.len());
    text.extend_from_slice(vm, start.as_bytes())?;
    for (index, message, count) in equal_failures(vm, &failures)? {
        let start = if count == 1 { brief!("\n  [{index}]: ") } else { brief!("\n  {count} × ") };
        text.extend_from_slice(vm, start.as_bytes())?;
        vm.heap.charged_append(message, &mut text)?;
        if count > 1 {
            text.extend_from_slice(vm, brief!(", first at [{index}]").as_bytes())?;
        }
    }
    let error = vm.new_error(Class::Error, "");
    let text = vm.heap.string_of(text);
    vm.heap.set_own(error, known::MESSAGE, text);
    if let Some(&(.., first)) = failures.first() {
        settle::describe_as(vm, error, first)?;
    }
    if failures.len() < results.len() {
        for &(index, ..) in failures.iter() {
            if let Some(result) = results.get_mut(index) {
                *result = Value::NULL;
            }
        }
        let results = vm.heap.array_of(results);
        add_results(vm, error, results)?;
    }
    Ok(error)
}

/// The failures with different messages: the first index, the message, and how many there are.
fn equal_failures(vm: &mut Vm, failures: &[(usize, Value, Value)]) -> Result<Buffer<(usize, Value, usize)>> {
    let mut groups: Buffer<(usize, Value, usize)> = Buffer::new();
    for &(index, message, _) in failures {
        let mut known = None;
        for (at, &(_, other, _)) in groups.iter().enumerate() {
            vm.work(1)?;
            if vm.strict_equals(message, other)? {
                known = Some(at);
                break;
            }
        }
        match known {
            Some(at) => groups[at].2 += 1,
            None => groups.push(vm, (index, message, 1))?,
        }
    }
    Ok(groups)
}

/// Add the results of the operations that did not fail to the details of an error.
fn add_results(vm: &mut Vm, error: Value, results: Value) -> Result<()> {
    let details = vm.heap.new_object();
    if let Some(own) = json::own(vm, error, known::DETAILS)?.filter(|own| own.is(Kind::Object)) {
        property::copy_properties(vm, own, details, &[])?;
    }
    let key = vm.heap.intern_text("results");
    vm.heap.set_own(details, key, results);
    vm.heap.set_own(error, known::DETAILS, details);
    Ok(())
}

/// The value of `codecallContext`, or of `input`.
pub fn context_value(vm: &mut Vm) -> Result {
    if let Some(context) = vm.realm.input {
        return Ok(context);
    }
    let text = vm.host.input.clone().unwrap_or_else(|| "{}".into());
    let is_frozen = vm.realm.script.linker.dialect().input_is_frozen();
    let context = given_data(vm, text, if is_frozen { 0 } else { LEVELS })?;
    vm.realm.input = Some(context);
    if !is_frozen {
        return Ok(context);
    }
    let mut work = Buffer::new();
    work.push(vm, context)?;
    while let Some(value) = work.pop() {
        match value.kind() {
            Kind::Array => vm.heap.charged_append_items(value, &mut work)?,
            Kind::Object => {
                let values = json::charged_properties(vm, value)?.into_iter().map(|(_, value)| value);
                work.extend(vm, values)?;
            }
            _ => continue,
        }
        vm.heap.add_flags(value, FROZEN | SEALED | NON_EXTENSIBLE);
    }
    Ok(context)
}

/// The value of JSON text from the host; up to `levels` levels may be left unread.
fn given_data(vm: &mut Vm, text: String, levels: u8) -> Result {
    let before = vm.heap.meter.bytes;
    let value = json::parse(vm, text, levels)?;
    let meter = &mut vm.heap.meter;
    meter.give(meter.bytes.saturating_sub(before));
    Ok(value)
}

/// A tool of an app as a function: `users.list`.
pub(crate) fn tool_member(vm: &mut Vm, app: Value, name: Atom) -> Result {
    let app = vm.heap.atom_text(Atom(app.payload()));
    if vm.heap.atoms.text(name).len() <= MAX_NAME {
        let tool = vm.heap.atom_text(name);
        if let Some(full) = vm.host.tools.member(&app, &tool) {
            let full = vm.heap.string(&full);
            return Ok(Value::handle(Kind::Tool, full.payload()));
        }
    }
    let native = registry().method(Family::Object, name);
    Ok(native.map_or(Value::UNDEFINED, |native| Value::handle(Kind::Native, native)))
}

/// Suggests a tool to call instead of one that an app does not have.
pub(crate) fn missing_tool(vm: &Vm, tool: &str) -> String {
    let suggestion = if tool.len() > MAX_NAME { String::default() } else { suggestion(vm, tool) };
    brief!("there is no tool '{}'{suggestion}", cut_text(tool, MAX_NAME))
}

/// Call a tool that is a value: `users.list(input, options)`.
pub(crate) fn call_tool_value(vm: &mut Vm, tool: Value, arguments: &[Value]) -> Result {
    let name = Value::handle(Kind::String, tool.payload());
    let input = named_input(vm, name, arg(arguments, 0));
    let call = start_call(vm, name, input, arg(arguments, 1));
    as_rejection(vm, call)
}

/// A single plain argument as an input, under the property that the tool names for it.
fn named_input(vm: &mut Vm, tool: Value, input: Value) -> Value {
    if input.is_undefined() || input.is(Kind::Object) {
        return input;
    }
    let name = crate::text::wtf8::lossy(vm.heap.first_bytes::<{ MAX_NAME + 1 }>(tool));
    let Some(name) = vm.host.tools.positional(&name) else { return input };
    let name = vm.heap.intern_text(&name);
    settle::object_of(vm, &[(name, input)])
}

/// The name of a tool; an error where it is too long.
pub(super) fn tool_name(vm: &mut Vm, name: Value) -> Result<String> {
    let bytes = vm.heap.str(name).bytes as usize;
    if bytes > MAX_NAME {
        // Only the beginning is looked at.
        let start = String::from(crate::text::wtf8::lossy(vm.heap.first_bytes::<SHOWN_NAME>(name)));
        let start = start.trim_end_matches(char::REPLACEMENT_CHARACTER);
        let message =
            brief!("Tool '{start}… ({bytes} bytes, cut)' was not found: names of tools have at most {MAX_NAME} bytes");
        return Err(tool_not_found(vm, &message, start));
    }
    vm.heap.charged_string(name)
}

#[cold]
fn tool_not_found(vm: &mut Vm, message: &str, name: &str) -> Thrown {
    let error = vm.new_error(Class::Error, message);
    for (key, text) in [(known::CODE, ErrorCode::ToolNotFound.as_str()), (known::TOOL_NAME, name)] {
        let text = vm.heap.string(text);
        vm.heap.set_own(error, key, text);
    }
    Thrown::value(error)
}

fn start_call(vm: &mut Vm, name: Value, input: Value, options: Value) -> Result {
    let text = tool_name(vm, name)?;
    if vm.host.tools.is_reserved(&text) {
        let message = brief!("Tool '{text}' cannot be called from a script");
        return Err(Thrown::illegal(ErrorCode::SelfReferenceBlocked, Refusal::IllegalBuiltinAccess, message));
    }
    let input = tool_input(vm, name, input)?;
    let (style, timeout_ms, signal) = call_options(vm, options)?;
    if let Some(state) = abort::signal_state(vm, signal)
        && state.aborted
    {
        let (reason, promise) = (state.reason, vm.heap.new_promise());
        abort::abort_call(vm, promise, style, name, reason);
        return Ok(promise);
    }
    vm.work(input.len() / 16)?;
    // The input is stored twice: for the host and for messages.
    vm.reserve(input.len().saturating_mul(2))?;
    let promise = add_call(vm, (name, text), input, timeout_ms, style)?;
    if let Some(id) = vm.host.calls.last() {
        abort::listen(vm, signal, Listener::Call(id));
    }
    Ok(promise)
}

/// Add a call of a tool or function, by its name; gives the promise of its result.
fn add_call(vm: &mut Vm, (tool, name): (Value, String), input: String, timeout_ms: u64, style: Style) -> Result {
    let limit = vm.heap.meter.limits.max_tool_calls;
    if limit > 0 && vm.host.calls.made() >= limit {
        let message =
            brief!("The script exceeded its limit of {limit} tool calls; fetch more per call or filter first");
        return Err(Thrown::limit(ErrorCode::MaxToolCallsExceeded, message));
    }
    let promise = vm.promise_of_call(true);
    let open = Open { tool, input: input.as_str().into(), promise, style, place: vm.place() };
    vm.heap.meter.keep_bytes(open.cost());
    vm.host.calls.add(name, input, timeout_ms, open);
    Ok(promise)
}

fn wrong_input(vm: &mut Vm, name: Value, input: Value) -> Thrown {
    let name = match tool_name(vm, name) {
        Ok(name) => name,
        Err(thrown) => return thrown,
    };
    let what = match input.kind() {
        Kind::Object | Kind::App => "an object that has no JSON object as its text",
        _ => what(vm, input),
    };
    vm.type_error(&brief!("The input of tool '{name}' must be a JSON object, not {what}"))
}

/// The input of a call as JSON text of an object; `{}` where it is left out.
fn tool_input(vm: &mut Vm, name: Value, input: Value) -> Result<String> {
    if input.is_undefined() {
        return Ok("{}".into());
    }
    if input.is(Kind::Object)
        && let Some(text) = json::to_json(vm, input)?
        && text.starts_with('{')
    {
        return Ok(text);
    }
    Err(wrong_input(vm, name, input))
}

/// The style of the answer, the timeout, and the signal that cancels the call; `undefined` where there is none.
fn call_options(vm: &mut Vm, options: Value) -> Result<(Style, u64, Value)> {
    let limit = vm.heap.meter.limits.tool_timeout_ms;
    if vm.realm.script.linker.dialect() == Dialect::Sync {
        return Ok((Style::Ok, limit, Value::UNDEFINED));
    }
    if options.is_nullish() {
        return Ok((Style::Throws, limit, Value::UNDEFINED));
    }
    if !options.is(Kind::Object) {
        let what = what(vm, options);
        return Err(vm.type_error(&brief!("The options of a tool call must be an object, not {what}")));
    }
    let throws = json::own(vm, options, known::THROW_ON_ERROR)? != Some(Value::FALSE);
    let style = if throws { Style::Throws } else { Style::Success };
    let signal = option(vm, options, "signal")?;
    if !signal.is_nullish() && abort::signal_state(vm, signal).is_none() {
        let what = what(vm, signal);
        let message = brief!("The option signal of a tool call must be an AbortSignal, not {what}");
        return Err(vm.type_error(&message));
    }
    let timeout = json::own(vm, options, known::TIMEOUT_MS)?.unwrap_or(Value::UNDEFINED);
    if timeout.is_undefined() {
        return Ok((style, limit, signal));
    }
    if !timeout.is_number() || timeout.as_number().is_nan() || timeout.as_number() <= 0.0 {
        return Err(vm.type_error("The option timeoutMs of a tool call must be a positive number"));
    }
    Ok((style, (timeout.as_number().ceil() as u64).min(limit), signal))
}

/// Turn an exception into a rejected promise, for functions that return promises.
fn as_rejection(vm: &mut Vm, result: Result) -> Result {
    result.or_else(|thrown| match *thrown.0 {
        Cause::Value(reason) => {
            let promise = vm.heap.new_promise();
            vm.reject_promise(promise, reason);
            Ok(promise)
        }
        Cause::Stop(failure) => Err(Thrown::stop(*failure)),
    })
}

fn send(vm: &mut Vm, length: usize, message: Message) -> Result {
    vm.work(MESSAGE_WORK + length)?;
    let bytes = size_of::<Message>() + 64 + length;
    vm.reserve(bytes)?;
    vm.heap.meter.keep_bytes(bytes);
    vm.output.send(message, bytes);
    Ok(Value::UNDEFINED)
}

/// `. Did you mean 'users:list'?`, or nothing.
fn suggestion(vm: &Vm, name: &str) -> String {
    match vm.host.tools.similar(name).as_slice() {
        [] => String::default(),
        [one] => brief!(". Did you mean '{one}'?"),
        [one, other] => brief!(". Did you mean '{one}' or '{other}'?"),
        [first, second, third, ..] => brief!(". Did you mean '{first}', '{second}' or '{third}'?"),
    }
}

/// A property of an options object; `undefined` where there is none.
pub(super) fn option(vm: &mut Vm, options: Value, name: &str) -> Result {
    match vm.heap.atoms.find(name.as_bytes()) {
        Some(atom) if options.is(Kind::Object) => Ok(json::own(vm, options, atom)?.unwrap_or(Value::UNDEFINED)),
        Some(_) | None => Ok(Value::UNDEFINED),
    }
}

/// Names the kind of a value in a word, for messages.
fn what(vm: &Vm, value: Value) -> &'static str {
    match value.kind() {
        Kind::Number => "a number",
        Kind::Undefined | Kind::Unread | Kind::Cell | Kind::Empty => "undefined",
        Kind::Null => "null",
        Kind::Boolean => "a boolean",
        Kind::String => "a string",
        Kind::BigInt => "a BigInt",
        Kind::Array => "an array",
        Kind::Function | Kind::Native | Kind::NativeClosure | Kind::Tool | Kind::HostFunction => "a function",
        Kind::Map => "a Map",
        Kind::Set => "a Set",
        Kind::Promise => "a promise",
        Kind::Iterator => "an iterator",
        Kind::ArrayBuffer => "an ArrayBuffer",
        Kind::Uint8Array => "a Uint8Array",
        Kind::InternalSlots => vm.heap.slots_class(value),
        Kind::Object | Kind::App => "an object",
    }
}
