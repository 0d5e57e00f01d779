//! Commands that use a running server: what one starts in seconds, the other has.
//!
//! `codecall serve` offers a Unix socket that only its user can open. A command looks for a server of the same program
//! with the same configuration, sends it its request and prints the reply. Without one, it starts a hub of its own.
//! Servers with
//! tools of the demo or of a fixture are not offered, because their tools are in the memory of one process.

use super::CommandError;
use super::request::{Reply, Request};
use super::sources::{RunningHub, Sources};
use clap::Args;
use codecall_config::Config;
use codecall_hub::LiveHub;
use tokio_util::sync::CancellationToken;

/// Whether a running server may be used.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct ServerFlag {
    /// Start MCP servers here, even if a running `codecall serve` has the same configuration.
    #[arg(long = "local", alias = "no-server")]
    is_local: bool,
}

impl ServerFlag {
    /// No server may be used.
    pub fn none() -> Self {
        Self { is_local: true }
    }
}

/// The hub or the server that answers the requests of a command.
pub enum Target {
    /// A hub of this process.
    Own(Box<RunningHub>),
    /// A running server.
    #[cfg(unix)]
    Server(socket::Connection),
}

impl Target {
    /// Finds a running server, or starts a hub, whose configuration `adjust` may change.
    pub async fn open(
        sources: &Sources,
        flag: ServerFlag,
        adjust: impl FnOnce(&mut Config),
    ) -> Result<Self, CommandError> {
        match Self::running(sources, flag).await? {
            Some(server) => Ok(server),
            None => Ok(Self::Own(Box::new(sources.open(adjust)?))),
        }
    }

    /// Finds a running server; `None`: there is none, or none may be used.
    pub async fn running(sources: &Sources, flag: ServerFlag) -> Result<Option<Self>, CommandError> {
        #[cfg(unix)]
        if !flag.is_local && sources.are_shareable() {
            let config = sources.load()?;
            // Without other processes, a hub starts as fast as it is found.
            if (!config.upstreams.is_empty() || !config.openapi.is_empty())
                && let Some(connection) = socket::connect(&socket::identity(&config)).await
            {
                return Ok(Some(Self::Server(connection)));
            }
        }
        #[cfg(not(unix))]
        let _ = (sources, flag);
        Ok(None)
    }

    /// Returns the hub of this process.
    pub fn own(&self) -> Option<&RunningHub> {
        match self {
            Self::Own(running) => Some(running),
            #[cfg(unix)]
            Self::Server(_) => None,
        }
    }

    /// Whether the command was cancelled.
    pub fn is_cancelled(&self) -> bool {
        match self {
            Self::Own(running) => running.cancel.is_cancelled(),
            #[cfg(unix)]
            Self::Server(connection) => connection.cancel.is_cancelled(),
        }
    }

    /// Asks for an answer. `None`: there is none, and stderr says why.
    ///
    /// # Errors
    /// The configuration of the running server is another one by now: nothing was done.
    pub async fn ask(&mut self, request: Request) -> Result<Option<Reply>, CommandError> {
        match self {
            Self::Own(running) => Ok(Some(request.answer(running).await)),
            #[cfg(unix)]
            Self::Server(connection) => connection.ask(request).await,
        }
    }

    /// Ends the hub of this process.
    pub async fn close(self) {
        match self {
            Self::Own(running) => running.hub.close().await,
            #[cfg(unix)]
            Self::Server(_) => {}
        }
    }
}

/// Offers the hub of a server to commands, until the guard is dropped.
pub fn offer(sources: &Sources, live: &LiveHub, cancel: &CancellationToken) -> Option<impl Sized + use<>> {
    #[cfg(unix)]
    return sources.are_shareable().then(|| socket::offer(live.clone(), cancel.clone())).flatten();
    #[cfg(not(unix))]
    {
        let _ = (sources, live, cancel);
        None::<()>
    }
}

#[cfg(unix)]
mod socket {
    use super::{Reply, Request, RunningHub};
    use crate::sources::cancel_on_signal;
    use crate::{CommandError, output};
    use codecall_config::Config;
    use codecall_hub::LiveHub;
    use etcetera::BaseStrategy as _;
    use serde::de::DeserializeOwned;
    use serde::{Deserialize, Serialize};
    use std::io::{Error, ErrorKind, Result};
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
    use std::path::{Path, PathBuf};
    use std::sync::OnceLock;
    use std::time::{Duration, SystemTime};
    use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
    use tokio::net::{UnixListener, UnixStream};
    use tokio_util::sync::CancellationToken;

    /// Maximum length of a message, in bytes.
    const MAX_BYTES: u32 = 256 << 20;
    /// How long a server may take to say who it is.
    const HELLO: Duration = Duration::from_millis(500);

    /// Identifies a program and its configuration: a server with the same gives the same answers.
    pub fn identity(config: &Config) -> String {
        // A program that was built anew has the same version, but is another file: that of the start counts.
        static BUILT: OnceLock<Option<(u64, SystemTime)>> = OnceLock::new();
        let built = BUILT.get_or_init(|| {
            let program = std::env::current_exe().and_then(std::fs::metadata);
            program.and_then(|file| Ok((file.len(), file.modified()?))).ok()
        });
        format!("{} {built:?} {:?} {}", env!("CARGO_PKG_VERSION"), config.isolation.mode, config.digest)
    }

    /// A message to the server.
    #[derive(Deserialize, Serialize)]
    struct Message {
        identity: String,
        /// `None`: asks whether the server has this identity.
        request: Option<Request>,
    }

    /// A message of the server.
    #[derive(Deserialize, Serialize)]
    enum Answer {
        /// The server has another identity, and does nothing.
        Other,
        Same,
        Reply(Reply),
    }

    /// After how long a command says that it waits.
    const NOTE: Duration = Duration::from_secs(3);

    /// A connection to a running server.
    pub struct Connection {
        stream: BufReader<UnixStream>,
        identity: String,
        /// Cancelled by Ctrl-C or a request to terminate.
        pub cancel: CancellationToken,
    }

    impl Connection {
        /// Sends a request and waits for the reply.
        pub async fn ask(&mut self, request: Request) -> std::result::Result<Option<Reply>, CommandError> {
            let message = Message { identity: self.identity.clone(), request: Some(request) };
            let stream = &mut self.stream;
            let answering = async {
                send(stream, &message).await?;
                receive::<Answer>(stream).await
            };
            let noting = async {
                tokio::time::sleep(NOTE).await;
                output::notice("waiting for the running server (with --local, none is used)");
                std::future::pending().await
            };
            let answer = tokio::select! {
                answer = answering => answer,
                () = noting => return Ok(None),
                // The end of the connection cancels the request.
                () = self.cancel.cancelled() => return Ok(None),
            };
            match answer {
                Ok(Answer::Reply(reply)) => Ok(Some(reply)),
                Ok(Answer::Other | Answer::Same) => {
                    Err(CommandError::new("the running server reads its configuration again; repeat the command"))
                }
                Err(error) => {
                    output::notice(&format!("the running server did not answer: {error}. Its effects are not known"));
                    Ok(None)
                }
            }
        }
    }

    /// Connects to a running server of an identity.
    pub async fn connect(identity: &str) -> Option<Connection> {
        let folder = folder()?;
        // Nobody else can have put a socket there.
        is_private(&folder).then_some(())?;
        for entry in std::fs::read_dir(&folder).ok()?.flatten() {
            let path = entry.path();
            match tokio::time::timeout(HELLO, hello(&path, identity)).await {
                Ok(Ok(Some(stream))) => {
                    tracing::info!("a running server answers: {}", path.display());
                    let cancel = cancel_on_signal(true);
                    return Some(Connection { stream, identity: identity.to_owned(), cancel });
                }
                // Its server was killed.
                Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => drop(std::fs::remove_file(&path)),
                Ok(Ok(None) | Err(_)) | Err(_) => {}
            }
        }
        None
    }

    async fn hello(path: &Path, identity: &str) -> Result<Option<BufReader<UnixStream>>> {
        let mut stream = BufReader::new(UnixStream::connect(path).await?);
        send(&mut stream, &Message { identity: identity.to_owned(), request: None }).await?;
        Ok(matches!(receive(&mut stream).await?, Answer::Same).then_some(stream))
    }

    /// The socket of a server. Dropping it ends the offer.
    pub struct Offer {
        path: PathBuf,
        serving: tokio::task::JoinHandle<()>,
    }

    impl Drop for Offer {
        fn drop(&mut self) {
            self.serving.abort();
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Listens for commands. Without a folder for sockets, there is no offer, and the log says so.
    pub fn offer(live: LiveHub, cancel: CancellationToken) -> Option<Offer> {
        identity(live.get().config());
        let path = folder()?.join(format!("{}.sock", std::process::id()));
        match bind(&path) {
            Ok(listener) => Some(Offer { path, serving: tokio::spawn(serve(listener, live, cancel)) }),
            Err(error) => {
                tracing::info!("commands cannot use this server: {}: {error}", path.display());
                None
            }
        }
    }

    fn bind(path: &Path) -> Result<UnixListener> {
        let folder = path.parent().unwrap_or(path);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        if !is_private(folder) {
            return Err(Error::new(ErrorKind::PermissionDenied, "others can write to the folder"));
        }
        // That of an earlier process of this id.
        let _ = std::fs::remove_file(path);
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    }

    /// The folder of the sockets of a user.
    fn folder() -> Option<PathBuf> {
        let strategy = etcetera::choose_base_strategy().ok()?;
        match strategy.runtime_dir() {
            Some(runtime) if runtime.is_dir() => Some(runtime.join("codecall")),
            Some(_) | None => Some(strategy.cache_dir().join("codecall/running")),
        }
    }

    /// Whether a folder belongs to the user, and nobody else can open it.
    fn is_private(folder: &Path) -> bool {
        let is_own =
            |file: std::fs::Metadata| file.uid() == rustix::process::geteuid().as_raw() && file.mode() & 0o077 == 0;
        std::fs::symlink_metadata(folder).is_ok_and(|file| file.is_dir() && is_own(file))
    }

    async fn serve(listener: UnixListener, live: LiveHub, cancel: CancellationToken) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let (live, cancel) = (live.clone(), cancel.clone());
                    tokio::spawn(async move {
                        // The command has ended.
                        let _ = converse(BufReader::new(stream), live, cancel).await;
                    });
                }
                // There are too many open files, for example.
                Err(_) => tokio::time::sleep(HELLO).await,
            }
        }
    }

    async fn converse(mut stream: BufReader<UnixStream>, live: LiveHub, cancel: CancellationToken) -> Result<()> {
        loop {
            let message: Message = receive(&mut stream).await?;
            let hub = live.get();
            let _request = hub.begin_request();
            let answer = match message.request {
                _ if message.identity != identity(hub.config()) => Answer::Other,
                None => Answer::Same,
                Some(request) => {
                    let cancel = cancel.child_token();
                    let running = RunningHub { hub, fixture: None, cancel: cancel.clone(), is_noisy: false };
                    let mut answering = std::pin::pin!(request.answer(&running));
                    let reply = tokio::select! {
                        reply = &mut answering => reply,
                        // The next request comes after the reply: this is the end of the connection.
                        _ = stream.fill_buf() => {
                            cancel.cancel();
                            answering.await
                        }
                    };
                    Answer::Reply(reply)
                }
            };
            send(&mut stream, &answer).await?;
        }
    }

    /// Sends the length of a message and its JSON.
    async fn send(stream: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> Result<()> {
        let json = serde_json::to_vec(message)?;
        let length = u32::try_from(json.len()).ok().filter(|length| *length <= MAX_BYTES);
        stream.write_u32(length.ok_or_else(|| Error::other("the message is too long"))?).await?;
        stream.write_all(&json).await?;
        stream.flush().await
    }

    async fn receive<T: DeserializeOwned>(stream: &mut (impl AsyncRead + Unpin)) -> Result<T> {
        let length = stream.read_u32().await?;
        if length > MAX_BYTES {
            return Err(Error::other("the message is too long"));
        }
        let mut json = Vec::new();
        stream.take(length.into()).read_to_end(&mut json).await?;
        Ok(serde_json::from_slice(&json)?)
    }
}
