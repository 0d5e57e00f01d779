//! `codecall secret`: secrets that are encrypted at rest. Names are visible, values never are.

use super::sources::open_config;
use super::store::{failed, open_database};
use super::{CommandError, CommandStatus, output};
use clap::{Args, Subcommand};
use codecall_base::files;
use codecall_config::Config;
use codecall_config::StoreConfig;
use codecall_hub::hub::format_time;
use codecall_store::rotation::{self, Rotated};
use codecall_store::sealed::{self, KeyRing, KeySource, MASTER_KEY_VARIABLE};
use codecall_store::{Database, MasterKeys, SecretName, SecretStore as _, SqlSecrets};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// Maximum size of a secret, in bytes.
const MAX_SECRET_BYTES: u64 = 64 << 10;

/// Store, list and delete secrets, which are encrypted at rest.
#[derive(Args, Debug)]
pub struct Secret {
    #[command(subcommand)]
    command: Command,
    /// The workspace of names without one. By default `store.workspace` of the configuration, else `default`.
    #[arg(long, global = true, value_name = "NAME")]
    workspace: Option<String>,
    /// Configuration, TOML or JSON; when left out, the one that other commands would use.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Store a secret, and replace an earlier one. Its value is asked for, or read from standard input or a file; it is
    /// never an argument, which other users could see. The first secret makes a master key.
    Set {
        /// NAME or WORKSPACE/NAME.
        #[arg(value_name = "NAME")]
        name: String,
        /// A file with the value.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// List the names of the secrets.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// The secrets of all workspaces.
        #[arg(long)]
        all: bool,
    },
    /// Delete a secret.
    Rm {
        /// NAME or WORKSPACE/NAME.
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Make a new master key and encrypt with it all that earlier keys have encrypted: secrets, tokens, journals of
    /// runs. Earlier keys
    /// stay in the file and can still decrypt. If the keys are in the variable, put a new one on its first line; this
    /// encrypts with it.
    Rotate,
    /// Make a master key if there is none.
    Key {
        /// Print a new key and store nothing.
        #[arg(long)]
        print: bool,
        /// The key of the store is lost: use the one of this machine, or make a new one. Secrets, tokens of servers and waiting
        /// runs that the lost key has encrypted cannot be read any more; set them again.
        #[arg(long, conflicts_with = "print")]
        lost: bool,
        /// Add the keys of a file to the file or the keyring of this machine. They may be keys of another server, of a
        /// copy, or of the file
        /// that was used before `store.keyring` was set.
        #[arg(long, value_name = "FILE", conflicts_with_all = ["print", "lost"])]
        import: Option<PathBuf>,
        /// Remove an earlier key, by its id of eight digits, from the file or the keyring of this machine. The program
        /// encrypts its data with the first key before; a key that something needs all the same stays.
        #[arg(long, value_name = "ID", conflicts_with_all = ["print", "lost", "import"])]
        forget: Option<String>,
    },
}

impl Secret {
    pub(super) async fn execute(self) -> Result<CommandStatus, CommandError> {
        if let Command::Key { print: true, .. } = self.command {
            output::print_lines(&[sealed::new_key().map_err(failed)?.to_string()])?;
            return Ok(CommandStatus::Success);
        }
        let config = open_config(self.config)?;
        let store = &config.store;
        let workspace = self.workspace.as_deref().unwrap_or(store.workspace());
        let vault = SqlSecrets(open_database(&config)?);
        match self.command {
            Command::Set { name, file } => {
                let name = SecretName::parse(&name, workspace).map_err(failed)?;
                let value = read_value(file, name)?;
                let keys = keys(&vault.0, &config).await?;
                vault.set(&keys, name, &value).await.map_err(failed)?;
                output::notice(&format!("stored; a configuration uses it as ${{secret:{}}}", reference(name, store)));
            }
            Command::List { json, all } => {
                let entries = vault.list((!all).then_some(workspace)).await.map_err(failed)?;
                if json {
                    output::print_json(&serde_json::to_string(&entries).unwrap_or_default())?;
                } else {
                    let rows = entries
                        .iter()
                        .map(|entry| vec![entry.workspace.clone(), entry.name.clone(), format_time(entry.changed_ms)]);
                    output::print_table(&["workspace", "name", "changed"], rows.collect())?;
                }
            }
            Command::Rm { name } => {
                let name = SecretName::parse(&name, workspace).map_err(failed)?;
                if !vault.remove(name).await.map_err(failed)? {
                    return Err(failed(format!("there is no secret {}/{}", name.workspace, name.name)));
                }
            }
            Command::Rotate => {
                let source = KeySource::of(&config);
                let is_variable = std::env::var_os(MASTER_KEY_VARIABLE).is_some_and(|key| !key.is_empty());
                if !is_variable {
                    // What cannot be decrypted now could not be encrypted again.
                    source.load().map_err(failed)?;
                    source.add_key().map_err(failed)?;
                }
                let keys = source.load().map_err(failed)?;
                let rotated = rotation::seal_again(&vault.0, &keys).await.map_err(failed)?;
                MasterKeys::replace(&vault.0, &keys, &source).await.map_err(failed)?;
                report(&rotated, &keys)?;
            }
            Command::Key { lost: true, .. } => {
                let keys = MasterKeys::renounce(&vault.0, &KeySource::of(&config)).await.map_err(failed)?;
                keys.made.iter().for_each(|place| note_key(place));
            }
            Command::Key { import: Some(path), .. } => {
                let text = files::read_text(&path, sealed::MAX_KEY_FILE_BYTES).map(Zeroizing::new);
                let text = text.map_err(|error| failed(format!("{}: {error}", path.display())))?;
                let source = KeySource::of(&config);
                source.import(&text, &path.display().to_string()).map_err(failed)?;
                drop(keys(&vault.0, &config).await?);
                output::notice(&format!("the keys of {} are in {source}", path.display()));
            }
            Command::Key { forget: Some(id), .. } => forget(&vault.0, &KeySource::of(&config), &id).await?,
            Command::Key { .. } => drop(keys(&vault.0, &config).await?),
        }
        Ok(CommandStatus::Success)
    }
}

/// Says what is encrypted with the first key now.
fn report(rotated: &Rotated, keys: &KeyRing) -> Result<(), CommandError> {
    let Rotated { sealed, left, problem } = rotated;
    if !sealed.is_empty() {
        output::notice(&format!("{sealed} are encrypted with the new key"));
    }
    if let Some(problem) = problem {
        return Err(failed(format!("{left} are left as they were: {problem}")));
    }
    let earlier: Vec<String> = keys.earlier().collect();
    if !earlier.is_empty() {
        output::notice(&format!(
            "the new key is {}; `codecall secret key --forget ID` removes an earlier one that nothing needs: {}",
            keys.id(),
            earlier.join(", ")
        ));
    }
    Ok(())
}

/// Removes an earlier key that nothing needs.
async fn forget(database: &Database, source: &KeySource, id: &str) -> Result<(), CommandError> {
    if std::env::var_os(MASTER_KEY_VARIABLE).is_some_and(|key| !key.is_empty()) {
        return Err(failed(format!("the keys are in {MASTER_KEY_VARIABLE}: remove the key there")));
    }
    let keys = source.load().map_err(failed)?;
    if keys.id() == id {
        return Err(failed(format!("the key {id} is the one that encrypts"))
            .with_help("first make another one: codecall secret rotate"));
    }
    if !keys.has(id) {
        let known: Vec<String> = keys.earlier().collect();
        return Err(failed(format!("{source} has no key {id}; the earlier keys there are {}", known.join(", "))));
    }
    let rotated = rotation::seal_again(database, &keys).await.map_err(failed)?;
    if !rotated.sealed.is_empty() {
        output::notice(&format!("{} are encrypted with the key {}", rotated.sealed, keys.id()));
    }
    let by = rotation::needed(database, id).await.map_err(failed)?;
    if !by.is_empty() {
        let why = rotated.problem.map(|problem| format!(" ({problem})")).unwrap_or_default();
        return Err(failed(format!("the key {id} is still needed by {by}{why}"))
            .with_help("runs that go on with it need it until they end; what is damaged can only be deleted"));
    }
    source.remove(id).map_err(failed)?;
    drop(MasterKeys::of(database, source).await.map_err(failed)?);
    output::notice(&format!("the key {id} is removed from {source}"));
    Ok(())
}

/// Returns how a configuration names a secret.
fn reference(name: SecretName<'_>, store: &StoreConfig) -> String {
    if name.workspace == store.workspace() { name.name.into() } else { format!("{}/{}", name.workspace, name.name) }
}

/// Returns the keys of a database; makes one if there is none.
async fn keys(database: &Database, config: &Config) -> Result<KeyRing, CommandError> {
    let MasterKeys { ring, made } = MasterKeys::of(database, &KeySource::of(config)).await.map_err(failed)?;
    made.iter().for_each(|place| note_key(place));
    Ok(ring)
}

fn note_key(place: &str) {
    output::notice(&format!(
        "made a master key: {place}. Without it stored secrets cannot be read, so keep a copy elsewhere"
    ));
}

/// Reads the value of a secret. The line break at the end of a line of input does not belong to it.
fn read_value(file: Option<PathBuf>, name: SecretName<'_>) -> Result<Zeroizing<String>, CommandError> {
    let stdin = std::io::stdin();
    let bytes = match file {
        Some(path) => {
            files::read(&path, MAX_SECRET_BYTES).map_err(|error| failed(format!("{}: {error}", path.display())))
        }
        None if stdin.is_terminal() => {
            let prompt = dialoguer::Password::new().with_prompt(format!("Value of {}", name.name)).interact();
            return prompt.map(Zeroizing::new).map_err(failed);
        }
        None => files::read_stream(stdin.lock(), MAX_SECRET_BYTES)
            .map_err(|error| failed(format!("standard input: {error}"))),
    };
    let bytes = Zeroizing::new(bytes?);
    let text = std::str::from_utf8(&bytes).map_err(|_| failed("the value is not UTF-8"))?;
    let text = text.strip_suffix('\n').map_or(text, |line| line.strip_suffix('\r').unwrap_or(line));
    Ok(Zeroizing::new(text.to_owned()))
}
