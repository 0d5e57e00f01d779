//! Filters of tools by name, app, source, tag and description.

use super::ToolDefinition;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Selects the tools that match a pattern of `allow` and no pattern of `deny`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-type" = "filter", "x-default" = "all"))]
pub struct ToolFilter {
    /// Selects the tools that match one of these patterns.
    #[schemars(extend("x-default" = "all"))]
    pub allow: Option<Vec<ToolPattern>>,
    /// Excludes the tools that match one of these patterns.
    pub deny: Vec<ToolPattern>,
}

impl ToolFilter {
    /// Creates a filter from patterns of names.
    #[must_use]
    pub fn by_name(allow: Option<Vec<String>>, deny: Vec<String>) -> Self {
        let patterns = |names: Vec<String>| names.into_iter().map(ToolPattern::by_name).collect();
        Self { allow: allow.map(patterns), deny: patterns(deny) }
    }

    /// Whether the filter selects a tool.
    #[must_use]
    pub fn selects(&self, tool: &ToolDefinition) -> bool {
        self.selects_any(&[tool])
    }

    /// Whether the filter selects a tool with several definitions, such as one that was moved to another app. A pattern
    /// matches the tool if it matches one of them.
    #[must_use]
    pub fn selects_any(&self, definitions: &[&ToolDefinition]) -> bool {
        let any = |patterns: &[ToolPattern]| patterns.iter().any(|p| definitions.iter().any(|tool| p.matches(tool)));
        self.allow.as_deref().is_none_or(any) && !any(&self.deny)
    }
}

/// Matches tools by all of the fields that are set. In the configuration, a string is a pattern of names.
///
/// Each field is a pattern in which `*` stands for any text; case is ignored. A name with a colon is matched in two
/// parts, app and own name: `users:*` never matches a tool of another app, even if that tool's own name begins with
/// `users:`. A name without a colon is matched against the full name (`users:list`) and the own name (`list`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, remote = "Self")]
#[schemars(!remote, extend("x-short" = "name", "x-type" = "tool pattern"))]
pub struct ToolPattern {
    /// Pattern of the tool's name.
    pub name: Option<String>,
    /// Pattern of the app's id.
    pub app: Option<String>,
    /// Pattern of the kind of upstream: `mcp`, `openapi`, `inline`, …
    pub source: Option<String>,
    /// Pattern of one of the tags.
    pub tag: Option<String>,
    /// Pattern of the whole description: `*refund*` matches one that contains the word.
    pub description: Option<String>,
}

impl ToolFilter {
    /// Whether the filter names an app whose tools are not known, so that it may select some of them. One that only says
    /// which tags or own names it selects names no app.
    #[must_use]
    pub fn names_app(&self, app: &str) -> bool {
        let is_denied = |pattern: &ToolPattern| {
            let has_more = pattern.tag.is_some() || pattern.source.is_some() || pattern.description.is_some();
            !has_more && pattern.is_of_all(app)
        };
        let names = |patterns: &Vec<ToolPattern>| patterns.iter().any(|pattern| pattern.names_app(app));
        self.allow.as_ref().is_none_or(names) && !self.deny.iter().any(is_denied)
    }
}

impl ToolPattern {
    fn names_app(&self, app: &str) -> bool {
        let of_name = self.name.as_ref().map(|pattern| match pattern.split_once(':') {
            Some((named, _)) => matches_ignoring_case(named, app),
            None => matches_ignoring_case(pattern, &format!("{app}:")),
        });
        let of_app = self.app.as_ref().map(|pattern| matches_ignoring_case(pattern, app));
        (of_name.is_some() || of_app.is_some()) && of_name.unwrap_or(true) && of_app.unwrap_or(true)
    }

    /// Whether it matches all tools of an app.
    fn is_of_all(&self, app: &str) -> bool {
        let is_any = |pattern: &String| pattern == "*" || pattern.split_once(':').is_some_and(|(_, own)| own == "*");
        self.name.as_ref().is_none_or(is_any) && self.names_app(app)
    }

    /// Creates a pattern of names.
    #[must_use]
    pub fn by_name(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }

    /// Whether the pattern is the full name of a tool, in any case.
    #[must_use]
    pub fn names(&self, tool: &ToolDefinition) -> bool {
        self.name.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(&tool.full_name()))
    }

    /// Whether the pattern matches a tool.
    #[must_use]
    pub fn matches(&self, tool: &ToolDefinition) -> bool {
        let is = |pattern: &Option<String>, text: &str| pattern.as_ref().is_none_or(|p| matches_ignoring_case(p, text));
        self.name.as_ref().is_none_or(|pattern| name_matches(pattern, tool))
            && is(&self.app, &tool.app)
            && is(&self.source, tool.source)
            && self.tag.as_ref().is_none_or(|p| tool.tags.iter().any(|tag| matches_ignoring_case(p, tag)))
            && is(&self.description, &tool.description)
    }
}

/// Whether a pattern of names matches a tool.
#[must_use]
pub fn name_matches(pattern: &str, tool: &ToolDefinition) -> bool {
    let full = tool.full_name();
    match pattern.split_once(':') {
        Some((app, own)) => {
            let (of_app, name) = match tool.app.as_str() {
                "" => full.split_once(':').unwrap_or(("", &full)),
                app => (app, tool.name.as_str()),
            };
            matches_ignoring_case(app, of_app) && matches_ignoring_case(own, name)
        }
        None => matches_ignoring_case(pattern, &full) || matches_ignoring_case(pattern, &tool.name),
    }
}

/// Does the same as [`glob_matches`], but ignores case, because scripts may call tools as functions in another case.
fn matches_ignoring_case(pattern: &str, name: &str) -> bool {
    glob_matches(pattern, name) || glob_matches(&pattern.to_lowercase(), &name.to_lowercase())
}

impl Serialize for ToolPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The derived one, which is not that of the trait.
        Self::serialize(self, serializer)
    }
}

/// A text, or the table that is derived.
impl<'de> Deserialize<'de> for ToolPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = ToolPattern;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a name, or some of name, app, source, tag and description")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<ToolPattern, E> {
                Ok(ToolPattern::by_name(name))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<ToolPattern, A::Error> {
                let pattern = ToolPattern::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                if pattern == ToolPattern::default() {
                    // It would match every tool, which is probably a mistake.
                    return Err(serde::de::Error::custom("must have one of name, app, source, tag and description"));
                }
                Ok(pattern)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Whether `name` matches `pattern`, in which `*` stands for any text.
#[must_use]
pub fn glob_matches(pattern: &str, name: &str) -> bool {
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
    fn a_star_matches_any_text() {
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
            assert_eq!(glob_matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_filter_is_read_as_it_was_written() {
        for text in
            [r#"{"allow": ["users:*", {"tag": "safe", "app": "bank"}], "deny": ["users:drop"]}"#, r#"{"deny": []}"#]
        {
            let filter: ToolFilter = serde_json::from_str(text).expect("a filter");
            let written = serde_json::to_string(&filter).expect("JSON");
            assert_eq!(serde_json::from_str::<ToolFilter>(&written).expect("a filter"), filter, "{written}");
        }
    }

    #[test]
    fn a_filter_names_apps() {
        for (filter, expected) in [
            (r#"{}"#, true),
            (r#"{"allow": ["users:list"]}"#, true),
            (r#"{"allow": ["us*"]}"#, true),
            (r#"{"allow": [{"app": "users", "tag": "read"}]}"#, true),
            (r#"{"allow": ["users:*"], "deny": ["users:delete"]}"#, true),
            (r#"{"allow": ["orders:*", "list"]}"#, false),
            (r#"{"allow": [{"tag": "read"}]}"#, false),
            (r#"{"allow": [{"description": "*read*"}]}"#, false),
            (r#"{"allow": [{"app": "users", "description": "*read*"}]}"#, true),
            (r#"{"allow": ["*"], "deny": [{"app": "users", "description": "*"}]}"#, true),
            (r#"{"allow": ["*"], "deny": ["users:*"]}"#, false),
            (r#"{"deny": [{"app": "users"}]}"#, false),
        ] {
            let parsed: ToolFilter = serde_json::from_str(filter).expect("a filter");
            assert_eq!(parsed.names_app("users"), expected, "{filter}");
        }
    }

    #[test]
    fn a_pattern_matches_by_all_its_fields() {
        let tool = ToolDefinition {
            app: "users".into(),
            name: "list".into(),
            source: "mcp",
            tags: vec!["read".into()],
            description: "List users.\nDeprecated: use `find`.".into(),
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
            (r#"{"description": "list*"}"#, true),
            (r#"{"description": "*deprecated*"}"#, true),
            (r#"{"description": "deprecated"}"#, false),
            (r#"{"app": "orders", "description": "*deprecated*"}"#, false),
        ] {
            let pattern: ToolPattern = serde_json::from_str(pattern).expect("a pattern");
            assert_eq!(pattern.matches(&tool), expected, "{pattern:?}");
        }
        let evil = ToolDefinition { app: "evil".into(), name: "users:list".into(), ..ToolDefinition::default() };
        for (pattern, expected) in [("users:*", false), ("users:list", false), ("evil:*", true), ("evil:users:*", true)]
        {
            assert_eq!(ToolPattern::by_name(pattern).matches(&evil), expected, "{pattern}");
        }
        for wrong in ["{}", "3", r#"{"nam": "x"}"#] {
            assert!(serde_json::from_str::<ToolPattern>(wrong).is_err(), "{wrong}");
        }
    }
}
