//! Parses the messages of MCP servers. A malformed response fails its call at once, instead of leaving it to the
//! timeout.

use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerResult};
use serde_json::Value;

/// How many bytes at the start and at the end of a malformed message are searched for its id.
pub const ID_SEARCH_BYTES: usize = 512;
/// How deep JSON may be nested: the limit of serde_json.
const MAX_DEPTH: usize = 128;

/// Error code of a response that is too large; outside of the range that JSON-RPC reserves.
pub const RESPONSE_TOO_LARGE: ErrorCode = ErrorCode(-31_999);

/// The result of parsing a message.
#[derive(Debug)]
pub enum Incoming {
    /// A valid message.
    Message(Box<ServerJsonRpcMessage>),
    /// A malformed response.
    Malformed {
        /// The id of its request, if it can be found.
        id: Option<RequestId>,
        /// What is wrong with it.
        reason: String,
    },
    /// Anything else, such as log output or a malformed notification: it is ignored.
    Ignored,
}

/// Parses a message.
#[must_use]
pub fn parse(text: &[u8]) -> Incoming {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii();
    if text.first() != Some(&b'{') {
        return Incoming::Ignored;
    }
    let error = match serde_json::from_slice::<ServerJsonRpcMessage>(text) {
        Ok(mut message) => {
            keep_task_support(&mut message, text);
            return Incoming::Message(Box::new(message));
        }
        Err(error) => error,
    };
    let (head, tail) = (&text[..text.len().min(ID_SEARCH_BYTES)], &text[text.len().saturating_sub(ID_SEARCH_BYTES)..]);
    let has = |key: &[u8]| head.windows(key.len()).any(|part| part == key);
    // No call waits for a request or a notification.
    if has(b"\"method\"") {
        tracing::debug!(%error, "a malformed request or notification is ignored");
        return Incoming::Ignored;
    }
    let id = find_id(head, tail);
    if id.is_none() && !has(b"\"result\"") && !has(b"\"error\"") {
        return Incoming::Ignored;
    }
    if id.is_none() && error.is_data() && has_impossible_id(text) {
        return Incoming::Ignored;
    }
    let reason = if std::str::from_utf8(text).is_err() {
        "it is not UTF-8".to_owned()
    } else if is_too_deep(text) {
        format!("it is nested more than {MAX_DEPTH} levels deep")
    } else if error.is_data() {
        "it is not a response of MCP".to_owned()
    } else {
        "it is not valid JSON".to_owned()
    };
    Incoming::Malformed { id, reason }
}

/// The member of `_meta` of a tool that says whether it is called as a task of version 2025-11-25, as the server has it. rmcp
/// does not know its place in that version.
pub const TASK_SUPPORT: &str = "codecall/taskSupport";

/// Copies to each tool of a list whether it is called as a task.
fn keep_task_support(message: &mut ServerJsonRpcMessage, text: &[u8]) {
    #[derive(serde::Deserialize)]
    struct Listed {
        result: List,
    }
    #[derive(serde::Deserialize)]
    struct List {
        tools: Vec<Listing>,
    }
    #[derive(serde::Deserialize)]
    struct Listing {
        execution: Option<Execution>,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Execution {
        task_support: Option<String>,
    }
    let JsonRpcMessage::Response(response) = message else { return };
    let ServerResult::ListToolsResult(list) = &mut response.result else { return };
    let Ok(Listed { result: listed }) = serde_json::from_slice::<Listed>(text) else { return };
    for (tool, listing) in list.tools.iter_mut().zip(listed.tools) {
        if let Some(support) = listing.execution.and_then(|execution| execution.task_support) {
            tool.meta.get_or_insert_default().0.insert(TASK_SUPPORT.into(), support.into());
        }
    }
}

/// Whether JSON is a response with an id that no call has. The id `null` is valid in an error response only: it answers
/// a request that the server could not parse.
fn has_impossible_id(text: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Response {
        #[serde(default, deserialize_with = "present")]
        id: Option<Value>,
        #[serde(default)]
        result: Option<serde::de::IgnoredAny>,
    }
    /// Distinguishes `null` from a missing member.
    fn present<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<Option<Value>, D::Error> {
        serde::Deserialize::deserialize(reader).map(Some)
    }
    serde_json::from_slice::<Response>(text).is_ok_and(|response| match response.id {
        Some(Value::Null) => response.result.is_some(),
        Some(id) => serde_json::from_value::<RequestId>(id).is_err(),
        None => false,
    })
}

/// Returns the error response that replaces a malformed response.
#[must_use]
pub fn malformed(id: RequestId, reason: &str) -> ServerJsonRpcMessage {
    let message = format!("The response cannot be parsed: {reason}");
    ServerJsonRpcMessage::error(ErrorData::parse_error(message, None), Some(id))
}

/// Returns the error response that replaces a response that is too large.
#[must_use]
pub fn too_large(id: RequestId, message: String) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::new(RESPONSE_TOO_LARGE, message, None), Some(id))
}

/// Whether JSON is nested deeper than serde_json accepts.
fn is_too_deep(json: &[u8]) -> bool {
    let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth >= MAX_DEPTH {
            return true;
        }
    }
    false
}

/// Finds the id in the start and the end of a message: the member is before or after `result`.
#[must_use]
pub fn find_id(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    let head = String::from_utf8_lossy(head);
    let before = ["\"result\"", "\"error\""].iter().filter_map(|key| head.find(key)).min().unwrap_or(head.len());
    let parse_id = |text: &str| {
        let text = text.trim_start().strip_prefix(':')?;
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let value = values.next()?.ok()?;
        let rest = text[values.byte_offset()..].trim_start().to_owned();
        serde_json::from_value::<RequestId>(value).ok().map(|id| (id, rest))
    };
    if let Some(at) = head[..before].find("\"id\"")
        && let Some((value, _)) = parse_id(&head[at + 4..])
    {
        return Some(value);
    }
    let tail = String::from_utf8_lossy(tail);
    let at = tail.rfind("\"id\"")?;
    let (value, rest) = parse_id(&tail[at + 4..])?;
    // After an `id` inside of `result`, more than the closing brace of the message would follow.
    let rest = rest.trim_end();
    (rest == "}" || rest.starts_with(",\"jsonrpc\"") || rest.starts_with(", \"jsonrpc\"")).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_with_impossible_ids_are_ignored() {
        for id in ["null", "1.5", "1180591620717411303424", "[7]", "{}", "true"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
            assert!(matches!(parse(text.as_bytes()), Incoming::Ignored | Incoming::Message(_)), "{text}");
        }
        let unread = br#"{"jsonrpc":"2.0","id":null,"error":{"code":"none"}}"#;
        assert!(matches!(parse(unread), Incoming::Malformed { id: None, .. }));
    }

    #[test]
    fn a_malformed_response_has_an_id_and_a_reason() {
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        for (text, id, reason) in [
            (
                format!(r#"{{"jsonrpc":"2.0","id":7,"result":{deep}}}"#).into_bytes(),
                Some(7),
                "it is nested more than 128 levels deep",
            ),
            (
                format!(r#"{{"result":{deep},"jsonrpc":"2.0","id":7}}"#).into_bytes(),
                Some(7),
                "it is nested more than 128 levels deep",
            ),
            (
                format!(r#"{{"result":{{"id":3,"x":{deep}}}}}"#).into_bytes(),
                None,
                "it is nested more than 128 levels deep",
            ),
            (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"x\":\"\xff\"}}".to_vec(), Some(7), "it is not UTF-8"),
            (br#"{"jsonrpc":"2.0","id":7,"result":{"x":]}}"#.to_vec(), Some(7), "it is not valid JSON"),
            (br#"{"jsonrpc":"2.0","id":7}"#.to_vec(), Some(7), "it is not a response of MCP"),
            (br#"{"jsonrpc":"2.0","id":7,"error":"no"}"#.to_vec(), Some(7), "it is not a response of MCP"),
        ] {
            let shown = String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned();
            match parse(&text) {
                Incoming::Malformed { id: found, reason: actual } => {
                    assert_eq!((found, actual.as_str()), (id.map(RequestId::Number), reason), "{shown}");
                }
                other => panic!("{shown}: {other:?}"),
            }
        }
        for text in ["", "Listening on port 8080", "{\"jsonrpc\":\"2.0\",", "[1]", "{\"method\":\"x\",\"id\":]", "{"] {
            assert!(matches!(parse(text.as_bytes()), Incoming::Ignored), "{text}");
        }
        let good = "\u{feff} {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":1,\"message\":\"x\"}}\r";
        assert!(matches!(parse(good.as_bytes()), Incoming::Message(_)));
    }
}
