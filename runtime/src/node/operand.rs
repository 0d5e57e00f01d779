//! Operands: what a node is specialised for.

use super::{Expression, Node, Slots};
use crate::error::Result;
use crate::value::Value;
use crate::vm::Vm;

/// What a built expression is: a slot and a constant need no node.
pub enum Built {
    /// A slot of the frame.
    Local(Local),
    /// A value that is the same in every run.
    Constant(Constant),
    /// Anything else.
    Node(Expression),
}

/// A slot of the frame.
#[derive(Clone, Copy)]
pub struct Local(pub usize);

/// A value that is the same in every run: no string, which is a handle.
#[derive(Clone, Copy)]
pub struct Constant(pub Value);

impl Built {
    /// The expression as a node.
    pub fn node(self) -> Expression {
        match self {
            Self::Local(local) => Box::new(local),
            Self::Constant(constant) => Box::new(constant),
            Self::Node(node) => node,
        }
    }

    /// A node.
    pub fn of(node: impl Node + 'static) -> Self {
        Self::Node(Box::new(node))
    }
}

impl Node for Local {
    #[inline(always)]
    fn eval(&self, _vm: &mut Vm, fp: &Slots) -> Result {
        Ok(fp[self.0].get())
    }
}

impl Node for Constant {
    #[inline(always)]
    fn eval(&self, _vm: &mut Vm, _fp: &Slots) -> Result {
        Ok(self.0)
    }
}

impl Node for Expression {
    #[inline(always)]
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        (**self).eval(vm, fp)
    }

    #[inline(always)]
    fn test(&self, vm: &mut Vm, fp: &Slots) -> Result<bool> {
        (**self).test(vm, fp)
    }
}

/// Make a node that is generic over one operand.
macro_rules! specialise {
    ($operand:expr, $value:ident => $node:expr) => {
        match $operand {
            $crate::node::Built::Local($value) => $crate::node::Built::of($node),
            $crate::node::Built::Constant(constant) => {
                let $value: $crate::node::Expression = Box::new(constant);
                $crate::node::Built::of($node)
            }
            $crate::node::Built::Node($value) => $crate::node::Built::of($node),
        }
    };
}
pub(crate) use specialise;
