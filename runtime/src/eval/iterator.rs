//! Operations on iterators (ECMAScript 7.4), for `for…of`, spread and patterns.

use crate::eval::activation::Called;
use crate::eval::error;
use crate::eval::generator;
use crate::eval::node::{Walker, Wrapping};
use crate::eval::property::PropertyKey;
use crate::eval::suggest;
use crate::eval::unawaited::{self, PromiseUse};
use crate::eval::vm::Vm;
use crate::heap::{Entry, Iterator, Yields};
use crate::meter::buffer::Buffer;
use crate::value::atom::{Atom, known};
use crate::value::family::Family;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use agentscript_lang::program::{ForEach, Origin};
use agentscript_lang::{Span, Walk};

/// The largest length of an array-like object: 2⁵³ − 1 (ECMAScript 7.1.17).
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// How an iteration begins.
pub enum IterationStart {
    /// The iterator record is there.
    Record(Value),
    /// A method of the script makes the iterator.
    Call {
        /// `[Symbol.iterator]` or `[Symbol.asyncIterator]`.
        method: Value,
        /// Whether it is the latter.
        is_async: bool,
    },
}

impl Vm {
    /// Returns the property `[Symbol.iterator]` of a value that the script has given to it.
    pub fn script_method(&mut self, value: Value, symbol: Atom) -> Result<Option<Value>> {
        let may = self.realm.script.code.iterables && value.is_object();
        if may { self.own_property(value, PropertyKey::Name(symbol)) } else { Ok(None) }
    }

    /// Whether to iterate over a value runs functions of the script: it has a method `[Symbol.iterator]`, or is a
    /// generator.
    pub fn is_script_iterable(&mut self, value: Value) -> bool {
        match self.script_method(value, known::SYMBOL_ITERATOR) {
            Ok(Some(method)) => method.is_callable(),
            Ok(None) | Err(_) => generator::is_generator(self, value),
        }
    }

    /// Whether the script has given a value something else than a function as its method `[Symbol.iterator]`.
    pub(crate) fn lacks_iterator(&mut self, value: Value) -> Result<bool> {
        Ok(self.script_method(value, known::SYMBOL_ITERATOR)?.is_some_and(|method| !method.is_callable()))
    }

    /// Begin to iterate over a value of any kind (ECMAScript 7.4.4).
    pub(crate) fn begin_walk(&mut self, value: Value, walker: Walker) -> Result<IterationStart> {
        if walker.is_async() {
            match self.script_method(value, known::SYMBOL_ASYNC_ITERATOR)? {
                Some(method) if method.is_callable() => return Ok(IterationStart::Call { method, is_async: true }),
                Some(method) if !method.is_nullish() => return Err(cannot_walk(self, value, walker)),
                _ => {}
            }
            if self.family(value) == Family::AsyncGenerator {
                return self.iterator_record(value, Wrapping::None).map(IterationStart::Record);
            }
        }
        match self.script_method(value, known::SYMBOL_ITERATOR)? {
            Some(method) if method.is_callable() => return Ok(IterationStart::Call { method, is_async: false }),
            Some(_) => return Err(cannot_walk(self, value, walker)),
            None => {}
        }
        if generator::is_generator(self, value) {
            let own_next = self.own_property(value, PropertyKey::Name(known::NEXT))?.is_some();
            if walker.is_async() || own_next {
                let wrapping = if walker.is_async() { Wrapping::AsyncFromSync } else { Wrapping::None };
                return self.iterator_record(value, wrapping).map(IterationStart::Record);
            }
            return Ok(IterationStart::Record(self.heap.new_iterator(value, Yields::Generator)));
        }
        if !self.is_iterable(value) {
            return Err(cannot_walk(self, value, walker));
        }
        let iterator = self.iterate(value)?;
        match walker {
            Walker::AsyncDelegate => {
                self.iterator_record(iterator, Wrapping::AsyncFromSync).map(IterationStart::Record)
            }
            Walker::Loop(_) | Walker::AwaitLoop(_) | Walker::Pattern(..) | Walker::Delegate => {
                Ok(IterationStart::Record(iterator))
            }
        }
    }

    /// The record of an iterator of the script (ECMAScript 7.4.2).
    pub(crate) fn iterator_record(&mut self, iterator: Value, wrapping: Wrapping) -> Result {
        if !iterator.is_object() {
            let symbol = if wrapping == Wrapping::Async { "Symbol.asyncIterator" } else { "Symbol.iterator" };
            return Err(self.type_error(&brief!("Result of the {symbol} method is not an object")));
        }
        let mut iterator = iterator;
        let mut next = self.get(iterator, known::NEXT)?;
        if wrapping == Wrapping::AsyncFromSync {
            iterator = match self.call_intrinsic("$asyncFromSync", iterator, &[next])? {
                Called::Value(wrapper) => wrapper,
                Called::Frame(_) => Value::UNDEFINED,
            };
            next = self.get(iterator, known::NEXT)?;
        }
        let source = self.heap.new_array(vec![iterator, next]);
        Ok(self.heap.new_iterator(source, Yields::Script))
    }

    /// The error for what `next` or `return` has given.
    #[cold]
    pub(crate) fn not_a_result(&mut self, result: Value) -> Thrown {
        let what = self.describe(result);
        self.type_error(&brief!("Iterator result {what} is not an object"))
    }

    /// Whether [`Vm::iterate`] would give an iterator.
    pub fn is_iterable(&self, value: Value) -> bool {
        if self.realm.script.code.iterables && self.has_own_method(value, known::SYMBOL_ITERATOR) {
            // Methods of the script are looked for before.
            return false;
        }
        matches!(value.kind(), Kind::Array | Kind::String | Kind::Map | Kind::Set | Kind::Iterator | Kind::Uint8Array)
            || self.heap.internal_slots_of(value).is_some_and(|slots| slots.iterator_family() != Family::ArrayIterator)
    }

    /// An iterator over a value, as `for…of` and spread use it.
    pub fn iterate(&mut self, value: Value) -> Result {
        match value.kind() {
            Kind::Iterator => Ok(value),
            Kind::Map => Ok(self.heap.new_iterator(value, Yields::Entries)),
            Kind::Uint8Array => (self.realm.registry.hooks.iterate_bytes)(self, value),
            Kind::InternalSlots if self.is_iterable(value) => Ok(self.heap.new_iterator(value, Yields::Entries)),
            _ if self.is_iterable(value) => Ok(self.heap.new_iterator(value, Yields::Values)),
            _ => Err(self.not_iterable(value)),
        }
    }

    /// The error for a value that is not iterable, where its source text is not known.
    #[cold]
    pub fn not_iterable(&mut self, value: Value) -> Thrown {
        unawaited::note_use(self, value, PromiseUse::Iterate, None);
        let what = self.describe_typed(value);
        self.type_error(&brief!("{what} is not iterable (cannot read property Symbol(Symbol.iterator))"))
    }

    /// The next item of an iterator; `None` when it is exhausted.
    #[inline]
    pub fn iterator_next(&mut self, iterator: Value) -> Result<Option<Value>> {
        let &Iterator { source, yields, position, .. } = &self.heap.iterators[iterator.index()];
        if source.is(Kind::Array)
            && yields == Yields::Values
            && let Some(&item) = self.heap.arrays[source.index()].items.get(position)
        {
            self.heap.iterators[iterator.index()].position = position + 1;
            return Ok(Some(if item == Value::HOLE { Value::UNDEFINED } else { item }));
        }
        if source.is(Kind::Uint8Array)
            && yields == Yields::Values
            && let Some(byte) = self.heap.byte_at(source, position)
        {
            self.heap.iterators[iterator.index()].position = position + 1;
            return Ok(Some(byte));
        }
        iterator_step(self, iterator)
    }

    /// Returns what an iterator yields of a key and a value.
    pub fn yielded(&mut self, yields: Yields, key: Value, value: Value) -> Value {
        match yields {
            Yields::Keys => key,
            Yields::Values | Yields::ForIn | Yields::Matches | Yields::Script | Yields::Generator => value,
            Yields::Entries => self.heap.new_array(vec![key, value]),
        }
    }

    /// An iterator over the keys of a value, for `for…in`.
    pub fn for_in_keys(&mut self, value: Value) -> Result {
        let mut items = Buffer::new();
        items.push(self, value)?;
        if !value.is_nullish() {
            self.push_keys(value, false, &mut items)?;
        }
        for row in (self.realm.registry.hooks.inherited_names)(self, value) {
            let name = self.heap.intern_text(row.name);
            let name = self.heap.atom_string(name);
            items.push(self, name)?;
        }
        let source = self.heap.array_of(items);
        Ok(self.heap.new_iterator(source, Yields::ForIn))
    }

    /// All items of an iterable, charged and counted.
    pub fn iterate_to_list(&mut self, value: Value) -> Result<Buffer<Value>> {
        let mut items = Buffer::new();
        self.push_items(value, &mut items)?;
        Ok(items)
    }

    /// Append all items of an iterable.
    pub fn push_items(&mut self, value: Value, items: &mut Buffer<Value>) -> Result<()> {
        if self.realm.script.code.iterables && !self.is_iterable(value) {
            return Err(self.not_iterable(value));
        }
        if value.is(Kind::Array) {
            let first = items.len();
            let length = self.heap.charged_items(value)?.len();
            items.room(self, length)?;
            self.heap.charged_append_items(value, items)?;
            let holes = items[first..].iter_mut().filter(|item| **item == Value::HOLE);
            holes.for_each(|item| *item = Value::UNDEFINED);
            return Ok(());
        }
        if value.is(Kind::Uint8Array) && self.heap.view_range(value).is_some() {
            let length = self.heap.view_length(value);
            let charge = self.work(length / 8)?;
            items.room(self, length)?;
            let bytes = self.heap.read_view(value, charge).iter();
            return items.extend(self, bytes.map(|&byte| Value::number(f64::from(byte))));
        }
        let iterator = self.iterate(value)?;
        while let Some(item) = self.iterator_next(iterator)? {
            self.work(1)?;
            items.push(self, item)?;
        }
        Ok(())
    }

    /// The length of anything (ECMAScript 7.3.18).
    #[inline]
    pub fn length_of(&mut self, this: Value) -> Result<f64> {
        if this.is(Kind::Array) {
            return Ok(self.heap.length(this) as f64);
        }
        if this.is_nullish() {
            return Err(self.type_error("Cannot convert undefined or null to object"));
        }
        if this.is(Kind::Promise) {
            unawaited::note_use(self, this, PromiseUse::Iterate, None);
        }
        let length = self.get(this, known::LENGTH)?;
        Ok(self.to_integer(length)?.clamp(0.0, MAX_SAFE))
    }
}

/// The error for a value that is not iterable.
#[cold]
fn cannot_walk(vm: &mut Vm, value: Value, walker: Walker) -> Thrown {
    match walker {
        Walker::Loop(span) => not_iterable_at(vm, value, span, Walk::Loop),
        Walker::Pattern(Origin::Source(_), span) => not_iterable_at(vm, value, span, Walk::Pattern),
        Walker::Pattern(Origin::Item, _) => suggest::not_iterable_item(vm, value),
        Walker::AwaitLoop(span) => match begin_iteration(vm, ForEach::AwaitOf, value, span) {
            Err(thrown) => thrown,
            Ok(_) => vm.not_iterable(value),
        },
        Walker::AsyncDelegate if value.is_nullish() => {
            vm.no_properties(value, "read", "reading", Some("Symbol(Symbol.asyncIterator)"))
        }
        Walker::AsyncDelegate => vm.type_error("undefined is not a function"),
        Walker::Pattern(Origin::Value | Origin::Part, _) | Walker::Delegate => vm.not_iterable(value),
    }
}

fn iterator_step(vm: &mut Vm, iterator: Value) -> Result<Option<Value>> {
    let &Iterator { source, yields, position, .. } = &vm.heap.iterators[iterator.index()];
    let item = match (source.kind(), yields) {
        (Kind::Undefined, _) => return Ok(None),
        (Kind::Array, Yields::ForIn) => next_key(vm, source, position)?,
        (Kind::String, Yields::Values) => next_character(vm, source, position),
        (Kind::Array, Yields::Matches) | (Kind::InternalSlots | Kind::Uint8Array, _) => {
            (vm.realm.registry.hooks.next_item)(vm, source, yields, position)?
        }
        (Kind::Map | Kind::Set, _) => match vm.heap.maps[source.index()].entry_from(position) {
            None => None,
            Some(Entry { key, value, behind, skipped }) => {
                vm.work(skipped / 16)?;
                let value = if source.is(Kind::Set) { key } else { value };
                Some((vm.yielded(yields, key, value), behind))
            }
        },
        _ => {
            let length = vm.length_of(source)?;
            let index = position as f64;
            if index < length {
                let key = Value::number(index);
                let item = if yields == Yields::Keys { key } else { vm.get_index(source, key)? };
                Some((vm.yielded(yields, key, item), position + 1))
            } else {
                None
            }
        }
    };
    let state = &mut vm.heap.iterators[iterator.index()];
    match item {
        Some((item, behind)) => {
            state.position = behind;
            Ok(Some(item))
        }
        // Pairs may be added to these later.
        None if state.source.is(Kind::InternalSlots) => Ok(None),
        // It shows what it was made for, so it keeps an empty string or, behind all entries, the map.
        // As in V8, the length of an array-like is read again.
        None if matches!(state.source.kind(), Kind::Map | Kind::Set | Kind::Object | Kind::Function) => {
            state.position = usize::MAX;
            Ok(None)
        }
        None => {
            let is_string = state.source.is_string();
            let empty = if is_string { vm.heap.atom_string(known::EMPTY) } else { Value::UNDEFINED };
            vm.heap.iterators[iterator.index()].source = empty;
            Ok(None)
        }
    }
}

/// The character at a byte position, and the position after it.
fn next_character(vm: &mut Vm, string: Value, position: usize) -> Option<(Value, usize)> {
    let (_, length) = vm.heap.code_point_at(string, position)?;
    let behind = position + length;
    Some((vm.heap.slice_bytes(string, position, behind), behind))
}

/// The first key from a position on that the object still has.
fn next_key(vm: &mut Vm, keys: Value, mut position: usize) -> Result<Option<(Value, usize)>> {
    let object = vm.heap.at(keys, 0).unwrap_or(Value::UNDEFINED);
    while let Some(key) = vm.heap.at(keys, position + 1) {
        position += 1;
        let name = vm.to_property_key(key)?;
        if vm.has_own(object, name) || object.is(Kind::InternalSlots) && vm.has_property(object, name)? {
            return Ok(Some((key, position)));
        }
        vm.work(1)?;
    }
    Ok(None)
}

/// The iterator of the value of an expression.
pub fn iterator_of(vm: &mut Vm, value: Value, span: Span, walk: Walk) -> Result {
    if vm.is_iterable(value) {
        return vm.iterate(value);
    }
    Err(not_iterable_at(vm, value, span, walk).at(vm, span.start))
}

/// The error for an expression whose value is not iterable.
#[cold]
pub fn not_iterable_at(vm: &mut Vm, value: Value, span: Span, walk: Walk) -> Thrown {
    unawaited::note_use(vm, value, PromiseUse::Iterate, Some(span.start));
    let text = match vm.stack.current.is_prelude() {
        true => None,
        false => agentscript_lang::iterable_text(vm.realm.script.source(), span, walk),
    };
    match text {
        Some(text) => vm.type_error(&brief!("{text} is not iterable")),
        None => vm.not_iterable(value),
    }
}

/// The iterator of a loop over items.
pub(crate) fn begin_iteration(vm: &mut Vm, kind: ForEach, value: Value, span: Span) -> Result {
    match kind {
        ForEach::In => vm.for_in_keys(value),
        ForEach::Of => iterator_of(vm, value, span, Walk::Loop),
        ForEach::AwaitOf => {
            if vm.is_iterable(value) {
                return vm.iterate(value);
            }
            unawaited::note_use(vm, value, PromiseUse::Iterate, Some(span.start));
            let thrown = if value.is_nullish() {
                vm.no_properties(value, "read", "reading", Some("Symbol(Symbol.asyncIterator)"))
            } else {
                let text = error::value_text(vm, span);
                vm.type_error(&brief!("{text} is not async iterable"))
            };
            Err(thrown.at(vm, span.start))
        }
    }
}
