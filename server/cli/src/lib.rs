//! The command line, with one file for each group of commands.
//!
//! Results go to stdout, everything else to stderr. Exit codes: 0 for status ok, 1 for any other status, 2 for an error
//! before anything runs, such as wrong arguments.
//!
//! No other crate than the program knows this one.

#![deny(unsafe_code)]

mod allocator;
mod approvals;
mod approve;
mod auth;
mod check;
mod code;
mod config;
mod confined;
mod history;
mod init;
mod output;
mod policy;
mod reload;
mod replay;
mod request;
mod run;
mod running;
mod secret;
mod serve;
mod servers;
mod shell;
mod skill;
mod sources;
mod status;
mod store;
mod tool;
mod tools;
mod ui;
mod worker;

use clap::{Parser, Subcommand};
use codecall_base::error::Error;
use codecall_base::terminal;
use std::borrow::Cow;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::ExitCode;

/// One binary between an agent and its tools: search, describe, execute, invoke.
#[derive(Debug, Parser)]
#[command(name = "codecall", version, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
    /// Log more to stderr: given once, informational messages; given twice, details. RUST_LOG overrides it.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// How lines of the log are written.
    #[arg(long, global = true, value_name = "FORMAT", env = "CODECALL_LOG_FORMAT", default_value = "text")]
    log_format: LogFormat,
}

/// How lines of the log are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the meta-tools over MCP, on standard input and output or over HTTP.
    Serve(serve::Serve),
    /// Open the web page: runs, tools, charts.
    Ui(ui::Ui),
    /// Run scripts and print each result as JSON.
    Run(Box<run::Run>),
    /// Replay a script with a recorded journal, call by call; no tool is called.
    Replay(Box<replay::Replay>),
    /// Check scripts without running them.
    Check(check::Check),
    /// List all tools; show and approve new and changed ones.
    Tools(Box<tools::Tools>),
    /// Write, check, test and run script tools.
    Tool(tool::Tool),
    /// List and show skills, approve new and changed ones, install them for a client.
    Skill(skill::Skill),
    /// Find tools by what they do.
    Search(tools::Search),
    /// Show schemas and usage examples of tools.
    Describe(tools::Describe),
    /// Call one tool.
    Invoke(tools::Invoke),
    /// List the calls that wait for the approval of a person.
    Approvals(approvals::Approvals),
    /// Allow a call that waits for the approval of a person.
    Approve(approvals::Approve),
    /// Deny a call that waits for the approval of a person.
    Deny(approvals::Deny),
    /// Run code whose tool calls wait by themselves.
    Code(code::Code),
    /// Take over the servers of MCP clients: write a configuration, and make clients start CodeCall with it.
    Init(init::Init),
    /// Log in to MCP servers over HTTP, and out.
    Auth(auth::Auth),
    /// Check or show the configuration, explain its keys, print their JSON schema.
    Config(config::Configuration),
    /// List recorded runs, show one, or replay it.
    History(Box<history::History>),
    /// Prepare MCP servers for their first use.
    Servers(servers::Servers),
    /// Store, list and delete secrets, which are encrypted at rest.
    Secret(secret::Secret),
    /// Check the database of the server, shrink it, copy it to a file and back.
    Store(store::Store),
    /// End the MCP servers of a process that is gone.
    #[cfg(unix)]
    #[command(hide = true)]
    Guard,
    /// Show the state of each MCP server: of a running server, or after starting them.
    Status(Box<status::Status>),
    /// Print completions for a shell.
    Completions(shell::Completions),
    /// Print the man page, or write one for each command.
    Man(shell::Man),
    /// Evaluate durable runs for Restate, or drain workers of earlier versions.
    Worker(Box<worker::Worker>),
    #[command(hide = true)]
    Evaluate(confined::Evaluate),
    #[command(hide = true)]
    Confined(Box<confined::Confined>),
}

/// Parses the command line, executes the command and returns its exit code: the `main` of the program.
#[must_use]
pub fn main() -> ExitCode {
    allocator::tune();
    // Child processes must not inherit other file descriptors than the standard streams.
    #[cfg(unix)]
    close_fds::set_fds_cloexec(3, &[]);
    let command_line = match parse() {
        Ok(command_line) => command_line,
        Err(code) => return code,
    };
    let command_line = match command_line.execute_for_server() {
        Ok(code) => return code,
        Err(command_line) => *command_line,
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return CommandError::new(format!("cannot start threads: {error}")).report(),
    };
    let answering = codecall_base::call::with_client("codecall".into(), command_line.execute());
    let code = runtime.block_on(answering);
    // A blocked read of stdin cannot be cancelled, so do not wait for it.
    runtime.shutdown_background();
    code
}

/// Parses the arguments. Prints help, the version and errors of usage.
///
/// # Errors
/// There is nothing to execute: the exit code.
fn parse() -> Result<CommandLine, ExitCode> {
    CommandLine::try_parse().map_err(|error| {
        // A failed write is ignored: there is nowhere to report it.
        let message = error.render().to_string();
        match terminal::escape_block(&message) {
            Cow::Borrowed(_) => drop(error.print()),
            Cow::Owned(message) => drop(write!(std::io::stderr(), "{message}")),
        }
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
    })
}

impl CommandLine {
    /// Executes a command that a server gives to its child processes, which must run before a second thread starts.
    ///
    /// # Errors
    /// It is another command: the command line.
    fn execute_for_server(self) -> Result<ExitCode, Box<Self>> {
        match self.command {
            #[cfg(unix)]
            Command::Guard => {
                codecall_upstream::guard::serve();
                Ok(ExitCode::SUCCESS)
            }
            Command::Evaluate(evaluate) => Ok(evaluate.execute()),
            Command::Confined(confined) => Ok(confined.execute()),
            _ => Err(Box::new(self)),
        }
    }

    /// Executes the command.
    pub async fn execute(self) -> ExitCode {
        let filter = match &self.command {
            Command::Code(code) if self.verbose == 0 => code.log_level().filter(),
            _ => filter(self.verbose),
        };
        log_to_stderr(filter, self.log_format);
        let result = match self.command {
            Command::Serve(serve) => serve.execute().await,
            Command::Ui(ui) => ui.execute().await,
            Command::Run(run) => run.execute().await,
            Command::Replay(replay) => replay.execute().await,
            Command::Check(check) => check.execute(),
            Command::Tools(tools) => tools.execute().await,
            Command::Skill(skill) => skill.execute().await,
            Command::Tool(tool) => tool.execute().await,
            Command::Search(search) => search.execute().await,
            Command::Describe(describe) => describe.execute().await,
            Command::Invoke(invoke) => invoke.execute().await,
            Command::Approvals(approvals) => approvals.execute().await,
            Command::Approve(approve) => approve.execute().await,
            Command::Deny(deny) => deny.execute().await,
            Command::Code(code) => code.execute().await,
            Command::Init(init) => init.execute(),
            Command::Status(status) => status.execute().await,
            Command::Completions(completions) => completions.execute(),
            Command::Man(man) => man.execute(),
            Command::Auth(auth) => auth.execute().await,
            Command::Config(config) => config.execute(),
            Command::History(history) => history.execute().await,
            Command::Servers(servers) => servers.execute().await,
            Command::Secret(secret) => secret.execute().await,
            Command::Store(store) => store.execute().await,
            Command::Worker(worker) => worker.execute().await,
            // `execute_for_server` has executed them.
            #[cfg(unix)]
            Command::Guard => Ok(CommandStatus::Failure),
            Command::Evaluate(_) | Command::Confined(_) => Ok(CommandStatus::Failure),
        };
        match result {
            Ok(CommandStatus::Success) => ExitCode::SUCCESS,
            Ok(CommandStatus::Failure) => ExitCode::FAILURE,
            Err(error) => error.report(),
        }
    }
}

/// The result of a command that was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandStatus {
    /// Exit code 0.
    Success,
    /// Exit code 1: the command was executed, and its result is a failure.
    Failure,
}

impl CommandStatus {
    fn from_success(is_success: bool) -> Self {
        if is_success { Self::Success } else { Self::Failure }
    }
}

/// The hint for a wrong configuration.
const CONFIG_HELP: &str = "'codecall config explain KEY' says what a key may be";

/// The error of a command that could not be executed. The exit code is 2.
#[derive(Debug)]
pub struct CommandError {
    message: String,
    help: Option<String>,
}

impl CommandError {
    /// Creates an error with a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    /// Adds what the user can do about it.
    fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Says where a file or an address that cannot be used was looked for.
    fn with_file_help(self, path: &Path, error: &std::io::Error) -> Self {
        match (error.kind(), std::env::current_dir()) {
            (ErrorKind::NotFound, Ok(folder)) if path.is_relative() => {
                self.with_help(format!("the current folder is {}", folder.display()))
            }
            (ErrorKind::NotFound, _) => self.with_help("look for a misspelled name, or a folder that is not mounted"),
            (ErrorKind::AddrInUse, _) => {
                self.with_help("another program has this port; end it, or choose another port: --http PORT")
            }
            (ErrorKind::InvalidInput, _) if path.to_string_lossy().starts_with("--http ") => {
                self.with_help("write a port, such as 8931, or an address with a port, such as 127.0.0.1:8931")
            }
            _ => self,
        }
    }

    /// Prints the error to stderr, and returns the exit code.
    pub fn report(self) -> ExitCode {
        let help = self.help.as_deref().unwrap_or("try 'codecall --help'");
        let message = format!("error: {}\n  help: {help}", self.message);
        let _ = writeln!(
            std::io::stderr(),
            "{}",
            terminal::escape_block(&codecall_base::redact::redact_log_line(&message))
        );
        ExitCode::from(2)
    }
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        let fault = Self::new(error.to_string());
        match error {
            Error::Config(_) => fault.with_help(CONFIG_HELP),
            Error::Io { path, source } => fault.with_file_help(Path::new(&path), &source),
            Error::Upstream { .. } | Error::Protocol(_) => fault,
        }
    }
}

/// Returns the log filter for a number of `-v` flags. The libraries of MCP and Restate log their internals, which only
/// help their
/// developers: what matters of them is logged here.
fn filter(verbose: u8) -> &'static str {
    match verbose {
        0 => "warn,rmcp=off,restate_sdk=off,restate_sdk_shared_core=off",
        1 => "warn,codecall=info,rmcp=off,restate_sdk=off,restate_sdk_shared_core=off",
        2 => "info,codecall=debug,rmcp=off,restate_sdk=off,restate_sdk_shared_core=off",
        _ => "trace",
    }
}

fn log_to_stderr(default: &str, format: LogFormat) {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    // An error of stderr, such as that of a closed terminal, cannot be written there.
    match format {
        LogFormat::Text => {
            tracing_subscriber::fmt()
                .with_env_filter(filter)
                .with_ansi(false)
                .log_internal_errors(false)
                .with_writer(move || LogWriter(format))
                .init();
        }
        LogFormat::Json => {
            // What is printed beside the log in text is a part of it.
            let notices = "notice=info".parse().map(|notices| filter.clone().add_directive(notices));
            let builder = tracing_subscriber::fmt().json().with_env_filter(notices.unwrap_or(filter));
            builder.log_internal_errors(false).with_writer(move || LogWriter(format)).init();
            output::log_notices();
        }
    }
}

/// Writes log events to stderr, one line each, without secrets of the configuration.
struct LogWriter(LogFormat);

impl std::io::Write for LogWriter {
    /// tracing writes each event with one call, so a secret is never split.
    fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let clean = codecall_base::redact::redact_log_line(text.trim_end_matches('\n'));
        let line = match self.0 {
            LogFormat::Text => terminal::escape_line(&clean),
            LogFormat::Json => terminal::escape_json(&clean),
        };
        std::io::stderr().write_all(format!("{line}\n").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

#[cfg(test)]
mod tests;
