//! The operations of built-ins that the evaluator needs: it gets them with the registry.

use crate::builtins::tool::{self, function};
use crate::builtins::url;
use crate::builtins::{bytes, inspect, iterator};
use crate::eval::registry::Hooks;
use crate::heap::Yields;

/// The operations.
pub const HOOKS: Hooks = Hooks {
    next_item: iterator::next_item,
    iterate_bytes: |vm, value| bytes::iterator(vm, value, Yields::Values),
    inherited_names: url::inherited_names,
    inspect: |vm, value, limit| inspect::inspect(vm, value, inspect::Options { limit, ..inspect::Options::default() }),
    input: tool::context_value,
    tool_member: tool::tool_member,
    missing_tool: tool::missing_tool,
    call_tool: tool::call_tool_value,
    call_host_function: function::call_host_function,
};
