//! What is known of MCP servers from earlier connections: their tools, and how a connection begins. With it tools are
//! found before their servers have started.
//!
//! Records are as trustworthy as what the server itself says. They contain nothing of the configuration; a server is
//! identified by a digest.

use crate::state::{create_folder, hex};
use crate::{BoxFuture, Digest, StoreError};
use codecall_base::files::{self, AtomicFile};
use codecall_config::{CACHE_DIR_VARIABLE, Lifecycle, ServerCache};
use etcetera::BaseStrategy as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::future::ready;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Maximum size of a record, in bytes. A larger one is not stored.
const MAX_RECORD_BYTES: usize = 32 << 20;
/// How many records a folder keeps. The ones that were not written for the longest time are removed.
const MAX_RECORDS: usize = 500;
/// The version of the format. Records of other versions are ignored.
const FORMAT: u32 = 1;

/// What is known of a server.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ServerRecord {
    /// How the last connection began: never [`Lifecycle::Auto`].
    pub lifecycle: Lifecycle,
    /// Its name for itself.
    pub title: Option<String>,
    /// Its tools, in the format of MCP.
    pub tools: Vec<Value>,
}

/// Records of servers, by a digest of what identifies a server.
pub trait ServerStore: Send + Sync {
    /// Returns the record of a server; `None` if there is none, or none that can be read.
    fn get(&self, server: Digest) -> BoxFuture<'_, Result<Option<ServerRecord>, StoreError>>;

    /// Stores the record of a server, and replaces an earlier one.
    fn put(&self, server: Digest, record: ServerRecord) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// Records in memory: they last as long as the process.
#[derive(Default)]
pub struct MemoryServers(Mutex<HashMap<Digest, ServerRecord>>);

impl ServerStore for MemoryServers {
    fn get(&self, server: Digest) -> BoxFuture<'_, Result<Option<ServerRecord>, StoreError>> {
        let record = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&server).cloned();
        Box::pin(ready(Ok(record)))
    }

    fn put(&self, server: Digest, record: ServerRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(server, record);
        Box::pin(ready(Ok(())))
    }
}

/// Records in a folder, a file each. Several processes may share it.
pub struct FileServers {
    folder: PathBuf,
}

/// The content of a file.
#[derive(Deserialize, Serialize)]
struct Stored<R> {
    format: u32,
    record: R,
}

/// Returns the folder of a configuration; `None` if it is disabled, or if the user has no folder for caches.
pub(crate) fn folder(config: &ServerCache) -> Option<PathBuf> {
    if !config.enabled {
        return None;
    }
    match (&config.dir, std::env::var_os(CACHE_DIR_VARIABLE)) {
        (Some(folder), _) => Some(folder.clone()),
        (None, Some(folder)) if folder.is_empty() => None,
        (None, Some(folder)) => Some(folder.into()),
        (None, None) => Some(etcetera::choose_base_strategy().ok()?.cache_dir().join("codecall")),
    }
}

impl FileServers {
    /// Returns the store of a configuration; `None` if it is disabled, or if the user has no folder for caches.
    #[must_use]
    pub fn configured(config: &ServerCache) -> Option<Self> {
        Some(Self::new(&folder(config)?))
    }

    /// Creates a store in a folder, which is created with the first record.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.join("servers") }
    }

    fn path(&self, server: Digest) -> PathBuf {
        self.folder.join(format!("{}.json", hex(&server)))
    }
}

impl ServerStore for FileServers {
    fn get(&self, server: Digest) -> BoxFuture<'_, Result<Option<ServerRecord>, StoreError>> {
        let path = self.path(server);
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(move || read::<ServerRecord>(&path, MAX_RECORD_BYTES)).await;
            let record = read.map_err(|error| StoreError(error.to_string()))?;
            Ok(record.filter(|record| record.lifecycle != Lifecycle::Auto))
        })
    }

    fn put(&self, server: Digest, record: ServerRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        let path = self.path(server);
        Box::pin(async move {
            let written = tokio::task::spawn_blocking(move || write(&path, &record, MAX_RECORD_BYTES)).await;
            written.map_err(|error| StoreError(error.to_string()))?.map_err(StoreError)
        })
    }
}

/// Reads a record. A damaged file is the same as none.
pub(crate) fn read<R: DeserializeOwned>(path: &Path, max_bytes: usize) -> Option<R> {
    let text = match files::read(path, max_bytes as u64) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!("{}: it cannot be read and is ignored: {error}", path.display());
            return None;
        }
    };
    match serde_json::from_slice::<Stored<R>>(&text) {
        Ok(Stored { format: FORMAT, record }) => Some(record),
        Ok(_) => None,
        Err(_) => {
            tracing::warn!("{}: it is damaged and is ignored", path.display());
            None
        }
    }
}

/// Writes a record, unless it is too long.
pub(crate) fn write<R: Serialize>(path: &Path, record: &R, max_bytes: usize) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("{}: {error}", path.display());
    let text = serde_json::to_vec(&Stored { format: FORMAT, record }).map_err(|error| error.to_string())?;
    if text.len() > max_bytes {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(path);
    create_folder(folder).map_err(cannot)?;
    AtomicFile::create(path).and_then(|mut file| file.write(&text)).map_err(cannot)?;
    remove_oldest(folder);
    Ok(())
}

/// Removes the oldest records beyond [`MAX_RECORDS`]. Errors are ignored: another process may do the same.
fn remove_oldest(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut records: Vec<(SystemTime, PathBuf)> =
        entries.flatten().filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    records.sort();
    for (_, path) in records.iter().rev().skip(MAX_RECORDS) {
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("codecall-servers-{}-{name}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn record() -> ServerRecord {
        let tools = vec![json!({"name": "z", "inputSchema": {"b": 1, "a": 2}})];
        ServerRecord { lifecycle: Lifecycle::Initialize, title: Some("Server".into()), tools }
    }

    #[tokio::test]
    async fn records_are_read_as_they_were_written() {
        let folder = Folder::new("same");
        for store in [&FileServers::new(&folder.0) as &dyn ServerStore, &MemoryServers::default()] {
            assert_eq!(store.get([1; 32]).await, Ok(None));
            store.put([1; 32], record()).await.expect("stored");
            let other = ServerRecord { title: None, ..record() };
            store.put([2; 32], other.clone()).await.expect("stored");
            assert_eq!(store.get([1; 32]).await, Ok(Some(record())));
            store.put([1; 32], other.clone()).await.expect("stored");
            assert_eq!(store.get([1; 32]).await, Ok(Some(other)));
        }
    }

    #[tokio::test]
    async fn damaged_records_are_ignored() {
        let folder = Folder::new("damaged");
        let store = FileServers::new(&folder.0);
        store.put([3; 32], record()).await.expect("stored");
        let path = store.path([3; 32]);
        let text = std::fs::read_to_string(&path).expect("a file");
        for damaged in [&text[..text.len() / 2], "", "[]", &text.replace("\"format\":1", "\"format\":2")] {
            std::fs::write(&path, damaged).expect("written");
            assert_eq!(store.get([3; 32]).await, Ok(None), "{damaged}");
        }
        store.put([3; 32], record()).await.expect("replaced");
        assert_eq!(store.get([3; 32]).await, Ok(Some(record())));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn records_are_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = Folder::new("private");
        let store = FileServers::new(&folder.0);
        store.put([4; 32], record()).await.expect("stored");
        let mode = |path: &Path| std::fs::metadata(path).expect("it exists").permissions().mode() & 0o777;
        assert_eq!((mode(&store.folder), mode(&store.path([4; 32]))), (0o700, 0o600));
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_used_is_an_error() {
        let folder = Folder::new("file");
        std::fs::write(&folder.0, "a file").expect("written");
        let store = FileServers::new(&folder.0);
        assert_eq!(store.get([5; 32]).await, Ok(None));
        assert!(store.put([5; 32], record()).await.is_err());
        std::fs::remove_file(&folder.0).expect("removed");
    }
}
