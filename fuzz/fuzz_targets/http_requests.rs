//! Any request to the HTTP server: without the token nobody is answered, nothing is an internal error,
//! and what is not a stream ends.
//!
//! The first line is method and path, then headers to an empty line, then the body. `*` before the
//! method adds the right token, `?` the session of MCP that the request before has begun.

#![no_main]

#[path = "hub.rs"]
mod hub;
#[path = "streams.rs"]
mod streams;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use hub::{configuration, hub};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::time::Duration;
use streams::{TIMEOUT, block_on};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

const TOKEN: &str = "a-token-of-this-target";
const SESSION: &str = "mcp-session-id";
/// How long is read of an answer that does not end.
const STREAM: Duration = Duration::from_millis(50);

thread_local! {
    static ROUTER: RefCell<Option<Router>> = const { RefCell::new(None) };
    static IN_SESSION: RefCell<Option<String>> = const { RefCell::new(None) };
}

fuzz_target!(|data: &[u8]| {
    let Some((has_token, request)) = request(data) else { return };
    let (path, method) = (request.uri().path().to_owned(), request.method().clone());
    let knows = has_token || request.headers().values().any(|value| value.as_bytes().ends_with(TOKEN.as_bytes()));
    block_on(false, async {
        let router = router();
        let answered = tokio::time::timeout(TIMEOUT, router.oneshot(request)).await.expect("an answer");
        let answer = answered.unwrap_or_else(|never| match never {});
        let status = answer.status();
        if !knows && path != "/healthz" && method != Method::OPTIONS {
            assert!(status.is_client_error(), "{method} {path}: {status} without a token");
        }
        assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{method} {path}");
        let headers = answer.headers().clone();
        keep_session(&headers);
        let streams = headers.get("content-type").is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let limit = if streams { STREAM } else { TIMEOUT };
        let body = tokio::time::timeout(limit, to_bytes(answer.into_body(), 1 << 24)).await;
        match body {
            Ok(body) => {
                let body = body.expect("a body");
                let kind = headers.get("content-type").map(|kind| kind.as_bytes().to_vec()).unwrap_or_default();
                if kind.starts_with(b"application/json") || kind.starts_with(b"application/problem+json") {
                    serde_json::from_slice::<Value>(&body).expect("JSON where the header says so");
                }
                assert!(!String::from_utf8_lossy(&body).contains(TOKEN), "{method} {path} tells the token");
            }
            Err(_) => assert!(streams, "{method} {path}: the answer does not end"),
        }
    });
});

fn router() -> Router {
    ROUTER.with_borrow_mut(|router| {
        let made = || {
            let config = configuration(json!({"http": {"token": TOKEN, "maxBodyBytes": 100_000}}));
            let hub = hub(|| config);
            codecall::fuzzing::router(&hub, &CancellationToken::new()).expect("a router")
        };
        router.get_or_insert_with(made).clone()
    })
}

fn keep_session(headers: &HeaderMap) {
    if let Some(session) = headers.get(SESSION).and_then(|session| session.to_str().ok()) {
        IN_SESSION.with_borrow_mut(|kept| *kept = Some(session.to_owned()));
    }
}

/// The request that the bytes are, where they are one, and whether it has the token.
fn request(data: &[u8]) -> Option<(bool, Request<Body>)> {
    let (head, body) = match data.windows(2).position(|pair| pair == b"\n\n") {
        Some(at) => (&data[..at], &data[at + 2..]),
        None => (data, &b""[..]),
    };
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = std::str::from_utf8(lines.next()?).ok()?;
    let flags = first.len() - first.trim_start_matches(['*', '?']).len();
    let (flags, first) = first.split_at(flags);
    let (method, path) = first.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(path);
    if flags.contains('*') {
        request = request.header("authorization", format!("Bearer {TOKEN}"));
    }
    if flags.contains('?')
        && let Some(session) = IN_SESSION.with_borrow(Clone::clone)
    {
        request = request.header(SESSION, session);
    }
    for line in lines {
        let at = line.iter().position(|byte| *byte == b':')?;
        request = request.header(&line[..at], line[at + 1..].trim_ascii());
    }
    Some((flags.contains('*'), request.body(Body::from(body.to_vec())).ok()?))
}
