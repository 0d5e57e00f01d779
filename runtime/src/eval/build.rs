//! Lowering: from the resolved program to executable code.
//!
//! Code that can suspend becomes a list of operations, all other code a tree of nodes; operands of operations are
//! trees. Operands evaluated before something that can suspend are saved to temporary slots, so a suspended frame has
//! all its values in slots.

mod call;
mod expression;
mod iterate;
mod lower;
mod statement;

use crate::eval::code::{Code, Function, Handler, Outer};
use crate::eval::linker::Linker;
use crate::eval::node::{self, Body, Delegate, Expression, Op, OpKind};
use crate::eval::prelude::Prelude;
use crate::eval::registry::Registry;
use crate::heap::atoms::ProgramTexts;
use crate::heap::frame::FunctionRef;
use crate::interface::host::FETCH;
use crate::value::atom::Atom;
use crate::value::{Kind, Value};
use agentscript_lang::Span;
use agentscript_lang::program::{
    self, Binary, Callee, Expr, ExprKind, FunctionId, Place, Program, Reference, Slot, StmtKind, TextId,
};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::{Arc, OnceLock};

/// Average bytes of a node, with the pointer to it in its parent.
const NODE_BYTES: usize = 48;

/// How many labels most functions have at most.
const USUAL_LABELS: usize = 16;

/// Build the code of a program.
pub fn build<'p>(program: &'p Program<'p>, registry: &'static Registry, origin: Origin<'p>) -> Code {
    // The prelude cannot refer to itself while it is compiled.
    let is_prelude = matches!(origin, Origin::Prelude);
    let prelude = match origin {
        Origin::Script { prelude, .. } => Some(&prelude.code),
        Origin::Prelude => None,
    };
    let (texts, atoms) = ProgramTexts::new(&program.texts, &registry.names, prelude.map(|prelude| &*prelude.texts));
    let first_site = prelude.map_or(0, |prelude| prelude.object_sites);
    let literals = program.patterns.iter().map(|_| Arc::default()).collect();
    let iterables = program.iterables;
    let builder = Builder {
        atoms: &atoms,
        registry,
        program,
        origin,
        is_prelude,
        first_site,
        literals,
        iterables,
        bytes: Cell::new(0),
        spare_ops: Cell::new(Vec::new()),
    };
    let functions: Vec<Function> =
        (0..program.functions.len()).map(|id| builder.function(FunctionId(id as u32))).collect();
    let text_bytes = program.texts.total() + texts.ranges.len() * 16;
    let atom = |text: &TextId| atoms[text.0 as usize];
    Code {
        bytes: builder.bytes.get() + functions.len() * size_of::<Function>() + text_bytes,
        functions,
        globals: program.globals.iter().map(atom).collect(),
        iterated: program.iterated.clone(),
        templates: program
            .templates
            .iter()
            .map(|site| {
                let cooked = site.cooked.iter().map(|text| text.as_ref().map(atom)).collect();
                (cooked, site.raw.iter().map(atom).collect())
            })
            .collect(),
        object_sites: first_site + program.object_sites,
        result: program.result,
        iterables,
        texts: Arc::new(texts),
    }
}

/// Where a program comes from.
#[derive(Clone, Copy)]
pub enum Origin<'l> {
    /// It is a script, with what it sees of its host.
    Script {
        /// The compiled prelude.
        prelude: &'static Prelude,
        /// The functions of its host.
        linker: &'l Linker,
        /// Whether it has `fetch`. If not, that is the name of an app where it is accepted.
        has_fetch: bool,
    },
    /// It is the prelude.
    Prelude,
}

/// What is known while a program is built.
struct Builder<'p> {
    /// All built-ins.
    registry: &'static Registry,
    program: &'p Program<'p>,
    atoms: &'p [Atom],
    origin: Origin<'p>,
    is_prelude: bool,
    /// Whether values of the script may be iterable: then iterating consists of operations.
    iterables: bool,
    /// How many bytes the nodes take so far.
    bytes: Cell<usize>,
    /// The list of the function before, empty: each list is copied when it is complete, so that none is larger than it
    /// has to be.
    spare_ops: Cell<Vec<Op>>,
    /// Number of the first object literal: those of the prelude come before those of the script.
    first_site: u32,
    /// The programs of regular expression literals, by their number.
    literals: Vec<Arc<OnceLock<Arc<crate::regexp::Program>>>>,
}

/// The state of lowering one function.
struct Lowering<'b, 'p> {
    builder: &'b Builder<'p>,
    /// Which function it is.
    function: FunctionId,
    ops: Vec<Op>,
    /// Labels: the number of the operation each is bound to.
    labels: SmallVec<[u32; USUAL_LABELS]>,
    handlers: Vec<Handler>,
    /// The next free temporary, and how many slots the frame has so far.
    temp: u32,
    slots: u32,
    /// The temporaries below are still used by the statements that follow, which belong to one pattern.
    pinned: u32,
    /// The array patterns around.
    patterns: Vec<iterate::Pattern>,
    /// Whether the function is an async generator, where `return value` awaits the value.
    awaits_return: bool,
    /// The enclosing statements that can be left, the innermost last.
    scopes: Vec<Scope>,
    /// Offset of what is being lowered.
    at: u32,
}

/// A statement that is being lowered and that `break`, `continue` or `return` can leave.
enum Scope {
    /// A loop, a `switch` or a labeled statement.
    Target { label: u32, break_to: Target, continue_to: Option<Target> },
    /// A `try` with a `finally`, which runs before control leaves the statement.
    Finally {
        /// Holds the number of the exit that is taken.
        kind: Slot,
        /// Holds the value of a `return` or `throw`.
        value: Slot,
        /// Where the finalizer begins.
        start: Target,
        /// Exits that are used, numbered from [`FIRST_EXIT`].
        exits: Vec<Leave>,
    },
}

/// How the guarded part of a `try` can end before its finalizer.
const ENDED: f64 = 0.0;
pub const THROWN: f64 = 1.0;
const FIRST_EXIT: usize = 2;

/// An exit of a statement.
#[derive(Clone, Copy, PartialEq)]
enum Leave {
    Break(u32),
    Continue(u32),
    /// With the value in the slot of the `finally`.
    Return,
}

/// A label: an index of [`Lowering::labels`].
#[derive(Clone, Copy, PartialEq)]
struct Target(usize);

impl Builder<'_> {
    fn atom(&self, text: TextId) -> Atom {
        self.atoms[text.0 as usize]
    }

    /// A text as an expression.
    fn literal(&self, text: TextId) -> Expression {
        Box::new(node::Text(self.atom(text)))
    }

    fn text(&self, text: TextId) -> &str {
        std::str::from_utf8(self.program.text(text)).unwrap_or_default()
    }

    /// The global of the language of that name, where the program has it.
    fn language_global(&self, name: TextId) -> Option<u32> {
        let number = self.registry.global_of(self.atom(name))?;
        let is_off = matches!(self.origin, Origin::Script { has_fetch: false, .. })
            && self.program.text(name) == FETCH.as_bytes();
        (!is_off).then_some(number)
    }

    /// The built-in global of a name.
    fn global_of(&self, name: TextId) -> Option<u32> {
        self.language_global(name).or_else(|| self.linker()?.built_in(self.text(name)))
    }

    /// The value of a global of the language or the host that is the same in every run.
    fn constant_global(&self, name: TextId) -> Option<Value> {
        let native = self.language_global(name).map(|number| Value::handle(Kind::Native, number));
        native.or_else(|| self.linker()?.value(self.text(name)))
    }

    /// What the program sees of its host.
    fn linker(&self) -> Option<&Linker> {
        match self.origin {
            Origin::Script { linker, .. } => Some(linker),
            Origin::Prelude => None,
        }
    }

    fn note(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes);
    }

    fn function_ref(&self, index: u32) -> FunctionRef {
        match self.origin {
            Origin::Script { .. } => FunctionRef::script(index),
            Origin::Prelude => FunctionRef::prelude(index),
        }
    }

    fn function(&self, id: FunctionId) -> Function {
        let function = &self.program.functions[id.0 as usize];
        let mut lowering = Lowering {
            builder: self,
            function: id,
            ops: self.spare_ops.take(),
            labels: SmallVec::new(),
            handlers: Vec::new(),
            temp: function.slots,
            slots: function.slots,
            pinned: 0,
            patterns: Vec::new(),
            awaits_return: function.is_async && function.is_generator,
            scopes: Vec::new(),
            at: function.span.start,
        };
        let body = lowering.body(function);
        let mut ops = Vec::with_capacity(lowering.ops.len());
        ops.append(&mut lowering.ops);
        self.spare_ops.set(lowering.ops);
        Function {
            name: function.name.map(|name| self.atom(name)),
            is_async: function.is_async,
            is_generator: function.is_generator,
            is_arrow: function.is_arrow,
            parameters: function.parameters,
            first_capture: function.first_capture,
            rest: function.rest,
            length: function.length,
            itself: function.itself,
            boxed: function.boxed.into(),
            slots: lowering.slots,
            simple: is_simple(function),
            captures_only: captures_only(function),
            is_direct: captures_only(function) && !matches!(body, Body::Ops),
            body,
            ops,
            span: function.span,
            handlers: lowering.handlers.into(),
            settles: if self.is_prelude { None } else { self.settles(id) },
        }
    }

    /// The variable whose value a function calls with plain values or a new error, where it does nothing else.
    fn settles(&self, id: FunctionId) -> Option<Outer> {
        let function = &self.program.functions[id.0 as usize];
        let [statement] = function.body else { return None };
        let (StmtKind::Expr(value) | StmtKind::Return(Some(value))) = &statement.kind else { return None };
        let ExprKind::Call(call) = &value.kind else { return None };
        let Callee::Value(Expr { kind: ExprKind::Read(callee), .. }) = &call.callee else { return None };
        let is_plain = |argument: &program::Argument| !argument.spread && is_plain_value(&argument.value);
        if function.is_async || !call.arguments.iter().all(is_plain) {
            return None;
        }
        let captured = |slot: Slot| {
            slot.0.checked_sub(function.first_capture).filter(|&at| (at as usize) < function.captures.len())
        };
        match self.program.place(id, callee.reference) {
            Place::Slot(slot) => captured(slot).map(Outer::Captured),
            Place::Cell(slot) => captured(slot).map(Outer::Cell),
            Place::Global(slot) => Some(Outer::Global(slot)),
        }
    }
}

/// Whether evaluating it has no effect: a literal, a variable, text of such, `new Error(text)`.
fn is_plain_value(value: &Expr<'_>) -> bool {
    match &value.kind {
        ExprKind::Undefined | ExprKind::Null | ExprKind::Bool(_) | ExprKind::Number(_) | ExprKind::String(_) => true,
        ExprKind::Read(variable) => !variable.checked,
        ExprKind::Template(_, parts) => parts.iter().all(|(part, _)| is_plain_value(part)),
        ExprKind::Binary(Binary::Add, left, right) => is_plain_value(left) && is_plain_value(right),
        ExprKind::Chain(chain) => {
            is_plain_value(&chain.first)
                && chain.rest.iter().all(|(operator, part)| *operator == Binary::Add && is_plain_value(part))
        }
        // All constructors that take plain values make something new.
        ExprKind::New(new) => new.arguments.iter().all(|argument| !argument.spread && is_plain_value(&argument.value)),
        _ => false,
    }
}

/// Whether entering it only stores the arguments.
fn is_simple(function: &program::Function<'_>) -> bool {
    captures_only(function) && function.captures.is_empty()
}

/// Whether entering it only stores the arguments and the captured variables.
fn captures_only(function: &program::Function<'_>) -> bool {
    function.boxed.is_empty() && function.itself.is_none() && function.rest.is_none()
}

impl Lowering<'_, '_> {
    fn place(&self, reference: Reference) -> Place {
        self.builder.program.place(self.function, reference)
    }

    fn body(&mut self, function: &program::Function<'_>) -> Body {
        let is_tree = !function.is_async
            && !function.is_generator
            && function.body.iter().all(|statement| self.is_tree(statement));
        if is_tree {
            if let [statement] = function.body
                && let StmtKind::Return(Some(value)) = &statement.kind
            {
                return Body::Value(self.tree(value));
            }
            if let [statements @ .., last] = function.body
                && let StmtKind::Return(Some(value)) = &last.kind
            {
                let statements = self.block(statements);
                self.builder.note(NODE_BYTES);
                return Body::Steps(statements, self.tree(value));
            }
            return Body::Tree(self.block(function.body));
        }
        self.statements(function.body);
        self.resolve_labels();
        self.builder.note(self.ops.len() * size_of::<Op>());
        Body::Ops
    }

    fn emit(&mut self, kind: OpKind) {
        self.ops.push(Op { kind, at: self.at, repeats: false });
    }

    fn set(&mut self, slot: Slot, value: Expression) {
        self.emit(OpKind::Set(slot, value));
    }

    fn set_number(&mut self, slot: Slot, number: f64) {
        self.set(slot, Box::new(node::Constant(Value::number(number))));
    }

    /// A new temporary, free again at the end of the statement.
    fn temp(&mut self) -> Slot {
        let slot = Slot(self.temp);
        self.temp += 1;
        self.slots = self.slots.max(self.temp);
        slot
    }

    fn target(&mut self) -> Target {
        self.labels.push(u32::MAX);
        Target(self.labels.len() - 1)
    }

    /// Bind a label: jumps to `target` come here.
    fn bind(&mut self, target: Target) {
        self.labels[target.0] = self.ops.len() as u32;
    }

    fn jump(&mut self, target: Target) {
        self.emit(OpKind::Jump(target.0 as u32));
    }

    /// Jumps hold indices of labels until all labels are bound.
    fn resolve_labels(&mut self) {
        let labels = &self.labels;
        let resolve = |target: &mut u32| *target = labels[*target as usize];
        for op in &mut self.ops {
            match &mut op.kind {
                OpKind::Jump(target)
                | OpKind::Again(_, target)
                | OpKind::JumpIf(_, target)
                | OpKind::JumpUnless(_, target)
                | OpKind::While(_, target)
                | OpKind::JumpUnlessNullish(_, target)
                | OpKind::JumpIfScript(_, target)
                | OpKind::Took { end: target, .. }
                | OpKind::Yield { returned: target, .. }
                | OpKind::Next { end: target, .. } => resolve(target),
                OpKind::Step { end, taken, .. } => [end, taken].into_iter().for_each(resolve),
                OpKind::Close { none, builtin, .. } => [none, builtin].into_iter().for_each(resolve),
                OpKind::Delegate(delegate) | OpKind::Delegated(delegate) | OpKind::YieldStar(delegate) => {
                    let Delegate { ended, returned, missing, .. } = &mut **delegate;
                    [ended, returned, missing].into_iter().for_each(resolve);
                }
                OpKind::Dispatch(_, targets) => targets.iter_mut().for_each(resolve),
                OpKind::Run(_)
                | OpKind::Eval(_)
                | OpKind::Set(..)
                | OpKind::Turn
                | OpKind::Loop(_)
                | OpKind::Each(_)
                | OpKind::Iterate(..)
                | OpKind::Call(..)
                | OpKind::CallFixed(..)
                | OpKind::Construct(..)
                | OpKind::Await(..)
                | OpKind::AwaitItem(_)
                | OpKind::Wait(..)
                | OpKind::Return(_)
                | OpKind::Throw(_)
                | OpKind::Rethrow(_)
                | OpKind::GetIterator(_)
                | OpKind::GotIterator(..)
                | OpKind::Closed { .. }
                | OpKind::List(..)
                | OpKind::GeneratorStart => {}
            }
        }
    }

    fn at(&mut self, span: Span) {
        self.at = span.start;
    }
}
