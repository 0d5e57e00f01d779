//! What tools come from. Every kind of upstream is one file and one arm in [`connect`].
//!
//! An upstream knows its tools and calls them. It decides nothing: who may call what, whether the
//! input fits and how long it may take is the pipeline's business.
//!
//! It must not know who calls, nor when.

#![forbid(unsafe_code)]

pub mod confine;
pub mod demo;
pub mod fixture;
pub mod http;
pub mod incoming;
pub mod inline;
mod lists;
pub mod mcp;
pub mod news;
mod offers;
pub mod session;
pub mod stdio;

use codecall_base::call::RunScope;
use codecall_base::error::Error;
use codecall_base::event::Listener;
use codecall_base::tool::{ToolDefinition, ToolError, ToolResult};
use codecall_config::{UpstreamConfig, UpstreamKind};
pub use futures_util::future::BoxFuture;
pub use news::News;
pub use offers::Offers;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A group of tools with one owner.
pub trait Upstream: Send + Sync {
    /// The id of the app that its tools belong to.
    fn app(&self) -> &str;

    /// Its kind, as clients see it: `mcp`, `openapi`, `inline`, `mock`, …
    fn source(&self) -> &'static str;

    /// Its tools at this moment. Empty while it has never been reached.
    fn tools(&self) -> Vec<Arc<ToolDefinition>>;

    /// Call one of its tools. Dropping the future abandons the call.
    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>>;

    /// Counts up whenever [`Upstream::tools`] gives something new; absent: it never changes.
    fn changed(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// Its resources and prompts; absent: it has none.
    fn offers(&self) -> Option<&dyn Offers> {
        None
    }

    /// Why its tools do not work at the moment; absent: they do.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// A name for people; absent: nobody has said one.
    fn title(&self) -> Option<String> {
        None
    }

    /// Resolves when it has been reached or has failed for the first time.
    fn settled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Let go of everything it holds, child processes above all. Nothing is called after it.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// One call of a tool, checked and allowed.
#[derive(Clone, Debug)]
pub struct UpstreamCall {
    /// The tool, as the upstream has described it.
    pub tool: Arc<ToolDefinition>,
    /// The input.
    pub input: Map<String, Value>,
    /// How long it may take; the caller waits no longer.
    pub timeout: Duration,
    /// Fires when nobody wants the result any more.
    pub cancel: CancellationToken,
    /// The run whose script makes it: a tool that runs scripts itself hands it on to them. Absent: no script does.
    pub run: Option<RunScope>,
    /// Who is told how far it has come.
    pub listener: Listener,
}

/// Start an upstream. It is given back at once and connects on its own: its tools come when it is
/// reached, and a failure is retried.
///
/// # Errors
/// What the configuration asks for does not exist.
pub fn connect(app: &str, config: &UpstreamConfig) -> Result<Arc<dyn Upstream>, Error> {
    match &config.kind {
        UpstreamKind::Stdio(_) | UpstreamKind::Http(_) => Ok(session::McpServer::start(app, config)),
    }
}
