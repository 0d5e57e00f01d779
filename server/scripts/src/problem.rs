//! The mistakes of a script tool, for its author.

use agentscript::{Diagnostic, ErrorCode, Location};
use serde::Serialize;
use std::fmt;

/// Maximum length of a source line, in characters.
const MAX_LINE_CHARS: usize = 160;

/// One thing that is wrong with a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The code of the diagnostic of a script; `VALIDATION_ERROR` for everything else.
    pub code: &'static str,
    /// The file, if it is not that of the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line, from 1; `None`: it concerns the whole file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in UTF-16 code units, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The beginning of that line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_line: Option<Box<str>>,
    /// The problem, in one sentence.
    pub message: String,
    /// The remedy, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Problem {
    /// Creates a problem of a whole file.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        let code = ErrorCode::ValidationError.as_str();
        Self { code, file: None, line: None, column: None, source_line: None, message: message.into(), hint: None }
    }

    /// Adds what to do.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the place by an offset in bytes of a source.
    #[must_use]
    pub fn at(mut self, source: &str, offset: usize) -> Self {
        let place = Location::of(source, u32::try_from(offset).unwrap_or(u32::MAX));
        (self.line, self.column) = (Some(place.line), Some(place.column));
        self.source_line = line_at(source, offset).map(String::into_boxed_str);
        self
    }

    /// Names another file than that of the code.
    #[must_use]
    pub fn in_file(mut self, file: &str) -> Self {
        self.file = Some(file.to_owned());
        self
    }

    /// Converts a diagnostic of a script.
    #[must_use]
    pub fn of_script(diagnostic: &Diagnostic, source: &str) -> Self {
        let hint = diagnostic.hint.as_deref().map(str::to_owned);
        let problem = Self { code: diagnostic.code.as_str(), hint, ..Self::new(&*diagnostic.message) };
        problem.at(source, diagnostic.span.start as usize)
    }

    /// Returns it as one line, which begins with the file of the tool or its own.
    #[must_use]
    pub fn in_line(&self, file: &str) -> String {
        format!("{}{self}", self.file.as_deref().unwrap_or(file))
    }
}

/// Returns the beginning of the line with an offset; `None` if it is blank.
fn line_at(source: &str, offset: usize) -> Option<String> {
    let (before, after) = source.split_at_checked(offset.min(source.len()))?;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let end = after.find('\n').map_or(source.len(), |at| before.len() + at);
    let line = source[start..end].trim_end();
    (!line.is_empty()).then(|| line.chars().take(MAX_LINE_CHARS).collect())
}

impl fmt::Display for Problem {
    /// The place and the message: `:2:5: message; hint`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, ":{line}:{column}: ")?,
            (Some(line), None) => write!(f, ":{line}: ")?,
            (None, _) => f.write_str(": ")?,
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}
