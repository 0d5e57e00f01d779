//! Operators. One generic definition gives the nodes of all operators with all kinds of operands.

use super::{
    Built, Computed, Constant, Expression, Integer, Itself, Leaf, Node, Number, Slots, Truth, User, integer_operand,
    operand,
};
use crate::operator::{compare, quick_arithmetic, quick_integer_arithmetic};
use crate::thrown::Result;
use crate::unawaited::PromiseUse;
use crate::value::{Kind, Value};
use crate::vm::Vm;
use agentscript_lang::program::{Binary, Logical, Unary};
use std::marker::PhantomData;

/// An operator as a type, for those that have a fast path for numbers: all but `in` and `instanceof`.
trait Operator: Send + Sync + 'static {
    const OPERATOR: Binary;
    /// Whether it is [arithmetic](is_arithmetic).
    const IS_ARITHMETIC: bool = is_arithmetic(Self::OPERATOR);
}

/// Whether the operator makes numbers of numbers, and has a type.
const fn is_arithmetic(operator: Binary) -> bool {
    use Binary::*;
    match operator {
        Add | Subtract | Multiply | Divide | Remainder => true,
        BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight | ShiftRightUnsigned => true,
        Power | Equal | NotEqual | StrictEqual | StrictNotEqual => false,
        Less | LessEqual | Greater | GreaterEqual | In | Instanceof => false,
    }
}

/// The type of the operator with this number. Each that is used is a copy of every node.
struct Fixed<const NUMBER: u8>;

impl<const NUMBER: u8> Operator for Fixed<NUMBER> {
    const OPERATOR: Binary = Binary::ALL[NUMBER as usize];
}

struct BinaryNode<O, L, R> {
    left: L,
    right: R,
    at: u32,
    operator: PhantomData<O>,
}

impl<O: Operator, L: Node, R: Node> BinaryNode<O, L, R> {
    #[inline(always)]
    fn are_numbers(&self, left: Value, right: Value) -> bool {
        (self.left.is_number() || left.is_number()) && (self.right.is_number() || right.is_number())
    }

    /// The result of a comparison, where the types of the operands do not matter.
    #[inline(always)]
    fn comparison(&self, left: Value, right: Value) -> Option<bool> {
        let holds = compare(O::OPERATOR, left.as_number(), right.as_number())?;
        // As in arithmetic, a value of another type is a NaN: nothing is equal to it, less or greater.
        let is_certain = holds != matches!(O::OPERATOR, Binary::NotEqual | Binary::StrictNotEqual);
        (is_certain || self.are_numbers(left, right)).then_some(holds)
    }
}

impl<O: Operator, L: Node, R: Node> Node for BinaryNode<O, L, R> {
    #[inline]
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        if O::IS_ARITHMETIC {
            let double = self.double(vm, fp);
            return vm.from_double(double);
        }
        let left = self.left.eval(vm, fp)?;
        let right = self.right.eval(vm, fp)?;
        if let Some(holds) = self.comparison(left, right) {
            return Ok(Value::bool(holds));
        }
        slow(vm, O::OPERATOR, left, right, self.at)
    }

    // Where its value is tested, which is rare for arithmetic, it is called too.
    #[inline(never)]
    fn compute(&self, vm: &mut Vm, fp: &Slots) -> f64 {
        self.double(vm, fp)
    }

    #[inline(always)]
    fn double(&self, vm: &mut Vm, fp: &Slots) -> f64 {
        if !O::IS_ARITHMETIC {
            let value = self.eval(vm, fp);
            return vm.to_double(value);
        }
        let left = self.left.double(vm, fp);
        if !self.left.is_infallible() && left.is_nan() && Value::from_double(left) == Value::THROWN {
            return left;
        }
        let (quick, right) = match self.right.integer() {
            Some(right) => (quick_integer_arithmetic(O::OPERATOR, left, right), right.number()),
            None => {
                let right = self.right.double(vm, fp);
                (quick_arithmetic(O::OPERATOR, left, right), right)
            }
        };
        quick.unwrap_or_else(|| compute_slowly(vm, O::OPERATOR, left, right, self.at))
    }

    #[inline(always)]
    fn is_arithmetic(&self) -> bool {
        O::IS_ARITHMETIC
    }

    #[inline]
    fn truth(&self, vm: &mut Vm, fp: &Slots) -> Result<Truth> {
        self.holds(vm, fp).map(Truth::from)
    }
}

impl<O: Operator, L: Node, R: Node> BinaryNode<O, L, R> {
    #[inline(always)]
    fn holds(&self, vm: &mut Vm, fp: &Slots) -> Result<bool> {
        if O::IS_ARITHMETIC {
            let double = self.compute(vm, fp);
            return if double.is_nan() { is_truthy(vm, double) } else { Ok(double != 0.0) };
        }
        let left = self.left.eval(vm, fp)?;
        let right = self.right.eval(vm, fp)?;
        if let Some(holds) = self.comparison(left, right) {
            return Ok(holds);
        }
        match O::OPERATOR {
            Binary::StrictEqual => vm.strict_equals(left, right),
            Binary::StrictNotEqual => vm.strict_equals(left, right).map(|equal| !equal),
            operator => {
                let value = slow(vm, operator, left, right, self.at)?;
                Ok(vm.truthy(value))
            }
        }
    }
}

/// The result of arithmetic with operands of any type, as [`Node::compute`].
#[inline(never)]
fn compute_slowly(vm: &mut Vm, operator: Binary, left: f64, right: f64, at: u32) -> f64 {
    let (left, right) = (Value::from_double(left), Value::from_double(right));
    if left == Value::THROWN || right == Value::THROWN {
        return Value::THROWN.as_number();
    }
    let value = slow(vm, operator, left, right, at);
    vm.to_double(value)
}

/// Whether what is no number is truthy, or what arithmetic has thrown.
#[inline(never)]
fn is_truthy(vm: &mut Vm, double: f64) -> Result<bool> {
    let value = vm.from_double(double)?;
    Ok(vm.truthy(value))
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
        Binary::In => vm.note_use(right, what, Some(at)),
        Binary::Equal | Binary::NotEqual if left.is_object() != right.is_object() => {
            // Compared with nothing, the promise is not converted.
            if !left.is_nullish() && !right.is_nullish() {
                [left, right].into_iter().for_each(|operand| vm.note_use(operand, what, Some(at)));
            }
        }
        Binary::Equal | Binary::NotEqual | Binary::StrictEqual | Binary::StrictNotEqual => {
            vm.note_compared(left, right, Some(at));
        }
        _ => [left, right].into_iter().for_each(|operand| vm.note_use(operand, what, Some(at))),
    }
}

/// `left operator right`, not built into a node yet.
pub struct Operation {
    operator: Binary,
    left: Leaf,
    right: Leaf,
    at: u32,
}

/// `left operator right`
pub fn binary(operator: Binary, left: Built, right: Built, at: u32) -> Built {
    let negated = matches!(operator, Binary::NotEqual | Binary::StrictNotEqual);
    match (operator, &right) {
        (Binary::Equal | Binary::NotEqual, Built::Constant(Constant(value))) if value.is_nullish() => {
            return asked(left, Nullish, negated);
        }
        (Binary::StrictEqual | Binary::StrictNotEqual, &Built::Constant(Constant(value))) if !value.is_number() => {
            return match value.is_bool() {
                true => asked(left, IdenticalFlag(value), negated),
                false => asked(left, Identical(value), negated),
            };
        }
        _ => {}
    }
    let left = left.leaf();
    match (operator, right) {
        (Binary::Add, Built::Operation(right)) => sum_of::<Fixed<{ Binary::Add as u8 }>>(left, right, at),
        (Binary::Subtract, Built::Operation(right)) => sum_of::<Fixed<{ Binary::Subtract as u8 }>>(left, right, at),
        (operator, right) => Built::Operation(Operation { operator, left, right: right.leaf(), at }),
    }
}

/// `left + right`, or `left - right`. `a * b` of two slots and `a & 255` of one are parts of its node.
fn sum_of<O: Operator>(left: Leaf, right: Operation, at: u32) -> Built {
    let of = right.at;
    match right {
        Operation { operator: Binary::Multiply, left: Leaf::Local(a), right: Leaf::Local(b), .. } => {
            let operator = PhantomData::<Fixed<{ Binary::Multiply as u8 }>>;
            sum_with::<O>(left, BinaryNode { left: a, right: b, at: of, operator }, at)
        }
        Operation { operator: Binary::BitAnd, left: Leaf::Local(a), right: Leaf::Constant(mask), .. }
            if let Some(mask) = Integer::of(mask) =>
        {
            let operator = PhantomData::<Fixed<{ Binary::BitAnd as u8 }>>;
            sum_with::<O>(left, BinaryNode { left: a, right: mask, at: of, operator }, at)
        }
        right => Built::Operation(Operation { operator: O::OPERATOR, left, right: right.leaf(), at }),
    }
}

fn sum_with<O: Operator>(left: Leaf, right: impl Node + 'static, at: u32) -> Built {
    let operator = PhantomData::<O>;
    Built::Computed(Computed(match left {
        Leaf::Local(left) => Box::new(BinaryNode { left, right, at, operator }),
        Leaf::Computed(left) => Box::new(BinaryNode { left, right, at, operator }),
        left => Box::new(BinaryNode { left: left.node(), right, at, operator }),
    }))
}

/// A test of a value.
trait Question: Send + Sync + 'static {
    fn ask(&self, vm: &Vm, value: Value) -> bool;
}

/// Whether it is `undefined` or `null`.
struct Nullish;

impl Question for Nullish {
    #[inline(always)]
    fn ask(&self, _vm: &Vm, value: Value) -> bool {
        value.is_nullish()
    }
}

/// Whether it is that value, which is no number, string or BigInt.
struct Identical(Value);

impl Question for Identical {
    #[inline(always)]
    fn ask(&self, _vm: &Vm, value: Value) -> bool {
        value == self.0
    }
}

/// Whether it is that value, where a promise is no value of its kind.
struct IdenticalFlag(Value);

impl Question for IdenticalFlag {
    #[inline(always)]
    fn ask(&self, vm: &Vm, value: Value) -> bool {
        if value.is(Kind::Promise) {
            vm.note_use(value, PromiseUse::Equal, None);
        }
        value == self.0
    }
}

/// Whether it is a string with these bytes.
struct SameText(Box<[u8]>);

impl Question for SameText {
    #[inline(always)]
    fn ask(&self, vm: &Vm, value: Value) -> bool {
        if !value.is_string() {
            if value.is(Kind::Promise) {
                vm.note_use(value, PromiseUse::Equal, None);
            }
            return false;
        }
        vm.heap.str(value).bytes as usize == self.0.len() && vm.heap.bytes(value) == &*self.0
    }
}

struct Asked<E, Q> {
    value: E,
    question: Q,
    negated: bool,
}

impl<E: Node, Q: Question> Node for Asked<E, Q> {
    #[inline]
    fn eval(&self, vm: &mut Vm, fp: &Slots) -> Result {
        self.test(vm, fp).map(Value::bool)
    }

    #[inline]
    fn truth(&self, vm: &mut Vm, fp: &Slots) -> Result<Truth> {
        let value = self.value.eval(vm, fp)?;
        Ok((self.question.ask(vm, value) != self.negated).into())
    }
}

fn asked(value: Built, question: impl Question, negated: bool) -> Built {
    match value {
        Built::Local(value) => Built::from_node(Asked { value, question, negated }),
        value => Built::from_node(Asked { value: value.node(), question, negated }),
    }
}

/// `value === 'text'`, or `!==`; strings are equal exactly if their bytes are.
pub fn same_text(value: Built, text: &[u8], negated: bool) -> Built {
    asked(value, SameText(text.into()), negated)
}

/// Give an operator to a user: with its type by a method of [`Operation`] if it is listed, else as the fallback.
macro_rules! operators {
    ($operation:expr, $method:ident, $user:expr, [$($name:ident),+ $(,)?], $other:pat => $otherwise:expr) => {
        match $operation.operator {
            $(Binary::$name => $operation.$method::<Fixed<{ Binary::$name as u8 }>, _>($user),)+
            $other => $otherwise,
        }
    };
}

impl Operation {
    /// It as an operand.
    pub fn leaf(self) -> Leaf {
        let is_arithmetic = is_arithmetic(self.operator);
        let node = self.node();
        if is_arithmetic { Leaf::Computed(Computed(node)) } else { Leaf::Node(node) }
    }

    /// The node of it.
    pub fn node(self) -> Expression {
        operators!(
            self,
            integer,
            Itself,
            [Remainder, BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight, ShiftRightUnsigned],
            _ => operators!(
                self,
                all_numbers,
                Itself,
                [Add, Subtract, Multiply, Divide],
                _ => operators!(
                    self,
                    all,
                    Itself,
                    [Equal, NotEqual, StrictEqual, StrictNotEqual, Less, LessEqual, Greater, GreaterEqual],
                    operator => {
                        let rest = Box::new([(operator, self.right.node())]);
                        Box::new(Chain { first: self.left.node(), rest, at: self.at })
                    }
                )
            )
        )
    }

    /// What `user` makes of it: of a comparison with its type.
    pub fn comparison<U: User>(self, user: U) -> U::Made {
        operators!(
            self,
            most,
            user,
            [StrictEqual, StrictNotEqual, Less, LessEqual, Greater, GreaterEqual],
            _ => user.with(self.node())
        )
    }

    /// What `user` makes of it: of a comparison of a slot with its type.
    pub fn bound<U: User>(self, user: U) -> U::Made {
        operators!(
            self,
            from_slots,
            user,
            [StrictNotEqual, Less, LessEqual, Greater, GreaterEqual],
            _ => user.with(self.node())
        )
    }

    /// What `user` makes of it: of arithmetic with its type.
    pub fn arithmetic<U: User>(self, user: U) -> U::Made {
        operators!(
            self,
            integer,
            user,
            [Remainder, BitAnd, BitOr, BitXor, ShiftRightUnsigned],
            _ => operators!(self, numbers, user, [Add, Subtract, Multiply, Divide], _ => user.with(self.node()))
        )
    }

    /// What `user` makes of it: of `+` and `-` with its type.
    pub fn sum<U: User>(self, user: U) -> U::Made {
        operators!(self, numbers, user, [Add, Subtract], _ => user.with(self.node()))
    }

    /// All kinds of operands except two constants.
    fn all<O: Operator, U: User>(self, user: U) -> U::Made {
        let (at, operator) = (self.at, PhantomData::<O>);
        match self.left {
            Leaf::Constant(Constant(left)) if left.is_number() => {
                let left = Number(left.as_number());
                match self.right {
                    Leaf::Local(right) => user.with(BinaryNode { left, right, at, operator }),
                    right => user.with(BinaryNode { left, right: right.node(), at, operator }),
                }
            }
            left => Self { left, ..self }.most::<O, U>(user),
        }
    }

    /// The same for an operator of numbers.
    fn all_numbers<O: Operator, U: User>(self, user: U) -> U::Made {
        match self.left {
            Leaf::Computed(_) => self.numbers::<O, U>(user),
            _ => self.all::<O, U>(user),
        }
    }

    /// A slot, arithmetic or a node with any operand.
    fn numbers<O: Operator, U: User>(self, user: U) -> U::Made {
        let (at, operator) = (self.at, PhantomData::<O>);
        match self.left {
            Leaf::Computed(left) => {
                operand!(self.right, right => user.with(BinaryNode { left, right, at, operator }))
            }
            left => Self { left, ..self }.most::<O, U>(user),
        }
    }

    /// A slot or a node with any operand.
    fn most<O: Operator, U: User>(self, user: U) -> U::Made {
        match self.left {
            Leaf::Local(_) => self.from_slots::<O, U>(user),
            left => {
                let (left, at, operator) = (left.node(), self.at, PhantomData::<O>);
                operand!(self.right, right => user.with(BinaryNode { left, right, at, operator }))
            }
        }
    }

    /// The same for an operator of integers.
    fn integer<O: Operator, U: User>(self, user: U) -> U::Made {
        let (at, operator) = (self.at, PhantomData::<O>);
        match self.left {
            Leaf::Local(left) => {
                integer_operand!(self.right, right => user.with(BinaryNode { left, right, at, operator }))
            }
            Leaf::Computed(left) => {
                integer_operand!(self.right, right => user.with(BinaryNode { left, right, at, operator }))
            }
            left => {
                let left = left.node();
                integer_operand!(self.right, right => user.with(BinaryNode { left, right, at, operator }))
            }
        }
    }

    /// A slot with any operand; others as a node.
    fn from_slots<O: Operator, U: User>(self, user: U) -> U::Made {
        let Leaf::Local(left) = self.left else { return user.with(self.node()) };
        let (at, operator) = (self.at, PhantomData::<O>);
        operand!(self.right, right => user.with(BinaryNode { left, right, at, operator }))
    }
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
        } else if value.is(Kind::Promise) && !matches!(self.operator, Unary::Not | Unary::Void | Unary::Typeof) {
            vm.note_use(value, PromiseUse::Primitive, Some(self.at));
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

    fn truth(&self, vm: &mut Vm, fp: &Slots) -> Result<Truth> {
        Ok((!self.0.test(vm, fp)?).into())
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

    fn truth(&self, vm: &mut Vm, fp: &Slots) -> Result<Truth> {
        match self.operator {
            Logical::And if !self.left.test(vm, fp)? => Ok(false.into()),
            Logical::Or if self.left.test(vm, fp)? => Ok(true.into()),
            Logical::And | Logical::Or => self.right.truth(vm, fp),
            Logical::Coalesce => {
                let value = self.eval(vm, fp)?;
                Ok(vm.truthy(value).into())
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
