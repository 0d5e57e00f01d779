//! One call of a tool, as an invocation of its own.

use crate::worker::Worker;
use agentscript::{Call, CallId, CallKind, ToolError};
use codecall_base::call::with_client;
use codecall_base::event::RunId;
use codecall_base::tool::ErrorCode;
use codecall_hub::hub::{Hub, Owner};
use codecall_runs::{EngineAnswer, EngineCall};
use codecall_store::now_ms;
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a call that is cancelled may take to tell its tool so.
const CANCEL_GRACE: Duration = Duration::from_secs(2);

/// A call of a script. Restate compares it with that of the journal, byte by byte.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub run: String,
    pub id: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_function: bool,
    pub tool: String,
    /// JSON text, in the canonical form of the interpreter.
    pub input: String,
    /// The digest of tool and input.
    pub digest: String,
    pub timeout_ms: u64,
    /// Whether it is noted before the tool is called, because it must not be called twice.
    pub is_noted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_apps: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
}

/// The answer of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    pub what: AnswerKind,
    /// When it came, in milliseconds since 1970.
    pub at_ms: i64,
}

/// The outcome of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AnswerKind {
    Result(String),
    Failure {
        message: String,
        code: String,
        details: Option<String>,
        fatal: bool,
    },
    /// It waits for a person, and is made again.
    Waits(String),
    /// The run has to end.
    Ends {
        code: String,
        message: String,
    },
}

impl From<EngineAnswer> for AnswerKind {
    fn from(made: EngineAnswer) -> Self {
        match made {
            EngineAnswer::Answered(Ok(result)) => Self::Result(result),
            EngineAnswer::Answered(Err(ToolError { message, code, details, fatal })) => {
                Self::Failure { message, code, details, fatal }
            }
            EngineAnswer::Waits(approval) => Self::Waits(approval),
            EngineAnswer::Ends(code, message) => Self::Ends { code: code.as_str().to_owned(), message },
        }
    }
}

/// The service of calls.
pub struct Tools(pub Arc<Worker>);

#[restate_sdk::service(name = "Tools", ingress_private)]
impl Tools {
    /// Calls a tool. Its answer is a step: once that is in the journal, no attempt makes the call again. If the call must not be made
    /// twice, another step before it notes which attempt begins it, and a later attempt without an answer is told of that.
    #[handler]
    async fn call(&self, ctx: Context<'_>, call: Json<ToolCall>) -> Result<Json<Answer>, HandlerError> {
        let Json(call) = call;
        let _in_progress = self.0.begin_call();
        // What can fail before the call is begun does so before the note.
        let hub = self.0.hub_of(call.owner.as_ref())?;
        let run = RunId::parse(&call.run).ok_or("the id of the run is none")?;
        let cancelled = Json(Answer { what: aborted(&call.tool), at_ms: now_ms() });
        let is_repeated = match call.is_noted {
            true => has_begun(&ctx, &call).await,
            false => Ok(false),
        };
        let Ok(is_repeated) = is_repeated else { return Ok(cancelled) };
        let (name, cancel) = (format!("call {} {}", call.tool, call.digest), CancellationToken::new());
        let _cancelled_when_dropped = cancel.clone().drop_guard();
        // Nobody sends it: an invocation that is cancelled while it waits for it is told so. It adds nothing to the journal.
        let mut signal = std::pin::pin!(ctx.signal::<String>("cancel"));
        let making = make(Arc::clone(&self.0), hub, run, call, is_repeated, cancel.clone());
        let has_ended = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&has_ended);
        let step = ctx.run(|| async move {
            let made = making.await;
            ends.store(true, Ordering::Relaxed);
            made.map(Json)
        });
        let mut step = std::pin::pin!(step.name(name));
        let answered = std::future::poll_fn(|context| match step.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            // The step alone reads on: what the signal reads could be that its answer is stored.
            Poll::Pending if has_ended.load(Ordering::Relaxed) => Poll::Pending,
            Poll::Pending => signal.as_mut().poll(context).map(|_| None),
        });
        let answer = answered.await;
        match answer {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(_)) => Ok(cancelled),
            None => {
                cancel.cancel();
                let _ = tokio::time::timeout(CANCEL_GRACE, step).await;
                Ok(cancelled)
            }
        }
    }
}

/// Notes in the journal that this attempt begins a call. Returns whether an earlier one has: its id is in the journal then.
///
/// # Errors
/// The call was cancelled.
async fn has_begun(ctx: &Context<'_>, call: &ToolCall) -> Result<bool, TerminalError> {
    let attempt = RunId::random().as_str().to_owned();
    let own = attempt.clone();
    let note = ctx.run(|| async move { Ok(own) }).name(format!("note {} {}", call.tool, call.digest));
    Ok(note.await? != attempt)
}

/// The answer of a call that was cancelled.
fn aborted(tool: &str) -> AnswerKind {
    let message = format!("The call of tool '{tool}' was cancelled");
    EngineAnswer::Answered(Err(ToolError::new(ErrorCode::ExecutionAborted, message))).into()
}

/// Makes a call. It fails only if the worker ends: the attempt ends too, and the retries of the service begin another one elsewhere.
async fn make(
    worker: Arc<Worker>,
    hub: Arc<Hub>,
    run: RunId,
    call: ToolCall,
    is_repeated: bool,
    cancel: CancellationToken,
) -> Result<Answer, HandlerError> {
    let kind = if call.is_function { CallKind::Function } else { CallKind::Tool };
    let (name, client) = (call.tool.clone(), call.client);
    let made = EngineCall {
        run,
        call: Call { id: CallId(call.id), kind, tool: call.tool, input: call.input, timeout_ms: call.timeout_ms },
        is_repeated,
        allowed_tools: call.allowed_tools,
        allowed_apps: call.allowed_apps,
    };
    let making = async {
        hub.wait_for_named(std::slice::from_ref(&name)).await;
        hub.runs().make(made, cancel).await
    };
    let making = async {
        match client {
            Some(client) => with_client(client.into(), making).await,
            None => making.await,
        }
    };
    let made = tokio::select! {
        biased;
        made = making => Some(made),
        () = worker.ended() => None,
    };
    // What a tool says of a worker that ends is not its answer.
    let made = made.filter(|_| !worker.has_ended()).ok_or("the worker ends; another one makes the call")?;
    Ok(Answer { what: made.into(), at_ms: now_ms() })
}
