//! Decides which tools exist, and for whom. Nothing else does.
//!
//! A tool is *indexed* (found, described, called by scripts and `invoke`), or *listed* (in the list of tools, called by
//! its listed name). It is both, or it does not exist.

use codecall_base::hidden;
use codecall_base::redact::Redactor;
use codecall_base::text::truncate;
use codecall_base::tool::{Example, NameStyle, RESERVED_NAMES, ToolDefinition, ToolFilter, is_reserved, name_matches};
use codecall_config::{Mode, ToolMetadata, ToolPolicy};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// The rules of the configuration, as they are applied.
pub struct Policy<'a> {
    rules: &'a ToolPolicy,
    secrets: &'a Redactor,
}

/// A tool that exists.
pub struct Placed {
    /// The definition with the metadata of the configuration.
    pub definition: Arc<ToolDefinition>,
    /// Whether it is found, described, called by scripts and `invoke`.
    pub indexed: bool,
    /// Whether it is in the list of tools.
    pub listed: bool,
    /// Whether hidden text was removed from the definition.
    pub is_cleaned: bool,
}

impl<'a> Policy<'a> {
    /// The rules of a configuration, and what is redacted in definitions.
    pub fn new(rules: &'a ToolPolicy, secrets: &'a Redactor) -> Self {
        Self { rules, secrets }
    }

    /// Decides where a tool is; `None`: it does not exist. `own` is the filter of its upstream.
    pub fn place(&self, own: &ToolFilter, tool: &Arc<ToolDefinition>) -> Option<Placed> {
        if is_reserved(&tool.full_name()) || !own.selects(tool) {
            return None;
        }
        // Without a character that is hidden, the rest of a secret is not found.
        let cleaned = hidden::cleaned(tool).map(|cleaned| {
            if self.secrets.is_empty() {
                return Arc::new(cleaned);
            }
            let mut definition = ToolDefinition::clone(tool);
            self.secrets.redact_definition(&mut definition);
            Arc::new(hidden::cleaned(&definition).unwrap_or(definition))
        });
        let is_cleaned = cleaned.is_some();
        let definition = self.described(cleaned.as_ref().unwrap_or(tool));
        if is_reserved(&definition.full_name()) || !self.rules.include.selects_any(&[tool, &definition]) {
            return None;
        }
        if let Some(allowed) = &self.rules.allowed
            && !allowed.iter().any(|filter| filter.selects_any(&[tool, &definition]))
        {
            return None;
        }
        let indexed = match self.rules.mode.unwrap_or_default() {
            Mode::CodecallOnly => definition.enabled_in_code_call != Some(false),
            Mode::CodecallOptIn | Mode::MetadataDriven => definition.enabled_in_code_call == Some(true),
        };
        let listed = definition.visible_in_list_tools.unwrap_or(self.rules.exposes_all());
        (indexed || listed).then_some(Placed { definition, indexed, listed, is_cleaned })
    }

    /// Returns the tool with the metadata of the configuration, and without secrets.
    fn described(&self, tool: &Arc<ToolDefinition>) -> Arc<ToolDefinition> {
        let mut metadata = self.metadata(tool);
        if metadata.is_empty() && self.secrets.is_empty() {
            return Arc::clone(tool);
        }
        let mut definition = ToolDefinition::clone(tool);
        // The most specific pattern is last, and overrides the others.
        metadata.sort_by_key(|(pattern, _)| (!pattern.contains('*'), pattern.len()));
        let mut examples = Vec::new();
        for (_, metadata) in metadata {
            definition.visible_in_list_tools = metadata.visible_in_list_tools.or(definition.visible_in_list_tools);
            definition.enabled_in_code_call = metadata.enabled_in_code_call.or(definition.enabled_in_code_call);
            for tag in &metadata.tags {
                if !definition.tags.contains(tag) {
                    definition.tags.push(tag.clone());
                }
            }
            examples.splice(0..0, metadata.examples.iter());
            if let Some(app) = &metadata.app_id {
                definition.app.clone_from(app);
            }
        }
        let (before, name) = (tool.full_name(), definition.full_name());
        if before != name {
            // Its own examples call it by the name that it has at its server.
            for quote in ['\'', '"'] {
                let [old, new] = [&before, &name].map(|name| format!("{quote}{name}{quote}"));
                definition.examples.iter_mut().for_each(|example| example.code = example.code.replace(&old, &new));
            }
        }
        let examples: Vec<Example> = examples.into_iter().map(|example| example.of_tool(&name)).collect();
        definition.examples.splice(0..0, examples);
        self.secrets.redact_definition(&mut definition);
        Arc::new(definition)
    }

    fn metadata(&self, tool: &ToolDefinition) -> Vec<(&'a str, &'a ToolMetadata)> {
        if self.rules.settings.metadata.is_empty() {
            return Vec::new();
        }
        self.rules
            .settings
            .metadata
            .iter()
            .filter(|(pattern, _)| name_matches(pattern, tool))
            .map(|(pattern, metadata)| (pattern.as_str(), metadata))
            .collect()
    }

    /// Returns the names under which a tool may be listed, the preferred one first.
    pub fn listed_names(&self, tool: &ToolDefinition) -> Vec<String> {
        let mut names = Vec::new();
        if tool.app.is_empty() || self.rules.exposes_all() {
            names.push(tool.name.clone());
        }
        if !tool.app.is_empty() {
            names.push(format!("{}{}{}", tool.app, self.rules.names.separator(), tool.name));
            // Two tools may be the same to one separator: `a_b` of `c` and `b_c` of `a`.
            names.push(format!("{}__{}", tool.app, tool.name));
        }
        if self.rules.names == NameStyle::Underscore {
            names = names.iter().flat_map(|name| [fitted(name), Some(shortened(name, tool))]).flatten().collect();
        }
        names.retain(|name| !is_reserved(name) && !RESERVED_NAMES.contains(&name.as_str()));
        names
    }
}

/// Maximum length of a listed name, in bytes: clients refuse a list with a longer one.
const MAX_LISTED_BYTES: usize = 64;
/// Length of the digest in a shortened name, in hexadecimal digits.
const DIGEST_DIGITS: usize = 8;

/// Returns a name in the characters that every client accepts; `None` if it is too long.
fn fitted(name: &str) -> Option<String> {
    (name.len() <= MAX_LISTED_BYTES).then(|| with_common_characters(name))
}

/// Returns the beginning of a name with a digest of the tool's full name, so that it is the same at each start.
fn shortened(name: &str, tool: &ToolDefinition) -> String {
    let digest = codecall_store::state::hex(&Sha256::digest(tool.full_name().as_bytes()));
    let name = with_common_characters(name);
    format!("{}_{}", truncate(&name, MAX_LISTED_BYTES - DIGEST_DIGITS - 1), &digest[..DIGEST_DIGITS])
}

fn with_common_characters(name: &str) -> String {
    name.replace(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'), "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_names_fit_every_client() {
        let rules = ToolPolicy::default();
        let secrets = Redactor::default();
        let policy = Policy::new(&rules, &secrets);
        for (app, name) in
            [("users", "list"), ("users", "get.all"), ("my app", "größe"), ("a", &*"x".repeat(200)), ("", "a:b")]
        {
            let tool = ToolDefinition { app: app.into(), name: name.into(), ..ToolDefinition::default() };
            let names = policy.listed_names(&tool);
            assert!(!names.is_empty());
            for name in &names {
                let is_common = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
                assert!(is_common && (1..=MAX_LISTED_BYTES).contains(&name.len()), "{name}");
            }
            assert_eq!(names, policy.listed_names(&tool), "the names are stable");
        }
        let long = |name: String| {
            let tool = ToolDefinition { app: "a".into(), name, ..ToolDefinition::default() };
            policy.listed_names(&tool).remove(0)
        };
        assert_ne!(long(format!("{}1", "x".repeat(100))), long(format!("{}2", "x".repeat(100))));
    }
}
