//! `codecall approvals`, `approve` and `deny`: calls that wait for the approval of a person.

use super::sources::open_config;
use super::store::{failed, open_database};
use super::{CommandError, CommandStatus, output};
use clap::Args;
use codecall_hub::hub::format_time;
use codecall_store::{ApprovalRequest, ApprovalRequests as _, ApprovalState, Decided, Decision, SqlApprovalRequests};
use serde_json::Value;
use std::path::PathBuf;

/// Maximum width of an input in the table, in bytes.
const INPUT_BYTES: usize = 80;

/// List the calls that wait for the approval of a person.
#[derive(Args, Debug)]
pub struct Approvals {
    /// The id of one of them, or its beginning: print all of its input, code as text.
    #[arg(value_name = "ID", conflicts_with_all = ["all", "json"])]
    id: Option<String>,
    /// Also requests that were decided, or have expired.
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
    /// The SHA-256 digest of the input that was read, or its beginning: decide only if the call has this input.
    #[arg(long, value_name = "SHA256")]
    digest: Option<String>,
    /// Configuration, TOML or JSON; when left out, the one that other commands would use.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Approvals {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let config = open_config(self.config)?;
        let requests = SqlApprovalRequests(open_database(&config)?);
        if let Some(id) = &self.id {
            let found = if id.is_empty() { None } else { requests.get(id).await.map_err(failed)? };
            let request = found.ok_or_else(|| failed(format!("there is no approval {id}")))?;
            let lines = lines_of(&request);
            let redactor = config.secrets.redactor();
            output::print_lines(&lines.iter().map(|line| redactor.redact_text(line).into_owned()).collect::<Vec<_>>())?;
            return Ok(CommandStatus::Success);
        }
        let state = (!self.all).then_some(ApprovalState::Waiting);
        let found = requests.list(state, self.limit).await.map_err(failed)?;
        let redactor = config.secrets.redactor();
        if self.json {
            for listed in &found {
                let whole = if listed.is_whole() { None } else { requests.get(&listed.id).await.map_err(failed)? };
                let mut line = serde_json::to_value(whole.as_ref().unwrap_or(listed)).map_err(failed)?;
                redactor.redact_value(&mut line);
                output::print_json(&line.to_string())?;
            }
        } else if found.is_empty() {
            output::notice("no call waits for approval");
        } else {
            let row = |request: &ApprovalRequest| {
                let input = codecall_base::text::truncate(&request.input, INPUT_BYTES);
                let input = match request.input_bytes.saturating_sub(input.len() as u64) {
                    0 => redactor.redact_text(input).into_owned(),
                    more => format!("{}… and {more} bytes: see 'codecall approvals ID'", redactor.redact_text(input)),
                };
                vec![
                    request.id.clone(),
                    format_time(request.asked_ms),
                    request.state.as_str().to_owned(),
                    request.client.clone().unwrap_or_default(),
                    request.tool.clone(),
                    input,
                ]
            };
            output::print_table(&["id", "asked", "state", "client", "tool", "input"], found.iter().map(row).collect())?;
        }
        Ok(CommandStatus::Success)
    }
}

/// Returns a request as a person reads it.
fn lines_of(request: &ApprovalRequest) -> Vec<String> {
    let mut lines = vec![
        format!("id: {}", request.id),
        format!("state: {}", request.state.as_str()),
        format!("asked: {}", format_time(request.asked_ms)),
        format!("client: {}", request.client.as_deref().unwrap_or("without a name")),
        format!("digest: {}", request.input_digest),
        format!("bytes: {}", request.input_bytes),
        format!("tool: {}", request.tool),
    ];
    if let Some(long) = &request.long_members {
        // Before the input, of which they hide what follows them.
        lines.push(format!("long members: {long}"));
    }
    match serde_json::from_str(&request.input) {
        Ok(Value::Object(members)) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if text.contains('\n') => lines.push(format!("{name}:\n{}", text.trim_end())),
                    value => lines.push(format!("{name}: {value}")),
                }
            }
        }
        // An earlier version has cut it.
        Ok(_) | Err(_) => lines.push(format!("input: {}", request.input)),
    }
    lines
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
        let decision = Decision { digest: self.digest, is_approved, by, reason: self.reason };
        let decision = decision.without_secrets(&config.secrets.redactor());
        let (request, is_done) = match requests.decide(&self.id, &decision).await.map_err(failed)? {
            Decided::Done(request) => (request, true),
            Decided::TooLate(request) => (request, false),
            Decided::OtherInput(request) => {
                let ApprovalRequest { id, input_digest, .. } = request;
                return Err(failed(format!("the input of approval {id} has another digest: {input_digest}"))
                    .with_help(format!("read it with 'codecall approvals {id}'")));
            }
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
