//! Operators. One definition gives the node of every operator with every kind of operands.

use super::{Built, Expression, Node, Slots};
use crate::error::Result;
use crate::operator::arithmetic;
use crate::value::Value;
use crate::vm::Vm;
use agentscript_lang::program::{Binary, Logical, Unary};
use std::marker::PhantomData;

/// An operator as a type.
trait Operator: Send + Sync + 'static {
    const OPERATOR: Binary;
}

struct BinaryNode<O, L, R> {
    left: L,
    right: R,
    at: u32,
    operator: PhantomData<O>,
}

impl<O: Operator, L: Node, R: Node> Node for BinaryNode<O, L, R> {
    #[inline]
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let left = self.left.eval(vm, fp)?;
        let right = self.right.eval(vm, fp)?;
        if left.is_number() && right.is_number() && !matches!(O::OPERATOR, Binary::In | Binary::Instanceof) {
            return Ok(arithmetic(O::OPERATOR, left.as_number(), right.as_number()));
        }
        slow(vm, O::OPERATOR, left, right, self.at)
    }

    #[inline]
    fn test(&self, vm: &mut Vm, fp: &Slots) -> Result<bool> {
        let left = self.left.eval(vm, fp)?;
        let right = self.right.eval(vm, fp)?;
        if left.is_number() && right.is_number() {
            let (left, right) = (left.as_number(), right.as_number());
            match O::OPERATOR {
                Binary::Less => return Ok(left < right),
                Binary::LessEqual => return Ok(left <= right),
                Binary::Greater => return Ok(left > right),
                Binary::GreaterEqual => return Ok(left >= right),
                Binary::Equal | Binary::StrictEqual => return Ok(left == right),
                Binary::NotEqual | Binary::StrictNotEqual => return Ok(left != right),
                _ => {}
            }
        }
        let value = slow(vm, O::OPERATOR, left, right, self.at)?;
        Ok(vm.truthy(value))
    }
}

#[inline(never)]
fn slow(vm: &mut Vm, operator: Binary, left: Value, right: Value, at: u32) -> Result {
    vm.binary(operator, left, right).map_err(|thrown| thrown.at(vm, at))
}

/// The node of `left operator right`.
pub fn binary(operator: Binary, left: Built, right: Built, at: u32) -> Built {
    macro_rules! operators {
        ($($name:ident),+) => {
            match operator {
                $(Binary::$name => {
                    struct Is;
                    impl Operator for Is {
                        const OPERATOR: Binary = Binary::$name;
                    }
                    operands::<Is>(left, right, at)
                })+
            }
        };
    }
    operators!(
        Add,
        Subtract,
        Multiply,
        Divide,
        Remainder,
        Power,
        BitAnd,
        BitOr,
        BitXor,
        ShiftLeft,
        ShiftRight,
        ShiftRightUnsigned,
        Equal,
        NotEqual,
        StrictEqual,
        StrictNotEqual,
        Less,
        LessEqual,
        Greater,
        GreaterEqual,
        In,
        Instanceof
    )
}

fn operands<O: Operator>(left: Built, right: Built, at: u32) -> Built {
    fn node<O: Operator>(left: impl Node + 'static, right: impl Node + 'static, at: u32) -> Built {
        Built::of(BinaryNode { left, right, at, operator: PhantomData::<O> })
    }
    match (left, right) {
        (Built::Local(left), Built::Constant(right)) => node::<O>(left, right, at),
        (Built::Local(left), Built::Local(right)) => node::<O>(left, right, at),
        (Built::Local(left), Built::Node(right)) => node::<O>(left, right, at),
        (Built::Node(left), Built::Constant(right)) => node::<O>(left, right, at),
        (Built::Node(left), Built::Local(right)) => node::<O>(left, right, at),
        (left, right) => node::<O>(left.node(), right.node(), at),
    }
}

/// `first operator operand operator operand …`
pub struct Chain {
    /// The first operand.
    pub first: Expression,
    /// Operators with their right operands.
    pub rest: Box<[(Binary, Expression)]>,
    /// Offset in the source.
    pub at: u32,
}

impl Node for Chain {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let mut left = self.first.eval(vm, fp)?;
        for (operator, operand) in &self.rest {
            let right = operand.eval(vm, fp)?;
            left = slow(vm, *operator, left, right, self.at)?;
        }
        Ok(left)
    }
}

/// A prefix operator.
pub struct Prefix<E> {
    /// Which one.
    pub operator: Unary,
    /// Its operand.
    pub operand: E,
    /// Offset in the source.
    pub at: u32,
}

impl<E: Node> Node for Prefix<E> {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let value = self.operand.eval(vm, fp)?;
        if value.is_number() {
            let number = value.as_number();
            match self.operator {
                Unary::Minus => return Ok(Value::number(-number)),
                Unary::Plus | Unary::ToNumeric => return Ok(value),
                Unary::Increment => return Ok(Value::number(number + 1.0)),
                Unary::Decrement => return Ok(Value::number(number - 1.0)),
                _ => {}
            }
        }
        vm.unary(self.operator, value).map_err(|thrown| thrown.at(vm, self.at))
    }
}

/// `!operand`
pub struct Not(pub Expression);

impl Node for Not {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        self.test(vm, fp).map(Value::bool)
    }

    fn test(&self, vm: &mut Vm, fp: &Slots) -> Result<bool> {
        Ok(!self.0.test(vm, fp)?)
    }
}

/// `left && right` and its kin.
pub struct LogicalNode {
    /// Which one.
    pub operator: Logical,
    /// The left operand.
    pub left: Expression,
    /// The right operand.
    pub right: Expression,
}

impl Node for LogicalNode {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let left = self.left.eval(vm, fp)?;
        let enough = match self.operator {
            Logical::And => !vm.truthy(left),
            Logical::Or => vm.truthy(left),
            Logical::Coalesce => !left.is_nullish(),
        };
        if enough { Ok(left) } else { self.right.eval(vm, fp) }
    }

    fn test(&self, vm: &mut Vm, fp: &Slots) -> Result<bool> {
        match self.operator {
            Logical::And => Ok(self.left.test(vm, fp)? && self.right.test(vm, fp)?),
            Logical::Or => Ok(self.left.test(vm, fp)? || self.right.test(vm, fp)?),
            Logical::Coalesce => {
                let value = self.eval(vm, fp)?;
                Ok(vm.truthy(value))
            }
        }
    }
}

/// `test ? yes : no`
pub struct Conditional {
    /// The test.
    pub test: Expression,
    /// The value where it holds.
    pub yes: Expression,
    /// The value where it does not.
    pub no: Expression,
}

impl Node for Conditional {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        if self.test.test(vm, fp)? { self.yes.eval(vm, fp) } else { self.no.eval(vm, fp) }
    }
}

/// `first, second, …`
pub struct Sequence(pub Box<[Expression]>);

impl Node for Sequence {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let mut last = Value::UNDEFINED;
        for expression in &self.0 {
            last = expression.eval(vm, fp)?;
        }
        Ok(last)
    }
}
