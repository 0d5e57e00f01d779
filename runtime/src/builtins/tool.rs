//! Built-ins: `tool`.

use super::Global;

/// Globals of this file.
pub const GLOBALS: &[Global] = &[];

