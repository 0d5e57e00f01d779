//! From the tree of a pattern to its program.

use super::program::{Counter, Limits, Memo, Op, Program, Set};
use super::start::Start;
use agentscript_lang::regexp::{CharSet, Look, Node, Pattern, Repeat};
use hashbrown::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

/// Counted loops of up to so many operations are unrolled.
const EXPAND: usize = 500;

/// With more nested loops than this that can match the empty string, failures are not memoized.
const MAX_TURNS: usize = 8;

/// The program of a pattern.
pub(super) fn program(pattern: &Pattern) -> Program {
    let groups = pattern.groups;
    let mut compiler = Compiler {
        unicode: pattern.flags.is_unicode(),
        code: Vec::new(),
        sets: Vec::new(),
        known: HashMap::new(),
        limits: Vec::new(),
        slots: 2 * groups + 2,
        memo: Some(Memo::default()),
        turns: Vec::new(),
        budget: 20_000,
    };
    compiler.emit(Op::Save(0));
    compiler.node(&pattern.root, false);
    compiler.emit(Op::Save(1));
    compiler.emit(Op::Match);
    let name = |units: &[u16]| {
        let mut bytes = Vec::new();
        crate::text::wtf8::push_utf16(units, &mut bytes);
        bytes.into_boxed_slice()
    };
    Program {
        code: compiler.code.into(),
        sets: compiler.sets.iter().map(|set| Set::new(set)).collect(),
        limits: compiler.limits.into(),
        slots: compiler.slots,
        memo: compiler.memo,
        start: Start::for_pattern(pattern),
        flags: pattern.flags,
        groups,
        names: pattern.names.iter().map(|(units, number)| (name(units), *number)).collect(),
    }
}

struct Compiler {
    unicode: bool,
    code: Vec<Op>,
    sets: Vec<Arc<CharSet>>,
    known: HashMap<Arc<CharSet>, u32>,
    limits: Vec<Limits>,
    slots: u32,
    memo: Option<Memo>,
    /// The registers of enclosing loops whose turns must not be empty.
    turns: Vec<u32>,
    /// How many operations unrolled loops may still add.
    budget: usize,
}

impl Compiler {
    fn emit(&mut self, op: Op) -> usize {
        self.code.push(op);
        self.code.len() - 1
    }

    fn here(&self) -> u32 {
        self.code.len() as u32
    }

    fn register(&mut self) -> u32 {
        self.slots += 1;
        self.slots - 1
    }

    /// A new number for an operation whose failures are memoized.
    fn memo(&mut self) -> u32 {
        if self.turns.len() > MAX_TURNS {
            self.memo = None;
        }
        let Some(memo) = &mut self.memo else { return 0 };
        memo.add(&self.turns)
    }

    fn node(&mut self, node: &Node, back: bool) {
        match node {
            Node::Empty => {}
            Node::Char(character) => self.character(*character, back),
            Node::Set(set) => self.set(set, back),
            Node::Sequence(terms) if back => terms.iter().rev().for_each(|term| self.node(term, back)),
            Node::Sequence(terms) => terms.iter().for_each(|term| self.node(term, back)),
            Node::Alternatives(all) => self.alternatives(all, back),
            Node::Capture(body, number) => {
                let (first, last) = if back { (2 * number + 1, 2 * number) } else { (2 * number, 2 * number + 1) };
                self.emit(Op::Save(first));
                self.node(body, back);
                self.emit(Op::Save(last));
            }
            Node::Repeat(repeat) => self.repeat(repeat, back),
            Node::Assertion(assertion) => {
                self.emit(Op::Assert(*assertion));
            }
            Node::Look(look) => self.look(look),
            Node::Reference(number) => {
                self.memo = None;
                self.emit(if back { Op::ReferenceBack(*number) } else { Op::Reference(*number) });
            }
        }
    }

    fn character(&mut self, character: u32, back: bool) {
        let unit = |unit: u16| if back { Op::UnitBack(unit) } else { Op::Unit(unit) };
        if self.unicode && (0xD800..=0xDFFF).contains(&character) {
            // A surrogate is a character only if it is not half of a pair, which depends on its neighbour.
            return self.set(&Arc::new(CharSet::of(character)), back);
        }
        if let Ok(single) = u16::try_from(character) {
            self.emit(unit(single));
            return;
        }
        let offset = character - 0x10000;
        let pair = [0xD800 | (offset >> 10) as u16, 0xDC00 | (offset & 0x3FF) as u16];
        let [first, second] = if back { [pair[1], pair[0]] } else { pair };
        self.emit(unit(first));
        self.emit(unit(second));
    }

    /// The number of a set, and whether its characters are code points that may be pairs.
    fn set_number(&mut self, set: &Arc<CharSet>) -> (u32, bool) {
        let number = *self.known.entry(Arc::clone(set)).or_insert_with(|| {
            self.sets.push(Arc::clone(set));
            (self.sets.len() - 1) as u32
        });
        let wide = set.ranges().iter().any(|&(first, last)| last >= 0xD800 && !(0xE000..=0xFFFF).contains(&first))
            || set.ranges().last().is_some_and(|&(_, last)| last > 0xFFFF);
        (number, self.unicode && wide)
    }

    fn set(&mut self, set: &Arc<CharSet>, back: bool) {
        let op = match (self.set_number(set), back) {
            ((number, false), false) => Op::Set(number),
            ((number, false), true) => Op::SetBack(number),
            ((number, true), false) => Op::Point(number),
            ((number, true), true) => Op::PointBack(number),
        };
        self.emit(op);
    }

    fn alternatives(&mut self, all: &[Node], back: bool) {
        let mut ends = Vec::new();
        let Some((last, others)) = all.split_last() else { return };
        for one in others {
            let memo = self.memo();
            let split = self.emit(Op::Jump(0));
            self.node(one, back);
            ends.push(self.emit(Op::Jump(0)));
            self.code[split] = Op::Split(split as u32 + 1, self.here(), memo);
        }
        self.node(last, back);
        let end = self.here();
        for jump in ends {
            self.code[jump] = Op::Jump(end);
        }
    }

    fn look(&mut self, look: &Look) {
        self.memo = None;
        let register = self.register();
        let begin = self.emit(Op::Look(register, None));
        self.node(&look.body, look.behind);
        self.emit(Op::Found(register, look.negative));
        if look.negative {
            self.code[begin] = Op::Look(register, NonZeroU32::new(self.here()));
        }
    }

    // ---- Loops ---------------------------------------------------------------------------------

    fn repeat(&mut self, repeat: &Repeat, back: bool) {
        let is_plus = repeat.min == 1 && repeat.max.is_none() && !is_nullable(&repeat.body);
        if is_plus && single(&repeat.body, self.unicode).is_none() {
            // `a+` whose body always advances needs the body only once.
            let head = self.here();
            self.turn(repeat, false, back);
            let memo = self.memo();
            let split = self.here();
            self.emit(choice(repeat.greedy, head, split + 1, memo));
            return;
        }
        let size = written(repeat, size(&repeat.body));
        if size > EXPAND || size > self.budget {
            // One turn followed by any number needs no counter.
            if repeat.min == 0 && repeat.max.is_none() {
                return self.endless(repeat, back);
            }
            return self.counted(repeat, back);
        }
        self.budget -= size;
        for _ in 0..repeat.min {
            self.turn(repeat, false, back);
        }
        let Some(max) = repeat.max else { return self.endless(repeat, back) };
        let mut splits = Vec::new();
        for _ in repeat.min..max {
            let memo = self.memo();
            splits.push((self.emit(Op::Jump(0)), memo));
            self.turn(repeat, true, back);
        }
        let end = self.here();
        for (split, memo) in splits {
            self.code[split] = choice(repeat.greedy, split as u32 + 1, end, memo);
        }
    }

    /// `a*`
    fn endless(&mut self, repeat: &Repeat, back: bool) {
        if repeat.greedy
            && !back
            && let Some(set) = single(&repeat.body, self.unicode)
        {
            let (number, wide) = self.set_number(&set);
            let memo = self.memo();
            self.emit(if wide { Op::PointStar(number, memo) } else { Op::Star(number, memo) });
            return;
        }
        let memo = self.memo();
        let head = self.emit(Op::Jump(0));
        self.turn(repeat, true, back);
        self.emit(Op::Jump(head as u32));
        self.code[head] = choice(repeat.greedy, head as u32 + 1, self.here(), memo);
    }

    /// One turn; an optional one must not be empty.
    fn turn(&mut self, repeat: &Repeat, optional: bool, back: bool) {
        self.reset(repeat);
        if optional && is_nullable(&repeat.body) {
            let register = self.register();
            self.emit(Op::Save(register));
            self.turns.push(register);
            self.node(&repeat.body, back);
            self.turns.pop();
            self.emit(Op::NotAt(register));
        } else {
            self.node(&repeat.body, back);
        }
    }

    /// The groups of a loop are empty at the beginning of each turn.
    fn reset(&mut self, repeat: &Repeat) {
        let (first, end) = repeat.groups;
        if end > first {
            self.emit(Op::Reset(2 * first, 2 * end));
        }
    }

    fn counted(&mut self, repeat: &Repeat, back: bool) {
        self.memo = None;
        let register = self.register();
        let limits = self.limits.len() as u32;
        self.limits.push(Limits { min: repeat.min, max: repeat.max.unwrap_or(u32::MAX), greedy: repeat.greedy });
        self.emit(Op::Zero(register));
        let head = self.emit(Op::Jump(0));
        self.reset(repeat);
        if is_nullable(&repeat.body) {
            let position = self.register();
            self.emit(Op::Save(position));
            self.node(&repeat.body, back);
            self.emit(Op::Moved(position, register, repeat.min));
        } else {
            self.node(&repeat.body, back);
        }
        self.emit(Op::Jump(head as u32));
        self.code[head] = Op::Count(Counter { register, limits, exit: self.here() });
    }
}

fn choice(greedy: bool, body: u32, exit: u32, memo: u32) -> Op {
    if greedy { Op::Split(body, exit, memo) } else { Op::Split(exit, body, memo) }
}

/// The set of a part that is one character.
fn single(node: &Node, unicode: bool) -> Option<Arc<CharSet>> {
    match node {
        Node::Set(set) => Some(Arc::clone(set)),
        Node::Char(character) if unicode || *character <= 0xFFFF => Some(Arc::new(CharSet::of(*character))),
        _ => None,
    }
}

/// About how many operations a part takes.
fn size(node: &Node) -> usize {
    match node {
        Node::Empty => 0,
        Node::Char(_) | Node::Set(_) | Node::Assertion(_) | Node::Reference(_) => 1,
        Node::Sequence(terms) => terms.iter().map(size).fold(0, usize::saturating_add),
        Node::Alternatives(all) => all.iter().map(|one| size(one).saturating_add(2)).fold(0, usize::saturating_add),
        Node::Capture(body, _) => size(body) + 2,
        Node::Repeat(repeat) => {
            let body = size(&repeat.body);
            match written(repeat, body) {
                written if written > EXPAND => body.saturating_add(6),
                written => written,
            }
        }
        Node::Look(look) => size(&look.body) + 2,
    }
}

/// How many operations an unrolled loop takes.
fn written(repeat: &Repeat, body: usize) -> usize {
    let times = match (repeat.min, repeat.max) {
        (1, None) => 1,
        (min, max) => max.unwrap_or(min.saturating_add(1)) as usize,
    };
    body.saturating_add(4).saturating_mul(times)
}

/// Whether a part can match the empty string.
fn is_nullable(node: &Node) -> bool {
    match node {
        Node::Empty | Node::Assertion(_) | Node::Look(_) | Node::Reference(_) => true,
        Node::Char(_) | Node::Set(_) => false,
        Node::Sequence(terms) => terms.iter().all(is_nullable),
        Node::Alternatives(all) => all.iter().any(is_nullable),
        Node::Capture(body, _) => is_nullable(body),
        Node::Repeat(repeat) => repeat.min == 0 || is_nullable(&repeat.body),
    }
}
