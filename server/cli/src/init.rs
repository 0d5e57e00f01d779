//! `codecall init`: takes over the servers of MCP clients, and makes these start CodeCall instead.

use super::{CommandError, CommandStatus, output};
use clap::Args;
use codecall_base::files::{self, AtomicFile};
use codecall_base::terminal;
use codecall_clients::change::{self, Taken, Undone};
use codecall_clients::{CLIENTS, Client, Environment, Found, Plan, Platform};
use codecall_config::{Config, Format};
use dialoguer::Confirm;
use etcetera::BaseStrategy as _;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{ErrorKind, IsTerminal as _};
use std::path::{Path, PathBuf};

/// Take over the servers of MCP clients: write a configuration, and make clients start CodeCall with it.
#[derive(Args, Debug)]
pub struct Init {
    /// Where the configuration is written, or added to. When left out: the user's codecall/codecall.toml (~/.config, on
    /// Windows %APPDATA%).
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Read the files of this client only. Can be given several times.
    #[arg(long, value_name = "CLIENT", value_parser = client())]
    client: Vec<&'static Client>,
    /// The folder whose .mcp.json, .vscode/mcp.json, .cursor/mcp.json and .zed/settings.json are read.
    #[arg(long, value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Show what would be written, without secrets, and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// Change the files of this client, so that it starts CodeCall instead of the servers that were taken over. A backup
    /// is left beside each. `all`: every client.
    #[arg(long, value_name = "CLIENT", value_parser = client_or_all(), conflicts_with = "dry_run")]
    apply: Vec<Choice>,
    /// Undo the change of this client's files. `all`: every client.
    #[arg(long, value_name = "CLIENT", value_parser = client_or_all(), conflicts_with_all = ["apply", "dry_run", "output"])]
    undo: Vec<Choice>,
    /// Print JSON, and ask nothing.
    #[arg(long)]
    json: bool,
}

/// A client, or all of them.
#[derive(Clone, Copy, Debug)]
enum Choice {
    All,
    One(&'static Client),
}

impl Choice {
    fn has(self, client: &Client) -> bool {
        match self {
            Self::All => true,
            Self::One(one) => one.id == client.id,
        }
    }
}

fn client() -> impl clap::builder::TypedValueParser<Value = &'static Client> {
    use clap::builder::TypedValueParser as _;
    clap::builder::PossibleValuesParser::new(CLIENTS.iter().map(|client| client.id))
        .try_map(|id| Client::named(&id).ok_or("unknown client"))
}

fn client_or_all() -> impl clap::builder::TypedValueParser<Value = Choice> {
    use clap::builder::TypedValueParser as _;
    clap::builder::PossibleValuesParser::new(CLIENTS.iter().map(|client| client.id).chain(["all"]))
        .map(|id| Client::named(&id).map_or(Choice::All, Choice::One))
}

impl Init {
    pub(super) fn execute(self) -> Result<CommandStatus, CommandError> {
        let folder = std::path::absolute(&self.folder)
            .map_err(|error| CommandError::new(format!("{}: {error}", self.folder.display())))?;
        let folder = std::fs::canonicalize(&folder).unwrap_or(folder);
        let variables = |name: &str| std::env::var(name).ok();
        let environment = environment(folder, &variables)?;
        let mut found = codecall_clients::find(&environment);
        if !self.undo.is_empty() {
            found.retain(|found| self.undo.iter().any(|choice| choice.has(found.client)));
            return self.undo(&found);
        }
        found.retain(|found| self.client.is_empty() || self.client.iter().any(|client| client.id == found.client.id));
        let plan = codecall_clients::plan(&found, &environment);
        let path = self.path()?;
        let existing = match files::read_text(&path, files::MAX_CONFIG_BYTES) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(CommandError::new(format!("{}: {error}", path.display()))),
        };
        let written = codecall_clients::write(existing.as_deref(), &plan)
            .map_err(|problem| CommandError::new(format!("{}: {problem}", path.display())))?;
        self.check(&path, &written.text)?;
        if !self.json {
            report(&found, &plan)?;
        }
        if self.dry_run {
            if !self.json {
                let secrets = Config::secrets_of(&written.text, Format::Toml).map_err(CommandError::new)?;
                let text = secrets.redactor().redact_text(&written.text).into_owned();
                output::print_lines(&[String::new(), format!("# {}", path.display()), text])?;
                return Ok(CommandStatus::Success);
            }
        } else if existing.as_deref() != Some(written.text.as_str()) {
            save(&path, &written.text)?;
        }
        let changed = if self.dry_run { Vec::new() } else { self.change(&found, &plan, &written, &path)? };
        if self.json {
            print_json(&found, &plan, &written, &path, &changed)?;
        } else {
            let mut lines = vec![String::new(), summary(&path, existing.is_some(), &written, &plan)];
            if !written.different.is_empty() {
                let names = written.different.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                lines.push(format!("not added, because it has other servers with these names: {names}"));
            }
            if !written.settings.is_empty() {
                lines.push(format!("settings: {}", written.settings.join(", ")));
            }
            if !written.different_settings.is_empty() {
                let keys = written.different_settings.join(", ");
                lines.push(format!("not changed, because it has other values: {keys}"));
            }
            if !self.dry_run {
                lines.push(
                    "'codecall servers prefetch' installs the packages of the servers and learns their tools".into(),
                );
            }
            for (path, backup) in &changed {
                lines.push(format!("{}: starts CodeCall; as it was: {}", path.display(), backup.display()));
            }
            if changed.is_empty() && !found.is_empty() {
                lines.push(
                    "'codecall init --apply CLIENT' makes a client start CodeCall, '--undo CLIENT' undoes it".into(),
                );
            }
            output::print_lines(&lines)?;
        }
        Ok(CommandStatus::Success)
    }

    fn path(&self) -> Result<PathBuf, CommandError> {
        match &self.output {
            Some(path) => std::path::absolute(path).map_err(|error| CommandError::new(error.to_string())),
            None => codecall_config::locate::of_user()
                .ok_or_else(|| CommandError::new("there is no home folder").with_help("give --output FILE")),
        }
    }

    /// The files that are written can be read. Variables need not be set.
    fn check(&self, path: &Path, text: &str) -> Result<(), CommandError> {
        let lookup = |name: &str| Some(std::env::var(name).unwrap_or_default());
        let problem = match Config::parse(text, Format::Toml, &lookup) {
            // A file of variables may come later.
            Ok(config) => {
                config.unusable.into_values().map(|server| server.reason).find(|why| !why.contains(".envFile: "))
            }
            Err(problem) => Some(problem),
        };
        match problem {
            None => Ok(()),
            Some(problem) => Err(CommandError::new(format!("{}: {problem}", path.display()))
                .with_help("correct this file, or write another one with --output FILE")),
        }
    }

    /// Changes the files of the clients that were named, or that the user agrees to. Returns them with their backups.
    fn change(
        &self,
        found: &[Found],
        plan: &Plan,
        written: &codecall_clients::Written,
        config: &Path,
    ) -> Result<Vec<(PathBuf, PathBuf)>, CommandError> {
        let program = std::env::current_exe().map_err(|error| CommandError::new(error.to_string()))?;
        let mut command = codecall_clients::launch::command(&program);
        command.extend(["serve".to_owned(), "--config".to_owned(), config.display().to_string()]);
        let mut changed = Vec::new();
        let paths: BTreeSet<&PathBuf> = found.iter().map(|file| &file.path).collect();
        for path in paths {
            let places: Vec<Taken<'_>> = found
                .iter()
                .filter(|file| file.path == *path)
                .map(|found| Taken { found, names: plan.taken(found, |name| written.has(name)) })
                .collect();
            let servers = places.iter().map(|place| place.names.len()).sum();
            let Some(first) = places.first().filter(|_| servers > 0) else { continue };
            if !self.agrees(first.found, servers)? {
                continue;
            }
            if change::apply(path, &places, &command).map_err(CommandError::new)? {
                changed.push((path.clone(), change::backup_of(path)));
            }
        }
        Ok(changed)
    }

    /// Whether a file is to be changed. On a terminal the user is asked.
    fn agrees(&self, file: &Found, servers: usize) -> Result<bool, CommandError> {
        if !self.apply.is_empty() || self.json || !std::io::stdin().is_terminal() || !output::is_terminal() {
            return Ok(self.apply.iter().any(|choice| choice.has(file.client)));
        }
        let path = file.path.display().to_string();
        let question = format!("Let {} start CodeCall instead of its {servers} servers ({path})?", file.client.name);
        Confirm::new()
            .with_prompt(terminal::escape_line(&question))
            .default(false)
            .interact()
            .map_err(|error| CommandError::new(error.to_string()))
    }

    fn undo(&self, found: &[Found]) -> Result<CommandStatus, CommandError> {
        let paths: BTreeSet<&PathBuf> = found.iter().map(|found| &found.path).collect();
        let (mut lines, mut undone, mut files) = (Vec::new(), 0, Vec::new());
        for path in paths {
            let places: Vec<Found> = found.iter().filter(|found| found.path == *path).cloned().collect();
            let what = change::undo(path, &places).map_err(CommandError::new)?;
            let (name, text) = match what {
                Undone::Restored => ("restored", "as it was before"),
                Undone::Merged => ("merged", "has its servers again; what was changed since is kept"),
                Undone::Nothing => continue,
            };
            undone += 1;
            lines.push(format!("{}: {text}", path.display()));
            files.push(json!({ "file": path.display().to_string(), "undone": name }));
        }
        if self.json {
            output::print_json(&json!({ "files": files }).to_string())?;
        } else if undone == 0 {
            lines.push("nothing to undo: no file has a backup beside it".into());
        }
        if !self.json {
            output::print_lines(&lines)?;
        }
        Ok(CommandStatus::from_success(undone > 0))
    }
}

/// Where clients are looked for.
fn environment<'a>(
    folder: PathBuf,
    variables: &'a dyn Fn(&str) -> Option<String>,
) -> Result<Environment<'a>, CommandError> {
    let missing = || CommandError::new("there is no home folder");
    let folders = etcetera::choose_base_strategy().map_err(|_| missing())?;
    let (platform, home) = (Platform::current(), folders.home_dir().to_path_buf());
    let config = match platform {
        Platform::MacOs => home.join("Library").join("Application Support"),
        Platform::Linux | Platform::Windows => folders.config_dir(),
    };
    Ok(Environment { platform, home, config, folder, variables })
}

/// The fate of a server or a setting.
struct Row {
    name: String,
    what: &'static str,
    client: &'static str,
    path: String,
    note: String,
}

/// Prints what was found. On a terminal it stands below the path of its file, which no cell of a table breaks.
fn report(found: &[Found], plan: &Plan) -> Result<(), CommandError> {
    if found.is_empty() {
        let names: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
        return output::print_lines(&[format!("no servers found in the files of {}", names.join(", "))]);
    }
    let rows = rows(plan);
    if output::is_terminal() {
        return output::print_groups(groups(rows));
    }
    let cells = |row: Row| {
        let note = row.note.lines().next().unwrap_or_default().to_owned();
        vec![row.name, row.what.to_owned(), row.client.to_owned(), row.path, note]
    };
    output::print_table(&[], rows.into_iter().map(cells).collect())
}

/// The rows of each file below its head, in the order of the files.
fn groups(rows: Vec<Row>) -> Vec<(String, Vec<Vec<String>>)> {
    let mut groups: Vec<(String, Vec<Vec<String>>)> = Vec::new();
    for row in rows {
        let head = format!("{}: {}", row.client, row.path);
        let cells = vec![row.name, row.what.to_owned(), row.note];
        match groups.iter_mut().find(|(known, _)| *known == head) {
            Some((_, rows)) => rows.push(cells),
            None => groups.push((head, vec![cells])),
        }
    }
    groups
}

fn rows(plan: &Plan) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |name: &str, what, client, path: &Path, note| {
        rows.push(Row { name: name.to_owned(), what, client, path: path.display().to_string(), note });
    };
    for planned in &plan.servers {
        let mut notes = Vec::new();
        if planned.name != planned.original {
            notes.push(format!("named '{}'", planned.original));
        }
        if !planned.missing.is_empty() {
            notes.push(format!("disabled until {} is set", planned.missing.join(", ")));
        } else if planned.server.keys.get("enabled").is_some_and(|enabled| enabled == false) {
            notes.push("disabled".into());
        }
        notes.extend(planned.server.notes.iter().cloned());
        add(&planned.name, "taken over", planned.client, &planned.path, notes.join("; "));
    }
    for same in &plan.duplicates {
        add(&same.name, "duplicate", same.client, &same.path, format!("same as '{}'", same.same));
    }
    for skipped in &plan.skipped {
        add(&skipped.name, "skipped", skipped.client, &skipped.path, skipped.reason.clone());
    }
    for planned in &plan.settings {
        let setting = &planned.setting;
        let value = if setting.is_secret() { "(secret)".to_owned() } else { setting.value.to_string() };
        let note = format!("{} = {value}", setting.path());
        add(&setting.from, "setting taken over", planned.client, &planned.path, note);
    }
    for left in &plan.left {
        add(&left.key, "setting not taken over", left.client, &left.path, left.reason.clone());
    }
    rows
}

/// The result in one line.
fn summary(path: &Path, existed: bool, written: &codecall_clients::Written, plan: &Plan) -> String {
    let what = if existed { "added to" } else { "written to" };
    let mut line = match (written.added.len(), existed) {
        (0, true) => format!("nothing to add to {}", path.display()),
        (1, _) => format!("1 server {what} {}", path.display()),
        (number, _) => format!("{number} servers {what} {}", path.display()),
    };
    for (count, what) in [(plan.skipped.len(), "skipped"), (plan.duplicates.len(), "duplicate")] {
        if count > 0 {
            line.push_str(&format!("; {count} {what}"));
        }
    }
    line
}

fn print_json(
    found: &[Found],
    plan: &Plan,
    written: &codecall_clients::Written,
    path: &Path,
    changed: &[(PathBuf, PathBuf)],
) -> Result<(), CommandError> {
    let shown = |path: &Path| path.display().to_string();
    let files: BTreeSet<String> = found.iter().map(|found| shown(&found.path)).collect();
    let server = |planned: &codecall_clients::Planned| {
        json!({
            "name": planned.name, "original": planned.original, "client": planned.client, "file": shown(&planned.path),
            "added": written.added.contains(&planned.name), "differs": written.different.contains(&planned.name), "missing": planned.missing, "notes": planned.server.notes,
        })
    };
    let skipped = |skipped: &codecall_clients::Skipped| json!({ "name": skipped.name, "client": skipped.client, "file": shown(&skipped.path), "reason": skipped.reason });
    let duplicate = |same: &codecall_clients::Duplicate| json!({ "name": same.name, "client": same.client, "file": shown(&same.path), "sameAs": same.same });
    let setting = |planned: &codecall_clients::PlannedSetting| {
        let key = planned.setting.path();
        json!({
            "key": planned.setting.from, "client": planned.client, "file": shown(&planned.path),
            "value": if planned.setting.is_secret() { json!("[secret]") } else { planned.setting.value.clone() },
            "added": written.settings.contains(&key), "differs": written.different_settings.contains(&key), "as": key,
        })
    };
    let left = |left: &codecall_clients::Left| json!({ "key": left.key, "client": left.client, "file": shown(&left.path), "reason": left.reason });
    let change = |(path, backup): &(PathBuf, PathBuf)| json!({ "file": shown(path), "backup": shown(backup) });
    let report = json!({
        "config": shown(path),
        "files": files,
        "servers": plan.servers.iter().map(server).collect::<Vec<_>>(),
        "duplicates": plan.duplicates.iter().map(duplicate).collect::<Vec<_>>(),
        "skipped": plan.skipped.iter().map(skipped).collect::<Vec<_>>(),
        "settings": plan.settings.iter().map(setting).collect::<Vec<_>>(),
        "settingsLeft": plan.left.iter().map(left).collect::<Vec<_>>(),
        "changed": changed.iter().map(change).collect::<Vec<_>>(),
    });
    output::print_json(&report.to_string())
}

/// Writes the configuration, for its owner only: it may contain secrets.
fn save(path: &Path, text: &str) -> Result<(), CommandError> {
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    folder
        .and_then(|()| AtomicFile::create(path))
        .and_then(|mut file| file.write(text.as_bytes()))
        .map_err(|error| CommandError::new(format!("{}: {error}", path.display())))
}
