//! Credentials as earlier versions of the program have stored them: a file each. They are read and removed, never written.

use crate::sealed::KeySource;
use crate::state::hex;
use crate::{Digest, StoreError};
use codecall_base::files;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Maximum size of a record, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The files of earlier versions.
pub struct CredentialFiles {
    folder: PathBuf,
    keys: KeySource,
}

impl CredentialFiles {
    /// Returns the credentials in the folder of the state, with the keys beside them.
    pub fn new(state: &Path) -> Self {
        Self { folder: state.join("credentials"), keys: KeySource::of_file(state.join("master.key")) }
    }

    fn path(&self, server: Digest) -> PathBuf {
        self.folder.join(hex(&server))
    }

    /// Returns the credentials of a server; `None`: there is no file.
    ///
    /// # Errors
    /// The file cannot be read or decrypted.
    pub async fn read(&self, server: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let (path, keys) = (self.path(server), self.keys.clone());
        blocking(move || match files::read(&path, MAX_BYTES) {
            Ok(record) => {
                let opened = keys.load().and_then(|ring| ring.open_file(&server, &record));
                let failed = |error| format!("{}: {error}; log in again", path.display());
                opened.map(|opened| Some(opened.to_vec())).map_err(failed)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", path.display())),
        })
        .await
    }

    /// Removes the file of a server. Returns whether there was one.
    ///
    /// # Errors
    /// It cannot be removed.
    pub async fn remove(&self, server: Digest) -> Result<bool, StoreError> {
        let path = self.path(server);
        blocking(move || match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(format!("{}: {error}", path.display())),
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError(error.to_string()))?.map_err(StoreError)
}
