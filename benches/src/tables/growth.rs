//! The growth of time with the size of the data: ten times the data may take twelve times as long.

use crate::cases::{self, growth::Family};
use crate::measure::{Lab, Plan};
use crate::peers::agentscript::AgentScript;
use crate::peers::{ENGINES, Engine};
use crate::report::{Table, count, digits, time};

/// Maximum factor of the time for ten times the size.
pub const MAX_FACTOR: f64 = 12.0;

/// The times of a case in several sizes, each ten times the one before.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name.
    pub name: &'static str,
    /// The unit of the sizes.
    pub unit: &'static str,
    /// The sizes.
    pub sizes: Vec<usize>,
    /// Seconds by engine and size, AgentScript first.
    pub lines: Vec<(&'static str, Vec<f64>)>,
}

impl Series {
    /// Returns the largest factor of the time of AgentScript between two sizes.
    #[must_use]
    pub fn worst_step(&self) -> f64 {
        let Some((_, seconds)) = self.lines.first() else { return f64::NAN };
        seconds.windows(2).map(|pair| pair[1] / pair[0]).fold(0.0, f64::max)
    }
}

/// Measures all series.
pub fn growth(plan: Plan, engines: &[Engine], problems: &mut Vec<String>) -> Vec<Series> {
    // A small memory limit causes garbage collections.
    const SMALL: Engine = Engine { start: || Ok(Box::new(AgentScript::with_memory_limit(16 << 20))), ..ENGINES[0] };
    let mut all = Vec::new();
    for Family { name, unit, sizes, cases } in cases::growth::families() {
        let ours = if name == "garbage" { SMALL } else { ENGINES[0] };
        let engines: Vec<Engine> = std::iter::once(ours).chain(engines[1..].iter().copied()).collect();
        let (mut lab, _) = Lab::new(&engines, plan);
        let rows = lab.compare(&cases);
        let lines = lab.runners.iter().enumerate().filter_map(|(engine, runner)| {
            let seconds = rows.iter().map(|row| Some(row.get(engine)?.as_ref()?.best())).collect::<Option<_>>()?;
            Some((runner.engine.name, seconds))
        });
        all.push(Series { name, unit, sizes, lines: lines.collect() });
        problems.append(&mut lab.problems);
    }
    let sizes = vec![10, 100, 1_000, 10_000];
    match sizes.iter().map(|size| runs(&plan, *size)).collect::<Result<_, _>>() {
        Ok(seconds) => {
            all.push(Series {
                name: "runs",
                unit: "runs waiting at once",
                sizes,
                lines: vec![(ENGINES[0].name, seconds)],
            });
        }
        Err(error) => problems.push(error),
    }
    all
}

/// Returns the table of the times of AgentScript.
#[must_use]
pub fn table(series: &[Series]) -> Table {
    let longest = series.iter().map(|series| series.sizes.len()).max().unwrap_or(0);
    let heads = (0..longest).map(|power| format!("× {}", count(10_f64.powi(power as i32))));
    let columns = ["what grows".to_owned(), "from".to_owned()];
    let columns = columns.into_iter().chain(heads).chain(["worst step".to_owned(), format!("≤ {MAX_FACTOR}")]);
    let mut table = Table::new("growth", "Growth: our time for ten times as much, and again", columns);
    for series in series {
        let Some((_, seconds)) = series.lines.first() else { continue };
        let from = series.sizes.first().copied().unwrap_or(0);
        let cells = (0..longest).map(|size| seconds.get(size).map_or(String::new(), |seconds| time(*seconds)));
        let worst = series.worst_step();
        let verdict = if worst <= MAX_FACTOR { "yes" } else { "NO" };
        let head = [format!("{}: {}", series.name, series.unit), count(from as f64)];
        table.rows.push(head.into_iter().chain(cells).chain([digits(worst), verdict.into()]).collect());
    }
    table
}

/// Measures runs that wait for a tool call at the same time and then end. Returns the seconds for all of them.
fn runs(plan: &Plan, count: usize) -> Result<f64, String> {
    let mut best = f64::INFINITY;
    for _ in 0..plan.rounds.max(5) {
        best = best.min(AgentScript::new().time_concurrent(&cases::growth::sequence(1), count)?.as_secs_f64());
    }
    Ok(best)
}
