//! stub
use crate::value::Value;
/// op
pub enum Op { /** x */ A }
/// body
pub enum Body { /** o */ Ops(Vec<Op>), /** t */ Tree(u8), /** v */ Value(Value) }
