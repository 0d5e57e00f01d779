//! What the tests share: folders that go away, the program, an MCP client that remembers.

use rmcp::model::*;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RunningService, ServiceError};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Map, Value};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_codecall");

/// How long anything may take at most: long enough for a busy machine, short enough to be told.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Tell that something was not tested. The harness shows what tests print only when they fail, so
/// this goes past it.
pub fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// The configuration of a hub in this process: scripts run where the programs that are started here run
/// them too, on threads or, with `CODECALL_ISOLATION=process`, in worker processes.
pub fn isolated(mut config: codecall::Config) -> codecall::Config {
    config.isolation.program = Some(PROGRAM.into());
    if std::env::var("CODECALL_ISOLATION").is_ok_and(|mode| mode == "process") {
        config.isolation.mode = codecall::config::IsolationMode::Process;
    }
    config
}

/// A folder that goes away with its owner.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("codecall-system-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Write a file; gives its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(&path, content).expect("a file");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a program has left behind.
#[derive(Debug)]
pub struct Finished {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// The only line of stdout, as JSON.
    pub fn json(&self) -> Value {
        let mut lines = self.stdout.lines();
        match (lines.next(), lines.next()) {
            (Some(line), None) => serde_json::from_str(line).expect("a line of JSON"),
            _ => panic!("not one line: {self:?}"),
        }
    }

    /// Every line of stdout, as JSON.
    pub fn json_lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}

/// Run the program to its end.
pub async fn codecall(words: &[&str]) -> Finished {
    finish(Command::new(PROGRAM).args(words), "").await
}

/// Run a command to its end.
pub async fn finish(command: &mut Command, input: &str) -> Finished {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.env_remove("RUST_LOG").spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("piped");
    // A program that does not read its input has ended already.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.expect("ends").expect("ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Finished { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// An MCP client that remembers what it was told.
#[derive(Clone, Default)]
pub struct Witness {
    pub progress: Arc<Mutex<Vec<ProgressNotificationParam>>>,
    pub logs: Arc<Mutex<Vec<Value>>>,
    pub events: Arc<Mutex<Vec<Value>>>,
    pub changes: Arc<AtomicU32>,
    /// Changes of the list of resources.
    pub resources: Arc<AtomicU32>,
    /// Addresses of resources that have changed.
    pub updated: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for Witness {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::new(ClientCapabilities::default(), Implementation::new("witness", "1"));
        config.protocol_version = ProtocolVersion::V_2025_11_25;
        config
    }

    async fn on_progress(&self, told: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().expect("not poisoned").push(told);
    }

    #[expect(deprecated, reason = "clients of today listen to it")]
    async fn on_logging_message(&self, told: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        self.logs.lock().expect("not poisoned").push(serde_json::to_value(told).expect("JSON"));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.resources.fetch_add(1, Ordering::Relaxed);
    }

    async fn on_resource_updated(&self, told: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        self.updated.lock().expect("not poisoned").push(told.uri);
    }

    async fn on_custom_notification(&self, told: CustomNotification, _: NotificationContext<RoleClient>) {
        self.events.lock().expect("not poisoned").push(serde_json::to_value(told).expect("JSON"));
    }
}

/// `codecall serve` and a client of it.
pub struct Server {
    child: Child,
    pub client: RunningService<RoleClient, Witness>,
    pub witness: Witness,
    stderr: tokio::task::JoinHandle<String>,
}

pub fn modern() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

impl Server {
    /// Start with `serve` and `words`, in the lifecycle with sessions.
    pub async fn start(words: &[&str]) -> Self {
        Self::start_as(words, ClientLifecycleMode::Initialize).await
    }

    pub async fn start_as(words: &[&str], lifecycle: ClientLifecycleMode) -> Self {
        let mut command = Command::new(PROGRAM);
        command.arg("serve").args(words).env_remove("RUST_LOG").kill_on_drop(true);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        let (stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut stderr = child.stderr.take().expect("piped");
        let stderr = tokio::spawn(async move {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text).await;
            text
        });
        let witness = Witness::default();
        let transport = AsyncRwTransport::new_client(stdout, stdin);
        let begun = witness.clone().serve_with_lifecycle(transport, lifecycle);
        let client = tokio::time::timeout(PATIENCE, begun).await.expect("answers").expect("speaks MCP");
        Self { child, client, witness, stderr }
    }

    /// Its number in the system.
    pub fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Call a tool of the server.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<CallToolResult, ServiceError> {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        self.call_with(CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)).await
    }

    pub async fn call_with(&self, request: CallToolRequestParams) -> Result<CallToolResult, ServiceError> {
        let called = tokio::time::timeout(PATIENCE, self.client.peer().call_tool_once(request));
        match called.await.expect("answers")? {
            CallToolResponse::Complete(result) => Ok(*Box::new(result)),
            other => panic!("not a result: {other:?}"),
        }
    }

    /// Call a meta-tool. Gives its result, which comes as structured content and as the same text.
    pub async fn ask(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await.expect("a result");
        let structured = result.structured_content.clone().expect("structured content");
        assert_eq!(structured, serde_json::from_str::<Value>(&text(&result)).expect("JSON"), "both are the same");
        let failed = structured["status"].as_str().is_some_and(|status| status != "ok");
        assert_eq!(result.is_error, Some(failed), "{structured}");
        structured
    }

    pub async fn execute(&self, script: &str) -> Value {
        let mut arguments = Map::new();
        arguments.insert("script".into(), script.into());
        self.ask("codecall_execute", Value::Object(arguments)).await
    }

    /// Go away as clients do, which ends the server. Gives what it has said on stderr.
    pub async fn end(mut self) -> String {
        let _ = self.client.cancel().await;
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it ends with its input");
        let stderr = self.stderr.await.expect("text");
        assert_eq!(ended.expect("it ends").code(), Some(0), "{stderr}");
        stderr
    }
}

/// The only text of a result.
pub fn text(result: &CallToolResult) -> String {
    match result.content.as_slice() {
        [ContentBlock::Text(text)] => text.text.clone(),
        other => panic!("not one text: {other:?}"),
    }
}

/// Wait until something is so.
pub async fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = tokio::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what} does not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
