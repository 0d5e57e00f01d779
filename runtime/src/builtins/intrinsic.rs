//! Functions that only the prelude can call.

use super::Row;

/// All of them; their names begin with `$`.
pub const FUNCTIONS: &[Row] = &[];
