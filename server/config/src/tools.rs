//! The tools that exist, and those in the list. These are top-level keys.

use super::front::FrontConfig;
use super::mcp_servers::check_app;
use codecall_base::tool::{Example, NameStyle, ToolFilter};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// The tools that exist, and those in the list.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ToolPolicy {
    /// The tools that are indexed (found, described, called by scripts and by `codecall_invoke`), and those in the
    /// list. With this key, `front` has no effect.
    #[schemars(extend("x-default" = "`\"codecall_only\"`"))]
    pub mode: Option<Mode>,
    /// The tools that exist at all. Everything else is decided among these.
    #[serde(rename = "includeTools")]
    pub include: ToolFilter,
    /// How the meta-tools are listed, and metadata of tools by name or pattern. An exact name takes precedence over a
    /// pattern, and a longer pattern over a shorter one.
    #[serde(rename = "tools")]
    #[schemars(extend("x-name" = "PATTERN"))]
    pub settings: ToolSettings,
    /// Filters of a client, one of which must select a tool; `None`: it may use all tools. They are not of the file.
    #[serde(skip)]
    #[schemars(skip)]
    pub allowed: Option<Vec<ToolFilter>>,
    /// The tools that are listed beside the meta-tools. With this key, `front` has no effect.
    #[schemars(extend("x-default" = "`\"visible\"`"))]
    pub expose: Option<Expose>,
    /// How tools are offered to clients.
    pub front: FrontConfig,
    /// How listed names are spelled. All three spellings are always accepted.
    pub names: NameStyle,
    /// The tools of MCP servers and OpenAPI services that wait for `codecall tools approve` before they can be found or
    /// called. `"new"`: tools without an approval. `"changed"`: tools that have changed since they were approved or
    /// first seen. `true`: both.
    pub quarantine: Quarantine,
}

impl ToolPolicy {
    pub(super) fn check(&self) -> Result<(), String> {
        self.settings.check()?;
        self.settings.metadata.iter().try_for_each(|(pattern, metadata)| {
            for (at, example) in metadata.examples.iter().enumerate() {
                example.check().map_err(|problem| format!("tools.{pattern}.examples[{at}]: {problem}"))?;
            }
            match &metadata.app_id {
                Some(app) => check_app(&format!("tools.{pattern}.appId"), app),
                None => Ok(()),
            }
        })
    }

    /// Whether all tools are listed under the names that their servers gave them.
    #[must_use]
    pub fn exposes_all(&self) -> bool {
        self.expose == Some(Expose::Direct)
    }

    /// Returns the warning that `front` has no effect.
    pub(super) fn idle_front(&self) -> Option<String> {
        let key = match (self.mode, self.expose) {
            (Some(_), _) => "mode",
            (None, Some(_)) => "expose",
            (None, None) => return None,
        };
        let is_set = self.front != FrontConfig::default();
        is_set.then(|| format!("front: it has no effect, because '{key}' says what is listed"))
    }

    /// Whether the list of tools depends on the client: neither `mode` nor `expose` says what is listed.
    #[must_use]
    pub fn has_fronts(&self) -> bool {
        self.mode.is_none() && self.expose.is_none()
    }
}

/// How the meta-tools are listed, and metadata of tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "camelCase", default)]
pub struct ToolSettings {
    /// Maximum length of the signatures at the end of the description of `codecall_execute`, in tokens; 0: none.
    #[schemars(range(min = 0, max = 100_000), extend("x-default" = "8,000 if all tools fit, otherwise 2,000"))]
    pub index_tokens: Option<u32>,
    /// The meta-tools that are listed; the others are accepted all the same.
    #[schemars(extend("x-default" = "all"))]
    pub listed: Option<Vec<MetaToolId>>,
    /// Metadata of tools by name or pattern.
    #[schemars(flatten)]
    pub metadata: BTreeMap<String, ToolMetadata>,
}

/// A meta-tool that can be left out of the list, by its name without the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetaToolId {
    /// `codecall_search`.
    Search,
    /// `codecall_describe`.
    Describe,
    /// `codecall_execute`.
    Execute,
    /// `codecall_invoke`.
    Invoke,
}

impl ToolSettings {
    fn check(&self) -> Result<(), String> {
        let calls = |id: &MetaToolId| matches!(id, MetaToolId::Execute | MetaToolId::Invoke);
        match self.listed.as_ref().is_none_or(|listed| listed.iter().any(calls)) {
            true => Ok(()),
            false => Err("tools.listed: without 'execute' or 'invoke' no tool can be called".into()),
        }
    }

    /// Whether a meta-tool is listed, by its name without the prefix.
    #[must_use]
    pub fn lists(&self, id: &str) -> bool {
        let own = match id {
            "search" => MetaToolId::Search,
            "describe" => MetaToolId::Describe,
            "execute" => MetaToolId::Execute,
            "invoke" => MetaToolId::Invoke,
            _ => return true,
        };
        self.listed.as_ref().is_none_or(|listed| listed.contains(&own))
    }
}

// Serde's `flatten` would lose the paths of errors.
impl<'de> Deserialize<'de> for ToolSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = ToolSettings;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a table")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ToolSettings, A::Error> {
                let mut settings = ToolSettings::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "indexTokens" => settings.index_tokens = map.next_value()?,
                        "listed" => settings.listed = map.next_value()?,
                        _ => drop(settings.metadata.insert(key, map.next_value()?)),
                    }
                }
                Ok(settings)
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

/// The tools that are indexed, and those in the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// All tools are indexed unless their metadata say otherwise.
    #[default]
    CodecallOnly,
    /// Tools with `enabledInCodeCall = true` are indexed.
    CodecallOptIn,
    /// Tools are indexed and listed only as their metadata say.
    MetadataDriven,
}

/// The tools that wait for the approval of a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quarantine {
    /// None.
    #[default]
    Off,
    /// Tools without an approval. A change of an approved tool is accepted.
    New,
    /// Tools that have changed. A new tool is approved as it is first seen.
    Changed,
    /// Tools that are new or have changed.
    All,
}

impl<'de> Deserialize<'de> for Quarantine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "true, false, 'new' or 'changed'")]
        enum Written {
            Both(bool),
            One(Kind),
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Kind {
            New,
            Changed,
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::Both(false) => Self::Off,
            Written::Both(true) => Self::All,
            Written::One(Kind::New) => Self::New,
            Written::One(Kind::Changed) => Self::Changed,
        })
    }
}

impl Serialize for Quarantine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::All => serializer.serialize_bool(true),
            Self::New => serializer.serialize_str("new"),
            Self::Changed => serializer.serialize_str("changed"),
        }
    }
}

impl JsonSchema for Quarantine {
    fn schema_name() -> Cow<'static, str> {
        "Quarantine".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "boolean" }, { "type": "string", "enum": ["new", "changed"] }] })
    }
}

/// The list beside the meta-tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Expose {
    /// Tools whose metadata say `visibleInListTools`.
    #[default]
    Visible,
    /// All tools under the names that their servers gave them, and the resources and prompts of the servers.
    Direct,
}

/// Metadata of the tools of one name or pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ToolMetadata {
    /// Whether the tool is listed beside the meta-tools, and can be called by its name there.
    #[schemars(extend("x-default" = "by `mode` and `expose`"))]
    pub visible_in_list_tools: Option<bool>,
    /// Whether the tool is indexed.
    #[schemars(extend("x-default" = "by `mode`"))]
    pub enabled_in_code_call: Option<bool>,
    /// Additional tags, for searches and filters.
    pub tags: Vec<String>,
    /// Examples of its use, shown before those of its server.
    pub examples: Vec<ToolExample>,
    /// The app that it belongs to: `crm` makes `users:list` `crm:list`.
    #[schemars(extend("x-default" = "its server's"))]
    pub app_id: Option<String>,
}

/// An example of the use of a tool. Give either `code` or `input`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolExample {
    /// A description of the example.
    pub description: Option<String>,
    /// The script.
    pub code: Option<String>,
    /// The input of one call of the tool.
    pub input: Option<Map<String, Value>>,
    /// The result of the call of `input`.
    pub output: Option<Value>,
}

impl ToolExample {
    /// Returns it as the example of the tool with this full name.
    #[must_use]
    pub fn of_tool(&self, tool: &str) -> Example {
        let description = self.description.as_deref().unwrap_or_default();
        match (&self.code, &self.input) {
            (Some(code), _) => Example { description: description.to_owned(), code: code.clone() },
            (None, Some(input)) => Example::of_call(tool, description, input, self.output.as_ref()),
            (None, None) => Example::of_call(tool, description, &Map::new(), self.output.as_ref()),
        }
    }

    fn check(&self) -> Result<(), &'static str> {
        match (&self.code, &self.input) {
            (Some(_), None) if self.output.is_some() => Err("'output' belongs to 'input', not to 'code'"),
            (Some(_), None) if self.description.is_none() => Err("an example with 'code' needs 'description'"),
            (Some(_), None) | (None, Some(_)) => Ok(()),
            (Some(_), Some(_)) | (None, None) => Err("give either 'code' or 'input'"),
        }
    }
}
