//! Properties of values of every kind: own ones first, then what built-ins of that kind have.
//!
//! There are no prototype objects: what a plain object does not have itself is looked up in the
//! tables of built-ins. Names that lead to prototypes and constructors end the run, unless they are own data.

pub(crate) mod refuse;
mod write;

pub use write::copy_properties;

use crate::eval::callable;
use crate::eval::json;
use crate::eval::native::Body;
use crate::eval::registry::Static;
use crate::eval::unawaited::{self, PromiseUse};
use crate::eval::vm::Vm;
use crate::heap::Class;
use crate::heap::atoms::array_index;
use crate::heap::charge::PIECE;
use crate::heap::object::{HIDDEN_CAUSE, HIDDEN_ERRORS, HIDDEN_MESSAGE, NULL_PROTOTYPE};
use crate::meter::buffer::Buffer;
use crate::value::atom::{Atom, SYMBOLS, known};
use crate::value::family::Family;
use crate::value::numeric::{NumberText, as_int32, text_number};
use crate::value::thrown::{Cause, Result, Thrown};
use crate::value::{Kind, Value};

/// A property key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PropertyKey {
    /// An array index.
    Index(u32),
    /// A name.
    Name(Atom),
}

impl PropertyKey {
    /// The sort key among the keys of an object: indices first, in ascending order; names keep their order.
    pub fn rank(self) -> u64 {
        match self {
            Self::Index(index) => u64::from(index),
            Self::Name(_) => u64::MAX,
        }
    }
}

impl Vm {
    /// Whether a value that is no plain object has a method of its own of that name.
    #[inline]
    pub fn has_own_method(&self, object: Value, name: Atom) -> bool {
        match object.kind() {
            Kind::Native => self.realm.registry.property(object.payload(), name).is_some(),
            Kind::App => true,
            _ if self.heap.extras.is_empty() => false,
            _ => self
                .heap
                .extras
                .get(&object)
                .is_some_and(|&extra| self.heap.own(Value::handle(Kind::Object, extra), name).is_some()),
        }
    }

    /// Appends the own property names of a value as strings: the enumerable ones, or `all`.
    pub fn push_keys(&mut self, value: Value, all: bool, names: &mut Buffer<Value>) -> Result<()> {
        if value.is(Kind::Promise) {
            unawaited::note_use(self, value, PromiseUse::Properties, None);
        }
        let keys = self.charged_keys(value, all)?;
        names.room(self, keys.len())?;
        for key in keys {
            self.work(1)?;
            let name = self.listed_key(key);
            names.push(self, name)?;
        }
        Ok(())
    }

    /// Returns a key as a string. Strings of large indices are not cached.
    pub fn listed_key(&mut self, key: PropertyKey) -> Value {
        match key {
            PropertyKey::Index(index) if index >= 256 => self.heap.string(&index.to_string()),
            PropertyKey::Index(_) | PropertyKey::Name(_) => self.key_string(key),
        }
    }

    /// The own property keys of a value, in their order, charged and counted: one step for each. The enumerable ones,
    /// or `all`.
    pub fn charged_keys(&mut self, value: Value, all: bool) -> Result<Buffer<PropertyKey>> {
        let (count, dense) = (self.heap.own_count(value), self.heap.dense_count(value));
        self.work(1 + count - dense)?;
        let hold = self.heap.hold(count.saturating_mul(2 * size_of::<PropertyKey>()))?;
        let mut keys = Vec::with_capacity(count);
        for from in (0..dense).step_by(PIECE) {
            let to = dense.min(from + PIECE);
            self.work(to - from)?;
            let indices = from as u32..to as u32;
            if value.is(Kind::Array) {
                let items = self.heap.items(value)[from..to].iter();
                keys.extend(
                    items
                        .zip(indices)
                        .filter(|&(&item, _)| item != Value::HOLE)
                        .map(|(_, index)| PropertyKey::Index(index)),
                );
            } else {
                keys.extend(indices.map(PropertyKey::Index));
            }
        }
        self.push_own_keys(value, all, &mut keys);
        Ok(Buffer::from_parts(keys, hold))
    }

    /// The property key of a value (ECMAScript 7.1.19).
    #[inline]
    pub fn to_property_key(&mut self, value: Value) -> Result<PropertyKey> {
        if value.is_number() {
            let number = value.as_number();
            let index = number as u32;
            if f64::from(index) == number && index != u32::MAX {
                return Ok(PropertyKey::Index(index));
            }
        }
        if value.is_string()
            && let Some(atom) = self.heap.atoms.recent(value)
        {
            return Ok(PropertyKey::Name(atom));
        }
        let string = self.to_string(value)?;
        if self.realm.script.code.iterables
            && let Some(symbol) = symbol_of(self, string)
        {
            return Ok(PropertyKey::Name(symbol));
        }
        if let Some(index) = array_index(self.heap.bytes(string)) {
            return Ok(PropertyKey::Index(index));
        }
        let atom = self.heap.intern(string);
        self.heap.atoms.remember(string, atom);
        Ok(PropertyKey::Name(atom))
    }

    /// A key as a name, as plain objects keep it.
    pub fn key_atom(&mut self, key: PropertyKey) -> Atom {
        match key {
            PropertyKey::Name(atom) => atom,
            PropertyKey::Index(index) => self.heap.intern_index(index),
        }
    }

    /// A name as a key.
    pub fn atom_key(&self, atom: Atom) -> PropertyKey {
        self.heap.atoms.index(atom).map_or(PropertyKey::Name(atom), PropertyKey::Index)
    }

    /// A key as a string.
    pub fn key_string(&mut self, key: PropertyKey) -> Value {
        let atom = self.key_atom(key);
        self.heap.atom_string(atom)
    }

    /// A key as text, for messages.
    pub fn key_text(&mut self, key: PropertyKey) -> String {
        match key {
            PropertyKey::Index(index) => index.to_string(),
            PropertyKey::Name(atom) => self.heap.atom_text(atom),
        }
    }

    /// `object.name`
    #[inline]
    pub fn get(&mut self, object: Value, name: Atom) -> Result {
        if object.is(Kind::Object)
            && let Some(held) = self.heap.own(object, name)
        {
            return json::read_held(self, object, name, held);
        }
        if object.is(Kind::Array) && name == known::LENGTH {
            return Ok(Value::number(self.heap.length(object) as f64));
        }
        get_slow(self, object, name)
    }

    /// `object.name` of a plain object that has no such property of its own.
    #[inline]
    pub fn get_missing(&mut self, object: Value, name: Atom) -> Result {
        // Only names of built-ins can be inherited.
        if name.0 as usize >= self.realm.registry.names.len() {
            Ok(Value::UNDEFINED)
        } else {
            get_slow(self, object, name)
        }
    }

    /// `object[key]`
    #[inline]
    pub fn get_index(&mut self, object: Value, key: Value) -> Result {
        if object.is(Kind::Array)
            && key.is_number()
            && let Some(item) = self.heap.item(object, key.as_number())
        {
            return Ok(item);
        }
        if object.is(Kind::Uint8Array)
            && key.is_number()
            && let Some(byte) = self.heap.byte(object, key.as_number())
        {
            return Ok(byte);
        }
        get_index_slow(self, object, key)
    }

    /// `object[key]` for a key that is converted.
    pub fn get_key(&mut self, object: Value, key: PropertyKey) -> Result {
        if let Some(value) = self.own_property(object, key)? {
            return Ok(value);
        }
        match key {
            PropertyKey::Index(_) if !object.is_nullish() => Ok(Value::UNDEFINED),
            PropertyKey::Index(_) | PropertyKey::Name(_) => {
                let atom = self.key_atom(key);
                get_slow(self, object, atom)
            }
        }
    }

    #[cold]
    pub(crate) fn no_properties(&mut self, object: Value, verb: &str, doing: &str, key: Option<&str>) -> Thrown {
        let what = if object == Value::NULL { "null" } else { "undefined" };
        let key = key.map_or_else(String::new, |key| format!(" ({doing} '{key}')"));
        self.type_error(&format!("Cannot {verb} properties of {what}{key}"))
    }

    /// A key as V8 prints it without converting it; `None` where it has a conversion of its own.
    #[cold]
    fn describe_key(&mut self, key: Value) -> Option<String> {
        let converts = match key.kind() {
            Kind::Array => true,
            Kind::Object if self.heap.class(key).is_error() => false,
            Kind::Object => {
                self.heap.flags(key) & NULL_PROTOTYPE != 0 || self.heap.own(key, known::TO_STRING).is_some()
            }
            _ => false,
        };
        (!converts).then(|| self.describe(key))
    }

    /// The family of a value, which has its methods.
    pub fn family(&self, value: Value) -> Family {
        match value.kind() {
            Kind::Number => Family::Number,
            Kind::Boolean => Family::Boolean,
            Kind::String => Family::String,
            Kind::Array => Family::Array,
            Kind::Native if !self.realm.registry.natives[value.index()].is_function() => Family::Object,
            Kind::Function | Kind::Native | Kind::NativeClosure | Kind::Tool | Kind::HostFunction => Family::Function,
            Kind::Map => Family::Map,
            Kind::Set => Family::Set,
            Kind::Promise => Family::Promise,
            Kind::Iterator => self.heap.iterators[value.index()].family,
            Kind::InternalSlots => self.heap.internal_slots_of(value).map_or(Family::Object, |slots| slots.family()),
            Kind::ArrayBuffer => Family::ArrayBuffer,
            Kind::Uint8Array => Family::Uint8Array,
            Kind::BigInt => Family::BigInt,
            Kind::Object if self.heap.class(value) == Class::DomException => Family::DomException,
            Kind::Object if self.heap.class(value).is_error() => Family::Error,
            Kind::Object | Kind::App | Kind::Undefined | Kind::Null | Kind::Unread | Kind::Cell | Kind::Empty => {
                Family::Object
            }
        }
    }

    /// An own property of any value (ECMAScript 10.1.5, for data properties).
    pub fn own_property(&mut self, object: Value, key: PropertyKey) -> Result<Option<Value>> {
        if !object.is(Kind::Object) {
            if let (true, PropertyKey::Index(index)) = (object.is_string(), key) {
                return self.character(object, index as usize);
            }
            return Ok(own_of_builtin(self, object, key));
        }
        let atom = match key {
            PropertyKey::Name(atom) => atom,
            PropertyKey::Index(index) => match self.heap.atoms.find_index(index) {
                Some(atom) => atom,
                None => return Ok(None),
            },
        };
        match self.heap.own(object, atom) {
            Some(held) => json::read_held(self, object, atom, held).map(Some),
            None if atom == known::STACK && self.heap.class(object).is_error() => {
                match self.stack_string(object) {
                    // As in V8, it is the text of when it is first read.
                    Ok(stack) => {
                        self.heap.set_own(object, known::STACK, stack);
                        Ok(Some(stack))
                    }
                    Err(thrown) if matches!(*thrown.0, Cause::Stop(_)) => Err(thrown),
                    // A part of it cannot be converted.
                    Err(_) => Ok(None),
                }
            }
            None => Ok(None),
        }
    }

    /// Whether a value has a property of its own.
    pub fn has_own(&mut self, object: Value, key: PropertyKey) -> bool {
        if !object.is(Kind::Object) {
            if let (true, PropertyKey::Index(index)) = (object.is_string(), key) {
                return index < self.heap.str(object).units;
            }
            return own_of_builtin(self, object, key).is_some();
        }
        let atom = match key {
            PropertyKey::Name(atom) => Some(atom),
            PropertyKey::Index(index) => self.heap.atoms.find_index(index),
        };
        if self.heap.class(object) == Class::DomException && matches!(atom, Some(known::NAME | known::MESSAGE)) {
            return false;
        }
        atom.is_some_and(|atom| {
            self.heap.own(object, atom).is_some() || atom == known::STACK && self.heap.class(object).is_error()
        })
    }

    /// Whether a name is the text of a number (ECMAScript 7.1.21): in a `Uint8Array` it is an index that no byte has.
    fn is_numeric(&self, name: Atom) -> bool {
        let text = self.heap.atoms.text(name);
        if text.len() > 32 || !text.first().is_some_and(|first| b"-0123456789IN".contains(first)) {
            return false;
        }
        let Ok(text) = std::str::from_utf8(text) else { return false };
        text == "-0" || NumberText::default().format(text_number(text)) == text
    }

    /// The string of one code unit.
    pub(crate) fn character(&mut self, string: Value, index: usize) -> Result<Option<Value>> {
        let header = self.heap.str(string);
        if index >= header.units as usize {
            return Ok(None);
        }
        if header.is_ascii() {
            return Ok(Some(self.heap.slice_bytes(string, index, index + 1)));
        }
        let unit = self.heap.code_unit(string, index)?;
        Ok(unit.map(|unit| self.heap.new_utf16(&[unit])))
    }

    /// Whether there is such a property, own or of the built-ins: `key in object`.
    pub fn has_property(&mut self, object: Value, key: PropertyKey) -> Result<bool> {
        if self.has_own(object, key) {
            return Ok(true);
        }
        let PropertyKey::Name(atom) = key else { return Ok(false) };
        if !object.is(Kind::Object) && self.realm.registry.method(self.family(object), atom).is_some() {
            return Ok(true);
        }
        Ok(match inherited(self, object, atom) {
            Ok(value) => !value.is_undefined(),
            Err(thrown) => return Err(thrown),
        })
    }

    /// Append the own property keys as `Object.keys` orders them: indices, then names in the order they were made. With `all`,
    /// also those that are not enumerable. The indices of strings and of lists that are not sparse are the caller's.
    pub fn push_own_keys(&self, object: Value, all: bool, keys: &mut Vec<PropertyKey>) {
        match object.kind() {
            Kind::Array | Kind::String => {
                if object.is(Kind::Array) && self.heap.is_sparse(object) {
                    let items = self.heap.sparse_items(object, 0..usize::MAX);
                    keys.extend(items.map(|(index, _)| PropertyKey::Index(index)));
                }
                if all {
                    keys.push(PropertyKey::Name(known::LENGTH));
                }
            }
            Kind::InternalSlots if all && self.heap.regexp(object).is_some() => {
                keys.push(PropertyKey::Name(known::LAST_INDEX));
            }
            Kind::Function | Kind::NativeClosure if all => {
                keys.extend([PropertyKey::Name(known::LENGTH), PropertyKey::Name(known::NAME)]);
            }
            Kind::Native if all => {
                if self.realm.registry.natives[object.index()].is_function() {
                    keys.extend([PropertyKey::Name(known::LENGTH), PropertyKey::Name(known::NAME)]);
                }
                keys.extend(self.realm.registry.property_names(object.payload()).map(PropertyKey::Name));
            }
            _ => {}
        }
        let named = match object.kind() {
            Kind::Object => Some(object),
            _ => self.heap.extras.get(&object).map(|&extra| Value::handle(Kind::Object, extra)),
        };
        let Some(named) = named else { return };
        let hidden = if object.is(Kind::Object) && self.heap.class(object).is_error() && !all {
            let flags = self.heap.flags(object);
            [(HIDDEN_MESSAGE, known::MESSAGE), (HIDDEN_CAUSE, known::CAUSE), (HIDDEN_ERRORS, known::ERRORS)]
                .into_iter()
                .filter(|&(flag, _)| flags & flag != 0)
                .map(|(_, name)| name)
                .chain([known::STACK])
                .collect()
        } else if object.is(Kind::Array) && !all && self.realm.templates.contains(&object) {
            vec![known::RAW]
        } else {
            let is_error = object.is(Kind::Object) && self.heap.class(object).is_error();
            keys.extend(is_error.then_some(PropertyKey::Name(known::STACK)));
            if is_error { vec![known::STACK] } else { Vec::new() }
        };
        let is_exception = object.is(Kind::Object) && self.heap.class(object) == Class::DomException;
        let hidden: Vec<Atom> =
            if is_exception { [&hidden[..], &[known::NAME, known::MESSAGE]].concat() } else { hidden };
        let first = keys.len();
        let entries = self.heap.own_entries(named);
        keys.extend(
            entries
                .into_iter()
                .filter(|(name, _)| !hidden.contains(name) && !name.is_symbol())
                .map(|(name, _)| self.atom_key(name)),
        );
        // Indices of plain objects come first, in order; the sort is stable.
        if keys[first..].iter().any(|key| matches!(key, PropertyKey::Index(_))) {
            keys[first..].sort_by_key(|key| key.rank());
        }
    }

    /// `[object Array]`, `#<Object>`: how V8 names an object in messages.
    pub fn object_tag(&self, object: Value) -> String {
        match object.kind() {
            Kind::Array => "[object Array]".into(),
            // A value with its own `toString` is named without calling it.
            Kind::Object
                if !self.heap.class(object).is_error()
                    && (self.heap.flags(object) & NULL_PROTOTYPE != 0
                        || self.heap.own(object, known::TO_STRING).is_some()) =>
            {
                "[object Object]".into()
            }
            Kind::Object => format!("#<{}>", self.heap.class(object).name()),
            Kind::InternalSlots if self.realm.registry.has_own_method(self.family(object), known::TO_STRING) => {
                format!("[object {}]", self.heap.slots_tag(object))
            }
            Kind::Uint8Array => "[object Uint8Array]".into(),
            Kind::ArrayBuffer => "#<ArrayBuffer>".into(),
            Kind::InternalSlots if matches!(self.family(object), Family::Generator | Family::AsyncGenerator) => {
                format!("[object {}]", self.heap.slots_tag(object))
            }
            Kind::Map => "#<Map>".into(),
            Kind::Set => "#<Set>".into(),
            Kind::Promise => "#<Promise>".into(),
            Kind::InternalSlots => format!("#<{}>", self.heap.slots_class(object)),
            Kind::String => "[object String]".into(),
            _ => "#<Object>".into(),
        }
    }
}

/// The symbol that a value stands for where the program uses `Symbol.iterator` as a key: the one string that has the
/// text of its atom. No script can get it.
fn symbol_of(vm: &Vm, string: Value) -> Option<Atom> {
    SYMBOLS.into_iter().map(|(atom, _)| atom).find(|&atom| vm.heap.atom_strings.get(atom) == Some(string))
}

fn get_index_slow(vm: &mut Vm, object: Value, key: Value) -> Result {
    if object.is_string()
        && key.is_number()
        && let Some(index) = as_int32(key.as_number())
        && let Some(character) = vm.character(object, index as usize)?
    {
        return Ok(character);
    }
    if object.is(Kind::Object) {
        let name = match vm.to_property_key(key)? {
            PropertyKey::Name(name) => name,
            PropertyKey::Index(index) => match vm.heap.atoms.find_index(index) {
                Some(name) => name,
                None => return Ok(Value::UNDEFINED),
            },
        };
        return match vm.heap.own(object, name) {
            Some(held) => json::read_held(vm, object, name, held),
            None => vm.get_missing(object, name),
        };
    }
    if object.is_nullish() {
        let key = vm.describe_key(key);
        return Err(vm.no_properties(object, "read", "reading", key.as_deref()));
    }
    let key = vm.to_property_key(key)?;
    vm.get_key(object, key)
}

fn get_slow(vm: &mut Vm, object: Value, name: Atom) -> Result {
    if object.is_nullish() {
        if name == known::SYMBOL_ITERATOR {
            return Err(vm.not_iterable(object));
        }
        let name = vm.heap.atom_text(name);
        return Err(vm.no_properties(object, "read", "reading", Some(&name)));
    }
    if let Some(value) = vm.own_property(object, PropertyKey::Name(name))? {
        return Ok(value);
    }
    inherited(vm, object, name)
}

/// An inherited property: a method of the value's family or of `Object.prototype`.
fn inherited(vm: &mut Vm, object: Value, name: Atom) -> Result {
    refuse::refuse(vm, name)?;
    if object.is(Kind::Object) {
        if vm.heap.flags(object) & NULL_PROTOTYPE != 0 {
            return Ok(Value::UNDEFINED);
        }
        let class = vm.heap.class(object);
        if class.is_error() {
            if name == known::NAME {
                let name = vm.heap.intern_text(class.name());
                return Ok(vm.heap.atom_string(name));
            }
            if name == known::MESSAGE {
                return Ok(vm.heap.atom_string(known::EMPTY));
            }
        }
    }
    if object.is(Kind::App) {
        return (vm.realm.registry.hooks.tool_member)(vm, object, name);
    }
    let Some(native) = vm.realm.registry.method(vm.family(object), name) else {
        return refuse::absent(vm, object, name);
    };
    match vm.realm.registry.natives[native as usize].call {
        Body::Accessor { get, .. } => get(vm, object, &[]),
        _ => Ok(Value::handle(Kind::Native, native)),
    }
}

/// An own property of a value that is no plain object and no error; not a character of a string.
fn own_of_builtin(vm: &mut Vm, object: Value, key: PropertyKey) -> Option<Value> {
    match object.kind() {
        Kind::Array => match key {
            PropertyKey::Index(index) => vm.heap.at(object, index as usize).filter(|&item| item != Value::HOLE),
            PropertyKey::Name(known::LENGTH) => Some(Value::number(vm.heap.length(object) as f64)),
            PropertyKey::Name(atom) => extra(vm, object, atom),
        },
        Kind::String => match key {
            PropertyKey::Name(known::LENGTH) => Some(Value::number(f64::from(vm.heap.str(object).units))),
            PropertyKey::Index(_) | PropertyKey::Name(_) => None,
        },
        Kind::Function | Kind::Native | Kind::NativeClosure | Kind::Tool | Kind::HostFunction => {
            let atom = vm.key_atom(key);
            if let Some(value) = extra(vm, object, atom) {
                return Some(value);
            }
            if object.is(Kind::Native) {
                match vm.realm.registry.property(object.payload(), atom) {
                    Some(Static::Native(native)) => return Some(Value::handle(Kind::Native, native)),
                    Some(Static::Number(number)) => return Some(Value::number(number)),
                    None if !vm.realm.registry.natives[object.index()].is_function() => return None,
                    None => {}
                }
            }
            match atom {
                known::NAME => Some(callable::name_string(vm, object)),
                known::LENGTH => Some(Value::number(f64::from(callable::length(vm, object)))),
                _ => None,
            }
        }
        Kind::Uint8Array => match key {
            PropertyKey::Index(index) => {
                let byte = vm.heap.view_bytes(object).get(index as usize);
                byte.map(|&byte| Value::number(f64::from(byte)))
            }
            PropertyKey::Name(name) if vm.is_numeric(name) => None,
            PropertyKey::Name(name) => extra(vm, object, name),
        },
        Kind::Map | Kind::Set | Kind::Promise | Kind::Iterator | Kind::InternalSlots | Kind::ArrayBuffer => {
            if let (PropertyKey::Name(known::LAST_INDEX), Some(regexp)) = (key, vm.heap.regexp(object)) {
                return Some(regexp.last_index);
            }
            let atom = vm.key_atom(key);
            extra(vm, object, atom)
        }
        Kind::Object
        | Kind::Number
        | Kind::Undefined
        | Kind::Null
        | Kind::Boolean
        | Kind::BigInt
        | Kind::App
        | Kind::Unread
        | Kind::Cell
        | Kind::Empty => None,
    }
}

/// A named property of an object that is no plain object.
fn extra(vm: &Vm, object: Value, atom: Atom) -> Option<Value> {
    let &extra = vm.heap.extras.get(&object)?;
    vm.heap.own(Value::handle(Kind::Object, extra), atom)?.value()
}

/// Returns the enumerable own properties of a value, counted; the caller charges for those of plain objects.
pub fn counted_pairs(vm: &mut Vm, value: Value) -> Result<Buffer<(PropertyKey, Value)>> {
    if value.is(Kind::Object) && !vm.heap.class(value).is_error() {
        let properties = json::counted_properties(vm, value)?;
        let mut pairs = Buffer::with_capacity(vm, properties.len())?;
        let mut indices = false;
        for (name, value) in properties.into_iter().filter(|(name, _)| !name.is_symbol()) {
            let key = vm.atom_key(name);
            indices |= matches!(key, PropertyKey::Index(_));
            pairs.push(vm, (key, value))?;
        }
        if indices {
            pairs.sort_by_key(|(key, _)| key.rank());
        }
        return Ok(pairs);
    }
    let keys = vm.charged_keys(value, false)?;
    let mut pairs = Buffer::with_capacity(vm, keys.len())?;
    for key in keys {
        vm.work(1)?;
        let property = vm.own_property(value, key)?.unwrap_or(Value::UNDEFINED);
        pairs.push(vm, (key, property))?;
    }
    Ok(pairs)
}

/// The own properties whose keys are symbols.
pub fn own_symbols(vm: &mut Vm, object: Value) -> Result<impl Iterator<Item = (Atom, Value)> + use<>> {
    let mut found = [None; SYMBOLS.len()];
    if vm.realm.script.code.iterables {
        for (slot, (symbol, _)) in found.iter_mut().zip(SYMBOLS) {
            *slot = vm.own_property(object, PropertyKey::Name(symbol))?.map(|value| (symbol, value));
        }
    }
    Ok(found.into_iter().flatten())
}
