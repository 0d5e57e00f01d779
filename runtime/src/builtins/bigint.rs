//! Built-ins: `bigint`.

use super::{Global, Row};

/// Globals of this file.
pub const GLOBALS: &[Global] = &[];

/// Methods of its values.
pub const METHODS: &[Row] = &[];

use crate::error::Result;
use crate::value::Value;
use crate::vm::Vm;
use agentscript_lang::program::{Binary, Unary};
use num_bigint::BigInt;

/// The integer that a text stands for (ECMAScript 7.1.14).
pub fn parse(text: &str) -> Option<BigInt> {
    text.trim_matches(crate::convert::is_space).parse().ok()
}

/// An operator on two BigInts.
pub fn binary(vm: &mut Vm, operator: Binary, left: Value, right: Value) -> Result {
    let _ = (operator, left, right);
    Err(vm.type_error("not there"))
}

/// A prefix operator on a BigInt.
pub fn unary(vm: &mut Vm, operator: Unary, value: Value) -> Result {
    let _ = (operator, value);
    Err(vm.type_error("not there"))
}
