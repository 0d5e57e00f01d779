//! `codecall replay`: a script against the journal of a run, call by call. Nothing is called.

use super::output::is_terminal;
use super::policy::{LanguageFlag, PolicyFlags};
use super::run::{ScriptFile, context, json_argument, unreadable};
use super::{Fault, Verdict, output};
use agentscript::stateless::{ClientTools, Journal, Played, Step, StepOptions, play};
use agentscript::{Language, Status};
use clap::Args;
use codecall::stateless::{
    ClientToolset, CodeId, Directory, History, Recording, Stateless, answer_line, call_line, without_space,
};
use codecall::tool::ErrorCode;
use codecall::{Config, files, terminal};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Play a script against a recorded journal, call by call; no tool is called.
#[derive(Args, Debug)]
pub struct Replay {
    /// The script; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What happened: a file of `codecall run --record`, one with a token (`ccj1.…`) or with a history of
    /// messages as JSON, or the token itself.
    #[arg(long, value_name = "JOURNAL")]
    journal: String,
    /// One line of JSON for each round, also on a terminal.
    #[arg(long)]
    json: bool,
    /// For tokens and histories: the tools, a JSON list as the client sends it. Left out, they are those
    /// that the journal names.
    #[arg(long, value_name = "LIST")]
    tools: Option<PathBuf>,
    /// For tokens and histories: what the script saw as `codecallContext`: a JSON object, or @FILE.
    #[arg(long, value_name = "JSON")]
    context: Option<String>,
    /// For tokens and histories: the language, where the client has named it; for files that end in .ts
    /// it is TypeScript.
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<LanguageFlag>,
    /// Configuration, for its limits and for the key of signed tokens.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    policy: PolicyFlags,
}

/// What is played, and what else is known of it.
struct Told {
    journal: Journal,
    tools: Arc<dyn ClientTools>,
    language: Option<Language>,
    context: Option<String>,
    /// Names of the calls in the messages, by number.
    names: Vec<String>,
    /// How the run ended when it was recorded: JSON text.
    outcome: Option<String>,
    /// Whether nothing is known of the tools but their names.
    guessed: bool,
}

impl Replay {
    pub(super) async fn execute(self) -> Result<Verdict, Fault> {
        let mut config = self.config.as_deref().map(Config::load).transpose()?.unwrap_or_default();
        config.policy = self.policy.on(config.policy);
        let script = ScriptFile::read(&self.file, self.language.map(Into::into))?;
        let told = self.told(&script, &config)?;
        let options = StepOptions {
            policy: config.policy.clone(),
            language: told.language,
            context: told.context,
            // What was recorded is played, however long it is.
            max_rounds: usize::MAX,
            max_journal_bytes: usize::MAX,
            ..StepOptions::default()
        };
        let (journal, tools) = (told.journal.clone(), told.tools);
        // Parsing takes more of the native stack than this thread has.
        let steps = Stateless::new(&config, Arc::default());
        let played = steps.blocking(CancellationToken::new(), move || {
            let mut rounds = Vec::new();
            let step = play(&script.text, tools, &journal, &options, Some(&mut |round| rounds.push(round)));
            (rounds, step)
        });
        let (rounds, step) = played.await.map_err(|refusal| Fault::new(refusal.to_string()))?;
        let show = Show { journal: &told.journal, names: &told.names, outcome: told.outcome.as_deref() };
        if self.json || !is_terminal() {
            let lines = show.json(&rounds, &step);
            lines.iter().try_for_each(|line| output::json_as_it_is(&config.secrets.redact_json(line)))?;
        } else {
            let lines: Vec<String> =
                show.text(&rounds, &step).iter().map(|line| config.secrets.redact_text(line).into_owned()).collect();
            output::lines(&lines)?;
        }
        let ok = matches!(&step, Step::Done(done) if done.outcome.status() == Status::Ok);
        if told.guessed && matches!(&step, Step::Done(_) | Step::Diverged(_)) && !ok {
            // Nobody is left to be told when this fails.
            let _ = writeln!(
                std::io::stderr(),
                "note: the journal does not say what its tools are; where the script asks for a tool's schema, calls one \
                 that is not in it, or with a plain value, give the client's list with --tools"
            );
        }
        Ok(Verdict::good_if(ok))
    }

    fn told(&self, script: &ScriptFile, config: &Config) -> Result<Told, Fault> {
        const FORMS: &str = "give a file of `codecall run --record`, a token (ccj1.…), or a JSON list of messages";
        let text = if self.journal.starts_with("ccj") && !Path::new(&self.journal).exists() {
            self.journal.clone()
        } else {
            let path = Path::new(&self.journal);
            files::read_text(path, files::MAX_RECORDING_BYTES)
                .map_err(|error| unreadable(path, &error).with_help(FORMS))?
        };
        let text = text.trim();
        let place = |problem: &str| Fault::new(format!("--journal: {problem}"));
        if text.starts_with("ccj") {
            let key = config.stateless.key.as_deref().map(str::as_bytes);
            let journal = Journal::of_token(text, key, usize::MAX).map_err(|error| {
                place(&error.to_string()).with_help("a signed token needs --config with its 'stateless.key'")
            })?;
            return self.of_client(script, |_| Ok((journal, Vec::new())));
        }
        let value: Value = serde_json::from_str(text)
            .map_err(|error| place(&format!("neither a token nor JSON: {error}")).with_help(FORMS))?;
        match value.as_array().or_else(|| value["messages"].as_array()) {
            Some(messages) => self.of_client(script, |options| history(messages, &script.text, options)),
            None => {
                if self.tools.is_some() || self.context.is_some() || self.language.is_some() {
                    return Err(Fault::new("--tools, --context and --language are in the recording already"));
                }
                let recording = Recording::read(text).map_err(|problem| place(&problem).with_help(FORMS))?;
                Ok(Told {
                    journal: recording.journal().map_err(|problem| place(&problem))?,
                    language: recording.language(),
                    context: recording.context(),
                    names: Vec::new(),
                    outcome: recording.outcome.map(|outcome| outcome.get().to_owned()),
                    tools: Arc::new(recording.tools),
                    guessed: false,
                })
            }
        }
    }

    /// A journal of a client that owns its tools.
    fn of_client(
        &self,
        script: &ScriptFile,
        journal: impl FnOnce(&StepOptions<'_>) -> Result<(Journal, Vec<String>), String>,
    ) -> Result<Told, Fault> {
        let context = self.context.as_deref().map(context).transpose()?.map(|context| without_space(&context));
        let options = StepOptions { language: script.language, context, ..StepOptions::default() };
        let (journal, names) = journal(&options).map_err(|problem| Fault::new(format!("--journal: {problem}")))?;
        let tools: Arc<dyn ClientTools> = match &self.tools {
            None => Arc::new(Directory::of_calls(&journal)),
            Some(path) => {
                let (_, list) = json_argument("--tools", &format!("@{}", path.display()))?;
                let list = list.as_array().ok_or_else(|| Fault::new("--tools: must be a JSON list of tools"))?;
                Arc::new(ClientToolset::read(list).map_err(|error| Fault::new(format!("--tools: {error}")))?)
            }
        };
        let guessed = self.tools.is_none();
        Ok(Told { journal, tools, language: options.language, context: options.context, names, outcome: None, guessed })
    }
}

/// The journal of a history of messages: all of a conversation, or those since a code block.
fn history(messages: &[Value], script: &str, options: &StepOptions<'_>) -> Result<(Journal, Vec<String>), String> {
    let is = |message: &Value, roles: &[&str]| message["role"].as_str().is_some_and(|role| roles.contains(&role));
    let blocks: Vec<usize> = (0..messages.len()).filter(|at| is(&messages[*at], &["code"])).collect();
    // Of several blocks that of this script is meant; where it was changed, the last one.
    let block = blocks.iter().rev().find(|at| messages[**at]["code"] == script).or(blocks.last());
    let first = match block {
        Some(block) => block + 1,
        None => messages.iter().position(|message| !is(message, &["system", "developer", "user"])).unwrap_or_default(),
    };
    let ends = |message: &Value| is(message, &["code_result", "code", "user"]);
    let since = &messages[first..];
    let history = History::read(&since[..since.iter().position(ends).unwrap_or(since.len())])
        .map_err(|error| error.to_string())?;
    let named = block.and_then(|block| messages[*block]["id"].as_str());
    // Calls are named by their run and their number.
    let of_call = || history.names.first().and_then(|name| name.strip_suffix("_0"));
    let id = CodeId::given(named.or_else(of_call).unwrap_or_default());
    let journal = Journal::new(id.as_str(), id.unix_ms().unwrap_or_default(), script, options);
    let journal = journal.with_rounds(history.rounds).map_err(|divergence| divergence.to_string())?;
    Ok((journal, history.names))
}

/// How a replay is printed.
pub struct Show<'a> {
    pub journal: &'a Journal,
    pub names: &'a [String],
    pub outcome: Option<&'a str>,
}

impl Show<'_> {
    /// One line for each round, and one for the end.
    fn json(&self, rounds: &[Played], step: &Step) -> Vec<String> {
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
                let same = self.outcome.map_or(String::new(), |told| {
                    format!(", \"asRecorded\": {}", without_space(told) == without_space(&outcome))
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

    /// The same for people.
    pub fn text(&self, rounds: &[Played], step: &Step) -> Vec<String> {
        let mut lines = Vec::new();
        for played in rounds {
            lines.push(format!("round {}", played.round));
            for call in &played.calls {
                lines.push(format!(
                    "  {} {} {}",
                    self.name(call.number),
                    terminal::escape_line(&call.tool),
                    short(&call.input)
                ));
            }
            for answer in &self.journal.rounds[played.round].answers {
                let name = self.name(answer.call);
                lines.push(match &answer.result {
                    Ok(result) => format!("  {name} = {}", short(result)),
                    Err(error) => {
                        format!("  {name} failed: {}: {}", terminal::escape_line(&error.code), short(&error.message))
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
                        self.name(call.number),
                        terminal::escape_line(&call.tool),
                        short(&call.input)
                    ));
                }
                let waiting: Vec<String> = calls.waiting.iter().map(|call| self.name(*call)).collect();
                lines.push(format!("The journal ends here; the script waits for {}", waiting.join(", ")));
            }
            Step::Done(done) => {
                lines.push(output::indented(&terminal::escape_json(&done.outcome.to_json())));
                if let Some(told) = self.outcome {
                    let same = without_space(told) == without_space(&done.outcome.to_json());
                    let told = output::indented(&terminal::escape_json(told));
                    lines.push(if same { "as recorded".into() } else { format!("not as recorded, which was\n{told}") });
                }
            }
            Step::Diverged(divergence) => {
                let place = match (divergence.round, divergence.call) {
                    (Some(round), Some(call)) => format!(" in round {round} at call {}", self.name(call)),
                    (Some(round), None) => format!(" in round {round}"),
                    (None, _) => String::new(),
                };
                lines.push(format!("diverged{place}: {}", terminal::escape_line(&divergence.message)));
            }
            Step::Deadlock(failure) => lines.push(format!("deadlock: {}", terminal::escape_line(&failure.message))),
        }
        lines
    }

    /// What a call is called: its name in the messages, else its number.
    fn name(&self, number: u32) -> String {
        match self.names.get(number as usize) {
            Some(name) => terminal::escape_line(name).into_owned(),
            None => format!("#{number}"),
        }
    }
}

/// Longest text of a line, in columns of a terminal.
const MOST: usize = 160;

fn short(text: &str) -> String {
    // No more than a part is looked at.
    let part: String = text.chars().take(2 * MOST).map(|c| if c == '\n' { ' ' } else { c }).collect();
    terminal::truncate(&terminal::escape_line(&part), MOST).into_owned()
}
