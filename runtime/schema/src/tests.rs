use super::*;
use serde_json::{Map, json};

fn schema(schema: Value) -> Schema {
    Schema::new(&schema).expect("usable")
}

#[test]
fn values_are_checked() {
    let schema =
        schema(json!({"properties": {"id": {"type": "integer"}, "s": {"pattern": "^a+$"}}, "required": ["id"]}));
    assert!(schema.fits(&json!({"id": 1, "s": "aaa"})));
    for wrong in [json!({}), json!({"id": "x"}), json!({"id": 1, "s": "b"})] {
        match schema.check(&wrong) {
            Err(CheckError::Errors(errors)) => assert_eq!(errors.len(), 1, "{wrong}"),
            Err(CheckError::TooComplex) | Ok(()) => panic!("{wrong}"),
        }
    }
}

/// Recursive schemas check values that are not too large, and plain schemas check large values.
#[test]
fn common_schemas_are_checked() {
    let tree = schema(json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["name"],
    }));
    let good = (0..60).fold(json!({"name": "x"}), |inner, _| json!({"name": "x", "children": [inner]}));
    let bad = (0..50).fold(json!({"nam": "x"}), |inner, _| json!({"name": "x", "children": [inner]}));
    assert!(tree.fits(&good) && !tree.fits(&bad));
    let rows = schema(json!({"properties": {"rows": {"items": {
        "properties": {"id": {"type": "integer"}, "name": {"type": "string", "pattern": "^[a-z0-9 ]*$"}},
        "required": ["id", "name"], "additionalProperties": false,
    }}}}));
    let mut value =
        json!({"rows": (0..50_000).map(|at| json!({"id": at, "name": format!("row {at}")})).collect::<Vec<_>>()});
    assert!(rows.fits(&value));
    value["rows"][49_999]["id"] = json!("x");
    assert!(!rows.fits(&value));
    let file = schema(json!({"properties": {"data": {"pattern": "^[A-Za-z0-9+/]*={0,2}$"}}}));
    assert!(file.fits(&json!({"data": "QUJD".repeat(500_000)})));
    let named = schema(json!({
        "$id": "https://example.com/a.json",
        "$defs": {"node": {"$anchor": "node", "type": "integer"}, "other": {"$id": "b.json", "$defs": {"x": {"type": "string"}}, "$ref": "#/$defs/x"}},
        "properties": {"a": {"$ref": "#node"}, "b": {"$ref": "b.json"}, "c": {"$ref": "#/$defs/node"}},
    }));
    assert!(named.fits(&json!({"a": 1, "b": "x", "c": 3})));
    assert!(!named.fits(&json!({"a": "x"})) && !named.fits(&json!({"b": 1})) && !named.fits(&json!({"c": "x"})));
}

/// A pattern of megabytes is not compiled: that would take seconds and hundreds of megabytes.
#[test]
fn too_long_patterns_are_removed() {
    let long = |pattern: String| json!({"properties": {"s": {"pattern": pattern}, "id": {"type": "integer"}}});
    let began = cpu_time::ThreadTime::now();
    let checked = schema(long("(a|b)*".repeat(500_000)));
    assert!(checked.fits(&json!({"s": "c", "id": 1})) && !checked.fits(&json!({"id": "x"})));
    let many = (0..2_000).map(|at| (format!("p{at}"), json!({"pattern": format!("{}{at}", "(a|b)*".repeat(100))})));
    let many = schema(json!({"properties": many.collect::<Map<_, _>>()}));
    assert!(!many.fits(&json!({"p0": "c"})) && many.fits(&json!({"p1999": "c"})));
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(schema(long("a{3}|".repeat(5_000))).fits(&json!({"s": ""})));
}

/// Patterns that need more than linear time are removed; the rest of the schema is checked.
#[test]
fn patterns_that_are_not_linear_are_removed() {
    let schema = schema(json!({
        "properties": {"s": {"type": "string", "pattern": "^(?=.*b)a"}, "pattern": {"type": "integer"}},
        "patternProperties": {"^(?!x)": {}},
        "additionalProperties": false,
        "enum": [{"s": "a"}, {"pattern": "(?=x)"}, {"pattern": 1}, {"s": 1}],
    }));
    assert!(schema.fits(&json!({"s": "a"})));
    assert!(!schema.fits(&json!({"s": 1})) && !schema.fits(&json!({"pattern": "(?=x)"})));
    assert!(schema.fits(&json!({"pattern": 1})));
    assert!(!schema.fits(&json!({"s": "b"})), "not in the list");
}

#[test]
fn checks_that_take_too_long_are_refused() {
    let mut defs = json!({"d0": {}});
    for at in 1..=44 {
        let next = json!({"$ref": format!("#/$defs/d{}", at - 1)});
        defs[format!("d{at}")] = json!({"allOf": [next, next]});
    }
    assert_eq!(Schema::new(&json!({"$defs": defs, "$ref": "#/$defs/d44"})).err(), Some(SchemaError::TooComplex));
    let twice = json!({"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]});
    let nested = (0..60).fold(json!({}), |inner, _| json!({"a": inner}));
    assert!(matches!(schema(twice).check(&nested), Err(CheckError::TooComplex)));
    for recursive in [json!({"$ref": "#"}), json!({"anyOf": [{"$ref": "#"}, {}]})] {
        let began = std::time::Instant::now();
        let checked = Schema::new(&recursive).map(|schema| schema.fits(&json!({})));
        assert_ne!(checked, Ok(true), "{recursive}");
        assert!(began.elapsed() < std::time::Duration::from_secs(2));
    }
    assert!(matches!(Schema::new(&json!({"type": "nonsense"})), Err(SchemaError::Invalid(_))));
}

/// A check at the maximum depth does not overflow the stack of a tokio thread.
#[test]
fn depth_is_bounded() {
    for length in [50, 100, 200, 280, 290, 299, 320, 5_000] {
        let mut defs = json!({"d0": {"type": "object"}});
        for at in 1..=length {
            defs[format!("d{at}")] = json!({"$ref": format!("#/$defs/d{}", at - 1)});
        }
        let chain = json!({"$defs": defs, "$ref": format!("#/$defs/d{length}")});
        let thread = std::thread::Builder::new().stack_size(2 << 20);
        let checked =
            thread.spawn(move || Schema::new(&chain).is_ok_and(|schema| schema.fits(&json!({})))).expect("starts");
        assert_eq!(checked.join().expect("ends"), length < MAX_CHAIN, "{length}");
    }
}

const MAX_CHAIN: usize = 300;

#[test]
fn a_reference_that_leads_nowhere_is_not_checked() {
    for reference in [
        "#/$defs/Absent",
        "#Absent",
        "#/components/schemas/Pet",
        "https://example.com/schema.json",
        "other.json#/x",
        "#/properties/%zz",
        "http://json-schema.org/draft-07/schema#",
    ] {
        let schema = json!({
            "type": "object", "required": ["b"],
            "properties": {"a": {"$ref": reference}, "b": {"type": "integer"}, "default": {"items": {"$ref": reference}}},
            "$defs": {"Unused": {"$ref": reference}},
        });
        let schema = Schema::new(&schema).unwrap_or_else(|error| panic!("{reference}: {error}"));
        assert!(schema.fits(&json!({"a": [1], "b": 1, "default": ["x"]})), "{reference}");
        assert!(!schema.fits(&json!({"a": [1], "b": "x"})), "{reference}: the rest is checked");
    }
    let schema = json!({"properties": {"a": {"const": {"$ref": "#/absent"}}}});
    assert!(!Schema::new(&schema).expect("a schema").fits(&json!({"a": 1})), "data is no reference");
    let schema = json!({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}});
    assert!(!Schema::new(&schema).expect("a schema").fits(&json!({"a": 1})));
}
