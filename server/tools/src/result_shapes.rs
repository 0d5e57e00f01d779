//! The shapes of results that were seen, of tools that do not say what their results are. `codecall_describe` shows them.
//!
//! They are learned from answers, kept in the store of shapes, and say nothing about what a tool will answer.

use codecall_base::shape::Shape;
use codecall_base::tool::ToolDefinition;
use codecall_store::{Digest, SeenShape, ShapeStore, StoreError, ToolShapes};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum size of a result that is learned from, in bytes.
pub const MAX_RESULT_BYTES: usize = 256 << 10;
/// The first results of a tool in a process are all learned from, later ones only now and then.
const FIRST_RESULTS: u64 = 20;
const LATER_RESULTS: u64 = 16;
/// Maximum number of tools of an app whose results are learned from.
const MAX_TOOLS: usize = 2_000;
/// How long changes are collected before they are stored.
const WRITE_DELAY: Duration = Duration::from_secs(2);

/// The shapes of results that were seen.
pub struct ResultShapes {
    store: Arc<dyn ShapeStore>,
    learns: bool,
    apps: Mutex<HashMap<String, App>>,
}

#[derive(Default)]
struct App {
    /// Whether the store was read.
    is_loaded: bool,
    tools: ToolShapes,
    /// How many results of each tool this process had.
    results: HashMap<String, u64>,
    /// Whether there is something to store.
    is_changed: bool,
    /// Whether a task is going to store it.
    is_scheduled: bool,
}

impl ResultShapes {
    /// Creates the shapes of a store. If it does not learn, it has none.
    #[must_use]
    pub fn new(store: Arc<dyn ShapeStore>, learns: bool) -> Arc<Self> {
        Arc::new(Self { store, learns, apps: Mutex::default() })
    }

    fn apps(&self) -> MutexGuard<'_, HashMap<String, App>> {
        self.apps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a result of a tool would be learned from.
    pub fn is_wanted(&self, tool: &ToolDefinition) -> bool {
        if !self.learns || tool.output_schema.is_some() {
            return false;
        }
        let mut apps = self.apps();
        let app = apps.entry(tool.app.clone()).or_default();
        if app.results.len() >= MAX_TOOLS && !app.results.contains_key(&tool.name) {
            return false;
        }
        let results = app.results.entry(tool.name.clone()).or_default();
        *results += 1;
        *results <= FIRST_RESULTS || results.is_multiple_of(LATER_RESULTS)
    }

    /// Adds the shape of a result.
    pub async fn learn(self: &Arc<Self>, tool: &ToolDefinition, shape: Shape) {
        self.load(&tool.app).await;
        let digest = digest(tool);
        let mut apps = self.apps();
        let app = apps.entry(tool.app.clone()).or_default();
        let seen = app.tools.entry(tool.name.clone()).or_default();
        if seen.tool != digest {
            *seen = SeenShape { tool: digest, ..SeenShape::default() };
        }
        let before = seen.shape.clone();
        if seen.results == 0 {
            seen.shape = shape;
        } else {
            seen.shape.merge(shape);
            seen.shape.limit();
        }
        seen.results += 1;
        // A count alone is not worth a write, but for the first ones.
        if seen.shape == before && !seen.results.is_power_of_two() {
            return;
        }
        app.is_changed = true;
        if !std::mem::replace(&mut app.is_scheduled, true) {
            let seen = Arc::downgrade(self);
            tokio::spawn(async move {
                tokio::time::sleep(WRITE_DELAY).await;
                if let Some(seen) = seen.upgrade() {
                    seen.flush().await;
                }
            });
        }
    }

    /// Reads what earlier processes have seen of an app.
    pub async fn load(&self, app: &str) {
        if !self.learns || self.apps().get(app).is_some_and(|app| app.is_loaded) {
            return;
        }
        let stored = self.stored(app).await;
        let mut apps = self.apps();
        let app = apps.entry(app.to_owned()).or_default();
        if !std::mem::replace(&mut app.is_loaded, true) {
            merge(&mut app.tools, stored);
        }
    }

    async fn stored(&self, app: &str) -> ToolShapes {
        match self.store.get(key(app)).await {
            Ok(stored) => stored.unwrap_or_default(),
            Err(error) => {
                tracing::warn!(app, "the shapes of its results are not known: {error}");
                ToolShapes::default()
            }
        }
    }

    /// Returns what was seen of the results of a tool, once its app was [loaded](Self::load).
    #[must_use]
    pub fn of(&self, tool: &ToolDefinition) -> Option<SeenShape> {
        if tool.output_schema.is_some() {
            return None;
        }
        let apps = self.apps();
        let seen = apps.get(&tool.app)?.tools.get(&tool.name)?;
        (seen.tool == digest(tool) && seen.results > 0).then(|| seen.clone())
    }

    /// Stores what has changed.
    pub async fn flush(&self) {
        let mut changed: Vec<(String, ToolShapes)> = Vec::new();
        for (name, app) in &mut *self.apps() {
            app.is_scheduled = false;
            if std::mem::take(&mut app.is_changed) {
                changed.push((name.clone(), app.tools.clone()));
            }
        }
        for (name, mut tools) in changed {
            // Another process may have seen more.
            merge(&mut tools, self.stored(&name).await);
            let stored: Result<(), StoreError> = self.store.put(key(&name), tools).await;
            if let Err(error) = stored {
                tracing::warn!(app = name, "the shapes of its results cannot be stored: {error}");
            }
        }
    }
}

/// Adds shapes of other results. Those of another version of a tool are left out.
fn merge(own: &mut ToolShapes, others: ToolShapes) {
    for (name, other) in others {
        let has_room = own.len() < MAX_TOOLS;
        match own.get_mut(&name) {
            Some(seen) if seen.tool == other.tool => {
                seen.results = seen.results.max(other.results);
                seen.shape.merge(other.shape);
                seen.shape.limit();
            }
            Some(_) => {}
            None if has_room => {
                own.insert(name, other);
            }
            None => {}
        }
    }
}

fn key(app: &str) -> Digest {
    Sha256::digest(app.as_bytes()).into()
}

/// Returns a digest of what a tool says of itself.
fn digest(tool: &ToolDefinition) -> String {
    let mut digest = Sha256::new();
    for part in [&tool.name, &tool.description, &tool.input_schema.to_string()] {
        digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use codecall_store::MemoryShapes;
    use serde_json::{Value, json};

    fn tool(description: &str) -> ToolDefinition {
        ToolDefinition {
            app: "app".into(),
            name: "list".into(),
            description: description.into(),
            input_schema: json!({"type": "object"}),
            ..ToolDefinition::default()
        }
    }

    async fn learn(seen: &Arc<ResultShapes>, tool: &ToolDefinition, result: Value) {
        assert!(seen.is_wanted(tool));
        seen.learn(tool, Shape::of(&result)).await;
    }

    fn shown(seen: &ResultShapes, tool: &ToolDefinition) -> Option<(u64, String)> {
        seen.of(tool).map(|seen| (seen.results, seen.shape.to_type(1_000)))
    }

    #[tokio::test]
    async fn processes_learn_together() {
        let store: Arc<dyn ShapeStore> = Arc::new(MemoryShapes::default());
        let [first, second, third] = [(), (), ()].map(|()| ResultShapes::new(Arc::clone(&store), true));
        assert_eq!(shown(&first, &tool("")), None);
        learn(&first, &tool(""), json!({"id": 1})).await;
        second.load("app").await;
        assert_eq!(shown(&second, &tool("")), None, "not stored yet");
        learn(&second, &tool(""), json!({"id": 2, "name": "x"})).await;
        first.flush().await;
        second.flush().await;
        third.load("app").await;
        assert_eq!(shown(&third, &tool("")), Some((1, "{ id: number; name?: string }".into())));
        assert_eq!(shown(&third, &tool("changed")), None, "another tool");
        learn(&third, &tool("changed"), json!(1)).await;
        assert_eq!(shown(&third, &tool("changed")), Some((1, "number".into())));
    }

    #[tokio::test]
    async fn tools_with_a_schema_and_many_results_are_not_wanted() {
        let seen = ResultShapes::new(Arc::new(MemoryShapes::default()), true);
        let described = ToolDefinition { output_schema: Some(json!({"type": "object"})), ..tool("") };
        assert!(!seen.is_wanted(&described));
        let wanted = (0..100).filter(|_| seen.is_wanted(&tool(""))).count();
        assert_eq!(wanted, 25);
        assert!(!ResultShapes::new(Arc::new(MemoryShapes::default()), false).is_wanted(&tool("")));
    }
}
