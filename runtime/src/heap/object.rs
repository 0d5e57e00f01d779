//! Plain objects: shapes (hidden classes) with slots, and tables for objects with many or deleted keys.

use super::table::Table;
use super::{Action, Heap, NativeClosure, Slab, block, slab_cost};
use crate::value::atom::{Atom, known};
use crate::value::{Kind, Value};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU32, Ordering};

/// Properties kept in the object itself.
pub const INLINE: usize = 6;
/// Properties in far slots.
pub const FAR: usize = 8;
/// Most keys of a shape; an object with more is a table.
const MAX_KEYS: usize = 24;
/// Most shapes of a run; objects that would need more are tables.
const MAX_SHAPES: usize = 4096;

/// The shape of objects that are tables.
const TABLE: u32 = 0;
/// The shape of objects without properties.
pub const EMPTY: u32 = 1;

/// No property can be added.
pub const NON_EXTENSIBLE: u8 = 1;
/// No property can be removed either.
pub const SEALED: u8 = 2;
/// No property can be changed either.
pub const FROZEN: u8 = 4;
/// Made by `Object.create(null)`.
pub const NULL_PROTOTYPE: u8 = 8;
/// For errors: `message` is not enumerable, because the constructor made it.
pub const HIDDEN_MESSAGE: u8 = 16;
/// For errors: `cause` is not enumerable.
pub const HIDDEN_CAUSE: u8 = 32;
/// For errors: `errors` is not enumerable.
pub const HIDDEN_ERRORS: u8 = 64;
/// For errors: the text of the error contains its `code`, as in Node.
pub const CODED: u8 = 128;

/// The class of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// A plain object.
    Plain,
    /// Errors, by their constructors.
    Error,
    /// `AggregateError`
    AggregateError,
    /// `EvalError`
    EvalError,
    /// `RangeError`
    RangeError,
    /// `ReferenceError`
    ReferenceError,
    /// `SyntaxError`
    SyntaxError,
    /// `TypeError`
    TypeError,
    /// `URIError`
    UriError,
    /// `DOMException`. Its `name` and `message` are properties of the object, which no list of keys shows.
    DomException,
}

impl Class {
    /// The classes of errors.
    pub const ERRORS: &[Self] = &[
        Self::Error,
        Self::AggregateError,
        Self::EvalError,
        Self::RangeError,
        Self::ReferenceError,
        Self::SyntaxError,
        Self::TypeError,
        Self::UriError,
    ];

    /// Whether it is an error.
    pub fn is_error(self) -> bool {
        self != Self::Plain
    }

    /// The name of its constructor.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "Object",
            Self::Error => "Error",
            Self::AggregateError => "AggregateError",
            Self::EvalError => "EvalError",
            Self::RangeError => "RangeError",
            Self::ReferenceError => "ReferenceError",
            Self::SyntaxError => "SyntaxError",
            Self::TypeError => "TypeError",
            Self::UriError => "URIError",
            Self::DomException => "DOMException",
        }
    }
}

/// A plain object or an error.
pub struct Object {
    shape: u16,
    /// Its class.
    pub class: Class,
    /// The flags of this module.
    pub flags: u8,
    /// The number of its far slots plus one; 0: it has none.
    far: u32,
    inline: [Value; INLINE],
    more: Option<Box<Slots>>,
}

/// The slots behind the inline ones of an object that has no more than these.
pub type Far = [Value; FAR];
/// The bytes that far slots take.
pub(super) const FAR_COST: usize = slab_cost::<Far>();

/// Properties that do not fit into the object and its far slots.
pub enum Slots {
    /// The slots behind the inline ones.
    Shaped(Vec<Value>),
    /// All properties.
    Table(Table),
}

impl Slots {
    fn cost(&self) -> usize {
        block(size_of::<Self>())
            + match self {
                Self::Shaped(slots) => block(slots.capacity() * 8),
                Self::Table(table) => table.cost(),
            }
    }
}

/// The cost of a shape, with the transition to it.
fn shape_cost(keys: usize) -> usize {
    slab_cost::<Shape>() + block(keys * 4) + 48
}

/// What an object holds under a name: a value or, in a table, unread text that [`Vm::held`](crate::eval::vm::Vm::held) reads.
#[derive(Clone, Copy)]
pub struct Held(Value);

impl Held {
    /// The value, where it is one.
    #[inline(always)]
    pub fn value(self) -> Option<Value> {
        (!self.0.is(Kind::Unread)).then_some(self.0)
    }

    /// The text as a string, where it is no value.
    pub fn text(self) -> Value {
        Value::handle(Kind::String, self.0.payload())
    }
}

/// An inline cache: the slot in which a node found a property last. Users verify it, so runs with different shapes may
/// share it.
#[derive(Default)]
pub struct Hint(AtomicU32);

impl Hint {
    #[inline(always)]
    fn slot(&self) -> usize {
        self.0.load(Ordering::Relaxed) as usize
    }

    fn set(&self, slot: usize) {
        self.0.store(slot as u32, Ordering::Relaxed);
    }
}

/// The ordered keys of similar objects.
pub(super) struct Shape {
    keys: Vec<Atom>,
    /// Transitions to shapes with one more key; most shapes have one.
    next: SmallVec<[(Atom, u32); 2]>,
}

/// How many shapes a run that reads some data usually has: the first capacity.
const USUAL_SHAPES: usize = 8;

impl Shape {
    pub(super) fn initial() -> Vec<Self> {
        let mut shapes = Vec::with_capacity(USUAL_SHAPES);
        shapes.resize_with(EMPTY as usize + 1, || Self { keys: Vec::new(), next: SmallVec::new() });
        shapes
    }
}

impl Object {
    /// An object without properties but the inline ones.
    fn new(shape: u32, class: Class, inline: [Value; INLINE]) -> Self {
        // There are at most [`MAX_SHAPES`].
        Self { shape: shape as u16, class, flags: 0, far: 0, inline, more: None }
    }

    #[inline(always)]
    fn slot(&self, far: &Slab<Far>, index: usize) -> Value {
        if index < INLINE { self.inline[index] } else { self.far_slot(far, index - INLINE) }
    }

    fn far_slot(&self, far: &Slab<Far>, index: usize) -> Value {
        match (self.more.as_deref(), self.far()) {
            (Some(Slots::Shaped(slots)), _) => slots[index],
            (None, Some(number)) => far[number][index],
            (Some(Slots::Table(_)), _) | (None, None) => Value::UNDEFINED,
        }
    }

    /// The number of its far slots.
    pub(super) fn far(&self) -> Option<usize> {
        (self.far as usize).checked_sub(1)
    }

    /// All values of the object except those in far slots.
    pub(super) fn values(&self) -> (&[Value], Option<&Slots>) {
        (&self.inline, self.more.as_deref())
    }

    const COST: usize = slab_cost::<Self>();

    pub(super) fn cost(&self) -> usize {
        Self::COST + self.more.as_deref().map_or(0, Slots::cost)
    }

    pub(super) fn release(&mut self) {
        self.more = None;
        self.far = 0;
    }
}

impl Heap {
    /// The target of a bound function, and its name with its first arguments.
    pub fn applied(&self, function: Value) -> Option<(Value, &[Value])> {
        let NativeClosure { action: Action::Apply, data: [target, _, own] } = self.native_closures[function.index()]
        else {
            return None;
        };
        Some((target, self.items(own)))
    }

    /// A new empty object.
    #[inline]
    pub fn new_object(&mut self) -> Value {
        self.new_of_class(Class::Plain)
    }

    /// A new empty object of a class.
    #[inline]
    pub fn new_of_class(&mut self, class: Class) -> Value {
        self.meter.add_bytes(Object::COST);
        let object = Object::new(EMPTY, class, [Value::UNDEFINED; INLINE]);
        Value::handle(Kind::Object, self.objects.add(object))
    }

    /// A new object that is a table, with room for so many properties. Only in tables properties may be unread.
    pub fn new_table(&mut self, properties: usize) -> Value {
        let object = self.new_object();
        let slots = Box::new(Slots::Table(Table::with_capacity(properties)));
        self.meter.add_bytes(slots.cost());
        let Object { shape, more, .. } = &mut self.objects[object.index()];
        (*shape, *more) = (TABLE as u16, Some(slots));
        object
    }

    /// Whether an object is a table.
    pub fn is_table(&self, object: Value) -> bool {
        u32::from(self.objects[object.index()].shape) == TABLE
    }

    /// The shape that has these keys, which differ from each other, in this order; `None` where an
    /// object with them would be a table.
    pub fn shape_of(&mut self, keys: &[Atom]) -> Option<u32> {
        let mut shape = EMPTY;
        for &key in keys {
            shape = self.next_shape(shape, key)?;
        }
        Some(shape)
    }

    /// A new object of a shape that has as many keys as there are values, at most [`INLINE`].
    #[inline]
    pub fn new_of_shape(&mut self, shape: u32, values: &[Value]) -> Value {
        debug_assert!(!values.iter().any(|value| value.is(Kind::Unread)), "only in tables");
        self.meter.add_bytes(Object::COST);
        let mut inline = [Value::UNDEFINED; INLINE];
        let (near, far) = values.split_at(values.len().min(INLINE));
        inline[..near.len()].copy_from_slice(near);
        let mut object = Object::new(shape, Class::Plain, inline);
        if !far.is_empty() {
            self.set_far(&mut object, far);
        }
        Value::handle(Kind::Object, self.objects.add(object))
    }

    /// Set the values of a new object beyond the inline ones.
    fn set_far(&mut self, object: &mut Object, values: &[Value]) {
        let mut far = [Value::UNDEFINED; FAR];
        match far.get_mut(..values.len()) {
            Some(slots) => {
                slots.copy_from_slice(values);
                self.meter.add_bytes(FAR_COST);
                object.far = self.far.add(far) + 1;
            }
            None => {
                let slots = Box::new(Slots::Shaped(values.to_vec()));
                self.meter.add_bytes(slots.cost());
                object.more = Some(slots);
            }
        }
    }

    #[inline(always)]
    fn set_slot(&mut self, index: usize, slot: usize, value: Value) {
        match self.objects[index].inline.get_mut(slot) {
            Some(slot) => *slot = value,
            None => self.set_far_slot(index, slot - INLINE, value),
        }
    }

    fn set_far_slot(&mut self, index: usize, slot: usize, value: Value) {
        let Self { objects, far, meter, .. } = self;
        let object = &mut objects[index];
        let number = object.far();
        match (object.more.as_deref_mut(), number) {
            (Some(Slots::Table(_)), _) => {}
            (Some(Slots::Shaped(slots)), _) => match slots.get_mut(slot) {
                Some(slot) => *slot = value,
                None => {
                    let before = block(slots.capacity() * 8);
                    slots.push(value);
                    meter.add_bytes(block(slots.capacity() * 8) - before);
                }
            },
            (None, Some(number)) if slot < FAR => far[number][slot] = value,
            (None, None) if slot < FAR => {
                let mut slots = [Value::UNDEFINED; FAR];
                slots[slot] = value;
                meter.add_bytes(FAR_COST);
                object.far = far.add(slots) + 1;
            }
            (None, number) => {
                let mut slots = number.map_or_else(Vec::new, |number| far[number].to_vec());
                slots.resize(slot, Value::UNDEFINED);
                slots.push(value);
                let slots = Box::new(Slots::Shaped(slots));
                meter.add_bytes(slots.cost());
                self.release_far(index);
                self.objects[index].more = Some(slots);
            }
        }
    }

    /// Replace the storage of an object's properties.
    fn release_far(&mut self, index: usize) {
        let number = std::mem::take(&mut self.objects[index].far);
        if let Some(number) = number.checked_sub(1) {
            self.far.release(number);
        }
    }

    /// A new object of a shape of few keys, whose values come first.
    #[inline]
    pub fn new_inline(&mut self, shape: u32, inline: [Value; INLINE]) -> Value {
        self.meter.add_bytes(Object::COST);
        let object = Object::new(shape, Class::Plain, inline);
        Value::handle(Kind::Object, self.objects.add(object))
    }

    /// The cost of all shapes.
    pub(super) fn shape_bytes(&self) -> usize {
        self.shapes.iter().map(|shape| shape_cost(shape.keys.len())).sum()
    }

    fn next_shape(&mut self, shape: u32, key: Atom) -> Option<u32> {
        let from = &self.shapes[shape as usize];
        if let Some(&(_, next)) = from.next.iter().find(|&&(atom, _)| atom == key) {
            return Some(next);
        }
        if from.keys.len() >= MAX_KEYS || self.shapes.len() >= MAX_SHAPES || from.next.len() >= 64 {
            return None;
        }
        let mut keys = Vec::with_capacity(from.keys.len() + 1);
        keys.extend_from_slice(&from.keys);
        keys.push(key);
        self.meter.add_bytes(shape_cost(keys.len()));
        let next = self.shapes.len() as u32;
        self.shapes.push(Shape { keys, next: SmallVec::new() });
        self.shapes[shape as usize].next.push((key, next));
        Some(next)
    }

    #[inline(always)]
    fn position(&self, shape: u32, key: Atom) -> Option<usize> {
        self.shapes[shape as usize].keys.iter().position(|&atom| atom == key)
    }

    /// An own property of a plain object or error.
    #[inline]
    pub fn own(&self, object: Value, key: Atom) -> Option<Held> {
        let object = &self.objects[object.index()];
        if u32::from(object.shape) == TABLE {
            let Some(Slots::Table(table)) = object.more.as_deref() else { return None };
            return table.get(&key).copied().map(Held);
        }
        self.position(object.shape.into(), key).map(|index| Held(object.slot(&self.far, index)))
    }

    /// The value of one, found by an inline cache; `None` where its text is unread.
    #[inline(always)]
    pub fn own_hinted(&self, value: Value, key: Atom, hint: &Hint) -> Option<Value> {
        let object = &self.objects[value.index()];
        let slot = hint.slot();
        // A table has no keys in its shape.
        match self.shapes[usize::from(object.shape)].keys.get(slot) {
            Some(&found) if found == key => Some(object.slot(&self.far, slot)),
            _ => self.own_searched(value, key, hint),
        }
    }

    #[inline(never)]
    fn own_searched(&self, value: Value, key: Atom, hint: &Hint) -> Option<Value> {
        let object = &self.objects[value.index()];
        if u32::from(object.shape) == TABLE {
            return self.own(value, key)?.value();
        }
        let slot = self.position(object.shape.into(), key)?;
        hint.set(slot);
        Some(object.slot(&self.far, slot))
    }

    /// Set an existing writable property, or add one to an extensible object; `false` where the general path is needed.
    #[inline(always)]
    pub fn set_hinted(&mut self, value: Value, key: Atom, new: Value, hint: &Hint) -> bool {
        let object = &mut self.objects[value.index()];
        let slot = hint.slot();
        if self.shapes[usize::from(object.shape)].keys.get(slot) != Some(&key) || object.flags & FROZEN != 0 {
            return self.set_searched(value, key, new, hint);
        }
        self.set_slot(value.index(), slot, new);
        true
    }

    #[inline(never)]
    fn set_searched(&mut self, value: Value, key: Atom, new: Value, hint: &Hint) -> bool {
        let object = &self.objects[value.index()];
        if object.flags & (FROZEN | NON_EXTENSIBLE) != 0 || key == known::PROTO {
            return false;
        }
        if let Some(slot) = self.position(object.shape.into(), key) {
            hint.set(slot);
        }
        self.set_own(value, key, new);
        true
    }

    /// Set an own property, whatever the flags of the object.
    pub fn set_own(&mut self, object: Value, key: Atom, value: Value) {
        let index = object.index();
        let shape = u32::from(self.objects[index].shape);
        if shape != TABLE {
            if let Some(slot) = self.position(shape, key) {
                self.set_slot(index, slot, value);
                return;
            }
            let slot = self.shapes[shape as usize].keys.len();
            if let Some(next) = self.next_shape(shape, key) {
                self.objects[index].shape = next as u16;
                self.set_slot(index, slot, value);
                return;
            }
            self.make_table(index);
        }
        if let Some(Slots::Table(table)) = self.objects[index].more.as_deref_mut() {
            let grown = table.set(key, value);
            self.meter.add_bytes(grown);
        }
    }

    fn make_table(&mut self, index: usize) {
        let object = &self.objects[index];
        let keys = &self.shapes[usize::from(object.shape)].keys;
        let table: Table = keys.iter().enumerate().map(|(slot, &key)| (key, object.slot(&self.far, slot))).collect();
        let slots = Box::new(Slots::Table(table));
        self.meter.add_bytes(slots.cost());
        self.release_far(index);
        let object = &mut self.objects[index];
        object.shape = TABLE as u16;
        object.more = Some(slots);
    }

    /// Remove an own property, whatever the flags of the object; gives how many steps that took.
    pub fn remove_own(&mut self, object: Value, key: Atom) -> usize {
        let index = object.index();
        if self.own(object, key).is_none() {
            return 1;
        }
        if u32::from(self.objects[index].shape) != TABLE {
            self.make_table(index);
        }
        match self.objects[index].more.as_deref_mut() {
            Some(Slots::Table(table)) => {
                let work = 1 + table.len() / 32;
                table.shift_remove(&key);
                work
            }
            Some(Slots::Shaped(_)) | None => 1,
        }
    }

    /// The shape of an object that is no error and no table.
    #[inline]
    pub fn shape(&self, object: Value) -> Option<u32> {
        let object = &self.objects[object.index()];
        let shape = u32::from(object.shape);
        (shape != TABLE && object.class == Class::Plain).then_some(shape)
    }

    /// The keys of a shape, by slot.
    pub fn shape_keys(&self, shape: u32) -> &[Atom] {
        &self.shapes[shape as usize].keys
    }

    /// The value in a slot of an object that has a shape.
    #[inline]
    pub fn slot(&self, object: Value, slot: usize) -> Value {
        self.objects[object.index()].slot(&self.far, slot)
    }

    /// How many own properties there are.
    pub fn own_len(&self, object: Value) -> usize {
        let object = &self.objects[object.index()];
        match object.more.as_deref() {
            Some(Slots::Table(table)) => table.len(),
            Some(Slots::Shaped(_)) | None => self.shapes[usize::from(object.shape)].keys.len(),
        }
    }

    /// The own properties in the order they were made.
    pub fn own_entries(&self, object: Value) -> Vec<(Atom, Held)> {
        let object = &self.objects[object.index()];
        match object.more.as_deref() {
            Some(Slots::Table(table)) => table.iter().map(|(&key, &value)| (key, Held(value))).collect(),
            Some(Slots::Shaped(_)) | None => {
                let keys = &self.shapes[usize::from(object.shape)].keys;
                keys.iter().enumerate().map(|(slot, &key)| (key, Held(object.slot(&self.far, slot)))).collect()
            }
        }
    }

    /// The class of an object value that is [`Kind::Object`].
    pub fn class(&self, object: Value) -> Class {
        self.objects[object.index()].class
    }

    /// The flags of an object; those of a function, `Map` or the like are on the object in `extras`.
    pub fn flags(&self, object: Value) -> u8 {
        match object.kind() {
            Kind::Object => self.objects[object.index()].flags,
            Kind::Array => self.arrays[object.index()].flags,
            _ => self.extras.get(&object).map_or(0, |&extra| self.objects[extra as usize].flags),
        }
    }

    /// Add flags to an object.
    pub fn add_flags(&mut self, object: Value, flags: u8) {
        match object.kind() {
            Kind::Object => self.objects[object.index()].flags |= flags,
            Kind::Array => self.arrays[object.index()].flags |= flags,
            _ => {
                let extra = self.extra_of(object);
                self.objects[extra.index()].flags |= flags;
            }
        }
    }

    /// A new object with these properties, whose names differ.
    pub fn object_of(&mut self, keys: &[Atom], values: &[Value]) -> Value {
        if let Some(shape) = self.shape_of(keys) {
            return self.new_of_shape(shape, values);
        }
        let object = self.new_object();
        for (&key, &value) in keys.iter().zip(values) {
            self.set_own(object, key, value);
        }
        object
    }

    /// Set the plain object that holds the named properties of a new object of another kind.
    pub fn set_extra(&mut self, object: Value, extra: Value) {
        self.meter.add_bytes(Self::EXTRA);
        self.extras.insert(object, extra.payload());
    }

    /// The plain object that holds the named properties of an object of another kind; created if missing.
    pub fn extra_of(&mut self, object: Value) -> Value {
        if let Some(&extra) = self.extras.get(&object) {
            return Value::handle(Kind::Object, extra);
        }
        let extra = self.new_object();
        self.meter.add_bytes(Self::EXTRA);
        self.extras.insert(object, extra.payload());
        extra
    }
}
