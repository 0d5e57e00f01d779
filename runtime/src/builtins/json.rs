//! Built-ins: `json`.

use super::Global;

/// Globals of this file.
pub const GLOBALS: &[Global] = &[];

