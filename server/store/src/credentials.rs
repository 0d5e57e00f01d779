//! Credentials that servers have issued, such as tokens: encrypted, a file each.
//!
//! A record is `version (1) | salt (32) | ciphertext and tag`. Each has a key of its own, derived from the master key with
//! its salt; ChaCha20-Poly1305 binds it to the name of its server, so that a file cannot be moved to that of another.

use crate::state::{create_folder, hex};
use crate::{BoxFuture, Digest, StoreError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codecall_base::files::{self, AtomicFile};
use codecall_config::MASTER_KEY_VARIABLE;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use std::collections::HashMap;
use std::fs::File;
use std::future::ready;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// The version of the format.
const VERSION: u8 = 1;
const SALT_BYTES: usize = 32;
const KEY_BYTES: usize = 32;
/// Maximum size of a record, in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// What derived keys are for.
const PURPOSE: &[u8] = b"codecall credentials 1";

/// A version of a record, which changes whenever it is written; `None`: there is no record.
pub type RecordVersion = Option<(SystemTime, u64)>;

/// Credentials by a digest of their server.
pub trait CredentialStore: Send + Sync {
    /// Returns the credentials of a server; `None` if there are none.
    fn get(&self, server: Digest) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>>;

    /// Stores the credentials of a server, and replaces earlier ones.
    fn put(&self, server: Digest, credentials: Vec<u8>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Removes the credentials of a server. Returns whether there were any.
    fn remove(&self, server: Digest) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Returns the version of the credentials of a server, to see whether another process has changed them.
    fn version(&self, server: Digest) -> RecordVersion;

    /// Waits until no other process renews the credentials of a server. They can be renewed until the guard is dropped.
    fn lock(&self, server: Digest) -> BoxFuture<'_, Result<RenewalGuard, StoreError>>;
}

/// The right to renew the credentials of a server.
#[derive(Debug, Default)]
pub struct RenewalGuard {
    /// The lock ends when the file is closed.
    _file: Option<File>,
}

/// Credentials in memory: they last as long as the process.
#[derive(Default)]
pub struct MemoryCredentials(Mutex<HashMap<Digest, (u64, Vec<u8>)>>);

impl CredentialStore for MemoryCredentials {
    fn get(&self, server: Digest) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>> {
        let records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Box::pin(ready(Ok(records.get(&server).map(|(_, record)| record.clone()))))
    }

    fn put(&self, server: Digest, credentials: Vec<u8>) -> BoxFuture<'_, Result<(), StoreError>> {
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = records.get(&server).map_or(0, |(version, _)| version + 1);
        records.insert(server, (next, credentials));
        Box::pin(ready(Ok(())))
    }

    fn remove(&self, server: Digest) -> BoxFuture<'_, Result<bool, StoreError>> {
        let removed = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&server);
        Box::pin(ready(Ok(removed.is_some())))
    }

    fn version(&self, server: Digest) -> RecordVersion {
        let records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        records.get(&server).map(|(version, _)| (SystemTime::UNIX_EPOCH, *version))
    }

    fn lock(&self, _: Digest) -> BoxFuture<'_, Result<RenewalGuard, StoreError>> {
        Box::pin(ready(Ok(RenewalGuard::default())))
    }
}

/// Credentials in a folder. Several processes may share it.
///
/// The master key is 32 bytes in base64: the value of `CODECALL_MASTER_KEY`, else the file `master.key` beside the folder,
/// which is created with the first record and which only its owner can read.
pub struct FileCredentials {
    state: PathBuf,
    /// The value of the variable.
    variable: Option<String>,
}

impl FileCredentials {
    /// Creates a store in the folder of the state.
    #[must_use]
    pub fn new(state: &Path) -> Self {
        Self::with_key(state, std::env::var(MASTER_KEY_VARIABLE).ok().filter(|key| !key.is_empty()))
    }

    /// Does the same with a master key in base64; `None`: that of the file.
    #[must_use]
    pub fn with_key(state: &Path, key: Option<String>) -> Self {
        Self { state: state.to_owned(), variable: key }
    }

    fn path(&self, server: Digest) -> PathBuf {
        self.state.join("credentials").join(hex(&server))
    }

    fn opener(&self) -> Vault {
        Vault { key_file: self.state.join("master.key"), variable: self.variable.clone() }
    }
}

impl CredentialStore for FileCredentials {
    fn get(&self, server: Digest) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>> {
        let (path, vault) = (self.path(server), self.opener());
        blocking(move || match files::read(&path, MAX_BYTES) {
            Ok(record) => vault.open(&server, record, &path).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", path.display())),
        })
    }

    fn put(&self, server: Digest, credentials: Vec<u8>) -> BoxFuture<'_, Result<(), StoreError>> {
        let (path, vault) = (self.path(server), self.opener());
        blocking(move || {
            let cannot = |error: std::io::Error| format!("{}: {error}", path.display());
            create_folder(path.parent().unwrap_or(&path)).map_err(cannot)?;
            let record = vault.seal(&server, credentials)?;
            AtomicFile::create(&path).and_then(|mut file| file.write(&record)).map_err(cannot)
        })
    }

    fn remove(&self, server: Digest) -> BoxFuture<'_, Result<bool, StoreError>> {
        let path = self.path(server);
        blocking(move || match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(format!("{}: {error}", path.display())),
        })
    }

    fn version(&self, server: Digest) -> RecordVersion {
        let metadata = std::fs::metadata(self.path(server)).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    }

    fn lock(&self, server: Digest) -> BoxFuture<'_, Result<RenewalGuard, StoreError>> {
        let path = self.path(server).with_extension("lock");
        blocking(move || {
            let cannot = |error: std::io::Error| format!("{}: {error}", path.display());
            create_folder(path.parent().unwrap_or(&path)).map_err(cannot)?;
            let file = files::open_append(&path).map_err(cannot)?;
            file.lock().map_err(cannot)?;
            Ok(RenewalGuard { _file: Some(file) })
        })
    }
}

fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> BoxFuture<'static, Result<T, StoreError>> {
    Box::pin(async move {
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| StoreError(error.to_string()))?.map_err(StoreError)
    })
}

/// Encrypts and decrypts records.
struct Vault {
    key_file: PathBuf,
    variable: Option<String>,
}

impl Vault {
    fn seal(&self, server: &Digest, mut text: Vec<u8>) -> Result<Vec<u8>, String> {
        let mut record = vec![VERSION; 1 + SALT_BYTES];
        random(&mut record[1..])?;
        let keys = self.master_keys(true)?;
        let key = derived(keys.first().ok_or("there is no master key")?, &record[1..])?;
        key.seal_in_place_append_tag(nonce(), Aad::from(bound_to(server)), &mut text)
            .map_err(|_| "credentials cannot be encrypted".to_owned())?;
        record.extend(text);
        Ok(record)
    }

    fn open(&self, server: &Digest, mut record: Vec<u8>, path: &Path) -> Result<Vec<u8>, String> {
        let damaged = |why: &str| format!("{}: {why}", path.display());
        if record.first() != Some(&VERSION) || record.len() < 1 + SALT_BYTES {
            return Err(damaged("it is not a record of credentials of this version"));
        }
        let sealed = record.split_off(1 + SALT_BYTES);
        // After a rotation the record may be that of an earlier key.
        for master in self.master_keys(false)? {
            let (key, mut text) = (derived(&master, &record[1..])?, sealed.clone());
            if let Ok(opened) = key.open_in_place(nonce(), Aad::from(bound_to(server)), &mut text) {
                let length = opened.len();
                text.truncate(length);
                return Ok(text);
            }
        }
        Err(damaged("it cannot be decrypted: the master key is another one, or the file was changed"))
    }

    /// Returns the master keys, of which the first one encrypts. If there is none, it is created, or an error.
    fn master_keys(&self, create: bool) -> Result<Vec<[u8; KEY_BYTES]>, String> {
        if let Some(text) = &self.variable {
            return decode(text).ok_or_else(|| format!("{MASTER_KEY_VARIABLE}: it is not 32 bytes in base64"));
        }
        let path = &self.key_file;
        let cannot = |error: std::io::Error| format!("{}: {error}", path.display());
        match files::read_text(path, 4096) {
            Ok(text) => {
                require_private(path)?;
                decode(&text).ok_or_else(|| format!("{}: it is not a key: 32 bytes in base64", path.display()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound && create => {
                let lock = files::open_append(&path.with_extension("lock")).map_err(cannot)?;
                lock.lock().map_err(cannot)?;
                if path.exists() {
                    return self.master_keys(false);
                }
                let mut key = [0; KEY_BYTES];
                random(&mut key)?;
                let text = STANDARD.encode(key);
                AtomicFile::create(path).and_then(|mut file| file.write(text.as_bytes())).map_err(cannot)?;
                Ok(vec![key])
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(format!("{}: the key of the stored credentials is gone; log in again", path.display()))
            }
            Err(error) => Err(cannot(error)),
        }
    }
}

fn random(bytes: &mut [u8]) -> Result<(), String> {
    getrandom::fill(bytes).map_err(|_| "the system has no source of random numbers".to_owned())
}

/// Decodes keys, one a line. `codecall secret rotate` adds a new one as the first line.
fn decode(text: &str) -> Option<Vec<[u8; KEY_BYTES]>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let keys: Option<Vec<_>> = lines.map(|line| STANDARD.decode(line).ok()?.try_into().ok()).collect();
    keys.filter(|keys| !keys.is_empty())
}

/// Each record has a key of its own, so one nonce is enough.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

fn bound_to(server: &Digest) -> Vec<u8> {
    [&[VERSION], server.as_slice()].concat()
}

fn derived(master: &[u8; KEY_BYTES], salt: &[u8]) -> Result<LessSafeKey, String> {
    let failed = |_| "the key of a record cannot be derived".to_owned();
    let pseudorandom = Salt::new(HKDF_SHA256, salt).extract(master);
    let expanded = pseudorandom.expand(&[PURPOSE], &CHACHA20_POLY1305).map_err(failed)?;
    Ok(LessSafeKey::new(UnboundKey::from(expanded)))
}

/// Refuses a key that others can read.
fn require_private(path: &Path) -> Result<(), String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let metadata = std::fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(format!("{}: other users can read the key; its mode must be 600", path.display()));
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("codecall-credentials-{}-{name}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    const SECRET: &[u8] = b"{\"access_token\": \"very-secret-token\"}";

    #[tokio::test]
    async fn credentials_are_encrypted() {
        let folder = Folder::new("same");
        let store = FileCredentials::with_key(&folder.0, None);
        assert_eq!(store.get([1; 32]).await, Ok(None));
        store.put([1; 32], SECRET.to_vec()).await.expect("stored");
        assert_eq!(store.get([1; 32]).await, Ok(Some(SECRET.to_vec())));
        let again = FileCredentials::with_key(&folder.0, None);
        assert_eq!(again.get([1; 32]).await, Ok(Some(SECRET.to_vec())));
        let record = std::fs::read(store.path([1; 32])).expect("a file");
        assert!(!record.windows(6).any(|part| part == b"secret"));
        assert_eq!((store.remove([1; 32]).await, store.remove([1; 32]).await), (Ok(true), Ok(false)));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let key = folder.0.join("master.key");
            let mode = std::fs::metadata(&key).expect("a key").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).expect("changed");
            let refused = store.put([1; 32], SECRET.to_vec()).await.expect_err("refused");
            assert!(refused.0.contains("other users"), "{refused}");
        }
    }

    #[tokio::test]
    async fn changed_records_and_other_keys_are_errors() {
        let folder = Folder::new("changed");
        let key = |byte: u8| Some(STANDARD.encode([byte; 32]));
        let store = FileCredentials::with_key(&folder.0, key(1));
        store.put([1; 32], SECRET.to_vec()).await.expect("stored");
        let record = std::fs::read(store.path([1; 32])).expect("a file");
        // In the place of another server's, with another key, and with any byte changed.
        std::fs::write(store.path([2; 32]), &record).expect("written");
        let moved = store.get([2; 32]).await.expect_err("refused");
        assert!(moved.0.contains("cannot be decrypted"), "{moved}");
        assert!(FileCredentials::with_key(&folder.0, key(2)).get([1; 32]).await.is_err());
        for at in 0..record.len() {
            let mut changed = record.clone();
            changed[at] ^= 1;
            std::fs::write(store.path([1; 32]), &changed).expect("written");
            assert!(store.get([1; 32]).await.is_err(), "byte {at}");
        }
        std::fs::write(store.path([1; 32]), &record[..20]).expect("written");
        assert!(store.get([1; 32]).await.is_err());
        let wrong = FileCredentials::with_key(&folder.0, Some("short".into()));
        assert!(wrong.put([1; 32], SECRET.to_vec()).await.expect_err("refused").0.contains("CODECALL_MASTER_KEY"));
        let none = FileCredentials::with_key(&folder.0, None).get([1; 32]).await;
        assert!(none.is_err());
    }
}
