//! What texts contain: JSON, tables, and values as Python prints them.

use super::{Shape, is_false};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum length of a text that is looked into, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Maximum number of lines of a table that are looked at.
const MAX_LINES: usize = 50;
/// Maximum number of columns of a table.
const MAX_COLUMNS: usize = 40;
/// Maximum length of the name of a column, in bytes.
const MAX_COLUMN_BYTES: usize = 40;
/// Maximum depth of a value of Python.
const MAX_DEPTH: usize = 32;

/// What texts contain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextShape {
    /// Whether there are texts that are none of the others.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) plain: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) json: Option<Box<Shape>>,
    /// Values as Python prints them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) python: Option<Box<Shape>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tables: Vec<Table>,
}

/// A table in a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// How it is written.
    pub format: TableFormat,
    /// The names of its columns; empty: they are not known, or differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
}

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TableFormat {
    /// With commas or semicolons.
    Csv,
    /// With tabs.
    Tsv,
    /// With `|`.
    Markdown,
}

impl TableFormat {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "CSV",
            Self::Tsv => "TSV",
            Self::Markdown => "Markdown table",
        }
    }
}

impl TextShape {
    /// Returns the shape of a text, which is looked into if `inside`.
    pub(super) fn of(text: &str, inside: bool) -> Self {
        let mut shape = Self::default();
        let text = text.trim();
        if !inside || text.len() > MAX_TEXT_BYTES {
            shape.plain = true;
        } else if text.starts_with(['{', '[', '(']) {
            if let Ok(value) = serde_json::from_str::<Value>(text) {
                shape.json = Some(Box::new(Shape::of_text(&value)));
            } else if let Some(value) = python(text) {
                shape.python = Some(Box::new(Shape::of_text(&value)));
            } else {
                shape.plain = true;
            }
        } else {
            shape.tables.extend(table(text));
            shape.plain = shape.tables.is_empty();
        }
        shape
    }

    pub(super) fn merge(&mut self, other: Self) {
        let Self { plain, json, python, tables } = other;
        self.plain |= plain;
        for (own, other) in [(&mut self.json, json), (&mut self.python, python)] {
            match (own, other) {
                (Some(own), Some(other)) => own.merge(*other),
                (own @ None, other) => *own = other,
                (Some(_), None) => {}
            }
        }
        for table in tables {
            match self.tables.iter_mut().find(|own| own.format == table.format) {
                Some(own) if own.columns != table.columns => own.columns.clear(),
                Some(_) => {}
                None => self.tables.push(table),
            }
        }
    }

    pub(super) fn cut(&mut self, depth: usize) {
        [&mut self.json, &mut self.python].into_iter().flatten().for_each(|shape| shape.cut(depth));
        for table in &mut self.tables {
            table.columns.truncate(MAX_COLUMNS);
        }
    }

    pub(super) fn parts(&self) -> usize {
        let columns: usize = self.tables.iter().map(|table| table.columns.len()).sum();
        [&self.json, &self.python].into_iter().flatten().map(|shape| shape.parts()).sum::<usize>() + columns
    }
}

/// Returns the table that a text is.
fn table(text: &str) -> Option<Table> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).take(MAX_LINES).collect();
    let (first, rest) = lines.split_first()?;
    if let Some(rule) = rest.first()
        && first.starts_with('|')
        && rule.starts_with('|')
        && rule.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
        && rule.contains("--")
    {
        let columns = first.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        return Some(Table { format: TableFormat::Markdown, columns: names(columns) });
    }
    for (separator, format) in [('\t', TableFormat::Tsv), (',', TableFormat::Csv), (';', TableFormat::Csv)] {
        let header = cells(first, separator);
        let rows: Vec<Vec<String>> = rest.iter().map(|line| cells(line, separator)).collect();
        let width = header.len();
        if rows.is_empty() || !(2..=MAX_COLUMNS).contains(&width) || rows.iter().any(|row| row.len() != width) {
            continue;
        }
        let is_named = !names(header.clone()).is_empty() && header.iter().all(|cell| !is_data(cell));
        // Below the name of a column there are values of one type.
        let has_header = is_named && (0..width).any(|column| rows.iter().all(|row| is_data(&row[column])));
        // Sentences have commas too.
        let is_certain = has_header || format == TableFormat::Tsv || is_named && width > 2 && rows.len() > 1;
        if is_certain {
            return Some(Table { format, columns: if has_header { header } else { Vec::new() } });
        }
    }
    None
}

/// Returns the names of columns; none if some of them are no names.
fn names(columns: Vec<String>) -> Vec<String> {
    let is_sign = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '(' | ')' | '%' | '#' | '/');
    let is_name = |name: &String| {
        name.len() <= MAX_COLUMN_BYTES
            && name.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '#' | '%'))
            && name.chars().all(is_sign)
            && name.split(' ').count() <= 4
    };
    if columns.len() <= MAX_COLUMNS && columns.iter().all(is_name) { columns } else { Vec::new() }
}

/// Whether a cell is a number, a date or a truth value.
fn is_data(cell: &str) -> bool {
    let is_number = cell.trim_end_matches('%').parse::<f64>().is_ok();
    let is_date = cell.len() >= 8
        && cell.chars().filter(char::is_ascii_digit).count() >= 6
        && cell.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | ':' | '/' | '.' | 'T' | 'Z' | ' ' | '+'));
    is_number || is_date || matches!(cell, "true" | "false" | "True" | "False")
}

/// Returns the cells of a line. Quoted cells may contain the separator.
fn cells(line: &str, separator: char) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match (c, cells.last_mut()) {
            ('"', _) => is_quoted = !is_quoted,
            (c, _) if c == separator && !is_quoted => cells.push(String::new()),
            (c, Some(cell)) => cell.push(c),
            (_, None) => {}
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// Parses a list, tuple, set or dictionary as Python prints it. Objects that it prints as calls become texts.
fn python(text: &str) -> Option<Value> {
    let mut parser = Python { text, at: 0, calls: 0 };
    let value = parser.value(0)?;
    parser.blanks();
    (parser.at == text.len()).then_some(value)
}

struct Python<'t> {
    text: &'t str,
    at: usize,
    /// How many calls are open. Names are values only there: a text in parentheses is none of Python.
    calls: usize,
}

impl<'t> Python<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn eat(&mut self, sign: char) -> bool {
        self.blanks();
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len_utf8() } else { 0 };
        found
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.blanks();
        match self.rest().chars().next()? {
            '[' => self.items('[', ']', depth),
            '(' => self.items('(', ')', depth),
            '{' => self.braces(depth),
            '\'' | '"' => self.string().map(Value::String),
            _ => self.word(depth),
        }
    }

    fn items(&mut self, open: char, close: char, depth: usize) -> Option<Value> {
        self.eat(open);
        let mut items = Vec::new();
        while !self.eat(close) {
            items.push(self.value(depth + 1)?);
            if !self.eat(',') && !self.rest().starts_with(close) {
                return None;
            }
        }
        Some(Value::Array(items))
    }

    /// A dictionary or a set.
    fn braces(&mut self, depth: usize) -> Option<Value> {
        self.eat('{');
        let (mut members, mut items) = (Map::new(), Vec::new());
        while !self.eat('}') {
            let key = self.value(depth + 1)?;
            if self.eat(':') {
                let key = match key {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                members.insert(key, self.value(depth + 1)?);
            } else {
                items.push(key);
            }
            if !self.eat(',') && !self.rest().starts_with('}') {
                return None;
            }
        }
        match (members.is_empty(), items.is_empty()) {
            (false, false) => None,
            (true, false) => Some(Value::Array(items)),
            (_, true) => Some(Value::Object(members)),
        }
    }

    fn string(&mut self) -> Option<String> {
        let quote = self.rest().chars().next()?;
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => text.extend(chars.next().map(|(_, escaped)| escaped)),
                c if c == quote => {
                    self.at += at + c.len_utf8();
                    return Some(text);
                }
                c => text.push(c),
            }
        }
        None
    }

    /// `None`, `True`, `3.5`, `datetime.date(2024, 1, 2)`, `Decimal('1')`, `b'bytes'`
    fn word(&mut self, depth: usize) -> Option<Value> {
        let rest = self.rest();
        let length = rest.find(|c: char| !(c.is_alphanumeric() || "_.+-".contains(c))).unwrap_or(rest.len());
        let word = &rest[..length];
        self.at += length;
        match word {
            "None" => return Some(Value::Null),
            "True" | "False" => return Some(Value::Bool(word == "True")),
            "nan" | "inf" | "-inf" => return Some(Value::from(0)),
            "b" if self.rest().starts_with(['\'', '"']) => return self.string().map(Value::String),
            _ => {}
        }
        if word.parse::<f64>().is_ok() {
            return Some(Value::from(0));
        }
        if length == 0 || !self.rest().starts_with('(') {
            return (length > 0 && self.calls > 0).then(|| Value::String(String::new()));
        }
        // The arguments may have names: `UUID(int=1)`.
        self.eat('(');
        self.calls += 1;
        while !self.eat(')') {
            self.blanks();
            let rest = self.rest();
            let name = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(0);
            if rest[name..].starts_with('=') {
                self.at += name + 1;
            }
            self.value(depth + 1)?;
            if !self.eat(',') && !self.rest().starts_with(')') {
                return None;
            }
        }
        self.calls -= 1;
        Some(Value::String(String::new()))
    }
}
