//! Large and hostile data of tools, scripts and clients: it does not block other requests, and errors about it are
//! short.

use crate::support::TIMEOUT;
use agentscript::{Dialect, Policy};
use codecall::event::EventSink;
use codecall::meta;
use codecall::runs::ExecuteRequest;
use codecall::tool::{ToolDefinition, ToolError, ToolResult};
use codecall::upstream::{BoxFuture, Upstream, UpstreamCall};
use codecall::{Config, Hub};
use cpu_time::ThreadTime;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// A name, the schema of its input, the schema of its result.
type Row = (&'static str, Value, Option<Value>);

/// Tools with any schemas, which return their input; `fail` returns it as an error, `fail_mcp` as a result of MCP.
struct Tools(Vec<Row>);

impl Upstream for Tools {
    fn app(&self) -> &str {
        "t"
    }

    fn source(&self) -> &'static str {
        "inline"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        let tool = |(name, input, output): &Row| ToolDefinition {
            app: "t".into(),
            name: (*name).into(),
            input_schema: input.clone(),
            output_schema: output.clone(),
            source: "inline",
            visible_in_list_tools: Some(true),
            ..ToolDefinition::default()
        };
        self.0.iter().map(|row| Arc::new(tool(row))).collect()
    }

    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            if !call.tool.name.starts_with("fail") {
                return Ok(Value::Object(call.input).into());
            }
            let text = call.input.get("text").and_then(Value::as_str).unwrap_or_default();
            let times = call.input.get("times").and_then(Value::as_u64).unwrap_or(1);
            let text = text.repeat(usize::try_from(times).unwrap_or(1));
            if call.tool.name == "fail_mcp" {
                return Ok(ToolResult::Mcp(json!({
                    "content": [{"type": "text", "text": text}],
                    "structuredContent": {"said": text},
                    "isError": true,
                })));
            }
            let mut error = ToolError::new("TOOL_EXECUTION_ERROR", text.clone());
            error.details = Some(json!({"said": text}).to_string());
            Err(error)
        })
    }
}

fn hub(tools: Vec<Row>) -> Arc<Hub> {
    let config = r#"{"pii": {}, "cache": {"rules": [{"tool": "t:echo", "ttl": "1m"}]}}"#;
    let config = Config::parse(config, codecall::config::Format::Json, &|_| None).expect("valid");
    Hub::start(config, vec![Arc::new(Tools(tools))]).expect("starts")
}

fn any() -> Value {
    json!({"type": "object"})
}

fn plain() -> Vec<Row> {
    vec![("echo", any(), None), ("fail", any(), None), ("fail_mcp", any(), None)]
}

/// A policy that allows everything, for half a minute.
fn policy() -> Policy {
    let mut policy = Policy::default();
    let limits = &mut policy.limits;
    (limits.timeout_ms, limits.max_duration_ms, limits.max_steps) = (30_000, 60_000, u64::MAX);
    limits.max_memory_bytes = 512 << 20;
    policy
}

async fn execute(hub: &Hub, script: &str) -> Value {
    let request = ExecuteRequest::new(script, policy());
    let finished = hub.execute(request, None, CancellationToken::new()).await;
    serde_json::from_str(&finished.outcome.to_json()).expect("JSON")
}

async fn ask(hub: &Hub, tool: &str, arguments: Value) -> Value {
    let answer = meta::call(hub, tool, arguments, None, CancellationToken::new()).await;
    answer.expect("a meta-tool").content.into_value()
}

/// Measures every few milliseconds how long the reactor was blocked.
struct Pulse {
    longest: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<()>,
}

impl Pulse {
    fn begin() -> Self {
        let longest = Arc::new(AtomicU64::new(0));
        let max = Arc::clone(&longest);
        // The thread of the only worker, and the time of a processor that it has used, however busy the machine is.
        let now = || (std::thread::current().id(), ThreadTime::now().as_duration());
        let task = tokio::spawn(async move {
            let (mut thread, mut began) = now();
            loop {
                tokio::time::sleep(Duration::from_millis(5)).await;
                let (later, ended) = now();
                // After `block_in_place` another thread is the worker.
                if later == thread {
                    let used = ended.saturating_sub(began).as_millis();
                    max.fetch_max(u64::try_from(used).unwrap_or(u64::MAX), Ordering::Relaxed);
                }
                (thread, began) = (later, ended);
            }
        });
        Self { longest, task }
    }

    /// Returns the longest time of the processor between two turns of others.
    fn end(self) -> Duration {
        self.task.abort();
        Duration::from_millis(self.longest.load(Ordering::Relaxed))
    }
}

/// Much less than a stall takes.
const PROMPT: Duration = Duration::from_millis(700);

/// A single-threaded runtime, so that blocking work is noticed.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn long_paths_in_names_and_errors_do_not_block_others() {
    let hub = hub(plain());
    for (script, codes) in [
        // The interpreter or the pipeline refuses a name of this length.
        ("callTool('t' + ' /tmp/zz'.repeat(4e5), { a: 'x'.repeat(4e6) })", &["TOOL_NOT_FOUND", "EXECUTION_ERROR"][..]),
        ("callTool('t:fail', { text: ' /tmp/zz'.repeat(4e5), a: 'x'.repeat(1e6) })", &["TOOL_EXECUTION_ERROR"]),
    ] {
        let pulse = Pulse::begin();
        let began = Instant::now();
        let outcome = execute(&hub, &format!("return await {script}")).await;
        let code = outcome["error"]["code"].as_str().unwrap_or_default();
        assert!(codes.contains(&code), "{script}: {code}");
        let took = began.elapsed();
        assert!(took < TIMEOUT, "{script} took {took:?}");
        let longest = pulse.end();
        assert!(longest < PROMPT, "{script}: others have waited {longest:?}");
    }
}

/// Every way in which a client or a script names a tool.
#[tokio::test(flavor = "multi_thread")]
async fn names_have_at_most_256_bytes() {
    let hub = hub(plain());
    let long = "n".repeat(3_000_000);
    for script in [
        "callTool('n'.repeat(3e6), {})",
        "callTool('t:' + 'n'.repeat(3e6), {})",
        "callTool('codecall:' + 'n'.repeat(3e6), {})",
    ] {
        let outcome = execute(&hub, &format!("return await {script}")).await;
        let text = outcome.to_string();
        assert_ne!(outcome["status"], "ok", "{script}");
        assert!(text.len() < 12_000, "{script}: {} bytes", text.len());
    }
    let request = ExecuteRequest {
        dialect: Dialect::Sync,
        ..ExecuteRequest::new("call_tool('t', 'n'.repeat(3e6), {})", policy())
    };
    let outcome = hub.execute(request, None, CancellationToken::new()).await.outcome;
    assert!(outcome.to_json().len() < 4_000, "{}", outcome.to_json());
    for (tool, arguments) in [
        ("codecall_invoke", json!({"tool": long, "input": {}})),
        ("codecall_describe", json!({"toolNames": [long]})),
        ("codecall_search", json!({"query": "list", "excludeToolNames": [long]})),
        ("codecall_search", json!({"query": long})),
        ("codecall_search", json!({"query": "list", "filter": {"appIds": [long]}})),
        ("codecall_search", json!({"query": "list", "filter": {"tags": [long]}})),
        ("codecall_execute", json!({"script": "return 1", "allowedTools": [long]})),
        ("codecall_execute", json!({"script": "return 1", "limits": {&long: 1}})),
        ("codecall_execute", json!({"script": "return 1", &long: 1})),
        ("codecall_execute", json!({"handle": long})),
        ("codecall_search", json!({&long: 1})),
    ] {
        let pulse = Pulse::begin();
        let answer = ask(&hub, tool, arguments.clone()).await.to_string();
        let longest = pulse.end();
        let what: String = arguments.to_string().chars().take(60).collect();
        assert!(answer.len() < 4_000, "{tool} {what}: {} bytes", answer.len());
        assert!(longest < PROMPT, "{tool} {what}: {longest:?}");
    }
    assert!(hub.direct(&long, Map::new(), None, CancellationToken::new()).await.is_none());
}

/// A long error of a tool is truncated, and says so: for scripts, by `invoke` and by name.
#[tokio::test(flavor = "multi_thread")]
async fn errors_are_bounded_and_say_so() {
    let hub = hub(plain());
    let input = json!({"text": "boom ", "times": 2_000_000, "more": "y".repeat(1_000_000)});
    for tool in ["t:fail", "t:fail_mcp"] {
        let script = format!("return await callTool('{tool}', {{ text: 'boom ', times: 2e6, more: 'y'.repeat(1e6) }})");
        let outcome = execute(&hub, &script).await;
        assert_eq!(outcome["error"]["code"], "TOOL_EXECUTION_ERROR");
        let answer = ask(&hub, "codecall_invoke", json!({"tool": tool, "input": input})).await;
        assert_eq!(answer["error"]["toolName"], tool);
        for value in [&outcome, &answer] {
            let text = value.to_string();
            assert!(text.len() < 64_000, "{} bytes", text.len());
            let message = value["error"]["message"].as_str().expect("a message");
            assert!(
                message.starts_with("boom boom") && message.contains("cut") && message.contains("10000000"),
                "{message}"
            );
        }
        let input = input.as_object().cloned().expect("an object");
        let text = match hub.direct(tool, input, None, CancellationToken::new()).await.expect("listed") {
            Ok(result) => result.into_mcp().to_string(),
            Err(error) => format!("{error:?}"),
        };
        assert!(text.len() < 64_000 && text.contains("cut"), "{} bytes", text.len());
    }
}

/// Notifications during a call are truncated too.
#[tokio::test(flavor = "multi_thread")]
async fn notifications_of_a_call_are_bounded() {
    let hub = hub(plain());
    let long = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&long);
    let sink: EventSink = Some(Arc::new(move |event| {
        if format!("{event:?}").len() > 100_000 {
            seen.store(true, Ordering::Relaxed);
        }
    }));
    let input = json!({"text": "boom ", "times": 1_000_000, "more": ["y".repeat(1_000_000)]});
    let call = json!({"tool": "t:fail", "input": input});
    meta::call(&hub, "codecall_invoke", call, sink, CancellationToken::new()).await.expect("a meta-tool");
    assert!(!long.load(Ordering::Relaxed), "a notification of megabytes");
}

/// Chained `times`, each schema refers twice to the one before: `2^times` schemas to visit.
fn doubled_references(times: usize, with: impl Fn(Value) -> Value) -> Value {
    let mut defs = json!({"d0": {"type": "object"}});
    for at in 1..=times {
        defs[format!("d{at}")] = with(json!({"$ref": format!("#/$defs/d{}", at - 1)}));
    }
    json!({"$defs": defs, "$ref": format!("#/$defs/d{times}")})
}

/// Returns a nested value.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({}), |inner, _| json!({"a": inner}))
}

/// Schemas whose validation is exponential, as inputs and as results, with an input that shows it.
fn hostile_schemas() -> Vec<(&'static str, Value, Value)> {
    let both = |next: Value| json!({"allOf": [next, next]});
    let twice = json!({"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]});
    let many: Vec<Value> =
        (0..2_000).map(|at| json!({"properties": {"x": {"const": at}}, "required": ["x"]})).collect();
    let look = format!("^{}$", "(?=.*b)".repeat(50));
    let rows: Vec<Value> = (0..40_000).map(|at| json!({"x": format!("{at}")})).collect();
    vec![
        ("all-of", doubled_references(44, both), json!({})),
        (
            "any-of",
            doubled_references(44, |next| json!({"anyOf": [{"allOf": [next, false]}, {"allOf": [next, false]}]})),
            json!({}),
        ),
        ("one-of", doubled_references(44, |next| json!({"oneOf": [next, next]})), json!({})),
        ("not", doubled_references(44, |next| json!({"not": {"allOf": [next, {"not": next}]}})), json!({})),
        ("if", doubled_references(44, |next| json!({"if": next, "then": next, "else": next})), json!({})),
        (
            "properties",
            doubled_references(44, |next| json!({"properties": {"a": next}, "additionalProperties": next})),
            nested(44),
        ),
        ("recursive", twice, nested(60)),
        ("self", json!({"$ref": "#"}), json!({})),
        ("self-all", json!({"allOf": [{"$ref": "#"}]}), json!({})),
        (
            "cycle",
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}),
            json!({}),
        ),
        ("wide", json!({"properties": {"rows": {"items": {"oneOf": many}}}}), json!({"rows": rows})),
        ("look", json!({"properties": {"s": {"pattern": look}}}), json!({"s": "a".repeat(200_000)})),
        (
            "look-key",
            json!({"patternProperties": {"(?=.*b)(?=.*c)^(x+x+)+y": {"type": "string"}}, "additionalProperties": false}),
            json!({"x".repeat(5_000): 1}),
        ),
        (
            "repeat",
            json!({"properties": {"s": {"pattern": "^((a{0,50}){0,50}){0,50}b"}}}),
            json!({"s": "a".repeat(200_000)}),
        ),
        (
            "unevaluated",
            doubled_references(30, |next| json!({"allOf": [next], "unevaluatedProperties": next})),
            nested(2),
        ),
        (
            "unique",
            json!({"properties": {"rows": {"uniqueItems": true}}}),
            json!({"rows": (0..100_000).collect::<Vec<u32>>()}),
        ),
        (
            "enum",
            json!({"properties": {"rows": {"items": {"enum": (0..5_000).map(|at| json!({"a": at})).collect::<Vec<_>>()}}}}),
            json!({"rows": vec![json!({"a": -1}); 50_000]}),
        ),
        ("chain", chain(4_000), json!({})),
    ]
}

/// Returns a chain of references.
fn chain(length: usize) -> Value {
    let mut defs = json!({"d0": {"type": "object"}});
    for at in 1..=length {
        defs[format!("d{at}")] = json!({"allOf": [{"$ref": format!("#/$defs/d{}", at - 1)}]});
    }
    json!({"$defs": defs, "$ref": format!("#/$defs/d{length}")})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn hostile_schemas_do_not_block_others() {
    for (name, schema, input) in hostile_schemas() {
        let hub = hub(vec![("in", schema.clone(), None), ("out", any(), Some(schema.clone()))]);
        for tool in ["in", "out"] {
            let pulse = Pulse::begin();
            let began = Instant::now();
            let call = json!({"tool": format!("t:{tool}"), "input": input});
            let answer = ask(&hub, "codecall_invoke", call).await;
            let took = began.elapsed();
            assert!(took < TIMEOUT, "{name} {tool} took {took:?}");
            assert!(answer.to_string().len() < 4_000_000, "{name} {tool}");
            let longest = pulse.end();
            assert!(longest < PROMPT, "{name} {tool}: others have waited {longest:?}");
            for format in ["json_schema", "typescript"] {
                let pulse = Pulse::begin();
                let began = Instant::now();
                let request = json!({"toolNames": [format!("t:{tool}")], "format": format});
                let described = ask(&hub, "codecall_describe", request).await.to_string();
                let took = began.elapsed();
                assert!(took < TIMEOUT, "{name} {tool} {format} took {took:?}");
                assert!(described.len() < 1_000_000, "{name} {tool} {format}: {} bytes", described.len());
                let longest = pulse.end();
                assert!(longest < PROMPT, "{name} {tool} {format}: others have waited {longest:?}");
            }
            let dry = json!({"script": format!("return await callTool('t:{tool}', {{}})"), "dryRun": true});
            let began = Instant::now();
            ask(&hub, "codecall_execute", dry).await;
            let took = began.elapsed();
            assert!(took < TIMEOUT, "{name} {tool}, dry, took {took:?}");
        }
        hub.close().await;
    }
}

/// Large data is processed on other threads than those of the runtime.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn large_data_does_not_block_others() {
    let hub = hub(plain());
    let scripts = [
        "const rows = Array.from({ length: 3e4 }, (_, i) => ({ id: i, mail: `u${i}@example.com` })); return (await callTool('t:echo', { rows })).rows.length",
        "const o = {}; for (let i = 0; i < 5e4; i++) o[`u${i}@example.com`] = i; return Object.keys(await callTool('t:echo', o)).length",
        "return (await callTool('t:echo', { s: 'a@b.cc '.repeat(4e5) })).s.length",
        "return (await callTool('t:echo', { s: '1 '.repeat(1e6) })).s.length",
    ];
    for script in scripts {
        let pulse = Pulse::begin();
        let began = Instant::now();
        let outcome = execute(&hub, script).await;
        assert_eq!(outcome["status"], "ok", "{script}: {outcome}");
        let (took, longest) = (began.elapsed(), pulse.end());
        assert!(took < TIMEOUT, "{script} took {took:?}");
        assert!(longest < PROMPT, "{script}: others have waited {longest:?}");
    }
    let names: Vec<String> = (0..50_000).map(|at| format!("t:unknown{at}")).collect();
    for (tool, arguments) in [
        ("codecall_describe", json!({"toolNames": names})),
        ("codecall_search", json!({"query": "x", "excludeToolNames": names})),
        ("codecall_search", json!({"query": "x", "filter": {"appIds": names}})),
        ("codecall_search", json!({"query": "list all users ".repeat(200_000)})),
        ("codecall_invoke", json!({"tool": "t:echo", "input": {"rows": (0..200_000).collect::<Vec<u32>>()}})),
    ] {
        let pulse = Pulse::begin();
        let began = Instant::now();
        ask(&hub, tool, arguments).await;
        let (took, longest) = (began.elapsed(), pulse.end());
        assert!(took < TIMEOUT, "{tool} took {took:?}");
        assert!(longest < PROMPT, "{tool}: others have waited {longest:?}");
    }
}
