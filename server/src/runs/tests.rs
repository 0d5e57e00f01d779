use super::*;
use crate::catalogue::{ToolFilter, tests::catalogue};
use crate::config::Sanitization;
use serde_json::json;

fn runs(pool: Pool) -> Runs {
    let tools = [("users", "get", "", json!({"type": "object"})), ("users", "slow", "", json!({"type": "object"}))];
    let catalogue = Arc::new(catalogue(&tools, ToolFilter::default()));
    let sanitization = Sanitization { remove_stack_traces: true, remove_file_paths: true };
    let pipeline = Arc::new(Pipeline::new(Arc::clone(&catalogue), sanitization));
    Runs::new(catalogue, pipeline, pool)
}

fn request(script: &str) -> ExecuteRequest {
    ExecuteRequest::new(script, Policy::default())
}

fn code(outcome: &Outcome) -> &str {
    outcome.result.as_ref().map_or_else(|failure| failure.code.as_str(), |_| "ok")
}

#[tokio::test]
async fn a_script_gives_its_result() {
    let runs = runs(Pool::default());
    let outcome = runs.execute(request("return null"), None, CancellationToken::new()).await;
    assert_eq!(outcome.to_json(), r#"{"status":"ok","result":null}"#);
}

#[tokio::test]
async fn a_full_queue_refuses() {
    let runs = runs(Pool { max_runs: 1, max_queue: 1, queue_timeout: Duration::from_millis(30), ..Pool::default() });
    let _taken = Arc::clone(&runs.places).try_acquire_owned().expect("the only place");
    let late = || runs.execute(request("return 1"), None, CancellationToken::new());
    let (first, second) = tokio::join!(late(), late());
    assert_eq!((code(&first), code(&second)), ("QUEUE_TIMEOUT", "QUEUE_FULL"));
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert_eq!(code(&runs.execute(request("return 1"), None, cancel).await), "EXECUTION_ABORTED");
    runs.close();
    assert_eq!(code(&late().await), "POOL_DISPOSED");
}

#[tokio::test]
async fn calls_wait_their_turn_and_fail_alone() {
    let runs = runs(Pool::default());
    let calls = Calls {
        pipeline: Arc::clone(&runs.pipeline),
        allowed: None,
        apps: None,
        at_once: Arc::new(Semaphore::new(1)),
        watcher: None,
        cancel: CancellationToken::new(),
    };
    let call =
        |id, tool: &str, input: &str| Call { id: CallId(id), tool: tool.into(), input: input.into(), timeout_ms: 20 };
    let mut pending = JoinSet::new();
    pending.spawn(calls.clone().make(call(0, "users:slow", "{}")));
    pending.spawn(calls.clone().make(call(1, "users:get", r#"{"a":1}"#)));
    pending.spawn(calls.clone().make(call(2, "users:get", "[1]")));
    let mut ended = pending.join_all().await;
    ended.sort_by_key(|(id, _)| *id);
    assert_eq!(ended[0].1.as_ref().expect_err("too slow").code, "TOOL_TIMEOUT");
    assert_eq!(ended[1].1.as_deref(), Ok(r#"{"a":1}"#));
    assert_eq!(ended[2].1.as_ref().expect_err("no object").code, "INVALID_INPUT");
}

#[test]
fn half_a_pair_becomes_a_replacement_character() {
    for (text, expected) in [
        (r#""\ud83d\ude00 a""#, "\u{1f600} a"),
        (r#""\ud83d""#, "\u{fffd}"),
        (r#""\ude00\ud83d\n\\ud83d\u00e9é""#, "\u{fffd}\u{fffd}\n\\ud83déé"),
        (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
    ] {
        assert_eq!(json(text).expect("JSON"), serde_json::json!(expected), "{text}");
    }
    assert!(json(&"[".repeat(1_000)).is_err());
}
