//! Clients of the HTTP server: several tokens, tokens of an issuer, and what is a client's own.

use crate::model_server::{HttpProcess, http_client, serve};
use crate::support::*;
use axum::Router;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use rmcp::RoleClient;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

pub const OWN: &str = "token-of-the-server-itself";
const ALICE: &str = "token-of-alice-0123456789";
const BOB: &str = "token-of-bob-0123456789";

async fn start(folder: &Folder, config: Value) -> HttpProcess {
    let config = folder.file("config.json", config.to_string());
    HttpProcess::start(&["--demo", "--config", &config]).await
}

async fn connect(server: &HttpProcess, token: &str) -> RunningService<RoleClient, RecordingClient> {
    let config = StreamableHttpClientTransportConfig::with_uri(format!("{}/mcp", server.url)).auth_header(token);
    let transport = StreamableHttpClientTransport::with_client(http_client(), config);
    let connecting = RecordingClient::default().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize);
    connecting.await.expect("speaks MCP")
}

/// Calls a tool and returns its text.
async fn tell(client: &RunningService<RoleClient, RecordingClient>, tool: &str, arguments: Value) -> String {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let result = client.peer().call_tool(request).await.expect("a result");
    result.structured_content.as_ref().map_or_else(|| text(&result), Value::to_string)
}

async fn ask(client: &RunningService<RoleClient, RecordingClient>, tool: &str, arguments: Value) -> Value {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    data(&client.peer().call_tool(request).await.expect("a result"))
}

async fn execute(client: &RunningService<RoleClient, RecordingClient>, script: &str) -> Value {
    ask(client, "codecall_execute", json!({"script": script})).await
}

/// Sends a request. Returns the status, the header that says what is wanted, the session and the body.
async fn send(
    server: &HttpProcess,
    method: &str,
    path: &str,
    token: &str,
    session: Option<&str>,
    body: &Value,
) -> (u16, String, String, String) {
    let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
    let mut request =
        http_client().request(method, format!("{}{path}", server.url)).header("content-type", "application/json");
    request = request.header("accept", "application/json, text/event-stream");
    if !token.is_empty() {
        request = request.bearer_auth(token);
    }
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    let response = request.body(body.to_string()).send().await.expect("an answer");
    let header =
        |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let (wanted, session, status) = (header("www-authenticate"), header("mcp-session-id"), response.status().as_u16());
    (status, wanted, session, response.text().await.expect("text"))
}

#[tokio::test]
async fn each_token_has_its_own_tools_and_limits() {
    let folder = Folder::new();
    let digest: String = Sha256::digest(BOB).iter().map(|byte| format!("{byte:02X}")).collect();
    let audit = folder.path("audit.jsonl");
    let config = json!({
        "http": {
            "token": OWN,
            "tokens": [
                {"name": "alice", "token": ALICE, "operator": true},
                {"name": "bob", "sha256": digest, "tools": {"allow": ["users:*"], "deny": ["users:delete"]},
                 "limits": {"maxToolCalls": 1, "timeoutMs": 999_999}, "maxRuns": 1},
            ],
        },
        "audit": {"file": audit},
    });
    let server = start(&folder, config).await;
    let (own, alice, bob) = (connect(&server, OWN).await, connect(&server, ALICE).await, connect(&server, BOB).await);
    let names = "return [typeof users, typeof orders, typeof billing].join()";
    for (client, expected) in [(&own, true), (&alice, true), (&bob, false)] {
        let found =
            ask(client, "codecall_search", json!({"filter": {"appIds": ["orders"]}, "query": "list orders"})).await;
        assert_eq!(found["tools"].as_array().is_some_and(|tools| !tools.is_empty()), expected, "{found}");
        let called = ask(client, "codecall_invoke", json!({"tool": "orders:list", "input": {}})).await;
        assert_eq!(called["status"] == "ok", expected, "{called}");
        let answer = execute(client, names).await;
        assert_eq!(answer["result"] == "object,object,object", expected, "{answer}");
    }
    let one = "const user = await users.get({ id: 'usr_001' });";
    assert_eq!(execute(&bob, &format!("{one} return user.id")).await["result"], "usr_001");
    let two = execute(&bob, &format!("{one} await users.get({{ id: 'usr_002' }})")).await;
    assert_eq!(two["error"]["code"], "MAX_TOOL_CALLS_EXCEEDED", "{two}");
    // One script at once; others are not affected.
    let waits = "await sleep(1500); return 1";
    let (first, second, other) = tokio::join!(
        execute(&bob, waits),
        async {
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            execute(&bob, "return 2").await
        },
        execute(&alice, waits),
    );
    assert_eq!((&first["result"], &other["result"]), (&json!(1), &json!(1)), "{first} {other}");
    assert_eq!(second["error"]["code"], "QUEUE_FULL", "{second}");

    // Who may read how the server is.
    for (token, path, expected) in [
        (OWN, "/v1/status", 200),
        (ALICE, "/v1/status", 200),
        (BOB, "/v1/status", 403),
        (BOB, "/metrics", 403),
        (BOB, "/healthz", 200),
        ("", "/v1/status", 401),
        ("token-of-mallory-0123456789", "/v1/status", 401),
    ] {
        let (status, wanted, _, body) = send(&server, "GET", path, token, None, &Value::Null).await;
        assert_eq!(status, expected, "{path} {body}");
        assert_eq!(wanted, if expected == 401 { "Bearer" } else { "" });
    }
    let (_, _, _, figures) = send(&server, "GET", "/metrics", OWN, None, &Value::Null).await;
    assert!(figures.contains("codecall_client_requests_total{client=\"bob\",status=\"200\"}"), "{figures}");
    let records = std::fs::read_to_string(&audit).expect("records");
    let records: Vec<Value> = records.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |name: Value| records.iter().filter(|record| record["client"] == name).count();
    assert!(of(json!("bob")) > 0 && of(json!("alice")) > 0 && of(Value::Null) > 0, "{records:?}");
    assert!(records.iter().all(|record| !record.to_string().contains("token-of")));
    assert_eq!(server.end().await, Some(0));
}

#[tokio::test]
async fn what_a_client_has_begun_is_its_own() {
    let folder = Folder::new();
    let tokens = json!([{"name": "alice", "token": ALICE}, {"name": "bob", "token": BOB, "rate": {"limit": 12, "window": "1h"}}]);
    let config = json!({"http": {"tokens": tokens}, "vm": {"maxResultBytes": 1000}});
    let server = start(&folder, config).await;
    let alice = connect(&server, ALICE).await;
    let long = execute(&alice, "return 'secret of alice '.repeat(1000)").await;
    let handle = long["truncated"]["handle"].as_str().expect("a handle").to_owned();
    let read = |handle: &str| json!({"handle": handle, "offset": 0});
    let again = tell(&alice, "codecall_execute", read(&handle)).await;
    assert!(again.contains("secret of alice"), "{again}");
    let bob = connect(&server, BOB).await;
    let (plain, _) = handle.rsplit_once('-').expect("a mark");
    for stolen in [handle.as_str(), plain] {
        let refused = tell(&bob, "codecall_execute", read(stolen)).await;
        assert!(!refused.contains("secret of alice"), "{refused}");
    }
    // A session.
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
    let (status, _, session, _) = send(&server, "POST", "/mcp", ALICE, None, &initialize).await;
    assert!(status == 200 && !session.is_empty());
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"});
    for (method, token, expected) in [("POST", BOB, 404), ("GET", BOB, 404), ("DELETE", BOB, 404), ("POST", ALICE, 200)]
    {
        let (status, _, _, body) = send(&server, method, "/mcp", token, Some(&session), &list).await;
        assert!(status == expected || (method == "DELETE" && status != 200), "{method} {status} {body}");
    }
    // The rate of one client is not that of the other.
    let mut statuses = Vec::new();
    for _ in 0..13 {
        statuses.push(send(&server, "GET", "/v1/nothing", BOB, None, &Value::Null).await.0);
    }
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    assert_eq!(send(&server, "GET", "/v1/nothing", ALICE, None, &Value::Null).await.0, 404);
}

/// A key of an issuer.
pub enum SigningKey {
    Ed(Ed25519KeyPair),
    P256(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

impl SigningKey {
    pub fn ed() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        Self::Ed(Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key"))
    }

    fn p256() -> Self {
        let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(kind, &random).expect("a key");
        Self::P256(EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).expect("a key"))
    }

    /// Returns a key of RSA, which ring cannot make.
    fn rsa() -> Self {
        let words = ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-outform", "DER"];
        let made = Command::new("openssl").args(words).output().expect("there is openssl");
        let key = RsaKeyPair::from_pkcs8(&made.stdout).or_else(|_| RsaKeyPair::from_der(&made.stdout));
        Self::Rsa(key.expect("a key"))
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Ed(_) => "EdDSA",
            Self::P256(_) => "ES256",
            Self::Rsa(_) => "RS256",
        }
    }

    pub fn jwk(&self, id: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let mut key = match self {
            Self::Ed(key) => json!({"kty": "OKP", "crv": "Ed25519", "x": text(key.public_key().as_ref())}),
            Self::P256(key) => {
                let point = key.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "x": text(&point[1..33]), "y": text(&point[33..])})
            }
            Self::Rsa(key) => {
                let parts: ring::rsa::PublicKeyComponents<Vec<u8>> = key.public().into();
                json!({"kty": "RSA", "n": text(&parts.n), "e": text(&parts.e)})
            }
        };
        (key["kid"], key["use"], key["alg"]) = (id.into(), "sig".into(), self.algorithm().into());
        key
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let text = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", text(header), text(claims));
        let signature = match self {
            Self::Ed(key) => key.sign(message.as_bytes()).as_ref().to_vec(),
            Self::P256(key) => key.sign(&SystemRandom::new(), message.as_bytes()).expect("signed").as_ref().to_vec(),
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature).expect("signed");
                signature
            }
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    pub fn token(&self, id: &str, claims: &Value) -> String {
        self.sign(&json!({"alg": self.algorithm(), "kid": id, "typ": "at+jwt"}), claims)
    }
}

pub const ISSUER: &str = "https://issuer.example";
pub const RESOURCE: &str = "https://tools.example/mcp";

/// Claims of a valid token, with changes.
pub fn claims(changes: Value) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
    let mut claims =
        json!({"iss": ISSUER, "aud": RESOURCE, "exp": now + 600, "nbf": now - 10, "sub": "carol", "scope": "read"});
    for (key, value) in changes.as_object().expect("an object") {
        match value {
            Value::Null => drop(claims.as_object_mut().expect("an object").remove(key)),
            Value::Number(seconds) => claims[key] = (now as i64 + seconds.as_i64().expect("seconds")).into(),
            value => claims[key] = value.clone(),
        }
    }
    claims
}

#[tokio::test]
#[ignore = "SKIPPED: needs OpenSSL: bash .ci/run"]
async fn tokens_that_rsa_signs() {
    let (folder, rsa) = (Folder::new(), SigningKey::rsa());
    let keys = json!({"keys": [rsa.jwk("rsa")]});
    let issuer = serve(Router::new().route("/jwks", get(move || async move { axum::Json(keys) }))).await;
    let jwt = json!({"issuer": ISSUER, "jwks": format!("{issuer}/jwks"), "scopes": {"read": {"allow": ["users:*"]}}});
    let server = start(&folder, json!({"http": {"token": OWN, "jwt": jwt, "resource": RESOURCE}})).await;
    let status = async |token: &str| send(&server, "GET", "/v1/nothing", token, None, &Value::Null).await.0;
    assert_eq!(status(&rsa.token("rsa", &claims(json!({})))).await, 404);
    let other = SigningKey::rsa().token("rsa", &claims(json!({})));
    assert_eq!(status(&other).await, 401, "of another key");
}

#[tokio::test]
async fn tokens_of_an_issuer() {
    let folder = Folder::new();
    let (ed, p256) = (SigningKey::ed(), SigningKey::p256());
    let keys = Arc::new(Mutex::new(vec![ed.jwk("ed"), p256.jwk("p256"), json!({"kty": "unknown", "kid": "odd"})]));
    let (served, reads) = (Arc::clone(&keys), Arc::new(Mutex::new(0)));
    let count = Arc::clone(&reads);
    let jwks = move || async move {
        *count.lock().expect("not poisoned") += 1;
        axum::Json(json!({"keys": *served.lock().expect("not poisoned")}))
    };
    let issuer = serve(Router::new().route("/jwks", get(jwks))).await;
    let jwt = json!({
        "issuer": ISSUER, "jwks": format!("{issuer}/jwks"),
        "scopes": {"read": {"allow": ["users:*"]}, "write": {"allow": ["orders:*"]}},
    });
    let server = start(&folder, json!({"http": {"token": OWN, "jwt": jwt, "resource": RESOURCE}})).await;
    let status = async |token: &str| send(&server, "GET", "/v1/nothing", token, None, &Value::Null).await;
    for (key, id) in [(&ed, "ed"), (&p256, "p256")] {
        assert_eq!(status(&key.token(id, &claims(json!({})))).await.0, 404, "{id}");
        let audiences = json!({"aud": ["https://other.example", RESOURCE], "scope": null, "scp": ["read"]});
        assert_eq!(status(&key.token(id, &claims(audiences))).await.0, 404, "{id}");
    }
    assert_eq!(*reads.lock().expect("not poisoned"), 1);
    let good = ed.token("ed", &claims(json!({})));
    let header = |header: Value| ed.sign(&header, &claims(json!({})));
    let unsigned = format!("{}.", header(json!({"alg": "none"})).rsplit_once('.').expect("three parts").0);
    let other = claims(json!({"sub": "mallory"}));
    let parts: Vec<&str> = good.split('.').collect();
    let moved = format!("{}.{}.{}", parts[0], URL_SAFE_NO_PAD.encode(other.to_string()), parts[2]);
    // The public key as the secret of an HMAC.
    let public = STANDARD
        .decode(STANDARD.encode(URL_SAFE_NO_PAD.decode(ed.jwk("ed")["x"].as_str().expect("x")).expect("bytes")));
    let message = header(json!({"alg": "HS256", "kid": "ed"})).rsplit_once('.').expect("three parts").0.to_owned();
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &public.expect("bytes"));
    let confused = format!("{message}.{}", URL_SAFE_NO_PAD.encode(ring::hmac::sign(&secret, message.as_bytes())));
    for (token, reason) in [
        (ed.token("ed", &claims(json!({"exp": -60}))), "it has expired"),
        (ed.token("ed", &claims(json!({"exp": null}))), "it lacks"),
        (ed.token("ed", &claims(json!({"nbf": 60}))), "not valid yet"),
        (ed.token("ed", &claims(json!({"aud": "https://other.example"}))), "for another server"),
        (ed.token("ed", &claims(json!({"aud": null}))), "it lacks"),
        (ed.token("ed", &claims(json!({"iss": "https://other.example"}))), "of another issuer"),
        (ed.token("ed", &claims(json!({"iss": null}))), "it lacks"),
        (ed.token("ed", &claims(json!({"sub": null}))), "no subject"),
        (ed.token("ed", &claims(json!({"sub": ""}))), "no subject"),
        (ed.token("ed", &claims(json!({"sub": " \u{a0}", "client_id": "app"}))), "no subject"),
        (ed.token("ed", &claims(json!({"sub": null, "azp": ""}))), "no subject"),
        (ed.token("p256", &claims(json!({}))), "its key is unknown"),
        (ed.token("odd", &claims(json!({}))), "its key is unknown"),
        (ed.token("no-such-key", &claims(json!({}))), "its key is unknown"),
        (SigningKey::ed().token("ed", &claims(json!({}))), "its signature is wrong"),
        (moved, "its signature is wrong"),
        (unsigned, "it is not a JWT"),
        (confused, "its algorithm is not accepted"),
        (header(json!({"alg": "EdDSA", "kid": "ed", "crit": ["b64"], "b64": false})), "critical"),
        ("not.a.token".into(), "it is not a JWT"),
        ("a".repeat(20_000), "too long"),
    ] {
        let (status, wanted, _, body) = status(&token).await;
        assert_eq!(status, 401, "{reason}: {body}");
        assert!(wanted.contains("error=\"invalid_token\"") && wanted.contains(reason), "{reason}: {wanted}");
        let metadata = "resource_metadata=\"https://tools.example/.well-known/oauth-protected-resource/mcp\"";
        assert!(wanted.contains(metadata) && wanted.contains("scope=\"read write\""), "{wanted}");
    }
    let (code, wanted, _, _) = status("").await;
    assert!(code == 401 && !wanted.contains("error"), "{wanted}");
    // Scopes are separated by spaces, not by other white space.
    for scope in
        ["none", "", "none\u{a0}read", "none\tread", "read\n", "none\u{2028}read", "\u{3000}read", "read\u{b}write"]
    {
        for claim in ["scope", "scp"] {
            let token = ed.token("ed", &claims(json!({"scope": null, claim: scope})));
            let (code, wanted, _, _) = status(&token).await;
            assert!(code == 403 && wanted.contains("insufficient_scope"), "{scope:?}: {code} {wanted}");
        }
    }
    assert_eq!(status(&ed.token("ed", &claims(json!({"scope": "  none  read "})))).await.0, 404);
    assert!(*reads.lock().expect("not poisoned") <= 3, "unknown keys do not make the server ask again and again");

    // The metadata need no token.
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let (code, _, _, body) = send(&server, "GET", path, "", None, &Value::Null).await;
        let metadata: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!((code, &metadata["resource"]), (200, &json!(RESOURCE)));
        assert_eq!(metadata["authorization_servers"], json!([ISSUER]));
        assert_eq!(metadata["scopes_supported"], json!(["read", "write"]));
    }

    // Scopes select tools.
    let carol = connect(&server, &good).await;
    let invoke = |tool: &str| json!({"tool": tool, "input": {}});
    assert_eq!(ask(&carol, "codecall_invoke", invoke("users:list")).await["status"], "ok");
    assert_eq!(ask(&carol, "codecall_invoke", invoke("orders:list")).await["error"]["code"], "TOOL_NOT_FOUND");
    let both = connect(&server, &ed.token("ed", &claims(json!({"scope": "read write", "sub": "dave"})))).await;
    assert_eq!(ask(&both, "codecall_invoke", invoke("orders:list")).await["status"], "ok");

    // The issuer changes its keys.
    let next = SigningKey::ed();
    *keys.lock().expect("not poisoned") = vec![next.jwk("next")];
    let mut code = 0;
    for _ in 0..40 {
        code = status(&next.token("next", &claims(json!({})))).await.0;
        if code == 404 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
    assert_eq!(code, 404);
    assert_eq!(status(&good).await.0, 401, "the old key is gone");
}

#[tokio::test]
async fn configurations_that_are_wrong() {
    let folder = Folder::new();
    let jwt = json!({"issuer": ISSUER, "jwks": "keys.json"});
    for (http, expected) in [
        (json!({"tokens": [{"token": ALICE}]}), "http.tokens[0].name"),
        (json!({"tokens": [{"name": "a"}]}), "give either 'token' or 'sha256'"),
        (json!({"tokens": [{"name": "a", "token": ALICE, "sha256": "00"}]}), "give either"),
        (json!({"tokens": [{"name": "a", "sha256": "00"}]}), "64 hexadecimal digits"),
        (json!({"tokens": [{"name": "a", "token": "short"}]}), "at least 16"),
        (json!({"tokens": [{"name": "a", "token": ALICE}, {"name": "a", "token": BOB}]}), "another token of this name"),
        (json!({"tokens": [{"name": "a", "token": ALICE, "limits": {"maxTols": 1}}]}), "maxTols"),
        (json!({"jwt": jwt}), "http.resource"),
        (json!({"jwt": {"issuer": ISSUER}, "resource": RESOURCE}), "http.jwt.jwks"),
        (json!({"jwt": {"issuer": ISSUER, "jwks": "http://keys.example"}, "resource": RESOURCE}), "TLS"),
        (json!({"jwt": {"issuer": ISSUER, "jwks": "k", "algorithms": ["HS256"]}, "resource": RESOURCE}), "algorithms"),
    ] {
        let config = folder.file("config.json", json!({"http": http}).to_string());
        let checked = codecall(&["config", "check", &config]).await;
        assert_ne!(checked.code, Some(0), "{http}");
        let said = format!("{}{}", checked.stdout, checked.stderr);
        assert!(said.contains(expected) && !said.contains(ALICE), "{expected}: {said}");
    }
}
