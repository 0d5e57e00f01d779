//! JSON text to values: one pass over WTF-8, with V8's error messages.

use super::read::{Fault, Parsed, Reader};
use super::record::Records;
use super::unread::{MIN_BYTES, container_end};
use crate::eval::json::record;
use crate::eval::vm::Vm;
use crate::heap::Heap;
use crate::meter::buffer::{Buffer, Hold};
use crate::value::Value;
use crate::value::atom::Atom;
use crate::value::thrown::Result;
use hashbrown::HashSet;

/// The value of a JSON text (ECMAScript 25.5.1 without a reviver). Up to `levels` levels may be left unread.
pub fn parse(vm: &mut Vm, text: String, levels: u8) -> Result {
    vm.work(text.len() / 16)?;
    if !worth_sharing(vm, text.len(), levels) {
        return parse_bytes(vm, text.as_bytes(), None, 0);
    }
    let buffer = vm.heap.share(text.into_bytes());
    let shared = vm.heap.lend(buffer);
    let value = parse_bytes(vm, shared.bytes(), Some((buffer, 0)), levels);
    vm.heap.give_back(buffer, shared);
    value
}

/// The same for a string; scanning the text is the caller's to charge.
pub fn parse_string(vm: &mut Vm, text: Value, levels: u8) -> Result {
    let length = vm.heap.str(text).bytes as usize;
    match vm.heap.buffer_position(text) {
        Some((buffer, start)) if worth_sharing(vm, length, levels) => {
            let shared = vm.heap.lend(buffer);
            let value = parse_bytes(vm, &shared.bytes()[start..][..length], Some((buffer, start)), levels);
            vm.heap.give_back(buffer, shared);
            value
        }
        _ => {
            let mut copy = Buffer::with_capacity(vm, length)?;
            vm.heap.charged_append(text, &mut copy)?;
            parse_bytes(vm, &copy, None, 0)
        }
    }
}

/// Whether strings should share the buffer of a text of so many bytes.
fn worth_sharing(vm: &Vm, bytes: usize, levels: u8) -> bool {
    Heap::worth_sharing(bytes) || vm.stress.lazy_json && levels > 0
}

/// `home`: the buffer of the text and its offset there, if strings share it.
fn parse_bytes(vm: &mut Vm, text: &[u8], home: Option<(usize, usize)>, levels: u8) -> Result {
    let mut records = record::take_records(vm);
    let ParserBuffers { open, values, keys } = std::mem::take(&mut records.buffers);
    let (objects, strings) = (vm.heap.objects.len(), vm.heap.strings.len());
    let mut parser = Parser {
        records,
        reader: Reader { vm, text, at: 0, is_ascii: text.is_ascii(), home },
        open: Buffer::from_parts(open, Hold::NONE),
        values: Buffer::from_parts(values, Hold::NONE),
        keys: Buffer::from_parts(keys, Hold::NONE),
        owed: 0,
        charged: 0,
        objects,
        strings,
        levels,
        looked: 0,
        spared: LOOKED_IN_VAIN,
    };
    let value = parser.document();
    let Parser { mut records, open, values, keys, .. } = parser;
    let (open, values, keys) = (open.into_vec(), values.into_vec(), keys.into_vec());
    records.buffers = ParserBuffers { open, values, keys }.emptied();
    vm.pools.records = Some(records);
    value
}

/// The memory of a parser, for unfinished containers and values.
#[derive(Default)]
pub struct ParserBuffers {
    open: Vec<Open>,
    values: Vec<Value>,
    keys: Vec<Atom>,
}

impl ParserBuffers {
    /// Emptied; memory of large texts is released.
    fn emptied(mut self) -> Self {
        const LARGE: usize = 256;
        if self.open.capacity().max(self.values.capacity()).max(self.keys.capacity()) > LARGE {
            return Self::default();
        }
        self.open.clear();
        self.values.clear();
        self.keys.clear();
        self
    }
}

/// Units of work between two charges.
const SETTLE: usize = 256;

/// An array of so many items takes over the list of values instead of copying.
const MANY: usize = 1 << 16;

/// Append something, and check the limits where the list grows.
#[inline]
fn push<T>(vm: &mut Vm, list: &mut Buffer<T>, item: T) -> Parsed<()> {
    if list.is_full() {
        lengthen(vm, list)?;
    }
    Ok(list.push(vm, item)?)
}

#[cold]
#[inline(never)]
fn lengthen<T>(vm: &mut Vm, list: &mut Buffer<T>) -> Parsed<()> {
    if list.len() >= SETTLE {
        vm.heap.meter.settle(true)?;
    }
    Ok(list.lengthen(vm)?)
}

struct Parser<'a> {
    reader: Reader<'a>,
    /// The containers around the present value.
    open: Buffer<Open>,
    /// Finished values of all open containers.
    values: Buffer<Value>,
    /// Property names of all open objects, except those that match a record so far.
    keys: Buffer<Atom>,
    /// Records of objects that were read before; most further ones are similar.
    records: Box<Records>,
    /// Work that is not charged yet.
    owed: usize,
    /// How many of the values are charged for already: those of large containers, before they end.
    charged: usize,
    /// How many objects and strings there were before.
    objects: usize,
    strings: usize,
    /// How many levels of the text may be left unread.
    levels: u8,
    /// The text up to here was scanned for containers to leave unread.
    looked: usize,
    /// Bytes that were skipped so, minus bytes that were scanned in vain.
    spared: usize,
}

/// How many bytes may be scanned before any were skipped.
const LOOKED_IN_VAIN: usize = 1 << 12;

/// An open container.
struct Open {
    object: bool,
    values: usize,
    keys: usize,
    /// The record that all names so far match.
    record: Option<u16>,
    /// The record of the last object in it.
    inner: Option<u16>,
    /// Whether a part of it is unread.
    unread: bool,
}

impl Parser<'_> {
    fn document(&mut self) -> Result {
        let parsed = self.value().and_then(|value| {
            self.reader.space();
            if self.reader.at < self.reader.text.len() {
                return Err(Fault::Expected("Unexpected non-whitespace character after JSON"));
            }
            Ok(value)
        });
        self.reader.vm.work(self.owed)?;
        parsed.map_err(|fault| match fault {
            Fault::Thrown(thrown) => thrown,
            Fault::Expected(words) => {
                let source = if words.ends_with("JSON") { "" } else { " in JSON" };
                let message = brief!("{words}{source} at position {}", self.reader.position());
                self.reader.syntax_error(message.as_bytes())
            }
            Fault::Token => {
                let message = self.reader.token_message();
                self.reader.syntax_error(&message)
            }
        })
    }

    fn value(&mut self) -> Parsed {
        loop {
            self.reader.space();
            let mut value = match self.reader.peek() {
                Some(b'{' | b'[')
                    if self.levels > 0
                        && let Some(text) = self.unread() =>
                {
                    text
                }
                Some(b'{') => {
                    self.enter(true)?;
                    if self.reader.peek() == Some(b'}') {
                        self.leave()?
                    } else {
                        let colon = Fault::Expected("Expected ':' after property name");
                        match self.fields("Expected property name or '}'", colon)? {
                            Some(value) => value,
                            None => continue,
                        }
                    }
                }
                Some(b'[') => {
                    self.enter(false)?;
                    if self.reader.peek() != Some(b']') {
                        continue;
                    }
                    self.leave()?
                }
                Some(first) => match self.reader.scalar(first)? {
                    Some(value) => value,
                    None => return Err(Fault::Token),
                },
                None => return Err(Fault::Token),
            };
            // The value may end any number of containers.
            loop {
                let Some(open) = self.open.last() else { return Ok(value) };
                let object = open.object;
                push(self.reader.vm, &mut self.values, value)?;
                if self.values.len().is_multiple_of(MANY) {
                    self.charge_values()?;
                }
                self.reader.space();
                match (self.reader.peek(), object) {
                    (Some(b','), true) => {
                        self.reader.at += 1;
                        self.reader.space();
                        match self.fields(NEXT_NAME, Fault::Token)? {
                            Some(next) => value = next,
                            None => break,
                        }
                    }
                    (Some(b','), false) => {
                        self.reader.at += 1;
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => value = self.leave()?,
                    (_, true) => return Err(Fault::Expected("Expected ',' or '}' after property value")),
                    (_, false) => return Err(Fault::Expected("Expected ',' or ']' after array element")),
                }
            }
        }
    }

    /// The text of the container that begins here, if it can be left unread.
    fn unread(&mut self) -> Option<Value> {
        let (at, (buffer, begin)) = (self.reader.at, self.reader.home?);
        let open = self.open.last().filter(|open| open.object && at >= self.looked)?;
        let name = match open.record {
            Some(number) => self.records[number].atom(self.values.len() - open.values),
            None => self.keys.last().copied(),
        };
        let vm = &mut *self.reader.vm;
        if !vm.stress.lazy_json && vm.heap.atoms.is_mentioned(name?) {
            return None;
        }
        let Some(end) = container_end(self.reader.text, at) else {
            // It is invalid, which reading it reports, or too deep.
            self.levels = 0;
            return None;
        };
        let length = end - at;
        if length < MIN_BYTES && !vm.stress.lazy_json {
            self.looked = end;
            match self.spared.checked_sub(length) {
                Some(spared) => self.spared = spared,
                None => self.levels = 0,
            }
            return None;
        }
        self.spared += length;
        self.reader.at = end;
        if let Some(open) = self.open.last_mut() {
            open.unread = true;
        }
        Some(vm.heap.new_unread(buffer, begin + at, length, self.levels - 1))
    }

    fn enter(&mut self, object: bool) -> Parsed<()> {
        let record = self.open.last().and_then(|open| open.inner).filter(|_| object);
        let (values, keys) = (self.values.len(), self.keys.len());
        push(self.reader.vm, &mut self.open, Open { object, values, keys, record, inner: None, unread: false })?;
        self.owed += 1;
        self.charge()?;
        self.reader.at += 1;
        self.reader.space();
        Ok(())
    }

    /// Charge for the values of a container that is not at its end.
    #[cold]
    fn charge_values(&mut self) -> Parsed<()> {
        let values = self.values.len().saturating_sub(self.charged);
        self.charged += values;
        self.reader.vm.work(values)?;
        Ok(())
    }

    /// Charge what is owed, if that is much.
    #[inline(always)]
    fn charge(&mut self) -> Parsed<()> {
        if self.owed > SETTLE {
            self.reader.vm.work(std::mem::take(&mut self.owed))?;
        }
        Ok(())
    }

    /// Read a name and its colon and, as long as everything matches the record, further fields. Gives the last value,
    /// or `None` where it has not been read.
    fn fields(&mut self, mut otherwise: &'static str, mut colon: Fault) -> Parsed<Option<Value>> {
        let Self { reader, records, open, values, .. } = self;
        if let Some(&Open { record: Some(number), values: first, .. }) = open.last() {
            let record = &records[number];
            let known = values.len() - first;
            for (index, &name) in record.names.iter().enumerate().skip(known) {
                let text = record.text(name);
                if !reader.text.get(reader.at..).is_some_and(|rest| rest.starts_with(text)) {
                    break;
                }
                reader.at += text.len();
                let Some(first) = reader.peek() else { return Ok(None) };
                let Some(value) = reader.scalar(first)? else { return Ok(None) };
                if index + 1 == record.names.len() || reader.peek() != Some(b',') {
                    return Ok(Some(value));
                }
                push(reader.vm, values, value)?;
                reader.at += 1;
                reader.space();
                (otherwise, colon) = (NEXT_NAME, Fault::Token);
            }
        }
        self.key(otherwise, colon)?;
        Ok(None)
    }

    /// The container that ends here.
    fn leave(&mut self) -> Parsed {
        self.reader.at += 1;
        let Some(open) = self.open.pop() else { return Err(Fault::Token) };
        self.owed += self.values.len().saturating_sub(open.values.max(self.charged));
        self.charged = self.charged.min(open.values);
        self.charge()?;
        if !open.object {
            let items = self.items(open.values)?;
            return Ok(self.reader.vm.heap.new_array(items));
        }
        if self.reader.vm.heap.objects.room() == 0 {
            self.make_room();
        }
        let values = &self.values[open.values..];
        let (object, record) = match open.record.map(|number| (number, &self.records[number])) {
            Some((number, record)) if record.names.len() == values.len() && !open.unread => {
                (self.reader.vm.heap.new_of_shape(record.shape(), values), Some(number))
            }
            record => {
                if let Some((_, record)) = record {
                    let names = (0..values.len()).filter_map(|index| record.atom(index));
                    self.keys.extend(self.reader.vm, names)?;
                }
                self.object(&open)
            }
        };
        self.values.truncate(open.values);
        self.keys.truncate(open.keys);
        if let Some(outer) = self.open.last_mut() {
            outer.inner = record;
        }
        Ok(object)
    }

    /// The values from an index on, which are the items of an array.
    fn items(&mut self, from: usize) -> Parsed<Vec<Value>> {
        let count = self.values.len() - from;
        if count < MANY {
            let items = self.values[from..].to_vec(); // bounded: by MANY
            self.values.truncate(from);
            return Ok(items);
        }
        // To copy many would take their memory twice.
        let mut before = Buffer::with_capacity(self.reader.vm, from)?;
        before.extend_from_slice(self.reader.vm, &self.values[..from])?;
        let mut items = std::mem::replace(&mut self.values, before).into_vec();
        items.drain(..from);
        items.shrink_to_fit();
        Ok(items)
    }

    /// Reserve what the rest of the text seems to need, extrapolated from what was read.
    #[cold]
    fn make_room(&mut self) {
        let left = self.reader.text.len() - self.reader.at;
        let heap = &mut self.reader.vm.heap;
        // The estimate is capped in proportion to the length of the text.
        let more = |before: usize, now: usize, size: usize| {
            (now.saturating_sub(before).saturating_mul(left) / self.reader.at.max(1)).min(left / size)
        };
        heap.objects.reserve(more(self.objects, heap.objects.len(), 64));
        heap.strings.reserve(more(self.strings, heap.strings.len(), 16));
    }

    /// Finish an object whose names match no record, and add a record for similar ones.
    fn object(&mut self, open: &Open) -> (Value, Option<u16>) {
        let (keys, values) = (&self.keys[open.keys..], &self.values[open.values..]);
        let heap = &mut self.reader.vm.heap;
        let shape = if keys.len() <= 64 && all_differ(keys) { heap.shape_of(keys) } else { None };
        let record = match (shape, keys.first()) {
            (Some(shape), Some(&first)) => self.records.predict(self.reader.vm, shape, first),
            (_, _) => None,
        };
        let heap = &mut self.reader.vm.heap;
        let object = match shape {
            _ if open.unread => heap.new_table(keys.len()),
            Some(shape) => return (heap.new_of_shape(shape, values), record),
            None => heap.new_object(),
        };
        for (&key, &value) in keys.iter().zip(values) {
            heap.set_own(object, key, value);
        }
        (object, record)
    }

    /// A property name and its colon; as in V8, what a missing colon is called depends on the context.
    fn key(&mut self, otherwise: &'static str, colon: Fault) -> Parsed<()> {
        if !self.expected_name() {
            self.other_name(otherwise)?;
        }
        self.reader.space();
        if self.reader.peek() != Some(b':') {
            return Err(colon);
        }
        self.reader.at += 1;
        Ok(())
    }

    /// Whether the next name is that of the record: then it has been read.
    #[inline]
    fn expected_name(&mut self) -> bool {
        let Some(&Open { record: Some(number), values, .. }) = self.open.last() else { return false };
        let record = &self.records[number];
        let Some(&name) = record.names.get(self.values.len() - values) else { return false };
        let Some((_, name)) = record.text(name).split_last() else { return false };
        let found = self.reader.text.get(self.reader.at..).is_some_and(|rest| rest.starts_with(name));
        if found {
            self.reader.at += name.len();
        }
        found
    }

    /// Read a name that does not match the record.
    fn other_name(&mut self, otherwise: &'static str) -> Parsed<()> {
        if self.reader.peek() != Some(b'"') {
            return Err(Fault::Expected(otherwise));
        }
        let atom = match self.reader.plain_string() {
            Some((start, end)) => self.records.name(self.reader.vm, &self.reader.text[start..end]),
            None => {
                let text = self.reader.escaped_string()?;
                self.reader.vm.heap.intern_bytes(&text)
            }
        };
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        let count = self.values.len() - open.values;
        if count == 0
            && let Some(number) = self.records.starting_with(atom)
        {
            open.record = Some(number);
            return Ok(());
        }
        if let Some(number) = open.record.take() {
            let record = &self.records[number];
            self.keys.extend(self.reader.vm, (0..count).filter_map(|index| record.atom(index)))?;
        }
        push(self.reader.vm, &mut self.keys, atom)
    }
}

/// V8's words for a missing name after a comma.
const NEXT_NAME: &str = "Expected double-quoted property name";

fn all_differ(keys: &[Atom]) -> bool {
    if keys.len() <= 12 {
        return keys.iter().enumerate().all(|(index, key)| !keys[..index].contains(key));
    }
    let mut seen = HashSet::with_capacity(keys.len());
    keys.iter().all(|key| seen.insert(key))
}
