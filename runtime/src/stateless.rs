//! Runs without a server that remembers them: a run is a function of its script and its journal.
//!
//! [`step`] plays a script from its beginning against a [`Journal`] of the events so far. It goes on as far as it can
//! without a new answer. The calls it then waits for come out together. The owner of the tools answers
//! them, in any order and not all at once. It notes the answers in the journal and steps again, in the same process or
//! in another. Calls that have no answer yet are pending promises, so
//! `try`, `finally`, `allSettled`, `any` and `race` mean what they always mean.
//!
//! The journal is kept in **rounds**: the calls of a step, and the answers before the next one, in their order. Playing
//! checks every call of a round against the journal, by its tool and by
//! its input in canonical form. Whatever differs is a [`Divergence`], never a wrong result.
//! Nothing differs by itself. Random numbers come from the id of the journal, and time begins when the journal does.
//! Time is virtual: it stands still, and jumps to the next timer when the script waits for no call.
//!
//! ```
//! use agentscript::stateless::{ClientTools, Journal, Step, StepOptions, step};
//! use agentscript::NoTools;
//! use std::sync::Arc;
//!
//! let script = "const [a, b] = await Promise.all([callTool('n', { n: 1 }), callTool('n', { n: 2 })]); return a + b";
//! let (tools, options) = (Arc::new(NoTools), StepOptions::default());
//! let mut journal = Journal::new("code_1", 1_700_000_000_000, script, &options);
//! let outcome = loop {
//!     match step(script, tools.clone(), &journal, &options) {
//!         Step::Calls(calls) => {
//!             journal = calls.journal;
//!             for call in calls.new {
//!                 journal.answer(call.number, Ok("21".into())).expect("the call waits");
//!             }
//!         }
//!         Step::Done(done) => break done.outcome,
//!         Step::Diverged(divergence) => panic!("{divergence}"),
//!         Step::Deadlock(failure) => panic!("{}", failure.message),
//!     }
//! };
//! assert_eq!(outcome.to_json(), r#"{"status":"ok","result":42}"#);
//! ```

mod canonical;
mod functions;
mod journal;
mod replay;
mod stepper;
mod token;

pub use canonical::canonical;
pub use functions::{FunctionNames, NameClash, function_name};
pub use journal::{Answer, AnswerError, Journal, JournalCall, Round};
pub use replay::Replay;
pub use token::TokenError;

use crate::cache::ScriptCache;
use crate::interface::error_code::{ErrorCode, Origin};
use crate::interface::host::{CallKind, Clock, Inputs, Message, NoTools, Resumable, ToolError, Tools};
use crate::interface::limits::Policy;
use crate::interface::outcome::{Failure, Outcome, Status};
use crate::linker::Linker;
use crate::script::{CompileOptions, compile};
use agentscript_lang::Language;
use std::fmt;
use std::sync::Arc;
use stepper::{Advance, Stepper};

/// Most rounds of a run by default.
const MAX_ROUNDS: usize = 1_000;
/// Longest journal by default: the inputs and answers of all calls, in bytes.
const MAX_JOURNAL_BYTES: usize = 8 << 20;

/// The tools of a client: what a script can find out about them, and which calls never reach it.
pub trait ClientTools: Send + Sync {
    /// What a script can find out about them.
    fn directory(self: Arc<Self>) -> Arc<dyn Tools>;

    /// Check a call before it is given to the client.
    ///
    /// # Errors
    /// The tool does not exist, or the input, JSON text of an object, does not fit its schema. The call
    /// is then a rejection in the script, at once; it is not in the journal, as it is the same
    /// every time.
    fn check(&self, tool: &str, input: &str) -> Result<(), ToolError> {
        let _ = (tool, input);
        Ok(())
    }
}

impl ClientTools for NoTools {
    fn directory(self: Arc<Self>) -> Arc<dyn Tools> {
        self
    }
}

/// What a step depends on beside the script, the tools and the journal.
#[derive(Clone)]
pub struct StepOptions<'a> {
    /// Limits and permissions. Steps, iterations, tool calls and bytes are counted from the beginning of
    /// the script in every step; time is the time of one step.
    pub policy: Policy,
    /// Absent: JavaScript first, and TypeScript where the text is not JavaScript.
    pub language: Option<Language>,
    /// The functions of the host. Calls of those that the client answers are calls of a step; all others must be
    /// deterministic.
    pub linker: Linker,
    /// JSON text of the object that the script sees as `codecallContext`; absent: `{}`.
    pub context: Option<String>,
    /// How many rounds a run may take: 1,000 by default.
    pub max_rounds: usize,
    /// How long the inputs and answers in a journal may be together, in bytes: 8 MiB by default.
    pub max_journal_bytes: usize,
    /// Where compiled scripts are kept between steps; absent: each step compiles.
    pub cache: Option<&'a ScriptCache>,
    /// Measures the limits of time. What the script sees as the time is the journal's.
    pub clock: Arc<dyn Clock>,
}

impl StepOptions<'_> {
    /// The defaults, with a clock that measures the limits of time.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self {
            policy: Policy::default(),
            language: None,
            linker: Linker::default(),
            context: None,
            max_rounds: MAX_ROUNDS,
            max_journal_bytes: MAX_JOURNAL_BYTES,
            cache: None,
            clock,
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Default for StepOptions<'_> {
    fn default() -> Self {
        Self::with_clock(Arc::new(crate::interface::host::SystemClock))
    }
}

/// How far a script comes with its journal.
#[derive(Debug)]
pub enum Step {
    /// It waits for tools of the client.
    Calls(Box<Calls>),
    /// It has ended.
    Done(Box<Done>),
    /// The journal is not one of this script: it cannot be used.
    Diverged(Divergence),
    /// It waits, but for nothing that an answer could settle.
    Deadlock(Box<Failure>),
}

/// A script that waits for tools of the client.
#[derive(Debug)]
pub struct Calls {
    /// The calls that are new, in the order the script made them. Empty where it waits for earlier ones.
    pub new: Vec<StepCall>,
    /// Numbers of all calls without an answer, the new ones too, ascending.
    pub waiting: Vec<u32>,
    /// Those among them that have lost a `race`, an `any` or a rejected `all`: the run ends without their answers. They
    /// may be answered, or not at all.
    pub abandoned: Vec<u32>,
    /// The journal with this round, ready for its answers.
    pub journal: Journal,
    /// What the script has said since the last round.
    pub messages: Vec<Message>,
}

/// A call for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepCall {
    /// Its number among the calls of its run that reach the client: 0, 1, 2, … The same in every step.
    pub number: u32,
    /// What is called.
    pub kind: CallKind,
    /// The tool, as the script names it, or the function.
    pub tool: String,
    /// The input: JSON text of an object for a tool, of an array of the arguments for a function.
    pub input: String,
    /// How long the client should let it take.
    pub timeout_ms: u64,
}

/// A script that has ended.
#[derive(Debug)]
pub struct Done {
    /// How.
    pub outcome: Outcome,
    /// Numbers of calls that were given to the client and whose answers did not come, ascending.
    pub abandoned: Vec<u32>,
    /// How many calls were made after the last answer that nobody will be asked to answer, as the script ended without
    /// them: they had lost, or it failed; at most 100 are counted.
    pub dropped: u32,
    /// What the script has said since the last round.
    pub messages: Vec<Message>,
}

/// Where a journal and its script part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Number of the round, from 0; absent where the script itself is another one.
    pub round: Option<usize>,
    /// Number of the call; absent where it is not about one call.
    pub call: Option<u32>,
    /// What differs, for people.
    pub message: String,
}

impl Divergence {
    /// The code that clients see.
    pub const CODE: ErrorCode = ErrorCode::ReplayMismatch;

    /// The same as a failed run.
    #[must_use]
    pub fn failure(&self) -> Failure {
        Failure::from_code(Self::CODE, self.to_string())
    }
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The journal does not belong to this run: {}", self.message)
    }
}

/// A round of a journal, as the script has played it.
#[derive(Clone, Debug)]
pub struct Played {
    /// Its number, from 0.
    pub round: usize,
    /// The calls that the script makes in it; where it diverges, these are not those of the journal.
    pub calls: Vec<StepCall>,
    /// What the script has said before them.
    pub messages: Vec<Message>,
}

/// Play a script against its journal, and on from there as far as it goes without a new answer.
///
/// The same arguments always give the same step. Where the script does
/// not compile, is over one of its limits, or takes more rounds or bytes than the options allow, the
/// step is [`Step::Done`] with a failed outcome (`MAX_ROUNDS_EXCEEDED`, `JOURNAL_TOO_LARGE` for the
/// latter).
#[must_use]
pub fn step(script: &str, tools: Arc<dyn ClientTools>, journal: &Journal, options: &StepOptions<'_>) -> Step {
    replay(script, tools, journal, options, None)
}

/// The same, telling `watch` of every round of the journal that is played, before it is compared.
#[must_use]
pub fn replay(
    script: &str,
    tools: Arc<dyn ClientTools>,
    journal: &Journal,
    options: &StepOptions<'_>,
    watch: Option<&mut dyn FnMut(Played)>,
) -> Step {
    let start = |inputs: Inputs| {
        let compile_options = CompileOptions {
            language: options.language,
            linker: options.linker.clone(),
            ..CompileOptions::for_policy(&options.policy)
        };
        let compile_options = compile_options.with_tools(&*inputs.tools);
        let compiled = match options.cache {
            Some(cache) => cache.compile(script, &compile_options),
            None => compile(script, &compile_options),
        };
        match compiled {
            Ok(script) => Ok(Box::new(script.start(inputs, &options.policy)) as Box<dyn Resumable>),
            Err(error) => Err(Box::new(Outcome::not_compiled(error.failure))),
        }
    };
    replay_with(&start, script, tools, journal, options, watch)
}

/// Starts the run that is replayed, here or elsewhere. The outcome is that of a script that does not compile.
pub type StartRun<'a> = dyn Fn(Inputs) -> Result<Box<dyn Resumable>, Box<Outcome>> + 'a;

/// The same with a run that `start` starts, under the policy of the options. It compiles the script.
#[must_use]
pub fn replay_with(
    start: &StartRun<'_>,
    script: &str,
    tools: Arc<dyn ClientTools>,
    journal: &Journal,
    options: &StepOptions<'_>,
    mut watch: Option<&mut dyn FnMut(Played)>,
) -> Step {
    if !journal.matches(script, options) {
        let message = "the script, its language or its context is not the one that the journal was begun with".into();
        return Step::Diverged(Divergence { round: None, call: None, message });
    }
    if let Some(over) = over(journal, options) {
        return over;
    }
    let mut run = match Stepper::begin(start, tools, journal, options) {
        Ok(run) => run,
        Err(outcome) => return ended(*outcome),
    };
    let mut events = Vec::new();
    for number in 0..journal.rounds.len() {
        let made = match run.advance(events) {
            Advance::Waits(calls) => calls,
            // Limits may be lower than in the steps before, or the machine slower: the journal is right still.
            Advance::Ended(outcome) if is_over(&outcome) => return Step::Done(Box::new(run.finish(*outcome))),
            Advance::Ended(_) => return Step::Diverged(run.ended_early()),
        };
        if let Some(watch) = &mut watch {
            watch(run.played(number, &made));
        }
        events = match run.enter(&made) {
            Ok(events) => events,
            Err(divergence) => return Step::Diverged(divergence),
        };
    }
    run.end_journal();
    match run.advance(events) {
        Advance::Waits(calls) => match run.issue(calls, journal) {
            Ok(calls) => over(&calls.journal, options).unwrap_or_else(|| Step::Calls(Box::new(calls))),
            Err(divergence) => Step::Diverged(divergence),
        },
        Advance::Ended(outcome) => match outcome.result {
            Err(failure) if outcome.deadlocked => Step::Deadlock(failure),
            Ok(_) | Err(_) => Step::Done(Box::new(run.finish(*outcome))),
        },
    }
}

/// Whether a run ended at a limit before its end; one whose result is too long has reached its end.
fn is_over(outcome: &Outcome) -> bool {
    outcome.result.as_ref().is_err_and(|failure| {
        matches!(failure.status, Status::Timeout | Status::RuntimeError)
            && failure.name.is_none()
            && ErrorCode::parse(&failure.code)
                .is_some_and(|code| code.origin() == Origin::Limit && code != ErrorCode::ResultTooLarge)
    })
}

/// The step of a journal that is longer than it may be.
fn over(journal: &Journal, options: &StepOptions<'_>) -> Option<Step> {
    let (code, message) = if journal.rounds.len() > options.max_rounds {
        let message =
            format!("The script waited for tools more than {} times; call more of them together", options.max_rounds);
        (ErrorCode::MaxRoundsExceeded, message)
    } else if journal.bytes() > options.max_journal_bytes {
        let most = options.max_journal_bytes;
        (ErrorCode::JournalTooLarge, format!("The calls and answers of the run are longer than {most} bytes together"))
    } else {
        return None;
    };
    let mut failure = Failure::from_code(code, message);
    failure.tool_calls = journal.rounds.iter().map(|round| round.calls.len() as u64).sum();
    Some(ended(Outcome::not_compiled(Box::new(failure))))
}

fn ended(outcome: Outcome) -> Step {
    Step::Done(Box::new(Done { outcome, abandoned: Vec::new(), dropped: 0, messages: Vec::new() }))
}

#[cfg(test)]
mod tests;
