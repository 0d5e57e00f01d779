//! The compiled form of a pattern.

use super::start::Start;
use crate::meter::cost::block;
use agentscript_lang::regexp::{Assertion, CharSet, Flags};

/// An operation. Unless stated otherwise, the next one follows on success.
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
    /// A greedy run of code units of a set; with its number in the memo.
    Star(u32, u32),
    /// The same for code points.
    PointStar(u32, u32),
    /// Jump.
    Jump(u32),
    /// Continue with the first, on failure with the second; with its number in the memo.
    Split(u32, u32, u32),
    /// Save the position in a slot.
    Save(u32),
    /// Reset groups, from one slot to another.
    Reset(u32, u32),
    /// Fail if the position is the saved one.
    NotAt(u32),
    /// Set a counter to zero.
    Zero(u32),
    /// Count a turn.
    Count(Counter),
    /// Fail if the position is the saved one and the turn was optional.
    Moved(u32, u32, u32),
    /// Fail unless an assertion holds.
    Assert(Assertion),
    /// The text of a group follows.
    Reference(u32),
    /// The same backwards.
    ReferenceBack(u32),
    /// A look-around whose body follows up to `Found`; a negative one continues at the given operation.
    Look(u32, Option<std::num::NonZeroU32>),
    /// The body of a look-around has matched.
    Found(u32, bool),
    /// The whole pattern matches.
    Match,
}

/// The head of a loop that counts; the body follows, the limits are in a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Counter {
    /// The register of its counter.
    pub register: u32,
    /// Its row in the table.
    pub limits: u32,
    /// The operation after the loop.
    pub exit: u32,
}

/// How often a counted loop turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub min: u32,
    pub max: u32,
    pub greedy: bool,
}

/// The layout of the memo. Beside the position, a failure depends on the operation and on which enclosing loops have
/// not advanced in their turn, so must not end it. As turns of inner loops begin later, their number suffices.
#[derive(Debug, Default)]
pub(super) struct Memo {
    points: Vec<(u32, Box<[u32]>)>,
    /// How many bits the memo has for each position.
    pub width: u32,
}

impl Memo {
    /// Bytes it takes beside itself.
    fn bytes(&self) -> usize {
        let turns: usize = self.points.iter().map(|(_, turns)| block(size_of_val(&**turns))).sum();
        block(self.points.capacity() * size_of::<(u32, Box<[u32]>)>()) + turns
    }

    /// Adds an operation within the loops with these registers.
    pub fn add(&mut self, turns: &[u32]) -> u32 {
        self.points.push((self.width, turns.into()));
        self.width += turns.len() as u32 + 1;
        (self.points.len() - 1) as u32
    }

    /// The row of an operation at a position, and the row for the case that all loops have advanced.
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
    /// The layout of the memo; absent where failures depend on more than that.
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
    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let ranges: usize = self.sets.iter().map(|set| block(size_of_val(&*set.ranges))).sum();
        let names: usize = self.names.iter().map(|(name, _)| block(name.len())).sum();
        let lists = [
            // It is shared by count.
            size_of::<Self>() + 2 * size_of::<usize>(),
            size_of_val(&*self.code),
            size_of_val(&*self.sets),
            size_of_val(&*self.limits),
            size_of_val(&*self.names),
        ];
        let lists: usize = lists.into_iter().map(block).sum();
        let bytes = lists + ranges + names + self.memo.as_ref().map_or(0, Memo::bytes) + self.start.bytes();
        // Temporary blocks of the compiler leave holes between the blocks of the pattern.
        bytes + bytes / 6
    }
}
