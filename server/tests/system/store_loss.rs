//! A store that cannot be used, or goes away under the server.

use crate::durable::{Ledger, config, get, outcome};
use crate::model_server::{HttpProcess, http_client, post_json};
use crate::support::*;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::process::Command;

const PAY: &str = "return (await ledger.pay({ n: 1 })).n";

/// Submits a run with a key. Returns the status and the answer.
async fn submit_with_key(server: &HttpProcess, key: &str) -> (u16, Value) {
    let request = http_client().post(format!("{}/v1/runs", server.url)).header("content-type", "application/json");
    let sent = request.header("idempotency-key", key).body(json!({"script": PAY}).to_string()).send();
    let response = sent.await.expect("an answer");
    (response.status().as_u16(), response.json().await.expect("JSON"))
}

async fn is_ready(server: &HttpProcess) -> bool {
    let response = http_client().get(format!("{}/readyz", server.url)).send().await.expect("an answer");
    response.status() == 200
}

/// Waits until the server says that it is ready, or that it is not.
async fn until_ready(server: &HttpProcess, wanted: bool) {
    let began = Instant::now();
    while is_ready(server).await != wanted {
        assert!(began.elapsed() < TIMEOUT, "ready: not {wanted}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Moves the file of the store with those beside it.
fn move_store(folder: &Folder, from: &str, to: &str) {
    std::fs::create_dir_all(folder.path(to)).expect("a folder");
    for end in ["", "-wal", "-shm"] {
        let (from, to) =
            (folder.path(&format!("{from}/codecall.db{end}")), folder.path(&format!("{to}/codecall.db{end}")));
        if std::path::Path::new(&from).exists() {
            std::fs::rename(from, to).expect("moved");
        }
    }
}

/// The ways in which the file can be lost.
const LOSSES: [&str; 4] = ["deleted", "moved", "replaced", "renamed folder"];

fn lose(folder: &Folder, how: &str) {
    let file = folder.path("state/codecall.db");
    match how {
        "deleted" => std::fs::remove_file(file).expect("removed"),
        "moved" => move_store(folder, "state", "aside"),
        "replaced" => {
            move_store(folder, "state", "aside");
            let other = rusqlite::Connection::open(file).expect("a file");
            other.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE others (a)").expect("a table");
        }
        _ => std::fs::rename(folder.path("state"), folder.path("aside")).expect("moved"),
    }
}

/// Whatever becomes of the file, no run is accepted that is not in it, and no key begins a second run.
#[tokio::test]
async fn no_run_is_accepted_by_a_server_whose_file_is_gone() {
    for how in LOSSES {
        let (folder, ledger) = (Folder::new(), Ledger::default());
        let config = config(&folder, &ledger.start().await, json!({}));
        let server = HttpProcess::start(&["--config", &config]).await;
        until_ready(&server, true).await;
        let (status, first) = submit_with_key(&server, "order-1").await;
        assert_eq!(status, 202, "{how}: {first}");
        assert_eq!(outcome(&server, first["id"].as_str().expect("an id")).await["result"], 1, "{how}");
        lose(&folder, how);
        for number in 0..24 {
            let key = if number % 2 == 0 { "order-1".to_owned() } else { format!("order-{number}") };
            let (status, refused) = submit_with_key(&server, &key).await;
            assert_eq!((status, &refused["error"]["code"]), (503, &json!("STORE_UNAVAILABLE")), "{how}: {refused}");
        }
        until_ready(&server, false).await;
        let (_, status) = get(&server, "/v1/status").await;
        assert!(status["store"]["error"].as_str().is_some_and(|error| error.contains("restart")), "{how}: {status}");
        assert_eq!(ledger.begun().len(), 1, "{how}");
        // The file comes back.
        match how {
            "deleted" => {}
            "renamed folder" => {
                let _ = std::fs::remove_dir_all(folder.path("state"));
                std::fs::rename(folder.path("aside"), folder.path("state")).expect("moved");
            }
            _ => {
                let _ = std::fs::remove_dir_all(folder.path("state"));
                move_store(&folder, "aside", "state");
            }
        }
        if how != "deleted" {
            until_ready(&server, true).await;
            let (status, again) = submit_with_key(&server, "order-1").await;
            assert_eq!((status, &again["id"]), (202, &first["id"]), "{how}: {again}");
            assert_eq!(outcome(&server, first["id"].as_str().expect("an id")).await["result"], 1, "{how}");
            assert_eq!(ledger.begun().len(), 1, "{how}");
        }
        assert_eq!(server.end().await, Some(0), "{how}");
    }
}

/// The log of the database was deleted: what is in it is not lost, also if the server is killed.
#[tokio::test]
async fn a_log_that_is_deleted_is_written_anew() {
    for ends in [&["-wal"][..], &["-shm"], &["-wal", "-shm"]] {
        let (folder, ledger) = (Folder::new(), Ledger::default());
        let config = config(&folder, &ledger.start().await, json!({}));
        let server = HttpProcess::start(&["--config", &config]).await;
        let (_, first) = submit_with_key(&server, "order-1").await;
        let id = first["id"].as_str().expect("an id");
        assert_eq!(outcome(&server, id).await["result"], 1);
        for end in ends {
            std::fs::remove_file(folder.path(&format!("state/codecall.db{end}"))).expect("removed");
        }
        let (status, second) = submit_with_key(&server, "order-2").await;
        assert_eq!(status, 202, "{ends:?}: {second}");
        assert_eq!(outcome(&server, second["id"].as_str().expect("an id")).await["result"], 1);
        crate::durable::kill(server).await;
        let server = HttpProcess::start(&["--config", &config]).await;
        for (key, id) in [("order-1", &first["id"]), ("order-2", &second["id"])] {
            let (status, again) = submit_with_key(&server, key).await;
            assert_eq!((status, &again["id"]), (202, id), "{ends:?}: {again}");
            assert_eq!(outcome(&server, id.as_str().expect("an id")).await["result"], 1, "{ends:?}");
        }
        assert_eq!(ledger.begun().len(), 2, "{ends:?}");
    }
}

/// A store that cannot be opened when the server starts, and later can.
#[tokio::test]
async fn a_server_is_not_ready_while_its_store_cannot_be_used() {
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let config = config(&folder, &ledger.start().await, json!({}));
    std::fs::create_dir_all(folder.path("state/codecall.db")).expect("a folder");
    let server = HttpProcess::start(&["--config", &config]).await;
    until_ready(&server, false).await;
    let response = http_client().get(format!("{}/readyz", server.url)).send().await.expect("an answer");
    assert_eq!(response.status(), 503);
    let refused = post_json(&server.url, "/v1/runs", &json!({"script": PAY})).await;
    assert_eq!((refused.0, &refused.1["error"]["code"]), (503, &json!("STORE_UNAVAILABLE")), "{}", refused.1);
    let ran = codecall(&["status", "--url", &server.url]).await;
    assert!(ran.code == Some(1) && ran.stderr.contains("it is a folder or a device"), "{ran:?}");
    std::fs::remove_dir(folder.path("state/codecall.db")).expect("removed");
    until_ready(&server, true).await;
    let (status, _) = submit_with_key(&server, "a").await;
    assert_eq!(status, 202);
    let ran = codecall(&["status", "--url", &server.url]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// A program without Postgres ends at the start, and says what has it.
#[cfg(not(feature = "postgres"))]
#[tokio::test]
async fn a_store_that_is_not_built_in_is_an_error() {
    let folder = Folder::new();
    for more in [json!({}), json!({"enabled": true})] {
        let store = json!({"store": {"url": "postgres://user:secret-word@127.0.0.1/x"}, "durable": more});
        let config = folder.file("codecall.json", store.to_string());
        for words in [
            &["serve", "--config", &config][..],
            &["serve", "--http", "0", "--config", &config],
            &["run", "--config", &config, "-"],
            &["config", "check", &config],
            &["store", "check", "--config", &config],
        ] {
            let refused = codecall(words).await;
            let says = ["without Postgres", "packages", "--features postgres"];
            assert!(
                refused.code == Some(2) && says.iter().all(|words| refused.stderr.contains(words)),
                "{words:?}: {refused:?}"
            );
            assert!(!refused.stderr.contains("secret-word"), "{refused:?}");
        }
    }
}

/// Durable runs need a store.
#[tokio::test]
async fn durable_runs_without_a_store_are_an_error() {
    let folder = Folder::new();
    let config = folder.file("codecall.json", json!({"durable": {"enabled": true}}).to_string());
    for words in [
        &["serve", "--config", &config][..],
        &["serve", "--http", "0", "--config", &config],
        &["config", "check", &config],
    ] {
        let refused = finish(Command::new(PROGRAM).args(words).env("CODECALL_STORE", ""), "").await;
        assert!(
            refused.code == Some(2) && refused.stderr.contains("durable.enabled: there is no store"),
            "{refused:?}"
        );
    }
}
