//! Isolation: worker processes for scripts, confined MCP servers. The tests attempt what the sandbox forbids. They
//! print a line if the kernel cannot enforce it.

use crate::support::*;
use codecall::config::{Format, IsolationMode};
use codecall::runs::ExecuteRequest;
use codecall::sandbox::{Permissions, is_sufficient, probe};
use codecall::{Config, Hub};
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// Whether the kernel supports the whole sandbox. With CI=true it must.
fn is_sandbox_supported() -> bool {
    let allowed = Permissions { connect: Some(vec![80]), ..Permissions::default() };
    let protections = probe(&allowed);
    if is_sufficient(protections, &allowed) {
        return true;
    }
    assert!(std::env::var_os("CI").is_none(), "this kernel enforces no more than: {}", protections.describe());
    skipped(&format!("protections, as this kernel enforces no more than: {}", protections.describe()));
    false
}

/// Returns the worker processes of a process.
fn workers(process: u32) -> Vec<i32> {
    let children = |process: u32| -> Vec<i32> {
        let mut all = Vec::new();
        for thread in std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            all.extend(text.split_whitespace().filter_map(|id| id.parse::<i32>().ok()));
        }
        all
    };
    let is_worker = |id: &i32| {
        let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).starts_with("codecall\0evaluate")
    };
    children(process).into_iter().filter(is_worker).collect()
}

fn kill(id: i32) {
    assert!(std::process::Command::new("kill").args(["-KILL", &id.to_string()]).status().expect("kill").success());
}

#[tokio::test]
async fn a_worker_can_do_nothing_but_compute() {
    if !is_sandbox_supported() {
        return;
    }
    let attempt = async |what: &str| {
        let mut command = Command::new(PROGRAM);
        command.args(["evaluate", "--try", what]).kill_on_drop(true);
        tokio::time::timeout(TIMEOUT, command.output()).await.expect("it ends").expect("it starts")
    };
    let nothing = attempt("nothing").await;
    let output = String::from_utf8_lossy(&nothing.stdout).into_owned();
    assert!(nothing.status.success() && output.contains("files, ports, system calls, limits"), "{nothing:?}");
    for what in ["open", "connect", "fork", "thread", "signal"] {
        let ended = attempt(what).await;
        assert_eq!(ended.status.signal(), Some(31), "SIGSYS for {what}: {ended:?}");
        assert!(ended.stdout.is_empty(), "{what}: {ended:?}");
    }
    // The allocation fails, which ends the process.
    let memory = attempt("memory").await;
    assert!(memory.status.signal().is_some() && memory.stdout.is_empty(), "{memory:?}");
    assert!(String::from_utf8_lossy(&memory.stderr).contains("memory allocation of"), "{memory:?}");
}

#[tokio::test]
async fn a_worker_inherits_nothing() {
    let server = Server::start(&["--isolation", "process", "--demo"]).await;
    assert_eq!(server.execute("return 1").await["result"], 1);
    let ids = workers(server.id());
    assert!(!ids.is_empty(), "there are workers");
    for id in ids {
        let descriptors = std::fs::read_dir(format!("/proc/{id}/fd")).map(|all| all.flatten().count());
        // The kernel hides the descriptors of a process that is not dumpable.
        if let Ok(count) = descriptors {
            assert_eq!(count, 3, "three streams");
        }
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        assert_eq!(String::from_utf8_lossy(&environment), "");
    }
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_is_the_end_of_its_run_alone() {
    let folder = Folder::new();
    let vm = json!({"preset": "experimental", "timeoutMs": 60_000, "maxSteps": 1_000_000_000_000_u64,
        "maxIterations": 1_000_000_000_000_u64});
    let config = folder.file("config.json", json!({ "vm": vm, "isolation": "process" }).to_string());
    let server = Arc::new(Server::start(&["--config", &config, "--demo"]).await);
    assert_eq!(server.execute("return 'before'").await["result"], "before");
    let long = {
        let server = Arc::clone(&server);
        tokio::spawn(async move { server.execute("for (let i = 0; i < 9e9; i++); return 1").await })
    };
    // The processor time shows which worker has the long run.
    let busy = async {
        loop {
            let time = |id: &i32| {
                let text = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
                text.split(' ').nth(13).and_then(|ticks| ticks.parse::<u64>().ok()).unwrap_or(0)
            };
            let first: Vec<(i32, u64)> = workers(server.id()).into_iter().map(|id| (id, time(&id))).collect();
            tokio::time::sleep(Duration::from_millis(300)).await;
            let most = first.into_iter().max_by_key(|(id, before)| time(id).saturating_sub(*before));
            if let Some((id, before)) = most
                && time(&id) > before + 5
            {
                return id;
            }
        }
    };
    let busy = tokio::time::timeout(TIMEOUT, busy).await.expect("a worker is busy");
    let waiting = {
        let server = Arc::clone(&server);
        let script = "const all = await users.list({}); await sleep(1500); return typeof all";
        tokio::spawn(async move { server.execute(script).await })
    };
    kill(busy);
    let killed = long.await.expect("an answer");
    assert_eq!((&killed["status"], &killed["error"]["code"]), (&json!("runtime_error"), &json!("WORKER_CRASHED")));
    let other = waiting.await.expect("an answer");
    assert_eq!(other["status"], "ok", "{other}");
    // Idle workers may be killed too, all at once, ready or not.
    for _ in 0..5 {
        workers(server.id()).into_iter().for_each(kill);
        for _ in 0..3 {
            let after = server.execute("return 'after'").await;
            assert_eq!(after["result"], "after", "{after}");
        }
    }
    let id = server.id();
    let Ok(server) = Arc::try_unwrap(server) else { panic!("nobody else has it") };
    server.end().await;
    until("the end of the workers", || workers(id).is_empty()).await;
}

/// Each way to wait: nothing of the run is evaluated, so only the end of the process says that it is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_while_its_run_waits_is_seen_at_once() {
    let folder = Folder::new();
    let tools = json!([{"name": "slow:one", "responses": [{"input": null, "output": 1}], "delayMs": 50_000}]);
    let mocks = folder.file("mocks.json", json!({ "tools": tools }).to_string());
    let config = json!({"isolation": "process", "enable_code_execution": true, "structured": false});
    let config = folder.file("config.json", config.to_string());
    let server = Arc::new(Server::start(&["--config", &config, "--mock-tools", &mocks]).await);
    for (tool, code) in [
        ("codecall_execute", "return await callTool('slow:one', {})"),
        ("codecall_execute", "const all = [1, 2].map((n) => slow.one({ n })); await sleep(50_000); return all"),
        ("codecall_execute", "await sleep(50_000)"),
        ("codecall_execute", "try { await slow.one({}) } catch { return 'caught' } finally { await sleep(50_000) }"),
        ("code_execution", "call_tool('slow', 'one', {})"),
    ] {
        let waiting = {
            let (server, key) = (Arc::clone(&server), if tool == "code_execution" { "code" } else { "script" });
            tokio::spawn(async move {
                let result = server.call(tool, json!({ key: code })).await.expect("a result");
                serde_json::from_str::<Value>(&text(&result)).expect("JSON")
            })
        };
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert!(!waiting.is_finished(), "{code}");
        workers(server.id()).into_iter().for_each(kill);
        let ended = tokio::time::timeout(Duration::from_secs(10), waiting).await.expect(code).expect("an answer");
        let code_of = if tool == "code_execution" { "RUNTIME_ERROR" } else { "WORKER_CRASHED" };
        assert_eq!(ended["error"]["code"], code_of, "{code}: {ended}");
        assert_eq!(server.execute("return 'after'").await["result"], "after");
    }
    let Ok(server) = Arc::try_unwrap(server) else { panic!("nobody else has it") };
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_leaves_no_worker() {
    let server = Server::start(&["--isolation", "process", "--demo"]).await;
    assert_eq!(server.execute("return 1").await["result"], 1);
    let ids = workers(server.id());
    assert!(!ids.is_empty());
    kill(i32::try_from(server.id()).expect("a number"));
    // A process that has reused the id is not a worker.
    let gone = |id: &i32| {
        let words = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        !String::from_utf8_lossy(&words).starts_with("codecall\0evaluate")
    };
    until("the end of the workers", || ids.iter().all(gone)).await;
}

fn hub(keys: &Value) -> Arc<Hub> {
    let mut config = Config::parse(&keys.to_string(), Format::Json, &|_| None).expect("a configuration");
    config.isolation.program = Some(PROGRAM.into());
    config.isolation.mode = IsolationMode::Process;
    Hub::start(config, vec![Arc::new(crate::runs::Tools)]).expect("starts")
}

async fn ends(hub: &Hub, script: &str) -> String {
    let request = ExecuteRequest::new(script, hub.config().policy.clone());
    let finished = hub.execute(request, None, CancellationToken::new()).await;
    crate::runs::ends(&finished.outcome)
}

/// The interpreter's own limit is raised, so the limit of the worker process ends the run.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_memory_ends_alone() {
    let confine = if is_sandbox_supported() { "required" } else { "best-effort" };
    let lifted = json!({"preset": "experimental", "maxMemoryBytes": 64_000_000_000_u64, "maxSteps": 1_000_000_000_000_u64,
        "maxIterations": 1_000_000_000_000_u64, "timeoutMs": 60_000});
    let hub = hub(&json!({"vm": lifted, "isolation": {"maxMemoryBytes": 100_000_000, "confine": confine}}));
    let greedy = "const all = []; for (;;) all.push('x'.repeat(1e6) + all.length);";
    assert_eq!(ends(&hub, greedy).await, "runtime_error WORKER_MEMORY_EXCEEDED");
    assert_eq!(ends(&hub, "return 1").await, "ok");
    assert!(hub.isolation()[0].ends_with("1 workers were lost"), "{:?}", hub.isolation());
    hub.close().await;
}

/// A worker in the middle of one long step is killed; a thread could only be abandoned.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_frees_its_processor() {
    let lifted = json!({"preset": "experimental", "maxSteps": 1_000_000_000_000_u64,
        "maxIterations": 1_000_000_000_000_u64, "timeoutMs": 60_000});
    let hub = hub(&json!({"vm": lifted, "isolation": {"confine": "best-effort"}}));
    let cancel = CancellationToken::new();
    let request = ExecuteRequest::new("for (;;) {}", hub.config().policy.clone());
    let run = hub.execute(request, None, cancel.clone());
    let cancelled = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancel.cancel();
        Instant::now()
    };
    let (finished, at) = tokio::join!(run, cancelled);
    assert_eq!(crate::runs::ends(&finished.outcome), "runtime_error EXECUTION_ABORTED");
    assert!(at.elapsed() < Duration::from_secs(30), "{:?}", at.elapsed());
    // More runs at a time than idle workers.
    let runs = (0..12).map(|_| ends(&hub, "return (await callTool('t:echo', { n: 1 })).n"));
    assert_eq!(futures_util::future::join_all(runs).await, vec!["ok"; 12]);
    hub.close().await;
}

/// Steps of runs whose clients own the tools are evaluated in workers too, and are the same there.
#[tokio::test(flavor = "multi_thread")]
async fn steps_are_the_same() {
    let isolated = hub(&json!({"isolation": {"confine": "best-effort"}}));
    let threads = Hub::start(Config::default(), Vec::new()).expect("starts");
    let tools = json!([{"name": "web_search", "parameters": {"type": "object", "properties": {"query": {}}}}]);
    for (code, expected) in [
        ("return [1 + 1, typeof webSearch]", "done"),
        ("const x = ;", "done"),
        ("while (true) {}", "done"),
        ("webSearch('left'); const [a] = await Promise.all([webSearch('one'), webSearch('two')]); return a", "calls"),
        ("mcpLog('info', 'said', {}); return await webSearch({ query: 1 })", "calls"),
        ("return await new Promise(() => {})", "deadlock"),
        ("return await webSerach('x')", "done"),
    ] {
        let step = async |hub: &Hub| {
            let limits = json!({"timeoutMs": 1_000});
            let request =
                json!({"id": "code_01JD0000000000000000000000", "code": code, "tools": tools, "limits": limits});
            let request = serde_json::from_value(request).expect("a request");
            let taken = hub.stateless().evaluate(request, CancellationToken::new()).await.expect("a step");
            (taken.value, taken.is_error, taken.messages)
        };
        let (mut here, mut there) = (step(&threads).await, step(&isolated).await);
        assert_eq!(here.0["status"], expected, "{code}: {}", here.0);
        // Times and tokens of steps are never the same.
        for value in [&mut here.0, &mut there.0] {
            let members = value.as_object_mut().expect("an object");
            members.remove("token");
            members.remove("stats");
        }
        assert_eq!(here, there, "{code}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_is_the_end_of_its_step() {
    let folder = Folder::new();
    let vm = json!({"preset": "experimental", "timeoutMs": 60_000, "maxSteps": 1_000_000_000_000_u64,
        "maxIterations": 1_000_000_000_000_u64});
    let config =
        json!({"vm": vm, "isolation": "process", "stateless": {"enabled": true, "key": "no one can guess it"}});
    let config = folder.file("config.json", config.to_string());
    let server = Arc::new(Server::start(&["--config", &config]).await);
    let step = {
        let server = Arc::clone(&server);
        let code = "for (let i = 0; i < 9e9; i++); return 1";
        tokio::spawn(async move { server.ask("codecall_step", json!({"code": code})).await })
    };
    let ended = tokio::time::timeout(TIMEOUT, async {
        while !step.is_finished() {
            tokio::time::sleep(Duration::from_millis(300)).await;
            workers(server.id()).into_iter().for_each(kill);
        }
        step.await.expect("no panic")
    });
    let ended = ended.await.expect("it ends");
    assert_eq!(ended["outcome"]["error"]["code"], "WORKER_CRASHED", "{ended}");
    let Ok(server) = Arc::try_unwrap(server) else { panic!("nobody else has it") };
    server.end().await;
}

/// All that an outcome says, by threads and by workers.
#[tokio::test(flavor = "multi_thread")]
async fn outcomes_are_the_same() {
    let isolated = hub(&json!({"isolation": {"confine": "best-effort"}, "vm": {"maxConsoleCalls": 5}}));
    let mut config = Config::default();
    config.policy.limits.max_console_calls = 5;
    let threads = Hub::start(config, vec![Arc::new(crate::runs::Tools)]).expect("starts");
    for script in [
        "return { a: [1, 2n > 1, new Date(0), new Map([['k', new Set([1])]])], context: codecallContext }",
        "return [Math.random(), crypto.randomUUID()]",
        "console.log('a', { b: 1 }); console.error('c'); throw new TypeError('wrong', { cause: 1 })",
        "const x = ;",
        "eval('1'); process.exit(); class A {}",
        "while (true) {}",
        "for (;;) console.log('x')",
        "let text = 'x'; for (let i = 0; i < 99; i++) text += text; return text",
        "return await t.echo({ n: 'é\\u0000\\ud83d\"' })",
        "return await t.nothing({})",
        "return await callTool('t:nothing', {})",
        "return getTool('t:echo')",
        "return await callTool('codecall:search', {})",
        "mcpLog('info', 'said', { a: 1 }); mcpNotify('event', { b: 2 }); return 1",
        "t.never({}); return 1",
        "await sleep(30); setTimeout((text) => t.echo({ text }), 20, 'late'); return Date.now() > 0",
        "return await t.never({}, { signal: AbortSignal.timeout(50) }).catch((error) => error.name)",
        "[1].forEach(async (n) => { console.log(await t.echo({ n })); }); return 'done'",
        "Promise.reject(new Error('nobody handles it')); return 1",
        "setInterval(() => { throw new RangeError('in a timer') }, 10); return 1",
        "let x: number = 1; return x",
        "const deep = (n) => (n === 0 ? 0 : 1 + deep(n - 1)); return deep(1e9)",
        "return unknownName",
        "return await new Promise(() => {})",
    ] {
        let observe = async |hub: &Hub| {
            let mut policy = hub.config().policy.clone();
            (policy.limits.timeout_ms, policy.limits.tool_timeout_ms) = (1_500, 300);
            let request = ExecuteRequest { seed: Some(7), ..ExecuteRequest::new(script, policy) };
            let finished = hub.execute(request, None, CancellationToken::new()).await;
            let stats = finished.outcome.stats;
            let meta = finished.meta();
            let unanswered = meta["codecall/calls"]["unanswered"].as_array().map(Vec::len);
            (finished.outcome.to_json(), stats.iterations, stats.tool_calls, unanswered)
        };
        let (mut here, mut there) = (observe(&threads).await, observe(&isolated).await);
        // How many iterations a loop has before its time is over differs each time.
        if here.0.contains("TIMEOUT") {
            (here.1, there.1) = (0, 0);
        }
        assert_eq!(here, there, "{script}");
    }
    threads.close().await;
    isolated.close().await;
}

/// An MCP server whose calls use files and the network as their input says.
const PRYING: &str = r#"
const fs = require('node:fs'), net = require('node:net'), http = require('node:http');
const tools = {
  read: ({ path }) => fs.readFileSync(path, 'utf8').length,
  write: ({ path }) => (fs.writeFileSync(path, 'x'), 'written'),
  connect: ({ port }) => new Promise((done, fail) => net.connect(port, '127.0.0.1').on('error', fail).on('connect', () => done('connected'))),
  unix: ({ path }) => new Promise((done, fail) => net.connect(path).on('error', fail).on('connect', () => done('connected'))),
  spawn: ({ path }) => require('node:child_process').execFileSync('cat', [path]).length,
  memory: ({ bytes }) => Buffer.alloc(bytes, 1).length,
  signal: ({ pid }) => (process.kill(pid, 0), 'sent'),
};
let rest = '';
process.stdin.on('data', async (text) => {
  rest += text;
  for (let at; (at = rest.indexOf('\n')) >= 0; ) {
    const message = JSON.parse(rest.slice(0, at));
    rest = rest.slice(at + 1);
    if (message.id === undefined) continue;
    const answer = (result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }) + '\n');
    const { name, arguments: input } = message.params ?? {};
    if (message.method === 'initialize') {
      answer({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'prying', version: '1' } });
    } else if (message.method === 'tools/list') {
      answer({ tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' } })) });
    } else if (message.method === 'tools/call') {
      try {
        answer({ content: [{ type: 'text', text: String(await tools[name](input)) }] });
      } catch (error) {
        answer({ content: [{ type: 'text', text: error.code ?? error.message }], isError: true });
      }
    } else {
      process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'no' } }) + '\n');
    }
  }
});
process.stdin.on('end', () => process.exit(0));
"#;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn a_confined_server_stays_confined() {
    if !is_sandbox_supported() {
        return;
    }
    let folder = Folder::new();
    let program = folder.file("program/prying.cjs", PRYING);
    let (mine, others) = (folder.file("mine/a.txt", "mine"), folder.file("others/b.txt", "others"));
    std::fs::create_dir_all(folder.path("out")).expect("a folder");
    let allowed = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let refused = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = |listener: &tokio::net::TcpListener| listener.local_addr().expect("an address").port();
    let socket = folder.path("out/socket");
    let _unix = tokio::net::UnixListener::bind(&socket).expect("a socket");
    let confine = json!({
        "read": [folder.path("program"), folder.path("mine")], "write": [folder.path("out")],
        "connect": [port(&allowed)], "maxMemoryBytes": 2_000_000_000_u64,
    });
    let server = json!({"command": "node", "args": [program], "confine": confine, "lifecycle": "initialize"});
    let config = folder.file("config.json", json!({"mcpServers": {"p": server}}).to_string());
    let server = Server::start(&["--config", &config]).await;
    let id = server.id();
    let asked = |tool: &str, input: Value| format!("await callTool('p:{tool}', {input}, {{ throwOnError: false }})");
    let calls = [
        asked("read", json!({"path": mine})),
        asked("read", json!({"path": others})),
        asked("read", json!({"path": "/etc/passwd"})),
        asked("read", json!({"path": format!("/proc/{id}/environ")})),
        asked("spawn", json!({"path": mine})),
        asked("spawn", json!({"path": others})),
        asked("write", json!({"path": folder.path("out/new.txt")})),
        asked("write", json!({"path": mine})),
        asked("connect", json!({"port": port(&allowed)})),
        asked("connect", json!({"port": port(&refused)})),
        asked("unix", json!({"path": socket})),
        asked("signal", json!({"pid": id})),
        asked("memory", json!({"bytes": 1_000_000})),
    ];
    let answer = server.execute(&format!("return [{}]", calls.join(", "))).await;
    let answers: Vec<String> = answer["result"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"))
        .iter()
        .map(|one| match one["success"].as_bool() {
            Some(true) => one["data"].to_string(),
            _ => one["error"]["message"].as_str().unwrap_or("none").to_owned(),
        })
        .collect();
    let expected = [
        "4",
        "EACCES",
        "EACCES",
        "EACCES",
        "4",
        "failed",
        "\"written\"",
        "EACCES",
        "\"connected\"",
        "EACCES",
        "EPERM",
        "EPERM",
        "1000000",
    ];
    for ((call, answer), expected) in calls.iter().zip(&answers).zip(expected) {
        assert!(
            answer.contains(expected) || (expected == "failed" && answer != "6"),
            "{call}: {answer}, not {expected}"
        );
    }
    assert_eq!(std::fs::read_to_string(&mine).expect("it is there"), "mine");
    let output = server.end().await;
    assert!(output.contains("MCP server 'p' is confined by: files, ports, system calls, limits"), "{output}");
}

/// Each way past the confinement that is known, tried on the real kernel: only what is allowed works.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn no_way_leads_past_confinement() {
    if !is_sandbox_supported() || !cfg!(target_arch = "x86_64") {
        return;
    }
    let folder = Folder::new();
    let outside = folder.file("outside.txt", "outside");
    let before = std::fs::metadata(&outside).expect("a file");
    let allowed = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let refused = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = |listener: &tokio::net::TcpListener| listener.local_addr().expect("an address").port().to_string();
    let unix = folder.path("socket");
    let datagrams = std::os::unix::net::UnixDatagram::bind(&unix).expect("a socket");
    datagrams.set_nonblocking(true).expect("a flag");
    let probe = root().join("server/tests/system/isolation/probe.py").display().to_string();
    let say = "import sys; print(sys.executable, sys.base_prefix, sep='\\n')";
    let python = Command::new("python3").args(["-c", say]).output().await.expect("Python");
    let python = String::from_utf8(python.stdout).expect("text");
    let (python, prefix) = python.trim().split_once('\n').expect("two paths");
    let (open, closed, own) = (port(&allowed), port(&refused), std::process::id().to_string());
    let mut words = vec!["confined", "--read", prefix, "--read", &probe, "--connect", &open, "--", python, &probe];
    words.extend([&*open, &*closed, &*unix, &*outside, &*own]);
    let ended = codecall(&words).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let allowed_ways = ["tcp", "tcp6", "tcp-by-protocol", "thread", "child", "own-limit", "pair"];
    let ways: Vec<(&str, &str)> = ended.stdout.lines().filter_map(|line| line.split_once(' ')).collect();
    assert!(ways.len() > 250, "{ended:?}");
    let wrong: Vec<_> = ways.iter().filter(|(name, result)| (*result == "ok") != allowed_ways.contains(name)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    // Errors of the kernel itself would hide a missing rule.
    for (name, expected) in [
        ("tcp-closed", "EACCES"),
        ("mptcp", "EPERM"),
        ("udp-lite", "EPERM"),
        ("fast-open-sendto", "ENOTSUP"),
        ("fast-open-sendmsg", "ENOTSUP"),
        ("fast-open-option", "ENOTSUP"),
        ("pair-datagram", "EPERM"),
        ("listen", "EPERM"),
        ("kexec_file_load", "EPERM"),
        ("fsconfig", "EPERM"),
        ("clock_settime", "EPERM"),
        ("clone3", "ENOSYS"),
        ("limit-of-another", "EPERM"),
        ("chmod", "EPERM"),
        ("ptrace-x32", "ENOSYS"),
    ] {
        assert_eq!(ways.iter().find(|(way, _)| *way == name).map(|(_, result)| *result), Some(expected), "{name}");
    }
    let nobody = tokio::time::timeout(Duration::from_millis(100), refused.accept()).await;
    assert!(nobody.is_err(), "nobody has connected: {nobody:?}");
    assert!(datagrams.recv(&mut [0]).is_err(), "nothing was sent");
    let after = std::fs::metadata(&outside).expect("a file");
    assert_eq!(after.permissions(), before.permissions());
    assert_eq!(after.modified().ok(), before.modified().ok());
}

/// `@modelcontextprotocol/server-filesystem`, configured to serve more than the sandbox allows it to read.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn a_third_party_server_is_confined() {
    let path = "@modelcontextprotocol/server-filesystem/dist/index.js";
    let program = crate::third_party::node_package(path);
    if !is_sandbox_supported() {
        return;
    }
    let folder = Folder::new();
    let (mine, secret) = (folder.file("mine/a.txt", "mine"), folder.file("secret/b.txt", "secret"));
    let modules = root().join("tests/node/node_modules").canonicalize().expect("it is there");
    // The server itself would allow both.
    let args = json!([program, folder.path("mine"), folder.path("secret")]);
    let confine = json!({"read": [modules, folder.path("mine")]});
    let config = json!({"mcpServers": {"files": {"command": "node", "args": args, "confine": confine}}});
    let config = folder.file("config.json", config.to_string());
    let server = Server::start(&["--config", &config]).await;
    let read = |path: &str| {
        format!("await callTool('files:read_text_file', {}, {{ throwOnError: false }})", json!({ "path": path }))
    };
    let write = format!(
        "await callTool('files:write_file', {}, {{ throwOnError: false }})",
        json!({"path": folder.path("mine/new.txt"), "content": "x"})
    );
    let answer = server.execute(&format!("return [{}, {}, {write}]", read(&mine), read(&secret))).await;
    let result = &answer["result"];
    assert!(result[0]["success"] == true && result[0]["data"].to_string().contains("mine"), "{answer}");
    for denied in [&result[1], &result[2]] {
        assert!(denied["success"] == false && denied["error"]["message"].to_string().contains("EACCES"), "{answer}");
    }
    server.end().await;
}

#[tokio::test]
async fn missing_confinement_is_reported() {
    let folder = Folder::new();
    let missing = json!({"mcpServers": {"p": {"command": "true", "confine": {"read": [folder.path("nowhere")]}}}});
    let missing = folder.file("missing.json", missing.to_string());
    let words = ["confined", "--read", &folder.path("nowhere"), "--", "true"];
    let ended = codecall(&words).await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("nowhere' cannot be allowed"), "{ended:?}");
    let server = Server::start(&["--config", &missing]).await;
    assert_eq!(server.execute("return 1").await["result"], 1, "the others go on");
    server.end().await;
    for (keys, expected) in [
        (json!({"isolation": "proces"}), "isolation.mode: wrong value, expected"),
        (json!({"isolation": {"mod": "process"}}), "isolation: unknown key 'mod'"),
        (json!({"isolation": {"workers": 0}}), "isolation.workers: must be from 1 to 256"),
        (
            json!({"mcpServers": {"p": {"url": "http://localhost:1", "confine": {}}}}),
            "mcpServers.p.confine: only a server that is started with 'command' can be confined",
        ),
        (
            json!({"mcpServers": {"p": {"command": "x", "confine": {"connect": "all"}}}}),
            "mcpServers.p.confine.connect: 'any' or a list of TCP ports",
        ),
    ] {
        let problem = Config::parse(&keys.to_string(), Format::Json, &|_| None).expect_err(expected);
        assert!(problem.contains(expected), "{problem}");
    }
}
