//! `codecall worker`: evaluates durable runs for Restate, and drains workers of earlier versions.

#[cfg(feature = "restate")]
mod serve;

use super::CommandError;
#[cfg(not(feature = "restate"))]
use super::CommandStatus;
use super::sources::Sources;
use clap::{Args, Subcommand};
use codecall_config::Config;
use codecall_hub::hub::DurableEngine;
use std::path::PathBuf;
use std::sync::Arc;

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

/// Returns what keeps the journals of durable runs in place of the store; `None`: the store does.
///
/// # Errors
/// The configuration names an engine that cannot be used.
#[cfg(feature = "restate")]
pub fn engine(config: &Config) -> Result<Option<Arc<dyn DurableEngine>>, CommandError> {
    let client = codecall_restate::RestateClient::configured(&config.durable);
    let client = client.map_err(|problem| CommandError::new(problem.to_string()))?;
    Ok(client.map(|client| client as _))
}

/// Does the same without any engine.
///
/// # Errors
/// The configuration names one.
#[cfg(not(feature = "restate"))]
pub fn engine(config: &Config) -> Result<Option<Arc<dyn DurableEngine>>, CommandError> {
    if config.durable.has_engine() {
        return Err(not_built("durable.restate"));
    }
    Ok(None)
}

#[cfg(not(feature = "restate"))]
fn not_built(what: &str) -> CommandError {
    CommandError::new(format!("{what}: this program was built without Restate"))
        .with_help("build it with: cargo build --release -p codecall --features restate")
}

#[cfg(not(feature = "restate"))]
impl Worker {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let Self { command, restate, listen: _, advertise: _, sources: _ } = self;
        let Restate { restate: _, restate_admin: _ } = restate;
        if let Some(WorkerCommand::Drain(Drain { restate: _, config: _, wait: _ })) = command {
            return Err(not_built("codecall worker drain"));
        }
        Err(not_built("codecall worker"))
    }
}
