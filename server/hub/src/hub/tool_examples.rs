//! Runs the examples of a script tool against the recorded answers of its manifest: no other tool is called, and no request is
//! sent.

use super::{Extensions, Hub};
use codecall_base::call::Caller;
use codecall_base::error::Error;
use codecall_base::json as text;
use codecall_base::tool::ToolResult;
use codecall_config::Config;
use codecall_scripts::{Answer, Example, ScriptTool, ScriptTools};
use codecall_tools::pipeline::ToolCall;
use codecall_upstream::Upstream;
use codecall_upstream::fetch::Fetcher;
use codecall_upstream::fixture::Fixture;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The result of an example.
#[derive(Clone, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExampleResult {
    /// The description of the example, or its position from 1.
    pub example: String,
    /// Whether the tool has returned what the example expects.
    pub passed: bool,
    /// The result of the tool.
    pub result: Value,
    /// The difference; `None`: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Runs all examples of a tool, one after the other, with the limits of a configuration.
///
/// # Errors
/// The recorded answers are not valid.
pub async fn run_examples(config: &Config, tool: &Arc<ScriptTool>) -> Result<Vec<ExampleResult>, Error> {
    let mut results = Vec::new();
    for (at, example) in tool.manifest.examples.iter().enumerate() {
        let name = match example.description.as_str() {
            "" => format!("example {}", at + 1),
            description => description.to_owned(),
        };
        let result = run(config, tool, example).await?;
        let problem = difference(example, &result);
        results.push(ExampleResult { example: name, passed: problem.is_none(), result, problem });
    }
    Ok(results)
}

async fn run(config: &Config, tool: &Arc<ScriptTool>, example: &Example) -> Result<Value, Error> {
    let own = Config {
        policy: config.policy.clone(),
        isolation: config.isolation.clone(),
        lenient_input: config.lenient_input,
        fetch: config.fetch,
        ..Config::default()
    };
    let fixture = fixture(&example.answers)?;
    let secrets = Arc::new(example.secrets.clone());
    let scripts = ScriptTools::of_tool(Arc::clone(tool), own.policy.clone(), secrets, Arc::clone(&own.secrets));
    let mut upstreams = fixture.upstreams();
    upstreams.push(Arc::clone(&scripts) as Arc<dyn Upstream>);
    let fetcher = Some(Fetcher::recorded(own.fetch, example.responses.clone()));
    let hub = Hub::start_with(own, Extensions { upstreams, fetcher, ..Extensions::default() })?;
    scripts.set_runs(hub.runs());
    let result =
        hub.call_script_tool(&tool.definition.full_name(), example.params.clone(), CancellationToken::new()).await;
    hub.close().await;
    Ok(result)
}

/// Returns the recorded answers as mock tools.
fn fixture(answers: &[Answer]) -> Result<Fixture, Error> {
    let mut tools: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for Answer { tool, input, output, error, times } in answers {
        let mut response = json!({"input": input, "times": times});
        match error {
            Some(error) => response["error"] = json!({"message": error.message, "code": error.code}),
            None => response["output"] = output.clone().unwrap_or_default(),
        }
        tools.entry(tool).or_default().push(response);
    }
    let tools: Vec<Value> =
        tools.into_iter().map(|(name, responses)| json!({"name": name, "responses": responses})).collect();
    let text = json!({"tools": tools}).to_string();
    Fixture::parse(text.as_bytes()).map_err(|problem| Error::Config(format!("recorded answers{problem}")))
}

/// Returns what is different from what an example expects.
fn difference(example: &Example, result: &Value) -> Option<String> {
    let succeeded = result["success"] == true;
    match (&example.data, &example.error) {
        (_, Some(error)) if succeeded => Some(format!("it succeeds, instead of the error: {error}")),
        (_, Some(error)) => {
            let is_equal = result["error"].as_str().is_some_and(|given| given == error);
            (!is_equal).then(|| format!("the error is {}, instead of: {error}", result["error"]))
        }
        (_, None) if !succeeded => Some(format!("it fails: {}", result["error"])),
        (Some(data), None) => {
            (*data != result["data"]).then(|| format!("data is {}, instead of {data}", result["data"]))
        }
        (None, None) => None,
    }
}

impl Hub {
    /// Calls a script tool, whether or not tools may be called without a script: for the operator. Returns its result as
    /// `{success, …}`, also where the call is refused.
    pub async fn call_script_tool(&self, name: &str, params: Map<String, Value>, cancel: CancellationToken) -> Value {
        let call = ToolCall {
            tool: name.to_owned(),
            input: params,
            context: self.context(Caller::Script, None, cancel),
            allowed: None,
            apps: None,
        };
        match self.pipeline.call(call).await {
            Ok(ToolResult::Data(data)) => data,
            Ok(ToolResult::Long(long)) => text::parse(&long.to_data(false)).unwrap_or_default(),
            Ok(ToolResult::Mcp(mut result)) => result["structuredContent"].take(),
            Err(error) => json!({"success": false, "error": error.message, "code": error.code}),
        }
    }
}
