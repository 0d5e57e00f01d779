//! Driving a run on plain futures, for embedders: whatever executor they use.

use crate::host::{Call, CallId, Event, Progress, ToolError};
use crate::outcome::Outcome;
use crate::run::Run;
use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

/// What answers the tool calls of a run.
pub trait Host {
    /// Answer a call: JSON text, or why there is none.
    fn call(&self, call: Call) -> impl Future<Output = Result<String, ToolError>>;

    /// Sleep, by the timers of the executor: enforces the limits of time while tool calls are pending.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()>;
}

/// Drive a run to its end. Dropping the future cancels the run and its calls.
///
/// A run whose slice is over is resumed at once; use [`Run::resume`] to schedule other work in between.
pub async fn drive<H: Host>(mut run: Run, host: &H) -> Outcome {
    let mut pending = FuturesUnordered::new();
    let mut events: Vec<Event> = Vec::new();
    loop {
        match run.resume(std::mem::take(&mut events)) {
            Progress::Done(outcome) => return *outcome,
            Progress::Yielded => {}
            Progress::Calls(calls) => {
                pending.extend(calls.into_iter().map(|call| answer(host, call)));
                let left = run.time_left();
                let deadline = pin!(host.sleep(left));
                if let Either::Left((Some((id, result)), _)) = select(pending.next(), deadline).await {
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
