//! Promises inside of results.

use crate::error::Result;
use crate::promise::State;
use crate::symbol::known;
use crate::value::{Kind, Value};
use crate::vm::Vm;
use hashbrown::HashSet;

impl Vm {
    /// The first promise in a value, in the order of its JSON text, that is not fulfilled: a result is
    /// written when there is none.
    pub fn pending_promise_in(&mut self, value: Value) -> Result<Option<Value>> {
        if self.heap.unfulfilled == 0 {
            return Ok(None);
        }
        let mut seen = HashSet::new();
        let mut work = vec![value];
        while let Some(value) = work.pop() {
            if !matches!(value.kind(), Kind::Object | Kind::Array | Kind::Promise) || !seen.insert(value) {
                continue;
            }
            self.work(1)?;
            match value.kind() {
                Kind::Promise => {
                    let promise = &self.heap.promises[value.index()];
                    if promise.state != State::Fulfilled {
                        return Ok(Some(value));
                    }
                    work.push(promise.value);
                }
                Kind::Array => {
                    let items = self.heap.items(value);
                    work.extend(items.iter().rev().filter(|item| item.is_object()));
                }
                _ if self.own(value, known::TO_JSON)?.is_some_and(Value::is_callable) => {}
                _ => {
                    let entries = self.enumerable_entries(value)?;
                    work.extend(entries.into_iter().rev().map(|(_, value)| value).filter(|value| value.is_object()));
                }
            }
        }
        Ok(None)
    }
}
