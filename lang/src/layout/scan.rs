//! Tokens that the lexer cannot find alone: templates, regular expressions, ends of numbers.

use super::{Kind, Layout, Position};
use crate::diagnostic::{Diagnostic, Result};
use crate::span::Span;
use crate::token::{Token, regex_text, template_text};

impl Layout<'_> {
    /// Scans template text beginning at `from`, behind the backtick or the `}` at `span`.
    pub(super) fn template(&mut self, from: u32, opens: bool, span: Span) -> Result<()> {
        let Some((length, hole)) = template_text(self.raw.remainder()) else {
            return Err(Box::new(Diagnostic::syntax("this template is never closed", span)));
        };
        self.raw.bump(length);
        let span = Span { start: span.start, end: from + Span::from(0..length).end };
        match (opens, hole) {
            (true, true) => self.open(Token::TemplateHead, Kind::Hole, Position::Operand, span)?,
            (false, true) => {
                self.position = Position::After;
                self.open(Token::TemplateMiddle, Kind::Hole, Position::Operand, span)?;
            }
            (true, false) => self.operand(Token::Template, span),
            (false, false) => {
                self.emit_inside(Token::TemplateTail, span);
                self.position = Position::After;
            }
        }
        Ok(())
    }

    pub(super) fn regex(&mut self, slash: Span) -> Result<()> {
        self.rewind(slash.start + 1);
        let rest = self.raw.remainder();
        if rest.starts_with('*') {
            return Err(Box::new(Diagnostic::syntax("this comment is never closed", slash)));
        }
        let Some(end) = regex_text(rest) else {
            return Err(Box::new(Diagnostic::syntax("this regular expression is never closed", slash)));
        };
        self.raw.bump(end);
        let span = Span { start: slash.start, end: slash.start + 1 + Span::from(0..end).end };
        self.operand(Token::Regex, span);
        Ok(())
    }

    /// Checks that no name or digit follows a number directly.
    pub(super) fn number_end(&self, span: Span) -> Result<()> {
        let rest = self.raw.remainder();
        if !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '\\')) {
            return Ok(());
        }
        let text = self.slice(span);
        let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let span = Span { start: span.start, end: span.end + Span::from(0..length).end };
        if text == "0" && rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(Box::new(
                Diagnostic::syntax("numbers do not begin with `0`", span)
                    .with_hint("an octal number is written `0o17`"),
            ));
        }
        Err(Box::new(Diagnostic::syntax(format!("invalid number `{}`", self.slice(span)), span)))
    }

    /// Returns the error where no token begins.
    pub(super) fn unknown(&self, span: Span) -> Diagnostic {
        let text = self.source.get(span.start as usize..).unwrap_or("");
        match text.chars().next() {
            Some('"' | '\'') => {
                Diagnostic::syntax("this string is never closed", Span::new(span.start, span.start + 1))
                    .with_hint("a string ends on its line; text of several lines is written in backticks")
            }
            Some('#') => Diagnostic::syntax("unexpected character `#`", span).with_hint("a comment is written `// …`"),
            Some(character) => Diagnostic::syntax(format!("unexpected character `{character}`"), span),
            None => Diagnostic::syntax("unexpected end of the script", span),
        }
    }
}
