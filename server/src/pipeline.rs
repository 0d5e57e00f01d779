//! The chain that every call of a tool passes, whoever makes it: a script, `invoke`, a direct call.
//!
//! found → allowed → input checked → the tool, with its timeout → error cleaned.

mod sanitize;

use crate::catalogue::{Catalogue, Entry, Snapshot, is_reserved, matches};
use crate::config::Sanitization;
use crate::error::nearest;
use crate::upstream::{ToolError, UpstreamCall};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Errors of an input that does not fit are cut off here; a model mends one after the other.
const MOST_INPUT_ERRORS: usize = 5;

/// The chain and what it needs.
pub struct Pipeline {
    catalogue: Arc<Catalogue>,
    sanitization: Sanitization,
}

/// A call, as it enters the chain.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The tool, as the caller names it.
    pub tool: String,
    /// Its input.
    pub input: Map<String, Value>,
    /// The only tools the caller may call; absent: all.
    pub allowed: Option<Arc<[String]>>,
    /// The only apps whose tools the caller may call; absent: all. A call of another one ends the run,
    /// whether there is such a tool or not.
    pub apps: Option<Arc<[String]>>,
    /// How long it may take.
    pub timeout: Duration,
    /// Fires when nobody wants the result any more.
    pub cancel: CancellationToken,
}

impl Pipeline {
    /// The chain in front of `catalogue`.
    #[must_use]
    pub fn new(catalogue: Arc<Catalogue>, sanitization: Sanitization) -> Self {
        Self { catalogue, sanitization }
    }

    /// Make a call.
    ///
    /// # Errors
    /// The call is refused or the tool fails.
    pub async fn call(&self, call: ToolCall) -> Result<Value, ToolError> {
        let sent = (self.sanitization.remove_file_paths).then(|| Value::Object(call.input.clone()).to_string());
        self.pass(call).await.map_err(|error| sanitize::error(error, self.sanitization, sent.as_deref()))
    }

    /// The chain itself.
    async fn pass(&self, call: ToolCall) -> Result<Value, ToolError> {
        let snapshot = self.catalogue.snapshot();
        let entry = self.find(&snapshot, &call)?;
        allow(&snapshot, entry, call.allowed.as_deref())?;
        check(entry, &call.input)?;
        reach(entry, call).await
    }

    /// Why tools of some upstreams do not work at the moment, in words for clients.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
        let told = |trouble| sanitize::error(ToolError::new("", trouble), self.sanitization, None).message;
        self.catalogue.upstreams().filter_map(|upstream| upstream.trouble()).map(told).collect()
    }

    fn find<'a>(&self, snapshot: &'a Snapshot, call: &ToolCall) -> Result<&'a Arc<Entry>, ToolError> {
        let name = call.tool.as_str();
        if is_reserved(name) {
            let message = format!("Tool '{name}' is one of CodeCall's own and cannot be called from here");
            return Err(ToolError { fatal: true, ..ToolError::new("SELF_REFERENCE_BLOCKED", message) });
        }
        let entry = snapshot.lookup(name);
        let app = match entry {
            Some(entry) => entry.definition.app.as_str(),
            None => name.split([':', '.']).next().unwrap_or_default(),
        };
        if let Some(apps) = &call.apps
            && !apps.iter().any(|allowed| allowed == app)
        {
            let message = format!("Server '{app}' is not in the list of allowed servers");
            return Err(ToolError { fatal: true, ..ToolError::new("SERVER_NOT_ALLOWED", message) });
        }
        if let Some(entry) = entry {
            return Ok(entry);
        }
        if let Some(trouble) = self.catalogue.upstreams().filter(|up| up.app() == app).find_map(|up| up.trouble()) {
            return Err(ToolError::new("TOOL_NOT_FOUND", format!("Tool '{name}' is not known: {trouble}")));
        }
        let near = nearest(name, snapshot.rows().iter().map(|row| row.name.as_str()), 3);
        let hint = match near.as_slice() {
            [] => "Find tools with codecall_search".to_owned(),
            near => format!("Did you mean {}?", near.iter().map(|n| format!("'{n}'")).collect::<Vec<_>>().join(" or ")),
        };
        Err(ToolError::new("TOOL_NOT_FOUND", format!("Tool '{name}' not found. {hint}")))
    }
}

/// Whether a list of allowed names, in any spelling or as patterns, holds the tool.
#[must_use]
pub fn is_allowed(snapshot: &Snapshot, entry: &Entry, allowed: &[String]) -> bool {
    allowed.iter().any(|pattern| {
        matches(pattern, &entry.name) || snapshot.lookup(pattern).is_some_and(|other| other.name == entry.name)
    })
}

fn allow(snapshot: &Snapshot, entry: &Entry, allowed: Option<&[String]>) -> Result<(), ToolError> {
    match allowed {
        Some(allowed) if !is_allowed(snapshot, entry, allowed) => {
            let message = format!("Tool '{}' is not among the allowed tools of this request", entry.name);
            Err(ToolError::new("ACCESS_DENIED", message))
        }
        Some(_) | None => Ok(()),
    }
}

fn check(entry: &Entry, input: &Map<String, Value>) -> Result<(), ToolError> {
    let Some(validator) = entry.validator() else { return Ok(()) };
    let input = Value::Object(input.clone());
    let mut issues = Vec::new();
    let mut lines = String::new();
    let mut errors = validator.iter_errors(&input);
    for error in errors.by_ref().take(MOST_INPUT_ERRORS) {
        let path = error.instance_path().to_string();
        let place = if path.is_empty() { "input" } else { path.trim_start_matches('/') };
        let message = crate::index::cut(&error.to_string(), 300).to_owned();
        lines.push_str(&format!("\n  {place}: {message}"));
        issues.push(json!({"path": path, "message": message}));
    }
    if issues.is_empty() {
        return Ok(());
    }
    let more = errors.count();
    if more > 0 {
        lines.push_str(&format!("\n  and {more} more"));
    }
    let mut error = ToolError::new("INVALID_INPUT", format!("Invalid input for tool '{}':{lines}", entry.name));
    error.details = Some(json!({"issues": issues}).to_string());
    Err(error)
}

async fn reach(entry: &Arc<Entry>, call: ToolCall) -> Result<Value, ToolError> {
    let cancel = call.cancel.child_token();
    let _cancelled_when_dropped = cancel.clone().drop_guard();
    let answer = entry.upstream.call(UpstreamCall {
        tool: Arc::clone(&entry.definition),
        input: call.input,
        timeout: call.timeout,
        cancel: cancel.clone(),
    });
    let timeout_ms = u64::try_from(call.timeout.as_millis()).unwrap_or(u64::MAX);
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ToolError::new("EXECUTION_ABORTED", format!("The call of tool '{}' was cancelled", entry.name))),
        answer = tokio::time::timeout(call.timeout, answer) => match answer {
            Ok(answer) => answer,
            Err(_) => Err(ToolError::timeout(&entry.name, timeout_ms)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{ToolFilter, tests::catalogue};

    fn pipeline() -> Pipeline {
        let schema = json!({
            "type": "object",
            "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
            "required": ["id"],
            "additionalProperties": false,
        });
        let any = || json!({"type": "object"});
        let tools = [
            ("users", "get", "", schema),
            ("users", "fail", "", any()),
            ("users", "slow", "", any()),
            ("odd", "schema", "", json!({"type": "nonsense"})),
        ];
        let on = Sanitization { remove_stack_traces: true, remove_file_paths: true };
        Pipeline::new(Arc::new(catalogue(&tools, ToolFilter::default())), on)
    }

    async fn call(tool: &str, input: Value, allowed: Option<&[&str]>) -> Result<Value, ToolError> {
        let Value::Object(input) = input else { panic!("an object") };
        let allowed = allowed.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        let timeout = Duration::from_millis(20);
        pipeline()
            .call(ToolCall { tool: tool.into(), input, allowed, apps: None, timeout, cancel: CancellationToken::new() })
            .await
    }

    async fn failure(tool: &str, input: Value, allowed: Option<&[&str]>) -> (String, String) {
        let error = call(tool, input, allowed).await.expect_err("refused");
        (error.code, error.message)
    }

    #[tokio::test]
    async fn a_call_that_fits_gets_through() {
        let input = json!({"id": 1});
        assert_eq!(call("users:get", input.clone(), None).await, Ok(input.clone()));
        assert_eq!(call("users.get", input.clone(), Some(&["users:*"])).await, Ok(input.clone()));
        assert_eq!(call("get", input.clone(), Some(&["users.get"])).await, Ok(input));
        assert_eq!(call("odd:schema", json!({}), None).await, Ok(json!({})));
    }

    #[tokio::test]
    async fn each_refusal_has_its_code() {
        let (code, message) = failure("users:gte", json!({}), None).await;
        assert_eq!(
            (code.as_str(), message.as_str()),
            ("TOOL_NOT_FOUND", "Tool 'users:gte' not found. Did you mean 'users:get'?")
        );
        assert_eq!(failure("users:get", json!({"id": 1}), Some(&["users:list"])).await.0, "ACCESS_DENIED");
        let (code, message) = failure("users:get", json!({"id": "x", "extra": 1}), None).await;
        assert_eq!(code, "INVALID_INPUT");
        assert!(message.contains("id: \"x\" is not of type \"integer\"") && message.contains("extra"), "{message}");
        let (code, message) = failure("users:slow", json!({}), None).await;
        assert_eq!((code.as_str(), message.as_str()), ("TOOL_TIMEOUT", "Tool 'users:slow' timed out after 20ms"));
        assert_eq!(failure("codecall:execute", json!({}), None).await.0, "SELF_REFERENCE_BLOCKED");
    }

    #[tokio::test]
    async fn paths_of_the_host_stay_there() {
        let (_, message) = failure("users:fail", json!({}), None).await;
        assert_eq!(message, "at [path]: broken");
    }
}
