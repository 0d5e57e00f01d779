//! Questions about parts of the program that decide how they are lowered.

use super::Lowering;
use agentscript_lang::program::{self, Expr, ExprKind, Label, Place, Stmt, StmtKind, Variable};

/// Whether an expression writes a slot.
pub(super) fn assigns(expr: &Expr, slot: usize) -> bool {
    let is_slot = |variable: &Variable| matches!(variable.place, Place::Slot(other) if other.0 as usize == slot);
    match &expr.kind {
        ExprKind::Write(variable, _) | ExprKind::Update { variable, .. } if is_slot(variable) => return true,
        ExprKind::SetTemp(other, _) if other.0 as usize == slot => return true,
        _ => {}
    }
    let mut found = false;
    expr.parts(&mut |part| found = found || assigns(part, slot));
    found
}

impl Lowering<'_, '_> {
    /// Whether a statement can be a tree: nothing in it suspends or loops, no jump leaves it, and no
    /// `return` has a finalizer to go to first.
    pub(super) fn is_tree(&self, statement: &Stmt) -> bool {
        let in_finally = self.scopes.iter().any(|scope| matches!(scope, super::Scope::Finally { .. }));
        tree(statement, in_finally, &mut Vec::new())
    }

    /// The same for the body of a loop, which jumps to that loop may leave.
    pub(super) fn is_tree_body(&self, body: &Stmt, label: Label) -> bool {
        let in_finally = self.scopes.iter().any(|scope| matches!(scope, super::Scope::Finally { .. }));
        tree(body, in_finally, &mut vec![label])
    }
}

fn tree(statement: &Stmt, in_finally: bool, inside: &mut Vec<Label>) -> bool {
    if statement.splits {
        return false;
    }
    match &statement.kind {
        StmtKind::Enter(..) | StmtKind::Init(..) | StmtKind::Expr(_) | StmtKind::Throw(_) => true,
        StmtKind::For(_) | StmtKind::DoWhile { .. } | StmtKind::ForEach(_) => false,
        StmtKind::Return(_) => !in_finally,
        StmtKind::Break(label) | StmtKind::Continue(label) => inside.contains(label),
        StmtKind::Block(body) => body.iter().all(|statement| tree(statement, in_finally, inside)),
        StmtKind::If(_, yes, no) => {
            tree(yes, in_finally, inside) && no.as_ref().is_none_or(|no| tree(no, in_finally, inside))
        }
        StmtKind::Switch(switch) => {
            inside.push(switch.label);
            let all =
                switch.cases.iter().flat_map(|case| &case.body).all(|statement| tree(statement, in_finally, inside));
            inside.pop();
            all
        }
        StmtKind::Labeled(label, body) => {
            inside.push(*label);
            let all = tree(body, in_finally, inside);
            inside.pop();
            all
        }
        StmtKind::Try(attempt) => {
            let program::Try { body, catch, finally, .. } = &**attempt;
            let handler = catch.iter().flat_map(|(_, body)| body);
            let finalizer = finally.iter().flatten();
            body.iter().chain(handler).chain(finalizer).all(|statement| tree(statement, in_finally, inside))
        }
    }
}
