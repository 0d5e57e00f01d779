//! Limits the size of errors, of results that say that their tool has failed, and of events of calls. They are truncated
//! before anything processes them, and end with a mark that says so.

use codecall_base::offload::weight;
use codecall_base::text::truncate;
use codecall_base::tool::ToolError;
use serde_json::{Value, json};
use std::sync::Arc;

/// Maximum length of the message of an error, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 8 * 1024;
/// Maximum length of the details of an error, in bytes of JSON.
const MAX_DETAILS_BYTES: usize = 16 * 1024;
/// Maximum length of the code of an error, in bytes.
const MAX_CODE_BYTES: usize = 128;
/// Maximum size of the input or message in an event of a call, in bytes of JSON.
const MAX_EVENT_BYTES: usize = 16 * 1024;
/// Maximum number of content blocks in a long result that says that its tool has failed.
const MAX_BLOCKS: usize = 8;

/// Maximum length of the mark, in bytes. A text with a mark is not truncated again.
const MARK_BYTES: usize = 64;

/// Truncates a text to `max_bytes` bytes and a mark.
#[must_use]
pub fn text(text: String, max_bytes: usize) -> String {
    if text.len() <= max_bytes + MARK_BYTES {
        return text;
    }
    format!("{}… [cut: {} bytes in all]", truncate(&text, max_bytes), text.len())
}

/// Truncates an error.
#[must_use]
pub fn error(mut error: ToolError) -> ToolError {
    error.code = text(error.code, MAX_CODE_BYTES);
    error.message = text(error.message, MAX_MESSAGE_BYTES);
    if let Some(details) = error.details.take_if(|details| details.len() > MAX_DETAILS_BYTES) {
        let beginning = format!("{}…", truncate(&details, MAX_DETAILS_BYTES / 8));
        let cut = json!({"cut": true, "bytes": details.len(), "beginning": beginning});
        error.details = Some(cut.to_string());
    }
    error
}

/// Truncates a result of MCP that says that its tool has failed.
pub fn content(result: &mut Value) {
    let Value::Object(members) = result else { return };
    let long = |value: &Value| weight(value) > MAX_DETAILS_BYTES && value.to_string().len() > MAX_DETAILS_BYTES;
    if let Some(Value::Array(blocks)) = members.get_mut("content")
        && blocks.iter().map(weight).sum::<usize>() > MAX_DETAILS_BYTES
    {
        let all = blocks.len();
        blocks.retain(|block| block["type"] == "text");
        blocks.truncate(MAX_BLOCKS);
        let remaining = blocks.len();
        for block in blocks.iter_mut() {
            let long = block["text"].as_str().unwrap_or_default().to_owned();
            *block = json!({"type": "text", "text": text(long, MAX_MESSAGE_BYTES)});
        }
        if remaining < all {
            let note = format!("… [cut: {all} blocks of content in all]");
            blocks.push(json!({"type": "text", "text": note}));
        }
    }
    for (key, member) in members.iter_mut() {
        if key != "content" && long(member) {
            *member = json!({"cut": true});
        }
    }
}

/// Truncates an input or a message for an event. A long value becomes a text.
#[must_use]
pub fn for_event(value: Arc<Value>) -> Arc<Value> {
    if weight(&value) <= MAX_EVENT_BYTES {
        return value;
    }
    Arc::new(match &*value {
        Value::String(long) => text(long.clone(), MAX_EVENT_BYTES).into(),
        value => text(value.to_string(), MAX_EVENT_BYTES).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_cut_and_says_so() {
        let mut long = ToolError::new("C".repeat(1_000), "m".repeat(100_000));
        long.details = Some(json!({"a": "d".repeat(100_000)}).to_string());
        let cut = error(long);
        assert!(cut.code.len() < 200 && cut.message.len() < 9_000, "{}", cut.message.len());
        assert!(cut.message.ends_with("… [cut: 100000 bytes in all]"));
        let details: Value = serde_json::from_str(&cut.details.expect("details")).expect("JSON");
        assert_eq!((&details["cut"], &details["bytes"]), (&json!(true), &json!(100_008)));
        let short = ToolError { details: Some("{}".into()), ..ToolError::new("A", "b") };
        assert_eq!(error(short.clone()), short);
        let once = text("x".repeat(1_000), 100);
        assert_eq!(text(once.clone(), 100), once);
    }

    #[test]
    fn whole_results_are_cut_and_stay_results() {
        let block = json!({"type": "text", "text": "x".repeat(50_000)});
        let image = json!({"type": "image", "data": "x".repeat(50_000), "mimeType": "image/png"});
        let mut blocks = vec![image];
        blocks.extend(vec![block; 100]);
        let mut result = json!({"content": blocks, "structuredContent": {"a": "x".repeat(50_000)}, "isError": true});
        content(&mut result);
        assert!(result.to_string().len() < 80_000, "{}", result.to_string().len());
        assert_eq!(result["structuredContent"], json!({"cut": true}));
        assert_eq!(result["content"][8]["text"], "… [cut: 101 blocks of content in all]");
        let mut short = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
        let before = short.clone();
        content(&mut short);
        assert_eq!(short, before);
    }

    #[test]
    fn events_are_cut() {
        let cut = for_event(Arc::new(json!({"a": ["x".repeat(100_000)]})));
        assert!(cut.as_str().is_some_and(|cut| cut.len() < 17_000), "{cut}");
    }
}
