//! Cover grammars: expressions that turn out to be assignment targets, keys of patterns or constructors.

use crate::ast::{
    Arena, AssignOp, Declarator, Declares, Expr, ExprKind, Key, List, Name, Node, Pattern, PatternKind, Property, Stmt,
    StmtKind, in_optional_chain,
};
use crate::diagnostic::{Diagnostic, Result};
use crate::span::Span;
use std::collections::{BTreeMap, BTreeSet};

/// What the parser notes beside the tree.
#[derive(Debug, Default)]
pub(crate) struct Covers {
    /// Whether a name of the source is written with escapes.
    pub(crate) has_escaped_names: bool,
    /// Spans of `name = default` in object literals (CoverInitializedName): an error unless the literal turns
    /// out to be a pattern.
    defaults: BTreeMap<u32, u32>,
    /// Where the last spread of a literal begins that a comma follows: an error if the literal turns out to be a pattern.
    commas: BTreeSet<u32>,
    /// The statement that is the default export.
    export: Option<Span>,
}

impl Covers {
    /// Nothing yet.
    pub(crate) fn new(has_escaped_names: bool) -> Self {
        Self { has_escaped_names, ..Self::default() }
    }

    /// Notes a default.
    pub(crate) fn open(&mut self, name: Span) {
        self.defaults.insert(name.start, name.end);
    }

    /// Notes a comma behind the last item of an array literal.
    pub(crate) fn array_comma(&mut self, items: &[Option<Expr<'_>>]) {
        if let Some(Some(Node { kind: ExprKind::Spread(value), .. })) = items.last() {
            self.commas.insert(value.span.start);
        }
    }

    /// Notes a comma behind the last property of an object literal.
    pub(crate) fn object_comma(&mut self, properties: &[Property<'_>]) {
        if let Some(Property::Spread(value)) = properties.last() {
            self.commas.insert(value.span.start);
        }
    }

    /// Notes that a default belongs to a pattern.
    fn close(&mut self, name: Span) {
        self.defaults.remove(&name.start);
    }

    /// A statement behind `export default`.
    pub(crate) fn export<'s>(&mut self, keyword: Span, statement: Stmt<'s>) -> Result<Stmt<'s>> {
        match self.export.replace(statement.span) {
            None => Ok(statement),
            Some(_) => Err(Diagnostic::syntax("a script has one default export only", keyword).into()),
        }
    }

    /// Which statement that is.
    pub(crate) fn entry(&self, body: &[Stmt<'_>]) -> Option<usize> {
        let export = self.export?;
        body.iter().position(|statement| statement.span == export)
    }

    /// The first default that belongs to no pattern.
    pub(crate) fn check(&self) -> Result<()> {
        match self.defaults.first_key_value() {
            Some((&start, &end)) => Err(Diagnostic::syntax("expected `:`, found `=`", Span::new(start, end))
                .with_hint("`{name = value}` is only a pattern; an object is written `{name: value}`")
                .into()),
            None => Ok(()),
        }
    }
}

/// The pattern that an expression to the left of `=` stands for.
pub(crate) fn target<'s>(arena: &'s Arena, expr: Expr<'s>, covers: &mut Covers) -> Result<Pattern<'s>> {
    let span = expr.span;
    let kind = match expr.kind {
        ExprKind::Array(items) => array(arena, items, covers)?,
        ExprKind::Object(properties) => object(arena, properties, covers, span)?,
        _ => return update_target(arena, expr),
    };
    pattern(arena, kind, span)
}

fn array<'s>(arena: &'s Arena, items: &[Option<Expr<'s>>], covers: &mut Covers) -> Result<PatternKind<'s>> {
    let last = items.len().saturating_sub(1);
    let mut elements = List::new();
    for (index, item) in items.iter().enumerate() {
        let element = match item {
            Some(item) => Some(match item.kind {
                ExprKind::Spread(rest) if index == last && !covers.commas.contains(&rest.span.start) => {
                    if matches!(rest.kind, ExprKind::Assign(..)) {
                        return Err(invalid(rest.span));
                    }
                    pattern(arena, PatternKind::Rest(target(arena, rest, covers)?), item.span)?
                }
                ExprKind::Spread(_) => return Err(rest_not_last(item.span)),
                _ => element(arena, item, covers)?,
            }),
            None => None,
        };
        elements = arena.push(elements, element);
    }
    Ok(PatternKind::Array(arena.slice(elements)))
}

fn object<'s>(
    arena: &'s Arena,
    properties: &[Property<'s>],
    covers: &mut Covers,
    span: Span,
) -> Result<PatternKind<'s>> {
    let last = properties.len().saturating_sub(1);
    let mut entries = List::new();
    let mut rest = None;
    for (index, &property) in properties.iter().enumerate() {
        let entry = match property {
            Property::Shorthand(name, default) => {
                covers.close(name.span);
                shorthand(arena, name, default)?
            }
            Property::Value(key, value) => (key, element(arena, value, covers)?),
            Property::Spread(value) if index == last && !covers.commas.contains(&value.span.start) => {
                rest = Some(update_target(arena, value)?);
                continue;
            }
            Property::Spread(value) => return Err(rest_not_last(value.span)),
            Property::Method(..) => return Err(invalid(span)),
        };
        entries = arena.push(entries, entry);
    }
    Ok(PatternKind::Object(arena.slice(entries), rest))
}

/// A target with an optional default.
fn element<'s>(arena: &'s Arena, expr: Expr<'s>, covers: &mut Covers) -> Result<Pattern<'s>> {
    match expr.kind {
        ExprKind::Assign(AssignOp::Plain, target, value) => {
            pattern(arena, PatternKind::Default(target, value), expr.span)
        }
        _ => target(arena, expr, covers),
    }
}

/// A target that is no pattern: a name or a property.
pub(crate) fn update_target<'s>(arena: &'s Arena, expr: Expr<'s>) -> Result<Pattern<'s>> {
    let span = expr.span;
    match expr.kind {
        ExprKind::Name(name) => pattern(arena, PatternKind::Name(name), span),
        ExprKind::Paren(inner) => update_target(arena, inner),
        ExprKind::Member(..) | ExprKind::Index(..) if in_optional_chain(expr) => {
            Err(Diagnostic::syntax("cannot assign through `?.`", span)
                .with_hint("test the object first: `if (object) object.name = value`")
                .into())
        }
        ExprKind::Member(..) | ExprKind::Index(..) => pattern(arena, PatternKind::Member(expr), span),
        _ => Err(invalid(span)),
    }
}

/// A declaration; only `let` and `var` of plain names may leave out the value.
pub(crate) fn declare<'s>(declares: Declares, declarators: &'s [Declarator<'s>]) -> Result<StmtKind<'s>> {
    for Declarator { target, init } in declarators {
        let plain = matches!(target.kind, PatternKind::Name(_));
        if init.is_none() && !(plain && declares != Declares::Const) {
            let what = if plain { "a `const`" } else { "a pattern" };
            return Err(Diagnostic::syntax(format!("{what} needs a value: `= …`"), target.span).into());
        }
    }
    Ok(StmtKind::Declare(declares, declarators))
}

/// `new callee(arguments)`
pub(crate) fn new<'s>(callee: Expr<'s>, arguments: &'s [Expr<'s>]) -> Result<ExprKind<'s>> {
    if in_optional_chain(callee) {
        return Err(Diagnostic::syntax("`new` does not work with `?.`", callee.span).into());
    }
    Ok(ExprKind::New(callee, arguments))
}

/// `name` and `name = default` in an object pattern.
pub(crate) fn shorthand<'s>(
    arena: &'s Arena,
    name: Name<'s>,
    default: Option<Expr<'s>>,
) -> Result<(Key<'s>, Pattern<'s>)> {
    let span = name.span;
    let mut target = pattern(arena, PatternKind::Name(name.text), span)?;
    if let Some(value) = default {
        target = pattern(arena, PatternKind::Default(target, value), span.to(value.span))?;
    }
    Ok((key(name), target))
}

/// A name as a key.
pub(crate) fn key(name: Name<'_>) -> Key<'_> {
    Key::Text(name.text.as_bytes(), name.span)
}

fn pattern<'s>(arena: &'s Arena, kind: PatternKind<'s>, span: Span) -> Result<Pattern<'s>> {
    Ok(arena.alloc(Node::new(kind, span)?))
}

fn invalid(span: Span) -> Box<Diagnostic> {
    Diagnostic::syntax("cannot assign to this", span).into()
}

fn rest_not_last(span: Span) -> Box<Diagnostic> {
    Diagnostic::syntax("the rest must come last", span).into()
}
