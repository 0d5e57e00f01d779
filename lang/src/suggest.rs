//! The names in a script: what a misspelled one may have meant.

use crate::token::Token;
use crate::{Span, shape};
use logos::Logos;

/// The names in a text that are no properties, each once, in their order. Found without parsing: what
/// stands in templates and regular expressions may be among them.
#[must_use]
pub fn names(source: &str) -> Vec<&str> {
    let code = shape::code(source).map_or(Span::from(0..source.len()), |(code, _)| code);
    let mut names = Vec::new();
    let mut seen = hashbrown::HashSet::new();
    let mut is_property = false;
    for token in Token::lexer(code.text(source)).flatten() {
        if let Token::Ident(name) = token
            && !is_property
            && seen.insert(name)
        {
            names.push(name);
        }
        is_property = matches!(token, Token::Dot | Token::QuestionDot);
    }
    names
}
