//! The program while it is written: where it will have places, it has bindings.

use super::count;
use crate::program;
pub(super) use crate::program::{
    Binary, ForEach, FunctionId, Initial, Label, Logical, Origin, Slot, TemplateSite, TextId, Unary,
};
use std::num::NonZeroU32;

pub(super) type Argument<'p> = program::Argument<'p, Pending>;
pub(super) type Call<'p> = program::Call<'p, Pending>;
pub(super) type Callee<'p> = program::Callee<'p, Pending>;
pub(super) type Case<'p> = program::Case<'p, Pending>;
pub(super) type Chain<'p> = program::Chain<'p, Pending>;
pub(super) type EachLoop<'p> = program::EachLoop<'p, Pending>;
pub(super) type Element<'p> = program::Element<'p, Pending>;
pub(super) type Expr<'p> = program::Expr<'p, Pending>;
pub(super) type ExprKind<'p> = program::ExprKind<'p, Pending>;
pub(super) type ForLoop<'p> = program::ForLoop<'p, Pending>;
pub(super) type Function<'p> = program::Function<'p, Pending>;
pub(super) type New<'p> = program::New<'p, Pending>;
pub(super) type Property<'p> = program::Property<'p, Pending>;
pub(super) type Stmt<'p> = program::Stmt<'p, Pending>;
pub(super) type StmtKind<'p> = program::StmtKind<'p, Pending>;
pub(super) type Switch<'p> = program::Switch<'p, Pending>;
pub(super) type Try<'p> = program::Try<'p, Pending>;
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
