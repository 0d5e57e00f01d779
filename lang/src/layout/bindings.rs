//! Where TypeScript allows a type: behind the names and patterns of declarations and parameters.

use super::{Ended, Kind, Layout, Position};
use crate::diagnostic::Result;
use crate::span::Span;
use crate::token::Token;

/// The owner of a name or a pattern that just ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Owner {
    Declaration,
    /// Parameters of a function, or of `catch`.
    Parameters,
    /// Parentheses that are parameters where `=>` follows.
    Parentheses,
}

/// Returns the index of the first token of the name, or of the literal that may be a pattern, with which the output ends. `closed`
/// is the index of the bracket that was closed last.
pub(super) fn is_pattern_end(out: &[super::Spanned], closed: usize) -> Option<usize> {
    let last = out.len().checked_sub(1)?;
    match (out[last].1, out.get(closed)) {
        (Token::Ident, _) => Some(last),
        (Token::RBracket, Some((_, Token::LBracket, _))) | (Token::RBrace, Some((_, Token::ObjectBrace, _))) => {
            Some(closed)
        }
        _ => None,
    }
}

impl Layout<'_> {
    /// Whether a type may stand behind what just ended.
    pub(super) fn may_annotate(&mut self, colon: Span) -> bool {
        match self.owner() {
            Some(Owner::Declaration | Owner::Parameters) => true,
            Some(Owner::Parentheses) => {
                self.frame.types.annotation.get_or_insert(colon);
                true
            }
            None => false,
        }
    }

    /// Whether a variable of `let` or `var` just ended, outside of loops.
    pub(super) fn declares_here(&self) -> bool {
        self.frame.holds_statements() && self.owner() == Some(Owner::Declaration)
    }

    /// Returns the owner of the name or the pattern that just ended.
    fn owner(&self) -> Option<Owner> {
        use Token as T;
        if self.ended != Ended::Operand {
            return None;
        }
        let before = is_pattern_end(&self.out, self.closed)?.checked_sub(1)?;
        let token = self.out[before].1;
        let declares = match self.frame.kind {
            Kind::Block | Kind::ExprBody => self.frame.types.declares,
            Kind::ForHead => matches!(self.out.get(self.frame.open + 1), Some((_, T::Const | T::Let | T::Var, _))),
            Kind::Paren(_) => return self.owner_in_parentheses(before),
            Kind::Object | Kind::Bracket | Kind::Hole => return None,
        };
        (declares && matches!(token, T::Const | T::Let | T::Var | T::Comma)).then_some(Owner::Declaration)
    }

    fn owner_in_parentheses(&self, before: usize) -> Option<Owner> {
        let open = self.frame.open;
        let first = if self.out[before].1 == Token::Ellipsis { before.checked_sub(1)? } else { before };
        if first != open && self.out[first].1 != Token::Comma {
            return None;
        }
        match self.frame.kind {
            _ if self.is_function_head() => Some(Owner::Parameters),
            Kind::Paren(Position::Start) => {
                (self.out[open.checked_sub(1)?].1 == Token::Catch && first == open).then_some(Owner::Parameters)
            }
            Kind::Paren(Position::After) if self.out[open].1 == Token::LParen => Some(Owner::Parentheses),
            _ => None,
        }
    }

    /// Whether the innermost bracket has the parameters of a function with a block.
    fn is_function_head(&self) -> bool {
        matches!(self.frame.kind, Kind::Paren(Position::Body | Position::ExprBody))
            && !self.is_behind_switch(self.frame.open)
    }

    /// Whether the parenthesis at an index of the output is that of `switch`.
    pub(super) fn is_behind_switch(&self, open: usize) -> bool {
        open.checked_sub(1).is_some_and(|before| matches!(self.out.get(before), Some((_, Token::Switch, _))))
    }

    /// Whether the parentheses just closed, in a branch of a condition, may be the parameters of an arrow function.
    pub(super) fn may_be_parameters(&self) -> bool {
        use Token as T;
        let open = self.closed;
        let before = open.checked_sub(1).map(|index| self.out[index]);
        let before = match before {
            Some(word) if self.is_word(word, "async") => open.checked_sub(2).map(|index| self.out[index]),
            other => other,
        };
        let begins = matches!(
            before,
            Some((_, T::Question | T::Colon | T::Assign | T::CompoundAssign | T::Arrow | T::Yield | T::YieldStar, _))
        );
        begins && self.are_bindings(open + 1)
    }

    /// Whether the tokens from an index to the end are names and patterns, perhaps with defaults.
    fn are_bindings(&self, from: usize) -> bool {
        use Token as T;
        let mut depth = 0_u32;
        // Whether a name or a pattern is due, and whether a default is being read.
        let (mut due, mut default) = (true, false);
        for index in from..self.out.len() - 1 {
            let token = self.out[index].1;
            match token {
                T::LParen
                | T::ArrowParen
                | T::NewParen
                | T::LBracket
                | T::LBrace
                | T::ObjectBrace
                | T::TemplateHead => {
                    if depth == 0 && !default {
                        if !due || !matches!(token, T::LBracket | T::ObjectBrace) {
                            return false;
                        }
                        due = false;
                    }
                    depth += 1;
                }
                T::RParen | T::RBracket | T::RBrace | T::TemplateTail => depth = depth.saturating_sub(1),
                _ if depth > 0 => {}
                T::Comma => (due, default) = (true, false),
                _ if default => {}
                T::Ident if due => due = false,
                T::Ellipsis if due => {}
                T::Assign if !due => default = true,
                _ => return false,
            }
        }
        true
    }

    /// Skips the parameter `this: T`, which is the first one.
    pub(super) fn this_parameter(&mut self, span: Span) -> Result<bool> {
        if !self.is_function_head() || self.frame.open + 1 != self.out.len() {
            return Ok(false);
        }
        let end = self.eraser.this_parameter(span.end)?;
        self.rewind(end);
        Ok(true)
    }

    /// Skips the `?` of an optional parameter; leaves that of a condition.
    pub(super) fn optional_parameter(&mut self, span: Span) -> Result<bool> {
        if self.position != Position::After || !matches!(self.frame.kind, Kind::Paren(_)) {
            return Ok(false);
        }
        let is_optional = matches!(self.eraser.next(span.end).0, Some(Token::Comma | Token::RParen | Token::Colon));
        Ok(is_optional && self.may_annotate(span))
    }

    /// Begins the state of types in the parentheses that open here.
    pub(super) fn open_types(&mut self) {
        let generic = std::mem::take(&mut self.opening);
        self.frame.types.generic = generic;
    }

    /// Passes on the types that were erased in the parentheses that close here.
    pub(super) fn close_types(&mut self, after: Position) {
        self.annotation = self.frame.types.annotation.filter(|_| after == Position::After);
        self.generic = self.frame.types.generic;
    }
}
