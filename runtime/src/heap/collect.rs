//! Mark and sweep.
//!
//! Marking tolerates stale handles, which slots of frames may hold: free entries count as marked. So a stale handle
//! keeps at most the thing alive that is in the entry now. Live data is counted while it is marked; sweeping
//! visits only the rest.

use super::internal_slots::slots_cost;
use super::object::FAR_COST;
use super::sparse::{SPARSE_ARRAY, SPARSE_ITEM};
use super::{ByteBuffer, ByteView, Captures, FreeList, Heap, Iterator, NativeClosure, Slab, Slots, bigint_cost};
use crate::heap::frame::Waiting;
use crate::heap::promise::{Promise, Reaction, Reactions};
use crate::meter::COLLECT_FIRST;
use crate::value::{Kind, Value};

/// One bit for each entry of a slab.
pub struct Marks(Vec<u64>);

impl Marks {
    /// Free entries and those behind the last are marked.
    fn for_slab<T>(slab: &Slab<T>) -> Self {
        let mut marks = Self(vec![0; slab.items.len().div_ceil(64)]);
        if let Some(last) = marks.0.last_mut()
            && !slab.items.len().is_multiple_of(64)
        {
            *last = u64::MAX << (slab.items.len() % 64);
        }
        for &free in slab.free.iter().flat_map(|free| free.iter()) {
            marks.set(free as usize);
        }
        marks
    }

    /// Whether an entry is marked.
    pub fn get(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Mark an entry; whether it was not marked before.
    #[inline]
    fn set(&mut self, index: usize) -> bool {
        let Some(word) = self.0.get_mut(index / 64) else { return false };
        let bit = 1 << (index % 64);
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }

    /// Unmark what is behind the last entry.
    fn end_at(&mut self, length: usize) {
        if let Some(last) = self.0.last_mut()
            && !length.is_multiple_of(64)
        {
            *last &= !(u64::MAX << (length % 64));
        }
    }

    fn clear(&mut self, index: usize) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word &= !(1 << (index % 64));
        }
    }

    /// The entries that are marked.
    pub(super) fn iter(&self) -> impl std::iter::Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(number, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest.checked_sub(1)?;
                Some(number * 64 + bit)
            })
        })
    }

    /// The entries that are not marked, the last first.
    fn gaps(&self) -> impl std::iter::Iterator<Item = u32> + '_ {
        self.0.iter().enumerate().rev().flat_map(|(number, &word)| {
            let mut gaps = !word;
            std::iter::from_fn(move || {
                let bit = 63_u32.checked_sub(gaps.leading_zeros())?;
                gaps &= !(1 << bit);
                Some(number as u32 * 64 + bit)
            })
        })
    }
}

impl<T> Slab<T> {
    /// Bytes of free entries.
    fn free_bytes(&self) -> usize {
        let list = self.free.as_ref().map_or(0, |free| free.capacity() * size_of::<u32>());
        self.free_len() * size_of::<T>() + list
    }

    /// Release spare capacity.
    fn shrink(&mut self) {
        self.items.shrink_to_fit();
        match &mut self.free {
            Some(free) if !free.is_empty() => free.shrink_to_fit(),
            free => *free = None,
        }
    }

    /// Free the entries that are not marked; `release` drops their contents. Gives how many items are left, which
    /// alone are marked afterwards.
    pub(super) fn sweep(&mut self, marks: &mut Marks, mut release: impl FnMut(&mut T)) -> usize {
        marks.gaps().for_each(|index| release(&mut self.items[index as usize]));
        let (length, free) = free_entries(marks, self.free.take(), self.items.len());
        self.items.truncate(length);
        // Keep capacity for what the next cycle may add, but not for an earlier peak.
        let room = length + length / 4 + COLLECT_FIRST / size_of::<T>();
        self.items.shrink_to(room);
        self.free = free.map(|mut free| {
            free.shrink_to(room);
            free
        });
        length - self.free_len()
    }
}

/// How many of the entries of a slab are kept, and which of them are free. Those that were `free` before are not marked
/// afterwards.
fn free_entries(marks: &mut Marks, free: FreeList, end: usize) -> (usize, FreeList) {
    marks.end_at(end);
    let mut free = free.unwrap_or_default();
    for index in free.drain(..) {
        marks.clear(index as usize);
    }
    // Entries at the end are given back; of the others the first is used first.
    let mut length = end;
    for index in marks.gaps().skip_while(|&index| index as usize >= end) {
        if index as usize + 1 == length {
            length -= 1;
        } else {
            free.push(index);
        }
    }
    (length, (!free.is_empty()).then_some(free))
}

/// How many parts of a large value are queued at a time.
const PART: usize = 256;

/// The marks so far, and the values still to be traced.
///
/// A value is marked when it is queued, so it is queued once. What the queue takes counts as used by the run: in a
/// chain of values with many parts, the parts of all of them wait.
pub struct Marker {
    objects: Marks,
    far: Marks,
    arrays: Marks,
    strings: Marks,
    closures: Marks,
    native_closures: Marks,
    cells: Marks,
    maps: Marks,
    promises: Marks,
    iterators: Marks,
    internal_slots: Marks,
    byte_buffers: Marks,
    byte_views: Marks,
    bigints: Marks,
    frames: Marks,
    /// Values to be traced.
    work: Vec<Value>,
    /// Large values, with how many of their parts are traced.
    large: Vec<(Value, usize)>,
    /// The cost of marked values whose cost varies.
    bytes: usize,
}

/// The frames of async functions that wait for a promise.
type Suspended = Slab<Option<Waiting>>;

impl Marker {
    /// A marker with no marks.
    pub fn new(heap: &Heap, suspended: &Suspended) -> Self {
        Self {
            objects: Marks::for_slab(&heap.objects),
            far: Marks::for_slab(&heap.far),
            arrays: Marks::for_slab(&heap.arrays),
            strings: Marks::for_slab(&heap.strings),
            closures: Marks::for_slab(&heap.closures),
            native_closures: Marks::for_slab(&heap.native_closures),
            cells: Marks::for_slab(&heap.cells),
            maps: Marks::for_slab(&heap.maps),
            promises: Marks::for_slab(&heap.promises),
            iterators: Marks::for_slab(&heap.iterators),
            internal_slots: Marks::for_slab(&heap.internal_slots),
            byte_buffers: Marks::for_slab(&heap.byte_buffers),
            byte_views: Marks::for_slab(&heap.byte_views),
            bigints: Marks::for_slab(&heap.bigints),
            frames: Marks::for_slab(suspended),
            work: Vec::new(),
            large: Vec::new(),
            bytes: 0,
        }
    }

    /// Mark a value, and queue it where it holds values and was not marked before.
    #[inline]
    fn reach(&mut self, value: Value) {
        if value.is_number() {
            return;
        }
        let index = value.index();
        let marks = match value.kind() {
            Kind::String | Kind::Tool | Kind::Unread => {
                self.strings.set(index);
                return;
            }
            Kind::Object => &mut self.objects,
            Kind::Array => &mut self.arrays,
            Kind::Cell => &mut self.cells,
            Kind::BigInt => &mut self.bigints,
            Kind::Function => &mut self.closures,
            Kind::NativeClosure => &mut self.native_closures,
            Kind::Map | Kind::Set => &mut self.maps,
            Kind::Promise => &mut self.promises,
            Kind::Iterator => &mut self.iterators,
            Kind::InternalSlots => &mut self.internal_slots,
            Kind::ArrayBuffer => &mut self.byte_buffers,
            Kind::Uint8Array => &mut self.byte_views,
            Kind::Number | Kind::Undefined | Kind::Null | Kind::Boolean => return,
            Kind::Native | Kind::App | Kind::HostFunction | Kind::Empty => return,
        };
        if marks.set(index) {
            self.work.push(value);
        }
    }

    fn reach_all(&mut self, values: &[Value]) {
        values.iter().for_each(|&value| self.reach(value));
    }

    /// Queue the parts of a large value, some at a time, so that the queue stays short.
    fn reach_part(&mut self, heap: &Heap, suspended: &Suspended, (value, from): (Value, usize)) {
        let length = match value.kind() {
            Kind::Array if heap.is_sparse(value) => {
                let mut items = heap.sparse_items(value, from..usize::MAX);
                items.by_ref().take(PART).for_each(|(_, item)| self.reach(item));
                if let Some((next, _)) = items.next() {
                    self.large.push((value, next as usize));
                }
                return;
            }
            Kind::Array => {
                let items = &heap.arrays[value.index()].items;
                self.reach_all(&items[from..(from + PART).min(items.len())]);
                items.len()
            }
            Kind::Map | Kind::Set => {
                let entries = heap.maps[value.index()].raw();
                let part = &entries[from..(from + PART).min(entries.len())];
                part.iter().for_each(|&(key, value)| self.reach_all(&[key, value]));
                entries.len()
            }
            Kind::Promise => {
                let reactions = heap.promises[value.index()].reactions.as_slice();
                for &reaction in &reactions[from..(from + PART).min(reactions.len())] {
                    self.reach_reaction(suspended, reaction);
                }
                reactions.len()
            }
            _ => match heap.objects[value.index()].values().1 {
                Some(Slots::Table(table)) => {
                    let part = table.get_range(from..(from + PART).min(table.len()));
                    part.into_iter().flat_map(|part| part.values()).for_each(|&value| self.reach(value));
                    table.len()
                }
                Some(Slots::Shaped(_)) | None => 0,
            },
        };
        if from + PART < length {
            self.large.push((value, from + PART));
        }
    }

    /// Mark everything reachable from `roots`, tracing after every few roots.
    pub fn mark(&mut self, heap: &Heap, suspended: &Suspended, roots: impl IntoIterator<Item = Value>) {
        for root in roots {
            self.reach(root);
            if self.work.len() >= PART {
                self.drain(heap, suspended);
            }
        }
        self.drain(heap, suspended);
    }

    /// Mark everything reachable from a reaction.
    pub fn mark_reaction(&mut self, heap: &Heap, suspended: &Suspended, reaction: Reaction) {
        self.reach_reaction(suspended, reaction);
        self.drain(heap, suspended);
    }

    /// Whether a frame that waits for a promise is marked.
    pub fn has_frame(&self, number: usize) -> bool {
        self.frames.get(number)
    }

    /// Bytes that the queue takes.
    pub fn cost(&self) -> usize {
        self.work.capacity() * size_of::<Value>() + self.large.capacity() * size_of::<(Value, usize)>()
    }

    fn drain(&mut self, heap: &Heap, suspended: &Suspended) {
        loop {
            let Some(value) = self.work.pop() else {
                let Some(part) = self.large.pop() else { break };
                self.reach_part(heap, suspended, part);
                continue;
            };
            let index = value.index();
            match value.kind() {
                Kind::Object => {
                    let object = &heap.objects[index];
                    self.bytes += object.cost();
                    let (inline, more) = object.values();
                    self.reach_all(inline);
                    if let Some(far) = object.far() {
                        self.far.set(far);
                        self.reach_all(&heap.far[far]);
                    }
                    match more {
                        Some(Slots::Shaped(slots)) => self.reach_all(slots),
                        Some(Slots::Table(_)) => self.reach_part(heap, suspended, (value, 0)),
                        None => {}
                    }
                    continue;
                }
                Kind::Cell => {
                    self.reach(heap.cells[index]);
                    continue;
                }
                Kind::BigInt => {
                    self.bytes += bigint_cost(&heap.bigints[index]);
                    continue;
                }
                Kind::Array => {
                    self.bytes += heap.arrays[index].cost();
                    if heap.is_sparse(value) {
                        self.bytes += SPARSE_ARRAY + heap.sparse_count(value) * SPARSE_ITEM;
                    }
                    self.reach_part(heap, suspended, (value, 0));
                }
                Kind::Function => {
                    let closure = &heap.closures[index];
                    self.bytes += closure.cost();
                    self.reach_all(&closure.captures);
                }
                Kind::NativeClosure => self.reach_all(&heap.native_closures[index].data),
                Kind::Map | Kind::Set => {
                    self.bytes += heap.maps[index].cost();
                    self.reach_part(heap, suspended, (value, 0));
                }
                Kind::Promise => {
                    let promise = &heap.promises[index];
                    self.bytes += promise.reactions.cost();
                    self.reach(promise.value);
                    self.reach_part(heap, suspended, (value, 0));
                }
                Kind::Iterator => self.reach(heap.iterators[index].source),
                Kind::InternalSlots => {
                    let Some(slots) = &heap.internal_slots[index] else { continue };
                    self.bytes += slots_cost(&**slots);
                    slots.trace(&mut |value| self.reach(value));
                }
                Kind::ArrayBuffer => self.bytes += heap.byte_buffers[index].cost(),
                Kind::Uint8Array => self.reach(heap.byte_views[index].buffer),
                // They are not queued.
                Kind::String | Kind::Tool | Kind::Unread => continue,
                Kind::Number | Kind::Undefined | Kind::Null | Kind::Boolean => continue,
                Kind::Native | Kind::App | Kind::HostFunction | Kind::Empty => continue,
            }
            if let Some(&extra) = heap.extras.get(&value) {
                self.reach(Value::handle(Kind::Object, extra));
            }
        }
    }

    fn reach_reaction(&mut self, suspended: &Suspended, reaction: Reaction) {
        match reaction {
            Reaction::Await(number) => {
                if self.frames.set(number as usize)
                    && let Some(frame) = &suspended[number as usize]
                {
                    frame.slots.iter().for_each(|slot| self.reach(slot.get()));
                    frame.after.values().for_each(|value| self.reach(value));
                }
            }
            Reaction::Then { fulfilled, rejected, derived } => self.reach_all(&[fulfilled, rejected, derived]),
        }
    }

    fn is_live(&self, owner: Value) -> bool {
        let index = owner.index();
        match owner.kind() {
            Kind::Array => self.arrays.get(index),
            Kind::Function => self.closures.get(index),
            Kind::NativeClosure => self.native_closures.get(index),
            Kind::Map | Kind::Set => self.maps.get(index),
            Kind::Promise => self.promises.get(index),
            Kind::Iterator => self.iterators.get(index),
            Kind::InternalSlots => self.internal_slots.get(index),
            Kind::ArrayBuffer => self.byte_buffers.get(index),
            Kind::Uint8Array => self.byte_views.get(index),
            _ => true,
        }
    }
}

impl Heap {
    /// Release spare capacity after a collection.
    pub fn shrink(&mut self) {
        self.objects.shrink();
        self.far.shrink();
        self.arrays.shrink();
        self.strings.shrink();
        self.closures.shrink();
        self.native_closures.shrink();
        self.cells.shrink();
        self.maps.shrink();
        self.promises.shrink();
        self.iterators.shrink();
        self.internal_slots.shrink();
        self.byte_buffers.shrink();
        self.byte_views.shrink();
        self.bigints.shrink();
        self.shrink_strings();
    }

    /// Free everything unmarked. [`Heap::collected`] has to be called afterwards, with the bytes in use outside the
    /// heap.
    pub fn sweep(&mut self, mut marker: Marker) {
        // Nothing waits any more.
        let queue = marker.cost();
        (marker.work, marker.large) = (Vec::new(), Vec::new());
        self.extras.retain(|&owner, _| marker.is_live(owner));
        self.sparse.retain(|&index, _| marker.arrays.get(index as usize));
        self.traces.retain(|&index, _| marker.objects.get(index as usize));
        let mut bytes = marker.bytes;
        self.objects.sweep(&mut marker.objects, |object| object.release());
        bytes += self.far.sweep(&mut marker.far, |_| {}) * FAR_COST;
        self.arrays.sweep(&mut marker.arrays, |array| array.items = Vec::new());
        self.closures.sweep(&mut marker.closures, |closure| closure.captures = Captures::default());
        bytes += self.native_closures.sweep(&mut marker.native_closures, |_| {}) * NativeClosure::COST;
        bytes += self.cells.sweep(&mut marker.cells, |_| {}) * Self::CELL;
        self.maps.sweep(&mut marker.maps, |map| map.release());
        bytes +=
            self.promises.sweep(&mut marker.promises, |promise| promise.reactions = Reactions::None) * Promise::COST;
        bytes += self.iterators.sweep(&mut marker.iterators, |_| {}) * Iterator::COST;
        self.internal_slots.sweep(&mut marker.internal_slots, |slots| *slots = None);
        self.byte_buffers.sweep(&mut marker.byte_buffers, |buffer| *buffer = ByteBuffer::default());
        bytes += self.byte_views.sweep(&mut marker.byte_views, |_| {}) * ByteView::COST;
        self.bigints.sweep(&mut marker.bigints, |bigint| *bigint = num_bigint::BigInt::ZERO);
        bytes += self.sweep_strings(&mut marker.strings);
        bytes += self.traces.values().map(|trace| trace.cost()).sum::<usize>();
        bytes += self.extras.len() * Self::EXTRA + self.shape_bytes();
        // The next collection takes as much.
        self.meter.bytes = bytes + queue;
    }

    /// Bytes of free entries between live ones. Entries do not move, so only the same slab can use them.
    fn free_bytes(&self) -> usize {
        self.objects.free_bytes()
            + self.far.free_bytes()
            + self.arrays.free_bytes()
            + self.strings.free_bytes()
            + self.closures.free_bytes()
            + self.native_closures.free_bytes()
            + self.cells.free_bytes()
            + self.maps.free_bytes()
            + self.promises.free_bytes()
            + self.iterators.free_bytes()
            + self.internal_slots.free_bytes()
            + self.byte_buffers.free_bytes()
            + self.byte_views.free_bytes()
            + self.bigints.free_bytes()
    }

    /// Finish a collection; `outside` is the bytes in use outside the heap.
    pub fn collected(&mut self, outside: usize) {
        let bytes = self.meter.bytes + outside;
        self.meter.bytes = bytes;
        self.meter.free_bytes = self.free_bytes();
        self.meter.peak = self.meter.peak.max(bytes);
        // With no more garbage than this, an operation whose results fit beside the live data is not refused.
        let garbage = bytes.max(COLLECT_FIRST).min(self.meter.most_garbage());
        self.meter.due = bytes + garbage;
        self.meter.collect_at = self.meter.due;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_gives_back_the_end_and_reuses_the_first_places_first() {
        let mut slab = Slab::default();
        (0..200).for_each(|number| assert_eq!(slab.add(number), number));
        let mut marks = Marks::for_slab(&slab);
        let kept = [3, 64, 100];
        assert!(kept.iter().all(|&index| marks.set(index)));
        assert!(!marks.set(3), "it is marked already");
        assert!(!marks.set(200) && !marks.set(10_000), "stale handles mark nothing");
        let mut released = Vec::new();
        assert_eq!(slab.sweep(&mut marks, |&mut number| released.push(number)), kept.len());
        assert_eq!(released.len(), 200 - kept.len());
        assert_eq!(marks.iter().collect::<Vec<_>>(), kept);
        assert_eq!(slab.len(), 101);
        assert_eq!([(); 4].map(|()| slab.add(7)), [0, 1, 2, 4]);

        let mut marks = Marks::for_slab(&slab);
        assert!(!marks.set(50), "a free entry counts as marked");
        let mut released = 0;
        assert_eq!(slab.sweep(&mut marks, |_| released += 1), 0);
        assert_eq!((released, slab.len()), (7, 0));
    }

    #[test]
    fn room_of_a_peak_is_given_back() {
        let mut slab = Slab::default();
        (0..1_000_000_u64).for_each(|number| _ = slab.add(number));
        let mut marks = Marks::for_slab(&slab);
        slab.sweep(&mut marks, |_| {});
        assert!(slab.items.capacity() <= COLLECT_FIRST / size_of::<u64>());
    }
}
