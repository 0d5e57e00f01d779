//! Scalars of JSON text: strings, numbers, literals; and V8's error messages.

use super::escapes::{flush, join_halves, push_unit};
use crate::eval::vm::Vm;
use crate::heap::Class;
use crate::meter::buffer::Buffer;
use crate::text::quote::plain_length;
use crate::text::wtf8::{has_split_pair, lossy, push_utf16, to_utf16, units};
use crate::value::Value;
use crate::value::thrown::Thrown;

/// A position in a text.
pub struct Reader<'a> {
    pub vm: &'a mut Vm,
    pub text: &'a [u8],
    pub at: usize,
    /// Whether all of the text is ASCII.
    pub is_ascii: bool,
    /// The buffer that the text is in, and where, if strings are to be parts of it.
    pub home: Option<(usize, usize)>,
}

/// An error in a text, at the position of the parser.
pub enum Fault {
    /// A message of its own: the words before ` in JSON at position`.
    Expected(&'static str),
    /// An unexpected character.
    Token,
    Thrown(Thrown),
}

impl From<Thrown> for Fault {
    fn from(thrown: Thrown) -> Self {
        Self::Thrown(thrown)
    }
}

pub type Parsed<T = Value> = Result<T, Fault>;

impl Reader<'_> {
    #[inline(always)]
    pub fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline(always)]
    pub fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// A value that is no container, by its first character.
    #[inline(always)]
    pub fn scalar(&mut self, first: u8) -> Parsed<Option<Value>> {
        Ok(Some(match first {
            b'"' => self.string()?,
            b'-' | b'0'..=b'9' => self.number()?,
            b't' => self.literal(b"true", Value::TRUE)?,
            b'f' => self.literal(b"false", Value::FALSE)?,
            b'n' => self.literal(b"null", Value::NULL)?,
            _ => return Ok(None),
        }))
    }

    pub fn string(&mut self) -> Parsed {
        let Some((start, end)) = self.plain_string() else {
            let text = self.escaped_string()?;
            return Ok(self.vm.heap.string_of(text));
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
    pub fn plain_string(&mut self) -> Option<(usize, usize)> {
        let start = self.at + 1;
        let end = start + plain_length::<false>(&self.text[start..]);
        if self.text.get(end) != Some(&b'"') {
            return None;
        }
        self.at = end + 1;
        Some((start, end))
    }

    pub fn escaped_string(&mut self) -> Parsed<Buffer<u8>> {
        self.at += 1;
        let mut out = Buffer::with_capacity(self.vm, USUAL)?;
        // A high surrogate that may be the first half of a pair.
        let mut high: Option<u16> = None;
        loop {
            let rest = &self.text[self.at..];
            let plain = plain_length::<false>(rest);
            if plain > 0 {
                if high.is_some() {
                    out.write(self.vm, MAX_UNIT_BYTES, |out| flush(&mut high, out))?;
                }
                out.extend_from_slice(self.vm, &rest[..plain])?;
                self.at += plain;
            }
            match self.peek() {
                None => return Err(Fault::Expected("Unterminated string")),
                Some(b'"') => {
                    self.at += 1;
                    if high.is_some() {
                        out.write(self.vm, MAX_UNIT_BYTES, |out| flush(&mut high, out))?;
                    }
                    // A half that was escaped may have met one that was not.
                    if !self.is_ascii && has_split_pair(&out) {
                        out.write(self.vm, 0, join_halves)?;
                    }
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
                    out.write(self.vm, 2 * MAX_UNIT_BYTES, |out| push_unit(unit, &mut high, out))?;
                    continue;
                }
                // V8 has no such message for characters beyond Latin-1.
                Some(0xC4..) | None => return Err(Fault::Token),
                Some(_) => return Err(Fault::Expected("Bad escaped character")),
            };
            self.at += 1;
            if high.is_some() {
                out.write(self.vm, MAX_UNIT_BYTES, |out| flush(&mut high, out))?;
            }
            out.push(self.vm, character)?;
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

    pub fn number(&mut self) -> Parsed {
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
            // Both numbers are exact, so the quotient is rounded once.
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

    /// The position of the parser, in UTF-16 code units.
    pub fn position(&self) -> usize {
        units(&self.text[..self.at])
    }

    /// V8's message for an unexpected token.
    pub fn token_message(&self) -> Vec<u8> {
        let mut message: Vec<u8> = match self.peek() {
            None => return b"Unexpected end of JSON input".into(),
            Some(b'-' | b'0'..=b'9') => {
                let message = brief!("Unexpected number in JSON at position {}", self.position());
                return message.into_bytes();
            }
            Some(b'"') => {
                let message = brief!("Unexpected string in JSON at position {}", self.position());
                return message.into_bytes();
            }
            Some(_) => b"Unexpected token '".into(),
        };
        if let b"undefined" | b"NaN" | b"Infinity" | b"[object Object]" = self.text {
            return brief!("\"{}\" is not valid JSON", lossy(self.text)).into_bytes();
        }
        let (start, end) = self.surroundings();
        let (length, position, before) = (units(self.text), self.position(), units(&self.text[..start]));
        let text = to_utf16(&self.text[start..end]);
        let (from, to) = match length {
            length if length <= 2 * CONTEXT => (0, length),
            _ if position < CONTEXT => (0, position + CONTEXT),
            length if position < length - CONTEXT => (position - CONTEXT, position + CONTEXT),
            length => (position - CONTEXT, length),
        };
        push_utf16(&text[position - before..=position - before], &mut message);
        message.extend_from_slice(if length > 2 * CONTEXT && position >= CONTEXT { b"', ...\"" } else { b"', \"" });
        push_utf16(&text[from - before..to - before], &mut message);
        message.extend_from_slice(if to < length { b"\"... is not valid JSON" } else { b"\" is not valid JSON" });
        message
    }

    /// The bounds of the excerpt that a message shows; no character is cut.
    fn surroundings(&self) -> (usize, usize) {
        const MAX_BYTES: usize = 2 * CONTEXT * MAX_UNIT_BYTES;
        let is_inside = |at: usize| self.text.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
        let (mut start, mut end) = (self.at.saturating_sub(MAX_BYTES), self.text.len().min(self.at + MAX_BYTES));
        while is_inside(start) {
            start -= 1;
        }
        while is_inside(end) {
            end += 1;
        }
        (start, end)
    }

    pub fn syntax_error(&mut self, message: &[u8]) -> Thrown {
        let message = self.vm.heap.new_string(message);
        Thrown::value(self.vm.error_of(Class::SyntaxError, message))
    }
}

/// Bytes of a short string with escapes.
const USUAL: usize = 64;

/// Most bytes of a UTF-16 code unit.
const MAX_UNIT_BYTES: usize = 3;

/// Powers of ten.
const POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Characters of the text that a message shows on either side of the wrong one.
const CONTEXT: usize = 10;
