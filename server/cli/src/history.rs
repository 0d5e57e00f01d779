//! `codecall history`: recorded runs.

use super::replay::Source;
use super::run::ScriptFile;
use super::sources::open_config;
use super::store::{failed, open_database};
use super::{CommandError, CommandStatus, output};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use codecall_base::redact::Redactor;
use codecall_base::terminal;
use codecall_config::Config;
use codecall_hub::hub::{format_time, parse_time};
use codecall_hub::stateless;
use codecall_store::{
    ListedRun, RUN_KINDS, RUN_STATUSES, RunFilter, RunStore as _, RunSummary, SqlRuns, ended_ms, position,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// How often `--follow` looks for new runs.
const LOOK: Duration = Duration::from_millis(500);
/// How far back `--follow` looks, in positions: other processes may write runs some seconds after their end.
const OVERLAP_US: i64 = 10_000_000;
/// How many characters of an id are enough to tell runs apart.
const ID_CHARS: usize = 12;
/// Maximum width of a title in the table, in characters.
const TITLE_CHARS: usize = 60;

/// List recorded runs, show one, or replay it.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct History {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show everything that is recorded of a run.
    Show {
        /// The id of the run, or its beginning.
        #[arg(value_name = "ID")]
        id: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Configuration, TOML or JSON; when left out, the one that other commands would use.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Run a script again with the recorded answers; no tool is called.
    Replay {
        /// The id of the run, or its beginning.
        #[arg(value_name = "ID")]
        id: String,
        /// The script, if it was edited; `-` is standard input. By default the recorded one.
        #[arg(long, value_name = "FILE")]
        script: Option<PathBuf>,
        /// Print one line of JSON for each round, also on a terminal.
        #[arg(long)]
        json: bool,
        /// Configuration, TOML or JSON; when left out, the one that other commands would use.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

#[derive(Args, Debug)]
struct List {
    /// Only runs with this status; failed means any but ok.
    #[arg(long, value_name = "STATUS", value_parser = PossibleValuesParser::new(RUN_STATUSES))]
    status: Option<String>,
    /// Only runs that have called this tool, by any spelling of its name; 'users:*' means any of an app.
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only runs of this kind.
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(RUN_KINDS))]
    kind: Option<String>,
    /// Only runs that have ended since then: 30m, 2h, 7d, 2026-11-23, or a time such as 2026-11-23T08:00:00Z.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only runs that have ended before then.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only runs of clients whose name begins so.
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// Only runs whose script, parameters, result or error contain all of these words; 'ref*' is the beginning of one.
    #[arg(long, value_name = "WORDS")]
    text: Option<String>,
    /// How many runs are listed, the latest ones.
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: usize,
    /// Go on and print new runs as they end, until interrupted.
    #[arg(long)]
    follow: bool,
    /// Print a line of JSON for each run, the earliest first.
    #[arg(long)]
    json: bool,
    /// Configuration, TOML or JSON; when left out, the one that other commands would use.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl History {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        match self.command {
            None => self.list.execute().await,
            Some(Command::Show { id, json, config }) => {
                let config = open_config(config)?;
                let (summary, detail) = find(&config, &id).await?;
                show(&config, summary, detail, json)
            }
            Some(Command::Replay { id, script, json, config }) => {
                let config = open_config(config)?;
                replay(&config, &id, script, json).await
            }
        }
    }
}

impl List {
    async fn execute(self) -> Result<CommandStatus, CommandError> {
        let config = open_config(self.config.clone())?;
        let runs = SqlRuns(open_database(&config)?);
        let time = |text: &Option<String>| text.as_deref().map(time_argument).transpose();
        let mut filter = RunFilter {
            status: self.status.clone(),
            tool: self.tool.clone(),
            kind: self.kind.clone(),
            client: self.client.clone(),
            text: self.text.clone(),
            since_ms: time(&self.since)?,
            until_ms: time(&self.until)?,
            limit: self.limit,
            ..RunFilter::default()
        };
        let mut found = runs.list(&filter).await.map_err(failed)?;
        found.reverse();
        self.print(&config, &found, true)?;
        if !self.follow {
            return Ok(CommandStatus::Success);
        }
        let mut seen: Vec<i64> = found.iter().map(|run| run.position).collect();
        filter.limit = 1_000;
        loop {
            let sleeping = tokio::time::sleep(LOOK);
            tokio::select! {
                () = sleeping => {}
                _ = tokio::signal::ctrl_c() => return Ok(CommandStatus::Success),
            }
            let latest = seen.iter().max().copied().unwrap_or_default();
            filter.after = Some(latest.saturating_sub(position(OVERLAP_US)));
            let mut new = runs.list(&filter).await.map_err(failed)?;
            new.retain(|run| !seen.contains(&run.position));
            new.reverse();
            if seen.is_empty() && self.limit == 0 {
                // Nothing was listed, so what is there is not new.
                seen.extend(new.iter().map(|run| run.position));
                continue;
            }
            self.print(&config, &new, false)?;
            seen.extend(new.iter().map(|run| run.position));
            let oldest = seen.iter().max().copied().unwrap_or_default().saturating_sub(position(2 * OVERLAP_US));
            seen.retain(|position| *position >= oldest);
        }
    }

    fn print(&self, config: &Config, runs: &[ListedRun], with_head: bool) -> Result<(), CommandError> {
        let secrets = config.secrets.redactor();
        if self.json {
            return runs.iter().try_for_each(|run| output::print_json_line(&secrets.redact_json(&to_json(run))));
        }
        let rows = runs.iter().map(|run| {
            let ListedRun { position, summary } = run;
            let RunSummary { id, kind, status, client, title, tool_calls, duration_us, .. } = summary;
            let row = [
                id.chars().take(ID_CHARS).collect(),
                format_time(ended_ms(*position)),
                kind.clone(),
                status.clone(),
                format!("{} ms", ms(*duration_us)),
                tool_calls.to_string(),
                client.clone().unwrap_or_default(),
                title.chars().take(TITLE_CHARS).collect(),
            ];
            row.map(|cell: String| secrets.redact_text(&cell).into_owned()).into()
        });
        let head = ["id", "ended", "kind", "status", "duration", "calls", "client", "script or tool"];
        if with_head || !output::is_terminal() {
            output::print_table(&head, rows.collect())
        } else {
            let lines: Vec<String> =
                rows.map(|row: Vec<String>| terminal::escape_line(&row.join("  ")).into_owned()).collect();
            output::print_lines(&lines)
        }
    }
}

fn to_json(run: &ListedRun) -> String {
    let mut value = serde_json::to_value(&run.summary).unwrap_or_default();
    value["endedMs"] = ended_ms(run.position).into();
    value.to_string()
}

async fn find(config: &Config, id: &str) -> Result<(RunSummary, Value), CommandError> {
    if id.is_empty() || !id.chars().all(|c| c.is_ascii_hexdigit()) {
        return Err(CommandError::new("ID: an id consists of hexadecimal digits").with_help("try 'codecall history'"));
    }
    let runs = SqlRuns(open_database(config)?);
    let found = runs.get(&id.to_lowercase()).await.map_err(failed)?;
    let (summary, detail) = found.ok_or_else(|| {
        CommandError::new(format!("there is no run {id}; it was not recorded, or was deleted since"))
            .with_help("try 'codecall history'")
    })?;
    let detail = serde_json::from_str(&detail).map_err(|_| failed("the record of the run is damaged"))?;
    Ok((summary, detail))
}

async fn replay(config: &Config, id: &str, script: Option<PathBuf>, json: bool) -> Result<CommandStatus, CommandError> {
    let (summary, detail) = find(config, id).await?;
    let Some(journal) = detail["recording"].as_str() else {
        let why = match summary.kind.as_str() {
            "execute" | "code_execution" => {
                "its answers were not recorded: they were larger than 'history.maxReplayBytes', 'history.answers' is off, or it \
                 was a dry run"
            }
            _ => "only runs of scripts can be replayed",
        };
        return Err(failed(format!("the run {} cannot be replayed: {why}", summary.id)));
    };
    let invalid = |problem: String| failed(format!("the record of the run cannot be replayed: {problem}"));
    let replay = stateless::Replay::from_history(journal).map_err(invalid)?;
    let source = Source::new(replay);
    let (script, language) = match script {
        Some(path) => {
            let script = ScriptFile::read(&path, None)?;
            (script.text, script.language)
        }
        None => (detail["script"].as_str().unwrap_or_default().to_owned(), None),
    };
    // Where something is masked in the recorded script, it is not the one that the journal was begun with.
    source.with_script(&script, language).replay(script, config, json).await
}

fn show(config: &Config, summary: RunSummary, detail: Value, json: bool) -> Result<CommandStatus, CommandError> {
    let secrets = config.secrets.redactor();
    let mut all = serde_json::to_value(&summary).unwrap_or_default();
    for (name, value) in detail.as_object().into_iter().flatten() {
        all[name] = match value {
            // The journal is JSON in a text, so that its numbers stay as they are.
            Value::String(text) if name == "recording" => serde_json::from_str(text).unwrap_or_default(),
            value => value.clone(),
        };
    }
    if json || !output::is_terminal() {
        output::print_json(&secrets.redact_json(&all.to_string()))?;
    } else {
        output::print_lines(&lines(&summary, &all, &secrets))?;
    }
    Ok(CommandStatus::Success)
}

/// Returns a run for people.
fn lines(summary: &RunSummary, all: &Value, secrets: &Redactor) -> Vec<String> {
    let clean = |text: &str| terminal::escape_block(&secrets.redact_text(text)).into_owned();
    let mut lines = vec![
        format!("run       {}", summary.id),
        format!("started   {}", format_time(summary.started_ms)),
        format!(
            "kind      {}{}",
            summary.kind,
            summary.client.as_ref().map(|name| format!(", by {}", clean(name))).unwrap_or_default()
        ),
        format!("status    {} {}", summary.status, clean(summary.code.as_deref().unwrap_or_default())),
        format!("duration  {} ms, of which {} ms in the script", ms(summary.duration_us), ms(summary.script_us)),
        format!(
            "used      {} steps, {} bytes, {} tool calls",
            summary.steps, summary.peak_memory_bytes, summary.tool_calls
        ),
    ];
    for part in ["parameters", "script"] {
        let text = match &all[part] {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            value => output::indent(&value.to_string()),
        };
        lines.extend([String::new(), part.to_owned(), clean(&text)]);
    }
    if let Some(calls) = all["calls"].as_array() {
        lines.extend([String::new(), "calls".to_owned()]);
        for call in calls {
            let number = |name: &str| call[name].as_f64().unwrap_or_default();
            let name = call["tool"].as_str().or(call["name"].as_str()).unwrap_or_default();
            let answer = if call["error"].is_null() { &call["output"] } else { &call["error"] };
            let line = format!(
                "{:>9.1} ms +{:>8.1} ms  {} {} {} = {}",
                number("startMs"),
                number("durationMs"),
                call["status"].as_str().unwrap_or_default(),
                name,
                call["input"],
                answer
            );
            lines.push(terminal::truncate(&clean(&line.replace('\n', " ")), 200).into_owned());
        }
    }
    for (part, title) in [("warnings", "warnings"), ("logs", "console")] {
        if let Some(texts) = all[part].as_array() {
            lines.extend([String::new(), title.to_owned()]);
            lines.extend(texts.iter().map(|text| clean(text.as_str().unwrap_or_default())));
        }
    }
    for part in ["result", "error"] {
        if !all[part].is_null() {
            lines.extend([String::new(), part.to_owned(), clean(&output::indent(&all[part].to_string()))]);
        }
    }
    if !all["recording"].is_null() {
        lines.extend([
            String::new(),
            format!("replay it with: codecall history replay {}", &summary.id[..ID_CHARS.min(summary.id.len())]),
        ]);
    }
    lines
}

/// Returns microseconds as milliseconds.
fn ms(us: i64) -> String {
    json!((us as f64 / 100.0).round() / 10.0).to_string()
}

/// Parses a time of an argument.
fn time_argument(text: &str) -> Result<i64, CommandError> {
    parse_time(text).ok_or_else(|| {
        CommandError::new(format!("'{text}' is no time"))
            .with_help("write 30m, 2h, 7d, 2026-11-23, or 2026-11-23T08:00:00Z; times are in UTC")
    })
}
