//! Alternatives, terms and quantifiers.

use super::error::{Error, Wrong};
use super::{Assertion, CharSet, Flags, Node, Pattern, Repeat, case};
use hashbrown::HashMap;
use std::sync::Arc;

pub(super) type Result<T> = std::result::Result<T, Error>;

/// Groups nest no deeper than this: walks over the tree recurse.
const MAX_DEPTH: u32 = 250;
/// V8's infinity.
const GREATEST: u32 = i32::MAX as u32;
/// Most ranges of characters in the classes of a pattern, each counted whenever it is evaluated.
const MAX_RANGES: usize = 1 << 22;
/// As many groups as V8 has room for.
pub(super) const MAX_GROUPS: u32 = 1 << 16;

/// Reads a pattern, given as UTF-16.
///
/// # Errors
/// The fault, in V8's words.
pub fn parse(source: &[u16], flags: Flags) -> Result<Pattern> {
    read(source, flags, false)
}

/// Checks a pattern, given as UTF-16: sets of characters are not evaluated and no tree is made, so it takes a time
/// and memory in proportion to the text. [`Wrong::TooLarge`] of classes is found by [`parse`] alone.
///
/// # Errors
/// The fault, in V8's words.
pub fn validate(source: &[u16], flags: Flags) -> Result<()> {
    read(source, flags, true).map(|_| ())
}

fn read(source: &[u16], flags: Flags, checks_only: bool) -> Result<Pattern> {
    let text =
        if flags.is_unicode() { code_points(source) } else { source.iter().map(|&unit| u32::from(unit)).collect() };
    let mut parser = Parser {
        text,
        at: 0,
        flags,
        known: HashMap::new(),
        total: 0,
        started: 0,
        names: Vec::new(),
        open: Vec::new(),
        depth: 0,
        look_behinds: 0,
        missing: None,
        properties: HashMap::new(),
        checks_only,
        ranges: MAX_RANGES,
    };
    parser.count_groups();
    let root = parser.disjunction()?;
    if parser.peek().is_some() {
        return Err(parser.error(Wrong::UnmatchedParen));
    }
    match parser.missing {
        Some(error) => Err(error),
        None => Ok(Pattern { root, groups: parser.started, names: parser.names, flags }),
    }
}

/// UTF-16 with its pairs of surrogates joined.
fn code_points(source: &[u16]) -> Vec<u32> {
    char::decode_utf16(source.iter().copied())
        .map(|decoded| decoded.map_or_else(|lone| u32::from(lone.unpaired_surrogate()), u32::from))
        .collect()
}

pub(super) struct Parser {
    /// The characters of the pattern.
    pub text: Vec<u32>,
    pub at: usize,
    pub flags: Flags,
    /// The names of all groups, found before; of two groups of one name, the first.
    pub known: HashMap<Vec<u16>, u32>,
    /// How many groups there are.
    pub total: u32,
    /// How many of them have begun.
    pub started: u32,
    /// The names of those.
    pub names: Vec<(Vec<u16>, u32)>,
    /// The groups around this position.
    pub open: Vec<u32>,
    pub depth: u32,
    /// How many assertions around this position look behind.
    pub look_behinds: u32,
    /// A reference to a name that no group has: reported where nothing else is wrong.
    pub missing: Option<Error>,
    /// The properties that were asked for, so that each is looked up once.
    pub properties: HashMap<Vec<u32>, Arc<CharSet>>,
    /// Whether the pattern is only checked: no set is evaluated, and there is no tree.
    pub checks_only: bool,
    /// How many more ranges of characters may be evaluated.
    pub ranges: usize,
}

/// A part behind which a quantifier can stand.
pub(super) enum Term {
    /// Anything that matches something.
    Plain(Node),
    /// An assertion: what looks like a quantifier is a term with nothing to repeat.
    Assertion(Node),
    /// A lookaround, where it cannot be repeated.
    Unrepeatable(Node),
}

impl Parser {
    pub fn peek(&self) -> Option<u32> {
        self.text.get(self.at).copied()
    }

    pub fn peek_at(&self, offset: usize) -> Option<u32> {
        self.text.get(self.at + offset).copied()
    }

    /// Whether a text stands here.
    pub fn is(&self, text: &str) -> bool {
        text.bytes().enumerate().all(|(offset, byte)| self.peek_at(offset) == Some(u32::from(byte)))
    }

    /// Skips a text, if it stands here.
    pub fn eat(&mut self, text: &str) -> bool {
        let found = self.is(text);
        if found {
            self.at += text.len();
        }
        found
    }

    pub fn error(&self, wrong: Wrong) -> Error {
        Error { wrong, at: self.at }
    }

    pub fn unicode(&self) -> bool {
        self.flags.is_unicode()
    }

    /// `a|b`, up to a `)` or the end.
    pub fn disjunction(&mut self) -> Result<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(Wrong::TooLarge));
        }
        let first = self.alternative()?;
        let node = if self.is("|") {
            let mut alternatives = vec![first];
            while self.eat("|") {
                let next = self.alternative()?;
                if !self.checks_only {
                    alternatives.push(next);
                }
            }
            Node::Alternatives(alternatives)
        } else {
            first
        };
        self.depth -= 1;
        Ok(node)
    }

    fn alternative(&mut self) -> Result<Node> {
        let mut terms = Vec::new();
        while let Some(next) = self.peek() {
            if next == u32::from('|') || next == u32::from(')') {
                break;
            }
            let groups = self.started + 1;
            let term = match self.term()? {
                Term::Assertion(node) => node,
                Term::Plain(node) => self.quantified(node, groups, true)?,
                Term::Unrepeatable(node) => self.quantified(node, groups, false)?,
            };
            if !self.checks_only {
                terms.push(term);
            }
        }
        Ok(match terms.len() {
            0 => Node::Empty,
            1 => terms.pop().unwrap_or(Node::Empty),
            _ => Node::Sequence(terms),
        })
    }

    fn term(&mut self) -> Result<Term> {
        let Some(next) = self.peek() else { return Ok(Term::Plain(Node::Empty)) };
        let assertion =
            |plain, lines, multiline| Term::Assertion(Node::Assertion(if multiline { lines } else { plain }));
        let multiline = self.flags.multiline;
        Ok(match char::from_u32(next).unwrap_or(char::REPLACEMENT_CHARACTER) {
            '*' | '+' | '?' => return Err(self.error(Wrong::NothingToRepeat)),
            '^' => {
                self.at += 1;
                assertion(Assertion::Start, Assertion::LineStart, multiline)
            }
            '$' => {
                self.at += 1;
                assertion(Assertion::End, Assertion::LineEnd, multiline)
            }
            '(' => self.group()?,
            '[' => Term::Plain(self.class()?),
            '\\' => self.atom_escape()?,
            '.' => {
                self.at += 1;
                Term::Plain(Node::Set(Arc::new(if self.flags.dot_all {
                    CharSet::all()
                } else {
                    line_ends().complement()
                })))
            }
            '{' => {
                if self.interval().is_some() {
                    return Err(self.error(Wrong::NothingToRepeat));
                }
                self.bracket(next)?
            }
            '}' | ']' => self.bracket(next)?,
            _ => {
                self.at += 1;
                Term::Plain(self.character(next)?)
            }
        })
    }

    fn bracket(&mut self, next: u32) -> Result<Term> {
        if self.unicode() {
            return Err(self.error(Wrong::LoneBracket));
        }
        self.at += 1;
        Ok(Term::Plain(self.character(next)?))
    }

    /// Returns the node for a character by itself.
    pub fn character(&mut self, character: u32) -> Result<Node> {
        if !self.flags.ignore_case || self.checks_only {
            return Ok(Node::Char(character));
        }
        self.set(&CharSet::of(character))
    }

    /// Returns the node for one of a set, by whatever case.
    pub fn set(&mut self, set: &CharSet) -> Result<Node> {
        if self.checks_only {
            return Ok(Node::Empty);
        }
        let closed = self.close_case(set)?;
        Ok(closed.single().map_or_else(|| Node::Set(Arc::new(closed)), Node::Char))
    }

    /// Returns the set with all characters that are the same as one of it, where the flags say so.
    pub fn close_case(&mut self, set: &CharSet) -> Result<CharSet> {
        self.look_at(set.ranges().len())?;
        let closed = case::close(set, self.flags);
        self.look_at(closed.ranges().len())?;
        Ok(closed)
    }

    /// Counts ranges of characters that are evaluated.
    pub fn look_at(&mut self, ranges: usize) -> Result<()> {
        self.ranges = self.ranges.checked_sub(ranges + 1).ok_or_else(|| self.error(Wrong::TooLarge))?;
        Ok(())
    }

    /// `{1}`, `{1,}` or `{1,2}`, if it stands here; numbers beyond 31 bits are the greatest of these.
    fn interval(&mut self) -> Option<(u32, Option<u32>)> {
        let begin = self.at;
        self.at += 1;
        let found = self.interval_numbers();
        if found.is_none() {
            self.at = begin;
        }
        found
    }

    fn interval_numbers(&mut self) -> Option<(u32, Option<u32>)> {
        let min = self.number()?;
        let max = if self.eat(",") { if self.is("}") { None } else { Some(self.number()?) } } else { Some(min) };
        self.eat("}").then_some((min, max.filter(|&max| max < GREATEST)))
    }

    fn number(&mut self) -> Option<u32> {
        let mut number = None;
        while let Some(digit) = self.peek().and_then(char::from_u32).and_then(|next| next.to_digit(10)) {
            self.at += 1;
            number = Some(number.unwrap_or(0_u32).saturating_mul(10).saturating_add(digit).min(GREATEST));
        }
        number
    }

    fn quantified(&mut self, body: Node, first_group: u32, repeatable: bool) -> Result<Node> {
        let simple = match self.peek().and_then(char::from_u32) {
            Some('*') => Some((0, None)),
            Some('+') => Some((1, None)),
            Some('?') => Some((0, Some(1))),
            Some('{') => None,
            _ => return Ok(body),
        };
        let (min, max) = if let Some(simple) = simple {
            self.at += 1;
            simple
        } else {
            match self.interval() {
                Some(interval) => interval,
                None if self.unicode() => return Err(self.error(Wrong::IncompleteQuantifier)),
                None => return Ok(body),
            }
        };
        if max.is_some_and(|max| max < min) {
            return Err(self.error(Wrong::NumbersOutOfOrder));
        }
        if !repeatable {
            return Err(self.error(Wrong::Quantifier));
        }
        let greedy = !self.eat("?");
        if max == Some(0) {
            return Ok(Node::Empty);
        }
        let groups = (first_group, self.started + 1);
        Ok(Node::Repeat(Box::new(Repeat { body, min, max, greedy, groups })))
    }
}

/// Returns the characters that end a line.
pub(super) fn line_ends() -> CharSet {
    CharSet::new(vec![(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)])
}
