//! The tools, the search for them, and the chain that every call of one passes. It must not know scripts
//! and runs, nor who asks.

#![forbid(unsafe_code)]

pub mod catalogue;
pub mod index;
pub mod pipeline;
pub mod results;
pub mod sample;
pub mod search;
pub mod result_shapes;
pub mod signatures;
pub mod tokens;
pub mod typescript;
