//! Commands that use a running server.

use crate::faults::{configured, log, wrong_upstream};
use crate::support::*;
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// The program, with the folders of a user of its own.
fn program(folder: &Folder, words: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    let home = folder.path("");
    command.args(words).env("XDG_RUNTIME_DIR", &home).env("XDG_CACHE_HOME", &home).env("HOME", &home);
    command
}

/// A server, once its upstreams are up.
async fn serve(folder: &Folder, config: &str) -> Child {
    let mut command = program(folder, &["serve", "--http", "0", "--config", config]);
    let mut server = command.stderr(Stdio::piped()).kill_on_drop(true).spawn().expect("starts");
    let mut lines = BufReader::new(server.stderr.take().expect("piped")).lines();
    let ready = async {
        while let Ok(Some(line)) = lines.next_line().await {
            if line.contains("ready: ") {
                return;
            }
        }
        panic!("the server ended");
    };
    tokio::time::timeout(TIMEOUT, ready).await.expect("it is ready");
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    server
}

fn sockets(folder: &Folder) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder.path("codecall")).into_iter().flatten().flatten();
    files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|kind| kind == "sock")).collect()
}

/// How often the upstream was started.
fn starts(folder: &Folder) -> usize {
    log(folder, "good.log").matches("pid ").count()
}

#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn commands_use_a_running_server() {
    let folder = Folder::new();
    let upstream = wrong_upstream(&folder);
    let config = configured(&folder, &upstream, &[("good", "good")], json!({}));
    let mut server = serve(&folder, &config).await;
    let [socket] = sockets(&folder).try_into().expect("one socket");
    let mode = |path: &PathBuf| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&socket), mode(&PathBuf::from(folder.path("codecall")))), (0o600, 0o700));

    let script = folder.file("script.js", "return await good.ok({})");
    let failing = folder.file("failing.js", "console.log('a'); return await good.lie({})");
    // A server learns what results look like before it writes that down, so this comes before any call.
    let commands: [&[&str]; 8] = [
        &["describe", "good:ok", "good:nothing"],
        &["run", &script],
        &["run", &failing],
        &["run", &script, &failing, "--max-tool-calls", "1"],
        &["run", &script, "--dry-run"],
        &["tools"],
        &["tools", "--json"],
        &["invoke", "good:lie", "{}"],
    ];
    let status = finish(&mut program(&folder, &["status", "--config", &config]), "").await;
    assert!(status.code == Some(0) && status.stdout.contains("up"), "{status:?}");
    assert_eq!(starts(&folder), 1, "the running server says how it is");
    for words in commands {
        let words = [words, &["--config", &config]].concat();
        let before = starts(&folder);
        let shared = finish(&mut program(&folder, &words), "").await;
        assert_eq!(starts(&folder), before, "{words:?} starts nothing");
        let own = finish(&mut program(&folder, &[words.as_slice(), &["--local"]].concat()), "").await;
        assert_eq!(shared.without_durations(), own.without_durations(), "{words:?}");
        assert_eq!((shared.code, &shared.stderr), (own.code, &own.stderr), "{words:?}");
    }
    assert!(starts(&folder) > 1, "--local starts the upstream");
    // A search does not wait for servers whose tools are known, and names those that are not up yet.
    let words = ["search", "a tool that does ok", "--top-k", "2", "--config", &config];
    let before = starts(&folder);
    let shared = finish(&mut program(&folder, &words), "").await;
    assert_eq!((starts(&folder), shared.json().get("warnings")), (before, None));
    let own = finish(&mut program(&folder, &[words.as_slice(), &["--local"]].concat()), "").await;
    assert_eq!((shared.code, &shared.json()["tools"]), (own.code, &own.json()["tools"]));

    // Another configuration.
    let other = folder.file("other.json", json!({"topK": 1, "mcpServers": {}}).to_string());
    let none = finish(&mut program(&folder, &["tools", "--config", &other]), "").await;
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));

    // A command that ends cancels its request.
    let mut hanging = program(&folder, &["invoke", "good:hang", "{}", "--config", &config]).spawn().expect("starts");
    until("the call", || log(&folder, "good.log").contains("hangs")).await;
    let before = log(&folder, "good.log").matches("cancelled").count();
    hanging.kill().await.expect("it was running");
    until("the cancellation", || log(&folder, "good.log").matches("cancelled").count() > before).await;

    // A server that was killed leaves its socket.
    server.kill().await.expect("it was running");
    assert_eq!(sockets(&folder).len(), 1);
    let own = finish(&mut program(&folder, &["run", &script, "--config", &config]), "").await;
    assert_eq!((own.code, own.json()["result"].as_str()), (Some(0), Some("fine")), "{own:?}");
    assert!(sockets(&folder).is_empty(), "it was removed");
}

/// A folder that others can open is not used, and a server that ends removes its socket.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn sockets_are_private() {
    let folder = Folder::new();
    let upstream = wrong_upstream(&folder);
    let config = configured(&folder, &upstream, &[("good", "good")], json!({}));
    let sockets_folder = folder.path("codecall");
    std::fs::create_dir(&sockets_folder).expect("a folder");
    std::fs::set_permissions(&sockets_folder, std::fs::Permissions::from_mode(0o777)).expect("allowed");
    drop(serve(&folder, &config).await);
    assert!(sockets(&folder).is_empty());
    std::fs::set_permissions(&sockets_folder, std::fs::Permissions::from_mode(0o700)).expect("allowed");
    let mut server = serve(&folder, &config).await;
    assert_eq!(sockets(&folder).len(), 1);
    let id = rustix::process::Pid::from_raw(server.id().expect("it runs").cast_signed()).expect("a process");
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it runs");
    tokio::time::timeout(TIMEOUT, server.wait()).await.expect("it ends").expect("it ends");
    assert!(sockets(&folder).is_empty());
}
