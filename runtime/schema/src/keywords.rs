//! The keywords of JSON Schema whose values contain subschemas.

/// How the value of a keyword contains subschemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subschemas {
    /// A schema, or a list of schemas.
    Schema,
    /// A list of schemas.
    List,
    /// An object whose members are schemas.
    Map,
}

/// Returns how a keyword contains subschemas; `None` if it contains none or is unknown.
pub fn subschemas(keyword: &str) -> Option<Subschemas> {
    match keyword {
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Some(Subschemas::List),
        "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "$defs" | "definitions" => {
            Some(Subschemas::Map)
        }
        "not"
        | "if"
        | "then"
        | "else"
        | "items"
        | "additionalItems"
        | "contains"
        | "additionalProperties"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => Some(Subschemas::Schema),
        _ => None,
    }
}

/// Whether the value of a keyword is data, even if it looks like a schema.
pub fn is_data(keyword: &str) -> bool {
    matches!(keyword, "const" | "enum" | "default" | "examples" | "example" | "required" | "dependentRequired")
}
