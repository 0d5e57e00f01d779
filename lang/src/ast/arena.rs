//! The memory of a tree, of syntax or resolved: nothing in it needs to be dropped, and all of it is freed at once.

use bumpalo::Bump;
use std::borrow::Cow;
use std::cell::Cell;

/// Holds the parts of a tree.
#[derive(Debug, Default)]
pub struct Arena(Bump);

/// Beyond this size an arena grows by a quarter at a time instead of doubling.
const LARGE: usize = 256 << 10;

/// Most memory that a thread keeps for each of its next trees.
const SPARE: usize = 128 << 10;

/// How many trees a thread keeps memory for: a syntax tree and the program made of it.
const SPARES: usize = 2;

/// Most bytes that alignment adds to a part.
const ALIGNMENT: usize = 16;

thread_local! {
    /// The memory of the last trees of the thread: allocating it again takes longer than filling it.
    static LAST: Cell<Vec<Bump>> = const { Cell::new(Vec::new()) };
}

impl Drop for Arena {
    fn drop(&mut self) {
        if self.0.allocated_bytes() <= SPARE {
            let mut bump = std::mem::take(&mut self.0);
            bump.reset();
            // A thread that ends keeps nothing.
            _ = LAST.try_with(|last| {
                let mut bumps = last.take();
                if bumps.len() < SPARES {
                    bumps.push(bump);
                }
                last.set(bumps);
            });
        }
    }
}

impl Arena {
    /// Creates an empty arena.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an arena with the capacity that the trees of a usual source of this length need.
    #[must_use]
    pub fn for_source(bytes: usize) -> Self {
        // A syntax tree takes some twelve times its source, the program made of it some ten times; more is asked for as it
        // is needed.
        let usual = 512 + 12 * bytes.min(LARGE / 12);
        let last = LAST.try_with(|last| {
            let mut bumps = last.take();
            let bump = bumps.pop();
            last.set(bumps);
            bump
        });
        let last = last.ok().flatten().filter(|last| last.chunk_capacity() >= usual.min(SPARE / 2));
        Self(last.unwrap_or_else(|| Bump::with_capacity(usual)))
    }

    /// Makes room for so many bytes.
    fn room(&self, bytes: usize) {
        if self.0.chunk_capacity() < bytes + ALIGNMENT {
            self.grow(bytes);
        }
    }

    #[cold]
    fn grow(&self, bytes: usize) {
        let all = self.0.allocated_bytes();
        // A block is at most so large, and at least half of that.
        let most = (all / 4).max(2 * bytes + LARGE / 8);
        self.0.set_allocation_limit((all >= LARGE).then(|| all + most));
    }

    /// Moves a part into the arena.
    pub(crate) fn alloc<T: Copy>(&self, value: T) -> &T {
        self.room(size_of::<T>());
        self.0.alloc(value)
    }

    /// Adds an item to a list.
    pub(crate) fn push<'s, T: Copy>(&'s self, list: List<'s, T>, item: T) -> List<'s, T> {
        List { last: Some(self.alloc(Link { item, before: list.last })), len: list.len + 1 }
    }

    /// Creates a list with its only item.
    pub(crate) fn one<T: Copy>(&self, item: T) -> List<'_, T> {
        self.push(List::new(), item)
    }

    /// Copies the items of a list behind each other.
    pub(crate) fn slice<'s, T: Copy>(&'s self, list: List<'s, T>) -> &'s [T] {
        let Some(last) = list.last else { return &[] };
        if last.before.is_none() {
            return std::slice::from_ref(&last.item);
        }
        self.room(list.len * size_of::<T>());
        let items = self.0.alloc_slice_fill_copy(list.len, last.item);
        let mut link = list.last;
        for item in items.iter_mut().rev() {
            if let Some(found) = link {
                *item = found.item;
                link = found.before;
            }
        }
        items
    }

    /// Copies the items of an iterator behind each other; making them may use the arena.
    pub(crate) fn collect<T: Copy>(&self, items: impl ExactSizeIterator<Item = T>) -> &[T] {
        if items.len() == 0 {
            return &[];
        }
        self.room(items.len() * size_of::<T>());
        self.0.alloc_slice_fill_iter(items)
    }

    /// Copies items behind each other.
    pub(crate) fn copy<T: Copy>(&self, items: &[T]) -> &[T] {
        self.room(size_of_val(items));
        self.0.alloc_slice_copy(items)
    }

    /// Returns bytes of the source, or a copy of others.
    pub(crate) fn bytes<'s>(&'s self, text: Cow<'s, [u8]>) -> &'s [u8] {
        match text {
            Cow::Borrowed(text) => text,
            Cow::Owned(text) => self.copy(&text),
        }
    }

    /// Returns text of the source, or a copy of another text.
    pub(crate) fn text<'s>(&'s self, text: Cow<'s, str>) -> &'s str {
        match text {
            Cow::Borrowed(text) => text,
            Cow::Owned(text) => {
                self.room(text.len());
                self.0.alloc_str(&text)
            }
        }
    }
}

/// A list that is being built: each item links to the one before it, so that growing copies nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List<'s, T> {
    last: Option<&'s Link<'s, T>>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Link<'s, T> {
    item: T,
    before: Option<&'s Self>,
}

impl<T> List<'_, T> {
    /// Creates a list without items.
    pub(crate) const fn new() -> Self {
        Self { last: None, len: 0 }
    }
}
