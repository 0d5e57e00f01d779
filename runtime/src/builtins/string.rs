//! Built-ins: `string`.

use super::{Global, Row};

/// Globals of this file.
pub const GLOBALS: &[Global] = &[];

/// Methods of its values.
pub const METHODS: &[Row] = &[];

/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[];
