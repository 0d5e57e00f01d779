//! The shapes of results that were seen, of tools that do not say what their results are.
//!
//! A record has names of tools and of properties, and no values.

use crate::servers::{folder, read, write};
use crate::{BoxFuture, Digest, StoreError};
use codecall_base::shape::Shape;
use codecall_config::ServerCache;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Maximum size of a record, in bytes. A larger one is not stored.
const MAX_RECORD_BYTES: usize = 4 << 20;

/// The shapes of an app, by the name of the tool.
pub type ToolShapes = BTreeMap<String, SeenShape>;

/// The shape of the results of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct SeenShape {
    /// A digest of what the tool says of itself. With another one it is another tool.
    pub tool: String,
    /// How many results were seen.
    pub results: u64,
    /// Their shape.
    pub shape: Shape,
}

/// Shapes by a digest of what identifies an app.
pub trait ShapeStore: Send + Sync {
    /// Returns the shapes of an app; `None` if there are none, or none that can be read.
    fn get(&self, app: Digest) -> BoxFuture<'_, Result<Option<ToolShapes>, StoreError>>;

    /// Stores the shapes of an app, and replaces earlier ones.
    fn put(&self, app: Digest, shapes: ToolShapes) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// Shapes in memory: they last as long as the process.
#[derive(Default)]
pub struct MemoryShapes(Mutex<HashMap<Digest, ToolShapes>>);

impl ShapeStore for MemoryShapes {
    fn get(&self, app: Digest) -> BoxFuture<'_, Result<Option<ToolShapes>, StoreError>> {
        let shapes = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&app).cloned();
        Box::pin(ready(Ok(shapes)))
    }

    fn put(&self, app: Digest, shapes: ToolShapes) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(app, shapes);
        Box::pin(ready(Ok(())))
    }
}

/// Shapes in a folder, a file for each app. Several processes may share it.
pub struct FileShapes {
    folder: PathBuf,
}

impl FileShapes {
    /// Returns the store of a configuration; `None` if it is disabled, or if the user has no folder for caches.
    #[must_use]
    pub fn configured(config: &ServerCache) -> Option<Self> {
        Some(Self::new(&folder(config)?))
    }

    /// Creates a store in a folder, which is created with the first record.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.join("results") }
    }

    fn path(&self, app: Digest) -> PathBuf {
        let name: String = app.iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{name}.json"))
    }
}

impl ShapeStore for FileShapes {
    fn get(&self, app: Digest) -> BoxFuture<'_, Result<Option<ToolShapes>, StoreError>> {
        let path = self.path(app);
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(move || read::<ToolShapes>(&path, MAX_RECORD_BYTES)).await;
            read.map_err(|error| StoreError(error.to_string()))
        })
    }

    fn put(&self, app: Digest, shapes: ToolShapes) -> BoxFuture<'_, Result<(), StoreError>> {
        let path = self.path(app);
        Box::pin(async move {
            let written = tokio::task::spawn_blocking(move || write(&path, &shapes, MAX_RECORD_BYTES)).await;
            written.map_err(|error| StoreError(error.to_string()))?.map_err(StoreError)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn shapes_are_read_as_they_were_written() {
        let folder = std::env::temp_dir().join(format!("codecall-shapes-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let seen = SeenShape { tool: "ab".into(), results: 3, shape: Shape::of(&json!([{"id": 1, "text": "[1]"}])) };
        let shapes = ToolShapes::from([("list".to_owned(), seen)]);
        for store in [&FileShapes::new(&folder) as &dyn ShapeStore, &MemoryShapes::default()] {
            assert_eq!(store.get([1; 32]).await, Ok(None));
            store.put([1; 32], shapes.clone()).await.expect("stored");
            assert_eq!(store.get([1; 32]).await, Ok(Some(shapes.clone())));
            assert_eq!(store.get([2; 32]).await, Ok(None));
        }
        let files = FileShapes::new(&folder);
        std::fs::write(files.path([1; 32]), "{").expect("written");
        assert_eq!(files.get([1; 32]).await, Ok(None), "damaged");
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
