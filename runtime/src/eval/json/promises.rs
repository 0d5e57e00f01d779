//! Promises inside of results.

use crate::eval::json::stringify;
use crate::eval::json::unread;
use crate::eval::vm::Vm;
use crate::heap::promise::State;
use crate::meter::buffer::{Buffer, Hold};
use crate::value::atom::known;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};
use hashbrown::HashSet;

/// Bytes of an entry in the table of visited values, while it grows.
const SEEN_BYTES: usize = 16;

/// The first promise in a value, in the order of its JSON text, that is not fulfilled. A result is written when
/// there is none. All of them are awaited, so a rejection of any is handled.
pub fn pending_promise_in(vm: &mut Vm, value: Value) -> Result<Option<Value>> {
    // Whether a promise is awaited counts for what is noted of it.
    if vm.heap.unfulfilled == 0 && vm.unawaited.is_empty() {
        return Ok(None);
    }
    let mut seen = HashSet::new();
    let mut hold = Hold::NONE;
    let mut work = Buffer::new();
    let mut first = None;
    work.push(vm, value)?;
    while let Some(value) = work.pop() {
        if !matches!(value.kind(), Kind::Object | Kind::Array | Kind::Map | Kind::Set | Kind::Promise)
            || seen.contains(&value)
        {
            continue;
        }
        if seen.len() == seen.capacity() {
            // It doubles, and has both for a moment.
            hold.grow(vm, seen.len().max(4) * SEEN_BYTES)?;
        }
        seen.insert(value);
        vm.work(1)?;
        match value.kind() {
            Kind::Promise => {
                let promise = &mut vm.heap.promises[value.index()];
                promise.handled = true;
                if promise.state == State::Fulfilled {
                    let value = promise.value;
                    work.push(vm, value)?;
                } else {
                    first = first.or(Some(value));
                }
            }
            Kind::Array if vm.heap.is_sparse(value) => {
                let items = vm.heap.charged_sparse_items(value, 0..usize::MAX)?.into_iter().rev();
                work.extend(vm, items.map(|(_, item)| item).filter(|item| item.is_object()))?;
            }
            Kind::Array => {
                let charge = vm.work(vm.heap.length(value) / 8)?;
                let items = vm.heap.read_items(value, charge).iter().rev();
                work.extend(vm, items.copied().filter(|item| item.is_object()))?;
            }
            Kind::Map | Kind::Set => {
                let parts = vm.heap.charged_entries(value)?.into_iter().rev().flat_map(|(key, value)| [value, key]);
                work.extend(vm, parts.filter(|part| part.is_object()))?;
            }
            _ if unread::own(vm, value, known::TO_JSON)?.is_some_and(Value::is_callable) => {}
            _ => {
                let values = stringify::enumerable_entries(vm, value)?.into_iter().rev().map(|(_, value)| value);
                work.extend(vm, values.filter(|value| value.is_object()))?;
            }
        }
    }
    Ok(first)
}
