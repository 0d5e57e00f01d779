//! `log`, `log10` and `log1p`.

use super::{LN2_HI, LN2_LO, high, polynomial, with_high};

/// The coefficients of the polynomial of a logarithm.
const LG: [f64; 7] = [
    6.666_666_666_666_735_130e-01,
    3.999_999_999_940_941_908e-01,
    2.857_142_874_366_239_149e-01,
    2.222_219_843_214_978_396e-01,
    1.818_357_216_161_805_012e-01,
    1.531_383_769_920_937_332e-01,
    1.479_819_860_511_658_591e-01,
];

const TWO54: f64 = 18_014_398_509_481_984.0;

/// `Math.log(x)`
pub fn log(x: f64) -> f64 {
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
    let r = z * polynomial(z, &LG);
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
