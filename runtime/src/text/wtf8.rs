//! WTF-8: UTF-8 in which a lone surrogate is encoded as three bytes.

use std::borrow::Cow;

/// Length of WTF-8 in UTF-16 code units.
pub fn units(bytes: &[u8]) -> usize {
    if bytes.is_ascii() {
        return bytes.len();
    }
    // Few enough at a time to be counted in bytes.
    bytes.chunks(127).map(|part| usize::from(part.iter().map(|&byte| units_of(byte)).sum::<u8>())).sum()
}

/// How many code units a character has whose first byte this is; none where it is not the first.
#[inline(always)]
fn units_of(byte: u8) -> u8 {
    u8::from(byte & 0xC0 != 0x80) + u8::from(byte >= 0xF0)
}

/// Append UTF-16 as WTF-8.
pub fn push_utf16(units: &[u16], out: &mut Vec<u8>) {
    for decoded in char::decode_utf16(units.iter().copied()) {
        match decoded {
            Ok(character) => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => push_surrogate(lone.unpaired_surrogate(), out),
        }
    }
}

/// Append a lone surrogate as its three bytes.
pub fn push_surrogate(unit: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&[0xED, 0x80 | (unit >> 6 & 0x3F) as u8, 0x80 | (unit & 0x3F) as u8]);
}

/// The code points of WTF-8, lone surrogates included.
pub fn code_points(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (point, length) = first_code_point(rest)?;
        rest = &rest[length..];
        Some(point)
    })
}

/// The first code point of WTF-8 and its length in bytes.
pub fn first_code_point(bytes: &[u8]) -> Option<(u32, usize)> {
    let first = u32::from(*bytes.first()?);
    let next = |index: usize| u32::from(bytes.get(index).copied().unwrap_or(0)) & 0x3F;
    Some(match first {
        0..=0x7F => (first, 1),
        0x80..=0xDF => ((first & 0x1F) << 6 | next(1), 2.min(bytes.len())),
        0xE0..=0xEF => ((first & 0xF) << 12 | next(1) << 6 | next(2), 3.min(bytes.len())),
        _ => ((first & 7) << 18 | next(1) << 12 | next(2) << 6 | next(3), 4.min(bytes.len())),
    })
}

/// The UTF-16 code units of WTF-8.
pub fn to_utf16(bytes: &[u8]) -> Vec<u16> {
    let mut out = Vec::with_capacity(units(bytes));
    push_wtf8(bytes, &mut out);
    out
}

/// Append WTF-8 as UTF-16.
pub fn push_wtf8(bytes: &[u8], out: &mut Vec<u16>) {
    for point in code_points(bytes) {
        match u16::try_from(point) {
            Ok(unit) => out.push(unit),
            Err(_) => {
                let offset = point - 0x10000;
                out.extend([0xD800 | (offset >> 10) as u16, 0xDC00 | (offset & 0x3FF) as u16]);
            }
        }
    }
}

/// The length of UTF-16 in WTF-8.
pub fn wtf8_length(units: &[u16]) -> usize {
    let decoded = char::decode_utf16(units.iter().copied());
    decoded.map(|part| part.map_or(3, char::len_utf8)).sum()
}

/// WTF-8 in pieces of about so many bytes, which end between characters.
pub fn wtf8_pieces(bytes: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    pieces(bytes, size, |next| next & 0xC0 != 0x80)
}

/// UTF-16 in pieces of about so many code units, which end between characters.
pub fn utf16_pieces(units: &[u16], size: usize) -> impl Iterator<Item = &[u16]> {
    pieces(units, size, |next| !(0xDC00..0xE000).contains(&next))
}

/// Pieces that end before a unit that can begin one.
fn pieces<U: Copy>(all: &[U], size: usize, begins: impl Fn(U) -> bool) -> impl Iterator<Item = &[U]> {
    let mut rest = all;
    std::iter::from_fn(move || {
        let more = rest.get(size..).map(|behind| behind.iter().take_while(|&&unit| !begins(unit)).count());
        let (piece, behind) = rest.split_at(more.map_or(rest.len(), |more| size + more));
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Whether halves of a surrogate pair stand beside each other in WTF-8, as they do where texts were concatenated.
pub fn has_split_pair(bytes: &[u8]) -> bool {
    !bytes.is_ascii()
        && memchr::memchr_iter(0xED, bytes)
            .any(|at| matches!(bytes[at..], [0xED, 0xA0..=0xAF, _, 0xED, 0xB0..=0xBF, ..]))
}

/// Join the halves of surrogate pairs that begin from a position and before `until`, and move what follows them forwards. Returns where
/// the rest begins, and where it has to go.
pub fn join_pairs(bytes: &mut [u8], (mut from, mut to): (usize, usize), until: usize) -> (usize, usize) {
    while from < until {
        if let &[0xED, high @ 0xA0..=0xAF, second, 0xED, low @ 0xB0..=0xBF, fourth, ..] = &bytes[from..] {
            let half = |lead: u8, tail: u8| u32::from(lead & 0xF) << 6 | u32::from(tail & 0x3F);
            let point = 0x10000 + (half(high, second) << 10) + half(low, fourth);
            for bits in [0xF0 | point >> 18, 0x80 | point >> 12 & 0x3F, 0x80 | point >> 6 & 0x3F, 0x80 | point & 0x3F] {
                bytes[to] = bits as u8;
                to += 1;
            }
            from += 6;
        } else {
            bytes[to] = bytes[from];
            (from, to) = (from + 1, to + 1);
        }
    }
    (from, to)
}

/// Whether WTF-8 ends with a high surrogate and continues with a low one.
pub fn splits_pair(left: &[u8], right: &[u8]) -> bool {
    matches!(left, [.., 0xED, 0xA0..=0xAF, _]) && matches!(right, [0xED, 0xB0..=0xBF, ..])
}

/// WTF-8 as text; lone surrogates become U+FFFD.
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(code_points(bytes).map(|point| char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}
