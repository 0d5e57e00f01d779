//! Fault injection: upstreams, clients, the machine. After each fault the server answers other requests at once, and
//! its memory, threads, descriptors and children return to their numbers before.

mod clients;
mod durable;
mod machine;
mod upstreams;

use crate::model_server::http_client;
use crate::support::*;
use rmcp::RoleClient;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RunningService, ServiceExt as _};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, SemaphorePermit};

/// How long other requests may take during a fault, on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(20);
/// How much more memory, threads and descriptors the process may keep afterwards, because allocators and
/// runtimes keep some for reuse.
const KEPT: Resources = Resources { megabytes: 60, threads: 8, descriptors: 8, children: 0 };

/// Each server is a process of its own that is measured alone. Most of them wait most of their time; more at once
/// than these would answer too late on a small machine.
static SERVERS: Semaphore = Semaphore::const_new(6);

/// The resources of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Resources {
    megabytes: usize,
    threads: usize,
    descriptors: usize,
    children: usize,
}

impl Resources {
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

    /// Whether the resources are back to earlier ones, except for what may be kept.
    fn is_back_to(self, before: Self) -> bool {
        self.megabytes <= before.megabytes + KEPT.megabytes
            && self.threads <= before.threads + KEPT.threads
            && self.descriptors <= before.descriptors + KEPT.descriptors
            && self.children <= before.children + KEPT.children
    }
}

/// A server under fault injection.
struct Victim {
    url: String,
    child: Child,
    client: RunningService<RoleClient, RecordingClient>,
    before: Resources,
    _permit: SemaphorePermit<'static>,
}

impl Victim {
    async fn start(words: &[&str]) -> Self {
        Self::start_as("", words).await
    }

    /// Starts it from a shell that runs `prepared` first.
    async fn start_as(prepared: &str, words: &[&str]) -> Self {
        let permit = SERVERS.acquire().await.expect("it is never closed");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{prepared}\nexec \"$0\" serve --http 0 \"$@\""), PROGRAM]).args(words);
        command.stdin(Stdio::null()).stderr(Stdio::piped()).env_remove("RUST_LOG").kill_on_drop(true);
        let mut child = command.spawn().expect("starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut printed = Vec::new();
        let url = loop {
            let line = tokio::time::timeout(TIMEOUT, lines.next_line()).await.expect("says where").expect("text");
            let Some(line) = line else { panic!("it ended before it listened: {printed:#?}") };
            if let Some(url) = line.strip_prefix("codecall: listening on ") {
                break url.to_owned();
            }
            printed.push(line);
        };
        // Later output must be read, or the server would block.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let config = StreamableHttpClientTransportConfig::with_uri(format!("{url}/mcp"));
        let transport = StreamableHttpClientTransport::with_client(http_client(), config);
        let client = RecordingClient::default().serve(transport).await.expect("speaks MCP");
        let mut victim = Self { url, before: Resources { megabytes: 0, ..KEPT }, child, client, _permit: permit };
        victim.started().await;
        // Threads and connections that exist from the first request on.
        for _ in 0..3 {
            victim.answers().await;
        }
        victim.before = victim.resources();
        victim
    }

    fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    fn resources(&self) -> Resources {
        Resources::by(self.pid())
    }

    /// Returns the address without `http://`.
    fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    async fn execute(&self, script: &str) -> Value {
        let Value::Object(arguments) = json!({ "script": script }) else { panic!("an object") };
        let request = CallToolRequestParams::new("codecall_execute").with_arguments(arguments);
        let called = tokio::time::timeout(TIMEOUT, self.client.peer().call_tool(request)).await.expect("answers");
        data(&called.expect("a result"))
    }

    /// Returns the result of a tool call, or code and message of its error.
    async fn call(&self, tool: &str, timeout: Duration) -> Result<Value, (String, String)> {
        let timeout = timeout.as_millis();
        // Data that is not text is too long to compare.
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

    /// Waits until no upstream is starting any more.
    async fn started(&self) {
        let began = Instant::now();
        loop {
            let request = CallToolRequestParams::new("codecall_search");
            let Value::Object(query) = json!({"query": "anything"}) else { unreachable!("an object") };
            let found = self.client.peer().call_tool(request.with_arguments(query)).await.expect("an answer");
            if !format!("{found:?}").contains("still starting") {
                return;
            }
            assert!(began.elapsed() < TIMEOUT, "{found:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Checks that other requests are answered at once.
    async fn answers(&self) {
        let began = Instant::now();
        let health = http_client().get(format!("{}/healthz", self.url)).timeout(AT_ONCE).send().await;
        assert_eq!(health.expect("/healthz answers").status().as_u16(), 200);
        assert_eq!(self.execute("return [3, 1, 2].sort().map((n) => n * 2)").await["result"], json!([2, 4, 6]));
        assert!(began.elapsed() < AT_ONCE, "others wait {:?}", began.elapsed());
    }

    /// Checks that other requests are answered, and that the resources are back.
    async fn recovers(&self, from: &str) {
        self.answers().await;
        let began = Instant::now();
        while !self.resources().is_back_to(self.before) {
            assert!(began.elapsed() < TIMEOUT, "after {from}: {:?}, before: {:?}", self.resources(), self.before);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.answers().await;
    }

    /// Disconnects, and waits for the end of the server.
    async fn end(mut self) {
        let pid = self.pid().to_string();
        let _ = self.client.cancel().await;
        assert!(Command::new("kill").arg(&pid).status().await.expect("kill").success());
        let ended = tokio::time::timeout(TIMEOUT, self.child.wait()).await.expect("ends").expect("ends");
        assert_eq!(ended.code(), Some(0));
    }
}

/// Returns the faulty MCP server, a program in Python.
pub fn wrong_upstream(folder: &Folder) -> String {
    folder.file("upstream.py", include_str!("faults/upstream.py"))
}

/// Writes a configuration with the upstreams `name: mode` over standard input and output.
pub fn configured(folder: &Folder, program: &str, upstreams: &[(&str, &str)], more: Value) -> String {
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

pub fn log(folder: &Folder, name: &str) -> String {
    std::fs::read_to_string(Path::new(&folder.path(name))).unwrap_or_default()
}
