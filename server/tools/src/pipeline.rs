//! The chain that every tool call passes, whoever makes it: a script, `invoke`, a direct call.
//!
//! lookup → permission → validation of the input → `before` of the hooks (rate limits, personal data, those of embedders,
//! the cache) → the tool, under its concurrency limits and its timeout → validation of the result → `after` of the
//! hooks → host paths and secrets removed → event and record.

mod audit;
pub mod bound;
mod cache;
pub mod check;
mod hook;
mod pii;
mod rate;
pub mod sanitize;
mod trace;

use crate::catalogue::{Catalogue, Entry, Snapshot};
pub use bound::{MAX_MESSAGE_BYTES, text as bounded};
pub use cache::canonical;
use codecall_base::call::{CallContext, Caller};
use codecall_base::error::Error;
use codecall_base::offload::{self, weight, weight_of};
use codecall_base::redact::{Redactor, SecretRegistry};
use codecall_base::schema::without_nulls;
use codecall_base::text::nearest;
use codecall_base::tool::{
    ErrorCode, MAX_NAME_BYTES, ToolDefinition, ToolError, ToolFilter, ToolPattern, ToolResult, glob_matches,
    is_reserved,
};
use codecall_config::{ChainConfig, CheckOutput, Config, DirectCalls, Sanitization};
use codecall_store::Stores;
use codecall_upstream::UpstreamCall;
pub use hook::{Before, Hook, HookCall, Record};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use trace::CallTrace;

/// The chain, and what it needs.
pub struct Pipeline {
    catalogue: Arc<Catalogue>,
    sanitization: Sanitization,
    secrets: Arc<SecretRegistry>,
    check_output: CheckOutput,
    /// Whether `null` for an optional property that cannot be `null` is left out of inputs.
    lenient_input: bool,
    /// In the order of `before`.
    hooks: Arc<[Arc<dyn Hook>]>,
    /// What may be called without a script.
    direct_calls: DirectCalls,
    concurrency_limits: Vec<(ToolPattern, Arc<Semaphore>)>,
    calls: AtomicU64,
}

/// A call, as it enters the chain.
#[derive(Clone)]
pub struct ToolCall {
    /// The tool, as the caller names it.
    pub tool: String,
    /// Its input.
    pub input: Map<String, Value>,
    /// Who makes it, and in what run.
    pub context: CallContext,
    /// The only tools the caller may call; absent: all.
    pub allowed: Option<Arc<[String]>>,
    /// The only apps whose tools the caller may call; absent: all. A call of another one ends the run,
    /// whether there is such a tool or not.
    pub apps: Option<Arc<[String]>>,
}

impl Pipeline {
    /// The chain in front of `catalogue`, without hooks.
    #[must_use]
    pub fn new(catalogue: Arc<Catalogue>, sanitization: Sanitization) -> Self {
        Self {
            catalogue,
            sanitization,
            secrets: Arc::default(),
            check_output: CheckOutput::default(),
            lenient_input: true,
            hooks: Arc::default(),
            direct_calls: DirectCalls { enabled: true, allowed_tools: None, filter: ToolFilter::default() },
            concurrency_limits: Vec::new(),
            calls: AtomicU64::new(1),
        }
    }

    /// The chain as it is configured. `more` are hooks of an embedder, which stand between the masking
    /// of personal data and the cache.
    ///
    /// # Errors
    /// The audit file cannot be opened.
    pub fn configured(
        catalogue: Arc<Catalogue>,
        config: &Config,
        stores: &Stores,
        more: Vec<Arc<dyn Hook>>,
    ) -> Result<Self, Error> {
        let ChainConfig { rate_limits, concurrency_limits, check_output, pii, cache, audit } = &config.chain;
        let mut pipeline = Self::new(catalogue, config.sanitization);
        pipeline.secrets = Arc::clone(&config.secrets);
        pipeline.check_output = *check_output;
        pipeline.lenient_input = config.lenient_input;
        pipeline.direct_calls = config.direct_calls.clone();
        let semaphore = |limit: u32| Arc::new(Semaphore::new(usize::try_from(limit).unwrap_or(Semaphore::MAX_PERMITS)));
        let limits = concurrency_limits.iter().map(|rule| (rule.tool.clone(), semaphore(rule.limit.get())));
        pipeline.concurrency_limits = limits.collect();
        let mut hooks: Vec<Arc<dyn Hook>> = Vec::new();
        if !rate_limits.is_empty() {
            hooks.push(Arc::new(rate::RateLimits::new(rate_limits.clone(), Arc::clone(&stores.rates))));
        }
        if let Some(pii) = pii {
            hooks.push(Arc::new(pii::Pii::new(pii.clone())));
        }
        hooks.extend(more);
        if !cache.rules.is_empty() {
            hooks.push(Arc::new(cache::Cache::new(cache.rules.clone(), Arc::clone(&stores.answers))));
        }
        if let Some(audit) = audit {
            hooks.push(Arc::new(audit::Audit::new(audit)?));
        }
        pipeline.hooks = hooks.into();
        Ok(pipeline)
    }

    /// Makes a call and returns the plain data of its result, for scripts.
    ///
    /// # Errors
    /// The call is refused or the tool fails.
    pub async fn data(&self, call: ToolCall) -> Result<Value, ToolError> {
        let tool = call.tool.clone();
        let result = self.call(call).await?;
        // If a text is JSON, its strings are parsed only now.
        let data = |result: ToolResult| match result.into_data(&tool) {
            Ok(mut data) => {
                self.secrets.redactor().redact_value(&mut data);
                Ok(data)
            }
            Err(error) => {
                let mut error = bound::error(error);
                self.secrets.redactor().redact_error(&mut error);
                Err(error)
            }
        };
        offload::run(weight(result.value()), || data(result)).await?
    }

    /// Asks the hooks whether a meta-tool may be called.
    ///
    /// # Errors
    /// One refuses, for example because there were too many calls.
    pub async fn before_meta(&self, id: &str) -> Result<(), ToolError> {
        let tool = ToolDefinition { app: "codecall".into(), name: id.into(), ..ToolDefinition::default() };
        for hook in self.hooks.iter() {
            hook.before_meta(&tool).await?;
        }
        Ok(())
    }

    /// Records a call of a client that was refused before it reached the chain.
    pub fn refused(&self, tool: &str, context: CallContext, input: Value, error: ToolError) {
        let (name, weight, input) = (tool.to_owned(), weight(&input), Arc::new(input));
        let trace = offload::run_without_permit(weight, || CallTrace::begin(self, name, context, &input));
        trace.end(&Err(self.cleaned(error, None)));
    }

    /// Returns the secrets that are redacted.
    #[must_use]
    pub fn secrets(&self) -> &Arc<SecretRegistry> {
        &self.secrets
    }

    /// Returns the tool that a call would reach: it exists, is allowed, and the input is valid. No hook is called.
    ///
    /// # Errors
    /// The call would be refused.
    pub fn admit(&self, call: &ToolCall) -> Result<Arc<Entry>, ToolError> {
        let snapshot = self.catalogue.snapshot();
        let sent = Value::Object(call.input.clone());
        offload::run_without_permit(weight(&sent), || {
            let found = self.find(&snapshot, call);
            let admitted = |entry: &'_ Arc<Entry>| {
                let entry = Arc::clone(entry);
                let input = self.lenient(&entry, &sent);
                self.admitted(&snapshot, &entry, call, input.as_ref().unwrap_or(&sent)).map(|()| entry)
            };
            let entry = found.and_then(admitted);
            entry.map_err(|error| self.cleaned(error, Some(&sent)))
        })
    }

    /// Returns a value as notifications and records show it: personal data masked, secrets redacted.
    #[must_use]
    pub fn shown(&self, sent: &Arc<Value>) -> Arc<Value> {
        let mut shown = self.hooks.iter().fold(Arc::clone(sent), |value, hook| hook.mask(value));
        redact(&self.secrets.redactor(), &mut shown);
        shown
    }

    /// Returns a text of an upstream as notifications and records show it.
    #[must_use]
    pub fn shown_text(&self, text: &str) -> String {
        match &*self.shown(&Arc::new(Value::String(text.to_owned()))) {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// Returns an error that no call has caused as clients see it.
    #[must_use]
    pub fn shown_error(&self, error: ToolError) -> ToolError {
        self.cleaned(error, None)
    }

    /// Returns why tools of some upstreams are unavailable at the moment, for clients.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
        let clean = |trouble| self.shown_error(ToolError::new("", trouble)).message;
        self.catalogue.upstreams().filter_map(|upstream| upstream.unavailable_reason()).map(clean).collect()
    }

    /// Makes a call.
    ///
    /// # Errors
    /// The call is refused, its tool cannot be reached, or a tool that does not speak MCP fails. If a tool of MCP says
    /// itself that it has failed, that is a result.
    pub async fn call(&self, mut call: ToolCall) -> Result<ToolResult, ToolError> {
        let length = check_name_length(&mut call.tool);
        if length.is_ok() && call.context.caller != Caller::Direct {
            let known = call.context.cancel.run_until_cancelled(self.catalogue.wait_for_tool(&call.tool));
            // If it is still not known, `find` says why.
            let _ = tokio::time::timeout(call.context.timeout, known).await;
        }
        let snapshot = self.catalogue.snapshot();
        let found = length.and_then(|()| self.find(&snapshot, &call));
        let name = found.as_ref().map_or_else(|_| call.tool.clone(), |entry| entry.name.clone());
        let begun = offload::run(weight_of(&call.input), || {
            let sent = Arc::new(Value::Object(call.input.clone()));
            (CallTrace::begin(self, name.clone(), call.context.clone(), &sent), sent)
        });
        let (mut trace, sent) = match begun.await {
            Ok(begun) => begun,
            Err(busy) => {
                let error = ToolError::from(busy);
                self.refused(&name, call.context, Value::Null, error.clone());
                return Err(error);
            }
        };
        let result = match found {
            Ok(entry) => self.pass(&snapshot, entry, call, &sent, &mut trace).await,
            Err(error) => Err(error),
        };
        let result = match result {
            Ok(result) => self.cleaned_result(result, &sent).await,
            Err(error) => Err(error),
        };
        let result = match result {
            Ok(result) => Ok(result),
            // Sanitizing searches what was sent, which may be long even if the error is short.
            Err(error) => match offload::run(weight(&sent), || self.cleaned(error, Some(&sent))).await {
                Ok(error) => Err(error),
                Err(busy) => Err(busy.into()),
            },
        };
        trace.end(&result);
        result
    }

    /// Removes host paths and secrets from a result. `sent` is what the caller has sent.
    async fn cleaned_result(&self, mut result: ToolResult, sent: &Value) -> Result<ToolResult, ToolError> {
        let failed = result.is_error();
        if failed {
            offload::run(weight(result.value()), || bound::content(result.value_mut())).await?;
        }
        let weight = weight(result.value()).max(if failed { weight(sent) } else { 0 });
        let clean = || {
            if failed {
                sanitize::content(result.value_mut(), self.sanitization, sent);
            }
            self.secrets.redactor().redact_value(result.value_mut());
        };
        offload::run(weight, clean).await?;
        Ok(result)
    }

    /// Removes host paths and secrets from an error. `sent` is what the caller has sent.
    fn cleaned(&self, error: ToolError, sent: Option<&Value>) -> ToolError {
        let mut error = sanitize::error(bound::error(error), self.sanitization, sent);
        self.secrets.redactor().redact_error(&mut error);
        error
    }

    /// Checks whether a call may proceed to the hooks.
    fn admitted(&self, snapshot: &Snapshot, entry: &Entry, call: &ToolCall, sent: &Value) -> Result<(), ToolError> {
        allow(snapshot, entry, call.allowed.as_deref())?;
        if call.context.caller == Caller::Invoke {
            self.allow_direct(snapshot, entry)?;
        }
        check::input(entry, sent)
    }

    /// Returns an input without `null` for optional properties that cannot be `null`; `None` if it stays as it is.
    fn lenient(&self, entry: &Entry, sent: &Value) -> Option<Value> {
        if !self.lenient_input || !matches!(entry.validator(), Some(Ok(_))) {
            return None;
        }
        let mut input = sent.clone();
        without_nulls(&entry.definition.input_schema, &mut input);
        (input != *sent).then_some(input)
    }

    /// Runs the hooks and calls the tool.
    async fn pass(
        &self,
        snapshot: &Snapshot,
        entry: &Arc<Entry>,
        mut call: ToolCall,
        sent: &Value,
        trace: &mut CallTrace<'_>,
    ) -> Result<ToolResult, ToolError> {
        let work = check::work(entry.validator(), sent);
        let admitted = || {
            let input = self.lenient(entry, sent);
            self.admitted(snapshot, entry, &call, input.as_ref().unwrap_or(sent)).map(|()| input)
        };
        if let Some(Value::Object(input)) = offload::run(work, admitted).await?? {
            call.input = input;
        }
        let known = HookCall {
            id: trace.id(),
            name: entry.name.clone(),
            tool: Arc::clone(&entry.definition),
            context: call.context.clone(),
        };
        let mut input = std::mem::take(&mut call.input);
        let mut passed = self.hooks.len();
        let mut early = None;
        for (at, hook) in self.hooks.iter().enumerate() {
            let begun = offload::run(weight_of(&input), || hook.before(&known, input)).await;
            let answer = match begun {
                Ok(answer) => answer.await,
                Err(busy) => Err(busy.into()),
            };
            match answer {
                Ok(Before::Go(changed)) => {
                    input = changed;
                    continue;
                }
                Ok(Before::Answer(result)) => {
                    trace.answered_by(hook.name());
                    early = Some(Ok(result));
                }
                Err(error) => early = Some(Err(error)),
            }
            passed = at;
            input = Map::new();
            break;
        }
        let mut result = match early {
            Some(result) => result,
            None => {
                call.input = input;
                match self.reach(entry, call, trace).await {
                    Ok(result) => {
                        let work = check::work(entry.output_validator(), result.value());
                        let checked = || check::output(entry, result, self.check_output);
                        offload::run(work, checked).await.unwrap_or_else(|busy| Err(busy.into()))
                    }
                    Err(error) => Err(bound::error(error)),
                }
            }
        };
        for hook in self.hooks[..passed].iter().rev() {
            let weight = result.as_ref().map_or(0, |result| weight(result.value()));
            result = match offload::run(weight, || hook.after(&known, result)).await {
                Ok(result) => result.await,
                Err(busy) => Err(busy.into()),
            };
        }
        result
    }

    fn find<'a>(&self, snapshot: &'a Snapshot, call: &ToolCall) -> Result<&'a Arc<Entry>, ToolError> {
        let name = call.tool.as_str();
        if is_reserved(name) {
            let message = format!("Tool '{name}' is one of CodeCall's own and cannot be called from here");
            return Err(ToolError { fatal: true, ..ToolError::new(ErrorCode::SelfReferenceBlocked, message) });
        }
        let entry = match call.context.caller {
            Caller::Direct => snapshot.listed().lookup(name),
            Caller::Script | Caller::Invoke => snapshot.lookup(name),
        };
        let app = match entry {
            Some(entry) => entry.definition.app.as_str(),
            None => name.split([':', '.']).next().unwrap_or_default(),
        };
        if let Some(apps) = &call.apps
            && !apps.iter().any(|allowed| allowed == app)
        {
            let message = format!("Server '{app}' is not in the list of allowed servers");
            return Err(ToolError { fatal: true, ..ToolError::new(ErrorCode::ServerNotAllowed, message) });
        }
        if let Some(entry) = entry {
            return Ok(entry);
        }
        if let Some(owner) = self.catalogue.unknown_owner(name)
            && let Some(reason) = owner.unavailable_reason()
        {
            let (code, advice) = match owner.is_starting() {
                true => (ErrorCode::ServerStarting, ". Try again soon"),
                false => (ErrorCode::ServerUnavailable, ""),
            };
            return Err(ToolError::new(code, format!("Tool '{name}' is not known: {reason}{advice}")));
        }
        // Tools of other upstreams are known, and this one is not among them.
        let failed = self.catalogue.upstreams().filter(|up| up.app() == app && up.tools().is_empty());
        if let Some(trouble) = failed.filter_map(|up| up.unavailable_reason()).next() {
            let message = format!("Tool '{name}' is not known: {trouble}");
            return Err(ToolError::new(ErrorCode::ServerUnavailable, message));
        }
        let near = nearest(name, snapshot.rows().iter().map(|row| row.name.as_str()), 3);
        let hint = match near.as_slice() {
            [] => "Find tools with codecall_search".to_owned(),
            near => format!("Did you mean {}?", near.iter().map(|n| format!("'{n}'")).collect::<Vec<_>>().join(" or ")),
        };
        Err(ToolError::new(ErrorCode::ToolNotFound, format!("Tool '{name}' not found. {hint}")))
    }

    /// Checks whether a tool may be called without a script.
    fn allow_direct(&self, snapshot: &Snapshot, entry: &Entry) -> Result<(), ToolError> {
        let DirectCalls { enabled, allowed_tools, filter } = &self.direct_calls;
        if !enabled {
            return Err(ToolError::new(ErrorCode::AccessDenied, "Direct calls are switched off; use codecall_execute"));
        }
        let allowed = allowed_tools.as_ref().is_none_or(|allowed| is_allowed(snapshot, entry, allowed));
        if allowed && filter.selects(&entry.definition) {
            return Ok(());
        }
        let message = format!("Tool '{}' may not be called directly; use codecall_execute", entry.name);
        Err(ToolError::new(ErrorCode::AccessDenied, message))
    }

    /// Calls the tool once its concurrency limits allow it, within the time limit.
    async fn reach(&self, entry: &Arc<Entry>, call: ToolCall, trace: &CallTrace<'_>) -> Result<ToolResult, ToolError> {
        let cancel = call.context.cancel.child_token();
        let _cancelled_when_dropped = cancel.clone().drop_guard();
        // The time that a server takes to start is not that of the call.
        if entry.upstream.is_starting() {
            let started = cancel.run_until_cancelled(entry.upstream.first_attempt());
            if tokio::time::timeout(call.context.timeout, started).await.is_err() {
                let reason = entry.upstream.unavailable_reason().unwrap_or_default();
                let message = format!("Tool '{}' cannot be called yet: {reason}. Try again soon", entry.name);
                return Err(ToolError::new(ErrorCode::ServerStarting, message));
            }
        }
        let answer = async {
            let _permits = self.permits(&entry.definition).await;
            let call = UpstreamCall {
                tool: Arc::clone(&entry.definition),
                input: call.input,
                timeout: call.context.timeout,
                cancel: cancel.clone(),
                run: call.context.run.clone(),
                sink: trace.update_sink(),
            };
            // While there is no connection, the call may fail without having reached anything.
            let is_there = || entry.upstream.unavailable_reason().is_none();
            if is_there() {
                trace.reached();
                return entry.upstream.call(call).await;
            }
            let answer = entry.upstream.call(call).await;
            if answer.is_ok() || is_there() {
                trace.reached();
            }
            answer
        };
        let timeout_ms = u64::try_from(call.context.timeout.as_millis()).unwrap_or(u64::MAX);
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(ToolError::new(ErrorCode::ExecutionAborted, format!("The call of tool '{}' was cancelled", entry.name))),
            answer = tokio::time::timeout(call.context.timeout, answer) => match answer {
                Ok(answer) => answer,
                Err(_) => Err(ToolError::timeout(&entry.name, timeout_ms)),
            },
        }
    }

    /// Acquires a permit of every limit that applies to a tool, in the order of the rules, so that no two calls wait for
    /// each other.
    async fn permits(&self, tool: &ToolDefinition) -> Vec<OwnedSemaphorePermit> {
        let mut permits = Vec::new();
        for (_, semaphore) in self.concurrency_limits.iter().filter(|(pattern, _)| pattern.matches(tool)) {
            // The semaphore is never closed.
            permits.extend(Arc::clone(semaphore).acquire_owned().await.ok());
        }
        permits
    }
}

fn redact(redactor: &Redactor, value: &mut Arc<Value>) {
    if !redactor.is_empty() {
        redactor.redact_value(Arc::make_mut(value));
    }
}

/// Refuses a name that no tool can have, and truncates it.
fn check_name_length(name: &mut String) -> Result<(), ToolError> {
    if name.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    let length = name.len();
    *name = format!("{}…", codecall_base::text::truncate(name, MAX_NAME_BYTES / 4));
    let message =
        format!("Tool '{name}' not found: its name has {length} bytes, and names have at most {MAX_NAME_BYTES}");
    Err(ToolError::new(ErrorCode::ToolNotFound, message))
}

/// Whether a list of allowed names, in any spelling or as patterns, contains the tool.
#[must_use]
fn is_allowed(snapshot: &Snapshot, entry: &Entry, allowed: &[String]) -> bool {
    allowed.iter().any(|pattern| {
        glob_matches(pattern, &entry.name) || snapshot.lookup(pattern).is_some_and(|other| other.name == entry.name)
    })
}

fn allow(snapshot: &Snapshot, entry: &Entry, allowed: Option<&[String]>) -> Result<(), ToolError> {
    match allowed {
        Some(allowed) if !is_allowed(snapshot, entry, allowed) => {
            let message = format!("Tool '{}' is not among the allowed tools of this request", entry.name);
            Err(ToolError::new(ErrorCode::AccessDenied, message))
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::tests::catalogue;
    use serde_json::json;
    use std::time::Duration;
    use tokio_util::sync::CancellationToken;

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
        let cancel = CancellationToken::new();
        let call = ToolCall {
            tool: tool.into(),
            input,
            context: CallContext { caller: Caller::Script, run: None, timeout, sink: None, cancel },
            allowed,
            apps: None,
        };
        pipeline().data(call).await
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
