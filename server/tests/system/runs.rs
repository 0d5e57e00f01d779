//! Many runs in one process: endless runs stop at their limits and do not affect the others.

use agentscript::{Outcome, Policy, Preset};
use codecall::runs::ExecuteRequest;
use codecall::tool::{ToolDefinition, ToolError, ToolResult};
use codecall::upstream::{BoxFuture, Upstream, UpstreamCall};
use codecall::{Config, Hub};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// A tool that returns its input, and one that never answers.
pub struct Tools;

impl Upstream for Tools {
    fn app(&self) -> &str {
        "t"
    }

    fn source(&self) -> &'static str {
        "inline"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        let tool = |name: &str| ToolDefinition {
            app: "t".into(),
            name: name.into(),
            input_schema: json!({"type": "object"}),
            source: "inline",
            ..ToolDefinition::default()
        };
        vec![Arc::new(tool("echo")), Arc::new(tool("never"))]
    }

    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            if call.tool.name == "never" {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok(Value::Object(call.input).into())
        })
    }
}

async fn execute(hub: &Hub, script: &str, policy: Policy) -> (Outcome, Duration) {
    let request = ExecuteRequest { seed: Some(1), ..ExecuteRequest::new(script, policy) };
    let began = Instant::now();
    let finished = hub.execute(request, None, CancellationToken::new()).await;
    (finished.outcome, began.elapsed())
}

/// Returns the status and the code of an outcome.
pub fn ends(outcome: &Outcome) -> String {
    let code = outcome.result.as_ref().map_or_else(|failure| format!(" {}", failure.code), |_| String::new());
    format!("{}{code}", outcome.status().as_str())
}

const TIMEOUT: u64 = 1_500;
const TOOL_TIMEOUT: u64 = 2_000;
const MEMORY: u64 = 8 * 1024 * 1024;

/// Endless scripts, and how they end.
const BAD: [(&str, &str); 6] = [
    ("while (true) {}", "timeout TIMEOUT"),
    ("const f = async () => { await null; return f(); }; return f();", "runtime_error MEMORY_LIMIT"),
    ("const f = () => Promise.resolve().then(() => { f(); }); f(); await new Promise(() => {});", "timeout TIMEOUT"),
    ("return [3, 1, 2].sort(() => { for (;;) {} })", "timeout TIMEOUT"),
    ("let text = 'x'; while (true) text += text + '!';", "runtime_error MEMORY_LIMIT"),
    ("return await callTool('t:never', {})", "tool_error TOOL_TIMEOUT"),
];

const GOOD: &str = "
    const seen = await parallel([1, 2, 3], async (n) => (await callTool('t:echo', { n })).n);
    let sum = 0;
    for (let i = 0; i < 1000; i++) sum += i;
    return [seen, sum, [3, 1, 2].sort((a, b) => a - b)];";

#[tokio::test(flavor = "multi_thread")]
async fn bad_runs_end_at_their_limits() {
    let hub = Hub::start(crate::support::isolated(Config::default()), vec![Arc::new(Tools)]).expect("starts");
    let mut endless = Policy::preset(Preset::Balanced);
    endless.limits.timeout_ms = TIMEOUT;
    endless.limits.tool_timeout_ms = TOOL_TIMEOUT;
    // These two limits would end the loops too early.
    endless.limits.max_iterations = u64::MAX;
    endless.limits.max_steps = u64::MAX;
    endless.limits.max_memory_bytes = MEMORY;
    // A script that fills the memory gets a minute for it, as a busy machine is slow.
    let mut filling = endless.clone();
    filling.limits.timeout_ms = 60_000;
    let policy = |end: &str| if end.ends_with("MEMORY_LIMIT") { filling.clone() } else { endless.clone() };
    let bad = async { join_all(BAD.map(|(script, end)| execute(&hub, script, policy(end)))).await };
    let good = async {
        // The bad runs are active now.
        tokio::time::sleep(Duration::from_millis(100)).await;
        join_all((0..30).map(|_| execute(&hub, GOOD, Policy::preset(Preset::Secure)))).await
    };
    let (bad, good) = tokio::join!(bad, good);
    let endless_runs = BAD.iter().zip(&bad).filter(|((_, expected), _)| expected.starts_with("timeout"));
    let first_end = endless_runs.map(|(_, (_, took))| *took).min().expect("an endless run");
    for (outcome, took) in good {
        assert_eq!(outcome.to_json(), r#"{"status":"ok","result":[[1,2,3],499500,[1,2,3]]}"#);
        // They have begun 100 ms later, and wait for none of them, however busy the machine is.
        assert!(took + Duration::from_millis(100) < first_end, "{took:?}, an endless run {first_end:?}");
    }
    for ((script, expected), (outcome, took)) in BAD.iter().zip(bad) {
        assert_eq!(ends(&outcome), *expected, "{script}");
        let stats = outcome.stats;
        if expected.ends_with("TOOL_TIMEOUT") {
            // On a busy machine it waits for its thread or its worker before and after.
            let (least, most) = (Duration::from_millis(TOOL_TIMEOUT), Duration::from_millis(TOOL_TIMEOUT * 20));
            assert!(took >= least && took < most, "{script} took {took:?}");
        } else if expected.starts_with("timeout") {
            let limit = TIMEOUT as f64;
            let is_limited = stats.script_ms >= limit * 0.99 && stats.script_ms < limit * 3.0;
            assert!(is_limited, "{script} ran for {} ms", stats.script_ms);
        }
    }
    hub.close().await;
}

/// The limits of a preset end them too, each by its own counter.
#[tokio::test(flavor = "multi_thread")]
async fn a_preset_alone_ends_them() {
    let hub = Hub::start(crate::support::isolated(Config::default()), vec![Arc::new(Tools)]).expect("starts");
    let policy = || Policy::preset(Preset::Balanced);
    let (endless, _) = execute(&hub, "while (true) {}", policy()).await;
    assert_eq!(ends(&endless), "runtime_error ITERATION_LIMIT");
    let (nested, _) = execute(&hub, "const f = () => f(); return f();", policy()).await;
    assert_eq!(ends(&nested), "runtime_error EXECUTION_ERROR");
    hub.close().await;
}
