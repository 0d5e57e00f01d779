//! `codecall serve`: MCP on standard input and output, or everything over HTTP.

use super::session::Sources;
use super::{Fault, Verdict};
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
    /// Serve until the client goes away or a signal comes.
    pub(super) async fn execute(self) -> Result<Verdict, Fault> {
        crate::allocator::give_back();
        let session = self.sources.open(|_| ())?;
        let served = match &self.http {
            Some(address) => {
                let server = HttpServer::bind(address, &session.hub.config().http).await?;
                // Whoever has started it has to learn a port that was chosen here.
                let _ = writeln!(std::io::stderr(), "codecall: listening on http://{}", server.address());
                tell_isolation(&session.hub);
                server.serve(Arc::clone(&session.hub), session.cancel.clone()).await
            }
            None => {
                tell_isolation(&session.hub);
                let serving = codecall::mcp::serve_stdio(Arc::clone(&session.hub));
                session.cancel.run_until_cancelled(serving).await.unwrap_or(Ok(()))
            }
        };
        session.hub.close().await;
        served?;
        Ok(Verdict::Good)
    }
}

/// Say what separates scripts and MCP servers from this process, where that was asked for.
fn tell_isolation(hub: &Hub) {
    if hub.config().is_isolating() {
        for line in hub.isolation() {
            let _ = writeln!(std::io::stderr(), "codecall: {line}");
        }
    }
}
