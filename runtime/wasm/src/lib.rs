//! AgentScript for browsers and workers: the types of `codecall-agentscript-bindings`, one to one, with the clock of JavaScript.
//!
//! It has the interface of `../node/ts/native.ts`, as the native addon has, so that both are one package. There are no
//! threads: long evaluation yields after each slice, and the package lets other work go on in between.

#![forbid(unsafe_code)]

use agentscript::{Clock, ToolError, Tools};
use codecall_agentscript_bindings as bindings;
use std::sync::Arc;
use std::time::Duration;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;

    #[wasm_bindgen(js_namespace = Date, js_name = now)]
    fn date_now() -> f64;
}

/// The clock of JavaScript.
struct JavaScriptClock;

impl Clock for JavaScriptClock {
    fn monotonic(&self) -> Duration {
        Duration::from_secs_f64((performance_now() / 1000.0).max(0.0))
    }

    fn unix_ms(&self) -> f64 {
        date_now()
    }
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(JavaScriptClock)
}

fn invalid(error: bindings::InputError) -> JsError {
    JsError::new(&error.0)
}

/// The name that is nearest to one that does not exist.
#[wasm_bindgen]
pub fn nearest(name: &str, known: Vec<String>) -> Option<String> {
    bindings::nearest(name, known.iter().map(String::as_str)).map(str::to_owned)
}

/// The tools of a run.
#[wasm_bindgen]
pub struct Toolset(Arc<bindings::Toolset>);

#[wasm_bindgen]
impl Toolset {
    /// Reads a list of tools.
    #[wasm_bindgen(constructor)]
    pub fn new(text: &str) -> Result<Self, JsError> {
        bindings::Toolset::from_json(text).map(|tools| Self(Arc::new(tools))).map_err(invalid)
    }

    /// Declarations in TypeScript.
    pub fn declarations(&self) -> String {
        self.0.declarations()
    }

    /// The names that are nearest.
    pub fn similar(&self, name: &str) -> Vec<String> {
        self.0.similar(name)
    }
}

/// A compiled script, or why it does not compile.
#[wasm_bindgen]
pub struct Script(Result<bindings::Script, bindings::CompileFailure>);

#[wasm_bindgen]
impl Script {
    /// Compiles a script.
    #[wasm_bindgen(constructor)]
    pub fn new(source: &str, settings: Option<String>, tools: &Toolset) -> Result<Self, JsError> {
        let settings = match settings {
            None => bindings::Settings::default(),
            Some(text) => bindings::Settings::from_json(&text).map_err(invalid)?,
        };
        Ok(Self(bindings::Script::compile(source, settings, Arc::clone(&tools.0))))
    }

    /// The outcome of every run, if it does not compile.
    pub fn failure(&self) -> Option<String> {
        self.0.as_ref().err().map(|failure| failure.0.clone())
    }

    /// Starts a run.
    pub fn start(
        &self,
        context: Option<String>,
        seed: f64,
        #[wasm_bindgen(js_name = hostTime)] host_time: bool,
        #[wasm_bindgen(js_name = unixMs)] unix_ms: Option<f64>,
        #[wasm_bindgen(js_name = sliceMs)] slice_ms: Option<u32>,
    ) -> Result<Run, JsError> {
        let time = bindings::Time::new(host_time, unix_ms);
        let slice = slice_ms.map(|ms| Duration::from_millis(ms.into()));
        let start = bindings::Start { context, seed: seed as u64, clock: clock(), time, slice };
        self.compiled()?.start(start).map(Run).map_err(invalid)
    }

    /// The journal of a run that has not begun.
    pub fn journal(
        &self,
        id: &str,
        #[wasm_bindgen(js_name = unixMs)] unix_ms: f64,
        context: Option<String>,
    ) -> Result<Journal, JsError> {
        self.compiled()?.journal(id, unix_ms as i64, context, clock()).map(Journal).map_err(invalid)
    }

    /// One step.
    pub fn step(&self, journal: &Journal, context: Option<String>) -> Result<Step, JsError> {
        self.compiled()?.step(&journal.0, context, clock()).map(Step).map_err(invalid)
    }

    fn compiled(&self) -> Result<&bindings::Script, JsError> {
        self.0.as_ref().map_err(|_| JsError::new("the script does not compile"))
    }
}

/// A step.
#[wasm_bindgen]
pub struct Step(bindings::Step);

#[wasm_bindgen]
impl Step {
    /// The journal for the answers.
    pub fn journal(&self) -> Option<Journal> {
        self.0.journal().cloned().map(Journal)
    }

    /// What has come out.
    pub fn text(&self) -> String {
        self.0.to_json().to_owned()
    }
}

/// One execution of a script.
#[wasm_bindgen]
pub struct Run(bindings::Run);

#[wasm_bindgen]
impl Run {
    /// One slice: 0 if there is more to evaluate, 1 if it waits, 2 if it has ended.
    pub fn resume(&mut self) -> u32 {
        match self.0.resume() {
            bindings::Progress::Yielded => 0,
            bindings::Progress::Waits => 1,
            bindings::Progress::Done => 2,
        }
    }

    /// Takes the new calls.
    #[wasm_bindgen(js_name = takeCalls)]
    pub fn take_calls(&mut self) -> String {
        self.0.take_calls_json()
    }

    /// Takes the calls that the script has cancelled.
    #[wasm_bindgen(js_name = takeCancelled)]
    pub fn take_cancelled(&mut self) -> Vec<u32> {
        self.0.take_cancelled()
    }

    /// Takes what the script has sent.
    #[wasm_bindgen(js_name = takeMessages)]
    pub fn take_messages(&mut self) -> Option<String> {
        self.0.take_messages_json()
    }

    /// Answers a call.
    pub fn settle(&mut self, id: u32, result: String) {
        self.0.settle(id, Ok(result));
    }

    /// Answers a call with an error.
    pub fn fail(&mut self, id: u32, code: String, message: String, details: Option<String>, fatal: bool) {
        self.0.settle(id, Err(ToolError { message, code, details, fatal }));
    }

    /// Lets time pass, in a run whose host has the time.
    pub fn reach(&mut self, ms: f64) {
        self.0.reach(ms as u64);
    }

    /// Cancels it.
    pub fn cancel(&self) {
        self.0.cancel_flag().set();
    }

    /// When it has to be resumed without an event.
    #[wasm_bindgen(js_name = timeLeftMs)]
    pub fn time_left_ms(&self) -> f64 {
        self.0.time_left_ms()
    }

    /// When the next timer is due.
    #[wasm_bindgen(js_name = nextTimerMs)]
    pub fn next_timer_ms(&self) -> Option<f64> {
        self.0.next_timer_ms().map(|ms| ms as f64)
    }

    /// What its values take.
    #[wasm_bindgen(js_name = memoryBytes)]
    pub fn memory_bytes(&self) -> f64 {
        self.0.memory_bytes() as f64
    }

    /// What it has come to.
    pub fn outcome(&self) -> Option<String> {
        self.0.outcome()
    }
}

/// What has happened in a stateless run so far.
#[wasm_bindgen]
pub struct Journal(bindings::Journal);

#[wasm_bindgen]
impl Journal {
    /// Reads JSON text.
    #[wasm_bindgen(js_name = fromJson)]
    pub fn from_json(text: &str) -> Result<Self, JsError> {
        bindings::Journal::from_json(text).map(Self).map_err(invalid)
    }

    /// The journal as JSON text.
    #[wasm_bindgen(js_name = toJson)]
    pub fn to_json(&self) -> Result<String, JsError> {
        self.0.to_json().map_err(invalid)
    }

    /// Reads a token.
    #[wasm_bindgen(js_name = fromToken)]
    pub fn from_token(token: &str, key: Option<Vec<u8>>) -> Result<Self, JsError> {
        bindings::Journal::from_token(token, key.as_deref()).map(Self).map_err(invalid)
    }

    /// The journal as a token.
    #[wasm_bindgen(js_name = toToken)]
    pub fn to_token(&self, key: Option<Vec<u8>>) -> String {
        self.0.to_token(key.as_deref())
    }

    /// The journal with an answer.
    pub fn answered(&self, call: u32, result: String) -> Result<Self, JsError> {
        self.0.answered(call, Ok(result)).map(Self).map_err(invalid)
    }

    /// The journal with a failure.
    pub fn failed(&self, call: u32, code: String, message: String, details: Option<String>) -> Result<Self, JsError> {
        self.0.answered(call, Err(ToolError { message, code, details, fatal: false })).map(Self).map_err(invalid)
    }
}
