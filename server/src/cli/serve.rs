//! `codecall serve`: MCP on standard input and output, or all endpoints over HTTP.

use super::sources::Sources;
use super::{CommandError, CommandStatus};
use clap::Args;
use codecall::Hub;
use codecall::http::HttpServer;
use std::io::Write as _;
use std::sync::Arc;

/// Serve the meta-tools over MCP, on standard input and output or over HTTP.
#[derive(Args, Debug)]
pub struct Serve {
    /// Listen on an address: HOST:PORT, or a port of this machine alone (0: any free one). Serves MCP at
    /// /mcp, and /v1/evaluate, /v1/tools/typescript, /v1/chat/completions.
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    #[command(flatten)]
    sources: Sources,
}

impl Serve {
    /// Serves until the client disconnects or the process gets a signal.
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        crate::allocator::spawn_trimmer();
        let running = self.sources.serve()?;
        let served = match &self.http {
            Some(address) => {
                let server = HttpServer::bind(address, &running.hub.config().http).await?;
                // The system may have chosen the port.
                let _ = writeln!(std::io::stderr(), "codecall: listening on http://{}", server.address());
                print_isolation(&running.hub);
                server.serve(Arc::clone(&running.hub), running.cancel.clone()).await
            }
            None => {
                print_isolation(&running.hub);
                codecall::mcp::serve_stdio_until(Arc::clone(&running.hub), &running.cancel).await
            }
        };
        running.hub.close().await;
        served?;
        Ok(CommandStatus::Success)
    }
}

/// Prints how scripts and MCP servers are isolated, if the configuration isolates any.
fn print_isolation(hub: &Hub) {
    if hub.config().is_isolating() {
        for line in hub.isolation() {
            let _ = writeln!(std::io::stderr(), "codecall: {line}");
        }
    }
}
