//! Answers in the database: they outlive the process, and all servers of one database have them.
//!
//! An answer is as its tool has given it, with whatever is masked or redacted later, and its key has the input. So the answer
//! is sealed, and the key is a digest. Reading writes nothing: the answer that was stored first is evicted first.

use super::AnswerCache;
use crate::database::{Database, Statement, Value};
use crate::sealed::{KeySource, Place};
use crate::state::hex;
use crate::{BoxFuture, CachedKeys, StoreError, now_us};
use codecall_base::offload;
use codecall_base::tool::{LongResult, ToolResult};
use codecall_config::{CacheConfig, Config};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use std::time::Duration;

/// Answers in a database.
pub struct SqlAnswers {
    database: Database,
    source: KeySource,
    keys: CachedKeys,
    max_entries: usize,
    max_bytes: usize,
}

impl SqlAnswers {
    /// Creates the cache of a database, with the master key and the bounds of a configuration.
    #[must_use]
    pub fn new(database: Database, config: &Config) -> Self {
        let CacheConfig { max_entries, max_bytes, .. } = config.chain.cache;
        let keys = CachedKeys::new(database.clone());
        Self { database, source: KeySource::of(config), keys, max_entries, max_bytes }
    }

    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Value>>, StoreError> {
        self.database.batch(statements).await.map_err(|problem| self.database.error(&problem))
    }

    async fn read(&self, key: &str) -> Result<Option<ToolResult>, StoreError> {
        let key = digest(key).await?;
        let sql = "SELECT sealed FROM answers WHERE key = $1 AND expires > $2";
        let rows = self.batch(vec![Statement::new(sql, [key.as_str().into(), self.database.now_ms().into()])]).await?;
        let Some(sealed) = rows.first().and_then(|row| row.first()) else { return Ok(None) };
        let ring = self.keys.get(&self.source).await.map_err(|error| StoreError(error.to_string()))?;
        let open = || {
            let opened = ring.open(place(&key), sealed.bytes()).map_err(|error| error.to_string())?;
            from_bytes(&opened).ok_or_else(|| "a newer version of this program has stored the answer".to_owned())
        };
        offloaded(sealed.bytes().len(), open).await?.map(Some).map_err(StoreError)
    }

    async fn write(&self, key: &str, answer: &ToolResult, ttl: Duration) -> Result<(), StoreError> {
        if self.max_entries == 0 || key.len() + answer.size() > self.max_bytes {
            return Ok(());
        }
        let key = digest(key).await?;
        let ring = self.keys.get(&self.source).await.map_err(|error| StoreError(error.to_string()))?;
        let seal = || ring.seal(place(&key), &to_bytes(answer)).map_err(|error| StoreError(error.to_string()));
        let sealed = offloaded(answer.weight(), seal).await??;
        let now = self.database.now_ms();
        let expires = now.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
        let number = |number: usize| Value::from(number as u64);
        let insert = "INSERT INTO answers (key, stored, expires, bytes, sealed) VALUES ($1, $2, $3, $4, $5) \
                      ON CONFLICT (key) DO UPDATE SET stored = excluded.stored, \
                      expires = excluded.expires, bytes = excluded.bytes, sealed = excluded.sealed";
        let values = [key.as_str().into(), now_us().into(), expires.into(), number(sealed.len()), sealed.into()];
        let too_many = "SELECT stored FROM answers ORDER BY stored DESC LIMIT 1 OFFSET $1";
        let too_large = "SELECT max(stored) FROM (SELECT stored, sum(bytes) OVER (ORDER BY stored DESC) AS total \
                         FROM answers) AS sums WHERE total > CAST($1 AS BIGINT)";
        let mut statements = vec![
            Statement::new("DELETE FROM answers WHERE expires <= $1", [now.into()]),
            Statement::new(insert, values),
        ];
        for (last, max) in [(too_many, self.max_entries), (too_large, self.max_bytes)] {
            // The answer itself stays.
            let sql = format!("DELETE FROM answers WHERE stored <= ({last}) AND key <> $2");
            statements.push(Statement::new(sql, [number(max), key.as_str().into()]));
        }
        self.batch(statements).await.map(drop)
    }
}

impl AnswerCache for SqlAnswers {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<ToolResult>, StoreError>> {
        Box::pin(self.read(key))
    }

    fn put(&self, key: String, answer: ToolResult, ttl: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.write(&key, &answer, ttl).await })
    }
}

fn place(key: &str) -> Place<'_> {
    Place { table: "answers", owner: "", name: key }
}

async fn offloaded<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> Result<T, StoreError> {
    offload::run(bytes, work).await.map_err(|busy| StoreError(busy.to_string()))
}

async fn digest(key: &str) -> Result<String, StoreError> {
    offloaded(key.len(), || hex(&Sha256::digest(key))).await
}

/// The kind of a result, and its JSON.
fn to_bytes(answer: &ToolResult) -> Vec<u8> {
    let (kind, json) = match answer {
        ToolResult::Data(value) => (b'd', Cow::Owned(value.to_string())),
        ToolResult::Mcp(value) => (b'm', Cow::Owned(value.to_string())),
        ToolResult::Long(long) if long.is_mcp() => (b'm', Cow::Borrowed(long.text())),
        ToolResult::Long(long) => (b'd', Cow::Borrowed(long.text())),
    };
    let mut bytes = vec![kind];
    bytes.extend_from_slice(json.as_bytes());
    bytes
}

fn from_bytes(bytes: &[u8]) -> Option<ToolResult> {
    let (kind, json) = bytes.split_first()?;
    let json = String::from_utf8(json.to_vec()).ok()?;
    let (long, short): (_, fn(Json) -> ToolResult) = match kind {
        b'd' => (LongResult::of_data(json), ToolResult::Data),
        b'm' => (LongResult::of_mcp(json), ToolResult::Mcp),
        _ => return None,
    };
    match long {
        Ok(long) => Some(ToolResult::Long(long)),
        Err(json) => serde_json::from_str(&json).ok().map(short),
    }
}
