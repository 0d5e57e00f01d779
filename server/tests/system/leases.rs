//! Runs that another server takes over while the first one stands still, and clocks that differ and jump.

use crate::durable::{Ledger, config, get, kill, outcome, submit};
use crate::model_server::HttpProcess;
use crate::support::*;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

async fn signal(server: &HttpProcess, signal: &str) {
    let id = server.pid().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().await.expect("kill").success());
}

fn count(ledger: &Ledger, step: &str) -> usize {
    ledger.begun().iter().filter(|call| call["step"] == step).count()
}

/// Returns the recorded rows of a run.
async fn rows(config: &str, id: &str) -> Vec<Value> {
    let ran = codecall(&["history", "--json", "--limit", "1000", "--config", config]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json_lines().into_iter().filter(|row| row["id"] == id).collect()
}

/// A server is stopped for longer than its lease while a call of a run is noted and waits for a permit. Another server takes the run
/// over and pays. The first one goes on, has its permit, and does not pay.
#[tokio::test]
async fn a_stopped_server_pays_nothing_when_it_comes_back() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let limits = json!({"concurrencyLimits": [{"tool": "ledger:*", "limit": 1}]});
    let config = config(&folder, &ledger.start().await, limits);
    let first = HttpProcess::start(&["--config", &config]).await;
    let script = "const pay = async () => {
            for (;;) {
                try { return await ledger.pay({ step: 'pay', ms: 10 }) }
                catch (error) { if (error.code !== 'CALL_INTERRUPTED') throw error }
            }
        };
        await Promise.all([ledger.read({ step: 'read', ms: 2500 }), pay()]);
        return 'paid'";
    let run = submit(&first, script, json!({})).await;
    until("it reads", || count(&ledger, "read") == 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    signal(&first, "-STOP").await;
    let second = HttpProcess::start(&["--config", &config]).await;
    let answer = outcome(&second, &run).await;
    assert_eq!(answer["result"], "paid", "{answer}");
    assert_eq!(count(&ledger, "pay"), 1);
    signal(&first, "-CONT").await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(count(&ledger, "pay"), 1, "whoever has lost the run makes no call: {:?}", ledger.begun());
    // Both servers tell the same.
    assert_eq!(outcome(&first, &run).await["result"], "paid");
    assert_eq!(first.end().await, Some(0));
    assert_eq!(second.end().await, Some(0));
    let rows = rows(&config, &run).await;
    let statuses: Vec<&Value> = rows.iter().map(|row| &row["status"]).collect();
    assert_eq!(statuses, [&json!("ok")], "{rows:?}");
}

/// A run that goes on elsewhere after a stop has one row of history: its outcome.
#[tokio::test]
async fn history_says_what_the_journal_says_after_a_stop() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let config = config(&folder, &ledger.start().await, json!({}));
    let server = HttpProcess::start(&["--config", &config]).await;
    let script =
        "await ledger.read({ step: 'read' }); await sleep(1500); return (await ledger.read({ step: 'end' })).step";
    let run = submit(&server, script, json!({})).await;
    until("it has begun", || count(&ledger, "read") == 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(server.end().await, Some(0));
    assert_eq!(rows(&config, &run).await, [] as [Value; 0], "it has not ended");
    let server = HttpProcess::start(&["--config", &config]).await;
    // A run that ends in the same batch is not lost with it.
    let other = submit(&server, "return (await ledger.read({ step: 'other' })).step", json!({})).await;
    assert_eq!(outcome(&server, &run).await["result"], "end");
    assert_eq!(outcome(&server, &other).await["result"], "other");
    assert_eq!(server.end().await, Some(0));
    for id in [&run, &other] {
        let rows = rows(&config, id).await;
        assert!(rows.len() == 1 && rows[0]["status"] == "ok", "{rows:?}");
    }
}

/// Returns the library that changes the time of day of a process; `None`: it is not installed.
fn libfaketime() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|folder| folder.path());
    folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|library| library.exists())
}

/// Starts a server whose time of day is what the file says.
async fn start_at(library: &PathBuf, file: &str, config: &str) -> HttpProcess {
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--http", "0", "--config", config]);
    command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", file).env("FAKETIME_NO_CACHE", "1");
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    HttpProcess::start_as(&mut command).await
}

/// Servers differ by hours, and the time of day of one jumps. Runs are taken over in time, and none is beyond its limit.
#[tokio::test]
async fn clocks_that_differ_and_jump_move_no_run() {
    let Some(library) = libfaketime().filter(|_| !is_isolated()) else {
        return skipped("clocks that differ: needs libfaketime, and servers that read its file");
    };
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let limits = json!({"vm": {"maxDurationMs": 20_000}});
    let config = config(&folder, &ledger.start().await, limits);
    let script =
        "await ledger.read({ step: 'read' }); await sleep(1500); return (await ledger.read({ step: 'end' })).step";
    // The first server is ahead by an hour, then the second one is.
    for (first, second) in [("+1h", "-1h"), ("-1h", "+1h")] {
        let (one, two) = (folder.file("one", first), folder.file("two", second));
        let server = start_at(&library, &one, &config).await;
        let run = submit(&server, script, json!({})).await;
        let begun = count(&ledger, "read");
        until("it has begun", || count(&ledger, "read") > begun || begun > 0).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        kill(server).await;
        let other = start_at(&library, &two, &config).await;
        let began = Instant::now();
        let answer = outcome(&other, &run).await;
        assert_eq!((&answer["status"], &answer["result"]), (&json!("ok"), &json!("end")), "{first} {second}: {answer}");
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
        // Its time of day jumps while a run sleeps.
        for jump in [first, second] {
            let run = submit(&other, script, json!({})).await;
            tokio::time::sleep(Duration::from_millis(500)).await;
            std::fs::write(&two, jump).expect("a file of ours");
            let answer = outcome(&other, &run).await;
            assert_eq!(answer["result"], "end", "{jump}: {answer}");
        }
        assert_eq!(other.end().await, Some(0));
    }
}

/// The time in which no server has the run does not count for its limit, also if servers are killed twice.
#[tokio::test]
async fn time_without_a_server_does_not_count() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let config = config(&folder, &ledger.start().await, json!({"vm": {"maxDurationMs": 5_000}}));
    let script = "for (const step of ['a', 'b', 'c']) { await ledger.read({ step }); await sleep(400) }
        await sleep(1600); return 'end'";
    let server = HttpProcess::start(&["--config", &config]).await;
    let run = submit(&server, script, json!({})).await;
    until("it has begun", || count(&ledger, "a") == 1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    kill(server).await;
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    let server = HttpProcess::start(&["--config", &config]).await;
    until("it goes on", || count(&ledger, "b") == 1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    kill(server).await;
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    let server = HttpProcess::start(&["--config", &config]).await;
    let answer = outcome(&server, &run).await;
    assert_eq!(answer["result"], "end", "{answer}");
    assert_eq!(get(&server, &format!("/v1/runs/{run}")).await.0, 200);
}

/// Forwards connections to an address until it is dropped.
async fn forward(listener: TcpListener, to: String) {
    let mut open = tokio::task::JoinSet::new();
    while let Ok((mut from, _)) = listener.accept().await {
        let to = to.clone();
        open.spawn(async move {
            if let Ok(mut to) = TcpStream::connect(to).await {
                let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
            }
        });
    }
}

/// The connection to a server is lost for a second: a call that was never sent waits for it.
#[tokio::test]
async fn a_call_waits_for_a_lost_connection() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let url = ledger.start().await;
    let to = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let forwarding = tokio::spawn(forward(listener, to.clone()));
    let config = config(&folder, &format!("http://{address}/mcp"), json!({}));
    let server = HttpProcess::start(&["--config", &config]).await;
    let script = "await ledger.read({ step: 'read' }); await sleep(600);
        const paid = [];
        for (const step of ['one', 'two']) paid.push((await ledger.pay({ step })).step);
        return paid";
    let run = submit(&server, script, json!({})).await;
    until("it has begun", || count(&ledger, "read") == 1).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    forwarding.abort();
    let _ = forwarding.await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let listener = TcpListener::bind(address).await.expect("the port is free");
    let forwarding = tokio::spawn(forward(listener, to));
    let answer = outcome(&server, &run).await;
    assert_eq!(answer["result"], json!(["one", "two"]), "{answer}");
    assert_eq!((count(&ledger, "one"), count(&ledger, "two")), (1, 1));
    forwarding.abort();
}
