//! Faults from every side: upstreams, clients, the machine. After each the server answers others at once, and
//! what it holds (memory, threads, descriptors, children) comes back.

mod clients;
mod machine;
mod upstreams;

use crate::kit::*;
use crate::model::http_client;
use rmcp::RoleClient;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RunningService, ServiceExt as _};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// How long anybody else waits at most while something is wrong, on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(10);
/// How much memory and how many threads and descriptors stay with the process: allocators and runtimes keep
/// some for the next time.
const KEPT: Held = Held { megabytes: 60, threads: 8, descriptors: 8, children: 0 };

/// These tests measure processes: one at a time, or they would measure each other.
static ALONE: LazyLock<tokio::sync::Mutex<()>> = LazyLock::new(tokio::sync::Mutex::default);

/// What a process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    megabytes: usize,
    threads: usize,
    descriptors: usize,
    children: usize,
}

impl Held {
    fn by(pid: u32) -> Self {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let status = std::fs::read_to_string(process.join("status")).expect("it runs");
        let number = |key: &str| -> usize {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
            line.split_whitespace().nth(1).unwrap_or_default().parse().unwrap_or(0)
        };
        let descriptors = std::fs::read_dir(process.join("fd")).expect("it runs").count();
        let tasks = std::fs::read_dir(process.join("task")).expect("it runs").flatten();
        let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        let children = children.map(|children| children.split_whitespace().count()).sum();
        Self { megabytes: number("VmRSS") / 1024, threads: number("Threads"), descriptors, children }
    }

    /// Whether it is no more than another, and what may be kept.
    fn is_back_to(self, before: Self) -> bool {
        self.megabytes <= before.megabytes + KEPT.megabytes
            && self.threads <= before.threads + KEPT.threads
            && self.descriptors <= before.descriptors + KEPT.descriptors
            && self.children <= before.children + KEPT.children
    }
}

/// A server that something is done to.
struct Victim {
    url: String,
    child: Child,
    client: RunningService<RoleClient, Witness>,
    before: Held,
    _alone: tokio::sync::MutexGuard<'static, ()>,
}

impl Victim {
    async fn start(words: &[&str]) -> Self {
        Self::start_as("", words).await
    }

    /// Start it from a shell that has run `prepared`.
    async fn start_as(prepared: &str, words: &[&str]) -> Self {
        let alone = ALONE.lock().await;
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{prepared}\nexec \"$0\" serve --http 0 \"$@\""), PROGRAM]).args(words);
        command.stdin(Stdio::null()).stderr(Stdio::piped()).env_remove("RUST_LOG").kill_on_drop(true);
        let mut child = command.spawn().expect("starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let url = loop {
            let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("says where").expect("text");
            let line = line.expect("it does not end before it listens");
            if let Some(url) = line.strip_prefix("codecall: listening on ") {
                break url.to_owned();
            }
        };
        // What it says later must go somewhere.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let config = StreamableHttpClientTransportConfig::with_uri(format!("{url}/mcp"));
        let transport = StreamableHttpClientTransport::with_client(http_client(), config);
        let client = Witness::default().serve(transport).await.expect("speaks MCP");
        let mut victim = Self { url, before: Held { megabytes: 0, ..KEPT }, child, client, _alone: alone };
        // Threads and connections that there always are from now on.
        for _ in 0..3 {
            victim.answers().await;
        }
        victim.before = victim.held();
        victim
    }

    fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    fn held(&self) -> Held {
        Held::by(self.pid())
    }

    /// Where it listens, without `http://`.
    fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    async fn execute(&self, script: &str) -> Value {
        let Value::Object(arguments) = json!({ "script": script }) else { panic!("an object") };
        let request = CallToolRequestParams::new("codecall_execute").with_arguments(arguments);
        let called = tokio::time::timeout(PATIENCE, self.client.peer().call_tool(request)).await.expect("answers");
        called.expect("a result").structured_content.expect("structured content")
    }

    /// What one call of a tool gives: its result, or code and message of its error.
    async fn call(&self, tool: &str, timeout: Duration) -> Result<Value, (String, String)> {
        let timeout = timeout.as_millis();
        // Data that is no text is too much to be looked at.
        let script = format!(
            "const r = await callTool('{tool}', {{}}, {{ timeoutMs: {timeout}, throwOnError: false }});
             return r.success && typeof r.data !== 'string' ? {{ success: true, data: typeof r.data }} : r"
        );
        let answer = self.execute(&script).await;
        let result = &answer["result"];
        let text = |key: &str| result["error"][key].as_str().unwrap_or_default().to_owned();
        match result["success"].as_bool() {
            Some(true) => Ok(result["data"].clone()),
            Some(false) => Err((text("code"), text("message"))),
            None => panic!("{tool}: {}", &answer.to_string().chars().take(1_000).collect::<String>()),
        }
    }

    /// Others are answered at once.
    async fn answers(&self) {
        let began = Instant::now();
        let health = http_client().get(format!("{}/healthz", self.url)).timeout(AT_ONCE).send().await;
        assert_eq!(health.expect("/healthz answers").status().as_u16(), 200);
        assert_eq!(self.execute("return [3, 1, 2].sort().map((n) => n * 2)").await["result"], json!([2, 4, 6]));
        assert!(began.elapsed() < AT_ONCE, "others wait {:?}", began.elapsed());
    }

    /// Others are answered, and what it holds comes back.
    async fn recovers(&self, from: &str) {
        self.answers().await;
        let began = Instant::now();
        while !self.held().is_back_to(self.before) {
            assert!(began.elapsed() < PATIENCE, "after {from}: {:?}, before: {:?}", self.held(), self.before);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.answers().await;
    }

    /// Go away, and see it end.
    async fn end(mut self) {
        let pid = self.pid().to_string();
        let _ = self.client.cancel().await;
        assert!(Command::new("kill").arg(&pid).status().await.expect("kill").success());
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("ends").expect("ends");
        assert_eq!(ended.code(), Some(0));
    }
}

/// The server that does wrong; absent, and said so, without Python. With CI=true it has to be there.
fn wrong_upstream(folder: &Folder) -> Option<String> {
    let found = std::process::Command::new("python3").arg("--version").stdout(Stdio::null()).status();
    if found.is_ok_and(|status| status.success()) {
        return Some(folder.file("upstream.py", include_str!("faults/upstream.py")));
    }
    assert!(std::env::var_os("CI").is_none(), "there is no python3");
    skipped("faults of upstreams: there is no python3");
    None
}

/// A configuration with the upstreams `name: mode` over standard input and output.
fn configured(folder: &Folder, program: &str, upstreams: &[(&str, &str)], more: Value) -> String {
    let mut servers = Map::new();
    for (name, mode) in upstreams {
        let log = folder.file(&format!("{name}.log"), "");
        let server = json!({"command": "python3", "args": [program, mode, log], "startTimeoutMs": 5_000});
        servers.insert((*name).into(), server);
    }
    let mut config = json!({"mcpServers": servers});
    if let (Value::Object(config), Value::Object(more)) = (&mut config, more) {
        config.extend(more);
    }
    folder.file("config.json", config.to_string())
}

fn log(folder: &Folder, name: &str) -> String {
    std::fs::read_to_string(Path::new(&folder.path(name))).unwrap_or_default()
}
