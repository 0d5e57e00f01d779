//! The types of the interpreter as they are sent between the server and a worker.
//!
//! Each is written out again, field by field. A field that is added to the interpreter's type does not compile here
//! until it is sent too.

use agentscript::{
    Call, CallId, CallKind, Code, Diagnostic, Event, Failure, Issue, LIMITS, Limits, Location, Loops, Message, Outcome,
    Policy, Preset, Progress, Refusal, Span, Stats, Status, ToolError, Unanswered,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
pub struct WirePolicy {
    /// In the order of [`LIMITS`].
    limits: Vec<u64>,
    loops: u8,
    allow_console: bool,
    timers: bool,
    fetch: bool,
    disabled_builtins: Vec<String>,
    disabled_globals: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum WireEvent {
    Settled { id: u32, result: Result<String, WireToolError> },
    Time(u64),
    Cancel,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct WireToolError {
    message: String,
    code: String,
    details: Option<String>,
    fatal: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum WireProgress {
    Calls(Vec<WireCall>),
    Yielded,
    Done(Box<WireOutcome>),
}

#[derive(Debug, Serialize, Deserialize)]
pub struct WireCall {
    id: u32,
    kind: u8,
    tool: String,
    input: String,
    timeout_ms: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum WireMessage {
    Log { level: String, message: String, metadata: Option<String> },
    Notify { event: String, payload: String },
}

#[derive(Debug, Serialize, Deserialize)]
pub struct WireOutcome {
    result: Result<String, WireFailure>,
    warnings: Vec<String>,
    is_undefined: bool,
    logs: Vec<String>,
    stats: WireStats,
    unanswered: Vec<WireUnanswered>,
    deadlocked: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct WireStats {
    duration_ms: f64,
    script_ms: f64,
    steps: u64,
    iterations: u64,
    tool_calls: u64,
    peak_memory_bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct WireUnanswered {
    id: u32,
    tool: String,
    input: String,
    started: bool,
    awaited: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct WireFailure {
    status: u8,
    code: String,
    message: String,
    refusal: Option<u8>,
    name: Option<String>,
    hint: Option<String>,
    stack: Option<String>,
    location: Option<(u32, u32)>,
    tool_name: Option<String>,
    tool_input: Option<String>,
    details: Option<String>,
    issues: Vec<WireIssue>,
    unhandled: bool,
    tool_calls: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct WireIssue {
    code: u8,
    refusal: Option<u8>,
    message: String,
    span: (u32, u32),
    hint: Option<String>,
    location: (u32, u32),
}

const KINDS: [CallKind; 3] = [CallKind::Tool, CallKind::Function, CallKind::Fetch];
const LOOPS: [Loops; 3] = [Loops::None, Loops::Bounded, Loops::All];
const STATUSES: [Status; 6] =
    [Status::Ok, Status::SyntaxError, Status::IllegalAccess, Status::RuntimeError, Status::ToolError, Status::Timeout];
const REFUSALS: [Refusal; 4] =
    [Refusal::IllegalBuiltinAccess, Refusal::DisallowedGlobal, Refusal::DisallowedSyntax, Refusal::DisallowedProperty];
const CODES: [Code; 5] =
    [Code::SyntaxError, Code::ValidationError, Code::LoopNotAllowed, Code::ScriptTooLarge, Code::SelfReferenceBlocked];

/// Returns the index of a variant in the list of all variants.
fn encode_variant<T: PartialEq + Copy>(all: &[T], variant: T) -> u8 {
    all.iter().position(|other| *other == variant).and_then(|index| u8::try_from(index).ok()).unwrap_or(u8::MAX)
}

fn decode_variant<T: Copy>(all: &[T], index: u8) -> Result<T, String> {
    all.get(usize::from(index)).copied().ok_or_else(|| format!("there is no variant {index}"))
}

fn encode_refusal(refusal: Option<Refusal>) -> Option<u8> {
    refusal.map(|refusal| encode_variant(&REFUSALS, refusal))
}

fn decode_refusal(refusal: Option<u8>) -> Result<Option<Refusal>, String> {
    refusal.map(|refusal| decode_variant(&REFUSALS, refusal)).transpose()
}

fn encode_location(Location { line, column }: Location) -> (u32, u32) {
    (line, column)
}

fn decode_location((line, column): (u32, u32)) -> Location {
    Location { line, column }
}

impl From<&Policy> for WirePolicy {
    fn from(policy: &Policy) -> Self {
        let Policy { limits, loops, allow_console, timers, fetch, disabled_builtins, disabled_globals } = policy;
        Self {
            limits: LIMITS.iter().map(|limit| limit.get(limits)).collect(),
            loops: encode_variant(&LOOPS, *loops),
            allow_console: *allow_console,
            timers: *timers,
            fetch: *fetch,
            disabled_builtins: disabled_builtins.clone(),
            disabled_globals: disabled_globals.clone(),
        }
    }
}

impl TryFrom<WirePolicy> for Policy {
    type Error = String;

    fn try_from(policy: WirePolicy) -> Result<Self, String> {
        let WirePolicy { limits: values, loops, allow_console, timers, fetch, disabled_builtins, disabled_globals } =
            policy;
        if values.len() != LIMITS.len() {
            return Err(format!("{} limits instead of {}", values.len(), LIMITS.len()));
        }
        let mut limits = Limits::preset(Preset::LockedDown);
        LIMITS.iter().zip(values).for_each(|(limit, value)| limit.set(&mut limits, value));
        let loops = decode_variant(&LOOPS, loops)?;
        Ok(Self { limits, loops, allow_console, timers, fetch, disabled_builtins, disabled_globals })
    }
}

impl From<Event> for WireEvent {
    fn from(event: Event) -> Self {
        let encode_error =
            |ToolError { message, code, details, fatal }| WireToolError { message, code, details, fatal };
        match event {
            Event::Settled { id: CallId(id), result } => Self::Settled { id, result: result.map_err(encode_error) },
            Event::Time(ms) => Self::Time(ms),
            Event::Cancel => Self::Cancel,
        }
    }
}

impl From<WireEvent> for Event {
    fn from(event: WireEvent) -> Self {
        let decode_error =
            |WireToolError { message, code, details, fatal }| ToolError { message, code, details, fatal };
        match event {
            WireEvent::Settled { id, result } => Self::Settled { id: CallId(id), result: result.map_err(decode_error) },
            WireEvent::Time(ms) => Self::Time(ms),
            WireEvent::Cancel => Self::Cancel,
        }
    }
}

impl From<Message> for WireMessage {
    fn from(message: Message) -> Self {
        match message {
            Message::Log { level, message, metadata } => Self::Log { level, message, metadata },
            Message::Notify { event, payload } => Self::Notify { event, payload },
        }
    }
}

impl From<WireMessage> for Message {
    fn from(message: WireMessage) -> Self {
        match message {
            WireMessage::Log { level, message, metadata } => Self::Log { level, message, metadata },
            WireMessage::Notify { event, payload } => Self::Notify { event, payload },
        }
    }
}

impl From<Call> for WireCall {
    fn from(Call { id: CallId(id), kind, tool, input, timeout_ms }: Call) -> Self {
        Self { id, kind: encode_variant(&KINDS, kind), tool, input, timeout_ms }
    }
}

impl TryFrom<WireCall> for Call {
    type Error = String;

    fn try_from(WireCall { id, kind, tool, input, timeout_ms }: WireCall) -> Result<Self, String> {
        Ok(Self { id: CallId(id), kind: decode_variant(&KINDS, kind)?, tool, input, timeout_ms })
    }
}

impl From<Progress> for WireProgress {
    fn from(progress: Progress) -> Self {
        match progress {
            Progress::Calls(calls) => Self::Calls(calls.into_iter().map(Into::into).collect()),
            Progress::Yielded => Self::Yielded,
            Progress::Done(outcome) => Self::Done(Box::new((*outcome).into())),
        }
    }
}

impl TryFrom<WireProgress> for Progress {
    type Error = String;

    fn try_from(progress: WireProgress) -> Result<Self, String> {
        Ok(match progress {
            WireProgress::Calls(calls) => {
                Self::Calls(calls.into_iter().map(TryInto::try_into).collect::<Result<_, String>>()?)
            }
            WireProgress::Yielded => Self::Yielded,
            WireProgress::Done(outcome) => Self::Done(Box::new((*outcome).try_into()?)),
        })
    }
}

impl From<Outcome> for WireOutcome {
    fn from(outcome: Outcome) -> Self {
        let Outcome { result, warnings, is_undefined, logs, stats, unanswered, deadlocked } = outcome;
        Self {
            result: result.map_err(|failure| (*failure).into()),
            warnings,
            is_undefined,
            logs,
            stats: stats.into(),
            unanswered: unanswered.into_iter().map(Into::into).collect(),
            deadlocked,
        }
    }
}

impl TryFrom<WireOutcome> for Outcome {
    type Error = String;

    fn try_from(outcome: WireOutcome) -> Result<Self, String> {
        let WireOutcome { result, warnings, is_undefined, logs, stats, unanswered, deadlocked } = outcome;
        let result = match result {
            Ok(result) => Ok(result),
            Err(failure) => Err(Box::new(failure.try_into()?)),
        };
        let unanswered = unanswered.into_iter().map(Into::into).collect();
        Ok(Self { result, warnings, is_undefined, logs, stats: stats.into(), unanswered, deadlocked })
    }
}

impl From<Stats> for WireStats {
    fn from(stats: Stats) -> Self {
        let Stats { duration_ms, script_ms, steps, iterations, tool_calls, peak_memory_bytes } = stats;
        Self { duration_ms, script_ms, steps, iterations, tool_calls, peak_memory_bytes }
    }
}

impl From<WireStats> for Stats {
    fn from(stats: WireStats) -> Self {
        let WireStats { duration_ms, script_ms, steps, iterations, tool_calls, peak_memory_bytes } = stats;
        Self { duration_ms, script_ms, steps, iterations, tool_calls, peak_memory_bytes }
    }
}

impl From<Unanswered> for WireUnanswered {
    fn from(Unanswered { id: CallId(id), tool, input, started, awaited }: Unanswered) -> Self {
        Self { id, tool, input, started, awaited }
    }
}

impl From<WireUnanswered> for Unanswered {
    fn from(WireUnanswered { id, tool, input, started, awaited }: WireUnanswered) -> Self {
        Self { id: CallId(id), tool, input, started, awaited }
    }
}

impl From<Failure> for WireFailure {
    fn from(failure: Failure) -> Self {
        let Failure { status, code, message, refusal, name, hint, stack, location, .. } = failure;
        let Failure { tool_name, tool_input, details, issues, unhandled, tool_calls, .. } = failure;
        Self {
            status: encode_variant(&STATUSES, status),
            code,
            message,
            refusal: encode_refusal(refusal),
            name,
            hint,
            stack,
            location: location.map(encode_location),
            tool_name,
            tool_input,
            details,
            issues: issues.into_iter().map(Into::into).collect(),
            unhandled,
            tool_calls,
        }
    }
}

impl TryFrom<WireFailure> for Failure {
    type Error = String;

    fn try_from(failure: WireFailure) -> Result<Self, String> {
        Ok(Self {
            status: decode_variant(&STATUSES, failure.status)?,
            code: failure.code,
            message: failure.message,
            refusal: decode_refusal(failure.refusal)?,
            name: failure.name,
            hint: failure.hint,
            stack: failure.stack,
            location: failure.location.map(decode_location),
            tool_name: failure.tool_name,
            tool_input: failure.tool_input,
            details: failure.details,
            issues: failure.issues.into_iter().map(TryInto::try_into).collect::<Result<_, String>>()?,
            unhandled: failure.unhandled,
            tool_calls: failure.tool_calls,
        })
    }
}

impl From<Issue> for WireIssue {
    fn from(Issue { diagnostic, location }: Issue) -> Self {
        let Diagnostic { code, refusal, message, span, hint } = diagnostic;
        Self {
            code: encode_variant(&CODES, code),
            refusal: encode_refusal(refusal),
            message: message.into_owned(),
            span: (span.start, span.end),
            hint: hint.map(Into::into),
            location: encode_location(location),
        }
    }
}

impl TryFrom<WireIssue> for Issue {
    type Error = String;

    fn try_from(issue: WireIssue) -> Result<Self, String> {
        let WireIssue { code, refusal, message, span: (start, end), hint, location } = issue;
        let diagnostic = Diagnostic {
            code: decode_variant(&CODES, code)?,
            refusal: decode_refusal(refusal)?,
            message: message.into(),
            span: Span::new(start, end),
            hint: hint.map(Into::into),
        };
        Ok(Self { diagnostic, location: decode_location(location) })
    }
}
