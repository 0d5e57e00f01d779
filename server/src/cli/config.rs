//! `codecall config`: checks a configuration, explains its keys, and prints their JSON schema for editors.

use super::{CommandError, CommandStatus, output};
use clap::{Args, Subcommand};
use codecall::Config;
use codecall::config::reference::Key;
use std::path::PathBuf;

/// Check a configuration, explain its keys, print their JSON schema.
#[derive(Args, Debug)]
pub struct Configuration {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check a configuration without starting anything.
    Check {
        /// Configuration, TOML or JSON.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Explain a key or a section: its type, default, bounds and meaning.
    Explain {
        /// For example pool, pool.maxRuns or mcpServers.NAME.command; all top-level keys when left out.
        #[arg(value_name = "KEY", default_value = "")]
        key: String,
    },
    /// Print the JSON schema of configurations, for editors.
    Schema,
}

impl Configuration {
    pub(super) fn execute(self) -> Result<CommandStatus, CommandError> {
        match self.command {
            Command::Check { file } => {
                Config::load(&file)?;
                output::print_lines(&[format!("{}: valid", file.display())])?;
            }
            Command::Explain { key } => output::print_lines(&explain(&key)?)?,
            Command::Schema => output::print_json_line(&output::indent(&codecall::config::schema().to_string()))?,
        }
        Ok(CommandStatus::Success)
    }
}

/// Explains a key and the keys below it, in lines.
fn explain(path: &str) -> Result<Vec<String>, CommandError> {
    let unknown = |problem| CommandError::new(problem).with_help("'codecall config explain' lists all top-level keys");
    let key = Key::find(path).map_err(unknown)?;
    let is_root = key.path().is_empty();
    let mut lines = if is_root { Vec::new() } else { describe(&key, "") };
    let inner = key.entry().unwrap_or(key);
    for key in inner.keys() {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(describe(&key, if is_root { "" } else { "  " }));
    }
    Ok(lines)
}

fn describe(key: &Key, indent: &str) -> Vec<String> {
    let mut lines = vec![format!("{indent}{}", key.path()), format!("{indent}  type: {}", key.kind().replace('`', ""))];
    match key.default().replace('`', "").as_str() {
        "" => {}
        "required" => lines.push(format!("{indent}  required")),
        default => lines.push(format!("{indent}  default: {default}")),
    }
    let aliases: Vec<&str> = key.aliases().collect();
    if !aliases.is_empty() {
        lines.push(format!("{indent}  other names: {}", aliases.join(", ")));
    }
    lines.push(format!("{indent}  {}", key.text().replace('`', "")));
    lines
}
