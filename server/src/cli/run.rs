//! `codecall run`: runs scripts from files, and prints their results.

use super::policy::{LanguageFlag, PolicyFlags};
use super::sources::Sources;
use super::{CommandError, CommandStatus, output};
use agentscript::{Language, Status};
use clap::Args;
use codecall::files::{self, AtomicFile};
use codecall::runs::ExecuteRequest;
use codecall::stateless::Recorder;
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
    /// What scripts see as `codecallContext`: a JSON object, or @FILE.
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
    sources: Sources,
    #[command(flatten)]
    pub(super) policy: PolicyFlags,
}

impl Run {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let scripts = self.scripts()?;
        let context = self.context.as_deref().map(context).transpose()?;
        let mut record = self.record.as_deref().map(|path| self.open_journal(path)).transpose()?;
        let running = self.sources.open(|config| config.policy = self.policy.apply_to(config.policy.clone()))?;
        let texts: Vec<&str> = scripts.iter().map(|script| script.text.as_str()).collect();
        running.wait_for_mentioned(&texts.join("\n")).await;
        let mut all_ok = true;
        for script in &scripts {
            if let Some(fixture) = &running.fixture {
                fixture.reset();
            }
            let recorder = record.as_ref().map(|_| Recorder::new(&script.text, script.language, context.as_deref()));
            let request = ExecuteRequest {
                language: script.language,
                context: context.clone(),
                dry_run: self.dry_run,
                journal: recorder.clone().map(|recorder| recorder as _),
                ..ExecuteRequest::new(script.text.as_str(), running.hub.config().policy.clone())
            };
            let finished = running.hub.execute(request, None, running.cancel.clone()).await;
            if let (Some(file), Some(recorder)) = (&mut record, &recorder) {
                file.write(recorder.to_file(&finished.outcome, &running.hub.secrets().redactor()).as_bytes())
                    .map_err(|error| self.unwritable(&error))?;
            }
            all_ok &= finished.outcome.status() == Status::Ok;
            let json = if self.dry_run { finished.dry_run_json() } else { finished.to_json() };
            let json = running.hub.secrets().redactor().redact_json(&json);
            let printed = if self.is_one() {
                output::print_json(&json)
            } else {
                output::print_json_line(&script.with_file_name(&json))
            };
            if printed.is_err() || running.cancel.is_cancelled() {
                running.hub.close().await;
                return printed.map(|()| CommandStatus::Failure);
            }
        }
        running.hub.close().await;
        Ok(CommandStatus::from_success(all_ok))
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
    CommandError::new(format!("{}: {error}", path.display()))
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
