//! Iterators of built-in collections: the state behind `for…of`, spread and `next()`.

use super::Row;

/// Methods of iterators.
pub const METHODS: &[Row] = &[];
