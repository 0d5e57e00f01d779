//! Tests of the whole program: the command line, MCP clients, MCP servers, HTTP.
//!
//! They are one binary, so that only one is linked. `third_party` has the servers and clients of other projects.
//! Tests that need Node or Python, or take long, are ignored; `bash .ci/run` runs them too.

mod access_control;
mod approvals;
mod authorization;
mod authorization_server;
mod chat;
mod cli;
mod code_execution;
mod compose;
mod connections;
mod definitions;
mod describe;
#[cfg(unix)]
mod durable;
mod edges;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(unix)]
mod find_again;
mod fronts;
mod full_server;
#[cfg(unix)]
mod hostile;
mod history;
mod http;
mod http_clients;
mod impersonation;
mod init;
mod interactive;
#[cfg(target_os = "linux")]
mod isolation;
#[cfg(unix)]
mod journals;
#[cfg(all(target_os = "linux", feature = "keyring"))]
mod keyring;
mod large_data;
#[cfg(unix)]
mod leases;
#[cfg(unix)]
mod mistakes;
#[cfg(unix)]
mod model;
mod model_server;
#[cfg(unix)]
mod oddities;
mod openapi;
mod operation;
mod owners;
mod page;
mod pipeline;
mod pool;
#[cfg(any(all(unix, feature = "postgres"), target_os = "linux"))]
#[path = "../../store/src/database/tests/server.rs"]
mod postgres_server;
mod protocol;
mod quarantine;
#[cfg(unix)]
mod reports;
#[cfg(all(unix, feature = "postgres"))]
mod replicas;
#[cfg(all(unix, feature = "restate"))]
mod restate;
#[cfg(target_os = "linux")]
mod running;
mod runs;
mod script_fetch;
mod saved_scripts;
mod script_tools;
mod search;
#[cfg(unix)]
mod secrets;
#[cfg(unix)]
mod skills;
mod starts;
mod stateless;
#[cfg(unix)]
mod store_loss;
mod statuses;
#[cfg(unix)]
mod stored_secrets;
mod support;
#[cfg(feature = "otel")]
mod telemetry;
mod third_party;
mod upstream_server;
mod waiting;
mod warnings;
#[cfg(unix)]
mod tool_directory;
