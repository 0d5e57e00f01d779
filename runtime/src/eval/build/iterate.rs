//! Iterating over what may be an iterable of the script, and generators: lists of operations.

use super::call::spreads;
use super::expression::USUAL;
use super::statement::Guard;
use super::{ENDED, Lowering, THROWN};
use crate::eval::code::Handler;
use crate::eval::node::{
    Argument, Built, Constant, Delegate, EachLoop, Elements, Expression, GetIterator, Items, IteratorRest, Local,
    OpKind, Spread, Walker, Wrapping,
};
use crate::value::Value;
use agentscript_lang::program::{self, Element, Expr, ExprKind, ForEach, Label, Slot, Stmt};
use smallvec::SmallVec;

/// An array pattern that is being lowered.
pub(super) struct Pattern {
    /// What is closed where control leaves it.
    guard: Guard,
    /// Holds the number of the completion.
    kind: Slot,
    /// The temporaries that were pinned before.
    pinned: u32,
}

fn local(slot: Slot) -> Expression {
    Box::new(Local(slot.0 as usize))
}

fn undefined() -> Expression {
    Box::new(Constant(Value::UNDEFINED))
}

impl Lowering<'_, '_> {
    /// What a loop iterates over, if that may be an iterable of the script. In the prelude it is the argument of
    /// `$each`.
    pub(super) fn script_iterable<'e, 'p>(&self, kind: ForEach, iterable: &'e Expr<'p>) -> Option<&'e Expr<'p>> {
        match &iterable.kind {
            ExprKind::Call(call) if self.is_prelude_call(call, "$each") => {
                call.arguments.first().map(|argument| &argument.value)
            }
            _ if self.builder.iterables && kind != ForEach::In => Some(iterable),
            _ => None,
        }
    }

    /// Emit what makes an iterator in a slot.
    fn get_iterator(&mut self, value: Expression, slot: Slot, walker: Walker) {
        self.emit(OpKind::GetIterator(Box::new(GetIterator { value, slot, walker })));
        if walker.is_async() {
            let end = self.target();
            self.emit(OpKind::GotIterator(slot, Wrapping::AsyncFromSync));
            self.jump(end);
            self.emit(OpKind::GotIterator(slot, Wrapping::Async));
            self.bind(end);
        } else {
            self.emit(OpKind::GotIterator(slot, Wrapping::None));
        }
    }

    // ---- Loops ---------------------------------------------------------------------------------

    pub(super) fn lower_script_each(
        &mut self,
        label: Label,
        kind: ForEach,
        iterable: &Expr<'_>,
        (iterator, item): (Slot, Slot),
        body: &Stmt<'_>,
    ) {
        let is_async = kind == ForEach::AwaitOf;
        let value = self.value(iterable).node();
        self.at(iterable.span);
        let walker = if is_async { Walker::AwaitLoop(iterable.span) } else { Walker::Loop(iterable.span) };
        self.get_iterator(value, iterator, walker);
        let (next, over, end) = (self.target(), self.target(), self.target());
        if !is_async && self.is_tree_body(body, label) {
            let script = self.target();
            self.emit(OpKind::JumpIfScript(iterator, script.0 as u32));
            let body = self.statement_tree(body);
            let (iterator, item) = (iterator.0 as usize, item.0 as usize);
            let each = EachLoop { iterator, item, body, counted: !self.builder.is_prelude };
            self.emit(OpKind::Each(Box::new(each)));
            self.jump(end);
            self.bind(script);
        }
        let (plain, taken) = (self.target(), self.target());
        self.bind(next);
        self.at(iterable.span);
        let ready = if is_async { plain } else { taken };
        self.emit(OpKind::Step { iterator, item, end: over.0 as u32, taken: ready.0 as u32 });
        if is_async {
            self.emit(OpKind::Await(local(item), item));
        }
        self.emit(OpKind::Took { iterator, item, end: end.0 as u32 });
        if is_async {
            self.jump(taken);
            self.bind(plain);
            self.emit(OpKind::AwaitItem(item));
        }
        self.bind(taken);
        self.turn();
        let completion @ (kind, _) = (self.temp(), self.temp());
        let broken = self.target();
        let guarded = |this: &mut Self| {
            this.loop_body(label, body, next, broken);
            this.jump(next);
        };
        self.guarded(completion, guarded, |this| this.close_iterator(iterator, kind, is_async));
        self.bind(broken);
        self.set_number(kind, ENDED);
        self.close_iterator(iterator, kind, is_async);
        self.jump(end);
        self.bind(over);
        if is_async {
            // The end of a built-in iterator is awaited like an item.
            self.set(item, undefined());
            self.emit(OpKind::AwaitItem(item));
        }
        self.bind(end);
    }

    /// Emit the closing of an iterator. Where an exception is the reason, another one of the closing is dropped.
    fn close_iterator(&mut self, iterator: Slot, kind: Slot, is_async: bool) {
        let result = self.temp();
        let (none, builtin, rethrow) = (self.target(), self.target(), self.target());
        let from = self.ops.len() as u32;
        let after = if is_async { builtin } else { none };
        self.emit(OpKind::Close { iterator, result, none: none.0 as u32, builtin: after.0 as u32 });
        if is_async {
            self.emit(OpKind::Await(local(result), result));
        }
        self.emit(OpKind::Closed { kind, result });
        let to = self.ops.len() as u32;
        self.jump(none);
        let target = self.ops.len() as u32;
        self.handlers.push(Handler { from, to, target, slot: result });
        let targets: Box<[u32]> = Box::new([rethrow.0 as u32, none.0 as u32]);
        debug_assert!((ENDED, THROWN) == (0.0, 1.0), "the indices of these targets");
        self.emit(OpKind::Dispatch(kind, targets));
        self.bind(rethrow);
        self.emit(OpKind::Rethrow(result));
        if is_async {
            self.bind(builtin);
            self.emit(OpKind::Await(undefined(), result));
        }
        self.bind(none);
    }

    // ---- Patterns ------------------------------------------------------------------------------

    /// Whether it is the iterator of an array pattern that may be one of the script.
    pub(super) fn is_script_pattern(&self, value: &Expr<'_>) -> bool {
        self.builder.iterables && matches!(value.kind, ExprKind::Iterator(..))
    }

    /// Emit the beginning of an array pattern.
    pub(super) fn begin_pattern(&mut self, slot: Slot, iterator: &Expr<'_>) -> Built {
        if let ExprKind::Iterator(value, origin) = &iterator.kind {
            let span = match origin {
                program::Origin::Source(span) => *span,
                program::Origin::Value | program::Origin::Item | program::Origin::Part => iterator.span,
            };
            let value = self.value(value).node();
            self.at(span);
            self.get_iterator(value, slot, Walker::Pattern(*origin, span));
        }
        let completion @ (kind, _) = (self.temp(), self.temp());
        let pinned = std::mem::replace(&mut self.pinned, self.temp);
        let guard = self.guard(completion);
        self.patterns.push(Pattern { guard, kind, pinned });
        Built::Constant(Constant(Value::UNDEFINED))
    }

    /// Emit a step of the iterator of a pattern; jumps to `end` when there is no item.
    fn pattern_step(&mut self, iterator: Slot, item: Slot, end: super::Target, at: u32) {
        let taken = self.target();
        self.at = at;
        self.emit(OpKind::Step { iterator, item, end: end.0 as u32, taken: taken.0 as u32 });
        self.emit(OpKind::Took { iterator, item, end: end.0 as u32 });
        self.bind(taken);
    }

    /// Emit the next item of a pattern.
    pub(super) fn pattern_item(&mut self, iterator: Slot, at: u32) -> Built {
        let (item, over) = (self.temp(), self.target());
        self.pattern_step(iterator, item, over, at);
        self.bind(over);
        Built::Local(Local(item.0 as usize))
    }

    /// Emit the remaining items of a pattern.
    pub(super) fn pattern_rest(&mut self, iterator: Slot, at: u32) -> Built {
        let (items, item) = (self.temp(), self.temp());
        let (script, next, over) = (self.target(), self.target(), self.target());
        self.emit(OpKind::JumpIfScript(iterator, script.0 as u32));
        self.set(items, Box::new(IteratorRest(iterator.0 as usize)));
        self.jump(over);
        self.bind(script);
        self.set(items, Box::new(Items(Box::default())));
        self.bind(next);
        self.pattern_step(iterator, item, over, at);
        self.emit(OpKind::Eval(Box::new(crate::eval::node::Append { items: items.0 as usize, item: item.0 as usize })));
        self.jump(next);
        self.bind(over);
        Built::Local(Local(items.0 as usize))
    }

    /// Emit the end of a pattern.
    pub(super) fn end_pattern(&mut self, iterator: Slot, at: u32) -> Built {
        if let Some(Pattern { guard, kind, pinned }) = self.patterns.pop() {
            self.at = at;
            self.unguard(guard, |this| this.close_iterator(iterator, kind, false));
            self.pinned = pinned;
        }
        Built::Constant(Constant(Value::UNDEFINED))
    }

    // ---- Spread --------------------------------------------------------------------------------

    /// Whether evaluating an argument consists of operations.
    pub(super) fn suspends(&self, argument: &program::Argument<'_>) -> bool {
        argument.value.splits || argument.spread && self.builder.iterables
    }

    /// Build arguments of which some may be spread.
    pub(super) fn spread_arguments(&mut self, arguments: &[program::Argument<'_>]) -> SmallVec<[Built; USUAL]> {
        let parts: Vec<(&Expr<'_>, Option<Spread>)> =
            arguments.iter().map(|argument| &argument.value).zip(spreads(arguments)).collect();
        self.spread_list(&parts)
    }

    /// An array literal with spread elements.
    pub(super) fn spread_array(&mut self, elements: &[Element<'_>], at: u32) -> Built {
        let parts: Vec<(&Expr<'_>, Option<Spread>)> = elements
            .iter()
            .filter_map(|element| match element {
                Element::Hole => None,
                Element::Item(value) => Some((value, None)),
                Element::Spread(value) => Some((value, Some(Spread::Element(value.span)))),
            })
            .collect();
        let mut built = self.spread_list(&parts).into_iter().zip(&parts);
        let elements = elements.iter().map(|element| match element {
            Element::Hole => None,
            Element::Item(_) | Element::Spread(_) => {
                built.next().map(|(value, &(_, spread))| Argument { value: value.node(), spread })
            }
        });
        Built::from_node(Elements { elements: elements.collect(), at })
    }

    /// Build expressions that are evaluated in order; what is spread is iterated over in its turn.
    fn spread_list(&mut self, parts: &[(&Expr<'_>, Option<Spread>)]) -> SmallVec<[Built; USUAL]> {
        let suspends =
            |&(value, spread): &(&Expr<'_>, Option<Spread>)| value.splits || spread.is_some() && self.builder.iterables;
        let last = parts.iter().rposition(suspends).unwrap_or(0);
        let exprs: Vec<&Expr<'_>> = parts.iter().map(|&(value, _)| value).collect();
        let mut built = SmallVec::with_capacity(parts.len());
        for (index, &(value, spread)) in parts.iter().enumerate() {
            if let Some(spread) = spread.filter(|_| self.builder.iterables || index < last) {
                let slot = self.temp();
                self.into_slot(value, slot);
                self.at(value.span);
                self.emit(OpKind::List(slot, spread, index < last));
                built.push(Built::Local(Local(slot.0 as usize)));
                continue;
            }
            let value = self.value(value);
            built.push(if index < last { self.save(value, &exprs[index + 1..=last]) } else { value });
        }
        built
    }

    // ---- Generators ----------------------------------------------------------------------------

    /// `yield value`
    pub(super) fn yielding(&mut self, value: &Expr<'_>, at: u32) -> Built {
        let dst = self.temp();
        let value = if self.awaits_return {
            self.await_into(value, dst, at);
            local(dst)
        } else {
            self.value(value).node()
        };
        let (returned, end) = (self.target(), self.target());
        self.at = at;
        self.emit(OpKind::Yield { value, dst, returned: returned.0 as u32 });
        self.jump(end);
        self.bind(returned);
        if self.awaits_return {
            self.emit(OpKind::Await(local(dst), dst));
        }
        self.return_slot(dst);
        self.bind(end);
        Built::Local(Local(dst.0 as usize))
    }

    /// `yield* items` (ECMAScript 15.5.5)
    pub(super) fn delegate(&mut self, items: &Expr<'_>, at: u32) -> Built {
        let is_async = self.awaits_return;
        let value = self.value(items).node();
        let [iterator, received, mode, result] = [(); 4].map(|()| self.temp());
        self.at = at;
        self.get_iterator(value, iterator, if is_async { Walker::AsyncDelegate } else { Walker::Delegate });
        self.set(received, undefined());
        self.set_number(mode, 0.0);
        let (next, ended, returned) = (self.target(), self.target(), self.target());
        let missing = if is_async { self.target() } else { returned };
        let [ended_at, returned_at, missing_at] = [ended, returned, missing].map(|target| target.0 as u32);
        let delegate = Delegate {
            iterator,
            received,
            mode,
            result,
            is_async,
            ended: ended_at,
            returned: returned_at,
            missing: missing_at,
        };
        self.bind(next);
        self.emit(OpKind::Delegate(Box::new(delegate)));
        if is_async {
            self.emit(OpKind::Await(local(result), result));
        }
        self.emit(OpKind::Delegated(Box::new(delegate)));
        self.emit(OpKind::YieldStar(Box::new(delegate)));
        if is_async {
            self.await_received(received, mode, next);
        }
        self.jump(next);
        if is_async {
            self.bind(missing);
            self.emit(OpKind::Await(local(result), result));
        }
        self.bind(returned);
        self.return_slot(result);
        self.bind(ended);
        Built::Local(Local(result.0 as usize))
    }

    /// The value of a `return` is awaited before it is passed on; where that fails, it is an exception.
    fn await_received(&mut self, received: Slot, mode: Slot, next: super::Target) {
        let awaits = self.target();
        // `next` and `throw` are 0 and 1.
        self.emit(OpKind::Dispatch(mode, Box::new([next.0 as u32, next.0 as u32, awaits.0 as u32])));
        self.bind(awaits);
        let from = self.ops.len() as u32;
        self.emit(OpKind::Await(local(received), received));
        let to = self.ops.len() as u32;
        self.jump(next);
        let target = self.ops.len() as u32;
        self.handlers.push(Handler { from, to, target, slot: received });
        self.set_number(mode, 1.0);
    }
}
