//! Odd descriptions: what is left out, what is mended, and that it is named.

use super::*;

/// An odd part is left out or mended, and named; a good operation beside it is a tool.
#[test]
fn odd_descriptions() {
    let good = json!({"operationId": "good"});
    let parameter = |parameter: Value| json!({"/odd": {"get": {"operationId": "odd", "parameters": [parameter]}}});
    let output = |response: Value| json!({"/odd": {"get": {"operationId": "odd", "responses": response}}});
    for (paths, names, warnings) in [
        (json!({"/odd": null}), "good", "/odd: it is no object"),
        (json!({"/odd": {"get": "x"}}), "good", "GET /odd: it is no object"),
        (json!({"/odd": {"GET": {"operationId": "odd"}}}), "odd good", ""),
        (json!({"odd": {"get": {}}}), "good", "GET odd: its path does not begin with '/'"),
        (
            json!({"/odd": {"$ref": "#/nowhere", "get": {"operationId": "odd"}}}),
            "odd good",
            "/odd: the reference '#/nowhere' leads to nothing",
        ),
        (json!({"/odd": {"$ref": "#/nowhere"}}), "good", "/odd: the reference '#/nowhere' leads to nothing"),
        (
            json!({"/odd": {"get": {"operationId": "good", "parameters": 1}}}),
            "good get_good",
            "GET /odd ('good'): 'parameters' is no list; GET /good ('get_good'): another operation has the same 'operationId'",
        ),
        (parameter(json!({"in": "query"})), "odd good", "GET /odd ('odd'): a parameter has no name"),
        (parameter(json!(null)), "odd good", "GET /odd ('odd'): a parameter has no name"),
        (parameter(json!({"name": "q", "in": "query"})), "odd good", ""),
        (
            parameter(json!({"name": "q", "in": "query", "schema": {"$ref": "#/x"}})),
            "odd good",
            "GET /odd ('odd'): the reference '#/x' leads to nothing",
        ),
        (
            parameter(json!({"name": "q", "in": "query", "schema": {"type": "strnig"}})),
            "odd good",
            "GET /odd ('odd'): the type \"strnig\" is unknown",
        ),
        (
            output(
                json!({"200": {"content": {"application/json": {"schema": {"type": "object", "properties": {"a": {"$ref": "#/x"}}}}}}}),
            ),
            "odd good",
            "GET /odd ('odd'): its output schema: the reference '#/x' leads to nothing",
        ),
        (
            output(json!({"200": {"$ref": "#/x"}})),
            "odd good",
            "GET /odd ('odd'): a response: the reference '#/x' leads to nothing",
        ),
        (
            json!({"/odd": {"post": {"operationId": "odd", "requestBody": {"$ref": "#/x"}}}}),
            "good",
            "POST /odd: the reference '#/x' leads to nothing",
        ),
    ] {
        let mut description = json!({"openapi": "3.0.0", "paths": paths});
        description["paths"]["/good"] = json!({"get": good});
        let api = api(description);
        let found: Vec<&str> = api.operations.iter().map(|operation| operation.definition.name.as_str()).collect();
        assert_eq!((found.join(" ").as_str(), api.warnings.join("; ").as_str()), (names, warnings), "{paths}");
    }
    let none = describe(&documents(json!({"paths": {"/good": {"get": good}}})), &settings()).expect("operations");
    assert_eq!(none.warnings, ["'openapi' is missing; it is read as a description of OpenAPI 3.0"]);
}

#[test]
fn remnants_of_swagger() {
    let operation = only(json!({
        "openapi": "3.0.0", "host": "api.example.com", "basePath": "/v2", "schemes": ["http"],
        "securityDefinitions": {"staff": {"type": "basic"}}, "security": [{"staff": []}],
        "definitions": {"Thing": {"type": "object"}},
        "paths": {"/x": {"get": {
            "parameters": [
                {"name": "n", "in": "query", "type": "integer", "maximum": 3, "required": true},
                {"name": "csv", "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "csv"},
                {"name": "multi", "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi"},
                {"name": "pipes", "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "pipes"},
            ],
            "responses": {"200": {"schema": {"$ref": "#/definitions/Thing"}}},
        }}},
    }));
    let schema = &operation.definition.input_schema;
    assert_eq!(schema["properties"]["n"], json!({"type": "integer", "maximum": 3}));
    assert_eq!(operation.definition.output_schema, Some(json!({"type": "object"})));
    let input = json!({"n": 1, "csv": ["a", "b"], "multi": ["c", "d"], "pipes": ["e", "f"]});
    let sent = request(&operation, input);
    assert_eq!(sent.url.as_str(), "http://api.example.com/v2/x?n=1&csv=a,b&multi=c&multi=d&pipes=e%7Cf");
    let secret =
        operation.request(json!({"n": 1}).as_object().expect("an object"), &|_| Some("me:x")).expect("a request");
    assert_eq!(secret.credentials, [Credential::Header("authorization".into(), "Basic bWU6eA==".into())]);
}

#[test]
fn values_fit_their_types() {
    let schema = |schema: Value| {
        let parameters = json!({"parameters": [{"name": "q", "in": "query", "schema": schema}]});
        only(one("get", "/x", parameters)).definition.input_schema["properties"]["q"].clone()
    };
    for (given, expected) in [
        (
            json!({"type": "string", "enum": [1, true, "a", null]}),
            json!({"type": "string", "enum": ["1", "true", "a", null]}),
        ),
        (json!({"type": "string", "default": 5}), json!({"type": "string", "default": "5"})),
        (json!({"type": ["string", "null"], "const": 5}), json!({"type": ["string", "null"], "const": "5"})),
        (
            json!({"type": "integer", "default": "5", "enum": ["5", "x"]}),
            json!({"type": "integer", "default": 5, "enum": [5, "x"]}),
        ),
        (json!({"type": "boolean", "default": "true"}), json!({"type": "boolean", "default": true})),
        (json!({"type": ["string", "integer"], "default": 5}), json!({"type": ["string", "integer"], "default": 5})),
        (json!({"type": "string", "example": 1}), json!({"type": "string", "examples": ["1"]})),
    ] {
        assert_eq!(schema(given.clone()), expected, "{given}");
    }
}
