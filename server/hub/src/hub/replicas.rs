//! The replicas of this server: other processes that serve the same clients, on the same database.
//!
//! Each one is told by the others what concerns it, and asks the one that has what it needs. Whom a message is for within a
//! replica is its address; [`Replicas::serve`] receives those of one. A replica whose beats have stopped has ended: nobody
//! waits for its answer.

mod changes;

use super::{Durable, Hub, LiveHub};
use codecall_base::error::Error;
use codecall_base::event::RunId;
use codecall_config::Config;
use codecall_store::sealed::KeyRing;
use codecall_store::{Database, ReplicaMessage, ReplicaProblem, SqlReplicas, SqlSessions, StoreError, VaultError};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often a replica says that it is there.
const BEAT: Duration = Duration::from_secs(1);
/// After so many beats of this replica without one of another, that one has ended.
const MISSED_BEATS: u32 = 6;
/// After so many, it is forgotten.
const FORGOTTEN_BEATS: u32 = 60;
/// After so many, the first of the replicas deletes what is no longer kept.
const SWEEP_BEATS: u64 = 30;
/// How often messages are looked for that nothing has announced.
const LOOK: Duration = Duration::from_secs(1);
/// The time between two looks in a database that announces none.
const LOOK_IN_FILE: Duration = Duration::from_millis(50);

/// How long a server that starts waits for its database.
const START_WAIT: Duration = Duration::from_secs(60);
/// How often it tries meanwhile.
const START_AGAIN: Duration = Duration::from_millis(500);

/// The replicas of this server, as one of them sees them.
pub struct Replicas {
    id: String,
    store: SqlReplicas,
    database: Database,
    durable: Arc<Durable>,
    config: Config,
    secret: [u8; 32],
    others: Mutex<HashMap<String, Heartbeat>>,
    receivers: Mutex<HashMap<String, Receiver>>,
    /// The questions of this replica.
    asked: Mutex<HashMap<u64, oneshot::Sender<Option<Value>>>>,
    /// The questions to this replica: by whom, and under which number.
    answering: Mutex<HashMap<(String, u64), CancellationToken>>,
    next: AtomicU64,
    /// Counts changes of the tools that other replicas have seen.
    tools_changed: watch::Sender<u64>,
    ended: CancellationToken,
}

/// The last sign of another replica.
struct Heartbeat {
    beat: i64,
    missed: u32,
}

/// The function that receives messages. It must return at once.
type Receiver = Arc<dyn Fn(Incoming) + Send + Sync>;

/// Why a replica has not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAnswered {
    /// It has ended.
    Ended,
    /// It does not know what it is asked about.
    Unknown,
    /// The messages cannot be sent.
    Unsent(String),
}

/// A message between replicas.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Message {
    Tell(Value),
    Ask {
        number: u64,
        body: Value,
    },
    /// `None`: nobody has the address.
    Answer {
        number: u64,
        body: Option<Value>,
    },
    /// The answer is no longer needed.
    Withdraw {
        number: u64,
    },
}

/// A message for an address.
pub struct Incoming {
    /// The replica that has sent it.
    pub sender: String,
    /// The content.
    pub body: Value,
    /// Cancelled when its sender no longer waits for the answer.
    pub cancel: CancellationToken,
    answer: Option<Answering>,
}

impl Incoming {
    /// Answers a question.
    pub fn answer(self, body: Value) {
        if let Some(mut answering) = self.answer {
            answering.send(Some(body));
        }
    }
}

/// An answer that is expected. Dropping it says that there is none.
struct Answering {
    replicas: Arc<Replicas>,
    to: String,
    number: u64,
    is_sent: bool,
}

impl Answering {
    fn send(&mut self, body: Option<Value>) {
        self.is_sent = true;
        let (replicas, to, number) = (Arc::clone(&self.replicas), self.to.clone(), self.number);
        replicas.answering().remove(&(to.clone(), number));
        tokio::spawn(async move { replicas.send_or_log(&[to], "", &Message::Answer { number, body }).await });
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        if !self.is_sent && tokio::runtime::Handle::try_current().is_ok() {
            self.send(None);
        }
    }
}

/// Receives the messages of an address until it is dropped.
pub struct Served {
    replicas: Arc<Replicas>,
    address: String,
    receiver: Receiver,
}

impl Drop for Served {
    fn drop(&mut self) {
        let mut receivers = self.replicas.receivers();
        if receivers.get(&self.address).is_some_and(|own| Arc::ptr_eq(own, &self.receiver)) {
            receivers.remove(&self.address);
        }
    }
}

impl Hub {
    /// Makes this process a replica of the server, if others can use its database.
    ///
    /// # Errors
    /// The database cannot be used, or the other replicas have another master key.
    pub async fn join_replicas(&self) -> Result<(), Error> {
        let (Some(database), Some(durable)) = (&self.services.database, &self.services.durable) else { return Ok(()) };
        if !database.is_shared() {
            return Ok(());
        }
        wait_for(database).await;
        let replicas = Replicas::start(database, durable, self.config())
            .await
            .map_err(|problem| Error::Config(format!("this server cannot join its replicas: {problem}")))?;
        tracing::info!(replica = replicas.id(), "joined");
        // A hub joins once.
        let _ = self.services.replicas.set(replicas);
        Ok(())
    }

    /// Returns the replicas of this server; `None`: it is the only one.
    #[must_use]
    pub fn replicas(&self) -> Option<&Arc<Replicas>> {
        self.services.replicas.get()
    }

    /// Returns whose sessions, tasks and messages the hub has, among those of the clients of the server.
    #[must_use]
    pub fn scope(&self) -> String {
        let Some(principal) = &self.principal else { return "server".into() };
        let digest = Sha256::new().chain_update(b"scope").chain_update(principal.key).finalize();
        codecall_store::state::hex(&digest[..16])
    }
}

/// Waits until a database answers, or refuses for another reason than that it cannot be reached.
async fn wait_for(database: &Database) {
    let began = Instant::now();
    let mut is_told = false;
    while let Err(problem) = database.query("SELECT 1", []).await {
        if !problem.is_passing() || began.elapsed() >= START_WAIT {
            return;
        }
        if !std::mem::replace(&mut is_told, true) {
            let seconds = START_WAIT.as_secs();
            tracing::warn!("waiting up to {seconds} s for the database: {}", database.error(&problem));
        }
        tokio::time::sleep(START_AGAIN).await;
    }
}

impl LiveHub {
    /// Notifies the clients of this replica of what the others see, and the other way round.
    pub fn follow_replicas(&self) {
        if let Some(replicas) = self.get().replicas() {
            changes::follow(self, replicas);
        }
    }
}

impl Replicas {
    async fn start(database: &Database, durable: &Arc<Durable>, config: &Config) -> Result<Arc<Self>, ReplicaProblem> {
        let store = SqlReplicas::new(database.clone());
        let keys = durable.keys(config).await?;
        // It shows whether the master key is that of the others.
        let secret = store.secret(&keys, "replicas").await?;
        let replicas = Arc::new(Self {
            id: RunId::random().as_str()[..12].to_owned(),
            store,
            database: database.clone(),
            durable: Arc::clone(durable),
            config: config.clone(),
            secret,
            others: Mutex::default(),
            receivers: Mutex::default(),
            asked: Mutex::default(),
            answering: Mutex::default(),
            next: AtomicU64::new(1),
            tools_changed: watch::Sender::default(),
            ended: CancellationToken::new(),
        });
        replicas.beat().await?;
        for work in [Work::Beat, Work::Receive] {
            let (replicas, ended) = (Arc::clone(&replicas), replicas.ended.clone());
            tokio::spawn(ended.run_until_cancelled_owned(replicas.work(work)));
        }
        Ok(replicas)
    }

    /// Returns the id of this replica.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns what counts changes of the tools that other replicas have seen.
    #[must_use]
    pub fn tools_changed(&self) -> watch::Receiver<u64> {
        self.tools_changed.subscribe()
    }

    /// Returns the database of the replicas.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Returns a secret that all replicas have.
    #[must_use]
    pub fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// Returns the keys that seal what replicas store.
    ///
    /// # Errors
    /// There are none.
    pub async fn keys(&self) -> Result<Arc<KeyRing>, VaultError> {
        self.durable.keys(&self.config).await
    }

    /// Receives the messages of an address, in place of an earlier receiver, until the result is dropped.
    pub fn serve(
        self: &Arc<Self>,
        address: impl Into<String>,
        receiver: impl Fn(Incoming) + Send + Sync + 'static,
    ) -> Served {
        let (address, receiver): (String, Receiver) = (address.into(), Arc::new(receiver));
        self.receivers().insert(address.clone(), Arc::clone(&receiver));
        Served { replicas: Arc::clone(self), address, receiver }
    }

    /// Sends a message to a replica. It is lost if that one has ended.
    pub async fn tell(&self, to: &str, address: &str, body: Value) {
        self.send_or_log(&[to.to_owned()], address, &Message::Tell(body)).await;
    }

    /// Returns the other replicas that are there, also those that have started since the last beat.
    async fn all_others(&self) -> Vec<String> {
        if let Err(problem) = self.refresh(false).await {
            tracing::debug!("the replicas that were known are told: {problem}");
        }
        self.others().iter().filter(|(_, heartbeat)| heartbeat.is_there()).map(|(id, _)| id.clone()).collect()
    }

    /// Sends a message to all other replicas.
    pub async fn tell_all(&self, address: &str, body: Value) {
        self.send_or_log(&self.all_others().await, address, &Message::Tell(body)).await;
    }

    /// Asks all other replicas, and waits until they have answered, at most for `timeout`.
    pub async fn ask_all(self: &Arc<Self>, address: &str, body: &Value, timeout: Duration) {
        let others = self.all_others().await;
        let asking = others.iter().map(|other| self.ask(other, address, body.clone()));
        let _ = tokio::time::timeout(timeout, join_all(asking)).await;
    }

    /// Asks a replica, and waits for its answer as long as it is there. Dropping the future withdraws the question.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn ask(self: &Arc<Self>, to: &str, address: &str, body: Value) -> Result<Value, NotAnswered> {
        if !self.is_there(to).await {
            return Err(NotAnswered::Ended);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, mut receiver) = oneshot::channel();
        self.asked().insert(number, sender);
        let mut question = Question { replicas: Arc::clone(self), to: to.to_owned(), number, is_open: true };
        let sent = self.send(&[to.to_owned()], address, &Message::Ask { number, body }).await;
        sent.map_err(|problem| NotAnswered::Unsent(problem.to_string()))?;
        loop {
            if let Ok(answer) = tokio::time::timeout(BEAT, &mut receiver).await {
                question.is_open = false;
                return answer.ok().flatten().ok_or(NotAnswered::Unknown);
            }
            if !self.is_there(to).await {
                return Err(NotAnswered::Ended);
            }
        }
    }

    /// Whether a replica is there: this one, or one whose beats have not stopped.
    pub async fn is_there(&self, id: &str) -> bool {
        if id == self.id {
            return true;
        }
        let known = self.others().get(id).map(Heartbeat::is_there);
        match known {
            Some(is_there) => is_there,
            // It may have started since.
            None => self.refresh(false).await.is_ok() && self.others().get(id).is_some_and(Heartbeat::is_there),
        }
    }

    /// Leaves the replicas. The others know it at once.
    pub(super) async fn leave(&self) {
        self.ended.cancel();
        if let Err(error) = self.store.remove(&self.id).await {
            tracing::debug!("the other replicas are not told that this one has ended: {error}");
        }
    }

    fn others(&self) -> MutexGuard<'_, HashMap<String, Heartbeat>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receivers(&self) -> MutexGuard<'_, HashMap<String, Receiver>> {
        self.receivers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Option<Value>>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answering(&self) -> MutexGuard<'_, HashMap<(String, u64), CancellationToken>> {
        self.answering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, to: &[String], address: &str, message: &Message) -> Result<(), ReplicaProblem> {
        if to.is_empty() {
            return Ok(());
        }
        let text = serde_json::to_string(message).map_err(|error| StoreError(error.to_string()))?;
        self.store.send(&*self.keys().await?, &self.id, to, address, &text).await
    }

    async fn send_or_log(&self, to: &[String], address: &str, message: &Message) {
        if let Err(problem) = self.send(to, address, message).await {
            tracing::warn!(address, "a message to other replicas is lost: {problem}");
        }
    }

    async fn work(self: Arc<Self>, work: Work) {
        let (mut has_failed, mut beats) = (false, 0);
        let listener = matches!(work, Work::Receive).then(|| self.store.listen(&self.id));
        let look = if self.database.is_shared() { LOOK } else { LOOK_IN_FILE };
        loop {
            let done = match work {
                Work::Beat => {
                    tokio::time::sleep(BEAT).await;
                    beats += 1;
                    match self.beat().await {
                        Ok(()) if beats % SWEEP_BEATS == 0 => self.sweep().await,
                        done => done,
                    }
                }
                Work::Receive => {
                    if let Some(listener) = &listener {
                        let _ = tokio::time::timeout(look, listener.notified()).await;
                    }
                    self.receive().await
                }
            };
            match done {
                Ok(()) => has_failed = false,
                Err(problem) if !has_failed => {
                    has_failed = true;
                    tracing::warn!("the other replicas cannot be reached: {problem}");
                }
                Err(_) => {}
            }
        }
    }

    /// Says that this replica is there, and sees who else is.
    async fn beat(&self) -> Result<(), StoreError> {
        self.refresh(true).await?;
        let forgotten: Vec<String> = {
            let mut others = self.others();
            let gone =
                others.iter().filter(|(_, heartbeat)| heartbeat.missed >= FORGOTTEN_BEATS).map(|(id, _)| id.clone());
            let gone: Vec<String> = gone.collect();
            for id in &gone {
                others.remove(id);
            }
            gone
        };
        for id in &forgotten {
            self.store.remove(id).await?;
        }
        Ok(())
    }

    /// Deletes sessions that are no longer used, if this is the first of the replicas.
    async fn sweep(&self) -> Result<(), StoreError> {
        let is_first = self.others().iter().all(|(other, heartbeat)| !heartbeat.is_there() || self.id < *other);
        if is_first { SqlSessions(self.database.clone()).retain().await } else { Ok(()) }
    }

    /// Reads who is there. `counts`: those who have not moved since have missed a beat.
    async fn refresh(&self, counts: bool) -> Result<(), StoreError> {
        let all = self.store.beat(&self.id).await?;
        let mut others = self.others();
        others.retain(|id, _| all.iter().any(|(known, _)| known == id));
        for (id, beat) in all.into_iter().filter(|(id, _)| *id != self.id) {
            let heartbeat = others.entry(id).or_insert(Heartbeat { beat, missed: 0 });
            if heartbeat.beat != beat {
                *heartbeat = Heartbeat { beat, missed: 0 };
            } else if counts {
                heartbeat.missed += 1;
            }
        }
        Ok(())
    }

    async fn receive(self: &Arc<Self>) -> Result<(), StoreError> {
        let keys = self.keys().await.map_err(|error| StoreError(error.to_string()))?;
        for message in self.store.receive(&keys, &self.id).await? {
            self.received(message);
        }
        Ok(())
    }

    fn received(self: &Arc<Self>, ReplicaMessage { sender, address, body }: ReplicaMessage) {
        let Some(body) = body else {
            tracing::warn!(sender, "a message of another replica cannot be opened; give all the same master key");
            return;
        };
        // It may be one of a newer version.
        let Ok(message) = serde_json::from_str::<Message>(&body) else {
            tracing::warn!(sender, "a message of another replica is not understood; is it of another version?");
            return;
        };
        let receiver = || self.receivers().get(&address).cloned();
        match message {
            Message::Tell(body) => {
                if let Some(receiver) = receiver() {
                    receiver(Incoming { sender, body, cancel: CancellationToken::new(), answer: None });
                }
            }
            Message::Ask { number, body } => {
                let answering = Answering { replicas: Arc::clone(self), to: sender.clone(), number, is_sent: false };
                // Without a receiver, dropping it answers.
                if let Some(receiver) = receiver() {
                    let cancel = CancellationToken::new();
                    self.answering().insert((sender.clone(), number), cancel.clone());
                    receiver(Incoming { sender, body, cancel, answer: Some(answering) });
                }
            }
            Message::Answer { number, body } => {
                if let Some(asked) = self.asked().remove(&number) {
                    let _ = asked.send(body);
                }
            }
            Message::Withdraw { number } => {
                if let Some(cancel) = self.answering().remove(&(sender, number)) {
                    cancel.cancel();
                }
            }
        }
    }
}

impl Heartbeat {
    fn is_there(&self) -> bool {
        self.missed < MISSED_BEATS
    }
}

#[derive(Clone, Copy)]
enum Work {
    Beat,
    Receive,
}

/// A question that was asked. Dropping it withdraws it, unless it is answered.
struct Question {
    replicas: Arc<Replicas>,
    to: String,
    number: u64,
    is_open: bool,
}

impl Drop for Question {
    fn drop(&mut self) {
        let is_asked = self.replicas.asked().remove(&self.number).is_some();
        if self.is_open && is_asked && tokio::runtime::Handle::try_current().is_ok() {
            let (replicas, to, number) = (Arc::clone(&self.replicas), self.to.clone(), self.number);
            tokio::spawn(async move { replicas.send_or_log(&[to], "", &Message::Withdraw { number }).await });
        }
    }
}
