//! Orders in which a client answers calls.

/// An order of answers.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// All pending calls, in their order.
    AllAtOnce,
    /// One call at a time, the oldest first.
    OneByOne,
    /// One call at a time, the newest first.
    LastFirst,
    /// All pending calls, the newest first.
    AllBackwards,
    /// A random number of calls in a random order, determined by this state.
    Random(u64),
}

impl Schedule {
    /// Answers all pending calls, in their order.
    pub fn all_at_once() -> Self {
        Self::AllAtOnce
    }

    /// Answers random calls.
    pub fn random(seed: u64) -> Self {
        Self::Random(seed)
    }

    /// Returns all orders, with a hundred random ones.
    pub fn many() -> impl Iterator<Item = Self> {
        [Self::AllAtOnce, Self::OneByOne, Self::LastFirst, Self::AllBackwards]
            .into_iter()
            .chain((0..100).map(Self::Random))
    }

    /// Removes and returns the calls that are answered next: at least one if there are any.
    pub fn pick<T>(&mut self, open: &mut Vec<T>) -> Vec<T> {
        match self {
            Self::AllAtOnce => std::mem::take(open),
            Self::AllBackwards => std::mem::take(open).into_iter().rev().collect(),
            Self::OneByOne => open.drain(..open.len().min(1)).collect(),
            Self::LastFirst => open.pop().into_iter().collect(),
            Self::Random(state) => {
                let mut next = |bound: usize| {
                    // splitmix64
                    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                    let mut word = *state;
                    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                    usize::try_from((word ^ (word >> 31)) % bound as u64).unwrap_or_default()
                };
                let count = if open.is_empty() { 0 } else { 1 + next(open.len()) };
                (0..count).map(|_| open.remove(next(open.len()))).collect()
            }
        }
    }
}
