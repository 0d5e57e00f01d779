//! Memory that grows with data of a script: counted before it is allocated, given back when it is dropped.

use super::Meter;
use crate::value::thrown::Result;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A buffer of no more bytes than this is not counted.
pub const SMALL: usize = 1 << 10;
/// Below this a buffer doubles; a larger one grows by half, to waste less.
pub const LARGE: usize = 64 << 10;

/// A list of more bytes reserves address space for its largest possible size.
const HUGE: usize = 2 << 20;
/// The most address space that is reserved so.
const MAX_ADDRESS_SPACE: usize = 1 << 30;

/// Gives access to the meter of a run: its [`Vm`], its [`Heap`], or the [`Meter`] itself.
pub trait Metered {
    /// The meter.
    fn meter(&self) -> &Meter;
}

impl Metered for Meter {
    fn meter(&self) -> &Meter {
        self
    }
}

/// Bytes of temporary memory that count as used until this is dropped.
#[derive(Debug, Default)]
pub struct Hold {
    account: Option<Arc<AtomicUsize>>,
    bytes: usize,
}

impl Hold {
    /// Holds nothing.
    pub const NONE: Self = Self { account: None, bytes: 0 };

    /// Hold so many more bytes; an error, without effect, where they do not fit.
    pub fn grow(&mut self, owner: &impl Metered, more: usize) -> Result<()> {
        let meter = owner.meter();
        meter.check(more)?;
        let account = self.account.get_or_insert_with(|| Arc::clone(meter.temporary()));
        account.fetch_add(more, Ordering::Relaxed);
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            account.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// A list that grows with data of a script: counted before it is allocated, given back when it is dropped.
#[derive(Debug)]
pub struct Buffer<T> {
    items: Vec<T>,
    /// How many items are counted. A long list has more capacity: address space without memory.
    room: usize,
    hold: Hold,
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Buffer<T> {
    /// An empty one, without memory.
    pub const fn new() -> Self {
        Self { items: Vec::new(), room: 0, hold: Hold::NONE }
    }

    /// An empty one with room for so many items.
    pub fn with_capacity(owner: &impl Metered, items: usize) -> Result<Self> {
        let mut buffer = Self::new();
        buffer.room(owner, items)?;
        Ok(buffer)
    }

    /// A list that was made elsewhere, with the hold that counts it.
    pub fn from_parts(items: Vec<T>, hold: Hold) -> Self {
        Self { room: items.capacity(), items, hold }
    }

    /// Make room for exactly so many more, where there is less.
    pub fn room(&mut self, owner: &impl Metered, more: usize) -> Result<()> {
        let needed = self.items.len().saturating_add(more);
        if needed > self.room { self.resize(owner, needed) } else { Ok(()) }
    }

    /// Append an item.
    #[inline]
    pub fn push(&mut self, owner: &impl Metered, item: T) -> Result<()> {
        if self.items.len() == self.room {
            self.grow(owner, 1)?;
        }
        self.items.push(item);
        Ok(())
    }

    /// Append items.
    #[inline]
    pub fn extend(&mut self, owner: &impl Metered, items: impl IntoIterator<Item = T>) -> Result<()> {
        items.into_iter().try_for_each(|item| self.push(owner, item))
    }

    /// Make room for so many more, where there is less, and for further ones.
    #[inline]
    pub fn make_room(&mut self, owner: &impl Metered, more: usize) -> Result<()> {
        if self.room - self.items.len() < more { self.grow(owner, more) } else { Ok(()) }
    }

    /// Append copies of items.
    #[inline]
    pub fn extend_from_slice(&mut self, owner: &impl Metered, items: &[T]) -> Result<()>
    where
        T: Copy,
    {
        self.make_room(owner, items.len())?;
        self.items.extend_from_slice(items);
        Ok(())
    }

    /// Let `append` add up to so many items to the underlying list.
    #[inline]
    pub fn write<R>(&mut self, owner: &impl Metered, most: usize, append: impl FnOnce(&mut Vec<T>) -> R) -> Result<R> {
        self.make_room(owner, most)?;
        let result = append(&mut self.items);
        debug_assert!(self.items.len() <= self.room, "no more than it said");
        Ok(result)
    }

    /// Whether the next item needs more memory.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.items.len() == self.room
    }

    /// Make room for further items.
    pub fn lengthen(&mut self, owner: &impl Metered) -> Result<()> {
        self.grow(owner, 1)
    }

    /// Keep only the first items.
    #[inline]
    pub fn truncate(&mut self, length: usize) {
        self.items.truncate(length);
    }

    /// Remove the last item.
    pub fn pop(&mut self) -> Option<T> {
        self.items.pop()
    }

    /// The list, no longer counted: the caller counts it at once.
    #[inline]
    pub fn into_vec(mut self) -> Vec<T> {
        let slack = self.items.capacity() - self.items.len();
        if slack * size_of::<T>() > LARGE {
            self.items.shrink_to_fit();
        }
        self.items
    }

    #[cold]
    fn grow(&mut self, owner: &impl Metered, more: usize) -> Result<()> {
        let capacity = self.room;
        let needed = self.items.len().saturating_add(more);
        let size = size_of::<T>().max(1);
        let some = match capacity * size {
            0..LARGE => capacity * 2,
            bytes => capacity + owner.meter().spare(bytes / 2) / size,
        };
        if needed < some && self.resize(owner, some).is_ok() {
            return Ok(());
        }
        self.resize(owner, needed.max(8))
    }

    fn resize(&mut self, owner: &impl Metered, capacity: usize) -> Result<()> {
        let bytes = capacity.saturating_mul(size_of::<T>().max(1));
        if bytes > SMALL {
            self.hold.grow(owner, bytes.saturating_sub(self.hold.bytes))?;
        }
        if capacity > self.items.capacity() && !(bytes > HUGE && self.reserve_all(owner.meter(), capacity)) {
            self.items.reserve_exact(capacity - self.items.len());
        }
        self.room = capacity;
        Ok(())
    }

    /// Reserve address space for all that a run may hold, so that a large list grows without a second block beside it.
    /// Memory is committed, and counted, when it is written to. Gives whether that succeeded.
    #[cold]
    fn reserve_all(&mut self, meter: &Meter, capacity: usize) -> bool {
        let all = meter.most_bytes().min(MAX_ADDRESS_SPACE) / size_of::<T>().max(1);
        capacity < all && self.items.try_reserve_exact(all - self.items.len()).is_ok()
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> DerefMut for Buffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

/// The items; all of them stay counted until the iterator is dropped.
impl<T> IntoIterator for Buffer<T> {
    type Item = T;
    type IntoIter = Items<T>;
    fn into_iter(self) -> Items<T> {
        Items { items: self.items.into_iter(), _hold: self.hold }
    }
}

/// The items of a [`Buffer`] one by one.
#[derive(Debug)]
pub struct Items<T> {
    items: std::vec::IntoIter<T>,
    _hold: Hold,
}

impl<T> Iterator for Items<T> {
    type Item = T;
    #[inline]
    fn next(&mut self) -> Option<T> {
        self.items.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }
}

impl<T> DoubleEndedIterator for Items<T> {
    #[inline]
    fn next_back(&mut self) -> Option<T> {
        self.items.next_back()
    }
}

impl<T> ExactSizeIterator for Items<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::limits::{Policy, Preset};

    /// An account with a limit of 10,000 bytes.
    fn meter() -> Meter {
        let mut limits = Policy::preset(Preset::Experimental).limits;
        limits.max_memory_bytes = 10_000;
        Meter::new(limits, crate::meter::timer::Timer::new(Arc::new(crate::SystemClock), None))
    }

    #[test]
    fn a_buffer_counts_while_it_is_there() {
        let meter = meter();
        let mut buffer = Buffer::new();
        assert!(buffer.extend(&meter, 0..1000_u32).is_ok());
        assert!(meter.temporary_bytes() >= 4000, "{}", meter.temporary_bytes());
        let mut second = Buffer::<u8>::new();
        assert!(second.room(&meter, 5_000).is_ok());
        assert!(meter.temporary_bytes() >= 9000);
        drop(second);
        assert!(meter.temporary_bytes() < 9000);
        assert_eq!(buffer.into_vec().len(), 1000);
        assert_eq!(meter.temporary_bytes(), 0);
    }

    #[test]
    fn a_buffer_stops_at_the_limit_and_not_before() {
        let meter = meter();
        let mut buffer = Buffer::new();
        let fits = (0..20_000_u32).take_while(|_| buffer.push(&meter, 1_u8).is_ok()).count();
        assert!((10_000..=12_000).contains(&fits), "{fits}");
        assert!(meter.in_use() <= meter.most_bytes());
        drop(buffer);
        assert_eq!(meter.in_use(), 0);
    }

    #[test]
    fn a_refused_hold_holds_what_it_held() {
        let meter = meter();
        let mut hold = Hold::NONE;
        assert!(hold.grow(&meter, 8_000).is_ok());
        assert!(hold.grow(&meter, 8_000).is_err());
        assert_eq!(meter.temporary_bytes(), 8_000);
    }
}
