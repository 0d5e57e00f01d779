//! Rate limits of tools: a hook.

use super::hook::{Before, Hook, HookCall};
use codecall_base::tool::{ErrorCode, ToolDefinition, ToolError};
use codecall_config::RateLimit;
use codecall_store::{Quota, RateLimiter};
use codecall_upstream::BoxFuture;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The hook. Every tool has a bucket of its own for every rule that matches it.
pub struct RateLimits {
    rules: Vec<RateLimit>,
    limiter: Arc<dyn RateLimiter>,
}

impl RateLimits {
    /// Creates the hook. All rules apply.
    #[must_use]
    pub fn new(rules: Vec<RateLimit>, limiter: Arc<dyn RateLimiter>) -> Self {
        Self { rules, limiter }
    }

    /// Counts a call of `tool`, whose full name is `name`. If the store fails, there is no limit.
    ///
    /// # Errors
    /// There were too many: `RATE_LIMIT`, with `retryAfterMs` in its details.
    pub async fn count(&self, name: &str, tool: &ToolDefinition) -> Result<(), ToolError> {
        for (number, rule) in self.rules.iter().enumerate().filter(|(_, rule)| rule.tool.matches(tool)) {
            let quota = Quota { limit: rule.limit, window: rule.window };
            let wait = match self.limiter.take(&format!("{number} {name}"), quota).await {
                Ok(None) => continue,
                // Rounded up: a call at that time is not refused.
                Ok(Some(wait)) => wait.as_micros().div_ceil(1_000),
                Err(error) => {
                    tracing::error!(%error, tool = name, "a rate limit cannot be enforced");
                    continue;
                }
            };
            let window = rule.window.as_millis();
            let message = format!(
                "Rate limit exceeded: tool '{name}' may be called {} times in {window} ms; try again in {wait} ms",
                rule.limit
            );
            let mut error = ToolError::new(ErrorCode::RateLimit, message);
            let details = json!({"limit": rule.limit, "windowMs": number_of(window), "retryAfterMs": number_of(wait)});
            error.details = Some(details.to_string());
            return Err(error);
        }
        Ok(())
    }
}

fn number_of(ms: u128) -> u64 {
    u64::try_from(ms).unwrap_or(u64::MAX)
}

impl Hook for RateLimits {
    fn name(&self) -> &'static str {
        "rateLimits"
    }

    fn limits_rates(&self) -> bool {
        true
    }

    fn before<'a>(&'a self, call: &'a HookCall, input: Map<String, Value>) -> BoxFuture<'a, Result<Before, ToolError>> {
        Box::pin(async move {
            self.count(&call.name, &call.tool).await?;
            Ok(Before::Go(input))
        })
    }

    fn before_meta<'a>(&'a self, tool: &'a ToolDefinition) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move { self.count(&tool.full_name(), tool).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codecall_store::MemoryRates;
    use std::time::Duration;

    fn tool(name: &str) -> ToolDefinition {
        ToolDefinition { app: "users".into(), name: name.into(), ..ToolDefinition::default() }
    }

    fn limits(rules: &str) -> RateLimits {
        RateLimits::new(serde_json::from_str(rules).expect("rules"), Arc::new(MemoryRates::default()))
    }

    #[tokio::test]
    async fn each_tool_is_counted_for_itself() {
        let limits = limits(r#"[{"tool": "users:*", "limit": 3, "window": "1m"}]"#);
        for name in ["list", "get"] {
            let full = format!("users:{name}");
            for _ in 0..3 {
                assert_eq!(limits.count(&full, &tool(name)).await, Ok(()));
            }
            let error = limits.count(&full, &tool(name)).await.expect_err("too many");
            assert_eq!(error.code, "RATE_LIMIT");
            assert!(
                error
                    .message
                    .starts_with(&format!("Rate limit exceeded: tool '{full}' may be called 3 times in 60000 ms"))
            );
            let details: Value = serde_json::from_str(&error.details.expect("details")).expect("JSON");
            assert!((1..=20_000).contains(&details["retryAfterMs"].as_u64().expect("a number")), "{details}");
        }
        assert_eq!(limits.count("orders:list", &ToolDefinition { app: "orders".into(), ..tool("list") }).await, Ok(()));
    }

    #[tokio::test]
    async fn the_bucket_fills_again() {
        let limits =
            limits(r#"[{"tool": "*", "limit": 1, "window": "50ms"}, {"tool": "get", "limit": 100, "window": "1h"}]"#);
        assert_eq!(limits.count("users:get", &tool("get")).await, Ok(()));
        assert!(limits.count("users:get", &tool("get")).await.is_err());
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(limits.count("users:get", &tool("get")).await, Ok(()));
    }
}
