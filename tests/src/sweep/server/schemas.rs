//! Schemas that are expensive to check, each with a value.

use super::values::{Kind, Made, Maker, deep, keys};
use serde_json::{Map, Value, json};

macro_rules! schemas {
    ($($name:literal: $make:expr),* $(,)?) => {
        &[$(Maker {
            name: $name,
            kind: Kind::Schema,
            make: |bytes| {
                let make: fn(usize) -> (Value, Value) = $make;
                let (schema, value) = make(bytes);
                Made::Schema(schema, value)
            },
        }),*]
    };
}

/// All schemas.
pub static SCHEMAS: &[Maker] = schemas! {
    "properties": |bytes| (properties(bytes / 40, json!({"type": "integer"})), keys(bytes / 60, |at| format!("p{at}"))),
    "properties with texts": |bytes| (properties(bytes / 200, json!({"type": "string", "description": "words ".repeat(10), "default": "x"})), json!({})),
    "required": |bytes| (json!({"type": "object", "required": names(bytes / 10)}), json!({})),
    "one description": |bytes| (json!({"type": "object", "description": "a\n*/".repeat(bytes / 4), "properties": {"a": {"description": "*/ ".repeat(1000)}}}), json!({})),
    "one name": |bytes| (json!({"type": "object", "properties": {"\"'`*/".repeat(bytes / 5): {"type": "string"}}}), json!({})),
    "enum": |bytes| (json!({"type": "object", "properties": {"a": {"enum": names(bytes / 10)}}}), json!({"a": "none"})),
    "const": |bytes| (json!({"type": "object", "properties": {"a": {"const": "x".repeat(bytes)}}}), json!({"a": "none"})),
    "default": |bytes| (json!({"type": "object", "required": ["a"], "properties": {"a": {"default": keys(bytes / 20, |at| format!("k{at}"))}}}), json!({"a": 1})),
    "examples": |bytes| (json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "examples": names(bytes / 10)}}}), json!({"a": 1})),
    "one of": |bytes| (json!({"type": "object", "properties": {"a": {"oneOf": vec![json!({"type": "object", "properties": {"b": {"type": "string"}}}); bytes / 80]}}}), json!({"a": {"b": "c"}})),
    "one of for each": |bytes| (json!({"type": "object", "properties": {"a": {"items": {"oneOf": (0..2_000.min(bytes / 40)).map(|at| json!({"const": at})).collect::<Vec<_>>()}}}}), json!({"a": vec![1; bytes / 10]})),
    "any of for each": |bytes| (json!({"type": "object", "properties": {"a": {"items": {"anyOf": (0..200).map(|at| json!({"const": at})).collect::<Vec<_>>()}}}}), json!({"a": vec![-1; bytes / 10]})),
    "all of": |bytes| (json!({"allOf": vec![json!({"required": ["a"]}); bytes / 22]}), json!({"b": 1})),
    "doubled": |bytes| (doubled("allOf", 44), json!({"a": "x".repeat(bytes)})),
    "doubled by any of": |bytes| (doubled("anyOf", 44), json!({"a": "x".repeat(bytes)})),
    "doubled by one of": |bytes| (doubled("oneOf", 44), json!({"a": "x".repeat(bytes)})),
    "doubled properties": |bytes| (doubled_properties(40), json!({"a": "x".repeat(bytes)})),
    "circle": |bytes| (json!({"$defs": {"n": {"$ref": "#/$defs/m"}, "m": {"$ref": "#/$defs/n"}}, "type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}}), json!({"a": "x".repeat(bytes)})),
    "holds itself": |bytes| (json!({"$defs": {"n": {"type": ["object", "array", "string"], "properties": {"o": {"$ref": "#/$defs/n"}}, "items": {"$ref": "#/$defs/n"}}}, "properties": {"a": {"items": {"$ref": "#/$defs/n"}}}}), json!({"a": vec![deep(100); bytes / 5_000]})),
    "holds itself often": |_| (json!({"type": "object", "required": names(50), "properties": (0..50).map(|at| (format!("p{at}"), json!({"$ref": "#"}))).collect::<Map<_, _>>()}), json!({"p0": {"p1": {}}})),
    "references": |bytes| (references(bytes / 40), json!({"a": 1})),
    "types of one name": |bytes| (types_of_one_name(bytes / 80), json!({"a": {"id": 1}})),
    "reference of a long name": |bytes| (json!({"properties": {"a": {"$ref": format!("#/$defs/{}", "a~1%25".repeat(bytes / 6))}}}), json!({"a": 1})),
    "reference elsewhere": |bytes| (json!({"properties": {"a": {"$ref": format!("http://a/{}", "b".repeat(bytes))}}}), json!({"a": 1})),
    "deep": |bytes| (nested(60, bytes), json!({"a": 1})),
    "look ahead": |bytes| (json!({"properties": {"a": {"type": "string", "pattern": "(?=.*b)".repeat(50)}}}), json!({"a": "a".repeat(bytes)})),
    "quantifiers": |bytes| (json!({"properties": {"a": {"type": "string", "pattern": "^(((a+)+)+)+$"}}}), json!({"a": "a".repeat(bytes) + "b"})),
    "counts": |bytes| (json!({"properties": {"a": {"type": "string", "pattern": "((a{1,1000}){1,1000}){1,1000}"}}}), json!({"a": "a".repeat(bytes)})),
    "classes": |bytes| (json!({"properties": {"a": {"type": "string", "pattern": "[\\p{L}\\p{N}]{50}$"}}}), json!({"a": "я".repeat(bytes / 2)})),
    "a long pattern": |bytes| (json!({"properties": {"a": {"type": "string", "pattern": "(a|b)*".repeat(bytes / 6)}}}), json!({"a": "ab"})),
    "back reference": |bytes| (json!({"properties": {"a": {"type": "string", "pattern": "(a*)*\\1b"}}}), json!({"a": "a".repeat(bytes)})),
    "many patterns": |bytes| (json!({"properties": (0..bytes / 60).map(|at| (format!("p{at}"), json!({"type": "string", "pattern": format!("^[a-z]{{{}}}$", at % 50)}))).collect::<Map<_, _>>()}), json!({"p1": "x"})),
    "patterns of names": |bytes| (json!({"patternProperties": (0..100).map(|at| (format!("(x+x+)+{at}"), json!({"type": "string"}))).collect::<Map<_, _>>()}), keys(bytes / 40, |at| format!("{}{at}", "x".repeat(20)))),
    "names of properties": |bytes| (json!({"propertyNames": {"pattern": "^(a+)+$"}}), json!({"a".repeat(bytes) + "b": 1})),
    "unique": |bytes| (json!({"properties": {"a": {"uniqueItems": true}}}), json!({"a": (0..bytes / 10).collect::<Vec<_>>()})),
    "unique objects": |bytes| (json!({"properties": {"a": {"uniqueItems": true}}}), json!({"a": (0..bytes / 60).map(|at| json!({"a": 1, "b": [at]})).collect::<Vec<_>>()})),
    "contains": |bytes| (json!({"properties": {"a": {"contains": {"const": -1}, "minContains": 2}}}), json!({"a": vec![0; bytes / 10]})),
    "unevaluated": |bytes| (json!({"allOf": (0..100).map(|at| json!({"properties": {format!("p{at}"): {}}})).collect::<Vec<_>>(), "unevaluatedProperties": false}), keys(bytes / 40, |at| format!("k{at}"))),
    "dependent": |bytes| (json!({"dependentSchemas": (0..bytes / 200).map(|at| (format!("k{at}"), json!({"required": ["z"]}))).collect::<Map<_, _>>()}), keys(bytes / 60, |at| format!("k{at}"))),
    "large counts": |_| (json!({"type": "object", "required": ["a", "b", "c", "d"], "properties": {"a": {"type": "array", "minItems": 1e9, "items": {"type": "string", "minLength": 1_000_000_000}}, "b": {"type": "string", "minLength": 1_000_000_000_000_u64}, "c": {"type": "object", "minProperties": 1_000_000_000}, "d": {"type": "number", "multipleOf": 5e-324, "minimum": 1e308}}}), json!({"a": []})),
    "many wrong": |bytes| (json!({"properties": {"a": {"items": {"type": "string"}}}}), json!({"a": vec![1; bytes / 10]})),
    "wrong and long": |bytes| (json!({"properties": {"a": {"type": "integer"}}}), json!({"a": "x".repeat(bytes)})),
    "names that are wrong": |bytes| (json!({"additionalProperties": false}), keys(bytes / 40, |at| format!("k{at}"))),
    "formats": |bytes| (json!({"properties": {"a": {"type": "string", "format": "email"}, "b": {"type": "string", "format": "uri"}, "c": {"type": "string", "format": "date-time"}}}), json!({"a": "a@b.".repeat(bytes / 12), "b": "http://a/".repeat(bytes / 27), "c": "2020-".repeat(bytes / 15)})),
};

fn names(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("p{at}")).collect()
}

fn properties(count: usize, schema: Value) -> Value {
    let members: Map<String, Value> = (0..count).map(|at| (format!("p{at}"), schema.clone())).collect();
    json!({"type": "object", "properties": members})
}

/// Returns a schema that checks a value 2^`times` times.
fn doubled(keyword: &str, times: usize) -> Value {
    let mut schemas = Map::new();
    schemas.insert("d0".into(), json!({"type": "object"}));
    for at in 1..=times {
        let before = json!({"$ref": format!("#/$defs/d{}", at - 1)});
        schemas.insert(format!("d{at}"), json!({keyword: [before.clone(), before]}));
    }
    json!({"$defs": schemas, "$ref": format!("#/$defs/d{times}")})
}

/// Returns a type whose expanded text has 2^`times` parts.
fn doubled_properties(times: usize) -> Value {
    let mut schemas = Map::new();
    schemas.insert("d0".into(), json!({"type": "string"}));
    for at in 1..=times {
        let before = json!({"$ref": format!("#/$defs/d{}", at - 1)});
        schemas.insert(
            format!("d{at}"),
            json!({"type": "object", "required": ["a", "b"], "properties": {"a": before.clone(), "b": before}}),
        );
    }
    json!({"$defs": schemas, "type": "object", "required": ["a"], "properties": {"a": {"$ref": format!("#/$defs/d{times}")}}})
}

/// Returns a schema with a chain of references.
fn references(count: usize) -> Value {
    let link = |at: usize| (format!("d{at}"), json!({"$ref": format!("#/$defs/d{}", at + 1)}));
    let mut schemas: Map<String, Value> = (0..count).map(link).collect();
    schemas.insert(format!("d{count}"), json!({"type": "string"}));
    json!({"$defs": schemas, "properties": {"a": {"$ref": "#/$defs/d0"}}})
}

/// Returns types that are referred to twice each, and whose names all become the same TypeScript name.
fn types_of_one_name(count: usize) -> Value {
    let name = |at: usize| format!("a{}", format!("{at:b}").replace('0', "-").replace('1', "."));
    let types: Map<String, Value> = (0..count).map(|at| (name(at), json!({"properties": {"id": {}}}))).collect();
    let uses: Vec<Value> = (0..2 * count).map(|at| json!({"$ref": format!("#/$defs/{}", name(at / 2))})).collect();
    json!({"$defs": types, "properties": {"a": {"anyOf": uses}}})
}

/// Returns many properties with objects that are nested as deeply as JSON parsers accept.
fn nested(depth: usize, bytes: usize) -> Value {
    let inner = (0..depth).fold(json!({"type": "string"}), |inner, _| json!({"properties": {"o": inner}}));
    json!({"type": "object", "properties": (0..bytes / 1_500).map(|at| (format!("p{at}"), inner.clone())).collect::<Map<_, _>>()})
}
