//! The shapes of results that were seen, of tools that do not say what their results are.
//!
//! A record has names of tools and of properties, and no values.

use crate::database::Database;
use crate::records::Records;
use crate::{BoxFuture, Digest, StoreError};
use codecall_base::shape::Shape;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::future::ready;
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

/// Shapes in a database.
pub struct SqlShapes(Records);

impl SqlShapes {
    /// Creates the store of a database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(Records { database, table: "known_shapes", key: "app", max_bytes: MAX_RECORD_BYTES })
    }
}

impl ShapeStore for SqlShapes {
    fn get(&self, app: Digest) -> BoxFuture<'_, Result<Option<ToolShapes>, StoreError>> {
        Box::pin(async move { self.0.get(app).await })
    }

    fn put(&self, app: Digest, shapes: ToolShapes) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.0.put(app, shapes).await })
    }
}
