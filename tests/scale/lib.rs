//! Many servers on one store, in virtual time, while machines, a zone and the store fail: no run is lost, and nothing is done
//! twice.
//!
//! Each machine is a whole server without its network. The hub, the scheduler of runs, journals, leases and approvals
//! are those of the program, and the store is an SQLite file. Simulated are the clocks, the tools, the people who
//! approve calls, and the
//! failures. `docs/reports/scale.md` says how to run it with more runs.

#![cfg(test)]

mod costs;
mod machine;
mod simulation;
mod world;

use simulation::{Plan, Simulation};
use std::io::Write as _;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// `CODECALL_SCALE_RUNS`, `CODECALL_SCALE_MACHINES`, `CODECALL_SCALE_FAILURES` and `CODECALL_SCALE_SEED` change its
/// size and its
/// failures.
#[test]
fn nothing_is_lost_and_nothing_is_done_twice() {
    let plan = Plan {
        runs: number("CODECALL_SCALE_RUNS", 300) as usize,
        machines: number("CODECALL_SCALE_MACHINES", 6) as usize,
        seed: number("CODECALL_SCALE_SEED", 1),
        failures: number("CODECALL_SCALE_FAILURES", 10),
    };
    let report = Simulation::new(&plan).run();
    let _ = writeln!(std::io::stdout(), "{report}");
    assert_eq!(report.problems, Vec::<String>::new(), "CODECALL_SCALE_SEED={}", plan.seed);
    assert!(report.failures >= 5, "{report}");
}

/// Without failures each call is made once, and each run has its best outcome.
#[test]
fn an_undisturbed_run_makes_each_call_once() {
    let report = Simulation::new(&Plan { runs: 60, machines: 3, seed: 2, failures: 0 }).run();
    assert_eq!((&report.problems[..], report.repeated, report.interrupted, report.failures), (&[][..], 0, 0, 0));
}

/// `CODECALL_SCALE_WAITING` changes how many runs one server has in memory.
#[test]
fn runs_that_wait_for_a_tool_are_in_memory() {
    let runs = number("CODECALL_SCALE_WAITING", 100) as usize;
    assert_eq!(costs::waiting_in_memory(runs), runs);
}

/// A server that may have ten runs in memory lets a hundred sleep: they are in the store, and go on when their time has come.
#[test]
fn runs_that_sleep_are_not_in_memory() {
    assert_eq!(costs::asleep(100, 10), (100, 100));
}

/// Looks find what can go on among runs that wait, and nothing else; it prints what they take. That they follow an index is a
/// test of the store. `CODECALL_SCALE_STORED` changes how many runs wait.
#[test]
fn looks_at_the_store_find_what_can_go_on() {
    costs::looks(number("CODECALL_SCALE_STORED", 5_000));
}
