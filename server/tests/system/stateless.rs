//! Steps of runs whose clients own the tools, and journals on the command line.

use crate::support::*;
use codecall::config::StatelessConfig;
use codecall::stateless::{Evaluate, Evaluator};
use rmcp::model::CallToolResult;
use rmcp::service::ClientLifecycleMode;
use serde_json::{Value, json};

const PARALLEL: &str = "async function main() {
  const [sport, world] = await Promise.all([
    webSearch({ query: 'sport news' }),
    webSearch('international affairs news'),
  ]);
  return { sport, world, at: Date.now() };
}";

const SEQUENTIAL: &str = "async function main() {
  const france = await webSearch({ query: 'news in France today' });
  const us = await webSearch({ query: `news in the US today, not ${france[0].title}` });
  return { france, us };
}";

fn tools() -> Value {
    json!([{"type": "function", "function": {
        "name": "web_search",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    }}])
}

/// The result of the client's tool.
fn tool_result(input: &Value) -> Value {
    json!([{"title": format!("About {}", input["query"].as_str().expect("a query"))}])
}

fn served(folder: &Folder) -> String {
    folder.file("codecall.toml", "[stateless]\nenabled = true\nkey = \"a key that nobody can guess\"\n")
}

/// Takes a step at a server that is started for this request only.
async fn step(config: &str, lifecycle: ClientLifecycleMode, request: &Value) -> CallToolResult {
    let server = Server::start_as(&["--config", config], lifecycle).await;
    let answer = server.call("codecall_step", request.clone()).await.expect("an answer");
    server.end().await;
    answer
}

/// Both conversations, by tokens and by messages alone, with a new process for each request.
#[tokio::test]
async fn conversations_without_state_in_the_server() {
    let folder = Folder::new();
    let config = served(&folder);
    for (code, rounds) in [(PARALLEL, &[2][..]), (SEQUENTIAL, &[1, 1])] {
        let mut request = json!({"code": code, "tools": tools()});
        let mut made = Vec::new();
        let done = loop {
            let lifecycle = if made.len() % 2 == 0 { ClientLifecycleMode::Initialize } else { modern() };
            let answer = step(&config, lifecycle, &request).await;
            assert_eq!(answer.is_error, Some(false), "{answer:?}");
            let step = data(&answer);
            if step["status"] == "done" {
                break step;
            }
            let calls = step["calls"].as_array().expect("calls");
            made.push(calls.len());
            // In reverse order: the client decides.
            let results: Vec<Value> = calls
                .iter()
                .rev()
                .map(|call| json!({"id": call["id"], "result": tool_result(&call["input"])}))
                .collect();
            request["token"] = step["token"].clone();
            request["results"] = results.into();
        };
        assert_eq!(made, rounds, "both at once, or one after the other");
        let by_token = done["outcome"]["result"].clone();

        let id = done["id"].clone();
        let mut messages: Vec<Value> = Vec::new();
        let by_messages = loop {
            let request = json!({"code": code, "tools": tools(), "id": id, "messages": messages});
            let answer = step(&config, ClientLifecycleMode::Initialize, &request).await;
            let step = data(&answer);
            messages.extend(step["messages"].as_array().expect("messages").iter().cloned());
            if step["status"] == "done" {
                break step["outcome"]["result"].clone();
            }
            for call in step["messages"][0]["tool_calls"].as_array().expect("calls") {
                let input: Value =
                    serde_json::from_str(call["function"]["arguments"].as_str().expect("a text")).expect("JSON");
                let content = tool_result(&input).to_string();
                messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": content}));
            }
        };
        // The id contains the time, so the clock is the same too.
        assert_eq!(by_token, by_messages);
        let roles: Vec<&str> = messages.iter().filter_map(|message| message["role"].as_str()).collect();
        let expected: &[&str] = match rounds.len() {
            1 => &["assistant", "tool", "tool", "code_result"],
            _ => &["assistant", "tool", "assistant", "tool", "code_result"],
        };
        assert_eq!(roles, expected);
    }
}

/// Each message is sent once, however often the script is replayed.
#[tokio::test]
async fn messages_of_a_script_are_notified() {
    let folder = Folder::new();
    let server = Server::start(&["--config", &served(&folder)]).await;
    let code = "mcpLog('info', 'one'); await get({}); mcpNotify('two', { n: 2 }); mcpLog('info', 'a key that nobody can guess'); return 1";
    let mut request = json!({"code": code, "tools": [{"name": "get"}]});
    let first = server.call("codecall_step", request.clone()).await.expect("an answer");
    let logs = || server.recorded.logs.lock().expect("not poisoned").clone();
    until("the first message", || logs().len() == 1).await;
    assert_eq!(logs()[0]["data"]["message"], "one");
    let step = data(&first);
    request["token"] = step["token"].clone();
    request["results"] = json!([{"id": step["calls"][0]["id"], "result": null}]);
    let done = server.call("codecall_step", request).await.expect("an answer");
    assert_eq!(data(&done)["outcome"], json!({"status": "ok", "result": 1}));
    until("the others", || logs().len() == 2 && !server.recorded.events.lock().expect("not poisoned").is_empty()).await;
    assert_eq!(logs()[1]["data"]["message"], "[secret]");
    server.end().await;
}

#[tokio::test]
async fn invalid_steps_are_refused() {
    let folder = Folder::new();
    let config = served(&folder);
    let server = Server::start(&["--config", &config]).await;
    let names: Vec<String> =
        server.client.peer().list_all_tools().await.expect("a list").into_iter().map(|tool| tool.name.into()).collect();
    assert!(names.contains(&"codecall_step".to_owned()), "{names:?}");
    let ask = |request: Value| server.call("codecall.step", request);
    let first = ask(json!({"code": SEQUENTIAL, "tools": tools()})).await.expect("an answer");
    let step = data(&first);
    let again = |code: &str, token: &Value, result: Value| {
        ask(
            json!({"code": code, "tools": tools(), "token": token, "results": [{"id": step["calls"][0]["id"], "result": result}]}),
        )
    };
    let resumed = again(SEQUENTIAL, &step["token"], json!([{"title": "one"}])).await.expect("an answer");
    assert_eq!(data(&resumed)["calls"][0]["input"]["query"], "news in the US today, not one");
    let changed = again(PARALLEL, &step["token"], json!([])).await.expect("an answer");
    assert_eq!(changed.is_error, Some(true));
    assert_eq!(
        (&data(&changed)["status"], &data(&changed)["error"]["code"]),
        (&json!("diverged"), &json!("REPLAY_MISMATCH"))
    );
    let failed = again(SEQUENTIAL, &step["token"], json!([])).await.expect("an answer");
    assert_eq!((failed.is_error, &data(&failed)["outcome"]["status"]), (Some(true), &json!("runtime_error")));
    let mut forged = step["token"].as_str().expect("a text").to_owned();
    let at = forged.len() / 2;
    forged.replace_range(at..=at, if &forged[at..=at] == "A" { "B" } else { "A" });
    for (request, problem) in [
        (json!({"code": SEQUENTIAL, "tools": tools(), "token": forged}), "was not issued here, or was changed"),
        (json!({"cod": "1"}), "unknown key 'cod'; did you mean 'code'?"),
        (json!({"code": "1", "tools": [{"name": "a_b"}, {"name": "a-b"}]}), "would both be the function aB"),
        (json!({"code": "1", "limits": {"timeout": 1}}), "unknown key 'timeout'; did you mean 'timeoutMs'?"),
    ] {
        let answer = ask(request).await.expect("an answer");
        assert_eq!(answer.is_error, Some(true));
        let message = text(&answer);
        assert!(message.contains(problem) && message.contains("Expected { code: string, "), "{message}");
    }
    server.end().await;
    let plain = Server::start(&[]).await;
    let names = plain.client.peer().list_all_tools().await.expect("a list");
    assert!(names.iter().all(|tool| tool.name != "codecall_step"));
    assert!(plain.call("codecall_step", json!({"code": "1"})).await.is_err(), "it is off unless asked for");
    plain.end().await;
}

const SHOP: &str = "const { users: all } = await users.list({ limit: 3 });
const orders = await Promise.all(all.map((user) => callTool('orders:list', { userId: user.id })));
try { await users.get({ id: 'nobody' }) } catch (error) { console.warn(error.code, getTool('users:get').name) }
return { n: orders.length, at: Date.now(), lucky: Math.random() };";

#[tokio::test]
async fn a_recorded_run_is_replayed() {
    let folder = Folder::new();
    let (script, journal) = (folder.file("shop.js", SHOP), folder.path("shop.journal.json"));
    let ran = codecall(&["run", &script, "--demo", "--record", &journal]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let recording: Value = serde_json::from_str(&std::fs::read_to_string(&journal).expect("a file")).expect("JSON");
    let mut printed = ran.json();
    let calls = printed.as_object_mut().expect("an object").shift_remove("calls");
    assert_eq!(calls.and_then(|calls| calls.as_array().map(Vec::len)), Some(5), "the outcome has none");
    assert_eq!((&recording["version"], &recording["outcome"]), (&json!(1), &printed));
    let calls: Vec<usize> = recording["rounds"]
        .as_array()
        .expect("rounds")
        .iter()
        .map(|round| round["calls"].as_array().map_or(0, Vec::len))
        .collect();
    assert_eq!((calls[0], calls.iter().sum::<usize>()), (1, 5), "{calls:?}");
    assert_eq!(std::fs::read_dir(folder.path("")).expect("a folder").count(), 2, "nothing is left beside it");

    let played = codecall(&["replay", &script, "--journal", &journal]).await;
    assert_eq!((played.code, played.stderr.as_str()), (Some(0), ""), "{played:?}");
    let lines = played.json_lines();
    let (end, rounds) = lines.split_last().expect("lines");
    assert_eq!(end, &json!({"status": "done", "outcome": printed, "asRecorded": true}));
    for (round, recorded) in rounds.iter().zip(recording["rounds"].as_array().expect("rounds")) {
        assert_eq!((&round["calls"], &round["answers"]), (&recorded["calls"], &recorded["answers"]));
    }
    assert_eq!(rounds.len(), calls.len());

    // Another spelling of the names is another script, and the same calls.
    let respelled = SHOP.replace("users.list(", "callTool('users.list', ").replace("'orders:list'", "'orders_list'");
    let respelled = respelled.replace("getTool('users:get')", "getTool('users.get')");
    let mut same = recording.clone();
    let digest =
        agentscript::stateless::Journal::new("x", 0, &respelled, &agentscript::stateless::StepOptions::default());
    same["script"] = digest.script.as_str().into();
    let (script_file, journal_file) =
        (folder.file("respelled.js", &respelled), folder.file("same.json", same.to_string()));
    let replayed = codecall(&["replay", &script_file, "--journal", &journal_file]).await;
    let end = replayed.json_lines().pop().expect("a line");
    assert_eq!((replayed.code, &end["asRecorded"]), (Some(0), &json!(true)), "{replayed:?}");

    // Another script, another input, another answer, a missing end.
    let other = folder.file("other.js", SHOP.replace("limit: 3", "limit: 4"));
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut changed = recording.clone();
        change(&mut changed);
        folder.file("changed.json", changed.to_string())
    };
    let diverged = codecall(&["replay", &other, "--journal", &journal]).await;
    let end = diverged.json_lines().pop().expect("a line");
    assert_eq!((diverged.code, &end["status"], &end["round"]), (Some(1), &json!("diverged"), &Value::Null));
    let file = changed(&|journal| journal["rounds"][0]["calls"][0]["input"] = json!({"limit": 5}));
    let diverged = codecall(&["replay", &script, "--journal", &file, "--json"]).await;
    let end = diverged.json_lines().pop().expect("a line");
    assert_eq!((diverged.code, &end["round"], &end["call"]), (Some(1), &json!(0), &json!(0)));
    let message = end["error"]["message"].as_str().expect("a text");
    assert!(
        message.contains(r#"'users:list' with {"limit":5}"#) && message.contains(r#"'users:list' with {"limit":3}"#),
        "{message}"
    );
    let file = changed(&|journal| journal["rounds"][0]["answers"][0]["result"] = json!({"users": []}));
    let diverged = codecall(&["replay", &script, "--journal", &file]).await;
    assert_eq!(
        (diverged.code, &diverged.json_lines().pop().expect("a line")["call"]),
        (Some(1), &json!(1)),
        "{diverged:?}"
    );
    let file = changed(&|journal| {
        journal["rounds"].as_array_mut().expect("rounds").truncate(1);
        journal["rounds"][0]["answers"] = json!([]);
    });
    let waiting = codecall(&["replay", &script, "--journal", &file]).await;
    assert_eq!((waiting.code, waiting.json_lines().pop()), (Some(1), Some(json!({"status": "calls", "waiting": [0]}))));
    let strict = codecall(&["replay", &script, "--journal", &journal, "--max-steps", "5"]).await;
    let end = strict.json_lines().pop().expect("a line");
    assert_eq!(
        (strict.code, &end["outcome"]["error"]["code"], &end["asRecorded"]),
        (Some(1), &json!("STEP_LIMIT"), &json!(false))
    );
}

#[tokio::test]
async fn runs_that_fail_are_recorded_too() {
    let folder = Folder::new();
    let journal = folder.path("a.json");
    for (script, status, played) in [
        ("await users.get({ id: 'nobody' })", "tool_error", "done"),
        ("return nothing.here", "runtime_error", "done"),
        ("return (", "syntax_error", "done"),
        ("await users.list({}); await new Promise(() => {})", "runtime_error", "deadlock"),
    ] {
        let file = folder.file("a.js", script);
        let ran = codecall(&["run", &file, "--demo", "--record", &journal]).await;
        assert_eq!((ran.code, &ran.json()["status"]), (Some(1), &json!(status)), "{ran:?}");
        let replayed = codecall(&["replay", &file, "--journal", &journal]).await;
        let end = replayed.json_lines().pop().expect("a line");
        assert_eq!((replayed.code, &end["status"]), (Some(1), &json!(played)), "{replayed:?}");
        assert!(played != "done" || end["asRecorded"] == true, "{end}");
    }
    let typed = folder.file(
        "typed.ts",
        "const n: number = codecallContext.n as number; return n + (await users.list({})).users.length",
    );
    let ran = codecall(&["run", &typed, "--demo", "--record", &journal, "--context", "{ \"n\": 1 }"]).await;
    let replayed = codecall(&["replay", &typed, "--journal", &journal]).await;
    assert_eq!((ran.code, replayed.code), (Some(0), Some(0)), "{replayed:?}");
}

/// A recorded run has the same limits, allow lists and results as any other.
#[tokio::test]
async fn recording_does_not_change_a_run() {
    let folder = Folder::new();
    let journal = folder.path("a.json");
    let config = folder.file("c.toml", "[includeTools]\ndeny = [\"orders:*\"]\n[vm]\nmaxToolCalls = 3\n");
    for script in [
        "return (await users.list({ limit: 2 })).users",
        "return await callTool('orders:list', {}, { throwOnError: false })",
        "for (let i = 0; i < 9; i++) await users.list({}); return 1",
        "while (true) {}",
        "await callTool('codecall:execute', {})",
        "try { await callTool('users:gte', {}) } catch {} await callTool('users:get', {})",
        "console.log(1); return await Promise.all([1, 2].map((limit) => users.list({ limit })))",
    ] {
        let file = folder.file("a.js", script);
        let plain = codecall(&["run", &file, "--demo", "--config", &config]).await;
        let recorded = codecall(&["run", &file, "--demo", "--config", &config, "--record", &journal]).await;
        let ends = |ran: &Finished| (ran.code, ran.without_durations());
        assert_eq!(ends(&recorded), ends(&plain), "{script}");
        let replayed = codecall(&["replay", &file, "--journal", &journal, "--config", &config]).await;
        assert_eq!(replayed.json_lines().pop().expect("a line")["asRecorded"], true, "{script}: {replayed:?}");
        assert_eq!(replayed.code, plain.code);
    }
}

/// Takes a step in this process, for the journals of clients.
fn stepped(request: &Value) -> Value {
    let request: Evaluate = serde_json::from_value(request.clone()).expect("a request");
    let config = StatelessConfig::default();
    let evaluation = request.run(agentscript::Policy::default(), &config, &Evaluator::default()).expect("a step");
    evaluation.into_json(&config)
}

#[tokio::test]
async fn journals_of_clients_are_replayed() {
    let folder = Folder::new();
    let (script, tools_file) = (folder.file("a.js", PARALLEL), folder.file("tools.json", tools().to_string()));
    let first = stepped(&json!({"code": PARALLEL, "tools": tools()}));
    let token = first["token"].as_str().expect("a token");
    let waiting = codecall(&["replay", &script, "--journal", token, "--tools", &tools_file]).await;
    let lines = waiting.json_lines();
    // The token has digests; the script provides the inputs.
    assert_eq!(
        lines[0]["calls"][1],
        json!({"call": 1, "tool": "web_search", "input": {"query": "international affairs news"}})
    );
    assert_eq!((waiting.code, &lines[lines.len() - 1]), (Some(1), &json!({"status": "calls", "waiting": [0, 1]})));
    let blind = codecall(&["replay", &script, "--journal", token]).await;
    assert!(blind.code == Some(1) && blind.stderr.contains("--tools"), "{blind:?}");

    let ids = [&first["calls"][0]["id"], &first["calls"][1]["id"]];
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is new?"},
        {"role": "code", "id": first["id"], "code": PARALLEL},
        first["messages"][0],
        {"role": "tool", "tool_call_id": ids[1], "content": "[]"},
        {"role": "tool", "tool_call_id": ids[0], "content": "{\"error\": {\"message\": \"no net\", \"code\": \"OFFLINE\"}}"},
        {"role": "code_result", "id": first["id"], "result": {"status": "error", "error": {}}},
        {"role": "assistant", "content": "Sorry."},
    ]);
    let history = folder.file("history.json", messages.to_string());
    let played = codecall(&["replay", &script, "--journal", &history, "--tools", &tools_file]).await;
    let lines = played.json_lines();
    assert_eq!(
        lines[0]["answers"],
        json!([{"call": 1, "result": []}, {"call": 0, "error": {"message": "no net", "code": "OFFLINE"}}])
    );
    assert_eq!((played.code, &lines[1]["outcome"]["error"]["code"]), (Some(1), &json!("OFFLINE")), "{played:?}");

    let signed = folder.file("c.toml", "[stateless]\nkey = \"a key that nobody can guess\"\n");
    let config = StatelessConfig { key: Some("a key that nobody can guess".into()), ..StatelessConfig::default() };
    let request: Evaluate =
        serde_json::from_value(json!({"code": "return await get({ n: 1 })", "tools": [{"name": "get"}]}))
            .expect("a request");
    let evaluation = request.run(agentscript::Policy::default(), &config, &Evaluator::default()).expect("a step");
    let step = evaluation.into_json(&config);
    let token = folder.file("token.txt", format!("{}\n", step["token"].as_str().expect("a token")));
    let script = folder.file("b.js", "return await get({ n: 1 })");
    let refused = codecall(&["replay", &script, "--journal", &token]).await;
    assert!(refused.code == Some(2) && refused.stderr.contains("--config"), "{refused:?}");
    let read = codecall(&["replay", &script, "--journal", &token, "--config", &signed]).await;
    assert_eq!(read.json_lines()[0]["calls"][0], json!({"call": 0, "tool": "get", "input": {"n": 1}}));
}

/// A client that may not write a colon in the name of a tool writes another spelling into its history.
#[tokio::test]
async fn a_history_may_spell_names_in_another_way() {
    for (tool, name, is_same) in [
        ("users:list", "users:list", true),
        ("users:list", "users.list", true),
        ("users:list", "users_list", true),
        ("users:list", "users_lists", false),
        ("users:list", "user:slist", false),
        ("users:list", "userslist", false),
        ("users:get.all", "users_get_all", true),
        ("users:get.all", "users.get.all", true),
        ("users:get_all", "users_get:all", false),
    ] {
        let code = format!("const all = await callTool('{tool}', {{}}); return all.length");
        let tools = json!([{"name": tool, "inputSchema": {"type": "object"}}]);
        let call = json!({"id": "c_0", "type": "function", "function": {"name": name, "arguments": "{}"}});
        let messages = json!([
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c_0", "content": "[1, 2]"},
        ]);
        let answer = stepped(&json!({"code": code, "id": "c", "tools": tools, "messages": messages}));
        match is_same {
            true => assert_eq!(answer["outcome"]["result"], 2, "{name}: {answer}"),
            false => assert_eq!(answer["error"]["code"], "REPLAY_MISMATCH", "{name}: {answer}"),
        }
    }
}

#[tokio::test]
async fn wrong_arguments_of_record_and_replay() {
    let folder = Folder::new();
    let (a, b) = (folder.file("a.js", "return 1"), folder.file("b.js", "return 2"));
    let (journal, nowhere) = (folder.path("j.json"), folder.path("nowhere/j.json"));
    let (json, old) = (folder.file("x.json", "{\"a\": 1}"), folder.file("old.json", "{\"version\": 9}"));
    let (garbage, roles) =
        (folder.file("g.txt", "hello"), folder.file("m.json", "[{\"role\": \"tool\", \"content\": \"\"}]"));
    let recorded = folder.path("r.json");
    assert_eq!(codecall(&["run", &a, "--record", &recorded]).await.code, Some(0));
    let dir = folder.path("");
    for (words, part) in [
        (&["run", &a, &b, "--record", &journal][..], "several FILEs"),
        (&["run", "--batch", &dir, "--record", &journal], "cannot be used with"),
        (&["run", &a, "--dry-run", "--record", &journal], "cannot be used with"),
        (&["run", &a, "--record", &nowhere], "cannot be written"),
        (&["replay", &a], "--journal <JOURNAL>"),
        (&["replay", &a, "--journal", &nowhere], "a token (ccj1.…)"),
        (&["replay", &a, "--journal", &garbage], "neither a token nor JSON"),
        (&["replay", &a, "--journal", &json], "'version' must be 1"),
        (&["replay", &a, "--journal", &old], "'version' must be 1"),
        (&["replay", &a, "--journal", &roles], "messages[0]"),
        (&["replay", &a, "--journal", "ccj1.AAAA"], "the token is damaged"),
        (&["replay", &a, "--journal", "ccj9.AAAA"], "another version"),
        (&["replay", &a, "--journal", &recorded, "--tools", &json], "in the file already"),
        (&["replay", &nowhere, "--journal", &recorded], "No such file"),
    ] {
        let ran = codecall(words).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{words:?} {ran:?}");
        assert!(ran.stderr.contains(part), "{words:?} says {}", ran.stderr);
    }
    assert!(!std::path::Path::new(&journal).exists(), "nothing was recorded");
}

/// No file contains secrets of the configuration, wherever the script got them.
#[tokio::test]
async fn recordings_hold_no_secrets() {
    let folder = Folder::new();
    let config = folder.file("c.json", r#"{"mcpServers": {"x": {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer s3cret-word-1"}}}}"#);
    let script = folder.file("a.js", "console.log('s3cret-word-1'); return await callTool('users:get', { id: 's3cret-word-1' }, { throwOnError: false })");
    let journal = folder.path("j.json");
    codecall(&["run", &script, "--demo", "--config", &config, "--record", &journal]).await;
    let text = std::fs::read_to_string(&journal).expect("a file");
    assert!(text.contains("[secret]") && !text.contains("s3cret-word"), "{text}");
}

#[tokio::test]
async fn a_thousand_calls_one_after_the_other() {
    let folder = Folder::new();
    let script = folder
        .file("a.js", "let n = 0; for (let i = 0; i < 1000; i++) n += (await callTool('n:get', { i })).n; return n");
    let mocks =
        folder.file("m.json", r#"{"tools": [{"name": "n:get", "responses": [{"input": null, "output": {"n": 2}}]}]}"#);
    let journal = folder.path("j.json");
    let ran =
        codecall(&["run", &script, "--preset", "experimental", "--mock-tools", &mocks, "--record", &journal]).await;
    let answer = ran.json();
    let listed = answer["calls"].as_array().map(Vec::len);
    assert_eq!((&answer["result"], listed, &answer["omittedCalls"]), (&json!(2000), Some(100), &json!(900)));
    let played = codecall(&["replay", &script, "--preset", "experimental", "--journal", &journal]).await;
    assert_eq!((played.code, played.json_lines().len()), (Some(0), 1001));
}

/// The script has two names. The history has it by either.
#[tokio::test]
async fn a_script_by_its_other_name() {
    let folder = Folder::new();
    let config =
        json!({"stateless": {"enabled": true}, "store": {"path": folder.path("codecall.db")}, "history": "all"});
    let config = folder.file("config.json", config.to_string());
    let server = crate::model_server::HttpProcess::start(&["--config", &config]).await;
    let step = |request: Value| {
        let url = server.url.clone();
        async move { crate::model_server::post_json(&url, "/v1/evaluate", &request).await }
    };
    for name in ["code", "script"] {
        let (status, answer) = step(json!({name: format!("return '{name}'"), "tools": []})).await;
        assert_eq!((status, &answer["outcome"]["result"]), (200, &json!(name)), "{answer}");
    }
    let (status, answer) = step(json!({"code": "return 1", "script": "return 1", "tools": []})).await;
    assert_eq!(status, 400, "{answer}");
    assert!(answer.to_string().contains("give either 'code' or 'script', not both"), "{answer}");
    assert_eq!(server.end().await, Some(0));
    let listed = codecall(&["history", "--json", "--config", &config]).await;
    let titles: Vec<String> = listed.json_lines().iter().map(|run| run["title"].to_string()).collect();
    assert_eq!(titles, ["\"return 'code'\"", "\"return 'script'\""], "{listed:?}");
}
