//! The knowledge of scripts about tools, as data. A run is started with a directory, wherever it is evaluated, and
//! keeps it to its end.
//!
//! A directory does not decide which tools exist, nor whether a call is allowed.

use super::{OWN_SOURCE, ToolDescription, ToolLookups, ToolNames, similar_app_key};
use agentscript::Tools;
use agentscript::stateless::ClientTools;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The tools that a script can look up. It never changes.
#[derive(Debug, Serialize, Deserialize)]
pub struct ToolDirectory {
    names: ToolNames,
    /// By the index of the tool. A tool that does not change has the same one in later directories.
    descriptions: Vec<Arc<ToolDescription>>,
    /// Answers that do not follow from names and descriptions. They take precedence.
    answers: ToolLookups,
    /// Whether the names of meta-tools are reserved.
    has_meta_tools: bool,
    #[serde(skip, default = "DirectoryId::next")]
    id: DirectoryId,
    #[serde(skip)]
    bytes: OnceLock<Result<Box<[u8]>, String>>,
}

/// The number of a directory in the process that has made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DirectoryId(u64);

impl DirectoryId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Default for ToolDirectory {
    /// Creates a directory without tools.
    fn default() -> Self {
        Self::new(ToolNames::default(), Vec::new())
    }
}

impl ToolDirectory {
    /// Creates a directory of tools with their descriptions, in the order of the names.
    #[must_use]
    pub fn new(names: ToolNames, descriptions: Vec<Arc<ToolDescription>>) -> Self {
        let (answers, has_meta_tools) = (ToolLookups::default(), false);
        Self { names, descriptions, answers, has_meta_tools, id: DirectoryId::next(), bytes: OnceLock::new() }
    }

    /// Creates a directory that knows nothing but these answers.
    #[must_use]
    pub fn from_lookups(answers: ToolLookups) -> Self {
        Self::default().with_answers(answers)
    }

    /// Adds answers that do not follow from names and descriptions, such as those of functions.
    #[must_use]
    pub fn with_answers(self, answers: ToolLookups) -> Self {
        Self { answers, ..self }
    }

    /// Reserves the names of meta-tools.
    #[must_use]
    pub fn with_meta_tools(self) -> Self {
        Self { has_meta_tools: true, ..self }
    }

    /// Returns the names of the tools.
    #[must_use]
    pub fn names(&self) -> &ToolNames {
        &self.names
    }

    /// Returns the number of the directory. It is not serialised: a deserialised directory has another one.
    #[must_use]
    pub fn id(&self) -> DirectoryId {
        self.id
    }

    /// Returns the serialised form, for [`Self::from_bytes`] in a process of the same version. It is made once, which
    /// takes time in proportion to the descriptions.
    ///
    /// # Errors
    /// The directory cannot be serialised.
    pub fn to_bytes(&self) -> Result<&[u8], &str> {
        let serialise = || match postcard::to_allocvec(self) {
            Ok(bytes) => Ok(bytes.into_boxed_slice()),
            Err(error) => Err(error.to_string()),
        };
        self.bytes.get_or_init(serialise).as_deref().map_err(String::as_str)
    }

    /// Deserialises a directory.
    ///
    /// # Errors
    /// The bytes are not those of a directory.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        match postcard::take_from_bytes(bytes) {
            Ok((directory, [])) => Ok(directory),
            Ok((_, rest)) => Err(format!("{} bytes follow the directory", rest.len())),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Tools for ToolDirectory {
    fn describe(&self, name: &str) -> Option<String> {
        let known = || self.descriptions.get(self.names.get(name)?).map(|tool| tool.as_json().to_owned());
        self.answers.descriptions.get(name).cloned().or_else(known)
    }

    fn is_app(&self, app: &str) -> bool {
        self.answers.apps.contains(app) || self.names.is_app(app)
    }

    fn member(&self, app: &str, tool: &str) -> Option<String> {
        let known = || self.names.name(self.names.member(app, tool)?).map(str::to_owned);
        let unknown = || self.names.unknown_member(app, tool);
        self.answers
            .members
            .get(&*format!("{app}.{tool}"))
            .map(|name| (**name).to_owned())
            .or_else(known)
            .or_else(unknown)
    }

    fn function(&self, name: &str) -> Option<String> {
        self.answers.functions.get(name).map(|tool| (**tool).to_owned())
    }

    fn positional(&self, tool: &str) -> Option<String> {
        self.answers.positional.get(tool).map(|property| (**property).to_owned())
    }

    fn similar(&self, name: &str) -> Vec<String> {
        let known = || self.names.similar(name).into_iter().map(str::to_owned).collect();
        self.answers.similar.get(name).cloned().unwrap_or_else(known)
    }

    fn similar_app(&self, name: &str) -> Option<String> {
        let recorded = || self.answers.similar.get(&similar_app_key(name))?.first().cloned();
        recorded().or_else(|| self.names.similar_app(name))
    }

    fn reserved_apps(&self) -> Vec<String> {
        self.has_meta_tools.then(|| OWN_SOURCE.to_owned()).into_iter().collect()
    }
}

/// Tools whose calls need no check: the owner of the directory checks them, or they are recorded.
impl ClientTools for ToolDirectory {
    fn directory(self: Arc<Self>) -> Arc<dyn Tools> {
        self
    }
}

#[cfg(test)]
mod tests;
