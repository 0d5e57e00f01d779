//! Records by a digest that can be learned again: compressed JSON. One that cannot be read is the same as none.

use crate::database::{Database, Statement};
use crate::runs::{deflated, inflated};
use crate::state::hex;
use crate::{Digest, StoreError, now_ms};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// How many records a table keeps. The ones that were not written for the longest time are removed.
const MAX_RECORDS: u64 = 500;
/// The version of the format. Records of other versions are ignored.
const FORMAT: u32 = 1;

/// The records of a table, which has the columns `key`, `written` and `record`.
pub struct Records {
    pub database: Database,
    pub table: &'static str,
    pub key: &'static str,
    /// Maximum size of a record, in bytes of JSON. A larger one is not stored.
    pub max_bytes: usize,
}

/// A stored record.
#[derive(Deserialize, Serialize)]
struct Stored<R> {
    format: u32,
    record: R,
}

impl Records {
    /// Returns a record; `None` if there is none, or none that can be read.
    pub async fn get<R: DeserializeOwned + Send + 'static>(&self, key: Digest) -> Result<Option<R>, StoreError> {
        let Self { database, table, key: column, .. } = self;
        let sql = format!("SELECT record FROM {table} WHERE {column} = $1");
        let rows = database.query(sql, [hex(&key).as_str().into()]).await;
        let rows = rows.map_err(|problem| database.error(&problem))?;
        let Some(record) = rows.first().map(|row| row[0].bytes().to_vec()) else { return Ok(None) };
        // It may have megabytes.
        let parsed = tokio::task::spawn_blocking(move || serde_json::from_str::<Stored<R>>(&inflated(&record)?).ok());
        match parsed.await {
            Ok(Some(Stored { format: FORMAT, record })) => Ok(Some(record)),
            Ok(Some(_)) => Ok(None),
            Ok(None) => {
                tracing::warn!("{}: a row of {table} is damaged and is ignored", database.place());
                Ok(None)
            }
            Err(error) => Err(StoreError(error.to_string())),
        }
    }

    /// Stores a record, unless it is too long, and replaces an earlier one.
    pub async fn put<R: Serialize + Send + 'static>(&self, key: Digest, record: R) -> Result<(), StoreError> {
        let Self { database, table, key: column, max_bytes } = self;
        let max_bytes = *max_bytes;
        let writing = tokio::task::spawn_blocking(move || {
            let text = serde_json::to_string(&Stored { format: FORMAT, record }).ok()?;
            (text.len() <= max_bytes).then(|| deflated(&text))
        });
        let Some(record) = writing.await.map_err(|error| StoreError(error.to_string()))? else { return Ok(()) };
        let put = format!(
            "INSERT INTO {table} ({column}, written, record) VALUES ($1, $2, $3) \
             ON CONFLICT ({column}) DO UPDATE SET written = excluded.written, record = excluded.record"
        );
        let remove = format!(
            "DELETE FROM {table} WHERE written < (SELECT written FROM {table} ORDER BY written DESC LIMIT 1 OFFSET $1)"
        );
        let statements = vec![
            Statement::new(put, [hex(&key).as_str().into(), now_ms().into(), record.into()]),
            Statement::new(remove, [(MAX_RECORDS - 1).into()]),
        ];
        database.batch(statements).await.map(drop).map_err(|problem| database.error(&problem))
    }
}
