//! Bytes that allocations cost.

/// The cost of an allocation of so many bytes, with the allocator's overhead; its smallest block has 32 bytes.
pub const fn block(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..24 => 32,
        more => (more + 8).next_multiple_of(16),
    }
}

/// The cost of an entry of a hash table, which doubles when seven eighths are used: while it does, there are three
/// places for each entry, with a byte beside each.
pub const fn hash_cost<T>() -> usize {
    (size_of::<T>() + 1) * 24 / 7
}

/// The cost of the indices of a hash table that has room for so many entries.
pub const fn index_cost<T>(capacity: usize) -> usize {
    match capacity {
        0 => 0,
        _ => {
            let places = (capacity * 8).div_ceil(7).next_power_of_two();
            block(places * (size_of::<T>() + 1) + 16)
        }
    }
}

/// The average cost of an entry of a slab, with its spare capacity.
pub const fn slab_cost<T>() -> usize {
    size_of::<T>() * 5 / 4
}
