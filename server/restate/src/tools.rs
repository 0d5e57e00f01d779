//! One call of a tool, as an invocation of its own.

use crate::journal;
use crate::worker::Worker;
use agentscript::{Call, CallId, CallKind, ToolError};
use codecall_base::call::with_client;
use codecall_base::event::RunId;
use codecall_base::tool::ErrorCode;
use codecall_hub::hub::Owner;
use codecall_runs::{EngineCall, Made};
use codecall_store::now_ms;
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
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

/// What a call has come to.
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

impl From<Made> for AnswerKind {
    fn from(made: Made) -> Self {
        match made {
            Made::Answered(Ok(result)) => Self::Result(result),
            Made::Answered(Err(ToolError { message, code, details, fatal })) => {
                Self::Failure { message, code, details, fatal }
            }
            Made::Waits(approval) => Self::Waits(approval),
            Made::Ends(code, message) => Self::Ends { code: code.as_str().to_owned(), message },
        }
    }
}

/// The service of calls.
pub struct Tools(pub Arc<Worker>);

#[restate_sdk::service(name = "Tools", ingress_private)]
impl Tools {
    /// Calls a tool.
    #[handler]
    async fn call(&self, ctx: Context<'_>, call: Json<ToolCall>) -> Result<Json<Answer>, HandlerError> {
        let Json(call) = call;
        let _in_progress = self.0.begin_call();
        let cancelled = || Json(Answer { what: aborted(&call.tool), at_ms: now_ms() });
        let attempt = journal::attempt();
        let is_repeated = call.is_noted && attempt.has_run();
        // Nobody sends it: an invocation that is cancelled while it waits for it is told so.
        let mut signal = std::pin::pin!(ctx.signal::<String>("cancel"));
        // Notes that the call begins: a step that never ends.
        let note = ctx.run(std::future::pending::<HandlerResult<()>>);
        let mut note = std::pin::pin!(note.name(format!("begin {} {}", call.tool, call.digest)));
        if call.is_noted {
            let mut is_stored = std::pin::pin!(attempt.run_stored());
            let is_noted = std::future::poll_fn(|context| {
                if note.as_mut().poll(context).is_ready() {
                    return Poll::Ready(false);
                }
                if is_repeated || is_stored.as_mut().poll(context).is_ready() {
                    return Poll::Ready(true);
                }
                signal.as_mut().poll(context).map(|_| false)
            });
            if !is_noted.await {
                return Ok(cancelled());
            }
        }
        let cancel = CancellationToken::new();
        let _cancelled_when_dropped = cancel.clone().drop_guard();
        let mut making = std::pin::pin!(make(&self.0, call.clone(), is_repeated, cancel.clone()));
        let made = tokio::select! {
            biased;
            made = &mut making => Some(made),
            _ = signal => None,
        };
        match made {
            Some(answer) => Ok(Json(answer?)),
            None => {
                cancel.cancel();
                let _ = tokio::time::timeout(CANCEL_GRACE, making).await;
                Ok(cancelled())
            }
        }
    }
}

/// The answer of a call that was cancelled.
fn aborted(tool: &str) -> AnswerKind {
    let message = format!("The call of tool '{tool}' was cancelled");
    Made::Answered(Err(ToolError::new(ErrorCode::ExecutionAborted, message))).into()
}

/// Makes a call.
async fn make(
    worker: &Arc<Worker>,
    call: ToolCall,
    is_repeated: bool,
    cancel: CancellationToken,
) -> Result<Answer, HandlerError> {
    let hub = worker.hub_of(call.owner.as_ref())?;
    let run = RunId::parse(&call.run).ok_or("the id of the run is none")?;
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
