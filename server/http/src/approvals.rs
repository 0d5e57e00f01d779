//! The JSON endpoints of calls that wait for the approval of a person. They are for operators.

use super::api::read;
use super::error::{ErrorResponse, HttpError};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::Uri;
use codecall_config::DecidedBy;
use codecall_hub::LiveHub;
use codecall_store::{ApprovalRequest, ApprovalRequests, ApprovalState, Decided, Decision, StoreError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// Maximum number of requests in a list.
const MAX_LISTED: u64 = 1_000;

/// The body of a decision.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Decide {
    decision: Verdict,
    reason: Option<String>,
    /// The person who decides, for the record.
    by: Option<String>,
    /// The digest of the input that was seen, or its beginning: the decision holds for no other one.
    input_digest: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Approve,
    Deny,
}

/// `GET /v1/approvals?state=STATE&limit=COUNT`: returns requests, the latest first, with the first page of the input of each.
/// By default those that wait; `all` are those in any state.
pub async fn list(State(hub): State<LiveHub>, uri: Uri) -> Result<Json<Value>, ErrorResponse> {
    let (mut state, mut limit) = (None, MAX_LISTED);
    for parameter in uri.query().unwrap_or_default().split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=').unwrap_or((parameter, "")) {
            ("state", name) => state = Some(name),
            ("limit", count) => {
                let problem = |_| ErrorResponse::invalid("'limit' is a number").with_param("limit");
                limit = count.parse().map_err(problem)?;
            }
            _ => return Err(ErrorResponse::invalid("the parameters are 'state' and 'limit'")),
        }
    }
    let state = match state {
        None => Some(ApprovalState::Waiting),
        Some("all") => None,
        Some(name) => Some(serde_json::from_value(name.into()).map_err(|_| {
            let problem = "'state' is waiting, approved, denied, expired, withdrawn or all";
            ErrorResponse::invalid(problem).with_param("state")
        })?),
    };
    let found = requests(&hub)?.list(state, limit).await.map_err(unavailable)?;
    let found: Vec<Value> = found.iter().map(to_json).collect();
    Ok(Json(json!({"approvals": found})))
}

/// `GET /v1/approvals/ID`: returns a request, with all of its input.
pub async fn show(State(hub): State<LiveHub>, Path(id): Path<String>) -> Result<Json<Value>, ErrorResponse> {
    let found = requests(&hub)?.get(&id).await.map_err(unavailable)?;
    found.map(|request| Json(to_json(&request))).ok_or_else(|| HttpError::NotFound.into())
}

/// Returns a request, with what a reader must not miss of its input.
fn to_json(request: &ApprovalRequest) -> Value {
    let mut json = serde_json::to_value(request).unwrap_or_default();
    json["inputIsWhole"] = request.is_whole().into();
    json
}

/// `POST /v1/approvals/ID`: decides a request. Returns it as it is then: `decided` says whether by this decision.
pub async fn decide(
    State(hub): State<LiveHub>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, ErrorResponse> {
    let Decide { decision, reason, by, input_digest: digest } = read(&body)?;
    let is_reserved = hub.get().config().approval.decided_by == Some(DecidedBy::Operator);
    if is_reserved && !hub.get().config().http.is_protected() {
        // Without tokens nobody is known to be an operator, and clients reach this path too.
        return Err(HttpError::OperatorOnly.into());
    }
    // Before it is cut: without its end, a secret is not found.
    let by = by.map(|by| hub.get().secrets().redactor().redact_text(&by).into_owned());
    let by = by.map_or_else(|| "http".to_owned(), |by| format!("{} (http)", codecall_base::text::truncate(&by, 100)));
    let decision = Decision { digest, is_approved: decision == Verdict::Approve, by, reason };
    let decision = decision.without_secrets(&hub.get().secrets().redactor());
    match requests(&hub)?.decide(&id, &decision).await.map_err(unavailable)? {
        Decided::Done(request) => Ok(Json(json!({"decided": true, "approval": to_json(&request)}))),
        Decided::TooLate(request) => Ok(Json(json!({"decided": false, "approval": to_json(&request)}))),
        Decided::OtherInput(_) => {
            let problem = "'inputDigest' is not that of the input: read it again with GET /v1/approvals/ID";
            Err(ErrorResponse::invalid(problem).with_param("inputDigest"))
        }
        Decided::Unknown => Err(HttpError::NotFound.into()),
    }
}

fn requests(hub: &LiveHub) -> Result<Arc<dyn ApprovalRequests>, ErrorResponse> {
    let hub = hub.get();
    let durable = hub.durable().ok_or_else(|| ErrorResponse::invalid("There is no store, so no call can wait"))?;
    Ok(Arc::clone(durable.requests()))
}

fn unavailable(error: StoreError) -> ErrorResponse {
    tracing::error!("approvals: {error}");
    HttpError::Internal.into()
}
