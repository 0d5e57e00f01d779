//! A machine that has no room, no descriptors, nothing that can be written, and a clock that jumps.

use super::*;
use tokio::net::TcpStream;

/// Without descriptors no connection is accepted; with them again, all are.
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
    // This client is already connected.
    assert_eq!(victim.execute("return 1").await["result"], 1);
    drop(streams);
    tokio::time::sleep(Duration::from_secs(2)).await;
    victim.recovers("no descriptors").await;
    victim.end().await;
}

/// Upstreams cannot be started without descriptors; the server reports that and continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn no_descriptors_for_upstreams() {
    let folder = Folder::new();
    let program = wrong_upstream(&folder);
    let names: Vec<String> = (0..20).map(|n| format!("app{n}")).collect();
    let upstreams: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "good")).collect();
    let config = configured(&folder, &program, &upstreams, json!({}));
    // Pipes to worker processes take some.
    let limit = if is_isolated() { 60 } else { 40 };
    let victim = Victim::start_as(&format!("ulimit -n {limit}"), &["--config", &config]).await;
    victim.answers().await;
    victim.end().await;
}

/// An audit file on a full disk: calls continue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disk() {
    let folder = Folder::new();
    let config = folder.file("config.json", json!({"audit": {"file": folder.path("audit.jsonl")}}).to_string());
    // Files may have one block; writing more fails.
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

/// Output that cannot be written is an error message, not a panic.
#[tokio::test]
async fn full_output() {
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

/// A home that does not exist and a read-only folder: nothing is written there.
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

/// Configurations that are not regular files, or far too long, are refused soon with a message.
#[tokio::test]
async fn configurations_that_are_not_files() {
    let folder = Folder::new();
    let long = folder.file("long.toml", "x = 1\n".repeat(2_000_000));
    let wide = folder.file("wide.toml", "x = 1\n".repeat(100_000));
    let deep = folder.file("deep.json", format!("{{\"vm\":{}", "[".repeat(1_000_000)));
    let broken = folder.file("broken.toml", b"\xff\xfe\x00");
    let absent = folder.path("absent.toml");
    for config in [folder.path(""), long, wide, deep, broken, absent] {
        let began = Instant::now();
        let ended = codecall(&["tools", "--config", &config]).await;
        assert_eq!(ended.code, Some(2), "{config}: {ended:?}");
        assert!(ended.stderr.len() < 10_000 && !ended.stderr.contains("panicked"), "{config}: {}", ended.stderr);
        assert!(began.elapsed() < AT_ONCE, "{config}: {:?}", began.elapsed());
    }
}

/// Returns the library that changes the time of day for a process, if it is installed.
pub fn find_libfaketime() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|folder| folder.path());
    let mut libraries = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1"));
    libraries.find(|library| library.exists())
}

fn libfaketime() -> PathBuf {
    find_libfaketime().expect("libfaketime is installed: bash .ci/run installs it")
}

/// The time of day jumps ten years forward and twenty back, as when a clock is set. The monotonic clock does not.
/// Runs, waits, timers, sessions and limits are not affected; timestamps show the new time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "SKIPPED: needs Python and libfaketime: bash .ci/run"]
async fn a_clock_that_jumps() {
    const LIMIT: Duration = Duration::from_secs(10);
    let library = libfaketime();
    if is_isolated() {
        return skipped("a clock that jumps: worker processes get no libraries of the environment");
    }
    let folder = Folder::new();
    let time = folder.file("time", "+0");
    let program = wrong_upstream(&folder);
    let limits = json!({"vm": {"maxDurationMs": LIMIT.as_millis()}, "audit": {"file": folder.path("audit")}});
    let config = configured(&folder, &program, &[("app", "good")], limits);
    let library = library.display();
    let prepared = format!(
        "export LD_PRELOAD={library} FAKETIME_TIMESTAMP_FILE={time} FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1"
    );
    let victim = Victim::start_as(&prepared, &["--demo", "--config", &config]).await;
    let year = async || victim.execute("return new Date().getFullYear()").await["result"].as_i64().expect("a year");
    let before = year().await;
    for (jump, years) in [("+3653d", 10), ("-3652d", -10), ("+0", 0)] {
        // It waits for a tool while the clock jumps, and calls others before and after.
        let script = "let calls = 0;
            for (let i = 0; i < 20; i++, calls++) await callTool('users:get', { id: 'usr_001' });
            await callTool('app:slow', {});
            for (let i = 0; i < 20; i++, calls++) await callTool('users:get', { id: 'usr_001' });
            return calls";
        let began = Instant::now();
        let (answer, ()) = tokio::join!(victim.execute(script), async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            std::fs::write(&time, jump).expect("a file of ours");
        });
        assert_eq!(answer["result"], 40, "{jump}: {answer}");
        assert!(began.elapsed() >= Duration::from_secs(1) && began.elapsed() < TIMEOUT, "{jump}");
        assert!((year().await - before - years).abs() <= 1, "{jump}");
        victim.recovers(jump).await;
    }
    // A time limit whose end is before its start.
    let began = Instant::now();
    let (ended, ()) = tokio::join!(victim.execute("await callTool('app:hang', {}, { timeoutMs: 1e6 })"), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        std::fs::write(&time, "-3652d").expect("a file of ours");
    });
    assert_eq!(ended["error"]["code"], "TIMEOUT", "{ended}");
    assert!((LIMIT..2 * LIMIT).contains(&began.elapsed()), "{:?}", began.elapsed());
    let audit = std::fs::read_to_string(folder.path("audit")).expect("calls are recorded");
    let has_record = |year: i64| audit.contains(&format!("\"time\":\"{year}-"));
    assert!(has_record(before) && (has_record(before + 10) || has_record(before + 9)), "{audit}");
    victim.end().await;
}
