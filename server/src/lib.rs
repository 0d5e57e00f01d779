//! CodeCall: the server. A request comes in at `front`, a meta-tool of `meta` answers it, scripts
//! are driven by `runs`, and every tool call passes `pipeline` on its way through `catalogue` to an
//! `upstream`.

#![forbid(unsafe_code)]

pub mod call;
pub mod catalogue;
pub mod config;
pub mod confine;
pub mod error;
pub mod event;
pub mod files;
pub mod front;
#[doc(hidden)]
pub mod fuzzing;
pub mod http;
pub mod hub;
pub mod index;
pub mod meta;
pub mod offload;
pub mod pipeline;
pub mod priority;
pub mod redact;
pub mod results;
pub mod runs;
pub mod sample;
pub mod sandbox;
pub mod schema;
pub mod search;
pub mod stateless;
pub mod terminal;
pub mod text;
pub mod tool;
mod typescript;
pub mod upstream;

pub use config::Config;
pub use error::Error;
pub use hub::Hub;
