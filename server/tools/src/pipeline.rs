//! The chain that every tool call passes, whoever makes it: a script, `invoke`, a direct call.
//!
//! The first steps are lookup, permission, validation of the input, and approval by a person. Then comes `before` of
//! the hooks (rate limits, personal data, those of embedders, the cache), and the tool, under its concurrency limits
//! and its timeout. The last steps are validation of the result, `after` of the hooks, removal of host paths and
//! secrets, event and record.

mod admission;
mod approval;
mod audit;
pub mod bound;
mod cache;
pub mod check;
mod clean;
mod client;
mod fetch;
mod hook;
mod outside;
mod pii;
mod rate;
mod reach;
mod retry;
pub mod sanitize;
mod trace;

use crate::catalogue::{Catalogue, Entry, Snapshot};
use crate::result_shapes::ResultShapes;
use admission::check_name_length;
pub use admission::shared_name;
pub use bound::{MAX_MESSAGE_BYTES, text as bounded};
pub use cache::canonical;
use client::CallClient;
use codecall_base::call::{CallContext, Caller};
use codecall_base::client::Client;
use codecall_base::error::Error;
use codecall_base::offload::{self, weight, weight_of};
use codecall_base::redact::SecretRegistry;
use codecall_base::telemetry::{self, Span, SpanKind};
use codecall_base::tool::{ErrorCode, ToolDefinition, ToolError, ToolFilter, ToolPattern, ToolResult};
use codecall_config::{
    ApprovalConfig, ChainConfig, CheckOutput, Config, DecidedBy, DirectCalls, FetchConfig, InteractionConfig,
    Sanitization,
};
use codecall_store::{ApprovalRequests, MemoryShapes, RowQuota, Stores};
use codecall_upstream::fetch::Fetcher;
pub use hook::{Before, Hook, HookCall, Record};
use sanitize::Sanitizer;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use trace::CallTrace;

/// The chain, and what it needs.
pub struct Pipeline {
    catalogue: Arc<Catalogue>,
    sanitizer: Sanitizer,
    result_shapes: Arc<ResultShapes>,
    secrets: Arc<SecretRegistry>,
    check_output: CheckOutput,
    /// Whether `null` for an optional property that cannot be `null` is left out of inputs.
    lenient_input: bool,
    /// In the order of `before`.
    hooks: Arc<[Arc<dyn Hook>]>,
    /// The tools that may be called without a script.
    direct_calls: DirectCalls,
    concurrency_limits: Vec<(ToolPattern, Arc<Semaphore>)>,
    /// How often a call of a script is made again that its tool has refused.
    rate_limit_retries: u32,
    /// The questions that tools may ask the client of a call.
    interaction: Arc<InteractionConfig>,
    /// The calls that a person has to approve.
    approval: Arc<ApprovalConfig>,
    /// Where those wait; absent: they cannot.
    approval_requests: Option<Arc<dyn ApprovalRequests>>,
    /// For how many more of them there is room.
    approval_quota: Arc<RowQuota>,
    calls: Arc<AtomicU64>,
    /// Makes the requests of script tools.
    fetcher: Fetcher,
    /// The name of the client whose calls these are; absent: of nobody in particular.
    client: Option<Arc<str>>,
    /// Its key, which no other client has.
    owner: Option<Arc<str>>,
    /// Whether its person may approve its calls.
    client_decides: bool,
}

/// A client of the HTTP server, as its calls know it.
#[derive(Clone, Debug)]
pub struct ClientIdentity {
    /// How people see it.
    pub name: Arc<str>,
    /// Its key, which no other client has.
    pub owner: Arc<str>,
    /// Whether its person may approve its calls.
    pub decides: bool,
}

/// A call, as it enters the chain.
#[derive(Clone)]
pub struct ToolCall {
    /// The tool, as the caller names it.
    pub tool: String,
    /// Its input.
    pub input: Map<String, Value>,
    /// The context: the caller, and the run.
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
            sanitizer: Sanitizer::new(sanitization, []),
            result_shapes: ResultShapes::new(Arc::new(MemoryShapes::default()), false),
            secrets: Arc::default(),
            check_output: CheckOutput::default(),
            lenient_input: true,
            hooks: Arc::default(),
            direct_calls: DirectCalls { enabled: true, allowed_tools: None, filter: ToolFilter::default() },
            concurrency_limits: Vec::new(),
            rate_limit_retries: ChainConfig::default().rate_limit_retries,
            interaction: Arc::default(),
            approval: Arc::default(),
            approval_requests: None,
            approval_quota: Arc::default(),
            calls: Arc::new(AtomicU64::new(1)),
            fetcher: Fetcher::new(FetchConfig::default()),
            client: None,
            owner: None,
            client_decides: true,
        }
    }

    /// The chain with other requests of script tools.
    #[must_use]
    pub fn with_fetcher(mut self, fetcher: Fetcher) -> Self {
        self.fetcher = fetcher;
        self
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
        let ChainConfig { rate_limits, rate_limit_retries, concurrency_limits, check_output, pii, cache, audit } =
            &config.chain;
        let mut pipeline = Self::new(catalogue, config.sanitization);
        pipeline.sanitizer = Sanitizer::new(config.sanitization, config.paths());
        pipeline.result_shapes = ResultShapes::new(Arc::clone(&stores.shapes), config.server_cache.learn_results);
        pipeline.secrets = Arc::clone(&config.secrets);
        pipeline.check_output = *check_output;
        pipeline.rate_limit_retries = *rate_limit_retries;
        pipeline.lenient_input = config.lenient_input;
        pipeline.interaction = Arc::new(config.interaction);
        pipeline.approval = Arc::new(config.approval.clone());
        pipeline.client_decides = config.approval.decided_by != Some(DecidedBy::Operator);
        pipeline.approval_requests = stores.approval_requests.clone();
        pipeline.direct_calls = config.direct_calls.clone();
        pipeline.fetcher = Fetcher::new(config.fetch);
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

    /// Returns this chain for a client, in front of its own catalogue. Limits and hooks are those of all clients together.
    #[must_use]
    pub fn for_client(&self, catalogue: Arc<Catalogue>, identity: ClientIdentity) -> Self {
        let ClientIdentity { name, owner, decides } = identity;
        Self {
            catalogue,
            sanitizer: self.sanitizer.clone(),
            result_shapes: Arc::clone(&self.result_shapes),
            secrets: Arc::clone(&self.secrets),
            check_output: self.check_output,
            lenient_input: self.lenient_input,
            hooks: Arc::clone(&self.hooks),
            direct_calls: self.direct_calls.clone(),
            interaction: Arc::clone(&self.interaction),
            approval: Arc::clone(&self.approval),
            approval_requests: self.approval_requests.clone(),
            approval_quota: Arc::clone(&self.approval_quota),
            concurrency_limits: self.concurrency_limits.clone(),
            rate_limit_retries: self.rate_limit_retries,
            calls: Arc::clone(&self.calls),
            fetcher: self.fetcher.clone(),
            client: Some(name),
            owner: Some(owner),
            client_decides: decides,
        }
    }

    /// Returns the name of the client whose calls these are, if there are several.
    #[must_use]
    pub fn client(&self) -> Option<&str> {
        self.client.as_deref()
    }

    /// Makes a call and returns the plain data of its result as JSON, for scripts.
    ///
    /// # Errors
    /// The call is refused or the tool fails.
    pub fn data(&self, call: impl Into<Box<ToolCall>>) -> impl Future<Output = Result<String, ToolError>> + Send {
        self.data_of(call.into())
    }

    async fn data_of(&self, call: Box<ToolCall>) -> Result<String, ToolError> {
        let tool = call.tool.clone();
        let result = self.call_in_span(call).await?;
        self.plain_data(result, &tool).await
    }

    async fn plain_data(&self, result: ToolResult, tool: &str) -> Result<String, ToolError> {
        let has_schema =
            || self.catalogue.snapshot().lookup(tool).is_some_and(|entry| entry.definition.output_schema.is_some());
        // If a text is JSON, its strings are parsed only now.
        let redactor = self.secrets.redactor();
        let data = |mut result: ToolResult| {
            if let ToolResult::Long(long) = &result {
                let data = long.to_data(!has_schema());
                return Ok(redactor.redact_json(&data).into_owned());
            }
            if matches!(&result, ToolResult::Mcp(result) if result.get("structuredContent").is_some()) && !has_schema()
            {
                result.join_text();
            }
            match result.into_data(tool) {
                Ok(mut data) => {
                    redactor.redact_value(&mut data);
                    Ok(data.to_string())
                }
                Err(error) => {
                    let mut error = bound::error(error);
                    redactor.redact_error(&mut error);
                    Err(error)
                }
            }
        };
        offload::run(result.weight(), || data(result)).await?
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

    /// Makes a call.
    ///
    /// # Errors
    /// The call is refused, its tool cannot be reached, or a tool that does not speak MCP fails. If a tool of MCP says
    /// itself that it has failed, that is a result.
    pub async fn call(&self, call: ToolCall) -> Result<ToolResult, ToolError> {
        let tool = call.tool.clone();
        let mut result = self.call_in_span(Box::new(call)).await?;
        match offload::run(result.weight(), || result.read().map(drop)).await? {
            Ok(()) => Ok(result),
            Err(_) => Err(check::too_large(&tool)),
        }
    }

    async fn call_in_span(&self, call: Box<ToolCall>) -> Result<ToolResult, ToolError> {
        let mut span = Span::begin(SpanKind::Internal, || trace::span_name(&call.tool));
        trace::describe_call(&mut span, self, &call);
        let result = telemetry::within(span.context(), self.checked_call(call)).await;
        trace::describe_result(&mut span, self, &result);
        result
    }

    async fn checked_call(&self, call: Box<ToolCall>) -> Result<ToolResult, ToolError> {
        let begun = Box::pin(self.begin(call)).await?;
        self.finish(begun).await
    }

    /// Reaches the tool of a call, unless the call has a result already, and ends the call.
    async fn finish(&self, EnteredCall { mut active, result }: EnteredCall<'_>) -> Result<ToolResult, ToolError> {
        let result = match result {
            Some(result) => *result,
            None => Box::pin(self.reach_at_rate(&mut active)).await,
        };
        Box::pin(self.end(active, result)).await
    }

    /// Finds the tool of a call, and lets the call enter the chain.
    async fn begin(&self, mut call: Box<ToolCall>) -> Result<EnteredCall<'_>, ToolError> {
        let length = check_name_length(&mut call.tool);
        if length.is_ok() && call.context.caller != Caller::Direct {
            let known = call.context.cancel.run_until_cancelled(self.catalogue.wait_for_tool(&call.tool));
            // If it is still not known, `find` says why.
            let _ = tokio::time::timeout(call.context.timeout, known).await;
        }
        let (mut snapshot, mut found) = self.find_now(&call);
        // The server of a durable call may be there again soon.
        let is_durable = call.context.run.as_ref().is_some_and(|run| run.hold.is_some());
        let until = Instant::now() + reach::UNSENT_WAIT.min(call.context.timeout / 2);
        while is_durable && Instant::now() < until && found.as_ref().is_err_and(is_unavailable) {
            let again = call.context.cancel.run_until_cancelled(tokio::time::sleep(reach::UNSENT_AGAIN));
            if again.await.is_none() {
                break;
            }
            (snapshot, found) = self.find_now(&call);
        }
        let found = length.and(found);
        let found = found.as_ref().map_err(Clone::clone);
        let mut begun = self.enter(&snapshot, found, call).await?;
        begun.active.is_learned = true;
        Ok(begun)
    }

    /// Lets a call of a tool that was found pass to its tool, or records that none was.
    async fn enter(
        &self,
        snapshot: &Snapshot,
        found: Result<&Arc<Entry>, ToolError>,
        call: Box<ToolCall>,
    ) -> Result<EnteredCall<'_>, ToolError> {
        let name = found.as_ref().map_or_else(|_| call.tool.clone(), |entry| entry.name.clone());
        let begun = offload::run(weight_of(&call.input), || {
            let sent = Arc::new(Value::Object(call.input.clone()));
            (CallTrace::begin(self, name.clone(), call.context.clone(), &sent), sent)
        });
        let (trace, sent) = match begun.await {
            Ok(begun) => begun,
            Err(busy) => {
                let error = ToolError::from(busy);
                self.refused(&name, call.context, Value::Null, error.clone());
                return Err(error);
            }
        };
        let (input, target, passed, retries) = (Map::new(), None, 0, 0);
        let mut active = Box::new(ActiveCall { trace, sent, input, target, passed, retries, is_learned: false });
        let result = match found {
            Ok(entry) => self.pass(snapshot, entry, call, &mut active).await,
            Err(error) => Some(Err(error)),
        };
        Ok(EnteredCall { active, result: result.map(Box::new) })
    }

    /// Checks a call, and asks the person and the hooks. Returns the result of a call that does not reach its tool.
    async fn pass<'a>(
        &'a self,
        snapshot: &Snapshot,
        entry: &Arc<Entry>,
        mut call: Box<ToolCall>,
        active: &mut ActiveCall<'a>,
    ) -> Option<Result<ToolResult, ToolError>> {
        let sent = &*active.sent;
        let work = check::work(entry.validator(), sent);
        let admitted = || {
            let input = self.lenient(entry, sent);
            self.admitted(snapshot, entry, &call, input.as_ref().unwrap_or(sent)).map(|()| input)
        };
        match offload::run(work, admitted).await {
            Ok(Ok(Some(Value::Object(input)))) => call.input = input,
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Some(Err(error)),
            Err(busy) => return Some(Err(busy.into())),
        }
        let client = {
            // A question may be one of another call, so the end of this one does not withdraw it.
            let ended = call.context.cancel.clone();
            let what = format!("Tool '{}'", entry.name);
            let client = self.call_client(&call.context.client, &entry.definition.app, &what, ended);
            Arc::new(client.passing_task(call.context.caller != Caller::Script))
        };
        if self.may_wait(entry, &call)
            && let Err(error) = Box::pin(self.approved(entry, &call, &client)).await
        {
            return Some(Err(error));
        }
        active.target = Some(Target { entry: Arc::clone(entry), client });
        let (passed, asked) = self.before(std::mem::take(&mut call.input), active).await;
        active.passed = passed;
        match asked {
            Ok(input) => {
                active.input = input;
                None
            }
            Err(result) => Some(*result),
        }
    }

    /// Passes a result back: checked, through the hooks, and cleaned.
    async fn end(
        &self,
        active: Box<ActiveCall<'_>>,
        mut result: Result<ToolResult, ToolError>,
    ) -> Result<ToolResult, ToolError> {
        if active.passed > 0 {
            result = self.after(&active, result).await;
        }
        let ActiveCall { trace, sent, target, is_learned, .. } = *active;
        if let Ok(own) = result {
            result = self.cleaned_result(own, &sent).await;
        }
        if let Err(error) = result {
            // Sanitizing searches what was sent, which may be long even if the error is short.
            let cleaned = offload::run(weight(&sent), || self.cleaned(error, Some(&sent))).await;
            result = Err(cleaned.unwrap_or_else(Into::into));
        }
        trace.end(&result);
        if let (Ok(result), Some(target), true) = (&result, target, is_learned) {
            self.learn(&target.entry.definition, result).await;
        }
        result
    }

    /// Returns what was seen of the results of tools.
    #[must_use]
    pub fn result_shapes(&self) -> &Arc<ResultShapes> {
        &self.result_shapes
    }

    /// Asks the hooks before a call. Returns how many have let it pass, and its input, or the answer of the one that has not.
    async fn before(
        &self,
        mut input: Map<String, Value>,
        active: &mut ActiveCall<'_>,
    ) -> (usize, Result<Map<String, Value>, Box<Result<ToolResult, ToolError>>>) {
        let Some(known) = active.for_hooks(self) else { return (0, Ok(input)) };
        for (at, hook) in self.hooks.iter().enumerate() {
            let answer = match hook.limits_rates() {
                true => self.ask_at_rate(hook, &known, input, active).await,
                false => retry::ask(hook, &known, input).await,
            };
            match answer {
                Ok(Before::Go(changed)) => input = changed,
                Ok(Before::Answer(result)) => {
                    active.trace.answered_by(hook.name());
                    return (at, Err(Box::new(Ok(result))));
                }
                Err(error) => return (at, Err(Box::new(Err(error)))),
            }
        }
        (self.hooks.len(), Ok(input))
    }

    /// Passes a result to the hooks that have let its call pass, the last one first.
    async fn after(
        &self,
        active: &ActiveCall<'_>,
        mut result: Result<ToolResult, ToolError>,
    ) -> Result<ToolResult, ToolError> {
        let Some(known) = active.for_hooks(self) else { return result };
        for hook in self.hooks[..active.passed].iter().rev() {
            let weight = result.as_ref().map_or(0, ToolResult::weight);
            result = match offload::run(weight, || hook.after(&known, result)).await {
                Ok(result) => result.await,
                Err(busy) => Err(busy.into()),
            };
        }
        result
    }
}

/// Whether the server of a call is not there, so that nothing was sent.
fn is_unavailable(error: &ToolError) -> bool {
    error.code == ErrorCode::ServerUnavailable || error.code == ErrorCode::ServerStarting
}

/// A call in the chain: what it needs while it waits for its tool, and afterwards.
struct ActiveCall<'a> {
    trace: CallTrace<'a>,
    /// The input as it was sent.
    sent: Arc<Value>,
    /// The input that the tool gets.
    input: Map<String, Value>,
    /// `None`: there is no such tool, or the call may not reach it.
    target: Option<Target>,
    /// How many hooks have let it pass.
    passed: usize,
    /// How often it was made again.
    retries: u32,
    /// Whether the shape of its result is learned.
    is_learned: bool,
}

/// The tool of a call, and the client that it can ask.
struct Target {
    entry: Arc<Entry>,
    client: Arc<CallClient>,
}

/// A call that has entered the chain.
struct EnteredCall<'a> {
    active: Box<ActiveCall<'a>>,
    /// Its result, if it does not reach its tool.
    result: Option<Box<Result<ToolResult, ToolError>>>,
}

impl ActiveCall<'_> {
    /// Returns the call as hooks see it; `None`: there are none, or it does not get there.
    fn for_hooks(&self, pipeline: &Pipeline) -> Option<HookCall> {
        let Target { entry, client } = self.target.as_ref().filter(|_| !pipeline.hooks.is_empty())?;
        let client = Client::new(Arc::<CallClient>::clone(client));
        Some(HookCall {
            id: self.trace.id(),
            name: entry.name.clone(),
            tool: Arc::clone(&entry.definition),
            context: CallContext { client, ..self.trace.context().clone() },
        })
    }
}

#[cfg(test)]
mod tests;
