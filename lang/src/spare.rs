//! Memory that a thread uses again for its next script.
//!
//! Allocating it anew takes longer than filling it. Besides, glibc tidies its lists of small freed blocks whenever it
//! gives a block of a kilobyte or more. The code of the last script has left many of them.

use std::cell::Cell;
use std::thread::LocalKey;

/// Most bytes of a list that is kept.
const MAX_BYTES: usize = 64 << 10;

/// Returns the memory of a list, as an empty list of items of the same size and alignment.
pub(crate) fn emptied<A, B>(mut list: Vec<A>) -> Vec<B> {
    list.clear();
    // Collecting uses the memory of what is collected.
    list.into_iter().filter_map(|_| None).collect()
}

/// Returns the list that a thread keeps, as an empty list of other items.
pub(crate) fn take<A: 'static, B>(spare: &'static LocalKey<Cell<Vec<A>>>) -> Vec<B> {
    // A thread that ends keeps nothing.
    emptied(spare.try_with(Cell::take).unwrap_or_default())
}

/// Keeps a list that is not needed any more.
pub(crate) fn put_back<A: 'static, B>(spare: &'static LocalKey<Cell<Vec<A>>>, list: Vec<B>) {
    if list.capacity() * size_of::<B>() <= MAX_BYTES {
        _ = spare.try_with(|spare| spare.set(emptied(list)));
    }
}

#[cfg(test)]
mod tests {
    use super::emptied;

    #[test]
    fn the_memory_is_used_again() {
        let list: Vec<(u32, u64, u32)> = Vec::with_capacity(100);
        let memory = list.as_ptr() as usize;
        let other: Vec<[u64; 2]> = emptied(list);
        assert_eq!((other.as_ptr() as usize, other.capacity(), other.len()), (memory, 100, 0));
    }
}
