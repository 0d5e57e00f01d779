//! What people have approved of tools: the definitions that a quarantine compares those of the moment with.
//!
//! The texts of definitions are those of servers, kept to show what has changed. They contain nothing of the
//! configuration; a server is identified by a digest.

use crate::state::{create_folder, hex};
use crate::{BoxFuture, Digest, StoreError};
use codecall_base::files::{self, AtomicFile};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Maximum size of the approvals of a server, in bytes.
const MAX_FILE_BYTES: usize = 64 << 20;
/// The version of the format.
const FORMAT: u32 = 1;

/// The approved definition of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Approval {
    /// The digest of the definition, in hexadecimal digits.
    pub digest: Box<str>,
    /// The definition, as canonical JSON.
    pub definition: Box<str>,
}

/// The approved tools of a server, by name.
pub type Approvals = BTreeMap<String, Approval>;

/// What people have approved of tools, by server. An implementation keeps it in memory: the catalogue of tools does not
/// wait for a store.
pub trait ApprovalStore: Send + Sync {
    /// Returns what is approved, as far as this process knows. If it has not asked before, an implementation may read it now.
    fn approved(&self, server: Digest) -> Arc<Approvals>;

    /// Reads what others have approved since. Returns whether anything is different.
    fn refresh(&self) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Adds approvals, which replace those of the same tools. They hold for this process from the call on, and for others
    /// when the future resolves.
    fn approve(&self, server: Digest, tools: Approvals) -> BoxFuture<'static, Result<(), StoreError>>;
}

/// Approvals in memory: they last as long as the process.
#[derive(Default)]
pub struct MemoryApprovals(Mutex<HashMap<Digest, Arc<Approvals>>>);

impl ApprovalStore for MemoryApprovals {
    fn approved(&self, server: Digest) -> Arc<Approvals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&server).cloned().unwrap_or_default()
    }

    fn refresh(&self) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(ready(Ok(false)))
    }

    fn approve(&self, server: Digest, tools: Approvals) -> BoxFuture<'static, Result<(), StoreError>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(known.entry(server).or_default()).extend(tools);
        Box::pin(ready(Ok(())))
    }
}

/// Approvals in a folder, a file for each server. Several processes may share it.
pub struct FileApprovals {
    folder: PathBuf,
    known: Arc<Mutex<HashMap<Digest, Known>>>,
}

/// What a file contains.
#[derive(Clone, Default)]
struct Known {
    /// When the file was written, and its size; `None`: there is none.
    version: Option<Version>,
    approvals: Arc<Approvals>,
}

type Version = (SystemTime, u64);

/// The content of a file.
#[derive(Deserialize, Serialize)]
struct Stored<A> {
    format: u32,
    tools: A,
}

impl FileApprovals {
    /// Creates a store in a folder, which is created with the first approval.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.join("approvals"), known: Arc::default() }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Digest, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn path(folder: &Path, server: Digest) -> PathBuf {
    folder.join(format!("{}.json", hex(&server)))
}

impl ApprovalStore for FileApprovals {
    fn approved(&self, server: Digest) -> Arc<Approvals> {
        let read = || read(&path(&self.folder, server));
        Arc::clone(&self.known().entry(server).or_insert_with(read).approvals)
    }

    fn refresh(&self) -> BoxFuture<'_, Result<bool, StoreError>> {
        let (folder, known) = (self.folder.clone(), Arc::clone(&self.known));
        let look = move || {
            let before: Vec<(Digest, Option<Version>)> = {
                let known = known.lock().unwrap_or_else(PoisonError::into_inner);
                known.iter().map(|(server, known)| (*server, known.version)).collect()
            };
            let mut is_different = false;
            for (server, version) in before {
                let path = path(&folder, server);
                if self::version(&path) != version {
                    let now = read(&path);
                    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                    is_different |= known.get(&server).is_none_or(|before| before.approvals != now.approvals);
                    known.insert(server, now);
                }
            }
            is_different
        };
        Box::pin(async move { tokio::task::spawn_blocking(look).await.map_err(|error| StoreError(error.to_string())) })
    }

    fn approve(&self, server: Digest, tools: Approvals) -> BoxFuture<'static, Result<(), StoreError>> {
        let _ = self.approved(server);
        if let Some(known) = self.known().get_mut(&server) {
            Arc::make_mut(&mut known.approvals).extend(tools.clone());
        }
        let (path, known) = (path(&self.folder, server), Arc::clone(&self.known));
        let write = move || {
            let written = add(&path, tools)?;
            known.lock().unwrap_or_else(PoisonError::into_inner).insert(server, written);
            Ok(())
        };
        Box::pin(async move {
            let written = tokio::task::spawn_blocking(write).await;
            written.map_err(|error| StoreError(error.to_string()))?.map_err(StoreError)
        })
    }
}

fn version(path: &Path) -> Option<Version> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Reads a file. In a damaged one nothing is approved.
fn read(path: &Path) -> Known {
    // Before the file is read: a change after it is seen next time.
    let version = version(path);
    let text = match files::read(path, MAX_FILE_BYTES as u64) {
        Ok(text) => text,
        Err(error) => {
            if error.kind() != ErrorKind::NotFound {
                tracing::warn!("{}: approvals of tools cannot be read: {error}", path.display());
            }
            return Known { version, ..Known::default() };
        }
    };
    match serde_json::from_slice::<Stored<Approvals>>(&text) {
        Ok(Stored { format: FORMAT, tools }) => Known { version, approvals: Arc::new(tools) },
        Ok(_) | Err(_) => {
            tracing::warn!("{}: it is damaged, so none of its tools is approved", path.display());
            Known { version, ..Known::default() }
        }
    }
}

/// Adds approvals to a file.
fn add(path: &Path, tools: Approvals) -> Result<Known, String> {
    let cannot = |error: std::io::Error| format!("{}: {error}", path.display());
    create_folder(path.parent().unwrap_or(path)).map_err(cannot)?;
    // Other processes may add theirs at the same time.
    let lock = files::open_append(&path.with_extension("lock")).map_err(cannot)?;
    lock.lock().map_err(cannot)?;
    let mut all = Arc::unwrap_or_clone(read(path).approvals);
    all.extend(tools);
    let text = serde_json::to_vec(&Stored { format: FORMAT, tools: &all }).map_err(|error| error.to_string())?;
    if text.len() > MAX_FILE_BYTES {
        return Err(format!("{}: it would have more than {MAX_FILE_BYTES} bytes", path.display()));
    }
    AtomicFile::create(path).and_then(|mut file| file.write(&text)).map_err(cannot)?;
    Ok(Known { version: version(path), approvals: Arc::new(all) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approvals(tools: &[(&str, &str)]) -> Approvals {
        let approval = |digest: &str| Approval { digest: digest.into(), definition: "{}".into() };
        tools.iter().map(|(name, digest)| ((*name).to_owned(), approval(digest))).collect()
    }

    #[tokio::test]
    async fn processes_share_approvals() {
        let folder = std::env::temp_dir().join(format!("codecall-approvals-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let (one, other) = (FileApprovals::new(&folder), FileApprovals::new(&folder));
        assert!(other.approved([1; 32]).is_empty());
        assert_eq!(other.refresh().await, Ok(false));
        one.approve([1; 32], approvals(&[("a", "1"), ("b", "1")])).await.expect("stored");
        assert_eq!(*one.approved([1; 32]), approvals(&[("a", "1"), ("b", "1")]));
        assert!(other.approved([1; 32]).is_empty(), "it has not looked yet");
        assert_eq!(other.refresh().await, Ok(true));
        other.approve([1; 32], approvals(&[("b", "2"), ("c", "2")])).await.expect("stored");
        assert_eq!(one.refresh().await, Ok(true));
        assert_eq!(*one.approved([1; 32]), approvals(&[("a", "1"), ("b", "2"), ("c", "2")]));
        assert_eq!(one.refresh().await, Ok(false));
        std::fs::write(path(&one.folder, [1; 32]), "{").expect("damaged");
        assert_eq!(one.refresh().await, Ok(true));
        assert!(one.approved([1; 32]).is_empty() && one.approved([2; 32]).is_empty());
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
