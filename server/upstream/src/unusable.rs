//! Servers whose entries of the configuration cannot be used. They have no tools, and say why.

use crate::{BoxFuture, Upstream, UpstreamCall};
use codecall_base::tool::{ErrorCode, ToolDefinition, ToolError, ToolResult};
use codecall_config::UnusableServer;
use std::sync::Arc;

/// A server that cannot be started.
pub struct Unusable {
    app: String,
    source: &'static str,
    reason: String,
}

impl Unusable {
    /// Creates the upstream of a server that cannot be used, and logs why.
    #[must_use]
    pub fn start(app: &str, server: &UnusableServer) -> Arc<dyn Upstream> {
        tracing::warn!(app, "the server is switched off: {}", server.reason);
        let reason = format!("The server '{app}' is switched off: {}", server.reason);
        Arc::new(Self { app: app.to_owned(), source: server.source, reason })
    }
}

impl Upstream for Unusable {
    fn app(&self) -> &str {
        &self.app
    }

    fn source(&self) -> &'static str {
        self.source
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        Vec::new()
    }

    fn call(&self, _call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(std::future::ready(Err(ToolError::new(ErrorCode::ServerUnavailable, self.reason.clone()))))
    }

    fn unavailable_reason(&self) -> Option<String> {
        Some(self.reason.clone())
    }

    fn are_tools_known(&self) -> bool {
        false
    }
}
