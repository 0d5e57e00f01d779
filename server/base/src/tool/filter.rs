//! Patterns of tools: by name, app, source and tag.

use super::ToolDefinition;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

/// Tools that match any pattern of `allow` and none of `deny`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-type" = "filter", "x-default" = "all"))]
pub struct ToolFilter {
    /// Patterns of the tools that are meant.
    #[schemars(extend("x-default" = "all"))]
    pub allow: Option<Vec<ToolPattern>>,
    /// Patterns of tools that are excluded.
    pub deny: Vec<ToolPattern>,
}

impl ToolFilter {
    /// Those that fit `allow` (absent: all) and none of `deny`, by name.
    #[must_use]
    pub fn by_name(allow: Option<Vec<String>>, deny: Vec<String>) -> Self {
        let patterns = |names: Vec<String>| names.into_iter().map(ToolPattern::named).collect();
        Self { allow: allow.map(patterns), deny: patterns(deny) }
    }

    /// Whether a tool is meant.
    #[must_use]
    pub fn keeps(&self, tool: &ToolDefinition) -> bool {
        self.keeps_any(&[tool])
    }

    /// Whether a tool is meant that has several descriptions, as one that was put into another app:
    /// what fits one of them fits the tool.
    #[must_use]
    pub fn keeps_any(&self, forms: &[&ToolDefinition]) -> bool {
        let any = |patterns: &[ToolPattern]| patterns.iter().any(|p| forms.iter().any(|form| p.fits(form)));
        self.allow.as_deref().is_none_or(any) && !any(&self.deny)
    }
}

/// Tools that match all members that are given. In the configuration, a text alone is a name.
///
/// Every member is a pattern in which `*` stands for any text; case makes no difference. A name with a
/// colon is a full one: its app is compared with the app (`users:*` is nothing of another app's, whatever
/// that calls its tools), the rest with the tool's own name. A name without one is compared with the full
/// name (`users:list`) and with the tool's own (`list`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, remote = "Self")]
#[schemars(!remote, extend("x-short" = "name", "x-type" = "tool pattern"))]
pub struct ToolPattern {
    /// Matches the name of the tool.
    pub name: Option<String>,
    /// Matches the app of the tool.
    pub app: Option<String>,
    /// Matches the kind of upstream: `mcp`, `openapi`, `inline`, …
    pub source: Option<String>,
    /// Matches one of the tags of the tool.
    pub tag: Option<String>,
}

impl ToolPattern {
    /// A pattern of names alone.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }

    /// Whether a tool fits.
    #[must_use]
    pub fn fits(&self, tool: &ToolDefinition) -> bool {
        let is = |pattern: &Option<String>, text: &str| pattern.as_ref().is_none_or(|p| matches_any_case(p, text));
        self.name.as_ref().is_none_or(|pattern| names(pattern, tool))
            && is(&self.app, &tool.app)
            && is(&self.source, tool.source)
            && self.tag.as_ref().is_none_or(|p| tool.tags.iter().any(|tag| matches_any_case(p, tag)))
    }
}

/// Whether a pattern of names fits a tool.
#[must_use]
pub fn names(pattern: &str, tool: &ToolDefinition) -> bool {
    let full = tool.full_name();
    match pattern.split_once(':') {
        Some((app, own)) => {
            let (of_app, name) = match tool.app.as_str() {
                "" => full.split_once(':').unwrap_or(("", &full)),
                app => (app, tool.name.as_str()),
            };
            matches_any_case(app, of_app) && matches_any_case(own, name)
        }
        None => matches_any_case(pattern, &full) || matches_any_case(pattern, &tool.name),
    }
}

/// The same as [`matches`], whatever the case: calls of members find tools by it.
fn matches_any_case(pattern: &str, name: &str) -> bool {
    matches(pattern, name) || matches(&pattern.to_lowercase(), &name.to_lowercase())
}

/// A text, or the table that is derived.
impl<'de> Deserialize<'de> for ToolPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = ToolPattern;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a name, or some of name, app, source and tag")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<ToolPattern, E> {
                Ok(ToolPattern::named(name))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<ToolPattern, A::Error> {
                let pattern = ToolPattern::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                if pattern == ToolPattern::default() {
                    // It would fit every tool, which nobody writes in this way.
                    return Err(serde::de::Error::custom("must have one of name, app, source and tag"));
                }
                Ok(pattern)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Whether `name` fits `pattern`, in which `*` stands for any text.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "abcd", false),
            ("*b*", "abc", true),
            ("abc", "abc", true),
            ("ab", "abc", false),
            ("a*b*b", "ab", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_fits_by_all_that_it_names() {
        let tool = ToolDefinition {
            app: "users".into(),
            name: "list".into(),
            source: "mcp",
            tags: vec!["read".into()],
            ..ToolDefinition::default()
        };
        for (pattern, expected) in [
            (r#""users:*""#, true),
            (r#""list""#, true),
            (r#"{"app": "users", "tag": "re*"}"#, true),
            (r#"{"app": "users", "tag": "write"}"#, false),
            (r#"{"source": "openapi"}"#, false),
            (r#"{"name": "*", "source": "mcp"}"#, true),
            (r#""USERS:L*""#, true),
            (r#"{"app": "Users", "tag": "READ"}"#, true),
            (r#""*:list""#, true),
            (r#""use*""#, true),
            (r#""list:*""#, false),
        ] {
            let pattern: ToolPattern = serde_json::from_str(pattern).expect("a pattern");
            assert_eq!(pattern.fits(&tool), expected, "{pattern:?}");
        }
        let evil = ToolDefinition { app: "evil".into(), name: "users:list".into(), ..ToolDefinition::default() };
        for (pattern, expected) in [("users:*", false), ("users:list", false), ("evil:*", true), ("evil:users:*", true)]
        {
            assert_eq!(ToolPattern::named(pattern).fits(&evil), expected, "{pattern}");
        }
        for wrong in ["{}", "3", r#"{"nam": "x"}"#] {
            assert!(serde_json::from_str::<ToolPattern>(wrong).is_err(), "{wrong}");
        }
    }
}
