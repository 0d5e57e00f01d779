//! Proof of a charge, and text and lists in proportion to it.

use std::borrow::Borrow;
use std::fmt;

/// Proof of a charge: whoever has one may read data of a script, and make texts and lists of it, in proportion to what
/// was charged. Only the [`Meter`](super::Meter) makes one, so a function without a charge of its own takes that of its
/// caller as a parameter. Memory that may be large is counted beside it: by a [`Hold`](super::buffer::Hold), or in a
/// [`Buffer`](super::buffer::Buffer).
#[derive(Clone, Copy, Debug)]
pub struct Charge(pub(super) ());

impl Charge {
    /// `format!` of text that somebody has charged for.
    pub fn text(self, parts: fmt::Arguments<'_>) -> String {
        parts.to_string()
    }

    /// A list of items that somebody has charged for.
    pub fn list<T>(self, items: impl IntoIterator<Item = T>) -> Vec<T> {
        items.into_iter().collect()
    }

    /// Texts with a separator between each two, that somebody has charged for.
    pub fn joined(self, parts: &[impl Borrow<str>], separator: &str) -> String {
        parts.join(separator)
    }
}

#[cfg(test)]
mod tests {
    use super::Charge;
    use crate::value::thrown::Result;

    #[test]
    fn a_charge_takes_no_room() {
        assert_eq!(size_of::<Charge>(), 0);
        assert_eq!(size_of::<Result<Charge>>(), size_of::<Result<()>>());
    }
}
