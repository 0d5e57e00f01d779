//! The tokens of types, one by one, with the next one known.

use crate::diagnostic::{Diagnostic, Result};
use crate::span::Span;
use crate::token::{Token, template_text};
use logos::Logos;

/// Deepest nesting of types: recognising them recurses.
const MAX_DEPTH: u32 = 64;

/// Where a recogniser stands in the source.
#[derive(Clone)]
pub(super) struct Cursor<'s> {
    /// It has read the next token.
    raw: logos::Lexer<'s, Token>,
    /// The next token; nothing at the end of the source, and where no token begins.
    pub(super) next: Option<Token>,
    /// Whether a line break is before the next token.
    pub(super) newline: bool,
    /// Where the last token ended.
    end: usize,
    depth: u32,
    /// Whether `extends` begins no conditional type: it would take the `?` of another one.
    pub(super) extending: bool,
    /// The number of tokens that it may still read.
    budget: usize,
    /// Where type arguments begin that turned out to be none.
    pub(super) failed: Vec<u32>,
}

impl<'s> Cursor<'s> {
    pub(super) fn new(source: &'s str, at: u32, budget: usize) -> Self {
        let mut raw = Token::lexer(source);
        raw.bump(at as usize);
        let mut cursor = Self {
            raw,
            next: None,
            newline: false,
            end: at as usize,
            depth: 0,
            extending: false,
            budget,
            failed: Vec::new(),
        };
        cursor.read();
        cursor
    }

    pub(super) fn budget(&self) -> usize {
        self.budget
    }

    /// Returns the offset at which the next token begins.
    pub(super) fn start(&self) -> u32 {
        Span::from(self.raw.span()).start
    }

    /// Returns the offset at which the last token ended.
    pub(super) fn end(&self) -> u32 {
        Span::from(0..self.end).end
    }

    pub(super) fn advance(&mut self) {
        self.end = self.raw.span().end;
        self.read();
    }

    fn read(&mut self) {
        self.raw.extras.newline = false;
        self.next = match self.budget.checked_sub(1) {
            Some(left) => {
                self.budget = left;
                self.raw.next().and_then(std::result::Result::ok)
            }
            None => None,
        };
        self.newline = self.raw.extras.newline;
        // `T extends U ?.5 : 1` has no `?.`.
        if self.next == Some(Token::QuestionDot) && self.raw.remainder().starts_with(|c: char| c.is_ascii_digit()) {
            self.split(Token::Question);
        }
    }

    /// Makes the first character of the next token a token.
    fn split(&mut self, first: Token) {
        let at = self.raw.span().start;
        self.raw = Token::lexer(self.raw.source());
        self.raw.bump(at + 1);
        self.next = Some(first);
    }

    pub(super) fn text(&self) -> &'s str {
        self.raw.slice()
    }

    pub(super) fn is(&self, token: Token) -> bool {
        self.next == Some(token)
    }

    pub(super) fn eat(&mut self, token: Token) -> bool {
        let found = self.is(token);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect(&mut self, token: Token, text: &'static str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(text)) }
    }

    /// Whether the next token is this word, which is a name in other places.
    pub(super) fn is_word(&self, word: &str) -> bool {
        self.is(Token::Ident) && self.text() == word
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    /// Whether the next token is a name.
    pub(super) fn is_name(&self) -> bool {
        self.next.is_some_and(|token| matches!(token, Token::Ident | Token::EscapedIdent) || token.is_contextual())
    }

    /// Whether the next token is a name or a reserved word.
    pub(super) fn is_any_word(&self) -> bool {
        self.next.is_some() && self.text().starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$' | '\\'))
    }

    pub(super) fn name(&mut self) -> Result<()> {
        if !self.is_name() {
            return Err(self.expected("a name"));
        }
        self.advance();
        Ok(())
    }

    pub(super) fn any_word(&mut self) -> Result<()> {
        if !self.is_any_word() {
            return Err(self.expected("a name"));
        }
        self.advance();
        Ok(())
    }

    /// Whether a semicolon stands here, or may be left out.
    pub(super) fn ends_statement(&self) -> bool {
        self.newline || matches!(self.next, Some(Token::Semicolon | Token::RBrace)) || self.is_end()
    }

    /// Reads a semicolon, also one that a line break, `}` or the end of the source stands for.
    pub(super) fn semicolon(&mut self) -> Result<()> {
        if !self.ends_statement() {
            return Err(self.expected("`;` or a line break"));
        }
        self.eat(Token::Semicolon);
        Ok(())
    }

    fn is_end(&self) -> bool {
        self.next.is_none() && self.budget > 0 && self.text().is_empty()
    }

    /// Reads a `>` that closes type arguments or parameters; `>>` and `>=` begin with one.
    pub(super) fn close_angle(&mut self) -> Result<()> {
        use Token as T;
        match self.next {
            Some(T::Greater) => {}
            Some(T::GreaterEqual | T::ShiftRight | T::ShiftRightUnsigned) => self.split(T::Greater),
            Some(T::CompoundAssign) if self.text().starts_with('>') => self.split(T::Greater),
            _ => return Err(self.expected("`>`")),
        }
        self.advance();
        Ok(())
    }

    /// Reads a `<` that opens type arguments; `<<` begins with one.
    pub(super) fn open_angle(&mut self) -> bool {
        match self.next {
            Some(Token::Less) => {}
            Some(Token::ShiftLeft) => self.split(Token::Less),
            _ => return false,
        }
        self.advance();
        true
    }

    /// Reads the text of a template up to its end, or up to a hole. Returns whether it is a hole.
    pub(super) fn template_text(&mut self) -> Result<bool> {
        let rest = self.raw.remainder();
        let found = template_text(rest);
        self.raw.bump(found.map_or(rest.len(), |(length, _)| length));
        let Some((_, hole)) = found else { return Err(self.expected("the end of the template")) };
        self.advance();
        Ok(hole)
    }

    /// Looks ahead.
    pub(super) fn looks<T>(&mut self, look: impl FnOnce(&mut Self) -> T) -> T {
        let mut ahead = self.clone();
        let found = look(&mut ahead);
        self.budget = ahead.budget;
        found
    }

    /// Goes on only if it succeeds.
    pub(super) fn attempt(&mut self, attempt: impl FnOnce(&mut Self) -> bool) -> bool {
        let mut ahead = self.clone();
        let found = attempt(&mut ahead);
        if found {
            *self = ahead;
        } else {
            self.budget = ahead.budget;
        }
        found
    }

    /// Recognises something one level deeper.
    pub(super) fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Box::new(Diagnostic::syntax("this type is nested too deeply", self.raw.span())));
        }
        self.depth += 1;
        let found = inner(self);
        self.depth -= 1;
        found
    }

    /// Recognises something where `extends` begins a conditional type, or begins none.
    pub(super) fn while_extending<T>(&mut self, extending: bool, inner: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.extending, extending);
        let found = inner(self);
        self.extending = outer;
        found
    }

    /// Reads items with commas between them, and perhaps one behind the last, up to `end`.
    pub(super) fn list(
        &mut self,
        end: Token,
        text: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        while !self.is(end) {
            item(self)?;
            if !self.eat(Token::Comma) {
                break;
            }
        }
        self.expect(end, text)
    }

    #[cold]
    pub(super) fn expected(&self, what: &'static str) -> Box<Diagnostic> {
        let span = self.raw.span();
        Box::new(match self.text() {
            _ if self.budget == 0 => too_complex(span.into()),
            "" => Diagnostic::syntax(format!("expected {what} in a type, found the end of the script"), span),
            text => {
                let found = text.lines().next().unwrap_or_default();
                Diagnostic::syntax(format!("expected {what} in a type, found `{found}`"), span)
            }
        })
    }

    /// Returns an error at the next token.
    #[cold]
    pub(super) fn error(&self, message: &'static str, hint: &'static str) -> Box<Diagnostic> {
        Box::new(Diagnostic::syntax(message, self.raw.span()).with_hint(hint))
    }
}

/// Returns the error where recognising types would take too long.
#[cold]
pub(super) fn too_complex(span: Span) -> Diagnostic {
    Diagnostic::syntax("the types of this script are too complex", span).with_hint("write simpler types, or none")
}
