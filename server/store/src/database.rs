//! The database: an SQLite file, or Postgres. Both execute the same SQL.
//!
//! Common ground: parameters are `$1`, `$2`, …, which first appear in order; `ON CONFLICT`, `RETURNING`, `BIGINT`, `TEXT`,
//! `CAST`. Times are milliseconds since 1970, truth is 0 and 1. A few words in braces differ ([`Dialect::word`]).
//!
//! Messages say what is wrong and what to do. They contain neither values nor addresses.

mod clock;
#[cfg(feature = "postgres")]
mod postgres;
mod schema;
mod sqlite;
#[cfg(test)]
mod tests;

use crate::state;
use crate::{BoxFuture, StoreError};
use codecall_config::{Config, STORE_VARIABLE};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A value in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// No value.
    Null,
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// The values of a row, in the order of the columns.
pub type Row = Vec<Value>;

impl Value {
    /// Returns a number; 0 if it is none.
    #[must_use]
    pub fn int(&self) -> i64 {
        if let Self::Int(number) = self { *number } else { 0 }
    }

    /// Returns a text; `None` if it is none.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Returns bytes; none if it has none.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        if let Self::Bytes(bytes) = self { bytes } else { &[] }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u64> for Value {
    /// Numbers that are too large become the largest one.
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<&str> for Value {
    /// Postgres has no texts with U+0000.
    fn from(text: &str) -> Self {
        Self::Text(text.replace('\0', "\u{fffd}"))
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        text.map_or(Self::Null, Into::into)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

/// One statement with its values.
#[derive(Clone, Debug)]
pub struct Statement {
    sql: Cow<'static, str>,
    values: Vec<Value>,
}

impl Statement {
    /// Creates a statement.
    pub fn new(sql: impl Into<Cow<'static, str>>, values: impl Into<Vec<Value>>) -> Self {
        Self { sql: sql.into(), values: values.into() }
    }
}

/// Where the rows of a snapshot go, each with the number of its statement.
pub type SnapshotRows = tokio::sync::mpsc::Sender<(usize, Row)>;

/// Why the database cannot be used, and what to do.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Problem {
    /// The folder of the file cannot be created.
    #[error("the folder of the file cannot be created ({0}); create it, or name another file with 'store.path'")]
    NoFolder(std::io::ErrorKind),
    /// The path is not that of a file.
    #[error("it is a folder or a device; name a file with 'store.path'")]
    NoFile,
    /// The file cannot be opened.
    #[error("the file cannot be opened ({0}); let this user write to it and to its folder, or name another file")]
    Refused(std::io::ErrorKind),
    /// The file cannot be written.
    #[error("the file cannot be written; let this user write to it and to its folder, or name another file")]
    ReadOnly,
    /// The file is not a database, or a damaged one.
    #[error(
        "the file is damaged, or is no database; `codecall store check` says more; move it away and the next start makes a new one"
    )]
    Damaged,
    /// The database belongs to another program.
    #[error("it is the database of another program; name another one")]
    Foreign,
    /// A newer version of the program has made the tables.
    #[error(
        "a newer version of this program has made its tables (their version is {found}, known is {known}); use that version, or name another database"
    )]
    Newer {
        /// The version of the tables.
        found: i64,
        /// The newest version that is known.
        known: i64,
    },
    /// The tables are not those of their version.
    #[error(
        "its tables are not those of version {0}; another build of this program has made them, so name another database"
    )]
    Differs(i64),
    /// Other processes lock the database.
    #[error("other processes have kept it locked for too long")]
    Busy,
    /// The disk is full.
    #[error("there is no space left for it; make some, or lower 'history.maxBytes' and run `codecall store vacuum`")]
    Full,
    /// The server of the database cannot be reached.
    #[error("the database server cannot be reached ({0})")]
    Unreachable(String),
    /// Another error.
    #[error("{0}")]
    Failed(String),
    /// The file was deleted or moved since this process has opened it.
    #[error(
        "the file was deleted or moved while this server used it, so nothing more is written. Put the same file back with its -wal and -shm, or restart the server, which uses the file at the path"
    )]
    Gone,
    /// Another file is in the place of the one that this process has opened.
    #[error(
        "another file was put in its place while this server used it, so nothing more is written. Put the first one back with its -wal and -shm, or restart the server, which uses the other one"
    )]
    Replaced,
    /// The program was built without the driver.
    #[error(
        "this program was built without Postgres. The packages of CodeCall have it (Debian, container, npm, PyPI); or build it with `--features postgres`, or use a file (store.path)"
    )]
    NoPostgres,
    /// The database is closed.
    #[error("it is closed")]
    Closed,
}

impl Problem {
    /// Whether trying again may help.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Busy | Self::Full | Self::Unreachable(_))
    }
}

/// The dialect of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// Postgres.
    Postgres,
}

impl Dialect {
    /// The words that differ.
    const WORDS: [&str; 9] =
        ["bytes", "key", "compact", "texts", "texts_key", "unlogged", "announce_messages", "for_share", "skip_locked"];

    /// Returns what stands for a word in braces.
    fn word(self, word: &str) -> &'static str {
        match (word, self) {
            ("bytes", Self::Sqlite) => "BLOB",
            ("bytes", Self::Postgres) => "BYTEA",
            // The key of a table, by which its rows are stored.
            ("key", Self::Sqlite) => "INTEGER PRIMARY KEY",
            ("key", Self::Postgres) => "BIGINT PRIMARY KEY",
            ("compact", Self::Sqlite) => "WITHOUT ROWID",
            // The index of words. It does not contain the texts in SQLite.
            ("texts", Self::Sqlite) => {
                "CREATE VIRTUAL TABLE run_texts USING fts5(words, content='', contentless_delete=1, detail=none)"
            }
            ("texts", Self::Postgres) => {
                "CREATE TABLE run_texts (key BIGINT PRIMARY KEY, words TEXT NOT NULL);
                 CREATE INDEX run_texts_words ON run_texts USING gin (to_tsvector('simple', words))"
            }
            ("texts_key", Self::Sqlite) => "rowid",
            ("texts_key", Self::Postgres) => "key",
            // A table whose rows need not survive the crash of the database, so that no write waits for the disk.
            ("unlogged", Self::Postgres) => "UNLOGGED",
            // Lets others read the rows of a query, but not change them, until the end of the transaction. A file has
            // one writer.
            ("for_share", Self::Postgres) => " FOR SHARE",
            // Locks the rows of a query apart from those that others have locked.
            ("skip_locked", Self::Postgres) => " FOR UPDATE SKIP LOCKED",
            // A message wakes its recipient, which listens ([`Database::listen`]).
            ("announce_messages", Self::Postgres) => {
                "CREATE FUNCTION announce_message() RETURNS trigger LANGUAGE plpgsql AS
                 $$BEGIN PERFORM pg_notify('codecall_' || NEW.recipient, ''); RETURN NULL; END$$;
                 CREATE TRIGGER announce_message AFTER INSERT ON replica_messages
                 FOR EACH ROW EXECUTE FUNCTION announce_message();"
            }
            _ => "",
        }
    }

    /// Returns SQL with its words replaced.
    fn sql(self, sql: &str) -> Cow<'_, str> {
        if !sql.contains('{') {
            return sql.into();
        }
        let replace = |sql: String, word: &str| sql.replace(&format!("{{{word}}}"), self.word(word));
        Self::WORDS.into_iter().fold(sql.to_owned(), replace).into()
    }

    /// Returns the query of an index of words: all words, where the last one may be the beginning of one.
    #[must_use]
    pub fn words_query(self, words: &[String], is_beginning: bool) -> String {
        let (and, any) = match self {
            Self::Sqlite => (" AND ", "*"),
            Self::Postgres => (" & ", ":*"),
        };
        format!("{}{}", words.join(and), if is_beginning { any } else { "" })
    }
}

/// An open database. Its clones share it.
#[derive(Clone)]
pub struct Database {
    driver: Arc<Driver>,
    interceptor: Option<Arc<dyn Interceptor>>,
}

/// An interceptor between a process and its database: tests let it fail, and have a clock of their own.
pub trait Interceptor: Send + Sync {
    /// Does a transaction, or fails in its place, before or after it was done.
    fn batch<'a>(&'a self, work: BoxFuture<'a, Result<Vec<Row>, Problem>>) -> BoxFuture<'a, Result<Vec<Row>, Problem>>;

    /// Returns the time of the process, in milliseconds since 1970.
    fn now_ms(&self) -> i64;
}

enum Driver {
    Sqlite(sqlite::Sqlite),
    #[cfg(feature = "postgres")]
    Postgres(Box<postgres::Postgres>),
}

/// A listener that is notified of messages. Dropping it ends its connection.
pub struct Listener {
    wake: Arc<tokio::sync::Notify>,
    _listening: Option<AbortOnDrop>,
}

impl Listener {
    /// Waits for the next notification.
    pub async fn notified(&self) {
        self.wake.notified().await;
    }
}

/// Ends a task when it is dropped.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Database({})", self.place())
    }
}

impl Database {
    /// Returns the database of a configuration; `None` if it names none, and the store is disabled or there is no folder for
    /// states. It is opened, and created, when it is first used.
    ///
    /// # Errors
    /// The configuration names Postgres, and the program was built without it, or the address is malformed.
    pub fn configured(config: &Config) -> Result<Option<Self>, StoreError> {
        if let Some(url) = &config.store.url {
            return Self::postgres(url).map(Some);
        }
        let is_disabled = std::env::var_os(STORE_VARIABLE).is_some_and(|path| path.is_empty());
        let default = || state::folder(config).filter(|_| !is_disabled).map(|folder| folder.join("codecall.db"));
        Ok(config.store.path.clone().or_else(default).map(|path| Self::file(&path)))
    }

    /// Returns the database in a file.
    #[must_use]
    pub fn file(path: &Path) -> Self {
        Self::of(Driver::Sqlite(sqlite::Sqlite::new(path)))
    }

    fn of(driver: Driver) -> Self {
        Self { driver: Arc::new(driver), interceptor: None }
    }

    /// Returns the same database as another process has it.
    #[must_use]
    pub fn intercepted(&self, interceptor: Arc<dyn Interceptor>) -> Self {
        Self { driver: Arc::clone(&self.driver), interceptor: Some(interceptor) }
    }

    /// Returns the time of the database, in milliseconds since 1970: the same for all its processes, whatever their
    /// time of day.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        match &self.interceptor {
            Some(interceptor) => interceptor.now_ms(),
            None => self.clock().now_us() / 1_000,
        }
    }

    /// Returns it in microseconds.
    #[must_use]
    pub fn now_us(&self) -> i64 {
        match &self.interceptor {
            Some(interceptor) => interceptor.now_ms().saturating_mul(1_000),
            None => self.clock().now_us(),
        }
    }

    fn clock(&self) -> &clock::Clock {
        match &*self.driver {
            Driver::Sqlite(sqlite) => sqlite.clock(),
            #[cfg(feature = "postgres")]
            Driver::Postgres(postgres) => postgres.clock(),
        }
    }

    /// Keeps the clock: a file notes what it shows, so that it does not show less after the next start of the machine,
    /// and that of
    /// Postgres is read again.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn keep_clock(&self) -> Result<(), Problem> {
        match &*self.driver {
            Driver::Sqlite(_) => {
                let now = self.clock().now_us();
                let sql = "UPDATE clocks SET seen = $1 WHERE place = 0 AND seen < $2";
                let values = [now.into(), (now - clock::NOTED_US).into()];
                self.query(sql, values).await.map(drop)
            }
            #[cfg(feature = "postgres")]
            Driver::Postgres(postgres) => postgres.read_clock().await,
        }
    }

    /// Returns a Postgres database.
    ///
    /// # Errors
    /// The address is malformed, or the program was built without Postgres.
    #[cfg(feature = "postgres")]
    pub fn postgres(url: &str) -> Result<Self, StoreError> {
        Ok(Self::of(Driver::Postgres(Box::new(postgres::Postgres::new(url)?))))
    }

    /// Returns a Postgres database.
    ///
    /// # Errors
    /// The program was built without Postgres.
    #[cfg(not(feature = "postgres"))]
    pub fn postgres(_: &str) -> Result<Self, StoreError> {
        Err(StoreError(format!("store.url: {}", Problem::NoPostgres)))
    }

    /// Executes statements in one transaction. Returns the rows of the last one.
    ///
    /// # Errors
    /// The database cannot be used. Then none of the statements has an effect.
    pub async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Row>, Problem> {
        match &self.interceptor {
            Some(interceptor) => interceptor.batch(Box::pin(self.execute(statements))).await,
            None => self.execute(statements).await,
        }
    }

    async fn execute(&self, statements: Vec<Statement>) -> Result<Vec<Row>, Problem> {
        match &*self.driver {
            Driver::Sqlite(sqlite) => sqlite.work(sqlite::Work::Batch(statements)).await,
            #[cfg(feature = "postgres")]
            Driver::Postgres(postgres) => postgres.batch(&statements).await,
        }
    }

    /// Executes one statement.
    ///
    /// # Errors
    /// The errors of [`Database::batch`].
    pub async fn query(
        &self,
        sql: impl Into<Cow<'static, str>>,
        values: impl Into<Vec<Value>>,
    ) -> Result<Vec<Row>, Problem> {
        self.batch(vec![Statement::new(sql, values)]).await
    }

    /// Sends the rows of statements that read, all as they are at one moment, whatever others write meanwhile.
    ///
    /// # Errors
    /// The database cannot be read. Some rows may have been sent.
    pub async fn snapshot(&self, statements: Vec<Statement>, to: SnapshotRows) -> Result<(), Problem> {
        match &*self.driver {
            Driver::Sqlite(sqlite) => sqlite.work(sqlite::Work::Snapshot(statements, to)).await.map(drop),
            #[cfg(feature = "postgres")]
            Driver::Postgres(postgres) => postgres.snapshot(&statements, &to).await,
        }
    }

    /// Checks that the database can be used, and reads all of it. Returns what is wrong with it; nothing if it is intact.
    ///
    /// # Errors
    /// It cannot be used.
    pub async fn check(&self) -> Result<Vec<String>, Problem> {
        match &*self.driver {
            Driver::Sqlite(sqlite) => {
                let rows = sqlite.work(sqlite::Work::Check).await?;
                Ok(rows.iter().filter_map(|row| row.first()?.text().map(str::to_owned)).collect())
            }
            #[cfg(feature = "postgres")]
            Driver::Postgres(postgres) => postgres.batch(&[Statement::new("SELECT 1", [])]).await.map(|_| Vec::new()),
        }
    }

    /// Looks whether the database can be written, without a change.
    ///
    /// # Errors
    /// It cannot.
    pub async fn probe(&self) -> Result<(), Problem> {
        self.query("UPDATE codecall_migrations SET at = at WHERE version = 0", []).await.map(drop)
    }

    /// Gives the space of deleted rows back to the system.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn vacuum(&self) -> Result<(), Problem> {
        match &*self.driver {
            Driver::Sqlite(sqlite) => sqlite.work(sqlite::Work::Vacuum).await.map(drop),
            #[cfg(feature = "postgres")]
            Driver::Postgres(postgres) => postgres.vacuum().await,
        }
    }

    /// Whether servers on several machines can use it.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.dialect() == Dialect::Postgres
    }

    /// Returns what is notified when a message for a replica may be there ([`replicas`](crate::SqlReplicas)): until it
    /// is dropped, a
    /// connection listens. A notification can be missed while the connection is lost, and a file has none, so look from
    /// time to time too.
    #[must_use]
    #[cfg_attr(not(feature = "postgres"), expect(unused_variables, reason = "a file has no notifications"))]
    pub fn listen(&self, replica: &str) -> Listener {
        match &*self.driver {
            Driver::Sqlite(_) => Listener { wake: Arc::default(), _listening: None },
            #[cfg(feature = "postgres")]
            Driver::Postgres(postgres) => {
                let wake = Arc::<tokio::sync::Notify>::default();
                let listening = tokio::spawn(postgres.listen(format!("codecall_{replica}"), Arc::clone(&wake)));
                Listener { wake, _listening: Some(AbortOnDrop(listening)) }
            }
        }
    }

    /// Returns what it understands.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        match &*self.driver {
            Driver::Sqlite(_) => Dialect::Sqlite,
            #[cfg(feature = "postgres")]
            Driver::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Returns the file; `None` if it is not in a file.
    #[must_use]
    pub fn path(&self) -> Option<&PathBuf> {
        match &*self.driver {
            Driver::Sqlite(sqlite) => Some(sqlite.path()),
            #[cfg(feature = "postgres")]
            Driver::Postgres(_) => None,
        }
    }

    /// Returns where the database is, for people, without its password.
    #[must_use]
    pub fn place(&self) -> String {
        match self.path() {
            Some(path) => path.display().to_string(),
            None => "store.url".into(),
        }
    }

    /// Returns the error of a database that does not answer in time.
    #[must_use]
    pub fn unanswered(&self) -> StoreError {
        self.error(&Problem::Failed("it does not answer".into()))
    }

    /// Adds the database to a problem.
    #[must_use]
    pub fn error(&self, problem: &Problem) -> StoreError {
        StoreError(format!("{}: {problem}", self.place()))
    }

    /// Returns the version of the tables that this program makes.
    #[must_use]
    pub fn version() -> i64 {
        schema::VERSION
    }
}
