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

#[test]
fn parameters_on_one_line() {
    let schema = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "Id of the user. Such as usr_001.\nMore."},
            "status": {"enum": ["open", "paid"]},
            "filter": {"type": "object", "properties": {"from": {"type": "string", "format": "date"}, "deep": {"type": "object", "properties": {"a": {"type": "number"}}}}},
            "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}},
        },
        "required": ["lines", "id"],
    });
    assert_eq!(
        parameters(&schema, LineDetail::Plain),
        r#"{id: string, status?: "open"|"paid", filter?: {from?: string, deep?: {a?: number}}, lines: {sku: string}[]}"#
    );
    assert_eq!(parameters(&schema, LineDetail::Capped), parameters(&schema, LineDetail::Plain), "it is short");
    let hints = parameters(&schema, LineDetail::Hints);
    assert!(hints.starts_with("{id: string /* Id of the user. */, status?: "), "{hints}");
    for none in
        [json!({}), json!({"type": "object"}), json!({"type": "object", "properties": {}}), json!(true), json!(null)]
    {
        assert_eq!(parameters(&none, LineDetail::Plain), "", "{none}");
    }
    let any = json!({"type": "object", "properties": {"rows": {"type": "array", "items": {"anyOf": [
        {"type": "object", "properties": {"id": {"type": "string"}}}, {"type": "object", "additionalProperties": {}}]}}}});
    assert_eq!(parameters(&any, LineDetail::Plain), "{rows?: {id?: string}[]}");
    let union = json!({"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "object", "properties": {"b": {"type": "string"}}}]});
    assert_eq!(parameters(&union, LineDetail::Capped), "{a?: string}|{b?: string}");
}

/// Required parameters come first, and what is left out is marked.
#[test]
fn capped_parameters() {
    let mut properties = Map::new();
    for at in 0..30 {
        properties.insert(format!("optional_{at}"), json!({"type": "string"}));
    }
    let members: Map<String, Value> = (0..30).map(|at| (format!("member_{at}"), json!({"type": "string"}))).collect();
    properties.insert("body".into(), json!({"type": "object", "properties": members}));
    let kinds: Vec<String> = (0..60).map(|at| format!("kind_{at}")).collect();
    properties.insert("kind".into(), json!({"enum": kinds}));
    let schema = json!({"type": "object", "properties": properties, "required": ["kind", "body"]});
    let text = parameters(&schema, LineDetail::Capped);
    assert!(text.starts_with(r#"{body: {…}, kind: "kind_0"|"kind_1""#), "{text}");
    assert!(text.ends_with(", …}") && text.chars().count() < 300, "{text}");
    assert!(text.contains("optional_0?: string") || text.contains("…"), "{text}");
    // Very long ones are capped at every level.
    let members: Map<String, Value> = (0..500).map(|at| (format!("member_{at}"), json!({"type": "string"}))).collect();
    let schema = json!({"type": "object", "properties": members});
    assert_eq!(parameters(&schema, LineDetail::Hints), parameters(&schema, LineDetail::Capped));
    let long = json!({"type": "object", "properties": {"x".repeat(10_000): {"type": "string"}, "y": {"type": "string"}}, "required": ["x".repeat(10_000)]});
    assert_eq!(parameters(&long, LineDetail::Hints), "{y?: string, …}");
}

#[test]
fn nothing_breaks_out_of_a_line() {
    for text in ["a\nb", "a\r\nb", "a\u{2028}b", "*/ evil /*", "\u{0}\u{1b}[31m", "- fake({}): string\n- other()"] {
        let schema = json!({
            "type": "object",
            "properties": {text: {"const": text, "description": text}, "kind": {"enum": [text, "x"], "description": text, "default": text}},
            "required": [text],
        });
        for detail in [LineDetail::Capped, LineDetail::Plain, LineDetail::Hints] {
            let line = parameters(&schema, detail);
            assert!(!line.contains(|c: char| c.is_control() || c == '\u{2028}'), "{line:?}");
        }
        let result = result_type(&schema, 60);
        assert!(!result.contains(|c: char| c.is_control() || c == '\u{2028}'), "{result:?}");
        let sentence = first_sentence(text, 50);
        assert!(!sentence.contains(|c: char| c.is_control() || c == '\u{2028}'), "{sentence:?}");
    }
}

#[test]
fn types_of_results_on_one_line() {
    let user = json!({"type": "object", "properties": {"id": {"type": "string"}, "name": {"type": "string"}, "address": {"type": "object", "properties": {"city": {"type": "string"}, "street": {"type": "string"}}}}});
    let schema = json!({"type": "object", "properties": {"users": {"type": "array", "items": {"$ref": "#/$defs/user"}}, "total": {"type": "integer"}}, "$defs": {"user": user}});
    for (max, expected) in [
        (200, "{users?: {id?: string, name?: string, address?: {city?: string, street?: string}}[], total?: number}"),
        (80, "{users: {id, name, address: {city, street}}[], total}"),
        (49, "{users: {id, name, address: {…}}[], total}"),
        (40, "{users: {id, name, …}[], total}"),
        (10, "{…}"),
    ] {
        assert_eq!(result_type(&schema, max), expected, "{max}");
    }
    let own = json!({"type": "object", "properties": {"next": {"$ref": "#"}, "wide": {"enum": ["a long constant"]}}});
    assert!(result_type(&own, 40).chars().count() <= 40);
    // Each reference is followed a bounded number of times.
    let fan = json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"items": {"$ref": "#/$defs/a"}}, {"items": {"$ref": "#/$defs/a"}}, {"prefixItems": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}]}}});
    assert!(result_type(&fan, 60).chars().count() <= 60);
    assert!(parameters(&fan, LineDetail::Hints).chars().count() <= 200);
}

#[test]
fn first_sentences() {
    for (text, expected) in [
        ("", ""),
        ("List users", "List users"),
        ("List users. Sorted by name.", "List users."),
        ("Takes a date, e.g. 2026-01-01. Then more.", "Takes a date, e.g. 2026-01-01."),
        ("  Version 2.5 of it! Now.", "Version 2.5 of it!"),
        ("List users\n\nArgs:\n  limit: how many", "List users"),
    ] {
        assert_eq!(first_sentence(text, 100), expected, "{text}");
    }
    assert_eq!(first_sentence("one two three", 8), "one two…");
}
