//! The calls, timers and limits of one run, as durable futures of its workflow.
//!
//! This code runs again in each attempt, so it follows from the journal alone. That includes the order in which futures
//! complete, and the times that answers have.

use crate::people;
use crate::tools::{Answer, AnswerKind, ToolCall, ToolsClient};
use agentscript::{Call, CallId, CallKind, Event, ToolError, Tools as _};
use codecall_base::tool::{ErrorCode, ToolDirectory};
use codecall_hub::hub::Owner;
use codecall_runs::{EngineError, Next, RunEngine};
use futures_util::future::BoxFuture;
use restate_sdk::context::{CallFuture as _, DurableFuture, DurableFuturesUnordered};
use restate_sdk::prelude::*;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// The status of what was cancelled.
const CANCELLED: u16 = 409;

type Pending<'a> = Pin<Box<dyn DurableFuture<Output = Result<Arrived, TerminalError>> + Send + 'a>>;

/// The data of all calls of a run.
pub struct RunFacts {
    pub run: String,
    pub allowed_tools: Option<Vec<String>>,
    pub allowed_apps: Option<Vec<String>>,
    pub client: Option<String>,
    pub owner: Option<Owner>,
    pub directory: Arc<ToolDirectory>,
    /// When the run began, in milliseconds since 1970.
    pub began_ms: i64,
    /// How long it may take, without the time in which it waits for people.
    pub limit_ms: u64,
}

/// The output of a future.
enum Arrived {
    Answer(Answer),
    /// When a person has decided, in milliseconds since 1970.
    Decision(i64),
    /// A time has come.
    Time,
}

/// The purpose of a future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Call(CallId),
    /// The decision of a person on a call.
    Decision(CallId),
    /// A time, in milliseconds since the run began.
    Timer(u64),
    /// The limit of the run may be reached then.
    Limit(u64),
}

/// A call without an answer.
struct OpenCall {
    call: Call,
    /// Its invocation, if others can be open beside it: it may have to be cancelled.
    invocation: Option<InvocationHandle>,
    is_waiting: bool,
}

/// The calls, timers and limits of one run.
pub struct RestateEngine<'a, 'ctx> {
    ctx: &'a WorkflowContext<'ctx>,
    facts: RunFacts,
    pending: DurableFuturesUnordered<Pending<'ctx>>,
    awaited: Vec<Awaited>,
    open: BTreeMap<CallId, OpenCall>,
    /// Timers that are pending.
    timers: Vec<u64>,
    /// The time that the script has seen last, in milliseconds since it began.
    now_ms: u64,
    people: People,
    /// Whether the limit is pending.
    is_limited: bool,
    /// Whether Restate has said that somebody has cancelled the run, which it says once.
    is_cancelled: bool,
}

/// How long a run has waited for people.
#[derive(Default)]
struct People {
    spent_ms: u64,
    /// Since when it waits for nothing else.
    since_ms: Option<u64>,
}

impl<'a, 'ctx> RestateEngine<'a, 'ctx> {
    pub fn new(ctx: &'a WorkflowContext<'ctx>, facts: RunFacts) -> Self {
        let mut engine = Self {
            ctx,
            facts,
            pending: DurableFuturesUnordered::new(),
            awaited: Vec::new(),
            open: BTreeMap::new(),
            timers: Vec::new(),
            now_ms: 0,
            people: People::default(),
            is_limited: false,
            is_cancelled: false,
        };
        engine.limit();
        engine
    }

    fn push(&mut self, awaited: Awaited, future: Pending<'ctx>) {
        self.awaited.push(awaited);
        self.pending.push(future);
    }

    /// Sleeps until a time of the script.
    fn sleep(&mut self, awaited: Awaited, until_ms: u64) {
        let left = Duration::from_millis(until_ms.saturating_sub(self.now_ms));
        let sleep = self.ctx.sleep(left);
        self.push(awaited, Box::pin(sleep.map_ok(|()| Arrived::Time)));
    }

    /// Sleeps until the limit can be reached.
    fn limit(&mut self) {
        let until = self.facts.limit_ms.saturating_add(self.people.spent_ms);
        // A hundred years are no limit.
        if until < 100 * 365 * 86_400_000 {
            self.is_limited = true;
            self.sleep(Awaited::Limit(until), until);
        }
    }

    /// Makes calls, all of them before anything is waited for. `is_decided`: a person has decided on them.
    async fn call(&mut self, calls: Vec<Call>, is_decided: bool) -> Result<(), EngineError> {
        let others = calls.len() + self.open.len() > 1 || !self.timers.is_empty();
        let mut sent = Vec::with_capacity(calls.len());
        for call in calls {
            let request = self.facts.request(&call, is_decided);
            sent.push((call, self.ctx.service_client::<ToolsClient>().call(Json(request)).call()));
        }
        for (call, future) in sent {
            // To know it takes time, and one that is alone is never cancelled by itself.
            let invocation = match others || is_decided {
                true => match future.invocation_handle().await {
                    Ok(invocation) => Some(invocation),
                    Err(_) => {
                        self.is_cancelled = true;
                        None
                    }
                },
                false => None,
            };
            let id = call.id;
            self.open.insert(id, OpenCall { call, invocation, is_waiting: false });
            self.push(Awaited::Call(id), Box::pin(future.map_ok(|Json(answer)| Arrived::Answer(answer))));
        }
        Ok(())
    }

    /// Moves the time of the script on. Timers fire by the clock of Restate only: a worker whose clock is ahead does
    /// not let them.
    fn reach(&mut self, ms: u64, timer: Option<u64>) {
        let before_timer = timer.map_or(u64::MAX, |due| due.saturating_sub(1));
        self.now_ms = self.now_ms.max(ms.min(before_timer));
    }

    /// Notes whether the run waits for people only.
    fn note_people(&mut self, timer: Option<u64>) {
        let is_waiting = !self.open.is_empty() && timer.is_none() && self.open.values().all(|open| open.is_waiting);
        match (self.people.since_ms, is_waiting) {
            (None, true) => self.people.since_ms = Some(self.now_ms),
            (Some(since), false) => {
                self.people.spent_ms += self.now_ms.saturating_sub(since);
                self.people.since_ms = None;
                if !self.is_limited {
                    self.limit();
                }
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    fn events(&self, settled: Option<Event>) -> Next {
        let time = Event::Time(self.now_ms);
        Next::Events(std::iter::once(time).chain(settled).collect())
    }

    /// Returns what the script gets of an answer; `None`: nothing.
    fn answered(&mut self, id: CallId, answer: Answer, timer: Option<u64>) -> Option<Next> {
        let ms = self.facts.since_began(answer.at_ms);
        // One that was cancelled has an answer too.
        let open = self.open.get_mut(&id)?;
        if let AnswerKind::Waits(approval) = answer.what {
            open.is_waiting = true;
            let signal = self.ctx.signal::<i64>(&people::signal(&approval));
            self.push(Awaited::Decision(id), Box::pin(signal.map_ok(Arrived::Decision)));
            self.reach(ms, timer);
            self.note_people(timer);
            return None;
        }
        self.open.remove(&id);
        self.reach(ms, timer);
        self.note_people(timer);
        let result = match answer.what {
            AnswerKind::Result(result) => Ok(result),
            AnswerKind::Failure { message, code, details, fatal } => Err(ToolError { message, code, details, fatal }),
            AnswerKind::Ends { code, message } => {
                return Some(Next::Ends(ErrorCode::parse(&code).unwrap_or(ErrorCode::ExecutionError), message));
            }
            AnswerKind::Waits(_) => return None,
        };
        Some(self.events(Some(Event::Settled { id, result })))
    }

    /// Returns what the script gets of a call that Restate has ended; `None`: it does not wait for it.
    fn lost(&mut self, id: CallId, error: &TerminalError) -> Option<Next> {
        self.open.remove(&id)?;
        let is_cancelled = error.code() == CANCELLED;
        let code = if is_cancelled { ErrorCode::ExecutionAborted } else { ErrorCode::ToolExecutionError };
        let result = Err(ToolError::new(code, format!("Restate has ended the call: {}", error.message())));
        Some(self.events(Some(Event::Settled { id, result })))
    }

    /// Makes a call again on which a person has decided.
    async fn decided(&mut self, id: CallId, at_ms: i64, timer: Option<u64>) -> Result<(), EngineError> {
        let Some(open) = self.open.remove(&id) else { return Ok(()) };
        self.call(vec![open.call], true).await?;
        self.reach(self.facts.since_began(at_ms), timer);
        self.note_people(timer);
        Ok(())
    }

    /// Returns the end of a run whose limit is reached; `None`: it has waited for people meanwhile.
    fn limit_reached(&mut self, at_ms: u64, timer: Option<u64>) -> Option<Next> {
        self.is_limited = false;
        if self.people.since_ms.is_some() {
            return None;
        }
        self.reach(at_ms, timer);
        if at_ms.saturating_sub(self.people.spent_ms) < self.facts.limit_ms {
            self.limit();
            return None;
        }
        let message = format!("Script execution timed out after {}ms", self.facts.limit_ms);
        Some(Next::Ends(ErrorCode::Timeout, message))
    }

    async fn next_event(&mut self, timer: Option<u64>) -> Result<Next, EngineError> {
        if self.open.is_empty() && timer.is_none() {
            return Ok(Next::Nothing);
        }
        self.note_people(timer);
        if let Some(due) = timer
            && !self.timers.contains(&due)
        {
            self.timers.push(due);
            self.sleep(Awaited::Timer(due), due);
        }
        let cancelled = || Next::Ends(ErrorCode::ExecutionAborted, "The run was cancelled".into());
        loop {
            if self.is_cancelled {
                return Ok(cancelled());
            }
            let (at, arrived) = match self.pending.next().await {
                Ok(Some(next)) => next,
                Ok(None) => return Ok(Next::Nothing),
                Err(_) => return Ok(cancelled()),
            };
            let Some(awaited) = self.awaited.get(at).copied() else { continue };
            let next = match (awaited, arrived) {
                (Awaited::Call(id), Ok(Arrived::Answer(answer))) => self.answered(id, answer, timer),
                (Awaited::Call(id), Err(error)) => self.lost(id, &error),
                (Awaited::Decision(id), Ok(Arrived::Decision(at_ms))) => {
                    self.decided(id, at_ms, timer).await?;
                    None
                }
                (Awaited::Timer(due), Ok(Arrived::Time)) => {
                    self.timers.retain(|&other| other != due);
                    self.now_ms = self.now_ms.max(due);
                    // One that the script has cleared wakes nobody.
                    timer.is_some_and(|timer| timer <= self.now_ms).then(|| self.events(None))
                }
                (Awaited::Limit(at_ms), Ok(Arrived::Time)) => self.limit_reached(at_ms, timer),
                (Awaited::Decision(_) | Awaited::Timer(_) | Awaited::Limit(_), Err(_)) => Some(cancelled()),
                // Each future has its own kind.
                (Awaited::Call(_), Ok(Arrived::Decision(_) | Arrived::Time))
                | (Awaited::Decision(_), Ok(Arrived::Answer(_) | Arrived::Time))
                | (Awaited::Timer(_) | Awaited::Limit(_), Ok(Arrived::Answer(_) | Arrived::Decision(_))) => None,
            };
            if let Some(next) = next {
                return Ok(next);
            }
        }
    }
}

impl RunEngine for RestateEngine<'_, '_> {
    fn make<'a>(&'a mut self, calls: &'a [Call]) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(self.call(calls.to_vec(), false))
    }

    fn cancel<'a>(&'a mut self, calls: &'a [CallId]) -> BoxFuture<'a, Result<(), EngineError>> {
        for id in calls {
            if let Some(OpenCall { invocation: Some(invocation), .. }) = self.open.remove(id) {
                invocation.cancel();
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn next(&mut self, timer: Option<Duration>) -> BoxFuture<'_, Result<Next, EngineError>> {
        let timer = timer.map(|timer| u64::try_from(timer.as_millis()).unwrap_or(u64::MAX));
        Box::pin(self.next_event(timer))
    }
}

/// The parts of a tool that decide whether a call of it can be made twice.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Described {
    annotations: Annotations,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Annotations {
    read_only_hint: bool,
    idempotent_hint: bool,
}

impl RunFacts {
    /// Returns the time of the script, in milliseconds since it began.
    fn since_began(&self, unix_ms: i64) -> u64 {
        u64::try_from(unix_ms.saturating_sub(self.began_ms)).unwrap_or_default()
    }

    fn request(&self, call: &Call, is_decided: bool) -> ToolCall {
        let described = self.directory.describe(&call.tool).unwrap_or_default();
        let Described { annotations } = serde_json::from_str(&described).unwrap_or_default();
        // After a decision it is noted too: the decision is used once.
        let is_noted = is_decided || !(annotations.read_only_hint || annotations.idempotent_hint);
        let mut digest = Sha256::new();
        digest.update((call.tool.len() as u64).to_le_bytes());
        digest.update(&call.tool);
        digest.update(&call.input);
        let digest = digest.finalize()[..16].iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        ToolCall {
            run: self.run.clone(),
            id: call.id.0,
            is_function: call.kind == CallKind::Function,
            tool: call.tool.clone(),
            input: call.input.clone(),
            digest,
            timeout_ms: call.timeout_ms,
            is_noted,
            allowed_tools: self.allowed_tools.clone(),
            allowed_apps: self.allowed_apps.clone(),
            client: self.client.clone(),
            owner: self.owner.clone(),
        }
    }
}
