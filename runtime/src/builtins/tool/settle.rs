//! Answers of the host to tool calls.

use crate::builtins::tool::function;
use crate::builtins::tool::{self, fetch};
use crate::eval::calls::{Open, Style};
use crate::eval::execute;
use crate::eval::json::{self, LEVELS};
use crate::eval::vm::Vm;
use crate::heap::Class;
use crate::heap::promise::State;
use crate::heap::trace::Failed;
use crate::interface::error_code::ErrorCode;
use crate::interface::host::{CallId, ToolError};
use crate::interface::outcome::{Failure, MAX_DETAILS_BYTES, MAX_NAME_BYTES, MAX_TOOL_INPUT_BYTES, Status, cut_json};
use crate::value::Value;
use crate::value::atom::{Atom, known};
use crate::value::thrown::{Cause, Result, Thrown};
use agentscript_lang::Refusal;

/// Settle the promise of a call. Answers to calls that are settled already, or that the host was never handed, are
/// ignored.
pub(crate) fn settle_call(vm: &mut Vm, id: CallId, result: std::result::Result<String, ToolError>) -> Result<()> {
    let Some(call) = vm.host.calls.answered(id) else { return Ok(()) };
    vm.heap.meter.release_bytes(call.cost());
    let Open { tool, promise, style, place, .. } = call;
    let result = match result {
        Ok(text) => tool_data(vm, text)?,
        Err(error) if error.fatal => {
            let Thrown(cause) = fatal(error, vm.short_text(tool, MAX_NAME_BYTES)?);
            return Err(match (*cause, place) {
                (Cause::Stop(mut failure), Some((code, offset))) => {
                    failure.location = vm.realm.location(code, offset);
                    Thrown::stop(*failure)
                }
                (cause, _) => Thrown(Box::new(cause)),
            });
        }
        Err(error) => Err(error),
    };
    let answer = match (result, style) {
        (Ok(data), Style::Fetch) => match crate::builtins::response::of_answer(vm, data)? {
            Some(response) => response,
            None => {
                let error = ToolError::new(ErrorCode::ToolExecutionError, "The host gave no response");
                fetch::reject_fetch(vm, &error, &call.input, promise, place);
                return Ok(());
            }
        },
        (Err(error), Style::Fetch) => {
            fetch::reject_fetch(vm, &error, &call.input, promise, place);
            return Ok(());
        }
        (Ok(data), Style::Throws | Style::Function) => data,
        (Ok(data), Style::Success) => object_of(vm, &[(known::SUCCESS, Value::TRUE), (known::DATA, data)]),
        (Ok(data), Style::Ok) => object_of(vm, &[(known::OK, Value::TRUE), (known::RESULT, data)]),
        (Err(error), Style::Success) => failed_answer(vm, &error, tool),
        (Err(error), Style::Ok) => {
            let (message, code) = (vm.heap.string(&error.message), vm.heap.string(&error.code));
            let object = object_of(vm, &[(known::MESSAGE, message), (known::CODE, code)]);
            object_of(vm, &[(known::OK, Value::FALSE), (known::ERROR, object)])
        }
        (Err(error), Style::Function) => {
            let reason = function::function_error(vm, Class::Error, &error);
            vm.heap.traces.entry(reason.payload()).or_default().frames.extend(place);
            vm.reject_promise(promise, reason);
            return Ok(());
        }
        (Err(error), Style::Throws) => {
            let object = vm.new_error(Class::Error, &error.message);
            describe_failure(vm, object, &error, Some(tool));
            let tool = vm.short_text(tool, MAX_NAME_BYTES)?;
            let failed = Box::new(Failed { tool, input: cut_json(&call.input, MAX_TOOL_INPUT_BYTES).into() });
            let trace = vm.heap.traces.entry(object.payload()).or_default();
            trace.call = Some(failed);
            trace.frames.extend(place);
            vm.reject_promise(promise, object);
            return Ok(());
        }
    };
    // Data has no methods: its property `then` is no function.
    vm.settle_promise(promise, State::Fulfilled, answer);
    Ok(())
}

/// The data of an answer; a failure of the tool where the answer is no JSON.
fn tool_data(vm: &mut Vm, text: String) -> Result<std::result::Result<Value, ToolError>> {
    match tool::given_data(vm, text, LEVELS) {
        Ok(data) => Ok(Ok(data)),
        Err(thrown) => match *thrown.0 {
            Cause::Value(_) => {
                Ok(Err(ToolError::new(ErrorCode::ToolExecutionError, "The tool answered with text that is not JSON")))
            }
            Cause::Stop(failure) => Err(Thrown::stop(*failure)),
        },
    }
}

/// `{success: false, error}`
pub(in crate::builtins) fn failed_answer(vm: &mut Vm, error: &ToolError, tool: Value) -> Value {
    let message = vm.heap.string(&error.message);
    let object = object_of(vm, &[(known::MESSAGE, message)]);
    describe_failure(vm, object, error, Some(tool));
    object_of(vm, &[(known::SUCCESS, Value::FALSE), (known::ERROR, object)])
}

/// Set `code`, `toolName` and `details` of a failed call.
pub(super) fn describe_failure(vm: &mut Vm, object: Value, error: &ToolError, tool: Option<Value>) {
    let code = vm.heap.string(&error.code);
    vm.heap.set_own(object, known::CODE, code);
    if let Some(tool) = tool {
        vm.heap.set_own(object, known::TOOL_NAME, tool);
    }
    if let Some(details) = &error.details
        && let Ok(details) = json::parse(vm, details.clone(), 0)
    {
        vm.heap.set_own(object, known::DETAILS, details);
    }
}

/// Make an error that of the same tool as another one, made at the same place.
pub(super) fn describe_as(vm: &mut Vm, error: Value, other: Value) -> Result<()> {
    if execute::error_class(vm, other).is_none() {
        return Ok(());
    }
    let trace = vm.heap.traces.get(&other.payload()).map(|trace| (trace.frames.clone(), trace.call.clone()));
    let (frames, call) = trace.unwrap_or_default();
    for key in [known::CODE, known::TOOL_NAME, known::DETAILS] {
        if let Some(value) = json::own(vm, other, key)? {
            vm.heap.set_own(error, key, value);
        }
    }
    let trace = vm.heap.traces.entry(error.payload()).or_default();
    (trace.frames, trace.call) = (frames, call);
    Ok(())
}

pub(super) fn object_of(vm: &mut Vm, entries: &[(Atom, Value)]) -> Value {
    let object = vm.heap.new_object();
    for &(name, value) in entries {
        vm.heap.set_own(object, name, value);
    }
    object
}

/// The end of the run at a call that the host refuses for good.
pub(super) fn fatal(error: ToolError, tool: String) -> Thrown {
    let mut failure = Failure::new(Status::IllegalAccess, error.code, error.message);
    failure.refusal = Some(Refusal::IllegalBuiltinAccess);
    failure.tool_name = Some(tool);
    failure.details = error.details.map(|details| cut_json(&details, MAX_DETAILS_BYTES));
    Thrown::stop(failure)
}
