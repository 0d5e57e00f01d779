//! Tables of Markdown, as GitHub writes them: a header, a rule, rows with `|`. There may be text around a table, but no
//! second table.

use super::header::first_row;
use super::{Around, Fault, MAX_COLUMNS, Part, Reading, Reason, Sink, around, give, lines, wrong_width};
use std::borrow::Cow;

/// Reads the table of a text.
pub fn read<'t, S: Sink>(text: &'t str, reading: Reading, sink: &mut S) -> Result<Around<'t>, Fault<S::Stop>> {
    let mut before: Option<(usize, &str)> = None;
    let mut columns: Option<(usize, usize)> = None;
    let mut end = None;
    let mut row = Vec::new();
    for (number, start, line) in lines(text) {
        let Some((_, width)) = columns else {
            if let Some((at, header)) = before.filter(|(_, header)| header.contains('|'))
                && is_rule(line)
            {
                cells(header, number, &mut row)?;
                first_row(&row, reading.header, true, sink)?;
                columns = Some((at, row.len()));
            }
            before = Some((start, line));
            continue;
        };
        if end.is_some() {
            if before.is_some_and(|(_, header)| header.contains('|')) && is_rule(line) {
                return Err(Fault::form(format!("it has a second table in line {number}; give one of them")));
            }
            before = Some((start, line));
        } else if line.contains('|') {
            cells(line, number, &mut row)?;
            if row.len() > width {
                return Err(wrong_width(number, row.len(), width).into());
            }
            // Cells at the end may be left out.
            row.resize(width, Cow::Borrowed(""));
            give(sink, Part::Row(&row))?;
        } else {
            (end, before) = (Some(start), None);
        }
    }
    let Some((start, _)) = columns else { return Err(Fault::form("it has no rule such as |---|---|")) };
    Ok(around(text, start, end.unwrap_or(text.len())))
}

/// Whether a line is the rule below a header: `|---|:-:|`, `--- | ---`.
fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.contains('|')
        && line.contains('-')
        && line.trim_matches('|').split('|').all(|cell| {
            let dashes = cell.trim().trim_start_matches(':').trim_end_matches(':');
            !dashes.is_empty() && dashes.bytes().all(|byte| byte == b'-')
        })
}

/// The cells of a line. `\|` is a `|` of a cell.
fn cells<'t>(line: &'t str, number: usize, cells: &mut Vec<Cow<'t, str>>) -> Result<(), Reason> {
    cells.clear();
    let mut rest = line.trim();
    rest = rest.strip_prefix('|').unwrap_or(rest);
    loop {
        if cells.len() == MAX_COLUMNS {
            return Err(Reason(format!("line {number} has more than {MAX_COLUMNS} cells")));
        }
        let mut from = 0;
        let end = loop {
            match memchr::memchr(b'|', &rest.as_bytes()[from..]) {
                Some(at) if rest[..from + at].ends_with('\\') => from += at + 1,
                found => break found.map(|at| from + at),
            }
        };
        let cell = rest[..end.unwrap_or(rest.len())].trim();
        let Some(end) = end else {
            if !cell.is_empty() || cells.is_empty() {
                cells.push(unescaped(cell));
            }
            return Ok(());
        };
        cells.push(unescaped(cell));
        rest = &rest[end + 1..];
    }
}

fn unescaped(cell: &str) -> Cow<'_, str> {
    if cell.contains("\\|") { Cow::Owned(cell.replace("\\|", "|")) } else { Cow::Borrowed(cell) }
}
