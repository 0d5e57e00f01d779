//! The web page: who sees it, and what it shows. `tests/node/page.mjs` walks through it in a browser.

use crate::support::*;
use crate::upstream_server::{UpstreamServer, tool};
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

const TOKEN: &str = "operator-0123456789-abcdef";

/// A server with a page.
struct Page {
    url: String,
    /// The address with a token that is valid once.
    link: String,
    client: reqwest::Client,
    cookie: String,
    _child: Child,
}

impl Page {
    /// Starts a server, and logs in.
    async fn start(folder: &Folder, http: Value) -> Self {
        let store = folder.path("codecall.db");
        Self::start_with(folder, json!({"http": http, "store": {"path": store}})).await
    }

    /// Does the same with a configuration.
    async fn start_with(folder: &Folder, config: Value) -> Self {
        let config = folder.file("config.json", config.to_string());
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--http", "0", "--ui", "--demo", "--config", &config]).kill_on_drop(true);
        let mut child =
            command.env_remove("RUST_LOG").stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let link = loop {
            let line = lines.next_line().await.expect("text").expect("an address");
            if let Some(link) = line.strip_prefix("codecall: page: ") {
                break link.to_owned();
            }
        };
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let client = codecall::http::client(TIMEOUT).expect("a client");
        let url = link.split("/ui/").next().unwrap_or_default().to_owned();
        let entered = client.get(&link).send().await.expect("an answer");
        assert_eq!(entered.status(), 200);
        let cookie = entered.headers()["set-cookie"].to_str().expect("text").to_owned();
        assert!(cookie.contains("; HttpOnly; SameSite=Strict") && !cookie.contains("Secure"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        Self { url, link, client, cookie, _child: child }
    }

    /// Returns the status, the text and where to go on.
    async fn get(&self, path: &str) -> (u16, String) {
        let sent = self.client.get(format!("{}{path}", self.url)).header("cookie", &self.cookie);
        let response = sent.send().await.expect("an answer");
        (response.status().as_u16(), response.text().await.expect("text"))
    }

    /// Sends a form, with the token of the login.
    async fn post(&self, path: &str, pairs: &[(&str, &str)]) -> (u16, String) {
        let (_, page) = self.get("/ui/script").await;
        let csrf = page.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        let pairs = pairs.iter().copied().chain([("csrf", csrf.expect("a token"))]);
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        let sent = self.client.post(format!("{}{path}", self.url)).header("cookie", &self.cookie);
        let response = sent.header("origin", &self.url).body(body).send().await.expect("an answer");
        let status = response.status().as_u16();
        let place = response.headers().get("location").and_then(|place| place.to_str().ok().map(str::to_owned));
        (status, place.unwrap_or(response.text().await.expect("text")))
    }
}

#[tokio::test]
async fn who_is_not_logged_in_sees_nothing() {
    let folder = Folder::new();
    let agent = json!({"name": "agent", "token": "agent-0123456789-abcdef"});
    let page = Page::start(&folder, json!({"token": TOKEN, "tokens": [agent]})).await;
    assert_eq!(page.client.get(&page.link).send().await.expect("an answer").status(), 403, "it is valid once");
    let address = format!("{}/ui/runs", page.url);
    for (name, value) in [
        ("accept", "*/*".to_owned()),
        ("authorization", format!("Bearer {TOKEN}")),
        ("authorization", "Bearer agent-0123456789-abcdef".to_owned()),
        ("cookie", page.cookie.replace('=', "=0")),
    ] {
        let answer = page.client.get(&address).header(name, value).send().await.expect("an answer");
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["location"]),
            (303, &"/ui/login?next=%2Fui%2Fruns".parse().expect("a value"))
        );
    }
    // DNS rebinding, and a request of another page.
    for (name, value) in
        [("host", "evil.example"), ("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")]
    {
        let sent = page.client.get(&address).header("cookie", &page.cookie).header(name, value);
        assert_eq!(sent.send().await.expect("an answer").status(), 403, "{name}");
    }
    let (status, runs) = page.get("/ui/runs").await;
    assert!(status == 200 && runs.contains("<table"), "{runs}");
    let forged = page.client.post(format!("{}/ui/script", page.url)).header("cookie", &page.cookie);
    assert_eq!(forged.body("script=return+1&csrf=00").send().await.expect("an answer").status(), 403);
    // Without the flag there is no page.
    let plain = crate::model_server::HttpProcess::start(&["--demo"]).await;
    let answer = page.client.get(format!("{}/ui/runs", plain.url)).send().await.expect("an answer");
    assert_eq!(answer.status(), 404);
}

#[tokio::test]
async fn a_script_is_checked_run_and_replayed() {
    let folder = Folder::new();
    let page = Page::start(&folder, json!({"token": TOKEN})).await;
    let (status, checked) = page.post("/ui/check", &[("script", "return 1;\nwhile (")]).await;
    assert!(status == 200 && checked.contains(r#""line":2"#), "{checked}");
    let script = format!(
        "// <script>x</script>\nconsole.log('{TOKEN}');\nreturn (await users.list({{limit: 2}})).nothing.length"
    );
    let (status, run) = page.post("/ui/script", &[("script", &script), ("parameters", r#"{"a": 1}"#)]).await;
    assert!(status == 303 && run.starts_with("/ui/runs/"), "{status} {run}");
    let (status, shown) = page.get(&run).await;
    assert_eq!(status, 200);
    assert!(shown.contains(r#"id="line-3" class="failed""#) && shown.contains("users:list"), "{shown}");
    assert!(!shown.contains(TOKEN) && !shown.contains("<script>x"), "{shown}");
    assert!(shown.contains("&lt;script&gt;x"), "{shown}");
    let (status, replayed) =
        page.post(&format!("{run}/replay"), &[("script", "return (await users.list({limit: 2})).total")]).await;
    assert!(
        status == 200 && replayed.contains("No tool was called") && replayed.contains("not as recorded"),
        "{replayed}"
    );
    let (_, listed) = page.get("/ui/runs?status=failed&tool=users:*&since=1h").await;
    assert!(listed.contains(&run), "{listed}");
    let (status, wrong) = page.get("/ui/runs?since=yesterday").await;
    assert!(status == 400 && wrong.contains("is no time"), "{wrong}");
    for (path, expected) in
        [("/ui/runs/zz", 404), ("/ui/runs/0123", 404), ("/ui/nothing", 404), ("/ui/tool?name=no", 404)]
    {
        assert_eq!(page.get(path).await.0, expected, "{path}");
    }
}

/// A warning may quote a secret of the script.
#[tokio::test]
async fn warnings_of_a_run_are_kept_without_secrets() {
    let folder = Folder::new();
    let page = Page::start(&folder, json!({"token": TOKEN})).await;
    let script = format!("const user = users.get({{id: 'usr_001'}});\nreturn {{name: user['{TOKEN}'], id: 1}}");
    let (status, run) = page.post("/ui/script", &[("script", &script)]).await;
    assert_eq!(status, 303, "{run}");
    let (_, shown) = page.get(&run).await;
    assert!(shown.contains("Warnings") && shown.contains("is not awaited") && !shown.contains(TOKEN), "{shown}");
    let (id, config) = (run.trim_start_matches("/ui/runs/"), folder.path("config.json"));
    let shown = codecall(&["history", "show", id, "--config", &config]).await;
    let warnings = shown.json()["warnings"].as_array().map(Vec::len);
    assert!(warnings == Some(2) && !shown.stdout.contains(TOKEN), "{shown:?}");
    let (_, plain) = page.post("/ui/script", &[("script", "return 1")]).await;
    assert!(!page.get(&plain).await.1.contains("Warnings"));
}

#[tokio::test]
async fn nothing_runs_where_that_is_off() {
    let folder = Folder::new();
    let page = Page::start(&folder, json!({"uiRuns": false})).await;
    assert_eq!(page.post("/ui/script", &[("script", "return 1")]).await.0, 403);
    assert_eq!(page.post("/ui/tool", &[("name", "users:list")]).await.0, 403);
    assert_eq!(page.post("/ui/server", &[("name", "users")]).await.0, 403);
    assert_eq!(page.post(&format!("/ui/runs/{}/cancel", "0".repeat(32)), &[]).await.0, 403);
    let (_, shown) = page.get("/ui/tool?name=users:list").await;
    assert!(shown.contains("List users") && !shown.contains(">Call<"), "{shown}");
}

#[tokio::test]
async fn script_tools_are_edited() {
    let folder = Folder::new();
    let tools = folder.path("tools");
    std::fs::create_dir(&tools).expect("a folder");
    let good = "/*---\ndescription = \"Adds\"\n---*/\nasync function execute(params) {\n  return 1;\n}\n";
    std::fs::write(format!("{tools}/add.js"), good).expect("written");
    let store = folder.path("codecall.db");
    let config = json!({"http": {"uiEdit": true}, "scriptTools": {"folder": tools}, "store": {"path": store}});
    let page = Page::start(&folder, config["http"].clone()).await;
    // Without a folder there are none.
    assert_eq!(page.get("/ui/script-tool?name=add").await.0, 404);
    drop(page);
    let page = Page::start_with(&folder, config).await;
    let (status, shown) = page.get("/ui/script-tool?name=add").await;
    assert!(status == 200 && shown.contains("return 1;"), "{shown}");
    let saved =
        shown.split("name=\"saved\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a digest");
    let broken = good.replace("return 1;", "return );");
    let save = |code: &str| {
        let code = code.to_owned();
        let page = &page;
        async move {
            page.post("/ui/script-tool", &[("name", "add"), ("saved", saved), ("script", &code), ("action", "save")])
                .await
        }
    };
    let (status, wrong) = save(&broken).await;
    assert!(status == 400 && wrong.contains("add.js:5:"), "{status} {wrong}");
    assert_eq!(save(&good.replace("return 1;", "return 2;")).await.0, 303);
    assert!(std::fs::read_to_string(format!("{tools}/add.js")).expect("a file").contains("return 2;"));
    let (status, stale) = save(&good.replace("return 1;", "return 3;")).await;
    assert!(status == 409 && stale.contains("has changed since"), "{stale}");
    let (status, checked) = page.post("/ui/script-tools/check", &[("name", "add"), ("script", &broken)]).await;
    assert!(status == 200 && checked.contains(r#""line":5"#), "{checked}");
    for name in ["../evil", "a/b", ".hidden", ""] {
        let (status, _) = page.post("/ui/script-tool", &[("name", name), ("script", good), ("action", "save")]).await;
        assert_eq!(status, 404, "{name}");
    }
}

/// All of a long input is shown before a call can be approved, and the form decides about that input only.
#[tokio::test]
async fn a_long_input_is_read_before_it_is_approved() {
    let folder = Folder::new();
    let bank = UpstreamServer::start(vec![tool("transfer", "A tool of a bank")]).await;
    let config = json!({
        "mcpServers": {"bank": {"url": bank.url()}},
        "approval": {"rules": [{"tool": "bank:transfer", "approval": "always"}]},
        "stateDir": folder.path("state"), "store": folder.path("state/codecall.db"),
    });
    let page = Page::start_with(&folder, config).await;
    let script =
        folder.file("script.js", "return (await bank.transfer({ note: 'x'.repeat(9_000), to: 'mallory' })).to");
    let words = ["run", &script, "--config", &folder.path("config.json")];
    let waits = codecall(&words).await.json();
    let id = waits["error"]["details"]["approval"].as_str().unwrap_or_else(|| panic!("{waits}")).to_owned();
    let digest = waits["error"]["details"]["inputDigest"].as_str().expect("a digest").to_owned();
    let (_, list) = page.get("/ui/approvals").await;
    assert!(list.contains(&digest) && list.contains("&quot;note&quot; (9002 bytes)"), "{list}");
    assert!(!list.contains("mallory") && list.contains(&format!("/ui/approvals/{id}")), "{list}");
    assert!(
        !list.contains("value=\"approve\"") && list.contains("value=\"deny\""),
        "nobody has read all of it: {list}"
    );
    let (status, whole) = page.get(&format!("/ui/approvals/{id}")).await;
    assert_eq!(status, 200, "{whole}");
    let (long, input) = (whole.find("Long members"), whole.find("mallory"));
    assert!(long.is_some() && long < input && whole.contains("value=\"approve\""), "{whole}");
    let decide = async |digest: &str| {
        page.post("/ui/approvals", &[("id", &id), ("digest", digest), ("decision", "approve"), ("reason", "")]).await
    };
    assert_eq!((decide("").await.0, decide(&"0".repeat(64)).await.0), (400, 409));
    assert_eq!(decide(&digest).await, (303, "/ui/approvals".into()));
    assert_eq!(codecall(&words).await.json()["result"], "mallory");
    assert_eq!(page.get("/ui/approvals/ffffffffffff").await.0, 404);
}

impl Page {
    /// Waits until a page contains a text, and returns it.
    async fn until(&self, path: &str, part: &str) -> String {
        let began = tokio::time::Instant::now();
        loop {
            let (_, text) = self.get(path).await;
            if text.contains(part) {
                return text;
            }
            assert!(began.elapsed() < TIMEOUT, "{part}: {text}");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}

/// The first part of a text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("{before}: {text}")).1;
    rest.split_once(after).unwrap_or_else(|| panic!("{after}: {text}")).0
}

#[tokio::test]
async fn a_run_in_progress_is_cancelled() {
    let folder = Folder::new();
    let store = folder.path("codecall.db");
    let config = json!({"durable": {"enabled": true}, "store": {"path": store}, "vm": {"preset": "experimental"}});
    let page = Page::start_with(&folder, config).await;
    let (_, idle) = page.get("/ui/runs").await;
    assert!(idle.contains(r#"<section id="active" aria-labelledby="active-title" hidden>"#), "{idle}");
    let script = format!("const key = '{TOKEN}' // <b>\nawait sleep(600_000)");
    let form = [("script", script.as_str())];
    let running = page.post("/ui/script", &form);
    let cancelling = async {
        let shown = page.until("/ui/runs", "/cancel").await;
        assert!(shown.contains("// &lt;b&gt;") && !shown.contains("<b>"), "{shown}");
        let path = format!("/ui/runs/{}/cancel", between(&shown, "action=\"/ui/runs/", "/cancel"));
        assert_eq!(page.post(&path, &[]).await, (303, "/ui/runs".to_owned()));
        path
    };
    let ((status, run), path) = tokio::join!(running, cancelling);
    assert_eq!(status, 303, "{run}");
    assert_eq!(path, format!("{run}/cancel"));
    let (_, shown) = page.get(&run).await;
    assert!(shown.contains("EXECUTION_ABORTED"), "{shown}");
    // A durable run ends, and no other process goes on with it.
    let request = json!({"script": "while (true) await sleep(20)"});
    let (status, begun) = crate::model_server::post_json(&page.url, "/v1/runs", &request).await;
    assert!(status == 202 || status == 200, "{status} {begun}");
    let shown = page.until("/ui/runs", "/cancel").await;
    let id = between(&shown, "action=\"/ui/runs/", "/cancel").to_owned();
    assert_eq!(begun["id"].as_str().or(begun["run"].as_str()), Some(id.as_str()), "{begun}");
    assert_eq!(page.post(&format!("/ui/runs/{id}/cancel"), &[]).await.0, 303);
    let ended = page.client.get(format!("{}/v1/runs/{id}?wait=20", page.url)).send().await.expect("an answer");
    let ended = ended.text().await.expect("text");
    assert!(ended.contains("EXECUTION_ABORTED"), "{ended}");
    page.until("/ui/runs", " hidden>").await;
    assert_eq!(page.post("/ui/runs/zz/cancel", &[]).await.0, 404);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_is_restarted_and_its_log_is_shown() {
    let folder = Folder::new();
    let start = format!("echo opened $$ '<i>' $WORD >&2; exec {PROGRAM} serve --demo");
    let server = json!({"command": "sh", "args": ["-c", start], "env": {"WORD": "word-of-the-environment", "CODECALL_CONFIG": ""}});
    let broken = json!({"command": "sh", "args": ["-c", "echo 'no such key' >&2; exit 1"]});
    let config =
        json!({"mcpServers": {"shop": server, "broken": broken}, "store": {"path": folder.path("codecall.db")}});
    let page = Page::start_with(&folder, config).await;
    let process = |shown: &str| between(shown, "opened ", " ").to_owned();
    let is_alive = |process: &str| std::path::Path::new(&format!("/proc/{process}")).exists();
    let shown = page.until("/ui/server?name=shop", "status ok").await;
    assert!(shown.contains("&lt;i&gt; [secret]") && !shown.contains("word-of"), "{shown}");
    let first = process(&shown);
    assert!(is_alive(&first), "{first}");
    assert_eq!(page.post("/ui/server", &[("name", "shop")]).await, (303, "/ui/server?name=shop".to_owned()));
    assert!(!is_alive(&first), "the first process has ended");
    let shown = page.until("/ui/server?name=shop", "status ok").await;
    let second = process(&shown);
    assert!(second != first && is_alive(&second), "{first} {second}");
    // Scripts call the new one.
    let script = "return (await callTool('shop:codecall_search', { query: 'users' })) !== undefined";
    let (_, run) = page.post("/ui/script", &[("script", script)]).await;
    let (_, shown) = page.get(&run).await;
    assert!(shown.contains("status ok"), "{shown}");
    let failed = page.until("/ui/server?name=broken", "no such key").await;
    assert!(failed.contains(">Restart<"), "{failed}");
    for name in ["users", "nothing", ""] {
        assert_eq!(page.post("/ui/server", &[("name", name)]).await.0, 404, "{name}");
    }
    assert_eq!(page.get("/ui/server?name=nothing").await.0, 404);
    let (_, list) = page.get("/ui/servers").await;
    assert!(list.contains("/ui/server?name=shop") && list.contains("status failed"), "{list}");
}

#[tokio::test]
async fn a_tool_is_tested_in_the_editor() {
    let folder = Folder::new();
    let tools = folder.path("tools");
    std::fs::create_dir(&tools).expect("a folder");
    let config = json!({"http": {"uiEdit": true}, "scriptTools": {"folder": tools}, "store": {"path": folder.path("codecall.db")}});
    let page = Page::start_with(&folder, config).await;
    let (_, new) = page.get("/ui/script-tool?name=greet").await;
    assert!(new.contains("Test with its examples"), "{new}");
    let code = "/*---\ndescription = \"Adds\"\n[parameters.properties.n]\ntype = \"integer\"\n[[examples]]\ndescription = \"<b>one</b>\"\n\
                params = { n = 1 }\ndata = 2\n---*/\nasync function execute(params) {\n  return params.n + 1;\n}\n";
    let test = |code: String| {
        let page = &page;
        async move { page.post("/ui/script-tool", &[("name", "greet"), ("script", &code), ("action", "test")]).await }
    };
    let (status, shown) = test(code.to_owned()).await;
    assert!(status == 200 && shown.contains("1 of 1 examples passed") && shown.contains("&lt;b&gt;one"), "{shown}");
    let (status, shown) = test(code.replace("n + 1", "n + 2")).await;
    assert!(
        status == 200 && shown.contains("0 of 1 examples passed") && shown.contains("data is 3, instead of 2"),
        "{shown}"
    );
    let (status, shown) = test(code.replace("return ", "return (")).await;
    assert!(status == 200 && shown.contains("greet.js:"), "{status} {shown}");
    let (_, shown) =
        test(code.split("[[examples]]").next().unwrap_or_default().to_owned() + "---*/\nasync function execute() {}\n")
            .await;
    assert!(shown.contains("The manifest has no"), "{shown}");
    assert!(!std::path::Path::new(&format!("{tools}/greet.js")).exists(), "a test saves nothing");
}
