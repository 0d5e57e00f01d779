//! Skills of one text: descriptions of tools, and one of this server.

use codecall_base::tool::ToolDefinition;
use rmcp::model::{
    ReadResourceResult, Resource, ResourceContents, Skill, SkillFrontmatter, SkillResource, SkillResources,
};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The type of a `SKILL.md`.
const MARKDOWN: &str = "text/markdown";
/// Maximum length of the name of a skill, in characters (Agent Skills).
const MAX_NAME: usize = 64;
/// Maximum length of a description, in characters (Agent Skills).
const MAX_DESCRIPTION: usize = 1_024;

/// A skill whose only file is its `SKILL.md`.
#[derive(Clone, Debug)]
pub struct TextSkill {
    /// Its entry in a list.
    pub skill: Skill,
    /// The text of its `SKILL.md`.
    pub text: String,
}

impl TextSkill {
    /// Returns the skill that teaches agents to use this server.
    #[must_use]
    pub fn of_server() -> Self {
        let description = "Call many tools by one short script with codecall_execute. Use it when a task needs more than \
                           one tool call, a loop over results, or only a part of a large answer.";
        Self::new("codecall/codecall", "codecall", description, &[], include_str!("codecall.md"))
    }

    /// Returns the skill of a script tool, which this server runs within its limits. `None`: its name has no letter or
    /// digit.
    #[must_use]
    pub fn of_tool(tool: &ToolDefinition) -> Option<Self> {
        let name = skill_name(&tool.name)?;
        let full_name = tool.full_name();
        let mut text = format!("# {}\n\n{}\n\n", tool.title.as_deref().unwrap_or(&tool.name), tool.description.trim());
        let _ = write!(
            text,
            "## Run\n\nCall `{full_name}`. CodeCall runs it in its sandbox; it needs no shell and no file.\n\n\
             ```js\nreturn await callTool({}, {});\n```\n\n",
            json!(full_name),
            example_input(&tool.input_schema),
        );
        for example in &tool.examples {
            let _ = write!(text, "{}\n\n```js\n{}\n```\n\n", example.description.trim(), example.code.trim());
        }
        let _ = write!(text, "## Input\n\n```json\n{:#}\n```\n", tool.input_schema);
        if let Some(schema) = &tool.output_schema {
            let _ = write!(text, "\n## Result\n\n```json\n{schema:#}\n```\n");
        }
        let metadata = [("tool", full_name.as_str())];
        Some(Self::new(&format!("{}/{name}", tool.app), &name, &tool.description, &metadata, &text))
    }

    fn new(path: &str, name: &str, description: &str, metadata: &[(&str, &str)], body: &str) -> Self {
        let description: String = description.trim().chars().take(MAX_DESCRIPTION).collect();
        let description = if description.is_empty() { name.to_owned() } else { description };
        let mut frontmatter = SkillFrontmatter::new(name, &description);
        // A text in JSON is the same text in YAML 1.2.
        let mut text = format!("---\nname: {}\ndescription: {}\n", json!(name), json!(description));
        if !metadata.is_empty() {
            let fields: serde_json::Map<String, Value> =
                metadata.iter().map(|&(key, value)| (key.to_owned(), value.into())).collect();
            text.push_str("metadata:\n");
            for (key, value) in &fields {
                let _ = writeln!(text, "  {key}: {value}");
            }
            frontmatter = frontmatter.with_field("metadata", fields);
        }
        let _ = write!(text, "---\n\n{}", body.trim_start());
        let uri = format!("skill://{path}/SKILL.md");
        let file = SkillResource::from_bytes(&uri, text.as_bytes());
        Self { skill: Skill::new(uri, frontmatter, SkillResources::Files(vec![file])), text }
    }

    /// Returns its `SKILL.md`.
    #[must_use]
    pub fn read(&self) -> ReadResourceResult {
        ReadResourceResult::new(vec![ResourceContents::text(&self.text, &self.skill.uri).with_mime_type(MARKDOWN)])
    }

    /// Returns its `SKILL.md` as an entry of a list of resources.
    #[must_use]
    pub fn resource(&self) -> Resource {
        Resource::new(&self.skill.uri, self.skill.name())
            .with_description(&self.skill.frontmatter.description)
            .with_mime_type(MARKDOWN)
            .with_size(self.text.len() as u64)
    }
}

/// Returns the name of a tool in the form of skills: small letters and digits, joined by single hyphens.
fn skill_name(name: &str) -> Option<String> {
    let mut out = String::new();
    let mut before = ' ';
    for letter in name.chars() {
        let starts_word = letter.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit());
        if (starts_word || !letter.is_ascii_alphanumeric()) && !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
        if letter.is_ascii_alphanumeric() {
            out.push(letter.to_ascii_lowercase());
        }
        before = letter;
    }
    out.truncate(MAX_NAME);
    let out = out.trim_end_matches('-');
    (!out.is_empty()).then(|| out.to_owned())
}

/// Returns an input with the required members of a schema.
fn example_input(schema: &Value) -> Value {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let member = |name: &str| {
        let property = &schema["properties"][name];
        let given = [&property["default"], &property["enum"][0], &property["examples"][0]];
        let value = given.into_iter().find(|value| !value.is_null()).cloned();
        (name.to_owned(), value.unwrap_or_else(|| of_type(property["type"].as_str())))
    };
    Value::Object(required.map(member).collect())
}

fn of_type(name: Option<&str>) -> Value {
    match name {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("…"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Folders;
    use crate::folders::tests::{Folder, write};

    fn tool() -> ToolDefinition {
        ToolDefinition {
            app: "tools".into(),
            name: "sumOrders".into(),
            description: "Adds \"orders\": all of them\nof a day # not a comment".into(),
            input_schema: json!({
                "type": "object", "required": ["day", "unit"],
                "properties": {"day": {"type": "string"}, "unit": {"enum": ["EUR", "USD"]}, "more": {}},
            }),
            ..ToolDefinition::default()
        }
    }

    #[test]
    fn a_reader_of_skills_reads_them_as_they_are_listed() {
        for made in [TextSkill::of_tool(&tool()).expect("it has a name"), TextSkill::of_server()] {
            made.skill.validate().expect("a valid skill");
            let root = Folder::new(made.skill.name());
            write(root.path(), made.skill.uri.strip_prefix("skill://").expect("a skill"), &made.text);
            let read = Folders::open([root.path()]).expect("it is read").skills();
            assert_eq!(read, [made.skill]);
        }
    }

    #[test]
    fn a_tool_says_how_to_call_it() {
        let made = TextSkill::of_tool(&tool()).expect("it has a name");
        assert_eq!(made.skill.uri, "skill://tools/sum-orders/SKILL.md");
        assert!(
            made.text.contains("return await callTool(\"tools:sumOrders\", {\"day\":\"…\",\"unit\":\"EUR\"});"),
            "{}",
            made.text
        );
    }

    #[test]
    fn names_take_the_form_of_skills() {
        for (name, expected) in [
            ("weather", Some("weather")),
            ("list_users", Some("list-users")),
            ("listUsers2Now", Some("list-users2-now")),
            ("__a..b__", Some("a-b")),
            ("HTTPGet", Some("httpget")),
            ("ü", None),
        ] {
            assert_eq!(skill_name(name).as_deref(), expected, "{name}");
        }
        assert_eq!(skill_name(&"a".repeat(100)).expect("a name").len(), MAX_NAME);
    }
}
