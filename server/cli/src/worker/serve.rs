//! `codecall worker` in a program with Restate: serves, or drains.

use super::{Drain, Restate, Worker, WorkerCommand};
use crate::output::notice;
use crate::sources::{cancel_on_signal, open_config};
use crate::{CommandError, CommandStatus};
use codecall_config::Config;
use codecall_restate::{Deployment, RestateClient, RestateProblem};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a drain looks.
const LOOK: Duration = Duration::from_secs(1);

impl Restate {
    fn client(&self, config: &Config) -> Result<Arc<RestateClient>, CommandError> {
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
    pub(crate) async fn execute(self) -> Result<CommandStatus, CommandError> {
        match self.command {
            Some(WorkerCommand::Drain(drain)) => drain.execute().await,
            None => self.serve().await,
        }
    }

    async fn serve(self) -> Result<CommandStatus, CommandError> {
        crate::allocator::spawn_trimmer();
        let running = self.sources.serve(self.sources.load()?)?;
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
        let follow = crate::reload::follow(self.sources, live.clone(), cancel.clone());
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
        let failed = |problem: RestateProblem| CommandError::new(problem.to_string());
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
