//! Credentials that servers have issued, such as tokens. They are sealed before they reach the database.

mod files;

use crate::database::{Database, Problem, Row, Statement};
use crate::sealed::{KeySource, Place};
use crate::state::hex;
use crate::{BoxFuture, Digest, MasterKeys, StoreError, VaultError};
use codecall_config::Config;
use files::CredentialFiles;
use std::collections::HashMap;
use std::future::ready;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The table, as a part of the place of a record.
const TABLE: &str = "credentials";
/// How long a process may take to renew credentials. Then another one may do it.
const RENEWAL: Duration = Duration::from_secs(60);
/// How often a process that waits for another one looks whether it has ended.
const LOOK: Duration = Duration::from_millis(100);

/// A version of a record: another number whenever it is written. `None`: there is no record.
pub type RecordVersion = Option<i64>;

/// Credentials by a digest of their server.
pub trait CredentialStore: Send + Sync {
    /// Returns the credentials of a server; `None` if there are none.
    fn get(&self, server: Digest) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>>;

    /// Stores the credentials of a server, and replaces earlier ones.
    fn put(&self, server: Digest, credentials: Vec<u8>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Removes the credentials of a server. Returns whether there were any.
    fn remove(&self, server: Digest) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Returns the version of the credentials of a server, to see whether another process has changed them.
    fn version(&self, server: Digest) -> BoxFuture<'_, Result<RecordVersion, StoreError>>;

    /// Waits until no other process renews the credentials of a server. They can be renewed until the guard is released.
    fn lock(&self, server: Digest) -> BoxFuture<'_, Result<RenewalGuard, StoreError>>;
}

/// The right to renew the credentials of a server.
#[derive(Debug, Default)]
pub struct RenewalGuard {
    /// The lock in a database: who holds which one.
    held: Option<(Database, String, String)>,
}

impl RenewalGuard {
    /// Lets the next one renew. Dropping the guard does so too, but does not wait for it.
    pub async fn release(mut self) {
        if let Some(held) = self.held.take() {
            unlock(held).await;
        }
    }
}

impl Drop for RenewalGuard {
    fn drop(&mut self) {
        if let (Some(held), Ok(runtime)) = (self.held.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(unlock(held));
        }
    }
}

async fn unlock((database, server, owner): (Database, String, String)) {
    let sql = "DELETE FROM credential_locks WHERE server = $1 AND owner = $2";
    if let Err(problem) = database.query(sql, [server.as_str().into(), owner.as_str().into()]).await {
        tracing::debug!("the lock of credentials ends by itself: {problem}");
    }
}

/// Credentials in memory: they last as long as the process.
#[derive(Default)]
pub struct MemoryCredentials(Mutex<HashMap<Digest, (i64, Vec<u8>)>>);

impl CredentialStore for MemoryCredentials {
    fn get(&self, server: Digest) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>> {
        let records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Box::pin(ready(Ok(records.get(&server).map(|(_, record)| record.clone()))))
    }

    fn put(&self, server: Digest, credentials: Vec<u8>) -> BoxFuture<'_, Result<(), StoreError>> {
        let version = random().map(|version| {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(server, (version, credentials));
        });
        Box::pin(ready(version))
    }

    fn remove(&self, server: Digest) -> BoxFuture<'_, Result<bool, StoreError>> {
        let removed = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&server);
        Box::pin(ready(Ok(removed.is_some())))
    }

    fn version(&self, server: Digest) -> BoxFuture<'_, Result<RecordVersion, StoreError>> {
        let records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Box::pin(ready(Ok(records.get(&server).map(|(version, _)| *version))))
    }

    fn lock(&self, _: Digest) -> BoxFuture<'_, Result<RenewalGuard, StoreError>> {
        Box::pin(ready(Ok(RenewalGuard::default())))
    }
}

/// Credentials in a database, sealed with the master key, which is made with the first record.
///
/// Earlier versions of the program had a file for each server in the folder of the state. A record is moved from there when it is
/// first looked for.
pub struct SqlCredentials {
    database: Database,
    keys: KeySource,
    files: Option<CredentialFiles>,
}

impl SqlCredentials {
    /// Creates the store of a database, with the master key of a configuration.
    #[must_use]
    pub fn new(database: Database, config: &Config) -> Self {
        let files = crate::state::folder(config).map(|folder| CredentialFiles::new(&folder));
        Self { database, keys: KeySource::of(config), files }
    }

    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Row>, StoreError> {
        self.database.batch(statements).await.map_err(|problem: Problem| self.database.error(&problem))
    }

    async fn query(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        self.batch(vec![statement]).await
    }

    async fn seal(&self, server: &str, credentials: &[u8]) -> Result<Vec<u8>, StoreError> {
        let MasterKeys { ring, made } = MasterKeys::of(&self.database, &self.keys).await.map_err(store_error)?;
        if let Some(place) = made {
            tracing::warn!("made a master key, which encrypts tokens: {place}");
        }
        ring.seal(place(server), credentials).map_err(store_error)
    }

    /// Writes a record, or only if there is none.
    async fn write(&self, server: &str, credentials: &[u8], replaces: bool) -> Result<(), StoreError> {
        let sealed = self.seal(server, credentials).await?;
        let sql = match replaces {
            true => {
                "INSERT INTO credentials (server, version, sealed) VALUES ($1, $2, $3) \
                 ON CONFLICT (server) DO UPDATE SET version = excluded.version, sealed = excluded.sealed"
            }
            false => "INSERT INTO credentials (server, version, sealed) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        };
        self.query(Statement::new(sql, [server.into(), random()?.into(), sealed.into()])).await.map(drop)
    }

    async fn read(&self, server: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT sealed FROM credentials WHERE server = $1";
        let rows = self.query(Statement::new(sql, [server.into()])).await?;
        let Some(sealed) = rows.first().and_then(|row| row.first()) else { return Ok(None) };
        let MasterKeys { ring, .. } = MasterKeys::of(&self.database, &self.keys).await.map_err(store_error)?;
        let opened = ring.open(place(server), sealed.bytes());
        opened.map(|opened| Some(opened.to_vec())).map_err(store_error)
    }

    /// Moves the record of an earlier version of the program to the database. Returns whether there was one.
    async fn take_over(&self, server: Digest) -> Result<bool, StoreError> {
        let Some(files) = &self.files else { return Ok(false) };
        let Some(record) = files.read(server).await? else { return Ok(false) };
        self.write(&hex(&server), &record, false).await?;
        files.remove(server).await?;
        tracing::info!("tokens of a server were moved to the store");
        Ok(true)
    }
}

impl CredentialStore for SqlCredentials {
    fn get(&self, server: Digest) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async move {
            let name = hex(&server);
            match self.read(&name).await? {
                None if self.take_over(server).await? => self.read(&name).await,
                found => Ok(found),
            }
        })
    }

    fn put(&self, server: Digest, credentials: Vec<u8>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.write(&hex(&server), &credentials, true).await?;
            match &self.files {
                Some(files) => files.remove(server).await.map(drop),
                None => Ok(()),
            }
        })
    }

    fn remove(&self, server: Digest) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let had_file = match &self.files {
                Some(files) => files.remove(server).await?,
                None => false,
            };
            let sql = "DELETE FROM credentials WHERE server = $1 RETURNING server";
            let rows = self.query(Statement::new(sql, [hex(&server).as_str().into()])).await?;
            Ok(had_file || !rows.is_empty())
        })
    }

    fn version(&self, server: Digest) -> BoxFuture<'_, Result<RecordVersion, StoreError>> {
        Box::pin(async move {
            let sql = "SELECT version FROM credentials WHERE server = $1";
            let rows = self.query(Statement::new(sql, [hex(&server).as_str().into()])).await?;
            Ok(rows.first().map(|row| row[0].int()))
        })
    }

    fn lock(&self, server: Digest) -> BoxFuture<'_, Result<RenewalGuard, StoreError>> {
        Box::pin(async move {
            let (server, owner) = (hex(&server), format!("{:x}", random()?));
            let sql = "INSERT INTO credential_locks (server, owner, until) VALUES ($1, $2, $3) \
                       ON CONFLICT (server) DO UPDATE SET owner = excluded.owner, until = excluded.until \
                       WHERE credential_locks.until < $4 RETURNING owner";
            let began = Instant::now();
            // Whoever holds it lets go of it, or loses it.
            while began.elapsed() < RENEWAL * 2 {
                let now = self.database.now_ms();
                let until = now.saturating_add(i64::try_from(RENEWAL.as_millis()).unwrap_or(i64::MAX));
                let values = [server.as_str().into(), owner.as_str().into(), until.into(), now.into()];
                if !self.query(Statement::new(sql, values)).await?.is_empty() {
                    return Ok(RenewalGuard { held: Some((self.database.clone(), server, owner)) });
                }
                tokio::time::sleep(LOOK).await;
            }
            Err(StoreError("another process has been renewing the tokens of the server for too long".into()))
        })
    }
}

fn place(server: &str) -> Place<'_> {
    Place { table: TABLE, owner: "", name: server }
}

fn store_error(error: impl Into<VaultError>) -> StoreError {
    match error.into() {
        VaultError::Store(error) => error,
        other @ (VaultError::Invalid(_) | VaultError::Seal(_)) => StoreError(other.to_string()),
    }
}

/// Returns a number that no other record or process has.
fn random() -> Result<i64, StoreError> {
    let number = getrandom::u64().map_err(|_| StoreError("the system has no source of random numbers".into()))?;
    Ok(i64::try_from(number >> 1).unwrap_or(i64::MAX))
}
