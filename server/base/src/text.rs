//! Truncates text, finds the names nearest to a misspelled one, and says where a part of a value is. `diff` has the
//! difference between two texts, `excerpt` the place of an error in one.

pub mod diff;
pub mod excerpt;

pub use codecall_schema::text::{nearest, path_in, truncate};
