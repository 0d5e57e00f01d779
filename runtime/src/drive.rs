//! Driving a run on plain futures, for embedders: whatever executor they use.

use crate::interface::host::{Call, CallId, Event, Progress, ToolError};
use crate::interface::outcome::Outcome;
use crate::run::Run;
use futures_util::future::{AbortHandle, Abortable, Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

/// What answers the tool calls of a run: one handler for the calls of all names.
///
/// ```
/// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}, time::Duration};
/// use agentscript::{Call, CompileOptions, Host, Inputs, Policy, ToolError, compile, drive};
///
/// struct Handler;
///
/// impl Host for Handler {
///     async fn call(&self, call: Call) -> Result<String, ToolError> {
///         match call.tool.as_str() {
///             "getUser" => Ok(r#"{"id": 1, "name": "Ada"}"#.into()),
///             name => Err(ToolError::new("TOOL_NOT_FOUND", format!("Unknown tool: {name}"))),
///         }
///     }
///
///     async fn sleep(&self, duration: Duration) {
///         // That of the executor: `tokio::time::sleep(duration).await`.
/// #       let _ = duration;
/// #       std::future::pending().await
///     }
/// }
///
/// let policy = Policy::default();
/// let source = "const user = await callTool('getUser', { id: 1 }); return user.name";
/// let script = compile(source, &CompileOptions::for_policy(&policy)).expect("the script is valid");
/// # let outcome = async {
/// let outcome = drive(script.start(Inputs::default(), &policy), &Handler).await;
/// # outcome
/// # };
/// # let mut context = Context::from_waker(Waker::noop());
/// # let Poll::Ready(outcome) = pin!(outcome).poll(&mut context) else { panic!("nothing waits") };
/// assert_eq!(outcome.to_json(), r#"{"status":"ok","result":"Ada"}"#);
/// ```
pub trait Host {
    /// Answer a call: JSON text, or why there is none.
    fn call(&self, call: Call) -> impl Future<Output = Result<String, ToolError>>;

    /// Sleep, by the timers of the executor: for timers of the script, and the limits of time while it waits.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()>;
}

/// Drive a run to its end. Dropping the future cancels the run and its calls. The clock of the run must not need
/// [`Event::Time`].
///
/// A run whose slice is over is resumed at once; use [`Run::resume`] to schedule other work in between.
pub async fn drive<H: Host>(mut run: Run, host: &H) -> Outcome {
    let mut pending = FuturesUnordered::new();
    let mut events: Vec<Event> = Vec::new();
    let mut handles: HashMap<CallId, AbortHandle> = HashMap::new();
    loop {
        let progress = run.resume(std::mem::take(&mut events));
        for id in run.take_cancelled() {
            if let Some(handle) = handles.remove(&id) {
                handle.abort();
            }
        }
        match progress {
            Progress::Done(outcome) => return *outcome,
            Progress::Yielded => {}
            Progress::Calls(calls) => {
                for call in calls {
                    let (handle, registration) = AbortHandle::new_pair();
                    handles.insert(call.id, handle);
                    pending.push(Abortable::new(answer(host, call), registration));
                }
                let deadline = pin!(host.sleep(run.time_left()));
                if pending.is_empty() {
                    // The script waits for a timer.
                    deadline.await;
                } else if let Either::Left((Some(Ok((id, result))), _)) = select(pending.next(), deadline).await {
                    handles.remove(&id);
                    events.push(Event::Settled { id, result });
                }
            }
        }
    }
}

/// The answer to a call, or its timeout.
async fn answer<H: Host>(host: &H, call: Call) -> (CallId, Result<String, ToolError>) {
    let (id, timeout_ms, tool) = (call.id, call.timeout_ms, call.tool.clone());
    let deadline = pin!(host.sleep(Duration::from_millis(timeout_ms)));
    match select(pin!(host.call(call)), deadline).await {
        Either::Left((result, _)) => (id, result),
        Either::Right(((), _)) => (id, Err(ToolError::timeout(&tool, timeout_ms))),
    }
}
