//! Skips TypeScript types, so that the grammar never sees one.
//!
//! The recogniser finds where a type ends; it does not check the type.

use crate::diagnostic::Diagnostic;
use crate::token::{Chunk, Token};
use logos::Logos;

/// Most tokens that are read ahead to find out whether something is a type: a script full of `a<` must not
/// take quadratic time.
const LOOKAHEAD: usize = 500;

/// The same after many tokens were read ahead without finding a type.
const SHORT_LOOKAHEAD: usize = 16;

/// Deepest nesting of types: skipping them recurses.
const MAX_DEPTH: u32 = 64;

type Raw<'s> = logos::Lexer<'s, Token>;

fn peek(raw: &Raw<'_>) -> Option<Token> {
    raw.clone().next()?.ok()
}

/// Whether the next token is a name with this text.
fn peeks_word(raw: &Raw<'_>, word: &str) -> bool {
    let mut ahead = raw.clone();
    ahead.next() == Some(Ok(Token::Ident)) && ahead.slice() == word
}

fn eat(raw: &mut Raw<'_>, token: Token) -> bool {
    let found = peek(raw) == Some(token);
    if found {
        raw.next();
    }
    found
}

fn error(raw: &Raw<'_>) -> Diagnostic {
    Diagnostic::syntax("expected a type", raw.span())
}

/// Skips one type.
pub(crate) fn skip_type(raw: &mut Raw<'_>) -> Result<(), Diagnostic> {
    nested(raw, 0)
}

fn nested(raw: &mut Raw<'_>, depth: u32) -> Result<(), Diagnostic> {
    if depth > MAX_DEPTH {
        return Err(too_deep(raw));
    }
    if !eat(raw, Token::Pipe) {
        eat(raw, Token::Ampersand);
    }
    loop {
        operand(raw, depth)?;
        while !newline_next(raw) && eat(raw, Token::LBracket) {
            balanced(raw, 1, &mut { usize::MAX })?;
        }
        if eat(raw, Token::Extends) {
            nested(raw, depth + 1)?;
            for separator in [Token::Question, Token::Colon] {
                if !eat(raw, separator) {
                    return Err(error(raw));
                }
                nested(raw, depth + 1)?;
            }
        }
        if !(eat(raw, Token::Pipe) || eat(raw, Token::Ampersand)) {
            return Ok(());
        }
    }
}

fn too_deep(raw: &Raw<'_>) -> Diagnostic {
    Diagnostic::syntax("this type is nested too deeply", raw.span())
}

fn operand(raw: &mut Raw<'_>, depth: u32) -> Result<(), Diagnostic> {
    if depth > MAX_DEPTH {
        return Err(too_deep(raw));
    }
    use Token as T;
    match raw.next().and_then(Result::ok) {
        Some(token @ (T::Ident | T::Typeof | T::New | T::Minus))
            if (token != T::Ident || is_type_operator(raw.slice())) && starts_operand(raw) =>
        {
            operand(raw, depth + 1)
        }
        // `import('module').Type`
        Some(T::Import) if eat(raw, T::LParen) => {
            balanced(raw, 1, &mut { usize::MAX })?;
            qualified(raw, depth)
        }
        Some(T::Ident | T::Null | T::Void | T::This) => qualified(raw, depth),
        Some(token) if token.is_contextual() => qualified(raw, depth),
        Some(T::Const) => Ok(()), // `as const`
        Some(T::Backtick) => template(raw),
        Some(T::String | T::Number | T::BigInt | T::True | T::False) => Ok(()),
        Some(T::LBrace | T::LBracket) => balanced(raw, 1, &mut { usize::MAX }),
        Some(T::LParen) => {
            balanced(raw, 1, &mut { usize::MAX })?;
            if eat(raw, T::Arrow) { nested(raw, depth + 1) } else { Ok(()) }
        }
        Some(T::Less) => {
            angles(raw, &mut { usize::MAX })?;
            operand(raw, depth + 1)
        }
        _ => Err(error(raw)),
    }
}

/// Whether a word before a type may be an operator on it.
fn is_type_operator(word: &str) -> bool {
    matches!(word, "asserts" | "keyof" | "readonly" | "infer" | "unique" | "abstract")
}

/// The rest of `a.b<T>`, or of `name is T`.
fn qualified(raw: &mut Raw<'_>, depth: u32) -> Result<(), Diagnostic> {
    while eat(raw, Token::Dot) {
        raw.next();
    }
    if eat(raw, Token::Less) {
        angles(raw, &mut { usize::MAX })
    } else if !newline_next(raw) && peeks_word(raw, "is") {
        raw.next();
        nested(raw, depth + 1)
    } else {
        Ok(())
    }
}

/// Whether the word before is an operator on the type that comes next, and no name itself.
fn starts_operand(raw: &Raw<'_>) -> bool {
    use Token as T;
    let next = peek(raw);
    let operand = next.is_some_and(T::is_contextual)
        || matches!(
            next,
            Some(
                T::Ident
                    | T::This
                    | T::Import
                    | T::LBrace
                    | T::LBracket
                    | T::LParen
                    | T::Less
                    | T::New
                    | T::Minus
                    | T::Backtick
                    | T::Typeof
                    | T::Null
                    | T::Void
                    | T::String
                    | T::Number
                    | T::BigInt
            )
        );
    operand && !newline_next(raw)
}

fn newline_next(raw: &Raw<'_>) -> bool {
    let mut ahead = raw.clone();
    ahead.next();
    ahead.extras.newline
}

/// Skips up to and including the bracket that closes the `depth` open ones.
fn balanced(raw: &mut Raw<'_>, mut depth: u32, budget: &mut usize) -> Result<(), Diagnostic> {
    use Token as T;
    while depth > 0 {
        spend(raw, budget)?;
        match raw.next() {
            Some(Ok(T::LParen | T::LBracket | T::LBrace)) => depth += 1,
            Some(Ok(T::RParen | T::RBracket | T::RBrace)) => depth -= 1,
            Some(Ok(T::Backtick)) => template(raw)?,
            Some(Ok(_)) => {}
            Some(Err(())) | None => return Err(error(raw)),
        }
    }
    raw.extras.newline = false;
    Ok(())
}

fn spend(raw: &Raw<'_>, budget: &mut usize) -> Result<(), Diagnostic> {
    *budget = budget.checked_sub(1).ok_or_else(|| error(raw))?;
    Ok(())
}

/// Skips a template literal type, whose backtick has been read.
fn template(raw: &mut Raw<'_>) -> Result<(), Diagnostic> {
    loop {
        let mut chunk = Chunk::lexer(raw.remainder());
        let end = chunk.by_ref().find(|piece| *piece != Ok(Chunk::Text));
        raw.bump(chunk.span().end);
        match end {
            Some(Ok(Chunk::Hole)) => balanced(raw, 1, &mut { usize::MAX })?,
            Some(Ok(Chunk::End)) => return Ok(()),
            _ => return Err(error(raw)),
        }
    }
}

/// Skips up to and including the `>` that closes an open `<`.
fn angles(raw: &mut Raw<'_>, budget: &mut usize) -> Result<(), Diagnostic> {
    use Token as T;
    let mut depth = 1_i32;
    while depth > 0 {
        spend(raw, budget)?;
        match raw.next() {
            Some(Ok(T::Less)) => depth += 1,
            Some(Ok(T::Greater)) => depth -= 1,
            // `let x: T<U>= value`
            Some(Ok(T::GreaterEqual)) if depth == 1 => {
                split(raw);
                depth = 0;
            }
            Some(Ok(T::Backtick)) => template(raw)?,
            Some(Ok(T::ShiftRight)) => depth -= 2,
            Some(Ok(T::ShiftRightUnsigned)) => depth -= 3,
            Some(Ok(T::LParen | T::LBracket | T::LBrace)) => balanced(raw, 1, budget)?,
            Some(Ok(token)) if token.is_contextual() || token.is_reserved() => {}
            Some(Ok(
                T::Ident
                | T::String
                | T::Number
                | T::BigInt
                | T::Minus
                | T::New
                | T::Null
                | T::Void
                | T::True
                | T::False
                | T::Typeof
                | T::Comma
                | T::Dot
                | T::Pipe
                | T::Ampersand
                | T::Question
                | T::Colon
                | T::Arrow
                | T::Assign
                | T::Const
                | T::In,
            )) => {}
            _ => return Err(error(raw)),
        }
    }
    if depth == 0 { Ok(()) } else { Err(error(raw)) }
}

/// Skips `T, U extends V>`, whose `<` has been read.
pub(crate) fn skip_type_parameters(raw: &mut Raw<'_>) -> Result<(), Diagnostic> {
    angles(raw, &mut { usize::MAX })
}

/// Continues behind the first character of the token that has just been read.
fn split(raw: &mut Raw<'_>) {
    let at = raw.span().start + 1;
    *raw = Token::lexer(raw.source());
    raw.bump(at);
}

/// Skips `T>` before a call, or where an expression ends; its `<` has been read. `false` leaves a
/// comparison where it is. `wasted` counts tokens that were read ahead without finding a type.
pub(crate) fn type_arguments(raw: &mut Raw<'_>, wasted: &mut usize) -> bool {
    let mut ahead = raw.clone();
    let patience = 4 * raw.span().end + 64 * LOOKAHEAD;
    let most = if *wasted < patience { LOOKAHEAD } else { SHORT_LOOKAHEAD };
    let mut left = most;
    let found = angles(&mut ahead, &mut left).is_ok() && follows_type_arguments(&ahead);
    if found {
        ahead.extras.newline = false;
        *raw = ahead;
    } else {
        *wasted += most - left;
    }
    found
}

fn follows_type_arguments(raw: &Raw<'_>) -> bool {
    use Token as T;
    match peek(raw) {
        None | Some(T::LParen | T::Backtick) => true,
        Some(T::RParen | T::RBracket | T::RBrace | T::Comma | T::Semicolon | T::Colon | T::Dot | T::QuestionDot) => {
            true
        }
        _ => newline_next(raw),
    }
}

/// Skips `type T = …` or `interface T { … }`; gives `false` and skips nothing where it is a
/// variable of that name.
pub(crate) fn declaration(raw: &mut Raw<'_>, keyword: Token) -> Result<bool, Diagnostic> {
    use Token as T;
    let mut ahead = raw.clone();
    ahead.extras.newline = false;
    let is_name = matches!(ahead.next(), Some(Ok(token)) if token == T::Ident || token.is_contextual());
    if !is_name || ahead.extras.newline {
        return Ok(false);
    }
    if eat(&mut ahead, T::Less) {
        angles(&mut ahead, &mut { usize::MAX })?;
    }
    if keyword == T::Type {
        if !eat(&mut ahead, T::Assign) {
            return Ok(false);
        }
        skip_type(&mut ahead)?;
    } else {
        if eat(&mut ahead, T::Extends) {
            skip_type(&mut ahead)?;
            while eat(&mut ahead, T::Comma) {
                skip_type(&mut ahead)?;
            }
        }
        if !eat(&mut ahead, T::LBrace) {
            return Err(error(&ahead));
        }
        balanced(&mut ahead, 1, &mut { usize::MAX })?;
    }
    Ok(end(raw, ahead))
}

/// Skips the declaration that has been read ahead.
fn end<'s>(raw: &mut Raw<'s>, mut ahead: Raw<'s>) -> bool {
    eat(&mut ahead, Token::Semicolon);
    ahead.extras.newline = true;
    *raw = ahead;
    true
}

/// Skips `declare …`, whose `declare` has been read; gives `false` and skips nothing where it is a
/// variable of that name.
pub(crate) fn ambient(raw: &mut Raw<'_>) -> Result<bool, Diagnostic> {
    use Token as T;
    let mut ahead = raw.clone();
    ahead.extras.newline = false;
    let first = ahead.next().and_then(Result::ok);
    if ahead.extras.newline {
        return Ok(false);
    }
    match first {
        Some(keyword @ (T::Type | T::Interface)) => {
            let found = declaration(&mut ahead, keyword)?;
            return Ok(found && end(raw, ahead));
        }
        Some(T::Function) => {
            ahead.next();
            signature(&mut ahead)?;
        }
        Some(T::Const) if peek(&ahead) != Some(T::Enum) => variables(&mut ahead)?,
        Some(T::Let | T::Var) => variables(&mut ahead)?,
        Some(token @ (T::Const | T::Class | T::Enum | T::Ident))
            if token != T::Ident || matches!(ahead.slice(), "abstract" | "namespace" | "module" | "global") =>
        {
            while !eat(&mut ahead, T::LBrace) {
                if matches!(peek(&ahead), Some(T::Semicolon) | None) {
                    return Ok(false);
                }
                ahead.next();
            }
            balanced(&mut ahead, 1, &mut { usize::MAX })?;
        }
        _ => return Ok(false),
    }
    Ok(end(raw, ahead))
}

/// `<T>(a: A): R`
fn signature(raw: &mut Raw<'_>) -> Result<(), Diagnostic> {
    if eat(raw, Token::Less) {
        angles(raw, &mut { usize::MAX })?;
    }
    if !eat(raw, Token::LParen) {
        return Err(error(raw));
    }
    balanced(raw, 1, &mut { usize::MAX })?;
    if eat(raw, Token::Colon) { skip_type(raw) } else { Ok(()) }
}

/// `a: A, b: B`
fn variables(raw: &mut Raw<'_>) -> Result<(), Diagnostic> {
    loop {
        raw.next();
        if eat(raw, Token::Colon) {
            skip_type(raw)?;
        }
        if !eat(raw, Token::Comma) {
            return Ok(());
        }
    }
}

/// Skips `import type … from '…'` and `export type { … }`, whose first word has been read; `false` leaves
/// other imports and exports.
pub(crate) fn type_module(raw: &mut Raw<'_>, keyword: Token) -> Result<bool, Diagnostic> {
    use Token as T;
    let mut ahead = raw.clone();
    let first = ahead.next().and_then(Result::ok);
    match (first, peek(&ahead)) {
        (Some(T::Type), Some(T::LBrace | T::Star)) => {}
        (Some(T::Type), _) if keyword == T::Import => {}
        (Some(word @ (T::Type | T::Interface)), _) => {
            return Ok(declaration(&mut ahead, word)? && end(raw, ahead));
        }
        (Some(T::Ident), _) if ahead.slice() == "declare" => return Ok(ambient(&mut ahead)? && end(raw, ahead)),
        // `export default interface T {}`
        (Some(T::Default), Some(T::Interface)) => {
            ahead.next();
            return Ok(declaration(&mut ahead, T::Interface)? && end(raw, ahead));
        }
        // `export {}` makes a file a module and nothing else.
        (Some(T::LBrace), Some(T::RBrace)) if keyword == T::Export => {
            ahead.next();
            return Ok(end(raw, ahead));
        }
        _ => return Ok(false),
    }
    // Longer than any such statement: the search must not be quadratic.
    for _ in 0..LOOKAHEAD {
        match ahead.next() {
            Some(Ok(T::String)) => return Ok(end(raw, ahead)),
            Some(Ok(T::RBrace)) if keyword == T::Export && !peeks_word(&ahead, "from") => {
                return Ok(end(raw, ahead));
            }
            Some(Ok(_)) => {}
            Some(Err(())) | None => return Ok(false),
        }
    }
    Ok(false)
}

/// Whether the `?` that has just been read makes a parameter optional.
pub(crate) fn ends_optional(raw: &Raw<'_>) -> bool {
    matches!(peek(raw), Some(Token::Comma | Token::RParen | Token::Colon))
}

/// Skips `T,` or `T` of a parameter `this: T`, whose `this` has been read; `false` leaves another `this`.
pub(crate) fn this_parameter(raw: &mut Raw<'_>) -> Result<bool, Diagnostic> {
    if !eat(raw, Token::Colon) {
        return Ok(false);
    }
    skip_type(raw)?;
    eat(raw, Token::Comma);
    Ok(true)
}
