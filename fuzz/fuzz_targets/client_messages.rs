//! Any bytes as the messages of an MCP client. Every line that comes back is a message, and the server is done soon
//! after the client has gone.
//!
//! Bytes that begin with `+` come after a greeting, others are all that the client says.

#![no_main]

#[path = "hub.rs"]
mod hub;
#[path = "streams.rs"]
mod streams;

use hub::{configuration, hub};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use streams::{TIMEOUT, block_on};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const GREETING: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
);

fuzz_target!(|data: &[u8]| block_on(false, async {
    let hub = hub(|| configuration(json!({})));
    let (client, server) = tokio::io::duplex(1 << 16);
    let (mut answers, mut requests) = tokio::io::split(client);
    let served = tokio::spawn(codecall::fuzzing::serve(hub, tokio::io::split(server)));
    let (greeting, rest) = match data.strip_prefix(b"+") {
        Some(rest) => (GREETING.as_bytes(), rest),
        None => (&b""[..], data),
    };
    let said = async {
        // A server that has gone takes no more.
        let _ = requests.write_all(greeting).await;
        let _ = requests.write_all(rest).await;
        let _ = requests.write_all(b"\n").await;
        let _ = requests.shutdown().await;
    };
    let mut text = Vec::new();
    let ended = tokio::time::timeout(TIMEOUT, async {
        let (_, read) = tokio::join!(said, answers.read_to_end(&mut text));
        let _ = read;
        served.await
    });
    let ended = ended.await.expect("the server ends with its client");
    // Whatever a client says, nothing panics.
    let _ = ended.expect("the server does not panic");
    let text = String::from_utf8(text).expect("UTF-8");
    for line in text.lines() {
        let message: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
    }
}));
