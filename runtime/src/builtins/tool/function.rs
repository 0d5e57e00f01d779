//! Calls of host functions: see [`Linker`](crate::linker::Linker).

use crate::builtins::registry::registry;
use crate::builtins::tool::waiting;
use crate::builtins::tool::{self, settle};
use crate::eval::activation::Called;
use crate::eval::calls::Style;
use crate::eval::json::{self, LEVELS};
use crate::eval::linker::{ARGUMENTS, Binding, SyncFunction};
use crate::eval::vm::Vm;
use crate::heap::Class;
use crate::heap::frame::After;
use crate::interface::dialect::Dialect;
use crate::interface::host::ToolError;
use crate::meter::buffer::Buffer;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use std::sync::Arc;

/// Work that a call is beside its data.
const CALL_WORK: usize = 64;
/// Bytes of JSON that cross in about the time of a statement.
const BYTES_A_STEP: usize = 16;

/// Call a function of the host.
#[cold]
pub(crate) fn call_host_function(vm: &mut Vm, function: Value, arguments: &[Value], after: After) -> Result<Called> {
    let script = Arc::clone(&vm.realm.script);
    let row = script.linker.row(function.payload());
    match &row.binding {
        Binding::BuiltIn(native) => vm.call(Value::handle(Kind::Native, *native), Value::UNDEFINED, arguments, after),
        Binding::Sync { count, function } => {
            let text = arguments_text(vm, arguments, *count)?;
            answer_at_once(vm, &row.name, &**function, text).map(Called::Value)
        }
        Binding::Async => {
            let waits = script.linker.dialect() == Dialect::Sync;
            if waits {
                waiting::check_waiting(vm, &row.name)?;
            }
            let promise = begin_function(vm, &row.name, arguments);
            match registry().intrinsic("$wait_for") {
                Some(wait) if waits => vm.call_prelude(wait, false, Value::UNDEFINED, &[promise?], after),
                _ => tool::as_rejection(vm, promise).map(Called::Value),
            }
        }
    }
}

/// The value that a function of Rust gives.
fn answer_at_once(vm: &mut Vm, name: &str, function: &SyncFunction, text: String) -> Result {
    let _hold = vm.heap.hold(text.len())?;
    let result = function(&text);
    vm.heap.meter.check_time()?;
    match result {
        Ok(json) => {
            vm.work(json.len() / BYTES_A_STEP)?;
            vm.reserve(json.len())?;
            tool::given_data(vm, json, LEVELS)
        }
        Err(error) if error.fatal => Err(settle::fatal(error, name.into())),
        Err(error) if error.code == ARGUMENTS => {
            let error = ToolError { message: brief!("{name}: {}", error.message), ..error };
            Err(Thrown::value(function_error(vm, Class::TypeError, &error)))
        }
        Err(error) => Err(Thrown::value(function_error(vm, Class::Error, &error))),
    }
}

/// Note a call for the host: the promise of its answer.
fn begin_function(vm: &mut Vm, name: &str, arguments: &[Value]) -> Result {
    let input = arguments_text(vm, arguments, None)?;
    // The input is kept for the host and for messages.
    vm.reserve(input.len().saturating_mul(2))?;
    let tool = vm.heap.string(name);
    let timeout_ms = vm.heap.meter.limits.tool_timeout_ms;
    tool::add_call(vm, (tool, name.into()), input, timeout_ms, Style::Function)
}

/// So many arguments, or all, as JSON text of an array; charged.
fn arguments_text(vm: &mut Vm, arguments: &[Value], count: Option<u8>) -> Result<String> {
    let count = count.map_or(arguments.len(), usize::from);
    let mut items = Buffer::with_capacity(vm, count)?;
    for index in 0..count {
        items.push(vm, super::arg(arguments, index))?;
    }
    let array = vm.heap.array_of(items);
    let text = json::to_json(vm, array)?.unwrap_or_default();
    vm.work(CALL_WORK + text.len() / BYTES_A_STEP)?;
    Ok(text)
}

/// The exception of a host function that has failed.
pub(super) fn function_error(vm: &mut Vm, class: Class, error: &ToolError) -> Value {
    let object = vm.new_error(class, &error.message);
    settle::describe_failure(vm, object, error, None);
    object
}
