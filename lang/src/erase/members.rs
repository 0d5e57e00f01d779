//! Members in the braces of types: those of object types and interfaces, and mapped types.

use super::cursor::Cursor;
use crate::diagnostic::Result;
use crate::token::Token as T;

impl Cursor<'_> {
    /// `{ a: A; b(): B }` or `{ [K in T]: U }`
    pub(super) fn braces(&mut self) -> Result<()> {
        if self.looks(Self::starts_mapped) {
            return self.mapped();
        }
        self.members()
    }

    /// `{ a: A; b(): B }`
    pub(super) fn members(&mut self) -> Result<()> {
        self.expect(T::LBrace, "`{`")?;
        while !self.eat(T::RBrace) {
            self.nested(Self::member)?;
            if !self.eat(T::Comma) {
                self.semicolon()?;
            }
        }
        Ok(())
    }

    fn member(&mut self) -> Result<()> {
        let is_constructor = self.is(T::New)
            && self.looks(|ahead| {
                ahead.advance();
                matches!(ahead.next, Some(T::LParen | T::Less))
            });
        if is_constructor {
            self.advance();
        }
        if matches!(self.next, Some(T::LParen | T::Less)) {
            return self.signature();
        }
        self.modifier("readonly");
        if self.accessor() {
            self.key()?;
            return self.signature();
        }
        if self.is(T::LBracket) && self.looks(Self::starts_index) {
            return self.index();
        }
        self.key()?;
        self.eat(T::Question);
        if matches!(self.next, Some(T::LParen | T::Less)) { self.signature() } else { self.annotation() }
    }

    /// Skips a word before a key, unless it is the key.
    pub(super) fn modifier(&mut self, word: &str) -> bool {
        self.is_any_word()
            && self.text() == word
            && self.attempt(|ahead| {
                ahead.advance();
                !ahead.newline && (ahead.starts_key() || matches!(ahead.next, Some(T::Star)))
            })
    }

    /// Skips `get` or `set` before a key.
    pub(super) fn accessor(&mut self) -> bool {
        (self.is_word("get") || self.is_word("set"))
            && self.attempt(|ahead| {
                ahead.advance();
                ahead.starts_key()
            })
    }

    fn starts_key(&self) -> bool {
        self.is_any_word()
            || matches!(self.next, Some(T::LBracket | T::String | T::Number | T::BigInt))
            || self.is_private_name()
    }

    pub(super) fn is_private_name(&self) -> bool {
        self.is(T::Reserved) && self.text().starts_with('#')
    }

    /// Reads the name of a member. Only names and literals stand in brackets: all else is no type.
    pub(super) fn key(&mut self) -> Result<()> {
        match self.next {
            Some(T::String | T::Number | T::BigInt) => self.advance(),
            Some(T::LBracket) => {
                self.advance();
                self.computed_key()?;
                self.expect(T::RBracket, "`]`")?;
            }
            _ => self.any_word()?,
        }
        Ok(())
    }

    fn computed_key(&mut self) -> Result<()> {
        match self.next {
            Some(T::String | T::Number | T::BigInt) => {
                self.advance();
                Ok(())
            }
            Some(T::Minus | T::Plus) => {
                self.advance();
                self.expect(T::Number, "a number")
            }
            Some(T::Backtick) => match self.template_text()? {
                true => Err(self.expected("a name")),
                false => Ok(()),
            },
            _ if self.is_name() => self.qualified_name(),
            _ => Err(self.expected("a name")),
        }
    }

    /// `: T`, if it is there.
    pub(super) fn annotation(&mut self) -> Result<()> {
        if self.eat(T::Colon) { self.while_extending(false, Self::a_type).map(|_| ()) } else { Ok(()) }
    }

    pub(super) fn starts_index(&mut self) -> bool {
        self.advance();
        let is_name = self.is_name();
        self.advance();
        is_name && self.is(T::Colon)
    }

    /// `[key: K]: T`
    pub(super) fn index(&mut self) -> Result<()> {
        self.advance();
        self.name()?;
        self.annotation()?;
        self.expect(T::RBracket, "`]`")?;
        if !self.is(T::Colon) {
            return Err(self.expected("`:`"));
        }
        self.annotation()
    }

    fn starts_mapped(&mut self) -> bool {
        self.advance();
        if self.eat(T::Plus) || self.eat(T::Minus) {
            return self.is_word("readonly");
        }
        self.eat_word("readonly");
        self.eat(T::LBracket) && self.name().is_ok() && self.is(T::In)
    }

    /// `{ +readonly [K in T as U]-?: V }`
    fn mapped(&mut self) -> Result<()> {
        self.advance();
        if self.eat(T::Plus) || self.eat(T::Minus) || self.is_word("readonly") {
            self.advance();
        }
        self.expect(T::LBracket, "`[`")?;
        self.name()?;
        self.expect(T::In, "`in`")?;
        self.while_extending(false, Self::a_type)?;
        if self.eat(T::As) {
            self.while_extending(false, Self::a_type)?;
        }
        self.expect(T::RBracket, "`]`")?;
        if self.eat(T::Plus) || self.eat(T::Minus) {
            self.expect(T::Question, "`?`")?;
        } else {
            self.eat(T::Question);
        }
        self.annotation()?;
        self.semicolon()?;
        self.expect(T::RBrace, "`}`")
    }
}
