//! Secrets that are encrypted at rest, and configurations that name them.

use crate::model_server::HttpProcess;
use crate::support::*;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use tokio::process::Command;

const VALUE: &str = "s3cret-Value/with+more&than=six";

/// Runs a command whose state is in the folder.
async fn with_state(folder: &Folder, words: &[&str], input: &str) -> Finished {
    finish(
        Command::new(PROGRAM).args(words).env("CODECALL_STATE_DIR", folder.path("state")).env_remove("CODECALL_STORE"),
        input,
    )
    .await
}

#[tokio::test]
async fn secrets_are_stored_listed_rotated_and_deleted() {
    let folder = Folder::new();
    let set = with_state(&folder, &["secret", "set", "API_KEY"], &format!("{VALUE}\n")).await;
    assert!(set.code == Some(0) && set.stderr.contains("made a master key"), "{set:?}");
    let set = with_state(&folder, &["secret", "set", "team/API_KEY"], "another-value").await;
    assert!(set.code == Some(0) && !set.stderr.contains("master key"), "{set:?}");
    assert!(set.stderr.contains("${secret:team/API_KEY}"), "{set:?}");
    let mode = std::fs::metadata(folder.path("state/master.key")).expect("a key").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let listed = with_state(&folder, &["secret", "list", "--all", "--json"], "").await;
    let names: Vec<Value> = listed
        .json()
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| json!([entry["workspace"], entry["name"]]))
        .collect();
    assert_eq!(names, [json!(["default", "API_KEY"]), json!(["team", "API_KEY"])]);
    assert_eq!(with_state(&folder, &["secret", "list", "--workspace", "team"], "").await.stdout.lines().count(), 1);

    let rotated = with_state(&folder, &["secret", "rotate"], "").await;
    assert!(rotated.stderr.contains("2 secrets are encrypted"), "{rotated:?}");
    let keys = std::fs::read_to_string(folder.path("state/master.key")).expect("keys");
    assert_eq!(keys.lines().filter(|line| !line.is_empty()).count(), 2);
    let newest = keys.lines().next().expect("a key").to_owned();
    std::fs::write(folder.path("state/master.key"), &newest).expect("the old key is gone");
    let config = folder.file("a.toml", "[http]\ntoken = \"${secret:API_KEY}\"\n");
    assert_eq!(with_state(&folder, &["config", "check", &config], "").await.code, Some(0));

    let other = with_state(&folder, &["secret", "key", "--print"], "").await.stdout;
    let mut wrong = Command::new(PROGRAM);
    wrong
        .args(["config", "check", &config])
        .env("CODECALL_STATE_DIR", folder.path("state"))
        .env_remove("CODECALL_STORE");
    let refused = finish(wrong.env("CODECALL_MASTER_KEY", other.trim()), "").await;
    assert!(refused.code == Some(2) && refused.stderr.contains("another master key"), "{refused:?}");
    let mut malformed = Command::new(PROGRAM);
    malformed
        .args(["config", "check", &config])
        .env("CODECALL_STATE_DIR", folder.path("state"))
        .env_remove("CODECALL_STORE");
    let refused = finish(malformed.env("CODECALL_MASTER_KEY", "dG9vIHNob3J0"), "").await;
    assert!(refused.stderr.contains("CODECALL_MASTER_KEY: a master key is 32 bytes"), "{refused:?}");
    assert!(!refused.stderr.contains("dG9vIHNob3J0"));

    assert_eq!(with_state(&folder, &["secret", "rm", "API_KEY"], "").await.code, Some(0));
    let gone = with_state(&folder, &["secret", "rm", "API_KEY"], "").await;
    assert!(gone.code == Some(2) && gone.stderr.contains("there is no secret default/API_KEY"), "{gone:?}");
    let missing = with_state(&folder, &["config", "check", &config], "").await;
    assert!(missing.code == Some(2) && missing.stderr.contains("there is no stored secret API_KEY"), "{missing:?}");
    for (name, value, problem) in [
        ("X", "short", "at least 6 characters"),
        ("a b", "long enough", "NAME or WORKSPACE/NAME"),
        ("a/b/c", "long enough", "NAME or WORKSPACE/NAME"),
    ] {
        let refused = with_state(&folder, &["secret", "set", name], value).await;
        assert!(refused.code == Some(2) && refused.stderr.contains(problem), "{refused:?}");
    }
    for entry in std::fs::read_dir(folder.path("state")).expect("a folder").flatten() {
        let bytes = std::fs::read(entry.path()).expect("readable");
        assert!(!bytes.windows(8).any(|part| VALUE.as_bytes().windows(8).any(|of| of == part)), "{entry:?}");
    }
}

/// A configuration names a secret, which is used and masked everywhere.
#[tokio::test]
async fn a_configuration_uses_a_stored_secret() {
    let folder = Folder::new();
    with_state(&folder, &["secret", "set", "web/TOKEN"], VALUE).await;
    let config = folder.file("a.toml", "[store]\nworkspace = \"web\"\n[http]\ntoken = \"${secret:TOKEN}\"\n");
    let mut command = Command::new(PROGRAM);
    command
        .args(["serve", "--http", "0", "--config", &config])
        .env("CODECALL_STATE_DIR", folder.path("state"))
        .env_remove("CODECALL_STORE");
    let server = HttpProcess::start_as(&mut command).await;
    let status = |token: &'static str| codecall_status(&server.url, token);
    assert_eq!(status(VALUE).await.code, Some(0));
    assert_eq!(status("another-token-of-length").await.code, Some(2));
    server.end().await;

    let script = folder.file(
        "a.js",
        format!("console.log('{VALUE}'); return ['{VALUE}', btoa('{VALUE}'), encodeURIComponent('{VALUE}')]"),
    );
    let ran = with_state(&folder, &["run", &script, "--config", &config], "").await;
    assert_eq!(ran.json()["result"], json!(["[secret]", "[secret]==", "[secret]"]), "{ran:?}");
    let shown = with_state(&folder, &["config", "show", &config], "").await;
    assert!(shown.code == Some(0) && !shown.stdout.contains(VALUE), "{shown:?}");
    let runs = with_state(&folder, &["history", "--json", "--config", &config], "").await;
    let id = runs.json()["id"].as_str().expect("an id").to_owned();
    let run = with_state(&folder, &["history", "show", &id, "--config", &config], "").await;
    assert!(!run.stdout.contains("s3cret") && run.stdout.contains("[secret]"), "{run:?}");
    for file in ["codecall.db", "codecall.db-wal"] {
        let bytes = std::fs::read(folder.path(&format!("state/{file}"))).unwrap_or_default();
        assert!(!bytes.windows(8).any(|part| VALUE.as_bytes().windows(8).any(|of| of == part)), "{file}");
    }
}

/// Servers that share a store, and have no folder in common, have one key: the second one does not make another.
#[tokio::test]
async fn a_second_server_makes_no_second_key() {
    let folder = Folder::new();
    let config = folder.file("a.json", json!({"store": folder.path("shared.db")}).to_string());
    let run = async |state: &str, words: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(words).args(["--config", &config]).env("CODECALL_STATE_DIR", folder.path(state));
        finish(&mut command, VALUE).await
    };
    assert_eq!(run("one", &["secret", "set", "A"]).await.code, Some(0));
    let refused = run("two", &["secret", "set", "B"]).await;
    let key = folder.path("two/master.key");
    assert!(refused.code == Some(2) && refused.stderr.contains(&key), "{refused:?}");
    assert!(!std::path::Path::new(&key).exists());
    std::fs::create_dir_all(folder.path("two")).expect("a folder");
    std::fs::copy(folder.path("one/master.key"), &key).expect("copied");
    assert_eq!(run("two", &["secret", "set", "B"]).await.code, Some(0));
    // Also after the key was changed.
    assert_eq!(run("one", &["secret", "rotate"]).await.code, Some(0));
    let old = run("two", &["secret", "set", "B"]).await;
    assert!(old.code == Some(2) && old.stderr.contains("which this server does not have"), "{old:?}");
    let checked = run("one", &["store", "check", "--json"]).await.json();
    assert_eq!((&checked["secrets"], &checked["problems"]), (&json!(2), &json!([])));
}

async fn codecall_status(url: &str, token: &str) -> Finished {
    codecall(&["status", "--url", url, "--token", token]).await
}

/// A rotation reaches the journals of runs, more than 16 keys can be there, and a key that something needs is not removed.
#[tokio::test]
async fn a_rotation_reaches_journals() {
    use crate::durable::{Ledger, config, kill, outcome, submit};
    use crate::model_server::HttpProcess;
    let (folder, ledger) = (Folder::new(), Ledger::default());
    let config = config(&folder, &ledger.start().await, json!({}));
    let server = HttpProcess::start(&["--config", &config]).await;
    let script = "await ledger.pay({ n: 1 }); await sleep(1500); return (await ledger.pay({ n: 2 })).n";
    let ended = submit(&server, "return (await ledger.read({ n: 9 })).n", json!({})).await;
    assert_eq!(outcome(&server, &ended).await["result"], 9);
    let open = submit(&server, script, json!({})).await;
    until("it has paid", || ledger.begun().len() == 2).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    kill(server).await;
    let path = folder.path("state/master.key");
    let first = std::fs::read_to_string(&path).expect("a key");
    for _ in 0..18 {
        let rotated = codecall(&["secret", "rotate", "--config", &config]).await;
        assert_eq!(rotated.code, Some(0), "{rotated:?}");
    }
    let keys = std::fs::read_to_string(&path).expect("keys");
    assert_eq!(keys.lines().count(), 19);
    // Nothing needs the earlier ones.
    std::fs::write(&path, keys.lines().next().expect("a key")).expect("written");
    let server = HttpProcess::start(&["--config", &config]).await;
    assert_eq!(outcome(&server, &ended).await["result"], 9);
    assert_eq!(outcome(&server, &open).await["result"], 2);
    assert_eq!(ledger.begun().len(), 3, "no payment is made again");

    // An earlier key is removed by its id.
    assert_eq!(codecall(&["secret", "rotate", "--config", &config]).await.code, Some(0));
    let unknown = codecall(&["secret", "key", "--forget", "00000000", "--config", &config]).await;
    assert!(unknown.code == Some(2) && unknown.stderr.contains("has no key 00000000"), "{unknown:?}");
    let earlier =
        unknown.stderr.split("earlier keys there are ").nth(1).expect("its id").lines().next().expect("a line");
    let forgotten = codecall(&["secret", "key", "--forget", earlier.trim(), "--config", &config]).await;
    assert_eq!(forgotten.code, Some(0), "{forgotten:?}");
    assert_eq!(std::fs::read_to_string(&path).expect("keys").lines().count(), 1);
    assert_eq!(outcome(&server, &ended).await["result"], 9, "the server reads the key again");
    assert!(!first.trim().is_empty() && server.end().await == Some(0));
}
