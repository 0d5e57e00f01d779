//! Code units of escapes in JSON text, whose surrogates may come one by one.

use crate::text::wtf8::{join_pairs, push_surrogate, push_utf16};

/// Append a code unit, joined with the high surrogate before it if the two are a pair.
pub fn push_unit(unit: u16, high: &mut Option<u16>, out: &mut Vec<u8>) {
    match (high.take(), unit) {
        (Some(first), 0xDC00..=0xDFFF) => push_utf16(&[first, unit], out),
        (before, 0xD800..=0xDBFF) => {
            if let Some(before) = before {
                push_surrogate(before, out);
            }
            *high = Some(unit);
        }
        (before, _) => {
            if let Some(before) = before {
                push_surrogate(before, out);
            }
            push_utf16(&[unit], out);
        }
    }
}

/// Append a high surrogate that stayed alone.
pub fn flush(high: &mut Option<u16>, out: &mut Vec<u8>) {
    if let Some(unit) = high.take() {
        push_surrogate(unit, out);
    }
}

/// Join the halves of surrogate pairs that stand beside each other.
pub fn join_halves(bytes: &mut Vec<u8>) {
    let until = bytes.len();
    let (_, length) = join_pairs(bytes, (0, 0), until);
    bytes.truncate(length);
}
