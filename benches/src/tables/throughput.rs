//! Runs per second on several threads.

use crate::cases::Case;
use crate::measure::Plan;
use crate::peers::agentscript::AgentScript;
use crate::peers::{Engine, Peer};
use crate::report::{Table, count};
use std::time::{Duration, Instant};

/// Number of threads.
const THREADS: usize = 2;

/// Measures runs of a case per second, in fresh sandboxes on two threads, or in two processes.
///
/// # Errors
/// An engine fails.
pub fn throughput(plan: &Plan, engines: &[Engine], case: &Case) -> Result<Table, String> {
    let kept = Engine {
        name: "AgentScript, compiled once",
        start: || Ok(Box::new(AgentScript::compiled_once())),
        ..engines[0]
    };
    let engines: Vec<Engine> = engines[..1].iter().chain([&kept]).chain(&engines[1..]).copied().collect();
    let mut peers: Vec<Vec<Box<dyn Peer + Send>>> = Vec::new();
    for engine in &engines {
        peers.push((0..THREADS).map(|_| (engine.start)()).collect::<Result<_, _>>()?);
    }
    let mut best = vec![0.0_f64; engines.len()];
    for _ in 0..plan.rounds.div_ceil(4) {
        for (peers, best) in peers.iter_mut().zip(&mut best) {
            *best = best.max(runs_per_second(peers, case, plan.round * 20)?);
        }
    }
    let title = format!("Throughput of `{}`: runs a second on {THREADS} threads", case.name);
    let mut table = Table::new("throughput", &title, ["engine", "runs a second"]);
    table.rows = engines.iter().zip(best).map(|(engine, best)| vec![engine.name.to_owned(), count(best)]).collect();
    Ok(table)
}

/// Runs each peer on a thread of its own for this time. Returns the runs per second.
fn runs_per_second(peers: &mut [Box<dyn Peer + Send>], case: &Case, duration: Duration) -> Result<f64, String> {
    let began = Instant::now();
    let work = |peer: &mut Box<dyn Peer + Send>| {
        let mut runs = 0;
        while began.elapsed() < duration {
            peer.round(case, 20)?;
            runs += 20;
        }
        Ok::<f64, String>(f64::from(runs) / began.elapsed().as_secs_f64())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = peers.iter_mut().map(|peer| scope.spawn(move || work(peer))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread has panicked")?).sum()
    })
}
