//! The program from outside: the command line, MCP clients in front, MCP servers behind.
//!
//! One binary, so that there is one to link. Servers and clients of others are in `others`; they are
//! skipped, with a line that says so, where their packages are not installed (see `.ci/run`).

mod bounds;
mod bypass;
mod capture;
mod chain;
mod chat;
mod cli;
mod code_execution;
mod describe;
#[cfg(unix)]
mod edges;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(unix)]
mod hostile;
mod http;
#[cfg(target_os = "linux")]
mod isolation;
mod kit;
mod model;
mod others;
mod pool;
mod protocol;
mod runs;
mod search;
mod stateless;
mod statuses;
