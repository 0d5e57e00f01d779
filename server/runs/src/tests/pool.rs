//! Tests of the pool: permits, the queue, threads, memory, and runs that are ended.

use super::*;
use tokio::sync::Semaphore;

/// Waits until the load of the pool is so.
async fn wait_for_load(runs: &Runs, is_reached: impl Fn(&Load) -> bool) {
    let waits = async {
        while !is_reached(&runs.load()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waits).await.unwrap_or_else(|_| panic!("{:?}", runs.load()));
}

const SLEEPS: &str = "await new Promise((done) => setTimeout(done, 50_000))";

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_holds_no_permit() {
    let runs = runs(Pool { max_runs: 1, queue_timeout: Duration::from_secs(10), ..Pool::default() });
    for script in [SLEEPS, "await users.slow({})"] {
        let cancel = CancellationToken::new();
        let waiting = runs.execute(request(script), None, cancel.clone());
        let other = async {
            wait_for_load(&runs, |load| load.waiting >= 1).await;
            // Also those that wait themselves, and those that call tools.
            let sleep = "await new Promise((done) => setTimeout(done, 20)); return (await users.get({})) !== null";
            assert_eq!(code(&execute(&runs, sleep).await), "ok", "{script}");
            wait_for_load(&runs, |load| *load == Load { active: 0, waiting: 1, available: 1, queued: 0 }).await;
            cancel.cancel();
        };
        let (waited, ()) = tokio::join!(waiting, other);
        assert_eq!(code(&waited.outcome), "EXECUTION_ABORTED");
        // The outcome is there before the place is free.
        wait_for_load(&runs, |load| *load == Load { available: 1, ..Load::default() }).await;
    }
}

/// Runs of two clients with one pool.
fn neighbours(pool: Pool) -> (Arc<Runs>, Arc<Runs>) {
    let one = runs(pool);
    let two = one.with_tools(Arc::clone(&one.catalogue), Arc::clone(&one.pipeline)).of_client(ClientKey([1; 32]));
    (Arc::new(one), Arc::new(two))
}

/// A client alone has as many runs as permits; beside it another one begins, however many sleep and are in the queue.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_runs_of_a_client_leave_places_for_others() {
    let wait = Duration::from_secs(1);
    let pool = Pool { max_runs: 4, max_queue: 8, max_waiting: Some(0), queue_timeout: wait, ..Pool::default() };
    let (one, two) = neighbours(pool);
    let cancel = CancellationToken::new();
    let sleeping = futures_util::future::join_all((0..40).map(|_| one.execute(request(SLEEPS), None, cancel.clone())));
    let other = async {
        wait_for_load(&one, |load| *load == Load { active: 0, waiting: 4, available: 4, queued: 8 }).await;
        for _ in 0..20 {
            assert_eq!(code(&execute(&two, "return 1").await), "ok");
        }
        let outcomes =
            futures_util::future::join_all((0..4).map(|_| execute(&two, "return (await users.get({})) !== null")))
                .await;
        assert!(outcomes.iter().all(|outcome| code(outcome) == "ok"), "{outcomes:?}");
        tokio::time::sleep(wait + Duration::from_millis(200)).await;
        cancel.cancel();
    };
    let (slept, ()) = tokio::join!(sleeping, other);
    let count = |expected: &str| slept.iter().filter(|finished| code(&finished.outcome) == expected).count();
    // Runs of the other client may have replaced some in the queue.
    assert_eq!((count("EXECUTION_ABORTED"), count("QUEUE_TIMEOUT") + count("QUEUE_FULL")), (4, 36));
    wait_for_load(&one, |load| *load == Load { available: 4, ..Load::default() }).await;
}

/// Waiting runs that use much memory get no more places than there are permits, and another client begins beside them.
#[tokio::test(flavor = "multi_thread")]
async fn places_for_waiting_runs_depend_on_memory() {
    let pool = Pool {
        max_runs: 2,
        max_memory_bytes: 40_000_000,
        queue_timeout: Duration::from_millis(500),
        ..Pool::default()
    };
    let (one, two) = neighbours(pool);
    let cancel = CancellationToken::new();
    let keeps = "const kept = []; for (let i = 0; i < 110; i++) kept.push('x'.repeat(1e5 + i));
        await new Promise((done) => setTimeout(done, 50_000)); return kept.length";
    let keeping = futures_util::future::join_all((0..6).map(|_| one.execute(request(keeps), None, cancel.clone())));
    let other = async {
        wait_for_load(&one, |load| load.waiting >= 2).await;
        assert_eq!(code(&execute(&two, "return 1").await), "ok");
        tokio::time::sleep(Duration::from_millis(800)).await;
        cancel.cancel();
    };
    let (kept, ()) = tokio::join!(keeping, other);
    let mut codes: Vec<&str> = kept.iter().map(|finished| code(&finished.outcome)).collect();
    codes.sort_unstable();
    let begun = codes.iter().filter(|code| **code == "EXECUTION_ABORTED").count();
    // A third one may begin while the second has not got its memory yet.
    assert!((2..=3).contains(&begun) && codes[begun..].iter().all(|code| *code == "QUEUE_TIMEOUT"), "{codes:?}");
}

/// A client that fills the queue is the one whose runs are refused.
#[tokio::test]
async fn a_full_queue_has_positions_for_others() {
    let wait = Duration::from_millis(300);
    let (one, two) = neighbours(Pool { max_runs: 1, max_queue: 4, queue_timeout: wait, ..Pool::default() });
    let taken = one.admission.try_enter(ClientKey::default()).expect("the only permit");
    let many = futures_util::future::join_all((0..10).map(|_| execute(&one, "return 1")));
    let few = async {
        tokio::task::yield_now().await;
        let two = &two;
        let few = futures_util::future::join_all((0..3).map(|_| execute(two, "return 1")));
        let (few, ()) = tokio::join!(few, async {
            tokio::task::yield_now().await;
            drop(taken);
        });
        few
    };
    let (many, few) = tokio::join!(many, few);
    let codes = |outcomes: &[Outcome]| outcomes.iter().map(|outcome| code(outcome).to_owned()).collect::<Vec<_>>();
    assert_eq!(codes(&few), ["ok", "ok", "QUEUE_FULL"]);
    assert_eq!(codes(&many).iter().filter(|code| *code == "ok").count(), 2, "{many:?}");
}

/// Scripts that never wait give permits back to another client, after a slice or a call.
#[tokio::test(flavor = "multi_thread")]
async fn endless_runs_of_a_client_give_way_to_others() {
    for script in [
        "for (;;) {}",
        "for (;;) await null",
        "for (;;) await new Promise((done) => setTimeout(done, 0))",
        "for (;;) { try { await callTool('users:nothing', {}) } catch {} }",
    ] {
        let (one, two) = neighbours(Pool { threads: 1, max_runs: 4, ..Pool::default() });
        let cancel = CancellationToken::new();
        let long = || {
            let mut request = request(script);
            request.policy.limits.timeout_ms = 600_000;
            one.execute(request, None, cancel.clone())
        };
        let long = futures_util::future::join_all((0..8).map(|_| long()));
        let other = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let began = Instant::now();
            for _ in 0..5 {
                assert_eq!(code(&execute(&two, "return 1").await), "ok", "{script}");
            }
            assert!(began.elapsed() < Duration::from_secs(3), "{script}: {:?}", began.elapsed());
            cancel.cancel();
        };
        let (ended, ()) = tokio::join!(long, other);
        for finished in ended {
            assert_eq!(code(&finished.outcome), "EXECUTION_ABORTED", "{script}");
        }
        wait_for_load(&one, |load| *load == Load { available: 4, ..Load::default() }).await;
    }
}

#[tokio::test]
async fn a_full_queue_refuses() {
    let runs = runs(Pool { max_runs: 1, max_queue: 1, queue_timeout: Duration::from_millis(30), ..Pool::default() });
    let _taken = runs.admission.try_enter(ClientKey::default()).expect("the only permit");
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
