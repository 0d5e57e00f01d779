//! The context of a run: its event sink, its cancellation, and its share of the memory of all runs.

use super::admission::{ClientKey, RunPermit};
use super::executor::Evaluation;
use super::{Refused, refused};
use agentscript::{Message, Outcome};
use codecall_base::call::RunScope;
use codecall_base::event::{EventSink, RunEvent};
use codecall_base::json;
use codecall_base::tool::ErrorCode;
use codecall_config::Pool;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use tokio_util::sync::CancellationToken;

/// The context of a run.
pub struct RunContext {
    /// The id of the run.
    pub scope: RunScope,
    /// Its permit and its place, which it keeps until no thread works on it any more; `None`: it is not evaluated here.
    pub permit: Option<RunPermit>,
    /// Adds the id of the run to log lines.
    pub span: tracing::Span,
    pub sink: EventSink,
    /// Cancelled when the run has to end, for any reason.
    pub cancel: CancellationToken,
    /// The flag for the interpreter, which checks it in the middle of long operations.
    pub stop: Arc<AtomicBool>,
    /// Why the run has to end; empty if its client has cancelled it.
    reason: OnceLock<Reason>,
    /// The limits of each run.
    pub pool: Arc<Pool>,
    /// Whether a thread evaluates the run, or the run is queued for one.
    in_slice: AtomicBool,
    /// Number of messages that the script has sent.
    messages: AtomicU64,
    memory: Arc<MemoryBudget>,
    /// The key of the run in `memory`.
    number: u64,
}

/// Why a run has to end.
struct Reason {
    code: ErrorCode,
    message: String,
}

impl RunContext {
    pub fn new(
        scope: RunScope,
        permit: Option<RunPermit>,
        memory: &Arc<MemoryBudget>,
        pool: &Arc<Pool>,
        sink: EventSink,
        cancel: CancellationToken,
    ) -> Arc<Self> {
        if let Some(sink) = &sink {
            sink(RunEvent::Started { run: scope.id.clone() });
        }
        let context = Arc::new(Self {
            // The highest level, so that the span is enabled whatever the log filter is.
            span: tracing::error_span!("run", id = %scope.id),
            scope,
            permit,
            sink,
            cancel,
            stop: Arc::default(),
            reason: OnceLock::new(),
            pool: Arc::clone(pool),
            in_slice: AtomicBool::new(false),
            messages: AtomicU64::new(0),
            memory: Arc::clone(memory),
            number: memory.next_number.fetch_add(1, Ordering::Relaxed),
        });
        memory.add_run(context.number, context.client(), Arc::downgrade(&context));
        context
    }

    /// Returns the client whose run it is.
    pub fn client(&self) -> ClientKey {
        self.permit.as_ref().map(RunPermit::client).unwrap_or_default()
    }

    /// Gives the permit back while the run waits.
    pub fn release_permit(&self) {
        if let Some(permit) = &self.permit {
            permit.release();
        }
    }

    /// Waits until the run has a permit, for which others may come first. A run that is cancelled ends without one.
    pub async fn share_permit(&self) {
        if let Some(permit) = &self.permit {
            if permit.is_wanted() {
                permit.release();
            }
            self.cancel.run_until_cancelled(permit.acquire()).await;
        }
    }

    /// Whether a run of another client waits for the permit.
    pub fn is_permit_wanted(&self) -> bool {
        self.permit.as_ref().is_some_and(RunPermit::is_wanted)
    }

    /// Ends the run with a code and a message. Only the first reason counts.
    pub fn end(&self, code: ErrorCode, message: impl Into<String>) {
        let _ = self.reason.set(Reason { code, message: message.into() });
        self.stop();
    }

    /// Returns why the run has to end; `None`: it need not, or its client has cancelled it.
    pub fn reason(&self) -> Option<(ErrorCode, &str)> {
        self.reason.get().map(|reason| (reason.code, reason.message.as_str()))
    }

    /// Cancels the run.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.cancel.cancel();
    }

    /// Checks the resources of the run after a slice, and ends a run that uses too many.
    pub fn check_usage(&self, run: &dyn Evaluation) {
        let max = self.pool.max_pending_calls;
        if run.unanswered_calls() > max {
            let message =
                format!("More than {max} tool calls wait for an answer at once; await them in smaller groups");
            self.end(ErrorCode::TooManyPendingCalls, message);
        }
        self.memory.record(self.number, run.memory_bytes());
    }

    /// Sets whether a thread evaluates the run, or the run is queued for one.
    pub fn set_in_slice(&self, in_slice: bool) {
        self.in_slice.store(in_slice, Ordering::Release);
    }

    /// Cancels a run that nobody waits for. If a thread evaluates it, its memory counts as `max_bytes`, the limit of its
    /// script, until the slice ends.
    pub fn abandon(&self, max_bytes: u64) {
        self.stop();
        if self.in_slice.load(Ordering::Acquire) {
            self.memory.abandon(self.number, max_bytes);
        }
    }

    /// Forwards messages of the script to the event sink. Too many messages, or too large ones, end the run.
    pub fn forward(&self, messages: Vec<Message>) {
        for message in messages {
            let max = self.pool.max_messages;
            if self.messages.fetch_add(1, Ordering::Relaxed) >= max {
                let message = format!("The script sent more than {max} messages; send fewer");
                return self.end(ErrorCode::MessageFlood, message);
            }
            let data = match &message {
                Message::Log { metadata, .. } => metadata.as_deref(),
                Message::Notify { payload, .. } => Some(payload.as_str()),
            };
            if !self.check_size("A message of the script", length(&message)) {
                return;
            }
            if data.is_some_and(|data| json::is_too_deep(data.as_bytes())) {
                return self.end_too_deep("The data of a message");
            }
            if let Some(sink) = &self.sink {
                sink(RunEvent::Message(message));
            }
        }
    }

    /// Returns whether data of the script may be sent. Data that is too large ends the run. `what` names it in the message.
    pub fn check_size(&self, what: &str, length: usize) -> bool {
        let max = self.pool.max_message_bytes;
        if length > max {
            self.end(ErrorCode::MessageTooLarge, format!("{what} is longer than {max} bytes; send less at a time"));
        }
        length <= max
    }

    /// Ends a run that sends data which JSON parsers refuse because of its depth.
    pub fn end_too_deep(&self, what: &str) {
        self.end(ErrorCode::MessageInvalid, format!("{what} is nested too deeply to be sent; send a flat form of it"));
    }

    /// Returns the final outcome: with the reason if the run was ended for one.
    pub fn final_outcome(&self, mut outcome: Outcome) -> Outcome {
        let Some(reason) = self.reason.get() else { return outcome };
        // A run whose last message is invalid has failed, even if it has returned a result.
        let is_message =
            matches!(reason.code, ErrorCode::MessageTooLarge | ErrorCode::MessageInvalid | ErrorCode::MessageFlood);
        match &mut outcome.result {
            Err(failure) if failure.code == ErrorCode::ExecutionAborted => {
                (failure.code, failure.status) = (reason.code.into(), reason.code.status());
                failure.message.clone_from(&reason.message);
            }
            Ok(_) if is_message => {
                outcome = Outcome {
                    result: refused(reason.code, reason.message.as_str()).result,
                    warnings: Vec::new(),
                    ..outcome
                }
            }
            Ok(_) | Err(_) => {}
        }
        outcome
    }
}

/// Returns the size of a message of a script, in bytes.
pub fn length(message: &Message) -> usize {
    match message {
        Message::Log { level, message, metadata } => {
            level.len() + message.len() + metadata.as_ref().map_or(0, String::len)
        }
        Message::Notify { event, payload } => event.len() + payload.len(),
    }
}

impl Drop for RunContext {
    fn drop(&mut self) {
        self.memory.remove_run(self.number);
    }
}

/// The memory budget that all runs share.
pub struct MemoryBudget {
    max_bytes: u64,
    next_number: AtomicU64,
    usage: Mutex<MemoryUsage>,
}

#[derive(Default)]
struct MemoryUsage {
    total: u64,
    runs: HashMap<u64, RunMemory>,
}

struct RunMemory {
    bytes: u64,
    client: ClientKey,
    context: Weak<RunContext>,
    /// Whether the run was cancelled while a thread evaluated it, so that its memory is free at an unknown time.
    is_abandoned: bool,
}

impl MemoryBudget {
    /// Creates a budget of so many bytes.
    #[must_use]
    pub fn new(max_bytes: u64) -> Arc<Self> {
        Arc::new(Self { max_bytes, next_number: AtomicU64::new(0), usage: Mutex::default() })
    }

    fn usage(&self) -> MutexGuard<'_, MemoryUsage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the memory of all runs in bytes.
    pub fn total(&self) -> u64 {
        self.usage().total
    }

    fn add_run(&self, number: u64, client: ClientKey, context: Weak<RunContext>) {
        self.usage().runs.insert(number, RunMemory { bytes: 0, client, context, is_abandoned: false });
    }

    fn remove_run(&self, number: u64) {
        let mut usage = self.usage();
        let removed = usage.runs.remove(&number);
        usage.total -= removed.map_or(0, |run| run.bytes);
    }

    /// Whether at least half of the budget is free.
    pub fn is_plentiful(&self) -> bool {
        self.usage().total <= self.max_bytes / 2
    }

    /// Checks that there is memory for another run.
    ///
    /// # Errors
    /// The budget is used up.
    pub fn check_available(&self) -> Result<(), Refused> {
        let max = self.max_bytes;
        if self.usage().total < max {
            return Ok(());
        }
        let message = format!("The running scripts use all of the {max} bytes of memory; try again later");
        Err(Refused::new(ErrorCode::WorkerMemoryExceeded, message))
    }

    /// Counts the memory of a run as `max_bytes` until its context is dropped.
    fn abandon(&self, number: u64, max_bytes: u64) {
        let mut usage = self.usage();
        let Some(run) = usage.runs.get_mut(&number) else { return };
        let more = max_bytes.saturating_sub(run.bytes);
        run.bytes += more;
        run.is_abandoned = true;
        usage.total += more;
    }

    /// Records the memory of a run. If the budget is exceeded, the largest run of the client that uses most has to end.
    /// Until it has ended it stays the largest one, so no other run is ended as well.
    fn record(&self, number: u64, bytes: u64) {
        let mut usage = self.usage();
        let Some(run) = usage.runs.get_mut(&number) else { return };
        if run.is_abandoned {
            return;
        }
        let before = std::mem::replace(&mut run.bytes, bytes);
        usage.total = usage.total - before + bytes;
        if usage.total <= self.max_bytes {
            return;
        }
        let mut of_clients: HashMap<ClientKey, u64> = HashMap::new();
        usage.runs.values().for_each(|run| *of_clients.entry(run.client).or_default() += run.bytes);
        let largest = usage
            .runs
            .values()
            .filter(|run| !run.is_abandoned)
            .max_by_key(|run| (of_clients[&run.client], run.bytes))
            .and_then(|run| run.context.upgrade());
        drop(usage);
        if let Some(context) = largest {
            let max = self.max_bytes;
            let message = format!(
                "All running scripts together need more than {max} bytes, and this one has the most; keep less data"
            );
            context.end(ErrorCode::WorkerMemoryExceeded, message);
        }
    }
}
