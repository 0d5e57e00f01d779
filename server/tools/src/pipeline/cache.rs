//! Answers that are kept and given again to the same input: a hook, the one nearest to the tool.
//!
//! Only answers are kept, never failures. What is kept is what the tool has given: other hooks work
//! on it each time.

use super::hook::{Before, Hook, HookCall};
use codecall_base::tool::{ToolError, ToolResult};
use codecall_config::CacheConfig;
use codecall_upstream::BoxFuture;
use lru::LruCache;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Calls that are under way, whose answer will be kept: more are not remembered.
const MOST_UNDER_WAY: usize = 10_000;

/// The hook.
pub struct Cache {
    config: CacheConfig,
    kept: Mutex<Kept>,
}

struct Kept {
    answers: LruCache<String, Answer>,
    bytes: usize,
    /// The keys of calls that were let through, by their number: only then is their input known.
    asked: HashMap<u64, (String, Duration)>,
}

struct Answer {
    result: ToolResult,
    bytes: usize,
    until: Instant,
}

impl Cache {
    /// With these rules.
    #[must_use]
    pub fn new(config: CacheConfig) -> Self {
        let kept = Kept { answers: LruCache::unbounded(), bytes: 0, asked: HashMap::new() };
        Self { config, kept: Mutex::new(kept) }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, call: &HookCall, input: Map<String, Value>) -> Before {
        let Some(rule) = self.config.rules.iter().find(|rule| rule.tool.matches(&call.tool)) else {
            return Before::Go(input);
        };
        let key = format!("{} {}", call.name, canonical(&input));
        let mut kept = self.kept();
        match kept.answers.get(&key).map(|answer| (answer.until, answer.result.clone())) {
            Some((until, result)) if until > Instant::now() => return Before::Answer(result),
            Some(_) => kept.forget(&key),
            None => {}
        }
        if kept.asked.len() < MOST_UNDER_WAY {
            kept.asked.insert(call.id, (key, rule.ttl.0));
        }
        Before::Go(input)
    }

    fn keep(&self, call: &HookCall, result: &Result<ToolResult, ToolError>) {
        let mut kept = self.kept();
        let Some((key, ttl)) = kept.asked.remove(&call.id) else { return };
        let Ok(result) = result else { return };
        let bytes = key.len() + size(result.value());
        if result.is_error() || bytes > self.config.max_bytes || self.config.max_entries == 0 {
            return;
        }
        kept.forget(&key);
        kept.bytes += bytes;
        kept.answers.put(key, Answer { result: result.clone(), bytes, until: Instant::now() + ttl });
        while kept.answers.len() > self.config.max_entries || kept.bytes > self.config.max_bytes {
            let Some((_, oldest)) = kept.answers.pop_lru() else { break };
            kept.bytes -= oldest.bytes;
        }
    }
}

impl Kept {
    fn forget(&mut self, key: &str) {
        if let Some(answer) = self.answers.pop(key) {
            self.bytes -= answer.bytes;
        }
    }
}

impl Hook for Cache {
    fn name(&self) -> &'static str {
        "cache"
    }

    fn before<'a>(&'a self, call: &'a HookCall, input: Map<String, Value>) -> BoxFuture<'a, Result<Before, ToolError>> {
        Box::pin(std::future::ready(Ok(self.ask(call, input))))
    }

    fn after<'a>(
        &'a self,
        call: &'a HookCall,
        result: Result<ToolResult, ToolError>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        self.keep(call, &result);
        Box::pin(std::future::ready(result))
    }

    /// A call that was abandoned has no `after`.
    fn recorded(&self, record: &super::Record<'_>) {
        self.kept().asked.remove(&record.id);
    }
}

/// JSON text that is the same for the same input: keys in their order, 1.0 as 1.
#[must_use]
pub fn canonical(input: &Map<String, Value>) -> String {
    let mut out = String::new();
    write_members(input, &mut out);
    out
}

/// Inputs nest as deeply as readers of JSON follow, so this may recurse.
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
            // Below 2^53 every whole number is one of these.
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

/// About as many bytes as its JSON has.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => members.iter().map(|(key, member)| key.len() + size(member) + 4).sum::<usize>() + 2,
    }
}
