//! MCP servers written in `sh`, as child processes.

use crate::*;
use codecall_config::{Config, Format};
use codecall_store::Stores;
use futures_util::FutureExt as _;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

const SERVER: &str = r#"
echo 'not JSON at all'
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"server/discover"'*) say '"error":{"code":-32601,"message":"no"}' ;;
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) say '"result":{"tools":[{"name":"pid","inputSchema":{"type":"object"}},{"name":"die","inputSchema":{"type":"object"}},{"name":"big","inputSchema":{"type":"object"}},{"name":"env","inputSchema":{"type":"object"}}]}' ;;
    *'"name":"die"'*) exit 3 ;;
    *'"name":"big"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"; head -c 300000 /dev/zero | tr '\0' x; printf '"}]}}\n' ;;
    *'"name":"pid"'*) say "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$$\"}]}" ;;
    *'"name":"env"'*) say "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$GIVEN-$CARGO_PKG_NAME\"}]}" ;;
  esac
done
sleep 100
"#;

fn start(script: &str) -> Arc<dyn Upstream> {
    start_with(script, None, false)
}

/// With the stores of an earlier start; `None`: nothing is known.
fn start_with(script: &str, stores: Option<&Stores>, is_lazy: bool) -> Arc<dyn Upstream> {
    let text = json!({"mcpServers": {"sh": {
        "command": "sh", "args": ["-c", script], "env": {"GIVEN": "given"}, "maxMessageBytes": 100_000, "startTimeoutMs": 5_000,
    }}});
    let config = Config::parse(&text.to_string().replace("${", "$${"), Format::Json, &|_| None).expect("valid");
    let stores = stores.cloned().unwrap_or_else(|| Stores::in_memory(&config));
    let (secrets, queue) = (&config.secrets, &Arc::default());
    let start = Start { secrets, stores: &stores, queue, is_lazy, idle_stop: None };
    connect("sh", &config.upstreams["sh"], &start).expect("starts")
}

async fn call(upstream: &Arc<dyn Upstream>, name: &str) -> Result<Value, ToolError> {
    let tool = Arc::new(ToolDefinition { app: "sh".into(), name: name.into(), ..ToolDefinition::default() });
    let call = UpstreamCall {
        tool,
        input: Map::new(),
        timeout: Duration::from_secs(5),
        cancel: CancellationToken::new(),
        run: None,
        client: Client::default(),
        sink: UpdateSink::default(),
        sent: Arc::default(),
    };
    tokio::time::timeout(Duration::from_secs(5), upstream.call(call)).await.expect("does not hang")?.into_data(name)
}

fn is_there(pid: &Value) -> bool {
    std::path::Path::new(&format!("/proc/{pid}/stat")).exists()
}

#[tokio::test]
async fn a_child_that_exits_is_restarted() {
    let upstream = start(SERVER);
    upstream.first_attempt().await;
    assert_eq!(upstream.unavailable_reason(), None);
    assert_eq!(upstream.tools().len(), 4);
    let pid = call(&upstream, "pid").await.expect("a number");
    assert_eq!(call(&upstream, "env").await, Ok(json!("given-")));
    let big = call(&upstream, "big").await.expect_err("too long");
    assert_eq!(big.code, "MESSAGE_TOO_LARGE");
    assert!(big.message.ends_with("at most 100000 are allowed"), "{}", big.message);
    let died = call(&upstream, "die").await.expect_err("dies");
    assert_eq!(died.message, "The MCP server 'sh' ended while the tool 'die' was running");
    assert_eq!(died.code, "SERVER_UNAVAILABLE");
    assert_eq!(upstream.tools().len(), 4, "its tools stay known");
    let again = call(&upstream, "pid").await.expect("started again");
    assert_ne!(again, pid);
    upstream.close().await;
    assert!(!is_there(&pid) && !is_there(&again), "nothing is left running");
}

#[tokio::test]
async fn a_child_whose_tools_are_known_starts_later_or_when_it_is_needed() {
    let stores = Stores::in_memory(&Config::parse("{}", Format::Json, &|_| None).expect("valid"));
    let unknown = start_with(SERVER, Some(&stores), true);
    assert!(!unknown.recalled().await);
    unknown.first_attempt().await;
    unknown.close().await;
    for is_needed in [true, false] {
        let known = start_with(SERVER, Some(&stores), is_needed);
        assert!(known.recalled().await);
        assert_eq!((known.tools().len(), known.is_starting(), known.is_idle()), (4, !is_needed, is_needed));
        let reason = known.unavailable_reason();
        assert_eq!(reason.is_none(), is_needed, "{reason:?}");
        assert!(known.start_begun().now_or_never().is_none(), "it waits");
        let up = if is_needed { known.first_attempt() } else { known.start_ended() };
        tokio::time::timeout(Duration::from_secs(10), up).await.expect("it starts");
        assert!(known.start_begun().now_or_never().is_some());
        call(&known, "pid").await.expect("a number");
        known.close().await;
    }
}

#[tokio::test]
async fn a_child_that_does_not_start_says_why() {
    let upstream = start("echo oops >&2; exit 1");
    upstream.first_attempt().await;
    assert!(
        upstream.unavailable_reason().is_some_and(|reason| reason.contains("it exited before it responded")),
        "{:?}",
        upstream.unavailable_reason()
    );
    assert!(upstream.tools().is_empty());
    upstream.close().await;
}

/// Also a secret that was added after the start, and one at the end of what is logged of a line.
#[tokio::test]
async fn the_stderr_of_a_child_is_redacted() {
    let script = "read line; printf '%0490d late-secret\\n%s of the environment\\n' 0 \"$GIVEN\" >&2";
    let text = json!({"mcpServers": {"sh": {"command": "sh", "args": ["-c", script], "env": {"GIVEN": "plain-word"}}}});
    let text = text.to_string().replace("${", "$${");
    let config = Config::parse(&text, Format::Json, &|_| None).expect("valid");
    let UpstreamKind::Stdio(child) = &config.upstreams["sh"].kind else { panic!("a child process") };
    let (mut child, mut stdin, _stdout) =
        stdio::Child::spawn("sh", child, &config.secrets, &Arc::default()).expect("starts");
    config.secrets.add("late-secret").expect("long enough");
    stdin.write_all(b"go on\n").await.expect("it reads");
    drop(stdin);
    let output = async {
        loop {
            let lines = child.last_lines().await;
            if lines.len() > 1 {
                break lines;
            }
        }
    };
    let output = tokio::time::timeout(Duration::from_secs(10), output).await.expect("two lines");
    let [long, short] = output.as_slice() else { panic!("{output:?}") };
    assert!(long.ends_with("0 [secret]") && short == "[secret] of the environment", "{output:?}");
    child.shut_down().await;
}

/// The last lines of stderr, whether the server works or not, without secrets.
#[tokio::test]
async fn the_last_lines_of_stderr_are_kept() {
    let upstream = start(&format!(
        "echo 'it is given' >&2; i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo line $i >&2; done; {SERVER}"
    ));
    upstream.first_attempt().await;
    assert_eq!(upstream.unavailable_reason(), None);
    for _ in 0..100 {
        if upstream.last_lines().last().is_some_and(|line| line == "line 60") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let lines = upstream.last_lines();
    assert_eq!((lines.len(), lines.first().map(String::as_str)), (40, Some("line 21")), "{lines:?}");
    upstream.close().await;
    let text = json!({"mcpServers": {"sh": {
        "command": "sh", "args": ["-c", "echo it is $WORD >&2; exit 1"], "env": {"WORD": "word-of-the-environment"},
    }}});
    let config = Config::parse(&text.to_string(), Format::Json, &|_| None).expect("valid");
    let stores = Stores::in_memory(&config);
    let (secrets, queue) = (&config.secrets, &Arc::default());
    let start = Start { secrets, stores: &stores, queue, is_lazy: false, idle_stop: None };
    let upstream = connect("sh", &config.upstreams["sh"], &start).expect("starts");
    upstream.first_attempt().await;
    assert_eq!(upstream.last_lines(), ["it is [secret]"]);
    upstream.close().await;
}
