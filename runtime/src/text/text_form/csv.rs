//! Comma-separated values and their like (RFC 4180), as the module `csv` of Python reads them: quoted cells, doubled quotes,
//! line breaks in quotes. Lines without any cell are skipped.

use super::header::first_row;
use super::{Fault, MAX_COLUMNS, Part, Reading, Reason, Sink, give, wrong_width};
use std::borrow::Cow;

/// A cell of the first line with more words is a sentence.
const MAX_WORDS: usize = 8;

/// Reads rows whose cells have one of the separators between them: the one that the first row has most often.
pub fn read<S: Sink>(text: &str, separators: &[u8], reading: Reading, sink: &mut S) -> Result<(), Fault<S::Stop>> {
    let separator = most_frequent(text, separators);
    let mut rows = Rows { text, at: 0, line: 1, separator };
    let mut cells = Vec::new();
    if !rows.next(&mut cells)? {
        return Err(Fault::form("it is empty"));
    }
    let width = cells.len();
    if width < 2 && !reading.is_chosen {
        let names: Vec<&str> = separators.iter().map(|&separator| name(separator)).collect();
        return Err(Fault::form(format!("its first line has no {}", names.join(", no "))));
    }
    if !reading.is_chosen && is_sentence(&cells) {
        return Err(Fault::form("its first line reads as a sentence"));
    }
    first_row(&cells, reading.header, false, sink)?;
    let mut count = 1;
    loop {
        let line = rows.line;
        if !rows.next(&mut cells)? {
            break;
        }
        if cells.len() != width {
            return Err(wrong_width(line, cells.len(), width).into());
        }
        count += 1;
        give(sink, Part::Row(&cells))?;
    }
    if count < 2 && !reading.is_chosen {
        return Err(Fault::form("it has one line only"));
    }
    Ok(())
}

/// Whether the cells of a line are the parts of a sentence.
fn is_sentence(cells: &[Cow<'_, str>]) -> bool {
    let is_long = |cell: &Cow<'_, str>| cell.split_whitespace().nth(MAX_WORDS).is_some();
    let ends = cells.last().is_some_and(|cell| cell.trim_end().ends_with(['.', '!', '?', ':']));
    cells.iter().any(is_long) || ends && cells.iter().skip(1).all(|cell| cell.starts_with(' '))
}

fn name(separator: u8) -> &'static str {
    match separator {
        b'\t' => "tab",
        b',' => "comma",
        b';' => "semicolon",
        _ => "|",
    }
}

/// The separator that is most often in the first row, outside of quotes.
fn most_frequent(text: &str, separators: &[u8]) -> u8 {
    let mut counts = vec![0_usize; separators.len()];
    let mut is_quoted = false;
    for byte in text.bytes() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\n' | b'\r' if !is_quoted => break,
            byte if !is_quoted => {
                if let Some(at) = separators.iter().position(|&separator| separator == byte) {
                    counts[at] += 1;
                }
            }
            _ => {}
        }
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let found = separators.iter().zip(counts).find(|&(_, count)| count == most);
    found.map_or(b',', |(&separator, _)| separator)
}

struct Rows<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    separator: u8,
}

impl<'t> Rows<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Reads the cells of the next row that has some; gives whether there is one.
    fn next(&mut self, cells: &mut Vec<Cow<'t, str>>) -> Result<bool, Reason> {
        while let Some(b'\n' | b'\r') = self.peek() {
            self.end_line();
        }
        cells.clear();
        if self.at >= self.text.len() {
            return Ok(false);
        }
        loop {
            if cells.len() == MAX_COLUMNS {
                return Err(Reason(format!("line {} has more than {MAX_COLUMNS} cells", self.line)));
            }
            cells.push(self.cell()?);
            match self.peek() {
                Some(byte) if byte == self.separator => self.at += 1,
                Some(_) => {
                    self.end_line();
                    return Ok(true);
                }
                None => return Ok(true),
            }
        }
    }

    /// Goes past `\r\n`, `\n` or `\r`.
    fn end_line(&mut self) {
        self.at += if self.text[self.at..].starts_with("\r\n") { 2 } else { 1 };
        self.line += 1;
    }

    fn cell(&mut self) -> Result<Cow<'t, str>, Reason> {
        if self.peek() != Some(b'"') {
            return Ok(Cow::Borrowed(self.plain()));
        }
        let line = self.line;
        let mut cell = Cow::Borrowed("");
        loop {
            self.at += 1;
            let rest = &self.text[self.at..];
            let Some(length) = memchr::memchr(b'"', rest.as_bytes()) else {
                return Err(Reason(format!("the quote in line {line} does not end")));
            };
            push(&mut cell, &rest[..length]);
            self.line += memchr::memchr_iter(b'\n', &rest.as_bytes()[..length]).count();
            self.at += length + 1;
            if self.peek() != Some(b'"') {
                break;
            }
            push(&mut cell, "\"");
        }
        let rest = self.plain();
        push(&mut cell, rest);
        Ok(cell)
    }

    /// The text up to the end of a cell.
    fn plain(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let length = memchr::memchr3(self.separator, b'\n', b'\r', rest.as_bytes()).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }
}

/// Appends to a cell, which is copied if it has more than one part.
fn push<'t>(cell: &mut Cow<'t, str>, part: &'t str) {
    if cell.is_empty() {
        *cell = Cow::Borrowed(part);
    } else if !part.is_empty() {
        cell.to_mut().push_str(part);
    }
}
