//! Syntax that only TypeScript has: where it begins, and where a type may stand. [`erase`](crate::erase) tells where it
//! ends.
//!
//! A type is not just left out: `x as T` leaves `(x)` and `<T>x` leaves `(x)`, with parentheses of no width. So the grammar
//! refuses both where only a name may stand, and what they bind to is the same.

use super::bindings::is_pattern_end;
use super::{Ended, Layout, Position};
use crate::diagnostic::{Diagnostic, Result};
use crate::erase::Angles;
use crate::span::Span;
use crate::token::Token;

/// The state of types in the innermost bracket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Types {
    /// The first type that was erased in it and that only parameters may have.
    pub(super) annotation: Option<Span>,
    /// The token before it.
    pub(super) generic: Generic,
    /// Whether the statement is a declaration of variables.
    pub(super) declares: bool,
    /// The number of open parentheses of assertions `<T>x`.
    asserts: u32,
    /// Index in the output of the first token of the operand of an assertion `x as T` that may come.
    operand: usize,
}

/// The kind of `<…>` before a parenthesis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum Generic {
    #[default]
    None,
    /// Type parameters.
    Parameters,
    /// Type parameters, or the type of an assertion.
    Assertion,
}

impl Generic {
    /// Returns it without the doubt, where an assertion of a value in parentheses needs no more of them.
    pub(super) fn unless_assertion(self) -> Self {
        if self == Self::Assertion { Self::None } else { self }
    }
}

/// A `:` behind parentheses that was taken for the one of a `?`. Where another one follows, it begins the result type
/// of an arrow function, and the next one is that of the `?`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubtful {
    /// Index in the output of the opening token of the bracket it is in.
    frame: usize,
    /// The number of `?` that had no `:` behind it.
    ternaries: u32,
    /// Index in the output of the `:`.
    colon: usize,
    /// Index in the output of the `(`.
    open: usize,
    /// Where the type ends.
    end: u32,
}

impl Layout<'_> {
    /// Skips syntax that only TypeScript has; returns whether `token` began it.
    pub(super) fn erased(&mut self, token: Token, span: Span, newline: bool) -> Result<bool> {
        use Token as T;
        if self.position == Position::Body
            && !matches!(token, T::LBrace | T::Colon)
            && self.overload(token, span, newline)?
        {
            return Ok(token == T::Semicolon);
        }
        self.settle(token, span, newline)?;
        if newline && self.ended == Ended::Annotated {
            self.end_statement(token, span, newline);
        }
        if token == T::Comma || self.position == Position::Start {
            let frame = self.frame.open;
            while self.doubtful.pop_if(|found| found.frame >= frame).is_some() {}
        }
        let asserts = self.position == Position::After
            && matches!(self.ended, Ended::Operand | Ended::Closed | Ended::Asserted | Ended::Cast);
        match token {
            T::Less | T::ShiftLeft => self.angles(token, span, newline),
            _ if self.key_due() => Ok(false),
            T::As | T::Satisfies if asserts && !newline && !self.is_async_parameter(span) => self.assert(span),
            T::Type | T::Interface | T::Import | T::Export if self.at_start(newline) => {
                self.declaration(token, span, newline)
            }
            T::Ident if self.at_start(newline) && self.slice(span) == "declare" => {
                self.declaration(token, span, newline)
            }
            T::This => self.this_parameter(span),
            T::Bang
                if asserts && !newline && self.head.is_none() && self.ended != Ended::Cast && !self.is_updated() =>
            {
                self.non_null(span)?;
                Ok(true)
            }
            T::Question => self.optional_parameter(span),
            _ => Ok(false),
        }
    }

    /// Ends what the tokens before this one began and this one does not go on with.
    pub(super) fn settle(&mut self, token: Token, span: Span, newline: bool) -> Result<()> {
        use Token as T;
        if !matches!(token, T::Arrow | T::Colon) {
            self.justify()?;
        } else if token == T::Arrow {
            self.annotation = None;
            self.generic = Generic::None;
        }
        if self.position != Position::After {
            return Ok(());
        }
        // The next line may be a statement of its own.
        let begins = newline && self.frame.holds_statements();
        let continues = match token {
            T::Dot | T::QuestionDot => true,
            T::LParen | T::LBracket | T::Backtick => !(begins && self.ended == Ended::Cast),
            T::Bang | T::Increment | T::Decrement => !newline,
            _ => false,
        };
        let assigns = matches!(token, T::Assign | T::CompoundAssign | T::SlashAssign | T::Arrow);
        if self.ended == Ended::Cast && (continues || assigns) {
            return Err(Box::new(self.unparenthesised(span)));
        }
        if self.frame.types.asserts > 0 && !continues {
            if assigns || token == T::StarStar {
                return Err(Box::new(self.unparenthesised(span)));
            }
            if !matches!(token, T::Less | T::ShiftLeft) {
                self.finish_asserts();
            }
        }
        Ok(())
    }

    fn unparenthesised(&self, span: Span) -> Diagnostic {
        let message = format!("expected an operator behind a type, found `{}`", self.slice(span));
        Diagnostic::syntax(message, span).with_hint("put the value and its type in parentheses: `(x as T)`")
    }

    /// Closes the parentheses of assertions `<T>x`.
    fn finish_asserts(&mut self) {
        let asserts = std::mem::take(&mut self.frame.types.asserts);
        if asserts == 0 {
            return;
        }
        self.finish_new();
        for _ in 0..asserts {
            self.close_parenthesis();
        }
    }

    fn close_parenthesis(&mut self) {
        let at = self.out.last().map_or(0, |&(_, _, end)| end);
        self.emit_inside(Token::RParen, Span::new(at, at));
        self.ended = Ended::Cast;
    }

    /// Refuses types in parentheses that turn out to be no parameters.
    pub(super) fn justify(&mut self) -> Result<()> {
        if let Some(colon) = self.annotation {
            return Err(Box::new(Diagnostic::syntax("only parameters and declarations have types", colon)));
        }
        match std::mem::take(&mut self.generic) {
            Generic::None => {}
            Generic::Parameters => {
                let (start, _, end) = self.out.get(self.closed).copied().unwrap_or((0, Token::Trivia, 0));
                return Err(Box::new(Diagnostic::syntax("expected `=>` behind these parameters", start..end)));
            }
            Generic::Assertion => {
                self.parentheses.push(self.closed);
                self.frame.types.asserts += 1;
            }
        }
        Ok(())
    }

    /// Remembers where operands and declarations begin.
    pub(super) fn note(&mut self, token: Token) {
        if self.position == Position::Start {
            self.frame.types.declares = matches!(token, Token::Const | Token::Let | Token::Var);
        }
        let is_arrow_body = self.position == Position::ExprBody && self.last() == Some(Token::Arrow);
        let begins = matches!(self.position, Position::Start | Position::Operand | Position::Restricted);
        if (begins || is_arrow_body) && !self.last().is_some_and(binds_tightly) {
            self.frame.types.operand = self.out.len();
        }
    }

    /// `async as => x`
    fn is_async_parameter(&mut self, span: Span) -> bool {
        self.is_word_before("async") && self.eraser.next(span.end).0 == Some(Token::Arrow)
    }

    /// `x as T`
    fn assert(&mut self, span: Span) -> Result<bool> {
        self.finish_new();
        let end = self.eraser.asserted(span.end)?;
        if self.ended != Ended::Cast {
            self.parentheses.push(self.frame.types.operand);
            self.close_parenthesis();
        }
        self.ended = Ended::Cast;
        self.skip_to(end);
        Ok(true)
    }

    /// `x!`
    fn non_null(&mut self, span: Span) -> Result<()> {
        if self.eraser.next(span.end).0 == Some(Token::Colon)
            && self.declares_here()
            && self.last() == Some(Token::Ident)
        {
            return Ok(());
        }
        self.asserted(span.end);
        Ok(())
    }

    /// Notes that the operand is no name any more. Where a pattern or a label may stand, parentheses say so.
    fn asserted(&mut self, end: u32) {
        use Token as T;
        let (next, _) = self.eraser.next(end);
        let goes_on =
            matches!(next, Some(T::LParen | T::LBracket | T::Backtick | T::Dot | T::QuestionDot | T::Bang | T::Less));
        if !goes_on && let Some(start) = self.binding_start() {
            self.parentheses.push(start);
            let at = self.out.last().map_or(0, |&(_, _, end)| end);
            self.emit_inside(T::RParen, Span::new(at, at));
        }
        self.ended = Ended::Asserted;
    }

    /// `<`: type parameters, type arguments, the type of an assertion, or an operator.
    fn angles(&mut self, token: Token, span: Span, newline: bool) -> Result<bool> {
        use Token as T;
        let after = self.position == Position::After;
        let is_method = self.key_due() && after;
        match self.head {
            Some(T::Function | T::FunctionExpr) => return self.type_parameters(span),
            Some(_) => return Ok(false),
            None if is_method => return self.type_parameters(span),
            None if self.key_due() => return Ok(false),
            None => {}
        }
        if self.position == Position::Name && self.last() == Some(T::QuestionDot) {
            let end = self.eraser.optional_type_arguments(span.start)?;
            self.skip_to(end);
            return Ok(true);
        }
        if after {
            return self.type_arguments(token, span, newline);
        }
        let is_arrow_body = self.position == Position::ExprBody && self.last() == Some(T::Arrow);
        let expects =
            matches!(self.position, Position::Start | Position::Operand | Position::Restricted | Position::DoWhile);
        if token == T::Less && (expects || is_arrow_body) && self.last() != Some(T::New) {
            return self.prefix(span, newline);
        }
        Ok(false)
    }

    /// `<T>` of a function or a method.
    fn type_parameters(&mut self, span: Span) -> Result<bool> {
        let end = self.eraser.type_parameters(span.start)?;
        self.skip_to(end);
        Ok(true)
    }

    /// `f<T>(x)`, also where an operand ends behind it, and `async <T>(x) => x`
    fn type_arguments(&mut self, token: Token, span: Span, newline: bool) -> Result<bool> {
        if !matches!(self.ended, Ended::Operand | Ended::Asserted) || self.is_updated() {
            self.finish_asserts();
            return Ok(false);
        }
        let is_async = token == Token::Less && !newline && self.is_word_before("async");
        let found = if is_async && self.frame.types.operand + 1 == self.out.len() {
            self.eraser.async_angles(span.start)?
        } else {
            let end = self.eraser.type_arguments(span.start)?;
            end.map(|end| Angles { end, parameters: false, types: true })
        };
        let Some(Angles { end, parameters, types }) = found else {
            self.finish_asserts();
            return Ok(false);
        };
        if !types {
            self.opening = Generic::Parameters;
        } else if !parameters {
            self.asserted(end);
        }
        self.skip_to(end);
        Ok(true)
    }

    /// `<T>(x) => x`, or `<T>x`
    fn prefix(&mut self, span: Span, newline: bool) -> Result<bool> {
        self.end_statement(Token::Less, span, newline);
        let Angles { end, parameters, types } = self.eraser.angles(span.start)?;
        if parameters {
            self.opening = if types { Generic::Assertion } else { Generic::Parameters };
            // A line break behind `return<T>` ends nothing.
            if self.position == Position::Restricted {
                self.position = Position::Operand;
            }
        } else {
            self.note(Token::Less);
            self.emit(Token::LParen, Span::new(span.start, span.start));
            self.frame.types.asserts += 1;
            self.position = Position::Operand;
        }
        self.skip_to(end);
        Ok(true)
    }

    /// Replaces a declaration of types by an empty statement; returns whether there was one.
    fn declaration(&mut self, token: Token, span: Span, newline: bool) -> Result<bool> {
        let Some(end) = self.eraser.declaration(span.end, token)? else { return Ok(false) };
        self.end_statement(Token::RBrace, span, newline);
        self.emit(Token::Semicolon, span);
        self.position = Position::Start;
        if self.frames.is_empty() {
            self.type_declarations.push(Span::new(span.start, end));
        }
        self.skip_to(end);
        Ok(true)
    }

    /// Removes the overload signature `function f(a: A): B`, which has no body; returns whether there was one.
    fn overload(&mut self, token: Token, span: Span, newline: bool) -> Result<bool> {
        let Some(function) = self.closed.checked_sub(2) else { return Ok(false) };
        let (Some((_, Token::Function, _)), Some(&(start, Token::Ident, end))) =
            (self.out.get(function), self.out.get(function + 1))
        else {
            return Ok(false);
        };
        let ends = newline || matches!(token, Token::Semicolon | Token::RBrace);
        if !ends || self.last() != Some(Token::RParen) {
            return Ok(false);
        }
        let name = Span::new(start, end);
        // The grammar never sees it.
        self.eraser.signature(end)?;
        if !self.eraser.declares_function(span.start, self.slice(name))? {
            return Err(Box::new(
                Diagnostic::syntax("this function has no body", name)
                    .with_hint("the function must follow its signature; one that exists elsewhere is declared: `declare function f(): void`"),
            ));
        }
        self.out.truncate(function);
        while matches!(self.last(), Some(Token::Async | Token::ExportDefault)) {
            self.out.pop();
        }
        self.position = Position::Start;
        Ok(true)
    }

    /// Skips the type that begins with this `:`, if one does.
    pub(super) fn type_colon(&mut self, span: Span) -> Result<bool> {
        let end = match self.last() {
            _ if self.ended != Ended::Operand => return Ok(false),
            Some(Token::RParen) => match self.result_type(span)? {
                Some(end) => end,
                None => return Ok(false),
            },
            _ if self.position == Position::After && self.frame.ternaries == 0 && self.may_annotate(span) => {
                self.eraser.annotation(span.end)?
            }
            _ => return Ok(false),
        };
        self.ended = Ended::Annotated;
        self.skip_to(end);
        Ok(true)
    }

    /// Returns the end of the result type of a function, behind the `)` of its parameters.
    fn result_type(&mut self, span: Span) -> Result<Option<u32>> {
        match self.position {
            Position::Body | Position::ExprBody if !self.is_behind_switch(self.closed) => {
                self.eraser.return_type(span.end).map(Some)
            }
            Position::After if matches!(self.out.get(self.closed), Some((_, Token::LParen, _))) => {
                self.arrow_result_type(span)
            }
            _ => Ok(None),
        }
    }

    fn arrow_result_type(&mut self, span: Span) -> Result<Option<u32>> {
        if self.frame.ternaries == 0 && !self.is_doubted() {
            if !self.frame.keyed {
                return Ok(None);
            }
            return self.eraser.arrow_type(span.end).map(Some);
        }
        if !self.may_be_parameters() {
            return Ok(None);
        }
        let first = self.out.get(self.closed + 1).map(|&(_, token, _)| token);
        if self.annotation.is_some()
            || self.generic == Generic::Parameters
            || matches!(first, Some(Token::RParen | Token::Ellipsis))
        {
            return self.eraser.arrow_type(span.end).map(Some);
        }
        let Some(found) = self.eraser.possible_arrow_type(span.end)? else { return Ok(None) };
        if !found.is_arrow {
            return Ok(Some(found.end));
        }
        self.retype();
        self.doubtful.push(Doubtful {
            frame: self.frame.open,
            ternaries: self.frame.ternaries - 1,
            colon: self.out.len(),
            open: self.closed,
            end: found.end,
        });
        Ok(None)
    }

    /// Whether the `:` that comes next makes the last doubtful one that of a result type.
    fn is_doubted(&self) -> bool {
        let here = (self.frame.open, self.frame.ternaries);
        self.doubtful.last().is_some_and(|found| (found.frame, found.ternaries) == here)
    }

    /// Takes the last doubtful `:` for that of a result type, if another one comes now. It leaves the `?` to that.
    pub(super) fn retype(&mut self) {
        // Those of brackets that are closed follow those of the innermost one.
        while self.doubtful.pop_if(|found| found.frame > self.frame.open).is_some() {}
        if !self.is_doubted() {
            return;
        }
        let Some(Doubtful { colon, open, end, .. }) = self.doubtful.pop() else { return };
        let mut index = colon;
        while let Some(token) = self.out.get(index).filter(|token| token.0 < end) {
            let (start, _, end) = *token;
            self.out[index] = (start, Token::Trivia, end);
            index += 1;
        }
        self.has_trivia = true;
        self.make_parameters(open);
        self.frame.ternaries += 1;
    }

    /// Continues behind a type.
    fn skip_to(&mut self, end: u32) {
        self.rewind(end);
    }

    /// Whether `++` or `--` is behind the operand.
    fn is_updated(&self) -> bool {
        matches!(self.last(), Some(Token::Increment | Token::Decrement))
    }

    /// Returns the index of the first token of the name or the literal that just ended, where a pattern or a label may stand.
    fn binding_start(&self) -> Option<usize> {
        use Token as T;
        let start = is_pattern_end(&self.out, self.closed)?;
        let before = start.checked_sub(1)?;
        let may_bind = matches!(
            self.out[before].1,
            T::LParen
                | T::LBracket
                | T::Comma
                | T::Ellipsis
                | T::Colon
                | T::Const
                | T::Let
                | T::Var
                | T::Break
                | T::Continue
        );
        may_bind.then_some(start)
    }
}

/// Whether an operator binds at least as tightly as `as`, or its operand goes on in another way.
fn binds_tightly(token: Token) -> bool {
    use Token::*;
    matches!(
        token,
        Plus | Minus
            | Star
            | StarStar
            | Slash
            | Percent
            | ShiftLeft
            | ShiftRight
            | ShiftRightUnsigned
            | Less
            | LessEqual
            | Greater
            | GreaterEqual
            | In
            | Instanceof
            | Bang
            | Tilde
            | Typeof
            | Void
            | Delete
            | Await
            | Increment
            | Decrement
            | New
            | Dot
            | QuestionDot
            | Async
            | Function
            | FunctionExpr
            | Generator
            | GeneratorExpr
    )
}
