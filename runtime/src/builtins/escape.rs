//! `escape` and `unescape` (ECMAScript B.2.1), and `RegExp.escape` (22.2.5.1).

use super::{Global, arg, native};
use crate::eval::vm::Vm;
use crate::meter::buffer::Buffer;
use crate::text::wtf8::{first_code_point, wtf8_pieces};
use crate::value::Value;
use crate::value::thrown::Result;
use std::fmt::Write as _;

/// The global functions.
pub const GLOBALS: &[Global] =
    &[Global::function(native("escape", 1, escape)), Global::function(native("unescape", 1, unescape))];

/// Code units that are processed between two charges.
const PART: usize = 1 << 14;
/// Characters that `escape` keeps, beside letters and digits.
const KEPT: &[u8] = b"@*_+-./";
/// Characters with a meaning in a pattern, which a backslash takes away.
const SYNTAX: &[u8] = b"^$\\.*+?()[]{}|/";
/// Others that may have one beside what stands around the text.
const PUNCTUATORS: &[u8] = b",-=<>#&!%:;@~'`\"";

/// `escape(text)`: code units as `%XX` and `%uXXXX`.
fn escape(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let text = vm.to_string(arg(arguments, 0))?;
    let length = vm.heap.charged_utf16(text)?.len();
    let mut out = Buffer::with_capacity(vm, length)?;
    for from in (0..length).step_by(PART) {
        let charge = vm.work(PART.min(length - from) / 4)?;
        for &unit in vm.heap.read_utf16(text, charge).iter().skip(from).take(PART) {
            let digit = |shift: u32| b"0123456789ABCDEF"[usize::from(unit >> shift & 15)];
            match u8::try_from(unit) {
                Ok(byte) if byte.is_ascii_alphanumeric() || KEPT.contains(&byte) => out.push(vm, byte)?,
                Ok(_) => out.extend_from_slice(vm, &[b'%', digit(4), digit(0)])?,
                Err(_) => out.extend_from_slice(vm, &[b'%', b'u', digit(12), digit(8), digit(4), digit(0)])?,
            }
        }
    }
    Ok(vm.heap.string_of(out))
}

/// `unescape(text)`
fn unescape(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let text = vm.to_string(arg(arguments, 0))?;
    let length = vm.heap.charged_utf16(text)?.len();
    let mut out = Buffer::with_capacity(vm, length)?;
    let mut at = 0;
    while at < length {
        let charge = vm.work(PART.min(length - at) / 4)?;
        let units = vm.heap.read_utf16(text, charge);
        let end = at + PART;
        while at < end.min(length) {
            let (unit, taken) = unescaped(&units[at..]);
            out.push(vm, unit)?;
            at += taken;
        }
    }
    vm.heap.string_of_utf16(&out)
}

/// The code unit that a text begins with, and how many stand for it.
fn unescaped(units: &[u16]) -> (u16, usize) {
    let number = |digits: Option<&[u16]>| {
        let digit = |unit: &u16| char::from_u32(u32::from(*unit))?.to_digit(16);
        digits?.iter().try_fold(0, |number, unit| Some(number << 4 | digit(unit)? as u16))
    };
    const PERCENT: u16 = b'%' as u16;
    const U: u16 = b'u' as u16;
    match *units {
        [PERCENT, U, ..] => number(units.get(2..6)).map(|unit| (unit, 6)),
        [PERCENT, ..] => number(units.get(1..3)).map(|unit| (unit, 3)),
        _ => None,
    }
    .unwrap_or((units[0], 1))
}

/// `RegExp.escape(text)`: a pattern that matches the text alone.
pub fn escape_pattern(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let text = arg(arguments, 0);
    if !text.is_string() {
        return Err(vm.type_error("input argument must be a string"));
    }
    let bytes = vm.heap.charged_copy(text)?;
    let mut out = Buffer::with_capacity(vm, bytes.len())?;
    for part in wtf8_pieces(&bytes, PART) {
        vm.work(part.len() / 4)?;
        let mut escaped = String::new(); // bounded: by PART
        let mut rest = part;
        while let Some((point, length)) = first_code_point(rest) {
            let is_first = out.is_empty() && escaped.is_empty();
            if !push_escape(point, is_first, &mut escaped) {
                escaped.push(char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            rest = &rest[length..];
        }
        out.extend_from_slice(vm, escaped.as_bytes())?;
    }
    Ok(vm.heap.string_of(out))
}

/// Write the escape of a code point (ECMAScript 22.2.5.1.1); false where it stands for itself.
fn push_escape(point: u32, is_first: bool, out: &mut String) -> bool {
    let byte = u8::try_from(point).unwrap_or(0);
    let control = match byte {
        b'\t' => Some('t'),
        b'\n' => Some('n'),
        0xB => Some('v'),
        0xC => Some('f'),
        b'\r' => Some('r'),
        _ if SYNTAX.contains(&byte) => Some(char::from(byte)),
        _ => None,
    };
    // Writing to a string does not fail.
    let _ = match (control, char::from_u32(point)) {
        (Some(escape), _) => write!(out, "\\{escape}"),
        (None, None) => write!(out, "\\u{point:04x}"),
        (None, Some(character)) => {
            let is_escaped = is_first && byte.is_ascii_alphanumeric()
                || PUNCTUATORS.contains(&byte)
                || character.is_whitespace() && character != '\u{85}'
                || character == '\u{FEFF}';
            match point {
                _ if !is_escaped => return false,
                ..0x100 => write!(out, "\\x{point:02x}"),
                _ => write!(out, "\\u{point:04x}"),
            }
        }
    };
    true
}
