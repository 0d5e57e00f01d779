//! Functions: the main one, parameters, hoisting.

use super::label::Labels;
use super::pattern::{Bind, effect, is_undefined};
use super::scope::{Binding, Kind, ScopeKind, each_name};
use super::statement::{Tail, discard_result, is_empty};
use super::{Captured, Resolver, count, expr, stmt};
use crate::ast::{self, Body, Declares, ExprKind as E, Key, PatternKind, StmtKind as S};
use crate::diagnostic::Diagnostic;
use crate::program::*;
use crate::span::Span;

type Pattern<'s> = ast::Node<PatternKind<'s>>;

/// The function around the position of the walk.
#[derive(Default)]
pub(super) struct Running {
    pub(super) id: u32,
    pub(super) is_async: bool,
    pub(super) is_generator: bool,
    /// How many slots hold arguments.
    pub(super) parameters: u32,
    /// Slots given away so far; those of captures come behind them.
    pub(super) slots: u32,
    /// How many statements are around the position of the walk.
    pub(super) nesting: u32,
    /// Whether the walk is among the parameters.
    pub(super) in_parameters: bool,
    pub(super) labels: Labels,
    /// Where each statement puts its value, while the walk is in a last statement that may run several of them.
    pub(super) completion: Option<Slot>,
}

/// The form of a function, as far as its head tells.
#[derive(Clone, Copy, Default)]
struct Form {
    is_async: bool,
    is_generator: bool,
    is_arrow: bool,
}

impl<'p> Resolver<'_, 'p> {
    /// Resolves the main function.
    pub(super) fn main(&mut self, script: &ast::Script<'_>) {
        let statements = script.body;
        let end = statements.last().map_or(0, |last| last.span.end);
        self.begin(None, Form { is_async: true, ..Form::default() }, Span::new(0, end));
        self.current.is_async = true;
        self.enter(ScopeKind::Main);
        let mut body = self.list();
        self.declare_lexical(statements);
        self.declare_vars(statements, false, &mut body);
        self.hoist(statements, &mut body);
        self.tail = (!self.has_return).then_some(Tail::Return);
        let exported = script.entry.and_then(|index| exported_name(&statements[index]));
        // `export default name` at the end only says which function is called.
        let only_names = |&index: &usize| {
            let rest = &statements[index + 1..];
            matches!(statements[index].kind, S::Expr(_))
                && rest.iter().all(|statement| matches!(statement.kind, S::Empty | S::Function(_)))
                && exported.is_some_and(|name| find_function(statements, name).is_some())
        };
        let run = &statements[..script.entry.filter(only_names).unwrap_or(statements.len())];
        self.statements(run, &mut body);
        if !self.has_return && !self.call_entry(statements, exported, &mut body) {
            self.call_result(run, &mut body);
            if let Some(last) = run.iter().rfind(|statement| !is_empty(statement)) {
                self.result = ResultSource::Last(last.span);
            }
        }
        self.leave_into(&mut body, 0);
        self.functions[0].slots = self.current.slots;
        self.functions[0].body = self.end_list(body);
    }

    /// When the default export or a function `main` is declared and nobody names it, it is called at
    /// the end; returns whether it is.
    fn call_entry(&mut self, statements: &[ast::Stmt<'_>], exported: Option<&str>, body: &mut Vec<Stmt<'p>>) -> bool {
        let entry = exported.unwrap_or("main");
        let name = self.texts.intern(entry.as_bytes());
        let binding = self.texts.facts(name).binding.filter(|&binding| !self.bindings[binding].referenced);
        let Some(binding) = binding else { return false };
        let Some(span) = find_function(statements, entry) else { return false };
        discard_result(self.arena, body);
        self.result = ResultSource::Entry(span);
        let function = Variable { reference: binding.into(), name, checked: false };
        let value = self.call_without_arguments(expr(ExprKind::Read(function), span));
        body.push(stmt(StmtKind::Return(Some(value)), span));
        true
    }

    /// Calls the result of the script where it is a function that stands there, unless the options say otherwise: no
    /// result can be a function, and a script that is nothing but one means what it does.
    fn call_result(&mut self, statements: &[ast::Stmt<'_>], body: &mut [Stmt<'p>]) {
        if !self.options.calls_result {
            return;
        }
        let last = statements.iter().rfind(|statement| !is_empty(statement));
        let Some(S::Expr(value)) = last.map(|last| &last.kind) else { return };
        let mut value = value;
        while let E::Paren(inner) = &value.kind {
            value = inner;
        }
        if matches!(value.kind, E::Function(_))
            && let Some(last) = body.last_mut()
            && let StmtKind::Return(Some(result)) = last.kind
        {
            let called = self.call_without_arguments(Expr { span: value.span, ..result });
            *last = stmt(StmtKind::Return(Some(called)), last.span);
        }
    }

    /// `callee()`
    fn call_without_arguments(&mut self, callee: Expr<'p>) -> Expr<'p> {
        let span = callee.span;
        self.call_of(Callee::Value(callee), &[], span, span)
    }

    /// Resolves a function expression with the name it has or is given.
    pub(super) fn function(&mut self, function: &ast::Function<'_>, name: Option<TextId>) -> FunctionId {
        self.any_function(function, name, false)
    }

    fn any_function(&mut self, function: &ast::Function<'_>, name: Option<TextId>, is_declared: bool) -> FunctionId {
        let own = function.name.as_ref().map(|name| self.texts.intern(name.text.as_bytes()));
        let &ast::Function { is_async, is_generator, is_arrow, span, .. } = function;
        self.iterables |= is_generator;
        let id = self.begin(own.or(name), Form { is_async, is_generator, is_arrow }, span);
        let parameters = count(function.params.iter().filter(|parameter| !is_rest(parameter)).count());
        let inner = Running { id, is_async, is_generator, parameters, slots: parameters, ..Running::default() };
        let outer = std::mem::replace(&mut self.current, inner);
        let in_generator = self.in_generator;
        self.in_generator |= is_generator;
        // The name of a declaration belongs to the scope around it.
        let itself = function.name.as_ref().filter(|_| !is_declared).map(|name| {
            self.enter(ScopeKind::Block);
            let binding = self.declare(name.text, Kind::Itself, name.span);
            self.bindings[binding].initialized = true;
            binding
        });
        self.function_scope(function);
        if let Some(binding) = itself {
            self.leave();
            let binding = &self.bindings[binding];
            self.functions[id as usize].itself = binding.referenced.then_some(binding.slot);
        }
        // Its objects know the function, for `instanceof`.
        if is_generator && self.functions[id as usize].itself.is_none() {
            self.functions[id as usize].itself = Some(Slot(self.current.slots));
            self.current.slots += 1;
        }
        self.functions[id as usize].slots = self.current.slots;
        self.current = outer;
        self.in_generator = in_generator;
        FunctionId(id)
    }

    /// Begins a function, which is empty for the present.
    fn begin(&mut self, name: Option<TextId>, form: Form, span: Span) -> u32 {
        let Form { is_async, is_generator, is_arrow } = form;
        let id = count(self.functions.len());
        self.captured.push(Captured { parent: self.current.id, bindings: Vec::new() });
        self.functions.push(Function {
            name,
            is_async,
            is_generator,
            is_arrow,
            parameters: 0,
            rest: None,
            length: 0,
            captures: &[],
            first_capture: 0,
            itself: None,
            boxed: &[],
            slots: 0,
            body: &[],
            span,
        });
        id
    }

    /// Resolves the parameters and the body of a function.
    fn function_scope(&mut self, function: &ast::Function<'_>) {
        self.enter(ScopeKind::Function);
        let mut body = self.list();
        let rest = self.parameters(function.params, &mut body);
        match &function.body {
            Body::Expr(value) => {
                let value = self.expression(value);
                let span = value.span;
                body.push(stmt(StmtKind::Return(Some(value)), span));
            }
            Body::Block(statements) => self.function_body(function.params, statements, &mut body),
        }
        let last = self.scopes.last().and_then(|scope| scope.last);
        self.leave_into(&mut body, 0);
        let boxed = self.boxed_parameters(last);
        let body = self.end_list(body);
        let compiled = &mut self.functions[self.current.id as usize];
        compiled.parameters = self.current.parameters;
        compiled.length = length(function.params);
        compiled.rest = rest;
        compiled.boxed = boxed;
        compiled.body = body;
    }

    fn function_body(&mut self, params: &[ast::Pattern<'_>], statements: &[ast::Stmt<'_>], body: &mut Vec<Stmt<'p>>) {
        let is_simple = params.iter().all(|parameter| matches!(parameter.kind, PatternKind::Name(_)));
        if !is_simple && let Some(directive) = statements.first().filter(|first| is_use_strict(first)) {
            let message = "Illegal 'use strict' directive in function with non-simple parameter list";
            self.error(Diagnostic::syntax(message, directive.span));
        }
        self.declare_lexical(statements);
        self.declare_vars(statements, !is_simple && params.iter().any(|parameter| has_expression(parameter)), body);
        self.hoist(statements, body);
        if self.current.is_generator {
            let span = self.functions[self.current.id as usize].span;
            effect(ExprKind::GeneratorStart, span, body);
        }
        self.statements(statements, body);
    }

    /// Of the bindings up to this one, the parameters that live in cells.
    fn boxed_parameters(&self, last: Option<BindingId>) -> &'p [Slot] {
        let bindings = self.bindings.of_scope(last).map(|id| &self.bindings[id]);
        let is_boxed = |binding: &&Binding| {
            binding.kind == Kind::Parameter && binding.is_cell && binding.slot.0 < self.current.parameters
        };
        let mut boxed: Vec<Slot> = bindings.filter(is_boxed).map(|binding| binding.slot).collect();
        boxed.reverse();
        self.arena.copy(&boxed)
    }

    // ---- Parameters ----------------------------------------------------------------------------

    /// Declares the parameters and writes what must happen to the arguments; returns the slot of the
    /// rest.
    fn parameters(&mut self, params: &[ast::Pattern<'_>], out: &mut Vec<Stmt<'p>>) -> Option<Slot> {
        if params.iter().all(|parameter| matches!(parameter.kind, PatternKind::Name(_))) {
            for (index, parameter) in params.iter().enumerate() {
                if let Some(binding) = self.declare_parameter(parameter, Slot(count(index))) {
                    self.bindings[binding].initialized = true;
                }
            }
            return None;
        }
        let mut names = Vec::with_capacity(params.len());
        for (index, parameter) in params.iter().enumerate() {
            names.push(self.declare_parameter(parameter, Slot(count(index))));
        }
        self.current.in_parameters = true;
        let mut rest = None;
        for (index, (parameter, name)) in params.iter().zip(names).enumerate() {
            let slot = Slot(count(index));
            match (&parameter.kind, name) {
                (PatternKind::Rest(target), _) => {
                    let items = self.temp();
                    rest = Some(items);
                    self.pattern(
                        target,
                        expr(ExprKind::Temp(items), target.span),
                        Bind::Declare.from(Origin::Value),
                        out,
                    );
                }
                (PatternKind::Default(target, default), Some(binding)) => {
                    let default = self.default(target, default);
                    self.bind_parameter(binding, slot, Some(default), out);
                }
                (_, Some(binding)) => self.bind_parameter(binding, slot, None, out),
                (_, None) => {
                    let argument = expr(ExprKind::Temp(slot), parameter.span);
                    self.pattern(parameter, argument, Bind::Declare.from(Origin::Value), out);
                }
            }
        }
        self.current.in_parameters = false;
        rest
    }

    /// Declares the names of a parameter; returns the binding where it is one name.
    fn declare_parameter(&mut self, parameter: &Pattern<'_>, slot: Slot) -> Option<BindingId> {
        let target = match &parameter.kind {
            PatternKind::Default(target, _) => target,
            _ => parameter,
        };
        if let PatternKind::Name(name) = &target.kind {
            return Some(self.declare_at(name, Kind::Parameter, target.span, slot));
        }
        self.declare_pattern(parameter, Kind::Parameter);
        None
    }

    /// Makes a parameter readable, whose argument is there from now on.
    fn bind_parameter(&mut self, id: BindingId, argument: Slot, default: Option<Expr<'p>>, out: &mut Vec<Stmt<'p>>) {
        let binding = &mut self.bindings[id];
        binding.initialized = true;
        let span = binding.span;
        let variable = Variable { reference: id.into(), name: binding.name, checked: false };
        if binding.captured_early {
            // A function in an earlier default must find it uninitialized: it moves out of the way.
            let argument = || expr(ExprKind::Temp(argument), span);
            binding.slot = Slot(self.current.slots);
            self.current.slots += 1;
            let value = match default {
                Some(default) => {
                    let test = is_undefined(self.arena, argument());
                    expr(
                        ExprKind::Conditional(
                            self.arena.alloc(test),
                            self.arena.alloc(default),
                            self.arena.alloc(argument()),
                        ),
                        span,
                    )
                }
                None => argument(),
            };
            out.push(self.init(id, value, span));
        } else if let Some(default) = default {
            let test = is_undefined(self.arena, expr(ExprKind::Read(variable), span));
            let init = self.init(id, default, span);
            out.push(stmt(StmtKind::If(test, self.arena.alloc(init), None), span));
        }
    }

    // ---- Hoisting ------------------------------------------------------------------------------

    /// Declares the `var`s of a function. Where parameters have expressions, a `var` of the same name
    /// is another variable that begins with the value of the parameter.
    fn declare_vars(&mut self, statements: &[ast::Stmt<'_>], own_variables: bool, out: &mut Vec<Stmt<'p>>) {
        for statement in statements {
            self.declare_vars_in(statement, own_variables, out);
        }
    }

    fn declare_vars_in(&mut self, statement: &ast::Stmt<'_>, own: bool, out: &mut Vec<Stmt<'p>>) {
        match &statement.kind {
            S::Declare(Declares::Var, declarators) => {
                declarators.iter().for_each(|declarator| self.declare_var(declarator.target, own, out));
            }
            S::Block(body) => self.declare_vars(body, own, out),
            S::DoWhile(body, _) | S::While(_, body) | S::Labeled(_, body) => self.declare_vars_in(body, own, out),
            S::For(init, _, _, body) => {
                init.iter().for_each(|init| self.declare_vars_in(init, own, out));
                self.declare_vars_in(body, own, out);
            }
            S::ForIn(head, _, body) | S::ForOf(_, head, _, body) => {
                if let ast::ForHead::Declare(Declares::Var, target) = head {
                    self.declare_var(target, own, out);
                }
                self.declare_vars_in(body, own, out);
            }
            S::If(_, yes, no) => {
                self.declare_vars_in(yes, own, out);
                no.iter().for_each(|no| self.declare_vars_in(no, own, out));
            }
            S::Switch(_, cases) => cases.iter().for_each(|case| self.declare_vars(case.body, own, out)),
            S::Try(body, catch, finally) => {
                self.declare_vars(body, own, out);
                catch.iter().for_each(|catch| self.declare_vars(catch.body, own, out));
                finally.iter().for_each(|finally| self.declare_vars(finally, own, out));
            }
            S::Return(_) if self.current.id == 0 => {
                self.result =
                    if self.has_return { ResultSource::Returns } else { ResultSource::Return(statement.span) };
                self.has_return = true;
            }
            S::Return(_) => {}
            S::Break(_)
            | S::Continue(_)
            | S::Declare(Declares::Const | Declares::Let, _)
            | S::Empty
            | S::Expr(_)
            | S::Function(_)
            | S::Throw(_) => {}
        }
    }

    fn declare_var(&mut self, target: &Pattern<'_>, own: bool, out: &mut Vec<Stmt<'p>>) {
        each_name(target, &mut |name, span| {
            let id = self.texts.intern(name.as_bytes());
            let parameter = self.texts.facts(id).binding.filter(|&existing| {
                let existing = &self.bindings[existing];
                existing.kind == Kind::Parameter && existing.function == self.current.id
            });
            if let Some(parameter) = parameter.filter(|_| own) {
                let variable = Variable { reference: parameter.into(), name: id, checked: false };
                let binding = self.declare_new(id, Kind::Var, span);
                self.bindings[binding].initialized = true;
                let value = expr(ExprKind::Read(variable), span);
                out.push(self.init(binding, value, span));
            } else {
                self.declare(name, Kind::Var, span);
            }
        });
    }

    /// Makes the functions that these statements declare, before any of them runs.
    pub(super) fn hoist(&mut self, statements: &[ast::Stmt<'_>], out: &mut Vec<Stmt<'p>>) {
        let Some(scope) = self.scopes.last_mut().filter(|scope| scope.has_functions) else { return };
        scope.is_hoisting = true;
        let depth = self.scopes.len() - 1;
        for statement in statements {
            let S::Function(function) = &statement.kind else { continue };
            let Some(name) = &function.name else { continue };
            let id = self.any_function(function, None, true);
            let value = expr(ExprKind::Function(id), function.span);
            let name = self.texts.intern(name.text.as_bytes());
            out.push(self.initialize(name, value, statement.span));
        }
        self.scopes[depth].is_hoisting = false;
    }
}

/// Returns the name in `export default name` and `export default function name() {}`.
fn exported_name<'e>(statement: &'e ast::Stmt<'_>) -> Option<&'e str> {
    match &statement.kind {
        S::Function(function) => function.name.as_ref().map(|name| name.text),
        S::Expr(value) => match &value.kind {
            E::Name(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the place of the name of a function that one of the statements declares.
fn find_function(statements: &[ast::Stmt<'_>], name: &str) -> Option<Span> {
    statements.iter().find_map(|statement| declared_function(statement, name))
}

fn declared_function(statement: &ast::Stmt<'_>, wanted: &str) -> Option<Span> {
    match &statement.kind {
        S::Function(function) => function.name.as_ref().filter(|name| name.text == wanted).map(|name| name.span),
        S::Declare(_, declarators) => declarators.iter().find_map(|declarator| {
            let is_wanted = matches!(&declarator.target.kind, PatternKind::Name(name) if *name == wanted);
            let is_function = matches!(declarator.init.as_ref()?.kind, E::Function(_));
            (is_wanted && is_function).then_some(declarator.target.span)
        }),
        _ => None,
    }
}

fn is_rest(parameter: &ast::Pattern<'_>) -> bool {
    matches!(parameter.kind, PatternKind::Rest(_))
}

/// Returns the `length` of a function: its parameters before the first one with a default.
fn length(params: &[ast::Pattern<'_>]) -> u32 {
    let plain =
        |parameter: &&ast::Pattern<'_>| !matches!(parameter.kind, PatternKind::Rest(_) | PatternKind::Default(..));
    count(params.iter().take_while(plain).count())
}

fn is_use_strict(statement: &ast::Stmt<'_>) -> bool {
    matches!(&statement.kind, S::Expr(value) if matches!(&value.kind, E::String(text) if **text == *b"use strict"))
}

/// Whether a parameter contains an expression that could see variables of the body.
fn has_expression(parameter: &Pattern<'_>) -> bool {
    match &parameter.kind {
        PatternKind::Name(_) | PatternKind::Member(_) => false,
        PatternKind::Default(..) => true,
        PatternKind::Array(items) => items.iter().flatten().any(|item| has_expression(item)),
        PatternKind::Object(properties, rest) => {
            properties.iter().any(|(key, target)| matches!(key, Key::Computed(_)) || has_expression(target))
                || rest.iter().any(|rest| has_expression(rest))
        }
        PatternKind::Rest(target) => has_expression(target),
    }
}
