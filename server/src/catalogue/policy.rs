//! Which tools exist, and for whom: the one place that decides.
//!
//! A tool is *indexed* (found, described, called from scripts and by `invoke`), *listed* (shown in
//! the list of tools and called under its own name), both, or it does not exist.

use super::filter::ToolFilter;
use super::filter::names;
use super::is_reserved;
use crate::config::Names;
use crate::redact::Redactor;
use crate::upstream::{Example, ToolDefinition};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

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
    pub names: Names,
}

/// A tool that exists.
pub struct Placed {
    /// With all that is said of it.
    pub definition: Arc<ToolDefinition>,
    /// Whether it is found, described, called from scripts and by `invoke`.
    pub indexed: bool,
    /// Whether it is in the list of tools.
    pub listed: bool,
}

impl ToolPolicy {
    /// Where a tool is; absent: it does not exist. `own` is the filter of its upstream.
    #[must_use]
    pub fn place(&self, own: &ToolFilter, tool: &Arc<ToolDefinition>, secrets: &Redactor) -> Option<Placed> {
        if is_reserved(&tool.full_name()) || !own.keeps(tool) {
            return None;
        }
        let definition = self.described(tool, secrets);
        if is_reserved(&definition.full_name()) || !self.include.keeps_any(&[tool, &definition]) {
            return None;
        }
        let indexed = match self.mode {
            Mode::CodecallOnly => definition.enabled_in_code_call != Some(false),
            Mode::CodecallOptIn | Mode::MetadataDriven => definition.enabled_in_code_call == Some(true),
        };
        let listed = definition.visible_in_list_tools.unwrap_or(self.expose == Expose::Direct);
        (indexed || listed).then_some(Placed { definition, indexed, listed })
    }

    /// The tool with what the configuration says of it, and without secrets of the configuration.
    fn described(&self, tool: &Arc<ToolDefinition>, secrets: &Redactor) -> Arc<ToolDefinition> {
        let mut said = self.said_of(tool);
        if said.is_empty() && secrets.is_empty() {
            return Arc::clone(tool);
        }
        let mut told = ToolDefinition::clone(tool);
        // The most specific one is last and has the last word.
        said.sort_by_key(|(pattern, _)| (!pattern.contains('*'), pattern.len()));
        let mut examples = Vec::new();
        for (_, metadata) in said {
            told.visible_in_list_tools = metadata.visible_in_list_tools.or(told.visible_in_list_tools);
            told.enabled_in_code_call = metadata.enabled_in_code_call.or(told.enabled_in_code_call);
            for tag in &metadata.tags {
                if !told.tags.contains(tag) {
                    told.tags.push(tag.clone());
                }
            }
            examples.splice(0..0, metadata.examples.iter().cloned());
            if let Some(app) = &metadata.app_id {
                told.app.clone_from(app);
            }
        }
        examples.append(&mut told.examples);
        told.examples = examples;
        secrets.definition(&mut told);
        Arc::new(told)
    }

    fn said_of(&self, tool: &ToolDefinition) -> Vec<(&str, &ToolMetadata)> {
        if self.metadata.is_empty() {
            return Vec::new();
        }
        self.metadata.iter().filter(|(pattern, _)| names(pattern, tool)).map(|(p, said)| (p.as_str(), said)).collect()
    }

    /// Whether upstreams of the configuration may have tools that are listed.
    #[must_use]
    pub fn may_list(&self) -> bool {
        let visible = |metadata: &ToolMetadata| metadata.visible_in_list_tools == Some(true);
        self.expose == Expose::Direct || self.metadata.values().any(visible)
    }

    /// The names under which a tool may be listed, the best first.
    #[must_use]
    pub fn listed_names(&self, tool: &ToolDefinition) -> Vec<String> {
        let mut names = Vec::new();
        if tool.app.is_empty() || self.expose == Expose::Direct {
            names.push(tool.name.clone());
        }
        if !tool.app.is_empty() {
            names.push(format!("{}{}{}", tool.app, self.names.separator(), tool.name));
            // Two tools may be the same to one separator: `a_b` of `c` and `b_c` of `a`.
            names.push(format!("{}__{}", tool.app, tool.name));
        }
        names.retain(|name| !is_reserved(name) && crate::meta::named(name).is_none());
        names
    }
}
