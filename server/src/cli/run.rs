//! `codecall run`: scripts from files, results on stdout.

use super::policy::{LanguageFlag, PolicyFlags};
use super::session::Sources;
use super::{Fault, Verdict, output};
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
    /// Run every .js and .ts file of a directory, those in its subdirectories too, by name.
    #[arg(long, value_name = "DIR", conflicts_with = "files")]
    batch: Option<PathBuf>,
    /// What scripts see as `codecallContext`: a JSON object, or @FILE.
    #[arg(long, value_name = "JSON")]
    context: Option<String>,
    /// Found out when left out; files that end in .ts are TypeScript.
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<LanguageFlag>,
    /// Call no tool: results are examples made from output schemas, and `calls` tells what would be called.
    #[arg(long)]
    dry_run: bool,
    /// Write a journal of the run, for `codecall replay`. Needs a single FILE.
    ///
    /// It holds the script's calls, their answers and the outcome as JSON, personal data included, and
    /// is written also when the run fails. In a recorded run the clock stands still, and random numbers
    /// follow from the run's name.
    #[arg(long, value_name = "JOURNAL", conflicts_with_all = ["batch", "dry_run"])]
    record: Option<PathBuf>,
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    pub(super) policy: PolicyFlags,
}

impl Run {
    pub(super) async fn execute(self) -> Result<Verdict, Fault> {
        let scripts = self.scripts()?;
        let context = self.context.as_deref().map(context).transpose()?;
        let mut record = self.record.as_deref().map(|path| self.record_to(path)).transpose()?;
        let session = self.sources.open(|config| config.policy = self.policy.on(config.policy.clone()))?;
        session.ready().await;
        let mut all_ok = true;
        for script in &scripts {
            if let Some(fixture) = &session.fixture {
                fixture.reset();
            }
            let recorder = record.as_ref().map(|_| Recorder::new(&script.text, script.language, context.as_deref()));
            let request = ExecuteRequest {
                language: script.language,
                context: context.clone(),
                dry_run: self.dry_run,
                recorder: recorder.clone().map(|recorder| recorder as _),
                ..ExecuteRequest::new(script.text.as_str(), session.hub.config().policy.clone())
            };
            let finished = session.hub.execute(request, None, session.cancel.clone()).await;
            if let (Some(file), Some(recorder)) = (&mut record, &recorder) {
                file.write(recorder.text(&finished.outcome, session.hub.pipeline().secrets()).as_bytes())
                    .map_err(|error| self.unrecorded(&error))?;
            }
            all_ok &= finished.outcome.status() == Status::Ok;
            let json = if self.dry_run { finished.dry_run_json() } else { finished.outcome.to_json() };
            let json = session.hub.pipeline().secrets().redact_json(&json);
            let printed =
                if self.is_one() { output::json(&json) } else { output::json_as_it_is(&script.labelled(&json)) };
            if printed.is_err() || session.cancel.is_cancelled() {
                session.hub.close().await;
                return printed.map(|()| Verdict::Bad);
            }
        }
        session.hub.close().await;
        Ok(Verdict::good_if(all_ok))
    }

    /// Where the journal goes. That nothing can be written there is told before tools are called.
    fn record_to(&self, path: &Path) -> Result<AtomicFile, Fault> {
        if self.files.len() > 1 {
            return Err(Fault::new("--record: a journal is of one run, and there are several FILEs")
                .with_help("record them one by one"));
        }
        AtomicFile::create(path).map_err(|error| self.unrecorded(&error))
    }

    fn unrecorded(&self, error: &std::io::Error) -> Fault {
        let path = self.record.as_deref().unwrap_or_else(|| Path::new("--record"));
        Fault::new(format!("{}: cannot be written: {error}", path.display()))
    }

    /// Whether there is one result, without a label.
    fn is_one(&self) -> bool {
        self.batch.is_none() && self.files.len() == 1
    }

    pub(super) fn scripts(&self) -> Result<Vec<ScriptFile>, Fault> {
        let files = match &self.batch {
            Some(directory) => scripts_in(directory)?,
            None => self.files.clone(),
        };
        files.iter().map(|file| ScriptFile::read(file, self.language.map(Into::into))).collect()
    }
}

/// A script and where it comes from.
pub struct ScriptFile {
    /// As it was named.
    pub name: String,
    pub text: String,
    pub language: Option<Language>,
}

impl ScriptFile {
    /// Read a file or standard input.
    pub fn read(path: &Path, language: Option<Language>) -> Result<Self, Fault> {
        let name = path.display().to_string();
        let bytes = if name == "-" {
            files::read_stream(std::io::stdin().lock(), files::MAX_INPUT_BYTES)
        } else {
            files::read(path, files::MAX_INPUT_BYTES)
        };
        let bytes = bytes.map_err(|error| unreadable(path, &error))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            Fault::new(format!("{name}: not UTF-8 at byte {}", error.utf8_error().valid_up_to()))
                .with_help("save the script as UTF-8")
        })?;
        let language = language.or_else(|| is_typescript(path).then_some(Language::TypeScript));
        Ok(Self { name, text, language })
    }

    /// A line of JSON with the file in front.
    fn labelled(&self, json: &str) -> String {
        format!("{{\"file\":{},{}", Value::from(self.name.as_str()), &json[1..])
    }
}

fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension().is_some_and(|own| extensions.iter().any(|extension| own.eq_ignore_ascii_case(extension)))
}

fn is_typescript(path: &Path) -> bool {
    has_extension(path, &["ts", "mts"])
}

/// All scripts of a directory, by path.
fn scripts_in(directory: &Path) -> Result<Vec<PathBuf>, Fault> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = std::fs::read_dir(&directory).map_err(|error| unreadable(&directory, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| unreadable(&directory, &error))?;
            let path = entry.path();
            // Links are followed to files, never to directories: those could lead back here.
            let kind = entry.file_type().map_err(|error| unreadable(&path, &error))?;
            if kind.is_dir() {
                directories.push(path);
            } else if has_extension(&path, &["js", "mjs"]) || is_typescript(&path) {
                found.push(path);
            }
        }
    }
    if found.is_empty() {
        return Err(Fault::new(format!("{}: no .js or .ts files", directory.display())));
    }
    found.sort();
    Ok(found)
}

pub fn unreadable(path: &Path, error: &std::io::Error) -> Fault {
    Fault::new(format!("{}: {error}", path.display()))
}

/// JSON text that is given as such or as `@FILE`.
pub fn json_argument(flag: &str, argument: &str) -> Result<(String, Value), Fault> {
    let (text, place) = match argument.strip_prefix('@') {
        Some(file) => {
            let path = Path::new(file);
            let text = files::read_text(path, files::MAX_INPUT_BYTES).map_err(|error| unreadable(path, &error))?;
            (text, file)
        }
        None => (argument.to_owned(), flag),
    };
    let value = serde_json::from_str(&text)
        .map_err(|error| Fault::new(format!("{place}: not valid JSON: {error}")).with_help(JSON_HELP))?;
    Ok((text, value))
}

const JSON_HELP: &str = "write an object such as '{\"id\": 1}', or @FILE to read it from a file";

pub fn context(argument: &str) -> Result<String, Fault> {
    match json_argument("--context", argument)? {
        (text, Value::Object(_)) => Ok(text),
        _ => Err(Fault::new("--context: must be a JSON object").with_help(JSON_HELP)),
    }
}
