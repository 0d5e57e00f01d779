//! In which order, and how many at a time, a client answers.

/// An order of answers.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// All that wait, in the order they were made.
    AllAtOnce,
    /// One at a time, the first first.
    OneByOne,
    /// One at a time, the last first.
    LastFirst,
    /// All that wait, the last first.
    AllBackwards,
    /// Some of them in some order, which follow from this state.
    Random(u64),
}

impl Schedule {
    /// All together.
    pub fn all_at_once() -> Self {
        Self::AllAtOnce
    }

    /// Random choices from a seed.
    pub fn random(seed: u64) -> Self {
        Self::Random(seed)
    }

    /// All orders, with a hundred random ones.
    pub fn many() -> impl Iterator<Item = Self> {
        [Self::AllAtOnce, Self::OneByOne, Self::LastFirst, Self::AllBackwards]
            .into_iter()
            .chain((0..100).map(Self::Random))
    }

    /// Take what is answered now: at least one of those that wait, if any do.
    pub fn pick<T>(&mut self, open: &mut Vec<T>) -> Vec<T> {
        match self {
            Self::AllAtOnce => std::mem::take(open),
            Self::AllBackwards => std::mem::take(open).into_iter().rev().collect(),
            Self::OneByOne => open.drain(..open.len().min(1)).collect(),
            Self::LastFirst => open.pop().into_iter().collect(),
            Self::Random(state) => {
                let mut next = |most: usize| {
                    // splitmix64
                    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                    let mut word = *state;
                    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                    usize::try_from((word ^ (word >> 31)) % most as u64).unwrap_or_default()
                };
                let count = if open.is_empty() { 0 } else { 1 + next(open.len()) };
                (0..count).map(|_| open.remove(next(open.len()))).collect()
            }
        }
    }
}
