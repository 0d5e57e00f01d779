//! The calls and timers that a run waits for when its main function has ended. As a Node process it goes on until
//! nothing is left to do.
//!
//! It waits for all calls and timers but the losers. Their outcome can only reach a `race`, an `any` or an `all` that
//! is settled already. A promise that nobody holds has not lost.

use crate::eval::code::Outer;
use crate::eval::generator::Generator;
use crate::eval::schedule::{Action, Timer};
use crate::eval::vm::Vm;
use crate::heap::frame::After;
use crate::heap::promise::{Reaction, State};
use crate::interface::host::CallId;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};
use hashbrown::{HashMap, HashSet};

/// Most promises that are looked at. What is not clear then counts as needed.
const MAX_VISITS: usize = 20_000;

/// A search for what needs promises; what it has found out holds for several of them.
#[derive(Default)]
pub struct Search {
    needed: HashSet<u32>,
    lost: HashSet<u32>,
    visits: usize,
}

impl Search {
    /// Whether something waits for the outcome of a pending promise that has not lost itself.
    pub fn is_awaited(&mut self, vm: &Vm, promise: Value) -> bool {
        !vm.heap.promises[promise.index()].reactions.is_none() && self.is_needed(vm, promise)
    }

    /// Whether a pending promise has not lost: something waits for it that has not, or nobody holds it.
    pub fn is_needed(&mut self, vm: &Vm, promise: Value) -> bool {
        // The promises that are reached, each with the one before it.
        let mut from: HashMap<u32, Option<u32>> = HashMap::from([(promise.payload(), None)]);
        let mut work = vec![promise];
        while let Some(promise) = work.pop() {
            let number = promise.payload();
            if self.lost.contains(&number) {
                continue;
            }
            self.visits += 1;
            let data = &vm.heap.promises[promise.index()];
            let ends = data.state == State::Pending && data.reactions.is_none();
            if ends || self.needed.contains(&number) || self.visits > MAX_VISITS {
                let mut at = Some(number);
                while let Some(number) = at {
                    self.needed.insert(number);
                    at = from.get(&number).copied().flatten();
                }
                return true;
            }
            for reaction in data.reactions.as_slice() {
                let Some(next) = leads_to(vm, *reaction) else { continue };
                let is_pending = vm.heap.promises[next.index()].state == State::Pending;
                if is_pending && !from.contains_key(&next.payload()) {
                    from.insert(next.payload(), Some(number));
                    work.push(next);
                }
            }
        }
        self.lost.extend(from.into_keys());
        false
    }

    /// Whether a run goes on for a timer.
    pub fn is_timer_needed(&mut self, vm: &Vm, timer: &Timer) -> bool {
        let settles = match timer.action {
            Action::Resolve(promise) => Some(promise),
            Action::Call(callback, _) if !timer.repeats => settled_by(vm, callback),
            Action::Call(..) | Action::Abort(_) => None,
        };
        let is_pending = |promise: Value| vm.heap.promises[promise.index()].state == State::Pending;
        timer.keeps && settles.is_none_or(|promise| is_pending(promise) && self.is_needed(vm, promise))
    }
}

/// The promise that a reaction leads to.
fn leads_to(vm: &Vm, reaction: Reaction) -> Option<Value> {
    match reaction {
        Reaction::Await(number) => match vm.stack.suspended[number as usize].as_ref()?.after {
            After::Async(promise, _) => Some(promise),
            After::AsyncGenerator(generator, _) => vm.heap.slots::<Generator>(generator)?.oldest_request(),
            After::Call | After::Job(_) | After::Nested | After::Generator(..) => None,
        },
        Reaction::Then { fulfilled, rejected, derived } => {
            let handlers = [fulfilled, rejected].into_iter().filter(|handler| handler.is(Kind::NativeClosure));
            let data = |handler: Value| vm.heap.native_closures[handler.index()].data;
            let combined = handlers.clone().map(|handler| data(handler)[2]).find(|result| result.is(Kind::Promise));
            let adopting = || handlers.map(|handler| data(handler)[0]).find(|promise| promise.is(Kind::Promise));
            combined.or(Some(derived).filter(|derived| derived.is(Kind::Promise))).or_else(adopting)
        }
    }
}

/// The promise that is all that a callback settles: a resolving function, or `() => reject(new Error('late'))`.
fn settled_by(vm: &Vm, callback: Value) -> Option<Value> {
    let function = match callback.kind() {
        Kind::Function => {
            let closure = &vm.heap.closures[callback.index()];
            match vm.realm.function(closure.code).settles? {
                Outer::Captured(index) => *closure.captures.get(index as usize)?,
                Outer::Cell(index) => {
                    let cell = closure.captures.get(index as usize).filter(|cell| cell.is(Kind::Cell))?;
                    vm.heap.cells[cell.index()]
                }
                Outer::Global(slot) => *vm.realm.globals.get(slot as usize)?,
            }
        }
        _ => callback,
    };
    if !function.is(Kind::NativeClosure) {
        return None;
    }
    let [promise, used, _] = vm.heap.native_closures[function.index()].data;
    (promise.is(Kind::Promise) && used.is(Kind::Cell)).then_some(promise)
}

/// The calls that the run waits for.
pub(crate) fn needs_calls(vm: &mut Vm) -> Result<bool> {
    if vm.host.calls.is_empty() {
        return Ok(false);
    }
    let mut search = Search::default();
    let open = vm.host.calls.open();
    let needed = open.iter().any(|&(_, promise)| search.is_needed(vm, promise));
    vm.work(open.len() / 8 + search.visits)?;
    Ok(needed)
}

/// Whether there is anything that a run waits for whose main function has ended.
pub(crate) fn needs_more(vm: &mut Vm) -> Result<bool> {
    if needs_calls(vm)? {
        return Ok(true);
    }
    if vm.schedule.is_empty() {
        return Ok(false);
    }
    let mut search = Search::default();
    let needed = vm.schedule.pending().any(|(_, timer)| search.is_timer_needed(vm, timer));
    vm.work(search.visits)?;
    Ok(needed)
}

/// The calls without an answer, with what `holds` of their promises.
pub(crate) fn open_calls(vm: &Vm, holds: impl Fn(&mut Search, &Vm, Value) -> bool) -> Vec<(CallId, bool)> {
    let mut search = Search::default();
    vm.host.calls.open().into_iter().map(|(id, promise)| (id, holds(&mut search, vm, promise))).collect()
}

/// The timer that a run waits for that has nothing else to wait for, an interval first.
pub(crate) fn awaited_timer(vm: &Vm) -> Option<Timer> {
    let mut search = Search::default();
    let mut needed = vm.schedule.pending().map(|(_, timer)| *timer);
    let needed: Vec<Timer> = needed.by_ref().filter(|timer| search.is_timer_needed(vm, timer)).collect();
    needed.iter().find(|timer| timer.repeats).or(needed.first()).copied()
}
