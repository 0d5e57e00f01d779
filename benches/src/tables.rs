//! The tables, a file for each topic.

pub mod growth;
pub mod memory;
pub mod parts;
pub mod peers;
pub mod steps;
pub mod throughput;
