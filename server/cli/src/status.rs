//! `codecall status`: how a server is, and each of its MCP servers.

use super::sources::{Need, Sources};
use super::{CommandError, CommandStatus, output};
use clap::Args;
use codecall_hub::hub::{ServerStatus, Status as Report};
use std::time::Duration;

/// How long a server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Show the state of each MCP server: of a running server, or after starting them.
#[derive(Args, Debug)]
pub struct Status {
    /// Ask the server at this address, such as http://127.0.0.1:8931. Without it the MCP servers of the configuration are
    /// started, and ended afterwards.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The token of the server at `--url`.
    #[arg(long, value_name = "TOKEN", env = "CODECALL_HTTP_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Only ask the server at `--url` whether it answers, which needs no token: for health checks of containers.
    #[arg(long, requires = "url", conflicts_with = "json")]
    live: bool,
    #[command(flatten)]
    sources: Sources,
}

impl Status {
    /// Succeeds if all MCP servers are up.
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let report = match &self.url {
            Some(url) if self.live => {
                request(url, "/healthz", None).await?;
                return Ok(CommandStatus::Success);
            }
            Some(url) => ask(url, self.token.as_deref()).await?,
            None => {
                let running = self.sources.open_all()?;
                running.wait_for(Need::Connection, |_| true).await;
                let report = running.hub.status();
                running.hub.close().await;
                report
            }
        };
        let is_up = report.servers.iter().all(|server| server.state == "up");
        if self.json {
            output::print_json(&serde_json::to_string(&report).unwrap_or_default())?;
        } else {
            output::print_table(
                &["server", "kind", "state", "tools", "start", "last error"],
                report.servers.iter().map(row).collect(),
            )?;
        }
        Ok(CommandStatus::from_success(is_up))
    }
}

fn row(server: &ServerStatus) -> Vec<String> {
    let start = server.start_ms.map(|ms| format!("{ms} ms")).unwrap_or_default();
    let ServerStatus { app, source, state, tools, pending, error, .. } = server;
    let waiting = if *pending == 0 { String::new() } else { format!(" ({pending} wait for approval)") };
    let tools = format!("{tools}{waiting}");
    vec![app.clone(), source.clone(), state.clone(), tools, start, error.clone().unwrap_or_default()]
}

async fn ask(url: &str, token: Option<&str>) -> Result<Report, CommandError> {
    let body = request(url, "/v1/status", token).await?;
    serde_json::from_slice(&body)
        .map_err(|_| CommandError::new(format!("{url}: its answer is not that of 'codecall serve --http'")))
}

/// The body of a successful answer.
async fn request(url: &str, path: &str, token: Option<&str>) -> Result<Vec<u8>, CommandError> {
    let address = format!("{}{path}", url.trim_end_matches('/'));
    let failed = |problem: String| CommandError::new(format!("{url}: {problem}"));
    let client = codecall_http::client(TIMEOUT).map_err(|error| failed(error.to_string()))?;
    let mut request = client.get(address);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    // The message of the library names the address, which may contain a password.
    let response = request.send().await.map_err(|error| failed(error.without_url().to_string()))?;
    match response.status().as_u16() {
        200 => {}
        401 => return Err(failed("it wants a token".into()).with_help("give --token, or CODECALL_HTTP_TOKEN")),
        status => return Err(failed(format!("it answers with status {status}; is it 'codecall serve --http'?"))),
    }
    let body = response.bytes().await.map_err(|error| failed(error.without_url().to_string()))?;
    Ok(body.into())
}
