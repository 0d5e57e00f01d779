//! Skipping TypeScript types, so that the grammar never meets one.
//!
//! The recogniser is deliberately loose: it has to find where a type ends, not whether it is right.

use crate::Diagnostic;
use crate::token::{Chunk, Token};
use logos::Logos;

/// Most tokens that are looked at before it is clear that something is a type: a script full of `a<`
/// must not take quadratic time.
const LOOKAHEAD: usize = 500;

/// Deepest nesting of types inside each other that is followed by recursion.
const MAX_DEPTH: u32 = 64;

type Raw<'s> = logos::Lexer<'s, Token<'s>>;

fn peek<'s>(raw: &Raw<'s>) -> Option<Token<'s>> {
    raw.clone().next()?.ok()
}

fn eat(raw: &mut Raw<'_>, token: Token<'_>) -> bool {
    let found = peek(raw) == Some(token);
    if found {
        raw.next();
    }
    found
}

fn error(raw: &Raw<'_>) -> Diagnostic {
    Diagnostic::syntax("expected a type", raw.span())
}

/// Skip one type.
pub(crate) fn skip_type(raw: &mut Raw<'_>) -> Result<(), Diagnostic> {
    nested(raw, 0)
}

fn nested(raw: &mut Raw<'_>, depth: u32) -> Result<(), Diagnostic> {
    if depth > MAX_DEPTH {
        return Err(Diagnostic::syntax("this type is nested too deeply", raw.span()));
    }
    eat(raw, Token::Pipe);
    loop {
        operand(raw, depth)?;
        while !newline_next(raw) && eat(raw, Token::LBracket) {
            balanced(raw, 1, &mut { usize::MAX })?;
        }
        if eat(raw, Token::Reserved("extends")) {
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

fn operand(raw: &mut Raw<'_>, depth: u32) -> Result<(), Diagnostic> {
    if depth > MAX_DEPTH {
        return Err(Diagnostic::syntax("this type is nested too deeply", raw.span()));
    }
    use Token as T;
    match raw.next().and_then(Result::ok) {
        Some(T::Ident("asserts" | "keyof" | "readonly" | "infer" | "unique") | T::Typeof) if starts_operand(raw) => {
            operand(raw, depth + 1)
        }
        Some(T::Ident(_) | T::Contextual(_) | T::Null | T::Void | T::Reserved("this")) => {
            while eat(raw, T::Dot) {
                raw.next();
            }
            if eat(raw, T::Less) {
                angles(raw, &mut { usize::MAX })
            } else if eat(raw, T::Ident("is")) {
                nested(raw, depth + 1)
            } else {
                Ok(())
            }
        }
        Some(T::Const) => Ok(()), // `as const`
        Some(T::Backtick) => template(raw),
        Some(T::String(_) | T::Number(_) | T::True | T::False) => Ok(()),
        Some(T::Minus) => operand(raw, depth + 1),
        Some(T::LBrace | T::LBracket) => balanced(raw, 1, &mut { usize::MAX }),
        Some(T::LParen) => {
            balanced(raw, 1, &mut { usize::MAX })?;
            if eat(raw, T::Arrow) { nested(raw, depth + 1) } else { Ok(()) }
        }
        Some(T::Less) => {
            angles(raw, &mut { usize::MAX })?;
            operand(raw, depth + 1)
        }
        Some(T::New) => operand(raw, depth + 1),
        _ => Err(error(raw)),
    }
}

fn starts_operand(raw: &Raw<'_>) -> bool {
    use Token as T;
    matches!(
        peek(raw),
        Some(T::Ident(_) | T::Contextual(_) | T::LBrace | T::LBracket | T::LParen | T::Typeof | T::String(_))
    )
}

fn newline_next(raw: &Raw<'_>) -> bool {
    let mut ahead = raw.clone();
    ahead.next();
    ahead.extras.newline
}

/// Skip to behind the bracket that closes the `depth` open ones.
fn balanced(raw: &mut Raw<'_>, mut depth: u32, budget: &mut usize) -> Result<(), Diagnostic> {
    use Token as T;
    while depth > 0 {
        spend(raw, budget)?;
        match raw.next() {
            Some(Ok(T::LParen | T::LBracket | T::LBrace)) => depth += 1,
            Some(Ok(T::RParen | T::RBracket | T::RBrace)) => depth -= 1,
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

/// Skip a template literal type, whose backtick has been read.
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

/// Skip to behind the `>` that closes an open `<`.
fn angles(raw: &mut Raw<'_>, budget: &mut usize) -> Result<(), Diagnostic> {
    use Token as T;
    let mut depth = 1_i32;
    while depth > 0 {
        spend(raw, budget)?;
        match raw.next() {
            Some(Ok(T::Less)) => depth += 1,
            Some(Ok(T::Greater)) => depth -= 1,
            Some(Ok(T::ShiftRight)) => depth -= 2,
            Some(Ok(T::ShiftRightUnsigned)) => depth -= 3,
            Some(Ok(T::LParen | T::LBracket | T::LBrace)) => balanced(raw, 1, budget)?,
            Some(Ok(
                T::Ident(_)
                | T::Contextual(_)
                | T::Reserved(_)
                | T::String(_)
                | T::Number(_)
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

/// Skip `T, U extends V>`, whose `<` has been read.
pub(crate) fn skip_type_parameters(raw: &mut Raw<'_>) -> Result<(), Diagnostic> {
    angles(raw, &mut { usize::MAX })
}

/// Skip `T>` before a call, whose `<` has been read; `false` leaves a comparison where it is.
pub(crate) fn type_arguments(raw: &mut Raw<'_>) -> bool {
    let mut ahead = raw.clone();
    let found = angles(&mut ahead, &mut { LOOKAHEAD }).is_ok() && peek(&ahead) == Some(Token::LParen);
    if found {
        *raw = ahead;
    }
    found
}

/// Skip `type T = …` or `interface T { … }`; `false` leaves a variable of that name where it is.
pub(crate) fn declaration(raw: &mut Raw<'_>, keyword: &str) -> Result<bool, Diagnostic> {
    use Token as T;
    let mut ahead = raw.clone();
    if !matches!(ahead.next(), Some(Ok(T::Ident(_)))) || ahead.extras.newline {
        return Ok(false);
    }
    if eat(&mut ahead, T::Less) {
        angles(&mut ahead, &mut { usize::MAX })?;
    }
    if keyword == "type" {
        if !eat(&mut ahead, T::Assign) {
            return Ok(false);
        }
        skip_type(&mut ahead)?;
    } else {
        while !matches!(peek(&ahead), Some(T::LBrace)) {
            if ahead.next().is_none() {
                return Err(error(&ahead));
            }
        }
        ahead.next();
        balanced(&mut ahead, 1, &mut { usize::MAX })?;
    }
    eat(&mut ahead, T::Semicolon);
    ahead.extras.newline = true;
    *raw = ahead;
    Ok(true)
}

/// Skip `import type … from '…'`, whose `import` has been read; `false` leaves other imports.
pub(crate) fn import_type(raw: &mut Raw<'_>) -> bool {
    use Token as T;
    let mut ahead = raw.clone();
    if ahead.next() != Some(Ok(T::Contextual("type"))) {
        return false;
    }
    // Longer than any such statement: the search must not be quadratic.
    for _ in 0..LOOKAHEAD {
        match ahead.next() {
            Some(Ok(T::String(_))) => {
                eat(&mut ahead, T::Semicolon);
                ahead.extras.newline = true;
                *raw = ahead;
                return true;
            }
            Some(Ok(_)) => {}
            Some(Err(())) | None => return false,
        }
    }
    false
}
