//! Where runs are evaluated: on the threads that drive them, or in worker processes. The driver of a run sees no difference.

#[cfg(unix)]
use super::worker::{RemoteRun, Workers};
use agentscript::{
    CallId, Clock, CompileOptions, Dialect, Event, Failure, Inputs, Language, Linker, Message, OpenCall, Outcome,
    Policy, Progress, Resumable, Run, ScriptCache, SystemClock, TimeFlow, Tools,
};
use codecall_base::error::Error;
use codecall_base::tool::{ErrorCode, LookupRecorder, ToolDirectory, ToolLookups};
use codecall_config::{IsolationConfig, IsolationMode};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Milliseconds of compiling that no script pays for: a machine that is busy takes some for the smallest.
const FREE_COMPILATION_MS: u64 = 500;

/// Evaluates runs.
pub trait Executor: Send + Sync {
    /// Starts a run. It is compiled here, or when it is resumed for the first time.
    ///
    /// # Errors
    /// The outcome of a script that does not compile.
    fn start(&self, start: StartInputs) -> Result<Box<dyn Evaluation>, Box<Outcome>>;

    /// Where runs are evaluated, and what of the machine they can reach there, in one line for the status.
    fn describe(&self) -> String;

    /// Ends what waits for runs.
    fn close(&self) {}
}

/// The inputs of a run: data, which can be sent to another process.
pub struct StartInputs {
    /// The script.
    pub script: Arc<str>,
    /// Its language; absent: it is guessed.
    pub language: Option<Language>,
    /// The dialect of the host's functions.
    pub dialect: Dialect,
    /// Limits and permissions.
    pub policy: Policy,
    /// JSON text of an object: `codecallContext`.
    pub context: Option<String>,
    /// The directory of tools of the script.
    pub directory: Arc<ToolDirectory>,
    /// Whether [`Evaluation::take_lookups`] returns what the script looks up in the directory.
    pub record_lookups: bool,
    /// Seed of random numbers.
    pub seed: u64,
    /// The time that the script sees at its beginning, where time passes by [`Event::Time`]; absent: the time.
    pub fixed_unix_ms: Option<f64>,
    /// Whether time stands still otherwise, and jumps to the next timer when the script waits for nothing else.
    pub is_virtual: bool,
    /// How long the run is evaluated at a time.
    pub slice: Duration,
    /// How long a slice may take before the run is given up.
    pub watchdog: Duration,
    /// Ends the run in the middle of a step, where that is possible.
    pub stop: Arc<AtomicBool>,
}

/// A run that is evaluated somewhere. Dropped before it is done, it ends.
pub trait Evaluation: Send {
    /// Goes on until nothing can go on without an event, or the slice is used up. `cancel` ends what is in another
    /// process in the middle of a slice.
    fn resume(&mut self, events: Vec<Event>, cancel: &CancellationToken) -> Progress;

    /// Takes the messages that the script has sent since the last call.
    fn take_messages(&mut self) -> Vec<Message>;

    /// Takes what the script has looked up about tools since the last call. Empty unless the run was started with
    /// `record_lookups`.
    fn take_lookups(&mut self) -> ToolLookups;

    /// Bytes that it has in use.
    fn memory_bytes(&self) -> u64;

    /// Tool calls that have no answer.
    fn unanswered_calls(&self) -> usize;

    /// How long until it has to be resumed without events: a timer is due, or it must have ended.
    fn time_left(&self) -> Duration;

    /// When the next timer is due, since the run began, by the time that the script sees.
    fn next_timer(&self) -> Option<Duration>;

    /// Takes the calls that the script has cancelled since the last call.
    fn take_cancelled(&mut self) -> Vec<CallId>;

    /// The calls without an answer, in order. None where the run is lost.
    fn open_calls(&mut self) -> Vec<OpenCall>;

    /// Resolves when the run is lost while it waits: the next [`Evaluation::resume`] says why. It stays pending where a run
    /// cannot be lost. This needs a tokio runtime.
    fn lost(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// The executor of a configuration, with so many workers where they are processes. Scripts that are compiled in this
/// process are kept in `scripts`.
///
/// # Errors
/// There can be no worker process, or none that is confined as it has to be.
pub fn executor(
    config: &IsolationConfig,
    workers: usize,
    policy: &Policy,
    scripts: &Arc<ScriptCache>,
) -> Result<Arc<dyn Executor>, Error> {
    match config.mode {
        IsolationMode::Thread => Ok(Arc::new(ThreadExecutor::new(Arc::clone(scripts)))),
        #[cfg(unix)]
        IsolationMode::Process => match Workers::start(config, workers, &policy.limits) {
            Ok(workers) => Ok(Arc::new(workers)),
            Err(problem) => Err(Error::Config(format!("isolation: no worker process: {problem}"))),
        },
        #[cfg(not(unix))]
        IsolationMode::Process => {
            let _ = (workers, policy);
            Err(Error::Config("isolation: there are no worker processes on this system; use 'thread'".into()))
        }
    }
}

/// Evaluates runs on the threads that drive them.
pub struct ThreadExecutor {
    scripts: Arc<ScriptCache>,
}

impl ThreadExecutor {
    /// With a cache of compiled scripts.
    #[must_use]
    pub fn new(scripts: Arc<ScriptCache>) -> Self {
        Self { scripts }
    }
}

impl Executor for ThreadExecutor {
    fn start(&self, start: StartInputs) -> Result<Box<dyn Evaluation>, Box<Outcome>> {
        let StartInputs { script, language, dialect, policy, context, directory, record_lookups, .. } = start;
        let recorder = record_lookups.then(|| Arc::new(LookupRecorder::new(Arc::clone(&directory))));
        let tools: Arc<dyn Tools> = match &recorder {
            Some(recorder) => Arc::<LookupRecorder>::clone(recorder),
            None => directory,
        };
        let clock = clock(start.fixed_unix_ms, start.is_virtual);
        let inputs = Inputs { context, tools, clock, seed: start.seed, slice: Some(start.slice) };
        let mut run = compile_and_start(&self.scripts, &script, (language, dialect), policy, inputs)?;
        run.cancel_on(start.stop);
        Ok(Box::new(LocalRun { run, recorder }))
    }

    fn describe(&self) -> String {
        "scripts run on threads of the server".into()
    }
}

/// A run in this process: on a thread of the server, or in a worker.
struct LocalRun {
    run: Run,
    recorder: Option<Arc<LookupRecorder>>,
}

impl Evaluation for LocalRun {
    fn resume(&mut self, events: Vec<Event>, _cancel: &CancellationToken) -> Progress {
        self.run.resume(events)
    }

    fn take_messages(&mut self) -> Vec<Message> {
        self.run.take_messages()
    }

    fn take_lookups(&mut self) -> ToolLookups {
        self.recorder.as_ref().map(|recorder| recorder.take()).unwrap_or_default()
    }

    fn memory_bytes(&self) -> u64 {
        u64::try_from(self.run.memory_bytes()).unwrap_or(u64::MAX)
    }

    fn unanswered_calls(&self) -> usize {
        self.run.unanswered_calls()
    }

    fn time_left(&self) -> Duration {
        self.run.time_left()
    }

    fn next_timer(&self) -> Option<Duration> {
        self.run.next_timer()
    }

    fn take_cancelled(&mut self) -> Vec<CallId> {
        self.run.take_cancelled()
    }

    fn open_calls(&mut self) -> Vec<OpenCall> {
        self.run.open_calls()
    }
}

#[cfg(unix)]
impl Executor for Workers {
    fn start(&self, start: StartInputs) -> Result<Box<dyn Evaluation>, Box<Outcome>> {
        Ok(Box::new(RemoteRun::new(self.clone(), start)))
    }

    fn describe(&self) -> String {
        let (protections, lost) = (self.protections().describe(), self.lost());
        let lost = if lost == 0 { String::new() } else { format!("; {lost} workers were lost") };
        format!("scripts run in worker processes, confined by: {protections}{lost}")
    }

    fn close(&self) {
        Workers::close(self);
    }
}

/// A run that is replayed: its evaluation, driven on one thread to its end.
pub struct Replayed {
    evaluation: Box<dyn Evaluation>,
    cancel: CancellationToken,
}

impl Replayed {
    /// Creates it with the token that `cancel` cancels.
    #[must_use]
    pub fn new(evaluation: Box<dyn Evaluation>, cancel: CancellationToken) -> Self {
        Self { evaluation, cancel }
    }
}

impl Resumable for Replayed {
    fn resume(&mut self, mut events: Vec<Event>) -> Progress {
        if self.cancel.is_cancelled() {
            events.push(Event::Cancel);
        }
        self.evaluation.resume(events, &self.cancel)
    }

    fn take_messages(&mut self) -> Vec<Message> {
        self.evaluation.take_messages()
    }

    fn open_calls(&mut self) -> Vec<OpenCall> {
        self.evaluation.open_calls()
    }

    fn next_timer(&self) -> Option<Duration> {
        self.evaluation.next_timer()
    }

    fn take_cancelled(&mut self) -> Vec<CallId> {
        self.evaluation.take_cancelled()
    }
}

/// The clock of a run.
fn clock(fixed_unix_ms: Option<f64>, is_virtual: bool) -> Arc<dyn Clock> {
    match fixed_unix_ms {
        Some(unix_ms) => Arc::new(ScriptTime { unix_ms, flow: TimeFlow::Events }),
        None if is_virtual => Arc::new(ScriptTime { unix_ms: SystemClock.unix_ms(), flow: TimeFlow::Virtual }),
        None => Arc::new(SystemClock),
    }
}

/// Time that does not flow by itself for the script, but for its limits.
struct ScriptTime {
    unix_ms: f64,
    flow: TimeFlow,
}

impl Clock for ScriptTime {
    fn monotonic(&self) -> Duration {
        SystemClock.monotonic()
    }

    fn unix_ms(&self) -> f64 {
        self.unix_ms
    }

    fn flow(&self) -> TimeFlow {
        self.flow
    }
}

/// Compile a script and start it. What takes long to compile has less time to run.
///
/// # Errors
/// The outcome of a script that does not compile, or not in its time.
fn compile_and_start(
    scripts: &ScriptCache,
    script: &str,
    (language, dialect): (Option<Language>, Dialect),
    mut policy: Policy,
    inputs: Inputs,
) -> Result<Run, Box<Outcome>> {
    let options = CompileOptions { language, linker: Linker::new(dialect), ..CompileOptions::for_policy(&policy) };
    let options = options.with_tools(&*inputs.tools);
    let began = Instant::now();
    let script = scripts.compile(script, &options).map_err(|error| Box::new(Outcome::not_compiled(error.failure)))?;
    if !has_time_left(&mut policy, began.elapsed()) {
        let message = format!("Compiling the script took longer than its {}ms", policy.limits.timeout_ms);
        let failure = Failure::from_code(ErrorCode::Timeout, message);
        return Err(Box::new(Outcome::not_compiled(Box::new(failure))));
    }
    Ok(script.start(inputs, &policy))
}

/// Count the time that it took to compile a script as the script's, where it was not short.
fn has_time_left(policy: &mut Policy, took: Duration) -> bool {
    let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    if took < FREE_COMPILATION_MS {
        return true;
    }
    let left = policy.limits.timeout_ms.saturating_sub(took);
    if left > 0 {
        policy.limits.timeout_ms = left;
    }
    left > 0
}
