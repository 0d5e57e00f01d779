//! Cover grammars: expressions that turn out to be assignment targets, keys of patterns or constructors.

use crate::ast::{
    Arena, AssignOp, Declarator, Declares, Depth, Expr, ExprKind, Key, List, Name, Node, Pattern, PatternKind,
    Property, Stmt, StmtKind, in_optional_chain,
};
use crate::diagnostic::{Diagnostic, Result};
use crate::span::Span;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// What the parser notes beside the tree.
///
/// Errors are among it: a parser whose reductions return no errors has a small frame.
#[derive(Debug, Default)]
pub(crate) struct Covers<'s> {
    source: &'s str,
    /// Whether a name of the source is written with escapes.
    pub(crate) has_escaped_names: bool,
    /// The first error.
    error: OnceCell<Box<Diagnostic>>,
    /// Spans of `name = default` in object literals (CoverInitializedName): an error unless the literal turns
    /// out to be a pattern.
    defaults: RefCell<BTreeMap<u32, u32>>,
    /// Where the last spread of a literal begins that a comma follows: an error if the literal turns out to be a pattern.
    commas: RefCell<BTreeSet<u32>>,
    /// The statement that is the default export.
    export: Cell<Option<Span>>,
}

impl<'s> Covers<'s> {
    /// Nothing yet.
    pub(crate) fn new(source: &'s str, has_escaped_names: bool) -> Self {
        Self { source, has_escaped_names, ..Self::default() }
    }

    /// The text of a token.
    #[inline]
    pub(crate) fn text(&self, start: u32, end: u32) -> &'s str {
        Span::new(start, end).text(self.source)
    }

    /// The text of a part of a template with its offset, without its first character and the last ones.
    pub(crate) fn chunk(&self, start: u32, end: u32, closing: u32) -> (u32, &'s str) {
        (start, self.text(start + 1, end - closing))
    }

    /// Notes an error; only the first one counts. What the reduction makes does not matter then.
    #[cold]
    pub(crate) fn error(&self, error: impl Into<Box<Diagnostic>>) {
        // A later one follows from the first.
        _ = self.error.set(error.into());
    }

    /// A value, or another one where it is an error.
    #[inline(always)]
    pub(crate) fn value<T>(&self, value: Result<T>, otherwise: T) -> T {
        value.unwrap_or_else(|error| {
            self.error(error);
            otherwise
        })
    }

    /// Whether an error is noted, so that the parser need not go on.
    #[inline(always)]
    pub(crate) fn has_failed(&self) -> bool {
        self.error.get().is_some()
    }

    /// Notes that a tree is too high.
    #[cold]
    fn too_deep(&self, span: Span) {
        self.error(Diagnostic::syntax("this is nested too deeply", span));
    }

    /// Notes a default.
    pub(crate) fn open(&self, name: Span) {
        self.defaults.borrow_mut().insert(name.start, name.end);
    }

    /// Notes a comma behind the last item of an array literal.
    pub(crate) fn array_comma(&self, items: &[Option<Expr<'_>>]) {
        if let Some(Some(Node { kind: ExprKind::Spread(value), .. })) = items.last() {
            self.commas.borrow_mut().insert(value.span.start);
        }
    }

    /// Notes a comma behind the last property of an object literal.
    pub(crate) fn object_comma(&self, properties: &[Property<'_>]) {
        if let Some(Property::Spread(value)) = properties.last() {
            self.commas.borrow_mut().insert(value.span.start);
        }
    }

    /// Whether such a comma follows this spread value.
    fn has_comma(&self, value: Expr<'_>) -> bool {
        self.commas.borrow().contains(&value.span.start)
    }

    /// Notes that a default belongs to a pattern.
    fn close(&self, name: Span) {
        self.defaults.borrow_mut().remove(&name.start);
    }

    /// A statement behind `export default`.
    pub(crate) fn export<'t>(&self, keyword: Span, statement: Stmt<'t>) -> Stmt<'t> {
        if self.export.replace(Some(statement.span)).is_some() {
            self.error(Diagnostic::syntax("a script has one default export only", keyword));
        }
        statement
    }

    /// Which statement that is.
    pub(crate) fn entry(&self, body: &[Stmt<'_>]) -> Option<usize> {
        let export = self.export.get()?;
        body.iter().position(|statement| statement.span == export)
    }

    /// The first error.
    pub(crate) fn take_error(&mut self) -> Option<Box<Diagnostic>> {
        self.error.take()
    }

    /// Refuses the first default that belongs to no pattern.
    pub(crate) fn check(&self) -> std::result::Result<(), Diagnostic> {
        match self.defaults.borrow().first_key_value() {
            Some((&start, &end)) => Err(Diagnostic::syntax("expected `:`, found `=`", Span::new(start, end))
                .with_hint("`{name = value}` is only a pattern; an object is written `{name: value}`")),
            None => Ok(()),
        }
    }
}

/// A node of the tree.
#[inline(always)]
pub(crate) fn node<'s, T: Depth + Copy>(arena: &'s Arena, covers: &Covers<'_>, kind: T, span: Span) -> &'s Node<T> {
    let (node, fits) = Node::new(kind, span);
    if !fits {
        covers.too_deep(span);
    }
    arena.alloc(node)
}

/// The pattern that an expression to the left of `=` stands for.
pub(crate) fn target<'s>(arena: &'s Arena, covers: &Covers<'_>, expr: Expr<'s>) -> Pattern<'s> {
    let span = expr.span;
    let kind = match expr.kind {
        ExprKind::Array(items) => array(arena, covers, items),
        ExprKind::Object(properties) => object(arena, covers, properties, span),
        _ => return update_target(arena, covers, expr),
    };
    node(arena, covers, kind, span)
}

fn array<'s>(arena: &'s Arena, covers: &Covers<'_>, items: &[Option<Expr<'s>>]) -> PatternKind<'s> {
    let last = items.len().saturating_sub(1);
    let mut elements = List::new();
    for (index, item) in items.iter().enumerate() {
        let element = item.map(|item| match item.kind {
            ExprKind::Spread(rest) if index == last && !covers.has_comma(rest) => {
                if matches!(rest.kind, ExprKind::Assign(..)) {
                    covers.error(invalid(rest.span));
                }
                node(arena, covers, PatternKind::Rest(target(arena, covers, rest)), item.span)
            }
            ExprKind::Spread(_) => no_target(arena, covers, rest_not_last(item.span)),
            _ => element(arena, covers, item),
        });
        elements = arena.push(elements, element);
    }
    PatternKind::Array(arena.slice(elements))
}

fn object<'s>(arena: &'s Arena, covers: &Covers<'_>, properties: &[Property<'s>], span: Span) -> PatternKind<'s> {
    let last = properties.len().saturating_sub(1);
    let mut entries = List::new();
    let mut rest = None;
    for (index, &property) in properties.iter().enumerate() {
        let entry = match property {
            Property::Shorthand(name, default) => {
                covers.close(name.span);
                shorthand(arena, covers, name, default)
            }
            Property::Value(key, value) => (key, element(arena, covers, value)),
            Property::Spread(value) if index == last && !covers.has_comma(value) => {
                rest = Some(update_target(arena, covers, value));
                continue;
            }
            Property::Spread(value) => {
                covers.error(rest_not_last(value.span));
                continue;
            }
            Property::Method(..) => {
                covers.error(invalid(span));
                continue;
            }
        };
        entries = arena.push(entries, entry);
    }
    PatternKind::Object(arena.slice(entries), rest)
}

/// A target with an optional default.
fn element<'s>(arena: &'s Arena, covers: &Covers<'_>, expr: Expr<'s>) -> Pattern<'s> {
    match expr.kind {
        ExprKind::Assign(AssignOp::Plain, target, value) => {
            node(arena, covers, PatternKind::Default(target, value), expr.span)
        }
        _ => target(arena, covers, expr),
    }
}

/// A target that is no pattern: a name or a property.
pub(crate) fn update_target<'s>(arena: &'s Arena, covers: &Covers<'_>, expr: Expr<'s>) -> Pattern<'s> {
    let span = expr.span;
    match expr.kind {
        ExprKind::Name(name) => node(arena, covers, PatternKind::Name(name), span),
        ExprKind::Paren(inner) => update_target(arena, covers, inner),
        ExprKind::Member(..) | ExprKind::Index(..) if in_optional_chain(expr) => {
            let error = Diagnostic::syntax("cannot assign through `?.`", span)
                .with_hint("test the object first: `if (object) object.name = value`");
            no_target(arena, covers, error)
        }
        ExprKind::Member(..) | ExprKind::Index(..) => node(arena, covers, PatternKind::Member(expr), span),
        _ => no_target(arena, covers, invalid(span)),
    }
}

/// Notes an error, in place of a target.
#[cold]
fn no_target<'s>(arena: &'s Arena, covers: &Covers<'_>, error: Diagnostic) -> Pattern<'s> {
    let span = error.span;
    covers.error(error);
    node(arena, covers, PatternKind::Name(""), span)
}

/// A declaration; only `let` and `var` of plain names may leave out the value.
pub(crate) fn declare<'s>(covers: &Covers<'_>, declares: Declares, declarators: &'s [Declarator<'s>]) -> StmtKind<'s> {
    for Declarator { target, init } in declarators {
        let plain = matches!(target.kind, PatternKind::Name(_));
        if init.is_none() && !(plain && declares != Declares::Const) {
            let what = if plain { "a `const`" } else { "a pattern" };
            covers.error(Diagnostic::syntax(format!("{what} needs a value: `= …`"), target.span));
        }
    }
    StmtKind::Declare(declares, declarators)
}

/// `new callee(arguments)`
pub(crate) fn new<'s>(covers: &Covers<'_>, callee: Expr<'s>, arguments: &'s [Expr<'s>]) -> ExprKind<'s> {
    if in_optional_chain(callee) {
        covers.error(Diagnostic::syntax("`new` does not work with `?.`", callee.span));
    }
    ExprKind::New(callee, arguments)
}

/// `name` and `name = default` in an object pattern.
pub(crate) fn shorthand<'s>(
    arena: &'s Arena,
    covers: &Covers<'_>,
    name: Name<'s>,
    default: Option<Expr<'s>>,
) -> (Key<'s>, Pattern<'s>) {
    let span = name.span;
    let mut target = node(arena, covers, PatternKind::Name(name.text), span);
    if let Some(value) = default {
        target = node(arena, covers, PatternKind::Default(target, value), span.to(value.span));
    }
    (key(name), target)
}

/// A name as a key.
pub(crate) fn key(name: Name<'_>) -> Key<'_> {
    Key::Text(name.text.as_bytes(), name.span)
}

fn invalid(span: Span) -> Diagnostic {
    Diagnostic::syntax("cannot assign to this", span)
}

fn rest_not_last(span: Span) -> Diagnostic {
    Diagnostic::syntax("the rest must come last", span)
}
