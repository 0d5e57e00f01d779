//! What leaves the server contains no secret: each way out, with a secret that is added while the server runs, and with
//! random ones in every spelling.

mod spellings;

use crate::model_server::{KEY, Model, ModelReply, http_client};
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
use codecall::{Config, Extensions, Hub, LiveHub, meta};
use futures_util::{StreamExt as _, stream};
use rmcp::model::*;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RunningService};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ErrorData, RoleClient, ServiceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use spellings::{Needles, Random, pair, spellings, written};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A secret that no configuration contains.
const SECRET: &str = "late-Zq3/7+x&9Kd_5w";
/// The same for other hubs: the logs of a process are redacted with the secrets of all its hubs.
const OTHER_SECRET: &str = "other-9Kd_5w-Zq3";

/// How many servers have random secrets, and how many of them at once.
const ROUNDS: u64 = 3;
const AT_ONCE: usize = 3;
/// How long the secrets of a server are at least.
const BYTES_OF_A_ROUND: usize = 16;
/// How often a secret is told in two encodings within each other.
const PAIRS: usize = 4;
const MAX_PAIR_BYTES: usize = 400;

/// The token of the one who operates the server.
const TOKEN: &str = "operator-0123456789-abcdef";

/// A way out of the server, and what has left through it.
type Way = (&'static str, Value);

/// What the upstream, the model server and scripts tell.
#[derive(Clone)]
struct Told {
    /// Where a name belongs.
    name: String,
    /// In code: a literal adds an encoding.
    text: String,
    /// Everywhere else.
    deep: String,
    /// In an answer that comes in small pieces, each of which is searched with what is held back.
    streamed: String,
}

impl Told {
    fn only(secret: &str) -> Self {
        Self { name: secret.to_owned(), text: secret.to_owned(), deep: secret.to_owned(), streamed: secret.to_owned() }
    }

    /// Returns a literal of a script.
    fn literal(&self) -> Value {
        self.text.as_str().into()
    }

    /// Returns a script whose call has the text in its input.
    fn input(&self) -> String {
        format!("await callTool('leak:tell', {{ a: {} }}); return 1", self.literal())
    }
}

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
    told: Told,
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
        let Told { name: short, deep: told, .. } = &self.told;
        let tool = |name: &str| ToolDefinition {
            app: "leak".into(),
            name: name.into(),
            title: Some(format!("With {short}")),
            description: format!("Signs in with {short}: {told}"),
            input_schema: json!({"type": "object", "description": told, "properties": {"a": {"default": told}}}),
            output_schema: Some(json!({"type": "object", "description": told})),
            annotations: Map::from_iter([("title".into(), short.as_str().into())]),
            examples: vec![Example { description: told.clone(), code: format!("callTool('leak:{name}', {{}})") }],
            ..ToolDefinition::default()
        };
        ["tell", "fail", "ask"].map(|name| Arc::new(tool(name))).into()
    }

    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        let Told { name, deep: told, .. } = &self.told;
        let log = LogMessage { level: "info".into(), logger: Some(name.clone()), data: json!({told: told}) };
        call.sink.notify(CallUpdate::Progress { progress: 1.0, total: None, message: Some(told.clone()) });
        call.sink.notify(CallUpdate::Log(log));
        let failed = ToolError { details: Some(json!([told]).to_string()), ..ToolError::new("NO", told.as_str()) };
        let result = if call.tool.name == "fail" { Err(failed) } else { Ok(json!({"told": told, told: 1}).into()) };
        Box::pin(std::future::ready(result))
    }

    fn resources_and_prompts(&self) -> Option<&dyn ResourcesAndPrompts> {
        Some(self)
    }

    fn unavailable_reason(&self) -> Option<String> {
        Some(format!("Cannot sign in with {}", self.told.deep))
    }
}

fn ready<'a, T: DeserializeOwned + Send + 'a>(value: Value) -> BoxFuture<'a, Result<T, ErrorData>> {
    Box::pin(std::future::ready(Ok(serde_json::from_value(value).expect("of this type"))))
}

impl ResourcesAndPrompts for Leaky {
    fn list_resources(&self) -> BoxFuture<'_, Result<Vec<Resource>, ErrorData>> {
        ready(json!([{"uri": "leak://a", "name": self.told.name}]))
    }

    fn list_resource_templates(&self) -> BoxFuture<'_, Result<Vec<ResourceTemplate>, ErrorData>> {
        ready(json!([{"uriTemplate": "leak://{a}", "name": self.told.name}]))
    }

    fn list_prompts(&self) -> BoxFuture<'_, Result<Vec<Prompt>, ErrorData>> {
        ready(json!([{"name": "ask", "description": self.told.deep}]))
    }

    fn read_resource<'a>(
        &'a self,
        uri: &'a str,
        _client: Client,
    ) -> BoxFuture<'a, Result<ReadResourceResult, ErrorData>> {
        match uri {
            "leak://a" => ready(json!({"contents": [{"uri": uri, "text": self.told.deep}]})),
            _ => Box::pin(std::future::ready(Err(ErrorData::resource_not_found(self.told.deep.clone(), None)))),
        }
    }

    fn get_prompt<'a>(
        &'a self,
        _name: &'a str,
        _arguments: Option<Map<String, Value>>,
        _client: Client,
    ) -> BoxFuture<'a, Result<GetPromptResult, ErrorData>> {
        ready(json!({"messages": [{"role": "user", "content": {"type": "text", "text": self.told.deep}}]}))
    }

    fn set_subscribed<'a>(&'a self, _uri: &'a str, _subscribed: bool) -> BoxFuture<'a, Result<(), ErrorData>> {
        Box::pin(std::future::ready(Err(ErrorData::resource_not_found(self.told.deep.clone(), None))))
    }

    fn notifications(&self) -> broadcast::Receiver<UpstreamNotification> {
        self.notifications.subscribe()
    }
}

/// A hub with that upstream, an MCP client, an HTTP server and a model server.
struct World {
    told: Told,
    folder: Folder,
    hub: Arc<Hub>,
    database: Database,
    notifications: broadcast::Sender<UpstreamNotification>,
    client: RunningService<RoleClient, RecordingClient>,
    recorded: RecordingClient,
    url: String,
    /// The cookie of the page.
    cookie: String,
    audited: usize,
    /// Paths of what was made before, which is looked at again in each round.
    kept: Vec<(&'static str, String)>,
    _running: DropGuard,
}

impl World {
    /// `rounds` is how often [`World::ways_out`] is called; `secrets` are known from the start.
    async fn start(told: Told, rounds: usize, secrets: &[String]) -> Self {
        let folder = Folder::new();
        let failed = || ModelReply::Error(500, json!({"error": {"message": told.deep}}));
        let answer = || ModelReply::Message(json!({"role": "assistant", "content": told.deep}));
        let streamed = || ModelReply::Message(json!({"role": "assistant", "content": told.streamed}));
        let round = || [answer(), answer(), streamed(), failed()];
        let model = Model::start((0..rounds).flat_map(|_| round())).await;
        let audit = folder.path("audit.jsonl");
        let config = config(&json!({
            "expose": "direct", "audit": {"file": audit}, "model": {"url": model.url, "key": KEY},
            "stateless": {"enabled": true}, "directCalls": {"enabled": true}, "durable": {"enabled": true},
            "approval": {"rules": [{"tool": "leak:ask", "approval": "always"}]}, "scriptTools": {"stored": true},
            "http": {"token": TOKEN, "uiEdit": true}, "stateDir": folder.path("state"),
        }));
        config.secrets.add_all(secrets.iter().map(String::as_str)).expect("long enough");
        let notifications = broadcast::Sender::new(10);
        let upstream = Leaky { told: told.clone(), notifications: notifications.clone() };
        let database = Database::file(Path::new(&folder.path("codecall.db")));
        let upstreams: Vec<Arc<dyn Upstream>> = vec![Arc::new(upstream)];
        let extensions = Extensions { upstreams, database: Some(database.clone()), ..Extensions::default() };
        let hub = Hub::start_with(config, extensions).expect("starts");
        let (live, running) = (LiveHub::from(Arc::clone(&hub)), CancellationToken::new());
        meta::resume_runs(&live, &running);
        let mut http = HttpServer::bind("0", &hub.config().http).await.expect("a port");
        let url = format!("http://{}", http.address());
        let link = http.with_page(&live).expect("random numbers").borrow().clone();
        tokio::spawn(http.serve(live, running.clone()));
        let entered = codecall::http::client(TIMEOUT).expect("a client").get(link).send().await.expect("an answer");
        let cookie = entered.headers()["set-cookie"].to_str().expect("text").to_owned();
        let (own, other) = tokio::io::duplex(1 << 20);
        let handler = Handler::new(Arc::clone(&hub));
        tokio::spawn(async move { handler.serve(tokio::io::split(other)).await.expect("serves").waiting().await });
        let recorded = RecordingClient::default();
        let (read, write) = tokio::io::split(own);
        let transport = AsyncRwTransport::new_client(read, write);
        let connecting = recorded.clone().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize);
        let client = tokio::time::timeout(TIMEOUT, connecting).await.expect("answers").expect("speaks MCP");
        let (kept, _running) = (Vec::new(), running.drop_guard());
        Self { told, folder, hub, database, notifications, client, recorded, url, cookie, audited: 0, kept, _running }
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

    /// Sends a request of the one who operates the server. Returns the body: JSON, or text. What a page shows is text too.
    async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let method = method.parse().expect("a method");
        let request = http_client().request(method, format!("{}{path}", self.url)).header("origin", &self.url);
        let request = match body {
            Value::Null => request,
            // A form of the page.
            Value::String(form) => request.body(form.clone()),
            body => request.header("content-type", "application/json").body(body.to_string()),
        };
        let request = match path.starts_with("/ui/") {
            true => request.header("cookie", &self.cookie),
            false => request.bearer_auth(TOKEN),
        };
        let text = request.send().await.expect("an answer").text().await.expect("text");
        let unescape = |text: &str| {
            let escapes = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
            escapes.iter().fold(text.to_owned(), |text, (escape, c)| text.replace(escape, c))
        };
        serde_json::from_str(&text).unwrap_or_else(|_| Value::String(unescape(&text)))
    }

    async fn get(&self, path: &str) -> Value {
        self.send("GET", path, &Value::Null).await
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        self.send("POST", path, body).await
    }

    /// Sends a form of the page.
    async fn fill(&self, path: &str, pairs: &[(&str, &str)]) -> Value {
        let page = self.get("/ui/script").await;
        let csrf = page.as_str().and_then(|page| page.split("name=\"csrf\" value=\"").nth(1)?.split('"').next());
        let pairs = pairs.iter().copied().chain([("csrf", csrf.expect("a token"))]);
        let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        self.post(path, &form.into()).await
    }

    /// Returns a text from each way out of the server that could contain the secret.
    async fn ways_out(&mut self) -> Vec<Way> {
        let mut ways = self.history().await;
        ways.extend(self.approvals().await);
        ways.extend(self.submitted().await);
        ways.extend(self.page().await);
        for (name, path) in &self.kept {
            ways.push((name, self.get(path).await));
        }
        ways.extend(self.scripts().await);
        ways.extend(self.meta_tools().await);
        ways.extend(self.lists().await);
        ways.extend(self.notifications().await);
        ways.extend(self.endpoints().await);
        ways.extend(self.files().await);
        ways
    }

    /// The records of runs, as the command line shows them. The page shows them later.
    async fn history(&mut self) -> Vec<Way> {
        let runs = SqlRuns(self.database.clone());
        let mut ways = Vec::new();
        for script in [self.told.input(), "return await callTool('leak:fail', {})".to_owned()] {
            self.execute(&script).await;
            self.hub.history().expect("a history").flush().await;
            let filter = RunFilter { limit: 1, ..RunFilter::default() };
            let id = runs.list(&filter).await.expect("a list").pop().expect("a run is recorded").summary.id;
            let (summary, detail) = runs.get(&id).await.expect("readable").expect("a run");
            ways.push(("the history", json!([json!(summary), detail])));
            self.kept.push(("a run on the page", format!("/ui/runs/{id}")));
        }
        ways
    }

    /// Calls that wait for a person, and what the person says.
    async fn approvals(&mut self) -> Vec<Way> {
        let ask = format!("return await callTool('leak:ask', {{ a: {} }})", self.told.literal());
        let waiting = self.execute(&ask).await;
        let shown: Value = serde_json::from_str(waiting["content"][0]["text"].as_str().expect("a text")).expect("JSON");
        let (run, id) = (&shown["handle"], shown["approvals"][0]["id"].as_str().expect("a call that waits"));
        let (one, page) = (format!("/v1/approvals/{id}"), "/ui/approvals");
        let mut ways = vec![
            ("a run that waits", waiting.clone()),
            ("/v1/runs, waiting", self.get(&format!("/v1/runs/{}", run.as_str().expect("a handle"))).await),
            ("/v1/approvals", self.get("/v1/approvals").await),
            ("/v1/approvals/ID", self.get(&one).await),
            ("calls that wait on the page", self.get(page).await),
        ];
        let decision = json!({"decision": "deny", "reason": self.told.deep, "by": self.told.name});
        ways.push(("a decision", self.post(&one, &decision).await));
        ways.push(("a call that was denied", self.call("codecall_execute", json!({"handle": run})).await));
        self.kept.push(("a decided call", one));
        self.kept.push(("decided calls", "/v1/approvals?state=all".to_owned()));
        self.kept.push(("decided calls on the page", page.to_owned()));
        ways
    }

    /// Runs that are submitted, and their outcomes.
    async fn submitted(&mut self) -> Vec<Way> {
        let mut ways = Vec::new();
        for script in
            [format!("return {{ a: {} }}", self.told.literal()), "return await callTool('leak:fail', {})".into()]
        {
            let submitted = self.post("/v1/runs", &json!({"script": script})).await;
            let path = format!("/v1/runs/{}", submitted["id"].as_str().unwrap_or_else(|| panic!("{submitted}")));
            ways.push(("the outcome of a run", self.get(&format!("{path}?wait=60")).await));
            self.kept.push(("the events of a run", format!("{path}/events")));
            self.kept.push(("the outcome of an earlier run", path));
        }
        ways
    }

    /// What the page shows beside runs and approvals.
    async fn page(&self) -> Vec<Way> {
        let (wrong, json) = (format!("return {} +", self.told.literal()), json!({"a": self.told.text}).to_string());
        let refused = format!("[{}", self.told.deep);
        vec![
            ("the runs on the page", self.get("/ui/runs").await),
            ("the tools on the page", self.get("/ui/tools").await),
            ("the search on the page", self.get("/ui/tools?query=signs%20in").await),
            ("a tool on the page", self.get("/ui/tool?name=leak:tell").await),
            ("the servers on the page", self.get("/ui/servers").await),
            ("/v1/status", self.get("/v1/status").await),
            ("a call on the page", self.fill("/ui/tool", &[("name", "leak:tell"), ("json", &json)]).await),
            ("a failed call on the page", self.fill("/ui/tool", &[("name", "leak:fail"), ("json", &json)]).await),
            (
                "a refused run on the page",
                self.fill("/ui/script", &[("script", &wrong), ("parameters", &refused)]).await,
            ),
        ]
    }

    /// A stored tool whose code has the secret in it: it is stored as it is, and masked where it is shown.
    async fn script_tools(&self) -> Vec<Way> {
        const NOTE: &str = "/v1/tools/scripts/note";
        let code = |value: &Value| {
            let head = "/*---\ndescription = \"Notes\"\n---*/\nasync function execute() {\n  return";
            json!({"code": format!("{head} {value};\n}}\n"), "author": self.told.name})
        };
        let mut stored = Vec::new();
        for value in [self.told.literal(), json!(1), self.told.literal()] {
            stored.push(self.send("PUT", NOTE, &code(&value)).await);
        }
        assert!(stored.iter().all(|stored| stored["version"].is_number()), "{stored:?}");
        vec![
            ("a stored tool", self.get(NOTE).await),
            ("its versions", self.get(&format!("{NOTE}/versions")).await),
            ("a stored tool on the page", self.get("/ui/script-tool?name=note").await),
            ("a version on the page", self.get("/ui/script-tool?name=note&version=1").await),
        ]
    }

    /// What cannot contain text of tools or scripts. It only has to be clean.
    async fn figures(&self) -> Vec<Way> {
        let paths =
            ["/metrics", "/readyz", "/healthz", "/v1/models", "/ui/charts", "/ui/secrets", "/ui/script", "/ui/nothing"];
        let mut ways = Vec::new();
        for path in paths {
            ways.push((path, self.get(path).await));
        }
        ways
    }

    async fn scripts(&self) -> Vec<Way> {
        let (secret, input) = (self.told.literal(), self.told.input());
        let log = self.execute(&input).await["_meta"].clone();
        vec![
            ("a result", self.execute("return await callTool('leak:tell', {})").await),
            ("the result of a script", self.execute(&format!("return {{ a: {secret} }}")).await),
            (
                "an error that a script has caught",
                self.execute("return await callTool('leak:fail', {}, { throwOnError: false })").await,
            ),
            ("an error of a tool", self.execute("return await callTool('leak:fail', {})").await),
            ("an error of a script", self.execute(&format!("throw new Error({secret})")).await),
            ("console.log", self.execute(&format!("console.log({secret}); return 1")).await),
            ("a description in a script", self.execute("return getTool('leak:tell').description").await),
            ("the log of calls", log),
            ("a dry run", self.call("codecall_execute", json!({"script": input, "dryRun": true})).await),
        ]
    }

    async fn meta_tools(&self) -> Vec<Way> {
        let (handle, bytes, cut) = self.store_long_result().await;
        let mut ways = vec![
            ("the first piece of a long result", cut),
            ("another piece of it", self.piece(&handle, bytes / 2).await),
            ("codecall_search", self.call("codecall_search", json!({"query": "signs in"})).await),
            ("codecall_describe", self.call("codecall_describe", json!({"toolNames": ["leak:tell"]})).await),
            (
                "codecall_step",
                self.call("codecall_step", json!({"code": format!("return {}", self.told.literal())})).await,
            ),
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
        let (secret, name) = (self.told.literal(), json!(self.told.name));
        let messages =
            format!("mcpLog('info', {secret}, {{ a: {secret} }}); mcpNotify({name}, {{ a: {secret} }}); return 1");
        self.execute(&messages).await;
        let log = LogMessage { level: "error".into(), logger: None, data: json!([self.told.deep]) };
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
        let post = async |path, body| self.post(path, &body).await;
        let code = |code: &str| json!({"code": format!("{code} {}", self.told.literal())});
        let chat = json!({"model": "m", "messages": [{"role": "user", "content": "Hello"}]});
        let mut with_tools = chat.clone();
        with_tools["tools"] =
            json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]);
        let mut streamed = with_tools.clone();
        streamed["stream"] = true.into();
        vec![
            ("/v1/evaluate", post("/v1/evaluate", code("return")).await),
            ("/v1/evaluate, failed", post("/v1/evaluate", code("throw")).await),
            ("/v1/chat/completions, forwarded", post("/v1/chat/completions", chat).await),
            ("/v1/chat/completions", post("/v1/chat/completions", with_tools.clone()).await),
            ("/v1/chat/completions, streamed", post("/v1/chat/completions", streamed).await),
            ("/v1/chat/completions, failed", post("/v1/chat/completions", with_tools).await),
        ]
    }

    /// The bytes of the database.
    fn stored(&self) -> [(&'static str, String); 2] {
        let read = |file| std::fs::read(self.folder.path(file)).unwrap_or_default();
        // What is not a text becomes a sign that no secret has, and the texts between stay as they are.
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let database = read("codecall.db");
        assert!(database.starts_with(b"SQLite format 3"), "there is no database");
        [("the database", text(database)), ("what is added to it", text(read("codecall.db-wal")))]
    }

    async fn files(&mut self) -> Vec<Way> {
        let recording = self.record(&self.told.input()).await;
        let records = std::fs::read_to_string(self.folder.path("audit.jsonl")).expect("records");
        let ways = vec![
            ("a recording", json!(recording)),
            ("an audit record", json!(records[self.audited..])),
            ("a line of the log", json!(redact_log_line(&self.told.deep))),
        ];
        self.audited = records.len();
        ways
    }

    /// Of what a long result consists.
    fn repeated(&self) -> String {
        format!("{} and more ", self.told.text)
    }

    /// Runs a script whose result is too long. Returns the handle, and the answer.
    async fn store_long_result(&self) -> (String, u64, Value) {
        let script = format!("return {}.repeat({})", json!(self.repeated()), 5 + 1_000 / self.repeated().len());
        let limits = json!({"maxResultBytes": 1_000});
        let answer = self.call("codecall_execute", json!({"script": script, "limits": limits})).await;
        let text = answer["content"][0]["text"].as_str().expect("a text");
        let data: Value = serde_json::from_str(text).expect("JSON");
        let handle = data["truncated"]["handle"].as_str().expect("a handle").to_owned();
        (handle, data["truncated"]["bytes"].as_u64().expect("a length"), answer)
    }

    /// Returns a piece of a long result.
    async fn piece(&self, handle: &str, offset: u64) -> Value {
        let limit = 3 * self.repeated().len();
        self.call("codecall_execute", json!({"handle": handle, "offset": offset, "limit": limit})).await
    }

    async fn record(&self, script: &str) -> String {
        let recorder = Recorder::new(script, None, Some(&json!({"a": self.told.deep}).to_string()));
        let journal = Some(Arc::clone(&recorder) as _);
        let request = ExecuteRequest { journal, ..ExecuteRequest::new(script, Policy::default()) };
        let finished = self.hub.execute(request, None, CancellationToken::new()).await;
        recorder.to_file(&finished.outcome, &self.hub.secrets().redactor())
    }
}

/// Every way out, before the secret is added and afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn no_way_out_lets_a_secret_pass_that_was_added_later() {
    let mut world = World::start(Told::only(SECRET), 2, &[]).await;
    let mut ways = world.ways_out().await;
    ways.extend(world.script_tools().await);
    let useless: Vec<_> = ways.iter().filter(|(_, left)| !left.to_string().contains(SECRET)).collect();
    assert!(ways.len() > 40 && useless.is_empty(), "they do not show what is to be redacted: {useless:#?}");
    let (handle, ..) = world.store_long_result().await;
    world.hub.secrets().add(SECRET).expect("long enough");
    let mut ways = world.ways_out().await;
    ways.extend(world.script_tools().await);
    let is_clean = |left: &str| left.contains("[secret]") && !left.contains(SECRET);
    let leaks: Vec<_> = ways.iter().filter(|(_, left)| !is_clean(&left.to_string())).collect();
    assert!(ways.len() > 40 && leaks.is_empty(), "{leaks:#?}");
    let figures = world.figures().await;
    let leaks: Vec<_> = figures.iter().filter(|(_, left)| left.to_string().contains(SECRET)).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
    // It begins and ends in a secret.
    let piece = world.piece(&handle, world.repeated().len() as u64 / 2).await.to_string();
    assert!(!piece.contains("late") && !piece.contains("9Kd_5w") && piece.contains("[secret] and more"), "{piece}");
    // Clients are told that the descriptions have changed.
    until("the notification", || world.recorded.changes.load(Ordering::Relaxed) > 0).await;
    world.hub.close().await;
}

/// Returns what random secrets are told as, and what finds them.
fn random_told(random: &mut Random, secrets: &[String]) -> (Told, Needles) {
    let (mut all, mut needles) = (Vec::new(), Needles::default());
    for secret in secrets {
        let own = spellings(secret);
        own.iter().for_each(|spelling| needles.add(secret, spelling));
        all.extend(own);
    }
    let text = written(all, random);
    // Where a long text is cut, only parts of single encodings are found, so the pairs are at its beginning.
    let mut pairs: Vec<_> =
        secrets.iter().flat_map(|secret| [0; PAIRS].map(|_| (secret, pair(secret, random)))).collect();
    pairs.retain(|(_, pair)| pair.text.len() <= MAX_PAIR_BYTES);
    pairs.iter().for_each(|(secret, pair)| needles.add(secret, pair));
    let some = spellings(&secrets[0]).into_iter().filter(|_| random.below(4) == 0).collect();
    let streamed = written(some, random);
    let deep = written(pairs.into_iter().map(|(_, pair)| pair).collect(), random) + &text;
    (Told { name: secrets[0].clone(), text, deep, streamed }, needles)
}

/// Every way out, with secrets that are known from the start, in every spelling. `CODECALL_TEST_SEED` and
/// `CODECALL_TEST_ROUNDS` make other secrets, and more.
#[tokio::test(flavor = "multi_thread")]
async fn no_way_out_lets_random_secrets_pass() {
    let number = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().expect("a number"));
    let seed = number("CODECALL_TEST_SEED", 1);
    let mut rounds = stream::iter(seed..seed + number("CODECALL_TEST_ROUNDS", ROUNDS))
        .map(|seed| tokio::spawn(random_round(seed)))
        .buffer_unordered(AT_ONCE);
    while let Some(round) = rounds.next().await {
        round.expect("no leak");
    }
}

async fn random_round(seed: u64) {
    let mut random = Random(seed);
    let mut secrets = vec![random.secret()];
    while secrets.iter().map(String::len).sum::<usize>() < BYTES_OF_A_ROUND {
        secrets.push(random.secret());
    }
    let (told, needles) = random_told(&mut random, &secrets);
    let mut world = World::start(told, 1, &secrets).await;
    let mut ways = world.ways_out().await;
    let silent: Vec<_> = ways.iter().filter(|(_, left)| !left.to_string().contains("[secret]")).collect();
    assert!(silent.is_empty(), "CODECALL_TEST_SEED={seed}: they do not show what is to be redacted: {silent:#?}");
    ways.extend(world.figures().await);
    world.hub.history().expect("a history").flush().await;
    let stored = world.stored();
    // Their code is what its author has written, and is stored as it is.
    ways.extend(world.script_tools().await);
    world.hub.close().await;
    let texts = ways.into_iter().map(|(name, left)| match left {
        Value::String(text) => (name, text),
        left => (name, left.to_string()),
    });
    let leaks: BTreeSet<_> =
        texts.chain(stored).filter_map(|(name, text)| Some((name, needles.find(&text)?.to_owned()))).collect();
    assert!(leaks.is_empty(), "CODECALL_TEST_SEED={seed} {secrets:?}: {leaks:#?}");
}

/// What an MCP server writes to its stderr is a part of the log, and of the reason why it has ended.
#[tokio::test]
async fn no_line_of_the_log_has_a_random_secret() {
    let (folder, mut random, mut needles) = (Folder::new(), Random(7), Needles::default());
    let (mut environment, mut lines) = (Map::new(), Vec::new());
    while environment.len() < 4 {
        let secret = random.secret();
        // No variable of an environment has it.
        if secret.contains('\0') || secret.len() > 60 {
            continue;
        }
        let own = spellings(&secret);
        own.iter().for_each(|spelling| needles.add(&secret, spelling));
        lines.push(written(own, &mut random));
        environment.insert(format!("KEY_{}", environment.len()), secret.into());
    }
    let output = folder.file("output", lines.join("\n") + "\n");
    // The last lines are those of the message.
    let tells = json!({"command": "sh", "args": ["-c", "cat \"$0\" >&2", output], "env": environment});
    let config = folder.file("config.json", json!({"mcpServers": {"leak": tells}}).to_string());
    for format in ["text", "json"] {
        let words = ["-v", "--log-format", format, "--config", &config];
        let server = Server::start(&words).await;
        let failed = server.call("codecall_execute", json!({"script": "return await callTool('leak:a', {})"})).await;
        let failed = json!(failed.expect("a result")).to_string();
        let stderr = server.end().await;
        assert!(stderr.matches("[secret]").count() > 10, "{stderr}");
        assert_eq!((needles.find(&stderr), needles.find(&failed)), (None, None), "{stderr}\n{failed}");
    }
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
