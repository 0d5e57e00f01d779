//! The statements of journals: they decide which process has a run.

use super::{Hold, Lease};
use crate::database::{Statement, Value};

/// Runs that can go on, and the number of the reason. The lease of one that waits ends when its time has come. Each
/// part follows an index, so its time does not depend on how many runs wait; SQLite keeps the order of
/// a cross join.
pub(crate) const READY: &str = "SELECT id, CAST(0 AS BIGINT) FROM (SELECT id FROM journaled_runs WHERE state = 'waiting' AND cancelled = 1 \
    LIMIT $1) AS cancelled \
    UNION ALL SELECT id, CAST(1 AS BIGINT) FROM (SELECT r.id FROM approval_requests a CROSS JOIN journaled_runs r \
    WHERE r.id = a.run AND r.state = 'waiting' AND a.used = 0 AND a.state <> 'waiting' AND a.state <> 'withdrawn' \
    LIMIT $1) AS decided \
    UNION ALL SELECT id, CAST(2 AS BIGINT) FROM (SELECT id FROM journaled_runs WHERE state = 'running' AND lease < $2 \
    ORDER BY lease LIMIT $1) AS lapsed \
    UNION ALL SELECT id, CAST(3 AS BIGINT) FROM (SELECT id FROM journaled_runs WHERE state = 'waiting' AND lease < $2 \
    ORDER BY lease LIMIT $1) AS due";
/// The runs of a process that somebody has cancelled.
pub(crate) const CANCELLED: &str =
    "SELECT id FROM journaled_runs WHERE state = 'running' AND owner = $1 AND cancelled = 1";
/// Withdraws what a run of a process has asked. It names the states that have ended, or SQLite would go through all
/// requests that
/// wait.
pub(crate) const WITHDRAW: &str = "UPDATE approval_requests SET state = 'withdrawn' \
    WHERE run = (SELECT id FROM journaled_runs WHERE id = $1 AND owner = $2 AND fence = $3) \
    AND state NOT IN ('approved', 'denied', 'expired', 'withdrawn')";
/// Deletes runs that are no longer kept.
pub(crate) const RETAIN: &str = "DELETE FROM journaled_runs WHERE state = 'ended' AND keep_until < $1";
/// Renews leases. Only a run that is running has an owner; if the statement named the state, SQLite would go through
/// all runs in
/// it, those that were submitted and nobody has begun included.
pub(crate) fn renew(places: &str) -> String {
    format!("UPDATE journaled_runs SET lease = $1 WHERE owner = $2 AND id IN ({places}) RETURNING id, fence")
}

/// Takes over those of a list of runs that wait, or whose lease has lapsed. It says which states they do not have, or
/// SQLite would
/// go through all runs that wait.
pub(crate) fn take(places: &str) -> String {
    format!(
        "UPDATE journaled_runs SET state = 'running', owner = $1, lease = $2, fence = fence + 1 \
         WHERE id IN (SELECT id FROM journaled_runs \
         WHERE state <> 'ended' AND (state <> 'running' OR lease < $3) AND id IN ({places}){{skip_locked}}) RETURNING id, fence"
    )
}

/// Returns the statement that adds an entry, and returns a row only if the process holds the run, which nobody takes over
/// meanwhile. Repeated, it does the same.
pub(super) fn entry_of(lease: &Lease, hold: &Hold, number: u64, sealed: Value) -> Statement {
    let sql = "INSERT INTO journal_entries (run, number, sealed) \
               SELECT id, CAST($1 AS BIGINT), CAST($2 AS {bytes}) FROM journaled_runs \
               WHERE id = $3 AND owner = $4 AND fence = $5 AND state = 'running'{for_share} \
               ON CONFLICT (run, number) DO UPDATE SET number = excluded.number RETURNING number";
    let values = [number.into(), sealed, hold.id.as_str().into(), lease.owner.as_str().into(), hold.fence.into()];
    Statement::new(sql, values)
}
