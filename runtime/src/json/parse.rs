//! JSON text to values: one pass over WTF-8, with V8's words for what is wrong.

use super::escapes::{flush, push_unit};
use super::plain_length;
use super::record::Records;
use crate::error::{Result, Thrown};
use crate::heap::object::{HIDDEN_CAUSE, HIDDEN_MESSAGE};
use crate::heap::{Class, Heap, push_utf16, to_utf16, units};
use crate::symbol::{Sym, known};
use crate::value::Value;
use crate::vm::Vm;
use hashbrown::HashSet;

impl Vm {
    /// The value of a JSON text (ECMAScript 25.5.1 without a reviver).
    pub fn parse_json(&mut self, text: String) -> Result {
        if !Heap::worth_sharing(text.len()) {
            return self.parse_bytes(text.as_bytes(), None);
        }
        let buffer = self.heap.share(text.into_bytes());
        let shared = self.heap.lend(buffer);
        let value = self.parse_bytes(shared.bytes(), Some((buffer, 0)));
        self.heap.give_back(buffer, shared);
        value
    }

    /// The same of a string.
    pub fn parse_json_string(&mut self, text: Value) -> Result {
        let length = self.heap.str(text).bytes as usize;
        match self.heap.place_of(text) {
            Some((buffer, start)) if Heap::worth_sharing(length) => {
                let shared = self.heap.lend(buffer);
                let value = self.parse_bytes(&shared.bytes()[start..][..length], Some((buffer, start)));
                self.heap.give_back(buffer, shared);
                value
            }
            _ => {
                self.reserve(length)?;
                let text = self.heap.bytes(text).to_vec();
                self.parse_bytes(&text, None)
            }
        }
    }

    /// `home`: the buffer that the text is in, and where, if strings are to be parts of it.
    fn parse_bytes(&mut self, text: &[u8], home: Option<(usize, usize)>) -> Result {
        self.work(text.len() / 16)?;
        let mut records = self.take_records();
        let Room { open, values, keys } = std::mem::take(&mut records.room);
        let (objects, strings) = (self.heap.objects.len(), self.heap.strings.len());
        let mut parser = Parser {
            records,
            vm: self,
            text,
            is_ascii: text.is_ascii(),
            home,
            at: 0,
            open,
            values,
            keys,
            owed: 0,
            objects,
            strings,
        };
        let value = parser.document();
        let Parser { mut records, open, values, keys, .. } = parser;
        records.room = Room { open, values, keys }.emptied();
        self.records = Some(records);
        value
    }
}

/// What a parser keeps containers and values in that it has not finished.
#[derive(Default)]
pub struct Room {
    open: Vec<Open>,
    values: Vec<Value>,
    keys: Vec<Sym>,
}

impl Room {
    /// With nothing in it; that of large texts is given back.
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

/// Units of work between two looks at the meter.
const SETTLE: usize = 256;

struct Parser<'a> {
    vm: &'a mut Vm,
    text: &'a [u8],
    is_ascii: bool,
    home: Option<(usize, usize)>,
    at: usize,
    /// The containers around this place.
    open: Vec<Open>,
    /// Finished values of all open containers.
    values: Vec<Value>,
    /// Property names of all open objects, but for those that are a record up to here.
    keys: Vec<Sym>,
    /// Objects as they were read before: most of those to come are alike.
    records: Box<Records>,
    /// Work that the meter does not know of yet.
    owed: usize,
    /// How many objects and strings there were before.
    objects: usize,
    strings: usize,
}

/// A container whose end has not been read.
struct Open {
    object: bool,
    values: usize,
    keys: usize,
    /// The record that all names so far are those of.
    record: Option<u16>,
    /// The record of the object that was last read in it.
    inner: Option<u16>,
}

/// What is wrong with a text. The place is where the parser stands.
enum Fault {
    /// A message of its own: the words before ` in JSON at position`.
    Expected(&'static str),
    /// A character that no value begins with or goes on with.
    Token,
    Thrown(Thrown),
}

impl From<Thrown> for Fault {
    fn from(thrown: Thrown) -> Self {
        Self::Thrown(thrown)
    }
}

type Parsed<T = Value> = std::result::Result<T, Fault>;

impl Parser<'_> {
    fn document(&mut self) -> Result {
        let parsed = self.value().and_then(|value| {
            self.space();
            if self.at < self.text.len() {
                return Err(Fault::Expected("Unexpected non-whitespace character after JSON"));
            }
            Ok(value)
        });
        self.vm.work(self.owed)?;
        parsed.map_err(|fault| match fault {
            Fault::Thrown(thrown) => thrown,
            Fault::Expected(words) => {
                let message = format!(
                    "{words}{} at position {}",
                    if words.ends_with("JSON") { "" } else { " in JSON" },
                    self.position()
                );
                self.syntax_error(message.as_bytes())
            }
            Fault::Token => {
                let message = self.token_message();
                self.syntax_error(&message)
            }
        })
    }

    fn value(&mut self) -> Parsed {
        loop {
            self.space();
            let mut value = match self.peek() {
                Some(b'{') => {
                    self.enter(true);
                    if self.peek() == Some(b'}') {
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
                    self.enter(false);
                    if self.peek() != Some(b']') {
                        continue;
                    }
                    self.leave()?
                }
                Some(first) => match self.scalar(first)? {
                    Some(value) => value,
                    None => return Err(Fault::Token),
                },
                None => return Err(Fault::Token),
            };
            // The value may be the last one of any number of containers.
            loop {
                let Some(open) = self.open.last() else { return Ok(value) };
                let object = open.object;
                self.values.push(value);
                self.space();
                match (self.peek(), object) {
                    (Some(b','), true) => {
                        self.at += 1;
                        self.space();
                        match self.fields(NEXT_NAME, Fault::Token)? {
                            Some(next) => value = next,
                            None => break,
                        }
                    }
                    (Some(b','), false) => {
                        self.at += 1;
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => value = self.leave()?,
                    (_, true) => return Err(Fault::Expected("Expected ',' or '}' after property value")),
                    (_, false) => return Err(Fault::Expected("Expected ',' or ']' after array element")),
                }
            }
        }
    }

    #[inline(always)]
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline(always)]
    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn enter(&mut self, object: bool) {
        let record = self.open.last().and_then(|open| open.inner).filter(|_| object);
        self.open.push(Open { object, values: self.values.len(), keys: self.keys.len(), record, inner: None });
        self.at += 1;
        self.space();
    }

    /// A value that is no container, by its first character.
    #[inline(always)]
    fn scalar(&mut self, first: u8) -> Parsed<Option<Value>> {
        Ok(Some(match first {
            b'"' => self.string()?,
            b'-' | b'0'..=b'9' => self.number()?,
            b't' => self.literal(b"true", Value::TRUE)?,
            b'f' => self.literal(b"false", Value::FALSE)?,
            b'n' => self.literal(b"null", Value::NULL)?,
            _ => return Ok(None),
        }))
    }

    /// Reads a name and its colon and, where all is as in the record, as many fields as there are. Gives the last
    /// value; nothing where that has not been read.
    fn fields(&mut self, mut otherwise: &'static str, mut colon: Fault) -> Parsed<Option<Value>> {
        loop {
            let Some(&Open { record: Some(number), values, .. }) = self.open.last() else { break };
            let (record, index) = (&self.records[number], self.values.len() - values);
            let Some(&name) = record.names.get(index) else { break };
            let text = record.text(name);
            if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(text)) {
                break;
            }
            self.at += text.len();
            let is_last = index + 1 == record.names.len();
            let Some(first) = self.peek() else { return Ok(None) };
            let Some(value) = self.scalar(first)? else { return Ok(None) };
            if is_last || self.peek() != Some(b',') {
                return Ok(Some(value));
            }
            self.values.push(value);
            self.at += 1;
            self.space();
            (otherwise, colon) = (NEXT_NAME, Fault::Token);
        }
        self.key(otherwise, colon)?;
        Ok(None)
    }

    /// The container that ends here.
    fn leave(&mut self) -> Parsed {
        self.at += 1;
        let Some(open) = self.open.pop() else { return Err(Fault::Token) };
        self.owed += 1 + self.values.len() - open.values;
        if self.owed > SETTLE {
            self.vm.work(std::mem::take(&mut self.owed))?;
        }
        if !open.object {
            let items = self.values[open.values..].to_vec();
            self.values.truncate(open.values);
            return Ok(self.vm.heap.new_array(items));
        }
        if self.vm.heap.objects.room() == 0 {
            self.make_room();
        }
        let values = &self.values[open.values..];
        let (object, record) = match open.record.map(|number| (number, &self.records[number])) {
            Some((number, record)) if record.names.len() == values.len() => {
                (self.vm.heap.new_of_shape(record.shape(), values), Some(number))
            }
            record => {
                if let Some((_, record)) = record {
                    self.keys.extend((0..values.len()).filter_map(|index| record.symbol(index)));
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

    /// Make as much room as the text seems to need, by what there was in it so far.
    #[cold]
    fn make_room(&mut self) {
        let left = self.text.len() - self.at;
        let heap = &mut self.vm.heap;
        // No text is trusted to need much more memory than it takes itself.
        let more = |before: usize, now: usize, size: usize| {
            (now.saturating_sub(before).saturating_mul(left) / self.at.max(1)).min(left / size)
        };
        heap.objects.expect(more(self.objects, heap.objects.len(), 64));
        heap.strings.expect(more(self.strings, heap.strings.len(), 16));
    }

    /// An object of names that are no record yet, and the record of others like it.
    fn object(&mut self, open: &Open) -> (Value, Option<u16>) {
        let (keys, values) = (&self.keys[open.keys..], &self.values[open.values..]);
        if keys.len() <= 64
            && all_differ(keys)
            && let Some(shape) = self.vm.heap.shape_of(keys)
        {
            let record = keys.first().and_then(|&first| self.records.expect(self.vm, shape, first));
            return (self.vm.heap.new_of_shape(shape, values), record);
        }
        let object = self.vm.heap.new_object();
        for (&key, &value) in keys.iter().zip(values) {
            self.vm.heap.set_own(object, key, value);
        }
        (object, None)
    }

    /// A property name and its colon; as in V8, what a missing colon is called depends on the place.
    fn key(&mut self, otherwise: &'static str, colon: Fault) -> Parsed<()> {
        if !self.expected_name() {
            self.other_name(otherwise)?;
        }
        self.space();
        if self.peek() != Some(b':') {
            return Err(colon);
        }
        self.at += 1;
        Ok(())
    }

    /// Whether the next name is that of the record: then it has been read.
    #[inline]
    fn expected_name(&mut self) -> bool {
        let Some(&Open { record: Some(number), values, .. }) = self.open.last() else { return false };
        let record = &self.records[number];
        let Some(&name) = record.names.get(self.values.len() - values) else { return false };
        let Some((_, name)) = record.text(name).split_last() else { return false };
        let found = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(name));
        if found {
            self.at += name.len();
        }
        found
    }

    /// Reads a name that is not the one of the record.
    fn other_name(&mut self, otherwise: &'static str) -> Parsed<()> {
        if self.peek() != Some(b'"') {
            return Err(Fault::Expected(otherwise));
        }
        let symbol = match self.plain_string() {
            Some((start, end)) => self.records.name(self.vm, &self.text[start..end]),
            None => {
                let text = self.escaped_string()?;
                let (symbol, bytes) = self.vm.symbols.intern(&text);
                self.vm.heap.meter.add_bytes(bytes);
                symbol
            }
        };
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        let count = self.values.len() - open.values;
        if count == 0
            && let Some(number) = self.records.of_first(symbol)
        {
            open.record = Some(number);
            return Ok(());
        }
        if let Some(number) = open.record.take() {
            let record = &self.records[number];
            self.keys.extend((0..count).filter_map(|index| record.symbol(index)));
        }
        self.keys.push(symbol);
        Ok(())
    }

    fn string(&mut self) -> Parsed {
        let Some((start, end)) = self.plain_string() else {
            let text = self.escaped_string()?;
            return Ok(self.vm.heap.take_string(text));
        };
        let text = &self.text[start..end];
        let units = if self.is_ascii { text.len() } else { units(text) };
        Ok(match self.home {
            Some((buffer, begin)) => self.vm.heap.part_of(buffer, begin + start, text.len(), units),
            None => self.vm.heap.new_counted(text, units),
        })
    }

    /// The bounds of a string without escapes; reads nothing if this is none.
    #[inline]
    fn plain_string(&mut self) -> Option<(usize, usize)> {
        let start = self.at + 1;
        let end = start + plain_length::<false>(&self.text[start..]);
        if self.text.get(end) != Some(&b'"') {
            return None;
        }
        self.at = end + 1;
        Some((start, end))
    }

    fn escaped_string(&mut self) -> Parsed<Vec<u8>> {
        self.at += 1;
        let mut out = Vec::new();
        // A high surrogate that may be the first half of a pair.
        let mut high: Option<u16> = None;
        loop {
            let rest = &self.text[self.at..];
            let plain = plain_length::<false>(rest);
            if plain > 0 {
                flush(&mut high, &mut out);
                out.extend_from_slice(&rest[..plain]);
                self.at += plain;
            }
            match self.peek() {
                None => return Err(Fault::Expected("Unterminated string")),
                Some(b'"') => {
                    self.at += 1;
                    flush(&mut high, &mut out);
                    return Ok(out);
                }
                Some(b'\\') => {}
                Some(_) => return Err(Fault::Expected("Bad control character in string literal")),
            }
            self.at += 1;
            let character = match self.peek() {
                Some(byte @ (b'"' | b'\\' | b'/')) => byte,
                Some(b'b') => 8,
                Some(b'f') => 12,
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'u') => {
                    self.at += 1;
                    let unit = self.hex_unit()?;
                    push_unit(unit, &mut high, &mut out);
                    continue;
                }
                // V8 has no such words for characters beyond Latin-1.
                Some(0xC4..) | None => return Err(Fault::Token),
                Some(_) => return Err(Fault::Expected("Bad escaped character")),
            };
            self.at += 1;
            flush(&mut high, &mut out);
            out.push(character);
        }
    }

    fn hex_unit(&mut self) -> Parsed<u16> {
        let mut unit = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) else {
                return Err(Fault::Expected("Bad Unicode escape"));
            };
            unit = unit << 4 | digit as u16;
            self.at += 1;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Parsed {
        let start = self.at;
        let negative = self.peek() == Some(b'-');
        if negative {
            self.at += 1;
        }
        let first = self.at;
        let mut integer = 0_u64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            integer = integer.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        if self.at == first {
            return Err(Fault::Expected("No number after minus sign"));
        }
        if self.text[first] == b'0' && self.at > first + 1 {
            self.at = first + 1;
            return Err(Fault::Token);
        }
        let simple = self.at - first <= 15 && !matches!(self.peek(), Some(b'.' | b'e' | b'E'));
        if simple {
            let number = integer as f64;
            return Ok(Value::number(if negative { -number } else { number }));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            let point = self.at;
            self.digits("Unterminated fractional number")?;
            // Both numbers are exact, so that their quotient is rounded once.
            if self.at - first <= 16
                && !matches!(self.peek(), Some(b'e' | b'E'))
                && let Some(divisor) = POWERS.get(self.at - point)
            {
                let digits = &self.text[point..self.at];
                let whole = digits.iter().fold(integer, |number, digit| number * 10 + u64::from(digit - b'0'));
                let number = whole as f64 / divisor;
                return Ok(Value::number(if negative { -number } else { number }));
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits("Exponent part is missing a number")?;
        }
        let number = std::str::from_utf8(&self.text[start..self.at]).ok().and_then(|text| text.parse().ok());
        Ok(Value::foreign_number(number.unwrap_or(f64::NAN)))
    }

    fn digits(&mut self, otherwise: &'static str) -> Parsed<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err(Fault::Expected(otherwise)) } else { Ok(()) }
    }

    fn literal(&mut self, text: &'static [u8], value: Value) -> Parsed {
        for &byte in text {
            if self.peek() != Some(byte) {
                return Err(Fault::Token);
            }
            self.at += 1;
        }
        Ok(value)
    }

    /// Where the parser stands, in UTF-16 code units.
    fn position(&self) -> usize {
        units(&self.text[..self.at])
    }

    /// How V8 words that a text cannot go on like this.
    fn token_message(&self) -> Vec<u8> {
        match self.peek() {
            None => return b"Unexpected end of JSON input".to_vec(),
            Some(b'-' | b'0'..=b'9') => {
                return format!("Unexpected number in JSON at position {}", self.position()).into_bytes();
            }
            Some(b'"') => {
                return format!("Unexpected string in JSON at position {}", self.position()).into_bytes();
            }
            Some(_) => {}
        }
        if let b"undefined" | b"NaN" | b"Infinity" | b"[object Object]" = self.text {
            return [b"\"", self.text, b"\" is not valid JSON"].concat();
        }
        let text = to_utf16(self.text);
        let position = self.position();
        let (from, to) = match text.len() {
            length if length <= 2 * CONTEXT => (0, length),
            _ if position < CONTEXT => (0, position + CONTEXT),
            length if position < length - CONTEXT => (position - CONTEXT, position + CONTEXT),
            length => (position - CONTEXT, length),
        };
        let mut message = b"Unexpected token '".to_vec();
        push_utf16(&text[position..=position], &mut message);
        message.extend_from_slice(if text.len() > 2 * CONTEXT && position >= CONTEXT { b"', ...\"" } else { b"', \"" });
        push_utf16(&text[from..to], &mut message);
        message.extend_from_slice(if to < text.len() { b"\"... is not valid JSON" } else { b"\" is not valid JSON" });
        message
    }

    fn syntax_error(&mut self, message: &[u8]) -> Thrown {
        let error = self.vm.heap.new_of_class(Class::SyntaxError);
        let text = self.vm.heap.new_string(message);
        self.vm.heap.set_own(error, known::MESSAGE, text);
        self.vm.heap.add_flags(error, HIDDEN_MESSAGE | HIDDEN_CAUSE);
        Thrown::value(error)
    }
}

/// What a name behind a comma is called that is none.
const NEXT_NAME: &str = "Expected double-quoted property name";

/// Powers of ten.
const POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Characters of the text that a message shows on either side of the wrong one.
const CONTEXT: usize = 10;

fn all_differ(keys: &[Sym]) -> bool {
    if keys.len() <= 12 {
        return keys.iter().enumerate().all(|(index, key)| !keys[..index].contains(key));
    }
    let mut seen = HashSet::with_capacity(keys.len());
    keys.iter().all(|key| seen.insert(key))
}
