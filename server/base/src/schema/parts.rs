//! Which keywords of a schema hold schemas.

/// What is the value of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A schema, or a list of schemas.
    Schema,
    /// A list of schemas.
    List,
    /// An object whose members are schemas.
    Map,
}

/// What a keyword holds; absent: no schema, or none that anybody knows.
pub fn kind(keyword: &str) -> Option<Kind> {
    match keyword {
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Some(Kind::List),
        "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "$defs" | "definitions" => {
            Some(Kind::Map)
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
        | "contentSchema" => Some(Kind::Schema),
        _ => None,
    }
}

/// Whether the value of a keyword is data, whatever it looks like.
pub fn is_data(keyword: &str) -> bool {
    matches!(keyword, "const" | "enum" | "default" | "examples" | "example" | "required" | "dependentRequired")
}
