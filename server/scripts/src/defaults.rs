//! Defaults of parameters: the keyword `default` of their schemas.

use codecall_base::schema;
use serde_json::{Map, Value};

/// How deep objects in objects get defaults.
const MAX_DEPTH: usize = 16;

/// Adds the defaults of properties that are left out, in objects that are there. `null` is not left out.
pub fn with_defaults(value: &mut Value, schema: &Value) {
    fill(value, schema, MAX_DEPTH);
}

fn fill(value: &mut Value, schema: &Value, depth: usize) {
    if depth == 0 {
        return;
    }
    if let (Some(items), Value::Array(values)) = (schema.get("items"), &mut *value) {
        values.iter_mut().for_each(|value| fill(value, items, depth - 1));
        return;
    }
    let (Some(properties), Value::Object(members)) = (properties(schema), value) else { return };
    for (name, schema) in properties {
        match (members.get_mut(name), schema.get("default")) {
            (Some(member), _) => fill(member, schema, depth - 1),
            (None, Some(default)) => drop(members.insert(name.clone(), default.clone())),
            (None, None) => {}
        }
    }
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

/// Checks that each default fits the schema that it belongs to.
///
/// # Errors
/// One does not, by the path of its property.
pub fn defaults_fit(schema: &Value) -> Result<(), String> {
    check(schema, "", MAX_DEPTH)
}

fn check(schema: &Value, path: &str, depth: usize) -> Result<(), String> {
    if depth == 0 {
        return Ok(());
    }
    if let Some(default) = schema.get("default").filter(|_| !path.is_empty()) {
        // A reference cannot be resolved here, and is checked when the tool is called.
        let is_local = !schema.to_string().contains("\"$ref\"");
        if is_local && schema::compile(schema).is_ok_and(|own| !own.fits(default)) {
            return Err(format!("the default of '{path}' does not fit its own schema"));
        }
    }
    if let Some(items) = schema.get("items") {
        check(items, &format!("{path}[]"), depth - 1)?;
    }
    for (name, property) in properties(schema).into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        check(property, &path, depth - 1)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_left_out_gets_its_default() {
        let schema = json!({"properties": {
            "units": {"default": "celsius"},
            "options": {"properties": {"deep": {"default": true}}},
            "rows": {"items": {"properties": {"n": {"default": 1}}}}
        }});
        for (given, expected) in [
            (json!({}), json!({"units": "celsius"})),
            (json!({"units": null}), json!({"units": null})),
            (json!({"options": {}, "units": "x"}), json!({"options": {"deep": true}, "units": "x"})),
            (json!({"rows": [{}, {"n": 2}], "units": ""}), json!({"rows": [{"n": 1}, {"n": 2}], "units": ""})),
        ] {
            let mut value = given.clone();
            with_defaults(&mut value, &schema);
            assert_eq!(value, expected, "{given}");
        }
    }

    #[test]
    fn a_default_fits_its_schema() {
        assert_eq!(defaults_fit(&json!({"properties": {"a": {"type": "string", "default": "x"}}})), Ok(()));
        let nested = json!({"properties": {"a": {"properties": {"b": {"enum": [1], "default": 2}}}}});
        assert_eq!(defaults_fit(&nested), Err("the default of 'a.b' does not fit its own schema".into()));
    }
}
