//! `codecall tools`, `search`, `describe`, `invoke`: the meta-tools as commands.

use super::run::json_argument;
use super::sources::{Need, RunningHub, Sources};
use super::{CommandError, CommandStatus, output};
use clap::{Args, ValueEnum};
use codecall::catalogue::mentions;
use codecall::meta::{self, Answer};
use codecall::terminal;
use serde_json::{Value, json};

/// List all tools.
#[derive(Args, Debug)]
pub struct List {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Start all MCP servers, also those whose tools are known from an earlier start.
    #[arg(long)]
    refresh: bool,
    #[command(flatten)]
    sources: Sources,
}

impl List {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let running = self.sources.open(|_| ())?;
        running.wait_for(if self.refresh { Need::Connection } else { Need::Tools }, |_| true).await;
        let mut failures = running.failures();
        if self.refresh {
            failures = running.hub.catalogue().upstreams().filter_map(|up| up.unavailable_reason()).collect();
        }
        let snapshot = running.hub.catalogue().snapshot();
        let printed = if self.json {
            let tools: Vec<Value> = snapshot.rows().iter().map(|entry| entry.described()).collect();
            output::print_json(&Value::from(tools).to_string())
        } else {
            let rows = snapshot.rows().iter().map(|entry| (entry.name.as_str(), entry.definition.description.as_str()));
            output::print_lines(&table(rows.collect()))
        };
        failures.iter().for_each(|failure| output::notice(failure));
        running.hub.close().await;
        printed.map(|()| CommandStatus::from_success(failures.is_empty()))
    }
}

/// Maximum width of the column of names, in terminal columns. A longer name moves its description to the right.
const MAX_NAME_COLUMNS: usize = 60;
/// Maximum width of a name or a description, in terminal columns.
const MAX_TEXT_COLUMNS: usize = 300;

/// Formats names and the first lines of descriptions in two columns.
pub(super) fn table(rows: Vec<(&str, &str)>) -> Vec<String> {
    let format = |text: &str| terminal::truncate(&terminal::escape_line(text), MAX_TEXT_COLUMNS).into_owned();
    let rows: Vec<(String, String)> =
        rows.into_iter().map(|(name, text)| (format(name), format(text.lines().next().unwrap_or_default()))).collect();
    let widest = rows.iter().map(|(name, _)| terminal::width(name)).max().unwrap_or_default().min(MAX_NAME_COLUMNS);
    let line = |(name, text): (String, String)| {
        let gap = " ".repeat(widest.saturating_sub(terminal::width(&name)));
        format!("{name}{gap}  {text}").trim_end().to_owned()
    };
    rows.into_iter().map(line).collect()
}

/// Find tools by what they do.
#[derive(Args, Debug)]
pub struct Search {
    /// What the tool should do.
    #[arg(value_name = "QUERY", required = true)]
    query: Vec<String>,
    /// How many tools at most.
    #[arg(long, value_name = "N")]
    top_k: Option<u64>,
    /// Only tools of this app; may be given more than once.
    #[arg(long, value_name = "APP")]
    app: Vec<String>,
    #[command(flatten)]
    sources: Sources,
}

impl Search {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let mut arguments = json!({ "query": self.query.join(" ") });
        if let Some(top_k) = self.top_k {
            arguments["topK"] = top_k.into();
        }
        if !self.app.is_empty() {
            arguments["filter"] = json!({ "appIds": self.app });
        }
        let running = self.sources.open(|_| ())?;
        running.wait_for(Need::Tools, |_| true).await;
        let is_success = |answer: &Value| answer["totalIndexed"] != 0 || running.failures().is_empty();
        print_answer(&running, "codecall_search", arguments, is_success).await
    }
}

/// Show schemas and usage examples of tools.
#[derive(Args, Debug)]
pub struct Describe {
    /// Names of tools.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// The format of schemas.
    #[arg(long, value_name = "FORMAT")]
    format: Option<SchemaFormat>,
    #[command(flatten)]
    sources: Sources,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
enum SchemaFormat {
    JsonSchema,
    Typescript,
}

impl Describe {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let mut arguments = json!({ "toolNames": self.names, "max": self.names.len() });
        arguments["format"] = match self.format {
            None | Some(SchemaFormat::JsonSchema) => "json_schema".into(),
            Some(SchemaFormat::Typescript) => "typescript".into(),
        };
        let running = self.sources.open(|_| ())?;
        wait_for_names(&running, &self.names, Need::Tools).await;
        print_answer(&running, "codecall_describe", arguments, |answer| answer["notFound"].is_null()).await
    }
}

/// Call one tool.
#[derive(Args, Debug)]
pub struct Invoke {
    /// Name of the tool.
    #[arg(value_name = "NAME")]
    name: String,
    /// Its input: a JSON object, or @FILE.
    #[arg(value_name = "JSON", default_value = "{}")]
    input: String,
    #[command(flatten)]
    sources: Sources,
}

impl Invoke {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let (_, input) = json_argument("JSON", &self.input)?;
        if !input.is_object() {
            return Err(CommandError::new("the input of a tool must be a JSON object"));
        }
        let running = self.sources.open(|_| ())?;
        wait_for_names(&running, std::slice::from_ref(&self.name), Need::Connection).await;
        print_answer(&running, "codecall_invoke", json!({ "tool": self.name, "input": input }), |_| true).await
    }
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

/// Calls a meta-tool and prints its answer. The command fails unless the answer is a success.
async fn print_answer(
    running: &RunningHub,
    meta_tool: &str,
    arguments: Value,
    is_success: impl Fn(&Value) -> bool,
) -> Result<CommandStatus, CommandError> {
    let answer = call_meta_tool(running, meta_tool, arguments).await;
    let status = answer.and_then(|answer| {
        let (is_error, value) = (answer.is_error, answer.content.into_value());
        output::print_json(&value.to_string())?;
        Ok(CommandStatus::from_success(!is_error && is_success(&value)))
    });
    running.hub.close().await;
    status
}

async fn call_meta_tool(running: &RunningHub, meta_tool: &str, arguments: Value) -> Result<Answer, CommandError> {
    let answer = meta::call(&running.hub, meta_tool, arguments, None, running.cancel.clone()).await;
    answer.ok_or_else(|| CommandError::new(format!("the configuration disables '{meta_tool}'")))
}
