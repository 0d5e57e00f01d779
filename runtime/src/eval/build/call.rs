//! Calls: nodes where a built-in is known to run no function of the script, operations elsewhere.

use super::Lowering;
use super::expression::USUAL;
use crate::eval::native::Body as NativeBody;
use crate::eval::node::{
    self, Argument, Arguments, Built, Call, Callee, Constant, Expression, FixedCall, MethodCall, NativeCall, OpKind,
    Spread, SpreadCall, SpreadNew, constant_global,
};
use crate::eval::registry::Static;
use crate::heap::frame::FunctionRef;
use crate::value::atom::known;
use crate::value::{Kind, Value};
use agentscript_lang::program::{self, Expr, ExprKind, Place, Slot, TextId};
use smallvec::SmallVec;
use std::borrow::Cow;

impl Lowering<'_, '_> {
    /// A free name.
    pub(super) fn global(&mut self, name: TextId, typeof_only: bool, at: u32) -> Built {
        let text = self.builder.text(name);
        if self.builder.is_prelude
            && let Some(intrinsic) = self.builder.registry.intrinsic(text)
        {
            return Built::Constant(Constant(Value::handle(Kind::Native, intrinsic)));
        }
        constant_global(text, self.builder.constant_global(name))
            .unwrap_or_else(|| Built::from_node(node::Global { name: self.builder.atom(name), at, typeof_only }))
    }

    /// The built-in function that a callee is known to be, with its receiver.
    fn known(&self, callee: &program::Callee<'_>) -> Option<(u32, Value)> {
        let registry = self.builder.registry;
        match callee {
            program::Callee::Value(Expr { kind: ExprKind::Global(name), .. }) => {
                let intrinsic =
                    if self.builder.is_prelude { registry.intrinsic(self.builder.text(*name)) } else { None };
                Some((intrinsic.or_else(|| self.builder.global_of(*name))?, Value::UNDEFINED))
            }
            program::Callee::Member(Expr { kind: ExprKind::Global(owner), .. }, name) => {
                let owner = self.builder.global_of(*owner)?;
                match registry.property(owner, self.builder.atom(*name))? {
                    Static::Native(native) => Some((native, Value::handle(Kind::Native, owner))),
                    Static::Number(_) => None,
                }
            }
            _ => None,
        }
    }

    /// Whether a call is an operation of its own and not a node.
    pub(super) fn is_op(&self, call: &program::Call<'_>) -> bool {
        match self.known(&call.callee) {
            Some((native, _)) => {
                self.builder.registry.natives[native as usize].call.as_native(self.builder.iterables).is_none()
            }
            None => match &call.callee {
                program::Callee::Member(_, name) => {
                    self.builder.program.written[name.0 as usize]
                        || !self.builder.registry.is_plain_method(self.builder.atom(*name), self.builder.iterables)
                }
                program::Callee::Value(_) | program::Callee::Index(..) | program::Callee::With { .. } => true,
            },
        }
    }

    pub(super) fn call(&mut self, call: &program::Call<'_>, expr: &Expr<'_>) -> Built {
        if self.is_op(call) {
            let slot = self.temp();
            self.call_into(call, slot, expr.span);
            return Built::Local(node::Local(slot.0 as usize));
        }
        let at = call.callee_span.start;
        let callee_span = call.callee_span;
        let spread = call.arguments.iter().any(|argument| argument.spread);
        if let Some((native, this)) = self.known(&call.callee) {
            let Some(function) = self.builder.registry.natives[native as usize].call.as_native(self.builder.iterables)
            else {
                return Built::Constant(Constant(Value::UNDEFINED));
            };
            if spread {
                let callee =
                    Callee::With(Box::new(Constant(Value::handle(Kind::Native, native))), Box::new(Constant(this)));
                return Built::from_node(SpreadCall { callee, arguments: self.arguments(call.arguments), callee_span });
            }
            let row = &self.builder.registry.natives[native as usize];
            let located =
                row.construct.is_some() || matches!(row.name, "callTool" | "all" | "allSettled" | "any" | "race");
            let arguments = self.plain_arguments(call.arguments);
            return Built::from_node(NativeCall { function, this, arguments, at, located });
        }
        let (object, name) = match &call.callee {
            program::Callee::Member(object, name) => (object, name),
            program::Callee::Value(_) | program::Callee::Index(..) | program::Callee::With { .. } => {
                return Built::Constant(Constant(Value::UNDEFINED));
            }
        };
        // If arguments are operations, the method is read first.
        if call.arguments.iter().any(|argument| self.suspends(argument)) {
            let callee = self.early_callee(call);
            return Built::from_node(SpreadCall { callee, arguments: self.arguments(call.arguments), callee_span });
        }
        let name = self.builder.atom(*name);
        let object = self.value(object).node();
        if spread {
            let callee = Callee::Member(object, name);
            return Built::from_node(SpreadCall { callee, arguments: self.arguments(call.arguments), callee_span });
        }
        if let [item] = call.arguments
            && name == known::PUSH
        {
            return Built::from_node(node::Push { object, item: self.tree(&item.value), callee_span });
        }
        let arguments = self.plain_arguments(call.arguments);
        Built::from_node(MethodCall { object, name, arguments, callee_span })
    }

    fn plain_arguments(&mut self, arguments: &[program::Argument<'_>]) -> Arguments {
        Arguments(self.nodes(arguments.iter().map(|argument| &argument.value)).into_iter().collect())
    }

    fn arguments(&mut self, arguments: &[program::Argument<'_>]) -> Box<[Argument]> {
        let values = self.spread_arguments(arguments).into_iter().map(Built::node);
        values.zip(spreads(arguments)).map(|(value, spread)| Argument { value, spread }).collect()
    }

    /// Emit a call whose value goes into a slot.
    pub(super) fn call_into(&mut self, call: &program::Call<'_>, slot: Slot, span: agentscript_lang::Span) {
        if self.is_prelude_call(call, "$wait") {
            let promise = self.plain_arguments(call.arguments).0.pop();
            self.at = span.start;
            self.emit(OpKind::Wait(promise.unwrap_or_else(|| Box::new(Constant(Value::UNDEFINED))), slot));
            return;
        }
        if let Some(function) = self.fixed(call) {
            let arguments = self.nodes(call.arguments.iter().map(|argument| &argument.value)).into_boxed_slice();
            self.at = span.start;
            return self.emit(OpKind::CallFixed(FixedCall { function, arguments }, slot));
        }
        let mut exprs: SmallVec<[&Expr<'_>; USUAL]> = SmallVec::with_capacity(call.arguments.len() + 2);
        let apply = self.is_prelude_call(call, "$call");
        match &call.callee {
            program::Callee::Value(_) if apply => {}
            program::Callee::Value(function) => exprs.push(function),
            program::Callee::Member(object, _) => exprs.push(object),
            program::Callee::Index(object, key) => exprs.extend([object, key]),
            program::Callee::With { function, this } => exprs.extend([function, this]),
        }
        exprs.extend(call.arguments.iter().map(|argument| &argument.value));
        // JavaScript reads the method before the arguments are evaluated, so if an argument can suspend, the callee is
        // read first.
        let late = call.arguments.iter().any(|argument| self.suspends(argument));
        let mut callee = None;
        if late && !apply {
            callee = Some(self.early_callee(call));
            exprs.drain(..exprs.len() - call.arguments.len());
        }
        let built = match late && !apply {
            true => self.spread_arguments(call.arguments),
            false => self.operand_list(&exprs),
        };
        let mut built = built.into_iter();
        let mut next = || built.next().unwrap_or(Built::Constant(Constant(Value::UNDEFINED)));
        let callee = match callee {
            Some(callee) => callee,
            None if apply => {
                let function = next().node();
                Callee::Prelude(function, next().node())
            }
            None => match &call.callee {
                program::Callee::Value(_) => Callee::value(next()),
                program::Callee::Member(_, name) => Callee::Member(next().node(), self.builder.atom(*name)),
                program::Callee::Index(..) => {
                    let object = next().node();
                    Callee::Index(object, next().node())
                }
                program::Callee::With { .. } => {
                    let function = next().node();
                    Callee::With(function, next().node())
                }
            },
        };
        let arguments: Box<[Argument]> = if apply {
            Box::new([Argument { value: next().node(), spread: Some(Spread::Among(None)) }])
        } else {
            // As large as it has to be: it is not moved then.
            let mut list = Vec::with_capacity(call.arguments.len());
            let values = built.map(Built::node).zip(spreads(call.arguments));
            list.extend(values.map(|(value, spread)| Argument { value, spread }));
            list.into()
        };
        let spread = arguments.iter().any(|argument| argument.spread.is_some());
        self.at = if matches!(call.callee, program::Callee::Value(_)) { span.start } else { call.callee_span.start };
        self.emit(OpKind::Call(Box::new(Call { callee, arguments, spread, callee_span: call.callee_span }), slot));
        if self.known(&call.callee).is_some()
            && self.repeats_call(call)
            && let Some(op) = self.ops.last_mut()
        {
            op.repeats = true;
        }
    }

    /// The function that a call is known to call, if entering it only stores the arguments.
    fn fixed(&self, call: &program::Call<'_>) -> Option<FunctionRef> {
        let program::Callee::Value(Expr { kind: ExprKind::Read(variable), .. }) = &call.callee else { return None };
        let Place::Global(index) = self.place(variable.reference) else { return None };
        if self.builder.program.is_checked(variable) {
            return None;
        }
        let id = self.builder.program.fixed[index as usize]?;
        let function = &self.builder.program.functions[id.0 as usize];
        let fits = call.arguments.len() <= function.parameters as usize
            && call.arguments.iter().all(|argument| !argument.spread);
        (fits && super::is_simple(function) && !function.is_async).then(|| self.builder.function_ref(id.0))
    }

    /// Read the callee before the arguments: function and receiver in temporaries.
    fn early_callee(&mut self, call: &program::Call<'_>) -> Callee {
        let local = |slot: Slot| -> Expression { Box::new(node::Local(slot.0 as usize)) };
        let at = call.callee_span.start;
        let (function, this) = (self.temp(), self.temp());
        match &call.callee {
            program::Callee::Value(value) => {
                self.into_slot(value, function);
                return Callee::Local(node::Local(function.0 as usize));
            }
            program::Callee::Member(object, name) => {
                self.into_slot(object, this);
                let name = self.builder.atom(*name);
                let member = node::member(Built::Local(node::Local(this.0 as usize)), name, at);
                self.set(function, member.node());
            }
            program::Callee::Index(object, key) => {
                let [object, key] = [object, key].map(|expr| {
                    let slot = self.temp();
                    self.into_slot(expr, slot);
                    slot
                });
                self.set(this, local(object));
                let built = |slot: Slot| Built::Local(node::Local(slot.0 as usize));
                self.set(function, node::index(built(object), built(key), at).node());
            }
            program::Callee::With { function: value, this: receiver } => {
                self.into_slot(value, function);
                self.into_slot(receiver, this);
            }
        }
        Callee::With(local(function), local(this))
    }

    /// Whether it is a call that only the prelude can write: `$call(function, receiver, arguments)`, or
    /// `$wait(promise)` of a promise that a variable holds.
    pub(super) fn is_prelude_call(&self, call: &program::Call<'_>, wanted: &str) -> bool {
        self.builder.is_prelude
            && matches!(&call.callee, program::Callee::Value(Expr { kind: ExprKind::Global(name), .. })
                if self.builder.text(*name) == wanted)
    }

    pub(super) fn construct(&mut self, path: &[TextId], arguments: &[program::Argument<'_>], expr: &Expr<'_>) -> Built {
        let at = expr.span.start;
        let first = path.first().map_or(known::EMPTY, |&name| self.builder.atom(name));
        let name: Cow<'_, str> = match *path {
            [name] => self.builder.text(name).into(),
            _ => path.iter().map(|&name| self.builder.text(name)).collect::<Vec<_>>().join(".").into(),
        };
        let Some(native) = self.builder.registry.path(&name) else {
            // A constructor of ECMAScript that is not implemented is an unknown name.
            return match path.len() {
                1 => Built::from_node(node::Global { name: first, at, typeof_only: false }),
                _ => Built::from_node(node::NotAConstructor { name: name.into_owned(), at }),
            };
        };
        let arguments = self.arguments(arguments);
        match self.builder.registry.natives[native as usize].construct {
            Some(body) if let Some(function) = body.as_native(self.builder.iterables) => {
                if arguments.iter().any(|argument| argument.spread.is_some()) {
                    return Built::from_node(SpreadNew { function, arguments, at });
                }
                let arguments = Arguments(arguments.into_iter().map(|argument| argument.value).collect());
                Built::from_node(NativeCall { function, this: Value::UNDEFINED, arguments, at, located: true })
            }
            Some(NativeBody::Prelude(_) | NativeBody::Iterating(..)) => {
                let slot = self.temp();
                self.at = at;
                self.emit(OpKind::Construct(native, arguments, slot));
                Built::Local(node::Local(slot.0 as usize))
            }
            Some(
                NativeBody::Native(_) | NativeBody::Namespace | NativeBody::Accessor { .. } | NativeBody::Resume(..),
            )
            | None => Built::from_node(node::NotAConstructor { name: name.into_owned(), at }),
        }
    }
}

/// The position of each spread argument.
pub(super) fn spreads<'e>(arguments: &'e [program::Argument<'_>]) -> impl Iterator<Item = Option<Spread>> + 'e {
    let first = arguments.iter().position(|argument| argument.spread);
    arguments.iter().enumerate().map(move |(index, argument)| {
        let is_only = first == Some(index) && index + 1 == arguments.len();
        let callee = match &argument.value.kind {
            ExprKind::Call(call) => Some(call.callee_span),
            _ => None,
        };
        let spread = if is_only { Spread::Last(argument.value.span) } else { Spread::Among(callee) };
        argument.spread.then_some(spread)
    })
}
