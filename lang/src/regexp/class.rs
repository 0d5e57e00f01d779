//! `[…]`: classes of characters, and with the flag `v` sets of characters and strings.

use super::error::Wrong;
use super::parse::{Parser, Result};
use super::strings::Strings;
use super::{CharSet, Node, case};
use std::sync::Arc;

/// Of more ranges than this those that overlap are joined at once.
const MANY_RANGES: usize = 1 << 14;

/// A part of a class with the flag `v`.
enum Operand {
    Character(u32),
    Strings(Strings),
}

impl Parser {
    pub fn class(&mut self) -> Result<Node> {
        if self.flags.unicode_sets {
            self.at += 1;
            let found = self.nested_class(0)?;
            return if self.checks_only { Ok(Node::Empty) } else { self.strings_node(found) };
        }
        self.at += 1;
        let negative = self.eat("^");
        let mut set = Vec::new();
        let mut ranges = Vec::new();
        while !self.eat("]") {
            if self.peek().is_none() {
                return Err(self.error(Wrong::UnterminatedClass));
            }
            let first = self.class_atom(&mut set)?;
            if !self.is("-") {
                ranges.extend(first.map(|first| (first, first)));
                continue;
            }
            self.at += 1;
            let dash = (u32::from('-'), u32::from('-'));
            if self.peek().is_none() {
                return Err(self.error(Wrong::UnterminatedClass));
            }
            if self.is("]") {
                ranges.extend(first.map(|first| (first, first)));
                ranges.push(dash);
                continue;
            }
            let last = self.class_atom(&mut set)?;
            match (first, last) {
                (Some(first), Some(last)) if first > last => return Err(self.error(Wrong::RangeOutOfOrder)),
                (Some(first), Some(last)) => ranges.push((first, last)),
                _ if self.unicode() => return Err(self.error(Wrong::Class)),
                _ => {
                    ranges.extend(first.into_iter().chain(last).map(|one| (one, one)));
                    ranges.push(dash);
                }
            }
        }
        if self.checks_only {
            return Ok(Node::Empty);
        }
        ranges.append(&mut set);
        let closed = self.close_case(&CharSet::new(ranges))?;
        Ok(Node::Set(Arc::new(if negative { closed.complement() } else { closed })))
    }

    /// Reads a character; adds a set of characters to `set`.
    fn class_atom(&mut self, set: &mut Vec<(u32, u32)>) -> Result<Option<u32>> {
        let Some(next) = self.peek() else { return Err(self.error(Wrong::UnterminatedClass)) };
        if next != u32::from('\\') {
            self.at += 1;
            return Ok(Some(next));
        }
        if let Some(found) = self.class_escape(Wrong::ClassPropertyName)? {
            self.look_at(found.ranges().len())?;
            set.extend_from_slice(found.ranges());
            // A set that is named again takes no more memory.
            if set.len() > MANY_RANGES {
                *set = CharSet::new(std::mem::take(set)).ranges().to_vec();
            }
            return Ok(None);
        }
        self.class_character().map(Some)
    }

    /// `\…` for a character in a class
    fn class_character(&mut self) -> Result<u32> {
        self.at += 1;
        if self.eat("b") {
            return Ok(0x08);
        }
        self.character_escape(true)
    }

    // ---- The flag `v` --------------------------------------------------------------------------

    /// Reads a class behind its `[`, up to the `]` that belongs to it.
    fn nested_class(&mut self, depth: u32) -> Result<Strings> {
        if depth > 100 {
            return Err(self.error(Wrong::TooLarge));
        }
        let negative = self.eat("^");
        let mut all = Strings::default();
        let mut operator = None;
        let mut is_first = true;
        let mut ranges = Vec::new();
        while !self.eat("]") {
            if self.peek().is_none() {
                return Err(self.error(Wrong::UnterminatedClass));
            }
            if !is_first {
                let here = ["--", "&&"].into_iter().find(|&sign| self.is(sign));
                match (operator, here) {
                    (None, None) => operator = Some(""),
                    (None, Some(sign)) => operator = Some(sign),
                    (Some(""), None) => {}
                    (Some(sign), here) if here == Some(sign) => {}
                    (Some(_), _) => return Err(self.error(Wrong::SetOperation)),
                }
                if here.is_some() {
                    self.at += 2;
                    if self.is("&") && operator == Some("&&") {
                        return Err(self.error(Wrong::ClassCharacter));
                    }
                }
            }
            let operand = self.operand(depth)?;
            let is_union = is_first || operator == Some("");
            is_first = false;
            let operand = match operand {
                Operand::Character(first) if is_union && self.is("-") && !self.is("--") => {
                    operator = Some("");
                    self.at += 1;
                    let Operand::Character(last) = self.operand(depth)? else {
                        return Err(self.error(Wrong::Class));
                    };
                    if first > last {
                        return Err(self.error(Wrong::RangeOutOfOrder));
                    }
                    Strings::from_set(CharSet::new(vec![(first, last)]))
                }
                Operand::Character(only) => Strings::from_set(CharSet::of(only)),
                Operand::Strings(found) => found,
            };
            let set = if self.checks_only { CharSet::default() } else { self.close_case(&operand.set)? };
            let strings = operand.strings;
            match operator {
                Some("--") => {}
                Some("&&") => all.may_have_strings &= operand.may_have_strings,
                _ => all.may_have_strings |= operand.may_have_strings,
            }
            // A union is made at once, not one operand after the other.
            if is_union {
                ranges.extend_from_slice(set.ranges());
                if ranges.len() > MANY_RANGES {
                    ranges = CharSet::new(ranges).ranges().to_vec();
                }
                all.strings.extend(strings);
                continue;
            }
            if !ranges.is_empty() {
                all.set = CharSet::new(std::mem::take(&mut ranges));
            }
            self.look_at(all.set.ranges().len())?;
            match operator {
                Some("--") => {
                    all.set = all.set.difference(&set);
                    all.strings.retain(|string| !strings.contains(string));
                }
                Some("&&") => {
                    all.set = all.set.intersection(&set);
                    all.strings.retain(|string| strings.contains(string));
                }
                _ => {}
            }
        }
        if !ranges.is_empty() {
            all.set = CharSet::new(ranges);
        }
        if negative {
            if all.may_have_strings {
                return Err(self.error(Wrong::NegatedStrings));
            }
            all.set = all.set.complement();
            all.may_have_strings = false;
        }
        Ok(all)
    }

    fn operand(&mut self, depth: u32) -> Result<Operand> {
        let Some(next) = self.peek() else { return Err(self.error(Wrong::UnterminatedClass)) };
        if self.eat("[") {
            return Ok(Operand::Strings(self.nested_class(depth + 1)?));
        }
        if next == u32::from('\\') {
            if self.is("\\q") {
                self.at += 2;
                return self.alternatives().map(Operand::Strings);
            }
            if let Some(found) = self.strings_escape()? {
                return Ok(Operand::Strings(found));
            }
            if let Some(found) = self.class_escape(Wrong::ClassPropertyName)? {
                return Ok(Operand::Strings(Strings::from_set((*found).clone())));
            }
        }
        self.set_character().map(Operand::Character)
    }

    /// Reads a character of a class with the flag `v`.
    fn set_character(&mut self) -> Result<u32> {
        let Some(next) = self.peek() else { return Err(self.error(Wrong::UnterminatedClass)) };
        let plain = char::from_u32(next).unwrap_or(char::REPLACEMENT_CHARACTER);
        if plain == '\\' {
            let escaped = self.peek_at(1).and_then(char::from_u32).unwrap_or('\0');
            if "&-!#%,:;<=>@`~".contains(escaped) {
                self.at += 2;
                return Ok(u32::from(escaped));
            }
            return self.class_character();
        }
        if "()[]{}/-|".contains(plain) {
            return Err(self.error(Wrong::ClassCharacter));
        }
        if self.peek_at(1) == Some(next) && "&!#$%*+,.:;<=>?@^`~".contains(plain) {
            return Err(self.error(Wrong::SetOperation));
        }
        self.at += 1;
        Ok(next)
    }

    /// `{abc|d}` behind `\q`
    fn alternatives(&mut self) -> Result<Strings> {
        if !self.eat("{") {
            return Err(self.error(Wrong::Escape));
        }
        let mut found = Strings::default();
        let mut singles = Vec::new();
        let mut string = Vec::new();
        loop {
            let ends = self.is("}");
            if ends || self.is("|") {
                self.at += 1;
                let string = std::mem::take(&mut string);
                match string.as_slice() {
                    &[single] => singles.push((single, single)),
                    _ => {
                        let fold = |c| if self.flags.ignore_case { case::canonicalize(c, true) } else { c };
                        found.may_have_strings = true;
                        found.strings.insert(string.into_iter().map(fold).collect());
                    }
                }
                if ends {
                    found.set = CharSet::new(singles);
                    return Ok(found);
                }
                continue;
            }
            if self.peek().is_none() {
                return Err(self.error(Wrong::ClassCharacter));
            }
            string.push(self.set_character()?);
        }
    }
}
