//! The recorder of one run: it stores each line of the journal, or keeps the lines in memory until the run pauses.

use super::Durable;
use super::header::Header;
use super::line::{FORMAT, Line};
use super::open::Open;
use crate::hub::Hub;
use agentscript::stateless::Round;
use agentscript::{Call, Outcome};
use codecall_base::call::RunHold;
use codecall_base::tool::ErrorCode;
use codecall_base::tool::ToolLookups;
use codecall_runs::{JournalError, Pause, Recorder, Resumption, StartInputs};
use codecall_store::sealed::KeyRing;
use codecall_store::{BoxFuture, JournalProblem, JournaledRun, JournaledState, Spent};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Codes of outcomes that say nothing about a run: it can go on later.
pub const PASSING: [ErrorCode; 4] =
    [ErrorCode::QueueFull, ErrorCode::QueueTimeout, ErrorCode::PoolDisposed, ErrorCode::ExecutionAborted];

/// The recorder of one run that can outlive its process.
pub struct StoreRecorder {
    durable: Arc<Durable>,
    keys: Arc<KeyRing>,
    open: Arc<Open>,
    principal: Option<String>,
    state: Mutex<State>,
    /// Whether it is stored from the first call on.
    is_durable: bool,
    /// Whether this process has taken the run over from the store, and not begun it for a client that waits for it.
    is_taken_over: bool,
    /// When this process has begun to evaluate it.
    began: Instant,
    /// When it began, by the clock of the store.
    began_ms: i64,
    /// The time of the script when this process has begun to evaluate it, in milliseconds.
    resumed_ms: u64,
    resumption: Mutex<Option<Resumption>>,
    is_interrupted: AtomicBool,
}

struct State {
    header: Header,
    /// How long it was evaluated before, in milliseconds.
    active_ms: u64,
    /// Lines that are not stored.
    entries: Vec<String>,
    /// Bytes of all entries, stored or not.
    bytes: usize,
    /// Whether the run was begun before: its header says with what.
    is_replayed: bool,
    /// How many of the next lines are stored already.
    replayed: usize,
    /// The number of the next stored entry; `None`: nothing is stored.
    stored: Option<u64>,
}

impl fmt::Debug for StoreRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreRecorder").field("id", &self.open.hold.id).finish_non_exhaustive()
    }
}

fn failed(problem: impl fmt::Display) -> JournalError {
    JournalError(problem.to_string())
}

impl StoreRecorder {
    /// Creates the recorder of a run that goes on, with the stored `entries` of its journal.
    #[expect(clippy::too_many_arguments, reason = "each is another part of the run")]
    pub(super) fn resumed(
        open: &Arc<Open>,
        durable: &Arc<Durable>,
        keys: Arc<KeyRing>,
        run: &JournaledRun,
        spent: Spent,
        header: Header,
        entries: &[String],
        resumption: Resumption,
    ) -> Self {
        Self {
            durable: Arc::clone(durable),
            keys,
            open: Arc::clone(open),
            principal: run.principal.clone(),
            state: Mutex::new(State {
                header,
                active_ms: spent.active_ms,
                entries: Vec::new(),
                bytes: entries.iter().map(String::len).sum(),
                is_replayed: true,
                replayed: entries.iter().map(|entry| entry.lines().count()).sum(),
                stored: Some(entries.len() as u64),
            }),
            is_durable: true,
            is_taken_over: true,
            began: Instant::now(),
            began_ms: run.began_ms,
            resumed_ms: spent.script_ms,
            resumption: Mutex::new(Some(resumption)),
            is_interrupted: AtomicBool::new(false),
        }
    }

    /// Whether the run is in the store.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.state().stored.is_some()
    }

    /// Whether the store could not be written, or another process has the run. That says nothing about the run, which goes on
    /// as it is in the store.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.is_interrupted.load(Ordering::Relaxed) || self.open.is_lost.load(Ordering::Relaxed)
    }

    fn failed(&self, problem: &JournalProblem) -> JournalError {
        if matches!(problem, JournalProblem::Store(_) | JournalProblem::Lost) {
            self.is_interrupted.store(true, Ordering::Relaxed);
        }
        if *problem == JournalProblem::Lost {
            self.open.lose();
        }
        failed(problem)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn new(
        open: &Arc<Open>,
        durable: &Arc<Durable>,
        hub: &Hub,
        keys: Arc<KeyRing>,
        header: Header,
        is_durable: bool,
    ) -> Self {
        let (entries, bytes, is_replayed) = (Vec::new(), 0, false);
        Self {
            durable: Arc::clone(durable),
            keys,
            open: Arc::clone(open),
            principal: hub.principal.as_ref().map(|principal| principal.owner.to_string()),
            state: Mutex::new(State { header, active_ms: 0, entries, bytes, is_replayed, replayed: 0, stored: None }),
            is_durable,
            is_taken_over: false,
            began: Instant::now(),
            began_ms: durable.now_ms(),
            resumed_ms: 0,
            resumption: Mutex::default(),
            is_interrupted: AtomicBool::new(false),
        }
    }

    /// Returns the row of the run and its header.
    fn row(&self, state: &State) -> Result<(JournaledRun, String), JournalError> {
        let run = JournaledRun {
            id: self.open.hold.id.clone(),
            state: JournaledState::Running,
            principal: self.principal.clone(),
            began_ms: self.began_ms,
            active_ms: state.active_ms,
            resumed_ms: Some(self.resumed_ms),
            is_cancelled: false,
            outcome: None,
        };
        let header = Header { format: Some(FORMAT), ..state.header.clone() };
        Ok((run, serde_json::to_string(&header).map_err(failed)?))
    }

    /// Appends a line: to the store if the run is there or has to be, else in memory.
    async fn append(&self, line: Line<'_>) -> Result<(), JournalError> {
        // What could not be stored, or was lost, is not gone on with, also if the store is back.
        if self.is_interrupted() {
            return Err(failed(JournalProblem::Lost));
        }
        let text = serde_json::to_string(&line).map_err(failed)?;
        let Durable { journals, lease, max_journal_bytes, .. } = &*self.durable;
        let (number, begun) = {
            let mut state = self.state();
            if state.replayed > 0 {
                state.replayed -= 1;
                return Ok(());
            }
            state.bytes = state.bytes.saturating_add(text.len());
            let is_full = state.bytes > *max_journal_bytes;
            if is_full && self.is_durable {
                return Err(failed(format_args!(
                    "it is longer than {max_journal_bytes} bytes (durable.maxJournalBytes)"
                )));
            }
            match state.stored {
                Some(number) => {
                    state.stored = Some(number + 1);
                    (number, None)
                }
                None if self.is_durable => {
                    state.stored = Some(1);
                    (0, Some(self.row(&state)?))
                }
                // What is too long is dropped: the run does not pause.
                None if is_full => {
                    state.entries = Vec::new();
                    return Ok(());
                }
                None => {
                    state.entries.push(text);
                    return Ok(());
                }
            }
        };
        let appended = match begun {
            Some((run, header)) => journals.begin(&self.keys, lease, &run, &header, Some(&text)).await,
            None => journals.append(&self.keys, lease, &self.open.hold, number, &text).await,
        };
        appended.map_err(|problem| self.failed(&problem))?;
        if number == 0 {
            self.open.is_stored.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Recorder for StoreRecorder {
    fn start(&self, start: StartInputs) -> StartInputs {
        let mut state = self.state();
        if state.is_replayed {
            let context = state.header.context.clone();
            return StartInputs {
                seed: state.header.seed,
                context,
                fixed_unix_ms: Some(state.header.began_ms as f64),
                ..start
            };
        }
        state.header.seed = start.seed;
        state.header.context.clone_from(&start.context);
        // Another journal may have fixed the time.
        let began_ms = start.fixed_unix_ms.map_or(state.header.began_ms, |ms| ms as i64);
        state.header.began_ms = began_ms;
        StartInputs { fixed_unix_ms: Some(began_ms as f64), ..start }
    }

    fn append_lookups(&self, _: ToolLookups) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn append_calls<'a>(&'a self, calls: &'a [Call]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(self.append(Line::calls(calls)))
    }

    fn append_answers<'a>(&'a self, round: &'a Round) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(self.append(Line::answers(round)))
    }

    fn is_only(&self) -> bool {
        false
    }

    fn can_pause(&self) -> bool {
        true
    }

    fn can_sleep(&self) -> bool {
        self.is_taken_over
    }

    fn pause(&self, Pause { due, is_for_person }: Pause) -> BoxFuture<'_, Result<bool, JournalError>> {
        Box::pin(async move {
            let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            // The time for which a script sleeps counts.
            let asleep = due.filter(|_| !is_for_person).map_or(0, ms);
            let spent = ms(self.began.elapsed()).saturating_add(asleep);
            let due_ms =
                due.map(|due| self.durable.now_ms().saturating_add(i64::try_from(ms(due)).unwrap_or(i64::MAX)));
            let Durable { journals, lease, max_journal_bytes, .. } = &*self.durable;
            let ((run, header), entries, is_stored) = {
                let mut state = self.state();
                state.active_ms = state.active_ms.saturating_add(spent);
                if state.bytes > *max_journal_bytes {
                    return Ok(false);
                }
                (self.row(&state)?, state.entries.join("\n"), state.stored.is_some())
            };
            if !is_stored {
                let begun = journals.begin(&self.keys, lease, &run, &header, Some(&entries)).await;
                begun.map_err(|problem| self.failed(&problem))?;
            }
            self.open.is_stored.store(false, Ordering::Relaxed);
            let script_ms = self.resumed_ms.saturating_add(spent);
            let spent = Spent { active_ms: run.active_ms, script_ms };
            let paused = journals.pause(lease, &self.open.hold, spent, due_ms).await;
            paused.map_err(|problem| self.failed(&problem))?;
            Ok(true)
        })
    }

    fn resumption(&self) -> Option<Resumption> {
        self.resumption.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn hold(self: Arc<Self>) -> Option<Arc<dyn RunHold>> {
        Some(self)
    }

    fn goes_on(&self, outcome: &Outcome) -> bool {
        if self.is_interrupted() {
            return true;
        }
        let code = outcome.result.as_ref().err().map(|failure| &failure.code);
        let is_passing = code.is_some_and(|code| PASSING.iter().any(|passing| *code == *passing));
        is_passing && self.is_durable && self.is_stored() && !self.open.is_cancelled()
    }

    fn fence(&self) -> i64 {
        self.open.hold.fence
    }
}

impl RunHold for StoreRecorder {
    fn check(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            if self.is_interrupted() {
                return Err(JournalProblem::Lost.to_string());
            }
            // A run that is not in the store yet is known to no other process.
            if !self.is_stored() {
                return Ok(());
            }
            self.durable.check(&self.open.hold).await.map_err(|problem| self.failed(&problem).0)
        })
    }
}
