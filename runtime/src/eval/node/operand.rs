//! Operands that nodes are specialised for: a slot, a number, any expression.

use super::{Expression, Node, Slots};
use crate::eval::vm::Vm;
use crate::value::Value;
use crate::value::thrown::Result;

/// Makes a node that is generic over one operand: a slot or any expression.
macro_rules! local {
    ($built:expr, $value:ident => $then:expr) => {
        match $built {
            $crate::eval::node::Built::Local($value) => $then,
            other => {
                let $value = other.node();
                $then
            }
        }
    };
}
pub(crate) use local;

/// Makes a node that is generic over one operand: a slot, a number or any expression.
macro_rules! operand {
    ($built:expr, $value:ident => $then:expr) => {
        match $built {
            $crate::eval::node::Built::Constant(constant) if constant.0.is_number() => {
                let $value = $crate::eval::node::Number(constant.0);
                $then
            }
            other => $crate::eval::node::local!(other, $value => $then),
        }
    };
}
pub(crate) use operand;

/// A built expression. The node that uses a slot or a constant holds it without a node of its own.
pub enum Built {
    /// A slot of the frame.
    Local(Local),
    /// A value that is the same in every run.
    Constant(Constant),
    /// Any other expression.
    Node(Expression),
}

/// A slot of the frame.
#[derive(Clone, Copy)]
pub struct Local(pub usize);

/// A value that is the same in every run; not a string, which is a handle.
#[derive(Clone, Copy)]
pub struct Constant(pub Value);

/// A constant that is a number.
#[derive(Clone, Copy)]
pub struct Number(pub Value);

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
    pub fn from_node(node: impl Node + 'static) -> Self {
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

impl Node for Number {
    #[inline(always)]
    fn eval(&self, _vm: &mut Vm, _fp: &Slots) -> Result {
        Ok(self.0)
    }

    #[inline(always)]
    fn is_number(&self) -> bool {
        true
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
