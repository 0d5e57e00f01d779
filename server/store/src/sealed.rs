//! Secrets at rest: what is stored of them is encrypted and authenticated (ChaCha20-Poly1305), with keys that are not in the
//! database.
//!
//! A sealed record is `version (1 byte) | key id (4) | salt (32, random) | ciphertext and tag`. Each has a key of its own,
//! derived from the master key with its salt. It is bound to its [`Place`]: copied to another row, it cannot be opened. The
//! ring may have several master keys: the first one seals, all open,
//! so a key can be replaced without a moment at which nothing can be read.
//!
//! Messages contain neither keys nor secrets.

use crate::state::{self, create_folder};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use codecall_base::files::{self, AtomicFile};
use codecall_config::Config;
pub use codecall_config::{MASTER_KEY_FILE_VARIABLE, MASTER_KEY_VARIABLE};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use zeroize::Zeroizing;

/// The version of the format of records.
const FORMAT: u8 = 1;
/// The length of a key, in bytes.
const KEY_BYTES: usize = 32;
/// The length of the id of a key, in bytes.
const ID_BYTES: usize = 4;
/// The length of a salt, in bytes.
const SALT_BYTES: usize = 32;
/// What derived keys are for.
const PURPOSE: &[u8] = b"codecall secrets 1";
/// Maximum size of a file of keys, in bytes.
const MAX_KEY_FILE_BYTES: u64 = 4096;
/// Maximum number of keys in a ring.
const MAX_KEYS: usize = 16;

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
        /// What is wrong with it.
        problem: String,
    },
    /// No key of the ring has sealed the record.
    #[error(
        "the secret was encrypted with another master key (its id is {0}); add that key as a further line of the key's file"
    )]
    OtherKey(String),
    /// The servers of the database use another key than this one has.
    #[error(
        "the secrets of the database are encrypted with the master key {registered}, which this server does not have{own}; \
         copy the file of the master key of a server that has it to {file}, or set CODECALL_MASTER_KEY to that key. If it is \
         lost, `codecall secret key --lost` makes another one; what was encrypted must then be stored again"
    )]
    NotRegistered {
        /// The id of the key of the database.
        registered: String,
        /// What the server has.
        own: String,
        /// Where the key belongs.
        file: String,
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

/// Where the keys of a process are.
#[derive(Clone, Debug)]
pub struct KeySource {
    file: Option<PathBuf>,
}

impl KeySource {
    /// Returns that of a configuration.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self { file: key_file(config) }
    }

    /// Reads the keys: those of the variable [`MASTER_KEY_VARIABLE`], else of the file that [`MASTER_KEY_FILE_VARIABLE`] or
    /// the configuration names, else of `master.key` in the folder of the state.
    ///
    /// # Errors
    /// There is no key, or one that cannot be used.
    pub fn load(&self) -> Result<KeyRing, SealError> {
        if let Some(text) = std::env::var_os(MASTER_KEY_VARIABLE).filter(|text| !text.is_empty()) {
            let text = Zeroizing::new(text.into_string().unwrap_or_default());
            return KeyRing::parse(&text, MASTER_KEY_VARIABLE);
        }
        self.file.as_deref().map_or(Err(SealError::NoKey), KeyRing::read)
    }

    /// Returns that of a file.
    pub(crate) fn of_file(file: PathBuf) -> Self {
        Self { file: Some(file) }
    }

    /// Returns the file of the keys; `None`: there is no folder for it.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Returns when the file was changed last; `None`: there is none.
    #[must_use]
    pub fn changed(&self) -> Option<SystemTime> {
        self.file.as_ref()?.metadata().and_then(|metadata| metadata.modified()).ok()
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
    /// Reads the keys of a configuration, as [`KeySource::load`] does.
    ///
    /// # Errors
    /// There is no key, or one that cannot be used.
    pub fn load(config: &Config) -> Result<Self, SealError> {
        KeySource::of(config).load()
    }

    /// Parses keys in base64, one a line. Empty lines, and those that begin with `#`, are ignored. `from` says where they
    /// are from, for messages.
    ///
    /// # Errors
    /// There is none, a line is no key, or there are more than 16.
    pub fn parse(text: &str, from: &str) -> Result<Self, SealError> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys: Option<Vec<MasterKey>> = lines.map(MasterKey::parse).collect();
        match keys {
            Some(keys) if (1..=MAX_KEYS).contains(&keys.len()) => Ok(Self { keys }),
            Some(_) | None => Err(SealError::MalformedKey { from: from.to_owned() }),
        }
    }

    /// Reads a file of keys.
    ///
    /// # Errors
    /// The file does not exist ([`SealError::NoKey`]), others than its owner may read it, or it has no key.
    pub fn read(path: &Path) -> Result<Self, SealError> {
        let problem = |problem: String| SealError::KeyFile { path: path.display().to_string(), problem };
        require_private(path).map_err(problem)?;
        match files::read_text(path, MAX_KEY_FILE_BYTES).map(Zeroizing::new) {
            Ok(text) => Self::parse(&text, &path.display().to_string()),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(SealError::NoKey),
            Err(error) => Err(problem(error.to_string())),
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

/// Makes a new key, in base64.
///
/// # Errors
/// The system has no random numbers.
pub fn new_key() -> Result<Zeroizing<String>, SealError> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    getrandom::fill(key.as_mut_slice()).map_err(|_| SealError::NoRandom)?;
    Ok(Zeroizing::new(BASE64_STANDARD.encode(*key)))
}

/// Writes a new key as the first line of a file, which only its owner can read, before the keys that it has. The new one
/// seals from now on; the others still open.
///
/// # Errors
/// The file cannot be read or written.
pub fn add_key(path: &Path) -> Result<(), SealError> {
    let _lock = lock(path)?;
    write_key(path)
}

/// Writes a key to a file that has none. Of several processes that do so at once one writes it. Returns whether this one has.
///
/// # Errors
/// The file cannot be read or written, or it has something else than keys.
pub fn ensure_key(path: &Path) -> Result<bool, SealError> {
    let _lock = lock(path)?;
    match KeyRing::read(path) {
        Ok(_) => Ok(false),
        Err(SealError::NoKey) => write_key(path).map(|()| true),
        Err(error) => Err(error),
    }
}

/// Waits until no other process changes a file of keys. The lock is a file beside it, because the file itself is replaced.
fn lock(path: &Path) -> Result<File, SealError> {
    let problem =
        |error: std::io::Error| SealError::KeyFile { path: path.display().to_string(), problem: error.to_string() };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        create_folder(folder).map_err(problem)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    let file = files::open_append(Path::new(&beside)).map_err(problem)?;
    file.lock().map_err(problem)?;
    Ok(file)
}

fn write_key(path: &Path) -> Result<(), SealError> {
    let problem = |problem: String| SealError::KeyFile { path: path.display().to_string(), problem };
    require_private(path).map_err(problem)?;
    let before = match files::read_text(path, MAX_KEY_FILE_BYTES).map(Zeroizing::new) {
        // A file that is no file of keys is not changed.
        Ok(text) => KeyRing::parse(&text, &path.display().to_string()).map(|_| text)?,
        Err(error) if error.kind() == ErrorKind::NotFound => Zeroizing::new(String::new()),
        Err(error) => return Err(problem(error.to_string())),
    };
    let text = Zeroizing::new(format!("{}\n{}", *new_key()?, *before));
    KeyRing::parse(&text, &path.display().to_string())?;
    let written = AtomicFile::create(path).and_then(|mut file| file.write(text.as_bytes()));
    written.map_err(|error| problem(error.to_string()))
}

/// Returns the file of the master key: the one that [`MASTER_KEY_FILE_VARIABLE`] names, else the configuration, else
/// `master.key` in the folder of the state. `None`: there is no such folder.
#[must_use]
pub fn key_file(config: &Config) -> Option<PathBuf> {
    match std::env::var_os(MASTER_KEY_FILE_VARIABLE).filter(|path| !path.is_empty()) {
        Some(path) => Some(path.into()),
        None => {
            let configured = config.store.key_file.clone();
            configured.or_else(|| state::folder(config).map(|folder| folder.join("master.key")))
        }
    }
}

/// Requires that only the owner of a file can read it. A file that does not exist is all right.
#[cfg(unix)]
fn require_private(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;
    match path.metadata() {
        Ok(metadata) if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 => {
            Err("others than its owner may read or write it; `chmod 600` it".into())
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(not(unix))]
fn require_private(_: &Path) -> Result<(), String> {
    Ok(())
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

    #[test]
    fn one_of_several_processes_makes_the_first_key() {
        for attempt in 0..20 {
            let folder = std::env::temp_dir().join(format!("codecall-first-key-{}-{attempt}", std::process::id()));
            let path = folder.join("master.key");
            let keys = std::thread::scope(|scope| {
                let threads: Vec<_> =
                    (0..8).map(|_| scope.spawn(|| (ensure_key(&path), KeyRing::read(&path)))).collect();
                threads.into_iter().map(|thread| thread.join().expect("ended")).collect::<Vec<_>>()
            });
            assert_eq!(keys.iter().filter(|(made, _)| *made == Ok(true)).count(), 1);
            let sealed = keys[0].1.as_ref().expect("a key").seal(PLACE, b"secret").expect("sealed");
            for (made, keys) in &keys {
                assert!(made.is_ok() && keys.as_ref().expect("a key").open(PLACE, &sealed).is_ok());
            }
            std::fs::remove_dir_all(&folder).expect("removed");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_of_keys_is_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = std::env::temp_dir().join(format!("codecall-sealed-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let path = folder.join("inner/master.key");
        assert_eq!(KeyRing::read(&path).err(), Some(SealError::NoKey));
        add_key(&path).expect("written");
        let first = KeyRing::read(&path).expect("a key");
        let sealed = first.seal(PLACE, b"secret").expect("sealed");
        assert_eq!(path.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
        add_key(&path).expect("a second key");
        let both = KeyRing::read(&path).expect("two keys");
        assert!(!both.is_current(&sealed) && both.open(PLACE, &sealed).is_ok());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("changed");
        assert!(matches!(KeyRing::read(&path), Err(SealError::KeyFile { .. })));
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
