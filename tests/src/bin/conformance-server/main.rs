//! An MCP server with everything that the scenarios of the conformance suite call, for both lifecycles of the protocol:
//!
//!     cargo run -p codecall-tests --bin conformance-server [LATEST]
//!
//! `LATEST` is the latest version of the protocol that it speaks: with `2025-11-25`, it only serves sessions.
//! It listens on a free port of the loopback interface and prints its address as the only line on stdout.
//! `tests/node/conformance.mjs` tests it alone and behind CodeCall, so it does what the suite expects and nothing else.

#![expect(deprecated, reason = "logging and sampling are a part of the older protocols")]

mod input;
mod list;
mod resources;
mod task;
mod tools;

use rmcp::model::*;
use rmcp::service::{RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::task_manager::TaskManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How long clients may cache lists and resources, in milliseconds.
const CACHED_FOR: u64 = 60_000;

/// The server. It is cloned for each session and each request, so its state is shared.
#[derive(Clone)]
struct Server(Arc<State>);

#[derive(Default)]
struct State {
    versions: Vec<ProtocolVersion>,
    tasks: TaskManager,
    listeners: Mutex<HashMap<u64, SubscriptionSink>>,
    next: AtomicU64,
    /// Whether the list of tools has one more: it changes each time that a client wants it to change.
    has_more_tools: AtomicBool,
    /// The states of requests that need input, as they were sent: anything else was changed by the client.
    states: Mutex<HashMap<String, u64>>,
}

impl State {
    /// Returns a text that stands for the step of a request.
    fn seal(&self, step: u64) -> String {
        let text = format!("state-{}-{}", std::process::id(), self.next.fetch_add(1, Ordering::Relaxed));
        self.states.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone(), step);
        text
    }

    /// Returns the step that a text stands for.
    fn open(&self, text: &str) -> Result<u64, ErrorData> {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.get(text).copied().ok_or_else(|| ErrorData::invalid_params("requestState was changed", None))
    }

    fn listeners(&self) -> Vec<SubscriptionSink> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_completions()
            .enable_logging()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("conformance-server", "1"))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.0.versions.clone().into()
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let key = self.0.next.fetch_add(1, Ordering::Relaxed);
        let listeners = || self.0.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners().insert(key, context.sink().clone());
        context.cancelled().await;
        listeners().remove(&key);
        Ok(())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        list::tools().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = list::tools();
        if self.0.has_more_tools.load(Ordering::Relaxed) {
            tools.push(list::more());
        }
        let tools = ListToolsResult::with_all_items(tools);
        Ok(tools.with_ttl_ms(CACHED_FOR).with_cache_scope(CacheScope::Public))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name.starts_with("test_input_required_result_") {
            return input::call(&self.0, request, &context);
        }
        if list::is_task(&request.name) {
            return task::call(&self.0, request, &context).await;
        }
        tools::call(&self.0, request, &context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.0.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.0.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.0.tasks.cancel_task(&request.task_id)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = ListResourcesResult::with_all_items(resources::resources());
        Ok(resources.with_ttl_ms(CACHED_FOR).with_cache_scope(CacheScope::Public))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = ListResourceTemplatesResult::with_all_items(resources::templates());
        Ok(templates.with_ttl_ms(CACHED_FOR).with_cache_scope(CacheScope::Public))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = resources::read(&request.uri)?;
        Ok(ReadResourceResult::new(vec![contents]).with_ttl_ms(CACHED_FOR).with_cache_scope(CacheScope::Public).into())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts = ListPromptsResult::with_all_items(resources::prompts());
        Ok(prompts.with_ttl_ms(CACHED_FOR).with_cache_scope(CacheScope::Public))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        resources::prompt(request)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let all = ["paris", "park", "party"];
        let fitting = all.iter().filter(|value| value.starts_with(&request.argument.value)).map(ToString::to_string);
        let completion = CompletionInfo::new(fitting.collect()).map_err(|error| ErrorData::internal_error(error, None));
        Ok(CompleteResult::new(completion?))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "its address is its output")]
async fn main() -> std::io::Result<()> {
    let latest = std::env::args().nth(1).unwrap_or_else(|| ProtocolVersion::LATEST.to_string());
    let known = ProtocolVersion::KNOWN_VERSIONS.iter().filter(|version| version.as_str() <= latest.as_str());
    let server = Server(Arc::new(State { versions: known.cloned().collect(), ..State::default() }));
    let config = StreamableHttpServerConfig::default();
    let service =
        StreamableHttpService::new(move || Ok(server.clone()), Arc::new(LocalSessionManager::default()), config);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await
}
