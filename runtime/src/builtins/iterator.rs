//! Iterators of built-in collections, for `for…of`, spread and `next()`.
//!
//! Only built-in values are iterable: scripts have no `Symbol.iterator`.

use super::{Row, native};
use crate::atom::known;
use crate::charge::Buffer;
use crate::heap::{Entry, InternalSlots, Iterator, Yields};
use crate::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use crate::vm::Vm;
use crate::wtf8::first_code_point;

/// Methods of iterators.
pub const METHODS: &[Row] = &[native("next", 0, next)];

impl Vm {
    /// Whether [`Vm::iterate`] would give an iterator.
    pub fn is_iterable(&self, value: Value) -> bool {
        matches!(value.kind(), Kind::Array | Kind::String | Kind::Map | Kind::Set | Kind::Iterator | Kind::Uint8Array)
            || matches!(self.heap.internal_slots_of(value), Some(InternalSlots::Params(_) | InternalSlots::Segments(_)))
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
        let what = self.describe_typed(value);
        self.type_error(&format!("{what} is not iterable (cannot read property Symbol(Symbol.iterator))"))
    }

    /// The next item of an iterator; `None` when it is exhausted.
    #[inline]
    pub fn iterator_next(&mut self, iterator: Value) -> Result<Option<Value>> {
        let &Iterator { source, yields, position } = &self.heap.iterators[iterator.index()];
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
        let &Iterator { source, yields, position } = &self.heap.iterators[iterator.index()];
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
            None => {
                state.source = Value::UNDEFINED;
                Ok(None)
            }
        }
    }

    fn yielded(&mut self, yields: Yields, key: Value, value: Value) -> Value {
        match yields {
            Yields::Keys => key,
            Yields::Values | Yields::ForIn | Yields::Matches => value,
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

fn next(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    if !this.is(Kind::Iterator) {
        let what = vm.describe(this);
        return Err(vm.type_error(&format!("Method Iterator.prototype.next called on incompatible receiver {what}")));
    }
    let item = vm.iterator_next(this)?;
    let result = vm.heap.new_object();
    vm.heap.set_own(result, known::VALUE, item.unwrap_or(Value::UNDEFINED));
    vm.heap.set_own(result, known::DONE, Value::bool(item.is_none()));
    Ok(result)
}

/// The key of the last entry that an iterator of a map gave.
pub fn last_key(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let &Iterator { source, position, .. } = &vm.heap.iterators[super::arg(arguments, 0).index()];
    let entry = position.checked_sub(1).and_then(|last| vm.heap.maps[source.index()].entry_from(last));
    Ok(entry.map_or(Value::UNDEFINED, |entry| entry.key))
}

/// Whether a value is iterable; an error for `undefined` and `null`.
pub fn iterable(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let value = super::arg(arguments, 0);
    if value.is_nullish() {
        return Err(vm.not_iterable(value));
    }
    Ok(Value::bool(vm.is_iterable(value)))
}
