//! The sources of tools, as flags, and the hub of a command.

use super::{CommandError, output, worker};
use clap::{Args, ValueEnum};
use codecall_base::redact::SecretRegistry;
use codecall_config::Config;
use codecall_config::IsolationMode;
use codecall_hub::Extensions;
use codecall_hub::Hub;
use codecall_hub::otel::Telemetry;
use codecall_store::sealed::KeySource;
use codecall_store::{Database, SecretName, SecretStore as _, SqlSecrets};
use codecall_tools::catalogue::mentions;
use codecall_upstream::Upstream;
use codecall_upstream::demo;
use codecall_upstream::fixture::Fixture;
use codecall_upstream::guard;
use futures_util::future::join_all;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// The sources of tools.
#[derive(Args, Clone, Debug, Default)]
pub struct Sources {
    /// Configuration, TOML or JSON. When left out: the file that CODECALL_CONFIG names, codecall.toml in the current
    /// folder, or the user's codecall/codecall.toml (~/.config, on Windows %APPDATA%).
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Add the demo shop: tools of the apps users, orders, billing and inventory. Only `serve` and `ui` also start the servers
    /// of the configuration.
    #[arg(long)]
    pub demo: bool,
    /// Answer tool calls from a fixture and start no upstream of the configuration.
    #[arg(long, value_name = "FIXTURE", conflicts_with = "demo")]
    pub mock_tools: Option<PathBuf>,
    /// Where scripts are evaluated, whatever the configuration says: on threads of this process, or in
    /// confined processes of their own.
    #[arg(long, value_name = "MODE")]
    pub isolation: Option<Isolation>,
}

/// Where scripts are evaluated.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Isolation {
    Thread,
    Process,
}

/// The hub of a command.
pub struct RunningHub {
    pub hub: Arc<Hub>,
    pub fixture: Option<Fixture>,
    /// Cancelled by Ctrl-C or a request to terminate.
    pub cancel: CancellationToken,
    /// Whether it is said on stderr which servers take long.
    pub is_noisy: bool,
}

/// After how long a command says which servers it waits for, and how often it says so again.
const FIRST_NOTE: Duration = Duration::from_secs(3);
const NEXT_NOTE: Duration = Duration::from_secs(15);

/// Returns the file of the configuration: `named`, or the one at a default location.
pub fn find_config(named: Option<PathBuf>) -> Result<Option<PathBuf>, CommandError> {
    match named {
        Some(path) => Ok(Some(path)),
        None => Ok(codecall_config::locate::locate()?),
    }
}

/// Loads a configuration; `None`: only what the environment says. Its secrets are redacted in what is written to stderr
/// until the process ends, also in the error of a hub that could not start.
pub fn load_config(path: Option<&Path>) -> Result<Config, CommandError> {
    static SECRETS: OnceLock<Arc<SecretRegistry>> = OnceLock::new();
    let config = match Config::load_with(path, &stored_secret) {
        Ok(config) => config,
        Err(error) => {
            let Some((path, client)) = path.and_then(|path| Some((path, codecall_clients::client_of(path)?))) else {
                return Err(error.into());
            };
            let problem = format!("{}: this is a file of {client}, not a configuration of CodeCall", path.display());
            let help = "'codecall init' takes over its servers and settings into a configuration of CodeCall";
            return Err(CommandError::new(problem).with_help(help));
        }
    };
    SECRETS.get_or_init(|| Arc::clone(&config.secrets)).join_logs();
    Ok(config)
}

/// Returns the value of a stored secret that a configuration names.
pub fn stored_secret(config: &Config, name: &str) -> Result<Option<String>, String> {
    let name = SecretName::parse(name, config.store.workspace()).map_err(|error| error.to_string())?;
    let keys = KeySource::of(config).load().map_err(|error| error.to_string())?;
    let database = Database::configured(config).map_err(|error| error.to_string())?;
    let vault = SqlSecrets(database.ok_or("the store is disabled")?);
    let reading = tokio::task::block_in_place(|| Handle::current().block_on(vault.get(&keys, name)));
    Ok(reading.map_err(|error| error.to_string())?.map(|value| value.to_string()))
}

/// Finds and loads the configuration of a command, and logs its warnings.
pub fn open_config(named: Option<PathBuf>) -> Result<Config, CommandError> {
    let path = find_config(named)?;
    if let Some(path) = &path {
        tracing::info!("configuration: {}", path.display());
    }
    let config = load_config(path.as_deref())?;
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    Ok(config)
}

impl Sources {
    /// Loads the configuration, with what the flags change of it.
    pub fn load(&self) -> Result<Config, CommandError> {
        let mut config = open_config(self.config.clone())?;
        match self.isolation {
            Some(Isolation::Thread) => config.isolation.mode = IsolationMode::Thread,
            Some(Isolation::Process) => config.isolation.mode = IsolationMode::Process,
            None => {}
        }
        if self.mock_tools.is_some() {
            config.upstreams.clear();
            config.openapi.clear();
            config.unusable.clear();
        }
        Ok(config)
    }

    /// Loads the configuration and starts a hub for one command. `adjust` may change the configuration. MCP servers whose
    /// tools are known from an earlier start are only started when the command needs them.
    pub fn open(&self, adjust: impl FnOnce(&mut Config)) -> Result<RunningHub, CommandError> {
        self.start(adjust, true, true)
    }

    /// Does the same with all MCP servers started.
    pub fn open_all(&self) -> Result<RunningHub, CommandError> {
        self.start(|_| (), false, true)
    }

    /// Starts a hub with all MCP servers for a server, which SIGHUP does not end. [`Sources::load`] gives the configuration.
    pub fn serve(&self, config: Config) -> Result<RunningHub, CommandError> {
        self.start_hub(config, false, false)
    }

    /// Whether the tools are those of the configuration, which processes can share.
    #[cfg(unix)]
    pub fn are_shareable(&self) -> bool {
        !self.demo && self.mock_tools.is_none()
    }

    fn start(
        &self,
        adjust: impl FnOnce(&mut Config),
        start_lazily: bool,
        ends_at_hangup: bool,
    ) -> Result<RunningHub, CommandError> {
        let mut config = self.load()?;
        if ends_at_hangup {
            // The process ends with its answer, so nobody can read on.
            config.max_inline_bytes = Some(u64::MAX);
        }
        if ends_at_hangup && self.demo {
            config.upstreams.clear();
            config.openapi.clear();
        }
        adjust(&mut config);
        self.start_hub(config, start_lazily, ends_at_hangup)
    }

    fn start_hub(&self, config: Config, start_lazily: bool, ends_at_hangup: bool) -> Result<RunningHub, CommandError> {
        let fixture = self.mock_tools.as_deref().map(Fixture::load).transpose()?;
        let mut upstreams: Vec<Arc<dyn Upstream>> = Vec::new();
        if let Some(fixture) = &fixture {
            upstreams.extend(fixture.upstreams());
        }
        if self.demo {
            upstreams.extend(demo::open());
        }
        if let Some(program) = own_program() {
            guard::enable(program);
        }
        let database = Database::configured(&config).map_err(|error| CommandError::new(error.0))?;
        let telemetry = Telemetry::start(&config.secrets, codecall_http::client);
        let engine = worker::engine(&config)?;
        let extensions = Extensions { upstreams, database, engine, start_lazily, telemetry, ..Extensions::default() };
        // A signal that comes while the hub starts, and with it its processes, must end these too.
        let cancel = cancel_on_signal(ends_at_hangup);
        let hub = Hub::start_with(config, extensions)?;
        Ok(RunningHub { hub, fixture, cancel, is_noisy: true })
    }
}

/// The parts of a server that a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Its tools, which may be known from an earlier start.
    Tools,
    /// The end of an attempt to connect, if one is under way.
    Attempt,
    /// Its connection.
    Connection,
}

impl RunningHub {
    /// Waits for the servers whose app `is_wanted`, as long as they may take to start, or until the command is cancelled.
    /// Says on stderr which of them take long.
    pub async fn wait_for(&self, need: Need, is_wanted: impl Fn(&str) -> bool) {
        let wanted: Vec<_> = self.hub.catalogue().upstreams().filter(|up| is_wanted(up.app())).collect();
        self.hub.catalogue().approvals_read().await;
        let mut waiting = std::pin::pin!(join_all(wanted.iter().map(|up| match need {
            Need::Tools => up.tools_known(),
            Need::Attempt => up.start_ended(),
            Need::Connection => up.first_attempt(),
        })));
        let mut notes = tokio::time::interval_at(tokio::time::Instant::now() + FIRST_NOTE, NEXT_NOTE);
        loop {
            tokio::select! {
                _ = &mut waiting => break,
                () = self.cancel.cancelled() => break,
                _ = notes.tick(), if self.is_noisy => {
                    let starting = wanted.iter().filter(|up| up.is_starting());
                    let reasons = starting.filter_map(|up| Some((up.app(), up.unavailable_reason()?)));
                    if let Some(note) = waiting_note(&reasons.collect::<Vec<_>>()) {
                        output::notice(&note);
                    }
                }
            }
        }
        self.hub.catalogue().catch_up();
    }

    /// Waits for the connections of the servers that a text mentions: a script, or the name of a tool.
    pub async fn wait_for_mentioned(&self, text: &str) {
        self.wait_for(Need::Connection, |app| mentions(text, app)).await;
    }

    /// Returns why tools are not known of servers that have never listed any.
    pub fn failures(&self) -> Vec<String> {
        let unknown = self.hub.catalogue().upstreams().filter(|up| !up.are_tools_known());
        unknown.filter_map(|up| up.unavailable_reason()).collect()
    }
}

/// How many servers a note names.
const MAX_NAMES: usize = 5;

/// Returns one line about the servers that a command waits for: names, and why the server does not answer if it is one.
fn waiting_note(starting: &[(&str, String)]) -> Option<String> {
    match starting {
        [] => None,
        [(_, reason)] => Some(reason.clone()),
        several => {
            let names: Vec<&str> = several.iter().map(|(app, _)| *app).take(MAX_NAMES).collect();
            let more = several.len() - names.len();
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            Some(format!("waiting for {} MCP servers: {}{more}", several.len(), names.join(", ")))
        }
    }
}

/// Returns the program of this process.
fn own_program() -> Option<PathBuf> {
    // It is the same file even if another one is installed in its place.
    if cfg!(target_os = "linux") { Some("/proc/self/exe".into()) } else { std::env::current_exe().ok() }
}

/// Returns a token that the first Ctrl-C, request to terminate or, `with_hangup`, end of the terminal cancels. The second
/// one ends the process.
pub fn cancel_on_signal(with_hangup: bool) -> CancellationToken {
    let cancel = CancellationToken::new();
    let cancelled = cancel.clone();
    let mut signals = Signals::new(with_hangup);
    tokio::spawn(async move {
        signals.next().await;
        cancelled.cancel();
        signals.next().await;
        std::process::exit(130);
    });
    cancel
}

/// The signals that end a command.
#[cfg(unix)]
struct Signals(Vec<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Signals {
    fn new(with_hangup: bool) -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
        if with_hangup && !is_hangup_ignored() {
            kinds.push(SignalKind::hangup());
        }
        Self(kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect())
    }

    async fn next(&mut self) {
        let received = self.0.iter_mut().map(|signal| Box::pin(signal.recv()));
        if received.len() == 0 {
            return std::future::pending().await;
        }
        futures_util::future::select_all(received).await;
    }
}

/// Whether the process was started to outlive its terminal (`nohup`). Only Linux says so.
#[cfg(unix)]
pub fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The first bit is that of SIGHUP.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new(_with_hangup: bool) -> Self {
        Self
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::waiting_note;

    #[test]
    fn a_note_is_one_line() {
        let of = |count: usize| {
            let apps: Vec<String> = (1..=count).map(|number| format!("s{number}")).collect();
            waiting_note(&apps.iter().map(|app| (app.as_str(), format!("{app} is starting"))).collect::<Vec<_>>())
        };
        assert_eq!(of(0), None);
        assert_eq!(of(1).as_deref(), Some("s1 is starting"));
        assert_eq!(of(3).as_deref(), Some("waiting for 3 MCP servers: s1, s2, s3"));
        assert_eq!(of(17).as_deref(), Some("waiting for 17 MCP servers: s1, s2, s3, s4, s5 and 12 more"));
    }
}
