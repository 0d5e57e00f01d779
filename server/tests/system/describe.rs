//! `codecall_describe` on the tools of real servers: signatures that are TypeScript, examples that run.

use super::support::isolated;
use agentscript::{CompileOptions, Event, Inputs, Language, Policy, Preset, Progress};
use codecall::config::Format;
use codecall::meta;
use codecall::tool::{Example, ToolDefinition, ToolError, ToolResult};
use codecall::upstream::{BoxFuture, Upstream, UpstreamCall};
use codecall::{Config, Hub};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Tools that are never called.
struct Shown {
    app: String,
    tools: Vec<Arc<ToolDefinition>>,
}

impl Upstream for Shown {
    fn app(&self) -> &str {
        &self.app
    }

    fn source(&self) -> &'static str {
        "mcp"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        self.tools.clone()
    }

    fn call(&self, _: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async { Err(ToolError::new("TOOL_EXECUTION_ERROR", "it is only shown")) })
    }
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path)
}

/// Returns the lists of tools of real servers, by app.
fn servers() -> BTreeMap<String, Vec<ToolDefinition>> {
    let files = std::fs::read_dir(here("search/tools")).expect("the lists of tools");
    let lists = files.map(|file| {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("text");
        let list: Value = serde_json::from_str(&text).expect("JSON");
        let app = list["app"].as_str().expect("an app").to_owned();
        let tools = list["tools"].as_array().expect("tools").iter().map(|tool| definition(&app, tool)).collect();
        (app, tools)
    });
    lists.collect()
}

fn definition(app: &str, tool: &Value) -> ToolDefinition {
    let text = |key: &str| tool[key].as_str().unwrap_or_default().to_owned();
    ToolDefinition {
        app: app.to_owned(),
        name: text("name"),
        description: text("description"),
        input_schema: tool["inputSchema"].clone(),
        output_schema: tool.get("outputSchema").cloned(),
        source: "mcp",
        ..ToolDefinition::default()
    }
}

fn hub(tools: Vec<ToolDefinition>) -> Arc<Hub> {
    let app = tools.first().map_or_else(String::new, |tool| tool.app.clone());
    let shown = Shown { app, tools: tools.into_iter().map(Arc::new).collect() };
    Hub::start(isolated(Config::default()), vec![Arc::new(shown)]).expect("starts")
}

async fn describe(hub: &Hub, request: Value) -> Value {
    let answer =
        meta::call(hub, "codecall_describe", request, None, CancellationToken::new()).await.expect("it is there");
    assert!(!answer.is_error, "{:?}", answer.content);
    answer.content.into_value()
}

/// Describes all tools of a server.
async fn all(tools: Vec<ToolDefinition>, format: &str) -> Vec<Value> {
    let names: Vec<String> = tools.iter().map(ToolDefinition::full_name).collect();
    let hub = hub(tools);
    let mut described = Vec::new();
    for names in names.chunks(100) {
        let answer = describe(&hub, json!({"toolNames": names, "max": 100, "format": format})).await;
        assert!(answer.get("notFound").is_none(), "{answer}");
        described.extend(answer["tools"].as_array().expect("a list").iter().cloned());
    }
    described
}

/// `UPDATE=1` writes the files.
#[tokio::test]
async fn signatures_of_real_servers() {
    let servers = servers();
    assert!(servers.len() >= 5);
    for (app, tools) in servers {
        let length = |schema: &Value| schema.to_string().len();
        let schemas: usize =
            tools.iter().map(|tool| length(&tool.input_schema) + tool.output_schema.as_ref().map_or(0, length)).sum();
        let mut text = String::new();
        for tool in all(tools, "typescript").await {
            let signature = tool["signature"].as_str().expect("a signature");
            assert!(signature.len() <= 8_500, "{}: {}", tool["name"], signature.len());
            assert!(tool.get("inputSchema").is_none() && tool.get("outputSchema").is_none());
            let typed = as_declarations(signature);
            let options = CompileOptions { language: Some(Language::TypeScript), ..CompileOptions::default() };
            if let Err(error) = agentscript::compile(&typed, &options) {
                panic!("{}: {}\n{typed}", tool["name"], error.failure.message);
            }
            text.push_str(signature);
            text.push_str("\n\n");
        }
        assert!(text.len() < schemas + 200, "{app}: {} for {schemas}", text.len());
        let file = here("describe").join(format!("{app}.txt"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(here("describe")).expect("a folder");
            std::fs::write(&file, &text).expect("a file");
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(kept == text, "{} is not up to date: UPDATE=1 writes it", file.display());
    }
}

/// Returns the signature in the form of a TypeScript declaration.
fn as_declarations(signature: &str) -> String {
    let (call, types) = signature.split_once("\ntype ").map_or((signature, None), |(call, types)| (call, Some(types)));
    let (_, call) = call.split_once(", ").expect("a name before the input");
    let types = types.map(|types| format!("type {types}\n")).unwrap_or_default();
    format!("{types}async function call({call} {{ return null; }}")
}

/// Returns the inputs with which a script calls a tool. The result of every call is `null`.
fn calls(code: &str) -> Vec<(String, Value)> {
    let policy = Policy::preset(Preset::Secure);
    let script = agentscript::compile(code, &CompileOptions::for_policy(&policy)).unwrap_or_else(|error| {
        panic!("{}\n{code}", error.failure.message);
    });
    let mut run = script.start(Inputs::default(), &policy);
    let (mut made, mut events) = (Vec::new(), Vec::new());
    loop {
        match run.resume(std::mem::take(&mut events)) {
            Progress::Yielded => {}
            Progress::Calls(calls) => {
                for call in calls {
                    made.push((call.tool, serde_json::from_str(&call.input).expect("JSON")));
                    events.push(Event::Settled { id: call.id, result: Ok("null".into()) });
                }
            }
            Progress::Done(outcome) => {
                assert!(outcome.result.is_ok(), "{}\n{code}", outcome.to_json());
                return made;
            }
        }
    }
}

/// Every tool of every server has examples. Each of them runs, and calls the tool with inputs that fit its schema.
#[tokio::test]
async fn examples_of_real_servers() {
    let (mut tools, mut without) = (0, Vec::new());
    for (app, list) in servers() {
        for tool in all(list, "json_schema").await {
            tools += 1;
            let (name, schema) = (tool["name"].as_str().expect("a name"), &tool["inputSchema"]);
            assert_eq!(tool["appId"], app.as_str());
            let validator = jsonschema::options().build(schema);
            let examples = tool["usageExamples"].as_array().expect("a list");
            assert!(examples.len() <= 5);
            if examples.is_empty() {
                without.push(name.to_owned());
            }
            for example in examples {
                let code = example["code"].as_str().expect("code");
                assert!(example["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}");
                let made = calls(code);
                assert!(!made.is_empty(), "{name}\n{code}");
                for (called, input) in made {
                    assert_eq!(called, name);
                    if let Ok(validator) = &validator {
                        let problem = validator.iter_errors(&input).next().map(|error| error.to_string());
                        assert_eq!(problem, None, "{name}\n{code}");
                    }
                }
            }
        }
    }
    assert!(tools > 200, "{tools}");
    assert_eq!(without, Vec::<String>::new());
}

/// Examples of the author come first, if they are valid. There are never more than
/// five.
#[tokio::test]
async fn examples_of_the_author() {
    let with_schema = async |schema: Value, codes: &[&str]| {
        let example = |code: &&str| Example { description: format!("runs {code}"), code: (*code).to_owned() };
        let tool = ToolDefinition {
            examples: codes.iter().map(example).collect(),
            ..definition("users", &json!({"name": "get", "inputSchema": schema}))
        };
        let described = all(vec![tool], "json_schema").await;
        let examples = described[0]["usageExamples"].as_array().expect("a list").clone();
        examples.iter().map(|example| example["code"].as_str().expect("code").to_owned()).collect::<Vec<_>>()
    };
    let id = json!({
        "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"], "additionalProperties": false,
    });
    let fit = [
        "await users.get({ id: 1 }); return await callTool('users:none', {})",
        // The result of the tool is not known, so the inputs of later calls are not checked.
        "const { next } = await users.get({ id: 1 }); return await users.get({ id: next })",
    ];
    let misfits = [
        "return await callTool('users:get', { id: 'x' })",
        "return await users.get({ id: 1, more: 2 })",
        "return await parallel([1], () => users.get({}))",
    ];
    let examples = with_schema(id, &[misfits[0], fit[0], misfits[1], misfits[2], fit[1]]).await;
    assert_eq!(examples[..2], fit);
    assert!(examples[2].contains("callTool(\"users:get\", { id: "), "the rest is generated: {examples:?}");
    let with = async |codes: &[&str]| with_schema(json!({"type": "object"}), codes).await;
    let generated = "const result = await callTool(\"users:get\", {});\nreturn result;";
    assert_eq!(with(&["return 1", "return (", "eval('2')", "return 3"]).await, ["return 1", "return 3", generated]);
    assert_eq!(with(&["1", "2", "3", "4", "5", "6"]).await, ["1", "2", "3", "4", "5"]);
}

/// An example of a server or of the configuration may be one call and its result.
#[tokio::test]
async fn examples_are_scripts_or_calls() {
    let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
    let given = json!([
        {"input": {"id": 1}, "output": {"name": "Ada"}},
        {"description": "A misfit", "input": {"id": "x"}},
        {"description": "Of the server", "code": "return await callTool('users:get', { id: 2 })"},
    ]);
    let tool = json!({"name": "get", "inputSchema": schema, "_meta": {"codecall": {"examples": given}}});
    let tool = codecall::upstream::mcp::definition("users", serde_json::from_value(tool).expect("a tool"));
    let described = async |metadata: Value| {
        let config = json!({"tools": {"users:get": metadata}}).to_string();
        let config = Config::parse(&config, Format::Json, &|_| None).expect("a configuration");
        let upstream: Arc<dyn Upstream> = Arc::new(Shown { app: "users".into(), tools: vec![Arc::new(tool.clone())] });
        let hub = Hub::start(config, vec![upstream]).expect("starts");
        let name = hub.catalogue().snapshot().rows()[0].name.clone();
        let answer = describe(&hub, json!({"toolNames": [name]})).await;
        let examples = answer["tools"][0]["usageExamples"].as_array().expect("a list").clone();
        let pair = |example: &Value| [example["description"].clone(), example["code"].clone()];
        examples.iter().take(3).map(pair).collect::<Vec<_>>()
    };
    let call = |name: &str| format!("return await callTool('{name}', {{\"id\":1}}); // gives {{\"name\":\"Ada\"}}");
    let own = [json!("Of the server"), json!("return await callTool('users:get', { id: 2 })")];
    let plain = described(json!({})).await;
    assert_eq!(plain[..2], [[json!("Call users:get"), json!(call("users:get"))], own]);
    let metadata = json!({"appId": "crm", "examples": [{"description": "First", "input": {"id": 3}, "output": [1]}]});
    let moved = described(metadata).await;
    let first = "return await callTool('crm:get', {\"id\":3}); // gives [1]";
    assert_eq!(moved[0], [json!("First"), json!(first)]);
    assert_eq!(moved[1], [json!("Call users:get"), json!(call("crm:get"))], "its own examples have its new name");
    for (example, problem) in [
        (json!({"code": "1", "input": {}}), "tools.a.examples[1]: give either 'code' or 'input'"),
        (json!({"description": "x"}), "tools.a.examples[1]: give either 'code' or 'input'"),
        (json!({"description": "x", "code": "1", "output": 1}), "tools.a.examples[1]: 'output' belongs to 'input'"),
        (json!({"code": "1"}), "tools.a.examples[1]: an example with 'code' needs 'description'"),
        (json!({"input": 1}), "tools.a.examples[1].input: wrong value"),
    ] {
        let config = json!({"tools": {"a": {"examples": [{"input": {}}, example]}}}).to_string();
        let refused = Config::parse(&config, Format::Json, &|_| None).expect_err(problem);
        assert!(refused.contains(problem), "{refused}");
    }
}

/// The text for a model has each type of results once, and says what to do if nothing is known of a result.
#[tokio::test]
async fn types_are_not_repeated_and_unknown_results_are_named() {
    let names = ["id", "name", "email", "created_at", "updated_at", "status", "team", "role", "phone", "city"];
    let properties: Value = names
        .iter()
        .map(|name| ((*name).to_owned(), json!({"type": "string"})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let tool = |name: &str, output: Option<&Value>| {
        let mut tool = json!({"name": name, "inputSchema": {"type": "object"}});
        if let Some(output) = output {
            tool["outputSchema"] = output.clone();
        }
        definition("users", &tool)
    };
    let output = json!({"type": "object", "properties": properties});
    let hub = hub(vec![tool("get", Some(&output)), tool("find", Some(&output)), tool("list", None)]);
    let request = json!({"toolNames": ["users:get", "users:find", "users:list"]});
    let answer =
        meta::call(&hub, "codecall_describe", request, None, CancellationToken::new()).await.expect("it is there");
    let text = answer.text.expect("a text");
    assert_eq!(text.matches("created_at").count(), 1, "{text}");
    assert!(text.contains("of the type that callTool('users:get') has"), "{text}");
    let unknown = "The shape of its result is unknown. Look at a part of one first: \
                   return JSON.stringify(await callTool(\"users:list\", {…})).slice(0, 1500)";
    assert_eq!(text.matches(unknown).count(), 1, "{text}");
    let tools = answer.content.into_value()["tools"].clone();
    assert_eq!((tools[2]["note"].as_str(), &tools[0]["note"]), (Some(unknown), &Value::Null));
}

#[tokio::test]
async fn names_that_are_not_found() {
    let tool = |name: &str| definition("users", &json!({"name": name, "inputSchema": {"type": "object"}}));
    let hub = hub(vec![tool("get"), tool("list"), tool("list_roles")]);
    let answer = describe(&hub, json!({"tools": ["users:gte", "users:list", "nothing:alike", "codecall:execute", "codecall_search", "codecall.invoke", "CodeCall:describe"]})).await;
    assert_eq!(answer["tools"].as_array().map(Vec::len), Some(1));
    let not_found =
        ["users:gte", "nothing:alike", "codecall:execute", "codecall_search", "codecall.invoke", "CodeCall:describe"];
    assert_eq!(answer["notFound"], json!(not_found));
    assert_eq!(answer["warnings"], json!(["There is no tool 'users:gte'; did you mean 'users:get'?"]));
}
