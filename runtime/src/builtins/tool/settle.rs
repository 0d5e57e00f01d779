//! Answers of the host to tool calls.

use crate::eval::calls::{Open, Style};
use crate::eval::json::LEVELS;
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

impl Vm {
    /// Settle the promise of a call. Answers to calls that are settled already, or that the host was never handed, are
    /// ignored.
    pub(crate) fn settle_call(&mut self, id: CallId, result: std::result::Result<String, ToolError>) -> Result<()> {
        let Some(call) = self.host.calls.answered(id) else { return Ok(()) };
        self.heap.meter.release_bytes(call.cost());
        let Open { tool, promise, style, place, .. } = call;
        let result = match result {
            Ok(text) => self.tool_data(text)?,
            Err(error) if error.fatal => {
                let Thrown(cause) = fatal(error, self.short_text(tool, MAX_NAME_BYTES)?);
                return Err(match (*cause, place) {
                    (Cause::Stop(mut failure), Some((code, offset))) => {
                        failure.location = self.location(code, offset);
                        Thrown::stop(*failure)
                    }
                    (cause, _) => Thrown(Box::new(cause)),
                });
            }
            Err(error) => Err(error),
        };
        let answer = match (result, style) {
            (Ok(data), Style::Fetch) => match crate::builtins::response::of_answer(self, data)? {
                Some(response) => response,
                None => {
                    let error = ToolError::new(ErrorCode::ToolExecutionError, "The host gave no response");
                    self.reject_fetch(&error, &call.input, promise, place);
                    return Ok(());
                }
            },
            (Err(error), Style::Fetch) => {
                self.reject_fetch(&error, &call.input, promise, place);
                return Ok(());
            }
            (Ok(data), Style::Throws | Style::Function) => data,
            (Ok(data), Style::Success) => self.object_of(&[(known::SUCCESS, Value::TRUE), (known::DATA, data)]),
            (Ok(data), Style::Ok) => self.object_of(&[(known::OK, Value::TRUE), (known::RESULT, data)]),
            (Err(error), Style::Success) => self.failed_answer(&error, tool),
            (Err(error), Style::Ok) => {
                let (message, code) = (self.heap.string(&error.message), self.heap.string(&error.code));
                let object = self.object_of(&[(known::MESSAGE, message), (known::CODE, code)]);
                self.object_of(&[(known::OK, Value::FALSE), (known::ERROR, object)])
            }
            (Err(error), Style::Function) => {
                let reason = self.function_error(Class::Error, &error);
                self.heap.traces.entry(reason.payload()).or_default().frames.extend(place);
                self.reject_promise(promise, reason);
                return Ok(());
            }
            (Err(error), Style::Throws) => {
                let object = self.new_error(Class::Error, &error.message);
                self.describe_failure(object, &error, Some(tool));
                let tool = self.short_text(tool, MAX_NAME_BYTES)?;
                let failed = Box::new(Failed { tool, input: cut_json(&call.input, MAX_TOOL_INPUT_BYTES).into() });
                let trace = self.heap.traces.entry(object.payload()).or_default();
                trace.call = Some(failed);
                trace.frames.extend(place);
                self.reject_promise(promise, object);
                return Ok(());
            }
        };
        // Data has no methods: its property `then` is no function.
        self.settle_promise(promise, State::Fulfilled, answer);
        Ok(())
    }

    /// The data of an answer; a failure of the tool where the answer is no JSON.
    fn tool_data(&mut self, text: String) -> Result<std::result::Result<Value, ToolError>> {
        match self.given_data(text, LEVELS) {
            Ok(data) => Ok(Ok(data)),
            Err(thrown) => match *thrown.0 {
                Cause::Value(_) => Ok(Err(ToolError::new(
                    ErrorCode::ToolExecutionError,
                    "The tool answered with text that is not JSON",
                ))),
                Cause::Stop(failure) => Err(Thrown::stop(*failure)),
            },
        }
    }

    /// `{success: false, error}`
    pub(in crate::builtins) fn failed_answer(&mut self, error: &ToolError, tool: Value) -> Value {
        let message = self.heap.string(&error.message);
        let object = self.object_of(&[(known::MESSAGE, message)]);
        self.describe_failure(object, error, Some(tool));
        self.object_of(&[(known::SUCCESS, Value::FALSE), (known::ERROR, object)])
    }

    /// Set `code`, `toolName` and `details` of a failed call.
    pub(super) fn describe_failure(&mut self, object: Value, error: &ToolError, tool: Option<Value>) {
        let code = self.heap.string(&error.code);
        self.heap.set_own(object, known::CODE, code);
        if let Some(tool) = tool {
            self.heap.set_own(object, known::TOOL_NAME, tool);
        }
        if let Some(details) = &error.details
            && let Ok(details) = self.parse_json(details.clone(), 0)
        {
            self.heap.set_own(object, known::DETAILS, details);
        }
    }

    /// Make an error that of the same tool as another one, made at the same place.
    pub(super) fn describe_as(&mut self, error: Value, other: Value) -> Result<()> {
        if self.error_class(other).is_none() {
            return Ok(());
        }
        let trace = self.heap.traces.get(&other.payload()).map(|trace| (trace.frames.clone(), trace.call.clone()));
        let (frames, call) = trace.unwrap_or_default();
        for key in [known::CODE, known::TOOL_NAME, known::DETAILS] {
            if let Some(value) = self.own(other, key)? {
                self.heap.set_own(error, key, value);
            }
        }
        let trace = self.heap.traces.entry(error.payload()).or_default();
        (trace.frames, trace.call) = (frames, call);
        Ok(())
    }

    pub(super) fn object_of(&mut self, entries: &[(Atom, Value)]) -> Value {
        let object = self.heap.new_object();
        for &(name, value) in entries {
            self.heap.set_own(object, name, value);
        }
        object
    }
}

/// The end of the run at a call that the host refuses for good.
pub(super) fn fatal(error: ToolError, tool: String) -> Thrown {
    let mut failure = Failure::new(Status::IllegalAccess, error.code, error.message);
    failure.refusal = Some(Refusal::IllegalBuiltinAccess);
    failure.tool_name = Some(tool);
    failure.details = error.details.map(|details| cut_json(&details, MAX_DETAILS_BYTES));
    Thrown::stop(failure)
}
