//! `codecall run`: runs scripts from files, and prints their results.

use super::policy::{LanguageFlag, PolicyFlags};
use super::request::{Output, Reply, Request, RunRequest};
use super::running::{ServerFlag, Target};
use super::sources::Sources;
use super::{CommandError, CommandStatus, output};
use agentscript::{Language, Preset};
use clap::Args;
use codecall_base::files::{self, AtomicFile};
use codecall_config::Config;
use codecall_hub::stateless::MemoryRecorder;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Run scripts and print each result as JSON.
#[derive(Args, Debug)]
pub struct Run {
    /// Scripts; `-` is standard input.
    #[arg(value_name = "FILE", required_unless_present = "batch")]
    files: Vec<PathBuf>,
    /// Run all .js and .ts files of a directory and its subdirectories, by name.
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    batch: Option<PathBuf>,
    /// The value that scripts see as `codecallContext`: a JSON object, or @FILE.
    #[arg(long, value_name = "JSON")]
    context: Option<String>,
    /// Detected when left out; files that end in .ts are TypeScript.
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<LanguageFlag>,
    /// Call no tool: results are samples made from output schemas, and `calls` lists what would be called.
    #[arg(long)]
    dry_run: bool,
    /// Write a journal of the run, for `codecall replay`. Needs a single FILE.
    ///
    /// It contains the script's calls, their results and the outcome as JSON, personal data included. It is
    /// written also if the run fails. In a recorded run the clock stands still, and random numbers are
    /// derived from the run's id.
    #[arg(long, value_name = "JOURNAL", conflicts_with_all = ["batch", "dry_run"])]
    record: Option<PathBuf>,
    #[command(flatten)]
    server: ServerFlag,
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    pub(super) policy: PolicyFlags,
}

impl Run {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let scripts = self.scripts()?;
        let context = self.context.as_deref().map(context).transpose()?;
        let mut record = self.record.as_deref().map(|path| self.open_journal(path)).transpose()?;
        // A journal is written here.
        let server = if record.is_some() { ServerFlag::none() } else { self.server };
        let adjust = |config: &mut Config| config.policy = self.policy.apply_to(config.policy.clone());
        let mut target = Target::open(&self.sources, server, adjust).await?;
        if let Some(running) = target.own() {
            let texts: Vec<&str> = scripts.iter().map(|script| script.text.as_str()).collect();
            running.wait_for_mentioned(&texts.join("\n")).await;
        }
        let mut result = Ok(CommandStatus::Success);
        for script in &scripts {
            if let Some(fixture) = target.own().and_then(|running| running.fixture.as_ref()) {
                fixture.reset();
            }
            let request = RunRequest {
                script: script.text.clone(),
                is_typescript: script.language.map(|language| language == Language::TypeScript),
                context: context.clone(),
                dry_run: self.dry_run,
                preset: self.policy.preset.map(Preset::as_str).map(Into::into),
                limits: self.policy.limits.0.iter().map(|(limit, value)| (limit.flag.into(), *value)).collect(),
            };
            let reply = match (&mut record, target.own()) {
                (Some(file), Some(running)) => {
                    let recorder = MemoryRecorder::new(&script.text, script.language, context.as_deref());
                    let (reply, journal) = request.answer(running, Some(recorder)).await;
                    file.write(journal.unwrap_or_default().as_bytes()).map_err(|error| self.unwritable(&error))?;
                    Some(reply)
                }
                _ => target.ask(Request::Run(request)).await?,
            };
            let printed = match reply {
                Some(reply) => self.print(script, reply),
                None => Ok(CommandStatus::Failure),
            };
            if !matches!(printed, Ok(CommandStatus::Success)) {
                result = printed;
            }
            if result.is_err() || target.is_cancelled() {
                break;
            }
        }
        target.close().await;
        result
    }

    fn print(&self, script: &ScriptFile, reply: Reply) -> Result<CommandStatus, CommandError> {
        match &reply.output {
            Output::Json(json) if !self.is_one() => {
                output::print_json_line(&script.with_file_name(json))?;
                Ok(CommandStatus::from_success(reply.is_success))
            }
            Output::Json(_) | Output::Lines(_) | Output::Table { .. } | Output::Refused(_) => reply.print(),
        }
    }

    /// Opens the journal. This fails before tools are called if nothing can be written there.
    fn open_journal(&self, path: &Path) -> Result<AtomicFile, CommandError> {
        if self.files.len() > 1 {
            return Err(CommandError::new("--record: a journal is of one run, and there are several FILEs")
                .with_help("record them one by one"));
        }
        AtomicFile::create(path).map_err(|error| self.unwritable(&error))
    }

    fn unwritable(&self, error: &std::io::Error) -> CommandError {
        let path = self.record.as_deref().unwrap_or_else(|| Path::new("--record"));
        CommandError::new(format!("{}: cannot be written: {error}", path.display()))
    }

    /// Whether there is a single result, which is printed without the name of its file.
    fn is_one(&self) -> bool {
        self.batch.is_none() && self.files.len() == 1
    }

    pub(super) fn scripts(&self) -> Result<Vec<ScriptFile>, CommandError> {
        let files = match &self.batch {
            Some(directory) => scripts_in(directory)?,
            None => self.files.clone(),
        };
        files.iter().map(|file| ScriptFile::read(file, self.language.map(Into::into))).collect()
    }
}

/// A script and where it comes from.
pub struct ScriptFile {
    /// The path as given.
    pub name: String,
    pub text: String,
    pub language: Option<Language>,
}

impl ScriptFile {
    /// Reads a file, or standard input for `-`.
    pub fn read(path: &Path, language: Option<Language>) -> Result<Self, CommandError> {
        let name = path.display().to_string();
        let bytes = if name == "-" {
            files::read_stream(std::io::stdin().lock(), files::MAX_INPUT_BYTES)
        } else {
            files::read(path, files::MAX_INPUT_BYTES)
        };
        let bytes = bytes.map_err(|error| unreadable(path, &error))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            CommandError::new(format!("{name}: not UTF-8 at byte {}", error.utf8_error().valid_up_to()))
                .with_help("save the script as UTF-8")
        })?;
        let language = language.or_else(|| is_typescript(path).then_some(Language::TypeScript));
        Ok(Self { name, text, language })
    }

    /// Adds the name of the file to a JSON object.
    fn with_file_name(&self, json: &str) -> String {
        format!("{{\"file\":{},{}", Value::from(self.name.as_str()), &json[1..])
    }
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|own| extensions.iter().any(|extension| own.eq_ignore_ascii_case(extension)))
}

fn is_typescript(path: &Path) -> bool {
    has_extension(path, &["ts", "mts"])
}

/// Returns all scripts of a directory and its subdirectories, sorted by path.
fn scripts_in(directory: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = std::fs::read_dir(&directory).map_err(|error| unreadable(&directory, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| unreadable(&directory, &error))?;
            let path = entry.path();
            // Links to directories are not followed, because they could form a cycle.
            let kind = entry.file_type().map_err(|error| unreadable(&path, &error))?;
            if kind.is_dir() {
                directories.push(path);
            } else if has_extension(&path, &["js", "mjs"]) || is_typescript(&path) {
                found.push(path);
            }
        }
    }
    if found.is_empty() {
        return Err(CommandError::new(format!("{}: no .js or .ts files", directory.display())));
    }
    found.sort();
    Ok(found)
}

pub fn unreadable(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::new(format!("{}: {error}", path.display())).with_file_help(path, error)
}

/// Parses an argument that is JSON text or `@FILE`. Returns the text and its value.
pub fn json_argument(flag: &str, argument: &str) -> Result<(String, Value), CommandError> {
    let (text, source) = match argument.strip_prefix('@') {
        Some(file) => {
            let path = Path::new(file);
            let text = files::read_text(path, files::MAX_INPUT_BYTES).map_err(|error| unreadable(path, &error))?;
            (text, file)
        }
        None => (argument.to_owned(), flag),
    };
    let value = serde_json::from_str(&text)
        .map_err(|error| CommandError::new(format!("{source}: not valid JSON: {error}")).with_help(JSON_HELP))?;
    Ok((text, value))
}

const JSON_HELP: &str = "write an object such as '{\"id\": 1}', or @FILE to read it from a file";

pub fn context(argument: &str) -> Result<String, CommandError> {
    match json_argument("--context", argument)? {
        (text, Value::Object(_)) => Ok(text),
        _ => Err(CommandError::new("--context: must be a JSON object").with_help(JSON_HELP)),
    }
}
