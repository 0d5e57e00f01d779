//! The program while it is written: where it will have places, it has bindings.

use super::count;
use crate::program;
pub(super) use crate::program::{
    Binary, ForEach, FunctionId, Initial, Label, Logical, Origin, Slot, TemplateSite, TextId, Unary,
};
use std::num::NonZeroU32;

pub(super) type Argument = program::Argument<Pending>;
pub(super) type Call = program::Call<Pending>;
pub(super) type Callee = program::Callee<Pending>;
pub(super) type Case = program::Case<Pending>;
pub(super) type Chain = program::Chain<Pending>;
pub(super) type EachLoop = program::EachLoop<Pending>;
pub(super) type Element = program::Element<Pending>;
pub(super) type Expr = program::Expr<Pending>;
pub(super) type ExprKind = program::ExprKind<Pending>;
pub(super) type ForLoop = program::ForLoop<Pending>;
pub(super) type Function = program::Function<Pending>;
pub(super) type New = program::New<Pending>;
pub(super) type Property = program::Property<Pending>;
pub(super) type Stmt = program::Stmt<Pending>;
pub(super) type StmtKind = program::StmtKind<Pending>;
pub(super) type Switch = program::Switch<Pending>;
pub(super) type Try = program::Try<Pending>;
pub(super) type Variable = program::Variable<Pending>;

/// A declared name of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BindingId(NonZeroU32);

impl BindingId {
    /// The binding with this index among all.
    pub(super) fn new(index: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(count(index)))
    }

    /// Its index among all bindings.
    pub(super) fn index(self) -> usize {
        (self.0.get() - 1) as usize
    }
}

/// The place of a binding, which is known when the whole script has been walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) binding: BindingId,
    /// Whether this use is in a hoisted function of the scope that declares the binding: the TDZ check is
    /// needed only if such a function may be called before the declaration has run.
    pub(super) is_hoisted: bool,
}

impl From<BindingId> for Pending {
    fn from(binding: BindingId) -> Self {
        Self { binding, is_hoisted: false }
    }
}
