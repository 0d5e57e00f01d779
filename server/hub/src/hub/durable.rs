//! Runs that outlive the process which has begun them: their journals, and who evaluates them.
//!
//! While a run has not paused, its journal is in memory. When all its calls wait for a person, the journal is stored, sealed,
//! and the run leaves the memory; only its process knows it before. When a call was decided, a process takes the run over and
//! replays it. From then on an entry is stored before what it says happens.

use super::Hub;
use agentscript::{Call, CallId, CallKind, Dialect, Event, LIMITS, Language, Limits, Loops, Policy, Preset, ToolError};
use codecall_base::call::client;
use codecall_base::event::RunId;
use codecall_base::tool::ToolLookups;
use codecall_config::{ApprovalConfig, Config};
use codecall_runs::{ExecuteRequest, JournalError, Past, PastRound, RunJournal, StartInputs};
use codecall_store::sealed::{self, KeyRing, SealError};
use codecall_store::{
    ApprovalRequest, ApprovalRequests, ApprovalState, BoxFuture, Database, JournalProblem, JournalStore, JournaledRun,
    JournaledState, Lease, SqlApprovalRequests, SqlJournals, StoreError, now_ms,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a process holds a run without renewing. A process renews three times as often.
const LEASE: Duration = Duration::from_secs(15);
/// Maximum size of a journal, in bytes. A run with a longer one does not pause.
const MAX_JOURNAL_BYTES: usize = 16 << 20;
/// The version of the interpreter: a run goes on with the one that has begun it.
const INTERPRETER: &str = concat!("agentscript ", env!("CARGO_PKG_VERSION"));

/// The runs of a server that can outlive it.
pub struct Durable {
    journals: Arc<dyn JournalStore>,
    requests: Arc<dyn ApprovalRequests>,
    keys: OnceLock<Arc<KeyRing>>,
    lease: Lease,
    /// Whether this process takes runs over, and so lets its own pause.
    is_serving: AtomicBool,
}

/// What a run was begun with.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    /// The version of the interpreter.
    interpreter: String,
    script: String,
    language: Option<String>,
    context: Option<String>,
    allowed_tools: Option<Vec<String>>,
    allowed_apps: Option<Vec<String>>,
    limits: BTreeMap<String, u64>,
    loops: String,
    allow_console: bool,
    timers: bool,
    disabled_builtins: Vec<String>,
    disabled_globals: Vec<String>,
    seed: u64,
    /// The time that the script sees at its beginning, in milliseconds since 1970.
    began_ms: i64,
    /// How the client names itself.
    client: Option<String>,
    /// What the client of the HTTP server may use.
    permissions: Option<String>,
    /// The longest result that its client gets.
    max_result_bytes: u64,
}

/// An entry of a journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Entry {
    /// Calls that the script has made.
    Calls(Vec<CallEntry>),
    /// What came before its next calls.
    Events(Vec<EventEntry>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallEntry {
    id: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_function: bool,
    tool: String,
    input: String,
    timeout_ms: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum EventEntry {
    Answer { id: u32, result: String },
    Failure { id: u32, message: String, code: String, details: Option<String>, fatal: bool },
    Time(u64),
    Cancel,
}

impl From<&Call> for CallEntry {
    fn from(call: &Call) -> Self {
        let Call { id: CallId(id), kind, tool, input, timeout_ms } = call.clone();
        Self { id, is_function: kind == CallKind::Function, tool, input, timeout_ms }
    }
}

impl From<CallEntry> for Call {
    fn from(CallEntry { id, is_function, tool, input, timeout_ms }: CallEntry) -> Self {
        let kind = if is_function { CallKind::Function } else { CallKind::Tool };
        Self { id: CallId(id), kind, tool, input, timeout_ms }
    }
}

impl From<&Event> for EventEntry {
    fn from(event: &Event) -> Self {
        match event.clone() {
            Event::Settled { id: CallId(id), result: Ok(result) } => Self::Answer { id, result },
            Event::Settled { id: CallId(id), result: Err(ToolError { message, code, details, fatal }) } => {
                Self::Failure { id, message, code, details, fatal }
            }
            Event::Time(ms) => Self::Time(ms),
            Event::Cancel => Self::Cancel,
        }
    }
}

impl From<EventEntry> for Event {
    fn from(event: EventEntry) -> Self {
        match event {
            EventEntry::Answer { id, result } => Self::Settled { id: CallId(id), result: Ok(result) },
            EventEntry::Failure { id, message, code, details, fatal } => {
                Self::Settled { id: CallId(id), result: Err(ToolError { message, code, details, fatal }) }
            }
            EventEntry::Time(ms) => Self::Time(ms),
            EventEntry::Cancel => Self::Cancel,
        }
    }
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
    /// What that client could use when it began the run.
    pub permissions: Option<String>,
    /// The longest result that its client gets.
    pub max_result_bytes: u64,
}

/// Why a run cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotResumed {
    /// Here, at the moment.
    Now(String),
    /// It never can: its journal is damaged, or of another version.
    Never(String),
}

impl From<JournalProblem> for NotResumed {
    fn from(problem: JournalProblem) -> Self {
        match problem {
            JournalProblem::Seal(SealError::Tampered) => Self::Never(problem.to_string()),
            JournalProblem::Seal(_) | JournalProblem::Store(_) | JournalProblem::Lost => Self::Now(problem.to_string()),
        }
    }
}

/// Where a run stands, for its client.
pub enum Standing {
    /// It waits for these requests, or is evaluated.
    Open(Vec<ApprovalRequest>),
    /// It has ended: what [`Durable::end`] was given.
    Ended(String),
}

impl Durable {
    /// Creates the runs of a database.
    #[must_use]
    pub fn new(database: &Database) -> Arc<Self> {
        Arc::new(Self {
            journals: Arc::new(SqlJournals(database.clone())),
            requests: Arc::new(SqlApprovalRequests(database.clone())),
            keys: OnceLock::new(),
            lease: Lease { owner: RunId::random().as_str().to_owned(), duration: LEASE },
            is_serving: AtomicBool::new(false),
        })
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

    /// How often the leases of this process have to be renewed.
    #[must_use]
    pub fn renewal(&self) -> Duration {
        self.lease.duration / 3
    }

    /// Returns the keys that seal journals. Makes a key if there is none.
    fn keys(&self, config: &Config) -> Result<Arc<KeyRing>, SealError> {
        if let Some(keys) = self.keys.get() {
            return Ok(Arc::clone(keys));
        }
        let loaded = match KeyRing::load(config) {
            Err(SealError::NoKey) => {
                let path = sealed::key_file(config).ok_or(SealError::NoKey)?;
                sealed::add_key(&path)?;
                tracing::warn!("made a master key for the journals of waiting runs: {}", path.display());
                KeyRing::load(config)?
            }
            loaded => loaded?,
        };
        Ok(Arc::clone(self.keys.get_or_init(|| Arc::new(loaded))))
    }

    /// Returns a journal for a run that may have to wait for a person; `None`: it does not pause.
    pub(super) fn journal(
        self: &Arc<Self>,
        hub: &Hub,
        id: &RunId,
        request: &ExecuteRequest,
    ) -> Option<Arc<dyn RunJournal>> {
        let is_own = request.journal.is_none() && request.seed.is_none() && request.parent.is_none();
        let is_script = request.dialect == Dialect::Async && request.fetch.is_none() && !request.dry_run;
        if !self.is_serving.load(Ordering::Relaxed) || !is_own || !is_script {
            return None;
        }
        let keys = match self.keys(hub.config()) {
            Ok(keys) => keys,
            Err(error) => {
                tracing::warn!("runs do not wait for people: {error}");
                return None;
            }
        };
        // Runs with `fetch` do not come here.
        let Policy { limits, loops, allow_console, timers, fetch: _, disabled_builtins, disabled_globals } =
            &request.policy;
        let header = Header {
            interpreter: INTERPRETER.to_owned(),
            script: request.script.to_string(),
            language: request.language.map(|language| language_name(language).to_owned()),
            context: request.context.clone(),
            allowed_tools: request.allowed_tools.clone(),
            allowed_apps: request.allowed_apps.clone(),
            limits: LIMITS.iter().map(|limit| (limit.name.to_owned(), limit.get(limits))).collect(),
            loops: loops_name(*loops).to_owned(),
            allow_console: *allow_console,
            timers: *timers,
            disabled_builtins: disabled_builtins.clone(),
            disabled_globals: disabled_globals.clone(),
            seed: 0,
            began_ms: now_ms(),
            client: client().map(|name| name.to_string()),
            permissions: hub.principal.as_ref().map(super::Principal::permissions),
            max_result_bytes: hub.config().policy.limits.max_result_bytes,
        };
        Some(Arc::new(Journal {
            durable: Arc::clone(self),
            keys,
            id: id.as_str().to_owned(),
            principal: hub.principal.as_ref().map(|principal| principal.name.to_string()),
            state: Mutex::new(State { header, active_ms: 0, entries: Vec::new(), bytes: 0, past: 0, stored: None }),
            began: Instant::now(),
            past: Mutex::default(),
        }))
    }

    /// Takes over a run that can go on. Those in `not` are left out.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn claim(&self, not: &[String]) -> Result<Option<String>, StoreError> {
        self.journals.claim(&self.lease, not).await
    }

    /// Holds the runs of this process for longer.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn renew(&self) -> Result<(), StoreError> {
        self.journals.renew(&self.lease).await
    }

    /// Ends requests whose time is over, and deletes what is no longer kept.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn expire(&self, config: &ApprovalConfig) -> Result<(), StoreError> {
        let keep = i64::try_from(config.keep.as_millis()).unwrap_or(i64::MAX);
        self.requests.expire(now_ms().saturating_sub(keep)).await?;
        self.journals.retain().await
    }

    /// Lets go of a run that this process has taken over, so that another one can take it.
    ///
    /// # Errors
    /// The store cannot be used.
    pub async fn release(&self, id: &str) -> Result<(), StoreError> {
        self.journals.release(&self.lease, id).await
    }

    /// Reads a run that this process has taken over.
    ///
    /// # Errors
    /// Its journal cannot be read, is damaged, or another version has begun the run.
    pub async fn resume(self: &Arc<Self>, config: &Config, id: &str) -> Result<Resumed, NotResumed> {
        let damaged = |what: &str| NotResumed::Never(format!("its {what} is damaged"));
        let keys = self.keys(config).map_err(JournalProblem::from)?;
        let run = self.journals.get(&keys, id).await?;
        let run = run.ok_or_else(|| damaged("row"))?;
        let header: Header = serde_json::from_str(&run.header).map_err(|_| damaged("header"))?;
        if header.interpreter != INTERPRETER {
            let message = format!("it was begun by {}, and this is {INTERPRETER}", header.interpreter);
            return Err(NotResumed::Never(message));
        }
        let entries = self.journals.entries(&keys, id).await?;
        let texts = entries.iter().flat_map(|entry| entry.lines());
        let parsed: Result<Vec<Entry>, _> = texts.map(serde_json::from_str::<Entry>).collect();
        let parsed = parsed.map_err(|_| damaged("journal"))?;
        let count = parsed.len();
        let rounds = rounds(parsed).ok_or_else(|| damaged("journal"))?;
        let age = u64::try_from(now_ms().saturating_sub(header.began_ms)).unwrap_or_default();
        // A clock that was set back does not let time run backwards.
        let age = Duration::from_millis(age.max(last_time(&rounds)));
        let run_id = RunId::parse(id).ok_or_else(|| damaged("id"))?;
        let mut policy = header.policy().ok_or_else(|| damaged("list of limits"))?;
        let limit = &mut policy.limits.max_duration_ms;
        let left = limit.saturating_sub(run.active_ms).max(1_000);
        // Its clock goes on, and the time in which it waited does not count.
        *limit = left.saturating_add(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        let client: Option<Arc<str>> = header.client.as_deref().map(Into::into);
        let (permissions, max_result_bytes) = (header.permissions.clone(), header.max_result_bytes);
        let journal = Journal {
            durable: Arc::clone(self),
            keys,
            id: id.to_owned(),
            principal: run.principal.clone(),
            state: Mutex::new(State {
                header: header.clone(),
                active_ms: run.active_ms,
                entries: Vec::new(),
                bytes: 0,
                past: count,
                stored: Some(entries.len() as u64),
            }),
            began: Instant::now(),
            past: Mutex::new(Some(Past { rounds, age })),
        };
        let request = ExecuteRequest {
            language: header.language.as_deref().and_then(parse_language),
            context: header.context,
            allowed_tools: header.allowed_tools,
            allowed_apps: header.allowed_apps,
            journal: Some(Arc::new(journal)),
            id: Some(run_id.clone()),
            ..ExecuteRequest::new(header.script, policy)
        };
        Ok(Resumed { id: run_id, request, client, principal: run.principal, permissions, max_result_bytes })
    }

    /// Stores the outcome of a run that this process has taken over: what its client gets.
    ///
    /// # Errors
    /// The store cannot be used, or another process has the run.
    pub async fn end(&self, config: &Config, id: &str, outcome: &str) -> Result<(), JournalProblem> {
        let keys = self.keys(config)?;
        let keep = i64::try_from(config.approval.keep.as_millis()).unwrap_or(i64::MAX);
        self.journals.end(&keys, &self.lease, id, outcome, now_ms().saturating_add(keep)).await
    }

    /// Withdraws what a run has asked that has ended.
    pub(super) async fn withdraw(&self, run: &RunId) {
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
    pub async fn standing(&self, hub: &Hub, id: &RunId) -> Result<Option<Standing>, JournalProblem> {
        let keys = self.keys(hub.config())?;
        let Some(run) = self.journals.get(&keys, id.as_str()).await? else { return Ok(None) };
        // The id says nothing to another client.
        if run.principal.as_deref() != hub.principal.as_ref().map(|principal| &*principal.name) {
            return Ok(None);
        }
        Ok(Some(match (run.state, run.outcome) {
            (JournaledState::Ended, Some(outcome)) => Standing::Ended(outcome),
            (JournaledState::Ended | JournaledState::Running | JournaledState::Waiting, _) => {
                let requests = self.requests.of_run(id.as_str()).await?;
                let waits = |request: &ApprovalRequest| request.state == ApprovalState::Waiting;
                Standing::Open(requests.into_iter().filter(waits).collect())
            }
        }))
    }
}

/// Groups entries to rounds; `None`: they are not in order.
fn rounds(entries: Vec<Entry>) -> Option<VecDeque<PastRound>> {
    let mut rounds: VecDeque<PastRound> = VecDeque::new();
    for entry in entries {
        match entry {
            Entry::Calls(calls) => {
                if rounds.back().is_some_and(|round| round.events.is_none()) {
                    return None;
                }
                rounds.push_back(PastRound { calls: calls.into_iter().map(Into::into).collect(), events: None });
            }
            Entry::Events(events) => {
                let round = rounds.back_mut().filter(|round| round.events.is_none())?;
                round.events = Some(events.into_iter().map(Into::into).collect());
            }
        }
    }
    Some(rounds)
}

/// Returns the last time that the script has seen, in milliseconds since its beginning.
fn last_time(rounds: &VecDeque<PastRound>) -> u64 {
    let events = rounds.iter().filter_map(|round| round.events.as_ref()).flatten();
    events.filter_map(|event| if let Event::Time(ms) = event { Some(*ms) } else { None }).max().unwrap_or_default()
}

const LANGUAGES: [(Language, &str); 2] = [(Language::JavaScript, "javascript"), (Language::TypeScript, "typescript")];
const LOOPS: [(Loops, &str); 3] = [(Loops::None, "none"), (Loops::Bounded, "bounded"), (Loops::All, "all")];

fn language_name(language: Language) -> &'static str {
    LANGUAGES.into_iter().find(|(known, _)| *known == language).map_or("javascript", |(_, name)| name)
}

fn parse_language(name: &str) -> Option<Language> {
    LANGUAGES.into_iter().find(|(_, known)| *known == name).map(|(language, _)| language)
}

fn loops_name(loops: Loops) -> &'static str {
    LOOPS.into_iter().find(|(known, _)| *known == loops).map_or("none", |(_, name)| name)
}

impl Header {
    /// Returns the policy of the run; `None`: a limit is missing or unknown.
    fn policy(&self) -> Option<Policy> {
        let mut limits = Limits::preset(Preset::LockedDown);
        if self.limits.len() != LIMITS.len() {
            return None;
        }
        for limit in LIMITS {
            limit.set(&mut limits, *self.limits.get(limit.name)?);
        }
        let loops = LOOPS.into_iter().find(|(_, name)| *name == self.loops).map(|(loops, _)| loops)?;
        Some(Policy {
            limits,
            loops,
            allow_console: self.allow_console,
            timers: self.timers,
            fetch: false,
            disabled_builtins: self.disabled_builtins.clone(),
            disabled_globals: self.disabled_globals.clone(),
        })
    }
}

/// The journal of one run.
struct Journal {
    durable: Arc<Durable>,
    keys: Arc<KeyRing>,
    id: String,
    principal: Option<String>,
    state: Mutex<State>,
    /// When this process has begun to evaluate it.
    began: Instant,
    past: Mutex<Option<Past>>,
}

struct State {
    header: Header,
    /// How long it was evaluated before, in milliseconds.
    active_ms: u64,
    /// Entries that are not stored, as JSON text.
    entries: Vec<String>,
    bytes: usize,
    /// How many of the next entries are those of the past.
    past: usize,
    /// The number of the next stored entry; `None`: nothing is stored.
    stored: Option<u64>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("id", &self.id).finish_non_exhaustive()
    }
}

fn failed(problem: impl fmt::Display) -> JournalError {
    JournalError(problem.to_string())
}

impl Journal {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an entry: to the store if the run is there, else in memory.
    async fn append(&self, entry: Entry) -> Result<(), JournalError> {
        let text = serde_json::to_string(&entry).map_err(failed)?;
        let number = {
            let mut state = self.state();
            if state.past > 0 {
                state.past -= 1;
                return Ok(());
            }
            let Some(number) = state.stored else {
                // What is too long is dropped: the run does not pause.
                state.bytes = state.bytes.saturating_add(text.len());
                if state.bytes <= MAX_JOURNAL_BYTES {
                    state.entries.push(text);
                } else {
                    state.entries = Vec::new();
                }
                return Ok(());
            };
            state.stored = Some(number + 1);
            number
        };
        let Durable { journals, lease, .. } = &*self.durable;
        journals.append(&self.keys, lease, &self.id, number, &text).await.map_err(failed)
    }
}

impl RunJournal for Journal {
    fn start(&self, start: StartInputs) -> StartInputs {
        let mut state = self.state();
        if state.past > 0 {
            let context = state.header.context.clone();
            return StartInputs {
                seed: state.header.seed,
                context,
                fixed_unix_ms: Some(state.header.began_ms as f64),
                ..start
            };
        }
        state.header.seed = start.seed;
        state.header.context.clone_from(&start.context);
        // Another journal may have fixed the time.
        let began_ms = start.fixed_unix_ms.map_or(state.header.began_ms, |ms| ms as i64);
        state.header.began_ms = began_ms;
        StartInputs { fixed_unix_ms: Some(began_ms as f64), ..start }
    }

    fn append_lookups(&self, _: ToolLookups) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn append_calls<'a>(&'a self, calls: &'a [Call]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(self.append(Entry::Calls(calls.iter().map(Into::into).collect())))
    }

    fn append_answers<'a>(&'a self, events: &'a [Event]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(self.append(Entry::Events(events.iter().map(Into::into).collect())))
    }

    fn is_only(&self) -> bool {
        false
    }

    fn can_pause(&self) -> bool {
        true
    }

    fn pause(&self) -> BoxFuture<'_, Result<bool, JournalError>> {
        Box::pin(async move {
            let spent = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let (run, entries, is_stored) = {
                let mut state = self.state();
                state.active_ms = state.active_ms.saturating_add(spent);
                if state.bytes > MAX_JOURNAL_BYTES {
                    return Ok(false);
                }
                let run = JournaledRun {
                    id: self.id.clone(),
                    state: JournaledState::Running,
                    principal: self.principal.clone(),
                    active_ms: state.active_ms,
                    header: serde_json::to_string(&state.header).map_err(failed)?,
                    outcome: None,
                };
                (run, state.entries.join("\n"), state.stored.is_some())
            };
            let Durable { journals, lease, .. } = &*self.durable;
            if !is_stored {
                journals.begin(&self.keys, lease, &run, &entries).await.map_err(failed)?;
            }
            journals.pause(lease, &self.id, run.active_ms).await.map_err(failed)?;
            Ok(true)
        })
    }

    fn past(&self) -> Option<Past> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
