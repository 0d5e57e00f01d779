//! Finding, splitting and replacing parts of strings, by strings.

use super::{Result, Value, Vm, arg, byte_position, clamped, part, receiver, room, scan};
use crate::convert::{to_int32, type_of};
use crate::heap::{to_utf16, units};

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
    scan(vm, string)?;
    let (text, wanted) = (vm.heap.str(string), vm.heap.str(search));
    let Some(last) = text.units.checked_sub(wanted.units) else { return Ok(position(None)) };
    let start = if start.is_nan() { last } else { start.trunc().clamp(0.0, f64::from(last)) as u32 } as usize;
    if wanted.bytes == 0 {
        return Ok(position(Some(start)));
    }
    if text.is_ascii() && !wanted.is_ascii() {
        return Ok(position(None));
    }
    let (bytes, needle) = (vm.heap.bytes(string), vm.heap.bytes(search));
    if !text.is_ascii() && has_loose_edge(needle) {
        let (text, wanted) = (to_utf16(bytes), to_utf16(needle));
        vm.work(text.len())?;
        let found = (0..=start).rev().find(|&at| text[at..].starts_with(&wanted));
        return Ok(position(found));
    }
    // A start inside of a pair stands for the pair: nothing can begin at its second half.
    let (from, split) = if text.is_ascii() { (start, false) } else { byte_position(bytes, start) };
    let from = if split { from - 4 } else { from };
    let end = (from + needle.len()).min(bytes.len());
    let found = rfind(&bytes[..end], needle);
    Ok(position(found.map(|at| units(&bytes[..at]))))
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
        return Ok(vm.heap.new_array(Vec::new()));
    }
    if separator.is_undefined() {
        return Ok(vm.heap.new_array(vec![string]));
    }
    if vm.heap.str(search).bytes == 0 {
        return characters(vm, string, limit);
    }
    if vm.heap.str(string).is_ascii() && vm.heap.str(search).bytes == 1 {
        return split_at_byte(vm, string, vm.heap.bytes(search)[0], limit);
    }
    let matches = all_matches(vm, string, search, limit)?;
    vm.reserve((matches.len() + 1) * 24)?;
    let mut pieces = Vec::with_capacity(matches.len() + 1);
    let length = vm.heap.str(search).bytes as usize;
    let mut begin = 0;
    match matches {
        Matches::Bytes(found) => {
            for at in found {
                pieces.push(vm.heap.slice_bytes(string, begin, at));
                begin = at + length;
            }
            if pieces.len() < limit {
                let end = vm.heap.str(string).bytes as usize;
                pieces.push(vm.heap.slice_bytes(string, begin, end));
            }
        }
        Matches::Units(found) => {
            let length = vm.heap.str(search).units as usize;
            for at in found {
                pieces.push(part(vm, string, begin, at)?);
                begin = at + length;
            }
            if pieces.len() < limit {
                let end = vm.heap.str(string).units as usize;
                pieces.push(part(vm, string, begin, end)?);
            }
        }
    }
    Ok(vm.heap.new_array(pieces))
}

/// The pieces between the bytes of a string in ASCII that are that one.
fn split_at_byte(vm: &mut Vm, string: Value, byte: u8, limit: usize) -> Result {
    scan(vm, string)?;
    let count = memchr::memchr_iter(byte, vm.heap.bytes(string)).count().saturating_add(1).min(limit);
    vm.work(count)?;
    vm.reserve(count * 24)?;
    let mut pieces = Vec::with_capacity(count);
    let (mut begin, length) = (0, vm.heap.str(string).bytes as usize);
    while pieces.len() < count {
        let end = memchr::memchr(byte, &vm.heap.bytes(string)[begin..]).map_or(length, |at| begin + at);
        pieces.push(vm.heap.slice_bytes(string, begin, end));
        begin = end + 1;
    }
    Ok(vm.heap.new_array(pieces))
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
    if type_of(replacement) == "function" {
        return Ok(None);
    }
    if vm.heap.regexp(pattern).is_none() {
        return replace_some(vm, &[this, pattern, replacement], "replace", 1).map(Some);
    }
    let string = receiver(vm, this, "replace")?;
    crate::builtins::regexp::replace_matches(vm, this, &[string, pattern, replacement]).map(Some)
}

/// `string.replaceAll(pattern, replacement)` where the replacement is no function
pub fn replace_all_directly(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result<Option<Value>> {
    match vm.heap.regexp(arg(arguments, 0)).map(|regexp| regexp.program.flags.global) {
        Some(true) => replace_directly(vm, this, arguments),
        None if type_of(arg(arguments, 1)) != "function" => {
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
    match all_matches(vm, string, search, limit)? {
        matches if matches.len() == 0 => Ok(string),
        Matches::Bytes(found) if !vm.heap.bytes(replacement).contains(&b'$') => {
            let (text, wanted) = (vm.heap.str(string), vm.heap.str(search));
            let new = vm.heap.str(replacement);
            let size = |all: u32, old: u32, new: u32| {
                u64::from(all) - u64::from(old) * found.len() as u64 + u64::from(new) * found.len() as u64
            };
            let bytes = size(text.bytes, wanted.bytes, new.bytes);
            room(vm, size(text.units, wanted.units, new.units), bytes)?;
            let mut out = vm.heap.scratch();
            out.reserve(bytes as usize);
            let (text, template) = (vm.heap.bytes(string), vm.heap.bytes(replacement));
            let mut begin = 0;
            for at in found {
                out.extend_from_slice(&text[begin..at]);
                out.extend_from_slice(template);
                begin = at + wanted.bytes as usize;
            }
            out.extend_from_slice(&text[begin..]);
            Ok(vm.heap.written(out))
        }
        Matches::Bytes(found) => {
            let out = substitute(vm, vm.heap.str(string).units, [string, search, replacement], &found)?;
            Ok(vm.heap.written(out))
        }
        Matches::Units(found) => {
            // Halves of pairs are replaced: work on code units, as the specification does.
            let text = to_utf16(vm.heap.bytes(string));
            let (wanted, template) = (to_utf16(vm.heap.bytes(search)), to_utf16(vm.heap.bytes(replacement)));
            vm.work(text.len())?;
            let size = substituted_size(&text, wanted.len(), &template, &found);
            room(vm, size, size * 3)?;
            let out = substituted(&text, wanted.len(), &template, &found);
            Ok(vm.heap.new_utf16(&out))
        }
    }
}

fn substitute(vm: &mut Vm, before: u32, strings: [Value; 3], found: &[usize]) -> Result<Vec<u8>> {
    let [string, search, replacement] = strings;
    let (text, wanted) = (vm.heap.bytes(string), vm.heap.bytes(search).len());
    let template = vm.heap.bytes(replacement);
    let bytes = substituted_size(text, wanted, template, found);
    // Code units are at least a third of the bytes; exact where all is ASCII.
    let ascii = before as usize == text.len() && template.is_ascii();
    room(vm, if ascii { bytes } else { bytes / 3 }, bytes)?;
    Ok(substituted(vm.heap.bytes(string), wanted, vm.heap.bytes(replacement), found))
}

/// `$matchPositions(string, search)`: where a string occurs in another, as an array of positions.
pub fn match_positions(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (string, search) = (arg(arguments, 0), arg(arguments, 1));
    let found = match all_matches(vm, string, search, usize::MAX)? {
        Matches::Units(found) => found,
        Matches::Bytes(found) => {
            let bytes = vm.heap.bytes(string);
            let (mut last, mut count) = (0, 0);
            let mut translate = |at: usize| {
                count += units(&bytes[last..at]);
                last = at;
                count
            };
            found.into_iter().map(&mut translate).collect()
        }
    };
    vm.reserve(found.len() * 8)?;
    let positions = found.into_iter().map(|at| Value::number(at as f64)).collect();
    Ok(vm.heap.new_array(positions))
}

/// What templates and texts are made of: bytes or UTF-16 code units.
trait Unit: Copy + PartialEq + From<u8> {
    /// The first place of a unit.
    fn place(self, text: &[Self]) -> Option<usize>;
}

impl Unit for u8 {
    #[inline]
    fn place(self, text: &[Self]) -> Option<usize> {
        memchr::memchr(self, text)
    }
}

impl Unit for u16 {
    fn place(self, text: &[Self]) -> Option<usize> {
        text.iter().position(|&unit| unit == self)
    }
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

fn substituted_size<U: Unit>(text: &[U], length: usize, template: &[U], found: &[usize]) -> u64 {
    let fixed: u64 = pieces(template)
        .map(|piece| match piece {
            Piece::Literal(literal) => literal.len() as u64,
            Piece::Match => length as u64,
            Piece::Before | Piece::After => 0,
        })
        .sum();
    let befores = pieces(template).filter(|piece| matches!(piece, Piece::Before)).count() as u64;
    let afters = pieces(template).filter(|piece| matches!(piece, Piece::After)).count() as u64;
    let around: u64 = found.iter().map(|&at| befores * at as u64 + afters * (text.len() - at - length) as u64).sum();
    text.len() as u64 + around + fixed * found.len() as u64 - (length * found.len()) as u64
}

fn substituted<U: Unit>(text: &[U], length: usize, template: &[U], found: &[usize]) -> Vec<U> {
    let mut out = Vec::with_capacity(substituted_size(text, length, template, found) as usize);
    let mut begin = 0;
    for &at in found {
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

/// What looks for a text does not take a regular expression.
fn no_pattern(vm: &mut Vm, arguments: &[Value], method: &str) -> Result<()> {
    if vm.heap.regexp(arg(arguments, 0)).is_none() {
        return Ok(());
    }
    let what = format!("First argument to String.prototype.{method} must not be a regular expression");
    Err(vm.type_error(&what))
}

fn position(found: Option<usize>) -> Value {
    Value::number(found.map_or(-1.0, |at| at as f64))
}

/// Whether `search` stands at a position.
fn is_at(vm: &mut Vm, string: Value, search: Value, start: usize) -> Result {
    let (text, wanted) = (vm.heap.str(string), vm.heap.str(search));
    if start + wanted.units as usize > text.units as usize {
        return Ok(Value::FALSE);
    }
    scan(vm, search)?;
    let (bytes, needle) = (vm.heap.bytes(string), vm.heap.bytes(search));
    if text.is_ascii() {
        return Ok(Value::bool(bytes[start..].starts_with(needle)));
    }
    vm.work(start / 32)?;
    let (bytes, needle) = (vm.heap.bytes(string), vm.heap.bytes(search));
    let (at, split) = byte_position(bytes, start);
    if split || has_loose_edge(needle) {
        let wanted = to_utf16(needle);
        return Ok(Value::bool(wanted.is_empty() || vm.heap.utf16(string)[start..].starts_with(&wanted)));
    }
    Ok(Value::bool(bytes[at..].starts_with(needle)))
}

/// The first match of the first argument from the position of the second.
fn first(vm: &mut Vm, string: Value, arguments: &[Value]) -> Result<Option<usize>> {
    let search = vm.to_string(arg(arguments, 0))?;
    let length = vm.heap.str(string).units as usize;
    let start = clamped(vm, arg(arguments, 1), length, 0)?;
    scan(vm, string)?;
    let (text, wanted) = (vm.heap.str(string), vm.heap.str(search));
    if wanted.bytes == 0 {
        return Ok(Some(start));
    }
    if text.is_ascii() && !wanted.is_ascii() {
        return Ok(None);
    }
    let (bytes, needle) = (vm.heap.bytes(string), vm.heap.bytes(search));
    if text.is_ascii() {
        return Ok(find(&bytes[start..], needle).map(|at| start + at));
    }
    if has_loose_edge(needle) {
        let wanted = to_utf16(needle);
        let text = vm.heap.utf16(string);
        return Ok(find(&text[start..], &wanted).map(|at| start + at));
    }
    let (from, split) = byte_position(bytes, start);
    let start = start + usize::from(split);
    Ok(find(&bytes[from..], needle).map(|at| start + units(&bytes[from..from + at])))
}

/// Where a string occurs in another.
enum Matches {
    /// In bytes.
    Bytes(Vec<usize>),
    /// In code units, where a match may begin or end within a pair of surrogates.
    Units(Vec<usize>),
}

impl Matches {
    fn len(&self) -> usize {
        let (Self::Bytes(found) | Self::Units(found)) = self;
        found.len()
    }
}

/// The first `limit` matches of a string, none of which overlap; an empty one matches everywhere.
fn all_matches(vm: &mut Vm, string: Value, search: Value, limit: usize) -> Result<Matches> {
    scan(vm, string)?;
    let (text, wanted) = (vm.heap.str(string), vm.heap.str(search));
    if text.is_ascii() && !wanted.is_ascii() {
        return Ok(Matches::Bytes(Vec::new()));
    }
    if !text.is_ascii() && (wanted.bytes == 0 || has_loose_edge(vm.heap.bytes(search))) {
        vm.reserve(text.units as usize * 2)?;
        let wanted = to_utf16(vm.heap.bytes(search));
        let found = occurrences(vm.heap.utf16(string), &wanted, limit);
        vm.work(found.len())?;
        return Ok(Matches::Units(found));
    }
    let found = occurrences(vm.heap.bytes(string), vm.heap.bytes(search), limit);
    vm.work(found.len())?;
    Ok(Matches::Bytes(found))
}

fn occurrences<U: Unit>(text: &[U], wanted: &[U], limit: usize) -> Vec<usize> {
    if wanted.is_empty() {
        return (0..=text.len()).take(limit).collect();
    }
    let mut found = Vec::new();
    let mut from = 0;
    while found.len() < limit
        && let Some(at) = find(&text[from..], wanted)
    {
        found.push(from + at);
        from += at + wanted.len();
    }
    found
}

/// Every code unit as a string.
fn characters(vm: &mut Vm, string: Value, limit: usize) -> Result {
    let header = vm.heap.str(string);
    let count = (header.units as usize).min(limit);
    vm.work(count)?;
    vm.reserve(count * 24)?;
    let mut items = Vec::with_capacity(count);
    if header.is_ascii() {
        items.extend((0..count).map(|index| vm.heap.slice_bytes(string, index, index + 1)));
    } else {
        let units = vm.heap.utf16(string)[..count].to_vec();
        items.extend(units.iter().map(|&unit| vm.heap.new_utf16(&[unit])));
    }
    Ok(vm.heap.new_array(items))
}

/// Whether WTF-8 begins or ends with half of a pair: it can then match within a pair.
fn has_loose_edge(bytes: &[u8]) -> bool {
    matches!(bytes, [0xED, 0xB0..=0xBF, ..] | [.., 0xED, 0xA0..=0xAF, _])
}

/// The first place of `wanted` in `text`, in linear time.
fn find<U: Unit>(text: &[U], wanted: &[U]) -> Option<usize> {
    let Some(&first) = wanted.first() else { return Some(0) };
    if wanted.len() == 1 {
        return first.place(text);
    }
    if text.len() < wanted.len() {
        return None;
    }
    // Most first units do not match, and most matches are short. Where that is not so, the work
    // spent in vain is bounded, then the search goes on with a table.
    let (mut at, mut spent) = (0, 0);
    let last = text.len() - wanted.len();
    while at <= last {
        at += first.place(&text[at..=last])?;
        let same = text[at..].iter().zip(wanted).take_while(|(a, b)| a == b).count();
        if same == wanted.len() {
            return Some(at);
        }
        at += 1;
        spent += same;
        if spent > 4 * at + 64 {
            return find_by_table(&text[at..], wanted).map(|found| at + found);
        }
    }
    None
}

/// Knuth, Morris and Pratt.
fn find_by_table<U: Unit>(text: &[U], wanted: &[U]) -> Option<usize> {
    let mut table = vec![0_usize; wanted.len()];
    let mut length = 0;
    for index in 1..wanted.len() {
        while length > 0 && wanted[index] != wanted[length] {
            length = table[length - 1];
        }
        length += usize::from(wanted[index] == wanted[length]);
        table[index] = length;
    }
    length = 0;
    for (index, &unit) in text.iter().enumerate() {
        while length > 0 && unit != wanted[length] {
            length = table[length - 1];
        }
        length += usize::from(unit == wanted[length]);
        if length == wanted.len() {
            return Some(index + 1 - length);
        }
    }
    None
}

/// The last place of `wanted` in `text`.
fn rfind(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut text: Vec<u8> = text.to_vec();
    let mut wanted: Vec<u8> = wanted.to_vec();
    text.reverse();
    wanted.reverse();
    find(&text, &wanted).map(|at| text.len() - at - wanted.len())
}
