//! `Intl.supportedValuesOf`.

use crate::builtins::arg;
use crate::charge::Buffer;
use crate::outcome::MAX_MESSAGE_BYTES;
use crate::thrown::Result;
use crate::value::Value;
use crate::vm::Vm;
use agentscript_intl::supported_values;

/// `Intl.supportedValuesOf(key)`
pub fn supported_values_of(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let key = vm.to_string(arg(arguments, 0))?;
    let key = vm.short_text(key, MAX_MESSAGE_BYTES)?;
    let Some(values) = supported_values::of(&key) else {
        return Err(vm.range_error(&format!("Invalid key : {key}"))); // bounded: it is cut
    };
    vm.work(values.len() / 8)?;
    let mut texts = Buffer::new();
    for value in values.split(' ') {
        let value = vm.string(value);
        texts.push(vm, value)?;
    }
    Ok(vm.array_of(texts))
}
