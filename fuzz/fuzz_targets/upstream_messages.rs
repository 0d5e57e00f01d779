//! Any bytes as the messages of an upstream: it connects or says why not, its tools can be described, searched and
//! called. Everything is over soon after its stream has ended. Its clock is paused, so that
//! nothing waits for those who do not answer.
//!
//! Each line is said when the client has asked something, with its `@` replaced by the id of the
//! request. A line that begins with `!` is said at once, together with the next one.

#![no_main]

#[path = "streams.rs"]
mod streams;

use codecall::Config;
use codecall::config::{Format, UpstreamConfig};
use codecall::tool::ToolFilter;
use codecall::upstream::{Upstream, UpstreamCall};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use streams::{TIMEOUT, block_on};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};

/// What answers the greeting of a client, unless the bytes begin with `-`.
const GREETING: &str = r#"{"jsonrpc":"2.0","id":@,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"resources":{},"prompts":{}},"serverInfo":{"name":"u","version":"1"}}}"#;

static CONFIG: LazyLock<UpstreamConfig> = LazyLock::new(|| {
    let text =
        r#"{"mcpServers": {"u": {"command": "never-started", "startTimeoutMs": 2000, "maxMessageBytes": 2000}}}"#;
    Config::parse(text, Format::Json, &|_| None).expect("a configuration").upstreams["u"].clone()
});

fuzz_target!(|data: &[u8]| block_on(true, async {
    let (client, server) = tokio::io::duplex(1 << 16);
    let (from, to) = tokio::io::split(server);
    let said = tokio::spawn(say(data.to_vec(), BufReader::new(from), to));
    let upstream = codecall::fuzzing::upstream("u", &CONFIG, tokio::io::split(client)).expect("a child process");
    let used = async {
        upstream.first_attempt().await;
        look_at(&upstream);
        for tool in upstream.tools().into_iter().take(2) {
            let call = UpstreamCall {
                tool,
                input: Map::new(),
                timeout: Duration::from_secs(1),
                cancel: Default::default(),
                run: None,
                client: Default::default(),
                sink: Default::default(),
                sent: Default::default(),
            };
            // Who calls waits no longer than this, and no upstream need know it: one whose server does not answer does
            // not answer either.
            let answer = tokio::time::timeout(call.timeout, upstream.call(call)).await;
            if let Ok(Ok(result)) = answer {
                let _ = (result.clone().into_data("t"), result.into_mcp());
            }
        }
        let _ = upstream.unavailable_reason();
        upstream.close().await;
    };
    tokio::time::timeout(TIMEOUT, used).await.expect("an upstream that has ended is not waited for");
    said.await.expect("its side does not panic");
}));

async fn say(data: Vec<u8>, asked: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    let (greeting, data) = match data.strip_prefix(b"-") {
        Some(rest) => (None, rest),
        None => (Some(GREETING.as_bytes()), &data[..]),
    };
    let mut lines = greeting.into_iter().chain(data.split(|byte| *byte == b'\n'));
    let mut asked = BufReader::new(asked).lines();
    while let Ok(Some(line)) = asked.next_line().await {
        let message: Value = serde_json::from_str(&line).expect("a client speaks JSON");
        let Some(id) = message.get("id") else { continue };
        loop {
            let Some(line) = lines.next() else {
                let _ = to.shutdown().await;
                return;
            };
            let (goes_on, line) = line.strip_prefix(b"!").map_or((false, line), |rest| (true, rest));
            let mut out = Vec::new();
            for byte in line {
                match byte {
                    b'@' => out.extend_from_slice(id.to_string().as_bytes()),
                    byte => out.push(*byte),
                }
            }
            out.push(b'\n');
            if to.write_all(&out).await.is_err() {
                return;
            }
            if !goes_on {
                break;
            }
        }
    }
}

/// A catalogue of one upstream, asked for everything that a client can see of it.
fn look_at(upstream: &Arc<dyn Upstream>) {
    let sources = vec![(Arc::clone(upstream), ToolFilter::default())];
    let catalogue = codecall::catalogue::Catalogue::new(sources, Default::default(), Arc::default());
    let snapshot = catalogue.snapshot();
    for entry in snapshot.rows() {
        let _ = entry.described();
        let _ = snapshot.lookup(&entry.name);
        let _ = entry.fits(&Value::Object(Map::new()));
    }
    for (_, score) in snapshot.index().search("find an item by its name") {
        assert!((0.0..=1.0).contains(&score), "{score}");
    }
}
