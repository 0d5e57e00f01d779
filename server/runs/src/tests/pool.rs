//! Tests of the pool: permits, the queue, threads, memory, and runs that are ended.

use super::*;
use codecall_base::client::{Answering, Client, Port, Question, Waits};
use tokio::sync::Semaphore;

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
    let given_up = async |watchdog: u64| {
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
    };
    tokio::join!(given_up(100), given_up(10_000));
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
    // The memory that was freed can be used again.
    assert_eq!(code(&execute(&runs, "return 'x'.repeat(1.5e7).length").await), "ok");
}
