//! Resources and prompts of all upstreams, passed through where `expose` is `direct`.
//!
//! An upstream that does not answer is left out of lists.

use crate::hub::Hub;
use codecall_config::Expose;
use codecall_upstream::ResourcesAndPrompts;
use futures_util::future::{BoxFuture, join_all};
use rmcp::ErrorData;
use rmcp::model::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;

/// Whether they are passed through at all.
pub fn are_exposed(hub: &Hub) -> bool {
    hub.config().tools.expose == Expose::Direct
}

/// All resources, in the order of the apps.
pub async fn resources(hub: &Hub) -> Vec<Resource> {
    all(hub, |offers| offers.list_resources()).await.into_iter().map(|(_, resource)| resource).collect()
}

/// All templates of resources, in the order of the apps.
pub async fn templates(hub: &Hub) -> Vec<ResourceTemplate> {
    all(hub, |offers| offers.list_resource_templates()).await.into_iter().map(|(_, template)| template).collect()
}

/// All prompts by their names here.
pub async fn prompts(hub: &Hub) -> Vec<Prompt> {
    named_prompts(hub).await.into_iter().map(|(_, _, prompt)| prompt).collect()
}

/// A resource, from the first app that has it.
pub async fn read(hub: &Hub, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let mut failure = None;
    for (_, offers) in offering(hub) {
        match offers.read_resource(uri).await {
            Ok(result) => return Ok(clean(hub, result)),
            Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND => {}
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let missing = || ErrorData::resource_not_found("there is no such resource", None);
    Err(clean(hub, failure.unwrap_or_else(missing)))
}

/// A prompt by its name here.
pub async fn prompt(hub: &Hub, request: GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
    let known = named_prompts(hub).await;
    let Some((app, own, _)) = known.into_iter().find(|(_, _, prompt)| prompt.name == request.name) else {
        return Err(ErrorData::invalid_params(format!("Unknown prompt '{}'", request.name), None));
    };
    let Some((_, offers)) = offering(hub).find(|(other, _)| *other == app) else {
        return Err(ErrorData::internal_error("its server is not there", None));
    };
    match offers.get_prompt(&own, request.arguments).await {
        Ok(result) => Ok(clean(hub, result)),
        Err(error) => Err(clean(hub, error)),
    }
}

/// Prompts with their app and their own name. A name that two have gets the app in front.
async fn named_prompts(hub: &Hub) -> Vec<(String, String, Prompt)> {
    let found: Vec<(String, Prompt)> = all(hub, |offers| offers.list_prompts()).await;
    let mut times: HashMap<String, usize> = HashMap::new();
    for (_, prompt) in &found {
        *times.entry(prompt.name.clone()).or_default() += 1;
    }
    let separator = hub.config().tools.names.separator();
    let named = found.into_iter().map(|(app, mut prompt)| {
        let own = prompt.name.clone();
        if times.get(&own) != Some(&1) {
            prompt.name = format!("{app}{separator}{own}");
        }
        (app, own, prompt)
    });
    named.collect()
}

fn offering(hub: &Hub) -> impl Iterator<Item = (&str, &dyn ResourcesAndPrompts)> {
    hub.catalogue().upstreams().filter_map(|upstream| Some((upstream.app(), upstream.resources_and_prompts()?)))
}

type Answer<'a, T> = BoxFuture<'a, Result<Vec<T>, ErrorData>>;

async fn all<T: Serialize + DeserializeOwned>(
    hub: &Hub,
    ask: impl Fn(&dyn ResourcesAndPrompts) -> Answer<'_, T>,
) -> Vec<(String, T)> {
    let asked = offering(hub).map(|(app, offers)| {
        let answer = ask(offers);
        async move { (app, answer.await) }
    });
    let mut found = Vec::new();
    for (app, answer) in join_all(asked).await {
        match answer {
            Ok(items) => found.extend(items.into_iter().map(|item| (app.to_owned(), clean(hub, item)))),
            Err(error) => tracing::warn!(app, "its resources or prompts cannot be listed: {}", error.message),
        }
    }
    found
}

/// The same without secrets of the configuration.
fn clean<T: Serialize + DeserializeOwned>(hub: &Hub, given: T) -> T {
    let secrets = hub.pipeline().secrets();
    if secrets.is_empty() {
        return given;
    }
    let Ok(mut value) = serde_json::to_value(&given) else { return given };
    secrets.redact_value(&mut value);
    serde_json::from_value(value).unwrap_or(given)
}
