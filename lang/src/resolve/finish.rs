//! The last walk, over the draft: places instead of bindings, and what splits.

use super::draft::{self, BindingId, FunctionId, Pending, Slot, TextId};
use super::scope::{Binding, Bindings};
use super::{Captured, Resolver, count};
use crate::ast::Arena;
use crate::options::{Options, PlainCall};
use crate::program::*;
use hashbrown::HashMap;

/// Completes a program.
pub(super) fn finish<'p>(resolver: Resolver<'_, '_>, arena: &'p Arena) -> Program<'p> {
    let Resolver { options, texts, bindings, functions, captured, captures, iterables, .. } = resolver;
    let (texts, written) = texts.into_parts();
    let mut finisher = Finisher {
        arena,
        options,
        fixed: vec![None; resolver.globals.len()],
        texts: &texts,
        written: &written,
        plain_methods: vec![None; written.len()],
        bindings: &bindings,
        captures: &captures,
        function: 0,
        parameters: 0,
        shift: 0,
        splits: false,
        iterables,
        awaits_return: false,
    };
    let mut functions: Vec<Function<'p>> = functions
        .iter()
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
            let slots = captured_slots(arena, own, &functions, &captured, &bindings, &captures);
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

fn is_close(value: &draft::Expr<'_>) -> bool {
    matches!(value.kind, ExprKind::IteratorClose(_))
}

/// Where the enclosing function keeps what a function captures.
fn captured_slots<'p>(
    arena: &'p Arena,
    own: &Captured,
    functions: &[Function<'_>],
    captured: &[Captured],
    bindings: &Bindings,
    captures: &HashMap<(u32, BindingId), u32>,
) -> &'p [Slot] {
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
    arena.collect(own.bindings.iter().map(slot))
}

/// A slot behind the parameters moves up to make room for the captures.
fn shifted(slot: Slot, parameters: u32, shift: u32) -> Slot {
    if slot.0 < parameters { slot } else { Slot(slot.0 + shift) }
}

struct Finisher<'a, 'p> {
    /// Holds the program.
    arena: &'p Arena,
    options: &'a Options<'a>,
    /// The function that each global slot holds once it is initialized.
    fixed: Vec<Option<FunctionId>>,
    texts: &'a Texts,
    written: &'a [bool],
    /// Whether calls of the method of each name are plain, once that was looked up.
    plain_methods: Vec<Option<bool>>,
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

impl<'a, 'p> Finisher<'a, 'p> {
    fn function(&mut self, function: &draft::Function<'_>) -> Function<'p> {
        self.awaits_return = function.is_async && function.is_generator;
        Function {
            name: function.name,
            is_async: function.is_async,
            is_generator: function.is_generator,
            is_arrow: function.is_arrow,
            parameters: function.parameters,
            rest: function.rest.map(|slot| self.slot(slot)),
            length: function.length,
            captures: &[],
            itself: function.itself.map(|slot| self.slot(slot)),
            boxed: self.arena.copy(function.boxed),
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

    fn statements(&mut self, statements: &[draft::Stmt<'_>]) -> &'p [Stmt<'p>] {
        let closes = |statement: &draft::Stmt<'_>| matches!(&statement.kind, StmtKind::Expr(value) if is_close(value));
        if !self.iterables && statements.iter().any(closes) {
            let kept: Vec<_> = statements.iter().filter(|statement| !closes(statement)).copied().collect();
            return self.arena.collect(kept.iter().map(|statement| self.statement(statement)));
        }
        self.arena.collect(statements.iter().map(|statement| self.statement(statement)))
    }

    fn nested(&mut self, statement: &draft::Stmt<'_>) -> &'p Stmt<'p> {
        self.arena.alloc(self.statement(statement))
    }

    fn statement(&mut self, statement: &draft::Stmt<'_>) -> Stmt<'p> {
        let outer = std::mem::take(&mut self.splits);
        let kind = match statement.kind {
            StmtKind::Enter(place, initial) => StmtKind::Enter(self.place(place).0, initial),
            StmtKind::Init(place, ref value) => self.init(place, value),
            StmtKind::Expr(ref value) => StmtKind::Expr(self.expression(value)),
            StmtKind::Throw(ref value) => StmtKind::Throw(self.expression(value)),
            StmtKind::Block(body) => StmtKind::Block(self.statements(body)),
            StmtKind::If(ref test, yes, no) => {
                let test = self.expression(test);
                let yes = self.nested(yes);
                StmtKind::If(test, yes, no.map(|no| self.nested(no)))
            }
            StmtKind::For(each) => self.for_loop(each),
            StmtKind::DoWhile { label, body, ref test } => {
                StmtKind::DoWhile { label, body: self.nested(body), test: self.expression(test) }
            }
            StmtKind::ForEach(each) => self.for_each(each),
            StmtKind::Switch(switch) => self.switch(switch),
            StmtKind::Try(attempt) => self.try_statement(attempt),
            StmtKind::Labeled(label, body) => StmtKind::Labeled(label, self.nested(body)),
            StmtKind::Break(label) => StmtKind::Break(label),
            StmtKind::Continue(label) => StmtKind::Continue(label),
            StmtKind::Return(ref value) => {
                self.splits |= self.awaits_return && value.is_some();
                StmtKind::Return(value.as_ref().map(|value| self.expression(value)))
            }
        };
        let splits = std::mem::replace(&mut self.splits, outer);
        self.splits |= splits;
        Stmt { kind, span: statement.span, splits }
    }

    fn init(&mut self, place: Pending, value: &draft::Expr<'_>) -> StmtKind<'p> {
        let (place, binding) = self.place(place);
        if let (Place::Global(index), &ExprKind::Function(id)) = (place, &value.kind)
            && binding.is_fixed()
        {
            self.fixed[index as usize] = Some(id);
        }
        StmtKind::Init(place, self.expression(value))
    }

    fn for_loop(&mut self, each: &draft::ForLoop<'_>) -> StmtKind<'p> {
        StmtKind::For(self.arena.alloc(ForLoop {
            label: each.label,
            test: each.test.as_ref().map(|test| self.expression(test)),
            update: each.update.as_ref().map(|update| self.expression(update)),
            body: self.nested(each.body),
            fresh: self.arena.collect(each.fresh.iter().map(|&slot| self.slot(slot))),
        }))
    }

    fn for_each(&mut self, each: &draft::EachLoop<'_>) -> StmtKind<'p> {
        self.splits |= each.kind == ForEach::AwaitOf || each.kind == ForEach::Of && self.iterables;
        StmtKind::ForEach(self.arena.alloc(EachLoop {
            label: each.label,
            kind: each.kind,
            iterable: self.expression(&each.iterable),
            iterator: self.slot(each.iterator),
            item: self.slot(each.item),
            body: self.nested(each.body),
        }))
    }

    fn switch(&mut self, switch: &draft::Switch<'_>) -> StmtKind<'p> {
        let subject = self.expression(&switch.subject);
        let arena = self.arena;
        let case = |case: &draft::Case<'_>| Case {
            test: case.test.as_ref().map(|test| self.expression(test)),
            body: self.statements(case.body),
        };
        let cases = arena.collect(switch.cases.iter().map(case));
        StmtKind::Switch(self.arena.alloc(Switch { label: switch.label, subject, slot: self.slot(switch.slot), cases }))
    }

    fn try_statement(&mut self, attempt: &draft::Try<'_>) -> StmtKind<'p> {
        StmtKind::Try(self.arena.alloc(Try {
            body: self.statements(attempt.body),
            catch: attempt.catch.map(|(slot, body)| (self.slot(slot), self.statements(body))),
            finally: attempt.finally.map(|body| self.statements(body)),
            completion: (self.slot(attempt.completion.0), self.slot(attempt.completion.1)),
        }))
    }

    // ---- Expressions ---------------------------------------------------------------------------

    fn expressions(&mut self, values: &[draft::Expr<'_>]) -> &'p [Expr<'p>] {
        self.arena.collect(values.iter().map(|value| self.expression(value)))
    }

    fn operand(&mut self, value: &draft::Expr<'_>) -> &'p Expr<'p> {
        self.arena.alloc(self.expression(value))
    }

    fn expression(&mut self, value: &draft::Expr<'_>) -> Expr<'p> {
        let outer = std::mem::take(&mut self.splits);
        let kind = self.kind(&value.kind);
        let splits = std::mem::replace(&mut self.splits, outer);
        self.splits |= splits;
        Expr { kind, span: value.span, splits }
    }

    fn kind(&mut self, kind: &draft::ExprKind<'_>) -> ExprKind<'p> {
        match *kind {
            ExprKind::Undefined => ExprKind::Undefined,
            ExprKind::Null => ExprKind::Null,
            ExprKind::Bool(value) => ExprKind::Bool(value),
            ExprKind::Number(value) => ExprKind::Number(value),
            ExprKind::String(text) => ExprKind::String(text),
            ExprKind::BigInt(digits) => ExprKind::BigInt(digits),
            ExprKind::Regex(pattern, number) => ExprKind::Regex(pattern, number),
            ExprKind::Template(first, rest) => {
                let arena = self.arena;
                let holes = rest.iter().map(|(hole, text)| (self.expression(hole), *text));
                ExprKind::Template(first, arena.collect(holes))
            }
            ExprKind::TemplateObject(site) => ExprKind::TemplateObject(site),
            ExprKind::Array(elements) => self.array(elements),
            ExprKind::Object(site, properties) => self.object(site, properties),
            ExprKind::Function(id) => ExprKind::Function(id),
            ExprKind::Read(variable) => ExprKind::Read(self.variable(variable)),
            ExprKind::Write(variable, value) => ExprKind::Write(self.variable(variable), self.operand(value)),
            ExprKind::WriteConst(variable, value) => ExprKind::WriteConst(self.variable(variable), self.operand(value)),
            ExprKind::Update { variable, delta, prefix } => {
                ExprKind::Update { variable: self.variable(variable), delta, prefix }
            }
            ExprKind::Temp(slot) => ExprKind::Temp(self.slot(slot)),
            ExprKind::SetTemp(slot, value) => ExprKind::SetTemp(self.slot(slot), self.operand(value)),
            ExprKind::Global(name) => ExprKind::Global(name),
            ExprKind::TypeofGlobal(name) => ExprKind::TypeofGlobal(name),
            ExprKind::WriteGlobal(name, value) => ExprKind::WriteGlobal(name, self.operand(value)),
            ExprKind::Uninitialized(name) => ExprKind::Uninitialized(name),
            ExprKind::Member(object, name) => ExprKind::Member(self.operand(object), name),
            ExprKind::Index(object, key) => ExprKind::Index(self.operand(object), self.operand(key)),
            ExprKind::SetMember(object, name, value) => {
                ExprKind::SetMember(self.operand(object), name, self.operand(value))
            }
            ExprKind::SetIndex(object, key, value) => {
                ExprKind::SetIndex(self.operand(object), self.operand(key), self.operand(value))
            }
            ExprKind::DeleteMember(object, name) => ExprKind::DeleteMember(self.operand(object), name),
            ExprKind::DeleteIndex(object, key) => ExprKind::DeleteIndex(self.operand(object), self.operand(key)),
            ExprKind::Unary(operator, operand) => ExprKind::Unary(operator, self.operand(operand)),
            ExprKind::Binary(operator, left, right) => {
                ExprKind::Binary(operator, self.operand(left), self.operand(right))
            }
            ExprKind::Chain(chain) => self.chain(chain),
            ExprKind::Logical(operator, left, right) => {
                ExprKind::Logical(operator, self.operand(left), self.operand(right))
            }
            ExprKind::Conditional(test, yes, no) => {
                ExprKind::Conditional(self.operand(test), self.operand(yes), self.operand(no))
            }
            ExprKind::Sequence(parts) => {
                if !self.iterables && parts.iter().any(is_close) {
                    let kept: Vec<_> = parts.iter().filter(|part| !is_close(part)).copied().collect();
                    return ExprKind::Sequence(self.expressions(&kept));
                }
                ExprKind::Sequence(self.expressions(parts))
            }
            ExprKind::Call(call) => self.call(call),
            ExprKind::New(new) => self.construct(new),
            ExprKind::Await(value) => {
                self.splits = true;
                ExprKind::Await(self.operand(value))
            }
            ExprKind::RequireObject { value, first, origin } => {
                ExprKind::RequireObject { value: self.operand(value), first, origin }
            }
            ExprKind::ObjectRest(object, keys) => ExprKind::ObjectRest(self.slot(object), self.expressions(keys)),
            ExprKind::Yield(value) => {
                self.splits = true;
                ExprKind::Yield(self.operand(value))
            }
            ExprKind::YieldStar(items) => {
                self.splits = true;
                ExprKind::YieldStar(self.operand(items))
            }
            ExprKind::GeneratorStart => {
                self.splits = true;
                ExprKind::GeneratorStart
            }
            ExprKind::Iterator(value, origin) => {
                self.splits |= self.iterables;
                ExprKind::Iterator(self.operand(value), origin)
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

    fn array(&mut self, elements: &[draft::Element<'_>]) -> ExprKind<'p> {
        let arena = self.arena;
        let element = |element: &draft::Element<'_>| match element {
            Element::Hole => Element::Hole,
            Element::Item(value) => Element::Item(self.expression(value)),
            Element::Spread(value) => {
                self.splits |= self.iterables;
                Element::Spread(self.expression(value))
            }
        };
        ExprKind::Array(arena.collect(elements.iter().map(element)))
    }

    fn object(&mut self, site: u32, properties: &[draft::Property<'_>]) -> ExprKind<'p> {
        let arena = self.arena;
        let property = |property: &draft::Property<'_>| match property {
            Property::Named(name, value) => Property::Named(*name, self.expression(value)),
            Property::Computed(key, value) => {
                let key = self.expression(key);
                Property::Computed(key, self.expression(value))
            }
            Property::Spread(value) => Property::Spread(self.expression(value)),
        };
        ExprKind::Object(site, arena.collect(properties.iter().map(property)))
    }

    fn chain(&mut self, chain: &draft::Chain<'_>) -> ExprKind<'p> {
        let arena = self.arena;
        let first = self.expression(&chain.first);
        let rest = chain.rest.iter().map(|(operator, operand)| (*operator, self.expression(operand)));
        let rest = arena.collect(rest);
        ExprKind::Chain(arena.alloc(Chain { first, rest }))
    }

    // ---- Calls ---------------------------------------------------------------------------------

    fn call(&mut self, call: &draft::Call<'_>) -> ExprKind<'p> {
        let callee = match &call.callee {
            Callee::Value(value) => Callee::Value(self.expression(value)),
            Callee::Member(object, name) => Callee::Member(self.expression(object), *name),
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
        ExprKind::Call(self.arena.alloc(call))
    }

    fn construct(&mut self, new: &draft::New<'_>) -> ExprKind<'p> {
        self.splits |= !self.is_plain_new(new.names);
        ExprKind::New(
            self.arena.alloc(New { names: self.arena.copy(new.names), arguments: self.arguments(new.arguments) }),
        )
    }

    fn arguments(&mut self, arguments: &[draft::Argument<'_>]) -> &'p [Argument<'p>] {
        let arena = self.arena;
        let argument = |&draft::Argument { ref value, spread }: &draft::Argument<'_>| {
            self.splits |= spread && self.iterables;
            Argument { value: self.expression(value), spread }
        };
        arena.collect(arguments.iter().map(argument))
    }

    fn is_plain(&mut self, call: &Call<'_>) -> bool {
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
            &Callee::Member(_, name) if !is_tag && !self.written[name.0 as usize] => {
                return self.is_plain_method(name);
            }
            Callee::Value(_) | Callee::Member(..) | Callee::Index(..) | Callee::With { .. } => return false,
        };
        (self.options.plain_call)(call, self.iterables)
    }

    fn is_plain_method(&mut self, name: TextId) -> bool {
        let known = self.plain_methods[name.0 as usize];
        known.unwrap_or_else(|| {
            let is_plain = (self.options.plain_call)(PlainCall::Method(self.text(name)), self.iterables);
            self.plain_methods[name.0 as usize] = Some(is_plain);
            is_plain
        })
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
