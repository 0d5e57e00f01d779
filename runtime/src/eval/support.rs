//! Support for nodes: names and source texts for messages, iteration, copying.

use crate::eval::execute::function_of;
use crate::eval::native::ClosureFn;
use crate::eval::node::OpKind;
use crate::eval::property::PropertyKey;
use crate::eval::unawaited;
use crate::eval::unawaited::PromiseUse;
use crate::eval::vm::Vm;
use crate::heap::frame::{Frame, FunctionRef};
use crate::heap::{Action, NativeClosure};
use crate::interface::outcome::{MAX_MESSAGE_BYTES, cut_message_bytes};
use crate::meter::timer::timed_out;
use crate::value::atom::{Atom, SYMBOLS, known};
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use agentscript_lang::program::ForEach;
use agentscript_lang::{Span, Walk};
use std::sync::Arc;
use std::time::Duration;

/// Work that takes no longer than this needs no check of the clock before it.
const UNNOTICED: Duration = Duration::from_millis(1);

impl Vm {
    /// Charge for `steps` of work that a library does in one piece, each of about so many nanoseconds: it cannot be
    /// interrupted, so it does not begin if the time left is too short.
    pub fn charge_piece(&mut self, steps: usize, nanos: u64) -> Result<()> {
        self.work(steps)?;
        let needed = Duration::from_nanos((steps as u64).saturating_mul(nanos));
        if needed < UNNOTICED {
            return Ok(());
        }
        let limit_ms = self.heap.meter.limits.timeout_ms;
        if self.heap.meter.timer.script_time() + needed <= Duration::from_millis(limit_ms) {
            return Ok(());
        }
        Err(timed_out(limit_ms))
    }

    /// The name of a function of the script; empty for the prelude.
    pub fn function_name(&self, code: FunctionRef) -> String {
        match function_of(&self.realm.script.code, self.realm.prelude, code).name {
            Some(name) if !code.is_prelude() => self.heap.atom_text(name),
            _ => String::new(),
        }
    }

    /// The compiled function that a reference stands for.
    pub fn function(&self, code: FunctionRef) -> &crate::eval::code::Function {
        function_of(&self.realm.script.code, self.realm.prelude, code)
    }

    /// The class of a function object, as its tag and `console.log` name it.
    pub fn function_class(&self, function: Value) -> &'static str {
        if !function.is(Kind::Function) {
            return "Function";
        }
        let function = self.function(self.heap.closures[function.index()].code);
        match (function.is_async, function.is_generator) {
            (false, false) => "Function",
            (true, false) => "AsyncFunction",
            (false, true) => "GeneratorFunction",
            (true, true) => "AsyncGeneratorFunction",
        }
    }

    /// The own properties whose keys are symbols.
    pub fn own_symbols(&mut self, object: Value) -> Result<impl Iterator<Item = (Atom, Value)> + use<>> {
        let mut found = [None; SYMBOLS.len()];
        if self.realm.script.code.iterables {
            for (slot, (symbol, _)) in found.iter_mut().zip(SYMBOLS) {
                *slot = self.own_property(object, PropertyKey::Name(symbol))?.map(|value| (symbol, value));
            }
        }
        Ok(found.into_iter().flatten())
    }

    /// The `name` of a callable, for messages: a long one is cut.
    pub fn callable_name(&mut self, function: Value) -> String {
        let name = self.callable_name_string(function);
        cut_message_bytes(self.heap.bytes(name), MAX_MESSAGE_BYTES)
    }

    /// The `name` of a callable.
    pub fn callable_name_string(&mut self, function: Value) -> Value {
        let own = match function.kind() {
            Kind::Function => {
                let closure = &self.heap.closures[function.index()];
                let code = closure.code;
                let own = || {
                    function_of(&self.realm.script.code, self.realm.prelude, code).name.filter(|_| !code.is_prelude())
                };
                closure.name.or_else(own)
            }
            Kind::NativeClosure if let Some((_, own)) = self.applied(function) => return own[0],
            Kind::Native => return self.heap.string(self.realm.registry.natives[function.index()].name),
            Kind::Tool => return Value::handle(Kind::String, function.payload()),
            Kind::HostFunction => {
                let script = Arc::clone(&self.realm.script);
                return self.heap.string(&script.linker.row(function.payload()).name);
            }
            _ => None,
        };
        self.heap.atom_string(own.unwrap_or(known::EMPTY))
    }

    /// The `length` of a callable.
    pub fn callable_length(&self, function: Value) -> u32 {
        match function.kind() {
            Kind::Function => {
                let code = self.heap.closures[function.index()].code;
                function_of(&self.realm.script.code, self.realm.prelude, code).length
            }
            Kind::Native => u32::from(self.realm.registry.natives[function.index()].length),
            Kind::HostFunction => u32::from(self.realm.script.linker.row(function.payload()).length),
            Kind::NativeClosure => match self.applied(function) {
                Some((target, own)) => self.callable_length(target).saturating_sub(own.len() as u32 - 1),
                None => match self.heap.native_closures[function.index()].action {
                    Action::Native(native) => native.downcast_ref::<ClosureFn>().map_or(0, |native| native.length),
                    Action::Apply => 0,
                },
            },
            _ => 1,
        }
    }

    /// The target of a bound function, and its name with its first arguments.
    pub fn applied(&self, function: Value) -> Option<(Value, &[Value])> {
        let NativeClosure { action: Action::Apply, data: [target, _, own] } =
            self.heap.native_closures[function.index()]
        else {
            return None;
        };
        Some((target, self.heap.items(own)))
    }

    /// The source offset of a waiting frame.
    pub(crate) fn offset_of<S>(&self, frame: &Frame<S>) -> u32 {
        let function = function_of(&self.realm.script.code, self.realm.prelude, frame.code);
        let pc = frame.pc.saturating_sub(1) as usize;
        function.ops.get(pc).map_or(function.span.start, |op| op.at)
    }

    /// The source position of the call that the script is in.
    pub(crate) fn calling_place(&self) -> Option<(FunctionRef, u32)> {
        let frame = self.stack.frames.iter().rev().find(|frame| !frame.code.is_prelude())?;
        Some((frame.code, self.offset_of(frame)))
    }

    /// The operation of the script that the prelude works for.
    pub(crate) fn calling_op(&self) -> Option<&OpKind> {
        let frame = self.stack.frames.iter().rev().find(|frame| !frame.code.is_prelude())?;
        let function = function_of(&self.realm.script.code, self.realm.prelude, frame.code);
        Some(&function.ops.get(frame.pc.checked_sub(1)? as usize)?.kind)
    }

    /// The source position at which the main function waits.
    pub(crate) fn main_wait(&self) -> Option<(FunctionRef, u32)> {
        let main = FunctionRef::script(0);
        (0..self.stack.suspended.len())
            .filter_map(|number| self.stack.suspended[number].as_ref())
            .find(|frame| frame.code == main)
            .map(|frame| (main, self.offset_of(frame)))
    }

    /// The message for a callee that is no function.
    pub fn not_a_function_text(&self, callee: Span) -> String {
        if self.realm.script.code.iterated.contains(&callee) {
            let text = agentscript_lang::iterated_callee_text(self.realm.script.source(), callee);
            format!("{text} is not a function or its return value is not iterable")
        } else {
            format!("{} is not a function", self.callee_text(callee))
        }
    }

    /// The text of a callee as V8 prints it in messages.
    pub fn callee_text(&self, span: Span) -> String {
        agentscript_lang::callee_text(self.realm.script.source(), span)
    }

    /// The text of an expression as V8 prints it in messages about its value.
    pub fn value_text(&self, span: Span) -> String {
        if self.stack.current.is_prelude() {
            "value".into()
        } else {
            agentscript_lang::value_text(self.realm.script.source(), span)
        }
    }

    /// Whether a value that is no plain object has a method of its own of that name.
    #[inline]
    pub fn has_own_method(&self, object: Value, name: Atom) -> bool {
        match object.kind() {
            Kind::Native => self.realm.registry.property(object.payload(), name).is_some(),
            Kind::App => true,
            _ if self.heap.extras.is_empty() => false,
            _ => self
                .heap
                .extras
                .get(&object)
                .is_some_and(|&extra| self.heap.own(Value::handle(Kind::Object, extra), name).is_some()),
        }
    }

    /// The iterator of the value of an expression.
    pub fn iterator_of(&mut self, value: Value, span: Span, walk: Walk) -> Result {
        if self.is_iterable(value) {
            return self.iterate(value);
        }
        Err(self.not_iterable_at(value, span, walk).at(self, span.start))
    }

    /// The error for an expression whose value is not iterable.
    #[cold]
    pub fn not_iterable_at(&mut self, value: Value, span: Span, walk: Walk) -> Thrown {
        unawaited::note_use(self, value, PromiseUse::Iterate, Some(span.start));
        let text = match self.stack.current.is_prelude() {
            true => None,
            false => agentscript_lang::iterable_text(self.realm.script.source(), span, walk),
        };
        match text {
            Some(text) => self.type_error(&format!("{text} is not iterable")),
            None => self.not_iterable(value),
        }
    }

    /// The iterator of a loop over items.
    pub(crate) fn begin_iteration(&mut self, kind: ForEach, value: Value, span: Span) -> Result {
        match kind {
            ForEach::In => self.for_in_keys(value),
            ForEach::Of => self.iterator_of(value, span, Walk::Loop),
            ForEach::AwaitOf => {
                if self.is_iterable(value) {
                    return self.iterate(value);
                }
                unawaited::note_use(self, value, PromiseUse::Iterate, Some(span.start));
                let thrown = if value.is_nullish() {
                    self.no_properties(value, "read", "reading", Some("Symbol(Symbol.asyncIterator)"))
                } else {
                    let text = self.value_text(span);
                    self.type_error(&format!("{text} is not async iterable"))
                };
                Err(thrown.at(self, span.start))
            }
        }
    }

    /// Copy the own enumerable properties of a value to an object, but for some keys: spread.
    pub fn copy_properties(&mut self, source: Value, target: Value, taken: &[PropertyKey]) -> Result<()> {
        if !source.is_object() && !source.is_string() {
            return Ok(());
        }
        if source.is(Kind::Promise) {
            unawaited::note_use(self, source, PromiseUse::Properties, None);
        }
        let keys = self.charged_keys(source, false)?;
        self.work(keys.len() / 8 * taken.len())?;
        for key in keys {
            self.work(1)?;
            if !taken.contains(&key)
                && let Some(value) = self.own_property(source, key)?
            {
                self.define(target, key, value);
            }
        }
        for (symbol, value) in self.own_symbols(source)? {
            let key = PropertyKey::Name(symbol);
            if !taken.contains(&key) {
                self.define(target, key, value);
            }
        }
        Ok(())
    }
}
