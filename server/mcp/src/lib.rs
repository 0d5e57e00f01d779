//! The MCP server: an rmcp handler for both lifecycles of the protocol (`initialize` with sessions, and 2026-07-28
//! without).
//!
//! It translates requests and results; `codecall_hub::meta` implements the tools. This crate does not know over what a
//! client is connected.

#![forbid(unsafe_code)]

mod answer_form;
mod client;
mod replica_requests;
mod instructions;
mod interact;
mod notifications;
mod resources;
mod run_events;
mod serve;
mod skills;
mod suspended;
mod tasks;
mod tool_calls;
mod tool_changes;
mod tool_list;
mod trace;
mod transport;

use answer_form::AnswerForm;
use codecall_base::tool::MAX_NAME_BYTES;
use codecall_hub::hub::{Hub, LiveHub, Offer};
use interact::{Subject, wrong_result};
use notifications::{Peers, Subscriptions};
use replica_requests::ReplicaRequests;
use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use run_events::Level;
use serde_json::Map;
pub use serve::{serve, serve_stdio, serve_stdio_until};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use suspended::SuspendedRequests;
use tasks::Tasks;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The methods of MCP that a server of tools has, for messages.
const METHODS: [&str; 4] = ["initialize", "server/discover", "tools/list", "tools/call"];

/// Whether a request is one of the protocol without sessions.
fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// The handler of one connection.
#[derive(Clone)]
pub struct Handler {
    live: LiveHub,
    /// How tools are offered to the client of the session, with the configuration that it was decided by.
    offer: Arc<Mutex<Option<(String, Offer)>>>,
    /// Clients with a session, which get notifications.
    peers: Arc<Mutex<Peers>>,
    /// Requests of clients without a session that wait for their clients.
    suspended: Arc<SuspendedRequests>,
    /// Requests that have become tasks.
    tasks: Tasks,
    /// The other replicas of the server.
    replica_requests: Option<Arc<ReplicaRequests>>,
    /// Whether this is the only connection of the process.
    is_only: bool,
    /// Identifies the client of this connection.
    number: u64,
    /// The subscriptions of the session.
    subscriptions: Arc<Subscriptions>,
    /// Cancelled when the last clone of this handler is dropped.
    dropped: CancellationToken,
    _guard: Arc<DropGuard>,
}

impl Handler {
    /// Creates a handler that serves `hub`.
    #[must_use]
    pub fn new(hub: impl Into<LiveHub>) -> Self {
        let live: LiveHub = hub.into();
        let tasks = Tasks::new(&live);
        let mut handler = Self::with_parts(live, Arc::default(), tasks, None);
        handler.replica_requests = ReplicaRequests::serve(&handler.hub(), handler.work_resumer()).map(Arc::new);
        handler
    }

    /// Creates the handler of another connection to the same hub.
    #[must_use]
    pub fn for_session(&self) -> Self {
        Self::with_parts(
            self.live.clone(),
            Arc::clone(&self.suspended),
            self.tasks.clone(),
            self.replica_requests.clone(),
        )
    }

    fn with_parts(
        live: LiveHub,
        suspended: Arc<SuspendedRequests>,
        tasks: Tasks,
        replica_requests: Option<Arc<ReplicaRequests>>,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dropped = CancellationToken::new();
        let _guard = Arc::new(dropped.clone().drop_guard());
        let (peers, subscriptions) = (Arc::default(), Arc::default());
        Self {
            live,
            offer: Arc::default(),
            peers,
            suspended,
            tasks,
            replica_requests,
            is_only: false,
            number,
            subscriptions,
            dropped,
            _guard,
        }
    }

    /// The hub of this moment.
    fn hub(&self) -> Arc<Hub> {
        self.live.get()
    }

    /// Starts the tasks that notify clients with a session. They end with the connection.
    fn start_notifying(&self) {
        let notifying = tool_changes::notify(self.live.clone(), Arc::downgrade(&self.peers));
        tokio::spawn(self.dropped.clone().run_until_cancelled_owned(notifying));
        if resources::are_exposed(&self.hub()) {
            let (peers, subscriptions) = (Arc::downgrade(&self.peers), Arc::downgrade(&self.subscriptions));
            let forwarding = notifications::forward(self.hub().notifications(), peers, subscriptions);
            tokio::spawn(self.dropped.clone().run_until_cancelled_owned(forwarding));
        }
    }

    /// Returns how tools are offered to the client of a request: in a session always as at first, while the configuration is the
    /// same.
    async fn offer(&self, hub: &Arc<Hub>, context: &RequestContext<RoleServer>) -> Offer {
        if let Some(offer) = self.session_offer(hub, context) {
            return offer;
        }
        let client = context.client_info().map(|client| client.name);
        let offer = codecall_hub::front::offer(hub, client.as_deref()).await;
        *self.offer.lock().unwrap_or_else(PoisonError::into_inner) = Some((hub.config().digest.clone(), offer));
        offer
    }

    /// Returns what a client's model is told. A list of tools as they are needs no words.
    async fn instructions(&self, client: Option<&str>) -> Option<String> {
        let hub = self.hub();
        // The handshake waits for no server that starts.
        hub.recalled().await;
        let are_known = hub.catalogue().upstreams().all(|upstream| upstream.are_tools_known());
        match are_known && codecall_hub::front::offer(&hub, client).await.lists_tools() {
            true => None,
            false => Some(instructions::instructions(&hub)),
        }
    }

    /// Returns how tools were offered to the client of a session.
    fn session_offer(&self, hub: &Hub, context: &RequestContext<RoleServer>) -> Option<Offer> {
        let offer = self.offer.lock().unwrap_or_else(PoisonError::into_inner);
        let known = offer.as_ref().filter(|(digest, _)| !is_modern(context) && *digest == hub.config().digest);
        known.map(|(_, offer)| *offer)
    }

    /// Waits for the upstreams, for a request about resources or skills. Returns whether all resources are exposed, not only
    /// files of skills.
    ///
    /// # Errors
    /// Neither is offered, so there is no such method.
    async fn check_skills<M: ConstString>(&self) -> Result<bool, ErrorData> {
        if !self.hub().config().offers_skills() {
            return Err(ErrorData::method_not_found::<M>());
        }
        self.hub().wait_for_connections().await;
        Ok(resources::are_exposed(&self.hub()))
    }

    /// Waits for the upstreams, for a request about resources or prompts.
    ///
    /// # Errors
    /// They are not exposed, so there is no such method.
    async fn check_exposed<M: ConstString>(&self) -> Result<(), ErrorData> {
        if !resources::are_exposed(&self.hub()) {
            return Err(ErrorData::method_not_found::<M>());
        }
        self.hub().wait_for_connections().await;
        Ok(())
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        #[expect(deprecated, reason = "clients of today ask for log messages")]
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_logging()
            .enable_tasks()
            .build();
        if resources::are_exposed(&self.hub()) {
            let mut resources = ResourcesCapability::default();
            (resources.subscribe, resources.list_changed) = (Some(true), Some(true));
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = Some(true);
            (capabilities.resources, capabilities.prompts) = (Some(resources), Some(prompts));
            capabilities.completions = Some(Map::new());
        }
        if self.hub().config().offers_skills() {
            capabilities.resources.get_or_insert_default();
            let settings = Map::from_iter([("directoryRead".to_owned(), true.into())]);
            capabilities.extensions.get_or_insert_default().insert(SKILLS_EXTENSION_ID.to_owned(), settings);
        }
        ServerConfig::new(capabilities).with_server_info(Implementation::new("codecall", env!("CARGO_PKG_VERSION")))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut answer = self.negotiate_initialize(&request)?;
        let client = request.client_info.name.clone();
        context.peer.set_peer_info(request);
        answer.instructions = Box::pin(self.instructions(Some(&client))).await;
        Ok(answer)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let client = context.client_info().map(|client| client.name);
        let mut info = self.get_info();
        info.instructions = Box::pin(self.instructions(client.as_deref())).await;
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), info))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.announce_roots(&context.peer);
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.is_empty() {
            self.start_notifying();
        }
        peers.push(context.peer);
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.announce_roots(&context.peer);
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        Box::pin(notifications::listen(&self.live, &context)).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.check_exposed::<SubscribeRequestMethod>().await?;
        if self.subscriptions.subscribe(&request.uri)
            && let Err(error) = self.hub().subscribe(&request.uri).await
        {
            self.subscriptions.unsubscribe(&request.uri);
            return Err(error);
        }
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.check_exposed::<UnsubscribeRequestMethod>().await?;
        if self.subscriptions.unsubscribe(&request.uri) {
            self.hub().unsubscribe(&request.uri).await;
        }
        Ok(())
    }

    #[expect(deprecated, reason = "clients of today set it")]
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.set_level(Level::from(request.level));
        self.hub().set_log_level(request.level);
        Ok(())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tool_list::tool(&self.hub(), name)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let hub = self.hub();
        let listing = async {
            let offer = self.offer(&hub, &context).await;
            tool_list::page(&hub, &offer, request.and_then(|request| request.cursor)).await
        };
        let cancelled = || Err(ErrorData::internal_error("The request was cancelled", None));
        Box::pin(context.ct.run_until_cancelled(listing)).await.unwrap_or_else(cancelled)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match self.answer_call(request, context).await? {
            ServerResult::CallToolResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(result) => Ok(result.into()),
            ServerResult::CreateTaskResult(created) => Ok(created.into()),
            _ => Err(wrong_result()),
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let hub = self.hub();
        let form = AnswerForm::of_request(hub.config().structured, &context);
        let getting = self.tasks.get(&hub, self.replica_requests.as_deref(), &request.task_id, form);
        Box::pin(getting).await.map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let hub = self.hub();
        Box::pin(self.tasks.update(&hub, self.replica_requests.as_deref(), &request.task_id, request.input_responses))
            .await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Box::pin(self.tasks.cancel(&self.hub(), self.replica_requests.as_deref(), &request.task_id)).await
    }

    /// Refuses a request that rmcp does not recognize: its method is unknown, or its parameters do not fit.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        match request.method.as_str() {
            "tools/call" => Err(ErrorData::invalid_params(
                "The parameters of tools/call must be {name: string, arguments?: object}",
                None,
            )),
            method => {
                let method = codecall_base::text::truncate(method, MAX_NAME_BYTES);
                let near = codecall_base::text::nearest(method, METHODS.into_iter(), 1);
                let hint = near.first().map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
                let message = format!("There is no method '{method}'{hint}");
                Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
            }
        }
    }

    // If resources and prompts are not exposed, these methods do not exist. The defaults would return empty lists.
    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.check_exposed::<ListPromptsRequestMethod>().await?;
        Ok(ListPromptsResult::with_all_items(resources::list_prompts(&self.hub()).await))
    }

    async fn get_prompt(
        &self,
        mut request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.check_exposed::<GetPromptRequestMethod>().await?;
        let no_arguments = Map::new();
        let subject = Subject::new("prompts/get", &request.name, request.arguments.as_ref().unwrap_or(&no_arguments));
        let repeated = (request.input_responses.take(), request.request_state.take());
        let hub = self.hub();
        let answer = self.interact(
            &context,
            subject,
            repeated,
            None,
            false,
            Box::new(move |client, _, cancel| {
                Box::pin(async move {
                    let result = resources::get_prompt(&hub, request, client, cancel).await;
                    result.map(ServerResult::GetPromptResult)
                })
            }),
        );
        match answer.await? {
            ServerResult::GetPromptResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(result) => Ok(result.into()),
            _ => Err(wrong_result()),
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let are_exposed = self.check_skills::<ListResourcesRequestMethod>().await?;
        let hub = self.hub();
        let mut all = hub.skill_resources().await;
        if are_exposed {
            all.extend(resources::list(&hub).await);
        }
        Ok(ListResourcesResult::with_all_items(all))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let are_exposed = self.check_skills::<ListResourceTemplatesRequestMethod>().await?;
        let templates = if are_exposed { resources::list_templates(&self.hub()).await } else { Vec::new() };
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn list_skills(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        self.check_skills::<ListSkillsRequestMethod>().await?;
        Ok(Box::pin(skills::list(&self.hub())).await)
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        self.check_skills::<GetSkillRequestMethod>().await?;
        Box::pin(skills::get(&self.hub(), &request.uri)).await
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        self.check_skills::<ReadResourceDirectoryRequestMethod>().await?;
        Box::pin(skills::directory(&self.hub(), &request.uri)).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let are_exposed = self.check_skills::<ReadResourceRequestMethod>().await?;
        let subject = Subject::new("resources/read", &request.uri, &Map::new());
        let repeated = (request.input_responses, request.request_state);
        let (hub, uri) = (self.hub(), request.uri);
        let answer = self.interact(
            &context,
            subject,
            repeated,
            None,
            false,
            Box::new(move |client, _, cancel| {
                Box::pin(async move {
                    let of_skill = hub.read_skill_file(&uri, &client, &cancel).await;
                    let result = match of_skill {
                        Some(result) => result,
                        None if are_exposed => resources::read(&hub, &uri, &client, &cancel).await,
                        None => Err(ErrorData::resource_not_found("there is no such resource", None)),
                    };
                    result.map(ServerResult::ReadResourceResult)
                })
            }),
        );
        match answer.await? {
            ServerResult::ReadResourceResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(result) => Ok(result.into()),
            _ => Err(wrong_result()),
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.check_exposed::<CompleteRequestMethod>().await?;
        Box::pin(resources::complete(&self.hub(), request)).await
    }
}

#[cfg(test)]
mod tests;
