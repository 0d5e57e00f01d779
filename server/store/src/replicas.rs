//! The replicas of a server: who is there, messages between them, and secrets that all of them have.
//!
//! A replica counts its beats; the others see whether the number grows, so their clocks are not compared. A message is
//! a row for each recipient, which the recipient deletes when it reads it. A message is read once, and none is missed
//! if a notification is. Messages are sealed: they contain answers of people and results of tools.

use crate::database::{Database, Listener, Row, Statement, Value};
use crate::sealed::{KeyRing, Place, SealError};
use crate::{StoreError, VaultError, now_us};
use std::sync::atomic::{AtomicI64, Ordering};

/// The length of a secret of the replicas, in bytes.
const SECRET_BYTES: usize = 32;
/// How long a message that nobody has read is kept, in microseconds.
const UNREAD_US: i64 = 10 * 60 * 1_000_000;

/// A message that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaMessage {
    /// The replica that has sent it.
    pub sender: String,
    /// Whom it is for, in the recipient.
    pub address: String,
    /// Its text; `None`: it cannot be opened, because its sender has another master key, or somebody has changed it.
    pub body: Option<String>,
}

/// Why replicas cannot share what is sealed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplicaProblem {
    /// It cannot be sealed or opened.
    #[error("{0}")]
    Seal(#[from] SealError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<VaultError> for ReplicaProblem {
    fn from(error: VaultError) -> Self {
        match error {
            VaultError::Seal(error) => Self::Seal(error),
            VaultError::Store(error) => Self::Store(error),
            VaultError::Invalid(problem) => Self::Store(StoreError(problem)),
        }
    }
}

/// The replicas of a database.
#[derive(Debug)]
pub struct SqlReplicas {
    database: Database,
    /// When the last message was sent: each one is later than the one before.
    last_sent: AtomicI64,
}

impl SqlReplicas {
    /// The replicas that use a database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database, last_sent: AtomicI64::default() }
    }

    /// Returns what is notified of messages for a replica.
    #[must_use]
    pub fn listen(&self, replica: &str) -> Listener {
        self.database.listen(replica)
    }

    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Row>, StoreError> {
        self.database.batch(statements).await.map_err(|problem| self.database.error(&problem))
    }

    /// Notes that a replica is there. Returns all that are, with the number of their beats.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn beat(&self, replica: &str) -> Result<Vec<(String, i64)>, StoreError> {
        let beat =
            "INSERT INTO replicas (id, beat) VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET beat = replicas.beat + 1";
        let rows = self
            .batch(vec![Statement::new(beat, [replica.into()]), Statement::new("SELECT id, beat FROM replicas", [])])
            .await?;
        Ok(rows.iter().filter_map(|row| Some((row.first()?.text()?.to_owned(), row.get(1)?.int()))).collect())
    }

    /// Removes a replica that has ended, and the messages for it.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn remove(&self, replica: &str) -> Result<(), StoreError> {
        let statements = vec![
            Statement::new("DELETE FROM replicas WHERE id = $1", [replica.into()]),
            Statement::new("DELETE FROM replica_messages WHERE recipient = $1", [replica.into()]),
            // Those for replicas that were removed while they were sent.
            Statement::new("DELETE FROM replica_messages WHERE sent < $1", [(now_us() - UNREAD_US).into()]),
        ];
        self.batch(statements).await.map(drop)
    }

    /// Sends a message to each of the recipients.
    ///
    /// # Errors
    /// It cannot be sealed, or the database cannot be used.
    pub async fn send(
        &self,
        keys: &KeyRing,
        sender: &str,
        recipients: &[String],
        address: &str,
        body: &str,
    ) -> Result<(), ReplicaProblem> {
        let now = now_us();
        let before = self.last_sent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(now.max(last + 1)));
        let sent = now.max(before.unwrap_or_default() + 1);
        let insert = "INSERT INTO replica_messages (recipient, sent, id, sender, address, sealed) VALUES ($1, $2, $3, $4, $5, $6)";
        let statement = |recipient: &String| {
            let place = Place { table: "replica message", owner: recipient, name: address };
            let sealed = keys.seal(place, body.as_bytes())?;
            // Within a microsecond, two senders differ.
            let values =
                [recipient.as_str().into(), sent.into(), sender.into(), sender.into(), address.into(), sealed.into()];
            Ok::<_, SealError>(Statement::new(insert, values))
        };
        let statements: Vec<Statement> = recipients.iter().map(statement).collect::<Result<_, _>>()?;
        if statements.is_empty() {
            return Ok(());
        }
        Ok(self.batch(statements).await.map(drop)?)
    }

    /// Reads the messages for a replica, in the order in which each sender has sent them. They are read once.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn receive(&self, keys: &KeyRing, replica: &str) -> Result<Vec<ReplicaMessage>, StoreError> {
        let read = "DELETE FROM replica_messages WHERE recipient = $1 RETURNING sent, sender, address, sealed";
        let mut rows = self.batch(vec![Statement::new(read, [replica.into()])]).await?;
        rows.sort_by_key(|row| row.first().map(Value::int));
        let message = |row: &Row| {
            let (sender, address) = (row.get(1)?.text()?.to_owned(), row.get(2)?.text()?.to_owned());
            let place = Place { table: "replica message", owner: replica, name: &address };
            let opened = keys.open(place, row.get(3)?.bytes()).ok();
            let body = opened.and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
            Some(ReplicaMessage { sender, address, body })
        };
        Ok(rows.iter().filter_map(message).collect())
    }

    /// Returns a secret of 32 bytes that all replicas have. The first one makes it.
    ///
    /// # Errors
    /// It was sealed with another master key, or the database cannot be used.
    pub async fn secret(&self, keys: &KeyRing, name: &str) -> Result<[u8; SECRET_BYTES], ReplicaProblem> {
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret).map_err(|_| SealError::NoRandom)?;
        let place = Place { table: "replica secret", owner: "", name };
        let sealed = keys.seal(place, &secret)?;
        let insert = "INSERT INTO replica_secrets (name, sealed) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
        let rows = self
            .batch(vec![
                Statement::new(insert, [name.into(), sealed.into()]),
                Statement::new("SELECT sealed FROM replica_secrets WHERE name = $1", [name.into()]),
            ])
            .await?;
        let sealed = rows.first().and_then(|row| row.first()).map(Value::bytes).unwrap_or_default();
        let opened = keys.open(place, sealed)?;
        Ok(opened.as_slice().try_into().map_err(|_| SealError::Tampered)?)
    }
}
