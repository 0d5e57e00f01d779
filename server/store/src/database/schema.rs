//! The tables, as numbered migrations. A migration that was released is never changed: its digest is in the database.

use super::{Dialect, Problem};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// The migrations, from the first one on. Statements end in `;`.
const MIGRATIONS: [&str; 12] = [
    // The history of runs, long results, and secrets. `key` of a run grows with the time of its end. The columns of `runs` are what lists
    // show and filters compare; everything else of a run is compressed in `run_details`.
    "CREATE TABLE runs (
         key {key},
         id TEXT NOT NULL,
         kind TEXT NOT NULL,
         parent TEXT,
         status TEXT NOT NULL,
         code TEXT,
         client TEXT,
         title TEXT NOT NULL,
         started BIGINT NOT NULL,
         duration_us BIGINT NOT NULL,
         script_us BIGINT NOT NULL,
         steps BIGINT NOT NULL,
         tool_calls BIGINT NOT NULL,
         peak_bytes BIGINT NOT NULL,
         bytes BIGINT NOT NULL
     );
     CREATE UNIQUE INDEX runs_by_id ON runs (id);
     CREATE INDEX runs_by_status ON runs (status, key);
     CREATE TABLE run_details (key {key}, detail {bytes} NOT NULL);
     CREATE TABLE run_tools (tool TEXT NOT NULL, key BIGINT NOT NULL, PRIMARY KEY (tool, key)) {compact};
     CREATE INDEX run_tools_by_run ON run_tools (key);
     {texts};
     CREATE TABLE results (
         handle TEXT NOT NULL,
         piece BIGINT NOT NULL,
         expires BIGINT NOT NULL,
         bytes BIGINT NOT NULL,
         content {bytes} NOT NULL,
         PRIMARY KEY (handle, piece)
     );
     CREATE INDEX results_by_expiry ON results (expires);
     CREATE TABLE secrets (
         workspace TEXT NOT NULL,
         name TEXT NOT NULL,
         created BIGINT NOT NULL,
         changed BIGINT NOT NULL,
         sealed {bytes} NOT NULL,
         PRIMARY KEY (workspace, name)
     );",
    // Calls that wait for a person, and the journals of runs that outlive their process. `owner` holds a run until `lease`.
    "CREATE TABLE approval_requests (
         id TEXT PRIMARY KEY,
         subject TEXT NOT NULL,
         run TEXT,
         tool TEXT NOT NULL,
         input TEXT NOT NULL,
         digest TEXT NOT NULL,
         client TEXT,
         scope TEXT,
         asked BIGINT NOT NULL,
         expires BIGINT NOT NULL,
         state TEXT NOT NULL,
         used BIGINT NOT NULL,
         decided BIGINT,
         decided_by TEXT,
         reason TEXT
     );
     CREATE INDEX approval_requests_by_subject ON approval_requests (subject);
     CREATE INDEX approval_requests_by_scope ON approval_requests (scope);
     CREATE INDEX approval_requests_by_run ON approval_requests (run);
     CREATE INDEX approval_requests_by_state ON approval_requests (state, asked);
     CREATE TABLE journaled_runs (
         id TEXT PRIMARY KEY,
         state TEXT NOT NULL,
         principal TEXT,
         began BIGINT NOT NULL,
         active_ms BIGINT NOT NULL,
         owner TEXT,
         lease BIGINT NOT NULL,
         keep_until BIGINT NOT NULL,
         header {bytes} NOT NULL,
         outcome {bytes}
     );
     CREATE INDEX journaled_runs_by_state ON journaled_runs (state, lease);
     CREATE TABLE journal_entries (
         run TEXT NOT NULL,
         number BIGINT NOT NULL,
         sealed {bytes} NOT NULL,
         PRIMARY KEY (run, number)
     );",
    // What a model did not have to read.
    "ALTER TABLE runs ADD COLUMN saved_bytes BIGINT NOT NULL DEFAULT 0;",
    // Script tools that were stored. `changes` counts those of a workspace, so that processes see them.
    "CREATE TABLE script_tools (
         workspace TEXT NOT NULL,
         name TEXT NOT NULL,
         version BIGINT NOT NULL,
         enabled BIGINT NOT NULL,
         PRIMARY KEY (workspace, name)
     );
     CREATE TABLE script_tool_versions (
         workspace TEXT NOT NULL,
         name TEXT NOT NULL,
         version BIGINT NOT NULL,
         code TEXT NOT NULL,
         typescript BIGINT NOT NULL,
         author TEXT NOT NULL,
         stored BIGINT NOT NULL,
         PRIMARY KEY (workspace, name, version)
     );
     CREATE TABLE script_tool_changes (workspace TEXT PRIMARY KEY, changes BIGINT NOT NULL);",
    // Runs that somebody has cancelled, wherever they are.
    "ALTER TABLE journaled_runs ADD COLUMN cancelled BIGINT NOT NULL DEFAULT 0;",
    // What replicas share. Who is there, messages between them, and rates may be lost when the database fails.
    "CREATE {unlogged} TABLE replicas (id TEXT PRIMARY KEY, beat BIGINT NOT NULL);
     CREATE {unlogged} TABLE replica_messages (
         recipient TEXT NOT NULL,
         sent BIGINT NOT NULL,
         id TEXT NOT NULL,
         sender TEXT NOT NULL,
         address TEXT NOT NULL,
         sealed {bytes} NOT NULL,
         PRIMARY KEY (recipient, sent, id)
     );
     {announce_messages}
     CREATE TABLE replica_secrets (name TEXT PRIMARY KEY, sealed {bytes} NOT NULL);
     CREATE {unlogged} TABLE rates (key TEXT PRIMARY KEY, full_at BIGINT NOT NULL);
     CREATE TABLE sessions (
         id TEXT PRIMARY KEY,
         opening TEXT NOT NULL,
         expires BIGINT NOT NULL,
         stream TEXT
     );
     CREATE INDEX sessions_by_expiry ON sessions (expires);
     CREATE TABLE session_requests (
         session TEXT NOT NULL,
         name TEXT NOT NULL,
         request TEXT NOT NULL,
         PRIMARY KEY (session, name)
     );
     CREATE TABLE tasks (
         id TEXT PRIMARY KEY,
         scope TEXT NOT NULL,
         run TEXT,
         description TEXT NOT NULL,
         expires BIGINT NOT NULL,
         sealed {bytes}
     );
     CREATE INDEX tasks_by_expiry ON tasks (expires);",
    // The master key that all servers of the database have; there is one row. What people have approved of tools, where
    // `changes` counts those of a server. Credentials of servers, and who renews them until `until`. What is known of servers, of
    // their results, and of texts: it can be learned again. Failed runs, which are few where most succeed.
    "CREATE TABLE master_keys (place BIGINT PRIMARY KEY, id TEXT NOT NULL, registered BIGINT NOT NULL);
     CREATE TABLE tool_approvals (
         server TEXT NOT NULL,
         tool TEXT NOT NULL,
         digest TEXT NOT NULL,
         definition TEXT NOT NULL,
         approved BIGINT NOT NULL,
         PRIMARY KEY (server, tool)
     );
     CREATE TABLE tool_approval_changes (server TEXT PRIMARY KEY, changes BIGINT NOT NULL);
     CREATE TABLE credentials (server TEXT PRIMARY KEY, version BIGINT NOT NULL, sealed {bytes} NOT NULL);
     CREATE TABLE credential_locks (server TEXT PRIMARY KEY, owner TEXT NOT NULL, until BIGINT NOT NULL);
     CREATE TABLE known_servers (server TEXT PRIMARY KEY, written BIGINT NOT NULL, record {bytes} NOT NULL);
     CREATE INDEX known_servers_by_time ON known_servers (written);
     CREATE TABLE known_shapes (app TEXT PRIMARY KEY, written BIGINT NOT NULL, record {bytes} NOT NULL);
     CREATE INDEX known_shapes_by_time ON known_shapes (written);
     CREATE TABLE vectors (
         model {bytes} NOT NULL,
         text {bytes} NOT NULL,
         used BIGINT NOT NULL,
         vector {bytes} NOT NULL,
         PRIMARY KEY (model, text)
     );
     CREATE INDEX vectors_by_use ON vectors (used);
     CREATE INDEX runs_failed ON runs (key) WHERE status <> 'ok';",
    // What servers look for several times a second, so that the time of a look does not grow with the number of runs and
    // requests that wait or have ended.
    "CREATE INDEX journaled_runs_cancelled ON journaled_runs (state, owner) WHERE cancelled = 1;
     CREATE INDEX journaled_runs_ended ON journaled_runs (state, keep_until) WHERE state = 'ended';
     CREATE INDEX approval_requests_decided ON approval_requests (run)
         WHERE used = 0 AND state <> 'waiting' AND state <> 'withdrawn';
     CREATE INDEX approval_requests_by_expiry ON approval_requests (state, expires);",
    // Answers of tools that are given again to the same input.
    "CREATE TABLE answers (
         key TEXT PRIMARY KEY,
         stored BIGINT NOT NULL,
         expires BIGINT NOT NULL,
         bytes BIGINT NOT NULL,
         sealed {bytes} NOT NULL
     );
     CREATE INDEX answers_by_age ON answers (stored, bytes);
     CREATE INDEX answers_by_expiry ON answers (expires);",
    // Long results of durable runs, in pieces.
    "CREATE TABLE run_results (
         run TEXT NOT NULL,
         piece BIGINT NOT NULL,
         keep_until BIGINT NOT NULL,
         sealed {bytes} NOT NULL,
         PRIMARY KEY (run, piece)
     );
     CREATE INDEX run_results_by_time ON run_results (keep_until);",
    // The long members of the input of a call that waits, so that lists name them without the input.
    "ALTER TABLE approval_requests ADD COLUMN long_members TEXT;",
    // `fence` grows whenever a process takes a run over; of several rows of history of a run, the one with the highest is right.
    // `resumed` is the time of the script at which its last evaluation began: -1 where that is not known. The clock of the store
    // (`database/clock.rs`); there is one row.
    "ALTER TABLE journaled_runs ADD COLUMN fence BIGINT NOT NULL DEFAULT 0;
     ALTER TABLE journaled_runs ADD COLUMN resumed BIGINT NOT NULL DEFAULT -1;
     ALTER TABLE runs ADD COLUMN fence BIGINT NOT NULL DEFAULT 0;
     CREATE TABLE clocks (place BIGINT PRIMARY KEY, boot TEXT NOT NULL, ahead BIGINT NOT NULL, seen BIGINT NOT NULL);",
];

/// The newest version of the tables.
pub const VERSION: i64 = MIGRATIONS.len() as i64;

/// Creates the table of the migrations that were made.
pub const CREATE: &str = "CREATE TABLE IF NOT EXISTS codecall_migrations (
    version BIGINT PRIMARY KEY, digest TEXT NOT NULL, at BIGINT NOT NULL
)";
/// The migrations that were made.
pub const APPLIED: &str = "SELECT version, digest FROM codecall_migrations ORDER BY version";
/// Notes a migration.
pub const NOTE: &str = "INSERT INTO codecall_migrations (version, digest, at) VALUES ($1, $2, $3)";

/// A migration to make.
pub struct Migration {
    pub version: i64,
    pub sql: String,
    pub digest: String,
}

/// Returns the migrations that are missing.
///
/// # Errors
/// A newer version of the program has made some, or one was made that is not the one of its number.
pub fn missing(applied: &[(i64, String)], dialect: Dialect) -> Result<Vec<Migration>, Problem> {
    if let Some((found, _)) = applied.last().filter(|(version, _)| *version > VERSION) {
        return Err(Problem::Newer { found: *found, known: VERSION });
    }
    for (at, (version, digest)) in applied.iter().enumerate() {
        let is_known = MIGRATIONS.get(at).is_some_and(|sql| *version == at as i64 + 1 && self::digest(sql) == *digest);
        if !is_known {
            return Err(Problem::Differs(*version));
        }
    }
    let missing = MIGRATIONS.iter().enumerate().skip(applied.len());
    Ok(missing
        .map(|(at, sql)| Migration { version: at as i64 + 1, sql: dialect.sql(sql).into_owned(), digest: digest(sql) })
        .collect())
}

/// The digest of a migration, without regard to white space.
fn digest(sql: &str) -> String {
    let words = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    Sha256::digest(words.as_bytes())[..8].iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
