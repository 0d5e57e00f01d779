//! HTTP services with OpenAPI descriptions as upstreams: a service that echoes requests, the example of the
//! documentation, and a service of another project.

mod tokens;

use crate::support::*;
use crate::third_party::{client, installed};
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use axum::{Router, routing};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::process::Command;

const KEY: &str = "key-1234567890";
const PASSWORD: &str = "password-1234567890";
const EXTRA: &str = "extra-1234567890";

/// A service that returns what arrived.
struct Service {
    address: String,
}

fn respond(status: u16, media_type: &str, body: impl Into<Body>) -> Response<Body> {
    let builder = Response::builder().status(StatusCode::from_u16(status).expect("a status"));
    builder.header("content-type", media_type).body(body.into()).expect("a response")
}

async fn echo(method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let headers: Map<String, Value> = headers
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into()))
        .collect();
    let body = match std::str::from_utf8(&body) {
        Ok(text) => text.to_owned(),
        Err(_) => STANDARD.encode(&body),
    };
    let arrived =
        json!({"method": method.as_str(), "path": uri.path(), "query": uri.query(), "headers": headers, "body": body});
    respond(200, "application/json", arrived.to_string())
}

fn redirect(to: &str) -> Response<Body> {
    Response::builder().status(302).header("location", to).body(Body::empty()).expect("a response")
}

impl Service {
    /// Starts the service; `files` are served below `/files/`.
    async fn start(files: &'static [(&'static str, &'static str)], elsewhere: &str) -> Self {
        let file = move |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| *text);
        let elsewhere = format!("http://{elsewhere}/v1/landed");
        let routes = Router::new()
            .route(
                "/v1/text",
                routing::get(|| async { respond(200, "text/plain; charset=iso-8859-1", vec![0x68, 0xe9]) }),
            )
            .route("/v1/image", routing::get(|| async { respond(200, "image/png", vec![1_u8, 2, 255]) }))
            .route("/v1/bytes", routing::get(|| async { respond(200, "application/pdf", vec![1_u8, 2, 255]) }))
            .route("/v1/empty", routing::get(|| async { respond(204, "text/plain", "") }))
            .route("/v1/large", routing::get(|| async { respond(200, "text/plain", "x".repeat(100_000)) }))
            .route(
                "/v1/fail",
                routing::get(|| async {
                    respond(422, "application/json", r#"{"error":{"message":"no such thing","field":"x"}}"#)
                }),
            )
            .route(
                "/v1/slow",
                routing::get(|| async {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                    respond(200, "text/plain", "late")
                }),
            )
            .route("/v1/near", routing::any(|| async { redirect("/v1/landed?near=1") }))
            .route("/v1/far", routing::any(move || async move { redirect(&elsewhere) }))
            .route("/v1/around", routing::any(|| async { redirect("/v1/around") }))
            .route(
                "/files/{*path}",
                routing::get(move |uri: Uri| async move {
                    match file(uri.path().trim_start_matches("/files/")) {
                        Some(text) => respond(200, "application/yaml", text),
                        None => respond(404, "text/plain", "not there"),
                    }
                }),
            )
            .fallback(echo);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { address }
    }
}

const DESCRIPTION: &str = r##"
openapi: 3.0.3
info: { title: Echo, version: 1 }
servers: [{ url: /v1 }]
security: [{ key: [], staff: [] }]
paths:
  /all/{simple}/x{label}/y{matrix}:
    get:
      operationId: all
      tags: [echo]
      parameters:
        - { name: simple, in: path, required: true, schema: { type: array, items: { type: string } } }
        - { name: label, in: path, required: true, style: label, explode: true, schema: { type: object } }
        - { name: matrix, in: path, required: true, style: matrix, explode: true, schema: { type: array, items: {} } }
        - { name: form, in: query, schema: { type: array, items: { type: integer } } }
        - { name: spaces, in: query, style: spaceDelimited, explode: false, schema: { type: array, items: {} } }
        - { name: pipes, in: query, style: pipeDelimited, explode: false, schema: { type: array, items: {} } }
        - { name: deep, in: query, style: deepObject, explode: true, schema: { type: object } }
        - { name: raw, in: query, allowReserved: true, schema: { type: string } }
        - { name: filter, in: query, content: { application/json: { schema: { type: object } } } }
        - { name: X-List, in: header, schema: { type: array, items: {} } }
        - { name: session, in: cookie, schema: { type: string } }
        - { name: X-Api-Key, in: header, required: true, schema: { type: string } }
        - $ref: 'common.yaml#/parameters/Limit'
  /json: { post: { operationId: sendJson, requestBody: { required: true, content: { application/json: { schema: { $ref: 'common.yaml#/schemas/Thing' } } } } } }
  /form: { post: { operationId: sendForm, requestBody: { content: { application/x-www-form-urlencoded: { schema: { type: object }, encoding: { list: { explode: false } } } } } } }
  /files: { post: { operationId: sendFiles, requestBody: { content: { multipart/form-data: { schema: { type: object, properties: { name: { type: string }, file: { type: string, format: binary } } } } } } } }
  /raw: { put: { operationId: sendRaw, requestBody: { content: { application/octet-stream: {} } } } }
  /head: { head: { operationId: look } }
  /old: { get: { operationId: old, deprecated: true } }
  /text: { get: { operationId: text } }
  /image: { get: { operationId: image } }
  /bytes: { get: { operationId: bytes } }
  /empty: { get: { operationId: empty } }
  /large: { get: { operationId: large } }
  /fail: { get: { operationId: fail } }
  /slow: { get: { operationId: slow } }
  /near: { get: { operationId: near }, post: { operationId: nearPost } }
  /far: { get: { operationId: far } }
  /around: { get: { operationId: around } }
  /open: { get: { operationId: open, security: [] } }
components:
  securitySchemes:
    key: { type: apiKey, in: header, name: X-Api-Key }
    staff: { type: http, scheme: basic }
"##;

const COMMON: &str = "
parameters:
  Limit: { name: limit, in: query, schema: { $ref: '#/schemas/Limit' } }
schemas:
  Limit: { type: integer, minimum: 0, exclusiveMinimum: true }
  Thing: { type: object, properties: { next: { $ref: '#/schemas/Thing' }, id: { type: integer, readOnly: true }, name: { type: string, nullable: true } } }
";

const FILES: &[(&str, &str)] = &[("echo.yaml", DESCRIPTION), ("common.yaml", COMMON)];

fn secrets() -> Value {
    json!({"key": KEY, "staff": format!("me:{PASSWORD}")})
}

/// Starts a server with one service, `live`, whose description is a file.
async fn start(folder: &Folder, service: &Service, more: Value) -> Server {
    let spec = folder.file("echo.yaml", DESCRIPTION);
    folder.file("common.yaml", COMMON);
    let mut live = json!({
        "spec": spec, "baseUrl": format!("http://{}/v1", service.address), "allowPrivate": [service.address], "allowWrites": true,
        "auth": secrets(), "headers": {"X-Extra": EXTRA},
    });
    live.as_object_mut().expect("a table").extend(more.as_object().expect("a table").clone());
    let config = folder.file("config.json", json!({"openapi": {"live": live}}).to_string());
    Server::start(&["--config", &config]).await
}

/// Runs a script that returns a list of results, and compares it.
async fn results(server: &Server, script: &str) -> Value {
    let answer = server.execute(script).await;
    assert_eq!(answer["status"], "ok", "{answer}");
    answer["result"].clone()
}

#[tokio::test]
async fn operations_of_a_live_service() {
    let service = Service::start(FILES, "127.0.0.1:9").await;
    let folder = Folder::new();
    let server = start(&folder, &service, json!({})).await;
    let all = results(
        &server,
        "return await live.all({
            simple: ['a', 'b/c'], label: { k: 1, l: 'é' }, matrix: ['p', 'q'], form: [1, 2], spaces: ['s', 't'], pipes: ['u', 'v'],
            deep: { x: { y: [1] } }, raw: 'a/b?c', filter: { z: [true] }, 'X-List': ['m', 'n'], session: 'c 1', limit: 3,
        })",
    )
    .await;
    assert_eq!(all["path"], "/v1/all/a,b%2Fc/x.k=1.l=%C3%A9/y;matrix=p;matrix=q");
    assert_eq!(
        all["query"],
        "form=1&form=2&spaces=s%20t&pipes=u%7Cv&deep%5Bx%5D%5By%5D%5B0%5D=1&raw=a/b?c&filter=%7B%22z%22%3A%5Btrue%5D%7D&limit=3"
    );
    let header = |name: &str| all["headers"][name].as_str().unwrap_or_default().to_owned();
    assert_eq!((header("x-list").as_str(), header("cookie").as_str()), ("m,n", "session=c%201"));
    assert_eq!(header("accept"), "application/json, */*;q=0.5");
    for name in ["x-api-key", "x-extra", "authorization"] {
        assert!(header(name).contains("[secret]"), "{name}: {all}");
    }
    let invalid = server.execute("return await live.all({ simple: ['a'], label: {}, matrix: [], limit: 0 })").await;
    assert_eq!(invalid["error"]["code"], "INVALID_INPUT", "{invalid}");
    let sent = results(
        &server,
        "const thing = await live.sendJson({ body: { name: null, next: { next: {} } } });
        const form = await live.sendForm({ body: { a: 'b c', list: [1, 2], o: { k: 1 } } });
        const files = await live.sendFiles({ body: { name: 'x', file: { base64: 'AAH/', filename: 'x.bin' } } });
        const raw = await live.sendRaw({ body: { base64: 'AAH/' } });
        return [thing, form, files, raw].map((sent) => [sent.method, sent.headers['content-type'], sent.headers['content-length'], sent.body]);",
    )
    .await;
    assert_eq!((&sent[0][0], &sent[0][1]), (&json!("POST"), &json!("application/json")));
    assert_eq!(sent[0][3], r#"{"name":null,"next":{"next":{}}}"#);
    assert_eq!(
        (&sent[1][1], &sent[1][3]),
        (&json!("application/x-www-form-urlencoded"), &json!("a=b%20c&list=1,2&o=%7B%22k%22%3A1%7D"))
    );
    assert!(
        sent[2][1].as_str().is_some_and(|kind| kind.starts_with("multipart/form-data; boundary=codecall-")),
        "{sent}"
    );
    let parts = STANDARD.decode(sent[2][3].as_str().expect("a text")).expect("base64");
    let parts = String::from_utf8_lossy(&parts).into_owned();
    assert!(
        parts.contains("name=\"name\"\r\n\r\nx\r\n")
            && parts.contains("name=\"file\"; filename=\"x.bin\"\r\nContent-Type: application/octet-stream"),
        "{parts}"
    );
    assert_eq!(sent[3], json!(["PUT", "application/octet-stream", "3", "AAH/"]));
    let others = results(
        &server,
        "return [await live.text({}), await live.image({}), await live.bytes({}), await live.empty({}), (await live.look({})).status,
            (await live.near({})).query, (await live.open({})).headers.authorization ?? 'none']",
    )
    .await;
    let resource = json!({"type": "resource", "resource": {"uri": "openapi://live/bytes", "mimeType": "application/pdf", "blob": "AQL/"}});
    let image = json!([{"type": "image", "data": "AQL/", "mimeType": "image/png"}]);
    assert_eq!(others, json!(["hé", image, [resource], null, 200, "near=1", "none"]));
    server.end().await;
}

#[tokio::test]
async fn failures_of_a_live_service() {
    let service = Service::start(FILES, "127.0.0.1:9").await;
    let folder = Folder::new();
    let server = start(&folder, &service, json!({"timeoutMs": 500, "maxResponseBytes": 2048})).await;
    let failed = results(
        &server,
        "const failures = [];
        for (const name of ['fail', 'large', 'slow', 'far', 'around', 'nearPost']) {
          const { error } = await callTool(`live:${name}`, {}, { throwOnError: false });
          failures.push([error.code, error.message, error.details]);
        }
        return failures;",
    )
    .await;
    assert_eq!(
        (&failed[0][0], &failed[0][1]),
        (&json!("TOOL_EXECUTION_ERROR"), &json!("HTTP 422 Unprocessable Entity: no such thing"))
    );
    assert_eq!(failed[0][2], json!({"status": 422, "body": {"error": {"message": "no such thing", "field": "x"}}}));
    assert_eq!(failed[1][0], "MESSAGE_TOO_LARGE");
    assert_eq!(
        (&failed[2][0], &failed[2][1]),
        (&json!("TOOL_TIMEOUT"), &json!("Tool 'live:slow' timed out after 500ms"))
    );
    assert!(
        failed[3][1].as_str().is_some_and(|message| message.contains("must be named in 'allowPrivate'")),
        "{failed}"
    );
    assert!(failed[4][1].as_str().is_some_and(|message| message.contains("redirects more than 4 times")), "{failed}");
    assert!(
        failed[5][1].as_str().is_some_and(|message| message.contains("must not be sent to another address")),
        "{failed}"
    );
    server.end().await;
    let gone = json!({"baseUrl": "http://127.0.0.1:9/", "allowPrivate": ["127.0.0.1"]});
    let server = start(&folder, &service, gone).await;
    let answer = server.execute("return await live.text({})").await;
    assert_eq!(answer["error"]["code"], "SERVER_UNAVAILABLE", "{answer}");
    server.end().await;
}

/// Another server gets no secrets after a redirect.
#[tokio::test]
async fn secrets_stay_at_the_server() {
    let other = Service::start(&[], "127.0.0.1:9").await;
    let service = Service::start(FILES, &other.address).await;
    let folder = Folder::new();
    let server = start(&folder, &service, json!({"allowPrivate": [service.address, other.address]})).await;
    let landed = results(&server, "return await live.far({})").await;
    assert_eq!(landed["path"], "/v1/landed");
    for name in ["x-api-key", "x-extra", "authorization", "cookie"] {
        assert_eq!(landed["headers"].get(name), None, "{landed}");
    }
    server.end().await;
}

#[tokio::test]
async fn private_addresses_must_be_named() {
    let service = Service::start(FILES, "127.0.0.1:9").await;
    let port = service.address.rsplit(':').next().expect("a port").to_owned();
    let folder = Folder::new();
    let other_port = format!("127.0.0.1:{}", port.parse::<u16>().expect("a port") ^ 1);
    for (base, named, allowed) in [
        (format!("http://127.0.0.1:{port}/v1"), json!([]), false),
        (format!("http://127.0.0.1:{port}/v1"), json!([other_port]), false),
        (format!("http://127.0.0.1:{port}/v1"), json!(["localhost"]), false),
        (format!("http://localhost:{port}/v1"), json!([]), false),
        (format!("http://[::ffff:127.0.0.1]:{port}/v1"), json!([]), false),
        (format!("http://2130706433:{port}/v1"), json!([]), false),
        (format!("http://localhost:{port}/v1"), json!([format!("localhost:{port}")]), true),
        (format!("http://127.0.0.1:{port}/v1"), json!(["127.0.0.1"]), true),
    ] {
        let server = start(&folder, &service, json!({"baseUrl": base, "allowPrivate": named})).await;
        let answer = server.execute("return (await live.open({})).path").await;
        match allowed {
            true => assert_eq!(answer["result"], "/v1/open", "{base}: {answer}"),
            false => assert!(
                answer["error"]["message"].as_str().is_some_and(|text| text.contains("'allowPrivate'")),
                "{base}: {answer}"
            ),
        }
        server.end().await;
    }
}

/// A description at an address, with a document beside it.
#[tokio::test]
async fn a_description_over_http() {
    let service = Service::start(FILES, "127.0.0.1:9").await;
    let folder = Folder::new();
    let spec = format!("http://{}/files/echo.yaml", service.address);
    let config = |more: Value| {
        let mut live = json!({"spec": spec, "allowPrivate": [service.address], "auth": secrets()});
        live.as_object_mut().expect("a table").extend(more.as_object().expect("a table").clone());
        folder.file("config.json", json!({"openapi": {"live": live}}).to_string())
    };
    let server = Server::start(&["--config", &config(json!({}))]).await;
    let names = |found: Value| {
        let tools = found["tools"].as_array().cloned().unwrap_or_default();
        let mut names: Vec<String> =
            tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect();
        names.sort();
        names
    };
    let found = server.ask("codecall_search", json!({"query": "get live", "topK": 50})).await;
    assert_eq!(found["tools"][0]["source"], "openapi", "{found}");
    let found = names(found);
    assert!(
        found.contains(&"live:all".to_owned())
            && !found.iter().any(|name| name.contains("send") || name.ends_with("old")),
        "{found:?}"
    );
    let without = server
        .ask("codecall_search", json!({"query": "get live", "topK": 50, "filter": {"includeOpenApi": false}}))
        .await;
    assert_eq!(without["tools"], json!([]), "{without}");
    let described = server.ask("codecall_describe", json!({"toolNames": ["live:all"], "format": "json_schema"})).await;
    let tool = &described["tools"][0];
    assert_eq!(tool["inputSchema"]["$defs"]["Limit"], json!({"type": "integer", "exclusiveMinimum": 0}), "{described}");
    assert_eq!(
        (&tool["inputSchema"]["properties"]["X-Api-Key"], &tool["annotations"]["readOnlyHint"]),
        (&Value::Null, &json!(true))
    );
    let path = results(&server, "return (await live.open({})).path").await;
    assert_eq!(path, "/v1/open", "the server is relative to the description");
    server.end().await;
    // Filters, writes and deprecated operations.
    let more = json!({"allowWrites": true, "includeDeprecated": true, "include": {"paths": ["/o*", "/json"]}, "exclude": {"operationIds": ["open"]}});
    let server = Server::start(&["--config", &config(more)]).await;
    let found = names(server.ask("codecall_search", json!({"query": "live old send json open", "topK": 50})).await);
    assert_eq!(found, ["live:old", "live:sendJson"]);
    server.end().await;
    // Nothing is read from a private address that is not named.
    let server = Server::start(&["--config", &config(json!({"allowPrivate": []}))]).await;
    let answer = server.execute("return await callTool('live:open', {})").await.to_string();
    assert!(answer.contains("allowPrivate"), "{answer}");
    server.end().await;
}

/// A description with operations of these names.
fn described(names: &[&str]) -> String {
    let paths: Map<String, Value> =
        names.iter().map(|name| (format!("/{name}"), json!({"get": {"operationId": name}}))).collect();
    json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "servers": [{"url": "/v1"}], "paths": paths})
        .to_string()
}

/// A description that changes, at an address whose server knows `ETag`: what it describes, and how often it has answered that
/// nothing has changed.
async fn changing_description() -> (String, Arc<Mutex<String>>, Arc<AtomicUsize>) {
    let (text, unchanged) = (Arc::new(Mutex::new(described(&["one"]))), Arc::new(AtomicUsize::new(0)));
    let (current, counted) = (Arc::clone(&text), Arc::clone(&unchanged));
    let answer = move |headers: HeaderMap| async move {
        let text = current.lock().expect("not poisoned").clone();
        let tag = format!("\"{}\"", text.len());
        if headers.get("if-none-match").is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
            counted.fetch_add(1, Ordering::Relaxed);
            return Response::builder().status(304).body(Body::empty()).expect("a response");
        }
        let builder = Response::builder().header("etag", tag).header("content-type", "application/json");
        builder.body(Body::from(text)).expect("a response")
    };
    let routes = Router::new().route("/api.json", routing::get(answer)).fallback(echo);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (address, text, unchanged)
}

/// A file and an address are read again when they have changed; runs go on.
#[tokio::test]
async fn a_description_that_changes() {
    let (address, remote, unchanged) = changing_description().await;
    let folder = Folder::new();
    let file = folder.file("api.json", described(&["one"]));
    let service = |spec: &str| json!({"spec": spec, "baseUrl": format!("http://{address}/v1"), "allowPrivate": [address], "refreshMs": 200});
    let config = json!({"expose": "direct", "openapi": {
        "file": service(&file), "address": service(&format!("http://{address}/api.json")),
    }});
    let server = Server::start(&["--config", &folder.file("config.json", config.to_string())]).await;
    assert_eq!(
        results(&server, "return [(await file.one({})).path, (await address.one({})).path]").await,
        json!(["/v1/one", "/v1/one"])
    );
    let running = server.execute("const paths = []; for (let n = 0; n < 4; n++) { await sleep(2000); paths.push((await file.one({})).path); } return paths");
    let changing = async {
        // While nothing changes, the server says so.
        until("the address is asked", || unchanged.load(Ordering::Relaxed) > 1).await;
        // What cannot be used changes nothing.
        folder.file("api.json", "openapi: 1");
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(results(&server, "return (await file.one({})).path").await, "/v1/one");
        folder.file("api.json", described(&["one", "two"]));
        *remote.lock().expect("not poisoned") = described(&["one", "two"]);
        until("the client is told", || server.recorded.changes.load(Ordering::Relaxed) > 0).await;
    };
    let (answer, ()) = tokio::join!(running, changing);
    assert_eq!(answer["result"], json!(["/v1/one", "/v1/one", "/v1/one", "/v1/one"]), "the run goes on: {answer}");
    let began = tokio::time::Instant::now();
    let script = "return await Promise.all([file, address].map(async (app) => (await app.two({})).path))";
    loop {
        let answer = server.execute(script).await;
        if answer["result"] == json!(["/v1/two", "/v1/two"]) {
            break;
        }
        assert!(began.elapsed() < TIMEOUT, "{answer}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    server.end().await;
}

/// Secrets are not sent to a server that somebody else names.
#[tokio::test]
async fn a_description_of_another_server_needs_an_address() {
    const ELSEWHERE: &str =
        "openapi: 3.1.0\nservers: [{ url: 'https://elsewhere.example.com' }]\npaths: { /x: { get: {} } }\n";
    let service = Service::start(&[("e.yaml", ELSEWHERE)], "127.0.0.1:9").await;
    let folder = Folder::new();
    let live = json!({"spec": format!("http://{}/files/e.yaml", service.address), "allowPrivate": [service.address], "headers": {"X-Extra": EXTRA}});
    let config = folder.file("config.json", json!({"openapi": {"live": live}}).to_string());
    let server = Server::start(&["--config", &config]).await;
    let answer = server.execute("return await callTool('live:get_x', {})").await.to_string();
    assert!(answer.contains("give 'baseUrl'"), "{answer}");
    server.end().await;
}

/// The example of docs/guide/openapi.md.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn the_example_of_the_documentation() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let mut node = Command::new("node");
    node.arg(root().join("examples/openapi/shop.mjs")).arg(port.to_string()).kill_on_drop(true);
    let mut shop = node.stdout(Stdio::null()).spawn().expect("there is node");
    until("the shop", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()).await;
    let mut run = Command::new(PROGRAM);
    run.args(["run", "--config", "examples/openapi/codecall.toml", "examples/openapi/orders.js"]).current_dir(root());
    let ran = finish(run.env("SHOP_PORT", port.to_string()), "").await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let expected =
        json!({"totals": {"Ada": 139.9, "Grace": 80.5}, "missing": "HTTP 404 Not Found: there is no such order"});
    assert_eq!(ran.json()["result"], expected, "{ran:?}");
    shop.kill().await.expect("ends");
}

/// FastAPI, which describes itself.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn a_service_of_another_project() {
    let python = installed(root().join("tests/openapi/.venv/bin/python"));
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let program = client("openapi_service.py");
    let mut service = Command::new(&python);
    service.arg(program).arg(port.to_string()).kill_on_drop(true).stdout(Stdio::null());
    let mut service = service.spawn().expect("starts");
    until("the service", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()).await;
    let folder = Folder::new();
    let fast = json!({"spec": format!("http://127.0.0.1:{port}/openapi.json"), "allowPrivate": ["127.0.0.1"], "allowWrites": true, "auth": {"HTTPBasic": format!("me:{PASSWORD}"), "APIKeyQuery": KEY}});
    let config = folder.file("config.json", json!({"openapi": {"fast": fast}}).to_string());
    let server = Server::start(&["--config", &config]).await;
    let seen = results(
        &server,
        "const call = (name, input) => callTool(`fast:${name}`, input, { throwOnError: false });
        return [
          (await call('item', { id: 7, tags: ['a', 'b'], 'x-list': 'h', session: 's' })).data,
          (await call('add', { body: { name: 'x', price: 2.5, made: '2024-02-03', inner: { more: [1, 2] } } })).data,
          (await call('login', { body: { username: 'me', password: 'p&q', scope: 'a b' } })).data,
          (await call('upload', { body: { title: 't', files: [{ text: 'one', filename: '1.txt' }, { base64: 'AAH/' }] } })).data,
          [(await call('basic', {})).data, (await call('key', {})).data],
          (await call('item', { id: 0 })).error.details.body.detail[0].loc,
        ];",
    )
    .await;
    assert_eq!(seen[0], json!({"id": 7, "tags": ["a", "b"], "header": "h", "session": "s"}));
    assert_eq!(seen[1], json!({"name": "x", "price": 2.5, "made": "2024-02-03", "inner": {"more": [1, 2]}}));
    assert_eq!(seen[2], json!({"username": "me", "password": "p&q", "scopes": ["a", "b"]}));
    assert_eq!(seen[3], json!({"title": "t", "files": [["1.txt", 3], ["file", 3]]}));
    assert_eq!(seen[4], json!([{"user": "me", "password": true}, {"key": true}]));
    assert_eq!(seen[5], json!(["path", "id"]));
    server.end().await;
    service.kill().await.expect("ends");
}

/// A description with odd parts, and responses in other charsets: what is good is used, the rest is named.
#[tokio::test]
async fn charsets_and_odd_descriptions() {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let bodies: [(&str, Vec<u8>); 6] = [
        ("application/json", b"\xef\xbb\xbf{\"a\":\"\xc3\xa9\"}".to_vec()),
        ("application/json", wide("{\"a\":\"é\"}")),
        ("application/json; charset=utf-16", [vec![0xfe, 0xff], wide("{\"a\":\"é\"}")].concat()),
        ("application/problem+json; charset=ISO-8859-1", b"{\"a\":\"\xe9\"}".to_vec()),
        ("text/plain; charset=utf-16be", wide("é")),
        ("text/plain; charset=shift_jis", vec![0x93, 0xfa]),
    ];
    let route = move |uri: Uri| async move {
        let at: usize = uri.path().trim_start_matches('/').parse().unwrap_or_default();
        respond(200, bodies[at].0, bodies[at].1.clone())
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(route)).await });
    let folder = Folder::new();
    let description = "openapi: 3.0.3\ninfo: { title: Odd, version: 1.10 }\npaths:\n  /{n}:\n    get:\n      operationId: get\n      parameters:\n        - { name: n, in: path, required: yes, schema: { type: integer, maximum: .inf } }\n        - { name: code, in: query, schema: { type: string, enum: [0123, 08, 1e3, no, 1.10] } }\n  /broken: { get: { parameters: [ { $ref: '#/nowhere' } ] } }\n";
    // As editors of Windows write it.
    let bytes: Vec<u8> = std::iter::once(0xfeff).chain(description.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let spec = folder.path("odd.yaml");
    std::fs::write(&spec, bytes).expect("written");
    let odd = json!({"spec": spec, "baseUrl": format!("http://{address}"), "allowPrivate": [address]});
    let config = folder.file("config.json", json!({"openapi": {"odd": odd}}).to_string());
    let server = Server::start(&["--config", &config]).await;
    let script = "const all = []; for (let n = 0; n < 6; n++) all.push(await odd.get({ n, code: ['0123', '08', '1e3', 'no', '1.10'][n % 5] })); return all";
    let object = json!({"a": "é"});
    assert_eq!(results(&server, script).await, json!([object, object, object, object, "é", "日"]));
    let mut command = Command::new(PROGRAM);
    let ran = finish(command.args(["status", "--json", "--config", &config]), "").await;
    assert_eq!(
        ran.json()["servers"][0]["oddities"],
        json!([
            "line 8: JSON has no number '.inf'; it is left out",
            "GET /broken: the reference '#/nowhere' leads to nothing"
        ]),
        "{ran:?}"
    );
}

/// A service that refuses every second request for a second is asked again, by scripts of durable runs too.
#[tokio::test]
async fn a_service_that_limits_rates_is_asked_again() {
    let (asked, written) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (reads, writes) = (Arc::clone(&asked), Arc::clone(&written));
    let busy = || {
        let builder = Response::builder().status(429).header("retry-after", "1");
        builder.body(Body::empty()).expect("a response")
    };
    let get = move || async move {
        if reads.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
            busy()
        } else {
            respond(200, "application/json", "7")
        }
    };
    let post = move || async move {
        writes.fetch_add(1, Ordering::SeqCst);
        busy()
    };
    let routes = Router::new().route("/value", routing::get(get).post(post));
    let url = crate::model_server::serve(routes).await;
    let answers = json!({"200": {"description": "ok"}});
    let description = json!({
        "openapi": "3.1.0", "info": {"title": "t", "version": "1"},
        "paths": {"/value": {
            "get": {"operationId": "read", "responses": answers}, "post": {"operationId": "write", "responses": answers},
        }},
    });
    let folder = Folder::new();
    let spec = folder.file("api.json", description.to_string());
    let address = url.trim_start_matches("http://");
    for durable in [false, true] {
        asked.store(0, Ordering::SeqCst);
        written.store(0, Ordering::SeqCst);
        let config = folder.file(
            "config.json",
            json!({
                "openapi": {"api": {"spec": spec, "baseUrl": url, "allowPrivate": [address], "allowWrites": true}},
                "store": folder.path("store.db"), "durable": {"enabled": durable},
            })
            .to_string(),
        );
        let server = Server::start(&["--config", &config]).await;
        let read = server.execute("return [await api.read(), await api.read()]").await;
        assert_eq!((&read["result"], asked.load(Ordering::SeqCst)), (&json!([7, 7]), 4), "{durable}: {read}");
        let refused = server.execute("return api.write()").await;
        assert_eq!(refused["error"]["message"], "HTTP 429 Too Many Requests", "{refused}");
        assert_eq!((&refused["error"]["toolCalls"], written.load(Ordering::SeqCst)), (&json!(1), 1), "{refused}");
        server.end().await;
    }
}
