//! Tables whose columns are aligned by spaces. `psql` and `sqlite3 -column` print them with a rule below the header,
//! and others without one, as `ps`, `df`, `docker ps` and `kubectl get` do. Cells are found by their positions, so
//! empty ones are no problem.

use super::header::first_row;
use super::{Around, Fault, MAX_COLUMNS, Part, Reading, Reason, Sink, around, give, lines, wrong_width};
use std::borrow::Cow;
use std::ops::Range;

/// Maximum length of a line, in characters.
const MAX_WIDTH: usize = 10_000;

/// Maximum number of words of the name of a column.
const MAX_WORDS: usize = 3;

/// Reads the table of a text.
pub fn read<'t, S: Sink>(text: &'t str, reading: Reading, sink: &mut S) -> Result<Around<'t>, Fault<S::Stop>> {
    let mut before: Option<(usize, &str)> = None;
    for (number, start, line) in lines(text) {
        if let Some((at, header)) = before.filter(|(_, header)| !header.trim().is_empty())
            && let Some(columns) = rule(line)
        {
            let rest = start + line.len();
            let end = ruled(text, (number, rest), header, &columns, reading, sink)?;
            return Ok(around(text, at, end));
        }
        before = Some((start, line));
    }
    unruled(text, reading, sink)?;
    Ok(Around::default())
}

/// Columns as a rule has them.
struct Columns {
    /// Their positions, in characters.
    spans: Vec<Range<usize>>,
    /// Whether `|` separates their cells, as `+` does in the rule.
    has_bars: bool,
}

/// The columns of a rule: `---  -----` or `----+------`.
fn rule(line: &str) -> Option<Columns> {
    let line = line.trim_end();
    if line.len() > MAX_WIDTH || !line.bytes().all(|byte| matches!(byte, b'-' | b'=' | b' ' | b'+')) {
        return None;
    }
    let has_bars = line.contains('+');
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    for run in line.split(if has_bars { '+' } else { ' ' }) {
        if !run.is_empty() {
            spans.push(at..at + run.len());
        }
        at += run.len() + 1;
    }
    (spans.len() > 1 && spans.len() <= MAX_COLUMNS && !(has_bars && line.contains(' ')))
        .then_some(Columns { spans, has_bars })
}

/// Reads the rows below a rule; gives where they end.
fn ruled<'t, S: Sink>(
    text: &'t str,
    (number, rest): (usize, usize),
    header: &'t str,
    columns: &Columns,
    reading: Reading,
    sink: &mut S,
) -> Result<usize, Fault<S::Stop>> {
    let mut row = Vec::new();
    columns.cells(header, number - 1, &mut row)?;
    first_row(&row, reading.header, true, sink)?;
    let (mut end, mut is_over, mut before) = (text.len(), false, "");
    // The first line is what is left of the rule.
    for (index, start, line) in lines(&text[rest..]).skip(1) {
        let (number, start) = (number + index - 1, rest + start);
        if is_over {
            if rule(line).is_some() && !before.trim().is_empty() {
                return Err(Fault::form(format!("it has a second table in line {number}; give one of them")));
            }
            before = line;
        } else if line.trim().is_empty() || is_count(line) || rule(line).is_some() {
            (end, is_over) = (start, true);
        } else {
            columns.cells(line, number, &mut row)?;
            give(sink, Part::Row(&row))?;
        }
    }
    Ok(end)
}

/// Whether a line is the number of rows: `(3 rows)`.
fn is_count(line: &str) -> bool {
    let inner = line.trim().strip_prefix('(').and_then(|line| line.strip_suffix(')'));
    inner
        .and_then(|inner| inner.split_once(' '))
        .is_some_and(|(count, rows)| count.bytes().all(|byte| byte.is_ascii_digit()) && matches!(rows, "row" | "rows"))
}

impl Columns {
    /// The cells of a line.
    fn cells<'t>(&self, line: &'t str, number: usize, cells: &mut Vec<Cow<'t, str>>) -> Result<(), Reason> {
        cells.clear();
        if self.has_bars {
            cells.extend(line.split('|').take(MAX_COLUMNS + 1).map(|cell| Cow::Borrowed(cell.trim())));
            return if cells.len() == self.spans.len() {
                Ok(())
            } else {
                Err(wrong_width(number, cells.len(), self.spans.len()))
            };
        }
        let mut positions = Positions::new(line);
        for (index, span) in self.spans.iter().enumerate() {
            let end = self.spans.get(index + 1).map_or(usize::MAX, |next| next.start);
            let start = if index == 0 { 0 } else { span.start };
            cells.push(Cow::Borrowed(positions.cell(start, end, number)?));
        }
        Ok(())
    }
}

/// Cuts a line at positions in characters, in ascending order.
struct Positions<'t> {
    line: &'t str,
    /// A position in bytes, and the same in characters.
    at: (usize, usize),
}

impl<'t> Positions<'t> {
    fn new(line: &'t str) -> Self {
        Self { line, at: (0, 0) }
    }

    fn go_to(&mut self, position: usize) -> usize {
        while self.at.1 < position
            && let Some(c) = self.line[self.at.0..].chars().next()
        {
            self.at = (self.at.0 + c.len_utf8(), self.at.1 + 1);
        }
        self.at.0
    }

    /// The text between two positions. Before the second one there is a space.
    fn cell(&mut self, start: usize, end: usize, number: usize) -> Result<&'t str, Reason> {
        let start = self.go_to(start);
        if end == usize::MAX {
            return Ok(self.line[start..].trim());
        }
        let last = self.go_to(end - 1);
        let is_apart = self.line[last..].chars().next().is_none_or(char::is_whitespace);
        let end = self.go_to(end);
        if !is_apart {
            return Err(Reason(format!("a cell in line {number} is longer than its column")));
        }
        Ok(self.line[start..end].trim())
    }
}

/// Reads a table without a rule: the whole text.
fn unruled<S: Sink>(text: &str, reading: Reading, sink: &mut S) -> Result<(), Fault<S::Stop>> {
    let text = text.trim_end();
    let (header, rest) = text.split_once('\n').unwrap_or((text, ""));
    let header = header.trim_end();
    if text.contains('\t') {
        return Err(Fault::form("it has tabs"));
    }
    if rest.is_empty() && !reading.is_chosen {
        return Err(Fault::form("it has one line only"));
    }
    let rows = rest.lines().count();
    let is_upper = !header.chars().any(char::is_lowercase);
    let names = header.split_whitespace().count();
    let wide_gaps = header.trim().split("  ").filter(|part| !part.trim().is_empty()).count();
    let is_plausible = names > 1 && (is_upper || wide_gaps == names || wide_gaps > 1 && rows > 1);
    if !is_plausible && !reading.is_chosen {
        return Err(Fault::form("its first line does not read as names of columns"));
    }
    match rivers(text, header) {
        Ok(starts) => {
            let mut row = Vec::new();
            for (number, _, line) in lines(text) {
                row.clear();
                let mut positions = Positions::new(line);
                for (index, &start) in starts.iter().enumerate() {
                    let end = starts.get(index + 1).copied().unwrap_or(usize::MAX);
                    row.push(Cow::Borrowed(positions.cell(start, end, number)?));
                }
                if number == 1 {
                    if !reading.is_chosen && !row.iter().all(|cell| is_name(cell)) {
                        return Err(Fault::form("its first line does not read as names of columns"));
                    }
                    first_row(&row, reading.header, false, sink)?;
                } else {
                    give(sink, Part::Row(&row))?;
                }
            }
            Ok(())
        }
        // Long values shift the rest of their line. Only the last column then has spaces.
        Err(_) if is_upper && names > 2 => words(text, names, reading, sink),
        Err(reason) => Err(Fault::Form(reason)),
    }
}

/// Whether the cell of a first line may be the name of a column; that of an index is empty.
fn is_name(cell: &str) -> bool {
    let has_letters = cell.is_empty() || cell.contains(|c: char| c.is_alphanumeric() || matches!(c, '#' | '%'));
    has_letters && cell.split_whitespace().count() <= MAX_WORDS && !cell.contains('|')
}

/// Where the columns of a text begin: there is a name in each, and a column of spaces in front of it.
fn rivers(text: &str, header: &str) -> Result<Vec<usize>, String> {
    let (mut is_used, mut is_used_below): (Vec<bool>, Vec<bool>) = Default::default();
    for (number, _, line) in lines(text) {
        if line.trim().is_empty() {
            return Err(format!("line {number} is empty"));
        }
        for (at, c) in line.trim_end().chars().enumerate() {
            if at == is_used.len() {
                if at == MAX_WIDTH {
                    return Err(format!("line {number} has more than {MAX_WIDTH} characters"));
                }
                is_used.push(false);
                is_used_below.push(false);
            }
            is_used[at] |= c != ' ';
            is_used_below[at] |= c != ' ' && number > 1;
        }
    }
    let names: Vec<bool> = header.chars().map(|c| c != ' ').collect();
    let next_used = |from: usize| is_used[from..].iter().position(|used| *used).map(|length| from + length);
    let mut starts: Vec<usize> = Vec::new();
    // Where a part without a name begins that belongs to the column after it, and where the part before ends.
    let (mut pending, mut last_end): (Option<usize>, usize) = (None, 0);
    let mut at = next_used(0);
    while let Some(start) = at {
        let end = is_used[start..].iter().position(|used| !used).map_or(is_used.len(), |length| start + length);
        at = next_used(end);
        let has_name = names.get(start..end.min(names.len())).is_some_and(|names| names.contains(&true));
        // `Mounted on` is one name, if no row has anything below its second word.
        let follows_name = start > 1 && names.get(start - 2) == Some(&true) && names.get(start) == Some(&true);
        let is_word = follows_name && !is_used_below[start..end].contains(&true);
        if has_name && !is_word || starts.is_empty() {
            // The first column may be an index, which has no name.
            starts.push(pending.take().unwrap_or(start));
        } else if !has_name && at.is_some_and(|next| next - end < start - last_end) {
            pending.get_or_insert(start);
        }
        last_end = end;
    }
    if starts.len() < 2 || starts.len() > MAX_COLUMNS {
        return Err("its lines have no columns of spaces in common".into());
    }
    Ok(starts)
}

/// Reads lines of words: as many as the header has, where the last one is the rest of the line.
fn words<S: Sink>(text: &str, names: usize, reading: Reading, sink: &mut S) -> Result<(), Fault<S::Stop>> {
    let mut row: Vec<Cow<'_, str>> = Vec::new();
    for (number, _, line) in lines(text) {
        row.clear();
        let mut rest = line.trim();
        while !rest.is_empty() {
            let (word, after) = match rest.split_once(char::is_whitespace) {
                Some((word, after)) if row.len() + 1 < names => (word, after.trim_start()),
                Some(_) | None => (rest, ""),
            };
            row.push(Cow::Borrowed(word));
            rest = after;
        }
        if row.len() != names {
            return Err(wrong_width(number, row.len(), names).into());
        }
        if number == 1 {
            first_row(&row, reading.header, false, sink)?;
        } else {
            give(sink, Part::Row(&row))?;
        }
    }
    Ok(())
}
