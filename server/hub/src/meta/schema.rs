//! Input schemas of meta-tools, derived from the structs of their arguments: a field is a property, its doc
//! comment the description.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

/// Returns the schema of `T` in the part of JSON Schema that all MCP clients accept: subschemas are inline, and
/// there is neither `null` nor a format.
pub fn input_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let settings = settings.with_transform(RecursiveTransform(simplify));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // They describe the struct; the tool has a title and a description of its own.
    schema.remove("title");
    schema.remove("description");
    schema.to_value()
}

/// Removes what some clients refuse, and what says nothing.
fn simplify(schema: &mut Schema) {
    if schema.as_bool() != Some(false) {
        let schema = schema.ensure_object();
        // An optional argument is left out, not null.
        if let Some(Value::Array(types)) = schema.get_mut("type") {
            types.retain(|name| name != "null");
            if let [one] = types.as_slice() {
                let one = one.clone();
                schema.insert("type".into(), one);
            }
        }
        if let Some(Value::Array(values)) = schema.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        schema.retain(|key, value| match key.as_str() {
            // The width of a number in Rust: `uint64`.
            "format" => false,
            "additionalProperties" | "items" => *value != Value::Bool(true),
            "default" => !(value.is_null() || *value == Value::Bool(false) || *value == Value::Array(Vec::new())),
            _ => true,
        });
    }
}

/// Returns the schema of any JSON. Clients with strict checks warn of `{}` and of lists of types.
pub fn any_json() -> Value {
    let types = ["object", "array", "string", "number", "boolean", "null"];
    json!({"anyOf": types.map(|name| json!({"type": name}))})
}
