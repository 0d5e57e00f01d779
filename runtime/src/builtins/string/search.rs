//! Finding, splitting and replacing parts of strings, by strings.

use super::find::{BackwardSearch, Search, Unit, common};
use super::{Result, Value, Vm, arg, charged_byte_position, clamped, part, receiver, room, scan};
use crate::heap::charge::BYTES_A_STEP;
use crate::meter::buffer::Buffer;
use crate::meter::{Charge, Meter};
use crate::text::wtf8::units;
use crate::value::atom::known;
use crate::value::numeric::to_int32;

/// `string.endsWith(search, end)`
pub fn ends_with(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "endsWith")?;
    no_pattern(vm, arguments, "endsWith")?;
    let search = vm.to_string(arg(arguments, 0))?;
    let length = vm.heap.str(string).units as usize;
    let end = clamped(vm, arg(arguments, 1), length, length)?;
    let Some(start) = end.checked_sub(vm.heap.str(search).units as usize) else { return Ok(Value::FALSE) };
    is_at(vm, string, search, start)
}

/// `string.includes(search, start)`
pub fn includes(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "includes")?;
    no_pattern(vm, arguments, "includes")?;
    Ok(Value::bool(first(vm, string, arguments)?.is_some()))
}

/// `string.indexOf(search, start)`
pub fn index_of(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "indexOf")?;
    Ok(position(first(vm, string, arguments)?))
}

/// `string.lastIndexOf(search, start)`
pub fn last_index_of(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "lastIndexOf")?;
    let search = vm.to_string(arg(arguments, 0))?;
    let start = vm.to_number(arg(arguments, 1))?;
    let (text, wanted) = (vm.heap.str(string), vm.heap.str(search));
    let Some(last) = text.units.checked_sub(wanted.units) else { return Ok(position(None)) };
    let start = if start.is_nan() { last } else { start.trunc().clamp(0.0, f64::from(last)) as u32 } as usize;
    if wanted.bytes == 0 {
        return Ok(position(Some(start)));
    }
    if text.is_ascii() && !wanted.is_ascii() {
        return Ok(position(None));
    }
    if is_searched_by_units(vm, string, search) {
        vm.heap.charged_utf16(string)?;
        let needle = vm.heap.charged_utf16_copy(search)?;
        let (texts, meter) = vm.heap.texts();
        let search = BackwardSearch::new(texts.utf16(string), &needle[..]);
        return Ok(position(search.last(meter, start + needle.len())?));
    }
    // A start inside a pair means the pair: no match begins at its second half.
    let (from, is_split) = if text.is_ascii() { (start, false) } else { charged_byte_position(vm, string, start)? };
    let from = if is_split { from - 4 } else { from };
    let end = (from + wanted.bytes as usize).min(text.bytes as usize);
    let (texts, meter) = vm.heap.texts();
    let bytes = texts.bytes(string);
    let found = BackwardSearch::new(bytes, texts.bytes(search)).last(meter, end)?;
    let Some(at) = found.filter(|_| !text.is_ascii()) else { return Ok(position(found)) };
    meter.work(at / BYTES_A_STEP)?;
    Ok(position(Some(units(&bytes[..at]))))
}

/// `string.split(separator, limit)`
pub fn split(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "split")?;
    if vm.heap.regexp(arg(arguments, 0)).is_some() {
        return crate::builtins::regexp::split(vm, string, arg(arguments, 0), arg(arguments, 1));
    }
    let limit = match arg(arguments, 1) {
        Value::UNDEFINED => usize::MAX,
        limit => to_int32(vm.to_number(limit)?) as u32 as usize,
    };
    let separator = arg(arguments, 0);
    let search = vm.to_string(separator)?;
    if limit == 0 {
        return Ok(vm.heap.array_of(Buffer::new()));
    }
    if separator.is_undefined() {
        return Ok(vm.heap.new_array(vec![string]));
    }
    if vm.heap.str(search).bytes == 0 {
        return characters(vm, string, limit);
    }
    if vm.heap.str(string).is_ascii()
        && let &[byte] = vm.heap.first_bytes::<2>(search)
    {
        return split_at_byte(vm, string, byte, limit);
    }
    let matches = all_matches(vm, string, search, limit)?;
    let mut pieces = Buffer::with_capacity(vm, (matches.found.len() + 1).min(limit))?;
    let header = vm.heap.str(search);
    let length = if matches.in_units { header.units } else { header.bytes } as usize;
    let mut begin = 0;
    for &at in matches.found.iter() {
        let at = at as usize;
        vm.work(1)?;
        let piece = between(vm, string, matches.in_units, begin, at)?;
        pieces.push(vm, piece)?;
        begin = at + length;
    }
    if pieces.len() < limit {
        let header = vm.heap.str(string);
        let end = if matches.in_units { header.units } else { header.bytes } as usize;
        let piece = between(vm, string, matches.in_units, begin, end)?;
        pieces.push(vm, piece)?;
    }
    Ok(vm.heap.array_of(pieces))
}

/// The part of a string between two positions, in code units or in bytes.
fn between(vm: &mut Vm, string: Value, in_units: bool, start: usize, end: usize) -> Result {
    if in_units {
        return part(vm, string, start, end);
    }
    if !vm.heap.str(string).is_ascii() {
        vm.work((end - start) / 64)?;
    }
    Ok(vm.heap.slice_bytes(string, start, end))
}

/// The pieces between the bytes of a string in ASCII that are that one.
fn split_at_byte(vm: &mut Vm, string: Value, byte: u8, limit: usize) -> Result {
    let charge = scan(vm, string)?;
    let count = memchr::memchr_iter(byte, vm.heap.read_bytes(string, charge)).count().saturating_add(1).min(limit);
    vm.reserve(count * 24)?;
    let mut pieces = Buffer::with_capacity(vm, count)?;
    let (mut begin, length) = (0, vm.heap.str(string).bytes as usize);
    while pieces.len() < count {
        vm.work(1)?;
        let end = memchr::memchr(byte, &vm.heap.read_bytes(string, charge)[begin..]).map_or(length, |at| begin + at);
        let piece = vm.heap.slice_bytes(string, begin, end);
        pieces.push(vm, piece)?;
        begin = end + 1;
    }
    Ok(vm.heap.array_of(pieces))
}

/// `string.startsWith(search, start)`
pub fn starts_with(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "startsWith")?;
    no_pattern(vm, arguments, "startsWith")?;
    let search = vm.to_string(arg(arguments, 0))?;
    let length = vm.heap.str(string).units as usize;
    let start = clamped(vm, arg(arguments, 1), length, 0)?;
    is_at(vm, string, search, start)
}

/// `string.replace(pattern, replacement)` where the replacement is no function
pub fn replace_directly(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result<Option<Value>> {
    let (pattern, replacement) = (arg(arguments, 0), arg(arguments, 1));
    if vm.type_of(replacement) == "function" {
        return Ok(None);
    }
    if vm.heap.regexp(pattern).is_none() {
        return replace_some(vm, &[this, pattern, replacement], "replace", 1).map(Some);
    }
    if vm.has_own_method(pattern, known::EXEC) {
        return Ok(None);
    }
    let string = receiver(vm, this, "replace")?;
    crate::builtins::regexp::replace_matches(vm, this, &[string, pattern, replacement]).map(Some)
}

/// `string.replaceAll(pattern, replacement)` where the replacement is no function
pub fn replace_all_directly(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result<Option<Value>> {
    match vm.heap.regexp(arg(arguments, 0)).map(|regexp| regexp.program.flags.global) {
        Some(true) => replace_directly(vm, this, arguments),
        None if vm.type_of(arg(arguments, 1)) != "function" => {
            replace_some(vm, &[this, arg(arguments, 0), arg(arguments, 1)], "replaceAll", usize::MAX).map(Some)
        }
        Some(false) | None => Ok(None),
    }
}

/// `$replace(self, pattern, replacement)`: the first match, by a string.
pub fn replace(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    replace_some(vm, arguments, "replace", 1)
}

/// `$replaceAll(self, pattern, replacement)`: all matches, by a string.
pub fn replace_all(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    replace_some(vm, arguments, "replaceAll", usize::MAX)
}

fn replace_some(vm: &mut Vm, arguments: &[Value], method: &str, limit: usize) -> Result {
    let string = receiver(vm, arg(arguments, 0), method)?;
    let search = vm.to_string(arg(arguments, 1))?;
    let replacement = vm.to_string(arg(arguments, 2))?;
    let charge = scan(vm, replacement)?;
    let has_template = vm.heap.read_bytes(replacement, charge).contains(&b'$');
    let matches = all_matches(vm, string, search, limit)?;
    if matches.found.is_empty() {
        return Ok(string);
    }
    if matches.in_units {
        // Matches may split surrogate pairs, so this works on code units, as the specification does.
        return replace_units(vm, [string, search, replacement], &matches.found);
    }
    let (text, wanted, new) = (vm.heap.str(string), vm.heap.str(search), vm.heap.str(replacement));
    if has_template {
        let out = substitute(vm, charge, [string, search, replacement], &matches.found)?;
        return vm.heap.string_of_parts(out);
    }
    let count = matches.found.len() as u64;
    let size = |all: u32, old: u32, new: u32| u64::from(all) - u64::from(old) * count + u64::from(new) * count;
    let bytes = size(text.bytes, wanted.bytes, new.bytes);
    let charge = room(vm, size(text.units, wanted.units, new.units), bytes)?;
    let mut out = vm.heap.scratch();
    out.reserve(bytes as usize);
    let (text, template) = (vm.heap.read_bytes(string, charge), vm.heap.read_bytes(replacement, charge));
    let mut begin = 0;
    for &at in matches.found.iter() {
        out.extend_from_slice(&text[begin..at as usize]);
        out.extend_from_slice(template);
        begin = (at + wanted.bytes) as usize;
    }
    out.extend_from_slice(&text[begin..]);
    vm.heap.string_of_parts(out)
}

fn replace_units(vm: &mut Vm, strings: [Value; 3], found: &[u32]) -> Result {
    let [string, search, replacement] = strings;
    let text = vm.heap.charged_utf16_copy(string)?;
    let template = vm.heap.charged_utf16_copy(replacement)?;
    let length = vm.heap.str(search).units as usize;
    let size = substituted_size(&text, length, &template, found);
    // The code units, and three bytes for each.
    room(vm, size, size * 5)?;
    let _units = vm.heap.hold(size as usize * 2)?;
    let out = substituted(&text, length, &template, found, size as usize);
    vm.heap.string_of_utf16(&out)
}

fn substitute(vm: &mut Vm, charge: Charge, strings: [Value; 3], found: &[u32]) -> Result<Vec<u8>> {
    let [string, search, replacement] = strings;
    let length = vm.heap.str(search).bytes as usize;
    let (text, template) = (vm.heap.read_bytes(string, charge), vm.heap.read_bytes(replacement, charge));
    let ascii = vm.heap.str(string).is_ascii() && template.is_ascii();
    // The pieces of the template are evaluated for every match.
    let work = memchr::memchr_iter(b'$', template).count().saturating_mul(found.len());
    let bytes = substituted_size(text, length, template, found);
    vm.work(work)?;
    // Code units are at least a third of the bytes; exact where all is ASCII.
    let charge = room(vm, if ascii { bytes } else { bytes / 3 }, bytes)?;
    let (text, template) = (vm.heap.read_bytes(string, charge), vm.heap.read_bytes(replacement, charge));
    Ok(substituted(text, length, template, found, bytes as usize))
}

/// `$matchPositions(string, search)`: where a string occurs in another, as an array of positions.
pub fn match_positions(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (string, search) = (arg(arguments, 0), arg(arguments, 1));
    let matches = all_matches(vm, string, search, usize::MAX)?;
    let mut positions = Buffer::with_capacity(vm, matches.found.len())?;
    let (mut last, mut count) = (0, 0);
    for &at in matches.found.iter() {
        let charge = vm.work(1)?;
        if matches.in_units {
            count = at as usize;
        } else {
            count += units(&vm.heap.read_bytes(string, charge)[last..at as usize]);
            last = at as usize;
        }
        positions.push(vm, Value::number(count as f64))?;
    }
    Ok(vm.heap.array_of(positions))
}

/// A piece of a replacement (ECMAScript 22.1.3.19.1, without captures).
enum Piece<'a, U> {
    Literal(&'a [U]),
    Match,
    Before,
    After,
}

fn pieces<U: Unit>(template: &[U]) -> impl Iterator<Item = Piece<'_, U>> {
    let mut rest = template;
    let is = |unit: Option<&U>, byte: u8| unit.is_some_and(|&unit| unit == U::from(byte));
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if is(rest.first(), b'$') {
            let second = rest.get(1);
            let piece = match second {
                _ if is(second, b'$') => Piece::Literal(&rest[..1]),
                _ if is(second, b'&') => Piece::Match,
                _ if is(second, b'`') => Piece::Before,
                _ if is(second, b'\'') => Piece::After,
                _ => {
                    let (literal, tail) = rest.split_at(1);
                    rest = tail;
                    return Some(Piece::Literal(literal));
                }
            };
            rest = &rest[2..];
            return Some(piece);
        }
        let end = rest.iter().position(|&unit| unit == U::from(b'$')).unwrap_or(rest.len());
        let (literal, tail) = rest.split_at(end);
        rest = tail;
        Some(Piece::Literal(literal))
    })
}

fn substituted_size<U: Unit>(text: &[U], length: usize, template: &[U], found: &[u32]) -> u64 {
    let fixed: u64 = pieces(template)
        .map(|piece| match piece {
            Piece::Literal(literal) => literal.len() as u64,
            Piece::Match => length as u64,
            Piece::Before | Piece::After => 0,
        })
        .sum();
    let befores = pieces(template).filter(|piece| matches!(piece, Piece::Before)).count() as u64;
    let afters = pieces(template).filter(|piece| matches!(piece, Piece::After)).count() as u64;
    let around = found.iter().fold(0_u64, |sum, &at| {
        let after = (text.len() - at as usize - length) as u64;
        sum.saturating_add(befores.saturating_mul(at.into())).saturating_add(afters.saturating_mul(after))
    });
    let rest = text.len() as u64 - (length * found.len()) as u64;
    rest.saturating_add(around).saturating_add(fixed.saturating_mul(found.len() as u64))
}

fn substituted<U: Unit>(text: &[U], length: usize, template: &[U], found: &[u32], size: usize) -> Vec<U> {
    let mut out = Vec::with_capacity(size); // bounded: asked for by the caller
    let mut begin = 0;
    for at in found.iter().map(|&at| at as usize) {
        out.extend_from_slice(&text[begin..at]);
        begin = at + length;
        for piece in pieces(template) {
            out.extend_from_slice(match piece {
                Piece::Literal(literal) => literal,
                Piece::Match => &text[at..begin],
                Piece::Before => &text[..at],
                Piece::After => &text[begin..],
            });
        }
    }
    out.extend_from_slice(&text[begin..]);
    out
}

/// Methods that search a text refuse a regular expression.
fn no_pattern(vm: &mut Vm, arguments: &[Value], method: &str) -> Result<()> {
    if vm.heap.regexp(arg(arguments, 0)).is_none() {
        return Ok(());
    }
    let what = brief!("First argument to String.prototype.{method} must not be a regular expression");
    Err(vm.type_error(&what))
}

fn position(found: Option<usize>) -> Value {
    Value::number(found.map_or(-1.0, |at| at as f64))
}

/// Whether `search` matches at a position.
fn is_at(vm: &mut Vm, string: Value, search: Value, start: usize) -> Result {
    let (text, wanted) = (vm.heap.str(string), vm.heap.str(search));
    if start + wanted.units as usize > text.units as usize {
        return Ok(Value::FALSE);
    }
    let (at, is_split) = if text.is_ascii() { (start, false) } else { charged_byte_position(vm, string, start)? };
    if is_split || is_searched_by_units(vm, string, search) {
        vm.heap.charged_utf16(string)?;
        let wanted = vm.heap.charged_utf16_copy(search)?;
        let (texts, meter) = vm.heap.texts();
        let same = common(meter, &texts.utf16(string)[start..], &wanted)?;
        return Ok(Value::bool(same == wanted.len()));
    }
    let (texts, meter) = vm.heap.texts();
    let (text, wanted) = (texts.bytes(string), texts.bytes(search));
    Ok(Value::bool(common(meter, &text[at..], wanted)? == wanted.len()))
}

/// The first match of the first argument from the position of the second.
fn first(vm: &mut Vm, string: Value, arguments: &[Value]) -> Result<Option<usize>> {
    let search = vm.to_string(arg(arguments, 0))?;
    let length = vm.heap.str(string).units as usize;
    let start = clamped(vm, arg(arguments, 1), length, 0)?;
    let (text, wanted) = (vm.heap.str(string), vm.heap.str(search));
    if wanted.bytes == 0 {
        return Ok(Some(start));
    }
    if text.is_ascii() && !wanted.is_ascii() {
        return Ok(None);
    }
    if is_searched_by_units(vm, string, search) {
        vm.heap.charged_utf16(string)?;
        let wanted = vm.heap.charged_utf16_copy(search)?;
        let (texts, meter) = vm.heap.texts();
        return Search::new(texts.utf16(string), &wanted[..], start).next(meter, start);
    }
    let (from, is_split) = if text.is_ascii() { (start, false) } else { charged_byte_position(vm, string, start)? };
    let (texts, meter) = vm.heap.texts();
    let bytes = texts.bytes(string);
    let found = Search::new(bytes, texts.bytes(search), from).next(meter, from)?;
    let Some(at) = found.filter(|_| !text.is_ascii()) else { return Ok(found) };
    meter.work((at - from) / BYTES_A_STEP)?;
    Ok(Some(start + usize::from(is_split) + units(&bytes[from..at])))
}

/// Where a string occurs in another.
struct Matches {
    found: Buffer<u32>,
    /// Whether positions are code units, as a match may begin or end within a pair of surrogates; else bytes.
    in_units: bool,
}

/// The first `limit` matches of a string, none of which overlap; an empty one matches everywhere.
fn all_matches(vm: &mut Vm, string: Value, search: Value, limit: usize) -> Result<Matches> {
    let (text, wanted) = (vm.heap.str(string), vm.heap.str(search));
    if text.is_ascii() && !wanted.is_ascii() {
        return Ok(Matches { found: Buffer::new(), in_units: false });
    }
    if !text.is_ascii() && wanted.bytes == 0 || is_searched_by_units(vm, string, search) {
        vm.heap.charged_utf16(string)?;
        let wanted = vm.heap.charged_utf16_copy(search)?;
        let (texts, meter) = vm.heap.texts();
        let found = occurrences(meter, texts.utf16(string), &wanted[..], limit)?;
        return Ok(Matches { found, in_units: true });
    }
    let (texts, meter) = vm.heap.texts();
    let found = occurrences(meter, texts.bytes(string), texts.bytes(search), limit)?;
    Ok(Matches { found, in_units: false })
}

/// The positions of a text.
fn occurrences<U: Unit>(meter: &mut Meter, text: &[U], wanted: &[U], limit: usize) -> Result<Buffer<u32>> {
    let mut found = Buffer::new();
    let mut search = Search::new(text, wanted, 0);
    let mut from = 0;
    while found.len() < limit && from <= text.len() {
        let Some(at) = search.next(meter, from)? else { break };
        meter.work(1)?;
        found.push(&*meter, at as u32)?;
        from = at + wanted.len().max(1);
    }
    Ok(found)
}

/// Every code unit as a string.
fn characters(vm: &mut Vm, string: Value, limit: usize) -> Result {
    let header = vm.heap.str(string);
    let count = (header.units as usize).min(limit);
    vm.reserve(count.saturating_mul(24))?;
    let mut items = Buffer::with_capacity(vm, count)?;
    if !header.is_ascii() {
        vm.heap.charged_utf16(string)?;
    }
    for index in 0..count {
        let charge = vm.work(1)?;
        let item = if header.is_ascii() {
            vm.heap.slice_bytes(string, index, index + 1)
        } else {
            let unit = vm.heap.read_utf16(string, charge)[index];
            vm.heap.new_utf16(&[unit])
        };
        items.push(vm, item)?;
    }
    Ok(vm.heap.array_of(items))
}

/// Whether the text that is searched for can match within a pair of surrogates: where it begins or ends with a lone one.
fn is_searched_by_units(vm: &Vm, string: Value, search: Value) -> bool {
    let is_loose = matches!(vm.heap.first_bytes::<2>(search), [0xED, 0xB0..=0xBF])
        || matches!(vm.heap.last_bytes::<3>(search), [0xED, 0xA0..=0xAF, _]);
    is_loose && !vm.heap.str(string).is_ascii()
}
