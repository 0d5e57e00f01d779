//! Skills (SEP-2640): the answers to `skills/list`, `skills/get` and `resources/directory/read`.

use codecall_hub::Hub;
use rmcp::ErrorData;
use rmcp::model::*;

/// Returns all skills on one page. The list may be kept no longer than those that it is made of.
pub async fn list(hub: &Hub) -> ListSkillsResult {
    let listing = hub.list_skills().await;
    let skills = listing.skills.into_iter().map(|listed| listed.skill).collect();
    let mut result = ListSkillsResult::with_all_items(skills);
    result.ttl_ms = listing.ttl_ms;
    result.cache_scope = listing.is_private.then_some(CacheScope::Private);
    result
}

/// Returns a skill.
///
/// # Errors
/// There is none: -32602 (invalid params).
pub async fn get(hub: &Hub, uri: &str) -> Result<GetSkillResult, ErrorData> {
    hub.get_skill(uri).await.map(GetSkillResult::new)
}

/// Returns the entries of a folder of a skill.
///
/// # Errors
/// It is no folder: -32602 (invalid params).
pub async fn directory(hub: &Hub, uri: &str) -> Result<ReadResourceDirectoryResult, ErrorData> {
    hub.read_skill_directory(uri).await.map(ReadResourceDirectoryResult::with_all_items)
}
