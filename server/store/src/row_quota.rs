//! A maximum number of rows that is kept without counting them for each new one: a count takes a time that grows with it.

use std::sync::atomic::{AtomicU64, Ordering};

/// A process adds this part of the rows for which there is room before it counts them again: so many processes can do so at
/// once without exceeding the maximum.
const PART: u64 = 1_024;

/// How many rows this process may add before they have to be counted.
#[derive(Debug, Default)]
pub struct RowQuota(AtomicU64);

impl RowQuota {
    /// Takes room for a row. `false`: the rows have to be counted.
    pub fn take(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// Notes how many rows there are. Returns whether there is room for another one.
    pub fn counted(&self, rows: u64, max: u64) -> bool {
        let left = max.saturating_sub(rows);
        self.0.store(left / PART, Ordering::Relaxed);
        left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_again_before_there_can_be_too_many() {
        let quota = RowQuota::default();
        let (max, mut rows, mut counts) = (5_000, 0, 0);
        while quota.take() || {
            counts += 1;
            quota.counted(rows, max)
        } {
            rows += 1;
        }
        assert_eq!(rows, 5_000);
        // Near the maximum they are counted for each row, before that for each few.
        assert!((1_024..max / 2).contains(&counts), "{counts}");
    }
}
