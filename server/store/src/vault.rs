//! Stored secrets, by workspace and name. Names are visible; values are sealed before they reach the database.

use crate::database::{Database, Problem, Statement, Value};
use crate::sealed::{KeyRing, Place, SealError};
use crate::{BoxFuture, StoreError, now_ms};
use codecall_base::redact::MIN_SECRET_CHARS;
use codecall_config::{DEFAULT_WORKSPACE, is_name};
use serde::Serialize;
use zeroize::Zeroizing;

/// The table, as a part of the place of a secret.
const TABLE: &str = "secrets";
/// Maximum size of a secret, in bytes.
const MAX_SECRET_BYTES: usize = 64 << 10;

/// The visible part of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretEntry {
    /// The workspace.
    pub workspace: String,
    /// The name.
    pub name: String,
    /// When it was first stored, in milliseconds since 1970.
    pub created_ms: i64,
    /// When its value was last changed.
    pub changed_ms: i64,
}

/// Why a secret cannot be stored or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// The name or the value is not one that can be stored.
    #[error("{0}")]
    Invalid(String),
    /// It cannot be sealed or opened.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Stored secrets.
pub trait SecretStore: Send + Sync {
    /// Stores a secret, and replaces an earlier one.
    fn set<'a>(
        &'a self,
        keys: &'a KeyRing,
        name: SecretName<'a>,
        value: &'a str,
    ) -> BoxFuture<'a, Result<(), VaultError>>;

    /// Returns a secret; `None` if there is none of that name.
    fn get<'a>(
        &'a self,
        keys: &'a KeyRing,
        name: SecretName<'a>,
    ) -> BoxFuture<'a, Result<Option<Zeroizing<String>>, VaultError>>;

    /// Returns what is visible of the secrets of a workspace, or of all.
    fn list<'a>(&'a self, workspace: Option<&'a str>) -> BoxFuture<'a, Result<Vec<SecretEntry>, VaultError>>;

    /// Deletes a secret. Returns whether there was one.
    fn remove<'a>(&'a self, name: SecretName<'a>) -> BoxFuture<'a, Result<bool, VaultError>>;
}

/// The workspace and the name of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretName<'a> {
    /// The workspace.
    pub workspace: &'a str,
    /// The name in it.
    pub name: &'a str,
}

impl<'a> SecretName<'a> {
    /// Parses `NAME` or `WORKSPACE/NAME`.
    ///
    /// # Errors
    /// A part is not 1 to 128 letters, digits, `_`, `-` and `.`.
    pub fn parse(text: &'a str, default_workspace: &'a str) -> Result<Self, VaultError> {
        let (workspace, name) = text.split_once('/').unwrap_or((default_workspace, text));
        match [workspace, name].into_iter().all(is_name) {
            true => Ok(Self { workspace, name }),
            false => Err(VaultError::Invalid(
                "a secret is named NAME or WORKSPACE/NAME: each 1 to 128 letters, digits, '_', '-' and '.'".into(),
            )),
        }
    }

    /// Returns the name in the default workspace.
    #[must_use]
    pub fn in_default(name: &'a str) -> Self {
        Self { workspace: DEFAULT_WORKSPACE, name }
    }

    fn place(self) -> Place<'a> {
        Place { table: TABLE, owner: self.workspace, name: self.name }
    }
}

/// Secrets in a database.
#[derive(Clone, Debug)]
pub struct SqlSecrets(pub Database);

impl SqlSecrets {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Value>>, VaultError> {
        let done = self.0.batch(statements).await;
        done.map_err(|problem: Problem| self.0.error(&problem).into())
    }
}

impl SecretStore for SqlSecrets {
    fn set<'a>(
        &'a self,
        keys: &'a KeyRing,
        name: SecretName<'a>,
        value: &'a str,
    ) -> BoxFuture<'a, Result<(), VaultError>> {
        Box::pin(async move {
            check_value(value)?;
            let sealed = keys.seal(name.place(), value.as_bytes())?;
            let sql = "INSERT INTO secrets (workspace, name, created, changed, sealed) VALUES ($1, $2, $3, $4, $5) \
                       ON CONFLICT (workspace, name) DO UPDATE SET changed = excluded.changed, sealed = excluded.sealed";
            let now = now_ms();
            let values = [name.workspace.into(), name.name.into(), now.into(), now.into(), sealed.into()];
            self.batch(vec![Statement::new(sql, values)]).await.map(drop)
        })
    }

    fn get<'a>(
        &'a self,
        keys: &'a KeyRing,
        name: SecretName<'a>,
    ) -> BoxFuture<'a, Result<Option<Zeroizing<String>>, VaultError>> {
        Box::pin(async move {
            let sql = "SELECT sealed FROM secrets WHERE workspace = $1 AND name = $2";
            let rows = self.batch(vec![Statement::new(sql, [name.workspace.into(), name.name.into()])]).await?;
            let Some(sealed) = rows.first().and_then(|row| row.first()) else { return Ok(None) };
            let opened = keys.open(name.place(), sealed.bytes())?;
            match std::str::from_utf8(&opened) {
                Ok(value) => Ok(Some(Zeroizing::new(value.to_owned()))),
                Err(_) => Err(SealError::Tampered.into()),
            }
        })
    }

    fn list<'a>(&'a self, workspace: Option<&'a str>) -> BoxFuture<'a, Result<Vec<SecretEntry>, VaultError>> {
        Box::pin(async move {
            let sql = "SELECT workspace, name, created, changed FROM secrets ORDER BY workspace, name";
            let rows = self.batch(vec![Statement::new(sql, [])]).await?;
            let text = |value: &Value| value.text().unwrap_or_default().to_owned();
            let entries = rows.iter().map(|row| SecretEntry {
                workspace: text(&row[0]),
                name: text(&row[1]),
                created_ms: row[2].int(),
                changed_ms: row[3].int(),
            });
            Ok(entries.filter(|entry| workspace.is_none_or(|workspace| entry.workspace == workspace)).collect())
        })
    }

    fn remove<'a>(&'a self, name: SecretName<'a>) -> BoxFuture<'a, Result<bool, VaultError>> {
        Box::pin(async move {
            let sql = "DELETE FROM secrets WHERE workspace = $1 AND name = $2 RETURNING name";
            let rows = self.batch(vec![Statement::new(sql, [name.workspace.into(), name.name.into()])]).await?;
            Ok(!rows.is_empty())
        })
    }
}

fn check_value(value: &str) -> Result<(), VaultError> {
    if value.trim().chars().count() < MIN_SECRET_CHARS {
        let why = format!(
            "a secret must have at least {MIN_SECRET_CHARS} characters: a shorter value occurs by accident, so it cannot be masked"
        );
        return Err(VaultError::Invalid(why));
    }
    if value.len() > MAX_SECRET_BYTES {
        return Err(VaultError::Invalid(format!("a secret has at most {MAX_SECRET_BYTES} bytes")));
    }
    Ok(())
}
