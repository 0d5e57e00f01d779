use super::*;
use serde_json::{Value, json};
use std::time::Instant;
use tokio::sync::mpsc;

/// A transport whose server is the test.
struct Wire {
    to_server: mpsc::UnboundedSender<Value>,
    from_server: mpsc::UnboundedReceiver<Value>,
}

/// The server's side.
struct Server {
    to_client: mpsc::UnboundedSender<Value>,
    from_client: mpsc::UnboundedReceiver<Value>,
}

fn wire() -> (Wire, Server) {
    let ((to_server, from_client), (to_client, from_server)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
    (Wire { to_server, from_server }, Server { to_client, from_client })
}

impl Transport<RoleClient> for Wire {
    type Error = std::io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = std::io::Result<()>> + Send + 'static {
        let sent = self.to_server.send(serde_json::to_value(message).expect("JSON"));
        async move { sent.map_err(|_| std::io::Error::other("Broken pipe (os error 32)")) }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let message = self.from_server.recv().await?;
        Some(serde_json::from_value(message).expect("a message"))
    }

    async fn close(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Server {
    /// Waits for a request. Returns its id.
    async fn request(&mut self, method: &str) -> Value {
        let request = tokio::time::timeout(SECOND_REQUEST_AFTER * 4, self.from_client.recv()).await;
        let request = request.expect("a request comes").expect("the client is there");
        assert_eq!(request["method"], method);
        request["id"].clone()
    }

    fn send(&self, message: Value) {
        self.to_client.send(message).expect("the client is there");
    }

    fn initialized(&self, id: &Value) {
        let server = json!({"name": "legacy", "version": "1"});
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": server});
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn discovered(&self, id: &Value, version: &str) {
        let result = json!({
            "resultType": "complete", "supportedVersions": [version], "capabilities": {}, "ttlMs": 0, "cacheScope": "private",
        });
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn refused(&self, id: &Value, message: &str) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": message}}));
    }
}

async fn outcome(wire: Wire, plan: Plan) -> Result<Lifecycle, String> {
    negotiate(wire, plan).await.map(|negotiated| negotiated.lifecycle())
}

#[tokio::test]
async fn the_first_request_is_enough() {
    for (plan, method, lifecycle) in [
        (Plan::Unknown, "server/discover", Lifecycle::Discover),
        (Plan::Remembered(Request::Initialize), "initialize", Lifecycle::Initialize),
        (Plan::Only(Request::Initialize), "initialize", Lifecycle::Initialize),
    ] {
        let (wire, mut server) = wire();
        let negotiated = tokio::spawn(outcome(wire, plan));
        let id = server.request(method).await;
        server
            .send(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}));
        match lifecycle {
            Lifecycle::Discover => server.discovered(&id, "2026-07-28"),
            Lifecycle::Initialize | Lifecycle::Auto => server.initialized(&id),
        }
        assert_eq!(negotiated.await.expect("no panic"), Ok(lifecycle));
        assert_eq!(server.from_client.recv().await, None, "nothing else was sent");
    }
}

#[tokio::test]
async fn a_refused_request_is_followed_by_the_other_one() {
    let (wire, mut server) = wire();
    let negotiated = tokio::spawn(outcome(wire, Plan::Unknown));
    let id = server.request("server/discover").await;
    server.send(json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"}));
    assert_eq!(server.from_client.recv().await.expect("an answer")["id"], "ping");
    server.refused(&id, "Method not found");
    let id = server.request("initialize").await;
    server.initialized(&id);
    assert_eq!(negotiated.await.expect("no panic"), Ok(Lifecycle::Initialize));

    // Its version is not known, and its id is left out.
    let (wire, mut server) = self::wire();
    let negotiated = tokio::spawn(outcome(wire, Plan::Unknown));
    let id = server.request("server/discover").await;
    server.discovered(&id, "2031-01-01");
    server.request("initialize").await;
    server.refused(&json!("other"), "of another request");
    server.refused(&Value::Null, "unreadable");
    assert_eq!(negotiated.await.expect("no panic"), Err("it speaks no version of MCP that is known here".into()));

    // A server that was replaced by one of the other lifecycle.
    let (wire, mut server) = self::wire();
    let negotiated = tokio::spawn(outcome(wire, Plan::Remembered(Request::Initialize)));
    let id = server.request("initialize").await;
    server.refused(&id, "no longer");
    let id = server.request("server/discover").await;
    server.refused(&id, "no");
    assert_eq!(negotiated.await.expect("no panic"), Err("it refused the handshake: no longer".into()));
}

#[tokio::test]
async fn the_end_of_the_connection_is_the_end_of_the_handshake() {
    let (wire, server) = wire();
    drop(server);
    assert_eq!(outcome(wire, Plan::Unknown).await, Err("it exited before it responded".into()));
}

#[tokio::test]
async fn the_first_answer_decides_and_a_late_one_is_ignored() {
    let decides = async |wanted: Lifecycle| {
        let (wire, mut server) = wire();
        let began = Instant::now();
        let negotiated = tokio::spawn(negotiate(wire, Plan::Unknown));
        let discover = server.request("server/discover").await;
        let initialize = server.request("initialize").await;
        assert!(began.elapsed() >= SECOND_REQUEST_AFTER);
        match wanted {
            Lifecycle::Discover => server.discovered(&discover, "2026-07-28"),
            Lifecycle::Initialize | Lifecycle::Auto => server.initialized(&initialize),
        }
        let mut negotiated = negotiated.await.expect("no panic").unwrap_or_else(|reason| panic!("{reason}"));
        assert_eq!(negotiated.lifecycle(), wanted);
        // The other answer comes now, and again before the answer to a later request.
        match wanted {
            Lifecycle::Discover => server.initialized(&initialize),
            Lifecycle::Initialize | Lifecycle::Auto => server.refused(&discover, "Method not found"),
        }
        let service = match wanted {
            Lifecycle::Discover => Request::Discover,
            Lifecycle::Initialize | Lifecycle::Auto => Request::Initialize,
        };
        let ClientJsonRpcMessage::Request(mut request) = service.message(service.id()) else { panic!("a request") };
        request.id = RequestId::Number(0);
        negotiated.send(ClientJsonRpcMessage::Request(request)).await.expect("sent");
        let reply = serde_json::to_value(negotiated.receive().await).expect("JSON");
        assert_eq!((&reply["id"], reply["result"].is_object()), (&json!(0), true), "{reply}");
        let ping = ClientRequest::PingRequest(PingRequest::default());
        negotiated.send(ClientJsonRpcMessage::request(ping, RequestId::Number(1))).await.expect("sent");
        assert_eq!(server.request("ping").await, 1, "the handshake of rmcp is not sent");
        server.send(json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        let answer = serde_json::to_value(negotiated.receive().await).expect("JSON");
        assert_eq!(answer["id"], 1, "{answer}");
    };
    tokio::join!(decides(Lifecycle::Initialize), decides(Lifecycle::Discover));
}

/// Even after a long time.
#[tokio::test]
async fn what_is_remembered_is_not_doubted() {
    let (wire, mut server) = wire();
    let negotiated = tokio::spawn(outcome(wire, Plan::Remembered(Request::Initialize)));
    let id = server.request("initialize").await;
    let second = tokio::time::timeout(SECOND_REQUEST_AFTER + Duration::from_secs(1), server.from_client.recv()).await;
    assert!(second.is_err(), "{second:?}");
    server.initialized(&id);
    assert_eq!(negotiated.await.expect("no panic"), Ok(Lifecycle::Initialize));
}

#[tokio::test]
async fn a_server_that_lists_the_version_it_refuses_is_asked_once_more() {
    let refusal = |id: &Value, versions: &[&str]| {
        let error =
            json!({"code": -32022, "message": "no", "data": {"supported": versions, "requested": "2026-07-28"}});
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    };
    let (wire, mut server) = wire();
    let serving = async {
        let first = server.request("server/discover").await;
        server.send(refusal(&first, &["2026-07-28"]));
        let second = server.request("server/discover").await;
        assert_ne!(first, second);
        server.discovered(&second, "2026-07-28");
    };
    let (outcome, ()) = tokio::join!(outcome(wire, Plan::Unknown), serving);
    assert_eq!(outcome, Ok(Lifecycle::Discover));

    // Once, and only for that version.
    for versions in [&["2026-07-28"][..], &["2025-11-25"]] {
        let (wire, mut server) = self::wire();
        let serving = async {
            let id = server.request("server/discover").await;
            server.send(refusal(&id, versions));
            if versions == ["2026-07-28"] {
                let id = server.request("server/discover").await;
                server.send(refusal(&id, versions));
            }
            let id = server.request("initialize").await;
            server.initialized(&id);
        };
        let (outcome, ()) = tokio::join!(self::outcome(wire, Plan::Unknown), serving);
        assert_eq!(outcome, Ok(Lifecycle::Initialize), "{versions:?}");
    }
}
