//! Properties: read, written, deleted.

use super::{Built, Expression, Node, Slots, local, operand};
use crate::eval::error;
use crate::eval::property::{self, PropertyKey};
use crate::eval::unawaited;
use crate::eval::vm::Vm;
use crate::heap::object::Hint;
use crate::value::atom::{Atom, known};
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use agentscript_lang::program::Origin;

struct Member<E> {
    object: E,
    name: Atom,
    hint: Hint,
    at: u32,
}

struct Length<E> {
    object: E,
    at: u32,
}

/// `object.name`
pub fn member(object: Built, name: Atom, at: u32) -> Built {
    if name == known::LENGTH {
        return local!(object, object => Built::from_node(Length { object, at }));
    }
    local!(object, object => Built::from_node(Member { object, name, hint: Hint::default(), at }))
}

impl<E: Node + 'static> Node for Member<E> {
    #[inline]
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let object = self.object.eval(vm, fp)?;
        if object.is(Kind::Object) {
            return match vm.heap.own_hinted(object, self.name, &self.hint) {
                Some(value) => Ok(value),
                None => get_missing(vm, object, self.name, self.at),
            };
        }
        get(vm, object, self.name, self.at)
    }
}

impl<E: Node + 'static> Node for Length<E> {
    #[inline]
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let object = self.object.eval(vm, fp)?;
        if object.is(Kind::Array) {
            return Ok(Value::number(vm.heap.length(object) as f64));
        }
        if object.is_string() {
            return Ok(Value::number(f64::from(vm.heap.str(object).units)));
        }
        if object.is(Kind::Uint8Array) {
            return Ok(Value::number(vm.heap.byte_count(object) as f64));
        }
        get(vm, object, known::LENGTH, self.at)
    }
}

#[inline(never)]
fn get(vm: &mut Vm, object: Value, name: Atom, at: u32) -> Result {
    if object.is(Kind::Promise) {
        unawaited::note_read(vm, object, PropertyKey::Name(name), at);
    }
    vm.get(object, name).map_err(|thrown| thrown.at(vm, at))
}

#[inline(never)]
fn get_missing(vm: &mut Vm, object: Value, name: Atom, at: u32) -> Result {
    // Only a table can still have it, unread.
    let value = match vm.heap.is_table(object) {
        true => vm.get(object, name),
        false => vm.get_missing(object, name),
    };
    value.map_err(|thrown| thrown.at(vm, at))
}

struct Index<E, K> {
    object: E,
    key: K,
    at: u32,
}

/// `object[key]`
pub fn index(object: Built, key: Built, at: u32) -> Built {
    local!(object, object => operand!(key, key => Built::from_node(Index { object, key, at })))
}

impl<E: Node + 'static, K: Node + 'static> Node for Index<E, K> {
    #[inline]
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let object = self.object.eval(vm, fp)?;
        let key = self.key.eval(vm, fp)?;
        if object.is(Kind::Array)
            && (self.key.is_number() || key.is_number())
            && let Some(item) = vm.heap.item(object, key.as_number())
        {
            return Ok(item);
        }
        if object.is(Kind::Uint8Array)
            && (self.key.is_number() || key.is_number())
            && let Some(byte) = vm.heap.byte(object, key.as_number())
        {
            return Ok(byte);
        }
        get_index(vm, object, key, self.at)
    }
}

#[inline(never)]
fn get_index(vm: &mut Vm, object: Value, key: Value, at: u32) -> Result {
    if object.is(Kind::Promise) {
        return get_of_promise(vm, object, key, at).map_err(|thrown| thrown.at(vm, at));
    }
    vm.get_index(object, key).map_err(|thrown| thrown.at(vm, at))
}

#[cold]
fn get_of_promise(vm: &mut Vm, promise: Value, key: Value, at: u32) -> Result {
    let key = vm.to_property_key(key)?;
    unawaited::note_read(vm, promise, key, at);
    vm.get_key(promise, key)
}

struct SetMember<E> {
    object: E,
    name: Atom,
    value: Expression,
    hint: Hint,
    at: u32,
}

/// `object.name = value`
pub fn set_member(object: Built, name: Atom, value: Expression, at: u32) -> Expression {
    local!(object, object => Box::new(SetMember { object, name, value, hint: Hint::default(), at }))
}

impl<E: Node + 'static> Node for SetMember<E> {
    #[inline]
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let object = self.object.eval(vm, fp)?;
        let value = self.value.eval(vm, fp)?;
        if object.is(Kind::Object) && vm.heap.set_hinted(object, self.name, value, &self.hint) {
            return Ok(value);
        }
        set(vm, object, self.name, value, self.at)
    }
}

#[inline(never)]
fn set(vm: &mut Vm, object: Value, name: Atom, value: Value, at: u32) -> Result {
    match vm.set(object, name, value) {
        Ok(()) => Ok(value),
        Err(thrown) => Err(thrown.at(vm, at)),
    }
}

struct SetIndex<E, K> {
    object: E,
    key: K,
    value: Expression,
    at: u32,
}

/// `object[key] = value`
pub fn set_index(object: Built, key: Built, value: Expression, at: u32) -> Expression {
    local!(object, object => operand!(key, key => Box::new(SetIndex { object, key, value, at })))
}

impl<E: Node + 'static, K: Node + 'static> Node for SetIndex<E, K> {
    #[inline]
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let object = self.object.eval(vm, fp)?;
        let key = self.key.eval(vm, fp)?;
        let value = self.value.eval(vm, fp)?;
        if object.is(Kind::Array)
            && (self.key.is_number() || key.is_number())
            && vm.heap.set_item(object, key.as_number(), value)
        {
            return Ok(value);
        }
        if object.is(Kind::Uint8Array)
            && (self.key.is_number() || key.is_number())
            && value.is_number()
            && vm.heap.set_byte(object, key.as_number(), value.as_number())
        {
            return Ok(value);
        }
        set_index_slow(vm, object, key, value, self.at)
    }
}

#[inline(never)]
fn set_index_slow(vm: &mut Vm, object: Value, key: Value, value: Value, at: u32) -> Result {
    match vm.set_index(object, key, value) {
        Ok(()) => Ok(value),
        Err(thrown) => Err(thrown.at(vm, at)),
    }
}

/// `delete object[key]`; for names the key is a string constant
pub struct Delete {
    /// The object.
    pub object: Expression,
    /// The key.
    pub key: Expression,
    /// Offset in the source.
    pub at: u32,
}

impl Node for Delete {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let object = self.object.eval(vm, fp)?;
        let key = self.key.eval(vm, fp)?;
        let result = vm.to_property_key(key).and_then(|key| vm.delete(object, key));
        result.map_err(|thrown| thrown.at(vm, self.at))
    }
}

/// Check that an object pattern can destructure a value.
pub struct RequireObject {
    /// The value.
    pub value: Expression,
    /// The first property of the pattern.
    pub first: Option<Atom>,
    /// How messages name the value.
    pub origin: Origin,
    /// Offset in the source.
    pub at: u32,
}

impl Node for RequireObject {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let value = self.value.eval(vm, fp)?;
        if !value.is_nullish() {
            return Ok(value);
        }
        Err(self.refuse(vm, value))
    }
}

impl RequireObject {
    #[cold]
    fn refuse(&self, vm: &mut Vm, value: Value) -> Thrown {
        let what = vm.to_text_lossy(value);
        let first = self.first.map(|first| vm.heap.atom_text(first));
        let text = match self.origin {
            Origin::Source(span) => error::value_text(vm, span),
            Origin::Item | Origin::Value | Origin::Part => vm.describe_typed(value),
        };
        let message = match (self.origin, first) {
            (Origin::Part, Some(first)) => format!("Cannot read properties of {what} (reading '{first}')"),
            (_, Some(first)) => format!("Cannot destructure property '{first}' of '{text}' as it is {what}."),
            (_, None) => format!("Cannot destructure '{text}' as it is {what}."),
        };
        let at = match self.origin {
            Origin::Source(span) => span.start,
            Origin::Item | Origin::Value | Origin::Part => self.at,
        };
        vm.type_error(&message).at(vm, at)
    }
}

/// The rest of an object pattern: `{a, ...rest} = object`
pub struct ObjectRest {
    /// Holds the object.
    pub object: usize,
    /// Keys that are excluded.
    pub taken: Box<[Expression]>,
    /// Offset in the source.
    pub at: u32,
}

impl Node for ObjectRest {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let object = fp[self.object].get();
        if object.is_nullish() {
            return Err(self.refuse(vm, object));
        }
        let mut taken = Vec::with_capacity(self.taken.len());
        for key in &self.taken {
            let key = key.eval(vm, fp)?;
            taken.push(vm.to_property_key(key)?);
        }
        let rest = vm.heap.new_object();
        property::copy_properties(vm, object, rest, &taken)?;
        Ok(rest)
    }
}

impl ObjectRest {
    #[cold]
    fn refuse(&self, vm: &mut Vm, object: Value) -> Thrown {
        let message = format!("Cannot read properties of {}", vm.to_text_lossy(object));
        vm.type_error(&message).at(vm, self.at)
    }
}
