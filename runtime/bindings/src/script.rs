//! A compiled script with its tools and settings: what runs and steps are started from.

use crate::clock::HostClock;
use crate::error::{CompileFailure, InputError};
use crate::journal::Journal;
use crate::run::Run;
use crate::settings::Settings;
use crate::step::Step;
use crate::tools::Toolset;
use agentscript::stateless::{self, StepOptions};
use agentscript::{Clock, Inputs, Linker, ScriptCache, compile};
use serde::de::IgnoredAny;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Longest script that steps keep compiled, in bytes of its code.
const MAX_CACHED_BYTES: usize = 64 << 20;

/// A compiled script. Immutable; any number of runs share it.
pub struct Script {
    script: Arc<agentscript::Script>,
    source: String,
    settings: Settings,
    tools: Arc<Toolset>,
    /// For steps, which compile what they are given: this script.
    cache: OnceLock<ScriptCache>,
}

/// What a run is started with.
#[derive(Clone)]
pub struct Start {
    /// JSON text of the object that the script sees as `codecallContext`.
    pub context: Option<String>,
    /// Seed of random numbers.
    pub seed: u64,
    /// Measures the limits of time.
    pub clock: Arc<dyn Clock>,
    /// The time that the script sees.
    pub time: Time,
    /// How long [`Run::resume`] may take before it yields.
    pub slice: Option<Duration>,
}

/// The time that a script sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Time {
    /// That of the clock.
    Clock,
    /// The host moves it: see [`Run::reach`].
    Host {
        /// When it begins, in milliseconds since 1970-01-01 UTC; absent: now.
        unix_ms: Option<f64>,
    },
}

impl Time {
    /// That of the host, from `unix_ms` on, if `host_time` is set.
    #[must_use]
    pub fn new(host_time: bool, unix_ms: Option<f64>) -> Self {
        if host_time { Self::Host { unix_ms } } else { Self::Clock }
    }
}

impl Script {
    /// Compiles a script.
    ///
    /// # Errors
    /// The outcome of a script that is not AgentScript, or that uses what the settings do not allow.
    pub fn compile(source: &str, settings: Settings, tools: Arc<Toolset>) -> Result<Self, CompileFailure> {
        let options = settings.compile_options().with_tools(&*tools);
        let script = compile(source, &options).map_err(CompileFailure::new)?;
        Ok(Self { script, source: source.to_owned(), settings, tools, cache: OnceLock::new() })
    }

    /// Its text.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Starts a run. Nothing is evaluated before [`Run::resume`].
    ///
    /// # Errors
    /// The context is not JSON text of an object.
    pub fn start(&self, start: Start) -> Result<Run, InputError> {
        check_context(start.context.as_deref())?;
        let host_clock = match start.time {
            Time::Clock => None,
            Time::Host { unix_ms } => Some(Arc::new(HostClock::new(Arc::clone(&start.clock), unix_ms))),
        };
        let clock = match &host_clock {
            Some(clock) => Arc::<HostClock>::clone(clock),
            None => start.clock,
        };
        let inputs = Inputs {
            context: start.context,
            tools: Arc::<Toolset>::clone(&self.tools),
            clock: Arc::clone(&clock),
            seed: start.seed,
            slice: start.slice,
        };
        let run = self.script.start(inputs, &self.settings.policy);
        Ok(Run::new(run, Arc::clone(&self.tools), clock, host_clock))
    }

    /// The journal of a run that has not begun: see [`agentscript::stateless::Journal::new`].
    ///
    /// # Errors
    /// The context is not JSON text of an object.
    pub fn journal(
        &self,
        id: &str,
        unix_ms: i64,
        context: Option<String>,
        clock: Arc<dyn Clock>,
    ) -> Result<Journal, InputError> {
        check_context(context.as_deref())?;
        Ok(Journal(stateless::Journal::new(id, unix_ms, &self.source, &self.step_options(context, clock))))
    }

    /// Plays the script against a journal, and on as far as it goes without a new answer: a pure function.
    ///
    /// # Errors
    /// The context is not JSON text of an object.
    pub fn step(&self, journal: &Journal, context: Option<String>, clock: Arc<dyn Clock>) -> Result<Step, InputError> {
        check_context(context.as_deref())?;
        let tools = Arc::<Toolset>::clone(&self.tools);
        Ok(Step::new(stateless::step(&self.source, tools, &journal.0, &self.step_options(context, clock))))
    }

    fn step_options(&self, context: Option<String>, clock: Arc<dyn Clock>) -> StepOptions<'_> {
        StepOptions {
            policy: self.settings.policy.clone(),
            language: self.settings.language,
            linker: Linker::new(self.settings.dialect),
            context,
            cache: Some(self.cache.get_or_init(|| ScriptCache::new(MAX_CACHED_BYTES, 1))),
            ..StepOptions::with_clock(clock)
        }
    }
}

fn check_context(context: Option<&str>) -> Result<(), InputError> {
    let Some(text) = context else { return Ok(()) };
    serde_json::from_str::<IgnoredAny>(text)
        .map_err(|error| InputError(format!("the context is not JSON: {error}")))
        .and_then(|_| match text.trim_start().starts_with('{') {
            true => Ok(()),
            false => Err(InputError("the context must be an object".into())),
        })
}
