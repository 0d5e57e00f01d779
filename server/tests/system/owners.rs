//! Ownership: runs, approvals and rates belong to the key of a subject (issuer, subject, client), whatever its name
//! looks like. They are read with the scopes of their beginning.

use crate::http_clients::{ISSUER, OWN, RESOURCE, SigningKey, claims};
use crate::model_server::{HttpProcess, http_client, serve};
use crate::support::*;
use crate::upstream_server::{UpstreamServer, tool};
use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};

/// An issuer of tokens, and a server with durable runs and a bank, which accepts them.
struct World {
    folder: Folder,
    key: SigningKey,
    bank: UpstreamServer,
    config: String,
}

impl World {
    async fn new(scopes: Value, rate: Value) -> Self {
        let (folder, key) = (Folder::new(), SigningKey::ed());
        let keys = json!({"keys": [key.jwk("ed")]});
        let issuer = serve(Router::new().route("/jwks", get(move || async move { axum::Json(keys) }))).await;
        let mut close = tool("close", "A tool of a bank");
        close["annotations"] = json!({"destructiveHint": true});
        let bank = UpstreamServer::start(vec![close]).await;
        let mut jwt = json!({"issuer": ISSUER, "jwks": format!("{issuer}/jwks"), "scopes": scopes});
        if !rate.is_null() {
            jwt["rate"] = rate;
        }
        let config = json!({
            "mcpServers": {"bank": {"url": bank.url()}},
            "http": {"token": OWN, "jwt": jwt, "resource": RESOURCE},
            "durable": {"enabled": true},
            "approval": {"rules": [{"tool": "bank:close", "approval": "once"}]},
            "directCalls": {"enabled": true},
            "stateDir": folder.path("state"), "store": folder.path("state/codecall.db"),
        });
        let config = folder.file("config.json", config.to_string());
        Self { folder, key, bank, config }
    }

    async fn start(&self) -> HttpProcess {
        HttpProcess::start(&["--config", &self.config]).await
    }

    fn token(&self, changes: Value) -> String {
        self.key.token("ed", &claims(changes))
    }
}

/// Sends a request. Returns the status and the body.
async fn send(server: &HttpProcess, token: &str, path: &str, key: &str, body: Option<Value>) -> (u16, Value) {
    let url = format!("{}{path}", server.url);
    let mut request = match &body {
        Some(body) => http_client().post(url).header("content-type", "application/json").body(body.to_string()),
        None => http_client().get(url),
    };
    request = request.bearer_auth(token);
    if !key.is_empty() {
        request = request.header("idempotency-key", key);
    }
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let text = response.text().await.expect("text");
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

async fn submit(server: &HttpProcess, token: &str, key: &str, script: &str) -> String {
    let (status, answer) = send(server, token, "/v1/runs", key, Some(json!({"script": script}))).await;
    assert!(status == 202 || status == 200, "{status} {answer}");
    answer["id"].as_str().expect("an id").to_owned()
}

async fn read(server: &HttpProcess, token: &str, run: &str) -> (u16, Value) {
    send(server, token, &format!("/v1/runs/{run}?wait=20"), "", None).await
}

/// Subjects whose names are the same where they are cut, or by their look, or whose clients differ.
fn look_alikes() -> [(Value, Value); 4] {
    let long = "x".repeat(200);
    [
        (json!({"sub": format!("{long}a")}), json!({"sub": format!("{long}b")})),
        (json!({"sub": "carol"}), json!({"sub": "car\u{200b}ol"})),
        (json!({"sub": "carol", "client_id": "editor"}), json!({"sub": "carol", "client_id": "mallory"})),
        (json!({"sub": "dora", "azp": "editor"}), json!({"sub": "dora"})),
    ]
}

#[tokio::test]
async fn runs_belong_to_the_key_of_a_subject() {
    let world = World::new(json!({}), Value::Null).await;
    let server = world.start().await;
    for (at, (one, other)) in look_alikes().into_iter().enumerate() {
        let (one, other) = (world.token(one), world.token(other));
        let key = format!("key {at}");
        let run = submit(&server, &one, &key, "return 'private'").await;
        assert_eq!(read(&server, &one, &run).await.1["result"], "private");
        for path in ["", "/events"] {
            let (status, answer) = send(&server, &other, &format!("/v1/runs/{run}{path}"), "", None).await;
            assert_eq!(status, 404, "{at} {path}: {answer}");
        }
        let open = submit(&server, &one, "", "await sleep(60_000)").await;
        for id in [&run, &open] {
            let (status, answer) = send(&server, &other, &format!("/v1/runs/{id}/cancel"), "", Some(json!({}))).await;
            assert_eq!(status, 404, "{at}: {answer}");
        }
        assert_ne!(submit(&server, &other, &key, "return 'private'").await, run, "{at}: a key is the client's own");
        assert_eq!(submit(&server, &one, &key, "return 'private'").await, run, "{at}");
        let cancel = format!("/v1/runs/{open}/cancel");
        assert_eq!(send(&server, &one, &cancel, "", Some(json!({}))).await.0, 200, "{at}");
    }
    server.end().await;
}

/// A token with fewer scopes reads nothing of what one with more has begun; one with more does.
#[tokio::test]
async fn a_run_is_read_with_the_scopes_that_it_was_begun_with() {
    let scopes = json!({"read": {"allow": ["bank:*"]}, "write": {"allow": ["bank:*"]}});
    let world = World::new(scopes, Value::Null).await;
    let server = world.start().await;
    let read_only = world.token(json!({"scope": "read"}));
    let write_only = world.token(json!({"scope": "write"}));
    let both = world.token(json!({"scope": "read write"}));
    for (begins, reads) in [
        (&both, [(&read_only, 404), (&write_only, 404), (&both, 200)]),
        (&read_only, [(&read_only, 200), (&write_only, 404), (&both, 200)]),
    ] {
        let run = submit(&server, begins, "", "return 'private'").await;
        let open = submit(&server, begins, "", "await sleep(60_000)").await;
        for (reader, expected) in reads {
            let (status, answer) = read(&server, reader, &run).await;
            assert_eq!(status, expected, "{answer}");
            let (status, _) = send(&server, reader, &format!("/v1/runs/{open}"), "", None).await;
            assert_eq!(status, expected);
            if expected == 404 {
                let cancel = format!("/v1/runs/{open}/cancel");
                assert_eq!(send(&server, reader, &cancel, "", Some(json!({}))).await.0, 404);
            }
        }
    }
    server.end().await;
}

#[tokio::test]
async fn rates_belong_to_the_key_of_a_subject() {
    let scopes = json!({"read": {"allow": ["bank:*"]}, "write": {"allow": ["bank:*"]}});
    let world = World::new(scopes, json!({"limit": 3, "window": "1h"})).await;
    let server = world.start().await;
    let status = async |token: &str| send(&server, token, "/v1/nothing", "", None).await.0;
    let long = "x".repeat(200);
    let subject = |end: &str, scope: &str| world.token(json!({"sub": format!("{long}{end}"), "scope": scope}));
    let mut statuses = Vec::new();
    for scope in ["read", "write", "read write", "read"] {
        statuses.push(status(&subject("a", scope)).await);
    }
    assert_eq!(statuses, [404, 404, 404, 429], "other scopes have no rate of their own");
    assert_eq!(status(&subject("b", "read")).await, 404, "another subject has one");
    server.end().await;
}

/// An approval of a person for a subject holds for no other one.
#[tokio::test]
async fn approvals_belong_to_the_key_of_a_subject() {
    let world = World::new(json!({}), Value::Null).await;
    let server = world.start().await;
    let approve = async || {
        let (_, waiting) = send(&server, OWN, "/v1/approvals", "", None).await;
        for approval in waiting["approvals"].as_array().expect("a list") {
            let path = format!("/v1/approvals/{}", approval["id"].as_str().expect("an id"));
            send(&server, OWN, &path, "", Some(json!({"decision": "approve"}))).await;
        }
    };
    for (at, (one, other)) in look_alikes().into_iter().enumerate() {
        let (one, other) = (world.token(one), world.token(other));
        let run = submit(&server, &one, "", "return await bank.close({})").await;
        until_waiting(&server, &one, &run).await;
        approve().await;
        assert_eq!(read(&server, &one, &run).await.1["status"], "ok", "{at}");
        let again = submit(&server, &one, "", "return await bank.close({})").await;
        assert_eq!(read(&server, &one, &again).await.1["status"], "ok", "{at}: it holds for further calls");
        let asked = submit(&server, &other, "", "return await bank.close({})").await;
        until_waiting(&server, &other, &asked).await;
        send(&server, &other, &format!("/v1/runs/{asked}/cancel"), "", Some(json!({}))).await;
    }
    assert!(world.bank.calls() > 0);
    server.end().await;
}

async fn until_waiting(server: &HttpProcess, token: &str, run: &str) {
    for _ in 0..100 {
        let (_, answer) = send(server, token, &format!("/v1/runs/{run}"), "", None).await;
        match answer["status"].as_str() {
            Some("waiting") => return,
            Some("running") => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
            _ => panic!("it does not wait: {answer}"),
        }
    }
    panic!("{run} does not wait");
}

/// Runs of earlier versions belong to names. The first client of a name gets them, unless the name was cut.
#[tokio::test]
async fn runs_of_an_earlier_version_are_claimed_once() {
    let world = World::new(json!({}), Value::Null).await;
    let server = world.start().await;
    let long = "x".repeat(200);
    let carol = world.token(json!({"sub": "carol"}));
    let script = "return 'private'";
    let (ended, keyed) = (submit(&server, &carol, "", script).await, submit(&server, &carol, "", script).await);
    let cut = submit(&server, &world.token(json!({"sub": long})), "", script).await;
    for (token, run) in [(&carol, &ended), (&carol, &keyed), (&world.token(json!({"sub": long})), &cut)] {
        assert_eq!(read(&server, token, run).await.1["result"], "private");
    }
    server.end().await;
    // The rows as an earlier version has left them.
    let store = rusqlite::Connection::open(world.folder.path("state/codecall.db")).expect("the store");
    let cut_name = format!("jwt:{}", &long[..128]);
    for (run, name) in [(&ended, "jwt:carol"), (&keyed, "jwt:carol"), (&cut, &*cut_name)] {
        let changed = store.execute("UPDATE journaled_runs SET principal = ?1 WHERE id = ?2", [name, run]);
        assert_eq!(changed, Ok(1));
    }
    drop(store);
    let server = world.start().await;
    let other = world.token(json!({"sub": "carol", "client_id": "mallory"}));
    assert_eq!(read(&server, &world.token(json!({"sub": format!("{long}b")})), &cut).await.0, 404, "it was cut");
    assert_eq!(read(&server, &world.token(json!({"sub": long})), &cut).await.0, 404, "it was cut");
    assert_eq!(read(&server, &world.token(json!({"sub": "dave"})), &ended).await.0, 404);
    assert_eq!(read(&server, &carol, &ended).await.1["result"], "private");
    assert_eq!(read(&server, &other, &ended).await.0, 404, "the first client has claimed it");
    assert_eq!(read(&server, &other, &keyed).await.0, 404, "and all others of the name");
    assert_eq!(read(&server, &carol, &keyed).await.1["result"], "private");
    server.end().await;
}
