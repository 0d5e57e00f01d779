//! How much of a failure, and of what is told of a call, gets to anybody. It is cut before anything
//! looks at it, and says that it is.

use codecall_base::offload::weight;
use codecall_base::text::truncate;
use codecall_base::tool::ToolError;
use serde_json::{Value, json};
use std::sync::Arc;

/// Longest message of an error, in bytes.
pub const LONGEST_MESSAGE: usize = 8 * 1024;
/// Longest JSON text of the details of an error, in bytes.
const LONGEST_DETAILS: usize = 16 * 1024;
/// Longest code of an error, in bytes.
const LONGEST_CODE: usize = 128;
/// Largest input and message that is told while a call is under way, in bytes of JSON.
const LONGEST_TOLD: usize = 16 * 1024;
/// Blocks of content of a result that says that its tool has failed, where they are long.
const MOST_BLOCKS: usize = 8;

/// Bytes of the mark of what was cut. A text that has one is not cut again.
const MARK: usize = 64;

/// A text with at most `most` bytes, and a mark where it was longer.
#[must_use]
pub fn text(text: String, most: usize) -> String {
    if text.len() <= most + MARK {
        return text;
    }
    format!("{}… [cut: {} bytes in all]", truncate(&text, most), text.len())
}

/// Cut an error.
#[must_use]
pub fn error(mut error: ToolError) -> ToolError {
    error.code = text(error.code, LONGEST_CODE);
    error.message = text(error.message, LONGEST_MESSAGE);
    if let Some(details) = error.details.take_if(|details| details.len() > LONGEST_DETAILS) {
        let cut = json!({"cut": true, "bytes": details.len(), "beginning": truncate(&details, LONGEST_DETAILS / 8)});
        error.details = Some(cut.to_string());
    }
    error
}

/// Cut a whole result of MCP that says that its tool has failed.
pub fn content(result: &mut Value) {
    let Value::Object(members) = result else { return };
    let long = |value: &Value| weight(value) > LONGEST_DETAILS && value.to_string().len() > LONGEST_DETAILS;
    if let Some(Value::Array(blocks)) = members.get_mut("content")
        && blocks.iter().map(weight).sum::<usize>() > LONGEST_DETAILS
    {
        let all = blocks.len();
        blocks.retain(|block| block["type"] == "text");
        blocks.truncate(MOST_BLOCKS);
        let kept = blocks.len();
        for block in blocks.iter_mut() {
            let told = block["text"].as_str().unwrap_or_default().to_owned();
            *block = json!({"type": "text", "text": text(told, LONGEST_MESSAGE)});
        }
        if kept < all {
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

/// What is told of an input or a message, cut to its beginning where it is long.
#[must_use]
pub fn told(value: Arc<Value>) -> Arc<Value> {
    if weight(&value) <= LONGEST_TOLD {
        return value;
    }
    Arc::new(match &*value {
        Value::String(said) => text(said.clone(), LONGEST_TOLD).into(),
        value => text(value.to_string(), LONGEST_TOLD).into(),
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
    fn what_is_told_is_cut() {
        let told = told(Arc::new(json!({"a": ["x".repeat(100_000)]})));
        assert!(told.as_str().is_some_and(|told| told.len() < 17_000), "{told}");
    }
}
