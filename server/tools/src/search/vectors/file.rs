//! Vectors in a file: an SQLite database, which several processes may use at once.
//!
//! A vector is found by two digests, that of its model and that of its text. Texts are not stored. What
//! was not used for months goes, and beyond a number what was not used for the longest time. What is
//! wrong with the file is told in words that say what to do, and not where the file is.

use codecall_base::files;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior};
use sha2::{Digest as _, Sha256};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What says in a database whose it is: `CCve`.
const APPLICATION: i32 = 0x4343_7665;
/// Of the table; a program writes no file that is newer than itself.
const VERSION: i32 = 1;
/// Vectors that are kept, of all models.
const MOST: u32 = 100_000;
/// In seconds. When a vector was used is known to a day: few starts write anything.
const DAY: i64 = 24 * 60 * 60;
/// How long a vector is kept that nobody uses, in seconds.
const LONGEST_UNUSED: i64 = 90 * DAY;
/// How long to wait for other processes, which write for milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// A SHA-256.
pub type Digest = [u8; 32];

/// Why vectors cannot be read or written, and what to do.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Problem {
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
    /// The texts of SQLite have paths in them.
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Self::ReadOnly,
            Some(ErrorCode::DiskFull) => Self::Full,
            // Unknown: there is no such table or column. None: there is something else in a column.
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown) | None => Self::Damaged,
            Some(code) => Self::Failed(code),
        }
    }
}

/// The vectors of one model in a file.
pub struct VectorFile {
    db: Connection,
    model: Digest,
    /// Numbers in a vector.
    length: usize,
    /// Vectors that are kept.
    most: u32,
    /// Rows that were read, whose last use the file tells wrongly.
    used: Vec<i64>,
}

impl VectorFile {
    /// Open the file at `path`, or make it, for vectors of `length` numbers of the model that has this
    /// digest. On Unix only its owner can read a file that is made.
    ///
    /// # Errors
    /// It cannot be used; a file that is something else is left as it is.
    pub fn open(path: &Path, model: Digest, length: usize) -> Result<Self, Problem> {
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => Problem::NoFolder,
            kind => Problem::Refused(kind),
        };
        // SQLite takes some relative paths for something else, as `:memory:`.
        let path = std::path::absolute(path).map_err(refused)?;
        // Opening what is no file may wait for ever.
        if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
            return Err(Problem::NoFile);
        }
        // SQLite gives the files that it puts beside a database the permissions of the database.
        files::ensure_writable(&path).map_err(refused)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut db = Connection::open_with_flags(path, flags)?;
        db.busy_timeout(PATIENCE)?;
        let ready = is_ready(&db.transaction()?)?;
        // After a loss of power the last vectors may be gone, the file is whole.
        db.pragma_update(None, "synchronous", "NORMAL")?;
        if !ready {
            make_table(&mut db)?;
        }
        Ok(Self { db, model, length, most: MOST, used: Vec::new() })
    }

    /// The vectors of `texts`, where there are any.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&mut self, texts: &[String]) -> Result<Vec<Option<Arc<[f32]>>>, Problem> {
        let today = now() - DAY..=now() + DAY;
        let reading = self.db.transaction()?;
        let mut row = reading.prepare("SELECT rowid, used, vector FROM vectors WHERE model = ?1 AND text = ?2")?;
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            let found = row.query_row((self.model, digest(text)), |row| {
                let vector = numbers(row.get_ref(2)?.as_blob()?, self.length);
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, vector))
            });
            let (id, used, vector) = found.optional()?.unwrap_or_default();
            if vector.is_some() && !today.contains(&used) {
                self.used.push(id);
            }
            vectors.push(vector);
        }
        Ok(vectors)
    }

    /// Note that what was read has been used.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn note_use(&mut self) -> Result<(), Problem> {
        let used = std::mem::take(&mut self.used);
        if used.is_empty() {
            return Ok(());
        }
        let writing = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut row = writing.prepare("UPDATE vectors SET used = ?1 WHERE rowid = ?2")?;
        for id in used {
            row.execute((now(), id))?;
        }
        drop(row);
        Ok(writing.commit()?)
    }

    /// Keep the vectors of `texts`. What is too old or too much goes.
    ///
    /// # Errors
    /// The file cannot be written; then it is as it was.
    pub fn write(&mut self, texts: &[String], vectors: &[Arc<[f32]>]) -> Result<(), Problem> {
        let writing = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut row = writing.prepare(
            "INSERT INTO vectors (model, text, used, vector) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET used = excluded.used, vector = excluded.vector",
        )?;
        for (text, vector) in texts.iter().zip(vectors) {
            let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
            row.execute((self.model, digest(text), now(), bytes))?;
        }
        drop(row);
        writing.execute("DELETE FROM vectors WHERE used < ?1", [now() - LONGEST_UNUSED])?;
        let count: u32 = writing.query_row("SELECT count(*) FROM vectors", [], |row| row.get(0))?;
        if count > self.most {
            writing.execute(
                "DELETE FROM vectors WHERE rowid IN (SELECT rowid FROM vectors ORDER BY used, rowid LIMIT ?1)",
                [count - self.most],
            )?;
        }
        Ok(writing.commit()?)
    }
}

/// Whether the table is there; in a new file it is not. All is read at one moment, as another process may
/// be making it.
fn is_ready(db: &Transaction<'_>) -> Result<bool, Problem> {
    let number = |name| db.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    match (number("application_id")?, number("user_version")?) {
        (APPLICATION, VERSION) => Ok(true),
        (APPLICATION, version) => Err(Problem::Newer(version)),
        (0, 0) if db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))? == 0 => Ok(false),
        _ => Err(Problem::Foreign),
    }
}

fn make_table(db: &mut Connection) -> Result<(), Problem> {
    // The file remembers it. Readers and a writer do not wait for each other then; where the disk cannot do
    // that, or another process is just making the file, they do.
    match db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(Problem::from) {
        Ok(()) | Err(Problem::Busy) => {}
        Err(problem) => return Err(problem),
    }
    let making = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if !is_ready(&making)? {
        making.execute_batch(
            "CREATE TABLE vectors (
                 model BLOB NOT NULL,   -- digest
                 text BLOB NOT NULL,    -- digest
                 used INTEGER NOT NULL, -- seconds since 1970
                 vector BLOB NOT NULL,  -- f32, little-endian
                 UNIQUE (model, text)
             ) STRICT;
             CREATE INDEX vectors_by_use ON vectors (used);",
        )?;
        making.pragma_update(None, "application_id", APPLICATION)?;
        making.pragma_update(None, "user_version", VERSION)?;
    }
    Ok(making.commit()?)
}

fn digest(text: &str) -> Digest {
    Sha256::digest(text).into()
}

/// A vector, if it is one.
fn numbers(bytes: &[u8], length: usize) -> Option<Arc<[f32]>> {
    let (numbers, rest) = bytes.as_chunks();
    let vector: Arc<[f32]> = numbers.iter().map(|number| f32::from_le_bytes(*number)).collect();
    (rest.is_empty() && vector.len() == length && vector.iter().all(|number| number.is_finite())).then_some(vector)
}

/// In seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
pub mod tests;
