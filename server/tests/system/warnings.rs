//! Warnings about promises without `await`, and about results that are `undefined`, in each way a script is run.

use crate::model_server::*;
use crate::support::*;
use serde_json::{Value, json};

const TOOLS: &str = r#"{"tools": [{"name": "users:get", "responses": [{"input": null, "output": {"name": "Ada"}}]}]}"#;
const FORGOTTEN: &str = "const u = users.get({ id: 1 });\nreturn { name: u.name, total: 0 / 0 };";
const WARNING: &str = "line 1, column 11: `users.get(…)` is not awaited: `.name` is read from the promise in line 2; \
                       write `await users.get(…)` there";

fn mocks(folder: &Folder) -> String {
    folder.file("mocks.json", TOOLS)
}

#[track_caller]
fn assert_warned(answer: &Value) {
    assert_warned_of("users.get", answer);
}

#[track_caller]
fn assert_warned_of(function: &str, answer: &Value) {
    let warning = WARNING.replace("users.get", function);
    let expected = json!([warning, "result.name: undefined is left out", "result.total: NaN is written as null"]);
    assert_eq!((&answer["status"], &answer["result"]), (&json!("ok"), &json!({"total": null})), "{answer}");
    assert_eq!(answer["warnings"], expected, "{answer}");
}

#[tokio::test]
async fn a_forgotten_await_is_the_first_warning_of_a_run() {
    let folder = Folder::new();
    let mocks = mocks(&folder);
    for more in [&[][..], &["--isolation", "process"]] {
        let words = [&["--mock-tools", mocks.as_str()], more].concat();
        let server = Server::start(&words).await;
        assert_warned(&server.execute(FORGOTTEN).await);
        let failed = server.execute("const rows = users.get({});\nreturn rows.map((row) => row.name)").await;
        assert_eq!(failed["error"]["message"], "rows.map is not a function", "{failed}");
        let first = failed["warnings"][0].as_str().expect("a warning");
        assert!(first.starts_with("line 1, column 14: `users.get(…)` is not awaited: `.map` is called"), "{failed}");
        let right = server.execute("return (await users.get({})).name").await;
        assert_eq!((&right["result"], right.get("warnings")), (&json!("Ada"), None), "{right}");
        let nothing = server.execute("const u = await users.get({});").await;
        let first = nothing["warnings"][0].as_str().expect("a warning");
        assert!(nothing["result"].is_null() && first.contains("has no `return`"), "{nothing}");
        server.end().await;
    }
}

#[tokio::test]
async fn it_is_the_same_on_the_command_line_and_in_a_replay() {
    let folder = Folder::new();
    let (script, journal) = (folder.file("script.js", FORGOTTEN), folder.path("journal.json"));
    let ran = codecall(&["run", &script, "--mock-tools", &mocks(&folder), "--record", &journal]).await;
    assert_warned(&ran.json());
    let replayed = codecall(&["replay", &script, "--journal", &journal]).await;
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    assert!(replayed.stdout.contains("`users.get(…)` is not awaited"), "{replayed:?}");
}

#[tokio::test]
async fn it_is_the_same_in_steps() {
    let (url, processes) = one_process_for_each_request(Vec::new()).await;
    let code = FORGOTTEN.replace("users.get", "getUser");
    let request = json!({"code": code, "tools": [{"name": "getUser", "inputSchema": {"type": "object"}}]});
    let mut next = request.clone();
    let answer = loop {
        let (status, answer) = post_json(&url, "/v1/evaluate", &next).await;
        assert_eq!(status, 200, "{answer}");
        if answer["status"] != "calls" {
            break answer;
        }
        let calls = answer["calls"].as_array().expect("calls").iter();
        let results: Vec<Value> = calls.map(|call| json!({"id": call["id"], "result": {"name": "Ada"}})).collect();
        next = request.clone();
        (next["token"], next["results"]) = (answer["token"].clone(), results.into());
    };
    assert_warned_of("getUser", &answer["outcome"]);
    drop(processes);
}

#[tokio::test]
async fn code_execution_warns_of_functions_of_the_script() {
    let folder = Folder::new();
    let config = folder.file("config.toml", "enable_code_execution = true\n");
    let server = Server::start(&["--config", &config]).await;
    let ask = async |code: &str| data(&server.call("code_execution", json!({"code": code})).await.expect("a result"));
    let code = "async function load() { return { name: 'Ada' }; }\nreturn [load().name ?? 'none'];";
    let answer = ask(code).await;
    let first = answer["warnings"][0].as_str().expect("a warning");
    assert!(first.starts_with("line 2, column 9: `load(…)` is not awaited: `.name` is read"), "{answer}");
    let failed = ask("async function f() {}\nf().map(1)").await;
    let first = failed["warnings"][0].as_str().expect("a warning");
    assert!(failed["ok"] == false && first.contains("`f(…)` is not awaited: `.map` is called"), "{failed}");
    server.end().await;
}
