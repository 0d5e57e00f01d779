//! Tests of calls: their order, limits, log and journal, and dry runs.

use super::*;
use crate::calls::Calls;
use agentscript::stateless::Round;
use agentscript::{Call, CallId};
use codecall_base::client::Client;
use codecall_base::tool::ToolLookups;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

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
            RunScope { id: RunId::random(), depth: 0, pause: None, hold: None, rates: None },
            None,
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
        ("const name = 'codecall:search'; await callTool(name, {})", Status::IllegalAccess),
    ] {
        let finished = run(&format!("await users.get({{}}); {end}")).await;
        assert_eq!(finished.outcome.status(), status, "{:?}", finished.outcome);
        assert_eq!(log(&finished)["calls"][0]["status"], "ok");
    }
}

#[tokio::test]
async fn what_a_script_has_started_is_done() {
    let runs = runs(Pool::default());
    let run = |script: &'static str| runs.execute(request(script), None, CancellationToken::new());
    let finished =
        run("for (const id of [1, 2, 3]) (async () => { await users.get({ id }); await users.get({ again: id }) })();
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

/// A journal that accepts this number of calls.
#[derive(Debug)]
struct Full(AtomicUsize);

impl Recorder for Full {
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

    fn append_answers<'a>(&'a self, _round: &'a Round) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_is_dispatched_that_is_not_in_the_journal() {
    let runs = runs(Pool::default());
    let journal = Some(Arc::new(Full(AtomicUsize::new(2))) as Arc<dyn Recorder>);
    let script = "for (let i = 0; i < 5; i++) await users.get({ i })";
    let finished = runs.execute(ExecuteRequest { journal, ..request(script) }, None, CancellationToken::new()).await;
    assert_ended(&finished.outcome, "EXECUTION_ERROR", 2);
    let failure = finished.outcome.result.as_ref().expect_err("ended");
    assert_eq!(failure.message, "The journal of the run cannot be written: it is full");
}
