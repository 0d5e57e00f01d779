//! Names and values of a query, decoded as Node decodes them.

use super::PIECE;
use crate::eval::vm::Vm;
use crate::meter::buffer::{Buffer, Hold};
use crate::value::thrown::Result;
use percent_encoding::percent_decode;

/// A name or a value of a query, decoded in pieces, so that a long one can be stopped.
pub fn decoded(vm: &mut Vm, text: &str) -> Result<String> {
    let mut bytes = Buffer::<u8>::with_capacity(vm, text.len())?;
    if !text.is_ascii() && is_malformed(vm, text)? {
        narrowed(vm, text, &mut bytes)?;
    } else {
        percent_decoded(vm, text, &mut bytes)?;
    }
    let error = match String::from_utf8(bytes.into_vec()) {
        Ok(mut text) => {
            text.shrink_to_fit();
            return Ok(text);
        }
        Err(error) => error,
    };
    let bytes = error.as_bytes();
    let _decoded = vm.heap.hold(bytes.len())?;
    let (mut length, mut text) = (0, Hold::NONE);
    for chunk in bytes.utf8_chunks() {
        vm.work(1 + chunk.valid().len() / 64)?;
        length +=
            chunk.valid().len() + if chunk.invalid().is_empty() { 0 } else { char::REPLACEMENT_CHARACTER.len_utf8() };
    }
    text.grow(vm, length)?;
    let mut out = String::with_capacity(length); // charged: above
    for chunk in bytes.utf8_chunks() {
        vm.work(1 + chunk.valid().len() / 64)?;
        out.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
    Ok(out)
}

fn percent_decoded(vm: &mut Vm, text: &str, bytes: &mut Buffer<u8>) -> Result<()> {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let mut end = rest.len().min(PIECE);
        if end < rest.len() {
            // Escapes are not split.
            let escape = rest[end - 2..end].iter().position(|byte| *byte == b'%');
            end -= escape.map_or(0, |at| 2 - at);
        }
        let (piece, more) = rest.split_at(end);
        vm.work(1 + piece.len() / 8)?;
        for (index, word) in piece.split(|byte| *byte == b'+').enumerate() {
            if index > 0 {
                bytes.push(vm, b' ')?;
            }
            bytes.extend(vm, percent_decode(word))?;
        }
        rest = more;
    }
    Ok(())
}

/// Whether a text has escapes, and `decodeURIComponent` refuses it.
fn is_malformed(vm: &mut Vm, text: &str) -> Result<bool> {
    let (mut has_escape, mut is_refused) = (false, false);
    let mut run = Buffer::<u8>::new();
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        vm.work(1)?;
        if let Some(byte) = escaped_byte(rest) {
            has_escape = true;
            run.push(vm, byte)?;
            rest = &rest[3..];
            continue;
        }
        is_refused |= first == b'%' || std::str::from_utf8(&run).is_err();
        run.truncate(0);
        rest = behind;
    }
    Ok(has_escape && (is_refused || std::str::from_utf8(&run).is_err()))
}

/// The byte of an escape at the beginning of a text.
fn escaped_byte(text: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    match *text {
        [b'%', high, low, ..] => Some((digit(high)? << 4 | digit(low)?) as u8),
        _ => None,
    }
}

/// What Node makes of a malformed text: of each other code unit only the lower byte.
fn narrowed(vm: &mut Vm, text: &str, bytes: &mut Buffer<u8>) -> Result<()> {
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        vm.work(1)?;
        if let Some(byte) = escaped_byte(&text.as_bytes()[at..]) {
            bytes.push(vm, byte)?;
            // Its two digits.
            letters.nth(1);
        } else if letter == '+' {
            bytes.push(vm, b' ')?;
        } else {
            bytes.extend(vm, letter.encode_utf16(&mut [0; 2]).iter().map(|unit| *unit as u8))?;
        }
    }
    Ok(())
}
