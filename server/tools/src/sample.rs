//! Generates values that fit a JSON schema: inputs for usage examples, results for dry runs.
//!
//! Values of the author are preferred (`const`, `default`, `examples`, `enum`), then the smallest value that the keywords
//! allow. The caller checks whether the value is valid.

use codecall_base::schema;
use serde_json::{Map, Value, json};
use std::cell::Cell;

/// Maximum depth of a schema. Deeper ones, most of which refer to themselves, have no sample.
const MAX_DEPTH: usize = 8;
/// Maximum depth at which optional properties are filled in.
const MAX_OPTIONAL_DEPTH: usize = 4;
/// Maximum number of schemas that are visited for one value: a schema may refer to itself in many places.
const MAX_SCHEMAS: u32 = 5_000;

/// The text of a property of which nothing is known.
pub const NOTHING: &str = "example";
/// Maximum length of an example that is taken from a description, in bytes.
const MAX_EXAMPLE_BYTES: usize = 60;

/// Maximum length of a pattern for which candidates are tried, in bytes.
const MAX_PATTERN_BYTES: usize = 256;

/// The properties of an object that are filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    /// Required properties.
    Required,
    /// All declared properties for which a value can be generated.
    Declared,
}

/// Generates an input of a tool with the required properties; `None` if that is not possible.
#[must_use]
pub fn input(schema: &Value) -> Option<Value> {
    Sampler::new(schema, Fill::Required).sample(schema, "", 0)
}

/// Generates the result of a tool that is not called, and whether it is valid. If it is not, it is an empty object.
pub fn result(schema: Option<&Value>) -> (Value, bool) {
    let fits = |schema: &Value, value: &Value| schema::compile(schema).is_ok_and(|schema| schema.fits(value));
    let example = schema.and_then(|schema| output(schema).filter(|value| fits(schema, value)));
    let known = example.is_some();
    (example.unwrap_or_else(|| Value::Object(Map::new())), known)
}

/// Generates a result of a tool with all declared properties, because scripts read them; `None` if that is not possible.
#[must_use]
pub fn output(schema: &Value) -> Option<Value> {
    Sampler::new(schema, Fill::Declared).sample(schema, "", 0)
}

/// Generates the value of one property of an input whose schema is `root`.
#[must_use]
pub fn property(schema: &Value, root: &Value, name: &str) -> Option<Value> {
    Sampler::new(root, Fill::Required).sample(schema, name, 1)
}

/// Generates values of a schema.
struct Sampler<'a> {
    root: &'a Value,
    fill: Fill,
    /// How many more schemas may be visited.
    left: Cell<u32>,
}

impl<'a> Sampler<'a> {
    fn new(root: &'a Value, fill: Fill) -> Self {
        Self { root, fill, left: Cell::new(MAX_SCHEMAS) }
    }

    /// Generates a value that is as small as possible. `name` is the name of the property.
    fn sample(&self, schema: &Value, name: &str, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.left.set(self.left.get().checked_sub(1)?);
        let Some(members) = schema.as_object() else {
            return (schema != &Value::Bool(false)).then(|| json!({}));
        };
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            let target = self.root.pointer(reference.strip_prefix('#')?)?;
            return self.sample(target, name, depth + 1);
        }
        let first = |key: &str| members.get(key).and_then(Value::as_array).and_then(|values| values.first()).cloned();
        let default = || members.get("default").filter(|value| !value.is_null()).cloned();
        let given = match self.fill {
            Fill::Required => default().or_else(|| first("examples")),
            // A default is what a result is without data; an example shows more.
            Fill::Declared => first("examples").or_else(default),
        };
        if let Some(value) = members.get("const").cloned().or(given).or_else(|| first("enum")) {
            return Some(value);
        }
        if let Some(parts) = members.get("allOf").and_then(Value::as_array) {
            return self.merged(members, parts, name, depth);
        }
        if !members.contains_key("properties")
            && let Some(choices) = ["anyOf", "oneOf"].iter().find_map(|key| members.get(*key)?.as_array())
        {
            let plain = |choice: &&Value| choice["type"] != "null";
            return choices
                .iter()
                .filter(plain)
                .find_map(|choice| self.sample(choice, name, depth + 1))
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
            "object" => self.object(members, depth),
            "array" => self.array(members, name, depth),
            "string" => Some(Value::String(text(members, name)?)),
            "integer" | "number" => number(members, kind == "integer"),
            "boolean" => Some(json!(true)),
            _ => Some(Value::Null),
        }
    }

    fn merged(&self, members: &Map<String, Value>, parts: &[Value], name: &str, depth: usize) -> Option<Value> {
        let mut rest = members.clone();
        rest.shift_remove("allOf");
        let mut whole = Map::new();
        for part in parts.iter().chain(std::iter::once(&Value::Object(rest))) {
            match self.sample(part, name, depth + 1)? {
                Value::Object(part) => whole.extend(part),
                other => return Some(other),
            }
        }
        Some(Value::Object(whole))
    }

    fn object(&self, members: &Map<String, Value>, depth: usize) -> Option<Value> {
        let mut value = Map::new();
        let declared = members.get("properties").and_then(Value::as_object);
        for key in members.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            let property = declared.and_then(|declared| declared.get(key)).unwrap_or(&Value::Bool(true));
            value.insert(key.to_owned(), self.sample(property, key, depth + 1)?);
        }
        if self.fill == Fill::Declared && depth < MAX_OPTIONAL_DEPTH {
            for (key, property) in declared.into_iter().flatten() {
                if !value.contains_key(key)
                    && let Some(property) = self.sample(property, key, depth + 1)
                {
                    value.insert(key.clone(), property);
                }
            }
        }
        Some(Value::Object(value))
    }

    fn array(&self, members: &Map<String, Value>, name: &str, depth: usize) -> Option<Value> {
        let least = members.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(20);
        let Some(items) = members.get("items") else {
            return Some(json!(vec![Value::Null; usize::try_from(least).ok()?]));
        };
        let singular = name.strip_suffix('s').unwrap_or(name);
        let most = members.get("maxItems").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let item = self.sample(items, singular, depth + 1)?;
        Some(Value::Array(vec![item; usize::try_from(least.max(1).min(most)).ok()?]))
    }
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

/// Candidates for a pattern.
const CANDIDATES: &[&str] = &[
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
    "EXAMPLE",
    "192.0.2.1",
    "192.0.2.0/24",
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
            NOTHING
        }
    };
    let description = members.get("description").and_then(Value::as_str).unwrap_or_default();
    let usual = known.or_else(|| example_in(description)).unwrap_or_else(by_name);
    let length = |key: &str| members.get(key).and_then(Value::as_u64).and_then(|length| usize::try_from(length).ok());
    let (least, most) = (length("minLength").unwrap_or(0).min(200), length("maxLength").unwrap_or(usize::MAX));
    let Some(pattern) = members.get("pattern") else {
        return Some(shaped(usual, 'x', least, most));
    };
    let pattern =
        pattern.as_str().filter(|pattern| pattern.len() <= MAX_PATTERN_BYTES).and_then(schema::compile_pattern)?;
    let fits = |text: &String| pattern.is_valid(&json!(text));
    let tried = || std::iter::once(usual).chain(CANDIDATES.iter().copied());
    let of_that_length = tried().filter(|text| (least..=most).contains(&text.chars().count())).map(str::to_owned);
    let mended = tried().map(|text| shaped(text, text.chars().next_back().unwrap_or('x'), least, most));
    of_that_length.chain(mended).find(fits)
}

/// Returns the example that a description gives: "e.g. `octocat`", "(e.g., facebook/react)".
fn example_in(description: &str) -> Option<&str> {
    let found = ["e.g.", "for example", "such as", "Example:", "example:"].iter().find_map(|word| {
        let (_, rest) = description.split_once(word)?;
        Some(rest.trim_start_matches([',', ':', ' ']))
    })?;
    let quote = found.chars().next().filter(|c| matches!(c, '\'' | '"' | '`'));
    let example = match quote {
        Some(quote) => found[1..].split_once(quote)?.0,
        None => {
            let word = found.split([' ', ',', ';', ')', '\n']).next()?.trim_end_matches('.');
            // Any other word may be one of the sentence.
            word.contains(['/', '_', '-', '@', ':', '.']).then_some(word)?
        }
    };
    (!example.is_empty() && example.len() <= MAX_EXAMPLE_BYTES).then_some(example)
}

/// Truncates or extends a text to the allowed number of characters.
fn shaped(text: &str, filler: char, least: usize, most: usize) -> String {
    let mut text: String = text.chars().take(most).collect();
    let missing = least.saturating_sub(text.chars().count());
    text.extend(std::iter::repeat_n(filler, missing));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fit_the_schema() {
        for (schema, expected) in [
            (json!({"enum": ["b", "a"]}), json!("b")),
            (json!({"type": "integer", "minimum": 5, "multipleOf": 4}), json!(8)),
            (json!({"type": "number", "exclusiveMinimum": 0, "maximum": 0.5, "multipleOf": 0.5}), json!(0.5)),
            (json!({"type": "string", "format": "date-time"}), json!("2026-01-31T12:00:00Z")),
            (json!({"type": "string", "pattern": "^CUST-\\d+$"}), json!("CUST-001")),
            (json!({"type": "string", "minLength": 10}), json!("examplexxx")),
            (
                json!({"type": "string", "pattern": "^[0-9a-f]+$", "minLength": 24, "maxLength": 24}),
                json!("0123456789abcdef01234567"),
            ),
            (json!({"type": "string", "pattern": "^[A-Z]+$", "minLength": 12}), json!("ABCCCCCCCCCC")),
            (json!({"type": "string", "pattern": "^[a-z]*$", "maxLength": 3}), json!("abc")),
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
            let value = property(&schema, &schema, "");
            assert_eq!(value, Some(expected), "{schema}");
            assert!(jsonschema::is_valid(&schema, &value.unwrap_or_default()), "{schema}");
        }
    }

    #[test]
    fn descriptions_have_examples() {
        for (description, expected) in [
            ("Owner of the repository, e.g. `octocat`", "octocat"),
            ("Repository (e.g., facebook/react)", "facebook/react"),
            ("A name such as the one of the user", NOTHING),
            ("Example: 'today'", "today"),
            ("e.g. `", NOTHING),
            ("", NOTHING),
        ] {
            let schema = json!({"type": "string", "description": description});
            assert_eq!(property(&schema, &schema, ""), Some(json!(expected)), "{description}");
        }
    }

    #[test]
    fn results_are_filled_in() {
        let schema = json!({
            "type": "object",
            "properties": {
                "users": {"type": "array", "items": {"$ref": "#/$defs/user"}},
                "total": {"type": "integer", "default": 0, "examples": [12]},
                "next": {"type": ["string", "null"]},
            },
            "$defs": {"user": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "manager": {"$ref": "#/$defs/user"}},
            }},
        });
        let result = output(&schema).expect("a value");
        assert_eq!((&result["total"], &result["next"]), (&json!(12), &json!("example")));
        assert_eq!(result["users"][0]["id"], "123");
        assert!(jsonschema::is_valid(&schema, &result), "{result}");
        assert_eq!(input(&schema), Some(json!({})));
    }

    /// Nothing fits what is no pattern, or what is not matched in linear time.
    #[test]
    fn patterns_that_nothing_is_tried_on() {
        let counts = "((a{1,1000}){1,1000}){1,1000}";
        for pattern in [json!(counts), json!("["), json!(5), json!("(?=.*b)".repeat(50)), json!("a".repeat(1_000_000))]
        {
            let schema = json!({"required": ["a"], "properties": {"a": {"type": "string", "pattern": pattern}}});
            assert_eq!(input(&schema), None, "{schema:.100}");
            assert!(!result(Some(&schema)).1, "{schema:.100}");
        }
    }

    #[test]
    fn a_schema_that_holds_itself_everywhere_has_an_end() {
        let many: Map<String, Value> = (0..40).map(|n| (format!("p{n}"), json!({"$ref": "#"}))).collect();
        assert!(output(&json!({"type": "object", "properties": many})).is_some());
    }
}
