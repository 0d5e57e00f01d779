//! `call_tool` and `call_tools` of the synchronous dialect: calls that the whole run waits for. The
//! waiting itself is an operation of the prelude, so that they can be used wherever frames can.

use crate::builtins::arg;
use crate::builtins::tool;
use crate::eval::vm::Vm;
use crate::meter::buffer::Buffer;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};

/// `$call_tool(server, tool, args)`: the promise of the answer.
pub fn call_tool(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    begin(vm, "call_tool", [arg(arguments, 0), arg(arguments, 1), arg(arguments, 2)])
}

/// `$call_tools([{server, tool, args}])`: the promises of the answers. No call is made where one is wrong.
pub fn call_tools(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let list = arg(arguments, 0);
    if !list.is(Kind::Array) {
        return Err(vm.type_error("call_tools expects an array of {server, tool, args}"));
    }
    let items = vm.heap.charged_items_copy(list)?;
    let mut calls = Buffer::with_capacity(vm, items.len())?;
    for (index, item) in items.into_iter().enumerate() {
        if !item.is(Kind::Object) {
            let what = tool::what(vm, item);
            let message = brief!("call_tools expects {{server, tool, args}}, but item {index} is {what}");
            return Err(vm.type_error(&message));
        }
        let call =
            [tool::option(vm, item, "server")?, tool::option(vm, item, "tool")?, tool::option(vm, item, "args")?];
        named(vm, "call_tools", &call)?;
        vm.work(1)?;
        calls.push(vm, call)?;
    }
    let mut answers = Buffer::with_capacity(vm, calls.len())?;
    for call in calls {
        let answer = begin(vm, "call_tools", call)?;
        answers.push(vm, answer)?;
    }
    Ok(vm.heap.array_of(answers))
}

/// Make a call: the promise of its answer.
fn begin(vm: &mut Vm, function: &str, call: [Value; 3]) -> Result {
    check_waiting(vm, function)?;
    let name = named(vm, function, &call)?;
    tool::start_call(vm, name, call[2], Value::UNDEFINED)
}

/// An error where nothing could go on with an answer: then the host is not called either.
pub(in crate::builtins) fn check_waiting(vm: &mut Vm, function: &str) -> Result<()> {
    if vm.heap.meter.nesting == 0 {
        return Ok(());
    }
    let message = brief!(
        "{function} cannot be used inside of an implicit conversion (toString, valueOf, toJSON); call it before"
    );
    Err(vm.type_error(&message))
}

/// The full name of the tool of a call.
fn named(vm: &mut Vm, function: &str, &[server, tool, _]: &[Value; 3]) -> Result {
    for (value, role) in [(server, "server"), (tool, "tool")] {
        if !value.is_string() {
            let what = tool::what(vm, value);
            let message = brief!(
                "{function} expects the name of a {role} as a string, not {what}; write call_tool(server, tool, args)"
            );
            return Err(vm.type_error(&message));
        }
    }
    let (server, tool) = (tool::tool_name(vm, server)?, tool::tool_name(vm, tool)?);
    // A tool that belongs to no app has only its own name.
    let name = if server.is_empty() { tool } else { brief!("{server}:{tool}") };
    Ok(vm.heap.string(&name))
}
