//! Parts of a pattern that a backslash begins.

use super::error::Wrong;
use super::parse::{Parser, Result, Term, line_ends};
use super::property::{has_values, property};
use super::{Assertion, CharSet, Node, case};
use std::sync::Arc;

impl Parser {
    /// `\…` outside of classes
    pub fn atom_escape(&mut self) -> Result<Term> {
        let Some(next) = self.peek_at(1) else { return Err(self.error(Wrong::EscapeAtEnd)) };
        Ok(match char::from_u32(next).unwrap_or(char::REPLACEMENT_CHARACTER) {
            'b' => {
                self.at += 2;
                Term::Assertion(Node::Assertion(Assertion::Boundary))
            }
            'B' => {
                self.at += 2;
                Term::Assertion(Node::Assertion(Assertion::NoBoundary))
            }
            digit @ '1'..='9' => {
                self.at += 1;
                if let Some(reference) = self.numbered_reference() {
                    return Ok(Term::Plain(reference));
                }
                if self.unicode() {
                    return Err(self.error(Wrong::Escape));
                }
                let character = if digit >= '8' {
                    self.at += 1;
                    next
                } else {
                    self.octal()
                };
                Term::Plain(self.character(character)?)
            }
            'k' if self.has_names() => {
                self.at += 2;
                Term::Plain(self.named_reference()?)
            }
            _ => {
                if let Some(strings) = self.strings_escape()? {
                    let node = if self.checks_only { Ok(Node::Empty) } else { self.strings_node(strings) };
                    return node.map(Term::Plain);
                }
                if let Some(set) = self.class_escape(Wrong::PropertyName)? {
                    return self.set_node(set).map(Term::Plain);
                }
                self.at += 1;
                let character = self.character_escape(false)?;
                Term::Plain(self.character(character)?)
            }
        })
    }

    /// `\d`, `\p{…}` and their like, if one stands here.
    pub fn class_escape(&mut self, wrong: Wrong) -> Result<Option<Arc<CharSet>>> {
        let Some(letter) = self.peek_at(1).and_then(char::from_u32) else { return Ok(None) };
        let set = match letter {
            'd' | 'D' => CharSet::new(vec![(0x30, 0x39)]),
            's' | 'S' => spaces(),
            'w' | 'W' => case::words(self.flags),
            'p' | 'P' if self.unicode() => {
                self.at += 2;
                return self.property_escape(letter == 'P', wrong).map(Some);
            }
            _ => return Ok(None),
        };
        self.at += 2;
        Ok(Some(Arc::new(if letter.is_ascii_uppercase() { set.complement() } else { set })))
    }

    fn property_escape(&mut self, negative: bool, wrong: Wrong) -> Result<Arc<CharSet>> {
        if !self.eat("{") {
            return Err(self.error(wrong));
        }
        let begin = self.at;
        while self.peek().is_some_and(|next| next != u32::from('}')) {
            self.at += 1;
        }
        let text = self.text[begin..self.at].to_vec();
        if !self.eat("}") {
            return Err(self.error(wrong));
        }
        let mut key = text.clone();
        key.push(u32::from(negative));
        if let Some(known) = self.properties.get(&key) {
            return Ok(Arc::clone(known));
        }
        let text: Option<String> = text.into_iter().map(char::from_u32).collect();
        let Some(text) = text else { return Err(self.error(wrong)) };
        let Some(mut set) = property(&text) else { return Err(self.error(wrong)) };
        if self.checks_only {
            set = Arc::default();
        }
        if self.flags.unicode_sets && self.flags.ignore_case && has_values(&text) {
            set = Arc::new(self.close_case(&set)?);
        }
        if negative && !self.checks_only {
            set = Arc::new(set.complement());
        }
        self.properties.insert(key, Arc::clone(&set));
        Ok(set)
    }

    /// Returns the node for one of a set of characters, with the flag `i` in any case.
    pub fn set_node(&mut self, set: Arc<CharSet>) -> Result<Node> {
        if self.flags.ignore_case { self.set(&set) } else { Ok(Node::Set(set)) }
    }

    /// Reads the escape of a character behind its backslash, which is passed.
    pub fn character_escape(&mut self, in_class: bool) -> Result<u32> {
        let Some(next) = self.peek() else { return Err(self.error(Wrong::EscapeAtEnd)) };
        let plain = char::from_u32(next).unwrap_or(char::REPLACEMENT_CHARACTER);
        if plain == 'c' {
            return self.control(in_class);
        }
        if plain == '0' && !self.peek_at(1).is_some_and(|digit| (0x30..=0x39).contains(&digit)) {
            self.at += 1;
            return Ok(0);
        }
        if matches!(plain, '0'..='7') {
            if self.unicode() {
                return Err(self.error(if in_class { Wrong::ClassEscape } else { Wrong::DecimalEscape }));
            }
            return Ok(self.octal());
        }
        self.at += 1;
        match plain {
            'f' => Ok(0x0C),
            'n' => Ok(0x0A),
            'r' => Ok(0x0D),
            't' => Ok(0x09),
            'v' => Ok(0x0B),
            'x' => match self.hex(2) {
                Some(value) => Ok(value),
                None if self.unicode() => Err(self.error(Wrong::Escape)),
                None => Ok(next),
            },
            'u' => match self.unicode_escape(self.unicode()) {
                Some(value) => Ok(value),
                None if self.unicode() => Err(self.error(Wrong::UnicodeEscape)),
                None => Ok(next),
            },
            _ if self.unicode() => {
                let syntax = "^$\\.*+?()[]{}|/".contains(plain) || in_class && plain == '-';
                if syntax { Ok(next) } else { Err(self.error(Wrong::Escape)) }
            }
            'k' if self.has_names() => Err(self.error(Wrong::Escape)),
            _ => Ok(next),
        }
    }

    /// `c` of `\cA`
    fn control(&mut self, in_class: bool) -> Result<u32> {
        let letter = self.peek_at(1).and_then(char::from_u32).unwrap_or(' ');
        let more = in_class && !self.unicode() && (letter.is_ascii_digit() || letter == '_');
        if letter.is_ascii_alphabetic() || more {
            self.at += 2;
            return Ok(u32::from(letter) & 0x1F);
        }
        if self.unicode() {
            return Err(self.error(Wrong::UnicodeEscape));
        }
        // The backslash stands for itself.
        Ok(u32::from('\\'))
    }

    /// Reads up to three octal digits, at most 0o377.
    fn octal(&mut self) -> u32 {
        let mut value = 0;
        for _ in 0..3 {
            let Some(digit) = self.peek().and_then(char::from_u32).and_then(|next| next.to_digit(8)) else { break };
            if value * 8 + digit > 0o377 {
                break;
            }
            value = value * 8 + digit;
            self.at += 1;
        }
        value
    }

    /// Reads exactly so many hexadecimal digits, or nothing.
    fn hex(&mut self, digits: usize) -> Option<u32> {
        let mut value = 0;
        for offset in 0..digits {
            value = value * 16 + self.peek_at(offset).and_then(char::from_u32)?.to_digit(16)?;
        }
        self.at += digits;
        Some(value)
    }

    /// `0041`, or where code points count `{41}` and two halves of a pair; the `u` is passed.
    pub fn unicode_escape(&mut self, points: bool) -> Option<u32> {
        let begin = self.at;
        let found = if points && self.eat("{") { self.braced() } else { self.hex(4) };
        let Some(first) = found else {
            self.at = begin;
            return None;
        };
        if points && (0xD800..=0xDBFF).contains(&first) && self.text.get(begin) != Some(&u32::from('{')) {
            let behind = self.at;
            if self.eat("\\u")
                && let Some(low @ 0xDC00..=0xDFFF) = self.hex(4)
            {
                return Some(0x10000 + ((first & 0x3FF) << 10) + (low & 0x3FF));
            }
            self.at = behind;
        }
        Some(first)
    }

    fn braced(&mut self) -> Option<u32> {
        let mut value = None;
        while let Some(digit) = self.peek().and_then(char::from_u32).and_then(|next| next.to_digit(16)) {
            let next = value.unwrap_or(0) * 16 + digit;
            if next > 0x10_FFFF {
                return None;
            }
            value = Some(next);
            self.at += 1;
        }
        if self.eat("}") { value } else { None }
    }
}

/// `\s`
fn spaces() -> CharSet {
    let white = [(0x09, 0x09), (0x0B, 0x0C), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)];
    let more = [(0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)];
    CharSet::new(white.into_iter().chain(more).chain(line_ends().ranges().iter().copied()).collect())
}
