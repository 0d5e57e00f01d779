//! Functions of fdlibm as V8 has them, where the `libm` crate, which goes back to a later version,
//! gives other last digits.
//!
//! They follow the algorithms and use the constants of fdlibm:
//!
//! > Copyright (C) 1993, 2004 by Sun Microsystems, Inc. All rights reserved.
//! >
//! > Developed at SunSoft, a Sun Microsystems, Inc. business. Permission to use, copy, modify, and
//! > distribute this software is freely granted, provided that this notice is preserved.

#![expect(
    clippy::excessive_precision,
    clippy::approx_constant,
    reason = "the constants are those of fdlibm, as published"
)]

mod hyperbolic;
mod logarithm;
mod power;
mod trigonometric;

pub use hyperbolic::{acosh, asinh, atanh, cosh, sinh, tanh};
pub use logarithm::{log, log1p, log10};
pub use power::{cbrt, exp, pow};
pub use trigonometric::{atan2, cos, sin};

const LN2_HI: f64 = 6.931_471_803_691_238_164_90e-01;
const LN2_LO: f64 = 1.908_214_929_270_587_700_02e-10;

fn high(x: f64) -> u32 {
    (x.to_bits() >> 32) as u32
}

fn with_high(x: f64, high: u32) -> f64 {
    f64::from_bits(u64::from(high) << 32 | x.to_bits() & 0xFFFF_FFFF)
}

/// The number without the low half of its bits.
fn coarse(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & 0xFFFF_FFFF_0000_0000)
}

/// A polynomial, the coefficient of the highest power last.
fn polynomial(x: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().rev().copied().reduce(|sum, coefficient| coefficient + x * sum).unwrap_or(0.0)
}
