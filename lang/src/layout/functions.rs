//! Functions: which are declarations, generators and arrow functions, and the operand of `yield`.

use super::{Ended, Layout, Position};
use crate::diagnostic::{Diagnostic, Result};
use crate::span::Span;
use crate::token::Token;

impl Layout<'_> {
    pub(super) fn function(&mut self, span: Span, newline: bool) {
        use Position::*;
        if self.is_word_before("async") && !newline {
            if let Some((_, before, _)) = self.out.last_mut() {
                *before = Token::Async;
            }
            self.position = if self.frame.statement + 1 == self.out.len() { Start } else { Operand };
        }
        let token = if self.position == Start { Token::Function } else { Token::FunctionExpr };
        // An `async` before it is the first token of the statement already.
        if self.last() == Some(Token::Async) {
            self.emit_inside(token, span)
        } else {
            self.emit(token, span)
        }
        self.head = Some(token);
        self.position = Operand;
    }

    /// `*` behind `function`, or before the key of a method.
    pub(super) fn generator(&mut self, span: Span) {
        let Some((_, before, end)) = self.out.last_mut() else { return };
        let generator = match *before {
            Token::Function => Token::Generator,
            Token::FunctionExpr => Token::GeneratorExpr,
            _ => return self.emit(Token::MethodStar, span),
        };
        (*before, *end) = (generator, span.end);
    }

    /// `yield`: with an operand unless the next token cannot begin one, or is on the next line.
    pub(super) fn yielding(&mut self, span: Span) -> Result<()> {
        use Token as T;
        if self.position == Position::After {
            return Err(Box::new(
                Diagnostic::syntax("expected an operator, found `yield`", span)
                    .with_hint("`yield` binds loosely: put it in parentheses, `(yield value)`"),
            ));
        }
        let mut ahead = self.raw.clone();
        let next = ahead.next();
        let operand = match next {
            _ if ahead.extras.newline => None,
            Some(Ok(T::RParen | T::RBracket | T::RBrace | T::Comma | T::Semicolon | T::Colon | T::In)) | None => None,
            Some(Ok(T::Star)) => {
                let end = Span::from(ahead.span()).end;
                self.raw = ahead;
                Some((T::YieldStar, end))
            }
            Some(_) => Some((T::Yield, span.end)),
        };
        match operand {
            Some((token, end)) => {
                self.emit(token, Span::new(span.start, end));
                self.position = Position::Operand;
            }
            None => {
                self.operand(T::YieldNothing, span);
                self.ended = Ended::Whole;
            }
        }
        Ok(())
    }

    /// `=>` decides what the parenthesis, or the `async`, before it was.
    pub(super) fn arrow(&mut self, span: Span, newline: bool) -> Result<()> {
        let parameters = match self.last() {
            _ if self.ended == Ended::Asserted => {
                return Err(Box::new(Diagnostic::syntax("expected parameters before `=>`", span)));
            }
            _ if newline => return Err(Box::new(Diagnostic::syntax("`=>` cannot begin a line", span))),
            Some(Token::RParen) if self.out[self.closed].1 == Token::LParen => self.closed,
            Some(Token::Ident) => self.out.len() - 1,
            _ => return Err(Box::new(Diagnostic::syntax("expected parameters before `=>`", span))),
        };
        self.make_parameters(parameters);
        self.emit(Token::Arrow, span);
        self.position = Position::ExprBody;
        Ok(())
    }

    /// Makes what begins at an index of the output the parameters of an arrow function, and an `async` before it a modifier.
    pub(super) fn make_parameters(&mut self, index: usize) {
        let (start, ref mut token, _) = self.out[index];
        if *token == Token::LParen {
            *token = Token::ArrowParen;
        }
        if let Some(before) = index.checked_sub(1)
            && self.is_word(self.out[before], "async")
            && self.is_on_line(Span::new(self.out[before].2, start))
        {
            self.out[before].1 = Token::Async;
        }
    }

    /// Whether no line break is in a span that ends with a token, types aside.
    fn is_on_line(&mut self, span: Span) -> bool {
        let breaks = span.text(self.source).contains(['\n', '\r', '\u{2028}', '\u{2029}']);
        !breaks || self.is_typescript() && self.eraser.next(span.start) == (Some(Token::Less), true)
    }
}
