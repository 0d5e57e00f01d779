//! `codecall replay`: replays a script with the journal of a run, call by call. No tool is called.

use super::output::is_terminal;
use super::policy::{LanguageFlag, PolicyFlags};
use super::run::{ScriptFile, context, json_argument, unreadable};
use super::sources::open_config;
use super::{CommandError, CommandStatus, output};
use agentscript::stateless::{ClientTools, Journal, Played, Step, StepOptions};
use agentscript::{Language, Status};
use clap::Args;
use codecall_base::files;
use codecall_base::terminal;
use codecall_base::tool::ErrorCode;
use codecall_config::Config;
use codecall_hub::stateless::{
    self, ClientToolset, CodeId, History, JournalFile, JournalTools, answer_line, call_line, compact,
};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Replay a script with a recorded journal, call by call; no tool is called.
#[derive(Args, Debug)]
pub struct Replay {
    /// The script; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The journal: a file of `codecall run --record`, a file with a token (`ccj1.…`) or with a history of
    /// messages as JSON, or the token itself.
    #[arg(long, value_name = "JOURNAL")]
    journal: String,
    /// Print one line of JSON for each round, also on a terminal.
    #[arg(long)]
    json: bool,
    /// For tokens and histories: the tools, a JSON list as the client sends it. By default, the tools that
    /// the journal calls.
    #[arg(long, value_name = "LIST")]
    tools: Option<PathBuf>,
    /// For tokens and histories: what the script saw as `codecallContext`: a JSON object, or @FILE.
    #[arg(long, value_name = "JSON")]
    context: Option<String>,
    /// For tokens and histories: the language, if the client has named it. Files that end in .ts are
    /// TypeScript.
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<LanguageFlag>,
    /// Configuration, for its limits and for the key of signed tokens.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    policy: PolicyFlags,
}

/// A journal to replay, and how it is shown.
pub struct Source {
    replay: stateless::Replay,
    /// The ids of the calls in the messages, by number.
    call_ids: Vec<String>,
    /// Whether only the names of the tools are known, from the journal.
    has_only_names: bool,
}

impl Source {
    /// Returns the source of a replay.
    pub fn new(replay: stateless::Replay) -> Self {
        Self { replay, call_ids: Vec::new(), has_only_names: false }
    }

    /// Uses the journal for another script, such as one that was edited. `language` is that of its file.
    pub fn with_script(self, script: &str, language: Option<Language>) -> Self {
        Self { replay: self.replay.with_script(script, language), ..self }
    }

    /// Replays a script, and prints each round and the end.
    pub async fn replay(self, script: String, config: &Config, json: bool) -> Result<CommandStatus, CommandError> {
        let Self { replay, call_ids, has_only_names } = self;
        let steps = stateless::Replay::steps(config);
        let played = replay.play(script, config.policy.clone(), &steps, CancellationToken::new());
        let (rounds, step) = played.await.map_err(|refusal| CommandError::new(refusal.to_string()))?;
        let printer = Printer { journal: &replay.journal, call_ids: &call_ids, outcome: replay.outcome.as_deref() };
        let secrets = config.secrets.redactor();
        if json || !is_terminal() {
            let lines = printer.to_json_lines(&rounds, &step);
            lines.iter().try_for_each(|line| output::print_json_line(&secrets.redact_json(line)))?;
        } else {
            let lines: Vec<String> =
                printer.to_lines(&rounds, &step).iter().map(|line| secrets.redact_text(line).into_owned()).collect();
            output::print_lines(&lines)?;
        }
        let ok = matches!(&step, Step::Done(done) if done.outcome.status() == Status::Ok);
        if has_only_names && matches!(&step, Step::Done(_) | Step::Diverged(_)) && !ok {
            // A failed write is ignored: there is nowhere to report it.
            let _ = writeln!(
                std::io::stderr(),
                "note: the journal does not say what its tools are; where the script asks for a tool's schema, calls one \
                 that is not in it, or with a plain value, give the client's list with --tools"
            );
        }
        Ok(CommandStatus::from_success(ok))
    }
}

impl Replay {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let mut config = open_config(self.config.clone())?;
        config.policy = self.policy.apply_to(config.policy);
        let script = ScriptFile::read(&self.file, self.language.map(Into::into))?;
        let source = self.load(&script, &config)?;
        source.replay(script.text, &config, self.json).await
    }

    /// Loads the journal.
    fn load(&self, script: &ScriptFile, config: &Config) -> Result<Source, CommandError> {
        const FORMS: &str = "give a file of `codecall run --record`, a token (ccj1.…), or a JSON list of messages";
        let text = if self.journal.starts_with("ccj") && !Path::new(&self.journal).exists() {
            self.journal.clone()
        } else {
            let path = Path::new(&self.journal);
            files::read_text(path, files::MAX_RECORDING_BYTES)
                .map_err(|error| unreadable(path, &error).with_help(FORMS))?
        };
        let text = text.trim();
        let invalid = |problem: &str| CommandError::new(format!("--journal: {problem}"));
        if text.starts_with("ccj") {
            let key = config.stateless.key.as_deref().map(str::as_bytes);
            let journal = Journal::from_token(text, key, usize::MAX).map_err(|error| {
                invalid(&error.to_string()).with_help("a signed token needs --config with its 'stateless.key'")
            })?;
            return self.from_client(script, |_| Ok((journal, Vec::new())));
        }
        let value: Value = serde_json::from_str(text)
            .map_err(|error| invalid(&format!("neither a token nor JSON: {error}")).with_help(FORMS))?;
        match value.as_array().or_else(|| value["messages"].as_array()) {
            Some(messages) => {
                self.from_client(script, |options| journal_from_messages(messages, &script.text, options))
            }
            None => {
                if self.tools.is_some() || self.context.is_some() || self.language.is_some() {
                    return Err(CommandError::new("--tools, --context and --language are in the file already"));
                }
                let file = JournalFile::read(text).map_err(|problem| invalid(&problem).with_help(FORMS))?;
                Ok(Source::new(stateless::Replay::from_file(file)))
            }
        }
    }

    /// Loads a journal of a client that owns its tools.
    fn from_client(
        &self,
        script: &ScriptFile,
        journal: impl FnOnce(&StepOptions<'_>) -> Result<(Journal, Vec<String>), String>,
    ) -> Result<Source, CommandError> {
        let context = self.context.as_deref().map(context).transpose()?.map(|context| compact(&context));
        let options = StepOptions { language: script.language, context, ..StepOptions::default() };
        let (journal, call_ids) =
            journal(&options).map_err(|problem| CommandError::new(format!("--journal: {problem}")))?;
        let tools: Arc<dyn ClientTools> = match &self.tools {
            None => Arc::new(JournalTools::from_calls(&journal).into_directory()),
            Some(path) => {
                let (_, list) = json_argument("--tools", &format!("@{}", path.display()))?;
                let list = list.as_array().ok_or_else(|| CommandError::new("--tools: must be a JSON list of tools"))?;
                Arc::new(ClientToolset::read(list).map_err(|error| CommandError::new(format!("--tools: {error}")))?)
            }
        };
        let StepOptions { language, context, .. } = options;
        let has_only_names = self.tools.is_none();
        let replay = stateless::Replay { journal, tools, language, context, outcome: None };
        Ok(Source { replay, call_ids, has_only_names })
    }
}

/// Returns the journal of a history of messages, and the ids of its calls. The messages are a whole conversation, or
/// those since a code block.
fn journal_from_messages(
    messages: &[Value],
    script: &str,
    options: &StepOptions<'_>,
) -> Result<(Journal, Vec<String>), String> {
    let is = |message: &Value, roles: &[&str]| message["role"].as_str().is_some_and(|role| roles.contains(&role));
    let blocks: Vec<usize> = (0..messages.len()).filter(|at| is(&messages[*at], &["code"])).collect();
    // The last block with this script, or the last block if the script has changed.
    let block = blocks.iter().rev().find(|at| messages[**at]["code"] == script).or(blocks.last());
    let first = match block {
        Some(block) => block + 1,
        None => messages.iter().position(|message| !is(message, &["system", "developer", "user"])).unwrap_or_default(),
    };
    let ends = |message: &Value| is(message, &["code_result", "code", "user"]);
    let since = &messages[first..];
    let history = History::read(&since[..since.iter().position(ends).unwrap_or(since.len())], first)
        .map_err(|error| error.to_string())?;
    let block_id = block.and_then(|block| messages[*block]["id"].as_str());
    // The id of a call is that of its run and a number.
    let id_of_call = || history.names.first().and_then(|name| name.strip_suffix("_0"));
    let id = CodeId::from_text(block_id.or_else(id_of_call).unwrap_or_default());
    let journal = Journal::new(id.as_str(), id.unix_ms().unwrap_or_default(), script, options);
    let journal = journal.with_rounds(history.rounds).map_err(|divergence| divergence.to_string())?;
    Ok((journal, history.names))
}

/// Formats a replay.
pub struct Printer<'a> {
    pub journal: &'a Journal,
    pub call_ids: &'a [String],
    pub outcome: Option<&'a str>,
}

impl Printer<'_> {
    /// Returns a line of JSON for each round, and one for the end.
    fn to_json_lines(&self, rounds: &[Played], step: &Step) -> Vec<String> {
        let line = |round: usize, calls: &[String], answers: &[String]| {
            format!("{{\"round\": {round}, \"calls\": [{}], \"answers\": [{}]}}", calls.join(", "), answers.join(", "))
        };
        let mut lines: Vec<String> = rounds
            .iter()
            .map(|played| {
                let calls = played.calls.iter().map(|call| call_line(call.number, &call.tool, &call.input));
                let answers = self.journal.rounds[played.round].answers.iter().map(answer_line);
                line(played.round, &calls.collect::<Vec<_>>(), &answers.collect::<Vec<_>>())
            })
            .collect();
        match step {
            Step::Calls(calls) => {
                let new = calls.new.iter().map(|call| call_line(call.number, &call.tool, &call.input));
                lines.push(line(rounds.len(), &new.collect::<Vec<_>>(), &[]));
                let mut end = json!({"status": "calls", "waiting": calls.waiting});
                if !calls.abandoned.is_empty() {
                    end["abandoned"] = json!(calls.abandoned);
                }
                lines.push(end.to_string());
            }
            Step::Done(done) => {
                let outcome = done.outcome.to_json();
                let same = self.outcome.map_or(String::new(), |recorded| {
                    format!(", \"asRecorded\": {}", compact(recorded) == compact(&outcome))
                });
                let abandoned = match done.abandoned.as_slice() {
                    [] => String::new(),
                    calls => format!(", \"abandoned\": {}", json!(calls)),
                };
                lines.push(format!("{{\"status\": \"done\", \"outcome\": {outcome}{abandoned}{same}}}"));
            }
            Step::Diverged(divergence) => {
                let error = json!({"code": ErrorCode::ReplayMismatch.as_str(), "message": divergence.to_string()});
                let (round, call) = (divergence.round, divergence.call);
                lines.push(json!({"status": "diverged", "round": round, "call": call, "error": error}).to_string());
            }
            Step::Deadlock(failure) => {
                lines.push(format!("{{\"status\": \"deadlock\", \"error\": {}}}", failure.to_json()));
            }
        }
        lines
    }

    /// Returns lines for people.
    pub fn to_lines(&self, rounds: &[Played], step: &Step) -> Vec<String> {
        let mut lines = Vec::new();
        for played in rounds {
            lines.push(format!("round {}", played.round));
            for call in &played.calls {
                lines.push(format!(
                    "  {} {} {}",
                    self.call_label(call.number),
                    terminal::escape_line(&call.tool),
                    shorten(&call.input)
                ));
            }
            for answer in &self.journal.rounds[played.round].answers {
                let name = self.call_label(answer.call);
                lines.push(match &answer.result {
                    Ok(result) => format!("  {name} = {}", shorten(result)),
                    Err(error) => {
                        format!("  {name} failed: {}: {}", terminal::escape_line(&error.code), shorten(&error.message))
                    }
                });
            }
        }
        match step {
            Step::Calls(calls) => {
                lines.push(format!("round {}", rounds.len()));
                for call in &calls.new {
                    lines.push(format!(
                        "  {} {} {}",
                        self.call_label(call.number),
                        terminal::escape_line(&call.tool),
                        shorten(&call.input)
                    ));
                }
                let waiting: Vec<String> = calls.waiting.iter().map(|call| self.call_label(*call)).collect();
                lines.push(format!("The journal ends here; the script waits for {}", waiting.join(", ")));
            }
            Step::Done(done) => {
                lines.push(output::indent(&terminal::escape_json(&done.outcome.to_json())));
                if let Some(recorded) = self.outcome {
                    let same = compact(recorded) == compact(&done.outcome.to_json());
                    let recorded = output::indent(&terminal::escape_json(recorded));
                    let different = || format!("not as recorded, which was\n{recorded}");
                    lines.push(if same { "as recorded".into() } else { different() });
                }
            }
            Step::Diverged(divergence) => {
                let location = match (divergence.round, divergence.call) {
                    (Some(round), Some(call)) => format!(" in round {round} at call {}", self.call_label(call)),
                    (Some(round), None) => format!(" in round {round}"),
                    (None, _) => String::new(),
                };
                lines.push(format!("diverged{location}: {}", terminal::escape_line(&divergence.message)));
            }
            Step::Deadlock(failure) => lines.push(format!("deadlock: {}", terminal::escape_line(&failure.message))),
        }
        lines
    }

    /// Returns the id of a call in the messages, else its number.
    fn call_label(&self, number: u32) -> String {
        match self.call_ids.get(number as usize) {
            Some(id) => terminal::escape_line(id).into_owned(),
            None => format!("#{number}"),
        }
    }
}

/// Maximum width of a value in a line, in terminal columns.
const MAX_VALUE_COLUMNS: usize = 160;

/// Shortens a value to a part of a line.
fn shorten(text: &str) -> String {
    // Only the beginning of a long text is escaped.
    let part: String = text.chars().take(2 * MAX_VALUE_COLUMNS).map(|c| if c == '\n' { ' ' } else { c }).collect();
    terminal::truncate(&terminal::escape_line(&part), MAX_VALUE_COLUMNS).into_owned()
}
