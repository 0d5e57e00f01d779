//! `codecall servers`: MCP servers before they are needed.

use super::sources::Sources;
use super::{CommandError, CommandStatus, output};
use clap::{Args, Subcommand};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use std::time::Instant;

/// Prepare MCP servers for their first use.
#[derive(Args, Debug)]
pub struct Servers {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start each MCP server once, a few at a time, and end it again. Launchers such as npx and uvx install their packages, and
    /// later starts know the tools.
    Prefetch {
        #[command(flatten)]
        sources: Sources,
    },
}

impl Servers {
    /// Succeeds if all servers have started.
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let Command::Prefetch { sources } = self.command;
        let running = sources.open_all()?;
        let attempts = running.hub.catalogue().upstreams().map(|upstream| async move {
            let began = Instant::now();
            upstream.first_attempt().await;
            (upstream, began.elapsed())
        });
        let mut attempts: FuturesUnordered<_> = attempts.collect();
        let (all, mut ended, mut failed) = (attempts.len(), 0, 0);
        while let Some(Some((upstream, time))) = running.cancel.run_until_cancelled(attempts.next()).await {
            ended += 1;
            let state = match upstream.unavailable_reason() {
                None => format!("{} tools after {:.1} s", upstream.tools().len(), time.as_secs_f64()),
                Some(reason) => {
                    failed += 1;
                    reason
                }
            };
            output::notice(&format!("{ended} of {all}: {}: {state}", upstream.app()));
        }
        drop(attempts);
        running.hub.close().await;
        Ok(CommandStatus::from_success(ended == all && failed == 0))
    }
}
