//! When a run ends whose client can be asked, and when nobody waits for it any more.

use super::context::RunContext;
use super::request::ExecuteRequest;
use codecall_base::client::Client;
use std::sync::Arc;
use std::time::Duration;

/// Abandons a run when its future is dropped. This has no effect on a run that has ended.
pub(super) struct AbandonOnDrop {
    pub(super) context: Arc<RunContext>,
    /// The memory limit of its script.
    pub(super) max_bytes: u64,
}

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.context.abandon(self.max_bytes);
    }
}

/// When a run whose tools can ask its client must have ended. The interpreter does not know how long the client takes, so
/// its own limit is longer.
pub(super) struct Deadline {
    client: Client,
    limit: Duration,
}

impl Deadline {
    pub(super) fn new(request: &mut ExecuteRequest) -> Self {
        let limits = &mut request.policy.limits;
        let limit = Duration::from_millis(limits.max_duration_ms);
        let is_asked = !request.dry_run && request.client.can_be_asked();
        let client = if is_asked { request.client.clone() } else { Client::default() };
        if let Some(port) = client.port() {
            let more = u64::try_from(port.waits().max().as_millis()).unwrap_or(u64::MAX);
            limits.max_duration_ms = limits.max_duration_ms.saturating_add(more);
        }
        Self { client, limit }
    }

    /// Resolves after the limit, without the time that the client takes, and says so.
    pub(super) async fn passed(&self) -> String {
        let Some(port) = self.client.port() else { return std::future::pending().await };
        port.waits().limit(self.limit, std::future::pending::<()>()).await;
        format!("Script execution timed out after {}ms", self.limit.as_millis())
    }
}
