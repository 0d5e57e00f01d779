//! Attempts to call a forbidden tool: one that the configuration removes, one that the request does not allow, and the
//! meta-tools. All are refused, whatever the script does around the call, and none of these tools is ever called.

use crate::support::{Folder, Server, codecall};
use agentscript::Policy;
use codecall::meta;
use codecall::runs::ExecuteRequest;
use codecall::tool::{ToolDefinition, ToolError, ToolResult};
use codecall::upstream::{BoxFuture, Upstream, UpstreamCall};
use codecall::{Config, Hub};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// Tools that count their calls.
struct Tools {
    app: &'static str,
    called: Arc<Mutex<Vec<String>>>,
}

const NAMES: [(&str, &[&str]); 3] = [
    ("shop", &["list", "other", "hidden", "refuse-me", "tagged", "shown", "private_one"]),
    ("vault", &["open", "list"]),
    ("codecallx", &["execute"]),
];

impl Upstream for Tools {
    fn app(&self) -> &str {
        self.app
    }

    fn source(&self) -> &'static str {
        "inline"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        let own = NAMES.iter().find(|(app, _)| *app == self.app).map_or(&[][..], |(_, names)| names);
        let tool = |name: &&str| ToolDefinition {
            app: self.app.into(),
            name: (*name).into(),
            description: format!("The tool {name}"),
            input_schema: json!({"type": "object"}),
            tags: if *name == "tagged" { vec!["secret".into()] } else { Vec::new() },
            source: "inline",
            ..ToolDefinition::default()
        };
        own.iter().map(|name| Arc::new(tool(name))).collect()
    }

    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        self.called.lock().expect("not poisoned").push(call.tool.full_name());
        Box::pin(std::future::ready(Ok(json!({"items": [1, 2, 3]}).into())))
    }
}

/// A configuration that removes tools in every possible way: by name, app and tag, by the mode, and by
/// metadata. `shop:shown` is listed and not indexed.
const CONFIG: &str = r#"{
    "includeTools": {"deny": ["shop:refuse-*", {"app": "vault"}, {"tag": "secret"}]},
    "tools": {
        "shop:hidden": {"enabledInCodeCall": false},
        "shop:private*": {"enabledInCodeCall": false, "visibleInListTools": false},
        "shop:shown": {"enabledInCodeCall": false, "visibleInListTools": true}
    },
    "directCalls": {"allowedTools": ["shop:*", "vault:*", "codecall:*", "*"]}
}"#;

struct World {
    hub: Arc<Hub>,
    called: Arc<Mutex<Vec<String>>>,
}

fn world(config: &str) -> World {
    let config = Config::parse(config, codecall::config::Format::Json, &|_| None).expect("valid");
    let called = Arc::default();
    let upstream =
        |(app, _): (&'static str, _)| Arc::new(Tools { app, called: Arc::clone(&called) }) as Arc<dyn Upstream>;
    let hub = Hub::start(crate::support::isolated(config), NAMES.map(upstream).into()).expect("starts");
    World { hub, called }
}

impl World {
    /// Returns how a script ends: `ok`, or its status and code.
    async fn run(&self, script: &str, allowed: Option<&[&str]>) -> String {
        let request = ExecuteRequest {
            context: Some(r#"{"name": "shop:hidden", "own": "codecall:execute"}"#.into()),
            allowed_tools: allowed.map(|names| names.iter().map(|&name| name.to_owned()).collect()),
            seed: Some(1),
            ..ExecuteRequest::new(script, Policy::default())
        };
        let outcome = self.hub.execute(request, None, CancellationToken::new()).await.outcome;
        match &outcome.result {
            Ok(_) => format!("ok {}", outcome.to_json()),
            Err(failure) => format!("{} {}", outcome.status().as_str(), failure.code),
        }
    }

    async fn ask(&self, tool: &str, arguments: Value) -> Value {
        let answer = meta::call(&self.hub, tool, arguments, None, CancellationToken::new()).await;
        answer.expect("a meta-tool").content.into_value()
    }

    async fn invoke(&self, name: &str) -> String {
        let answer = self.ask("codecall_invoke", json!({"tool": name, "input": {}})).await;
        answer["error"]["code"].as_str().unwrap_or("ok").to_owned()
    }

    fn called(&self) -> Vec<String> {
        std::mem::take(&mut self.called.lock().expect("not poisoned"))
    }
}

/// The removed tools, by the upstream's names.
const AWAY: [&str; 7] =
    ["shop:hidden", "shop:refuse-me", "shop:tagged", "shop:shown", "shop:private_one", "vault:open", "vault:list"];

/// Spellings of the name of a removed tool. None of them may reach another tool either.
fn spellings(name: &str) -> Vec<String> {
    let (app, own) = name.split_once(':').expect("app and tool");
    vec![
        name.to_owned(),
        format!("{app}.{own}"),
        format!("{app}_{own}"),
        format!("{app}__{own}"),
        format!("{app}/{own}"),
        format!("{app}-{own}"),
        format!("{app}::{own}"),
        format!("{app} : {own}"),
        format!(" {name}"),
        format!("{name} "),
        format!("{name}\u{0}"),
        format!("{name}\u{200b}"),
        format!("{name}\n"),
        name.to_uppercase(),
        name.replace('o', "\u{43e}"),
        name.replace(':', "\u{ff1a}"),
        format!("inline:{name}"),
        format!("{name}*"),
        format!("{app}:*"),
        format!("./{name}"),
        format!("shop:../{name}"),
        format!("{app}:{own}?x=1"),
        own.to_uppercase(),
    ]
}

/// Scripts that call the tool `NAME`, each in its own way, and where its error appears: the code of an
/// uncaught error.
const WAYS: &[&str] = &[
    "return await callTool('NAME', {})",
    "return await callTool(`NAME`, {})",
    "return await callTool('NA' + 'ME', {})",
    "return await callTool(['NA', 'ME'].join(''), {})",
    "return await callTool(String('NAME'), {})",
    "return await callTool(JSON.parse('\"NAME\"'), {})",
    "return await callTool(atob(btoa('NAME')), {})",
    "return await callTool('EMAN'.split('').reverse().join('').split('').reverse().join('') && 'NAME', {})",
    "const f = callTool; return await f('NAME', {})",
    "return await [callTool][0]('NAME', {})",
    "const { f } = { f: callTool }; return await f('NAME', {})",
    "const [f = callTool] = []; return await f('NAME', {})",
    "return await ({ callTool }).callTool('NAME', {})",
    "return await ({ callTool })['call' + 'Tool']('NAME', {})",
    "return await (0, callTool)('NAME', {})",
    "return await (callTool ?? 1)('NAME', {})",
    "return await callTool?.('NAME', {})",
    "return await callTool(...['NAME', {}])",
    "const f = (g, ...rest) => g(...rest); return await f(callTool, 'NAME', {})",
    "const f = ((g) => (name) => g(name, {}))(callTool); return await f('NAME')",
    "return await ['NAME'].map((name) => callTool(name, {}))[0]",
    "return await Promise.all(['NAME'].map((name) => callTool(name, {})))",
    "return await Promise.race([callTool('NAME', {})])",
    "return await Promise.resolve('NAME').then((name) => callTool(name, {}))",
    "return await new Promise((resolve) => resolve(callTool('NAME', {})))",
    "await null; return await callTool('NAME', {})",
    "await callTool('shop:list', {}); return await callTool('NAME', {})",
    "const [, f] = [1, async () => callTool('NAME', {})]; return await f()",
    "async function f(n) { return n ? f(n - 1) : callTool('NAME', {}) } return await f(5)",
    "try { throw 1 } catch { return await callTool('NAME', {}) }",
    "try { await null } finally { await callTool('NAME', {}) }",
    "for (const name of ['NAME']) await callTool(name, {})",
    "const m = new Map([['f', callTool]]); return await m.get('f')('NAME', {})",
    "return await callTool('NAME', {}, { timeoutMs: 5 })",
    "return await callTool('NAME', {}, { throwOnError: true, force: true, allowedTools: ['*'] })",
    "const [{ reason }] = await Promise.allSettled([callTool('NAME', {})]); throw reason",
    "const r = await callTool('NAME', {}, { throwOnError: false }); if (r.success) return r; await callTool('NAME', {})",
    "return getTool('NAME')",
    "const g = getTool; return g('NAME')",
    "return ['NAME'].map(getTool)",
    "const { name } = await callTool('NAME', {}).catch((e) => { throw e }); return name",
    "const o = { toString() { return 'NAME' } }; return await callTool(`${o}`, {})",
    "return await 'x'.replace('x', 'NAME').split('|').reduce((_, name) => callTool(name, {}), 0)",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_tool_does_not_exist() {
    let world = world(CONFIG);
    for name in AWAY {
        for way in WAYS {
            let script =
                way.replace("'NA' + 'ME'", "'NAME'").replace("['NA', 'ME'].join('')", "'NAME'").replace("NAME", name);
            // Without a call there is no error of a tool.
            let ends =
                if way.contains("getTool") { "runtime_error EXECUTION_ERROR" } else { "tool_error TOOL_NOT_FOUND" };
            assert_eq!(world.run(&script, None).await, ends, "{script}");
        }
        for spelling in spellings(name) {
            let script = format!("return await callTool({}, {{}})", Value::from(spelling.as_str()));
            assert_eq!(world.run(&script, None).await, "tool_error TOOL_NOT_FOUND", "{script}");
            assert_eq!(world.invoke(&spelling).await, "TOOL_NOT_FOUND", "{spelling:?}");
        }
        let described = world.ask("codecall_describe", json!({"toolNames": [name]})).await;
        assert_eq!((&described["tools"], &described["notFound"]), (&json!([]), &json!([name])), "{described}");
        let found = world.ask("codecall_search", json!({"query": name, "topK": 50})).await.to_string();
        assert!(!found.contains(&format!("\"{name}\"")), "{found}");
    }
    let calls: Vec<String> = world.called();
    assert!(!calls.is_empty() && calls.iter().all(|name| name == "shop:list"), "{calls:?}");
}

/// Functions of apps: the same tools as members of objects.
#[tokio::test(flavor = "multi_thread")]
async fn a_removed_tool_is_not_a_function() {
    let world = world(CONFIG);
    let mut wrong = Vec::new();
    for (script, ends) in [
        ("return await shop.hidden({})", "runtime_error EXECUTION_ERROR"),
        ("return await shop['hidden']({})", "runtime_error EXECUTION_ERROR"),
        ("return await shop['hid' + 'den']({})", "runtime_error EXECUTION_ERROR"),
        ("return (await shop?.hidden?.({})) === undefined", "ok {\"status\":\"ok\",\"result\":true}"),
        ("return await shop.HIDDEN({})", "runtime_error EXECUTION_ERROR"),
        ("return await shop.refuseMe({})", "runtime_error EXECUTION_ERROR"),
        ("return await shop.refuse_me({})", "runtime_error EXECUTION_ERROR"),
        ("return await shop['refuse-me']({})", "runtime_error EXECUTION_ERROR"),
        ("return await shop.shown({})", "runtime_error EXECUTION_ERROR"),
        ("return await vault.open({})", "runtime_error EXECUTION_ERROR"),
        ("return await vault['list']({})", "runtime_error EXECUTION_ERROR"),
        ("const { hidden } = shop; return await hidden({})", "runtime_error EXECUTION_ERROR"),
        ("const f = shop.hidden; return await f({})", "runtime_error EXECUTION_ERROR"),
        ("const s = shop; return await s.hidden({})", "runtime_error EXECUTION_ERROR"),
        ("return await parallel([() => shop.hidden({})])", "runtime_error EXECUTION_ERROR"),
        ("return await parallel([() => callTool('shop:hidden', {})])", "tool_error TOOL_NOT_FOUND"),
        (
            "return await __safe_parallel([() => callTool('shop:hidden', {})], { maxConcurrency: 1 })",
            "tool_error TOOL_NOT_FOUND",
        ),
        ("return await parallel(['shop:hidden'], (name) => callTool(name, {}))", "tool_error TOOL_NOT_FOUND"),
        ("return await callTool(codecallContext.name, {})", "tool_error TOOL_NOT_FOUND"),
        ("return await tools.shop.hidden({})", "runtime_error EXECUTION_ERROR"),
    ] {
        let ended = world.run(script, None).await;
        if ended != ends {
            wrong.push(format!("{script}: {ended}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(world.called(), [""; 0]);
}

/// Tools that the request does not allow are refused, with every way of calling and every allow list.
#[tokio::test(flavor = "multi_thread")]
async fn tools_outside_the_allow_list_are_refused() {
    let world = world(CONFIG);
    for way in WAYS.iter().filter(|way| !way.contains("getTool") && !way.starts_with("await callTool")) {
        let script = way
            .replace("'NA' + 'ME'", "'NAME'")
            .replace("['NA', 'ME'].join('')", "'NAME'")
            .replace("NAME", "shop:other");
        for allowed in [&[][..], &["shop:list"], &["shop:o"], &["shop:other2", "SHOP:OTHER", "*:others", "shop"]] {
            assert_eq!(world.run(&script, Some(allowed)).await, "tool_error ACCESS_DENIED", "{script} {allowed:?}");
        }
    }
    for script in
        ["return await shop.other({})", "return await callTool('other', {})", "return await callTool('shop.other', {})"]
    {
        assert_eq!(world.run(script, Some(&["shop:list"])).await, "tool_error ACCESS_DENIED", "{script}");
    }
    // An allow list does not create tools.
    for allowed in ["*", "shop:*", "shop:hidden", "vault:*", "codecall:*"] {
        let ended = world.run("return await callTool('shop:hidden', {})", Some(&[allowed])).await;
        assert_eq!(ended, "tool_error TOOL_NOT_FOUND", "{allowed}");
    }
    assert_eq!(world.called(), [""; 0]);
    for allowed in [&["shop:other"][..], &["shop:*"], &["*"], &["other"], &["shop.other"]] {
        assert!(world.run("return await shop.other({})", Some(allowed)).await.starts_with("ok"), "{allowed:?}");
    }
    assert_eq!(world.called().len(), 5);
}

/// Calling a meta-tool ends the run, in every spelling, and the script cannot catch that.
#[tokio::test(flavor = "multi_thread")]
async fn calling_a_meta_tool_ends_a_run() {
    let world = world(CONFIG);
    let own = [
        "codecall:execute",
        "codecall.execute",
        "codecall_execute",
        "codecall:search",
        "codecall:describe",
        "codecall:invoke",
        "codecall:anything",
        "CODECALL:EXECUTE",
        "CodeCall_Execute",
        " codecall:execute",
        "codecall:execute\\n",
        "\\tcodecall:x",
        "\\u0063odecall:execute",
        "codecall\\u003aexecute",
        "\\x63odecall:execute",
        "codecall/execute",
        "codecall::execute",
    ];
    for name in own {
        for way in [
            "return await callTool('NAME', {})",
            "try { await callTool('NAME', {}) } catch { } finally { } return 1",
            "const r = await callTool('NAME', {}, { throwOnError: false }); return r",
            "return await callTool('NAME', {}).catch(() => 1)",
            "return await Promise.allSettled([callTool('NAME', {})])",
            "return await parallel([() => callTool('NAME', {})])",
            "const f = callTool; await null; return await f('NAME', {})",
        ] {
            let script = way.replace("NAME", name);
            assert_eq!(world.run(&script, None).await, "illegal_access SELF_REFERENCE_BLOCKED", "{script}");
            assert_eq!(
                world.run(&script, Some(&["codecall:*", "*"])).await,
                "illegal_access SELF_REFERENCE_BLOCKED",
                "{script}"
            );
        }
    }
    assert_eq!(
        world.run("return await callTool(codecallContext.own, {})", None).await,
        "illegal_access SELF_REFERENCE_BLOCKED"
    );
    // Similar names are unknown tools.
    for name in [
        "c\u{43e}decall:execute",
        "\u{ff43}odecall:execute",
        "codecall\u{200b}:execute",
        "codecall execute",
        "mcp__codecall__codecall_execute",
    ] {
        let script = format!("return await callTool({}, {{}})", Value::from(name));
        assert_eq!(world.run(&script, None).await, "tool_error TOOL_NOT_FOUND", "{script}");
    }
    // There is neither an app nor a function of that name.
    for script in [
        "return await codecall.execute({ script: '1' })",
        "return await codecall['execute']({})",
        "return codecall_execute({})",
    ] {
        assert_eq!(world.run(script, None).await, "runtime_error EXECUTION_ERROR", "{script}");
    }
    for name in ["codecall:execute", "codecall_search", "CODECALL.x"] {
        assert_eq!(world.invoke(name).await, "SELF_REFERENCE_BLOCKED", "{name}");
        let described = world.ask("codecall_describe", json!({"toolNames": [name]})).await;
        assert_eq!((&described["tools"], &described["notFound"]), (&json!([]), &json!([name])), "{described}");
    }
    assert_eq!(world.called(), [""; 0]);
}

/// In the synchronous dialect a call of a meta-tool ends the run too.
#[tokio::test(flavor = "multi_thread")]
async fn calling_a_meta_tool_ends_a_synchronous_run() {
    let world = world(CONFIG);
    let run = async |script: &str| {
        let request =
            ExecuteRequest { dialect: agentscript::Dialect::Sync, ..ExecuteRequest::new(script, Policy::default()) };
        let outcome = world.hub.execute(request, None, CancellationToken::new()).await.outcome;
        match outcome.result {
            Ok(result) => result,
            Err(failure) => format!("{} {}", failure.status.as_str(), failure.code),
        }
    };
    for name in AWAY {
        let (app, own) = name.split_once(':').expect("app and tool");
        for script in [
            format!("call_tool('{app}', '{own}', {{}})"),
            format!("['{own}'].map((own) => call_tool('{app}', own, {{}}))[0]"),
            format!("const f = call_tool; f('{app}', '{own}', {{}})"),
        ] {
            let answer: Value = serde_json::from_str(&run(&script).await).expect("the answer of a call");
            assert_eq!(
                (&answer["ok"], &answer["error"]["code"]),
                (&json!(false), &json!("TOOL_NOT_FOUND")),
                "{script}"
            );
        }
    }
    for script in ["call_tool('codecall', 'execute', {})", "try { call_tool('CodeCall', 'search', {}) } catch { 1 }"] {
        assert_eq!(run(script).await, "illegal_access SELF_REFERENCE_BLOCKED", "{script}");
    }
    assert_eq!(world.called(), [""; 0]);
    assert_eq!(run("call_tool('shop', 'list', {})").await, r#"{"ok":true,"result":{"items":[1,2,3]}}"#);
}

/// By name, only listed tools can be called; in the modes that need metadata, only those whose metadata
/// says so.
#[tokio::test(flavor = "multi_thread")]
async fn direct_calls_reach_what_is_visible() {
    let world = world(CONFIG);
    let direct = async |name: &str| world.hub.direct(name, Map::new(), None, CancellationToken::new()).await;
    for name in AWAY.iter().filter(|name| **name != "shop:shown").chain(&[
        "shop:list",
        "list",
        "shop_list",
        "codecall:execute",
        "codecallx:execute",
    ]) {
        for spelling in spellings(&name.replacen("list", ":list", usize::from(!name.contains(':')))) {
            assert!(direct(&spelling).await.is_none(), "{spelling:?}");
        }
    }
    assert_eq!(world.called(), [""; 0]);
    for spelling in ["shop_shown", "shop:shown", "shop.shown"] {
        let result = direct(spelling).await.expect("visible").expect("a result");
        assert_eq!(*result.value(), json!({"items": [1, 2, 3]}));
    }
    assert_eq!(world.called(), ["shop:shown"; 3]);
    for mode in ["codecall_opt_in", "metadata_driven"] {
        let world =
            self::world(&format!(r#"{{"mode": "{mode}", "tools": {{"shop:other": {{"enabledInCodeCall": true}}}}}}"#));
        assert_eq!(world.run("return await callTool('shop:list', {})", None).await, "tool_error TOOL_NOT_FOUND");
        assert_eq!(world.invoke("shop:list").await, "TOOL_NOT_FOUND");
        assert!(world.run("return await callTool('shop:other', {})", None).await.starts_with("ok"));
        assert_eq!(world.called(), ["shop:other"]);
    }
}

/// A dry run calls no tool, whatever the script does, in both dialects.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_reaches_no_tool() {
    let world = world("{}");
    let dry_run = async |script: &str, dialect: agentscript::Dialect| {
        let request = ExecuteRequest { dialect, dry_run: true, ..ExecuteRequest::new(script, Policy::default()) };
        let finished = world.hub.execute(request, None, CancellationToken::new()).await;
        serde_json::from_str::<Value>(&finished.dry_run_json()).expect("JSON")
    };
    for way in WAYS.iter().filter(|way| !way.contains("getTool") && !way.contains("throw reason")) {
        let script = way
            .replace("'NA' + 'ME'", "'NAME'")
            .replace("['NA', 'ME'].join('')", "'NAME'")
            .replace("NAME", "shop:other");
        let answer = dry_run(&script, agentscript::Dialect::Async).await;
        assert_eq!((&answer["status"], &answer["dryRun"]), (&json!("ok"), &json!(true)), "{script}: {answer}");
        let calls = answer["calls"].as_array().expect("a list");
        assert!(calls.iter().any(|call| call["toolName"] == "shop:other"), "{script}: {answer}");
    }
    let answer = dry_run("[1, 2].map(() => call_tool('shop', 'list', {}))", agentscript::Dialect::Sync).await;
    assert_eq!((&answer["status"], answer["calls"].as_array().map(Vec::len)), (&json!("ok"), Some(2)), "{answer}");
    let script = "await parallel([1, 2, 3], () => shop.list({})); return await vault.open({})";
    let answer = world.ask("codecall_execute", json!({"script": script, "dryRun": true})).await;
    assert_eq!((&answer["status"], answer["calls"].as_array().map(Vec::len)), (&json!("ok"), Some(4)), "{answer}");
    assert_eq!(world.called(), [""; 0]);
    // Without the dry run, the same script calls them.
    assert_eq!(world.ask("codecall_execute", json!({"script": script})).await["status"], "ok");
    assert_eq!(world.called(), ["shop:list", "shop:list", "shop:list", "vault:open"]);
}

/// A joined name of two tools is a name of neither, whoever makes the call; the error names both.
#[tokio::test]
async fn a_joined_name_of_two_tools_means_neither() {
    let tool = |name: &str| json!({"name": name, "responses": [{"input": null, "output": name}]});
    let folder = Folder::new();
    let tools = ["my:app_list", "my_app:list", "my_app:get", "a:b.c", "a.b:c", "x:one", "y:one", "solo:only"];
    let tools: Vec<Value> = tools.map(tool).into();
    let mocks = folder.file("mocks.json", json!({ "tools": tools }).to_string());
    let server = Server::start(&["--mock-tools", &mocks]).await;
    for (name, meant) in
        [("my_app_list", ["my:app_list", "my_app:list"]), ("a.b.c", ["a.b:c", "a:b.c"]), ("one", ["x:one", "y:one"])]
    {
        let invoked = server.ask("codecall_invoke", json!({"tool": name, "input": {}})).await;
        let script = format!("try {{ return await callTool('{name}', {{}}) }} catch (error) {{ return error }}");
        let script = script.replace("return error", "return { code: error.code, message: error.message }");
        let caught = server.execute(&script).await;
        for error in [&invoked["error"], &caught["result"]] {
            assert_eq!(error["code"], "TOOL_NOT_FOUND", "{name}: {error}");
            let message = error["message"].as_str().expect("a message");
            let expected = format!("The name '{name}' means 2 tools: '{}', '{}'.", meant[0], meant[1]);
            assert!(message.starts_with(&expected), "{message}");
        }
        let described = server.ask("codecall_describe", json!({"toolNames": [name]})).await;
        assert_eq!(described["notFound"], json!([name]), "{described}");
        assert!(described["warnings"][0].as_str().is_some_and(|text| text.contains(meant[1])), "{described}");
        let direct = server.call(name, json!({})).await.expect_err("no tool").to_string();
        assert!(direct.contains(meant[0]) && direct.contains(meant[1]), "{direct}");
    }
    for (name, full) in [
        ("my:app_list", "my:app_list"),
        ("my_app.list", "my_app:list"),
        ("my_app_get", "my_app:get"),
        ("app_list", "my:app_list"),
        ("solo_only", "solo:only"),
    ] {
        let invoked = server.ask("codecall_invoke", json!({"tool": name, "input": {}})).await;
        assert_eq!(invoked["result"], full, "{name}: {invoked}");
    }
    server.end().await;
}

#[tokio::test]
async fn filters_match_descriptions() {
    let tool = |name: &str, description: &str| json!({"name": name, "description": description, "responses": []});
    let folder = Folder::new();
    let tools = [
        tool("shop:list", "List orders."),
        tool("shop:drop", "Delete an order.\nDEPRECATED"),
        tool("bank:pay", "Pay. Deprecated since May"),
        tool("bank:plain", ""),
    ];
    let mocks = folder.file("mocks.json", json!({ "tools": tools }).to_string());
    for (include, expected) in [
        (json!({"deny": [{"description": "*deprecated*"}]}), vec!["bank:plain", "shop:list"]),
        (json!({"allow": [{"description": "*order*"}]}), vec!["shop:drop", "shop:list"]),
        (
            json!({"allow": [{"app": "shop", "description": "*deprecated"}, "bank:plain"]}),
            vec!["bank:plain", "shop:drop"],
        ),
    ] {
        let config = folder.file("config.json", json!({ "includeTools": include }).to_string());
        let listed = codecall(&["tools", "--config", &config, "--mock-tools", &mocks]).await;
        let names: Vec<&str> = listed
            .stdout
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .filter(|name| name.contains(':'))
            .collect();
        assert_eq!(names, expected, "{include}: {listed:?}");
    }
}
