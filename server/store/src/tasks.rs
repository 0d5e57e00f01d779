//! Requests of MCP clients that have become tasks: their list and their ends, for servers other than the one that has
//! begun them.

use crate::database::{Database, Row, Statement, Value};
use crate::sealed::{KeyRing, Place, SealError};
use crate::{ReplicaProblem, StoreError};
use std::time::Duration;

/// A stored task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTask {
    /// The id of its run, if it is one that outlives its server.
    pub run: Option<String>,
    /// The description that its client has got: JSON.
    pub description: String,
    /// How it has ended: JSON. `None`: it has not, or its server has ended before it.
    pub end: Option<String>,
}

/// Tasks in a database.
#[derive(Clone, Debug)]
pub struct SqlTasks(pub Database);

fn place<'a>(scope: &'a str, id: &'a str) -> Place<'a> {
    Place { table: "task", owner: scope, name: id }
}

impl SqlTasks {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Row>, StoreError> {
        self.0.batch(statements).await.map_err(|problem| self.0.error(&problem))
    }

    /// Stores a task of a client for `keep`. `scope` says whose it is.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn put(
        &self,
        scope: &str,
        id: &str,
        run: Option<&str>,
        description: &str,
        keep: Duration,
    ) -> Result<(), StoreError> {
        let expires = self.0.now_ms().saturating_add(i64::try_from(keep.as_millis()).unwrap_or(i64::MAX));
        let insert = "INSERT INTO tasks (id, scope, run, description, expires) VALUES ($1, $2, $3, $4, $5)";
        let values = [id.into(), scope.into(), run.into(), description.into(), expires.into()];
        let expired = Statement::new("DELETE FROM tasks WHERE expires < $1", [self.0.now_ms().into()]);
        self.batch(vec![expired, Statement::new(insert, values)]).await.map(drop)
    }

    /// Stores how a task has ended.
    ///
    /// # Errors
    /// It cannot be sealed, or the database cannot be used.
    pub async fn end(&self, keys: &KeyRing, scope: &str, id: &str, end: &str) -> Result<(), ReplicaProblem> {
        let sealed = keys.seal(place(scope, id), end.as_bytes())?;
        let update = "UPDATE tasks SET sealed = $1 WHERE id = $2 AND scope = $3";
        Ok(self.batch(vec![Statement::new(update, [sealed.into(), id.into(), scope.into()])]).await.map(drop)?)
    }

    /// Returns a task of a client; `None`: it has none of this id (any more).
    ///
    /// # Errors
    /// It cannot be opened, or the database cannot be used.
    pub async fn get(&self, keys: &KeyRing, scope: &str, id: &str) -> Result<Option<StoredTask>, ReplicaProblem> {
        let select = "SELECT run, description, sealed FROM tasks WHERE id = $1 AND scope = $2 AND expires >= $3";
        let rows = self.batch(vec![Statement::new(select, [id.into(), scope.into(), self.0.now_ms().into()])]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let text = |at: usize| row.get(at).and_then(Value::text).map(str::to_owned);
        let end = match row.get(2) {
            Some(sealed @ Value::Bytes(_)) => {
                let opened = keys.open(place(scope, id), sealed.bytes())?;
                Some(String::from_utf8(opened.to_vec()).map_err(|_| SealError::Tampered)?)
            }
            Some(Value::Null | Value::Int(_) | Value::Text(_)) | None => None,
        };
        Ok(Some(StoredTask { run: text(0), description: text(1).unwrap_or_default(), end }))
    }
}
