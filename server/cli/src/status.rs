//! `codecall status`: how a server is, and each of its MCP servers.

use super::request::{Output, Reply, Request};
use super::running::{ServerFlag, Target};
use super::sources::{Need, Sources};
use super::{CommandError, CommandStatus};
use clap::Args;
use codecall_hub::hub::{BrokenStatus, ServerStatus, Status as Report};
use std::time::Duration;
use url::Url;

/// How long a server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Show the state of each MCP server: of a running server, or after starting them.
#[derive(Args, Debug)]
pub struct Status {
    /// Ask the server at this address, such as http://127.0.0.1:8931. Without it, a running server of this configuration is
    /// asked; if there is none, the MCP servers are started, and ended afterwards.
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
    server: ServerFlag,
    #[command(flatten)]
    sources: Sources,
}

impl Status {
    /// Succeeds if all MCP servers are up, and the store can be used.
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        if let Some(url) = &self.url {
            if self.live {
                request(url, "/healthz", None).await?;
                return Ok(CommandStatus::Success);
            }
            return reply(&ask(url, self.token.as_deref()).await?, self.json).print();
        }
        let request = Request::Status { is_json: self.json };
        if let Some(mut server) = Target::running(&self.sources, self.server).await? {
            return server.ask(request).await?.map_or(Ok(CommandStatus::Failure), Reply::print);
        }
        let running = self.sources.open_all()?;
        running.wait_for(Need::Connection, |_| true).await;
        let reply = request.answer(&running).await;
        running.hub.close().await;
        reply.print()
    }
}

/// Returns what the command prints. It succeeds if all MCP servers are up, and the store can be used.
pub(super) fn reply(report: &Report, is_json: bool) -> Reply {
    let store_error = report.store.as_ref().and_then(|store| store.error.as_deref());
    let is_success =
        store_error.is_none() && report.servers.iter().all(|server| ["up", "idle"].contains(&server.state.as_str()));
    let output = if is_json {
        Output::Json(serde_json::to_string(report).unwrap_or_default())
    } else {
        let names = ["server", "kind", "state", "tools", "start", "last error"].map(str::to_owned).to_vec();
        Output::Table { names, rows: report.servers.iter().map(row).collect() }
    };
    let oddities = report
        .servers
        .iter()
        .flat_map(|server| server.oddities.iter().map(|oddity| format!("{}: {oddity}", server.app)));
    let outputs = report.servers.iter().filter(|server| !server.last_output.is_empty());
    let outputs = outputs.map(|server| format!("{}: its last output: {}", server.app, server.last_output.join(" | ")));
    let fronts = report.fronts.iter().map(|(client, fronts)| format!("front of {client}: {}", fronts.join(", ")));
    let notes = oddities.chain(outputs).chain(fronts).chain(store_error.map(str::to_owned)).collect();
    Reply { output, notes, is_success }
}

fn row(server: &ServerStatus) -> Vec<String> {
    let start = server.start_ms.map(|ms| format!("{ms} ms")).unwrap_or_default();
    let ServerStatus { app, source, state, tools, pending, error, broken, .. } = server;
    let in_use = |tool: &BrokenStatus| if tool.has_good_version { "; its last good version stays in use" } else { "" };
    let errors = broken.iter().map(|tool| format!("{}{}", tool.error, in_use(tool)));
    let errors: Vec<String> = error.iter().cloned().chain(errors).collect();
    let waiting = if *pending == 0 { String::new() } else { format!(" ({pending} wait for approval)") };
    let tools = format!("{tools}{waiting}");
    vec![app.clone(), source.clone(), state.clone(), tools, start, errors.join(" | ")]
}

async fn ask(url: &str, token: Option<&str>) -> Result<Report, CommandError> {
    let body = request(url, "/v1/status", token).await?;
    serde_json::from_slice(&body)
        .map_err(|_| CommandError::new(format!("{url}: its answer is not that of 'codecall serve --http'")))
}

/// The body of a successful answer.
async fn request(url: &str, path: &str, token: Option<&str>) -> Result<Vec<u8>, CommandError> {
    let address = format!("{}{path}", url.trim_end_matches('/'));
    // An address may contain a password.
    let shown = Url::parse(url).ok().filter(Url::has_host).map(|url| url.origin().ascii_serialization());
    let shown = shown.unwrap_or_else(|| "the address of --url".to_owned());
    let failed = |problem: String| CommandError::new(format!("{shown}: {problem}"));
    let client = codecall_http::client(TIMEOUT).map_err(|error| failed(error.to_string()))?;
    let mut request = client.get(address);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    // The message of the library names the address.
    let response = request.send().await.map_err(|error| match error.is_connect() {
        true => failed("nothing answers there".into()).with_help("start a server with 'codecall serve --http ADDRESS'"),
        false => failed(error.without_url().to_string()),
    })?;
    match response.status().as_u16() {
        200 => {}
        401 => return Err(failed("it wants a token".into()).with_help("give --token, or CODECALL_HTTP_TOKEN")),
        status => return Err(failed(format!("it answers with status {status}; is it 'codecall serve --http'?"))),
    }
    let body = response.bytes().await.map_err(|error| failed(error.without_url().to_string()))?;
    Ok(body.into())
}
