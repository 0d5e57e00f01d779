//! `replace` and `replaceAll` with regular expressions (ECMAScript 22.2.6.11). Functions as
//! replacements are called by the prelude.

use super::exec::{behind, group, named, next, set_last_index};
use crate::builtins::arg;
use crate::eval::operator::MAX_STRING;
use crate::eval::vm::Vm;
use crate::meter::Charge;
use crate::meter::buffer::Buffer;
use crate::regexp::Program;
use crate::text::wtf8::to_utf16;
use crate::value::Value;
use crate::value::thrown::Result;

use std::sync::Arc;

/// Calls `visit` for each match that is to be replaced, whose groups the matcher knows.
fn for_each_match(
    vm: &mut Vm,
    string: Value,
    regexp: Value,
    mut visit: impl FnMut(&mut Vm, &Arc<Program>, (usize, usize)) -> Result<()>,
) -> Result<()> {
    let global = vm.heap.regexp(regexp).is_some_and(|regexp| regexp.program.flags.global);
    if global {
        set_last_index(vm, regexp, 0)?;
    }
    while let Some(program) = next(vm, regexp, string)? {
        vm.work(program.groups as usize + 1)?;
        let Some((start, end)) = vm.pools.matcher.group(0) else { break };
        if start == end && global {
            let behind = behind(vm, &program, string, end)?;
            set_last_index(vm, regexp, behind)?;
        }
        visit(vm, &program, (start, end))?;
        if !global {
            break;
        }
    }
    Ok(())
}

/// `$matches(string, regexp)`: for each match its range and the arguments of the function that
/// replaces it.
pub fn matches(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (string, regexp) = (arg(arguments, 0), arg(arguments, 1));
    let mut list = Buffer::new();
    for_each_match(vm, string, regexp, |vm, program, (start, _)| {
        let mut values = Buffer::with_capacity(vm, program.groups as usize + 4)?;
        for number in 0..=program.groups {
            let range = vm.pools.matcher.group(number);
            let text = group(vm, string, range)?;
            values.push(vm, text)?;
        }
        let groups = named(vm, program, &values)?;
        values.extend_from_slice(vm, &[Value::number(start as f64), string])?;
        if !groups.is_undefined() {
            values.push(vm, groups)?;
        }
        // The results are counted, and may exceed the limit.
        vm.reserve(values.len() * 8)?;
        let values = vm.heap.array_of(values);
        list.extend_from_slice(vm, &[Value::number(start as f64), values])
    })?;
    Ok(vm.heap.array_of(list))
}

/// `$replaceMatches(string, regexp, replacement)` with a text as replacement.
pub fn replace_matches(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (string, regexp) = (arg(arguments, 0), arg(arguments, 1));
    let replacement = vm.to_string(arg(arguments, 2))?;
    let Some(program) = vm.heap.regexp(regexp).map(|regexp| Arc::clone(&regexp.program)) else { return Ok(string) };
    if vm.heap.str(string).is_ascii() && vm.heap.str(replacement).is_ascii() {
        let template = vm.heap.charged_copy(replacement)?;
        let out = replaced(vm, [string, regexp], &program, &template, None)?;
        return Ok(out.map_or(string, |out| vm.heap.string_of(out)));
    }
    let template = vm.heap.charged_utf16_copy(replacement)?;
    if vm.heap.str(string).is_ascii() {
        // Bytes are code units too, and no others are kept of such a string.
        let text = vm.heap.charged_utf16_copy(string)?;
        let out = replaced(vm, [string, regexp], &program, &template[..], Some(&text[..]))?;
        return out.map_or(Ok(string), |out| vm.heap.string_of_utf16(&out));
    }
    vm.heap.charged_utf16(string)?;
    let out = replaced(vm, [string, regexp], &program, &template[..], None)?;
    out.map_or(Ok(string), |out| vm.heap.string_of_utf16(&out))
}

/// Units of texts and templates: bytes of ASCII, or UTF-16 code units.
trait Unit: Copy + Into<u16> {
    /// The text of a string.
    fn text(vm: &Vm, string: Value, charge: Charge) -> &[Self];
}

impl Unit for u8 {
    fn text(vm: &Vm, string: Value, charge: Charge) -> &[u8] {
        vm.heap.read_bytes(string, charge)
    }
}

impl Unit for u16 {
    fn text(vm: &Vm, string: Value, charge: Charge) -> &[u16] {
        vm.heap.read_utf16(string, charge)
    }
}

/// The text with all matches replaced; `None` where there is none. `copy` is the text, where the string has it in
/// another form.
fn replaced<U: Unit>(
    vm: &mut Vm,
    [string, regexp]: [Value; 2],
    program: &Arc<Program>,
    template: &[U],
    copy: Option<&[U]>,
) -> Result<Option<Buffer<U>>> {
    let _pieces = vm.heap.hold(template.len() * size_of::<Piece<'_, U>>())?;
    vm.work(template.len() / 8)?;
    let pieces = pieces(template, program);
    let mut out = Buffer::new();
    let (mut begin, mut found) = (0, false);
    let length = vm.heap.str(string).units as usize;
    for_each_match(vm, string, regexp, |vm, _, (start, end)| {
        if !found {
            out.room(vm, length)?;
            found = true;
        }
        if start < begin {
            return Ok(());
        }
        append(vm, &mut out, copy, string, (begin, start))?;
        for piece in &pieces {
            vm.work(1)?;
            let range = match *piece {
                Piece::Literal(literal) => {
                    grow(vm, &mut out, literal)?;
                    continue;
                }
                Piece::Before => (0, start),
                Piece::After => (end, length),
                Piece::Group(number) => match vm.pools.matcher.group(number as u32) {
                    Some(range) => range,
                    None => continue,
                },
            };
            append(vm, &mut out, copy, string, range)?;
        }
        begin = end;
        Ok(())
    })?;
    if !found {
        return Ok(None);
    }
    append(vm, &mut out, copy, string, (begin, length))?;
    Ok(Some(out))
}

/// Append a part of the text.
fn append<U: Unit>(
    vm: &mut Vm,
    out: &mut Buffer<U>,
    copy: Option<&[U]>,
    string: Value,
    (start, end): (usize, usize),
) -> Result<()> {
    let charge = check(vm, out, end - start)?;
    let text = copy.unwrap_or_else(|| U::text(vm, string, charge));
    out.extend_from_slice(vm, &text[start..end])
}

fn check<U>(vm: &mut Vm, out: &Buffer<U>, more: usize) -> Result<Charge> {
    if (out.len() + more) as u64 > MAX_STRING {
        return Err(vm.range_error("Invalid string length"));
    }
    vm.work(more / 64)
}

fn grow<U: Copy>(vm: &mut Vm, out: &mut Buffer<U>, part: &[U]) -> Result<()> {
    check(vm, out, part.len())?;
    out.extend_from_slice(vm, part)
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
    let mut pieces = Vec::new(); // bounded: held by the caller
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
    let end_of_name = program.names.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    if end > end_of_name {
        return Some((None, end + 1));
    }
    let is_it = |name: &[u8]| to_utf16(name).into_iter().eq(rest[..end].iter().map(|&unit| unit.into()));
    let group = program.names.iter().find(|(name, _)| is_it(name)).map(|&(_, number)| number as usize);
    Some((group, end + 1))
}
