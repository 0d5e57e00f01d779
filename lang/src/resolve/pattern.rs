//! Destructuring: patterns as sequences of simple steps.

use super::{Resolver, expr, stmt};
use crate::ast::{self, Arena, Key, PatternKind};
use crate::diagnostic::Diagnostic;
use crate::program::*;
use crate::span::Span;

type Pattern<'s> = ast::Node<PatternKind<'s>>;

/// The fate of the names of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bind {
    /// Their declaration runs.
    Declare,
    /// They are assigned to; all steps are expressions.
    Assign,
}

impl Bind {
    /// This, with how messages name the value that is taken apart.
    pub(super) fn from(self, origin: Origin) -> Mode {
        Mode { bind: self, origin }
    }
}

/// How a pattern takes its value apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode {
    bind: Bind,
    origin: Origin,
}

impl Mode {
    /// Returns the mode for a pattern inside this one.
    fn inner(self) -> Self {
        self.bind.from(Origin::Part)
    }
}

impl<'p> Resolver<'_, 'p> {
    /// Adds the steps that take a value apart.
    pub(super) fn pattern(&mut self, pattern: &Pattern<'_>, value: Expr<'p>, mode: Mode, out: &mut Vec<Stmt<'p>>) {
        let span = pattern.span;
        match &pattern.kind {
            PatternKind::Name(name) if mode.bind == Bind::Declare => {
                let name = self.texts.intern(name.as_bytes());
                let step = self.initialize(name, value, span);
                out.push(step);
            }
            PatternKind::Name(name) => {
                let step = self.write(name, span, value);
                effect(step, span, out);
            }
            PatternKind::Member(member) => {
                let step = self.assign_to_member(member, value);
                effect(step, span, out);
            }
            PatternKind::Default(target, default) => {
                // A target in parentheses gives its name to no function.
                let gives_name = target.span.start == span.start;
                let value = self.with_default(target, value, default, gives_name);
                let inner = match (mode.origin, &target.kind) {
                    (Origin::Part, PatternKind::Object(..)) => mode.bind.from(Origin::Source(default.span)),
                    _ => mode,
                };
                self.pattern(target, value, inner, out);
            }
            PatternKind::Array(items) => self.array_pattern(items, value, mode, span, out),
            PatternKind::Object(properties, rest) => {
                self.object_pattern(properties, rest.as_deref(), value, mode, span, out);
            }
            PatternKind::Rest(target) => self.pattern(target, value, mode, out),
        }
    }

    /// Returns the value, or the default where it is `undefined`.
    fn with_default(
        &mut self,
        target: &Pattern<'_>,
        value: Expr<'p>,
        default: &ast::Expr<'_>,
        gives_name: bool,
    ) -> Expr<'p> {
        let span = value.span;
        let (value, again) = match value.kind {
            ExprKind::Temp(slot) => (value, expr(ExprKind::Temp(slot), span)),
            _ => self.save(value),
        };
        let test = is_undefined(self.arena, value);
        let default = if gives_name { self.default(target, default) } else { self.expression(default) };
        expr(ExprKind::Conditional(self.arena.alloc(test), self.arena.alloc(default), self.arena.alloc(again)), span)
    }

    /// Resolves a default; an anonymous function takes the name of its target.
    pub(super) fn default(&mut self, target: &Pattern<'_>, default: &ast::Expr<'_>) -> Expr<'p> {
        match &target.kind {
            PatternKind::Name(name) => {
                let name = self.texts.intern(name.as_bytes());
                self.named(default, name)
            }
            _ => self.expression(default),
        }
    }

    fn array_pattern(
        &mut self,
        items: &[Option<ast::Pattern<'_>>],
        value: Expr<'p>,
        mode: Mode,
        span: Span,
        out: &mut Vec<Stmt<'p>>,
    ) {
        let iterator = self.temp();
        self.note_iterated(&value);
        // V8 has the text of a value for declarations only.
        let origin = if mode.bind == Bind::Declare { mode.origin } else { Origin::Value };
        let made = self.iteration(ExprKind::Iterator(self.arena.alloc(value), origin), span);
        effect(ExprKind::SetTemp(iterator, self.arena.alloc(made)), span, out);
        for item in items {
            match item {
                None => {
                    let next = self.iteration(ExprKind::IteratorNext(iterator), span);
                    out.push(stmt(StmtKind::Expr(next), span));
                }
                Some(item) => {
                    let next = match item.kind {
                        PatternKind::Rest(_) => ExprKind::IteratorRest(iterator),
                        _ => ExprKind::IteratorNext(iterator),
                    };
                    let next = self.iteration(next, item.span);
                    self.pattern(item, next, mode.inner(), out);
                }
            }
        }
        // Closing runs functions of the script only.
        if self.assumed.iterables {
            let close = self.iteration(ExprKind::IteratorClose(iterator), span);
            out.push(stmt(StmtKind::Expr(close), span));
        }
    }

    fn object_pattern(
        &mut self,
        properties: &[(Key<'_>, ast::Pattern<'_>)],
        rest: Option<&Pattern<'_>>,
        value: Expr<'p>,
        mode: Mode,
        span: Span,
        out: &mut Vec<Stmt<'p>>,
    ) {
        let first = match properties.first() {
            Some((Key::Text(name, _), _)) => Some(self.texts.intern(name)),
            Some((Key::Computed(_), _)) | None => None,
        };
        let object = if is_checked(properties, rest) {
            self.required_object(value, first, mode, span, out)
        } else {
            self.slot_of(value, span, out)
        };
        let mut taken = Vec::new();
        for (key, target) in properties {
            let value = self.taken_property(key, object, rest.is_some().then_some(&mut taken), mode.bind, out);
            self.pattern(target, value, mode.inner(), out);
        }
        if let Some(rest) = rest {
            if mode.bind == Bind::Declare && !matches!(rest.kind, PatternKind::Name(_)) {
                let message = "`...` must be followed by an identifier in declaration contexts";
                self.error(Diagnostic::syntax(message, rest.span));
            }
            self.pattern(
                rest,
                expr(ExprKind::ObjectRest(object, self.arena.copy(&taken)), rest.span),
                mode.inner(),
                out,
            );
        }
    }

    /// Returns a slot with the value, which must be an object to take properties from.
    fn required_object(
        &mut self,
        value: Expr<'p>,
        first: Option<TextId>,
        mode: Mode,
        span: Span,
        out: &mut Vec<Stmt<'p>>,
    ) -> Slot {
        let (at, known) = (value.span, known_slot(&value));
        let required = ExprKind::RequireObject { value: self.arena.alloc(value), first, origin: mode.origin };
        match known {
            Some(slot) => {
                effect(required, span, out);
                slot
            }
            None => self.slot_of(expr(required, at), span, out),
        }
    }

    /// Returns a slot with the value.
    fn slot_of(&mut self, value: Expr<'p>, span: Span, out: &mut Vec<Stmt<'p>>) -> Slot {
        known_slot(&value).unwrap_or_else(|| {
            let slot = self.temp();
            effect(ExprKind::SetTemp(slot, self.arena.alloc(value)), span, out);
            slot
        })
    }

    /// Returns the value of a property of a pattern; notes its key for the rest.
    fn taken_property(
        &mut self,
        key: &Key<'_>,
        object: Slot,
        taken: Option<&mut Vec<Expr<'p>>>,
        bind: Bind,
        out: &mut Vec<Stmt<'p>>,
    ) -> Expr<'p> {
        let (name, span) = match key {
            Key::Text(name, span) => (Some(self.property_name(name, *span)), *span),
            Key::Computed(key) => (self.constant_key(key), key.span),
        };
        let from = expr(ExprKind::Temp(object), span);
        let kind = match (name, key) {
            (Some(name), _) => {
                if let Some(taken) = taken {
                    taken.push(expr(ExprKind::String(name), span));
                }
                self.constant_index(from, name, span)
            }
            (None, Key::Computed(key)) => {
                let mut key = self.expression(key);
                if taken.is_some() || bind == Bind::Assign {
                    let value = expr(ExprKind::Unary(Unary::ToPropertyKey, self.arena.alloc(key)), span);
                    let (set, again) = self.save(value);
                    if let (Some(taken), ExprKind::Temp(slot)) = (taken, &again.kind) {
                        taken.push(expr(ExprKind::Temp(*slot), span));
                    }
                    // The key comes before the object that is assigned to.
                    effect(set.kind, span, out);
                    key = again;
                }
                ExprKind::Index(self.arena.alloc(from), self.arena.alloc(key))
            }
            (None, Key::Text(..)) => ExprKind::Undefined,
        };
        expr(kind, span)
    }
}

/// Whether a value is checked before an object pattern takes it apart. Where the first target is a member, V8 evaluates
/// its object and key first, and the access to the value throws.
fn is_checked(properties: &[(Key<'_>, ast::Pattern<'_>)], rest: Option<&Pattern<'_>>) -> bool {
    let first = match properties.first() {
        Some((Key::Text(..), target)) => target,
        Some((Key::Computed(_), _)) => return true,
        None => match rest {
            Some(rest) => rest,
            None => return true,
        },
    };
    let target = if let PatternKind::Default(target, _) = &first.kind { target } else { first };
    !matches!(target.kind, PatternKind::Member(_))
}

/// Returns the slot that a value is in already.
fn known_slot(value: &Expr<'_>) -> Option<Slot> {
    if let ExprKind::Temp(slot) = value.kind { Some(slot) } else { None }
}

/// `value === undefined`
pub(super) fn is_undefined<'p>(arena: &'p Arena, value: Expr<'p>) -> Expr<'p> {
    let span = value.span;
    let undefined = arena.alloc(expr(ExprKind::Undefined, span));
    expr(ExprKind::Binary(Binary::StrictEqual, arena.alloc(value), undefined), span)
}

/// Adds a step that is an expression.
pub(super) fn effect<'p>(kind: ExprKind<'p>, span: Span, out: &mut Vec<Stmt<'p>>) {
    out.push(stmt(StmtKind::Expr(expr(kind, span)), span));
}
