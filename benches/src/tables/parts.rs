//! Where the time of a fresh run goes.

use crate::cases::{Case, orders};
use crate::measure::{Lab, Plan};
use crate::peers::agentscript::AgentScript;
use crate::report::{Table, digits, time};
use cpu_time::ThreadTime;

/// Our own parts: compiling, starting, running (conversions of JSON included), dropping.
///
/// # Errors
/// If a case fails.
pub fn parts(plan: &Plan, cases: &[Case]) -> Result<Table, String> {
    let title = "Parts of a fresh run: AgentScript";
    let mut table = Table::new("parts", title, ["case", "compile", "start", "run", "drop", "sum"]);
    for case in cases {
        let best = best_parts(plan, case)?;
        let sum = best.iter().sum();
        let cells = best.into_iter().chain([sum]).map(time);
        table.rows.push(std::iter::once(case.name.clone()).chain(cells).collect());
    }
    Ok(table)
}

fn best_parts(plan: &Plan, case: &Case) -> Result<[f64; 4], String> {
    const BATCH: usize = 50;
    let ours = AgentScript::new();
    let mut best = [f64::INFINITY; 4];
    for _ in 0..plan.rounds * 4 {
        let mut laps = [0.0; 4];
        let mut clock = ThreadTime::now();
        let mut lap = |part: usize| {
            laps[part] += clock.elapsed().as_secs_f64() / BATCH as f64;
            clock = ThreadTime::now();
        };
        let scripts: Vec<_> = (0..BATCH).map(|_| ours.compile(case)).collect::<Result<_, _>>()?;
        lap(0);
        let mut runs: Vec<_> = scripts.iter().map(|script| ours.start(script, case)).collect();
        lap(1);
        for run in &mut runs {
            AgentScript::finish(run, case, Vec::new())?;
        }
        lap(2);
        drop((runs, scripts));
        lap(3);
        for (best, lap) in best.iter_mut().zip(laps) {
            *best = best.min(lap);
        }
    }
    Ok(best)
}

/// JSON on its way in and out: what runs with much data take more than runs with none.
pub fn convert(lab: &mut Lab) -> Table {
    let data = orders(5_000);
    let megabytes = data.len() as f64 / 1e6;
    let case = |name: &str, script: &str, json: &str| Case::new(name, "", script).tool("orders:list", json.into());
    let take = "const orders = await callTool('orders:list', {}); return orders.length;";
    let give = "return await callTool('orders:list', {});";
    let cases = [case("json-none", take, "[]"), case("json-in", take, &data), case("json-out", give, &data)];
    let rows = lab.compare(&cases);
    let title = format!("Data of {} MB across the boundary", digits(megabytes));
    let mut table = Table::new("convert", &title, ["engine", "in", "MB/s", "out", "MB/s"]);
    for (engine, runner) in lab.runners.iter().enumerate() {
        let best = |row: usize| rows[row][engine].as_ref().map(crate::measure::Times::best);
        let (Some(none), Some(taken), Some(given)) = (best(0), best(1), best(2)) else { continue };
        let cells =
            [taken - none, given - taken].into_iter().flat_map(|seconds| [time(seconds), digits(megabytes / seconds)]);
        table.rows.push(std::iter::once(runner.engine.name.to_owned()).chain(cells).collect());
    }
    table
}
