//! The names in a script: what a misspelled one may have meant.

use crate::fence;
use crate::span::Span;
use crate::token::Token;
use logos::Logos;

/// Returns the names in a text that are no properties, each once, in their order. Found without parsing: what
/// stands in templates and regular expressions may be among them. The tags are those of
/// [`Options`](crate::Options).
#[must_use]
pub fn names<'s>(source: &'s str, fence_tags: &[&str]) -> Vec<&'s str> {
    let code =
        fence::candidates(source, fence_tags).map_or(Span::from(0..source.len()), |candidates| candidates.first.span);
    let mut names = Vec::new();
    let mut seen = hashbrown::HashSet::new();
    let mut is_property = false;
    let mut tokens = Token::lexer(code.text(source));
    while let Some(token) = tokens.next() {
        let Ok(token) = token else { continue };
        let name = tokens.slice();
        if token == Token::Ident && !is_property && seen.insert(name) {
            names.push(name);
        }
        is_property = matches!(token, Token::Dot | Token::QuestionDot);
    }
    names
}
