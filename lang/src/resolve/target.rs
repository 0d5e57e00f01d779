//! Assignments to names and properties: plain, compound, logical, `++` and `--`.
//!
//! A compound assignment uses its object twice. An object that is a variable is read twice, because nothing
//! runs between the two reads; anything else is evaluated into a temporary.

use super::Resolver;
use super::pattern::Bind;
use super::reference::step;
use super::scope::Kind;
use crate::ast::{self, Arena, AssignOp, ExprKind as E, PatternKind};
use crate::program::*;
use crate::span::Span;

type Ast<'s> = ast::Node<E<'s>>;
type Pattern<'s> = ast::Node<PatternKind<'s>>;

/// A property that is assigned to.
#[derive(Clone, Copy)]
struct Member<'p> {
    object: Expr<'p>,
    key: MemberKey<'p>,
    span: Span,
}

#[derive(Clone, Copy)]
enum MemberKey<'p> {
    Name(TextId),
    Index(Expr<'p>),
}

impl<'p> Member<'p> {
    fn load(self, arena: &'p Arena) -> ExprKind<'p> {
        match self.key {
            MemberKey::Name(name) => ExprKind::Member(arena.alloc(self.object), name),
            MemberKey::Index(key) => ExprKind::Index(arena.alloc(self.object), arena.alloc(key)),
        }
    }

    fn store(self, arena: &'p Arena, value: Expr<'p>) -> ExprKind<'p> {
        match self.key {
            MemberKey::Name(name) => ExprKind::SetMember(arena.alloc(self.object), name, arena.alloc(value)),
            MemberKey::Index(key) => ExprKind::SetIndex(arena.alloc(self.object), arena.alloc(key), arena.alloc(value)),
        }
    }
}

impl<'p> Resolver<'_, 'p> {
    /// Resolves an assignment; `used` says whether its value is used.
    pub(super) fn assign(
        &mut self,
        operator: AssignOp,
        target: &Pattern<'_>,
        value: &Ast<'_>,
        span: Span,
        used: bool,
    ) -> Expr<'p> {
        let kind = match (&target.kind, operator) {
            (PatternKind::Name(name), _) => self.assign_name(operator, name, target.span, value, span),
            (PatternKind::Member(member), AssignOp::Plain) => self.assign_member(member, value),
            (PatternKind::Member(member), AssignOp::Binary(operator)) => {
                self.assign_member_with(member, operator, value, span)
            }
            (PatternKind::Member(member), AssignOp::Logical(operator)) => {
                self.assign_member_if(member, operator, value, span)
            }
            (PatternKind::Array(_) | PatternKind::Object(..) | PatternKind::Default(..) | PatternKind::Rest(_), _) => {
                self.assign_pattern(target, value, span, used)
            }
        };
        expr(kind, span)
    }

    /// `name = value`, `name += value`, `name ??= value`
    fn assign_name(&mut self, operator: AssignOp, name: &str, at: Span, value: &Ast<'_>, span: Span) -> ExprKind<'p> {
        // A target in parentheses gives its name to no function.
        let gives_name = at.start == span.start;
        match operator {
            AssignOp::Plain => {
                let value = self.value_of(name, value, gives_name);
                self.write(name, at, value)
            }
            AssignOp::Binary(operator) => {
                let old = self.arena.alloc(self.read(name, at));
                let value = self.arena.alloc(self.expression(value));
                self.write(name, at, expr(ExprKind::Binary(operator, old, value), span))
            }
            AssignOp::Logical(operator) => {
                let old = self.arena.alloc(self.read(name, at));
                let value = self.value_of(name, value, gives_name);
                ExprKind::Logical(operator, old, self.arena.alloc(expr(self.write(name, at, value), span)))
            }
        }
    }

    /// Resolves the value that is assigned to a variable.
    fn value_of(&mut self, name: &str, value: &Ast<'_>, gives_name: bool) -> Expr<'p> {
        if !gives_name {
            return self.expression(value);
        }
        let name = self.texts.intern(name.as_bytes());
        self.named(value, name)
    }

    /// `[a, b] = value`
    fn assign_pattern(&mut self, target: &Pattern<'_>, value: &Ast<'_>, span: Span, used: bool) -> ExprKind<'p> {
        let origin = Origin::Source(value.span);
        let mut value = self.expression(value);
        let mut items = Vec::new();
        let mut result = None;
        if used {
            let (first, again) = self.save(value);
            items.push(first);
            if let ExprKind::Temp(slot) = again.kind {
                result = Some(expr(ExprKind::Temp(slot), span));
            }
            value = again;
        }
        let mut steps = Vec::new();
        self.pattern(target, value, Bind::Assign.from(origin), &mut steps);
        items.extend(steps.into_iter().filter_map(|step| match step.kind {
            StmtKind::Expr(step) => Some(step),
            _ => None,
        }));
        items.extend(result);
        ExprKind::Sequence(self.arena.copy(&items))
    }

    /// `object.name = value`
    fn assign_member(&mut self, member: &Ast<'_>, value: &Ast<'_>) -> ExprKind<'p> {
        let member = self.member_target(member);
        let value = self.expression(value);
        self.store(member, value)
    }

    /// `object.name += value`
    fn assign_member_with(&mut self, member: &Ast<'_>, operator: Binary, value: &Ast<'_>, span: Span) -> ExprKind<'p> {
        let member = self.member_target(member);
        let (target, again) = self.member_twice(member);
        let old = self.arena.alloc(expr(again.load(self.arena), target.span));
        let value = self.arena.alloc(self.expression(value));
        target.store(self.arena, expr(ExprKind::Binary(operator, old, value), span))
    }

    /// `object.name ??= value`
    fn assign_member_if(&mut self, member: &Ast<'_>, operator: Logical, value: &Ast<'_>, span: Span) -> ExprKind<'p> {
        let member = self.member_target(member);
        let (first, target) = self.member_twice(member);
        let first_span = first.span;
        let old = self.arena.alloc(expr(first.load(self.arena), first_span));
        let value = self.expression(value);
        ExprKind::Logical(operator, old, self.arena.alloc(expr(self.store(target, value), span)))
    }

    /// `target = value` where the value is known already: an item of a pattern.
    pub(super) fn assign_to_member(&mut self, member: &Ast<'_>, value: Expr<'p>) -> ExprKind<'p> {
        let member = self.member_target(member);
        self.store(member, value)
    }

    fn store(&mut self, member: Member<'p>, value: Expr<'p>) -> ExprKind<'p> {
        if let MemberKey::Name(name) = member.key {
            self.note_written(name, &value);
        }
        member.store(self.arena, value)
    }

    /// `++target`, `target++`
    pub(super) fn update_target(&mut self, target: &Pattern<'_>, delta: i8, prefix: bool, span: Span) -> Expr<'p> {
        let kind = match &target.kind {
            PatternKind::Name(name) => self.update(name, target.span, delta, prefix),
            PatternKind::Member(member) => self.update_member(member, delta, prefix, span),
            // The grammar lets no other target pass.
            PatternKind::Array(_) | PatternKind::Object(..) | PatternKind::Default(..) | PatternKind::Rest(_) => {
                ExprKind::Undefined
            }
        };
        expr(kind, span)
    }

    fn update_member(&mut self, member: &Ast<'_>, delta: i8, prefix: bool, span: Span) -> ExprKind<'p> {
        let member = self.member_target(member);
        let (target, again) = self.member_twice(member);
        let old = self.arena.alloc(expr(again.load(self.arena), target.span));
        let old = expr(ExprKind::Unary(Unary::ToNumeric, old), span);
        if prefix {
            return target.store(self.arena, expr(step(delta, self.arena.alloc(old)), span));
        }
        let (old, result) = self.save(old);
        let store = target.store(self.arena, expr(step(delta, self.arena.alloc(old)), span));
        ExprKind::Sequence(self.arena.copy(&[expr(store, span), result]))
    }

    /// Resolves the property that a target names.
    fn member_target(&mut self, member: &Ast<'_>) -> Member<'p> {
        let span = member.span;
        match &member.kind {
            E::Member(object, name, _) => {
                if matches!(object.kind, E::Name("this")) {
                    self.member_of_this = Some(name.text.to_owned());
                }
                let object = self.expression(object);
                self.member_of_this = None;
                let key = self.property_name(name.text.as_bytes(), name.span);
                self.check_static(&object, key, span, None);
                Member { object, key: MemberKey::Name(key), span }
            }
            E::Index(object, key, _) => {
                let object = self.expression(object);
                let key = match self.constant_key(key) {
                    Some(key) => self.constant_member_key(key, span),
                    None => MemberKey::Index(self.expression(key)),
                };
                Member { object, key, span }
            }
            // The grammar lets no other target pass.
            _ => {
                let object = self.expression(member);
                Member { object, key: MemberKey::Index(expr(ExprKind::Undefined, span)), span }
            }
        }
    }

    /// Returns a property for two uses; the first one is evaluated first.
    fn member_twice(&mut self, member: Member<'p>) -> (Member<'p>, Member<'p>) {
        let span = member.span;
        match member.key {
            MemberKey::Name(name) => {
                let (object, again) = duplicate(self, member.object);
                let key = MemberKey::Name(name);
                (Member { object, key, span }, Member { object: again, key: MemberKey::Name(name), span })
            }
            MemberKey::Index(key) => {
                let (object, object_again) = if runs_nothing(&key) {
                    duplicate(self, member.object)
                } else {
                    self.duplicate_across_calls(member.object)
                };
                // It is converted to a property key each time, as in V8.
                let (key, key_again) =
                    if let ExprKind::Number(_) = key.kind { duplicate(self, key) } else { self.save(key) };
                let first = Member { object, key: MemberKey::Index(key), span };
                (first, Member { object: object_again, key: MemberKey::Index(key_again), span })
            }
        }
    }

    /// Returns a value and the same value again, even if a function of the script runs between the two.
    pub(super) fn duplicate_across_calls(&mut self, value: Expr<'p>) -> (Expr<'p>, Expr<'p>) {
        if let ExprKind::Read(variable) = value.kind
            && self.bindings[variable.reference.binding].kind == Kind::Const
        {
            return duplicate(self, value);
        }
        self.save(value)
    }

    /// Returns the expression that evaluates a value into a temporary, and the temporary.
    pub(super) fn save(&mut self, value: Expr<'p>) -> (Expr<'p>, Expr<'p>) {
        let slot = self.temp();
        let span = value.span;
        (expr(ExprKind::SetTemp(slot, self.arena.alloc(value)), span), expr(ExprKind::Temp(slot), span))
    }

    /// `object[key]` with a known key.
    pub(super) fn constant_index(&mut self, object: Expr<'p>, key: TextId, span: Span) -> ExprKind<'p> {
        let key = self.constant_member_key(key, span);
        Member { object, key, span }.load(self.arena)
    }

    /// Returns a known key: a number where it is an array index.
    fn constant_member_key(&self, key: TextId, span: Span) -> MemberKey<'p> {
        match array_index(self.texts.get(key)) {
            Some(index) => MemberKey::Index(expr(ExprKind::Number(f64::from(index)), span)),
            None => MemberKey::Name(key),
        }
    }
}

/// Returns a value and the same value again, where nothing between the two changes a variable.
pub(super) fn duplicate<'p>(resolver: &mut Resolver<'_, 'p>, value: Expr<'p>) -> (Expr<'p>, Expr<'p>) {
    let again = match &value.kind {
        ExprKind::Read(variable) => ExprKind::Read(Variable { checked: false, ..*variable }),
        ExprKind::Temp(slot) => ExprKind::Temp(*slot),
        ExprKind::Global(name) => ExprKind::Global(*name),
        ExprKind::Number(value) => ExprKind::Number(*value),
        _ => return resolver.save(value),
    };
    let span = value.span;
    (value, expr(again, span))
}

/// Whether evaluating this runs no function of the script and assigns nothing.
fn runs_nothing(value: &Expr<'_>) -> bool {
    match &value.kind {
        ExprKind::Read(_) | ExprKind::Temp(_) | ExprKind::Global(_) | ExprKind::Number(_) | ExprKind::String(_) => true,
        ExprKind::Member(object, _) => runs_nothing(object),
        _ => false,
    }
}

/// Returns the array index that a key stands for.
pub(super) fn array_index(key: &[u8]) -> Option<u32> {
    if key.first()?.is_ascii_digit() {
        let text = std::str::from_utf8(key).ok()?;
        let index = text.parse::<u32>().ok()?;
        (index != u32::MAX && (text.len() == 1 || !text.starts_with('0'))).then_some(index)
    } else {
        None
    }
}

/// Creates an expression. Not inlined: assignments make many, and are fewer than other expressions.
fn expr(kind: ExprKind<'_>, span: Span) -> Expr<'_> {
    super::expr(kind, span)
}
