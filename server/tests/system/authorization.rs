//! OAuth towards MCP servers: login, renewal, what must be refused, and what people are told.

use crate::authorization_server::AuthorizationServer;
use crate::support::*;
use crate::upstream_server::UpstreamServer;
use axum::Router;
use axum::response::IntoResponse as _;
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;

fn config(folder: &Folder, upstream: &UpstreamServer, auth: Value) -> String {
    let mut server = json!({"url": upstream.url(), "lifecycle": "initialize"});
    if !auth.is_null() {
        server["auth"] = auth;
    }
    let config = json!({
        "mcpServers": {"box": server}, "stateDir": folder.path("state"), "store": folder.path("state/codecall.db"), "serverCache": {"enabled": false},
    });
    folder.file("config.json", config.to_string())
}

/// Logs in. `visit` is what the person does with the address.
async fn login<F: Future<Output = ()>>(config: &str, more: &[&str], visit: impl FnOnce(String) -> F) -> Finished {
    let mut command = Command::new(PROGRAM);
    command.args(["auth", "login", "box", "--config", config]).args(more).env_remove("RUST_LOG").kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut stderr = String::new();
    let mut visit = Some(visit);
    while let Some(line) = tokio::time::timeout(TIMEOUT, lines.next_line()).await.expect("a line").expect("text") {
        if let Some((_, address)) = line.split_once("to log in: ")
            && let Some(visit) = visit.take()
        {
            visit(address.to_owned()).await;
        }
        stderr = format!("{stderr}{line}\n");
    }
    let mut stdout = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut stdout).await.expect("text");
    let code = tokio::time::timeout(TIMEOUT, child.wait()).await.expect("ends").expect("ends").code();
    Finished { code, stdout, stderr }
}

/// Opens an address as a browser does, and returns the text of the last page.
async fn browse(address: &str) -> String {
    // It installs the provider of TLS.
    let _ = codecall::http::client(TIMEOUT);
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    client.get(address).send().await.expect("an answer").text().await.expect("text")
}

async fn browses(address: String) {
    browse(&address).await;
}

async fn open_box(config: &str) -> Value {
    codecall(&["invoke", "box:open", "--config", config]).await.json()
}

#[tokio::test]
async fn a_person_logs_in_and_tokens_are_renewed() {
    let folder = Folder::new();
    let (server, upstream) = AuthorizationServer::start().await;
    let config = config(&folder, &upstream, Value::Null);
    // Without tokens: everybody is told what to do, and nothing waits.
    let answer = open_box(&config).await;
    assert_eq!(answer["error"]["code"], "LOGIN_REQUIRED", "{answer}");
    let needs = "needs login: codecall auth login box";
    assert!(answer.to_string().contains(needs), "{answer}");
    let status = codecall(&["status", "--json", "--config", &config]).await;
    assert!(status.json()["servers"][0]["error"].as_str().is_some_and(|error| error.contains(needs)), "{status:?}");
    assert_eq!(status.stderr.matches(needs).count(), 1, "{status:?}");

    // A running server goes on as soon as somebody has logged in.
    let running = Server::start(&["--config", &config]).await;
    let script =
        "try { return await callTool('box:open', {a: 1}) } catch (error) { return error.code + error.message }";
    let before = running.execute(script).await["result"].clone();
    assert!(before.as_str().is_some_and(|text| text.contains(needs)), "{before}");
    let done = login(&config, &[], browses).await;
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "logged in to box\n"), "{done:?}");
    let mut answer = Value::Null;
    for _ in 0..200 {
        answer = running.execute(script).await["result"].clone();
        if answer == json!({"a": 1}) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(answer, json!({"a": 1}));
    let first = server.issued().token_requests[0].clone();
    assert_eq!((first["client_id"].as_str(), &first["resource"]), ("registered-client", &upstream.url()));

    // The server forgets the token in the middle of work: it is renewed once, by one of many calls, and each is made once.
    let (requests, calls) = (server.issued().token_requests.len(), upstream.calls());
    server.issued().valid.clear();
    let many = "return (await parallel([...Array(10).keys()], (a) => callTool('box:open', {a}))).map((x) => x.a)";
    assert_eq!(running.execute(many).await["result"], json!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
    assert_eq!((server.issued().token_requests.len(), upstream.calls()), (requests + 1, calls + 10));
    assert_eq!(server.issued().token_requests[requests]["grant_type"], "refresh_token");
    // Another process uses what this one has renewed.
    assert_eq!(open_box(&config).await["status"], "ok");
    assert_eq!(server.issued().token_requests.len(), requests + 1);
    // Tokens are in no output.
    let token = server.issued().valid.keys().next().expect("a token").clone();
    let leak = format!("return await callTool('box:open', {{token: '{token}'.split('').join('')}})");
    let shown = running.execute(&leak).await.to_string();
    assert!(!shown.contains(&token), "{shown}");

    // The refresh token is revoked: a person must log in again.
    server.issued().refresh.clear();
    server.issued().valid.clear();
    let again = running.execute(script).await["result"].clone();
    let expected =
        |text: &str| text.starts_with("LOGIN_REQUIRED") && text.contains(needs) && text.contains("invalid_grant");
    assert!(again.as_str().is_some_and(expected), "{again}");
    let log = running.end().await;
    assert!(!log.contains(&token), "{log}");

    let status = codecall(&["auth", "status", "--json", "--config", &config]).await.json();
    assert_eq!((&status[0]["state"], &status[0]["issuer"]), (&json!("logged in"), &json!(server.issuer())), "{status}");
    for file in std::fs::read_dir(folder.path("state")).expect("a folder") {
        let path = file.expect("a file").path();
        let bytes = std::fs::read(&path).expect("bytes");
        assert!(!bytes.windows(token.len()).any(|part| part == token.as_bytes()), "{}", path.display());
    }
    let out = codecall(&["auth", "logout", "box", "--config", &config]).await;
    assert_eq!((out.code, out.stdout.as_str()), (Some(0), "logged out of box\n"), "{out:?}");
    assert_eq!(server.issued().revoked.len(), 1);
    assert_eq!(codecall(&["auth", "status", "--json", "--config", &config]).await.json()[0]["state"], "no tokens");
}

#[tokio::test]
async fn a_token_that_expires_is_renewed_before_it_is_sent() {
    let folder = Folder::new();
    let (server, upstream) = AuthorizationServer::start().await;
    let config = config(&folder, &upstream, Value::Null);
    server.issued().expires_in = 1;
    assert_eq!(login(&config, &[], browses).await.code, Some(0));
    assert_eq!(open_box(&config).await["status"], "ok");
    let issued = server.issued();
    assert!(issued.token_requests.len() > 1, "{:?}", issued.token_requests);
    assert!(issued.token_requests[1..].iter().all(|request| request["grant_type"] == "refresh_token"));
}

#[tokio::test]
async fn a_call_that_needs_more_scopes() {
    let folder = Folder::new();
    let (server, upstream) = AuthorizationServer::start().await;
    let config = config(&folder, &upstream, Value::Null);
    assert_eq!(login(&config, &[], browses).await.code, Some(0));
    server.issued().needed_scope = Some("admin".into());
    let answer = open_box(&config).await;
    assert_eq!(answer["error"]["code"], "LOGIN_REQUIRED", "{answer}");
    assert!(answer.to_string().contains("(for the scopes 'admin')"), "{answer}");
    assert_eq!(upstream.calls(), 0);
    // The login asks for them, though it is another process.
    let done = login(&config, &[], browses).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(open_box(&config).await["status"], "ok");
    server.issued().needed_scope = Some("owner".into());
    let done = login(&config, &["--scope", "owner"], browses).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(open_box(&config).await["status"], "ok");
}

#[tokio::test]
async fn a_client_is_authorized_by_its_secret() {
    let folder = Folder::new();
    let (server, upstream) = AuthorizationServer::start().await;
    let auth = json!({"type": "client_credentials", "clientId": "robot", "clientSecret": "robot/secret"});
    let config = config(&folder, &upstream, auth);
    assert_eq!(open_box(&config).await["status"], "ok");
    // It needs another scope, and asks for that itself.
    server.issued().needed_scope = Some("admin".into());
    assert_eq!(open_box(&config).await["status"], "ok");
    let requests = server.issued().token_requests.clone();
    assert_eq!(requests.len(), 2, "{requests:?}");
    assert_eq!((requests[0]["scope"].as_str(), requests[1]["scope"].as_str()), ("box", "admin box"));
    let wrong = json!({"type": "client_credentials", "clientId": "robot", "clientSecret": "robot-secret"});
    let other = Folder::new();
    let config = self::config(&other, &upstream, wrong);
    let answer = open_box(&config).await.to_string();
    assert!(answer.contains("invalid_client") && !answer.contains("robot-secret"), "{answer}");
}

#[tokio::test]
async fn a_code_is_entered_on_another_device() {
    let folder = Folder::new();
    let (server, upstream) = AuthorizationServer::start().await;
    let config = config(&folder, &upstream, Value::Null);
    let done = login(&config, &["--device"], async |_| ()).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stderr.contains("WDJB-MJHT"), "{done:?}");
    assert_eq!(server.issued().device_polls, 2);
    assert_eq!(open_box(&config).await["status"], "ok");
    server.issued().metadata = json!({"device_authorization_endpoint": null});
    let none = login(&config, &["--device"], async |_| ()).await;
    assert!(none.code == Some(2) && none.stderr.contains("does not offer codes"), "{none:?}");
}

/// Each of these would give a token, or a code, to somebody else.
#[tokio::test]
async fn what_is_not_safe_is_refused() {
    let folder = Folder::new();
    let (server, upstream) = AuthorizationServer::start().await;
    let config = config(&folder, &upstream, Value::Null);
    let issuer = server.issuer();
    let port = server.address.port();
    for (metadata, resource, iss, expected) in [
        (json!({"code_challenge_methods_supported": ["plain"]}), json!({}), None, "PKCE"),
        (json!({"code_challenge_methods_supported": null}), json!({}), None, "PKCE"),
        (json!({"issuer": "https://other.example"}), json!({}), None, "another issuer"),
        (json!({}), json!({}), Some("https://other.example"), "another authorization server"),
        (json!({}), json!({"resource": "https://other.example/mcp"}), None, "another resource"),
        (json!({"token_endpoint": "http://other.example/token"}), json!({}), None, "no TLS"),
        (json!({"authorization_endpoint": "javascript:alert(1)"}), json!({}), None, "no TLS"),
        (json!({}), json!({"authorization_servers": ["http://169.254.169.254/latest"]}), None, "no TLS"),
        (json!({}), json!({"authorization_servers": ["https://169.254.169.254/latest"]}), None, "private"),
        (json!({}), json!({"authorization_servers": [format!("https://127.0.0.2:{port}")]}), None, "private"),
        (json!({}), json!({"authorization_servers": [format!("https://localhost:{port}")]}), None, "private"),
        (json!({}), json!({"authorization_servers": []}), None, "names no authorization server"),
    ] {
        {
            let mut issued = server.issued();
            (issued.metadata, issued.resource_metadata) = (metadata.clone(), resource.clone());
            issued.iss = iss.map(str::to_owned);
        }
        let refused = login(&config, &[], browses).await;
        assert_eq!(refused.code, Some(2), "{metadata} {resource}: {refused:?}");
        assert!(refused.stderr.contains(expected), "{metadata} {resource}: {refused:?}");
        assert_eq!(server.issued().token_requests, [], "{metadata} {resource}");
    }
    // The answer of a login that somebody else has begun changes nothing.
    {
        let mut issued = server.issued();
        (issued.metadata, issued.resource_metadata, issued.iss) = (json!({}), json!({}), None);
    }
    let done = login(&config, &[], async |address: String| {
        let url = reqwest::Url::parse(&address).expect("an address");
        let redirect = url.query_pairs().find(|(name, _)| name == "redirect_uri").expect("a redirect").1.into_owned();
        for query in ["code=stolen&state=wrong", "code=stolen", "state=wrong&error=access_denied"] {
            let page = browse(&format!("{redirect}?{query}&iss={issuer}")).await;
            assert!(page.contains("not the login"), "{page}");
        }
        browse(&redirect.replace("/callback", "/favicon.ico")).await;
        assert!(browse(&address).await.contains("You are logged in"));
    });
    let done = done.await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(server.issued().token_requests.iter().all(|request| request["code"] != "stolen"));
    // The person refuses.
    let refused = login(&config, &[], async |address: String| {
        let url = reqwest::Url::parse(&address).expect("an address");
        let value = |wanted: &str| url.query_pairs().find(|(name, _)| name == wanted).expect("a value").1.into_owned();
        browse(&format!("{}?error=access_denied&state={}&iss={issuer}", value("redirect_uri"), value("state"))).await;
    });
    let refused = refused.await;
    assert!(refused.code == Some(2) && refused.stderr.contains("access_denied"), "{refused:?}");
}

#[tokio::test]
async fn servers_that_say_less_or_nothing() {
    let folder = Folder::new();
    let (server, upstream) = AuthorizationServer::start().await;
    server.issued().has_no_challenge = true;
    let config = config(&folder, &upstream, Value::Null);
    assert!(open_box(&config).await.to_string().contains("needs login"));
    let done = login(&config, &[], browses).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(open_box(&config).await["status"], "ok");
    // A key that is gone.
    std::fs::remove_file(folder.path("state/master.key")).expect("removed");
    let answer = open_box(&config).await.to_string();
    assert!(answer.contains("which this server does not have"), "{answer}");
    let lost = codecall(&["secret", "key", "--lost", "--config", &config]).await;
    assert!(lost.code == Some(0) && lost.stderr.contains("made a master key"), "{lost:?}");
    assert_eq!(login(&config, &[], browses).await.code, Some(0));
    assert_eq!(open_box(&config).await["status"], "ok");
    // Headers of the configuration are used in place of a login.
    let own =
        json!({"mcpServers": {"box": {"url": upstream.url(), "headers": {"Authorization": "Bearer wrong-token"}}}});
    let own = folder.file("own.json", own.to_string());
    let answer = open_box(&own).await.to_string();
    assert!(answer.contains("refuses the credentials in 'headers'"), "{answer}");
    // A server that wants no login, and one that does not exist.
    let open = UpstreamServer::start(Vec::new()).await;
    let config = self::config(&folder, &open, Value::Null);
    let none = login(&config, &[], browses).await;
    assert!(none.code == Some(2) && none.stderr.contains("does not ask for a login"), "{none:?}");
    let unknown = codecall(&["auth", "login", "bxo", "--config", &config]).await;
    assert!(unknown.stderr.contains("did you mean 'box'"), "{unknown:?}");
}

/// A server of 2024-11-05 is refused by name.
#[tokio::test]
async fn servers_of_the_old_transport() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let stream = || async {
        let events = "event: endpoint\ndata: /messages?session=1\n\n";
        ([("content-type", "text/event-stream")], events).into_response()
    };
    let router = Router::new().route("/sse", axum::routing::get(stream));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let folder = Folder::new();
    let old = json!({"mcpServers": {"old": {"url": format!("http://{address}/sse")}}});
    let config = folder.file("config.json", old.to_string());
    let listed = codecall(&["tools", "--config", &config]).await;
    assert_eq!(listed.code, Some(1), "{listed:?}");
    assert!(listed.stderr.contains("HTTP+SSE of the protocol 2024-11-05"), "{listed:?}");
}

#[tokio::test]
async fn a_server_that_changes_its_authorization_server() {
    let folder = Folder::new();
    let (first, upstream) = AuthorizationServer::start().await;
    let (second, _) = AuthorizationServer::start().await;
    let config = config(&folder, &upstream, Value::Null);
    login(&config, &[], browses).await;
    assert_eq!(open_box(&config).await["status"], "ok");
    let requests = first.issued().token_requests.len();

    // Neither the refresh token nor the client of the first one is used: a person logs in at the second one.
    first.issued().valid.clear();
    first.issued().resource_metadata = json!({"authorization_servers": [second.issuer()]});
    let answer = open_box(&config).await;
    let expected = format!("its authorization server is now {}, and not {}", second.issuer(), first.issuer());
    assert_eq!(answer["error"]["code"], "LOGIN_REQUIRED", "{answer}");
    assert!(answer.to_string().contains(&expected), "{answer}");
    assert_eq!(first.issued().token_requests.len(), requests);
    assert_eq!(second.issued().registrations, 0);
    let done = login(&config, &[], browses).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(second.issued().registrations, 1);
    let issued = second.issued().valid.clone();
    first.issued().valid.extend(issued);
    assert_eq!(open_box(&config).await["status"], "ok");
}

#[tokio::test]
async fn the_secret_of_a_client_is_sent_to_its_own_authorization_server_only() {
    let folder = Folder::new();
    let (first, upstream) = AuthorizationServer::start().await;
    let (second, _) = AuthorizationServer::start().await;
    let mut auth = json!({"type": "client_credentials", "clientId": "robot", "clientSecret": "robot/secret"});
    let robot = config(&folder, &upstream, auth.clone());
    assert_eq!(open_box(&robot).await["status"], "ok");
    first.issued().valid.clear();
    first.issued().resource_metadata = json!({"authorization_servers": [second.issuer()]});
    let answer = open_box(&robot).await;
    assert!(answer.to_string().contains("codecall auth logout box', or set 'auth.issuer'"), "{answer}");
    assert_eq!(second.issued().token_requests.len(), 0);
    // Whoever writes the configuration decides.
    auth["issuer"] = second.issuer().into();
    let robot = config(&folder, &upstream, auth);
    open_box(&robot).await;
    assert_eq!(second.issued().token_requests[0]["grant_type"], "client_credentials");
}
