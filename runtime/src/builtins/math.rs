//! `Math`. Functions that V8 takes from fdlibm give the same digits here. Functions that the `libm` crate computes in
//! the same way come from it, the others are in [`fdlibm`].

use super::{Body, Global, arg, native};
use crate::eval::operator::power;
use crate::eval::vm::Vm;
use crate::meter::buffer::Buffer;
use crate::value::numeric::to_int32;
use crate::value::thrown::Result;
use crate::value::{Value, fdlibm};
use std::f64::consts;

/// The namespace.
pub const GLOBALS: &[Global] = &[Global {
    name: "Math",
    length: 0,
    call: Body::Namespace,
    construct: None,
    functions: &[
        native("abs", 1, |vm, _, x| f_f(vm, x, f64::abs)),
        native("acos", 1, |vm, _, x| f_f(vm, x, libm::acos)),
        native("acosh", 1, |vm, _, x| f_f(vm, x, fdlibm::acosh)),
        native("asin", 1, |vm, _, x| f_f(vm, x, libm::asin)),
        native("asinh", 1, |vm, _, x| f_f(vm, x, fdlibm::asinh)),
        native("atan", 1, |vm, _, x| f_f(vm, x, libm::atan)),
        native("atanh", 1, |vm, _, x| f_f(vm, x, fdlibm::atanh)),
        native("atan2", 2, |vm, _, x| ff_f(vm, x, fdlibm::atan2)),
        native("ceil", 1, |vm, _, x| f_f(vm, x, f64::ceil)),
        native("cbrt", 1, |vm, _, x| f_f(vm, x, fdlibm::cbrt)),
        native("expm1", 1, |vm, _, x| f_f(vm, x, libm::expm1)),
        native("clz32", 1, |vm, _, x| f_f(vm, x, |x| f64::from(to_int32(x).leading_zeros()))),
        native("cos", 1, |vm, _, x| f_f(vm, x, fdlibm::cos)),
        native("cosh", 1, |vm, _, x| f_f(vm, x, fdlibm::cosh)),
        native("exp", 1, |vm, _, x| f_f(vm, x, fdlibm::exp)),
        native("f16round", 1, |vm, _, x| f_f(vm, x, f16_round)),
        native("floor", 1, |vm, _, x| f_f(vm, x, f64::floor)),
        native("fround", 1, |vm, _, x| f_f(vm, x, |x| f64::from(x as f32))),
        native("hypot", 2, hypot),
        native("imul", 2, |vm, _, x| ff_f(vm, x, imul)),
        native("log", 1, |vm, _, x| f_f(vm, x, fdlibm::log)),
        native("log1p", 1, |vm, _, x| f_f(vm, x, fdlibm::log1p)),
        native("log2", 1, |vm, _, x| f_f(vm, x, libm::log2)),
        native("log10", 1, |vm, _, x| f_f(vm, x, fdlibm::log10)),
        native("max", 2, max),
        native("min", 2, min),
        native("pow", 2, |vm, _, x| ff_f(vm, x, power)),
        native("random", 0, random),
        native("round", 1, |vm, _, x| f_f(vm, x, round)),
        native("sign", 1, |vm, _, x| f_f(vm, x, sign)),
        native("sin", 1, |vm, _, x| f_f(vm, x, fdlibm::sin)),
        native("sinh", 1, |vm, _, x| f_f(vm, x, fdlibm::sinh)),
        native("sqrt", 1, |vm, _, x| f_f(vm, x, f64::sqrt)),
        native("tan", 1, |vm, _, x| f_f(vm, x, libm::tan)),
        native("tanh", 1, |vm, _, x| f_f(vm, x, fdlibm::tanh)),
        native("trunc", 1, |vm, _, x| f_f(vm, x, f64::trunc)),
    ],
    numbers: &[
        ("E", consts::E),
        ("LN10", consts::LN_10),
        ("LN2", consts::LN_2),
        ("LOG10E", consts::LOG10_E),
        ("LOG2E", consts::LOG2_E),
        ("PI", consts::PI),
        ("SQRT1_2", consts::FRAC_1_SQRT_2),
        ("SQRT2", consts::SQRT_2),
    ],
}];

/// The nearest number of binary16; of two, the even one.
fn f16_round(x: f64) -> f64 {
    /// The least number that is rounded to infinity.
    const OVERFLOW: f64 = 65520.0;
    const LEAST_EXPONENT: i32 = -14;
    const FRACTION_BITS: i32 = 10;
    if x.abs() >= OVERFLOW {
        return f64::INFINITY.copysign(x);
    }
    let exponent = (x.to_bits() >> 52 & 0x7FF) as i32 - 1023;
    let unit = f64::exp2(f64::from(exponent.max(LEAST_EXPONENT) - FRACTION_BITS));
    (x / unit).round_ties_even() * unit
}

/// A function of one number.
fn f_f(vm: &mut Vm, arguments: &[Value], function: impl Fn(f64) -> f64) -> Result {
    let x = vm.to_number(arg(arguments, 0))?;
    Ok(Value::foreign_number(function(x)))
}

/// A function of two numbers.
fn ff_f(vm: &mut Vm, arguments: &[Value], function: impl Fn(f64, f64) -> f64) -> Result {
    let x = vm.to_number(arg(arguments, 0))?;
    let y = vm.to_number(arg(arguments, 1))?;
    Ok(Value::foreign_number(function(x, y)))
}

/// `Math.hypot(...numbers)`: scaled by the largest and summed with compensation, as in V8.
fn hypot(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    vm.work(arguments.len())?;
    let mut numbers = Buffer::with_capacity(vm, arguments.len())?;
    for &argument in arguments {
        let number = vm.to_number(argument)?.abs();
        numbers.push(vm, number)?;
    }
    if numbers.contains(&f64::INFINITY) {
        return Ok(Value::number(f64::INFINITY));
    }
    if numbers.iter().any(|number| number.is_nan()) {
        return Ok(Value::NAN);
    }
    let largest = numbers.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 {
        return Ok(Value::ZERO);
    }
    let (mut sum, mut compensation) = (0.0, 0.0);
    for number in numbers {
        let scaled = number / largest;
        let summand = scaled * scaled - compensation;
        let preliminary = sum + summand;
        compensation = (preliminary - sum) - summand;
        sum = preliminary;
    }
    Ok(Value::number(sum.sqrt() * largest))
}

/// `Math.imul(x, y)`
fn imul(x: f64, y: f64) -> f64 {
    f64::from(to_int32(x).wrapping_mul(to_int32(y)))
}

/// `Math.max(...numbers)`
fn max(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    extreme(vm, arguments, f64::NEG_INFINITY, |x, y| x > y || x == 0.0 && y == 0.0 && x.is_sign_positive())
}

/// `Math.min(...numbers)`
fn min(vm: &mut Vm, _: Value, arguments: &[Value]) -> Result {
    extreme(vm, arguments, f64::INFINITY, |x, y| x < y || x == 0.0 && y == 0.0 && x.is_sign_negative())
}

/// The argument that is `better` than the others; NaN if any is NaN.
fn extreme(vm: &mut Vm, arguments: &[Value], none: f64, better: impl Fn(f64, f64) -> bool) -> Result {
    vm.work(arguments.len() / 4)?;
    let mut best = none;
    for &argument in arguments {
        let number = vm.to_number(argument)?;
        if number.is_nan() || better(number, best) && !best.is_nan() {
            best = number;
        }
    }
    Ok(Value::foreign_number(best))
}

/// `Math.random()`
fn random(vm: &mut Vm, _: Value, _: &[Value]) -> Result {
    Ok(Value::number(vm.random.next()))
}

/// `Math.round(x)`: a half is rounded up, and the sign of zero is kept.
fn round(x: f64) -> f64 {
    let up = x.ceil();
    if up - 0.5 > x { up - 1.0 } else { up }
}

/// `Math.sign(x)`
fn sign(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() { x } else { x.signum() }
}
