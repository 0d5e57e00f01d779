//! `codecall serve`: MCP on standard input and output, or all endpoints over HTTP.

use super::output::notice;
use super::sources::{RunningHub, Sources};
use super::{CommandError, CommandStatus, reload};
use clap::Args;
use codecall::http::HttpServer;
use codecall::hub::ServerStatus;
use codecall::{Hub, LiveHub};
use std::time::Duration;

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
        let RunningHub { hub, cancel, .. } = self.sources.serve()?;
        let live = LiveHub::from(hub);
        let served = match &self.http {
            Some(address) => {
                let server = HttpServer::bind(address, &live.get().config().http).await?;
                // The system may have chosen the port.
                notice(&format!("listening on http://{}", server.address()));
                print_isolation(&live.get());
                tokio::spawn(announce(live.clone()));
                tokio::spawn(reload::follow(self.sources, live.clone(), cancel.clone()));
                server.serve(live.clone(), cancel).await
            }
            None => {
                print_isolation(&live.get());
                tokio::spawn(reload::follow(self.sources, live.clone(), cancel.clone()));
                codecall::mcp::serve_stdio_until(live.clone(), &cancel).await
            }
        };
        live.close().await;
        served?;
        Ok(CommandStatus::Success)
    }
}

/// Prints that all MCP servers have been connected or have failed.
async fn announce(live: LiveHub) {
    let hub = live.get();
    if hub.catalogue().upstreams().next().is_none() {
        return;
    }
    hub.ready(Duration::MAX).await;
    let status = hub.status();
    let is_up = |server: &&ServerStatus| server.state == "up";
    let (up, all) = (status.servers.iter().filter(is_up).count(), status.servers.len());
    let tools: usize = status.servers.iter().map(|server| server.tools).sum();
    let of = if up == all { String::new() } else { format!(" of {all}") };
    notice(&format!("ready: {up}{of} servers, {tools} tools"));
}

/// Prints how scripts and MCP servers are isolated, if the configuration isolates any.
fn print_isolation(hub: &Hub) {
    if hub.config().is_isolating() {
        for line in hub.isolation() {
            notice(&line);
        }
    }
}
