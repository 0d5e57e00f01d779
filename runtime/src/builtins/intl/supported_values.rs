//! `Intl.supportedValuesOf`.

use crate::builtins::arg;
use crate::eval::vm::Vm;
use crate::interface::outcome::MAX_MESSAGE_BYTES;
use crate::meter::buffer::Buffer;
use crate::value::Value;
use crate::value::thrown::Result;
use agentscript_intl::supported_values;

/// `Intl.supportedValuesOf(key)`
pub fn supported_values_of(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let key = vm.to_string(arg(arguments, 0))?;
    let key = vm.short_text(key, MAX_MESSAGE_BYTES)?;
    let Some(values) = supported_values::of(&key) else {
        return Err(vm.range_error(&brief!("Invalid key : {key}")));
    };
    vm.work(values.len() / 8)?;
    let mut texts = Buffer::new();
    for value in values.split(' ') {
        let value = vm.heap.string(value);
        texts.push(vm, value)?;
    }
    Ok(vm.heap.array_of(texts))
}
