//! Tables with borders, as `mysql`, `sqlite3 -table`, `sqlite3 -box` and libraries for terminals print them. There may be text
//! around a table, but no second table.

use super::header::first_row;
use super::{Around, Fault, MAX_COLUMNS, Part, Reading, Sink, around, give, lines, wrong_width};
use std::borrow::Cow;

/// Lines between cells.
const VERTICAL: [char; 4] = ['|', '│', '┃', '║'];

/// Reads the table of a text.
pub fn read<'t, S: Sink>(text: &'t str, reading: Reading, sink: &mut S) -> Result<Around<'t>, Fault<S::Stop>> {
    let spans_lines = spans_lines(text);
    let mut table = Table { sink, reading, width: 0, rows: 0, row: Vec::new() };
    let (mut begin, mut end, mut last) = (None, None, text.len());
    for (number, start, line) in lines(text) {
        let line = line.trim();
        let is_border = is_border(line);
        if begin.is_none() {
            if is_border {
                begin = Some(start);
            }
        } else if end.is_some() {
            if is_border {
                return Err(Fault::form(format!("it has a second table in line {number}; give one of them")));
            }
        } else if is_border {
            table.finish()?;
        } else if line.starts_with(VERTICAL) {
            table.line(line, number, spans_lines)?;
        } else {
            (end, last) = (Some(start), start);
        }
    }
    let Some(begin) = begin else { return Err(Fault::form("it has no border such as +---+ or ┌───┐")) };
    table.finish()?;
    if table.rows == 0 {
        return Err(Fault::form("it has no row between its borders"));
    }
    Ok(around(text, begin, last))
}

/// Whether each row has borders of its own, so that it may have several lines.
fn spans_lines(text: &str) -> bool {
    let (mut groups, mut is_open, mut lines_of_group, mut is_continued) = (0, false, 0, true);
    for (_, _, line) in lines(text) {
        let line = line.trim();
        if is_border(line) {
            groups += usize::from(is_open);
            (is_open, lines_of_group) = (false, 0);
        } else if line.starts_with(VERTICAL) {
            lines_of_group += 1;
            is_open = true;
            // A line that continues a row has no first cell.
            let first = line.trim_start_matches(VERTICAL).split(VERTICAL).next().unwrap_or_default();
            is_continued &= lines_of_group == 1 || groups == 0 || first.trim().is_empty();
        }
    }
    groups > 2 && is_continued
}

/// Whether a line is a border: `+---+---+`, `├───┼───┤`.
fn is_border(line: &str) -> bool {
    let is_box = |c: char| ('\u{2500}'..='\u{257f}').contains(&c);
    let is_ascii = line.starts_with('+') && line.ends_with('+') && line.contains(['-', '=']);
    if is_ascii {
        return line.bytes().all(|byte| matches!(byte, b'+' | b'-' | b'=' | b':'));
    }
    line.chars().nth(2).is_some() && line.chars().all(is_box) && !line.starts_with(VERTICAL)
}

struct Table<'s, S> {
    sink: &'s mut S,
    reading: Reading,
    width: usize,
    rows: usize,
    /// The cells of the row that is open; a line may continue them.
    row: Vec<Cow<'static, str>>,
}

impl<S: Sink> Table<'_, S> {
    /// Takes a line between borders.
    fn line(&mut self, line: &str, number: usize, spans_lines: bool) -> Result<(), Fault<S::Stop>> {
        let inner = line.trim_start_matches(VERTICAL);
        let inner = inner.strip_suffix(VERTICAL).unwrap_or(inner);
        let count = inner.split(VERTICAL).take(MAX_COLUMNS + 1).count();
        if count > MAX_COLUMNS {
            return Err(Fault::form(format!("line {number} has more than {MAX_COLUMNS} cells")));
        }
        if self.width == 0 {
            self.width = count;
        } else if count != self.width {
            return Err(wrong_width(number, count, self.width).into());
        }
        let cells = inner.split(VERTICAL).map(str::trim);
        if self.row.is_empty() {
            self.row.extend(cells.map(|cell| Cow::Owned(cell.to_owned())));
        } else {
            for (own, more) in self.row.iter_mut().zip(cells.map(str::to_owned)).filter(|(_, more)| !more.is_empty()) {
                let own = own.to_mut();
                own.push_str(if own.is_empty() { "" } else { "\n" });
                own.push_str(&more);
            }
        }
        // The lines of a header are one row in any case.
        if spans_lines || self.rows == 0 { Ok(()) } else { self.finish() }
    }

    /// Gives the open row to the sink.
    fn finish(&mut self) -> Result<(), Fault<S::Stop>> {
        if self.row.is_empty() {
            return Ok(());
        }
        if self.rows == 0 {
            first_row(&self.row, self.reading.header, true, self.sink)?;
        } else {
            give(self.sink, Part::Row(&self.row))?;
        }
        self.rows += 1;
        self.row.clear();
        Ok(())
    }
}
