//! Names of tools: their style in lists, their maximum length, and the names that the server reserves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum length of the full name of a tool, in bytes. A tool with a longer name is not in the catalogue, and a call with
/// a longer name is refused.
pub const MAX_NAME_BYTES: usize = 256;

/// How the names of listed tools are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NameStyle {
    /// `codecall:search`.
    Colon,
    /// `codecall.search`.
    Dot,
    /// `codecall_search`, which every client accepts.
    #[default]
    Underscore,
}

impl NameStyle {
    /// Returns the character between the app and the name of the tool.
    #[must_use]
    pub fn separator(self) -> char {
        match self {
            Self::Colon => ':',
            Self::Dot => '.',
            Self::Underscore => '_',
        }
    }
}

/// Names of meta-tools that are listed without the prefix `codecall`. No other tool is listed under one.
pub const RESERVED_NAMES: &[&str] = &["code_execution"];

/// The `source` of tools of the server itself.
pub const OWN_SOURCE: &str = "codecall";

/// Whether `name` belongs to a meta-tool in any style.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    agentscript::is_tool_of(OWN_SOURCE, name)
}
