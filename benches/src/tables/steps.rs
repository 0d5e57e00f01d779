//! The cost of a step that replays previous calls.

use crate::cases::steps::{Middle, SHAPES};
use crate::measure::Plan;
use crate::report::{Table, bytes, count, time};
use agentscript::stateless::Journal;
use cpu_time::ThreadTime;
use std::hint::black_box;

/// Numbers of previous calls.
pub const SIZES: [usize; 4] = [1, 10, 100, 1_000];

const KEY: &[u8] = b"a key of sixteen bytes or more";

/// Measures steps of all shapes and sizes, and their tokens.
///
/// # Errors
/// A step fails.
pub fn steps(plan: &Plan) -> Result<Table, String> {
    let title = "Steps: the time of one, by the calls behind it";
    let columns = ["calls behind", "step", "for each call", "read token", "write token", "token", "journal as JSON"];
    let mut table = Table::new("steps", title, columns);
    for (shape, begin) in SHAPES {
        for calls in SIZES {
            table.rows.push(row(plan, format!("{} {shape}", count(calls as f64)), calls, &begin(calls)?)?);
        }
    }
    Ok(table)
}

fn row(plan: &Plan, name: String, calls: usize, middle: &Middle) -> Result<Vec<String>, String> {
    let next = middle.step()?.journal;
    let token = next.clone().compact().token(Some(KEY));
    let json = serde_json::to_string(&next).map_err(|error| error.to_string())?;
    let step = best(plan, || middle.step().map(drop))?;
    let write = best(plan, || {
        black_box(next.clone().compact().token(Some(KEY)));
        Ok(())
    })?;
    let read = best(plan, || match Journal::from_token(&token, Some(KEY), usize::MAX) {
        Ok(journal) => {
            black_box(journal);
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    })?;
    let (token, json) = (bytes(token.len() as f64), bytes(json.len() as f64));
    Ok(vec![name, time(step), time(step / calls as f64), time(read), time(write), token, json])
}

/// Returns the time of the best round, in seconds.
fn best(plan: &Plan, mut work: impl FnMut() -> Result<(), String>) -> Result<f64, String> {
    work()?;
    let (mut best, began) = (f64::INFINITY, ThreadTime::now());
    for _ in 0..plan.rounds {
        let (mut times, round) = (0.0, ThreadTime::now());
        while round.elapsed() < plan.round {
            work()?;
            times += 1.0;
        }
        best = best.min(round.elapsed().as_secs_f64() / times);
        if began.elapsed() > plan.budget {
            break;
        }
    }
    Ok(best)
}
