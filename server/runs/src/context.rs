//! What belongs to one run from its beginning to its end, whoever works on it at the moment: who
//! watches it, what ends it before its time, and what it has used of what all runs share.

use super::executor::Evaluation;
use super::{Refused, refused};
use agentscript::{Message, Outcome};
use codecall_base::call::RunScope;
use codecall_base::event::{RunEvent, Watcher};
use codecall_base::json;
use codecall_base::tool::ErrorCode;
use codecall_config::Pool;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use tokio_util::sync::CancellationToken;

/// One run.
pub struct RunContext {
    /// Its id and the permit that it has until no thread works on it any more.
    pub scope: RunScope,
    /// What is logged within it is logged with its id.
    pub span: tracing::Span,
    pub watcher: Watcher,
    /// Fires when the run has to end, for whatever reason.
    pub cancel: CancellationToken,
    /// The same for the interpreter, which looks at it in the middle of a long step.
    pub stop: Arc<AtomicBool>,
    /// Why it has to; empty: nobody wants its result any more.
    why: OnceLock<Why>,
    pub bounds: Pool,
    /// Whether a thread has the run, or will have it when its turn has come.
    in_slice: AtomicBool,
    /// Messages that the script has sent.
    messages: AtomicU64,
    ledger: Arc<Ledger>,
    /// Its number in the ledger.
    number: u64,
}

struct Why {
    code: ErrorCode,
    message: String,
}

impl RunContext {
    pub fn begin(
        scope: RunScope,
        ledger: &Arc<Ledger>,
        bounds: Pool,
        watcher: Watcher,
        cancel: CancellationToken,
    ) -> Arc<Self> {
        if let Some(watcher) = &watcher {
            watcher(RunEvent::Started { run: scope.id.clone() });
        }
        let context = Arc::new(Self {
            // Of the highest level, so that it is there however little is logged.
            span: tracing::error_span!("run", id = %scope.id),
            scope,
            watcher,
            cancel,
            stop: Arc::default(),
            why: OnceLock::new(),
            bounds,
            in_slice: AtomicBool::new(false),
            messages: AtomicU64::new(0),
            ledger: Arc::clone(ledger),
            number: ledger.numbers.fetch_add(1, Ordering::Relaxed),
        });
        ledger.open(context.number, Arc::downgrade(&context));
        context
    }

    /// The run has to end, with this code. The first reason counts.
    pub fn end(&self, code: ErrorCode, message: impl Into<String>) {
        let _ = self.why.set(Why { code, message: message.into() });
        self.stop();
    }

    /// The run has to end: nobody wants its result, or it must not go on.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.cancel.cancel();
    }

    /// A slice is over and the run is not: what it uses now.
    pub fn used(&self, run: &dyn Evaluation) {
        let most = self.bounds.max_pending_calls;
        if run.unanswered_calls() > most {
            let message =
                format!("More than {most} tool calls wait for an answer at once; await them in smaller groups");
            self.end(ErrorCode::TooManyPendingCalls, message);
        }
        self.ledger.used(self.number, run.memory_bytes());
    }

    /// A slice begins, or has ended and its thread has let go of the run.
    pub fn set_in_slice(&self, in_slice: bool) {
        self.in_slice.store(in_slice, Ordering::Release);
    }

    /// Nobody waits for the run any more. A thread that is in a slice of it may take as much memory as the script may,
    /// which is `most`, until that slice ends.
    pub fn leave(&self, most: u64) {
        // Where the run has ended there is nobody to hear it.
        self.stop();
        if self.in_slice.load(Ordering::Acquire) {
            self.ledger.give_up(self.number, most);
        }
    }

    /// The script has sent these: each is told to whoever watches, unless it is too much.
    pub fn heard(&self, messages: Vec<Message>) {
        for message in messages {
            let most = self.bounds.max_messages;
            if self.messages.fetch_add(1, Ordering::Relaxed) >= most {
                return self
                    .end(ErrorCode::MessageFlood, format!("The script sent more than {most} messages; send fewer"));
            }
            let data = match &message {
                Message::Log { metadata, .. } => metadata.as_deref(),
                Message::Notify { payload, .. } => Some(payload.as_str()),
            };
            if !self.fits("A message of the script", length(&message)) {
                return;
            }
            if data.is_some_and(|data| json::parse(data).is_err()) {
                return self.unreadable("The data of a message");
            }
            if let Some(watcher) = &self.watcher {
                watcher(RunEvent::Message(message));
            }
        }
    }

    /// Whether something that the script sends is not too long; else the run has to end.
    pub fn fits(&self, what: &str, length: usize) -> bool {
        let most = self.bounds.max_message_bytes;
        if length > most {
            self.end(ErrorCode::MessageTooLarge, format!("{what} is longer than {most} bytes; send less at a time"));
        }
        length <= most
    }

    /// Something that the script sends cannot be read by anybody: the run has to end.
    pub fn unreadable(&self, what: &str) {
        self.end(ErrorCode::MessageInvalid, format!("{what} is nested too deeply to be sent; send a flat form of it"));
    }

    /// The outcome, with the reason where the run was ended for one.
    pub fn settle(&self, mut outcome: Outcome) -> Outcome {
        let Some(why) = self.why.get() else { return outcome };
        // What ends with a message that it must not send has not ended well.
        let sent = matches!(why.code, ErrorCode::MessageTooLarge | ErrorCode::MessageInvalid | ErrorCode::MessageFlood);
        match &mut outcome.result {
            Err(failure) if failure.code == ErrorCode::ExecutionAborted => {
                failure.code = why.code.into();
                failure.message.clone_from(&why.message);
            }
            Ok(_) if sent => outcome.result = refused(why.code, why.message.as_str()).result,
            Ok(_) | Err(_) => {}
        }
        outcome
    }
}

/// Bytes of a message of a script.
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
        self.ledger.close(self.number);
    }
}

/// The memory of all runs together.
pub struct Ledger {
    most: u64,
    numbers: AtomicU64,
    rows: Mutex<Rows>,
}

#[derive(Default)]
struct Rows {
    total: u64,
    runs: HashMap<u64, Row>,
}

struct Row {
    bytes: u64,
    context: Weak<RunContext>,
    /// Whether nobody can end it any more.
    given_up: bool,
}

impl Ledger {
    pub fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { most, numbers: AtomicU64::new(0), rows: Mutex::default() })
    }

    fn open(&self, number: u64, context: Weak<RunContext>) {
        self.rows
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .runs
            .insert(number, Row { bytes: 0, context, given_up: false });
    }

    fn close(&self, number: u64) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = rows.runs.remove(&number);
        rows.total -= gone.map_or(0, |row| row.bytes);
    }

    /// Whether there is memory for one more run.
    ///
    /// # Errors
    /// Those that are there have all of it.
    pub fn admit(&self) -> Result<(), Refused> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.total < self.most {
            return Ok(());
        }
        let most = self.most;
        Err(Refused::new(
            ErrorCode::WorkerMemoryExceeded,
            format!("The scripts that are running have all of the {most} bytes that there are; try again later"),
        ))
    }

    fn give_up(&self, number: u64, most: u64) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(row) = rows.runs.get_mut(&number) else { return };
        let more = most.saturating_sub(row.bytes);
        row.bytes += more;
        row.given_up = true;
        rows.total += more;
    }

    /// A run has so many bytes now. Where all have too many, the largest one has to end; until it has,
    /// it is the largest one still, so that no other follows it.
    fn used(&self, number: u64, bytes: u64) {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(row) = rows.runs.get_mut(&number) else { return };
        if row.given_up {
            return;
        }
        let before = std::mem::replace(&mut row.bytes, bytes);
        rows.total = rows.total - before + bytes;
        if rows.total <= self.most {
            return;
        }
        let largest = rows
            .runs
            .values()
            .filter(|row| !row.given_up)
            .max_by_key(|row| row.bytes)
            .and_then(|row| row.context.upgrade());
        drop(rows);
        if let Some(context) = largest {
            let most = self.most;
            let message = format!(
                "All running scripts together need more than {most} bytes, and this one has the most; keep less data"
            );
            context.end(ErrorCode::WorkerMemoryExceeded, message);
        }
    }
}
