//! `codecall completions` and `codecall man`: files for shells and for `man`.

use super::{CommandError, CommandLine, CommandStatus};
use clap::{Args, CommandFactory as _};
use std::io::Write as _;
use std::path::PathBuf;

/// Print completions for a shell.
#[derive(Args, Debug)]
pub struct Completions {
    /// The shell.
    shell: clap_complete::Shell,
}

impl Completions {
    pub(super) fn execute(self) -> Result<CommandStatus, CommandError> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut CommandLine::command(), "codecall", &mut text);
        write(&text)
    }
}

/// Print the man page, or write one for each command.
#[derive(Args, Debug)]
pub struct Man {
    /// Write the pages of all commands into this folder.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Man {
    pub(super) fn execute(self) -> Result<CommandStatus, CommandError> {
        let failed = |error: std::io::Error| CommandError::new(error.to_string());
        match self.output {
            Some(folder) => {
                clap_mangen::generate_to(CommandLine::command(), &folder)
                    .map_err(|error| CommandError::new(format!("{}: {error}", folder.display())))?;
                Ok(CommandStatus::Success)
            }
            None => {
                let mut text = Vec::new();
                clap_mangen::Man::new(CommandLine::command()).render(&mut text).map_err(failed)?;
                write(&text)
            }
        }
    }
}

/// Writes to stdout. A closed pipe is no error.
fn write(text: &[u8]) -> Result<CommandStatus, CommandError> {
    match std::io::stdout().write_all(text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(CommandError::new(error.to_string())),
        Ok(()) | Err(_) => Ok(CommandStatus::Success),
    }
}
