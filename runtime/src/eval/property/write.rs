//! Properties written and deleted, in strict mode.

use super::PropertyKey;
use crate::eval::property::own_symbols;
use crate::eval::property::refuse;
use crate::eval::unawaited::{self, PromiseUse};
use crate::eval::vm::Vm;
use crate::heap::RegExp;
use crate::heap::object::{FROZEN, NON_EXTENSIBLE, SEALED};
use crate::heap::sparse::{MAX_GAP, SPARSE_ITEM};
use crate::interface::error_code::ErrorCode;
use crate::value::atom::{Atom, known};
use crate::value::family::Family;
use crate::value::numeric::to_int32;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use agentscript_lang::Refusal;
use std::collections::BTreeMap;

/// So many items of an array go into a tree at once.
const PIECE: usize = 16 << 10;

impl Vm {
    /// `object.name = value` in strict mode
    #[inline]
    pub fn set(&mut self, object: Value, name: Atom, value: Value) -> Result<()> {
        if object.is(Kind::Object) && self.heap.flags(object) & (FROZEN | NON_EXTENSIBLE) == 0 && name != known::PROTO {
            self.heap.set_own(object, name, value);
            return Ok(());
        }
        let key = self.atom_key(name);
        self.set_key(object, key, value)
    }

    /// `object[key] = value` in strict mode
    #[inline]
    pub fn set_index(&mut self, object: Value, key: Value, value: Value) -> Result<()> {
        if object.is(Kind::Array) && key.is_number() && self.heap.set_item(object, key.as_number(), value) {
            return Ok(());
        }
        if object.is(Kind::Uint8Array)
            && key.is_number()
            && value.is_number()
            && self.heap.set_byte(object, key.as_number(), value.as_number())
        {
            return Ok(());
        }
        if object.is(Kind::Object) {
            let key = self.to_property_key(key)?;
            let name = self.key_atom(key);
            // Converting the key may have frozen the object.
            if name == known::PROTO || self.heap.flags(object) & (FROZEN | NON_EXTENSIBLE) != 0 {
                return self.set_key(object, key, value);
            }
            self.heap.set_own(object, name, value);
            return Ok(());
        }
        if object.is_nullish() {
            let key = self.describe_key(key);
            return Err(self.no_properties(object, "set", "setting", key.as_deref()));
        }
        let key = self.to_property_key(key)?;
        self.set_key(object, key, value)
    }

    /// `object[key] = value` in strict mode for a key that is converted.
    pub fn set_key(&mut self, object: Value, key: PropertyKey, value: Value) -> Result<()> {
        if key == PropertyKey::Name(known::PROTO) {
            refuse::refuse(self, known::PROTO)?;
        }
        if object.is_nullish() {
            let key = self.key_text(key);
            return Err(self.no_properties(object, "set", "setting", Some(&key)));
        }
        if object.is_string() && self.has_own(object, key) {
            return Err(read_only(self, object, key));
        }
        if !object.is_object() {
            let (key, text) = (self.key_text(key), self.to_text_lossy(object));
            let what = self.type_of(object);
            return Err(self.type_error(&format!("Cannot create property '{key}' on {what} '{text}'")));
        }
        if object.is(Kind::Uint8Array) {
            match key {
                PropertyKey::Index(index) => return self.set_view_item(object, index, value),
                // There is no such byte, but the value is converted.
                PropertyKey::Name(name) if self.is_numeric(name) => return self.to_number(value).map(drop),
                PropertyKey::Name(_) if self.key_text(key) == "BYTES_PER_ELEMENT" => {
                    let message =
                        "Cannot assign to read only property 'BYTES_PER_ELEMENT' of object '[object Uint8Array]'";
                    return Err(self.type_error(message));
                }
                PropertyKey::Name(_) => {}
            }
        }
        let flags = self.heap.flags(object);
        let is_computed = |this: &Self| match key {
            PropertyKey::Name(name) => self.realm.registry.setter(this.family(object), name).is_some(),
            PropertyKey::Index(_) => false,
        };
        if flags & (FROZEN | NON_EXTENSIBLE) != 0 && !is_computed(self) {
            let exists = self.has_own(object, key);
            if exists && flags & FROZEN != 0 {
                return Err(read_only(self, object, key));
            }
            if !exists {
                let key = self.key_text(key);
                return Err(self.type_error(&format!("Cannot add property {key}, object is not extensible")));
            }
        }
        match (object.kind(), key) {
            (Kind::Array, PropertyKey::Index(index)) => set_item(self, object, index, value),
            (Kind::Array, PropertyKey::Name(known::LENGTH)) => set_length(self, object, value),
            (
                Kind::Map | Kind::Set | Kind::InternalSlots | Kind::ArrayBuffer | Kind::Uint8Array,
                PropertyKey::Name(name),
            ) if let Some(set) = self.realm.registry.setter(self.family(object), name) => {
                let Some(set) = set else {
                    let key = self.key_text(key);
                    // V8 names the prototype in this message for regular expressions and typed arrays.
                    let is_regexp = self.heap.regexp(object).is_some() || object.is(Kind::Uint8Array);
                    let text = if is_regexp { "[object Object]".into() } else { self.object_tag(object) };
                    return Err(
                        self.type_error(&format!("Cannot set property {key} of {text} which has only a getter"))
                    );
                };
                set(self, object, &[value]).map(drop)
            }
            (Kind::InternalSlots, PropertyKey::Name(known::LAST_INDEX)) if self.heap.regexp(object).is_some() => {
                if let Some(regexp) = self.heap.slots_mut::<RegExp>(object) {
                    regexp.last_index = value;
                }
                Ok(())
            }
            (Kind::Function | Kind::NativeClosure, PropertyKey::Name(known::NAME | known::LENGTH)) => {
                Err(read_only(self, object, key))
            }
            (Kind::Iterator, PropertyKey::Name(name @ (known::NEXT | known::RETURN | known::THROW))) => {
                Err(fixed_method(self, name, "a built-in iterator", "write a generator"))
            }
            (Kind::Native | Kind::App | Kind::Tool | Kind::HostFunction, _) => {
                if self.has_own(object, key) {
                    return Err(read_only(self, object, key));
                }
                let key = self.key_text(key);
                Err(self.type_error(&format!("Cannot add property {key}, object is not extensible")))
            }
            _ => {
                self.define(object, key, value);
                Ok(())
            }
        }
    }

    /// Define an own data property, whatever the flags: for literals, spread and data.
    pub fn define(&mut self, object: Value, key: PropertyKey, value: Value) {
        match (object.kind(), key) {
            (Kind::Object, _) => {
                let atom = self.key_atom(key);
                self.heap.set_own(object, atom, value);
            }
            (Kind::Array, PropertyKey::Index(index)) => {
                if self.heap.is_sparse(object) {
                    return self.heap.set_sparse_item(object, index, value);
                }
                self.heap.with_items(object, |items| {
                    let index = index as usize;
                    if index >= items.len() {
                        items.resize(index + 1, Value::HOLE);
                    }
                    items[index] = value;
                });
            }
            _ => {
                let atom = self.key_atom(key);
                let extra = self.heap.extra_of(object);
                self.heap.set_own(extra, atom, value);
            }
        }
    }

    /// `bytes[index] = value`: no effect where there is no such byte.
    pub fn set_view_item(&mut self, view: Value, index: u32, value: Value) -> Result<()> {
        // As in V8, an index that was not there before the conversion is not written.
        let is_there = (index as usize) < self.heap.view_length(view);
        let byte = to_int32(self.to_number(value)?) as u8;
        if is_there && let Some(item) = self.heap.view_bytes_mut(view).get_mut(index as usize) {
            *item = byte;
        }
        Ok(())
    }

    /// A new array of holes: sparse if memory could not hold it.
    pub fn new_holes(&mut self, length: u32) -> Result {
        let array = self.heap.new_array(Vec::new());
        self.resize(array, length as usize)?;
        Ok(array)
    }

    /// Lengthen an array by holes.
    fn resize(&mut self, array: Value, length: usize) -> Result<()> {
        let present = self.heap.length(array);
        if length * size_of::<Value>() > self.heap.meter.limits.max_memory_bytes as usize {
            make_sparse(self, array)?;
        }
        if self.heap.is_sparse(array) {
            self.heap.set_sparse_length(array, length as u32);
            return Ok(());
        }
        self.reserve(length.saturating_sub(present).saturating_mul(size_of::<Value>()))?;
        self.work(length.saturating_sub(present) / 8)?;
        self.heap.with_items(array, |items| {
            items.reserve_exact(length.saturating_sub(items.len()));
            items.resize(length, Value::HOLE);
        });
        Ok(())
    }

    /// `delete object[key]` in strict mode
    pub fn delete(&mut self, object: Value, key: PropertyKey) -> Result {
        if object.is_nullish() {
            return Err(self.type_error("Cannot convert undefined or null to object"));
        }
        let fixed = match (object.kind(), key) {
            (Kind::Array | Kind::String, PropertyKey::Name(known::LENGTH)) => true,
            (Kind::InternalSlots, PropertyKey::Name(known::LAST_INDEX)) => self.heap.regexp(object).is_some(),
            (Kind::Uint8Array, PropertyKey::Index(_)) => true,
            _ => {
                self.heap.flags(object) & (SEALED | FROZEN) != 0
                    || matches!(
                        object.kind(),
                        Kind::Native | Kind::App | Kind::Tool | Kind::HostFunction | Kind::String
                    )
            }
        };
        if fixed && self.has_own(object, key) {
            // A function is named by its text, and an error by its name and message.
            let is_shown = matches!(self.type_of(object), "function") || self.family(object) == Family::Error;
            let text = if is_shown { self.describe(object) } else { self.object_tag(object) };
            let key = self.key_text(key);
            return Err(self.type_error(&format!("Cannot delete property '{key}' of {text}")));
        }
        match (object.kind(), key) {
            (Kind::Function | Kind::NativeClosure, PropertyKey::Name(known::NAME | known::LENGTH)) => {
                let key = self.key_text(key);
                Err(Thrown::illegal(
                    ErrorCode::ValidationError,
                    Refusal::DisallowedProperty,
                    format!("Deleting the property '{key}' of a function is not allowed in AgentScript"),
                ))?;
            }
            (Kind::Object, _) => {
                let atom = self.key_atom(key);
                let work = self.heap.remove_own(object, atom);
                self.work(work)?;
            }
            (Kind::Array, PropertyKey::Index(index)) if self.heap.is_sparse(object) => {
                self.heap.remove_sparse_item(object, index);
            }
            (Kind::Array, PropertyKey::Index(index)) => {
                self.heap.with_items(object, |items| {
                    if let Some(item) = items.get_mut(index as usize) {
                        *item = Value::HOLE;
                    }
                });
            }
            _ => {
                let atom = self.key_atom(key);
                if let Some(&extra) = self.heap.extras.get(&object) {
                    self.heap.remove_own(Value::handle(Kind::Object, extra), atom);
                }
            }
        }
        Ok(Value::TRUE)
    }
}

/// The end of the run where a script replaces a method that built-ins call without looking it up.
#[cold]
fn fixed_method(vm: &mut Vm, name: Atom, of: &str, instead: &str) -> Thrown {
    let name = vm.key_text(PropertyKey::Name(name));
    let text = format!("Setting '{name}' of {of} is not allowed in AgentScript: {instead}");
    Thrown::illegal(ErrorCode::ValidationError, Refusal::DisallowedProperty, text)
}

fn set_item(vm: &mut Vm, array: Value, index: u32, value: Value) -> Result<()> {
    let length = vm.heap.length(array);
    let is_far = index as usize > length + MAX_GAP && is_better_sparse(vm, array, index as usize)?;
    if is_far || vm.heap.is_sparse(array) {
        make_sparse(vm, array)?;
        vm.reserve(SPARSE_ITEM)?;
        vm.work(1)?;
        vm.heap.set_sparse_item(array, index, value);
        return settle_form(vm, array);
    }
    if index as usize >= length {
        let grown = index as usize + 1 - length;
        vm.reserve(grown.saturating_mul(8))?;
        vm.work(grown)?;
    }
    vm.define(array, PropertyKey::Index(index), value);
    Ok(())
}

/// Whether a tree takes less memory than a list that ends at an index far behind the end of an array.
fn is_better_sparse(vm: &mut Vm, array: Value, index: usize) -> Result<bool> {
    Ok(present(vm, array)? * SPARSE_ITEM < index * size_of::<Value>())
}

/// How many items an array has, without its holes; charged.
fn present(vm: &mut Vm, array: Value) -> Result<usize> {
    if vm.heap.is_sparse(array) {
        return Ok(vm.heap.sparse_count(array));
    }
    vm.work(vm.heap.length(array) / 16)?;
    Ok(vm.heap.items(array).iter().filter(|&&item| item != Value::HOLE).count())
}

/// Make an array sparse, if it is not.
fn make_sparse(vm: &mut Vm, array: Value) -> Result<()> {
    if !vm.heap.is_sparse(array) {
        let present = present(vm, array)?;
        vm.reserve(present.saturating_mul(SPARSE_ITEM))?;
        let mut tree = BTreeMap::new();
        let length = vm.heap.length(array);
        for start in (0..length).step_by(PIECE) {
            let piece = start..length.min(start + PIECE);
            vm.work(piece.len())?;
            let items = (piece.start as u32..).zip(vm.heap.items(array)[piece].iter().copied());
            tree.extend(items.filter(|&(_, item)| item != Value::HOLE));
        }
        vm.heap.make_sparse(array, tree);
    }
    Ok(())
}

/// Make a sparse array dense if that takes no more memory.
fn settle_form(vm: &mut Vm, array: Value) -> Result<()> {
    let (length, count) = (vm.heap.length(array), vm.heap.sparse_count(array));
    let fits = length <= MAX_GAP || length * size_of::<Value>() <= count * SPARSE_ITEM;
    if fits { vm.heap.densify(array) } else { Ok(()) }
}

/// `array.length = value` (ECMAScript 10.4.2.4)
fn set_length(vm: &mut Vm, array: Value, value: Value) -> Result<()> {
    // ToUint32, then ToNumber: an object is converted twice.
    let number = vm.to_number(value)?;
    let length = to_int32(number) as u32;
    let number = if value.is_object() { vm.to_number(value)? } else { number };
    if f64::from(length) != number {
        return Err(vm.range_error("Invalid array length"));
    }
    let length = length as usize;
    let present = vm.heap.length(array);
    if value.is_object() && vm.heap.flags(array) & FROZEN != 0 && length != present {
        return Err(read_only(vm, array, PropertyKey::Name(known::LENGTH)));
    }
    if length > present {
        return vm.resize(array, length);
    }
    let is_sealed = vm.heap.flags(array) & SEALED != 0;
    let last = if is_sealed { last_item(vm, array, length) } else { None };
    let kept = last.map_or(length, |last| last + 1);
    if vm.heap.is_sparse(array) {
        vm.work(1 + vm.heap.sparse_count(array))?;
        vm.heap.set_sparse_length(array, kept as u32);
        settle_form(vm, array)?;
    } else {
        vm.heap.with_items(array, |items| items.truncate(kept));
    }
    match last {
        Some(last) => Err(vm.type_error(&format!("Cannot delete property '{last}' of [object Array]"))),
        None => Ok(()),
    }
}

/// The last index of an item from an index on.
fn last_item(vm: &Vm, array: Value, from: usize) -> Option<usize> {
    if vm.heap.is_sparse(array) {
        return vm.heap.sparse_items(array, from..usize::MAX).next_back().map(|(index, _)| index as usize);
    }
    let items = &vm.heap.items(array)[from..];
    items.iter().rposition(|&item| item != Value::HOLE).map(|last| from + last)
}

/// The error of a write to a property that is only read.
#[cold]
fn read_only(vm: &mut Vm, object: Value, key: PropertyKey) -> Thrown {
    let (key, text) = (vm.key_text(key), vm.describe(object));
    let what = vm.type_of(object);
    vm.type_error(&format!("Cannot assign to read only property '{key}' of {what} '{text}'"))
}

/// Copy the own enumerable properties of a value to an object, but for some keys: spread.
pub fn copy_properties(vm: &mut Vm, source: Value, target: Value, taken: &[PropertyKey]) -> Result<()> {
    if !source.is_object() && !source.is_string() {
        return Ok(());
    }
    if source.is(Kind::Promise) {
        unawaited::note_use(vm, source, PromiseUse::Properties, None);
    }
    let keys = vm.charged_keys(source, false)?;
    vm.work(keys.len() / 8 * taken.len())?;
    for key in keys {
        vm.work(1)?;
        if !taken.contains(&key)
            && let Some(value) = vm.own_property(source, key)?
        {
            vm.define(target, key, value);
        }
    }
    for (symbol, value) in own_symbols(vm, source)? {
        let key = PropertyKey::Name(symbol);
        if !taken.contains(&key) {
            vm.define(target, key, value);
        }
    }
    Ok(())
}
