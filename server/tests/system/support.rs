//! Shared by the tests: temporary folders, processes of the program, an MCP client that records notifications.

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
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_codecall");

/// How long any step of a test may take: long enough for a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// The folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Reports a skipped test. It writes to stderr directly, because the harness captures the output of tests that pass.
pub fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// Whether started programs run scripts in worker processes.
pub fn is_isolated() -> bool {
    std::env::var("CODECALL_ISOLATION").is_ok_and(|mode| mode == "process")
}

/// Sets the isolation of a hub in this process to that of the started programs: threads, or worker processes with
/// `CODECALL_ISOLATION=process`.
pub fn isolated(mut config: codecall::Config) -> codecall::Config {
    config.isolation.program = Some(PROGRAM.into());
    if is_isolated() {
        config.isolation.mode = codecall::config::IsolationMode::Process;
    }
    config
}

/// A temporary folder, which is removed when it is dropped.
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

    /// Writes a file and returns its path.
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

/// The exit code and output of a process.
#[derive(Debug)]
pub struct Finished {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Parses the only line of stdout.
    pub fn json(&self) -> Value {
        let mut lines = self.stdout.lines();
        match (lines.next(), lines.next()) {
            (Some(line), None) => serde_json::from_str(line).expect("a line of JSON"),
            _ => panic!("not one line: {self:?}"),
        }
    }

    /// Returns stdout without the durations of calls.
    pub fn without_durations(&self) -> String {
        let mut parts = self.stdout.split(",\"durationMs\":");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'))
    }

    /// Parses every line of stdout.
    pub fn json_lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}

/// Runs the program to its end.
pub async fn codecall(words: &[&str]) -> Finished {
    finish(Command::new(PROGRAM).args(words), "").await
}

/// Runs a command to its end.
pub async fn finish(command: &mut Command, input: &str) -> Finished {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.env_remove("RUST_LOG").spawn().expect("starts");
    let mut stdin = child.stdin.take().expect("piped");
    // This fails if the program has ended without reading its input.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    let output = tokio::time::timeout(TIMEOUT, child.wait_with_output()).await.expect("ends").expect("ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Finished { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// An MCP client that records the notifications it gets.
#[derive(Clone, Default)]
pub struct RecordingClient {
    pub progress: Arc<Mutex<Vec<ProgressNotificationParam>>>,
    pub logs: Arc<Mutex<Vec<Value>>>,
    pub events: Arc<Mutex<Vec<Value>>>,
    pub changes: Arc<AtomicU32>,
    /// Number of changes of the list of resources.
    pub resources: Arc<AtomicU32>,
    /// URIs of changed resources.
    pub updated: Arc<Mutex<Vec<String>>>,
}

impl ClientHandler for RecordingClient {
    fn get_info(&self) -> ClientConfig {
        // It is a program, and reads JSON.
        let mut capabilities = ClientCapabilities::default();
        capabilities.experimental = Some([("codecall/structuredContent".to_owned(), Map::new())].into());
        let mut config = ClientConfig::new(capabilities, Implementation::new("recording-client", "1"));
        config.protocol_version = ProtocolVersion::V_2025_11_25;
        config
    }

    async fn on_progress(&self, notification: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().expect("not poisoned").push(notification);
    }

    #[expect(deprecated, reason = "clients of today listen to it")]
    async fn on_logging_message(
        &self,
        notification: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.logs.lock().expect("not poisoned").push(serde_json::to_value(notification).expect("JSON"));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.resources.fetch_add(1, Ordering::Relaxed);
    }

    async fn on_resource_updated(
        &self,
        notification: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.updated.lock().expect("not poisoned").push(notification.uri);
    }

    async fn on_custom_notification(&self, notification: CustomNotification, _: NotificationContext<RoleClient>) {
        self.events.lock().expect("not poisoned").push(serde_json::to_value(notification).expect("JSON"));
    }
}

/// `codecall serve` and a client of it.
pub struct Server {
    child: Child,
    pub client: RunningService<RoleClient, RecordingClient>,
    pub recorded: RecordingClient,
    stderr: tokio::task::JoinHandle<String>,
}

pub fn modern() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

impl Server {
    /// Starts `codecall serve` with `words`, and a client with a session.
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
        let recorded = RecordingClient::default();
        let transport = AsyncRwTransport::new_client(stdout, stdin);
        let connecting = recorded.clone().serve_with_lifecycle(transport, lifecycle);
        let client = tokio::time::timeout(TIMEOUT, connecting).await.expect("answers").expect("speaks MCP");
        Self { child, client, recorded, stderr }
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Calls a tool of the server.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<CallToolResult, ServiceError> {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        self.call_with(CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments)).await
    }

    pub async fn call_with(&self, request: CallToolRequestParams) -> Result<CallToolResult, ServiceError> {
        let called = tokio::time::timeout(TIMEOUT, self.client.peer().call_tool_once(request));
        match called.await.expect("answers")? {
            CallToolResponse::Complete(result) => Ok(*Box::new(result)),
            other => panic!("not a result: {other:?}"),
        }
    }

    /// Calls a meta-tool. Returns its answer, and checks that it is sent once.
    pub async fn ask(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await.expect("a result");
        let answer = data(&result);
        let failed = answer["status"].as_str().is_some_and(|status| !["ok", "waiting"].contains(&status));
        assert_eq!(result.is_error, Some(failed), "{answer}");
        answer
    }

    /// Searches again until no MCP server is starting any more, and returns the last answer.
    pub async fn search_when_started(&self, arguments: Value) -> Value {
        let began = Instant::now();
        loop {
            let found = self.ask("codecall_search", arguments.clone()).await;
            if !found["warnings"].to_string().contains("still starting") {
                return found;
            }
            assert!(began.elapsed() < TIMEOUT, "{found}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn execute(&self, script: &str) -> Value {
        let mut arguments = Map::new();
        arguments.insert("script".into(), script.into());
        self.ask("codecall_execute", Value::Object(arguments)).await
    }

    /// Disconnects the client, which ends the server. Returns its stderr.
    pub async fn end(mut self) -> String {
        let _ = self.client.cancel().await;
        let ended = tokio::time::timeout(TIMEOUT, self.child.wait()).await.expect("it ends with its input");
        let stderr = self.stderr.await.expect("text");
        assert_eq!(ended.expect("it ends").code(), Some(0), "{stderr}");
        stderr
    }
}

/// Returns the answer of a meta-tool, which is sent once: as structured content, or as its only text.
pub fn data(result: &CallToolResult) -> Value {
    match &result.structured_content {
        Some(value) => {
            assert!(result.content.is_empty(), "it is sent once: {result:?}");
            value.clone()
        }
        None => serde_json::from_str(&text(result)).expect("JSON"),
    }
}

/// Returns the only text of a result.
pub fn text(result: &CallToolResult) -> String {
    match result.content.as_slice() {
        [ContentBlock::Text(text)] => text.text.clone(),
        other => panic!("not one text: {other:?}"),
    }
}

/// Waits until a condition holds.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    let started = tokio::time::Instant::now();
    while !condition() {
        assert!(started.elapsed() < TIMEOUT, "{what} does not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
