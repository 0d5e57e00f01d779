//! Whether the first row of a table has the names of its columns.

use super::{Fault, Part, Sink, give};
use std::borrow::Cow;
use std::collections::HashSet;

/// Maximum length of the name of a column that nobody has promised, in bytes.
const MAX_NAME_BYTES: usize = 100;

/// Gives the first row to a sink: as the names of the columns, or as a row. `wanted`: what the user says; `is_marked`:
/// whether the table sets its header apart.
pub fn first_row<S: Sink>(
    cells: &[Cow<'_, str>],
    wanted: Option<bool>,
    is_marked: bool,
    sink: &mut S,
) -> Result<(), Fault<S::Stop>> {
    let names: Vec<String> = cells.iter().map(|cell| cell.trim().to_owned()).collect();
    let twice = repeated(&names);
    if let (Some(true), Some(name)) = (wanted, twice) {
        return Err(Fault::form(format!("its header has the name '{}' twice", short(name))));
    }
    let looks_named = || is_marked || names.iter().all(|name| !is_value(name));
    if wanted.unwrap_or_else(|| twice.is_none() && looks_named()) {
        give(sink, Part::Columns(&names))?;
    } else {
        give(sink, Part::Row(cells))?;
    }
    Ok(())
}

fn repeated(names: &[String]) -> Option<&str> {
    let mut seen = HashSet::new();
    names.iter().find(|name| !seen.insert(name.as_str())).map(String::as_str)
}

/// The beginning of a name, for a message.
pub fn short(name: &str) -> String {
    name.chars().take(40).collect()
}

/// Whether a cell is a value rather than the name of a column: a number, a date, a truth value, an address.
pub fn is_value(cell: &str) -> bool {
    let is_number = cell.trim_end_matches('%').parse::<f64>().is_ok();
    let digits = cell.bytes().filter(u8::is_ascii_digit).count();
    let is_date = digits >= 6
        && cell.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | ':' | '/' | '.' | ',' | 'T' | 'Z' | ' ' | '+'));
    let is_truth = ["true", "false"].iter().any(|word| cell.eq_ignore_ascii_case(word));
    is_number || is_date || is_truth || cell.contains("://") || cell.contains('@') || cell.len() > MAX_NAME_BYTES
}
