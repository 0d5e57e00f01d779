//! `codecall skill`: skills of folders, of script tools and of MCP servers.

use super::sources::{Need, RunningHub, Sources};
use super::{CommandError, CommandStatus, output};
use clap::{Args, Subcommand, ValueEnum};
use codecall_base::client::Client;
use codecall_hub::hub::{ListedSkill, SkillListing, UnreadSkill};
use codecall_skills::{Skill as SkillEntry, SkillResource, SkillResources, install};
use codecall_tools::catalogue::Pending;
use etcetera::home_dir;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// List and show skills, approve new and changed ones, install them for a client.
#[derive(Args, Debug)]
pub struct Skill {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List all skills, with the reason if one is not served.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        sources: Sources,
    },
    /// Print a file of a skill: its SKILL.md, or another one by its path.
    Show {
        /// The address of the skill, or its name if no other skill has it.
        #[arg(value_name = "SKILL")]
        skill: String,
        /// The path of the file, below the folder of the skill.
        #[arg(value_name = "PATH", default_value = "SKILL.md")]
        path: PathBuf,
        #[command(flatten)]
        sources: Sources,
    },
    /// Write skills into the folder from which a client reads them.
    Install {
        /// The client.
        #[arg(value_name = "CLIENT", required_unless_present = "to")]
        client: Option<SkillClient>,
        /// Addresses or names of skills; when left out, all that are served.
        #[arg(value_name = "SKILL")]
        skills: Vec<String>,
        /// Another folder.
        #[arg(long, value_name = "DIR", conflicts_with = "client")]
        to: Option<PathBuf>,
        /// Replace skills that are there with other files.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        sources: Sources,
    },
    /// Approve skills of MCP servers that are new or have changed, as they are now.
    Approve {
        /// Addresses of skills; when left out, all that wait.
        #[arg(value_name = "SKILL")]
        skills: Vec<String>,
        #[command(flatten)]
        sources: Sources,
    },
}

/// A client that reads skills from a folder.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SkillClient {
    /// Claude Code and Claude Desktop: ~/.claude/skills.
    Claude,
    /// Cursor: ~/.cursor/skills.
    Cursor,
    /// Gemini CLI: ~/.gemini/skills.
    Gemini,
    /// Copilot CLI: ~/.copilot/skills.
    Copilot,
    /// Codex and others that follow the open standard: ~/.agents/skills.
    Agents,
}

impl SkillClient {
    fn folder(self) -> Result<PathBuf, CommandError> {
        let home = home_dir().map_err(|error| CommandError::new(format!("the user's folder is unknown: {error}")))?;
        let name = match self {
            Self::Claude => ".claude",
            Self::Cursor => ".cursor",
            Self::Gemini => ".gemini",
            Self::Copilot => ".copilot",
            Self::Agents => ".agents",
        };
        Ok(home.join(name).join("skills"))
    }
}

impl Skill {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        let sources = match &self.command {
            Command::List { sources, .. }
            | Command::Show { sources, .. }
            | Command::Install { sources, .. }
            | Command::Approve { sources, .. } => sources,
        };
        let running = sources.open_all()?;
        running.wait_for(Need::Connection, |_| true).await;
        running.failures().iter().for_each(|failure| output::notice(failure));
        let listing = running.hub.list_skills().await;
        let done = match &self.command {
            Command::List { json, .. } => list(&running, &listing, *json),
            Command::Show { skill, path, .. } => show(&running, &listing, skill, path).await,
            Command::Install { client, skills, to, force, .. } => {
                let folder = match (to, client) {
                    (Some(folder), _) => Ok(folder.clone()),
                    (None, Some(client)) => client.folder(),
                    (None, None) => Err(CommandError::new("a client or --to DIR is required")),
                };
                match folder {
                    Ok(folder) => write_skills(&running, &listing, skills, &folder, *force).await,
                    Err(error) => Err(error),
                }
            }
            Command::Approve { skills, .. } => approve(&running, &listing, skills).await,
        };
        running.hub.close().await;
        done
    }
}

fn list(running: &RunningHub, listing: &SkillListing, is_json: bool) -> Result<CommandStatus, CommandError> {
    let redactor = running.hub.secrets().redactor();
    if is_json {
        let served = listing.skills.iter().map(|listed| {
            let ListedSkill { skill, app } = listed;
            json!({"uri": skill.uri, "name": skill.name(), "description": skill.frontmatter.description, "app": app,
                "state": "served"})
        });
        let unread = listing.unread.iter().map(|unread| match unread {
            UnreadSkill::Invalid { app, uri, reason } => {
                json!({"uri": uri, "app": app, "state": "invalid", "reason": reason})
            }
            UnreadSkill::Pending(pending) => {
                json!({"uri": pending.name, "app": pending.app(), "state": "pending"})
            }
        });
        let mut all = Value::from(served.chain(unread).collect::<Vec<_>>());
        redactor.redact_value(&mut all);
        output::print_json(&all.to_string())?;
    } else {
        let row = |listed: &ListedSkill| {
            let description = listed.skill.frontmatter.description.lines().next().unwrap_or_default();
            vec![listed.skill.uri.clone(), redactor.redact_text(description).into_owned()]
        };
        output::print_table(&["skill", "description"], listing.skills.iter().map(row).collect())?;
        for unread in &listing.unread {
            output::notice(&redactor.redact_text(&match unread {
                UnreadSkill::Invalid { app, uri, reason } => {
                    format!("skill {uri} of app '{app}' is not served: {reason}")
                }
                UnreadSkill::Pending(pending) => {
                    format!("skill {} waits for approval: run 'codecall skill approve {0}'", pending.name)
                }
            }));
        }
    }
    Ok(CommandStatus::Success)
}

/// Finds a skill by its address, or by a name that only one has.
fn find<'a>(listing: &'a SkillListing, name: &str) -> Result<&'a SkillEntry, CommandError> {
    let is_named = |listed: &&ListedSkill| listed.skill.uri == name || listed.skill.name() == name;
    let mut found = listing.skills.iter().filter(is_named).map(|listed| &listed.skill);
    match (found.next(), found.next()) {
        (Some(skill), None) => Ok(skill),
        (Some(one), Some(other)) => Err(CommandError::new(format!("several skills have the name '{name}'"))
            .with_help(format!("use an address: {} or {}", one.uri, other.uri))),
        (None, _) => Err(CommandError::new(format!("no served skill has the name or address '{name}'"))
            .with_help("'codecall skill list' shows all skills")),
    }
}

/// Reads a file of a skill, and compares it with the digest of the skill.
async fn read(running: &RunningHub, skill: &SkillEntry, uri: &str) -> Result<Vec<u8>, CommandError> {
    let failed = |why: String| CommandError::new(format!("{uri}: {why}"));
    let cancel = CancellationToken::new();
    let answer = running.hub.read_skill_file(uri, &Client::default(), &cancel).await;
    let result = answer.ok_or_else(|| failed("there is no such file".into()))?;
    let bytes = install::bytes(&result.map_err(|error| failed(error.message.into_owned()))?).map_err(failed)?;
    if let Some(file) = files(skill).iter().find(|file| file.uri == uri) {
        file.verify(&bytes).map_err(|error| failed(error.to_string()))?;
    }
    Ok(bytes)
}

fn files(skill: &SkillEntry) -> &[SkillResource] {
    match &skill.resources {
        SkillResources::Files(files) => files,
        _ => &[],
    }
}

async fn show(
    running: &RunningHub,
    listing: &SkillListing,
    name: &str,
    path: &Path,
) -> Result<CommandStatus, CommandError> {
    let skill = find(listing, name)?;
    let is_path = |file: &&SkillResource| install::relative_path(skill, &file.uri).is_ok_and(|own| own == path);
    let uri = match files(skill).iter().find(is_path) {
        Some(file) => &file.uri,
        None if path == Path::new("SKILL.md") => &skill.uri,
        None => return Err(CommandError::new(format!("{}: the skill has no file {}", skill.uri, path.display()))),
    };
    let bytes = read(running, skill, uri).await?;
    output::print_lines(&[String::from_utf8_lossy(&bytes).trim_end().to_owned()])?;
    Ok(CommandStatus::Success)
}

/// Writes skills as folders below `folder`. Nothing is written unless all files of a skill have their digests.
async fn write_skills(
    running: &RunningHub,
    listing: &SkillListing,
    names: &[String],
    folder: &Path,
    force: bool,
) -> Result<CommandStatus, CommandError> {
    let skills = if names.is_empty() {
        listing.skills.iter().map(|listed| &listed.skill).collect()
    } else {
        names.iter().map(|name| find(listing, name)).collect::<Result<Vec<_>, _>>()?
    };
    let (mut lines, mut is_complete) = (Vec::new(), true);
    let mut written: BTreeMap<&str, &str> = BTreeMap::new();
    for skill in skills {
        if let Some(first) = written.insert(skill.name(), &skill.uri) {
            is_complete = false;
            written.insert(skill.name(), first);
            output::notice(&format!("{}: it has the name of {first}, which is installed instead", skill.uri));
            continue;
        }
        match write_skill(running, skill, folder, force).await {
            Ok(line) => lines.push(line),
            Err(error) => {
                is_complete = false;
                output::notice(&error.message);
            }
        }
    }
    output::print_lines(&lines)?;
    Ok(CommandStatus::from_success(is_complete))
}

async fn write_skill(
    running: &RunningHub,
    skill: &SkillEntry,
    folder: &Path,
    force: bool,
) -> Result<String, CommandError> {
    let own = folder.join(skill.name());
    let failed = |why: String| CommandError::new(format!("{}: {why}", own.display()));
    let mut contents = Vec::new();
    for file in files(skill) {
        let path = install::relative_path(skill, &file.uri).map_err(failed)?;
        contents.push((path, read(running, skill, &file.uri).await?));
    }
    if contents.is_empty() {
        return Err(failed("the files of the skill have no digests, so it is not installed".into()));
    }
    let is_there = own.symlink_metadata().is_ok();
    if is_there && contents.iter().all(|(path, bytes)| std::fs::read(own.join(path)).is_ok_and(|old| old == *bytes)) {
        return Ok(format!("unchanged: {}", own.display()));
    }
    if is_there && !force {
        return Err(failed("another skill is there; --force replaces it".into()));
    }
    // A skill is complete, or it is not there.
    let part = folder.join(format!(".{}.codecall", skill.name()));
    let write = || -> std::io::Result<()> {
        let _ = std::fs::remove_dir_all(&part);
        for (path, bytes) in &contents {
            let file = part.join(path);
            std::fs::create_dir_all(file.parent().unwrap_or(&part))?;
            std::fs::write(file, bytes)?;
        }
        match own.symlink_metadata() {
            // A link is removed, and not the folder that it leads to.
            Ok(metadata) if metadata.is_symlink() || metadata.is_file() => std::fs::remove_file(&own)?,
            Ok(_) => std::fs::remove_dir_all(&own)?,
            Err(_) => {}
        }
        std::fs::rename(&part, &own)
    };
    write().map_err(|error| {
        let _ = std::fs::remove_dir_all(&part);
        failed(format!("the skill cannot be written: {error}"))
    })?;
    Ok(format!("installed: {}", own.display()))
}

async fn approve(
    running: &RunningHub,
    listing: &SkillListing,
    names: &[String],
) -> Result<CommandStatus, CommandError> {
    let waiting: Vec<&Pending> = listing
        .unread
        .iter()
        .filter_map(|unread| match unread {
            UnreadSkill::Pending(pending) => Some(pending),
            UnreadSkill::Invalid { .. } => None,
        })
        .collect();
    let is_selected = |pending: &&&Pending| names.is_empty() || names.contains(&pending.name);
    let selected: Vec<&Pending> = waiting.iter().filter(is_selected).copied().collect();
    let redactor = running.hub.secrets().redactor();
    let mut lines: Vec<String> =
        selected.iter().flat_map(|pending| super::approve::describe(pending, &redactor)).collect();
    running.hub.approve_skills(&selected).await.map_err(|error| CommandError::new(error.to_string()))?;
    lines.extend(selected.iter().map(|pending| format!("approved: {}", pending.name)));
    let unknown: Vec<&String> =
        names.iter().filter(|name| !waiting.iter().any(|pending| pending.name == **name)).collect();
    for name in &unknown {
        output::notice(&format!("no skill that waits for approval has the address '{name}'"));
    }
    output::print_lines(&lines)?;
    Ok(CommandStatus::from_success(unknown.is_empty()))
}
