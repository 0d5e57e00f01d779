//! What a pattern is compiled to.

use super::start::Start;
use agentscript_lang::regexp::{Assertion, CharSet, Flags};

/// An operation. Where it does not say otherwise, it goes on with the next one, or fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Op {
    /// This code unit follows.
    Unit(u16),
    /// This code unit stands before; the position moves back.
    UnitBack(u16),
    /// A code unit of a set follows.
    Set(u32),
    /// The same backwards.
    SetBack(u32),
    /// A code point of a set follows.
    Point(u32),
    /// The same backwards.
    PointBack(u32),
    /// As many code units of a set as there are, and fewer if need be; with its number for positions
    /// that have failed.
    Star(u32, u32),
    /// The same of code points.
    PointStar(u32, u32),
    /// Go on elsewhere.
    Jump(u32),
    /// Go on with the first, and if that fails with the second; with the number.
    Split(u32, u32, u32),
    /// Note the position.
    Save(u32),
    /// Forget groups, from one slot to another.
    Reset(u32, u32),
    /// Fail if the position is the one that was noted.
    NotAt(u32),
    /// A counter is zero.
    Zero(u32),
    /// One turn more of what is counted.
    Count(Counter),
    /// Fail if the position is the one that was noted, and the turn was one that need not be.
    Moved(u32, u32, u32),
    /// Fail unless it holds.
    Assert(Assertion),
    /// The text of a group follows.
    Reference(u32),
    /// The same backwards.
    ReferenceBack(u32),
    /// Look around with what follows up to `Found`; a negative one goes on at the position given.
    Look(u32, Option<std::num::NonZeroU32>),
    /// What was looked for is there.
    Found(u32, bool),
    /// The whole pattern matches.
    Match,
}

/// The head of a loop that counts; the body follows, the limits are in a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Counter {
    /// Where its turns are counted.
    pub register: u32,
    /// Its row in the table.
    pub limits: u32,
    /// Where it goes on behind the loop.
    pub exit: u32,
}

/// How often a counted loop turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub min: u32,
    pub max: u32,
    pub greedy: bool,
}

/// What failing depends on beside the position: the operation, and which of the loops around it have
/// not moved since their turn began, which therefore must not end. Since the turn of an inner loop
/// begins later, it is enough to know how many.
#[derive(Debug, Default)]
pub(super) struct Memo {
    points: Vec<(u32, Box<[u32]>)>,
    /// How many things there are to remember for each position.
    pub width: u32,
}

impl Memo {
    /// Adds an operation within the loops with these registers.
    pub fn add(&mut self, turns: &[u32]) -> u32 {
        self.points.push((self.width, turns.into()));
        self.width += turns.len() as u32 + 1;
        (self.points.len() - 1) as u32
    }

    /// What to remember of an operation at a position, and the same where all loops have moved.
    #[inline]
    pub fn row(&self, point: u32, slots: &[u32], position: u32) -> (u32, u32) {
        let (base, turns) = &self.points[point as usize];
        let resting = turns.iter().filter(|&&register| slots[register as usize] == position).count() as u32;
        (base + resting, *base)
    }
}

/// A set of characters, with the first 256 as bits.
#[derive(Debug)]
pub(super) struct Set {
    bits: [u64; 4],
    ranges: Box<[(u32, u32)]>,
}

impl Set {
    pub fn new(set: &CharSet) -> Self {
        let mut bits = [0; 4];
        let mut ranges = Vec::new();
        for &(first, last) in set.ranges() {
            for character in first..=last.min(255) {
                bits[character as usize / 64] |= 1 << (character % 64);
            }
            if last > 255 {
                ranges.push((first.max(256), last));
            }
        }
        Self { bits, ranges: ranges.into() }
    }

    #[inline(always)]
    pub fn contains(&self, character: u32) -> bool {
        if character < 256 {
            return self.bits[character as usize / 64] >> (character % 64) & 1 == 1;
        }
        let next = self.ranges.partition_point(|&(first, _)| first <= character);
        next > 0 && character <= self.ranges[next - 1].1
    }
}

/// A compiled pattern: immutable, shared by runs.
#[derive(Debug)]
pub struct Program {
    pub(super) code: Box<[Op]>,
    pub(super) sets: Box<[Set]>,
    pub(super) limits: Box<[Limits]>,
    /// Slots of groups and registers of loops.
    pub(super) slots: u32,
    /// Which operations remember where they failed; nothing: what fails depends on more than the
    /// operation, the position, and which turns have not moved yet.
    pub(super) memo: Option<Memo>,
    pub(super) start: Start,
    /// The flags.
    pub flags: Flags,
    /// Capturing groups, without the whole match.
    pub groups: u32,
    /// Names of groups, as WTF-8, and their numbers.
    pub names: Box<[(Box<[u8]>, u32)]>,
}

impl Program {
    /// What it takes of memory, about.
    pub fn bytes(&self) -> usize {
        let ranges: usize = self.sets.iter().map(|set| 48 + set.ranges.len() * 8).sum();
        let names: usize = self.names.iter().map(|(name, _)| 24 + name.len()).sum();
        256 + self.code.len() * size_of::<Op>() + ranges + names + self.limits.len() * 12
    }
}
