//! Metered access for built-in functions: reading data of a script and growing memory, both charged before they happen.
//!
//! **Reading.** A string, a BigInt, an array, a map or an object may be as large as the memory of the run. A built-in
//! reads one by a method of [`Vm`] whose name begins with `charged_`: it charges fuel in proportion *before* it gives
//! the data, so the limits of time and steps are checked before the work.
//! `Heap::bytes`, `Heap::items` and the like charge nothing: they are for the interpreter itself, and for built-ins
//! that have charged otherwise. The test in `guard.rs` refuses them in built-ins unless a comment gives the reason.
//!
//! **Growing.** What grows with data of a script grows in a [`Buffer`]: it counts before it allocates, and stops at
//! the limit. When it becomes a string or an array ([`Vm::string_of`], [`Vm::array_of`]) its memory is handed over;
//! when it is dropped it is given back at once. Memory of another form, whose size is known before, is counted by a
//! [`Hold`] beside it ([`Vm::hold`]). What is alive, garbage, and what is held never pass [`Meter::most_bytes`].

use crate::heap::Heap;
use crate::meter::Meter;
use crate::property::PropertyKey;
use crate::thrown::Result;
use crate::value::{Kind, Value};
use crate::vm::Vm;
use crate::wtf8::{has_split_pair, join_pairs, push_wtf8, units, wtf8_pieces};
use num_bigint::BigInt;
use std::borrow::Cow;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

mod account;
#[cfg(test)]
mod guard;

pub use account::Account;

/// Bytes that are scanned in about the time of one statement.
pub const BYTES_A_STEP: usize = 64;
/// Bytes or code units that are translated from UTF-8 to UTF-16, or back, in that time.
const TRANSLATED_A_STEP: usize = 16;
/// How many of them are translated between two charges.
const PIECE: usize = 32 << 10;
/// How many bytes or items are copied between two charges.
const COPIED: usize = 128 << 10;
/// The first byte of a surrogate in WTF-8, and of other characters.
const SURROGATE: u8 = 0xED;
/// A buffer of no more bytes than this is not counted.
const SMALL: usize = 1 << 10;
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

impl Metered for Heap {
    fn meter(&self) -> &Meter {
        &self.meter
    }
}

impl Metered for Vm {
    fn meter(&self) -> &Meter {
        &self.heap.meter
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

    /// Release all bytes early.
    pub fn release(&mut self) {
        *self = Self::NONE;
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

impl Vm {
    /// Charge for a scan of so many bytes.
    #[inline]
    pub fn charge_bytes(&mut self, bytes: usize) -> Result<()> {
        self.work(1 + bytes / BYTES_A_STEP)
    }

    /// The bytes of a string in WTF-8, charged for: one step for every 64.
    pub fn charged_bytes(&mut self, string: Value) -> Result<&[u8]> {
        self.charge_bytes(self.heap.str(string).bytes as usize)?;
        Ok(self.heap.bytes(string))
    }

    /// The UTF-16 code units of a string, charged and counted in pieces the first time, and kept for the next one.
    pub fn charged_utf16(&mut self, string: Value) -> Result<&[u16]> {
        if !self.heap.has_utf16(string) {
            let units = self.charged_utf16_copy(string)?;
            self.heap.keep_utf16(string, units.into_vec());
        }
        Ok(self.heap.known_utf16(string))
    }

    /// A copy of these, charged and counted in pieces.
    pub fn charged_utf16_copy(&mut self, string: Value) -> Result<Buffer<u16>> {
        let mut out = Buffer::with_capacity(self, self.heap.str(string).units as usize)?;
        let (texts, mut account) = self.texts();
        for piece in wtf8_pieces(texts.bytes(string), PIECE) {
            account.work(1 + piece.len() / TRANSLATED_A_STEP)?;
            out.write(&*account.meter, units(piece), |out| push_wtf8(piece, out))?;
        }
        Ok(out)
    }

    /// The code unit at a position of a string, if there is one.
    pub fn code_unit(&mut self, string: Value, index: usize) -> Result<Option<u16>> {
        if self.heap.str(string).is_ascii() {
            return Ok(self.heap.bytes(string).get(index).map(|&byte| u16::from(byte)));
        }
        Ok(self.charged_utf16(string)?.get(index).copied())
    }

    /// A copy of these, charged and counted.
    pub fn charged_copy(&mut self, string: Value) -> Result<Buffer<u8>> {
        let mut copy = Buffer::new();
        self.charged_append(string, &mut copy)?;
        Ok(copy)
    }

    /// Append the bytes of a string, charged and counted.
    pub fn charged_append(&mut self, string: Value, out: &mut Buffer<u8>) -> Result<()> {
        let bytes = self.heap.str(string).bytes as usize;
        if bytes > COPIED {
            out.make_room(self, bytes)?;
        }
        let mut from = 0;
        loop {
            let to = bytes.min(from + COPIED);
            self.charge_bytes(to - from)?;
            out.extend_from_slice(&self.heap, &self.heap.bytes(string)[from..to])?;
            if to == bytes {
                return Ok(());
            }
            from = to;
        }
    }

    /// The text of a string, charged for; lone surrogates become U+FFFD. Where there are such it is a copy, for
    /// which room is asked before.
    pub fn charged_text(&mut self, string: Value) -> Result<Cow<'_, str>> {
        let header = self.heap.str(string);
        self.charge_bytes(header.bytes as usize)?;
        if !header.is_ascii() && std::str::from_utf8(self.heap.bytes(string)).is_err() {
            self.reserve(header.bytes as usize)?;
        }
        Ok(self.heap.text(string))
    }

    /// A BigInt, charged for: one step for every 512 bits. Work beyond one pass over the digits is the caller's to
    /// charge.
    pub fn charged_bigint(&mut self, bigint: Value) -> Result<&BigInt> {
        let bits = self.heap.bigints[bigint.index()].bits();
        self.work(1 + usize::try_from(bits / 512).unwrap_or(usize::MAX))?;
        Ok(&self.heap.bigints[bigint.index()])
    }

    /// The items of an array, charged for: one step for every 8. Work beyond reading or copying them is the caller's
    /// to charge.
    #[inline]
    pub fn charged_items(&mut self, array: Value) -> Result<&[Value]> {
        self.densify(array)?;
        self.work(self.heap.items(array).len() / 8)?;
        Ok(self.heap.items(array))
    }

    /// A copy of these, charged and counted.
    pub fn charged_items_copy(&mut self, array: Value) -> Result<Buffer<Value>> {
        let mut copy = Buffer::new();
        self.charged_append_items(array, &mut copy)?;
        Ok(copy)
    }

    /// Append the items of an array, charged and counted.
    pub fn charged_append_items(&mut self, array: Value, out: &mut Buffer<Value>) -> Result<()> {
        self.densify(array)?;
        let items = self.heap.items(array).len();
        if items > COPIED {
            out.make_room(self, items)?;
        }
        for from in (0..items).step_by(COPIED) {
            let to = items.min(from + COPIED);
            self.work((to - from) / 8)?;
            out.extend_from_slice(&self.heap, &self.heap.items(array)[from..to])?;
        }
        Ok(())
    }

    /// The items of a sparse array in a range of indices, without its holes, charged and counted: one step for each.
    pub fn charged_sparse_items(&mut self, array: Value, range: Range<usize>) -> Result<Buffer<(u32, Value)>> {
        let count = self.heap.sparse_count(array);
        self.work(1 + count)?;
        let mut copy = Buffer::with_capacity(self, count)?;
        copy.extend(&self.heap, self.heap.sparse_items(array, range))?;
        Ok(copy)
    }

    /// Make an array dense if it is sparse, for what reads all of its items and holes; charged and counted.
    #[inline]
    pub fn densify(&mut self, array: Value) -> Result<()> {
        if self.heap.is_sparse(array) { self.densified(array) } else { Ok(()) }
    }

    #[cold]
    fn densified(&mut self, array: Value) -> Result<()> {
        let length = self.heap.length(array);
        self.reserve(length.saturating_mul(size_of::<Value>()))?;
        self.work(length / 8 + self.heap.sparse_count(array))?;
        self.heap.make_dense(array);
        Ok(())
    }

    /// The bytes of a `Uint8Array` or an `ArrayBuffer`, charged for: one step for every 64.
    pub fn charged_view(&mut self, value: Value) -> Result<&[u8]> {
        self.charge_bytes(self.heap.view_bytes(value).len())?;
        Ok(self.heap.view_bytes(value))
    }

    /// A copy of a part of these, charged and counted.
    pub fn charged_view_copy(&mut self, value: Value, range: Range<usize>) -> Result<Buffer<u8>> {
        self.charge_bytes(range.len())?;
        let mut copy = Buffer::with_capacity(self, range.len())?;
        copy.extend_from_slice(&self.heap, self.heap.view_bytes(value).get(range).unwrap_or_default())?;
        Ok(copy)
    }

    /// So many zeros, charged and counted.
    pub fn zeros(&mut self, length: usize) -> Result<Buffer<u8>> {
        self.charge_bytes(length)?;
        let hold = self.hold(length)?;
        Ok(Buffer::from_parts(vec![0; length], hold))
    }

    /// A new `Uint8Array` that takes over the bytes of a buffer.
    pub fn bytes_of(&mut self, bytes: Buffer<u8>) -> Value {
        self.heap.new_bytes(bytes.into_vec())
    }

    /// The entries of a `Map` or `Set`, charged and counted: one step for every 8, removed ones included. In a `Set` keys
    /// are the values.
    pub fn charged_entries(&mut self, map: Value) -> Result<Buffer<(Value, Value)>> {
        let data = &self.heap.maps[map.index()];
        let (length, entries) = (data.len(), data.entry_count());
        self.work(1 + entries / 8)?;
        let mut copy = Buffer::with_capacity(&self.heap, length)?;
        copy.extend(&self.heap, self.heap.maps[map.index()].entries())?;
        Ok(copy)
    }

    /// The own property keys of a value, in their order, charged and counted: one step for each. The enumerable ones,
    /// or `all`.
    pub fn charged_keys(&mut self, value: Value, all: bool) -> Result<Buffer<PropertyKey>> {
        let (count, dense) = (self.own_count(value), self.dense_count(value));
        self.work(1 + count - dense)?;
        let hold = self.hold(count.saturating_mul(2 * size_of::<PropertyKey>()))?;
        let mut keys = Vec::with_capacity(count);
        for from in (0..dense).step_by(PIECE) {
            let to = dense.min(from + PIECE);
            self.work(to - from)?;
            let indices = from as u32..to as u32;
            if value.is(Kind::Array) {
                let items = self.heap.items(value)[from..to].iter();
                keys.extend(
                    items
                        .zip(indices)
                        .filter(|&(&item, _)| item != Value::HOLE)
                        .map(|(_, index)| PropertyKey::Index(index)),
                );
            } else {
                keys.extend(indices.map(PropertyKey::Index));
            }
        }
        self.push_own_keys(value, all, &mut keys);
        Ok(Buffer::from_parts(keys, hold))
    }

    /// How many indices a string or a list that is not sparse has, holes included.
    fn dense_count(&self, value: Value) -> usize {
        match value.kind() {
            Kind::Array if !self.heap.is_sparse(value) => self.heap.length(value),
            Kind::String => self.heap.str(value).units as usize,
            Kind::Uint8Array => self.heap.view_length(value),
            _ => 0,
        }
    }

    /// About how many own properties of a value would be listed.
    pub fn own_count(&self, value: Value) -> usize {
        let named = |object: u32| self.heap.own_len(Value::handle(Kind::Object, object));
        let extra = || self.heap.extras.get(&value).map_or(0, |&extra| named(extra));
        match value.kind() {
            Kind::Object => self.heap.own_len(value),
            Kind::Array if self.heap.is_sparse(value) => self.heap.sparse_count(value) + extra(),
            Kind::String => self.dense_count(value),
            Kind::Array | Kind::Uint8Array => self.dense_count(value) + extra(),
            _ => 1 + extra(),
        }
    }

    /// Count so many bytes of temporary memory until the hold is dropped; an error where they do not fit.
    pub fn hold(&self, bytes: usize) -> Result<Hold> {
        let mut hold = Hold::NONE;
        if bytes > SMALL {
            hold.grow(self, bytes)?;
        }
        Ok(hold)
    }

    /// A new string that takes over the bytes of a buffer, which are WTF-8. The caller has charged for them.
    pub fn string_of(&mut self, bytes: Buffer<u8>) -> Value {
        self.heap.take_string(bytes.into_vec())
    }

    /// A new string of parts that were concatenated, where halves of a surrogate pair may have met. The caller has charged for them;
    /// that it is looked for where they are long is charged here.
    pub fn written(&mut self, mut bytes: Vec<u8>) -> Result<Value> {
        if bytes.len() <= PIECE {
            return Ok(self.heap.written(bytes));
        }
        for from in (0..bytes.len()).step_by(PIECE) {
            self.charge_bytes(PIECE)?;
            // A pair has six bytes.
            if has_split_pair(&bytes[from..bytes.len().min(from + PIECE + 5)]) {
                self.join_pairs(&mut bytes)?;
                break;
            }
        }
        Ok(self.heap.take_string(bytes))
    }

    /// Join the halves of surrogate pairs that stand beside each other, charged in pieces.
    pub fn join_pairs(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        let mut at = (0, 0);
        while at.0 < bytes.len() {
            self.work(PIECE / TRANSLATED_A_STEP)?;
            let until = bytes.len().min(at.0 + PIECE);
            at = join_pairs(bytes, at, until);
        }
        bytes.truncate(at.1);
        Ok(())
    }

    /// Replace lone surrogates by U+FFFD, which is as long, charged in pieces.
    pub fn replace_surrogates(&mut self, bytes: &mut [u8]) -> Result<()> {
        for from in (0..bytes.len()).step_by(PIECE) {
            self.charge_bytes(PIECE)?;
            let mut at = from;
            let end = bytes.len().min(from + PIECE);
            while let Some(found) = memchr::memchr(SURROGATE, &bytes[at..end]) {
                at += found;
                if let Some(letter @ [_, 0xA0..=0xBF, _]) = bytes.get_mut(at..at + 3) {
                    letter.copy_from_slice("\u{FFFD}".as_bytes());
                }
                at += 1;
            }
        }
        Ok(())
    }

    /// A new string of UTF-16 code units, charged and counted in pieces.
    pub fn string_of_utf16(&mut self, units: &[u16]) -> Result<Value> {
        let bytes = self.texts().1.encode(units)?;
        Ok(self.string_of(bytes))
    }

    /// A new array that takes over the items of a buffer.
    pub fn array_of(&mut self, items: Buffer<Value>) -> Value {
        self.heap.new_array(items.into_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{Policy, Preset};

    /// An account with a limit of 10,000 bytes.
    fn meter() -> Meter {
        let mut limits = Policy::preset(Preset::Experimental).limits;
        limits.max_memory_bytes = 10_000;
        Meter::new(limits)
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
