//! Passes on to a run what a person has decided.

use crate::code::CodeClient;
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};

/// A decision.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Decided {
    /// The run.
    pub run: String,
    /// The approval that was decided. What was decided is in the store.
    pub approval: String,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
}

/// Returns the name of the signal of an approval.
pub fn signal(approval: &str) -> String {
    format!("decided {approval}")
}

/// The service of decisions.
pub struct People;

#[restate_sdk::service(name = "People")]
impl People {
    /// Lets a run go on that waits for a decision.
    #[handler]
    async fn decide(&self, ctx: Context<'_>, decided: Json<Decided>) -> Result<(), HandlerError> {
        let Json(Decided { run, approval, at_ms }) = decided;
        // A run that has begun has said so before it asks anybody.
        if let Json(Some(begun)) = ctx.workflow_client::<CodeClient>(run).begun().call().await? {
            ctx.invocation_handle(begun.invocation).signal(signal(&approval)).resolve(at_ms);
        }
        Ok(())
    }
}
