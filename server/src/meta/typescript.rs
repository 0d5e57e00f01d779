//! Tools as TypeScript signatures: fewer tokens than JSON schemas.

use crate::catalogue::Entry;
use serde_json::{Map, Value};

const DEEPEST: usize = 6;
const LONGEST_COMMENT: usize = 160;

/// `callTool('users:list', input: {…}): Promise<…>`
pub fn signature(entry: &Entry) -> String {
    let tool = &entry.definition;
    let input = write(&tool.input_schema, &tool.input_schema, 0, true);
    let output =
        tool.output_schema.as_ref().map_or_else(|| "unknown".to_owned(), |schema| write(schema, schema, 0, true));
    format!("callTool({}, input: {input}): Promise<{output}>", quoted(&entry.name))
}

/// A schema as a type on one line, without comments.
pub fn type_of(schema: &Value, root: &Value) -> String {
    write(schema, root, DEEPEST - 2, false)
}

fn write(schema: &Value, root: &Value, depth: usize, comments: bool) -> String {
    let Some(members) = schema.as_object() else { return "unknown".into() };
    if depth > DEEPEST {
        return "unknown".into();
    }
    if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.map_or_else(|| "unknown".into(), |target| write(target, root, depth + 1, comments));
    }
    if let Some(value) = members.get("const") {
        return value.to_string();
    }
    let union = |schemas: &[Value], separator: &str| {
        let mut parts: Vec<String> = Vec::new();
        for part in schemas.iter().map(|part| write(part, root, depth + 1, comments)) {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts.join(separator)
    };
    if let Some(values) = members.get("enum").and_then(Value::as_array) {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    if let Some(parts) = members.get("anyOf").or_else(|| members.get("oneOf")).and_then(Value::as_array)
        && !members.contains_key("properties")
    {
        return union(parts, " | ");
    }
    if let Some(parts) = members.get("allOf").and_then(Value::as_array)
        && !members.contains_key("properties")
    {
        return union(parts, " & ");
    }
    match members.get("type") {
        Some(Value::Array(kinds)) => {
            let kinds: Vec<String> = kinds
                .iter()
                .filter_map(Value::as_str)
                .map(|kind| typed(kind, members, root, depth, comments))
                .collect();
            kinds.join(" | ")
        }
        Some(Value::String(kind)) => typed(kind, members, root, depth, comments),
        Some(_) | None if members.contains_key("properties") => typed("object", members, root, depth, comments),
        Some(_) | None if members.contains_key("items") => typed("array", members, root, depth, comments),
        Some(_) | None => "unknown".into(),
    }
}

fn typed(kind: &str, members: &Map<String, Value>, root: &Value, depth: usize, comments: bool) -> String {
    match kind {
        "integer" | "number" => "number".into(),
        "string" | "boolean" | "null" => kind.into(),
        "array" => {
            let item =
                members.get("items").map_or_else(|| "unknown".into(), |items| write(items, root, depth + 1, comments));
            if item.contains(' ') && !item.starts_with('{') { format!("Array<{item}>") } else { format!("{item}[]") }
        }
        "object" => object(members, root, depth, comments),
        _ => "unknown".into(),
    }
}

fn object(members: &Map<String, Value>, root: &Value, depth: usize, comments: bool) -> String {
    let properties = members.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty());
    let Some(properties) = properties else {
        return match members.get("additionalProperties") {
            Some(values @ Value::Object(_)) => format!("Record<string, {}>", write(values, root, depth + 1, comments)),
            Some(Value::Bool(false)) => "{}".into(),
            Some(_) | None => "Record<string, unknown>".into(),
        };
    };
    if depth >= DEEPEST {
        return "object".into();
    }
    let required: Vec<&str> =
        members.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let rows = properties.iter().map(|(key, schema)| {
        let mark = if required.contains(&key.as_str()) { "" } else { "?" };
        let row = format!("{}{mark}: {}", name(key), write(schema, root, depth + 1, comments));
        (row, schema.get("description").and_then(Value::as_str).unwrap_or_default())
    });
    if !comments {
        return format!("{{ {} }}", rows.map(|(row, _)| row).collect::<Vec<_>>().join("; "));
    }
    let indent = "  ".repeat(depth + 1);
    let mut out = String::from("{\n");
    for (row, comment) in rows {
        let comment = crate::index::cut(comment, LONGEST_COMMENT).split_whitespace().collect::<Vec<_>>().join(" ");
        out.push_str(&indent);
        out.push_str(&row);
        out.push(';');
        if !comment.is_empty() {
            out.push_str(" // ");
            out.push_str(&comment);
        }
        out.push('\n');
    }
    out.push_str(&"  ".repeat(depth));
    out.push('}');
    out
}

fn name(key: &str) -> String {
    let plain = key
        .chars()
        .enumerate()
        .all(|(at, c)| c == '_' || c == '$' || c.is_ascii_alphabetic() || at > 0 && c.is_ascii_digit());
    if plain && !key.is_empty() { key.to_owned() } else { quoted(key) }
}

fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn types() {
        for (schema, expected) in [
            (json!({"type": "string"}), "string"),
            (json!({"enum": ["a", 1, null]}), "\"a\" | 1 | null"),
            (json!({"type": ["integer", "null"]}), "number | null"),
            (
                json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}}),
                "Array<string | number>",
            ),
            (json!({"type": "object", "additionalProperties": {"type": "number"}}), "Record<string, number>"),
            (
                json!({"type": "object", "properties": {"a-b": {"type": "string"}, "c": {"$ref": "#/$defs/c"}}, "required": ["c"], "$defs": {"c": {"type": "boolean"}}}),
                "{ \"a-b\"?: string; c: boolean }",
            ),
            (json!(true), "unknown"),
        ] {
            assert_eq!(type_of(&schema, &schema), expected);
        }
        let endless = json!({"type": "object", "properties": {"x": {"$ref": "#"}}});
        assert!(write(&endless, &endless, 0, true).len() < 500);
    }

    #[test]
    fn comments() {
        let schema = json!({"type": "object", "properties": {"id": {"type": "string", "description": "Whose\n id"}}, "required": ["id"]});
        assert_eq!(write(&schema, &schema, 0, true), "{\n  id: string; // Whose id\n}");
    }
}
