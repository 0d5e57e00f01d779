//! Script tools: files of AgentScript with a function `execute(params, config)`, which are tools like any other.
//!
//! A file says in its manifest what it needs: parameters, secrets, tools that it calls. It is checked when it is loaded
//! and at each change. Each call runs in a sandbox of its own, by the same executor as all scripts.
//!
//! This crate does not know who calls a tool, nor who records its runs.

#![forbid(unsafe_code)]

mod defaults;
pub mod folder;
mod manifest;
mod problem;
mod run;
mod saved;
mod secrets;
mod stored;
mod tool;
mod types;
mod upstream;

pub use folder::Loaded;
pub use manifest::{Annotations, Answer, AnswerError, DEFAULT_TIMEOUT, Example, Manifest, ManifestFormat, Placed};
pub use problem::Problem;
pub use saved::SavedScript;
pub use secrets::{SecretSource, StoredSecrets};
pub use stored::{Stored, StoredError};
pub use tool::{ScriptTool, ToolSource};
pub use upstream::ScriptTools;
