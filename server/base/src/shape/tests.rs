use super::*;
use serde_json::json;

fn of(values: &[Value]) -> String {
    let mut shape = Shape::default();
    for value in values {
        shape.merge(Shape::of(value));
        shape.limit();
    }
    let stored = serde_json::to_string(&shape).expect("JSON");
    assert_eq!(serde_json::from_str::<Shape>(&stored).expect("a shape"), shape, "it is stored");
    shape.to_type(2_000)
}

#[test]
fn types_of_one_value() {
    for (value, expected) in [
        (json!(null), "null"),
        (json!(1), "number"),
        (json!([]), "unknown[]"),
        (json!([1, null, "a"]), "Array<string | number | null>"),
        (json!([{"id": 1}, {"id": 2, "tag": "x"}]), "{ id: number; tag?: string }[]"),
        (json!({"a-b": [[true]], "$x": {}}), "{ $x: {}; \"a-b\": boolean[][] }"),
        (
            json!({"a": {"b": {"c": {"d": {"e": {"f": {"g": 1}}}}}}}),
            "{ a: { b: { c: { d: { e: { f: unknown } } } } } }",
        ),
    ] {
        assert_eq!(of(std::slice::from_ref(&value)), expected, "{value}");
    }
}

#[test]
fn several_values_make_unions_and_optional_properties() {
    let seen = [json!({"id": 1, "name": "a"}), json!({"id": "x", "more": null}), json!("not found")];
    assert_eq!(of(&seen), "{ id: string | number; more?: null; name?: string } | string");
    assert_eq!(of(&[json!([]), json!([{"a": 1}]), json!([])]), "{ a: number }[]");
}

#[test]
fn values_are_not_kept() {
    let people = json!({"ann@example.com": {"age": 1}, "bob@example.com": {"age": 2}});
    assert_eq!(of(&[people]), "Record<string, { age: number }>");
    assert_eq!(
        of(&[json!({"9d8c7b6a-0000-4000-8000-000000000000": 1, "total": 2})]),
        "{ total: number; [key: string]: number }"
    );
    assert_eq!(of(&[json!({"2024-01-31": 1})]), "Record<string, number>");
    let many: Map<String, Value> = (0..100).map(|at| (format!("k{at}"), json!(at))).collect();
    assert_eq!(of(&[Value::Object(many)]), "Record<string, number>");
    let one_by_one: Vec<Value> = (0..100).map(|at| json!({format!("key{at}"): "secret"})).collect();
    assert_eq!(of(&one_by_one), "Record<string, string>");
    let stored = serde_json::to_string(&Shape::of(&json!({"token": "hunter2", "rows": [["hunter3"]]}))).expect("JSON");
    assert!(!stored.contains("hunter"), "{stored}");
}

#[test]
fn texts_say_what_they_contain() {
    for (text, expected) in [
        ("hello", "string"),
        (r#"{"a": [1]}"#, "string /* JSON of { a: number[] } */"),
        (
            "[{'id': 1, 'name': 'it\\'s', 'ok': True, 'n': None}]",
            "string /* Python repr of { id: number; n: null; name: string; ok: boolean }[]; parseText(text).data reads it */",
        ),
        (
            "{'at': datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc), 'price': Decimal('1.5'), 't': (1, 2)}",
            "string /* Python repr of { at: string; price: string; t: number[] }; parseText(text).data reads it */",
        ),
        ("(see the notes.txt)", "string"),
        ("[not a list", "string"),
        ("{'a': 1", "string"),
        ("id,name\n1,a\n2,b\n", "string /* CSV with the columns id, name; parseText(text).data reads it */"),
        ("name;age\nAnn;30\nBob;31", "string /* CSV with the columns name, age; parseText(text).data reads it */"),
        ("id\tname\n1\ta\n2\tb\n", "string /* TSV with the columns id, name; parseText(text).data reads it */"),
        ("ann\tsmith\nbob\tjones", "string /* TSV; parseText(text).data reads it */"),
        (
            "| id | name |\n|---|:--|\n| 1 | a |",
            "string /* Markdown table with the columns id, name; parseText(text).data reads it */",
        ),
        (
            "{\"a\": 1}\n{\"a\": null}\n",
            "string /* JSON lines of { a: number | null }; parseText(text).data reads it */",
        ),
        (
            "+----+------+\n| id | name |\n+----+------+\n|  1 | Ann  |\n+----+------+",
            "string /* bordered table with the columns id, name; parseText(text).data reads it */",
        ),
        (
            "  PID CMD\n    1 init\n   20 sh",
            "string /* aligned table with the columns PID, CMD; parseText(text).data reads it */",
        ),
        (
            "Commit: a1\nAuthor: Ann\n\nCommit: b2\nAuthor: Bob",
            "string /* records with the columns Commit, Author; parseText(text).data reads it */",
        ),
        ("Dear Ann, hello\nYours, Bob", "string"),
        ("First, we go.\nThen, we stay.\nLast, we end.", "string"),
    ] {
        assert_eq!(of(&[json!({"text": text})]), format!("{{ text: {expected} }}"), "{text}");
    }
    let both = [json!({"t": "plain"}), json!({"t": "[1]"}), json!({"t": "a,b\n1,2"})];
    assert_eq!(
        of(&both),
        "{ t: string /* JSON of number[], or CSV with the columns a, b, or other text; parseText(text).data reads it */ }"
    );
    assert_eq!(of(&[json!(["[1]"])]), "Array<string /* JSON of number[] */>");
}

#[test]
fn shapes_are_limited() {
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    assert_eq!(of(&[deep]), "unknown[][][][][][]");
    let wide = |level: usize| {
        let mut value = json!(1);
        for _ in 0..level {
            value = (0..20)
                .map(|at| (format!("property{}", char::from(b'a' + at)), value.clone()))
                .collect::<Map<_, _>>()
                .into();
        }
        value
    };
    let shape = Shape::of(&wide(3));
    assert!(shape.parts() <= MAX_PARTS, "{} parts", shape.parts());
    assert!(shape.to_type(500).len() <= 500);
    let large = Value::from(vec![wide(2); 5_000]);
    let texts = ["[".repeat(60_000), "(".repeat(60_000), "{'a':".repeat(10_000)].map(|text| json!({ "text": text }));
    for value in std::iter::once(&large).chain(&texts) {
        assert!(Shape::of(value).to_type(2_000).len() <= 2_000);
    }
}
