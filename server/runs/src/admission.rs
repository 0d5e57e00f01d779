//! Admission control: permits to evaluate, places for runs that have begun, and a bounded queue. Clients share all three.
//!
//! A run holds a permit while it is evaluated. A run that waits for a tool, a timer or a person holds none, but keeps its
//! place. A free permit goes to the client that holds fewest. A client that is alone gets all permits; when others wait,
//! its runs give permits back after their slice ([`RunPermit::is_wanted`]).
//!
//! No run can be taken its place, so a client begins no further run while it has as many places as are free. There are
//! always some for others. It has more places than there are permits only while there is memory. In a full queue, a
//! client
//! with fewer waiting runs replaces the last run of the client with most.

use super::context::MemoryBudget;
use codecall_base::tool::ErrorCode;
use codecall_config::Pool;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Why work was not admitted, or did not complete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// `QUEUE_FULL`, `QUEUE_TIMEOUT`, `POOL_DISPOSED`, `EXECUTION_ABORTED`, `WORKER_CRASHED`,
    /// `WORKER_STARTUP_FAILED`.
    pub code: ErrorCode,
    /// The message for people and models.
    pub message: String,
}

impl Refused {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub fn no_thread(error: &std::io::Error) -> Self {
        tracing::error!(%error, "a script thread cannot be started");
        Self::new(
            ErrorCode::WorkerStartupFailed,
            "No thread could be started to run the script; the machine is short of resources",
        )
    }

    pub fn crashed() -> Self {
        Self::new(
            ErrorCode::WorkerCrashed,
            "The interpreter crashed while running this script; this is a bug in CodeCall",
        )
    }

    pub fn disposed() -> Self {
        Self::new(ErrorCode::PoolDisposed, "The server is shutting down")
    }

    fn queue_full(max: usize) -> Self {
        Self::new(ErrorCode::QueueFull, format!("{max} scripts are waiting already; try again later"))
    }
}

/// The client that a run belongs to. Runs of one client share what they may have at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientKey(pub [u8; 32]);

/// The load of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Runs that hold a permit.
    pub active: usize,
    /// Runs that have begun and hold no permit: they wait for tools, timers or people.
    pub waiting: usize,
    /// Permits that are free.
    pub available: usize,
    /// Runs that wait to begin.
    pub queued: usize,
}

/// The permits, places and queue of a pool.
pub struct Admission {
    shared: Arc<Shared>,
    max_queue: usize,
    queue_timeout: Duration,
    closed: CancellationToken,
}

struct Shared {
    permits: usize,
    places: usize,
    /// Number of runs that wait for a permit, so that a run sees without the lock that there is none.
    waiters: AtomicUsize,
    state: Mutex<State>,
}

struct State {
    /// The memory of runs that have begun. Its lock is taken within that of the state.
    memory: Arc<MemoryBudget>,
    /// Number of places that a client may have however much memory is in use.
    permits: usize,
    free_permits: usize,
    free_places: usize,
    /// Runs that count towards the limit of the queue.
    queued: usize,
    /// The clients that have something or wait for something.
    clients: HashMap<ClientKey, Client>,
    /// The number of the next waiter or grant.
    next: u64,
}

/// A client's part of a pool.
#[derive(Default)]
struct Client {
    permits: usize,
    places: usize,
    /// Waiters that count towards the limit of the queue.
    queued: usize,
    beginning: VecDeque<Waiter>,
    resuming: VecDeque<Waiter>,
    /// When it last got a permit.
    granted: u64,
}

/// A run that waits for a permit.
struct Waiter {
    number: u64,
    /// Whether it counts towards the limit of the queue.
    is_queued: bool,
    grant: oneshot::Sender<Result<(), Refused>>,
}

/// How a run waits for a permit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    /// It begins, and waits in the queue.
    Queued,
    /// It begins, and waits however many others do.
    Unqueued,
    /// It has begun, and goes on.
    Resumed,
}

impl Admission {
    /// Creates `permits`, with a queue of the size and timeout of the pool, and places for runs that wait: `waiting`, but
    /// at least as many as permits, so that a client that is alone gets all permits.
    pub fn new(permits: usize, waiting: usize, pool: &Pool, memory: &Arc<MemoryBudget>) -> Self {
        let places = permits.saturating_add(waiting.max(permits));
        let memory = Arc::clone(memory);
        let state = State {
            memory,
            permits,
            free_permits: permits,
            free_places: places,
            queued: 0,
            clients: HashMap::new(),
            next: 0,
        };
        Self {
            shared: Arc::new(Shared { permits, places, waiters: AtomicUsize::new(0), state: Mutex::new(state) }),
            max_queue: pool.max_queue,
            queue_timeout: pool.queue_timeout,
            closed: CancellationToken::new(),
        }
    }

    /// Refuses all requests from now on, those in the queue included.
    pub fn close(&self) {
        self.closed.cancel();
    }

    /// Returns the token that [`Admission::close`] cancels.
    pub fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// Acquires a place and a permit for a run of a client.
    ///
    /// # Errors
    /// The queue is full, the wait is longer than its timeout, the admission is closed, or `cancel` is cancelled.
    pub async fn enter(&self, client: ClientKey, cancel: &CancellationToken) -> Result<RunPermit, Refused> {
        tokio::select! {
            biased;
            () = self.closed.cancelled() => Err(Refused::disposed()),
            () = cancel.cancelled() => {
                Err(Refused::new(ErrorCode::ExecutionAborted, "The execution was cancelled before it began"))
            }
            permit = self.acquire(client) => permit,
        }
    }

    /// Acquires a place and a permit, however long that takes and however many wait.
    ///
    /// # Errors
    /// The admission is closed.
    pub async fn wait(&self, client: ClientKey) -> Result<RunPermit, Refused> {
        tokio::select! {
            biased;
            () = self.closed.cancelled() => Err(Refused::disposed()),
            permit = self.shared.permit(client, Entry::Unqueued, self.max_queue) => permit,
        }
    }

    /// Acquires a permit for a run that is nested in another one, in whose place it is.
    ///
    /// # Errors
    /// The admission is closed, or `cancel` is cancelled.
    pub async fn nest(&self, client: ClientKey, cancel: &CancellationToken) -> Result<RunPermit, Refused> {
        let permit =
            RunPermit { shared: Arc::clone(&self.shared), client, has_place: false, is_held: AtomicBool::new(false) };
        tokio::select! {
            biased;
            () = self.closed.cancelled() => Err(Refused::disposed()),
            () = cancel.cancelled() => {
                Err(Refused::new(ErrorCode::ExecutionAborted, "The execution was cancelled before it began"))
            }
            () = permit.acquire() => Ok(permit),
        }
    }

    async fn acquire(&self, client: ClientKey) -> Result<RunPermit, Refused> {
        let permit = self.shared.permit(client, Entry::Queued, self.max_queue);
        match tokio::time::timeout(self.queue_timeout, permit).await {
            Ok(permit) => permit,
            Err(_) => {
                let waited = self.queue_timeout.as_millis();
                let message = format!("The script waited {waited} ms for its turn; try again later");
                Err(Refused::new(ErrorCode::QueueTimeout, message))
            }
        }
    }

    /// Returns how many runs can have begun at once.
    pub fn places(&self) -> usize {
        self.shared.places
    }

    /// Returns the load.
    pub fn load(&self) -> Load {
        let state = self.shared.lock();
        let active = self.shared.permits - state.free_permits;
        let begun: usize = state.clients.values().map(|client| client.places).sum();
        Load { active, waiting: begun.saturating_sub(active), available: state.free_permits, queued: state.queued }
    }

    /// Acquires a place and a permit without waiting; `None` if there is none, or others wait.
    pub fn try_enter(&self, client: ClientKey) -> Option<RunPermit> {
        let entered = self.shared.lock().take(client, Entry::Unqueued);
        entered.then(|| RunPermit {
            shared: Arc::clone(&self.shared),
            client,
            has_place: true,
            is_held: AtomicBool::new(true),
        })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place and a permit of a run that begins.
    async fn permit(self: &Arc<Self>, client: ClientKey, entry: Entry, max_queue: usize) -> Result<RunPermit, Refused> {
        self.granted(client, entry, max_queue).await?;
        Ok(RunPermit { shared: Arc::clone(self), client, has_place: true, is_held: AtomicBool::new(true) })
    }

    /// Waits until a permit is granted. What is granted must be given back.
    async fn granted(&self, client: ClientKey, entry: Entry, max_queue: usize) -> Result<(), Refused> {
        let waiting = {
            let mut state = self.lock();
            if state.take(client, entry) {
                return Ok(());
            }
            let (number, granted) = state.queue(client, entry, max_queue)?;
            self.waiters.store(state.waiters(), Ordering::Release);
            Waiting { shared: self, client, entry, number, granted }
        };
        waiting.granted().await
    }

    /// Takes back a permit or a place, and grants what is free then.
    fn give_back(&self, key: ClientKey, permits: usize, places: usize) {
        let mut state = self.lock();
        state.give_back(key, permits, places);
        if self.waiters.load(Ordering::Relaxed) > 0 {
            state.grant();
            self.waiters.store(state.waiters(), Ordering::Release);
        }
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn waiters(&self) -> usize {
        self.clients.values().map(|client| client.beginning.len() + client.resuming.len()).sum()
    }

    /// Takes what a run needs, if it is free and nobody waits for it.
    fn take(&mut self, key: ClientKey, entry: Entry) -> bool {
        if self.free_permits == 0 || (entry != Entry::Resumed && !self.may_begin(key)) {
            return false;
        }
        // A permit is free while others wait only if none of them may begin.
        self.add(key, entry);
        true
    }

    /// Whether a client may have one more place.
    fn may_begin(&self, key: ClientKey) -> bool {
        let own = self.clients.get(&key).map_or(0, |client| client.places);
        own < self.free_places && (own < self.permits || self.memory.is_plentiful())
    }

    fn add(&mut self, key: ClientKey, entry: Entry) {
        let number = self.number();
        let client = self.clients.entry(key).or_default();
        client.granted = number;
        client.permits += 1;
        self.free_permits -= 1;
        if entry != Entry::Resumed {
            client.places += 1;
            self.free_places -= 1;
        }
    }

    fn give_back(&mut self, key: ClientKey, permits: usize, places: usize) {
        self.free_permits += permits;
        self.free_places += places;
        if let Some(client) = self.clients.get_mut(&key) {
            client.permits -= permits;
            client.places -= places;
        }
        self.forget(key);
    }

    /// Forgets a client that has nothing and waits for nothing.
    fn forget(&mut self, key: ClientKey) {
        let is_gone = |client: &Client| {
            client.permits == 0 && client.places == 0 && client.beginning.is_empty() && client.resuming.is_empty()
        };
        if self.clients.get(&key).is_some_and(is_gone) {
            self.clients.remove(&key);
        }
    }

    /// Adds a waiter. Returns its number, and what it is told.
    ///
    /// # Errors
    /// The queue is full, and no client has more in it.
    fn queue(
        &mut self,
        key: ClientKey,
        entry: Entry,
        max_queue: usize,
    ) -> Result<(u64, oneshot::Receiver<Result<(), Refused>>), Refused> {
        let is_queued = entry == Entry::Queued;
        if is_queued && self.queued >= max_queue {
            let own = self.clients.get(&key).map_or(0, |client| client.queued);
            let largest = self.clients.iter().max_by_key(|(_, client)| client.queued).map(|(key, _)| *key);
            let largest = largest.filter(|largest| self.clients[largest].queued > own + 1);
            let refused = Refused::queue_full(max_queue);
            let Some(largest) = largest else { return Err(refused) };
            self.refuse_last(largest, refused);
        }
        let number = self.number();
        let (grant, granted) = oneshot::channel();
        let client = self.clients.entry(key).or_default();
        let waiters = if entry == Entry::Resumed { &mut client.resuming } else { &mut client.beginning };
        waiters.push_back(Waiter { number, is_queued, grant });
        client.queued += usize::from(is_queued);
        self.queued += usize::from(is_queued);
        Ok((number, granted))
    }

    /// Refuses the last run of a client in the queue.
    fn refuse_last(&mut self, key: ClientKey, refused: Refused) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        let Some(last) = client.beginning.iter().rposition(|waiter| waiter.is_queued) else { return };
        let Some(waiter) = client.beginning.remove(last) else { return };
        client.queued -= 1;
        self.queued -= 1;
        // A run that no longer waits has its position until it takes the lock.
        let _ = waiter.grant.send(Err(refused));
    }

    /// Removes a waiter that no longer waits.
    fn remove(&mut self, key: ClientKey, entry: Entry, number: u64) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        let waiters = if entry == Entry::Resumed { &mut client.resuming } else { &mut client.beginning };
        if let Ok(at) = waiters.binary_search_by_key(&number, |waiter| waiter.number)
            && let Some(waiter) = waiters.remove(at)
        {
            client.queued -= usize::from(waiter.is_queued);
            self.queued -= usize::from(waiter.is_queued);
        }
        self.forget(key);
    }

    /// Grants free permits, each to the client that holds fewest, and of those to the one that waits longest for its turn.
    fn grant(&mut self) {
        while self.free_permits > 0 {
            let next = self.clients.iter().filter_map(|(key, client)| Some((self.next_entry(*key)?, *key, client)));
            let next = next.min_by_key(|(_, _, client)| (client.permits, client.granted));
            let Some((entry, key, _)) = next else { return };
            let Some(client) = self.clients.get_mut(&key) else { return };
            let waiters = if entry == Entry::Resumed { &mut client.resuming } else { &mut client.beginning };
            let Some(waiter) = waiters.pop_front() else { return };
            client.queued -= usize::from(waiter.is_queued);
            self.queued -= usize::from(waiter.is_queued);
            if waiter.grant.send(Ok(())).is_ok() {
                self.add(key, entry);
            }
        }
    }

    /// Returns how the next run of a client that may have a permit waits for it.
    fn next_entry(&self, key: ClientKey) -> Option<Entry> {
        let client = self.clients.get(&key)?;
        // What has begun ends first, and frees its memory.
        if !client.resuming.is_empty() {
            return Some(Entry::Resumed);
        }
        (!client.beginning.is_empty() && self.may_begin(key)).then_some(Entry::Unqueued)
    }

    /// Whether another client waits for a permit that has so few that this one has too many.
    fn is_wanted(&self, key: ClientKey) -> bool {
        let own = self.clients.get(&key).map_or(0, |client| client.permits);
        let has_fewer = |other: &Client| other.permits + 1 < own;
        let mut others = self.clients.iter().filter(|(other, client)| **other != key && has_fewer(client));
        others.any(|(other, _)| self.next_entry(*other).is_some())
    }
}

/// A run that waits for a permit, until it is dropped.
struct Waiting<'a> {
    shared: &'a Shared,
    client: ClientKey,
    entry: Entry,
    number: u64,
    granted: oneshot::Receiver<Result<(), Refused>>,
}

impl Waiting<'_> {
    async fn granted(mut self) -> Result<(), Refused> {
        // The sender is dropped only after it has sent.
        (&mut self.granted).await.unwrap_or_else(|_| Err(Refused::disposed()))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.granted.close();
        match self.granted.try_recv() {
            // It was granted at the moment at which the wait ended.
            Ok(Ok(())) => {
                let places = usize::from(self.entry != Entry::Resumed);
                self.shared.give_back(self.client, 1, places);
            }
            // It was refused, or has received the answer.
            Ok(Err(_)) | Err(oneshot::error::TryRecvError::Closed) => {
                let mut state = self.shared.lock();
                state.remove(self.client, self.entry, self.number);
                self.shared.waiters.store(state.waiters(), Ordering::Release);
            }
            Err(oneshot::error::TryRecvError::Empty) => {}
        }
    }
}

/// A run's permit to be evaluated, and its place. Both are given back when it is dropped.
pub struct RunPermit {
    shared: Arc<Shared>,
    client: ClientKey,
    /// A nested run is in the place of the run that it is nested in.
    has_place: bool,
    is_held: AtomicBool,
}

impl RunPermit {
    /// Returns the client whose run it is.
    pub fn client(&self) -> ClientKey {
        self.client
    }

    /// Gives the permit back while the run waits.
    pub fn release(&self) {
        if self.is_held.swap(false, Ordering::AcqRel) {
            self.shared.give_back(self.client, 1, 0);
        }
    }

    /// Waits until the run has a permit again.
    pub async fn acquire(&self) {
        // A run that has begun is not refused.
        if !self.is_held.load(Ordering::Acquire)
            && self.shared.granted(self.client, Entry::Resumed, usize::MAX).await.is_ok()
        {
            self.is_held.store(true, Ordering::Release);
        }
    }

    /// Whether another client, which has fewer, waits for a permit.
    pub fn is_wanted(&self) -> bool {
        self.shared.waiters.load(Ordering::Acquire) > 0 && self.shared.lock().is_wanted(self.client)
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        let (permits, places) = (usize::from(*self.is_held.get_mut()), usize::from(self.has_place));
        if permits + places > 0 {
            self.shared.give_back(self.client, permits, places);
        }
    }
}
