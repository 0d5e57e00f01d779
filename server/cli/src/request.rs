//! The requests of a command to a hub: to one that it has started, or to that of a running server. Both give the same answer.

use super::policy::{LimitFlags, PolicyFlags};
use super::sources::{Need, RunningHub};
use super::tools::table;
use super::{CommandError, CommandStatus, output, status};
use agentscript::{LIMITS, Language, Preset, Status};
use codecall_hub::meta;
use codecall_hub::stateless::MemoryRecorder;
use codecall_runs::ExecuteRequest;
use codecall_tools::catalogue::mentions;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// A request of a command.
#[derive(Debug, Deserialize, Serialize)]
pub enum Request {
    /// All tools.
    Tools { is_json: bool, refresh: bool },
    /// Tools by what they do: the arguments of the meta-tool.
    Search(Value),
    /// Schemas and examples of tools.
    Describe { names: Vec<String>, arguments: Value },
    /// A call of one tool.
    Invoke { tool: String, input: Value },
    /// The run of a script.
    Run(RunRequest),
    /// How each upstream is.
    Status { is_json: bool },
}

/// The run of a script.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RunRequest {
    pub script: String,
    /// Whether the script is TypeScript; `None`: it is detected.
    pub is_typescript: Option<bool>,
    pub context: Option<String>,
    pub dry_run: bool,
    pub preset: Option<String>,
    /// Limits by the names of their flags.
    pub limits: Vec<(String, u64)>,
}

/// The answer to a request.
#[derive(Debug, Deserialize, Serialize)]
pub struct Reply {
    pub output: Output,
    /// The text on stderr after the output.
    pub notes: Vec<String>,
    pub is_success: bool,
}

/// The output of a command.
#[derive(Debug, Deserialize, Serialize)]
pub enum Output {
    /// JSON, which a terminal gets indented.
    Json(String),
    Lines(Vec<String>),
    /// Rows of columns with these names, which a terminal gets aligned.
    Table {
        names: Vec<String>,
        rows: Vec<Vec<String>>,
    },
    /// There is none: what is wrong with the request. The exit code is 2.
    Refused(String),
}

impl Reply {
    fn json(json: String, is_success: bool) -> Self {
        Self { output: Output::Json(json), notes: Vec::new(), is_success }
    }

    /// Prints it. Returns the result of the command.
    pub fn print(self) -> Result<CommandStatus, CommandError> {
        match &self.output {
            Output::Json(json) => output::print_json(json)?,
            Output::Lines(lines) => output::print_lines(lines)?,
            Output::Table { names, rows } => {
                output::print_table(&names.iter().map(String::as_str).collect::<Vec<_>>(), rows.clone())?;
            }
            Output::Refused(problem) => return Err(CommandError::new(problem)),
        }
        self.notes.iter().for_each(|note| output::notice(note));
        Ok(CommandStatus::from_success(self.is_success))
    }
}

impl Request {
    /// Answers the request.
    pub async fn answer(self, running: &RunningHub) -> Reply {
        match self {
            Self::Tools { is_json, refresh } => list(running, is_json, refresh).await,
            Self::Search(arguments) => {
                running.wait_for(Need::Tools, |_| true).await;
                let is_success = |answer: &Value| answer["tools"].as_array().is_some_and(|tools| !tools.is_empty());
                call(running, "codecall_search", arguments, is_success).await
            }
            Self::Describe { names, arguments } => {
                wait_for_names(running, &names, Need::Tools).await;
                call(running, "codecall_describe", arguments, |answer| answer["notFound"].is_null()).await
            }
            Self::Invoke { tool, input } => {
                wait_for_names(running, std::slice::from_ref(&tool), Need::Connection).await;
                call(running, "codecall_invoke", json!({"tool": tool, "input": input}), |_| true).await
            }
            Self::Run(run) => {
                running.wait_for_mentioned(&run.script).await;
                run.answer(running, None).await.0
            }
            Self::Status { is_json } => {
                tokio::join!(running.wait_for(Need::Attempt, |_| true), running.hub.look_at_store());
                status::reply(&running.hub.status(), is_json)
            }
        }
    }
}

impl RunRequest {
    /// Runs the script. Returns the journal as well if `recorder` records the run.
    pub async fn answer(self, running: &RunningHub, recorder: Option<Arc<MemoryRecorder>>) -> (Reply, Option<String>) {
        let hub = &running.hub;
        let request = ExecuteRequest {
            language: self.is_typescript.map(|is| if is { Language::TypeScript } else { Language::JavaScript }),
            context: self.context.clone(),
            dry_run: self.dry_run,
            journal: recorder.clone().map(|recorder| recorder as _),
            ..ExecuteRequest::new(self.script.as_str(), self.flags().apply_to(hub.config().policy.clone()))
        };
        let finished = hub.execute(request, None, running.cancel.clone()).await;
        let redactor = hub.secrets().redactor();
        let journal = recorder.map(|recorder| recorder.to_file(&finished.outcome, &redactor));
        let json = if self.dry_run { finished.dry_run_json() } else { finished.to_json() };
        (Reply::json(redactor.redact_json(&json).into_owned(), finished.outcome.status() == Status::Ok), journal)
    }

    fn flags(&self) -> PolicyFlags {
        let limit = |(flag, value): &(String, u64)| Some((LIMITS.iter().find(|limit| limit.flag == flag)?, *value));
        PolicyFlags {
            preset: self.preset.as_deref().and_then(Preset::named),
            limits: LimitFlags(self.limits.iter().filter_map(limit).collect()),
        }
    }
}

async fn list(running: &RunningHub, is_json: bool, refresh: bool) -> Reply {
    running.wait_for(if refresh { Need::Connection } else { Need::Tools }, |_| true).await;
    let mut failures = running.failures();
    if refresh {
        failures = running.hub.catalogue().upstreams().filter_map(|up| up.unavailable_reason()).collect();
    }
    let snapshot = running.hub.catalogue().snapshot();
    let output = if is_json {
        let tools: Vec<Value> = snapshot.rows().iter().map(|entry| entry.described()).collect();
        Output::Json(Value::from(tools).to_string())
    } else {
        let rows = snapshot.rows().iter().map(|entry| (entry.name.as_str(), entry.definition.description.as_str()));
        Output::Lines(table(rows.collect()))
    };
    Reply { output, is_success: failures.is_empty(), notes: failures }
}

/// Waits for the servers of tools: those whose apps are named, and all of them if a name has no app.
async fn wait_for_names(running: &RunningHub, names: &[String], need: Need) {
    let are_known = |names: &[String]| {
        let snapshot = running.hub.catalogue().snapshot();
        names.iter().all(|name| snapshot.lookup(name).is_some())
    };
    let text = names.join("\n");
    running.wait_for(need, |app| mentions(&text, app)).await;
    if !are_known(names) && running.hub.catalogue().upstreams().all(|up| !mentions(&text, up.app())) {
        running.wait_for(Need::Tools, |_| true).await;
    }
}

/// Calls a meta-tool. The command fails unless the answer is a success.
async fn call(running: &RunningHub, meta_tool: &str, arguments: Value, is_success: impl Fn(&Value) -> bool) -> Reply {
    match meta::call_for_command(&running.hub, meta_tool, arguments, running.cancel.clone()).await {
        Some(answer) => {
            let (is_error, value) = (answer.is_error, answer.content.into_value());
            Reply::json(value.to_string(), !is_error && is_success(&value))
        }
        None => Reply {
            output: Output::Refused(format!("the configuration disables '{meta_tool}'")),
            notes: Vec::new(),
            is_success: false,
        },
    }
}
