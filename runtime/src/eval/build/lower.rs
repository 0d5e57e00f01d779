//! Predicates on parts of the program that decide how they are lowered.

use super::Lowering;
use agentscript_lang::program::{self, Expr, ExprKind, Label, Place, Stmt, StmtKind, Variable};
use hashbrown::HashMap;
use std::sync::LazyLock;

/// What a built-in function changes, for the operations that may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// It may change something, and may fail after that.
    Any,
    /// It only makes a value.
    None,
    /// It changes something, after all that may fail.
    Last,
}

/// Built-in functions that allocate and have no effect, by name.
const PURE: &[&str] = &[
    "Array",
    "Boolean",
    "Number",
    "String",
    "at",
    "charAt",
    "charCodeAt",
    "codePointAt",
    "concat",
    "endsWith",
    "entries",
    "flat",
    "fromEntries",
    "get",
    "getOwnPropertyNames",
    "has",
    "hasOwn",
    "includes",
    "indexOf",
    "isArray",
    "join",
    "keys",
    "lastIndexOf",
    "normalize",
    "of",
    "padEnd",
    "padStart",
    "parseFloat",
    "parseInt",
    "repeat",
    "replaceAll",
    "slice",
    "split",
    "startsWith",
    "structuredClone",
    "substr",
    "substring",
    "toFixed",
    "toLowerCase",
    "toReversed",
    "toSpliced",
    "toString",
    "toUpperCase",
    "trim",
    "trimEnd",
    "trimStart",
    "values",
    "with",
];

/// Built-in functions whose effect comes last.
const CHANGE_LAST: &[&str] = &["add", "push", "set"];

/// Returns the effect of built-in functions of a name.
fn effect_of(name: &[u8]) -> Effect {
    static EFFECTS: LazyLock<HashMap<&[u8], Effect>> = LazyLock::new(|| {
        let pure = PURE.iter().map(|name| (name.as_bytes(), Effect::None));
        pure.chain(CHANGE_LAST.iter().map(|name| (name.as_bytes(), Effect::Last))).collect()
    });
    EFFECTS.get(name).copied().unwrap_or(Effect::Any)
}

impl Lowering<'_, '_> {
    /// Whether an expression writes a slot.
    pub(super) fn assigns(&self, expr: &Expr<'_>, slot: usize) -> bool {
        let is_slot = |variable: &Variable| matches!(self.place(variable.reference), Place::Slot(other) if other.0 as usize == slot);
        match &expr.kind {
            ExprKind::Write(variable, _) | ExprKind::Update { variable, .. } if is_slot(variable) => return true,
            ExprKind::SetTemp(other, _) if other.0 as usize == slot => return true,
            _ => {}
        }
        let mut found = false;
        expr.parts(&mut |part| found = found || self.assigns(part, slot));
        found
    }

    /// Whether a statement that is one operation may be retried after running out of memory.
    pub(super) fn repeats(&self, statement: &Stmt<'_>) -> bool {
        match &statement.kind {
            StmtKind::Init(_, value) | StmtKind::Return(Some(value)) => self.is_pure_operation(value),
            StmtKind::Expr(value) => match &value.kind {
                ExprKind::Write(_, value) => self.is_pure_operation(value),
                ExprKind::SetMember(..) | ExprKind::SetIndex(..) => self.are_parts_pure(value),
                ExprKind::Call(call) => self.has_effect(call, Effect::Last) && self.are_parts_pure(value),
                _ => self.is_pure(value),
            },
            _ => false,
        }
    }

    /// The same for a call of a built-in function that is its own operation.
    pub(super) fn repeats_call(&self, call: &program::Call<'_>) -> bool {
        call.arguments.iter().all(|argument| self.is_pure(&argument.value))
    }

    /// Whether the operation that gives a value has no effect.
    fn is_pure_operation(&self, value: &Expr<'_>) -> bool {
        match &value.kind {
            // What is awaited is a part of the operation.
            ExprKind::Await(value) => self.is_pure(value),
            _ => self.is_pure(value),
        }
    }

    /// Whether evaluating an expression has no effect. Parts that are operations have been evaluated before.
    fn is_pure(&self, expr: &Expr<'_>) -> bool {
        match &expr.kind {
            ExprKind::Undefined
            | ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::BigInt(_)
            | ExprKind::Regex(..)
            | ExprKind::Function(_)
            | ExprKind::Read(_)
            | ExprKind::Temp(_)
            | ExprKind::Await(_)
            | ExprKind::Global(_) => true,
            ExprKind::Template(..)
            | ExprKind::Array(_)
            | ExprKind::Object(..)
            | ExprKind::Member(..)
            | ExprKind::Index(..)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Chain(_)
            | ExprKind::Conditional(..) => self.are_parts_pure(expr),
            ExprKind::Call(call) => {
                self.is_op(call) || self.has_effect(call, Effect::None) && self.are_parts_pure(expr)
            }
            _ => false,
        }
    }

    fn are_parts_pure(&self, expr: &Expr<'_>) -> bool {
        let mut all = true;
        expr.parts(&mut |part| all = all && self.is_pure(part));
        all
    }

    /// Whether a call that is a node calls a built-in function with this effect.
    fn has_effect(&self, call: &program::Call<'_>, effect: Effect) -> bool {
        let name = match &call.callee {
            program::Callee::Value(Expr { kind: ExprKind::Global(name), .. }) | program::Callee::Member(_, name) => {
                *name
            }
            program::Callee::Value(_) | program::Callee::Index(..) | program::Callee::With { .. } => return false,
        };
        effect_of(self.builder.program.text(name)) == effect && !self.is_op(call)
    }

    /// Whether a statement can be a tree: nothing in it suspends or loops, no jump leaves it, and no
    /// `return` has a finalizer to go to first.
    pub(super) fn is_tree(&self, statement: &Stmt<'_>) -> bool {
        let in_finally = self.scopes.iter().any(|scope| matches!(scope, super::Scope::Finally { .. }));
        tree(statement, in_finally, None)
    }

    /// The same for the body of a loop, which jumps to that loop may leave.
    pub(super) fn is_tree_body(&self, body: &Stmt<'_>, label: Label) -> bool {
        let in_finally = self.scopes.iter().any(|scope| matches!(scope, super::Scope::Finally { .. }));
        tree(body, in_finally, Some(&Inside { label, around: None }))
    }
}

/// The statements around, which `break` and `continue` can leave.
struct Inside<'a> {
    label: Label,
    around: Option<&'a Self>,
}

fn is_inside(label: Label, inside: Option<&Inside<'_>>) -> bool {
    std::iter::successors(inside, |inside| inside.around).any(|inside| inside.label == label)
}

fn tree(statement: &Stmt<'_>, in_finally: bool, inside: Option<&Inside<'_>>) -> bool {
    if statement.splits {
        return false;
    }
    match &statement.kind {
        StmtKind::Enter(..) | StmtKind::Init(..) | StmtKind::Expr(_) | StmtKind::Throw(_) => true,
        StmtKind::For(_) | StmtKind::DoWhile { .. } | StmtKind::ForEach(_) => false,
        StmtKind::Return(_) => !in_finally,
        StmtKind::Break(label) | StmtKind::Continue(label) => is_inside(*label, inside),
        StmtKind::Block(body) => body.iter().all(|statement| tree(statement, in_finally, inside)),
        StmtKind::If(_, yes, no) => {
            tree(yes, in_finally, inside) && no.as_ref().is_none_or(|no| tree(no, in_finally, inside))
        }
        StmtKind::Switch(switch) => {
            let inside = Inside { label: switch.label, around: inside };
            switch.cases.iter().flat_map(|case| case.body).all(|statement| tree(statement, in_finally, Some(&inside)))
        }
        StmtKind::Labeled(label, body) => tree(body, in_finally, Some(&Inside { label: *label, around: inside })),
        StmtKind::Try(attempt) => {
            let program::Try { body, catch, finally, .. } = *attempt;
            let handler = catch.iter().flat_map(|(_, body)| *body);
            let finalizer = finally.iter().flat_map(|body| *body);
            body.iter().chain(handler).chain(finalizer).all(|statement| tree(statement, in_finally, inside))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_functions_with_known_effects_exist() {
        let registry = crate::builtins::registry::registry();
        for name in PURE.iter().chain(CHANGE_LAST) {
            assert!(registry.atom(name.as_bytes()).is_some(), "{name}");
        }
    }
}
