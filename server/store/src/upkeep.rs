//! Data in a database beside runs, and the part of it that nobody needs.
//!
//! The stores delete expired rows when they write. This module does so also where nobody writes any more.

use crate::StoreError;
use crate::database::{Database, Statement};

/// The data that are counted: the name, and the rows.
const COUNTED: [(&str, &str); 10] = [
    ("secrets", "SELECT count(*) FROM secrets"),
    ("scriptTools", "SELECT count(*) FROM script_tools"),
    ("durableRuns", "SELECT count(*) FROM journaled_runs"),
    ("approvalRequests", "SELECT count(*) FROM approval_requests"),
    ("approvedTools", "SELECT count(*) FROM tool_approvals"),
    ("credentials", "SELECT count(*) FROM credentials"),
    ("results", "SELECT count(*) FROM results WHERE piece = 0"),
    ("answers", "SELECT count(*) FROM answers"),
    ("knownServers", "SELECT count(*) FROM known_servers"),
    ("vectors", "SELECT count(*) FROM vectors"),
];
/// How long what can be learned again is kept without being written or used, in milliseconds.
const MAX_UNUSED: i64 = 90 * 24 * 60 * 60 * 1_000;

/// Returns how much of what there is.
///
/// # Errors
/// The database cannot be read.
pub async fn counts(database: &Database) -> Result<Vec<(&'static str, i64)>, StoreError> {
    let mut counts = Vec::new();
    for (what, sql) in COUNTED {
        let rows = database.query(sql, []).await.map_err(|problem| database.error(&problem))?;
        counts.push((what, rows.first().map_or(0, |row| row[0].int())));
    }
    Ok(counts)
}

/// Deletes long results and answers that have expired, locks that nobody holds, and what was
/// learned of servers, results and texts and not used for 90 days.
///
/// # Errors
/// The database cannot be written.
pub async fn delete_expired(database: &Database) -> Result<(), StoreError> {
    let now = database.now_ms();
    let delete = |sql: &'static str, before: i64| Statement::new(sql, [before.into()]);
    let statements = vec![
        delete("DELETE FROM results WHERE expires < $1", now),
        delete("DELETE FROM answers WHERE expires < $1", now),
        delete("DELETE FROM credential_locks WHERE until < $1", now),
        delete("DELETE FROM known_servers WHERE written < $1", now - MAX_UNUSED),
        delete("DELETE FROM known_shapes WHERE written < $1", now - MAX_UNUSED),
        delete("DELETE FROM vectors WHERE used < $1", now - MAX_UNUSED),
    ];
    database.batch(statements).await.map(drop).map_err(|problem| database.error(&problem))
}
