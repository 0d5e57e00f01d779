//! Long results in the database: they outlive the process, and all servers of one database have them.
//!
//! A result is stored in pieces, because large rows are slow to write. Reading prolongs its life, so the one that would
//! expire first, which is evicted first, is the least recently read one.

use super::random_handle;
use crate::database::{Database, Statement, Value};
use crate::{BoxFuture, ResultStore, StoreError};
use codecall_config::ResultStore as Bounds;
use std::sync::Arc;

/// Maximum size of a piece, in bytes.
const PIECE: usize = 256 << 10;

/// Long results in a database.
pub struct SqlResults {
    database: Database,
    bounds: Bounds,
}

impl SqlResults {
    /// Creates the store of a database.
    #[must_use]
    pub fn new(database: Database, bounds: Bounds) -> Self {
        Self { database, bounds }
    }

    /// Returns when a result expires that is read now, in milliseconds since 1970.
    fn expiry(&self) -> i64 {
        self.database.now_ms().saturating_add(i64::try_from(self.bounds.expiry.as_millis()).unwrap_or(i64::MAX))
    }

    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Value>>, StoreError> {
        self.database.batch(statements).await.map_err(|problem| self.database.error(&problem))
    }
}

impl ResultStore for SqlResults {
    fn put(&self, text: String) -> BoxFuture<'_, Result<Option<String>, StoreError>> {
        Box::pin(async move {
            let Bounds { enabled, max_results, max_bytes, .. } = self.bounds;
            if !enabled || max_results == 0 || text.len() > max_bytes {
                return Ok(None);
            }
            let (handle, expires) = (random_handle()?, self.expiry());
            let number = |number: usize| Value::from(number as u64);
            let mut statements =
                vec![Statement::new("DELETE FROM results WHERE expires < $1", [self.database.now_ms().into()])];
            // An empty text has a piece too.
            let pieces = text.len().div_ceil(PIECE).max(1);
            for at in 0..pieces {
                let piece = &text.as_bytes()[at * PIECE..text.len().min((at + 1) * PIECE)];
                statements.push(Statement::new(
                    "INSERT INTO results (handle, piece, expires, bytes, content) VALUES ($1, $2, $3, $4, $5)",
                    [handle.as_str().into(), number(at), expires.into(), number(piece.len()), piece.to_vec().into()],
                ));
            }
            let too_many = "SELECT expires FROM results WHERE piece = 0 ORDER BY expires DESC LIMIT 1 OFFSET $1";
            let too_large = "SELECT max(expires) FROM (SELECT expires, sum(bytes) OVER (ORDER BY expires DESC) AS total \
                             FROM results) AS sums WHERE total > CAST($1 AS BIGINT)";
            for (last, max) in [(too_many, max_results), (too_large, max_bytes)] {
                // The result itself stays.
                let sql = format!("DELETE FROM results WHERE expires <= ({last}) AND handle <> $2");
                statements.push(Statement::new(sql, [number(max), handle.as_str().into()]));
            }
            self.batch(statements).await.map(|_| Some(handle))
        })
    }

    fn get<'a>(&'a self, handle: &'a str) -> BoxFuture<'a, Result<Option<Arc<str>>, StoreError>> {
        Box::pin(async move {
            let prolong = "UPDATE results SET expires = $1 WHERE handle = $2 AND expires >= $3";
            let read = "SELECT content FROM results WHERE handle = $1 ORDER BY piece";
            let now = self.database.now_ms();
            let rows = self
                .batch(vec![
                    Statement::new(prolong, [self.expiry().into(), handle.into(), now.into()]),
                    Statement::new("DELETE FROM results WHERE expires < $1", [now.into()]),
                    Statement::new(read, [handle.into()]),
                ])
                .await?;
            if rows.is_empty() {
                return Ok(None);
            }
            let content: Vec<u8> = rows.iter().flat_map(|row| row[0].bytes()).copied().collect();
            Ok(String::from_utf8(content).ok().map(Into::into))
        })
    }
}
