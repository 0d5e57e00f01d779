//! The pipeline of tool calls: hooks, masking, limits, cache, schemas, audit, secrets.

use crate::support::*;
use codecall::config::Format;
use codecall::event::{EventSink, RunEvent};
use codecall::meta;
use codecall::pipeline::{Before, Hook, HookCall, Record};
use codecall::tool::{ToolDefinition, ToolError, ToolResult};
use codecall::upstream::{BoxFuture, Upstream, UpstreamCall};
use codecall::{Config, Extensions, Hub};
use futures_util::future::join_all;
use rmcp::model::*;
use rmcp::service::PeerRequestOptions;
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Tools that return their input and count their calls.
#[derive(Default)]
struct Echo {
    calls: AtomicUsize,
    at_work: AtomicUsize,
    most: AtomicUsize,
}

impl Upstream for Echo {
    fn app(&self) -> &str {
        "t"
    }

    fn source(&self) -> &'static str {
        "inline"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        let number = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let tool = |name: &str, output: Option<Value>| ToolDefinition {
            app: "t".into(),
            name: name.into(),
            input_schema: json!({"type": "object"}),
            output_schema: output,
            source: "inline",
            visible_in_list_tools: Some(name == "visible"),
            ..ToolDefinition::default()
        };
        let tools = [
            tool("echo", None),
            tool("slow", None),
            tool("number", Some(number)),
            tool("fail", None),
            tool("visible", None),
        ];
        tools.into_iter().map(Arc::new).collect()
    }

    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            let at_work = self.at_work.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(at_work, Ordering::SeqCst);
            if call.tool.name == "slow" {
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
            self.at_work.fetch_sub(1, Ordering::SeqCst);
            match call.tool.name.as_str() {
                "fail" => Err(ToolError::new("BROKEN", format!("no {}", Value::Object(call.input)))),
                _ => Ok(Value::Object(call.input).into()),
            }
        })
    }
}

struct World {
    hub: Arc<Hub>,
    echo: Arc<Echo>,
}

fn world(config: Value, hooks: Vec<Arc<dyn Hook>>) -> World {
    let environment = |name: &str| (name == "TOKEN").then(|| "tok-12345678".to_owned());
    let config = Config::parse(&config.to_string(), Format::Json, &environment).expect("valid");
    let echo = Arc::new(Echo::default());
    let hub = Hub::start_with(
        isolated(config),
        Extensions { upstreams: vec![Arc::clone(&echo) as _], hooks, ..Extensions::default() },
    )
    .expect("starts");
    World { hub, echo }
}

impl World {
    async fn invoke_with_sink(&self, tool: &str, arguments: Value, sink: EventSink) -> Value {
        let answer = meta::call(&self.hub, tool, arguments, sink, CancellationToken::new()).await;
        answer.expect("a meta-tool").content.into_value()
    }

    /// Calls a tool without a script. Returns its result, or the code of its error.
    async fn invoke(&self, tool: &str, input: Value) -> Value {
        let answer = self.invoke_with_sink("codecall_invoke", json!({"tool": tool, "input": input}), None).await;
        if answer["status"] == "ok" { answer["result"].clone() } else { answer["error"]["code"].clone() }
    }

    fn calls(&self) -> usize {
        self.echo.calls.load(Ordering::SeqCst)
    }
}

/// A hook that records what it sees, and acts as the input says.
struct Noting {
    name: &'static str,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Hook for Noting {
    fn name(&self) -> &'static str {
        self.name
    }

    fn before<'a>(
        &'a self,
        call: &'a HookCall,
        mut input: Map<String, Value>,
    ) -> BoxFuture<'a, Result<Before, ToolError>> {
        self.seen.lock().expect("not poisoned").push(format!("{} before {}", self.name, call.name));
        Box::pin(async move {
            tokio::task::yield_now().await;
            if input.get("refuse").is_some_and(|who| who == self.name) {
                return Err(ToolError::new("REFUSED", "not today"));
            }
            if input.get("answer").is_some_and(|who| who == self.name) {
                return Ok(Before::Answer(json!({"by": self.name}).into()));
            }
            input.insert(self.name.into(), true.into());
            Ok(Before::Go(input))
        })
    }

    fn after<'a>(
        &'a self,
        _: &'a HookCall,
        result: Result<ToolResult, ToolError>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        self.seen.lock().expect("not poisoned").push(format!("{} after", self.name));
        Box::pin(std::future::ready(result.map(|result| json!({self.name: result.value()}).into())))
    }

    fn recorded(&self, record: &Record<'_>) {
        let code = record.error.map_or("ok", |error| &error.code);
        let by = record.answered_by.unwrap_or("tool");
        self.seen.lock().expect("not poisoned").push(format!("{} recorded {code} {by}", self.name));
    }
}

#[tokio::test]
async fn hooks_run_in_order_around_the_tool() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let hook = |name| Arc::new(Noting { name, seen: Arc::clone(&seen) }) as Arc<dyn Hook>;
    let world = world(json!({}), vec![hook("a"), hook("b")]);
    let seen = || std::mem::take(&mut *seen.lock().expect("not poisoned"));
    assert_eq!(world.invoke("t:echo", json!({})).await, json!({"a": {"b": {"a": true, "b": true}}}));
    assert_eq!(
        seen(),
        ["a before t:echo", "b before t:echo", "b after", "a after", "a recorded ok tool", "b recorded ok tool"]
    );
    assert_eq!(world.invoke("t:echo", json!({"answer": "b"})).await, json!({"a": {"by": "b"}}));
    assert_eq!(seen(), ["a before t:echo", "b before t:echo", "a after", "a recorded ok b", "b recorded ok b"]);
    assert_eq!(world.invoke("t:echo", json!({"refuse": "a"})).await, "REFUSED");
    assert_eq!(seen(), ["a before t:echo", "a recorded REFUSED tool", "b recorded REFUSED tool"]);
    assert_eq!(world.invoke("t:no", json!({})).await, "TOOL_NOT_FOUND");
    assert_eq!(seen(), ["a recorded TOOL_NOT_FOUND tool", "b recorded TOOL_NOT_FOUND tool"]);
    assert_eq!(world.calls(), 1);
}

#[tokio::test]
async fn personal_data_is_masked_if_configured() {
    let input = json!({"to": "ann@example.com", "pin": 1234, "list": ["4111 1111 1111 1111"]});
    let masked = json!({"to": "[email]", "pin": "[masked]", "list": ["[card]"]});
    let world = world(json!({"pii": {"fields": ["PIN"], "output": false}}), vec![]);
    assert_eq!(world.invoke("t:echo", input.clone()).await, masked);
    let hook = |config: Value| self::world(json!({"pii": config}), vec![]);
    let script = "const seen = []; for (const tool of ['t:echo', 't:fail']) {
        const { data, error } = await callTool(tool, codecallContext, { throwOnError: false });
        seen.push(data ?? error.message);
    } return seen;";
    let run = async |world: &World| {
        world.invoke_with_sink("codecall_execute", json!({"script": script, "context": input}), None).await
    };
    let answer = run(&hook(json!({"input": false, "fields": ["pin"]}))).await;
    assert_eq!(answer["result"][0], masked, "{answer}");
    assert_eq!(answer["result"][1], r#"no {"to":"[email]","pin":1234,"list":["[card]"]}"#, "{answer}");
    let answer = run(&hook(json!({"tools": {"deny": ["t:*"]}}))).await;
    assert_eq!(answer["result"][0], input, "{answer}");
    let answer = run(&hook(json!({"detect": ["email"], "patterns": [{"name": "pin", "pattern": "\\b1234\\b"}]}))).await;
    assert_eq!(
        answer["result"][0],
        json!({"to": "[email]", "pin": "[pin]", "list": ["4111 1111 1111 1111"]}),
        "{answer}"
    );
}

#[tokio::test]
async fn rate_limits() {
    let rules = json!([
        {"tool": "t:echo", "limit": 2, "window": "1h"},
        {"tool": {"app": "codecall", "name": "codecall:search"}, "limit": 1, "window": "1m"},
    ]);
    let folder = Folder::new();
    let file = folder.path("audit.jsonl");
    let world = world(json!({"rateLimits": rules, "audit": {"file": file}}), vec![]);
    let script = "let n = 0; try { for (;n < 9;) { await callTool('t:echo', {}); n++ } } catch (e) { return [n, e.code, e.details.limit] }";
    let answer = world.invoke_with_sink("codecall_execute", json!({"script": script}), None).await;
    assert_eq!(answer["result"], json!([2, "RATE_LIMIT", 2]), "{answer}");
    assert_eq!(world.invoke("t:echo", json!({})).await, "RATE_LIMIT", "whoever calls it");
    assert_eq!(world.invoke("t:number", json!({"n": 1})).await, json!({"n": 1}));
    assert_eq!(world.calls(), 3);
    let search = || world.invoke_with_sink("codecall_search", json!({"query": "x"}), None);
    assert!(search().await.is_object());
    assert!(
        search()
            .await
            .as_str()
            .is_some_and(|text| text.starts_with("RATE_LIMIT: Rate limit exceeded: tool 'codecall:search'"))
    );
    let text = std::fs::read_to_string(&file).expect("a file");
    let refused: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .filter(|line| line["error"]["code"] == "RATE_LIMIT")
        .map(|line| format!("{} {}", line["caller"].as_str().unwrap_or("-"), line["tool"].as_str().unwrap_or("-")))
        .collect();
    assert_eq!(refused, ["script t:echo", "invoke t:echo", "direct codecall:search"]);
}

#[tokio::test]
async fn cached_results() {
    let cache =
        json!({"rules": [{"tool": "t:echo", "ttl": "150ms"}, {"tool": "t:fail", "ttl": "1h"}], "maxEntries": 2});
    let world = world(json!({"cache": cache}), vec![]);
    for input in [json!({"a": 1, "b": [2.0]}), json!({"b": [2], "a": 1.0})] {
        assert_eq!(world.invoke("t:echo", input).await["a"], 1, "the first answer");
    }
    assert_eq!(world.calls(), 1);
    tokio::time::sleep(Duration::from_millis(160)).await;
    world.invoke("t:echo", json!({"a": 1, "b": [2]})).await;
    assert_eq!(world.calls(), 2, "it is too old");
    for _ in 0..2 {
        assert_eq!(world.invoke("t:fail", json!({})).await, "BROKEN");
    }
    assert_eq!(world.calls(), 4, "failures are not kept");
    for n in [1, 2, 3, 1] {
        world.invoke("t:echo", json!({"n": n})).await;
    }
    assert_eq!(world.calls(), 8, "there is room for two");
}

#[tokio::test]
async fn concurrency_limits() {
    let world = world(json!({"concurrencyLimits": [{"tool": "t:*", "limit": 2}]}), vec![]);
    join_all((0..8).map(|n| world.invoke("t:slow", json!({"n": n})))).await;
    assert_eq!((world.calls(), world.echo.most.load(Ordering::SeqCst)), (8, 2));
}

#[tokio::test]
async fn results_fit_the_schema_of_their_tool() {
    for (mode, expected) in
        [("error", json!("INVALID_OUTPUT")), ("warn", json!({"n": "x"})), ("off", json!({"n": "x"}))]
    {
        let world = world(json!({"checkOutput": mode}), vec![]);
        assert_eq!(world.invoke("t:number", json!({"n": 3})).await, json!({"n": 3}));
        assert_eq!(world.invoke("t:number", json!({"n": "x"})).await, expected, "{mode}");
    }
}

/// Every call is recorded once, masked: also refused and cancelled ones.
#[tokio::test]
async fn every_call_is_audited() {
    let folder = Folder::new();
    let file = folder.path("audit.jsonl");
    let config = json!({"audit": {"file": file}, "pii": {}, "directCalls": {"filter": {"deny": ["t:number"]}}, "cache": {"rules": [{"tool": "t:echo", "ttl": "1h"}]}});
    let world = world(config, vec![]);
    for _ in 0..2 {
        world.invoke("t:echo", json!({"to": "ann@example.com"})).await;
    }
    let events: Arc<Mutex<Vec<RunEvent>>> = Arc::default();
    let seen = Arc::clone(&events);
    let sink: EventSink = Some(Arc::new(move |event| seen.lock().expect("not poisoned").push(event)));
    let script = "await Promise.race([callTool('t:slow', { to: 'ann@example.com' }), callTool('t:fail', { to: 'bob@example.com' }, { throwOnError: false })]);
        await callTool('t:none', {}, { throwOnError: false }); return 1";
    let answer = world
        .invoke_with_sink("codecall_execute", json!({"script": script, "allowedTools": ["t:fail", "t:slow"]}), sink)
        .await;
    assert_eq!(answer["result"], 1, "{answer}");
    let direct = world.hub.direct("t_visible", Map::new(), None, CancellationToken::new()).await;
    assert!(direct.expect("visible").is_ok());
    assert_eq!(world.invoke("t:number", json!({"n": 1})).await, "ACCESS_DENIED");
    for wrong in [
        json!({"tool": "t:echo", "input": "bob@example.com"}),
        json!({"tool": "t:echo", "input": {}, "force": true}),
        json!({"input": {}}),
    ] {
        let refused = world.invoke_with_sink("codecall_invoke", wrong, None).await;
        assert!(refused.as_str().is_some_and(|text| text.starts_with("Invalid arguments: ")), "{refused}");
    }
    until("the last record", || std::fs::read_to_string(&file).expect("a file").lines().count() == 10).await;
    let text = std::fs::read_to_string(&file).expect("a file");
    assert!(!text.contains("@example"), "{text}");
    let events = events.lock().expect("not poisoned").clone();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    lines.sort_by_key(|line| line["callId"].as_str().and_then(|id| id.parse::<u64>().ok()));
    let records: Vec<String> = lines
        .iter()
        .map(|line| {
            let code = line["error"]["code"].as_str().or(line["answeredBy"].as_str()).unwrap_or("-");
            format!(
                "{} {} {} {code}",
                line["caller"].as_str().unwrap_or_default(),
                line["tool"].as_str().unwrap_or_default(),
                line["status"].as_str().unwrap_or_default()
            )
        })
        .collect();
    assert_eq!(
        records,
        [
            "invoke t:echo ok -",
            "invoke t:echo ok cache",
            "script t:slow error EXECUTION_ABORTED",
            "script t:fail error BROKEN",
            "script t:none error TOOL_NOT_FOUND",
            "direct t:visible ok -",
            "invoke t:number error ACCESS_DENIED",
            "invoke t:echo error INVALID_INPUT",
            "invoke t:echo error INVALID_INPUT",
            "invoke codecall:invoke error INVALID_INPUT",
        ]
    );
    let runs: Vec<&RunEvent> = events.iter().filter(|event| matches!(event, RunEvent::Started { .. })).collect();
    let [RunEvent::Started { run }] = runs[..] else { panic!("{runs:?}") };
    for (at, line) in lines.iter().enumerate() {
        let expected = if (2..5).contains(&at) { json!(run.as_str()) } else { Value::Null };
        assert_eq!(line["runId"], expected, "{line}");
    }
    assert_eq!(lines[0]["input"], json!({"to": "[email]"}));
    assert!(lines[0]["time"].as_str().is_some_and(|time| time.ends_with('Z')) && lines[0]["durationMs"].is_number());
    // Notifications have the same two events, with the same masking.
    let count = |is: fn(&RunEvent) -> bool| events.iter().filter(|event| is(event)).count();
    assert_eq!(count(|event| matches!(event, RunEvent::CallStarted { .. })), 3);
    assert_eq!(count(|event| matches!(event, RunEvent::CallEnded { .. })), 3);
    assert!(!format!("{events:?}").contains("@example"), "{events:?}");
}

/// Log lines of a call have the id of its run.
#[tokio::test]
async fn log_lines_have_the_id_of_the_run() {
    let folder = Folder::new();
    let config = folder.file("c.json", json!({"checkOutput": "warn"}).to_string());
    let schema = json!({"type": "object", "required": ["x"]});
    let responses = json!([{"input": null, "output": {"y": 1}}]);
    let mocks = json!({"tools": [{"name": "a:b", "outputSchema": schema, "responses": responses}]});
    let mocks = folder.file("mocks.json", mocks.to_string());
    let script = folder.file("s.js", "return await callTool('a:b', {})");
    let ran = codecall(&["run", "--config", &config, "--mock-tools", &mocks, &script]).await;
    let line = ran.stderr.lines().find(|line| line.contains("does not fit")).expect("a warning");
    let id = line.split_once("run{id=").expect("a run").1.split('}').next().expect("an end");
    assert!(id.len() == 32 && id.bytes().all(|digit| digit.is_ascii_hexdigit()), "{line}");
}

/// An audit file that cannot be written is an error at the start.
#[tokio::test]
async fn an_audit_file_that_cannot_be_opened() {
    let folder = Folder::new();
    let config = folder.file("c.json", json!({"audit": {"file": folder.path("no/such/folder/x")}}).to_string());
    let ran = codecall(&["tools", "--demo", "--config", &config]).await;
    assert!(ran.code == Some(2) && ran.stderr.contains("audit.file: cannot be opened"), "{ran:?}");
}

const TOKEN: &str = "tok+12345678/abcdefgh";
const PASSWORD: &str = "hunter2-hunter2";

fn leaking(folder: &Folder, more: Value) -> (String, String) {
    let log = folder.file("leak.log", "");
    let script = folder.file("leak.sh", include_str!("leak.sh"));
    let mut config = json!({
        "mcpServers": {"leak": {"command": "sh", "args": [script, log], "env": {"API_TOKEN": TOKEN, "PASSWORD": PASSWORD}}},
        "audit": {"file": folder.path("audit.jsonl")},
        "tools": {"leak:*": {"visibleInListTools": true}},
    });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    (folder.file("config.json", config.to_string()), log)
}

/// A server that returns its secrets in all encodings.
#[tokio::test]
async fn secrets_of_the_configuration_are_redacted() {
    let folder = Folder::new();
    let (config, log) = leaking(&folder, json!({}));
    let server = Server::start(&["-v", "--config", &config]).await;
    let mut seen = String::new();
    let script = format!(
        "console.log('{TOKEN}'); mcpLog('info', '{TOKEN}', {{ a: '{TOKEN}' }}); mcpNotify('x', {{ a: '{TOKEN}' }});
         const secrets = await callTool('leak:tell', {{ a: '{TOKEN}' }});
         const letters = secrets.split('').join('-');
         const {{ error }} = await callTool('leak:fail', {{}}, {{ throwOnError: false }});
         return {{ secrets, letters, error, described: getTool('leak:tell').description }};"
    );
    let answer = server.ask("codecall_execute", json!({"script": script})).await;
    assert!(
        answer["result"]["secrets"]
            .as_str()
            .is_some_and(|secrets| secrets.starts_with("[secret] ") && secrets.ends_with(" [secret]")),
        "{answer}"
    );
    assert_eq!(answer["result"]["described"], "Signs in with [secret]");
    seen.push_str(&answer.to_string());
    seen.push_str(&answer["result"]["letters"].as_str().expect("a text").replace('-', ""));
    let uncaught = server.execute(&format!("return await callTool('leak:fail', {{ a: '{TOKEN}' }})")).await;
    assert_eq!(uncaught["error"]["code"], "TOOL_EXECUTION_ERROR");
    seen.push_str(&uncaught.to_string());
    for tool in ["tell", "fail"] {
        seen.push_str(
            &server
                .ask("codecall_invoke", json!({"tool": format!("leak:{tool}"), "input": {"a": TOKEN}}))
                .await
                .to_string(),
        );
        let direct = server.call(&format!("leak_{tool}"), json!({"a": TOKEN})).await.expect("a result");
        assert_eq!(direct.is_error, Some(tool == "fail").filter(|failed| *failed).or(direct.is_error));
        seen.push_str(&text(&direct));
    }
    seen.push_str(&server.ask("codecall_search", json!({"query": "signs in"})).await.to_string());
    seen.push_str(&server.ask("codecall_describe", json!({"toolNames": ["leak:tell"]})).await.to_string());
    let listed = server.client.peer().list_tools(None).await.expect("a list");
    seen.push_str(&serde_json::to_string(&listed.tools).expect("JSON"));
    seen.push_str(&format!("{:?}", server.recorded.logs.lock().expect("not poisoned")));
    seen.push_str(&format!("{:?}", server.recorded.events.lock().expect("not poisoned")));
    seen.push_str(&format!("{:?}", server.recorded.progress.lock().expect("not poisoned")));
    seen.push_str(&std::fs::read_to_string(folder.path("audit.jsonl")).expect("records"));
    let stderr = server.end().await;
    assert!(stderr.contains("signing in with [secret]"), "{stderr}");
    seen.push_str(&stderr);
    let middle = "NDU2NzgvYWJj";
    assert!(include_str!("leak.sh").contains("base64") && !seen.contains(middle), "a part of it in base64: {seen}");
    for part in [TOKEN, PASSWORD, "12345678", "hunter2", "tok%2B", "/home/me"] {
        let at = seen.find(part).map(|at| seen[..at].chars().rev().take(200).collect::<Vec<_>>());
        let before = at.map(|letters| letters.into_iter().rev().collect::<String>());
        assert_eq!(before, None, "{part}");
    }
    assert!(seen.matches("[secret]").count() > 10);
    let output = std::fs::read_to_string(log).expect("a log");
    assert!(output.contains(TOKEN), "the server itself gets what the client has sent: {output}");
}

/// Results of listed tools are those of their server.
#[tokio::test]
async fn direct_calls_are_passed_through() {
    for (expose, name) in [("visible", "leak_picture"), ("direct", "picture")] {
        let folder = Folder::new();
        let (config, _) = leaking(&folder, json!({"expose": expose, "pii": {}}));
        let server = Server::start(&["--config", &config]).await;
        let listed = server.client.peer().list_tools(None).await.expect("a list").tools;
        let names: Vec<&str> = listed.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(names[0], "codecall_search");
        assert!(names[4..].is_sorted() && names.contains(&name), "{names:?}");
        let result = server.call(name, json!({})).await.expect("a result");
        let result = serde_json::to_value(result).expect("JSON");
        assert_eq!(result["content"][0], json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}));
        assert_eq!((&result["content"][1]["text"], &result["_meta"]["own"]), (&json!("a picture"), &json!(1)));
        server.end().await;
    }
}

/// Cancelling a request cancels the call at the upstream, whoever made the call.
#[tokio::test]
async fn a_cancelled_request_reaches_the_upstream() {
    for (tool, arguments) in [
        ("codecall_execute", json!({"script": "return await parallel([() => callTool('leak:never', {})])"})),
        ("codecall_invoke", json!({"tool": "leak:never", "input": {}})),
        ("leak_never", json!({})),
    ] {
        let folder = Folder::new();
        let (config, log) = leaking(&folder, json!({}));
        let server = Server::start(&["--config", &config]).await;
        let is_logged = |what: &str| std::fs::read_to_string(&log).expect("a log").lines().any(|line| line == what);
        let request =
            CallToolRequestParams::new(tool).with_arguments(arguments.as_object().expect("an object").clone());
        let request = ClientRequest::CallToolRequest(Request::new(request));
        let sent = server.client.peer().send_cancellable_request(request, PeerRequestOptions::no_options());
        let sent = sent.await.expect("sent");
        until("the call", || is_logged("called")).await;
        assert!(!is_logged("cancelled"));
        sent.cancel(Some("enough".into())).await.expect("cancelled");
        until("the cancellation", || is_logged("cancelled")).await;
        until("the record", || {
            std::fs::read_to_string(folder.path("audit.jsonl")).is_ok_and(|text| text.contains("EXECUTION_ABORTED"))
        })
        .await;
        server.end().await;
    }
}

/// Start, end and progress of a call are notified, whoever makes it.
#[tokio::test]
async fn every_call_is_notified() {
    for (tool, arguments) in [
        ("codecall_execute", json!({"script": "return await callTool('users:get', { id: 'usr_001' })"})),
        ("codecall_invoke", json!({"tool": "users:get", "input": {"id": "usr_001"}})),
        ("users_get", json!({"id": "usr_001"})),
    ] {
        let folder = Folder::new();
        let config = folder.file(
            "c.toml",
            "[tools.\"users:get\"]\nvisibleInListTools = true\n[pii]\noutput = false\nfields = [\"id\"]\n",
        );
        let server = Server::start(&["--demo", "--config", &config]).await;
        let result = server.call(tool, arguments).await.expect("a result");
        until("progress", || server.recorded.progress.lock().expect("not poisoned").len() == 2).await;
        until("messages", || server.recorded.logs.lock().expect("not poisoned").len() == 2).await;
        let logs = server.recorded.logs.lock().expect("not poisoned").clone();
        let (start, end) = (&logs[0]["data"], &logs[1]["data"]);
        let id = &start["callId"];
        assert!(id.is_string(), "{start}");
        let mut expected =
            json!({"event": "tool_call_start", "toolName": "users:get", "input": {"id": "[masked]"}, "callId": id});
        if tool == "codecall_execute" {
            let run = &result.meta.as_ref().expect("what is beside the result")["codecall/run"];
            assert!(run.as_str().is_some_and(|run| run.len() == 32), "{run}");
            expected["runId"] = run.clone();
        }
        assert_eq!(*start, expected);
        assert_eq!(end["runId"], start["runId"]);
        assert_eq!(
            (&end["event"], &end["callId"], &end["input"]),
            (&json!("tool_call_end"), id, &json!({"id": "[masked]"}))
        );
        assert!(end["durationMs"].is_number() && end["status"].is_string(), "{end}");
        server.end().await;
    }
}

/// A long list has pages with each tool once, sorted by name.
#[tokio::test]
async fn a_long_list_has_pages() {
    let folder = Folder::new();
    let script = folder.file("hostile.sh", include_str!("hostile.sh"));
    let config = json!({
        "mcpServers": {"many": {"command": "sh", "args": [script, "many", folder.path("log")], "startTimeoutMs": 30_000}},
        "expose": "direct",
        "tools": {"many:tool_9*": {"visibleInListTools": false}},
    });
    let server = Server::start(&["--config", &folder.file("c.json", config.to_string())]).await;
    let first = server.client.peer().list_tools(None).await.expect("a page");
    assert_eq!((first.tools.len(), first.tools[0].name.as_ref()), (200, "codecall_search"));
    assert!(first.next_cursor.is_some());
    let all = server.client.peer().list_all_tools().await.expect("all");
    let names: Vec<&str> = all[4..].iter().map(|tool| tool.name.as_ref()).collect();
    // The configuration hides the 1,111 names that begin with `tool_9`.
    assert_eq!(names.len(), 10_001 - 1_111);
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(server.call("tool_900", json!({})).await.is_err());
    let wrong =
        server.client.peer().list_tools(Some(PaginatedRequestParams::default().with_cursor(Some("x".into())))).await;
    assert!(wrong.is_err());
    server.end().await;
}
