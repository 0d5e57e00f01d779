//! A client finds the run again that it has begun, whatever has become of its request, and its whole outcome.

use crate::durable::{Ledger, config, kill, outcome, submit};
use crate::model_server::{HttpProcess, http_client};
use crate::support::*;
use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

const KEY: &str = "codecall/idempotencyKey";
const SLOW: &str = "const { n } = codecallContext; const first = await ledger.pay({ n, step: 1 }); await sleep(1500);
    return [first.n, (await ledger.pay({ n, step: 2 })).step]";

fn request(script: &str, key: Option<&str>) -> CallToolRequestParams {
    let arguments = json!({"script": script, "context": {"n": 7}});
    let Value::Object(arguments) = arguments else { panic!("an object") };
    let mut request = CallToolRequestParams::new("codecall_execute").with_arguments(arguments);
    if let Some(key) = key {
        request.meta.get_or_insert_default().insert(KEY.to_owned(), key.into());
    }
    request
}

/// Kills the server while a request is in progress, once the script has paid and its answer is in the journal.
async fn cut(server: Arc<Server>, ledger: &Ledger, key: Option<&'static str>) {
    let before = ledger.begun().len();
    let asking = Arc::clone(&server);
    let asked = tokio::spawn(async move { asking.call_with(request(SLOW, key)).await });
    until("it has paid", || ledger.begun().len() == before + 1).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    let id = server.id().to_string();
    assert!(Command::new("kill").args(["-9", &id]).status().await.expect("kill").success());
    assert!(asked.await.expect("no panic").is_err(), "the answer does not come");
}

/// A client over stdio knows the handle before the first call is made.
#[tokio::test]
async fn a_handle_is_known_before_the_run_begins() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let config = config(&folder, &ledger.start().await, json!({}));
    let server = Arc::new(Server::start(&["--config", &config]).await);
    cut(Arc::clone(&server), &ledger, None).await;
    let logs = server.recorded.logs.lock().expect("not poisoned").clone();
    let is_said = |log: &&Value| log["data"]["event"] == "durable_run";
    let handle = logs.iter().find(is_said).expect("said")["data"]["handle"].clone();
    assert!(
        logs.iter().position(|log| is_said(&log))
            < logs.iter().position(|log| log["data"]["event"] == "tool_call_start")
    );
    let progress = server.recorded.progress.lock().expect("not poisoned").clone();
    let first = progress.first().and_then(|progress| progress.message.clone()).unwrap_or_default();
    assert!(first.contains(handle.as_str().expect("a text")), "{progress:?}");
    drop(server);
    let server = Server::start(&["--config", &config]).await;
    let answer = server.ask("codecall_execute", json!({"handle": handle})).await;
    assert_eq!((&answer["status"], &answer["result"]), (&json!("ok"), &json!([7, 2])), "{answer}");
    assert_eq!(ledger.begun().len(), 2, "nothing is paid twice");
}

/// A request that is sent again with its key gets the run of the first one, also over stdio.
#[tokio::test]
async fn a_request_with_a_key_begins_one_run() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let config = config(&folder, &ledger.start().await, json!({}));
    let server = Arc::new(Server::start(&["--config", &config]).await);
    cut(Arc::clone(&server), &ledger, Some("order-1")).await;
    drop(server);
    let server = Arc::new(Server::start(&["--config", &config]).await);
    let again = data(&server.call_with(request(SLOW, Some("order-1"))).await.expect("an answer"));
    assert_eq!((&again["status"], &again["result"]), (&json!("ok"), &json!([7, 2])), "{again}");
    assert_eq!(ledger.begun().len(), 2, "nothing is paid twice");
    // Several at once, and one that has ended.
    let send = |key: &'static str| {
        let server = Arc::clone(&server);
        tokio::spawn(async move { data(&server.call_with(request(SLOW, Some(key))).await.expect("an answer")) })
    };
    for answer in
        futures_util::future::join_all([send("order-2"), send("order-2"), send("order-2"), send("order-1")]).await
    {
        let answer = answer.expect("no panic");
        assert_eq!((&answer["status"], &answer["result"]), (&json!("ok"), &json!([7, 2])), "{answer}");
    }
    assert_eq!(ledger.begun().len(), 4);
    // The key is that of one request.
    let other = server.call_with(request("return 1", Some("order-1"))).await.expect("an answer");
    assert!(other.is_error == Some(true) && text(&other).contains("was used for another run"), "{other:?}");
    let argument = json!({"script": SLOW, "context": {"n": 7}, "idempotencyKey": "order-2"});
    assert_eq!(server.ask("codecall_execute", argument).await["result"], json!([7, 2]));
    assert_eq!(ledger.begun().len(), 4);
}

/// The end of a client over stdio cancels nothing: the run goes on in the next process.
#[tokio::test]
async fn a_run_outlives_its_client() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let config = config(&folder, &ledger.start().await, json!({}));
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--config", &config]).stdin(Stdio::piped()).stdout(Stdio::null()).kill_on_drop(true);
    let mut server = command.spawn().expect("starts");
    let mut stdin = server.stdin.take().expect("piped");
    let script = SLOW.replace("1500", "12_000");
    let client =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let call = json!({"name": "codecall_execute", "arguments": {"script": script, "context": {"n": 7}}, "_meta": {KEY: "order-1"}});
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
    ] {
        stdin.write_all(format!("{message}\n").as_bytes()).await.expect("it reads");
    }
    until("it has paid", || ledger.begun().len() == 1).await;
    drop(stdin);
    let ended = tokio::time::timeout(Duration::from_secs(20), server.wait()).await;
    assert!(ended.expect("it ends with its input").is_ok_and(|status| status.success()));
    let server = Server::start(&["--config", &config]).await;
    let again = data(&server.call_with(request(&script, Some("order-1"))).await.expect("an answer"));
    assert_eq!((&again["status"], &again["result"]), (&json!("ok"), &json!([7, 2])), "{again}");
    assert_eq!(ledger.begun().len(), 2, "nothing is paid twice");
}

/// A key of a request is that of `POST /v1/runs` too.
#[tokio::test]
async fn a_key_is_one_key_over_http_and_mcp() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let config = config(&folder, &ledger.start().await, json!({}));
    let server = HttpProcess::start(&["--config", &config]).await;
    let post = http_client().post(format!("{}/v1/runs", server.url)).header("content-type", "application/json");
    let body = json!({"script": SLOW, "context": {"n": 7}}).to_string();
    let sent = post.header("idempotency-key", "order-3").body(body).send().await.expect("an answer");
    assert_eq!(sent.status(), 202);
    let stdio = Server::start(&["--config", &config]).await;
    let again = data(&stdio.call_with(request(SLOW, Some("order-3"))).await.expect("an answer"));
    assert_eq!((&again["status"], &again["result"]), (&json!("ok"), &json!([7, 2])), "{again}");
    assert_eq!(ledger.begun().len(), 2);
}

/// Without durable runs a key in `_meta` changes nothing, and one in the arguments is refused.
#[tokio::test]
async fn a_key_needs_durable_runs() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let config = config(&folder, &ledger.start().await, json!({"durable": {}}));
    let server = Server::start(&["--config", &config]).await;
    let answer = data(&server.call_with(request("return 1", Some("a"))).await.expect("an answer"));
    assert_eq!(answer["result"], 1, "{answer}");
    let refused = server.call("codecall_execute", json!({"script": "return 1", "idempotencyKey": "a"})).await;
    assert!(text(&refused.expect("an answer")).contains("durable.enabled"));
}

/// A long result is kept as long as its outcome: more than a hundred of them, and after a restart.
#[tokio::test]
async fn long_results_are_kept_with_their_outcomes() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let store = json!({"resultStore": {"maxResults": 2, "maxBytes": 400_000, "expiryMs": 100}});
    let config = config(&folder, &ledger.start().await, store);
    let server = HttpProcess::start(&["--config", &config]).await;
    let script = "const { n } = await ledger.read({ n: codecallContext.n });
        return Array.from({ length: 12_000 }, (_, at) => `${n}:${at}`).join(' ')";
    let mut runs = Vec::new();
    for n in 0..5 {
        let run = submit(&server, script, json!({"n": n})).await;
        let answer = outcome(&server, &run).await;
        assert_eq!((&answer["status"], &answer["truncated"]["handle"]), (&json!("ok"), &json!(run)), "{answer}");
        runs.push(run);
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    kill(server).await;
    let server = Server::start(&["--config", &config]).await;
    for (n, run) in runs.iter().enumerate() {
        let expected: Vec<String> = (0..12_000).map(|at| format!("{n}:{at}")).collect();
        let (mut whole, mut next) = (String::new(), Some(json!(0)));
        while let Some(offset) = next {
            let piece = server.ask("codecall_execute", json!({"handle": run, "offset": offset})).await;
            let text = piece["result"].as_str().unwrap_or_else(|| panic!("{piece}"));
            whole.push_str(text.split_once("\n… [cut").map_or(text, |(text, _)| text));
            next = piece["truncated"].get("next").cloned();
        }
        assert!(whole == expected.join(" "), "{n}");
    }
    // The client that waits gets the same handle.
    let waited = json!({"script": script, "context": {"n": 9}});
    let answer = server.ask("codecall_execute", waited).await;
    let handle = answer["truncated"]["handle"].as_str().expect("a handle").to_owned();
    let read = server.ask("codecall_execute", json!({"handle": handle})).await;
    assert_eq!(read["result"], answer["result"]);
    let row = rusqlite::Connection::open(folder.path("state/codecall.db")).expect("the store");
    let (pieces, plain): (i64, i64) = row
        .query_row("SELECT count(*), (SELECT count(*) FROM results) FROM run_results", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .expect("numbers");
    assert_eq!((pieces, plain), (6, 0), "sealed with the journals");
}

/// A copy that is made beside a working server has all calls that its runs have made.
#[tokio::test]
async fn a_copy_beside_a_working_server_repeats_no_call() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let url = ledger.start().await;
    let config = config(&folder, &url, json!({"pool": {"maxRuns": 16}}));
    let server = HttpProcess::start(&["--config", &config]).await;
    let script = "const { run } = codecallContext; let sum = 0;
        for (let n = 0; n < 3; n++) sum += (await ledger.pay({ run, n, ms: 10 })).n;
        await sleep(4000);
        for (let n = 3; n < 6; n++) sum += (await ledger.pay({ run, n, ms: 10 })).n;
        return sum";
    let runs: Vec<String> =
        futures_util::future::join_all((0..10).map(|run| submit(&server, script, json!({"run": run})))).await;
    until("all have called", || ledger.begun().len() == 30).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let file = folder.path("copy.jsonl");
    let copied = codecall(&["store", "export", &file, "--config", &config]).await;
    assert!(copied.code == Some(0) && copied.stderr.contains("10 durable runs in it have not ended"), "{copied:?}");
    kill(server).await;
    let other = Folder::new();
    std::fs::create_dir_all(other.path("state")).expect("a folder");
    std::fs::copy(folder.path("state/master.key"), other.path("state/master.key")).expect("the key");
    let config = crate::durable::config(&other, &url, json!({"pool": {"maxRuns": 16}}));
    assert_eq!(codecall(&["store", "import", &file, "--config", &config]).await.code, Some(0));
    let server = HttpProcess::start(&["--config", &config]).await;
    for run in &runs {
        let answer = outcome(&server, run).await;
        assert_eq!((&answer["status"], &answer["result"]), (&json!("ok"), &json!(15)), "{answer}");
    }
    assert_eq!(ledger.begun().len(), 60, "no call is made again");
}

/// The first example of the documentation, as it is printed.
#[tokio::test]
async fn the_first_example_works_as_printed() {
    let page = std::fs::read_to_string(root().join("docs/operate/durable.md")).expect("the page");
    let part = |language: &str, number: usize| {
        let start = format!("```{language}\n");
        let block = page.split(&start).nth(number).expect("a block");
        block.split_once("\n```").expect("its end").0.to_owned()
    };
    let folder = Folder::new();
    // Tests store nothing, unless they name a file.
    let (state, store) = (folder.path("state"), folder.path("state/codecall.db"));
    let settings = format!("stateDir = {state:?}\nstore = {store:?}\n{}\n", part("toml", 1));
    let config = folder.file("codecall.toml", settings);
    let example = part("console", 1);
    let mut lines = example.lines();
    assert_eq!(lines.next(), Some("$ codecall serve --http 8931 --demo"));
    let server = HttpProcess::start(&["--demo", "--config", &config]).await;
    let (mut command, mut expected) = (String::new(), Vec::new());
    let mut steps = Vec::new();
    for line in lines {
        if let Some(new) = line.strip_prefix("$ ") {
            steps.push((std::mem::replace(&mut command, new.to_owned()), std::mem::take(&mut expected)));
        } else if command.ends_with('\\') {
            command.push('\n');
            command.push_str(line);
        } else {
            expected.push(line.to_owned());
        }
    }
    steps.push((command, expected));
    let steps: Vec<_> = steps.into_iter().filter(|(command, _)| !command.is_empty()).collect();
    assert_eq!(steps.len(), 2);
    for (command, expected) in steps {
        let command = command.replace("http://127.0.0.1:8931", &server.url);
        let ran = finish(Command::new("sh").args(["-c", &command]), "").await;
        assert_eq!(ran.stdout.trim_end(), expected.join("\n"), "{command}");
    }
}
