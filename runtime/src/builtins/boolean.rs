//! Built-ins: `boolean`.

use super::{Global, Row};

/// Globals of this file.
pub const GLOBALS: &[Global] = &[];

/// Methods of its values.
pub const METHODS: &[Row] = &[];
