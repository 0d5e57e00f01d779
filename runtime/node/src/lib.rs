//! The native addon of the JavaScript package: the types of `codecall-agentscript-bindings`, one to one.
//!
//! Everything idiomatic (functions as tools, promises, signals, errors) is in `ts/`, which uses the module for
//! WebAssembly in the same way. Both have the interface of `ts/native.ts`. There is no `unsafe` here, but the macros of
//! napi write some, so the
//! crate cannot forbid it.

use agentscript::{Clock, SystemClock, ToolError, Tools};
use codecall_agentscript_bindings as bindings;
use napi::bindgen_prelude::{AsyncTask, Buffer};
use napi::{Env, Error, Result, Status, Task};
use napi_derive::napi;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

fn invalid(error: bindings::InputError) -> Error {
    Error::new(Status::InvalidArg, error.0)
}

/// The name that is nearest to one that does not exist.
#[napi]
pub fn nearest(name: String, known: Vec<String>) -> Option<String> {
    bindings::nearest(&name, known.iter().map(String::as_str)).map(str::to_owned)
}

/// The tools of a run.
#[napi]
pub struct Toolset(Arc<bindings::Toolset>);

#[napi]
impl Toolset {
    /// Reads a list of tools.
    #[napi(constructor)]
    pub fn new(text: String) -> Result<Self> {
        bindings::Toolset::from_json(&text).map(|tools| Self(Arc::new(tools))).map_err(invalid)
    }

    /// Declarations in TypeScript.
    #[napi]
    pub fn declarations(&self) -> String {
        self.0.declarations()
    }

    /// The names that are nearest.
    #[napi]
    pub fn similar(&self, name: String) -> Vec<String> {
        self.0.similar(&name)
    }
}

/// A compiled script, or why it does not compile.
#[napi]
pub struct Script(std::result::Result<bindings::Script, bindings::CompileFailure>);

#[napi]
impl Script {
    /// Compiles a script.
    #[napi(constructor)]
    pub fn new(source: String, settings: Option<String>, tools: &Toolset) -> Result<Self> {
        let settings = match settings {
            None => bindings::Settings::default(),
            Some(text) => bindings::Settings::from_json(&text).map_err(invalid)?,
        };
        Ok(Self(bindings::Script::compile(&source, settings, Arc::clone(&tools.0))))
    }

    /// The outcome of every run, if it does not compile.
    #[napi]
    pub fn failure(&self) -> Option<String> {
        self.0.as_ref().err().map(|failure| failure.0.clone())
    }

    /// Starts a run.
    #[napi]
    pub fn start(
        &self,
        context: Option<String>,
        seed: f64,
        host_time: bool,
        unix_ms: Option<f64>,
        slice_ms: Option<u32>,
    ) -> Result<Run> {
        let time = bindings::Time::new(host_time, unix_ms);
        let slice = slice_ms.map(|ms| Duration::from_millis(ms.into()));
        let start = bindings::Start { context, seed: seed as u64, clock: clock(), time, slice };
        let run = self.compiled()?.start(start).map_err(invalid)?;
        Ok(Run { flag: run.cancel_flag(), run: Arc::new(Mutex::new(run)) })
    }

    /// The journal of a run that has not begun.
    #[napi]
    pub fn journal(&self, id: String, unix_ms: f64, context: Option<String>) -> Result<Journal> {
        self.compiled()?.journal(&id, unix_ms as i64, context, clock()).map(Journal).map_err(invalid)
    }

    /// One step.
    #[napi]
    pub fn step(&self, journal: &Journal, context: Option<String>) -> Result<Step> {
        self.compiled()?.step(&journal.0, context, clock()).map(Step).map_err(invalid)
    }

    fn compiled(&self) -> Result<&bindings::Script> {
        self.0.as_ref().map_err(|_| Error::new(Status::InvalidArg, "the script does not compile"))
    }
}

/// A step.
#[napi]
pub struct Step(bindings::Step);

#[napi]
impl Step {
    /// The journal for the answers.
    #[napi]
    pub fn journal(&self) -> Option<Journal> {
        self.0.journal().cloned().map(Journal)
    }

    /// What has come out.
    #[napi]
    pub fn text(&self) -> String {
        self.0.to_json().to_owned()
    }
}

/// One execution of a script.
#[napi]
pub struct Run {
    run: Arc<Mutex<bindings::Run>>,
    flag: bindings::CancelFlag,
}

fn lock(run: &Mutex<bindings::Run>) -> MutexGuard<'_, bindings::Run> {
    run.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(progress: bindings::Progress) -> u32 {
    match progress {
        bindings::Progress::Yielded => 0,
        bindings::Progress::Waits => 1,
        bindings::Progress::Done => 2,
    }
}

/// Evaluates a run in a thread of the pool until it waits or has ended.
pub struct Evaluation(Arc<Mutex<bindings::Run>>);

impl Task for Evaluation {
    type Output = u32;
    type JsValue = u32;

    fn compute(&mut self) -> Result<u32> {
        loop {
            let progress = lock(&self.0).resume();
            if progress != bindings::Progress::Yielded {
                return Ok(number(progress));
            }
        }
    }

    fn resolve(&mut self, _env: Env, output: u32) -> Result<u32> {
        Ok(output)
    }
}

#[napi]
impl Run {
    /// One slice: 0 if there is more to evaluate, 1 if it waits, 2 if it has ended.
    #[napi]
    pub fn resume(&self) -> u32 {
        number(lock(&self.run).resume())
    }

    /// All slices, in another thread.
    #[napi(ts_return_type = "Promise<number>")]
    pub fn resume_in_background(&self) -> AsyncTask<Evaluation> {
        AsyncTask::new(Evaluation(Arc::clone(&self.run)))
    }

    /// Takes the new calls.
    #[napi]
    pub fn take_calls(&self) -> String {
        lock(&self.run).take_calls_json()
    }

    /// Takes the calls that the script has cancelled.
    #[napi]
    pub fn take_cancelled(&self) -> Vec<u32> {
        lock(&self.run).take_cancelled()
    }

    /// Takes what the script has sent.
    #[napi]
    pub fn take_messages(&self) -> Option<String> {
        lock(&self.run).take_messages_json()
    }

    /// Answers a call.
    #[napi]
    pub fn settle(&self, id: u32, result: String) {
        lock(&self.run).settle(id, Ok(result));
    }

    /// Answers a call with an error.
    #[napi]
    pub fn fail(&self, id: u32, code: String, message: String, details: Option<String>, fatal: bool) {
        lock(&self.run).settle(id, Err(ToolError { message, code, details, fatal }));
    }

    /// Lets time pass, in a run whose host has the time.
    #[napi]
    pub fn reach(&self, ms: f64) {
        lock(&self.run).reach(ms as u64);
    }

    /// Cancels it, also while another thread evaluates it.
    #[napi]
    pub fn cancel(&self) {
        self.flag.set();
    }

    /// When it has to be resumed without an event.
    #[napi]
    pub fn time_left_ms(&self) -> f64 {
        lock(&self.run).time_left_ms()
    }

    /// When the next timer is due.
    #[napi]
    pub fn next_timer_ms(&self) -> Option<f64> {
        lock(&self.run).next_timer_ms().map(|ms| ms as f64)
    }

    /// What its values take.
    #[napi]
    pub fn memory_bytes(&self) -> f64 {
        lock(&self.run).memory_bytes() as f64
    }

    /// What it has come to.
    #[napi]
    pub fn outcome(&self) -> Option<String> {
        lock(&self.run).outcome()
    }
}

/// What has happened in a stateless run so far.
#[napi]
pub struct Journal(bindings::Journal);

#[napi]
impl Journal {
    /// Reads JSON text.
    #[napi(factory)]
    pub fn from_json(text: String) -> Result<Self> {
        bindings::Journal::from_json(&text).map(Self).map_err(invalid)
    }

    /// The journal as JSON text.
    #[napi]
    pub fn to_json(&self) -> Result<String> {
        self.0.to_json().map_err(invalid)
    }

    /// Reads a token.
    #[napi(factory)]
    pub fn from_token(token: String, key: Option<Buffer>) -> Result<Self> {
        bindings::Journal::from_token(&token, key.as_deref()).map(Self).map_err(invalid)
    }

    /// The journal as a token.
    #[napi]
    pub fn to_token(&self, key: Option<Buffer>) -> String {
        self.0.to_token(key.as_deref())
    }

    /// The journal with an answer.
    #[napi]
    pub fn answered(&self, call: u32, result: String) -> Result<Self> {
        self.0.answered(call, Ok(result)).map(Self).map_err(invalid)
    }

    /// The journal with a failure.
    #[napi]
    pub fn failed(&self, call: u32, code: String, message: String, details: Option<String>) -> Result<Self> {
        self.0.answered(call, Err(ToolError { message, code, details, fatal: false })).map(Self).map_err(invalid)
    }
}
