//! The last walk, over the draft: places instead of bindings, and what splits.

use super::draft::{self, BindingId, FunctionId, Pending, Slot, TextId};
use super::scope::{Binding, Bindings};
use super::{Captured, Resolver, count};
use crate::options::{Options, PlainCall};
use crate::program::*;
use hashbrown::HashMap;

/// Completes a program.
pub(super) fn finish(resolver: Resolver<'_>) -> Program {
    let Resolver { options, texts, bindings, functions, captured, captures, iterables, .. } = resolver;
    let (texts, written) = texts.into_parts();
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
        splits: false,
        iterables,
        awaits_return: false,
    };
    let mut functions: Vec<Function> = functions
        .into_iter()
        .zip(&captured)
        .enumerate()
        .map(|(id, (function, own))| {
            finisher.function = count(id);
            finisher.parameters = function.parameters;
            finisher.shift = count(own.bindings.len());
            finisher.function(function)
        })
        .collect();
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
        iterables,
        written,
    }
}

fn is_close(value: &draft::Expr) -> bool {
    matches!(value.kind, ExprKind::IteratorClose(_))
}

/// Where the enclosing function keeps what a function captures.
fn captured_slots(
    own: &Captured,
    functions: &[Function],
    captured: &[Captured],
    bindings: &Bindings,
    captures: &HashMap<(u32, BindingId), u32>,
) -> Vec<Slot> {
    let parent = own.parent as usize;
    let parameters = functions[parent].parameters;
    let shift = count(captured[parent].bindings.len());
    let slot = |&id: &BindingId| {
        let binding = &bindings[id];
        if binding.function == own.parent {
            shifted(binding.slot, parameters, shift)
        } else {
            Slot(parameters + captures.get(&(own.parent, id)).copied().unwrap_or(0))
        }
    };
    own.bindings.iter().map(slot).collect()
}

/// A slot behind the parameters moves up to make room for the captures.
fn shifted(slot: Slot, parameters: u32, shift: u32) -> Slot {
    if slot.0 < parameters { slot } else { Slot(slot.0 + shift) }
}

struct Finisher<'a> {
    options: &'a Options<'a>,
    /// The function that each global slot holds once it is initialized.
    fixed: Vec<Option<FunctionId>>,
    texts: &'a Texts,
    written: &'a [bool],
    bindings: &'a Bindings,
    captures: &'a HashMap<(u32, BindingId), u32>,
    /// The function of the walk.
    function: u32,
    /// How many parameters it has.
    parameters: u32,
    /// How many captures it has.
    shift: u32,
    /// Whether some part splits of the statement or expression that is being finished.
    splits: bool,
    /// Whether iterating may run functions of the script.
    iterables: bool,
    /// Whether the function is an async generator, where `return value` awaits the value.
    awaits_return: bool,
}

impl<'a> Finisher<'a> {
    fn function(&mut self, function: draft::Function) -> Function {
        self.awaits_return = function.is_async && function.is_generator;
        Function {
            name: function.name,
            is_async: function.is_async,
            is_generator: function.is_generator,
            is_arrow: function.is_arrow,
            parameters: function.parameters,
            rest: function.rest.map(|slot| self.slot(slot)),
            length: function.length,
            captures: function.captures,
            itself: function.itself.map(|slot| self.slot(slot)),
            boxed: function.boxed,
            slots: function.slots + self.shift,
            body: self.statements(function.body),
            span: function.span,
        }
    }

    // ---- Places --------------------------------------------------------------------------------

    fn slot(&self, slot: Slot) -> Slot {
        shifted(slot, self.parameters, self.shift)
    }

    fn place(&self, Pending { binding: id, .. }: Pending) -> (Place, &'a Binding) {
        let binding = &self.bindings[id];
        if let Some(global) = binding.global {
            return (Place::Global(global), binding);
        }
        let slot = if binding.function == self.function {
            self.slot(binding.slot)
        } else {
            Slot(self.parameters + self.captures.get(&(self.function, id)).copied().unwrap_or(0))
        };
        (if binding.is_cell { Place::Cell(slot) } else { Place::Slot(slot) }, binding)
    }

    fn variable(&self, variable: draft::Variable) -> Variable {
        let (place, binding) = self.place(variable.place);
        let is_safe = variable.place.is_hoisted && binding.hoisted_run_late;
        Variable { place, name: variable.name, checked: variable.checked && !is_safe }
    }

    // ---- Statements ----------------------------------------------------------------------------

    fn statements(&mut self, statements: Vec<draft::Stmt>) -> Vec<Stmt> {
        let iterables = self.iterables;
        let closes = |statement: &draft::Stmt| matches!(&statement.kind, StmtKind::Expr(value) if is_close(value));
        let keeps = move |statement: &draft::Stmt| iterables || !closes(statement);
        statements.into_iter().filter(keeps).map(|statement| self.statement(statement)).collect()
    }

    fn boxed_statement(&mut self, statement: draft::Stmt) -> Box<Stmt> {
        Box::new(self.statement(statement))
    }

    fn statement(&mut self, statement: draft::Stmt) -> Stmt {
        let outer = std::mem::take(&mut self.splits);
        let kind = match statement.kind {
            StmtKind::Enter(place, initial) => StmtKind::Enter(self.place(place).0, initial),
            StmtKind::Init(place, value) => self.init(place, value),
            StmtKind::Expr(value) => StmtKind::Expr(self.expression(value)),
            StmtKind::Throw(value) => StmtKind::Throw(self.expression(value)),
            StmtKind::Block(body) => StmtKind::Block(self.statements(body)),
            StmtKind::If(test, yes, no) => {
                let test = self.expression(test);
                let yes = self.boxed_statement(*yes);
                StmtKind::If(test, yes, no.map(|no| self.boxed_statement(*no)))
            }
            StmtKind::For(each) => self.for_loop(*each),
            StmtKind::DoWhile { label, body, test } => {
                StmtKind::DoWhile { label, body: self.boxed_statement(*body), test: self.expression(test) }
            }
            StmtKind::ForEach(each) => self.for_each(*each),
            StmtKind::Switch(switch) => self.switch(*switch),
            StmtKind::Try(attempt) => self.try_statement(*attempt),
            StmtKind::Labeled(label, body) => StmtKind::Labeled(label, self.boxed_statement(*body)),
            StmtKind::Break(label) => StmtKind::Break(label),
            StmtKind::Continue(label) => StmtKind::Continue(label),
            StmtKind::Return(value) => {
                self.splits |= self.awaits_return && value.is_some();
                StmtKind::Return(value.map(|value| self.expression(value)))
            }
        };
        let splits = std::mem::replace(&mut self.splits, outer);
        self.splits |= splits;
        Stmt { kind, span: statement.span, splits }
    }

    fn init(&mut self, place: Pending, value: draft::Expr) -> StmtKind {
        let (place, binding) = self.place(place);
        if let (Place::Global(index), &ExprKind::Function(id)) = (place, &value.kind)
            && binding.is_fixed()
        {
            self.fixed[index as usize] = Some(id);
        }
        StmtKind::Init(place, self.expression(value))
    }

    fn for_loop(&mut self, each: draft::ForLoop) -> StmtKind {
        StmtKind::For(Box::new(ForLoop {
            label: each.label,
            test: each.test.map(|test| self.expression(test)),
            update: each.update.map(|update| self.expression(update)),
            body: self.boxed_statement(*each.body),
            fresh: each.fresh.into_iter().map(|slot| self.slot(slot)).collect(),
        }))
    }

    fn for_each(&mut self, each: draft::EachLoop) -> StmtKind {
        self.splits |= each.kind == ForEach::AwaitOf || each.kind == ForEach::Of && self.iterables;
        StmtKind::ForEach(Box::new(EachLoop {
            label: each.label,
            kind: each.kind,
            iterable: self.expression(each.iterable),
            iterator: self.slot(each.iterator),
            item: self.slot(each.item),
            body: self.boxed_statement(*each.body),
        }))
    }

    fn switch(&mut self, switch: draft::Switch) -> StmtKind {
        let subject = self.expression(switch.subject);
        let case = |case: draft::Case| Case {
            test: case.test.map(|test| self.expression(test)),
            body: self.statements(case.body),
        };
        let cases = switch.cases.into_iter().map(case).collect();
        StmtKind::Switch(Box::new(Switch { label: switch.label, subject, slot: self.slot(switch.slot), cases }))
    }

    fn try_statement(&mut self, attempt: draft::Try) -> StmtKind {
        StmtKind::Try(Box::new(Try {
            body: self.statements(attempt.body),
            catch: attempt.catch.map(|(slot, body)| (self.slot(slot), self.statements(body))),
            finally: attempt.finally.map(|body| self.statements(body)),
            completion: (self.slot(attempt.completion.0), self.slot(attempt.completion.1)),
        }))
    }

    // ---- Expressions ---------------------------------------------------------------------------

    fn expressions(&mut self, values: Vec<draft::Expr>) -> Vec<Expr> {
        values.into_iter().map(|value| self.expression(value)).collect()
    }

    fn boxed(&mut self, value: draft::Expr) -> Box<Expr> {
        Box::new(self.expression(value))
    }

    fn expression(&mut self, value: draft::Expr) -> Expr {
        let outer = std::mem::take(&mut self.splits);
        let kind = self.kind(value.kind);
        let splits = std::mem::replace(&mut self.splits, outer);
        self.splits |= splits;
        Expr { kind, span: value.span, splits }
    }

    fn kind(&mut self, kind: draft::ExprKind) -> ExprKind {
        match kind {
            ExprKind::Undefined => ExprKind::Undefined,
            ExprKind::Null => ExprKind::Null,
            ExprKind::Bool(value) => ExprKind::Bool(value),
            ExprKind::Number(value) => ExprKind::Number(value),
            ExprKind::String(text) => ExprKind::String(text),
            ExprKind::BigInt(digits) => ExprKind::BigInt(digits),
            ExprKind::Regex(pattern, number) => ExprKind::Regex(pattern, number),
            ExprKind::Template(first, rest) => {
                ExprKind::Template(first, rest.into_iter().map(|(hole, text)| (self.expression(hole), text)).collect())
            }
            ExprKind::TemplateObject(site) => ExprKind::TemplateObject(site),
            ExprKind::Array(elements) => self.array(elements),
            ExprKind::Object(site, properties) => self.object(site, properties),
            ExprKind::Function(id) => ExprKind::Function(id),
            ExprKind::Read(variable) => ExprKind::Read(self.variable(variable)),
            ExprKind::Write(variable, value) => ExprKind::Write(self.variable(variable), self.boxed(*value)),
            ExprKind::WriteConst(variable, value) => ExprKind::WriteConst(self.variable(variable), self.boxed(*value)),
            ExprKind::Update { variable, delta, prefix } => {
                ExprKind::Update { variable: self.variable(variable), delta, prefix }
            }
            ExprKind::Temp(slot) => ExprKind::Temp(self.slot(slot)),
            ExprKind::SetTemp(slot, value) => ExprKind::SetTemp(self.slot(slot), self.boxed(*value)),
            ExprKind::Global(name) => ExprKind::Global(name),
            ExprKind::TypeofGlobal(name) => ExprKind::TypeofGlobal(name),
            ExprKind::WriteGlobal(name, value) => ExprKind::WriteGlobal(name, self.boxed(*value)),
            ExprKind::Uninitialized(name) => ExprKind::Uninitialized(name),
            ExprKind::Member(object, name) => ExprKind::Member(self.boxed(*object), name),
            ExprKind::Index(object, key) => ExprKind::Index(self.boxed(*object), self.boxed(*key)),
            ExprKind::SetMember(object, name, value) => {
                ExprKind::SetMember(self.boxed(*object), name, self.boxed(*value))
            }
            ExprKind::SetIndex(object, key, value) => {
                ExprKind::SetIndex(self.boxed(*object), self.boxed(*key), self.boxed(*value))
            }
            ExprKind::DeleteMember(object, name) => ExprKind::DeleteMember(self.boxed(*object), name),
            ExprKind::DeleteIndex(object, key) => ExprKind::DeleteIndex(self.boxed(*object), self.boxed(*key)),
            ExprKind::Unary(operator, operand) => ExprKind::Unary(operator, self.boxed(*operand)),
            ExprKind::Binary(operator, left, right) => {
                ExprKind::Binary(operator, self.boxed(*left), self.boxed(*right))
            }
            ExprKind::Chain(chain) => self.chain(*chain),
            ExprKind::Logical(operator, left, right) => {
                ExprKind::Logical(operator, self.boxed(*left), self.boxed(*right))
            }
            ExprKind::Conditional(test, yes, no) => {
                ExprKind::Conditional(self.boxed(*test), self.boxed(*yes), self.boxed(*no))
            }
            ExprKind::Sequence(mut parts) => {
                parts.retain(|part| self.iterables || !is_close(part));
                ExprKind::Sequence(self.expressions(parts))
            }
            ExprKind::Call(call) => self.call(*call),
            ExprKind::New(new) => self.construct(*new),
            ExprKind::Await(value) => {
                self.splits = true;
                ExprKind::Await(self.boxed(*value))
            }
            ExprKind::RequireObject { value, first, origin } => {
                ExprKind::RequireObject { value: self.boxed(*value), first, origin }
            }
            ExprKind::ObjectRest(object, keys) => ExprKind::ObjectRest(self.slot(object), self.expressions(keys)),
            ExprKind::Yield(value) => {
                self.splits = true;
                ExprKind::Yield(self.boxed(*value))
            }
            ExprKind::YieldStar(items) => {
                self.splits = true;
                ExprKind::YieldStar(self.boxed(*items))
            }
            ExprKind::GeneratorStart => {
                self.splits = true;
                ExprKind::GeneratorStart
            }
            ExprKind::Iterator(value, origin) => {
                self.splits |= self.iterables;
                ExprKind::Iterator(self.boxed(*value), origin)
            }
            ExprKind::IteratorNext(iterator) => ExprKind::IteratorNext(self.step(iterator)),
            ExprKind::IteratorRest(iterator) => ExprKind::IteratorRest(self.step(iterator)),
            ExprKind::IteratorClose(iterator) => ExprKind::IteratorClose(self.step(iterator)),
        }
    }

    /// The slot of an iterator, whose steps may run functions of the script.
    fn step(&mut self, iterator: Slot) -> Slot {
        self.splits |= self.iterables;
        self.slot(iterator)
    }

    fn array(&mut self, elements: Vec<draft::Element>) -> ExprKind {
        let element = |element| match element {
            Element::Hole => Element::Hole,
            Element::Item(value) => Element::Item(self.expression(value)),
            Element::Spread(value) => {
                self.splits |= self.iterables;
                Element::Spread(self.expression(value))
            }
        };
        ExprKind::Array(elements.into_iter().map(element).collect())
    }

    fn object(&mut self, site: u32, properties: Vec<draft::Property>) -> ExprKind {
        let property = |property| match property {
            Property::Named(name, value) => Property::Named(name, self.expression(value)),
            Property::Computed(key, value) => {
                let key = self.expression(key);
                Property::Computed(key, self.expression(value))
            }
            Property::Spread(value) => Property::Spread(self.expression(value)),
        };
        ExprKind::Object(site, properties.into_iter().map(property).collect())
    }

    fn chain(&mut self, chain: draft::Chain) -> ExprKind {
        let first = self.expression(chain.first);
        let rest = chain.rest.into_iter().map(|(operator, operand)| (operator, self.expression(operand))).collect();
        ExprKind::Chain(Box::new(Chain { first, rest }))
    }

    // ---- Calls ---------------------------------------------------------------------------------

    fn call(&mut self, call: draft::Call) -> ExprKind {
        let callee = match call.callee {
            Callee::Value(value) => Callee::Value(self.expression(value)),
            Callee::Member(object, name) => Callee::Member(self.expression(object), name),
            Callee::Index(object, key) => {
                let object = self.expression(object);
                Callee::Index(object, self.expression(key))
            }
            Callee::With { function, this } => {
                Callee::With { function: self.expression(function), this: self.expression(this) }
            }
        };
        let call = Call { callee, arguments: self.arguments(call.arguments), callee_span: call.callee_span };
        self.splits |= !self.is_plain(&call);
        ExprKind::Call(Box::new(call))
    }

    fn construct(&mut self, new: draft::New) -> ExprKind {
        self.splits |= !self.is_plain_new(&new.names);
        ExprKind::New(Box::new(New { names: new.names, arguments: self.arguments(new.arguments) }))
    }

    fn arguments(&mut self, arguments: Vec<draft::Argument>) -> Vec<Argument> {
        let argument = |draft::Argument { value, spread }| {
            self.splits |= spread && self.iterables;
            Argument { value: self.expression(value), spread }
        };
        arguments.into_iter().map(argument).collect()
    }

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
        (self.options.plain_call)(call, self.iterables)
    }

    fn is_plain_new(&self, names: &[TextId]) -> bool {
        match names {
            [name] => (self.options.plain_call)(PlainCall::New(self.text(*name)), self.iterables),
            _ => {
                let names = names.iter().map(|name| self.text(*name)).collect::<Vec<_>>();
                (self.options.plain_call)(PlainCall::New(&names.join(".")), self.iterables)
            }
        }
    }

    /// A name as the caller knows names; those it can know are UTF-8.
    fn text(&self, id: TextId) -> &str {
        std::str::from_utf8(self.texts.get(id)).unwrap_or("")
    }
}
