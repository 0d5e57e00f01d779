//! Secrets at rest: what is stored of them is encrypted and authenticated (ChaCha20-Poly1305), with keys that are not in the
//! database.
//!
//! A sealed record is `version (1 byte) | key id (4) | salt (32, random) | ciphertext and tag`. Each has a key of its own,
//! derived from the master key with its salt. It is bound to its [`Place`]: copied to another row, it cannot be opened.
//! The ring may have several master keys: the first one seals, all open. So a key can be replaced without a moment at
//! which nothing can be read.
//!
//! Messages contain neither keys nor secrets.

pub use crate::key_source::{KeySource, MAX_KEY_FILE_BYTES};
use crate::state;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
pub use codecall_config::{MASTER_KEY_FILE_VARIABLE, MASTER_KEY_VARIABLE};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use sha2::{Digest as _, Sha256};
use std::fmt;
use zeroize::Zeroizing;

/// The version of the format of records.
const FORMAT: u8 = 1;
/// The length of a key, in bytes.
const KEY_BYTES: usize = 32;
/// The length of the id of a key, in bytes.
const ID_BYTES: usize = 4;
/// The length of a salt, in bytes.
const SALT_BYTES: usize = 32;
/// The purpose of derived keys.
const PURPOSE: &[u8] = b"codecall secrets 1";

/// Where a secret is stored. A record can be opened in its own place only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The kind of the secret, such as the name of a table.
    pub table: &'a str,
    /// To whom it belongs: a workspace, or a server.
    pub owner: &'a str,
    /// Its name.
    pub name: &'a str,
}

impl Place<'_> {
    /// The additional data that is authenticated. The lengths keep places apart whose parts differ only in where they end.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in [self.table, self.owner, self.name] {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes
    }
}

/// Why something cannot be sealed or opened, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// There is no key.
    #[error(
        "there is no master key, which encrypts secrets at rest; `codecall secret key` makes one, or set \
         CODECALL_MASTER_KEY or CODECALL_MASTER_KEY_FILE"
    )]
    NoKey,
    /// A key cannot be parsed.
    #[error(
        "{from}: a master key is 32 bytes in base64 (44 characters); `codecall secret key --print` prints a new one"
    )]
    MalformedKey {
        /// The variable or the file.
        from: String,
    },
    /// The file of the key cannot be used.
    #[error("{path}: the file of the master key cannot be used: {problem}")]
    KeyFile {
        /// The file.
        path: String,
        /// The problem.
        problem: String,
    },
    /// The keyring of the system cannot be used.
    #[error("the keyring of the system, which has the master key (store.keyring), cannot be used: {0}")]
    Keyring(String),
    /// No key of the ring has sealed the record.
    #[error(
        "the secret was encrypted with another master key (its id is {0}); add that key as a further line of the key's file"
    )]
    OtherKey(String),
    /// The servers of the database use another key than this one has.
    #[error(
        "the secrets of the database are encrypted with the master key {registered}, which this server does not have{own}; \
         copy the file of the master key of a server that has it to {place}, or set CODECALL_MASTER_KEY to that key. If it is \
         lost, `codecall secret key --lost` makes another one; what was encrypted must then be stored again"
    )]
    NotRegistered {
        /// The id of the key of the database.
        registered: String,
        /// The keys of the server, in words.
        own: String,
        /// Where the key belongs.
        place: String,
    },
    /// A key was removed that something still needs.
    #[error(
        "the master key {id} was removed, and is still needed by {by}: add it again as a further line to {place}; \
         `codecall secret key --forget {id}` then encrypts them with the first key, and removes it"
    )]
    StillNeeded {
        /// The id of the key.
        id: String,
        /// The data that it has sealed.
        by: String,
        /// Where the key belongs.
        place: String,
    },
    /// The record was changed, or belongs to another place.
    #[error("the stored secret is damaged, was changed, or belongs to another row; set it again")]
    Tampered,
    /// A newer version of the program has sealed the record.
    #[error("a newer version of this program has stored the secret (its format is {0})")]
    Newer(u8),
    /// The system has no random numbers.
    #[error("the system has no source of random numbers")]
    NoRandom,
}

/// A key. Dropping it overwrites it.
struct MasterKey {
    id: [u8; ID_BYTES],
    key: Zeroizing<[u8; KEY_BYTES]>,
}

impl MasterKey {
    /// Parses a key in base64.
    fn parse(text: &str) -> Option<Self> {
        let bytes = Zeroizing::new(BASE64_STANDARD.decode(text.trim()).ok()?);
        let key = Zeroizing::new(<[u8; KEY_BYTES]>::try_from(bytes.as_slice()).ok()?);
        let digest = Sha256::new().chain_update(b"codecall master key").chain_update(*key).finalize();
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&digest[..ID_BYTES]);
        Some(Self { id, key })
    }

    /// Derives the key of a record. It is used once, so one nonce is enough.
    fn derived(&self, salt: &[u8], purpose: &[u8]) -> Result<(LessSafeKey, Nonce), SealError> {
        let pseudorandom = Salt::new(HKDF_SHA256, salt).extract(self.key.as_slice());
        let purpose = [purpose];
        let expanded = pseudorandom.expand(&purpose, &CHACHA20_POLY1305).map_err(|_| SealError::Tampered)?;
        Ok((LessSafeKey::new(UnboundKey::from(expanded)), Nonce::assume_unique_for_key([0; 12])))
    }
}

/// The keys that seal and open secrets.
pub struct KeyRing {
    /// The first one seals. Never empty.
    keys: Vec<MasterKey>,
}

impl fmt::Debug for KeyRing {
    /// Without the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").field("keys", &self.keys.len()).finish()
    }
}

impl KeyRing {
    /// Parses keys in base64, one a line. Empty lines, and those that begin with `#`, are ignored. `from` says where they
    /// are from, for messages.
    ///
    /// # Errors
    /// There is none, or a line is no key.
    pub fn parse(text: &str, from: &str) -> Result<Self, SealError> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys: Option<Vec<MasterKey>> = lines.map(MasterKey::parse).collect();
        match keys {
            Some(keys) if !keys.is_empty() => Ok(Self { keys }),
            Some(_) | None => Err(SealError::MalformedKey { from: from.to_owned() }),
        }
    }

    /// Encrypts a secret for its place.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn seal(&self, place: Place<'_>, secret: &[u8]) -> Result<Vec<u8>, SealError> {
        let key = self.keys.first().ok_or(SealError::NoKey)?;
        let mut salt = [0; SALT_BYTES];
        getrandom::fill(&mut salt).map_err(|_| SealError::NoRandom)?;
        let (cipher, nonce) = key.derived(&salt, PURPOSE)?;
        let mut sealed = secret.to_vec();
        // Only a secret of 256 GB is refused.
        cipher
            .seal_in_place_append_tag(nonce, Aad::from(place.bytes()), &mut sealed)
            .map_err(|_| SealError::Tampered)?;
        let mut record = Vec::with_capacity(1 + ID_BYTES + SALT_BYTES + sealed.len());
        record.push(FORMAT);
        record.extend_from_slice(&key.id);
        record.extend_from_slice(&salt);
        record.extend_from_slice(&sealed);
        Ok(record)
    }

    /// Decrypts a secret in its place. Dropping it overwrites it.
    ///
    /// # Errors
    /// Another key has sealed it, or it was changed.
    pub fn open(&self, place: Place<'_>, record: &[u8]) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let (format, rest) = record.split_first().ok_or(SealError::Tampered)?;
        if *format != FORMAT {
            return Err(if *format > FORMAT { SealError::Newer(*format) } else { SealError::Tampered });
        }
        let (id, rest) = rest.split_first_chunk::<ID_BYTES>().ok_or(SealError::Tampered)?;
        let (salt, sealed) = rest.split_first_chunk::<SALT_BYTES>().ok_or(SealError::Tampered)?;
        let key = self.keys.iter().find(|key| key.id == *id);
        let key = key.ok_or_else(|| SealError::OtherKey(state::hex(id)))?;
        let (cipher, nonce) = key.derived(salt, PURPOSE)?;
        let mut opened = Zeroizing::new(sealed.to_vec());
        let length =
            cipher.open_in_place(nonce, Aad::from(place.bytes()), &mut opened).map_err(|_| SealError::Tampered)?.len();
        opened.truncate(length);
        Ok(opened)
    }

    /// Decrypts a record of credentials as files of earlier versions of the program have it: `version (1 byte) | salt (32) |
    /// ciphertext and tag`, without the id of a key.
    ///
    /// # Errors
    /// No key of the ring has sealed it for this server, or it was changed.
    pub(crate) fn open_file(&self, server: &[u8; 32], record: &[u8]) -> Result<Zeroizing<Vec<u8>>, SealError> {
        const FILE_FORMAT: u8 = 1;
        let (format, rest) = record.split_first().ok_or(SealError::Tampered)?;
        let (salt, sealed) = rest.split_first_chunk::<SALT_BYTES>().ok_or(SealError::Tampered)?;
        if *format != FILE_FORMAT {
            return Err(SealError::Newer(*format));
        }
        let place = [&[FILE_FORMAT], server.as_slice()].concat();
        for key in &self.keys {
            let (cipher, nonce) = key.derived(salt, b"codecall credentials 1")?;
            let mut opened = Zeroizing::new(sealed.to_vec());
            if let Ok(text) = cipher.open_in_place(nonce, Aad::from(&place), &mut opened) {
                let length = text.len();
                opened.truncate(length);
                return Ok(opened);
            }
        }
        Err(SealError::Tampered)
    }

    /// Returns the id of the key that seals, in hexadecimal digits.
    #[must_use]
    pub fn id(&self) -> String {
        self.keys.first().map(|key| state::hex(&key.id)).unwrap_or_default()
    }

    /// Returns the ids of the keys that only open, in hexadecimal digits.
    pub fn earlier(&self) -> impl Iterator<Item = String> + '_ {
        self.keys.iter().skip(1).map(|key| state::hex(&key.id))
    }

    /// Whether the ring has the key of an id.
    #[must_use]
    pub fn has(&self, id: &str) -> bool {
        self.keys.iter().any(|key| state::hex(&key.id) == id)
    }

    /// Whether the first key has sealed the record. Records of other keys are sealed again when keys are rotated.
    #[must_use]
    pub fn is_current(&self, record: &[u8]) -> bool {
        self.keys.first().is_some_and(|key| record.get(1..=ID_BYTES) == Some(&key.id[..]))
    }
}

/// Returns the id of the key that has sealed a record, in hexadecimal digits.
#[must_use]
pub fn sealing_key(record: &[u8]) -> Option<String> {
    record.get(1..=ID_BYTES).map(state::hex)
}

/// Returns the id of a key in base64, in hexadecimal digits; `None`: it is none.
pub(crate) fn id_of(key: &str) -> Option<String> {
    MasterKey::parse(key).map(|key| state::hex(&key.id))
}

/// Makes a new key, in base64.
///
/// # Errors
/// The system has no random numbers.
pub fn new_key() -> Result<Zeroizing<String>, SealError> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    getrandom::fill(key.as_mut_slice()).map_err(|_| SealError::NoRandom)?;
    Ok(Zeroizing::new(BASE64_STANDARD.encode(*key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'_> = Place { table: "secrets", owner: "default", name: "API_KEY" };

    fn ring() -> KeyRing {
        KeyRing::parse(&new_key().expect("random"), "test").expect("a key")
    }

    #[test]
    fn a_secret_is_opened_in_its_place_only() {
        let ring = ring();
        let sealed = ring.seal(PLACE, b"hunter2!").expect("sealed");
        assert_eq!(ring.open(PLACE, &sealed).expect("opened").as_slice(), b"hunter2!");
        assert_eq!(sealed.len(), 8 + 53);
        assert!(!sealed.windows(4).any(|bytes| bytes == b"hunt"));
        assert_ne!(sealed, ring.seal(PLACE, b"hunter2!").expect("sealed"), "each record has a nonce of its own");
        let others = [
            Place { name: "OTHER", ..PLACE },
            Place { owner: "other", ..PLACE },
            Place { table: "tokens", ..PLACE },
            Place { owner: "defaultA", name: "PI_KEY", ..PLACE },
        ];
        for other in others {
            assert_eq!(ring.open(other, &sealed), Err(SealError::Tampered));
        }
    }

    #[test]
    fn a_changed_record_is_refused() {
        let ring = ring();
        let sealed = ring.seal(PLACE, b"secret").expect("sealed");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            let error = ring.open(PLACE, &changed).expect_err("it was changed");
            assert!(
                matches!(
                    (at, &error),
                    (0, SealError::Tampered) | (1..=4, SealError::OtherKey(_)) | (5.., SealError::Tampered)
                ),
                "{at}: {error}"
            );
            assert!(ring.open(PLACE, &sealed[..at]).is_err());
        }
        let mut newer = sealed;
        newer[0] = 2;
        assert_eq!(ring.open(PLACE, &newer), Err(SealError::Newer(2)));
    }

    #[test]
    fn another_key_opens_nothing_and_an_added_one_everything() {
        let (old, new) = (new_key().expect("random"), new_key().expect("random"));
        let sealed = KeyRing::parse(&old, "test").expect("a key").seal(PLACE, b"secret").expect("sealed");
        let other = KeyRing::parse(&new, "test").expect("a key");
        assert!(matches!(other.open(PLACE, &sealed), Err(SealError::OtherKey(_))));
        let both = KeyRing::parse(&format!("# new\n{}\n\n{}\n", *new, *old), "test").expect("two keys");
        assert_eq!(both.open(PLACE, &sealed).expect("opened").as_slice(), b"secret");
        assert!(!both.is_current(&sealed));
        assert!(both.is_current(&both.seal(PLACE, b"secret").expect("sealed")));
    }

    #[test]
    fn what_is_no_key_is_refused_without_naming_it() {
        for text in ["", "# only a comment", "c2hvcnQ=", "not base64 at all", &"QUFB".repeat(20)] {
            let error = KeyRing::parse(text, "KEY").expect_err("no key");
            assert_eq!(error, SealError::MalformedKey { from: "KEY".into() });
            assert!(text.is_empty() || !error.to_string().contains(text));
        }
    }
}
