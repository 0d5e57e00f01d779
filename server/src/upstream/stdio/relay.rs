//! Lines between a child and the protocol, none longer than allowed.
//!
//! The protocol's own reader drops a line that is too long, and the call that it answers would wait
//! for ever. Here the line is replaced by an error that carries the same id.

use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

/// How much of the beginning and of the end of a long line is looked at to find its id.
const EDGE: usize = 512;

/// Copy lines until the end of either side.
///
/// # Errors
/// Why it ended, where that is not simply the end of the stream.
pub async fn relay(
    mut from: impl AsyncBufRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    longest: usize,
) -> Result<(), String> {
    let mut line: Vec<u8> = Vec::new();
    // Beginning, end and length of a line that is too long.
    let mut long: Option<(Vec<u8>, Vec<u8>, usize)> = None;
    loop {
        let available = from.fill_buf().await.map_err(|error| error.to_string())?;
        if available.is_empty() {
            return Ok(());
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(available.len(), |at| at + 1);
        let part = &available[..taken];
        match &mut long {
            Some((_, tail, length)) => {
                keep_end(tail, part);
                *length += taken;
            }
            None if line.len() + taken > longest + 1 => {
                let mut head = std::mem::take(&mut line);
                let length = head.len() + taken;
                let mut tail = head[head.len().saturating_sub(EDGE)..].to_vec();
                keep_end(&mut tail, part);
                head.extend_from_slice(&part[..part.len().min(EDGE)]);
                head.truncate(EDGE);
                long = Some((head, tail, length));
            }
            None => line.extend_from_slice(part),
        }
        from.consume(taken);
        if end.is_none() {
            continue;
        }
        let written = match long.take() {
            None => to.write_all(&line).await,
            Some((head, tail, length)) => {
                let message = format!("The answer has {length} bytes; at most {longest} are allowed");
                let Some(id) = id(&head, &tail) else { return Err(message) };
                let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": message}});
                to.write_all(format!("{error}\n").as_bytes()).await
            }
        };
        line.clear();
        line.shrink_to(64 * 1024);
        if written.is_err() {
            return Ok(());
        }
    }
}

fn keep_end(tail: &mut Vec<u8>, part: &[u8]) {
    tail.extend_from_slice(&part[part.len().saturating_sub(EDGE)..]);
    let surplus = tail.len().saturating_sub(EDGE);
    tail.drain(..surplus);
}

/// The id of a message of which only the beginning and the end are known: the member stands before
/// `result` or after it.
fn id(head: &[u8], tail: &[u8]) -> Option<Value> {
    let head = String::from_utf8_lossy(head);
    let before = head.find("\"result\"").unwrap_or(head.len());
    let scalar = |text: &str| {
        let mut values = serde_json::Deserializer::from_str(text.trim_start().strip_prefix(':')?).into_iter::<Value>();
        let value = values.next()?.ok()?;
        let rest = text[text.len() - (text.trim_start().len() - 1 - values.byte_offset())..].trim_start().to_owned();
        (value.is_number() || value.is_string()).then_some((value, rest))
    };
    if let Some(at) = head[..before].find("\"id\"")
        && let Some((value, _)) = scalar(&head[at + 4..])
    {
        return Some(value);
    }
    let tail = String::from_utf8_lossy(tail);
    let at = tail.rfind("\"id\"")?;
    let (value, rest) = scalar(&tail[at + 4..])?;
    // Deeper inside, something else than the closing brace of the message would follow.
    let rest = rest.trim_end();
    (rest == "}" || rest.starts_with(",\"jsonrpc\"") || rest.starts_with(", \"jsonrpc\"")).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::BufReader;

    async fn relayed(text: &str) -> (Result<(), String>, String) {
        let mut out = Vec::new();
        let ended = relay(BufReader::with_capacity(16, text.as_bytes()), &mut out, 2_000).await;
        (ended, String::from_utf8(out).expect("text"))
    }

    #[tokio::test]
    async fn lines_go_through() {
        let text = format!("{{}}\nnot json\n{}\n", "x".repeat(2_000));
        assert_eq!(relayed(&text).await, (Ok(()), text));
    }

    #[tokio::test]
    async fn a_long_line_becomes_an_error_with_its_id() {
        let big = "y\\\"id\\\":9".repeat(1_000);
        for line in [
            format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"x\":\"{big}\"}}}}"),
            format!("{{\"result\":{{\"id\": 3, \"x\":\"{big}\"}},\"jsonrpc\":\"2.0\",\"id\":7}}"),
            format!("{{\"result\":{{\"x\":\"{big}\"}}, \"id\" : 7 , \"jsonrpc\":\"2.0\"}}"),
        ] {
            let (ended, out) = relayed(&format!("{line}\n{{\"after\":1}}\n")).await;
            assert_eq!(ended, Ok(()), "{}", &line[line.len() - 30..]);
            let (first, rest) = out.split_once('\n').expect("two lines");
            let first: Value = serde_json::from_str(first).expect("JSON");
            assert_eq!(first["id"], 7);
            assert_eq!(
                first["error"]["message"],
                format!("The answer has {} bytes; at most 2000 are allowed", line.len() + 1)
            );
            assert_eq!(rest, "{\"after\":1}\n");
        }
    }

    #[tokio::test]
    async fn a_long_line_without_id_ends_the_connection() {
        let (ended, out) = relayed(&format!("{}\n", "z".repeat(9_000))).await;
        assert!(ended.is_err() && out.is_empty());
    }
}
