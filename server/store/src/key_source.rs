//! The place of the master keys of a process: a variable, a file that only its owner can read, or the keyring of the system.

use crate::keyring;
use crate::sealed::{KeyRing, MASTER_KEY_FILE_VARIABLE, MASTER_KEY_VARIABLE, SealError, id_of, new_key};
use crate::state::{self, create_folder};
use codecall_base::files::{self, AtomicFile};
use codecall_config::Config;
use std::fmt;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zeroize::Zeroizing;

/// Maximum size of a file of keys, in bytes.
pub const MAX_KEY_FILE_BYTES: u64 = 256 << 10;
/// How often a keyring is read again. It does not say when another process has changed it.
const KEYRING_INTERVAL: Duration = Duration::from_secs(30);

/// Where the keys of a process are.
#[derive(Clone, Debug)]
pub struct KeySource {
    place: Option<KeyPlace>,
}

/// The place that keeps keys. Both have the same text: a key in base64 on each line.
#[derive(Clone, Debug)]
enum KeyPlace {
    File(PathBuf),
    Keyring {
        /// The file that processes lock before they change the keys: the one that would otherwise have them.
        beside: PathBuf,
    },
}

impl KeySource {
    /// Returns that of a configuration: the file that [`MASTER_KEY_FILE_VARIABLE`] names, else the keyring or the file of the
    /// configuration, else `master.key` in the folder of the state.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        if let Some(path) = std::env::var_os(MASTER_KEY_FILE_VARIABLE).filter(|path| !path.is_empty()) {
            return Self::of_file(path.into());
        }
        let default = || state::folder(config).map(|folder| folder.join("master.key"));
        let place = if config.store.keyring {
            default().map(|beside| KeyPlace::Keyring { beside })
        } else {
            config.store.key_file.clone().or_else(default).map(KeyPlace::File)
        };
        Self { place }
    }

    /// Returns that of a file.
    pub(crate) fn of_file(file: PathBuf) -> Self {
        Self { place: Some(KeyPlace::File(file)) }
    }

    /// Reads the keys: those of the variable [`MASTER_KEY_VARIABLE`], else those of the file or the keyring. A keyring
    /// may ask its
    /// user meanwhile.
    ///
    /// # Errors
    /// There is no key, or one that cannot be used.
    pub fn load(&self) -> Result<KeyRing, SealError> {
        if let Some(text) = std::env::var_os(MASTER_KEY_VARIABLE).filter(|text| !text.is_empty()) {
            let text = Zeroizing::new(text.into_string().unwrap_or_default());
            return KeyRing::parse(&text, MASTER_KEY_VARIABLE);
        }
        let place = self.place()?;
        place.read()?.map_or(Err(SealError::NoKey), |text| KeyRing::parse(&text, &place.to_string()))
    }

    /// Reads the keys on a thread that may wait.
    ///
    /// # Errors
    /// The errors of [`Self::load`].
    pub async fn load_beside(&self) -> Result<KeyRing, SealError> {
        let source = self.clone();
        blocking(move || source.load()).await
    }

    /// Adds a new key before the keys that are there. It seals from now on; the others still open.
    ///
    /// # Errors
    /// The place of the keys cannot be read or written.
    pub fn add_key(&self) -> Result<(), SealError> {
        let place = self.place()?;
        let _lock = place.lock()?;
        place.add(&new_key()?)
    }

    /// Makes a key if there is none. Of several processes that do so at once one makes it. Returns whether this one has.
    ///
    /// # Errors
    /// The place of the keys cannot be read or written, or it has something else than keys.
    pub fn ensure_key(&self) -> Result<bool, SealError> {
        let place = self.place()?;
        let _lock = place.lock()?;
        match place.read()? {
            Some(text) => KeyRing::parse(&text, &place.to_string()).map(|_| false),
            None => place.add(&new_key()?).map(|()| true),
        }
    }

    /// Adds keys that were made elsewhere before those that are there. What is there already is not repeated.
    ///
    /// # Errors
    /// They are no keys, or the place of the keys cannot be read or written.
    pub fn import(&self, keys: &str, from: &str) -> Result<(), SealError> {
        KeyRing::parse(keys, from)?;
        let place = self.place()?;
        let _lock = place.lock()?;
        place.add(keys)
    }

    /// Removes a key, by its id, that is not the only one. Returns whether it was there.
    ///
    /// # Errors
    /// The place of the keys cannot be read or written, or has no other key.
    pub fn remove(&self, id: &str) -> Result<bool, SealError> {
        let place = self.place()?;
        let _lock = place.lock()?;
        let before = place.read()?.ok_or(SealError::NoKey)?;
        let is_other = |line: &&str| id_of(line).is_none_or(|found| found != id);
        let mut text = Zeroizing::new(String::with_capacity(before.len()));
        for line in before.lines().filter(is_other) {
            text.push_str(line);
            text.push('\n');
        }
        KeyRing::parse(&text, &place.to_string())?;
        place.write(&text)?;
        Ok(text.len() < before.trim_end().len())
    }

    /// Removes a file of keys of no use, which was just made. The keyring keeps them: another store may have begun to use them.
    pub(crate) fn discard(&self) {
        if let Some(KeyPlace::File(path)) = &self.place {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Returns when the keys were changed last, as far as it is known; `None`: there are none.
    #[must_use]
    pub fn changed(&self) -> Option<SystemTime> {
        match self.place.as_ref()? {
            KeyPlace::File(path) => path.metadata().and_then(|metadata| metadata.modified()).ok(),
            KeyPlace::Keyring { .. } => {
                let intervals = UNIX_EPOCH.elapsed().unwrap_or_default().as_secs() / KEYRING_INTERVAL.as_secs();
                Some(UNIX_EPOCH + Duration::from_secs(intervals * KEYRING_INTERVAL.as_secs()))
            }
        }
    }

    fn place(&self) -> Result<&KeyPlace, SealError> {
        self.place.as_ref().ok_or(SealError::NoKey)
    }
}

/// Where keys belong, for messages.
impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => place.fmt(f),
            None => f.write_str("a file that 'store.keyFile' names"),
        }
    }
}

impl fmt::Display for KeyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Keyring { .. } => f.write_str("the keyring of the system"),
        }
    }
}

impl KeyPlace {
    /// Returns the keys; `None`: there are none.
    fn read(&self) -> Result<Option<Zeroizing<String>>, SealError> {
        match self {
            Self::File(path) => {
                let problem = |problem: String| SealError::KeyFile { path: path.display().to_string(), problem };
                require_private(path).map_err(problem)?;
                match files::read_text(path, MAX_KEY_FILE_BYTES) {
                    Ok(text) => Ok(Some(Zeroizing::new(text))),
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                    Err(error) => Err(problem(error.to_string())),
                }
            }
            Self::Keyring { .. } => keyring::read().map_err(SealError::Keyring),
        }
    }

    /// Writes keys before those that are there. What is there and no key is not changed.
    fn add(&self, keys: &str) -> Result<(), SealError> {
        let before = self.read()?.unwrap_or_default();
        let mut text = Zeroizing::new(String::with_capacity(keys.len() + before.len() + 2));
        for line in keys.lines().filter(|line| !before.lines().any(|known| known.trim() == line.trim())) {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str(&before);
        KeyRing::parse(&text, &self.to_string())?;
        self.write(&text)
    }

    fn write(&self, text: &str) -> Result<(), SealError> {
        match self {
            Self::File(path) => {
                let written = AtomicFile::create(path).and_then(|mut file| file.write(text.as_bytes()));
                let problem = |error: std::io::Error| error.to_string();
                written.map_err(problem).map_err(|problem| SealError::KeyFile { path: self.to_string(), problem })
            }
            Self::Keyring { .. } => keyring::write(text).map_err(SealError::Keyring),
        }
    }

    /// Waits until no other process changes the keys. The lock is a file beside theirs, because their file is replaced.
    fn lock(&self) -> Result<File, SealError> {
        let (Self::File(path) | Self::Keyring { beside: path }) = self;
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
}

/// Runs what may wait for files or people on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SealError> + Send + 'static,
) -> Result<T, SealError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        // The program ends.
        Err(_) => Err(SealError::NoKey),
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
    use crate::sealed::Place;

    const PLACE: Place<'_> = Place { table: "secrets", owner: "default", name: "API_KEY" };

    #[test]
    fn one_of_several_processes_makes_the_first_key() {
        for attempt in 0..20 {
            let folder = std::env::temp_dir().join(format!("codecall-first-key-{}-{attempt}", std::process::id()));
            let source = KeySource::of_file(folder.join("master.key"));
            let keys = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| (source.ensure_key(), source.load()))).collect();
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
        let source = KeySource::of_file(path.clone());
        assert_eq!(source.load().err(), Some(SealError::NoKey));
        source.add_key().expect("written");
        let first = source.load().expect("a key");
        let sealed = first.seal(PLACE, b"secret").expect("sealed");
        assert_eq!(path.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
        source.add_key().expect("a second key");
        let both = source.load().expect("two keys");
        assert!(!both.is_current(&sealed) && both.open(PLACE, &sealed).is_ok());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("changed");
        assert!(matches!(source.load(), Err(SealError::KeyFile { .. })));
        std::fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn keys_of_another_place_are_added_once() {
        let folder = std::env::temp_dir().join(format!("codecall-import-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let source = KeySource::of_file(folder.join("master.key"));
        source.ensure_key().expect("a key");
        let own = source.load().expect("a key").id();
        let other = new_key().expect("random");
        let other_id = KeyRing::parse(&other, "test").expect("a key").id();
        for _ in 0..2 {
            source.import(&format!("# of another server\n{}\n", *other), "test").expect("imported");
            let keys = source.load().expect("keys");
            assert!(keys.id() == other_id && keys.has(&own));
        }
        let lines = std::fs::read_to_string(folder.join("master.key")).expect("a file").lines().count();
        assert_eq!(lines, 3);
        assert_eq!(source.import("no key", "FILE"), Err(SealError::MalformedKey { from: "FILE".into() }));
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
