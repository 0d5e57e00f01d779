//! `codecall worker`: evaluates durable runs for Restate, and drains workers of earlier versions.

use super::output::notice;
use super::sources::{Sources, cancel_on_signal, open_config};
use super::{CommandError, CommandStatus};
use clap::{Args, Subcommand};
use codecall_hub::hub::{Deployment, RestateClient};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a drain looks.
const LOOK: Duration = Duration::from_secs(1);

/// Evaluate durable runs for Restate.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Worker {
    #[command(subcommand)]
    command: Option<WorkerCommand>,
    #[command(flatten)]
    restate: Restate,
    /// Where Restate calls this worker: HOST:PORT. Keep it for a version: runs go on where they have begun.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9080")]
    listen: String,
    /// The address by which Restate reaches it, if that is another one.
    #[arg(long, value_name = "URL")]
    advertise: Option<String>,
    #[command(flatten)]
    sources: Sources,
}

/// Where Restate is.
#[derive(Args, Clone, Debug)]
struct Restate {
    /// The ingress of Restate, when left out that of the configuration (durable.restate).
    #[arg(long, value_name = "URL")]
    restate: Option<String>,
    /// The administration of Restate, when left out port 9070 of the same machine.
    #[arg(long, value_name = "URL")]
    restate_admin: Option<String>,
}

#[derive(Debug, Subcommand)]
enum WorkerCommand {
    /// Wait until the workers of earlier versions have no run left, and remove them from Restate.
    Drain(Drain),
}

/// Wait until the workers of earlier versions have no run left, and remove them from Restate.
#[derive(Args, Debug)]
struct Drain {
    #[command(flatten)]
    restate: Restate,
    /// Configuration, TOML or JSON.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How long to wait, in seconds. 0: say what is open, and remove what has nothing open.
    #[arg(long, value_name = "SECONDS", default_value_t = 3_600)]
    wait: u64,
}

impl Restate {
    fn client(&self, config: &codecall_config::Config) -> Result<Arc<RestateClient>, CommandError> {
        let ingress = self.restate.as_deref().or(config.durable.restate.as_deref());
        let ingress = ingress.ok_or_else(|| {
            CommandError::new("it is not known where Restate is").with_help("add --restate URL, or set durable.restate")
        })?;
        let admin = self.restate_admin.as_deref().or(config.durable.restate_admin.as_deref());
        let client = RestateClient::new(ingress, admin).map_err(|problem| CommandError::new(problem.to_string()))?;
        Ok(Arc::new(client))
    }
}

impl Worker {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        match self.command {
            Some(WorkerCommand::Drain(drain)) => drain.execute().await,
            None => self.serve().await,
        }
    }

    #[cfg(not(feature = "restate"))]
    async fn serve(self) -> Result<CommandStatus, CommandError> {
        let Self { command: _, restate: _, listen: _, advertise: _, sources: _ } = self;
        Err(CommandError::new("this program was built without Restate")
            .with_help("build it with: cargo build --release -p codecall --features restate"))
    }

    #[cfg(feature = "restate")]
    async fn serve(self) -> Result<CommandStatus, CommandError> {
        super::allocator::spawn_trimmer();
        let running = self.sources.serve()?;
        let (hub, cancel) = (running.hub, running.cancel);
        let client = self.restate.client(hub.config())?;
        let failed = |error: std::io::Error| CommandError::new(format!("{}: {error}", self.listen));
        let listener = tokio::net::TcpListener::bind(&self.listen).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        if !bound.ip().is_loopback() {
            notice(&format!("anybody who reaches {bound} can call the tools: let only Restate reach it"));
        }
        let address = self.advertise.clone().unwrap_or_else(|| format!("http://{bound}"));
        let live = codecall_hub::LiveHub::from(hub);
        let worker = codecall_restate::Worker::new(live.clone(), client);
        let follow = super::reload::follow(self.sources, live.clone(), cancel.clone());
        let reloading = tokio::spawn(follow);
        let registered = |deployment: &str| notice(&format!("registered {address} as {deployment}"));
        let served = worker.serve(listener, &address, cancel, registered).await;
        reloading.abort();
        live.close().await;
        served.map_err(|error| CommandError::new(error.to_string()))?;
        Ok(CommandStatus::Success)
    }
}

impl Drain {
    async fn execute(self) -> Result<CommandStatus, CommandError> {
        let config = open_config(self.config)?;
        let client = self.restate.client(&config)?;
        let cancel = cancel_on_signal(true);
        let began = Instant::now();
        let failed = |problem: codecall_hub::hub::EngineProblem| CommandError::new(problem.to_string());
        let mut said: Vec<Deployment> = Vec::new();
        loop {
            let old: Vec<Deployment> =
                client.deployments().await.map_err(failed)?.into_iter().filter(|one| !one.is_latest).collect();
            if old.is_empty() {
                notice("there are no workers of earlier versions");
                return Ok(CommandStatus::Success);
            }
            let mut open = Vec::new();
            for deployment in old {
                let Deployment { id, address, open: count, .. } = &deployment;
                if *count == 0 {
                    client.remove(id).await.map_err(failed)?;
                    notice(&format!("removed {id} at {address}: its worker can be stopped"));
                    continue;
                }
                if !said.contains(&deployment) {
                    notice(&format!("{id} at {address} has {count} runs and calls"));
                }
                open.push(deployment);
            }
            if open.is_empty() {
                return Ok(CommandStatus::Success);
            }
            said = open;
            if began.elapsed() >= Duration::from_secs(self.wait) {
                return Ok(CommandStatus::Failure);
            }
            if cancel.run_until_cancelled(tokio::time::sleep(LOOK)).await.is_none() {
                return Ok(CommandStatus::Failure);
            }
        }
    }
}
