//! Tests of the whole program: the command line, MCP clients, MCP servers, HTTP.
//!
//! They are one binary, so that only one is linked. `third_party` has the servers and clients of other projects. Its
//! tests are skipped, with a message, if their packages are not installed (see `.ci/run`).

mod access_control;
mod chat;
mod cli;
mod code_execution;
mod connections;
mod describe;
#[cfg(unix)]
mod edges;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(unix)]
mod hostile;
mod http;
mod impersonation;
mod init;
#[cfg(target_os = "linux")]
mod isolation;
mod large_data;
mod model_server;
mod openapi;
mod operation;
mod pipeline;
mod pool;
mod protocol;
#[cfg(unix)]
mod reports;
mod runs;
mod search;
#[cfg(unix)]
mod secrets;
mod stateless;
mod statuses;
mod support;
mod third_party;
#[cfg(unix)]
mod tool_directory;
