//! Forms of text that hold data: what `parseText` of a script reads, and what a server recognizes in results of tools.
//!
//! A parser gives the parts of the data to a [`Sink`], in one pass over the text. Its user decides what is made of them
//! and what it costs. JSON is not here: its readers are those of values. Nothing here knows values or limits.

mod aligned;
mod csv;
mod git_log;
mod grid;
mod header;
mod json;
mod markdown;
mod python;
mod records;
#[cfg(test)]
mod tests;

pub use json::{JsonBuilder, TooLarge};
use std::borrow::Cow;
use std::convert::Infallible;

/// Maximum number of columns of a table.
pub const MAX_COLUMNS: usize = 1_000;

/// A form of text that holds data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// One JSON document.
    Json,
    /// A JSON object or list on each line.
    JsonLines,
    /// A value as Python prints it: `{'id': 1, 'name': None}`.
    Python,
    /// The output of `git log`.
    GitLog,
    /// A table with borders: `+----+`, `┌────┐`.
    Grid,
    /// A table of Markdown.
    Markdown,
    /// Cells with tabs between them.
    Tsv,
    /// Cells with commas, semicolons or `|` between them.
    Csv,
    /// Columns that are aligned by spaces, as `ps`, `kubectl get`, `psql` and `sqlite3` print them.
    Aligned,
    /// Blocks of lines `name: value` with the same names.
    Records,
}

impl Form {
    /// All forms, in the order in which they are tried.
    pub const ALL: [Self; 10] = [
        Self::Json,
        Self::JsonLines,
        Self::Python,
        Self::GitLog,
        Self::Grid,
        Self::Markdown,
        Self::Tsv,
        Self::Csv,
        Self::Aligned,
        Self::Records,
    ];

    /// Returns its name in results and options of `parseText`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::JsonLines => "jsonl",
            Self::Python => "python",
            Self::GitLog => "git-log",
            Self::Grid => "grid",
            Self::Markdown => "markdown",
            Self::Tsv => "tsv",
            Self::Csv => "csv",
            Self::Aligned => "aligned",
            Self::Records => "records",
        }
    }

    /// Returns the form of a name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }
}

/// A part of data, in the order of the text.
#[derive(Clone, Copy, Debug)]
pub enum Part<'p> {
    /// A list begins.
    List,
    /// An object begins.
    Object,
    /// The name of the next value of an object.
    Key(&'p str),
    /// The innermost list or object ends.
    End,
    /// A text.
    Text(&'p str),
    /// A number.
    Number(f64),
    /// A truth value.
    Boolean(bool),
    /// `None` of Python.
    Null,
    /// The names of the columns of a table, which differ. They come before all rows; without them rows are lists.
    Columns(&'p [String]),
    /// The cells of a row of a table: as many as there are columns.
    Row(&'p [Cow<'p, str>]),
}

/// What takes the parts of data.
pub trait Sink {
    /// Why it takes no more.
    type Stop;

    /// Takes a part.
    ///
    /// # Errors
    /// It takes no more.
    fn part(&mut self, part: Part<'_>) -> Result<(), Self::Stop>;
}

/// Why a text was not read.
#[derive(Debug)]
pub enum Fault<E> {
    /// It does not have the form: why not.
    Form(String),
    /// The sink takes no more.
    Stop(E),
}

impl<E> Fault<E> {
    fn form(reason: impl Into<String>) -> Self {
        Self::Form(reason.into())
    }
}

/// Why a text does not have a form, where no sink is involved.
struct Reason(String);

impl<E> From<Reason> for Fault<E> {
    fn from(Reason(reason): Reason) -> Self {
        Self::Form(reason)
    }
}

/// Gives a part to a sink.
fn give<S: Sink>(sink: &mut S, part: Part<'_>) -> Result<(), Fault<S::Stop>> {
    sink.part(part).map_err(Fault::Stop)
}

/// How a text is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// Whether the first row has the names of the columns; `None`: as it looks.
    pub header: Option<bool>,
    /// Whether the user has named the form, so that one row or one column is enough.
    pub is_chosen: bool,
}

/// The text before and after a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Around<'t> {
    /// Before it.
    pub before: &'t str,
    /// After it.
    pub after: &'t str,
}

/// Reads a text of a form other than JSON.
///
/// # Errors
/// The text does not have the form, which may be found out after parts were given; or the sink takes no more.
pub fn read<'t, S: Sink>(
    form: Form,
    text: &'t str,
    reading: Reading,
    sink: &mut S,
) -> Result<Around<'t>, Fault<S::Stop>> {
    let whole = |read: Result<(), Fault<S::Stop>>| read.map(|()| Around::default());
    match form {
        Form::Json | Form::JsonLines => Err(Fault::form("JSON is read as values")),
        Form::Python => whole(python::read(text, sink)),
        Form::GitLog => git_log::read(text, sink),
        Form::Grid => grid::read(text, reading, sink),
        Form::Markdown => markdown::read(text, reading, sink),
        Form::Tsv => whole(csv::read(text, b"\t", reading, sink)),
        Form::Csv => whole(csv::read(text, b",;|", reading, sink)),
        Form::Aligned => aligned::read(text, reading, sink),
        Form::Records => records::read(text, reading, sink),
    }
}

/// A sink that takes everything and keeps nothing: to find out whether a text has a form.
#[derive(Debug)]
pub struct Nothing;

impl Sink for Nothing {
    type Stop = Infallible;

    fn part(&mut self, _: Part<'_>) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Returns why a text does not have a form other than JSON.
///
/// # Errors
/// The reason.
pub fn check(form: Form, text: &str, reading: Reading) -> Result<(), String> {
    match read(form, text, reading, &mut Nothing) {
        Ok(_) => Ok(()),
        Err(Fault::Form(reason)) => Err(reason),
        Err(Fault::Stop(stop)) => match stop {},
    }
}

/// Returns the part of a text that holds its data: without a byte order mark, empty lines around it, and a fence of Markdown.
/// Spaces and tabs of other lines stay, because they belong to columns.
#[must_use]
pub fn content(text: &str) -> &str {
    let text = without_empty_lines(text.strip_prefix('\u{feff}').unwrap_or(text));
    let Some(inner) = text.strip_prefix("```") else { return text };
    let fenced = inner.strip_suffix("```").and_then(|inner| inner.split_once('\n'));
    match fenced {
        Some((tag, inner)) if !tag.contains('`') && !inner.contains("\n```") => without_empty_lines(inner),
        Some(_) | None => text,
    }
}

fn without_empty_lines(text: &str) -> &str {
    let mut text = text.trim_start_matches(['\n', '\r']);
    loop {
        text = text.trim_end_matches(['\n', '\r']);
        // A line of tabs has empty cells.
        let last = text.trim_end_matches(' ');
        if last.len() == text.len() || !last.ends_with(['\n', '\r']) {
            return text;
        }
        text = last;
    }
}

/// Lines with their numbers, from 1, and where they begin.
fn lines(text: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').enumerate().map(move |(index, line)| {
        let start = at;
        at += line.len();
        (index + 1, start, line.trim_end_matches(['\n', '\r']))
    })
}

/// Returns the text before and after a table that is between two positions.
fn around(text: &str, start: usize, end: usize) -> Around<'_> {
    let before = text.get(..start).unwrap_or_default().trim();
    Around { before, after: text.get(end..).unwrap_or_default().trim() }
}

/// Why a row is wrong that has not as many cells as the table has columns.
fn wrong_width(line: usize, cells: usize, columns: usize) -> Reason {
    Reason(format!("line {line} has {cells} cells, the first has {columns}"))
}
