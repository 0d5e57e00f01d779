//! Events and the record of a call: its start, its updates and its end, also if it is cancelled or crashes.

use super::clean::redact;
use super::{Pipeline, Record, ToolCall, bound};
use codecall_base::call::CallContext;
use codecall_base::event::{CallUpdate, LogMessage, RunEvent, UpdateSink};
use codecall_base::offload::{self, weight};
use codecall_base::redact::Redactor;
use codecall_base::telemetry::Span;
use codecall_base::text::truncate;
use codecall_base::tool::{ErrorCode, MAX_NAME_BYTES, ToolError, ToolResult};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Maximum size of an input or a result in a span, in bytes.
const MAX_CONTENT_BYTES: usize = 8_192;

/// Returns the name of the span of a call.
pub fn span_name(tool: &str) -> String {
    format!("execute_tool {}", truncate(tool, MAX_NAME_BYTES))
}

/// Adds to a span what is called. The input is only added if the operator asks for it.
pub fn describe_call(span: &mut Span, pipeline: &Pipeline, call: &ToolCall) {
    if !span.is_recorded() {
        return;
    }
    span.set("gen_ai.operation.name", "execute_tool");
    span.set("gen_ai.tool.name", truncate(&call.tool, MAX_NAME_BYTES));
    span.set("gen_ai.tool.type", "function");
    span.set("codecall.caller", call.context.caller.as_str());
    if let Some(run) = &call.context.run {
        span.set("codecall.run.id", run.id.as_str());
    }
    if span.records_content() {
        let input = pipeline.masked(&bound::for_event(Arc::new(Value::Object(call.input.clone()))));
        span.set("gen_ai.tool.call.arguments", truncate(&input.to_string(), MAX_CONTENT_BYTES));
    }
}

/// Adds to a span how its call has ended.
pub fn describe_result(span: &mut Span, pipeline: &Pipeline, result: &Result<ToolResult, ToolError>) {
    if !span.is_recorded() {
        return;
    }
    match result {
        Ok(result) => {
            if result.is_error() {
                span.fail("tool_error", "The tool says that it has failed");
            }
            if span.records_content() {
                let value = pipeline.masked(&bound::for_event(Arc::new(result.shown().into_owned())));
                span.set("gen_ai.tool.call.result", truncate(&value.to_string(), MAX_CONTENT_BYTES));
            }
        }
        Err(error) => {
            let error = pipeline.hooks.iter().fold(error.clone(), |mut error, hook| {
                hook.mask_error(&mut error);
                error
            });
            span.fail(&error.code, &error.message);
        }
    }
}

/// A call in progress. If it is dropped without [`CallTrace::end`], the call was abandoned or has crashed, and ends with
/// that error.
pub struct CallTrace<'a> {
    pipeline: &'a Pipeline,
    id: u64,
    name: String,
    context: CallContext,
    /// The input for records, masked and redacted.
    recorded_input: Arc<Value>,
    /// The input for events, truncated.
    event_input: Arc<Value>,
    /// The redactor of both.
    redactor: Redactor,
    began: Instant,
    answered_by: Option<&'static str>,
    /// Whether it was handed to its tool; a call that is made again counts once.
    is_reached: AtomicBool,
    ended: bool,
}

impl<'a> CallTrace<'a> {
    /// Starts the trace of a call, and sends the first event.
    pub fn begin(pipeline: &'a Pipeline, name: String, context: CallContext, sent: &Arc<Value>) -> Self {
        let redactor = pipeline.secrets.redactor();
        let recorded_input = pipeline.masked(sent);
        let event_input =
            if context.sink.is_some() { bound::for_event(Arc::clone(&recorded_input)) } else { Arc::default() };
        let (id, began) = (pipeline.calls.fetch_add(1, Ordering::Relaxed), Instant::now());
        let trace = Self {
            pipeline,
            id,
            name,
            context,
            recorded_input,
            event_input,
            redactor,
            began,
            answered_by: None,
            is_reached: AtomicBool::new(false),
            ended: false,
        };
        trace.notify(|tool, input| RunEvent::CallStarted { tool, call: id, input });
        trace
    }

    /// Returns the number of the call in this process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns who makes the call, and in what run.
    pub fn context(&self) -> &CallContext {
        &self.context
    }

    /// Returns a sink that passes the upstream's updates of the call on, masked and redacted.
    pub fn update_sink(&self) -> UpdateSink {
        let Some(sink) = self.context.sink.clone() else { return UpdateSink::default() };
        let (secrets, hooks) = (Arc::clone(&self.pipeline.secrets), Arc::clone(&self.pipeline.hooks));
        let (sanitizer, name) = (self.pipeline.sanitizer.clone(), self.name.clone());
        UpdateSink::new(move |update| {
            let clean = |value: Value| {
                let masked = hooks.iter().fold(bound::for_event(Arc::new(value)), |value, hook| hook.mask(value));
                let mut value = Arc::unwrap_or_clone(masked);
                sanitizer.data(&mut value);
                secrets.redactor().redact_value(&mut value);
                value
            };
            let clean_text = |text: String| match clean(Value::String(text)) {
                Value::String(text) => text,
                other => other.to_string(),
            };
            let update = match update {
                CallUpdate::Progress { progress, total, message } => {
                    CallUpdate::Progress { progress, total, message: message.map(clean_text) }
                }
                CallUpdate::Log(log) => CallUpdate::Log(LogMessage {
                    level: log.level,
                    logger: log.logger.map(clean_text),
                    data: clean(log.data),
                }),
            };
            sink(RunEvent::CallUpdated { tool: name.clone(), update });
        })
    }

    /// Sends the event that the call is handed to the tool.
    pub fn reached(&self) {
        if self.is_reached.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(sink) = &self.context.sink {
            sink(RunEvent::CallReached { call: self.id });
        }
    }

    /// Sends the event that the call is made again.
    pub fn retried(&self) {
        if let Some(sink) = &self.context.sink {
            sink(RunEvent::CallRetried { call: self.id });
        }
    }

    /// Notes that a hook has answered the call instead of the tool.
    pub fn answered_by(&mut self, hook: &'static str) {
        self.answered_by = Some(hook);
    }

    /// Ends the call: sends the last event, and records it.
    pub fn end(mut self, result: &Result<ToolResult, ToolError>) {
        match result {
            Ok(result) => self.finish(result.failure(&self.name).as_ref(), Some(result)),
            Err(error) => self.finish(Some(error), None),
        }
    }

    fn finish(&mut self, error: Option<&ToolError>, result: Option<&ToolResult>) {
        self.ended = true;
        let duration = self.began.elapsed();
        self.redact_again();
        let error = error.cloned().map(|mut error| {
            self.pipeline.hooks.iter().for_each(|hook| hook.mask_error(&mut error));
            error
        });
        let error = error.as_ref();
        self.notify(|tool, input| RunEvent::CallEnded { tool, call: self.id, input, duration, error: error.cloned() });
        let record = Record {
            id: self.id,
            name: &self.name,
            context: &self.context,
            client: self.pipeline.client(),
            input: &self.recorded_input,
            duration,
            error,
            result: result.filter(|_| error.is_none()),
            answered_by: self.answered_by,
        };
        self.pipeline.hooks.iter().for_each(|hook| hook.recorded(&record));
    }

    /// Redacts the secrets that were added since the call began.
    fn redact_again(&mut self) {
        let redactor = self.pipeline.secrets.redactor();
        if redactor.is_same(&self.redactor) {
            return;
        }
        offload::run_without_permit(weight(&self.recorded_input), || redact(&redactor, &mut self.recorded_input));
        if self.context.sink.is_some() {
            self.event_input = bound::for_event(Arc::clone(&self.recorded_input));
        }
        self.redactor = redactor;
    }

    fn notify(&self, event: impl FnOnce(String, Arc<Value>) -> RunEvent) {
        if let Some(sink) = &self.context.sink {
            sink(event(self.name.clone(), Arc::clone(&self.event_input)));
        }
    }
}

impl Drop for CallTrace<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let error = if std::thread::panicking() {
            ToolError::new(ErrorCode::ToolExecutionError, "The tool crashed")
        } else {
            ToolError::new(ErrorCode::ExecutionAborted, "Nobody waits for the result any more")
        };
        self.finish(Some(&error), None);
    }
}
