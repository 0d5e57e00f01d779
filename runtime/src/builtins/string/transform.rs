//! Methods that transform a text: case, padding, trimming.

use super::{PIECE, Result, Value, Vm, arg, by_text, fits, receiver, room, scan};
use crate::heap::charge::BYTES_A_STEP;
use crate::meter::buffer::Buffer;
use crate::text::wtf8::{code_points, first_code_point, wtf8_pieces};
use crate::value::atom::known;
use crate::value::numeric::is_space;

/// `string.isWellFormed()`
pub fn is_well_formed(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let string = receiver(vm, this, "isWellFormed")?;
    Ok(Value::bool(std::str::from_utf8(vm.heap.charged_bytes(string)?).is_ok()))
}

/// `string.padEnd(length, fill)`
pub fn pad_end(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "padEnd")?;
    let fill = padding(vm, string, arguments)?;
    vm.concat(string, fill)
}

/// `string.padStart(length, fill)`
pub fn pad_start(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "padStart")?;
    let fill = padding(vm, string, arguments)?;
    vm.concat(fill, string)
}

/// Padding that is built at once.
const SHORT: u64 = 64;

/// The padding that is needed for a length.
fn padding(vm: &mut Vm, string: Value, arguments: &[Value]) -> Result {
    let length = vm.to_integer(arg(arguments, 0))?;
    let has = f64::from(vm.heap.str(string).units);
    if length <= has {
        return Ok(vm.heap.atom_string(known::EMPTY));
    }
    let filler = match arg(arguments, 1) {
        Value::UNDEFINED => vm.heap.string(" "),
        filler => vm.to_string(filler)?,
    };
    let step = u64::from(vm.heap.str(filler).units);
    if step == 0 {
        return Ok(filler);
    }
    // As many as fit, and a part of one more. The cast saturates, and `room` refuses.
    room(vm, length as u64, 0)?;
    let missing = (length - has) as u64;
    if missing <= SHORT && vm.heap.str(filler).is_ascii() {
        let mut out = vm.heap.scratch();
        out.extend(vm.heap.first_bytes::<{ SHORT as usize }>(filler).iter().cycle().take(missing as usize));
        return vm.heap.string_of_parts(out);
    }
    let whole = repeated(vm, filler, missing / step)?;
    let rest = super::part(vm, filler, 0, (missing % step) as usize)?;
    vm.concat(whole, rest)
}

/// `string.repeat(count)`
pub fn repeat(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "repeat")?;
    let argument = arg(arguments, 0);
    let count = vm.to_integer(argument)?;
    if !(0.0..f64::INFINITY).contains(&count) {
        let text = if argument.is_object() { vm.object_tag(argument) } else { vm.describe(argument) };
        return Err(vm.range_error(&brief!("Invalid count value: {text}")));
    }
    repeated(vm, string, count as u64)
}

fn repeated(vm: &mut Vm, string: Value, count: u64) -> Result {
    let header = vm.heap.str(string);
    if count == 0 || header.bytes == 0 {
        return Ok(vm.heap.atom_string(known::EMPTY));
    }
    let size = count.saturating_mul(header.bytes.into());
    fits(vm, count.saturating_mul(header.units.into()), size)?;
    let (size, length) = (size as usize, header.bytes as usize);
    let is_long = size > PIECE;
    let charge = vm.work(if is_long { length } else { size } / 64)?;
    let text = vm.heap.read_bytes(string, charge);
    let meets = crate::text::wtf8::splits_pair(text, text);
    let mut bytes = text.repeat(if is_long { 1 } else { count as usize });
    if is_long {
        bytes.reserve_exact(size - length);
    }
    let piece = length * (PIECE / length).max(1);
    while bytes.len() < size {
        let more = piece.min(bytes.len()).min(size - bytes.len());
        vm.work(more / 64)?;
        bytes.extend_from_within(..more);
    }
    if meets {
        vm.heap.join_pairs(&mut bytes)?;
    }
    Ok(vm.heap.take_string(bytes))
}

/// `string.toLowerCase()`
pub fn to_lower_case(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let string = receiver(vm, this, "toLowerCase")?;
    lower(vm, string)
}

/// `string.toUpperCase()`
pub fn to_upper_case(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let string = receiver(vm, this, "toUpperCase")?;
    upper(vm, string)
}

pub fn lower(vm: &mut Vm, string: Value) -> Result {
    if vm.heap.str(string).is_ascii() {
        return ascii(vm, string, u8::is_ascii_uppercase, <[u8]>::make_ascii_lowercase);
    }
    let lowered = |vm: &Vm, text: &str, out: &mut Buffer<u8>| out.extend_from_slice(vm, text.to_lowercase().as_bytes());
    // Only that of a sigma depends on other letters.
    if has_sigma(vm, string)? {
        return by_text(vm, string, last_plain_pair, lowered);
    }
    by_text(vm, string, |text| Some(text.len()), lowered)
}

fn has_sigma(vm: &mut Vm, string: Value) -> Result<bool> {
    let (texts, meter) = vm.heap.texts();
    for piece in wtf8_pieces(texts.bytes(string), PIECE) {
        meter.work(1 + piece.len() / BYTES_A_STEP)?;
        if memchr::memmem::find(piece, "Σ".as_bytes()).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

pub fn upper(vm: &mut Vm, string: Value) -> Result {
    if vm.heap.str(string).is_ascii() {
        return ascii(vm, string, u8::is_ascii_lowercase, <[u8]>::make_ascii_uppercase);
    }
    let cut = |text: &str| Some(text.len());
    by_text(vm, string, cut, |vm, text, out| out.extend_from_slice(vm, text.to_uppercase().as_bytes()))
}

/// Where a text can be split for lowering its case. The lower case of a sigma depends on the letters around it, so the
/// split is between two characters that are no sigma, and not ignored when those letters are looked for (`Case_Ignorable`).
fn last_plain_pair(text: &str) -> Option<usize> {
    let is_plain = |c: char| {
        matches!(c, ' ' | '\n' | '0'..='9' | 'A'..='Z' | 'a'..='z' | '\u{C0}'..='\u{24F}' | '\u{388}'..='\u{3A2}'
            | '\u{3A4}'..='\u{3FF}' | '\u{400}'..='\u{481}' | '\u{48A}'..='\u{556}' | '\u{5D0}'..='\u{5EA}'
            | '\u{621}'..='\u{63A}' | '\u{641}'..='\u{64A}' | '\u{904}'..='\u{939}' | '\u{E01}'..='\u{E30}'
            | '\u{10A0}'..='\u{10FA}' | '\u{1E00}'..='\u{1EFF}' | '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}'
            | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}'
            | '\u{1F300}'..='\u{1F3FA}' | '\u{1F400}'..='\u{1FAFF}' | '\u{20000}'..='\u{2FA1F}')
    };
    let mut after = false;
    for (at, character) in text.char_indices().rev() {
        let plain = is_plain(character);
        if plain && after {
            return Some(at + character.len_utf8());
        }
        after = plain;
    }
    None
}

/// Change the case of ASCII, where it needs changing.
fn ascii(vm: &mut Vm, string: Value, other: fn(&u8) -> bool, change: fn(&mut [u8])) -> Result {
    let charge = scan(vm, string)?;
    if !vm.heap.read_bytes(string, charge).iter().any(other) {
        return Ok(string);
    }
    vm.reserve(vm.heap.str(string).bytes as usize)?;
    Ok(vm.heap.changed_ascii(string, change))
}

/// `string.toWellFormed()`
pub fn to_well_formed(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let string = receiver(vm, this, "toWellFormed")?;
    if std::str::from_utf8(vm.heap.charged_bytes(string)?).is_ok() {
        return Ok(string);
    }
    let mut bytes = vm.heap.charged_copy(string)?;
    vm.heap.replace_surrogates(&mut bytes)?;
    Ok(vm.heap.string_of(bytes))
}

/// `string.trim()`
pub fn trim(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let string = receiver(vm, this, "trim")?;
    trimmed(vm, string, true, true)
}

/// `string.trimEnd()`
pub fn trim_end(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let string = receiver(vm, this, "trimRight")?;
    trimmed(vm, string, false, true)
}

/// `string.trimStart()`
pub fn trim_start(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    let string = receiver(vm, this, "trimLeft")?;
    trimmed(vm, string, true, false)
}

fn trimmed(vm: &mut Vm, string: Value, at_start: bool, at_end: bool) -> Result {
    let length = vm.heap.str(string).bytes as usize;
    // Nothing is read beyond the ends where these are not blank.
    let may_be_blank = |byte: &[u8]| matches!(byte, [0..=b' ' | 0x80..]);
    let is_long = length > 1024
        && (may_be_blank(vm.heap.first_bytes::<1>(string)) || may_be_blank(vm.heap.last_bytes::<1>(string)));
    let charge = vm.work(if is_long { length / 16 } else { 0 })?;
    let bytes = vm.heap.read_bytes(string, charge);
    let (mut start, mut end) = (0, bytes.len());
    while at_start
        && let Some((point, length)) = first_code_point(&bytes[start..])
        && char::from_u32(point).is_some_and(is_space)
    {
        start += length;
    }
    while at_end && start < end {
        let mut last = end - 1;
        while last > start && bytes[last] & 0xC0 == 0x80 {
            last -= 1;
        }
        if !code_points(&bytes[last..end]).all(|point| char::from_u32(point).is_some_and(is_space)) {
            break;
        }
        end = last;
    }
    Ok(vm.heap.slice_bytes(string, start, end))
}
