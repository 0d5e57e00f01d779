//! Words: names of properties, modifiers of methods, names with escapes, refused words.

use super::{Kind, Layout, Position};
use crate::diagnostic::{Diagnostic, Result};
use crate::span::Span;
use crate::token::Token;
use crate::{cook, refused};
use logos::Logos;

impl Layout<'_> {
    /// `async`, `get` and `set` before the key of a method, which begins with `token`.
    pub(super) fn modifier(&mut self, token: Token, span: Span, newline: bool) -> Result<()> {
        use Token as T;
        if !self.key_due() || self.position != Position::After {
            return Ok(());
        }
        let source = self.source;
        let Some(&mut (start, ref mut before, end)) = self.out.last_mut() else { return Ok(()) };
        if *before != T::Ident {
            return Ok(());
        }
        let is_key = || matches!(token, T::String | T::Number | T::BigInt | T::LBracket) || is_word(span.text(source));
        match Span::new(start, end).text(source) {
            "get" if is_key() => Err(Box::new(refuse("getter", Span::new(start, end)))),
            "set" if is_key() => Err(Box::new(refuse("setter", Span::new(start, end)))),
            "async" if (is_key() || token == T::Star) && !newline => {
                *before = T::Async;
                self.position = Position::Operand;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// `export default`, and `export` before a function `main`; there are no other exports.
    pub(super) fn export(&mut self, span: Span) -> Result<()> {
        use Token as T;
        let mut ahead = self.raw.clone();
        if ahead.next() != Some(Ok(T::Default)) {
            return match declared_name(&self.raw) {
                Some("main") => Ok(()),
                _ => Err(Box::new(refuse("export", span))),
            };
        }
        let end = Span::from(ahead.span()).end;
        self.raw = ahead;
        self.raw.extras.newline = false;
        self.emit(T::ExportDefault, Span::new(span.start, end));
        self.position = if declared_name(&self.raw).is_some() { Position::Start } else { Position::Operand };
        Ok(())
    }

    /// Returns the token for a word that is the name of a property here.
    pub(super) fn property_name(&self, token: Token, span: Span) -> Option<Token> {
        let named = match self.position {
            Position::Name => true,
            Position::After => false,
            _ => self.key_due(),
        };
        match token {
            _ if !named => None,
            Token::Ident => Some(token),
            _ if token.is_contextual() => Some(Token::Ident),
            _ => is_word(self.slice(span)).then_some(Token::Keyword),
        }
    }

    /// Whether the innermost bracket is an object literal whose next key has not been read.
    pub(super) fn key_due(&self) -> bool {
        matches!(self.frame.kind, Kind::Object) && !self.frame.keyed
    }

    /// Whether `*` makes a generator here.
    pub(super) fn generates(&self) -> bool {
        matches!(self.last(), Some(Token::Function | Token::FunctionExpr))
            || self.key_due() && self.position != Position::After
    }

    /// Returns the token of a name with escapes: never a keyword, not even a contextual one.
    pub(super) fn unescaped(&self, text: &str, span: Span) -> Result<Token> {
        let name = cook::unescaped(text, span.start).map_err(|error| *error)?;
        let mut lexer = Token::lexer(&name);
        let word = lexer.next();
        match word {
            _ if lexer.span() != (0..name.len()) => Err(Box::new(Diagnostic::syntax("invalid escape in a name", span))),
            Some(Ok(Token::Interface)) => match self.property_name(Token::Keyword, span) {
                Some(_) => Ok(Token::Keyword),
                None => Err(Box::new(reserved("interface", span))),
            },
            Some(Ok(token)) if token == Token::Ident || token.is_contextual() => Ok(Token::Ident),
            Some(Ok(_)) if is_word(&name) => {
                let names_property = self.property_name(Token::Keyword, span).is_some();
                if names_property { Ok(Token::Keyword) } else { Err(Box::new(keyword(&name, span))) }
            }
            _ => Err(Box::new(Diagnostic::syntax("invalid escape in a name", span))),
        }
    }
}

/// Returns the name of the function that is declared next, if one is.
fn declared_name<'s>(raw: &logos::Lexer<'s, Token>) -> Option<&'s str> {
    let mut ahead = raw.clone();
    let mut next = ahead.next()?.ok()?;
    if next == Token::AsyncWord {
        next = ahead.next()?.ok()?;
    }
    let mut name = ahead.next()?.ok()?;
    if name == Token::Star {
        name = ahead.next()?.ok()?;
    }
    (next == Token::Function && (name == Token::Ident || name.is_contextual())).then(|| ahead.slice())
}

/// Whether `word` begins `namespace Name {` or `abstract class`.
pub(super) fn is_declaration(word: &str, raw: &logos::Lexer<'_, Token>) -> bool {
    let is_class = match word {
        "abstract" => true,
        "namespace" | "module" => false,
        _ => return false,
    };
    let mut ahead = raw.clone();
    ahead.extras.newline = false;
    let next = ahead.next();
    if ahead.extras.newline {
        return false;
    }
    match next {
        Some(Ok(Token::Class)) => is_class,
        Some(Ok(Token::Ident)) => !is_class && matches!(ahead.next(), Some(Ok(Token::LBrace | Token::Dot))),
        _ => false,
    }
}

fn keyword(name: &str, span: Span) -> Diagnostic {
    // `th\u0069s` is the keyword that it spells.
    let message = format!("the keyword `{name}` must not contain escapes");
    Diagnostic::syntax(message, span)
}

/// Whether the text of a token is a word.
fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$' | '\\'))
}

/// Returns the diagnostic for a word that is not part of AgentScript.
#[cold]
pub(super) fn refuse(word: &str, span: Span) -> Diagnostic {
    let construct = match word {
        "@" => "decorator",
        "module" => "namespace",
        "abstract" => "class",
        _ if word.starts_with('#') => "private name",
        _ => word,
    };
    refused::syntax(construct).map_or_else(|| reserved(word, span), |row| row.at(span))
}

/// Returns the diagnostic for a reserved word without a meaning.
#[cold]
pub(super) fn reserved(word: &str, span: Span) -> Diagnostic {
    Diagnostic::syntax(format!("`{word}` is a reserved word"), span).with_hint("choose another name")
}
