//! The operations of built-ins that the evaluator needs: it gets them with the registry.

use super::{bytes, inspect, iterator};
use crate::eval::registry::Hooks;
use crate::eval::vm::Vm;
use crate::heap::Yields;

/// The operations.
pub const HOOKS: Hooks = Hooks {
    next_item: iterator::next_item,
    iterate_bytes: |vm, value| bytes::iterator(vm, value, Yields::Values),
    inherited_names: Vm::inherited_names,
    inspect: |vm, value, limit| vm.inspect(value, inspect::Options { limit, ..inspect::Options::default() }),
    input: Vm::context_value,
    tool_member: Vm::tool_member,
    missing_tool: Vm::missing_tool,
    call_tool: Vm::call_tool_value,
    call_host_function: Vm::call_host_function,
};
