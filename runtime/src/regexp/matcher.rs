//! The matcher: runs a program over a text, a number of steps at a time.

use super::program::{Counter, Op, Program};
use agentscript_lang::regexp::{Assertion, canonicalize, is_word};

/// A unit of text: a byte of ASCII, or a code unit of UTF-16.
pub trait Unit: Copy {
    /// Its number.
    fn code(self) -> u32;
    /// The text as bytes, where units are bytes.
    fn bytes(text: &[Self]) -> Option<&[u8]>;
}

impl Unit for u8 {
    #[inline(always)]
    fn code(self) -> u32 {
        u32::from(self)
    }

    fn bytes(text: &[Self]) -> Option<&[u8]> {
        Some(text)
    }
}

impl Unit for u16 {
    #[inline(always)]
    fn code(self) -> u32 {
        u32::from(self)
    }

    fn bytes(_: &[Self]) -> Option<&[u8]> {
        None
    }
}

/// The state of a search after some steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is a match: [`Matcher::group`] has its ranges.
    Matched,
    /// There is none.
    Failed,
    /// The steps are used up.
    Paused,
}

/// No position.
const NONE: u32 = u32::MAX;

/// How many units of text are looked at within one step: a millisecond or two. Few in unit tests, so that all of these searches go on
/// after a pause.
const PIECE: usize = if cfg!(test) { 2 } else { 1 << 20 };

/// An entry of the backtracking stack: an alternative to be tried, or a change to be undone.
#[derive(Clone, Copy)]
enum Entry {
    /// Go on with an operation at a position.
    Branch(u32, u32),
    /// A slot had another value.
    Slot(u32, u32),
    /// Go on with an operation at any position from the second down to the first.
    Positions(u32, u32, u32),
    /// The start of a look-around: reached by backtracking, a positive one fails.
    Look,
}

/// The state of a search. It can be used again for another program and text.
#[derive(Default)]
pub struct Matcher {
    slots: Vec<u32>,
    stack: Vec<Entry>,
    op: u32,
    position: u32,
    /// Where the present attempt and the first one began.
    begin: u32,
    first: u32,
    /// Whether matches begin at the first position only.
    sticky: bool,
    /// Whether an attempt is under way.
    trying: bool,
    /// Where the greedy run of characters began that is under way, or `NONE`.
    run: u32,
    /// Steps since the search began.
    spent: usize,
    /// Steps taken beyond the limit, to be reported with the next ones.
    debt: usize,
    /// The memo: what has failed, by row of the program's memo and position; empty until it pays.
    failed: Vec<u64>,
    /// Whether to memoize from the first step on, for tests.
    pub(super) eager: bool,
    /// Whether there is no memory for it.
    forgetful: bool,
}

impl Matcher {
    /// Begins a search at a position; `sticky`: matches begin there only.
    pub fn begin(&mut self, program: &Program, position: usize, sticky: bool) {
        self.sticky = sticky;
        self.slots.clear();
        self.slots.resize(program.slots as usize, NONE);
        self.stack.clear();
        self.failed.clear();
        (self.begin, self.first) = (position as u32, position as u32);
        (self.trying, self.spent, self.forgetful) = (false, 0, false);
    }

    /// The range of a group of the match; 0 is the whole match.
    pub fn group(&self, number: u32) -> Option<(usize, usize)> {
        let slot = number as usize * 2;
        match (self.slots.get(slot), self.slots.get(slot + 1)) {
            (Some(&start), Some(&end)) if start != NONE && end != NONE => Some((start as usize, end as usize)),
            _ => None,
        }
    }

    /// Release the memo.
    pub fn shrink(&mut self) {
        self.stack = Vec::new();
        self.failed = Vec::new();
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.slots.capacity() * 4 + self.stack.capacity() * size_of::<Entry>() + self.failed.capacity() * 8
    }

    /// Run for about `steps` steps at most; gives how many were taken. `room` is how many bytes the memo may take.
    pub fn run<U: Unit>(&mut self, program: &Program, text: &[U], steps: usize, room: usize) -> (Progress, usize) {
        let mut left = steps;
        loop {
            if !self.trying {
                let from = self.begin as usize;
                let until = text.len().min(from + PIECE);
                let next = if self.sticky { Some(from) } else { program.start.next(text, from, until) };
                let Some(next) = next.filter(|&next| next <= text.len()) else {
                    if until == text.len() {
                        return (Progress::Failed, self.taken(steps, left) + text.len().saturating_sub(from) / 16);
                    }
                    self.begin = until as u32;
                    self.spend((until - from) / 16, &mut left);
                    if left == 0 {
                        return (Progress::Paused, self.taken(steps, left));
                    }
                    continue;
                };
                // All slots are cleared.
                self.spend((next - from) / 16 + self.slots.len() / 64 + 1, &mut left);
                self.begin = next as u32;
                self.restart();
            }
            let before = left;
            let found = self.attempt(program, text, &mut left);
            self.spent += before - left + self.debt;
            match found {
                Some(true) => return (Progress::Matched, self.taken(steps, left)),
                Some(false) if self.sticky => return (Progress::Failed, self.taken(steps, left)),
                Some(false) => {
                    self.trying = false;
                    // V8 also tries positions within surrogate pairs, where an empty match is possible.
                    self.begin += 1;
                }
                None => {}
            }
            if self.failed.is_empty() && !self.forgetful {
                self.remember(program, text.len(), room);
            }
            if left == 0 {
                return (Progress::Paused, self.taken(steps, left));
            }
        }
    }

    /// The steps taken, those beyond the limit included.
    fn taken(&mut self, steps: usize, left: usize) -> usize {
        steps - left + std::mem::take(&mut self.debt)
    }

    /// Take so many steps at once, which may be more than are left.
    #[inline(always)]
    fn spend(&mut self, cost: usize, left: &mut usize) {
        match left.checked_sub(cost) {
            Some(rest) => *left = rest,
            None => {
                self.debt += cost - *left;
                *left = 0;
            }
        }
    }

    fn restart(&mut self) {
        self.slots.fill(NONE);
        self.stack.clear();
        (self.op, self.position, self.run, self.trying) = (0, self.begin, NONE, true);
    }

    /// Begin to memoize once the search has taken more steps than that costs.
    fn remember(&mut self, program: &Program, length: usize, room: usize) {
        let Some(memo) = &program.memo else {
            self.forgetful = true;
            return;
        };
        let words = (memo.width as usize * (length + 1 - self.first as usize)).div_ceil(64);
        let patience = if self.eager { 0 } else { words.max(1024) };
        if self.spent < patience {
            return;
        }
        if words == 0 || words * 8 > room {
            self.forgetful = true;
            return;
        }
        self.first = self.begin.min(length as u32);
        let words = (memo.width as usize * (length + 1 - self.first as usize)).div_ceil(64);
        self.failed.resize(words, 0);
        if self.trying {
            self.restart();
        }
    }

    /// Whether an operation is at a position for the first time, in this state of its enclosing loops.
    #[inline]
    fn is_new(&mut self, program: &Program, point: u32) -> bool {
        let (false, Some(memo)) = (self.failed.is_empty(), &program.memo) else { return true };
        let (row, _) = memo.row(point, &self.slots, self.position);
        self.mark(memo.width, row, self.position)
    }

    /// Marks a row at a position; whether it was not marked.
    #[inline]
    fn mark(&mut self, width: u32, row: u32, position: u32) -> bool {
        let bit = (position - self.first) as usize * width as usize + row as usize;
        let Some(word) = self.failed.get_mut(bit / 64) else { return true };
        let mask = 1 << (bit % 64);
        let is_new = *word & mask == 0;
        *word |= mask;
        is_new
    }

    /// Continue an attempt: whether it matches, or `None` when the steps are used up.
    fn attempt<U: Unit>(&mut self, program: &Program, text: &[U], left: &mut usize) -> Option<bool> {
        loop {
            let rest = left.checked_sub(1)?;
            *left = rest;
            let position = self.position as usize;
            let goes_on = match program.code[self.op as usize] {
                Op::Unit(unit) => {
                    self.forward(text.get(position).is_some_and(|next| next.code() == u32::from(unit)), 1)
                }
                Op::Set(set) => {
                    let set = &program.sets[set as usize];
                    self.forward(text.get(position).is_some_and(|next| set.contains(next.code())), 1)
                }
                Op::Point(set) => match point(text, position) {
                    Some((character, width)) => self.forward(program.sets[set as usize].contains(character), width),
                    None => false,
                },
                Op::UnitBack(unit) => self.backward(unit_before(text, position) == Some(u32::from(unit)), 1),
                Op::SetBack(set) => {
                    let set = &program.sets[set as usize];
                    self.backward(unit_before(text, position).is_some_and(|unit| set.contains(unit)), 1)
                }
                Op::PointBack(set) => match point_before(text, position) {
                    Some((character, width)) => self.backward(program.sets[set as usize].contains(character), width),
                    None => false,
                },
                Op::Star(set, memo) | Op::PointStar(set, memo) => self.star(program, text, (set, memo), left),
                Op::Jump(target) => {
                    self.op = target;
                    true
                }
                Op::Split(first, second, memo) => {
                    let is_new = self.is_new(program, memo);
                    if is_new {
                        self.stack.push(Entry::Branch(second, self.position));
                        self.op = first;
                    }
                    is_new
                }
                Op::Save(slot) => self.set_slot(slot, self.position),
                Op::Reset(from, to) => {
                    self.spend((to - from) as usize / 8, left);
                    (from..to).for_each(|slot| self.change(slot, NONE));
                    self.next()
                }
                Op::NotAt(slot) => self.slots[slot as usize] != self.position && self.next(),
                Op::Zero(register) => self.set_slot(register, 0),
                Op::Count(counter) => self.count(program, counter),
                Op::Moved(slot, register, min) => {
                    let moved = self.slots[slot as usize] != self.position || self.slots[register as usize] <= min;
                    moved && self.next()
                }
                Op::Assert(assertion) => holds(program, text, position, assertion) && self.next(),
                Op::Reference(group) => self.reference(program, text, group, false, left),
                Op::ReferenceBack(group) => self.reference(program, text, group, true, left),
                Op::Look(register, otherwise) => self.look(register, otherwise.map(std::num::NonZeroU32::get)),
                Op::Found(register, negative) => self.found(register, negative, left),
                Op::Match => return Some(true),
            };
            if !goes_on && !self.backtrack(text, program.flags.is_unicode(), left) {
                return Some(false);
            }
        }
    }

    #[inline(always)]
    fn next(&mut self) -> bool {
        self.op += 1;
        true
    }

    #[inline(always)]
    fn forward(&mut self, matches: bool, width: u32) -> bool {
        self.position += u32::from(matches) * width;
        self.op += u32::from(matches);
        matches
    }

    #[inline(always)]
    fn backward(&mut self, matches: bool, width: u32) -> bool {
        self.position -= u32::from(matches) * width;
        self.op += u32::from(matches);
        matches
    }

    fn set_slot(&mut self, slot: u32, value: u32) -> bool {
        self.change(slot, value);
        self.next()
    }

    /// Set a slot, and push its old value for backtracking.
    fn change(&mut self, slot: u32, value: u32) {
        let old = std::mem::replace(&mut self.slots[slot as usize], value);
        if old != value && !self.stack.is_empty() {
            self.stack.push(Entry::Slot(slot, old));
        }
    }

    fn count(&mut self, program: &Program, counter: Counter) -> bool {
        let limits = program.limits[counter.limits as usize];
        let turns = self.slots[counter.register as usize];
        let body = self.op + 1;
        if turns >= limits.max {
            self.op = counter.exit;
            return true;
        }
        if turns < limits.min || limits.greedy {
            if turns >= limits.min {
                self.stack.push(Entry::Branch(counter.exit, self.position));
            }
            self.op = body;
        } else {
            // When the exit fails, the body is entered with its turn counted.
            self.change(counter.register, turns + 1);
            self.stack.push(Entry::Branch(body, self.position));
            self.op = counter.exit;
            return true;
        }
        self.change(counter.register, turns.saturating_add(1));
        true
    }

    /// Match greedily; shorter matches are tried by backtracking. After a piece of a long run it is to be executed again.
    fn star<U: Unit>(&mut self, program: &Program, text: &[U], what: (u32, u32), left: &mut usize) -> bool {
        let (set, wide) = match program.code[self.op as usize] {
            Op::PointStar(set, _) => (set, true),
            _ => (what.0, false),
        };
        let set = &program.sets[set as usize];
        let from = self.position;
        let is_first = self.run == NONE;
        let begin = if is_first { from } else { std::mem::replace(&mut self.run, NONE) };
        let mut end = from as usize;
        let stop = end + PIECE;
        if let (false, Some(memo)) = (self.failed.is_empty(), &program.memo) {
            let (row, moved) = memo.row(what.1, &self.slots, begin);
            if is_first && !self.mark(memo.width, row, begin) {
                return false;
            }
            // Positions visited before, in this or another run, have failed.
            while end < stop
                && let Some(width) = follows(text, end, set, wide)
                && self.mark(memo.width, moved, (end + width) as u32)
            {
                end += width;
            }
        } else {
            while end < stop
                && let Some(width) = follows(text, end, set, wide)
            {
                end += width;
            }
        }
        self.spend((end - from as usize) / 8, left);
        if end >= stop {
            (self.run, self.position) = (begin, end as u32);
            return true;
        }
        self.op += 1;
        if end as u32 > begin {
            self.position = end as u32;
            let before = end - back_step(text, end, wide);
            self.stack.push(Entry::Positions(self.op, begin, before as u32));
        }
        true
    }

    fn reference<U: Unit>(&mut self, program: &Program, text: &[U], group: u32, back: bool, left: &mut usize) -> bool {
        // A group without a value matches like an empty one.
        let (start, end) = self.group(group).unwrap_or_default();
        let (length, position) = (end - start, self.position as usize);
        self.spend(length / 8, left);
        let from = if back { position.checked_sub(length) } else { Some(position) };
        let Some((from, there)) = from.and_then(|from| Some((from, text.get(from..from + length)?))) else {
            return false;
        };
        let wanted = &text[start..end];
        let flags = program.flags;
        let same = if flags.ignore_case {
            same_letters(wanted, there, flags.is_unicode())
        } else {
            wanted.iter().zip(there).all(|(a, b)| a.code() == b.code())
        };
        let end = if back { from } else { from + length };
        // A half of a pair alone, at the end or the beginning of a group, is no half of another pair.
        let same = same && !(flags.is_unicode() && splits_pair(text, end));
        if same {
            self.position = end as u32;
            self.op += 1;
        }
        same
    }

    /// Begin a look-around: its alternatives are on the stack above this entry.
    fn look(&mut self, register: u32, otherwise: Option<u32>) -> bool {
        let height = self.stack.len() as u32;
        // The register is not restored: it is written before it is read again.
        self.slots[register as usize] = height;
        self.stack.push(otherwise.map_or(Entry::Look, |op| Entry::Branch(op, self.position)));
        self.stack.push(Entry::Branch(NONE, self.position));
        self.next()
    }

    fn found(&mut self, register: u32, negative: bool, left: &mut usize) -> bool {
        let height = self.slots[register as usize] as usize;
        self.spend((self.stack.len() - height) / 8, left);
        if negative {
            while self.stack.len() > height {
                if let Some(Entry::Slot(slot, old)) = self.stack.pop() {
                    self.slots[slot as usize] = old;
                }
            }
            return false;
        }
        if let Some(&Entry::Branch(_, position)) = self.stack.get(height + 1) {
            self.position = position;
        }
        // Its groups stay and are undone by earlier entries; its alternatives are dropped.
        let mut kept = height;
        for index in height..self.stack.len() {
            if matches!(self.stack[index], Entry::Slot(..)) {
                self.stack[kept] = self.stack[index];
                kept += 1;
            }
        }
        self.stack.truncate(kept);
        self.next()
    }

    /// Backtrack; false where no alternative is left.
    fn backtrack<U: Unit>(&mut self, text: &[U], wide: bool, left: &mut usize) -> bool {
        while let Some(entry) = self.stack.pop() {
            match entry {
                Entry::Branch(NONE, _) | Entry::Look => {}
                Entry::Branch(op, position) => {
                    (self.op, self.position) = (op, position);
                    return true;
                }
                Entry::Slot(slot, old) => {
                    *left = left.saturating_sub(1);
                    self.slots[slot as usize] = old;
                }
                Entry::Positions(op, first, position) => {
                    if position > first {
                        let before = position - back_step(text, position as usize, wide) as u32;
                        self.stack.push(Entry::Positions(op, first, before));
                    }
                    (self.op, self.position) = (op, position);
                    return true;
                }
            }
        }
        false
    }
}

/// The length of the character before a position.
#[inline(always)]
fn back_step<U: Unit>(text: &[U], position: usize, wide: bool) -> usize {
    if wide { point_before(text, position).map_or(1, |(_, width)| width as usize) } else { 1 }
}

/// The length of the next character, if it is in a set.
#[inline(always)]
fn follows<U: Unit>(text: &[U], position: usize, set: &super::program::Set, wide: bool) -> Option<usize> {
    if wide {
        let (character, width) = point(text, position)?;
        return set.contains(character).then_some(width as usize);
    }
    set.contains(text.get(position)?.code()).then_some(1)
}

#[inline(always)]
fn unit_before<U: Unit>(text: &[U], position: usize) -> Option<u32> {
    text.get(position.checked_sub(1)?).map(|unit| unit.code())
}

/// Whether a position is within a surrogate pair.
fn splits_pair<U: Unit>(text: &[U], position: usize) -> bool {
    matches!(unit_before(text, position), Some(0xD800..=0xDBFF))
        && text.get(position).is_some_and(|unit| matches!(unit.code(), 0xDC00..=0xDFFF))
}

/// The code point at a position, and how many units it takes; `None` within a pair.
#[inline(always)]
fn point<U: Unit>(text: &[U], position: usize) -> Option<(u32, u32)> {
    let first = text.get(position)?.code();
    if let 0xD800..=0xDBFF = first
        && let Some(second @ 0xDC00..=0xDFFF) = text.get(position + 1).map(|unit| unit.code())
    {
        return Some((0x10000 + ((first & 0x3FF) << 10) + (second & 0x3FF), 2));
    }
    if let (0xDC00..=0xDFFF, Some(0xD800..=0xDBFF)) = (first, unit_before(text, position)) {
        return None;
    }
    Some((first, 1))
}

/// The code point before a position, and how many units it takes.
#[inline(always)]
fn point_before<U: Unit>(text: &[U], position: usize) -> Option<(u32, u32)> {
    let second = unit_before(text, position)?;
    if let 0xDC00..=0xDFFF = second
        && let Some(first @ 0xD800..=0xDBFF) = unit_before(text, position - 1)
    {
        return Some((0x10000 + ((first & 0x3FF) << 10) + (second & 0x3FF), 2));
    }
    if let (0xD800..=0xDBFF, Some(0xDC00..=0xDFFF)) = (second, text.get(position).map(|unit| unit.code())) {
        return None;
    }
    Some((second, 1))
}

/// Whether two texts of one length are equal ignoring case.
fn same_letters<U: Unit>(left: &[U], right: &[U], unicode: bool) -> bool {
    let mut at = 0;
    while at < left.len() {
        let (Some((a, width)), Some((b, other))) = (character(left, at, unicode), character(right, at, unicode)) else {
            return false;
        };
        if width != other || canonicalize(a, unicode) != canonicalize(b, unicode) {
            return false;
        }
        at += width as usize;
    }
    true
}

fn character<U: Unit>(text: &[U], position: usize, unicode: bool) -> Option<(u32, u32)> {
    if unicode { point(text, position) } else { text.get(position).map(|unit| (unit.code(), 1)) }
}

fn holds<U: Unit>(program: &Program, text: &[U], position: usize, assertion: Assertion) -> bool {
    let is_end = |unit: Option<u32>| unit.is_none_or(|unit| matches!(unit, 0x0A | 0x0D | 0x2028 | 0x2029));
    let before = || unit_before(text, position);
    let after = || text.get(position).map(|unit| unit.code());
    let is_letter = |unit: Option<u32>| unit.is_some_and(|unit| is_word(unit, program.flags));
    match assertion {
        Assertion::Start => position == 0,
        Assertion::End => position == text.len(),
        Assertion::LineStart => is_end(before()),
        Assertion::LineEnd => is_end(after()),
        Assertion::Boundary => is_letter(before()) != is_letter(after()),
        Assertion::NoBoundary => is_letter(before()) == is_letter(after()),
    }
}
