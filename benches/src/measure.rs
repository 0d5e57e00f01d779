//! Measures times. The engines run alternately in rounds, so that disturbances affect all of them. The best round of
//! each counts, because noise only makes rounds slower.

use crate::cases::Case;
use crate::peers::{Engine, Peer};
use std::time::Duration;

/// The effort of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Number of rounds for each engine and case.
    pub rounds: usize,
    /// Minimum duration of a round. A longer run is a round by itself.
    pub round: Duration,
    /// Maximum time of an engine on a case. After it, the engine skips further rounds, except for the second one.
    pub budget: Duration,
}

impl Plan {
    /// The plan for published figures.
    pub const FULL: Self = Self { rounds: 11, round: Duration::from_millis(20), budget: Duration::from_millis(800) };
    /// The plan for quick measurements during development.
    pub const QUICK: Self = Self { rounds: 3, round: Duration::from_millis(5), budget: Duration::from_millis(200) };
}

/// An engine that was started.
pub struct Runner {
    /// The description of the engine.
    pub engine: Engine,
    /// The running engine.
    pub peer: Box<dyn Peer + Send>,
}

/// The times of several rounds.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Number of runs in a round.
    times: u32,
    /// Seconds of a run, by round.
    rounds: Vec<f64>,
}

impl Times {
    /// Returns the seconds of a run in the best round.
    #[must_use]
    pub fn best(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns how much slower the median round was than the best one.
    #[must_use]
    pub fn spread(&self) -> f64 {
        let mut rounds = self.rounds.clone();
        rounds.sort_by(f64::total_cmp);
        rounds.get(rounds.len() / 2).map_or(0.0, |middle| middle / self.best() - 1.0)
    }

    fn spent(&self) -> f64 {
        self.rounds.iter().sum::<f64>() * f64::from(self.times)
    }

    fn is_enough(&self, plan: &Plan) -> bool {
        self.rounds.len() >= plan.rounds || (self.rounds.len() >= 2 && self.spent() > plan.budget.as_secs_f64())
    }
}

/// The engines of a measurement, and its problems.
pub struct Lab {
    /// The engines that could be started, in the order of [`ENGINES`](crate::peers::ENGINES).
    pub runners: Vec<Runner>,
    /// The effort.
    pub plan: Plan,
    /// Wrong results and failures.
    pub problems: Vec<String>,
    /// The noise: the spreads of all measurements.
    pub spreads: Vec<f64>,
}

impl Lab {
    /// Starts engines. Returns messages about those that cannot be started.
    #[must_use]
    pub fn new(engines: &[Engine], plan: Plan) -> (Self, Vec<String>) {
        let (mut runners, mut missing) = (Vec::new(), Vec::new());
        for engine in engines {
            match (engine.start)() {
                Ok(peer) => runners.push(Runner { engine: *engine, peer }),
                Err(error) => missing.push(format!("{}: {error}", engine.name)),
            }
        }
        (Self { runners, plan, problems: Vec::new(), spreads: Vec::new() }, missing)
    }

    /// Measures cases on all engines. Returns a row for each case, with the engines in their order. If an engine fails, its
    /// cell is `None` and a problem is added.
    pub fn compare(&mut self, cases: &[Case]) -> Vec<Vec<Option<Times>>> {
        let mut rows: Vec<Vec<Option<Times>>> = cases.iter().map(|case| self.warm_up(case)).collect();
        for _ in 0..self.plan.rounds {
            for (case, row) in cases.iter().zip(&mut rows) {
                for (runner, cell) in self.runners.iter_mut().zip(row) {
                    let Some(times) = cell.as_mut().filter(|times| !times.is_enough(&self.plan)) else { continue };
                    match runner.peer.round(case, times.times) {
                        Ok(round) => times.rounds.push(round.time.as_secs_f64() / f64::from(times.times)),
                        Err(error) => self.problems.push(format!("{}, {}: {error}", case.name, runner.engine.name)),
                    }
                }
            }
        }
        self.spreads.extend(rows.iter().flatten().flatten().map(Times::spread));
        rows
    }

    /// Compares the results of the engines. If they differ, or an engine fails, a problem is added.
    pub fn check(&mut self, case: &Case) {
        self.answers(case, |peer| Ok(((), peer.round(case, 1)?.answer)));
    }

    /// Determines the number of runs in a round, and compares the results.
    fn warm_up(&mut self, case: &Case) -> Vec<Option<Times>> {
        let goal = self.plan.round;
        let times = self.answers(case, |peer| calibrate(peer, case, goal));
        times.into_iter().map(|times| Some(Times { times: times?, rounds: Vec::new() })).collect()
    }

    /// Calls `work` for each engine, and compares the results of the case.
    fn answers<T>(
        &mut self,
        case: &Case,
        mut run: impl FnMut(&mut dyn Peer) -> Result<(T, String), String>,
    ) -> Vec<Option<T>> {
        let mut expected: Option<(&str, String)> = None;
        let mut given = Vec::new();
        for Runner { engine, peer } in &mut self.runners {
            let (case, name) = (&case.name, engine.name);
            given.push(match run(peer.as_mut()) {
                Ok((value, answer)) => {
                    let (first, known) = expected.get_or_insert_with(|| (name, answer.clone()));
                    if answer != *known {
                        self.problems.push(format!("{case}: {first} answers {known}, {name} {answer}"));
                    }
                    Some(value)
                }
                Err(error) => {
                    self.problems.push(format!("{case}, {name}: {error}"));
                    None
                }
            });
        }
        given
    }
}

/// Returns the number of runs that take about as long as a round, and the result of a run.
fn calibrate(peer: &mut dyn Peer, case: &Case, goal: Duration) -> Result<(u32, String), String> {
    let mut times = 1;
    // The first run of a process initialises tables and caches.
    peer.round(case, 1)?;
    loop {
        let round = peer.round(case, times)?;
        if round.time * 2 >= goal || times >= 1 << 20 {
            return Ok((times, round.answer));
        }
        let factor = goal.as_secs_f64() / round.time.as_secs_f64().max(1e-9);
        times = (f64::from(times) * factor.clamp(2.0, 10.0)) as u32;
    }
}
