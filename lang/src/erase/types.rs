//! Types, from loose to tight: conditional types, unions, operators, arrays, operands.

use super::cursor::Cursor;
use crate::diagnostic::Result;
use crate::token::Token as T;

/// Types that have no arguments, so that `x as number < 2` compares.
const KEYWORDS: [&str; 10] =
    ["any", "bigint", "boolean", "never", "number", "object", "string", "symbol", "undefined", "unknown"];

/// The shape of a type: in a tuple, `?` may stand behind some shapes only.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Shape {
    /// An operand, or an array of them.
    Postfix,
    Other,
}

impl Cursor<'_> {
    pub(super) fn a_type(&mut self) -> Result<Shape> {
        self.nested(|cursor| {
            // The last branch of a conditional type may be one again: a chain of them is no deeper.
            let mut shape = None;
            loop {
                if cursor.starts_function() {
                    cursor.function_type()?;
                    return Ok(Shape::Other);
                }
                let found = cursor.union()?;
                if cursor.extending || cursor.newline || !cursor.eat(T::Extends) {
                    return Ok(shape.unwrap_or(found));
                }
                cursor.while_extending(true, Self::a_type)?;
                cursor.expect(T::Question, "`?`")?;
                cursor.a_type()?;
                cursor.expect(T::Colon, "`:`")?;
                shape = Some(Shape::Other);
            }
        })
    }

    /// Reads a type, or a predicate of a parameter.
    pub(super) fn return_type(&mut self) -> Result<()> {
        self.while_extending(false, |cursor| {
            if cursor.is_word("asserts")
                && cursor.attempt(|ahead| {
                    ahead.advance();
                    !ahead.newline && (ahead.is(T::This) || ahead.is_name() && !ahead.is_word("is"))
                })
            {
                cursor.advance();
                if !cursor.eat_word("is") {
                    return Ok(());
                }
            } else {
                _ = (cursor.is(T::This) || cursor.is_name())
                    && cursor.attempt(|ahead| {
                        ahead.advance();
                        !ahead.newline && ahead.eat_word("is")
                    });
            }
            cursor.a_type().map(|_| ())
        })
    }

    fn union(&mut self) -> Result<Shape> {
        let mut shape = self.operands(T::Pipe, Self::intersection)?;
        while self.eat(T::Pipe) {
            self.no_function()?;
            self.intersection()?;
            shape = Shape::Other;
        }
        Ok(shape)
    }

    fn intersection(&mut self) -> Result<Shape> {
        let mut shape = self.operands(T::Ampersand, Self::operator)?;
        while self.eat(T::Ampersand) {
            self.no_function()?;
            self.operator()?;
            shape = Shape::Other;
        }
        Ok(shape)
    }

    /// Reads the first operand, which may have the operator before it.
    fn operands(&mut self, operator: T, operand: fn(&mut Self) -> Result<Shape>) -> Result<Shape> {
        if !self.eat(operator) {
            return operand(self);
        }
        self.no_function()?;
        operand(self)?;
        Ok(Shape::Other)
    }

    fn no_function(&mut self) -> Result<()> {
        if self.starts_function() {
            return Err(self.error("a function type in a union needs parentheses", "write `A | (() => B)`"));
        }
        Ok(())
    }

    /// `keyof T`, `infer T`, or an operand.
    fn operator(&mut self) -> Result<Shape> {
        if !self.is(T::Ident) {
            return self.while_extending(false, Self::postfix);
        }
        match self.text() {
            "keyof" | "unique" | "readonly" => {
                self.advance();
                self.nested(Self::operator)?;
                Ok(Shape::Other)
            }
            "infer" => {
                self.advance();
                self.name()?;
                if self.is(T::Extends) {
                    self.attempt(|ahead| {
                        ahead.advance();
                        ahead.while_extending(true, Self::a_type).is_ok() && (ahead.extending || !ahead.is(T::Question))
                    });
                }
                Ok(Shape::Other)
            }
            _ => self.while_extending(false, Self::postfix),
        }
    }

    fn postfix(&mut self) -> Result<Shape> {
        self.operand()?;
        while !self.newline && self.eat(T::LBracket) {
            if !self.is(T::RBracket) {
                self.a_type()?;
            }
            self.expect(T::RBracket, "`]`")?;
        }
        Ok(Shape::Postfix)
    }

    fn operand(&mut self) -> Result<()> {
        match self.next {
            Some(T::String | T::Number | T::BigInt | T::True | T::False | T::Null | T::Void | T::This) => {
                self.advance();
                Ok(())
            }
            Some(T::Minus) => {
                self.advance();
                if !matches!(self.next, Some(T::Number | T::BigInt)) {
                    return Err(self.expected("a number"));
                }
                self.advance();
                Ok(())
            }
            Some(T::Backtick) => self.template(),
            Some(T::LBrace) => self.braces(),
            Some(T::LBracket) => self.tuple(),
            Some(T::LParen) => {
                self.advance();
                self.a_type()?;
                self.expect(T::RParen, "`)`")
            }
            Some(T::Typeof) => {
                self.advance();
                if self.is(T::Import) { self.import_type() } else { self.query() }
            }
            Some(T::Import) => self.import_type(),
            _ if self.is_name() => {
                let is_keyword = self.is(T::Ident) && KEYWORDS.contains(&self.text());
                self.advance();
                if is_keyword && !self.is(T::Dot) {
                    return Ok(());
                }
                self.rest_of_name()?;
                self.arguments_on_line()
            }
            _ => Err(self.expected("a type")),
        }
    }

    /// `x.y<T>` behind `typeof`
    fn query(&mut self) -> Result<()> {
        if !(self.is_name() || self.is(T::This)) {
            return Err(self.expected("a name"));
        }
        self.qualified_name()?;
        self.arguments_on_line()
    }

    /// `a.b.c`
    pub(super) fn qualified_name(&mut self) -> Result<()> {
        self.any_word()?;
        self.rest_of_name()
    }

    fn rest_of_name(&mut self) -> Result<()> {
        while self.eat(T::Dot) {
            self.any_word()?;
        }
        Ok(())
    }

    /// Reads type arguments, if there are any on this line.
    pub(super) fn arguments_on_line(&mut self) -> Result<()> {
        let start = self.start();
        if self.newline || !self.open_angle() {
            return Ok(());
        }
        let found = self.types().and_then(|()| self.close_angle());
        if found.is_err() {
            self.failed.push(start);
        }
        found
    }

    /// Reads one type or several.
    pub(super) fn types(&mut self) -> Result<()> {
        loop {
            self.while_extending(false, Self::a_type)?;
            if !self.eat(T::Comma) {
                return Ok(());
            }
        }
    }

    /// `import('module', { with: { … } }).a.b<T>`
    fn import_type(&mut self) -> Result<()> {
        self.advance();
        self.expect(T::LParen, "`(`")?;
        self.expect(T::String, "a string")?;
        if self.eat(T::Comma) {
            self.expect(T::LBrace, "`{`")?;
            if !matches!(self.text(), "with" | "assert") {
                return Err(self.expected("`with`"));
            }
            self.advance();
            self.expect(T::Colon, "`:`")?;
            self.import_attributes()?;
            self.eat(T::Comma);
            self.expect(T::RBrace, "`}`")?;
        }
        self.expect(T::RParen, "`)`")?;
        if self.eat(T::Dot) {
            self.qualified_name()?;
        }
        self.arguments_on_line()
    }

    /// `{ name: 'value' }`
    pub(super) fn import_attributes(&mut self) -> Result<()> {
        self.expect(T::LBrace, "`{`")?;
        self.list(T::RBrace, "`}`", |cursor| {
            if !cursor.eat(T::String) {
                cursor.any_word()?;
            }
            cursor.expect(T::Colon, "`:`")?;
            cursor.expect(T::String, "a string")
        })
    }

    /// `` `a${T}b` ``
    pub(super) fn template(&mut self) -> Result<()> {
        while self.template_text()? {
            self.while_extending(false, Self::a_type)?;
            if !self.is(T::RBrace) {
                return Err(self.expected("`}`"));
            }
        }
        Ok(())
    }

    /// Whether the name of an element may begin here: of the reserved words only those with which a type may begin.
    fn may_name_element(&self) -> bool {
        use T::*;
        self.is_name()
            || matches!(
                self.next,
                Some(New | Null | This | True | False | Typeof | Void | Import | Function | Let | Yield)
            )
    }

    /// `[A, b?: B, ...C[]]`
    fn tuple(&mut self) -> Result<()> {
        self.advance();
        self.list(T::RBracket, "`]`", |cursor| {
            let rest = cursor.eat(T::Ellipsis);
            let is_named = (rest && cursor.is_any_word() || cursor.may_name_element())
                && cursor.looks(|ahead| {
                    ahead.advance();
                    ahead.eat(T::Question);
                    ahead.is(T::Colon)
                });
            if is_named {
                cursor.advance();
                cursor.eat(T::Question);
                cursor.advance();
            }
            let shape = cursor.while_extending(false, Self::a_type)?;
            if !rest && !is_named && shape == Shape::Postfix && !cursor.newline {
                cursor.eat(T::Question);
            }
            Ok(())
        })
    }
}
