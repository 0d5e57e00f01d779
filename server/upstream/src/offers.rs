//! What an upstream has besides tools: resources and prompts, passed through as they are.

use super::lists::{Pages, Unlisted};
use super::mcp;
use super::session::McpServer;
use super::{BoxFuture, News};
use rmcp::ErrorData;
use rmcp::model::*;
use rmcp::service::ServiceError;
use serde_json::{Map, Value};
use tokio::sync::broadcast;

/// Resources and prompts of an upstream. Errors are in its own words.
pub trait Offers: Send + Sync {
    /// All resources.
    fn resources(&self) -> BoxFuture<'_, Result<Vec<Resource>, ErrorData>>;

    /// All templates of addresses of resources.
    fn templates(&self) -> BoxFuture<'_, Result<Vec<ResourceTemplate>, ErrorData>>;

    /// All prompts.
    fn prompts(&self) -> BoxFuture<'_, Result<Vec<Prompt>, ErrorData>>;

    /// A resource by its address.
    fn read<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<ReadResourceResult, ErrorData>>;

    /// A prompt by its name.
    fn prompt<'a>(
        &'a self,
        name: &'a str,
        arguments: Option<Map<String, Value>>,
    ) -> BoxFuture<'a, Result<GetPromptResult, ErrorData>>;

    /// Hear of changes of a resource from now on, or no more.
    fn subscribe<'a>(&'a self, uri: &'a str, wanted: bool) -> BoxFuture<'a, Result<(), ErrorData>>;

    /// Changes of its lists and of the resources that were subscribed to, and what it says, from now on.
    fn news(&self) -> broadcast::Receiver<News>;
}

impl Offers for McpServer {
    fn resources(&self) -> BoxFuture<'_, Result<Vec<Resource>, ErrorData>> {
        Box::pin(async move {
            let peer = self.peer().await?;
            match peer.peer_info().is_none_or(|info| info.capabilities.resources.is_some()) {
                true => {
                    let listed = Pages::all(|page| {
                        let peer = peer.clone();
                        async move { peer.list_resources(page).await.map(|list| (list.resources, list.next_cursor)) }
                    });
                    listed.await.map_err(|error| self.unlisted(error))
                }
                false => Ok(Vec::new()),
            }
        })
    }

    fn templates(&self) -> BoxFuture<'_, Result<Vec<ResourceTemplate>, ErrorData>> {
        Box::pin(async move {
            let peer = self.peer().await?;
            match peer.peer_info().is_none_or(|info| info.capabilities.resources.is_some()) {
                true => {
                    let listed = Pages::all(|page| {
                        let peer = peer.clone();
                        async move {
                            peer.list_resource_templates(page)
                                .await
                                .map(|list| (list.resource_templates, list.next_cursor))
                        }
                    });
                    listed.await.map_err(|error| self.unlisted(error))
                }
                false => Ok(Vec::new()),
            }
        })
    }

    fn prompts(&self) -> BoxFuture<'_, Result<Vec<Prompt>, ErrorData>> {
        Box::pin(async move {
            let peer = self.peer().await?;
            match peer.peer_info().is_none_or(|info| info.capabilities.prompts.is_some()) {
                true => {
                    let listed = Pages::all(|page| {
                        let peer = peer.clone();
                        async move { peer.list_prompts(page).await.map(|list| (list.prompts, list.next_cursor)) }
                    });
                    listed.await.map_err(|error| self.unlisted(error))
                }
                false => Ok(Vec::new()),
            }
        })
    }

    fn read<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<ReadResourceResult, ErrorData>> {
        Box::pin(async move {
            let answered = self.peer().await?.read_resource_once(ReadResourceRequestParams::new(uri)).await;
            match answered.map_err(|error| self.told(error))? {
                ReadResourceResponse::Complete(result) => Ok(result),
                _ => Err(wants_input()),
            }
        })
    }

    fn prompt<'a>(
        &'a self,
        name: &'a str,
        arguments: Option<Map<String, Value>>,
    ) -> BoxFuture<'a, Result<GetPromptResult, ErrorData>> {
        Box::pin(async move {
            let mut params = GetPromptRequestParams::new(name);
            params.arguments = arguments;
            let answered = self.peer().await?.get_prompt_once(params).await;
            match answered.map_err(|error| self.told(error))? {
                GetPromptResponse::Complete(result) => Ok(result),
                _ => Err(wants_input()),
            }
        })
    }

    fn subscribe<'a>(&'a self, uri: &'a str, wanted: bool) -> BoxFuture<'a, Result<(), ErrorData>> {
        Box::pin(async move {
            let peer = self.peer().await?;
            let info = peer.peer_info();
            let able = info.as_ref().and_then(|info| info.capabilities.resources.as_ref()?.subscribe);
            if able != Some(true) {
                return Err(ErrorData::method_not_found::<SubscribeRequestMethod>());
            }
            // Without a session, what is listened to follows this set.
            self.shared.subscribed.send_modify(|uris| {
                if wanted {
                    uris.insert(uri.to_owned())
                } else {
                    uris.remove(uri)
                };
            });
            if info.is_some_and(|info| info.protocol_version.as_str() >= "2026-07-28") {
                return Ok(());
            }
            #[expect(deprecated, reason = "servers with sessions know nothing else")]
            let answered = match wanted {
                true => peer.subscribe(SubscribeRequestParams::new(uri)).await,
                false => peer.unsubscribe(UnsubscribeRequestParams::new(uri)).await,
            };
            answered.map_err(|error| self.told(error))
        })
    }

    fn news(&self) -> broadcast::Receiver<News> {
        self.shared.exchange.news()
    }
}

impl McpServer {
    fn unlisted(&self, error: Unlisted) -> ErrorData {
        match error {
            Unlisted::Service(error) => self.told(error),
            Unlisted::Endless(why) => {
                ErrorData::internal_error(format!("The MCP server '{}' cannot be asked: {why}", self.app_id()), None)
            }
        }
    }

    fn told(&self, error: ServiceError) -> ErrorData {
        match error {
            ServiceError::McpError(error) => error,
            other => ErrorData::internal_error(mcp::broken(self.app_id(), "-", other).message, None),
        }
    }
}

fn wants_input() -> ErrorData {
    ErrorData::internal_error("It asks for input from a person, which is not possible here", None)
}
