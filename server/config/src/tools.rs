//! Which tools exist and which are listed, as it is configured.

use codecall_base::tool::{Example, NameStyle, ToolFilter};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Which tools are indexed and which are listed, by what is said of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// All are indexed but for those that are not to be, and none is listed but for those that are to be.
    #[default]
    CodecallOnly,
    /// Only tools with `enabledInCodeCall` are indexed.
    CodecallOptIn,
    /// Indexed and listed only as is said of each.
    MetadataDriven,
}

/// What clients see beside the meta-tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expose {
    /// Tools that are to be visible.
    #[default]
    Visible,
    /// All tools of all upstreams too, under the names that their upstreams gave them, and the
    /// upstreams' resources and prompts.
    Direct,
}

/// What the configuration says of the tools of one name or pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ToolMetadata {
    /// Whether it is in the list of tools.
    pub visible_in_list_tools: Option<bool>,
    /// Whether it is indexed.
    pub enabled_in_code_call: Option<bool>,
    /// More tags.
    pub tags: Vec<String>,
    /// Examples of its use, before those of the upstream.
    pub examples: Vec<Example>,
    /// The app that it belongs to instead of its upstream's.
    pub app_id: Option<String>,
}

/// Everything that decides which tools exist.
#[derive(Clone, Debug, Default)]
pub struct ToolPolicy {
    /// The tools that exist at all.
    pub include: ToolFilter,
    /// What is indexed and listed where nothing is said of a tool.
    pub mode: Mode,
    /// What is said of tools, by name or pattern. What an exact name says goes before what a pattern
    /// says, and a longer pattern before a shorter one.
    pub metadata: BTreeMap<String, ToolMetadata>,
    /// What clients see beside the meta-tools.
    pub expose: Expose,
    /// Spelling of listed names.
    pub names: NameStyle,
}

impl ToolPolicy {
    /// Whether upstreams of the configuration may have tools that are listed.
    #[must_use]
    pub fn may_list(&self) -> bool {
        let visible = |metadata: &ToolMetadata| metadata.visible_in_list_tools == Some(true);
        self.expose == Expose::Direct || self.metadata.values().any(visible)
    }
}
