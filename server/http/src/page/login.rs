//! People who see the page: they have opened an address with a token that is valid once, or have sent the token of an operator.
//!
//! A login is a cookie that scripts cannot read and that no other page can send. It is in memory only.

use super::super::connections::seats::Seat;
use super::super::guard::Guard;
use super::attempts::Attempts;
use super::layout::bare;
use super::query::{Pairs, address as with_query};
use super::{PATH, see_other};
use axum::http::header::{COOKIE, HOST, HeaderName, HeaderValue, ORIGIN, RETRY_AFTER, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use codecall_config::HttpServerConfig;
use codecall_hub::LiveHub;
use maud::html;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;

/// Maximum number of logins. More end those that were not used for the longest time.
const MAX_LOGINS: usize = 64;
/// How long a login lasts that is not used.
const MAX_IDLE: Duration = Duration::from_secs(12 * 3_600);
/// How long the answer to a wrong token takes. Nobody waits for that of another one.
const WRONG_TOKEN: Duration = Duration::from_millis(400);

/// All logins.
pub struct Logins {
    /// The name of the cookie: browsers send cookies to all ports of a host.
    cookie: String,
    /// The address of the page, without a token.
    address: String,
    once: Mutex<[u8; 32]>,
    links: watch::Sender<String>,
    open: Mutex<Vec<Arc<Login>>>,
    attempts: Attempts,
}

/// Why nobody is logged in.
#[derive(Clone, Copy)]
enum Problem {
    /// The token is wrong.
    Wrong,
    /// The address has sent too many wrong ones.
    TooMany,
}

/// Somebody who is logged in.
pub struct Login {
    digest: [u8; 32],
    /// The token that each form has to contain, so that no other page can send one.
    pub csrf: String,
    /// The hub of the operator.
    pub hub: LiveHub,
    used: Mutex<Instant>,
}

impl Login {
    /// Returns what no other login has.
    pub fn key(&self) -> [u8; 32] {
        self.digest
    }

    /// Whether a form is one of this login.
    pub fn has_sent(&self, form: &Pairs) -> bool {
        let sent = form.get("csrf").unwrap_or_default();
        digest(sent).ct_eq(&digest(&self.csrf)).into()
    }
}

impl Logins {
    /// Creates the logins of a server at an address: nobody is logged in.
    ///
    /// # Errors
    /// The system has no source of random numbers.
    pub fn new(config: &HttpServerConfig, address: SocketAddr) -> Result<Self, getrandom::Error> {
        let port = address.port();
        let host = match (config.allowed_hosts.first(), address.ip()) {
            (Some(host), _) => host.clone(),
            (None, IpAddr::V4(ip)) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
            (None, IpAddr::V6(ip)) if ip.is_unspecified() => "[::1]".into(),
            (None, IpAddr::V4(ip)) => ip.to_string(),
            (None, IpAddr::V6(ip)) => format!("[{ip}]"),
        };
        let logins = Self {
            cookie: format!("codecall_{port}"),
            address: format!("http://{host}:{port}{PATH}"),
            once: Mutex::default(),
            links: watch::Sender::new(String::new()),
            open: Mutex::default(),
            attempts: Attempts::default(),
        };
        logins.renew(&mut logins.once())?;
        Ok(logins)
    }

    pub fn links(&self) -> watch::Receiver<String> {
        self.links.subscribe()
    }

    fn once(&self) -> MutexGuard<'_, [u8; 32]> {
        self.once.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes another token that is valid once.
    fn renew(&self, once: &mut [u8; 32]) -> Result<(), getrandom::Error> {
        let token = random()?;
        *once = digest(&token);
        self.links.send_replace(format!("{}?token={token}", self.address));
        Ok(())
    }

    /// Returns whether a token is the one that is valid once, which it is no longer then.
    fn use_once(&self, token: &str) -> Result<bool, getrandom::Error> {
        let mut once = self.once();
        let is_right = bool::from(once.ct_eq(&digest(token)));
        if is_right {
            self.renew(&mut once)?;
        }
        Ok(is_right)
    }

    fn open(&self) -> MutexGuard<'_, Vec<Arc<Login>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the login of a request.
    pub fn find(&self, headers: &HeaderMap) -> Option<Arc<Login>> {
        let sent = digest(self.cookie(headers)?);
        let mut open = self.open();
        open.retain(|login| login.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < MAX_IDLE);
        // All are compared, whichever it is.
        let mut found = None;
        for login in &*open {
            if bool::from(login.digest.ct_eq(&sent)) {
                found = Some(Arc::clone(login));
            }
        }
        if let Some(login) = &found {
            *login.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
        found
    }

    /// Logs in with the token that is valid once.
    pub async fn enter(&self, token: &str, live: &LiveHub, headers: &HeaderMap) -> Response {
        let used = self.use_once(token);
        if used == Ok(false) {
            // Somebody who goes back in the history of the browser is logged in already.
            if self.find(headers).is_some() {
                return see_other(PATH);
            }
            tokio::time::sleep(WRONG_TOKEN).await;
            let why = "This address was used before. The server has printed another one.";
            let page =
                html! { p.alert role="alert" { (why) } p { a href={ (PATH) "login" } { "Log in with a token" } } };
            return bare(StatusCode::FORBIDDEN, "Log in", &page);
        }
        match used.and_then(|_| self.add(live.clone())) {
            Err(_) => {
                bare(StatusCode::INTERNAL_SERVER_ERROR, "Log in", &html! { p { "There are no random numbers." } })
            }
            Ok(cookie) => {
                // Not a redirect: the browser would not send the cookie if the link was in another page.
                let page = html! { p { a href=(PATH) autofocus { "Go on to the page" } } };
                let mut response = bare(StatusCode::OK, "Logged in", &page);
                set_refresh(&mut response, PATH);
                self.set_cookie(&mut response, headers, &cookie);
                response
            }
        }
    }

    /// Logs in with the token of an operator.
    pub async fn log_in(&self, guard: &Guard, live: &LiveHub, head: &Parts, form: &Pairs) -> Response {
        let (headers, next) = (&head.headers, own_address(form.get("next").unwrap_or(PATH)));
        let address = head.extensions.get::<Seat>().map(Seat::address);
        if !self.attempts.begin(address) {
            return self::form(next, Some(Problem::TooMany));
        }
        let hub = guard.operator(form.filled("token").unwrap_or_default(), live).await;
        let Some(hub) = hub else {
            tokio::time::sleep(WRONG_TOKEN).await;
            return self::form(next, Some(Problem::Wrong));
        };
        self.attempts.succeeded(address);
        match self.add(hub) {
            Err(_) => {
                bare(StatusCode::INTERNAL_SERVER_ERROR, "Log in", &html! { p { "There are no random numbers." } })
            }
            Ok(cookie) => {
                let mut response = see_other(next);
                self.set_cookie(&mut response, headers, &cookie);
                response
            }
        }
    }

    /// Ends the login of a request.
    pub fn log_out(&self, headers: &HeaderMap) -> Response {
        let sent = digest(self.cookie(headers).unwrap_or_default());
        self.open().retain(|login| !bool::from(login.digest.ct_eq(&sent)));
        let mut response = see_other("/ui/login");
        self.set_cookie(&mut response, headers, "");
        response
    }

    /// Adds a login. Returns its cookie.
    fn add(&self, hub: LiveHub) -> Result<String, getrandom::Error> {
        let (cookie, csrf) = (random()?, random()?);
        let login = Login { digest: digest(&cookie), csrf, hub, used: Mutex::new(Instant::now()) };
        let mut open = self.open();
        if open.len() >= MAX_LOGINS {
            let used = |login: &Arc<Login>| *login.used.lock().unwrap_or_else(PoisonError::into_inner);
            open.sort_by_key(used);
            open.remove(0);
        }
        open.push(Arc::new(login));
        Ok(cookie)
    }

    fn cookie<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.cookie).map(|(_, value)| value)
    }

    /// Sets the cookie; an empty one ends it.
    fn set_cookie(&self, response: &mut Response, headers: &HeaderMap, value: &str) {
        // Not all browsers accept `Secure` from a loopback address without TLS.
        let secure = if is_loopback(headers) { "" } else { "; Secure" };
        let age = if value.is_empty() { "; Max-Age=0" } else { "" };
        let cookie = format!("{}={value}; Path={PATH}; HttpOnly; SameSite=Strict{secure}{age}", self.cookie);
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().insert(SET_COOKIE, cookie);
        }
    }
}

/// Whether a request comes from the page itself, or from a person who opens it, as far as the browser says so.
pub fn is_allowed(method: &Method, headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let fetch = |name: &'static str| text(HeaderName::from_static(name));
    let is_link = *method == Method::GET
        && fetch("sec-fetch-mode") == Some("navigate")
        && fetch("sec-fetch-dest") == Some("document");
    let is_own_site = fetch("sec-fetch-site").is_none_or(|site| ["same-origin", "none"].contains(&site));
    // Other origins that may use the server may not use the page. With `no-referrer`, browsers send `null` for forms; then
    // `Sec-Fetch-Site` has decided.
    let is_own = match (text(ORIGIN), text(HOST)) {
        (None, _) => true,
        (Some("null"), _) => headers.contains_key("sec-fetch-site"),
        (Some(origin), Some(host)) => origin.split_once("://").is_some_and(|(_, own)| own.eq_ignore_ascii_case(host)),
        (Some(_), None) => false,
    };
    (is_own_site || is_link) && is_own
}

/// Whether the browser comes from another site, and so has not sent the cookie.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none")
}

/// Answers a request for the form. Who comes from another site may be logged in: the page is asked for again, from here.
pub fn show(next: &str, headers: &HeaderMap) -> Response {
    if !is_from_elsewhere(headers) {
        return form(next, None);
    }
    let next = own_address(next);
    let mut response = bare(StatusCode::OK, "Log in", &html! { p { a href=(next) { "Go on to the page" } } });
    set_refresh(&mut response, next);
    response
}

/// Makes the browser load another page. Unlike a redirect, that is a request of this page.
fn set_refresh(response: &mut Response, address: &str) {
    if let Ok(refresh) = HeaderValue::from_str(&format!("0; url={address}")) {
        response.headers_mut().insert(HeaderName::from_static("refresh"), refresh);
    }
}

/// Whether the request was sent to this machine by one of its own names.
fn is_loopback(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).and_then(|host| host.parse::<Authority>().ok());
    host.is_some_and(|host| {
        let name = host.host().trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    })
}

/// Returns the address of the form that leads back to another address.
pub fn address(back: &Uri) -> String {
    let back = back.path_and_query().map_or(PATH, |path| path.as_str());
    with_query("/ui/login", Some(("next", back)).filter(|(_, back)| *back != PATH))
}

/// Returns an address of the page, for what may be one of another.
fn own_address(address: &str) -> &str {
    let is_own = address.starts_with(PATH) && !address.contains(['\\', '\n', '\r']) && !address.contains("//");
    if is_own { address } else { PATH }
}

/// Creates the form for tokens.
fn form(next: &str, problem: Option<Problem>) -> Response {
    let (status, problem) = match problem {
        None => (StatusCode::OK, None),
        Some(Problem::Wrong) => (StatusCode::FORBIDDEN, Some("This is not the token of an operator.")),
        Some(Problem::TooMany) => {
            let why = "Too many wrong tokens have come from this address. Try again in some seconds.";
            (StatusCode::TOO_MANY_REQUESTS, Some(why))
        }
    };
    let page = html! {
        @if let Some(problem) = problem { p.alert role="alert" { (problem) } }
        form.login method="post" action="/ui/login" {
            input type="hidden" name="next" value=(own_address(next));
            label for="token" { "Token of an operator" }
            input #token name="token" type="password" autocomplete="current-password" required autofocus;
            button { "Log in" }
        }
        p.dim {
            "That is " code { "http.token" } " of the configuration, or one of " code { "http.tokens" }
            " with " code { "operator = true" } ". Without a token, open the address that the server prints when it starts."
        }
    };
    let mut response = bare(status, "Log in", &page);
    if status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Returns a text that nobody can guess.
fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn requests_of_other_pages_are_known() {
        let host = ("host", "127.0.0.1:8931");
        let (form, link) = (Method::POST, Method::GET);
        let navigation = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        let from = |site| [vec![host, ("sec-fetch-site", site)], navigation.to_vec()].concat();
        for (expected, method, pairs) in [
            (true, &form, vec![host]),
            (true, &form, vec![host, ("origin", "http://127.0.0.1:8931"), ("sec-fetch-site", "same-origin")]),
            (true, &form, vec![host, ("origin", "null"), ("sec-fetch-site", "same-origin")]),
            (false, &form, vec![host, ("origin", "null")]),
            (false, &form, vec![host, ("origin", "http://127.0.0.1:8932")]),
            (false, &form, vec![host, ("origin", "https://evil.example")]),
            (false, &form, from("same-site")),
            (false, &form, from("cross-site")),
            (true, &link, from("cross-site")),
            (true, &link, from("none")),
            (false, &link, vec![host, ("sec-fetch-site", "same-site"), ("sec-fetch-dest", "image")]),
            (
                false,
                &link,
                vec![
                    host,
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                    ("sec-fetch-dest", "iframe"),
                ],
            ),
        ] {
            assert_eq!(is_allowed(method, &headers(&pairs)), expected, "{method} {pairs:?}");
        }
    }

    #[test]
    fn a_login_leads_to_the_page_only() {
        for (address, expected) in [
            ("/ui/runs?status=failed", "/ui/runs?status=failed"),
            ("https://evil.example/ui/", PATH),
            ("//evil.example/ui/", PATH),
            ("/ui//evil.example", PATH),
            ("/ui/\\evil", PATH),
            ("/mcp", PATH),
        ] {
            assert_eq!(own_address(address), expected);
        }
    }

    #[test]
    fn only_loopback_names_need_no_tls() {
        for (host, expected) in [
            ("localhost:1", true),
            ("127.0.0.1:1", true),
            ("[::1]:1", true),
            ("tools.example.com", false),
            ("127.0.0.1.example.com", false),
        ] {
            assert_eq!(is_loopback(&headers(&[("host", host)])), expected, "{host}");
        }
    }
}
