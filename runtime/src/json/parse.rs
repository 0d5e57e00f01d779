//! JSON text to values: one pass over WTF-8, with V8's words for what is wrong.

use crate::error::{Result, Thrown};
use crate::heap::object::{HIDDEN_CAUSE, HIDDEN_MESSAGE};
use crate::heap::{Class, push_surrogate, push_utf16, to_utf16, units};
use crate::symbol::{Sym, known};
use crate::value::Value;
use crate::vm::Vm;
use hashbrown::HashSet;

impl Vm {
    /// The value of a JSON text (ECMAScript 25.5.1 without a reviver).
    pub fn parse_json(&mut self, text: &[u8]) -> Result {
        self.work(text.len() / 16)?;
        let mut parser = Parser {
            vm: self,
            text,
            at: 0,
            open: Vec::new(),
            values: Vec::new(),
            keys: Vec::new(),
            names: [const { None }; NAMES],
            shapes: [const { None }; SHAPES],
            owed: 0,
        };
        parser.document()
    }
}

/// Places of the cache of property names.
const NAMES: usize = 128;
/// Places of the cache of shapes.
const SHAPES: usize = 16;
/// Units of work between two looks at the meter.
const SETTLE: usize = 256;

struct Parser<'a> {
    vm: &'a mut Vm,
    text: &'a [u8],
    at: usize,
    /// The containers around this place.
    open: Vec<Open>,
    /// Finished values of all open containers.
    values: Vec<Value>,
    /// Property names of all open objects.
    keys: Vec<Sym>,
    /// Names that were read lately.
    names: [Option<Sym>; NAMES],
    /// Shapes that were made lately, by their keys.
    shapes: [Option<(Box<[Sym]>, u32)>; SHAPES],
    /// Work that the meter does not know of yet.
    owed: usize,
}

/// A container whose end has not been read.
struct Open {
    object: bool,
    values: usize,
    keys: usize,
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
                    if self.peek() != Some(b'}') {
                        self.key("Expected property name or '}'", Fault::Expected("Expected ':' after property name"))?;
                        continue;
                    }
                    self.leave()?
                }
                Some(b'[') => {
                    self.enter(false);
                    if self.peek() != Some(b']') {
                        continue;
                    }
                    self.leave()?
                }
                Some(b'"') => self.string()?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.literal(b"true", Value::TRUE)?,
                Some(b'f') => self.literal(b"false", Value::FALSE)?,
                Some(b'n') => self.literal(b"null", Value::NULL)?,
                Some(_) | None => return Err(Fault::Token),
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
                        self.key("Expected double-quoted property name", Fault::Token)?;
                        break;
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
        self.open.push(Open { object, values: self.values.len(), keys: self.keys.len() });
        self.at += 1;
        self.space();
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
        let object = match self.shape(open.keys) {
            Some(shape) => self.vm.heap.new_of_shape(shape, &self.values[open.values..]),
            None => {
                let object = self.vm.heap.new_object();
                for (&key, &value) in self.keys[open.keys..].iter().zip(&self.values[open.values..]) {
                    self.vm.heap.set_own(object, key, value);
                }
                object
            }
        };
        self.values.truncate(open.values);
        self.keys.truncate(open.keys);
        Ok(object)
    }

    /// The shape of the innermost object, if it can have one.
    fn shape(&mut self, first: usize) -> Option<u32> {
        let keys = &self.keys[first..];
        let (Some(start), Some(end)) = (keys.first(), keys.last()) else {
            return Some(crate::heap::object::EMPTY);
        };
        let place = (start.0 as usize ^ (end.0 as usize).wrapping_mul(5) ^ keys.len()) % SHAPES;
        if let Some((known, shape)) = &self.shapes[place]
            && **known == *keys
        {
            return Some(*shape);
        }
        if keys.len() > 64 || !all_differ(keys) {
            return None;
        }
        let shape = self.vm.heap.shape_of(keys)?;
        self.shapes[place] = Some((keys.into(), shape));
        Some(shape)
    }

    /// A property name and its colon; as in V8, what a missing colon is called depends on the place.
    fn key(&mut self, otherwise: &'static str, colon: Fault) -> Parsed<()> {
        if self.peek() != Some(b'"') {
            return Err(Fault::Expected(otherwise));
        }
        let symbol = match self.plain_string() {
            Some((start, end)) => self.name(start, end),
            None => {
                let text = self.escaped_string()?;
                let (symbol, bytes) = self.vm.symbols.intern(&text);
                self.vm.heap.meter.add_bytes(bytes);
                symbol
            }
        };
        self.keys.push(symbol);
        self.space();
        if self.peek() != Some(b':') {
            return Err(colon);
        }
        self.at += 1;
        Ok(())
    }

    /// The symbol of a name in the text.
    fn name(&mut self, start: usize, end: usize) -> Sym {
        let text = &self.text[start..end];
        let place = match text {
            [first, .., last] => usize::from(*first) ^ usize::from(*last) << 2 ^ text.len() << 4,
            [only] => usize::from(*only),
            [] => 0,
        } % NAMES;
        if let Some(symbol) = self.names[place]
            && self.vm.symbols.text(symbol) == text
        {
            return symbol;
        }
        let (symbol, bytes) = self.vm.symbols.intern(text);
        if bytes > 0 {
            self.vm.heap.meter.add_bytes(bytes);
        }
        self.names[place] = Some(symbol);
        symbol
    }

    fn string(&mut self) -> Parsed {
        Ok(match self.plain_string() {
            Some((start, end)) => self.vm.heap.new_string(&self.text[start..end]),
            None => {
                let text = self.escaped_string()?;
                self.vm.heap.take_string(text)
            }
        })
    }

    /// The bounds of a string without escapes; reads nothing if this is none.
    #[inline]
    fn plain_string(&mut self) -> Option<(usize, usize)> {
        let start = self.at + 1;
        let length = self.text[start..].iter().position(|&byte| matches!(byte, b'"' | b'\\' | 0..=0x1F))?;
        if self.text[start + length] != b'"' {
            return None;
        }
        self.at = start + length + 1;
        Some((start, start + length))
    }

    fn escaped_string(&mut self) -> Parsed<Vec<u8>> {
        self.at += 1;
        let mut out = Vec::new();
        // A high surrogate that may be the first half of a pair.
        let mut high: Option<u16> = None;
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.iter().position(|&byte| matches!(byte, b'"' | b'\\' | 0..=0x1F)).unwrap_or(rest.len());
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
            self.digits("Unterminated fractional number")?;
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

/// Characters of the text that a message shows on either side of the wrong one.
const CONTEXT: usize = 10;

fn all_differ(keys: &[Sym]) -> bool {
    if keys.len() <= 12 {
        return keys.iter().enumerate().all(|(index, key)| !keys[..index].contains(key));
    }
    let mut seen = HashSet::with_capacity(keys.len());
    keys.iter().all(|key| seen.insert(key))
}

/// Append a code unit, joined with the high surrogate before it if the two are a pair.
fn push_unit(unit: u16, high: &mut Option<u16>, out: &mut Vec<u8>) {
    match (high.take(), unit) {
        (Some(first), 0xDC00..=0xDFFF) => push_utf16(&[first, unit], out),
        (before, 0xD800..=0xDBFF) => {
            if let Some(before) = before {
                push_surrogate(before, out);
            }
            *high = Some(unit);
        }
        (before, _) => {
            if let Some(before) = before {
                push_surrogate(before, out);
            }
            push_utf16(&[unit], out);
        }
    }
}

/// Append a high surrogate that stayed alone.
fn flush(high: &mut Option<u16>, out: &mut Vec<u8>) {
    if let Some(unit) = high.take() {
        push_surrogate(unit, out);
    }
}
