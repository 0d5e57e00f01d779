//! A run: the state machine of [`agentscript::Run`]. Beside it, hosts of every language get the record of its calls,
//! and its outcome as one text.

use crate::clock::HostClock;
use crate::tools::{Checked, Toolset};
use agentscript::{Call, CallId, CallKind, Clock, Event, Message, Outcome, Status, ToolError, Unanswered};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Most calls that an outcome lists.
const MAX_LISTED: usize = 100;

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Its slice is used up: resume it later.
    Yielded,
    /// It waits: for the new calls and earlier ones, or for a timer. [`Run::time_left_ms`] says how long at most.
    Waits,
    /// It has ended: [`Run::outcome`] has the outcome.
    Done,
}

/// Cancels a run from another thread, also while it is evaluated.
#[derive(Clone, Debug)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Cancels the run: it ends with `EXECUTION_ABORTED` when it is resumed, or soon where it is.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One execution of a script. Dropping it cancels it.
pub struct Run {
    /// Absent once it has ended, so that its memory does not wait for a garbage collector.
    run: Option<agentscript::Run>,
    tools: Arc<Toolset>,
    clock: Arc<dyn Clock>,
    host_clock: Option<Arc<HostClock>>,
    flag: CancelFlag,
    events: Vec<Event>,
    new: Vec<Call>,
    /// Calls whose inputs take long to check, which the next `resume` does.
    unchecked: Vec<Call>,
    cancelled: Vec<CallId>,
    messages: Vec<Message>,
    record: Record,
    outcome: Option<Box<Outcome>>,
}

/// The calls of a run that its host has been handed.
#[derive(Default)]
struct Record {
    first: Vec<Made>,
    total: usize,
}

struct Made {
    id: CallId,
    tool: String,
    began: Duration,
    /// How it ended, and when.
    ended: Option<(bool, Duration)>,
}

impl Run {
    pub(crate) fn new(
        mut run: agentscript::Run,
        tools: Arc<Toolset>,
        clock: Arc<dyn Clock>,
        host_clock: Option<Arc<HostClock>>,
    ) -> Self {
        let flag = CancelFlag(Arc::default());
        run.cancel_on(Arc::clone(&flag.0));
        Self {
            run: Some(run),
            tools,
            clock,
            host_clock,
            flag,
            events: Vec::new(),
            new: Vec::new(),
            unchecked: Vec::new(),
            cancelled: Vec::new(),
            messages: Vec::new(),
            record: Record::default(),
            outcome: None,
        }
    }

    /// Goes on until nothing can go on without an event, or the slice is used up. A run that has ended stays so.
    pub fn resume(&mut self) -> Progress {
        let Some(run) = &mut self.run else { return Progress::Done };
        if self.flag.0.load(Ordering::Relaxed) {
            self.unchecked.clear();
            self.events.push(Event::Cancel);
        }
        if !self.unchecked.is_empty() {
            let calls = std::mem::take(&mut self.unchecked);
            return self.hand_out(calls, true);
        }
        let progress = run.resume(std::mem::take(&mut self.events));
        self.messages.extend(run.take_messages());
        match progress {
            agentscript::Progress::Yielded => Progress::Yielded,
            agentscript::Progress::Done(outcome) => {
                self.outcome = Some(outcome);
                self.cancelled.extend(run.take_cancelled());
                self.run = None;
                Progress::Done
            }
            agentscript::Progress::Calls(calls) => {
                self.cancelled.extend(run.take_cancelled());
                let now = self.clock.monotonic();
                calls.iter().for_each(|call| self.record.begin(call, now));
                self.hand_out(calls, false)
            }
        }
    }

    /// Hands out the calls whose inputs fit the schemas of their tools, and fails the others.
    fn hand_out(&mut self, calls: Vec<Call>, may_take_long: bool) -> Progress {
        for mut call in calls {
            let checked = match call.kind {
                CallKind::Tool => self.tools.check_input(&call.tool, &call.input, may_take_long),
                CallKind::Function | CallKind::Fetch => Checked::Fits(None),
            };
            match checked {
                Checked::Fits(other) => {
                    call.input = other.unwrap_or(call.input);
                    self.new.push(call);
                }
                Checked::Fails(error) => self.settle(call.id.0, Err(error)),
                Checked::Later => self.unchecked.push(call),
            }
        }
        let has_answers_only = self.new.is_empty() && !self.events.is_empty();
        if has_answers_only || !self.unchecked.is_empty() { Progress::Yielded } else { Progress::Waits }
    }

    /// Takes the calls that are new since the last time.
    pub fn take_calls(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.new)
    }

    /// The same as a JSON text: `[{"id", "kind": "tool" | "fetch" | "function", "tool", "input", "timeoutMs"}]`.
    pub fn take_calls_json(&mut self) -> String {
        let row = |call: Call| {
            let (kind, tool) = (kind(call.kind), Value::from(call.tool));
            let (id, input, timeout_ms) = (call.id.0, call.input, call.timeout_ms);
            format!(r#"{{"id":{id},"kind":"{kind}","tool":{tool},"input":{input},"timeoutMs":{timeout_ms}}}"#)
        };
        format!("[{}]", self.take_calls().into_iter().map(row).collect::<Vec<_>>().join(","))
    }

    /// Takes the calls that the script has cancelled since the last time: their answers have no effect.
    pub fn take_cancelled(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.cancelled).into_iter().map(|id| id.0).collect()
    }

    /// Takes what the script has sent with `mcpLog` and `mcpNotify`, as a JSON text: `[{"type": "log", "level", "message",
    /// "metadata"} | {"type": "notify", "event", "payload"}]`; absent: nothing.
    pub fn take_messages_json(&mut self) -> Option<String> {
        if self.messages.is_empty() {
            return None;
        }
        let rows = std::mem::take(&mut self.messages).into_iter().map(|message| match message {
            Message::Log { level, message, metadata } => {
                let (level, message) = (Value::from(level), Value::from(message));
                let metadata = metadata.as_deref().unwrap_or("null");
                format!(r#"{{"type":"log","level":{level},"message":{message},"metadata":{metadata}}}"#)
            }
            Message::Notify { event, payload } => {
                format!(r#"{{"type":"notify","event":{},"payload":{payload}}}"#, Value::from(event))
            }
        });
        Some(format!("[{}]", rows.collect::<Vec<_>>().join(",")))
    }

    /// Answers a call with JSON text. An answer to a call that has one, or that is none, has no effect.
    pub fn settle(&mut self, id: u32, result: Result<String, ToolError>) {
        let id = CallId(id);
        self.record.end(id, result.is_ok(), self.clock.monotonic());
        self.events.push(Event::Settled { id, result });
    }

    /// Lets time pass until so many milliseconds after the beginning, in a run whose host has the time.
    pub fn reach(&mut self, ms: u64) {
        if let Some(clock) = &self.host_clock {
            clock.reach(ms);
            self.events.push(Event::Time(ms));
        }
    }

    /// What cancels it.
    #[must_use]
    pub fn cancel_flag(&self) -> CancelFlag {
        self.flag.clone()
    }

    /// In how many milliseconds it has to be resumed without an event: a timer is due, it has to end, or a call has an answer.
    #[must_use]
    pub fn time_left_ms(&self) -> f64 {
        if !self.events.is_empty() {
            return 0.0;
        }
        self.run.as_ref().map_or(0.0, |run| run.time_left().as_secs_f64() * 1000.0)
    }

    /// When the next timer is due, in milliseconds since the beginning.
    #[must_use]
    pub fn next_timer_ms(&self) -> Option<u64> {
        self.run.as_ref()?.next_timer().map(|due| due.as_millis() as u64)
    }

    /// Bytes that its values take, by its own meter.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.run.as_ref().map_or(0, agentscript::Run::memory_bytes)
    }

    /// The outcome of a run that has ended, as one line of JSON: `{"status", "result" | "error", "warnings"?, "logs"?,
    /// "stats"}`. An `error` has `calls`: what has already happened.
    #[must_use]
    pub fn outcome(&self) -> Option<String> {
        let outcome = self.outcome.as_deref()?;
        let members = match outcome.status() {
            Status::Ok => String::new(),
            Status::SyntaxError
            | Status::IllegalAccess
            | Status::RuntimeError
            | Status::ToolError
            | Status::Timeout => self.record.to_members(),
        };
        let mut text = outcome.to_json_with(&members);
        text.pop();
        if !outcome.unanswered.is_empty() {
            let rows: Vec<String> = outcome.unanswered.iter().map(unanswered).collect();
            text.push_str(&format!(",\"unanswered\":[{}]", rows.join(",")));
        }
        text.push_str(&format!(",\"stats\":{}}}", outcome.stats.to_json()));
        Some(text)
    }
}

fn unanswered(call: &Unanswered) -> String {
    let (tool, started, awaited) = (Value::from(call.tool.as_str()), call.started, call.awaited);
    format!(r#"{{"name":{tool},"started":{started},"awaited":{awaited}}}"#)
}

/// The name of a kind of calls, as hosts see it.
#[must_use]
pub fn kind(kind: CallKind) -> &'static str {
    match kind {
        CallKind::Tool => "tool",
        CallKind::Function => "function",
        CallKind::Fetch => "fetch",
    }
}

impl Record {
    fn begin(&mut self, call: &Call, now: Duration) {
        self.total += 1;
        if self.first.len() < MAX_LISTED {
            self.first.push(Made { id: call.id, tool: call.tool.clone(), began: now, ended: None });
        }
    }

    fn end(&mut self, id: CallId, is_ok: bool, now: Duration) {
        if let Some(made) = self.first.iter_mut().find(|made| made.id == id && made.ended.is_none()) {
            made.ended = Some((is_ok, now));
        }
    }

    /// The members of an error: names, status and duration of the first calls, and the number of further ones.
    fn to_members(&self) -> String {
        if self.first.is_empty() {
            return String::new();
        }
        let rows = self.first.iter().map(|made| match made.ended {
            Some((is_ok, at)) => {
                let ms = at.saturating_sub(made.began).as_millis() as u64;
                json!({"name": made.tool, "status": if is_ok { "ok" } else { "error" }, "durationMs": ms})
            }
            None => json!({"name": made.tool, "status": "cancelled"}),
        });
        let mut members = format!("\"calls\":{}", Value::Array(rows.collect()));
        let omitted = self.total - self.first.len();
        if omitted > 0 {
            members.push_str(&format!(",\"omittedCalls\":{omitted}"));
        }
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Script, Settings, Start, Time};
    use agentscript::SystemClock;

    fn start(source: &str) -> Run {
        let tools = r#"{"tools": [{"name": "double", "inputSchema": {"properties": {"n": {"type": "integer"}, "text":
            {"type": "string"}}, "required": ["n"]}}]}"#;
        let tools = Arc::new(Toolset::from_json(tools).expect("the tools are valid"));
        let script = Script::compile(source, Settings::default(), tools).expect("it compiles");
        let start = Start { context: None, seed: 1, clock: Arc::new(SystemClock), time: Time::Clock, slice: None };
        script.start(start).expect("it starts")
    }

    #[test]
    fn a_host_sees_no_call_whose_input_does_not_fit() {
        let mut run = start("try { await double({ n: 'x' }) } catch (error) { return error.code }");
        assert_eq!((run.resume(), run.take_calls().len(), run.time_left_ms()), (Progress::Yielded, 0, 0.0));
        assert_eq!(run.resume(), Progress::Done);
        assert!(run.outcome().is_some_and(|outcome| outcome.contains(r#""result":"INVALID_INPUT""#)));
    }

    #[test]
    fn calls_that_fit_are_handed_out_with_those_that_do_not() {
        let mut run = start(
            "const all = [1, 'x'].map((n) => double({ n })); \
            return (await Promise.allSettled(all)).map(({ value, reason }) => value ?? reason.code)",
        );
        assert_eq!(run.resume(), Progress::Waits);
        let calls = run.take_calls();
        assert_eq!((calls.len(), calls[0].input.as_str(), run.time_left_ms()), (1, r#"{"n":1}"#, 0.0));
        assert_eq!(run.resume(), Progress::Waits);
        assert!(run.time_left_ms() > 0.0);
        run.settle(calls[0].id.0, Ok("2".into()));
        assert_eq!(run.resume(), Progress::Done);
        assert!(run.outcome().is_some_and(|outcome| outcome.contains(r#""result":[2,"INVALID_INPUT"]"#)));
    }

    #[test]
    fn a_long_input_is_checked_by_the_next_resume_unless_the_run_is_cancelled() {
        let source = "await double({ n: 1, text: 'x'.repeat(100_000) })";
        let mut run = start(source);
        assert_eq!((run.resume(), run.take_calls().len()), (Progress::Yielded, 0));
        assert_eq!((run.resume(), run.take_calls().len()), (Progress::Waits, 1));
        let mut run = start(source);
        assert_eq!(run.resume(), Progress::Yielded);
        run.cancel_flag().set();
        assert_eq!((run.resume(), run.take_calls().len()), (Progress::Done, 0));
    }
}
