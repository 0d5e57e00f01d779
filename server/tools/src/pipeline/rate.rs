//! How often tools may be called: a hook.
//!
//! Every tool has a bucket of its own for every rule that it fits, which holds `limit` calls and
//! fills evenly within `window`.

use super::hook::{Before, Hook, HookCall};
use codecall_base::tool::{ErrorCode, ToolDefinition, ToolError};
use codecall_config::RateLimit;
use codecall_upstream::BoxFuture;
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use serde_json::{Map, Value, json};

/// The hook.
pub struct RateLimits {
    rules: Vec<(RateLimit, DefaultKeyedRateLimiter<String>)>,
    clock: DefaultClock,
}

impl RateLimits {
    /// With these rules, all of which hold.
    #[must_use]
    pub fn new(rules: Vec<RateLimit>) -> Self {
        let limited = rules.into_iter().filter_map(|rule| {
            let each = rule.window.0.checked_div(rule.limit.get())?;
            // A window of less than a nanosecond for each call limits nothing.
            let quota = Quota::with_period(each)?.allow_burst(rule.limit);
            Some((rule, RateLimiter::keyed(quota)))
        });
        Self { rules: limited.collect(), clock: DefaultClock::default() }
    }

    /// Count a call of `tool`, whose full name is `name`.
    ///
    /// # Errors
    /// There were too many: `RATE_LIMIT`, with `retryAfterMs` in its details.
    pub fn count(&self, name: &str, tool: &ToolDefinition) -> Result<(), ToolError> {
        for (rule, limiter) in self.rules.iter().filter(|(rule, _)| rule.tool.matches(tool)) {
            let Err(full) = limiter.check_key(&name.to_owned()) else { continue };
            let wait = full.wait_time_from(self.clock.now()).as_millis();
            let window = rule.window.0.as_millis();
            let message = format!(
                "Rate limit exceeded: tool '{name}' may be called {} times in {window} ms; try again in {wait} ms",
                rule.limit
            );
            let mut error = ToolError::new(ErrorCode::RateLimit, message);
            let details = json!({"limit": rule.limit, "windowMs": number(window), "retryAfterMs": number(wait)});
            error.details = Some(details.to_string());
            return Err(error);
        }
        Ok(())
    }
}

fn number(ms: u128) -> u64 {
    u64::try_from(ms).unwrap_or(u64::MAX)
}

impl Hook for RateLimits {
    fn name(&self) -> &'static str {
        "rateLimits"
    }

    fn before<'a>(&'a self, call: &'a HookCall, input: Map<String, Value>) -> BoxFuture<'a, Result<Before, ToolError>> {
        let counted = self.count(&call.name, &call.tool).map(|()| Before::Go(input));
        Box::pin(std::future::ready(counted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn tool(name: &str) -> ToolDefinition {
        ToolDefinition { app: "users".into(), name: name.into(), ..ToolDefinition::default() }
    }

    fn limits(rules: &str) -> RateLimits {
        RateLimits::new(serde_json::from_str(rules).expect("rules"))
    }

    #[test]
    fn each_tool_is_counted_for_itself() {
        let limits = limits(r#"[{"tool": "users:*", "limit": 3, "window": "1m"}]"#);
        for name in ["list", "get"] {
            let full = format!("users:{name}");
            for _ in 0..3 {
                assert_eq!(limits.count(&full, &tool(name)), Ok(()));
            }
            let error = limits.count(&full, &tool(name)).expect_err("too many");
            assert_eq!(error.code, "RATE_LIMIT");
            assert!(
                error
                    .message
                    .starts_with(&format!("Rate limit exceeded: tool '{full}' may be called 3 times in 60000 ms"))
            );
            let details: Value = serde_json::from_str(&error.details.expect("details")).expect("JSON");
            assert!((1..=20_000).contains(&details["retryAfterMs"].as_u64().expect("a number")), "{details}");
        }
        assert_eq!(limits.count("orders:list", &ToolDefinition { app: "orders".into(), ..tool("list") }), Ok(()));
    }

    #[test]
    fn the_bucket_fills_again() {
        let limits =
            limits(r#"[{"tool": "*", "limit": 1, "window": "50ms"}, {"tool": "get", "limit": 100, "window": "1h"}]"#);
        assert_eq!(limits.count("users:get", &tool("get")), Ok(()));
        assert!(limits.count("users:get", &tool("get")).is_err());
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(limits.count("users:get", &tool("get")), Ok(()));
    }
}
