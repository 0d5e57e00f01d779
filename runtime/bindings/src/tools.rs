//! The tools of a run, given as JSON: the directory for scripts, their declarations for a model, and checks of inputs
//! against their schemas.
//!
//! It calls nothing.

use crate::error::InputError;
use agentscript::declarations::{Function, declarations, signature};
use agentscript::stateless::{ClientTools, FunctionNames, function_name};
use agentscript::{ToolError, Tools};
use codecall_schema::{Schema, SchemaError, mismatch, text, without_nulls};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Most names that are suggested.
const MAX_SIMILAR: usize = 3;
/// Longest input that is checked at once, in bytes of JSON.
const MAX_QUICK_BYTES: usize = 64 << 10;
/// Longest signature in an error, in bytes.
const MAX_SIGNATURE_BYTES: usize = 2_000;
/// The code of a call whose input does not fit.
const INVALID_INPUT: &str = "INVALID_INPUT";

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
    #[serde(default)]
    input_schema: Option<Value>,
    #[serde(default)]
    output_schema: Option<Value>,
    #[serde(default)]
    annotations: Option<Value>,
    /// Whether inputs are checked against the schema. A host that converts inputs checks them itself.
    #[serde(default = "yes")]
    check_input: bool,
    #[serde(skip)]
    compiled: OnceLock<Option<Result<Schema, SchemaError>>>,
}

fn yes() -> bool {
    true
}

/// The verdict of a check of an input.
#[derive(Debug)]
pub(crate) enum Checked {
    /// It fits. Absent: as it is.
    Fits(Option<String>),
    /// It does not fit.
    Fails(ToolError),
    /// The check takes longer than a moment, and was not made.
    Later,
}

impl Tool {
    fn schema(&self) -> Value {
        self.input_schema.clone().unwrap_or_else(|| json!({"type": "object"}))
    }

    /// The compiled schema; absent: inputs are not checked.
    fn compiled(&self, schema: &Value) -> Option<&Result<Schema, SchemaError>> {
        let compile = || match Schema::new(schema) {
            // As in the server: a text that is no schema says nothing of the input.
            Err(SchemaError::Invalid(_)) => None,
            compiled => Some(compiled),
        };
        self.compiled.get_or_init(compile).as_ref()
    }

    /// Checks an input; only what takes no longer than a moment unless `may_take_long`.
    fn check(&self, input: &str, may_take_long: bool) -> Checked {
        let Some(definition) = self.input_schema.as_ref().filter(|_| self.check_input) else {
            return Checked::Fits(None);
        };
        let is_ready = self.compiled.get().is_some() || Schema::is_small(definition);
        if !may_take_long && (input.len() > MAX_QUICK_BYTES || !is_ready) {
            return Checked::Later;
        }
        let schema = match self.compiled(definition) {
            None => return Checked::Fits(None),
            Some(Err(unusable)) => return Checked::Fails(self.unchecked(unusable)),
            Some(Ok(schema)) => schema,
        };
        let sent: Value = match serde_json::from_str(input) {
            Ok(value) => value,
            Err(error) => {
                let message = format!("The input of tool '{}' cannot be sent: {error}", self.name);
                return Checked::Fails(ToolError::new(INVALID_INPUT, message));
            }
        };
        if !may_take_long && !schema.is_quick(&sent) {
            return Checked::Later;
        }
        let mut value = sent.clone();
        without_nulls(definition, &mut value);
        match mismatch(schema, definition, &value, "input") {
            Ok(()) => Checked::Fits((value != sent).then(|| value.to_string())),
            Err(None) => Checked::Fails(self.unchecked(&SchemaError::TooComplex)),
            Err(Some(found)) => {
                let mut error =
                    ToolError::new(INVALID_INPUT, found.message(&format!("Invalid input for tool '{}'", self.name)));
                let mut details = found.details();
                let signature = signature(&self.name, definition, self.output_schema.as_ref(), None);
                details["signature"] = text::truncate(&signature, MAX_SIGNATURE_BYTES).into();
                error.details = Some(details.to_string());
                Checked::Fails(error)
            }
        }
    }

    fn unchecked(&self, why: &SchemaError) -> ToolError {
        let message = format!("The input of tool '{}' cannot be checked against its schema: {why}", self.name);
        ToolError::new(INVALID_INPUT, message)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    tools: Vec<Tool>,
    #[serde(default)]
    reserved: Vec<String>,
}

impl Toolset {
    /// Reads `{"tools": [{"name", "description"?, "inputSchema"?, "outputSchema"?, "annotations"?, "checkInput"?}],
    /// "reserved"?:
    /// ["app"]}`. A tool `users:list` belongs to the app `users`, and scripts call it as `users.list(…)` too. A call of
    /// a tool of a
    /// reserved app ends the run: an agent reserves what scripts must never reach, such as the tool that runs them.
    ///
    /// A call whose input does not fit the schema fails with `INVALID_INPUT`, and no host sees it, unless `checkInput`
    /// is false.
    ///
    /// # Errors
    /// The text has another form, two tools have one name, or two have one function name.
    pub fn from_json(text: &str) -> Result<Self, InputError> {
        let Text { tools, reserved } = serde_json::from_str(text).map_err(|error| InputError(error.to_string()))?;
        for tool in &tools {
            if tool.name.is_empty() {
                return Err(InputError("a tool must have a name".into()));
            }
            if tool.input_schema.as_ref().is_some_and(|schema| !schema.is_object()) {
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
        let any = json!({"type": "object"});
        declarations(self.tools.iter().map(|tool| Function {
            name: self.functions.function(&tool.name),
            tool: &tool.name,
            description: &tool.description,
            input: tool.input_schema.as_ref().unwrap_or(&any),
            output: tool.output_schema.as_ref(),
        }))
    }

    fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.get(*self.by_name.get(name)?)
    }

    /// Checks the input of a call; only what takes no longer than a moment unless `may_take_long`. A host answers the calls of
    /// other names.
    pub(crate) fn check_input(&self, name: &str, input: &str, may_take_long: bool) -> Checked {
        self.find(name).map_or(Checked::Fits(None), |tool| tool.check(input, may_take_long))
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
            "inputSchema": tool.schema(),
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
        let schema = self.find(tool)?.input_schema.as_ref()?;
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
        let known = self.tools.iter().map(|tool| tool.name.as_str());
        text::nearest(name, known, MAX_SIMILAR).into_iter().map(str::to_owned).collect()
    }

    fn similar_app(&self, name: &str) -> Option<String> {
        let known = self.apps.keys().map(String::as_str).chain(self.functions.functions());
        crate::nearest(name, known).map(str::to_owned)
    }

    fn reserved_apps(&self) -> Vec<String> {
        self.reserved.clone()
    }
}

impl ClientTools for Toolset {
    fn directory(self: Arc<Self>) -> Arc<dyn Tools> {
        self
    }

    fn check(&self, tool: &str, input: &str) -> Result<(), ToolError> {
        match self.check_input(tool, input, true) {
            Checked::Fits(_) | Checked::Later => Ok(()),
            Checked::Fails(error) => Err(error),
        }
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
        assert_eq!(tools.similar_app("webSerch"), Some("webSearch".into()));
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

    /// Checks an input of a tool with this schema at once.
    fn checked(schema: &str, input: &str) -> Checked {
        let tools = format!(r#"{{"tools": [{{"name": "t", "inputSchema": {schema}}}]}}"#);
        Toolset::from_json(&tools).expect("the tools are valid").check_input("t", input, false)
    }

    #[test]
    fn an_input_that_does_not_fit_says_what_to_write() {
        const SCHEMA: &str = r#"{"type": "object", "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
            "required": ["id"], "additionalProperties": false}"#;
        let failed = |input: &str| match checked(SCHEMA, input) {
            Checked::Fails(error) => error,
            other => panic!("{input}: {other:?}"),
        };
        assert!(matches!(checked(SCHEMA, r#"{"id": 1}"#), Checked::Fits(None)));
        let Checked::Fits(Some(input)) = checked(SCHEMA, r#"{"id":1,"note":null}"#) else { panic!("null is left out") };
        assert_eq!(input, r#"{"id":1}"#);
        let error = failed(r#"{"id": 1, "nte": "x"}"#);
        assert_eq!(error.code, "INVALID_INPUT");
        assert!(error.message.starts_with("Invalid input for tool 't':\n  input: "), "{}", error.message);
        assert!(error.message.ends_with("did you mean 'note'?"), "{}", error.message);
        let details = error.details.unwrap_or_default();
        assert!(
            details.contains(r#""issues":[{"path":"","#) && details.contains(r#"callTool(\"t\", input"#),
            "{details}"
        );
        assert!(failed(r#"{"ID": 1}"#).message.contains("expected id: number, instead of 'ID'"));
        assert!(failed(r#"{"id": "x"}"#).message.contains("\n  id: \"x\" is not of type \"integer\""));
    }

    #[test]
    fn inputs_are_only_checked_against_schemas() {
        // A text that is no schema, none, one of a host that checks itself, and a tool of another name.
        assert!(matches!(checked(r#"{"type": "text"}"#, "{}"), Checked::Fits(None)));
        let tools = r#"{"tools": [{"name": "none"}, {"name": "own", "inputSchema": {"required": ["id"]}, "checkInput": false}]}"#;
        let tools = Toolset::from_json(tools).expect("the tools are valid");
        for name in ["none", "own", "other"] {
            assert!(matches!(tools.check_input(name, "{}", false), Checked::Fits(None)), "{name}");
        }
    }

    #[test]
    fn a_check_that_takes_long_waits() {
        let long = format!(r#"{{"id": "{}"}}"#, "x".repeat(MAX_QUICK_BYTES));
        let schema = r#"{"properties": {"id": {"type": "integer"}}}"#;
        assert!(matches!(checked(schema, &long), Checked::Later));
        let tools = format!(r#"{{"tools": [{{"name": "t", "inputSchema": {schema}}}]}}"#);
        let tools = Toolset::from_json(&tools).expect("the tools are valid");
        assert!(matches!(tools.check_input("t", &long, true), Checked::Fails(_)));
        assert!(ClientTools::check(&tools, "t", &long).is_err());
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
