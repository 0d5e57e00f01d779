//! Parses the messages of MCP servers. A malformed response fails its call at once, instead of leaving it to the
//! timeout.
//!
//! The result of a call stays the text that it is: [`crate::answer`] reads as much of it as somebody needs. Values of JSON
//! take many times the memory of their text, so all other messages are limited by that memory.

use crate::mend;
use codecall_base::json::{self, Unread};
use rmcp::model::{
    ClientRequest, CustomResult, ErrorCode, ErrorData, JsonRpcMessage, ListToolsResult, RequestId,
    ServerJsonRpcMessage, ServerResult, Tool,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// How many bytes at the start and at the end of a malformed message are searched for its id.
pub const ID_SEARCH_BYTES: usize = 512;
/// Maximum memory of the values of a message that is not the result of a call, in bytes.
const MAX_PARSED_BYTES: usize = 256 << 20;

/// Error code of a response that is too large; outside of the range that JSON-RPC reserves.
pub const RESPONSE_TOO_LARGE: ErrorCode = ErrorCode(-31_999);

/// The result of parsing a message.
#[derive(Debug)]
pub enum Incoming {
    /// A valid message.
    Message(Box<ServerJsonRpcMessage>),
    /// A message that is not quite one of MCP. What could not be read of it is left out or named in it.
    Mended(Box<ServerJsonRpcMessage>),
    /// A malformed response.
    Malformed {
        /// The id of its request, if it can be found.
        id: Option<RequestId>,
        /// The problem.
        reason: String,
    },
    /// Anything else, such as log output or a malformed notification: it is ignored.
    Ignored,
}

/// Whether the result of a request stays text.
#[must_use]
pub fn stays_text(request: &ClientRequest) -> bool {
    matches!(request, ClientRequest::CallToolRequest(_))
}

/// Parses a message of a stream that all calls share. Text without the member `jsonrpc` is log output. `stays_text`: whether
/// the result of a request does.
#[must_use]
pub fn parse(text: &[u8], stays_text: impl Fn(&RequestId) -> bool) -> Incoming {
    let text = trimmed(text);
    let (head, tail) = ends(text);
    match parse_any(text, None, stays_text) {
        // Log output may have any members.
        Incoming::Malformed { .. } if !contains(head, b"\"jsonrpc\"") && !contains(tail, b"\"jsonrpc\"") => {
            Incoming::Ignored
        }
        parsed => parsed,
    }
}

/// Parses a message of a stream or a body that answers `call`. An error that does not name a call is its answer.
/// `stays_text`: whether the result does.
#[must_use]
pub fn parse_answer(text: &[u8], call: &RequestId, stays_text: bool) -> Incoming {
    let (mut message, is_mended) = match parse_any(trimmed(text), Some(call), |id| stays_text && id == call) {
        Incoming::Message(message) => (message, false),
        Incoming::Mended(message) => (message, true),
        other => return other,
    };
    let sent = answered(&message);
    let meant = match &*message {
        JsonRpcMessage::Response(response) => number(&response.id),
        // A server that could not read a request does not know its id.
        JsonRpcMessage::Error(error) => match error.id.as_ref().map(number) {
            Some(id @ RequestId::Number(_)) => id,
            Some(RequestId::String(_)) | None => call.clone(),
        },
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => return Incoming::Message(message),
    };
    let is_mended = is_mended || sent.as_ref() != Some(&meant);
    set_id(&mut message, meant);
    if is_mended { Incoming::Mended(message) } else { Incoming::Message(message) }
}

/// Returns the id of the call that a message answers.
#[must_use]
pub fn answered(message: &ServerJsonRpcMessage) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(response.id.clone()),
        JsonRpcMessage::Error(error) => error.id.clone(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

/// Returns the number that an id is meant to be: some servers answer with its text. All calls have numbers.
#[must_use]
pub fn number(id: &RequestId) -> RequestId {
    match id {
        RequestId::String(text) => text.parse().map_or_else(|_| id.clone(), RequestId::Number),
        RequestId::Number(_) => id.clone(),
    }
}

/// Gives a response another id.
pub fn set_id(message: &mut ServerJsonRpcMessage, id: RequestId) {
    match message {
        JsonRpcMessage::Response(response) => response.id = id,
        JsonRpcMessage::Error(error) => error.id = Some(id),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
    }
}

fn trimmed(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii()
}

/// Returns the start and the end of a message, which have its members beside `result`.
fn ends(text: &[u8]) -> (&[u8], &[u8]) {
    (&text[..text.len().min(ID_SEARCH_BYTES)], &text[text.len().saturating_sub(ID_SEARCH_BYTES)..])
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// A response whose result is not parsed.
#[derive(Deserialize)]
struct Envelope<'a> {
    jsonrpc: &'a str,
    id: RequestId,
    #[serde(borrow)]
    result: &'a RawValue,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

/// Returns the response to a request whose result stays text.
fn text_response(text: &[u8], stays_text: impl Fn(&RequestId) -> bool) -> Option<Incoming> {
    let Envelope { jsonrpc: "2.0", id, result, error: None } = serde_json::from_slice(text).ok()? else { return None };
    let text = || ServerResult::CustomResult(CustomResult(Value::String(result.get().to_owned())));
    stays_text(&number(&id)).then(|| Incoming::Mended(Box::new(ServerJsonRpcMessage::response(text(), id))))
}

/// Parses a message; `call` is the one that it answers if it does not say it.
fn parse_any(text: &[u8], call: Option<&RequestId>, stays_text: impl Fn(&RequestId) -> bool) -> Incoming {
    if text.first() != Some(&b'{') {
        return Incoming::Ignored;
    }
    if let Some(response) = text_response(text, stays_text) {
        return response;
    }
    if let Err(too_large) = json::check_size(text, MAX_PARSED_BYTES) {
        let (head, tail) = ends(text);
        return Incoming::Malformed { id: find_id(head, tail), reason: too_large.to_string() };
    }
    let error = match serde_json::from_slice::<ServerJsonRpcMessage>(text) {
        Ok(message) => return accepted(message, text),
        Err(error) => error,
    };
    let (head, tail) = ends(text);
    // No call waits for a request or a notification.
    if contains(head, b"\"method\"") {
        tracing::debug!(%error, "a malformed request or notification is ignored");
        return Incoming::Ignored;
    }
    if let Some(mended) = with_mended_envelope(text, call) {
        return Incoming::Mended(Box::new(mended));
    }
    let id = find_id(head, tail);
    if id.is_none() && !contains(head, b"\"result\"") && !contains(head, b"\"error\"") {
        return Incoming::Ignored;
    }
    if id.is_none() && error.is_data() && has_impossible_id(text) {
        return Incoming::Ignored;
    }
    let reason = match json::malformed(text) {
        Unread::Malformed(_) if error.is_data() => "it is not a response of MCP".to_owned(),
        reason => reason.to_string(),
    };
    Incoming::Malformed { id, reason }
}

/// Returns a message that rmcp can read, with what rmcp does not read of it.
fn accepted(mut message: ServerJsonRpcMessage, text: &[u8]) -> Incoming {
    let JsonRpcMessage::Response(response) = &mut message else { return Incoming::Message(Box::new(message)) };
    match &mut response.result {
        ServerResult::ListToolsResult(list) => {
            let is_changed = keep_task_support(&mut list.tools, text) | drop_claimed_oddities(list);
            if is_changed { Incoming::Mended(Box::new(message)) } else { Incoming::Message(Box::new(message)) }
        }
        ServerResult::CustomResult(result) => match mend::result(&result.0) {
            Some(mended) => {
                response.result = mended;
                Incoming::Mended(Box::new(message))
            }
            None => Incoming::Message(Box::new(message)),
        },
        _ => Incoming::Message(Box::new(message)),
    }
}

/// Removes what only this program says of a list. Returns whether there was something.
fn drop_claimed_oddities(list: &mut ListToolsResult) -> bool {
    let metas = list.tools.iter_mut().map(|tool| &mut tool.meta).chain(std::iter::once(&mut list.meta));
    let claimed = metas.filter(|meta| meta.as_ref().is_some_and(|meta| meta.0.contains_key(mend::ODDITIES)));
    claimed.map(mend::take_oddities).count() > 0
}

/// Reads a response whose members beside the result are not as JSON-RPC has them.
fn with_mended_envelope(text: &[u8], call: Option<&RequestId>) -> Option<ServerJsonRpcMessage> {
    let mut members: Map<String, Value> = serde_json::from_slice(text).ok()?;
    if call.is_none() && !members.contains_key("jsonrpc") {
        return None;
    }
    let id = match members.get("id") {
        Some(Value::Number(id)) if id.as_f64().is_some_and(|id| id.fract() == 0.0) => {
            id.to_string().trim_end_matches(".0").parse().ok().map(RequestId::Number)
        }
        Some(Value::String(id)) => Some(RequestId::String(id.as_str().into())),
        Some(_) | None => None,
    };
    let id = id.or_else(|| call.cloned());
    if let Some(error) = members.remove("error").filter(|error| !error.is_null()) {
        return Some(ServerJsonRpcMessage::error(mended_error(error), Some(id?)));
    }
    let result = members.remove("result")?;
    let result = serde_json::from_value(result.clone())
        .ok()
        .filter(|result| !matches!(result, ServerResult::CustomResult(_)))
        .or_else(|| mend::result(&result))
        .unwrap_or(ServerResult::CustomResult(CustomResult(result)));
    Some(ServerJsonRpcMessage::response(result, id?))
}

/// Returns an error with a code and a message, whatever a server sends as one.
fn mended_error(error: Value) -> ErrorData {
    let code = match error.get("code") {
        Some(Value::Number(code)) => code.as_i64().and_then(|code| i32::try_from(code).ok()),
        Some(Value::String(code)) => code.parse().ok(),
        Some(_) | None => None,
    };
    let message = match (&error, error.get("message")) {
        (Value::String(message), _) | (_, Some(Value::String(message))) => message.clone(),
        (error, _) => error.to_string(),
    };
    let code = code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
    ErrorData::new(code, message, error.get("data").cloned())
}

/// The member of `_meta` of a tool that says whether it is called as a task of version 2025-11-25, as the server has it. rmcp
/// does not know its place in that version.
pub const TASK_SUPPORT: &str = "codecall/taskSupport";

/// Copies to each tool of a list whether it is called as a task. Returns whether one is.
fn keep_task_support(tools: &mut [Tool], text: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Listed {
        result: List,
    }
    #[derive(Deserialize)]
    struct List {
        tools: Vec<Listing>,
    }
    #[derive(Deserialize)]
    struct Listing {
        execution: Option<Execution>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Execution {
        task_support: Option<String>,
    }
    if !contains(text, b"\"taskSupport\"") {
        return false;
    }
    let Ok(Listed { result: listed }) = serde_json::from_slice::<Listed>(text) else { return false };
    for (tool, listing) in tools.iter_mut().zip(listed.tools) {
        if let Some(support) = listing.execution.and_then(|execution| execution.task_support) {
            tool.meta.get_or_insert_default().0.insert(TASK_SUPPORT.into(), support.into());
        }
    }
    true
}

/// Whether JSON is a response with an id that no call has. The id `null` is valid in an error response only: it answers
/// a request that the server could not parse.
fn has_impossible_id(text: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Response {
        #[serde(default, deserialize_with = "present")]
        id: Option<Value>,
        #[serde(default)]
        result: Option<IgnoredAny>,
    }
    /// Distinguishes `null` from a missing member.
    fn present<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<Option<Value>, D::Error> {
        Deserialize::deserialize(reader).map(Some)
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
    ServerJsonRpcMessage::error(unread(reason), Some(id))
}

/// Returns the error of a response that cannot be parsed.
#[must_use]
pub fn unread(reason: &str) -> ErrorData {
    ErrorData::parse_error(format!("The response cannot be parsed: {reason}"), None)
}

/// Returns the error response that replaces a response that is too large.
#[must_use]
pub fn too_large(id: RequestId, message: String) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::new(RESPONSE_TOO_LARGE, message, None), Some(id))
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
            assert!(matches!(parse(text.as_bytes(), |_| false), Incoming::Ignored | Incoming::Message(_)), "{text}");
        }
        let unread = br#"{"jsonrpc":"2.0","id":null,"error":{"code":"none"}}"#;
        assert!(matches!(parse(unread, |_| false), Incoming::Malformed { id: None, .. }));
    }

    #[test]
    fn the_result_of_a_call_stays_text() {
        let text = br#" {"jsonrpc":"2.0", "id":"7", "result": {"a": [1, 2.50]} } "#;
        let is_call = |id: &RequestId| *id == RequestId::Number(7);
        let Incoming::Mended(message) = parse(text, is_call) else { panic!("a response") };
        let expected = serde_json::json!({"jsonrpc": "2.0", "id": "7", "result": "{\"a\": [1, 2.50]}"});
        assert_eq!(serde_json::to_value(&message).expect("JSON"), expected);
        let Incoming::Message(message) = parse(text, |_| false) else { panic!("a message") };
        assert_eq!(serde_json::to_value(&message).expect("JSON")["result"], serde_json::json!({"a": [1, 2.5]}));
    }

    #[test]
    fn values_that_take_too_much_memory_are_not_made() {
        let data = r#"{"":0},"#.repeat(1 << 20);
        let text = format!(r#"{{"jsonrpc":"2.0","id":7,"error":{{"code":1,"message":"x","data":[{data}0]}}}}"#);
        let Incoming::Malformed { id: Some(RequestId::Number(7)), reason } = parse(text.as_bytes(), |_| true) else {
            panic!("too large")
        };
        assert!(reason.starts_with("its values take"), "{reason}");
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
                format!(r#"{{"jsonrpc":"2.0","result":{{"id":3,"x":{deep}}}}}"#).into_bytes(),
                None,
                "it is nested more than 128 levels deep",
            ),
            (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"x\":\"\xff\"}}".to_vec(), Some(7), "it is not UTF-8"),
            (br#"{"jsonrpc":"2.0","id":7,"result":{"x":]}}"#.to_vec(), Some(7), "it is not valid JSON"),
            (br#"{"jsonrpc":"2.0","id":7}"#.to_vec(), Some(7), "it is not a response of MCP"),
        ] {
            let shown = String::from_utf8_lossy(&text[..text.len().min(80)]).into_owned();
            match parse(&text, |_| false) {
                Incoming::Malformed { id: found, reason: actual } => {
                    assert_eq!((found, actual.as_str()), (id.map(RequestId::Number), reason), "{shown}");
                }
                other => panic!("{shown}: {other:?}"),
            }
        }
        for text in ["", "Listening on port 8080", "{\"jsonrpc\":\"2.0\",", "[1]", "{\"method\":\"x\",\"id\":]", "{"] {
            assert!(matches!(parse(text.as_bytes(), |_| false), Incoming::Ignored), "{text}");
        }
        let log = format!(r#"{{"id":7,"result":{deep}}}"#);
        assert!(
            matches!(parse(log.as_bytes(), |_| false), Incoming::Ignored),
            "a line without 'jsonrpc' is log output"
        );
        for odd in [r#"{"jsonrpc":"2.0","id":7,"error":"no"}"#, r#"{"jsonrpc":2,"id":7.0,"result":{"content":"x"}}"#] {
            assert!(matches!(parse(odd.as_bytes(), |_| false), Incoming::Mended(_)), "{odd}");
        }
        let good = "\u{feff} {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":1,\"message\":\"x\"}}\r";
        assert!(matches!(parse(good.as_bytes(), |_| false), Incoming::Message(_)));
    }
}
