//! Arithmetic on large integers, in pieces of a few milliseconds: products, quotients, powers, and texts.
//!
//! A piece is an operation of the library. Larger operations are composed of smaller ones: products by Karatsuba,
//! quotients by Burnikel and Ziegler, texts by halving them at a power of the base. Before each piece the caller is
//! asked, with its number of steps, and can stop.

use crate::value::thrown::Result;
use num_bigint::BigUint;
use num_traits::{One as _, Pow as _, Zero as _};

/// Called before each piece, with its steps.
pub type Ask<'a> = &'a mut dyn FnMut(usize) -> Result<()>;

/// Most steps of a piece: some 3 milliseconds.
pub const MAX_STEPS: usize = 1 << 16;
/// Most limbs that are converted to text at once.
pub const TEXT_LIMBS: usize = 512;

/// Size in 64-bit limbs, at least one.
fn limbs(integer: &BigUint) -> usize {
    (integer.bits() as usize).div_ceil(64).max(1)
}

/// The cost of a product in one piece: all pairs of limbs, less for large ones.
pub fn product_steps(a: usize, b: usize) -> usize {
    const LARGE: usize = 64;
    let (short, long) = (a.min(b), a.max(b));
    if short <= LARGE { short * long / 32 } else { long.saturating_mul(short.isqrt()) / 4 }
}

/// The cost of a quotient in one piece: each of its limbs times the divisor.
pub fn quotient_steps(a: usize, b: usize) -> usize {
    (a.saturating_sub(b) + 1).saturating_mul(b) / 16
}

/// The cost of converting an integer to text in one piece, or back.
pub fn text_steps(limbs: usize) -> usize {
    limbs.saturating_mul(limbs) / 32 + limbs / 4
}

/// Split at a limb: the high part and the low part.
fn split(integer: &BigUint, limb: usize) -> (BigUint, BigUint) {
    let bits = limb * 64;
    let high = integer >> bits;
    let low = integer - (&high << bits);
    (high, low)
}

/// `a * b`
pub fn product(a: &BigUint, b: &BigUint, ask: Ask<'_>) -> Result<BigUint> {
    let (a, b) = if a.bits() < b.bits() { (b, a) } else { (a, b) };
    let (long, short) = (limbs(a), limbs(b));
    let steps = product_steps(long, short);
    if steps <= MAX_STEPS {
        ask(steps)?;
        return Ok(a * b);
    }
    ask(long / 4)?;
    let half = long.div_ceil(2);
    let (high, low) = split(a, half);
    if short <= half {
        let below = product(&low, b, ask)?;
        return Ok((product(&high, b, ask)? << (half * 64)) + below);
    }
    let (other_high, other_low) = split(b, half);
    let below = product(&low, &other_low, ask)?;
    let above = product(&high, &other_high, ask)?;
    let (sum, other_sum) = (low + high, other_low + other_high);
    let mut between = product(&sum, &other_sum, ask)?;
    ask(long)?;
    between -= &below;
    between -= &above;
    let mut all = (above << (half * 64)) + between;
    all <<= half * 64;
    Ok(all + below)
}

/// `a / b` and `a % b`; `b` is not zero.
pub fn quotient(a: &BigUint, b: &BigUint, ask: Ask<'_>) -> Result<(BigUint, BigUint)> {
    ask((limbs(a) + limbs(b)) / 8)?;
    // The estimates below need a normalized divisor.
    let shift = (64 - b.bits() % 64) % 64;
    let (quotient, rest) = normal_quotient(&(a << shift), &(b << shift), ask)?;
    Ok((quotient, rest >> shift))
}

fn normal_quotient(a: &BigUint, b: &BigUint, ask: Ask<'_>) -> Result<(BigUint, BigUint)> {
    if a < b {
        return Ok((BigUint::zero(), a.clone()));
    }
    let (long, short) = (limbs(a), limbs(b));
    let steps = quotient_steps(long, short);
    if steps <= MAX_STEPS {
        ask(steps)?;
        return Ok((a / b, a % b));
    }
    ask(long / 2)?;
    let more = long - short;
    if more + 1 >= short {
        // Each half of the quotient in turn.
        let half = more.div_ceil(2);
        let (high, low) = split(a, half);
        let (above, rest) = normal_quotient(&high, b, ask)?;
        let (below, rest) = normal_quotient(&((rest << (half * 64)) + low), b, ask)?;
        return Ok(((above << (half * 64)) + below, rest));
    }
    // A short quotient is nearly that of the first limbs: at most two too large.
    let cut = short - (more + 1);
    let ((high, low), (other_high, other_low)) = (split(a, cut), split(b, cut));
    let (mut quotient, rest) = normal_quotient(&high, &other_high, ask)?;
    let taken = product(&quotient, &other_low, ask)?;
    let mut rest = (rest << (cut * 64)) + low;
    while rest < taken {
        quotient -= 1_u8;
        rest += b;
    }
    Ok((quotient, rest - taken))
}

/// `base ** exponent`
pub fn power(base: &BigUint, exponent: u32, ask: Ask<'_>) -> Result<BigUint> {
    let mut all = BigUint::one();
    for bit in (0..u32::BITS - exponent.leading_zeros()).rev() {
        all = product(&all, &all, ask)?;
        if exponent >> bit & 1 == 1 {
            all = product(&all, base, ask)?;
        }
    }
    Ok(all)
}

/// How many digits are handled at once.
fn digits_at_once(radix: u32) -> usize {
    TEXT_LIMBS * 64 / (radix.ilog2() as usize + 1)
}

/// Append the digits of an integer.
pub fn write(integer: &BigUint, radix: u32, out: &mut Vec<u8>, ask: Ask<'_>) -> Result<()> {
    let mut powers = vec![BigUint::from(radix).pow(digits_at_once(radix))];
    while let Some(last) = powers.last()
        && last.bits() * 2 <= integer.bits() + 1
    {
        powers.push(product(last, last, ask)?);
    }
    write_below(integer, radix, &powers, false, out, ask)
}

/// The same for one that is less than the square of the last power; with or without leading zeros.
fn write_below(
    integer: &BigUint,
    radix: u32,
    powers: &[BigUint],
    is_padded: bool,
    out: &mut Vec<u8>,
    ask: Ask<'_>,
) -> Result<()> {
    let Some((power, smaller)) = powers.split_last() else {
        ask(text_steps(limbs(integer)))?;
        let text = integer.to_str_radix(radix);
        if is_padded {
            out.resize(out.len() + digits_at_once(radix) - text.len(), b'0');
        }
        out.extend_from_slice(text.as_bytes());
        return Ok(());
    };
    if !is_padded && integer < power {
        return write_below(integer, radix, smaller, false, out, ask);
    }
    let (high, low) = quotient(integer, power, ask)?;
    write_below(&high, radix, smaller, is_padded, out, ask)?;
    write_below(&low, radix, smaller, true, out, ask)
}

/// The integer of a text of digits, or `None`.
pub fn read(digits: &[u8], radix: u32, ask: Ask<'_>) -> Result<Option<BigUint>> {
    let most = digits_at_once(radix);
    // bounded: a limb for every 8 digits at least, which the caller holds
    let mut parts = Vec::new();
    for piece in digits.rchunks(most) {
        ask(text_steps(TEXT_LIMBS.min(piece.len() / 8 + 1)))?;
        let Some(part) = BigUint::parse_bytes(piece, radix) else { return Ok(None) };
        parts.push(part);
    }
    let mut power = BigUint::from(radix).pow(most);
    while parts.len() > 1 {
        let mut joined = Vec::with_capacity(parts.len().div_ceil(2)); // bounded: half of what is there
        let mut rest = parts.into_iter();
        while let Some(low) = rest.next() {
            joined.push(match rest.next() {
                Some(high) => product(&high, &power, ask)? + low,
                None => low,
            });
        }
        parts = joined;
        if parts.len() > 1 {
            power = product(&power, &power, ask)?;
        }
    }
    Ok(parts.pop())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An integer of so many limbs whose bits look random, are all set, or nearly none.
    fn integer(limbs: usize, kind: u64) -> BigUint {
        let mut seed = kind.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let bits = (0..limbs * 2)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                match kind % 4 {
                    0 => u32::MAX,
                    1 => u32::from(seed >> 33 & 255 == 0),
                    _ => (seed >> 32) as u32,
                }
            })
            .collect();
        BigUint::new(bits)
    }

    const SIZES: [usize; 8] = [1, 63, 600, 1_100, 2_500, 4_100, 9_000, 13_001];

    #[test]
    fn products_quotients_and_texts_are_those_of_the_library() {
        let mut most = 0;
        let ask: Ask<'_> = &mut |steps| {
            most = most.max(steps);
            Ok(())
        };
        for (index, &size) in SIZES.iter().enumerate() {
            for (other_index, &other_size) in SIZES.iter().enumerate() {
                let kind = (index * 8 + other_index) as u64;
                let (a, b) = (integer(size, kind), integer(other_size, kind / 3) + 1_u8);
                let all = &a * &b;
                assert!(product(&a, &b, ask).is_ok_and(|made| made == all), "{size} × {other_size}");
                assert!(quotient(&a, &b, ask).is_ok_and(|made| made == (&a / &b, &a % &b)), "{size} / {other_size}");
                let rest = &b - 1_u8;
                assert!(
                    quotient(&(&all + &rest), &b, ask).is_ok_and(|made| made == (a.clone(), rest)),
                    "{size} {kind}"
                );
            }
        }
        for size in [1, 500, 1_100, 5_000] {
            for (kind, radix) in [(2, 10), (0, 10), (1, 3), (2, 36), (3, 7)] {
                let number = integer(size, kind) + 1_u8;
                let text = number.to_str_radix(radix);
                let mut made = Vec::new();
                assert!(write(&number, radix, &mut made, ask).is_ok() && made == text.as_bytes(), "{size} {radix}");
                assert!(read(text.as_bytes(), radix, ask).is_ok_and(|read| read == Some(number)), "{size} {radix}");
            }
        }
        for exponent in [0, 1, 2, 77, 40_000] {
            let expected = BigUint::from(12_345_u32).pow(exponent);
            assert!(power(&BigUint::from(12_345_u32), exponent, ask).is_ok_and(|made| made == expected), "{exponent}");
        }
        let ten = BigUint::from(10_u8).pow(100_000_u32);
        let (mut made, mut zeros) = (Vec::new(), vec![b'1']);
        zeros.resize(100_001, b'0');
        assert!(write(&ten, 10, &mut made, ask).is_ok() && made == zeros);
        assert!(read(b"12x", 10, ask).is_ok_and(|read| read.is_none()));
        assert!(most <= MAX_STEPS * 2, "a piece of {most} steps");
    }
}
