//! A run: one execution of one script, as a state machine.

use crate::builtins::timer;
use crate::builtins::tool::fetch;
use crate::builtins::tool::settle;
use crate::eval::drain;
use crate::eval::error;
use crate::eval::execute::{self, Exit, stopped};
use crate::eval::idle;
use crate::eval::job;
use crate::eval::json;
use crate::eval::stress::Stress;
use crate::eval::suggest;
use crate::eval::unawaited;
use crate::eval::undefined_result;
use crate::eval::vm::Vm;
use crate::heap::promise::State;
use crate::interface::error_code::ErrorCode;
use crate::interface::host::{CallId, Event, Inputs, Message, OpenCall, Progress, Resumable, TimeFlow};
use crate::interface::limits::Policy;
use crate::interface::outcome::{
    Failure, MAX_DETAILS_BYTES, MAX_MESSAGE_BYTES, MAX_NAME_BYTES, MAX_UNANSWERED, Outcome, Stats, Status, Unanswered,
    cut_text,
};
use crate::meter::GRANT;
use crate::meter::timer::cancelled;
use crate::script::Script;
use crate::value::atom::known;
use crate::value::thrown::{Cause, Thrown};
use crate::value::{Kind, Value};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// One execution of one script. Plain data: it can be moved between threads, kept as long as its
/// tool calls take, and dropped at any time, which cancels it.
pub struct Run {
    vm: Vm,
    /// Whether it paused with frames on the stack.
    paused: bool,
    /// Events that are not processed yet.
    events: VecDeque<Event>,
    stage: Stage,
    /// Whether it ended in a deadlock.
    deadlocked: bool,
    /// Whether the result is `undefined`.
    is_undefined: bool,
    /// Whether the result was there before all was done.
    is_early: bool,
    /// Whether the slice was over when a timer had fired.
    yields: bool,
}

/// The stage of a run.
enum Stage {
    /// It has not begun.
    New,
    /// The main function runs or waits.
    Main,
    /// The result is there, but a promise in it is still pending.
    Result,
    /// The JSON text of the result and its warnings are there, or it has none, but something is left to do.
    Drain(Result<(String, Vec<String>), Box<Failure>>),
    /// The outcome has been given.
    Done,
}

/// The JSON text of a result and its warnings, or why there is none.
type ResultText = Result<(String, Vec<String>), Box<Failure>>;

impl Resumable for Run {
    fn resume(&mut self, events: Vec<Event>) -> Progress {
        self.resume(events)
    }

    fn take_messages(&mut self) -> Vec<Message> {
        self.take_messages()
    }

    fn open_calls(&mut self) -> Vec<OpenCall> {
        Self::open_calls(self)
    }

    fn next_timer(&self) -> Option<Duration> {
        Self::next_timer(self)
    }

    fn take_cancelled(&mut self) -> Vec<CallId> {
        Self::take_cancelled(self)
    }
}

impl Script {
    /// A run of this script that has not begun.
    #[must_use]
    pub fn start(self: &Arc<Self>, inputs: Inputs, policy: &Policy) -> Run {
        Run::new(Arc::clone(self), inputs, policy)
    }
}

impl Run {
    pub(crate) fn new(script: Arc<Script>, inputs: Inputs, policy: &Policy) -> Self {
        let vm = Vm::new(script, inputs, policy);
        Self {
            vm,
            paused: false,
            events: VecDeque::new(),
            stage: Stage::New,
            deadlocked: false,
            is_undefined: false,
            is_early: false,
            yields: false,
        }
    }

    /// Execute until the run needs an event or its slice is used up.
    ///
    /// Events are processed in order, each with everything that follows from it before the next; [`Event::Cancel`]
    /// alone takes effect at once. After [`Progress::Done`] a run returns [`Progress::Calls`] without calls.
    pub fn resume(&mut self, events: impl IntoIterator<Item = Event>) -> Progress {
        let mut cancelled = false;
        self.events.extend(events.into_iter().inspect(|event| cancelled |= matches!(event, Event::Cancel)));
        self.vm.heap.meter.timer.resume();
        self.vm.heap.meter.given = 0;
        let progress = if cancelled { self.cancel() } else { self.advance() };
        self.vm.heap.meter.timer.suspend();
        match progress {
            Ok(Some(progress)) => progress,
            Ok(None) => {
                idle::enter_idle(&mut self.vm);
                Progress::Calls(self.take_calls())
            }
            Err(failure) => self.failed(*failure),
        }
    }

    /// Cancel the run when `flag` is set, also from another thread and in the middle of a built-in function.
    ///
    /// [`Event::Cancel`] reaches a run between two calls of [`Run::resume`]; the flag is checked within a call too, as
    /// often as the clock: every few thousand steps. The outcome is the same, `EXECUTION_ABORTED`, and no script can
    /// catch it. A flag that is never set changes nothing. It is not recorded or replayed. Several runs may share a
    /// flag.
    pub fn cancel_on(&mut self, flag: Arc<AtomicBool>) {
        self.vm.heap.meter.timer.cancelled = Some(flag);
    }

    /// Messages that the script has sent since the last call.
    pub fn take_messages(&mut self) -> Vec<Message> {
        let (messages, bytes) = self.vm.output.take_messages();
        self.vm.heap.meter.release_bytes(bytes);
        messages
    }

    /// Bytes in use by the run's own meter, garbage included, for hosts that sum them over many runs.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.vm.heap.meter.bytes
    }

    /// How many calls have no answer, queued ones included.
    #[must_use]
    pub fn unanswered_calls(&self) -> usize {
        self.vm.host.calls.unanswered()
    }

    /// When the run has to be resumed without events, by [`Clock::monotonic`](crate::Clock::monotonic), unless an event
    /// comes first: a timer is due, or the run must have ended.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        let end = self.vm.heap.meter.timer.deadline(&self.vm.heap.meter.limits);
        match self.next_timer() {
            Some(due) if self.vm.schedule.flow() == TimeFlow::Real => end.min(self.vm.heap.meter.timer.began() + due),
            Some(_) | None => end,
        }
    }

    /// When the next timer is due, by the time that the script sees, since the run began. Hosts need it where time
    /// flows by [`TimeFlow::Events`].
    #[must_use]
    pub fn next_timer(&self) -> Option<Duration> {
        self.vm.schedule.next_timer(self.vm.blocked_on()).map(|(due, _)| Duration::from_millis(due))
    }

    /// The calls that the script has cancelled since the last call, by a signal: their answers have no effect.
    pub fn take_cancelled(&mut self) -> Vec<CallId> {
        self.vm.host.calls.take_cancelled()
    }

    /// How long until then.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        self.deadline().saturating_sub(self.vm.heap.meter.timer.clock.monotonic())
    }

    /// The calls without an answer, in order; queued ones included.
    #[must_use]
    pub fn open_calls(&self) -> Vec<OpenCall> {
        let open = drain::open_calls(&self.vm, |search, vm, promise| self.is_held() || search.is_needed(vm, promise));
        open.into_iter().map(|(id, awaited)| OpenCall { id, awaited }).collect()
    }

    /// Whether the result or the stack waits for a promise, which have no reactions to it.
    fn is_held(&self) -> bool {
        matches!(self.stage, Stage::Result) || self.vm.stack.blocked_on.is_some()
    }

    /// The most bytes that were in use so far: see [`Run::memory_bytes`].
    #[must_use]
    pub fn peak_memory_bytes(&self) -> usize {
        let meter = &self.vm.heap.meter;
        meter.peak.max(meter.bytes)
    }

    /// Make rare paths frequent: for tests.
    #[doc(hidden)]
    pub fn stress(&mut self, stress: Stress) {
        self.vm.heap.meter.interval = stress.interval.map_or(GRANT, i64::from);
        if stress.pause {
            self.vm.heap.meter.timer.slice = Some(Duration::ZERO);
        }
        self.vm.stress = stress;
    }

    /// Restart the limits of time: for tests that measure several calls of one run.
    #[doc(hidden)]
    pub fn restart_timer(&mut self) {
        self.vm.heap.meter.timer.begin();
    }

    /// Cancel the run.
    fn cancel(&mut self) -> Result<Option<Progress>, Box<Failure>> {
        match self.stage {
            Stage::Done => Ok(Some(Progress::Calls(Vec::new()))),
            Stage::New | Stage::Main | Stage::Result | Stage::Drain(_) => {
                if matches!(self.stage, Stage::New) {
                    self.vm.heap.meter.timer.begin();
                }
                Err(Box::new(cancelled()))
            }
        }
    }

    fn advance(&mut self) -> Result<Option<Progress>, Box<Failure>> {
        if matches!(self.stage, Stage::Done) {
            return Ok(Some(Progress::Calls(Vec::new())));
        }
        let is_new = matches!(self.stage, Stage::New);
        if is_new {
            self.vm.heap.meter.timer.begin();
            self.stage = Stage::Main;
        }
        self.vm.heap.meter.check_time().map_err(failure_of)?;
        self.vm.heap.meter.timer.slice_over = false;
        if is_new {
            let exit = execute::execute_main(&mut self.vm);
            if self.halted(exit)? {
                return Ok(Some(Progress::Yielded));
            }
        }
        loop {
            if self.vm.blocked_on().is_some() {
                // Nothing else runs: no microtask, no other function, no timer but its own.
                if self.fire()? {
                    if std::mem::take(&mut self.yields) {
                        return Ok(Some(Progress::Yielded));
                    }
                } else if !self.next_event()? {
                    break;
                }
                continue;
            }
            if std::mem::take(&mut self.paused) {
                let exit = execute::execute_paused(&mut self.vm);
                if self.halted(exit)? {
                    return Ok(Some(Progress::Yielded));
                }
                continue;
            }
            if let Some(job) = self.vm.jobs.pop_front() {
                let exit = job::run_job(&mut self.vm, job);
                if self.halted(exit)? {
                    return Ok(Some(Progress::Yielded));
                }
                continue;
            }
            if let Some(done) = self.finish()? {
                return Ok(Some(done));
            }
            if self.fire()? {
                if std::mem::take(&mut self.yields) {
                    return Ok(Some(Progress::Yielded));
                }
            } else if !self.next_event()? {
                break;
            }
        }
        if self.vm.host.calls.is_empty() && self.vm.schedule.is_empty() {
            return Err(Box::new(self.deadlock()));
        }
        Ok(None)
    }

    /// Let the next timer fire, if it is due.
    fn fire(&mut self) -> Result<bool, Box<Failure>> {
        let blocked_on = self.vm.blocked_on();
        let due = self.vm.schedule.take_due_timer(&mut self.vm.heap.meter, blocked_on).map_err(failure_of)?;
        let Some(timer) = due else { return Ok(false) };
        let exit = timer::run_timer(&mut self.vm, timer);
        self.yields = self.halted(exit)?;
        Ok(true)
    }

    /// Process the next event. Where there is none and time is virtual, it jumps to the next timer, unless the script
    /// waits for a call.
    fn next_event(&mut self) -> Result<bool, Box<Failure>> {
        if let Some(event) = self.events.pop_front() {
            self.take(event)?;
            return Ok(true);
        }
        let Some((due, _)) = self.vm.schedule.next_timer(self.vm.blocked_on()) else { return Ok(false) };
        if self.vm.schedule.flow() != TimeFlow::Virtual || drain::needs_calls(&mut self.vm).map_err(failure_of)? {
            return Ok(false);
        }
        self.vm.schedule.reach(due);
        Ok(true)
    }

    /// Whether the slice is over.
    fn halted(&mut self, exit: Exit) -> Result<bool, Box<Failure>> {
        if let Some(error) = self.vm.uncaught.take() {
            return Err(Box::new(self.unhandled(error)));
        }
        match exit {
            Exit::Idle | Exit::Nested(_) => Ok(std::mem::take(&mut self.vm.heap.meter.timer.slice_over)),
            Exit::Paused => {
                self.paused = true;
                Ok(true)
            }
            Exit::Blocked => {
                self.paused = true;
                Ok(std::mem::take(&mut self.vm.heap.meter.timer.slice_over))
            }
            Exit::Stopped(failure) => Err(failure),
        }
    }

    /// Process an event.
    fn take(&mut self, event: Event) -> Result<(), Box<Failure>> {
        match event {
            Event::Settled { id, result } => settle::settle_call(&mut self.vm, id, result).map_err(failure_of),
            Event::Time(ms) => {
                self.vm.schedule.reach(ms);
                Ok(())
            }
            Event::Cancel => self.cancel().map(drop),
        }
    }

    /// New calls, as many as may be in flight.
    fn take_calls(&mut self) -> Vec<crate::Call> {
        let most = self.vm.heap.meter.limits.max_concurrency.max(1);
        self.vm.host.calls.take(most)
    }

    /// The microtasks are done: the outcome, where nothing is left to do.
    fn finish(&mut self) -> Result<Option<Progress>, Box<Failure>> {
        // Promises in the result are awaited from now on.
        let pending = match (&self.stage, self.vm.stack.main) {
            (Stage::Main | Stage::Result, Some(main)) => {
                let promise = &self.vm.heap.promises[main.index()];
                match promise.state {
                    State::Fulfilled => {
                        self.stage = Stage::Result;
                        let value = promise.value;
                        Some((value, json::pending_promise_in(&mut self.vm, value).map_err(failure_of)?))
                    }
                    State::Pending | State::Rejected => None,
                }
            }
            _ => None,
        };
        self.check_rejections()?;
        match pending {
            Some((_, Some(promise))) => {
                let data = &self.vm.heap.promises[promise.index()];
                return match (data.state, data.value) {
                    (State::Rejected, reason) => Err(Box::new(self.uncaught(reason))),
                    (State::Pending | State::Fulfilled, _) => Ok(None),
                };
            }
            Some((value, None)) => {
                let result = self.result_text(value)?;
                self.is_undefined = json::settled(&self.vm, value).is_undefined();
                self.vm.heap.meter.keep_bytes(result.as_ref().map_or(0, |(json, _)| json.len()));
                self.stage = Stage::Drain(result);
            }
            None => {}
        }
        if !matches!(self.stage, Stage::Drain(_)) {
            return Ok(None);
        }
        if drain::needs_more(&mut self.vm).map_err(failure_of)? {
            self.is_early = true;
            return Ok(None);
        }
        let Stage::Drain(result) = std::mem::replace(&mut self.stage, Stage::Done) else { return Ok(None) };
        let (json, mut warnings) = result?;
        if self.is_undefined {
            warnings.push(undefined_result::undefined_result_text(&self.vm));
        } else if self.is_early {
            warnings.splice(0..0, undefined_result::early_result_text(&self.vm));
        }
        Ok(Some(self.done(Ok(json), warnings)))
    }

    /// End the run at the first rejection that nobody has handled by now, as Node does.
    fn check_rejections(&mut self) -> Result<(), Box<Failure>> {
        for promise in std::mem::take(&mut self.vm.rejected) {
            let data = &self.vm.heap.promises[promise.index()];
            if !data.handled {
                let reason = data.value;
                let is_main = self.vm.stack.main == Some(promise);
                return Err(Box::new(if is_main { self.uncaught(reason) } else { self.unhandled(reason) }));
            }
        }
        Ok(())
    }

    /// The JSON text of the result, or the failure of one that has none, which ends the run when nothing is left to do.
    /// `Err`: the run ends at once.
    fn result_text(&mut self, value: Value) -> Result<ResultText, Box<Failure>> {
        match json::result_text(&mut self.vm, value) {
            Ok(result) => Ok(Ok(result)),
            Err(thrown) => match *thrown.0 {
                Cause::Value(reason) => Ok(Err(Box::new(self.uncaught(reason)))),
                Cause::Stop(failure) => {
                    let codes = [ErrorCode::SerializationError, ErrorCode::ResultTooLarge];
                    if codes.iter().any(|code| failure.code == code.as_str()) { Ok(Err(failure)) } else { Err(failure) }
                }
            },
        }
    }

    /// The failure of an exception that nobody could catch any more.
    fn unhandled(&mut self, value: Value) -> Failure {
        Failure { unhandled: true, ..self.uncaught(value) }
    }

    /// The failure of an uncaught exception.
    fn uncaught(&mut self, value: Value) -> Failure {
        let vm = &mut self.vm;
        let trace = if value.is(Kind::Object) { vm.heap.traces.get(&value.payload()).cloned() } else { None };
        let thrown = vm.stack.thrown.filter(|(thrown, ..)| *thrown == value).map(|(_, code, offset)| (code, offset));
        let place = trace.as_ref().and_then(|trace| trace.frames.first().copied()).or(thrown);
        let location = place.and_then(|(code, offset)| vm.realm.location(code, offset));
        let is_error = execute::error_class(vm, value).is_some();
        // Reading these can run functions of the script; if one throws, the text is left out.
        let mut text = |name, most| {
            let value = vm.get(value, name).ok()?;
            if value.is_undefined() { None } else { vm.short_text(value, most).ok() }
        };
        let (message, name, code) = if is_error {
            let message = text(known::MESSAGE, MAX_MESSAGE_BYTES).unwrap_or_default();
            (message, text(known::NAME, MAX_NAME_BYTES), text(known::CODE, MAX_NAME_BYTES))
        } else {
            (String::new(), None, None)
        };
        if let Some(call) = trace.as_ref().and_then(|trace| trace.call.as_deref()) {
            let (code, message) = match code {
                Some(code) => (code, message),
                None => fetch::with_cause(vm, value, message),
            };
            let mut failure = Failure::new(Status::ToolError, code, message);
            failure.tool_name = Some(cut_text(&call.tool, MAX_NAME_BYTES));
            failure.tool_input = Some(call.input.to_string());
            failure.location = location;
            let details = vm.get(value, known::DETAILS).unwrap_or(Value::UNDEFINED);
            if !details.is_undefined() {
                failure.details = json::to_json_within(vm, details, MAX_DETAILS_BYTES).ok();
            }
            return failure;
        }
        let message = if is_error { message } else { vm.uncaught_text(value) };
        let mut failure = Failure::from_code(ErrorCode::ExecutionError, message);
        failure.name = name.or_else(|| Some("Error".into()));
        failure.location = location;
        failure.stack = if is_error { vm.short_stack(value).ok() } else { None };
        failure.hint = trace.and_then(|trace| suggest::hint(vm, trace.missing.as_ref()?)).or_else(|| {
            let line = vm.realm.script.source().lines().nth(location?.line as usize - 1)?;
            suggest::hint_of_message(vm, &failure.message, line)
        });
        failure
    }

    /// The failure of a deadlock.
    fn deadlock(&mut self) -> Failure {
        self.deadlocked = true;
        let vm = &self.vm;
        let waits = error::main_wait(vm);
        let location = waits.and_then(|(code, offset)| vm.realm.location(code, offset));
        let at_line = location.map_or_else(String::new, |location| format!(" at line {}", location.line));
        let message = format!("The script awaits{at_line} a promise that nothing can settle");
        let mut failure = Failure::from_code(ErrorCode::ExecutionError, message);
        failure.name = Some("Error".into());
        failure.location = location;
        failure
    }

    /// Where a run has waited too long for a timer, name it.
    fn name_timer(&self, failure: &mut Failure) {
        let idle = self.vm.stack.frames.is_empty() && self.vm.jobs.is_empty() && self.vm.schedule.is_idle();
        if failure.status != Status::Timeout || !idle || self.open_calls().iter().any(|call| call.awaited) {
            return;
        }
        let Some(timer) = drain::awaited_timer(&self.vm) else { return };
        let location = timer.place.and_then(|(code, offset)| self.vm.realm.location(code, offset));
        let line = location.map_or_else(String::new, |location| format!(" of line {}", location.line));
        let what = if timer.repeats {
            format!("the interval{line}, which is never cleared")
        } else {
            format!("the timer{line}")
        };
        failure.message = format!("{}: it still waited for {what}", failure.message);
        failure.location = failure.location.or(location);
    }

    fn failed(&mut self, mut failure: Failure) -> Progress {
        failure.tool_calls = self.vm.host.calls.handed_out();
        self.name_timer(&mut failure);
        if failure.location.is_none() && failure.status == Status::Timeout {
            // It waited.
            let place = self.vm.place().or_else(|| error::main_wait(&self.vm));
            failure.location = place.and_then(|(code, offset)| self.vm.realm.location(code, offset));
        }
        self.done(Err(Box::new(failure)), Vec::new())
    }

    fn done(&mut self, result: Result<String, Box<Failure>>, warnings: Vec<String>) -> Progress {
        let unawaited = unawaited::unawaited_texts(&mut self.vm, result.is_ok());
        let warnings = unawaited.into_iter().chain(warnings).collect();
        let (logs, stats) = (self.take_logs(), self.stats());
        let awaited =
            drain::open_calls(&self.vm, |search, vm, promise| self.is_held() || search.is_awaited(vm, promise));
        let unanswered = self.vm.host.calls.take_unanswered(MAX_UNANSWERED).into_iter().zip(awaited);
        let unanswered = unanswered.map(|((id, call, started), (_, awaited))| Unanswered {
            id,
            tool: self.vm.heap.text(call.tool).into_owned(),
            input: call.input.into(),
            started,
            awaited,
        });
        let (unanswered, deadlocked) = (unanswered.collect(), self.deadlocked);
        let is_undefined = self.is_undefined && result.is_ok();
        let outcome = Outcome { result, warnings, is_undefined, logs, stats, unanswered, deadlocked };
        self.stage = Stage::Done;
        Progress::Done(Box::new(outcome))
    }

    fn take_logs(&mut self) -> Vec<String> {
        std::mem::take(&mut self.vm.output.logs)
    }

    fn stats(&self) -> Stats {
        let (meter, timer) = (&self.vm.heap.meter, &self.vm.heap.meter.timer);
        let milliseconds = |duration: Duration| duration.as_secs_f64() * 1000.0;
        Stats {
            duration_ms: milliseconds(timer.elapsed()),
            script_ms: milliseconds(timer.script_time()),
            steps: meter.steps(),
            iterations: meter.iterations,
            tool_calls: self.vm.host.calls.made(),
            peak_memory_bytes: self.peak_memory_bytes() as u64,
        }
    }
}

fn failure_of(thrown: Thrown) -> Box<Failure> {
    match stopped(thrown) {
        Exit::Stopped(failure) => failure,
        _ => Box::new(Failure::from_code(ErrorCode::ExecutionError, "the script failed")),
    }
}
