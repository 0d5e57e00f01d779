//! The names, lengths and classes of functions.

use crate::eval::native::ClosureFn;
use crate::eval::vm::Vm;
use crate::heap::Action;
use crate::interface::outcome::{MAX_MESSAGE_BYTES, cut_message_bytes};
use crate::value::atom::known;
use crate::value::{Kind, Value};
use std::sync::Arc;

/// The class of a function object, as its tag and `console.log` name it.
pub fn class(vm: &Vm, function: Value) -> &'static str {
    if !function.is(Kind::Function) {
        return "Function";
    }
    let function = vm.realm.function(vm.heap.closures[function.index()].code);
    match (function.is_async, function.is_generator) {
        (false, false) => "Function",
        (true, false) => "AsyncFunction",
        (false, true) => "GeneratorFunction",
        (true, true) => "AsyncGeneratorFunction",
    }
}

/// The `name` of a callable, for messages: a long one is cut.
pub fn name(vm: &mut Vm, function: Value) -> String {
    let name = name_string(vm, function);
    cut_message_bytes(vm.heap.bytes(name), MAX_MESSAGE_BYTES)
}

/// The `name` of a callable.
pub fn name_string(vm: &mut Vm, function: Value) -> Value {
    let own = match function.kind() {
        Kind::Function => {
            let closure = &vm.heap.closures[function.index()];
            let code = closure.code;
            let own = || vm.realm.function(code).name.filter(|_| !code.is_prelude());
            closure.name.or_else(own)
        }
        Kind::NativeClosure if let Some((_, own)) = vm.heap.applied(function) => return own[0],
        Kind::Native => return vm.heap.string(vm.realm.registry.natives[function.index()].name),
        Kind::Tool => return Value::handle(Kind::String, function.payload()),
        Kind::HostFunction => {
            let script = Arc::clone(&vm.realm.script);
            return vm.heap.string(&script.linker.row(function.payload()).name);
        }
        _ => None,
    };
    vm.heap.atom_string(own.unwrap_or(known::EMPTY))
}

/// The `length` of a callable.
pub fn length(vm: &Vm, function: Value) -> u32 {
    match function.kind() {
        Kind::Function => {
            let code = vm.heap.closures[function.index()].code;
            vm.realm.function(code).length
        }
        Kind::Native => u32::from(vm.realm.registry.natives[function.index()].length),
        Kind::HostFunction => u32::from(vm.realm.script.linker.row(function.payload()).length),
        Kind::NativeClosure => match vm.heap.applied(function) {
            Some((target, own)) => length(vm, target).saturating_sub(own.len() as u32 - 1),
            None => match vm.heap.native_closures[function.index()].action {
                Action::Native(native) => native.downcast_ref::<ClosureFn>().map_or(0, |native| native.length),
                Action::Apply => 0,
            },
        },
        _ => 1,
    }
}
