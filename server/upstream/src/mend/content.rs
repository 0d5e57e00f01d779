//! Results of calls: blocks of content that cannot be read become text, so that nothing is lost.

use super::readable;
use rmcp::model::{Annotations, ContentBlock};
use serde_json::{Map, Value, json};

/// Mends the result of a call.
pub fn call_result(members: &Map<String, Value>) -> Value {
    let mut mended = Map::from_iter([("content".to_owned(), blocks(members.get("content").unwrap_or(&Value::Null)))]);
    // The member of version 2024-10-07.
    if let Some(data) = members.get("structuredContent").or_else(|| members.get("toolResult")) {
        mended.insert("structuredContent".into(), data.clone());
    }
    let has_failed = match members.get("isError") {
        Some(Value::Bool(has_failed)) => Some(*has_failed),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Some(true),
        Some(Value::Number(number)) => Some(number.as_f64() != Some(0.0)),
        Some(_) | None => None,
    };
    if let Some(has_failed) = has_failed {
        mended.insert("isError".into(), has_failed.into());
    }
    if let Some(meta @ Value::Object(_)) = members.get("_meta") {
        mended.insert("_meta".into(), meta.clone());
    }
    mended.into()
}

/// Returns blocks that MCP allows: those of a list, or one for any other value.
pub fn blocks(content: &Value) -> Value {
    match content {
        Value::Null => json!([]),
        Value::Array(blocks) => blocks.iter().filter(|block| !block.is_null()).map(block).collect(),
        other => json!([block(other)]),
    }
}

fn block(sent: &Value) -> Value {
    let text = |text: &str| json!({"type": "text", "text": text});
    let members = match sent {
        Value::String(sent) => return text(sent),
        Value::Object(members) => members,
        other => return text(&other.to_string()),
    };
    let mut mended = members.clone();
    mend_annotations(&mut mended);
    let kind = mended.get("type").and_then(Value::as_str).map(str::to_ascii_lowercase);
    let required: &[&str] = match kind.as_deref() {
        Some("text") => &["type", "text"],
        Some("image" | "audio") => {
            let is_media_type = mended.get("mimeType").is_some_and(Value::is_string);
            if !is_media_type {
                mended.insert("mimeType".into(), media_type(&mended).into());
            }
            &["type", "data", "mimeType"]
        }
        Some("resource_link") => {
            if !mended.get("name").is_some_and(Value::is_string) {
                let address = mended.get("uri").cloned().unwrap_or_default();
                mended.insert("name".into(), address);
            }
            &["type", "uri", "name"]
        }
        Some("resource") => &["type", "resource"],
        // A text without its kind.
        None if mended.get("text").is_some_and(Value::is_string) => {
            mended.insert("type".into(), "text".into());
            &["type", "text"]
        }
        Some(_) | None => return text(&sent.to_string()),
    };
    if let Some(kind) = kind {
        mended.insert("type".into(), kind.into());
    }
    if let Some(number) = mended.get("text").filter(|text| text.is_number() || text.is_boolean()) {
        let number = number.to_string();
        mended.insert("text".into(), number.into());
    }
    match readable::<ContentBlock>(&mended, required) {
        Some((block, _)) => block.into(),
        None => match mended.get("resource").and_then(|resource| resource.get("text")?.as_str()) {
            Some(inner) => text(inner),
            None => text(&sent.to_string()),
        },
    }
}

/// Removes the annotations of a block, or those of them that cannot be read.
fn mend_annotations(block: &mut Map<String, Value>) {
    let Some(annotations) = block.remove("annotations") else { return };
    if let Some((kept, _)) = annotations.as_object().and_then(|members| readable::<Annotations>(members, &[])) {
        block.insert("annotations".into(), kept.into());
    }
}

/// Returns the media type of an image or a recording whose server names none, by its first bytes in base64.
fn media_type(block: &Map<String, Value>) -> &'static str {
    const BEGINNINGS: [(&str, &str); 5] = [
        ("iVBORw0KGgo", "image/png"),
        ("/9j/", "image/jpeg"),
        ("R0lGOD", "image/gif"),
        ("SUQz", "audio/mpeg"),
        ("T2dnUw", "audio/ogg"),
    ];
    let data = block.get("data").and_then(Value::as_str).unwrap_or_default();
    let known = BEGINNINGS.iter().find(|(beginning, _)| data.starts_with(beginning));
    known.map_or("application/octet-stream", |(_, media_type)| media_type)
}
