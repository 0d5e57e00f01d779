//! What is shown, one function a table.

mod peers;

pub use peers::{Row, fresh, kernels};
