use super::*;
use agentscript::Policy;
use agentscript::stateless::{Journal, Step, StepOptions, step};
use codecall_config::StatelessConfig;
use serde_json::{Value, json};
use std::sync::Arc;

fn evaluate(request: Value) -> Result<Value, String> {
    let request: Evaluate = serde_json::from_value(request).map_err(|error| error.to_string())?;
    let config = StatelessConfig::default();
    let evaluation = request.run(Policy::default(), &config, &Evaluator::default())?;
    Ok(evaluation.into_json(&config))
}

fn tools() -> Value {
    json!([
        {"type": "function", "function": {
            "name": "web_search",
            "description": "Search the web",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        }},
        {"name": "list-users", "inputSchema": {"type": "object"}},
    ])
}

const PARALLEL: &str = "async function main() {
  const [us, france] = await Promise.all([webSearch('news US today'), webSearch({ query: 'actualités' })]);
  return { us, france };
}";

const SEQUENTIAL: &str = "async function main() {
  const us = await webSearch({ query: 'news US today' });
  const france = await webSearch({ query: 'actualités' });
  return { us, france };
}";

/// Steps through a run by its history of messages alone. Returns the history.
fn run_by_messages(code: &str, id: &str) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    loop {
        let step = evaluate(json!({"code": code, "id": id, "tools": tools(), "messages": messages})).expect("a step");
        let new = step["messages"].as_array().expect("messages").clone();
        messages.extend(new.iter().cloned());
        if step["status"] == "done" {
            return messages;
        }
        for call in new[0]["tool_calls"].as_array().expect("calls") {
            let arguments: Value =
                serde_json::from_str(call["function"]["arguments"].as_str().expect("text")).expect("JSON");
            let content =
                json!([{"title": format!("about {}", arguments["query"].as_str().expect("a query"))}]).to_string();
            messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": content}));
        }
    }
}

fn roles(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["role"].as_str().expect("a role")).collect()
}

#[test]
fn calls_at_the_same_time_are_one_message() {
    let messages = run_by_messages(PARALLEL, "code_1");
    assert_eq!(roles(&messages), ["assistant", "tool", "tool", "code_result"]);
    assert_eq!(
        messages[0],
        json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": "code_1_0", "type": "function", "function": {"name": "web_search", "arguments": "{\"query\":\"news US today\"}"}},
            {"id": "code_1_1", "type": "function", "function": {"name": "web_search", "arguments": "{\"query\":\"actualités\"}"}},
        ]})
    );
    let data = json!({"us": [{"title": "about news US today"}], "france": [{"title": "about actualités"}]});
    assert_eq!(
        messages[3],
        json!({"role": "code_result", "id": "code_1", "result": {"status": "success", "data": data}})
    );
}

#[test]
fn calls_after_each_other_are_two() {
    let messages = run_by_messages(SEQUENTIAL, "code_1");
    assert_eq!(roles(&messages), ["assistant", "tool", "assistant", "tool", "code_result"]);
    assert_eq!(messages[2]["tool_calls"][0]["id"], "code_1_1");
}

#[test]
fn tokens_carry_all_that_is_needed() {
    let first = evaluate(json!({"code": SEQUENTIAL, "tools": tools()})).expect("a step");
    let id = first["id"].as_str().expect("an id");
    let own = CodeId::from_text(id).unix_ms().expect("the time is in the name");
    assert!(own > 1_700_000_000_000, "{own}");
    let call = first["calls"][0]["id"].clone();
    assert_eq!(first["calls"][0]["input"], json!({"query": "news US today"}));
    let failed = evaluate(
        json!({"code": SEQUENTIAL, "tools": tools(), "token": first["token"], "results": [{"id": call, "error": {"message": "no net", "code": "OFFLINE"}}]}),
    );
    let failed = failed.expect("a step");
    assert_eq!(failed["outcome"]["status"], "tool_error");
    assert_eq!(failed["outcome"]["error"]["code"], "OFFLINE");
    assert_eq!(failed["messages"][0]["result"]["status"], "error");
    let resumed = evaluate(
        json!({"code": SEQUENTIAL, "tools": tools(), "token": first["token"], "results": [{"id": call, "result": null}]}),
    );
    assert_eq!(resumed.expect("a step")["calls"][0]["input"], json!({"query": "actualités"}));
    let other = evaluate(
        json!({"code": PARALLEL, "tools": tools(), "token": first["token"], "results": [{"id": call, "result": 1}]}),
    );
    let other = other.expect("a step");
    assert_eq!((&other["status"], &other["error"]["code"]), (&json!("diverged"), &json!("REPLAY_MISMATCH")));
}

#[test]
fn other_spellings_of_messages() {
    let messages = json!([
        {"role": "assistant", "content": "", "toolCalls": [{"id": "x9", "type": "function", "index": 0, "function": {"name": "web_search", "arguments": {"query": "news US today"}}}]},
        {"role": "tool", "toolCallId": "x9", "content": [{"type": "text", "text": "plain "}, {"type": "text", "text": "text"}]},
    ]);
    let step = evaluate(json!({"code": SEQUENTIAL, "id": "JZsSpZjh0", "tools": tools(), "messages": messages}))
        .expect("a step");
    assert_eq!(step["calls"][0]["id"], "JZsSpZjh0_1");
    let code = "try { return await webSearch('q') } catch (e) { return [e.message, e.code] }";
    for (message, expected) in [
        (json!({"content": "{\"error\":\"quota\"}"}), json!(["quota", "TOOL_EXECUTION_ERROR"])),
        (json!({"content": "broken", "is_error": true}), json!(["broken", "TOOL_EXECUTION_ERROR"])),
        (json!({"content": "{\"error\":{\"message\":\"m\",\"code\":\"C\"}}"}), json!(["m", "C"])),
        (json!({"content": "{\"error\":null,\"rows\":[]}"}), json!({"error": null, "rows": []})),
        (json!({"content": "12345678901234567890.0"}), json!("12345678901234567890.0")),
        (json!({"content": "42"}), json!(42)),
    ] {
        let mut answer = json!({"role": "tool", "tool_call_id": "a"});
        for (key, value) in message.as_object().expect("an object") {
            answer[key] = value.clone();
        }
        let call = json!({"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "web_search", "arguments": "{ \"query\" : \"q\" }"}}]});
        let done =
            evaluate(json!({"code": code, "id": "c", "tools": tools(), "messages": [call, answer]})).expect("a step");
        assert_eq!(done["outcome"]["result"], expected, "{message}");
    }
}

#[test]
fn invalid_requests_are_refused() {
    let call = json!({"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "web_search", "arguments": "{}"}}]});
    let answer = json!({"role": "tool", "tool_call_id": "a", "content": "1"});
    for (request, problem) in [
        (json!({"code": " "}), "'code' is empty"),
        (json!({"code": "1", "tools": [{}]}), "tools[0]: expected"),
        (json!({"code": "1", "tools": [{"name": "x", "parameters": 1}]}), "tools[0]: the schema must be an object"),
        (
            json!({"code": "1", "tools": [{"name": "a_b"}, {"name": "a-b"}]}),
            "the tools 'a_b' and 'a-b' would both be the function aB",
        ),
        (json!({"code": "1", "results": [{"id": "x"}]}), "'results' need the 'token'"),
        (json!({"code": "1", "token": "x", "messages": []}), "not both"),
        (json!({"code": "1", "token": "nonsense"}), "'token': the token has another format"),
        (
            json!({"code": "1", "messages": [{"role": "user", "content": "hi"}]}),
            "messages[0]: only an assistant's tool calls",
        ),
        (json!({"code": "1", "messages": [{"role": "assistant", "content": "hi"}]}), "messages[0]: only"),
        (json!({"code": "1", "messages": [call, call]}), "messages[1]: 'a' is there twice"),
        (json!({"code": "1", "messages": [call, answer, answer]}), "messages[2]: 'a' is there twice"),
        (
            json!({"code": "1", "messages": [call, {"role": "tool", "tool_call_id": "b", "content": ""}]}),
            "there was no tool call 'b'; there were a",
        ),
        (
            json!({"code": "1", "messages": [{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "x", "arguments": "{"}}]}]}),
            "is not JSON",
        ),
        (json!({"code": "1", "nonsense": 1}), "unknown field"),
    ] {
        let found = evaluate(request.clone()).expect_err("refused");
        assert!(found.contains(problem), "{request}\n{found}");
    }
    let diverged = evaluate(json!({"code": "return 1", "messages": [call]})).expect("a step");
    assert_eq!(diverged["status"], "diverged");
    assert_eq!(diverged["error"]["code"], "REPLAY_MISMATCH");
}

#[test]
fn input_that_does_not_fit_is_a_rejection() {
    let code = "try { await webSearch({ q: 1 }) } catch (e) { return [e.code, e.message] }";
    let done = evaluate(json!({"code": code, "tools": tools()})).expect("a step");
    assert_eq!(done["outcome"]["result"][0], "INVALID_INPUT");
    let code = "const tries = await Promise.allSettled([callTool('nope', {}), listUsers({})]); return tries.map((t) => t.reason?.message ?? t.value)";
    let step = evaluate(json!({"code": code, "tools": tools()})).expect("a step");
    assert_eq!(step["calls"].as_array().expect("calls").len(), 1);
    let stuck = evaluate(json!({"code": "await new Promise(() => {})"})).expect("a step");
    assert_eq!(stuck["status"], "deadlock");
}

#[test]
fn ids_of_runs() {
    let id = CodeId::new();
    assert_eq!(id.as_str().len(), 21);
    assert_ne!(id, CodeId::new());
    assert_eq!(id.number(&id.call(12)), Some(12));
    for other in ["code_1_0", &format!("{id}_01"), &format!("{id}_"), &format!("{id}")] {
        assert_eq!(id.number(other), None);
    }
    for foreign in ["code_1", "", "JZsSpZjh0", "code_0123456789ABCDEF"] {
        assert_eq!(CodeId::from_text(foreign).unix_ms(), None);
    }
}

#[test]
fn a_result_that_is_nested_too_deeply_is_an_error() {
    let code = "let deep = 1; for (let i = 0; i < 200; i++) deep = [deep]; return deep";
    let done = evaluate(json!({"code": code})).expect("a step");
    assert_eq!(done["outcome"]["error"]["code"], "SERIALIZATION_ERROR", "{done}");
}

/// Runs the samples of the page: each request gives the answer after it, and the recording replays to its outcome.
/// `UPDATE=1` rewrites answers, tokens and digests.
#[test]
fn samples_of_the_page_are_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/stateless.md");
    let page = std::fs::read_to_string(path).expect("a page");
    let (mut fresh, mut script, mut last, mut token) = (String::new(), "", Value::Null, String::new());
    let mut samples = Vec::new();
    for (at, part) in page.split("```").enumerate() {
        let part = match part.split_once('\n').filter(|_| at % 2 == 1) {
            Some(("js", body)) => {
                script = body.trim_end();
                part.to_owned()
            }
            Some(("toml", body)) => {
                let secret = |_: &str| Some("a secret of the environment".to_owned());
                let config =
                    codecall_config::Config::parse(body, codecall_config::Format::Toml, &secret).expect("valid");
                let are_set = [config.stateless.key.is_some(), config.model.key.is_some()];
                assert_eq!(are_set.iter().filter(|is_set| **is_set).count(), 1, "{body}");
                part.to_owned()
            }
            Some(("json", body)) => {
                let value: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}\n{body}"));
                let body = if let Some(messages) = value.as_array() {
                    check_history(messages);
                    samples.push("history".to_owned());
                    body.to_owned()
                } else if let Some(digest) = value["script"].as_str() {
                    let own = Journal::new("", 0, script, &StepOptions::default()).script;
                    let body = body.replace(digest, &own);
                    let file = JournalFile::read(&body).expect("a journal");
                    let tools = Arc::new(file.tools.clone().into_directory());
                    match step(script, tools, &file.journal, &StepOptions::default()) {
                        Step::Done(done) => assert_eq!(Some(done.outcome.to_json()), file.outcome),
                        other => panic!("{other:?}"),
                    }
                    samples.push("recording".to_owned());
                    body
                } else if let Some(code) = value["code"].as_str() {
                    assert_eq!(code, script);
                    let old = value["token"].as_str().unwrap_or_default();
                    let body = if old.is_empty() { body.to_owned() } else { body.replace(old, &token) };
                    last = evaluate(serde_json::from_str(&body).expect("JSON")).expect("a step");
                    body
                } else {
                    token = last["token"].as_str().unwrap_or(&token).to_owned();
                    samples.push(last["status"].as_str().unwrap_or_default().to_owned());
                    serde_json::to_string_pretty(&last).expect("JSON") + "\n"
                };
                format!("json\n{body}")
            }
            Some(_) | None => part.to_owned(),
        };
        fresh.push_str(if at > 0 { "```" } else { "" });
        fresh.push_str(&part);
    }
    assert_eq!(samples, ["calls", "calls", "done", "done", "history", "recording"]);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, fresh).expect("the page can be written");
    } else {
        assert!(page == fresh, "docs/reference/stateless.md is out of date: UPDATE=1 cargo test -p codecall stateless");
    }
}

/// The page has a row for every key of a request, and for every status of an answer.
#[test]
fn the_page_names_every_key() {
    let page = include_str!("../../../../docs/reference/stateless.md");
    let unknown =
        serde_json::from_value::<Evaluate>(json!({"code": "1", "\u{1}": 1})).expect_err("unknown").to_string();
    let (_, known) = unknown.split_once("expected one of ").expect("the keys");
    for key in known.split('`').skip(1).step_by(2) {
        assert!(page.contains(&format!("| `{key}`")) || page.contains(&format!(", `{key}` |")), "{key}");
    }
    let schema = crate::meta::find("codecall_step").expect("a tool").output_schema();
    for status in schema["properties"]["status"]["enum"].as_array().expect("statuses") {
        assert!(page.contains(&format!("| `{}` |", status.as_str().expect("a text"))), "{status}");
    }
}

/// Replays the only code block of a history, and compares its result.
fn check_history(messages: &[Value]) {
    let position = |role: &str| messages.iter().position(|message| message["role"] == role).expect("a message");
    let (code, result) = (position("code"), position("code_result"));
    let evaluated = evaluate(json!({
        "code": messages[code]["code"],
        "id": messages[code]["id"],
        "tools": [{"name": "web_search", "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}}}],
        "messages": messages[code + 1..result],
    }));
    assert_eq!(evaluated.expect("a step")["messages"][0], messages[result]);
}
