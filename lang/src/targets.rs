//! Cover grammars: expressions that turn out to be assignment targets, keys of patterns or constructors.

use crate::ast::{
    Arena, AssignOp, Declarator, Declares, Depth, Expr, ExprKind, Key, List, Name, Node, Pattern, PatternKind,
    Property, Script, Stmt, StmtKind, in_optional_chain,
};
use crate::diagnostic::{Diagnostic, Result};
use crate::span::Span;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// The notes of the parser beside the tree: defaults that only a later `=` allows, exports, and the height of the tree.
#[derive(Debug, Default)]
pub(crate) struct Covers<'s> {
    source: &'s str,
    /// The first node that is too high. It is noted because an error in each action that makes a node would slow the parser.
    too_deep: Cell<Option<Span>>,
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
    pub(crate) fn new(source: &'s str) -> Self {
        Self { source, ..Self::default() }
    }

    /// Returns the text of a token.
    pub(crate) fn text(&self, start: u32, end: u32) -> &'s str {
        Span::new(start, end).text(self.source)
    }

    /// Returns the text of a part of a template with its offset, without its first character and the last ones.
    pub(crate) fn chunk(&self, start: u32, end: u32, closing: u32) -> (u32, &'s str) {
        (start, self.text(start + 1, end - closing))
    }

    /// Refuses a tree that is too high.
    pub(crate) fn check_depth(&self) -> Result<()> {
        match self.too_deep.get() {
            Some(span) => Err(Diagnostic::syntax("this is nested too deeply", span).into()),
            None => Ok(()),
        }
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

    /// Notes a statement behind `export default`.
    pub(crate) fn export<'t>(&self, keyword: Span, statement: Stmt<'t>) -> Result<Stmt<'t>> {
        match self.export.replace(Some(statement.span)) {
            Some(_) => Err(Diagnostic::syntax("a script has one default export only", keyword).into()),
            None => Ok(statement),
        }
    }

    /// Checks the whole script: whether it is too high, or a default belongs to no pattern.
    pub(crate) fn script<'t>(&self, body: &'t [Stmt<'t>]) -> Result<Script<'t>> {
        self.check_depth()?;
        if let Some((&start, &end)) = self.defaults.borrow().first_key_value() {
            let hint = "`{name = value}` is only a pattern; an object is written `{name: value}`";
            let error = Diagnostic::syntax("expected `:`, found `=`", Span::new(start, end));
            return Err(error.with_hint(hint).into());
        }
        let export = self.export.get();
        Ok(Script { entry: body.iter().position(|statement| Some(statement.span) == export), body })
    }
}

/// Creates a node of the tree.
pub(crate) fn node<'s, T: Depth + Copy>(arena: &'s Arena, covers: &Covers<'_>, kind: T, span: Span) -> &'s Node<T> {
    let (node, fits) = Node::new(kind, span);
    if !fits && covers.too_deep.get().is_none() {
        covers.too_deep.set(Some(span));
    }
    arena.alloc(node)
}

/// Returns the pattern that an expression to the left of `=` stands for.
pub(crate) fn target<'s>(arena: &'s Arena, covers: &Covers<'_>, expr: Expr<'s>) -> Result<Pattern<'s>> {
    let span = expr.span;
    let kind = match expr.kind {
        ExprKind::Array(items) => array(arena, covers, items)?,
        ExprKind::Object(properties) => object(arena, covers, properties, span)?,
        _ => return update_target(arena, covers, expr),
    };
    Ok(node(arena, covers, kind, span))
}

fn array<'s>(arena: &'s Arena, covers: &Covers<'_>, items: &[Option<Expr<'s>>]) -> Result<PatternKind<'s>> {
    let last = items.len().saturating_sub(1);
    let mut elements = List::new();
    for (index, item) in items.iter().enumerate() {
        let element = match item {
            None => None,
            Some(Node { kind: ExprKind::Spread(rest), span, .. }) if index == last && !covers.has_comma(rest) => {
                if matches!(rest.kind, ExprKind::Assign(..)) {
                    return Err(invalid(rest.span));
                }
                Some(node(arena, covers, PatternKind::Rest(target(arena, covers, rest)?), *span))
            }
            Some(Node { kind: ExprKind::Spread(_), span, .. }) => return Err(rest_not_last(*span)),
            Some(item) => Some(element(arena, covers, item)?),
        };
        elements = arena.push(elements, element);
    }
    Ok(PatternKind::Array(arena.slice(elements)))
}

fn object<'s>(
    arena: &'s Arena,
    covers: &Covers<'_>,
    properties: &[Property<'s>],
    span: Span,
) -> Result<PatternKind<'s>> {
    let last = properties.len().saturating_sub(1);
    let mut entries = List::new();
    let mut rest = None;
    for (index, &property) in properties.iter().enumerate() {
        let entry = match property {
            Property::Shorthand(name, default) => {
                covers.close(name.span);
                shorthand(arena, covers, name, default)
            }
            Property::Value(key, value) => (key, element(arena, covers, value)?),
            Property::Spread(value) if index == last && !covers.has_comma(value) => {
                rest = Some(update_target(arena, covers, value)?);
                continue;
            }
            Property::Spread(value) => return Err(rest_not_last(value.span)),
            Property::Method(..) => return Err(invalid(span)),
        };
        entries = arena.push(entries, entry);
    }
    Ok(PatternKind::Object(arena.slice(entries), rest))
}

/// Returns a target with an optional default.
fn element<'s>(arena: &'s Arena, covers: &Covers<'_>, expr: Expr<'s>) -> Result<Pattern<'s>> {
    match expr.kind {
        ExprKind::Assign(AssignOp::Plain, target, value) => {
            Ok(node(arena, covers, PatternKind::Default(target, value), expr.span))
        }
        _ => target(arena, covers, expr),
    }
}

/// Returns a target that is no pattern: a name or a property.
pub(crate) fn update_target<'s>(arena: &'s Arena, covers: &Covers<'_>, expr: Expr<'s>) -> Result<Pattern<'s>> {
    let span = expr.span;
    match expr.kind {
        ExprKind::Name(name) => Ok(node(arena, covers, PatternKind::Name(name), span)),
        ExprKind::Paren(inner) => update_target(arena, covers, inner),
        ExprKind::Member(..) | ExprKind::Index(..) if in_optional_chain(expr) => {
            let hint = "test the object first: `if (object) object.name = value`";
            Err(Diagnostic::syntax("cannot assign through `?.`", span).with_hint(hint).into())
        }
        ExprKind::Member(..) | ExprKind::Index(..) => Ok(node(arena, covers, PatternKind::Member(expr), span)),
        _ => Err(invalid(span)),
    }
}

/// Creates a declaration; only `let` and `var` of plain names may leave out the value.
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

/// Returns a name as a key.
pub(crate) fn key(name: Name<'_>) -> Key<'_> {
    Key::Text(name.text.as_bytes(), name.span)
}

fn invalid(span: Span) -> Box<Diagnostic> {
    Diagnostic::syntax("cannot assign to this", span).into()
}

fn rest_not_last(span: Span) -> Box<Diagnostic> {
    Diagnostic::syntax("the rest must come last", span).into()
}
