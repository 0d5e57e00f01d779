//! Formats tables as aligned text and as Markdown.

use std::fmt;

/// A table. The first column is text, the others are figures.
#[derive(Clone, Debug)]
pub struct Table {
    /// The name of its marks in the documentation.
    pub id: &'static str,
    /// The title.
    pub title: String,
    /// The headings of the columns.
    pub columns: Vec<String>,
    /// The rows, with a cell for each column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table without rows.
    pub fn new(id: &'static str, title: &str, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { id, title: title.into(), columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Returns the table in Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule = format!("|---|{}\n", "---:|".repeat(self.columns.len().saturating_sub(1)));
        line(&self.columns) + &rule + &self.rows.iter().map(|row| line(row)).collect::<String>()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = || std::iter::once(&self.columns).chain(&self.rows);
        let width = |column: usize| {
            lines().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        writeln!(out, "{}", self.title)?;
        for line in lines() {
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                match column {
                    0 => write!(out, "  {cell:width$}")?,
                    _ => write!(out, "  {cell:>width$}")?,
                }
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

/// Formats seconds in a suitable unit, with three digits.
#[must_use]
pub fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s < 1e-6 => (s * 1e9, "ns"),
        s if s < 1e-3 => (s * 1e6, "µs"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    format!("{} {unit}", digits(value))
}

/// Formats bytes in a suitable unit, with three digits.
#[must_use]
pub fn bytes(count: f64) -> String {
    let (value, unit) = match count {
        b if b < 1e3 => return format!("{b:.0} B"),
        b if b < 1e6 => (b / 1e3, "kB"),
        b if b < 1e9 => (b / 1e6, "MB"),
        b => (b / 1e9, "GB"),
    };
    format!("{} {unit}", digits(value))
}

/// Formats a number with three digits, or two below one: `0.012`, `0.12`, `1.23`, `12.3`, `123`.
#[must_use]
pub fn digits(value: f64) -> String {
    match value {
        v if v < 0.1 => format!("{v:.3}"),
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// Formats a whole number with separators: `12,345`.
#[must_use]
pub fn count(value: f64) -> String {
    let text = format!("{value:.0}");
    let mut out = String::new();
    for (i, digit) in text.chars().enumerate() {
        if i > 0 && (text.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns the geometric mean.
#[must_use]
pub fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}
