//! The last walk, over the program: real places for variables, and what splits.

use super::scope::{Binding, NONE};
use super::{Captured, Resolver, count};
use crate::options::{Options, PlainCall};
use crate::program::*;
use hashbrown::HashMap;

/// Completes a program.
pub(super) fn finish(resolver: Resolver<'_>) -> Program {
    let Resolver { options, texts, bindings, functions, captured, captures, .. } = resolver;
    let (texts, written) = texts.into_parts();
    let mut functions = functions;
    let mut finisher = Finisher {
        options,
        fixed: vec![None; resolver.globals.len()],
        texts: &texts,
        written: &written,
        bindings: &bindings,
        captures: &captures,
        function: 0,
        parameters: 0,
        shift: 0,
    };
    for (id, (function, own)) in functions.iter_mut().zip(&captured).enumerate() {
        finisher.function = count(id);
        finisher.parameters = function.parameters;
        finisher.shift = count(own.bindings.len());
        finisher.function(function);
    }
    let fixed = finisher.fixed;
    for (id, own) in captured.iter().enumerate() {
        if !own.bindings.is_empty() {
            let slots = captured_slots(own, &functions, &captured, &bindings, &captures);
            functions[id].captures = slots;
        }
    }
    let mut free = resolver.free;
    free.sort_by_key(|(_, span)| span.start);
    Program {
        texts,
        functions,
        globals: resolver.globals,
        fixed,
        free,
        patterns: resolver.patterns,
        templates: resolver.templates,
        iterated: resolver.iterated,
        object_sites: resolver.object_sites,
        written,
    }
}

/// Where the enclosing function keeps what a function captures.
fn captured_slots(
    own: &Captured,
    functions: &[Function],
    captured: &[Captured],
    bindings: &[Binding],
    captures: &HashMap<(u32, u32), u32>,
) -> Vec<Slot> {
    let parent = own.parent as usize;
    let parameters = functions[parent].parameters;
    let shift = count(captured[parent].bindings.len());
    let slot = |&id: &u32| {
        let binding = &bindings[id as usize];
        if binding.function == own.parent {
            shifted(binding.slot, parameters, shift)
        } else {
            Slot(parameters + captures.get(&(own.parent, id)).copied().unwrap_or(0))
        }
    };
    own.bindings.iter().map(slot).collect()
}

/// A slot behind the parameters moves up to make room for the captures.
fn shifted(slot: u32, parameters: u32, shift: u32) -> Slot {
    Slot(if slot < parameters { slot } else { slot + shift })
}

struct Finisher<'a> {
    options: &'a Options<'a>,
    /// The function that each global slot holds once it is initialized.
    fixed: Vec<Option<FunctionId>>,
    texts: &'a Texts,
    written: &'a [bool],
    bindings: &'a [Binding],
    captures: &'a HashMap<(u32, u32), u32>,
    /// The function of the walk.
    function: u32,
    /// How many parameters it has.
    parameters: u32,
    /// How many captures it has.
    shift: u32,
}

impl<'a> Finisher<'a> {
    fn function(&mut self, function: &mut Function) {
        function.slots += self.shift;
        function.rest.iter_mut().for_each(|slot| self.slot(slot));
        function.itself.iter_mut().for_each(|slot| self.slot(slot));
        self.statements(&mut function.body);
    }

    // ---- Places --------------------------------------------------------------------------------

    fn slot(&self, slot: &mut Slot) {
        *slot = shifted(slot.0, self.parameters, self.shift);
    }

    fn place(&self, place: &mut Place) -> &'a Binding {
        let (Place::Slot(Slot(id)) | Place::Cell(Slot(id)) | Place::Global(id)) = *place;
        let binding = &self.bindings[id as usize];
        *place = if binding.global != NONE {
            Place::Global(binding.global)
        } else {
            let slot = if binding.function == self.function {
                shifted(binding.slot, self.parameters, self.shift)
            } else {
                Slot(self.parameters + self.captures.get(&(self.function, id)).copied().unwrap_or(0))
            };
            if binding.is_cell { Place::Cell(slot) } else { Place::Slot(slot) }
        };
        binding
    }

    fn variable(&self, variable: &mut Variable) {
        let by_hoisted = matches!(variable.place, Place::Cell(_));
        let binding = self.place(&mut variable.place);
        variable.checked &= !(by_hoisted && binding.is_safe_from_hoisted);
    }

    // ---- Statements: each gives whether it splits --------------------------------------------

    fn statements(&mut self, statements: &mut [Stmt]) -> bool {
        statements.iter_mut().fold(false, |splits, statement| splits | self.statement(statement))
    }

    fn statement(&mut self, statement: &mut Stmt) -> bool {
        statement.splits = match &mut statement.kind {
            StmtKind::Enter(place, _) => {
                self.place(place);
                false
            }
            StmtKind::Init(place, value) => {
                let binding = self.place(place);
                if let (&mut Place::Global(index), &ExprKind::Function(id)) = (place, &value.kind)
                    && binding.is_fixed()
                {
                    self.fixed[index as usize] = Some(id);
                }
                self.expression(value)
            }
            StmtKind::Expr(value) | StmtKind::Throw(value) => self.expression(value),
            StmtKind::Block(body) => self.statements(body),
            StmtKind::If(test, yes, no) => {
                self.expression(test) | self.statement(yes) | no.as_mut().is_some_and(|no| self.statement(no))
            }
            StmtKind::For(each) => {
                let ForLoop { test, update, body, fresh, .. } = &mut **each;
                fresh.iter_mut().for_each(|slot| self.fresh(slot));
                self.optional(test) | self.optional(update) | self.statement(body)
            }
            StmtKind::DoWhile { body, test, .. } => self.statement(body) | self.expression(test),
            StmtKind::ForEach(each) => {
                let EachLoop { kind, iterable, iterator, item, body, .. } = &mut **each;
                self.slot(iterator);
                self.slot(item);
                self.expression(iterable) | self.statement(body) | (*kind == ForEach::AwaitOf)
            }
            StmtKind::Switch(switch) => {
                let Switch { subject, slot, cases, .. } = &mut **switch;
                self.slot(slot);
                self.expression(subject)
                    | cases.iter_mut().fold(false, |splits, case| {
                        splits | self.optional(&mut case.test) | self.statements(&mut case.body)
                    })
            }
            StmtKind::Try(attempt) => {
                let Try { body, catch, finally, completion } = &mut **attempt;
                self.slot(&mut completion.0);
                self.slot(&mut completion.1);
                self.statements(body)
                    | catch.as_mut().is_some_and(|(slot, body)| {
                        self.slot(slot);
                        self.statements(body)
                    })
                    | finally.as_mut().is_some_and(|body| self.statements(body))
            }
            StmtKind::Labeled(_, body) => self.statement(body),
            StmtKind::Break(_) | StmtKind::Continue(_) => false,
            StmtKind::Return(value) => self.optional(value),
        };
        statement.splits
    }

    /// The slot of a cell that is named by its binding.
    fn fresh(&self, slot: &mut Slot) {
        *slot = shifted(self.bindings[slot.0 as usize].slot, self.parameters, self.shift);
    }

    // ---- Expressions: the same ---------------------------------------------------------------

    fn optional(&mut self, value: &mut Option<Expr>) -> bool {
        value.as_mut().is_some_and(|value| self.expression(value))
    }

    fn expression(&mut self, e: &mut Expr) -> bool {
        match &mut e.kind {
            ExprKind::Read(variable)
            | ExprKind::Update { variable, .. }
            | ExprKind::Write(variable, _)
            | ExprKind::WriteConst(variable, _) => self.variable(variable),
            ExprKind::Temp(slot)
            | ExprKind::SetTemp(slot, _)
            | ExprKind::ObjectRest(slot, _)
            | ExprKind::IteratorNext(slot)
            | ExprKind::IteratorRest(slot) => self.slot(slot),
            _ => {}
        }
        let mut splits = match &e.kind {
            ExprKind::Await(_) => true,
            ExprKind::Call(call) => !self.is_plain(call),
            ExprKind::New(new) => !self.is_plain_new(&new.names),
            _ => false,
        };
        e.parts_mut(&mut |part| splits |= self.expression(part));
        e.splits = splits;
        splits
    }

    // ---- Calls ---------------------------------------------------------------------------------

    fn is_plain(&self, call: &Call) -> bool {
        let is_tag =
            matches!(call.arguments.first(), Some(first) if matches!(first.value.kind, ExprKind::TemplateObject(_)));
        let call = match &call.callee {
            Callee::Value(Expr { kind: ExprKind::Global(name), .. }) if !is_tag => PlainCall::Global(self.text(*name)),
            Callee::Value(Expr { kind: ExprKind::Read(variable), .. }) if !is_tag => {
                PlainCall::Variable(self.text(variable.name))
            }
            Callee::Member(Expr { kind: ExprKind::Global(object), .. }, name) => {
                PlainCall::Static(self.text(*object), self.text(*name))
            }
            Callee::Member(_, name) if !is_tag && !self.written[name.0 as usize] => PlainCall::Method(self.text(*name)),
            Callee::Value(_) | Callee::Member(..) | Callee::Index(..) | Callee::With { .. } => return false,
        };
        (self.options.plain_call)(call)
    }

    fn is_plain_new(&self, names: &[TextId]) -> bool {
        match names {
            [name] => (self.options.plain_call)(PlainCall::New(self.text(*name))),
            _ => {
                let names = names.iter().map(|name| self.text(*name)).collect::<Vec<_>>();
                (self.options.plain_call)(PlainCall::New(&names.join(".")))
            }
        }
    }

    /// A name as the caller knows names; those it can know are UTF-8.
    fn text(&self, id: TextId) -> &str {
        std::str::from_utf8(self.texts.get(id)).unwrap_or("")
    }
}
