//! With the Restate server of `tests/restate`, which `bash .ci/run` installs.

use super::*;
use crate::journal;
use crate::protocol::{Messages, OUTPUT, RUN};
use bytes::BytesMut;
use hyper::Request;
use hyper::body::Frame;
use restate_sdk::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context as Waker, Poll, ready};
use std::time::Instant;
use tokio::process::{Child, Command};
use tokio::time::{Sleep, sleep};

/// How long Restate may take to start.
const START: Duration = Duration::from_secs(60);
/// How long a message may take to be stored.
const STORED: Duration = Duration::from_secs(1);

/// A Restate server whose data are removed at the end.
struct Restate {
    _child: Child,
    folder: std::path::PathBuf,
    ingress: String,
    admin: String,
    client: reqwest::Client,
}

impl Drop for Restate {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Restate {
    async fn start(name: &str) -> Self {
        let system = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
        let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
        let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/restate/node_modules/@restatedev");
        let program = packages.join(format!("restate-server-{system}-{machine}/bin/restate-server"));
        assert!(program.exists(), "{} is not there: npm ci --prefix tests/restate", program.display());
        let port = || {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
            listener.local_addr().expect("an address").port()
        };
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (ingress, admin, node) = (port(), port(), port());
        let folder = std::env::temp_dir().join(format!("codecall-restate-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let config = folder.join("restate.toml");
        let settings = format!(
            "node-name = 'one'\nlisten-mode = 'tcp'\nbind-ip = '127.0.0.1'\nbind-port = {node}\nbase-dir = '{}'
            default-num-partitions = 1\ndisable-telemetry = true\nlog-filter = 'error,octocrab=off'
            [admin]\nbind-port = {admin}\ndisable-web-ui = true
            [ingress]\nbind-port = {ingress}\n",
            folder.display()
        );
        std::fs::write(&config, settings).expect("writes");
        let child = Command::new(program).arg("-c").arg(config).arg("--no-logo").kill_on_drop(true).spawn();
        let restate = Self {
            _child: child.expect("starts"),
            folder,
            ingress: format!("http://127.0.0.1:{ingress}"),
            admin: format!("http://127.0.0.1:{admin}"),
            client: reqwest::Client::builder().no_proxy().build().expect("a client"),
        };
        let began = Instant::now();
        for url in [format!("{}/health", restate.admin), format!("{}/restate/health", restate.ingress)] {
            while !restate.client.get(&url).send().await.is_ok_and(|response| response.status().is_success()) {
                assert!(began.elapsed() < START, "Restate does not start");
                sleep(Duration::from_millis(50)).await;
            }
        }
        restate
    }

    /// Calls a handler of `Attempts`.
    async fn call(&self, handler: &str) -> Value {
        self.read(self.client.post(format!("{}/Attempts/{handler}", self.ingress))).await
    }

    async fn read(&self, request: reqwest::RequestBuilder) -> Value {
        let answer = request.send().await.expect("an answer").text().await.expect("a text");
        serde_json::from_str(&answer).unwrap_or(Value::String(answer))
    }

    /// Serves an endpoint whose first response ends after a message.
    async fn register(&self, endpoint: Endpoint, cut_after: u16) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let attempts = Arc::new(AtomicU32::new(0));
        let serving = move |request: Request<Incoming>| {
            let (endpoint, attempts) = (endpoint.clone(), Arc::clone(&attempts));
            async move {
                let is_call = request.uri().path().contains("/invoke/");
                let is_cut = is_call && attempts.fetch_add(1, Ordering::SeqCst) == 0;
                answer(endpoint, request).await.map(|body| Cut::new(body, is_cut.then_some(cut_after)))
            }
        };
        tokio::spawn(serve_with(serving, listener, CancellationToken::new()));
        let request = self.client.post(format!("{}/deployments", self.admin));
        let request = request.header(CONTENT_TYPE, "application/json").body(json!({"uri": address}).to_string());
        let registered = self.read(request).await;
        assert!(registered["id"].is_string(), "{registered}");
    }
}

/// A body that fails some time after a message.
struct Cut<B> {
    body: Pin<Box<B>>,
    messages: Messages,
    after: Option<u16>,
    failing: Option<Pin<Box<Sleep>>>,
}

impl<B> Cut<B> {
    fn new(body: B, after: Option<u16>) -> Self {
        Self { body: Box::pin(body), messages: Messages::default(), after, failing: None }
    }
}

impl<B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>> Body for Cut<B> {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Waker<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(failing) = &mut self.failing {
            ready!(failing.as_mut().poll(context));
            return Poll::Ready(Some(Err("cut".into())));
        }
        let frame = ready!(self.body.as_mut().poll_frame(context));
        let (Some(after), Some(Ok(frame))) = (self.after, &frame) else {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        };
        self.messages.push(frame.data_ref().expect("data"));
        let mut passed = BytesMut::new();
        while self.failing.is_none()
            && let Some(message) = self.messages.next()
        {
            if message.kind() == after {
                self.failing = Some(Box::pin(sleep(STORED)));
            }
            message.append_to(&mut passed);
        }
        Poll::Ready(Some(Ok(Frame::data(passed.freeze()))))
    }
}

/// Each attempt says something else.
#[derive(Default)]
struct Attempts(AtomicU32);

#[restate_sdk::service(name = "Attempts")]
impl Attempts {
    #[handler]
    async fn count(&self, _ctx: Context<'_>) -> Result<u32, HandlerError> {
        Ok(self.0.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// Returns the number of attempts, and whether an earlier one has begun the step.
    #[handler]
    async fn note(&self, ctx: Context<'_>) -> Result<String, HandlerError> {
        let attempt = journal::attempt();
        let attempts = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        let mut note = std::pin::pin!(ctx.run(std::future::pending::<HandlerResult<()>>).name("begin"));
        let signal = ctx.signal::<String>("none");
        if attempt.has_run() {
            let _ = futures_util::poll!(note.as_mut());
        } else {
            tokio::select! {
                biased;
                _ = note.as_mut() => return Err("the step has ended".into()),
                () = attempt.run_stored() => {}
                _ = signal => return Err("the attempt has ended".into()),
            }
        }
        Ok(format!("attempt {attempts}, begun before: {}", attempt.has_run()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_handler_has_returned_stays_so_if_only_the_end_is_missing() {
    let restate = Restate::start("output").await;
    restate.register(Endpoint::builder().bind(Attempts::default()).build(), OUTPUT).await;
    // The second attempt does not call the handler: that would be a second call of a tool.
    assert_eq!(restate.call("count").await, json!(1));
    assert_eq!(restate.call("count").await, json!(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_knows_that_an_earlier_attempt_has_begun_its_step() {
    let restate = Restate::start("run").await;
    restate.register(Endpoint::builder().bind(Attempts::default()).build(), RUN).await;
    assert_eq!(restate.call("note").await, json!("attempt 2, begun before: true"));
    assert_eq!(restate.call("note").await, json!("attempt 3, begun before: false"));
}
