//! From the text of tokens to values: escapes, numbers, templates.

use crate::ast::{Depth, Expr, ExprKind, Name, Node, Quasi, Text};
use crate::targets::in_optional_chain;
use crate::{Diagnostic, Span};
use std::borrow::Cow;

mod escape;
mod number;
#[cfg(test)]
mod tests;

pub(crate) use number::{bigint, bigint_key, number, number_key, number_text};

type Result<T> = std::result::Result<T, Diagnostic>;

/// A node from one offset to another.
pub(crate) fn node<T: Depth>(start: u32, kind: T, end: u32) -> Result<Box<Node<T>>> {
    Ok(Box::new(Node::new(kind, Span::new(start, end))?))
}

/// A list with one more item.
pub(crate) fn push<T>(mut list: Vec<T>, item: T) -> Vec<T> {
    list.push(item);
    list
}

/// A name, with its escapes decoded; `layout` has seen that it is one.
pub(crate) fn name(text: &str, start: u32) -> Result<Cow<'_, str>> {
    if text.contains('\\') { escape::name(text, start).map(Cow::Owned) } else { Ok(Cow::Borrowed(text)) }
}

/// The same with its place.
pub(crate) fn name_node(text: &str, start: u32) -> Result<Name<'_>> {
    Node::new(name(text, start)?, span_of(text, start))
}

/// The value of a string literal.
pub(crate) fn string(text: &str, start: u32) -> Result<Text<'_>> {
    escape::text(text.get(1..text.len() - 1).unwrap_or(""), start + 1)
}

/// A regular expression literal.
pub(crate) fn regex(text: &str, start: u32) -> Result<ExprKind<'_>> {
    let (pattern, flags) = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')).unwrap_or((text, ""));
    let wrong = flags.char_indices().any(|(at, flag)| !"dgimsuvy".contains(flag) || flags[..at].contains(flag));
    if wrong || flags.contains('u') && flags.contains('v') {
        let place = Span::new(start + 2 + len(pattern), start + len(text));
        return Err(Diagnostic::syntax(format!("invalid regular expression flags `{flags}`"), place));
    }
    Ok(ExprKind::Regex(pattern, flags))
}

/// The texts of a template literal with the places of their tokens, and its holes.
pub(crate) type Parts<'s> = (Vec<(u32, &'s str)>, Vec<Expr<'s>>);

/// The parts of a template literal with holes.
pub(crate) fn parts<'s>(
    head: (u32, &'s str),
    first: Expr<'s>,
    rest: Vec<(u32, &'s str, Expr<'s>)>,
    tail: (u32, &'s str),
) -> Parts<'s> {
    let mut texts = Vec::with_capacity(rest.len() + 2);
    let mut holes = Vec::with_capacity(rest.len() + 1);
    texts.push(head);
    holes.push(first);
    for (start, text, hole) in rest {
        texts.push((start, text));
        holes.push(hole);
    }
    texts.push(tail);
    (texts, holes)
}

/// A template literal.
pub(crate) fn template((texts, holes): Parts<'_>) -> Result<ExprKind<'_>> {
    let texts = texts.into_iter().map(|(start, text)| cooked(text, start + 1)).collect::<Result<_>>()?;
    Ok(ExprKind::Template(texts, holes))
}

/// A tagged template, in which invalid escapes are allowed.
pub(crate) fn tagged<'s>(tag: Expr<'s>, (texts, holes): Parts<'s>) -> Result<ExprKind<'s>> {
    if in_optional_chain(&tag) {
        return Err(Diagnostic::syntax("a template cannot follow `?.`", tag.span));
    }
    let quasis = texts
        .into_iter()
        .map(|(start, text)| Quasi { cooked: cooked(text, start + 1).ok(), raw: bytes(lines(text)) })
        .collect();
    Ok(ExprKind::Tagged(tag, quasis, holes))
}

fn cooked(text: &str, start: u32) -> Result<Text<'_>> {
    if !text.contains('\r') {
        return escape::text(text, start);
    }
    let normal = lines(text);
    escape::text(&normal, start).map(|value| Cow::Owned(value.into_owned()))
}

/// Line ends as `\n`, as templates have them.
fn lines(text: &str) -> Cow<'_, str> {
    if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")) } else { Cow::Borrowed(text) }
}

fn bytes(text: Cow<'_, str>) -> Text<'_> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

fn span_of(text: &str, start: u32) -> Span {
    Span::new(start, start + len(text))
}

/// Length in bytes as spans count it.
fn len(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}
