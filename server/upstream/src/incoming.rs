//! Messages of MCP servers, as they are read: what cannot be understood fails the call that it answers, at
//! once, instead of leaving it to its timeout.

use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use serde_json::Value;

/// How much of the beginning and of the end of a text is looked at to find its id.
pub const EDGE: usize = 512;
/// How deep JSON may be nested: so deep its reader follows.
const DEEPEST: usize = 128;

/// What stands in place of an answer that is too long; outside of what JSON-RPC keeps for itself.
pub const TOO_LARGE: ErrorCode = ErrorCode(-31_999);

/// What a text is.
#[derive(Debug)]
pub enum Incoming {
    /// A message.
    Message(Box<ServerJsonRpcMessage>),
    /// An answer that cannot be understood, and why.
    Broken {
        /// Of the call that it answers, where that can be seen.
        id: Option<RequestId>,
        /// What is wrong with it.
        why: String,
    },
    /// Something that answers nothing.
    Noise,
}

/// Read a text.
#[must_use]
pub fn read(text: &[u8]) -> Incoming {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii();
    if text.first() != Some(&b'{') {
        return Incoming::Noise;
    }
    let error = match serde_json::from_slice::<ServerJsonRpcMessage>(text) {
        Ok(message) => return Incoming::Message(Box::new(message)),
        Err(error) => error,
    };
    let (head, tail) = (&text[..text.len().min(EDGE)], &text[text.len().saturating_sub(EDGE)..]);
    let has = |key: &[u8]| head.windows(key.len()).any(|part| part == key);
    // Requests and notifications answer nothing; what is wrong with them is the server's loss.
    if has(b"\"method\"") {
        tracing::debug!(%error, "a message that is not understood is passed over");
        return Incoming::Noise;
    }
    let id = id(head, tail);
    if id.is_none() && !has(b"\"result\"") && !has(b"\"error\"") {
        return Incoming::Noise;
    }
    if id.is_none() && error.is_data() && is_to_no_call(text) {
        return Incoming::Noise;
    }
    let why = if std::str::from_utf8(text).is_err() {
        "it is not UTF-8".to_owned()
    } else if is_too_deep(text) {
        format!("it is nested more than {DEEPEST} levels deep")
    } else if error.is_data() {
        "it is not an answer of MCP".to_owned()
    } else {
        "it is not valid JSON".to_owned()
    };
    Incoming::Broken { id, why }
}

/// Whether JSON is an answer whose id no call can have. `null` stands for a request that could not be read, which
/// only an error says.
fn is_to_no_call(text: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Answer {
        #[serde(default, deserialize_with = "present")]
        id: Option<Value>,
        #[serde(default)]
        result: Option<serde::de::IgnoredAny>,
    }
    /// `null` is a value too.
    fn present<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<Option<Value>, D::Error> {
        serde::Deserialize::deserialize(reader).map(Some)
    }
    serde_json::from_slice::<Answer>(text).is_ok_and(|answer| match answer.id {
        Some(Value::Null) => answer.result.is_some(),
        Some(id) => serde_json::from_value::<RequestId>(id).is_err(),
        None => false,
    })
}

/// The error that takes the place of an answer that cannot be understood.
#[must_use]
pub fn failure(id: RequestId, why: &str) -> ServerJsonRpcMessage {
    let message = format!("The answer cannot be understood: {why}");
    ServerJsonRpcMessage::error(ErrorData::parse_error(message, None), Some(id))
}

/// The error that takes the place of an answer that is too long.
#[must_use]
pub fn too_long(id: RequestId, message: String) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::new(TOO_LARGE, message, None), Some(id))
}

/// Whether JSON is nested deeper than its reader follows.
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
        if depth >= DEEPEST {
            return true;
        }
    }
    false
}

/// The id of a message of which only the beginning and the end are known: the member stands before
/// `result` or after it.
#[must_use]
pub fn id(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    let head = String::from_utf8_lossy(head);
    let before = ["\"result\"", "\"error\""].iter().filter_map(|key| head.find(key)).min().unwrap_or(head.len());
    let scalar = |text: &str| {
        let text = text.trim_start().strip_prefix(':')?;
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let value = values.next()?.ok()?;
        let rest = text[values.byte_offset()..].trim_start().to_owned();
        serde_json::from_value::<RequestId>(value).ok().map(|id| (id, rest))
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

    #[test]
    fn answers_to_ids_that_no_call_has_are_passed_over() {
        for id in ["null", "1.5", "1180591620717411303424", "[7]", "{}", "true"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
            assert!(matches!(read(text.as_bytes()), Incoming::Noise | Incoming::Message(_)), "{text}");
        }
        let unread = br#"{"jsonrpc":"2.0","id":null,"error":{"code":"none"}}"#;
        assert!(matches!(read(unread), Incoming::Broken { id: None, .. }));
    }

    #[test]
    fn what_cannot_be_understood_has_an_id_and_a_reason() {
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        for (text, id, why) in [
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
            (br#"{"jsonrpc":"2.0","id":7}"#.to_vec(), Some(7), "it is not an answer of MCP"),
            (br#"{"jsonrpc":"2.0","id":7,"error":"no"}"#.to_vec(), Some(7), "it is not an answer of MCP"),
        ] {
            let shown = String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned();
            match read(&text) {
                Incoming::Broken { id: found, why: told } => {
                    assert_eq!((found, told.as_str()), (id.map(RequestId::Number), why), "{shown}");
                }
                other => panic!("{shown}: {other:?}"),
            }
        }
        for text in ["", "Listening on port 8080", "{\"jsonrpc\":\"2.0\",", "[1]", "{\"method\":\"x\",\"id\":]", "{"] {
            assert!(matches!(read(text.as_bytes()), Incoming::Noise), "{text}");
        }
        let good = "\u{feff} {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":1,\"message\":\"x\"}}\r";
        assert!(matches!(read(good.as_bytes()), Incoming::Message(_)));
    }
}
