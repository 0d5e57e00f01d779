//! `codecall code exec`: `code_execution` as a command.

use super::policy::LanguageFlag;
use super::run::{ScriptFile, json_argument};
use super::sources::Sources;
use super::{CommandError, CommandStatus, output};
use agentscript::Language;
use clap::{Args, Subcommand, ValueEnum, value_parser};
use codecall_hub::meta::{self, AnswerContent};
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
    #[arg(
        long,
        value_name = "CODE",
        required_unless_present = "file",
        conflicts_with = "file",
        allow_hyphen_values = true
    )]
    code: Option<String>,
    /// A file with the code; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The value that the code sees as `input`: a JSON object.
    #[arg(long, value_name = "JSON", conflicts_with = "input_file")]
    input: Option<String>,
    /// A file with the `input`.
    #[arg(long, value_name = "FILE")]
    input_file: Option<String>,
    /// Detected when left out; files that end in .ts are TypeScript.
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<LanguageFlag>,
    /// Maximum duration in milliseconds, waits for tools included, from 1 to 600000 [default: that of the
    /// configuration, or 120000]
    #[arg(long, value_name = "MS", value_parser = value_parser!(u64).range(1..=600_000))]
    timeout: Option<u64>,
    /// Maximum number of tool calls; 0: no limit [default: that of the configuration, or 0]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32))]
    max_tool_calls: Option<u32>,
    /// The only servers whose tools it may call, separated by commas; empty: all [default: all]
    #[arg(long, value_name = "SERVERS", value_delimiter = ',')]
    allowed_servers: Vec<String>,
    /// The least level of messages on stderr; with `info`, the run and its console. RUST_LOG overrides it.
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
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
    /// Returns the log filter.
    pub fn filter(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "info,codecall=debug",
            Self::Info => "warn,codecall=info,rmcp=off",
            Self::Warn => "warn,rmcp=off",
            Self::Error => "error,rmcp=off",
        }
    }
}

impl Code {
    /// Returns the level of the command.
    pub(super) fn log_level(&self) -> LogLevel {
        let Command::Exec(exec) = &self.command;
        exec.log_level
    }

    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let Command::Exec(exec) = self.command;
        let arguments = exec.arguments()?;
        let is_console_logged = matches!(exec.log_level, LogLevel::Trace | LogLevel::Debug | LogLevel::Info);
        // The setting restricts clients, not the user of the shell.
        let running = exec.sources.open(|config| config.code_execution.enabled = true)?;
        running.wait_for_mentioned(arguments["code"].as_str().unwrap_or_default()).await;
        let answer = meta::call(&running.hub, "code_execution", arguments, None, running.cancel.clone()).await;
        running.hub.close().await;
        let answer = answer.ok_or_else(|| CommandError::new("the configuration disables 'code_execution'"))?;
        match answer.content {
            AnswerContent::Structured(mut value) => {
                // The log of the command has them, as that of the reference.
                if let Some(answer) = value.as_object_mut().filter(|_| is_console_logged) {
                    answer.remove("logs");
                }
                output::print_json_line(&output::indent(&value.to_string()))?;
                Ok(CommandStatus::from_success(!answer.is_error))
            }
            AnswerContent::Refusal(problem) => Err(CommandError::new(problem)),
        }
    }
}

impl Exec {
    /// Returns the arguments of `code_execution`.
    fn arguments(&self) -> Result<Value, CommandError> {
        let (code, language) = match (&self.code, &self.file) {
            (Some(code), _) => (code.clone(), None),
            (None, Some(file)) => {
                let file = ScriptFile::read(file, None)?;
                (file.text, file.language)
            }
            (None, None) => return Err(CommandError::new("give --code or --file")),
        };
        let input = match (&self.input, &self.input_file) {
            (Some(input), _) => parse_input("--input", input)?,
            (None, Some(file)) => parse_input("--input-file", &format!("@{file}"))?,
            (None, None) => json!({}),
        };
        let allowed_servers: Vec<&str> = match self.allowed_servers.as_slice() {
            // `--allowed-servers=`
            [only] if only.trim().is_empty() => Vec::new(),
            servers => servers.iter().map(|server| server.trim()).collect(),
        };
        if allowed_servers.contains(&"") {
            return Err(CommandError::new("--allowed-servers: one of the names is empty")
                .with_help("write names with commas between them, or nothing for all servers"));
        }
        let mut arguments = json!({"code": code, "input": input, "options": {"allowed_servers": allowed_servers}});
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

fn parse_input(flag: &str, argument: &str) -> Result<Value, CommandError> {
    let (_, input) = json_argument(flag, argument)?;
    if input.is_object() { Ok(input) } else { Err(CommandError::new(format!("{flag}: must be a JSON object"))) }
}
