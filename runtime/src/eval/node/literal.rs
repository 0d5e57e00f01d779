//! Literals: strings, templates, arrays, objects, functions.

use super::{Argument, Expression, Node, Slots};
use crate::eval::iterator;
use crate::eval::property;
use crate::eval::suggest;
use crate::eval::unawaited::{self, PromiseUse};
use crate::eval::vm::Vm;
use crate::heap::frame::FunctionRef;
use crate::heap::object::INLINE;
use crate::heap::{Captures, Closure, SMALL};
use crate::meter::buffer::Buffer;
use crate::regexp::Program;
use crate::text::wtf8::splits_pair;
use crate::value::atom::{Atom, known};
use crate::value::numeric::NumberText;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};
use agentscript_lang::regexp::Flags;
use agentscript_lang::{Walk, program};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// `'text'`
pub struct Text(pub Atom);

impl Node for Text {
    fn eval(&self, vm: &mut Vm, _fp: &Slots) -> Result {
        Ok(vm.heap.atom_string(self.0))
    }
}

/// `/pattern/flags`
pub struct Regex {
    /// The text of the pattern.
    pub source: Atom,
    /// Its flags.
    pub flags: Flags,
    /// Its number in the script.
    pub number: u32,
    /// The compiled pattern, shared by equal literals and all runs of the script.
    pub shared: Arc<OnceLock<Arc<Program>>>,
    /// Offset in the source.
    pub at: u32,
}

impl Node for Regex {
    fn eval(&self, vm: &mut Vm, _fp: &Slots) -> Result {
        let source = vm.heap.atom_string(self.source);
        let program = match vm.realm.regexp_literals.get(self.number as usize) {
            Some(Some(program)) => Arc::clone(program),
            _ => crate::eval::regexp_literal::literal(vm, self, source).map_err(|thrown| thrown.at(vm, self.at))?,
        };
        Ok(vm.heap.new_regexp(program, source))
    }
}

/// `12n`
pub struct BigIntLiteral(pub num_bigint::BigInt);

impl Node for BigIntLiteral {
    fn eval(&self, vm: &mut Vm, _fp: &Slots) -> Result {
        Ok(vm.heap.new_bigint(self.0.clone()))
    }
}

/// `` `text${hole}text` ``
pub struct Template {
    /// The first text.
    pub head: Atom,
    /// Expressions with the texts after them.
    pub parts: Box<[(Expression, Atom)]>,
    /// Offset in the source.
    pub at: u32,
}

impl Node for Template {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let start = vm.pools.text.len();
        let result = self.text(vm, fp, start);
        vm.pools.text.truncate(start);
        result
    }
}

impl Template {
    fn text(&self, vm: &mut Vm, fp: &Slots, start: usize) -> Result {
        let mut text = Collected { before: None, start };
        text.atom(vm, self.head)?;
        for (hole, tail) in &self.parts {
            let value = hole.eval(vm, fp)?;
            if value.is_number() {
                text.add(vm, NumberText::default().format(value.as_number()).as_bytes())?;
            } else {
                if value.is(Kind::Promise) {
                    unawaited::note_use(vm, value, PromiseUse::Text, Some(self.at));
                }
                let string = vm.to_string(value).map_err(|thrown| thrown.at(vm, self.at))?;
                text.string(vm, string)?;
            }
            text.atom(vm, *tail)?;
        }
        text.whole(vm)
    }
}

/// A text under construction: small parts are collected in [`Pools::text`](crate::eval::pools::Pools::text), so that few
/// strings are made.
struct Collected {
    /// The string before the collected parts.
    before: Option<Value>,
    /// The start of the parts in the pool.
    start: usize,
}

impl Collected {
    fn atom(&mut self, vm: &mut Vm, atom: Atom) -> Result<()> {
        let length = vm.heap.atoms.text(atom).len();
        if length > SMALL {
            let string = vm.heap.atom_string(atom);
            return self.string(vm, string);
        }
        if !self.fits(vm, length) || splits_pair(&vm.pools.text[self.start..], vm.heap.atoms.text(atom)) {
            self.whole(vm)?;
        }
        vm.pools.text.extend_from_slice(vm.heap.atoms.text(atom));
        Ok(())
    }

    fn string(&mut self, vm: &mut Vm, string: Value) -> Result<()> {
        let length = vm.heap.str(string).bytes as usize;
        if !self.fits(vm, length) || splits_pair(&vm.pools.text[self.start..], vm.heap.bytes(string)) {
            let before = self.whole(vm)?;
            if length > SMALL {
                self.before = Some(vm.concat(before, string)?);
                return Ok(());
            }
        }
        vm.pools.text.extend_from_slice(vm.heap.bytes(string));
        Ok(())
    }

    /// Add a few bytes of ASCII.
    fn add(&mut self, vm: &mut Vm, bytes: &[u8]) -> Result<()> {
        if !self.fits(vm, bytes.len()) {
            self.whole(vm)?;
        }
        vm.pools.text.extend_from_slice(bytes);
        Ok(())
    }

    fn fits(&self, vm: &Vm, length: usize) -> bool {
        vm.pools.text.len() - self.start + length <= SMALL
    }

    /// The text so far as a string.
    fn whole(&mut self, vm: &mut Vm) -> Result {
        let collected = &vm.pools.text[self.start..];
        let whole = match self.before {
            Some(before) if collected.is_empty() => before,
            None if collected.is_empty() => vm.heap.atom_string(known::EMPTY),
            before => {
                let collected = vm.heap.new_string(collected);
                vm.pools.text.truncate(self.start);
                match before {
                    Some(before) => vm.concat(before, collected)?,
                    None => collected,
                }
            }
        };
        self.before = Some(whole);
        Ok(whole)
    }
}

/// A hole of a template, as a text.
pub struct ToText {
    /// What is in the hole.
    pub value: Expression,
    /// Offset in the source.
    pub at: u32,
}

impl Node for ToText {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let value = self.value.eval(vm, fp)?;
        if value.is_number() {
            return Ok(value);
        }
        if value.is(Kind::Promise) {
            unawaited::note_use(vm, value, PromiseUse::Text, Some(self.at));
        }
        vm.to_string(value).map_err(|thrown| thrown.at(vm, self.at))
    }
}

/// The array of strings that a tagged template passes first: its number in the script.
pub struct TemplateObject(pub u32);

impl Node for TemplateObject {
    fn eval(&self, vm: &mut Vm, _fp: &Slots) -> Result {
        template_object(vm, self.0 as usize)
    }
}

/// `[…]` of plain items
pub struct Items(pub Box<[Expression]>);

impl Node for Items {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let mut items = Vec::with_capacity(self.0.len());
        for item in &self.0 {
            items.push(item.eval(vm, fp)?);
        }
        Ok(vm.heap.new_array(items))
    }
}

/// `[…]` with holes or spread; a hole is no expression
pub struct Elements {
    /// The parts.
    pub elements: Box<[Option<Argument>]>,
    /// Offset in the source.
    pub at: u32,
}

impl Node for Elements {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let mut items = Buffer::new();
        for element in &self.elements {
            match element {
                None => items.push(vm, Value::HOLE)?,
                Some(argument) => argument.push(vm, fp, &mut items).map_err(|thrown| thrown.at(vm, self.at))?,
            }
        }
        Ok(vm.heap.array_of(items))
    }
}

/// `{…}` whose keys are names that differ
pub struct Record {
    /// Number of the literal.
    pub site: usize,
    /// The keys with their values.
    pub properties: Box<[(Atom, Expression)]>,
}

impl Node for Record {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        if self.properties.len() > INLINE {
            return self.large(vm, fp);
        }
        let mut inline = [Value::UNDEFINED; INLINE];
        for (slot, (_, value)) in inline.iter_mut().zip(&self.properties) {
            *slot = value.eval(vm, fp)?;
        }
        match self.shape(vm) {
            Some(shape) => Ok(vm.heap.new_inline(shape, inline)),
            None => Ok(self.table(vm, &inline)),
        }
    }
}

impl Record {
    fn large(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let mut values = Vec::with_capacity(self.properties.len());
        for (_, value) in &self.properties {
            values.push(value.eval(vm, fp)?);
        }
        match self.shape(vm) {
            Some(shape) => Ok(vm.heap.new_of_shape(shape, &values)),
            None => Ok(self.table(vm, &values)),
        }
    }

    /// The shape of the objects that it makes, unless there are too many.
    #[inline(always)]
    fn shape(&self, vm: &mut Vm) -> Option<u32> {
        match vm.realm.literal_shapes.get(self.site) {
            Some(&shape) if shape != 0 => Some(shape),
            _ => self.new_shape(vm),
        }
    }

    #[inline(never)]
    fn new_shape(&self, vm: &mut Vm) -> Option<u32> {
        let keys: SmallVec<[Atom; INLINE]> = self.properties.iter().map(|&(key, _)| key).collect();
        let shape = vm.heap.shape_of(&keys)?;
        if let Some(slot) = vm.realm.literal_shapes.get_mut(self.site) {
            *slot = shape;
        }
        Some(shape)
    }

    /// There are too many shapes.
    #[cold]
    fn table(&self, vm: &mut Vm, values: &[Value]) -> Value {
        let object = vm.heap.new_object();
        for (&(key, _), &value) in self.properties.iter().zip(values) {
            vm.heap.set_own(object, key, value);
        }
        object
    }
}

/// A part of an object literal.
pub enum Part {
    /// `name: value`
    Named(Atom, Expression),
    /// `[key]: value`; an anonymous function gets the key as its name
    Computed(Expression, Expression, bool),
    /// `...value`
    Spread(Expression),
    /// `name: value` where a later property replaces it
    Replaced(Expression),
}

/// `{…}` of any kind
pub struct ObjectLiteral {
    /// Where the object is that the parts before these have made, if there are any.
    pub object: Option<program::Slot>,
    /// The parts.
    pub parts: Box<[Part]>,
    /// Offset in the source.
    pub at: u32,
}

impl Node for ObjectLiteral {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let object = match self.object {
            Some(slot) => fp[slot.0 as usize].get(),
            None => vm.heap.new_object(),
        };
        for part in &self.parts {
            match part {
                Part::Named(name, value) => {
                    let value = value.eval(vm, fp)?;
                    vm.heap.set_own(object, *name, value);
                }
                Part::Computed(key, value, is_name) => {
                    let key = key.eval(vm, fp)?;
                    let key = vm.to_property_key(key).map_err(|thrown| thrown.at(vm, self.at))?;
                    let value = value.eval(vm, fp)?;
                    if *is_name {
                        vm.heap.closures[value.index()].name = Some(vm.key_atom(key));
                    }
                    vm.define(object, key, value);
                }
                Part::Replaced(value) => {
                    value.eval(vm, fp)?;
                }
                Part::Spread(value) => {
                    let source = value.eval(vm, fp)?;
                    property::copy_properties(vm, source, object, &[]).map_err(|thrown| thrown.at(vm, self.at))?;
                }
            }
        }
        Ok(object)
    }
}

/// A function expression
pub struct Function {
    /// Which function.
    pub code: FunctionRef,
    /// Slots that are captured.
    pub captures: Box<[program::Slot]>,
}

impl Node for Function {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let capture = |slot: &program::Slot| fp[slot.0 as usize].get();
        let captures = match &*self.captures {
            [slot] => Captures::One(capture(slot)),
            slots => Captures::Many(slots.iter().map(capture).collect()),
        };
        Ok(vm.heap.new_closure(Closure { code: self.code, name: None, captures }))
    }
}

/// A function of the prelude
pub struct PreludeFunction(pub FunctionRef);

impl Node for PreludeFunction {
    fn eval(&self, vm: &mut Vm, _fp: &Slots) -> Result {
        Ok(vm.prelude_function(self.0))
    }
}

/// The iterator of an array pattern
pub struct MakeIterator {
    /// What is walked over.
    pub value: Expression,
    /// How messages name it.
    pub origin: program::Origin,
    /// Offset in the source.
    pub at: u32,
}

impl Node for MakeIterator {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let value = self.value.eval(vm, fp)?;
        match self.origin {
            program::Origin::Source(span) => iterator::iterator_of(vm, value, span, Walk::Pattern),
            program::Origin::Item if !vm.is_iterable(value) => {
                Err(suggest::not_iterable_item(vm, value).at(vm, self.at))
            }
            program::Origin::Item | program::Origin::Value | program::Origin::Part => {
                vm.iterate(value).map_err(|thrown| thrown.at(vm, self.at))
            }
        }
    }
}

/// The next item of the iterator in a slot, `undefined` at its end.
pub struct IteratorNext(pub usize);

impl Node for IteratorNext {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        Ok(vm.iterator_next(fp[self.0].get())?.unwrap_or(Value::UNDEFINED))
    }
}

/// An array of the items that are left.
pub struct IteratorRest(pub usize);

impl Node for IteratorRest {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let iterator = fp[self.0].get();
        let mut items = Buffer::new();
        while let Some(item) = vm.iterator_next(iterator)? {
            vm.work(1)?;
            items.push(vm, item)?;
        }
        Ok(vm.heap.array_of(items))
    }
}

fn template_object(vm: &mut Vm, index: usize) -> Result {
    if let Some(&known) = vm.realm.templates.get(index)
        && known.is(Kind::Array)
    {
        return Ok(known);
    }
    let script = Arc::clone(&vm.realm.script);
    let (cooked, raw) = &script.code.templates[index];
    let cooked = cooked.iter().map(|text| text.map_or(Value::UNDEFINED, |text| vm.heap.atom_string(text))).collect();
    let raw = raw.iter().map(|&text| vm.heap.atom_string(text)).collect();
    let (cooked, raw) = (vm.heap.new_array(cooked), vm.heap.new_array(raw));
    vm.define(cooked, property::PropertyKey::Name(known::RAW), raw);
    let frozen = crate::heap::object::FROZEN | crate::heap::object::SEALED | crate::heap::object::NON_EXTENSIBLE;
    vm.heap.add_flags(cooked, frozen);
    vm.heap.add_flags(raw, frozen);
    if vm.realm.templates.len() <= index {
        vm.realm.templates.resize(index + 1, Value::UNDEFINED);
    }
    vm.realm.templates[index] = cooked;
    Ok(cooked)
}
