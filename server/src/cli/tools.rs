//! `codecall tools`, `search`, `describe`, `invoke`: the meta-tools from a shell.

use super::run::json_argument;
use super::session::{Session, Sources};
use super::{Fault, Verdict, output};
use clap::{Args, ValueEnum};
use codecall::meta::{self, Answer};
use codecall::terminal;
use serde_json::{Value, json};

/// List all tools.
#[derive(Args, Debug)]
pub struct List {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sources: Sources,
}

impl List {
    pub(super) async fn execute(self) -> Result<Verdict, Fault> {
        let session = self.sources.open(|_| ())?;
        session.ready().await;
        let snapshot = session.hub.catalogue().snapshot();
        let printed = if self.json {
            let tools: Vec<Value> = snapshot.rows().iter().map(|entry| entry.described()).collect();
            output::json(&Value::from(tools).to_string())
        } else {
            let rows = snapshot.rows().iter().map(|entry| (entry.name.as_str(), entry.definition.description.as_str()));
            output::lines(&table(rows.collect()))
        };
        session.hub.close().await;
        printed.map(|()| Verdict::Good)
    }
}

/// Widest column of names; longer names push their description to the right.
const NAMES: usize = 60;
/// What is shown of a name and of a description, in columns of a terminal.
const MOST: usize = 300;

/// Names and first lines of descriptions, in two columns.
pub(super) fn table(rows: Vec<(&str, &str)>) -> Vec<String> {
    let shown = |text: &str| terminal::truncate(&terminal::escape_line(text), MOST).into_owned();
    let rows: Vec<(String, String)> =
        rows.into_iter().map(|(name, text)| (shown(name), shown(text.lines().next().unwrap_or_default()))).collect();
    let widest = rows.iter().map(|(name, _)| terminal::width(name)).max().unwrap_or_default().min(NAMES);
    let line = |(name, text): (String, String)| {
        let gap = " ".repeat(widest.saturating_sub(terminal::width(&name)));
        format!("{name}{gap}  {text}").trim_end().to_owned()
    };
    rows.into_iter().map(line).collect()
}

/// Find tools by what they do.
#[derive(Args, Debug)]
pub struct Search {
    /// What is looked for.
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
    pub(super) async fn execute(self) -> Result<Verdict, Fault> {
        let mut arguments = json!({ "query": self.query.join(" ") });
        if let Some(top_k) = self.top_k {
            arguments["topK"] = top_k.into();
        }
        if !self.app.is_empty() {
            arguments["filter"] = json!({ "appIds": self.app });
        }
        ask(&self.sources, "codecall_search", arguments).await
    }
}

/// Show schemas and usage examples of tools.
#[derive(Args, Debug)]
pub struct Describe {
    /// Names of tools.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// How schemas are written.
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
    pub(super) async fn execute(self) -> Result<Verdict, Fault> {
        let mut arguments = json!({ "toolNames": self.names, "max": self.names.len() });
        arguments["format"] = match self.format {
            None | Some(SchemaFormat::JsonSchema) => "json_schema".into(),
            Some(SchemaFormat::Typescript) => "typescript".into(),
        };
        ask(&self.sources, "codecall_describe", arguments).await
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
    pub(super) async fn execute(self) -> Result<Verdict, Fault> {
        let (_, input) = json_argument("JSON", &self.input)?;
        if !input.is_object() {
            return Err(Fault::new("the input of a tool must be a JSON object"));
        }
        ask(&self.sources, "codecall_invoke", json!({ "tool": self.name, "input": input })).await
    }
}

/// Print what a meta-tool answers.
async fn ask(sources: &Sources, meta_tool: &str, arguments: Value) -> Result<Verdict, Fault> {
    let session = sources.open(|_| ())?;
    session.ready().await;
    let answer = answer(&session, meta_tool, arguments).await;
    session.hub.close().await;
    let answer = answer?;
    output::json(&answer.value.to_string())?;
    Ok(Verdict::good_if(!answer.is_error))
}

async fn answer(session: &Session, meta_tool: &str, arguments: Value) -> Result<Answer, Fault> {
    let answer = meta::call(&session.hub, meta_tool, arguments, None, session.cancel.clone()).await;
    answer.ok_or_else(|| Fault::new(format!("the configuration switches '{meta_tool}' off")))
}
