//! Durable runs on Restate: its server, a worker and `codecall serve`, each of which is killed.
//!
//! The server is that of `tests/restate`, which `bash .ci/run` installs.

use crate::durable::{
    Ledger, STEPS, check_clients, check_steps, clients, config, get, kill, kills, moments, outcome, submit,
};
use crate::model_server::{HttpProcess, http_client, post_json, serve};
use crate::support::*;
use crate::third_party::installed;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

/// How long Restate and a worker may take to start.
const START: Duration = Duration::from_secs(60);

fn program() -> PathBuf {
    let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let package = format!("tests/restate/node_modules/@restatedev/restate-server-{system}-{machine}");
    installed(root().join(package).join("bin/restate-server"))
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// The configuration for a machine with few cores.
const EXAMPLE: &str = include_str!("../../../examples/restate.toml");

/// A Restate server, with data that outlive its process.
struct Restate {
    program: PathBuf,
    config: String,
    ingress: u16,
    admin: u16,
    child: Child,
}

impl Restate {
    async fn start(folder: &Folder) -> Self {
        let program = program();
        let (ingress, admin, node) = (free_port(), free_port(), free_port());
        let data = folder.path("restate");
        // What is said before the first table, and the example, which ends with one.
        let config = format!(
            "roles = ['http-ingress', 'admin', 'worker', 'log-server', 'metadata-server']
            node-name = 'one'\ncluster-name = 'codecall'\nauto-provision = true\nlisten-mode = 'tcp'
            bind-ip = '127.0.0.1'\nbind-port = {node}\nbase-dir = '{data}'
            rocksdb-total-memory-size = '256 MiB'\nlog-filter = 'warn,octocrab=off'
            {EXAMPLE}
            [admin]\nbind-port = {admin}\ndisable-web-ui = true
            [ingress]\nbind-port = {ingress}\n"
        );
        let config = folder.file("restate.toml", config);
        let child = Self::spawn(&program, &config);
        let mut restate = Self { program, config, ingress, admin, child };
        restate.healthy().await;
        restate
    }

    fn spawn(program: &Path, config: &str) -> Child {
        // The program itself: a kill has to reach it.
        let mut command = Command::new(program);
        command.args(["-c", config, "--no-logo"]).kill_on_drop(true).spawn().expect("starts")
    }

    async fn healthy(&mut self) {
        let began = Instant::now();
        let urls = [format!("http://127.0.0.1:{}/health", self.admin), format!("{}/restate/health", self.url())];
        for url in urls {
            while !http_client().get(&url).send().await.is_ok_and(|response| response.status().is_success()) {
                assert!(began.elapsed() < START, "Restate does not start");
                assert!(self.child.try_wait().expect("a status").is_none(), "Restate has ended");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ingress)
    }

    fn admin_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.admin)
    }

    async fn kill(&mut self) {
        self.child.kill().await.expect("ends");
    }

    async fn start_again(&mut self) {
        self.child = Self::spawn(&self.program, &self.config);
        self.healthy().await;
    }
}

/// A worker, at an address that it keeps.
struct Worker {
    words: Vec<String>,
    program: PathBuf,
    child: Child,
}

impl Worker {
    async fn start(config: &str, restate: &Restate) -> Self {
        Self::start_program(PROGRAM.into(), config, restate, free_port()).await
    }

    async fn start_program(program: PathBuf, config: &str, restate: &Restate, port: u16) -> Self {
        let (url, admin, listen) = (restate.url(), restate.admin_url(), format!("127.0.0.1:{port}"));
        let words = ["worker", "--config", config, "--restate", &url, "--restate-admin", &admin, "--listen", &listen];
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let child = Self::spawn(&program, &words).await;
        Self { words, program, child }
    }

    async fn spawn(program: &Path, words: &[String]) -> Child {
        let mut command = Command::new(program);
        HttpProcess::start_saying(command.args(words), "registered").await.1
    }

    async fn kill(&mut self) {
        self.child.kill().await.expect("ends");
    }

    async fn start_again(&mut self) {
        self.child = Self::spawn(&self.program, &self.words).await;
    }

    async fn end(mut self) -> Option<i32> {
        let id = self.child.id().expect("runs").to_string();
        assert!(Command::new("kill").arg(&id).status().await.expect("kill").success());
        tokio::time::timeout(START, self.child.wait()).await.expect("ends").expect("ends").code()
    }
}

/// Everything that a run needs.
struct Stack {
    ledger: Ledger,
    restate: Restate,
    worker: Worker,
    server: HttpProcess,
    config: String,
    folder: Folder,
}

impl Stack {
    async fn start(mut more: Value) -> Self {
        let (folder, ledger) = (Folder::new(), Ledger::default());
        let restate = Restate::start(&folder).await;
        more["durable"] =
            json!({"enabled": true, "restate": restate.url(), "restateAdmin": restate.admin_url(), "keep": "1h"});
        let config = config(&folder, &ledger.start().await, more);
        let worker = Worker::start(&config, &restate).await;
        let server = HttpProcess::start(&["--config", &config]).await;
        Self { ledger, restate, worker, server, config, folder }
    }

    /// Kills what is named, and starts it again.
    async fn kill(&mut self, what: What) {
        if what != What::Engine {
            self.worker.kill().await;
        }
        if what != What::Worker {
            self.restate.kill().await;
            self.restate.start_again().await;
        }
        if what != What::Engine {
            self.worker.start_again().await;
        }
    }

    async fn run(&self, script: &str) -> Value {
        outcome(&self.server, &submit(&self.server, script, json!({})).await).await
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Worker,
    Engine,
    Both,
}

/// The worker, Restate or both are killed at random moments. The number of moments is `CODECALL_KILLS`, or a few.
#[tokio::test]
async fn a_run_survives_its_worker_and_its_engine() {
    let mut stack = Stack::start(json!({})).await;
    let (mut interrupted, mut repeated) = (0, 0);
    for (moment, wait) in moments(1_200).take(kills()).enumerate() {
        let what = [What::Worker, What::Engine, What::Both][moment % 3];
        let runs: Vec<String> = (0..3).map(|number| format!("{moment}.{number}")).collect();
        let submitted = join_all(runs.iter().map(|run| submit(&stack.server, STEPS, json!({"run": run})))).await;
        tokio::time::sleep(wait).await;
        let before = stack.ledger.begun();
        stack.kill(what).await;
        for (run, id) in runs.iter().zip(&submitted) {
            let answer = outcome(&stack.server, id).await;
            let before: Vec<Value> = stack.ledger.begun().into_iter().take(before.len()).collect();
            let was = check_steps(run, &answer, &before, &stack.ledger.begun());
            interrupted += u64::from(was.0);
            repeated += was.1;
        }
    }
    assert!(kills() < 30 || (interrupted > 0 && repeated > 0), "{interrupted} interrupted, {repeated} repeated");
    let _ = writeln!(
        std::io::stdout(),
        "{} moments: {interrupted} calls were interrupted, {repeated} were made again",
        kills()
    );
    assert_eq!(stack.worker.end().await, Some(0));
    assert_eq!(stack.server.end().await, Some(0));
}

/// A script sees the same as in memory.
#[tokio::test]
async fn a_run_is_like_one_in_memory() {
    let stack = Stack::start(json!({})).await;
    for script in [
        "return 1 + 1",
        "const all = await parallel([1, 2, 3, 4, 5, 6, 7, 8].map((n) => () => ledger.add({ n, ms: 10 * (9 - n) }))); return all.map((one) => one.n)",
        "const first = await Promise.race([ledger.read({ n: 1, ms: 5000 }), ledger.read({ n: 2, ms: 5 })]); return first.n",
        "const slow = ledger.read({ n: 1, ms: 5000 }); return await Promise.race([slow, sleep(100).then(() => 'late')])",
        "let ticks = 0; const timer = setInterval(() => { ticks += 1; if (ticks === 3) clearInterval(timer) }, 20); await sleep(200); return ticks",
        "try { await ledger.none({}) } catch (error) { return error.message }",
        "try { await callTool('ledger:nothing', {}) } catch (error) { return error.code }",
        "throw new TypeError('no')",
        "return nope(",
        "await new Promise(() => {})",
        "return getTool('ledger:pay').annotations",
        "for (;;) {}",
        "return callTool('codecall:execute', {})",
        "return [typeof Math.random(), codecallContext.a, new Date(0).toISOString()]",
    ] {
        let request = json!({"script": script, "context": {"a": 1}});
        let (status, submitted) = post_json(&stack.server.url, "/v1/runs", &request).await;
        assert_eq!(status, 202, "{submitted}");
        let durable = outcome(&stack.server, submitted["id"].as_str().expect("an id")).await;
        let request = folder_script(&stack, script).await;
        let plain = codecall(&["run", "--config", &request.1, &request.0, "--context", "{\"a\":1}"]).await.json();
        let told = |answer: &Value| {
            let error = &answer["error"];
            json!([answer["status"], answer["result"], error["code"], error["message"], error["location"]])
        };
        assert_eq!(told(&durable), told(&plain), "{script}");
    }
}

/// Returns a file of a script, and a configuration with the same tools whose runs are not durable.
async fn folder_script(stack: &Stack, script: &str) -> (String, String) {
    let file = stack.folder.file("script.js", script);
    let text = std::fs::read_to_string(&stack.config).expect("a file");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    config["durable"] = json!({});
    (file, stack.folder.file("plain.json", config.to_string()))
}

/// `codecall_execute` waits for the outcome, and its client can cancel it.
#[tokio::test]
async fn an_agent_gets_the_outcome() {
    let stack = Stack::start(json!({})).await;
    let server = Server::start(&["--config", &stack.config]).await;
    let answer = server.execute("return (await ledger.read({ n: 7 })).n").await;
    assert_eq!((&answer["status"], &answer["result"]), (&json!("ok"), &json!(7)), "{answer}");
    let answer = server.execute("return nope.x").await;
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!("runtime_error"), &json!("EXECUTION_ERROR")));
}

/// A server that ends tells its client how to get the outcome, and the next one has it. A long result is read there in pieces.
#[tokio::test]
async fn another_server_has_the_outcome() {
    let stack = Stack::start(json!({})).await;
    let server = std::sync::Arc::new(Server::start(&["--config", &stack.config]).await);
    let script = "await ledger.read({ n: 1 }); await sleep(2500); return 'long '.repeat(30000)";
    let asked = std::sync::Arc::clone(&server);
    let answer = tokio::spawn(async move { asked.ask("codecall_execute", json!({"script": script})).await });
    until("it has begun", || stack.ledger.begun().len() == 1).await;
    let id = server.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().await.expect("kill").success());
    let answer = answer.await.expect("an answer");
    assert_eq!(answer["status"], "waiting", "{answer}");
    drop(server);
    let server = Server::start(&["--config", &stack.config]).await;
    let answer = server.ask("codecall_execute", json!({"handle": answer["handle"]})).await;
    let truncated = &answer["truncated"];
    assert_eq!((&answer["status"], &truncated["bytes"]), (&json!("ok"), &json!(150_000)), "{truncated}");
    let piece = json!({"handle": truncated["handle"], "offset": 149_995});
    let last = server.ask("codecall_execute", piece).await;
    assert_eq!(last["result"], "long ", "{last}");
}

/// The run of a client has the tools of that client, and nobody else sees it.
#[tokio::test]
async fn a_run_belongs_to_its_client() {
    let stack = Stack::start(json!({"http": clients()})).await;
    check_clients(&stack.server).await;
}

/// A script whose calls are not idempotent, apart from the last one of each step.
const PAYMENTS: &str = "
    const { run } = codecallContext, paid = [];
    for (let step = 0; step < 8; step++) {
        const calls = [1, 2, 3].map((n) => ledger.pay({ run, step, n, ms: 15 * n }).then((one) => one.n, (error) => error.code));
        paid.push(...await Promise.all(calls));
        await ledger.read({ run, step, n: 4 });
    }
    return paid";

/// A worker is killed at random moments, over and over. A call that is not idempotent reaches its tool once at most: once if its run
/// has the answer, and otherwise the run is told `CALL_INTERRUPTED`. No call is made again after its run has gone on with the answer.
#[tokio::test]
async fn nothing_answered_is_called_twice() {
    let mut stack = Stack::start(json!({})).await;
    let runs: Vec<String> = (0..kills()).map(|number| number.to_string()).collect();
    let submitted = join_all(runs.iter().map(|run| submit(&stack.server, PAYMENTS, json!({"run": run})))).await;
    for wait in moments(500).take(2 * kills()) {
        tokio::time::sleep(wait).await;
        stack.kill(What::Worker).await;
    }
    let mut interrupted = 0;
    for (run, id) in runs.iter().zip(&submitted) {
        let answer = outcome(&stack.server, id).await;
        let paid = answer["result"].as_array().unwrap_or_else(|| panic!("{answer}"));
        assert_eq!(paid.len(), 24, "{answer}");
        let begun = stack.ledger.begun();
        let begun: Vec<(u64, u64)> = begun
            .iter()
            .filter(|call| call["run"] == *run)
            .map(|call| (call["step"].as_u64().expect("a step"), call["n"].as_u64().expect("a number")))
            .collect();
        assert!(
            begun.is_sorted_by_key(|(step, _)| *step),
            "a step begins when the one before it is answered: {begun:?}"
        );
        for (at, got) in (0..).zip(paid) {
            let call = (at / 3, at % 3 + 1);
            let count = begun.iter().filter(|&&one| one == call).count();
            match got.as_u64() {
                Some(n) => assert_eq!((n, count), (call.1, 1), "{call:?} of run {run} is answered"),
                None => assert!(got == "CALL_INTERRUPTED" && count <= 1, "{got}: {call:?} of run {run}, {count} times"),
            }
            interrupted += usize::from(!got.is_u64());
        }
    }
    assert!(interrupted > 0, "the kills have met no call");
}

/// Calls that were begun and are not idempotent are not made again.
#[tokio::test]
async fn a_call_is_made_at_most_once() {
    let mut stack = Stack::start(json!({})).await;
    let slow = |tool: &str| format!("return (await ledger.{tool}({{ run: 'x', ms: 1500 }})).run");
    let paid = submit(&stack.server, &slow("pay"), json!({})).await;
    let added = submit(&stack.server, &slow("add"), json!({})).await;
    until("both calls have begun", || stack.ledger.begun().len() == 2).await;
    stack.kill(What::Worker).await;
    let failed = outcome(&stack.server, &paid).await;
    assert_eq!(failed["error"]["code"], "CALL_INTERRUPTED", "{failed}");
    assert_eq!(outcome(&stack.server, &added).await["result"], "x");
    let begun = stack.ledger.begun();
    assert_eq!(begun.len(), 3, "only the idempotent call is made again");
    assert_eq!(begun[2]["key"], format!("{added}:0"), "the tool can tell that it is the same call");
}

/// An approval outlives the server, the worker and Restate.
#[tokio::test]
async fn an_approval_outlives_everything() {
    let approval = json!({"approval": {"rules": [{"tool": "ledger:pay", "approval": "always"}]}});
    let mut stack = Stack::start(approval).await;
    let script = "const { n } = codecallContext; const first = await ledger.read({ n });
        const paid = await ledger.pay({ n }).catch((error) => error.code);
        await sleep(300); return [first.n, paid.n ?? paid]";
    let (yes, no) =
        (submit(&stack.server, script, json!({"n": 1})).await, submit(&stack.server, script, json!({"n": 2})).await);
    let mut ids = Vec::new();
    for run in [&yes, &no] {
        let began = Instant::now();
        let waiting = loop {
            let (_, answer) = get(&stack.server, &format!("/v1/runs/{run}")).await;
            if answer["status"] == "waiting" {
                break answer;
            }
            assert!(began.elapsed() < START, "{answer}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        ids.push(waiting["approvals"][0]["id"].as_str().expect("an id").to_owned());
    }
    assert_eq!(stack.ledger.begun().len(), 2, "nothing was paid");
    kill(stack.server).await;
    stack.worker.kill().await;
    stack.restate.kill().await;
    stack.restate.start_again().await;
    stack.worker.start_again().await;
    stack.server = HttpProcess::start(&["--config", &stack.config]).await;
    for (command, id) in [("approve", &ids[0]), ("deny", &ids[1])] {
        let decided = codecall(&[command, id, "--config", &stack.config]).await;
        assert_eq!(decided.code, Some(0), "{decided:?}");
    }
    assert_eq!(outcome(&stack.server, &yes).await["result"], json!([1, 1]));
    assert_eq!(outcome(&stack.server, &no).await["result"], json!([2, "APPROVAL_DENIED"]));
    assert_eq!(stack.ledger.begun().len(), 3, "paid once, and nothing was read again");
}

/// A script sleeps while nothing runs.
#[tokio::test]
async fn a_sleep_outlives_everything() {
    let mut stack = Stack::start(json!({})).await;
    let script = "const began = Date.now(), first = await ledger.read({ n: 1 }); await sleep(4000);
        return [first.n, Date.now() - began >= 4000, (await ledger.read({ n: 2 })).n]";
    let began = Instant::now();
    let run = submit(&stack.server, script, json!({})).await;
    until("it has begun", || stack.ledger.begun().len() == 1).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    stack.kill(What::Both).await;
    let answer = outcome(&stack.server, &run).await;
    assert_eq!(answer["result"], json!([1, true, 2]), "{answer}");
    assert!(began.elapsed() >= Duration::from_secs(4) && stack.ledger.begun().len() == 2);
}

/// The time of a run is kept by Restate: it counts what was before a kill.
#[tokio::test]
async fn a_run_ends_at_its_limit() {
    let mut stack = Stack::start(json!({})).await;
    let request = json!({"script": "await ledger.read({ n: 1 }); await sleep(60000); return 1", "limits": {"maxDurationMs": 3000}});
    let began = Instant::now();
    let (_, submitted) = post_json(&stack.server.url, "/v1/runs", &request).await;
    until("it has begun", || stack.ledger.begun().len() == 1).await;
    stack.kill(What::Worker).await;
    let answer = outcome(&stack.server, submitted["id"].as_str().expect("an id")).await;
    let error = &answer["error"];
    assert_eq!(
        (&answer["status"], &error["code"], &error["message"]),
        (&json!("timeout"), &json!("TIMEOUT"), &json!("Script execution timed out after 3000ms")),
        "{answer}"
    );
    assert!(began.elapsed() >= Duration::from_secs(3));
}

/// A cancelled run stops the tool that it waits for, also when the run has been suspended.
#[tokio::test]
async fn a_cancelled_run_stops_its_tools() {
    let stack = Stack::start(json!({})).await;
    let script = "await Promise.all([ledger.pay({ ms: 60000 }), ledger.read({ ms: 60000 })])";
    let request = json!({"script": script});
    for wait in [Duration::ZERO, Duration::from_secs(12)] {
        let (begun, dropped) = (stack.ledger.begun().len(), stack.ledger.dropped());
        let (_, submitted) = post_json(&stack.server.url, "/v1/runs", &request).await;
        let path = format!("/v1/runs/{}", submitted["id"].as_str().expect("an id"));
        until("it calls", || stack.ledger.begun().len() == begun + 2).await;
        tokio::time::sleep(wait).await;
        let cancelled = post_json(&stack.server.url, &format!("{path}/cancel"), &json!({})).await;
        assert_eq!((cancelled.0, &cancelled.1["cancelled"]), (200, &json!(true)), "{}", cancelled.1);
        until("the tools are stopped", || stack.ledger.dropped() == dropped + 2).await;
        let (_, answer) = get(&stack.server, &format!("{path}?wait=20")).await;
        assert_eq!(answer["error"]["code"], "EXECUTION_ABORTED", "{answer}");
        let again = post_json(&stack.server.url, &format!("{path}/cancel"), &json!({})).await;
        assert_eq!(again.1["cancelled"], false);
    }
    // What loses a race is stopped too.
    let dropped = stack.ledger.dropped();
    let raced = stack
        .run("return (await Promise.race([ledger.read({ n: 1, ms: 60000 }), ledger.read({ n: 2, ms: 5 })])).n")
        .await;
    assert_eq!(raced["result"], 2, "{raced}");
    until("the loser is stopped", || stack.ledger.dropped() == dropped + 1).await;
}

/// Two submissions with one key begin one run.
#[tokio::test]
async fn a_run_is_submitted_once() {
    let stack = Stack::start(json!({})).await;
    let with_key = |script: &'static str| {
        let request = http_client().post(format!("{}/v1/runs", stack.server.url)).header("idempotency-key", "a");
        let body = json!({"script": script}).to_string();
        let sent = request.header("content-type", "application/json").body(body).send();
        async move {
            let response = sent.await.expect("an answer");
            (response.status().as_u16(), response.json::<Value>().await.expect("JSON"))
        }
    };
    let script = "return (await ledger.add({ n: 1 })).n";
    let first = with_key(script).await;
    assert_eq!(first.0, 202, "{}", first.1);
    assert_eq!(with_key(script).await, first);
    assert_eq!(outcome(&stack.server, first.1["id"].as_str().expect("an id")).await["result"], 1);
    assert_eq!(with_key(script).await, first, "also when it has ended");
    let other = with_key("return 2").await;
    assert_eq!((other.0, &other.1["error"]["code"]), (409, &json!("KEY_USED")), "{}", other.1);
    assert_eq!(stack.ledger.begun().len(), 1);
    // Nobody has submitted it.
    let unknown = get(&stack.server, "/v1/runs/0123456789abcdef0123456789abcdef").await;
    assert_eq!(unknown.0, 404);
}

/// A worker of another version refuses to go on with a run, says so, and takes nothing from the worker of its version.
#[tokio::test]
async fn a_worker_of_another_version_refuses_a_run() {
    let mut stack = Stack::start(json!({})).await;
    let script = "const first = await ledger.read({ n: 1 }); await sleep(2000); return [first.n, (await ledger.read({ n: 2 })).n]";
    let run = submit(&stack.server, script, json!({})).await;
    until("it has begun", || stack.ledger.begun().len() == 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    stack.worker.kill().await;
    let mut other = Command::new(other_version(&stack.folder));
    // It is refused at the address of the other version.
    let refused = finish(other.args(&stack.worker.words), "").await;
    assert!(refused.code == Some(2) && refused.stderr.contains("use another address"), "{refused:?}");
    // Without having asked, it gets the run.
    let mut unasked = Command::new(other_version(&stack.folder));
    let mut words = stack.worker.words.clone();
    let at = words.iter().position(|word| word == "--restate-admin").expect("a flag");
    let folder = Folder::new();
    let elsewhere = Restate::start(&folder).await;
    words[at + 1] = elsewhere.admin_url();
    let (_, mut child) = HttpProcess::start_saying(unasked.args(&words), "registered").await;
    let began = Instant::now();
    let problem = loop {
        let (_, answer) = get(&stack.server, &format!("/v1/runs/{run}?wait=1")).await;
        let problem = answer["problem"].as_str().unwrap_or_default();
        if problem.contains("REPLAY_MISMATCH") {
            break problem.to_owned();
        }
        assert!(began.elapsed() < START, "{answer}");
    };
    let (ours, theirs) = (env!("CARGO_PKG_VERSION"), OTHER_VERSION);
    assert!(problem.contains(&format!("agentscript {ours}")) && problem.contains(theirs), "{problem}");
    child.kill().await.expect("ends");
    stack.worker.start_again().await;
    let answer = outcome(&stack.server, &run).await;
    assert_eq!(answer["result"], json!([1, 2]), "{answer}");
    assert_eq!(stack.ledger.begun().len(), 2);
}

const OTHER_VERSION: &str = "9.9.9";

/// Returns the program with another version of the interpreter written into it.
fn other_version(folder: &Folder) -> PathBuf {
    let path = PathBuf::from(folder.path("codecall-other"));
    if path.exists() {
        return path;
    }
    let mut bytes = std::fs::read(PROGRAM).expect("the program");
    let (ours, theirs) = (format!("agentscript {}", env!("CARGO_PKG_VERSION")), format!("agentscript {OTHER_VERSION}"));
    assert_eq!(ours.len(), theirs.len());
    let found: Vec<usize> = bytes
        .windows(ours.len())
        .enumerate()
        .filter(|(_, window)| *window == ours.as_bytes())
        .map(|(at, _)| at)
        .collect();
    assert!(!found.is_empty(), "the version is in the program");
    for at in found {
        bytes[at..at + theirs.len()].copy_from_slice(theirs.as_bytes());
    }
    std::fs::copy(PROGRAM, &path).expect("copied");
    std::fs::write(&path, bytes).expect("written");
    path
}

/// Runs stay at the worker where they have begun; a drain waits for them, and removes it.
#[tokio::test]
async fn an_earlier_worker_is_drained() {
    let stack = Stack::start(json!({})).await;
    let script = "const first = await ledger.read({ n: 1 }); await sleep(3000); return first.n";
    let run = submit(&stack.server, script, json!({})).await;
    until("it has begun", || stack.ledger.begun().len() == 1).await;
    let newer = Worker::start(&stack.config, &stack.restate).await;
    let drain = |wait: &'static str| {
        let config = stack.config.clone();
        async move { codecall(&["worker", "drain", "--wait", wait, "--config", &config]).await }
    };
    let open = drain("0").await;
    assert!(open.code == Some(1) && open.stderr.contains("has 1 runs and calls"), "{open:?}");
    let drained = drain("60").await;
    assert!(drained.code == Some(0) && drained.stderr.contains("can be stopped"), "{drained:?}");
    assert_eq!(outcome(&stack.server, &run).await["result"], 1);
    assert_eq!(stack.worker.end().await, Some(0));
    assert!(drain("0").await.stderr.contains("no workers of earlier versions"));
    // New runs begin at the other one.
    let run = submit(&stack.server, "return (await ledger.read({ n: 2 })).n", json!({})).await;
    assert_eq!(outcome(&stack.server, &run).await["result"], 2);
    drop(newer);
}

/// A Restate that is not there, has no worker, or is something else: the client is told.
#[tokio::test]
async fn an_engine_that_cannot_be_used_is_an_error() {
    let garbage = serve(axum::Router::new().fallback(|| async { "hello" })).await;
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let url = ledger.start().await;
    for (address, wanted) in [
        (format!("http://127.0.0.1:{}", free_port()), "Restate cannot be reached"),
        (garbage, "Restate answers what is not expected"),
    ] {
        let durable = json!({"durable": {"enabled": true, "restate": address}});
        let config = config(&folder, &url, durable);
        let server = HttpProcess::start(&["--config", &config]).await;
        let (status, answer) = post_json(&server.url, "/v1/runs", &json!({"script": "return 1"})).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert_eq!((status, &answer["error"]["code"]), (503, &json!("ENGINE_UNAVAILABLE")), "{answer}");
        assert!(message.contains(wanted) && message.contains("durable.restate"), "{message}");
    }
    let durable = json!({"durable": {"enabled": true, "restate": "restate"}});
    let refused = codecall(&["run", "--config", &config(&folder, &url, durable), "--demo", "-"]).await;
    assert!(refused.code == Some(2) && refused.stderr.contains("http://HOST:PORT"), "{refused:?}");

    let folder = Folder::new();
    let mut restate = Restate::start(&folder).await;
    let durable = json!({"durable": {"enabled": true, "restate": restate.url(), "restateAdmin": restate.admin_url()}});
    let config = config(&folder, &url, durable);
    let server = HttpProcess::start(&["--config", &config]).await;
    let (status, answer) = post_json(&server.url, "/v1/runs", &json!({"script": "return 1"})).await;
    assert!(status == 503 && answer.to_string().contains("codecall worker --restate"), "{answer}");
    // It vanishes while a run is open.
    let _worker = Worker::start(&config, &restate).await;
    let run =
        submit(&server, "const first = await ledger.read({ n: 1 }); await sleep(1500); return first.n", json!({}))
            .await;
    until("it has begun", || ledger.begun().len() == 1).await;
    restate.kill().await;
    let (status, answer) = get(&server, &format!("/v1/runs/{run}")).await;
    assert!(
        status == 200 && answer["status"] == "running" && answer["problem"].to_string().contains("reached"),
        "{answer}"
    );
    restate.start_again().await;
    assert_eq!(outcome(&server, &run).await["result"], 1);
}
