//! Statements.

use super::{ENDED, FIRST_EXIT, Leave, Lowering, Scope, THROWN, Target};
use crate::eval::code::Handler;
use crate::eval::node::{
    self, AnyStatement, Block, Break, Built, Constant, Continue, EachLoop, Enter, Expression, If, Initialize, Local,
    Loop, OpKind, Return, Statement, Switch, Throw, Try, refresh,
};
use crate::value::Value;
use agentscript_lang::program::{Case, Expr, ForEach, Label, Place, Slot, Stmt, StmtKind};

impl Lowering<'_, '_> {
    /// Statements as one tree.
    pub(super) fn block(&mut self, statements: &[Stmt<'_>]) -> AnyStatement {
        match statements {
            [statement] => self.statement_tree(statement),
            _ => Box::new(Block(statements.iter().map(|statement| self.statement_tree(statement)).collect())),
        }
    }

    /// A statement that is a tree.
    pub(super) fn statement_tree(&mut self, statement: &Stmt<'_>) -> AnyStatement {
        self.builder.note(super::NODE_BYTES);
        let at = statement.span.start;
        match &statement.kind {
            StmtKind::Enter(binding, initial) => Box::new(Enter(self.place(*binding), *initial)),
            StmtKind::Init(binding, value) => match self.place(*binding) {
                Place::Slot(slot) => node::write_slot(slot.0 as usize, self.tree(value)),
                place => Box::new(Initialize(place, self.tree(value))),
            },
            StmtKind::Expr(value) => self.effect_tree(value),
            StmtKind::Block(body) => self.block(body),
            StmtKind::If(test, yes, no) => {
                let test = self.tree(test);
                let yes = self.statement_tree(yes);
                Box::new(If { test, yes, no: no.as_ref().map(|no| self.statement_tree(no)) })
            }
            StmtKind::Switch(switch) => self.switch_tree(switch.label, &switch.subject, switch.slot, switch.cases),
            StmtKind::Try(attempt) => Box::new(Try {
                body: self.block(attempt.body),
                catch: attempt.catch.as_ref().map(|(slot, body)| (slot.0 as usize, self.block(body))),
                finally: attempt.finally.as_ref().map(|body| self.block(body)),
            }),
            StmtKind::Labeled(label, body) => Box::new(node::Labeled(label.0 as usize, self.statement_tree(body))),
            StmtKind::Break(label) => Box::new(Break(label.0 as usize)),
            StmtKind::Continue(_) => Box::new(Continue),
            StmtKind::Return(value) => Box::new(Return(match value {
                Some(value) => self.tree(value),
                None => Box::new(Constant(Value::UNDEFINED)),
            })),
            StmtKind::Throw(value) => Box::new(Throw { value: self.tree(value), at }),
            // Loops are no trees.
            StmtKind::For(_) | StmtKind::DoWhile { .. } | StmtKind::ForEach(_) => Box::new(Block(Box::default())),
        }
    }

    /// The test of a `switch` subject against a case.
    fn case(&mut self, subject: Slot, test: &Expr<'_>) -> Expression {
        self.same(Built::Local(Local(subject.0 as usize)), test, false).node()
    }

    fn switch_tree(&mut self, label: Label, subject: &Expr<'_>, slot: Slot, cases: &[Case<'_>]) -> AnyStatement {
        let mut tests = Vec::with_capacity(cases.len());
        let mut statements = Vec::new();
        let subject = self.tree(subject);
        for case in cases {
            tests.push((case.test.as_ref().map(|test| self.case(slot, test)), statements.len()));
            statements.extend(case.body.iter().map(|statement| self.statement_tree(statement)));
        }
        let (label, slot) = (label.0 as usize, slot.0 as usize);
        Box::new(Switch { label, subject, slot, tests: tests.into(), statements: statements.into() })
    }

    /// Emit statements.
    pub(super) fn statements(&mut self, statements: &[Stmt<'_>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        let (keep, first) = (self.temp, self.ops.len());
        self.at(statement.span);
        if self.is_tree(statement) {
            match &statement.kind {
                StmtKind::Expr(value) => self.effect(value),
                StmtKind::Return(Some(value)) => {
                    let value = self.tree(value);
                    self.emit(OpKind::Return(value));
                }
                _ => {
                    let tree = self.statement_tree(statement);
                    self.emit(OpKind::Run(tree));
                }
            }
        } else {
            self.lower_statement(statement);
        }
        if self.ops.len() > first
            && self.repeats(statement)
            && let Some(op) = self.ops.last_mut()
            && !matches!(op.kind, OpKind::Call(..) | OpKind::CallFixed(..) | OpKind::Construct(..))
        {
            op.repeats = true;
        }
        self.temp = keep.max(self.pinned);
    }

    fn lower_statement(&mut self, statement: &Stmt<'_>) {
        let at = statement.span;
        match &statement.kind {
            StmtKind::Enter(binding, initial) => {
                let place = self.place(*binding);
                self.emit(OpKind::Run(Box::new(Enter(place, *initial))));
            }
            StmtKind::Init(binding, value) => match self.place(*binding) {
                Place::Slot(slot) => self.into_slot(value, slot),
                place => {
                    let value = self.value(value).node();
                    self.at(at);
                    self.emit(OpKind::Run(Box::new(Initialize(place, value))));
                }
            },
            StmtKind::Expr(value) => self.effect(value),
            StmtKind::Block(body) => self.statements(body),
            StmtKind::If(test, yes, no) => self.lower_if(test, yes, *no),
            StmtKind::For(each) => {
                self.lower_for(each.label, each.test.as_ref(), each.update.as_ref(), each.body, each.fresh);
            }
            StmtKind::DoWhile { label, body, test } => self.lower_do(*label, body, test),
            StmtKind::ForEach(each) => {
                self.lower_each(each.label, each.kind, &each.iterable, (each.iterator, each.item), each.body);
            }
            StmtKind::Switch(switch) => {
                self.lower_switch(switch.label, &switch.subject, switch.slot, switch.cases);
            }
            StmtKind::Try(attempt) => {
                let catch = attempt.catch.as_ref();
                self.lower_try(attempt.body, catch, attempt.finally, attempt.completion);
            }
            StmtKind::Labeled(label, body) => {
                let end = self.target();
                self.scopes.push(Scope::Target { label: label.0, break_to: end, continue_to: None });
                self.statement(body);
                self.scopes.pop();
                self.bind(end);
            }
            StmtKind::Break(label) => self.leave(Leave::Break(label.0)),
            StmtKind::Continue(label) => self.leave(Leave::Continue(label.0)),
            StmtKind::Return(value) => self.lower_return(value.as_ref(), at.start),
            StmtKind::Throw(value) => {
                let value = self.value(value).node();
                self.at(at);
                self.emit(OpKind::Throw(value));
            }
        }
    }

    fn lower_if(&mut self, test: &Expr<'_>, yes: &Stmt<'_>, no: Option<&Stmt<'_>>) {
        let (other, end) = (self.target(), self.target());
        let test = self.value(test).node();
        self.emit(OpKind::JumpUnless(test, other.0 as u32));
        self.statement(yes);
        if let Some(no) = no {
            self.jump(end);
            self.bind(other);
            self.statement(no);
        } else {
            self.bind(other);
        }
        self.bind(end);
    }

    /// Whether a loop can be one operation.
    fn is_one_op(&self, parts: [Option<&Expr<'_>>; 2], body: &Stmt<'_>, label: Label) -> bool {
        parts.into_iter().flatten().all(|part| !part.splits) && self.is_tree_body(body, label)
    }

    fn lower_for(
        &mut self,
        label: Label,
        test: Option<&Expr<'_>>,
        update: Option<&Expr<'_>>,
        body: &Stmt<'_>,
        fresh: &[Slot],
    ) {
        let fresh: Box<[usize]> = fresh.iter().map(|slot| slot.0 as usize).collect();
        if self.is_one_op([test, update], body, label) {
            let test = test.map_or_else(|| Built::Constant(Constant(Value::TRUE)).node(), |test| self.tree(test));
            let body = self.statement_tree(body);
            let update = update.map(|update| self.tree(update));
            let counted = !self.builder.is_prelude;
            return self.emit(OpKind::Loop(Box::new(Loop { test, tests_first: true, update, body, fresh, counted })));
        }
        let (start, next, end) = (self.target(), self.target(), self.target());
        self.bind(start);
        match test.map(|test| self.value(test).node()) {
            Some(test) if self.builder.is_prelude => self.emit(OpKind::JumpUnless(test, end.0 as u32)),
            Some(test) => self.emit(OpKind::While(test, end.0 as u32)),
            None => self.turn(),
        }
        self.loop_body(label, body, next, end);
        self.bind(next);
        if !fresh.is_empty() {
            self.emit(OpKind::Run(Box::new(Refresh(fresh))));
        }
        match update {
            Some(update) if !update.splits => {
                let node = self.tree(update);
                self.at(update.span);
                self.emit(OpKind::Again(node, start.0 as u32));
            }
            update => {
                if let Some(update) = update {
                    self.effect(update);
                }
                self.jump(start);
            }
        }
        self.bind(end);
    }

    pub(super) fn turn(&mut self) {
        if !self.builder.is_prelude {
            self.emit(OpKind::Turn);
        }
    }

    pub(super) fn loop_body(&mut self, label: Label, body: &Stmt<'_>, next: Target, end: Target) {
        self.scopes.push(Scope::Target { label: label.0, break_to: end, continue_to: Some(next) });
        self.statement(body);
        self.scopes.pop();
    }

    fn lower_do(&mut self, label: Label, body: &Stmt<'_>, test: &Expr<'_>) {
        if self.is_one_op([Some(test), None], body, label) {
            let test = self.tree(test);
            let body = self.statement_tree(body);
            let (fresh, counted) = (Box::default(), !self.builder.is_prelude);
            let each = Loop { test, tests_first: false, update: None, body, fresh, counted };
            return self.emit(OpKind::Loop(Box::new(each)));
        }
        let (start, next, end) = (self.target(), self.target(), self.target());
        self.bind(start);
        self.turn();
        self.loop_body(label, body, next, end);
        self.bind(next);
        let test = self.value(test).node();
        self.emit(OpKind::JumpIf(test, start.0 as u32));
        self.bind(end);
    }

    fn lower_each(&mut self, label: Label, kind: ForEach, iterable: &Expr<'_>, slots: (Slot, Slot), body: &Stmt<'_>) {
        if let Some(iterable) = self.script_iterable(kind, iterable) {
            return self.lower_script_each(label, kind, iterable, slots, body);
        }
        let (iterator, item) = slots;
        let value = self.value(iterable).node();
        self.at(iterable.span);
        self.emit(OpKind::Iterate(kind, value, iterator, iterable.span));
        if kind != ForEach::AwaitOf && self.is_tree_body(body, label) {
            let body = self.statement_tree(body);
            let (iterator, item) = (iterator.0 as usize, item.0 as usize);
            let each = EachLoop { iterator, item, body, counted: !self.builder.is_prelude };
            return self.emit(OpKind::Each(Box::new(each)));
        }
        let (next, over, end) = (self.target(), self.target(), self.target());
        self.bind(next);
        self.emit(OpKind::Next { iterator, item, end: over.0 as u32 });
        if kind == ForEach::AwaitOf {
            self.emit(OpKind::AwaitItem(item));
        }
        self.turn();
        if kind == ForEach::AwaitOf {
            self.closing_body(label, body, next, end, item);
        } else {
            self.loop_body(label, body, next, end);
            self.jump(next);
        }
        self.bind(over);
        if kind == ForEach::AwaitOf {
            // The end of the iterator is awaited like an item.
            self.set(item, Box::new(Constant(Value::UNDEFINED)));
            self.emit(OpKind::AwaitItem(item));
        }
        self.bind(end);
    }

    /// The body of `for await`: leaving it early awaits the closing of the iterator.
    fn closing_body(&mut self, label: Label, body: &Stmt<'_>, next: Target, end: Target, item: Slot) {
        let close = |this: &mut Self| this.emit(OpKind::Await(Box::new(Constant(Value::UNDEFINED)), item));
        let completion = (self.temp(), self.temp());
        let broken = self.target();
        let guarded = |this: &mut Self| {
            this.loop_body(label, body, next, broken);
            this.jump(next);
        };
        self.guarded(completion, guarded, close);
        self.bind(broken);
        close(self);
        self.jump(end);
    }

    fn lower_switch(&mut self, label: Label, subject: &Expr<'_>, slot: Slot, cases: &[Case<'_>]) {
        self.into_slot(subject, slot);
        let end = self.target();
        let starts: Vec<Target> = cases.iter().map(|_| self.target()).collect();
        let mut default = end;
        for (case, &start) in cases.iter().zip(&starts) {
            let Some(test) = &case.test else {
                default = start;
                continue;
            };
            let keep = self.temp;
            let test = self.case(slot, test);
            self.emit(OpKind::JumpIf(test, start.0 as u32));
            self.temp = keep;
        }
        self.jump(default);
        self.scopes.push(Scope::Target { label: label.0, break_to: end, continue_to: None });
        for (case, start) in cases.iter().zip(starts) {
            self.bind(start);
            self.statements(case.body);
        }
        self.scopes.pop();
        self.bind(end);
    }

    fn lower_return(&mut self, value: Option<&Expr<'_>>, at: u32) {
        let value: Expression = match value {
            Some(value) if self.awaits_return => {
                let slot = self.temp();
                self.await_into(value, slot, at);
                Box::new(Local(slot.0 as usize))
            }
            Some(value) => self.value(value).node(),
            None => Box::new(Constant(Value::UNDEFINED)),
        };
        self.at = at;
        let finally = self.scopes.iter().rev().find_map(|scope| match scope {
            Scope::Finally { value, .. } => Some(*value),
            Scope::Target { .. } => None,
        });
        match finally {
            Some(slot) => {
                self.set(slot, value);
                self.leave(Leave::Return);
            }
            None => self.emit(OpKind::Return(value)),
        }
    }

    /// Emit an exit: a jump, or through the finalizers in between.
    fn leave(&mut self, way: Leave) {
        for index in (0..self.scopes.len()).rev() {
            match (&mut self.scopes[index], way) {
                (Scope::Target { label, break_to, .. }, Leave::Break(wanted)) if *label == wanted => {
                    let target = *break_to;
                    return self.jump(target);
                }
                (Scope::Target { label, continue_to: Some(target), .. }, Leave::Continue(wanted))
                    if *label == wanted =>
                {
                    let target = *target;
                    return self.jump(target);
                }
                (Scope::Finally { kind, start, exits, .. }, way) => {
                    let number = exits.iter().position(|&exit| exit == way).unwrap_or_else(|| {
                        exits.push(way);
                        exits.len() - 1
                    });
                    let (kind, start) = (*kind, *start);
                    self.set_number(kind, (number + FIRST_EXIT) as f64);
                    return self.jump(start);
                }
                _ => {}
            }
        }
    }

    fn lower_try(
        &mut self,
        body: &[Stmt<'_>],
        catch: Option<&(Slot, &[Stmt<'_>])>,
        finally: Option<&[Stmt<'_>]>,
        completion: (Slot, Slot),
    ) {
        let Some(finally) = finally else {
            return self.lower_catch(body, catch);
        };
        self.guarded(completion, |this| this.lower_catch(body, catch), |this| this.statements(finally));
    }

    /// Emit `body` guarded by `finally`, which runs on every exit.
    pub(super) fn guarded(
        &mut self,
        completion: (Slot, Slot),
        body: impl FnOnce(&mut Self),
        finally: impl FnOnce(&mut Self),
    ) {
        let guard = self.guard(completion);
        body(self);
        self.unguard(guard, finally);
    }

    /// What is emitted from here on is guarded.
    pub(super) fn guard(&mut self, (kind, value): (Slot, Slot)) -> Guard {
        let start = self.target();
        self.scopes.push(Scope::Finally { kind, value, start, exits: Vec::new() });
        Guard { kind, value, start, from: self.ops.len() as u32 }
    }

    /// The end of what is guarded; `finally` runs on every exit.
    pub(super) fn unguard(&mut self, guard: Guard, finally: impl FnOnce(&mut Self)) {
        let Guard { kind, value, start, from } = guard;
        let caught = self.target();
        let Some(Scope::Finally { exits, .. }) = self.scopes.pop() else { return };
        self.set_number(kind, ENDED);
        let to = self.ops.len() as u32;
        self.jump(start);
        self.bind(caught);
        let target = self.ops.len() as u32;
        self.handlers.push(Handler { from, to, target, slot: value });
        self.set_number(kind, THROWN);
        self.bind(start);
        finally(self);
        // Dispatch on the exit that was taken.
        let (end, rethrow) = (self.target(), self.target());
        let ways: Vec<Target> = exits.iter().map(|_| self.target()).collect();
        let targets = [end, rethrow].iter().chain(&ways).map(|target| target.0 as u32).collect();
        self.emit(OpKind::Dispatch(kind, targets));
        self.bind(rethrow);
        self.emit(OpKind::Rethrow(value));
        for (way, target) in exits.into_iter().zip(ways) {
            self.bind(target);
            if way == Leave::Return {
                self.return_slot(value);
            } else {
                self.leave(way);
            }
        }
        self.bind(end);
    }

    /// Return the value in a slot, through the enclosing finalizers.
    pub(super) fn return_slot(&mut self, slot: Slot) {
        let value: Expression = Box::new(Local(slot.0 as usize));
        let outer = self.scopes.iter().rev().find_map(|scope| match scope {
            Scope::Finally { value, .. } => Some(*value),
            Scope::Target { .. } => None,
        });
        match outer {
            Some(outer) => {
                self.set(outer, value);
                self.leave(Leave::Return);
            }
            None => self.emit(OpKind::Return(value)),
        }
    }

    fn lower_catch(&mut self, body: &[Stmt<'_>], catch: Option<&(Slot, &[Stmt<'_>])>) {
        let from = self.ops.len() as u32;
        self.statements(body);
        let Some((slot, handler)) = catch else { return };
        let to = self.ops.len() as u32;
        let end = self.target();
        self.jump(end);
        let target = self.ops.len() as u32;
        self.handlers.push(Handler { from, to, target, slot: *slot });
        self.statements(handler);
        self.bind(end);
    }
}

/// The beginning of what is guarded by a finalizer.
pub(super) struct Guard {
    kind: Slot,
    value: Slot,
    start: Target,
    from: u32,
}

/// New cells for the variables of a loop.
struct Refresh(Box<[usize]>);

impl Statement for Refresh {
    fn exec(&self, vm: &mut crate::eval::vm::Vm, fp: &crate::eval::stack::Slots) -> node::Flow {
        refresh(vm, fp, &self.0);
        node::Flow::Normal
    }
}
