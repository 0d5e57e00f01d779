//! Recognises the types of TypeScript, so that the grammar never sees one.
//!
//! It reads ahead on its own from a place in the source, and tells where a type ends. Anything else than a type is an
//! error. The
//! decisions are those of the parser of TypeScript, whose functions have nearly the same names. It reads a bounded number of
//! tokens in all, so that a script cannot make it read ahead again and again.

mod ambient;
mod constant;
mod cursor;
mod declaration;
mod members;
mod modules;
mod parameters;
mod reader;
mod types;

use crate::diagnostic::Result;
use crate::span::Span;
use crate::token::Token as T;
use cursor::Cursor;
pub use reader::{TypeToken, TypeTokenKind, TypeTokens};

/// Most tokens that are read for each byte of the source. Deeply nested types are read several times.
const TOKENS_PER_BYTE: usize = 64;

/// The recogniser of a source.
pub(crate) struct Eraser<'s> {
    source: &'s str,
    budget: usize,
    /// Where no type arguments begin, as another attempt found out that read further: `a < b < c < d` is read once.
    comparisons: Vec<u32>,
}

/// The possible meanings of `<…>` before an operand, or behind `async`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Angles {
    /// Where it ends.
    pub(crate) end: u32,
    /// Whether they are type parameters, with a parenthesis behind them.
    pub(crate) parameters: bool,
    /// Whether it is the type of an assertion, or type arguments.
    pub(crate) types: bool,
}

/// A type behind `)` and `:`, with `=>` behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ArrowType {
    pub(crate) end: u32,
    /// Whether JavaScript reads it as the beginning of another arrow function.
    pub(crate) is_arrow: bool,
}

impl<'s> Eraser<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        Self { source, budget: TOKENS_PER_BYTE * (source.len() + 64), comparisons: Vec::new() }
    }

    /// Returns the end of the type that begins here.
    pub(crate) fn annotation(&mut self, from: u32) -> Result<u32> {
        self.read(from, |cursor| cursor.a_type().map(|_| ()))
    }

    /// Returns the end of the type behind `as` or `satisfies`.
    pub(crate) fn asserted(&mut self, from: u32) -> Result<u32> {
        self.read(from, Cursor::asserted)
    }

    /// Returns the end of the result type that begins here.
    pub(crate) fn return_type(&mut self, from: u32) -> Result<u32> {
        self.read(from, Cursor::return_type)
    }

    /// Returns the end of the result type of an arrow function.
    pub(crate) fn arrow_type(&mut self, from: u32) -> Result<u32> {
        self.read(from, |cursor| {
            cursor.return_type()?;
            if cursor.is(T::Arrow) { Ok(()) } else { Err(cursor.expected("`=>`")) }
        })
    }

    /// Returns the result type of an arrow function, if it is one.
    pub(crate) fn possible_arrow_type(&mut self, from: u32) -> Result<Option<ArrowType>> {
        self.possible(from, |cursor| {
            let first = cursor.next;
            let is_name = cursor.is_name();
            let is_single = cursor.looks(|ahead| {
                ahead.advance();
                ahead.is(T::Arrow)
            });
            let found = cursor.return_type().is_ok() && cursor.is(T::Arrow);
            let is_arrow = is_name && is_single || matches!(first, Some(T::LParen | T::Less));
            found.then(|| ArrowType { end: cursor.end(), is_arrow })
        })
    }

    /// Returns the end of the signature of a function, whose name is before.
    pub(crate) fn signature(&mut self, from: u32) -> Result<u32> {
        self.read(from, Cursor::signature)
    }

    /// Returns the end of the type parameters of a function, whose `<` is here.
    pub(crate) fn type_parameters(&mut self, from: u32) -> Result<u32> {
        self.read(from, |cursor| {
            cursor.expect(T::Less, "`<`")?;
            cursor.type_parameters()?;
            if cursor.is(T::LParen) { Ok(()) } else { Err(cursor.expected("`(`")) }
        })
    }

    /// Returns the kind of the `<…>` at the beginning of an operand.
    pub(crate) fn angles(&mut self, from: u32) -> Result<Angles> {
        let parameters = self.possible(from, |cursor| cursor.are_parameters().then(|| cursor.end()))?;
        let types = match parameters {
            Some(_) => self.possible(from, |cursor| cursor.angle_assertion().is_ok().then(|| cursor.end()))?,
            None => Some(self.read(from, Cursor::angle_assertion)?),
        };
        let end = parameters.or(types).unwrap_or(from);
        Ok(Angles { end, parameters: parameters.is_some(), types: types.is_some() })
    }

    /// Returns the kind of the `<…>` behind `async`; nothing for a comparison.
    pub(crate) fn async_angles(&mut self, from: u32) -> Result<Option<Angles>> {
        let parameters = self.possible(from, |cursor| cursor.are_parameters().then(|| cursor.end()))?;
        let types = self.type_arguments(from)?;
        let (parameters, types, end) = (parameters.is_some(), types.is_some(), parameters.or(types));
        Ok(end.map(|end| Angles { end, parameters, types }))
    }

    /// Returns the end of the type arguments whose `<` is here, if it begins some.
    pub(crate) fn type_arguments(&mut self, from: u32) -> Result<Option<u32>> {
        if self.comparisons.contains(&from) {
            return Ok(None);
        }
        let mut failed = Vec::new();
        let found = self.possible(from, |cursor| {
            let found = cursor.are_type_arguments();
            failed = std::mem::take(&mut cursor.failed);
            found.then(|| cursor.end())
        })?;
        if !failed.is_empty() {
            self.comparisons = failed;
        }
        Ok(found)
    }

    /// Returns the end of the type arguments behind `?.`, before a parenthesis.
    pub(crate) fn optional_type_arguments(&mut self, from: u32) -> Result<u32> {
        self.read(from, |cursor| {
            let found = cursor.are_type_arguments();
            if found && cursor.is(T::LParen) { Ok(()) } else { Err(cursor.expected("`(`")) }
        })
    }

    /// Returns the end of the declaration of types that begins with the word before, if it does.
    pub(crate) fn declaration(&mut self, from: u32, keyword: T) -> Result<Option<u32>> {
        self.possibly(from, |cursor| match keyword {
            T::Type => cursor.alias(),
            T::Interface => cursor.interface(),
            T::Import => cursor.type_import(),
            T::Export => cursor.type_export(),
            _ => cursor.ambient(),
        })
    }

    /// Returns the end of the rest of a parameter `this: T`, with its comma.
    pub(crate) fn this_parameter(&mut self, from: u32) -> Result<u32> {
        self.read(from, |cursor| {
            cursor.annotation()?;
            if cursor.eat(T::Comma) || cursor.is(T::RParen) { Ok(()) } else { Err(cursor.expected("`,` or `)`")) }
        })
    }

    /// Returns the token behind an offset, and whether it is on the same line.
    pub(crate) fn next(&mut self, from: u32) -> (Option<T>, bool) {
        let cursor = Cursor::new(self.source, from, self.budget);
        self.budget = cursor.budget();
        (cursor.next, !cursor.newline)
    }

    /// Whether the function of this name is declared behind an offset.
    pub(crate) fn declares_function(&mut self, from: u32, name: &str) -> Result<bool> {
        let found = self.possible(from, |cursor| {
            cursor.eat(T::Semicolon);
            _ = cursor.eat(T::Export) && cursor.eat(T::Default);
            cursor.eat(T::AsyncWord);
            let is_function = cursor.eat(T::Function);
            cursor.eat(T::Star);
            (is_function && cursor.text() == name).then_some(())
        })?;
        Ok(found.is_some())
    }

    fn read(&mut self, from: u32, read: impl FnOnce(&mut Cursor<'s>) -> Result<()>) -> Result<u32> {
        let mut cursor = Cursor::new(self.source, from, self.budget);
        let found = read(&mut cursor);
        self.budget = cursor.budget();
        found.map(|()| cursor.end())
    }

    /// Returns the end of an optional part, and an error where it is there and is wrong.
    fn possibly(&mut self, from: u32, read: impl FnOnce(&mut Cursor<'s>) -> Result<bool>) -> Result<Option<u32>> {
        let mut cursor = Cursor::new(self.source, from, self.budget);
        let found = read(&mut cursor);
        self.budget = cursor.budget();
        Ok(found?.then(|| cursor.end()))
    }

    /// Reads an optional part; an error only if the lookahead ends before it is decided.
    fn possible<R>(&mut self, from: u32, read: impl FnOnce(&mut Cursor<'s>) -> Option<R>) -> Result<Option<R>> {
        let mut cursor = Cursor::new(self.source, from, self.budget);
        let found = read(&mut cursor);
        self.budget = cursor.budget();
        if self.budget == 0 {
            return Err(Box::new(cursor::too_complex(Span::new(from, from))));
        }
        Ok(found)
    }
}

impl Cursor<'_> {
    /// Reads a type, or `const`.
    fn asserted(&mut self) -> Result<()> {
        if self.eat(T::Const) { Ok(()) } else { self.a_type().map(|_| ()) }
    }

    fn angle_assertion(&mut self) -> Result<()> {
        self.expect(T::Less, "`<`")?;
        self.asserted()?;
        self.close_angle()
    }

    fn are_parameters(&mut self) -> bool {
        self.eat(T::Less)
            && (self.is_name() || self.is(T::Const))
            && self.type_parameters().is_ok()
            && self.is(T::LParen)
    }

    fn are_type_arguments(&mut self) -> bool {
        let found = self.open_angle() && self.types().is_ok() && self.eat(T::Greater);
        found && !self.is_property() && self.may_follow_type_arguments()
    }

    /// Whether a property is read here; type arguments without a call have none.
    fn is_property(&mut self) -> bool {
        self.is(T::Dot)
            || self.is(T::QuestionDot)
                && self.looks(|ahead| {
                    ahead.advance();
                    ahead.is_any_word()
                })
    }

    /// Whether the next token makes `a<b>` no comparison: it calls, or no operand begins with it.
    fn may_follow_type_arguments(&self) -> bool {
        use T::*;
        match self.next {
            Some(LParen | Backtick) => true,
            Some(Less | Greater | GreaterEqual | ShiftRight | ShiftRightUnsigned | Plus | Minus) => false,
            Some(CompoundAssign) if self.text().starts_with('>') => false,
            _ if self.newline => true,
            Some(
                Tilde | Bang | Increment | Decrement | SlashAssign | LBracket | LBrace | Function | Class | New
                | Delete | Typeof | Void | Await | Yield | Let | This | Super | Null | True | False | Number | BigInt
                | String | Import,
            ) => false,
            Some(As | Satisfies) => true,
            Some(Reserved) => matches!(self.text(), "with" | "debugger"),
            _ => !self.is_name(),
        }
    }
}
