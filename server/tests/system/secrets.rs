//! Secrets that are added while the server runs: nothing that leaves it afterwards contains them.

use crate::model_server::{KEY, Model, ModelReply, post_json};
use crate::support::*;
use agentscript::Policy;
use codecall::client::Client;
use codecall::config::Format;
use codecall::event::{CallUpdate, LogMessage, RunEvent};
use codecall::http::HttpServer;
use codecall::mcp::Handler;
use codecall::redact::{RefusedSecret, SecretRegistry, redact_log_line};
use codecall::runs::ExecuteRequest;
use codecall::stateless::Recorder;
use codecall::store::{Database, RunFilter, RunStore as _, SqlRuns};
use codecall::tool::{Example, ToolDefinition, ToolError, ToolResult};
use codecall::upstream::inline::Inline;
use codecall::upstream::{BoxFuture, ResourcesAndPrompts, Upstream, UpstreamCall, UpstreamNotification};
use codecall::{Config, Extensions, Hub, meta};
use rmcp::model::*;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RunningService};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ErrorData, RoleClient, ServiceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// A secret that no configuration contains.
const SECRET: &str = "late-Zq3/7+x&9Kd_5w";
/// The same for other hubs: the logs of a process are redacted with the secrets of all its hubs.
const OTHER_SECRET: &str = "other-9Kd_5w-Zq3";

/// A script whose call has the secret in its input.
const INPUT: &str = "await callTool('leak:tell', { a: 'late-Zq3/7+x&9Kd_5w' }); return 1";

/// A way out of the server, and what has left through it.
type Way = (&'static str, Value);

fn config(value: &Value) -> Config {
    isolated(Config::parse(&value.to_string(), Format::Json, &|_| None).expect("valid"))
}

#[tokio::test]
async fn a_secret_that_was_added_later_does_not_leave() {
    let tell = Inline::new("leak").tool("tell", "", json!({"type": "object"}), |_| async { Ok(json!(OTHER_SECRET)) });
    let hub = Hub::start(config(&json!({})), vec![Arc::new(tell)]).expect("starts");
    let result = async || {
        let request = ExecuteRequest::new("return await callTool('leak:tell', {})", Policy::default());
        hub.execute(request, None, CancellationToken::new()).await.outcome.result.expect("ok")
    };
    assert_eq!(result().await, json!(OTHER_SECRET).to_string());
    hub.secrets().add(OTHER_SECRET).expect("long enough");
    assert_eq!(result().await, json!("[secret]").to_string());
    hub.secrets().remove(OTHER_SECRET);
    assert_eq!(result().await, json!(OTHER_SECRET).to_string());
    assert_eq!(hub.secrets().add("short"), Err(RefusedSecret::TooShort));
}

/// An upstream that tells the secret wherever it can.
struct Leaky {
    notifications: broadcast::Sender<UpstreamNotification>,
}

impl Upstream for Leaky {
    fn app(&self) -> &str {
        "leak"
    }

    fn source(&self) -> &'static str {
        "inline"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        let tool = |name: &str| ToolDefinition {
            app: "leak".into(),
            name: name.into(),
            title: Some(format!("With {SECRET}")),
            description: format!("Signs in with {SECRET}"),
            input_schema: json!({"type": "object", "description": SECRET, "properties": {"a": {"default": SECRET}}}),
            output_schema: Some(json!({"type": "object", "description": SECRET})),
            annotations: Map::from_iter([("title".into(), SECRET.into())]),
            examples: vec![Example { description: SECRET.into(), code: format!("callTool('leak:{name}', {{}})") }],
            ..ToolDefinition::default()
        };
        ["tell", "fail"].map(|name| Arc::new(tool(name))).into()
    }

    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        let log = LogMessage { level: "info".into(), logger: Some(SECRET.into()), data: json!({SECRET: SECRET}) };
        call.sink.notify(CallUpdate::Progress { progress: 1.0, total: None, message: Some(SECRET.into()) });
        call.sink.notify(CallUpdate::Log(log));
        let failed = ToolError { details: Some(json!([SECRET]).to_string()), ..ToolError::new("NO", SECRET) };
        let result = if call.tool.name == "fail" { Err(failed) } else { Ok(json!({"told": SECRET, SECRET: 1}).into()) };
        Box::pin(std::future::ready(result))
    }

    fn resources_and_prompts(&self) -> Option<&dyn ResourcesAndPrompts> {
        Some(self)
    }

    fn unavailable_reason(&self) -> Option<String> {
        Some(format!("Cannot sign in with {SECRET}"))
    }
}

fn ready<'a, T: DeserializeOwned + Send + 'a>(value: Value) -> BoxFuture<'a, Result<T, ErrorData>> {
    Box::pin(std::future::ready(Ok(serde_json::from_value(value).expect("of this type"))))
}

impl ResourcesAndPrompts for Leaky {
    fn list_resources(&self) -> BoxFuture<'_, Result<Vec<Resource>, ErrorData>> {
        ready(json!([{"uri": "leak://a", "name": SECRET}]))
    }

    fn list_resource_templates(&self) -> BoxFuture<'_, Result<Vec<ResourceTemplate>, ErrorData>> {
        ready(json!([{"uriTemplate": "leak://{a}", "name": SECRET}]))
    }

    fn list_prompts(&self) -> BoxFuture<'_, Result<Vec<Prompt>, ErrorData>> {
        ready(json!([{"name": "ask", "description": SECRET}]))
    }

    fn read_resource<'a>(
        &'a self,
        uri: &'a str,
        _client: Client,
    ) -> BoxFuture<'a, Result<ReadResourceResult, ErrorData>> {
        match uri {
            "leak://a" => ready(json!({"contents": [{"uri": uri, "text": SECRET}]})),
            _ => Box::pin(std::future::ready(Err(ErrorData::resource_not_found(SECRET, None)))),
        }
    }

    fn get_prompt<'a>(
        &'a self,
        _name: &'a str,
        _arguments: Option<Map<String, Value>>,
        _client: Client,
    ) -> BoxFuture<'a, Result<GetPromptResult, ErrorData>> {
        ready(json!({"messages": [{"role": "user", "content": {"type": "text", "text": SECRET}}]}))
    }

    fn set_subscribed<'a>(&'a self, _uri: &'a str, _subscribed: bool) -> BoxFuture<'a, Result<(), ErrorData>> {
        Box::pin(std::future::ready(Err(ErrorData::resource_not_found(SECRET, None))))
    }

    fn notifications(&self) -> broadcast::Receiver<UpstreamNotification> {
        self.notifications.subscribe()
    }
}

/// A hub with that upstream, an MCP client, an HTTP server and a model server.
struct World {
    folder: Folder,
    hub: Arc<Hub>,
    database: Database,
    notifications: broadcast::Sender<UpstreamNotification>,
    client: RunningService<RoleClient, RecordingClient>,
    recorded: RecordingClient,
    url: String,
    audited: usize,
}

impl World {
    /// `rounds` is how often [`World::ways_out`] is called.
    async fn start(rounds: usize) -> Self {
        let folder = Folder::new();
        let failed = || ModelReply::Error(500, json!({"error": {"message": SECRET}}));
        let round = || [ModelReply::Text(SECRET), ModelReply::Text(SECRET), failed()];
        let model = Model::start((0..rounds).flat_map(|_| round())).await;
        let audit = folder.path("audit.jsonl");
        let more = json!({
            "expose": "direct", "audit": {"file": audit}, "model": {"url": model.url, "key": KEY},
            "stateless": {"enabled": true},
        });
        let notifications = broadcast::Sender::new(10);
        let upstream = Leaky { notifications: notifications.clone() };
        let database = Database::file(Path::new(&folder.path("codecall.db")));
        let upstreams: Vec<Arc<dyn Upstream>> = vec![Arc::new(upstream)];
        let extensions = Extensions { upstreams, database: Some(database.clone()), ..Extensions::default() };
        let hub = Hub::start_with(config(&more), extensions).expect("starts");
        let http = HttpServer::bind("0", &hub.config().http).await.expect("a port");
        let url = format!("http://{}", http.address());
        tokio::spawn(http.serve(Arc::clone(&hub), CancellationToken::new()));
        let (own, other) = tokio::io::duplex(1 << 20);
        let handler = Handler::new(Arc::clone(&hub));
        tokio::spawn(async move { handler.serve(tokio::io::split(other)).await.expect("serves").waiting().await });
        let recorded = RecordingClient::default();
        let (read, write) = tokio::io::split(own);
        let transport = AsyncRwTransport::new_client(read, write);
        let connecting = recorded.clone().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize);
        let client = tokio::time::timeout(TIMEOUT, connecting).await.expect("answers").expect("speaks MCP");
        Self { folder, hub, database, notifications, client, recorded, url, audited: 0 }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let called = tokio::time::timeout(TIMEOUT, self.client.peer().call_tool_once(request)).await;
        match called.expect("answers").expect("a result") {
            CallToolResponse::Complete(result) => json!(result),
            other => panic!("not a result: {other:?}"),
        }
    }

    async fn execute(&self, script: &str) -> Value {
        self.call("codecall_execute", json!({"script": script})).await
    }

    /// Returns a text from each way out of the server that could contain the secret.
    async fn ways_out(&mut self) -> Vec<Way> {
        let mut ways = self.history().await;
        ways.extend(self.scripts().await);
        ways.extend(self.meta_tools().await);
        ways.extend(self.lists().await);
        ways.extend(self.notifications().await);
        ways.extend(self.endpoints().await);
        ways.extend(self.files().await);
        ways
    }

    /// The records of runs, as the page and the command line show them.
    async fn history(&self) -> Vec<Way> {
        let (runs, scripts) = (SqlRuns(self.database.clone()), [INPUT, "return await callTool('leak:fail', {})"]);
        let mut ways = Vec::new();
        for script in scripts {
            // What was run before is recorded by now, or a moment later.
            tokio::time::sleep(Duration::from_millis(500)).await;
            let before = runs.totals().await.expect("totals").runs;
            self.execute(script).await;
            let mut latest = None;
            for _ in 0..200 {
                if runs.totals().await.expect("totals").runs > before {
                    let filter = RunFilter { limit: 1, ..RunFilter::default() };
                    latest = runs.list(&filter).await.expect("a list").pop();
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let id = latest.expect("a run is recorded").summary.id;
            let (summary, detail) = runs.get(&id).await.expect("readable").expect("a run");
            ways.push(("the history", json!([json!(summary), detail])));
        }
        ways
    }

    async fn scripts(&self) -> Vec<Way> {
        let log = self.execute(INPUT).await["_meta"].clone();
        vec![
            ("a result", self.execute("return await callTool('leak:tell', {})").await),
            ("the result of a script", self.execute(&format!("return {{ a: '{SECRET}' }}")).await),
            (
                "an error that a script has caught",
                self.execute("return await callTool('leak:fail', {}, { throwOnError: false })").await,
            ),
            ("an error of a tool", self.execute("return await callTool('leak:fail', {})").await),
            ("an error of a script", self.execute(&format!("throw new Error('{SECRET}')")).await),
            ("console.log", self.execute(&format!("console.log('{SECRET}'); return 1")).await),
            ("a description in a script", self.execute("return getTool('leak:tell').description").await),
            ("the log of calls", log),
            ("a dry run", self.call("codecall_execute", json!({"script": INPUT, "dryRun": true})).await),
        ]
    }

    async fn meta_tools(&self) -> Vec<Way> {
        let (handle, cut) = self.store_long_result().await;
        let mut ways = vec![
            ("the first piece of a long result", cut),
            ("another piece of it", self.piece(&handle).await),
            ("codecall_search", self.call("codecall_search", json!({"query": "signs in"})).await),
            ("codecall_describe", self.call("codecall_describe", json!({"toolNames": ["leak:tell"]})).await),
            ("codecall_step", self.call("codecall_step", json!({"code": format!("return '{SECRET}'")})).await),
        ];
        for tool in ["tell", "fail"] {
            let invoke = json!({"tool": format!("leak:{tool}"), "input": {}});
            ways.push(("codecall_invoke", self.call("codecall_invoke", invoke).await));
            ways.push(("a listed tool", self.call(tool, json!({})).await));
        }
        ways
    }

    async fn lists(&self) -> Vec<Way> {
        let peer = self.client.peer();
        let read = async |uri| peer.read_resource(ReadResourceRequestParams::new(uri)).await;
        vec![
            ("the list of tools", json!(peer.list_tools(None).await.expect("a list").tools)),
            ("the list of resources", json!(peer.list_resources(None).await.expect("a list"))),
            ("the list of templates", json!(peer.list_resource_templates(None).await.expect("a list"))),
            ("the list of prompts", json!(peer.list_prompts(None).await.expect("a list"))),
            ("a resource", json!(read("leak://a").await.expect("a resource"))),
            ("no resource", json!(read("leak://b").await.expect_err("no resource").to_string())),
            ("a prompt", json!(peer.get_prompt(GetPromptRequestParams::new("ask")).await.expect("a prompt"))),
            ("no subscription", json!(self.hub.subscribe("leak://a").await.expect_err("refused").to_string())),
            ("why tools are unavailable", json!(self.hub.pipeline().troubles())),
        ]
    }

    /// Everything that the client was notified of since the last time.
    async fn notifications(&self) -> Vec<Way> {
        let messages =
            format!("mcpLog('info', '{SECRET}', {{ a: '{SECRET}' }}); mcpNotify('{SECRET}', {{}}); return 1");
        self.execute(&messages).await;
        let log = LogMessage { level: "error".into(), logger: None, data: json!([SECRET]) };
        self.notifications.send(UpstreamNotification::Log(log)).expect("the hub receives it");
        let logs = || self.recorded.logs.lock().expect("not poisoned");
        let events = || self.recorded.events.lock().expect("not poisoned");
        let have_arrived = || logs().iter().any(|log| log["level"] == "error") && !events().is_empty();
        until("the notifications", have_arrived).await;
        // Further ones may still be on their way.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let progress = std::mem::take(&mut *self.recorded.progress.lock().expect("not poisoned"));
        let mut ways = vec![("a notification", json!(std::mem::take(&mut *events()))), ("progress", json!(progress))];
        for log in std::mem::take(&mut *logs()) {
            match log["data"]["event"].as_str() {
                // The inputs of most calls are empty.
                Some("tool_call_start" | "tool_call_end") if log["data"]["input"] == json!({}) => {}
                Some(_) => ways.push(("an event of a call", log)),
                None => ways.push(("a log message", log)),
            }
        }
        ways
    }

    async fn endpoints(&self) -> Vec<Way> {
        let post = async |path, body| post_json(&self.url, path, &body).await.1;
        let code = |code: &str| json!({"code": format!("{code} '{SECRET}'")});
        let chat = json!({"model": "m", "messages": [{"role": "user", "content": "Hello"}]});
        let mut with_tools = chat.clone();
        with_tools["tools"] =
            json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]);
        vec![
            ("/v1/evaluate", post("/v1/evaluate", code("return")).await),
            ("/v1/evaluate, failed", post("/v1/evaluate", code("throw")).await),
            ("/v1/chat/completions, forwarded", post("/v1/chat/completions", chat).await),
            ("/v1/chat/completions", post("/v1/chat/completions", with_tools.clone()).await),
            ("/v1/chat/completions, failed", post("/v1/chat/completions", with_tools).await),
        ]
    }

    async fn files(&mut self) -> Vec<Way> {
        let recording = self.record(INPUT).await;
        let records = std::fs::read_to_string(self.folder.path("audit.jsonl")).expect("records");
        let ways = vec![
            ("a recording", json!(recording)),
            ("an audit record", json!(records[self.audited..])),
            ("a line of the log", json!(redact_log_line(SECRET))),
        ];
        self.audited = records.len();
        ways
    }

    /// Runs a script whose result is too long. Returns the handle, and the answer.
    async fn store_long_result(&self) -> (String, Value) {
        let script = format!("return '{SECRET} and more '.repeat(100)");
        let limits = json!({"maxResultBytes": 1_000});
        let answer = self.call("codecall_execute", json!({"script": script, "limits": limits})).await;
        let text = answer["content"][0]["text"].as_str().expect("a text");
        let data: Value = serde_json::from_str(text).expect("JSON");
        let handle = data["truncated"]["handle"].as_str().expect("a handle").to_owned();
        (handle, answer)
    }

    /// Returns a piece of a long result, which begins and ends in a secret.
    async fn piece(&self, handle: &str) -> Value {
        let length = SECRET.len() + " and more ".len();
        let limit = 3 * length;
        self.call("codecall_execute", json!({"handle": handle, "offset": length / 2, "limit": limit})).await
    }

    async fn record(&self, script: &str) -> String {
        let recorder = Recorder::new(script, None, Some(&json!({"a": SECRET}).to_string()));
        let journal = Some(Arc::clone(&recorder) as _);
        let request = ExecuteRequest { journal, ..ExecuteRequest::new(script, Policy::default()) };
        let finished = self.hub.execute(request, None, CancellationToken::new()).await;
        recorder.to_file(&finished.outcome, &self.hub.secrets().redactor())
    }
}

/// Every way out, before the secret is added and afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn no_way_out_lets_a_secret_pass_that_was_added_later() {
    let mut world = World::start(2).await;
    let ways = world.ways_out().await;
    let useless: Vec<_> = ways.iter().filter(|(_, left)| !left.to_string().contains(SECRET)).collect();
    assert!(ways.len() > 40 && useless.is_empty(), "they do not show what is to be redacted: {useless:#?}");
    let (handle, _) = world.store_long_result().await;
    world.hub.secrets().add(SECRET).expect("long enough");
    let ways = world.ways_out().await;
    let is_clean = |left: &str| left.contains("[secret]") && !left.contains(SECRET);
    let leaks: Vec<_> = ways.iter().filter(|(_, left)| !is_clean(&left.to_string())).collect();
    assert!(ways.len() > 40 && leaks.is_empty(), "{leaks:#?}");
    let piece = world.piece(&handle).await.to_string();
    assert!(!piece.contains("late") && !piece.contains("9Kd_5w") && piece.contains("[secret] and more"), "{piece}");
    // Clients are told that the descriptions have changed.
    until("the notification", || world.recorded.changes.load(Ordering::Relaxed) > 0).await;
    world.hub.close().await;
}

/// A tool that learns a secret while it is called, and the input of whose call contains it.
#[tokio::test]
async fn a_call_that_adds_a_secret_ends_without_it() {
    let folder = Folder::new();
    let audit = folder.path("audit.jsonl");
    let config = config(&json!({"audit": {"file": audit}}));
    let secrets = Arc::clone(&config.secrets);
    let sign_in = Inline::new("leak").tool("signIn", "", json!({"type": "object"}), move |call| {
        let added = secrets.add(call.input["key"].as_str().expect("a text"));
        async move { added.map(|()| json!(call.input)).map_err(|refused| ToolError::new("NO", refused.to_string())) }
    });
    let hub = Hub::start(config, vec![Arc::new(sign_in)]).expect("starts");
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let sink = Some(Arc::new(move |event| seen.lock().expect("not poisoned").push(event)) as _);
    let script = format!("return await callTool('leak:signIn', {{ key: '{OTHER_SECRET}' }})");
    let answer = meta::call(&hub, "codecall_execute", json!({"script": script}), sink, CancellationToken::new()).await;
    let answer = answer.expect("a meta-tool");
    assert_eq!(answer.content.into_value(), json!({"status": "ok", "result": {"key": "[secret]"}}));
    let meta = Value::Object(answer.meta.expect("calls")).to_string();
    assert!(meta.contains("[secret]") && !meta.contains(OTHER_SECRET), "{meta}");
    let inputs: Vec<Value> = events
        .lock()
        .expect("not poisoned")
        .iter()
        .filter_map(|event| match event {
            RunEvent::CallStarted { input, .. } | RunEvent::CallEnded { input, .. } => Some(Value::clone(input)),
            RunEvent::Started { .. }
            | RunEvent::Message(_)
            | RunEvent::CallReached { .. }
            | RunEvent::CallUpdated { .. } => None,
        })
        .collect();
    assert_eq!(inputs, [json!({"key": OTHER_SECRET}), json!({"key": "[secret]"})], "it was not known before");
    let record = std::fs::read_to_string(audit).expect("a record");
    assert!(record.contains(r#""input":{"key":"[secret]"}"#), "{record}");
}

/// Two hubs in one process: the logs show the secrets of neither.
#[tokio::test]
async fn logs_are_redacted_for_every_hub() {
    let start = |key: &str| {
        let server = json!({"command": "true", "env": {"API_KEY": key}, "enabled": true});
        Hub::start(config(&json!({"mcpServers": {"x": server}})), Vec::new()).expect("starts")
    };
    let (one, two) = (start("key-of-hub-one"), start("key-of-hub-two"));
    two.secrets().add("late-key-of-hub-two").expect("long enough");
    let line = "key-of-hub-one key-of-hub-two late-key-of-hub-two";
    assert_eq!(redact_log_line(line), "[secret] [secret] [secret]");
    one.close().await;
    two.close().await;
}

/// The error of a hub that could not start, which is printed when the hub is gone.
#[tokio::test]
async fn errors_of_the_program_are_redacted() {
    let folder = Folder::new();
    let server = json!({"command": "true", "env": {"API_KEY": "No such file"}});
    let more = json!({"mcpServers": {"x": server}, "audit": {"file": folder.path("nowhere/audit.jsonl")}});
    let ended = codecall(&["tools", "--config", &folder.file("config.json", more.to_string())]).await;
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("audit.file: cannot be opened: [secret]"), "{}", ended.stderr);
}

/// What an embedder adds before the start is in the same registry.
#[tokio::test]
async fn the_configuration_and_the_hub_share_their_secrets() {
    let config = config(&json!({}));
    let secrets: Arc<SecretRegistry> = Arc::clone(&config.secrets);
    let hub = Hub::start(config, Vec::new()).expect("starts");
    secrets.add(OTHER_SECRET).expect("long enough");
    assert_eq!(hub.secrets().redactor().redact_text(OTHER_SECRET), "[secret]");
}
