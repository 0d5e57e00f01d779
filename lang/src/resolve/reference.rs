//! Uses of names: reading and writing variables and free names.

use super::scope::{Kind, ScopeKind};
use super::{MAX_CAPTURES, Resolver, count, expr, stmt};
use crate::diagnostic::Diagnostic;
use crate::program::*;
use crate::span::Span;

/// The meaning of a name where it is used.
pub(super) enum Meaning {
    /// A variable.
    Variable(Variable),
    /// A variable that cannot be assigned to.
    Constant(Variable),
    /// A variable that is always in the TDZ here.
    Tdz,
    /// Nothing the script declares.
    Free,
}

impl<'p> Resolver<'_, 'p> {
    /// Returns the meaning of a name here, and notes that it is used.
    pub(super) fn meaning(&mut self, name: TextId, span: Span) -> Meaning {
        let Some(id) = self.texts.facts(name).binding else { return Meaning::Free };
        let own = self.current.id;
        let binding = &mut self.bindings[id];
        let scope = &mut self.scopes[binding.scope];
        binding.referenced = true;
        let is_lexical = matches!(binding.kind, Kind::Const | Kind::Let | Kind::Catch | Kind::Parameter);
        let mut variable = Variable { reference: id.into(), name, checked: is_lexical && !binding.initialized };
        match binding.kind {
            Kind::Tdz => return Meaning::Tdz,
            Kind::Function => scope.functions_named |= !scope.is_hoisting,
            Kind::Parameter if variable.checked && binding.function == own => return Meaning::Tdz,
            _ => {}
        }
        let is_constant = matches!(binding.kind, Kind::Const | Kind::Itself);
        if binding.function == own {
            binding.used_early |= !binding.initialized && (variable.checked || binding.kind == Kind::Var);
        } else {
            binding.captured = true;
            if !binding.initialized {
                binding.captured_early = true;
                variable.checked &= !binding.in_own_function;
                if scope.is_hoisting && variable.checked {
                    binding.used_by_hoisted = true;
                    variable.reference.is_hoisted = true;
                } else {
                    binding.used_early |= variable.checked || binding.kind == Kind::Var;
                }
            }
            if scope.kind == ScopeKind::Main {
                if binding.global.is_none() {
                    binding.global = Some(count(self.globals.len()));
                    self.globals.push(name);
                }
            } else {
                let owner = binding.function;
                self.capture(id, owner, span);
            }
        }
        if is_constant { Meaning::Constant(variable) } else { Meaning::Variable(variable) }
    }

    /// Notes that the current function and those between it and the owner capture a binding.
    fn capture(&mut self, binding: BindingId, owner: u32, span: Span) {
        if self.captures.len() > MAX_CAPTURES {
            let message = "too many variables of outer functions are used in nested functions";
            return self.error(Diagnostic::syntax(message, span));
        }
        let mut function = self.current.id;
        while function != owner {
            let captured = &mut self.captured[function as usize];
            let index = count(captured.bindings.len());
            if self.captures.try_insert((function, binding), index).is_err() {
                return;
            }
            captured.bindings.push(binding);
            function = captured.parent;
        }
    }

    /// `name`
    pub(super) fn read(&mut self, name: &str, span: Span) -> Expr<'p> {
        let id = self.texts.intern(name.as_bytes());
        match self.meaning(id, span) {
            Meaning::Variable(variable) | Meaning::Constant(variable) => expr(ExprKind::Read(variable), span),
            Meaning::Tdz => expr(ExprKind::Uninitialized(id), span),
            Meaning::Free => self.free(name, id, span),
        }
    }

    /// Resolves a free name.
    fn free(&mut self, name: &str, id: TextId, span: Span) -> Expr<'p> {
        match name {
            "undefined" => return expr(ExprKind::Undefined, span),
            "NaN" => return expr(ExprKind::Number(f64::NAN), span),
            "Infinity" => return expr(ExprKind::Number(f64::INFINITY), span),
            _ => {}
        }
        self.check_free_name(name, id, span);
        expr(ExprKind::Global(id), span)
    }

    /// `name = value`
    pub(super) fn write(&mut self, name: &str, span: Span, value: Expr<'p>) -> ExprKind<'p> {
        let id = self.texts.intern(name.as_bytes());
        match self.meaning(id, span) {
            Meaning::Variable(variable) => {
                self.assigned(&variable);
                ExprKind::Write(variable, self.arena.alloc(value))
            }
            Meaning::Constant(variable) => ExprKind::WriteConst(variable, self.arena.alloc(value)),
            Meaning::Tdz => ExprKind::Sequence(self.arena.copy(&[value, expr(ExprKind::Uninitialized(id), span)])),
            Meaning::Free => self.write_free(name, id, span, value),
        }
    }

    fn write_free(&mut self, name: &str, id: TextId, span: Span, value: Expr<'p>) -> ExprKind<'p> {
        if self.check_free_name(name, id, span) {
            self.check_global_write(name, span);
        }
        ExprKind::WriteGlobal(id, self.arena.alloc(value))
    }

    /// `++name`, `name++`
    pub(super) fn update(&mut self, name: &str, span: Span, delta: i8, prefix: bool) -> ExprKind<'p> {
        let id = self.texts.intern(name.as_bytes());
        let old = match self.meaning(id, span) {
            Meaning::Variable(variable) => {
                self.assigned(&variable);
                return ExprKind::Update { variable, delta, prefix };
            }
            Meaning::Constant(variable) => {
                let old = ExprKind::Unary(Unary::ToNumeric, self.arena.alloc(expr(ExprKind::Read(variable), span)));
                return ExprKind::WriteConst(variable, self.arena.alloc(expr(old, span)));
            }
            Meaning::Tdz => return ExprKind::Uninitialized(id),
            Meaning::Free => ExprKind::Global(id),
        };
        let value = step(
            delta,
            self.arena.alloc(expr(ExprKind::Unary(Unary::ToNumeric, self.arena.alloc(expr(old, span))), span)),
        );
        self.write_free(name, id, span, expr(value, span))
    }

    fn assigned(&mut self, variable: &Variable) {
        self.bindings[variable.reference.binding].assigned = true;
    }

    /// Returns the statement that gives a binding its first value, and notes that its declaration has run.
    pub(super) fn initialize(&mut self, name: TextId, value: Expr<'p>, span: Span) -> Stmt<'p> {
        let Some(binding) = self.texts.facts(name).binding else { return stmt(StmtKind::Expr(value), span) };
        self.initialized(binding);
        self.init(binding, value, span)
    }

    /// Returns the statement that gives a binding its first value.
    pub(super) fn init(&mut self, binding: BindingId, value: Expr<'p>, span: Span) -> Stmt<'p> {
        if let ExprKind::Function(id) = value.kind {
            self.declared.push((binding, id));
        }
        stmt(StmtKind::Init(binding.into(), value), span)
    }

    /// Notes that the declaration of a binding has run.
    pub(super) fn initialized(&mut self, id: BindingId) {
        let is_certain = self.current.nesting == 0;
        let binding = &mut self.bindings[id];
        let scope = &self.scopes[binding.scope];
        match binding.kind {
            // A `var` in a nested statement may run never or many times.
            Kind::Var if !is_certain || binding.initialized => binding.assigned = true,
            Kind::Function | Kind::Parameter | Kind::Catch if binding.initialized => binding.assigned = true,
            Kind::Const | Kind::Let if scope.kind == ScopeKind::Switch => {
                binding.initialized = true;
                self.initialized_in_case.push(id);
            }
            _ => {
                binding.initialized = true;
                binding.hoisted_run_late = !scope.functions_named;
            }
        }
    }
}

/// Returns one more or one less than a numeric value.
pub(super) fn step<'p>(delta: i8, value: &'p Expr<'p>) -> ExprKind<'p> {
    ExprKind::Unary(if delta > 0 { Unary::Increment } else { Unary::Decrement }, value)
}
