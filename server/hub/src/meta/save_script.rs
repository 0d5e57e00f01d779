//! `codecall_save_script`: stores a script as a tool, once a person has approved it.

use super::*;
use codecall_base::call::{CallContext, Caller, client};
use codecall_base::tool::{Approval, ErrorCode, OWN_SOURCE, ToolDefinition, ToolResult};
use codecall_scripts::{SavedScript, ScriptTools, StoredError};
use codecall_store::StoredCode;
use codecall_tools::pipeline::ToolCall;
use codecall_upstream::{Upstream, UpstreamCall};
use std::sync::Arc;

/// Maximum size of a script in bytes: a person reads all of it.
const MAX_SCRIPT_BYTES: usize = 16 << 10;

pub struct SaveScript;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Arguments {
    /// Letters, digits, '_' and '-'; a saved script of this name is replaced
    name: String,
    /// What it does, for those who choose it later
    description: String,
    /// The script; it reads its parameters from `params`
    script: String,
    /// JSON schema of the parameters, an object; those with a default may be left out
    parameters: Option<Members>,
    /// The tools it calls: 'users:list', or 'users:*' for an app
    tools: Option<Vec<String>>,
}

impl MetaTool for SaveScript {
    fn id(&self) -> &'static str {
        "save_script"
    }

    fn is_enabled(&self, config: &Config) -> bool {
        config.script_tools.save_scripts
    }

    fn title(&self) -> &'static str {
        "Save a script"
    }

    fn description(&self) -> &'static str {
        "Save a script that will be needed again, with parameters, as a tool. Run it with codecall_execute first. \
         A person approves it once; if that takes longer than this call, call again with the same arguments. \
         Then codecall_run_script runs it by name, and scripts can call it."
    }

    fn input_schema(&self) -> Value {
        schema::input_schema::<Arguments>()
    }

    fn output_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "status": {"enum": ["ok", "error"]},
                "tool": {"type": "string"},
                "version": {"type": "integer"},
                "error": {
                    "type": "object",
                    "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
                    "required": ["code", "message"],
                },
            },
            "required": ["status"],
        })
    }

    fn annotations(&self) -> ToolAnnotations {
        ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(false)
    }

    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let Request { hub, arguments, client, sink, cancel, .. } = request;
            let Some(tools) = hub.script_tools() else {
                return Answer::refused("There are no script tools: set 'scriptTools.stored'".into());
            };
            let (name, code) = match self.compose(tools, arguments) {
                Ok(composed) => composed,
                Err(refusal) => return Answer::refused(refusal),
            };
            let stored = tools.all().into_iter().find(|tool| tool.name == name);
            let replaces = stored.and_then(|stored| stored.version);
            // A person sees what will run, and what it replaces.
            let mut input = Map::from_iter([("name".to_owned(), name.as_str().into())]);
            input.extend(replaces.map(|version| ("replacesVersion".to_owned(), version.into())));
            input.insert("code".to_owned(), code.code.as_str().into());
            let saving = Arc::new(Saving { tools: Arc::clone(tools), name: name.clone(), code });
            let call = ToolCall {
                tool: format!("codecall:{}", self.id()),
                input,
                context: CallContext { client, ..hub.context(Caller::Direct, sink, cancel) },
                allowed: None,
                apps: None,
            };
            match hub.pipeline().call_outside(saving, call).await {
                Ok(version) => {
                    let tool = format!("{}:{name}", tools.app_id());
                    let version: Value = serde_json::from_str(&version).unwrap_or_default();
                    Answer::ok(json!({"status": "ok", "tool": tool, "version": version}))
                }
                Err(error) => error_answer(error),
            }
        })
    }
}

impl SaveScript {
    /// Returns the name and the code of the tool, checked; or why the request is refused.
    fn compose(&self, tools: &ScriptTools, arguments: Value) -> Result<(String, StoredCode), String> {
        let Arguments { name, description, script, parameters, tools: called } =
            parse(self, arguments).map_err(|invalid| invalid.0)?;
        if script.len() > MAX_SCRIPT_BYTES {
            let length = script.len();
            let advice = "a person reads all of it; a longer one is stored with 'codecall tool put'";
            return Err(format!("The script has {length} bytes, more than {MAX_SCRIPT_BYTES}: {advice}"));
        }
        let parameters = parameters.map(|parameters| Members::into_optional_map(Some(parameters))).transpose();
        let parameters =
            parameters.map_err(|problem| InvalidArguments::new(self, &format!("'parameters' {problem}")).0)?;
        let called = called.unwrap_or_default();
        let saved = SavedScript {
            name: &name,
            description: &description,
            parameters: parameters.as_ref(),
            tools: &called,
            script: &script,
        };
        let code = saved.compose(tools.app_id(), tools.policy()).map_err(StoredError::Invalid);
        let code = code.and_then(|code| tools.check(&name, &code).map(|()| code));
        match code {
            Ok(code) => Ok((name, code)),
            Err(error) => Err(codecall_base::text::truncate(&error.to_string(), MAX_PROBLEM_BYTES).to_owned()),
        }
    }
}

/// Returns the answer to a call that failed, in the shape of the output schema.
pub(super) fn error_answer(error: ToolError) -> Answer {
    let mut shown = json!({"code": error.code, "message": error.message});
    if let Some(details) = error.details.and_then(|details| serde_json::from_str::<Value>(&details).ok()) {
        shown["details"] = details;
    }
    Answer::structured(json!({"status": "error", "error": shown}), true)
}

/// The call that stores a script: a tool that needs the approval of a person.
struct Saving {
    tools: Arc<ScriptTools>,
    name: String,
    code: StoredCode,
}

impl Upstream for Saving {
    fn app(&self) -> &str {
        "codecall"
    }

    fn source(&self) -> &'static str {
        OWN_SOURCE
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        vec![Arc::new(ToolDefinition {
            app: "codecall".into(),
            name: "save_script".into(),
            description: "Stores a script as a tool".into(),
            input_schema: json!({"type": "object"}),
            source: OWN_SOURCE,
            approval: Some(Approval::Always),
            ..ToolDefinition::default()
        })]
    }

    fn call(&self, _call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            let author = client().map_or_else(|| "agent".to_owned(), |client| format!("agent {client}"));
            let stored = self.tools.put(&self.name, &self.code, &author).await;
            let version = stored.map_err(|error| ToolError::new(ErrorCode::ToolExecutionError, error.to_string()))?;
            Ok(ToolResult::Data(version.into()))
        })
    }
}
