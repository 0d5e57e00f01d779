//! Powers, the exponential function and the cube root.

use super::{LN2_HI, LN2_LO, coarse, high, polynomial, with_high};
use std::f64::consts::E;

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
