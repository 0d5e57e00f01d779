//! A server with all that can leave it: each way out is collected.

use super::config;
use super::leaky::{Leaky, Told};
use crate::model_server::{KEY, Model, ModelReply, http_client};
use crate::support::*;
use agentscript::Policy;
use codecall::event::LogMessage;
use codecall::http::HttpServer;
use codecall::mcp::Handler;
use codecall::redact::redact_log_line;
use codecall::runs::ExecuteRequest;
use codecall::stateless::MemoryRecorder;
use codecall::store::{Database, RunFilter, RunStore as _, SqlRuns};
use codecall::upstream::{Upstream, UpstreamNotification};
use codecall::{Extensions, Hub, LiveHub, meta};
use rmcp::model::*;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RunningService};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The token of the one who operates the server.
const TOKEN: &str = "operator-0123456789-abcdef";

/// A way out of the server, and what has left through it.
pub type Way = (&'static str, Value);

/// A hub with that upstream, an MCP client, an HTTP server and a model server.
pub struct World {
    told: Told,
    folder: Folder,
    pub hub: Arc<Hub>,
    database: Database,
    notifications: broadcast::Sender<UpstreamNotification>,
    client: RunningService<RoleClient, RecordingClient>,
    pub recorded: RecordingClient,
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
    pub async fn start(told: Told, rounds: usize, secrets: &[String]) -> Self {
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
    pub async fn ways_out(&mut self) -> Vec<Way> {
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
        let shown = waiting["structuredContent"].clone();
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

    /// Returns the parts of the page beside runs and approvals.
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
    pub async fn script_tools(&self) -> Vec<Way> {
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

    /// Returns figures, which cannot contain text of tools or scripts. They only have to be clean.
    pub async fn figures(&self) -> Vec<Way> {
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
            ("what is odd about tools", json!(self.hub.pipeline().oddities())),
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
                // It has the handle of a run, and nothing of the run.
                Some("durable_run") => {}
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
    pub fn stored(&self) -> [(&'static str, String); 2] {
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
    pub fn repeated(&self) -> String {
        format!("{} and more ", self.told.text)
    }

    /// Runs a script whose result is too long. Returns the handle, and the answer.
    pub async fn store_long_result(&self) -> (String, u64, Value) {
        let script = format!("return {}.repeat({})", json!(self.repeated()), 5 + 1_000 / self.repeated().len());
        let limits = json!({"maxResultBytes": 1_000});
        let answer = self.call("codecall_execute", json!({"script": script, "limits": limits})).await;
        let data = &answer["structuredContent"];
        let handle = data["truncated"]["handle"].as_str().expect("a handle").to_owned();
        (handle, data["truncated"]["bytes"].as_u64().expect("a length"), answer)
    }

    /// Returns a piece of a long result.
    pub async fn piece(&self, handle: &str, offset: u64) -> Value {
        let limit = 3 * self.repeated().len();
        self.call("codecall_execute", json!({"handle": handle, "offset": offset, "limit": limit})).await
    }

    async fn record(&self, script: &str) -> String {
        let recorder = MemoryRecorder::new(script, None, Some(&json!({"a": self.told.deep}).to_string()));
        let journal = Some(Arc::clone(&recorder) as _);
        let request = ExecuteRequest { journal, ..ExecuteRequest::new(script, Policy::default()) };
        let finished = self.hub.execute(request, None, CancellationToken::new()).await;
        recorder.to_file(&finished.outcome, &self.hub.secrets().redactor())
    }
}
