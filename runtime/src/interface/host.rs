//! The boundary between a run and its host: what goes in, what comes out.
//!
//! All data crosses as JSON text. A run never blocks. It calls the host only for the clock, the directory of tools and
//! functions of a [`Linker`](crate::Linker), which answer at once.

use crate::interface::error_code::ErrorCode;
use crate::interface::outcome::Outcome;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};
use std::sync::Arc;
use std::time::Duration;

/// The name of the function `fetch` and of its calls.
pub(crate) const FETCH: &str = "fetch";

/// What a run is given when it starts.
#[derive(Clone)]
pub struct Inputs {
    /// JSON text of the object that the script sees as `codecallContext`; absent: `{}`.
    pub context: Option<String>,
    /// The tools a script can ask about.
    pub tools: Arc<dyn Tools>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Seed of `Math.random` and `crypto.randomUUID`: the same seed gives the same numbers.
    pub seed: u64,
    /// How long one call of [`Run::resume`](crate::Run::resume) may take before it returns [`Progress::Yielded`];
    /// absent: only the limits of the policy hold.
    pub slice: Option<Duration>,
}

#[cfg(not(target_arch = "wasm32"))]
impl Default for Inputs {
    /// No context, no tools that can be asked about, the clock of the operating system, seed 0, no
    /// slices.
    fn default() -> Self {
        Self { context: None, tools: Arc::new(NoTools), clock: Arc::new(SystemClock), seed: 0, slice: None }
    }
}

/// What a script can find out about tools. Whether a call is allowed is for the host to decide when
/// it gets the [`Call`].
pub trait Tools: Send + Sync {
    /// What `getTool(name)` gives, as JSON text of an object; absent: there is no such tool.
    fn describe(&self, name: &str) -> Option<String>;
    /// Whether there is an app of that name, so that a free name of the script can be its namespace.
    fn is_app(&self, app: &str) -> bool;
    /// The full name of a tool by its app and its own name: `users.list` is `users:list`.
    fn member(&self, app: &str, tool: &str) -> Option<String>;
    /// The full name of a tool that is a function by itself: `webSearch` may be `web_search`. An undeclared name of
    /// the script that is no app is looked up here. Default: no tool is.
    fn function(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }
    /// The property that a single plain argument sets when a tool is called as a function: `webSearch('news')` for
    /// `webSearch({query: 'news'})`. Absent, the default: it is an error.
    fn positional(&self, tool: &str) -> Option<String> {
        let _ = tool;
        None
    }
    /// Names of tools near to `name`, for error messages; the nearest first, at most three.
    fn similar(&self, name: &str) -> Vec<String>;
    /// The app, or the function of a tool, whose name is nearest to an undeclared name, for error messages. Default: none is.
    fn similar_app(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }
    /// The apps of the host's own tools, which a script must not call under any spelling of their names. Default: none.
    fn reserved_apps(&self) -> Vec<String> {
        Vec::new()
    }
    /// Whether `name` is one of those tools.
    fn is_reserved(&self, name: &str) -> bool {
        self.reserved_apps().iter().any(|app| is_tool_of(app, name))
    }
}

/// Whether a name is that of a tool of an app, in any spelling: `app:tool`, `app.tool`, `app_tool`, `App/tool`.
#[must_use]
pub fn is_tool_of(app: &str, name: &str) -> bool {
    let name = name.trim_start();
    name.get(..app.len()).is_some_and(|start| start.eq_ignore_ascii_case(app))
        && name[app.len()..].starts_with([':', '.', '_', '/'])
}

/// No tools at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTools;

impl Tools for NoTools {
    fn describe(&self, _name: &str) -> Option<String> {
        None
    }

    fn is_app(&self, _app: &str) -> bool {
        false
    }

    fn member(&self, _app: &str, _tool: &str) -> Option<String> {
        None
    }

    fn similar(&self, _name: &str) -> Vec<String> {
        Vec::new()
    }
}

/// The time, as the host sees it.
pub trait Clock: Send + Sync {
    /// Time since some fixed point; never goes back. Limits are measured with it.
    fn monotonic(&self) -> Duration;
    /// Milliseconds since 1970-01-01 UTC: `Date.now()`. Where time does not flow by itself, this is the time at the
    /// beginning of the run.
    fn unix_ms(&self) -> f64;
    /// How time passes for the script. Default: [`TimeFlow::Real`].
    fn flow(&self) -> TimeFlow {
        TimeFlow::Real
    }
}

/// How time passes for a script: what `Date.now()` gives, and when its timers fire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimeFlow {
    /// By the clock. A timer fires when the run is resumed at [`Run::deadline`](crate::Run::deadline) or later.
    #[default]
    Real,
    /// Time stands still, and jumps to the next timer when the script waits for nothing else.
    Virtual,
    /// Time stands still between [`Event::Time`]s. The host sends one no earlier than
    /// [`Run::next_timer`](crate::Run::next_timer).
    Events,
}

/// The clock of the operating system.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[cfg(not(target_arch = "wasm32"))]
impl Clock for SystemClock {
    fn monotonic(&self) -> Duration {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        START.get_or_init(std::time::Instant::now).elapsed()
    }

    fn unix_ms(&self) -> f64 {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0.0, |elapsed| elapsed.as_millis() as f64)
    }
}

/// A clock that stands still, but for timers, whose time is virtual: for replay and tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedClock {
    /// Milliseconds since 1970-01-01 UTC.
    pub unix_ms: f64,
}

impl Clock for FixedClock {
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn unix_ms(&self) -> f64 {
        self.unix_ms
    }

    fn flow(&self) -> TimeFlow {
        TimeFlow::Virtual
    }
}

/// Number of a call in its run: 0, 1, 2, …
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallId(pub u32);

/// What a [`Call`] calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CallKind {
    /// A tool, called by `callTool`, `call_tool` or as a function.
    #[default]
    Tool,
    /// A function that an embedder has added with [`Linker::func_async`](crate::Linker::func_async).
    Function,
    /// `fetch`, where the [`Policy`](crate::Policy) gives it.
    ///
    /// The input is `{url, method, headers: [[name, value]], body?, bodyBase64?, redirect}`, in which the URL is absolute and of
    /// HTTP, and a body that is not UTF-8 is in base64. The answer is `{status, statusText, url, redirected, headers: [[name,
    /// value]], body?, bodyBase64?}`. A failure is a `TypeError: fetch failed` with the failure as its `cause`.
    Fetch,
}

/// A call that a run waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Its number.
    pub id: CallId,
    /// What is called.
    pub kind: CallKind,
    /// The tool, as the script names it, or the function; `fetch` for [`CallKind::Fetch`].
    pub tool: String,
    /// The input: JSON text of an object for a tool or `fetch`, of an array of the arguments for a function.
    pub input: String,
    /// How long the host may take: the policy's limit or the smaller one of the call's options.
    pub timeout_ms: u64,
}

/// A call without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCall {
    /// Its number.
    pub id: CallId,
    /// Whether the run waits for the answer before it ends. It does not where the call has lost a `race`, an `any` or a
    /// rejected `all`.
    pub awaited: bool,
}

/// An event from the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    /// A call has ended. The result is JSON text; invalid JSON fails the call. Large parts under names that the
    /// script does not mention are parsed, and charged for, on first access.
    Settled {
        /// Which call.
        id: CallId,
        /// How it ended.
        result: Result<String, ToolError>,
    },
    /// So much time has passed since the run began, in milliseconds; timers that are due by then fire. Only where time
    /// flows by [`TimeFlow::Events`]; else it has no effect.
    Time(u64),
    /// The run is cancelled: it ends with `EXECUTION_ABORTED`.
    Cancel,
}

/// The failure of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolError {
    /// For the script and the model.
    pub message: String,
    /// `TOOL_NOT_FOUND`, `ACCESS_DENIED`, `TOOL_TIMEOUT`, `TOOL_EXECUTION_ERROR` or the tool's own.
    pub code: String,
    /// Further data, as JSON text.
    #[serde(default)]
    pub details: Option<String>,
    /// Whether it ends the run; the script cannot catch it.
    #[serde(default)]
    pub fatal: bool,
}

impl Serialize for ToolError {
    /// Leaves out what is the default in formats that name their fields. The others need every field.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { message, code, details, fatal } = self;
        let is_named = serializer.is_human_readable();
        let (has_details, has_fatal) = (!is_named || details.is_some(), !is_named || *fatal);
        let fields = 2 + usize::from(has_details) + usize::from(has_fatal);
        let mut error = serializer.serialize_struct("ToolError", fields)?;
        error.serialize_field("message", message)?;
        error.serialize_field("code", code)?;
        if has_details {
            error.serialize_field("details", details)?;
        }
        if has_fatal {
            error.serialize_field("fatal", fatal)?;
        }
        error.end()
    }
}

impl ToolError {
    /// A failure that a script can catch.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { message: message.into(), code: code.into(), details: None, fatal: false }
    }

    /// The call took longer than it may.
    #[must_use]
    pub fn timeout(tool: &str, timeout_ms: u64) -> Self {
        Self::new(ErrorCode::ToolTimeout, format!("Tool '{tool}' timed out after {timeout_ms}ms"))
    }
}

/// A message of the script to the client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// `mcpLog(level, message, metadata)`
    Log {
        /// `debug`, `info`, `warn`, `error`, …
        level: String,
        /// The text.
        message: String,
        /// JSON text of an object.
        metadata: Option<String>,
    },
    /// `mcpNotify(event, payload)`
    Notify {
        /// Name of the event.
        event: String,
        /// JSON text.
        payload: String,
    },
}

/// A run that can be resumed, wherever it is evaluated: a [`Run`](crate::Run), or what stands for one in another process.
pub trait Resumable {
    /// Goes on until nothing can go on without an event, or the slice is used up.
    fn resume(&mut self, events: Vec<Event>) -> Progress;

    /// Takes the messages that the script has sent since the last call.
    fn take_messages(&mut self) -> Vec<Message>;

    /// The calls without an answer, in order; queued ones included.
    fn open_calls(&mut self) -> Vec<OpenCall>;

    /// When the next timer is due: see [`Run::next_timer`](crate::Run::next_timer).
    fn next_timer(&self) -> Option<Duration>;

    /// Takes the calls that the script has cancelled since the last call.
    fn take_cancelled(&mut self) -> Vec<CallId>;
}

/// How far a run has come.
#[derive(Debug, Serialize, Deserialize)]
pub enum Progress {
    /// It waits for calls; these are new. Empty: it still waits for earlier ones, or for a timer.
    Calls(Vec<Call>),
    /// Its slice is used up: resume it later.
    Yielded,
    /// It has ended.
    Done(Box<Outcome>),
}
