//! A machine that has no room, no descriptors, nothing that can be written.
//!
//! What is not here: a clock that jumps. No test can set the clock of the machine that it runs on. Limits of time
//! are measured by the monotonic clock, which does not jump; what scripts see is told by the host.

use super::*;
use tokio::net::TcpStream;

/// Without descriptors nobody is let in; with them again, everybody is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_descriptors() {
    let victim = Victim::start_as("ulimit -n 64", &["--demo"]).await;
    let mut streams = Vec::new();
    for _ in 0..200 {
        if let Ok(Ok(stream)) =
            tokio::time::timeout(Duration::from_millis(100), TcpStream::connect(victim.address())).await
        {
            streams.push(stream);
        }
    }
    // This client has its connection.
    assert_eq!(victim.execute("return 1").await["result"], 1);
    drop(streams);
    tokio::time::sleep(Duration::from_secs(2)).await;
    victim.recovers("no descriptors").await;
    victim.end().await;
}

/// Upstreams cannot be started without descriptors; the server says so and goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_descriptors_for_upstreams() {
    let folder = Folder::new();
    let Some(program) = wrong_upstream(&folder) else { return };
    let names: Vec<String> = (0..20).map(|n| format!("app{n}")).collect();
    let upstreams: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "good")).collect();
    let config = configured(&folder, &program, &upstreams, json!({}));
    let victim = Victim::start_as("ulimit -n 40", &["--config", &config]).await;
    victim.answers().await;
    victim.end().await;
}

/// An audit file on a disk that is full: calls go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk() {
    let folder = Folder::new();
    let config = folder.file("config.json", json!({"audit": {"file": folder.path("audit.jsonl")}}).to_string());
    // Files may have one block, behind which writing fails.
    let victim = Victim::start_as("trap '' XFSZ; ulimit -f 1", &["--demo", "--config", &config]).await;
    for _ in 0..20 {
        let answer = victim.execute("return (await users.get({ id: 'usr_001' })).id").await;
        assert_eq!(answer["result"], "usr_001", "{answer}");
    }
    victim.recovers("a full disk").await;
    let written = std::fs::metadata(folder.path("audit.jsonl")).map(|file| file.len());
    assert!(written.as_ref().is_ok_and(|length| (1..=1024).contains(length)), "{written:?}");
    victim.end().await;
}

/// Output that cannot be written is an error with words, not a panic.
#[tokio::test]
async fn full_output() {
    if !Path::new("/dev/full").exists() {
        return skipped("a full disk: there is no /dev/full");
    }
    let folder = Folder::new();
    let script = folder.file("script.js", "return 'x'.repeat(100)");
    for words in
        ["run \"$1\"", "tools --demo", "search --demo user", "describe --demo users:list", "check \"$1\"", "init"]
    {
        let line = format!("exec \"$0\" {words} > /dev/full");
        let ended =
            finish(Command::new("sh").args(["-c", &line, PROGRAM, &script]).current_dir(folder.path("")), "").await;
        assert!(!ended.stderr.contains("panicked"), "{words}: {ended:?}");
        assert!(ended.code.is_some_and(|code| code <= 2), "{words}: {ended:?}");
    }
}

/// A home that does not exist and a folder that cannot be written to: nothing is written there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_to_write_to() {
    let folder = Folder::new();
    let config = folder.file("config.json", "{}");
    let mut permissions = std::fs::metadata(&config).expect("a file").permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&config, permissions).expect("a file of ours");
    let prepared = "export HOME=/dev/null/none XDG_CACHE_HOME=/dev/null/none TMPDIR=/dev/null/none; cd /proc";
    let victim = Victim::start_as(prepared, &["--demo", "--config", &config]).await;
    let answer = victim.execute("return (await users.get({ id: 'usr_001' })).id").await;
    assert_eq!(answer["result"], "usr_001", "{answer}");
    victim.recovers("nothing to write to").await;
    victim.end().await;
}

/// Configurations that are no files, or far too long, are refused soon and in a sentence.
#[tokio::test]
async fn configurations_that_are_none() {
    let folder = Folder::new();
    let long = folder.file("long.toml", "x = 1\n".repeat(2_000_000));
    let deep = folder.file("deep.json", format!("{{\"vm\":{}", "[".repeat(1_000_000)));
    let broken = folder.file("broken.toml", b"\xff\xfe\x00");
    let absent = folder.path("absent.toml");
    for config in [folder.path(""), long, deep, broken, absent] {
        let began = Instant::now();
        let ended = codecall(&["tools", "--config", &config]).await;
        assert_eq!(ended.code, Some(2), "{config}: {ended:?}");
        assert!(ended.stderr.len() < 10_000 && !ended.stderr.contains("panicked"), "{config}: {}", ended.stderr);
        assert!(began.elapsed() < AT_ONCE, "{config}: {:?}", began.elapsed());
    }
}
