//! Tools that ask the client: a fixture of both lifecycles, `server-everything`, and clients of both lifecycles.

pub mod fixture;

use crate::model_server::{HttpProcess, http_client};
use crate::support::*;
use crate::third_party::{client, node_package, python};
use rmcp::model::*;
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, NotificationContext, Peer, RequestContext, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::process::{Child, Command};

const EVERYTHING: &str = "@modelcontextprotocol/server-everything/dist/index.js";

/// A client that answers what it is asked.
#[derive(Clone)]
struct Person {
    capabilities: Value,
    action: ElicitationAction,
    /// The folder that it works on.
    root: String,
    /// How long it takes to answer.
    thinks: Duration,
    /// The questions to it: the messages.
    asked: Arc<Mutex<Vec<String>>>,
    /// The pages of which it was told that they are done.
    pages: Arc<Mutex<Vec<String>>>,
}

impl Person {
    fn new(capabilities: Value) -> Self {
        let (root, thinks, asked) = ("file:///work".to_owned(), Duration::ZERO, Arc::default());
        Self { capabilities, action: ElicitationAction::Accept, root, thinks, asked, pages: Arc::default() }
    }

    fn able() -> Self {
        Self::new(json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}))
    }

    fn note(&self, message: impl Into<String>) {
        self.asked.lock().expect("not poisoned").push(message.into());
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().expect("not poisoned"))
    }
}

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let capabilities = serde_json::from_value(self.capabilities.clone()).expect("capabilities");
        let mut config = ClientConfig::new(capabilities, Implementation::new("person", "1"));
        config.protocol_version = ProtocolVersion::V_2025_11_25;
        config
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let (message, content) = match request {
            ElicitRequestParams::FormElicitationParams { message, .. } => (message, Some(json!({"name": "Ada"}))),
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => (format!("{message} {url}"), None),
            other => panic!("{other:?}"),
        };
        self.note(message);
        tokio::time::sleep(self.thinks).await;
        let mut result = ElicitResult::new(self.action.clone());
        result.content = content.filter(|_| self.action == ElicitationAction::Accept);
        Ok(result)
    }

    #[expect(deprecated, reason = "current servers still ask for it")]
    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.note(serde_json::to_string(&request.messages).expect("JSON"));
        let answer = json!({"role": "assistant", "content": {"type": "text", "text": "forty-two"}, "model": "m"});
        Ok(serde_json::from_value(answer).expect("a message"))
    }

    #[expect(deprecated, reason = "current servers still ask for it")]
    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.note("roots");
        Ok(serde_json::from_value(json!({"roots": [{"uri": self.root, "name": "work"}]})).expect("roots"))
    }

    async fn on_custom_notification(&self, notification: CustomNotification, _: NotificationContext<RoleClient>) {
        if notification.method == "notifications/elicitation/complete" {
            let id = notification.params.and_then(|params| Some(params["elicitationId"].as_str()?.to_owned()));
            self.pages.lock().expect("not poisoned").extend(id);
        }
    }
}

/// `codecall serve` and a client that answers.
struct Session {
    _child: Child,
    client: RunningService<RoleClient, Person>,
    person: Person,
}

impl Session {
    async fn start(config: &str, person: &Person, lifecycle: ClientLifecycleMode) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--config", config]).kill_on_drop(true);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let (stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let transport = AsyncRwTransport::new_client(stdout, stdin);
        let connecting = person.clone().serve_with_lifecycle(transport, lifecycle);
        let client = tokio::time::timeout(TIMEOUT, connecting).await.expect("answers").expect("speaks MCP");
        Self { _child: child, client, person: person.clone() }
    }

    /// Calls a tool. What it asks is answered.
    async fn call(&self, tool: &str, arguments: Value) -> CallToolResult {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        tokio::time::timeout(TIMEOUT, self.client.call_tool(request)).await.expect("answers").expect("a result")
    }

    async fn execute(&self, script: &str) -> Value {
        data(&self.call("codecall_execute", json!({"script": script})).await)
    }

    async fn invoke(&self, tool: &str) -> Value {
        data(&self.call("codecall_invoke", json!({"tool": tool, "input": {}})).await)
    }
}

fn lifecycles() -> [ClientLifecycleMode; 2] {
    [ClientLifecycleMode::Initialize, modern()]
}

/// A configuration with the fixture in both lifecycles.
async fn config(folder: &Folder, more: Value) -> String {
    let url = fixture::serve().await;
    let mut config = json!({
        "mcpServers": {"legacy": {"url": url, "lifecycle": "initialize"}, "modern": {"url": url, "lifecycle": "discover"}},
        "store": folder.path("codecall.db"),
    });
    config.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    folder.file("config.json", config.to_string())
}

/// Scripts and `codecall_invoke`, for servers and clients of both lifecycles.
#[tokio::test]
async fn tools_ask_the_client_of_their_run() {
    let folder = Folder::new();
    let config = config(&folder, json!({})).await;
    for lifecycle in lifecycles() {
        let session = Session::start(&config, &Person::able(), lifecycle).await;
        for app in ["legacy", "modern"] {
            let answer = session.invoke(&format!("{app}:greet")).await;
            assert_eq!(answer, json!({"status": "ok", "result": "accept Ada"}), "{app}");
            assert_eq!(session.person.asked(), [format!("[{app}] Your name?")]);
            let script = format!("
                const all = await Promise.all([{app}.greet({{}}), {app}.think({{}}), {app}.where({{}}), {app}.sign_in({{}})]);
                const again = await {app}.greet({{}});
                return [...all, again];");
            let answer = session.execute(&script).await;
            let expected = json!(["accept Ada", "forty-two", "file:///work", "accept", "accept Ada"]);
            assert_eq!((&answer["status"], &answer["result"]), (&json!("ok"), &expected), "{app}: {answer}");
            let mut asked = session.person.asked();
            asked.sort();
            let sampling = r#"[{"role":"user","content":{"type":"text","text":"6 × 7?"}}]"#;
            let greeting = format!("[{app}] Your name?");
            let page = format!("[{app}] Sign in https://example.com/login?state=1");
            assert_eq!(asked, [page.as_str(), &greeting, &greeting, sampling, "roots"]);
        }
        // One call of a server without a session may ask several questions, and again in the next round.
        let answer = session.invoke("modern:rounds").await;
        assert_eq!(answer["result"], "accept Ada, accept Ada, forty-two", "{answer}");
        let task = session.invoke("modern:errand").await;
        assert_eq!(task["result"], "task: accept Ada", "{task}");
    }
}

#[tokio::test]
async fn a_person_declines() {
    let folder = Folder::new();
    let config = config(&folder, json!({})).await;
    for lifecycle in lifecycles() {
        let person = Person { action: ElicitationAction::Decline, ..Person::able() };
        let session = Session::start(&config, &person, lifecycle).await;
        for app in ["legacy", "modern"] {
            let answer = session.execute(&format!("return await {app}.greet({{}})")).await;
            assert_eq!(answer["result"], "decline", "{app}: {answer}");
        }
    }
}

/// Nobody answers in the name of a person.
#[tokio::test]
async fn a_client_that_cannot_be_asked() {
    let folder = Folder::new();
    let config = config(&folder, json!({})).await;
    for lifecycle in lifecycles() {
        let session = Session::start(&config, &Person::new(json!({"sampling": {}})), lifecycle).await;
        for app in ["legacy", "modern"] {
            let answer = session.invoke(&format!("{app}:greet")).await;
            let expected = format!(
                "Tool '{app}:greet' asks a person for input (\"Your name?\"), but the MCP client of this request has not declared \
                 the capability 'elicitation'"
            );
            assert_eq!(
                (&answer["error"]["code"], &answer["error"]["message"]),
                (&json!("INPUT_REQUIRED"), &json!(expected))
            );
            let caught =
                format!("try {{ await {app}.where({{}}) }} catch (error) {{ return [error.code, error.message] }}");
            let answer = session.execute(&caught).await;
            let message = answer["result"][1].as_str().unwrap_or_default();
            assert!(message.ends_with("has not declared the capability 'roots'"), "{answer}");
            assert_eq!(session.invoke(&format!("{app}:think")).await["result"], "forty-two");
        }
    }
    for app in ["legacy", "modern"] {
        let called = codecall(&["invoke", &format!("{app}:greet"), "--config", &config]).await;
        let error = &called.json()["error"];
        assert_eq!(error["code"], "INPUT_REQUIRED", "{called:?}");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(
            message
                .ends_with("but nobody can be asked here: this needs an MCP client with the capability 'elicitation'"),
            "{message}"
        );
    }
}

/// The time of a person is not that of the tool or the script, up to a maximum. So are the number and the size of questions.
#[tokio::test]
async fn questions_are_limited() {
    let folder = Folder::new();
    let slow = Person { thinks: Duration::from_millis(1_500), ..Person::able() };
    let limits = json!({"vm": {"toolTimeoutMs": 700, "maxDurationMs": 1_000}});
    let own = config(&folder, limits.clone()).await;
    for lifecycle in lifecycles() {
        let session = Session::start(&own, &slow, lifecycle).await;
        for app in ["legacy", "modern"] {
            let answer = session.execute(&format!("return await {app}.greet({{}})")).await;
            assert_eq!(answer["result"], "accept Ada", "{app}: {answer}");
            // The limits still hold for the rest.
            let answer = session.execute(&format!("await {app}.greet({{}}); for (;;) await sleep(10)")).await;
            assert_eq!(answer["status"], "timeout", "{app}: {answer}");
        }
    }
    let mut limits = limits;
    limits["interaction"] = json!({"maxWaitMs": 300, "maxQuestions": 2, "maxQuestionBytes": 2048});
    let other = Folder::new();
    let own = config(&other, limits).await;
    let session = Session::start(&own, &slow, ClientLifecycleMode::Initialize).await;
    let answer = session.invoke("legacy:greet").await;
    assert!(
        answer["error"]["message"].as_str().is_some_and(|text| text.ends_with("within 300 ms (interaction.maxWaitMs)")),
        "{answer}"
    );
    drop(session);
    let session = Session::start(&own, &Person::able(), ClientLifecycleMode::Initialize).await;
    for app in ["legacy", "modern"] {
        let answer = session.invoke(&format!("{app}:nag")).await;
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("at most 2 times")), "{answer}");
        assert!(session.person.asked().len() <= 2);
        let answer = session.invoke(&format!("{app}:shout")).await;
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("more than 2048")), "{answer}");
        assert_eq!(session.person.asked().len(), 0);
    }
}

/// A question to a person has no secrets, no control characters, and says whose question it is.
#[tokio::test]
async fn questions_are_cleaned() {
    let folder = Folder::new();
    let config = config(&folder, json!({"model": {"url": "http://127.0.0.1:9/v1", "key": "topsecret-1234"}})).await;
    let session = Session::start(&config, &Person::able(), modern()).await;
    for app in ["legacy", "modern"] {
        let answer = session.invoke(&format!("{app}:trick")).await;
        assert_eq!(answer["status"], "ok", "{answer}");
        assert_eq!(session.person.asked(), [format!("[{app}] key [secret] is exe.safe")]);
    }
}

/// A client without a session repeats its request with the state that it got, once.
#[tokio::test]
async fn a_state_is_used_once_for_the_same_request() {
    let folder = Folder::new();
    let config = config(&folder, json!({"expose": "direct"})).await;
    let session = Session::start(&config, &Person::able(), modern()).await;
    let peer = session.client.peer();
    let call = |state: Option<&str>, responses: Option<Value>, arguments: Value| {
        let mut request = CallToolRequestParams::new("modern_greet")
            .with_arguments(arguments.as_object().expect("an object").clone());
        request.request_state = state.map(str::to_owned);
        request.input_responses = responses.map(|responses| serde_json::from_value(responses).expect("responses"));
        peer.call_tool_once(request)
    };
    let required = |response| match response {
        Ok(CallToolResponse::InputRequired(required)) => required,
        other => panic!("{other:?}"),
    };
    let asked = required(call(None, None, json!({})).await);
    let keys: Vec<String> = asked.input_requests.iter().flatten().map(|(key, _)| key.clone()).collect();
    assert_eq!(keys, ["user_name"], "the keys are those of the server");
    let state = asked.request_state.expect("a state");
    let yes = json!({"user_name": {"action": "accept", "content": {"name": "Ada"}}});
    assert!(call(Some(&format!("{state}0")), Some(yes.clone()), json!({})).await.is_err(), "an unknown state");
    assert!(call(Some(&state), Some(yes.clone()), json!({"other": 1})).await.is_err(), "another request");
    // A wrong answer, or none, is asked for again.
    let again = required(call(Some(&state), Some(json!({"user_name": 7, "other": {}})), json!({})).await);
    let next = again.request_state.expect("a state");
    assert_ne!(state, next);
    let done = call(Some(&next), Some(yes.clone()), json!({})).await;
    assert!(matches!(&done, Ok(CallToolResponse::Complete(result)) if text(result) == "accept Ada"), "{done:?}");
    assert!(call(Some(&next), Some(yes.clone()), json!({})).await.is_err(), "it was used");
    // Answers that come with the first request are used too.
    let done = call(None, Some(yes), json!({})).await;
    assert!(matches!(&done, Ok(CallToolResponse::Complete(result)) if text(result) == "accept Ada"), "{done:?}");
}

/// Prompts and resources ask too, and arguments are completed.
#[tokio::test]
async fn everything_is_exposed_directly() {
    let folder = Folder::new();
    let url = fixture::serve().await;
    for upstream in ["initialize", "discover"] {
        let config = json!({"mcpServers": {"f": {"url": url, "lifecycle": upstream}}, "expose": "direct"});
        let config = folder.file("direct.json", config.to_string());
        for lifecycle in lifecycles() {
            let session = Session::start(&config, &Person::able(), lifecycle).await;
            assert_eq!(text(&session.call("greet", json!({})).await), "accept Ada");
            let prompt = session.client.get_prompt(GetPromptRequestParams::new("ask")).await.expect("a prompt");
            assert!(json!(prompt).to_string().contains("accept Ada"), "{prompt:?}");
            let read =
                session.client.read_resource(ReadResourceRequestParams::new("fixture://ask")).await.expect("read");
            assert!(json!(read).to_string().contains("accept Ada"), "{read:?}");
            let peer = session.client.peer();
            let completed = peer.complete_prompt_simple("ask", "name", "A").await.expect("completed");
            assert_eq!(completed, ["A1", "A2"]);
            let completed = peer.complete_resource_simple("fixture://{id}", "id", "B").await.expect("completed");
            assert_eq!(completed, ["B1", "B2"]);
            assert!(peer.complete_prompt_simple("none", "name", "A").await.is_err());
        }
    }
}

/// A server over standard input and output does not say which call it asks for.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn everything_asks() {
    let everything = node_package(EVERYTHING);
    let folder = Folder::new();
    let servers = json!({"everything": {"command": "node", "args": [everything, "stdio"]}});
    let config = folder.file("config.json", json!({"mcpServers": servers, "expose": "direct"}).to_string());
    for lifecycle in lifecycles() {
        let session = Session::start(&config, &Person::able(), lifecycle).await;
        let script = "
            const [form, message] = await Promise.all([
              callTool('everything:trigger-elicitation-request', {}),
              callTool('everything:trigger-sampling-request', { prompt: 'hello', maxTokens: 10 }),
            ]);
            const roots = await callTool('everything:get-roots-list', {});
            return { form, message, roots };";
        let answer = session.execute(script).await;
        let all = answer.to_string();
        assert_eq!(answer["status"], "ok", "{answer}");
        assert!(all.contains("Ada") && all.contains("forty-two") && all.contains("file:///work"), "{answer}");
        let asked = session.person.asked().join("\n");
        assert!(asked.contains("[everything] Please provide inputs") && asked.contains("hello"), "{asked}");
        let direct = session.call("trigger-elicitation-request", json!({})).await;
        assert!(json!(direct).to_string().contains("Ada"), "{direct:?}");
        let answer = session.invoke("everything:trigger-url-elicitation").await;
        assert!(answer.to_string().contains("url") || answer["status"] == "error", "{answer}");
        drop(session);
        let session = Session::start(&config, &Person::new(json!({})), ClientLifecycleMode::Initialize).await;
        let answer = session.invoke("everything:trigger-elicitation-request").await;
        assert_eq!(answer["error"]["code"], "INPUT_REQUIRED", "{answer}");
    }
}

/// Waits for the end of a task. Its questions are answered.
async fn ended(peer: &Peer<RoleClient>, id: &str) -> TaskPayload {
    let began = tokio::time::Instant::now();
    loop {
        assert!(began.elapsed() < TIMEOUT, "it does not end");
        tokio::time::sleep(Duration::from_millis(50)).await;
        match peer.get_task(GetTaskParams::new(id)).await.expect("a task").task.payload {
            TaskPayload::InputRequired { input_requests } => {
                let answer = json!({"action": "accept", "content": {"name": "Ada"}});
                let answers = input_requests.into_keys().map(|key| (key, answer.clone())).collect();
                peer.update_task(UpdateTaskParams::new(id, answers)).await.expect("updated");
            }
            TaskPayload::Working => {}
            payload => return payload,
        }
    }
}

/// A client that knows tasks gets one for a long run, also if the run asks. It can cancel the task.
#[tokio::test]
async fn long_runs_are_tasks() {
    let folder = Folder::new();
    let config = config(&folder, json!({"interaction": {"taskAfterMs": 200}})).await;
    let mut person = Person::able();
    person.capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    let session = Session::start(&config, &person, modern()).await;
    let peer = session.client.peer();
    let start = async |script: &str| {
        let arguments = json!({"script": script}).as_object().expect("an object").clone();
        let request = CallToolRequestParams::new("codecall_execute").with_arguments(arguments);
        match peer.call_tool_once(request).await {
            Ok(CallToolResponse::Task(created)) => created.task.task_id,
            other => panic!("{other:?}"),
        }
    };
    for app in ["legacy", "modern"] {
        let id = start(&format!("await sleep(600); return await {app}.greet({{}})")).await;
        match ended(peer, &id).await {
            TaskPayload::Completed { result } => {
                let result = serde_json::from_value(Value::Object(result)).expect("a result");
                assert_eq!(data(&result)["result"], "accept Ada", "{app}");
            }
            other => panic!("{other:?}"),
        }
    }
    let id = start("await sleep(50000)").await;
    peer.cancel_task(CancelTaskParams::new(id.clone())).await.expect("cancelled");
    assert_eq!(ended(peer, &id).await, TaskPayload::Cancelled);
    // What is short is no task.
    let answer = session.execute("return 1").await;
    assert_eq!(answer["result"], 1);
}

/// A task of a server is one of its client at once, with its questions, if the client knows tasks; otherwise it is waited for.
#[tokio::test]
async fn tasks_of_servers_pass() {
    let folder = Folder::new();
    let config = config(&folder, json!({"expose": "direct", "vm": {"toolTimeoutMs": 1000}})).await;
    let mut person = Person::able();
    let waiting = Session::start(&config, &person, modern()).await;
    assert!(json!(waiting.call("modern:errand", json!({})).await).to_string().contains("task: accept Ada"));
    person.capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    let session = Session::start(&config, &person, modern()).await;
    let peer = session.client.peer();
    let start = async |request: CallToolRequestParams| match peer.call_tool_once(request).await {
        Ok(CallToolResponse::Task(created)) => created.task,
        other => panic!("{other:?}"),
    };
    let task = start(CallToolRequestParams::new("modern:errand")).await;
    assert_eq!((task.poll_interval_ms, task.status), (Some(50), TaskStatus::Working));
    // The limit of a call is not that of a task.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let found = peer.get_task(GetTaskParams::new(task.task_id.clone())).await.expect("a task");
    let TaskPayload::InputRequired { input_requests } = &found.task.payload else { panic!("{found:?}") };
    assert!(input_requests.contains_key("user_name"), "the key is the server's: {input_requests:?}");
    match ended(peer, &task.task_id).await {
        TaskPayload::Completed { result } => {
            assert!(json!(result).to_string().contains("task: accept Ada"), "{result:?}")
        }
        other => panic!("{other:?}"),
    }
    // A call by `codecall_invoke` is nothing else than this call.
    let arguments = json!({"tool": "modern:errand", "input": {}}).as_object().expect("an object").clone();
    let task = start(CallToolRequestParams::new("codecall_invoke").with_arguments(arguments)).await;
    peer.cancel_task(CancelTaskParams::new(task.task_id.clone())).await.expect("cancelled");
    assert_eq!(ended(peer, &task.task_id).await, TaskPayload::Cancelled);
    // In a script, it is waited for.
    let answer = session.execute("return 1 + (await modern.greet({})).length").await;
    assert_eq!(answer["status"], "ok", "{answer}");
}

/// A tool of version 2025-11-25 that can only be called as a task.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn experimental_tasks() {
    let everything = node_package(EVERYTHING);
    let folder = Folder::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let mut command = Command::new("node");
    command
        .arg(&everything)
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _http = command.kill_on_drop(true).spawn().expect("starts");
    let servers = json!({
        "pipe": {"command": "node", "args": [everything, "stdio"]},
        "http": {"url": format!("http://127.0.0.1:{port}/mcp")},
    });
    let config = folder.file("config.json", json!({"mcpServers": servers}).to_string());
    let session = Session::start(&config, &Person::able(), ClientLifecycleMode::Initialize).await;
    for app in ["pipe", "http"] {
        let script = format!("return await callTool('{app}:simulate-research-query', {{ topic: 'bees' }})");
        let began = tokio::time::Instant::now();
        let answer = loop {
            let answer = session.execute(&script).await;
            if answer["error"]["code"] != "SERVER_UNAVAILABLE" || began.elapsed() > TIMEOUT {
                break answer;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        };
        assert!(answer["status"] == "ok" && answer.to_string().contains("# Research Report: bees"), "{app}: {answer}");
    }
    let mut person = Person::able();
    person.capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
    let session = Session::start(&config, &person, modern()).await;
    let arguments = json!({"tool": "pipe:simulate-research-query", "input": {"topic": "bees"}})
        .as_object()
        .expect("an object")
        .clone();
    let request = CallToolRequestParams::new("codecall_invoke").with_arguments(arguments);
    let Ok(CallToolResponse::Task(created)) = session.client.peer().call_tool_once(request).await else {
        panic!("a task")
    };
    match ended(session.client.peer(), &created.task.task_id).await {
        TaskPayload::Completed { result } => {
            assert!(json!(result).to_string().contains("Research Report"), "{result:?}")
        }
        other => panic!("{other:?}"),
    }
}

/// A server says that a page is done, while its call waits and after it has failed; only the client that was asked is told.
#[tokio::test]
async fn a_page_is_done() {
    let folder = Folder::new();
    let config = config(&folder, json!({"expose": "direct"})).await;
    let [asked, other] = [Person::able(), Person::able()];
    let http = HttpProcess::start(&["--config", &config]).await;
    let connect = async |person: &Person| {
        let url = format!("{}/mcp", http.url);
        let config = StreamableHttpClientTransportConfig::with_uri(url);
        let transport = StreamableHttpClientTransport::with_client(http_client(), config);
        let connecting = person.clone().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize);
        connecting.await.expect("speaks MCP")
    };
    let (first, _second) = (connect(&asked).await, connect(&other).await);
    for tool in ["open_page", "page_first"] {
        let called = first.call_tool(CallToolRequestParams::new(format!("legacy:{tool}"))).await;
        assert_eq!(called.is_ok(), tool == "open_page", "{called:?}");
        until("the client is told", || asked.pages.lock().expect("not poisoned").contains(&format!("{tool}-1"))).await;
    }
    assert_eq!(*other.pages.lock().expect("not poisoned"), Vec::<String>::new());
}

/// The SDKs of others as clients, over standard input and output and over HTTP.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn clients_of_others_answer() {
    let folder = Folder::new();
    let config = config(&folder, json!({})).await;
    let http = HttpProcess::start(&["--config", &config]).await;
    node_package("@modelcontextprotocol/sdk");
    for (program, script) in [("node".into(), "interactive.mjs"), (python("python"), "interactive.py")] {
        let script = client(script);
        for words in [vec![PROGRAM.to_owned(), config.clone()], vec![format!("{}/mcp", http.url)]] {
            let ran = finish(Command::new(&program).arg(&script).args(words), "").await;
            assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "ok"), "{ran:?}");
        }
    }
}

/// A server asks for roots when it starts, and again when they change. Over standard input and output there is one client.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn a_server_uses_the_roots_of_the_only_client() {
    let files = node_package("@modelcontextprotocol/server-filesystem/dist/index.js");
    let folder = Folder::new();
    folder.file("root/hello.txt", "hello");
    let servers = json!({"files": {"command": "node", "args": [files]}});
    let config = folder.file("config.json", json!({"mcpServers": servers}).to_string());
    let root = folder.path("root");
    let person = Person { root: format!("file://{root}"), ..Person::able() };
    let session = Session::start(&config, &person, ClientLifecycleMode::Initialize).await;
    let began = tokio::time::Instant::now();
    loop {
        let answer =
            session.execute(&format!("return await files.read_text_file({{ path: '{root}/hello.txt' }})")).await;
        if answer["status"] == "ok" {
            assert!(answer["result"].to_string().contains("hello"), "{answer}");
            return;
        }
        // The server asks after it has started.
        assert!(began.elapsed() < TIMEOUT, "{answer}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
