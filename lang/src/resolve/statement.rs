//! Statements.

use super::label::LabelKind;
use super::pattern::{Bind, effect};
use super::refuse::Loop;
use super::scope::{Kind, ScopeKind, each_name};
use super::{Resolver, expr, stmt};
use crate::ast::{self, Arena, Declares, ForHead, PatternKind, StmtKind as S};
use crate::diagnostic::Diagnostic;
use crate::program::*;
use crate::span::Span;

type Ast<'s> = ast::Node<S<'s>>;
type Value<'s> = ast::Node<ast::ExprKind<'s>>;

/// Where the value of a statement goes that may be the result of the script.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tail {
    /// Nothing comes behind it.
    Return,
    /// It is kept while declarations behind it run.
    Keep(Slot),
}

impl<'p> Resolver<'_, 'p> {
    /// Resolves the statements of a block whose scope has been entered and whose functions are made.
    pub(super) fn statements(&mut self, statements: &[ast::Stmt<'_>], out: &mut Vec<Stmt<'p>>) {
        let Some(tail) = self.tail.take() else {
            statements.iter().for_each(|statement| self.statement(statement, out));
            return;
        };
        // Declarations behind the last value do not change it.
        let last = statements.iter().rposition(|statement| !is_empty(statement));
        let declares = |statement: &ast::Stmt<'_>| matches!(statement.kind, S::Declare(..) | S::Block(_));
        let more = last.is_some_and(|last| statements[last + 1..].iter().any(declares));
        let inner = if let (Tail::Return, true) = (tail, more) {
            let slot = self.temp();
            let span = Span::default();
            effect(ExprKind::SetTemp(slot, self.arena.alloc(expr(ExprKind::Undefined, span))), span, out);
            Tail::Keep(slot)
        } else {
            tail
        };
        for (index, statement) in statements.iter().enumerate() {
            self.tail = (Some(index) == last).then_some(inner);
            self.statement(statement, out);
        }
        self.tail = None;
        if let (Tail::Return, Tail::Keep(slot)) = (tail, inner) {
            let span = Span::default();
            out.push(stmt(StmtKind::Return(Some(expr(ExprKind::Temp(slot), span))), span));
        }
    }

    pub(super) fn statement(&mut self, statement: &Ast<'_>, out: &mut Vec<Stmt<'p>>) {
        let span = statement.span;
        let tail = self.tail.take();
        if tail.is_some() && is_repeated(statement) {
            return self.with_completion(statement, tail, out);
        }
        if self.current.completion.is_some() && has_own_value(statement) {
            self.set_completion(span, out);
        }
        match &statement.kind {
            S::Block(body) => {
                self.tail = tail;
                self.current.nesting += 1;
                self.block(body, out);
                self.current.nesting -= 1;
            }
            S::Break(label) => self.jump(label.as_ref(), false, span, out),
            S::Continue(label) => self.jump(label.as_ref(), true, span, out),
            S::Declare(declares, declarators) => self.declaration(*declares, declarators, out),
            S::DoWhile(body, test) => self.do_while(body, test, span, out),
            // Functions are made at the head of their block.
            S::Empty | S::Function(_) => {}
            S::Expr(value) => self.expression_statement(value, tail, span, out),
            S::For(init, test, update, body) => {
                self.for_loop(init.as_deref(), test.as_deref(), update.as_deref(), body, span, out);
            }
            S::ForIn(head, object, body) => self.for_each(ForEach::In, head, object, body, span, out),
            S::ForOf(false, head, items, body) => self.for_each(ForEach::Of, head, items, body, span, out),
            S::ForOf(true, head, items, body) => self.for_each(ForEach::AwaitOf, head, items, body, span, out),
            S::If(test, yes, no) => self.if_statement(test, yes, no.as_deref(), tail, span, out),
            S::Labeled(name, body) => self.labeled(name, body, span, out),
            S::Return(value) => {
                let value = value.as_ref().map(|value| self.expression(value));
                // An async generator awaits it.
                let awaits = self.current.is_async && self.current.is_generator && value.is_some();
                let statement = stmt(StmtKind::Return(value), span);
                out.push(Stmt { splits: statement.splits | awaits, ..statement });
            }
            S::Switch(subject, cases) => self.switch(subject, cases, span, out),
            S::Throw(value) => {
                let value = self.expression(value);
                out.push(stmt(StmtKind::Throw(value), span));
            }
            S::Try(body, catch, finally) => {
                self.try_statement(body, catch.as_ref(), finally.as_deref(), tail, span, out);
            }
            S::While(test, body) => self.while_loop(test, body, span, out),
        }
    }

    /// Resolves a last statement of which any part can give the value: it is the value of the part that ran last
    /// (ECMA-262, `UpdateEmpty`), so each of them keeps its own.
    fn with_completion(&mut self, statement: &Ast<'_>, tail: Option<Tail>, out: &mut Vec<Stmt<'p>>) {
        let span = statement.span;
        let slot = self.temp();
        self.current.completion = Some(slot);
        if !has_own_value(statement) {
            self.set_completion(span, out);
        }
        self.statement(statement, out);
        self.current.completion = None;
        let value = expr(ExprKind::Temp(slot), span);
        out.push(match tail {
            Some(Tail::Keep(slot)) => {
                stmt(StmtKind::Expr(expr(ExprKind::SetTemp(slot, self.arena.alloc(value)), span)), span)
            }
            _ => stmt(StmtKind::Return(Some(value)), span),
        });
    }

    /// Makes the completion value `undefined` again.
    fn set_completion(&mut self, span: Span, out: &mut Vec<Stmt<'p>>) {
        if let Some(slot) = self.current.completion {
            effect(ExprKind::SetTemp(slot, self.arena.alloc(expr(ExprKind::Undefined, span))), span, out);
        }
    }

    /// Resolves the statements of a block with its scope.
    fn block(&mut self, statements: &[ast::Stmt<'_>], out: &mut Vec<Stmt<'p>>) {
        let declares = |statement: &ast::Stmt<'_>| matches!(statement.kind, S::Declare(..) | S::Function(_));
        if !statements.iter().any(declares) {
            return self.statements(statements, out);
        }
        let tail = self.tail.take();
        let at = out.len();
        self.enter(ScopeKind::Block);
        self.declare_lexical(statements);
        self.hoist(statements, out);
        self.tail = tail;
        self.statements(statements, out);
        self.leave_into(out, at);
    }

    fn block_list(&mut self, statements: &[ast::Stmt<'_>]) -> &'p [Stmt<'p>] {
        let mut list = self.list();
        self.current.nesting += 1;
        self.block(statements, &mut list);
        self.current.nesting -= 1;
        self.end_list(list)
    }

    /// Resolves a statement inside another one.
    pub(super) fn nested(&mut self, statement: &Ast<'_>) -> &'p Stmt<'p> {
        let mut list = self.list();
        self.current.nesting += 1;
        self.statement(statement, &mut list);
        self.current.nesting -= 1;
        self.one(list, statement.span)
    }

    /// Makes one statement of a list.
    fn one(&mut self, list: Vec<Stmt<'p>>, span: Span) -> &'p Stmt<'p> {
        match self.end_list(list) {
            [only] => only,
            list => self.arena.alloc(stmt(StmtKind::Block(list), span)),
        }
    }

    fn expression_statement(&mut self, value: &Value<'_>, tail: Option<Tail>, span: Span, out: &mut Vec<Stmt<'p>>) {
        let kind = match tail.or(self.current.completion.map(Tail::Keep)) {
            None => StmtKind::Expr(self.effect(value)),
            Some(Tail::Return) => StmtKind::Return(Some(self.expression(value))),
            Some(Tail::Keep(slot)) => {
                let value = self.expression(value);
                StmtKind::Expr(expr(ExprKind::SetTemp(slot, self.arena.alloc(value)), span))
            }
        };
        out.push(stmt(kind, span));
    }

    fn if_statement(
        &mut self,
        test: &Value<'_>,
        yes: &Ast<'_>,
        no: Option<&Ast<'_>>,
        tail: Option<Tail>,
        span: Span,
        out: &mut Vec<Stmt<'p>>,
    ) {
        let test = self.expression(test);
        self.tail = tail;
        let yes = self.nested(yes);
        self.tail = tail;
        let no = no.map(|no| self.nested(no));
        self.tail = None;
        out.push(stmt(StmtKind::If(test, yes, no), span));
    }

    // ---- Declarations --------------------------------------------------------------------------

    fn declaration(&mut self, declares: Declares, declarators: &[ast::Declarator<'_>], out: &mut Vec<Stmt<'p>>) {
        for declarator in declarators {
            let target = &declarator.target;
            if declares == Declares::Var {
                self.check_var(target);
            }
            match (&target.kind, &declarator.init) {
                (PatternKind::Name(name), Some(init)) => {
                    let name = self.texts.intern(name.as_bytes());
                    let value = self.initial_value(name, init);
                    out.push(self.initialize(name, value, target.span.to(init.span)));
                }
                (PatternKind::Name(_), None) if declares == Declares::Var => {}
                (PatternKind::Name(name), None) => {
                    let name = self.texts.intern(name.as_bytes());
                    out.push(self.initialize(name, expr(ExprKind::Undefined, target.span), target.span));
                }
                (_, Some(init)) => {
                    let value = self.expression(init);
                    self.pattern(target, value, Bind::Declare.from(Origin::Source(init.span)), out);
                }
                // The grammar wants a value here.
                (_, None) => {}
            }
        }
    }

    /// Resolves the value of `name = value`.
    fn initial_value(&mut self, name: TextId, init: &Value<'_>) -> Expr<'p> {
        let binding = self.texts.facts(name).binding.filter(|_| matches!(init.kind, ast::ExprKind::Function(_)));
        let Some(binding) = binding else {
            if !matches!(init.kind, ast::ExprKind::Object(_)) {
                return self.named(init, name);
            }
            let mark = self.holders.variable(name);
            let value = self.named(init, name);
            self.holders.end(mark);
            return value;
        };
        self.bindings[binding].in_own_function = true;
        let value = self.named(init, name);
        self.bindings[binding].in_own_function = false;
        value
    }

    /// Checks that no block between a `var` and its function declares its name.
    fn check_var(&mut self, target: &ast::Pattern<'_>) {
        each_name(target, &mut |name, span| {
            let id = self.texts.intern(name.as_bytes());
            let Some(binding) = self.texts.facts(id).binding else { return };
            let binding = &self.bindings[binding];
            let is_inner = !matches!(self.scopes[binding.scope].kind, ScopeKind::Function | ScopeKind::Main);
            if is_inner && !matches!(binding.kind, Kind::Catch | Kind::Itself) {
                self.already_declared(name, span);
            }
        });
    }

    // ---- Loops ---------------------------------------------------------------------------------

    fn while_loop(&mut self, test: &Value<'_>, body: &Ast<'_>, span: Span, out: &mut Vec<Stmt<'p>>) {
        self.check_loop(Loop::While, span);
        let (label, mark) = self.current.labels.begin(LabelKind::Loop);
        let test = Some(self.expression(test));
        let body = self.nested(body);
        self.current.labels.end(mark);
        let each = ForLoop { label, test, update: None, body, fresh: &[] };
        out.push(stmt(StmtKind::For(self.arena.alloc(each)), span));
    }

    fn do_while(&mut self, body: &Ast<'_>, test: &Value<'_>, span: Span, out: &mut Vec<Stmt<'p>>) {
        self.check_loop(Loop::DoWhile, span);
        let (label, mark) = self.current.labels.begin(LabelKind::Loop);
        let body = self.nested(body);
        let test = self.expression(test);
        self.current.labels.end(mark);
        out.push(stmt(StmtKind::DoWhile { label, body, test }, span));
    }

    fn for_loop(
        &mut self,
        init: Option<&Ast<'_>>,
        test: Option<&Value<'_>>,
        update: Option<&Value<'_>>,
        body: &Ast<'_>,
        span: Span,
        out: &mut Vec<Stmt<'p>>,
    ) {
        self.check_loop(if test.is_some() { Loop::For } else { Loop::EndlessFor }, span);
        let at = out.len();
        let (label, mark) = self.current.labels.begin(LabelKind::Loop);
        self.enter(ScopeKind::Block);
        self.current.nesting += 1;
        if let Some(init) = init {
            if let S::Declare(declares @ (Declares::Const | Declares::Let), declarators) = &init.kind {
                declarators.iter().for_each(|declarator| self.declare_pattern(declarator.target, (*declares).into()));
            }
            let completion = self.current.completion.take();
            self.statement(init, out);
            self.current.completion = completion;
            self.separate_from_init(init.span, out);
        }
        let test = test.map(|test| self.expression(test));
        let body = self.nested(body);
        let update = update.map(|update| self.effect(update));
        self.current.nesting -= 1;
        let last = self.scopes.last().and_then(|scope| scope.last);
        self.leave_into(out, at);
        self.current.labels.end(mark);
        let bindings = self.bindings.of_scope(last).map(|id| &self.bindings[id]);
        let cells = bindings.filter(|binding| binding.kind == Kind::Let && binding.is_cell);
        let fresh = self.arena.copy(&cells.map(|binding| binding.slot).collect::<Vec<_>>());
        let each = ForLoop { label, test, update, body, fresh };
        out.push(stmt(StmtKind::For(self.arena.alloc(each)), span));
    }

    /// Keeps the variables for functions made by the head of a loop as they were before the first turn.
    fn separate_from_init(&mut self, span: Span, out: &mut Vec<Stmt<'p>>) {
        let last = self.scopes.last().and_then(|scope| scope.last);
        let is_captured = |id: &BindingId| self.bindings[*id].kind == Kind::Let && self.bindings[*id].captured;
        let captured: Vec<BindingId> = self.bindings.of_scope(last).filter(is_captured).collect();
        for id in captured {
            let binding = &mut self.bindings[id];
            // What was captured before is not what is captured from now on.
            binding.captured_early = true;
            let variable = Variable { reference: id.into(), name: binding.name, checked: false };
            let (set, again) = self.save(expr(ExprKind::Read(variable), span));
            effect(set.kind, span, out);
            out.push(stmt(StmtKind::Enter(id.into(), Initial::Uninitialized), span));
            out.push(self.init(id, again, span));
        }
    }

    fn for_each(
        &mut self,
        kind: ForEach,
        head: &ForHead<'_>,
        items: &Value<'_>,
        body: &Ast<'_>,
        span: Span,
        out: &mut Vec<Stmt<'p>>,
    ) {
        self.check_for_each(kind, span);
        let (label, mark) = self.current.labels.begin(LabelKind::Loop);
        let iterable = self.items(head, items);
        if kind != ForEach::In {
            self.note_iterated(&iterable);
        }
        let iterator = self.temp();
        self.current.nesting += 1;
        let mut list = self.list();
        self.enter(ScopeKind::Block);
        let (item, name) = self.bind_item(head, &mut list);
        self.statement(body, &mut list);
        let item = self.leave_with_item(item, name, &mut list);
        self.current.nesting -= 1;
        self.current.labels.end(mark);
        let body = self.one(list, body.span);
        let iterates = kind == ForEach::Of && self.assumed.iterables;
        let each = EachLoop { label, kind, iterable, iterator, item, body };
        let statement = stmt(StmtKind::ForEach(self.arena.alloc(each)), span);
        out.push(Stmt { splits: statement.splits | iterates, ..statement });
    }

    fn check_for_each(&mut self, kind: ForEach, span: Span) {
        match kind {
            ForEach::Of => self.check_loop(Loop::ForOf, span),
            ForEach::In => self.check_loop(Loop::ForIn, span),
            ForEach::AwaitOf => {
                self.check_loop(Loop::ForAwait, span);
                self.check_await(span);
            }
        }
    }

    /// Resolves the value that a loop iterates over: the names of its head are in the TDZ.
    fn items(&mut self, head: &ForHead<'_>, items: &Value<'_>) -> Expr<'p> {
        let ForHead::Declare(Declares::Const | Declares::Let, target) = head else { return self.expression(items) };
        self.enter(ScopeKind::Block);
        self.declare_pattern(target, Kind::Tdz);
        let iterable = self.expression(items);
        self.leave();
        iterable
    }

    /// Binds the item at the head of the body; returns its slot, and the binding where it is one name.
    fn bind_item(&mut self, head: &ForHead<'_>, out: &mut Vec<Stmt<'p>>) -> (Slot, Option<BindingId>) {
        match head {
            ForHead::Declare(declares @ (Declares::Const | Declares::Let), target) => {
                if let PatternKind::Name(name) = &target.kind {
                    let binding = self.declare(name, (*declares).into(), target.span);
                    self.initialized(binding);
                    return (self.bindings[binding].slot, Some(binding));
                }
                let item = self.temp();
                self.declare_pattern(target, (*declares).into());
                self.pattern(target, expr(ExprKind::Temp(item), target.span), Bind::Declare.from(Origin::Item), out);
                (item, None)
            }
            ForHead::Declare(Declares::Var, target) => {
                let item = self.temp();
                self.check_var(target);
                self.pattern(target, expr(ExprKind::Temp(item), target.span), Bind::Declare.from(Origin::Item), out);
                (item, None)
            }
            ForHead::Assign(target) => {
                let item = self.temp();
                self.pattern(target, expr(ExprKind::Temp(item), target.span), Bind::Assign.from(Origin::Value), out);
                (item, None)
            }
        }
    }

    /// Leaves the scope of an item. A name that lives in a slot holds the item itself; one in a cell
    /// is initialized from it.
    fn leave_with_item(&mut self, item: Slot, name: Option<BindingId>, list: &mut Vec<Stmt<'p>>) -> Slot {
        let enters = self.leave();
        let mut slot = item;
        if let Some(id) = name
            && self.bindings[id].is_cell
        {
            let span = self.bindings[id].span;
            slot = self.temp();
            let init = self.init(id, expr(ExprKind::Temp(slot), span), span);
            list.insert(0, init);
        }
        list.splice(0..0, enters);
        slot
    }

    // ---- switch and try ------------------------------------------------------------------------

    fn switch(&mut self, subject: &Value<'_>, cases: &[ast::Case<'_>], span: Span, out: &mut Vec<Stmt<'p>>) {
        if let Some(second) = cases.iter().filter(|case| case.test.is_none()).nth(1) {
            let span = second.body.first().map_or(span, |first| first.span);
            self.error(Diagnostic::syntax("More than one default clause in switch statement", span));
        }
        let (label, mark) = self.current.labels.begin(LabelKind::Switch);
        let subject = self.expression(subject);
        let slot = self.temp();
        let at = out.len();
        self.enter(ScopeKind::Switch);
        cases.iter().for_each(|case| self.declare_lexical(case.body));
        self.current.nesting += 1;
        cases.iter().for_each(|case| self.hoist(case.body, out));
        let cases = self.arena.collect(cases.iter().map(|case| self.case(case)));
        self.current.nesting -= 1;
        self.leave_into(out, at);
        self.current.labels.end(mark);
        out.push(stmt(StmtKind::Switch(self.arena.alloc(Switch { label, subject, slot, cases })), span));
    }

    fn case(&mut self, case: &ast::Case<'_>) -> Case<'p> {
        let test = case.test.as_ref().map(|test| self.expression(test));
        let mark = self.initialized_in_case.len();
        let mut body = self.list();
        self.statements(case.body, &mut body);
        // Another case does not know whether this one has run.
        for id in self.initialized_in_case.drain(mark..) {
            self.bindings[id].initialized = false;
        }
        Case { test, body: self.end_list(body) }
    }

    fn try_statement(
        &mut self,
        body: &[ast::Stmt<'_>],
        catch: Option<&ast::Catch<'_>>,
        finally: Option<&[ast::Stmt<'_>]>,
        tail: Option<Tail>,
        span: Span,
        out: &mut Vec<Stmt<'p>>,
    ) {
        self.tail = tail;
        let body = self.block_list(body);
        self.tail = None;
        let catch = catch.map(|catch| self.catch(catch, tail));
        let finally = finally.map(|finally| self.finally(finally));
        let completion = (self.temp(), self.temp());
        out.push(stmt(StmtKind::Try(self.arena.alloc(Try { body, catch, finally, completion })), span));
    }

    /// Resolves a block whose completion value counts only if it is left by a jump.
    fn finally(&mut self, body: &[ast::Stmt<'_>]) -> &'p [Stmt<'p>] {
        let Some(completion) = self.current.completion else { return self.block_list(body) };
        let span = Span::default();
        let mut list = self.list();
        let before = self.temp();
        let value = expr(ExprKind::Temp(completion), span);
        effect(ExprKind::SetTemp(before, self.arena.alloc(value)), span, &mut list);
        self.set_completion(span, &mut list);
        list.extend_from_slice(self.block_list(body));
        let value = expr(ExprKind::Temp(before), span);
        effect(ExprKind::SetTemp(completion, self.arena.alloc(value)), span, &mut list);
        self.end_list(list)
    }

    fn catch(&mut self, catch: &ast::Catch<'_>, tail: Option<Tail>) -> (Slot, &'p [Stmt<'p>]) {
        let mut list = self.list();
        self.current.nesting += 1;
        self.enter(ScopeKind::Block);
        let (slot, name) = match &catch.binding {
            None => (self.temp(), None),
            Some(target) => self.bind_caught(target, &mut list),
        };
        self.declare_lexical(catch.body);
        self.hoist(catch.body, &mut list);
        // What the block has given before it failed does not count.
        self.set_completion(Span::default(), &mut list);
        self.tail = tail;
        self.statements(catch.body, &mut list);
        self.tail = None;
        let slot = self.leave_with_item(slot, name, &mut list);
        self.current.nesting -= 1;
        (slot, self.end_list(list))
    }

    fn bind_caught(&mut self, target: &ast::Pattern<'_>, out: &mut Vec<Stmt<'p>>) -> (Slot, Option<BindingId>) {
        if let PatternKind::Name(name) = &target.kind {
            let binding = self.declare(name, Kind::Catch, target.span);
            self.initialized(binding);
            return (self.bindings[binding].slot, Some(binding));
        }
        let slot = self.temp();
        self.declare_pattern(target, Kind::Let);
        self.pattern(target, expr(ExprKind::Temp(slot), target.span), Bind::Declare.from(Origin::Value), out);
        (slot, None)
    }
}

/// Whether a statement gives no value to a script of which it is the last one.
pub(super) fn is_empty(statement: &ast::Stmt<'_>) -> bool {
    match &statement.kind {
        S::Declare(..) | S::Empty | S::Function(_) => true,
        S::Block(body) => body.iter().all(is_empty),
        _ => false,
    }
}

/// Whether parts of a statement may run several times or be left by a jump.
fn is_repeated(statement: &Ast<'_>) -> bool {
    use ast::StmtKind::{DoWhile, For, ForIn, ForOf, Labeled, Switch, While};
    matches!(statement.kind, DoWhile(..) | For(..) | ForIn(..) | ForOf(..) | Labeled(..) | Switch(..) | While(..))
}

/// Whether a statement without a value in it gives `undefined`, where others leave the value before it.
fn has_own_value(statement: &Ast<'_>) -> bool {
    match &statement.kind {
        S::If(..) | S::Try(..) => true,
        S::Labeled(..) => false,
        _ => is_repeated(statement),
    }
}

/// Makes statements return no value: the script has another result than the value of its last statement.
pub(super) fn discard_result<'p>(arena: &'p Arena, statements: &mut [Stmt<'p>]) {
    for statement in statements {
        *statement = without_result(arena, *statement);
    }
}

fn without_result<'p>(arena: &'p Arena, statement: Stmt<'p>) -> Stmt<'p> {
    let one = |statement: &Stmt<'p>| arena.alloc(without_result(arena, *statement));
    let list = |body: &[Stmt<'p>]| arena.collect(body.iter().map(|statement| without_result(arena, *statement)));
    let kind = match statement.kind {
        StmtKind::Return(value) => StmtKind::Expr(value.unwrap_or_else(|| expr(ExprKind::Undefined, statement.span))),
        StmtKind::Block(body) => StmtKind::Block(list(body)),
        StmtKind::If(test, yes, no) => StmtKind::If(test, one(yes), no.map(one)),
        StmtKind::Try(attempt) => StmtKind::Try(arena.alloc(Try {
            body: list(attempt.body),
            catch: attempt.catch.map(|(slot, handler)| (slot, list(handler))),
            ..*attempt
        })),
        kind => kind,
    };
    Stmt { kind, ..statement }
}
