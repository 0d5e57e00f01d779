//! Properties: read, written, deleted.

use super::{Built, Expression, Node, Slots, specialise};
use crate::error::{Result, Thrown};
use crate::symbol::Sym;
use crate::value::{Kind, Value};
use crate::vm::Vm;
use agentscript_lang::program::Origin;

struct Member<E> {
    object: E,
    name: Sym,
    at: u32,
}

/// `object.name`
pub fn member(object: Built, name: Sym, at: u32) -> Built {
    specialise!(object, object => Member { object, name, at })
}

impl<E: Node> Node for Member<E> {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let object = self.object.eval(vm, fp)?;
        if object.is(Kind::Object)
            && let Some(value) = vm.heap.own(object, self.name)
        {
            return Ok(value);
        }
        vm.get(object, self.name).map_err(|thrown| thrown.at(vm, self.at))
    }
}

struct Index<E, K> {
    object: E,
    key: K,
    at: u32,
}

/// `object[key]`
pub fn index(object: Built, key: Built, at: u32) -> Built {
    match (object, key) {
        (Built::Local(object), Built::Local(key)) => Built::of(Index { object, key, at }),
        (Built::Local(object), key) => Built::of(Index { object, key: key.node(), at }),
        (object, Built::Local(key)) => Built::of(Index { object: object.node(), key, at }),
        (object, key) => Built::of(Index { object: object.node(), key: key.node(), at }),
    }
}

impl<E: Node, K: Node> Node for Index<E, K> {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let object = self.object.eval(vm, fp)?;
        let key = self.key.eval(vm, fp)?;
        vm.get_index(object, key).map_err(|thrown| thrown.at(vm, self.at))
    }
}

struct SetMember<E, V> {
    object: E,
    name: Sym,
    value: V,
    at: u32,
}

/// `object.name = value`
pub fn set_member(object: Built, name: Sym, value: Built, at: u32) -> Built {
    match object {
        Built::Local(object) => Built::of(SetMember { object, name, value: value.node(), at }),
        object => Built::of(SetMember { object: object.node(), name, value: value.node(), at }),
    }
}

impl<E: Node, V: Node> Node for SetMember<E, V> {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let object = self.object.eval(vm, fp)?;
        let value = self.value.eval(vm, fp)?;
        match vm.set(object, self.name, value) {
            Ok(()) => Ok(value),
            Err(thrown) => Err(thrown.at(vm, self.at)),
        }
    }
}

struct SetIndex<E, K> {
    object: E,
    key: K,
    value: Expression,
    at: u32,
}

/// `object[key] = value`
pub fn set_index(object: Built, key: Built, value: Built, at: u32) -> Built {
    let value = value.node();
    match (object, key) {
        (Built::Local(object), Built::Local(key)) => Built::of(SetIndex { object, key, value, at }),
        (Built::Local(object), key) => Built::of(SetIndex { object, key: key.node(), value, at }),
        (object, key) => Built::of(SetIndex { object: object.node(), key: key.node(), value, at }),
    }
}

impl<E: Node, K: Node> Node for SetIndex<E, K> {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let object = self.object.eval(vm, fp)?;
        let key = self.key.eval(vm, fp)?;
        let value = self.value.eval(vm, fp)?;
        match vm.set_index(object, key, value) {
            Ok(()) => Ok(value),
            Err(thrown) => Err(thrown.at(vm, self.at)),
        }
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

/// The value, if an object pattern can take it apart.
pub struct RequireObject {
    /// The value.
    pub value: Expression,
    /// The first property of the pattern.
    pub first: Option<Sym>,
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
        let first = self.first.map(|first| vm.symbol_text(first));
        let text = match self.origin {
            Origin::Source(span) => vm.value_text(span),
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

/// The properties that are left: `{a, ...rest} = object`
pub struct ObjectRest {
    /// Holds the object.
    pub object: usize,
    /// Keys that were taken.
    pub taken: Box<[Expression]>,
}

impl Node for ObjectRest {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let object = fp[self.object].get();
        let mut taken = Vec::with_capacity(self.taken.len());
        for key in &self.taken {
            let key = key.eval(vm, fp)?;
            taken.push(vm.to_property_key(key)?);
        }
        let rest = vm.heap.new_object();
        vm.copy_properties(object, rest, &taken)?;
        Ok(rest)
    }
}
