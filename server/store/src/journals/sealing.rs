//! The parts of journals as they are stored: packed and sealed.

use crate::database::Value;
use crate::sealed::{KeyRing, Place, SealError};

/// Shorter texts are not compressed, in bytes: they would hardly be smaller, and the memory of a compressor is hundreds of kilobytes.
const MIN_COMPRESSED: u16 = 256;

/// Packs and seals a part of a run.
pub(super) fn seal(keys: &KeyRing, table: &str, id: &str, name: &str, text: &str) -> Result<Value, SealError> {
    Ok(keys.seal(Place { table, owner: id, name }, &packed(text))?.into())
}

/// Packs a text as zlib does: a short one as a block that is stored as it is (RFC 1950, RFC 1951).
fn packed(text: &str) -> Vec<u8> {
    let length = match u16::try_from(text.len()) {
        Ok(length) if length < MIN_COMPRESSED => length,
        _ => return miniz_oxide::deflate::compress_to_vec_zlib(text.as_bytes(), 1),
    };
    // No sum exceeds its type, as the text is short.
    let (a, b) = text.bytes().fold((1_u32, 0_u32), |(a, b), byte| (a + u32::from(byte), b + a + u32::from(byte)));
    let checksum = ((b % 65_521) << 16) | (a % 65_521);
    let mut packed = vec![0x78, 0x01, 0x01];
    packed.extend(length.to_le_bytes());
    packed.extend((!length).to_le_bytes());
    packed.extend(text.as_bytes());
    packed.extend(checksum.to_be_bytes());
    packed
}

/// Opens and unpacks a part of a run.
pub(super) fn open(keys: &KeyRing, table: &str, id: &str, name: &str, sealed: &Value) -> Result<String, SealError> {
    let packed = keys.open(Place { table, owner: id, name }, sealed.bytes())?;
    crate::runs::inflated(&packed).ok_or(SealError::Tampered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_lengths_are_packed() {
        for text in ["", "a", "\u{e4}\u{20ac}"]
            .map(str::to_owned)
            .into_iter()
            .chain((250..260).map(|length| "\u{7f}".repeat(length)))
        {
            assert_eq!(crate::runs::inflated(&packed(&text)).as_deref(), Some(&*text));
        }
        assert!(packed(&"a".repeat(10_000)).len() < 1_000);
    }
}
