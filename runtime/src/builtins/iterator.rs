//! Iterators of built-in collections, for `for…of`, spread and `next()`, and the iterator records of iterables of the
//! script, whose methods only operations and the prelude call.

use super::family::Family;
use super::url::coded;
use super::{Row, native, prelude};
use crate::activation::Called;
use crate::atom::{Atom, known};
use crate::charge::Buffer;
use crate::heap::{Entry, InternalSlots, Iterator, Yields};
use crate::node::{Walker, Wrapping};
use crate::property::PropertyKey;
use crate::thrown::{Result, Thrown};
use crate::unawaited::PromiseUse;
use crate::value::{Kind, Value};
use crate::vm::Vm;
use crate::wtf8::first_code_point;
use agentscript_lang::Walk;
use agentscript_lang::program::{ForEach, Origin};

/// Methods of iterators, by family.
pub const METHODS: &[(Family, &[Row])] = &[
    (Family::ArrayIterator, &[native("next", 0, |vm, this, _| next(vm, this, Family::ArrayIterator))]),
    (Family::MapIterator, &[native("next", 0, |vm, this, _| next(vm, this, Family::MapIterator))]),
    (Family::SetIterator, &[native("next", 0, |vm, this, _| next(vm, this, Family::SetIterator))]),
    (Family::StringIterator, &[native("next", 0, |vm, this, _| next(vm, this, Family::StringIterator))]),
    (Family::RegExpStringIterator, &[native("next", 0, |vm, this, _| next(vm, this, Family::RegExpStringIterator))]),
    (Family::ParamsIterator, &[native("next", 0, |vm, this, _| next(vm, this, Family::ParamsIterator))]),
    (Family::HeadersIterator, &[native("next", 0, |vm, this, _| next(vm, this, Family::HeadersIterator))]),
    (Family::SegmentsIterator, &[native("next", 0, |vm, this, _| next(vm, this, Family::SegmentsIterator))]),
];

impl Family {
    /// Whether its values are iterators that are not async.
    pub fn is_iterator(self) -> bool {
        ITERATORS.contains(&self)
    }
}

/// The families of [`METHODS`], and that of generators.
const ITERATORS: &[Family] = &[
    Family::ArrayIterator,
    Family::MapIterator,
    Family::SetIterator,
    Family::StringIterator,
    Family::RegExpStringIterator,
    Family::ParamsIterator,
    Family::HeadersIterator,
    Family::SegmentsIterator,
    Family::Generator,
];

/// Methods whose keys are symbols, by family.
pub const SYMBOL_METHODS: &[(&[Family], Atom, &Row)] = &[
    (&[Family::String], known::SYMBOL_ITERATOR, &native("[Symbol.iterator]", 0, string_iterator)),
    (ITERATORS, known::SYMBOL_ITERATOR, &native("[Symbol.iterator]", 0, itself)),
    (&[Family::Segments], known::SYMBOL_ITERATOR, &native("[Symbol.iterator]", 0, segments_iterator)),
    (&[Family::AsyncGenerator], known::SYMBOL_ASYNC_ITERATOR, &native("[Symbol.asyncIterator]", 0, itself)),
];

/// Functions that only the prelude and the evaluator can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[
    native("$isScriptIterable", 1, is_script_iterable),
    native("$asyncIterable", 1, is_async_iterable),
    native("$notAResult", 1, not_a_result),
    prelude("$listed", 1, "Iterable_list"),
    prelude("$asyncFromSync", 2, "Iterable_asyncFromSync"),
];

/// How an iteration begins.
pub enum Begun {
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
    /// The property `[Symbol.iterator]` of a value that the script has given to it.
    fn script_method(&mut self, value: Value, symbol: Atom) -> Result<Option<Value>> {
        let may = self.realm.script.code.iterables && value.is_object();
        if may { self.own_property(value, PropertyKey::Name(symbol)) } else { Ok(None) }
    }

    /// Whether to iterate over a value runs functions of the script: it has a method `[Symbol.iterator]`, or is a
    /// generator.
    pub fn is_script_iterable(&mut self, value: Value) -> bool {
        match self.script_method(value, known::SYMBOL_ITERATOR) {
            Ok(Some(method)) => method.is_callable(),
            Ok(None) | Err(_) => self.is_generator(value),
        }
    }

    /// Whether the script has given a value something else than a function as its method `[Symbol.iterator]`.
    pub(crate) fn lacks_iterator(&mut self, value: Value) -> Result<bool> {
        Ok(self.script_method(value, known::SYMBOL_ITERATOR)?.is_some_and(|method| !method.is_callable()))
    }

    /// Begin to iterate over a value of any kind (ECMAScript 7.4.4).
    pub(crate) fn begin_walk(&mut self, value: Value, walker: Walker) -> Result<Begun> {
        if walker.is_async() {
            match self.script_method(value, known::SYMBOL_ASYNC_ITERATOR)? {
                Some(method) if method.is_callable() => return Ok(Begun::Call { method, is_async: true }),
                Some(method) if !method.is_nullish() => return Err(self.cannot_walk(value, walker)),
                _ => {}
            }
            if self.family(value) == Family::AsyncGenerator {
                return self.iterator_record(value, Wrapping::None).map(Begun::Record);
            }
        }
        match self.script_method(value, known::SYMBOL_ITERATOR)? {
            Some(method) if method.is_callable() => return Ok(Begun::Call { method, is_async: false }),
            Some(_) => return Err(self.cannot_walk(value, walker)),
            None => {}
        }
        if self.is_generator(value) {
            let own_next = self.own_property(value, PropertyKey::Name(known::NEXT))?.is_some();
            if walker.is_async() || own_next {
                let wrapping = if walker.is_async() { Wrapping::AsyncFromSync } else { Wrapping::None };
                return self.iterator_record(value, wrapping).map(Begun::Record);
            }
            return Ok(Begun::Record(self.heap.new_iterator(value, Yields::Generator)));
        }
        if !self.is_iterable(value) {
            return Err(self.cannot_walk(value, walker));
        }
        let iterator = self.iterate(value)?;
        match walker {
            Walker::AsyncDelegate => self.iterator_record(iterator, Wrapping::AsyncFromSync).map(Begun::Record),
            Walker::Loop(_) | Walker::AwaitLoop(_) | Walker::Pattern(..) | Walker::Delegate => {
                Ok(Begun::Record(iterator))
            }
        }
    }

    /// The error for a value that is not iterable.
    #[cold]
    fn cannot_walk(&mut self, value: Value, walker: Walker) -> Thrown {
        match walker {
            Walker::Loop(span) => self.not_iterable_at(value, span, Walk::Loop),
            Walker::Pattern(Origin::Source(_), span) => self.not_iterable_at(value, span, Walk::Pattern),
            Walker::Pattern(Origin::Item, _) => self.not_iterable_item(value),
            Walker::AwaitLoop(span) => match self.begin_iteration(ForEach::AwaitOf, value, span) {
                Err(thrown) => thrown,
                Ok(_) => self.not_iterable(value),
            },
            Walker::AsyncDelegate if value.is_nullish() => {
                self.no_properties(value, "read", "reading", Some("Symbol(Symbol.asyncIterator)"))
            }
            Walker::AsyncDelegate => self.type_error("undefined is not a function"),
            Walker::Pattern(Origin::Value | Origin::Part, _) | Walker::Delegate => self.not_iterable(value),
        }
    }

    /// The record of an iterator of the script (ECMAScript 7.4.2).
    pub(crate) fn iterator_record(&mut self, iterator: Value, wrapping: Wrapping) -> Result {
        if !iterator.is_object() {
            let symbol = if wrapping == Wrapping::Async { "Symbol.asyncIterator" } else { "Symbol.iterator" };
            return Err(self.type_error(&format!("Result of the {symbol} method is not an object")));
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
        let source = self.heap.new_array(vec![iterator, next]); // bounded: two
        Ok(self.heap.new_iterator(source, Yields::Script))
    }

    /// The error for what `next` or `return` has given.
    #[cold]
    pub(crate) fn not_a_result(&mut self, result: Value) -> Thrown {
        let what = self.describe(result);
        self.type_error(&format!("Iterator result {what} is not an object"))
    }

    /// Whether [`Vm::iterate`] would give an iterator.
    pub fn is_iterable(&self, value: Value) -> bool {
        if self.realm.script.code.iterables && self.has_own_method(value, known::SYMBOL_ITERATOR) {
            // Methods of the script are looked for before.
            return false;
        }
        matches!(value.kind(), Kind::Array | Kind::String | Kind::Map | Kind::Set | Kind::Iterator | Kind::Uint8Array)
            || matches!(
                self.heap.internal_slots_of(value),
                Some(InternalSlots::Params(_) | InternalSlots::Headers(_) | InternalSlots::Segments(_))
            )
    }

    /// An iterator over a value, as `for…of` and spread use it.
    pub fn iterate(&mut self, value: Value) -> Result {
        match value.kind() {
            Kind::Iterator => Ok(value),
            Kind::Map => Ok(self.heap.new_iterator(value, Yields::Entries)),
            Kind::Uint8Array => super::bytes::iterator(self, value, Yields::Values),
            Kind::InternalSlots if self.is_iterable(value) => Ok(self.heap.new_iterator(value, Yields::Entries)),
            _ if self.is_iterable(value) => Ok(self.heap.new_iterator(value, Yields::Values)),
            _ => Err(self.not_iterable(value)),
        }
    }

    /// The error for a value that is not iterable, where its source text is not known.
    #[cold]
    pub fn not_iterable(&mut self, value: Value) -> Thrown {
        self.note_use(value, PromiseUse::Iterate, None);
        let what = self.describe_typed(value);
        self.type_error(&format!("{what} is not iterable (cannot read property Symbol(Symbol.iterator))"))
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
        self.iterator_step(iterator)
    }

    fn iterator_step(&mut self, iterator: Value) -> Result<Option<Value>> {
        let &Iterator { source, yields, position, .. } = &self.heap.iterators[iterator.index()];
        let item = match (source.kind(), yields) {
            (Kind::Undefined, _) => return Ok(None),
            (Kind::Array, Yields::Matches) => super::regexp::next_match(self, source)?.map(|found| (found, 0)),
            (Kind::Array, Yields::ForIn) => self.next_key(source, position)?,
            (Kind::String, Yields::Values) => self.next_character(source, position),
            (Kind::InternalSlots, _) if super::intl::segmenter::is_segments(self, source) => {
                super::intl::segmenter::at(self, source, position)?.map(|segment| (segment, position + 1))
            }
            (Kind::InternalSlots, _) => {
                let bytes = self.pair_bytes(source, position);
                self.work(bytes / 16)?;
                self.reserve(4 * bytes)?;
                let pair = self.pair_at(source, position);
                pair.map(|(name, value)| (self.yielded(yields, name, value), position + 1))
            }
            (Kind::Uint8Array, _) => {
                let Some(range) = self.heap.view_range(source) else {
                    return Err(super::bytes::detached(self, "%ArrayIteratorPrototype%.next"));
                };
                let byte = self.heap.view_bytes(source).get(position).copied(); // charged: by the caller
                byte.filter(|_| position < range.len()).map(|byte| {
                    let (key, item) = (Value::number(position as f64), Value::number(f64::from(byte)));
                    (self.yielded(yields, key, item), position + 1)
                })
            }
            (Kind::Map | Kind::Set, _) => match self.heap.maps[source.index()].entry_from(position) {
                None => None,
                Some(Entry { key, value, behind, skipped }) => {
                    self.work(skipped / 16)?;
                    let value = if source.is(Kind::Set) { key } else { value };
                    Some((self.yielded(yields, key, value), behind))
                }
            },
            _ => {
                let length = super::array::length_of(self, source)?;
                let index = position as f64;
                if index < length {
                    let key = Value::number(index);
                    let item = if yields == Yields::Keys { key } else { self.get_index(source, key)? };
                    Some((self.yielded(yields, key, item), position + 1))
                } else {
                    None
                }
            }
        };
        let state = &mut self.heap.iterators[iterator.index()];
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
                let empty = if is_string { self.atom_string(known::EMPTY) } else { Value::UNDEFINED };
                self.heap.iterators[iterator.index()].source = empty;
                Ok(None)
            }
        }
    }

    fn yielded(&mut self, yields: Yields, key: Value, value: Value) -> Value {
        match yields {
            Yields::Keys => key,
            Yields::Values | Yields::ForIn | Yields::Matches | Yields::Script | Yields::Generator => value,
            Yields::Entries => self.heap.new_array(vec![key, value]), // bounded: two
        }
    }

    /// The character at a byte position, and the position after it.
    fn next_character(&mut self, string: Value, position: usize) -> Option<(Value, usize)> {
        let (_, length) = first_code_point(self.heap.bytes(string).get(position..)?)?; // bounded: a character
        let behind = position + length;
        Some((self.heap.slice_bytes(string, position, behind), behind))
    }

    /// The first key from a position on that the object still has.
    fn next_key(&mut self, keys: Value, mut position: usize) -> Result<Option<(Value, usize)>> {
        let object = self.heap.at(keys, 0).unwrap_or(Value::UNDEFINED);
        while let Some(key) = self.heap.at(keys, position + 1) {
            position += 1;
            let name = self.to_property_key(key)?;
            if self.has_own(object, name) || object.is(Kind::InternalSlots) && self.has_property(object, name)? {
                return Ok(Some((key, position)));
            }
            self.work(1)?;
        }
        Ok(None)
    }

    /// An iterator over the keys of a value, for `for…in`.
    pub fn for_in_keys(&mut self, value: Value) -> Result {
        let mut items = Buffer::new();
        items.push(self, value)?;
        if !value.is_nullish() {
            self.push_keys(value, false, &mut items)?;
        }
        for row in self.inherited_names(value) {
            let name = self.intern_text(row.name);
            let name = self.atom_string(name);
            items.push(self, name)?;
        }
        let source = self.array_of(items);
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
            let length = self.charged_items(value)?.len();
            items.room(self, length)?;
            self.charged_append_items(value, items)?;
            let holes = items[first..].iter_mut().filter(|item| **item == Value::HOLE);
            holes.for_each(|item| *item = Value::UNDEFINED);
            return Ok(());
        }
        if value.is(Kind::Uint8Array) && self.heap.view_range(value).is_some() {
            let length = self.heap.view_length(value);
            self.work(length / 8)?;
            items.room(self, length)?;
            let bytes = self.heap.view_bytes(value).iter(); // charged: above
            return items.extend(self, bytes.map(|&byte| Value::number(f64::from(byte))));
        }
        let iterator = self.iterate(value)?;
        while let Some(item) = self.iterator_next(iterator)? {
            self.work(1)?;
            items.push(self, item)?;
        }
        Ok(())
    }
}

/// `iterator.next()`
fn next(vm: &mut Vm, this: Value, family: Family) -> Result {
    if !this.is(Kind::Iterator) || vm.family(this) != family {
        return Err(incompatible(vm, this, family));
    }
    let item = vm.iterator_next(this)?;
    let result = vm.heap.new_object();
    vm.heap.set_own(result, known::VALUE, item.unwrap_or(Value::UNDEFINED));
    vm.heap.set_own(result, known::DONE, Value::bool(item.is_none()));
    Ok(result)
}

/// The error for a receiver of `next` that is no iterator of its family.
#[cold]
fn incompatible(vm: &mut Vm, this: Value, family: Family) -> Thrown {
    let next = match family {
        Family::ParamsIterator => {
            return coded(vm, "ERR_INVALID_THIS", "Value of \"this\" must be of type URLSearchParamsIterator");
        }
        Family::HeadersIterator => {
            return vm.type_error("'next' called on an object that does not implement interface Headers Iterator.");
        }
        Family::RegExpStringIterator => "%RegExpStringIterator%.prototype.next",
        Family::SegmentsIterator => "%SegmentIterator.prototype%.next",
        _ => &format!("{}.prototype.next", tag(family)), // bounded: a name of ours
    };
    let what = vm.describe(this);
    vm.type_error(&format!("Method {next} called on incompatible receiver {what}"))
}

/// What `Object.prototype.toString` calls the iterators of a family.
pub fn tag(family: Family) -> &'static str {
    match family {
        Family::MapIterator => "Map Iterator",
        Family::SetIterator => "Set Iterator",
        Family::StringIterator => "String Iterator",
        Family::RegExpStringIterator => "RegExp String Iterator",
        Family::ParamsIterator => "URLSearchParams Iterator",
        Family::HeadersIterator => "Headers Iterator",
        Family::SegmentsIterator => "Segmenter String Iterator",
        _ => "Array Iterator",
    }
}

/// `segments[Symbol.iterator]()`
fn segments_iterator(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    if vm.family(this) != Family::Segments {
        let what = vm.describe(this);
        let message = format!("Method %SegmentIsPrototype%[@@iterator] called on incompatible receiver {what}");
        return Err(vm.type_error(&message));
    }
    Ok(vm.heap.new_iterator(this, Yields::Values))
}

/// `string[Symbol.iterator]()`
fn string_iterator(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let string = vm.to_string(this)?;
    Ok(vm.heap.new_iterator(string, Yields::Values))
}

/// `iterator[Symbol.iterator]()`
fn itself(_: &mut Vm, this: Value, _: &[Value]) -> Result {
    Ok(this)
}

/// `$isScriptIterable(value)`
fn is_script_iterable(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Ok(Value::bool(vm.is_script_iterable(super::arg(arguments, 0))))
}

/// `$asyncIterable(value)`: whether `for await` takes it; an error for `undefined` and `null`.
fn is_async_iterable(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let value = super::arg(arguments, 0);
    let method = vm.script_method(value, known::SYMBOL_ASYNC_ITERATOR)?;
    if method.is_some_and(Value::is_callable) || vm.family(value) == Family::AsyncGenerator {
        return Ok(Value::TRUE);
    }
    iterable(vm, this, arguments)
}

/// `$notAResult(value)`: throws.
fn not_a_result(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    Err(vm.not_a_result(super::arg(arguments, 0)))
}

/// The key of the last entry that an iterator of a map gave.
pub fn last_key(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let &Iterator { source, position, .. } = &vm.heap.iterators[super::arg(arguments, 0).index()];
    let entry = position.checked_sub(1).and_then(|last| vm.heap.maps[source.index()].entry_from(last));
    Ok(entry.map_or(Value::UNDEFINED, |entry| entry.key))
}

/// An error if a value has a `[Symbol.iterator]` that is no function; `what` requires it.
pub fn check_iterator(vm: &mut Vm, value: Value, what: &str) -> Result<()> {
    let method = vm.script_method(value, known::SYMBOL_ITERATOR)?.unwrap_or(Value::UNDEFINED);
    if method.is_nullish() || method.is_callable() {
        return Ok(());
    }
    let message = format!(
        "{what} requires that the property of the first argument, items[Symbol.iterator], when exists, be a function"
    );
    Err(vm.type_error(&message)) // bounded: a name of ours
}

/// `$fromIterable(value, name)`: the same as [`iterable`] for `from`, which takes values with a length too.
pub fn from_iterable(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let name = vm.to_text_lossy(super::arg(arguments, 1));
    check_iterator(vm, super::arg(arguments, 0), &name)?;
    iterable(vm, this, arguments)
}

/// Whether a value is iterable; an error for `undefined` and `null`.
pub fn iterable(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let value = super::arg(arguments, 0);
    if value.is_nullish() {
        return Err(vm.not_iterable(value));
    }
    Ok(Value::bool(vm.is_script_iterable(value) || vm.is_iterable(value)))
}
