//! The command line: its words, and one file for each group of commands.
//!
//! Answers go to stdout, everything else to stderr. Exit codes: 0 for status ok, 1 for any other
//! status, 2 for what is wrong before anything runs.

mod check;
mod code;
mod confined;
mod output;
mod policy;
mod replay;
mod run;
mod serve;
mod session;
mod tools;

use clap::{Parser, Subcommand};
use codecall::{Error, terminal};
use std::borrow::Cow;
use std::io::Write as _;
use std::process::ExitCode;

/// One binary between an agent and its tools: search, describe, execute, invoke.
#[derive(Debug, Parser)]
#[command(name = "codecall", version, arg_required_else_help = true)]
pub struct CommandLine {
    #[command(subcommand)]
    command: Command,
    /// Log more to stderr: once for what happens, twice for details. RUST_LOG overrides it.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the meta-tools over MCP, on standard input and output or over HTTP.
    Serve(serve::Serve),
    /// Run scripts and print each result as JSON.
    Run(Box<run::Run>),
    /// Play a script against a recorded journal, call by call; no tool is called.
    Replay(Box<replay::Replay>),
    /// Check scripts without running them.
    Check(check::Check),
    /// List all tools.
    Tools(tools::List),
    /// Find tools by what they do.
    Search(tools::Search),
    /// Show schemas and usage examples of tools.
    Describe(tools::Describe),
    /// Call one tool.
    Invoke(tools::Invoke),
    /// Run code whose tool calls wait by themselves.
    Code(code::Code),
    #[command(hide = true)]
    Worker(confined::Worker),
    #[command(hide = true)]
    Confined(Box<confined::Confined>),
}

/// Read the arguments. Help and mistakes are printed here.
///
/// # Errors
/// There is nothing to do; the exit code.
pub fn parse() -> Result<CommandLine, ExitCode> {
    CommandLine::try_parse().map_err(|error| {
        // Where it goes is gone when this fails: nobody is left to be told.
        let told = error.render().to_string();
        match terminal::escape_block(&told) {
            Cow::Borrowed(_) => drop(error.print()),
            Cow::Owned(told) => drop(write!(std::io::stderr(), "{told}")),
        }
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
    })
}

impl CommandLine {
    /// Do what the server has started this process for, where it has: before there is a second thread.
    ///
    /// # Errors
    /// The command line, where it is one of a person.
    pub fn execute_for_server(self) -> Result<ExitCode, Box<Self>> {
        match self.command {
            Command::Worker(worker) => Ok(worker.execute()),
            Command::Confined(confined) => Ok(confined.execute()),
            _ => Err(Box::new(self)),
        }
    }

    /// Do what the arguments say.
    pub async fn execute(self) -> ExitCode {
        log_to_stderr(match &self.command {
            Command::Code(code) if self.verbose == 0 => code.log_level().filter(),
            _ => filter(self.verbose),
        });
        let done = match self.command {
            Command::Serve(serve) => serve.execute().await,
            Command::Run(run) => run.execute().await,
            Command::Replay(replay) => replay.execute().await,
            Command::Check(check) => check.execute(),
            Command::Tools(list) => list.execute().await,
            Command::Search(search) => search.execute().await,
            Command::Describe(describe) => describe.execute().await,
            Command::Invoke(invoke) => invoke.execute().await,
            Command::Code(code) => code.execute().await,
            // They have ended before.
            Command::Worker(_) | Command::Confined(_) => Ok(Verdict::Bad),
        };
        match done {
            Ok(Verdict::Good) => ExitCode::SUCCESS,
            Ok(Verdict::Bad) => ExitCode::FAILURE,
            Err(fault) => fault.report(),
        }
    }
}

/// How a command ended that could do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Exit code 0.
    Good,
    /// Exit code 1: the answer itself is a failure.
    Bad,
}

impl Verdict {
    fn good_if(good: bool) -> Self {
        if good { Self::Good } else { Self::Bad }
    }
}

/// Why a command could not do its work: exit code 2.
#[derive(Debug)]
pub struct Fault {
    message: String,
    help: Option<String>,
}

impl Fault {
    /// What is wrong.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    /// What to do about it.
    fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Tell it on stderr.
    pub fn report(self) -> ExitCode {
        let help = self.help.as_deref().unwrap_or("try 'codecall --help'");
        let told = format!("error: {}\n  help: {help}", self.message);
        let _ = writeln!(std::io::stderr(), "{}", terminal::escape_block(&codecall::redact::redact_log_line(&told)));
        ExitCode::from(2)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::new(error.to_string())
    }
}

/// What is logged of which part, by how often more was asked for.
fn filter(verbose: u8) -> &'static str {
    match verbose {
        0 => "warn",
        1 => "warn,codecall=info",
        2 => "info,codecall=debug",
        _ => "trace",
    }
}

fn log_to_stderr(default: &str) {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(|| Log).init();
}

/// Standard error, without secrets of the configuration, one line an event.
struct Log;

impl std::io::Write for Log {
    /// An event is written at once, so that no secret comes in two parts.
    fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let clean = codecall::redact::redact_log_line(text.trim_end_matches('\n'));
        std::io::stderr().write_all(format!("{}\n", terminal::escape_line(&clean)).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

#[cfg(test)]
mod tests;
