//! Runs that outlive their request or their process: what their client gets meanwhile, how they go on, and their outcome.

use super::{Answer, AnswerContent, Delivery, execute, listed_name, submit};
use crate::hub::{Durable, Hub, LiveHub, NotResumed, OpenRun, PASSING, RunState};
use codecall_base::call::with_client;
use codecall_base::event::{EventSink, RunEvent, RunId};
use codecall_base::tool::ErrorCode;
use codecall_runs::{ExecuteRequest, Finished};
use codecall_store::{ApprovalRequest, JournalProblem};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a client that asks for an outcome waits for it.
const OUTCOME_WAIT: Duration = Duration::from_secs(20);
/// How often the store is asked for the outcome meanwhile.
const OUTCOME_LOOK: Duration = Duration::from_millis(250);
/// How often it is looked whether a person has to decide, while the outcome of an engine is waited for.
const ENGINE_LOOK: Duration = Duration::from_millis(500);
/// How often this process looks for runs that can go on.
const LOOK: Duration = Duration::from_millis(400);
/// Maximum number of runs that are taken over in one transaction.
const MAX_CLAIMED: usize = 32;
/// How often it does if no tool needs an approval: only runs of an earlier configuration could go on.
const IDLE_LOOK: Duration = Duration::from_secs(30);
/// How often requests expire, and old outcomes are deleted.
const EXPIRE: Duration = Duration::from_secs(5);
/// How long a run that cannot go on here is left to others.
const RETRY: Duration = Duration::from_secs(20);

/// Runs the script of a client durably: it can go on after the end of this process. The client gets at most so many bytes of a
/// result that is not stored.
pub(super) async fn execute_durably(
    hub: &Hub,
    durable: &Arc<Durable>,
    mut script: Box<ExecuteRequest>,
    key: Option<String>,
    (max_bytes, delivery): (u64, Delivery),
    sink: EventSink,
    cancel: CancellationToken,
) -> Answer {
    let id = match &key {
        Some(key) => submit::id_with_key(hub, durable, key).await,
        None => Ok(durable.id_for(hub, RunId::random())),
    };
    let id = match id {
        Ok(id) => id,
        Err(error) => return Answer::refused(format!("The run cannot be looked up: {error}")),
    };
    script.id = Some(id.clone());
    if durable.engine().is_some() {
        announce(&sink, &id).await;
        return execute_on_engine(hub, durable, id, script, key.is_some(), cancel).await;
    }
    let open = loop {
        if key.is_some()
            && let Some(answer) = known(hub, durable, &id, &script, &cancel).await
        {
            return answer;
        }
        // A request with the same key may have come meanwhile.
        if let Some(open) = durable.open_alone(id.as_str(), &cancel) {
            break open;
        }
    };
    let journal = match durable.durable_journal(hub, &open, &script).await {
        Ok(journal) => journal,
        Err(error) => return Answer::refused(format!("The run cannot be journaled (durable.enabled): {error}")),
    };
    script.journal = journal.clone().map(|journal| journal as _);
    if journal.is_some() {
        announce(&sink, &id).await;
    }
    let finished = hub.execute(script, sink, open.cancel()).await;
    let is_stored = journal.as_ref().is_some_and(|journal| journal.is_stored());
    if finished.is_paused {
        open.ended();
        return paused(hub, &id).await;
    }
    // The store may have the run all the same, or another process.
    if journal.is_some_and(|journal| journal.is_interrupted())
        && !open.is_cancelled()
        && !matches!(durable.run_state(hub, &id).await, Ok(None))
    {
        return paused(hub, &id).await;
    }
    // Unless somebody has cancelled it, it goes on in another process.
    if is_stored && is_passing(&finished) && !open.is_cancelled() {
        return paused(hub, &id).await;
    }
    if is_stored {
        let (mut answer, long) = execute::finish_kept(hub, finished, (max_bytes, delivery)).await;
        redact(hub, &mut answer);
        return match end(durable, hub, &open, &answer, long.as_deref()).await {
            Ok(true) => {
                open.ended();
                answer
            }
            Ok(false) => paused(hub, &id).await,
            // Whoever replays the run next stores it.
            Err(error) => {
                tracing::warn!(run = %id, "the outcome of a run cannot be stored: {error}");
                match long {
                    Some(_) => paused(hub, &id).await,
                    None => answer,
                }
            }
        };
    }
    open.ended();
    execute::finish(hub, finished, (max_bytes, delivery), false).await
}

/// Tells the client of a run how to find it, before it begins.
async fn announce(sink: &EventSink, id: &RunId) {
    if let Some(sink) = sink {
        sink(RunEvent::Durable { run: id.clone() });
        // The message is sent by another part of this task.
        tokio::task::yield_now().await;
    }
}

/// Returns the answer to a request with the key of a run that the client has begun: its outcome, or where it stands. `None`: there
/// is none.
async fn known(
    hub: &Hub,
    durable: &Arc<Durable>,
    id: &RunId,
    script: &ExecuteRequest,
    cancel: &CancellationToken,
) -> Option<Answer> {
    loop {
        let is_stored = match durable.is_stored(hub, id).await {
            Ok(is_stored) => is_stored,
            Err(error) => return Some(Answer::refused(format!("The run cannot be begun: {error}"))),
        };
        match durable.run_state(hub, id).await {
            Ok(Some(_)) => {}
            // The token lacks scopes that the run was begun with.
            Ok(None) if is_stored => return Some(Answer::refused(KEY_USED.into())),
            // It is in the store from its first call on.
            Ok(None) if durable.is_open(id.as_str()) => {
                cancel.run_until_cancelled(tokio::time::sleep(OUTCOME_LOOK)).await?;
                continue;
            }
            Ok(None) => return None,
            Err(error) => return Some(Answer::refused(format!("The run cannot be begun: {error}"))),
        }
        return match durable.is_same(hub, id, script).await {
            Ok(true) => outcome(hub, id, cancel).await,
            Ok(false) => Some(Answer::refused(KEY_USED.into())),
            Err(error) => Some(Answer::refused(format!("The run cannot be read: {error}"))),
        };
    }
}

/// The answer to another request with a key.
const KEY_USED: &str = "The 'idempotencyKey' was used for another run; use a new one";

/// Submits the script of a client to the engine, and waits for its outcome. If a person has to decide, or this server ends, its
/// client gets a handle.
async fn execute_on_engine(
    hub: &Hub,
    durable: &Arc<Durable>,
    id: RunId,
    script: Box<ExecuteRequest>,
    has_key: bool,
    cancel: CancellationToken,
) -> Answer {
    if has_key && let Some(answer) = known(hub, durable, &id, &script, &cancel).await {
        return answer;
    }
    let look = if hub.needs_approval() { ENGINE_LOOK } else { OUTCOME_WAIT };
    // Most runs end soon: one request is less work than two.
    let outcome = tokio::select! {
        outcome = durable.run_within(hub, &id, &script, look) => outcome,
        () = cancel.cancelled() => None,
        () = hub.runs_end() => None,
    };
    if let Some(outcome) = outcome {
        return ended(&outcome);
    }
    if let Err(problem) = durable.submit(hub, &id, &script).await {
        return Answer::refused(format!("The run cannot be submitted: {problem}"));
    }
    loop {
        let standing = tokio::select! {
            standing = durable.standing_within(hub, &id, look) => standing,
            () = cancel.cancelled() => {
                if let Err(problem) = durable.cancel(hub, &id).await {
                    tracing::warn!(run = %id, "a run cannot be cancelled: {problem}");
                }
                return Answer::cancelled();
            }
            () = hub.runs_end() => return open(hub, &id, &[]),
        };
        match standing {
            Ok(Some(RunState::Ended(outcome))) => return ended(&outcome),
            Ok(Some(RunState::Open(requests))) if !requests.is_empty() => return open(hub, &id, &requests),
            Ok(Some(RunState::Open(_))) => {}
            // It was taken, and goes on.
            Ok(None) | Err(_) => return open(hub, &id, &[]),
        }
    }
}

/// Returns what is kept of a run that a worker has evaluated: the outcome for its client.
pub async fn kept(hub: &Hub, finished: Finished, max_bytes: u64) -> String {
    let mut answer = execute::finish(hub, finished, (max_bytes, Delivery::InPieces), false).await;
    redact(hub, &mut answer);
    to_text(&answer)
}

/// Returns what is kept of a run that cannot go on.
#[must_use]
pub fn kept_failure(code: ErrorCode, message: &str) -> String {
    to_text(&failed(code, message))
}

/// Whether an outcome says nothing about the run.
fn is_passing(finished: &Finished) -> bool {
    finished.outcome.result.as_ref().is_err_and(|failure| PASSING.iter().any(|code| failure.code == *code))
}

fn redact(hub: &Hub, answer: &mut Answer) {
    let redactor = hub.secrets().redactor();
    answer.content.redact(&redactor);
    answer.meta.iter_mut().for_each(|meta| redactor.redact_members(meta));
}

/// Returns the answer to the request whose run has paused.
pub async fn paused(hub: &Hub, run: &RunId) -> Answer {
    let Some(durable) = hub.durable() else { return Answer::cancelled() };
    match durable.run_state(hub, run).await {
        Ok(Some(RunState::Open(requests))) => open(hub, run, &requests),
        Ok(Some(RunState::Ended(outcome))) => ended(&outcome),
        // It is stored.
        Ok(None) | Err(_) => open(hub, run, &[]),
    }
}

/// Returns the answer of a durable run, once it has ended, or after a while where it stands. `None`: there is no such run of
/// this client.
pub async fn outcome(hub: &Hub, run: &RunId, cancel: &CancellationToken) -> Option<Answer> {
    outcome_within(hub, run, OUTCOME_WAIT, cancel).await
}

/// Waits until a run of a client has ended. Returns its outcome; `None`: it has none of this id.
pub async fn until_ended(hub: &Hub, run: &RunId) -> Option<Answer> {
    let durable = hub.durable()?;
    loop {
        match durable.run_state(hub, run).await {
            Ok(Some(RunState::Ended(outcome))) => return Some(ended(&outcome)),
            Ok(None) => return None,
            // The store may come back.
            Ok(Some(RunState::Open(_))) | Err(_) => tokio::time::sleep(OUTCOME_LOOK).await,
        }
    }
}

/// Returns where a run of a client stands now; `None`: it has none of this id.
pub async fn run_state(hub: &Hub, run: &RunId) -> Option<Answer> {
    match hub.durable()?.run_state(hub, run).await {
        Ok(Some(RunState::Ended(outcome))) => Some(ended(&outcome)),
        Ok(Some(RunState::Open(requests))) => Some(open(hub, run, &requests)),
        Ok(None) => None,
        Err(JournalProblem::Engine(problem)) => Some(open_with(hub, run, &[], Some(&problem))),
        Err(error) => Some(Answer::refused(format!("The run cannot be read: {error}"))),
    }
}

/// Does the same as [`outcome`], and waits for so long.
pub async fn outcome_within(hub: &Hub, run: &RunId, wait: Duration, cancel: &CancellationToken) -> Option<Answer> {
    let durable = hub.durable()?;
    let began = Instant::now();
    loop {
        let left = wait.saturating_sub(began.elapsed());
        match durable.standing_within(hub, run, left).await {
            Ok(Some(RunState::Ended(outcome))) => return Some(ended(&outcome)),
            Ok(Some(RunState::Open(requests))) if began.elapsed() >= wait => {
                return Some(open_with(hub, run, &requests, durable.trouble(run).await.as_deref()));
            }
            Ok(Some(RunState::Open(_))) => {}
            Ok(None) => return None,
            Err(JournalProblem::Engine(problem)) => return Some(open_with(hub, run, &[], Some(&problem))),
            Err(error) => return Some(Answer::refused(format!("The run cannot be read: {error}"))),
        }
        if cancel.run_until_cancelled(tokio::time::sleep(OUTCOME_LOOK)).await.is_none() {
            return Some(Answer::cancelled());
        }
    }
}

/// Returns the answer of a run that has not ended.
fn open(hub: &Hub, run: &RunId, requests: &[ApprovalRequest]) -> Answer {
    open_with(hub, run, requests, None)
}

/// Does the same, with what keeps it from going on.
fn open_with(hub: &Hub, run: &RunId, requests: &[ApprovalRequest], problem: Option<&str>) -> Answer {
    let approvals = requests.iter().map(|request| {
        let ApprovalRequest { id, tool, input, input_digest, input_bytes, expires_ms, long_members, .. } = request;
        let text = || input.as_str().into();
        let mut approval = json!({"id": id, "tool": tool, "inputDigest": input_digest, "expiresMs": expires_ms});
        if request.is_whole() {
            approval["input"] = serde_json::from_str::<Value>(input).unwrap_or_else(|_| text());
        } else {
            // The agent has made the call; the person reads all of it.
            approval["inputBegins"] = text();
            approval["inputBytes"] = (*input_bytes).into();
            approval["note"] = format!("'codecall approvals {id}' prints all of the input").into();
        }
        if let Some(long) = long_members {
            approval["longMembers"] = long.as_str().into();
        }
        approval
    });
    let approvals: Vec<Value> = approvals.collect();
    let tool = listed_name(&execute::Execute, hub.config().tools.names);
    let handle = json!({"handle": run.as_str()});
    let next = format!(
        "Do not send the script again: call {tool} with {handle} for its outcome, also later, and after a restart of the server"
    );
    let note = match approvals.is_empty() {
        true => format!("The script goes on. {next}"),
        false => format!(
            "The script waits for a person, who decides with 'codecall approve ID' or 'codecall deny ID', ID as in 'approvals'. {next}"
        ),
    };
    let mut value = json!({"status": "waiting", "handle": run.as_str(), "approvals": approvals, "note": note});
    if let Some(problem) = problem {
        value["problem"] = problem.into();
    }
    Answer::ok(value).with_meta(Map::from_iter([("codecall/run".to_owned(), run.as_str().into())]))
}

/// Converts an answer to the text that is kept.
fn to_text(answer: &Answer) -> String {
    let (content, is_refusal) = match &answer.content {
        AnswerContent::Structured(value) => (value.clone(), false),
        AnswerContent::Refusal(text) => (text.as_str().into(), true),
    };
    json!({"content": content, "isRefusal": is_refusal, "isError": answer.is_error, "meta": answer.meta}).to_string()
}

/// Converts it back.
pub fn ended(text: &str) -> Answer {
    let mut kept: Value = serde_json::from_str(text).unwrap_or_default();
    let content = match (kept["isRefusal"].as_bool(), kept["content"].take()) {
        (Some(true), Value::String(text)) => AnswerContent::Refusal(text),
        (_, value) => AnswerContent::Structured(value),
    };
    let meta = match kept["meta"].take() {
        Value::Object(meta) => Some(meta),
        _ => None,
    };
    Answer { content, text: None, is_error: kept["isError"] == true, meta }
}

/// Lets runs of this process outlive it, and goes on with those that can: of this process, or of one that has ended.
pub fn resume_runs(live: &LiveHub, cancel: &CancellationToken) {
    let hub = live.get();
    if hub.durable().is_some_and(|durable| durable.engine().is_some()) {
        tracing::debug!("workers of the engine evaluate the runs");
    } else if let Some(durable) = hub.durable().cloned() {
        durable.begin_serving();
        let following = follow(live.clone(), durable);
        tokio::spawn(cancel.clone().run_until_cancelled_owned(following));
    }
}

async fn follow(live: LiveHub, durable: Arc<Durable>) {
    let slots = Arc::new(Semaphore::new(live.get().max_begun_runs()));
    // Runs that could not go on here.
    let left: Arc<Mutex<HashMap<String, Instant>>> = Arc::default();
    let renewing = Arc::clone(&durable);
    let renew = async move {
        loop {
            tokio::time::sleep(renewing.renewal()).await;
            if let Err(error) = renewing.renew().await {
                tracing::warn!("the leases of durable runs: {error}");
            }
        }
    };
    let renewing = tokio::spawn(renew);
    let _abort = AbortOnDrop(renewing);
    let (mut looked, mut expired, mut has_failed) = (None::<Instant>, None::<Instant>, false);
    loop {
        let not: Vec<String> = {
            let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
            left.retain(|_, since| since.elapsed() < RETRY);
            left.keys().cloned().collect()
        };
        // A run that is taken over needs a place of the pool too: more than those would only wait in its queue.
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let mut free = vec![slot];
        while free.len() < MAX_CLAIMED
            && let Ok(slot) = Arc::clone(&slots).try_acquire_owned()
        {
            free.push(slot);
        }
        if looked.is_none_or(|at| at.elapsed() >= LOOK) {
            looked = Some(Instant::now());
            if let Err(error) = durable.cancel_open().await {
                tracing::debug!("runs that were cancelled: {error}");
            }
        }
        let claimed = match expired.is_some_and(|at| at.elapsed() < EXPIRE) {
            true => durable.claim(&not, free.len()).await,
            false => {
                expired = Some(Instant::now());
                match durable.expire(live.get().config()).await {
                    Ok(()) => durable.claim(&not, free.len()).await,
                    Err(error) => Err(error),
                }
            }
        };
        match claimed {
            Ok(claimed) if !claimed.is_empty() => {
                has_failed = false;
                for (open, slot) in claimed.into_iter().zip(free) {
                    let (live, durable, left) = (live.clone(), Arc::clone(&durable), Arc::clone(&left));
                    tokio::spawn(async move {
                        let _slot = slot;
                        match resume(&live, &durable, &open).await {
                            Ok(()) => open.ended(),
                            Err(why) => {
                                tracing::warn!(run = open.id(), "a run cannot go on here now: {why}");
                                let id = open.id().to_owned();
                                left.lock().unwrap_or_else(PoisonError::into_inner).insert(id, Instant::now());
                            }
                        }
                    });
                }
                continue;
            }
            Ok(_) => has_failed = false,
            Err(error) => {
                if !std::mem::replace(&mut has_failed, true) {
                    tracing::warn!("durable runs cannot go on: {error}");
                }
            }
        }
        drop(free);
        let has_more = !left.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        let since = Instant::now();
        let is_needed = |hub: &Hub| hub.config().durable.enabled || hub.needs_approval();
        // Tools may become known, or the configuration may change.
        loop {
            if tokio::time::timeout(LOOK, durable.ready()).await.is_ok()
                || has_more
                || is_needed(&live.get())
                || since.elapsed() >= IDLE_LOOK
            {
                break;
            }
        }
    }
}

/// Ends a task when it is dropped.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Goes on with a run of this process until it has ended, or waits again.
///
/// # Errors
/// It cannot go on here at the moment: why.
async fn resume(live: &LiveHub, durable: &Arc<Durable>, open: &OpenRun) -> Result<(), String> {
    let base = live.get();
    let resumed = match durable.resume(base.config(), open).await {
        Ok(resumed) => resumed,
        Err(NotResumed::Now(why)) => return Err(why),
        Err(NotResumed::Cancelled) => {
            let answer = failed(ErrorCode::ExecutionAborted, "The run was cancelled");
            return end(durable, &base, open, &answer, None).await.map(drop);
        }
        Err(NotResumed::Never(why)) => {
            let answer = failed(ErrorCode::ReplayMismatch, &format!("The run cannot go on: {why}"));
            return end(durable, &base, open, &answer, None).await.map(drop);
        }
    };
    let hub = live.of_client(resumed.principal.as_deref(), resumed.permissions.as_deref());
    let hub = hub.ok_or("its client has not been here, or may use other tools now")?;
    let _request = hub.begin_request();
    let mut request = resumed.request;
    request.policy.limits.max_result_bytes = hub.results().max_bytes(resumed.max_result_bytes);
    let running = hub.execute(request, None, open.cancel());
    let finished = match resumed.client {
        Some(client) => with_client(client, running).await,
        None => running.await,
    };
    if finished.is_paused {
        return Ok(());
    }
    if (is_passing(&finished) || resumed.journal.is_interrupted()) && !open.is_cancelled() {
        return Err(finished.outcome.result.err().map(|failure| failure.message).unwrap_or_default());
    }
    let (mut answer, long) = execute::finish_kept(&hub, finished, (resumed.max_result_bytes, Delivery::InPieces)).await;
    redact(&hub, &mut answer);
    end(durable, &hub, open, &answer, long.as_deref()).await.map(drop)
}

/// The answer of a run that ends without its script.
fn failed(code: ErrorCode, message: &str) -> Answer {
    let error = json!({"code": code.as_str(), "message": message});
    Answer::structured(json!({"status": "runtime_error", "error": error}), true)
}

/// Returns the long result of a run of a client; `None`: it has none.
///
/// # Errors
/// The store cannot be read.
pub(super) async fn long_result(hub: &Hub, run: &RunId) -> Result<Option<String>, JournalProblem> {
    match hub.durable() {
        Some(durable) => durable.long_result(hub, run).await,
        None => Ok(None),
    }
}

/// Stores the outcome of a run, and a long result. `false`: another process has the run, and stores its outcome.
async fn end(
    durable: &Durable,
    hub: &Hub,
    open: &OpenRun,
    answer: &Answer,
    long: Option<&str>,
) -> Result<bool, String> {
    match durable.end(hub.config(), open, &to_text(answer), long).await {
        Ok(()) => Ok(true),
        Err(JournalProblem::Lost) => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_kept_as_it_is() {
        let meta = Map::from_iter([("codecall/run".to_owned(), "abc".into())]);
        for answer in [
            Answer::ok(json!({"status": "ok", "result": [1, null]})).with_meta(meta),
            Answer::structured(json!({"status": "tool_error"}), true),
            Answer::refused("no".into()),
        ] {
            let kept = ended(&to_text(&answer));
            assert_eq!((kept.content, kept.is_error, kept.meta), (answer.content, answer.is_error, answer.meta));
        }
    }
}
