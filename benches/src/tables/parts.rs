//! The parts of the time of a fresh run.

use crate::cases::{Case, orders};
use crate::measure::{Lab, Plan};
use crate::peers::agentscript::AgentScript;
use crate::report::{Table, digits, time};
use cpu_time::ThreadTime;
use std::time::Duration;

/// The parts of a fresh run. JSON conversions are part of `run`.
pub const PARTS: [&str; 4] = ["compile", "start", "run", "drop"];

/// Number of runs whose parts are measured together, because reading the clock takes too long for a single one.
pub const BATCH: usize = 50;

/// Measures the parts of AgentScript, the best of several rounds.
///
/// # Errors
/// A case fails.
pub fn parts(plan: &Plan, cases: &[Case]) -> Result<Table, String> {
    let title = "Parts of a fresh run: AgentScript";
    let mut table = Table::new("parts", title, ["case"].into_iter().chain(PARTS).chain(["sum"]));
    let ours = AgentScript::new();
    for case in cases {
        let mut best = [f64::INFINITY; PARTS.len()];
        for _ in 0..plan.rounds * 4 {
            for (best, lap) in best.iter_mut().zip(laps(&ours, case, BATCH)?) {
                *best = best.min(lap.as_secs_f64() / BATCH as f64);
            }
        }
        let sum = best.iter().sum();
        let cells = best.into_iter().chain([sum]).map(time);
        table.rows.push(std::iter::once(case.name.clone()).chain(cells).collect());
    }
    Ok(table)
}

/// Measures each of the [`PARTS`], of this number of runs together.
///
/// # Errors
/// The case fails.
pub fn laps(ours: &AgentScript, case: &Case, runs: usize) -> Result<[Duration; PARTS.len()], String> {
    let mut laps = [Duration::ZERO; PARTS.len()];
    let mut clock = ThreadTime::now();
    let mut lap = |part: usize| {
        laps[part] = clock.elapsed();
        clock = ThreadTime::now();
    };
    let scripts: Vec<_> = (0..runs).map(|_| ours.compile(case)).collect::<Result<_, _>>()?;
    lap(0);
    let mut runs: Vec<_> = scripts.iter().map(|script| ours.start(script, case)).collect();
    lap(1);
    for run in &mut runs {
        AgentScript::finish(run, case, Vec::new())?;
    }
    lap(2);
    drop((runs, scripts));
    lap(3);
    Ok(laps)
}

/// Returns the size of the data of [`conversions`], in megabytes.
fn megabytes(cases: &[Case]) -> f64 {
    cases[1].answer(ORDERS).len() as f64 / 1e6
}

const ORDERS: &str = "orders:list";

/// Returns cases with much data: none is passed, all is passed in, all is passed in and out, and one field of it is used.
#[must_use]
pub fn conversions() -> [Case; 4] {
    let data = orders(5_000);
    let page = format!("{{\"count\":5000,\"orders\":{data}}}");
    let case = |name: &str, script: &str, json: &str| Case::new(name, "", script).with_tool(ORDERS, json.into());
    let take = "const orders = await callTool('orders:list', {}); return orders.length;";
    let give = "return await callTool('orders:list', {});";
    let look = "const page = await callTool('orders:list', {}); return page.count;";
    let cases =
        [("json-none", take, "[]"), ("json-in", take, &data), ("json-out", give, &data), ("json-field", look, &page)];
    cases.map(|(name, script, json)| case(name, script, json))
}

/// Measures JSON conversions: the difference between runs with much data and without.
pub fn convert(lab: &mut Lab) -> Table {
    let cases = conversions();
    let megabytes = megabytes(&cases);
    let rows = lab.compare(&cases);
    let title = format!("Data of {} MB across the boundary", digits(megabytes));
    let mut table = Table::new("convert", &title, ["engine", "in", "MB/s", "out", "MB/s", "one field of it", "MB/s"]);
    for (engine, runner) in lab.runners.iter().enumerate() {
        let best = |row: usize| rows[row][engine].as_ref().map(crate::measure::Times::best);
        let (Some(none), Some(taken), Some(given), Some(seen)) = (best(0), best(1), best(2), best(3)) else { continue };
        let cells = [taken - none, given - taken, seen - none]
            .into_iter()
            .flat_map(|seconds| [time(seconds), digits(megabytes / seconds)]);
        table.rows.push(std::iter::once(runner.engine.name.to_owned()).chain(cells).collect());
    }
    table
}
