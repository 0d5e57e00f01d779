//! The directories of tools that runs have begun with, by their digests: a run keeps its own, whatever the servers list later.

use restate_sdk::prelude::*;
use std::time::Duration;

/// How long a directory is kept after it was stored for the last time. Servers store the one that they use every day.
const KEEP: Duration = Duration::from_secs(90 * 86_400);

const TOOLS: &str = "tools";
const STORED: &str = "stored";

/// The object that keeps one directory.
pub struct Snapshots;

#[restate_sdk::object(name = "Snapshots")]
impl Snapshots {
    /// Stores a directory.
    #[handler]
    async fn put(&self, ctx: ObjectContext<'_>, bytes: Vec<u8>) -> Result<(), HandlerError> {
        let stored = ctx.get::<u64>(STORED).await?.unwrap_or_default() + 1;
        ctx.set(STORED, stored);
        ctx.set(TOOLS, bytes);
        ctx.object_client::<SnapshotsClient>(ctx.key()).expire(stored).send_after(KEEP);
        Ok(())
    }

    /// Deletes it, unless it was stored again since.
    #[handler(ingress_private)]
    async fn expire(&self, ctx: ObjectContext<'_>, stored: u64) -> Result<(), HandlerError> {
        if ctx.get::<u64>(STORED).await? == Some(stored) {
            ctx.clear_all();
        }
        Ok(())
    }

    /// Returns it.
    #[handler]
    async fn get(&self, ctx: SharedObjectContext<'_>) -> Result<Vec<u8>, HandlerError> {
        let missing = || TerminalError::new_with_code(404, "there is no directory of tools of this digest any more");
        Ok(ctx.get::<Vec<u8>>(TOOLS).await?.ok_or_else(missing)?)
    }
}
