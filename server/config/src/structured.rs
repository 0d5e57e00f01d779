//! `structured`: which form the answers of the meta-tools have.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;

/// The form of the answers of the meta-tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Structured {
    /// Each answer is sent once: as `structuredContent` to clients that read it, as text to all others.
    #[default]
    Auto,
    /// As text and as `structuredContent`, with output schemas in the list of tools.
    Both,
    /// As text.
    Text,
}

impl<'de> Deserialize<'de> for Structured {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Flag(bool),
            Word(String),
            Other(serde::de::IgnoredAny),
        }
        match Written::deserialize(deserializer)? {
            Written::Flag(true) => Ok(Self::Both),
            Written::Flag(false) => Ok(Self::Text),
            Written::Word(word) => match word.trim() {
                "auto" => Ok(Self::Auto),
                // Values from the environment are texts.
                "true" => Ok(Self::Both),
                "false" => Ok(Self::Text),
                _ => Err(D::Error::custom(MISTAKE)),
            },
            Written::Other(_) => Err(D::Error::custom(MISTAKE)),
        }
    }
}

const MISTAKE: &str = "must be \"auto\", true or false";

impl JsonSchema for Structured {
    fn schema_name() -> Cow<'static, str> {
        "Structured".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": ["auto", true, false] })
    }
}
