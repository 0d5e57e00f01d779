//! Upstreams that lie, hang, crash, flood and break off.

use super::*;
use futures_util::future::join_all;

const SECOND: Duration = Duration::from_secs(1);

/// Each tool has one fault. Its call ends soon and names the fault, and the next call works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn tools() {
    let folder = Folder::new();
    let program = wrong_upstream(&folder);
    let config = configured(&folder, &program, &[("good", "good"), ("half", "good")], json!({}));
    let victim = Victim::start(&["--config", &config]).await;
    let fault = |code: &str, part: &str| Err((code.to_owned(), part.to_owned()));
    type Expected = (&'static str, Result<&'static str, (String, String)>);
    let expected: [Expected; 15] = [
        ("good:ok", Ok("fine")),
        ("good:lie", fault("INVALID_OUTPUT", "does not fit its output schema")),
        ("good:hang", fault("TOOL_TIMEOUT", "timed out after 1000ms")),
        ("half:half", fault("TOOL_TIMEOUT", "timed out after 1000ms")),
        ("good:flood", Ok("flooded")),
        ("good:twice", Ok("first")),
        ("good:other", Ok("for this one")),
        ("good:late", fault("TOOL_TIMEOUT", "timed out after 1000ms")),
        ("good:asks", Ok("asked")),
        ("good:news", Ok("told")),
        ("good:noise", Ok("loud")),
        ("good:wide", Ok("")),
        ("good:long", fault("MESSAGE_TOO_LARGE", "bytes; at most")),
        ("good:control", fault("TOOL_EXECUTION_ERROR", "root@host")),
        ("good:ok", Ok("fine")),
    ];
    for (tool, wanted) in expected {
        let timeout = if matches!(&wanted, Err((code, _)) if code == "TOOL_TIMEOUT") { SECOND } else { 30 * SECOND };
        let got = victim.call(tool, timeout).await;
        match (&got, &wanted) {
            (Ok(_), Ok("")) => {}
            (Ok(value), Ok(text)) => assert_eq!(value, text, "{tool}"),
            (Err((code, message)), Err((wanted, part))) => {
                assert!(code == wanted && message.contains(part.as_str()), "{tool}: {code} {message}");
            }
            _ => panic!("{tool}: {got:?}, not {wanted:?}"),
        }
        victim.recovers(tool).await;
    }
    until("the cancellation", || log(&folder, "good.log").contains("cancelled")).await;
    victim.end().await;
}

/// Invalid UTF-8 in place of the answer: the call ends without its timeout, or gets the answer
/// that follows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn broken_letters() {
    let folder = Folder::new();
    let program = wrong_upstream(&folder);
    let config = configured(&folder, &program, &[("good", "good")], json!({}));
    let victim = Victim::start(&["--config", &config]).await;
    let got = victim.call("good:utf8", 20 * SECOND).await;
    assert!(!matches!(&got, Err((code, _)) if code == "TOOL_TIMEOUT"), "{got:?}");
    assert_eq!(victim.call("good:ok", 20 * SECOND).await, Ok(json!("fine")));
    victim.recovers("broken letters").await;
    victim.end().await;
}

/// A server that ends in the middle of an answer is an error at once, and is restarted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn crashes() {
    let folder = Folder::new();
    let program = wrong_upstream(&folder);
    let config = configured(&folder, &program, &[("good", "good")], json!({}));
    let victim = Victim::start(&["--config", &config]).await;
    for tool in ["good:crash", "good:half_crash"] {
        let (code, message) = victim.call(tool, 20 * SECOND).await.expect_err("it ends");
        assert_eq!(code, "SERVER_UNAVAILABLE", "{tool}: {message}");
        assert!(message.contains("ended while the tool"), "{tool}: {message}");
        let began = Instant::now();
        while victim.call("good:ok", SECOND).await != Ok(json!("fine")) {
            assert!(began.elapsed() < TIMEOUT, "{tool}: it is not started again");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        victim.recovers(tool).await;
    }
    victim.end().await;
}

/// Faults at the start do not affect other servers, and take a limited amount of memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn starts() {
    let modes =
        ["same_cursor", "double", "names", "garbage", "endless", "dead", "silent", "drip", "deep_list", "long_list"];
    join_all(modes.map(leaves_others_alone)).await;
}

/// Endless lists of tools.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn endless_lists() {
    join_all(["cursor", "empty_cursor"].map(leaves_others_alone)).await;
}

async fn leaves_others_alone(mode: &str) {
    let folder = Folder::new();
    let program = wrong_upstream(&folder);
    let config = configured(&folder, &program, &[("good", "good"), ("wrong", mode)], json!({}));
    let victim = Victim::start(&["--config", &config]).await;
    let began = Instant::now();
    let mut most = victim.resources().megabytes;
    // Longer than its time to start.
    while began.elapsed() < 8 * SECOND {
        assert_eq!(victim.call("good:ok", AT_ONCE).await, Ok(json!("fine")), "{mode}");
        most = most.max(victim.resources().megabytes);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(most < victim.before.megabytes + 300, "{mode}: {most} MB, before: {:?}", victim.before);
    victim.answers().await;
    victim.end().await;
}

/// Faults over HTTP, in the body of the response.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn over_http() {
    let ways = [
        ["hang", "half_header", "half_body"],
        ["cut", "kind", "error"],
        ["teapot", "around", "endless"],
        ["endless_events", "endless_event", "headers_flood"],
    ];
    join_all(ways.map(recovers_over_http)).await;
}

async fn recovers_over_http(ways: [&str; 3]) {
    let folder = Folder::new();
    let program = wrong_upstream(&folder);
    let port_file = folder.path("port");
    let mut upstream = Command::new("python3");
    let _upstream = upstream.args([&program, "--http", "good", &port_file]).kill_on_drop(true).spawn().expect("starts");
    until("the port", || Path::new(&port_file).exists()).await;
    let url = format!("http://127.0.0.1:{}/mcp", std::fs::read_to_string(&port_file).expect("a port"));
    let config = folder.file("config.json", json!({"mcpServers": {"web": {"url": url}}}).to_string());
    let victim = Victim::start(&["--config", &config]).await;
    assert_eq!(victim.call("web:ok", 20 * SECOND).await, Ok(json!("fine")));
    for way in ways {
        let began = Instant::now();
        let got = victim.call(&format!("web:{way}"), 3 * SECOND).await;
        assert!(got.is_err(), "{way}: {got:?}");
        assert!(began.elapsed() < AT_ONCE, "{way}: {:?}", began.elapsed());
        victim.recovers(way).await;
        let began = Instant::now();
        while victim.call("web:ok", SECOND).await != Ok(json!("fine")) {
            assert!(began.elapsed() < TIMEOUT, "{way}: it is not reached again");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    victim.end().await;
}

/// An answer that is nested too deeply is an error at once, not a timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn nested_answers() {
    let folder = Folder::new();
    let program = wrong_upstream(&folder);
    let config = configured(&folder, &program, &[("good", "good")], json!({}));
    let victim = Victim::start(&["--config", &config]).await;
    let got = victim.call("good:deep", 20 * SECOND).await;
    assert!(!matches!(&got, Err((code, _)) if code == "TOOL_TIMEOUT"), "{got:?}");
    victim.recovers("a nested answer").await;
    victim.end().await;
}

/// A token that expires is no timeout: each call says so, until the configuration has another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn expired_tokens() {
    let folder = Folder::new();
    let program = wrong_upstream(&folder);
    let port_file = folder.path("port");
    let mut upstream = Command::new("python3");
    let _upstream = upstream.args([&program, "--http", "good", &port_file]).kill_on_drop(true).spawn().expect("starts");
    until("the port", || Path::new(&port_file).exists()).await;
    let url = format!("http://127.0.0.1:{}/mcp", std::fs::read_to_string(&port_file).expect("a port"));
    let configured = |token: &str| {
        let server = json!({"url": url, "headers": {"Authorization": format!("Bearer {token}-0123456789")}});
        folder.file("config.json", json!({"mcpServers": {"web": server}}).to_string())
    };
    let victim = Victim::start(&["--config", &configured("first")]).await;
    assert_eq!(victim.call("web:ok", 20 * SECOND).await, Ok(json!("fine")));
    for tool in ["web:expire", "web:ok", "web:ok"] {
        let began = Instant::now();
        let (code, message) = victim.call(tool, 20 * SECOND).await.expect_err("the token is refused");
        assert!(
            // Later calls may find that the connection is being made again.
            code == "SERVER_UNAVAILABLE" && (tool != "web:expire" || message.contains("refuses the credentials")),
            "{tool}: {code}: {message}"
        );
        assert!(!message.contains("0123456789"), "{message}");
        assert!(began.elapsed() < AT_ONCE, "{tool}: {:?}", began.elapsed());
    }
    configured("renewed");
    let began = Instant::now();
    while victim.call("web:ok", SECOND).await != Ok(json!("fine")) {
        assert!(began.elapsed() < TIMEOUT, "the new token is not used");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    victim.end().await;
}

/// Tools that come while a script runs are there for the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn changing_tools() {
    let folder = Folder::new();
    let program = wrong_upstream(&folder);
    let config = configured(&folder, &program, &[("good", "good")], json!({"expose": "direct"}));
    let victim = Victim::start(&["--config", &config]).await;
    let missing = victim.call("good:grown", SECOND).await.expect_err("it is not there yet");
    assert_eq!(missing.0, "TOOL_NOT_FOUND");
    assert_eq!(victim.call("good:grow", 20 * SECOND).await, Ok(json!("grew")));
    let began = Instant::now();
    while victim.call("good:grown", SECOND).await != Ok(json!("fine")) {
        assert!(began.elapsed() < TIMEOUT, "the new tool does not come");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    until("the notification", || victim.client.service().changes.load(std::sync::atomic::Ordering::Relaxed) > 0).await;
    victim.end().await;
}
