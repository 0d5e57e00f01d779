//! Expressions that turn out to be something else: assignment targets, keys, constructors.

use crate::ast::{
    AssignOp, Declarator, Declares, Expr, ExprKind, Key, Name, Node, Pattern, PatternKind, Property, Stmt, StmtKind,
    Text,
};
use crate::{Diagnostic, Span};
use std::borrow::Cow;
use std::collections::BTreeMap;

type Result<T> = std::result::Result<T, Diagnostic>;

/// What the parser notes beside the tree.
#[derive(Debug, Default)]
pub(crate) struct Covers {
    /// Places of `name = default` in object literals: legal only where the literal turns out to be a
    /// pattern.
    defaults: BTreeMap<u32, u32>,
    /// The statement that is the default export.
    export: Option<Span>,
}

impl Covers {
    /// A default has been met.
    pub(crate) fn open(&mut self, name: Span) {
        self.defaults.insert(name.start, name.end);
    }

    /// It belongs to a pattern.
    fn close(&mut self, name: Span) {
        self.defaults.remove(&name.start);
    }

    /// A statement behind `export default`.
    pub(crate) fn export<'s>(&mut self, keyword: Span, statement: Stmt<'s>) -> Result<Stmt<'s>> {
        match self.export.replace(statement.span) {
            None => Ok(statement),
            Some(_) => Err(Diagnostic::syntax("a script has one default export only", keyword)),
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
                .with_hint("`{name = value}` is only a pattern; an object is written `{name: value}`")),
            None => Ok(()),
        }
    }
}

/// The pattern that an expression to the left of `=` stands for.
pub(crate) fn target<'s>(expr: Expr<'s>, covers: &mut Covers) -> Result<Pattern<'s>> {
    let span = expr.span;
    if !matches!(expr.kind, ExprKind::Array(_) | ExprKind::Object(_)) {
        return update_target(expr);
    }
    let kind = match expr.kind {
        ExprKind::Array(items) => array(items, covers)?,
        ExprKind::Object(properties) => object(properties, covers, span)?,
        _ => return Err(invalid(span)),
    };
    pattern(kind, span)
}

fn array<'s>(items: Vec<Option<Expr<'s>>>, covers: &mut Covers) -> Result<PatternKind<'s>> {
    let last = items.len().saturating_sub(1);
    let mut elements = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        elements.push(match item {
            Some(item) => {
                let span = item.span;
                match item.kind {
                    ExprKind::Spread(rest) if index == last => {
                        if matches!(rest.kind, ExprKind::Assign(..)) {
                            return Err(invalid(rest.span));
                        }
                        Some(pattern(PatternKind::Rest(target(rest, covers)?), span)?)
                    }
                    ExprKind::Spread(_) => return Err(rest_not_last(span)),
                    _ => Some(element(item, covers)?),
                }
            }
            None => None,
        });
    }
    Ok(PatternKind::Array(elements))
}

fn object<'s>(properties: Vec<Property<'s>>, covers: &mut Covers, span: Span) -> Result<PatternKind<'s>> {
    let last = properties.len().saturating_sub(1);
    let mut entries = Vec::with_capacity(properties.len());
    let mut rest = None;
    for (index, property) in properties.into_iter().enumerate() {
        match property {
            Property::Shorthand(name, default) => {
                covers.close(name.span);
                entries.push(shorthand(name, default)?);
            }
            Property::Value(key, value) => entries.push((key, element(value, covers)?)),
            Property::Spread(value) if index == last => rest = Some(update_target(value)?),
            Property::Spread(value) => return Err(rest_not_last(value.span)),
            Property::Method(..) => return Err(invalid(span)),
        }
    }
    Ok(PatternKind::Object(entries, rest))
}

/// A target with an optional default.
fn element<'s>(expr: Expr<'s>, covers: &mut Covers) -> Result<Pattern<'s>> {
    let Node { kind: ExprKind::Assign(AssignOp::Plain, ..), span, .. } = *expr else { return target(expr, covers) };
    match expr.kind {
        ExprKind::Assign(AssignOp::Plain, target, value) => pattern(PatternKind::Default(target, value), span),
        _ => Err(invalid(span)),
    }
}

/// A target that is no pattern: a name or a property.
pub(crate) fn update_target(expr: Expr<'_>) -> Result<Pattern<'_>> {
    let span = expr.span;
    match expr.kind {
        ExprKind::Name(name) => pattern(PatternKind::Name(name), span),
        ExprKind::Paren(inner) => update_target(inner),
        ExprKind::Member(..) | ExprKind::Index(..) if in_optional_chain(&expr) => {
            Err(Diagnostic::syntax("cannot assign through `?.`", span)
                .with_hint("test the object first: `if (object) object.name = value`"))
        }
        ExprKind::Member(..) | ExprKind::Index(..) => pattern(PatternKind::Member(expr), span),
        _ => Err(invalid(span)),
    }
}

/// Whether some link of the chain that ends here is `?.`.
pub(crate) fn in_optional_chain(expr: &Expr<'_>) -> bool {
    let mut link = expr;
    loop {
        link = match &link.kind {
            ExprKind::Member(_, _, true) | ExprKind::Index(_, _, true) | ExprKind::Call(_, _, true) => return true,
            ExprKind::Member(object, ..) | ExprKind::Index(object, ..) | ExprKind::Call(object, ..) => object,
            ExprKind::Tagged(tag, ..) => tag,
            _ => return false,
        }
    }
}

/// A declaration; only `let` and `var` of plain names may leave out the value.
pub(crate) fn declare<'s>(declares: Declares, declarators: Vec<Declarator<'s>>) -> Result<StmtKind<'s>> {
    for Declarator { target, init } in &declarators {
        let plain = matches!(target.kind, PatternKind::Name(_));
        if init.is_none() && !(plain && declares != Declares::Const) {
            let what = if plain { "a `const`" } else { "a pattern" };
            return Err(Diagnostic::syntax(format!("{what} needs a value: `= …`"), target.span));
        }
    }
    Ok(StmtKind::Declare(declares, declarators))
}

/// `new callee(arguments)`
pub(crate) fn new<'s>(callee: Expr<'s>, arguments: Vec<Expr<'s>>) -> Result<ExprKind<'s>> {
    if in_optional_chain(&callee) {
        return Err(Diagnostic::syntax("`new` does not work with `?.`", callee.span));
    }
    Ok(ExprKind::New(callee, arguments))
}

/// `name` and `name = default` in an object pattern.
pub(crate) fn shorthand<'s>(name: Name<'s>, default: Option<Expr<'s>>) -> Result<(Key<'s>, Pattern<'s>)> {
    let span = name.span;
    let target = pattern(PatternKind::Name(name.kind.clone()), span)?;
    let target = match default {
        Some(value) => {
            let span = span.to(value.span);
            pattern(PatternKind::Default(target, value), span)?
        }
        None => target,
    };
    Ok((key(name), target))
}

/// A name as a key.
pub(crate) fn key(name: Name<'_>) -> Key<'_> {
    Key::Text(bytes(name.kind), name.span)
}

fn bytes(name: Cow<'_, str>) -> Text<'_> {
    match name {
        Cow::Borrowed(name) => Cow::Borrowed(name.as_bytes()),
        Cow::Owned(name) => Cow::Owned(name.into_bytes()),
    }
}

fn pattern(kind: PatternKind<'_>, span: Span) -> Result<Pattern<'_>> {
    Ok(Box::new(Node::new(kind, span)?))
}

fn invalid(span: Span) -> Diagnostic {
    Diagnostic::syntax("cannot assign to this", span)
}

fn rest_not_last(span: Span) -> Diagnostic {
    Diagnostic::syntax("the rest must come last", span)
}
