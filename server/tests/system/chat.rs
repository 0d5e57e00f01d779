//! Chat completions: what the client sees, what the model sees, and that the server keeps no state.

use crate::model_server::*;
use crate::support::*;
use crate::third_party::{client, node_package, python};
use serde_json::{Value, json};
use std::path::Path;
use tokio::process::Command;

const PARALLEL: &str = "async function main() {
  const [sport, world] = await Promise.all([webSearch({ query: 'sport news' }), webSearch({ query: 'world news' })]);
  return { sport, world };
}";
const SEQUENTIAL: &str = "const france = await webSearch('news in France today');
const us = await webSearch({ query: `news in US today, not ${france[0].title}` });
return { france, us };";

fn tools() -> Value {
    let parameters = json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
    json!([{"type": "function", "function": {"name": "web_search", "description": "Search the web", "parameters": parameters}}])
}

/// The result of the client's tool.
fn tool_result(query: &str) -> Value {
    json!([{"title": format!("About {query}")}])
}

/// A configuration with a model server, and the arguments to start with it.
fn words(folder: &Folder, model: &Model, more: &Value) -> Vec<String> {
    let mut config = json!({"model": {"url": model.url, "key": KEY}});
    for (key, value) in more.as_object().expect("an object") {
        match (config.get_mut(key).and_then(Value::as_object_mut), value) {
            (Some(table), Value::Object(value)) => table.extend(value.clone()),
            _ => config[key] = value.clone(),
        }
    }
    vec!["--config".into(), folder.file("config.json", config.to_string())]
}

async fn start(folder: &Folder, model: &Model, more: &Value) -> HttpProcess {
    let words = words(folder, model, more);
    HttpProcess::start(&words.iter().map(String::as_str).collect::<Vec<_>>()).await
}

fn question(messages: &[Value]) -> Value {
    json!({"model": "tiny", "messages": messages, "tools": tools(), "temperature": 0.5})
}

async fn ask(url: &str, question: &Value) -> (u16, Value) {
    post_json(url, "/v1/chat/completions", question).await
}

/// Returns the results of a message's calls.
fn answered(message: &Value, answer: impl Fn(&Value) -> Value) -> Vec<Value> {
    let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
    let answers = calls.iter().map(|call| {
        let arguments = call["function"]["arguments"].as_str().expect("a text");
        let arguments: Value = serde_json::from_str(arguments).expect("JSON");
        json!({"role": "tool", "tool_call_id": call["id"], "content": answer(&arguments).to_string()})
    });
    answers.collect()
}

/// Sends requests until the model gives its final answer. Returns the messages.
async fn converse(url: &str, mut messages: Vec<Value>) -> Vec<Value> {
    loop {
        let (status, answer) = ask(url, &question(&messages)).await;
        assert_eq!(status, 200, "{answer}");
        let message = answer["choices"][0]["message"].clone();
        let is_last = message["tool_calls"].is_null();
        assert_eq!(answer["choices"][0]["finish_reason"], if is_last { "stop" } else { "tool_calls" });
        let answers = answered(&message, |arguments| tool_result(arguments["query"].as_str().expect("a text")));
        messages.push(message);
        messages.extend(answers);
        if is_last {
            return messages;
        }
    }
}

fn user(text: &str) -> Vec<Value> {
    vec![json!({"role": "system", "content": "You know the news."}), json!({"role": "user", "content": text})]
}

/// Returns the result of the last code block that the model got.
fn last_code_result(asked: &Value) -> Value {
    let last = asked["messages"].as_array().expect("messages").last().expect("one");
    assert_eq!(last["role"], "tool");
    serde_json::from_str(last["content"].as_str().expect("a text")).expect("JSON")
}

#[tokio::test]
async fn calls_of_code_are_ordinary_calls() {
    let folder = Folder::new();
    let answers = [
        ModelReply::TextAndCode("Let me look.", PARALLEL),
        ModelReply::Text("Much news."),
        ModelReply::Code(SEQUENTIAL),
        ModelReply::Text("More."),
    ];
    let model = Model::start(answers).await;
    let (url, processes) = one_process_for_each_request(words(&folder, &model, &json!({}))).await;
    let mut messages = converse(&url, user("Compare the news")).await;
    messages.push(json!({"role": "user", "content": "And abroad?"}));
    let messages = converse(&url, messages).await;
    assert_eq!(*processes.lock().expect("not poisoned"), 5, "each request has a process of its own");

    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().expect("a role")).collect();
    assert_eq!(
        roles.join(" "),
        "system user assistant tool tool assistant user assistant tool assistant tool assistant"
    );
    assert_eq!(messages[2]["content"], "Let me look.");
    let call = &messages[2]["tool_calls"][1];
    assert_eq!(call["function"], json!({"name": "web_search", "arguments": "{\"query\":\"world news\"}"}));

    let asked = model.requests();
    assert_eq!(asked.len(), 4, "the model is not asked while code runs");
    let functions: Vec<&Value> = asked.iter().map(|asked| &asked["tools"][0]["function"]["name"]).collect();
    assert_eq!(functions, ["run_code"; 4]);
    assert_eq!(asked[0]["temperature"], 0.5);
    let system = asked[0]["messages"][0]["content"].as_str().expect("a text");
    assert!(system.starts_with("You know the news.\n\n"), "{system}");
    assert!(
        system.contains(
            "/** Search the web */\ndeclare function webSearch(input: {\n  query: string;\n}): Promise<unknown>;"
        ),
        "{system}"
    );

    // What the model sees of both blocks, which were replayed from the ids of their calls.
    let seen = asked[3]["messages"].as_array().expect("messages");
    let roles: Vec<&str> = seen.iter().map(|message| message["role"].as_str().expect("a role")).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "user", "assistant", "tool"]);
    let code: Value = serde_json::from_str(seen[2]["tool_calls"][0]["function"]["arguments"].as_str().expect("a text"))
        .expect("JSON");
    assert_eq!((&seen[2]["content"], &code["code"]), (&json!("Let me look."), &json!(PARALLEL)));
    assert_eq!(seen[2]["tool_calls"][0]["id"], seen[3]["tool_call_id"]);
    let result: Value = serde_json::from_str(seen[3]["content"].as_str().expect("a text")).expect("JSON");
    assert_eq!(
        result,
        json!({"status": "success", "data": {"sport": tool_result("sport news"), "world": tool_result("world news")}})
    );
    let us = tool_result("news in US today, not About news in France today");
    assert_eq!(
        last_code_result(&asked[3]),
        json!({"status": "success", "data": {"france": tool_result("news in France today"), "us": us}})
    );
}

/// Replaces the ids in messages, which are different each time, by numbers.
fn plain(messages: &[Value]) -> Value {
    let mut text = Value::from(messages).to_string();
    let mut blocks = 0;
    while let Some(at) = text.find("\"code_0") {
        let name = text[at + 1..at + 22].to_owned();
        blocks += 1;
        text = text.replace(&name, &format!("block{blocks}"));
    }
    serde_json::from_str(&text).expect("JSON")
}

#[tokio::test]
async fn code_messages_are_returned_on_request() {
    let folder = Folder::new();
    let model = Model::start([ModelReply::Code(PARALLEL), ModelReply::Text("Much news.")]).await;
    let (url, _) = one_process_for_each_request(words(&folder, &model, &json!({}))).await;
    let mut messages = user("Compare the news");
    let mut asked = question(&messages);
    asked["codecall"] = json!({"code_messages": true});
    let (_, first) = ask(&url, &asked).await;
    messages.extend(first["codecall"]["messages"].as_array().expect("messages").clone());
    assert_eq!(messages.last(), first["choices"][0]["message"].as_object().map(|_| &first["choices"][0]["message"]));
    messages
        .extend(answered(&messages[3].clone(), |arguments| tool_result(arguments["query"].as_str().expect("a text"))));
    asked["messages"] = messages.clone().into();
    let (_, second) = ask(&url, &asked).await;
    messages.extend(second["codecall"]["messages"].as_array().expect("messages").clone());
    let call = |number: u32, query: &str| {
        let arguments = json!({"query": query}).to_string();
        json!({"id": format!("block1_{number}"), "type": "function", "function": {"name": "web_search", "arguments": arguments}})
    };
    let expected = json!([
        {"role": "code", "id": "block1", "code": PARALLEL},
        {"role": "assistant", "content": "", "tool_calls": [call(0, "sport news"), call(1, "world news")]},
        {"role": "tool", "tool_call_id": "block1_0", "content": tool_result("sport news").to_string()},
        {"role": "tool", "tool_call_id": "block1_1", "content": tool_result("world news").to_string()},
        {"role": "code_result", "id": "block1", "result": {"status": "success", "data": {"sport": tool_result("sport news"), "world": tool_result("world news")}}},
        {"role": "assistant", "content": "Much news."},
    ]);
    assert_eq!(plain(&messages[2..]), expected);
    // The next request gives the model that result.
    messages.push(json!({"role": "user", "content": "Thanks"}));
    asked["messages"] = messages.into();
    let model = Model::start([ModelReply::Text("You are welcome.")]).await;
    let server = start(&folder, &model, &json!({"model": {"codeMessages": true}})).await;
    asked.as_object_mut().expect("an object").remove("codecall");
    let (_, third) = ask(&server.url, &asked).await;
    assert_eq!(third["codecall"]["messages"], json!([{"role": "assistant", "content": "You are welcome."}]));
    assert_eq!(model.requests()[0]["messages"].as_array().map(Vec::len), Some(6));
}

#[tokio::test]
async fn other_spellings_of_messages_are_accepted() {
    // Ids of calls and keys in other spellings, as other clients may write them.
    let folder = Folder::new();
    let model = Model::start([ModelReply::Text("There.")]).await;
    let server = start(&folder, &model, &json!({})).await;
    let messages = json!([
        {"role": "user", "content": "Compare the news"},
        {"role": "code", "id": "UB4cbzkvQ", "code": SEQUENTIAL},
        {"role": "assistant", "content": "", "toolCalls": [{"type": "function", "id": "3b3c", "index": 0, "function": {"name": "web_search", "arguments": {"query": "news in France today"}}}]},
        {"role": "tool", "content": "[{\"title\":\"Grèves\"}]", "toolCallId": "3b3c"},
        {"role": "assistant", "content": "", "toolCalls": [{"type": "function", "id": "0634", "index": 1, "function": {"name": "web_search", "arguments": "{\"query\": \"news in US today, not Grèves\"}"}}]},
        {"role": "tool", "content": "[]", "toolCallId": "0634"},
    ]);
    let (status, answer) = ask(&server.url, &question(messages.as_array().expect("a list"))).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        last_code_result(&model.requests()[0]),
        json!({"status": "success", "data": {"france": [{"title": "Grèves"}], "us": []}})
    );
    assert_eq!(model.requests()[0]["messages"][2]["tool_calls"][0]["id"], "UB4cbzkvQ");
}

#[tokio::test]
async fn errors_of_code_go_back_to_the_model() {
    let folder = Folder::new();
    let answers = [
        ModelReply::TextAndCode("One moment.", "const = 1"),
        ModelReply::Code("return await webSerch({ query: 'x' })"),
        ModelReply::Code("return await webSearch({ q: 'x' })"),
        ModelReply::Code("null.length"),
        ModelReply::Code("await new Promise(() => {})"),
        ModelReply::Message(
            json!({"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "run_code", "arguments": "{\"code\": "}}]}),
        ),
        ModelReply::Code("```js\nreturn 6 * 7;\n```"),
        ModelReply::Text("42."),
    ];
    let model = Model::start(answers).await;
    let server = start(&folder, &model, &json!({})).await;
    let (status, answer) = ask(&server.url, &question(&user("How much?"))).await;
    assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &json!("One moment.\n\n42.")));
    assert_eq!(answer["usage"]["total_tokens"], 8 * 110);
    assert_eq!(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 8 * 3);
    let asked = model.requests();
    let errors: Vec<Value> = asked[1..7].iter().map(|asked| last_code_result(asked)["error"].clone()).collect();
    let codes: Vec<&str> = errors.iter().map(|error| error["code"].as_str().expect("a code")).collect();
    assert_eq!(
        codes,
        ["SYNTAX_ERROR", "EXECUTION_ERROR", "INVALID_INPUT", "EXECUTION_ERROR", "EXECUTION_ERROR", "SYNTAX_ERROR"],
        "{errors:?}"
    );
    assert_eq!(errors[0]["location"], json!({"line": 1, "column": 7}));
    assert_eq!(errors[1]["message"], "webSerch is not defined");
    assert_eq!(errors[4]["message"], "The script awaits at line 1 a promise that nothing can settle");
    assert_eq!(last_code_result(&asked[7]), json!({"status": "success", "data": 42}));
}

#[tokio::test]
async fn steps_are_recorded() {
    let folder = Folder::new();
    let model = Model::start([ModelReply::Code(PARALLEL), ModelReply::Text("Much.")]).await;
    let store = json!({"store": {"path": folder.path("codecall.db")}});
    let server = start(&folder, &model, &store).await;
    converse(&server.url, user("Compare the news")).await;
    assert_eq!(server.end().await, Some(0));
    let config = folder.path("config.json");
    let ran = codecall(&["history", "--json", "--config", &config]).await;
    let runs: Vec<(Value, Value, Value)> = ran
        .json_lines()
        .iter()
        .map(|run| (run["kind"].clone(), run["status"].clone(), run["toolCalls"].clone()))
        .collect();
    let step = |calls: u64| (json!("step"), json!("ok"), json!(calls));
    assert_eq!(runs, [step(2), step(0)], "{ran:?}");
}

#[tokio::test]
async fn turns_of_the_model_are_limited() {
    let folder = Folder::new();
    let model = Model::start(vec![ModelReply::Code("return 1"); 4]).await;
    let server = start(&folder, &model, &json!({"model": {"maxTurns": 3}})).await;
    let (status, answer) = ask(&server.url, &question(&user("Go"))).await;
    assert_eq!((status, &answer["error"]["code"]), (502, &json!("MAX_TURNS_EXCEEDED")));
    let choices: Vec<Value> = model.requests().iter().map(|asked| asked["tool_choice"].clone()).collect();
    assert_eq!(choices, [Value::Null, Value::Null, json!("none")], "the last time it may not write code");
    assert_eq!(model.unused_replies(), 1);
}

#[tokio::test]
async fn a_model_may_call_tools_directly() {
    let folder = Folder::new();
    let call = |name: &str, arguments: &str| json!({"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}});
    let one = json!({"role": "assistant", "content": null, "tool_calls": [call("web_search", "{\"query\": \"a\"}")]});
    let two = json!({"role": "assistant", "content": null, "tool_calls": [call("web_search", "{\"query\": \"b\"}"), call("webSearch", "{\"query\": \"c\"}")]});
    let model = Model::start([ModelReply::Message(one), ModelReply::Message(two), ModelReply::Text("There.")]).await;
    let (url, _) = one_process_for_each_request(words(&folder, &model, &json!({}))).await;
    converse(&url, user("Look")).await;
    assert_eq!(last_code_result(&model.requests()[1])["data"], tool_result("a"));
    assert_eq!(last_code_result(&model.requests()[2])["data"], json!([tool_result("b"), tool_result("c")]));
}

#[tokio::test]
async fn changed_histories_are_detected() {
    let folder = Folder::new();
    let model = Model::start([ModelReply::Code(SEQUENTIAL), ModelReply::Text("There.")]).await;
    let server = start(&folder, &model, &json!({})).await;
    let mut messages = user("Compare the news");
    let (_, first) = ask(&server.url, &question(&messages)).await;
    let message = &first["choices"][0]["message"];
    messages.push(message.clone());

    let (status, answer) = ask(&server.url, &question(&messages)).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("CALLS_NOT_ANSWERED")));
    let name = message["tool_calls"][0]["id"].as_str().expect("a name");
    assert!(answer["error"]["message"].as_str().is_some_and(|message| message.contains(name)), "{answer}");

    messages.push(json!({"role": "tool", "tool_call_id": name, "content": "[{\"title\": \"T\"}]"}));
    let mut forged = messages.clone();
    forged[2]["tool_calls"][0]["function"]["arguments"] = "{\"query\": \"news in Germany\"}".into();
    let (status, answer) = ask(&server.url, &question(&forged)).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("REPLAY_MISMATCH")), "{answer}");

    // The same input with other formatting is the same input.
    forged[2]["tool_calls"][0]["function"]["arguments"] = "{ \"query\" : \"news in France to\\u0064ay\" }".into();
    let (status, answer) = ask(&server.url, &question(&forged)).await;
    assert_eq!((status, &answer["choices"][0]["finish_reason"]), (200, &json!("tool_calls")), "{answer}");

    // An id with damaged code is a call that this server does not know: the model server decides.
    let damaged = format!("{}x", &name[..name.len() - 3]);
    let mut forged = messages.clone();
    forged[2]["tool_calls"][0]["id"] = damaged.as_str().into();
    forged[3]["tool_call_id"] = damaged.as_str().into();
    let (status, answer) = ask(&server.url, &question(&forged)).await;
    assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &json!("There.")), "{answer}");
    assert_eq!(model.requests()[1]["messages"][2]["tool_calls"][0]["function"]["name"], "web_search");
}

#[tokio::test]
async fn results_may_be_errors_or_missing() {
    let folder = Folder::new();
    let code = "const late = webSearch('slow').catch((error) => error.message);
        const first = await Promise.race([late, webSearch('fast')]);
        const failed = await webSearch('broken').catch((error) => [error.code, error.message]);
        return { first, failed };";
    let model =
        Model::start([ModelReply::Code(code), ModelReply::Text("There."), ModelReply::Text("Never mind.")]).await;
    let server = start(&folder, &model, &json!({})).await;
    let mut messages = user("Race");
    let (_, first) = ask(&server.url, &question(&messages)).await;
    let calls = first["choices"][0]["message"].clone();
    messages.push(calls.clone());
    let name = |message: &Value, number: usize| message["tool_calls"][number]["id"].clone();
    messages.push(json!({"role": "tool", "tool_call_id": name(&calls, 1), "content": "quick"}));
    let (status, second) = ask(&server.url, &question(&messages)).await;
    assert_eq!(status, 200, "one answer is enough to go on: {second}");
    let calls = second["choices"][0]["message"].clone();
    let mut left = messages.clone();
    messages.push(calls.clone());
    messages.push(json!({"role": "tool", "tool_call_id": name(&calls, 0), "content": "{\"error\": {\"message\": \"no net\", \"code\": \"OFFLINE\"}}"}));
    let (status, _) = ask(&server.url, &question(&messages)).await;
    assert_eq!(status, 200);
    assert_eq!(
        last_code_result(&model.requests()[1]),
        json!({"status": "success", "data": {"first": "quick", "failed": ["OFFLINE", "no net"]}})
    );

    left.push(json!({"role": "user", "content": "Stop that"}));
    let (status, _) = ask(&server.url, &question(&left)).await;
    assert_eq!(status, 200);
    let seen = &model.requests()[2]["messages"];
    let result: Value = serde_json::from_str(seen[3]["content"].as_str().expect("a text")).expect("JSON");
    assert_eq!(result["error"]["code"], "INTERRUPTED");
    assert_eq!(seen[4]["content"], "Stop that");
}

#[tokio::test]
async fn errors_of_the_model_server() {
    let folder = Folder::new();
    let busy = json!({"error": {"message": "Too many requests", "type": "rate_limit_error", "code": "slow_down"}});
    let answers = [
        ModelReply::Error(429, busy.clone()),
        ModelReply::InvalidBody,
        ModelReply::NoResponse,
        ModelReply::Error(500, json!("oops")),
    ];
    let model = Model::start(answers).await;
    let server = start(&folder, &model, &json!({"model": {"timeoutMs": 1000}})).await;
    let asked = question(&user("Hello"));
    let response =
        http_client().post(format!("{}/v1/chat/completions", server.url)).body(asked.to_string()).send().await;
    let response = response.expect("an answer");
    assert_eq!((response.status().as_u16(), response.headers()["retry-after"].to_str().ok()), (429, Some("7")));
    assert_eq!(response.json::<Value>().await.expect("JSON"), busy);
    for (status, code) in [(502, "MODEL_ERROR"), (504, "MODEL_TIMEOUT"), (500, "MODEL_ERROR")] {
        let (got, answer) = ask(&server.url, &asked).await;
        assert_eq!((got, &answer["error"]["code"]), (status, &json!(code)), "{answer}");
    }
    let wrong = start(&folder, &model, &json!({"model": {"key": "sk-another-9876543210"}})).await;
    for streams in [false, true] {
        let mut asked = asked.clone();
        asked["stream"] = streams.into();
        let (status, answer) = ask(&wrong.url, &asked).await;
        assert_eq!((status, &answer["error"]["code"]), (502, &json!("MODEL_KEY_REFUSED")));
        assert!(!answer.to_string().contains("sk-"), "{answer}");
    }
    let nobody = start(&folder, &model, &json!({"model": {"url": "http://127.0.0.1:9/v1"}})).await;
    let (status, answer) = ask(&nobody.url, &asked).await;
    assert_eq!((status, &answer["error"]["code"]), (502, &json!("MODEL_UNREACHABLE")), "{answer}");
    let none = HttpProcess::start(&[]).await;
    let (status, answer) = ask(&none.url, &asked).await;
    assert_eq!((status, &answer["error"]["code"]), (501, &json!("NO_MODEL")), "{answer}");
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    let folder = Folder::new();
    let model = Model::start([]).await;
    let server = start(&folder, &model, &json!({})).await;
    let with = |key: &str, value: Value| {
        let mut asked = question(&user("Hello"));
        asked[key] = value;
        asked
    };
    let twice = json!([{"name": "web_search"}, {"name": "web-search"}]);
    for (asked, problem) in [
        (with("n", json!(2)), "'n' must be 1 where there are tools: code runs in one conversation"),
        (with("messages", json!("Hello")), "'messages' must be a list"),
        (with("tools", json!({})), "'tools' must be a list"),
        (
            with("tools", json!([{"type": "web_search"}])),
            "tools[0]: expected {type: \"function\", function: {name, description?, parameters?}} or {name, description?, inputSchema?, outputSchema?}",
        ),
        (
            with("tools", twice),
            "the tools 'web_search' and 'web-search' would both be the function webSearch; rename one of them",
        ),
        (with("functions", json!([])), "'functions' is not known any more; use 'tools' and 'tool_choice'"),
        (
            with("codecall", json!({"code_message": true})),
            "'codecall': unknown key 'code_message'; did you mean 'code_messages'?",
        ),
        (
            with("messages", json!([{"role": "code", "id": "a"}])),
            "messages[0]: a message of role 'code' has 'id' and 'code', both texts",
        ),
        (
            with("messages", json!([{"role": "code_result", "id": "a", "result": {}}])),
            "messages[0]: a message of role 'code_result' follows the code block with its id",
        ),
        (
            with("messages", json!([{"role": "user", "content": "Hi"}, 5])),
            "messages[1]: a message is an object with 'role'",
        ),
        (
            with(
                "messages",
                json!([
                    {"role": "user", "content": "Go"},
                    {"role": "assistant", "content": "I do."},
                    {"role": "code", "id": "c", "code": "return 1"},
                    {"role": "assistant", "tool_calls": [{"id": "c_0", "function": {"name": "web_search"}}]},
                ]),
            ),
            // The text before the code is a part of its block.
            "messages[3].tool_calls[0]: a tool call needs an id and a function with name and arguments, a JSON object or its text",
        ),
        (json!([1]), "invalid type: sequence, expected a map"),
    ] {
        let (status, answer) = ask(&server.url, &asked).await;
        assert_eq!(status, 400, "{asked}");
        let message = answer["error"]["message"].as_str().expect("a text");
        assert!(message == problem || problem.starts_with("invalid"), "{message}");
        assert_eq!(answer["error"]["type"], "invalid_request_error");
    }
    assert_eq!(model.requests().len(), 0);
}

#[tokio::test]
async fn hostile_histories_are_bounded() {
    let folder = Folder::new();
    let model = Model::start([ModelReply::Code(PARALLEL)]).await;
    // The loops end by time. How many iterations fit into it depends on the machine.
    let endless: u64 = 1 << 50;
    let vm = json!({"preset": "experimental", "timeoutMs": 1000, "maxDurationMs": 2000, "maxIterations": endless, "maxSteps": endless});
    let server = start(&folder, &model, &json!({"vm": vm})).await;
    let (_, first) = ask(&server.url, &question(&user("Go"))).await;
    let name = first["choices"][0]["message"]["tool_calls"][0]["id"].as_str().expect("a name");
    let (run, _) = name.split_once("_0_").expect("code");
    // Three ids of four thousand letters, each with 3 MiB of code.
    let packed = miniz_oxide::deflate::compress_to_vec(" ".repeat(3 << 20).as_bytes(), 9);
    let long = format!("{run}_0_{}", base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, packed));
    let block = |id: &str| json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": {"name": "web_search", "arguments": "{}"}}]});
    let (status, answer) = ask(&server.url, &question(&vec![block(&long); 3])).await;
    assert_eq!(status, 400, "{answer}");
    assert!(
        answer["error"]["message"]
            .as_str()
            .is_some_and(|text| text.starts_with("messages[2]: the conversation holds more than")),
        "{answer}"
    );
    // Endless loops, each of which has to be replayed.
    let endless: Vec<Value> = (0..100)
        .flat_map(|number| {
            [
                json!({"role": "code", "id": format!("c{number}"), "code": "for (;;) {}"}),
                json!({"role": "user", "content": "?"}),
            ]
        })
        .collect();
    let (status, answer) = ask(&server.url, &question(&endless)).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("HISTORY_TOO_LONG")), "{answer}");
}

#[tokio::test]
async fn requests_without_tools_are_forwarded_unchanged() {
    let folder = Folder::new();
    let model = Model::start([ModelReply::Text("Hello, you there."), ModelReply::Text("Hello, you there.")]).await;
    let server = start(&folder, &model, &json!({})).await;
    let mut asked = json!({"model": "tiny", "messages": user("Hello"), "seed": 5});
    let (status, answer) = ask(&server.url, &asked).await;
    assert_eq!((status, &answer["id"]), (200, &json!("chatcmpl-model")));
    assert_eq!(model.requests()[0], asked);
    asked["stream"] = true.into();
    let (status, answer) = ask(&server.url, &asked).await;
    let events = answer.as_str().expect("a stream");
    assert_eq!((status, events.matches("data: ").count()), (200, 6), "{events}");
    assert!(events.ends_with("data: [DONE]\n\n"));
    let models = http_client().get(format!("{}/v1/models", server.url)).send().await.expect("an answer");
    assert_eq!(models.json::<Value>().await.expect("JSON")["data"][0]["id"], "tiny");
}

/// The model's stream comes in pieces of 7 characters, so the key is split over several of them.
#[tokio::test]
async fn a_secret_that_is_split_over_chunks_is_masked() {
    let folder = Folder::new();
    let message = || {
        let text = format!("The key is {KEY}, keep it. The rest of this text is no secret.");
        ModelReply::Message(json!({"role": "assistant", "content": text}))
    };
    let call = json!([{"id": "call_1", "type": "function",
        "function": {"name": "news", "arguments": json!({"query": format!("with {KEY} in it")}).to_string()}}]);
    let calls = ModelReply::Message(json!({"role": "assistant", "content": null, "tool_calls": call}));
    let model = Model::start([message(), message(), calls]).await;
    let server = start(&folder, &model, &json!({})).await;
    let stream = async |asked: Value| {
        let (_, stream) = ask(&server.url, &asked).await;
        let stream = stream.as_str().expect("a stream").to_owned();
        let chunks = stream.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
        let chunks: Vec<Value> = chunks.map(|data| serde_json::from_str(data).expect("JSON")).collect();
        let texts = ["/choices/0/delta/content", "/choices/0/delta/tool_calls/0/function/arguments"];
        let of = |chunk: &Value| {
            texts.map(|text| chunk.pointer(text).and_then(Value::as_str).unwrap_or_default().to_owned()).concat()
        };
        chunks.iter().map(of).collect::<String>()
    };
    let forwarded = json!({"model": "tiny", "messages": user("Hello"), "stream": true});
    let mut with_tools = question(&user("Hello"));
    with_tools["stream"] = true.into();
    let expected = "The key is [secret], keep it. The rest of this text is no secret.";
    for asked in [&forwarded, &with_tools] {
        assert_eq!(stream(asked.clone()).await, expected);
    }
    assert_eq!(stream(forwarded).await, json!({"query": "with [secret] in it"}).to_string());
}

#[tokio::test]
async fn streamed_chunks() {
    let folder = Folder::new();
    let answers = [
        ModelReply::TextAndCode("Let me see.", "return [1, 2].length"),
        ModelReply::Code(PARALLEL),
        ModelReply::Text("So it is."),
    ];
    let model = Model::start(answers).await;
    let server = start(&folder, &model, &json!({})).await;
    let mut asked = question(&user("Compare the news"));
    asked["stream"] = true.into();
    asked["stream_options"] = json!({"include_usage": true});
    let (_, stream) = ask(&server.url, &asked).await;
    let chunks: Vec<Value> = stream
        .as_str()
        .expect("a stream")
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect();
    let deltas: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
    let text: String = deltas.iter().filter_map(|delta| delta["content"].as_str()).collect();
    assert_eq!(text, "Let me see.");
    let calls: Vec<&Value> = deltas.iter().filter_map(|delta| delta["tool_calls"].get(0)).collect();
    assert_eq!(calls.iter().map(|call| call["index"].as_u64()).collect::<Vec<_>>(), [Some(0), Some(1)]);
    assert_eq!(calls[1]["function"]["arguments"], "{\"query\":\"world news\"}");
    let last = chunks.last().expect("a chunk");
    assert_eq!((last["choices"].as_array().map(Vec::len), &last["usage"]["total_tokens"]), (Some(0), &json!(220)));
    assert!(chunks.iter().all(|chunk| chunk["id"] == chunks[0]["id"] && chunk["object"] == "chat.completion.chunk"));
}

/// The conversations of the official libraries: both orders of calls, streamed or not, with blocks hidden or
/// visible, and a process of its own for each request.
async fn run_library_client(program: &Path, script: &Path) {
    for (code, requests, calls) in [(PARALLEL, 2, vec![2]), (SEQUENTIAL, 3, vec![1, 1])] {
        for (streams, visible) in [(false, false), (true, false), (false, true), (true, true)] {
            let folder = Folder::new();
            let model = Model::start([ModelReply::Code(code), ModelReply::Text("Here are the highlights.")]).await;
            let (url, processes) = one_process_for_each_request(words(&folder, &model, &json!({}))).await;
            let options = json!({"prompt": "Compare the news", "stream": streams, "codeMessages": visible});
            let mut command = Command::new(program);
            command.arg(script).arg(options.to_string()).env("BASE_URL", format!("{url}/v1"));
            let ended = finish(&mut command, "").await;
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let conversation = ended.json();
            assert_eq!(
                (&conversation["requests"], *processes.lock().expect("not poisoned")),
                (&json!(requests), requests)
            );
            let messages = conversation["messages"].as_array().expect("messages");
            let made: Vec<usize> =
                messages.iter().filter_map(|message| Some(message["tool_calls"].as_array()?.len())).collect();
            assert_eq!(made, calls);
            assert_eq!(messages.last().expect("one")["content"], "Here are the highlights.");
            if streams {
                assert_eq!(conversation["spoken"], "Here are the highlights.");
            }
            let roles: Vec<&str> = messages.iter().filter_map(|message| message["role"].as_str()).collect();
            let shape = match (visible, made.len()) {
                (false, 1) => "system user assistant tool tool assistant",
                (false, _) => "system user assistant tool assistant tool assistant",
                (true, 1) => "system user code assistant tool tool code_result assistant",
                (true, _) => "system user code assistant tool assistant tool code_result assistant",
            };
            assert_eq!(roles.join(" "), shape);
            assert_eq!(last_code_result(&model.requests()[1])["status"], "success");
        }
    }
}

#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn openai_for_javascript() {
    node_package("openai/index.mjs");
    run_library_client(Path::new("node"), &client("openai.mjs")).await;
}

#[tokio::test]
#[ignore = "SKIPPED: needs Node or Python: bash .ci/run"]
async fn openai_for_python() {
    run_library_client(&python("python"), &client("openai_client.py")).await;
}
