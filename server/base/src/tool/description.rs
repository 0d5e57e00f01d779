//! The description of a tool for scripts.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::LazyLock;

/// The result of `getTool`, as JSON text. The text is made when it is first needed, because most tools are never
/// described; serialisation needs it.
pub struct ToolDescription(LazyLock<String, Box<dyn FnOnce() -> String + Send>>);

impl ToolDescription {
    /// Creates a description whose JSON text `to_json` returns.
    #[must_use]
    pub fn new(to_json: impl FnOnce() -> String + Send + 'static) -> Self {
        Self(LazyLock::new(Box::new(to_json)))
    }

    /// Returns the JSON text.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ToolDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolDescription").field(&self.0).finish()
    }
}

impl Serialize for ToolDescription {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_json())
    }
}

impl<'de> Deserialize<'de> for ToolDescription {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|json| Self::new(move || json))
    }
}
