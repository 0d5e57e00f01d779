//! Tokens: a journal as one short text, for clients that pass it on.

use super::journal::Journal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use sha2::Sha256;
use std::fmt;

/// The prefix of every token: format and version.
const VERSION: &str = "ccj1";
/// The level of compression, of 0 to 10.
const LEVEL: u8 = 6;

/// Why a text is not a token of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// It has another format or version.
    Version,
    /// It is damaged.
    Damaged,
    /// Its content is too long.
    TooLarge,
    /// It was not made with the key.
    Forged,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "the token has another format or another version",
            Self::Damaged => "the token is damaged; send it back as it came",
            Self::TooLarge => "the token holds a journal that is too large",
            Self::Forged => "the token was not issued here, or was changed",
        })
    }
}

impl std::error::Error for TokenError {}

impl Journal {
    /// The journal as a text without white space, compressed: `ccj1.DATA`, or `ccj1.DATA.MAC` with a
    /// key, which detects changes by those who do not know the key (HMAC with SHA-256).
    #[must_use]
    pub fn token(&self, key: Option<&[u8]>) -> String {
        // Serializing this type cannot fail.
        let json = serde_json::to_vec(self).unwrap_or_default();
        let mut token = format!("{VERSION}.{}", URL_SAFE_NO_PAD.encode(compress_to_vec(&json, LEVEL)));
        if let Some(mac) = key.and_then(|key| mac(key, &token)) {
            token.push('.');
            token.push_str(&URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()));
        }
        token
    }

    /// Read a token. With a key, only tokens that were made with it are read, without one only those
    /// without.
    ///
    /// # Errors
    /// It is no such token, or holds more than `max_bytes`.
    pub fn from_token(token: &str, key: Option<&[u8]>, max_bytes: usize) -> Result<Self, TokenError> {
        let (version, rest) = token.split_once('.').ok_or(TokenError::Version)?;
        if version != VERSION {
            return Err(TokenError::Version);
        }
        let data = match (key, rest.split_once('.')) {
            (None, None) => rest,
            (None, Some(_)) | (Some(_), None) => return Err(TokenError::Forged),
            (Some(key), Some((data, signature))) => {
                let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| TokenError::Forged)?;
                let signed = mac(key, &token[..VERSION.len() + 1 + data.len()]).ok_or(TokenError::Forged)?;
                signed.verify_slice(&signature).map_err(|_| TokenError::Forged)?;
                data
            }
        };
        let packed = URL_SAFE_NO_PAD.decode(data).map_err(|_| TokenError::Damaged)?;
        let json =
            decompress_to_vec_with_limit(&packed, max_bytes.saturating_mul(2)).map_err(|error| match error.status {
                miniz_oxide::inflate::TINFLStatus::HasMoreOutput => TokenError::TooLarge,
                _ => TokenError::Damaged,
            })?;
        serde_json::from_slice(&json).map_err(|_| TokenError::Damaged)
    }
}

/// HMAC takes keys of any length.
fn mac(key: &[u8], text: &str) -> Option<Hmac<Sha256>> {
    Hmac::<Sha256>::new_from_slice(key).ok().map(|mac| mac.chain_update(text))
}
