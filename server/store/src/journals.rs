//! Journals of runs that outlive the process which has begun them.
//!
//! A journaled run has a header, which says what was begun, and entries, which say what has happened since. Both are
//! sealed: they contain inputs and results of tools. A process that evaluates a run holds it by a lease, which it
//! renews. A run whose lease has lapsed is taken over by another process. A process that takes a run over raises its
//! fence. Data of an earlier fence is refused, also if the same process has taken the run over again.

mod sealing;
mod statements;

use crate::database::{Database, Problem, Row, Statement, Value};
use crate::sealed::{KeyRing, SealError};
use crate::{BoxFuture, RowQuota, StoreError, VaultError, now_us};
use sealing::{open, seal};
use statements::entry_of;
pub(crate) use statements::{CANCELLED, READY, RETAIN, WITHDRAW, renew, take};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Where a journaled run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournaledState {
    /// A process evaluates it, or has died while it did.
    Running,
    /// It waits for decisions or a time, and no process has it in memory.
    Waiting,
    /// It has ended.
    Ended,
}

impl JournaledState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Ended => "ended",
        }
    }

    fn parse(text: &str) -> Self {
        [Self::Running, Self::Waiting].into_iter().find(|state| state.as_str() == text).unwrap_or(Self::Ended)
    }
}

/// A journaled run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournaledRun {
    /// The id of the run.
    pub id: String,
    /// Where it stands.
    pub state: JournaledState,
    /// The client of the HTTP server that it belongs to; `None`: the server's own.
    pub principal: Option<String>,
    /// When it began, in milliseconds since 1970 by the clock of the store.
    pub began_ms: i64,
    /// How long it was evaluated before its present evaluation, in milliseconds.
    pub active_ms: u64,
    /// The time of the script, in milliseconds, at which its present evaluation began, or its last one ended; `None`:
    /// an earlier
    /// version has not noted it.
    pub resumed_ms: Option<u64>,
    /// Whether somebody has cancelled it.
    pub is_cancelled: bool,
    /// The outcome of one that has ended.
    pub outcome: Option<String>,
}

/// Why a journal cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalProblem {
    /// It cannot be sealed or opened.
    #[error("its journal cannot be read: {0}")]
    Seal(#[from] SealError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another process has taken the run over.
    #[error("another process has taken the run over")]
    Lost,
    /// The engine that keeps journals cannot be used.
    #[error("{0}")]
    Engine(String),
}

impl From<VaultError> for JournalProblem {
    fn from(error: VaultError) -> Self {
        match error {
            VaultError::Seal(error) => Self::Seal(error),
            VaultError::Store(error) => Self::Store(error),
            VaultError::Invalid(problem) => Self::Store(StoreError(problem)),
        }
    }
}

/// The holder of a run, and the time for which it holds it without renewing.
#[derive(Clone, Debug)]
pub struct Lease {
    /// The process: a random text.
    pub owner: String,
    /// How long it holds a run.
    pub duration: Duration,
}

impl Lease {
    fn until_ms(&self, now_ms: i64) -> i64 {
        now_ms.saturating_add(i64::try_from(self.duration.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A run as a process holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The id of the run.
    pub id: String,
    /// How often it was taken over.
    pub fence: i64,
}

impl Hold {
    /// The hold of a process that begins a run.
    #[must_use]
    pub fn first(id: &str) -> Self {
        Self { id: id.to_owned(), fence: 1 }
    }
}

/// Journals of runs.
pub trait JournalStore: Send + Sync {
    /// Adds a run with its first entry, if there is one, held by the process of the lease.
    fn begin<'a>(
        &'a self,
        keys: &'a KeyRing,
        lease: &'a Lease,
        run: &'a JournaledRun,
        header: &'a str,
        entry: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), JournalProblem>>;

    /// Adds a run that a process has yet to begin, unless so many are open already, or one of its id is known.
    fn submit<'a>(
        &'a self,
        keys: &'a KeyRing,
        run: &'a JournaledRun,
        header: &'a str,
        max_open: u64,
    ) -> BoxFuture<'a, Result<Submitted, JournalProblem>>;

    /// Adds an entry. The first one has the number 0.
    fn append<'a>(
        &'a self,
        keys: &'a KeyRing,
        lease: &'a Lease,
        hold: &'a Hold,
        number: u64,
        entry: &'a str,
    ) -> BoxFuture<'a, Result<(), JournalProblem>>;

    /// Checks, by the clock of the store, that the process still holds a run, for at least half of its lease: otherwise
    /// the lease
    /// is renewed, unless another process has the run.
    fn check<'a>(&'a self, lease: &'a Lease, hold: &'a Hold) -> BoxFuture<'a, Result<(), JournalProblem>>;

    /// Notes that the process begins to evaluate a run that was evaluated for so long before, at a time of its script.
    fn resume<'a>(
        &'a self,
        lease: &'a Lease,
        hold: &'a Hold,
        spent: Spent,
    ) -> BoxFuture<'a, Result<(), JournalProblem>>;

    /// Lets go of a run that waits: until a time in milliseconds since 1970, or until something is decided.
    fn pause<'a>(
        &'a self,
        lease: &'a Lease,
        hold: &'a Hold,
        spent: Spent,
        due_ms: Option<i64>,
    ) -> BoxFuture<'a, Result<(), JournalProblem>>;

    /// Lets go of a run that is not evaluated any more, so that another process can take it over.
    fn release<'a>(&'a self, lease: &'a Lease, hold: &'a Hold) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Lets go of all runs of the process.
    fn release_all<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Ends a run. Its outcome is kept until a time in milliseconds since 1970; its entries are deleted.
    fn end<'a>(
        &'a self,
        keys: &'a KeyRing,
        lease: &'a Lease,
        hold: &'a Hold,
        outcome: &'a str,
        keep_until_ms: i64,
    ) -> BoxFuture<'a, Result<(), JournalProblem>>;

    /// Gives all runs of a client to another one.
    fn give<'a>(&'a self, from: &'a str, to: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Cancels a run that is open. `false`: it is not.
    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Returns the runs of the process that somebody has cancelled.
    fn cancelled<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<Vec<String>, StoreError>>;

    /// Takes over runs that can go on, at most so many: those that were submitted or cancelled, whose time has come, a call of
    /// which was decided, or whose process has let its lease lapse. Those in `not` are left out.
    fn claim<'a>(
        &'a self,
        lease: &'a Lease,
        not: &'a [String],
        max: usize,
    ) -> BoxFuture<'a, Result<Vec<Hold>, StoreError>>;

    /// Holds these runs of the process for longer, and returns those that it has. A lease that is not renewed lapses,
    /// also that of a
    /// run which its process has lost sight of.
    fn renew<'a>(&'a self, lease: &'a Lease, ids: &'a [String]) -> BoxFuture<'a, Result<Vec<Hold>, StoreError>>;

    /// Returns a run and its header.
    fn read<'a>(
        &'a self,
        keys: &'a KeyRing,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<(JournaledRun, String)>, JournalProblem>>;

    /// Returns a run.
    fn get<'a>(&'a self, keys: &'a KeyRing, id: &'a str)
    -> BoxFuture<'a, Result<Option<JournaledRun>, JournalProblem>>;

    /// Returns the entries of a run, in order.
    fn entries<'a>(&'a self, keys: &'a KeyRing, id: &'a str) -> BoxFuture<'a, Result<Vec<String>, JournalProblem>>;

    /// Deletes runs that have ended and are no longer kept.
    fn retain(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// How long a run was evaluated, and up to which time of its script, in milliseconds. Time in which it waited for a
/// person, or no
/// process had it, passes for the script and does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// How long it was evaluated.
    pub active_ms: u64,
    /// The time of its script.
    pub script_ms: u64,
}

/// The outcome of a submission of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// It is stored.
    Stored,
    /// There is one of its id.
    Known,
    /// Too many are open.
    Full,
}

/// Journals in a database.
#[derive(Clone, Debug)]
pub struct SqlJournals {
    database: Database,
    /// For how many more runs there is room.
    quota: Arc<RowQuota>,
}

/// A run that nobody holds has a lease that ended so long before it was let go of, in milliseconds: the clocks of other servers
/// may be late by that. Runs are taken over in the order in which their leases have ended.
const LAPSED_MS: i64 = 60_000;
/// How many reasons there are for which a run can go on.
const REASONS: usize = 4;
/// How many runs are read of those that can go on for one reason.
const MAX_READY: usize = 100;
/// How many leases one statement renews.
const MAX_RENEWED: usize = 256;

/// The parts of a run, as places of what is sealed.
const HEADER: &str = "journal header";
const OUTCOME: &str = "journal outcome";
const ENTRY: &str = "journal entry";

/// Returns the places of a list of texts in a statement, from a number on, and its values. Lists of similar lengths
/// have the same
/// statement, as each text of one is prepared once: the last value is repeated.
fn list<T: AsRef<str>>(texts: &[T], first: usize) -> (String, Vec<Value>) {
    let count = texts.len().next_power_of_two();
    let places: Vec<String> = (first..first + count).map(|at| format!("${at}")).collect();
    let last = texts.last().into_iter().cycle();
    (places.join(", "), texts.iter().chain(last).take(count).map(|text| Value::from(text.as_ref())).collect())
}

/// Returns the runs of [`READY`], apart from some. Each reason has its turn: where many calls are decided, runs whose
/// server has died
/// wait no longer than others. Their requests would be read at each look until then.
fn in_turn<'a>(rows: &'a [Row], not: &'a [String]) -> VecDeque<&'a str> {
    // A run can be ready for two reasons.
    let mut seen: HashSet<&str> = not.iter().map(String::as_str).collect();
    let mut turns = [0_usize; REASONS];
    let mut ready = Vec::new();
    for row in rows {
        let (Some(id), Ok(reason)) = (row[0].text(), usize::try_from(row[1].int())) else { continue };
        if let Some(turn) = turns.get_mut(reason).filter(|_| seen.insert(id)) {
            ready.push((*turn, id));
            *turn += 1;
        }
    }
    ready.sort_by_key(|(turn, _)| *turn);
    ready.into_iter().map(|(_, id)| id).collect()
}

/// The columns of a run.
const COLUMNS: &str = "state, principal, active_ms, outcome, cancelled, began, resumed";

/// Reads a row of [`COLUMNS`].
fn run(keys: &KeyRing, id: &str, row: &Row) -> Result<JournaledRun, JournalProblem> {
    let outcome = match &row[3] {
        Value::Bytes(_) => Some(open(keys, OUTCOME, id, "", &row[3])?),
        _ => None,
    };
    Ok(JournaledRun {
        id: id.to_owned(),
        state: JournaledState::parse(row[0].text().unwrap_or_default()),
        principal: row[1].text().map(str::to_owned),
        active_ms: u64::try_from(row[2].int()).unwrap_or_default(),
        is_cancelled: row[4].int() != 0,
        began_ms: row[5].int(),
        resumed_ms: u64::try_from(row[6].int()).ok(),
        outcome,
    })
}

/// Reads rows of ids and fences.
fn holds(rows: &[Row]) -> Vec<Hold> {
    rows.iter().filter_map(|row| Some(Hold { id: row[0].text()?.to_owned(), fence: row[1].int() })).collect()
}

impl SqlJournals {
    /// The journals of a database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database, quota: Arc::default() }
    }

    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Row>, StoreError> {
        self.database.batch(statements).await.map_err(|problem: Problem| self.database.error(&problem))
    }

    fn now_ms(&self) -> i64 {
        self.database.now_ms()
    }

    fn lapsed_ms(&self) -> i64 {
        self.now_ms() - LAPSED_MS
    }

    /// Takes over those of these runs that still can be. Of a run that another process takes over at the moment it does
    /// not wait
    /// to learn what becomes of it: two that wait for each other would end nowhere.
    async fn take(&self, lease: &Lease, ids: &[&str]) -> Result<Vec<Hold>, StoreError> {
        let now = self.now_ms();
        let (places, ids) = list(ids, 4);
        let sql = take(&places);
        let values: [Value; 3] = [lease.owner.as_str().into(), lease.until_ms(now).into(), now.into()];
        let values: Vec<Value> = values.into_iter().chain(ids).collect();
        Ok(holds(&self.batch(vec![Statement::new(sql, values)]).await?))
    }

    /// Executes a statement that returns a row only if the process holds a run.
    async fn held(&self, sql: &'static str, values: Vec<Value>) -> Result<(), JournalProblem> {
        match self.batch(vec![Statement::new(sql, values)]).await?.is_empty() {
            true => Err(JournalProblem::Lost),
            false => Ok(()),
        }
    }

    /// Counts the open runs. Returns whether another one may be.
    async fn count_open(&self, max_open: u64) -> Result<bool, StoreError> {
        let open = "SELECT count(*) FROM journaled_runs WHERE state IN ('running', 'waiting')";
        let open = self.batch(vec![Statement::new(open, [])]).await?;
        let open = open.first().and_then(|row| u64::try_from(row[0].int()).ok());
        Ok(self.quota.counted(open.unwrap_or_default(), max_open))
    }
}

impl JournalStore for SqlJournals {
    fn begin<'a>(
        &'a self,
        keys: &'a KeyRing,
        lease: &'a Lease,
        run: &'a JournaledRun,
        header: &'a str,
        entry: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), JournalProblem>> {
        Box::pin(async move {
            let header = seal(keys, HEADER, &run.id, "", header)?;
            let id = run.id.as_str();
            let hold = Hold::first(id);
            // Where a connection is lost, the transaction may be repeated although it was committed.
            let sql = "INSERT INTO journaled_runs \
                       (id, state, principal, began, active_ms, resumed, owner, lease, keep_until, fence, header) \
                       VALUES ($1, 'running', $2, $3, $4, 0, $5, $6, 0, $7, $8) \
                       ON CONFLICT (id) DO UPDATE SET lease = excluded.lease WHERE journaled_runs.owner = excluded.owner \
                       AND journaled_runs.fence = excluded.fence RETURNING id";
            let values = [
                id.into(),
                run.principal.as_deref().into(),
                run.began_ms.into(),
                run.active_ms.into(),
                lease.owner.as_str().into(),
                lease.until_ms(self.now_ms()).into(),
                hold.fence.into(),
                header,
            ];
            let mut statements = vec![Statement::new(sql, values)];
            if let Some(entry) = entry {
                statements.push(entry_of(lease, &hold, 0, seal(keys, ENTRY, id, "0", entry)?));
            }
            match self.batch(statements).await?.is_empty() {
                true => Err(JournalProblem::Lost),
                false => Ok(()),
            }
        })
    }

    fn submit<'a>(
        &'a self,
        keys: &'a KeyRing,
        run: &'a JournaledRun,
        header: &'a str,
        max_open: u64,
    ) -> BoxFuture<'a, Result<Submitted, JournalProblem>> {
        Box::pin(async move {
            let id = run.id.as_str();
            if !self.quota.take() {
                // Also where there is no room for another one.
                let known = "SELECT 1 FROM journaled_runs WHERE id = $1";
                if !self.batch(vec![Statement::new(known, [id.into()])]).await?.is_empty() {
                    return Ok(Submitted::Known);
                }
                if !self.count_open(max_open).await? {
                    return Ok(Submitted::Full);
                }
            }
            let header = seal(keys, HEADER, id, "", header)?;
            // Its lease has lapsed, so any process takes it over. Another request with its id may be faster.
            let sql = "INSERT INTO journaled_runs (id, state, principal, began, active_ms, resumed, lease, keep_until, header) \
                       VALUES ($1, 'running', $2, $3, 0, 0, $4, 0, $5) ON CONFLICT (id) DO NOTHING RETURNING id";
            let (began, lapsed) = (run.began_ms.into(), self.lapsed_ms().into());
            let values = [id.into(), run.principal.as_deref().into(), began, lapsed, header];
            Ok(match self.batch(vec![Statement::new(sql, values)]).await?.is_empty() {
                true => Submitted::Known,
                false => Submitted::Stored,
            })
        })
    }

    fn give<'a>(&'a self, from: &'a str, to: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let sql = "UPDATE journaled_runs SET principal = $1 WHERE principal = $2";
            self.batch(vec![Statement::new(sql, [to.into(), from.into()])]).await.map(drop)
        })
    }

    fn cancel<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let sql = "UPDATE journaled_runs SET cancelled = 1 WHERE id = $1 AND state IN ('running', 'waiting') RETURNING id";
            Ok(!self.batch(vec![Statement::new(sql, [id.into()])]).await?.is_empty())
        })
    }

    fn cancelled<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let rows = self.batch(vec![Statement::new(CANCELLED, [lease.owner.as_str().into()])]).await?;
            Ok(rows.iter().filter_map(|row| row[0].text().map(str::to_owned)).collect())
        })
    }

    fn append<'a>(
        &'a self,
        keys: &'a KeyRing,
        lease: &'a Lease,
        hold: &'a Hold,
        number: u64,
        entry: &'a str,
    ) -> BoxFuture<'a, Result<(), JournalProblem>> {
        Box::pin(async move {
            let sealed = seal(keys, ENTRY, &hold.id, &number.to_string(), entry)?;
            match self.batch(vec![entry_of(lease, hold, number, sealed)]).await?.is_empty() {
                true => Err(JournalProblem::Lost),
                false => Ok(()),
            }
        })
    }

    fn check<'a>(&'a self, lease: &'a Lease, hold: &'a Hold) -> BoxFuture<'a, Result<(), JournalProblem>> {
        Box::pin(async move {
            let held: [Value; 3] = [hold.id.as_str().into(), lease.owner.as_str().into(), hold.fence.into()];
            let sql =
                "SELECT lease FROM journaled_runs WHERE id = $1 AND owner = $2 AND fence = $3 AND state = 'running'";
            let rows = self.batch(vec![Statement::new(sql, held.clone())]).await?;
            let until = rows.first().ok_or(JournalProblem::Lost)?[0].int();
            let now = self.now_ms();
            if until >= now.midpoint(lease.until_ms(now)) {
                return Ok(());
            }
            let sql = "UPDATE journaled_runs SET lease = $1 \
                       WHERE id = $2 AND owner = $3 AND fence = $4 AND state = 'running' RETURNING id";
            self.held(sql, std::iter::once(lease.until_ms(now).into()).chain(held).collect()).await
        })
    }

    fn resume<'a>(
        &'a self,
        lease: &'a Lease,
        hold: &'a Hold,
        Spent { active_ms, script_ms }: Spent,
    ) -> BoxFuture<'a, Result<(), JournalProblem>> {
        Box::pin(async move {
            let sql = "UPDATE journaled_runs SET active_ms = $1, resumed = $2 \
                       WHERE id = $3 AND owner = $4 AND fence = $5 RETURNING id";
            let held: [Value; 3] = [hold.id.as_str().into(), lease.owner.as_str().into(), hold.fence.into()];
            self.held(sql, [active_ms.into(), script_ms.into()].into_iter().chain(held).collect()).await
        })
    }

    fn pause<'a>(
        &'a self,
        lease: &'a Lease,
        hold: &'a Hold,
        Spent { active_ms, script_ms }: Spent,
        due_ms: Option<i64>,
    ) -> BoxFuture<'a, Result<(), JournalProblem>> {
        Box::pin(async move {
            let sql = "UPDATE journaled_runs SET state = 'waiting', active_ms = $1, resumed = $2, owner = NULL, lease = $3 \
                       WHERE id = $4 AND owner = $5 AND fence = $6 RETURNING id";
            let due = due_ms.unwrap_or(i64::MAX);
            let held: [Value; 3] = [hold.id.as_str().into(), lease.owner.as_str().into(), hold.fence.into()];
            self.held(sql, [active_ms.into(), script_ms.into(), due.into()].into_iter().chain(held).collect()).await
        })
    }

    fn release<'a>(&'a self, lease: &'a Lease, hold: &'a Hold) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let sql = "UPDATE journaled_runs SET owner = NULL, lease = $1 WHERE id = $2 AND owner = $3 AND fence = $4";
            let (id, owner) = (hold.id.as_str().into(), lease.owner.as_str().into());
            let values = [self.lapsed_ms().into(), id, owner, hold.fence.into()];
            self.batch(vec![Statement::new(sql, values)]).await.map(drop)
        })
    }

    fn release_all<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let sql = "UPDATE journaled_runs SET owner = NULL, lease = $1 WHERE owner = $2 AND state = 'running'";
            let values = [self.lapsed_ms().into(), lease.owner.as_str().into()];
            self.batch(vec![Statement::new(sql, values)]).await.map(drop)
        })
    }

    fn end<'a>(
        &'a self,
        keys: &'a KeyRing,
        lease: &'a Lease,
        hold: &'a Hold,
        outcome: &'a str,
        keep_until_ms: i64,
    ) -> BoxFuture<'a, Result<(), JournalProblem>> {
        Box::pin(async move {
            let outcome = seal(keys, OUTCOME, &hold.id, "", outcome)?;
            let delete = "DELETE FROM journal_entries WHERE run IN \
                          (SELECT id FROM journaled_runs WHERE id = $1 AND owner = $2 AND fence = $3)";
            let update = "UPDATE journaled_runs SET state = 'ended', keep_until = $1, outcome = $2, owner = NULL \
                          WHERE id = $3 AND owner = $4 AND fence = $5 RETURNING id";
            let held: [Value; 3] = [hold.id.as_str().into(), lease.owner.as_str().into(), hold.fence.into()];
            let values: Vec<Value> = [keep_until_ms.into(), outcome].into_iter().chain(held.clone()).collect();
            // In Postgres each statement sees what others have committed before it: the run is locked first, or its
            // entries would
            // be deleted although another process takes it over before the last statement.
            let lock = "UPDATE journaled_runs SET fence = fence WHERE id = $1 AND owner = $2 AND fence = $3";
            let statements = vec![
                Statement::new(lock, held.clone()),
                Statement::new(delete, held.clone()),
                Statement::new(WITHDRAW, held),
                Statement::new(update, values),
            ];
            match self.batch(statements).await?.is_empty() {
                true => Err(JournalProblem::Lost),
                false => Ok(()),
            }
        })
    }

    fn claim<'a>(
        &'a self,
        lease: &'a Lease,
        not: &'a [String],
        max: usize,
    ) -> BoxFuture<'a, Result<Vec<Hold>, StoreError>> {
        Box::pin(async move {
            // Each row that is read can be another page of the file: a process that can take a run or two does not read
            // a hundred,
            // unless it must not have the first ones, or others are faster.
            for limit in [(max * 2).min(MAX_READY), MAX_READY] {
                let rows =
                    self.batch(vec![Statement::new(READY, [(limit as u64).into(), self.now_ms().into()])]).await?;
                let mut ready = in_turn(&rows, not);
                while !ready.is_empty() && max > 0 {
                    let part: Vec<&str> = ready.drain(..ready.len().min(max)).collect();
                    let taken = self.take(lease, &part).await?;
                    if !taken.is_empty() {
                        return Ok(taken);
                    }
                    // Another process was faster. It goes on in this order, so this one tries another part of the list.
                    let at = usize::try_from(now_us()).unwrap_or_default() % ready.len().max(1);
                    ready.rotate_left(at);
                }
                if rows.len() < limit {
                    break;
                }
            }
            Ok(Vec::new())
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease, ids: &'a [String]) -> BoxFuture<'a, Result<Vec<Hold>, StoreError>> {
        Box::pin(async move {
            let mut held = Vec::new();
            // Short transactions: while one is in progress, the runs in it cannot be paused or ended.
            for ids in ids.chunks(MAX_RENEWED) {
                let (places, ids) = list(ids, 3);
                let sql = renew(&places);
                let until = lease.until_ms(self.now_ms());
                let values: Vec<Value> = [until.into(), lease.owner.as_str().into()].into_iter().chain(ids).collect();
                held.extend(holds(&self.batch(vec![Statement::new(sql, values)]).await?));
            }
            Ok(held)
        })
    }

    fn get<'a>(
        &'a self,
        keys: &'a KeyRing,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<JournaledRun>, JournalProblem>> {
        Box::pin(async move {
            let sql = format!("SELECT {COLUMNS} FROM journaled_runs WHERE id = $1");
            let rows = self.batch(vec![Statement::new(sql, [id.into()])]).await?;
            rows.first().map(|row| run(keys, id, row)).transpose()
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a KeyRing,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<(JournaledRun, String)>, JournalProblem>> {
        Box::pin(async move {
            let sql = format!("SELECT {COLUMNS}, header FROM journaled_runs WHERE id = $1");
            let rows = self.batch(vec![Statement::new(sql, [id.into()])]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            Ok(Some((run(keys, id, row)?, open(keys, HEADER, id, "", &row[7])?)))
        })
    }

    fn entries<'a>(&'a self, keys: &'a KeyRing, id: &'a str) -> BoxFuture<'a, Result<Vec<String>, JournalProblem>> {
        Box::pin(async move {
            let sql = "SELECT number, sealed FROM journal_entries WHERE run = $1 ORDER BY number";
            let rows = self.batch(vec![Statement::new(sql, [id.into()])]).await?;
            let entries = rows.iter().enumerate().map(|(at, row)| {
                // A row that is missing would be a call that is made again.
                if row[0].int() != at as i64 {
                    return Err(SealError::Tampered.into());
                }
                Ok(open(keys, ENTRY, id, &row[0].int().to_string(), &row[1])?)
            });
            entries.collect()
        })
    }

    fn retain(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.batch(vec![Statement::new(RETAIN, [self.now_ms().into()])]).await.map(drop) })
    }
}
