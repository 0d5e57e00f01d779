//! The state of a run: what every operation and built-in function works on.

use crate::atom::{AtomStrings, Atoms};
use crate::call_stack::CallStack;
use crate::calls::Calls;
use crate::error::Result;
use crate::gc::Gc;
use crate::heap::Heap;
use crate::host::{Inputs, Tools};
use crate::limits::Limits;
use crate::output::Output;
use crate::pools::Pools;
use crate::promise::Job;
use crate::random::Random;
use crate::realm::Realm;
use crate::script::Script;
use crate::stress::Stress;
use crate::timer::Timer;
use std::collections::VecDeque;
use std::sync::Arc;

/// The state of a run.
pub struct Vm {
    /// Values, and the meter that counts them.
    pub heap: Heap,
    /// Property names.
    pub atoms: Atoms,
    /// The strings of property names, as far as they were asked for.
    pub(crate) atom_strings: AtomStrings,
    /// The script, and the values that belong to parts of its code.
    pub(crate) realm: Realm,
    /// Frames.
    pub(crate) stack: CallStack,
    /// Microtasks.
    pub(crate) jobs: VecDeque<Job>,
    /// Memory that is used again.
    pub(crate) pools: Pools,
    /// When garbage is collected.
    pub(crate) gc: Gc,
    /// The limits of time.
    pub(crate) timer: Timer,
    /// The tools, and the calls of them.
    pub(crate) host: HostState,
    /// The log and the messages.
    pub(crate) output: Output,
    /// `Math.random` and `crypto.randomUUID`.
    pub(crate) random: Random,
    /// What tests make frequent.
    pub(crate) stress: Stress,
}

/// What a run has of its host.
pub struct HostState {
    /// The tools that the script can ask about.
    pub(crate) tools: Arc<dyn Tools>,
    /// JSON text of the input of the run.
    pub(crate) input: Option<String>,
    /// Calls that the host has to answer.
    pub(crate) calls: Calls,
}

impl Vm {
    /// The state of a run that has not begun.
    pub(crate) fn new(script: Arc<Script>, inputs: Inputs, limits: Limits) -> Self {
        let texts = &script.code.texts;
        Self {
            heap: Heap::new(limits, texts),
            atoms: Atoms::new(Arc::clone(texts)),
            atom_strings: AtomStrings::default(),
            stack: CallStack::default(),
            jobs: VecDeque::new(),
            pools: Pools::default(),
            gc: Gc::default(),
            timer: Timer::new(inputs.clock, inputs.slice),
            host: HostState { tools: inputs.tools, input: inputs.context, calls: Calls::default() },
            output: Output::default(),
            random: Random::new(inputs.seed),
            stress: Stress::default(),
            realm: Realm::new(script),
        }
    }

    /// Check the limits of time, whether somebody has cancelled the run, and whether the slice is over.
    pub(crate) fn check_time(&mut self) -> Result<()> {
        self.timer.check(&self.heap.meter.limits)
    }
}
