//! The state of a run: what every operation and built-in function works on.

use crate::atoms::{AtomStrings, Atoms};
use crate::call_stack::CallStack;
use crate::calls::Calls;
use crate::charge::Account;
use crate::error_code::ErrorCode;
use crate::gc::Gc;
use crate::heap::{Heap, Texts};
use crate::host::{Inputs, Tools};
use crate::limits::Policy;
use crate::output::Output;
use crate::pools::Pools;
use crate::promise::Job;
use crate::random::Random;
use crate::realm::Realm;
use crate::schedule::Schedule;
use crate::script::Script;
use crate::stress::Stress;
use crate::thrown::{Result, Thrown};
use crate::timer::Timer;
use crate::unawaited::Unawaited;
use crate::value::Value;
use std::collections::VecDeque;
use std::sync::Arc;

/// The state of a run.
pub struct Vm {
    /// Values, and the meter that counts them.
    pub heap: Heap,
    /// Property names.
    pub atoms: Atoms,
    /// The strings of those property names that were needed as values.
    pub(crate) atom_strings: AtomStrings,
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
    pub(crate) fn new(script: Arc<Script>, inputs: Inputs, policy: &Policy) -> Self {
        let limits = policy.limits;
        let texts = &script.code.texts;
        Self {
            heap: Heap::new(limits, texts),
            atoms: Atoms::new(Arc::clone(texts)),
            atom_strings: AtomStrings::default(),
            stack: CallStack::default(),
            jobs: VecDeque::new(),
            pools: Pools::default(),
            joining: Vec::new(),
            gc: Gc::default(),
            schedule: Schedule::new(inputs.clock.flow(), policy.timers),
            rejected: Vec::new(),
            unawaited: Unawaited::default(),
            uncaught: None,
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
        let limits = &self.heap.meter.limits;
        self.timer.check(limits)?;
        self.schedule.check(limits)
    }

    /// Charge a unit of work: a statement, a loop turn, a call. Settles when the fuel is used up; never collects.
    #[inline(always)]
    pub fn tick(&mut self) -> Result<()> {
        self.heap.meter.fuel -= 1;
        if self.heap.meter.fuel < 0 { self.settle() } else { Ok(()) }
    }

    /// Charge `units` of work of a built-in function: items, characters, entries.
    #[inline]
    pub fn work(&mut self, units: usize) -> Result<()> {
        self.heap.meter.fuel -= i64::try_from(units).unwrap_or(i64::MAX / 4);
        if self.heap.meter.fuel < 0 { self.settle() } else { Ok(()) }
    }

    /// Charge and count a loop turn.
    #[inline(always)]
    pub fn iteration(&mut self) -> Result<()> {
        let meter = &mut self.heap.meter;
        meter.iterations += 1;
        if meter.iterations > meter.limits.max_iterations { Err(self.iteration_limit()) } else { self.tick() }
    }

    #[cold]
    fn iteration_limit(&self) -> Thrown {
        let limit = self.heap.meter.limits.max_iterations;
        Thrown::limit(
            ErrorCode::IterationLimit,
            format!("The script exceeded its iteration limit of {limit} loop turns; loop over less data"),
        )
    }

    /// Check the memory limit before a large allocation. Nothing is counted: the heap counts the result, and
    /// [`Vm::hold`] what is temporary.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) -> Result<()> {
        self.heap.meter.check(bytes)
    }

    /// The end of the run at its memory limit.
    #[cold]
    pub fn memory_limit(&self) -> Thrown {
        self.heap.meter.memory_limit()
    }

    /// Settle: account for used fuel, check the limits, grant more.
    #[cold]
    pub(crate) fn settle(&mut self) -> Result<()> {
        self.settle_account(true)
    }

    /// The same. Between two operations the memory limit is not enforced here, because a collection comes first.
    pub(crate) fn settle_account(&mut self, in_operation: bool) -> Result<()> {
        self.texts().1.settle(in_operation)
    }

    /// Grant fuel until the next look at the clock.
    pub(crate) fn refuel(&mut self) {
        self.heap.meter.refuel();
    }

    /// The texts of the heap, and the account to charge what reads them.
    pub fn texts(&mut self) -> (Texts<'_>, Account<'_>) {
        let is_nested = self.stack.nesting > 0;
        let (texts, meter) = self.heap.texts();
        (texts, Account { meter, timer: &mut self.timer, schedule: &self.schedule, is_nested })
    }
}
