//! The types that all of CodeCall shares (tools, calls, events of runs, errors), and functions that make untrusted
//! text, values and files safe to handle. It must not know the configuration, nor where tools come from.

#![forbid(unsafe_code)]

pub mod address;
pub mod call;
pub mod client;
pub mod error;
pub mod event;
pub mod files;
pub mod hidden;
pub mod json;
pub mod offload;
pub mod priority;
pub mod rates;
pub mod redact;
pub mod sandbox;
pub mod schema;
pub mod shape;
pub mod telemetry;
pub mod terminal;
pub mod text;
pub mod tool;
