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

use std::f64::consts::{E, FRAC_PI_2};

const LN2_HI: f64 = 6.931_471_803_691_238_164_90e-01;
const LN2_LO: f64 = 1.908_214_929_270_587_700_02e-10;
const LN2: f64 = 6.931_471_805_599_453_094_17e-01;
const TWO54: f64 = 18_014_398_509_481_984.0;

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

/// `Math.cbrt(x)`
pub fn cbrt(x: f64) -> f64 {
    let magnitude = high(x) & 0x7FFF_FFFF;
    let sign = high(x) & 0x8000_0000;
    if magnitude >= 0x7FF0_0000 || x == 0.0 {
        return x + x;
    }
    let words = |high: u32| f64::from_bits(u64::from(high) << 32);
    let rough = if magnitude < 0x0010_0000 {
        let scaled = high(x * f64::from_bits(0x4350_0000 << 32)) & 0x7FFF_FFFF;
        words(sign | (scaled / 3 + 696_219_795))
    } else {
        words(sign | (magnitude / 3 + 715_094_163))
    };
    // To 23 bits, rounded away from zero, then a step of Newton's iteration.
    let r = (rough * rough) * (rough / x);
    let [p0, p1, p2, p3, p4] = CUBE_ROOT;
    let t = rough * ((p0 + r * (p1 + r * p2)) + ((r * r) * r) * (p3 + r * p4));
    let t = f64::from_bits((t.to_bits() + 0x8000_0000) & 0xFFFF_FFFF_C000_0000);
    let r = x / (t * t);
    t + t * ((r - t) / (t + t + r))
}

const CUBE_ROOT: [f64; 5] = [
    1.875_951_824_271_770_1,
    -1.884_979_795_433_771_7,
    1.621_429_720_105_354_5,
    -0.758_397_934_778_766,
    0.145_996_192_886_612_45,
];

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

/// `Math.atan2(y, x)`
pub fn atan2(y: f64, x: f64) -> f64 {
    let exponent = |number: f64| (high(number) >> 20 & 0x7FF) as i32;
    let plain = x.is_finite() && y.is_finite() && x != 0.0 && y != 0.0 && x != 1.0;
    if plain && exponent(y) - exponent(x) > 60 { FRAC_PI_2.copysign(y) } else { libm::atan2(y, x) }
}

/// `Math.cos(x)`
pub fn cos(x: f64) -> f64 {
    if let Some((n, y, rest)) = reduced(x) {
        match n & 3 {
            0 => kernel_cos(y, rest),
            1 => -kernel_sin(y, rest, true),
            2 => -kernel_cos(y, rest),
            _ => kernel_sin(y, rest, true),
        }
    } else if high(x) & 0x7FFF_FFFF <= 0x3FE9_21FB {
        kernel_cos(x, 0.0)
    } else {
        libm::cos(x)
    }
}

/// `Math.sin(x)`
pub fn sin(x: f64) -> f64 {
    if let Some((n, y, rest)) = reduced(x) {
        match n & 3 {
            0 => kernel_sin(y, rest, true),
            1 => kernel_cos(y, rest),
            2 => -kernel_sin(y, rest, true),
            _ => -kernel_cos(y, rest),
        }
    } else if high(x) & 0x7FFF_FFFF <= 0x3FE9_21FB {
        kernel_sin(x, 0.0, false)
    } else {
        libm::sin(x)
    }
}

/// `x - n·π/2` as a sum of two numbers, for numbers of medium size.
fn reduced(x: f64) -> Option<(i32, f64, f64)> {
    const INVPIO2: f64 = 6.366_197_723_675_813_824_33e-01;
    /// π/2 in parts of 33 bits, each with what is left of π/2 behind it.
    const PARTS: [(f64, f64); 3] = [
        (1.570_796_326_734_125_614_17, 6.077_100_506_506_192_249_32e-11),
        (6.077_100_506_303_965_976_60e-11, 2.022_266_248_795_950_631_54e-21),
        (2.022_266_248_711_166_455_80e-21, 8.478_427_660_368_899_569_97e-32),
    ];
    let magnitude = high(x) & 0x7FFF_FFFF;
    if magnitude <= 0x3FE9_21FB || magnitude > 0x4139_21FB {
        return None;
    }
    let t = x.abs();
    let n = if magnitude < 0x4002_D97C { 1 } else { (t * INVPIO2 + 0.5) as i32 };
    let times = f64::from(n);
    let mut r = t - times * PARTS[0].0;
    let mut w = times * PARTS[0].1;
    let mut y = r - w;
    let exponent = |number: f64| (high(number) >> 20 & 0x7FF) as i32;
    // Where much cancels, the next parts count.
    for (index, lost) in [(1, 16), (2, 49)] {
        if (magnitude >> 20) as i32 - exponent(y) <= lost {
            break;
        }
        let before = r;
        w = times * PARTS[index].0;
        r = before - w;
        w = times * PARTS[index].1 - ((before - r) - w);
        y = r - w;
    }
    let rest = (r - y) - w;
    Some(if x < 0.0 { (-n, -y, -rest) } else { (n, y, rest) })
}

fn kernel_sin(x: f64, y: f64, has_rest: bool) -> f64 {
    const S1: f64 = -1.666_666_666_666_663_243_48e-01;
    const S: [f64; 5] = [
        8.333_333_333_322_489_461_24e-03,
        -1.984_126_982_985_794_931_34e-04,
        2.755_731_370_707_006_767_89e-06,
        -2.505_076_025_340_686_341_95e-08,
        1.589_690_995_211_550_102_21e-10,
    ];
    if high(x) & 0x7FFF_FFFF < 0x3E40_0000 {
        return x;
    }
    let z = x * x;
    let v = z * x;
    let r = polynomial(z, &S);
    if has_rest { x - ((z * (0.5 * y - v * r) - y) - v * S1) } else { x + v * (S1 + z * r) }
}

fn kernel_cos(x: f64, y: f64) -> f64 {
    const C: [f64; 6] = [
        4.166_666_666_666_660_190_37e-02,
        -1.388_888_888_887_410_957_49e-03,
        2.480_158_728_947_672_941_78e-05,
        -2.755_731_435_139_066_330_35e-07,
        2.087_572_321_298_174_827_90e-09,
        -1.135_964_755_778_819_482_65e-11,
    ];
    let magnitude = high(x) & 0x7FFF_FFFF;
    if magnitude < 0x3E40_0000 {
        return 1.0;
    }
    let z = x * x;
    let r = z * polynomial(z, &C);
    if magnitude < 0x3FD3_3333 {
        return 1.0 - (0.5 * z - (z * r - x * y));
    }
    let quarter = if magnitude > 0x3FE9_0000 { 0.28125 } else { with_high(0.0, magnitude - 0x0020_0000) };
    let iz = 0.5 * z - quarter;
    let a = 1.0 - quarter;
    a - (iz - (z * r - x * y))
}

/// `Math.exp(x)`
pub fn exp(x: f64) -> f64 {
    const INVLN2: f64 = 1.442_695_040_888_963_387_00;
    const P: [f64; 5] = [
        1.666_666_666_666_660_190_37e-01,
        -2.777_777_777_701_559_338_42e-03,
        6.613_756_321_437_934_361_17e-05,
        -1.653_390_220_546_525_153_90e-06,
        4.138_136_797_057_238_460_39e-08,
    ];
    let magnitude = high(x) & 0x7FFF_FFFF;
    if x.is_nan() || x > 7.097_827_128_933_839_730_96e+02 {
        return x * f64::INFINITY;
    }
    if x < -7.451_332_191_019_411_084_20e+02 {
        return 0.0;
    }
    if magnitude < 0x3E30_0000 {
        return 1.0 + x;
    }
    if x == 1.0 {
        return E;
    }
    let (k, hi, lo) = if magnitude <= 0x3FD6_2E42 {
        (0, x, 0.0)
    } else {
        let k = if magnitude < 0x3FF0_A2B2 { x.signum() as i32 } else { (INVLN2 * x + 0.5_f64.copysign(x)) as i32 };
        (k, x - f64::from(k) * LN2_HI, f64::from(k) * LN2_LO)
    };
    let x = if k == 0 { x } else { hi - lo };
    let t = x * x;
    let c = x - t * polynomial(t, &P);
    if k == 0 {
        return 1.0 - ((x * c) / (c - 2.0) - x);
    }
    let y = 1.0 - ((lo - (x * c) / (2.0 - c)) - hi);
    scaled(y, k)
}

/// `y · 2ᵏ`
fn scaled(y: f64, k: i32) -> f64 {
    let power = |k: i32| f64::from_bits(((1023 + k) as u64) << 52);
    match k {
        1024 => y * 2.0 * power(1023),
        -1021..=1023 => y * power(k),
        _ => y * power(k + 1000) * 9.332_636_185_032_188_789_90e-302,
    }
}

/// `Math.log(x)`
pub fn log(x: f64) -> f64 {
    const LG: [f64; 7] = [
        6.666_666_666_666_735_130e-01,
        3.999_999_999_940_941_908e-01,
        2.857_142_874_366_239_149e-01,
        2.222_219_843_214_978_396e-01,
        1.818_357_216_161_805_012e-01,
        1.531_383_769_920_937_332e-01,
        1.479_819_860_511_658_591e-01,
    ];
    let Some((mut k, x)) = normal(x) else { return logarithm_of_special(x) };
    let fraction = high(x) & 0x000F_FFFF;
    let carry = (fraction + 0x95F64) & 0x0010_0000;
    let f = with_high(x, fraction | (carry ^ 0x3FF0_0000)) - 1.0;
    k += (carry >> 20) as i32;
    let dk = f64::from(k);
    if 0x000F_FFFF & (2 + fraction) < 3 {
        if f == 0.0 {
            return if k == 0 { 0.0 } else { dk * LN2_HI + dk * LN2_LO };
        }
        let r = f * f * (0.5 - 0.333_333_333_333_333_333_33 * f);
        return if k == 0 { f - r } else { dk * LN2_HI - ((r - dk * LN2_LO) - f) };
    }
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (LG[1] + w * (LG[3] + w * LG[5]));
    let odd = z * (LG[0] + w * (LG[2] + w * (LG[4] + w * LG[6])));
    let r = odd + even;
    let sides = (fraction as i32 - 0x6147A) | (0x6B851 - fraction as i32);
    if sides > 0 {
        let hfsq = 0.5 * f * f;
        if k == 0 {
            return f - (hfsq - s * (hfsq + r));
        }
        return dk * LN2_HI - ((hfsq - (s * (hfsq + r) + dk * LN2_LO)) - f);
    }
    if k == 0 { f - s * (f - r) } else { dk * LN2_HI - ((s * (f - r) - dk * LN2_LO) - f) }
}

/// The exponent of a positive finite number, and the number, made normal.
fn normal(x: f64) -> Option<(i32, f64)> {
    if x.is_nan() || x <= 0.0 || x.is_infinite() {
        return None;
    }
    let (lift, x) = if high(x) < 0x0010_0000 { (-54, x * TWO54) } else { (0, x) };
    Some((lift + (high(x) >> 20) as i32 - 1023, x))
}

/// A logarithm of what has none, or is infinite.
fn logarithm_of_special(x: f64) -> f64 {
    if x == 0.0 {
        f64::NEG_INFINITY
    } else if x > 0.0 {
        x
    } else {
        f64::NAN
    }
}

/// `Math.log10(x)`
pub fn log10(x: f64) -> f64 {
    const IVLN10: f64 = 4.342_944_819_032_518_166_68e-01;
    const LOG10_2HI: f64 = 3.010_299_956_636_117_713_06e-01;
    const LOG10_2LO: f64 = 3.694_239_077_158_930_786_16e-13;
    let Some((k, x)) = normal(x) else { return logarithm_of_special(x) };
    let below = u32::from(k < 0);
    let y = f64::from(k + below as i32);
    let mantissa = with_high(x, high(x) & 0x000F_FFFF | (0x3FF - below) << 20);
    let z = y * LOG10_2LO + IVLN10 * log(mantissa);
    z + y * LOG10_2HI
}

/// `Math.log1p(x)`
pub fn log1p(x: f64) -> f64 {
    const LP: [f64; 7] = [
        6.666_666_666_666_735_130e-01,
        3.999_999_999_940_941_908e-01,
        2.857_142_874_366_239_149e-01,
        2.222_219_843_214_978_396e-01,
        1.818_357_216_161_805_012e-01,
        1.531_383_769_920_937_332e-01,
        1.479_819_860_511_658_591e-01,
    ];
    if x.is_nan() || x <= -1.0 || x.is_infinite() {
        return logarithm_of_special(x + 1.0);
    }
    let magnitude = high(x) & 0x7FFF_FFFF;
    if magnitude < 0x3E20_0000 {
        return if magnitude < 0x3C90_0000 { x } else { x - x * x * 0.5 };
    }
    let word = high(x) as i32;
    let near = word < 0x3FDA_827A && (word > 0 || word <= 0xBFD2_BEC4_u32 as i32);
    let (k, f, c, is_small) = if near { (0, x, 0.0, false) } else { split(x) };
    let dk = f64::from(k);
    let hfsq = 0.5 * f * f;
    if is_small {
        if f == 0.0 {
            return if k == 0 { 0.0 } else { dk * LN2_HI + (c + dk * LN2_LO) };
        }
        let r = hfsq * (1.0 - 0.666_666_666_666_666_66 * f);
        return if k == 0 { f - r } else { dk * LN2_HI - ((r - (dk * LN2_LO + c)) - f) };
    }
    let s = f / (2.0 + f);
    let z = s * s;
    let r = z * polynomial(z, &LP);
    if k == 0 {
        return f - (hfsq - s * (hfsq + r));
    }
    dk * LN2_HI - ((hfsq - (s * (hfsq + r) + (dk * LN2_LO + c))) - f)
}

/// `1 + x` as `2ᵏ·(1 + f)`, what was lost, and whether `f` is tiny.
fn split(x: f64) -> (i32, f64, f64, bool) {
    let exponent = |u: f64| (high(u) >> 20) as i32 - 1023;
    let (u, c) = if high(x) as i32 >= 0x4340_0000 {
        (x, 0.0)
    } else {
        let u = 1.0 + x;
        (u, if exponent(u) > 0 { 1.0 - (u - x) } else { x - (u - 1.0) } / u)
    };
    let fraction = high(u) & 0x000F_FFFF;
    if fraction < 0x6A09E {
        return (exponent(u), with_high(u, fraction | 0x3FF0_0000) - 1.0, c, fraction == 0);
    }
    let rest = (0x0010_0000 - fraction) >> 2;
    (exponent(u) + 1, with_high(u, fraction | 0x3FE0_0000) - 1.0, c, rest == 0)
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

/// `x ** y` for numbers that are neither NaN nor infinite nor zero, with `x` positive unless `y` is an
/// integer.
pub fn pow(x: f64, y: f64) -> f64 {
    let special = !x.is_finite() || !y.is_finite() || x == 0.0 || y == 0.0 || x < 0.0 && y.fract() != 0.0;
    if special || y.abs() > 2_147_483_648.0 {
        return libm::pow(x, y);
    }
    match y {
        1.0 => return x,
        -1.0 => return 1.0 / x,
        2.0 => return x * x,
        0.5 if x > 0.0 => return x.sqrt(),
        _ if x == 1.0 => return 1.0,
        _ => {}
    }
    let sign = if x < 0.0 && y % 2.0 != 0.0 { -1.0 } else { 1.0 };
    let (t1, t2) = log2_parts(x.abs());
    let y1 = coarse(y);
    let low = (y - y1) * t1 + y * t2;
    let product = y1 * t1;
    sign * exp2_parts(product, low)
}

/// The binary logarithm as a sum of a coarse number and what is left.
fn log2_parts(x: f64) -> (f64, f64) {
    const L: [f64; 6] = [
        5.999_999_999_999_946_487_25e-01,
        4.285_714_285_785_501_842_52e-01,
        3.333_333_298_183_774_329_18e-01,
        2.727_281_238_085_340_064_89e-01,
        2.306_607_457_755_617_540_67e-01,
        2.069_750_178_003_384_177_84e-01,
    ];
    const BP: [f64; 2] = [1.0, 1.5];
    const DP_H: [f64; 2] = [0.0, 5.849_624_872_207_641_601_56e-01];
    const DP_L: [f64; 2] = [0.0, 1.350_039_202_129_748_971_28e-08];
    const CP: f64 = 9.617_966_939_259_755_543_29e-01;
    const CP_H: f64 = 9.617_967_009_544_372_558_59e-01;
    const CP_L: f64 = -7.028_461_650_952_758_265_16e-09;
    let (mut n, x) = if high(x) < 0x0010_0000 { (-53, x * 9_007_199_254_740_992.0) } else { (0, x) };
    n += (high(x) >> 20) as i32 - 0x3FF;
    let fraction = high(x) & 0x000F_FFFF;
    let mut word = fraction | 0x3FF0_0000;
    let k = match fraction {
        0..=0x3988E => 0,
        0x3988F..0xBB67A => 1,
        _ => {
            n += 1;
            word -= 0x0010_0000;
            0
        }
    };
    let ax = with_high(x, word);
    let u = ax - BP[k];
    let v = 1.0 / (ax + BP[k]);
    let ss = u * v;
    let s_h = coarse(ss);
    let t_h = with_high(0.0, (word >> 1 | 0x2000_0000) + 0x0008_0000 + ((k as u32) << 18));
    let t_l = ax - (t_h - BP[k]);
    let s_l = v * ((u - s_h * t_h) - s_h * t_l);
    let s2 = ss * ss;
    let r = s2 * s2 * polynomial(s2, &L) + s_l * (s_h + ss);
    let s2 = s_h * s_h;
    let t_h = coarse(3.0 + s2 + r);
    let t_l = r - ((t_h - 3.0) - s2);
    let u = s_h * t_h;
    let v = s_l * t_h + t_l * ss;
    let p_h = coarse(u + v);
    let p_l = v - (p_h - u);
    let z_h = CP_H * p_h;
    let z_l = CP_L * p_h + p_l * CP + DP_L[k];
    let t = f64::from(n);
    let t1 = coarse(((z_h + z_l) + DP_H[k]) + t);
    (t1, z_l - (((t1 - t) - DP_H[k]) - z_h))
}

/// Two to the power of a sum.
fn exp2_parts(mut p_h: f64, p_l: f64) -> f64 {
    const P: [f64; 5] = [
        1.666_666_666_666_660_190_37e-01,
        -2.777_777_777_701_559_338_42e-03,
        6.613_756_321_437_934_361_17e-05,
        -1.653_390_220_546_525_153_90e-06,
        4.138_136_797_057_238_460_39e-08,
    ];
    const LG2: f64 = 6.931_471_805_599_452_862_27e-01;
    const LG2_H: f64 = 6.931_471_824_645_996_093_75e-01;
    const LG2_L: f64 = -1.904_654_299_957_768_045_25e-09;
    const OVT: f64 = 8.008_566_259_537_294_437_2e-17;
    let z = p_l + p_h;
    if z > 1024.0 || z == 1024.0 && p_l + OVT > z - p_h {
        return f64::INFINITY;
    }
    if z < -1075.0 || z == -1075.0 && p_l <= z - p_h {
        return 0.0;
    }
    let mut n = 0;
    if z.abs() > 0.5 {
        let word = high(z) as i32;
        let exponent = |word: i32| ((word & 0x7FFF_FFFF) >> 20) - 0x3FF;
        let rounded = word.wrapping_add(0x0010_0000 >> (exponent(word) + 1));
        let k = exponent(rounded);
        p_h -= with_high(0.0, (rounded & !(0x000F_FFFF >> k)) as u32);
        n = (rounded & 0x000F_FFFF | 0x0010_0000) >> (20 - k);
        if word < 0 {
            n = -n;
        }
    }
    let t = coarse(p_l + p_h);
    let u = t * LG2_H;
    let v = (p_l - (t - p_h)) * LG2 + t * LG2_L;
    let z = u + v;
    let w = v - (z - u);
    let t = z * z;
    let t1 = z - t * polynomial(t, &P);
    // V8 subtracts in the divisor what fdlibm subtracts from the quotient.
    let r = z * t1 / ((t1 - 2.0) - (w + z * w));
    let z = 1.0 - (r - z);
    let word = (high(z) as i32).wrapping_add(n << 20);
    if word >> 20 <= 0 { libm::scalbn(z, n) } else { with_high(z, word as u32) }
}
