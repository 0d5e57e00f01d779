//! Values to JSON text, as `JSON.stringify` writes it.

mod collection;
pub(super) mod cycle;
mod lost;

use super::warnings::{Segment, Warnings};
use super::{Records, push_number};
use crate::eval::json::record;
use crate::eval::property::PropertyKey;
use crate::eval::unawaited::{self, PromiseUse};
use crate::eval::vm::Vm;
use crate::heap::Held;
use crate::heap::promise::State;
use crate::interface::error_code::ErrorCode;
use crate::meter::Charge;
use crate::meter::buffer::{Buffer, Hold};
use crate::text::quote::{escape_bytes, escaped_length, quote_bytes};
use crate::text::wtf8::wtf8_pieces;
use crate::value::atom::known;
use crate::value::thrown::{Result, Thrown};
use crate::value::{Kind, Value};
use hashbrown::HashSet;
use std::io::Write as _;

/// How JSON text is laid out.
#[derive(Clone, Copy, Default)]
pub struct Layout<'a> {
    /// The indentation of each level; without it everything is on one line.
    pub indent: Option<&'a [u8]>,
    /// The allow list of property names, in this order.
    pub allow: Option<&'a [PropertyKey]>,
}

impl Layout<'_> {
    /// The separator between a name and its value.
    fn colon(&self) -> &'static [u8] {
        if self.indent.is_none() { b":" } else { b": " }
    }
}

/// Why a value has no JSON text.
enum Problem {
    /// It holds a BigInt.
    BigInt,
    /// It holds a cycle, with V8's description.
    Cycle(String),
    /// It holds what JSON cannot represent, in a strict result.
    Foreign(&'static str),
    /// Its text would be too long.
    TooLong(usize),
    /// A `toJSON` threw, or the run has to end.
    Thrown(Thrown),
}

impl From<Thrown> for Problem {
    fn from(thrown: Thrown) -> Self {
        Self::Thrown(thrown)
    }
}

/// `JSON.stringify(value)`: the text, or `None` where the value has none.
pub fn stringify(vm: &mut Vm, value: Value, layout: Layout<'_>) -> Result<Option<Vec<u8>>> {
    Writer::new(vm, layout).finish(value).map_err(|problem| match problem {
        Problem::BigInt => vm.type_error("Do not know how to serialize a BigInt"),
        Problem::Cycle(words) => vm.type_error(&words),
        Problem::Foreign(what) => vm.type_error(what),
        Problem::TooLong(_) => vm.heap.meter.memory_limit(),
        Problem::Thrown(thrown) => thrown,
    })
}

/// `JSON.stringify(value)` as text of Rust.
pub fn to_json(vm: &mut Vm, value: Value) -> Result<Option<String>> {
    let text = stringify(vm, value, Layout::default())?;
    // Lone surrogates are written as escapes, so this is UTF-8.
    Ok(text.map(|text| String::from_utf8(text).unwrap_or_default()))
}

/// The result of a run as JSON text, and what the text does not hold: `undefined` is `null`, promises stand for
/// their values, a `Map` is an object or an array of pairs, a `Set` an array, and a value without JSON text ends
/// the run.
pub fn result_text(vm: &mut Vm, value: Value) -> Result<(String, Vec<String>)> {
    let limit = usize::try_from(vm.heap.meter.limits.max_result_bytes).unwrap_or(usize::MAX);
    let refused = |why: &str| {
        let message = brief!("The result cannot be written as JSON: {why}");
        Thrown::limit(ErrorCode::SerializationError, message)
    };
    let strict = vm.realm.script.linker.dialect().is_strict();
    if settled(vm, value).is_undefined() {
        return Ok(("null".into(), vec![]));
    }
    let settled = settled(vm, value);
    if strict && settled.is_callable() {
        return Err(refused("it is a function; call it, or return plain data"));
    }
    let mut writer = Writer::new(vm, Layout::default());
    (writer.is_result, writer.strict, writer.limit) = (true, strict, limit);
    writer.warnings = Some(Box::default());
    let written = writer.write(value);
    let warnings = writer.warnings.take().map_or_else(Vec::new, |warnings| warnings.texts());
    match writer.end_with(written) {
        Ok(Some(text)) => Ok((String::from_utf8(text).unwrap_or_default(), warnings)),
        Ok(None) => Err(refused("it is a function; call it, or return plain data")),
        Err(Problem::BigInt) => Err(refused("it holds a BigInt; convert it with String() or Number()")),
        Err(Problem::Cycle(words)) => Err(refused(&words)),
        Err(Problem::Foreign(what)) => Err(refused(what)),
        Err(Problem::TooLong(limit)) => {
            let message = brief!("The result is longer than its limit of {limit} bytes; return only what is needed");
            Err(Thrown::limit(ErrorCode::ResultTooLarge, message))
        }
        Err(Problem::Thrown(thrown)) => Err(thrown),
    }
}

/// The JSON text of a value as in results, or a note where it has more than `most` bytes.
pub fn to_json_within(vm: &mut Vm, value: Value, most: usize) -> Result<String> {
    let mut writer = Writer::new(vm, Layout::default());
    (writer.is_result, writer.limit) = (true, most);
    match writer.finish(value) {
        Ok(text) => Ok(text.and_then(|text| String::from_utf8(text).ok()).unwrap_or_else(|| "null".into())),
        Err(Problem::TooLong(most)) => Ok(brief!("\"… (more than {most} bytes, cut)\"")),
        Err(_) => result_text(vm, value).map(|(text, _)| text),
    }
}

/// The value of a fulfilled promise; other values as they are.
pub fn settled(vm: &Vm, mut value: Value) -> Value {
    while value.is(Kind::Promise) {
        let promise = &vm.heap.promises[value.index()];
        if promise.state != State::Fulfilled {
            break;
        }
        value = promise.value;
    }
    value
}

/// The result of `toJSON`, where the value has that method.
pub fn apply_to_json(vm: &mut Vm, value: Value, key: PropertyKey) -> Result<(Value, bool)> {
    let method = match value.kind() {
        // Unread data is no function.
        Kind::Object => match vm.heap.own(value, known::TO_JSON).and_then(Held::value) {
            Some(method) => method,
            None => return Ok((value, false)),
        },
        Kind::App => return Ok((value, false)),
        Kind::Array if vm.heap.extras.is_empty() => return Ok((value, false)),
        _ if value.is_object() => vm.get(value, known::TO_JSON)?,
        _ => return Ok((value, false)),
    };
    if !method.is_callable() {
        return Ok((value, false));
    }
    let key = vm.key_string(key);
    Ok((vm.call_nested(method, value, &[key])?, true))
}

/// The own enumerable properties in the order of `Object.keys`, counted. Writing charges for each.
pub fn enumerable_entries(vm: &mut Vm, object: Value) -> Result<Buffer<(PropertyKey, Value)>> {
    crate::eval::property::counted_pairs(vm, object)
}

/// These own properties; `undefined` for those that are not there.
fn entries_of(vm: &mut Vm, object: Value, keys: &[PropertyKey]) -> Result<Buffer<(PropertyKey, Value)>> {
    vm.work(keys.len())?;
    let mut entries = Buffer::with_capacity(vm, keys.len())?;
    for &key in keys {
        let value = vm.own_property(object, key)?.unwrap_or(Value::UNDEFINED);
        entries.push(vm, (key, value))?;
    }
    Ok(entries)
}

struct Writer<'a> {
    vm: &'a mut Vm,
    out: Vec<u8>,
    /// Counts `out` and the lists of containers.
    hold: Hold,
    /// Bytes of `out` that are counted.
    held: usize,
    layout: Layout<'a>,
    /// Whether it is the result of a run: a fulfilled promise is written as its value, and a `Map` or `Set` as what it
    /// holds.
    is_result: bool,
    /// What the text does not hold, where somebody wants to know.
    warnings: Option<Box<Warnings>>,
    /// Whether the result has to be plain data: only `undefined` may be left out.
    strict: bool,
    limit: usize,
    open: Vec<Open>,
    /// Open containers beyond the first [`SHALLOW`], to find cycles.
    deep: HashSet<Value>,
    records: Box<Records>,
    /// Bytes and values that are charged.
    charged: usize,
    values: usize,
    /// Whether a function of the script has run, so that values read before may have changed.
    called: bool,
}

/// An open container.
pub struct Open {
    container: Value,
    at: usize,
    empty: bool,
    parts: Parts,
}

enum Parts {
    Items(usize),
    /// The properties of an object of a record.
    Slots(u16),
    Entries(Buffer<(PropertyKey, Value)>),
    /// The entries of a `Map` or `Set` of a result.
    Collection(Form, Buffer<(Value, Value)>),
}

/// What a `Map` or `Set` is written as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A `Map` whose keys are strings: an object.
    Object,
    /// Another `Map`: an array of pairs. Each is written in two parts.
    Pairs,
    /// A `Set`: an array.
    Items,
}

/// Bytes of a short text.
const USUAL: usize = 48;

/// Bytes between two checks of the memory limit.
const STRIDE: usize = 8 << 10;
/// A text of more bytes is measured before it is written.
pub const LONG: usize = 512;
/// How many bytes of a long text are written between two charges.
const PIECE: usize = 32 << 10;

/// Bytes of an open container in both lists.
const DEEP_BYTES: usize = size_of::<Open>() + 2 * size_of::<Value>();

/// Containers that are searched one by one for a cycle.
const SHALLOW: usize = 32;

type Written<T> = std::result::Result<T, Problem>;

impl<'a> Writer<'a> {
    fn new(vm: &'a mut Vm, layout: Layout<'a>) -> Self {
        let mut records = record::take_records(vm);
        Self {
            open: std::mem::take(&mut records.writing),
            records,
            vm,
            out: Vec::with_capacity(USUAL), // charged: by `room`
            hold: Hold::NONE,
            held: 0,
            layout,
            is_result: false,
            warnings: None,
            strict: false,
            limit: usize::MAX,
            deep: HashSet::new(),
            charged: 0,
            values: 0,
            called: false,
        }
    }

    fn finish(mut self, value: Value) -> Written<Option<Vec<u8>>> {
        let written = self.write(value);
        self.end_with(written)
    }

    /// Give back what was borrowed.
    fn end_with<T>(mut self, written: T) -> T {
        if self.open.capacity() <= SHALLOW {
            self.open.clear();
            self.records.writing = self.open;
        }
        self.vm.pools.records = Some(self.records);
        written
    }

    fn write(&mut self, value: Value) -> Written<Option<Vec<u8>>> {
        let value = self.prepared(value, PropertyKey::Name(known::EMPTY))?;
        if !has_text(self.vm, value) {
            return Ok(None);
        }
        self.begin(value)?;
        while let Some(open) = self.open.last() {
            match &open.parts {
                Parts::Items(length) => self.items(open.container, *length)?,
                Parts::Slots(record) => self.slots(open.container, *record)?,
                Parts::Entries(_) => self.entry()?,
                Parts::Collection(..) => self.collection_part()?,
            }
        }
        self.charge()?;
        Ok(Some(std::mem::take(&mut self.out)))
    }

    /// The value that is written in place of a value.
    #[inline]
    fn prepared(&mut self, value: Value, key: PropertyKey) -> Written<Value> {
        if value.is_object() { self.prepared_object(value, key) } else { Ok(value) }
    }

    fn prepared_object(&mut self, value: Value, key: PropertyKey) -> Written<Value> {
        let value = if self.is_result { settled(self.vm, value) } else { value };
        if value.is(Kind::Promise) {
            unawaited::note_use(self.vm, value, PromiseUse::Json, None);
        }
        if self.strict {
            return self.plain(value);
        }
        if value.is(Kind::Object)
            && let Some(shape) = self.vm.heap.shape(value)
            && let Some(record) = self.records.for_shape(self.vm, shape)
            && !self.records[record].to_json
        {
            return Ok(value);
        }
        let (value, called) = apply_to_json(self.vm, value, key)?;
        self.called |= called;
        Ok(if self.is_result { settled(self.vm, value) } else { value })
    }

    /// Check that a value is plain data.
    fn plain(&self, value: Value) -> Written<Value> {
        let what = match value.kind() {
            Kind::Function | Kind::Native | Kind::NativeClosure | Kind::Tool | Kind::HostFunction | Kind::App => {
                "it holds a function; return plain data"
            }
            Kind::Iterator => "it holds an iterator; write [...iterator]",
            Kind::ArrayBuffer => "it holds an ArrayBuffer; write new Uint8Array(buffer).toBase64()",
            Kind::Uint8Array => "it holds a Uint8Array; write bytes.toBase64() or [...bytes]",
            Kind::InternalSlots => {
                "it holds a Date, a RegExp or another special object; convert it with toISOString() or String()"
            }
            Kind::Object if self.vm.heap.class(value).is_error() => "it holds an Error; return its message",
            _ => return Ok(value),
        };
        Err(Problem::Foreign(what))
    }

    /// Write the items of the innermost container up to the next one that is a container itself.
    fn items(&mut self, array: Value, length: usize) -> Written<()> {
        let depth = self.open.len();
        while let Some(index) = self.next_part(depth, length) {
            let item = self.vm.heap.at(array, index).unwrap_or(Value::UNDEFINED);
            let item = self.prepared(item, PropertyKey::Index(index as u32))?;
            self.separate()?;
            self.item(item)?;
            if self.open.len() > depth {
                return Ok(());
            }
        }
        self.end(b']')
    }

    /// Write an item of an array.
    #[inline]
    fn item(&mut self, item: Value) -> Written<()> {
        if has_text(self.vm, item) {
            return self.begin(item);
        }
        self.lost(item, " is written as null")?;
        self.begin(Value::NULL)
    }

    /// The same for properties.
    fn slots(&mut self, object: Value, record: u16) -> Written<()> {
        let depth = self.open.len();
        while let Some(index) = self.next_part(depth, self.records[record].names.len()) {
            let name = self.records[record].names[index];
            let value = match self.called {
                true => self.vm.own_property(object, name.key)?.unwrap_or(Value::UNDEFINED),
                false => self.vm.heap.slot(object, name.slot as usize),
            };
            let value = self.prepared(value, name.key)?;
            if has_text(self.vm, value) {
                self.separate()?;
                self.out.extend_from_slice(self.records[record].text(name));
                if self.layout.indent.is_some() {
                    self.out.push(b' ');
                }
                self.begin(value)?;
                if self.open.len() > depth {
                    return Ok(());
                }
            } else {
                self.lost(value, " is left out")?;
            }
        }
        self.end(b'}')
    }

    /// The index of the next part of the innermost container.
    #[inline]
    fn next_part(&mut self, depth: usize, length: usize) -> Option<usize> {
        let at = &mut self.open[depth - 1].at;
        *at += 1;
        (*at <= length).then(|| *at - 1)
    }

    /// Write the next property of the innermost container, or its end.
    fn entry(&mut self) -> Written<()> {
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        let Parts::Entries(entries) = &open.parts else { return Ok(()) };
        let Some(&(key, value)) = entries.get(open.at) else {
            self.end(b'}')?;
            return Ok(());
        };
        open.at += 1;
        let value = match self.called {
            true => self.vm.own_property(open.container, key)?.unwrap_or(Value::UNDEFINED),
            false => value,
        };
        let value = self.prepared(value, key)?;
        if !has_text(self.vm, value) {
            return self.lost(value, " is left out");
        }
        self.separate()?;
        match key {
            PropertyKey::Name(name) => {
                let bytes = self.vm.heap.atoms.text(name).len();
                if bytes > LONG {
                    self.quote_long(bytes, |vm, _| vm.heap.atoms.text(name))?;
                } else {
                    quote_bytes(self.vm.heap.atoms.text(name), &mut self.out);
                }
            }
            PropertyKey::Index(index) => _ = write!(self.out, "\"{index}\""),
        }
        self.out.extend_from_slice(self.layout.colon());
        self.begin(value)
    }

    /// Write a value, or the beginning of a container.
    fn begin(&mut self, value: Value) -> Written<()> {
        self.values += 1;
        if self.out.len() - self.charged > 1024 || self.values > 256 {
            self.charge()?;
        }
        match value.kind() {
            Kind::Number => {
                if !value.as_number().is_finite() {
                    self.lost(value, " is written as null")?;
                }
                push_number(value.as_number(), &mut self.out);
            }
            Kind::Null => self.out.extend_from_slice(b"null"),
            Kind::Boolean if value == Value::TRUE => self.out.extend_from_slice(b"true"),
            Kind::Boolean => self.out.extend_from_slice(b"false"),
            Kind::String => {
                let bytes = self.vm.heap.str(value).bytes as usize;
                if bytes > LONG {
                    self.quote_long(bytes, |vm, charge| vm.heap.read_bytes(value, charge))?;
                } else {
                    quote_bytes(self.vm.heap.first_bytes::<LONG>(value), &mut self.out);
                }
            }
            Kind::BigInt => return Err(Problem::BigInt),
            _ => return self.enter(value),
        }
        Ok(())
    }

    /// Write a long string, charged in pieces: to count its escapes, and to write them.
    fn quote_long(&mut self, bytes: usize, text: impl Fn(&Vm, Charge) -> &[u8]) -> Written<()> {
        let mut escaped = 2;
        let mut charge = self.vm.work(1)?;
        for from in (0..bytes).step_by(PIECE) {
            let to = bytes.min(from + PIECE);
            charge = self.vm.heap.charge_bytes(to - from)?;
            escaped += escaped_length(&text(self.vm, charge)[from..to]);
        }
        self.room_for_text(escaped)?;
        self.out.push(b'"');
        let mut from = 0;
        while from < bytes {
            let before = self.out.len();
            let piece = wtf8_pieces(&text(self.vm, charge)[from..], PIECE).next().unwrap_or_default();
            escape_bytes(piece, &mut self.out);
            from += piece.len();
            let escapes = self.out.len() - before - piece.len();
            self.vm.heap.charge_bytes(escapes)?;
        }
        self.out.push(b'"');
        Ok(())
    }

    fn enter(&mut self, container: Value) -> Written<()> {
        let near = &self.open[..self.open.len().min(SHALLOW)];
        if near.iter().any(|open| open.container == container) || self.deep.contains(&container) {
            return Err(Problem::Cycle(self.cycle(container)?));
        }
        if self.open.len() >= SHALLOW {
            if self.open.len() == self.open.capacity() {
                // Both lists double.
                self.hold.grow(self.vm, self.open.len() * DEEP_BYTES)?;
            }
            self.deep.insert(container);
        }
        let parts = if container.is(Kind::Array) {
            Parts::Items(self.vm.heap.length(container))
        } else if self.is_result && matches!(container.kind(), Kind::Map | Kind::Set) {
            self.collection(container)?
        } else if let Some(allow) = self.layout.allow {
            Parts::Entries(entries_of(self.vm, container, allow)?)
        } else if container.is(Kind::Object)
            && let Some(shape) = self.vm.heap.shape(container)
            && let Some(record) = self.records.for_shape(self.vm, shape)
        {
            Parts::Slots(record)
        } else {
            Parts::Entries(enumerable_entries(self.vm, container)?)
        };
        let is_list = matches!(parts, Parts::Items(_) | Parts::Collection(Form::Pairs | Form::Items, _));
        if self.warnings.is_some() && !is_list {
            self.emptied(container)?;
        }
        self.out.push(if is_list { b'[' } else { b'{' });
        self.open.push(Open { container, at: 0, empty: true, parts });
        Ok(())
    }

    /// The comma and the line end before a part of the innermost container.
    fn separate(&mut self) -> Written<()> {
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        if !std::mem::take(&mut open.empty) {
            self.out.push(b',');
        }
        self.line(self.open.len())
    }

    fn end(&mut self, bracket: u8) -> Written<()> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        if self.open.len() >= SHALLOW {
            self.deep.remove(&open.container);
        }
        if !open.empty {
            self.line(self.open.len())?;
        }
        self.out.push(bracket);
        Ok(())
    }

    /// A line end and the indentation, which can be long at great depth.
    fn line(&mut self, depth: usize) -> Written<()> {
        let Some(indent) = self.layout.indent else { return Ok(()) };
        let bytes = depth * indent.len();
        if bytes > LONG {
            self.charge()?;
            self.room(bytes + STRIDE)?;
        }
        self.out.push(b'\n');
        for _ in 0..depth {
            self.out.extend_from_slice(indent);
        }
        Ok(())
    }

    /// Charge what was written since the last time.
    fn charge(&mut self) -> Written<()> {
        if self.out.len() > self.limit {
            return Err(Problem::TooLong(self.limit));
        }
        let work = (self.out.len() - self.charged) / 16 + self.values;
        (self.charged, self.values) = (self.out.len(), 0);
        self.vm.work(work)?;
        // Reserve room for what is written until the next time.
        self.room(STRIDE)
    }

    /// Make room for the escaped form of a long text before it is written.
    #[cold]
    fn room_for_text(&mut self, escaped: usize) -> Written<()> {
        if self.out.len().saturating_add(escaped) > self.limit {
            return Err(Problem::TooLong(self.limit));
        }
        self.room(escaped)
    }

    /// Make room for so many more bytes, counted.
    fn room(&mut self, more: usize) -> Written<()> {
        let needed = self.out.len() + more;
        if needed > STRIDE * 2 && needed > self.held {
            let some = (needed + self.vm.heap.meter.spare(needed)).max(self.out.capacity());
            self.hold.grow(self.vm, some.saturating_sub(self.held))?;
            self.held = some;
            self.out.reserve_exact(some - self.out.len());
        }
        Ok(())
    }
}

impl Open {
    /// The key of the part that is being written.
    fn key(&self, records: &Records) -> Option<PropertyKey> {
        let at = self.at.checked_sub(1)?;
        match &self.parts {
            Parts::Items(_) => Some(PropertyKey::Index(at as u32)),
            Parts::Slots(record) => records[*record].names.get(at).map(|name| name.key),
            Parts::Entries(entries) => entries.get(at).map(|&(key, _)| key),
            Parts::Collection(Form::Items, _) => Some(PropertyKey::Index(at as u32)),
            Parts::Collection(Form::Pairs, _) => Some(PropertyKey::Index(at as u32 / 2)),
            Parts::Collection(Form::Object, _) => None,
        }
    }

    /// The part that is being written, as warnings name it.
    fn segment<'a>(&'a self, records: &Records, vm: &'a Vm, charge: Charge) -> Segment<'a> {
        if let (Parts::Collection(Form::Object, entries), Some(at)) = (&self.parts, self.at.checked_sub(1)) {
            let name = entries.get(at).map(|&(key, _)| vm.heap.read_bytes(key, charge));
            return Segment::Name(name.unwrap_or_default());
        }
        match self.key(records) {
            Some(PropertyKey::Index(index)) => Segment::Index(index),
            Some(PropertyKey::Name(name)) => Segment::Name(vm.heap.atoms.text(name)),
            None => Segment::Name(b""),
        }
    }
}

/// Whether a value has JSON text.
fn has_text(vm: &Vm, value: Value) -> bool {
    match value.kind() {
        Kind::Undefined
        | Kind::Empty
        | Kind::Unread
        | Kind::Cell
        | Kind::Function
        | Kind::NativeClosure
        | Kind::Tool
        | Kind::HostFunction => false,
        Kind::Native => vm.type_of(value) != "function",
        _ => true,
    }
}

/// The allow list of `JSON.stringify` as property keys.
pub fn allowed_keys(vm: &mut Vm, list: Value) -> Result<Buffer<PropertyKey>> {
    let mut keys = Buffer::new();
    let mut seen = HashSet::new();
    let mut hold = Hold::NONE;
    for item in vm.heap.charged_items_copy(list)? {
        if !matches!(item.kind(), Kind::String | Kind::Number) {
            continue;
        }
        vm.work(1)?;
        let key = vm.to_property_key(item)?;
        if seen.len() == seen.capacity() {
            // It doubles, and has both for a moment.
            hold.grow(vm, seen.len().max(4) * 2 * size_of::<PropertyKey>())?;
        }
        if seen.insert(key) {
            keys.push(vm, key)?;
        }
    }
    Ok(keys)
}
