//! The tool calls of one run: made one by one, each noted in a log that the client gets.

use super::context::RunContext;
use super::{RunEvent, Watcher};
use agentscript::{Call, CallId, Outcome, ToolError};
use codecall_base::call::{CallContext, Caller};
use codecall_base::json;
use codecall_base::offload;
use codecall_base::text::truncate;
use codecall_base::tool::{ErrorCode, MAX_NAME_BYTES};
use codecall_tools::pipeline::{Pipeline, ToolCall};
use codecall_tools::sample;
use serde_json::{Value, json as object};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::Instrument as _;

/// Calls that the log of a run has room for.
const MOST: usize = 100;
/// The same in a dry run, whose log is its answer.
const MOST_DRY: usize = 1_000;
/// Longest input in the log, in bytes; a longer one is cut.
const LONGEST_INPUT: usize = 2_048;
/// Longest message of an error in the log, in bytes.
const LONGEST_MESSAGE: usize = 500;

/// What the tool calls of one run share.
#[derive(Clone)]
pub struct Calls {
    pub pipeline: Arc<Pipeline>,
    pub allowed: Option<Arc<[String]>>,
    pub apps: Option<Arc<[String]>>,
    pub at_once: Arc<Semaphore>,
    pub context: Arc<RunContext>,
    pub log: Arc<CallLog>,
    /// Whether no tool may be reached.
    pub dry: bool,
}

impl Calls {
    pub async fn make(self, call: Call) -> (CallId, Result<String, ToolError>) {
        let _turn = self.at_once.acquire().await;
        let id = call.id;
        (id, self.answer(call).await)
    }

    async fn answer(&self, call: Call) -> Result<String, ToolError> {
        let Call { id, tool, input: text, timeout_ms, .. } = call;
        let named = truncate(&tool, MAX_NAME_BYTES);
        if !self.context.fits(&format!("The input of tool '{named}'"), text.len()) {
            return Err(aborted(named));
        }
        let input = match offload::run(text.len(), || json::parse(&text)).await {
            Ok(Ok(Value::Object(input))) => input,
            Ok(Ok(_)) => {
                return Err(ToolError::new(
                    ErrorCode::InvalidInput,
                    format!("The input of tool '{named}' must be an object"),
                ));
            }
            Ok(Err(_)) => {
                self.context.unreadable(&format!("The input of tool '{named}'"));
                return Err(aborted(named));
            }
            Err(busy) => return Err(busy.into()),
        };
        let call = ToolCall {
            tool,
            input,
            context: CallContext {
                caller: Caller::Script,
                run: Some(self.context.scope.clone()),
                timeout: Duration::from_millis(timeout_ms),
                watcher: self.noted(id),
                cancel: self.context.cancel.clone(),
            },
            allowed: self.allowed.clone(),
            apps: self.apps.clone(),
        };
        if self.dry { self.dry_run(id, &call) } else { self.reach(call).await }
    }

    /// Who watches a call: the log of the run, and whoever watches the run.
    fn noted(&self, id: CallId) -> Watcher {
        let (log, watcher) = (Arc::clone(&self.log), self.context.watcher.clone());
        Some(Arc::new(move |event| {
            match &event {
                RunEvent::CallStarted { tool, call, input } => log.begin(id, *call, tool, input),
                RunEvent::CallEnded { duration, error, .. } => log.end(id, *duration, error.as_ref()),
                RunEvent::Started { .. } | RunEvent::Message(_) | RunEvent::CallUpdated { .. } => {}
            }
            if let Some(watcher) = &watcher {
                watcher(event);
            }
        }))
    }

    async fn reach(&self, call: ToolCall) -> Result<String, ToolError> {
        let tool = call.tool.clone();
        // A task of its own: a crash of an upstream is the failure of this call alone.
        let pipeline = Arc::clone(&self.pipeline);
        let mut made = JoinSet::new();
        made.spawn(async move { pipeline.data(call).await }.in_current_span());
        let text = match made.join_next().await {
            Some(Ok(result)) => {
                let result = result?;
                offload::run(offload::weight(&result), || result.to_string()).await?
            }
            Some(Err(_)) | None => return Err(ToolError::new(ErrorCode::ToolExecutionError, "The tool crashed")),
        };
        let most = self.context.bounds.max_message_bytes;
        if text.len() > most {
            let message = format!(
                "The answer of tool '{tool}' has {} bytes, more than the {most} that a script can get; ask for less",
                text.len()
            );
            return Err(ToolError::new(ErrorCode::MessageTooLarge, message));
        }
        Ok(text)
    }

    fn dry_run(&self, id: CallId, call: &ToolCall) -> Result<String, ToolError> {
        let weight = offload::weight_of(&call.input);
        let shown =
            offload::run_without_permit(weight, || self.pipeline.shown(&Arc::new(Value::Object(call.input.clone()))));
        self.log.begin(id, u64::from(id.0), &call.tool, &shown);
        let entry = self.pipeline.admit(call);
        self.log.end(id, Duration::ZERO, entry.as_ref().err());
        let (result, known) = sample::result(entry?.definition.output_schema.as_ref());
        self.log.is_example(id, known);
        Ok(result.to_string())
    }
}

/// The answer to a call of a run that has to end.
fn aborted(tool: &str) -> ToolError {
    ToolError::new(ErrorCode::ExecutionAborted, format!("The call of tool '{tool}' was not made"))
}

/// What a run has done with tools, in the order of its calls; the first ones, where there are many.
#[derive(Debug)]
pub struct CallLog {
    most: usize,
    rows: Mutex<Rows>,
}

#[derive(Debug, Default)]
struct Rows {
    calls: BTreeMap<CallId, Record>,
    made: u64,
}

/// One call.
#[derive(Clone, Debug)]
struct Record {
    /// Its number in the process, as notifications tell it.
    number: u64,
    tool: String,
    input: Value,
    began: Instant,
    duration: Option<Duration>,
    error: Option<ToolError>,
    /// In a dry run: whether the schema of the tool says what its result looks like.
    known: bool,
}

impl CallLog {
    pub fn new(dry: bool) -> Self {
        Self { most: if dry { MOST_DRY } else { MOST }, rows: Mutex::default() }
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, id: CallId, number: u64, tool: &str, input: &Value) {
        let mut rows = self.rows();
        rows.made += 1;
        if rows.calls.len() < self.most {
            let (tool, input) = (truncate(tool, MAX_NAME_BYTES).to_owned(), shortened(input));
            let record =
                Record { number, tool, input, began: Instant::now(), duration: None, error: None, known: false };
            rows.calls.insert(id, record);
        }
    }

    fn end(&self, id: CallId, duration: Duration, error: Option<&ToolError>) {
        if let Some(record) = self.rows().calls.get_mut(&id) {
            record.duration = Some(duration);
            record.error = error.cloned();
        }
    }

    fn is_example(&self, id: CallId, known: bool) {
        if let Some(record) = self.rows().calls.get_mut(&id) {
            record.known = known;
        }
    }

    /// How many calls were made.
    pub fn made(&self) -> u64 {
        self.rows().made
    }

    /// The log as clients see it, with the calls that the run has left behind. `shown` masks an input.
    pub fn to_json(&self, outcome: &Outcome, shown: &dyn Fn(&str) -> Arc<Value>) -> Value {
        let rows = self.rows();
        let calls: Vec<Value> = rows.calls.values().map(Record::to_json).collect();
        let unanswered: Vec<Value> = outcome
            .unanswered
            .iter()
            .map(|call| {
                let (input, started, awaited) = (shortened(&shown(&call.input)), call.started, call.awaited);
                let mut row = object!({"toolName": call.tool, "input": input, "started": started, "awaited": awaited});
                if let Some(record) = rows.calls.get(&call.id) {
                    row["callId"] = record.number.to_string().into();
                }
                row
            })
            .collect();
        let mut log = object!({ "calls": calls });
        let omitted = rows.made - rows.calls.len() as u64;
        if omitted > 0 {
            log["omitted"] = omitted.into();
        }
        if !unanswered.is_empty() {
            log["unanswered"] = unanswered.into();
        }
        log
    }

    /// The calls of a dry run as clients see them, and how many there is no room for.
    pub fn dry_run(&self) -> (Vec<Value>, u64) {
        let rows = self.rows();
        let calls = rows.calls.values().map(Record::dry_run).collect();
        (calls, rows.made - rows.calls.len() as u64)
    }
}

impl Record {
    fn to_json(&self) -> Value {
        let status = match (self.duration, &self.error) {
            (None, _) => "cancelled",
            (Some(_), Some(error)) if error.code == ErrorCode::ExecutionAborted => "cancelled",
            (Some(_), None) => "ok",
            (Some(_), Some(_)) => "error",
        };
        let duration = self.duration.unwrap_or_else(|| self.began.elapsed());
        let mut call = object!({
            "callId": self.number.to_string(),
            "toolName": self.tool,
            "input": self.input,
            "status": status,
            "durationMs": (duration.as_secs_f64() * 1e6).round() / 1e3,
        });
        if let Some(error) = self.error.as_ref().filter(|_| status == "error") {
            call["error"] = told(error);
        }
        call
    }

    fn dry_run(&self) -> Value {
        let mut call = object!({"toolName": self.tool, "input": self.input});
        match &self.error {
            None => {
                call["fits"] = true.into();
                call["result"] = if self.known { "example" } else { "unknown" }.into();
            }
            Some(error) => {
                // Whether the input of a call fits that is refused for another reason was not asked.
                if error.code == ErrorCode::InvalidInput {
                    call["fits"] = false.into();
                }
                call["refused"] = told(error);
            }
        }
        call
    }
}

fn told(error: &ToolError) -> Value {
    object!({"code": error.code, "message": truncate(&error.message, LONGEST_MESSAGE)})
}

/// An input for the log: its text, cut, where it is long.
fn shortened(input: &Value) -> Value {
    if let Value::String(text) = input {
        return if text.len() <= LONGEST_INPUT {
            input.clone()
        } else {
            format!("{}…", truncate(text, LONGEST_INPUT)).into()
        };
    }
    let text = input.to_string();
    if text.len() <= LONGEST_INPUT { input.clone() } else { format!("{}…", truncate(&text, LONGEST_INPUT)).into() }
}
