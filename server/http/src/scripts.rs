//! `/v1/tools/scripts`: script tools in the store, for operators.

use super::api::read;
use super::error::{ErrorResponse, HttpError};
use agentscript::Language;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use codecall_hub::LiveHub;
use codecall_scripts::{Loaded, Problem, ScriptTool, ScriptTools, Stored, StoredError, ToolSource};
use codecall_store::StoredCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Where all paths of this file begin.
pub const PATH: &str = "/v1/tools/scripts";

/// Returns the endpoints.
pub fn router() -> Router<LiveHub> {
    Router::new()
        .route(PATH, get(list))
        .route("/v1/tools/scripts/{name}", get(show).put(put).delete(remove))
        .route("/v1/tools/scripts/{name}/check", post(check))
        .route("/v1/tools/scripts/{name}/versions", get(versions))
        .route("/v1/tools/scripts/{name}/restore", post(restore))
        .route("/v1/tools/scripts/{name}/enable", post(enable))
        .route("/v1/tools/scripts/{name}/disable", post(disable))
}

/// A version to store.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Put {
    code: String,
    #[serde(default)]
    typescript: bool,
    author: Option<String>,
}

/// A version to go back to.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Restore {
    version: i64,
    author: Option<String>,
}

/// The author of a version, if a request does not say so.
const AUTHOR: &str = "http";

type Answer = Result<Json<Value>, ErrorResponse>;

fn tools(live: &LiveHub) -> Result<Arc<ScriptTools>, ErrorResponse> {
    let hub = live.get();
    let http = &hub.config().http;
    // Without a token, every process of this machine could store code that reads secrets.
    if !http.is_protected() {
        return Err(HttpError::OperatorOnly.into());
    }
    hub.script_tools().cloned().ok_or_else(|| {
        ErrorResponse::invalid("There are no script tools: set 'scriptTools.stored' or 'scriptTools.folder'")
    })
}

fn stored(tools: &ScriptTools) -> Result<&Stored, ErrorResponse> {
    tools.stored().ok_or_else(|| ErrorResponse::invalid("Tools are not stored: set 'scriptTools.stored'"))
}

impl From<StoredError> for ErrorResponse {
    fn from(error: StoredError) -> Self {
        match error {
            StoredError::Invalid(problems) => {
                let message = problems.first().map_or_else(String::new, |problem| format!("The tool{problem}"));
                let body = json!({"error": {
                    "message": message, "type": "invalid_request_error", "code": null, "param": null
                }, "problems": problems});
                Self::invalid(message).with_upstream(StatusCode::BAD_REQUEST, Some(body), None)
            }
            StoredError::Unknown(what) => {
                let mut error = Self::from(HttpError::NotFound);
                error.message = what;
                error
            }
            StoredError::Store(error) => {
                tracing::error!("script tools: {error}");
                HttpError::Internal.into()
            }
        }
    }
}

fn to_json(tool: &Loaded) -> Value {
    json!({
        "name": tool.name,
        "origin": if tool.version.is_some() { "store" } else { "folder" },
        "version": tool.version,
        "enabled": tool.enabled,
        "ok": tool.problems.is_empty(),
        "problems": tool.problems,
        "description": tool.tool.as_ref().map(|tool| tool.definition.description.as_str()),
    })
}

async fn list(State(live): State<LiveHub>) -> Answer {
    let tools = tools(&live)?;
    Ok(Json(json!({"tools": tools.all().iter().map(to_json).collect::<Vec<_>>()})))
}

async fn show(State(live): State<LiveHub>, Path(name): Path<String>) -> Answer {
    let tools = tools(&live)?;
    let unknown = || StoredError::Unknown(format!("There is no script tool '{name}'"));
    let loaded = tools.all().into_iter().find(|tool| tool.name == name).ok_or_else(unknown)?;
    let mut shown = to_json(&loaded);
    shown["file"] = loaded.file.display().to_string().into();
    if let Some(tool) = &loaded.tool {
        shown["code"] = (*tool.code).into();
        shown["typescript"] = (tool.language == Language::TypeScript).into();
        shown["inputSchema"] = tool.definition.input_schema.clone();
        shown["manifest"] = serde_json::to_value(&tool.manifest).unwrap_or_default();
    }
    Ok(Json(shown))
}

/// Checks a text without storing it: what the page asks while somebody types.
async fn check(State(live): State<LiveHub>, Path(name): Path<String>, body: Bytes) -> Answer {
    let Put { code, typescript, .. } = read(&body)?;
    let tools = tools(&live)?;
    let language = if typescript { Language::TypeScript } else { Language::JavaScript };
    let source = ToolSource { name: &name, code: &code, language, manifest: None };
    let problems: Vec<Problem> = ScriptTool::check(tools.app_id(), source, tools.policy()).err().unwrap_or_default();
    Ok(Json(json!({"ok": problems.is_empty(), "problems": problems})))
}

async fn put(State(live): State<LiveHub>, Path(name): Path<String>, body: Bytes) -> Answer {
    let Put { code, typescript, author } = read(&body)?;
    let (tools, code) = (tools(&live)?, StoredCode { code, typescript });
    stored(&tools)?;
    let version = tools.put(&name, &code, author.as_deref().unwrap_or(AUTHOR)).await?;
    Ok(Json(json!({"name": name, "version": version})))
}

async fn versions(State(live): State<LiveHub>, Path(name): Path<String>) -> Answer {
    let tools = tools(&live)?;
    let versions = stored(&tools)?.versions(&name).await?;
    Ok(Json(json!({"name": name, "versions": versions})))
}

async fn restore(State(live): State<LiveHub>, Path(name): Path<String>, body: Bytes) -> Answer {
    let Restore { version, author } = read(&body)?;
    let tools = tools(&live)?;
    let old = stored(&tools)?.version(&name, version).await?;
    let version = tools.put(&name, &old.code, author.as_deref().unwrap_or(AUTHOR)).await?;
    Ok(Json(json!({"name": name, "version": version})))
}

async fn enable(live: State<LiveHub>, name: Path<String>) -> Answer {
    set_enabled(live, name, true).await
}

async fn disable(live: State<LiveHub>, name: Path<String>) -> Answer {
    set_enabled(live, name, false).await
}

async fn set_enabled(State(live): State<LiveHub>, Path(name): Path<String>, enabled: bool) -> Answer {
    let tools = tools(&live)?;
    stored(&tools)?.set_enabled(&name, enabled).await?;
    tools.refresh().await;
    Ok(Json(json!({"name": name, "enabled": enabled})))
}

async fn remove(State(live): State<LiveHub>, Path(name): Path<String>) -> Answer {
    let tools = tools(&live)?;
    stored(&tools)?.remove(&name).await?;
    tools.refresh().await;
    Ok(Json(json!({"name": name, "removed": true})))
}
