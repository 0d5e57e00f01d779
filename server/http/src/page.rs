//! The web page for operators, at `/ui/`: runs, tools, servers, figures.
//!
//! Everything is HTML that the server makes, and works without JavaScript; `page.js` adds news and comfort. All data
//! comes from the functions that the command line and the meta-tools use. `login` decides who sees it. Text of others
//! is
//! escaped by `maud`, and secrets are redacted before that.
//!
//! There is one handler, which dispatches by path: one place that checks who asks, for everything.

mod active;
mod approvals;
mod attempts;
mod bars;
mod charts;
mod edit;
mod form;
mod layout;
mod login;
mod quarantine;
mod query;
mod run;
mod runs;
mod script_tools;
mod secrets;
mod servers;
mod tools;

use super::guard::{Guard, seat};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use axum::routing::any;
use codecall_base::call::with_client;
use codecall_hub::hub::{Hub, LiveHub};
use layout::{not_found, problem};
pub use login::is_allowed;
use login::{Login, Logins};
use query::Pairs;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;

/// Where the page is.
pub const PATH: &str = "/ui/";
/// Maximum size of a form, in bytes.
const MAX_FORM_BYTES: usize = 4 << 20;
/// The policy for what the page may load, and who may show it. Nothing is inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// The name of the page as the client of its runs.
const CLIENT: &str = "page";

/// The page of a server.
pub struct Page {
    live: LiveHub,
    logins: Logins,
    may_run: bool,
    may_edit: bool,
}

/// A request of somebody who is logged in.
struct Visit {
    hub: Arc<Hub>,
    /// The hub of the server itself, not of the operator.
    live: LiveHub,
    login: Arc<Login>,
    /// Whether scripts can be run and tools called.
    may_run: bool,
    /// Whether script tools can be changed.
    may_edit: bool,
    query: Pairs,
    /// How many calls wait for a decision.
    waiting: usize,
    /// The page of the navigation that it belongs to.
    section: String,
    /// The form; empty unless the method is POST.
    form: Pairs,
    headers: HeaderMap,
}

impl Page {
    /// Creates the page of a server at an address.
    ///
    /// # Errors
    /// The system has no source of random numbers.
    pub fn new(live: &LiveHub, address: SocketAddr) -> Result<Self, getrandom::Error> {
        let hub = live.get();
        let config = &hub.config().http;
        Ok(Self {
            live: live.clone(),
            logins: Logins::new(config, address)?,
            may_run: config.ui_runs,
            may_edit: config.ui_edit,
        })
    }

    /// Returns a receiver of the address to open, with a token that is valid once. It changes when the token was used.
    pub fn links(&self) -> watch::Receiver<String> {
        self.logins.links()
    }
}

/// Whether a path is one of the page, which has its own check of who asks.
pub fn has_path(path: &str) -> bool {
    path == "/" || path == PATH.trim_end_matches('/') || path.starts_with(PATH)
}

/// Creates the routes of the page.
pub fn router(page: Arc<Page>, guard: Arc<Guard>) -> Router {
    let handler = any(answer);
    Router::new()
        .route("/", handler.clone())
        .route(PATH.trim_end_matches('/'), handler.clone())
        .route(PATH, handler.clone())
        .route("/ui/{*path}", handler)
        .with_state((page, guard))
}

async fn answer(State((page, guard)): State<(Arc<Page>, Arc<Guard>)>, request: Request) -> Response {
    let mut response = page.answer(&guard, request).await;
    let headers = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

impl Page {
    async fn answer(&self, guard: &Guard, request: Request) -> Response {
        let login = self.logins.find(request.headers());
        if let Err(full) = seat(&request, login.as_ref().map(|login| login.key())) {
            return full;
        }
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let Some(path) = path.strip_prefix(PATH) else { return see_other(PATH) };
        let is_post = match head.method {
            Method::GET | Method::HEAD => false,
            Method::POST => true,
            _ => return method_not_allowed(),
        };
        if let Some((kind, text)) = layout::asset(path).filter(|_| !is_post) {
            return response(StatusCode::OK, kind, text);
        }
        let query = Pairs::parse(head.uri.query().unwrap_or_default());
        let form = match is_post {
            true => match axum::body::to_bytes(body, MAX_FORM_BYTES).await {
                Ok(bytes) => Pairs::parse(&String::from_utf8_lossy(&bytes)),
                Err(_) => return problem(None, StatusCode::PAYLOAD_TOO_LARGE, "The form is too large."),
            },
            false => Pairs::default(),
        };
        if path == "login" {
            return match is_post {
                true => self.logins.log_in(guard, &self.live, &head, &form).await,
                false => login::show(query.get("next").unwrap_or(PATH), &head.headers),
            };
        }
        // What looks at a link without opening it must not use its token.
        let is_opened = head.method == Method::GET && !head.headers.contains_key("sec-purpose");
        if let Some(token) = query.get("token").filter(|_| is_opened && path.is_empty()) {
            return self.logins.enter(token, &self.live, &head.headers).await;
        }
        let Some(login) = login else {
            let is_page = !is_post && !path.ends_with("/live");
            return match is_page {
                true => see_other(&login::address(&head.uri)),
                false => problem(None, StatusCode::UNAUTHORIZED, "Log in first; the session may have ended."),
            };
        };
        if is_post && !login.has_sent(&form) {
            return problem(None, StatusCode::FORBIDDEN, "This form is too old. Load its page again.");
        }
        if is_post && path == "logout" {
            return self.logins.log_out(&head.headers);
        }
        let hub = login.hub.get();
        let _request = hub.begin_request();
        let path: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let section = path.first().copied().unwrap_or_default().to_owned();
        let mut visit = Visit {
            hub: Arc::clone(&hub),
            live: self.live.clone(),
            login,
            may_run: self.may_run,
            may_edit: self.may_edit,
            waiting: 0,
            query,
            section,
            form,
            headers: head.headers.clone(),
        };
        if !matches!(path.as_slice(), ["check"] | [_, "live" | "check"]) {
            visit.waiting = visit.waiting_calls().await;
        }
        with_client(CLIENT.into(), visit.answer(is_post, &path)).await
    }
}

impl Visit {
    /// Answers the request for a path.
    async fn answer(&self, is_post: bool, path: &[&str]) -> Response {
        match (is_post, path) {
            (false, []) => see_other("/ui/runs"),
            (false, ["runs"]) => runs::list(self).await,
            (false, ["runs", "live"]) => runs::live(self).await,
            (false, ["runs", id]) => run::show(self, id).await,
            (true, ["runs", id, "replay"]) => run::replay(self, id).await,
            (true, ["runs", id, "cancel"]) => active::cancel(self, id).await,
            (false, ["script"]) => edit::new_script(self),
            (true, ["script"]) => edit::run(self).await,
            (true, ["check"]) => edit::check(self).await,
            (false, ["tools"]) => tools::list(self).await,
            (false, ["tool"]) => tools::show(self, None).await,
            (true, ["tool"]) => tools::call(self).await,
            (false, ["script-tools"]) => script_tools::list(self),
            (false, ["script-tool"]) => script_tools::show(self).await,
            (true, ["script-tool"]) => script_tools::save(self).await,
            (true, ["script-tools", "check"]) => script_tools::check(self).await,
            (false, ["servers"]) => servers::list(self),
            (false, ["server"]) => servers::show(self),
            (true, ["server"]) => servers::restart(self).await,
            (false, ["secrets"]) => secrets::show(self).await,
            (false, ["quarantine"]) => quarantine::show(self),
            (true, ["quarantine"]) => quarantine::approve(self).await,
            (false, ["approvals"]) => approvals::show(self).await,
            (false, ["approvals", "live"]) => approvals::live(self).await,
            (false, ["approvals", id]) => approvals::show_one(self, id).await,
            (true, ["approvals"]) => approvals::decide(self).await,
            (false, ["charts"]) => charts::show(self).await,
            (true, ["runs" | "tools" | "servers" | "secrets" | "charts"])
            | (false, ["check" | "logout"] | ["runs", _, "replay" | "cancel"]) => method_not_allowed(),
            _ => not_found(self),
        }
    }

    /// Returns a text without secrets.
    fn clean(&self, text: &str) -> String {
        self.hub.secrets().redactor().redact_text(text).into_owned()
    }
}

/// Creates a response.
fn response(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Creates a response that sends the browser to another page.
fn see_other(address: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let address = HeaderValue::from_str(address).unwrap_or(HeaderValue::from_static(PATH));
    response.headers_mut().insert(LOCATION, address);
    response
}

fn method_not_allowed() -> Response {
    let mut response = problem(None, StatusCode::METHOD_NOT_ALLOWED, "This path expects another method.");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
    response
}
