//! The end of the walk: the program with the places of its bindings, and which calls split.

use super::scope::Bindings;
use super::{Assumed, Resolver, count, expr};
use crate::options::PlainCall;
use crate::program::*;
use crate::span::Span;

impl<'p> Resolver<'_, 'p> {
    /// Returns the facts on the script, where the walk assumed something else.
    pub(super) fn known(&self) -> Option<Assumed> {
        let is_wrong = self.iterables != self.assumed.iterables
            || self.assumed.written.is_empty() && self.texts.has_written_plain();
        is_wrong.then(|| Assumed { written: self.texts.written(), iterables: self.iterables })
    }

    /// The program.
    pub(super) fn program(self) -> Program<'p> {
        let Self { texts, bindings, mut functions, captured, captures, iterables, .. } = self;
        let written = texts.written();
        let texts = texts.into_list();
        for (function, own) in functions.iter_mut().zip(&captured) {
            function.first_capture = function.slots;
            function.slots += count(own.bindings.len());
        }
        let places = Places { binding_places: binding_places(&bindings), captures };
        for (id, own) in captured.iter().enumerate() {
            if !own.bindings.is_empty() {
                let parent = FunctionId(own.parent);
                let slots = own.bindings.iter().map(|&id| match places.of(&functions, parent, id.into()) {
                    Place::Slot(slot) | Place::Cell(slot) => slot,
                    Place::Global(_) => Slot(0),
                });
                functions[id].captures = self.arena.collect(slots);
            }
        }
        let mut fixed = vec![None; self.globals.len()];
        for &(id, function) in &self.declared {
            if let Some(global) = bindings[id].global.filter(|_| bindings[id].is_fixed()) {
                fixed[global as usize] = Some(function);
            }
        }
        let program_functions = self.arena.copy(&functions);
        let mut free = self.free;
        free.sort_by_key(|(_, span)| span.start);
        Program {
            texts,
            functions: program_functions,
            places,
            globals: self.globals,
            fixed,
            free,
            patterns: self.patterns,
            templates: self.templates,
            iterated: self.iterated,
            object_sites: self.object_sites,
            result: self.result,
            iterables,
            written,
        }
    }

    /// Returns an expression that iterates: where values of the script may be iterable, that may run its functions.
    pub(super) fn iteration(&self, kind: ExprKind<'p>, span: Span) -> Expr<'p> {
        let value = expr(kind, span);
        Expr { splits: value.splits | self.assumed.iterables, ..value }
    }

    pub(super) fn call_of(
        &mut self,
        callee: Callee<'p>,
        arguments: &'p [Argument<'p>],
        callee_span: Span,
        span: Span,
    ) -> Expr<'p> {
        let splits = self.iterates(arguments) || !self.is_plain(&callee, arguments);
        expr(ExprKind::Call(self.arena.alloc(Call { callee, arguments, callee_span, splits })), span)
    }

    /// `new names(arguments)`
    pub(super) fn new_of(&self, names: &'p [TextId], arguments: &'p [Argument<'p>]) -> ExprKind<'p> {
        let splits = self.iterates(arguments) || !self.is_plain_new(names);
        ExprKind::New(self.arena.alloc(New { names, arguments, splits }))
    }

    /// Whether the items of an argument may be those of an iterable of the script.
    fn iterates(&self, arguments: &[Argument<'_>]) -> bool {
        self.assumed.iterables && arguments.iter().any(|argument| argument.spread)
    }

    fn is_plain(&mut self, callee: &Callee<'_>, arguments: &[Argument<'_>]) -> bool {
        let is_tag =
            matches!(arguments.first(), Some(first) if matches!(first.value.kind, ExprKind::TemplateObject(_)));
        let known = |call| (self.options.plain_call)(call, self.assumed.iterables);
        match *callee {
            Callee::Value(Expr { kind: ExprKind::Global(name), .. }) if !is_tag => {
                let is_plain = self.texts.facts(name).plain_global;
                let is_plain = is_plain.unwrap_or_else(|| known(PlainCall::Global(self.name(name))));
                self.texts.facts(name).plain_global = Some(is_plain);
                is_plain
            }
            Callee::Member(Expr { kind: ExprKind::Global(object), .. }, name) => {
                match self.texts.facts(name).plain_static {
                    Some((last, is_plain)) if last == object => is_plain,
                    _ => {
                        let is_plain = known(PlainCall::Static(self.name(object), self.name(name)));
                        self.texts.facts(name).plain_static = Some((object, is_plain));
                        is_plain
                    }
                }
            }
            Callee::Member(_, name) if !is_tag => self.is_plain_method(name),
            Callee::Value(_) | Callee::Member(..) | Callee::Index(..) | Callee::With { .. } => false,
        }
    }

    fn is_plain_method(&mut self, name: TextId) -> bool {
        let is_assumed = self.assumed.written.get(name.0 as usize).copied().unwrap_or(false);
        let facts = self.texts.facts(name);
        if facts.written || is_assumed {
            return false;
        }
        facts.plain_method.unwrap_or_else(|| {
            let is_plain = (self.options.plain_call)(PlainCall::Method(self.name(name)), self.assumed.iterables);
            self.texts.facts(name).plain_method = Some(is_plain);
            is_plain
        })
    }

    fn is_plain_new(&self, names: &[TextId]) -> bool {
        let plain = |name: &str| (self.options.plain_call)(PlainCall::New(name), self.assumed.iterables);
        match names {
            [name] => plain(self.name(*name)),
            _ => plain(&names.iter().map(|name| self.name(*name)).collect::<Vec<_>>().join(".")),
        }
    }

    /// Returns a name as the caller knows names; those it can know are UTF-8.
    pub(super) fn name(&self, id: TextId) -> &str {
        std::str::from_utf8(self.texts.get(id)).unwrap_or("")
    }
}

/// Returns the home of each binding.
fn binding_places(bindings: &Bindings) -> Vec<BindingPlace> {
    let home = |binding: &super::scope::Binding| BindingPlace {
        function: FunctionId(binding.function),
        place: match binding.global {
            Some(global) => Place::Global(global),
            None if binding.is_cell => Place::Cell(binding.slot),
            None => Place::Slot(binding.slot),
        },
        runs_late: binding.hoisted_run_late,
        assigned: binding.assigned,
    };
    bindings.iter().map(home).collect()
}
