//! Examples of how a tool is used: those of its author, then generated ones.
//!
//! A generated example is checked: its input fits the tool's schema and its code compiles. One that
//! does not is left out.

use crate::catalogue::Entry;
use serde_json::{Map, Value, json};

const MOST: usize = 5;
const GENERATED: usize = 2;
const DEEPEST: usize = 8;

/// The examples of a tool as clients see them.
pub fn of(entry: &Entry) -> Vec<Value> {
    let own = entry.definition.examples.iter().map(|example| (example.description.clone(), example.code.clone()));
    own.chain(generated(entry).into_iter().take(GENERATED))
        .take(MOST)
        .map(|(description, code)| json!({"description": description, "code": code}))
        .collect()
}

/// What a tool is for, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Intent {
    Create,
    Get,
    List,
    Search,
    Update,
    Delete,
    Other,
}

const VERBS: &[(Intent, &[&str])] = &[
    (
        Intent::Create,
        &["create", "add", "insert", "new", "register", "send", "post", "upload", "write", "make", "open", "start"],
    ),
    (Intent::Search, &["search", "find", "query", "lookup", "filter", "match"]),
    (Intent::List, &["list", "all", "browse", "enumerate", "index"]),
    (
        Intent::Update,
        &["update", "edit", "set", "modify", "patch", "put", "change", "rename", "move", "replace", "assign"],
    ),
    (Intent::Delete, &["delete", "remove", "drop", "destroy", "cancel", "clear", "archive", "close"]),
    (Intent::Get, &["get", "read", "fetch", "show", "view", "describe", "retrieve", "load", "download", "info"]),
];

fn intent(name: &str) -> Intent {
    let words = crate::index::split(name);
    let verb =
        |word: &String| VERBS.iter().find(|(_, verbs)| verbs.contains(&word.as_str())).map(|(intent, _)| *intent);
    words.iter().find_map(verb).unwrap_or(Intent::Other)
}

fn generated(entry: &Entry) -> Vec<(String, String)> {
    let schema = &entry.definition.input_schema;
    let Some(Value::Object(input)) = sample(schema, schema, "", 0) else {
        return Vec::new();
    };
    let subject = subject(entry);
    let call = |input: &Map<String, Value>, options: &str| {
        let tool = Value::String(entry.name.clone());
        format!("await callTool({tool}, {}{options})", literal(&Value::Object(input.clone())))
    };
    let plain = format!("const result = {};\nreturn result;", call(&input, ""));
    let safe = || {
        let call = call(&input, ", { throwOnError: false }");
        format!("const answer = {call};\nreturn answer.success ? answer.data : answer.error.message;")
    };
    let mut examples: Vec<(String, Map<String, Value>, String)> = Vec::new();
    match intent(&entry.definition.name) {
        Intent::Create => examples.push((format!("Create {subject}"), input.clone(), plain)),
        Intent::Get => {
            examples.push((format!("Get {subject}"), input.clone(), plain));
            if let Some((key, value)) = input.iter().find(|(_, value)| value.is_string() || value.is_number()) {
                let mut rest = input.clone();
                rest.shift_remove(key);
                let tool = Value::String(entry.name.clone());
                let members: String =
                    rest.iter().map(|(key, value)| format!(", {}: {}", name(key), literal(value))).collect();
                let code = format!(
                    "const values = [{}];\nreturn await parallel(values, (value) => callTool({tool}, {{ {}: value{members} }}));",
                    literal(value),
                    name(key),
                );
                examples.push(("Several at once".into(), input.clone(), code));
            }
        }
        Intent::List | Intent::Search => {
            let what = if intent(&entry.definition.name) == Intent::List { "List" } else { "Search" };
            examples.push((format!("{what} {subject}"), input.clone(), plain));
            if let Some(limited) = limited(schema, &input) {
                let code = format!("const result = {};\nreturn result;", call(&limited, ""));
                examples.push((format!("{what} a few of them"), limited, code));
            }
        }
        Intent::Update => {
            examples.push((format!("Update {subject}"), input.clone(), plain));
            if let Some(fuller) = with_an_option(schema, &input) {
                let code = format!("const result = {};\nreturn result;", call(&fuller, ""));
                examples.push(("With an optional value".into(), fuller, code));
            }
        }
        Intent::Delete => {
            examples.push((format!("Delete {subject}"), input.clone(), plain));
            examples.push(("Go on when it fails".into(), input.clone(), safe()));
        }
        Intent::Other => examples.push((format!("Call {}", entry.name), input.clone(), plain)),
    }
    let options = agentscript::CompileOptions::default();
    examples
        .into_iter()
        .filter(|(_, input, code)| {
            let input = Value::Object(input.clone());
            entry.validator().is_none_or(|validator| validator.is_valid(&input))
                && agentscript::compile(code, &options).is_ok()
        })
        .map(|(description, _, code)| (description, code))
        .collect()
}

/// What the tool works on: the words of its name without the verb, or its app.
fn subject(entry: &Entry) -> String {
    let verbs = || VERBS.iter().flat_map(|(_, verbs)| verbs.iter());
    let words: Vec<String> = crate::index::split(&entry.definition.name)
        .into_iter()
        .filter(|word| !verbs().any(|verb| verb == word))
        .collect();
    if !words.is_empty() {
        words.join(" ")
    } else if entry.definition.app.is_empty() {
        "something".into()
    } else {
        entry.definition.app.clone()
    }
}

fn limited(schema: &Value, input: &Map<String, Value>) -> Option<Map<String, Value>> {
    let names = [
        "limit",
        "pageSize",
        "page_size",
        "perPage",
        "per_page",
        "topK",
        "maxResults",
        "max_results",
        "first",
        "count",
    ];
    let key = names.into_iter().find(|name| schema["properties"].get(name).is_some() && !input.contains_key(*name))?;
    let mut input = input.clone();
    input.insert(key.into(), json!(10));
    Some(input)
}

fn with_an_option(schema: &Value, input: &Map<String, Value>) -> Option<Map<String, Value>> {
    let (key, property) = schema.get("properties")?.as_object()?.iter().find(|(key, _)| !input.contains_key(*key))?;
    let mut input = input.clone();
    input.insert(key.clone(), sample(property, schema, key, 1)?);
    Some(input)
}

/// A value that fits a schema, as small as possible. `name` is the property's name.
fn sample(schema: &Value, root: &Value, name: &str, depth: usize) -> Option<Value> {
    if depth > DEEPEST {
        return None;
    }
    let Some(members) = schema.as_object() else {
        return (schema != &Value::Bool(false)).then(|| json!({}));
    };
    if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(reference.strip_prefix('#')?)?;
        return sample(target, root, name, depth + 1);
    }
    if let Some(value) = members.get("const").or_else(|| members.get("default").filter(|value| !value.is_null())) {
        return Some(value.clone());
    }
    let first = |key: &str| members.get(key).and_then(Value::as_array).and_then(|values| values.first()).cloned();
    if let Some(value) = first("examples").or_else(|| first("enum")) {
        return Some(value);
    }
    if let Some(parts) = members.get("allOf").and_then(Value::as_array) {
        return merged(members, parts, root, name, depth);
    }
    if !members.contains_key("properties")
        && let Some(choices) = ["anyOf", "oneOf"].iter().find_map(|key| members.get(*key)?.as_array())
    {
        let plain = |choice: &&Value| choice["type"] != "null";
        return choices
            .iter()
            .filter(plain)
            .find_map(|choice| sample(choice, root, name, depth + 1))
            .or(Some(Value::Null));
    }
    let kind = match members.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null")?,
        Some(_) | None if members.contains_key("items") => "array",
        Some(_) | None if members.contains_key("properties") || depth == 0 => "object",
        Some(_) | None => "string",
    };
    match kind {
        "object" => object(members, root, depth),
        "array" => array(members, root, name, depth),
        "string" => Some(Value::String(text(members, name)?)),
        "integer" | "number" => number(members, kind == "integer"),
        "boolean" => Some(json!(true)),
        _ => Some(Value::Null),
    }
}

fn merged(members: &Map<String, Value>, parts: &[Value], root: &Value, name: &str, depth: usize) -> Option<Value> {
    let mut rest = members.clone();
    rest.shift_remove("allOf");
    let mut whole = Map::new();
    for part in parts.iter().chain(std::iter::once(&Value::Object(rest))) {
        match sample(part, root, name, depth + 1)? {
            Value::Object(part) => whole.extend(part),
            other => return Some(other),
        }
    }
    Some(Value::Object(whole))
}

fn object(members: &Map<String, Value>, root: &Value, depth: usize) -> Option<Value> {
    let mut value = Map::new();
    for key in members.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        let property =
            members.get("properties").and_then(|properties| properties.get(key)).unwrap_or(&Value::Bool(true));
        value.insert(key.to_owned(), sample(property, root, key, depth + 1)?);
    }
    Some(Value::Object(value))
}

fn array(members: &Map<String, Value>, root: &Value, name: &str, depth: usize) -> Option<Value> {
    let least = members.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(20);
    let Some(items) = members.get("items") else {
        return Some(json!(vec![Value::Null; usize::try_from(least).ok()?]));
    };
    let singular = name.strip_suffix('s').unwrap_or(name);
    let most = members.get("maxItems").and_then(Value::as_u64).unwrap_or(u64::MAX);
    let item = sample(items, root, singular, depth + 1)?;
    Some(Value::Array(vec![item; usize::try_from(least.max(1).min(most)).ok()?]))
}

fn number(members: &Map<String, Value>, integer: bool) -> Option<Value> {
    let bound = |key: &str| members.get(key).and_then(Value::as_f64);
    let step = bound("multipleOf").filter(|step| *step > 0.0).unwrap_or(1.0);
    let mut value = bound("minimum").unwrap_or_else(|| bound("exclusiveMinimum").map_or(1.0, |least| least + step));
    if let Some(most) = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|most| most - step)) {
        value = value.min(most);
    }
    if integer {
        value = value.ceil();
    }
    value = (value / step).ceil() * step;
    if value.fract() == 0.0 && value.abs() < 9e15 { Some(json!(value as i64)) } else { Some(json!(value)) }
}

/// Texts that are tried on a pattern.
const TRIED: &[&str] = &[
    "example",
    "abc",
    "ABC",
    "a",
    "1",
    "123",
    "12345",
    "abc123",
    "ABC-123",
    "abc-123",
    "2026-01-31",
    "12:30",
    "#ffcc00",
    "/path",
    "https://example.com",
    "user@example.com",
    "owner/repo",
    "1.0.0",
    "+12025550123",
    "US",
    "USD",
    "en",
    "en-US",
    "00000000-0000-4000-8000-000000000000",
    "0123456789abcdef01234567",
    "0123456789abcdef0123456789abcdef",
    "CUST-001",
];

fn text(members: &Map<String, Value>, name: &str) -> Option<String> {
    let known = match members.get("format").and_then(Value::as_str) {
        Some("date-time") => Some("2026-01-31T12:00:00Z"),
        Some("date") => Some("2026-01-31"),
        Some("time") => Some("12:00:00Z"),
        Some("duration") => Some("PT1H"),
        Some("email" | "idn-email") => Some("user@example.com"),
        Some("uri" | "url" | "iri" | "uri-reference") => Some("https://example.com"),
        Some("uuid") => Some("00000000-0000-4000-8000-000000000000"),
        Some("ipv4") => Some("192.0.2.1"),
        Some("ipv6") => Some("2001:db8::1"),
        Some("hostname") => Some("example.com"),
        Some(_) | None => None,
    };
    let by_name = || {
        let words = crate::index::split(name);
        let has = |word: &str| words.iter().any(|own| own == word);
        if has("email") {
            "user@example.com"
        } else if has("url") || has("uri") {
            "https://example.com"
        } else if has("date") {
            "2026-01-31"
        } else if has("id") {
            "123"
        } else if has("path") || has("file") {
            "path/to/file"
        } else {
            "example"
        }
    };
    let mut value = known.unwrap_or_else(by_name).to_owned();
    if members.contains_key("pattern") {
        let schema = json!({"pattern": members["pattern"]});
        let fits = |text: &str| jsonschema::is_valid(&schema, &json!(text));
        value = std::iter::once(value.as_str()).chain(TRIED.iter().copied()).find(|text| fits(text))?.to_owned();
    }
    let length = |key: &str| members.get(key).and_then(Value::as_u64).and_then(|length| usize::try_from(length).ok());
    if let Some(most) = length("maxLength") {
        value = value.chars().take(most).collect();
    }
    let missing = length("minLength").unwrap_or(0).min(200).saturating_sub(value.chars().count());
    value.extend(std::iter::repeat_n('x', missing));
    Some(value)
}

/// A value as the language writes it.
fn literal(value: &Value) -> String {
    match value {
        Value::Object(members) if members.is_empty() => "{}".into(),
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("{}: {}", name(key), literal(value))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// A property name as the language writes it.
fn name(key: &str) -> String {
    let plain = key
        .chars()
        .enumerate()
        .all(|(at, c)| c == '_' || c == '$' || c.is_ascii_alphabetic() || at > 0 && c.is_ascii_digit());
    if plain && !key.is_empty() { key.to_owned() } else { Value::String(key.to_owned()).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{ToolFilter, tests::catalogue};

    fn examples(name: &str, schema: Value) -> Vec<String> {
        let catalogue = catalogue(&[("users", name, "", schema)], ToolFilter::default());
        let snapshot = catalogue.snapshot();
        of(&snapshot.rows()[0]).iter().map(|example| example["code"].as_str().expect("code").to_owned()).collect()
    }

    #[test]
    fn by_intent() {
        let id = || json!({"type": "object", "properties": {"id": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["id"]});
        assert_eq!(
            examples("getUser", id())[1],
            "const values = [\"123\"];\nreturn await parallel(values, (value) => callTool(\"users:getUser\", { id: value }));"
        );
        assert_eq!(
            examples("list_users", id())[1],
            "const result = await callTool(\"users:list_users\", { id: \"123\", limit: 10 });\nreturn result;"
        );
        assert!(examples("deleteUser", id())[1].contains("throwOnError: false"));
        assert_eq!(
            examples("frobnicate", json!({"type": "object"})),
            ["const result = await callTool(\"users:frobnicate\", {});\nreturn result;"]
        );
    }

    #[test]
    fn values_fit_the_schema() {
        for (schema, expected) in [
            (json!({"enum": ["b", "a"]}), json!("b")),
            (json!({"type": "integer", "minimum": 5, "multipleOf": 4}), json!(8)),
            (json!({"type": "number", "exclusiveMinimum": 0, "maximum": 0.5, "multipleOf": 0.5}), json!(0.5)),
            (json!({"type": "string", "format": "date-time"}), json!("2026-01-31T12:00:00Z")),
            (json!({"type": "string", "pattern": "^CUST-\\d+$"}), json!("CUST-001")),
            (json!({"type": "string", "minLength": 10}), json!("examplexxx")),
            (json!({"type": ["null", "boolean"]}), json!(true)),
            (
                json!({"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "integer"}, "minItems": 2}]}),
                json!([1, 1]),
            ),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": {"const": 3}}}), json!(3)),
            (
                json!({"allOf": [{"type": "object", "required": ["a"], "properties": {"a": {"default": 1}}}], "required": ["b"], "type": "object"}),
                json!({"a": 1, "b": {}}),
            ),
        ] {
            let value = sample(&schema, &schema, "", 1);
            assert_eq!(value, Some(expected), "{schema}");
            assert!(jsonschema::is_valid(&schema, &value.unwrap_or_default()), "{schema}");
        }
    }

    #[test]
    fn what_cannot_be_made_is_left_out() {
        let odd = json!({"type": "object", "properties": {"x": {"type": "string", "pattern": "^(?=x{40}).*zq$"}}, "required": ["x"]});
        assert!(examples("get", odd).is_empty());
        let endless = json!({"type": "object", "properties": {"x": {"$ref": "#"}}, "required": ["x"]});
        assert!(examples("get", endless).is_empty());
    }
}
