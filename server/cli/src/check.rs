//! `codecall check`: checks scripts without running them.

use super::policy::LanguageFlag;
use super::run::ScriptFile;
use super::{CommandError, CommandStatus, output};
use agentscript::{CompileOptions, Diagnostic, Policy, Preset};
use clap::Args;
use codecall_base::terminal;
use serde_json::{Map, Value, json};
use std::io::Write as _;
use std::path::PathBuf;

/// Check scripts without running them.
#[derive(Args, Debug)]
pub struct Check {
    /// Scripts; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print one line of JSON for each file on stdout.
    #[arg(long)]
    json: bool,
    /// The loops and built-ins that are allowed.
    #[arg(long, value_name = "PRESET", value_parser = super::policy::preset())]
    preset: Option<Preset>,
    /// Detected when left out; files that end in .ts are TypeScript.
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<LanguageFlag>,
}

impl Check {
    pub(super) fn execute(self) -> Result<CommandStatus, CommandError> {
        let language = self.language.map(Into::into);
        let scripts: Vec<ScriptFile> =
            self.files.iter().map(|file| ScriptFile::read(file, language)).collect::<Result<_, _>>()?;
        let policy = Policy::preset(self.preset.unwrap_or_default());
        let mut all_valid = true;
        for script in &scripts {
            let options = CompileOptions { language: script.language, ..CompileOptions::for_policy(&policy) };
            let diagnostics = match agentscript::compile(&script.text, &options) {
                Ok(_) => Vec::new(),
                Err(error) => error.diagnostics,
            };
            all_valid &= diagnostics.is_empty();
            if self.json {
                output::print_json_line(&to_json(script, &diagnostics).to_string())?;
            } else {
                render(script, &diagnostics);
            }
        }
        Ok(CommandStatus::from_success(all_valid))
    }
}

/// Prints diagnostics with source lines to stderr.
fn render(script: &ScriptFile, diagnostics: &[Diagnostic]) {
    let mut stderr = std::io::stderr().lock();
    for diagnostic in diagnostics {
        let rendered = diagnostic.render(&terminal::escape_line(&script.name), &script.text).to_string();
        let _ = writeln!(stderr, "{}", terminal::escape_block(&rendered));
    }
}

fn to_json(script: &ScriptFile, diagnostics: &[Diagnostic]) -> Value {
    let one = |diagnostic: &Diagnostic| {
        let location = diagnostic.location(&script.text);
        let mut object = Map::new();
        object.insert("code".into(), diagnostic.code.as_str().into());
        if let Some(refusal) = diagnostic.refusal {
            object.insert("kind".into(), refusal.as_str().into());
        }
        object.insert("message".into(), diagnostic.message.as_ref().into());
        if let Some(hint) = &diagnostic.hint {
            object.insert("hint".into(), hint.as_ref().into());
        }
        object.insert("location".into(), json!({ "line": location.line, "column": location.column }));
        Value::Object(object)
    };
    let diagnostics: Vec<Value> = diagnostics.iter().map(one).collect();
    json!({ "file": script.name, "ok": diagnostics.is_empty(), "diagnostics": diagnostics })
}
