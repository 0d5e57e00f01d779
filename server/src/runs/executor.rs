//! Where runs are evaluated: on the threads of the queue, or by workers. What drives them sees no
//! difference.

#[cfg(unix)]
use super::worker::{Begin, Remote, Workers};
use crate::config::IsolationConfig;
use crate::error::Error;
use crate::tool::ErrorCode;
use agentscript::{
    CompileOptions, Dialect, Event, Failure, Inputs, Language, Message, Outcome, Policy, Progress, Run, ScriptCache,
};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Milliseconds of compiling that no script pays for: a machine that is busy takes some for the smallest.
const SHORT_COMPILATION: u64 = 500;

/// What evaluates runs.
#[derive(Clone)]
pub enum Executor {
    /// The threads of the queue themselves, with the scripts that were compiled.
    Threads(Arc<ScriptCache>),
    /// Processes, each with one run at a time.
    #[cfg(unix)]
    Workers(Workers),
}

impl Executor {
    /// Worker processes, `workers` of them at all times. The first one is there when it returns.
    ///
    /// # Errors
    /// There can be none, or none that is confined as it has to be.
    #[cfg(unix)]
    pub fn start(config: &IsolationConfig, workers: usize, policy: &Policy) -> Result<Self, Error> {
        let workers = Workers::start(config, workers, &policy.limits);
        let workers = workers.map_err(|problem| Error::Config(format!("isolation: no worker process: {problem}")))?;
        Ok(Self::Workers(workers))
    }

    /// Workers need what this system does not have.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(unix))]
    pub fn start(_config: &IsolationConfig, _workers: usize, _policy: &Policy) -> Result<Self, Error> {
        Err(Error::Config("isolation: there are no worker processes on this system; use 'thread'".into()))
    }

    /// For the status of the server.
    pub fn describe(&self) -> String {
        match self {
            Self::Threads(_) => "scripts run on threads of the server".into(),
            #[cfg(unix)]
            Self::Workers(workers) => {
                let (walls, lost) = (workers.walls().describe(), workers.lost());
                let lost = if lost == 0 { String::new() } else { format!("; {lost} workers were lost") };
                format!("scripts run in worker processes, confined by: {walls}{lost}")
            }
        }
    }

    /// End what waits for runs.
    pub fn close(&self) {
        match self {
            Self::Threads(_) => {}
            #[cfg(unix)]
            Self::Workers(workers) => workers.close(),
        }
    }
}

/// A run that has not begun.
pub struct Start {
    pub script: String,
    pub language: Option<Language>,
    pub dialect: Dialect,
    pub policy: Policy,
    pub inputs: Inputs,
    /// Whether the time stands still for the script.
    pub is_recorded: bool,
    /// How long a slice may take at most before the run is given up.
    pub patience: Duration,
    pub executor: Executor,
}

/// A run, wherever it is.
pub enum Driven {
    Here(Box<Run>),
    #[cfg(unix)]
    There(Box<Remote>),
}

impl Start {
    /// Compile and start; in a worker, that is done when the run goes on for the first time. `stop` ends a
    /// run on a thread in the middle of a step.
    ///
    /// # Errors
    /// The outcome of a script that does not compile.
    pub fn start(self, stop: &Arc<AtomicBool>) -> Result<Driven, Box<Outcome>> {
        let Self { script, language, dialect, policy, inputs, is_recorded, patience, executor } = self;
        match executor {
            Executor::Threads(scripts) => {
                let mut run = begin(&scripts, &script, (language, dialect), policy, inputs)?;
                run.cancel_on(Arc::clone(stop));
                Ok(Driven::Here(Box::new(run)))
            }
            #[cfg(unix)]
            Executor::Workers(workers) => {
                let stands_still = is_recorded.then(|| inputs.clock.unix_ms());
                let Inputs { context, tools, seed, slice, .. } = inputs;
                let kind = (language, dialect);
                let begin = Begin::of(script, kind, &policy, (context, seed, slice), stands_still);
                Ok(Driven::There(Box::new(Remote::new(workers, begin, policy, tools, patience))))
            }
        }
    }
}

/// Compile a script and start it. What takes long to compile has less time to run.
///
/// # Errors
/// The outcome of a script that does not compile, or not in its time.
pub fn begin(
    scripts: &ScriptCache,
    script: &str,
    (language, dialect): (Option<Language>, Dialect),
    mut policy: Policy,
    inputs: Inputs,
) -> Result<Run, Box<Outcome>> {
    let options = CompileOptions { language, dialect, ..CompileOptions::of(&policy) };
    let began = Instant::now();
    let script = scripts.compile(script, &options).map_err(|error| Box::new(Outcome::not_compiled(error.failure)))?;
    if !has_time_left(&mut policy, began.elapsed()) {
        let message = format!("Compiling the script took longer than its {}ms", policy.limits.timeout_ms);
        let failure = Failure::of(ErrorCode::Timeout, message);
        return Err(Box::new(Outcome::not_compiled(Box::new(failure))));
    }
    Ok(script.start(inputs, &policy))
}

/// Count the time that it took to compile a script as the script's, where it was not short.
fn has_time_left(policy: &mut Policy, took: Duration) -> bool {
    let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    if took < SHORT_COMPILATION {
        return true;
    }
    let left = policy.limits.timeout_ms.saturating_sub(took);
    if left > 0 {
        policy.limits.timeout_ms = left;
    }
    left > 0
}

impl Driven {
    /// Go on until nothing can go on without an event, or the slice is used up. Only what is in another
    /// process can be ended in the middle of a slice, by `cancel`.
    pub fn resume(&mut self, events: Vec<Event>, cancel: &CancellationToken) -> Progress {
        match self {
            Self::Here(run) => run.resume(events),
            #[cfg(unix)]
            Self::There(run) => run.resume(events, cancel),
        }
    }

    /// Messages that the script has sent since the last call.
    pub fn take_messages(&mut self) -> Vec<Message> {
        match self {
            Self::Here(run) => run.take_messages(),
            #[cfg(unix)]
            Self::There(run) => run.take_messages(),
        }
    }

    /// Bytes that it has in use.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Self::Here(run) => u64::try_from(run.memory_bytes()).unwrap_or(u64::MAX),
            #[cfg(unix)]
            Self::There(run) => run.memory_bytes(),
        }
    }

    /// Tool calls that have no answer.
    pub fn unanswered_calls(&self) -> usize {
        match self {
            Self::Here(run) => run.unanswered_calls(),
            #[cfg(unix)]
            Self::There(run) => run.unanswered_calls(),
        }
    }

    /// How long until it must have ended.
    pub fn time_left(&self) -> Duration {
        match self {
            Self::Here(run) => run.time_left(),
            #[cfg(unix)]
            Self::There(run) => run.time_left(),
        }
    }
}
