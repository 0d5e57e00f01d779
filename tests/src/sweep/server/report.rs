//! The report of the server's functions: the maximum of each one.

use super::{Case, Result};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The results so far.
#[derive(Default)]
pub struct Report {
    rows: BTreeMap<&'static str, Row>,
    cases: String,
    bytes: usize,
}

#[derive(Default)]
struct Row {
    cases: usize,
    faults: usize,
    /// The longest time in milliseconds, and its value.
    longest: (f64, String),
    /// The time relative to that of a quarter of the value; 0 if it is too short to compare.
    growth: f64,
    /// The memory relative to that of the value; 0 if the value is too small to compare.
    copies: f64,
}

impl Report {
    /// Adds a result.
    pub fn add(&mut self, case: &Case, result: &Result) {
        let Result { part, whole } = result;
        let row = self.rows.entry(case.function.name).or_default();
        row.cases += 1;
        row.faults += usize::from(case.fault(result).is_some());
        if whole.ms > row.longest.0 {
            row.longest = (whole.ms, super::VALUES[case.value].name.to_owned());
        }
        if whole.ms > 2.0 * super::SHORT_MS && part.ms > 0.0 {
            row.growth = row.growth.max(whole.ms / part.ms);
        }
        if whole.memory > 2 << 20 {
            row.copies = row.copies.max(whole.grown as f64 / whole.memory as f64);
        }
        self.bytes = case.bytes;
        let _ = writeln!(
            self.cases,
            "| {} | {} | {} | {:.0} | {:.0} | {} | {} |",
            case.name(),
            whole.bytes,
            whole.memory >> 20,
            part.ms,
            whole.ms,
            whole.grown >> 20,
            case.fault(result).unwrap_or_default()
        );
    }

    /// Returns the number of cases.
    #[must_use]
    pub fn cases(&self) -> usize {
        self.rows.values().map(|row| row.cases).sum()
    }

    /// Returns the number of cases above a bound.
    #[must_use]
    pub fn faults(&self) -> usize {
        self.rows.values().map(|row| row.faults).sum()
    }

    /// Returns the table of the functions for the documentation.
    #[must_use]
    pub fn table(&self) -> String {
        let mut out = String::from(
            "| function | values | longest | of | time for 4 × the bytes | memory ÷ that of the value | above a bound |\n\
             |---|---:|---:|---|---:|---:|---:|\n",
        );
        for (name, row) in &self.rows {
            let (ms, of) = &row.longest;
            let format_factor = |factor: f64| if factor > 0.0 { format!("{factor:.1} ×") } else { "–".to_owned() };
            let (growth, copies) = (format_factor(row.growth), format_factor(row.copies));
            let _ =
                writeln!(out, "| {name} | {} | {ms:.0} ms | {of} | {growth} | {copies} | {} |", row.cases, row.faults);
        }
        let _ = writeln!(out, "\n{} cases, with values of {} MB.", self.cases(), self.bytes / 1_000_000);
        out
    }

    /// Returns the whole report as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let head = "| case | bytes | MB of memory | ms for a quarter | ms | MB | fault |\n|---|---:|---:|---:|---:|---:|---|\n";
        format!("{}\n{head}{}", self.table(), self.cases)
    }
}
