//! Durable runs under faults, on the program, its stores and real tools: attempts with random moments and clients, and what must
//! not be after them.
//!
//! It counts what clients, tools and files show, and knows nothing of the inside. `tests/scale` simulates more failures of more
//! machines in virtual time.
//!
//! | variable | |
//! |---|---|
//! | `FAULTS_SECONDS` | after which time no more attempts begin (40) |
//! | `FAULTS_SEED` | the seed of the first attempt of each fault; by default by chance |
//! | `FAULTS_ONLY` | names of faults, with commas |
//! | `FAULTS_LANES` | how many attempts there are at once (4) |
//! | `FAULTS_PROGRAM` | the program, in place of the one that was built |
//! | `FAULTS_OTHER` | another version of it, on the same store |
//! | `FAULTS_KEEP` | a folder for the files of all attempts |

mod bank;
mod check;
mod database;
mod fault;
mod proxy;
mod random;
mod workload;
mod world;

use crate::support::skipped;
use check::{Check, Tally};
use database::Database;
use fault::Fault;
use random::Random;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use workload::Kinds;
use world::World;

/// Each client submits so many runs.
const RUNS: u64 = 4;

/// After which time no more attempts begin.
fn seconds() -> u64 {
    number("FAULTS_SECONDS", 40)
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "SKIPPED: takes a minute, and needs libfaketime: bash .ci/run"]
async fn in_a_file() {
    all("a file", false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "SKIPPED: takes a minute, and needs Postgres: bash .ci/run"]
async fn in_postgres() {
    if !cfg!(feature = "postgres") && std::env::var_os("FAULTS_PROGRAM").is_none() {
        return skipped("durable runs in Postgres under faults: the program is built without Postgres");
    }
    all("Postgres", true).await;
}

/// Tries all faults until the time is over, and checks that nothing is wrong after any.
async fn all(store: &str, has_database: bool) {
    let by_chance = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_millis());
    let seed = number("FAULTS_SEED", (by_chance % 1_000_000) as u64);
    let only = std::env::var("FAULTS_ONLY").unwrap_or_default();
    let mut faults = Vec::new();
    for fault in Fault::ALL {
        if !only.is_empty() && !only.split(',').any(|name| name == fault.name()) {
            continue;
        }
        match fault.is_impossible(has_database) {
            None => faults.push(fault),
            Some("it is of the other store") => {}
            Some(why) => skipped(&format!("{}: {why}", fault.name())),
        }
    }
    assert!(!faults.is_empty(), "FAULTS_ONLY names no fault of this store");
    let next = AtomicUsize::new(0);
    let tallies: Mutex<BTreeMap<Fault, Tally>> = Mutex::default();
    let lane = || async {
        let database = if has_database { Some(Arc::new(Database::start().await.expect("Postgres"))) } else { None };
        let until = Instant::now() + Duration::from_secs(seconds());
        while Instant::now() < until {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let (fault, seed) = (faults[number % faults.len()], seed + (number / faults.len()) as u64);
            let began = Instant::now();
            let mut tally = attempt(fault, seed, database.clone()).await;
            tally.took = began.elapsed();
            for problem in &tally.problems {
                let _ = writeln!(std::io::stdout(), "{}, seed {seed}: {problem:.2000}", fault.name());
            }
            *tallies.lock().unwrap_or_else(PoisonError::into_inner).entry(fault).or_default() += tally;
        }
    };
    futures_util::future::join_all((0..number("FAULTS_LANES", 4)).map(|_| lane())).await;
    let tallies = tallies.into_inner().unwrap_or_else(PoisonError::into_inner);
    let violations: u64 = tallies.values().map(Tally::violations).sum();
    let table = table(&tallies);
    let _ = writeln!(std::io::stdout(), "Faults of durable runs in {store}, FAULTS_SEED={seed}\n\n{table}");
    assert_eq!(violations, 0, "FAULTS_SEED={seed}");
}

/// One attempt: servers on a new store, clients and people, and a fault at a random moment.
async fn attempt(fault: Fault, seed: u64, database: Option<Arc<Database>>) -> Tally {
    let mut random = Random::new(seed);
    let world = World::start(fault.needs(&mut random), database).await;
    fault.prepare(&world, &mut random).await;
    let is_both = fault == Fault::BothDecide;
    let kinds = Kinds {
        asks: is_both,
        // A timer of a minute is in the store. It takes too long where each fault is tried once.
        sleeps: matches!(fault, Fault::ClockJump | Fault::ClockSkew | Fault::KillAll) && seconds() >= 600,
    };
    let problems = Arc::default();
    let has_stdio = fault.allows_stdio() && random.is_one_in(2);
    let is_killed = random.is_one_in(2).then(|| Duration::from_millis(random.between(600, 2_500)));
    let (clients, people, stdio) = (random.part(1), random.part(2), random.part(3));
    let submitted = async {
        let over_stdio = async {
            match has_stdio {
                true => Some(workload::over_stdio(&world, stdio, is_killed).await),
                false => None,
            }
        };
        tokio::join!(workload::submit(&world, &clients, RUNS, &kinds), over_stdio, async {
            random.sleep(150, 700).await;
            fault.inject(&world, &mut random).await;
        })
    };
    // People decide until everything has ended.
    let decided = workload::decide(&world, people, is_both, Arc::clone(&problems));
    let checked = async {
        let (runs, over_stdio, ()) = submitted.await;
        let seen = std::mem::take(&mut *problems.lock().unwrap_or_else(PoisonError::into_inner));
        Check::new(&world).all(runs, over_stdio, seen).await
    };
    let tally = tokio::select! {
        tally = checked => tally,
        () = decided => Tally::default(),
    };
    world.clear().await;
    tally
}

/// Faults, attempts and violations.
fn table(tallies: &BTreeMap<Fault, Tally>) -> String {
    let mut text = String::from(
        "| fault | attempts | runs | lost | double | made again | stuck | wrong outcome | wrong row | double in the window | not recorded | interrupted | seconds each |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let mut sum = Tally::default();
    let mut row = |name: &str, tally: &Tally| {
        let Tally {
            attempts,
            runs,
            lost,
            double,
            again,
            stuck,
            outcome,
            history,
            window,
            unrecorded,
            interrupted,
            took,
            ..
        } = tally;
        let each = took.as_secs_f64() / (*attempts).max(1) as f64;
        let _ = writeln!(
            text,
            "| {name} | {attempts} | {runs} | {lost} | {double} | {again} | {stuck} | {outcome} | {history} | {window} | {unrecorded} | {interrupted} | {each:.1} |"
        );
    };
    for (fault, tally) in tallies {
        row(fault.name(), tally);
        sum += tally.clone();
    }
    row("all", &sum);
    text
}
