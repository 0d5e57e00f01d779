//! `codecall store`: the database of what outlives a process.

use super::sources::open_config;
use super::{CommandError, CommandStatus, output};
use clap::{Args, Subcommand};
use codecall_base::files::{self, AtomicFile};
use codecall_config::Config;
use codecall_store::transfer::Exported;
use codecall_store::{Database, RunStore as _, SqlRuns, transfer, upkeep};
use serde_json::json;
use std::path::PathBuf;

/// Check the database of the server, shrink it, copy it to a file and back.
#[derive(Args, Debug)]
pub struct Store {
    #[command(subcommand)]
    command: Command,
    /// Configuration, TOML or JSON; when left out, the one that other commands would use.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Read all of the database and say what is in it. The exit code is 1 if it is damaged.
    Check {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Delete runs that are older, more or larger than `history` of the configuration says, and give their space back.
    Vacuum,
    /// Write everything to a file, as lines of JSON. Secrets stay encrypted.
    Export {
        /// The file; `-` is standard output.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Read a file of `codecall store export`. Data that the store has already stays as it is.
    Import {
        /// The file; `-` is standard input.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// Returns the database of a configuration.
pub fn open_database(config: &Config) -> Result<Database, CommandError> {
    let database = Database::configured(config).map_err(|error| CommandError::new(error.to_string()))?;
    database.ok_or_else(|| {
        CommandError::new(
            "there is no store: CODECALL_STORE is empty, or the user has no folder for the state of programs",
        )
        .with_help("name a file with 'store.path' of the configuration")
    })
}

/// Converts any error of a store.
pub fn failed(error: impl std::fmt::Display) -> CommandError {
    CommandError::new(error.to_string())
}

impl Store {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let config = open_config(self.config)?;
        let database = open_database(&config)?;
        match self.command {
            Command::Check { json } => check(&database, json).await,
            Command::Vacuum => {
                let deleted = SqlRuns(database.clone()).retain(&config.history).await.map_err(failed)?;
                upkeep::delete_expired(&database).await.map_err(failed)?;
                database.vacuum().await.map_err(|problem| failed(database.error(&problem)))?;
                output::print_lines(&[format!("{}: {deleted} runs deleted{}", database.place(), size(&database))])?;
                Ok(CommandStatus::Success)
            }
            Command::Export { file } => {
                let mut text = Vec::new();
                let Exported { rows, open_runs } = transfer::export(&database, &mut text).await.map_err(failed)?;
                if file.as_os_str() == "-" {
                    output::print_lines(&[String::from_utf8_lossy(&text).trim_end().to_owned()])?;
                } else {
                    let written = AtomicFile::create(&file).and_then(|mut created| created.write(&text));
                    written.map_err(|error| failed(format!("{}: cannot be written: {error}", file.display())))?;
                    output::notice(&format!("{rows} rows written to {}", file.display()));
                }
                if open_runs > 0 {
                    output::notice(&format!(
                        "{open_runs} durable runs in it have not ended. A server on a store that imports them goes on with them: do not let it \
                         run beside the one that has them now, which would make their calls too"
                    ));
                }
                Ok(CommandStatus::Success)
            }
            Command::Import { file } => {
                let read = match file.as_os_str() == "-" {
                    true => files::read_stream(std::io::stdin().lock(), files::MAX_MODEL_BYTES),
                    false => files::read(&file, files::MAX_MODEL_BYTES),
                };
                let text = read.map_err(|error| failed(format!("{}: {error}", file.display())))?;
                let rows = transfer::import(&database, &mut text.as_slice()).await;
                let rows = rows.map_err(|error| failed(format!("{}: {}", file.display(), error.0)))?;
                output::notice(&format!("{rows} rows read from {}", file.display()));
                Ok(CommandStatus::Success)
            }
        }
    }
}

async fn check(database: &Database, json: bool) -> Result<CommandStatus, CommandError> {
    let damages = database.check().await.map_err(|problem| failed(database.error(&problem)))?;
    let totals = SqlRuns(database.clone()).totals().await.map_err(failed)?;
    let counts = upkeep::counts(database).await.map_err(failed)?;
    let is_intact = damages.is_empty();
    if json {
        let mut report = json!({
            "store": database.place(),
            "version": Database::version(),
            "runs": totals.runs,
            "runBytes": totals.bytes,
            "problems": damages,
        });
        report.as_object_mut().into_iter().for_each(|report| {
            report.extend(counts.iter().map(|(what, count)| ((*what).to_owned(), json!(count))));
        });
        output::print_json(&report.to_string())?;
    } else {
        let mut lines = vec![
            format!("{}: {}{}", database.place(), if is_intact { "intact" } else { "damaged" }, size(database)),
            format!("{} runs ({} bytes)", totals.runs, totals.bytes),
        ];
        lines.extend(counts.iter().filter(|(_, count)| *count > 0).map(|(what, count)| format!("{what}: {count}")));
        lines.extend(damages.iter().map(|damage| format!("damage: {damage}")));
        if !is_intact {
            lines.push(
                "save what can be read with `codecall store export FILE`, move the database away, and import it".into(),
            );
        }
        output::print_lines(&lines)?;
    }
    Ok(CommandStatus::from_success(is_intact))
}

/// Returns the size of the file, for a line.
fn size(database: &Database) -> String {
    let bytes = database.path().and_then(|path| path.metadata().ok()).map(|metadata| metadata.len());
    bytes.map_or_else(String::new, |bytes| format!(", {bytes} bytes"))
}
