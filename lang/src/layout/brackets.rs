//! Brackets: which kind opens, what its closing means.

use super::{Ended, Frame, Kind, Layout, Position};
use crate::ast::MAX_DEPTH;
use crate::diagnostic::{Diagnostic, Result};
use crate::span::{Location, Span};
use crate::token::Token;

/// Most open brackets. Two of them are at least one level of the tree, so this refuses nothing that the
/// grammar accepts; it bounds the work.
const MAX_OPEN: usize = 2 * MAX_DEPTH as usize + 8;

impl Layout<'_> {
    pub(super) fn open_paren(&mut self, span: Span) -> Result<()> {
        use Position::*;
        let method = self.key_due() && self.position == After;
        let mut token = Token::LParen;
        let kind = match self.head.take() {
            Some(Token::For) => Kind::ForHead,
            Some(Token::Function | Token::Switch) => Kind::Paren(Body),
            Some(Token::FunctionExpr) => Kind::Paren(ExprBody),
            Some(Token::Do) => Kind::Paren(DoWhile),
            Some(_) => Kind::Paren(Start),
            None if method => Kind::Paren(ExprBody),
            None => {
                if self.frame.news > 0 && self.position == After {
                    self.frame.news -= 1;
                    token = Token::NewParen;
                }
                Kind::Paren(After)
            }
        };
        self.open(token, kind, Operand, span)?;
        if self.is_typescript() {
            self.open_types();
        }
        Ok(())
    }

    pub(super) fn close_paren(&mut self, span: Span) -> Result<()> {
        let after = match self.frame.kind {
            Kind::Paren(after) => after,
            _ => Position::Start,
        };
        if self.is_typescript() {
            self.close_types(after);
        }
        self.close(Token::RParen, after, span)
    }

    pub(super) fn open_brace(&mut self, span: Span) -> Result<()> {
        use Position::*;
        // `catch {` has no head in parentheses.
        self.head = None;
        match self.position {
            Start | Body => self.open(Token::LBrace, Kind::Block, Start, span),
            ExprBody => self.open(Token::LBrace, Kind::ExprBody, Start, span),
            _ => self.open(Token::ObjectBrace, Kind::Object, Operand, span),
        }
    }

    pub(super) fn close_brace(&mut self, span: Span) -> Result<()> {
        match self.frame.kind {
            Kind::Hole => {
                if let Some(frame) = self.frames.pop() {
                    self.frame = frame;
                }
                self.template(span.end, false, span)
            }
            Kind::Block => self.close(Token::RBrace, Position::Start, span),
            Kind::ExprBody => {
                let opener = self.frame.open.checked_sub(1).and_then(|before| self.out.get(before));
                let arrow = matches!(opener, Some((_, Token::Arrow, _)));
                self.close(Token::RBrace, Position::After, span)?;
                if arrow {
                    self.ended = Ended::Whole;
                }
                Ok(())
            }
            Kind::Object | Kind::Paren(_) | Kind::ForHead | Kind::Bracket => {
                self.close(Token::RBrace, Position::After, span)
            }
        }
    }

    pub(super) fn open(&mut self, token: Token, kind: Kind, position: Position, span: Span) -> Result<()> {
        if self.frames.len() >= MAX_OPEN {
            return Err(Box::new(Diagnostic::syntax("this is nested too deeply", span)));
        }
        self.emit(token, span);
        self.frames.push(self.frame);
        self.frame = Frame::new(kind, self.out.len() - 1);
        self.position = position;
        Ok(())
    }

    pub(super) fn close(&mut self, token: Token, position: Position, span: Span) -> Result<()> {
        let closing = match self.frame.kind {
            Kind::Paren(_) | Kind::ForHead => Token::RParen,
            Kind::Bracket => Token::RBracket,
            Kind::Block | Kind::ExprBody | Kind::Object | Kind::Hole => Token::RBrace,
        };
        match self.frames.pop() {
            None => Err(Box::new(Diagnostic::syntax("this bracket closes nothing", span))),
            Some(_) if closing != token => Err(Box::new(self.mismatch(closing, span))),
            Some(outer) => {
                self.emit_inside(token, span);
                self.closed = self.frame.open;
                self.frame = outer;
                self.position = position;
                Ok(())
            }
        }
    }

    #[cold]
    fn mismatch(&self, closing: Token, span: Span) -> Diagnostic {
        let expected = match closing {
            Token::RParen => ")",
            Token::RBracket => "]",
            _ => "}",
        };
        let (start, _, end) = self.out[self.frame.open];
        let Location { line, column } = Location::of(self.source, start);
        let opening = Span::new(start, end).text(self.source);
        Diagnostic::syntax(format!("expected `{expected}`, found `{}`", self.slice(span)), span)
            .with_hint(format!("`{opening}` was opened at line {line}, column {column}"))
    }
}
