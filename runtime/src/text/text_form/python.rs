//! Values as Python prints them with `repr`, `print` or `pprint`: lists, tuples, sets, dictionaries, texts, numbers, `None`.
//!
//! A value without a counterpart stays as its source: calls (`datetime.date(2024, 1, 2)`, `Decimal('1.5')`), bytes,
//! complex numbers, `<objects>`, keys that are no text, and integers beyond doubles. Nothing is evaluated. A parser of
//! Python's
//! syntax would take expressions too, which is not what Python prints.

use super::{Fault, Part, Sink, give};
use std::borrow::Cow;

/// Maximum depth of lists and dictionaries; Python itself prints about as many.
const MAX_DEPTH: usize = 1_000;

/// Reads the value that a text is.
pub fn read<S: Sink>(text: &str, sink: &mut S) -> Result<(), Fault<S::Stop>> {
    let mut parser = Parser { text, at: 0, sink, open: Vec::new() };
    parser.blanks();
    if !matches!(parser.peek(), Some(b'[' | b'(' | b'{' | b'\'' | b'"')) {
        return Err(Fault::form("it begins with none of [ ( { '"));
    }
    parser.document()
}

/// An open container: what closes it, and whether its items have keys.
struct Open {
    close: u8,
    has_keys: bool,
}

struct Parser<'t, 's, S> {
    text: &'t str,
    at: usize,
    sink: &'s mut S,
    open: Vec<Open>,
}

/// What a value was.
enum Value {
    /// It is complete.
    Done,
    /// A container has begun.
    Begun,
}

impl<'t, S: Sink> Parser<'t, '_, S> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn give(&mut self, part: Part<'_>) -> Result<(), Fault<S::Stop>> {
        give(self.sink, part)
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    #[cold]
    fn wrong(&self, reason: &str) -> Fault<S::Stop> {
        let before = &self.text.as_bytes()[..self.at.min(self.text.len())];
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let shown: String = self.rest().chars().take(20).collect();
        let place = if shown.is_empty() { "the end".to_owned() } else { format!("`{shown}`") };
        Fault::form(format!("line {line}, at {place}: {reason}"))
    }

    fn document(&mut self) -> Result<(), Fault<S::Stop>> {
        loop {
            let value = if self.open.last().is_some_and(|open| open.has_keys) { self.member()? } else { self.value()? };
            if matches!(value, Value::Begun) && !self.closes() {
                continue;
            }
            if matches!(value, Value::Begun) {
                self.close()?;
            }
            // The value may be the last one of any number of containers.
            loop {
                self.blanks();
                let Some(open) = self.open.last() else {
                    return if self.at == self.text.len() { Ok(()) } else { Err(self.wrong("there is more")) };
                };
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if !self.closes() {
                            break;
                        }
                        self.close()?;
                    }
                    Some(byte) if byte == open.close => self.close()?,
                    _ => return Err(self.wrong("a comma is missing")),
                }
            }
        }
    }

    /// Whether the innermost container ends here.
    fn closes(&mut self) -> bool {
        self.blanks();
        self.open.last().is_some_and(|open| self.peek() == Some(open.close))
    }

    fn close(&mut self) -> Result<(), Fault<S::Stop>> {
        self.at += 1;
        self.open.pop();
        self.give(Part::End)
    }

    fn begin(&mut self, close: u8, has_keys: bool) -> Result<Value, Fault<S::Stop>> {
        if self.open.len() == MAX_DEPTH {
            return Err(self.wrong("it is nested too deeply"));
        }
        self.open.push(Open { close, has_keys });
        self.give(if has_keys { Part::Object } else { Part::List })?;
        Ok(Value::Begun)
    }

    /// A key and its value.
    fn member(&mut self) -> Result<Value, Fault<S::Stop>> {
        self.blanks();
        let key = self.key()?;
        self.give(Part::Key(&key))?;
        self.blanks();
        if self.peek() != Some(b':') {
            return Err(self.wrong("a colon is missing"));
        }
        self.at += 1;
        self.value()
    }

    fn value(&mut self) -> Result<Value, Fault<S::Stop>> {
        self.blanks();
        match self.peek() {
            Some(b'[') => {
                self.at += 1;
                self.begin(b']', false)
            }
            Some(b'(') => {
                let start = self.at;
                self.at += 1;
                self.blanks();
                // `pprint` writes a long text in pieces, in parentheses.
                if let Some(b'\'' | b'"') = self.peek() {
                    let text = self.strings()?;
                    self.blanks();
                    if self.peek() == Some(b')') {
                        self.at += 1;
                        self.give(Part::Text(&text))?;
                        return Ok(Value::Done);
                    }
                    self.at = start + 1;
                }
                // A complex number is in parentheses: `(1+2j)`.
                let word = self.word_length();
                if word.ends_with('j') && number(word).is_some() && self.peek() == Some(b')') {
                    self.at += 1;
                    return self.source(start);
                }
                self.at = start + 1;
                self.begin(b')', false)
            }
            Some(b'{') => {
                self.at += 1;
                self.blanks();
                let start = self.at;
                if self.peek() == Some(b'}') {
                    return self.begin(b'}', true);
                }
                self.key()?;
                self.blanks();
                let has_keys = self.peek() == Some(b':');
                self.at = start;
                self.begin(b'}', has_keys)
            }
            Some(b'\'' | b'"') => {
                let text = self.strings()?;
                self.give(Part::Text(&text))?;
                Ok(Value::Done)
            }
            _ => self.word(),
        }
    }

    /// A key: a text, or the source of another value. It has no lists, dictionaries or sets, which cannot be keys, so that what
    /// is in a key is not read again for each level around it.
    fn key(&mut self) -> Result<Cow<'t, str>, Fault<S::Stop>> {
        if let Some(b'\'' | b'"') = self.peek() {
            return self.strings();
        }
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some(b'(') => depth += 1,
                Some(b')') if depth > 0 => depth -= 1,
                Some(b'\'' | b'"') => {
                    self.string()?;
                    continue;
                }
                Some(b'<') => {
                    self.angles()?;
                    continue;
                }
                Some(b':' | b',' | b'}') if depth == 0 => break,
                Some(b'[' | b'{' | b']' | b')') | None => return Err(self.wrong("this is no key")),
                Some(byte) if is_word(byte) && self.starts_call() => {
                    self.word_length();
                    self.skip_call()?;
                    continue;
                }
                Some(_) => {}
            }
            self.at += 1;
        }
        let key = self.text[start..self.at].trim();
        let is_name = key.bytes().all(is_word) && !is_constant(key) && number(key).is_none();
        if key.is_empty() || is_name {
            self.at = start;
            return Err(self.wrong("this is no key"));
        }
        Ok(Cow::Borrowed(key))
    }

    /// Whether the word here is a function that is called.
    fn starts_call(&self) -> bool {
        if self.at > 0 && is_word(self.text.as_bytes()[self.at - 1]) {
            return false;
        }
        let rest = self.rest().as_bytes();
        let length = rest.iter().position(|&byte| !is_word(byte)).unwrap_or(rest.len());
        rest.get(length) == Some(&b'(')
    }

    /// Goes past a word; gives its text.
    fn word_length(&mut self) -> &'t str {
        let rest = self.rest();
        let length = rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// `None`, `True`, `3.5`, `datetime.date(2024, 1, 2)`, `b'bytes'`, `<object at 0x1>`
    fn word(&mut self) -> Result<Value, Fault<S::Stop>> {
        let start = self.at;
        if self.peek() == Some(b'<') {
            self.angles()?;
            return self.source(start);
        }
        let word = self.word_length();
        match (word, self.peek()) {
            ("b" | "B", Some(b'\'' | b'"')) => {
                self.string()?;
                // `pprint` writes long ones in pieces.
                loop {
                    let end = self.at;
                    self.blanks();
                    if !self.rest().starts_with("b'") && !self.rest().starts_with("b\"") {
                        self.at = end;
                        return self.source(start);
                    }
                    self.at += 1;
                    self.string()?;
                }
            }
            ("u", Some(b'\'' | b'"')) => {
                let text = self.strings()?;
                self.give(Part::Text(&text))?;
                return Ok(Value::Done);
            }
            ("", _) => return Err(self.wrong("this is no value of Python")),
            (word, Some(b'(')) if !word.starts_with(|c: char| c.is_ascii_digit()) => {
                self.skip_call()?;
                if matches!(&self.text[start..self.at], "set()" | "frozenset()") {
                    self.give(Part::List)?;
                    self.give(Part::End)?;
                    return Ok(Value::Done);
                }
                return self.source(start);
            }
            _ => {}
        }
        let part = match word {
            "None" => Part::Null,
            "True" | "False" => Part::Boolean(word == "True"),
            "nan" => Part::Number(f64::NAN),
            "inf" | "-inf" => Part::Number(if word == "inf" { f64::INFINITY } else { f64::NEG_INFINITY }),
            "..." | "Ellipsis" | "NotImplemented" => Part::Text(word),
            word => match number(word) {
                Some(part) => part,
                None => {
                    self.at = start;
                    return Err(self.wrong("this is no value of Python"));
                }
            },
        };
        self.give(part)?;
        Ok(Value::Done)
    }

    /// Gives the source since a position as a text.
    fn source(&mut self, start: usize) -> Result<Value, Fault<S::Stop>> {
        let text = self.text;
        self.give(Part::Text(&text[start..self.at]))?;
        Ok(Value::Done)
    }

    /// Goes past the arguments of a call, whatever they are.
    fn skip_call(&mut self) -> Result<(), Fault<S::Stop>> {
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some(b'\'' | b'"') => {
                    self.string()?;
                    continue;
                }
                Some(b'(' | b'[' | b'{') => depth += 1,
                Some(b')' | b']' | b'}') => depth = depth.saturating_sub(1),
                Some(_) => {}
                None => return Err(self.wrong("a call does not end")),
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Goes past `<class 'int'>`.
    fn angles(&mut self) -> Result<(), Fault<S::Stop>> {
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some(b'<') => depth += 1,
                Some(b'>') => depth = depth.saturating_sub(1),
                Some(_) => {}
                None => return Err(self.wrong("a `<` does not end")),
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// A text, and those that follow it, which are one for Python.
    fn strings(&mut self) -> Result<Cow<'t, str>, Fault<S::Stop>> {
        let mut text = self.string()?;
        loop {
            let end = self.at;
            self.blanks();
            let Some(b'\'' | b'"') = self.peek() else {
                self.at = end;
                return Ok(text);
            };
            let more = self.string()?;
            text.to_mut().push_str(&more);
        }
    }

    fn string(&mut self) -> Result<Cow<'t, str>, Fault<S::Stop>> {
        let start = self.at;
        let quote = self.peek().unwrap_or(b'\'');
        self.at += 1;
        let mut text = Cow::Borrowed("");
        loop {
            let rest = self.rest();
            let Some(length) = memchr::memchr3(quote, b'\\', b'\n', rest.as_bytes()) else {
                self.at = start;
                return Err(self.wrong("this text does not end"));
            };
            if matches!(&text, Cow::Borrowed(part) if part.is_empty()) {
                text = Cow::Borrowed(&rest[..length]);
            } else {
                text.to_mut().push_str(&rest[..length]);
            }
            self.at += length;
            match self.peek() {
                Some(byte) if byte == quote => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape(text.to_mut())?;
                }
                _ => {
                    self.at = start;
                    return Err(self.wrong("this text does not end in its line"));
                }
            }
        }
    }

    /// What is after a `\`.
    fn escape(&mut self, text: &mut String) -> Result<(), Fault<S::Stop>> {
        let Some(letter) = self.rest().chars().next() else { return Err(self.wrong("this text does not end")) };
        self.at += letter.len_utf8();
        let plain = match letter {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            '0' => '\0',
            '\\' | '\'' | '"' => letter,
            'x' => self.code(2)?,
            'u' => self.code(4)?,
            'U' => self.code(8)?,
            // A line break after it belongs to the source.
            '\n' => return Ok(()),
            other => {
                text.push('\\');
                other
            }
        };
        text.push(plain);
        Ok(())
    }

    /// The character of so many hexadecimal digits. Halves of surrogate pairs, which are no characters, become U+FFFD
    /// unless the
    /// other half follows.
    fn code(&mut self, digits: usize) -> Result<char, Fault<S::Stop>> {
        let code = self.hex(digits)?;
        if (0xD800..0xDC00).contains(&code) && self.rest().starts_with("\\u") {
            let before = self.at;
            self.at += 2;
            let low = self.hex(4)?;
            if (0xDC00..0xE000).contains(&low) {
                return Ok(char::from_u32(0x1_0000 + ((code - 0xD800) << 10) + (low - 0xDC00)).unwrap_or('\u{fffd}'));
            }
            self.at = before;
        }
        Ok(char::from_u32(code).unwrap_or('\u{fffd}'))
    }

    fn hex(&mut self, digits: usize) -> Result<u32, Fault<S::Stop>> {
        let found = self.rest().get(..digits).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(code) = found.and_then(|text| u32::from_str_radix(text, 16).ok()) else {
            return Err(self.wrong("this is no code of a character"));
        };
        self.at += digits;
        Ok(code)
    }
}

/// Whether a byte belongs to a name or a number. Letters beyond ASCII do.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'+' | b'-' | 0x80..)
}

/// Whether a word is a value of Python.
fn is_constant(word: &str) -> bool {
    matches!(word, "None" | "True" | "False" | "nan" | "inf" | "-inf" | "Ellipsis" | "NotImplemented")
}

/// A number; an integer that a double does not hold, and a complex number, stay texts.
fn number(word: &str) -> Option<Part<'_>> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // Integers up to 2^53 are exact, and none of them has more than 16 digits.
        let exact = digits.parse::<u64>().ok().filter(|&number| number <= 1 << 53);
        return Some(exact.map_or(Part::Text(word), |number| {
            let number = number as f64;
            Part::Number(if word.starts_with('-') && number != 0.0 { -number } else { number })
        }));
    }
    if let Some(real) = word.strip_suffix('j') {
        let is_sign = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | '+' | '-');
        return real.chars().all(is_sign).then_some(Part::Text(word));
    }
    let is_float = digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'+' | b'-'));
    word.parse().ok().filter(|_| is_float).map(Part::Number)
}
