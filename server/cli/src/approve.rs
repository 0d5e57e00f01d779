//! `codecall tools pending`, `approve` and `revoke`: tools that wait for the approval of a person.

use super::sources::{Need, RunningHub, Sources};
use super::{CommandError, CommandStatus, output};
use clap::Args;
use codecall_base::redact::Redactor;
use codecall_base::tool::glob_matches;
use codecall_tools::catalogue::{Pending, Snapshot};
use serde_json::{Value, json};
use std::sync::Arc;

/// Show the tools that wait for approval, and what has changed.
#[derive(Args, Debug)]
pub struct ShowPending {
    /// Only tools of these names. `*` stands for any text.
    #[arg(value_name = "PATTERN")]
    patterns: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sources: Sources,
}

/// Approve tools that are new or have changed, as they are now, and show what that is.
#[derive(Args, Debug)]
pub struct Approve {
    /// Names of tools. `*` stands for any text; without names: all that wait.
    #[arg(value_name = "PATTERN")]
    patterns: Vec<String>,
    #[command(flatten)]
    sources: Sources,
}

/// Revoke the approval of tools: they cannot be found or called until they are approved again.
#[derive(Args, Debug)]
pub struct Revoke {
    /// Names of tools. `*` stands for any text.
    #[arg(value_name = "PATTERN", required = true)]
    patterns: Vec<String>,
    #[command(flatten)]
    sources: Sources,
}

impl Revoke {
    /// Succeeds if each pattern selects a tool.
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        // What is approved is in the store: no server has to be started.
        let running = self.sources.open(|_| ())?;
        let Some(watch) = running.hub.catalogue().watch() else { return Err(no_quarantine(&running).await) };
        running.hub.catalogue().approvals_read().await;
        let approved = watch.approved();
        let is_named = |pattern: &String, (app, own): &(String, String)| is_name(pattern, &format!("{app}:{own}"));
        let is_selected = |tool: &&(String, String)| self.patterns.iter().any(|pattern| is_named(pattern, tool));
        let selected: Vec<(String, String)> = approved.iter().filter(is_selected).cloned().collect();
        let is_unknown = |pattern: &&String| !approved.iter().any(|tool| is_named(pattern, tool));
        let unknown: Vec<&String> = self.patterns.iter().filter(is_unknown).collect();
        let stored = watch.revoke(&selected).await.map_err(|error| CommandError::new(error.to_string()));
        running.hub.close().await;
        stored?;
        for pattern in &unknown {
            output::notice(&format!("no approved tool has the name '{pattern}'"));
        }
        let names: Vec<String> = selected.iter().map(|(app, own)| format!("revoked: {app}:{own}")).collect();
        output::print_lines(&names)?;
        Ok(CommandStatus::from_success(unknown.is_empty()))
    }
}

impl ShowPending {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let (running, snapshot) = open(&self.sources).await?;
        let selected = select(&snapshot, &self.patterns);
        let redactor = running.hub.secrets().redactor();
        let printed = if self.json {
            let tools = selected.iter().map(|tool| {
                let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
                let approved = tool.approved.as_deref().map(parse);
                let state = match (&approved, tool.is_revoked) {
                    (_, true) => "revoked",
                    (Some(_), false) => "changed",
                    (None, false) => "new",
                };
                json!({"name": tool.name, "state": state, "definition": parse(&tool.definition), "approved": approved})
            });
            let mut tools = Value::from(tools.collect::<Vec<_>>());
            redactor.redact_value(&mut tools);
            output::print_json(&tools.to_string())
        } else {
            output::print_lines(&described(&selected, &redactor))
        };
        if selected.is_empty() {
            output::notice("no tool waits for approval");
        }
        running.hub.close().await;
        printed.map(|()| CommandStatus::Success)
    }
}

impl Approve {
    /// Succeeds if each pattern selects a tool.
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let (running, snapshot) = open(&self.sources).await?;
        let selected = select(&snapshot, &self.patterns);
        let unknown: Vec<&String> = self
            .patterns
            .iter()
            .filter(|pattern| select(&snapshot, std::slice::from_ref(*pattern)).is_empty())
            .collect();
        let stored = match running.hub.catalogue().watch() {
            Some(watch) => watch.approve(&selected).await.map_err(|error| CommandError::new(error.to_string())),
            None => Ok(()),
        };
        // What was approved may not be what was shown before: a server can change a tool at any time.
        let mut lines = described(&selected, &running.hub.secrets().redactor());
        lines.extend(selected.iter().map(|tool| format!("approved: {}", tool.name)));
        running.hub.close().await;
        stored?;
        for pattern in &unknown {
            output::notice(&format!("no tool that waits for approval has the name '{pattern}'"));
        }
        output::print_lines(&lines)?;
        Ok(CommandStatus::from_success(unknown.is_empty()))
    }
}

/// Starts the servers, so that their tools are those of now.
async fn open(sources: &Sources) -> Result<(RunningHub, Arc<Snapshot>), CommandError> {
    let running = sources.open_all()?;
    if running.hub.catalogue().watch().is_none() {
        return Err(no_quarantine(&running).await);
    }
    running.wait_for(Need::Connection, |_| true).await;
    running.failures().iter().for_each(|failure| output::notice(failure));
    let snapshot = running.hub.catalogue().snapshot();
    Ok((running, snapshot))
}

async fn no_quarantine(running: &RunningHub) -> CommandError {
    running.hub.close().await;
    CommandError::new("the configuration has no quarantine, so no tool waits for approval")
        .with_help("set 'quarantine = true', for all servers or for one")
}

/// Whether a pattern is that of a tool, which is written with a colon or a dot.
fn is_name(pattern: &str, name: &str) -> bool {
    glob_matches(pattern, name) || glob_matches(pattern, &name.replacen(':', ".", 1))
}

fn select<'a>(snapshot: &'a Snapshot, patterns: &[String]) -> Vec<&'a Pending> {
    let is_selected =
        |tool: &&Pending| patterns.is_empty() || patterns.iter().any(|pattern| is_name(pattern, &tool.name));
    snapshot.pending().iter().filter(is_selected).collect()
}

/// Describes tools as diffs, for a terminal.
fn described(tools: &[&Pending], redactor: &Redactor) -> Vec<String> {
    tools.iter().flat_map(|tool| describe(tool, redactor)).collect()
}

/// Describes a tool as a diff between what was approved and what it is.
pub(super) fn describe(tool: &Pending, redactor: &Redactor) -> Vec<String> {
    let approved = if tool.approved.is_some() { "approved" } else { "/dev/null" };
    let name = redactor.redact_text(&tool.name);
    let mut out = vec![format!("--- {name} ({approved})"), format!("+++ {name} (now)")];
    out.extend(tool.diff(redactor));
    out.push(String::new());
    out
}
