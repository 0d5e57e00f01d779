//! `String`: the constructor, characters and slices. Searching is in [`search`]; case, padding and trimming are in
//! [`transform`].
//!
//! Positions that scripts see are UTF-16 code units. Where a string is ASCII they are bytes. Else they are translated
//! by walking, or by the copy that the heap keeps of strings that were indexed.

mod find;
pub mod html;
pub mod normalize;
mod search;
pub mod transform;

use super::{Body, Global, Row, arg, either, native, regexp};
use crate::eval::operator::MAX_STRING;
use crate::eval::vm::Vm;
use crate::heap::charge::BYTES_A_STEP;
use crate::meter::Charge;
use crate::meter::buffer::Buffer;
use crate::text::wtf8::{first_code_point, wtf8_pieces};
use crate::value::Value;
use crate::value::atom::known;
use crate::value::numeric::{leading_text, number_text, to_int32};
use crate::value::thrown::Result;

/// The constructor.
pub const GLOBALS: &[Global] = &[Global {
    name: "String",
    length: 1,
    call: Body::Native(string),
    construct: None,
    functions: &[
        native("fromCharCode", 1, from_char_code),
        native("fromCodePoint", 1, from_code_point),
        native("raw", 1, raw),
    ],
    numbers: &[],
}];

/// Methods of strings.
pub const METHODS: &[Row] = &[
    native("at", 1, at),
    native("charAt", 1, char_at),
    native("charCodeAt", 1, char_code_at),
    native("codePointAt", 1, code_point_at),
    native("concat", 1, concat),
    native("slice", 2, slice),
    native("substring", 2, substring),
    native("substr", 2, substr),
    native("toString", 0, to_string),
    native("valueOf", 0, value_of),
    native("endsWith", 1, search::ends_with),
    native("includes", 1, search::includes),
    native("indexOf", 1, search::index_of),
    native("lastIndexOf", 1, search::last_index_of),
    native("match", 1, regexp::match_text),
    native("matchAll", 1, regexp::match_all),
    either("replace", 2, search::replace_directly, "String_replace"),
    either("replaceAll", 2, search::replace_all_directly, "String_replaceAll"),
    native("search", 1, regexp::search),
    native("split", 2, search::split),
    native("startsWith", 1, search::starts_with),
    native("isWellFormed", 0, transform::is_well_formed),
    native("normalize", 0, normalize::normalize),
    native("padEnd", 1, transform::pad_end),
    native("padStart", 1, transform::pad_start),
    native("repeat", 1, transform::repeat),
    native("toLowerCase", 0, transform::to_lower_case),
    native("toUpperCase", 0, transform::to_upper_case),
    native("toWellFormed", 0, transform::to_well_formed),
    native("trim", 0, transform::trim),
    native("trimEnd", 0, transform::trim_end),
    native("trimStart", 0, transform::trim_start),
];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[
    native("$replace", 3, search::replace),
    native("$replaceAll", 3, search::replace_all),
    native("$stringReceiver", 2, string_receiver),
    native("$matchPositions", 2, search::match_positions),
];

/// `String(value)`
fn string(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    match arguments.first() {
        Some(&value) => vm.to_string(value),
        None => Ok(vm.heap.atom_string(known::EMPTY)),
    }
}

/// `String.fromCharCode(...units)`
fn from_char_code(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let mut units = Buffer::with_capacity(vm, arguments.len())?;
    for &argument in arguments {
        vm.work(1)?;
        let unit = to_int32(vm.to_number(argument)?) as u16;
        units.push(vm, unit)?;
    }
    vm.heap.string_of_utf16(&units)
}

/// `String.fromCodePoint(...points)`
fn from_code_point(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let mut units = Buffer::with_capacity(vm, arguments.len())?;
    for &argument in arguments {
        vm.work(1)?;
        let number = vm.to_number(argument)?;
        let point = number as u32;
        if f64::from(point) != number || point > 0x10_FFFF {
            return Err(vm.range_error(&brief!("Invalid code point {}", number_text(number))));
        }
        match char::from_u32(point) {
            Some(character) => units.extend_from_slice(vm, character.encode_utf16(&mut [0; 2]))?,
            None => units.push(vm, point as u16)?,
        }
    }
    vm.heap.string_of_utf16(&units)
}

/// `` String.raw`template` `` (ECMAScript 22.1.2.4)
fn raw(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let template = arg(arguments, 0);
    let pieces = if template.is_nullish() { template } else { vm.get(template, known::RAW)? };
    if pieces.is_nullish() {
        return Err(vm.type_error("Cannot convert undefined or null to object"));
    }
    let length = vm.get(pieces, known::LENGTH)?;
    let length = vm.to_integer(length)?;
    let mut text = vm.heap.atom_string(known::EMPTY);
    let mut index = 0.0;
    while index < length {
        vm.work(1)?;
        let piece = vm.get_index(pieces, Value::number(index))?;
        let piece = vm.to_string(piece)?;
        text = vm.concat(text, piece)?;
        index += 1.0;
        if index < length
            && let Some(&value) = arguments.get(index as usize)
        {
            let value = vm.to_string(value)?;
            text = vm.concat(text, value)?;
        }
    }
    Ok(text)
}

/// `string.at(index)`
fn at(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "at")?;
    let index = vm.to_integer(arg(arguments, 0))?;
    let index = if index < 0.0 { index + f64::from(vm.heap.str(string).units) } else { index };
    Ok(character(vm, string, index)?.unwrap_or(Value::UNDEFINED))
}

/// `string.charAt(index)`
fn char_at(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "charAt")?;
    let index = vm.to_integer(arg(arguments, 0))?;
    Ok(character(vm, string, index)?.unwrap_or_else(|| vm.heap.atom_string(known::EMPTY)))
}

/// `string.charCodeAt(index)`
fn char_code_at(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    if let [index] = *arguments
        && this.is_string()
        && vm.heap.str(this).is_ascii()
        && let Some(byte) = vm.heap.string_byte(this, index.as_number() as usize)
        && index.is_number()
        && index.as_number() >= 0.0
    {
        return Ok(Value::number(f64::from(byte)));
    }
    let string = receiver(vm, this, "charCodeAt")?;
    let index = vm.to_integer(arg(arguments, 0))?;
    Ok(unit(vm, string, index)?.map_or(Value::NAN, |unit| Value::number(f64::from(unit))))
}

/// `string.codePointAt(index)`
fn code_point_at(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "codePointAt")?;
    let index = vm.to_integer(arg(arguments, 0))?;
    let Some(first) = unit(vm, string, index)? else { return Ok(Value::UNDEFINED) };
    let point = match (first, unit(vm, string, index + 1.0)?) {
        (0xD800..=0xDBFF, Some(second @ 0xDC00..=0xDFFF)) => {
            0x10000 + (u32::from(first & 0x3FF) << 10) + u32::from(second & 0x3FF)
        }
        _ => u32::from(first),
    };
    Ok(Value::number(f64::from(point)))
}

/// `string.concat(...strings)`
fn concat(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let mut string = receiver(vm, this, "concat")?;
    for &argument in arguments {
        vm.work(1)?;
        let next = vm.to_string(argument)?;
        string = vm.concat(string, next)?;
    }
    Ok(string)
}

/// `string.slice(start, end)`
fn slice(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "slice")?;
    let length = vm.heap.str(string).units as usize;
    let start = vm.to_position(arg(arguments, 0), length, 0)?;
    let end = vm.to_position(arg(arguments, 1), length, length)?;
    part(vm, string, start, end)
}

/// `string.substring(start, end)`
fn substring(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "substring")?;
    let length = vm.heap.str(string).units as usize;
    let start = clamped(vm, arg(arguments, 0), length, 0)?;
    let end = clamped(vm, arg(arguments, 1), length, length)?;
    part(vm, string, start.min(end), start.max(end))
}

/// `string.substr(start, length)`
fn substr(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let string = receiver(vm, this, "substr")?;
    let length = vm.heap.str(string).units as usize;
    let start = vm.to_position(arg(arguments, 0), length, 0)?;
    let count = clamped(vm, arg(arguments, 1), length - start, length - start)?;
    part(vm, string, start, start + count)
}

/// `string.toString()`
fn to_string(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    itself(vm, this, "toString")
}

/// `string.valueOf()`
fn value_of(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    itself(vm, this, "valueOf")
}

fn itself(vm: &mut Vm, this: Value, method: &str) -> Result {
    if this.is_string() {
        return Ok(this);
    }
    Err(vm.type_error(&brief!("String.prototype.{method} requires that 'this' be a String")))
}

/// `$stringReceiver(self, method)`: the receiver of a method of the prelude as a string.
fn string_receiver(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let method = vm.to_text_lossy(arg(arguments, 1));
    receiver(vm, arg(arguments, 0), &method)
}

/// The receiver of a method as a string.
pub(super) fn receiver(vm: &mut Vm, this: Value, method: &str) -> Result {
    if this.is_nullish() {
        return Err(vm.type_error(&brief!("String.prototype.{method} called on null or undefined")));
    }
    vm.to_string(this)
}

/// A position that counts from the start only: clamped to `0..=length`.
fn clamped(vm: &mut Vm, value: Value, length: usize, default: usize) -> Result<usize> {
    if value.is_undefined() {
        return Ok(default);
    }
    Ok(vm.to_integer(value)?.clamp(0.0, length as f64) as usize)
}

/// The code unit at a position given by any value.
fn unit(vm: &mut Vm, string: Value, index: f64) -> Result<Option<u16>> {
    if !(0.0..f64::from(vm.heap.str(string).units)).contains(&index) {
        return Ok(None);
    }
    vm.heap.code_unit(string, index as usize)
}

/// The string of the code unit at a position given by any value.
fn character(vm: &mut Vm, string: Value, index: f64) -> Result<Option<Value>> {
    if !(0.0..f64::from(vm.heap.str(string).units)).contains(&index) {
        return Ok(None);
    }
    vm.character(string, index as usize)
}

/// Longer strings get a UTF-16 copy instead of being walked each time.
const WALK: u32 = 512;

/// The part of a string between two positions; empty where the second is before the first.
pub(super) fn part(vm: &mut Vm, string: Value, start: usize, end: usize) -> Result {
    if start >= end {
        return Ok(vm.heap.atom_string(known::EMPTY));
    }
    let header = vm.heap.str(string);
    if header.is_ascii() {
        return Ok(vm.heap.slice_bytes(string, start, end));
    }
    if start == 0 && end == header.units as usize {
        return Ok(string);
    }
    if header.units <= WALK {
        let bytes = vm.heap.first_bytes::<{ 3 * WALK as usize }>(string);
        let (first, split) = byte_position(bytes, start);
        let (length, cut) = byte_position(&bytes[first..], end - start);
        if !split && !cut {
            return Ok(vm.heap.slice_bytes(string, first, first + length));
        }
    }
    vm.heap.charged_utf16(string)?;
    let (texts, meter) = vm.heap.texts();
    let bytes = meter.encode(&texts.utf16(string)[start..end])?;
    Ok(vm.heap.string_of(bytes))
}

/// The byte position of a code unit in a short text, and whether that is inside a surrogate pair: then it is the end of
/// the pair.
fn byte_position(bytes: &[u8], units: usize) -> (usize, bool) {
    let (mut at, mut left) = (0, units);
    while left > 0 {
        let Some((point, length)) = first_code_point(&bytes[at..]) else { break };
        at += length;
        let wide = point > 0xFFFF;
        if wide && left == 1 {
            return (at, true);
        }
        left -= 1 + usize::from(wide);
    }
    (at, false)
}

/// The same in a text of any length, charged in pieces.
fn charged_byte_position(vm: &mut Vm, string: Value, units: usize) -> Result<(usize, bool)> {
    let (mut before, mut left) = (0, units);
    if units == 0 {
        return Ok((0, false));
    }
    let (texts, meter) = vm.heap.texts();
    for piece in wtf8_pieces(texts.bytes(string), PIECE) {
        meter.work(piece.len() / BYTES_A_STEP)?;
        let count = crate::text::wtf8::units(piece);
        if left <= count {
            let (at, is_split) = byte_position(piece, left);
            return Ok((before + at, is_split));
        }
        left -= count;
        before += piece.len();
    }
    Ok((before, false))
}

/// Charge for reading every byte.
fn scan(vm: &mut Vm, string: Value) -> Result<Charge> {
    vm.work(vm.heap.str(string).bytes as usize / 32)
}

/// Make sure that a string of so many code units can be made of so many bytes, and charge for it.
fn room(vm: &mut Vm, units: u64, bytes: u64) -> Result<Charge> {
    fits(vm, units, bytes)?;
    vm.work((bytes / 64) as usize)
}

/// Make sure that a string of so many code units can be made of so many bytes.
fn fits(vm: &mut Vm, units: u64, bytes: u64) -> Result<()> {
    if units > MAX_STRING {
        return Err(vm.range_error("Invalid string length"));
    }
    vm.reserve(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// Bytes of text that are changed between two charges.
const PIECE: usize = 64 << 10;

/// Change the text of a string piece by piece; lone surrogates stay. `cut` gives how much of a text can be changed
/// independently, or `None` where that depends on what follows.
pub(super) fn by_text(
    vm: &mut Vm,
    string: Value,
    cut: impl Fn(&str) -> Option<usize>,
    change: impl Fn(&Vm, &str, &mut Buffer<u8>) -> Result<()>,
) -> Result {
    let length = vm.heap.str(string).bytes as usize;
    let mut out = Buffer::with_capacity(vm, length)?;
    let (mut at, mut window) = (0, 2 * PIECE);
    let mut charge = vm.work(1)?;
    while at < length {
        let end = length.min(at + window);
        let bytes = &vm.heap.read_bytes(string, charge)[at..end];
        let text = leading_text(bytes);
        if text.is_empty() {
            let width = first_code_point(bytes).map_or(1, |(_, width)| width);
            let lone: [u8; 3] = std::array::from_fn(|index| bytes.get(index).copied().unwrap_or(0));
            charge = vm.work(1)?;
            out.extend_from_slice(vm, &lone[..width.min(3)])?;
            at += width;
            continue;
        }
        let is_whole = end == length || bytes.len() - text.len() > 3;
        let size = match (text.len() > PIECE).then(|| cut(text)).flatten() {
            Some(size) => size,
            None if is_whole => text.len(),
            None => {
                window *= 2;
                continue;
            }
        };
        charge = vm.work(size / 8)?;
        change(vm, leading_text(&vm.heap.read_bytes(string, charge)[at..at + size]), &mut out)?;
        (at, window) = (at + size, 2 * PIECE);
    }
    Ok(vm.heap.string_of(out))
}
