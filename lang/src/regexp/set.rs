//! Sets of characters: ranges of code points, surrogates included.

/// The greatest code point.
pub(super) const LAST: u32 = 0x10_FFFF;

/// A set of characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CharSet {
    /// In order, with gaps between them; both ends are part of a range.
    ranges: Vec<(u32, u32)>,
}

impl CharSet {
    /// Creates the set of these ranges, in any order.
    #[must_use]
    pub fn new(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        let mut out: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match out.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => out.push((first, last)),
            }
        }
        Self { ranges: out }
    }

    /// Returns the set of one character.
    #[must_use]
    pub fn of(character: u32) -> Self {
        Self { ranges: vec![(character, character)] }
    }

    /// Returns the set of all characters.
    #[must_use]
    pub fn all() -> Self {
        Self { ranges: vec![(0, LAST)] }
    }

    /// Returns the ranges, in order.
    #[must_use]
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Whether it has no character.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the only character, where there is one.
    #[must_use]
    pub fn single(&self) -> Option<u32> {
        match *self.ranges.as_slice() {
            [(first, last)] if first == last => Some(first),
            _ => None,
        }
    }

    /// Whether a character is in it.
    #[must_use]
    pub fn contains(&self, character: u32) -> bool {
        let next = self.ranges.partition_point(|&(first, _)| first <= character);
        next.checked_sub(1).and_then(|index| self.ranges.get(index)).is_some_and(|&(_, last)| character <= last)
    }

    /// Returns the characters that are in one of both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::new(self.ranges.iter().chain(&other.ranges).copied().collect())
    }

    /// Returns the characters that are not in it.
    #[must_use]
    pub fn complement(&self) -> Self {
        let mut out = Vec::with_capacity(self.ranges.len() + 1);
        let mut next = 0;
        for &(first, last) in &self.ranges {
            if first > next {
                out.push((next, first - 1));
            }
            next = last + 1;
        }
        if next <= LAST {
            out.push((next, LAST));
        }
        Self { ranges: out }
    }

    /// Returns the characters that are in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut out = Vec::new();
        let (mut left, mut right) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        while let (Some(&&(a, b)), Some(&&(c, d))) = (left.peek(), right.peek()) {
            let (first, last) = (a.max(c), b.min(d));
            if first <= last {
                out.push((first, last));
            }
            if b < d {
                left.next();
            } else {
                right.next();
            }
        }
        Self { ranges: out }
    }

    /// Returns the characters that are in it and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.intersection(&other.complement())
    }
}
