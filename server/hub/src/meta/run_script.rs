//! `codecall_run_script`: runs a saved script, or any other script tool, by its name.

use super::*;
use codecall_base::call::{CallContext, Caller};
use codecall_base::text::truncate;
use codecall_tools::pipeline::ToolCall;

pub struct RunScript;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Arguments {
    /// Name as it was saved
    name: String,
    /// Parameters that fit its schema
    #[serde(alias = "params", alias = "input", alias = "arguments")]
    parameters: Option<Members>,
}

impl MetaTool for RunScript {
    fn id(&self) -> &'static str {
        "run_script"
    }

    fn is_enabled(&self, config: &Config) -> bool {
        config.script_tools.save_scripts
    }

    fn title(&self) -> &'static str {
        "Run a saved script"
    }

    fn description(&self) -> &'static str {
        "Run a script that codecall_save_script has saved. codecall_search finds it, codecall_describe gives its parameters. \
         Gives `{status: \"ok\", result}`, where result is `{success: true, data}` or `{success: false, error}`, \
         or `{status: \"error\", error: {code, message}}`."
    }

    fn input_schema(&self) -> Value {
        schema::input_schema::<Arguments>()
    }

    fn output_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "status": {"enum": ["ok", "error"]},
                "result": schema::any_json(),
                "truncated": execute::truncated_schema(),
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
        ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true)
    }

    fn answer<'a>(&'a self, request: Request<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let Request { hub, arguments, client, delivery, sink, cancel } = request;
            let Arguments { name, parameters } = match parse(self, arguments) {
                Ok(arguments) => arguments,
                Err(invalid) => return invalid.into(),
            };
            let input = match Members::into_optional_map(parameters) {
                Ok(input) => input,
                Err(problem) => return InvalidArguments::new(self, &format!("'parameters' {problem}")).into(),
            };
            let Some(tools) = hub.script_tools() else {
                return Answer::refused("There are no script tools: set 'scriptTools.stored'".into());
            };
            // It may be given as scripts write it.
            let app = tools.app_id();
            let name = name.strip_prefix(app).and_then(|name| name.strip_prefix(':')).unwrap_or(&name);
            if name.contains([':', '.']) {
                let name = truncate(name, MAX_NAME_BYTES);
                return Answer::refused(format!("'{name}' is no saved script; call tools in codecall_execute"));
            }
            let tool = format!("{app}:{name}");
            let call = ToolCall {
                tool: tool.clone(),
                input,
                context: CallContext { client, ..hub.context(Caller::Script, sink, cancel) },
                allowed: None,
                apps: None,
            };
            match hub.pipeline().data(call).await {
                Ok(result) => invoke::success(hub, result, &tool, delivery).await,
                Err(error) => save_script::error_answer(error),
            }
        })
    }
}
