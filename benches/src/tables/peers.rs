//! Fresh runs and kernels of AgentScript and its peers.

use crate::cases::Case;
use crate::measure::Lab;
use crate::report::{Table, digits, geometric_mean, time};

/// The times of a case.
#[derive(Clone, Debug)]
pub struct Row {
    /// Name of the case.
    pub name: String,
    /// Seconds by engine, AgentScript first.
    pub seconds: Vec<Option<f64>>,
}

impl Row {
    /// Returns the time of AgentScript divided by that of an engine.
    #[must_use]
    pub fn ratio(&self, engine: usize) -> Option<f64> {
        Some((*self.seconds.first()?)? / (*self.seconds.get(engine)?)?)
    }
}

/// Measures fresh runs, from the source text to the result.
pub fn fresh(lab: &mut Lab, cases: &[Case]) -> (Table, Vec<Row>) {
    compare(lab, cases, "fresh", "Fresh runs: source text in, JSON text out, compile included (× ours / theirs)")
}

/// Measures programs that compute for some milliseconds.
pub fn kernels(lab: &mut Lab, cases: &[Case]) -> (Table, Vec<Row>) {
    compare(lab, cases, "kernels", "Kernels, compile included (× ours / theirs)")
}

fn compare(lab: &mut Lab, cases: &[Case], id: &'static str, title: &str) -> (Table, Vec<Row>) {
    let rows: Vec<Row> = lab
        .compare(cases)
        .into_iter()
        .zip(cases)
        .map(|(cells, case)| Row {
            name: case.name.clone(),
            seconds: cells.into_iter().map(|times| times.map(|times| times.best())).collect(),
        })
        .collect();
    let engines = lab.runners.iter().map(|runner| runner.engine.name);
    let mut table = Table::new(id, title, std::iter::once("case").chain(engines));
    for row in &rows {
        let cells = row.seconds.iter().enumerate().map(|(engine, seconds)| match (seconds, row.ratio(engine)) {
            (Some(seconds), Some(ratio)) if engine > 0 => format!("{} × {}", time(*seconds), digits(ratio)),
            (Some(seconds), _) => time(*seconds),
            (None, _) => "failed".into(),
        });
        table.rows.push(std::iter::once(row.name.clone()).chain(cells).collect());
    }
    let means = (1..lab.runners.len()).map(|engine| {
        let ratios: Vec<f64> = rows.iter().filter_map(|row| row.ratio(engine)).collect();
        format!("× {}", digits(geometric_mean(&ratios)))
    });
    table.rows.push(["geometric mean".to_owned(), String::new()].into_iter().chain(means).collect());
    (table, rows)
}
