//! From text to the syntax tree, and the wording of syntax errors.

use crate::ast::{Arena, Script};
use crate::diagnostic::Diagnostic;
use crate::layout;
use crate::options::Language;
use crate::span::Span;
use crate::targets::Covers;
use crate::token::Token;
use lalrpop_util::{ParseError, lalrpop_mod};

#[cfg(test)]
mod tests;

lalrpop_mod!(
    #[expect(
        clippy::all,
        clippy::pedantic,
        clippy::allow_attributes,
        clippy::unwrap_used,
        unused_qualifications,
        unreachable_pub,
        reason = "generated"
    )]
    grammar
);

/// Parses a script. In [`Language::JavaScript`], types are syntax errors.
pub fn parse<'s>(arena: &'s Arena, source: &'s str, language: Language) -> Result<Script<'s>, Diagnostic> {
    parse_part(arena, source, Span::from(0..source.len()), language)
}

/// Parses the part of a text that is code.
pub(crate) fn parse_part<'s>(
    arena: &'s Arena,
    source: &'s str,
    code: Span,
    language: Language,
) -> Result<Script<'s>, Diagnostic> {
    let tokens = layout::tokens(source, code, language).map_err(|error| *error)?;
    let covers = Covers::new(source);
    // A tree that is too high ends the text: no action reads it.
    let tokens = tokens.into_iter().map(|token| covers.check_depth().map(|()| token));
    grammar::ScriptParser::new().parse(arena, &covers, tokens).map_err(|error| diagnostic(source, error))
}

fn diagnostic(source: &str, error: ParseError<u32, Token, Box<Diagnostic>>) -> Diagnostic {
    match error {
        ParseError::User { error } => *error,
        ParseError::InvalidToken { location } => Diagnostic::syntax("unexpected character", location..location),
        ParseError::UnrecognizedEof { location, expected } => {
            let message = format!("expected {}, found the end of the script", describe(&expected));
            Diagnostic::syntax(message, location..location)
        }
        ParseError::UnrecognizedToken { token: (start, _, end), expected } => {
            let span = Span::new(start, end);
            let found = match span.text(source) {
                "" => "the end of the statement".into(),
                text => format!("`{}`", shortened(text)),
            };
            Diagnostic::syntax(format!("expected {}, found {found}", describe(&expected)), span)
        }
        ParseError::ExtraToken { token: (start, _, end) } => {
            Diagnostic::syntax("expected the end of the script", start..end)
        }
    }
}

/// Returns the beginning of a token, for messages.
fn shortened(text: &str) -> String {
    const MAX_BYTES: usize = 40;
    let line = text.lines().next().unwrap_or("");
    match line.char_indices().nth(MAX_BYTES) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.len() < text.len() => format!("{line}…"),
        None => line.into(),
    }
}

/// Returns a set of expected terminals in the words of messages.
///
/// The grammar expects some thirty terminals wherever it expects an expression; one of them is
/// enough to recognise the set. The first marker that is expected names it.
fn describe(expected: &[String]) -> String {
    const MARKERS: [(&str, &str); 5] = [
        ("if", "a statement"),
        ("null", "an expression"),
        ("...", "a parameter"),
        ("{:", "a variable name or a pattern"),
        ("instanceof", "an operator"),
    ];
    let expects = |terminal: &str| expected.iter().any(|name| name.trim_matches('"') == terminal);
    let mut names: Vec<String> =
        MARKERS.iter().find(|(marker, _)| expects(marker)).map(|(_, name)| (*name).into()).into_iter().collect();
    if names.is_empty() {
        names.extend(expected.iter().map(|name| terminal(name.trim_matches('"'))));
    } else if names[0] == "an operator" {
        let closing = [")", "]", "}", ",", ":"].into_iter().filter(|name| expects(name));
        names.extend(closing.map(|name| format!("`{name}`")));
        if expects(";") {
            names.push("the end of the statement".into());
        }
    }
    names.dedup();
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last } else { format!("{} or {last}", names.join(", ")) }
}

/// Returns a terminal of the grammar in the words of messages.
fn terminal(name: &str) -> String {
    match name {
        ";" => "the end of the statement".into(),
        "identifier" | "keyword" => "a name".into(),
        "(=>" | "(new" => "`(`".into(),
        "* method" => "`*`".into(),
        "function expression" => "`function`".into(),
        "function* expression" => "`function*`".into(),
        "yield;" => "`yield`".into(),
        "{:" => "`{`".into(),
        "template middle" | "template tail" => "`}`".into(),
        "for in" => "`in`".into(),
        "op=" => "`=`".into(),
        name => format!("`{name}`"),
    }
}
