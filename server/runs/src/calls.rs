//! The tool calls of one run, and the log of them that the client gets.

use super::context::RunContext;
use super::finished::redact_input;
use super::{EventSink, RunEvent};
use agentscript::{Call, CallId, CallKind, Event, Outcome, ToolError};
use codecall_base::call::{CallContext, CallPause, Caller, RunScope, with_client};
use codecall_base::client::Client;
use codecall_base::json;
use codecall_base::offload;
use codecall_base::telemetry::{self, TraceContext};
use codecall_base::text::truncate;
use codecall_base::tool::{ErrorCode, MAX_NAME_BYTES};
use codecall_tools::catalogue::Entry;
use codecall_tools::pipeline::{Pipeline, ToolCall};
use codecall_tools::sample;
use futures_util::FutureExt as _;
use futures_util::future::{Either, OptionFuture};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Maximum number of calls in the log of a run.
const MAX_LOGGED: usize = 100;
/// Maximum number of calls in the log of a dry run, which is its answer.
const MAX_LOGGED_DRY_RUN: usize = 1_000;
/// Maximum number of calls beside an error.
const MAX_SUMMARY: usize = 20;
/// Maximum size of an input in the log, in bytes. A larger one is truncated.
const MAX_INPUT_BYTES: usize = 2_048;
/// Maximum length of the message of an error in the log, in bytes.
const MAX_MESSAGE_BYTES: usize = 500;

/// Makes the tool calls of one run.
pub struct Calls {
    pub pipeline: Arc<Pipeline>,
    /// The only tools that the run may call; `None`: all.
    pub allowed: Option<Arc<[String]>>,
    /// The only apps whose tools the run may call; `None`: all.
    pub apps: Option<Arc<[String]>>,
    /// One permit for each call that may be in flight.
    pub permits: Arc<Semaphore>,
    pub context: Arc<RunContext>,
    pub log: Arc<CallLog>,
    pub is_dry_run: bool,
    /// `fetch` of the script, if it has it.
    pub fetch: Option<Arc<Entry>>,
    /// The client that tools can ask.
    pub client: Client,
    /// How the client names itself; `None`: that is not known.
    pub requester: Option<Arc<str>>,
    /// The span of the run.
    pub trace: Option<Arc<TraceContext>>,
}

/// The end of a call.
pub struct CallEnd {
    pub id: CallId,
    /// The result as JSON text.
    pub result: Result<String, ToolError>,
    /// Whether it has no result yet, as it waits for a person.
    pub is_paused: bool,
}

impl Calls {
    /// Makes a call when there is a permit for it, unless it is cancelled before. `pause` is there if it can pause.
    pub async fn make(
        self: Arc<Self>,
        call: Box<Call>,
        cancel: CancellationToken,
        pause: Option<Arc<CallPause>>,
    ) -> CallEnd {
        let id = call.id;
        // A call of an unknown tool reaches none, so it does not wait for its turn.
        let permits = (call.kind != CallKind::Tool || !self.pipeline.is_unknown(&call.tool)).then_some(&self.permits);
        let acquiring = OptionFuture::from(permits.map(|permits| permits.acquire()));
        let Some(permit) = Box::pin(cancel.run_until_cancelled(acquiring)).await else {
            let result = Err(aborted(truncate(&call.tool, MAX_NAME_BYTES)));
            return CallEnd { id, result, is_paused: false };
        };
        let result = match Box::pin(self.prepare(call, cancel, pause.clone())).await.map_err(Box::new) {
            Ok((call, fetch)) if self.is_dry_run => self.dry_run(id, &call, fetch.is_some()),
            Ok((call, fetch)) => self.call_tool(call, fetch).await,
            Err(error) => Err(*error),
        };
        drop(permit);
        let is_paused = result.is_err() && pause.is_some_and(|pause| pause.approval().is_some());
        CallEnd { id, result, is_paused }
    }

    /// Returns a call as the pipeline takes it, and `fetch` if it is one.
    async fn prepare(
        &self,
        call: Box<Call>,
        cancel: CancellationToken,
        pause: Option<Arc<CallPause>>,
    ) -> Result<(Box<ToolCall>, Option<Arc<Entry>>), ToolError> {
        let Call { id, kind, tool, input: text, timeout_ms } = *call;
        let name = truncate(&tool, MAX_NAME_BYTES);
        if !self.context.check_size(&format!("The input of tool '{name}'"), text.len()) {
            return Err(aborted(name));
        }
        let input = match offload::run(text.len(), || json::parse(&text)).await {
            Ok(Ok(Value::Object(input))) => input,
            Ok(Ok(_)) => {
                return Err(ToolError::new(
                    ErrorCode::InvalidInput,
                    format!("The input of tool '{name}' must be an object"),
                ));
            }
            Ok(Err(_)) => {
                self.context.end_too_deep(&format!("The input of tool '{name}'"));
                return Err(aborted(name));
            }
            Err(busy) => return Err(busy.into()),
        };
        let call = Box::new(ToolCall {
            tool,
            input,
            context: CallContext {
                caller: Caller::Script,
                run: Some(RunScope { pause, ..self.context.scope.clone() }),
                timeout: Duration::from_millis(timeout_ms),
                client: self.client.clone(),
                sink: self.logging_sink(id),
                cancel,
            },
            allowed: self.allowed.clone(),
            apps: self.apps.clone(),
        });
        let fetch = match (kind, &self.fetch) {
            (CallKind::Fetch, None) => {
                let message = "The script has no fetch";
                return Err(ToolError::new(ErrorCode::FetchNotAllowed, message));
            }
            (CallKind::Fetch, Some(fetch)) => Some(Arc::clone(fetch)),
            (CallKind::Tool | CallKind::Function, _) => None,
        };
        Ok((call, fetch))
    }

    /// Returns the sink of a call, which logs its events and forwards them to the sink of the run.
    fn logging_sink(&self, id: CallId) -> EventSink {
        let (log, sink) = (Arc::clone(&self.log), self.context.sink.clone());
        Some(Arc::new(move |event| {
            match &event {
                RunEvent::CallStarted { tool, call, input } => log.begin(id, *call, tool, input),
                RunEvent::CallReached { .. } => log.reach(),
                RunEvent::CallRetried { .. } => log.retry(id),
                RunEvent::CallEnded { duration, error, .. } => log.end(id, *duration, error.as_ref()),
                RunEvent::Started { .. }
                | RunEvent::Durable { .. }
                | RunEvent::Message(_)
                | RunEvent::CallUpdated { .. } => {}
            }
            if let Some(sink) = &sink {
                sink(event);
            }
        }))
    }

    async fn call_tool(&self, call: Box<ToolCall>, fetch: Option<Arc<Entry>>) -> Result<String, ToolError> {
        let tool = call.tool.clone();
        let answering = match &fetch {
            Some(fetch) => Either::Left(Box::pin(self.pipeline.fetch(fetch, *call))),
            None => Either::Right(self.pipeline.data(call)),
        };
        // The task of the call does not inherit who has made the request.
        let answering = match self.requester.clone() {
            Some(requester) => Either::Left(with_client(requester, answering)),
            None => Either::Right(answering),
        };
        let calling = Box::pin(telemetry::within(self.trace.clone(), answering));
        // A panic of an upstream only fails this call.
        let answered = AssertUnwindSafe(calling).catch_unwind().await;
        let crashed = |_| Err(ToolError::new(ErrorCode::ToolExecutionError, "The tool crashed"));
        let text = answered.unwrap_or_else(crashed)?;
        let max = self.context.pool.max_message_bytes;
        if text.len() > max {
            let message = format!(
                "The answer of tool '{tool}' has {} bytes, more than the {max} that a script can get; ask for less",
                text.len()
            );
            return Err(ToolError::new(ErrorCode::MessageTooLarge, message));
        }
        Ok(text)
    }

    /// Checks a call as the pipeline does, and returns a sample result. No request is sent: each is answered by an empty
    /// response.
    fn dry_run(&self, id: CallId, call: &ToolCall, is_fetch: bool) -> Result<String, ToolError> {
        let weight = offload::weight_of(&call.input);
        let input =
            offload::run_without_permit(weight, || self.pipeline.masked(&Arc::new(Value::Object(call.input.clone()))));
        self.log.begin(id, u64::from(id.0), &call.tool, &input);
        if is_fetch {
            self.log.end(id, Duration::ZERO, None);
            self.log.set_result_known(id, false);
            let url = &call.input["url"];
            return Ok(json!({"status": 200, "statusText": "OK", "url": url, "headers": [], "body": ""}).to_string());
        }
        let entry = self.pipeline.admit(call);
        self.log.end(id, Duration::ZERO, entry.as_ref().err());
        let (result, is_known) = sample::result(entry?.definition.output_schema.as_ref());
        self.log.set_result_known(id, is_known);
        Ok(result.to_string())
    }
}

/// Returns the error of a call of a run that has to end.
fn aborted(tool: &str) -> ToolError {
    ToolError::new(ErrorCode::ExecutionAborted, format!("The call of tool '{tool}' was not made"))
}

/// The log of the tool calls of a run, in their order. It is limited to the first ones.
#[derive(Debug)]
pub struct CallLog {
    max_calls: usize,
    rows: Mutex<Rows>,
}

#[derive(Debug, Default)]
struct Rows {
    calls: BTreeMap<CallId, Box<Record>>,
    /// Number of all calls, those that are not logged included.
    total: u64,
    /// Number of all calls that have reached their tool.
    reached: u64,
    /// How often calls were made again because their tools had refused them.
    retries: u64,
}

/// A call in the log.
#[derive(Clone, Debug)]
struct Record {
    /// Its number in the process, which notifications contain.
    number: u64,
    tool: String,
    input: Value,
    began: Instant,
    duration: Option<Duration>,
    error: Option<ToolError>,
    /// How often it was made again because its tool had refused it.
    retries: u32,
    /// In a dry run: whether the result follows from the output schema of the tool.
    is_result_known: bool,
}

/// A call in the log, for hooks.
#[derive(Clone, Debug)]
pub struct LoggedCall {
    /// Its id in the run.
    pub id: CallId,
    /// Its number in the process, which notifications contain.
    pub number: u64,
    /// The tool.
    pub tool: String,
    /// Its input, masked, and truncated if it is large.
    pub input: Value,
    /// When it began, since the start of the run.
    pub start: Duration,
    /// Its duration; until the end of the run if it has not ended before.
    pub duration: Duration,
    /// `ok`, `error` or `cancelled`.
    pub status: &'static str,
    /// The error of one that has failed.
    pub error: Option<ToolError>,
    /// How often it was made again because its tool had refused it.
    pub retries: u32,
}

/// The log of a dry run.
pub struct DryRunCalls {
    /// The calls, as JSON.
    pub calls: Vec<Value>,
    /// Number of calls that are not logged.
    pub omitted: u64,
    /// Whether there are tools without a usable output schema.
    pub has_unknown_results: bool,
}

impl CallLog {
    pub fn new(is_dry_run: bool) -> Self {
        Self { max_calls: if is_dry_run { MAX_LOGGED_DRY_RUN } else { MAX_LOGGED }, rows: Mutex::default() }
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, id: CallId, number: u64, tool: &str, input: &Value) {
        let mut rows = self.rows();
        rows.total += 1;
        if rows.calls.len() < self.max_calls {
            let (tool, input) = (truncate(tool, MAX_NAME_BYTES).to_owned(), truncate_input(input));
            let began = Instant::now();
            let record =
                Record { number, tool, input, began, duration: None, error: None, retries: 0, is_result_known: false };
            rows.calls.insert(id, Box::new(record));
        }
    }

    fn reach(&self) {
        self.rows().reached += 1;
    }

    fn retry(&self, id: CallId) {
        let mut rows = self.rows();
        rows.retries += 1;
        if let Some(record) = rows.calls.get_mut(&id) {
            record.retries += 1;
        }
    }

    /// Adds those of the open calls that the events answer, which were not made here: a journal or an engine has their
    /// answers. They are no longer open.
    pub fn add_answered(&self, pipeline: &Pipeline, events: &[Event], open: &mut BTreeMap<CallId, Call>) {
        for event in events {
            if let Event::Settled { id, result } = event
                && let Some(Call { tool, input, .. }) = open.remove(id)
            {
                let input = offload::run_without_permit(input.len(), || redact_input(pipeline, &input));
                self.begin(*id, u64::from(id.0), &tool, &input);
                self.end(*id, Duration::ZERO, result.as_ref().err());
                self.reach();
            }
        }
    }

    fn end(&self, id: CallId, duration: Duration, error: Option<&ToolError>) {
        if let Some(record) = self.rows().calls.get_mut(&id) {
            record.duration = Some(duration);
            record.error = error.cloned();
        }
    }

    fn set_result_known(&self, id: CallId, is_known: bool) {
        if let Some(record) = self.rows().calls.get_mut(&id) {
            record.is_result_known = is_known;
        }
    }

    /// Returns the number of calls that have reached their tool: whatever they do may have happened.
    pub fn reached(&self) -> u64 {
        self.rows().reached
    }

    /// Returns how often calls were made again because their tools had refused them.
    pub fn retries(&self) -> u64 {
        self.rows().retries
    }

    /// Returns name, status and duration of the first calls, as JSON, and the number of further ones.
    pub fn summary(&self) -> (Vec<Value>, u64) {
        let rows = self.rows();
        (rows.calls.values().map(|record| record.to_summary()).collect(), rows.omitted())
    }

    /// Returns name, status and duration of the calls that matter most, as JSON, and the number of further ones: those that
    /// have failed or have no answer first, then those of tools that may write, then the others.
    pub fn error_summary(&self, only_reads: &dyn Fn(&str) -> bool) -> (Vec<Value>, u64) {
        let rows = self.rows();
        let rank = |record: &Record| match record.status().0 {
            "ok" if only_reads(&record.tool) => 2,
            "ok" => 1,
            _ => 0,
        };
        let mut calls: Vec<(u8, &Record)> = rows.calls.values().map(|record| (rank(record), &**record)).collect();
        calls.sort_by_key(|(rank, _)| *rank);
        calls.truncate(MAX_SUMMARY);
        let calls: Vec<Value> = calls.into_iter().map(|(_, record)| record.to_summary()).collect();
        let omitted = rows.total - calls.len() as u64;
        (calls, omitted)
    }

    /// Returns the first calls of a run that began then, and the number of further ones.
    pub fn calls(&self, began: Instant) -> (Vec<LoggedCall>, u64) {
        let rows = self.rows();
        let call = |id: &CallId, record: &Record| {
            let (status, error) = record.status();
            LoggedCall {
                id: *id,
                number: record.number,
                tool: record.tool.clone(),
                input: record.input.clone(),
                start: record.began.saturating_duration_since(began),
                duration: record.duration.unwrap_or_else(|| record.began.elapsed()),
                status,
                error: error.cloned(),
                retries: record.retries,
            }
        };
        (rows.calls.iter().map(|(id, record)| call(id, record)).collect(), rows.omitted())
    }

    /// Returns the number of all calls.
    pub fn total(&self) -> u64 {
        self.rows().total
    }

    /// Returns the log for clients, with the calls that had no answer at the end of the run. `redact` redacts an input,
    /// which is JSON text.
    pub fn to_json(&self, outcome: &Outcome, redact: &dyn Fn(&str) -> Arc<Value>) -> Value {
        let rows = self.rows();
        let calls: Vec<Value> = rows.calls.values().map(|record| record.to_json()).collect();
        let unanswered: Vec<Value> = outcome
            .unanswered
            .iter()
            .map(|call| {
                let (input, started, awaited) = (truncate_input(&redact(&call.input)), call.started, call.awaited);
                let mut row = json!({"toolName": call.tool, "input": input, "started": started, "awaited": awaited});
                if let Some(record) = rows.calls.get(&call.id) {
                    row["callId"] = record.number.to_string().into();
                }
                row
            })
            .collect();
        let mut log = json!({ "calls": calls });
        let omitted = rows.omitted();
        if omitted > 0 {
            log["omitted"] = omitted.into();
        }
        if !unanswered.is_empty() {
            log["unanswered"] = unanswered.into();
        }
        log
    }

    /// Returns the log of a dry run for clients.
    pub fn dry_run(&self) -> DryRunCalls {
        let rows = self.rows();
        let is_unknown = |record: &Record| record.error.is_none() && !record.is_result_known;
        DryRunCalls {
            calls: rows.calls.values().map(|record| record.to_dry_run_json()).collect(),
            omitted: rows.omitted(),
            has_unknown_results: rows.calls.values().any(|record| is_unknown(record)),
        }
    }
}

impl Rows {
    fn omitted(&self) -> u64 {
        self.total - self.calls.len() as u64
    }
}

impl Record {
    /// Its status, and the error of one that has failed.
    fn status(&self) -> (&'static str, Option<&ToolError>) {
        match (self.duration, &self.error) {
            (None, _) => ("cancelled", None),
            (Some(_), Some(error)) if error.code == ErrorCode::ExecutionAborted => ("cancelled", None),
            (Some(_), None) => ("ok", None),
            (Some(_), Some(error)) => ("error", Some(error)),
        }
    }

    fn duration_ms(&self) -> f64 {
        let duration = self.duration.unwrap_or_else(|| self.began.elapsed());
        (duration.as_secs_f64() * 1e6).round() / 1e3
    }

    fn to_summary(&self) -> Value {
        json!({"name": self.tool, "status": self.status().0, "durationMs": self.duration_ms()})
    }

    fn to_json(&self) -> Value {
        let (status, error) = self.status();
        let mut call = json!({
            "callId": self.number.to_string(),
            "toolName": self.tool,
            "input": self.input,
            "status": status,
            "durationMs": self.duration_ms(),
        });
        if let Some(error) = error {
            call["error"] = error_json(error);
        }
        if self.retries > 0 {
            call["retries"] = self.retries.into();
        }
        call
    }

    fn to_dry_run_json(&self) -> Value {
        let mut call = json!({"toolName": self.tool, "input": self.input});
        match &self.error {
            None => {
                call["fits"] = true.into();
                call["result"] = if self.is_result_known { "example" } else { "unknown" }.into();
            }
            Some(error) => {
                // If the call is refused for another reason, its input was not checked.
                if error.code == ErrorCode::InvalidInput {
                    call["fits"] = false.into();
                }
                call["refused"] = error_json(error);
            }
        }
        call
    }
}

fn error_json(error: &ToolError) -> Value {
    json!({"code": error.code, "message": truncate(&error.message, MAX_MESSAGE_BYTES)})
}

/// Returns an input for the log. A large one is its JSON text, truncated.
fn truncate_input(input: &Value) -> Value {
    let text = match input {
        Value::String(text) => Cow::Borrowed(text.as_str()),
        _ => Cow::Owned(input.to_string()),
    };
    if text.len() <= MAX_INPUT_BYTES {
        return input.clone();
    }
    format!("{}…", truncate(&text, MAX_INPUT_BYTES)).into()
}
