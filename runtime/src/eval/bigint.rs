//! Operators and texts of BigInts (ECMAScript 6.1.6.2).
//!
//! Work is charged before it is done, by the number of 64-bit limbs. A product costs in proportion to its size, so
//! that no power stalls a run. Operations of more than some milliseconds are done in pieces ([`large`]).

mod large;

use crate::eval::vm::Vm;
use crate::value::Value;
use crate::value::thrown::Result;
use agentscript_lang::program::{Binary, Unary};
use large::{MAX_STEPS, TEXT_LIMBS, product_steps, quotient_steps, text_steps};
use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{Signed as _, ToPrimitive as _};
use std::ops::Range;

/// Most bits of a BigInt, as in V8.
pub const MAX_BITS: u64 = 1 << 30;

/// The text of an integer.
pub fn text(vm: &mut Vm, integer: Value, radix: u32) -> Result<String> {
    let size = limbs(vm, integer);
    let bits = vm.heap.bigint_bits(integer) as usize;
    // The text, and a list of its digits or a copy.
    let _room = vm.heap.hold(bits / radix.ilog2() as usize * 2)?;
    if radix.is_power_of_two() || size <= TEXT_LIMBS {
        let charge = vm.work(if radix.is_power_of_two() { size } else { text_steps(size) })?;
        return Ok(vm.heap.read_bigint(integer, charge).to_str_radix(radix));
    }
    // The integer, powers of the base of the same total size, and temporary memory of a division.
    let _more = vm.heap.hold(size * 64)?;
    let number = vm.heap.charged_bigint(integer)?.clone();
    let mut digits = Vec::with_capacity(bits / radix.ilog2() as usize + 2); // charged: held above
    if number.is_negative() {
        digits.push(b'-');
    }
    large::write(number.magnitude(), radix, &mut digits, &mut |steps| vm.work(steps).map(drop))?;
    Ok(String::from_utf8(digits).unwrap_or_default())
}

/// So many digits are read at once; a multiple of 32, so that the digits of a piece are whole words in base 2, 8 and 16.
const PIECE: usize = 64 << 10;

/// StringToBigInt (ECMAScript 7.1.14).
pub fn parse(vm: &mut Vm, string: Value) -> Result<Option<BigInt>> {
    let Ok(text) = std::str::from_utf8(vm.heap.charged_bytes(string)?) else { return Ok(None) };
    let Some((digits, radix, sign)) = digits_of(text) else { return Ok(Some(BigInt::ZERO)) };
    if digits.is_empty() {
        return Ok(None);
    }
    for start in digits.clone().step_by(PIECE) {
        let piece = start..digits.end.min(start + PIECE);
        let charge = vm.work(piece.len() / 64)?;
        let piece = &vm.heap.read_bytes(string, charge)[piece];
        if !piece.iter().all(|&digit| char::from(digit).is_digit(radix)) {
            return Ok(None);
        }
    }
    let size = digits.len() / 16 + 1;
    let integer = if radix.is_power_of_two() {
        read_bits(vm, string, digits, radix)?
    } else if size <= TEXT_LIMBS {
        // Digits one by one, and the integer.
        let _room = vm.heap.hold(size * 32)?;
        let charge = vm.work(text_steps(size))?;
        BigUint::parse_bytes(&vm.heap.read_bytes(string, charge)[digits], radix)
    } else {
        let copy = vm.heap.charged_copy(string)?;
        // Parts, their products, and powers of the base.
        let _room = vm.heap.hold(size * 64)?;
        large::read(&copy[digits], radix, &mut |steps| vm.work(steps).map(drop))?
    };
    Ok(integer.map(|integer| BigInt::from_biguint(sign, integer)))
}

/// The integer that digits of a string denote, in a base that is a power of two.
fn read_bits(vm: &mut Vm, string: Value, digits: Range<usize>, radix: u32) -> Result<Option<BigUint>> {
    // The words, the integer, and the digits of a piece.
    let bytes = digits.len().div_ceil(32) * 4 * radix.ilog2() as usize;
    let _room = vm.heap.hold(2 * bytes + PIECE.min(digits.len()) * 2)?;
    let mut words = Vec::with_capacity(bytes / 4); // charged: held above
    let mut end = digits.end;
    while end > digits.start {
        let start = digits.start.max(end.saturating_sub(PIECE));
        let charge = vm.work((end - start) / 16 + 1)?;
        let piece = &vm.heap.read_bytes(string, charge)[start..end];
        let Some(piece) = BigUint::parse_bytes(piece, radix) else { return Ok(None) };
        let before = words.len();
        words.extend(piece.iter_u32_digits());
        if start > digits.start {
            words.resize(before + PIECE / 32 * radix.ilog2() as usize, 0);
        }
        end = start;
    }
    vm.work(words.len() / 64)?;
    Ok(Some(BigUint::new(words)))
}

/// Where the digits of the text of an integer are, their radix and its sign; `None` where it has only spaces.
fn digits_of(text: &str) -> Option<(Range<usize>, u32, Sign)> {
    let end = text.trim_end_matches(crate::value::numeric::is_space).len();
    let text = &text[..end];
    let start = end - text.trim_start_matches(crate::value::numeric::is_space).len();
    let (signs, radix, sign) = match text.as_bytes()[start..] {
        [] => return None,
        [b'0', b'x' | b'X', ..] => (2, 16, Sign::Plus),
        [b'0', b'o' | b'O', ..] => (2, 8, Sign::Plus),
        [b'0', b'b' | b'B', ..] => (2, 2, Sign::Plus),
        [b'+', ..] => (1, 10, Sign::Plus),
        [b'-', ..] => (1, 10, Sign::Minus),
        _ => (0, 10, Sign::Plus),
    };
    Some((start + signs..end, radix, sign))
}

/// An operator on two BigInts.
pub fn binary(vm: &mut Vm, operator: Binary, left: Value, right: Value) -> Result {
    match operator {
        Binary::Power => return power(vm, left, right),
        Binary::ShiftLeft => return shift(vm, left, right, false),
        Binary::ShiftRight => return shift(vm, left, right, true),
        Binary::ShiftRightUnsigned => {
            return Err(vm.type_error("BigInts have no unsigned right shift, use >> instead"));
        }
        Binary::Divide | Binary::Remainder if vm.heap.bigint_sign(right) == Sign::NoSign => {
            return Err(vm.range_error("Division by zero"));
        }
        _ => {}
    }
    let (a, b) = (limbs(vm, left), limbs(vm, right));
    let (charge, _room) = match operator {
        Binary::Multiply => {
            let steps = product_steps(a, b);
            if steps > MAX_STEPS {
                return large_operation(vm, operator, left, right);
            }
            // The product, and parts of it.
            (vm.work(steps)?, vm.heap.hold((a + b) * 24)?)
        }
        Binary::Divide | Binary::Remainder => {
            let steps = quotient_steps(a, b);
            if steps > MAX_STEPS {
                return large_operation(vm, operator, left, right);
            }
            (vm.work(steps)?, vm.heap.hold((a + b) * 16)?)
        }
        _ => (vm.work(a.max(b) / 8)?, vm.heap.hold(a.max(b) * 8)?),
    };
    let (a, b) = (vm.heap.read_bigint(left, charge), vm.heap.read_bigint(right, charge));
    let result = match operator {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        Binary::Remainder => a % b,
        Binary::BitAnd => a & b,
        Binary::BitOr => a | b,
        Binary::BitXor => a ^ b,
        // Comparisons are handled elsewhere, all others above.
        _ => return Ok(Value::UNDEFINED),
    };
    finish(vm, result)
}

/// A product, quotient or remainder that is made in pieces.
fn large_operation(vm: &mut Vm, operator: Binary, left: Value, right: Value) -> Result {
    let (a, b) = (limbs(vm, left), limbs(vm, right));
    // Both integers, the result, and temporary memory.
    let _room = vm.heap.hold((a + b) * 40)?;
    let charge = vm.work((a + b) / 8)?;
    let (a, b) = (vm.heap.read_bigint(left, charge).clone(), vm.heap.read_bigint(right, charge).clone());
    let (sign, other_sign) = (a.sign(), b.sign());
    let both = if sign == other_sign { Sign::Plus } else { Sign::Minus };
    if operator == Binary::Multiply {
        let product = large::product(a.magnitude(), b.magnitude(), &mut |steps| vm.work(steps).map(drop))?;
        return finish(vm, BigInt::from_biguint(both, product));
    }
    let (quotient, rest) = large::quotient(a.magnitude(), b.magnitude(), &mut |steps| vm.work(steps).map(drop))?;
    let result = match operator {
        Binary::Remainder => BigInt::from_biguint(sign, rest),
        _ => BigInt::from_biguint(both, quotient),
    };
    finish(vm, result)
}

/// `left ** right`
fn power(vm: &mut Vm, left: Value, right: Value) -> Result {
    let charge = vm.work((limbs(vm, left) + limbs(vm, right)) / 8)?;
    let (base, exponent) = (vm.heap.read_bigint(left, charge), vm.heap.read_bigint(right, charge));
    if exponent.is_negative() {
        // V8's words.
        return Err(vm.range_error("undefined must be positive"));
    }
    let bits = base.bits();
    if bits <= 1 {
        // 0, 1 and -1 do not grow.
        let result = match (exponent.sign(), exponent.bit(0)) {
            (Sign::NoSign, _) => BigInt::from(1),
            (_, true) => base.clone(),
            (_, false) => base.abs(),
        };
        return finish(vm, result);
    }
    let Some(exponent) = exponent.to_u32().filter(|&exponent| (bits - 1) * u64::from(exponent) < MAX_BITS) else {
        return Err(too_big(vm));
    };
    let size = (bits * u64::from(exponent) / 64 + 1) as usize;
    let _room = vm.heap.hold(size * 40)?;
    // The last squaring takes half of the size, each earlier one half of the next.
    let steps = product_steps(size / 2 + 1, size / 2 + 1).saturating_mul(2);
    if steps > MAX_STEPS {
        let base = vm.heap.read_bigint(left, charge).clone();
        let sign = if base.is_negative() && exponent % 2 == 1 { Sign::Minus } else { Sign::Plus };
        let result = large::power(base.magnitude(), exponent, &mut |steps| vm.work(steps).map(drop))?;
        return finish(vm, BigInt::from_biguint(sign, result));
    }
    let charge = vm.work(steps)?;
    let result = vm.heap.read_bigint(left, charge).pow(exponent);
    finish(vm, result)
}

/// `left << right`, or `left >> right`: each is the other with a negative distance.
fn shift(vm: &mut Vm, left: Value, right: Value, to_right: bool) -> Result {
    let size = limbs(vm, left);
    let charge = vm.work(size / 8 + limbs(vm, right) / 8)?;
    let _room = vm.heap.hold(size * 8)?;
    let (integer, distance) = (vm.heap.read_bigint(left, charge), vm.heap.read_bigint(right, charge));
    let shrinks = to_right != distance.is_negative();
    let distance = distance.magnitude().to_u64().unwrap_or(u64::MAX);
    if integer.sign() == Sign::NoSign || distance == 0 {
        return Ok(left);
    }
    if shrinks {
        let result = if distance >= integer.bits() {
            if integer.is_negative() { BigInt::from(-1) } else { BigInt::ZERO }
        } else {
            integer >> distance
        };
        return finish(vm, result);
    }
    if distance > MAX_BITS || integer.bits() + distance > MAX_BITS {
        return Err(too_big(vm));
    }
    let _room = vm.heap.hold(size * 8 + distance as usize / 8)?;
    let charge = vm.work(distance as usize / 512)?;
    let result = vm.heap.read_bigint(left, charge) << distance;
    finish(vm, result)
}

/// A prefix operator on a BigInt.
pub fn unary(vm: &mut Vm, operator: Unary, value: Value) -> Result {
    let size = limbs(vm, value);
    let charge = vm.work(size / 8)?;
    let _room = vm.heap.hold(size * 16)?;
    let integer = vm.heap.read_bigint(value, charge);
    let result = match operator {
        Unary::Minus => -integer,
        Unary::BitNot => -integer - 1,
        Unary::Increment => integer + 1,
        Unary::Decrement => integer - 1,
        // The other operators do not depend on the type of their operand.
        _ => return Ok(value),
    };
    finish(vm, result)
}

/// A result, unless it is too big.
pub fn finish(vm: &mut Vm, integer: BigInt) -> Result {
    if integer.bits() > MAX_BITS {
        return Err(too_big(vm));
    }
    Ok(vm.heap.new_bigint(integer))
}

#[cold]
pub fn too_big(vm: &mut Vm) -> crate::value::thrown::Thrown {
    vm.range_error("Maximum BigInt size exceeded")
}

/// Size in 64-bit limbs.
pub fn limbs(vm: &Vm, integer: Value) -> usize {
    vm.heap.bigint_bits(integer) as usize / 64 + 1
}
