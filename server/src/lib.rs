//! CodeCall: the server. `mcp` and `http` receive requests, a meta-tool of `meta` answers them, and `runs` executes
//! scripts. Every tool call passes `pipeline` on its way through `catalogue` to an `upstream`.
//!
//! An embedder starts a [`Hub`] with its [`Extensions`]: upstreams, hooks, stores. Secrets that these learn of while the
//! server runs go to [`Hub::secrets`] (before the start: to [`Config::secrets`]). They are redacted from then on in
//! results, errors, descriptions, notifications, logs, audit records and recordings:
//!
//! ```no_run
//! # fn example(hub: &codecall::Hub, key: &str) -> Result<(), codecall::redact::RefusedSecret> {
//! hub.secrets().add(key)?; // refused if it is too short to be found reliably
//! hub.secrets().remove(key); // once nothing uses it any more
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod fuzzing;

pub use codecall_base::error::Error;
pub use codecall_base::{call, client, error, event, files, offload, redact, sandbox, schema, terminal, text, tool};
pub use codecall_config as config;
pub use codecall_config::Config;
pub use codecall_http as http;
pub use codecall_hub::{Changes, Extensions, Hub, LiveHub, front, hub, meta, otel, stateless};
pub use codecall_mcp as mcp;
pub use codecall_runs as runs;
pub use codecall_scripts as scripts;
pub use codecall_skills as skills;
pub use codecall_store as store;
pub use codecall_tools::{catalogue, index, pipeline, result_shapes, results, sample, search, signatures};
pub use codecall_upstream as upstream;
pub use codecall_upstream::confine;
