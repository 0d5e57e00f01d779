//! Long texts are compared in pieces, so that the limits of the run are checked between them.
//!
//! The first difference of letters decides, wherever it is; without one the first difference of accents, then that of
//! case. So the next pieces are compared when the letters of the present ones are the same. Their first difference of
//! each other level is noted. Pieces end where no character belongs to a contraction. Where those of the two texts do
//! not have the same number of letters, the longer one is cut.

use crate::eval::vm::Vm;
use crate::meter::Charge;
use crate::meter::buffer::Buffer;
use crate::text::wtf8::first_code_point;
use crate::value::Value;
use crate::value::thrown::Result;
use agentscript_intl::collation::Order;
use std::cmp::Ordering;
use std::ops::Range;

/// Texts that have more bytes together are compared in pieces.
pub const LARGE: usize = 64 << 10;

/// Bytes of a piece, at least.
const PIECE: usize = 16 << 10;
/// How far beyond that a place is searched where a piece can end.
const FAR: usize = 2 << 10;
/// Bytes that a step pays for.
const BYTES: usize = 16;
/// The sensitivity that compares letters only.
const LETTERS: usize = 0;
/// The character that comes last in each order.
const LAST: &str = "\u{FFFF}";

/// The order of two texts in an order of the root, if it can be found in pieces. All is charged for.
pub fn compare(vm: &mut Vm, left: Value, right: Value, order: Order) -> Result<Option<Ordering>> {
    vm.heap.charge_string(left)?;
    let charge = vm.heap.charge_string(right)?;
    let is_text = |string: Value| std::str::from_utf8(vm.heap.read_bytes(string, charge)).is_ok();
    if [left, right].iter().any(|&string| !vm.heap.str(string).is_ascii() && !is_text(string)) {
        return Ok(None);
    }
    let texts = [left, right].map(|string| Text { string, bytes: vm.heap.str(string).bytes as usize, at: 0 });
    Comparison { order, texts, found: [Ordering::Equal; 4] }.run(vm, charge)
}

/// A text and how much of it has been compared.
#[derive(Clone, Copy)]
struct Text {
    string: Value,
    bytes: usize,
    at: usize,
}

impl Text {
    /// The end of the next piece, which begins with so many bytes, and is all of a shorter text; `None` where there is no
    /// place to end it.
    fn cut(&self, vm: &Vm, charge: Charge, order: Order, bytes: usize) -> Option<usize> {
        let start = self.at + bytes;
        if start >= self.bytes {
            return Some(self.bytes);
        }
        let text = &vm.heap.read_bytes(self.string, charge)[..self.bytes.min(start + FAR)];
        let mut at = start + text.iter().skip(start).take_while(|&&byte| byte & 0xC0 == 0x80).count();
        let mut before = None;
        while let Some((point, length)) = text.get(at..).and_then(first_code_point) {
            if before.is_some_and(|before| ends_piece(before, point, order)) {
                return Some(at);
            }
            before = Some(point);
            at += length;
        }
        (at >= self.bytes).then_some(self.bytes)
    }
}

/// Whether no contraction, number or accent goes on from the first of two characters to the second one.
fn ends_piece(before: u32, after: u32, order: Order) -> bool {
    let is_digit = |point: u32| order.numeric && (0x30..=0x39).contains(&point);
    let stands_alone = |point: u32| {
        matches!(point, 0..=0x7F | 0x391..=0x3C9 | 0x410..=0x44F | 0x4E00..=0x9FFF | 0xAC00..=0xD7A3)
            && !is_digit(point)
    };
    stands_alone(before) && stands_alone(after)
}

/// The state of a comparison.
struct Comparison {
    order: Order,
    texts: [Text; 2],
    /// The first difference by sensitivity.
    found: [Ordering; 4],
}

impl Comparison {
    fn run(mut self, vm: &mut Vm, charge: Charge) -> Result<Option<Ordering>> {
        let levels: &[usize] = match self.order.sensitivity {
            0 => &[0],
            1 => &[0, 1],
            2 => &[0, 2],
            _ => &[0, 1, 3],
        };
        while self.texts.iter().any(|text| text.at < text.bytes) {
            let mut ends = [0; 2];
            for (end, text) in ends.iter_mut().zip(&self.texts) {
                let Some(found) = text.cut(vm, charge, self.order, PIECE) else { return Ok(None) };
                *end = found;
            }
            if self.piece(vm, ends, self.order.sensitivity)?.is_ne() {
                let letters = self.piece(vm, ends, LETTERS)?;
                if letters.is_ne() {
                    match self.align(vm, charge, &mut ends, letters)? {
                        Alignment::Decided => return Ok(Some(letters)),
                        Alignment::Unknown => return Ok(None),
                        Alignment::Aligned => {}
                    }
                }
                for &level in levels {
                    if self.found[level].is_eq() {
                        self.found[level] = self.piece(vm, ends, level)?;
                    }
                }
            }
            for (text, end) in self.texts.iter_mut().zip(ends) {
                text.at = end;
            }
        }
        Ok(Some(levels.iter().map(|&level| self.found[level]).find(|found| found.is_ne()).unwrap_or(Ordering::Equal)))
    }

    /// The order of the pieces that end here.
    fn piece(&self, vm: &mut Vm, ends: [usize; 2], sensitivity: usize) -> Result<Ordering> {
        let [left, right] = self.ranges(ends);
        let charge = vm.work(1 + (left.len() + right.len()) / BYTES)?;
        let order = self.order.with_sensitivity(sensitivity);
        let bytes =
            |text: &Text, range: Range<usize>| vm.heap.read_bytes(text.string, charge).get(range).unwrap_or_default();
        Ok(order.compare(bytes(&self.texts[0], left), bytes(&self.texts[1], right)))
    }

    fn ranges(&self, ends: [usize; 2]) -> [Range<usize>; 2] {
        [self.texts[0].at..ends[0], self.texts[1].at..ends[1]]
    }

    /// Cuts the piece with more letters, if it begins with those of the other one. `letters` is the order of the pieces.
    fn align(&self, vm: &mut Vm, charge: Charge, ends: &mut [usize; 2], letters: Ordering) -> Result<Alignment> {
        let (short, long) = if letters.is_lt() { (0, 1) } else { (1, 0) };
        if !self.begins_with(vm, *ends, short, long)? || ends[short] == self.texts[short].bytes {
            return Ok(Alignment::Decided);
        }
        let text = self.texts[long];
        let (mut low, mut high) = (0, ends[long] - text.at);
        while low < high {
            let middle = low.midpoint(high);
            let Some(end) = text.cut(vm, charge, self.order, middle).filter(|&end| end - text.at < high) else {
                high = middle;
                continue;
            };
            let mut cut = *ends;
            cut[long] = end;
            match self.piece(vm, cut, LETTERS)? {
                Ordering::Equal => {
                    *ends = cut;
                    return Ok(Alignment::Aligned);
                }
                // What is left of the longer piece has too many letters still, or too few.
                order if order == letters => high = middle,
                _ => low = end - text.at + 1,
            }
        }
        Ok(Alignment::Unknown)
    }

    /// Whether the letters of the longer piece begin with all of the shorter one: behind those comes the last character.
    fn begins_with(&self, vm: &mut Vm, ends: [usize; 2], short: usize, long: usize) -> Result<bool> {
        let ranges = self.ranges(ends);
        let charge = vm.work(1 + (ranges[0].len() + ranges[1].len()) / BYTES)?;
        let order = self.order.with_sensitivity(LETTERS);
        let bytes = |index: usize| {
            let bytes = vm.heap.read_bytes(self.texts[index].string, charge);
            bytes.get(ranges[index].clone()).unwrap_or_default()
        };
        let mut extended = Buffer::with_capacity(&vm.heap, bytes(short).len() + LAST.len())?;
        extended.extend_from_slice(&vm.heap, bytes(short))?;
        extended.extend_from_slice(&vm.heap, LAST.as_bytes())?;
        Ok(order.compare(&extended, bytes(long)).is_gt())
    }
}

/// What is known of two pieces with different letters.
enum Alignment {
    /// Their order is that of the texts.
    Decided,
    /// The longer one was cut: they have the same letters now.
    Aligned,
    /// There was no place to cut it.
    Unknown,
}
