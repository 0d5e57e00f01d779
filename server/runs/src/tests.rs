use super::calls::Calls;
use super::*;
use agentscript::{Call, CallId, Event, Preset, Status};
use codecall_base::client::{Answering, Client, Port, Question, Waits};
use codecall_base::tool::{ToolError, ToolFilter, ToolLookups};
use codecall_config::{Sanitization, ToolPolicy};
use codecall_upstream::Upstream;
use codecall_upstream::inline::Inline;
use futures_util::future::BoxFuture;
use serde_json::{Value, json as data};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn refused_calls_are_answered_in_their_order() {
    let runs = runs(Pool::default());
    let script = "const order = [];
        const call = (n) => callTool(n % 3 ? `none:tool${n}` : 'users:get', {}).catch(() => order.push(n));
        await Promise.allSettled(Array.from({ length: 300 }, (_, n) => call(n)));
        return order.length === 200 && order.every((n, at) => at === 0 || order[at - 1] < n)";
    for _ in 0..10 {
        let outcome = execute(&runs, script).await;
        assert_eq!(outcome.to_json(), r#"{"status":"ok","result":true}"#);
    }
}

/// A client that has a question to answer.
struct Asked {
    capabilities: Value,
    waits: Waits,
}

impl Port for Asked {
    fn capabilities(&self) -> &Value {
        &self.capabilities
    }

    fn client(&self) -> u64 {
        1
    }

    fn waits(&self) -> &Waits {
        &self.waits
    }

    fn ask(&self, _: Question) -> Answering<'_> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_run_that_waits_for_a_person_needs_no_permit() {
    let runs = runs(Pool { max_runs: 1, ..Pool::default() });
    let (capabilities, waits) = (data!({"elicitation": {}}), Waits::new(Duration::from_secs(600)));
    let port = Arc::new(Asked { capabilities, waits });
    let waiting = port.waits().begin();
    let (cancel, script) = (CancellationToken::new(), "await new Promise((done) => setTimeout(done, 50_000))");
    let asking = ExecuteRequest { client: Client::new(Arc::<Asked>::clone(&port)), ..request(script) };
    let asking = runs.execute(asking, None, cancel.clone());
    let other = async {
        // It waits in the queue until the other one is released.
        tokio::task::yield_now().await;
        let outcome = execute(&runs, "return 1").await;
        assert_eq!((code(&outcome), runs.load().0), ("ok", 0));
        cancel.cancel();
    };
    let (asked, ()) = tokio::join!(asking, other);
    assert_eq!(code(&asked.outcome), "EXECUTION_ABORTED");
    drop(waiting);
    assert_eq!(runs.load(), (0, 1, 0));
}

#[tokio::test]
async fn a_full_queue_refuses() {
    let runs = runs(Pool { max_runs: 1, max_queue: 1, queue_timeout: Duration::from_millis(30), ..Pool::default() });
    let _taken = runs.admission.try_acquire().expect("the only permit");
    let late = || execute(&runs, "return 1");
    let (first, second) = tokio::join!(late(), late());
    assert_ended(&first, "QUEUE_TIMEOUT", 0);
    assert_ended(&second, "QUEUE_FULL", 0);
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert_ended(&runs.execute(request("return 1"), None, cancel).await.outcome, "EXECUTION_ABORTED", 0);
    runs.close();
    assert_ended(&late().await, "POOL_DISPOSED", 0);
}

/// Scripts that do not end by themselves: in a loop, in a callback, in one long operation, and in a tool call.
const ENDLESS: [&str; 4] = [
    "console.log('began'); await users.get({}); for (;;) {}",
    "console.log('began'); await users.get({}); [2, 1].sort(() => { for (;;) {} })",
    "console.log('began'); await users.get({}); 'x'.repeat(3e5).match(/(?:x+x+)+y|(?=.*x.*x.*y)./)",
    "console.log('began'); await users.get({}); try { await users.slow({}) } finally { console.log('never') }",
];

/// A sink, and a permit for each call that has reached its tool.
fn reached_calls() -> (EventSink, Arc<Semaphore>) {
    let reached = Arc::new(Semaphore::new(0));
    let counted = Arc::clone(&reached);
    let sink = move |event| {
        if matches!(event, RunEvent::CallReached { .. }) {
            counted.add_permits(1);
        }
    };
    (Some(Arc::new(sink)), reached)
}

/// Waits for so many calls, and until the script is where it does not end.
async fn wait_for_calls(reached: &Semaphore, calls: u32) {
    let _reached = reached.acquire_many(calls).await.expect("never closed");
    tokio::time::sleep(Duration::from_millis(100)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_ends_wherever_it_is() {
    let runs = runs(Pool::default());
    for (script, calls) in ENDLESS.into_iter().zip([1, 1, 1, 2]) {
        let cancel = CancellationToken::new();
        let (sink, reached) = reached_calls();
        let run = runs.execute(request(script), sink, cancel.clone());
        let cancelled = async {
            wait_for_calls(&reached, calls).await;
            cancel.cancel();
            Instant::now()
        };
        let (finished, at) = tokio::join!(run, cancelled);
        assert_ended(&finished.outcome, "EXECUTION_ABORTED", calls.into());
        assert!(at.elapsed() < Duration::from_secs(3), "{script} ended after {:?}", at.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_closes_ends_its_runs() {
    let runs = runs(Pool::default());
    let (sink, reached) = reached_calls();
    let run = |script| runs.execute(request(script), sink.clone(), CancellationToken::new());
    let closing = async {
        wait_for_calls(&reached, 3).await;
        runs.close();
    };
    let (endless, waiting, ()) = tokio::join!(run(ENDLESS[0]), run(ENDLESS[3]), closing);
    let (endless, waiting) = (endless.outcome, waiting.outcome);
    assert_ended(&endless, "POOL_DISPOSED", 1);
    assert_ended(&waiting, "POOL_DISPOSED", 2);
    assert_eq!((endless.logs, waiting.logs), (vec!["began".to_owned()], vec!["began".to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_is_the_end_of_one_run() {
    let runs = runs(Pool { threads: 1, ..Pool::default() });
    let good = "let n = 0; for (let i = 0; i < 20; i++) n += (await users.get({ i })).i; return n;";
    let (before, crash, after) =
        tokio::join!(execute(&runs, good), execute(&runs, "//! crash\nreturn 1"), execute(&runs, good));
    assert_ended(&crash, "WORKER_CRASHED", 0);
    assert_eq!((before.result.expect("ok"), after.result.expect("ok")), ("190".into(), "190".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_is_held_is_given_up_and_replaced() {
    let runs = runs(Pool { threads: 1, watchdog: Duration::from_millis(200), ..Pool::default() });
    let began = Instant::now();
    let (stalled, other) = tokio::join!(execute(&runs, "//! stall\nreturn 1"), execute(&runs, "return 2"));
    assert_ended(&stalled, "WORKER_TIMEOUT", 0);
    assert_eq!(code(&other), "ok");
    assert!(began.elapsed() < Duration::from_millis(1_400), "{:?}", began.elapsed());
}

/// A run that was given up, cancelled or abandoned keeps its permit and its memory until its thread ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_given_up_keeps_its_permit_and_memory() {
    let limit = Policy::preset(Preset::Experimental).limits.max_memory_bytes;
    for watchdog in [100, 10_000] {
        let wait = Duration::from_millis(50);
        let pool = Pool { threads: 1, max_runs: 2, watchdog: Duration::from_millis(watchdog), ..Pool::default() };
        let runs = runs(Pool { queue_timeout: wait, max_memory_bytes: limit + 1, ..pool });
        let cancel = CancellationToken::new();
        let stalled = runs.execute(request("//! stall\nreturn 1"), None, cancel.clone());
        let given_up = async {
            tokio::time::sleep(Duration::from_millis(150)).await;
            cancel.cancel();
        };
        let (stalled, ()) = tokio::join!(stalled, given_up);
        assert!(["WORKER_TIMEOUT", "EXECUTION_ABORTED"].contains(&code(&stalled.outcome)), "{:?}", stalled.outcome);
        assert_eq!(code(&execute(&runs, "return 1").await), "ok", "there is a permit and memory for one more");
        let dropped = runs.execute(request("//! stall\nreturn 2"), None, CancellationToken::new());
        assert!(tokio::time::timeout(wait, dropped).await.is_err());
        assert_eq!(code(&execute(&runs, "return 1").await), "QUEUE_TIMEOUT", "both permits are taken");
        assert!(runs.memory.check_available().is_err(), "the memory too");
        tokio::time::sleep(Duration::from_millis(3_500)).await;
        assert_eq!(code(&execute(&runs, "return 1").await), "ok");
    }
}

/// Runs are refused while the whole budget belongs to runs that cannot be ended.
#[tokio::test(flavor = "multi_thread")]
async fn an_exhausted_memory_budget_refuses_runs() {
    let limit = Policy::preset(Preset::Experimental).limits.max_memory_bytes;
    let pool = Pool { watchdog: Duration::from_millis(50), max_memory_bytes: limit, ..Pool::default() };
    let runs = runs(pool);
    assert_ended(&execute(&runs, "//! stall\nreturn 1").await, "WORKER_TIMEOUT", 0);
    let refused = execute(&runs, "return 1").await;
    assert_ended(&refused, "WORKER_MEMORY_EXCEEDED", 0);
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(code(&execute(&runs, "return 1").await), "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_steps_of_one_run_do_not_hold_up_another() {
    let runs = runs(Pool { threads: 1, ..Pool::default() });
    let long = async {
        let outcome =
            execute(&runs, "return Array.from({ length: 4e5 }, (_, i) => (i * 7919) % 400009).sort().length").await;
        (outcome, Instant::now())
    };
    let short = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let outcome = execute(&runs, "return 1").await;
        (outcome, Instant::now())
    };
    let ((long, long_ended), (short, short_ended)) = tokio::join!(long, short);
    assert_eq!((code(&long), code(&short)), ("ok", "ok"));
    assert!(short_ended < long_ended, "the short run waited for the long one");
}

/// A run that is preempted at the end of its slice is resumed: also after pauses in which the watchdog thread sleeps, and
/// next to an endless sequence of short runs.
#[tokio::test(flavor = "multi_thread")]
async fn preempted_runs_are_resumed() {
    let runs = runs(Pool { threads: 1, ..Pool::default() });
    let timeout = Duration::from_secs(20);
    let long = "let n = 0; for (let i = 0; i < 2e5; i++) n += i % 7; return n > 0";
    for pause in [0, 80, 95, 100, 105, 110, 120, 150, 250] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let outcome = tokio::time::timeout(timeout, execute(&runs, long)).await.expect("ends");
        assert_eq!(code(&outcome), "ok");
    }
    let short = async {
        loop {
            let outcomes = tokio::join!(execute(&runs, "return 1"), execute(&runs, "return 2"));
            assert_eq!((code(&outcomes.0), code(&outcomes.1)), ("ok", "ok"));
        }
    };
    tokio::select! {
        outcome = tokio::time::timeout(timeout, execute(&runs, long)) => assert_eq!(code(&outcome.expect("ends")), "ok"),
        () = short => {}
    }
}

#[tokio::test]
async fn threads_that_cannot_be_started() {
    let mut runs = runs(Pool::default());
    // More than an address space.
    runs.queue = Arc::new(Queue::with_stack(2, Duration::from_secs(1), 1 << 48));
    assert_ended(&execute(&runs, "return 1").await, "WORKER_STARTUP_FAILED", 0);
    assert_ended(&execute(&runs, "return 1").await, "WORKER_STARTUP_FAILED", 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_run_ends_when_all_need_too_much() {
    let runs = runs(Pool { max_memory_bytes: 24_000_000, ..Pool::default() });
    let large = "const kept = []; for (let i = 0; i < 160; i++) kept.push('x'.repeat(1e5 + i));
        try { await users.slow({}) } catch {} return kept.length";
    let small = "const kept = []; for (let i = 0; i < 100; i++) { kept.push('y'.repeat(1e5 + i)); await users.get({}) }
        return kept.length";
    let waits = Arc::new(tokio::sync::Notify::new());
    let sink: EventSink = Some(Arc::new({
        let waits = Arc::clone(&waits);
        move |event| {
            if matches!(event, RunEvent::CallStarted { .. }) {
                waits.notify_one()
            }
        }
    }));
    let later = async {
        waits.notified().await;
        execute(&runs, small).await
    };
    let (large, small) = tokio::join!(runs.execute(request(large), sink, CancellationToken::new()), later);
    let large = large.outcome;
    assert_ended(&large, "WORKER_MEMORY_EXCEEDED", 1);
    assert_eq!(code(&small), "ok", "{small:?}");
    // What was freed can be used again.
    assert_eq!(code(&execute(&runs, "return 'x'.repeat(1.5e7).length").await), "ok");
}

#[tokio::test]
async fn messages_and_calls_of_a_script_are_limited() {
    let runs = runs(Pool { max_messages: 10, max_message_bytes: 1_000, max_pending_calls: 20, ..Pool::default() });
    let deep = "let deep = {}; for (let i = 0; i < 140; i++) deep = { d: deep };";
    for (script, expected, calls) in [
        ("for (let i = 0; i < 10; i++) mcpLog('info', 'x'); return 1", "ok", 0),
        ("for (let i = 0; i < 11; i++) mcpLog('info', 'x'); return 1", "MESSAGE_FLOOD", 0),
        ("await users.get({}); for (;;) { mcpNotify('e', {}); await users.get({}); }", "MESSAGE_FLOOD", 11),
        ("try { for (;;) { mcpNotify('e', {}); await null; } } catch {} finally { return 1 }", "MESSAGE_FLOOD", 0),
        ("mcpNotify('e', { text: 'x'.repeat(900) }); return 1", "ok", 0),
        ("mcpNotify('e', { text: 'x'.repeat(1000) }); return 1", "MESSAGE_TOO_LARGE", 0),
        ("try { await users.get({ text: 'x'.repeat(1000) }) } catch {} return 1", "MESSAGE_TOO_LARGE", 0),
        (&format!("{deep} mcpLog('info', 'x', deep); return 1"), "MESSAGE_INVALID", 0),
        (&format!("{deep} try {{ await users.get(deep) }} catch {{}} return 1"), "MESSAGE_INVALID", 0),
        ("for (let i = 0; i < 20; i++) users.get({}); await null; return 1", "ok", 20),
        (
            "const all = []; for (let i = 0; i < 21; i++) all.push(users.get({})); await Promise.all(all)",
            "TOO_MANY_PENDING_CALLS",
            0,
        ),
    ] {
        let outcome = execute(&runs, script).await;
        match expected {
            "ok" => assert_eq!(code(&outcome), "ok", "{script}: {outcome:?}"),
            _ => assert_ended(&outcome, expected, calls),
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_a_failure_of_its_call() {
    let runs = runs(Pool { max_message_bytes: 100, ..Pool::default() });
    let script =
        |n: u32| format!("try {{ return (await users.long({{ n: {n} }})).length }} catch (e) {{ return e.code }}");
    assert_eq!(execute(&runs, &script(90)).await.result.expect("ok"), "90");
    assert_eq!(execute(&runs, &script(101)).await.result.expect("ok"), "\"MESSAGE_TOO_LARGE\"");
}

#[tokio::test]
async fn calls_wait_their_turn_and_fail_alone() {
    let runs = runs(Pool::default());
    let calls = Arc::new(Calls {
        pipeline: Arc::clone(&runs.pipeline),
        allowed: None,
        apps: None,
        permits: Arc::new(Semaphore::new(1)),
        context: RunContext::new(
            RunScope { id: RunId::random(), depth: 0, permit: None, pause: None },
            &runs.memory,
            &runs.pool,
            None,
            CancellationToken::new(),
        ),
        log: Arc::new(CallLog::new(false)),
        is_dry_run: false,
        client: Client::default(),
        fetch: None,
        requester: None,
        trace: None,
    });
    let call = |id, tool: &str, input: &str| {
        Box::new(Call {
            id: CallId(id),
            kind: agentscript::CallKind::Tool,
            tool: tool.into(),
            input: input.into(),
            timeout_ms: 20,
        })
    };
    let mut pending = JoinSet::new();
    pending.spawn(Arc::clone(&calls).make(call(0, "users:slow", "{}"), CancellationToken::new(), None));
    pending.spawn(Arc::clone(&calls).make(call(1, "users:get", r#"{"a":1}"#), CancellationToken::new(), None));
    pending.spawn(Arc::clone(&calls).make(call(2, "users:get", "[1]"), CancellationToken::new(), None));
    let mut ended = pending.join_all().await;
    ended.sort_by_key(|end| end.id);
    assert_eq!(ended[0].result.as_ref().expect_err("too slow").code, "TOOL_TIMEOUT");
    assert_eq!(ended[1].result.as_deref(), Ok(r#"{"a":1}"#));
    assert_eq!(ended[2].result.as_ref().expect_err("no object").code, "INVALID_INPUT");
}

/// Returns the logged calls of a run, without their durations.
fn log(finished: &Finished) -> Value {
    let mut log = finished.meta()["codecall/calls"].clone();
    for call in log["calls"].as_array_mut().into_iter().flatten() {
        let duration = call.as_object_mut().and_then(|call| call.shift_remove("durationMs"));
        assert!(duration.is_some_and(|ms| ms.as_f64().is_some_and(|ms| ms >= 0.0)));
    }
    log
}

#[tokio::test]
async fn every_call_is_in_the_log() {
    let runs = runs(Pool::default());
    let run = |script: &str| runs.execute(request(script), None, CancellationToken::new());
    let script = "await Promise.race([users.slow({}), users.get({ id: 1 })]); await users.fail({}).catch(() => 0);
        users.get({ late: true }); return 1";
    let finished = run(script).await;
    assert_eq!(code(&finished.outcome), "ok");
    let failed = data!({"code": "TOOL_EXECUTION_ERROR", "message": "at [path]: broken"});
    assert_eq!(
        log(&finished),
        data!({
            "calls": [
                {"callId": "1", "toolName": "users:slow", "input": {}, "status": "cancelled"},
                {"callId": "2", "toolName": "users:get", "input": {"id": 1}, "status": "ok"},
                {"callId": "3", "toolName": "users:fail", "input": {}, "status": "error", "error": failed},
                {"callId": "4", "toolName": "users:get", "input": {"late": true}, "status": "ok"},
            ],
            "unanswered": [
                {"callId": "1", "toolName": "users:slow", "input": {}, "started": true, "awaited": false},
            ],
        })
    );
    // The same on every other status.
    for (end, status) in [
        ("throw new Error('x')", Status::RuntimeError),
        ("await users.nothing({})", Status::RuntimeError),
        ("await callTool('users:nothing', {})", Status::ToolError),
        ("await callTool('codecall:search', {})", Status::IllegalAccess),
    ] {
        let finished = run(&format!("await users.get({{}}); {end}")).await;
        assert_eq!(finished.outcome.status(), status, "{:?}", finished.outcome);
        assert_eq!(log(&finished)["calls"][0]["status"], "ok");
    }
}

#[tokio::test]
async fn timers_take_time_and_no_script_time() {
    let runs = runs(Pool::default());
    let script = "const start = Date.now(); await sleep(80); setTimeout(() => console.log('late'), 60);
        const turns = await new Promise((done) => { let n = 0; const t = setInterval(() => {
          n += 1; if (n === 3) { clearInterval(t); done(n); } }, 10); });
        return [turns, Date.now() - start >= 105, performance.now() >= 105]";
    let began = Instant::now();
    let outcome = execute(&runs, script).await;
    assert_eq!(outcome.to_json(), r#"{"status":"ok","result":[3,true,true],"logs":["late"]}"#);
    assert!(began.elapsed() >= Duration::from_millis(140), "{:?}", began.elapsed());
    assert!(outcome.stats.script_ms < outcome.stats.duration_ms - 100.0, "{:?}", outcome.stats);
}

#[tokio::test]
async fn a_timer_that_never_ends_is_named() {
    let runs = runs(Pool::default());
    let mut request = request("console.log('began');\nsetInterval(() => {}, 20);\nreturn 1");
    request.policy.limits.max_duration_ms = 300;
    let outcome = runs.execute(request, None, CancellationToken::new()).await.outcome;
    let failure = outcome.result.expect_err("it takes too long");
    let message =
        "Script execution timed out after 300ms: it still waited for the interval of line 2, which is never cleared";
    assert_eq!((failure.status, failure.message.as_str()), (Status::Timeout, message));
}

#[tokio::test]
async fn what_a_script_has_started_is_done() {
    let runs = runs(Pool::default());
    let run = |script: &'static str| runs.execute(request(script), None, CancellationToken::new());
    let finished = run("[1, 2, 3].forEach(async (id) => { await users.get({ id }); await users.get({ again: id }); });
        return 'done'")
    .await;
    assert_eq!(finished.outcome.to_json(), r#"{"status":"ok","result":"done"}"#);
    assert_eq!((log(&finished)["calls"].as_array().map(Vec::len), finished.outcome.stats.tool_calls), (Some(6), 6));
    let failed = run("users.fail({}); await users.get({}); return 'done'").await.outcome;
    let failure = failed.result.expect_err("nobody handles it");
    assert_eq!((failure.status, failure.unhandled), (Status::ToolError, true));
}

#[tokio::test]
async fn a_signal_cancels_a_call() {
    let runs = runs(Pool::default());
    let script = "const start = performance.now();
        const signal = AbortSignal.timeout(60);
        const name = await users.slow({}, { signal }).catch((error) => error.name);
        return [name, performance.now() - start < 5000, await users.get({ id: 1 }, { signal }).catch((error) => error.name)]";
    let finished = runs.execute(request(script), None, CancellationToken::new()).await;
    assert_eq!(finished.outcome.to_json(), r#"{"status":"ok","result":["TimeoutError",true,"TimeoutError"]}"#);
    let log = log(&finished);
    assert_eq!(log, data!({"calls": [{"callId": "1", "toolName": "users:slow", "input": {}, "status": "cancelled"}]}));
}

#[tokio::test]
async fn time_is_virtual_in_a_dry_run() {
    let runs = runs(Pool::default());
    let script = "const start = Date.now(); for (let i = 0; i < 5; i++) { await users.get({ i }); await sleep(60000); }
        return Date.now() - start";
    let began = Instant::now();
    let finished =
        runs.execute(ExecuteRequest { dry_run: true, ..request(script) }, None, CancellationToken::new()).await;
    assert_eq!(finished.outcome.to_json(), r#"{"status":"ok","result":300000}"#);
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn the_log_of_calls_is_limited() {
    let runs = runs(Pool::default());
    let script = "for (let i = 0; i < 120; i++) await users.get({ text: 'é'.repeat(5000) }); return 1";
    let finished = runs.execute(request(script), None, CancellationToken::new()).await;
    let log = log(&finished);
    assert_eq!((log["calls"].as_array().map(Vec::len), &log["omitted"]), (Some(100), &data!(20)));
    assert!(log["calls"][0]["input"].as_str().is_some_and(|text| text.len() < 2_100 && text.ends_with('…')));
}

#[tokio::test]
async fn a_dry_run_reaches_no_tool() {
    let runs = runs(Pool::default());
    // `users:slow` never answers, `users:fail` always fails.
    let script = "const a = await users.slow({ id: 1 }); await users.fail({}); console.log(typeof a);
        await callTool('users:nothing', {}).catch((e) => e.code); return 'end'";
    let finished =
        runs.execute(ExecuteRequest { dry_run: true, ..request(script) }, None, CancellationToken::new()).await;
    let answer: Value = serde_json::from_str(&finished.dry_run_json()).expect("JSON");
    assert_eq!((&answer["status"], &answer["dryRun"], &answer["result"]), (&data!("ok"), &data!(true), &data!("end")));
    assert_eq!(answer["logs"], data!(["object"]));
    assert_eq!(
        answer["calls"][0],
        data!({"toolName": "users:slow", "input": {"id": 1}, "fits": true, "result": "unknown"})
    );
    assert_eq!(answer["calls"][1]["fits"], true);
    assert_eq!(answer["calls"][2]["refused"]["code"], "TOOL_NOT_FOUND");
    assert!(answer["note"].is_string());
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

/// Creates runs with a tool that runs the script in its input.
fn nesting(pool: Pool) -> Arc<Runs> {
    let within: Arc<OnceLock<Weak<Runs>>> = Arc::default();
    let runs = {
        let within = Arc::clone(&within);
        let schema = data!({"type": "object", "properties": {"script": {"type": "string"}}});
        let tool = Inline::new("scripts").tool("run", "Run a script", schema, move |call| {
            let runs = within.get().and_then(Weak::upgrade).expect("they are there");
            async move {
                let script = call.input["script"].as_str().unwrap_or_default();
                let request = ExecuteRequest { parent: call.run, ..request(script) };
                match runs.execute(request, None, call.cancel).await.outcome.result {
                    Ok(json) => Ok(serde_json::from_str::<Value>(&json).expect("JSON")),
                    Err(failure) => Err(ToolError::new(failure.code, failure.message)),
                }
            }
        });
        let tools: Vec<(Arc<dyn Upstream>, ToolFilter)> = vec![(Arc::new(tool), ToolFilter::default())];
        let catalogue = Arc::new(Catalogue::new(tools, ToolPolicy::default(), Arc::default()));
        let sanitization = Sanitization { remove_stack_traces: true, remove_file_paths: true };
        let pipeline = Arc::new(Pipeline::new(Arc::clone(&catalogue), sanitization));
        Arc::new(Runs::new(catalogue, pipeline, pool))
    };
    within.set(Arc::downgrade(&runs)).expect("once");
    runs
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nested_run_takes_no_second_permit() {
    let runs = nesting(Pool { max_runs: 1, max_queue: 0, ..Pool::default() });
    let script = "return 1 + await callTool('scripts:run', { script: \"return await callTool('scripts:run', { script: 'return 40 + 1' })\" })";
    let outcome = execute(&runs, script).await;
    assert_eq!(outcome.result.as_deref().map_err(|failure| failure.message.as_str()), Ok("42"));
    // The permit is free again.
    assert_eq!(code(&execute(&runs, "return 1").await), "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn nesting_of_runs_is_limited() {
    let runs = nesting(Pool { max_runs: 1, max_queue: 0, ..Pool::default() });
    let script = (0..MAX_NESTING + 1).fold("return 1".to_owned(), |inner, _| {
        format!("return await callTool('scripts:run', {{ script: {} }})", data!(inner))
    });
    let outcome = execute(&runs, &script).await;
    let failure = outcome.result.expect_err("too deep");
    assert_eq!(failure.code, "EXECUTION_ERROR");
    assert!(failure.message.contains("more than 8 deep"), "{}", failure.message);
}

/// A journal that accepts this number of calls.
#[derive(Debug)]
struct Full(AtomicUsize);

impl RunJournal for Full {
    fn start(&self, start: StartInputs) -> StartInputs {
        StartInputs { record_lookups: true, ..start }
    }

    fn append_lookups(&self, _lookups: ToolLookups) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn append_calls<'a>(&'a self, calls: &'a [Call]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let is_full = self.0.fetch_sub(calls.len(), Ordering::SeqCst) == 0;
            if is_full { Err(JournalError("it is full".into())) } else { Ok(()) }
        })
    }

    fn append_answers<'a>(&'a self, _events: &'a [Event]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_is_dispatched_that_is_not_in_the_journal() {
    let runs = runs(Pool::default());
    let journal = Some(Arc::new(Full(AtomicUsize::new(2))) as Arc<dyn RunJournal>);
    let script = "for (let i = 0; i < 5; i++) await users.get({ i })";
    let finished = runs.execute(ExecuteRequest { journal, ..request(script) }, None, CancellationToken::new()).await;
    assert_ended(&finished.outcome, "EXECUTION_ERROR", 2);
    let failure = finished.outcome.result.as_ref().expect_err("ended");
    assert_eq!(failure.message, "The journal of the run cannot be written: it is full");
}
