//! The memory of the walk, which a thread uses again for its next script.

use super::Captured;
use super::scope::{Binding, Scope};
use super::text;
use crate::program::{Function, Stmt};
use crate::spare::emptied;
use std::cell::Cell;

/// Most items of a list that is kept.
const MAX_ITEMS: usize = 1024;
/// Most lists of statements that are kept, and most statements of one.
const MAX_LISTS: usize = 16;
const MAX_STATEMENTS: usize = 128;

/// Lists without items.
#[derive(Default)]
pub(super) struct Memory<'p> {
    pub(super) texts: text::Memory,
    pub(super) bindings: Vec<Binding>,
    pub(super) scopes: Vec<Scope>,
    pub(super) captured: Vec<Captured>,
    pub(super) functions: Vec<Function<'p>>,
    pub(super) statements: Vec<Vec<Stmt<'p>>>,
}

thread_local! {
    static LAST: Cell<Option<Box<Memory<'static>>>> = const { Cell::new(None) };
}

impl Memory<'_> {
    /// Returns the memory of the last script of this thread.
    pub(super) fn take() -> Self {
        LAST.try_with(Cell::take).ok().flatten().map_or_else(Self::default, |last| *last)
    }

    /// Keeps it for the next script. What a long script has needed is freed.
    pub(super) fn put_back(self) {
        let Self { texts: (table, facts), bindings, scopes, captured, functions, statements } = self;
        let is_small = facts.capacity() <= MAX_ITEMS
            && table.capacity() <= MAX_ITEMS
            && bindings.capacity() <= MAX_ITEMS
            && scopes.capacity() <= MAX_ITEMS
            && functions.capacity() <= MAX_ITEMS;
        if !is_small {
            return;
        }
        let memory = Memory {
            texts: (table, emptied(facts)),
            bindings: emptied(bindings),
            scopes: emptied(scopes),
            captured: emptied(captured),
            functions: emptied(functions),
            statements: statements
                .into_iter()
                .filter(|list| list.capacity() <= MAX_STATEMENTS)
                .take(MAX_LISTS)
                .map(emptied)
                .collect(),
        };
        // A thread that ends keeps nothing.
        _ = LAST.try_with(|last| last.set(Some(Box::new(memory))));
    }
}
