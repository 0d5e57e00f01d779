//! Constant expressions: values in declarations that have no other code.

use super::cursor::Cursor;
use crate::diagnostic::Result;
use crate::token::Token as T;

impl Cursor<'_> {
    /// `= value`, if it is there.
    pub(super) fn initializer(&mut self) -> Result<()> {
        if self.eat(T::Assign) { self.constant() } else { Ok(()) }
    }

    /// Reads operands with operators between them. Precedence makes no difference here.
    fn constant(&mut self) -> Result<()> {
        use T::*;
        loop {
            while matches!(self.next, Some(Plus | Minus | Tilde)) {
                self.advance();
            }
            self.nested(Self::constant_operand)?;
            match self.next {
                Some(
                    Plus | Minus | Star | StarStar | Slash | Percent | Ampersand | Pipe | Caret | ShiftLeft
                    | ShiftRight | ShiftRightUnsigned,
                ) => self.advance(),
                _ => return Ok(()),
            }
        }
    }

    fn constant_operand(&mut self) -> Result<()> {
        match self.next {
            Some(T::Number | T::BigInt | T::String | T::True | T::False | T::Null) => self.advance(),
            Some(T::LParen) => {
                self.advance();
                self.constant()?;
                self.expect(T::RParen, "`)`")?;
            }
            Some(T::Backtick) => {
                while self.template_text()? {
                    self.constant()?;
                    if !self.is(T::RBrace) {
                        return Err(self.expected("`}`"));
                    }
                }
            }
            _ if self.is_name() => {
                self.qualified_name()?;
                while self.eat(T::LBracket) {
                    self.expect(T::String, "a string")?;
                    self.expect(T::RBracket, "`]`")?;
                }
            }
            _ => return Err(self.expected("a constant")),
        }
        Ok(())
    }
}
