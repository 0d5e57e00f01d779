//! Approvals of tools: the definitions that a quarantine compares with the present ones.
//!
//! The texts of definitions are those of servers, kept to show what has changed. They contain nothing of the
//! configuration; a server is identified by a digest.

mod files;

use crate::database::{Database, Problem, Row, Statement};
use crate::state::hex;
use crate::{BoxFuture, Digest, StoreError, now_ms};
use codecall_config::Config;
use files::ApprovalFiles;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The approved definition of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Approval {
    /// The digest of the definition, in hexadecimal digits.
    pub digest: Box<str>,
    /// The definition, as canonical JSON.
    pub definition: Box<str>,
}

/// The approved tools of a server, by name.
pub type Approvals = BTreeMap<String, Approval>;

/// Approvals of tools by people, by server. An implementation keeps them in memory: the catalogue of tools does not
/// wait for a store.
pub trait ApprovalStore: Send + Sync {
    /// Returns what is approved, as far as this process knows; `None`: it does not know yet. A server that was asked about
    /// is read by the next [`ApprovalStore::refresh`].
    fn approved(&self, server: Digest) -> Option<Arc<Approvals>>;

    /// Reads what others have approved since. Returns whether anything is different.
    fn refresh(&self) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Adds approvals, which replace those of the same tools. They hold for this process from the call on, and for others
    /// when the future resolves.
    fn approve(&self, server: Digest, tools: Approvals) -> BoxFuture<'static, Result<(), StoreError>>;
}

/// Approvals in memory: they last as long as the process.
#[derive(Default)]
pub struct MemoryApprovals(Mutex<HashMap<Digest, Arc<Approvals>>>);

impl ApprovalStore for MemoryApprovals {
    fn approved(&self, server: Digest) -> Option<Arc<Approvals>> {
        Some(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&server).cloned().unwrap_or_default())
    }

    fn refresh(&self) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(ready(Ok(false)))
    }

    fn approve(&self, server: Digest, tools: Approvals) -> BoxFuture<'static, Result<(), StoreError>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(known.entry(server).or_default()).extend(tools);
        Box::pin(ready(Ok(())))
    }
}

/// Approvals in a database.
///
/// Earlier versions of the program had a file for each server in the folder of the state. It is moved to the database when the
/// server is first asked about.
pub struct SqlApprovals {
    database: Database,
    /// By server; `None`: it was asked about, and not read yet.
    known: Arc<Mutex<HashMap<Digest, Option<Known>>>>,
    files: Option<ApprovalFiles>,
}

/// The approvals of a server.
#[derive(Clone, Default)]
struct Known {
    /// How often its approvals were changed when they were read.
    changes: i64,
    approvals: Arc<Approvals>,
}

impl SqlApprovals {
    /// Creates the store of a database.
    #[must_use]
    pub fn new(database: Database, config: &Config) -> Self {
        let files = crate::state::folder(config).map(|folder| ApprovalFiles::new(&folder));
        Self { database, known: Arc::default(), files }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Digest, Option<Known>>> {
        lock(&self.known)
    }

    /// Returns how often the approvals of servers were changed.
    async fn changes(&self) -> Result<HashMap<String, i64>, StoreError> {
        let statement = Statement::new("SELECT server, changes FROM tool_approval_changes", []);
        let rows = batch(&self.database, vec![statement]).await?;
        Ok(rows.iter().map(|row| (row[0].text().unwrap_or_default().to_owned(), row[1].int())).collect())
    }

    /// Moves the approvals of an earlier version of the program to the database, which has none of the server.
    async fn take_over(&self, server: Digest) -> Result<bool, StoreError> {
        let Some(files) = &self.files else { return Ok(false) };
        let Some(approvals) = files.read(server).await? else { return Ok(false) };
        batch(&self.database, insert(server, &approvals, false)).await?;
        files.remove(server).await?;
        tracing::info!(tools = approvals.len(), "approvals of a server's tools were moved to the store");
        Ok(true)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn batch(database: &Database, statements: Vec<Statement>) -> Result<Vec<Row>, StoreError> {
    database.batch(statements).await.map_err(|problem: Problem| database.error(&problem))
}

/// Reads the approvals of a server.
async fn read(database: &Database, server: Digest) -> Result<Known, StoreError> {
    // In one statement, so that both are of the same moment.
    let sql = "SELECT c.changes, a.tool, a.digest, a.definition FROM tool_approval_changes c \
               LEFT JOIN tool_approvals a ON a.server = c.server WHERE c.server = $1";
    let rows = batch(database, vec![Statement::new(sql, [hex(&server).as_str().into()])]).await?;
    let changes = rows.first().map_or(0, |row| row[0].int());
    let approval = |row: &Row| {
        let text = |at: usize| row[at].text().unwrap_or_default();
        Some((row[1].text()?.to_owned(), Approval { digest: text(2).into(), definition: text(3).into() }))
    };
    Ok(Known { changes, approvals: Arc::new(rows.iter().filter_map(approval).collect()) })
}

/// Returns the statements that store approvals, or only those of tools that have none.
fn insert(server: Digest, tools: &Approvals, replaces: bool) -> Vec<Statement> {
    let server = hex(&server);
    // First, so that servers that approve at the same time do so one after the other.
    let count = "INSERT INTO tool_approval_changes (server, changes) VALUES ($1, 1) \
                 ON CONFLICT (server) DO UPDATE SET changes = tool_approval_changes.changes + 1";
    let sql = match replaces {
        true => {
            "INSERT INTO tool_approvals (server, tool, digest, definition, approved) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (server, tool) DO UPDATE \
             SET digest = excluded.digest, definition = excluded.definition, approved = excluded.approved"
        }
        false => {
            "INSERT INTO tool_approvals (server, tool, digest, definition, approved) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT DO NOTHING"
        }
    };
    let now = now_ms();
    let row = |(tool, Approval { digest, definition }): (&String, &Approval)| {
        let texts = [server.as_str(), tool, digest, definition].map(Into::into);
        Statement::new(sql, texts.into_iter().chain([now.into()]).collect::<Vec<_>>())
    };
    std::iter::once(Statement::new(count, [server.as_str().into()])).chain(tools.iter().map(row)).collect()
}

impl ApprovalStore for SqlApprovals {
    fn approved(&self, server: Digest) -> Option<Arc<Approvals>> {
        let mut known = self.known();
        known.entry(server).or_default().as_ref().map(|known| Arc::clone(&known.approvals))
    }

    fn refresh(&self) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let before: Vec<(Digest, Option<i64>)> = self
                .known()
                .iter()
                .map(|(server, known)| (*server, known.as_ref().map(|known| known.changes)))
                .collect();
            if before.is_empty() {
                return Ok(false);
            }
            let mut changes = self.changes().await?;
            let mut is_different = false;
            for (server, seen) in before {
                let mut now = changes.remove(&hex(&server)).unwrap_or_default();
                if now == 0 && seen.is_none() && self.take_over(server).await? {
                    now = 1;
                }
                if seen == Some(now) {
                    continue;
                }
                let read = read(&self.database, server).await?;
                let mut known = self.known();
                let before = known.insert(server, Some(read.clone())).flatten();
                is_different |= before.is_none_or(|before| before.approvals != read.approvals);
            }
            Ok(is_different)
        })
    }

    fn approve(&self, server: Digest, tools: Approvals) -> BoxFuture<'static, Result<(), StoreError>> {
        if let Some(known) = self.known().entry(server).or_default() {
            Arc::make_mut(&mut known.approvals).extend(tools.clone());
        }
        let (database, all) = (self.database.clone(), Arc::clone(&self.known));
        Box::pin(async move {
            batch(&database, insert(server, &tools, true)).await?;
            let read = read(&database, server).await?;
            lock(&all).insert(server, Some(read));
            Ok(())
        })
    }
}
