//! What can be left in the middle, as far as it follows from the parts.

use crate::program::*;
use crate::span::Span;

/// An expression. Where it iterates, [`Resolver::iteration`](super::Resolver::iteration) makes it.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn expr(kind: ExprKind<'_>, span: Span) -> Expr<'_> {
    let splits = expression_splits(&kind);
    Expr { kind, span, splits }
}

/// A statement.
pub(super) fn stmt(kind: StmtKind<'_>, span: Span) -> Stmt<'_> {
    let splits = statement_splits(&kind);
    Stmt { kind, span, splits }
}

fn any(parts: &[Expr<'_>]) -> bool {
    parts.iter().any(|part| part.splits)
}

fn any_argument(arguments: &[Argument<'_>]) -> bool {
    arguments.iter().any(|argument| argument.value.splits)
}

fn any_statement(statements: &[Stmt<'_>]) -> bool {
    statements.iter().any(|statement| statement.splits)
}

fn optional(part: Option<&Expr<'_>>) -> bool {
    part.is_some_and(|part| part.splits)
}

// Little of it is left where the kind is known. Without optimisation the callers, which recur, would have larger frames.
#[cfg_attr(not(debug_assertions), inline(always))]
fn expression_splits(kind: &ExprKind<'_>) -> bool {
    match kind {
        ExprKind::Undefined
        | ExprKind::Null
        | ExprKind::Bool(_)
        | ExprKind::Number(_)
        | ExprKind::String(_)
        | ExprKind::BigInt(_)
        | ExprKind::Regex(..)
        | ExprKind::TemplateObject(_)
        | ExprKind::Function(_)
        | ExprKind::Read(_)
        | ExprKind::Update { .. }
        | ExprKind::Temp(_)
        | ExprKind::Global(_)
        | ExprKind::TypeofGlobal(_)
        | ExprKind::Uninitialized(_)
        | ExprKind::IteratorNext(_)
        | ExprKind::IteratorRest(_)
        | ExprKind::IteratorClose(_) => false,
        ExprKind::Await(_) | ExprKind::Yield(_) | ExprKind::YieldStar(_) | ExprKind::GeneratorStart => true,
        ExprKind::Write(_, value)
        | ExprKind::WriteConst(_, value)
        | ExprKind::SetTemp(_, value)
        | ExprKind::WriteGlobal(_, value)
        | ExprKind::Member(value, _)
        | ExprKind::DeleteMember(value, _)
        | ExprKind::Unary(_, value)
        | ExprKind::RequireObject { value, .. }
        | ExprKind::Iterator(value, _) => value.splits,
        ExprKind::Index(a, b)
        | ExprKind::SetMember(a, _, b)
        | ExprKind::DeleteIndex(a, b)
        | ExprKind::Binary(_, a, b)
        | ExprKind::Logical(_, a, b) => a.splits | b.splits,
        ExprKind::SetIndex(a, b, c) | ExprKind::Conditional(a, b, c) => a.splits | b.splits | c.splits,
        ExprKind::Sequence(parts) | ExprKind::ObjectRest(_, parts) => any(parts),
        ExprKind::Template(_, rest) => rest.iter().any(|(hole, _)| hole.splits),
        ExprKind::Array(elements) => elements.iter().any(|element| match element {
            Element::Hole => false,
            Element::Item(value) | Element::Spread(value) => value.splits,
        }),
        ExprKind::Object(_, properties) => properties.iter().any(|property| match property {
            Property::Named(_, value) | Property::Spread(value) => value.splits,
            Property::Computed(key, value) => key.splits | value.splits,
        }),
        ExprKind::Chain(chain) => chain.first.splits || chain.rest.iter().any(|(_, operand)| operand.splits),
        ExprKind::Call(call) => call.splits || callee_splits(&call.callee) || any_argument(call.arguments),
        ExprKind::New(new) => new.splits || any_argument(new.arguments),
    }
}

fn callee_splits(callee: &Callee<'_>) -> bool {
    match callee {
        Callee::Value(value) | Callee::Member(value, _) => value.splits,
        Callee::Index(a, b) | Callee::With { function: a, this: b } => a.splits | b.splits,
    }
}

fn statement_splits(kind: &StmtKind<'_>) -> bool {
    match kind {
        StmtKind::Enter(..) | StmtKind::Break(_) | StmtKind::Continue(_) => false,
        StmtKind::Init(_, value) | StmtKind::Expr(value) | StmtKind::Throw(value) => value.splits,
        StmtKind::Block(body) => any_statement(body),
        StmtKind::If(test, yes, no) => test.splits | yes.splits || no.is_some_and(|no| no.splits),
        StmtKind::For(each) => optional(each.test.as_ref()) || optional(each.update.as_ref()) || each.body.splits,
        StmtKind::DoWhile { body, test, .. } => body.splits | test.splits,
        StmtKind::ForEach(each) => each.kind == ForEach::AwaitOf || each.iterable.splits | each.body.splits,
        StmtKind::Switch(switch) => {
            switch.subject.splits
                || switch.cases.iter().any(|case| optional(case.test.as_ref()) || any_statement(case.body))
        }
        StmtKind::Try(attempt) => {
            any_statement(attempt.body)
                || attempt.catch.is_some_and(|(_, body)| any_statement(body))
                || attempt.finally.is_some_and(any_statement)
        }
        StmtKind::Labeled(_, body) => body.splits,
        StmtKind::Return(value) => optional(value.as_ref()),
    }
}
