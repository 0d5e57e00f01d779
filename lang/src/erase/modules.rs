//! Imports and exports of types.

use super::cursor::Cursor;
use crate::diagnostic::Result;
use crate::token::Token as T;

impl Cursor<'_> {
    /// Reads the rest of `import type … from '…'`. Returns false where it imports values.
    pub(super) fn type_import(&mut self) -> Result<bool> {
        if self.is(T::LBrace) {
            // `import {} from '…'` runs the module.
            let has_some = self.looks(|ahead| {
                ahead.advance();
                !ahead.is(T::RBrace)
            });
            return Ok(has_some && self.attempt(|ahead| ahead.specifiers(true) == Ok(true) && ahead.origin().is_ok()));
        }
        if !self.eat(T::Type) || self.is_word("from") && !self.looks(Self::names_from) {
            return Ok(false);
        }
        if !(self.is_name() || matches!(self.next, Some(T::LBrace | T::Star))) {
            return Ok(false);
        }
        self.import()?;
        Ok(true)
    }

    /// Whether `from` is the name of an import.
    fn names_from(&mut self) -> bool {
        self.advance();
        self.is_word("from") || self.is(T::Assign)
    }

    /// `A from '…'`, `{ A } from '…'`, `* as A from '…'`, `A = b.C`; also `'…'`
    pub(super) fn import(&mut self) -> Result<()> {
        if self.is(T::String) {
            return self.module();
        }
        self.eat_type_modifier();
        if self.is_name() {
            self.advance();
            if self.eat(T::Assign) {
                return self.alias_of_module();
            }
            if !self.eat(T::Comma) {
                return self.origin();
            }
        }
        if self.eat(T::Star) {
            self.expect(T::As, "`as`")?;
            self.name()?;
        } else {
            self.specifiers(true)?;
        }
        self.origin()
    }

    fn eat_type_modifier(&mut self) {
        if self.is(T::Type) {
            self.attempt(|ahead| {
                ahead.advance();
                if ahead.is_word("from") {
                    ahead.looks(Self::names_from)
                } else {
                    ahead.is_name() || matches!(ahead.next, Some(T::LBrace | T::Star))
                }
            });
        }
    }

    /// `require('…');` or `a.b;`
    fn alias_of_module(&mut self) -> Result<()> {
        let is_require = self.is_word("require");
        self.qualified_name()?;
        if is_require && self.eat(T::LParen) {
            self.expect(T::String, "a string")?;
            self.expect(T::RParen, "`)`")?;
        }
        self.semicolon()
    }

    /// Reads the rest of `export type …`, and of other exports that are no values. Returns false for values.
    pub(super) fn type_export(&mut self) -> Result<bool> {
        match self.next {
            Some(T::Type) => {
                self.advance();
                if matches!(self.next, Some(T::LBrace | T::Star)) {
                    return self.exports();
                }
                self.alias()
            }
            Some(T::Interface) => {
                self.advance();
                self.interface()
            }
            Some(T::Ident) if self.is_word("declare") => {
                self.advance();
                self.ambient()
            }
            Some(T::Default) => {
                self.advance();
                if self.eat(T::Interface) { self.interface() } else { Ok(false) }
            }
            // `export {}` makes a file a module and nothing else.
            Some(T::LBrace) => {
                Ok(self.attempt(|ahead| ahead.specifiers(false) == Ok(true) && ahead.end_of_exports().is_ok()))
            }
            _ => Ok(false),
        }
    }

    /// `type? { A } from '…'` or `* from '…'`, if it is one of them.
    pub(super) fn exports(&mut self) -> Result<bool> {
        if self.is(T::Type)
            && !self.attempt(|ahead| {
                ahead.advance();
                matches!(ahead.next, Some(T::LBrace | T::Star))
            })
        {
            return Ok(false);
        }
        if self.eat(T::Star) {
            if self.eat(T::As) && !self.eat(T::String) {
                self.any_word()?;
            }
            self.origin()?;
            return Ok(true);
        }
        if !self.is(T::LBrace) {
            return Ok(false);
        }
        self.specifiers(false)?;
        self.end_of_exports()?;
        Ok(true)
    }

    fn end_of_exports(&mut self) -> Result<()> {
        if self.is_word("from") { self.origin() } else { self.semicolon() }
    }

    /// `from '…';`
    fn origin(&mut self) -> Result<()> {
        if !self.eat_word("from") {
            return Err(self.expected("`from`"));
        }
        self.module()
    }

    fn module(&mut self) -> Result<()> {
        self.expect(T::String, "a string")?;
        if !self.newline && matches!(self.text(), "with" | "assert") {
            self.advance();
            self.import_attributes()?;
        }
        self.semicolon()
    }

    /// `{ A, type B as C }`; returns whether all of them are types.
    fn specifiers(&mut self, are_imports: bool) -> Result<bool> {
        let mut are_types = true;
        self.expect(T::LBrace, "`{`")?;
        self.list(T::RBrace, "`}`", |cursor| {
            let is_type = cursor.is(T::Type) && cursor.looks(Self::modifies_specifier);
            are_types &= is_type;
            if is_type {
                cursor.advance();
            }
            let is_renamed = cursor.looks(|ahead| {
                ahead.advance();
                ahead.is(T::As)
            });
            if is_renamed {
                cursor.module_name()?;
                cursor.advance();
            }
            if are_imports { cursor.name() } else { cursor.module_name() }
        })?;
        Ok(are_types)
    }

    fn module_name(&mut self) -> Result<()> {
        if self.eat(T::String) { Ok(()) } else { self.any_word() }
    }

    /// Whether `type` is a modifier: `type A`, `type as`, `type as as A`, and not `type`, `type as A`.
    fn modifies_specifier(&mut self) -> bool {
        self.advance();
        if !self.eat(T::As) {
            return self.is_any_word() || self.is(T::String);
        }
        if self.eat(T::As) { self.is_any_word() } else { !self.is_any_word() }
    }
}
