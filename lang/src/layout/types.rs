//! Syntax that only TypeScript has: where it begins, and where a type may stand. [`erase`] skips it.

use super::{Ended, Kind, Layout, Position};
use crate::diagnostic::{Diagnostic, Result};
use crate::erase;
use crate::span::Span;
use crate::token::Token;

impl Layout<'_> {
    /// Skips syntax that only TypeScript has; gives whether `token` began it.
    pub(super) fn erased(&mut self, token: Token, span: Span, newline: bool) -> Result<bool> {
        use Token as T;
        let after = self.position == Position::After;
        if self.position == Position::Body && !matches!(token, T::LBrace | T::Colon) && self.overload() {
            return Ok(token == T::Semicolon);
        }
        match token {
            T::As | T::Satisfies if after && !newline => {
                self.finish_new();
                erase::skip_type(&mut self.raw)?;
                self.ended = Ended::Closed;
                Ok(true)
            }
            T::Type | T::Interface if self.at_start(newline) => {
                let found = erase::declaration(&mut self.raw, token)?;
                self.end_erased(found);
                Ok(found)
            }
            T::Import | T::Export if self.at_start(newline) => {
                let found = erase::type_module(&mut self.raw, token)?;
                self.end_erased(found);
                Ok(found)
            }
            T::Ident if self.at_start(newline) && self.slice(span) == "declare" => {
                let found = erase::ambient(&mut self.raw)?;
                self.end_erased(found);
                Ok(found)
            }
            T::This if self.last().is_some_and(T::opens) => Ok(erase::this_parameter(&mut self.raw)?),
            // `x!`
            T::Bang if after && !newline => Ok(true),
            // `(x?: T, y?)`
            T::Question if after && matches!(self.frame.kind, Kind::Paren(_)) => Ok(erase::ends_optional(&self.raw)),
            // `<T>(x) => x`
            T::Less if !after => {
                erase::skip_type_parameters(&mut self.raw)?;
                Ok(true)
            }
            // `f<T>(x)`
            T::Less => Ok(erase::type_arguments(&mut self.raw, &mut self.wasted)),
            _ => Ok(false),
        }
    }

    /// A declaration that is erased ends the statement before it as its line break does.
    pub(super) fn end_erased(&mut self, found: bool) {
        if found && matches!(self.position, Position::After | Position::DoWhile) {
            self.end_statement(Token::RBrace, Span::default(), true);
        }
    }

    /// Removes the overload signature `function f(a: A): B`, which has no body; gives whether there was one.
    pub(super) fn overload(&mut self) -> bool {
        let Some(function) = self.closed.checked_sub(2) else { return false };
        if !matches!(self.out.get(function), Some((_, Token::Function | Token::Generator, _))) {
            return false;
        }
        self.out.truncate(function);
        while matches!(self.last(), Some(Token::Async | Token::ExportDefault)) {
            self.out.pop();
        }
        self.position = Position::Start;
        true
    }

    /// Whether a type may stand here: in a declaration, among parameters, or behind them.
    pub(super) fn may_annotate(&mut self, colon: Span) -> bool {
        let declares =
            || matches!(self.out.get(self.frame.statement), Some((_, Token::Const | Token::Let | Token::Var, _)));
        match self.frame.kind {
            _ if self.last() == Some(Token::RParen) => true,
            Kind::Paren(_) => {
                self.frame.annotation.get_or_insert(colon);
                true
            }
            Kind::ForHead => true,
            Kind::Block | Kind::ExprBody => declares(),
            Kind::Object | Kind::Bracket | Kind::Hole => false,
        }
    }

    /// Refuses a type that was erased in parentheses without `=>` behind them.
    pub(super) fn justify(&self) -> Result<()> {
        match self.annotation {
            Some(colon) => Err(Box::new(Diagnostic::syntax("only parameters and declarations have types", colon))),
            None => Ok(()),
        }
    }
}
