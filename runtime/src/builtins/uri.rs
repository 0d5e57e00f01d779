//! `encodeURI`, `decodeURI` and their `Component` forms (ECMAScript 19.2.6).

use super::{Global, arg, native};
use crate::eval::vm::Vm;
use crate::heap::{Class, Heap};
use crate::meter::buffer::Buffer;
use crate::value::Value;
use crate::value::thrown::{Result, Thrown};

/// The functions.
pub const GLOBALS: &[Global] = &[
    Global::function(native("decodeURI", 1, decode_uri)),
    Global::function(native("decodeURIComponent", 1, decode_uri_component)),
    Global::function(native("encodeURI", 1, encode_uri)),
    Global::function(native("encodeURIComponent", 1, encode_uri_component)),
];

/// The reserved characters of a URI.
const RESERVED: &[u8] = b";/?:@&=+$,#";
/// The characters that are never escaped, besides letters and digits.
const MARKS: &[u8] = b"-_.!~*'()";

/// `decodeURI(text)`
fn decode_uri(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    decode(vm, arg(arguments, 0), RESERVED)
}

/// `decodeURIComponent(text)`
fn decode_uri_component(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    decode(vm, arg(arguments, 0), b"")
}

/// `encodeURI(text)`
fn encode_uri(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    encode(vm, arg(arguments, 0), RESERVED)
}

/// `encodeURIComponent(text)`
fn encode_uri_component(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    encode(vm, arg(arguments, 0), b"")
}

/// Bytes that are processed between two charges.
const PART: usize = 1 << 16;

/// A block of the bytes of a string from a position on, charged for.
fn part(vm: &mut Vm, text: Value, at: usize) -> Result<&[u8]> {
    let end = (at + PART).min(vm.heap.str(text).bytes as usize);
    let charge = vm.work((end - at) / 8)?;
    Ok(&vm.heap.read_bytes(text, charge)[at..end])
}

/// Escape all but letters, digits, marks and `kept`.
fn encode(vm: &mut Vm, text: Value, kept: &[u8]) -> Result {
    let text = vm.to_string(text)?;
    let length = vm.heap.str(text).bytes as usize;
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || MARKS.contains(byte) || kept.contains(byte);
    let mut escapes = 0;
    for at in (0..length).step_by(PART) {
        escapes += part(vm, text, at)?.iter().filter(|byte| !plain(byte)).count();
    }
    if escapes == 0 {
        return Ok(text);
    }
    let bytes = vm.heap.charged_bytes(text)?;
    if std::str::from_utf8(bytes).is_err() {
        return Err(malformed(vm));
    }
    let mut out = Buffer::with_capacity(vm, length + escapes * 2)?;
    for at in (0..length).step_by(PART) {
        let charge = vm.work(PART.min(length - at) / 8)?;
        for byte in &vm.heap.read_bytes(text, charge)[at..(at + PART).min(length)] {
            if plain(byte) {
                out.push(&vm.heap, *byte)?;
            } else {
                let digit = |digit: u8| b"0123456789ABCDEF"[usize::from(digit)];
                out.extend_from_slice(&vm.heap, &[b'%', digit(byte >> 4), digit(byte & 15)])?;
            }
        }
    }
    Ok(vm.heap.string_of(out))
}

/// Decode escapes, except those of `kept`.
fn decode(vm: &mut Vm, text: Value, kept: &[u8]) -> Result {
    let text = vm.to_string(text)?;
    let length = vm.heap.str(text).bytes as usize;
    let charge = vm.work(length / 32)?;
    let Some(first) = memchr::memchr(b'%', vm.heap.read_bytes(text, charge)) else { return Ok(text) };
    let mut out = Buffer::with_capacity(vm, length)?;
    out.extend_from_slice(&vm.heap, &vm.heap.read_bytes(text, charge)[..first])?;
    let mut at = first;
    while at < length {
        let charge = vm.work(PART.min(length - at) / 8)?;
        match decode_part(&vm.heap, vm.heap.read_bytes(text, charge), (at, kept), &mut out)? {
            Some(next) => at = next,
            None => return Err(malformed(vm)),
        }
    }
    Ok(vm.heap.string_of(out))
}

/// Decode the escapes of a block from a position on; gives where it stopped, or `None` where an escape is invalid.
fn decode_part(
    heap: &Heap,
    text: &[u8],
    (mut at, kept): (usize, &[u8]),
    out: &mut Buffer<u8>,
) -> Result<Option<usize>> {
    let end = at + PART;
    while let Some(&byte) = text.get(at).filter(|_| at < end) {
        if byte != b'%' {
            out.push(heap, byte)?;
            at += 1;
            continue;
        }
        let Some(first) = escape(text, at) else { return Ok(None) };
        if first < 0x80 {
            if kept.contains(&first) {
                out.extend_from_slice(heap, &text[at..at + 3])?;
            } else {
                out.push(heap, first)?;
            }
            at += 3;
            continue;
        }
        // Only what is UTF-8: neither surrogates nor overlong forms.
        let count = (first.leading_ones() as usize).min(5);
        let mut bytes = [0; 5];
        for (index, byte) in bytes[..count].iter_mut().enumerate() {
            let Some(escaped) = escape(text, at + 3 * index) else { return Ok(None) };
            *byte = escaped;
        }
        if std::str::from_utf8(&bytes[..count]).is_err() {
            return Ok(None);
        }
        out.extend_from_slice(heap, &bytes[..count])?;
        at += 3 * count;
    }
    Ok(Some(at))
}

/// The byte of the escape at a position.
fn escape(text: &[u8], at: usize) -> Option<u8> {
    let &[b'%', high, low] = text.get(at..at + 3)? else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}

#[cold]
fn malformed(vm: &mut Vm) -> Thrown {
    vm.throw(Class::UriError, "URI malformed")
}
