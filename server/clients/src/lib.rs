//! Configuration files of MCP clients: their places, their servers, the same servers in our own configuration, and
//! changes that start CodeCall instead.
//!
//! ```text
//! Environment ─find─▶ Found (a file of a client) ─convert─▶ Server or Skipped ─merge─▶ Plan ─write─▶ codecall.toml
//!                                └─apply─▶ the client's file, with a backup beside it ─undo─▶ as it was
//! ```
//!
//! Nothing is started, and nothing is written outside of [`change`]. It must not know how a configuration is used.

#![forbid(unsafe_code)]

pub mod change;
mod client;
mod convert;
mod find;
pub mod launch;
pub mod mcpproxy;
mod plan;
mod read;
mod variables;
mod write;

pub use client::{CLIENTS, Client, Platform, Scope};
pub use convert::{Conversion, Need, Server};
pub use find::{Environment, Found, client_of, find};
pub use mcpproxy::Setting;
pub use plan::{Duplicate, Left, Plan, Planned, PlannedSetting, Skipped, plan};
pub use write::{Written, write};
