//! Names of tools: how they are spelled in lists, how long they may be, and which ones are the server's own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest name of a tool in bytes, with its app, wherever one is given. A tool of a longer one does not
/// exist, and a call of a longer one is refused.
pub const LONGEST_NAME: usize = 256;

/// Spelling of listed tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Names {
    /// `codecall:search`.
    Colon,
    /// `codecall.search`.
    Dot,
    /// `codecall_search`, which every client accepts.
    #[default]
    Underscore,
}

impl Names {
    /// What stands between the app and the tool.
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
pub const OWN_NAMES: &[&str] = &["code_execution"];

/// Whether `name` is a spelling of a tool of the server itself.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    const OWN: &str = "codecall";
    let name = name.trim_start();
    name.get(..OWN.len()).is_some_and(|app| app.eq_ignore_ascii_case(OWN))
        && name[OWN.len()..].starts_with([':', '.', '_', '/'])
}
