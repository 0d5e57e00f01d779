//! The service that rmcp drives for a client over two streams.
//!
//! rmcp's future of a request has room for each kind of request, several times over, and for its context. A call of a tool may
//! wait for long, so rmcp only checks it, and [`OpenCalls`] answers it.

use super::open_calls::{self, OpenCalls};
use super::run_events::Outlet;
use super::{Handler, suspended};
use codecall_upstream::BoxFuture;
use futures_util::FutureExt as _;
use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, Service as RmcpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The service of a client.
pub struct Service {
    pub handler: Handler,
    pub calls: Arc<OpenCalls>,
}

impl Service {
    /// Begins to answer a call.
    fn begin(&self, Call { request, mut context }: Call) {
        let (id, is_modern) = (context.id.clone(), super::is_modern(&context));
        let cancel = CancellationToken::new();
        self.calls.add(id.clone(), cancel.clone());
        // rmcp cancels its own token when it has the placeholder.
        let own = std::mem::replace(&mut context.ct, cancel);
        context.extensions.insert(Outlet::Writer(self.calls.writer().clone()));
        self.calls.answer(id.clone(), self.handler.answer_call(request, context), is_modern);
        if own.is_cancelled() {
            self.calls.cancel(&id);
        }
    }
}

impl RmcpService<RoleServer> for Service {
    fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = suspended::Answer> + Send + '_ {
        let answering: BoxFuture<'_, suspended::Answer> = match request {
            ClientRequest::CallToolRequest(_) => {
                let checked = checked(request, context).map(|call| self.begin(call));
                Box::pin(std::future::ready(checked.map(|()| open_calls::placeholder())))
            }
            request => Box::pin(self.handler.handle_request(request, context)),
        };
        answering
    }

    fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> impl Future<Output = Result<(), ErrorData>> + Send + '_ {
        if let ClientNotification::CancelledNotification(cancelled) = &notification
            && let Some(id) = &cancelled.params.request_id
        {
            self.calls.cancel(id);
        }
        self.handler.handle_notification(notification, context)
    }

    fn get_info(&self) -> ServerConfig {
        ServerHandler::get_info(&self.handler)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        ServerHandler::supported_protocol_versions(&self.handler)
    }
}

/// A call that rmcp has checked.
pub struct Call {
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
}

/// Lets rmcp check a request as it does before it calls a tool.
fn checked(request: ClientRequest, context: RequestContext<RoleServer>) -> Result<Call, ErrorData> {
    let passed = Passed::default();
    let refused = passed.handle_request(request, context).now_or_never();
    match passed.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(call) => Ok(call),
        None => Err(refused.and_then(Result::err).unwrap_or_else(super::wrong_result)),
    }
}

/// A handler that only takes the call that it is passed.
#[derive(Default)]
pub struct Passed(Mutex<Option<Call>>);

impl ServerHandler for Passed {
    fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<CallToolResponse, ErrorData>> + Send + '_ {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Call { request, context });
        std::future::ready(Err(super::wrong_result()))
    }
}

/// Gives an answer the form of the version of the protocol, as rmcp does for other requests.
pub fn conforming(answer: suspended::Answer, is_modern: bool) -> suspended::Answer {
    match answer {
        Ok(mut result) => {
            if !is_modern {
                result.strip_result_type_for_legacy_peer();
            }
            Ok(result)
        }
        Err(mut error) => {
            if is_modern && error.code == ErrorCode::RESOURCE_NOT_FOUND {
                error.code = ErrorCode::INVALID_PARAMS;
            }
            Err(error)
        }
    }
}
