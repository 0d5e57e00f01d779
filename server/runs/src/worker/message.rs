//! What the server and a worker say to each other, and how it looks on the pipe: four bytes of length,
//! then the message in postcard's format, which keeps texts as they are.
//!
//! The types of the interpreter are written out again here, field by field: a field that is added there
//! does not compile here until it crosses too.

use crate::executor::StartInputs;
use agentscript::{
    Call, CallId, CallKind, Code, Diagnostic, Dialect, Event, Failure, Issue, LIMITS, Language, Limits, Location,
    Loops, Message, Outcome, Policy, Preset, Progress, Refusal, Span, Stats, Status, ToolError, Unanswered,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Both ends are of one program; this tells one that was replaced in between.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// From the server. A worker answers each `Begin` and `Resume` with one [`Answer`] that is no `Ask`.
#[derive(Debug, Serialize, Deserialize)]
pub enum Order {
    Begin(Box<Begin>),
    Resume(Vec<Happened>),
    /// The answer to an `Ask`.
    Told(Told),
    /// Answered with `OpenCalls`.
    OpenCalls,
}

/// From a worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// It can begin, and is confined so.
    Ready { version: String, walls: codecall_base::sandbox::Protections },
    /// The script wants to know something of the tools.
    Ask(Ask),
    /// The run has gone on.
    Went(Box<Went>),
    /// The calls without an answer, and whether the script awaits it.
    OpenCalls(Vec<(u32, bool)>),
    /// The script does not compile.
    Ended(Box<Ended>),
    /// The interpreter has panicked, and the worker ends.
    Crashed(String),
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Begin {
    pub script: String,
    /// Whether it is TypeScript; absent: found out.
    pub typescript: Option<bool>,
    pub waits_by_itself: bool,
    /// In the order of [`LIMITS`].
    pub limits: Vec<u64>,
    /// 0, 1, 2: none, bounded, all.
    pub loops: u8,
    pub allow_console: bool,
    pub disabled_builtins: Vec<String>,
    pub disabled_globals: Vec<String>,
    pub context: Option<String>,
    pub seed: u64,
    /// What `Date.now()` gives all the time; absent: the time.
    pub stands_still: Option<f64>,
    pub slice: Option<Duration>,
    pub events: Vec<Happened>,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum Happened {
    Settled { id: u32, result: Result<String, Failed> },
    Cancel,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Failed {
    message: String,
    code: String,
    details: Option<String>,
    fatal: bool,
}

/// The questions of [`agentscript::Tools`].
#[derive(Debug, Serialize, Deserialize)]
pub enum Ask {
    Describe(String),
    IsApp(String),
    Member(String, String),
    Function(String),
    Positional(String),
    Similar(String),
    IsReserved(String),
}

#[derive(Debug, Serialize, Deserialize)]
pub enum Told {
    Text(Option<String>),
    Is(bool),
    Names(Vec<String>),
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Went {
    pub progress: Far,
    pub said: Vec<Said>,
    /// What the run has in use.
    pub memory_bytes: u64,
    pub unanswered_calls: u64,
    pub time_left: Duration,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum Far {
    Calls(Vec<Made>),
    Yielded,
    Done(Box<Ended>),
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Made {
    id: u32,
    tool: String,
    input: String,
    timeout_ms: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum Said {
    Log { level: String, message: String, metadata: Option<String> },
    Notify { event: String, payload: String },
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Ended {
    result: Result<String, Wrong>,
    logs: Vec<String>,
    duration_ms: f64,
    script_ms: f64,
    steps: u64,
    iterations: u64,
    tool_calls: u64,
    peak_memory_bytes: u64,
    unanswered: Vec<Left>,
    deadlocked: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Left {
    id: u32,
    tool: String,
    input: String,
    started: bool,
    awaited: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Wrong {
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
    issues: Vec<Point>,
    tool_calls: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Point {
    code: u8,
    refusal: Option<u8>,
    message: String,
    span: (u32, u32),
    hint: Option<String>,
    location: (u32, u32),
}

/// A message as it goes over the pipe.
///
/// # Errors
/// It is longer than four bytes can say.
pub fn frame(message: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut frame = postcard::to_extend(message, vec![0; 4]).map_err(|error| error.to_string())?;
    let length = u32::try_from(frame.len() - 4).map_err(|_| "a message is too long".to_owned())?;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

/// What a frame holds, without its length.
///
/// # Errors
/// It is no such message.
pub fn read<T: DeserializeOwned>(frame: &[u8]) -> Result<T, String> {
    match postcard::take_from_bytes(frame) {
        Ok((message, [])) => Ok(message),
        Ok((_, _)) => Err("a message is longer than it says".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// What has a number on the pipe: its place in a list of all.
fn number<T: PartialEq + Copy>(all: &[T], one: T) -> u8 {
    all.iter().position(|other| *other == one).and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX)
}

fn numbered<T: Copy>(all: &[T], number: u8) -> Result<T, String> {
    all.get(usize::from(number)).copied().ok_or_else(|| "a number that is not known".into())
}

const LOOPS: [Loops; 3] = [Loops::None, Loops::Bounded, Loops::All];
const STATUSES: [Status; 6] =
    [Status::Ok, Status::SyntaxError, Status::IllegalAccess, Status::RuntimeError, Status::ToolError, Status::Timeout];
const REFUSALS: [Refusal; 4] =
    [Refusal::IllegalBuiltinAccess, Refusal::DisallowedGlobal, Refusal::DisallowedSyntax, Refusal::DisallowedProperty];
const CODES: [Code; 4] = [Code::SyntaxError, Code::ValidationError, Code::LoopNotAllowed, Code::ScriptTooLarge];

impl Begin {
    pub fn new(start: &StartInputs) -> Self {
        let StartInputs { script, language, dialect, policy, context, seed, fixed_unix_ms, slice, .. } = start;
        let Policy { limits, loops, allow_console, disabled_builtins, disabled_globals } = policy;
        Self {
            script: script.to_string(),
            typescript: language.map(|language| language == Language::TypeScript),
            waits_by_itself: *dialect == Dialect::Sync,
            limits: LIMITS.iter().map(|limit| limit.get(limits)).collect(),
            loops: number(&LOOPS, *loops),
            allow_console: *allow_console,
            disabled_builtins: disabled_builtins.clone(),
            disabled_globals: disabled_globals.clone(),
            context: context.clone(),
            seed: *seed,
            stands_still: *fixed_unix_ms,
            slice: Some(*slice),
            events: Vec::new(),
        }
    }

    pub fn language(&self) -> Option<Language> {
        self.typescript.map(|is| if is { Language::TypeScript } else { Language::JavaScript })
    }

    pub fn dialect(&self) -> Dialect {
        if self.waits_by_itself { Dialect::Sync } else { Dialect::Async }
    }

    pub fn policy(&self) -> Result<Policy, String> {
        let mut limits = Limits::preset(Preset::LockedDown);
        if self.limits.len() != LIMITS.len() {
            return Err("limits that are not known".into());
        }
        LIMITS.iter().zip(&self.limits).for_each(|(limit, value)| limit.set(&mut limits, *value));
        Ok(Policy {
            limits,
            loops: numbered(&LOOPS, self.loops)?,
            allow_console: self.allow_console,
            disabled_builtins: self.disabled_builtins.clone(),
            disabled_globals: self.disabled_globals.clone(),
        })
    }
}

impl From<Event> for Happened {
    fn from(event: Event) -> Self {
        match event {
            Event::Settled { id, result } => Self::Settled {
                id: id.0,
                result: result.map_err(|error| {
                    let ToolError { message, code, details, fatal } = error;
                    Failed { message, code, details, fatal }
                }),
            },
            Event::Cancel => Self::Cancel,
        }
    }
}

impl From<Happened> for Event {
    fn from(happened: Happened) -> Self {
        match happened {
            Happened::Settled { id, result } => Self::Settled {
                id: CallId(id),
                result: result.map_err(|failed| {
                    let Failed { message, code, details, fatal } = failed;
                    ToolError { message, code, details, fatal }
                }),
            },
            Happened::Cancel => Self::Cancel,
        }
    }
}

impl From<Message> for Said {
    fn from(message: Message) -> Self {
        match message {
            Message::Log { level, message, metadata } => Self::Log { level, message, metadata },
            Message::Notify { event, payload } => Self::Notify { event, payload },
        }
    }
}

impl From<Said> for Message {
    fn from(said: Said) -> Self {
        match said {
            Said::Log { level, message, metadata } => Self::Log { level, message, metadata },
            Said::Notify { event, payload } => Self::Notify { event, payload },
        }
    }
}

impl From<Progress> for Far {
    fn from(progress: Progress) -> Self {
        match progress {
            Progress::Calls(calls) => Self::Calls(
                calls
                    .into_iter()
                    .map(|Call { id, tool, input, timeout_ms, .. }| Made { id: id.0, tool, input, timeout_ms })
                    .collect(),
            ),
            Progress::Yielded => Self::Yielded,
            Progress::Done(outcome) => Self::Done(Box::new((*outcome).into())),
        }
    }
}

impl TryFrom<Far> for Progress {
    type Error = String;

    fn try_from(far: Far) -> Result<Self, String> {
        Ok(match far {
            Far::Calls(made) => Self::Calls(
                made.into_iter()
                    .map(|Made { id, tool, input, timeout_ms }| Call {
                        id: CallId(id),
                        kind: CallKind::Tool,
                        tool,
                        input,
                        timeout_ms,
                    })
                    .collect(),
            ),
            Far::Yielded => Self::Yielded,
            Far::Done(ended) => Self::Done(Box::new((*ended).try_into()?)),
        })
    }
}

impl From<Outcome> for Ended {
    fn from(outcome: Outcome) -> Self {
        let Outcome { result, logs, stats, unanswered, deadlocked } = outcome;
        let Stats { duration_ms, script_ms, steps, iterations, tool_calls, peak_memory_bytes } = stats;
        let left = |Unanswered { id, tool, input, started, awaited }| Left { id: id.0, tool, input, started, awaited };
        Self {
            result: result.map_err(|failure| (*failure).into()),
            logs,
            duration_ms,
            script_ms,
            steps,
            iterations,
            tool_calls,
            peak_memory_bytes,
            unanswered: unanswered.into_iter().map(left).collect(),
            deadlocked,
        }
    }
}

impl TryFrom<Ended> for Outcome {
    type Error = String;

    fn try_from(ended: Ended) -> Result<Self, String> {
        let Ended { result, logs, duration_ms, script_ms, steps, iterations, .. } = ended;
        let (tool_calls, peak_memory_bytes) = (ended.tool_calls, ended.peak_memory_bytes);
        let left =
            |Left { id, tool, input, started, awaited }| Unanswered { id: CallId(id), tool, input, started, awaited };
        Ok(Self {
            result: match result {
                Ok(result) => Ok(result),
                Err(wrong) => Err(Box::new(wrong.try_into()?)),
            },
            logs,
            stats: Stats { duration_ms, script_ms, steps, iterations, tool_calls, peak_memory_bytes },
            unanswered: ended.unanswered.into_iter().map(left).collect(),
            deadlocked: ended.deadlocked,
        })
    }
}

fn place(location: Location) -> (u32, u32) {
    (location.line, location.column)
}

fn location((line, column): (u32, u32)) -> Location {
    Location { line, column }
}

impl From<Failure> for Wrong {
    fn from(failure: Failure) -> Self {
        let Failure { status, code, message, refusal, name, hint, stack, .. } = failure;
        let point = |Issue { diagnostic, location }| {
            let Diagnostic { code, refusal, message, span, hint } = diagnostic;
            Point {
                code: number(&CODES, code),
                refusal: refusal.map(|refusal| number(&REFUSALS, refusal)),
                message: message.into_owned(),
                span: (span.start, span.end),
                hint: hint.map(Into::into),
                location: place(location),
            }
        };
        Self {
            status: number(&STATUSES, status),
            code,
            message,
            refusal: refusal.map(|refusal| number(&REFUSALS, refusal)),
            name,
            hint,
            stack,
            location: failure.location.map(place),
            tool_name: failure.tool_name,
            tool_input: failure.tool_input,
            details: failure.details,
            issues: failure.issues.into_iter().map(point).collect(),
            tool_calls: failure.tool_calls,
        }
    }
}

impl TryFrom<Wrong> for Failure {
    type Error = String;

    fn try_from(wrong: Wrong) -> Result<Self, String> {
        let refused = |refusal: Option<u8>| refusal.map(|refusal| numbered(&REFUSALS, refusal)).transpose();
        let issue = |point: Point| {
            let diagnostic = Diagnostic {
                code: numbered(&CODES, point.code)?,
                refusal: refused(point.refusal)?,
                message: point.message.into(),
                span: Span::new(point.span.0, point.span.1),
                hint: point.hint.map(Into::into),
            };
            Ok(Issue { diagnostic, location: location(point.location) })
        };
        Ok(Self {
            status: numbered(&STATUSES, wrong.status)?,
            code: wrong.code,
            message: wrong.message,
            refusal: refused(wrong.refusal)?,
            name: wrong.name,
            hint: wrong.hint,
            stack: wrong.stack,
            location: wrong.location.map(location),
            tool_name: wrong.tool_name,
            tool_input: wrong.tool_input,
            details: wrong.details,
            issues: wrong.issues.into_iter().map(issue).collect::<Result<_, String>>()?,
            tool_calls: wrong.tool_calls,
        })
    }
}
