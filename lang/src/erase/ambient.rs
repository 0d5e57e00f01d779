//! Declarations of what exists elsewhere: `declare`, and what stands in the braces of such classes and namespaces.

use super::cursor::Cursor;
use crate::diagnostic::Result;
use crate::token::Token as T;

/// Words before the members of classes.
const MODIFIERS: [&str; 8] =
    ["public", "private", "protected", "static", "abstract", "override", "readonly", "accessor"];

impl Cursor<'_> {
    /// Reads the rest of `declare …`. Returns false where `declare` is a variable.
    pub(super) fn ambient(&mut self) -> Result<bool> {
        if self.newline { Ok(false) } else { self.nested(Self::ambient_declaration) }
    }

    fn ambient_declaration(&mut self) -> Result<bool> {
        match self.next {
            Some(T::Type) => {
                self.advance();
                return self.alias();
            }
            Some(T::Interface) => {
                self.advance();
                return self.interface();
            }
            Some(T::Const) => {
                self.advance();
                if self.is(T::Enum) { self.enumeration()? } else { self.variables()? }
            }
            Some(T::Let | T::Var) => {
                self.advance();
                self.variables()?;
            }
            Some(T::Function) => {
                self.advance();
                self.name()?;
                self.signature()?;
                // One on the next line too is its body.
                if self.is(T::LBrace) {
                    return Err(self.expected("`;`"));
                }
                self.semicolon()?;
            }
            Some(T::Class) => self.class()?,
            Some(T::Enum) => self.enumeration()?,
            Some(T::Ident) => return self.ambient_block(),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads an abstract class, a namespace, a module or `global`.
    fn ambient_block(&mut self) -> Result<bool> {
        let word = self.text();
        let begins = match word {
            "abstract" => self.followed_by(|ahead| ahead.is(T::Class)),
            "namespace" => self.followed_by(|ahead| ahead.is_name()),
            "module" => self.followed_by(|ahead| ahead.is_name() || ahead.is(T::String)),
            "global" => self.followed_by(|ahead| ahead.is(T::LBrace)),
            _ => false,
        };
        if !begins {
            return Ok(false);
        }
        self.advance();
        if word == "abstract" {
            self.class()?;
            return Ok(true);
        }
        if self.eat(T::String) && !self.is(T::LBrace) {
            self.semicolon()?;
            return Ok(true);
        }
        if self.is_name() {
            self.qualified_name()?;
        }
        self.expect(T::LBrace, "`{`")?;
        while !self.eat(T::RBrace) {
            self.nested(Self::ambient_item)?;
        }
        Ok(true)
    }

    /// Whether the token behind the next one is on its line and is this.
    fn followed_by(&mut self, is: impl FnOnce(&Self) -> bool) -> bool {
        self.looks(|ahead| {
            ahead.advance();
            !ahead.newline && is(ahead)
        })
    }

    /// Reads an item of a namespace or a module.
    fn ambient_item(&mut self) -> Result<()> {
        if self.eat(T::Semicolon) {
            return Ok(());
        }
        if self.is(T::Import) {
            self.advance();
            return self.import();
        }
        if self.eat(T::Export) {
            if self.is(T::Default) || self.is(T::Assign) {
                return self.default_export();
            }
            if self.eat(T::Import) {
                return self.import();
            }
            if self.exports()? {
                return Ok(());
            }
        }
        if self.is_word("declare") {
            self.advance();
        }
        if self.ambient_declaration()? { Ok(()) } else { Err(self.expected("a declaration")) }
    }

    /// `default …`, or `= name`
    fn default_export(&mut self) -> Result<()> {
        let is_default = self.is(T::Default);
        self.advance();
        if is_default && matches!(self.next, Some(T::Function | T::Class | T::Interface)) {
            return self.ambient_declaration().map(|_| ());
        }
        if is_default && self.is_word("abstract") && self.followed_by(|ahead| ahead.is(T::Class)) {
            self.advance();
            return self.class();
        }
        self.qualified_name()?;
        self.semicolon()
    }

    /// `a: A, b: B;`
    fn variables(&mut self) -> Result<()> {
        loop {
            self.name()?;
            self.annotation()?;
            self.initializer()?;
            if !self.eat(T::Comma) {
                return self.semicolon();
            }
        }
    }

    fn enumeration(&mut self) -> Result<()> {
        self.advance();
        self.name()?;
        self.expect(T::LBrace, "`{`")?;
        self.list(T::RBrace, "`}`", |cursor| {
            cursor.key()?;
            cursor.initializer()
        })
    }

    /// `class A<T> extends B implements C { … }`
    fn class(&mut self) -> Result<()> {
        self.advance();
        if self.is_name() {
            self.advance();
        }
        self.generic()?;
        if self.eat(T::Extends) {
            self.heritage()?;
        }
        if self.text() == "implements" {
            self.advance();
            self.heritage()?;
        }
        self.expect(T::LBrace, "`{`")?;
        while !self.eat(T::RBrace) {
            if !self.eat(T::Semicolon) {
                self.nested(Self::class_member)?;
            }
        }
        Ok(())
    }

    fn class_member(&mut self) -> Result<()> {
        while MODIFIERS.iter().any(|word| self.modifier(word)) {}
        if self.accessor() {
            self.class_key()?;
            self.signature()?;
            return self.semicolon();
        }
        if self.is(T::LBracket) && self.looks(Self::starts_index) {
            self.index()?;
            return self.semicolon();
        }
        self.class_key()?;
        if !self.eat(T::Question) {
            self.eat(T::Bang);
        }
        if matches!(self.next, Some(T::LParen | T::Less)) {
            self.signature()?;
        } else {
            self.annotation()?;
            self.initializer()?;
        }
        self.semicolon()
    }

    fn class_key(&mut self) -> Result<()> {
        if !self.is_private_name() {
            return self.key();
        }
        self.advance();
        Ok(())
    }
}
