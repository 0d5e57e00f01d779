//! The MCP server as a client sees it, over streams in memory.

use super::*;
use codecall_config::{Config, Front, FrontConfig, Structured, ToolPolicy};
use codecall_upstream::inline::Inline;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

struct Client {
    input: WriteHalf<DuplexStream>,
    output: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Client {
    fn start(config: Config) -> Self {
        let echo = Inline::echo(&[("users", "get", "Get a user", json!({"type": "object"}))]);
        let hub = Hub::start(config, vec![Arc::new(echo)]).expect("starts");
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        tokio::spawn(serve(hub, tokio::io::split(theirs)));
        let (output, input) = tokio::io::split(ours);
        Self { input, output: BufReader::new(output).lines() }
    }

    async fn send(&mut self, message: Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.expect("written");
    }

    /// Sends a request and returns its response; skips notifications.
    async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        loop {
            let line = self.output.next_line().await.expect("read").expect("not at its end");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Does the same, and returns the next response, whatever it responds to.
    async fn ask_next(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        loop {
            let line = self.output.next_line().await.expect("read").expect("not at its end");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if message["id"].is_u64() {
                return message;
            }
        }
    }

    async fn initialized(config: Config) -> Self {
        let mut client = Self::start(config);
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let answer = client.ask(0, "initialize", hello).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }
}

fn with_front(default: Front) -> Config {
    let front = FrontConfig { default, ..FrontConfig::default() };
    Config { tools: ToolPolicy { front, ..ToolPolicy::default() }, ..Config::default() }
}

#[tokio::test]
async fn with_a_session() {
    let mut client = Client::initialized(with_front(Front::Code)).await;
    let listed = client.ask(1, "tools/list", json!({})).await;
    let names: Vec<&str> =
        listed["result"]["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["codecall_search", "codecall_describe", "codecall_execute", "codecall_invoke"]);
    for name in ["codecall:invoke", "codecall.invoke", "codecall_invoke"] {
        let answer = client
            .ask(2, "tools/call", json!({"name": name, "arguments": {"tool": "users:get", "input": {"a": 1}}}))
            .await;
        let expected = json!({"status": "ok", "result": {"a": 1}});
        assert!(answer["result"]["structuredContent"].is_null(), "it is sent once");
        assert_eq!(answer["result"]["content"], json!([{"type": "text", "text": expected.to_string()}]));
    }
    let failed = client
        .ask(3, "tools/call", json!({"name": "codecall_invoke", "arguments": {"tool": "users:no", "input": {}}}))
        .await;
    let text = failed["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(failed["result"]["isError"] == true && text.contains(r#""code":"TOOL_NOT_FOUND""#), "{failed}");
    let refused = client.ask(4, "tools/call", json!({"name": "codecall_search", "arguments": {"q": 1}})).await;
    assert_eq!(refused["result"]["isError"], true);
    let unknown = client.ask(5, "tools/call", json!({"name": "users:get", "arguments": {}})).await;
    assert_eq!(unknown["error"]["code"], -32602);
    for method in ["prompts/list", "resources/list"] {
        assert_eq!(client.ask(6, method, json!({})).await["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test]
async fn without_a_session() {
    let mut client = Client::start(Config {
        tools: ToolPolicy { names: codecall_base::tool::NameStyle::Colon, ..with_front(Front::Code).tools },
        structured: Structured::Text,
        ..Config::default()
    });
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = client.ask(1, "server/discover", json!({"_meta": meta})).await;
    assert!(
        found["result"]["supportedVersions"].as_array().is_some_and(|versions| versions.contains(&json!("2026-07-28"))),
        "{found}"
    );
    let listed = client.ask(2, "tools/list", json!({"_meta": meta})).await;
    assert_eq!(listed["result"]["tools"][0]["name"], "codecall:search");
    assert!(listed["result"]["tools"][0]["outputSchema"].is_null());
    let answer = client
        .ask(
            3,
            "tools/call",
            json!({"_meta": meta, "name": "codecall_execute", "arguments": {"script": "return null"}}),
        )
        .await;
    assert_eq!(answer["result"]["content"][0]["text"], r#"{"status":"ok","result":null}"#);
    assert!(answer["result"]["structuredContent"].is_null());
    assert!(answer["result"]["_meta"]["codecall/stats"].is_object());
}

/// A client that can be asked without a session gets all events of its run, from the first.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_event_of_a_run_is_sent() {
    let mut client = Client::start(Config::default());
    let call = |id: u64| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
            "progressToken": id,
        });
        json!({"name": "codecall_execute", "arguments": {"script": "return await users.get({})"}, "_meta": meta})
    };
    // Many at once, so that a run begins before anything else of its request is done.
    for _ in 0..10 {
        for id in 0..200 {
            client.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call(id)})).await;
        }
        let (mut steps, mut open) = (vec![Vec::new(); 200], 200);
        while open > 0 {
            let line = client.output.next_line().await.expect("read").expect("not at its end");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            let params = &message["params"];
            if let Some(id) = params["progressToken"].as_u64() {
                steps[usize::try_from(id).expect("small")].extend(params["progress"].as_f64());
            }
            if message["id"].is_u64() {
                assert_eq!(message["result"]["content"][0]["text"], r#"{"status":"ok","result":{}}"#);
                open -= 1;
            }
        }
        for (id, steps) in steps.iter().enumerate() {
            assert_eq!(*steps, [1.0, 2.0], "request {id}");
        }
    }
}

/// A stuck thread holds the sink of its run, but the client gets an answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_given_up_is_answered() {
    let mut config = Config::default();
    // A long script, because compiling cannot be interrupted.
    config.pool.watchdog = Duration::from_millis(1);
    config.policy.limits.max_script_bytes = 1 << 20;
    config.code_execution.enabled = true;
    let script = "f();".repeat(100_000);
    let mut client = Client::initialized(config).await;
    for (id, (tool, arguments)) in
        [("codecall_execute", json!({"script": script})), ("code_execution", json!({"code": script}))]
            .into_iter()
            .enumerate()
    {
        let call = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": 1}});
        let answer = client.ask(u64::try_from(id).expect("small") + 1, "tools/call", call).await;
        assert!(answer["result"].to_string().contains("was given up"), "{answer}");
    }
}

/// A tool of a server whose protocol has no `resultType` is called by a client whose protocol demands it.
#[tokio::test]
async fn results_of_listed_tools_have_a_type() {
    let mut client = Client::start(with_front(Front::Direct));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = json!({"name": "users_get", "arguments": {"a": 1}, "_meta": meta});
    let answer = client.ask(1, "tools/call", call).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert_eq!(answer["result"]["structuredContent"], json!({"a": 1}), "{answer}");
}

/// Each answer is sent once: structured to clients that read it, as text to all others.
#[tokio::test]
async fn the_form_of_answers() {
    let reader = json!({"experimental": {"codecall/structuredContent": {}}});
    for (structured, name, capabilities, (has_text, has_data, has_schema)) in [
        (Structured::Auto, "test", json!({}), (true, false, false)),
        (Structured::Auto, "claude-code", json!({}), (false, true, false)),
        (Structured::Auto, "test", reader.clone(), (false, true, false)),
        (Structured::Both, "test", json!({}), (true, true, true)),
        (Structured::Text, "claude-code", reader, (true, false, false)),
    ] {
        let mut client = Client::start(Config { structured, ..with_front(Front::Code) });
        let info = json!({"name": name, "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": info});
        client.ask(0, "initialize", hello).await;
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        let listed = client.ask(1, "tools/list", json!({})).await;
        let call = json!({"name": "codecall_execute", "arguments": {"script": "return 1"}});
        let result = client.ask(2, "tools/call", call).await["result"].take();
        let text = result["content"][0]["text"].as_str();
        assert_eq!(text, has_text.then_some(r#"{"status":"ok","result":1}"#), "{structured:?} {name}");
        assert_eq!(result["structuredContent"]["result"] == 1, has_data, "{structured:?} {name}: {result}");
        assert_eq!(listed["result"]["tools"][0]["outputSchema"].is_object(), has_schema, "{structured:?} {name}");
        let refused = json!({"name": "codecall_execute", "arguments": {}});
        let refused = client.ask(3, "tools/call", refused).await;
        assert!(refused["result"]["content"][0]["text"].is_string(), "a refusal is a text: {refused}");
    }
}

#[tokio::test]
async fn instructions_name_the_apps() {
    let mut client = Client::start(with_front(Front::Code));
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let answer = client.ask(0, "initialize", hello).await;
    let instructions = answer["result"]["instructions"].as_str().expect("a text");
    assert!(instructions.ends_with(" Apps: users."), "{instructions}");
    assert!(instructions.chars().count() <= 250, "{instructions}");
}

/// More calls than may begin at once wait, and other requests are answered meanwhile. A cancelled call ends, and has no
/// response.
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_wait_delay_nothing() {
    const CALLS: u64 = 100;
    let mut config = Config::default();
    config.pool.max_runs = 101;
    config.pool.queue_timeout = Duration::from_secs(5);
    let mut client = Client::initialized(config).await;
    let waiting = json!({"name": "codecall_execute", "arguments": {"script": "await sleep(60_000)"}});
    let quick = json!({"name": "codecall_execute", "arguments": {"script": "return 1"}});
    for id in 1..=CALLS {
        client.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": waiting})).await;
    }
    assert!(client.ask(1_000, "ping", json!({})).await["result"].is_object());
    assert!(client.ask(1_001, "tools/call", quick.clone()).await["result"].is_object());
    for id in 1..=CALLS {
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        client.send(cancelled).await;
    }
    // There is room for as many again.
    for id in CALLS + 1..=2 * CALLS {
        client.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": waiting})).await;
    }
    // Responses to the calls would be there before.
    let answer = client.ask_next(1_002, "tools/call", quick).await;
    let text = answer["result"]["content"][0]["text"].as_str();
    assert!(answer["id"] == 1_002 && text == Some(r#"{"status":"ok","result":1}"#), "{answer}");
}

/// At the end of the input, open calls still have some time to be answered, in the order in which they end, and their events
/// are sent.
#[tokio::test(flavor = "multi_thread")]
async fn calls_are_answered_after_the_end_of_the_input() {
    let mut client = Client::initialized(Config::default()).await;
    for (id, ms) in [(1, 400), (2, 100)] {
        let script = format!("await sleep({ms}); mcpLog('info', 'late'); return {id}");
        let call = json!({"name": "codecall_execute", "arguments": {"script": script}});
        client.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call})).await;
    }
    client.input.shutdown().await.expect("closed");
    let (mut answered, mut logged) = (Vec::new(), 0);
    while let Some(line) = client.output.next_line().await.expect("read") {
        let message: Value = serde_json::from_str(&line).expect("JSON");
        if message["params"]["data"]["message"] == "late" {
            logged += 1;
        }
        if let Some(id) = message["id"].as_u64() {
            assert_eq!(logged, answered.len() + 1, "the log comes before the answer");
            assert!(message["result"]["content"][0]["text"].is_string(), "{message}");
            answered.push(id);
        }
    }
    assert_eq!(answered, [2, 1]);
}

/// A server may have thousands of requests that wait, and rmcp keeps the future of each.
#[test]
fn a_request_that_waits_is_small() {
    fn size<F>(_: impl FnOnce(&'static Handler, ClientRequest, RequestContext<RoleServer>) -> F) -> usize {
        size_of::<F>()
    }
    let size = size(rmcp::Service::handle_request);
    assert!(size <= 5 << 10, "{size} bytes");
}
