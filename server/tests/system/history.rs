//! The history of runs: what is recorded, found, shown and replayed.

use crate::support::*;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::process::Command;

/// Writes a configuration whose store is in the folder. `more` are further keys.
fn config(folder: &Folder, more: &str) -> String {
    let store = folder.path("state/codecall.db");
    folder.file("codecall.toml", format!("store = {store:?}\nenable_code_execution = true\n{more}"))
}

/// Returns the recorded runs, the earliest first.
async fn history(config: &str, words: &[&str]) -> Vec<Value> {
    let ran = codecall(&[&["history", "--json", "--limit", "1000", "--config", config], words].concat()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json_lines()
}

fn id(run: &Value) -> &str {
    run["id"].as_str().expect("an id")
}

/// Waits until so many runs are recorded.
async fn recorded(config: &str, count: usize) -> Vec<Value> {
    for _ in 0..100 {
        let runs = history(config, &[]).await;
        if runs.len() >= count {
            return runs;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{count} runs are not recorded");
}

#[tokio::test]
async fn every_kind_of_run_is_recorded() {
    let folder = Folder::new();
    let config = config(
        &folder,
        "[stateless]\nenabled = true\n[direct_calls]\nenabled = true\n".replace("direct_calls", "directCalls").as_str(),
    );
    let server = Server::start(&["--demo", "--config", &config]).await;
    let listed = server
        .ask("codecall_execute", json!({"script": "const all = await users.list({ limit: 2 }); console.log('seen', typeof all); return codecallContext.word + 2", "context": {"word": "zebra"}}))
        .await;
    assert_eq!(listed["status"], "ok", "{listed}");
    server.execute("// broken\nconst user = await users.get({ id: 999999 }); return user.name").await;
    server.execute("return (").await;
    server.ask("codecall_invoke", json!({"tool": "users:list", "input": {"limit": 1}})).await;
    server
        .call("code_execution", json!({"code": "return call_tool('users', 'list', {limit: 1}).ok"}))
        .await
        .expect("a result");
    let tools = json!([{"name": "mine", "inputSchema": {"type": "object"}}]);
    let step = json!({"code": "return await callTool('mine', {a: 1})", "tools": tools});
    server.call("codecall_step", step).await.expect("a result");
    server.end().await;

    for (flag, value, parts) in [
        ("--kind", "executed", ["'execute'", "code_execution, tool, invoke, direct, step"]),
        ("--status", "failled", ["'failed'", "ok, failed, runtime_error, tool_error, timeout"]),
    ] {
        let refused = codecall(&["history", "--config", &config, flag, value]).await;
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
        for part in parts.into_iter().chain([value, "possible values", "similar value"]) {
            assert!(refused.stderr.contains(part), "{part}: {refused:?}");
        }
    }
    for (tool, runs) in [
        ("users:list", 3),
        ("users.list", 3),
        ("users_list", 3),
        ("users__list", 3),
        ("list", 3),
        ("users:*", 4),
        ("users.*", 4),
        ("users_*", 4),
    ] {
        let found = history(&config, &["--tool", tool]).await;
        assert_eq!(found.len(), runs, "{tool}: {found:?}");
    }
    assert_eq!(history(&config, &["--tool", "users.nothing"]).await.len(), 0);

    let runs = history(&config, &[]).await;
    let seen: Vec<_> = runs
        .iter()
        .map(|run| (run["kind"].as_str().expect("a kind"), run["status"].as_str().expect("a status")))
        .collect();
    assert_eq!(
        seen,
        [
            ("execute", "ok"),
            ("execute", "tool_error"),
            ("execute", "syntax_error"),
            ("invoke", "ok"),
            ("code_execution", "ok"),
            ("step", "ok"),
        ],
        "{runs:?}"
    );
    assert!(runs.iter().all(|run| run["client"].as_str().is_some_and(|name| !name.is_empty())), "{runs:?}");
    let kinds =
        |runs: Vec<Value>| runs.iter().map(|run| run["kind"].as_str().expect("a kind").to_owned()).collect::<Vec<_>>();
    assert_eq!(kinds(history(&config, &["--status", "failed"]).await), ["execute", "execute"]);
    assert_eq!(kinds(history(&config, &["--tool", "users:list"]).await), ["execute", "invoke", "code_execution"]);
    assert_eq!(kinds(history(&config, &["--tool", "users:*", "--status", "failed"]).await), ["execute"]);
    assert_eq!(kinds(history(&config, &["--kind", "step"]).await), ["step"]);
    assert_eq!(kinds(history(&config, &["--text", "zebra"]).await), ["execute"], "a word of the parameters");
    assert_eq!(history(&config, &["--text", "broken"]).await.len(), 1);
    assert_eq!(history(&config, &["--since", "1h"]).await.len(), 6);
    assert_eq!(history(&config, &["--until", "1h"]).await.len(), 0);
    assert_eq!(history(&config, &["--client", "nobody"]).await.len(), 0);
    let wrong = codecall(&["history", "--since", "soon", "--config", &config]).await;
    assert!(wrong.code == Some(2) && wrong.stderr.contains("'soon' is no time"), "{wrong:?}");

    let shown = codecall(&["history", "show", &id(&runs[0])[..16], "--config", &config]).await.json();
    assert_eq!(shown["parameters"], json!({"word": "zebra"}));
    assert_eq!((&shown["result"], &shown["logs"]), (&json!("zebra2"), &json!(["seen object"])), "{shown}");
    let call = &shown["calls"][0];
    assert_eq!(
        (&call["tool"], &call["status"], &call["input"]),
        (&json!("users:list"), &json!("ok"), &json!({"limit": 2}))
    );
    assert!(call["startMs"].as_f64().is_some() && call["output"].to_string().contains("name"), "{call}");
    assert!(
        shown["steps"].as_i64().is_some_and(|steps| steps > 0)
            && shown["peakMemoryBytes"].as_i64().is_some_and(|bytes| bytes > 0)
    );
    let failed = codecall(&["history", "show", id(&runs[1]), "--config", &config]).await.json();
    assert_eq!(failed["error"]["code"], failed["code"], "{failed}");
    assert!(failed["error"]["toolName"] == "users:get" && failed["title"] == "// broken", "{failed}");
    let missing = codecall(&["history", "show", "ffffffffffff", "--config", &config]).await;
    assert!(missing.code == Some(2) && missing.stderr.contains("there is no run"), "{missing:?}");

    let checked = codecall(&["store", "check", "--json", "--config", &config]).await.json();
    assert_eq!((&checked["runs"], &checked["problems"]), (&json!(6), &json!([])));
}

#[tokio::test]
async fn a_recorded_run_is_replayed_with_its_answers() {
    let folder = Folder::new();
    let config = config(&folder, "");
    let server = Server::start(&["--demo", "--config", &config]).await;
    let script = "const [a, b] = await Promise.all([users.list({ limit: 3 }), orders.list({ limit: 2 })]); const r = Math.random(); await sleep(5); return { users: a, orders: b, r, id: crypto.randomUUID() }";
    server.execute(script).await;
    server.execute("return await users.get({ id: 'no such user' })").await;
    server.end().await;
    let runs = history(&config, &[]).await;
    for run in &runs {
        // The demo is not there.
        let replayed = codecall(&["history", "replay", id(run), "--config", &config]).await;
        let end = replayed.json_lines().pop().expect("an end");
        assert_eq!((&end["status"], &end["asRecorded"]), (&json!("done"), &json!(true)), "{replayed:?}");
    }
    let edited =
        folder.file("edited.js", script.replace("return { users: a,", "return { names: a.items?.length ?? 'edited',"));
    let replayed = codecall(&["history", "replay", id(&runs[0]), "--script", &edited, "--config", &config]).await;
    let end = replayed.json_lines().pop().expect("an end");
    assert!(replayed.code == Some(0) && end["outcome"]["result"]["names"] != Value::Null, "{replayed:?}");
    let other = folder.file("other.js", script.replace("limit: 3", "limit: 4"));
    let replayed = codecall(&["history", "replay", id(&runs[0]), "--script", &other, "--config", &config]).await;
    let end = replayed.json_lines().pop().expect("an end");
    assert_eq!((replayed.code, &end["status"]), (Some(1), &json!("diverged")), "{replayed:?}");
}

#[tokio::test]
async fn only_what_is_configured_is_recorded() {
    for (more, expected) in
        [("history = \"failures\"", 1), ("history = \"off\"", 0), ("[history]\nanswers = false\n", 2)]
    {
        let folder = Folder::new();
        let config = config(&folder, more);
        let server = Server::start(&["--demo", "--config", &config]).await;
        server.execute("return (await users.list({ limit: 1 })).length").await;
        server.execute("throw new Error('x')").await;
        server.end().await;
        let runs = history(&config, &[]).await;
        assert_eq!(runs.len(), expected, "{more}: {runs:?}");
        if let Some(run) = runs.first() {
            let replayed = codecall(&["history", "replay", id(run), "--config", &config]).await;
            let is_recorded = !more.contains("answers");
            assert_eq!(replayed.stderr.contains("cannot be replayed"), !is_recorded, "{replayed:?}");
        }
    }
}

/// Secrets of the configuration and personal data are in no byte of the files.
#[tokio::test]
async fn secrets_are_not_recorded() {
    let folder = Folder::new();
    let secret = "tok-Zq3/7+x&9Kd_5w-long";
    let config = config(&folder, &format!("[http]\ntoken = {secret:?}\n[pii]\n"));
    let server = Server::start(&["--demo", "--config", &config]).await;
    server
        .ask("codecall_execute", json!({"script": format!("console.log('{secret}', btoa('{secret}')); const a = await callTool('users:list', {{ limit: 1, search: '{secret}' }}).catch((e) => e.message); return ['{secret}', a, 'jane.doe@example.com']"), "context": {"key": secret}}))
        .await;
    server.call("codecall_invoke", json!({"tool": "users:list", "input": {"search": secret}})).await.expect("a result");
    server.end().await;
    assert_eq!(history(&config, &[]).await.len(), 2);
    let exported = folder.path("export.jsonl");
    assert_eq!(codecall(&["store", "export", &exported, "--config", &config]).await.code, Some(0));
    let shown = codecall(&["history", "show", id(&history(&config, &[]).await[0]), "--config", &config]).await.stdout;
    let mut all = shown.into_bytes();
    for file in ["export.jsonl", "state/codecall.db", "state/codecall.db-wal"] {
        all.extend(std::fs::read(folder.path(file)).unwrap_or_default());
    }
    for needle in [secret, "tok-Zq3", "dG9rLVpxMy83", "jane.doe"] {
        assert!(!all.windows(needle.len()).any(|part| part == needle.as_bytes()), "{needle}");
    }
    assert!(all.windows(8).any(|part| part == b"[secret]"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_killed_server_loses_the_last_batch_at_most() {
    let folder = Folder::new();
    let config = config(&folder, "");
    let server = Server::start(&["--config", &config]).await;
    for number in 0..200 {
        server.execute(&format!("return {number}")).await;
    }
    let _ = Command::new("kill").args(["-9", &server.id().to_string()]).status().await;
    let checked = codecall(&["store", "check", "--json", "--config", &config]).await;
    assert_eq!((checked.code, &checked.json()["problems"]), (Some(0), &json!([])), "{checked:?}");
    let runs = history(&config, &[]).await;
    for (number, run) in runs.iter().enumerate() {
        assert_eq!(run["title"], format!("return {number}"), "nothing is missing before the end");
    }
    // At this pace a batch has some dozens of runs.
    assert!(runs.len() > 20, "{}", runs.len());
}

#[tokio::test]
async fn a_store_that_cannot_be_used_stops_nothing() {
    let folder = Folder::new();
    let database = folder.path("state/codecall.db");
    std::fs::create_dir_all(&database).expect("a folder in its place");
    let config = config(&folder, "");
    let server = Server::start(&["--config", &config]).await;
    assert_eq!(server.execute("return 1").await["result"], 1);
    let stderr = server.end().await;
    assert!(stderr.contains("it is a folder or a device"), "{stderr}");
    let listed = codecall(&["history", "--config", &config]).await;
    assert!(listed.code == Some(2) && listed.stderr.contains("it is a folder or a device"), "{listed:?}");
    std::fs::remove_dir(&database).expect("removed");
    std::fs::write(&database, "no database").expect("written");
    let checked = codecall(&["store", "check", "--config", &config]).await;
    assert!(checked.code == Some(2) && checked.stderr.contains("no database"), "{checked:?}");
    std::fs::remove_file(&database).expect("removed");
    assert_eq!(codecall(&["run", "--config", &config, &folder.file("a.js", "return 1")]).await.code, Some(0));
    assert_eq!(recorded(&config, 1).await.len(), 1, "a command records its runs too");
}

#[tokio::test]
async fn a_store_is_copied_and_shrunk() {
    let folder = Folder::new();
    let first = config(&folder, "[history]\nmaxRuns = 2\n");
    let scripts: Vec<String> =
        (0..5).map(|number| folder.file(&format!("{number}.js"), format!("return {number}"))).collect();
    let words: Vec<&str> = ["run", "--config", &first].into_iter().chain(scripts.iter().map(String::as_str)).collect();
    assert_eq!(codecall(&words).await.code, Some(0));
    assert_eq!(history(&first, &[]).await.len(), 5);
    let copy = folder.path("copy.jsonl");
    assert_eq!(codecall(&["store", "export", &copy, "--config", &first]).await.code, Some(0));
    let vacuumed = codecall(&["store", "vacuum", "--config", &first]).await;
    assert!(vacuumed.stdout.contains("3 runs deleted"), "{vacuumed:?}");
    assert_eq!(history(&first, &[]).await.len(), 2);
    let second = folder.file("second.toml", format!("store = {:?}\n", folder.path("other.db")));
    let imported = codecall(&["store", "import", &copy, "--config", &second]).await;
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let runs = history(&second, &[]).await;
    assert_eq!(runs.len(), 5);
    assert!(codecall(&["history", "show", id(&runs[4]), "--config", &second]).await.code == Some(0));
    assert!(Path::new(&folder.path("other.db")).exists());
}

#[tokio::test]
async fn a_long_result_outlives_the_server() {
    let folder = Folder::new();
    let config = config(&folder, "[resultStore]\npersistent = true\n[vm]\nmaxResultBytes = 2000\n");
    let server = Server::start(&["--config", &config]).await;
    let cut = server.execute("return 'word '.repeat(1000)").await;
    server.end().await;
    let server = Server::start(&["--config", &config]).await;
    let arguments = json!({"handle": cut["truncated"]["handle"], "offset": cut["truncated"]["next"]});
    let next = server.ask("codecall_execute", arguments).await;
    assert!(next["result"].as_str().is_some_and(|text| text.contains("word word")), "{next}");
    server.end().await;
}

/// An answer that is cached in the database is given by the next server too.
#[tokio::test]
async fn a_cached_answer_outlives_the_server() {
    let folder = Folder::new();
    let audit = folder.path("audit.jsonl");
    let cache = "[cache]\npersistent = true\nrules = [{ tool = \"users:get\", ttl = \"1h\" }]\n";
    let config = config(&folder, &format!("{cache}[audit]\nfile = {audit:?}\n"));
    let mut results = Vec::new();
    for _ in 0..2 {
        let server = Server::start(&["--demo", "--config", &config]).await;
        results.push(server.execute("return (await users.get({ id: 'usr_001' })).name").await["result"].clone());
        server.end().await;
    }
    assert!(results[0].is_string() && results[0] == results[1], "{results:?}");
    let lines = std::fs::read_to_string(&audit).expect("a file");
    let answered = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["answeredBy"].clone());
    assert_eq!(answered.collect::<Vec<_>>(), [Value::Null, json!("cache")]);
}
