//! Random numbers: xorshift128+, as V8's, seeded by the host. The same seed gives the same numbers.

/// A random generator.
pub struct Random([u64; 2]);

impl Random {
    /// A generator whose two words of state come from a seed by splitmix64.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self([(); 2].map(|()| {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut word = state;
            word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            (word ^ (word >> 31)) | 1
        }))
    }

    /// The next number in [0, 1).
    pub fn next(&mut self) -> f64 {
        let [mut a, b] = self.0;
        a ^= a << 23;
        a ^= a >> 17;
        a ^= b ^ (b >> 26);
        self.0 = [b, a];
        (a.wrapping_add(b) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
