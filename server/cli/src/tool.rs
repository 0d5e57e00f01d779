//! `codecall tool`: script tools.

use super::run::json_argument;
use super::sources::{Need, RunningHub, Sources, open_config};
use super::store::{failed, open_database};
use super::{CommandError, CommandStatus, output};
use clap::{Args, Subcommand};
use codecall_base::files;
use codecall_base::text::diff::unified;
use codecall_config::Config;
use codecall_hub::hub::{load_script_tools, run_examples};
use codecall_scripts::folder::{MAX_FILE_BYTES, load_file};
use codecall_scripts::{Loaded, ScriptTools};
use codecall_store::StoredCode;
use serde_json::{Map, Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Write, check, test and run script tools.
#[derive(Args, Debug)]
pub struct Tool {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the beginning of a new tool.
    New {
        /// Its name.
        #[arg(value_name = "NAME")]
        name: String,
        /// Write TypeScript, where the schema of the parameters is their type.
        #[arg(long)]
        typescript: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Check tools without running them. The exit code is 1 if one is broken.
    Check {
        /// Files; when left out, all tools of the folder.
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Print one line of JSON for each tool.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Run the examples of manifests against their recorded answers. The exit code is 1 if one fails.
    Test {
        /// Names of tools; when left out, all tools of the folder.
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Print one line of JSON for each tool.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Call a tool, and print its result. The exit code is 1 if it fails.
    Run {
        /// Its name, without its app.
        #[arg(value_name = "NAME")]
        name: String,
        /// Its parameters: a JSON object, or @FILE.
        #[arg(value_name = "JSON", default_value = "{}")]
        params: String,
        /// The folder of the tools; by default that of the configuration.
        #[arg(long, value_name = "DIR")]
        folder: Option<PathBuf>,
        #[command(flatten)]
        sources: Sources,
    },
    /// List the tools of the folder and of the store.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Show what a tool says of itself, as JSON, or its code.
    Show {
        /// Its name.
        #[arg(value_name = "NAME")]
        name: String,
        /// Print the code.
        #[arg(long)]
        code: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Store a tool, or a new version of it, and enable it if it is new. Its name is that of the file.
    Put {
        /// A file of code that contains its manifest.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        place: Place,
    },
    /// Let a stored tool be called again.
    Enable {
        /// Its name.
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        place: Place,
    },
    /// Keep a stored tool, but let nobody call it.
    Disable {
        /// Its name.
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        place: Place,
    },
    /// Remove a stored tool. Its versions stay, so that it can be restored.
    Remove {
        /// Its name.
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        place: Place,
    },
    /// List the versions of a stored tool, the latest first.
    Versions {
        /// Its name.
        #[arg(value_name = "NAME")]
        name: String,
        /// Print JSON, with the code.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Store an older version again, as a new one.
    Restore {
        /// Its name.
        #[arg(value_name = "NAME")]
        name: String,
        /// The number of the version.
        #[arg(value_name = "VERSION")]
        version: i64,
        #[command(flatten)]
        place: Place,
    },
    /// Show what differs between two versions of a stored tool. The exit code is 1 if something does.
    Diff {
        /// Its name.
        #[arg(value_name = "NAME")]
        name: String,
        /// The older version; when left out, the one before the latest.
        #[arg(value_name = "OLD")]
        old: Option<i64>,
        /// The newer version; when left out, the latest.
        #[arg(value_name = "NEW")]
        new: Option<i64>,
        #[command(flatten)]
        place: Place,
    },
}

/// Where the tools are.
#[derive(Args, Clone, Debug)]
struct Place {
    /// The folder of the tools; by default that of the configuration.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Configuration, TOML or JSON; when left out, the one that other commands would use.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Place {
    /// Loads the configuration, with the folder.
    fn open(self) -> Result<Config, CommandError> {
        let mut config = open_config(self.config)?;
        config.script_tools.folder = self.folder.or(config.script_tools.folder);
        Ok(config)
    }
}

/// Returns the folder of the tools.
fn folder(config: &Config) -> Result<&Path, CommandError> {
    config.script_tools.folder.as_deref().ok_or_else(|| {
        CommandError::new("there is no folder of script tools")
            .with_help("name it with 'scriptTools.folder' of the configuration, or --folder")
    })
}

/// Loads the tools of the folder and of the store.
async fn open_tools(config: &Config) -> Result<Arc<ScriptTools>, CommandError> {
    if !config.script_tools.stored {
        folder(config)?;
    }
    let database = if config.script_tools.stored { Some(open_database(config)?) } else { None };
    let tools = load_script_tools(config, database.as_ref());
    tools.refresh().await;
    match codecall_upstream::Upstream::unavailable_reason(&*tools) {
        Some(problem) => Err(CommandError::new(problem)),
        None => Ok(tools),
    }
}

/// Loads the tools of the store, whether or not the configuration uses them.
async fn open_stored(mut config: Config) -> Result<Arc<ScriptTools>, CommandError> {
    if !std::mem::replace(&mut config.script_tools.stored, true) {
        output::notice("servers use stored tools only with 'scriptTools.stored = true' in their configuration");
    }
    open_tools(&config).await
}

/// Returns who uses this command, for the versions of tools.
fn author() -> String {
    ["USER", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok()).unwrap_or_else(|| "cli".into())
}

/// Returns the tools of these names; all if there are none.
async fn load_named(config: &Config, names: &[String]) -> Result<Vec<Loaded>, CommandError> {
    let mut tools = open_tools(config).await?.all();
    let app = format!("{}:", config.script_tools.app);
    let names: Vec<&str> = names.iter().map(|name| name.strip_prefix(&app).unwrap_or(name)).collect();
    if let Some(unknown) = names.iter().find(|name| !tools.iter().any(|tool| tool.name == **name)) {
        let known: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let help =
            if known.is_empty() { "the folder has no tools".into() } else { format!("there are {}", known.join(", ")) };
        return Err(CommandError::new(format!("there is no script tool '{unknown}'")).with_help(help));
    }
    if !names.is_empty() {
        tools.retain(|tool| names.contains(&tool.name.as_str()));
    }
    Ok(tools)
}

impl Tool {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        match self.command {
            Command::New { name, typescript, place } => new(&place.open()?, &name, typescript),
            Command::Check { files, json, place } => {
                let config = place.open()?;
                let one = |file: &PathBuf| load_file(file, &config.script_tools.app, &config.policy);
                let tools =
                    if files.is_empty() { open_tools(&config).await?.all() } else { files.iter().map(one).collect() };
                check(&tools, json)
            }
            Command::Test { names, json, place } => {
                let config = place.open()?;
                test(&config, &load_named(&config, &names).await?, json).await
            }
            Command::Run { name, params, folder, sources } => run(&name, &params, folder, &sources).await,
            Command::List { json, place } => list(&open_tools(&place.open()?).await?.all(), json),
            Command::Show { name, code, place } => {
                let config = place.open()?;
                let tools = load_named(&config, std::slice::from_ref(&name)).await?;
                tools.first().map_or(Ok(CommandStatus::Failure), |tool| show(tool, code))
            }
            Command::Put { file, place } => put(&place.open()?, &file).await,
            Command::Enable { name, place } => set_enabled(place.open()?, &name, true).await,
            Command::Disable { name, place } => set_enabled(place.open()?, &name, false).await,
            Command::Remove { name, place } => {
                let tools = open_stored(place.open()?).await?;
                if let Some(stored) = tools.stored() {
                    stored.remove(&name).await.map_err(failed)?;
                }
                output::notice(&format!("{name} is removed; its versions stay"));
                Ok(CommandStatus::Success)
            }
            Command::Versions { name, json, place } => versions(place.open()?, &name, json).await,
            Command::Restore { name, version, place } => {
                let tools = open_stored(place.open()?).await?;
                let Some(stored) = tools.stored() else { return Ok(CommandStatus::Failure) };
                let old = stored.version(&name, version).await.map_err(failed)?;
                let number = tools.put(&name, &old.code, &author()).await.map_err(failed)?;
                output::notice(&format!("version {version} of {name} is now version {number}"));
                Ok(CommandStatus::Success)
            }
            Command::Diff { name, old, new, place } => diff(place.open()?, &name, old, new).await,
        }
    }
}

const JAVASCRIPT: &str = r#"/*---
description = "Say hello to somebody"

[parameters.properties.name]
type = "string"
description = "The person to greet"

[parameters.properties.loud]
type = "boolean"
default = false

[parameters]
required = ["name"]

[[examples]]
description = "A greeting"
params = { name = "Ada" }
data = { greeting = "Hello, Ada" }
---*/

async function execute(params, config) {
  const { name, loud } = params;
  const greeting = `Hello, ${name}`;
  return { success: true, data: { greeting: loud ? greeting.toUpperCase() : greeting } };
}
"#;

const TYPESCRIPT: &str = r#"/*---
description = "Say hello to somebody"

[[examples]]
description = "A greeting"
params = { name = "Ada" }
data = { greeting = "Hello, Ada" }
---*/

interface Params {
  /** The person to greet */
  name: string;
  /** @default false */
  loud?: boolean;
}

async function execute(params: Params, config: Record<string, string>) {
  const { name, loud } = params;
  const greeting = `Hello, ${name}`;
  return { success: true, data: { greeting: loud ? greeting.toUpperCase() : greeting } };
}
"#;

fn new(config: &Config, name: &str, is_typescript: bool) -> Result<CommandStatus, CommandError> {
    let (extension, text) = if is_typescript { ("ts", TYPESCRIPT) } else { ("js", JAVASCRIPT) };
    let folder = folder(config)?;
    let failed = |path: &Path, error: std::io::Error| CommandError::new(format!("{}: {error}", path.display()));
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if !is_name || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(CommandError::new(format!("'{name}' cannot be the name of a tool"))
            .with_help("begin with a letter, go on with letters, digits, '_' and '-'"));
    }
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for extension in ["js", "ts"] {
        let path = folder.join(format!("{name}.{extension}"));
        if path.exists() {
            return Err(
                CommandError::new(format!("{}: it is there already", path.display())).with_help("choose another name")
            );
        }
    }
    let path = folder.join(format!("{name}.{extension}"));
    let created = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
    created.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| failed(&path, error))?;
    output::print_lines(&[path.display().to_string()])?;
    output::notice(&format!(
        "edit it, then `codecall tool test {name}` and `codecall tool run {name} '{{\"name\": \"Ada\"}}'`"
    ));
    Ok(CommandStatus::Success)
}

fn check(tools: &[Loaded], is_json: bool) -> Result<CommandStatus, CommandError> {
    for tool in tools {
        let lines = tool.lines();
        if is_json {
            let line = json!({
                "file": tool.file.display().to_string(),
                "tool": tool.name,
                "ok": lines.is_empty(),
                "problems": tool.problems,
            });
            output::print_json_line(&line.to_string())?;
        } else {
            lines.iter().for_each(|line| output::notice(line));
        }
    }
    if tools.is_empty() {
        output::notice("the folder has no tools; `codecall tool new NAME` writes one");
    }
    Ok(CommandStatus::from_success(tools.iter().all(|tool| tool.problems.is_empty())))
}

async fn test(config: &Config, tools: &[Loaded], is_json: bool) -> Result<CommandStatus, CommandError> {
    let mut all_passed = true;
    for loaded in tools {
        let lines = loaded.lines();
        let Some(tool) = loaded.tool.as_ref().filter(|_| lines.is_empty()) else {
            all_passed = false;
            if is_json {
                output::print_json_line(
                    &json!({"tool": loaded.name, "ok": false, "problems": loaded.problems}).to_string(),
                )?;
            }
            lines.iter().for_each(|line| output::notice(line));
            continue;
        };
        let results = run_examples(config, tool).await?;
        let passed = results.iter().filter(|result| result.passed).count();
        all_passed &= passed == results.len();
        if is_json {
            let line = json!({"tool": loaded.name, "ok": passed == results.len(), "examples": results});
            output::print_json_line(&line.to_string())?;
        } else {
            let mut lines = vec![format!("{}: {passed} of {} examples", loaded.name, results.len())];
            let failed = results.iter().filter_map(|result| Some((&result.example, result.problem.as_ref()?)));
            lines.extend(failed.map(|(example, problem)| format!("  {example}: {problem}")));
            output::print_lines(&lines)?;
        }
    }
    Ok(CommandStatus::from_success(all_passed))
}

async fn run(
    name: &str,
    params: &str,
    folder: Option<PathBuf>,
    sources: &Sources,
) -> Result<CommandStatus, CommandError> {
    let (_, Value::Object(params)) = json_argument("JSON", params)? else {
        return Err(CommandError::new("the parameters must be a JSON object"));
    };
    let running = sources.open(|own| own.script_tools.folder = folder.or(own.script_tools.folder.take()))?;
    let called = call(&running, name, params).await;
    running.hub.close().await;
    let result = called?;
    output::print_json(&result.to_string())?;
    Ok(CommandStatus::from_success(result["success"] == true))
}

/// Calls a tool. Returns its result, without secrets.
async fn call(running: &RunningHub, name: &str, params: Map<String, Value>) -> Result<Value, CommandError> {
    let config = running.hub.config();
    if !config.script_tools.stored {
        folder(config)?;
    }
    let app = &config.script_tools.app;
    running.wait_for(Need::Tools, |other| other == app).await;
    let own = name.strip_prefix(&format!("{app}:")).unwrap_or(name);
    let tools = running.hub.script_tools().map(|tools| tools.all()).unwrap_or_default();
    let loaded = tools.into_iter().find(|tool| tool.name == own).ok_or_else(|| {
        CommandError::new(format!("there is no script tool '{own}'")).with_help("`codecall tool list` shows them")
    })?;
    let Some(tool) = &loaded.tool else { return Err(CommandError::new(loaded.lines().join("\n"))) };
    running.wait_for_mentioned(&tool.code).await;
    let mut result = running.hub.call_script_tool(&format!("{app}:{own}"), params, running.cancel.clone()).await;
    running.hub.secrets().redactor().redact_value(&mut result);
    Ok(result)
}

async fn put(config: &Config, file: &Path) -> Result<CommandStatus, CommandError> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_typescript = match file.extension().and_then(|extension| extension.to_str()) {
        Some("ts") => true,
        Some("js") => false,
        _ => return Err(failed(format!("{}: the name of a file of code ends in .js or .ts", file.display()))),
    };
    let code =
        files::read_text(file, MAX_FILE_BYTES).map_err(|error| failed(format!("{}: {error}", file.display())))?;
    let code = StoredCode { code, typescript: is_typescript };
    let tools = open_stored(config.clone()).await?;
    let version = tools.put(&name, &code, &author()).await.map_err(failed)?;
    output::notice(&format!("{name} is stored as version {version}"));
    Ok(CommandStatus::Success)
}

async fn set_enabled(config: Config, name: &str, enabled: bool) -> Result<CommandStatus, CommandError> {
    let tools = open_stored(config).await?;
    if let Some(stored) = tools.stored() {
        stored.set_enabled(name, enabled).await.map_err(failed)?;
    }
    output::notice(&format!("{name} is {}", if enabled { "enabled" } else { "disabled" }));
    Ok(CommandStatus::Success)
}

async fn versions(config: Config, name: &str, is_json: bool) -> Result<CommandStatus, CommandError> {
    let tools = open_stored(config).await?;
    let Some(stored) = tools.stored() else { return Ok(CommandStatus::Failure) };
    let versions = stored.versions(name).await.map_err(failed)?;
    if is_json {
        output::print_json(&serde_json::to_string(&versions).unwrap_or_default())?;
    } else {
        let rows = versions.iter().map(|version| {
            let at = jiff::Timestamp::from_millisecond(version.stored_ms).unwrap_or_default();
            vec![version.version.to_string(), at.strftime("%Y-%m-%d %H:%M:%S").to_string(), version.author.clone()]
        });
        output::print_table(&["version", "stored (UTC)", "by"], rows.collect())?;
    }
    Ok(CommandStatus::Success)
}

async fn diff(config: Config, name: &str, old: Option<i64>, new: Option<i64>) -> Result<CommandStatus, CommandError> {
    let tools = open_stored(config).await?;
    let Some(stored) = tools.stored() else { return Ok(CommandStatus::Failure) };
    let latest = stored.versions(name).await.map_err(failed)?.first().map_or(1, |version| version.version);
    let new = new.unwrap_or(latest);
    let old = old.unwrap_or(new - 1);
    let lines = |code: &StoredCode| code.code.lines().map(str::to_owned).collect::<Vec<_>>();
    let (before, after) = (stored.version(name, old).await, stored.version(name, new).await);
    let (before, after) = (before.map_err(failed)?, after.map_err(failed)?);
    let mut changes = unified(&lines(&before.code), &lines(&after.code));
    let is_same = changes.is_empty();
    if !is_same {
        let heads = [format!("--- {name}, version {old}"), format!("+++ {name}, version {new}")];
        changes.splice(0..0, heads);
    }
    output::print_lines(&changes)?;
    Ok(CommandStatus::from_success(is_same))
}

fn list(tools: &[Loaded], is_json: bool) -> Result<CommandStatus, CommandError> {
    let state = |tool: &Loaded| match (tool.enabled, tool.problems.is_empty()) {
        (false, _) => "disabled",
        (true, true) => "ok",
        (true, false) => "broken",
    };
    let description = |tool: &Loaded| match (&tool.tool, tool.problems.first()) {
        (_, Some(problem)) => problem.message.clone(),
        (Some(tool), None) => tool.definition.description.lines().next().unwrap_or_default().to_owned(),
        (None, None) => String::new(),
    };
    if is_json {
        let rows = tools.iter().map(|tool| {
            json!({
                "name": tool.name,
                "file": tool.file.display().to_string(),
                "state": state(tool),
                "version": tool.version,
                "description": tool.tool.as_ref().map(|tool| tool.definition.description.as_str()),
                "problems": tool.problems,
            })
        });
        output::print_json(&Value::from(rows.collect::<Vec<_>>()).to_string())?;
    } else {
        let rows = tools.iter().map(|tool| vec![tool.name.clone(), state(tool).to_owned(), description(tool)]);
        output::print_table(&["tool", "state", "description"], rows.collect())?;
    }
    Ok(CommandStatus::Success)
}

fn show(loaded: &Loaded, with_code: bool) -> Result<CommandStatus, CommandError> {
    let Some(tool) = &loaded.tool else {
        loaded.lines().iter().for_each(|line| output::notice(line));
        return Ok(CommandStatus::Failure);
    };
    if with_code {
        output::print_lines(&[tool.code.trim_end().to_owned()])?;
        return Ok(CommandStatus::Success);
    }
    let mut shown = json!({
        "name": tool.definition.full_name(),
        "file": loaded.file.display().to_string(),
        "inputSchema": tool.definition.input_schema,
        "outputSchema": tool.definition.output_schema,
    });
    shown["manifest"] = serde_json::to_value(&tool.manifest).unwrap_or_default();
    output::print_json(&shown.to_string())?;
    Ok(CommandStatus::Success)
}
