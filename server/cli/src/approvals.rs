//! `codecall approvals`, `approve` and `deny`: calls that wait for the approval of a person.

use super::sources::open_config;
use super::store::{failed, open_database};
use super::{CommandError, CommandStatus, output};
use clap::Args;
use codecall_hub::hub::format_time;
use codecall_store::{ApprovalRequest, ApprovalRequests as _, ApprovalState, Decided, Decision, SqlApprovalRequests};
use std::path::PathBuf;

/// Maximum width of an input in the table, in bytes.
const INPUT_BYTES: usize = 80;

/// List the calls that wait for the approval of a person.
#[derive(Args, Debug)]
pub struct Approvals {
    /// Also those that were decided, or have expired.
    #[arg(long)]
    all: bool,
    /// Print a line of JSON for each, the latest first.
    #[arg(long)]
    json: bool,
    /// How many are listed.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: u64,
    /// Configuration, TOML or JSON; when left out, the one that other commands would use.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Allow a call that waits for the approval of a person. A running server goes on with its run.
#[derive(Args, Debug)]
pub struct Approve {
    #[command(flatten)]
    decide: Decide,
}

/// Deny a call that waits for the approval of a person. Its script gets the error APPROVAL_DENIED.
#[derive(Args, Debug)]
pub struct Deny {
    #[command(flatten)]
    decide: Decide,
}

#[derive(Args, Debug)]
struct Decide {
    /// The id of the approval, or its beginning.
    #[arg(value_name = "ID")]
    id: String,
    /// Why. The agent sees it if the call is denied.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Configuration, TOML or JSON; when left out, the one that other commands would use.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Approvals {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let config = open_config(self.config)?;
        let requests = SqlApprovalRequests(open_database(&config)?);
        let state = (!self.all).then_some(ApprovalState::Waiting);
        let found = requests.list(state, self.limit).await.map_err(failed)?;
        let redactor = config.secrets.redactor();
        if self.json {
            for request in &found {
                let mut line = serde_json::to_value(request).map_err(failed)?;
                redactor.redact_value(&mut line);
                output::print_json(&line.to_string())?;
            }
        } else if found.is_empty() {
            output::notice("no call waits for approval");
        } else {
            let row = |request: &ApprovalRequest| {
                let input = codecall_base::text::truncate(&request.input, INPUT_BYTES);
                vec![
                    request.id.clone(),
                    format_time(request.asked_ms),
                    request.state.as_str().to_owned(),
                    request.client.clone().unwrap_or_default(),
                    request.tool.clone(),
                    redactor.redact_text(input).into_owned(),
                ]
            };
            output::print_table(&["id", "asked", "state", "client", "tool", "input"], found.iter().map(row).collect())?;
        }
        Ok(CommandStatus::Success)
    }
}

impl Approve {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        self.decide.execute(true).await
    }
}

impl Deny {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        self.decide.execute(false).await
    }
}

impl Decide {
    /// Succeeds if the decision holds.
    async fn execute(self, is_approved: bool) -> Result<CommandStatus, CommandError> {
        let config = open_config(self.config)?;
        let requests = SqlApprovalRequests(open_database(&config)?);
        let user = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| std::env::var(name).ok());
        let by = format!("{} (command line)", user.as_deref().unwrap_or("a person"));
        let decision = Decision { is_approved, by, reason: self.reason };
        let (request, is_done) = match requests.decide(&self.id, &decision).await.map_err(failed)? {
            Decided::Done(request) => (request, true),
            Decided::TooLate(request) => (request, false),
            Decided::Unknown => return Err(failed(format!("there is no approval {}", self.id))),
        };
        let ApprovalRequest { id, tool, state, .. } = &request;
        let text = match is_done {
            true => format!("{}: {tool} ({id})", state.as_str()),
            false if *state == ApprovalState::Waiting => format!("too late: the approval {id} has expired"),
            false => format!("too late: the approval {id} is {} already", state.as_str()),
        };
        output::print_lines(&[config.secrets.redactor().redact_text(&text).into_owned()])?;
        Ok(CommandStatus::from_success(is_done))
    }
}
