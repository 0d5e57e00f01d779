use super::*;
use serde_json::json;

#[test]
fn types() {
    for (schema, expected) in [
        (json!(true), "unknown"),
        (json!(false), "never"),
        (json!({}), "unknown"),
        (json!({"type": "string"}), "string"),
        (json!({"type": "integer"}), "number"),
        (json!({"type": ["integer", "null"]}), "number | null"),
        (json!({"type": "string", "nullable": true}), "string | null"),
        (json!({"enum": ["a", 1, null]}), "\"a\" | 1 | null"),
        (json!({"type": "string", "enum": ["a", "b"], "nullable": true}), "\"a\" | \"b\" | null"),
        (json!({"const": "a\"b"}), "\"a\\\"b\""),
        (json!({"type": "array"}), "unknown[]"),
        (json!({"type": "array", "items": {"type": "string"}}), "string[]"),
        (json!({"items": {"type": ["string", "null"]}}), "Array<string | null>"),
        (
            json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}}),
            "Array<string | number>",
        ),
        (
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": false}),
            "[string, number]",
        ),
        (json!({"prefixItems": [{"type": "string"}], "items": {"type": "number"}}), "[string, ...number[]]"),
        (
            json!({"type": "array", "items": [{"type": "string"}, {"enum": [1, 2]}], "additionalItems": {"type": "null"}}),
            "[string, 1 | 2, ...null[]]",
        ),
        (json!({"type": "object"}), "Record<string, unknown>"),
        (json!({"type": "object", "additionalProperties": false}), "{}"),
        (json!({"type": "object", "additionalProperties": {"type": "number"}}), "Record<string, number>"),
        (
            json!({"type": "object", "patternProperties": {"^x": {"type": "string"}}, "additionalProperties": {"type": "number"}}),
            "Record<string, string | number>",
        ),
        (
            json!({"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "number"}}),
            "{ a?: string; [key: string]: number }",
        ),
        (
            json!({"properties": {"a-b": {"type": "string"}, "c": {"$ref": "#/$defs/c"}}, "required": ["c"], "$defs": {"c": {"type": "boolean"}}}),
            "{ \"a-b\"?: string; c: boolean }",
        ),
        (json!({"oneOf": [{"type": "string"}, {"type": "null"}, {"type": "string"}]}), "string | null"),
        (json!({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]}), "string[] | string"),
        (
            json!({"allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}]}),
            "{ a?: string } & { b?: string }",
        ),
        (json!({"type": "object", "allOf": [{"properties": {"a": {"type": "string"}}}]}), "{ a?: string }"),
        (json!({"allOf": [{"anyOf": [{"type": "string"}, {"type": "number"}]}, {"minimum": 3}]}), "string | number"),
        (json!({"allOf": [{"enum": [1, 2]}, {"type": "number"}]}), "(1 | 2) & number"),
        (
            json!({"properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            "{ a?: string }",
        ),
        (
            json!({"properties": {"a": {"type": "string"}}, "oneOf": [{"properties": {"b": {"const": 1}}}, {"properties": {"b": {"const": 2}}}]}),
            "{ a?: string } & ({ b?: 1 } | { b?: 2 })",
        ),
        (json!({"$ref": "other.json#/a"}), "unknown"),
        (json!({"$ref": "#/$defs/a%20b~1c", "$defs": {"a b/c": {"type": "null"}}}), "null"),
    ] {
        assert_eq!(type_of(&schema, &schema), expected, "{schema}");
    }
}

fn of(input: Value) -> String {
    signature("a:b", &input, None, None)
}

#[test]
fn comments() {
    let schema = json!({"type": "object", "required": ["id"], "properties": {
        "id": {"type": "string", "description": "Whose\n id", "format": "uuid"},
        "n": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
        "said": {"type": "integer", "description": "Defaults to 3", "default": 3},
        "size": {"type": "number", "exclusiveMinimum": 0},
        "safe": {"type": "integer", "maximum": 9_007_199_254_740_991_u64},
        "list": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 5},
        "code": {"type": "string", "pattern": "^[A-Z]{3}$"},
        "inner": {"type": "object", "description": "All of it", "properties": {"a": {"type": "boolean"}}},
        "long": {"type": "string", "description": "word ".repeat(60)},
    }});
    let long = format!("{}…", "word ".repeat(32).trim_end());
    assert_eq!(
        of(schema),
        format!(
            "callTool(\"a:b\", input: {{
  id: string; // Whose id (uuid)
  n?: number; // 1–100, default 10
  said?: number; // Defaults to 3
  size?: number; // > 0
  safe?: number;
  list?: string[]; // ≤ 5 items
  code?: string; // /^[A-Z]{{3}}$/
  // All of it
  inner?: {{
    a?: boolean;
  }};
  long?: string; // {long}
}}): Promise<unknown>"
        )
    );
}

#[test]
fn parts_that_are_used_twice_have_a_name() {
    let schema = json!({
        "type": "object",
        "properties": {
            "from": {"$ref": "#/$defs/geo-point"}, "to": {"$ref": "#/$defs/geo-point"},
            "one": {"$ref": "#/$defs/Once"}, "a": {"$ref": "#/$defs/Id"}, "b": {"$ref": "#/$defs/Id"},
        },
        "$defs": {
            "geo-point": {"type": "object", "properties": {"x": {"type": "number"}}, "description": "Where"},
            "Once": {"type": "object", "properties": {"y": {"type": "number"}}},
            "Id": {"type": "string"},
        },
    });
    let expected = "callTool(\"a:b\", input: {
  from?: GeoPoint; // Where
  to?: GeoPoint; // Where
  one?: {
    y?: number;
  };
  a?: string;
  b?: string;
}): Promise<unknown>
type GeoPoint = {
  x?: number;
};";
    assert_eq!(of(schema), expected);
}

#[test]
fn recursion() {
    let tree = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/definitions/Node"}},
        "definitions": {"Node": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/definitions/Node"}}}}},
    });
    let expected = "callTool(\"a:b\", input: {
  tree?: Node;
}): Promise<unknown>
type Node = {
  children?: Node[];
};";
    assert_eq!(of(tree), expected);
    let itself = json!({"type": "object", "properties": {"x": {"$ref": "#"}}});
    let expected = "callTool(\"a:b\", input: {
  x?: Input;
}): Promise<unknown>
type Input = {
  x?: Input;
};";
    assert_eq!(of(itself.clone()), expected);
    assert_eq!(type_of(&itself, &itself), "{ x?: { x?: object } }");
    // Two that lead to each other, and one that leads nowhere.
    let both = json!({
        "properties": {"a": {"$ref": "#/$defs/a"}, "c": {"$ref": "#/$defs/c"}},
        "$defs": {"a": {"properties": {"b": {"$ref": "#/$defs/b"}}}, "b": {"properties": {"a": {"$ref": "#/$defs/a"}}}, "c": {"$ref": "#/$defs/c"}},
    });
    let text = of(both);
    assert!(text.contains("type A = {\n  b?: {\n    a?: A;\n  };\n};"), "{text}");
    assert!(text.contains("type C = C;"), "{text}");
}

#[test]
fn size_and_depth_are_bounded() {
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "object", "properties": {"next": deep}, "description": "And on"});
    }
    assert!(of(deep).len() < 1_000);
    let mut arrays = json!({"type": "string"});
    for _ in 0..100 {
        arrays = json!({"type": "array", "items": arrays});
    }
    assert!(of(json!({"properties": {"a": arrays}})).len() < 1_000);
    let wide = |level: u32| {
        (0..level).fold(json!({"type": "string"}), |inner, _| {
            let rows: Map<String, Value> = (0..30).map(|n| (format!("property{n}"), inner.clone())).collect();
            json!({"type": "object", "properties": rows})
        })
    };
    assert!(of(wide(3)).len() <= MAX_SIGNATURE_BYTES, "{}", of(wide(3)).len());
    let rows: Map<String, Value> = (0..500).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    let text = of(json!({"type": "object", "properties": rows}));
    assert!(text.contains("// 400 more") && text.len() <= MAX_SIGNATURE_BYTES, "{text}");
}
