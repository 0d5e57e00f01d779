//! Script tools in the store, of one workspace.

use crate::{Loaded, Problem, ScriptTool, ToolSource};
use agentscript::{Language, Policy};
use codecall_store::{ScriptToolStore, StoreError, StoredTool, StoredVersion};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The stored tools of a workspace.
#[derive(Clone)]
pub struct Stored {
    store: Arc<dyn ScriptToolStore>,
    workspace: String,
}

/// Why a stored tool cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredError {
    /// Problems of the code or the name.
    Invalid(Vec<Problem>),
    /// There is no such tool or version: what to say.
    Unknown(String),
    /// The store cannot be used.
    Store(StoreError),
}

impl std::fmt::Display for StoredError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Invalid(problems) => {
                let lines: Vec<String> = problems.iter().map(|problem| format!("the tool{problem}")).collect();
                f.write_str(&lines.join("\n"))
            }
            Self::Unknown(what) => f.write_str(what),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl From<StoreError> for StoredError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Stored {
    /// Creates the tools of a workspace.
    #[must_use]
    pub fn new(store: Arc<dyn ScriptToolStore>, workspace: &str) -> Self {
        Self { store, workspace: workspace.to_owned() }
    }

    /// Returns a number that is another one after each change.
    pub(crate) async fn stamp(&self) -> Result<i64, StoreError> {
        self.store.stamp(&self.workspace).await
    }

    /// Returns the tools by name, as they are stored.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn list(&self) -> Result<Vec<StoredTool>, StoreError> {
        self.store.list(&self.workspace).await
    }

    /// Returns all versions of a tool, the latest first.
    ///
    /// # Errors
    /// There never was a tool of this name, or the store cannot be used.
    pub async fn versions(&self, name: &str) -> Result<Vec<StoredVersion>, StoredError> {
        let versions = self.store.versions(&self.workspace, name).await?;
        if versions.is_empty() { Err(unknown(name)) } else { Ok(versions) }
    }

    /// Returns a version of a tool.
    ///
    /// # Errors
    /// There is none of this number, or the store cannot be used.
    pub async fn version(&self, name: &str, number: i64) -> Result<StoredVersion, StoredError> {
        let found = self.versions(name).await?.into_iter().find(|version| version.version == number);
        found.ok_or_else(|| StoredError::Unknown(format!("The stored tool '{name}' has no version {number}")))
    }

    /// Stores a version that was checked. Returns its number.
    pub(crate) async fn put(
        &self,
        name: &str,
        code: &codecall_store::StoredCode,
        author: &str,
    ) -> Result<i64, StoredError> {
        Ok(self.store.put(&self.workspace, name, code, author).await?)
    }

    /// Sets whether a tool can be called.
    ///
    /// # Errors
    /// There is none of this name, or the store cannot be used.
    pub async fn set_enabled(&self, name: &str, enabled: bool) -> Result<(), StoredError> {
        let found = self.store.set_enabled(&self.workspace, name, enabled).await?;
        if found { Ok(()) } else { Err(unknown(name)) }
    }

    /// Removes a tool. Its versions stay.
    ///
    /// # Errors
    /// There is none of this name, or the store cannot be used.
    pub async fn remove(&self, name: &str) -> Result<(), StoredError> {
        let found = self.store.remove(&self.workspace, name).await?;
        if found { Ok(()) } else { Err(unknown(name)) }
    }
}

fn unknown(name: &str) -> StoredError {
    StoredError::Unknown(format!("There is no stored tool '{name}'"))
}

/// Adds stored tools to those of the folder. A name of both belongs to neither: the problem names both, and the version of
/// the last time stays in use.
pub fn add(
    tools: &mut BTreeMap<String, Loaded>,
    stored: &[StoredTool],
    app: &str,
    policy: &Policy,
    before: &BTreeMap<String, Loaded>,
) {
    for StoredTool { name, enabled, version } in stored {
        let place = format!("stored tool {name}, version {}", version.version);
        let last = before.get(name).and_then(|before| before.tool.clone());
        if let Some(other) = tools.values_mut().find(|tool| tool.name.eq_ignore_ascii_case(name)) {
            let message = format!("there are two tools of this name: {} and the {place}", other.file.display());
            other.problems.push(Problem::new(message).with_hint("rename or remove one of them"));
            other.tool = last;
            continue;
        }
        let language = if version.code.typescript { Language::TypeScript } else { Language::JavaScript };
        let source = ToolSource { name, code: &version.code.code, language, manifest: None };
        let (tool, problems) = match enabled.then(|| ScriptTool::check(app, source, policy)) {
            None => (None, Vec::new()),
            Some(Ok(tool)) => match last {
                Some(last) if last.is_same(&tool) => (Some(last), Vec::new()),
                Some(_) | None => (Some(Arc::new(tool)), Vec::new()),
            },
            Some(Err(problems)) => (last, problems),
        };
        let loaded = Loaded {
            name: name.clone(),
            file: PathBuf::from(place),
            tool,
            problems,
            version: Some(version.version),
            enabled: *enabled,
        };
        tools.insert(name.clone(), loaded);
    }
}
