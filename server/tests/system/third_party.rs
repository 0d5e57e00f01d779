//! Servers and clients of other projects: `@modelcontextprotocol/server-everything` and the
//! TypeScript SDK from npm, `mcp-server-time` and the `mcp` package from PyPI.

use crate::model_server::{HttpProcess, KEY, Model, ModelReply, one_process_for_each_request};
use crate::support::*;
use rmcp::model::{ServerNotification, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams};
use serde_json::json;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::process::Command;

pub fn node_package(path: &str) -> PathBuf {
    installed(root().join("tests/node/node_modules").join(path))
}

pub fn python(name: &str) -> PathBuf {
    installed(root().join("tests/python/.venv/bin").join(name))
}

/// Returns the path, which must exist.
pub fn installed(path: PathBuf) -> PathBuf {
    assert!(path.exists(), "{} is not there: bash .ci/run installs it", path.display());
    path
}

pub fn client(name: &str) -> PathBuf {
    root().join("server/tests/system/clients").join(name)
}

#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn upstreams_of_others() {
    let everything = node_package("@modelcontextprotocol/server-everything/dist/index.js");
    let time = python("mcp-server-time");
    let folder = Folder::new();
    let config = json!({"mcpServers": {
        "everything": {"command": "node", "args": [everything, "stdio"]},
        "time": {"command": time, "args": ["--local-timezone", "UTC"]},
    }});
    let config = folder.file("config.json", config.to_string());
    for lifecycle in [rmcp::service::ClientLifecycleMode::Initialize, modern()] {
        let server = Server::start_as(&["--config", &config], lifecycle).await;
        let began = tokio::time::Instant::now();
        let found = loop {
            let queries = json!({"queries": ["convert time between timezones", "add two numbers"]});
            let found = server.ask("codecall_search", queries).await;
            // On a busy machine a server in Python starts slowly.
            if found.get("warnings").is_none() {
                break found;
            }
            assert!(began.elapsed() < TIMEOUT, "{found}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        };
        let names: Vec<&str> =
            found["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert!(names.contains(&"time:convert_time") && names.contains(&"everything:get-sum"), "{names:?}");
        let described = server
            .ask(
                "codecall_describe",
                json!({"toolNames": ["time:convert_time", "everything:get-sum"], "format": "json_schema"}),
            )
            .await;
        assert_eq!(
            described["tools"][0]["inputSchema"]["required"],
            json!(["source_timezone", "time", "target_timezone"])
        );
        assert_eq!(described["tools"][1]["inputSchema"]["required"], json!(["a", "b"]));
        let script = "
            const zones = ['Asia/Tokyo', 'America/New_York'];
            const times = await parallel(zones, (target_timezone) =>
              time.convert_time({ source_timezone: 'UTC', time: '12:00', target_timezone }));
            const sum = await callTool('everything:get-sum', { a: 19, b: 23 });
            const echo = await callTool('everything:echo', { message: 'hello' });
            const weather = await callTool('everything:get-structured-content', { location: 'Chicago' });
            const wrong = await callTool('time:get_current_time', { timezone: 'Mars/Olympus' }, { throwOnError: false });
            return {
              hours: times.map(({ time_difference }) => time_difference),
              tokyo: times[0].target.datetime.slice(11, 16),
              sum, echo, weather: typeof weather.temperature,
              wrong: [wrong.success, wrong.error.code, wrong.error.message],
            };";
        let answer = server.execute(script).await;
        let result = &answer["result"];
        assert_eq!((&answer["status"], &result["tokyo"]), (&json!("ok"), &json!("21:00")), "{answer}");
        assert_eq!(result["hours"][0], "+9.0h", "{answer}");
        assert!(result["sum"].as_str().is_some_and(|text| text.contains("42")), "{answer}");
        assert_eq!((&result["echo"], &result["weather"]), (&json!("Echo: hello"), &json!("number")), "{answer}");
        assert_eq!(result["wrong"][0], false);
        assert!(result["wrong"][2].as_str().is_some_and(|text| text.contains("Mars/Olympus")), "{answer}");
        server.end().await;
    }
}

/// A server with a tool that returns its environment: its tools, resources and prompts are exposed unchanged.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn upstreams_are_exposed_directly() {
    let everything = node_package("@modelcontextprotocol/server-everything/dist/index.js");
    let folder = Folder::new();
    let config = json!({
        "mcpServers": {"everything": {"command": "node", "args": [everything, "stdio"], "env": {"API_TOKEN": "tok-12345678"}}},
        "expose": "direct",
        "rateLimits": [{"tool": "echo", "limit": 2, "window": "1h"}],
    });
    let config = folder.file("config.json", config.to_string());
    for lifecycle in [rmcp::service::ClientLifecycleMode::Initialize, modern()] {
        let server = Server::start_as(&["--config", &config], lifecycle).await;
        let peer = server.client.peer();
        let tools = peer.list_all_tools().await.expect("a list");
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        assert!(names.starts_with(&["codecall_search", "codecall_describe"]) && names[4..].is_sorted(), "{names:?}");
        for name in ["echo", "get-env", "get-sum", "get-tiny-image", "get-structured-content"] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        let environment = text(&server.call("get-env", json!({})).await.expect("a result"));
        assert!(environment.contains("API_TOKEN") && environment.contains("[secret]"), "{environment}");
        assert!(!environment.contains("12345678"), "{environment}");
        let inside =
            server.execute("return JSON.stringify(await callTool('everything:get-env', {}))").await.to_string();
        assert!(inside.contains("[secret]") && !inside.contains("12345678"), "{inside}");
        let image =
            serde_json::to_value(server.call("get-tiny-image", json!({})).await.expect("a result")).expect("JSON");
        let blocks = image["content"].as_array().expect("content");
        assert!(
            blocks
                .iter()
                .any(|block| block["type"] == "image" && block["data"].as_str().is_some_and(|data| data.len() > 1_000))
        );
        let weather = server.call("get-structured-content", json!({"location": "Chicago"})).await.expect("a result");
        assert!(weather.structured_content.is_some_and(|weather| weather["temperature"].is_number()));
        let wrong = server.call("get-sum", json!({"a": "x"})).await.expect("a result");
        assert_eq!(wrong.is_error, Some(true));
        assert!(text(&wrong).starts_with("Invalid input for tool 'everything:get-sum'"), "{wrong:?}");
        for n in 0..3 {
            let echo = server.call("everything_echo", json!({"message": "hello"})).await.expect("a result");
            assert_eq!(text(&echo).starts_with("Rate limit exceeded"), n == 2, "{echo:?}");
        }
        let resources = peer.list_all_resources().await.expect("resources");
        assert!(resources.len() > 3, "{resources:?}");
        let read = peer.read_resource_once(rmcp::model::ReadResourceRequestParams::new(resources[0].uri.clone())).await;
        let read = format!("{:?}", read.expect("a resource"));
        assert!(read.contains(&resources[0].uri), "{read}");
        assert!(!peer.list_all_resource_templates().await.expect("templates").is_empty());
        let missing = peer.read_resource_once(rmcp::model::ReadResourceRequestParams::new("no://such/thing")).await;
        assert!(missing.is_err(), "{missing:?}");
        let prompts = peer.list_all_prompts().await.expect("prompts");
        assert!(prompts.iter().any(|prompt| prompt.name == "simple-prompt"), "{prompts:?}");
        let prompt = peer.get_prompt_once(rmcp::model::GetPromptRequestParams::new("simple-prompt")).await;
        assert!(format!("{:?}", prompt.expect("a prompt")).contains("prompt"));
        assert!(peer.get_prompt_once(rmcp::model::GetPromptRequestParams::new("no")).await.is_err());
        server.end().await;
    }
}

/// Progress of a server is forwarded: unchanged if the request is that call, as text if a script has made
/// the call.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn progress_of_upstreams() {
    let everything = node_package("@modelcontextprotocol/server-everything/dist/index.js");
    let folder = Folder::new();
    let servers = json!({"everything": {"command": "node", "args": [everything, "stdio"]}});
    let config = folder.file("config.json", json!({"mcpServers": servers, "expose": "direct"}).to_string());
    let tool = "everything:trigger-long-running-operation";
    let input = json!({"duration": 0.4, "steps": 4});
    for lifecycle in [rmcp::service::ClientLifecycleMode::Initialize, modern()] {
        let server = Server::start_as(&["--config", &config], lifecycle).await;
        let take_progress = || std::mem::take(&mut *server.recorded.progress.lock().expect("not poisoned"));
        let calls = [
            ("trigger-long-running-operation", input.clone()),
            ("codecall_invoke", json!({"tool": tool, "input": input})),
        ];
        for (name, input) in calls {
            let result = server.call(name, input).await.expect("a result");
            assert_ne!(result.is_error, Some(true), "{result:?}");
            let seen: Vec<(f64, Option<f64>)> =
                take_progress().iter().map(|progress| (progress.progress, progress.total)).collect();
            // The response may arrive before the last one.
            assert!(seen.len() >= 4, "{name}: {seen:?}");
            assert_eq!(seen[..4], [(0.0, None), (1.0, Some(4.0)), (2.0, Some(4.0)), (3.0, Some(4.0))], "{name}");
        }
        let answer = server.execute(&format!("return await callTool('{tool}', {input})")).await;
        assert_eq!(answer["status"], "ok", "{answer}");
        let seen: Vec<(f64, String)> = take_progress()
            .into_iter()
            .map(|progress| (progress.progress, progress.message.unwrap_or_default()))
            .collect();
        assert!(seen.iter().zip(1..).all(|((progress, _), step)| *progress == f64::from(step)), "{seen:?}");
        assert_eq!((seen[0].1.as_str(), seen[1].1.as_str()), (&*format!("{tool} …"), &*format!("{tool}: 1 of 4")));
        server.end().await;
    }
}

/// Notifications of a server reach clients that see its resources.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn notifications_of_upstreams() {
    let everything = node_package("@modelcontextprotocol/server-everything/dist/index.js");
    let folder = Folder::new();
    // The shell writes its process id before it becomes the server.
    let process = folder.file("process", "");
    let shell = format!("echo $$ > '{process}'; exec node \"$0\" stdio");
    let servers = json!({"everything": {"command": "sh", "args": ["-c", shell, everything]}});
    let config = folder.file("config.json", json!({"mcpServers": servers, "expose": "direct"}).to_string());
    let server = Server::start(&["--config", &config]).await;
    let peer = server.client.peer();
    let uri = peer.list_all_resources().await.expect("resources")[0].uri.clone();
    #[expect(deprecated, reason = "clients with a session know nothing else")]
    let subscribed = peer.subscribe(SubscribeRequestParams::new(uri.clone())).await;
    subscribed.expect("subscribed");
    let recorded = &server.recorded;
    let logs = || format!("{:?}", recorded.logs.lock().expect("not poisoned"));
    until("what the server says of it", || {
        logs().contains(&format!("Received Subscribe Resource request for URI: {uri}"))
    })
    .await;
    server.call("toggle-subscriber-updates", json!({})).await.expect("a result");
    until("the change", || recorded.updated.lock().expect("not poisoned").contains(&uri)).await;
    // After a crash the server is restarted, and subscribed to again.
    let number = std::fs::read_to_string(&process).expect("a file");
    let killed = finish(Command::new("kill").args(["-KILL", number.trim()]), "").await;
    assert_eq!(killed.code, Some(0), "{killed:?}");
    until("the request to the new process", || logs().matches("Received Subscribe Resource request").count() == 2)
        .await;
    recorded.updated.lock().expect("not poisoned").clear();
    server.call("toggle-subscriber-updates", json!({})).await.expect("a result");
    until("the change in the new process", || recorded.updated.lock().expect("not poisoned").contains(&uri)).await;
    let zip = json!({"name": "x.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"});
    let zipped = server.call("gzip-file-as-resource", zip.clone()).await.expect("a result");
    assert_ne!(zipped.is_error, Some(true), "{zipped:?}");
    until("the new list", || recorded.resources.load(Ordering::Relaxed) > 0).await;
    #[expect(deprecated, reason = "clients with a session know nothing else")]
    let unsubscribed = peer.unsubscribe(UnsubscribeRequestParams::new(uri.clone())).await;
    unsubscribed.expect("unsubscribed");
    until("what the server says of that", || logs().contains("Received Unsubscribe Resource request")).await;
    server.end().await;

    let server = Server::start_as(&["--config", &config], modern()).await;
    let peer = server.client.peer();
    let filter = SubscriptionFilter::builder().resources_list_changed().resource_subscription(uri.clone()).build();
    let mut notifications = peer.listen(filter).await.expect("accepted");
    server.call("toggle-subscriber-updates", json!({})).await.expect("a result");
    server.call("gzip-file-as-resource", zip).await.expect("a result");
    let (mut updated, mut listed) = (false, false);
    while !(updated && listed) {
        match tokio::time::timeout(Duration::from_secs(60), notifications.next())
            .await
            .expect("it comes")
            .expect("open")
        {
            Some(ServerNotification::ResourceUpdatedNotification(update)) => updated |= update.params.uri == uri,
            Some(ServerNotification::ResourceListChangedNotification(_)) => listed = true,
            other => panic!("{other:?}"),
        }
    }
    server.end().await;
}

#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn the_typescript_sdk() {
    node_package("@modelcontextprotocol/sdk");
    let ran = finish(Command::new("node").arg(client("typescript.mjs")).arg(PROGRAM), "").await;
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "ok"), "{ran:?}");
}

#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn the_python_sdk() {
    let python = python("python");
    let ran = finish(Command::new(python).arg(client("python.py")).arg(PROGRAM), "").await;
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "ok"), "{ran:?}");
}

/// An upstream over HTTP disconnects and reconnects.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn an_upstream_over_http() {
    let everything = node_package("@modelcontextprotocol/server-everything/dist/index.js");
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let start = || {
        let mut command = Command::new("node");
        command.arg(&everything).arg("streamableHttp").env("PORT", port.to_string()).kill_on_drop(true);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts")
    };
    let folder = Folder::new();
    let config = json!({"mcpServers": {"http": {"url": format!("http://127.0.0.1:{port}/mcp")}}});
    let server = Server::start(&["--config", &folder.file("config.json", config.to_string())]).await;
    let sum = || server.execute("return await callTool('http:get-sum', { a: 19, b: 23 })");
    let absent = sum().await;
    assert_eq!((&absent["status"], &absent["error"]["code"]), (&json!("tool_error"), &json!("SERVER_UNAVAILABLE")));
    assert!(absent["error"]["message"].as_str().is_some_and(|text| text.contains("'http' does not work")), "{absent}");
    for _ in 0..2 {
        let mut everything = start();
        let began = tokio::time::Instant::now();
        let answer = loop {
            let answer = sum().await;
            if answer["status"] == "ok" {
                break answer;
            }
            assert!(began.elapsed() < TIMEOUT, "{answer}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        };
        assert!(answer["result"].as_str().is_some_and(|text| text.contains("42")), "{answer}");
        everything.kill().await.expect("ends");
        let gone = sum().await;
        assert_eq!(gone["status"], "tool_error", "{gone}");
        assert!(!gone.to_string().contains(&port.to_string()), "addresses stay here: {gone}");
    }
    server.end().await;
}

/// Returns an example in TypeScript as a module for Node, next to the packages that it imports.
fn erased(folder: &str, name: &str) -> PathBuf {
    let modules = node_package("amaro").parent().expect("a folder").join(folder);
    let text = std::fs::read_to_string(root().join("examples/stateless").join(name)).expect("an example");
    let erase = "const { transformSync } = require('amaro');
        const text = require('fs').readFileSync(0, 'utf8');
        process.stdout.write(transformSync(text, { mode: 'strip-only' }).code)";
    let mut command = std::process::Command::new("node");
    command.args(["-e", erase]).current_dir(root().join("tests/node")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), text.as_bytes()).expect("reads");
    let erased = child.wait_with_output().expect("ends");
    assert!(erased.status.success(), "{name} is TypeScript");
    std::fs::create_dir_all(&modules).expect("a folder");
    let path = modules.join(name).with_extension("mjs");
    std::fs::write(&path, erased.stdout).expect("a file");
    path
}

/// The clients of `examples/stateless`, unchanged.
#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn the_examples_of_clients() {
    let folder = format!(".examples-{}", std::process::id());
    let example = |name: &str| root().join("examples/stateless").join(name);
    let node = |name: &str| (PathBuf::from("node"), erased(&folder, name));
    let python = |name: &str| (python("python"), example(name));
    let server = HttpProcess::start(&[]).await;
    let expected = json!({"status": "ok", "result": {"warmest": {"city": "Cairo", "celsius": 24}, "missing": ["There is no weather in Atlantis"]}});
    for (program, script) in [node("evaluate.ts"), python("evaluate.py")] {
        let ended = finish(Command::new(program).arg(&script).arg(&server.url), "").await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        assert_eq!(ended.json(), expected, "{}", script.display());
    }
    for (program, script) in [node("chat.ts"), python("chat.py")] {
        let code = "const all = await Promise.all(['Oslo', 'Cairo', 'Lima'].map((city) => getTemperature({ city })));
            return all.sort((a, b) => b.celsius - a.celsius)[0];";
        let model = Model::start([ModelReply::Code(code), ModelReply::Text("Cairo.")]).await;
        let config = Folder::new();
        let config_file = config.file("codecall.json", json!({"model": {"url": model.url, "key": KEY}}).to_string());
        let (url, _) = one_process_for_each_request(vec!["--config".into(), config_file]).await;
        let mut command = Command::new(program);
        command.arg(&script).env("OPENAI_BASE_URL", format!("{url}/v1")).env("OPENAI_API_KEY", "-");
        let ended = finish(&mut command, "").await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Cairo.\n"), "{ended:?}");
        let result = &model.requests()[1]["messages"][3]["content"];
        assert_eq!(result, "{\"status\":\"success\",\"data\":{\"city\":\"Cairo\",\"celsius\":24}}");
    }
    let _ = std::fs::remove_dir_all(root().join("tests/node/node_modules").join(&folder));
}
