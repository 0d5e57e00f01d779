//! Resources and prompts of an upstream, passed through unchanged.

use super::answer::Answer;
use super::mcp;
use super::metadata::Listed;
use super::pagination::{Page, list_all};
use super::session::{Failure, McpServer};
use super::{BoxFuture, UpstreamNotification};
use codecall_base::client::Client;
use codecall_base::event::UpdateSink;
use rmcp::model::*;
use rmcp::service::{Peer, ServiceError};
use rmcp::{ErrorData, RoleClient};
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::{Mutex, PoisonError};
use tokio::sync::broadcast;

/// The resources and prompts of an upstream. An error keeps the text of the upstream.
pub trait ResourcesAndPrompts: Send + Sync {
    /// Lists all resources.
    fn list_resources(&self) -> BoxFuture<'_, Result<Vec<Resource>, ErrorData>>;

    /// Lists all resource templates.
    fn list_resource_templates(&self) -> BoxFuture<'_, Result<Vec<ResourceTemplate>, ErrorData>>;

    /// Lists all prompts.
    fn list_prompts(&self) -> BoxFuture<'_, Result<Vec<Prompt>, ErrorData>>;

    /// Reads a resource by its URI. The server can ask the client.
    fn read_resource<'a>(
        &'a self,
        uri: &'a str,
        client: Client,
    ) -> BoxFuture<'a, Result<ReadResourceResult, ErrorData>>;

    /// Gets a prompt by its name. The server can ask the client.
    fn get_prompt<'a>(
        &'a self,
        name: &'a str,
        arguments: Option<Map<String, Value>>,
        client: Client,
    ) -> BoxFuture<'a, Result<GetPromptResult, ErrorData>>;

    /// Lists all skills (SEP-2640). A server without skills has none.
    fn list_skills(&self) -> BoxFuture<'_, Result<SkillList, ErrorData>> {
        Box::pin(std::future::ready(Ok(SkillList::default())))
    }

    /// Returns a skill by the URI of its `SKILL.md`, which need not be in the list.
    fn get_skill<'a>(&'a self, _uri: &'a str) -> BoxFuture<'a, Result<Skill, ErrorData>> {
        Box::pin(std::future::ready(Err(ErrorData::method_not_found::<GetSkillRequestMethod>())))
    }

    /// Lists the entries of a folder of a skill.
    fn read_directory<'a>(&'a self, _uri: &'a str) -> BoxFuture<'a, Result<Vec<Resource>, ErrorData>> {
        Box::pin(std::future::ready(Err(ErrorData::method_not_found::<ReadResourceDirectoryRequestMethod>())))
    }

    /// Completes an argument of a prompt or of the template of a resource.
    fn complete(&self, _params: CompleteRequestParams) -> BoxFuture<'_, Result<CompleteResult, ErrorData>> {
        Box::pin(std::future::ready(Err(ErrorData::method_not_found::<CompleteRequestMethod>())))
    }

    /// Sets the lowest level of log messages that the server sends, also after a reconnect, if it has a session.
    fn set_level(&self, _level: mcp::LogLevel) {}

    /// Sets the only client of this process, which a server with a session may ask for its roots at any time. Its roots may
    /// have changed since the last time.
    fn set_only_client(&self, _client: Client) {}

    /// Subscribes to changes of a resource, or unsubscribes from them.
    fn set_subscribed<'a>(&'a self, uri: &'a str, subscribed: bool) -> BoxFuture<'a, Result<(), ErrorData>>;

    /// Receives all notifications from now on that belong to no call.
    fn notifications(&self) -> broadcast::Receiver<UpstreamNotification>;
}

/// The skills of an upstream.
#[derive(Debug, Default)]
pub struct SkillList {
    /// The skills.
    pub skills: Vec<Skill>,
    /// How long the list may be kept, in milliseconds; `None`: the upstream does not say.
    pub ttl_ms: Option<u64>,
    /// Whether only this client may keep it.
    pub is_private: bool,
}

impl ResourcesAndPrompts for McpServer {
    fn list_resources(&self) -> BoxFuture<'_, Result<Vec<Resource>, ErrorData>> {
        Box::pin(self.listed(
            |own| own.resources.is_some(),
            |peer, page| async move {
                peer.list_resources(page).await.map(|list| Page::new(list.resources, list.next_cursor))
            },
        ))
    }

    fn list_resource_templates(&self) -> BoxFuture<'_, Result<Vec<ResourceTemplate>, ErrorData>> {
        Box::pin(self.listed(
            |own| own.resources.is_some(),
            |peer, page| async move {
                let list = peer.list_resource_templates(page).await?;
                Ok(Page::new(list.resource_templates, list.next_cursor))
            },
        ))
    }

    fn list_prompts(&self) -> BoxFuture<'_, Result<Vec<Prompt>, ErrorData>> {
        Box::pin(
            self.listed(
                |own| own.prompts.is_some(),
                |peer, page| async move {
                    peer.list_prompts(page).await.map(|list| Page::new(list.prompts, list.next_cursor))
                },
            ),
        )
    }

    fn read_resource<'a>(
        &'a self,
        uri: &'a str,
        client: Client,
    ) -> BoxFuture<'a, Result<ReadResourceResult, ErrorData>> {
        Box::pin(async move {
            let _active = self.active();
            let request = |responses, state| {
                let mut params = ReadResourceRequestParams::new(uri);
                (params.input_responses, params.request_state) = (responses, state);
                ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
            };
            match self.exchange(&self.peer()?, UpdateSink::default(), client).run(false, request).await {
                Ok(Answer::Result(ServerResult::ReadResourceResult(result))) => Ok(result),
                Ok(_) => Err(self.service_error(ServiceError::UnexpectedResponse)),
                Err(failure) => Err(self.failure(failure)),
            }
        })
    }

    fn get_prompt<'a>(
        &'a self,
        name: &'a str,
        arguments: Option<Map<String, Value>>,
        client: Client,
    ) -> BoxFuture<'a, Result<GetPromptResult, ErrorData>> {
        Box::pin(async move {
            let _active = self.active();
            let request = |responses, state| {
                let mut params = GetPromptRequestParams::new(name);
                params.arguments.clone_from(&arguments);
                (params.input_responses, params.request_state) = (responses, state);
                ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
            };
            match self.exchange(&self.peer()?, UpdateSink::default(), client).run(false, request).await {
                Ok(Answer::Result(ServerResult::GetPromptResult(result))) => Ok(result),
                Ok(_) => Err(self.service_error(ServiceError::UnexpectedResponse)),
                Err(failure) => Err(self.failure(failure)),
            }
        })
    }

    fn list_skills(&self) -> BoxFuture<'_, Result<SkillList, ErrorData>> {
        Box::pin(async move {
            let hints = Mutex::new((None::<u64>, false));
            let skills = self
                .listed(ServerCapabilities::supports_skills, |peer, page| {
                    let hints = &hints;
                    async move {
                        let list = peer.list_skills(page).await?;
                        let mut hints = hints.lock().unwrap_or_else(PoisonError::into_inner);
                        hints.0 = hints.0.into_iter().chain(list.ttl_ms).min();
                        hints.1 |= list.cache_scope == Some(CacheScope::Private);
                        Ok(Page::new(list.skills, list.next_cursor))
                    }
                })
                .await?;
            let (ttl_ms, is_private) = hints.into_inner().unwrap_or_else(PoisonError::into_inner);
            Ok(SkillList { skills, ttl_ms, is_private })
        })
    }

    fn get_skill<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<Skill, ErrorData>> {
        Box::pin(async move {
            let _active = self.active();
            let result = self.peer()?.get_skill(GetSkillRequestParams::new(uri)).await;
            result.map(|result| result.skill).map_err(|error| self.service_error(error))
        })
    }

    fn read_directory<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<Vec<Resource>, ErrorData>> {
        Box::pin(async move {
            let _active = self.active();
            let peer = self.peer()?;
            let listing = list_all(|page| {
                let (peer, mut params) = (peer.clone(), ReadResourceDirectoryRequestParams::new(uri));
                params.cursor = page.and_then(|page| page.cursor);
                async move {
                    let list = peer.read_resource_directory(params).await?;
                    Ok(Page::new(list.resources, list.next_cursor))
                }
            });
            Ok(listing.await.map_err(|error| self.service_error(error))?.items)
        })
    }

    fn complete(&self, params: CompleteRequestParams) -> BoxFuture<'_, Result<CompleteResult, ErrorData>> {
        Box::pin(async move {
            let _active = self.active();
            let peer = self.peer()?;
            if peer.peer_info().is_some_and(|info| info.capabilities.completions.is_none()) {
                return Err(ErrorData::method_not_found::<CompleteRequestMethod>());
            }
            peer.complete(params).await.map_err(|error| self.service_error(error))
        })
    }

    fn set_only_client(&self, client: Client) {
        self.shared.notifications.set_only_client(client);
        self.shared.roots_version.send_modify(|version| *version += 1);
    }

    fn set_level(&self, level: mcp::LogLevel) {
        self.shared.log_level.send_replace(Some(level));
    }

    fn set_subscribed<'a>(&'a self, uri: &'a str, subscribed: bool) -> BoxFuture<'a, Result<(), ErrorData>> {
        Box::pin(async move {
            let _active = self.active();
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
    /// Lists all of a kind, page by page; nothing, if the server does not have the kind.
    async fn listed<T, Fut>(
        &self,
        has: impl Fn(&ServerCapabilities) -> bool,
        list: impl Fn(Peer<RoleClient>, Option<PaginatedRequestParams>) -> Fut,
    ) -> Result<Vec<T>, ErrorData>
    where
        T: Serialize + Listed,
        Fut: Future<Output = Result<Page<T>, ServiceError>>,
    {
        let _active = self.active();
        let peer = self.peer()?;
        if peer.peer_info().is_some_and(|info| !has(&info.capabilities)) {
            return Ok(Vec::new());
        }
        let listing = list_all(|page| list(peer.clone(), page)).await.map_err(|error| self.service_error(error))?;
        for oddity in &listing.oddities {
            tracing::warn!(app = self.app_id(), "{oddity}");
        }
        let mut items = listing.items;
        items.iter_mut().for_each(Listed::clean);
        Ok(items)
    }

    fn failure(&self, failure: Failure) -> ErrorData {
        match failure {
            Failure::Service(error) => self.service_error(error),
            other => ErrorData::internal_error(mcp::failure(self.app_id(), "-", other).message, None),
        }
    }

    fn service_error(&self, error: ServiceError) -> ErrorData {
        match error {
            ServiceError::McpError(error) => error,
            other => ErrorData::internal_error(mcp::call_error(self.app_id(), "-", other).message, None),
        }
    }
}
