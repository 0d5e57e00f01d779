//! The client of a Restate server, as the engine of a hub: submits runs, and says where they stand. Its administration registers workers.

use crate::code::StartRecord;
use crate::worker::version;
use codecall_base::event::RunId;
use codecall_base::tool::DirectoryId;
use codecall_config::DurableConfig;
use codecall_hub::hub::{DurableEngine, EngineProblem, Found};
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The workflow that evaluates a run; its key is the id of the run.
const CODE: &str = "Code";
/// The object that keeps a directory of tools; its key is the digest.
const SNAPSHOTS: &str = "Snapshots";
/// The service that passes on what people have decided.
const PEOPLE: &str = "People";

/// How long the server may take for an answer that it need not wait for.
const TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of an answer, in bytes.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Maximum length of an answer in a message, in bytes.
const MAX_QUOTED_BYTES: usize = 300;
/// After how long a directory of tools is stored again, so that it does not expire.
const STORE_AGAIN: Duration = Duration::from_secs(86_400);
/// How long a run that was sent may take to begin.
const BEGIN: Duration = Duration::from_secs(10);

/// Why Restate cannot be used, and what to do. No message contains an address, which may contain a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestateProblem {
    /// Its address is none.
    #[error("durable.restate and durable.restateAdmin are addresses: write http://HOST:PORT")]
    Address,
    /// It does not answer.
    #[error("Restate cannot be reached: {0}. Start it, or correct durable.restate")]
    Unreachable(String),
    /// It answers something else than Restate does.
    #[error("Restate answers what is not expected: {0}. Is durable.restate the address of its ingress?")]
    Unexpected(String),
    /// No worker is registered.
    #[error("Restate knows no worker; start one with 'codecall worker --restate URL'")]
    NoWorker,
    /// Another version is registered at the address of a worker.
    #[error(
        "{0} is registered at the address of this worker, and its runs need it: use another address, and 'codecall worker drain' \
         when that version is no longer needed"
    )]
    OtherVersion(String),
    /// The run has not begun.
    #[error("no worker has begun the run yet; try again later")]
    NotBegun,
}

impl From<RestateProblem> for EngineProblem {
    fn from(problem: RestateProblem) -> Self {
        Self(problem.to_string())
    }
}

/// The client of a Restate server.
pub struct RestateClient {
    ingress: String,
    admin: String,
    http: reqwest::Client,
    /// The digests of directories of tools that are stored, and when they were.
    stored: Mutex<HashMap<DirectoryId, (String, Instant)>>,
}

/// An answer of the server.
struct Received {
    status: u16,
    body: Vec<u8>,
}

impl Received {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl RestateClient {
    /// Creates the client of the server with this ingress. Its administration is on port 9070 of the same machine if it is not named.
    ///
    /// # Errors
    /// An address is none.
    pub fn new(ingress: &str, admin: Option<&str>) -> Result<Self, RestateProblem> {
        let parse = |text: &str| match reqwest::Url::parse(text) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
            Ok(_) | Err(_) => Err(RestateProblem::Address),
        };
        let url = parse(ingress)?;
        let admin = match admin {
            Some(admin) => parse(admin)?,
            None => {
                let mut admin = url.clone();
                admin.set_port(Some(9070)).map_err(|()| RestateProblem::Address)?;
                admin
            }
        };
        // It fails if there is a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT).no_proxy();
        let http = builder.redirect(reqwest::redirect::Policy::none()).build();
        let http = http.map_err(|_| RestateProblem::Address)?;
        let plain = |url: &reqwest::Url| url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { ingress: plain(&url), admin: plain(&admin), http, stored: Mutex::default() })
    }

    /// Creates the client of the server that a configuration names; `None`: it names none.
    ///
    /// # Errors
    /// An address is none.
    pub fn configured(config: &DurableConfig) -> Result<Option<Arc<Self>>, RestateProblem> {
        let ingress = config.restate.as_deref().filter(|_| config.has_engine());
        ingress.map(|ingress| Self::new(ingress, config.restate_admin.as_deref()).map(Arc::new)).transpose()
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Received, RestateProblem> {
        let unreachable = |error: reqwest::Error| {
            let error = error.without_url();
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            RestateProblem::Unreachable(format!("{error}{cause}"))
        };
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status().as_u16();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(unexpected(status, "it is too long"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Received { status, body })
    }

    /// Posts to the ingress: a body with its media type, or nothing.
    async fn post(&self, path: &str, body: Option<(Vec<u8>, &str)>) -> Result<Received, RestateProblem> {
        let request = self.http.post(format!("{}/{path}", self.ingress)).timeout(TIMEOUT);
        let request = match body {
            Some((body, media)) => request.header("content-type", media).body(body),
            None => request,
        };
        let received = self.send(request).await?;
        match received.status {
            200..=299 => Ok(received),
            404 if received.text().contains("service") => Err(RestateProblem::NoWorker),
            status => Err(unexpected(status, &received.text())),
        }
    }

    /// Passes on that somebody has decided on a call of a run, and when, in milliseconds since 1970.
    ///
    /// # Errors
    /// Restate cannot be used.
    pub async fn decided(&self, run: &str, approval: &str, at_ms: i64) -> Result<(), RestateProblem> {
        let body = json!({"run": run, "approval": approval, "atMs": at_ms}).to_string();
        let request = self.http.post(format!("{}/{PEOPLE}/decide/send", self.ingress)).timeout(TIMEOUT);
        // However many workers see the decision.
        let request = request.header("idempotency-key", approval).header("content-type", "application/json").body(body);
        let received = self.send(request).await?;
        match received.status {
            200..=299 => Ok(()),
            status => Err(unexpected(status, &received.text())),
        }
    }

    /// Returns a directory of tools.
    ///
    /// # Errors
    /// There is none of this digest, or Restate cannot be used.
    pub async fn tools(&self, digest: &str) -> Result<Vec<u8>, RestateProblem> {
        let received = self.post(&format!("{SNAPSHOTS}/{digest}/get"), None).await?;
        Ok(received.body)
    }

    /// Asks the administration.
    async fn ask_admin(
        &self,
        method: reqwest::Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<(u16, Value), RestateProblem> {
        let request = self.http.request(method, format!("{}/{path}", self.admin)).timeout(TIMEOUT);
        let request = request.header("accept", "application/json");
        let request = match body {
            Some(body) => request.header("content-type", "application/json").body(body.to_string()),
            None => request,
        };
        let received = self.send(request).await?;
        if received.body.is_empty() {
            return Ok((received.status, Value::Null));
        }
        match serde_json::from_slice(&received.body) {
            Ok(answer) => Ok((received.status, answer)),
            Err(_) => Err(unexpected(received.status, &received.text())),
        }
    }

    async fn query(&self, sql: &str) -> Result<Vec<Value>, RestateProblem> {
        let (status, mut answer) = self.ask_admin(reqwest::Method::POST, "query", Some(json!({"query": sql}))).await?;
        match answer["rows"].take() {
            Value::Array(rows) if status == 200 => Ok(rows),
            _ => Err(unexpected(status, &answer.to_string())),
        }
    }

    /// Registers a worker at an address. Returns the id of its deployment.
    ///
    /// # Errors
    /// Restate does not take it, or knows a worker of another version there.
    pub async fn register(&self, address: &str) -> Result<String, RestateProblem> {
        let body = json!({"uri": address});
        let (status, answer) = self.ask_admin(reqwest::Method::POST, "deployments", Some(body)).await?;
        let Some(id) = answer["id"].as_str().filter(|_| (200..300).contains(&status)) else {
            return Err(unexpected(status, &answer.to_string()));
        };
        // Restate does not ask again what it knows. Another version registered at this address by mistake would spoil its runs.
        let services = answer["services"].as_array().into_iter().flatten();
        let mut versions = services.map(|service| service["metadata"]["worker"].as_str());
        let own = version();
        match versions.find(|known| *known != Some(&own)) {
            Some(other) => Err(RestateProblem::OtherVersion(other.unwrap_or("an earlier version").to_owned())),
            None => Ok(id.to_owned()),
        }
    }

    /// Returns the deployments of workers, the latest last.
    ///
    /// # Errors
    /// The administration cannot be used.
    pub async fn deployments(&self) -> Result<Vec<Deployment>, RestateProblem> {
        let sql = format!(
            "SELECT d.id AS id, d.endpoint AS address, s.name AS service FROM sys_deployment d \
             LEFT JOIN sys_service s ON s.deployment_id = d.id AND s.name = '{CODE}' ORDER BY d.created_at"
        );
        let rows = self.query(&sql).await?;
        let open = "SELECT pinned_deployment_id AS id, count(*) AS open FROM sys_invocation \
                    WHERE status != 'completed' AND pinned_deployment_id IS NOT NULL GROUP BY pinned_deployment_id";
        let open = self.query(open).await?;
        let of = |id: &str| open.iter().find(|row| row["id"] == id).and_then(|row| row["open"].as_u64());
        let deployment = |row: &Value| {
            let id = row["id"].as_str()?.to_owned();
            let open = of(&id).unwrap_or_default();
            let address = row["address"].as_str().unwrap_or_default().to_owned();
            Some(Deployment { id, address, is_latest: row["service"].is_string(), open })
        };
        Ok(rows.iter().filter_map(deployment).collect())
    }

    /// Removes a deployment without open invocations.
    ///
    /// # Errors
    /// The administration cannot be used.
    pub async fn remove(&self, deployment: &str) -> Result<(), RestateProblem> {
        let path = format!("deployments/{deployment}?force=true");
        match self.ask_admin(reqwest::Method::DELETE, &path, None).await? {
            (200..=299, _) => Ok(()),
            (status, answer) => Err(unexpected(status, &answer.to_string())),
        }
    }
}

impl DurableEngine for RestateClient {
    fn submit<'a>(&'a self, run: &'a RunId, start: &'a str) -> BoxFuture<'a, Result<bool, EngineProblem>> {
        Box::pin(async move {
            let path = format!("{CODE}/{run}/run/send");
            let received = self.post(&path, Some((start.into(), "application/json"))).await?;
            let answer: Value = serde_json::from_slice(&received.body).unwrap_or_default();
            match (answer["invocationId"].as_str(), answer["status"].as_str()) {
                (Some(_), Some("Accepted")) => Ok(true),
                (Some(_), Some("PreviouslyAccepted")) => Ok(false),
                _ => Err(unexpected(received.status, &received.text()).into()),
            }
        })
    }

    fn run<'a>(
        &'a self,
        run: &'a RunId,
        start: &'a str,
        wait: Duration,
    ) -> BoxFuture<'a, Result<Found, EngineProblem>> {
        Box::pin(async move {
            let request = self.http.post(format!("{}/{CODE}/{run}/run", self.ingress));
            let request = request.header("content-type", "application/json").body(start.to_owned());
            match tokio::time::timeout(wait, self.send(request)).await {
                Ok(received) => Ok(found(&received?)?),
                Err(_) => Ok(Found::Open),
            }
        })
    }

    fn find<'a>(&'a self, run: &'a RunId, wait: Duration) -> BoxFuture<'a, Result<Found, EngineProblem>> {
        Box::pin(async move {
            let way = if wait.is_zero() { "output" } else { "attach" };
            let request = self.http.get(format!("{}/restate/workflow/{CODE}/{run}/{way}", self.ingress));
            let sending = self.send(request);
            match tokio::time::timeout(if wait.is_zero() { TIMEOUT } else { wait }, sending).await {
                Ok(received) => Ok(found(&received?)?),
                Err(_) if wait.is_zero() => Err(RestateProblem::Unreachable("it does not answer".to_owned()).into()),
                Err(_) => Ok(Found::Open),
            }
        })
    }

    fn request<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<String, EngineProblem>> {
        Box::pin(async move {
            let began = Instant::now();
            while began.elapsed() < BEGIN {
                let received = self.post(&format!("{CODE}/{run}/begun"), None).await?;
                let Ok(answer) = serde_json::from_slice::<Option<StartRecord>>(&received.body) else {
                    return Err(unexpected(received.status, &received.text()).into());
                };
                if let Some(begun) = answer {
                    return Ok(begun.request);
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(RestateProblem::NotBegun.into())
        })
    }

    fn cancel<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), EngineProblem>> {
        Box::pin(async move {
            self.post(&format!("{CODE}/{run}/stop/send"), None).await?;
            Ok(())
        })
    }

    fn trouble<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            // An id has hexadecimal digits only.
            let sql = format!(
                "SELECT status, last_failure FROM sys_invocation WHERE target_service_name = '{CODE}' \
                 AND target_service_key = '{run}' AND target_handler_name = 'run'"
            );
            let rows = self.query(&sql).await.ok()?;
            let row = rows.first()?;
            let why = row["last_failure"].as_str()?;
            match row["status"].as_str()? {
                "paused" => Some(format!("It is paused, until somebody resumes it: {why}")),
                "backing-off" => Some(format!("It is tried again: {why}")),
                _ => None,
            }
        })
    }

    fn stored_tools(&self, directory: DirectoryId) -> Option<String> {
        let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        stored.get(&directory).filter(|(_, at)| at.elapsed() < STORE_AGAIN).map(|(digest, _)| digest.clone())
    }

    fn store_tools<'a>(
        &'a self,
        directory: DirectoryId,
        digest: &'a str,
        bytes: &'a [u8],
    ) -> BoxFuture<'a, Result<(), EngineProblem>> {
        Box::pin(async move {
            let path = format!("{SNAPSHOTS}/{digest}/put");
            self.post(&path, Some((bytes.to_vec(), "application/octet-stream"))).await?;
            let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
            stored.retain(|_, (_, at)| at.elapsed() < STORE_AGAIN);
            stored.insert(directory, (digest.to_owned(), Instant::now()));
            Ok(())
        })
    }
}

/// A worker as Restate knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Deployment {
    /// Its id.
    pub id: String,
    /// Its address.
    pub address: String,
    /// Whether new runs begin there.
    pub is_latest: bool,
    /// How many runs and calls are there.
    pub open: u64,
}

/// Returns where a run stands, of what the ingress says of its outcome.
fn found(received: &Received) -> Result<Found, RestateProblem> {
    match received.status {
        200 => match serde_json::from_slice::<String>(&received.body) {
            Ok(outcome) => Ok(Found::Ended(outcome)),
            Err(_) => Err(unexpected(200, &received.text())),
        },
        470 => Ok(Found::Open),
        404 => Ok(Found::Unknown),
        // A run that was killed has no outcome of its own.
        409 | 500 if received.text().contains("\"message\"") => {
            let answer: Value = serde_json::from_slice(&received.body).unwrap_or_default();
            let why = answer["message"].as_str().unwrap_or_default();
            let error = json!({"code": "EXECUTION_ABORTED", "message": format!("Restate has ended the run: {why}")});
            let content = json!({"status": "runtime_error", "error": error});
            Ok(Found::Ended(json!({"content": content, "isError": true}).to_string()))
        }
        status => Err(unexpected(status, &received.text())),
    }
}

fn unexpected(status: u16, text: &str) -> RestateProblem {
    let text = codecall_base::text::truncate(text.trim(), MAX_QUOTED_BYTES);
    RestateProblem::Unexpected(format!("status {status}, {text}"))
}
