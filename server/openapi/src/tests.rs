use super::*;
use codecall_base::schema::Schema;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use url::Url;

mod odd;

fn documents(description: Value) -> Documents {
    let url = Url::parse("https://api.example.com/openapi.json").expect("an address");
    Documents::new(url, description).expect("a description")
}

fn settings() -> Settings {
    Settings { app: "shop".into(), writes: true, ..Settings::default() }
}

fn api(description: Value) -> Api {
    describe(&documents(description), &settings()).expect("operations")
}

/// A description with one operation.
fn one(method: &str, path: &str, operation: Value) -> Value {
    json!({"openapi": "3.0.3", "servers": [{"url": "https://api.example.com/v1"}], "paths": {path: {method: operation}}})
}

fn only(description: Value) -> Operation {
    let mut api = api(description);
    assert_eq!((api.operations.len(), api.warnings.as_slice()), (1, [].as_slice()));
    api.operations.remove(0)
}

fn request(operation: &Operation, input: Value) -> Request {
    let Value::Object(input) = input else { panic!("an object") };
    operation.request(&input, &|_| None).expect("a request")
}

fn refused(operation: &Operation, input: Value) -> String {
    let Value::Object(input) = input else { panic!("an object") };
    operation.request(&input, &|_| None).expect_err("refused")
}

fn text(request: &Request) -> String {
    String::from_utf8(request.body.as_ref().expect("a body").1.clone()).expect("text")
}

fn accepts(schema: &Value, value: Value) -> bool {
    Schema::new(schema).unwrap_or_else(|error| panic!("{error}: {schema}")).fits(&value)
}

#[test]
fn versions() {
    let url = || Url::parse("file:///x.json").expect("an address");
    for (root, expected) in [
        (json!({"openapi": "3.0.0"}), None),
        (json!({"openapi": "3.1.1"}), None),
        (json!({"openapi": 3.1}), None),
        (json!({"openapi": "4.0"}), Some("version '4.0'")),
        (json!({"openapi": "2.0"}), Some("version '2.0'")),
        (json!({"swagger": "2.0"}), Some("Swagger 2.0")),
        (json!({}), Some("'openapi' is missing")),
    ] {
        match (Documents::new(url(), root).err(), expected) {
            (None, None) => {}
            (Some(problem), Some(expected)) => assert!(problem.contains(expected), "{problem}"),
            (problem, expected) => panic!("{problem:?} {expected:?}"),
        }
    }
    let nothing = describe(&documents(json!({"openapi": "3.1.0", "webhooks": {}})), &settings());
    assert_eq!(nothing.err().as_deref(), Some("the description has no operations"));
}

#[test]
fn an_operation_is_a_tool() {
    let operation = only(one(
        "get",
        "/users/{id}/orders",
        json!({
            "operationId": "orders/list", "summary": "List orders", "description": "Of one user.", "tags": ["orders"],
            "parameters": [
                {"name": "per_page", "in": "query", "schema": {"type": "integer", "minimum": 1}},
                {"name": "page", "in": "query", "schema": {"type": "integer"}},
                {"name": "id", "in": "path", "required": true, "description": "Whose", "schema": {"type": "integer"}},
                {"name": "id", "in": "query", "schema": {"type": "string"}},
                {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                {"name": "Accept", "in": "header", "schema": {"type": "string"}},
            ],
            "responses": {"200": {"content": {"text/csv": {}, "application/json": {"schema": {"type": "array", "items": {"type": "object"}}}}}},
        }),
    ));
    let tool = &operation.definition;
    assert_eq!(
        (tool.full_name().as_str(), tool.source, tool.title.as_deref()),
        ("shop:orders_list", "openapi", Some("List orders"))
    );
    assert_eq!(
        tool.description,
        "List orders\n\nOf one user.\n\nGET /users/{id}/orders. Paged: `page` is the page; the last one is shorter or empty, `per_page` is its size"
    );
    assert_eq!(
        tool.input_schema,
        json!({
            "type": "object",
            "properties": {
                "path_id": {"description": "Whose", "type": "integer"},
                "per_page": {"type": "integer", "minimum": 1},
                "page": {"type": "integer"},
                "query_id": {"type": "string"},
                "X-Trace": {"type": "string"},
            },
            "additionalProperties": false,
            "required": ["path_id"],
        })
    );
    assert_eq!(tool.output_schema, Some(json!({"type": "array", "items": {"type": "object"}})));
    assert_eq!(
        (tool.annotations["readOnlyHint"].clone(), tool.tags.as_slice()),
        (json!(true), ["orders".to_owned()].as_slice())
    );
    let request = request(&operation, json!({"path_id": 7, "page": 2, "query_id": "a b", "X-Trace": "t"}));
    assert_eq!(
        (request.method, request.url.as_str()),
        ("GET", "https://api.example.com/v1/users/7/orders?page=2&id=a%20b")
    );
    assert_eq!(
        request.headers,
        [
            ("accept".to_owned(), "application/json, text/csv;q=0.8, */*;q=0.5".to_owned()),
            ("x-trace".to_owned(), "t".to_owned())
        ]
    );
}

#[test]
fn parameters_of_all_places_and_styles() {
    let array = json!({"type": "array", "items": {"type": "string"}});
    let operation = only(one(
        "get",
        "/a/{simple}/b{label}/c{matrix}",
        json!({"parameters": [
            {"name": "simple", "in": "path", "required": true, "schema": array},
            {"name": "label", "in": "path", "style": "label", "explode": true, "schema": array},
            {"name": "matrix", "in": "path", "style": "matrix", "schema": array},
            {"name": "form", "in": "query", "schema": array},
            {"name": "joined", "in": "query", "explode": false, "schema": array},
            {"name": "pipes", "in": "query", "style": "pipeDelimited", "explode": false, "schema": array},
            {"name": "deep", "in": "query", "style": "deepObject", "schema": {"type": "object"}},
            {"name": "raw", "in": "query", "allowReserved": true, "schema": {"type": "string"}},
            {"name": "json", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
            {"name": "list", "in": "header", "schema": array},
            {"name": "session", "in": "cookie", "schema": {"type": "string"}},
        ]}),
    ));
    let sent = request(
        &operation,
        json!({
            "simple": ["x", "y/z"], "label": ["l", "m"], "matrix": ["n", "o"], "form": ["p", "q"], "joined": ["r", "s"],
            "pipes": ["t", "u"], "deep": {"k": 1}, "raw": "a/b", "json": {"j": [1]}, "list": ["v", "w"], "session": "s;1",
        }),
    );
    assert_eq!(
        sent.url.as_str(),
        "https://api.example.com/v1/a/x,y%2Fz/b.l.m/c;matrix=n,o?form=p&form=q&joined=r,s&pipes=t%7Cu&deep%5Bk%5D=1&raw=a/b&json=%7B%22j%22%3A%5B1%5D%7D"
    );
    assert_eq!(
        sent.headers[1..],
        [("list".to_owned(), "v,w".to_owned()), ("cookie".to_owned(), "session=s%3B1".to_owned())]
    );
}

#[test]
fn paths_cannot_be_left() {
    let operation = only(one("get", "/files/{name}.{kind}/x", json!({})));
    for (name, kind) in [("", "x"), (".", "."), (".", "%2e"), ("", "")] {
        let _ = refused_or_escaped(&operation, name, kind);
    }
    let single = only(one("get", "/files/{name}", json!({})));
    for name in ["..", "."] {
        assert!(refused(&single, json!({"name": name})).contains("must not be '.' or '..'"));
    }
    assert_eq!(request(&single, json!({"name": "../a?b#c\\"})).url.path(), "/v1/files/..%2Fa%3Fb%23c%5C");
    assert_eq!(request(&single, json!({"name": "%2e%2e"})).url.path(), "/v1/files/%252e%252e");
    assert!(refused(&single, json!({})).contains("'name' is a part of the path and is missing"));
    assert!(refused(&single, json!({"name": ""})).contains("must not be empty"));
    assert!(refused(&single, json!({"name": "x".repeat(100_000)})).contains("address"));
}

fn refused_or_escaped(operation: &Operation, name: &str, kind: &str) -> Option<String> {
    let Value::Object(input) = json!({"name": name, "kind": kind}) else { return None };
    let request = operation.request(&input, &|_| None).ok()?;
    assert!(request.url.path().starts_with("/v1/files/"), "{}", request.url);
    Some(request.url.to_string())
}

#[test]
fn bodies() {
    let body = |content: Value| only(one("post", "/x", json!({"requestBody": {"required": true, "content": content}})));
    let object = json!({"schema": {"type": "object", "properties": {"a": {"type": "string"}, "f": {"type": "string", "format": "binary"}, "n": {"type": "array", "items": {"type": "integer"}}, "o": {"type": "object"}}}});
    let json_body = body(json!({"text/plain": {}, "application/json": object}));
    assert_eq!(json_body.definition.input_schema["required"], json!(["body"]));
    let sent = request(&json_body, json!({"body": {"a": "é"}}));
    assert_eq!(
        (sent.body.as_ref().expect("a body").0.as_str(), text(&sent)),
        ("application/json", r#"{"a":"é"}"#.to_owned())
    );

    let mut encoded = object.clone();
    encoded["encoding"] = json!({"n": {"explode": false}, "o": {"style": "deepObject", "explode": true}});
    let form = body(json!({"application/x-www-form-urlencoded": encoded}));
    assert_eq!(
        text(&request(&form, json!({"body": {"a": "b c&", "n": [1, 2], "o": {"k": {"l": 1}}}}))),
        "a=b%20c%26&n=1,2&o%5Bk%5D%5Bl%5D=1"
    );
    let form = body(json!({"application/x-www-form-urlencoded": object}));
    assert_eq!(
        text(&request(&form, json!({"body": {"n": [1, 2], "o": {"k": 1}, "a": null}}))),
        "n=1&n=2&o=%7B%22k%22%3A1%7D"
    );

    // The schema of a form need not say that it is an object.
    for schema in [json!({"properties": {"a": {"type": "string"}}}), json!({}), json!(true)] {
        for media_type in ["application/x-www-form-urlencoded", "multipart/form-data"] {
            let form = body(json!({media_type: {"schema": schema}}));
            let input = &form.definition.input_schema;
            assert!(accepts(input, json!({"body": {"a": "x"}})) && !accepts(input, json!({"body": "a=x"})), "{input}");
        }
    }

    let multipart = body(json!({"multipart/form-data": object}));
    let file = &multipart.definition.input_schema;
    assert!(accepts(file, json!({"body": {"f": "text"}})) && accepts(file, json!({"body": {"f": {"base64": "AAE="}}})));
    let sent = request(
        &multipart,
        json!({"body": {"a": "x", "n": [1, 2], "o": {"k": 1}, "f": {"base64": "aGk=", "filename": "a\"\r\n.bin", "contentType": "image/png"}}}),
    );
    let (media_type, _) = sent.body.as_ref().expect("a body");
    let boundary = media_type.strip_prefix("multipart/form-data; boundary=").expect("a boundary");
    let expected = [
        "\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n",
        "\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n1\r\n",
        "\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n2\r\n",
        "\r\nContent-Disposition: form-data; name=\"o\"\r\nContent-Type: application/json\r\n\r\n{\"k\":1}\r\n",
        "\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a%22%0D%0A.bin\"\r\nContent-Type: image/png\r\n\r\nhi\r\n",
        "--\r\n",
    ];
    assert_eq!(text(&sent), format!("--{boundary}{}", expected.join(&format!("--{boundary}"))));
    assert!(refused(&multipart, json!({"body": {"f": {"base64": "!"}}})).contains("not valid base64"));
    assert!(
        refused(&multipart, json!({"body": {"f": {"text": "a", "contentType": "a\r\nb"}}})).contains("'contentType'")
    );

    // Some descriptions give the schema of one part.
    let unknown = body(
        json!({"multipart/form-data": {"schema": {"type": "array", "items": {"type": "string", "format": "binary"}}}}),
    );
    let sent = text(&request(&unknown, json!({"body": {"file": [{"text": "hi", "filename": "a.txt"}], "note": "x"}})));
    assert!(
        sent.contains("name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain")
            && sent.contains("name=\"note\"\r\n\r\nx"),
        "{sent}"
    );

    let raw = body(json!({"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}));
    let sent = request(&raw, json!({"body": {"base64": "AAH/"}}));
    assert_eq!(sent.body, Some(("application/octet-stream".to_owned(), vec![0, 1, 255])));
    let raw = body(json!({"image/*": {}}));
    assert_eq!(
        request(&raw, json!({"body": {"text": "a", "contentType": "image/svg+xml"}})).body.expect("a body").0,
        "image/svg+xml"
    );
}

#[test]
fn schemas_of_3_0_become_2020_12() {
    let schema = json!({
        "type": "object", "required": ["id", "name", "kind", "name"],
        "properties": {
            "id": {"type": "integer", "readOnly": true},
            "name": {"type": "string", "nullable": true, "example": "Ada", "xml": {}, "x-order": 1},
            "kind": {"$ref": "#/components/schemas/Kind"},
            "other": {"nullable": true, "allOf": [{"$ref": "#/components/schemas/Kind"}], "description": "Or none"},
            "age": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false},
            "node": {"$ref": "#/components/schemas/Node"},
            "pet": {"oneOf": [{"$ref": "#/components/schemas/Node"}, {"type": "object"}], "discriminator": {"propertyName": "x"}},
            "wrong": {"type": "unknown", "required": true, "minLength": -1, "enum": [], "pattern": 3, "items": "x"},
            "versions": {"type": "string", "enum": [1, 2.5, true]},
            "file": {"type": "file"},
        },
    });
    let mut description =
        one("post", "/x", json!({"requestBody": {"content": {"application/json": {"schema": schema}}}}));
    description["components"] = json!({"schemas": {
        "Kind": {"type": "string", "enum": ["a", "b"], "nullable": true},
        "Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}, "value": {}}},
    }});
    let api = api(description);
    assert_eq!(api.warnings, ["POST /x ('post_x'): the type \"unknown\" is unknown"]);
    let operation = &api.operations[0];
    let input = &operation.definition.input_schema;
    assert_eq!(
        input["properties"]["body"],
        json!({
            "type": "object", "required": ["name", "kind"],
            "properties": {
                "name": {"type": ["string", "null"], "examples": ["Ada"]},
                "kind": {"$ref": "#/$defs/Kind"},
                "other": {"description": "Or none", "anyOf": [{"allOf": [{"$ref": "#/$defs/Kind"}]}, {"type": "null"}]},
                "age": {"type": "number", "maximum": 9, "exclusiveMinimum": 0},
                "node": {"$ref": "#/$defs/Node"},
                "pet": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "object"}]},
                "wrong": {},
                "versions": {"type": "string", "enum": ["1", "2.5", "true"]},
                "file": {"type": "string"},
            },
        })
    );
    assert_eq!(
        input["$defs"],
        json!({
            "Kind": {"type": ["string", "null"], "enum": ["a", "b", null]},
            "Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "value": {}}},
        })
    );
    let body = json!({"name": null, "kind": null, "other": null, "age": 0.5, "node": {"next": {"next": {}}}});
    assert!(accepts(input, json!({"body": body})) && !accepts(input, json!({"body": {"name": "x"}})));
    assert!(!accepts(input, json!({"body": {"name": "x", "kind": "a", "age": 0}})));
}

#[test]
fn schemas_of_3_1() {
    let schema = json!({
        "$id": "https://example.com/schemas/a", "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": ["object", "null"],
        "properties": {
            "n": {"type": "integer", "exclusiveMinimum": 3},
            "local": {"$ref": "#/$defs/L"},
            "anchor": {"$ref": "https://api.example.com/openapi.json#anchored"},
            "pair": {"type": "array", "prefixItems": [{"const": 1}, {"type": "string"}]},
        },
        "$defs": {"L": {"type": "boolean"}},
        "oneOf": [{"required": ["n"]}, {"required": ["local"]}], "anyOf": [{"required": ["n"]}],
    });
    let operation = only(json!({
        "openapi": "3.1.0",
        "paths": {"/x": {"post": {"requestBody": {"content": {"application/json": {"schema": schema}}}}}},
        "components": {"schemas": {"A": {"$anchor": "anchored", "type": "number"}}},
    }));
    let input = &operation.definition.input_schema;
    assert_eq!(input["$defs"], json!({"L": {"type": "boolean"}, "anchored": {"type": "number"}}));
    for (body, expected) in [
        (json!({"n": 4, "local": true, "anchor": 1.5, "pair": [1, "x"]}), true),
        (json!({"n": 3}), false),
        (json!({"n": 4, "local": 1}), false),
        (json!({"n": 4, "anchor": "x"}), false),
        (json!({"n": 4, "pair": [2]}), false),
        (json!({"local": true}), false),
    ] {
        assert_eq!(accepts(input, json!({"body": body})), expected, "{body}");
    }
}

#[test]
fn references_across_documents() {
    let mut documents = documents(json!({
        "openapi": "3.0.0",
        "paths": {"/a": {"$ref": "paths/a.yaml"}, "/b": {"$ref": "missing.yaml#/b"}, "/c": {"get": {"parameters": [{"$ref": "#/nowhere"}]}}},
        "components": {"schemas": {"Back": {"type": "boolean"}}},
    }));
    let url = |path: &str| Url::parse(&format!("https://api.example.com/{path}")).expect("an address");
    assert_eq!(documents.missing(), [url("missing.yaml"), url("paths/a.yaml")]);
    documents.add(url("missing.yaml"), Err("it is not there".into()));
    let path = json!({"get": {"parameters": [{"$ref": "../common.yaml#/parameters/Limit"}], "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "../openapi.json#/components/schemas/Back"}}}}}}});
    documents.add(url("paths/a.yaml"), Ok(path));
    assert_eq!(documents.missing(), [url("common.yaml")]);
    documents.add(url("common.yaml"), Ok(json!({"parameters": {"Limit": {"name": "limit", "in": "query", "schema": {"$ref": "#/Number"}}}, "Number": {"type": "integer"}})));
    assert_eq!(documents.missing(), []);
    let api = describe(&documents, &settings()).expect("operations");
    assert_eq!(api.operations.len(), 1);
    let tool = &api.operations[0].definition;
    assert_eq!(tool.input_schema["$defs"], json!({"Number": {"type": "integer"}}));
    assert_eq!(tool.output_schema, Some(json!({"type": "boolean"})));
    assert_eq!(
        api.warnings,
        [
            "/b: the reference 'missing.yaml#/b' cannot be followed: it is not there",
            "GET /c: the reference '#/nowhere' leads to nothing",
        ]
    );
}

#[test]
fn operations_are_selected() {
    let operation = |id: &str, tag: &str| json!({"operationId": id, "tags": [tag]});
    let mut description = json!({"openapi": "3.0.0", "paths": {
        "/users": {"get": operation("listUsers", "users"), "post": operation("addUser", "users"), "trace": {}},
        "/users/{id}": {"get": operation("getUser", "users"), "head": operation("hasUser", "users"), "delete": operation("removeUser", "admin")},
        "/orders": {"get": operation("listOrders", "orders"), "put": operation("listOrders", "orders")},
    }});
    description["paths"]["/users"]["get"]["deprecated"] = json!(true);
    let documents = documents(description);
    let names = |settings: Settings| {
        let api = describe(&documents, &settings).expect("operations");
        let names: Vec<String> = api.operations.iter().map(|operation| operation.definition.name.clone()).collect();
        (names.join(" "), api.left_out)
    };
    let filter = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let (all, left_out) = names(Settings::default());
    assert_eq!(all, "getUser hasUser listOrders");
    assert_eq!(left_out, LeftOut { filtered: 0, deprecated: 1, writes: 3 });
    let everything = Settings { writes: true, deprecated: true, ..Settings::default() };
    assert_eq!(names(everything.clone()).0, "listUsers addUser getUser hasUser removeUser listOrders put_orders");
    let only = |include: Filter, exclude: Filter| names(Settings { include, exclude, ..everything.clone() }).0;
    let (tags, none) = (|list| Filter { tags: filter(list), ..Filter::default() }, Filter::default());
    assert_eq!(only(tags(&["ADM*", "orders"]), none.clone()), "removeUser listOrders put_orders");
    assert_eq!(only(none.clone(), tags(&["users"])), "removeUser listOrders put_orders");
    let both = Filter { methods: filter(&["Get"]), paths: filter(&["/users/*"]), ..Filter::default() };
    assert_eq!(only(both, none.clone()), "getUser");
    let ids = Filter { ids: filter(&["list*"]), ..Filter::default() };
    assert_eq!(only(ids, Filter { methods: filter(&["put"]), ..Filter::default() }), "listUsers listOrders");
    let warnings = describe(&documents, &everything).expect("operations").warnings;
    let again = "PUT /orders ('put_orders'): another operation has the same 'operationId'";
    assert_eq!(warnings, ["TRACE /users: this method is not supported", again]);
}

#[test]
fn credentials() {
    let description = json!({
        "openapi": "3.0.0", "security": [{"token": []}, {"key": [], "second": []}, {}],
        "paths": {
            "/a": {"get": {"parameters": [{"name": "api_key", "in": "query", "required": true}, {"name": "x-app", "in": "header"}]}},
            "/b": {"get": {"security": [{"basic": []}]}},
            "/c": {"get": {"security": []}},
            "/d": {"get": {"security": [{"cookie": []}, {"mutual": []}]}},
            "/e": {"get": {"security": [{"oauth": ["read"]}]}},
        },
        "components": {"securitySchemes": {
            "token": {"type": "http", "scheme": "Bearer"}, "basic": {"type": "http", "scheme": "basic"},
            "key": {"type": "apiKey", "in": "query", "name": "api_key"}, "second": {"type": "apiKey", "in": "header", "name": "X-App"},
            "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"}, "mutual": {"type": "mutualTLS"}, "oauth": {"type": "oauth2", "flows": {}},
        }},
    });
    let secrets =
        BTreeMap::from([("basic", "me:pässword"), ("key", "k&1"), ("second", "s"), ("cookie", "c;1"), ("oauth", "o")]);
    let settings = Settings {
        secrets: secrets.keys().chain(&["mutual", "none"]).map(|name| (*name).to_owned()).collect(),
        headers: ["X-APP".to_owned()].into(),
        ..settings()
    };
    let api = describe(&documents(description), &settings).expect("operations");
    let sent = |at: usize| {
        let operation: &Operation = &api.operations[at];
        operation.request(&serde_json::Map::new(), &|name| secrets.get(name).copied()).expect("a request")
    };
    assert_eq!(api.operations[0].definition.input_schema["properties"], json!({}), "secrets are no input");
    assert_eq!(
        sent(0).credentials,
        [Credential::Query("api_key".into(), "k%261".into()), Credential::Header("x-app".into(), "s".into())]
    );
    assert_eq!(sent(0).url.query(), None);
    assert_eq!(sent(1).credentials, [Credential::Header("authorization".into(), "Basic bWU6cMOkc3N3b3Jk".into())]);
    assert_eq!(sent(2).credentials, []);
    assert_eq!(sent(3).credentials, [Credential::Cookie("sid".into(), "c%3B1".into())]);
    assert_eq!(sent(4).credentials, [Credential::Header("authorization".into(), "Bearer o".into())]);
    assert!(!format!("{:?}", sent(1)).contains("bWU6"), "{:?}", sent(1));
    assert_eq!(
        api.warnings,
        [
            "the security scheme 'mutual' cannot be used: the type 'mutualtls' is not supported",
            "there is no security scheme 'none'; known are basic, cookie, key, mutual, oauth, second, token",
        ]
    );
}

#[test]
fn servers_of_operations() {
    let mut description = json!({"openapi": "3.0.0", "servers": [{"url": "/api/"}], "paths": {
        "/a": {"get": {}, "servers": [{"url": "https://files.example.com"}]},
        "/b": {"get": {"servers": [{"url": "https://{r}.example.com", "variables": {"r": {"default": "eu"}}}]}},
        "/c?fixed=1#x": {"get": {"parameters": [{"name": "q", "in": "query"}]}},
    }});
    let urls = |description: &Value, settings: &Settings| {
        let api = describe(&documents(description.clone()), settings)?;
        let url = |operation: &Operation| {
            operation.request(&serde_json::Map::from_iter([("q".to_owned(), json!(1))]), &|_| None)
        };
        Ok::<_, String>(
            api.operations
                .iter()
                .map(|operation| url(operation).expect("a request").url.to_string())
                .collect::<Vec<_>>(),
        )
    };
    let expected =
        ["https://files.example.com/a", "https://eu.example.com/b", "https://api.example.com/api/c?fixed=1&q=1"];
    assert_eq!(urls(&description, &settings()).expect("addresses"), expected);
    let fixed = Settings { base_url: Url::parse("http://127.0.0.1:8080/x/").ok(), ..settings() };
    let expected = ["http://127.0.0.1:8080/x/a", "http://127.0.0.1:8080/x/b", "http://127.0.0.1:8080/x/c?fixed=1&q=1"];
    assert_eq!(urls(&description, &fixed).expect("addresses"), expected);
    description["servers"] = json!([{"url": "https://{x}/"}]);
    description["paths"].as_object_mut().expect("paths").retain(|path, _| path.starts_with("/c"));
    assert_eq!(
        urls(&description, &settings()).expect_err("no server"),
        "the server 'https://{x}/' needs a value for 'x'; give it in 'variables'"
    );
}

/// References and sizes that would take exponential time, memory or stack.
#[test]
fn hostile_descriptions() {
    let begin = std::time::Instant::now();
    // Each schema refers twice to the next one.
    let schemas: serde_json::Map<String, Value> = (0..2_000)
        .map(|n| {
            let next = json!({"$ref": format!("#/components/schemas/S{}", n + 1)});
            (format!("S{n}"), json!({"type": "object", "properties": {"a": next, "b": next}}))
        })
        .collect();
    let body = |schema: Value| json!({"requestBody": {"content": {"application/json": {"schema": schema}}}});
    let mut description = one("post", "/x", body(json!({"$ref": "#/components/schemas/S0"})));
    description["components"] = json!({ "schemas": schemas });
    let api = api(description);
    assert!(api.operations[0].definition.input_schema.to_string().len() < 2 * limits::MAX_INPUT_SCHEMA_BYTES);
    assert!(api.warnings.iter().all(|warning| warning.len() < 1_000), "{:?}", api.warnings);
    // Parts of any size that many operations share.
    let large = json!({
        "type": "object",
        "required": (0..20_000).map(|n| format!("p{n}")).collect::<Vec<_>>(),
        "properties": (0..20_000).map(|n| (format!("p{n}"), json!({"readOnly": n % 2 == 0}))).collect::<serde_json::Map<_, _>>(),
        "additionalProperties": false,
        "anyOf": vec![json!({}); 20_000],
    });
    let names = json!({"type": "string", "enum": (0..50_000).collect::<Vec<_>>(), "pattern": "x".repeat(1 << 20)});
    let shared = json!({"parameters": [{"name": "q", "in": "query", "schema": {"$ref": "#/components/schemas/Names"}}], "requestBody": {"$ref": "#/components/requestBodies/B"}, "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Large"}}}}}});
    let paths: serde_json::Map<String, Value> = (0..300).map(|n| (format!("/{n}"), json!({"post": shared}))).collect();
    let description = json!({"openapi": "3.0.0", "paths": paths, "components": {
        "schemas": {"Large": large, "Names": names},
        "requestBodies": {"B": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Large"}}}}},
    }});
    let api = describe(&documents(description), &settings()).expect("operations");
    let sizes = api.operations.iter().map(|operation| operation.definition.input_schema.to_string().len());
    assert_eq!(
        (api.operations.len(), sizes.max().is_some_and(|size| size < 2 * limits::MAX_INPUT_SCHEMA_BYTES)),
        (300, true)
    );
    assert!(
        accepts(&api.operations[0].definition.input_schema, json!({"body": {"p19999": 1}})),
        "what was left out is accepted"
    );
    // References to very many documents.
    let many: Vec<Value> = (0..50_000).map(|n| json!({"$ref": format!("d{n}.json")})).collect();
    assert!(documents(json!({"openapi": "3.0.0", "x": many})).missing().len() <= 2 * limits::MAX_DOCUMENTS);
    // Circles of references.
    for (schemas, reference) in [
        (json!({"A": {"$ref": "#/components/schemas/A"}}), "A"),
        (json!({"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}), "A"),
        (json!({"A": {"allOf": [{"$ref": "#/components/schemas/A"}]}}), "A"),
    ] {
        let reference = json!({"$ref": format!("#/components/schemas/{reference}")});
        let mut description = one("post", "/x", body(reference.clone()));
        description["paths"]["/x"]["post"]["parameters"] = json!([{"name": "q", "in": "query", "schema": reference}]);
        description["paths"]["/x"]["post"]["responses"] =
            json!({"200": {"content": {"application/json": {"schema": reference}}}});
        description["components"] = json!({ "schemas": schemas });
        assert_eq!(describe(&documents(description), &settings()).expect("operations").operations.len(), 1);
    }
    let mut circle = one("get", "/x", json!({"parameters": [{"$ref": "#/components/parameters/P"}]}));
    circle["components"] = json!({"parameters": {"P": {"$ref": "#/components/parameters/P"}}});
    let api = describe(&documents(circle), &settings()).expect("operations");
    assert_eq!(api.warnings, ["GET /x: more than 32 references lead to each other"]);
    // Values of wrong types everywhere.
    let wrong = [json!(null), json!(3), json!("x"), json!([[]]), json!({"$ref": 3}), json!({"a": null}), json!(true)];
    for value in &wrong {
        for (at, member) in
            ["parameters", "requestBody", "responses", "security", "servers", "tags", "operationId", "summary"]
                .iter()
                .enumerate()
        {
            let mut operation = json!({"operationId": "x"});
            operation[*member] = value.clone();
            let _ = describe(&documents(one("post", "/x/{y}", operation.clone())), &settings());
            let mut description = one("post", "/x/{y}", operation);
            let key = ["paths", "components", "servers", "security", "info", "tags", "x", "y"][at];
            description[key] = value.clone();
            let _ = describe(&documents(description), &settings());
        }
        let _ = describe(&documents(one("post", "/x", body(value.clone()))), &settings());
        let parameter = json!({"parameters": [{"name": "a", "in": "query", "schema": value, "style": value, "content": value, "explode": value}]});
        let _ = describe(&documents(one("post", "/x", parameter)), &settings());
    }
    // Many operations with the same id, and one with many parameters and a long path.
    let paths: serde_json::Map<String, Value> =
        (0..limits::MAX_OPERATIONS + 10).map(|n| (format!("/p{n}"), json!({"get": {"operationId": "same"}}))).collect();
    let many = describe(&documents(json!({"openapi": "3.0.0", "paths": paths})), &settings()).expect("operations");
    assert_eq!((many.operations.len(), many.refused), (limits::MAX_OPERATIONS, 10));
    let parameters: Vec<Value> = (0..1_000).map(|n| json!({"name": format!("p{n}"), "in": "query"})).collect();
    let refused =
        describe(&documents(one("get", "/x", json!({ "parameters": parameters }))), &settings()).expect("read");
    assert_eq!(refused.warnings, ["GET /x: it has more than 500 parameters"]);
    let long =
        describe(&documents(one("get", &format!("/{}", "{a}".repeat(5_000)), json!({}))), &settings()).expect("read");
    assert!(long.warnings[0].ends_with("its path has more than 2048 bytes"), "{:?}", long.warnings);
    for path in ["/{", "/{}", "/{a{b}}", "x"] {
        let api = describe(&documents(one("get", path, json!({}))), &settings()).expect("read");
        assert_eq!((api.operations.len(), api.refused), (0, 1), "{path}");
    }
    assert!(begin.elapsed().as_secs() < 60, "{:?}", begin.elapsed());
}
