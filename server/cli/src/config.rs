//! `codecall config`: checks and shows the configuration, explains its keys, and prints their JSON schema for editors.

use super::sources::{find_config, load_config, stored_secret};
use super::{CONFIG_HELP, CommandError, CommandStatus, output};
use clap::{Args, Subcommand};
use codecall_config::effective::{self, Origin, Setting};
use codecall_config::environment;
use codecall_config::reference::Key;
use codecall_store::{Database, NO_STORE};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Check or show the configuration, explain its keys, print their JSON schema.
#[derive(Args, Debug)]
pub struct Configuration {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check a configuration without starting anything.
    Check {
        /// Configuration, TOML or JSON; when left out, the one that other commands would use.
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print the effective configuration: each key with its value, and where that comes from. Secrets are masked.
    Show {
        /// Configuration, TOML or JSON; when left out, the one that other commands would use.
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Leave out keys that have their defaults.
        #[arg(long)]
        set: bool,
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
                let file = find_config(file)?;
                let config = load_config(file.as_deref())?;
                let database = Database::configured(&config).map_err(|error| CommandError::new(error.0))?;
                if config.durable.enabled && database.is_none() {
                    return Err(CommandError::new(NO_STORE));
                }
                let name = file.map_or_else(|| "no file".to_owned(), |file| file.display().to_string());
                let mut lines: Vec<String> =
                    config.warnings.iter().map(|warning| format!("warning: {warning}")).collect();
                let reasons: Vec<&str> = config.unusable.values().map(|server| &*server.reason).collect();
                if !reasons.is_empty() {
                    output::print_lines(&lines)?;
                    return Err(CommandError::new(format!("{name}: {}", reasons.join("; "))).with_help(CONFIG_HELP));
                }
                lines.push(format!("{name}: valid"));
                output::print_lines(&lines)?;
            }
            Command::Show { file, json, set } => show(find_config(file)?, json, set)?,
            Command::Explain { key } => output::print_lines(&explain(&key)?)?,
            Command::Schema => output::print_json_line(&output::indent(&codecall_config::schema().to_string()))?,
        }
        Ok(CommandStatus::Success)
    }
}

fn show(file: Option<PathBuf>, json: bool, only_set: bool) -> Result<(), CommandError> {
    // Its secrets are redacted in errors.
    load_config(file.as_deref())?;
    let mut settings = effective::settings(file.as_deref(), &stored_secret)?;
    settings.retain(|setting| !only_set || setting.origin != Origin::Default);
    let name = file.as_deref().map(|file| file.display().to_string()).unwrap_or_default();
    let origin = |setting: &Setting| match &setting.origin {
        Origin::File => name.clone(),
        Origin::Variable(variable) => variable.clone(),
        Origin::Preset(preset) => format!("preset {preset}"),
        Origin::Default => "default".to_owned(),
    };
    if json {
        let row = |setting: Setting| {
            let row = json!({ "value": setting.value, "default": setting.default, "origin": origin(&setting) });
            (setting.path, row)
        };
        let rows: Map<String, Value> = settings.into_iter().map(row).collect();
        return output::print_json(&Value::Object(rows).to_string());
    }
    let value = |setting: &Setting| match (&setting.value, setting.default.as_str()) {
        (Some(value), _) => value.to_string(),
        (None, "") => "none".to_owned(),
        (None, default) => default.to_owned(),
    };
    let rows = settings.iter().map(|setting| vec![setting.path.clone(), value(setting), origin(setting)]);
    output::print_table(&["key", "value", "from"], rows.collect())
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
    if !key.path().is_empty() && !key.path().contains("[]") && !key.is_ignored() {
        lines.push(format!("{indent}  environment: {}", environment::variable(key.path())));
    }
    lines.push(format!("{indent}  {}", key.text().replace('`', "")));
    lines
}
