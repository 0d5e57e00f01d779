//! A mistake of a script, for a reader who can repair it.

use crate::span::{Location, Span};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Stable codes of diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Code {
    /// The text is not AgentScript.
    SyntaxError,
    /// The text is JavaScript that AgentScript refuses.
    ValidationError,
    /// A loop that the options do not allow.
    LoopNotAllowed,
    /// The text is longer than the options allow.
    ScriptTooLarge,
    /// A call of a tool of the host itself.
    SelfReferenceBlocked,
}

impl Code {
    /// Returns the code as text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SyntaxError => "SYNTAX_ERROR",
            Self::ValidationError => "VALIDATION_ERROR",
            Self::LoopNotAllowed => "LOOP_NOT_ALLOWED",
            Self::ScriptTooLarge => "SCRIPT_TOO_LARGE",
            Self::SelfReferenceBlocked => "SELF_REFERENCE_BLOCKED",
        }
    }
}

/// Kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Refusal {
    /// A way to run text as code: `eval`, `Function`.
    IllegalBuiltinAccess,
    /// A global of a host that scripts have no access to: `process`, `fetch`.
    DisallowedGlobal,
    /// A construct of JavaScript that is not part of AgentScript: `class`, `this`.
    DisallowedSyntax,
    /// A property that leads to prototypes or constructors: `__proto__`.
    DisallowedProperty,
}

impl Refusal {
    /// Returns the kind as text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IllegalBuiltinAccess => "IllegalBuiltinAccess",
            Self::DisallowedGlobal => "DisallowedGlobal",
            Self::DisallowedSyntax => "DisallowedSyntax",
            Self::DisallowedProperty => "DisallowedProperty",
        }
    }
}

/// Why a script was not compiled: at least one diagnostic, in the order of the source.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The faults. Syntax errors stand alone; refusals are all reported, also those behind one that ends the parse, as far
    /// as tokens tell.
    pub diagnostics: Vec<Diagnostic>,
}

/// The result of a step whose error is reported as it is; boxed, because the parser moves results often.
pub(crate) type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// One thing that is wrong with a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Stable code.
    pub code: Code,
    /// For refused constructs: what kind of thing was refused.
    pub refusal: Option<Refusal>,
    /// The fault, in one sentence.
    pub message: Cow<'static, str>,
    /// Where it is.
    pub span: Span,
    /// The remedy, if it is known.
    pub hint: Option<Cow<'static, str>>,
}

impl Diagnostic {
    /// Creates a syntax error.
    #[cold]
    pub fn syntax(message: impl Into<Cow<'static, str>>, span: impl Into<Span>) -> Self {
        Self { code: Code::SyntaxError, refusal: None, message: message.into(), span: span.into(), hint: None }
    }

    /// Creates the diagnostic of a construct that is refused.
    #[cold]
    pub fn refused(refusal: Refusal, message: impl Into<Cow<'static, str>>, span: impl Into<Span>) -> Self {
        Self {
            code: Code::ValidationError,
            refusal: Some(refusal),
            message: message.into(),
            span: span.into(),
            hint: None,
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the line and the column of the beginning.
    #[must_use]
    pub fn location(&self, source: &str) -> Location {
        Location::of(source, self.span.start)
    }

    /// Returns the diagnostic with its source line and a caret, as a compiler prints it.
    #[must_use]
    pub fn render<'a>(&'a self, file: &'a str, source: &'a str) -> Rendered<'a> {
        Rendered { diagnostic: self, file, source }
    }
}

/// A diagnostic with its source line, ready to be printed.
pub struct Rendered<'a> {
    diagnostic: &'a Diagnostic,
    file: &'a str,
    source: &'a str,
}

/// Longest part of a source line that is printed, in characters.
const LINE_WIDTH: usize = 160;

impl fmt::Display for Rendered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic { code, message, span, hint, .. } = self.diagnostic;
        let Location { line, column } = Location::of(self.source, span.start);
        writeln!(f, "error[{}]: {message}", code.as_str())?;
        writeln!(f, "  --> {}:{line}:{column}", self.file)?;
        let is_break = |c| matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}');
        let at = (span.start as usize).min(self.source.len());
        let (before, after) = self.source.split_at_checked(at).unwrap_or((self.source, ""));
        let start = before.rfind(is_break).map_or(0, |i| i + before[i..].chars().next().map_or(1, char::len_utf8));
        let end = at + after.find(is_break).unwrap_or(after.len());
        let lead = before[start..].chars().count();
        let skipped = lead.saturating_sub(LINE_WIDTH / 2);
        let text: String = self.source[start..end].chars().skip(skipped).take(LINE_WIDTH).collect();
        let marked = span.text(self.source).chars().take_while(|&c| !is_break(c)).count();
        let width = marked.clamp(1, (LINE_WIDTH - (lead - skipped)).max(1));
        let gutter = line.to_string();
        writeln!(f, "{:1$} |", "", gutter.len())?;
        writeln!(f, "{gutter} | {text}")?;
        let indent: String = text.chars().take(lead - skipped).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        writeln!(f, "{:1$} | {indent}{2}", "", gutter.len(), "^".repeat(width))?;
        if let Some(hint) = hint {
            writeln!(f, "{:1$} = help: {hint}", "", gutter.len())?;
        }
        Ok(())
    }
}
