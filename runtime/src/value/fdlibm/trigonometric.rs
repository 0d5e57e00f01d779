//! `atan2`, `cos` and `sin`.

use super::{high, polynomial, with_high};
use std::f64::consts::FRAC_PI_2;

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
