mod calls;
mod nesting;
mod pool;
mod rates;
mod time;

use super::*;
use agentscript::{Preset, Status};
use codecall_base::tool::ToolFilter;
use codecall_config::{Sanitization, ToolPolicy};
use codecall_upstream::Upstream;
use codecall_upstream::inline::Inline;
use futures_util::future::BoxFuture;
use serde_json::{Value, json as data};
use std::sync::Mutex;
use std::time::Duration;

/// Crashes the interpreter or blocks its thread, which no script can do, if the first line of the script says so.
pub fn misbehave(script: &str) {
    match script.lines().next() {
        Some("//! crash") => panic!("as the test asks"),
        Some("//! stall") => std::thread::sleep(Duration::from_millis(1_500)),
        Some(_) | None => {}
    }
}

fn runs(pool: Pool) -> Runs {
    let any = || data!({"type": "object"});
    let tools = [
        ("users", "get", "", any()),
        ("users", "slow", "", any()),
        ("users", "fail", "", any()),
        ("users", "long", "", any()),
    ];
    let tools: Vec<(Arc<dyn Upstream>, ToolFilter)> = vec![(Arc::new(Inline::echo(&tools)), ToolFilter::default())];
    let catalogue = Arc::new(Catalogue::new(tools, ToolPolicy::default(), Arc::default()));
    let sanitization = Sanitization { remove_stack_traces: true, remove_file_paths: true };
    let pipeline = Arc::new(Pipeline::new(Arc::clone(&catalogue), sanitization));
    Runs::new(catalogue, pipeline, pool)
}

/// Creates a request that is limited only by memory and time.
fn request(script: &str) -> ExecuteRequest {
    let mut policy = Policy::preset(Preset::Experimental);
    policy.limits.max_tool_calls = 0;
    (policy.limits.max_steps, policy.limits.max_iterations) = (u64::MAX, u64::MAX);
    ExecuteRequest::new(script, policy)
}

async fn execute(runs: &Runs, script: &str) -> Outcome {
    runs.execute(request(script), None, CancellationToken::new()).await.outcome
}

fn code(outcome: &Outcome) -> &str {
    outcome.result.as_ref().map_or_else(|failure| failure.code.as_str(), |_| "ok")
}

/// Asserts that the pool has ended a run: its code and the number of its tool calls.
#[track_caller]
fn assert_ended(outcome: &Outcome, expected: &str, tool_calls: u64) {
    assert_eq!(code(outcome), expected, "{outcome:?}");
    let failure = outcome.result.as_ref().expect_err("a failure");
    assert_eq!((failure.status, failure.tool_calls), (Status::RuntimeError, tool_calls), "{outcome:?}");
    // Those that the script has made, handed out or not.
    assert!(outcome.stats.tool_calls >= tool_calls, "{outcome:?}");
    assert!(outcome.stats.duration_ms > 0.0);
}

#[tokio::test]
async fn a_script_gives_its_result() {
    let outcome = execute(&runs(Pool::default()), "return null").await;
    assert_eq!(outcome.to_json(), r#"{"status":"ok","result":null}"#);
}

/// Records its calls.
#[derive(Default)]
struct RecordingHook(Mutex<Vec<String>>);

impl RunHook for RecordingHook {
    fn begin<'a>(&'a self, start: &'a RunStart) -> BoxFuture<'a, ()> {
        let nested = if start.parent.is_some() { " nested" } else { "" };
        self.0.lock().expect("not poisoned").push(format!("begin{nested} {}: {}", start.depth, start.script));
        Box::pin(async {})
    }

    fn end<'a>(&'a self, end: &'a RunEnd<'a>) -> BoxFuture<'a, ()> {
        let calls = end.calls()["calls"].as_array().map_or(0, Vec::len);
        let line = format!("end {} {} {calls} calls", end.start.depth, code(end.outcome));
        self.0.lock().expect("not poisoned").push(line);
        Box::pin(async {})
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_see_the_beginning_and_the_end_of_each_run() {
    let recorded = Arc::new(RecordingHook::default());
    let runs = Arc::new(runs(Pool::default()).with_hooks(vec![Arc::clone(&recorded) as _]));
    execute(&runs, "await users.get({}); return 1").await;
    execute(&runs, "return nothing").await;
    // The client disconnects during a call.
    let called = Arc::new(tokio::sync::Notify::new());
    let run = tokio::spawn({
        let (runs, called) = (Arc::clone(&runs), Arc::clone(&called));
        let sink: EventSink = Some(Arc::new(move |event| {
            if matches!(event, RunEvent::CallStarted { .. }) {
                called.notify_one();
            }
        }));
        async move { runs.execute(request("await users.slow({})"), sink, CancellationToken::new()).await.outcome }
    });
    called.notified().await;
    let lines = || recorded.0.lock().expect("not poisoned").clone();
    run.abort();
    while lines().len() < 6 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        lines(),
        [
            "begin 0: await users.get({}); return 1",
            "end 0 ok 1 calls",
            "begin 0: return nothing",
            "end 0 EXECUTION_ERROR 0 calls",
            "begin 0: await users.slow({})",
            "end 0 EXECUTION_ABORTED 1 calls",
        ]
    );
}

/// A server may have thousands of runs that wait for their calls.
#[test]
fn a_run_that_waits_is_small() {
    let runs = runs(Pool::default());
    let size = size_of_val(&runs.execute(request("await users.slow({})"), None, CancellationToken::new()));
    assert!(size <= 1 << 10, "{size} bytes");
}
