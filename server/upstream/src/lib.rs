//! Upstreams: where tools come from. Each kind of upstream is one file and one arm in [`connect`].
//!
//! An upstream lists its tools and calls them. It decides nothing: the pipeline checks who may call a tool, whether
//! the input is valid, and how long the call may take.
//!
//! It must not know who makes a call, nor when.

#![forbid(unsafe_code)]

mod answer;
pub mod confine;
pub mod demo;
pub mod fetch;
pub mod fixture;
pub mod guard;
pub mod http;
pub mod incoming;
pub mod inline;
pub mod mcp;
mod mend;
mod metadata;
pub mod negotiate;
pub mod notifications;
pub mod oauth;
pub mod openapi;
pub mod questions;
mod ordered;
mod pagination;
mod resources;
pub mod session;
pub mod start_queue;
pub mod stdio;
pub mod unusable;

use codecall_base::call::RunScope;
use codecall_base::client::Client;
use codecall_base::error::Error;
use codecall_base::event::UpdateSink;
use codecall_base::redact::SecretRegistry;
use codecall_base::tool::{ToolDefinition, ToolError, ToolResult};
use codecall_config::{UpstreamConfig, UpstreamKind};
use codecall_store::Stores;
pub use futures_util::future::BoxFuture;
pub use notifications::UpstreamNotification;
pub use resources::{ResourcesAndPrompts, SkillList};
use serde_json::{Map, Value};
pub use start_queue::StartQueue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A group of tools with one owner.
pub trait Upstream: Send + Sync {
    /// Returns the id of the app that its tools belong to.
    fn app(&self) -> &str;

    /// Returns its kind, as clients see it: `mcp`, `openapi`, `inline`, `mock`, …
    fn source(&self) -> &'static str;

    /// Returns its current tools. Before the first connection, they are those of an earlier one.
    fn tools(&self) -> Vec<Arc<ToolDefinition>>;

    /// Calls one of its tools. Dropping the future cancels the call.
    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>>;

    /// Returns a counter that increases whenever [`Upstream::tools`] changes; `None` if the tools never change.
    fn tools_changed(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// Returns access to its resources and prompts; `None` if it has none.
    fn resources_and_prompts(&self) -> Option<&dyn ResourcesAndPrompts> {
        None
    }

    /// Returns why its tools are unavailable at the moment; `None` if they are available.
    fn unavailable_reason(&self) -> Option<String> {
        None
    }

    /// Returns what is odd about its tools: what is left out, and what is mended; a sentence each.
    fn oddities(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the tools that cannot be used as they are now, such as script tools that do not parse. [`Upstream::tools`] has
    /// those of them whose last good version stays in use.
    fn broken_tools(&self) -> Vec<BrokenTool> {
        Vec::new()
    }

    /// Returns the last lines that its processes have written to stderr, without secrets.
    fn last_lines(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether its tools are unavailable until a person has logged in.
    fn needs_login(&self) -> bool {
        false
    }

    /// Whether an attempt to connect that calls wait for is under way, or waits for its turn.
    fn is_starting(&self) -> bool {
        false
    }

    /// Whether there is no connection, and a call makes one.
    fn is_idle(&self) -> bool {
        false
    }

    /// Returns the last lines of stderr of a process that has ended, for operators; none while it works.
    fn last_output(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether [`Upstream::tools`] are its tools: those of this connection, or those of an earlier one. If not, it has not
    /// connected yet.
    fn are_tools_known(&self) -> bool {
        true
    }

    /// Resolves when what an earlier process has stored of its tools is read, or its tools if they are in files. Returns whether
    /// there was something stored.
    fn recalled(&self) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(false))
    }

    /// Resolves when its tools are known, or the first attempt to connect has failed.
    fn tools_known(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Returns its name for people, if it has one.
    fn title(&self) -> Option<String> {
        None
    }

    /// Resolves when an attempt to connect begins, which may wait until others have ended, or until it is needed.
    fn start_begun(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Resolves when no attempt to connect is under way or waits for its turn: it has succeeded or failed, or nobody needs it.
    fn start_ended(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Has an attempt to connect begin before those of upstreams that nobody needs, unless there is a connection.
    fn need(&self) {}

    /// Does the same, and resolves when the attempt has succeeded or failed.
    fn first_attempt(&self) -> BoxFuture<'_, ()> {
        self.start_ended()
    }

    /// Looks now whether what its tools are made of has changed, if that is not an MCP server, which says so itself.
    fn refresh(&self) {}

    /// Releases all resources, such as child processes. No other method is called afterwards.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A tool that cannot be used as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokenTool {
    /// Its name, without the app.
    pub name: String,
    /// Its source: the name of a file.
    pub file: String,
    /// Why it cannot be used, in one line that begins with the file and the place.
    pub reason: String,
    /// The code of an error that says so.
    pub code: String,
    /// All that is wrong, for programs.
    pub diagnostics: Value,
    /// Whether its last good version stays in use.
    pub has_good_version: bool,
}

/// A tool call that the pipeline has checked and allowed.
#[derive(Clone, Debug)]
pub struct UpstreamCall {
    /// The tool, as the upstream describes it.
    pub tool: Arc<ToolDefinition>,
    /// The input.
    pub input: Map<String, Value>,
    /// The time limit of the call. The caller enforces it; the upstream may use it too.
    pub timeout: Duration,
    /// Cancelled when the result is no longer wanted.
    pub cancel: CancellationToken,
    /// The run whose script makes the call; `None` if no script does. A tool that runs scripts itself passes it on to
    /// them.
    pub run: Option<RunScope>,
    /// The client that the tool can ask. A tool that runs scripts itself passes it on to them.
    pub client: Client,
    /// Receives progress and log messages of the call.
    pub sink: UpdateSink,
    /// Whether the call may have been sent. An upstream that knows when it sends calls says so.
    pub sent: Arc<AtomicBool>,
}

impl UpstreamCall {
    /// Says whether the call may have been sent: a failed one that was not can be made again.
    pub fn set_sent(&self, is_sent: bool) {
        self.sent.store(is_sent, Ordering::Relaxed);
    }

    /// Returns a text that is the same when the call is made again, because it is not known whether it was answered; `None` if
    /// that cannot happen. A tool that knows it already can return what it has answered before.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<String> {
        let run = self.run.as_ref()?;
        Some(format!("{}:{}", run.id, run.pause.as_ref()?.call))
    }
}

/// The settings with which servers are started.
#[derive(Clone, Copy)]
pub struct Start<'a> {
    /// Redacted in what they log.
    pub secrets: &'a Arc<SecretRegistry>,
    /// The stores with records of servers, and their tokens.
    pub stores: &'a Stores,
    /// Where their processes wait for their turn.
    pub queue: &'a Arc<StartQueue>,
    /// Whether a server whose tools are known starts when it is needed.
    pub is_lazy: bool,
    /// After how long without a request its process is stopped; `None`: never.
    pub idle_stop: Option<Duration>,
}

/// Starts an upstream. It connects in the background and retries after a failure; its tools appear once it is
/// connected, or at once if the stores know them from an earlier connection.
///
/// # Errors
/// The configured kind of upstream does not exist.
pub fn connect(app: &str, config: &UpstreamConfig, start: &Start<'_>) -> Result<Arc<dyn Upstream>, Error> {
    match &config.kind {
        UpstreamKind::Stdio(_) | UpstreamKind::Http(_) => Ok(session::McpServer::start(app, config, start)),
    }
}
