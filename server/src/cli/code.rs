//! `codecall code exec`: `code_execution` from a shell.

use super::policy::LanguageFlag;
use super::run::{ScriptFile, json_argument};
use super::session::Sources;
use super::{Fault, Verdict, output};
use agentscript::Language;
use clap::{Args, Subcommand, ValueEnum, value_parser};
use codecall::meta;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Run code whose tool calls wait by themselves.
#[derive(Args, Debug)]
pub struct Code {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run code and print `{ok, value}` or `{ok, error}` as JSON.
    Exec(Box<Exec>),
}

/// The flags of `code exec`.
#[derive(Args, Debug)]
struct Exec {
    /// The code.
    #[arg(long, value_name = "CODE", required_unless_present = "file", conflicts_with = "file")]
    code: Option<String>,
    /// A file with the code; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// What the code sees as `input`: a JSON object.
    #[arg(long, value_name = "JSON", conflicts_with = "input_file")]
    input: Option<String>,
    /// A file with that.
    #[arg(long, value_name = "FILE")]
    input_file: Option<String>,
    /// Found out when left out; files that end in .ts are TypeScript.
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<LanguageFlag>,
    /// How long it may take, waits for tools included, from 1 to 600000 [default: that of the configuration, or 120000]
    #[arg(long, value_name = "MS", value_parser = value_parser!(u64).range(1..=600_000))]
    timeout: Option<u64>,
    /// How many tools it may call; 0: no limit [default: that of the configuration, or 0]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32))]
    max_tool_calls: Option<u32>,
    /// The only servers whose tools it may call, separated by commas [default: all]
    #[arg(long, value_name = "SERVERS", value_delimiter = ',')]
    allowed_servers: Vec<String>,
    /// What is logged to stderr. RUST_LOG overrides it.
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LogLevel,
    #[command(flatten)]
    sources: Sources,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl LogLevel {
    /// What is logged of which part.
    pub fn filter(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "info,codecall=debug",
            Self::Info => "warn,codecall=info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

impl Code {
    /// What is to be logged.
    pub(super) fn log_level(&self) -> LogLevel {
        let Command::Exec(exec) = &self.command;
        exec.log_level
    }

    pub(super) async fn execute(self) -> Result<Verdict, Fault> {
        let Command::Exec(exec) = self.command;
        let arguments = exec.arguments()?;
        // Whoever has a shell here may do what clients may not.
        let session = exec.sources.open(|config| config.code_execution.enabled = true)?;
        session.ready().await;
        let answer = meta::call(&session.hub, "code_execution", arguments, None, session.cancel.clone()).await;
        session.hub.close().await;
        match answer {
            Some(answer) if answer.value.is_object() => {
                output::json_as_it_is(&output::indented(&answer.value.to_string()))?;
                Ok(Verdict::good_if(!answer.is_error))
            }
            Some(answer) => Err(Fault::new(answer.value.as_str().unwrap_or_default())),
            None => Err(Fault::new("the configuration switches 'code_execution' off")),
        }
    }
}

impl Exec {
    /// The request.
    fn arguments(&self) -> Result<Value, Fault> {
        let (code, language) = match (&self.code, &self.file) {
            (Some(code), _) => (code.clone(), None),
            (None, Some(file)) => {
                let file = ScriptFile::read(file, None)?;
                (file.text, file.language)
            }
            (None, None) => return Err(Fault::new("give --code or --file")),
        };
        let input = match (&self.input, &self.input_file) {
            (Some(input), _) => input_of("--input", input)?,
            (None, Some(file)) => input_of("--input-file", &format!("@{file}"))?,
            (None, None) => json!({}),
        };
        let mut arguments = json!({"code": code, "input": input, "options": {"allowed_servers": self.allowed_servers}});
        if let Some(language) = self.language.map(Into::into).or(language) {
            arguments["language"] = match language {
                Language::JavaScript => "javascript".into(),
                Language::TypeScript => "typescript".into(),
            };
        }
        if let Some(timeout) = self.timeout {
            arguments["options"]["timeout_ms"] = timeout.into();
        }
        if let Some(calls) = self.max_tool_calls {
            arguments["options"]["max_tool_calls"] = calls.into();
        }
        Ok(arguments)
    }
}

fn input_of(flag: &str, argument: &str) -> Result<Value, Fault> {
    let (_, input) = json_argument(flag, argument)?;
    if input.is_object() { Ok(input) } else { Err(Fault::new(format!("{flag}: must be a JSON object"))) }
}
