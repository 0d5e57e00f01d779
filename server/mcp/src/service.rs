//! The service that rmcp drives for a client over two streams.
//!
//! rmcp's future of a request has room for each kind of request, several times over, and for its context. A call of a tool may
//! wait for long, so rmcp only checks it, and what answers it is a future without all that.

use super::{Handler, suspended};
use codecall_upstream::BoxFuture;
use futures_util::FutureExt as _;
use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, Service as RmcpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

/// The service of a client.
pub struct Service(pub Handler);

impl RmcpService<RoleServer> for Service {
    fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> impl Future<Output = suspended::Answer> + Send + '_ {
        let answering: BoxFuture<'_, suspended::Answer> = match request {
            ClientRequest::CallToolRequest(_) => match checked(request, context) {
                Ok(Call { request, context }) => {
                    let is_modern = super::is_modern(&context);
                    let answer = self.0.answer_call(request, context);
                    Box::pin(async move { conforming(*answer.await, is_modern) })
                }
                Err(error) => Box::pin(std::future::ready(Err(error))),
            },
            request => Box::pin(self.0.handle_request(request, context)),
        };
        answering
    }

    fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> impl Future<Output = Result<(), ErrorData>> + Send + '_ {
        self.0.handle_notification(notification, context)
    }

    fn get_info(&self) -> ServerConfig {
        ServerHandler::get_info(&self.0)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        ServerHandler::supported_protocol_versions(&self.0)
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
