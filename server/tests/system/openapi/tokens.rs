//! Tokens that a service wants: the client gets them by its credentials, and renews them.

use super::*;

const CLIENT_SECRET: &str = "client-secret-1234567890";

/// A service that accepts the token that was issued last, and revokes it when `/v1/revoke` is called; with its token endpoint.
#[derive(Clone, Default)]
struct Issuer(Arc<Mutex<Issued>>);

#[derive(Default)]
struct Issued {
    /// The bodies of requests for tokens that were answered.
    requests: Vec<String>,
    is_revoked: bool,
    /// Calls that were accepted and refused.
    calls: (u32, u32),
    /// Seconds for which tokens are valid.
    seconds: u64,
}

impl Issuer {
    fn issue(&self, headers: &HeaderMap, body: &str) -> Response<Body> {
        let mut issued = self.0.lock().expect("not poisoned");
        let basic = format!("Basic {}", STANDARD.encode(format!("me%3A1:{CLIENT_SECRET}")));
        let in_body = body.ends_with(&format!("&client_id=me%3A1&client_secret={CLIENT_SECRET}"));
        if headers.get("authorization").map_or(!in_body, |value| value != basic.as_str()) {
            return respond(401, "application/json", r#"{"error": "invalid_client", "error_description": "who?"}"#);
        }
        issued.requests.push(body.to_owned());
        issued.is_revoked = false;
        let token = format!("token-1234567890-{}", issued.requests.len());
        let answer = json!({"access_token": token, "token_type": "bearer", "expires_in": issued.seconds});
        respond(200, "application/json", answer.to_string())
    }

    fn call(&self, headers: &HeaderMap, is_last: bool) -> Response<Body> {
        let mut issued = self.0.lock().expect("not poisoned");
        let wanted = format!("Bearer token-1234567890-{}", issued.requests.len());
        if issued.is_revoked || headers.get("authorization").is_none_or(|value| value != wanted.as_str()) {
            issued.calls.1 += 1;
            return respond(401, "application/json", r#"{"error": "no"}"#);
        }
        issued.calls.0 += 1;
        issued.is_revoked = is_last;
        respond(200, "application/json", json!({"sent": wanted}).to_string())
    }

    /// Starts the service; returns its address, with its description.
    async fn start(&self) -> String {
        let issuer = self.clone();
        let token = move |headers: HeaderMap, body: String| {
            let issuer = issuer.clone();
            async move { issuer.issue(&headers, &body) }
        };
        let issuer = self.clone();
        let call = move |uri: Uri, headers: HeaderMap| {
            let issuer = issuer.clone();
            async move { issuer.call(&headers, uri.path() == "/v1/revoke") }
        };
        let operation = |id: &str| json!({"get": {"operationId": id, "responses": {}}});
        let description = json!({
            "openapi": "3.1.0", "info": {"title": "Tokens", "version": "1"}, "servers": [{"url": "/v1"}],
            "security": [{"service": []}],
            "paths": {"/read": operation("read"), "/revoke": operation("revoke")},
            "components": {"securitySchemes": {"service": {"type": "oauth2", "flows": {"clientCredentials": {
                "tokenUrl": "https://elsewhere.example/token", "scopes": {},
            }}}}},
        });
        let routes = Router::new()
            .route("/token", routing::post(token))
            .route(
                "/openapi.json",
                routing::get(move || async move { respond(200, "application/json", description.to_string()) }),
            )
            .fallback(call);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        address
    }
}

/// CodeCall gets tokens for its client: one for calls at once, another one when it expires or is revoked.
#[tokio::test]
async fn tokens_of_a_client() {
    let folder = Folder::new();
    let issuer = Issuer::default();
    issuer.0.lock().expect("not poisoned").seconds = 3_600;
    let address = issuer.start().await;
    let config = |secret: &str, method: &str| {
        let config = json!({"openapi": {"api": {
            "spec": format!("http://{address}/openapi.json"),
            "allowPrivate": [address],
            "oauth": {"service": {
                "tokenUrl": format!("http://{address}/token"), "clientId": "me:1", "clientSecret": secret,
                "scopes": ["a", "b"], "audience": "all of it", "clientAuth": method,
            }},
        }}});
        folder.file("config.json", config.to_string())
    };
    let server = Server::start(&["--config", &config(CLIENT_SECRET, "header")]).await;
    let state = || {
        let issued = issuer.0.lock().expect("not poisoned");
        (issued.requests.len(), issued.calls)
    };

    let answer = server.execute("return await Promise.all([1, 2, 3, 4].map(() => api.read({})))").await;
    assert_eq!(answer["status"], "ok", "{answer}");
    assert!(!answer.to_string().contains("token-1234567890"), "tokens are redacted: {answer}");
    assert_eq!(state(), (1, (4, 0)), "one token for all");
    let body = "grant_type=client_credentials&scope=a+b&audience=all+of+it";
    assert_eq!(issuer.0.lock().expect("not poisoned").requests, [body]);

    let answer =
        server.execute("await api.revoke({}); return await Promise.all([1, 2, 3].map(() => api.read({})))").await;
    assert_eq!(answer["status"], "ok", "{answer}");
    let (tokens, (accepted, refused)) = state();
    assert!(tokens == 2 && accepted == 8 && (1..=3).contains(&refused), "{tokens} {accepted} {refused}");

    // From now on tokens expire too soon to be used twice.
    issuer.0.lock().expect("not poisoned").seconds = 5;
    server.execute("await api.revoke({}); await api.read({})").await;
    server.execute("await api.read({})").await;
    assert_eq!(state().0, 4);
    server.end().await;

    let server = Server::start(&["--config", &config(CLIENT_SECRET, "body")]).await;
    let answer = server.execute("return await api.read({})").await;
    assert_eq!((&answer["status"], state().0), (&json!("ok"), 5), "{answer}");
    server.end().await;

    let server = Server::start(&["--config", &config("another-1234567890", "header")]).await;
    let answer = server.execute("return await api.read({})").await;
    let error = &answer["error"];
    assert_eq!((&answer["status"], &error["code"]), (&json!("tool_error"), &json!("TOOL_EXECUTION_ERROR")), "{answer}");
    let message = error["message"].as_str().expect("a text");
    assert!(
        message.contains("no token for the security scheme 'service'") && message.contains("invalid_client (who?)"),
        "{message}"
    );
    assert!(!answer.to_string().contains("another-1234567890"), "{answer}");
    server.end().await;
}
