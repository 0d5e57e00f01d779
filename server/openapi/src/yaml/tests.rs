use super::*;
use serde_json::json;

/// Plain scalars and their values by the core schema of YAML 1.2. `"!"` stands for one that JSON does not have. The values
/// are those of npm `yaml` 2.9.1, and of ruamel.yaml 0.19.1 but for `0b11`, `1_000`, `1_0.5`, `1_`, dates, `=` and `<<`, which
/// it reads as YAML 1.1 does, and for `.inf` and its like. PyYAML 6.0.4 reads YAML 1.1: there also `0123`, `08`, `1e3`, `0o14`,
/// `1:30`, `yes`, `no`, `on`, `off`, `-.5`, `+.5` and dates are others.
fn scalars() -> Vec<(&'static str, Value)> {
    let numbers = [
        ("0123", json!(123)),
        ("08", json!(8)),
        ("0", json!(0)),
        ("-0", json!(0)),
        ("+5", json!(5)),
        ("-12", json!(-12)),
        ("007", json!(7)),
        ("1e3", json!(1000.0)),
        ("1E+3", json!(1000.0)),
        ("12e03", json!(12000.0)),
        ("1.5e-2", json!(0.015)),
        ("1.10", json!(1.1)),
        ("1.", json!(1.0)),
        ("0.0", json!(0.0)),
        (".5", json!(0.5)),
        ("-.5", json!(-0.5)),
        ("+.5", json!(0.5)),
        ("0o14", json!(12)),
        ("0x1F", json!(31)),
        ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
        ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
        ("0123456789012345678901", json!(123_456_789_012_345_678_901.0)),
        ("0xffffffffffffffffff", json!(4_722_366_482_869_645_213_695.0)),
    ];
    let texts = [
        ".",
        "+",
        ".e5",
        "e5",
        "1e",
        "1e+",
        "0.1e",
        "0O14",
        "0o8",
        "0xg",
        "0x",
        "0o",
        "0b11",
        "1_000",
        "1_0.5",
        "_1",
        "1_",
        "1:30",
        "190:20:30",
        "yes",
        "Yes",
        "no",
        "NO",
        "on",
        "off",
        "y",
        "n",
        "tRUE",
        "nULL",
        "2020-01-01",
        "2020-01-01T00:00:00Z",
        "12:30",
        "1.2.3",
        "v1",
        ".Nan",
        "inf",
        "NaN",
        "Infinity",
        "=",
        "<<",
        "1,000",
        "--1",
        "+-1",
        "1-2",
        "١",
        "NO_VALUE",
        "1.0.0-beta",
    ];
    let mut all: Vec<(&str, Value)> = numbers.into();
    all.extend(texts.map(|text| (text, text.into())));
    all.extend(["true", "True", "TRUE"].map(|text| (text, true.into())));
    all.extend(["false", "False", "FALSE"].map(|text| (text, false.into())));
    all.extend(["~", "null", "Null", "NULL", ""].map(|text| (text, Value::Null)));
    all.extend([".inf", "-.inf", "+.INF", ".nan", ".NaN", "1e400", "-1e400"].map(|text| (text, "!".into())));
    all
}

/// Reads a text whose first problems, if there are any, are the lost numbers.
fn read(text: &str) -> (Value, Vec<String>) {
    convert(text).unwrap_or_else(|failure| panic!("{failure:?}: {text}"))
}

/// Reads a scalar at a place of a schema.
fn at(schema: &str, key: &str, written: &str) -> Value {
    let text = format!("openapi: 3.1.0\ncomponents:\n  schemas:\n    S:\n{schema}      {key}: {written}\n");
    read(&text).0["components"]["schemas"]["S"].get(key).cloned().unwrap_or_else(|| "!".into())
}

#[test]
fn without_a_type_the_core_schema_decides() {
    for (written, value) in scalars() {
        for key in ["default", "example", "const", "x-any"] {
            assert_eq!(at("", key, written), value, "{key}: {written}");
        }
        let list = at("", "enum", &format!("[a, {written}]"));
        let expected = match (written, &value) {
            // A comma separates items.
            ("1,000", _) => json!(["a", 1, 0]),
            ("", _) => json!(["a"]),
            (_, value) if *value == "!" => json!(["a"]),
            (_, value) => json!(["a", value]),
        };
        assert_eq!(list, expected, "enum: [a, {written}]");
        for quoted in [format!("'{written}'"), format!("\"{written}\""), format!("!!str {written}")] {
            assert_eq!(at("", "default", &quoted), json!(written), "{quoted}");
        }
    }
}

/// A schema of strings, in the ways in which descriptions write it.
const STRINGS: [&str; 6] = [
    "      type: string\n",
    "      type: [string]\n",
    "      $ref: '#/components/schemas/T'\n    T:\n      type: string\n    S:\n      $ref: '#/components/schemas/T'\n",
    "      {}\n    T: {type: string}\n    S:\n      allOf: [{$ref: '#/components/schemas/T'}]\n",
    "      anyOf: [{type: string, format: date}, {type: string, maxLength: 3}]\n",
    "      type: String\n",
];

#[test]
fn values_of_strings_stay_as_they_are_written() {
    for schema in STRINGS.iter().filter(|schema| !schema.contains("    S:\n")) {
        for (written, value) in scalars() {
            let is_null = value.is_null() && written != "~";
            for key in ["const", "default", "example"] {
                let expected =
                    if written.is_empty() || is_null && key != "const" { Value::Null } else { written.into() };
                assert_eq!(at(schema, key, written), expected, "{schema} {key}: {written}");
            }
            let expected = if written.is_empty() { Value::Null } else { written.into() };
            for (key, list) in
                [("enum", format!("\n        - {written}")), ("examples", format!("\n        - {written}"))]
            {
                let expected = if key == "examples" && is_null { Value::Null } else { expected.clone() };
                assert_eq!(at(schema, key, &list), json!([expected]), "{schema} {key}: {list}");
            }
        }
    }
    // Where the type is found by a reference.
    for (written, value) in scalars().into_iter().filter(|(_, value)| !value.is_null()) {
        let text = format!(
            "components:\n  schemas:\n    T: {{type: string, nullable: true}}\n    S:\n      allOf: [{{$ref: '#/components/schemas/T'}}]\n      default: {written}\n  parameters:\n    P: {{name: p, in: query, schema: {{$ref: '#/components/schemas/S'}}}}\n    Q:\n      schema: {{$ref: '#/components/schemas/S'}}\n      example: {written}\n"
        );
        let components = read(&text).0["components"].clone();
        assert_eq!(components["schemas"]["S"]["default"], json!(written), "{value}");
        assert_eq!(components["parameters"]["Q"]["example"], json!(written), "{value}");
    }
}

#[test]
fn values_of_other_types() {
    for (schema, key, written, expected) in [
        ("      type: integer\n", "default", "0123", json!(123)),
        ("      type: integer\n", "default", "1_000", json!(1000)),
        ("      type: integer\n", "default", "0o14", json!(12)),
        ("      type: number\n", "default", "1_0.5", json!(10.5)),
        ("      type: integer\n", "default", "v_1", json!("v_1")),
        ("      type: integer\n", "enum", "[1, 2_000, 08]", json!([1, 2000, 8])),
        ("      type: boolean\n", "default", "yes", json!(true)),
        ("      type: boolean\n", "default", "Off", json!(false)),
        ("      type: [string, integer]\n", "default", "0123", json!(123)),
        ("      type: [string, integer]\n", "default", "0x", json!("0x")),
        ("      type: [string, 'null']\n", "enum", "[a, null, ~]", json!(["a", null, null])),
        ("      type: [string, null]\n", "enum", "[a, null]", json!(["a", null])),
        ("      type: string\n      nullable: true\n", "enum", "[a, null, 0123]", json!(["a", null, "0123"])),
        ("      type: string\n      nullable: yes\n", "default", "~", json!(null)),
        ("      type: number\n", "maximum", "1_000", json!(1000)),
        ("      type: number\n", "maximum", ".inf", json!("!")),
        ("      type: number\n", "enum", "[1, .nan, 2]", json!([1, 2])),
        (
            "      type: array\n      items: {type: string}\n",
            "default",
            "[0123, no, 1.10]",
            json!(["0123", "no", "1.10"]),
        ),
        (
            "      type: object\n      properties: {zip: {type: string}, n: {type: integer}}\n",
            "example",
            "{zip: 01234, n: 012, other: 012, in: no, required: no}",
            json!({"zip": "01234", "n": 12, "other": 12, "in": "no", "required": "no"}),
        ),
        ("      type: object\n", "required", "[no, 0123, on]", json!(["no", "0123", "on"])),
    ] {
        assert_eq!(at(schema, key, written), expected, "{schema}{key}: {written}");
    }
}

/// Keys and texts of a description, in which no scalar is a number.
#[test]
fn texts_and_keys_stay_as_they_are_written() {
    for (written, _) in scalars().into_iter().filter(|(written, _)| !["", "<<", "~"].contains(written)) {
        let text = format!(
            "info: {{title: '', version: x}}\npaths:\n  /x:\n    get:\n      operationId: {written}\n      tags:\n        - {written}\n      parameters:\n        - name: {written}\n      responses:\n        {written}:\n          description: {written}\n        default: {{description: d}}\nservers:\n  - url: u\n    variables:\n      {written}:\n        default: {written}\n        enum:\n          - {written}\n"
        );
        let (value, problems) = read(&text);
        let get = &value["paths"]["/x"]["get"];
        let expected = json!({
            "operationId": written, "tags": [written], "parameters": [{"name": written}],
            "responses": {written: {"description": written}, "default": {"description": "d"}},
        });
        assert_eq!((get, problems.is_empty()), (&expected, true), "{written}");
        assert_eq!(
            value["servers"][0]["variables"],
            json!({written: {"default": written, "enum": [written]}}),
            "{written}"
        );
        let info = read(&format!("info:\n  version: {written}\n  title: {written}\n")).0;
        assert_eq!(info, json!({"info": {"version": written, "title": written}}), "{written}");
    }
    let statuses = read("responses:\n  200: {}\n  0200: {}\n  2XX: {}\n  '404': {}\n  default: {}\n  5e2: {}\n").0;
    assert_eq!(statuses, json!({"responses": {"200": {}, "0200": {}, "2XX": {}, "404": {}, "default": {}, "5e2": {}}}));
}

#[test]
fn truth_values_of_yaml_1_1() {
    for (written, expected) in [
        ("yes", true),
        ("On", true),
        ("NO", false),
        ("off", false),
        ("true", true),
        ("'true'", true),
        ("\"False\"", false),
    ] {
        for key in ["required", "deprecated", "nullable", "explode", "additionalProperties", "uniqueItems"] {
            assert_eq!(read(&format!("a:\n  {key}: {written}\n")).0, json!({"a": {key: expected}}), "{key}: {written}");
        }
    }
    // A property, which is called like a key.
    let properties =
        read("properties:\n  required: {type: boolean, default: no}\n  default: {type: string, default: no}\n").0;
    assert_eq!(properties["properties"]["required"]["default"], false);
    assert_eq!(properties["properties"]["default"]["default"], "no");
    let schema = read("additionalProperties: {type: string, enum: [0123]}\nexclusiveMinimum: 5\n").0;
    assert_eq!(schema, json!({"additionalProperties": {"type": "string", "enum": ["0123"]}, "exclusiveMinimum": 5}));
}

#[test]
fn what_is_lost_is_named() {
    for (text, value, problem) in [
        ("a: 1\nb: .inf\n", json!({"a": 1}), "line 2: JSON has no number '.inf'; it is left out"),
        ("a: [1, .nan]\n", json!({"a": [1]}), "line 1: JSON has no number '.nan'; it is left out"),
        ("a: 1\na: 2\n", json!({"a": 2}), "line 2: the key 'a' is there again; the last one counts"),
        ("a: *b\nc: 1\n", json!({"c": 1}), "line 1: an alias refers to nothing, or to what it is in; it is left out"),
        (
            "a: &x\n  b: *x\n",
            json!({"a": {}}),
            "line 2: an alias refers to nothing, or to what it is in; it is left out",
        ),
        ("a: 1\n---\nb: 2\n", json!({"a": 1}), "line 2: only the first document is read"),
        ("a: 1\n---\nb: [\n", json!({"a": 1}), "line 2: only the first document is read"),
        ("a: 1\n? [b, c]\n: 2\n", json!({"a": 1}), "line 1: 1 members whose keys are no texts are left out"),
    ] {
        assert_eq!(read(text), (value, vec![problem.to_owned()]), "{text}");
    }
    let many = format!("a: [{}]", ".inf, ".repeat(2 * MAX_WARNINGS));
    assert_eq!(read(&many).1.len(), MAX_WARNINGS);
}

#[test]
fn tags_aliases_and_merges() {
    for (text, value) in [
        ("!!int 3", json!(3)),
        ("!!int '3'", json!(3)),
        ("!!float 3", json!(3)),
        ("!!bool yes", json!(true)),
        ("!!null x", json!(null)),
        ("!!binary aGk=", json!("aGk=")),
        ("!!timestamp 2020-01-01", json!("2020-01-01")),
        ("! 12", json!("12")),
        ("!mine 12", json!(12)),
        ("!mine {b: 1}", json!({"b": 1})),
        ("!!set {b, c}", json!({"b": null, "c": null})),
        ("|\n  1\n", json!("1\n")),
        (">-\n  1\n", json!("1")),
    ] {
        assert_eq!(read(&format!("a: {text}\n")).0["a"], value, "{text}");
    }
    let merged =
        read("a: &a {x: 1, y: 1}\nb: &b {<<: *a, y: 2, z: 2}\nc: {<<: [*b, {z: 3, w: 3}], q: 4}\nd: {<<: 1}\n").0;
    assert_eq!(merged["b"], json!({"y": 2, "z": 2, "x": 1}));
    assert_eq!(merged["c"], json!({"q": 4, "y": 2, "z": 2, "x": 1, "w": 3}));
    assert_eq!(merged["d"], json!({"<<": 1}));
    // The same node at a string and at a number.
    let shared = read("a: {type: string, default: &d 0123}\nb: {type: integer, default: *d}\n").0;
    assert_eq!((&shared["a"]["default"], &shared["b"]["default"]), (&json!("0123"), &json!(123)));
}

/// Texts that would take exponential time or memory.
#[test]
fn hostile_texts() {
    let begin = std::time::Instant::now();
    let chain = |what: &dyn Fn(usize) -> String, count: usize| (0..count).map(what).collect::<String>();
    let before = |n: usize| n.saturating_sub(1);
    // Merges of merges, lists of lists by aliases, a long text many times.
    let merges = chain(&|n| format!("k{n}: &k{n} {{<<: [*k{0}, *k{0}]}}\n", before(n)), 5_000);
    let keys = chain(&|n| format!("k{n}: &k{n} {{<<: *k{}, p{n}: 1}}\n", before(n)), 5_000);
    let nested = chain(&|n| format!("k{n}: &k{n} [*k{}]\n", before(n)), 5_000);
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a,".repeat(100_000));
    for (text, is_read) in [(&merges, true), (&keys, false), (&nested, false), (&long, false)] {
        let read = convert(text);
        assert!(read.is_ok() == is_read || text == &keys, "{}", &text[..60]);
    }
    // Many values whose type is far away.
    let all = chain(&|n| format!("    S{n}: {{$ref: '#/components/schemas/S{}', default: 0123}}\n", n + 1), 10_000);
    assert!(convert(&format!("components:\n  schemas:\n{all}")).is_ok());
    let properties = chain(&|n| format!("    p{n}: {{type: string}}\n"), 20_000);
    let example = chain(&|n| format!("    p{n}: 0123\n"), 20_000);
    let read = convert(&format!("S:\n  properties:\n{}  example:\n{example}", properties.replace("    p", "      p")));
    assert!(read.is_ok());
    assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
}
