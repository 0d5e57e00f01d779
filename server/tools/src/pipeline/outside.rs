//! Calls of tools that are in no catalogue, such as `fetch`: they pass the chain as all calls do.

use super::{Pipeline, ToolCall};
use crate::catalogue::Entry;
use codecall_base::tool::{ErrorCode, ToolError};
use codecall_upstream::Upstream;
use std::sync::Arc;

impl Pipeline {
    /// Calls the only tool of an upstream that is in no catalogue, and returns its result as plain data, as JSON. Lists of allowed
    /// tools do not concern it.
    ///
    /// # Errors
    /// The call is refused or fails.
    pub async fn call_outside(&self, upstream: Arc<dyn Upstream>, call: ToolCall) -> Result<String, ToolError> {
        let missing = || ToolError::new(ErrorCode::ToolNotFound, "The upstream has no tool");
        let entry = Entry::outside(upstream).map(Arc::new).ok_or_else(missing)?;
        self.call_entry(&entry, call).await
    }

    /// Does the same for its entry.
    pub(super) async fn call_entry(&self, entry: &Arc<Entry>, call: ToolCall) -> Result<String, ToolError> {
        let call = Box::new(ToolCall { allowed: None, apps: None, ..call });
        let snapshot = self.catalogue.snapshot();
        let begun = Box::pin(self.enter(&snapshot, Ok(entry), call)).await?;
        let result = self.finish(begun).await?;
        self.plain_data(result, &entry.name).await
    }
}
