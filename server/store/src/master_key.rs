//! The master key that the servers of a database have in common.
//!
//! The database knows its id, not the key: what one server seals, the others must be able to open. A server that has none makes
//! one only for a database that has not got one either.

use crate::database::{Database, Statement};
use crate::key_source::blocking;
use crate::sealed::{KeyRing, KeySource, SealError, sealing_key};
use crate::{VaultError, now_ms, rotation};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// The master keys, and the place of a new one.
#[derive(Debug)]
pub struct MasterKeys {
    /// The keys.
    pub ring: KeyRing,
    /// Where a key is that was just made; `None`: there was one.
    pub made: Option<String>,
}

impl MasterKeys {
    /// Returns the keys for what is sealed in a database. Makes a key if there is none, neither here nor in the database.
    ///
    /// # Errors
    /// The servers of the database have another key, or the key or the database cannot be used.
    pub async fn of(database: &Database, source: &KeySource) -> Result<Self, VaultError> {
        match source.load_beside().await {
            Ok(ring) => {
                let registered = register(database, &ring).await?;
                require(&ring, &registered, source)?;
                check_earlier(database, &ring, source).await?;
                Ok(Self { ring, made: None })
            }
            Err(SealError::NoKey) => Self::make(database, source).await,
            Err(error) => Err(error.into()),
        }
    }

    async fn make(database: &Database, source: &KeySource) -> Result<Self, VaultError> {
        if let Some(registered) = registered(database).await? {
            // It may have been made since: first it is written, then it is registered.
            let ring = source.load_beside().await.map_err(|error| match error {
                SealError::NoKey => refused(registered.clone(), "", source),
                other => other,
            })?;
            require(&ring, &registered, source)?;
            return Ok(Self { ring, made: None });
        }
        let is_made = ensure_key(source).await?;
        let ring = source.load_beside().await?;
        let registered = register(database, &ring).await?;
        let fits = require(&ring, &registered, source);
        if is_made && fits.is_err() {
            // Another server was faster. Nothing was sealed with this key, which would be in the way of the other one.
            source.discard();
        }
        fits?;
        Ok(Self { ring, made: is_made.then(|| source.to_string()) })
    }

    /// Makes the first key of this process, or a new one if it has none, that of the database, whatever was before: its key is
    /// lost, and what it has sealed cannot be opened any more.
    ///
    /// # Errors
    /// The key or the database cannot be used.
    pub async fn renounce(database: &Database, source: &KeySource) -> Result<Self, VaultError> {
        let made = match source.load_beside().await {
            Err(SealError::NoKey) => ensure_key(source).await?.then(|| source.to_string()),
            loaded => loaded.map(|_| None)?,
        };
        let ring = source.load_beside().await?;
        let sql = "INSERT INTO master_keys (place, id, registered) VALUES (1, $1, $2) \
                   ON CONFLICT (place) DO UPDATE SET id = excluded.id, registered = excluded.registered";
        let values = [ring.id().as_str().into(), now_ms().into()];
        // Nobody can add a lost key again.
        let statements =
            vec![Statement::new("DELETE FROM master_keys WHERE place > 1", []), Statement::new(sql, values)];
        database.batch(statements).await.map_err(|problem| database.error(&problem))?;
        Ok(Self { ring, made })
    }

    /// Makes the first key of a ring that of the database, in place of an earlier one that the ring has too.
    ///
    /// # Errors
    /// The servers of the database have another key, or the database cannot be used.
    pub async fn replace(database: &Database, ring: &KeyRing, source: &KeySource) -> Result<(), VaultError> {
        let registered = register(database, ring).await?;
        require(ring, &registered, source)?;
        let sql = "UPDATE master_keys SET id = $1, registered = $2 WHERE place = 1 AND id = $3";
        let values = [ring.id().as_str().into(), now_ms().into(), registered.as_str().into()];
        database.query(sql, values).await.map_err(|problem| database.error(&problem))?;
        check_earlier(database, ring, source).await
    }
}

/// Registers the keys of a ring that only open, and looks whether one was removed that something needs.
async fn check_earlier(database: &Database, ring: &KeyRing, source: &KeySource) -> Result<(), VaultError> {
    let failed = |problem| database.error(&problem);
    let rows = database.query("SELECT id FROM master_keys WHERE place > 1", []).await.map_err(failed)?;
    let known: Vec<String> = rows.iter().filter_map(|row| row[0].text().map(str::to_owned)).collect();
    let mut statements = Vec::new();
    for id in ring.earlier().filter(|id| !known.contains(id)) {
        let sql = "INSERT INTO master_keys (place, id, registered) \
                   SELECT coalesce(max(place), 1) + 1, CAST($1 AS TEXT), CAST($2 AS BIGINT) FROM master_keys WHERE place > 0 ON CONFLICT DO NOTHING";
        statements.push(Statement::new(sql, [id.as_str().into(), now_ms().into()]));
    }
    for id in known.into_iter().filter(|id| !ring.has(id)) {
        let by = rotation::needed(database, &id).await?;
        if !by.is_empty() {
            return Err(SealError::StillNeeded { id, by: by.to_string(), place: source.to_string() }.into());
        }
        statements.push(Statement::new("DELETE FROM master_keys WHERE place > 1 AND id = $1", [id.as_str().into()]));
    }
    if !statements.is_empty() {
        database.batch(statements).await.map_err(failed)?;
    }
    Ok(())
}

/// The master keys of a database, which are read again when their file has changed.
pub struct CachedKeys {
    database: Database,
    /// The keys, and when their file was changed.
    known: Mutex<Option<(Arc<KeyRing>, Option<SystemTime>)>>,
}

impl CachedKeys {
    /// Creates the cache; nothing is read yet.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Option<(Arc<KeyRing>, Option<SystemTime>)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the keys of a source. Makes a key if there is none.
    ///
    /// # Errors
    /// The errors of [`MasterKeys::of`].
    pub async fn get(&self, source: &KeySource) -> Result<Arc<KeyRing>, VaultError> {
        // Another process may have added a key, with which it seals.
        let changed = source.changed();
        if let Some((keys, since)) = &*self.known()
            && (*since == changed || changed.is_none())
        {
            return Ok(Arc::clone(keys));
        }
        let MasterKeys { ring, made } = MasterKeys::of(&self.database, source).await?;
        if let Some(place) = made {
            tracing::warn!("made a master key, which encrypts what is stored: {place}");
        }
        let loaded = Arc::new(ring);
        // What is written while it is read is read the next time.
        *self.known() = Some((Arc::clone(&loaded), changed.or_else(|| source.changed())));
        Ok(loaded)
    }
}

/// Returns the id of the key of a database; `None`: it has none. Where none is registered, it is that of what was sealed before
/// keys were registered.
async fn registered(database: &Database) -> Result<Option<String>, VaultError> {
    let first = async |sql: &'static str| {
        let rows = database.query(sql, []).await.map_err(|problem| database.error(&problem))?;
        Ok::<_, VaultError>(rows.into_iter().flatten().next())
    };
    if let Some(id) = first("SELECT id FROM master_keys WHERE place = 1").await? {
        return Ok(id.text().map(str::to_owned));
    }
    for sql in ["SELECT sealed FROM secrets LIMIT 1", "SELECT header FROM journaled_runs LIMIT 1"] {
        if let Some(id) = first(sql).await?.and_then(|sealed| sealing_key(sealed.bytes())) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// Registers the first key of a ring, unless the database has one. Returns the id of the one that it has.
async fn register(database: &Database, ring: &KeyRing) -> Result<String, VaultError> {
    if let Some(id) = registered(database).await? {
        if !ring.has(&id) {
            return Ok(id);
        }
        insert(database, &id).await
    } else {
        insert(database, &ring.id()).await
    }
}

/// Stores an id if there is none. Returns the stored one.
async fn insert(database: &Database, id: &str) -> Result<String, VaultError> {
    let sql = "INSERT INTO master_keys (place, id, registered) VALUES (1, $1, $2) ON CONFLICT DO NOTHING";
    let statements = vec![
        Statement::new(sql, [id.into(), now_ms().into()]),
        Statement::new("SELECT id FROM master_keys WHERE place = 1", []),
    ];
    let rows = database.batch(statements).await.map_err(|problem| database.error(&problem))?;
    let stored = rows.first().and_then(|row| row.first()?.text());
    Ok(stored.unwrap_or(id).to_owned())
}

fn require(ring: &KeyRing, registered: &str, source: &KeySource) -> Result<(), SealError> {
    match ring.has(registered) {
        true => Ok(()),
        false => Err(refused(registered.to_owned(), &format!(" (it has {})", ring.id()), source)),
    }
}

fn refused(registered: String, own: &str, source: &KeySource) -> SealError {
    SealError::NotRegistered { registered, own: own.to_owned(), place: source.to_string() }
}

async fn ensure_key(source: &KeySource) -> Result<bool, SealError> {
    let source = source.clone();
    blocking(move || source.ensure_key()).await
}
