//! Vectors in a file: an SQLite database, which several processes may use at once.
//!
//! A row is identified by the digests of its model and of its text. Rows that were not used for [`MAX_UNUSED`] are
//! deleted, and the least recently used ones above [`MAX_VECTORS`]. Messages say what is wrong with the file and what
//! to do, but not where it is.

use super::{Digest, Vector, VectorModel, VectorStore};
use crate::{BoxFuture, StoreError};
use codecall_base::files;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The `application_id` of the database: `CCve`.
const APPLICATION: i32 = 0x4343_7665;
/// The version of the table. Files of a newer version are not used.
const VERSION: i32 = 1;
/// Maximum number of vectors, of all models.
const MAX_VECTORS: u32 = 100_000;
/// In seconds. The time of the last use is stored to a day, so most starts write nothing.
const DAY: i64 = 24 * 60 * 60;
/// How long a vector is kept without being used, in seconds.
const MAX_UNUSED: i64 = 90 * DAY;
/// How long an operation waits for other processes, which write for milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// Vectors in a file, which is not used any more once it cannot be read or written: then there are no vectors. If the
/// file is only locked, it is tried again.
pub struct SqliteVectors {
    file: Arc<Mutex<Option<VectorFile>>>,
}

impl SqliteVectors {
    /// Opens or creates the file at `path`, which must be a regular file. On Unix only its owner can read a file that is
    /// created.
    ///
    /// # Errors
    /// The file cannot be used. A file that is something else is not changed.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { file: Arc::new(Mutex::new(Some(VectorFile::open(path)?))) })
    }

    /// Uses the file on a thread that may block; absent: it is not used any more.
    async fn with_file<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut VectorFile) -> Result<T, Problem> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        let file = Arc::clone(&self.file);
        let working = tokio::task::spawn_blocking(move || {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            let result = file.as_mut().map(work).transpose();
            if result.as_ref().is_err_and(|problem| *problem != Problem::Busy) {
                *file = None;
            }
            result
        });
        match working.await {
            Ok(result) => Ok(result?),
            Err(error) => Err(StoreError(format!("search.vectorCache: {error}"))),
        }
    }
}

impl VectorStore for SqliteVectors {
    fn get_many<'a>(
        &'a self,
        model: &'a VectorModel,
        texts: &'a [Digest],
    ) -> BoxFuture<'a, Result<Vec<Option<Vector>>, StoreError>> {
        let (model, digests) = (*model, texts.to_vec());
        Box::pin(async move {
            let vectors = self.with_file(move |file| file.read(&model, &digests)).await?;
            Ok(vectors.unwrap_or_else(|| vec![None; texts.len()]))
        })
    }

    fn put_many<'a>(
        &'a self,
        model: &'a VectorModel,
        vectors: &'a [(Digest, Vector)],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let (model, vectors) = (*model, vectors.to_vec());
        Box::pin(async move { self.with_file(move |file| file.write(&model, &vectors)).await.map(drop) })
    }

    fn note_use<'a>(&'a self, model: &'a VectorModel, texts: &'a [Digest]) -> BoxFuture<'a, Result<(), StoreError>> {
        let (model, texts) = (*model, texts.to_vec());
        Box::pin(async move { self.with_file(move |file| file.note_use(&model, &texts)).await.map(drop) })
    }
}

/// Why vectors cannot be read or written, and what to do.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
enum Problem {
    #[error("the folder of the file does not exist; make it, or name another file")]
    NoFolder,
    #[error("it is a folder or a device; name a file")]
    NoFile,
    #[error("the file cannot be opened ({0}); let this user write to it and to its folder, or name another file")]
    Refused(io::ErrorKind),
    #[error("the file cannot be written; let this user write to it and to its folder, or name another file")]
    ReadOnly,
    #[error(
        "the file is damaged, or is no database; delete it and the next start makes a new one, or name another file"
    )]
    Damaged,
    #[error("the file is the database of another program; name another file")]
    Foreign,
    #[error(
        "a newer version of this program has made the file (its format is {0}, known is {VERSION}); name another file"
    )]
    Newer(i32),
    #[error("other processes have kept the file locked for too long")]
    Busy,
    #[error("there is no space left for the file; make some")]
    Full,
    #[error("the file cannot be used ({0:?}); if that goes on, delete it or name another file")]
    Failed(ErrorCode),
}

impl From<rusqlite::Error> for Problem {
    /// Messages of SQLite contain paths, so they are not used.
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Self::ReadOnly,
            Some(ErrorCode::DiskFull) => Self::Full,
            // Unknown: there is no such table or column. None: a column has a value of another type.
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown) | None => Self::Damaged,
            Some(code) => Self::Failed(code),
        }
    }
}

impl From<Problem> for StoreError {
    fn from(problem: Problem) -> Self {
        Self(format!("search.vectorCache: {problem}"))
    }
}

/// An open database.
struct VectorFile {
    db: Connection,
    /// Maximum number of vectors.
    max_vectors: u32,
    /// The rows that were read and whose time of last use is not of today.
    stale: HashMap<(VectorModel, Digest), i64>,
}

impl VectorFile {
    fn open(path: &Path) -> Result<Self, Problem> {
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Problem::NoFolder,
            kind => Problem::Refused(kind),
        };
        // SQLite gives some relative paths a meaning of their own, such as `:memory:`.
        let path = std::path::absolute(path).map_err(refused)?;
        // Opening a pipe may block forever.
        if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
            return Err(Problem::NoFile);
        }
        // SQLite creates the files beside a database with the permissions of the database.
        files::ensure_writable(&path).map_err(refused)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut db = Connection::open_with_flags(path, flags)?;
        db.busy_timeout(BUSY_TIMEOUT)?;
        let ready = is_ready(&db.transaction()?)?;
        // After a power loss the last vectors may be missing, but the file is intact.
        db.pragma_update(None, "synchronous", "NORMAL")?;
        if !ready {
            create_table(&mut db)?;
        }
        Ok(Self { db, max_vectors: MAX_VECTORS, stale: HashMap::new() })
    }

    /// Reads the vectors of `texts`, in their order.
    fn read(&mut self, model: &VectorModel, texts: &[Digest]) -> Result<Vec<Option<Vector>>, Problem> {
        let today = now() - DAY..=now() + DAY;
        let reading = self.db.transaction()?;
        let mut row = reading.prepare("SELECT rowid, used, vector FROM vectors WHERE model = ?1 AND text = ?2")?;
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            let found = row.query_row((model.digest, text), |row| {
                let vector = parse_vector(row.get_ref(2)?.as_blob()?, model.dimensions);
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, vector))
            });
            let (id, used, vector) = found.optional()?.unwrap_or_default();
            if vector.is_some() && !today.contains(&used) {
                self.stale.insert((*model, *text), id);
            }
            vectors.push(vector);
        }
        Ok(vectors)
    }

    /// Writes the time of last use of vectors that were read.
    fn note_use(&mut self, model: &VectorModel, texts: &[Digest]) -> Result<(), Problem> {
        let stale: Vec<i64> = texts.iter().filter_map(|text| self.stale.remove(&(*model, *text))).collect();
        if stale.is_empty() {
            return Ok(());
        }
        let writing = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut row = writing.prepare("UPDATE vectors SET used = ?1 WHERE rowid = ?2")?;
        for id in stale {
            row.execute((now(), id))?;
        }
        drop(row);
        Ok(writing.commit()?)
    }

    /// Writes vectors, and deletes those that are too old or too many.
    fn write(&mut self, model: &VectorModel, vectors: &[(Digest, Vector)]) -> Result<(), Problem> {
        let writing = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut row = writing.prepare(
            "INSERT INTO vectors (model, text, used, vector) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET used = excluded.used, vector = excluded.vector",
        )?;
        for (text, vector) in vectors {
            let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
            row.execute((model.digest, text, now(), bytes))?;
        }
        drop(row);
        writing.execute("DELETE FROM vectors WHERE used < ?1", [now() - MAX_UNUSED])?;
        let count: u32 = writing.query_row("SELECT count(*) FROM vectors", [], |row| row.get(0))?;
        if count > self.max_vectors {
            writing.execute(
                "DELETE FROM vectors WHERE rowid IN (SELECT rowid FROM vectors ORDER BY used, rowid LIMIT ?1)",
                [count - self.max_vectors],
            )?;
        }
        Ok(writing.commit()?)
    }
}

/// Whether the table exists; in a new file it does not. A transaction reads everything at one moment, because another
/// process may be creating the table.
fn is_ready(db: &Transaction<'_>) -> Result<bool, Problem> {
    let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    match (number("application_id")?, number("user_version")?) {
        (APPLICATION, VERSION) => Ok(true),
        (APPLICATION, version) => Err(Problem::Newer(version)),
        (0, 0) if db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))? == 0 => Ok(false),
        _ => Err(Problem::Foreign),
    }
}

fn create_table(db: &mut Connection) -> Result<(), Problem> {
    // The mode is stored in the file. With it, readers and a writer do not wait for each other. If the disk does not
    // support it, or another process is creating the file, they do.
    match db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(Problem::from) {
        Ok(()) | Err(Problem::Busy) => {}
        Err(problem) => return Err(problem),
    }
    let creating = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if !is_ready(&creating)? {
        creating.execute_batch(
            "CREATE TABLE vectors (
                 model BLOB NOT NULL,   -- digest
                 text BLOB NOT NULL,    -- digest
                 used INTEGER NOT NULL, -- seconds since 1970
                 vector BLOB NOT NULL,  -- f32, little-endian
                 UNIQUE (model, text)
             ) STRICT;
             CREATE INDEX vectors_by_use ON vectors (used);",
        )?;
        creating.pragma_update(None, "application_id", APPLICATION)?;
        creating.pragma_update(None, "user_version", VERSION)?;
    }
    Ok(creating.commit()?)
}

/// Parses a vector. Returns `None` if the bytes are not one of this length.
fn parse_vector(bytes: &[u8], dimensions: usize) -> Option<Vector> {
    let (numbers, rest) = bytes.as_chunks();
    let vector: Vector = numbers.iter().map(|number| f32::from_le_bytes(*number)).collect();
    (rest.is_empty() && vector.len() == dimensions && vector.iter().all(|number| number.is_finite())).then_some(vector)
}

/// Returns the time in seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
