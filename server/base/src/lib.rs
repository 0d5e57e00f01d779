//! The vocabulary of CodeCall: what a tool, a call, a run and an error are, and what keeps texts, values and files of
//! others harmless. It must not know the configuration, nor what tools come from.

#![forbid(unsafe_code)]

pub mod call;
pub mod error;
pub mod event;
pub mod files;
pub mod json;
pub mod offload;
pub mod priority;
pub mod redact;
pub mod sandbox;
pub mod schema;
pub mod terminal;
pub mod text;
pub mod tool;
