//! `codecall tools`, `search`, `describe`, `invoke`: the meta-tools as commands.

use super::request::Request;
use super::run::json_argument;
use super::running::{ServerFlag, Target};
use super::sources::Sources;
use super::{CommandError, CommandStatus, approve};
use clap::{Args, Subcommand, ValueEnum};
use codecall_base::terminal;
use serde_json::json;

/// List all tools; show and approve new and changed ones.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Tools {
    #[command(subcommand)]
    command: Option<ToolsCommand>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Subcommand)]
enum ToolsCommand {
    /// Show the tools that wait for approval, and what has changed.
    Pending(approve::ShowPending),
    /// Approve tools that are new or have changed, as they are now.
    Approve(approve::Approve),
    /// Revoke the approval of tools.
    Revoke(approve::Revoke),
}

impl Tools {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        match self.command {
            None => self.list.execute().await,
            Some(ToolsCommand::Pending(pending)) => pending.execute().await,
            Some(ToolsCommand::Approve(approve)) => approve.execute().await,
            Some(ToolsCommand::Revoke(revoke)) => revoke.execute().await,
        }
    }
}

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
    server: ServerFlag,
    #[command(flatten)]
    sources: Sources,
}

impl List {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let request = Request::Tools { is_json: self.json, refresh: self.refresh };
        ask(&self.sources, self.server, request).await
    }
}

/// Asks a running server, or a hub of its own, and prints the answer.
async fn ask(sources: &Sources, server: ServerFlag, request: Request) -> Result<CommandStatus, CommandError> {
    let mut target = Target::open(sources, server, |_| ()).await?;
    let reply = target.ask(request).await;
    let printed = reply.and_then(|reply| reply.map_or(Ok(CommandStatus::Failure), |reply| reply.print()));
    target.close().await;
    printed
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
    /// The work of the tool, in words. With --app it may be left out: all tools of the app are listed.
    #[arg(value_name = "QUERY", required_unless_present = "app")]
    query: Vec<String>,
    /// How many tools at most.
    #[arg(long, value_name = "N")]
    top_k: Option<u64>,
    /// Only tools of this app; may be given more than once.
    #[arg(long, value_name = "APP")]
    app: Vec<String>,
    /// Without QUERY: how many tools to skip.
    #[arg(long, value_name = "N")]
    offset: Option<u64>,
    #[command(flatten)]
    server: ServerFlag,
    #[command(flatten)]
    sources: Sources,
}

impl Search {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let mut arguments = json!({});
        if !self.query.is_empty() {
            arguments["query"] = self.query.join(" ").into();
        }
        if let Some(offset) = self.offset {
            arguments["offset"] = offset.into();
        }
        if let Some(top_k) = self.top_k {
            arguments["topK"] = top_k.into();
        }
        if !self.app.is_empty() {
            arguments["filter"] = json!({ "appIds": self.app });
        }
        ask(&self.sources, self.server, Request::Search(arguments)).await
    }
}

/// Show schemas and usage examples of tools.
#[derive(Args, Debug)]
pub struct Describe {
    /// Names of tools.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// The format of schemas: `typescript` without it.
    #[arg(long, value_name = "FORMAT")]
    format: Option<SchemaFormat>,
    #[command(flatten)]
    server: ServerFlag,
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
            Some(SchemaFormat::JsonSchema) => "json_schema".into(),
            None | Some(SchemaFormat::Typescript) => "typescript".into(),
        };
        ask(&self.sources, self.server, Request::Describe { names: self.names, arguments }).await
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
    server: ServerFlag,
    #[command(flatten)]
    sources: Sources,
}

impl Invoke {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let (_, input) = json_argument("JSON", &self.input)?;
        if !input.is_object() {
            return Err(CommandError::new("the input of a tool must be a JSON object"));
        }
        ask(&self.sources, self.server, Request::Invoke { tool: self.name, input }).await
    }
}
