//! `null` for optional properties: models write it where they mean to leave a property out.

use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ptr;

/// Maximum depth of a value, and of the references of a schema, that are followed. Deeper parts are left as they are.
const MAX_DEPTH: usize = 64;

/// Removes the properties that are `null` from a value, at any depth, where the schema neither requires the property nor
/// allows `null` for it. Where the schema is not clear about a property, it stays.
///
/// The time is in proportion to the value and to the schema: each part of the value is visited once, with all parts of the
/// schema that apply to it.
pub fn without_nulls(schema: &Value, value: &mut Value) {
    if has_null_member(value, 0) {
        Walk { root: schema, allows_null: RefCell::default() }.value(&[schema], value, 0);
    }
}

fn has_null_member(value: &Value, depth: usize) -> bool {
    match value {
        _ if depth > MAX_DEPTH => false,
        Value::Object(members) => members.values().any(|member| member.is_null() || has_null_member(member, depth + 1)),
        Value::Array(items) => items.iter().any(|item| has_null_member(item, depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

struct Walk<'s> {
    root: &'s Value,
    /// Whether parts of the schema allow `null`, as far as it is known.
    allows_null: RefCell<HashMap<*const Value, bool>>,
}

impl<'s> Walk<'s> {
    /// Visits a value to which several parts of the schema apply.
    fn value(&self, applied: &[&'s Value], value: &mut Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let mut schemas: Vec<&'s Map<String, Value>> = Vec::new();
        match value {
            Value::Object(members) => {
                applied.iter().for_each(|schema| self.objects(schema, depth, &mut schemas));
                let is_required = |name: &str| {
                    let required = schemas.iter().filter_map(|schema| schema.get("required")?.as_array()).flatten();
                    required.into_iter().any(|required| required == name)
                };
                let of_property = |name: &str| -> Vec<&'s Value> {
                    let named = schemas.iter().filter_map(|schema| schema.get("properties")?.get(name));
                    let named: Vec<&'s Value> = named.collect();
                    if !named.is_empty() {
                        return named;
                    }
                    let others = schemas.iter().filter(|schema| schema.get("patternProperties").is_none());
                    others
                        .filter_map(|schema| schema.get("additionalProperties"))
                        .filter(|other| other.is_object())
                        .collect()
                };
                members.retain(|name, member| {
                    let own = of_property(name);
                    if member.is_null() {
                        return is_required(name) || own.into_iter().all(|schema| self.allows_null(schema, depth));
                    }
                    if !own.is_empty() {
                        self.value(&own, member, depth + 1);
                    }
                    true
                });
            }
            Value::Array(items) => {
                applied.iter().for_each(|schema| self.objects(schema, depth, &mut schemas));
                for (at, item) in items.iter_mut().enumerate() {
                    // `prefixItems` and lists of schemas have an own schema for each item.
                    let of_item = |schema: &&'s Map<String, Value>| {
                        let first = schema.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
                        schema.get("items").filter(|items| items.is_object() && at >= first)
                    };
                    let own: Vec<&'s Value> = schemas.iter().filter_map(of_item).collect();
                    if !own.is_empty() {
                        self.value(&own, item, depth + 1);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Adds the parts of a schema that an object or a list has to fit: itself, what it refers to, and the only one of
    /// several alternatives that is not for plain values.
    fn objects(&self, schema: &'s Value, depth: usize, found: &mut Vec<&'s Map<String, Value>>) {
        let Value::Object(members) = schema else { return };
        if depth > MAX_DEPTH || found.len() > MAX_DEPTH || found.iter().any(|known| ptr::eq(*known, members)) {
            return;
        }
        found.push(members);
        if let Some(target) = self.target(members) {
            self.objects(target, depth + 1, found);
        }
        for part in members.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.objects(part, depth + 1, found);
        }
        for key in ["anyOf", "oneOf"] {
            let alternatives = members.get(key).and_then(Value::as_array).into_iter().flatten();
            let mut compound = alternatives.filter(|part| !is_plain(part));
            if let (Some(only), None) = (compound.next(), compound.next()) {
                self.objects(only, depth + 1, found);
            }
        }
    }

    /// The schema that `$ref` names, if it is a part of this one.
    fn target(&self, members: &Map<String, Value>) -> Option<&'s Value> {
        let pointer = members.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(pointer)
    }

    /// Whether `null` may fit: it does, or the schema is not clear.
    fn allows_null(&self, schema: &'s Value, depth: usize) -> bool {
        if let Some(&known) = self.allows_null.borrow().get(&ptr::from_ref(schema)) {
            return known;
        }
        let allows = self.find_allows_null(schema, depth);
        self.allows_null.borrow_mut().insert(ptr::from_ref(schema), allows);
        allows
    }

    fn find_allows_null(&self, schema: &'s Value, depth: usize) -> bool {
        let members = match schema {
            Value::Bool(allows) => return *allows,
            Value::Object(members) => members,
            _ => return true,
        };
        if depth > MAX_DEPTH {
            return true;
        }
        let of_type = match members.get("type") {
            Some(Value::String(name)) => name == "null" || members.get("nullable") == Some(&Value::Bool(true)),
            Some(Value::Array(names)) => names.iter().any(|name| name == "null"),
            _ => true,
        };
        let of_values =
            members.get("enum").and_then(Value::as_array).is_none_or(|values| values.contains(&Value::Null))
                && members.get("const").is_none_or(Value::is_null);
        let allows = |schema: &'s Value| self.allows_null(schema, depth + 1);
        of_type
            && of_values
            && (!members.contains_key("$ref") || self.target(members).is_none_or(allows))
            && members.get("allOf").and_then(Value::as_array).is_none_or(|all| all.iter().all(allows))
            && ["anyOf", "oneOf"]
                .iter()
                .all(|key| members.get(*key).and_then(Value::as_array).is_none_or(|any| any.iter().any(allows)))
    }
}

/// Whether a schema is for values without parts.
fn is_plain(schema: &Value) -> bool {
    matches!(schema["type"].as_str(), Some("null" | "string" | "number" | "integer" | "boolean"))
        || (schema.get("const").or_else(|| schema.get("enum")).is_some() && schema.get("properties").is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn repeated_references_take_no_more_time() {
        // Without the memory of what is known, each of these takes more than two to the power of forty steps.
        let twice =
            |name: &str| json!({"allOf": [{"$ref": format!("#/$defs/{name}")}, {"$ref": format!("#/$defs/{name}")}]});
        let nested = (0..40).fold(json!({"gone": null}), |inner, _| json!({"a": inner}));
        let schema =
            json!({"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"a": twice("n"), "gone": {"type": "string"}}}}});
        assert_eq!(without(&schema, nested), (0..40).fold(json!({}), |inner, _| json!({"a": inner})));
        let mut defs = Map::new();
        for at in 0..40 {
            defs.insert(format!("d{at}"), twice(&format!("d{}", at + 1)));
        }
        defs.insert("d40".into(), json!({"type": ["string", "null"]}));
        let schema = json!({"properties": {"a": twice("d0")}, "$defs": defs});
        assert_eq!(without(&schema, json!({"a": null})), json!({"a": null}));
        let mut pairs = Map::new();
        for at in 0..40 {
            let next = || json!({"$ref": format!("#/$defs/d{}", at + 1)});
            pairs.insert(
                format!("d{at}"),
                json!({"allOf": [{"properties": {"a": next()}}, {"properties": {"a": next()}}]}),
            );
        }
        pairs.insert("d40".into(), json!({"properties": {"gone": {"type": "string"}}}));
        let schema = json!({"$ref": "#/$defs/d0", "$defs": pairs});
        let nested = (0..40).fold(json!({"gone": null}), |inner, _| json!({"a": inner}));
        assert_eq!(without(&schema, nested), (0..40).fold(json!({}), |inner, _| json!({"a": inner})));
    }

    fn without(schema: &Value, mut value: Value) -> Value {
        without_nulls(schema, &mut value);
        value
    }

    #[test]
    fn an_optional_property_that_cannot_be_null_is_left_out() {
        let schema = json!({
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "name": {"type": "string"},
                "note": {"type": ["string", "null"]},
                "old": {"type": "string", "nullable": true},
                "any": {},
                "kind": {"enum": ["a", "b"]},
                "unset": {"enum": ["a", null]},
                "limit": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            },
            "required": ["id"],
        });
        let nulls = json!({
            "id": null, "name": null, "note": null, "old": null, "any": null, "kind": null, "unset": null, "limit": null,
            "maybe": null, "unknown": null,
        });
        let left =
            json!({"id": null, "note": null, "old": null, "any": null, "unset": null, "maybe": null, "unknown": null});
        assert_eq!(without(&schema, nulls), left);
    }

    #[test]
    fn at_any_depth() {
        let schema = json!({
            "$defs": {"address": {"type": "object", "properties": {"zip": {"type": "string"}, "city": {"$ref": "#/$defs/text"}}}, "text": {"type": "string"}},
            "properties": {
                "to": {"$ref": "#/$defs/address"},
                "all": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/address"}, {"type": "null"}]}},
                "extra": {"type": "object", "additionalProperties": {"type": "number"}},
                "both": {"allOf": [{"$ref": "#/$defs/address"}, {"required": ["zip"]}]},
            },
        });
        let value = json!({
            "to": {"zip": null, "city": null},
            "all": [{"zip": null, "city": "x"}, null],
            "extra": {"a": null, "b": 1},
            "both": {"zip": null, "city": null},
        });
        let left = json!({"to": {}, "all": [{"city": "x"}, null], "extra": {"b": 1}, "both": {"zip": null}});
        assert_eq!(without(&schema, value), left);
    }

    #[test]
    fn endless_references_end() {
        let schema = json!({"$ref": "#", "properties": {"a": {"$ref": "#/properties/a"}, "b": {"type": "string"}}});
        assert_eq!(without(&schema, json!({"a": null, "b": null})), json!({"a": null}));
    }
}
