//! The tools of a run, given as JSON: what a script can look up, and their declarations for a model.
//!
//! It calls nothing, and checks no input against a schema: whoever answers a call does.

use crate::error::InputError;
use agentscript::Tools;
use agentscript::declarations::{Function, declarations};
use agentscript::stateless::{ClientTools, FunctionNames, function_name};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// How similar a name must be to be suggested for one that does not exist.
const MIN_SIMILARITY: f64 = 0.8;
/// Most names that are suggested.
const MAX_SIMILAR: usize = 3;
/// Longest name that suggestions are looked for, in bytes, which bounds the time of the comparison.
const MAX_NAME_BYTES: usize = 256;

/// A list of tools. It never changes, so that many runs share it.
#[derive(Debug, Default)]
pub struct Toolset {
    tools: Vec<Tool>,
    by_name: HashMap<String, usize>,
    functions: FunctionNames,
    /// By app: the full names of its tools, by their own names and by these as functions.
    apps: HashMap<String, HashMap<String, String>>,
    reserved: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Tool {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default = "any_object")]
    input_schema: Value,
    #[serde(default)]
    output_schema: Option<Value>,
    #[serde(default)]
    annotations: Option<Value>,
}

fn any_object() -> Value {
    json!({"type": "object"})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    tools: Vec<Tool>,
    #[serde(default)]
    reserved: Vec<String>,
}

impl Toolset {
    /// Reads `{"tools": [{"name", "description"?, "inputSchema"?, "outputSchema"?, "annotations"?}], "reserved"?: ["app"]}`. A
    /// tool `users:list` belongs to the app `users`, and scripts call it as `users.list(…)` too. A call of a tool of a
    /// reserved app ends the run: an agent reserves what scripts must never reach, such as the tool that runs them.
    ///
    /// # Errors
    /// The text has another form, two tools have one name, or two have one function name.
    pub fn from_json(text: &str) -> Result<Self, InputError> {
        let Text { tools, reserved } = serde_json::from_str(text).map_err(|error| InputError(error.to_string()))?;
        for tool in &tools {
            if tool.name.is_empty() {
                return Err(InputError("a tool must have a name".into()));
            }
            if !tool.input_schema.is_object() {
                return Err(InputError(format!("the input schema of tool '{}' must be an object", tool.name)));
            }
        }
        let names = tools.iter().map(|tool| tool.name.as_str());
        let functions = FunctionNames::new(names).map_err(|clash| InputError(clash.to_string()))?;
        let by_name = tools.iter().enumerate().map(|(index, tool)| (tool.name.clone(), index)).collect();
        let mut apps: HashMap<String, HashMap<String, String>> = HashMap::new();
        for tool in &tools {
            let Some((app, own)) = tool.name.split_once(':') else { continue };
            let members = apps.entry(app.to_owned()).or_default();
            members.insert(own.to_owned(), tool.name.clone());
            if let Some(function) = function_name(own) {
                members.entry(function).or_insert_with(|| tool.name.clone());
            }
        }
        Ok(Self { tools, by_name, functions, apps, reserved })
    }

    /// Declarations of all tools in TypeScript, for the prompt of a model: `declare function getUser(input: {…}): Promise<…>;`.
    #[must_use]
    pub fn declarations(&self) -> String {
        declarations(self.tools.iter().map(|tool| Function {
            name: self.functions.function(&tool.name),
            tool: &tool.name,
            description: &tool.description,
            input: &tool.input_schema,
            output: tool.output_schema.as_ref(),
        }))
    }

    fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.get(*self.by_name.get(name)?)
    }

    /// The names nearest to `name`, the nearest first.
    fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
        if name.len() > MAX_NAME_BYTES {
            return Vec::new();
        }
        let mut found: Vec<(f64, &str)> = known
            .filter(|known| known.len() <= MAX_NAME_BYTES)
            .map(|known| (strsim::jaro_winkler(known, name), known))
            .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
            .collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        found.into_iter().take(MAX_SIMILAR).map(|(_, name)| name.to_owned()).collect()
    }
}

impl Tools for Toolset {
    fn describe(&self, name: &str) -> Option<String> {
        let tool = self.find(name)?;
        let app = name.split_once(':').map(|(app, _)| app);
        let described = json!({
            "name": tool.name,
            "appId": app,
            "description": tool.description,
            "inputSchema": tool.input_schema,
            "outputSchema": tool.output_schema,
            "annotations": tool.annotations.clone().unwrap_or_else(|| json!({})),
        });
        Some(described.to_string())
    }

    fn is_app(&self, app: &str) -> bool {
        self.apps.contains_key(app)
    }

    fn member(&self, app: &str, tool: &str) -> Option<String> {
        self.apps.get(app)?.get(tool).cloned()
    }

    fn function(&self, name: &str) -> Option<String> {
        self.functions.tool(name).map(str::to_owned)
    }

    fn positional(&self, tool: &str) -> Option<String> {
        let schema = &self.find(tool)?.input_schema;
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let properties: Vec<&String> =
            schema["properties"].as_object().into_iter().flat_map(|all| all.keys()).collect();
        match (required.as_slice(), properties.as_slice()) {
            ([only], _) => Some((*only).to_owned()),
            ([], [only]) => Some((*only).clone()),
            (_, _) => None,
        }
    }

    fn similar(&self, name: &str) -> Vec<String> {
        Self::nearest(name, self.tools.iter().map(|tool| tool.name.as_str()))
    }

    fn similar_app(&self, name: &str) -> Option<String> {
        Self::nearest(name, self.apps.keys().map(String::as_str)).into_iter().next()
    }

    fn reserved_apps(&self) -> Vec<String> {
        self.reserved.clone()
    }
}

impl ClientTools for Toolset {
    fn directory(self: Arc<Self>) -> Arc<dyn Tools> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: &str = r#"{"tools": [
        {"name": "users:get_by_id", "description": "One user", "inputSchema": {"type": "object",
            "properties": {"id": {"type": "integer"}}, "required": ["id"]}, "outputSchema": {"type": "string"}},
        {"name": "web_search"}], "reserved": ["Agent"]}"#;

    #[test]
    fn scripts_find_tools_under_all_their_names() {
        let tools = Toolset::from_json(TOOLS).expect("the tools are valid");
        let name = Some("users:get_by_id".to_owned());
        assert_eq!(
            (tools.member("users", "get_by_id"), tools.member("users", "getById")),
            (name.clone(), name.clone())
        );
        assert_eq!((tools.function("usersGetById"), tools.function("webSearch")), (name, Some("web_search".into())));
        assert_eq!(tools.positional("users:get_by_id"), Some("id".into()));
        assert_eq!(
            (tools.similar("users:get_by"), tools.similar_app("user")),
            (vec!["users:get_by_id".into()], Some("users".into()))
        );
        assert!(tools.is_reserved("agent:run") && tools.is_reserved("AGENT_run") && !tools.is_reserved("agents:run"));
        assert!(tools.describe("web_search").is_some_and(|text| text.contains(r#""appId":null"#)));
    }

    #[test]
    fn declarations_name_functions_as_scripts_call_them() {
        let tools = Toolset::from_json(TOOLS).expect("the tools are valid");
        let expected = "/** One user */\ndeclare function usersGetById(input: {\n  id: number;\n}): Promise<string>;\n\
            declare function webSearch(input: Record<string, unknown>): Promise<unknown>;\n";
        assert_eq!(tools.declarations(), expected);
    }

    #[test]
    fn mistakes_are_named() {
        let refused = |text: &str| Toolset::from_json(text).err().map_or_else(String::new, |error| error.0);
        let both = r#"{"tools": [{"name": "get_user"}, {"name": "getUser"}]}"#;
        assert!(refused(both).contains("would both be the function getUser"), "{}", refused(both));
        assert!(refused(r#"{"tools": [{"name": ""}]}"#).contains("must have a name"));
        assert!(refused(r#"{"tools": [{"name": "a", "schema": {}}]}"#).contains("unknown field `schema`"));
        assert!(refused(r#"{"tools": [{"name": "a", "inputSchema": true}]}"#).contains("must be an object"));
    }
}
