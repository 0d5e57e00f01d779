//! `encodeURI`, `decodeURI` and their `Component` forms (ECMAScript 19.2.6).

use super::{Global, arg, native};
use crate::error::{Result, Thrown};
use crate::heap::Class;
use crate::value::Value;
use crate::vm::Vm;

/// The functions.
pub const GLOBALS: &[Global] = &[
    Global::function(native("decodeURI", 1, decode_uri)),
    Global::function(native("decodeURIComponent", 1, decode_uri_component)),
    Global::function(native("encodeURI", 1, encode_uri)),
    Global::function(native("encodeURIComponent", 1, encode_uri_component)),
];

/// What separates the parts of a URI.
const RESERVED: &[u8] = b";/?:@&=+$,#";
/// What needs no escape anywhere, besides letters and digits.
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

/// Escape all but letters, digits, marks and `kept`.
fn encode(vm: &mut Vm, text: Value, kept: &[u8]) -> Result {
    let text = vm.to_string(text)?;
    let length = vm.heap.str(text).bytes as usize;
    vm.work(length / 8)?;
    let bytes = vm.heap.bytes(text);
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || MARKS.contains(byte) || kept.contains(byte);
    let escapes = bytes.iter().filter(|byte| !plain(byte)).count();
    if escapes == 0 {
        return Ok(text);
    }
    if std::str::from_utf8(bytes).is_err() {
        return Err(malformed(vm));
    }
    vm.reserve(length + escapes * 2)?;
    let mut out = Vec::with_capacity(length + escapes * 2);
    for byte in vm.heap.bytes(text) {
        if plain(byte) {
            out.push(*byte);
        } else {
            let digit = |digit: u8| b"0123456789ABCDEF"[usize::from(digit)];
            out.extend([b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    Ok(vm.heap.take_string(out))
}

/// Resolve escapes, but for those of `kept`.
fn decode(vm: &mut Vm, text: Value, kept: &[u8]) -> Result {
    let text = vm.to_string(text)?;
    let length = vm.heap.str(text).bytes as usize;
    vm.work(length / 8)?;
    if !vm.heap.bytes(text).contains(&b'%') {
        return Ok(text);
    }
    vm.reserve(length)?;
    match decoded(vm.heap.bytes(text), kept) {
        Some(out) => Ok(vm.heap.take_string(out)),
        None => Err(malformed(vm)),
    }
}

fn decoded(text: &[u8], kept: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        if byte != b'%' {
            out.push(byte);
            at += 1;
            continue;
        }
        let first = escape(text, at)?;
        if first < 0x80 {
            if kept.contains(&first) {
                out.extend_from_slice(&text[at..at + 3]);
            } else {
                out.push(first);
            }
            at += 3;
            continue;
        }
        let count = first.leading_ones() as usize;
        let bytes = (0..count.min(5)).map(|index| escape(text, at + 3 * index)).collect::<Option<Vec<u8>>>()?;
        // Only what is UTF-8: neither surrogates nor overlong forms.
        std::str::from_utf8(&bytes).ok()?;
        out.extend_from_slice(&bytes);
        at += 3 * count;
    }
    Some(out)
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
