//! Requests of script tools: `fetch` passes the chain as a call of a tool does, but is in no catalogue.

use super::{Pipeline, ToolCall};
use crate::catalogue::Entry;
use codecall_base::tool::ToolError;
use codecall_config::HostRule;
use std::sync::Arc;

impl Pipeline {
    /// Returns `fetch` of one run, which may reach what `rules` say.
    #[must_use]
    pub fn fetch_of_run(&self, rules: Arc<[HostRule]>) -> Option<Arc<Entry>> {
        Entry::outside(self.fetcher.for_run(rules)).map(Arc::new)
    }

    /// Makes a request, and returns its response as plain data, as JSON. The hosts that it may reach are those of `fetch`; lists of
    /// allowed tools do not concern it.
    ///
    /// # Errors
    /// The request is refused or fails.
    pub async fn fetch(&self, fetch: &Arc<Entry>, call: ToolCall) -> Result<String, ToolError> {
        self.call_entry(fetch, call).await
    }
}
