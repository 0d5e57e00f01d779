//! AgentScript, with all its limits: steps, iterations, memory, time.

use super::{Peer, Round, timed};
use crate::cases::Case;
use agentscript::{CompileOptions, Event, Inputs, Policy, Preset, Progress, Run, Script, compile};
use cpu_time::ThreadTime;
use std::sync::Arc;
use std::time::Duration;

/// The engine AgentScript.
pub struct AgentScript {
    policy: Policy,
    options: CompileOptions,
    /// Whether a script is compiled once in each round, as by a host that caches compiled scripts.
    keep: bool,
}

impl AgentScript {
    /// Creates an engine that compiles the script for every run.
    #[must_use]
    pub fn new() -> Self {
        let mut policy = Policy::preset(Preset::Experimental);
        // All limits are checked, but none is exceeded.
        let unreachable = 1 << 40;
        let limits = &mut policy.limits;
        (limits.max_steps, limits.max_iterations, limits.max_tool_calls) = (unreachable, unreachable, unreachable);
        (limits.timeout_ms, limits.max_duration_ms) = (unreachable, unreachable);
        (limits.max_memory_bytes, limits.max_script_bytes, limits.max_result_bytes) = (1 << 30, 1 << 30, 1 << 30);
        limits.max_concurrency = 1 << 16;
        Self { options: CompileOptions::for_policy(&policy), policy, keep: false }
    }

    /// Creates an engine that compiles the script once in each round.
    #[must_use]
    pub fn compiled_once() -> Self {
        Self { keep: true, ..Self::new() }
    }

    /// Creates an engine with this memory limit.
    #[must_use]
    pub fn with_memory_limit(bytes: u64) -> Self {
        let mut ours = Self::new();
        ours.policy.limits.max_memory_bytes = bytes;
        ours
    }

    /// Compiles the script of a case.
    ///
    /// # Errors
    /// The message of the diagnostics.
    pub fn compile(&self, case: &Case) -> Result<Arc<Script>, String> {
        compile(&case.script, &self.options).map_err(|error| error.failure.message)
    }

    /// Creates a run.
    #[must_use]
    pub fn start(&self, script: &Arc<Script>, case: &Case) -> Run {
        script.start(Inputs { context: case.context.clone(), ..Inputs::default() }, &self.policy)
    }

    /// Resumes a run with the events `begin`, and then until its end. Returns the result.
    ///
    /// # Errors
    /// The message of the failure.
    pub fn finish(run: &mut Run, case: &Case, begin: Vec<Event>) -> Result<String, String> {
        let mut events = begin;
        loop {
            match run.resume(std::mem::take(&mut events)) {
                Progress::Done(outcome) => return outcome.result.map_err(|failure| failure.message),
                Progress::Yielded => {}
                Progress::Calls(calls) => events = Self::answers(case, calls),
            }
        }
    }

    /// Measures runs that wait for their first tool call at the same time, and then end one after the other.
    ///
    /// # Errors
    /// A run fails, or makes no call.
    pub fn time_concurrent(&self, case: &Case, count: usize) -> Result<Duration, String> {
        let script = self.compile(case)?;
        let clock = ThreadTime::now();
        let mut waiting = Vec::with_capacity(count);
        for _ in 0..count {
            let mut run = self.start(&script, case);
            let Progress::Calls(calls) = run.resume(Vec::new()) else { return Err("a run does not wait".into()) };
            waiting.push((run, calls));
        }
        for (mut run, calls) in waiting {
            Self::finish(&mut run, case, Self::answers(case, calls))?;
        }
        Ok(clock.elapsed())
    }

    /// Returns the answers of the tools to calls.
    #[must_use]
    pub fn answers(case: &Case, calls: Vec<agentscript::Call>) -> Vec<Event> {
        let settle =
            |call: agentscript::Call| Event::Settled { id: call.id, result: Ok(case.answer(&call.tool).into()) };
        calls.into_iter().map(settle).collect()
    }
}

impl Default for AgentScript {
    fn default() -> Self {
        Self::new()
    }
}

impl Peer for AgentScript {
    fn round(&mut self, case: &Case, times: u32) -> Result<Round, String> {
        let kept = if self.keep { Some(self.compile(case)?) } else { None };
        timed(times, || {
            let script = match &kept {
                Some(script) => Arc::clone(script),
                None => self.compile(case)?,
            };
            Self::finish(&mut self.start(&script, case), case, Vec::new())
        })
    }
}
