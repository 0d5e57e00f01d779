//! The HTTP server: access control, MCP, and stateless steps.

use crate::model_server::{HttpProcess, http_client, one_process_for_each_request, post_json};
use crate::support::*;
use crate::third_party::{client, node_package, python};
use futures_util::stream;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

const TOKEN: &str = "token-0123456789-abcdef";

async fn secured(folder: &Folder, http: Value) -> HttpProcess {
    let config = folder.file("config.json", json!({"http": http}).to_string());
    HttpProcess::start(&["--demo", "--config", &config]).await
}

/// Sends a request with headers. Returns the status, the body and the headers of the response.
async fn get(url: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String, reqwest::header::HeaderMap) {
    let mut request = http_client().get(format!("{url}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.expect("an answer");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    (status, response.text().await.expect("text"), headers)
}

#[tokio::test]
async fn host_origin_and_token_are_checked() {
    let folder = Folder::new();
    let http = json!({"token": TOKEN, "maxBodyBytes": 2000, "allowedOrigins": ["https://app.example.com"]});
    let server = secured(&folder, http).await;
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(get(&server.url, "/healthz", &[]).await.0, 200);
    for headers in [
        vec![],
        vec![("authorization", "Bearer token-0123456789-abcdeg")],
        vec![("authorization", TOKEN)],
        vec![("authorization", "Basic dG9rZW4=")],
    ] {
        for path in ["/mcp", "/v1/models", "/v1/evaluate", "/nothing"] {
            let (status, body, answer) = get(&server.url, path, &headers).await;
            assert_eq!((status, answer["www-authenticate"].to_str().ok()), (401, Some("Bearer")), "{path} {body}");
            assert!(body.contains("UNAUTHORIZED") && !body.contains(TOKEN), "{body}");
        }
    }
    let (status, body, _) = get(&server.url, "/nothing", &[("authorization", &bearer)]).await;
    assert!(status == 404 && body.contains("There is nothing at this path"), "{status} {body}");
    let (status, body, _) = get(&server.url, "/v1/evaluate", &[("authorization", &bearer)]).await;
    assert!(status == 405 && body.contains("another method"), "{status} {body}");

    // DNS rebinding, and a page of an unknown origin.
    let (status, body, _) =
        get(&server.url, "/v1/models", &[("authorization", &bearer), ("host", "evil.example")]).await;
    assert!(status == 403 && body.contains("HOST_NOT_ALLOWED"), "{status} {body}");
    for origin in ["https://evil.example", "null", "http://localhost"] {
        let (status, body, answer) = get(&server.url, "/healthz", &[("origin", origin)]).await;
        assert!(status == 403 && body.contains("ORIGIN_NOT_ALLOWED"), "{status} {body}");
        assert!(!answer.contains_key("access-control-allow-origin"));
    }
    // A page of the server itself.
    let (status, ..) = get(&server.url, "/healthz", &[("origin", &server.url)]).await;
    assert_eq!(status, 200);
    let (status, _, answer) = get(&server.url, "/healthz", &[("origin", "https://app.example.com")]).await;
    assert_eq!((status, answer["access-control-allow-origin"].to_str().ok()), (200, Some("https://app.example.com")));
    let preflight = http_client()
        .request(reqwest::Method::OPTIONS, format!("{}/mcp", server.url))
        .header("origin", "https://app.example.com")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,mcp-protocol-version")
        .send()
        .await
        .expect("an answer");
    assert_eq!(preflight.headers()["access-control-allow-headers"], "authorization,mcp-protocol-version");

    for path in ["/v1/evaluate", "/v1/chat/completions", "/mcp"] {
        let long = json!({"code": " ".repeat(3000)}).to_string();
        // One that does not say how long it is, too.
        let chunks = reqwest::Body::wrap_stream(stream::iter([Ok::<_, Infallible>(long.clone())]));
        for body in [long.into(), chunks] {
            let sent = http_client()
                .post(format!("{}{path}", server.url))
                .header("authorization", &bearer)
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream")
                .body(body);
            assert_eq!(sent.send().await.expect("an answer").status().as_u16(), 413, "{path}");
        }
    }
    assert_eq!(server.end().await, Some(0));
}

#[tokio::test]
async fn values_of_requests_that_take_too_much_memory_are_not_made() {
    let folder = Folder::new();
    let server = secured(&folder, json!({"token": TOKEN})).await;
    let objects = format!("[{}0]", r#"{"":0},"#.repeat(300_000));
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "codecall_execute"}});
    let message = request
        .to_string()
        .replace("\"codecall_execute\"", &format!("\"codecall_execute\",\"arguments\":{{\"context\":{objects}}}"));
    for (path, body) in [("/mcp", message), ("/v1/evaluate", format!("{{\"code\":\"\",\"context\":{objects}}}"))] {
        let sent = http_client()
            .post(format!("{}{path}", server.url))
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body);
        let answer = sent.send().await.expect("an answer");
        assert_eq!(answer.status().as_u16(), 413, "{path}");
        let text = answer.text().await.expect("text");
        assert!(text.contains("The body is too large: its values take"), "{path}: {text}");
    }
    assert_eq!(server.end().await, Some(0));
}

/// Sends a head over a connection of its own. Returns the status and the body of the response.
async fn raw(server: &HttpProcess, head: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(server.url.trim_start_matches("http://")).await.expect("connects");
    stream.write_all(head.as_bytes()).await.expect("writes");
    let mut answer = String::new();
    tokio::time::timeout(TIMEOUT, stream.read_to_string(&mut answer)).await.expect("answers").expect("text");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    (status, answer)
}

/// Each request names one host, without a user name, whichever hosts are allowed.
#[tokio::test]
async fn the_host_is_not_ambiguous() {
    let folder = Folder::new();
    let http = json!({"allowedOrigins": ["https://app.example.com"]});
    let restricted = secured(&folder, http).await;
    let all = folder.file("all.json", json!({"http": {"token": TOKEN}}).to_string());
    let mut command = Command::new(PROGRAM);
    let mut all = HttpProcess::start_as(command.args(["serve", "--http", "0.0.0.0:0", "--config", &all])).await;
    all.url = all.url.replace("0.0.0.0", "127.0.0.1");
    let preflight = "Origin: https://app.example.com\r\nAccess-Control-Request-Method: POST\r\n";
    for server in [&restricted, &all] {
        for (target, hosts, expected) in [
            ("/healthz", "Host: localhost\r\n", 200),
            ("/healthz", "Host: LOCALHOST:80\r\n", 200),
            ("/healthz", "Host: [::1]:80\r\n", 200),
            ("http://localhost/healthz", "Host: localhost\r\n", 200),
            ("/healthz", "Host: localhost\r\nHost: localhost\r\n", 400),
            ("/healthz", "Host: localhost\r\nhOST: evil.example\r\n", 400),
            ("/healthz", "Host: evil.example\r\nX-A: 1\r\nHost: localhost\r\n", 400),
            ("/healthz", "Host: user@localhost\r\n", 400),
            ("/healthz", "Host: evil.example@localhost\r\n", 400),
            ("/healthz", "Host: user:secret@localhost:80\r\n", 400),
            ("/healthz", "Host: @localhost\r\n", 400),
            ("/healthz", "Host: localhost, evil.example\r\n", 400),
            ("/healthz", "Host: localhost evil.example\r\n", 400),
            ("/healthz", "Host: localhost/evil\r\n", 400),
            ("/healthz", "Host:\r\n", 400),
            ("/healthz", "", 400),
            ("http://user@localhost/healthz", "Host: localhost\r\n", 400),
            ("http://evil.example/healthz", "Host: localhost\r\n", 400),
            ("/v1/models", "Host: user@localhost\r\n", 400),
            ("/ui/", "Host: localhost\r\nHost: localhost\r\n", 400),
        ] {
            let (status, body) =
                raw(server, &format!("GET {target} HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n")).await;
            assert_eq!(status, expected, "{target} {hosts:?}: {body}");
        }
        let twice = format!(
            "OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n{preflight}Connection: close\r\n\r\n"
        );
        let (status, body) = raw(server, &twice).await;
        assert!(status == 400 && body.contains("INVALID_HOST"), "{body}");
    }
    // Health checks of HTTP/1.0 may have no host.
    assert_eq!(raw(&all, "GET /healthz HTTP/1.0\r\n\r\n").await.0, 200);
    assert_eq!(raw(&restricted, "GET /healthz HTTP/1.0\r\n\r\n").await.0, 400);
    // Of two tokens, or origins, none counts.
    let tokens = format!("Authorization: Bearer {TOKEN}\r\n").repeat(2);
    assert_eq!(
        raw(&all, &format!("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{tokens}\r\n")).await.0,
        401
    );
    let of_two = "Origin: https://app.example.com\r\nOrigin: https://evil.example\r\n";
    assert_eq!(
        raw(&restricted, &format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{of_two}\r\n"))
            .await
            .0,
        403
    );
    assert_eq!(restricted.end().await, Some(0));
    assert_eq!(all.end().await, Some(0));
}

#[tokio::test]
async fn addresses() {
    let open = codecall(&["serve", "--http", "0.0.0.0:0"]).await;
    assert_eq!(open.code, Some(2));
    assert!(open.stderr.contains("set 'http.token' in the configuration"), "{}", open.stderr);
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let folder = Folder::new();
    let start = format!("echo started > {}; sleep 1000", folder.path("started"));
    let servers = json!({"mcpServers": {"app": {"command": "sh", "args": ["-c", start]}}});
    let config = folder.file("servers.json", servers.to_string());
    let taken = codecall(&["serve", "--http", &address, "--config", &config]).await;
    assert!(taken.code == Some(2) && taken.stderr.contains("in use"), "{taken:?}");
    assert!(!Path::new(&folder.path("started")).exists(), "a server is started at an address in use");
    let nonsense = codecall(&["serve", "--http", "nowhere"]).await;
    assert!(nonsense.code == Some(2) && nonsense.stderr.contains("--http nowhere"), "{nonsense:?}");
    for (http, problem) in [
        (json!({"token": "short"}), "http.token: must have at least 16 characters"),
        (json!({"allowedOrigins": ["app.example.com"]}), "http.allowedOrigins: an origin is written as"),
        (json!({"maxBodyBytes": 1}), "http.maxBodyBytes: must be from 1024 to"),
        (json!({"tokenn": "x"}), "http: unknown key 'tokenn'; did you mean 'token'?"),
    ] {
        let config = folder.file("wrong.json", json!({"http": http}).to_string());
        let ended = codecall(&["serve", "--http", "0", "--config", &config]).await;
        assert!(ended.code == Some(2) && ended.stderr.contains(problem), "{ended:?}");
    }
}

#[tokio::test]
async fn mcp() {
    let folder = Folder::new();
    let server = secured(&folder, json!({"token": TOKEN})).await;
    for lifecycle in [ClientLifecycleMode::Initialize, modern()] {
        let config = StreamableHttpClientTransportConfig::with_uri(format!("{}/mcp", server.url)).auth_header(TOKEN);
        let transport = StreamableHttpClientTransport::with_client(http_client(), config);
        let recorded = RecordingClient::default();
        let client = recorded.clone().serve_with_lifecycle(transport, lifecycle).await.expect("speaks MCP");
        let tools = client.peer().list_tools(None).await.expect("a list").tools;
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(names, ["codecall_search", "codecall_describe", "codecall_execute", "codecall_invoke"]);
        let script = "const user = await users.get({ id: 'usr_001' }); console.log(user.id); return user.name";
        let Value::Object(arguments) = json!({"script": script}) else { panic!("an object") };
        let calls = (0..20).map(|_| {
            client.peer().call_tool(CallToolRequestParams::new("codecall_execute").with_arguments(arguments.clone()))
        });
        for called in futures_util::future::join_all(calls).await {
            let result = data(&called.expect("a result"));
            assert_eq!(result["status"], "ok", "{result}");
        }
        let unknown = client.peer().call_tool(CallToolRequestParams::new("nothing")).await;
        assert!(unknown.is_err_and(|error| error.to_string().contains("Unknown tool 'nothing'")));
        assert_eq!(recorded.changes.load(Ordering::Relaxed), 0);
        client.cancel().await.expect("ends");
    }
    let config = StreamableHttpClientTransportConfig::with_uri(format!("{}/mcp", server.url));
    let transport = StreamableHttpClientTransport::with_client(http_client(), config);
    let refused = RecordingClient::default().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await;
    assert!(refused.is_err(), "there is no token");
    assert_eq!(server.end().await, Some(0));
}

#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn clients_of_others_over_http() {
    let server = HttpProcess::start(&["--demo"]).await;
    let url = format!("{}/mcp", server.url);
    node_package("@modelcontextprotocol/sdk/package.json");
    for (program, script) in [(Path::new("node").to_owned(), "typescript.mjs"), (python("python"), "python.py")] {
        let ended = finish(Command::new(program).arg(client(script)).arg(&url), "").await;
        assert_eq!((ended.code, ended.stdout.trim()), (Some(0), "ok"), "{ended:?}");
    }
    server.end().await;
}

#[tokio::test]
async fn steps_by_token_and_by_messages() {
    let folder = Folder::new();
    let config = folder.file("config.json", json!({"stateless": {"key": "a key of all processes"}}).to_string());
    let (url, processes) = one_process_for_each_request(vec!["--config".into(), config]).await;
    let code =
        "const [a, b] = await Promise.all([add({ a: 1, b: 2 }), add({ a: 3, b: 4 })]); return await add({ a, b })";
    let number = json!({"type": "number"});
    let schema = json!({"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]});
    let request = json!({"code": code, "tools": [{"name": "add", "inputSchema": schema}]});
    let sum = |call: &Value| call["input"]["a"].as_i64().unwrap_or(0) + call["input"]["b"].as_i64().unwrap_or(0);

    let mut next = request.clone();
    let answer = loop {
        let (status, answer) = post_json(&url, "/v1/evaluate", &next).await;
        assert_eq!(status, 200, "{answer}");
        if answer["status"] != "calls" {
            break answer;
        }
        let calls = answer["calls"].as_array().expect("calls");
        let results: Vec<Value> = calls.iter().map(|call| json!({"id": call["id"], "result": sum(call)})).collect();
        next = request.clone();
        next["token"] = answer["token"].clone();
        next["results"] = results.into();
    };
    assert_eq!((&answer["status"], &answer["outcome"]), (&json!("done"), &json!({"status": "ok", "result": 10})));

    let mut messages: Vec<Value> = Vec::new();
    let answer = loop {
        let mut next = request.clone();
        next["messages"] = messages.clone().into();
        next["id"] = "code_1".into();
        let (status, answer) = post_json(&url, "/v1/evaluate", &next).await;
        assert_eq!(status, 200, "{answer}");
        if answer["status"] != "calls" {
            break answer;
        }
        messages.extend(answer["messages"].as_array().expect("messages").clone());
        let answers = answer["calls"].as_array().expect("calls").iter();
        messages.extend(
            answers.map(|call| json!({"role": "tool", "tool_call_id": call["id"], "content": sum(call).to_string()})),
        );
    };
    assert_eq!(
        answer["messages"],
        json!([{"role": "code_result", "id": "code_1", "result": {"status": "success", "data": 10}}])
    );
    assert_eq!(*processes.lock().expect("not poisoned"), 6);
}

#[tokio::test]
async fn steps_that_are_refused() {
    let server = HttpProcess::start(&[]).await;
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "a", "arguments": "{}"}});
    let block = |last: Value| {
        let messages = json!([
            {"role": "user", "content": "Go"},
            {"role": "assistant", "content": "I do."},
            {"role": "code", "id": "c", "code": "return 1"},
            {"role": "assistant", "tool_calls": [call("c_0")]},
            {"role": "tool", "tool_call_id": "c_0", "content": "1"},
            last,
        ]);
        json!({ "messages": messages })
    };
    for (body, problem) in [
        (json!({"code": " "}), "'code' is empty"),
        (json!({"cod": "1"}), "unknown key 'cod'; did you mean 'code'?"),
        (json!({"code": 1}), "'code': wrong value, expected a string"),
        (
            json!({"code": "1", "limits": {"timeoutMS": 1}}),
            "limits: unknown key 'timeoutMS'; did you mean 'timeoutMs'?",
        ),
        (json!({"code": "1", "token": "ccj1.AAAA"}), "'token': "),
        (
            json!({"code": "1", "results": [{"id": "a", "result": 1}]}),
            "'results' need the 'token' of the step that they answer",
        ),
        (json!({"code": "1", "tools": [1]}), "tools[0]: expected {"),
        (json!({"code": "1", "tools": [{"name": "a"}, {"name": 1}]}), "tools[1]: expected {"),
        (
            json!({"code": "1", "results": [{"id": "a", "result": 1}, {"id": 5}]}),
            "'results[1].id': wrong value, expected a string",
        ),
        (
            json!({"code": "1", "results": [{"id": "a", "result": 1}, {"id": "b", "resul": 1}]}),
            "'results[1]': unknown key 'resul'; did you mean 'result'?",
        ),
        (json!({"code": "1", "messages": [5]}), "messages[0]: only an assistant's tool calls and the results of tools"),
        // Positions are those in the list that was sent, also behind a code block.
        (block(json!({"role": "user", "content": "?"})), "messages[5]: only an assistant's tool calls"),
        (block(json!({"role": "tool", "content": "1"})), "messages[5]: the result of a tool needs 'tool_call_id'"),
        (
            block(json!({"role": "tool", "tool_call_id": "c_9", "content": "1"})),
            "messages[5]: there was no tool call 'c_9'; there were c_0",
        ),
        (
            block(json!({"role": "assistant", "tool_calls": [call("c_1"), {"id": "c_2", "function": {"name": 1}}]})),
            "messages[5].tool_calls[1]: a tool call needs an id and a function",
        ),
        (block(json!({"role": "assistant", "tool_calls": [call("c_0")]})), "messages[5]: 'c_0' is there twice"),
    ] {
        let (status, answer) = post_json(&server.url, "/v1/evaluate", &body).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(status == 400 && message.starts_with(problem), "{body} {answer}");
        assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!("refused"), &json!("INVALID_REQUEST")));
    }
    for body in ["", "{", "{} {}", "[1]", "\u{0}", &"[".repeat(100_000)] {
        let sent = http_client().post(format!("{}/v1/evaluate", server.url)).body(body.to_owned()).send().await;
        let response = sent.expect("an answer");
        assert_eq!(response.status().as_u16(), 400);
        assert!(response.json::<Value>().await.expect("JSON")["error"]["message"].is_string());
    }
    // A failed run is status 200 like any other.
    let (status, answer) = post_json(&server.url, "/v1/evaluate", &json!({"code": "eval('1')"})).await;
    assert_eq!((status, &answer["outcome"]["status"]), (200, &json!("illegal_access")));
    let folder = Folder::new();
    let config = folder.file("config.json", json!({"vm": {"preset": "experimental"}}).to_string());
    let server = HttpProcess::start(&["--config", &config]).await;
    let endless = json!({"code": "for (;;) {}", "limits": {"timeoutMs": 20}, "id": "code_1"});
    let steps = (0..40).map(|_| post_json(&server.url, "/v1/evaluate", &endless));
    for (status, answer) in futures_util::future::join_all(steps).await {
        assert_eq!((status, &answer["outcome"]["status"]), (200, &json!("timeout")), "{answer}");
    }
}

#[tokio::test]
async fn tools_as_typescript() {
    let server = HttpProcess::start(&[]).await;
    let tools = json!([
        {"type": "function", "function": {"name": "web_search", "description": "Search\n the web */", "parameters": {
            "type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}}, "required": ["query"]}}},
        {"name": "delete", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}}},
    ]);
    let (status, answer) = post_json(&server.url, "/v1/tools/typescript", &json!({"tools": tools})).await;
    assert_eq!(status, 200, "{answer}");
    let expected = "/** Search the web * / */
declare function webSearch(input: {
  query: string;
  limit?: number; // ≥ 1
}): Promise<unknown>;
declare function callTool(name: \"delete\", input: Record<string, unknown>): Promise<{
  ok?: boolean;
}>;
";
    assert_eq!(answer["typescript"], expected);
    let functions = json!([{"tool": "web_search", "function": "webSearch"}, {"tool": "delete", "function": null}]);
    assert_eq!(answer["functions"], functions);
    let (status, answer) = post_json(&server.url, "/v1/tools/typescript", &json!({"tools": [{}]})).await;
    assert_eq!((status, &answer["error"]["param"]), (400, &json!("tools")));
}
