//! Calls of tools: the one request that may wait for long.

use super::answer_form::{AnswerForm, error_result, meta_tool_result, tool_result};
use super::interact::{Subject, client_error};
use super::tool_list::meta_tool_names;
use super::{Handler, run_events, suspended};
use codecall_base::call::with_client;
use codecall_base::client::Client;
use codecall_base::event::EventSink;
use codecall_base::offload;
use codecall_base::tool::MAX_NAME_BYTES;
use codecall_hub::hub::{Hub, Offer};
use codecall_hub::meta;
use codecall_tools::pipeline::shared_name;
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

impl Handler {
    /// Answers a call. The future does not hold the context of the request.
    pub(super) fn answer_call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> suspended::Answering {
        let hub = self.hub();
        let active = hub.begin_request();
        let single = meta::find(&request.name).is_none_or(|meta| meta.id() == "invoke");
        let (sink, forwarding) = run_events::event_sink(&context, self.subscriptions.level(), single);
        let arguments = request.arguments.unwrap_or_default();
        if request.name.len() > MAX_NAME_BYTES {
            let length = request.name.len();
            let message = format!("Unknown tool: its name has {length} bytes, and names have at most {MAX_NAME_BYTES}");
            return Box::pin(std::future::ready(Err(ErrorData::invalid_params(message, None))));
        }
        if let Some(level) = context.meta.log_level() {
            hub.set_log_level(level);
        }
        let name = request.name.into_owned();
        let key = context.meta.get(IDEMPOTENCY_KEY).and_then(Value::as_str).map(str::to_owned);
        let form = AnswerForm::of_request(hub.config().structured, &context);
        let subject = Subject::new("tools/call", &name, &arguments);
        let repeated = (request.input_responses, request.request_state);
        let requester = context.client_info().map(|client| format!("{} {}", client.name, client.version));
        let requester: Arc<str> = requester.unwrap_or_else(|| "mcp".to_owned()).into();
        let client = context.client_info().map(|client| client.name);
        let offer = self.session_offer(&hub, &context);
        let called = Called { hub, name, form, client, offer, key };
        let answer = self.interact(
            &context,
            subject,
            repeated,
            sink,
            true,
            Box::new(move |client, sink, cancel| {
                Box::pin(with_client(requester, answer(called, arguments, client, sink, cancel)))
            }),
        );
        Box::pin(async move {
            let _active = active;
            run_events::after_events(answer, forwarding).await
        })
    }
}

/// The member of `_meta` of a request by which a client finds the run again that it has begun.
const IDEMPOTENCY_KEY: &str = "codecall/idempotencyKey";

/// A call of a tool.
struct Called {
    hub: Arc<Hub>,
    name: String,
    form: AnswerForm,
    /// The name of the client.
    client: Option<String>,
    /// How tools were offered to it; `None`: it has not asked for a list.
    offer: Option<Offer>,
    /// The key of the request.
    key: Option<String>,
}

impl Called {
    /// Says that there is no tool of this name.
    fn unknown_tool(&self) -> ErrorData {
        let Self { hub, name, .. } = self;
        let known = meta_tool_names(hub);
        let more = match hub.catalogue().snapshot().listed().len() {
            0 => String::new(),
            more => format!(", and {more} more in the list of tools"),
        };
        let broken = hub.pipeline().broken_reason(name).map(|reason| format!("{reason}. ")).unwrap_or_default();
        let snapshot = hub.catalogue().snapshot();
        let meant = snapshot.meant_by(name);
        let shared = if meant.len() > 1 { format!("{}. ", shared_name(name, &meant)) } else { String::new() };
        let message =
            format!("Unknown tool '{name}'. {shared}{broken}The tools of this server are {}{more}", known.join(", "));
        ErrorData::invalid_params(message, Some(json!({"tools": known})))
    }
}

/// Calls a meta-tool or a listed tool.
async fn answer(
    called: Called,
    arguments: Map<String, Value>,
    client: Client,
    sink: EventSink,
    cancel: CancellationToken,
) -> suspended::Answer {
    let Called { hub, name, form, client: client_name, offer, key } = &called;
    let result = if meta::find(name).is_some() {
        let arguments = meta::with_key(hub, name, arguments, key.as_deref());
        let answer = meta::call_for(hub, name, Value::Object(arguments), client, sink, cancel).await;
        answer
            .map(|answer| Ok(offload::run_without_permit(answer.content.weight(), || meta_tool_result(answer, *form))))
    } else {
        let is_offered = match (hub.catalogue().snapshot().listed().lookup(name), offer) {
            (Some(_), _) => false,
            (None, Some(offer)) => offer.lists_tools(),
            (None, None) => codecall_hub::front::offer(hub, client_name.as_deref()).await.lists_tools(),
        };
        let is_bridged = hub.is_bridged(client_name.as_deref());
        let result = Box::pin(hub.direct_for(name, is_offered, arguments, client, sink, cancel)).await;
        result.map(|result| {
            let result = result.map(|result| {
                let structured = hub.config().structured;
                offload::run_without_permit(result.weight(), || tool_result(result, structured, is_bridged))
            });
            result.or_else(|error| client_error(&error).map_or_else(|| Ok(error_result(error)), Err))
        })
    };
    match result {
        Some(result) => result.map(ServerResult::CallToolResult),
        None => Err(called.unknown_tool()),
    }
}
