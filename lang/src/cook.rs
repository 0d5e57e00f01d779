//! From the text of tokens to values: escapes, numbers, templates.

use crate::ast::{Arena, Depth, Expr, ExprKind, List, Name, Node, Quasi, Text, in_optional_chain};
use crate::diagnostic::{Diagnostic, Result};
use crate::span::Span;
use crate::targets::{self, Covers};
use std::borrow::Cow;

mod escape;
mod number;
#[cfg(test)]
mod tests;

pub(crate) use number::{bigint, number, number_key, number_text};

/// Creates a node from one offset to another.
pub(crate) fn node<'s, T: Depth + Copy>(
    arena: &'s Arena,
    covers: &Covers<'_>,
    start: u32,
    kind: T,
    end: u32,
) -> &'s Node<T> {
    targets::node(arena, covers, kind, Span::new(start, end))
}

/// A name with escapes, decoded.
pub(crate) use escape::name as unescaped;

/// Returns a name, with its escapes decoded.
pub(crate) fn name<'s>(arena: &'s Arena, text: &'s str, start: u32) -> Result<&'s str> {
    if text.contains('\\') { Ok(arena.text(escape::name(text, start)?.into())) } else { Ok(text) }
}

/// Returns a name with its span, its escapes decoded.
pub(crate) fn name_node<'s>(arena: &'s Arena, text: &'s str, start: u32) -> Result<Name<'s>> {
    Ok(Name { text: name(arena, text, start)?, span: span_of(text, start) })
}

/// Returns the value of a string literal.
pub(crate) fn string<'s>(arena: &'s Arena, text: &'s str, start: u32) -> Result<Text<'s>> {
    let inside = text.get(1..text.len() - 1).unwrap_or("");
    Ok(arena.bytes(escape::text(inside, start + 1)?))
}

/// Returns the value of a string literal, with U+FFFD for lone surrogates; `None` if an escape is invalid.
pub(crate) fn plain_string(text: &str) -> Option<String> {
    let inside = text.get(1..text.len() - 1)?;
    escape::text(inside, 0).ok().map(|value| String::from_utf8_lossy(&value).into_owned())
}

/// Returns a regular expression literal.
pub(crate) fn regex(text: &str, start: u32) -> Result<ExprKind<'_>> {
    let (pattern, flags) = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')).unwrap_or((text, ""));
    let wrong = flags.char_indices().any(|(at, flag)| !"dgimsuvy".contains(flag) || flags[..at].contains(flag));
    if wrong || flags.contains('u') && flags.contains('v') {
        let span = Span::new(start + 2 + len(pattern), start + len(text));
        return Err(Diagnostic::syntax(format!("invalid regular expression flags `{flags}`"), span).into());
    }
    Ok(ExprKind::Regex(pattern, flags))
}

/// A text of a template literal with the offset of its token.
pub(crate) type TextAt<'s> = (u32, &'s str);

/// A template literal: texts, each with the substitution behind it, and the last text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'s> {
    texts: &'s [(TextAt<'s>, Expr<'s>)],
    tail: TextAt<'s>,
}

impl<'s> Parts<'s> {
    /// Returns all texts, in order.
    fn texts(&self) -> impl Iterator<Item = TextAt<'s>> + use<'s> {
        self.texts.iter().map(|&(text, _)| text).chain([self.tail])
    }

    /// Returns the substitutions between them.
    fn holes(&self, arena: &'s Arena) -> &'s [Expr<'s>] {
        arena.collect(self.texts.iter().map(|&(_, hole)| hole))
    }
}

/// Returns a template literal without substitutions.
pub(crate) fn whole<'s>(arena: &'s Arena, tail: TextAt<'s>) -> &'s Parts<'s> {
    arena.alloc(Parts { texts: &[], tail })
}

/// Returns a template literal with substitutions.
pub(crate) fn parts<'s>(arena: &'s Arena, texts: List<'s, (TextAt<'s>, Expr<'s>)>, tail: TextAt<'s>) -> &'s Parts<'s> {
    arena.alloc(Parts { texts: arena.slice(texts), tail })
}

/// Returns a template literal as an expression.
pub(crate) fn template<'s>(arena: &'s Arena, parts: &Parts<'s>) -> Result<ExprKind<'s>> {
    let mut texts = List::new();
    for (start, text) in parts.texts() {
        texts = arena.push(texts, cooked(arena, text, start + 1)?);
    }
    Ok(ExprKind::Template(arena.slice(texts), parts.holes(arena)))
}

/// Returns a tagged template, in which invalid escapes are allowed.
pub(crate) fn tagged<'s>(arena: &'s Arena, tag: Expr<'s>, parts: &Parts<'s>) -> Result<ExprKind<'s>> {
    if in_optional_chain(tag) {
        return Err(Diagnostic::syntax("a template cannot follow `?.`", tag.span).into());
    }
    let mut quasis = List::new();
    for (start, text) in parts.texts() {
        let cooked = cooked(arena, text, start + 1).ok();
        quasis = arena.push(quasis, Quasi { cooked, raw: arena.text(lines(text)).as_bytes() });
    }
    Ok(ExprKind::Tagged(tag, arena.slice(quasis), parts.holes(arena)))
}

fn cooked<'s>(arena: &'s Arena, text: &'s str, start: u32) -> Result<Text<'s>> {
    let normal = arena.text(lines(text));
    Ok(arena.bytes(escape::text(normal, start)?))
}

/// Returns a text with line ends as `\n`, as templates have them.
fn lines(text: &str) -> Cow<'_, str> {
    if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")) } else { Cow::Borrowed(text) }
}

fn span_of(text: &str, start: u32) -> Span {
    Span::new(start, start + len(text))
}

/// Returns the length in bytes as spans count it.
fn len(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}
