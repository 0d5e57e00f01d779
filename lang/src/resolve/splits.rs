//! Constructs that can be left in the middle, as far as it follows from the parts.

use crate::program::*;
use crate::span::Span;

/// Creates an expression. Where it iterates, [`Resolver::iteration`](super::Resolver::iteration) makes it.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn expr(kind: ExprKind<'_>, span: Span) -> Expr<'_> {
    let splits = expression_splits(&kind);
    Expr { kind, span, splits }
}

/// Creates a statement.
pub(super) fn stmt(kind: StmtKind<'_>, span: Span) -> Stmt<'_> {
    let splits = statement_splits(&kind);
    Stmt { kind, span, splits }
}

fn any_statement(statements: &[Stmt<'_>]) -> bool {
    statements.iter().any(|statement| statement.splits)
}

fn optional(part: Option<&Expr<'_>>) -> bool {
    part.is_some_and(|part| part.splits)
}

#[cfg_attr(not(debug_assertions), inline(always))]
fn expression_splits(kind: &ExprKind<'_>) -> bool {
    let mut splits = matches!(
        kind,
        ExprKind::Await(_)
            | ExprKind::Yield(_)
            | ExprKind::YieldStar(_)
            | ExprKind::GeneratorStart
            | ExprKind::Call(Call { splits: true, .. })
            | ExprKind::New(New { splits: true, .. })
    );
    kind.parts(|part| splits |= part.splits);
    splits
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
