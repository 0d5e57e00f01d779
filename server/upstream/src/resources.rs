//! Resources and prompts of an upstream, passed through unchanged.

use super::mcp;
use super::pagination::{ListError, list_all};
use super::session::McpServer;
use super::{BoxFuture, UpstreamNotification};
use rmcp::ErrorData;
use rmcp::model::*;
use rmcp::service::ServiceError;
use serde_json::{Map, Value};
use tokio::sync::broadcast;

/// The resources and prompts of an upstream. An error keeps the text of the upstream.
pub trait ResourcesAndPrompts: Send + Sync {
    /// Lists all resources.
    fn list_resources(&self) -> BoxFuture<'_, Result<Vec<Resource>, ErrorData>>;

    /// Lists all resource templates.
    fn list_resource_templates(&self) -> BoxFuture<'_, Result<Vec<ResourceTemplate>, ErrorData>>;

    /// Lists all prompts.
    fn list_prompts(&self) -> BoxFuture<'_, Result<Vec<Prompt>, ErrorData>>;

    /// Reads a resource by its URI.
    fn read_resource<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<ReadResourceResult, ErrorData>>;

    /// Gets a prompt by its name.
    fn get_prompt<'a>(
        &'a self,
        name: &'a str,
        arguments: Option<Map<String, Value>>,
    ) -> BoxFuture<'a, Result<GetPromptResult, ErrorData>>;

    /// Subscribes to changes of a resource, or unsubscribes from them.
    fn set_subscribed<'a>(&'a self, uri: &'a str, subscribed: bool) -> BoxFuture<'a, Result<(), ErrorData>>;

    /// Receives all notifications from now on that belong to no call.
    fn notifications(&self) -> broadcast::Receiver<UpstreamNotification>;
}

impl ResourcesAndPrompts for McpServer {
    fn list_resources(&self) -> BoxFuture<'_, Result<Vec<Resource>, ErrorData>> {
        Box::pin(async move {
            let peer = self.peer()?;
            match peer.peer_info().is_none_or(|info| info.capabilities.resources.is_some()) {
                true => {
                    let list = list_all(|page| {
                        let peer = peer.clone();
                        async move { peer.list_resources(page).await.map(|list| (list.resources, list.next_cursor)) }
                    });
                    list.await.map_err(|error| self.list_error(error))
                }
                false => Ok(Vec::new()),
            }
        })
    }

    fn list_resource_templates(&self) -> BoxFuture<'_, Result<Vec<ResourceTemplate>, ErrorData>> {
        Box::pin(async move {
            let peer = self.peer()?;
            match peer.peer_info().is_none_or(|info| info.capabilities.resources.is_some()) {
                true => {
                    let list = list_all(|page| {
                        let peer = peer.clone();
                        async move {
                            peer.list_resource_templates(page)
                                .await
                                .map(|list| (list.resource_templates, list.next_cursor))
                        }
                    });
                    list.await.map_err(|error| self.list_error(error))
                }
                false => Ok(Vec::new()),
            }
        })
    }

    fn list_prompts(&self) -> BoxFuture<'_, Result<Vec<Prompt>, ErrorData>> {
        Box::pin(async move {
            let peer = self.peer()?;
            match peer.peer_info().is_none_or(|info| info.capabilities.prompts.is_some()) {
                true => {
                    let list = list_all(|page| {
                        let peer = peer.clone();
                        async move { peer.list_prompts(page).await.map(|list| (list.prompts, list.next_cursor)) }
                    });
                    list.await.map_err(|error| self.list_error(error))
                }
                false => Ok(Vec::new()),
            }
        })
    }

    fn read_resource<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<ReadResourceResult, ErrorData>> {
        Box::pin(async move {
            let response = self.peer()?.read_resource_once(ReadResourceRequestParams::new(uri)).await;
            match response.map_err(|error| self.service_error(error))? {
                ReadResourceResponse::Complete(result) => Ok(result),
                _ => Err(needs_input()),
            }
        })
    }

    fn get_prompt<'a>(
        &'a self,
        name: &'a str,
        arguments: Option<Map<String, Value>>,
    ) -> BoxFuture<'a, Result<GetPromptResult, ErrorData>> {
        Box::pin(async move {
            let mut params = GetPromptRequestParams::new(name);
            params.arguments = arguments;
            let response = self.peer()?.get_prompt_once(params).await;
            match response.map_err(|error| self.service_error(error))? {
                GetPromptResponse::Complete(result) => Ok(result),
                _ => Err(needs_input()),
            }
        })
    }

    fn set_subscribed<'a>(&'a self, uri: &'a str, subscribed: bool) -> BoxFuture<'a, Result<(), ErrorData>> {
        Box::pin(async move {
            let peer = self.peer()?;
            let info = peer.peer_info();
            let can_subscribe = info.as_ref().and_then(|info| info.capabilities.resources.as_ref()?.subscribe);
            if can_subscribe != Some(true) {
                return Err(ErrorData::method_not_found::<SubscribeRequestMethod>());
            }
            // Without a session, `forward_notifications` follows this set.
            self.shared.subscribed.send_modify(|uris| {
                if subscribed {
                    uris.insert(uri.to_owned())
                } else {
                    uris.remove(uri)
                };
            });
            if info.is_some_and(|info| info.protocol_version.as_str() >= "2026-07-28") {
                return Ok(());
            }
            #[expect(deprecated, reason = "servers with sessions support no other way")]
            let response = match subscribed {
                true => peer.subscribe(SubscribeRequestParams::new(uri)).await,
                false => peer.unsubscribe(UnsubscribeRequestParams::new(uri)).await,
            };
            response.map_err(|error| self.service_error(error))
        })
    }

    fn notifications(&self) -> broadcast::Receiver<UpstreamNotification> {
        self.shared.notifications.subscribe()
    }
}

impl McpServer {
    fn list_error(&self, error: ListError) -> ErrorData {
        match error {
            ListError::Service(error) => self.service_error(error),
            ListError::LimitExceeded(why) => ErrorData::internal_error(
                format!("A list of the MCP server '{}' cannot be read: {why}", self.app_id()),
                None,
            ),
        }
    }

    fn service_error(&self, error: ServiceError) -> ErrorData {
        match error {
            ServiceError::McpError(error) => error,
            other => ErrorData::internal_error(mcp::call_error(self.app_id(), "-", other).message, None),
        }
    }
}

fn needs_input() -> ErrorData {
    ErrorData::internal_error("It asks for input from a person, which is not supported here", None)
}
