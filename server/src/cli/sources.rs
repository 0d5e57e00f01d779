//! The sources of tools, as flags, and the hub of a command.

use super::CommandError;
use clap::{Args, ValueEnum};
use codecall::config::IsolationMode;
use codecall::redact::SecretRegistry;
use codecall::upstream::Upstream;
use codecall::upstream::demo;
use codecall::upstream::fixture::Fixture;
use codecall::{Config, Hub};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The sources of tools.
#[derive(Args, Clone, Debug, Default)]
pub struct Sources {
    /// Configuration, TOML or JSON.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Add the demo shop: tools of the apps users, orders, billing and inventory.
    #[arg(long)]
    pub demo: bool,
    /// Answer tool calls from a fixture and start no upstream of the configuration.
    #[arg(long, value_name = "FIXTURE", conflicts_with = "demo")]
    pub mock_tools: Option<PathBuf>,
    /// Where scripts are evaluated, whatever the configuration says: on threads of this process, or in
    /// confined processes of their own.
    #[arg(long, value_name = "MODE", env = "CODECALL_ISOLATION")]
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
}

/// How long a command waits for upstreams to start.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

/// Loads a configuration. Its secrets are redacted in what is written to stderr until the process ends, also in the error
/// of a hub that could not start.
pub fn load_config(path: &Path) -> Result<Config, CommandError> {
    static SECRETS: OnceLock<Arc<SecretRegistry>> = OnceLock::new();
    let config = Config::load(path)?;
    SECRETS.get_or_init(|| Arc::clone(&config.secrets)).join_logs();
    Ok(config)
}

impl Sources {
    /// Loads the configuration and starts a hub. `adjust` may change the configuration.
    pub fn open(&self, adjust: impl FnOnce(&mut Config)) -> Result<RunningHub, CommandError> {
        let mut config = match &self.config {
            Some(path) => load_config(path)?,
            None => Config::default(),
        };
        match self.isolation {
            Some(Isolation::Thread) => config.isolation.mode = IsolationMode::Thread,
            Some(Isolation::Process) => config.isolation.mode = IsolationMode::Process,
            None => {}
        }
        adjust(&mut config);
        let fixture = self.mock_tools.as_deref().map(Fixture::load).transpose()?;
        let mut upstreams: Vec<Arc<dyn Upstream>> = Vec::new();
        if let Some(fixture) = &fixture {
            config.upstreams.clear();
            config.openapi.clear();
            upstreams.extend(fixture.upstreams());
        }
        if self.demo {
            upstreams.extend(demo::open());
        }
        let hub = Hub::start(config, upstreams)?;
        Ok(RunningHub { hub, fixture, cancel: cancel_on_signal() })
    }
}

impl RunningHub {
    /// Waits for the upstreams, or until it is cancelled.
    pub async fn ready(&self) {
        let ready = self.hub.ready(STARTUP_TIMEOUT);
        self.cancel.run_until_cancelled(ready).await;
    }
}

/// Returns a token that the first Ctrl-C or request to terminate cancels. The second one ends the process.
fn cancel_on_signal() -> CancellationToken {
    let cancel = CancellationToken::new();
    let cancelled = cancel.clone();
    tokio::spawn(async move {
        wait_for_signal().await;
        cancelled.cancel();
        wait_for_signal().await;
        std::process::exit(130);
    });
    cancel
}

#[cfg(unix)]
async fn wait_for_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(not(unix))]
async fn wait_for_signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
