//! Operands that nodes are specialised for.

use super::{AnyStatement, Evaluate, Expression, Node, Operation, Slots, Truth};
use crate::operator::Int32;
use crate::thrown::Result;
use crate::value::Value;
use crate::vm::Vm;

/// Make a node that is generic over one operand.
macro_rules! operand {
    ($leaf:expr, $value:ident => $then:expr) => {
        match $leaf {
            $crate::node::Leaf::Local($value) => $then,
            $crate::node::Leaf::Constant(constant) if constant.0.is_number() => {
                let $value = $crate::node::Number(constant.0.as_number());
                $then
            }
            leaf => {
                let $value = leaf.node();
                $then
            }
        }
    };
}
pub(crate) use operand;

/// The same where the node has a faster way for integers.
macro_rules! integer_operand {
    ($leaf:expr, $value:ident => $then:expr) => {
        match $leaf {
            $crate::node::Leaf::Constant(constant) if let Some($value) = $crate::node::Integer::of(constant) => $then,
            leaf => $crate::node::operand!(leaf, $value => $then),
        }
    };
}
pub(crate) use integer_operand;

/// A built expression. A slot or constant needs no node, and an operator can be fused into the node that uses its
/// value.
pub enum Built {
    /// A slot of the frame.
    Local(Local),
    /// A value that is the same in every run.
    Constant(Constant),
    /// An operator whose operands are built.
    Operation(Operation),
    /// Arithmetic.
    Computed(Computed),
    /// Anything else.
    Node(Expression),
}

/// A built expression that is an operand: no operator.
pub enum Leaf {
    /// A slot of the frame.
    Local(Local),
    /// A value that is the same in every run.
    Constant(Constant),
    /// Arithmetic.
    Computed(Computed),
    /// Anything else.
    Node(Expression),
}

/// A node that [is arithmetic](Node::is_arithmetic).
pub struct Computed(pub Expression);

/// A slot of the frame.
#[derive(Clone, Copy)]
pub struct Local(pub usize);

/// A value that is the same in every run; not a string, which is a handle.
#[derive(Clone, Copy)]
pub struct Constant(pub Value);

/// A constant that is a number.
#[derive(Clone, Copy)]
pub struct Number(pub f64);

/// A constant that is an integer of 32 bits, and not −0.
#[derive(Clone, Copy)]
pub struct Integer(Int32);

impl Integer {
    /// The constant, if it is one.
    pub fn of(Constant(value): Constant) -> Option<Self> {
        value.is_number().then(|| Int32::of(value.as_number()))?.map(Self)
    }
}

/// A form that a node can take.
pub trait Form: Sized {
    /// That node in this form.
    fn from_node(node: impl Node + 'static) -> Self;

    /// Give a value to `user`; operators are fused only into statements, because most assignments are statements.
    fn with_value<U: User<Made = Self>>(value: Built, user: U) -> Self;

    /// The same where the operators are mostly `+` and `-`.
    fn with_sum<U: User<Made = Self>>(value: Built, user: U) -> Self;
}

impl Form for Built {
    fn from_node(node: impl Node + 'static) -> Self {
        Self::Node(Box::new(node))
    }

    fn with_value<U: User<Made = Self>>(value: Self, user: U) -> Self {
        user.with(value.node())
    }

    fn with_sum<U: User<Made = Self>>(value: Self, user: U) -> Self {
        user.with(value.node())
    }
}

/// The expression for its effect.
impl Form for AnyStatement {
    fn from_node(node: impl Node + 'static) -> Self {
        Box::new(Evaluate(node))
    }

    fn with_value<U: User<Made = Self>>(value: Built, user: U) -> Self {
        match value {
            Built::Operation(operation) => operation.arithmetic(user),
            other => operand!(other.leaf(), value => user.with(value)),
        }
    }

    fn with_sum<U: User<Made = Self>>(value: Built, user: U) -> Self {
        match value {
            Built::Operation(operation) => operation.sum(user),
            other => operand!(other.leaf(), value => user.with(value)),
        }
    }
}

/// A visitor of nodes with their static types.
pub trait User: Sized {
    /// The result.
    type Made;
    /// Make it.
    fn with(self, node: impl Node + 'static) -> Self::Made;
}

/// The visitor that gives the node itself.
pub struct Itself;

impl User for Itself {
    type Made = Expression;
    fn with(self, node: impl Node + 'static) -> Expression {
        Box::new(node)
    }
}

impl Built {
    /// The expression as a node.
    pub fn node(self) -> Expression {
        self.leaf().node()
    }

    /// The expression as an operand.
    pub fn leaf(self) -> Leaf {
        match self {
            Self::Local(local) => Leaf::Local(local),
            Self::Constant(constant) => Leaf::Constant(constant),
            Self::Operation(operation) => operation.leaf(),
            Self::Computed(node) => Leaf::Computed(node),
            Self::Node(node) => Leaf::Node(node),
        }
    }

    /// A node.
    pub fn from_node(node: impl Node + 'static) -> Self {
        Self::Node(Box::new(node))
    }

    /// Give it to `user`, a comparison with its type, others as a node.
    pub fn test<U: User>(self, user: U) -> U::Made {
        match self {
            Self::Operation(operation) => operation.comparison(user),
            other => user.with(other.node()),
        }
    }

    /// The same, as the test of a loop.
    pub fn bound<U: User>(self, user: U) -> U::Made {
        match self {
            Self::Operation(operation) => operation.bound(user),
            other => user.with(other.node()),
        }
    }
}

impl Leaf {
    /// The operand as a node.
    pub fn node(self) -> Expression {
        match self {
            Self::Local(local) => local.node(),
            Self::Constant(constant) => constant.node(),
            Self::Computed(Computed(node)) | Self::Node(node) => node,
        }
    }
}

/// A slot whose number is part of its type. It takes no memory, so that no block is allocated for it.
struct NumberedLocal<const NUMBER: usize>;

/// A node whose number is part of its type where it is one of these, and another node elsewhere.
macro_rules! numbered {
    ($number:expr, $node:ident, [$($literal:literal)+], $other:expr) => {
        match $number {
            $($literal => Box::new($node::<$literal>),)+
            _ => $other,
        }
    };
}
pub(super) use numbered;

impl Local {
    fn node(self) -> Expression {
        numbered!(
            self.0,
            NumberedLocal,
            [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31],
            Box::new(self)
        )
    }
}

impl<const NUMBER: usize> Node for NumberedLocal<NUMBER> {
    #[inline(always)]
    fn eval(&self, _vm: &mut Vm, fp: &Slots) -> Result {
        Ok(fp[NUMBER].get())
    }
}

/// The constants that scripts contain most.
const USUAL: [Value; 16] = [
    Value::UNDEFINED,
    Value::NULL,
    Value::FALSE,
    Value::TRUE,
    Value::number(0.0),
    Value::number(1.0),
    Value::number(2.0),
    Value::number(3.0),
    Value::number(4.0),
    Value::number(5.0),
    Value::number(6.0),
    Value::number(7.0),
    Value::number(8.0),
    Value::number(9.0),
    Value::number(10.0),
    Value::number(100.0),
];

/// The constant of that number among them, which takes no memory either.
struct Usual<const NUMBER: usize>;

impl Constant {
    fn node(self) -> Expression {
        numbered!(
            USUAL.iter().position(|&value| value == self.0).unwrap_or(USUAL.len()),
            Usual,
            [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15],
            Box::new(self)
        )
    }
}

impl<const NUMBER: usize> Node for Usual<NUMBER> {
    #[inline(always)]
    fn eval(&self, _vm: &mut Vm, _fp: &Slots) -> Result {
        Ok(USUAL[NUMBER])
    }
}

impl Node for Local {
    #[inline(always)]
    fn eval(&self, _vm: &mut Vm, fp: &Slots) -> Result {
        Ok(fp[self.0].get())
    }

    #[inline(always)]
    fn double(&self, _vm: &mut Vm, fp: &Slots) -> f64 {
        fp[self.0].get().as_number()
    }

    #[inline(always)]
    fn is_infallible(&self) -> bool {
        true
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
        Ok(Value::number(self.0))
    }

    #[inline(always)]
    fn double(&self, _vm: &mut Vm, _fp: &Slots) -> f64 {
        self.0
    }

    #[inline(always)]
    fn is_infallible(&self) -> bool {
        true
    }

    #[inline(always)]
    fn is_number(&self) -> bool {
        true
    }
}

impl Node for Integer {
    #[inline(always)]
    fn eval(&self, _vm: &mut Vm, _fp: &Slots) -> Result {
        Ok(Value::number(self.0.number()))
    }

    #[inline(always)]
    fn double(&self, _vm: &mut Vm, _fp: &Slots) -> f64 {
        self.0.number()
    }

    #[inline(always)]
    fn is_infallible(&self) -> bool {
        true
    }

    #[inline(always)]
    fn is_number(&self) -> bool {
        true
    }

    #[inline(always)]
    fn integer(&self) -> Option<Int32> {
        Some(self.0)
    }
}

impl Node for Computed {
    #[inline(always)]
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        (*self.0).eval(vm, fp)
    }

    #[inline(always)]
    fn compute(&self, vm: &mut Vm, fp: &Slots) -> f64 {
        (*self.0).compute(vm, fp)
    }

    #[inline(always)]
    fn is_arithmetic(&self) -> bool {
        true
    }
}

impl Node for Expression {
    #[inline(always)]
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        (**self).eval(vm, fp)
    }

    #[inline(always)]
    fn truth(&self, vm: &mut Vm, fp: &Slots) -> Result<Truth> {
        (**self).truth(vm, fp)
    }
}
