//! Values of secrets for the runs that need them.

use codecall_config::Config;
use codecall_store::sealed::KeySource;
use codecall_store::{BoxFuture, Database, SecretName, SecretStore as _, SqlSecrets};
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// Where the values of secrets come from.
pub trait SecretSource: Send + Sync {
    /// Returns the value of a secret; `None` if there is none of this name. An error says why it cannot be read.
    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Zeroizing<String>>, String>>;
}

/// The secrets of a workspace in the database.
pub struct StoredSecrets {
    config: Config,
    /// `None`: there is no database, so there are no secrets.
    database: Option<Database>,
}

impl StoredSecrets {
    /// Creates the source of the workspace that the configuration names.
    #[must_use]
    pub fn new(config: &Config, database: Option<Database>) -> Self {
        Self { config: config.clone(), database }
    }
}

impl SecretSource for StoredSecrets {
    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Zeroizing<String>>, String>> {
        Box::pin(async move {
            let Some(database) = &self.database else { return Ok(None) };
            let vault = SqlSecrets(database.clone());
            let workspace = self.config.script_tools.workspace(&self.config.store);
            // Without a secret of this name, no key is needed.
            let listed = vault.list(Some(workspace)).await.map_err(|error| error.to_string())?;
            if !listed.iter().any(|entry| entry.name == name) {
                return Ok(None);
            }
            let keys = KeySource::of(&self.config).load_beside().await.map_err(|error| error.to_string())?;
            vault.get(&keys, SecretName { workspace, name }).await.map_err(|error| error.to_string())
        })
    }
}

/// Secrets of a test.
impl SecretSource for BTreeMap<String, String> {
    fn get<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Zeroizing<String>>, String>> {
        let value = BTreeMap::get(self, name).map(|value| Zeroizing::new(value.clone()));
        Box::pin(std::future::ready(Ok(value)))
    }
}
