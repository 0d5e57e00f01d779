//! `Intl.supportedValuesOf`: `supported_values.txt` has a line for each key, as Node prints them. The words of Node 20 are
//! the same as those of Node 24:
//! `for (const key of keys) console.log(key, ...Intl.supportedValuesOf(key))`.

use crate::builtins::arg;
use crate::charge::Buffer;
use crate::outcome::MAX_MESSAGE_BYTES;
use crate::thrown::Result;
use crate::value::Value;
use crate::vm::Vm;

const VALUES: &str = include_str!("supported_values.txt");

/// `Intl.supportedValuesOf(key)`
pub fn supported_values_of(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let key = vm.to_string(arg(arguments, 0))?;
    let key = vm.short_text(key, MAX_MESSAGE_BYTES)?;
    let line = VALUES.lines().find_map(|line| line.split_once(' ').filter(|(known, _)| *known == key));
    let Some((_, values)) = line else {
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
