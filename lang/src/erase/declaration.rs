//! Declarations of types.

use super::cursor::Cursor;
use crate::diagnostic::Result;
use crate::token::Token as T;

impl Cursor<'_> {
    /// Reads the rest of `type T<U> = V;`. Returns false where `type` is a variable.
    pub(super) fn alias(&mut self) -> Result<bool> {
        if self.newline || !self.is_name() {
            return Ok(false);
        }
        self.advance();
        self.generic()?;
        self.expect(T::Assign, "`=`")?;
        self.a_type()?;
        self.semicolon()?;
        Ok(true)
    }

    /// Reads the rest of `interface T<U> extends V { … }`. Returns false where `interface` is a variable.
    pub(super) fn interface(&mut self) -> Result<bool> {
        if self.newline || !self.is_name() {
            return Ok(false);
        }
        self.advance();
        self.generic()?;
        if self.eat(T::Extends) {
            self.heritage()?;
        }
        self.members()?;
        Ok(true)
    }

    /// Reads type parameters, if there are any. The list may be empty here.
    pub(super) fn generic(&mut self) -> Result<()> {
        if !self.eat(T::Less) || self.eat(T::Greater) { Ok(()) } else { self.type_parameters() }
    }

    /// `A, b.C<D>`
    pub(super) fn heritage(&mut self) -> Result<()> {
        loop {
            if !self.is_name() {
                return Err(self.expected("a name"));
            }
            self.qualified_name()?;
            if self.open_angle() {
                self.types()?;
                self.close_angle()?;
            }
            if !self.eat(T::Comma) {
                return Ok(());
            }
        }
    }
}
