//! Mark and sweep.
//!
//! Marking is tolerant of stale handles, which slots of frames may hold: free places count as marked,
//! so that a stale handle keeps at most a thing alive that took its place.

use super::{COLLECT_FIRST, Exotic, Heap, Slab, Slots};
use crate::promise::{Reaction, Reactions};
use crate::value::{Kind, Value};

/// One bit for each place of a slab.
pub struct Marks(Vec<u64>);

impl Marks {
    fn of<T>(slab: &Slab<T>) -> Self {
        let mut marks = Self(vec![0; slab.len().div_ceil(64)]);
        for &free in &slab.free {
            marks.set(free as usize);
        }
        marks
    }

    /// Whether a place is marked.
    pub fn get(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Mark a place; whether it was not marked before.
    fn set(&mut self, index: usize) -> bool {
        let Some(word) = self.0.get_mut(index / 64) else { return false };
        let bit = 1 << (index % 64);
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }
}

struct Marker {
    objects: Marks,
    arrays: Marks,
    strings: Marks,
    closures: Marks,
    bound: Marks,
    cells: Marks,
    maps: Marks,
    promises: Marks,
    iterators: Marks,
    exotics: Marks,
    bigints: Marks,
    /// Values whose parts are not marked yet.
    work: Vec<Value>,
}

impl Marker {
    fn new(heap: &Heap) -> Self {
        Self {
            objects: Marks::of(&heap.objects),
            arrays: Marks::of(&heap.arrays),
            strings: Marks::of(&heap.strings),
            closures: Marks::of(&heap.closures),
            bound: Marks::of(&heap.bound),
            cells: Marks::of(&heap.cells),
            maps: Marks::of(&heap.maps),
            promises: Marks::of(&heap.promises),
            iterators: Marks::of(&heap.iterators),
            exotics: Marks::of(&heap.exotics),
            bigints: Marks::of(&heap.bigints),
            work: Vec::new(),
        }
    }

    fn drain(&mut self, heap: &Heap, awaited: &mut dyn FnMut(u32, &mut Vec<Value>)) {
        while let Some(value) = self.work.pop() {
            if value.is_number() {
                continue;
            }
            let index = value.index();
            match value.kind() {
                Kind::String => {
                    self.strings.set(index);
                }
                Kind::Tool => {
                    self.strings.set(index);
                }
                Kind::BigInt => {
                    self.bigints.set(index);
                }
                Kind::Object if self.objects.set(index) => {
                    let (inline, more) = heap.objects[index].values();
                    self.work.extend_from_slice(inline);
                    match more {
                        Some(Slots::Shaped(slots)) => self.work.extend_from_slice(slots),
                        Some(Slots::Table(table)) => self.work.extend(table.values().copied()),
                        None => {}
                    }
                }
                Kind::Array if self.arrays.set(index) => {
                    self.work.extend(heap.arrays[index].items.iter().filter(|item| !item.is_number()));
                }
                Kind::Function if self.closures.set(index) => {
                    self.work.extend_from_slice(&heap.closures[index].captures);
                }
                Kind::Bound if self.bound.set(index) => self.work.extend_from_slice(&heap.bound[index].data),
                Kind::Cell if self.cells.set(index) => self.work.push(heap.cells[index]),
                Kind::Map | Kind::Set if self.maps.set(index) => {
                    self.work.extend(heap.maps[index].raw().iter().flat_map(|&(key, value)| [key, value]));
                }
                Kind::Promise if self.promises.set(index) => {
                    let promise = &heap.promises[index];
                    self.work.push(promise.value);
                    for reaction in promise.reactions.as_slice() {
                        match *reaction {
                            Reaction::Await(frame) => awaited(frame, &mut self.work),
                            Reaction::Then { fulfilled, rejected, derived } => {
                                self.work.extend([fulfilled, rejected, derived]);
                            }
                        }
                    }
                }
                Kind::Iterator if self.iterators.set(index) => self.work.push(heap.iterators[index].source),
                Kind::Exotic if self.exotics.set(index) => heap.exotics[index].trace(&mut self.work),
                _ => {}
            }
            if let Some(&extra) = heap.extras.get(&value) {
                self.work.push(Value::handle(Kind::Object, extra));
            }
        }
    }
}

impl Heap {
    /// Free what cannot be reached from `roots`. `awaited` adds the values of the frame of an async
    /// function that waits for a promise that is reachable; `outside` are bytes in use elsewhere.
    pub fn collect(&mut self, roots: Vec<Value>, awaited: &mut dyn FnMut(u32, &mut Vec<Value>), outside: usize) {
        let mut marker = Marker::new(self);
        marker.work = roots;
        marker.drain(self, awaited);
        let mut bytes = 0;
        sweep(&mut self.objects, &marker.objects, |object| object.release());
        bytes += live(&self.objects, &marker.objects, |object| object.cost());
        sweep(&mut self.arrays, &marker.arrays, |array| array.items = Vec::new());
        bytes += live(&self.arrays, &marker.arrays, |array| 40 + array.items.capacity() * 8);
        sweep(&mut self.closures, &marker.closures, |closure| closure.captures = Box::default());
        bytes += live(&self.closures, &marker.closures, |closure| 40 + closure.captures.len() * 8);
        sweep(&mut self.bound, &marker.bound, |_| {});
        bytes += live(&self.bound, &marker.bound, |_| 40);
        sweep(&mut self.cells, &marker.cells, |_| {});
        bytes += live(&self.cells, &marker.cells, |_| 8);
        sweep(&mut self.maps, &marker.maps, |map| map.release());
        bytes += live(&self.maps, &marker.maps, |map| map.cost());
        sweep(&mut self.promises, &marker.promises, |promise| promise.reactions = Reactions::None);
        bytes += live(&self.promises, &marker.promises, |promise| 64 + promise.reactions.cost());
        sweep(&mut self.iterators, &marker.iterators, |iterator| iterator.source = Value::UNDEFINED);
        bytes += live(&self.iterators, &marker.iterators, |_| 24);
        sweep(&mut self.exotics, &marker.exotics, |exotic| *exotic = Exotic::Date(f64::NAN));
        bytes += live(&self.exotics, &marker.exotics, |exotic| size_of::<Exotic>() + exotic.cost());
        sweep(&mut self.bigints, &marker.bigints, |bigint| *bigint = num_bigint::BigInt::ZERO);
        bytes += live(&self.bigints, &marker.bigints, |bigint| 32 + bigint.bits() as usize / 8);
        bytes += self.sweep_strings(&marker.strings);
        let objects = &marker.objects;
        self.traces.retain(|&index, _| objects.get(index as usize));
        bytes += self.traces.len() * 128;
        let owners: Vec<Value> = self.extras.keys().copied().filter(|&owner| !marker.is_live(owner)).collect();
        for owner in owners {
            self.extras.remove(&owner);
        }
        bytes += self.extras.len() * 32 + self.shapes.len() * 96;
        bytes += outside;
        self.meter.bytes = bytes;
        self.meter.peak = self.meter.peak.max(bytes);
        let limit = self.meter.limits.max_memory_bytes as usize;
        self.meter.collect_at = (bytes * 2).max(bytes + COLLECT_FIRST).min(limit.max(bytes + bytes / 8));
    }
}

impl Marker {
    fn is_live(&self, owner: Value) -> bool {
        let index = owner.index();
        match owner.kind() {
            Kind::Array => self.arrays.get(index),
            Kind::Function => self.closures.get(index),
            Kind::Bound => self.bound.get(index),
            Kind::Map | Kind::Set => self.maps.get(index),
            Kind::Promise => self.promises.get(index),
            Kind::Iterator => self.iterators.get(index),
            Kind::Exotic => self.exotics.get(index),
            _ => true,
        }
    }
}

/// Put the places that are not marked on the free list.
fn sweep<T>(slab: &mut Slab<T>, marks: &Marks, mut release: impl FnMut(&mut T)) {
    for index in 0..slab.items.len() {
        if !marks.get(index) {
            release(&mut slab.items[index]);
            slab.free.push(index as u32);
        }
    }
}

/// What the things in use cost. Free places were marked from the beginning.
fn live<T>(slab: &Slab<T>, marks: &Marks, cost: impl Fn(&T) -> usize) -> usize {
    let free = Marks::of(slab);
    let live = |&(index, _): &(usize, &T)| marks.get(index) && !free.get(index);
    slab.items.iter().enumerate().filter(live).map(|(_, item)| cost(item)).sum()
}
