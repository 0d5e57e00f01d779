//! The database in a file. One thread has the only connection of the process; other processes may use the file too.
//!
//! Data is only said to be written if the file is still at its path ([`files`](self::files)). One that was
//! deleted or replaced takes along all that is committed to it.

mod files;

use super::clock::{self, Clock};
use super::schema::{APPLIED, CREATE, NOTE, missing};
use super::{Dialect, Problem, Row, SnapshotRows, Statement, Value};
use crate::now_ms;
use crate::state::create_folder;
use codecall_base::files as base_files;
use files::{FileState, Files, Identity};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, Params, ToSql, Transaction, TransactionBehavior, params_from_iter};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::oneshot;

/// The `application_id` of the file: `CCst`.
const APPLICATION: i32 = 0x4343_7374;
/// How long an operation waits for other processes, which write for milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of batches in one transaction.
const MAX_GROUP: usize = 256;

/// A file, and the thread that uses it. The thread is started by the first use and ends with the last one.
pub struct Sqlite {
    path: PathBuf,
    clock: Arc<Clock>,
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
}

/// The work of the thread.
pub enum Work {
    /// Statements in one transaction.
    Batch(Vec<Statement>),
    /// Rows of statements that read, all as they are at one moment.
    Snapshot(Vec<Statement>, SnapshotRows),
    /// Reads all of the file. Rows are what is wrong.
    Check,
    /// Writes the file anew without the space of deleted rows.
    Vacuum,
}

struct Job {
    work: Work,
    reply: oneshot::Sender<Result<Vec<Row>, Problem>>,
}

impl Sqlite {
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), clock: Arc::new(Clock::new()), jobs: Mutex::default() }
    }

    pub fn path(&self) -> &PathBuf {
        &self.path
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Does work on the thread.
    pub async fn work(&self, work: Work) -> Result<Vec<Row>, Problem> {
        let (reply, answer) = oneshot::channel();
        self.send(Job { work, reply })?;
        answer.await.unwrap_or(Err(Problem::Closed))
    }

    fn send(&self, job: Job) -> Result<(), Problem> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.is_none() {
            let (sender, receiver) = mpsc::channel();
            let (path, clock) = (self.path.clone(), Arc::clone(&self.clock));
            let thread = std::thread::Builder::new().name("codecall-store".into());
            thread
                .spawn(move || serve(&path, &clock, &receiver))
                .map_err(|error| Problem::Failed(error.to_string()))?;
            *jobs = Some(sender);
        }
        jobs.as_ref().and_then(|jobs| jobs.send(job).ok()).ok_or(Problem::Closed)
    }
}

/// An open file.
struct Open {
    connection: Connection,
    files: Files,
}

/// The only connection of the process, as its thread has it.
struct Session {
    path: PathBuf,
    clock: Arc<Clock>,
    open: Option<Open>,
    /// The file that this process has used. Another one in its place lacks what was written.
    used: Option<Identity>,
}

/// Does the work of a file until nobody has more. What waits meanwhile is written in one transaction, as writing a
/// transaction to the file takes longer than most statements.
fn serve(path: &Path, clock: &Arc<Clock>, jobs: &mpsc::Receiver<Job>) {
    let mut session = Session { path: path.to_owned(), clock: Arc::clone(clock), open: None, used: None };
    while let Ok(first) = jobs.recv() {
        let more = std::iter::from_fn(|| jobs.try_recv().ok()).take(MAX_GROUP - 1);
        // None of them was answered, so their order is free.
        let (mut writing, others): (Vec<_>, Vec<_>) =
            std::iter::once(first).chain(more).partition(|job| job.work.writes());
        if writing.len() > 1
            && let Some(all) = session.group(&writing)
        {
            for (Job { reply, .. }, done) in std::mem::take(&mut writing).into_iter().zip(all) {
                let _ = reply.send(done);
            }
        }
        for Job { work, reply } in writing.into_iter().chain(others) {
            // Nobody may wait for it any more.
            let _ = reply.send(session.execute(work));
        }
    }
}

impl Session {
    /// Does the work of one job.
    fn execute(&mut self, work: Work) -> Result<Vec<Row>, Problem> {
        self.look()?;
        let writes = work.writes();
        let done = self.connection().and_then(|db| execute(db, work));
        self.noted(&done);
        if writes && done.is_ok() {
            self.look()?;
        }
        done
    }

    /// Does the work of several jobs in one transaction; `None`: nothing was done.
    fn group(&mut self, jobs: &[Job]) -> Option<Vec<Result<Vec<Row>, Problem>>> {
        self.look().ok()?;
        let mut all = group(&mut self.open.as_mut()?.connection, jobs).ok()?;
        if let Err(problem) = self.look() {
            all.iter_mut().for_each(|done| *done = Err(problem.clone()));
        }
        all.iter().for_each(|done| self.noted(done));
        Some(all)
    }

    fn connection(&mut self) -> Result<&mut Connection, Problem> {
        if self.open.is_none() {
            let found = files::identity(&self.path);
            match self.used {
                Some(_) if found.is_none() => return Err(Problem::Gone),
                Some(used) if found != Some(used) => return Err(Problem::Replaced),
                Some(_) | None => {}
            }
            let open = open(&self.path, &self.clock)?;
            self.used = open.files.identity();
            self.open = Some(open);
        }
        self.open.as_mut().map(|open| &mut open.connection).ok_or(Problem::Closed)
    }

    /// Closes the connection where the next work needs another one.
    fn noted(&mut self, done: &Result<Vec<Row>, Problem>) {
        let Err(problem) = done else { return };
        if must_open_again(problem) {
            self.open = None;
        }
        if matches!(problem, Problem::Damaged | Problem::Foreign) {
            // The file in its place, if there is one, is the mended one.
            self.used = None;
        }
    }

    /// Looks whether the open file is still the one at its path. The connection to one that is not stays open: the file
    /// may come
    /// back.
    fn look(&mut self) -> Result<(), Problem> {
        let Some(open) = &mut self.open else { return Ok(()) };
        match open.files.state() {
            FileState::Same => Ok(()),
            FileState::Gone => Err(Problem::Gone),
            FileState::Replaced => Err(Problem::Replaced),
            FileState::Bare => {
                // The log has transactions that are not in the file, and only this process still has the log.
                let moved =
                    open.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
                match moved.map_err(Problem::from) {
                    Ok(0) => {}
                    Ok(_) => return Err(Problem::Busy),
                    Err(problem) => return Err(problem),
                }
                tracing::warn!("{}: a file beside it was deleted; its content is in the database", self.path.display());
                self.open = None;
                self.connection().map(drop)
            }
        }
    }
}

/// Whether the connection is of no use any more: another process may have replaced or mended the file.
fn must_open_again(problem: &Problem) -> bool {
    !matches!(problem, Problem::Busy | Problem::Full | Problem::Gone | Problem::Replaced)
}

impl Work {
    /// Whether it is statements of which one writes.
    fn writes(&self) -> bool {
        matches!(self, Self::Batch(statements) if !is_reading(statements))
    }
}

fn is_reading(statements: &[Statement]) -> bool {
    statements.iter().all(|statement| statement.sql.starts_with("SELECT"))
}

fn execute(db: &mut Connection, work: Work) -> Result<Vec<Row>, Problem> {
    match work {
        Work::Batch(statements) => batch(db, &statements),
        Work::Snapshot(statements, to) => snapshot(db, &statements, &to).map(|()| Vec::new()),
        Work::Check => {
            let rows = rows(db, "PRAGMA integrity_check(20)", [])?;
            Ok(rows.into_iter().filter(|row| row.first().and_then(Value::text) != Some("ok")).collect())
        }
        Work::Vacuum => {
            db.execute_batch("VACUUM")?;
            rows(db, "PRAGMA wal_checkpoint(TRUNCATE)", []).map(|_| Vec::new())
        }
    }
}

/// Executes batches in one transaction. One that fails leaves no trace, and the others are as if it had not been.
///
/// # Errors
/// None of them was executed.
fn group(db: &mut Connection, jobs: &[Job]) -> Result<Vec<Result<Vec<Row>, Problem>>, Problem> {
    let mut transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut all = Vec::with_capacity(jobs.len());
    for job in jobs {
        let Work::Batch(statements) = &job.work else { continue };
        let part = transaction.savepoint()?;
        let done = run(&part, statements);
        match &done {
            Ok(_) => part.commit()?,
            Err(_) => part.finish()?,
        }
        // Some errors, such as that of a full disk, end the transaction with all that was before them.
        if transaction.is_autocommit() {
            return Err(Problem::Closed);
        }
        all.push(done);
    }
    transaction.commit()?;
    Ok(all)
}

fn batch(db: &mut Connection, statements: &[Statement]) -> Result<Vec<Row>, Problem> {
    let kind = if is_reading(statements) { TransactionBehavior::Deferred } else { TransactionBehavior::Immediate };
    let transaction = db.transaction_with_behavior(kind)?;
    let last = run(&transaction, statements)?;
    transaction.commit()?;
    Ok(last)
}

/// Sends the rows of statements until nobody wants more. A transaction that reads sees the file as it is at its first read.
fn snapshot(db: &mut Connection, statements: &[Statement], to: &SnapshotRows) -> Result<(), Problem> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Deferred)?;
    for (number, Statement { sql, values }) in statements.iter().enumerate() {
        let mut statement = transaction.prepare(&Dialect::Sqlite.sql(sql))?;
        let columns = statement.column_count();
        let mut found = statement.query(params_from_iter(values))?;
        while let Some(row) = found.next()? {
            let values: Result<Row, _> = (0..columns).map(|at| row.get_ref(at).map(value)).collect();
            if to.blocking_send((number, values?)).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Executes statements. Returns the rows of the last one.
fn run(db: &Connection, statements: &[Statement]) -> Result<Vec<Row>, Problem> {
    let mut last = Vec::new();
    for Statement { sql, values } in statements {
        last = rows(db, &Dialect::Sqlite.sql(sql), params_from_iter(values))?;
    }
    Ok(last)
}

fn rows(db: &Connection, sql: &str, values: impl Params) -> Result<Vec<Row>, Problem> {
    let mut statement = db.prepare_cached(sql)?;
    let columns = statement.column_count();
    let mut found = statement.query(values)?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let values: Result<Row, _> = (0..columns).map(|at| row.get_ref(at).map(value)).collect();
        rows.push(values?);
    }
    Ok(rows)
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Int(number),
        // No column has fractions.
        ValueRef::Real(number) => Value::Int(number as i64),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn open(path: &Path, clock: &Clock) -> Result<Open, Problem> {
    // SQLite gives some relative paths a meaning of their own, such as `:memory:`.
    let path = std::path::absolute(path).map_err(|error| Problem::Refused(error.kind()))?;
    if let Some(folder) = path.parent() {
        create_folder(folder).map_err(|error| Problem::NoFolder(error.kind()))?;
    }
    // Opening a pipe may block forever.
    if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
        return Err(Problem::NoFile);
    }
    // SQLite creates the files beside a database with the permissions of the database.
    base_files::ensure_writable(&path).map_err(|error: io::Error| Problem::Refused(error.kind()))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(&path, flags)?;
    // A file in a layer of a container is another one once it was opened to be written.
    let opened = files::identity(&path);
    db.busy_timeout(BUSY_TIMEOUT)?;
    db.set_prepared_statement_cache_capacity(64);
    // Runs have random ids, so each access is to another page: the upper levels of all indexes of a file of gigabytes
    // fit into these
    // 32 MB, which are taken as pages are read.
    db.execute_batch("PRAGMA cache_size = -32768;")?;
    // After a power loss the last transactions may be missing, but the file is intact.
    db.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;")?;
    let is_new = is_new(&db.transaction()?)?;
    if is_new {
        // Stored in the file: readers and a writer do not wait for each other. Another process may be creating it.
        match db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(Problem::from) {
            Ok(()) | Err(Problem::Busy) => {}
            Err(problem) => return Err(problem),
        }
    }
    migrate(&mut db)?;
    // A file that cannot be written shows the time of day.
    if let Ok(ahead) = set_clock(&mut db) {
        clock.set_ahead(ahead);
    }
    let files = Files::of(&path);
    if files.identity() != opened {
        return Err(Problem::Replaced);
    }
    Ok(Open { connection: db, files })
}

/// Returns how far the clock of the file is ahead, which the first process since the start of the machine notes.
fn set_clock(db: &mut Connection) -> Result<i64, Problem> {
    let boot = clock::boot();
    let read = |db: &Connection| rows(db, "SELECT boot, ahead, seen FROM clocks WHERE place = 0", []);
    let known = |rows: &[Row]| {
        let known = rows.first().map(|row| (row[0].text().unwrap_or_default(), row[1].int(), row[2].int()));
        (known.is_some_and(|(of, _, _)| of == boot && !boot.is_empty()), clock::ahead_us(known, &boot))
    };
    let (is_known, ahead) = known(&read(db)?);
    if is_known {
        return Ok(ahead);
    }
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have noted it meanwhile.
    let (is_known, ahead) = known(&read(&transaction)?);
    if !is_known {
        let sql = "INSERT INTO clocks (place, boot, ahead, seen) VALUES (0, $1, $2, $3) \
                   ON CONFLICT (place) DO UPDATE SET boot = excluded.boot, ahead = excluded.ahead, seen = excluded.seen";
        transaction.execute(sql, (&boot, ahead, ahead + clock::uptime_us()))?;
    }
    transaction.commit()?;
    Ok(ahead)
}

/// Whether the file is empty. A transaction reads everything at one moment, because another process may be creating the
/// tables.
fn is_new(db: &Transaction<'_>) -> Result<bool, Problem> {
    let number = |sql| db.query_row(sql, [], |row| row.get::<_, i64>(0));
    match number("PRAGMA application_id")? {
        application if application == i64::from(APPLICATION) => Ok(false),
        0 if number("SELECT count(*) FROM sqlite_schema")? == 0 => Ok(true),
        _ => Err(Problem::Foreign),
    }
}

fn migrate(db: &mut Connection) -> Result<(), Problem> {
    let applied = |db: &Connection| -> Result<Vec<(i64, String)>, Problem> {
        let rows = rows(db, APPLIED, [])?;
        Ok(rows.iter().map(|row| (row[0].int(), row[1].text().unwrap_or_default().to_owned())).collect())
    };
    // Most starts need not write.
    let is_current = !is_new(&db.transaction()?)? && missing(&applied(db)?, Dialect::Sqlite)?.is_empty();
    if is_current {
        return Ok(());
    }
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it meanwhile.
    is_new(&transaction)?;
    transaction.execute_batch(CREATE)?;
    for migration in missing(&applied(&transaction)?, Dialect::Sqlite)? {
        transaction.execute_batch(&migration.sql)?;
        transaction.execute(NOTE, (migration.version, migration.digest, now_ms()))?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    Ok(transaction.commit()?)
}

impl From<rusqlite::Error> for Problem {
    /// Messages of SQLite may contain paths and values, so they are not used.
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Self::ReadOnly,
            Some(ErrorCode::DiskFull) => Self::Full,
            // Unknown: there is no such table or column. None: a column has a value of another type.
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown) | None => {
                tracing::debug!(%error, "the store");
                Self::Damaged
            }
            Some(code) => Self::Failed(format!("the file cannot be used ({code:?})")),
        }
    }
}
