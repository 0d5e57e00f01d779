//! A worker: serves the services to Restate, and passes on what people decide.

use crate::client::{RestateClient, RestateProblem};
use crate::code::Code;
use crate::people::People;
use crate::snapshots::Snapshots;
use crate::tools::Tools;
use codecall_base::tool::ToolDirectory;
use codecall_hub::LiveHub;
use codecall_hub::hub::{Hub, Owner, interpreter};
use codecall_store::{ApprovalState, StoreError};
use restate_sdk::endpoint::{Endpoint, HandlerOptions, ServiceOptions};
use restate_sdk::errors::HandlerError;
use restate_sdk::http_server::HttpServer;
use restate_sdk::service::IntoServiceDefinition as _;
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long a run waits in memory before Restate lets the worker forget it.
const RUN_INACTIVITY: Duration = Duration::from_secs(10);
/// How long a script may compute without a pause before its run is begun again elsewhere.
const RUN_ABORT: Duration = Duration::from_secs(600);
/// How long a tool may take. Its own limit is shorter.
const CALL_INACTIVITY: Duration = Duration::from_secs(86_400);
/// How soon, and how late, what has failed is tried again, and how often before somebody has to resume it.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(2);
const MAX_ATTEMPTS: u64 = 2_000;
/// How long calls may go on when a worker ends.
const GRACE: Duration = Duration::from_secs(8);
/// How long the last answers may take to be sent.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How often the store is asked for decisions.
const LOOK: Duration = Duration::from_millis(400);
/// How often approvals expire.
const EXPIRE: Duration = Duration::from_secs(5);
/// Number of directories of tools, and of clients, that are kept in memory.
const MAX_KEPT: usize = 16;
/// Maximum number of decisions that are looked at at once.
const MAX_DECISIONS: u64 = 1_000;

/// The version of the steps that the handlers journal, and of their names. It is raised when these change.
const STEPS: u32 = 2;

/// Returns the version of this worker: a run goes on with the one that has begun it.
pub fn version() -> String {
    format!("{}, steps {STEPS}", interpreter())
}

/// A worker.
pub struct Worker {
    live: LiveHub,
    restate: Arc<RestateClient>,
    directories: Mutex<HashMap<String, Arc<ToolDirectory>>>,
    clients: Mutex<Vec<(Owner, LiveHub)>>,
    /// Cancelled when it has to end: its runs go on elsewhere.
    ending: CancellationToken,
    /// Cancelled when its calls have had their time.
    ended: CancellationToken,
    /// Number of calls in progress.
    calls: AtomicUsize,
}

/// A call in progress.
pub struct CallInProgress(Arc<Worker>);

impl Drop for CallInProgress {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Worker {
    /// Creates a worker whose tools are those of a hub.
    #[must_use]
    pub fn new(live: LiveHub, restate: Arc<RestateClient>) -> Arc<Self> {
        Arc::new(Self {
            live,
            restate,
            directories: Mutex::default(),
            clients: Mutex::default(),
            ending: CancellationToken::new(),
            ended: CancellationToken::new(),
            calls: AtomicUsize::new(0),
        })
    }

    /// Serves until it is cancelled. `registered` is called when Restate knows it, with the id of its deployment.
    ///
    /// # Errors
    /// Restate does not take it.
    pub async fn serve(
        self: &Arc<Self>,
        listener: TcpListener,
        address: &str,
        cancel: CancellationToken,
        registered: impl FnOnce(&str),
    ) -> Result<(), RestateProblem> {
        let serving = tokio::spawn(
            HttpServer::new(self.endpoint()).serve_with_cancel(listener, self.ended.clone().cancelled_owned()),
        );
        let following = async {
            registered(&self.restate.register(address).await?);
            self.follow().await;
            Ok(())
        };
        let result = tokio::select! {
            result = following => result,
            () = cancel.cancelled() => Ok(()),
        };
        self.ending.cancel();
        // Calls in progress may end.
        let began = Instant::now();
        while self.calls.load(Ordering::SeqCst) > 0 && began.elapsed() < GRACE {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.ended.cancel();
        // What they have answered is sent.
        let _ = tokio::time::timeout(LAST_WORDS, serving).await;
        result
    }

    /// Counts a call as in progress until the guard is dropped.
    pub fn begin_call(self: &Arc<Self>) -> CallInProgress {
        self.calls.fetch_add(1, Ordering::SeqCst);
        CallInProgress(Arc::clone(self))
    }

    fn endpoint(self: &Arc<Self>) -> Endpoint {
        let config = self.live.get().config().durable.clone();
        let options = || {
            ServiceOptions::new()
                // So another version is not registered at the same address by mistake.
                .metadata("worker", version())
                .retry_policy_initial_interval(FIRST_RETRY)
                .retry_policy_max_interval(LAST_RETRY)
                .retry_policy_exponentiation_factor(2.0)
                .retry_policy_max_attempts(MAX_ATTEMPTS)
                .retry_policy_pause_on_max_attempts()
        };
        let run = HandlerOptions::new().workflow_retention(config.keep).journal_retention(Duration::ZERO);
        let code = options().inactivity_timeout(RUN_INACTIVITY).abort_timeout(RUN_ABORT).handler("run", run);
        let tools = options().inactivity_timeout(CALL_INACTIVITY).journal_retention(Duration::ZERO);
        Endpoint::builder()
            .bind(Code(Arc::clone(self)).into_service_definition().options(code))
            .bind(Tools(Arc::clone(self)).into_service_definition().options(tools))
            .bind(People.into_service_definition().options(options()))
            .bind(Snapshots.into_service_definition().options(options()))
            .build()
    }

    /// Resolves when the worker has to end.
    pub async fn ending(&self) {
        self.ending.cancelled().await;
    }

    /// Resolves when its calls have had their time.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Whether its calls have had their time.
    pub fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Logs why a run cannot go on here now. Restate tries again.
    pub fn refuse(run: &str, why: impl Into<String>) -> HandlerError {
        let why = why.into();
        tracing::warn!(run, "a run cannot go on here now: {why}");
        why.into()
    }

    /// Returns the directory of tools that a run has begun with.
    pub async fn directory(&self, digest: &str) -> Result<Arc<ToolDirectory>, String> {
        let kept = || self.directories.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = kept().get(digest) {
            return Ok(Arc::clone(directory));
        }
        let bytes = self.restate.tools(digest).await.map_err(|problem| problem.to_string())?;
        let found = Sha256::digest(&bytes).iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        if found != digest {
            return Err("the directory of tools is not the one that the run has begun with".into());
        }
        let directory = Arc::new(ToolDirectory::from_bytes(&bytes)?);
        let mut kept = kept();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(digest.to_owned(), Arc::clone(&directory));
        Ok(directory)
    }

    /// Returns the hub of a client.
    pub fn hub_of(&self, owner: Option<&Owner>) -> Result<Arc<Hub>, String> {
        let Some(owner) = owner else { return Ok(self.live.get()) };
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, live)) = clients.iter().find(|(known, _)| known == owner) {
            return Ok(live.get());
        }
        let live = owner.hub(&self.live)?;
        if clients.len() >= MAX_KEPT {
            clients.remove(0);
        }
        clients.push((owner.clone(), live.clone()));
        Ok(live.get())
    }

    /// Passes on what people decide, to the runs that wait for it.
    async fn follow(&self) {
        let (mut passed, mut expired): (HashSet<String>, Option<Instant>) = (HashSet::new(), None);
        loop {
            tokio::time::sleep(LOOK).await;
            if let Err(problem) = self.pass_on(&mut passed, &mut expired).await {
                tracing::warn!("decisions of people: {problem}");
            }
        }
    }

    async fn pass_on(&self, passed: &mut HashSet<String>, expired: &mut Option<Instant>) -> Result<(), String> {
        let hub = self.live.get();
        let Some(durable) = hub.durable().filter(|_| hub.needs_approval()) else { return Ok(()) };
        let failed = |error: StoreError| error.to_string();
        if expired.is_none_or(|at| at.elapsed() > EXPIRE) {
            *expired = Some(Instant::now());
            durable.expire(hub.config()).await.map_err(failed)?;
        }
        let mut decided = HashSet::new();
        for state in [ApprovalState::Approved, ApprovalState::Denied, ApprovalState::Expired] {
            let requests = durable.requests().list(Some(state), MAX_DECISIONS).await.map_err(failed)?;
            for request in requests.into_iter().filter(|request| !request.used) {
                let Some(run) = request.run else { continue };
                if !passed.contains(&request.id) {
                    let at_ms = request.decided_ms.unwrap_or(request.expires_ms);
                    let passing = self.restate.decided(&run, &request.id, at_ms);
                    passing.await.map_err(|problem| problem.to_string())?;
                }
                decided.insert(request.id);
            }
        }
        *passed = decided;
        Ok(())
    }
}
