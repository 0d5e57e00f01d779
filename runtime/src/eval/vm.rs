//! The state of a run: what every operation and built-in function works on.

use crate::eval::call_stack::CallStack;
use crate::eval::calls::Calls;
use crate::eval::gc::Gc;
use crate::eval::output::Output;
use crate::eval::pools::Pools;
use crate::eval::realm::Realm;
use crate::eval::schedule::Schedule;
use crate::eval::script::Script;
use crate::eval::stress::Stress;
use crate::eval::unawaited::Unawaited;
use crate::heap::Heap;
use crate::heap::atoms::Atoms;
use crate::heap::promise::Job;
use crate::interface::host::{Inputs, Tools};
use crate::interface::limits::Policy;
use crate::meter::buffer::Metered;
use crate::meter::timer::Timer;
use crate::meter::{Charge, Meter};
use crate::value::Value;
use crate::value::random::Random;
use crate::value::thrown::Result;
use std::collections::VecDeque;
use std::sync::Arc;

/// The state of a run.
pub struct Vm {
    /// Values, and the meter that counts them.
    pub heap: Heap,
    /// The script, and the values that belong to parts of its code.
    pub(crate) realm: Realm,
    /// Frames.
    pub(crate) stack: CallStack,
    /// Microtasks.
    pub(crate) jobs: VecDeque<Job>,
    /// Timers, and the time that the script sees.
    pub(crate) schedule: Schedule,
    /// Promises that were rejected while nobody handled them, since the microtasks were last done.
    pub(crate) rejected: Vec<Value>,
    /// Uses of promises as if they were their results.
    pub(crate) unawaited: Unawaited,
    /// What a callback of the host has thrown: the end of the run.
    pub(crate) uncaught: Option<Value>,
    /// Memory that is used again.
    pub(crate) pools: Pools,
    /// Receivers whose items `join` and `toLocaleString` are writing, kept by the frames that do.
    pub(crate) joining: Vec<Value>,
    /// When garbage is collected.
    pub(crate) gc: Gc,
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
    pub(crate) fn new(script: Arc<Script>, inputs: Inputs, policy: &Policy) -> Self {
        let flow = inputs.clock.flow();
        Self {
            heap: Heap::new(
                Meter::new(policy.limits, Timer::new(inputs.clock, inputs.slice)),
                Atoms::new(&script.registry.names, &script.prelude.code.texts, Arc::clone(&script.code.texts)),
            ),
            stack: CallStack::default(),
            jobs: VecDeque::new(),
            pools: Pools::default(),
            joining: Vec::new(),
            gc: Gc::default(),
            schedule: Schedule::new(flow, policy.timers),
            rejected: Vec::new(),
            unawaited: Unawaited::default(),
            uncaught: None,
            host: HostState { tools: inputs.tools, input: inputs.context, calls: Calls::default() },
            output: Output::default(),
            random: Random::new(inputs.seed),
            stress: Stress::default(),
            realm: Realm::new(script),
        }
    }

    /// Charges a unit of work: see [`Meter::tick`](crate::meter::Meter::tick).
    #[inline(always)]
    pub fn tick(&mut self) -> Result<()> {
        self.heap.meter.tick()
    }

    /// Charges `units` of work of a built-in function: see [`Meter::work`](crate::meter::Meter::work).
    #[inline]
    pub fn work(&mut self, units: usize) -> Result<Charge> {
        self.heap.meter.work(units)
    }

    /// Charges and counts a loop turn: see [`Meter::iteration`](crate::meter::Meter::iteration).
    #[inline(always)]
    pub fn iteration(&mut self) -> Result<()> {
        self.heap.meter.iteration()
    }

    /// Checks the memory limit before a large allocation. Nothing is counted: the heap counts the result, and
    /// [`Heap::hold`] what is temporary.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) -> Result<()> {
        self.heap.meter.check(bytes)
    }
}

impl Metered for Vm {
    fn meter(&self) -> &Meter {
        &self.heap.meter
    }
}
