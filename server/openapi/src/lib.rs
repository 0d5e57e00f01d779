//! OpenAPI descriptions of HTTP services, converted to tools; inputs of these tools, converted to HTTP requests.
//!
//! A description is untrusted and often wrong, so nothing is read with types. It stays JSON, and each operation takes
//! from it what can be used. An operation that cannot become a tool is left out with a reason. Sizes are limited
//! ([`limits`]), and recursion only follows the depth of a text, which its parser limits; references are followed in
//! loops.
//!
//! It must not know the network, files or the configuration: texts come in, requests go out.

#![forbid(unsafe_code)]

mod body;
pub mod charset;
mod describe;
mod document;
mod input;
pub mod limits;
mod name;
mod operation;
mod parameter;
mod read;
mod request;
mod schema;
mod security;
mod server;
mod style;
mod yaml;

pub use describe::{Api, LeftOut, Settings, describe};
pub use document::Documents;
pub use operation::{Filter, Operation};
pub use read::{Parsed, parse};
pub use request::{Credential, Request};

#[cfg(test)]
mod tests;
