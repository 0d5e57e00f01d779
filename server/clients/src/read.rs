//! Parses files of clients: JSON with comments and trailing commas, and TOML.

use codecall_base::text::excerpt::{Position, excerpt};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;
use serde_json::Value;
use std::path::Path;
use toml_edit::DocumentMut;

/// A parsed file.
pub struct Document {
    /// Its value.
    pub value: Value,
}

/// Whether a file is TOML; all others are JSON.
pub fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "toml")
}

/// Parses a file.
///
/// # Errors
/// It is not what its name says. The first line of the message has the place; those below it show the line of the file without
/// its values, as these may be secrets.
pub fn document(path: &Path, text: &str) -> Result<Document, String> {
    let (_, text) = split_mark(text);
    let value = if is_toml(path) {
        toml::from_str(text).map_err(|error| problem("TOML", text, error.span()))?
    } else {
        json(text)?.to_serde_value().unwrap_or_default()
    };
    Ok(Document { value })
}

/// Splits a text after its byte order mark, with which editors of Windows begin a file.
pub fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 })
}

/// Parses JSON with comments, and keeps the text as it is.
///
/// # Errors
/// It is not JSON.
pub fn json(text: &str) -> Result<CstRootNode, String> {
    CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| problem("JSON", text, Some(error.range().start..error.range().end)))
}

/// Parses TOML, and keeps the text as it is.
///
/// # Errors
/// It is not TOML.
pub fn toml(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| problem("TOML", text, error.span()))
}

/// Returns TOML with line ends as those of the text that it was made from: `toml_edit` writes `\n` only.
pub fn with_line_ends_of(before: &str, text: String) -> String {
    let windows = before.matches("\r\n").count();
    if windows > 0 && windows == before.matches('\n').count() { text.replace('\n', "\r\n") } else { text }
}

fn problem(kind: &str, text: &str, span: Option<std::ops::Range<usize>>) -> String {
    let position = Position::of(text, span.map_or(0, |span| span.start));
    let Position { line, column, .. } = position;
    format!("not valid {kind} at line {line}, column {column}\n{}", excerpt(text, position))
}
