//! Scripts that an agent saves: what it says of one becomes the manifest of a tool.

use crate::tool::declares_execute;
use crate::{Manifest, Problem, ScriptTool, ToolSource};
use agentscript::{Language, Policy};
use codecall_store::StoredCode;
use serde_json::{Map, Value};

/// A script with what its author says of it.
#[derive(Clone, Copy, Debug)]
pub struct SavedScript<'a> {
    /// The name of its tool.
    pub name: &'a str,
    /// The description of the tool.
    pub description: &'a str,
    /// JSON schema of its parameters.
    pub parameters: Option<&'a Map<String, Value>>,
    /// Names or patterns of the tools that it may call.
    pub tools: &'a [String],
    /// A function `execute(params, config)`, or its body.
    pub script: &'a str,
}

impl SavedScript<'_> {
    /// Returns the code of the tool, checked. It sees no secret and reaches no host. `policy` are the limits of the
    /// configuration.
    ///
    /// # Errors
    /// Problems of the script, by its own lines, or of its description.
    pub fn compose(&self, app: &str, policy: &Policy) -> Result<StoredCode, Vec<Problem>> {
        let manifest = self.manifest().map_err(|problem| vec![problem])?;
        let languages = [Language::JavaScript, Language::TypeScript];
        let is_function = languages.iter().any(|&language| declares_execute(self.script, language));
        let (begin, end) = if is_function { ("", "") } else { ("async function execute(params, config) {\n", "\n}") };
        let before = format!("{manifest}{begin}");
        let code = format!("{before}{}{end}\n", self.script);
        let check = |language| {
            let source = ToolSource { name: self.name, code: &code, language, manifest: None };
            ScriptTool::check(app, source, policy).map(drop)
        };
        let typescript = match check(Language::JavaScript) {
            Ok(()) => false,
            Err(problems) => {
                check(Language::TypeScript).map_err(|_| moved_up(problems, &before))?;
                true
            }
        };
        Ok(StoredCode { code, typescript })
    }

    /// Returns the manifest as the block of comment that a tool begins with.
    fn manifest(&self) -> Result<String, Problem> {
        let manifest = Manifest {
            description: self.description.to_owned(),
            parameters: self.parameters.cloned(),
            tools: self.tools.to_vec(),
            ..Manifest::default()
        };
        let text = toml::to_string(&manifest).map_err(|error| {
            Problem::new(format!("the parameters cannot be written as TOML: {error}"))
                .with_hint("write a schema without null")
        })?;
        if text.contains("*/") {
            let message = "the description, the parameters or the tools contain '*/', which ends a comment";
            return Err(Problem::new(message).with_hint("leave it out, or write it in another way"));
        }
        Ok(format!("/*---\n{text}---*/\n"))
    }
}

/// Counts the lines of problems from the line behind `before`.
fn moved_up(problems: Vec<Problem>, before: &str) -> Vec<Problem> {
    let lines = u32::try_from(before.matches('\n').count()).unwrap_or(u32::MAX);
    let moved = |problem: Problem| Problem { line: problem.line.map(|line| line.saturating_sub(lines)), ..problem };
    problems.into_iter().map(moved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compose(script: &str, parameters: &Value) -> Result<StoredCode, Vec<String>> {
        let tools = ["users:*".to_owned()];
        let saved = SavedScript {
            name: "sum",
            description: "Adds \"two\" numbers\nand says so",
            parameters: parameters.as_object(),
            tools: &tools,
            script,
        };
        saved.compose("tools", &Policy::default()).map_err(|problems| problems.iter().map(Problem::to_string).collect())
    }

    #[test]
    fn a_body_and_a_function_become_tools() {
        let parameters = json!({
            "type": "object", "required": ["a"],
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}},
        });
        for (script, typescript) in [
            ("return params.a + params.b", false),
            ("const sum: number = params.a + params.b;\nreturn sum", true),
            ("const one = 1;\nasync function execute(params) { return params.a + params.b + one - one }", false),
            ("async function execute(params: { a: number }) { return params.a }", true),
            ("return 1 // the end", false),
        ] {
            let stored = compose(script, &parameters).expect(script);
            assert_eq!(stored.typescript, typescript, "{script}");
            let language = if typescript { Language::TypeScript } else { Language::JavaScript };
            let source = ToolSource { name: "sum", code: &stored.code, language, manifest: None };
            let tool = ScriptTool::check("tools", source, &Policy::default()).expect(script);
            assert_eq!(tool.manifest.description, "Adds \"two\" numbers\nand says so");
            assert_eq!(tool.manifest.tools, ["users:*"]);
            assert!(tool.manifest.secrets.is_empty() && tool.manifest.hosts.is_empty());
            assert_eq!(tool.parameters(Map::from_iter([("a".into(), json!(1))])), Ok(json!({"a": 1, "b": 2})));
            assert!(tool.parameters(Map::new()).is_err());
        }
    }

    #[test]
    fn problems_have_the_lines_of_the_script() {
        let none = json!({});
        let found = compose("const a = 1;\nreturn eval('a')", &none).expect_err("eval is refused");
        assert!(found[0].contains("line 2") || found[0].contains(":2:"), "{found:?}");
        let found =
            compose("async function execute(params) {\n\n  return params +\n}", &none).expect_err("it is broken");
        assert!(found[0].contains("line 4") || found[0].contains(":4:"), "{found:?}");
        let found = compose("return 1", &json!({"type": "array"})).expect_err("parameters are an object");
        assert!(found[0].contains("parameters"), "{found:?}");
        let found = compose("return 1", &json!({"properties": {"a": {"enum": [null]}}})).expect_err("TOML has no null");
        assert!(found[0].contains("null"), "{found:?}");
        let found = compose("return 1", &json!({"properties": {"a": {"pattern": ".*/"}}})).expect_err("a comment ends");
        assert!(found[0].contains("'*/'"), "{found:?}");
    }

    #[test]
    fn a_script_cannot_give_itself_secrets_or_hosts() {
        let script =
            "/*---\ndescription = \"x\"\nsecrets = [\"KEY\"]\nhosts = [\"https://example.com\"]\n---*/\nreturn config";
        let stored = compose(script, &json!({})).expect("it is a comment");
        let source = ToolSource { name: "sum", code: &stored.code, language: Language::JavaScript, manifest: None };
        let tool = ScriptTool::check("tools", source, &Policy::default()).expect("checked before");
        assert!(tool.manifest.secrets.is_empty() && tool.manifest.hosts.is_empty());
    }
}
