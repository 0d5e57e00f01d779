use super::*;
use codecall_config::Config;
use codecall_upstream::inline::Inline;
use std::sync::Arc;

fn hub(config: Config) -> Arc<Hub> {
    let schema = || json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
    let echo = Inline::echo(&[
        ("users", "get", "Get a user", schema()),
        ("users", "list", "List users", json!({"type": "object"})),
        ("mail", "fail", "Fail", json!({})),
    ]);
    Hub::start(config, vec![Arc::new(echo)]).expect("starts")
}

/// An answer with its content as one value.
struct Answered {
    value: Value,
    is_error: bool,
    meta: Option<Map<String, Value>>,
}

impl From<Answer> for Answered {
    fn from(Answer { content, is_error, meta, .. }: Answer) -> Self {
        Self { value: content.into_value(), is_error, meta }
    }
}

async fn ask(name: &str, arguments: Value) -> Answered {
    let hub = hub(Config::default());
    call(&hub, name, arguments, None, CancellationToken::new()).await.expect("there is such a tool").into()
}

/// Clients refuse an answer that its schema does not allow.
#[tokio::test]
async fn what_describe_gives_fits_its_schema() {
    let schema = codecall_base::schema::Schema::new(&describe::Describe.output_schema()).expect("a schema");
    for format in ["typescript", "json_schema"] {
        let names = ["users:get", "users:list", "mail:fail", "none"];
        let described = ask("codecall_describe", json!({"toolNames": names, "format": format})).await;
        assert!(schema.fits(&described.value), "{}", described.value);
        assert_eq!(described.value["tools"].as_array().map(Vec::len), Some(3));
    }
}

#[test]
fn descriptions_are_short() {
    let lengths: Vec<usize> = ALL.iter().map(|tool| tool.description().len()).collect();
    assert!(lengths.iter().all(|length| *length < 2_048), "{lengths:?}");
    let (config, offer) = (Config::default(), Offer::code());
    let listed: Vec<Value> = listed(&config, &offer).map(listed_json).collect();
    assert_eq!(listed.len(), 4);
    let tokens = codecall_tools::tokens::estimate(&Value::from(listed).to_string());
    assert!(tokens <= 400, "{tokens}");
}

/// Clients have these names in their prompts and their code. Those with `?` are optional.
#[test]
fn arguments_keep_their_names() {
    for (id, expected) in [
        ("search", "query? queries? topK? filter? offset? excludeToolNames? minScore?"),
        ("describe", "toolNames? tools? max? format?"),
        (
            "execute",
            "script? tool? input? context? allowedTools? language? limits? dryRun? idempotencyKey? handle? offset? limit?",
        ),
        ("invoke", "tool input"),
        ("code_execution", "code language? input? options?"),
        ("step", "code tools? token? results? id? messages? language? context? limits? startedAt?"),
    ] {
        let schema = find(&format!("codecall:{id}")).expect("a meta-tool").input_schema();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let names = schema["properties"].as_object().expect("properties").keys();
        let names = names.map(|name| if required.contains(&json!(name)) { name.clone() } else { format!("{name}?") });
        assert_eq!(names.collect::<Vec<_>>().join(" "), expected, "{id}");
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)), "{id}");
    }
}

/// Some clients refuse a whole list of tools for one keyword that they do not know.
#[test]
fn schemas_of_arguments_only_have_common_keywords() {
    const COMMON: [&str; 12] = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "description",
        "default",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
    ];
    fn check(schema: &Value) {
        for (key, value) in schema.as_object().expect("a schema that is no boolean") {
            assert!(COMMON.contains(&key.as_str()), "{key} in {schema}");
            match key.as_str() {
                "type" => assert!(value.is_string(), "{schema}"),
                "properties" => value.as_object().expect("properties").values().for_each(check),
                "items" => check(value),
                _ => {}
            }
        }
    }
    for tool in ALL {
        check(&tool.input_schema());
    }
    let search = search::Search.input_schema();
    assert_eq!(
        search["properties"]["topK"],
        json!({"type": "integer", "minimum": 1, "maximum": 50, "description": "How many tools at most (default 8)"})
    );
    assert_eq!(
        search["properties"]["filter"]["properties"]["tags"],
        json!({"type": "array", "items": {"type": "string"}, "description": "Only tools with one of these tags"})
    );
    assert_eq!(describe::Describe.input_schema()["properties"]["format"]["enum"], json!(["json_schema", "typescript"]));
    assert_eq!(execute::Execute.input_schema()["properties"]["context"]["type"], "object");
    let code = code_execution::CodeExecution.input_schema();
    assert_eq!(
        (&code["properties"]["language"]["default"], &code["properties"]["input"]["default"]),
        (&json!("javascript"), &json!({}))
    );
    assert_eq!(code["properties"]["options"]["properties"]["timeout_ms"]["maximum"], 600_000);
}

#[test]
fn declarations_of_long_schemas_take_linear_time() {
    let choices: Vec<String> = (0..50_000).map(|at| format!("choice {at}")).collect();
    // All have the same type name, and two properties refer to each.
    let name = |at: usize| format!("a{}", format!("{at:b}").replace('0', "-").replace('1', "."));
    let types: Map<String, Value> =
        (0..10_000).map(|at| (name(at), json!({"properties": {"id": {"const": at}}}))).collect();
    let uses: Vec<Value> = (0..20_000).map(|at| json!({"$ref": format!("#/$defs/{}", name(at / 2))})).collect();
    let began = cpu_time::ThreadTime::now();
    let one = json!({"properties": {"a": {"enum": choices}}});
    assert!(typescript::type_of(&one, &one).contains("\"choice 49999\""));
    let many = json!({"$defs": types, "properties": {"a": {"anyOf": uses}}});
    let function = typescript::Function { name: None, tool: "a", description: "", input: &many, output: None };
    let declared = typescript::declarations([function].into_iter());
    assert!(declared.contains("type A = ") && declared.contains("type A10000 = "), "{}", &declared[..1_000]);
    assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn three_spellings() {
    for name in ["codecall:search", "codecall.search", "codecall_search"] {
        assert!(find(name).is_some(), "{name}");
    }
    for name in ["search", "codecall", "codecall__search", "codecall_find"] {
        assert!(find(name).is_none(), "{name}");
    }
}

#[tokio::test]
async fn search() {
    let answer = ask("codecall_search", json!({"queries": ["list users", "get user"], "topK": 2})).await;
    assert!(!answer.is_error);
    assert_eq!(answer.value["totalIndexed"], 3);
    let tools = answer.value["tools"].as_array().expect("a list");
    assert_eq!(tools.len(), 2);
    assert_eq!(
        tools[0].as_object().expect("a row").keys().collect::<Vec<_>>(),
        ["name", "appId", "source", "description", "score", "matchedQueries"]
    );
    let answer = ask("codecall.search", json!({"query": "users", "filter": {"appIds": ["user"]}})).await;
    assert_eq!(answer.value["warnings"][0], "There is no app 'user'; did you mean 'users'?");
}

#[tokio::test]
async fn describe() {
    let answer = ask(
        "codecall_describe",
        json!({"toolNames": ["users.get", "users:nope", "codecall:execute"], "format": "json_schema"}),
    )
    .await;
    let tool = &answer.value["tools"][0];
    assert_eq!(
        tool.as_object().expect("a row").keys().collect::<Vec<_>>(),
        ["name", "appId", "description", "inputSchema", "annotations", "usageExamples"]
    );
    assert_eq!(answer.value["notFound"], json!(["users:nope", "codecall:execute"]));
    let answer = ask("codecall_describe", json!({"tools": "users:get"})).await;
    assert_eq!(
        answer.value["tools"][0]["signature"],
        "callTool(\"users:get\", input: {\n  id: number;\n}): Promise<unknown>"
    );
}

#[tokio::test]
async fn invoke() {
    let answer = ask("codecall_invoke", json!({"tool": "users:get", "input": {"id": 3}})).await;
    assert_eq!((answer.value, answer.is_error), (json!({"status": "ok", "result": {"id": 3}}), false));
    let answer = ask("codecall_invoke", json!({"tool": "users:get", "input": {}})).await;
    assert_eq!(answer.value["error"]["code"], "INVALID_INPUT");
    assert!(answer.is_error);
    // Names that other servers have for the same arguments, and input as text.
    for arguments in
        [json!({"toolName": "users:get", "arguments": {"id": 3}}), json!({"name": "users:get", "input": "{\"id\": 3}"})]
    {
        assert_eq!(ask("codecall_invoke", arguments).await.value["result"], json!({"id": 3}));
    }
    assert_eq!(ask("codecall_invoke", json!({"tool": "users:list"})).await.value["result"], json!({}));
    let mut config = Config::default();
    config.direct_calls.enabled = false;
    assert!(call(&hub(config), "codecall_invoke", json!({}), None, CancellationToken::new()).await.is_none());
}

#[tokio::test]
async fn execute() {
    let answer = ask("codecall:execute", json!({"script": "return null", "context": "{\"a\": 1}"})).await;
    assert_eq!(answer.value, json!({"status": "ok", "result": null}));
    assert!(answer.meta.expect("statistics")["codecall/stats"]["durationMs"].is_number());
}

#[tokio::test]
async fn what_a_result_loses_is_named() {
    let script = "return { by: new Map([['a', NaN]]), tags: new Set([1]), f: () => 1 }";
    let answer = ask("codecall:execute", json!({"script": script})).await;
    let warnings = json!(["result.by.a: NaN is written as null", "result.f: a function is left out"]);
    let expected = json!({"status": "ok", "result": {"by": {"a": null}, "tags": [1]}, "warnings": warnings});
    assert_eq!(answer.value, expected);
}

#[tokio::test]
async fn invalid_arguments_are_refused_with_what_is_expected() {
    for (name, arguments, expected) in [
        ("codecall_search", json!({"q": "x"}), "Invalid arguments: unknown key 'q'"),
        (
            "codecall_search",
            json!({}),
            "Invalid arguments: 'query' is missing; without it, 'filter.appIds' must say whose tools to list. Expected { query?: string, queries?: string[], topK?: number",
        ),
        ("codecall_search", json!({"query": "x", "topK": 99}), "Invalid arguments: 'topK' must be from 1 to 50"),
        ("codecall_search", json!({"query": 3}), "Invalid arguments: 'query': wrong value, expected a string"),
        ("codecall_describe", json!({}), "Invalid arguments: 'toolNames' is missing"),
        ("codecall_execute", json!({"script": "x", "context": [1]}), "Invalid arguments: 'context' must be an object"),
        ("codecall_execute", json!({"code": "x"}), "Invalid arguments: unknown key 'code'"),
        (
            "codecall_execute",
            json!({"script": "x", "limits": {"timeout": 1}}),
            "Invalid arguments: limits: unknown key 'timeout'; did you mean 'timeoutMs'?",
        ),
        ("codecall_invoke", json!({"tool": "x", "input": 1}), "Invalid arguments: 'input' must be an object"),
    ] {
        let answer = ask(name, arguments).await;
        let text = answer.value.as_str().expect("a text");
        assert!(answer.is_error && text.starts_with(expected), "{text}");
    }
}

/// Starts a hub with a limit of the result that a client gets.
fn hub_with_max_result_bytes(bytes: u64, store: codecall_config::ResultStore) -> Arc<Hub> {
    let mut config = Config { result_store: store, ..Config::default() };
    config.policy.limits.max_result_bytes = bytes;
    hub(config)
}

async fn execute_with(hub: &Hub, arguments: Value) -> Answered {
    let answer = call(hub, "codecall_execute", arguments, None, CancellationToken::new()).await;
    answer.expect("there is such a tool").into()
}

#[tokio::test]
async fn a_result_that_is_too_long_is_read_in_pieces() {
    let hub = hub_with_max_result_bytes(1_000, codecall_config::ResultStore::default());
    let script = "return Array.from({ length: 500 }, (_, i) => ({ id: i, text: 'é\\n' }))";
    let answer = execute_with(&hub, json!({"script": script})).await;
    assert!(!answer.is_error);
    assert_eq!(answer.value["status"], "ok");
    let truncated = answer.value["truncated"].clone();
    let bytes = truncated["bytes"].as_u64().expect("a length");
    let first = answer.value["result"].as_str().expect("a text");
    let (mut whole, marker) =
        first.split_once("\n… [cut: ").map(|(text, rest)| (text.to_owned(), rest)).expect("a marker");
    assert!(
        marker
            .starts_with(&format!("these are bytes 0 to {} of {bytes}. Read on with codecall_execute {{", whole.len()))
    );
    assert!(serde_json::to_string(&whole).expect("JSON").len() <= 1_002);
    let mut next = truncated["next"].clone();
    while !next.is_null() {
        let answer = execute_with(&hub, json!({"handle": truncated["handle"], "offset": next})).await;
        assert_eq!((&answer.value["status"], &answer.value["truncated"]["bytes"]), (&json!("ok"), &json!(bytes)));
        let piece = answer.value["result"].as_str().expect("a text");
        whole.push_str(piece.split_once("\n… [cut: ").map_or(piece, |(text, _)| text));
        next = answer.value["truncated"]["next"].clone();
    }
    assert_eq!(whole.len() as u64, bytes);
    let whole: Value = serde_json::from_str(&whole).expect("the JSON of the result");
    assert_eq!(whole[499], json!({"id": 499, "text": "é\n"}));
    // A smaller piece, and one that a request has asked for.
    let answer = execute_with(&hub, json!({"handle": truncated["handle"], "offset": 0, "limit": 10})).await;
    assert!(answer.value["result"].as_str().is_some_and(|text| text.starts_with("[{\"id\":0\n…")), "{}", answer.value);
    let answer = execute_with(&hub, json!({"script": "return 'x'.repeat(50)", "limits": {"maxResultBytes": 20}})).await;
    assert_eq!(answer.value["truncated"]["next"], 20);
    // A text is kept as a text.
    assert!(answer.value["result"].as_str().is_some_and(|text| text.starts_with("xxxxxxxxxxxxxxxxxxxx\n…")));
}

/// A result that is shorter than its limit, but longer than a client gets at once.
#[tokio::test]
async fn the_first_piece_of_a_result_is_short() {
    for (enabled, at_once) in [(true, 1_000), (false, 3_000)] {
        let result_store = codecall_config::ResultStore { enabled, ..codecall_config::ResultStore::default() };
        let hub = hub(Config { max_inline_bytes: Some(1_000), result_store, ..Config::default() });
        let answer = execute_with(&hub, json!({"script": "return 'x'.repeat(3_000)"})).await;
        let text = answer.value["result"].as_str().expect("a text");
        assert_eq!(text.chars().filter(|c| *c == 'x').count() / 100 * 100, at_once, "{text}");
        assert_eq!(answer.value["truncated"].is_object(), enabled, "{}", answer.value);
        let input = json!({"tool": "users:list", "input": {"text": "x".repeat(3_000)}});
        let answer = call(&hub, "codecall_invoke", input, None, CancellationToken::new()).await.expect("a tool");
        let answer = Answered::from(answer);
        assert_eq!(answer.value["truncated"]["bytes"] == 3_011, enabled, "{}", answer.value);
        assert_eq!(answer.value["result"]["text"].is_string(), !enabled, "{}", answer.value);
    }
}

/// A client of MCP has a model, which reads less at once than a program, and is told what the rest is.
#[tokio::test]
async fn models_get_less_at_once_and_the_shape_of_the_whole() {
    let hub = hub(Config::default());
    let script = "return { total: 900, items: Array.from({ length: 900 }, (_, id) => ({ id, name: 'x'.repeat(20), tags: [] })) }";
    let arguments = json!({"script": script});
    let program = execute_with(&hub, arguments.clone()).await.value;
    assert_eq!(program["result"]["items"].as_array().map(Vec::len), Some(900), "a program gets up to 50,000 bytes");
    let model = call_for(&hub, "codecall_execute", arguments, Client::default(), None, CancellationToken::new());
    let answer = Answered::from(model.await.expect("a tool")).value;
    let text = answer["result"].as_str().expect("a text");
    assert!((13_000..17_000).contains(&text.len()), "{}", text.len());
    let selection = "`return r.items.slice(0, 20).map(({id, name}) => ({id, name}))` in place of `return r`]";
    assert!(text.ends_with(selection), "{text}");
    let truncated = &answer["truncated"];
    assert_eq!(truncated["counts"], json!({"items": 900}));
    assert_eq!(truncated["shape"], "{ items: { id: number; name: string; tags: unknown[] }[]; total: number }");
    let schema = codecall_base::schema::Schema::new(&execute::Execute.output_schema()).expect("a schema");
    assert!(schema.fits(&answer));
}

#[tokio::test]
async fn results_that_cannot_be_stored_are_refused() {
    let off = codecall_config::ResultStore { enabled: false, ..codecall_config::ResultStore::default() };
    let small = codecall_config::ResultStore { max_result_bytes: 2_000, ..codecall_config::ResultStore::default() };
    for (store, length) in [(off, 1_500), (small, 3_000)] {
        let hub = hub_with_max_result_bytes(1_000, store);
        let answer = execute_with(
            &hub,
            json!({"script": format!("await callTool('users:list', {{}}); return 'x'.repeat({length})")}),
        )
        .await;
        assert!(answer.is_error);
        assert_eq!(answer.value["error"]["code"], "RESULT_TOO_LARGE", "{}", answer.value);
        assert_eq!(answer.value["error"]["toolCalls"], 1);
    }
    let hub = hub_with_max_result_bytes(1_000, small);
    for (arguments, expected) in [
        (json!({"handle": "result-00"}), "there is no result with this 'handle'"),
        (json!({"handle": "x", "script": "return 1"}), "give either 'script' or 'handle'"),
        (json!({"offset": 3}), "'script' is missing"),
        (json!({"script": "return 1", "offset": 3}), "'offset' and 'limit' belong to 'handle'"),
    ] {
        let answer = execute_with(&hub, arguments).await;
        assert!(
            answer.is_error && answer.value.as_str().is_some_and(|text| text.contains(expected)),
            "{}",
            answer.value
        );
    }
    let kept = execute_with(&hub, json!({"script": "return 'x'.repeat(1500)"})).await.value;
    let beyond = execute_with(&hub, json!({"handle": kept["truncated"]["handle"], "offset": 1500})).await;
    assert!(beyond.value.as_str().is_some_and(|text| text.contains("'offset' must be below 1500")), "{}", beyond.value);
}

#[tokio::test]
async fn a_dry_run() {
    let script = "const user = await callTool('users:get', { id: 1 }); await callTool('mail:fail', {}); \
        await callTool('users:get', { id: 'x' }); return user";
    let answer = ask("codecall_execute", json!({"script": script, "dryRun": true})).await;
    assert_eq!((&answer.value["status"], &answer.value["dryRun"]), (&json!("tool_error"), &json!(true)));
    let calls = &answer.value["calls"];
    assert_eq!(calls[0], json!({"toolName": "users:get", "input": {"id": 1}, "fits": true, "result": "unknown"}));
    assert_eq!((&calls[2]["fits"], &calls[2]["refused"]["code"]), (&json!(false), &json!("INVALID_INPUT")));
    assert_eq!(answer.value["error"]["code"], "INVALID_INPUT");
}

#[tokio::test]
async fn the_calls_of_a_run_are_in_its_meta() {
    let answer =
        ask("codecall_execute", json!({"script": "await users.get({ id: 1 }); users.list({}); throw 1"})).await;
    let meta = answer.meta.expect("statistics");
    assert_eq!(meta["codecall/stats"]["toolCalls"], 2);
    let calls = &meta["codecall/calls"];
    assert_eq!((&calls["calls"][0]["toolName"], &calls["calls"][0]["status"]), (&json!("users:get"), &json!("ok")));
    assert_eq!(
        (&calls["unanswered"][0]["toolName"], &calls["unanswered"][0]["started"]),
        (&json!("users:list"), &json!(false))
    );
    assert_eq!(answer.value["error"]["toolCalls"], 1, "one was not handed out");
    assert_eq!(answer.value["error"]["calls"][0]["name"], "users:get");
    let refused = ask("codecall_execute", json!({"script": "eval('1')"})).await;
    assert_eq!(refused.value["error"]["toolCalls"], 0);
    assert_eq!(refused.meta.expect("statistics")["codecall/calls"], json!({"calls": []}));
}

/// The catalogue, which knows no meta-tools, keeps these names free.
#[test]
fn reserved_names_are_meta_tools() {
    for name in RESERVED_NAMES {
        assert!(find(name).is_some_and(|tool| listed_name(tool, NameStyle::Dot) == *name), "{name}");
    }
    assert_eq!(listed_name(&search::Search, NameStyle::Dot), "codecall.search");
}
