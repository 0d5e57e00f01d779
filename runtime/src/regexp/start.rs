//! Prefilter: finding where a match can begin, faster than by trying.

use super::matcher::Unit;
use crate::meter::cost::block;
use agentscript_lang::regexp::{Assertion, Node, Pattern};

/// What every match begins with.
#[derive(Debug)]
pub(super) enum Start {
    /// Nothing is known.
    Anywhere,
    /// The beginning of the text.
    Beginning,
    /// These code units.
    Literal(Box<[u16]>, Option<Box<memchr::memmem::Finder<'static>>>),
    /// One of these code units: a set of the first 256, and whether any other.
    OneOf(Box<[bool; 256]>, bool),
}

impl Start {
    pub fn for_pattern(pattern: &Pattern) -> Self {
        let root = &pattern.root;
        if begins_at_start(root) {
            return Self::Beginning;
        }
        let literal = literal(root);
        if !literal.is_empty() {
            let bytes: Option<Vec<u8>> = literal.iter().map(|&unit| u8::try_from(unit).ok()).collect();
            let finder = bytes.map(|bytes| Box::new(memchr::memmem::Finder::new(&bytes).into_owned()));
            return Self::Literal(literal.into(), finder);
        }
        let mut first = First::default();
        if first.add(root) || first.high && first.low.iter().all(|&is| is) {
            return Self::Anywhere;
        }
        Self::OneOf(Box::new(first.low), first.high)
    }

    /// The first position from `from` on, and before `until` or the end of the text, where a match can begin.
    pub fn next<U: Unit>(&self, text: &[U], from: usize, until: usize) -> Option<usize> {
        let rest = text.get(from..)?;
        let rest = &rest[..rest.len().min((until - from).saturating_add(self.length() - 1))];
        match self {
            Self::Anywhere => Some(from),
            Self::Beginning => (from == 0).then_some(0),
            Self::Literal(units, finder) => {
                let found = match (finder, U::bytes(rest)) {
                    (Some(finder), Some(bytes)) => finder.find(bytes),
                    (None, Some(_)) => None,
                    (_, None) => find(rest, units),
                };
                found.map(|at| from + at)
            }
            Self::OneOf(low, high) => {
                let is_first = |unit: &U| low.get(unit.code() as usize).copied().unwrap_or(*high);
                rest.iter().position(is_first).map(|at| from + at)
            }
        }
    }

    /// Bytes it takes beside itself.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Anywhere | Self::Beginning => 0,
            Self::Literal(units, None) => block(size_of_val(&**units)),
            Self::Literal(units, Some(finder)) => {
                block(size_of_val(&**units)) + block(size_of_val(&**finder)) + block(finder.needle().len())
            }
            Self::OneOf(low, _) => block(size_of_val(&**low)),
        }
    }

    /// How many units are looked at to know whether a match can begin at a position.
    fn length(&self) -> usize {
        match self {
            Self::Literal(units, _) => units.len(),
            Self::Anywhere | Self::Beginning | Self::OneOf(..) => 1,
        }
    }
}

fn find<U: Unit>(text: &[U], units: &[u16]) -> Option<usize> {
    // Few candidates, so that a hit is likely a match: each position may be compared with all of them.
    let units = units.get(..8).unwrap_or(units);
    let (&first, more) = units.split_first()?;
    let same = |(unit, &wanted): (&U, &u16)| unit.code() == u32::from(wanted);
    (0..(text.len() + 1).checked_sub(units.len())?)
        .find(|&at| text[at].code() == u32::from(first) && text[at + 1..].iter().zip(more).all(same))
}

/// Whether a match can begin only at the beginning of the text.
fn begins_at_start(node: &Node) -> bool {
    match node {
        Node::Assertion(Assertion::Start) => true,
        Node::Sequence(terms) => terms.first().is_some_and(begins_at_start),
        Node::Alternatives(all) => all.iter().all(begins_at_start),
        Node::Capture(body, _) => begins_at_start(body),
        Node::Repeat(repeat) => repeat.min > 0 && begins_at_start(&repeat.body),
        Node::Empty | Node::Char(_) | Node::Set(_) | Node::Assertion(_) | Node::Look(_) | Node::Reference(_) => false,
    }
}

/// The characters that every match begins with.
fn literal(node: &Node) -> Vec<u16> {
    let terms = match node {
        Node::Sequence(terms) => terms.as_slice(),
        other => std::slice::from_ref(other),
    };
    // Assertions have no width.
    let terms = terms.iter().skip_while(|term| matches!(term, Node::Assertion(_)));
    let units = terms.map_while(|term| match term {
        Node::Char(character) => u16::try_from(*character).ok().filter(|unit| !(0xD800..=0xDFFF).contains(unit)),
        _ => None,
    });
    units.take(64).collect()
}

/// The set of first code units of a match.
struct First {
    low: [bool; 256],
    high: bool,
}

impl Default for First {
    fn default() -> Self {
        Self { low: [false; 256], high: false }
    }
}

impl First {
    fn all(&mut self) {
        self.low = [true; 256];
        self.high = true;
    }

    /// Add the first code units of a part; gives whether it can match the empty string.
    fn add(&mut self, node: &Node) -> bool {
        match node {
            Node::Empty | Node::Assertion(_) | Node::Look(_) => true,
            Node::Char(character) => {
                match self.low.get_mut(*character as usize) {
                    Some(low) => *low = true,
                    None => self.high = true,
                }
                false
            }
            Node::Set(set) => {
                for &(first, last) in set.ranges() {
                    for character in first..=last.min(255) {
                        self.low[character as usize] = true;
                    }
                    self.high |= last > 255;
                }
                false
            }
            Node::Sequence(terms) => terms.iter().all(|term| self.add(term)),
            Node::Alternatives(all) => all.iter().fold(false, |empty, one| self.add(one) | empty),
            Node::Capture(body, _) => self.add(body),
            Node::Repeat(repeat) => self.add(&repeat.body) || repeat.min == 0,
            Node::Reference(_) => {
                self.all();
                true
            }
        }
    }
}
