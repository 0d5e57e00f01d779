//! Scopes and bindings: declaring, redeclaring, and what must happen when a scope is entered.

use super::{Resolver, stmt};
use crate::ast::{self, Declares, PatternKind};
use crate::diagnostic::Diagnostic;
use crate::program::{BindingId, Initial, Slot, Stmt, StmtKind, TextId};
use crate::refused;
use crate::span::Span;
use std::ops::{Index, IndexMut};

/// All bindings of a script.
pub(super) struct Bindings(Vec<Binding>);

impl Bindings {
    /// With room for so many bindings.
    pub(super) fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// Returns all bindings.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Binding> {
        self.0.iter()
    }

    fn push(&mut self, binding: Binding) -> BindingId {
        self.0.push(binding);
        BindingId::new(self.0.len() - 1)
    }

    /// Returns the bindings of a scope, from its last one on.
    pub(super) fn of_scope(&self, last: Option<BindingId>) -> impl Iterator<Item = BindingId> {
        std::iter::successors(last, |&id| self[id].previous)
    }
}

impl Index<BindingId> for Bindings {
    type Output = Binding;
    fn index(&self, id: BindingId) -> &Binding {
        &self.0[id.index()]
    }
}

impl IndexMut<BindingId> for Bindings {
    fn index_mut(&mut self, id: BindingId) -> &mut Binding {
        &mut self.0[id.index()]
    }
}

/// A declared name.
pub(super) struct Binding {
    pub(super) name: TextId,
    pub(super) kind: Kind,
    /// The function that declares it.
    pub(super) function: u32,
    /// Index of its scope among the scopes around the position of the walk.
    pub(super) scope: usize,
    /// Its slot in the frame of that function.
    pub(super) slot: Slot,
    /// Its number among the global slots.
    pub(super) global: Option<u32>,
    /// The binding that had this name before.
    shadowed: Option<BindingId>,
    /// The binding of the same scope declared before this one.
    previous: Option<BindingId>,
    /// Where the name stands.
    pub(super) span: Span,
    /// Whether its declaration has certainly run at the position of the walk.
    pub(super) initialized: bool,
    /// Whether it is assigned to after its declaration.
    pub(super) assigned: bool,
    /// Whether an inner function uses it.
    pub(super) captured: bool,
    /// Whether such a function is created before the declaration has run.
    pub(super) captured_early: bool,
    /// Whether a use may be evaluated before the declaration has run: in the temporal dead zone (TDZ), where
    /// it has one.
    pub(super) used_early: bool,
    /// Whether a function that is hoisted to the head of the scope uses it, and may be called in the TDZ.
    pub(super) used_by_hoisted: bool,
    /// Whether no hoisted function of the scope was named in the TDZ: then none was called in it.
    pub(super) hoisted_run_late: bool,
    /// Whether the walk is inside the function that is its initial value, which nobody can call before.
    pub(super) in_own_function: bool,
    /// Whether it is used at all.
    pub(super) referenced: bool,
    /// Whether it lives in a cell; known when its scope is left.
    pub(super) is_cell: bool,
}

impl Binding {
    /// Whether it never changes once its declaration has run, and cannot be read before without an error.
    pub(super) fn is_fixed(&self) -> bool {
        !self.assigned && matches!(self.kind, Kind::Const | Kind::Let | Kind::Function)
    }
}

/// Kinds of bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Const,
    Let,
    Var,
    Function,
    Parameter,
    /// `catch (name)`
    Catch,
    /// The name of a function expression, inside it.
    Itself,
    /// A name declared by the head of a loop, while the items are evaluated: always in the TDZ.
    Tdz,
}

impl From<Declares> for Kind {
    fn from(declares: Declares) -> Self {
        match declares {
            Declares::Const => Self::Const,
            Declares::Let => Self::Let,
            Declares::Var => Self::Var,
        }
    }
}

/// A scope around the position of the walk.
pub(super) struct Scope {
    pub(super) kind: ScopeKind,
    /// The binding declared last.
    pub(super) last: Option<BindingId>,
    /// Whether it declares functions.
    pub(super) has_functions: bool,
    /// Whether the walk is inside a function declared here and hoisted.
    pub(super) is_hoisting: bool,
    /// Whether a function declared here has been named by something else than these functions.
    pub(super) functions_named: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScopeKind {
    Block,
    Function,
    Main,
    Switch,
}

impl<'p> Resolver<'_, 'p> {
    /// Enters a scope.
    pub(super) fn enter(&mut self, kind: ScopeKind) {
        self.scopes.push(Scope { kind, last: None, has_functions: false, is_hoisting: false, functions_named: false });
    }

    /// Leaves a scope: decides where its bindings live, and returns the statements for its beginning.
    pub(super) fn leave(&mut self) -> Vec<Stmt<'p>> {
        let mut enters = Vec::new();
        let Some(scope) = self.scopes.pop() else { return enters };
        let mut next = scope.last;
        while let Some(id) = next {
            let binding = &mut self.bindings[id];
            self.texts.facts(binding.name).binding = binding.shadowed;
            binding.is_cell =
                binding.captured && binding.global.is_none() && (binding.assigned || binding.captured_early);
            binding.used_early |= binding.used_by_hoisted && !binding.hoisted_run_late;
            let needed = binding.is_cell || binding.used_early;
            let initial = match binding.kind {
                Kind::Const | Kind::Let | Kind::Catch => needed.then_some(Initial::Uninitialized),
                Kind::Parameter if binding.slot.0 < self.current.parameters => None,
                Kind::Parameter => needed.then_some(Initial::Uninitialized),
                Kind::Var => needed.then_some(Initial::Undefined),
                Kind::Function => binding.is_cell.then_some(Initial::Undefined),
                Kind::Itself | Kind::Tdz => None,
            };
            if let Some(initial) = initial {
                enters.push(stmt(StmtKind::Enter(id.into(), initial), binding.span));
            }
            next = binding.previous;
        }
        enters
    }

    /// Leaves a scope whose statements begin at an index of a list.
    pub(super) fn leave_into(&mut self, out: &mut Vec<Stmt<'p>>, at: usize) {
        let enters = self.leave();
        if !enters.is_empty() {
            out.splice(at..at, enters);
        }
    }

    /// Declares a name in the innermost scope, in a new slot.
    pub(super) fn declare(&mut self, name: &str, kind: Kind, span: Span) -> BindingId {
        let slot = Slot(self.current.slots);
        let binding = self.declare_at(name, kind, span, slot);
        if self.bindings[binding].slot == slot && kind != Kind::Tdz {
            self.current.slots += 1;
        }
        binding
    }

    /// Declares a name in the innermost scope.
    pub(super) fn declare_at(&mut self, name: &str, kind: Kind, span: Span, slot: Slot) -> BindingId {
        self.check_declared_name(name, span);
        let id = self.texts.intern(name.as_bytes());
        let shadowed = self.texts.facts(id).binding;
        if let Some(binding) = self.redeclared(shadowed, kind, span, name) {
            return binding;
        }
        self.push_binding(id, kind, span, slot)
    }

    /// Declares a name anew, although its scope may know it already.
    pub(super) fn declare_new(&mut self, id: TextId, kind: Kind, span: Span) -> BindingId {
        let slot = self.temp();
        self.push_binding(id, kind, span, slot)
    }

    fn push_binding(&mut self, id: TextId, kind: Kind, span: Span, slot: Slot) -> BindingId {
        let shadowed = self.texts.facts(id).binding;
        let scope = self.scopes.len().saturating_sub(1);
        let previous = self.scopes.last().and_then(|scope| scope.last);
        let binding = self.bindings.push(Binding {
            name: id,
            kind,
            function: self.current.id,
            scope,
            slot,
            global: None,
            shadowed,
            previous,
            span,
            initialized: false,
            assigned: false,
            captured: false,
            captured_early: false,
            used_early: false,
            used_by_hoisted: false,
            hoisted_run_late: false,
            in_own_function: false,
            referenced: false,
            is_cell: false,
        });
        if let Some(scope) = self.scopes.last_mut() {
            scope.last = Some(binding);
            scope.has_functions |= kind == Kind::Function;
        }
        self.texts.facts(id).binding = Some(binding);
        binding
    }

    /// Returns the binding of the same scope that a declaration means again, or conflicts with.
    fn redeclared(&mut self, existing: Option<BindingId>, kind: Kind, span: Span, name: &str) -> Option<BindingId> {
        let existing = existing.filter(|&existing| self.bindings[existing].scope + 1 == self.scopes.len())?;
        let is_block =
            self.scopes.last().is_some_and(|scope| matches!(scope.kind, ScopeKind::Block | ScopeKind::Switch));
        let old = &mut self.bindings[existing];
        match (old.kind, kind) {
            (Kind::Tdz, _) => {}
            (Kind::Parameter, Kind::Parameter) => {
                let message = "Duplicate parameter name not allowed in this context";
                self.error(Diagnostic::syntax(message, span));
            }
            (Kind::Parameter, Kind::Function) => return None,
            (Kind::Var | Kind::Parameter, Kind::Var) => {}
            (Kind::Function, Kind::Var) if !is_block => {}
            (Kind::Function, Kind::Function) if !is_block => old.assigned = true,
            _ => {
                let later = if old.span.start > span.start { old.span } else { span };
                self.already_declared(name, later);
            }
        }
        Some(existing)
    }

    /// Reports a name that is declared twice.
    pub(super) fn already_declared(&mut self, name: &str, span: Span) {
        let hint = "use another name, or assign to the variable without declaring it again";
        self.error(Diagnostic::syntax(format!("Identifier '{name}' has already been declared"), span).with_hint(hint));
    }

    /// Names that cannot be declared.
    fn check_declared_name(&mut self, name: &str, span: Span) {
        if refused::is_refused_everywhere(name)
            && let Some(row) = refused::name(name)
        {
            self.refuse(row.at(span));
        }
    }

    /// Declares what the statements of a block declare for the whole block.
    pub(super) fn declare_lexical(&mut self, statements: &[ast::Stmt<'_>]) {
        for statement in statements {
            match &statement.kind {
                ast::StmtKind::Declare(declares @ (Declares::Const | Declares::Let), declarators) => {
                    for declarator in *declarators {
                        self.declare_pattern(declarator.target, (*declares).into());
                    }
                }
                ast::StmtKind::Function(function) => {
                    if let Some(name) = &function.name {
                        self.declare(name.text, Kind::Function, name.span);
                    }
                }
                _ => {}
            }
        }
    }

    /// Declares the names of a pattern.
    pub(super) fn declare_pattern(&mut self, pattern: &ast::Node<PatternKind<'_>>, kind: Kind) {
        each_name(pattern, &mut |name, span| {
            self.declare(name, kind, span);
        });
    }
}

/// Calls `found` for the names that a binding pattern binds.
pub(super) fn each_name(pattern: &ast::Node<PatternKind<'_>>, found: &mut dyn FnMut(&str, Span)) {
    match &pattern.kind {
        PatternKind::Name(name) => found(name, pattern.span),
        PatternKind::Array(items) => items.iter().flatten().for_each(|item| each_name(item, found)),
        PatternKind::Default(target, _) | PatternKind::Rest(target) => each_name(target, found),
        PatternKind::Object(properties, rest) => {
            properties.iter().for_each(|(_, target)| each_name(target, found));
            rest.iter().for_each(|rest| each_name(rest, found));
        }
        PatternKind::Member(_) => {}
    }
}
