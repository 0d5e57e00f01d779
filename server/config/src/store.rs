//! `store`: the database of what outlives a process.

use super::secrets::Secret;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;

/// The environment variable of `store.path`. An empty value disables the store, unless the configuration names one.
pub const STORE_VARIABLE: &str = "CODECALL_STORE";
/// The environment variable with the name of the file of the master key.
pub const MASTER_KEY_FILE_VARIABLE: &str = "CODECALL_MASTER_KEY_FILE";

/// The database of what outlives a process: the history of runs, and secrets. It is created when something is stored.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
#[schemars(extend("x-short" = "path"))]
pub struct StoreConfig {
    /// The file of the embedded database, which several processes may use at once. Default: `codecall.db` in `stateDir`,
    /// unless the variable `CODECALL_STORE` is set and empty, which disables the store.
    #[schemars(extend("x-default" = "`codecall.db` in `stateDir`"))]
    pub path: Option<PathBuf>,
    /// A Postgres database in place of the file, which several servers may share:
    /// `postgres://user:password@host:5432/name?sslmode=require`. Its tables are in the schema `codecall`. The program
    /// must be built with the feature `postgres`.
    #[schemars(extend("x-secret" = "address"))]
    pub url: Option<Secret>,
    /// The file of the master key, which encrypts secrets at rest: 32 bytes in base64, readable by its owner only. The
    /// variables `CODECALL_MASTER_KEY` (the key itself) and `CODECALL_MASTER_KEY_FILE` have precedence.
    #[schemars(extend("x-default" = "`master.key` in `stateDir`"))]
    pub key_file: Option<PathBuf>,
    /// Keeps the master key in the keyring of the system in place of a file. Keyrings are Secret Service (GNOME
    /// Keyring, KWallet), Keychain (macOS) and Credential Manager (Windows). The program must be built with the feature
    /// `keyring`, as its packages are.
    pub keyring: bool,
    /// The workspace of the secrets that this configuration names as `${secret:NAME}`.
    pub workspace: Option<String>,
}

/// The workspace of secrets if none is named.
pub const DEFAULT_WORKSPACE: &str = "default";

impl StoreConfig {
    /// Returns the workspace of secrets.
    #[must_use]
    pub fn workspace(&self) -> &str {
        self.workspace.as_deref().unwrap_or(DEFAULT_WORKSPACE)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.keyring && self.key_file.is_some() {
            return Err("store: give 'keyring' or 'keyFile', not both".into());
        }
        if let Some(url) = &self.url {
            if self.path.is_some() {
                return Err("store: give 'path' or 'url', not both".into());
            }
            if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
                return Err("store.url: must begin with postgres://; for a file give 'path'".into());
            }
        }
        Ok(())
    }
}
