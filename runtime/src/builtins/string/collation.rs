//! stub
use super::*;
/// x
pub fn locale_compare(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result { let _ = (vm, this, arguments); Ok(Value::ZERO) }
