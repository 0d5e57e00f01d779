//! Groups, their names, and references to them.

use super::error::Wrong;
use super::parse::{MAX_GROUPS, Parser, Result, Term};
use super::{Look, Node};

impl Parser {
    /// Finds the names of all groups, and how many there are: references can stand before them.
    pub fn count_groups(&mut self) {
        let mut depth = 0_u32;
        while let Some(next) = self.peek() {
            self.at += 1;
            match char::from_u32(next) {
                Some('\\') => self.at += 1,
                Some('[') if depth == 0 || self.flags.unicode_sets => depth += 1,
                Some(']') => depth = depth.saturating_sub(1),
                Some('(') if depth == 0 => {
                    let named = self.is("?<") && !self.is("?<=") && !self.is("?<!");
                    if !self.is("?") || named {
                        self.total += 1;
                    }
                    if named {
                        let begin = self.at;
                        self.at += 2;
                        match self.name() {
                            Some(name) => {
                                self.known.entry(name).or_insert(self.total);
                            }
                            None => self.at = begin,
                        }
                    }
                }
                _ => {}
            }
        }
        self.at = 0;
    }

    /// `(…)` of any kind
    pub fn group(&mut self) -> Result<Term> {
        self.at += 1;
        if self.eat("?") {
            if self.eat(":") {
                let body = self.disjunction()?;
                self.close()?;
                return Ok(Term::Plain(body));
            }
            for (sign, behind, negative) in
                [("=", false, false), ("!", false, true), ("<=", true, false), ("<!", true, true)]
            {
                if self.eat(sign) {
                    return self.look(behind, negative);
                }
            }
            if !self.eat("<") {
                return Err(self.error(Wrong::Group));
            }
            return self.capture(true);
        }
        self.capture(false)
    }

    fn look(&mut self, behind: bool, negative: bool) -> Result<Term> {
        self.look_behinds += u32::from(behind);
        let body = self.disjunction()?;
        self.look_behinds -= u32::from(behind);
        self.close()?;
        let look = Node::Look(Box::new(Look { body, behind, negative }));
        Ok(if behind || self.unicode() { Term::Unrepeatable(look) } else { Term::Plain(look) })
    }

    fn capture(&mut self, named: bool) -> Result<Term> {
        if self.started + 1 >= MAX_GROUPS {
            return Err(self.error(Wrong::TooManyCaptures));
        }
        self.started += 1;
        let number = self.started;
        if named {
            let Some(name) = self.name() else { return Err(self.error(Wrong::GroupName)) };
            if self.known.get(&name).is_some_and(|&first| first != number) {
                return Err(self.error(Wrong::DuplicateName));
            }
            self.names.push((name, number));
        }
        self.open.push(number);
        let body = self.disjunction()?;
        self.open.pop();
        self.close()?;
        Ok(Term::Plain(Node::Capture(Box::new(body), number)))
    }

    fn close(&mut self) -> Result<()> {
        if self.eat(")") { Ok(()) } else { Err(self.error(Wrong::UnterminatedGroup)) }
    }

    /// `name>`, as UTF-16.
    pub fn name(&mut self) -> Option<Vec<u16>> {
        let mut name = Vec::new();
        loop {
            if self.eat(">") {
                return (!name.is_empty()).then_some(name);
            }
            let character = char::from_u32(self.name_character()?)?;
            let allowed = match character {
                '$' | '_' => true,
                '\u{200C}' | '\u{200D}' => !name.is_empty(),
                other if name.is_empty() => is_start(other),
                other => is_continue(other),
            };
            if !allowed {
                return None;
            }
            name.extend_from_slice(character.encode_utf16(&mut [0; 2]));
        }
    }

    /// Reads a code point of a name; pairs of surrogates are one, with or without escapes.
    fn name_character(&mut self) -> Option<u32> {
        let next = self.peek()?;
        self.at += 1;
        if next == u32::from('\\') {
            return self.eat("u").then(|| self.unicode_escape(true)).flatten();
        }
        if let (0xD800..=0xDBFF, Some(low @ 0xDC00..=0xDFFF)) = (next, self.peek()) {
            self.at += 1;
            return Some(0x10000 + ((next & 0x3FF) << 10) + (low & 0x3FF));
        }
        Some(next)
    }

    /// Whether `\k` is a reference and not the letter.
    pub fn has_names(&self) -> bool {
        self.unicode() || !self.known.is_empty()
    }

    /// `<name>` behind `\k`
    pub fn named_reference(&mut self) -> Result<Node> {
        if !self.eat("<") {
            return Err(self.error(Wrong::NamedReference));
        }
        let Some(name) = self.name() else { return Err(self.error(Wrong::NamedReference)) };
        match self.known.get(&name) {
            Some(&number) => Ok(self.reference(number)),
            None => {
                self.missing = Some(self.error(Wrong::NamedCapture));
                Ok(Node::Empty)
            }
        }
    }

    /// `1` behind a backslash, where there is such a group.
    pub fn numbered_reference(&mut self) -> Option<Node> {
        let begin = self.at;
        let mut number = 0_u32;
        while let Some(digit) = self.peek().and_then(char::from_u32).and_then(|next| next.to_digit(10)) {
            number = number * 10 + digit;
            if number >= MAX_GROUPS {
                break;
            }
            self.at += 1;
        }
        if number == 0 || number > self.total {
            self.at = begin;
            return None;
        }
        Some(self.reference(number))
    }

    /// Returns a reference to a group; inside of the group it has matched nothing yet.
    fn reference(&self, number: u32) -> Node {
        if self.open.contains(&number) { Node::Empty } else { Node::Reference(number) }
    }
}

fn is_start(character: char) -> bool {
    icu_properties::CodePointSetData::new::<icu_properties::props::IdStart>().contains(character)
}

fn is_continue(character: char) -> bool {
    icu_properties::CodePointSetData::new::<icu_properties::props::IdContinue>().contains(character)
}
