//! `codecall serve`: MCP on standard input and output, or all endpoints over HTTP.

use super::output::notice;
use super::sources::{RunningHub, Sources};
use super::{CommandError, CommandStatus, reload, running};
use clap::Args;
use codecall_http::HttpServer;
use codecall_hub::Hub;
use codecall_hub::LiveHub;
use codecall_hub::hub::ServerStatus;
use tokio::sync::watch;

/// Serve the meta-tools over MCP, on standard input and output or over HTTP.
#[derive(Args, Debug)]
pub struct Serve {
    /// Listen on an address: HOST:PORT, or a port of this machine alone (0: any free one). Serves MCP at
    /// /mcp, and /v1/evaluate, /v1/tools/typescript, /v1/chat/completions.
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// Serve a web page for operators at /ui/, and print its address. With --http.
    #[arg(long, requires = "http")]
    ui: bool,
    #[command(flatten)]
    sources: Sources,
}

/// The use of the first address of the page.
pub type FirstLink = Box<dyn FnOnce(&str) + Send>;

impl Serve {
    /// Serves at an address, with the page.
    pub(super) fn with_page(address: String, sources: Sources) -> Self {
        Self { http: Some(address), ui: true, sources }
    }

    /// Serves until the client disconnects or the process gets a signal.
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        self.serve(None).await
    }

    /// Does the same, and gives the first address of the page to `first`.
    pub(super) async fn serve(self, first: Option<FirstLink>) -> Result<CommandStatus, CommandError> {
        crate::allocator::spawn_trimmer();
        let config = self.sources.load()?;
        // Before the servers start: an address in use ends nothing else, and they cannot take the last descriptor.
        let http = match &self.http {
            Some(address) => Some(HttpServer::bind(address, &config.http).await?),
            None => None,
        };
        let RunningHub { hub, cancel, .. } = self.sources.serve(config)?;
        if let Some(history) = hub.history().cloned() {
            tokio::spawn(async move { history.probe().await });
        }
        if http.is_some() {
            match cancel.run_until_cancelled(hub.join_replicas()).await {
                Some(joined) => joined?,
                None => return Ok(CommandStatus::Success),
            }
        }
        let live = LiveHub::from(hub);
        live.follow_replicas();
        live.watch_store(&cancel);
        codecall_hub::meta::resume_runs(&live, &cancel);
        let _offer = running::offer(&self.sources, &live, &cancel);
        let served = match http {
            Some(mut server) => {
                // The system may have chosen the port.
                notice(&format!("listening on http://{}", server.address()));
                if self.ui || live.get().config().http.ui {
                    tokio::spawn(print_links(server.with_page(&live)?, first));
                }
                print_isolation(&live.get());
                tokio::spawn(announce(live.clone()));
                tokio::spawn(reload::follow(self.sources, live.clone(), cancel.clone()));
                server.serve(live.clone(), cancel).await
            }
            None => {
                print_isolation(&live.get());
                tokio::spawn(reload::follow(self.sources, live.clone(), cancel.clone()));
                codecall_mcp::serve_stdio_until(live.clone(), &cancel).await
            }
        };
        live.close().await;
        served?;
        Ok(CommandStatus::Success)
    }
}

/// Prints the address of the page, and each further one when a browser has used the last.
async fn print_links(mut links: watch::Receiver<String>, mut first: Option<FirstLink>) {
    loop {
        let link = links.borrow_and_update().clone();
        let is_first = first.is_some();
        match first.take() {
            Some(first) => first(&link),
            None => notice(&format!("page: {link}")),
        }
        if links.changed().await.is_err() {
            return;
        }
        if is_first {
            notice("the next address is for another browser");
        }
    }
}

/// Prints that all MCP servers have been connected or have failed.
async fn announce(live: LiveHub) {
    let hub = live.get();
    if hub.catalogue().upstreams().next().is_none() {
        return;
    }
    hub.started().await;
    let status = hub.status();
    let is_up = |server: &&ServerStatus| ["up", "idle"].contains(&server.state.as_str());
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
