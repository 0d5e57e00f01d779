//! Calls of host functions: see [`Linker`](crate::linker::Linker).

use crate::builtins::registry::registry;
use crate::eval::activation::Called;
use crate::eval::calls::Style;
use crate::eval::json::LEVELS;
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

impl Vm {
    /// Call a function of the host.
    #[cold]
    pub(crate) fn call_host_function(&mut self, function: Value, arguments: &[Value], after: After) -> Result<Called> {
        let script = Arc::clone(&self.realm.script);
        let row = script.linker.row(function.payload());
        match &row.binding {
            Binding::BuiltIn(native) => {
                self.call(Value::handle(Kind::Native, *native), Value::UNDEFINED, arguments, after)
            }
            Binding::Sync { count, function } => {
                let text = self.arguments_text(arguments, *count)?;
                self.answer_at_once(&row.name, &**function, text).map(Called::Value)
            }
            Binding::Async => {
                let waits = script.linker.dialect() == Dialect::Sync;
                if waits {
                    self.check_waiting(&row.name)?;
                }
                let promise = self.begin_function(&row.name, arguments);
                match registry().intrinsic("$wait_for") {
                    Some(wait) if waits => self.call_prelude(wait, false, Value::UNDEFINED, &[promise?], after),
                    _ => self.as_rejection(promise).map(Called::Value),
                }
            }
        }
    }

    /// The value that a function of Rust gives.
    fn answer_at_once(&mut self, name: &str, function: &SyncFunction, text: String) -> Result {
        let _hold = self.heap.hold(text.len())?;
        let result = function(&text);
        self.heap.meter.check_time()?;
        match result {
            Ok(json) => {
                self.work(json.len() / BYTES_A_STEP)?;
                self.reserve(json.len())?;
                self.given_data(json, LEVELS)
            }
            Err(error) if error.fatal => Err(super::settle::fatal(error, name.into())),
            Err(error) if error.code == ARGUMENTS => {
                let error = ToolError { message: format!("{name}: {}", error.message), ..error }; // bounded: by the host
                Err(Thrown::value(self.function_error(Class::TypeError, &error)))
            }
            Err(error) => Err(Thrown::value(self.function_error(Class::Error, &error))),
        }
    }

    /// Note a call for the host: the promise of its answer.
    fn begin_function(&mut self, name: &str, arguments: &[Value]) -> Result {
        let input = self.arguments_text(arguments, None)?;
        // The input is kept for the host and for messages.
        self.reserve(input.len().saturating_mul(2))?;
        let tool = self.heap.string(name);
        let timeout_ms = self.heap.meter.limits.tool_timeout_ms;
        self.add_call((tool, name.into()), input, timeout_ms, Style::Function)
    }

    /// So many arguments, or all, as JSON text of an array; charged.
    fn arguments_text(&mut self, arguments: &[Value], count: Option<u8>) -> Result<String> {
        let count = count.map_or(arguments.len(), usize::from);
        let mut items = Buffer::with_capacity(self, count)?;
        for index in 0..count {
            items.push(self, super::arg(arguments, index))?;
        }
        let array = self.heap.array_of(items);
        let text = self.json_text(array)?.unwrap_or_default();
        self.work(CALL_WORK + text.len() / BYTES_A_STEP)?;
        Ok(text)
    }

    /// The exception of a host function that has failed.
    pub(super) fn function_error(&mut self, class: Class, error: &ToolError) -> Value {
        let object = self.new_error(class, &error.message);
        self.describe_failure(object, error, None);
        object
    }
}
