//! Sessions of MCP clients, for servers that share a database: any of them can go on with a session that another one has
//! begun.
//!
//! A session is what its client has opened it with, and the requests that have changed it since. Its id is a secret of
//! the client: the database has its digest only.

use crate::StoreError;
use crate::database::{Database, Row, Statement, Value};
use std::time::Duration;

/// Maximum number of sessions. More remove those that would expire first.
const MAX_SESSIONS: i64 = 100_000;

/// A stored session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// The message with which the client has opened it: JSON.
    pub opening: String,
    /// The server to which the stream of the client is open.
    pub stream: Option<String>,
}

/// Sessions in a database.
#[derive(Clone, Debug)]
pub struct SqlSessions(pub Database);

impl SqlSessions {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Row>, StoreError> {
        self.0.batch(statements).await.map_err(|problem| self.0.error(&problem))
    }

    /// Stores a session until it is not used for `idle`.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn put(&self, id: &str, opening: &str, idle: Duration) -> Result<(), StoreError> {
        let insert = "INSERT INTO sessions (id, opening, expires) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING";
        self.batch(vec![Statement::new(insert, [id.into(), opening.into(), expiry(&self.0, idle)])]).await.map(drop)
    }

    /// Returns a session; `None`: there is none of this id (any more). It is used by that.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn get(&self, id: &str, idle: Duration) -> Result<Option<StoredSession>, StoreError> {
        let prolong = "UPDATE sessions SET expires = $1 WHERE id = $2 AND expires >= $3 RETURNING opening, stream";
        let rows = self
            .batch(vec![Statement::new(prolong, [expiry(&self.0, idle), id.into(), self.0.now_ms().into()])])
            .await?;
        Ok(rows.first().and_then(|row| {
            let stream = row.get(1).and_then(Value::text).map(str::to_owned);
            Some(StoredSession { opening: row.first()?.text()?.to_owned(), stream })
        }))
    }

    /// Ends a session.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn delete(&self, id: &str) -> Result<(), StoreError> {
        let statements = vec![
            Statement::new("DELETE FROM session_requests WHERE session = $1", [id.into()]),
            Statement::new("DELETE FROM sessions WHERE id = $1", [id.into()]),
        ];
        self.batch(statements).await.map(drop)
    }

    /// Notes to which server the stream of the client is open.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn set_stream(&self, id: &str, server: &str) -> Result<(), StoreError> {
        let update = "UPDATE sessions SET stream = $1 WHERE id = $2";
        self.batch(vec![Statement::new(update, [server.into(), id.into()])]).await.map(drop)
    }

    /// Stores a request that has changed a session, in place of an earlier one of its name. `None`: there is none any more.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn set_request(&self, id: &str, name: &str, request: Option<&str>) -> Result<(), StoreError> {
        let statement = match request {
            Some(request) => Statement::new(
                "INSERT INTO session_requests (session, name, request) VALUES ($1, $2, $3)
                 ON CONFLICT (session, name) DO UPDATE SET request = excluded.request",
                [id.into(), name.into(), request.into()],
            ),
            None => Statement::new(
                "DELETE FROM session_requests WHERE session = $1 AND name = $2",
                [id.into(), name.into()],
            ),
        };
        self.batch(vec![statement]).await.map(drop)
    }

    /// Returns the requests that have changed a session.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn requests(&self, id: &str) -> Result<Vec<String>, StoreError> {
        let select = "SELECT request FROM session_requests WHERE session = $1 ORDER BY name";
        let rows = self.batch(vec![Statement::new(select, [id.into()])]).await?;
        Ok(rows.iter().filter_map(|row| Some(row.first()?.text()?.to_owned())).collect())
    }

    /// Deletes sessions that were not used for too long, and those beyond the maximum number.
    ///
    /// # Errors
    /// The database cannot be used.
    pub async fn retain(&self) -> Result<(), StoreError> {
        let beyond = "DELETE FROM sessions WHERE expires <= \
             (SELECT expires FROM sessions ORDER BY expires DESC LIMIT 1 OFFSET $1)";
        let statements = vec![
            Statement::new("DELETE FROM sessions WHERE expires < $1", [self.0.now_ms().into()]),
            Statement::new(beyond, [MAX_SESSIONS.into()]),
            Statement::new("DELETE FROM session_requests WHERE session NOT IN (SELECT id FROM sessions)", []),
        ];
        self.batch(statements).await.map(drop)
    }
}

fn expiry(database: &Database, idle: Duration) -> Value {
    database.now_ms().saturating_add(i64::try_from(idle.as_millis()).unwrap_or(i64::MAX)).into()
}
