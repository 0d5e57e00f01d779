//! Memory of scripts that were dropped, which a thread uses again for its next ones.
//!
//! glibc tidies its lists of small freed blocks whenever it gives a block of a kilobyte or more. The code of a dropped
//! script leaves many of them. That takes longer than all else that is done for the block. A thread keeps at most
//! [`MAX_LISTS`] lists of a kind, of [`MAX_BYTES`] each.

use std::cell::Cell;
use std::thread::LocalKey;

/// Smaller lists are allocated as they are needed.
const LARGE: usize = 1000;
/// Most bytes of a list that is kept.
const MAX_BYTES: usize = 64 << 10;
/// Most lists of a kind that are kept.
const MAX_LISTS: usize = 6;

/// The lists that a thread keeps: all are empty.
pub type Spares<T> = Cell<Vec<Vec<T>>>;

/// An empty list for so many items: of exactly this capacity, or at most a third larger, so that it may be used again.
pub fn list<T>(spares: &'static LocalKey<Spares<T>>, len: usize) -> Vec<T> {
    let capacity = capacity::<T>(len);
    // What is not kept is as large as it has to be.
    if !(LARGE..=MAX_BYTES).contains(&(capacity * size_of::<T>())) {
        return Vec::with_capacity(len);
    }
    // A thread that ends keeps nothing.
    let found = spares.try_with(|spares| {
        let mut lists = spares.take();
        let found = lists.iter().position(|list| list.capacity() == capacity).map(|at| lists.swap_remove(at));
        spares.set(lists);
        found
    });
    found.ok().flatten().unwrap_or_else(|| Vec::with_capacity(capacity))
}

/// Keep the memory of a list that is not needed any more.
pub fn put_back<T>(spares: &'static LocalKey<Spares<T>>, mut list: Vec<T>) {
    let bytes = list.capacity() * size_of::<T>();
    if !(LARGE..=MAX_BYTES).contains(&bytes) {
        return;
    }
    list.clear();
    _ = spares.try_with(|spares| {
        let mut lists = spares.take();
        if lists.len() == MAX_LISTS {
            lists.remove(0);
        }
        lists.push(list);
        spares.set(lists);
    });
}

/// The capacity of a list of so many items. Those of large ones are few different ones.
fn capacity<T>(len: usize) -> usize {
    let bytes = len * size_of::<T>();
    if bytes < LARGE {
        return len;
    }
    let power = bytes.next_power_of_two();
    let classes = [power / 8 * 5, power / 4 * 3, power / 8 * 7, power];
    classes.into_iter().find(|&class| class >= bytes).unwrap_or(bytes).div_ceil(size_of::<T>())
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static SPARES: Spares<u64> = const { Cell::new(Vec::new()) };
    }

    #[test]
    fn large_lists_are_used_again() {
        let first = list(&SPARES, 300);
        let memory = first.as_ptr() as usize;
        assert!((300..400).contains(&first.capacity()));
        put_back(&SPARES, first);
        let other = list(&SPARES, 10_000);
        assert_ne!(other.as_ptr() as usize, memory);
        let again = list(&SPARES, 310);
        assert_eq!((again.as_ptr() as usize, again.len()), (memory, 0));
        assert_eq!((list(&SPARES, 9).capacity(), list(&SPARES, 10_001).capacity()), (9, 10_001));
    }

    #[test]
    fn few_lists_are_kept_and_no_small_ones() {
        for len in [10, 200, 300, 400, 500, 600, 700, 800, 900, 100_000] {
            put_back(&SPARES, Vec::with_capacity(len));
        }
        let kept = SPARES.take();
        assert!(kept.iter().map(Vec::capacity).eq([400, 500, 600, 700, 800, 900]));
    }

    #[test]
    fn capacities_are_at_most_a_third_larger() {
        for len in 1..3000 {
            let capacity = capacity::<[u8; 40]>(len);
            assert!(capacity >= len && capacity * 3 <= len * 4 + 3, "{len} {capacity}");
        }
    }
}
