//! The heap of a run: typed slabs addressed by handles, dropped as a whole.
//!
//! Nothing is reference counted, and there are no finalizers. [`collect`] marks from given roots and sweeps; it moves
//! nothing. It runs only between operations, when no local variable of Rust holds a handle, so functions that allocate
//! may hold any number of handles.

mod array;
pub mod atoms;
mod bytes;
pub mod charge;
pub mod collect;
pub mod frame;
mod internal_slots;
mod map;
pub mod object;
pub mod promise;
pub mod sparse;
mod string;
mod table;
pub mod trace;

pub use crate::meter::cost::{block, hash_cost, index_cost, slab_cost};
pub use array::Array;
pub use bytes::{ByteBuffer, ByteView};
pub use internal_slots::{InternalSlots, RegExp};
pub use map::{Entry, MapData};
pub use object::{Class, Held, Object, Slots};
pub use string::{SMALL, Str};

use crate::meter::Meter;
use crate::value::atom::Atom;
use crate::value::family::Family;
use crate::value::{Kind, Value};
use atoms::{AtomStrings, Atoms};
use hashbrown::HashMap;
use num_bigint::BigInt;
use promise::Promise;
use std::any::Any;
use std::sync::Arc;

/// A slab of fewer items is trimmed while its run waits.
const TRIMMED: usize = 16;

/// The numbers of free entries; absent until there are some.
// In a box: a heap has many slabs, and a run that waits may be one of a hundred thousand.
type FreeList = Option<Box<Vec<u32>>>;

/// Values of one type, addressed by number.
pub struct Slab<T> {
    items: Vec<T>,
    free: FreeList,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { items: Vec::new(), free: None }
    }
}

impl<T> Slab<T> {
    /// Add an item; gives its number.
    #[inline]
    pub fn add(&mut self, item: T) -> u32 {
        match self.free.as_mut().and_then(|free| free.pop()) {
            Some(index) => {
                self.items[index as usize] = item;
                index
            }
            None => {
                if self.items.len() == self.items.capacity() {
                    self.grow();
                }
                self.items.push(item);
                (self.items.len() - 1) as u32
            }
        }
    }

    /// Grow: small slabs by a factor of two or more, large ones by half.
    #[cold]
    fn grow(&mut self) {
        let more = match self.items.len() {
            0..4 => 4,
            few @ 4..16 => few * 3,
            some @ 16..1024 => some,
            many => many / 2,
        };
        self.items.reserve_exact(more);
    }

    /// Release what a small slab has beyond its items, while its run waits.
    pub fn trim(&mut self) {
        if (1..TRIMMED).contains(&self.items.len()) {
            self.items.shrink_to_fit();
        }
    }

    /// How many can be added until it has to grow.
    pub fn room(&self) -> usize {
        self.items.capacity() - self.items.len() + self.free_len()
    }

    /// Make room for so many more.
    pub fn reserve(&mut self, more: usize) {
        self.items.reserve_exact(more.saturating_sub(self.free_len()));
    }

    /// Free an entry, to be used again.
    pub fn release(&mut self, index: u32) {
        self.free.get_or_insert_default().push(index);
    }

    fn free_len(&self) -> usize {
        self.free.as_ref().map_or(0, |free| free.len())
    }

    /// How many there are, free entries included.
    pub fn len(&self) -> usize {
        self.items.len()
    }
}

impl<T> std::ops::Index<usize> for Slab<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, index: usize) -> &T {
        &self.items[index]
    }
}

impl<T> std::ops::IndexMut<usize> for Slab<T> {
    #[inline(always)]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.items[index]
    }
}

/// A function object.
pub struct Closure {
    /// Which function: an index into the script's or the prelude's code.
    pub code: frame::FunctionRef,
    /// Its name where it differs from the one in the code: that of a property with a computed key.
    pub name: Option<Atom>,
    /// What it captured.
    pub captures: Captures,
}

impl Closure {
    fn cost(&self) -> usize {
        let allocated = match &self.captures {
            Captures::One(_) => 0,
            Captures::Many(captures) => captures.len(),
        };
        slab_cost::<Self>() + block(allocated * 8)
    }
}

/// Captured values. A single one, the most frequent case, needs no memory of its own.
pub enum Captures {
    /// A single one.
    One(Value),
    /// None, or several.
    Many(Box<[Value]>),
}

impl Default for Captures {
    fn default() -> Self {
        Self::Many(Box::default())
    }
}

impl std::ops::Deref for Captures {
    type Target = [Value];
    #[inline(always)]
    fn deref(&self) -> &[Value] {
        match self {
            Self::One(capture) => std::slice::from_ref(capture),
            Self::Many(captures) => captures,
        }
    }
}

/// A built-in function with captured values.
#[derive(Clone, Copy)]
pub struct NativeClosure {
    /// What it does.
    pub action: Action,
    /// The captured values.
    pub data: [Value; 3],
}

impl NativeClosure {
    const COST: usize = slab_cost::<Self>();
}

/// What a native closure does when it is called.
#[derive(Clone, Copy)]
pub enum Action {
    /// It calls a function of Rust, whose type only the evaluator knows, with the closure as its receiver.
    Native(&'static (dyn Any + Send + Sync)),
    /// It is a bound function. Its values are the target, which is no bound function itself, the receiver, and an
    /// array of its name and the first arguments.
    Apply,
}

/// What an iterator yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    /// Indices or keys.
    Keys,
    /// Items or values.
    Values,
    /// Pairs of both.
    Entries,
    /// Matches: the source is an array of a regular expression and a string.
    Matches,
    /// The keys of `for…in` that are still there: the source is an array of the object and its keys.
    ForIn,
    /// What an iterator of the script yields: the source is an array of it and its method `next`. Such a record is
    /// never seen by a script.
    Script,
    /// What a generator yields, which is the source. The same.
    Generator,
}

/// An iterator over an array, a string, a `Map`, a `Set`, or the keys for `for…in`.
pub struct Iterator {
    /// What is iterated; `undefined` when it is exhausted.
    pub source: Value,
    /// What it yields.
    pub yields: Yields,
    /// Its methods, also when it is exhausted.
    pub family: Family,
    /// Its position: an index of an array, a byte of a string, an entry of a map.
    pub position: usize,
}

impl Iterator {
    const COST: usize = slab_cost::<Self>();
}

impl Promise {
    const COST: usize = slab_cost::<Self>();
}

fn bigint_cost(bigint: &BigInt) -> usize {
    // Digits of eight bytes, with room for one more.
    slab_cost::<BigInt>() + block((bigint.bits() as usize / 64 + 2) * 8)
}

/// The heap of a run.
pub struct Heap {
    /// The meter.
    pub meter: Meter,
    /// Plain objects and errors.
    pub objects: Slab<Object>,
    /// Further slots of objects, beyond the inline ones.
    far: Slab<object::Far>,
    /// Arrays.
    pub arrays: Slab<Array>,
    /// String headers.
    pub strings: Slab<Str>,
    buffers: Vec<string::Buffer>,
    /// Numbers of buffers that hold nothing.
    free_buffers: Vec<usize>,
    /// The buffer that small strings go into.
    chunk: Option<usize>,
    /// Scratch space for building small strings.
    scratch: Vec<u8>,
    /// UTF-16 copies of strings that were indexed.
    wide: HashMap<u32, Box<[u16]>>,
    /// Functions.
    pub closures: Slab<Closure>,
    /// Built-in functions with captured values.
    pub native_closures: Slab<NativeClosure>,
    /// Cells of captured variables.
    pub cells: Slab<Value>,
    /// The data of `Map` and `Set`.
    pub maps: Slab<MapData>,
    /// Promises.
    pub promises: Slab<Promise>,
    /// How many promises were made and never fulfilled, freed ones included.
    pub unfulfilled: usize,
    /// Iterators.
    pub iterators: Slab<Iterator>,
    /// Built-in objects with internal slots.
    internal_slots: Slab<Option<Box<dyn InternalSlots>>>,
    /// The data of `ArrayBuffer`s.
    pub byte_buffers: Slab<ByteBuffer>,
    /// The data of `Uint8Array`s.
    pub byte_views: Slab<ByteView>,
    /// BigInts.
    pub bigints: Slab<BigInt>,
    shapes: Vec<object::Shape>,
    /// Named properties of objects that are not [`Kind::Object`]: handles of plain objects.
    pub extras: HashMap<Value, u32>,
    /// The items of sparse arrays, by handle.
    sparse: HashMap<u32, std::collections::BTreeMap<u32, Value>>,
    /// Where errors were made, by handle.
    pub traces: HashMap<u32, Box<trace::Trace>>,
    /// Property names.
    pub atoms: Atoms,
    /// The strings of those property names that were needed as values.
    pub atom_strings: AtomStrings,
}

impl Heap {
    /// Returns an empty heap for a run of a program.
    pub fn new(meter: Meter, atoms: Atoms) -> Self {
        Self {
            meter,
            objects: Slab::default(),
            far: Slab::default(),
            arrays: Slab::default(),
            strings: Slab::default(),
            buffers: vec![
                string::Buffer::Shared(Arc::clone(atoms.fixed_bytes())),
                string::Buffer::Shared(Arc::clone(atoms.program_bytes())),
            ],
            free_buffers: Vec::new(),
            chunk: None,
            scratch: Vec::new(),
            wide: HashMap::new(),
            closures: Slab::default(),
            native_closures: Slab::default(),
            cells: Slab::default(),
            maps: Slab::default(),
            promises: Slab::default(),
            unfulfilled: 0,
            iterators: Slab::default(),
            internal_slots: Slab::default(),
            byte_buffers: Slab::default(),
            byte_views: Slab::default(),
            bigints: Slab::default(),
            shapes: object::Shape::initial(),
            extras: HashMap::new(),
            sparse: HashMap::new(),
            traces: HashMap::new(),
            atoms,
            atom_strings: AtomStrings::default(),
        }
    }

    /// Release what small slabs of usual values, and a few shapes, have beyond their items.
    pub fn trim(&mut self) {
        self.objects.trim();
        self.arrays.trim();
        self.strings.trim();
        self.closures.trim();
        self.cells.trim();
        self.promises.trim();
        if self.shapes.len() < TRIMMED {
            self.shapes.shrink_to_fit();
        }
    }

    const CELL: usize = slab_cost::<Value>();
    /// The cost of the entry in `extras` of an object that is not [`Kind::Object`].
    const EXTRA: usize = hash_cost::<(Value, u32)>();

    /// A new cell.
    #[inline]
    pub fn new_cell(&mut self, value: Value) -> Value {
        self.meter.add_bytes(Self::CELL);
        Value::handle(Kind::Cell, self.cells.add(value))
    }

    /// A new function object.
    pub fn new_closure(&mut self, closure: Closure) -> Value {
        self.meter.add_bytes(closure.cost());
        Value::handle(Kind::Function, self.closures.add(closure))
    }

    /// A new native closure.
    pub fn new_native_closure(&mut self, action: Action, data: [Value; 3]) -> Value {
        self.meter.add_bytes(NativeClosure::COST);
        Value::handle(Kind::NativeClosure, self.native_closures.add(NativeClosure { action, data }))
    }

    /// A new iterator.
    pub fn new_iterator(&mut self, source: Value, yields: Yields) -> Value {
        self.meter.add_bytes(Iterator::COST);
        let family = self.iterator_family(source, yields);
        Value::handle(Kind::Iterator, self.iterators.add(Iterator { source, yields, family, position: 0 }))
    }

    fn iterator_family(&self, source: Value, yields: Yields) -> Family {
        match source.kind() {
            _ if yields == Yields::Matches => Family::RegExpStringIterator,
            Kind::Map => Family::MapIterator,
            Kind::Set => Family::SetIterator,
            Kind::String => Family::StringIterator,
            _ => self.internal_slots_of(source).map_or(Family::ArrayIterator, |slots| slots.iterator_family()),
        }
    }

    /// A new BigInt.
    pub fn new_bigint(&mut self, value: BigInt) -> Value {
        self.meter.add_bytes(bigint_cost(&value));
        Value::handle(Kind::BigInt, self.bigints.add(value))
    }

    /// A new empty `Map` or `Set`.
    pub fn new_map(&mut self, kind: Kind) -> Value {
        debug_assert!(matches!(kind, Kind::Map | Kind::Set));
        self.meter.add_bytes(MapData::COST);
        Value::handle(kind, self.maps.add(MapData::default()))
    }

    /// A new pending promise.
    pub fn new_promise(&mut self) -> Value {
        self.meter.add_bytes(Promise::COST);
        self.unfulfilled += 1;
        Value::handle(Kind::Promise, self.promises.add(Promise::default()))
    }
}
