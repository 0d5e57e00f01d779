//! Built-in objects with internal slots (ECMAScript 6.1.7.2) that are neither functions nor collections, such as dates.
//!
//! The heap stores what a type implements [`InternalSlots`] for, and knows none of these types. To add one, implement
//! the trait in its file in `builtins/`, and add its [`Family`].

use super::{Heap, block, slab_cost};
use crate::regexp::Program;
use crate::value::family::Family;
use crate::value::{Kind, Value};
use std::any::Any;
use std::sync::Arc;

/// The internal slots of a built-in object. Its named properties are in [`Heap::extras`], as those of arrays are.
pub trait InternalSlots: Any + Send {
    /// Returns the family whose methods the object has.
    fn family(&self) -> Family;

    /// Returns the name of the constructor, as `instanceof` and messages need it.
    fn class(&self) -> &'static str {
        self.family().name()
    }

    /// Returns the tag that `Object.prototype.toString` writes after `object`.
    fn tag(&self) -> &'static str {
        self.class()
    }

    /// Returns the family of the iterators over the object.
    fn iterator_family(&self) -> Family {
        Family::ArrayIterator
    }

    /// Returns the bytes that the slots own beside themselves.
    fn cost(&self) -> usize {
        0
    }

    /// Calls `reach` with each value that the slots hold.
    fn trace(&self, _reach: &mut dyn FnMut(Value)) {}

    /// Returns the slots that `structuredClone` gives the copy; `None` if the object cannot be cloned.
    fn structured_clone(&self) -> Option<Box<dyn InternalSlots>> {
        None
    }

    /// Returns the primitive that every conversion of the object gives; `None` if its methods decide.
    fn primitive(&self) -> Option<Value> {
        None
    }

    /// Returns whether the default hint of a conversion to a primitive is `string` (ECMAScript 21.4.4.45).
    fn prefers_string(&self) -> bool {
        false
    }
}

/// The internal slots of a regular expression.
#[derive(Clone)]
pub struct RegExp {
    /// The compiled pattern.
    pub program: Arc<Program>,
    /// The source of the pattern, a string.
    pub source: Value,
    /// Its property `lastIndex`.
    pub last_index: Value,
}

impl InternalSlots for RegExp {
    fn family(&self) -> Family {
        Family::RegExp
    }

    /// Those who share a program pay a part of it each, the script or cache that owns it excepted.
    fn cost(&self) -> usize {
        self.program.bytes() / (Arc::strong_count(&self.program) - 1).max(1)
    }

    fn trace(&self, reach: &mut dyn FnMut(Value)) {
        reach(self.source);
        reach(self.last_index);
    }

    fn structured_clone(&self) -> Option<Box<dyn InternalSlots>> {
        Some(Box::new(Self { last_index: Value::ZERO, ..self.clone() }))
    }
}

/// Returns the bytes that internal slots take.
pub(super) fn slots_cost(slots: &dyn InternalSlots) -> usize {
    slab_cost::<Option<Box<dyn InternalSlots>>>() + block(size_of_val(slots)) + slots.cost()
}

impl Heap {
    /// Makes a built-in object.
    pub fn new_with_slots(&mut self, slots: impl InternalSlots) -> Value {
        self.new_with_boxed_slots(Box::new(slots))
    }

    /// Makes a built-in object of slots that are in a box already.
    pub fn new_with_boxed_slots(&mut self, slots: Box<dyn InternalSlots>) -> Value {
        self.meter.add_bytes(slots_cost(&*slots));
        Value::handle(Kind::InternalSlots, self.internal_slots.add(Some(slots)))
    }

    /// Makes a regular expression.
    pub fn new_regexp(&mut self, program: Arc<Program>, source: Value) -> Value {
        self.new_with_slots(RegExp { program, source, last_index: Value::ZERO })
    }

    /// Returns the internal slots of a regular expression.
    pub fn regexp(&self, value: Value) -> Option<&RegExp> {
        self.slots(value)
    }

    /// Returns the internal slots of a value that has some.
    pub fn internal_slots_of(&self, value: Value) -> Option<&dyn InternalSlots> {
        if value.is(Kind::InternalSlots) { self.internal_slots[value.index()].as_deref() } else { None }
    }

    /// Returns the tag of a built-in object, for messages.
    pub fn slots_tag(&self, object: Value) -> &'static str {
        self.internal_slots_of(object).map_or("Object", |slots| slots.tag())
    }

    /// Returns the name of the constructor of a built-in object, for messages.
    pub fn slots_class(&self, object: Value) -> &'static str {
        self.internal_slots_of(object).map_or("Object", |slots| slots.class())
    }

    /// Returns the internal slots of a value that are of the type `T`.
    pub fn slots<T: InternalSlots>(&self, value: Value) -> Option<&T> {
        (self.internal_slots_of(value)? as &dyn Any).downcast_ref()
    }

    /// Returns the internal slots of a value that are of the type `T`, to change them.
    pub fn slots_mut<T: InternalSlots>(&mut self, value: Value) -> Option<&mut T> {
        let slots = value.is(Kind::InternalSlots).then(|| self.internal_slots[value.index()].as_deref_mut())??;
        (slots as &mut dyn Any).downcast_mut()
    }

    /// Returns whether the internal slots of a value are of the type `T`.
    pub fn has_slots<T: InternalSlots>(&self, value: Value) -> bool {
        self.slots::<T>(value).is_some()
    }
}
