//! The data in texts: JSON, values as Python prints them, tables, and the output of commands. Scripts read them with
//! `parseText`, which
//! has the same parsers.

use super::{Shape, is_false};
use agentscript::text_form::{self, Fault, Form, JsonBuilder, Reading};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum length of a text that is looked into, in bytes.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Maximum number of values that are made of a text.
const MAX_VALUES: usize = 20_000;
/// Maximum number of columns of a table.
const MAX_COLUMNS: usize = 40;
/// Maximum length of the name of a column, in bytes.
const MAX_COLUMN_BYTES: usize = 40;

/// The form of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextShape {
    /// Whether there are texts that are none of the others.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) plain: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) json: Option<Box<Shape>>,
    /// The values of lines that are JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lines: Option<Box<Shape>>,
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
    /// With commas, semicolons or `|` between cells.
    Csv,
    /// With tabs.
    Tsv,
    /// As Markdown.
    Markdown,
    /// With borders.
    Grid,
    /// With columns that are aligned by spaces.
    Aligned,
    /// As blocks of lines `name: value`.
    Records,
    /// As `git log` prints commits.
    GitLog,
}

impl TableFormat {
    /// All forms, in the order in which they are tried.
    const ALL: [Self; 7] =
        [Self::GitLog, Self::Grid, Self::Markdown, Self::Tsv, Self::Csv, Self::Aligned, Self::Records];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "CSV",
            Self::Tsv => "TSV",
            Self::Markdown => "Markdown table",
            Self::Grid => "bordered table",
            Self::Aligned => "aligned table",
            Self::Records => "records",
            Self::GitLog => "output of git log",
        }
    }

    fn form(self) -> Form {
        match self {
            Self::Csv => Form::Csv,
            Self::Tsv => Form::Tsv,
            Self::Markdown => Form::Markdown,
            Self::Grid => Form::Grid,
            Self::Aligned => Form::Aligned,
            Self::Records => Form::Records,
            Self::GitLog => Form::GitLog,
        }
    }
}

impl TextShape {
    /// Returns the shape of a text, which is looked into if `inside`.
    pub(super) fn of(text: &str, inside: bool) -> Self {
        let mut shape = Self::default();
        let text = text_form::content(text);
        if !inside || text.len() > MAX_TEXT_BYTES {
            shape.plain = true;
        } else if text.trim_start().starts_with(['{', '[', '(']) {
            if let Ok(value) = serde_json::from_str::<Value>(text) {
                shape.json = Some(Box::new(Shape::of_text(&value)));
            } else if let Some(values) = json_lines(text) {
                shape.lines = Some(Box::new(merged(&values)));
            } else if let Some(values) = values(Form::Python, text).map(JsonBuilder::into_values) {
                shape.python = Some(Box::new(merged(&values)));
            } else {
                shape.plain = true;
            }
        } else {
            shape.tables.extend(TableFormat::ALL.into_iter().find_map(|format| table(format, text)));
            shape.plain = shape.tables.is_empty();
        }
        shape
    }

    pub(super) fn merge(&mut self, other: Self) {
        let Self { plain, json, lines, python, tables } = other;
        self.plain |= plain;
        for (own, other) in [(&mut self.json, json), (&mut self.lines, lines), (&mut self.python, python)] {
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

    /// Whether `parseText` reads some of the texts, and `JSON.parse` does not.
    pub(super) fn needs_parser(&self) -> bool {
        self.lines.is_some() || self.python.is_some() || !self.tables.is_empty()
    }

    pub(super) fn cut(&mut self, depth: usize) {
        [&mut self.json, &mut self.lines, &mut self.python].into_iter().flatten().for_each(|shape| shape.cut(depth));
        for table in &mut self.tables {
            table.columns.truncate(MAX_COLUMNS);
        }
    }

    pub(super) fn parts(&self) -> usize {
        let columns: usize = self.tables.iter().map(|table| table.columns.len()).sum();
        let shapes = [&self.json, &self.lines, &self.python].into_iter().flatten();
        shapes.map(|shape| shape.parts()).sum::<usize>() + columns
    }
}

/// Returns the values of a text of a form.
fn values(form: Form, text: &str) -> Option<JsonBuilder> {
    let mut builder = JsonBuilder::new(MAX_VALUES);
    match text_form::read(form, text, Reading::default(), &mut builder) {
        Ok(_) => Some(builder),
        Err(Fault::Form(_) | Fault::Stop(_)) => None,
    }
}

/// Returns the values of lines that are all JSON objects or lists.
fn json_lines(text: &str) -> Option<Vec<Value>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let value =
        |line: &str| serde_json::from_str(line).ok().filter(|value: &Value| value.is_object() || value.is_array());
    lines.map(value).collect()
}

fn merged(values: &[Value]) -> Shape {
    let mut shape = Shape::default();
    for (index, value) in values.iter().enumerate() {
        let other = Shape::of_text(value);
        if index == 0 { shape = other } else { shape.merge(other) }
    }
    shape
}

/// Returns the table that a text is.
fn table(format: TableFormat, text: &str) -> Option<Table> {
    let builder = values(format.form(), text)?;
    let columns = builder.columns().map(<[String]>::to_vec).unwrap_or_default();
    let named = names(columns);
    if !matches!(format, TableFormat::Csv | TableFormat::Tsv) {
        return Some(Table { format, columns: named });
    }
    let rows = builder.into_values();
    // Below the name of a column there are values of one type.
    let is_data_column = |name: &String| rows.iter().all(|row| row[name].as_str().is_some_and(is_data));
    let has_header = named.iter().any(is_data_column);
    // Sentences have commas too.
    let is_certain = has_header || format == TableFormat::Tsv || named.len() > 2 && rows.len() > 1;
    // Names that only may be names are not kept: they may be values.
    is_certain.then(|| Table { format, columns: if has_header { named } else { Vec::new() } })
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
