//! `replace` and `replaceAll` with regular expressions (ECMAScript 22.2.6.11). Functions as
//! replacements are called by the prelude.

use super::exec::{behind, group, named, next, places, set_last_index};
use crate::builtins::arg;
use crate::error::Result;
use crate::heap::{push_utf16, to_utf16};
use crate::operator::MAX_STRING;
use crate::regexp::Program;
use crate::value::Value;
use crate::vm::Vm;
use std::sync::Arc;

/// All matches that are to be replaced.
struct Found {
    program: Arc<Program>,
    /// Where each match and its groups are, behind each other.
    all: Vec<Option<(usize, usize)>>,
}

impl Found {
    /// The matches, each with its groups.
    fn matches(&self) -> impl Iterator<Item = &[Option<(usize, usize)>]> {
        self.all.chunks_exact(self.program.groups as usize + 1)
    }
}

fn find_all(vm: &mut Vm, string: Value, regexp: Value) -> Result<Option<Found>> {
    let Some(program) = vm.heap.regexp(regexp).map(|regexp| Arc::clone(&regexp.program)) else { return Ok(None) };
    if program.flags.global {
        set_last_index(vm, regexp, 0)?;
    }
    let mut all = Vec::new();
    let mut room = 0;
    while next(vm, regexp, string)?.is_some() {
        vm.work(program.groups as usize + 1)?;
        if let Some((start, end)) = vm.matcher.group(0)
            && start == end
            && program.flags.global
        {
            let behind = behind(vm, &program, string, end);
            set_last_index(vm, regexp, behind)?;
        }
        all.extend(places(vm, &program));
        if all.len() > room {
            room = all.len() * 2;
            vm.reserve(room * 48)?;
        }
        if !program.flags.global {
            break;
        }
    }
    Ok((!all.is_empty()).then_some(Found { program, all }))
}

/// `$matches(string, regexp)`: for each match its place and the arguments of the function that
/// replaces it.
pub fn matches(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (string, regexp) = (arg(arguments, 0), arg(arguments, 1));
    let mut list = Vec::new();
    if let Some(found) = find_all(vm, string, regexp)? {
        for places in found.matches() {
            vm.work(places.len())?;
            vm.reserve(list.len() * 24)?;
            let mut values = Vec::with_capacity(places.len() + 3);
            for &place in places {
                values.push(group(vm, string, place)?);
            }
            let start = places.first().copied().flatten().map_or(0, |(start, _)| start);
            let groups = named(vm, &found.program, &values);
            values.extend([Value::number(start as f64), string]);
            if !groups.is_undefined() {
                values.push(groups);
            }
            let values = vm.heap.new_array(values);
            list.extend([Value::number(start as f64), values]);
        }
    }
    Ok(vm.heap.new_array(list))
}

/// `$replaceMatches(string, regexp, replacement)` with a text as replacement.
pub fn replace_matches(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (string, regexp) = (arg(arguments, 0), arg(arguments, 1));
    let replacement = vm.to_string(arg(arguments, 2))?;
    let Some(found) = find_all(vm, string, regexp)? else { return Ok(string) };
    if vm.heap.str(string).is_ascii() && vm.heap.str(replacement).is_ascii() {
        let text = vm.heap.bytes(string).to_vec();
        let template = vm.heap.bytes(replacement).to_vec();
        let out = replaced(vm, &text, &template, &found)?;
        return Ok(vm.heap.take_string(out));
    }
    let (text, template) = (to_utf16(vm.heap.bytes(string)), to_utf16(vm.heap.bytes(replacement)));
    let out = replaced(vm, &text, &template, &found)?;
    let mut bytes = Vec::with_capacity(out.len());
    push_utf16(&out, &mut bytes);
    Ok(vm.heap.take_string(bytes))
}

/// The text with all matches replaced.
fn replaced<U: Copy + Into<u16>>(vm: &mut Vm, text: &[U], template: &[U], found: &Found) -> Result<Vec<U>> {
    vm.reserve(text.len() * 4)?;
    vm.work(text.len() / 32)?;
    let pieces = pieces(template, &found.program);
    let mut out = Vec::with_capacity(text.len());
    let mut begin = 0;
    for places in found.matches() {
        let Some((start, end)) = places.first().copied().flatten() else { continue };
        if start < begin {
            continue;
        }
        out.extend_from_slice(&text[begin..start]);
        vm.work(1 + pieces.len())?;
        for piece in &pieces {
            let part = match *piece {
                Piece::Literal(literal) => literal,
                Piece::Before => &text[..start],
                Piece::After => &text[end..],
                Piece::Group(number) => match places.get(number).copied().flatten() {
                    Some((start, end)) => &text[start..end],
                    None => &[],
                },
            };
            grow(vm, &mut out, part)?;
        }
        begin = end;
    }
    grow(vm, &mut out, &text[begin..])?;
    Ok(out)
}

fn grow<U: Copy>(vm: &mut Vm, out: &mut Vec<U>, part: &[U]) -> Result<()> {
    let length = out.len() + part.len();
    if length as u64 > MAX_STRING {
        return Err(vm.range_error("Invalid string length"));
    }
    if length > out.capacity() {
        vm.reserve(length.saturating_mul(2 * size_of::<U>()))?;
    }
    vm.work(part.len() / 64)?;
    out.extend_from_slice(part);
    Ok(())
}

/// A piece of a replacement (22.1.3.19.1).
enum Piece<'a, U> {
    Literal(&'a [U]),
    /// `` $` ``
    Before,
    /// `$'`
    After,
    /// `$&`, `$1`, `$<name>`
    Group(usize),
}

fn pieces<'a, U: Copy + Into<u16>>(template: &'a [U], program: &Program) -> Vec<Piece<'a, U>> {
    let mut pieces = Vec::new();
    let (mut at, mut begin) = (0, 0);
    let unit = |at: usize| -> u8 { template.get(at).map_or(0, |&unit| u8::try_from(unit.into()).unwrap_or(0)) };
    while at < template.len() {
        if unit(at) != b'$' {
            at += 1;
            continue;
        }
        let special = match unit(at + 1) {
            b'$' => Some((Piece::Literal(&template[at..=at]), 2)),
            b'&' => Some((Piece::Group(0), 2)),
            b'`' => Some((Piece::Before, 2)),
            b'\'' => Some((Piece::After, 2)),
            b'0'..=b'9' => {
                digits(unit(at + 1), unit(at + 2), program).map(|(group, width)| (Piece::Group(group), width))
            }
            b'<' if !program.names.is_empty() => name(&template[at + 2..], program)
                .map(|(group, width)| (group.map_or(Piece::Literal(&[]), Piece::Group), width + 2)),
            _ => None,
        };
        let Some((piece, width)) = special else {
            at += 1;
            continue;
        };
        pieces.push(Piece::Literal(&template[begin..at]));
        pieces.push(piece);
        at += width;
        begin = at;
    }
    pieces.push(Piece::Literal(&template[begin..]));
    pieces.retain(|piece| !matches!(piece, Piece::Literal([])));
    pieces
}

/// The group of one or two digits behind a `$`, and how long all that is; two where there is such a
/// group.
fn digits(first: u8, second: u8, program: &Program) -> Option<(usize, usize)> {
    let tens = usize::from(first - b'0');
    let exists = |group: usize| group >= 1 && group <= program.groups as usize;
    if second.is_ascii_digit() {
        let both = tens * 10 + usize::from(second - b'0');
        if exists(both) {
            return Some((both, 3));
        }
    }
    exists(tens).then_some((tens, 2))
}

/// The group of the name up to the next `>`, if there is one, and how long it is with that.
fn name<U: Copy + Into<u16>>(rest: &[U], program: &Program) -> Option<(Option<usize>, usize)> {
    let end = rest.iter().position(|&unit| unit.into() == u16::from(b'>'))?;
    let units: Vec<u16> = rest[..end].iter().map(|&unit| unit.into()).collect();
    let mut bytes = Vec::new();
    push_utf16(&units, &mut bytes);
    let group = program.names.iter().find(|(name, _)| **name == *bytes).map(|&(_, number)| number as usize);
    Some((group, end + 1))
}
