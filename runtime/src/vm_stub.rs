//! stub
use crate::error::Result;
use crate::value::Value;

use crate::vm::Vm;
use crate::code::{Frame, FunctionRef};
impl Vm {
    /// Call a function for an implicit conversion (`toString`, `valueOf`, `toJSON`): it runs to its end before this returns.
    pub fn call_nested(&mut self, function: Value, this: Value, arguments: &[Value]) -> Result { let _ = (function, this, arguments); Ok(Value::UNDEFINED) }
    /// The name of a callable.
    pub fn callable_name(&self, function: Value) -> String { let _ = function; String::new() }
    /// The `length` of a callable.
    pub fn callable_length(&self, function: Value) -> u32 { let _ = function; 0 }
    /// The name of a function of the script.
    pub fn function_name(&self, code: FunctionRef) -> String { let _ = code; String::new() }
    /// Whether a function is async.
    pub fn is_async(&self, code: FunctionRef) -> bool { let _ = code; false }
    pub(crate) fn offset_of(&self, frame: &Frame) -> u32 { frame.pc }
}
