//! The hub of a process: runs, meta-tools and steps over one catalogue of tools.
//!
//! This crate does not know how a request arrives: neither a protocol nor a command line.

#![forbid(unsafe_code)]

pub mod front;
pub mod hub;
pub mod meta;
pub mod otel;
pub mod stateless;

pub use hub::{Changes, Extensions, Hub, LiveHub};
