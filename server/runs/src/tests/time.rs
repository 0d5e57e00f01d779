//! Tests of timers, and of time in dry runs.

use super::*;

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
