//! Questions about parts of the program that decide how they are lowered.

use super::Lowering;
use agentscript_lang::program::{
    Argument, Callee, Element, Expr, ExprKind, Label, Place, Property, Stmt, StmtKind, Variable,
};

/// Call `visit` for each direct part of an expression, without going into functions.
pub(super) fn each_part<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    let arguments = |arguments: &'e [Argument], visit: &mut dyn FnMut(&'e Expr)| {
        arguments.iter().for_each(|argument| visit(&argument.value));
    };
    match &expr.kind {
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
        | ExprKind::IteratorRest(_) => {}
        ExprKind::Template(_, parts) | ExprKind::Sequence(parts) | ExprKind::ObjectRest(_, parts) => {
            parts.iter().for_each(visit);
        }
        ExprKind::Array(elements) => elements.iter().for_each(|element| match element {
            Element::Hole => {}
            Element::Item(value) | Element::Spread(value) => visit(value),
        }),
        ExprKind::Object(_, properties) => properties.iter().for_each(|property| match property {
            Property::Named(_, value) | Property::Spread(value) => visit(value),
            Property::Computed(key, value) => {
                visit(key);
                visit(value);
            }
        }),
        ExprKind::Write(_, value)
        | ExprKind::WriteConst(_, value)
        | ExprKind::SetTemp(_, value)
        | ExprKind::WriteGlobal(_, value)
        | ExprKind::Member(value, _)
        | ExprKind::DeleteMember(value, _)
        | ExprKind::Unary(_, value)
        | ExprKind::Await(value)
        | ExprKind::RequireObject { value, .. }
        | ExprKind::Iterator(value, _) => visit(value),
        ExprKind::Index(a, b)
        | ExprKind::SetMember(a, _, b)
        | ExprKind::DeleteIndex(a, b)
        | ExprKind::Binary(_, a, b)
        | ExprKind::Logical(_, a, b) => {
            visit(a);
            visit(b);
        }
        ExprKind::SetIndex(a, b, c) | ExprKind::Conditional(a, b, c) => {
            visit(a);
            visit(b);
            visit(c);
        }
        ExprKind::Chain(first, rest) => {
            visit(first);
            rest.iter().for_each(|(_, operand)| visit(operand));
        }
        ExprKind::Call(call) => {
            match &call.callee {
                Callee::Value(value) | Callee::Member(value, _) => visit(value),
                Callee::Index(a, b) | Callee::With { function: a, this: b } => {
                    visit(a);
                    visit(b);
                }
            }
            arguments(&call.arguments, visit);
        }
        ExprKind::New(_, list) => arguments(list, visit),
    }
}

/// Whether an expression writes a slot.
pub(super) fn assigns(expr: &Expr, slot: usize) -> bool {
    let is_slot = |variable: &Variable| matches!(variable.place, Place::Slot(other) if other.0 as usize == slot);
    match &expr.kind {
        ExprKind::Write(variable, _) | ExprKind::Update { variable, .. } if is_slot(variable) => return true,
        ExprKind::SetTemp(other, _) if other.0 as usize == slot => return true,
        _ => {}
    }
    let mut found = false;
    each_part(expr, &mut |part| found = found || assigns(part, slot));
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
        StmtKind::For { .. } | StmtKind::DoWhile { .. } | StmtKind::ForEach { .. } => false,
        StmtKind::Return(_) => !in_finally,
        StmtKind::Break(label) | StmtKind::Continue(label) => inside.contains(label),
        StmtKind::Block(body) => body.iter().all(|statement| tree(statement, in_finally, inside)),
        StmtKind::If(_, yes, no) => {
            tree(yes, in_finally, inside) && no.as_ref().is_none_or(|no| tree(no, in_finally, inside))
        }
        StmtKind::Switch { label, cases, .. } => {
            inside.push(*label);
            let all = cases.iter().flat_map(|case| &case.body).all(|statement| tree(statement, in_finally, inside));
            inside.pop();
            all
        }
        StmtKind::Labeled(label, body) => {
            inside.push(*label);
            let all = tree(body, in_finally, inside);
            inside.pop();
            all
        }
        StmtKind::Try { body, catch, finally, .. } => {
            let handler = catch.iter().flat_map(|(_, body)| body);
            let finalizer = finally.iter().flatten();
            body.iter().chain(handler).chain(finalizer).all(|statement| tree(statement, in_finally, inside))
        }
    }
}
