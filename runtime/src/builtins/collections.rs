//! `Map` and `Set`.

use super::{Global, Row};

/// `Map` and `Set`.
pub const GLOBALS: &[Global] = &[];

/// Methods of maps.
pub const MAP_METHODS: &[Row] = &[];

/// Methods of sets.
pub const SET_METHODS: &[Row] = &[];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[];
