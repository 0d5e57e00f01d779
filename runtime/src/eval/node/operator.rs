//! Operators. One generic definition gives the nodes of all operators with all kinds of operands.

use super::{Built, Constant, Expression, Node, Slots, local, operand};
use crate::eval::operator::{compare, quick_arithmetic};
use crate::eval::unawaited::{self, PromiseUse};
use crate::eval::vm::Vm;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};
use agentscript_lang::program::{Binary, Logical, Unary};

/// `left operator right`. The operator is a part of the type, by its number in [`Binary::ALL`], so that each has its own
/// fast path for numbers.
struct BinaryNode<const OPERATOR: usize, L, R> {
    left: L,
    right: R,
    at: u32,
}

impl<const OPERATOR: usize, L: Node, R: Node> BinaryNode<OPERATOR, L, R> {
    const OPERATOR: Binary = Binary::ALL[OPERATOR];

    /// The result of a comparison, where the types of the operands do not matter.
    #[inline(always)]
    fn comparison(&self, left: Value, right: Value) -> Option<bool> {
        let holds = compare(Self::OPERATOR, left.as_number(), right.as_number())?;
        // A value that is no number is a NaN as a double: nothing is equal to it, less or greater.
        let is_certain = holds != matches!(Self::OPERATOR, Binary::NotEqual | Binary::StrictNotEqual);
        (is_certain || left.is_number() && (self.right.is_number() || right.is_number())).then_some(holds)
    }
}

impl<const OPERATOR: usize, L: Node + 'static, R: Node + 'static> Node for BinaryNode<OPERATOR, L, R> {
    #[inline]
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let left = self.left.eval(vm, fp)?;
        let right = self.right.eval(vm, fp)?;
        if let Some(number) = quick_arithmetic(Self::OPERATOR, left.as_number(), right.as_number()) {
            return Ok(Value::number(number));
        }
        if let Some(holds) = self.comparison(left, right) {
            return Ok(Value::bool(holds));
        }
        slow(vm, Self::OPERATOR, left, right, self.at)
    }

    #[inline]
    fn test(&self, vm: &mut Vm, fp: &Slots) -> Result<bool> {
        let left = self.left.eval(vm, fp)?;
        let right = self.right.eval(vm, fp)?;
        if let Some(holds) = self.comparison(left, right) {
            return Ok(holds);
        }
        let value = match quick_arithmetic(Self::OPERATOR, left.as_number(), right.as_number()) {
            Some(number) => Value::number(number),
            None => slow(vm, Self::OPERATOR, left, right, self.at)?,
        };
        Ok(vm.truthy(value))
    }
}

/// The result for operands of any type.
#[inline(never)]
fn slow(vm: &mut Vm, operator: Binary, left: Value, right: Value, at: u32) -> Result {
    if left.is(Kind::Promise) || right.is(Kind::Promise) {
        note_operand(vm, operator, left, right, at);
    }
    let result = match operator {
        Binary::Add => vm.add(left, right),
        operator => vm.binary(operator, left, right),
    };
    result.map_err(|thrown| thrown.at(vm, at))
}

#[cold]
fn note_operand(vm: &Vm, operator: Binary, left: Value, right: Value, at: u32) {
    let what = PromiseUse::Operand(operator);
    match operator {
        Binary::Instanceof => {}
        Binary::In => unawaited::note_use(vm, right, what, Some(at)),
        Binary::Equal | Binary::NotEqual if left.is_object() != right.is_object() => {
            // Compared with nothing, the promise is not converted.
            if !left.is_nullish() && !right.is_nullish() {
                [left, right].into_iter().for_each(|operand| unawaited::note_use(vm, operand, what, Some(at)));
            }
        }
        Binary::Equal | Binary::NotEqual | Binary::StrictEqual | Binary::StrictNotEqual => {
            unawaited::note_compared(vm, left, right, Some(at));
        }
        _ => [left, right].into_iter().for_each(|operand| unawaited::note_use(vm, operand, what, Some(at))),
    }
}

/// `left operator right`
pub fn binary(operator: Binary, left: Built, right: Built, at: u32) -> Built {
    let negated = matches!(operator, Binary::NotEqual | Binary::StrictNotEqual);
    match (operator, &right) {
        (Binary::Equal | Binary::NotEqual, Built::Constant(Constant(value))) if value.is_nullish() => {
            return test_node(left, Question::Nullish, negated);
        }
        (Binary::StrictEqual | Binary::StrictNotEqual, &Built::Constant(Constant(value))) if !value.is_number() => {
            return test_node(left, Question::Identical(value), negated);
        }
        _ => {}
    }
    /// The node of the operator, if it is one of these; else the general one.
    macro_rules! node {
        ($($name:ident)+) => {
            match operator {
                $(Binary::$name => typed::<{ Binary::$name as usize }>(left, right, at),)+
                operator => Built::from_node(Chain { first: left.node(), rest: [(operator, right.node())].into(), at }),
            }
        };
    }
    node!(
        Add Subtract Multiply Divide Remainder
        BitAnd BitOr BitXor ShiftLeft ShiftRight ShiftRightUnsigned
        Equal NotEqual StrictEqual StrictNotEqual Less LessEqual Greater GreaterEqual
    )
}

fn typed<const OPERATOR: usize>(left: Built, right: Built, at: u32) -> Built {
    local!(left, left => operand!(right, right => {
        Built::from_node(BinaryNode::<OPERATOR, _, _> { left, right, at })
    }))
}

/// A test of a value.
enum Question {
    /// Whether it is `undefined` or `null`.
    Nullish,
    /// Whether it is that value, which is no number, string or BigInt.
    Identical(Value),
    /// Whether it is a string with these bytes.
    SameText(Box<[u8]>),
}

struct TestNode<E> {
    value: E,
    question: Question,
    negated: bool,
}

impl<E: Node + 'static> Node for TestNode<E> {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        self.test(vm, fp).map(Value::bool)
    }

    #[inline]
    fn test(&self, vm: &mut Vm, fp: &Slots) -> Result<bool> {
        let value = self.value.eval(vm, fp)?;
        let holds = match &self.question {
            Question::Nullish => value.is_nullish(),
            Question::Identical(wanted) => {
                // A promise is compared with a boolean by mistake.
                if wanted.is_bool() && value.is(Kind::Promise) {
                    unawaited::note_use(vm, value, PromiseUse::Equal, None);
                }
                value == *wanted
            }
            Question::SameText(text) if value.is_string() => {
                vm.heap.str(value).bytes as usize == text.len() && vm.heap.bytes(value) == &**text
            }
            Question::SameText(_) => {
                if value.is(Kind::Promise) {
                    unawaited::note_use(vm, value, PromiseUse::Equal, None);
                }
                false
            }
        };
        Ok(holds != self.negated)
    }
}

fn test_node(value: Built, question: Question, negated: bool) -> Built {
    local!(value, value => Built::from_node(TestNode { value, question, negated }))
}

/// `value === 'text'`, or `!==`; strings are equal exactly if their bytes are.
pub fn same_text(value: Built, text: &[u8], negated: bool) -> Built {
    test_node(value, Question::SameText(text.into()), negated)
}

/// Up to so many operands, a chain becomes nested nodes, which are faster but use native stack.
const NESTED: usize = 4;

/// `first operator operand operator operand …`
pub fn chain(first: Built, rest: impl Iterator<Item = (Binary, Built)>, at: u32) -> Built {
    let mut rest = rest;
    let nested =
        rest.by_ref().take(NESTED - 1).fold(first, |left, (operator, right)| binary(operator, left, right, at));
    let rest: Box<[_]> = rest.map(|(operator, operand)| (operator, operand.node())).collect();
    if rest.is_empty() { nested } else { Built::from_node(Chain { first: nested.node(), rest, at }) }
}

struct Chain {
    first: Expression,
    rest: Box<[(Binary, Expression)]>,
    at: u32,
}

impl Node for Chain {
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        let mut left = self.first.eval(vm, fp)?;
        for (operator, operand) in &self.rest {
            let right = operand.eval(vm, fp)?;
            left = match *operator {
                Binary::Add if left.is_number() && right.is_number() => {
                    Value::number(left.as_number() + right.as_number())
                }
                operator => slow(vm, operator, left, right, self.at)?,
            };
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

impl<E: Node + 'static> Node for Prefix<E> {
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
        } else if value.is(Kind::Promise) && !matches!(self.operator, Unary::Not | Unary::Void | Unary::Typeof) {
            unawaited::note_use(vm, value, PromiseUse::Primitive, Some(self.at));
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

/// `left && right`, `left || right`, `left ?? right`
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
            Logical::And if !self.left.test(vm, fp)? => Ok(false),
            Logical::Or if self.left.test(vm, fp)? => Ok(true),
            Logical::And | Logical::Or => self.right.test(vm, fp),
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
