//! Arguments as models send them: numbers, booleans, lists and objects as JSON text, one name in place of a list,
//! `null` for absent ones. The input schema of a meta-tool says what is meant.

use serde_json::{Map, Value};

/// Converts the arguments of a request to the types of a schema, where their meaning is beyond doubt. What is left is
/// refused by whoever parses them.
pub fn converted(arguments: Value, schema: &Value) -> Value {
    let arguments = match arguments {
        Value::Null => Value::Object(Map::new()),
        other => other,
    };
    of_type(arguments, schema)
}

fn of_type(value: Value, schema: &Value) -> Value {
    let expected = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    match (expected, value) {
        ("object", value) => match object_of(value) {
            Value::Object(members) => members_of(members, schema).into(),
            other => other,
        },
        ("array", value) => match list_of(value) {
            Value::Array(items) => match schema.get("items") {
                Some(items_schema) => items.into_iter().map(|item| of_type(item, items_schema)).collect(),
                None => items.into(),
            },
            other => other,
        },
        ("integer" | "number", Value::String(text)) => match serde_json::from_str(text.trim()) {
            Ok(number @ Value::Number(_)) => of_type(number, schema),
            Ok(_) | Err(_) => text.into(),
        },
        ("integer", Value::Number(number)) => match number.as_f64() {
            // `3.0`, as languages write it that have doubles only.
            Some(double) if !number.is_u64() && !number.is_i64() && double.fract() == 0.0 && double.abs() < 1e15 => {
                serde_json::from_str(&format!("{double:.0}")).unwrap_or(Value::Number(number))
            }
            Some(_) | None => number.into(),
        },
        ("boolean", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => true.into(),
            "false" => false.into(),
            _ => text.into(),
        },
        (_, value) => value,
    }
}

/// Converts the members of an object. A member that is `null`, which its schema does not allow, is left out unless it is
/// required.
fn members_of(members: Map<String, Value>, schema: &Value) -> Map<String, Value> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return members };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |key: &str| required.is_some_and(|names| names.iter().any(|name| name == key));
    // Where any value is allowed, `null` is one.
    let has_type = |key: &str| properties.get(key).is_some_and(|schema| schema.get("type").is_some());
    let members = members.into_iter().filter(|(key, value)| !value.is_null() || is_required(key) || !has_type(key));
    members
        .map(|(key, value)| match properties.get(&key) {
            Some(schema) => {
                let value = of_type(value, schema);
                (key, value)
            }
            None => (key, value),
        })
        .collect()
}

fn object_of(value: Value) -> Value {
    match value {
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(object @ Value::Object(_)) => object,
            Ok(_) | Err(_) => text.into(),
        },
        other => other,
    }
}

fn list_of(value: Value) -> Value {
    match value {
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(list @ Value::Array(_)) => list,
            Ok(_) | Err(_) => Value::Array(vec![text.into()]),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_models_write_is_converted() {
        let schema = json!({"type": "object", "required": ["needed"], "properties": {
            "names": {"type": "array", "items": {"type": "string"}}, "count": {"type": "integer"},
            "score": {"type": "number"}, "flag": {"type": "boolean"}, "text": {"type": "string"}, "needed": {}, "any": {},
            "filter": {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}},
        }});
        for (given, expected) in [
            (json!({"names": "[\"a\", \"b\"]"}), json!({"names": ["a", "b"]})),
            (json!({"names": "a"}), json!({"names": ["a"]})),
            (json!({"count": "3"}), json!({"count": 3})),
            (json!({"count": 3.0}), json!({"count": 3})),
            (json!({"count": 3.5}), json!({"count": 3.5})),
            (json!({"count": "three"}), json!({"count": "three"})),
            (json!({"score": "0.5"}), json!({"score": 0.5})),
            (json!({"flag": "True"}), json!({"flag": true})),
            (json!({"filter": "{\"tags\": \"x\"}"}), json!({"filter": {"tags": ["x"]}})),
            (json!({"filter": null, "needed": null, "other": null}), json!({"needed": null, "other": null})),
            (json!({"text": "3"}), json!({"text": "3"})),
            (json!({"any": null}), json!({"any": null})),
            (json!("{\"count\": 1}"), json!({"count": 1})),
            (json!(null), json!({})),
            (json!({"names": 5}), json!({"names": 5})),
        ] {
            assert_eq!(converted(given.clone(), &schema), expected, "{given}");
        }
    }
}
