//! Resources and prompts of all upstreams, exposed to clients if `expose` is `direct`.
//!
//! Lists omit an upstream that does not answer.

use codecall_base::client::Client;
use codecall_hub::Hub;
use codecall_upstream::ResourcesAndPrompts;
use futures_util::future::{BoxFuture, join_all};
use rmcp::ErrorData;
use rmcp::model::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use tokio_util::sync::CancellationToken;

/// Whether the configuration exposes resources and prompts.
pub fn are_exposed(hub: &Hub) -> bool {
    hub.config().tools.exposes_all()
}

/// Returns all resources, in the order of the apps.
pub async fn list(hub: &Hub) -> Vec<Resource> {
    list_all(hub, |upstream| upstream.list_resources()).await.into_iter().map(|(_, resource)| resource).collect()
}

/// Returns all resource templates, in the order of the apps.
pub async fn list_templates(hub: &Hub) -> Vec<ResourceTemplate> {
    list_all(hub, |upstream| upstream.list_resource_templates())
        .await
        .into_iter()
        .map(|(_, template)| template)
        .collect()
}

/// Returns all prompts, by their exposed names.
pub async fn list_prompts(hub: &Hub) -> Vec<Prompt> {
    all_prompts(hub).await.into_iter().map(|(_, _, prompt)| prompt).collect()
}

/// Reads a resource from the first app that has it. Its server can ask the client until `cancel` is cancelled.
pub async fn read(
    hub: &Hub,
    uri: &str,
    client: &Client,
    cancel: &CancellationToken,
) -> Result<ReadResourceResult, ErrorData> {
    let mut first_error = None;
    for (app, upstream) in exposing(hub) {
        let client = hub.pipeline().client_of(client, app, &format!("Resource '{uri}'"), cancel.child_token());
        let Some(result) = cancel.run_until_cancelled(upstream.read_resource(uri, client)).await else {
            return Err(ErrorData::internal_error("the request was cancelled", None));
        };
        match result {
            Ok(result) => return Ok(redact(hub, result)),
            Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {}
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    let missing = || ErrorData::resource_not_found("there is no such resource", None);
    Err(redact(hub, first_error.unwrap_or_else(missing)))
}

/// Returns a prompt by its exposed name. Its server can ask the client until `cancel` is cancelled.
pub async fn get_prompt(
    hub: &Hub,
    request: GetPromptRequestParams,
    client: Client,
    cancel: CancellationToken,
) -> Result<GetPromptResult, ErrorData> {
    let prompts = all_prompts(hub).await;
    let Some((app, own, _)) = prompts.into_iter().find(|(_, _, prompt)| prompt.name == request.name) else {
        return Err(ErrorData::invalid_params(format!("Unknown prompt '{}'", request.name), None));
    };
    let Some((_, upstream)) = exposing(hub).find(|(other, _)| *other == app) else {
        return Err(ErrorData::internal_error("the server of this prompt is gone", None));
    };
    let client = hub.pipeline().client_of(&client, &app, &format!("Prompt '{own}'"), cancel.child_token());
    match cancel.run_until_cancelled(upstream.get_prompt(&own, request.arguments, client)).await {
        Some(Ok(result)) => Ok(redact(hub, result)),
        Some(Err(error)) => Err(redact(hub, error)),
        None => Err(ErrorData::internal_error("the request was cancelled", None)),
    }
}

/// Completes an argument of a prompt, by its exposed name, or of a resource template.
pub async fn complete(hub: &Hub, mut request: CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    let owner = match &mut request.r#ref {
        Reference::Prompt(prompt) => {
            let prompts = all_prompts(hub).await;
            let found = prompts.into_iter().find(|(_, _, listed)| listed.name == prompt.name);
            let Some((app, own, _)) = found else {
                return Err(ErrorData::invalid_params(format!("Unknown prompt '{}'", prompt.name), None));
            };
            prompt.name = own;
            Some(app)
        }
        Reference::Resource(resource) => {
            let templates = list_all(hub, |upstream| upstream.list_resource_templates()).await;
            templates.into_iter().find(|(_, template)| template.uri_template == resource.uri).map(|(app, _)| app)
        }
        _ => None,
    };
    let unknown = || ErrorData::invalid_params("there is no such prompt or resource template", None);
    let upstream = owner.and_then(|owner| exposing(hub).find(|(app, _)| *app == owner)).ok_or_else(unknown)?.1;
    match upstream.complete(request).await {
        Ok(result) => Ok(redact(hub, result)),
        // The server has no completions.
        Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND => Ok(CompleteResult::default()),
        Err(error) => Err(redact(hub, error)),
    }
}

/// Returns all prompts with their app and the upstream's own name. A name that is not unique gets the app as a prefix.
async fn all_prompts(hub: &Hub) -> Vec<(String, String, Prompt)> {
    let prompts: Vec<(String, Prompt)> = list_all(hub, |upstream| upstream.list_prompts()).await;
    let mut counts: HashMap<String, usize> = HashMap::new();
    for (_, prompt) in &prompts {
        *counts.entry(prompt.name.clone()).or_default() += 1;
    }
    let separator = hub.config().tools.names.separator();
    let exposed = prompts.into_iter().map(|(app, mut prompt)| {
        let own = prompt.name.clone();
        if counts.get(&own) != Some(&1) {
            prompt.name = format!("{app}{separator}{own}");
        }
        (app, own, prompt)
    });
    exposed.collect()
}

/// Returns the upstreams that have resources or prompts, with their apps.
fn exposing(hub: &Hub) -> impl Iterator<Item = (&str, &dyn ResourcesAndPrompts)> {
    hub.catalogue().upstreams().filter_map(|upstream| Some((upstream.app(), upstream.resources_and_prompts()?)))
}

type ListFuture<'a, T> = BoxFuture<'a, Result<Vec<T>, ErrorData>>;

/// Lists the items of all upstreams at once, each with its app.
async fn list_all<T: Serialize + DeserializeOwned>(
    hub: &Hub,
    list: impl Fn(&dyn ResourcesAndPrompts) -> ListFuture<'_, T>,
) -> Vec<(String, T)> {
    let lists = exposing(hub).map(|(app, upstream)| {
        let list = list(upstream);
        async move { (app, list.await) }
    });
    let mut all = Vec::new();
    for (app, list) in join_all(lists).await {
        match list {
            Ok(items) => all.extend(items.into_iter().map(|item| (app.to_owned(), redact(hub, item)))),
            Err(error) => tracing::warn!(app, "its resources or prompts cannot be listed: {}", error.message),
        }
    }
    all
}

/// Redacts secrets.
fn redact<T: Serialize + DeserializeOwned>(hub: &Hub, item: T) -> T {
    let secrets = hub.secrets().redactor();
    if secrets.is_empty() {
        return item;
    }
    let Ok(mut value) = serde_json::to_value(&item) else { return item };
    secrets.redact_value(&mut value);
    serde_json::from_value(value).unwrap_or(item)
}
