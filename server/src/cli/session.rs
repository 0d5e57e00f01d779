//! Where tools come from, and a hub that ends with its command.

use super::Fault;
use clap::{Args, ValueEnum};
use codecall::config::IsolationMode;
use codecall::upstream::Upstream;
use codecall::upstream::demo;
use codecall::upstream::fixture::Fixture;
use codecall::{Config, Hub};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Where tools come from.
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

/// A hub and what it was made from.
pub struct Session {
    pub hub: Arc<Hub>,
    pub fixture: Option<Fixture>,
    /// Fires at Ctrl-C.
    pub cancel: CancellationToken,
}

/// How long a command waits for upstreams that are slow to start.
const PATIENCE: Duration = Duration::from_secs(30);

impl Sources {
    /// Read everything and start. `adjust` may change the configuration.
    pub fn open(&self, adjust: impl FnOnce(&mut Config)) -> Result<Session, Fault> {
        let mut config = match &self.config {
            Some(path) => Config::load(path)?,
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
            upstreams.extend(fixture.upstreams());
        }
        if self.demo {
            upstreams.extend(demo::open());
        }
        let hub = Hub::start(config, upstreams)?;
        Ok(Session { hub, fixture, cancel: cancelled_by_signal() })
    }
}

impl Session {
    /// Wait for the upstreams, or for Ctrl-C.
    pub async fn ready(&self) {
        let ready = self.hub.ready(PATIENCE);
        self.cancel.run_until_cancelled(ready).await;
    }
}

/// Fires at the first Ctrl-C or request to terminate. The second one does not wait.
fn cancelled_by_signal() -> CancellationToken {
    let cancel = CancellationToken::new();
    let fired = cancel.clone();
    tokio::spawn(async move {
        signalled().await;
        fired.cancel();
        signalled().await;
        std::process::exit(130);
    });
    cancel
}

#[cfg(unix)]
async fn signalled() {
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
async fn signalled() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}
