//! Calls.

use super::{Built, Expression, Local, Node, Slots};
use crate::eval::error;
use crate::eval::iterator;
use crate::eval::native::NativeFn;
use crate::eval::suggest;
use crate::eval::unawaited::{self, PromiseUse};
use crate::eval::vm::Vm;
use crate::heap::frame::FunctionRef;
use crate::meter::buffer::Buffer;
use crate::value::atom::{Atom, known};
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use agentscript_lang::{Span, Walk};
use smallvec::SmallVec;

/// An argument, or an element of an array.
pub struct Argument {
    /// Its value.
    pub value: Expression,
    /// Its position, if it is spread.
    pub spread: Option<Spread>,
}

/// The position of `...value`, on which V8's error for a value that is not iterable depends.
#[derive(Clone, Copy)]
pub enum Spread {
    /// In an array literal.
    Element(Span),
    /// At the end of a call, where nothing else is spread.
    Last(Span),
    /// Elsewhere in a call; the span is that of the callee, where the value is a call.
    Among(Option<Span>),
}

impl Argument {
    /// Evaluate it and append its values.
    pub fn push(&self, vm: &mut Vm, fp: &Slots, items: &mut Buffer<Value>) -> Result<()> {
        let value = self.value.eval(vm, fp)?;
        let Some(spread) = self.spread else { return items.push(vm, value) };
        if !vm.is_iterable(value) {
            return Err(spread.not_iterable(vm, value));
        }
        vm.push_items(value, items)
    }
}

impl Spread {
    /// The error for a value that is not iterable.
    #[cold]
    pub fn not_iterable(self, vm: &mut Vm, value: Value) -> Thrown {
        unawaited::note_use(vm, value, PromiseUse::Iterate, None);
        match self {
            Self::Element(span) => iterator::not_iterable_at(vm, value, span, Walk::Spread),
            Self::Last(span) if value.is_nullish() => {
                let text = error::value_text(vm, span);
                let what = vm.to_text_lossy(value);
                vm.type_error(&format!("{text} is not iterable (cannot read property {what})"))
            }
            Self::Last(_) => vm.type_error("Spread syntax requires ...iterable[Symbol.iterator] to be a function"),
            Self::Among(Some(callee)) => {
                let text = error::value_text(vm, callee);
                vm.type_error(&format!("{text} is not iterable (cannot read property Symbol(Symbol.iterator))"))
            }
            Self::Among(None) => vm.not_iterable(value),
        }
    }
}

/// What is called.
pub enum Callee {
    /// `f(…)` of a variable in a slot
    Local(Local),
    /// `f(…)`
    Value(Expression),
    /// `object.name(…)`
    Member(Expression, Atom),
    /// `object[key](…)`
    Index(Expression, Expression),
    /// A function with its receiver.
    With(Expression, Expression),
    /// `$call(function, receiver, arguments)` of the prelude: the arguments are the only argument.
    Prelude(Expression, Expression),
}

impl Callee {
    /// `f(…)`
    pub fn value(function: Built) -> Self {
        match function {
            Built::Local(local) => Self::Local(local),
            function => Self::Value(function.node()),
        }
    }

    /// The function and its receiver.
    pub fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result<(Value, Value)> {
        match self {
            Self::Local(function) => Ok((function.eval(vm, fp)?, Value::UNDEFINED)),
            Self::Value(function) => Ok((function.eval(vm, fp)?, Value::UNDEFINED)),
            Self::Member(object, name) => {
                let object = object.eval(vm, fp)?;
                Ok((vm.get(object, *name)?, object))
            }
            Self::Index(object, key) => {
                let object = object.eval(vm, fp)?;
                let key = key.eval(vm, fp)?;
                Ok((vm.get_index(object, key)?, object))
            }
            Self::With(function, this) | Self::Prelude(function, this) => {
                let function = function.eval(vm, fp)?;
                Ok((function, this.eval(vm, fp)?))
            }
        }
    }
}

/// A call that may run a function of the script.
pub struct Call {
    /// What is called.
    pub callee: Callee,
    /// With what.
    pub arguments: Box<[Argument]>,
    /// Whether an argument is spread.
    pub spread: bool,
    /// Span of the callee in the source.
    pub callee_span: Span,
}

/// A call of a function known at compile time, with no more arguments than it has parameters. It captures nothing and
/// is not async.
pub struct FixedCall {
    /// What is called.
    pub function: FunctionRef,
    /// With what.
    pub arguments: Box<[Expression]>,
}

impl Call {
    /// The error of a callee that is no function.
    #[cold]
    pub fn not_callable(&self, vm: &mut Vm, function: Value, this: Value) -> Thrown {
        suggest::not_a_function(vm, self.callee_span, function, this)
    }
}

/// Most arguments of a call of a built-in function that are a part of its node.
const INLINE_ARGUMENTS: usize = 2;

/// The arguments of a call of a built-in function.
pub struct Arguments(pub SmallVec<[Expression; INLINE_ARGUMENTS]>);

impl Arguments {
    /// Evaluates them and calls a function with their values.
    #[inline(always)]
    fn pass(&self, vm: &mut Vm, fp: &Slots, call: impl FnOnce(&mut Vm, &[Value]) -> Result) -> Result {
        let arguments = &self.0[..];
        let mut few = [Value::UNDEFINED; 4];
        if arguments.len() <= few.len() {
            for (value, argument) in few.iter_mut().zip(arguments) {
                *value = argument.eval(vm, fp)?;
            }
            return call(vm, &few[..arguments.len()]);
        }
        let mut many = Vec::with_capacity(arguments.len());
        for argument in arguments {
            many.push(argument.eval(vm, fp)?);
        }
        call(vm, &many)
    }
}

/// A call of a built-in function known at compile time: `Math.max(a, b)`
pub struct NativeCall {
    /// What is called.
    pub function: NativeFn,
    /// The receiver.
    pub this: Value,
    /// With what.
    pub arguments: Arguments,
    /// Offset in the source.
    pub at: u32,
    /// Whether the result is a new error, or the promise of a tool call or of several promises, to be located here.
    pub located: bool,
}

impl Node for NativeCall {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        match self.arguments.pass(vm, fp, |vm, values| (self.function)(vm, self.this, values)) {
            Ok(value) => {
                if self.located {
                    vm.locate_result(value, self.at);
                }
                Ok(value)
            }
            Err(thrown) => Err(thrown.at(vm, self.at)),
        }
    }
}

/// `value.push(item)`
pub struct Push {
    /// The receiver.
    pub object: Expression,
    /// The item that is appended.
    pub item: Expression,
    /// Span of the callee in the source.
    pub callee_span: Span,
}

impl Node for Push {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let object = self.object.eval(vm, fp)?;
        let is_plain = object.is(Kind::Array) && !vm.has_own_method(object, known::PUSH);
        let method = if is_plain { Value::UNDEFINED } else { method_of(vm, object, known::PUSH, self.callee_span)? };
        let item = self.item.eval(vm, fp)?;
        // The argument may have frozen the array.
        if is_plain && vm.heap.arrays[object.index()].flags == 0 {
            vm.heap.push(object, item);
            return Ok(Value::number(vm.heap.length(object) as f64));
        }
        let method = if is_plain { vm.get(object, known::PUSH)? } else { method };
        call_method(vm, method, object, &[item], self.callee_span)
    }
}

/// Reads the method of a call.
fn method_of(vm: &mut Vm, object: Value, name: Atom, callee_span: Span) -> Result {
    vm.get(object, name).map_err(|thrown| thrown.at(vm, callee_span.start))
}

/// Calls a method that is a value.
fn call_method(vm: &mut Vm, method: Value, object: Value, arguments: &[Value], callee_span: Span) -> Result {
    let result = if method.is_callable() {
        vm.call_nested(method, object, arguments)
    } else {
        Err(suggest::not_a_function(vm, callee_span, method, object))
    };
    locate_result(vm, result, callee_span.start)
}

/// `value.name(…)` of a method that runs no functions of the script in any family.
pub struct MethodCall {
    /// The receiver.
    pub object: Expression,
    /// Its method.
    pub name: Atom,
    /// With what.
    pub arguments: Arguments,
    /// Span of the callee in the source.
    pub callee_span: Span,
}

impl Node for MethodCall {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let object = self.object.eval(vm, fp)?;
        let is_plain = !object.is(Kind::Object) && !object.is_nullish();
        let method = if is_plain { vm.realm.registry.function(vm.family(object), self.name) } else { None };
        if let Some(function) = method
            && !vm.has_own_method(object, self.name)
        {
            let result = self.arguments.pass(vm, fp, |vm, values| function(vm, object, values));
            return result.map_err(|thrown| thrown.at(vm, self.callee_span.start));
        }
        // The receiver has a method of its own of that name, or none.
        let method = method_of(vm, object, self.name, self.callee_span)?;
        self.arguments.pass(vm, fp, |vm, values| call_method(vm, method, object, values, self.callee_span))
    }
}

/// The result of a call in the middle of a statement; the promise of a tool call is located.
fn locate_result(vm: &mut Vm, result: Result, at: u32) -> Result {
    match result {
        Ok(value) => {
            if value.is(Kind::Promise) {
                vm.locate_call(value, at);
            }
            Ok(value)
        }
        Err(thrown) => Err(thrown.at(vm, at)),
    }
}

/// A call of a built-in with spread arguments.
pub struct SpreadCall {
    /// What is called, with its receiver.
    pub callee: Callee,
    /// With what.
    pub arguments: Box<[Argument]>,
    /// Span of the callee in the source.
    pub callee_span: Span,
}

impl Node for SpreadCall {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let at = self.callee_span.start;
        let (function, this) = self.callee.eval(vm, fp).map_err(|thrown| thrown.at(vm, at))?;
        let mut values = Buffer::new();
        for argument in &self.arguments {
            argument.push(vm, fp, &mut values).map_err(|thrown| thrown.at(vm, at))?;
        }
        call_method(vm, function, this, &values, self.callee_span)
    }
}

/// `new` of a built-in with spread arguments.
pub struct SpreadNew {
    /// Which constructor.
    pub function: NativeFn,
    /// With what.
    pub arguments: Box<[Argument]>,
    /// Offset in the source.
    pub at: u32,
}

impl Node for SpreadNew {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let mut values = Buffer::new();
        for argument in &self.arguments {
            argument.push(vm, fp, &mut values).map_err(|thrown| thrown.at(vm, self.at))?;
        }
        let value = (self.function)(vm, Value::UNDEFINED, &values).map_err(|thrown| thrown.at(vm, self.at))?;
        vm.locate(value, self.at);
        Ok(value)
    }
}

/// `new` of a built-in that is no constructor.
pub struct NotAConstructor {
    /// Its name.
    pub name: String,
    /// Offset in the source.
    pub at: u32,
}

impl Node for NotAConstructor {
    fn eval(&self, vm: &mut Vm, _fp: &Slots) -> Result {
        Err(vm.type_error(&format!("{} is not a constructor", self.name)).at(vm, self.at))
    }
}
