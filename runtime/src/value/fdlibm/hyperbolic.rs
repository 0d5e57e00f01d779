//! Hyperbolic functions and their inverses.

use super::{exp, high, log, log1p};

const LN2: f64 = 6.931_471_805_599_453_094_17e-01;

/// The largest number whose hyperbolic sine and cosine are finite.
const HYPERBOLIC_MAX: f64 = 710.475_860_073_943_9;

/// `Math.cosh(x)`
pub fn cosh(x: f64) -> f64 {
    let (magnitude, x) = (high(x) & 0x7FFF_FFFF, x.abs());
    if magnitude < 0x3FD6_2E43 {
        let t = libm::expm1(x);
        let w = 1.0 + t;
        return if magnitude < 0x3C80_0000 { w } else { 1.0 + (t * t) / (w + w) };
    }
    if magnitude < 0x4036_0000 {
        let t = exp(x);
        return 0.5 * t + 0.5 / t;
    }
    half_exp(x, 0.5)
}

/// `Math.sinh(x)`
pub fn sinh(x: f64) -> f64 {
    let (half, size) = (if x < 0.0 { -0.5 } else { 0.5 }, x.abs());
    if size < 3.725_290_298_461_914e-9 {
        return x;
    }
    if size < 22.0 {
        let t = libm::expm1(size);
        return if size < 1.0 { half * (2.0 * t - t * t / (t + 1.0)) } else { half * (t + t / (t + 1.0)) };
    }
    half_exp(size, half)
}

/// Half of `exp(x)` for a large number, with the sign of `half`.
fn half_exp(x: f64, half: f64) -> f64 {
    // The logarithm of the largest number, cut.
    if x < 709.782_226_562_5 {
        return half * exp(x);
    }
    if x <= HYPERBOLIC_MAX {
        let w = exp(0.5 * x);
        return half * w * w;
    }
    half * x * f64::INFINITY
}

/// `Math.acosh(x)`
pub fn acosh(x: f64) -> f64 {
    if x.is_nan() || x < 1.0 {
        f64::NAN
    } else if high(x) >= 0x41B0_0000 {
        log(x) + LN2
    } else if x == 1.0 {
        0.0
    } else if high(x) > 0x4000_0000 {
        log(2.0 * x - 1.0 / (x + (x * x - 1.0).sqrt()))
    } else {
        let t = x - 1.0;
        log1p(t + (2.0 * t + t * t).sqrt())
    }
}

/// `Math.asinh(x)`
pub fn asinh(x: f64) -> f64 {
    let magnitude = high(x) & 0x7FFF_FFFF;
    if !(0x3E30_0000..0x7FF0_0000).contains(&magnitude) {
        return x;
    }
    let t = x.abs();
    let result = if magnitude > 0x41B0_0000 {
        log(t) + LN2
    } else if magnitude > 0x4000_0000 {
        log(2.0 * t + 1.0 / ((x * x + 1.0).sqrt() + t))
    } else {
        let square = x * x;
        log1p(t + square / (1.0 + (1.0 + square).sqrt()))
    };
    result.copysign(x)
}

/// `Math.atanh(x)`
pub fn atanh(x: f64) -> f64 {
    let t = x.abs();
    if x.is_nan() || t > 1.0 {
        return f64::NAN;
    }
    if t == 1.0 {
        return x / 0.0;
    }
    if high(t) < 0x3E30_0000 {
        return x;
    }
    let result = if high(t) < 0x3FE0_0000 {
        let twice = t + t;
        0.5 * log1p(twice + twice * t / (1.0 - t))
    } else {
        0.5 * log1p((t + t) / (1.0 - t))
    };
    result.copysign(x)
}

/// `Math.tanh(x)`
pub fn tanh(x: f64) -> f64 {
    let t = x.abs();
    if x.is_nan() || high(t) < 0x3E30_0000 {
        return x;
    }
    let z = if t >= 22.0 {
        1.0
    } else if t >= 1.0 {
        1.0 - 2.0 / (libm::expm1(2.0 * t) + 2.0)
    } else {
        let m = libm::expm1(-2.0 * t);
        -m / (m + 2.0)
    };
    z.copysign(x)
}
