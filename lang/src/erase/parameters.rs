//! Parameters: of types, of functions that are types, of signatures without a body.

use super::cursor::Cursor;
use crate::diagnostic::Result;
use crate::token::Token as T;

impl Cursor<'_> {
    /// `T, const U extends V = W>` behind a `<`
    pub(super) fn type_parameters(&mut self) -> Result<()> {
        loop {
            self.while_extending(false, Self::type_parameter)?;
            if !self.eat(T::Comma) || self.is(T::Greater) {
                return self.close_angle();
            }
        }
    }

    fn type_parameter(&mut self) -> Result<()> {
        while self.modifier("const") || self.modifier("in") || self.modifier("out") {}
        self.name()?;
        if self.eat(T::Extends) {
            self.a_type()?;
        }
        if self.eat(T::Assign) {
            self.a_type()?;
        }
        Ok(())
    }

    /// `<T>(a: A): R`
    pub(super) fn signature(&mut self) -> Result<()> {
        self.signature_head()?;
        if self.eat(T::Colon) { self.return_type() } else { Ok(()) }
    }

    fn signature_head(&mut self) -> Result<()> {
        if self.is(T::Less) {
            self.advance();
            self.type_parameters()?;
        }
        self.expect(T::LParen, "`(`")?;
        self.list(T::RParen, "`)`", |cursor| cursor.while_extending(false, Self::parameter))
    }

    fn parameter(&mut self) -> Result<()> {
        if self.eat(T::This) {
            return self.annotation();
        }
        let rest = self.eat(T::Ellipsis);
        self.binding()?;
        self.eat(T::Question);
        self.annotation()?;
        let is_last = self.is(T::RParen)
            || self.is(T::Comma)
                && self.looks(|ahead| {
                    ahead.advance();
                    ahead.is(T::RParen)
                });
        if rest && !is_last {
            return Err(self.expected("`)`"));
        }
        Ok(())
    }

    /// Reads a name or a pattern. Nothing has a default where there is no body.
    fn binding(&mut self) -> Result<()> {
        match self.next {
            Some(T::LBracket) => self.nested(|cursor| {
                cursor.advance();
                while cursor.eat(T::Comma) {}
                cursor.list(T::RBracket, "`]`", |cursor| {
                    cursor.eat(T::Ellipsis);
                    cursor.binding()?;
                    // A hole is a comma of its own.
                    while cursor.is(T::Comma)
                        && cursor.looks(|ahead| {
                            ahead.advance();
                            ahead.is(T::Comma)
                        })
                    {
                        cursor.advance();
                    }
                    Ok(())
                })
            }),
            Some(T::LBrace) => self.nested(|cursor| {
                cursor.advance();
                cursor.list(T::RBrace, "`}`", |cursor| {
                    if cursor.eat(T::Ellipsis) {
                        return cursor.name();
                    }
                    let is_name = cursor.is_name();
                    cursor.key()?;
                    match cursor.next {
                        Some(T::Colon) => {
                            cursor.advance();
                            cursor.binding()
                        }
                        _ if is_name => Ok(()),
                        _ => Err(cursor.expected("`:`")),
                    }
                })
            }),
            _ => self.name(),
        }
    }

    /// Whether a function type or a constructor type begins here.
    pub(super) fn starts_function(&mut self) -> bool {
        match self.next {
            Some(T::Less | T::New) => true,
            Some(T::LParen) => self.looks(Self::starts_parameters),
            _ => {
                self.is_word("abstract")
                    && self.looks(|ahead| {
                        ahead.advance();
                        ahead.is(T::New)
                    })
            }
        }
    }

    /// Whether `(` opens parameters, and no type in parentheses.
    fn starts_parameters(&mut self) -> bool {
        self.advance();
        if matches!(self.next, Some(T::RParen | T::Ellipsis)) {
            return true;
        }
        if !self.eat(T::This) && self.binding().is_err() {
            return false;
        }
        match self.next {
            Some(T::Colon | T::Comma | T::Question | T::Assign) => true,
            Some(T::RParen) => {
                self.advance();
                self.is(T::Arrow)
            }
            _ => false,
        }
    }

    /// `abstract new <T>(a: A) => R`
    pub(super) fn function_type(&mut self) -> Result<()> {
        self.eat_word("abstract");
        self.eat(T::New);
        self.signature_head()?;
        self.expect(T::Arrow, "`=>`")?;
        self.nested(Self::return_type)
    }
}
