//! The tools of a client, parsed from its requests.

use agentscript::stateless::{ClientTools, FunctionNames, NameClash};
use agentscript::{ToolError, Tools};
use codecall_base::schema::{self, Schema, without_nulls};
use codecall_base::text::nearest;
use codecall_base::tool::{ErrorCode, ToolDescription, ToolDirectory, ToolLookups, ToolNames};
use codecall_tools::pipeline::check;
use codecall_tools::typescript;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};

/// Maximum number of tools in a request.
const MAX_TOOLS: usize = 2_000;

/// The tools of a client, in the order of its list.
pub struct ClientToolset {
    tools: Vec<Arc<ClientTool>>,
    names: FunctionNames,
    lenient_input: bool,
    directory: OnceLock<Arc<ToolDirectory>>,
}

/// A tool of a client.
pub struct ClientTool {
    /// The name.
    pub name: String,
    /// The description; empty if it has none.
    pub description: String,
    /// JSON schema of the input.
    pub input_schema: Value,
    /// JSON schema of the result.
    pub output_schema: Option<Value>,
    schema: OnceLock<Option<Schema>>,
}

/// Why a list of tools is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolsError {
    /// An entry has neither of the known formats.
    #[error(
        "tools[{0}]: expected {{type: \"function\", function: {{name, description?, parameters?}}}} or {{name, description?, inputSchema?, outputSchema?}}"
    )]
    Shape(usize),
    /// A schema is not an object.
    #[error("tools[{0}]: the schema must be an object")]
    Schema(usize),
    /// There are too many tools.
    #[error("{0} tools are more than the {MAX_TOOLS} that one request may have")]
    TooMany(usize),
    /// Two tools would have the same function name.
    #[error(transparent)]
    Clash(#[from] NameClash),
}

impl ClientToolset {
    /// Parses a list of tools in the format of chat completions or of MCP.
    ///
    /// # Errors
    /// An entry is not a tool, or two tools would have the same function name.
    pub fn read(list: &[Value]) -> Result<Self, ToolsError> {
        if list.len() > MAX_TOOLS {
            return Err(ToolsError::TooMany(list.len()));
        }
        let tools = list.iter().enumerate().map(|(at, entry)| parse_tool(at, entry).map(Arc::new));
        let tools = tools.collect::<Result<Vec<_>, _>>()?;
        let names = FunctionNames::new(tools.iter().map(|tool| tool.name.as_str()))?;
        Ok(Self { tools, names, lenient_input: true, directory: OnceLock::new() })
    }

    /// Sets whether a check ignores `null` for an optional property that cannot be `null`; the default is `true`. The
    /// client gets the input as the script has written it.
    #[must_use]
    pub fn with_lenient_input(self, lenient_input: bool) -> Self {
        Self { lenient_input, ..self }
    }

    /// Returns the tools.
    #[must_use]
    pub fn tools(&self) -> &[Arc<ClientTool>] {
        &self.tools
    }

    /// Returns the function names of the tools.
    #[must_use]
    pub fn names(&self) -> &FunctionNames {
        &self.names
    }

    /// Returns TypeScript declarations of all functions, for a model.
    #[must_use]
    pub fn declarations(&self) -> String {
        typescript::declarations(self.tools.iter().map(|tool| typescript::Function {
            name: self.names.function(&tool.name),
            tool: &tool.name,
            description: &tool.description,
            input: &tool.input_schema,
            output: tool.output_schema.as_ref(),
        }))
    }

    /// Returns what a script can look up: tools by name and by function. It is made once.
    #[must_use]
    pub fn tool_directory(&self) -> &Arc<ToolDirectory> {
        self.directory.get_or_init(|| {
            let mut names = ToolNames::default();
            let mut answers = ToolLookups::default();
            for entry in &self.tools {
                names.add(entry.name.as_str());
                if let Some(property) = entry.positional() {
                    answers.positional.insert(entry.name.as_str().into(), property.into());
                }
            }
            for function in self.names.functions() {
                let Some(tool) = self.names.tool(function) else { continue };
                if let Some(index) = names.get(tool) {
                    names.add_spelling(index, function);
                }
                answers.functions.insert(function.into(), tool.into());
            }
            let describe = |tool: &Arc<ClientTool>| {
                let tool = Arc::clone(tool);
                Arc::new(ToolDescription::new(move || tool.described().to_string()))
            };
            let descriptions = self.tools.iter().map(describe).collect();
            Arc::new(ToolDirectory::new(names, descriptions).with_answers(answers))
        })
    }

    fn find(&self, name: &str) -> Option<&ClientTool> {
        self.tools.iter().find(|tool| tool.name == name).map(|tool| &**tool)
    }
}

fn parse_tool(at: usize, entry: &Value) -> Result<ClientTool, ToolsError> {
    let members = entry.as_object().ok_or(ToolsError::Shape(at))?;
    let members = match members.get("function") {
        Some(function) => function.as_object().ok_or(ToolsError::Shape(at))?,
        None => members,
    };
    let name =
        members.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()).ok_or(ToolsError::Shape(at))?;
    let schema = |keys: &[&str]| -> Result<Option<Value>, ToolsError> {
        match keys.iter().find_map(|key| members.get(*key)) {
            None | Some(Value::Null) => Ok(None),
            Some(schema @ Value::Object(_)) => Ok(Some(schema.clone())),
            Some(_) => Err(ToolsError::Schema(at)),
        }
    };
    Ok(ClientTool {
        name: name.to_owned(),
        description: members.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
        input_schema: schema(&["parameters", "inputSchema", "input_schema"])?
            .unwrap_or_else(|| json!({"type": "object"})),
        output_schema: schema(&["outputSchema", "output_schema"])?,
        schema: OnceLock::new(),
    })
}

impl ClientTool {
    /// Returns the property that a plain argument is assigned to: the only required one, or the only one.
    fn positional(&self) -> Option<&str> {
        let names = |key: &str| -> Vec<&str> {
            match &self.input_schema[key] {
                Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
                Value::Object(members) => members.keys().map(String::as_str).collect(),
                _ => Vec::new(),
            }
        };
        match (names("required").as_slice(), names("properties").as_slice()) {
            ([only], _) | ([], [only]) => Some(*only),
            _ => None,
        }
    }

    /// Returns what `getTool` returns.
    fn described(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input_schema,
            "outputSchema": self.output_schema,
        })
    }

    fn schema(&self) -> Option<&Schema> {
        // An invalid or too complex schema is not checked: the client's tool checks its input itself.
        self.schema.get_or_init(|| schema::compile(&self.input_schema).ok()).as_ref()
    }
}

impl ClientTools for ClientToolset {
    fn directory(self: Arc<Self>) -> Arc<dyn Tools> {
        Arc::<ToolDirectory>::clone(self.tool_directory())
    }

    fn check(&self, tool: &str, input: &str) -> Result<(), ToolError> {
        let Some(entry) = self.find(tool) else {
            let near = nearest(tool, self.tools.iter().map(|tool| tool.name.as_str()), 1);
            let hint = near.first().map_or_else(String::new, |near| format!(". Did you mean '{near}'?"));
            return Err(ToolError::new(ErrorCode::ToolNotFound, format!("Tool '{tool}' not found{hint}")));
        };
        let mut input: Value = serde_json::from_str(input).map_err(|error| {
            ToolError::new(ErrorCode::InvalidInput, format!("The input of tool '{tool}' cannot be sent: {error}"))
        })?;
        let Some(schema) = entry.schema() else { return Ok(()) };
        if self.lenient_input {
            without_nulls(&entry.input_schema, &mut input);
        }
        check::fits(schema, &entry.input_schema, tool, &input)
    }
}
