//! What is told and recorded of a call: that it begins, and how it ends, whatever happens to it.

use super::{Pipeline, Record, bound, sanitize};
use codecall_base::call::CallContext;
use codecall_base::event::{CallUpdate, LogMessage, RunEvent, UpdateSink};
use codecall_base::tool::{ErrorCode, ToolError, ToolResult};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A call under way. Dropped without [`CallTrace::end`], it was abandoned or has crashed, which is told
/// and recorded too.
pub struct CallTrace<'a> {
    pipeline: &'a Pipeline,
    id: u64,
    name: String,
    context: CallContext,
    /// The input, masked.
    shown: Arc<Value>,
    /// The same for whoever watches, cut where it is long.
    told: Arc<Value>,
    began: Instant,
    answered_by: Option<&'static str>,
    ended: bool,
}

impl<'a> CallTrace<'a> {
    /// A call begins.
    pub fn begin(pipeline: &'a Pipeline, name: String, context: CallContext, sent: &Arc<Value>) -> Self {
        let shown = pipeline.shown(sent);
        let told = if context.sink.is_some() { bound::told(Arc::clone(&shown)) } else { Arc::default() };
        let id = pipeline.calls.fetch_add(1, Ordering::Relaxed);
        let trace =
            Self { pipeline, id, name, context, shown, told, began: Instant::now(), answered_by: None, ended: false };
        trace.tell(|tool, input| RunEvent::CallStarted { tool, call: id, input });
        trace
    }

    /// Number of the call in this process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns a sink that passes the upstream's updates of the call on, masked and redacted.
    pub fn update_sink(&self) -> UpdateSink {
        let Some(sink) = self.context.sink.clone() else { return UpdateSink::default() };
        let (secrets, hooks) = (Arc::clone(&self.pipeline.secrets), Arc::clone(&self.pipeline.hooks));
        let (sanitization, name) = (self.pipeline.sanitization, self.name.clone());
        UpdateSink::new(move |update| {
            let clean = |value: Value| {
                let masked = hooks.iter().fold(bound::told(Arc::new(value)), |value, hook| hook.mask(value));
                let mut value = Arc::unwrap_or_clone(masked);
                sanitize::data(&mut value, sanitization);
                secrets.redact_value(&mut value);
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

    /// A hook has answered it instead of the tool.
    pub fn answered_by(&mut self, hook: &'static str) {
        self.answered_by = Some(hook);
    }

    /// The call has ended.
    pub fn end(mut self, result: &Result<ToolResult, ToolError>) {
        match result {
            Ok(result) => self.finish(result.failure(&self.name).as_ref()),
            Err(error) => self.finish(Some(error)),
        }
    }

    fn finish(&mut self, error: Option<&ToolError>) {
        self.ended = true;
        let duration = self.began.elapsed();
        let error = error.cloned().map(|mut error| {
            self.pipeline.hooks.iter().for_each(|hook| hook.mask_error(&mut error));
            error
        });
        let error = error.as_ref();
        self.tell(|tool, input| RunEvent::CallEnded { tool, call: self.id, input, duration, error: error.cloned() });
        let record = Record {
            id: self.id,
            name: &self.name,
            context: &self.context,
            input: &self.shown,
            duration,
            error,
            answered_by: self.answered_by,
        };
        self.pipeline.hooks.iter().for_each(|hook| hook.recorded(&record));
    }

    fn tell(&self, event: impl FnOnce(String, Arc<Value>) -> RunEvent) {
        if let Some(sink) = &self.context.sink {
            sink(event(self.name.clone(), Arc::clone(&self.told)));
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
        self.finish(Some(&error));
    }
}
