//! Long results of durable runs: they are kept, and sealed, as the outcomes of these runs are.

use crate::database::{Database, Statement, Value};
use crate::sealed::{KeyRing, Place, SealError};
use crate::{BoxFuture, Hold, JournalProblem, Lease, StoreError};
use codecall_base::offload;

/// Maximum size of a piece, in bytes. Large rows are slow to write.
const PIECE: usize = 256 << 10;

/// Long results of durable runs.
pub trait RunResults: Send + Sync {
    /// Keeps the result of a run that the process of the lease holds, until a time in milliseconds since 1970.
    fn put<'a>(
        &'a self,
        keys: &'a KeyRing,
        lease: &'a Lease,
        hold: &'a Hold,
        text: &'a str,
        keep_until_ms: i64,
    ) -> BoxFuture<'a, Result<(), JournalProblem>>;

    /// Returns the result of a run; `None`: it has no long one.
    fn get<'a>(&'a self, keys: &'a KeyRing, run: &'a str) -> BoxFuture<'a, Result<Option<String>, JournalProblem>>;

    /// Deletes those that are no longer kept.
    fn retain(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// Long results in a database.
#[derive(Clone, Debug)]
pub struct SqlRunResults(pub Database);

impl SqlRunResults {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Value>>, StoreError> {
        self.0.batch(statements).await.map_err(|problem| self.0.error(&problem))
    }
}

impl RunResults for SqlRunResults {
    fn put<'a>(
        &'a self,
        keys: &'a KeyRing,
        lease: &'a Lease,
        hold: &'a Hold,
        text: &'a str,
        keep_until_ms: i64,
    ) -> BoxFuture<'a, Result<(), JournalProblem>> {
        Box::pin(async move {
            let run = hold.id.as_str();
            let pieces = offload::run_without_permit(text.len(), || sealed(keys, run, text))?;
            // Another process may have stored more pieces of an earlier evaluation.
            let held = "run = (SELECT id FROM journaled_runs WHERE id = $1 AND owner = $2 AND fence = $3)";
            let owner = || Value::from(lease.owner.as_str());
            let mut statements = vec![Statement::new(
                format!("DELETE FROM run_results WHERE {held}"),
                [run.into(), owner(), hold.fence.into()],
            )];
            let insert = "INSERT INTO run_results (run, piece, keep_until, sealed) \
                          SELECT id, CAST($1 AS BIGINT), CAST($2 AS BIGINT), CAST($3 AS {bytes}) FROM journaled_runs \
                          WHERE id = $4 AND owner = $5 AND fence = $6 RETURNING run";
            for (piece, sealed) in (0_u64..).zip(pieces) {
                let values =
                    [piece.into(), keep_until_ms.into(), sealed.into(), run.into(), owner(), hold.fence.into()];
                statements.push(Statement::new(insert, values));
            }
            match self.batch(statements).await?.is_empty() {
                true => Err(JournalProblem::Lost),
                false => Ok(()),
            }
        })
    }

    fn get<'a>(&'a self, keys: &'a KeyRing, run: &'a str) -> BoxFuture<'a, Result<Option<String>, JournalProblem>> {
        Box::pin(async move {
            let sql = "SELECT piece, sealed FROM run_results WHERE run = $1 ORDER BY piece";
            let rows = self.batch(vec![Statement::new(sql, [run.into()])]).await?;
            if rows.is_empty() {
                return Ok(None);
            }
            let bytes = rows.iter().map(|row| row[1].bytes().len()).sum();
            Ok(Some(offload::run_without_permit(bytes, || opened(keys, run, &rows))?))
        })
    }

    fn retain(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let sql = "DELETE FROM run_results WHERE keep_until < $1";
            self.batch(vec![Statement::new(sql, [self.0.now_ms().into()])]).await.map(drop)
        })
    }
}

fn sealed(keys: &KeyRing, run: &str, text: &str) -> Result<Vec<Vec<u8>>, SealError> {
    let packed = miniz_oxide::deflate::compress_to_vec_zlib(text.as_bytes(), 1);
    let seal = |(piece, part): (usize, &[u8])| {
        keys.seal(Place { table: "run result", owner: run, name: &piece.to_string() }, part)
    };
    packed.chunks(PIECE).enumerate().map(seal).collect()
}

fn opened(keys: &KeyRing, run: &str, rows: &[Vec<Value>]) -> Result<String, SealError> {
    let mut packed = Vec::new();
    for row in rows {
        let name = row[0].int().to_string();
        packed.extend_from_slice(&keys.open(Place { table: "run result", owner: run, name: &name }, row[1].bytes())?);
    }
    // The sum at its end says whether a piece is missing.
    crate::runs::inflated(&packed).ok_or(SealError::Tampered)
}
