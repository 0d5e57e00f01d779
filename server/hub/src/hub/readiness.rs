//! Waiting for upstreams: until they are connected, or their tools are known.

use super::Hub;
use futures_util::future::join_all;
use std::time::Duration;

/// How long after the start of the process requests that concern all upstreams wait for those whose tools are not known.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long after the start of the process a search that finds nothing waits for servers whose tools are not known.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(8);

impl Hub {
    /// Starts all upstreams. Waits until every one has connected or failed for the first time, at most `timeout`.
    pub async fn ready(&self, timeout: Duration) {
        let settled = join_all(self.catalogue.upstreams().map(|upstream| upstream.first_attempt()));
        let _ = tokio::time::timeout(timeout, settled).await;
        self.catalogue.catch_up();
    }

    /// Waits until every upstream has connected or failed for the first time, and starts none sooner than it would.
    pub async fn started(&self) {
        join_all(self.catalogue.upstreams().map(|upstream| upstream.start_ended())).await;
        self.catalogue.catch_up();
    }

    /// Waits until what earlier processes have stored of the tools of upstreams is read. Returns whether there was something.
    pub async fn recalled(&self) -> bool {
        let left = STARTUP_TIMEOUT.saturating_sub(self.started.elapsed());
        let recalled = join_all(self.starting.iter().map(|upstream| upstream.recalled()));
        let recalled = tokio::time::timeout(left, recalled).await.unwrap_or_default();
        self.catalogue.catch_up();
        recalled.contains(&true)
    }

    /// Waits until the tools of all upstreams are known, up to [`STARTUP_TIMEOUT`] after the start of the hub. Nobody waits
    /// for upstreams whose tools are known from an earlier start.
    pub async fn wait_for_tools(&self) {
        let left = STARTUP_TIMEOUT.saturating_sub(self.started.elapsed());
        if !left.is_zero() {
            let _ = tokio::time::timeout(left, self.catalogue.wait_for_all()).await;
            self.catalogue.catch_up();
        }
    }

    /// Waits until there are tools to search: those that are known from an earlier start, those of local upstreams, and those
    /// of the servers that texts mention, which start before others.
    pub async fn wait_for_search(&self, texts: &[&str]) {
        self.recalled().await;
        let left = SEARCH_TIMEOUT.saturating_sub(self.started.elapsed());
        let _ = tokio::time::timeout(left, self.catalogue.wait_for_mentioned(texts)).await;
    }

    /// Waits until the tools of one more server are known, up to [`SEARCH_TIMEOUT`] after the start of the hub. Returns whether
    /// there may be new ones.
    pub async fn wait_for_one_more(&self) -> bool {
        let left = SEARCH_TIMEOUT.saturating_sub(self.started.elapsed());
        !left.is_zero() && tokio::time::timeout(left, self.catalogue.wait_for_one_more()).await == Ok(true)
    }

    /// Waits for the connections of all upstreams, up to [`STARTUP_TIMEOUT`] after the start of the hub.
    pub async fn wait_for_connections(&self) {
        let left = STARTUP_TIMEOUT.saturating_sub(self.started.elapsed());
        if !left.is_zero() {
            self.ready(left).await;
        }
    }

    /// Waits until tools are known, at most for the time limit of a tool call.
    pub async fn wait_for_named(&self, names: &[String]) {
        let limit = Duration::from_millis(self.config.policy.limits.tool_timeout_ms);
        let known = join_all(names.iter().map(|name| self.catalogue.wait_for_tool(name)));
        let _ = tokio::time::timeout(limit, known).await;
    }
}
