//! Approvals as earlier versions of the program have stored them: a file for each server. They are read and removed, never
//! written.

use super::Approvals;
use crate::state::hex;
use crate::{Digest, StoreError};
use codecall_base::files;
use serde::Deserialize;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Maximum size of the approvals of a server, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The files of earlier versions.
pub struct ApprovalFiles {
    folder: PathBuf,
}

/// The content of a file.
#[derive(Deserialize)]
struct Stored {
    format: u32,
    tools: Approvals,
}

impl ApprovalFiles {
    /// Returns the approvals in the folder of the state.
    pub fn new(state: &Path) -> Self {
        Self { folder: state.join("approvals") }
    }

    fn path(&self, server: Digest) -> PathBuf {
        self.folder.join(format!("{}.json", hex(&server)))
    }

    /// Returns the approvals of a server; `None`: there is no file, or a damaged one, in which nothing is approved.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn read(&self, server: Digest) -> Result<Option<Approvals>, StoreError> {
        let path = self.path(server);
        let reading = tokio::task::spawn_blocking(move || match files::read(&path, MAX_FILE_BYTES) {
            Ok(text) => match serde_json::from_slice::<Stored>(&text) {
                Ok(Stored { format: 1, tools }) => Ok(Some(tools)),
                Ok(_) | Err(_) => {
                    tracing::warn!("{}: it is damaged, so none of its tools is approved", path.display());
                    Ok(None)
                }
            },
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError(format!("{}: {error}", path.display()))),
        });
        reading.await.map_err(|error| StoreError(error.to_string()))?
    }

    /// Removes the file of a server.
    ///
    /// # Errors
    /// It cannot be removed.
    pub async fn remove(&self, server: Digest) -> Result<(), StoreError> {
        let path = self.path(server);
        let removing = tokio::task::spawn_blocking(move || match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(StoreError(format!("{}: {error}", path.display())))
            }
            Ok(()) | Err(_) => Ok(()),
        });
        removing.await.map_err(|error| StoreError(error.to_string()))?
    }
}
