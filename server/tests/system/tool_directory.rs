//! The directory of tools that a run is started with. It is the same in a thread and in a worker process, and from the
//! beginning of the run to its end.

use crate::support::PROGRAM;
use codecall::config::IsolationMode;
use codecall::redact::Redactor;
use codecall::runs::ExecuteRequest;
use codecall::sandbox::Strictness;
use codecall::stateless::{JournalFile, MemoryRecorder};
use codecall::tool::{ToolDefinition, ToolError, ToolResult};
use codecall::upstream::inline::Inline;
use codecall::upstream::{BoxFuture, Upstream, UpstreamCall};
use codecall::{Config, Hub};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use tokio_util::sync::CancellationToken;

fn hub(mode: IsolationMode, upstream: Arc<dyn Upstream>) -> Arc<Hub> {
    let mut config = Config::default();
    config.isolation.mode = mode;
    config.isolation.program = Some(PROGRAM.into());
    (config.isolation.confine, config.isolation.workers) = (Strictness::BestEffort, Some(1));
    Hub::start(config, vec![upstream]).expect("starts")
}

async fn execute(hub: &Hub, script: &str) -> Value {
    let request = ExecuteRequest::new(script, hub.config().policy.clone());
    let finished = hub.execute(request, None, CancellationToken::new()).await;
    serde_json::from_str(&finished.outcome.to_json()).expect("JSON")
}

/// Every kind of lookup: each is recorded, or has no answer.
const LOOKUPS: [&str; 9] = [
    "return [getTool('users:get-one'), getTool('users.get-one').name, getTool('übersicht').name]",
    "return [await users.getOne({ id: 1 }), await users.get_one({ id: 2 }), await my_app['list-items']({})]",
    "return [typeof users, typeof nobody, typeof users.toString]",
    "try { getTool('users:get-on') } catch (error) { return error.message }",
    "try { await users.getOnee({}) } catch (error) { return error.message }",
    "try { await callTool('usrs:get-one', {}) } catch (error) { return error.message }",
    "return await callTool('codecall:search', {})",
    "return await nobody.list({})",
    "let last; for (let id = 0; id < 3; id++) { last = await users.getOne({ id }) } getTool('my-app:list-items'); throw last",
];

#[tokio::test(flavor = "multi_thread")]
async fn threads_and_workers_record_the_same_lookups() {
    let any = || json!({"type": "object", "description": "é \"\u{0}"});
    let tools = [
        ("users", "get-one", "Get a user", any()),
        ("users", "getAll", "Get all users", any()),
        ("users", "get_all", "Get all users", any()),
        ("my-app", "list-items", "List", any()),
        ("my-app", "übersicht", "Overview", any()),
    ];
    let tools: Arc<dyn Upstream> = Arc::new(Inline::echo(&tools));
    let threads = hub(IsolationMode::Thread, Arc::clone(&tools));
    let workers = hub(IsolationMode::Process, tools);
    for script in LOOKUPS {
        let record = async |hub: &Hub| {
            let recorder = MemoryRecorder::new(script, None, None);
            let request = ExecuteRequest {
                journal: Some(Arc::<MemoryRecorder>::clone(&recorder)),
                ..ExecuteRequest::new(script, hub.config().policy.clone())
            };
            let finished = hub.execute(request, None, CancellationToken::new()).await;
            let text = recorder.to_file(&finished.outcome, &Redactor::default());
            let file = JournalFile::read(&text).expect("a journal");
            let mut rounds = serde_json::from_str::<Value>(&text).expect("JSON")["rounds"].take();
            // The time of a round is that of the clock.
            rounds.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut).for_each(|round| {
                round.remove("ms");
            });
            (file.tools, rounds, finished.outcome.to_json())
        };
        let (here, there) = (record(&threads).await, record(&workers).await);
        assert_eq!(here, there, "{script}");
    }
    threads.close().await;
    workers.close().await;
}

/// An upstream that changes its list with every call of its tool `change`.
#[derive(Default)]
struct Changing {
    version: AtomicUsize,
    hub: OnceLock<Weak<Hub>>,
}

impl Upstream for Changing {
    fn app(&self) -> &str {
        "t"
    }

    fn source(&self) -> &'static str {
        "inline"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        let version = self.version.load(Ordering::SeqCst);
        let tool = |name: &str| ToolDefinition {
            app: "t".into(),
            name: name.into(),
            description: format!("version {version}"),
            input_schema: json!({"type": "object"}),
            ..ToolDefinition::default()
        };
        vec![Arc::new(tool("change")), Arc::new(tool(&format!("only{version}")))]
    }

    fn call(&self, _call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            self.version.fetch_add(1, Ordering::SeqCst);
            self.hub.get().and_then(Weak::upgrade).expect("a hub").catalogue().refresh();
            Ok(Value::Null.into())
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_keeps_its_directory() {
    let script = "
        const look = () => [getTool('t:change').description, 'only0', 'only1', 'only2'].map((name, index) => {
            if (index === 0) return name;
            return typeof t[name];
        });
        const before = look();
        await t.change({});
        return [before, look()];";
    for mode in [IsolationMode::Thread, IsolationMode::Process] {
        let upstream = Arc::new(Changing::default());
        let hub = hub(mode, Arc::clone(&upstream) as Arc<dyn Upstream>);
        upstream.hub.set(Arc::downgrade(&hub)).expect("once");
        let first = json!(["version 0", "function", "undefined", "undefined"]);
        let second = json!(["version 1", "undefined", "function", "undefined"]);
        assert_eq!(execute(&hub, script).await["result"], json!([first, first]), "{mode:?}");
        assert_eq!(execute(&hub, script).await["result"], json!([second, second]), "{mode:?}");
        hub.close().await;
    }
}

/// One worker has runs of the catalogue and of many clients, and keeps only some of their directories.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_sees_the_tools_of_its_own_directory() {
    let workers =
        hub(IsolationMode::Process, Arc::new(Inline::echo(&[("users", "get", "", json!({"type": "object"}))])));
    let code = "return [typeof users, typeof tool0, typeof tool1, typeof tool2, typeof tool3]";
    for client in [0, 1, 1, 2, 3, 0] {
        let tools = json!([{"name": format!("tool{client}"), "inputSchema": {"type": "object"}}]);
        let step = serde_json::from_value(json!({"code": code, "tools": tools})).expect("a request");
        let step = workers.stateless().evaluate(step, CancellationToken::new()).await.expect("a step");
        let types: Vec<&str> = (0..4).map(|tool| if tool == client { "function" } else { "undefined" }).collect();
        assert_eq!(step.value["outcome"]["result"], json!([&["undefined"][..], &types[..]].concat()), "{}", step.value);
        let own = execute(&workers, code).await;
        assert_eq!(own["result"], json!(["object", "undefined", "undefined", "undefined", "undefined"]), "{own}");
    }
    workers.close().await;
}
