//! Numbers that follow from a seed.

#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        // The first numbers of neighbouring seeds are alike.
        for _ in 0..8 {
            random.below(2);
        }
        random
    }

    /// Returns a number below `below`.
    pub fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below.max(1)
    }

    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    pub fn is_one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// Returns a generator that does not depend on how this one is used.
    pub fn part(&self, number: u64) -> Self {
        Self::new(self.0 ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93))
    }

    pub async fn sleep(&mut self, least: u64, most: u64) {
        let ms = self.between(least, most);
        tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
    }
}
