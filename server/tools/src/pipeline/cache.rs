//! A cache of results by input: a hook, the one nearest to the tool.
//!
//! Failures are not cached. The cache contains results as the tool has returned them: other hooks process them each time.

use super::hook::{Before, Hook, HookCall};
use codecall_base::tool::{ToolError, ToolResult};
use codecall_config::CacheRule;
use codecall_store::AnswerCache;
use codecall_upstream::BoxFuture;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of calls in progress whose results will be cached.
const MAX_PENDING: usize = 10_000;

/// The hook.
pub struct Cache {
    rules: Vec<CacheRule>,
    answers: Arc<dyn AnswerCache>,
    /// The keys of calls in progress, by their number: `after` does not know their input.
    pending: Mutex<HashMap<u64, (String, Duration)>>,
}

impl Cache {
    /// Creates the hook.
    #[must_use]
    pub fn new(rules: Vec<CacheRule>, answers: Arc<dyn AnswerCache>) -> Self {
        Self { rules, answers, pending: Mutex::default() }
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, (String, Duration)>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn lookup(&self, call: &HookCall, input: Map<String, Value>) -> Before {
        let Some(rule) = self.rules.iter().find(|rule| rule.tool.matches(&call.tool)) else {
            return Before::Go(input);
        };
        let key = format!("{} {}", call.name, canonical(&input));
        match self.answers.get(&key).await {
            Ok(Some(answer)) => return Before::Answer(answer),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, tool = call.name, "no cached answer is looked up"),
        }
        let mut pending = self.pending();
        if pending.len() < MAX_PENDING {
            pending.insert(call.id, (key, rule.ttl));
        }
        Before::Go(input)
    }

    async fn store(&self, call: &HookCall, result: &Result<ToolResult, ToolError>) {
        let pending = self.pending().remove(&call.id);
        let (Some((key, ttl)), Ok(result)) = (pending, result) else { return };
        // What a client has answered is not for others.
        if result.is_error() || call.context.client.has_asked() {
            return;
        }
        if let Err(error) = self.answers.put(key, result.clone(), ttl).await {
            tracing::warn!(%error, tool = call.name, "an answer is not cached");
        }
    }
}

impl Hook for Cache {
    fn name(&self) -> &'static str {
        "cache"
    }

    fn before<'a>(&'a self, call: &'a HookCall, input: Map<String, Value>) -> BoxFuture<'a, Result<Before, ToolError>> {
        Box::pin(async move { Ok(self.lookup(call, input).await) })
    }

    fn after<'a>(
        &'a self,
        call: &'a HookCall,
        result: Result<ToolResult, ToolError>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async move {
            self.store(call, &result).await;
            result
        })
    }

    /// Forgets a call that was cancelled, whose `after` is not called.
    fn recorded(&self, record: &super::Record<'_>) {
        self.pending().remove(&record.id);
    }
}

/// Returns JSON text that is the same for the same input: keys are sorted, and 1.0 is written as 1.
#[must_use]
pub fn canonical(input: &Map<String, Value>) -> String {
    let mut out = String::new();
    write_members(input, &mut out);
    out
}

/// It may recurse, because JSON parsers limit the depth of values.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => write_members(members, out),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Number(number) => match number.as_f64() {
            // Below 2^53 every integer is exact.
            Some(float) if float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0 => {
                out.push_str(&float.to_string())
            }
            Some(_) | None => out.push_str(&number.to_string()),
        },
        Value::Null | Value::Bool(_) | Value::String(_) => out.push_str(&value.to_string()),
    }
}

fn write_members(members: &Map<String, Value>, out: &mut String) {
    let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
    sorted.sort_by_key(|(key, _)| *key);
    out.push('{');
    for (key, member) in sorted {
        out.push_str(&Value::from(key.as_str()).to_string());
        out.push(':');
        write(member, out);
        out.push(',');
    }
    out.push('}');
}
