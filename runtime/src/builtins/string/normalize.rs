//! `normalize`: the normal forms of Unicode, computed in pieces that are charged one by one.
//!
//! Before a character that neither moves nor composes with earlier ones there is a boundary. The normal form of the
//! whole is the concatenation of those of the parts. The library normalizes pieces. Long texts without a boundary,
//! such as marks only, are normalized here, character by character.

use super::{Result, Value, Vm, arg, receiver};
use crate::heap::Heap;
use crate::meter::buffer::Buffer;
use crate::text::wtf8::first_code_point;
use crate::value::numeric::leading_text;
use crate::value::thrown::Thrown;
use icu_normalizer::properties::{
    CanonicalCombiningClassMapBorrowed as Classes, CanonicalCompositionBorrowed as Pairs,
};
use icu_normalizer::{ComposingNormalizerBorrowed as Composing, DecomposingNormalizerBorrowed as Decomposing};
use std::fmt;

/// Bytes of a piece: some 100 microseconds at most, with characters that decompose into 18.
const PIECE: usize = 1 << 10;
/// How far beyond the end of a piece a boundary is searched.
const FAR: usize = 1 << 10;
/// Bytes of text a step pays for.
const BYTES: usize = 4;

/// `string.normalize(form)`
pub fn normalize(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "normalize")?;
    let form = match arg(arguments, 0) {
        Value::UNDEFINED => vm.heap.string("NFC"),
        form => vm.to_string(form)?,
    };
    let form = match vm.heap.first_bytes::<5>(form) {
        b"NFC" => Form { composes: true, compatible: false },
        b"NFD" => Form { composes: false, compatible: false },
        b"NFKC" => Form { composes: true, compatible: true },
        b"NFKD" => Form { composes: false, compatible: true },
        _ => return Err(vm.range_error("The normalization form should be one of NFC, NFD, NFKC, NFKD.")),
    };
    form.apply(vm, string)
}

/// The canonical decomposition of a string.
#[cfg(feature = "intl")]
pub fn decomposed(vm: &mut Vm, string: Value) -> Result {
    Form { composes: false, compatible: false }.apply(vm, string)
}

/// The end of the piece from `at` on; `None` where there is no boundary.
fn piece_end(bytes: &[u8], at: usize) -> Option<usize> {
    // The last piece, and all of a short text.
    let Some(rest) = bytes.get(at + PIECE..) else { return Some(bytes.len()) };
    let start = rest.iter().take_while(|&&byte| byte & 0xC0 == 0x80).count();
    let mut ahead = start;
    while ahead < FAR {
        let Some((point, length)) = rest.get(ahead..).and_then(first_code_point) else { break };
        if stands_alone(point) {
            return Some(at + PIECE + ahead);
        }
        ahead += length;
    }
    (at + PIECE + ahead >= bytes.len()).then_some(bytes.len())
}

/// Whether there is a boundary before a character, in all forms.
fn stands_alone(point: u32) -> bool {
    // All of these are boundaries, and lone surrogates too.
    let Some(character) = char::from_u32(point).filter(|_| point >= 0x300) else { return true };
    let first = Decomposing::new_nfkd().normalize_iter(std::iter::once(character)).next();
    first.is_some_and(|first| Classes::new().get_u8(first) == 0 && !joins(first))
}

/// Characters without a combining class that join the one before them: vowel signs, and letters of Hangul.
fn joins(character: char) -> bool {
    matches!(character, '\u{9BE}' | '\u{9D7}' | '\u{B3E}' | '\u{B56}'..='\u{B57}' | '\u{BBE}' | '\u{BD7}' | '\u{CC2}'
        | '\u{CD5}'..='\u{CD6}' | '\u{D3E}' | '\u{D57}' | '\u{DCF}' | '\u{DDF}' | '\u{102E}' | '\u{1161}'..='\u{1175}'
        | '\u{11A8}'..='\u{11C2}' | '\u{1B35}' | '\u{11127}' | '\u{1133E}' | '\u{11357}' | '\u{113B8}' | '\u{113BB}'
        | '\u{113C2}' | '\u{113C9}' | '\u{114B0}' | '\u{114BA}' | '\u{114BD}' | '\u{115AF}' | '\u{11930}'
        | '\u{1611E}'..='\u{16120}' | '\u{16129}' | '\u{16D67}')
}

/// One of the four forms.
#[derive(Clone, Copy)]
struct Form {
    composes: bool,
    compatible: bool,
}

impl Form {
    /// The form of a string.
    pub fn apply(self, vm: &mut Vm, string: Value) -> Result {
        if vm.heap.str(string).is_ascii() {
            vm.heap.charged_bytes(string)?;
            return Ok(string);
        }
        let length = vm.heap.str(string).bytes as usize;
        let (mut at, mut out) = (0, Buffer::new());
        while at < length {
            let before = out.len();
            let charge = vm.work(1)?;
            let end = piece_end(vm.heap.read_bytes(string, charge), at);
            at = match end {
                Some(end) => {
                    let charge = vm.work((end - at) / BYTES)?;
                    self.piece(&vm.heap.read_bytes(string, charge)[at..end], &vm.heap, &mut out)?;
                    end
                }
                None => Slow { form: self, out: &mut out, starter: None, marks: Buffer::new() }.run(vm, string, at)?,
            };
            vm.heap.charge_bytes(4 * (out.len() - before))?;
        }
        Ok(vm.heap.string_of(out))
    }

    fn decomposing(self) -> Decomposing<'static> {
        if self.compatible { Decomposing::new_nfkd() } else { Decomposing::new_nfd() }
    }

    /// Append the form of a piece of a string.
    fn piece(self, mut rest: &[u8], heap: &Heap, out: &mut Buffer<u8>) -> Result<()> {
        let mut normal = Normal { heap, out, refused: None };
        while !rest.is_empty() {
            let text = leading_text(rest);
            let done = match (self.composes, self.compatible) {
                (true, false) => Composing::new_nfc().normalize_to(text, &mut normal),
                (true, true) => Composing::new_nfkc().normalize_to(text, &mut normal),
                (false, _) => self.decomposing().normalize_to(text, &mut normal),
            };
            // Invalid UTF-8 is a lone surrogate, of three bytes.
            rest = &rest[text.len()..];
            let (lone, behind) = rest.split_at(rest.len().min(3));
            if done.and_then(|()| normal.push(lone)).is_err() {
                return normal.refused.map_or(Ok(()), Err);
            }
            rest = behind;
        }
        Ok(())
    }
}

/// Normalized text that grows.
struct Normal<'h> {
    heap: &'h Heap,
    out: &'h mut Buffer<u8>,
    refused: Option<Thrown>,
}

impl Normal<'_> {
    fn push(&mut self, bytes: &[u8]) -> fmt::Result {
        self.out.extend_from_slice(self.heap, bytes).map_err(|refused| {
            self.refused = Some(refused);
            fmt::Error
        })
    }
}

impl fmt::Write for Normal<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes())
    }
}

/// Characters between two charges.
const TURN: usize = 256;

/// A piece without a boundary, made in linear time whatever it holds.
struct Slow<'b> {
    form: Form,
    out: &'b mut Buffer<u8>,
    /// The last starter, with which further characters may compose.
    starter: Option<char>,
    /// The marks after it.
    marks: Buffer<Mark>,
}

/// A character and its combining class.
type Mark = (char, u8);

impl Slow<'_> {
    /// Append the form of a string from `at` on, up to a boundary, where it may be cut. Gives the boundary.
    fn run(mut self, vm: &mut Vm, string: Value, mut at: usize) -> Result<usize> {
        let start = at;
        for turn in 1_usize.. {
            if turn % TURN == 0 {
                vm.work(TURN)?;
            }
            let Some((point, length)) = vm.heap.code_point_at(string, at) else { break };
            if at > start + PIECE && stands_alone(point) {
                break;
            }
            at += length;
            match char::from_u32(point) {
                Some(character) => {
                    for part in self.form.decomposing().normalize_iter(std::iter::once(character)) {
                        self.take(vm, part)?;
                    }
                }
                None => {
                    self.end(vm)?;
                    // A lone surrogate has three bytes.
                    for index in at - length..at {
                        self.out.extend(&vm.heap, vm.heap.string_byte(string, index))?;
                    }
                }
            }
        }
        self.end(vm)?;
        Ok(at)
    }

    /// The next character of the decomposed text.
    fn take(&mut self, vm: &mut Vm, character: char) -> Result<()> {
        let class = Classes::new().get_u8(character);
        if class != 0 {
            return self.marks.push(&vm.heap, (character, class));
        }
        self.order(vm)?;
        if self.marks.is_empty()
            && self.form.composes
            && let Some(joined) = self.starter.and_then(|starter| Pairs::new().compose(starter, character))
        {
            self.starter = Some(joined);
            return Ok(());
        }
        self.give(vm)?;
        self.starter = Some(character);
        Ok(())
    }

    /// The last character was taken, or the next one composes with nothing.
    fn end(&mut self, vm: &mut Vm) -> Result<()> {
        self.order(vm)?;
        self.give(vm)
    }

    /// Sort the marks by class, and compose the starter with those it can.
    fn order(&mut self, vm: &mut Vm) -> Result<()> {
        if !self.marks.is_sorted_by_key(|&(_, class)| class) {
            self.marks = sorted(vm, &self.marks)?;
        }
        let (Some(mut starter), true) = (self.starter, self.form.composes) else { return Ok(()) };
        let (mut kept, mut last) = (0, 0);
        for index in 0..self.marks.len() {
            if index % TURN == TURN - 1 {
                vm.work(TURN / 4)?;
            }
            let (mark, class) = self.marks[index];
            match Pairs::new().compose(starter, mark).filter(|_| class != last) {
                Some(joined) => starter = joined,
                None => {
                    self.marks[kept] = (mark, class);
                    (kept, last) = (kept + 1, class);
                }
            }
        }
        self.marks.truncate(kept);
        self.starter = Some(starter);
        Ok(())
    }

    /// Append the finished characters.
    fn give(&mut self, vm: &mut Vm) -> Result<()> {
        if let Some(starter) = self.starter.take() {
            self.push(vm, starter)?;
        }
        for index in 0..self.marks.len() {
            if index % TURN == TURN - 1 {
                vm.work(TURN / 8)?;
            }
            self.push(vm, self.marks[index].0)?;
        }
        self.marks.truncate(0);
        Ok(())
    }

    fn push(&mut self, vm: &Vm, character: char) -> Result<()> {
        self.out.extend_from_slice(&vm.heap, character.encode_utf8(&mut [0; 4]).as_bytes())
    }
}

/// A stable counting sort of marks by class.
fn sorted(vm: &mut Vm, marks: &Buffer<Mark>) -> Result<Buffer<Mark>> {
    let mut starts = [0_usize; 256];
    for some in marks.chunks(TURN) {
        vm.work(TURN / 16)?;
        some.iter().for_each(|&(_, class)| starts[usize::from(class)] += 1);
    }
    let mut start = 0;
    for count in &mut starts {
        start += std::mem::replace(count, start);
    }
    let mut all = Buffer::with_capacity(&vm.heap, marks.len())?;
    all.extend(&vm.heap, std::iter::repeat_n(('\0', 0), marks.len()))?;
    for some in marks.chunks(TURN) {
        vm.work(TURN / 8)?;
        for &mark in some {
            let next = &mut starts[usize::from(mark.1)];
            all[*next] = mark;
            *next += 1;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use icu_normalizer::properties::{CanonicalDecompositionBorrowed, Decomposed};

    /// The table agrees with the data of the library.
    #[test]
    fn what_joins_is_what_the_data_say() {
        let canonical = CanonicalDecompositionBorrowed::new();
        let class = |character: char| Classes::new().get_u8(character);
        let mut found: Vec<char> = ('\0'..=char::MAX)
            .filter_map(|character| match canonical.decompose(character) {
                Decomposed::Expansion(first, second) if class(second) == 0 => {
                    Pairs::new().compose(first, second).map(|_| second)
                }
                _ => None,
            })
            .collect();
        found.sort_unstable();
        found.dedup();
        let table: Vec<char> = ('\0'..=char::MAX).filter(|&character| joins(character)).collect();
        assert_eq!(found, table);
        for character in found {
            let parts: String = Decomposing::new_nfkd().normalize_iter(std::iter::once(character)).collect();
            assert_eq!(parts, character.to_string());
        }
    }

    #[test]
    fn what_is_below_the_marks_stands_alone() {
        for character in '\0'..'\u{300}' {
            let first = Decomposing::new_nfkd().normalize_iter(std::iter::once(character)).next();
            assert_eq!(first.map(|first| Classes::new().get_u8(first)), Some(0), "{character:?}");
        }
    }
}
