//! Runs that outlive the process which has begun them: their journals, and who evaluates them.
//!
//! A journal is sealed and stored. From then on each line is stored before its calls are made, or before the script gets
//! its answers. With `durable.enabled` that is so from the first call of a run. Else the journal is in memory while the run
//! has not paused. When all its calls wait for a person, the journal is stored, and the run leaves the memory. When a
//! person has decided on a call, or the process of a run has died, a process takes the run over and replays it.
//!
//! With a [`DurableEngine`] that one keeps the journals, and its workers evaluate the runs; here they are only submitted.

mod engine;
mod header;
mod line;
mod open;
mod owner;
mod recorder;
mod start;

use super::Hub;
use agentscript::Dialect;
use codecall_base::event::RunId;
use codecall_base::offload;
use codecall_base::tool::ToolDirectory;
use codecall_config::{Config, DurableConfig};
use codecall_runs::{ExecuteRequest, Recorder, Resumption};
use codecall_store::sealed::{KeyRing, KeySource, SealError};
use codecall_store::{
    ApprovalRequest, ApprovalRequests, ApprovalState, CachedKeys, Database, Hold, JournalProblem, JournalStore,
    JournaledRun, JournaledState, Lease, RunResults, Spent, SqlApprovalRequests, SqlJournals, SqlRunResults,
    StoreError, Submitted, VaultError, now_ms,
};
pub use engine::{DurableEngine, EngineProblem, Found};
use header::Header;
use line::{FORMAT, last_time, rounds};
use open::Open;
pub use open::OpenRun;
pub(crate) use recorder::PASSING;
pub use recorder::StoreRecorder;
use sha2::{Digest as _, Sha256};
pub use start::{Owner, Start, Started, interpreter};
use std::collections::{HashMap, HashSet, hash_map};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a server that ends waits for what its runs store at last.
const CLOSE_GRACE: Duration = Duration::from_secs(2);
/// The limit of the length of a result.
const MAX_RESULT_BYTES: &str = "maxResultBytes";
/// How long a call waits for an answer of the store that says in time that this process has the run.
const CHECK_LIMIT: Duration = Duration::from_secs(30);
/// How long after the store could not be read it is read again.
const CHECK_AGAIN: Duration = Duration::from_millis(100);
/// The version of the interpreter: a run goes on with the one that has begun it.
const INTERPRETER: &str = concat!("agentscript ", env!("CARGO_PKG_VERSION"));

/// The runs of a server that can outlive it.
pub struct Durable {
    database: Database,
    journals: Arc<dyn JournalStore>,
    results: Arc<dyn RunResults>,
    requests: Arc<dyn ApprovalRequests>,
    keys: CachedKeys,
    lease: Lease,
    /// Maximum size of a journal, in bytes.
    max_journal_bytes: usize,
    /// Whether this process takes runs over, and so lets its own pause.
    is_serving: AtomicBool,
    /// The runs that this process evaluates, with what cancels them.
    open: Mutex<HashMap<String, Arc<Open>>>,
    /// Notified when a run can be taken over.
    ready: Notify,
    /// The engine that keeps the journals of durable runs in place of the store.
    engine: Option<Arc<dyn DurableEngine>>,
}

/// A run that goes on.
pub struct Resumed {
    /// The id of the run.
    pub id: RunId,
    /// Its request, with its journal.
    pub request: ExecuteRequest,
    /// How its client names itself.
    pub client: Option<Arc<str>>,
    /// The client of the HTTP server that it belongs to.
    pub principal: Option<String>,
    /// The permissions of that client when it began the run.
    pub permissions: Option<String>,
    /// The longest result that its client gets.
    pub max_result_bytes: u64,
    /// Its journal.
    pub journal: Arc<StoreRecorder>,
}

/// Why a run cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotResumed {
    /// Here, at the moment.
    Now(String),
    /// Somebody has cancelled it.
    Cancelled,
    /// It never can: its journal is damaged, or of another version.
    Never(String),
}

impl From<JournalProblem> for NotResumed {
    fn from(problem: JournalProblem) -> Self {
        match problem {
            JournalProblem::Seal(SealError::Tampered) => {
                Self::Never("its journal is damaged, or was changed, or is not complete".into())
            }
            JournalProblem::Seal(_) | JournalProblem::Store(_) | JournalProblem::Lost | JournalProblem::Engine(_) => {
                Self::Now(problem.to_string())
            }
        }
    }
}

/// Where a run stands, for its client.
pub enum RunState {
    /// It waits for these requests, or is evaluated.
    Open(Vec<ApprovalRequest>),
    /// It has ended: what [`Durable::end`] was given.
    Ended(String),
}

impl Durable {
    /// Creates the runs of a database. The engine keeps their journals if the configuration says so.
    ///
    /// # Errors
    /// The configuration says so, and there is no engine.
    pub fn new(
        database: &Database,
        config: &DurableConfig,
        engine: Option<Arc<dyn DurableEngine>>,
    ) -> Result<Arc<Self>, EngineProblem> {
        let engine = engine.filter(|_| config.has_engine());
        if config.has_engine() && engine.is_none() {
            let problem = "'durable' names an engine for the journals of runs: give the hub one (Extensions::engine)";
            return Err(EngineProblem(problem.to_owned()));
        }
        Ok(Arc::new(Self {
            database: database.clone(),
            journals: Arc::new(SqlJournals::new(database.clone())),
            results: Arc::new(SqlRunResults(database.clone())),
            requests: Arc::new(SqlApprovalRequests(database.clone())),
            keys: CachedKeys::new(database.clone()),
            lease: Lease { owner: RunId::random().as_str().to_owned(), duration: config.lease },
            max_journal_bytes: config.max_journal_bytes,
            is_serving: AtomicBool::new(false),
            open: Mutex::default(),
            ready: Notify::new(),
            engine,
        }))
    }

    /// Returns what keeps the journals of durable runs in place of the store; `None`: the store does.
    #[must_use]
    pub fn engine(&self) -> Option<&Arc<dyn DurableEngine>> {
        self.engine.as_ref()
    }

    /// Returns why a run does not go on, as far as the engine says so.
    pub async fn trouble(&self, id: &RunId) -> Option<String> {
        self.engine.as_ref()?.trouble(id).await
    }

    /// Returns the id of a run of a client, made of any other one.
    #[must_use]
    pub fn id_for(&self, hub: &Hub, id: RunId) -> RunId {
        self.id_of_owner(hub.principal.as_ref().map(|principal| &*principal.owner), id)
    }

    /// Does the same for the key of a client.
    pub(crate) fn id_of_owner(&self, owner: Option<&str>, id: RunId) -> RunId {
        if self.engine.is_some() { start::owned_by(owner, &id) } else { id }
    }

    fn now_ms(&self) -> i64 {
        self.database.now_ms()
    }

    fn open_runs(&self) -> MutexGuard<'_, HashMap<String, Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this process evaluates a run.
    #[must_use]
    pub fn is_open(&self, id: &str) -> bool {
        self.open_runs().contains_key(id)
    }

    /// Notes that this process begins a run, which `parent` cancels too; `None`: it evaluates the run already.
    #[must_use]
    pub fn open_alone(self: &Arc<Self>, id: &str, parent: &CancellationToken) -> Option<OpenRun> {
        let open = Open::new(Hold::first(id), parent.child_token());
        match self.open_runs().entry(id.to_owned()) {
            hash_map::Entry::Occupied(_) => return None,
            hash_map::Entry::Vacant(place) => drop(place.insert(Arc::clone(&open))),
        }
        Some(OpenRun { durable: Arc::clone(self), open, has_ended: false })
    }

    fn open_held(self: &Arc<Self>, hold: Hold, parent: &CancellationToken) -> OpenRun {
        let open = Open::new(hold, parent.child_token());
        self.open_runs().insert(open.hold.id.clone(), Arc::clone(&open));
        OpenRun { durable: Arc::clone(self), open, has_ended: false }
    }

    /// Forgets a run, unless this process has taken it over again meanwhile.
    fn close_run(&self, open: &Open) {
        let mut runs = self.open_runs();
        if runs.get(&open.hold.id).is_some_and(|known| known.hold == open.hold) {
            runs.remove(&open.hold.id);
        }
    }

    /// Checks that this process has a run, by the clock of the store: right before a call of it is sent. While the
    /// store cannot be
    /// read, it waits for as long as a lease.
    async fn check(&self, hold: &Hold) -> Result<(), JournalProblem> {
        let began = Instant::now();
        loop {
            let asked = Instant::now();
            match self.journals.check(&self.lease, hold).await {
                // After the answer at least half of the lease is left, less than what it took.
                Ok(()) if asked.elapsed() < self.lease.duration / 4 => return Ok(()),
                // This process may have stood still.
                Ok(()) if began.elapsed() < CHECK_LIMIT => {}
                Ok(()) => return Err(StoreError("it answers too late for the lease (durable.leaseMs)".into()).into()),
                Err(JournalProblem::Store(_)) if began.elapsed() < self.lease.duration => {
                    tokio::time::sleep(CHECK_AGAIN).await;
                }
                Err(problem) => return Err(problem),
            }
        }
    }

    /// Resolves when a run may be there that can be taken over.
    pub async fn ready(&self) {
        self.ready.notified().await;
    }

    /// Returns the requests that wait for people.
    #[must_use]
    pub fn requests(&self) -> &Arc<dyn ApprovalRequests> {
        &self.requests
    }

    /// Lets runs pause: this process takes over those that can go on.
    pub fn begin_serving(&self) {
        self.is_serving.store(true, Ordering::Relaxed);
    }

    /// Lets go of all runs of this process, which evaluates none any more.
    pub(super) async fn close(&self) {
        if !self.is_serving.swap(false, Ordering::Relaxed) {
            return;
        }
        let began = Instant::now();
        while !self.open_runs().is_empty() && began.elapsed() < CLOSE_GRACE {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        if let Err(error) = self.journals.release_all(&self.lease).await {
            tracing::warn!("other servers go on with durable runs when their lease is over: {error}");
        }
    }

    /// How often the leases of this process have to be renewed.
    #[must_use]
    pub fn renewal(&self) -> Duration {
        self.lease.duration / 3
    }

    /// Returns the keys that seal journals, and what else outlives a process. Makes a key if there is none.
    ///
    /// # Errors
    /// There is a key that cannot be used, or none can be made.
    pub async fn keys(&self, config: &Config) -> Result<Arc<KeyRing>, VaultError> {
        self.keys.get(&KeySource::of(config)).await
    }

    /// Returns a journal for a run that may have to wait for a person; `None`: it does not pause.
    pub(super) async fn journal(
        self: &Arc<Self>,
        hub: &Hub,
        id: &RunId,
        request: &ExecuteRequest,
    ) -> Option<Arc<dyn Recorder>> {
        if self.engine.is_some() || !self.is_serving.load(Ordering::Relaxed) || !can_be_journaled(request) {
            return None;
        }
        let keys = match self.keys(hub.config()).await {
            Ok(keys) => keys,
            Err(error) => {
                tracing::warn!("runs do not wait for people: {error}");
                return None;
            }
        };
        let open = Open::new(Hold::first(id.as_str()), CancellationToken::new());
        Some(Arc::new(StoreRecorder::new(&open, self, hub, keys, Header::new(hub, request, now_ms()), false)))
    }

    /// Returns a journal for a run of a client that is stored from its first call on; `None`: its kind of run is not durable,
    /// or this process does not take runs over.
    ///
    /// # Errors
    /// Journals cannot be sealed.
    pub async fn durable_journal(
        self: &Arc<Self>,
        hub: &Hub,
        open: &OpenRun,
        request: &ExecuteRequest,
    ) -> Result<Option<Arc<StoreRecorder>>, JournalProblem> {
        if !self.is_serving.load(Ordering::Relaxed) || !can_be_journaled(request) {
            return Ok(None);
        }
        let keys = self.keys(hub.config()).await?;
        let header = Header::new(hub, request, now_ms());
        Ok(Some(Arc::new(StoreRecorder::new(&open.open, self, hub, keys, header, true))))
    }

    /// Submits a run to the engine, and returns its outcome if it ends within so long. `None`: whether it was taken is
    /// not known; to
    /// submit it again does no harm.
    pub async fn run_within(&self, hub: &Hub, id: &RunId, request: &ExecuteRequest, wait: Duration) -> Option<String> {
        let engine = self.engine.as_ref()?;
        let start = start_of(&**engine, hub, request).await.ok()?;
        match engine.run(id, &start, wait).await {
            Ok(Found::Ended(outcome)) => Some(outcome),
            Ok(Found::Open | Found::Unknown) | Err(_) => None,
        }
    }

    /// Stores a run that this process, or another one, begins as soon as it can. `Known`: there is one of its id.
    ///
    /// # Errors
    /// Its journal cannot be stored.
    pub async fn submit(&self, hub: &Hub, id: &RunId, request: &ExecuteRequest) -> Result<Submitted, JournalProblem> {
        if let Some(engine) = &self.engine {
            return submit_to(&**engine, hub, id, request).await;
        }
        let keys = self.keys(hub.config()).await?;
        let seed = RunId::random().as_str().get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let header =
            Header { format: Some(FORMAT), seed: seed.unwrap_or_default(), ..Header::new(hub, request, now_ms()) };
        let run = JournaledRun {
            id: id.as_str().to_owned(),
            state: JournaledState::Running,
            principal: hub.principal.as_ref().map(|principal| principal.owner.to_string()),
            began_ms: self.now_ms(),
            active_ms: 0,
            resumed_ms: Some(0),
            is_cancelled: false,
            outcome: None,
        };
        let header = serde_json::to_string(&header).map_err(|error| StoreError(error.to_string()))?;
        let submitted = self.journals.submit(&keys, &run, &header, hub.config().durable.max_open).await?;
        self.ready.notify_one();
        Ok(submitted)
    }

    /// Whether a run of a client is the one that is requested.
    ///
    /// # Errors
    /// Its journal cannot be read.
    pub async fn is_same(&self, hub: &Hub, id: &RunId, request: &ExecuteRequest) -> Result<bool, JournalProblem> {
        if let Some(engine) = &self.engine {
            let now = Start::new(hub, request, "");
            return Ok(engine.request(id).await? == now.request());
        }
        let keys = self.keys(hub.config()).await?;
        let Some((_, header)) = self.journals.read(&keys, id.as_str()).await? else { return Ok(false) };
        let Ok(mut before) = serde_json::from_str::<Header>(&header) else { return Ok(false) };
        let now = Header::new(hub, request, now_ms());
        // These follow from the time and the version, and not from the request.
        before.format = now.format;
        (before.interpreter, before.seed, before.began_ms) = (now.interpreter.clone(), now.seed, now.began_ms);
        (before.client, before.permissions) = (now.client.clone(), now.permissions.clone());
        // A run that is submitted gets room for a long result when it begins.
        let result_bytes = now.limits.get(MAX_RESULT_BYTES).copied();
        before.limits.extend(result_bytes.map(|bytes| (MAX_RESULT_BYTES.to_owned(), bytes)));
        before.scopes.clone_from(&now.scopes);
        let is_own = self.own_run(hub, id).await?.is_some();
        Ok(is_own && serde_json::to_value(&before).ok() == serde_json::to_value(&now).ok())
    }

    /// Cancels a run of a client, wherever it is. `false`: it has none of this id that is open.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn cancel(&self, hub: &Hub, id: &RunId) -> Result<bool, JournalProblem> {
        let Some(RunState::Open(_)) = self.run_state(hub, id).await? else { return Ok(false) };
        if let Some(engine) = &self.engine {
            engine.cancel(id).await?;
            return Ok(true);
        }
        let is_open = self.journals.cancel(id.as_str()).await?;
        if let Some(open) = self.open_runs().get(id.as_str()) {
            open.cancel.cancel();
        }
        self.ready.notify_one();
        Ok(is_open)
    }

    /// Cancels a run that this process evaluates, whoever its client is. `false`: it evaluates none of this id.
    ///
    /// # Errors
    /// The store cannot be used.
    pub(super) async fn cancel_evaluated(&self, id: &RunId) -> Result<bool, JournalProblem> {
        if !self.is_open(id.as_str()) {
            return Ok(false);
        }
        self.journals.cancel(id.as_str()).await?;
        if let Some(open) = self.open_runs().get(id.as_str()) {
            open.cancel.cancel();
        }
        Ok(true)
    }

    /// Cancels the runs of this process that were cancelled at another one.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn cancel_open(&self) -> Result<(), StoreError> {
        if self.open_runs().is_empty() {
            return Ok(());
        }
        let cancelled = self.journals.cancelled(&self.lease).await?;
        let open = self.open_runs();
        cancelled.iter().filter_map(|id| open.get(id)).for_each(|open| open.cancel.cancel());
        Ok(())
    }

    /// Takes over runs that can go on, at most so many. Those in `not` are left out.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn claim(self: &Arc<Self>, not: &[String], max: usize) -> Result<Vec<OpenRun>, StoreError> {
        // If the store could not be written for as long as a lease, those of this process look as if it had died.
        let not: Vec<String> = not.iter().cloned().chain(self.open_runs().keys().cloned()).collect();
        let claimed = self.journals.claim(&self.lease, &not, max).await?;
        let open = |hold| {
            let run = self.open_held(hold, &CancellationToken::new());
            run.open.is_stored.store(true, Ordering::Relaxed);
            run
        };
        Ok(claimed.into_iter().map(open).collect())
    }

    /// Holds the runs that this process evaluates for longer, and ends those here that another process has taken over.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn renew(&self) -> Result<(), StoreError> {
        let is_stored = |open: &Arc<Open>| open.is_stored.load(Ordering::Relaxed);
        let open: Vec<Arc<Open>> = self.open_runs().values().filter(|open| is_stored(open)).cloned().collect();
        let ids: Vec<String> = open.iter().map(|open| open.hold.id.clone()).collect();
        let held = self.journals.renew(&self.lease, &ids).await?;
        let held: HashSet<(&str, i64)> = held.iter().map(|hold| (&*hold.id, hold.fence)).collect();
        // One that has paused or ended meanwhile has no lease.
        let lost = open.iter().filter(|open| is_stored(open) && !held.contains(&(&*open.hold.id, open.hold.fence)));
        lost.for_each(|open| open.lose());
        Ok(())
    }

    /// Ends requests whose time is over, and deletes what is no longer kept.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn expire(&self, config: &Config) -> Result<(), StoreError> {
        let keep = i64::try_from(config.approval.keep.as_millis()).unwrap_or(i64::MAX);
        self.database.keep_clock().await.map_err(|problem| self.database.error(&problem))?;
        self.requests.expire(self.now_ms().saturating_sub(keep)).await?;
        self.journals.retain().await?;
        self.results.retain().await
    }

    /// Reads a run that this process has taken over.
    ///
    /// # Errors
    /// Its journal cannot be read, is damaged, or another version has begun the run.
    pub async fn resume(self: &Arc<Self>, config: &Config, open: &OpenRun) -> Result<Resumed, NotResumed> {
        let id = open.id();
        let damaged = |what: &str| NotResumed::Never(format!("its {what} is damaged"));
        let keys = self.keys(config).await.map_err(JournalProblem::from)?;
        let (run, header) = self.journals.read(&keys, id).await?.ok_or_else(|| damaged("row"))?;
        if run.is_cancelled {
            return Err(NotResumed::Cancelled);
        }
        let header: Header = serde_json::from_str(&header).map_err(|_| damaged("header"))?;
        if header.interpreter != INTERPRETER {
            let message = format!("it was begun by {}, and this is {INTERPRETER}", header.interpreter);
            return Err(NotResumed::Never(message));
        }
        if let Some(format) = header.format.filter(|format| *format > FORMAT) {
            return Err(NotResumed::Never(format!(
                "its journal has format {format}, and this version reads up to {FORMAT}"
            )));
        }
        let entries = self.journals.entries(&keys, id).await?;
        let lines = entries.iter().flat_map(|entry| entry.lines());
        let rounds = rounds(lines).ok_or_else(|| damaged("journal"))?;
        let age = u64::try_from(self.now_ms().saturating_sub(run.began_ms)).unwrap_or_default();
        // A clock that was set back does not let time run backwards.
        let seen = last_time(&rounds);
        let age = Duration::from_millis(age.max(seen));
        let run_id = RunId::parse(id).ok_or_else(|| damaged("id"))?;
        let mut policy = header.policy().ok_or_else(|| damaged("list of limits"))?;
        let limit = &mut policy.limits.max_duration_ms;
        let spent = match run.resumed_ms {
            // What it took in a process that has died is known from its last entry.
            Some(resumed) => run.active_ms.saturating_add(seen.saturating_sub(resumed)),
            None if run.active_ms > 0 => run.active_ms,
            None => seen,
        };
        let now = Spent { active_ms: spent, script_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX) };
        self.journals.resume(&self.lease, &open.open.hold, now).await?;
        let left = limit.saturating_sub(spent).max(1_000);
        // Its clock goes on, and the time in which it waited does not count.
        *limit = left.saturating_add(now.script_ms);
        let client: Option<Arc<str>> = header.client.as_deref().map(Into::into);
        let (permissions, max_result_bytes) = (header.permissions.clone(), header.max_result_bytes);
        let journal = Arc::new(StoreRecorder::resumed(
            &open.open,
            self,
            keys,
            &run,
            now,
            header.clone(),
            &entries,
            Resumption { rounds, age },
        ));
        let request = ExecuteRequest {
            language: header.language,
            context: header.context,
            allowed_tools: header.allowed_tools,
            allowed_apps: header.allowed_apps,
            journal: Some(Arc::clone(&journal) as _),
            id: Some(run_id.clone()),
            ..ExecuteRequest::new(header.script, policy)
        };
        Ok(Resumed { id: run_id, request, client, principal: run.principal, permissions, max_result_bytes, journal })
    }

    /// Stores the outcome of a run that this process has taken over: what its client gets, and a long result of which
    /// that has the
    /// beginning.
    ///
    /// # Errors
    /// The store cannot be used, or another process has the run.
    pub async fn end(
        &self,
        config: &Config,
        open: &OpenRun,
        outcome: &str,
        long: Option<&str>,
    ) -> Result<(), JournalProblem> {
        let keys = self.keys(config).await?;
        let keep = config.approval.keep.max(config.durable.keep);
        let keep = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
        let keep_until = self.now_ms().saturating_add(keep);
        let hold = &open.open.hold;
        open.open.is_stored.store(false, Ordering::Relaxed);
        if let Some(long) = long {
            self.results.put(&keys, &self.lease, hold, long, keep_until).await?;
        }
        self.journals.end(&keys, &self.lease, hold, outcome, keep_until).await
    }

    /// Returns the long result of a run of a client that has ended; `None`: it has none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn long_result(&self, hub: &Hub, id: &RunId) -> Result<Option<String>, JournalProblem> {
        match self.run_state(hub, id).await? {
            Some(RunState::Ended(_)) => self.results.get(&*self.keys(hub.config()).await?, id.as_str()).await,
            Some(RunState::Open(_)) | None => Ok(None),
        }
    }

    /// Withdraws what a run has asked that has ended.
    pub async fn withdraw(&self, run: &RunId) {
        let withdrawing = async {
            for request in self.requests.of_run(run.as_str()).await? {
                self.requests.withdraw(&request.id).await?;
            }
            Ok::<(), StoreError>(())
        };
        if let Err(error) = withdrawing.await {
            tracing::warn!(%run, "approvals of a run that has ended: {error}");
        }
    }

    /// Returns where a run of a client stands; `None`: there is none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn run_state(&self, hub: &Hub, id: &RunId) -> Result<Option<RunState>, JournalProblem> {
        self.standing_within(hub, id, Duration::ZERO).await
    }

    /// Does the same once the run has ended, or after so long. If the store keeps the journals, it is read at once.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn standing_within(
        &self,
        hub: &Hub,
        id: &RunId,
        wait: Duration,
    ) -> Result<Option<RunState>, JournalProblem> {
        if let Some(engine) = &self.engine {
            // The id says nothing to another client.
            if !start::is_own(hub, id) {
                return Ok(None);
            }
            return match engine.find(id, wait).await? {
                Found::Ended(outcome) => Ok(Some(RunState::Ended(outcome))),
                Found::Unknown => Ok(None),
                Found::Open => self.open_state(id).await.map(Some),
            };
        }
        // The id says nothing to another client.
        let Some(run) = self.own_run(hub, id).await? else { return Ok(None) };
        Ok(Some(match (run.state, run.outcome) {
            (JournaledState::Ended, Some(outcome)) => RunState::Ended(outcome),
            (JournaledState::Ended | JournaledState::Running | JournaledState::Waiting, _) => {
                self.open_state(id).await?
            }
        }))
    }

    async fn open_state(&self, id: &RunId) -> Result<RunState, JournalProblem> {
        let requests = self.requests.of_run(id.as_str()).await?;
        let waits = |request: &ApprovalRequest| request.state == ApprovalState::Waiting;
        Ok(RunState::Open(requests.into_iter().filter(waits).collect()))
    }
}

/// Submits a run to an engine, with the tools that it can look up.
async fn submit_to(
    engine: &dyn DurableEngine,
    hub: &Hub,
    id: &RunId,
    request: &ExecuteRequest,
) -> Result<Submitted, JournalProblem> {
    let start = start_of(engine, hub, request).await?;
    Ok(if engine.submit(id, &start).await? { Submitted::Stored } else { Submitted::Known })
}

/// Returns what a run on an engine begins with, whose tools are stored there.
async fn start_of(engine: &dyn DurableEngine, hub: &Hub, request: &ExecuteRequest) -> Result<String, JournalProblem> {
    if !can_be_journaled(request) {
        return Err(JournalProblem::Engine("runs of this kind are not durable".into()));
    }
    let texts = [&*request.script, request.context.as_deref().unwrap_or_default()];
    let limit = Duration::from_millis(request.policy.limits.tool_timeout_ms);
    let _ = tokio::time::timeout(limit, hub.catalogue().wait_for_mentioned(&texts)).await;
    let directory = hub.runs().directory();
    let digest = match engine.stored_tools(directory.id()) {
        Some(digest) => digest,
        None => store_tools(engine, &directory).await?,
    };
    let start = Start::new(hub, request, &digest);
    Ok(serde_json::to_string(&start).map_err(|error| StoreError(error.to_string()))?)
}

/// Stores a directory of tools at an engine. Returns its digest.
async fn store_tools(engine: &dyn DurableEngine, directory: &ToolDirectory) -> Result<String, JournalProblem> {
    let bytes = directory.to_bytes().map_err(|problem| JournalProblem::Engine(problem.to_owned()))?;
    let digest = offload::run(bytes.len(), || start::hex(&Sha256::digest(bytes))).await;
    let digest = digest.map_err(|busy| JournalProblem::Engine(busy.to_string()))?;
    engine.store_tools(directory.id(), &digest, bytes).await?;
    Ok(digest)
}

/// Whether runs of its kind can be journaled here: those of clients, without `fetch`.
fn can_be_journaled(request: &ExecuteRequest) -> bool {
    let is_own = request.journal.is_none() && request.seed.is_none() && request.parent.is_none();
    is_own && request.dialect == Dialect::Async && request.fetch.is_none() && !request.dry_run
}
