//! The JSON endpoints of durable runs: a client submits one, and gets its outcome later, also after a restart of the server.

use super::api::read;
use super::error::{ErrorResponse, HttpError};
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::{get, post};
use axum::{Json, Router};
use codecall_base::call::with_client;
use codecall_base::event::RunId;
use codecall_hub::LiveHub;
use codecall_hub::meta::submit::{self, NotSubmitted};
use codecall_hub::meta::{Answer, AnswerContent};
use codecall_store::JournalProblem;
use futures_util::Stream;
use futures_util::stream;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::time::Duration;

/// Where runs are submitted.
const PATH: &str = "/v1/runs";
/// The key by which a request that is sent again is known.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// How long a request may wait for an outcome, in seconds.
const MAX_WAIT: u64 = 60;
/// How often an event stream looks where its run stands.
const LOOK: Duration = Duration::from_millis(250);

pub fn router() -> Router<LiveHub> {
    Router::new()
        .route(PATH, post(submit))
        .route("/v1/runs/{id}", get(show))
        .route("/v1/runs/{id}/events", get(events))
        .route("/v1/runs/{id}/cancel", post(cancel))
}

/// `POST /v1/runs`: submits a run, given by the arguments of `codecall_execute`. With a header `Idempotency-Key` the same
/// request can be sent again, and does not begin a second run.
async fn submit(
    State(hub): State<LiveHub>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, [(HeaderName, String); 1], Json<Value>), ErrorResponse> {
    let arguments: Value = read(&body)?;
    let key = headers.get(KEY).map(|key| String::from_utf8_lossy(key.as_bytes()).into_owned());
    let hub = hub.get();
    let id = with_client("http".into(), submit::submit(&hub, arguments, key.as_deref())).await?;
    let place = format!("{PATH}/{id}");
    Ok((StatusCode::ACCEPTED, [(LOCATION, place)], Json(json!({"id": id.as_str(), "status": "running"}))))
}

/// `GET /v1/runs/ID?wait=SECONDS`: returns the outcome of a run, or where it stands.
async fn show(State(hub): State<LiveHub>, Path(id): Path<String>, uri: Uri) -> Result<Json<Value>, ErrorResponse> {
    let wait = match uri.query().unwrap_or_default() {
        "" => 0,
        query => {
            let seconds = query.strip_prefix("wait=").and_then(|seconds| seconds.parse::<u64>().ok());
            let problem = || ErrorResponse::invalid(format!("'wait' is a number of seconds, {MAX_WAIT} at most"));
            seconds.filter(|&seconds| seconds <= MAX_WAIT).ok_or_else(|| problem().with_param("wait"))?
        }
    };
    let run = RunId::parse(&id).ok_or(HttpError::NotFound)?;
    let (cancel, _guard) = super::cancel_on_drop();
    let hub = hub.get();
    let found = submit::look(&hub, &run, Duration::from_secs(wait), &cancel).await;
    let (state, _) = state(&run, found.ok_or(HttpError::NotFound)?)?;
    Ok(Json(state))
}

/// `POST /v1/runs/ID/cancel`: cancels a run, and the calls that it waits for.
async fn cancel(State(hub): State<LiveHub>, Path(id): Path<String>) -> Result<Json<Value>, ErrorResponse> {
    let run = RunId::parse(&id).ok_or(HttpError::NotFound)?;
    let hub = hub.get();
    let is_cancelled = submit::cancel(&hub, &run).await.map_err(|error| match error {
        JournalProblem::Engine(problem) => HttpError::EngineUnavailable(problem),
        JournalProblem::Seal(_) | JournalProblem::Store(_) | JournalProblem::Lost => {
            tracing::error!("durable runs: {error}");
            HttpError::Internal
        }
    })?;
    if !is_cancelled && submit::look(&hub, &run, Duration::ZERO, &super::cancel_on_drop().0).await.is_none() {
        return Err(HttpError::NotFound.into());
    }
    Ok(Json(json!({"id": run.as_str(), "cancelled": is_cancelled})))
}

/// `GET /v1/runs/ID/events`: an event `status` each time that the run stands elsewhere, and at last its `outcome`.
async fn events(
    State(live): State<LiveHub>,
    Path(id): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ErrorResponse> {
    let run = RunId::parse(&id).ok_or(HttpError::NotFound)?;
    let (cancel, _guard) = super::cancel_on_drop();
    let first = submit::look(&live.get(), &run, Duration::ZERO, &cancel).await.ok_or(HttpError::NotFound)?;
    let first = state(&run, first)?;
    let start = (live, run, Some(first), Value::Null, false);
    let stream = stream::unfold(start, |(live, run, mut next, mut last, has_ended)| async move {
        loop {
            if has_ended {
                return None;
            }
            let (now, is_outcome) = match next.take() {
                Some(first) => first,
                None => {
                    tokio::time::sleep(LOOK).await;
                    let (cancel, _guard) = super::cancel_on_drop();
                    let found = submit::look(&live.get(), &run, Duration::ZERO, &cancel).await?;
                    // The store may be back later.
                    let Ok(found) = state(&run, found) else { continue };
                    found
                }
            };
            if now != last {
                last = now.clone();
                let (name, data) = (if is_outcome { "outcome" } else { "status" }, now.to_string());
                // Secrets may have been added since it was stored.
                let event = Event::default().event(name).data(live.get().secrets().redactor().redact_json(&data));
                return Some((Ok(event), (live, run, None, last, is_outcome)));
            }
        }
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}

/// Returns where a run stands, and whether it has ended.
fn state(run: &RunId, answer: Answer) -> Result<(Value, bool), ErrorResponse> {
    let mut state = match answer.content {
        AnswerContent::Structured(state) => state,
        AnswerContent::Refusal(problem) => {
            tracing::error!(%run, "durable runs: {problem}");
            return Err(HttpError::Internal.into());
        }
    };
    let is_open = state["status"] == "waiting";
    if is_open {
        let (approvals, problem) = (state["approvals"].take(), state["problem"].take());
        let status = if approvals.as_array().is_some_and(Vec::is_empty) { "running" } else { "waiting" };
        state = json!({"status": status, "approvals": approvals});
        if !problem.is_null() {
            state["problem"] = problem;
        }
    }
    state["id"] = run.as_str().into();
    Ok((state, !is_open))
}

impl From<NotSubmitted> for ErrorResponse {
    fn from(problem: NotSubmitted) -> Self {
        match problem {
            NotSubmitted::Invalid(problem) => Self::invalid(problem),
            NotSubmitted::Disabled => HttpError::NoDurableRuns.into(),
            NotSubmitted::KeyUsed => HttpError::KeyUsed.into(),
            NotSubmitted::Full => HttpError::TooManyRuns.into(),
            NotSubmitted::Unavailable(JournalProblem::Engine(problem)) => HttpError::EngineUnavailable(problem).into(),
            NotSubmitted::Unavailable(problem) => {
                tracing::error!("durable runs: {problem}");
                HttpError::StoreUnavailable.into()
            }
        }
    }
}
