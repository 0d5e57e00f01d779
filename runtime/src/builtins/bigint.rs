//! `BigInt`: the constructor and methods. Operators are in [`bigint`](crate::eval::bigint).

use super::number::{MAX_SAFE, radix_argument};
use super::{Body, Global, Row, arg, native};
use crate::eval::bigint::{MAX_BITS, finish, limbs, parse, text, too_big};
use crate::eval::convert::Hint;
use crate::eval::vm::Vm;
use crate::heap::Class;
use crate::value::numeric::number_text;
use crate::value::thrown::Result;
use crate::value::{Kind, Value};
use num_bigint::{BigInt, Sign};
use num_traits::FromPrimitive as _;

/// The constructor.
pub const GLOBALS: &[Global] = &[Global {
    name: "BigInt",
    length: 1,
    call: Body::Native(bigint),
    construct: None,
    functions: &[native("asIntN", 2, as_int_n), native("asUintN", 2, as_uint_n)],
    numbers: &[],
}];

/// Methods of BigInts.
pub const METHODS: &[Row] = &[native("toString", 0, to_string), native("valueOf", 0, value_of)];

/// `BigInt(value)`
fn bigint(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let value = vm.to_primitive(arg(arguments, 0), Hint::Number)?;
    if !value.is_number() {
        return to_bigint(vm, value);
    }
    let number = value.as_number();
    if number.fract() == 0.0
        && let Some(integer) = BigInt::from_f64(number)
    {
        return Ok(vm.heap.new_bigint(integer));
    }
    let text = number_text(number);
    Err(vm.range_error(&brief!("The number {text} cannot be converted to a BigInt because it is not an integer")))
}

/// `BigInt.asIntN(bits, bigint)`
fn as_int_n(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (bits, value) = wrap_arguments(vm, arguments)?;
    if fits(vm, value, bits) {
        return Ok(value);
    }
    let low = low_bits(vm, value, bits)?;
    if bits > 0 && low.bit(bits - 1) {
        return finish(vm, low - (BigInt::from(1) << bits));
    }
    finish(vm, low)
}

/// `BigInt.asUintN(bits, bigint)`
fn as_uint_n(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    let (bits, value) = wrap_arguments(vm, arguments)?;
    if fits(vm, value, bits) && vm.heap.bigint_sign(value) != Sign::Minus {
        return Ok(value);
    }
    let low = low_bits(vm, value, bits)?;
    finish(vm, low)
}

fn wrap_arguments(vm: &mut Vm, arguments: &[Value]) -> Result<(u64, Value)> {
    let bits = vm.to_integer(arg(arguments, 0))?;
    if !(0.0..=MAX_SAFE).contains(&bits) {
        return Err(vm.range_error("Invalid value: not (convertible to) a safe integer"));
    }
    let value = vm.to_primitive(arg(arguments, 1), Hint::Number)?;
    Ok((bits as u64, to_bigint(vm, value)?))
}

/// Whether an integer surely fits so many bits, with its sign.
fn fits(vm: &Vm, value: Value, bits: u64) -> bool {
    vm.heap.bigint_bits(value) < bits
}

/// An integer modulo a power of two.
fn low_bits(vm: &mut Vm, value: Value, bits: u64) -> Result<BigInt> {
    if bits > MAX_BITS {
        return Err(too_big(vm));
    }
    let _room = vm.heap.hold(bits as usize / 2)?;
    let charge = vm.work((bits / 512) as usize + limbs(vm, value) / 8)?;
    let mask = (BigInt::from(1) << bits) - 1;
    Ok(vm.heap.read_bigint(value, charge) & mask)
}

/// `bigint.toString(radix)`
fn to_string(vm: &mut Vm, this: Value, arguments: &[Value]) -> Result {
    let this = receiver(vm, this, "toString")?;
    let radix = radix_argument(vm, arg(arguments, 0))?;
    let text = text(vm, this, radix)?;
    Ok(vm.heap.take_string(text.into_bytes()))
}

/// `bigint.valueOf()`
fn value_of(vm: &mut Vm, this: Value, _: &[Value]) -> Result {
    receiver(vm, this, "valueOf")
}

pub(super) fn receiver(vm: &mut Vm, this: Value, method: &str) -> Result {
    if this.is(Kind::BigInt) {
        return Ok(this);
    }
    Err(vm.type_error(&brief!("BigInt.prototype.{method} requires that 'this' be a BigInt")))
}

/// A primitive as a BigInt; numbers are none (ECMAScript 7.1.13).
fn to_bigint(vm: &mut Vm, value: Value) -> Result {
    match value.kind() {
        Kind::BigInt => Ok(value),
        Kind::Boolean => Ok(vm.heap.new_bigint(BigInt::from(value == Value::TRUE))),
        Kind::String => match parse(vm, value)? {
            Some(integer) => finish(vm, integer),
            None => {
                let text = vm.to_text_lossy(value);
                Err(vm.throw(Class::SyntaxError, &brief!("Cannot convert {text} to a BigInt")))
            }
        },
        _ => {
            let text = vm.short_text(value, crate::interface::outcome::MAX_MESSAGE_BYTES)?;
            Err(vm.type_error(&brief!("Cannot convert {text} to a BigInt")))
        }
    }
}
