//! Tools that refuse calls because there were too many.

use super::*;
use agentscript::Call;
use agentscript::stateless::Round;
use codecall_base::tool::{ToolDefinition, ToolError, ToolLookups};
use codecall_config::{Config, RateLimit};
use codecall_store::Stores;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The calls that an API with a limit of its own has seen.
#[derive(Default)]
struct ApiCalls {
    calls: AtomicUsize,
    active: AtomicUsize,
    most_after_refusal: AtomicUsize,
    refusals: AtomicUsize,
}

/// Runs with an app `api`, whose tools refuse the first calls: `read` and `write`, with that many refusals and that time.
fn limited(refusals: usize, details: Value, config: Config) -> (Runs, Arc<ApiCalls>) {
    let seen = Arc::new(ApiCalls::default());
    let mut app = Inline::new("api");
    for (name, reads) in [("read", true), ("write", false)] {
        let (seen, details) = (Arc::clone(&seen), details.clone());
        let annotations = data!({"readOnlyHint": reads});
        let definition = ToolDefinition {
            app: "api".into(),
            name: name.into(),
            input_schema: data!({"type": "object"}),
            annotations: annotations.as_object().cloned().expect("an object"),
            ..ToolDefinition::default()
        };
        app = app.define(definition, move |call| {
            let (seen, details) = (Arc::clone(&seen), details.clone());
            async move {
                let number = seen.calls.fetch_add(1, Ordering::SeqCst);
                let active = seen.active.fetch_add(1, Ordering::SeqCst) + 1;
                if seen.refusals.load(Ordering::SeqCst) == refusals {
                    seen.most_after_refusal.fetch_max(active, Ordering::SeqCst);
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
                seen.active.fetch_sub(1, Ordering::SeqCst);
                if number < refusals {
                    seen.refusals.fetch_add(1, Ordering::SeqCst);
                    let details = Some(details.to_string());
                    return Err(ToolError {
                        details,
                        ..ToolError::new("TOOL_EXECUTION_ERROR", "HTTP 429 Too Many Requests")
                    });
                }
                Ok(Value::Object(call.input))
            }
        });
    }
    let tools: Vec<(Arc<dyn Upstream>, ToolFilter)> = vec![(Arc::new(app), ToolFilter::default())];
    let catalogue = Arc::new(Catalogue::new(tools, ToolPolicy::default(), Arc::default()));
    let pipeline = Pipeline::configured(Arc::clone(&catalogue), &config, &Stores::in_memory(&config), Vec::new());
    let pipeline = Arc::new(pipeline.expect("there is no audit file"));
    (Runs::new(catalogue, pipeline, Pool::default()), seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_call_of_a_tool_that_reads_is_made_again() {
    let (runs, seen) = limited(2, data!({"status": 429, "retryAfter": "0.2"}), Config::default());
    let began = Instant::now();
    let finished = runs.execute(request("return api.read({n: 1})"), None, CancellationToken::new()).await;
    assert_eq!(finished.outcome.result.as_deref().expect("it succeeds"), r#"{"n":1}"#);
    assert!(began.elapsed() >= Duration::from_millis(400), "{:?}", began.elapsed());
    assert_eq!(seen.calls.load(Ordering::SeqCst), 3);
    // A call that is made again is one call.
    let meta = finished.meta();
    assert_eq!(
        (&meta["codecall/stats"]["toolCalls"], &meta["codecall/stats"]["rateLimitRetries"]),
        (&data!(1), &data!(2))
    );
    let calls = meta["codecall/calls"]["calls"].as_array().expect("a list");
    assert_eq!((calls.len(), &calls[0]["status"], &calls[0]["retries"]), (1, &data!("ok"), &data!(2)));
    assert_eq!(finished.tool_calls(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_calls_fail_at_once() {
    let busy = || data!({"status": 429, "retryAfter": 60});
    let none = Config {
        chain: codecall_config::ChainConfig { rate_limit_retries: 0, ..Default::default() },
        ..Config::default()
    };
    for (script, details, config, calls) in [
        // It may have written.
        ("return api.write({})", data!({"status": 429, "retryAfter": "0.01"}), Config::default(), 1),
        // No time is said, or the run does not last so long.
        ("return api.read({})", data!({"status": 429}), Config::default(), 1),
        ("return api.read({})", data!({"status": 429, "retryAfter": 3600}), Config::default(), 1),
        ("return api.read({})", data!({"status": 429, "retryAfter": "0.01"}), none, 1),
        // It is refused each time.
        ("return api.read({})", data!({"status": 429, "retryAfter": "0.01"}), Config::default(), 6),
    ] {
        let (runs, seen) = limited(1_000, details, config);
        let outcome = execute(&runs, script).await;
        assert_eq!(code(&outcome), "TOOL_EXECUTION_ERROR", "{script}");
        assert_eq!(seen.calls.load(Ordering::SeqCst), calls, "{script}");
    }
    let mut short = request("return api.read({})");
    short.policy.limits.max_duration_ms = 30_000;
    let (runs, seen) = limited(1_000, busy(), Config::default());
    let began = Instant::now();
    let finished = runs.execute(short, None, CancellationToken::new()).await;
    assert_eq!((code(&finished.outcome), seen.calls.load(Ordering::SeqCst)), ("TOOL_EXECUTION_ERROR", 1));
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_has_refused_calls_is_called_less_at_once() {
    let (runs, seen) = limited(20, data!({"retryAfterMs": 100}), Config::default());
    let script = "const all = await parallel([...Array(40).keys()], (n) => api.read({n}), {maxConcurrency: 20});
        return all.map((one) => one.n).join() === [...Array(40).keys()].join()";
    let finished = runs.execute(request(script), None, CancellationToken::new()).await;
    assert_eq!(finished.outcome.result.as_deref().expect("it succeeds"), "true");
    assert_eq!(seen.calls.load(Ordering::SeqCst), 60);
    let most = seen.most_after_refusal.load(Ordering::SeqCst);
    assert!(most <= 4, "{most} calls at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_of_the_configuration_are_obeyed_too() {
    let limits: Vec<RateLimit> =
        serde_json::from_str(r#"[{"tool": "api:*", "limit": 2, "window": "100ms"}]"#).expect("rules");
    let config = || {
        let mut config = Config::default();
        config.chain.rate_limits.clone_from(&limits);
        config
    };
    let (runs, seen) = limited(0, data!({}), config());
    let script = "return (await parallel([1, 2, 3, 4, 5, 6], (n) => api.read({n}))).length";
    assert_eq!(execute(&runs, script).await.result.expect("it succeeds"), "6");
    assert_eq!(seen.calls.load(Ordering::SeqCst), 6);
    let (runs, seen) = limited(0, data!({}), config());
    let script = "for (const n of [1, 2, 3]) await api.write({n}); return 1";
    assert_eq!(code(&execute(&runs, script).await), "RATE_LIMIT");
    assert_eq!(seen.calls.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_is_cancelled_with_its_run() {
    let (runs, seen) = limited(1, data!({"status": 429, "retryAfter": 30}), Config::default());
    let cancel = CancellationToken::new();
    let running = runs.execute(request("return api.read({})"), None, cancel.clone());
    let cancelling = async {
        while seen.refusals.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (finished, ()) = tokio::join!(running, cancelling);
    assert_eq!((code(&finished.outcome), seen.calls.load(Ordering::SeqCst)), ("EXECUTION_ABORTED", 1));
}

/// A journal that counts calls and answers.
#[derive(Debug, Default)]
struct Counting {
    calls: AtomicUsize,
    answers: AtomicUsize,
}

impl Recorder for Counting {
    fn start(&self, start: StartInputs) -> StartInputs {
        start
    }

    fn append_lookups(&self, _: ToolLookups) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn append_calls<'a>(&'a self, calls: &'a [Call]) -> BoxFuture<'a, Result<(), JournalError>> {
        self.calls.fetch_add(calls.len(), Ordering::SeqCst);
        Box::pin(std::future::ready(Ok(())))
    }

    fn append_answers<'a>(&'a self, round: &'a Round) -> BoxFuture<'a, Result<(), JournalError>> {
        let good = round.answers.iter().filter(|answer| answer.result.is_ok());
        self.answers.fetch_add(good.count(), Ordering::SeqCst);
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_made_again_is_once_in_the_journal() {
    let (runs, seen) = limited(2, data!({"retryAfterMs": 20, "status": 429}), Config::default());
    let journal = Arc::new(Counting::default());
    let request =
        ExecuteRequest { journal: Some(Arc::<Counting>::clone(&journal) as _), ..request("return api.read({})") };
    let finished = runs.execute(request, None, CancellationToken::new()).await;
    assert_eq!(finished.outcome.result.as_deref().expect("it succeeds"), "{}");
    let counts = [&seen.calls, &journal.calls, &journal.answers].map(|count| count.load(Ordering::SeqCst));
    assert_eq!(counts, [3, 1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_lists_the_calls_that_matter_most() {
    let (runs, _) = limited(0, data!({}), Config::default());
    let script = "for (let n = 0; n < 30; n++) await api.read({n});
        await api.write({n: 1});
        await callTool('api:none').catch(() => 0);
        throw new Error('ended')";
    let finished = runs.execute(request(script), None, CancellationToken::new()).await;
    let error = codecall_base::json::parse(&finished.to_json()).expect("JSON")["error"].clone();
    let calls = error["calls"].as_array().expect("a list");
    let first: Vec<&str> = calls.iter().take(3).filter_map(|call| call["name"].as_str()).collect();
    assert_eq!(
        (calls.len(), &error["omittedCalls"], first),
        (20, &data!(12), vec!["api:none", "api:write", "api:read"])
    );
}
