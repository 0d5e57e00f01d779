//! Bindings, and where functions find them.

use super::{Function, FunctionId, Slot};
use hashbrown::HashMap;
use std::num::NonZeroU32;

/// A declared name of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BindingId(NonZeroU32);

impl BindingId {
    /// Returns the binding with this index among all.
    pub(crate) fn new(index: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(u32::try_from(index).unwrap_or(u32::MAX)))
    }

    /// Returns the index among all bindings.
    pub(crate) fn index(self) -> usize {
        (self.0.get() - 1) as usize
    }
}

/// A use of a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The binding.
    pub binding: BindingId,
    /// Whether this use is in a hoisted function of the scope that declares the binding: the TDZ check is
    /// needed only if such a function may be called before the declaration has run.
    pub is_hoisted: bool,
}

impl From<BindingId> for Reference {
    fn from(binding: BindingId) -> Self {
        Self { binding, is_hoisted: false }
    }
}

/// Where a variable lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// In a slot of the frame.
    Slot(Slot),
    /// In a cell whose handle is in a slot, because closures share it.
    Cell(Slot),
    /// In a global slot, because the main function declares it and inner functions use it.
    Global(u32),
}

/// Where a binding lives in the function that declares it.
#[derive(Clone, Copy, Debug)]
pub struct BindingPlace {
    /// That function.
    pub(crate) function: FunctionId,
    /// Where it lives.
    pub(crate) place: Place,
    /// Whether no hoisted function of its scope is called before its declaration has run.
    pub(crate) runs_late: bool,
    /// Whether it is assigned to after its declaration.
    pub(crate) assigned: bool,
}

/// The places of all bindings of a program.
#[derive(Debug, Default)]
pub struct Places {
    /// By the index of the binding.
    pub(crate) binding_places: Vec<BindingPlace>,
    /// The index of a binding among the captures of a function.
    pub(crate) captures: HashMap<(u32, BindingId), u32>,
}

impl Places {
    /// Returns the place in which a function finds a variable.
    pub(crate) fn of(&self, functions: &[Function<'_>], function: FunctionId, reference: Reference) -> Place {
        let home = &self.binding_places[reference.binding.index()];
        if home.function == function {
            return home.place;
        }
        let captured = || {
            let index = self.captures.get(&(function.0, reference.binding)).copied().unwrap_or(0);
            Slot(functions[function.0 as usize].first_capture + index)
        };
        match home.place {
            Place::Slot(_) => Place::Slot(captured()),
            Place::Cell(_) => Place::Cell(captured()),
            Place::Global(index) => Place::Global(index),
        }
    }

    /// Whether a binding is assigned to after its declaration.
    pub(crate) fn is_assigned(&self, binding: BindingId) -> bool {
        self.binding_places[binding.index()].assigned
    }

    /// Whether no hoisted function of the scope of a binding is called before its declaration has run.
    pub(crate) fn runs_late(&self, binding: BindingId) -> bool {
        self.binding_places[binding.index()].runs_late
    }
}
