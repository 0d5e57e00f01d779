//! Records: blocks of lines `name: value`, each with the names of the first one. A line of another form continues the value
//! above it.

use super::header::short;
use super::{Around, Fault, MAX_COLUMNS, Part, Reading, Sink, give, lines};
use std::borrow::Cow;

/// Maximum length of a name, in bytes.
const MAX_NAME_BYTES: usize = 40;

/// Reads the records of a text. There are at least two, unless the user says that they are records.
pub fn read<'t, S: Sink>(text: &'t str, reading: Reading, sink: &mut S) -> Result<Around<'t>, Fault<S::Stop>> {
    let mut names: Vec<String> = Vec::new();
    let mut row: Vec<Cow<'_, str>> = Vec::new();
    let mut rows = 0;
    for (number, _, line) in lines(text) {
        let member = member(line);
        if row.is_empty() && rows == 0 && member.is_none() {
            return Err(Fault::form(format!("line {number} is no 'name: value'")));
        }
        let Some((name, value)) = member else {
            continue_value(&mut row, line);
            continue;
        };
        if rows == 0 && names.first().is_none_or(|first| first != name) {
            if names.iter().any(|known| known == name) {
                continue_value(&mut row, line);
            } else if names.len() == MAX_COLUMNS {
                return Err(Fault::form(format!("it has more than {MAX_COLUMNS} names")));
            } else {
                names.push(name.to_owned());
                row.push(Cow::Borrowed(value));
            }
        } else if names.first().is_some_and(|first| first == name) && (row.len() == names.len() || rows == 0) {
            finish(&mut row, &names, rows, sink)?;
            rows += 1;
            row.push(Cow::Borrowed(value));
        } else if names.get(row.len()).is_some_and(|next| next == name) {
            row.push(Cow::Borrowed(value));
        } else if names.iter().any(|known| known == name) {
            return Err(Fault::form(format!("line {number} has '{}', where another name was", short(name))));
        } else {
            continue_value(&mut row, line);
        }
    }
    if names.len() < 2 || row.len() != names.len() {
        return Err(Fault::form("its last record has not the names of the first"));
    }
    if rows == 0 && !reading.is_chosen {
        return Err(Fault::form("it has one record only"));
    }
    finish(&mut row, &names, rows, sink)?;
    Ok(Around::default())
}

fn finish<S: Sink>(
    row: &mut Vec<Cow<'_, str>>,
    names: &[String],
    rows: usize,
    sink: &mut S,
) -> Result<(), Fault<S::Stop>> {
    for cell in row.iter_mut() {
        let end = cell.trim_end().trim_end_matches("\n---").trim_end().len();
        match cell {
            Cow::Borrowed(text) => *text = &text[..end],
            Cow::Owned(text) => text.truncate(end),
        }
    }
    if rows == 0 {
        give(sink, Part::Columns(names))?;
    }
    give(sink, Part::Row(row))?;
    row.clear();
    Ok(())
}

fn continue_value(row: &mut [Cow<'_, str>], line: &str) {
    if let Some(value) = row.last_mut() {
        let value = value.to_mut();
        value.push('\n');
        value.push_str(line);
    }
}

/// The name and the value of a line; `None`: it has none. A list sign may be in front.
fn member(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let line = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).unwrap_or(line);
    let bytes = line.as_bytes();
    let colon = memchr::memchr(b':', &bytes[..bytes.len().min(MAX_NAME_BYTES + 5)])?;
    let (name, value) = (line[..colon].trim_matches('*').trim(), &line[colon + 1..]);
    let is_sign = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '/' | '(' | ')' | '#');
    let is_name = name.starts_with(char::is_alphabetic)
        && name.len() <= MAX_NAME_BYTES
        && name.split(' ').count() <= 4
        && name.chars().all(is_sign);
    let value = value.strip_prefix("**").unwrap_or(value);
    (is_name && (value.is_empty() || value.starts_with(' '))).then(|| (name, value.trim()))
}
