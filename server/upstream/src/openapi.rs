//! HTTP services with an OpenAPI description: each operation is a tool, each call one request.
//!
//! The description is read at the start. If that fails, it is tried again with exponential backoff. Afterwards it is read
//! again when it has changed; calls in flight go on as they have begun.

pub(crate) mod client;
mod documents;
pub(crate) mod response;
mod tokens;

use crate::oauth::TokenError;
use crate::{BoxFuture, Upstream, UpstreamCall};
use client::{Client, Refusal};
use codecall_base::redact::SecretRegistry;
use codecall_base::telemetry::{self, Span, SpanKind};
use codecall_base::tool::{ErrorCode, ToolDefinition, ToolError, ToolResult};
use codecall_config::{OpenApiConfig, OperationFilter};
use codecall_openapi::{Api, Filter, Operation, Settings};
use documents::DocumentVersions;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokens::ClientTokens;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use url::Url;

/// The first and the longest pause before the description is read again.
const INITIAL_BACKOFF: Duration = Duration::from_secs(2);
const MAX_BACKOFF: Duration = Duration::from_secs(300);
/// How often a file is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Maximum number of warnings of a description that are logged one by one.
const MAX_LOGGED: usize = 20;
/// The code of a call whose service cannot be reached.
const UNAVAILABLE: &str = "SERVER_UNAVAILABLE";

/// An HTTP service as an upstream.
pub struct OpenApi {
    shared: Arc<Shared>,
    reading: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    app: String,
    config: OpenApiConfig,
    /// Redacted in what is logged.
    secrets: Arc<SecretRegistry>,
    service: RwLock<Service>,
    state: watch::Sender<State>,
    tools_version: watch::Sender<u64>,
    closing: CancellationToken,
    /// Notified when the description is to be looked at now.
    asked: Notify,
    /// The tokens of clients by the names of their security schemes.
    tokens: BTreeMap<String, ClientTokens>,
}

/// The service as its description has it.
#[derive(Default)]
struct Service {
    title: Option<String>,
    tools: Vec<Arc<ToolDefinition>>,
    operations: HashMap<String, Arc<Operation>>,
    connection: Option<Arc<Connection>>,
    /// The parts of the description that are left out or mended: the first of them, and how many more there are.
    warnings: Vec<String>,
}

/// Tokens by the names of their security schemes.
type Tokens = BTreeMap<String, Arc<str>>;

/// The parts that all requests share.
struct Connection {
    client: Client,
    headers: HeaderMap,
}

#[derive(Clone)]
enum State {
    /// The description is read for the first time.
    Starting,
    /// The tools are known.
    Ready,
    /// The description cannot be used, for this reason.
    Failed(String),
}

impl OpenApi {
    /// Begins to read the description.
    #[must_use]
    pub fn start(app: &str, config: &OpenApiConfig, secrets: &Arc<SecretRegistry>) -> Arc<dyn Upstream> {
        let shared = Arc::new(Shared {
            app: app.to_owned(),
            config: config.clone(),
            secrets: Arc::clone(secrets),
            service: RwLock::default(),
            state: watch::Sender::new(State::Starting),
            tools_version: watch::Sender::new(0),
            closing: CancellationToken::new(),
            asked: Notify::new(),
            tokens: config
                .oauth
                .iter()
                .map(|(name, client)| (name.clone(), ClientTokens::new(client, secrets)))
                .collect(),
        });
        let reading = tokio::spawn(Arc::clone(&shared).follow());
        Arc::new(Self { shared, reading: Mutex::new(Some(reading)) })
    }
}

impl Drop for OpenApi {
    fn drop(&mut self) {
        self.shared.closing.cancel();
    }
}

impl Upstream for OpenApi {
    fn app(&self) -> &str {
        &self.shared.app
    }

    fn source(&self) -> &'static str {
        "openapi"
    }

    fn tools(&self) -> Vec<Arc<ToolDefinition>> {
        self.shared.service().tools.clone()
    }

    fn title(&self) -> Option<String> {
        self.shared.service().title.clone()
    }

    fn call(&self, call: UpstreamCall) -> BoxFuture<'_, Result<ToolResult, ToolError>> {
        Box::pin(self.shared.call(call))
    }

    fn tools_changed(&self) -> Option<watch::Receiver<u64>> {
        Some(self.shared.tools_version.subscribe())
    }

    fn unavailable_reason(&self) -> Option<String> {
        match &*self.shared.state.borrow() {
            State::Ready => None,
            // A file is read in a moment.
            State::Starting if !self.shared.config.is_remote() => None,
            State::Starting => Some(format!("The description of '{}' is still being read", self.shared.app)),
            State::Failed(reason) => Some(reason.clone()),
        }
    }

    fn oddities(&self) -> Vec<String> {
        self.shared.service().warnings.clone()
    }

    fn is_starting(&self) -> bool {
        matches!(*self.shared.state.borrow(), State::Starting)
    }

    fn are_tools_known(&self) -> bool {
        // The tools are there shortly before the state says so.
        matches!(*self.shared.state.borrow(), State::Ready) || !self.shared.service().tools.is_empty()
    }

    fn tools_known(&self) -> BoxFuture<'_, ()> {
        self.start_ended()
    }

    fn recalled(&self) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            if !self.shared.config.is_remote() {
                self.start_ended().await;
            }
            false
        })
    }

    fn start_ended(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut state = self.shared.state.subscribe();
            let _ = state.wait_for(|state| !matches!(state, State::Starting)).await;
        })
    }

    fn refresh(&self) {
        self.shared.asked.notify_one();
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.shared.closing.cancel();
            let reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(reading) = reading {
                let _ = reading.await;
            }
        })
    }
}

impl Shared {
    fn service(&self) -> std::sync::RwLockReadGuard<'_, Service> {
        self.service.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the description, and again whenever it has changed, until the upstream is closed.
    async fn follow(self: Arc<Self>) {
        let following = async {
            let mut seen = self.read_until_ready().await;
            loop {
                seen = self.changed(seen).await;
            }
        };
        self.closing.run_until_cancelled(following).await;
    }

    /// Reads the description again and again until it can be used. Returns its documents.
    async fn read_until_ready(&self) -> DocumentVersions {
        let mut backoff = INITIAL_BACKOFF;
        loop {
            let reason = match self.read_in_time().await {
                Ok(seen) => {
                    self.state.send_replace(State::Ready);
                    return seen;
                }
                Err(reason) => reason,
            };
            let (app, pause) = (&self.app, backoff.as_secs());
            tracing::warn!(app, pause_s = pause, "its OpenAPI description cannot be used: {reason}");
            self.state.send_replace(State::Failed(format!(
                "The OpenAPI description of '{app}' cannot be used: {reason}. It is tried again within {pause} s"
            )));
            tokio::select! {
                () = tokio::time::sleep(backoff) => {}
                () = self.asked.notified() => {}
            }
            backoff = (backoff * 2).min(MAX_BACKOFF);
        }
    }

    /// Waits until the description has changed, and reads it. If it cannot be used, the tools stay as they were. Returns its
    /// documents.
    async fn changed(&self, seen: DocumentVersions) -> DocumentVersions {
        let is_remote = self.config.is_remote();
        let (mut before, mut refused) = (seen.clone(), None);
        loop {
            let pause = if is_remote { self.config.refresh } else { LOOK };
            tokio::select! {
                () = tokio::time::sleep(pause), if !pause.is_zero() => {}
                () = self.asked.notified() => {}
            }
            let Some(connection) = self.service().connection.clone() else { return seen };
            let looking = tokio::time::timeout(self.config.start_timeout, seen.look(&connection.client));
            let now = match looking.await {
                Ok(Ok(now)) => now,
                Ok(Err(reason)) => {
                    tracing::debug!(app = self.app, "its OpenAPI description cannot be looked at: {reason}");
                    continue;
                }
                Err(_) => continue,
            };
            // A file is read once it has stopped changing: it may be in the middle of being written.
            let is_settled = is_remote || now == before;
            before.clone_from(&now);
            if now == seen || !is_settled || Some(&now) == refused.as_ref() {
                continue;
            }
            match self.read_in_time().await {
                Ok(seen) => return seen,
                Err(reason) => {
                    let what = "its OpenAPI description has changed and cannot be used, so its tools stay as they were";
                    tracing::warn!(app = self.app, "{what}: {reason}");
                    refused = Some(now);
                }
            }
        }
    }

    /// Reads the description and uses it from now on. Returns its documents.
    async fn read_in_time(&self) -> Result<DocumentVersions, String> {
        let limit = self.config.start_timeout;
        let read = tokio::time::timeout(limit, self.read()).await;
        let read = read.unwrap_or_else(|_| Err(format!("it was not read within {} ms", limit.as_millis())));
        let (service, seen) = read.map_err(|reason| self.secrets.redactor().redact_text(&reason).to_string())?;
        let mut known = self.service.write().unwrap_or_else(PoisonError::into_inner);
        let has_changed = known.tools != service.tools || known.connection.is_none();
        *known = service;
        drop(known);
        if has_changed {
            // Before the state: who waits for that looks for new tools at once.
            self.tools_version.send_modify(|version| *version += 1);
        }
        Ok(seen)
    }

    async fn read(&self) -> Result<(Service, DocumentVersions), String> {
        let config = &self.config;
        let client = Client::new(&config.allow_private)?;
        let headers = headers(config)?;
        let base_url = config.base_url.as_ref().map(|url| Url::parse(url).map_err(|_| "'baseUrl' is not an address"));
        let settings = Settings {
            app: self.app.clone(),
            base_url: base_url.transpose()?,
            variables: config.variables.clone(),
            secrets: config.auth.keys().chain(config.oauth.keys()).cloned().collect(),
            headers: config.headers.keys().cloned().collect(),
            include: filter(&config.include),
            exclude: filter(&config.exclude),
            writes: config.allow_writes,
            deprecated: config.include_deprecated,
        };
        let (documents, seen) = documents::read(config, &client).await?;
        let url = documents.url().clone();
        let describe = || codecall_openapi::describe(&documents, &settings);
        let api = codecall_base::offload::run(usize::MAX, describe).await.map_err(|busy| busy.to_string())??;
        let is_secret = !config.auth.is_empty() || !config.oauth.is_empty() || !config.headers.is_empty();
        let is_elsewhere = |operation: &Operation| operation.server.origin() != url.origin();
        if is_secret && config.is_remote() && config.base_url.is_none() && api.operations.iter().any(is_elsewhere) {
            return Err(
                "it names another server than the one that it comes from, and 'auth', 'oauth' or 'headers' have secrets; \
                        give 'baseUrl', so that they are sent where you say"
                    .into(),
            );
        }
        let warnings = self.warnings_of(&api);
        self.log(&api, &warnings);
        let tools: Vec<_> = api.operations.iter().map(|operation| Arc::clone(&operation.definition)).collect();
        let by_name = |operation: Operation| (operation.definition.name.clone(), Arc::new(operation));
        let service = Service {
            title: api.title,
            tools,
            operations: api.operations.into_iter().map(by_name).collect(),
            connection: Some(Arc::new(Connection { client, headers })),
            warnings,
        };
        Ok((service, seen))
    }

    /// Returns what of a description was left out or mended, as it is shown.
    fn warnings_of(&self, api: &Api) -> Vec<String> {
        let shown = api.warnings.iter().take(MAX_LOGGED);
        let mut warnings: Vec<String> =
            shown.map(|warning| self.secrets.redactor().redact_text(warning).to_string()).collect();
        if api.warned > MAX_LOGGED {
            warnings.push(format!("there are {} more warnings on its description", api.warned - MAX_LOGGED));
        }
        warnings
    }

    fn log(&self, api: &Api, warnings: &[String]) {
        let (app, left_out) = (&self.app, api.left_out);
        for warning in warnings {
            tracing::warn!(app, "{warning}");
        }
        tracing::info!(
            app,
            tools = api.operations.len(),
            filtered = left_out.filtered,
            deprecated = left_out.deprecated,
            writes = left_out.writes,
            refused = api.refused,
            "its OpenAPI description was read"
        );
    }

    async fn call(&self, call: UpstreamCall) -> Result<ToolResult, ToolError> {
        let (operation, connection) = {
            let service = self.service();
            (service.operations.get(&call.tool.name).cloned(), service.connection.clone())
        };
        let (Some(operation), Some(connection)) = (operation, connection) else {
            let message = format!("Tool '{}' not found", call.tool.full_name());
            return Err(ToolError::new(ErrorCode::ToolNotFound, message));
        };
        let limit = self.config.timeout;
        let answered = async {
            let (response, tokens) = self.send(&call, &operation, &connection, &BTreeMap::new()).await?;
            let is_refused = response.status() == StatusCode::UNAUTHORIZED && !tokens.is_empty();
            let response = match is_refused {
                // A token may be revoked before it expires. What is refused was not done.
                true => self.send(&call, &operation, &connection, &tokens).await?.0,
                false => response,
            };
            response::read(response, self.config.max_response_bytes, operation.method == "HEAD", &call.tool).await
        };
        match tokio::time::timeout(limit, answered).await {
            Ok(answered) => answered,
            Err(_) => {
                let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                Err(ToolError::timeout(&call.tool.full_name(), limit))
            }
        }
    }

    /// Sends the request of a call. Returns the tokens that it has, by their security schemes; none of them is one of `refused`.
    async fn send(
        &self,
        call: &UpstreamCall,
        operation: &Operation,
        connection: &Connection,
        refused: &Tokens,
    ) -> Result<(Response, Tokens), ToolError> {
        call.set_sent(false);
        let has = |scheme: &str| self.config.auth.contains_key(scheme) || self.tokens.contains_key(scheme);
        let mut tokens = Tokens::new();
        for scheme in operation.schemes(&has) {
            if let Some(client) = self.tokens.get(scheme) {
                let token = client.get(&connection.client, refused.get(scheme).map(|token| &**token)).await;
                tokens.insert(scheme.to_owned(), token.map_err(|error| self.no_token(scheme, &error))?);
            }
        }
        let secret = |scheme: &str| {
            let token = tokens.get(scheme).map(|token| &**token);
            token.or_else(|| self.config.auth.get(scheme).map(|secret| &**secret))
        };
        let mut request = operation.request(&call.input, &secret).map_err(|reason| {
            ToolError::new(ErrorCode::InvalidInput, format!("Tool '{}': {reason}", call.tool.full_name()))
        })?;
        // As draft-ietf-httpapi-idempotency-key-header has it. The other methods are idempotent themselves.
        if ["POST", "PATCH"].contains(&request.method)
            && !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("idempotency-key"))
            && let Some(key) = call.idempotency_key()
        {
            request.headers.push(("idempotency-key".to_owned(), format!("\"{key}\"")));
        }
        let mut span = Span::begin(SpanKind::Client, || format!("{} {}", request.method, call.tool.name));
        span.set("http.request.method", request.method);
        span.set("server.address", request.url.host_str().unwrap_or_default());
        span.set("codecall.app", self.app.as_str());
        call.set_sent(true);
        let response = telemetry::within(span.context(), connection.client.send(request, &connection.headers)).await;
        if matches!(response, Err(Refusal::Unconnected(_))) {
            call.set_sent(false);
        }
        let response = response.map_err(|refusal| self.failure(refusal));
        match &response {
            Ok(response) => {
                let status = response.status();
                span.set("http.response.status_code", u64::from(status.as_u16()));
                if status.is_client_error() || status.is_server_error() {
                    span.fail(status.as_str(), status.canonical_reason().unwrap_or_default());
                }
            }
            Err(error) => span.fail(&error.code, &error.message),
        }
        Ok((response?, tokens))
    }

    fn no_token(&self, scheme: &str, error: &TokenError) -> ToolError {
        let message =
            format!("The service '{}': there is no token for the security scheme '{scheme}': {error}", self.app);
        match error {
            TokenError::Refused { .. } => ToolError::new(ErrorCode::ToolExecutionError, message),
            TokenError::Failed(_) => ToolError::new(UNAVAILABLE, message),
        }
    }

    fn failure(&self, refusal: Refusal) -> ToolError {
        match refusal {
            Refusal::Unconnected(reason) | Refusal::Unreachable(reason) => {
                ToolError::new(UNAVAILABLE, format!("The service '{}' cannot be reached: {reason}", self.app))
            }
            Refusal::NotAllowed(reason) => {
                ToolError::new(ErrorCode::ToolExecutionError, format!("The service '{}': {reason}", self.app))
            }
        }
    }
}

fn filter(filter: &OperationFilter) -> Filter {
    let OperationFilter { tags, methods, paths, operation_ids } = filter.clone();
    Filter { tags, methods, paths, ids: operation_ids }
}

fn headers(config: &OpenApiConfig) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &config.headers {
        let valid =
            HeaderName::try_from(name.as_str()).map_err(|_| format!("the name of header '{name}' is not valid"))?;
        let mut value =
            HeaderValue::try_from(&**value).map_err(|_| format!("the value of header '{name}' is not valid"))?;
        value.set_sensitive(true);
        headers.insert(valid, value);
    }
    Ok(headers)
}
