//! The output of `git log` in its usual form: `commit`, `Author:`, `Date:`, and the message with four spaces in front.

use super::{Around, Fault, Part, Sink, around, give, lines};
use std::borrow::Cow;

/// The columns; one that a commit does not have is empty.
const COLUMNS: [&str; 7] = ["commit", "refs", "merge", "author", "date", "message", "changes"];
const REFS: usize = 1;
const MERGE: usize = 2;
const AUTHOR: usize = 3;
const DATE: usize = 4;
const MESSAGE: usize = 5;
const CHANGES: usize = 6;

/// Reads the commits of a text. Lines before the first one are around them.
pub fn read<'t, S: Sink>(text: &'t str, sink: &mut S) -> Result<Around<'t>, Fault<S::Stop>> {
    let mut row: Vec<Cow<'t, str>> = Vec::new();
    let mut begin = None;
    let mut part = REFS;
    for (number, start, line) in lines(text) {
        if let Some((commit, refs)) = commit(line) {
            if begin.is_none() {
                give(sink, Part::Columns(&COLUMNS.map(str::to_owned)))?;
                begin = Some(start);
            }
            finish(&mut row, sink)?;
            row.resize(COLUMNS.len(), Cow::Borrowed(""));
            (row[0], row[REFS]) = (Cow::Borrowed(commit), Cow::Borrowed(refs));
            part = REFS;
            continue;
        }
        if row.is_empty() {
            continue;
        }
        let header = [("Merge:", MERGE), ("Author:", AUTHOR), ("Date:", DATE)];
        let found = header.iter().find(|(name, _)| part < MESSAGE && line.starts_with(name));
        if let Some(&(name, column)) = found {
            row[column] = Cow::Borrowed(line[name.len()..].trim());
            part = part.max(column);
        } else if part < DATE && !line.trim().is_empty() {
            return Err(Fault::form(format!("line {number} is none of 'Author:' and 'Date:'")));
        } else if part < CHANGES && line.starts_with("    ") {
            part = MESSAGE;
            append(&mut row[MESSAGE], &line[4..]);
        } else if line.is_empty() && part < CHANGES {
            append(&mut row[MESSAGE], "");
        } else {
            part = CHANGES;
            append(&mut row[CHANGES], line);
        }
    }
    finish(&mut row, sink)?;
    let Some(begin) = begin else { return Err(Fault::form("it has no line 'commit' with a hash")) };
    Ok(around(text, begin, text.len()))
}

/// The hash and the names of a line `commit 1a2b… (HEAD -> main)`.
fn commit(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("commit ")?;
    let (hash, refs) = rest.split_once(' ').unwrap_or((rest, ""));
    let is_hash = matches!(hash.len(), 40 | 64) && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| (hash, refs.trim().trim_start_matches('(').trim_end_matches(')')))
}

fn append(cell: &mut Cow<'_, str>, line: &str) {
    let cell = cell.to_mut();
    if !(cell.is_empty() && line.is_empty()) {
        cell.push_str(line);
        cell.push('\n');
    }
}

fn finish<S: Sink>(row: &mut Vec<Cow<'_, str>>, sink: &mut S) -> Result<(), Fault<S::Stop>> {
    if row.is_empty() {
        return Ok(());
    }
    for cell in &mut row[MESSAGE..] {
        let end = cell.trim_end().len();
        cell.to_mut().truncate(end);
    }
    give(sink, Part::Row(row))?;
    row.clear();
    Ok(())
}
