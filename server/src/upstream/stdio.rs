//! MCP servers as child processes.

use super::*;
use crate::config::StdioConfig;

/// A child process that speaks MCP on its standard streams.
pub struct Stdio {}

impl Stdio {
    /// Start it.
    pub fn start(_app: &str, _config: &StdioConfig) -> Arc<dyn Upstream> {
        Arc::new(Self {})
    }
}

impl Upstream for Stdio {
    fn app(&self) -> &str {
        ""
    }

    fn source(&self) -> &'static str {
        "mcp"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        Vec::new()
    }

    fn call(&self, _call: UpstreamCall) -> BoxFuture<'_, Result<Value, ToolError>> {
        Box::pin(std::future::ready(Ok(Value::Null)))
    }
}
