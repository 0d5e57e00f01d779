//! Iterating over iterables of the script: each call of theirs is a frame on the stack.

use super::{Context, Done};
use crate::eval::activation::Called;
use crate::eval::code::Function;
use crate::eval::error;
use crate::eval::execute::{self, call};
use crate::eval::generator::{self, Resumed, Resumption};
use crate::eval::iterator::IterationStart;
use crate::eval::node::{CLOSING, Delegate, GetIterator, Node, OpKind, Spread};
use crate::eval::stack::Slots;
use crate::eval::vm::Vm;
use crate::heap::frame::{After, Resumer};
use crate::heap::{Iterator, Yields};
use crate::value::atom::known;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};
use agentscript_lang::Walk;
use agentscript_lang::program::Slot;
use std::cell::Cell;

/// Call a function whose result goes into a slot; the frame goes on at `pc`.
#[expect(clippy::too_many_arguments, reason = "what an operation has at hand")]
fn call_into(
    vm: &mut Vm,
    context: &Context<'_>,
    (callee, this, arguments): (Value, Value, &[Value]),
    dst: Slot,
    pc: usize,
    function: &Function,
    fp: &Slots,
    at: u32,
) -> Result<Done> {
    let next = execute::mark(vm, pc, dst).after(function.slots);
    if !callee.is_callable() {
        let what = vm.describe_typed(callee);
        return Err(vm.type_error(&format!("{what} is not a function")).at(vm, at));
    }
    let called = vm.call(callee, this, arguments, After::Call).map_err(|thrown| thrown.at(vm, at))?;
    match call::enter_called(vm, context, called, next, at)? {
        Some(value) => {
            fp[dst.0 as usize].set(value);
            Ok(Done::Op)
        }
        None => Ok(Done::Frame),
    }
}

/// Resume a generator whose values go into a slot.
#[expect(clippy::too_many_arguments, reason = "what an operation has at hand")]
fn resume_into(
    vm: &mut Vm,
    context: &Context<'_>,
    (generator, how, value): (Value, Resumption, Value),
    dst: Slot,
    pc: usize,
    function: &Function,
    fp: &Slots,
    at: u32,
) -> Result<Done> {
    let next = execute::mark(vm, pc, dst).after(function.slots);
    let resumed = generator::resume_generator(vm, generator, how, value, Resumer::Loop);
    match resumed.map_err(|thrown| thrown.at(vm, at))? {
        Resumed::Ended(value) => {
            fp[dst.0 as usize].set(value);
            Ok(Done::Op)
        }
        Resumed::Frame(frame) => {
            if let Some(value) = call::enter_called(vm, context, Called::Frame(frame), next, at)? {
                fp[dst.0 as usize].set(value);
            }
            Ok(Done::Frame)
        }
    }
}

/// `GetIterator`: `pc` is that of the operation behind it, which a call of the script comes back to.
pub(super) fn get_iterator(
    vm: &mut Vm,
    context: &Context<'_>,
    get: &GetIterator,
    pc: &mut usize,
    function: &Function,
    fp: &Slots,
    at: u32,
) -> Result<Done> {
    let value = get.value.eval(vm, fp)?;
    // An asynchronous walker has two operations behind this one and a jump between them.
    let (synchronous, own, behind) = if get.walker.is_async() { (*pc, *pc + 2, *pc + 3) } else { (*pc, *pc, *pc + 1) };
    match vm.begin_walk(value, get.walker).map_err(|thrown| thrown.at(vm, at))? {
        IterationStart::Record(record) => {
            fp[get.slot.0 as usize].set(record);
            *pc = behind;
            Ok(Done::Op)
        }
        IterationStart::Call { method, is_async } => {
            *pc = if is_async == get.walker.is_async() { own } else { synchronous };
            call_into(vm, context, (method, value, &[]), get.slot, *pc, function, fp, at)
        }
    }
}

/// Whether an iterator record is one of the script.
pub(super) fn is_script_record(vm: &Vm, record: Value) -> bool {
    record.is(Kind::Iterator) && matches!(vm.heap.iterators[record.index()].yields, Yields::Script | Yields::Generator)
}

/// Whether it is one whose `next` gives objects.
pub(super) fn is_protocol(vm: &Vm, record: Value) -> bool {
    record.is(Kind::Iterator) && vm.heap.iterators[record.index()].yields == Yields::Script
}

/// The iterator and its `next` in a record.
fn parts_of_record(vm: &Vm, source: Value) -> (Value, Value) {
    let part = |index| vm.heap.at(source, index).unwrap_or(Value::UNDEFINED);
    (part(0), part(1))
}

/// Call `next` of an iterator of the script; `None` where it is a built-in one, or at its end.
pub(super) fn step(
    vm: &mut Vm,
    context: &Context<'_>,
    (iterator, item): (Slot, Slot),
    pc: &mut usize,
    function: &Function,
    fp: &Slots,
    at: u32,
) -> Result<Option<Done>> {
    let record = fp[iterator.0 as usize].get();
    let &Iterator { source, yields, .. } = &vm.heap.iterators[record.index()];
    match yields {
        _ if source.is_undefined() => Ok(None),
        Yields::Generator => {
            let resume = (source, Resumption::Next, Value::UNDEFINED);
            resume_into(vm, context, resume, item, *pc, function, fp, at).map(Some)
        }
        Yields::Script => {
            let (object, next) = parts_of_record(vm, source);
            if !next.is_callable()
                && let Some(text) = spread_text(vm)
            {
                return Err(vm.type_error(&format!("{text} is not iterable")).at(vm, at));
            }
            // An iterator that throws is not closed.
            vm.heap.iterators[record.index()].position = 1;
            call_into(vm, context, (next, object, &[]), item, *pc, function, fp, at).map(Some)
        }
        Yields::Keys | Yields::Values | Yields::Entries | Yields::Matches | Yields::ForIn => Ok(None),
    }
}

/// Take the item out of what `next` has given; gives whether the iterator is at its end.
pub(super) fn took(vm: &mut Vm, record: Value, item: &Cell<Value>) -> Result<bool> {
    let result = item.get();
    if vm.heap.iterators[record.index()].yields == Yields::Script {
        if !result.is_object() {
            return Err(vm.not_a_result(result));
        }
        let done = vm.get(result, known::DONE)?;
        if !vm.truthy(done) {
            let value = vm.get(result, known::VALUE)?;
            vm.heap.iterators[record.index()].position = 0;
            item.set(value);
            return Ok(false);
        }
    }
    vm.heap.iterators[record.index()].source = Value::UNDEFINED;
    item.set(Value::UNDEFINED);
    Ok(true)
}

/// `IteratorClose` (ECMAScript 7.4.11): call `return`, if there is something to call.
#[expect(clippy::too_many_arguments, reason = "what an operation has at hand")]
pub(super) fn close(
    vm: &mut Vm,
    context: &Context<'_>,
    record: Value,
    result: Slot,
    (pc, none): (&mut usize, u32),
    function: &Function,
    fp: &Slots,
    at: u32,
) -> Result<Done> {
    let &Iterator { source, yields, position, .. } = &vm.heap.iterators[record.index()];
    if source.is_undefined() || position != 0 {
        *pc = none as usize;
        return Ok(Done::Op);
    }
    vm.heap.iterators[record.index()].source = Value::UNDEFINED;
    if yields == Yields::Generator {
        let method = vm.get(source, known::RETURN)?;
        return call_into(vm, context, (method, source, &[]), result, *pc, function, fp, at);
    }
    let (object, _) = parts_of_record(vm, source);
    let method = vm.get(object, known::RETURN)?;
    if method.is_nullish() {
        *pc = none as usize;
        return Ok(Done::Op);
    }
    call_into(vm, context, (method, object, &[]), result, *pc, function, fp, at)
}

/// A value that is spread: an array of its items.
pub(super) fn list(
    vm: &mut Vm,
    context: &Context<'_>,
    (slot, spread, copies): (Slot, Spread, bool),
    pc: &mut usize,
    function: &Function,
    fp: &Slots,
    at: u32,
) -> Result<Done> {
    let value = fp[slot.0 as usize].get();
    if vm.is_script_iterable(value) {
        let next = execute::mark(vm, *pc, slot).after(function.slots);
        let called = vm.call_intrinsic("$listed", Value::UNDEFINED, &[value]);
        let called = called.map_err(|thrown| thrown.at(vm, at))?;
        return Ok(match call::enter_called(vm, context, called, next, at)? {
            Some(list) => {
                fp[slot.0 as usize].set(list);
                Done::Op
            }
            None => Done::Frame,
        });
    }
    if !vm.is_iterable(value) || vm.lacks_iterator(value)? {
        return Err(spread.not_iterable(vm, value).at(vm, at));
    }
    if copies {
        let items = vm.iterate_to_list(value)?;
        fp[slot.0 as usize].set(vm.heap.array_of(items));
    }
    Ok(Done::Op)
}

/// The text of what the script spreads in an array, where the prelude takes its items.
#[cold]
fn spread_text(vm: &Vm) -> Option<String> {
    let span = match error::calling_op(vm)? {
        OpKind::List(_, Spread::Element(span), _) if vm.stack.current.is_prelude() => *span,
        _ => return None,
    };
    agentscript_lang::iterable_text(vm.realm.script.source(), span, Walk::Spread)
}

// ---- yield* --------------------------------------------------------------------------------

/// Pass what the generator was resumed with on to the inner iterator (ECMAScript 15.5.5).
pub(super) fn delegate(
    vm: &mut Vm,
    context: &Context<'_>,
    delegate: &Delegate,
    pc: &mut usize,
    function: &Function,
    fp: &Slots,
    at: u32,
) -> Result<Done> {
    let record = fp[delegate.iterator.0 as usize].get();
    let received = fp[delegate.received.0 as usize].get();
    let how = match fp[delegate.mode.0 as usize].get().as_number() as u8 {
        0 => Resumption::Next,
        1 => Resumption::Throw,
        _ => Resumption::Return,
    };
    let result = &fp[delegate.result.0 as usize];
    let &Iterator { source, yields, .. } = &vm.heap.iterators[record.index()];
    if yields == Yields::Generator {
        return resume_into(vm, context, (source, how, received), delegate.result, *pc, function, fp, at);
    }
    let is_script = yields == Yields::Script;
    let (object, next) = if is_script { parts_of_record(vm, source) } else { (Value::UNDEFINED, Value::UNDEFINED) };
    let method = match how {
        Resumption::Next if is_script => next,
        Resumption::Next => {
            let item = vm.iterator_next(record)?;
            result.set(item.unwrap_or(Value::UNDEFINED));
            *pc = if item.is_some() { *pc + 1 } else { delegate.ended as usize };
            return Ok(Done::Op);
        }
        Resumption::Throw if is_script => vm.get(object, known::THROW)?,
        Resumption::Return if is_script => vm.get(object, known::RETURN)?,
        Resumption::Throw | Resumption::Return => Value::UNDEFINED,
    };
    if !method.is_nullish() || how == Resumption::Next {
        return call_into(vm, context, (method, object, &[received]), delegate.result, *pc, function, fp, at);
    }
    if how == Resumption::Return {
        result.set(received);
        *pc = delegate.missing as usize;
        return Ok(Done::Op);
    }
    let close = if is_script { vm.get(object, known::RETURN)? } else { Value::UNDEFINED };
    if close.is_nullish() {
        return Err(no_throw_method(vm).at(vm, at));
    }
    fp[delegate.mode.0 as usize].set(Value::number(f64::from(CLOSING)));
    call_into(vm, context, (close, object, &[]), delegate.result, *pc, function, fp, at)
}

#[cold]
fn no_throw_method(vm: &mut Vm) -> crate::value::thrown::Thrown {
    vm.type_error("The iterator does not provide a 'throw' method.")
}

/// Handles the result of the inner iterator. Returns the target of the jump if the iterator has ended.
pub(super) fn delegated(vm: &mut Vm, delegate: &Delegate, fp: &Slots) -> Result<Option<u32>> {
    let record = fp[delegate.iterator.0 as usize].get();
    let mode = fp[delegate.mode.0 as usize].get().as_number() as u8;
    let slot = &fp[delegate.result.0 as usize];
    let end = if mode == Resumption::Return as u8 { delegate.returned } else { delegate.ended };
    if !is_protocol(vm, record) {
        return Ok(Some(end));
    }
    let result = slot.get();
    if !result.is_object() {
        return Err(vm.not_a_result(result));
    }
    if mode == CLOSING {
        return Err(no_throw_method(vm));
    }
    let done = vm.get(result, known::DONE)?;
    let is_done = vm.truthy(done);
    if is_done || delegate.is_async {
        let value = vm.get(result, known::VALUE)?;
        slot.set(value);
    }
    Ok(is_done.then_some(end))
}
