//! Built-ins: `json`.

use super::{Global, Row};

/// Globals of this file.
pub const GLOBALS: &[Global] = &[];


/// Functions that only the prelude can call; their names begin with `$`.
pub const INTRINSICS: &[Row] = &[];
