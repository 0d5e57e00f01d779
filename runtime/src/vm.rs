//! The state of a run: what every operation and built-in function works on.

use crate::calls::{Calls, Open, Style};
use crate::code::{Code, FunctionRef, Running, Waiting};
use crate::error::{Result, Thrown};
use crate::error_code::ErrorCode;
use crate::heap::{Heap, Slab};
use crate::host::{Inputs, Message};
use crate::outcome::{Failure, MOST_MESSAGE, shown_bytes};
use crate::promise::Job;
use crate::regexp::Matcher;
use crate::script::Script;
use crate::stack::Stack;
use crate::symbol::{Sym, SymbolStrings, Symbols};
use crate::value::Value;
use hashbrown::HashMap;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The state of a run.
pub struct Vm {
    /// Values.
    pub heap: Heap,
    /// Property names.
    pub symbols: Symbols,
    /// The strings of symbols, as far as they were asked for.
    pub(crate) symbol_strings: SymbolStrings,
    /// What runs.
    pub script: Arc<Script>,
    /// The same, for [`Vm::borrow_script`].
    pub(crate) scripts: Vec<Arc<Script>>,
    pub(crate) prelude: &'static Code,
    /// The function that is being evaluated.
    pub current: FunctionRef,
    /// The frames on the stack, the one that is executed last.
    pub(crate) frames: Vec<Running>,
    /// The slots of frames, while none is executed.
    pub(crate) stack: Option<Box<Stack>>,
    /// Frames of async functions that wait.
    pub(crate) waiting: Slab<Option<Waiting>>,
    /// Slots of a frame that waited, to be used again.
    pub(crate) spare: Option<Box<[Cell<Value>]>>,
    /// Bindings of the main function that inner functions use.
    pub(crate) globals: Vec<Value>,
    /// Cached arrays of tagged templates.
    pub(crate) templates: Vec<Value>,
    /// Programs of the regular expression literals that were evaluated, by their number.
    pub(crate) literals: Vec<Option<Arc<crate::regexp::Program>>>,
    /// Shapes of object literals; 0: not known yet.
    pub(crate) shapes: Vec<u32>,
    /// Function objects of the prelude, by index.
    pub(crate) prelude_closures: HashMap<FunctionRef, Value>,
    /// The promise of the main function.
    pub(crate) main: Option<Value>,
    /// The promise that the frames on the stack wait for; a slot of theirs holds it.
    pub(crate) blocked: Option<Value>,
    /// Bytes of what is never freed before the run ends: property names, inputs of tool calls.
    pub(crate) kept_bytes: usize,
    /// Steps between two looks at the clock.
    pub(crate) grant: i64,
    /// Whether garbage is collected at each look at the clock, for tests.
    pub(crate) stress: bool,
    /// Whether all that may be unread of what the host gives is, whatever it is called and however short, for tests.
    pub(crate) leaves_unread: bool,
    /// Whether errors have no frames, for tests.
    pub(crate) hide_frames: bool,
    /// The matcher of regular expressions, kept for its memory.
    pub(crate) matcher: Matcher,
    /// Regular expressions that were made from text.
    pub(crate) regexps: crate::builtins::regexp::Cache,
    /// Bytes of texts that are being put together.
    pub(crate) scratch: Vec<u8>,
    /// Names of objects that were read from JSON or written, kept until the run waits.
    pub(crate) records: Option<Box<crate::json::Records>>,
    /// Whether a function of the script has run in an implicit conversion since garbage was last looked for.
    pub(crate) converted: bool,
    /// Where an operation was begun again after garbage was collected for it: how many frames there were, and where
    /// the last one stood. Nothing, once garbage was collected otherwise.
    pub(crate) repeated: Option<(usize, u32)>,
    /// Microtasks.
    pub(crate) jobs: VecDeque<Job>,
    /// How deep implicit calls of script functions by operators nest.
    pub(crate) nesting: u32,
    /// How many frames are below the innermost of those calls.
    pub(crate) nested_above: usize,
    /// Tool calls and what the script said.
    pub(crate) host: HostState,
}

/// What a run shares with its host.
pub struct HostState {
    pub(crate) inputs: Inputs,
    /// Set by others when nobody wants the result any more.
    pub(crate) cancelled: Option<Arc<AtomicBool>>,
    /// The value of `codecallContext`, once it was asked for.
    pub(crate) context: Option<Value>,
    pub(crate) calls: Calls,
    /// What the script logged.
    pub(crate) logs: Vec<String>,
    pub(crate) log_bytes: usize,
    pub(crate) log_calls: u64,
    pub(crate) console: crate::builtins::console::State,
    /// Messages that the host has not taken yet, and what they cost.
    pub(crate) messages: Vec<Message>,
    pub(crate) message_bytes: usize,
    /// State of the random generator.
    pub(crate) random: [u64; 2],
    /// When the run began, by the host's clock.
    pub(crate) began: Duration,
    /// When the present slice began.
    pub(crate) resumed: Duration,
    /// Script time before the present slice.
    pub(crate) spent: Duration,
    /// Whether the slice is over and the next pause point has to pause.
    pub(crate) slice_over: bool,
    /// Steps at the last look at the clock.
    pub(crate) looked_at: u64,
    /// Whether every look at the clock ends the slice, for tests.
    pub(crate) always_pause: bool,
}

/// Steps between two looks at the clock.
pub(crate) const GRANT: i64 = 4096;

impl Vm {
    /// One unit of work has been done: a statement, a loop turn, a call. Settles the account when
    /// the fuel is used up; never collects.
    #[inline(always)]
    pub fn tick(&mut self) -> Result<()> {
        self.heap.meter.fuel -= 1;
        if self.heap.meter.fuel < 0 { self.settle() } else { Ok(()) }
    }

    /// A built-in function is about to do, or has done, `units` of work: items, characters, entries.
    #[inline]
    pub fn work(&mut self, units: usize) -> Result<()> {
        self.heap.meter.fuel -= i64::try_from(units).unwrap_or(i64::MAX / 4);
        if self.heap.meter.fuel < 0 { self.settle() } else { Ok(()) }
    }

    /// A loop body is entered.
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

    /// Ask for memory before allocating much at once: an error where it would not fit. Nothing is counted by this: the
    /// heap does so when it gets what was made, and [`Vm::hold`] while it is being made.
    #[inline]
    pub fn reserve(&mut self, bytes: usize) -> Result<()> {
        self.heap.meter.check(bytes)
    }

    /// The end of the run at its memory limit.
    #[cold]
    pub fn memory_limit(&self) -> Thrown {
        self.heap.meter.memory_limit()
    }

    /// Account for the fuel that was used, check the limits, grant more.
    #[cold]
    pub(crate) fn settle(&mut self) -> Result<()> {
        self.settle_account(true)
    }

    /// The same; between two operations garbage is collected before too much memory is refused.
    pub(crate) fn settle_account(&mut self, in_operation: bool) -> Result<()> {
        let meter = &mut self.heap.meter;
        meter.steps = meter.steps.saturating_add_signed(meter.granted - meter.fuel);
        (meter.granted, meter.fuel) = (0, 0);
        if meter.steps > meter.limits.max_steps {
            let limit = meter.limits.max_steps;
            return Err(Thrown::limit(ErrorCode::StepLimit, format!("The script exceeded its limit of {limit} steps")));
        }
        if meter.in_use() > meter.most_bytes() && (in_operation || self.nesting > 0) {
            return Err(self.memory_limit());
        }
        // A built-in function in the middle of its work settles at every step from the end of the slice on. Steps
        // are given back too, by walks that are left.
        if !self.host.slice_over || meter.steps.saturating_sub(self.host.looked_at) >= GRANT as u64 {
            self.host.looked_at = meter.steps;
            self.check_time()?;
        }
        // Where the slice is over or a collection is due, the next tick has to settle again until that was
        // done: a built-in function would use up what is granted, and nobody would look.
        if !self.host.slice_over && self.heap.meter.bytes <= self.heap.meter.collect_at {
            self.refuel();
        }
        Ok(())
    }

    /// Grant fuel until the next look at the clock.
    pub(crate) fn refuel(&mut self) {
        let meter = &mut self.heap.meter;
        let left = meter.limits.max_steps.saturating_sub(meter.steps());
        meter.steps = meter.steps();
        meter.granted = self.grant.min(i64::try_from(left).unwrap_or(GRANT));
        meter.fuel = meter.granted;
    }

    /// Check the limits of time, whether somebody has cancelled the run, and whether the slice is over.
    pub(crate) fn check_time(&mut self) -> Result<()> {
        let host = &mut self.host;
        if host.cancelled.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(Thrown::stop(cancelled()));
        }
        let now = host.inputs.clock.monotonic();
        let slice = now.saturating_sub(host.resumed);
        let limits = &self.heap.meter.limits;
        if host.spent + slice > Duration::from_millis(limits.timeout_ms) {
            return Err(timeout(limits.timeout_ms));
        }
        if now.saturating_sub(host.began) > Duration::from_millis(limits.max_duration_ms) {
            return Err(timeout(limits.max_duration_ms));
        }
        if host.always_pause || host.inputs.slice.is_some_and(|limit| slice > limit) {
            host.slice_over = true;
        }
        Ok(())
    }

    /// What runs, to look into while the rest changes; it is given back by [`Vm::return_script`]. To
    /// count references for every call would cost more than the call.
    #[inline]
    pub(crate) fn borrow_script(&mut self) -> Arc<Script> {
        self.scripts.pop().unwrap_or_else(|| Arc::clone(&self.script))
    }

    /// The script is not looked into any more.
    #[inline]
    pub(crate) fn return_script(&mut self, script: Arc<Script>) {
        self.scripts.push(script);
    }

    /// Count bytes that stay until the run ends.
    pub(crate) fn keep_bytes(&mut self, bytes: usize) {
        self.kept_bytes += bytes;
        self.heap.meter.add_bytes(bytes);
    }

    /// Bytes of that kind were freed.
    pub(crate) fn release_bytes(&mut self, bytes: usize) {
        self.kept_bytes = self.kept_bytes.saturating_sub(bytes);
        let meter = &mut self.heap.meter;
        meter.bytes = meter.bytes.saturating_sub(bytes);
    }

    /// The string of a symbol.
    #[inline]
    pub fn symbol_string(&mut self, symbol: Sym) -> Value {
        match self.symbol_strings.get(symbol) {
            Some(string) => string,
            None => self.make_symbol_string(symbol),
        }
    }

    #[cold]
    fn make_symbol_string(&mut self, symbol: Sym) -> Value {
        let index = symbol.0 as usize;
        let registry = crate::builtins::registry::registry();
        let string = if let Some(&(start, length)) = registry.ranges.get(index) {
            self.heap.builtin_string(start, length)
        } else if let Some((start, length)) = self.symbols.program_range(symbol) {
            self.heap.program_string(start, length)
        } else {
            let text = self.symbols.text(symbol);
            self.heap.new_string(text)
        };
        let bytes = self.symbol_strings.set(symbol, string);
        self.keep_bytes(bytes);
        string
    }

    /// The symbol of a string.
    #[inline]
    pub fn intern(&mut self, string: Value) -> Sym {
        let (symbol, bytes) = self.symbols.intern(self.heap.bytes(string));
        if bytes > 0 {
            self.keep_bytes(bytes);
        }
        symbol
    }

    /// The symbol of a text.
    pub fn intern_text(&mut self, text: &str) -> Sym {
        let (symbol, bytes) = self.symbols.intern(text.as_bytes());
        if bytes > 0 {
            self.keep_bytes(bytes);
        }
        symbol
    }

    /// A new string of a text.
    pub fn string(&mut self, text: &str) -> Value {
        self.heap.new_string(text.as_bytes())
    }

    /// The text of a symbol, for messages: a long one is cut.
    pub fn symbol_text(&self, symbol: Sym) -> String {
        shown_bytes(self.symbols.text(symbol), MOST_MESSAGE)
    }

    /// A random number in [0, 1): xorshift128+, as V8's, seeded by the host.
    pub fn random(&mut self) -> f64 {
        let [mut a, b] = self.host.random;
        a ^= a << 23;
        a ^= a >> 17;
        a ^= b ^ (b >> 26);
        self.host.random = [b, a];
        (a.wrapping_add(b) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Note a call of a tool, by its name, for the host; gives the promise of its result.
    pub(crate) fn add_call(
        &mut self,
        (tool, name): (Value, String),
        input: String,
        timeout_ms: u64,
        style: Style,
    ) -> Result {
        let limit = self.heap.meter.limits.max_tool_calls;
        if limit > 0 && self.host.calls.made() >= limit {
            return Err(Thrown::limit(
                ErrorCode::MaxToolCallsExceeded,
                format!("The script exceeded its limit of {limit} tool calls; fetch more per call or filter first"),
            ));
        }
        let promise = self.heap.new_promise();
        let open = Open { tool, input: input.as_str().into(), promise, style };
        self.keep_bytes(open.cost());
        self.host.calls.add(name, input, timeout_ms, open);
        Ok(promise)
    }
}

/// The end of a run that nobody wants the result of any more.
#[cold]
pub(crate) fn cancelled() -> Failure {
    Failure::of(ErrorCode::ExecutionAborted, "The run was cancelled")
}

/// The end of the run at a limit of time.
#[cold]
fn timeout(limit_ms: u64) -> Thrown {
    Thrown::stop(Failure::of(ErrorCode::Timeout, format!("Script execution timed out after {limit_ms}ms")))
}
