//! Calls that wait for the decision of a person, and decided ones.

use super::layout::{csrf, number, page, problem, time, value};
use super::query::address;
use super::run::short;
use super::{CLIENT, Visit, see_other};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use codecall_base::json;
use codecall_store::{ApprovalRequest, ApprovalRequests as _, ApprovalState, Decided, Decision, SqlApprovalRequests};
use futures_util::stream::unfold;
use maud::{Markup, html};
use serde_json::Value;
use std::convert::Infallible;
use std::time::{Duration, Instant};

/// Maximum number of calls that are shown.
const MAX_SHOWN: u64 = 200;
/// How often it is looked for calls that wait.
const LOOK: Duration = Duration::from_secs(1);
/// How long news are sent. The browser then asks for further ones, as far as its login is valid.
const MAX_NEWS: Duration = Duration::from_secs(300);
/// Number of decided calls that are shown.
const DECIDED: usize = 50;

impl Visit {
    fn approvals(&self) -> Option<SqlApprovalRequests> {
        self.hub.database().map(|database| SqlApprovalRequests(database.clone()))
    }

    /// Returns how many calls wait for a decision.
    pub(super) async fn waiting_calls(&self) -> usize {
        let Some(approvals) = self.approvals() else { return 0 };
        approvals.list(Some(ApprovalState::Waiting), MAX_SHOWN).await.map_or(0, |calls| calls.len())
    }
}

/// `GET /ui/approvals`
pub async fn show(visit: &Visit) -> Response {
    let Some(approvals) = visit.approvals() else {
        return page(visit, "Approvals", &html! { p.alert { "There is no store." } });
    };
    let calls = match approvals.list(None, MAX_SHOWN).await {
        Ok(calls) => calls,
        Err(error) => return problem(Some(visit), StatusCode::SERVICE_UNAVAILABLE, &error.0),
    };
    let (waiting, decided): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| call.state == ApprovalState::Waiting);
    let content = html! {
        p #news role="status" {}
        div data-approvals="/ui/approvals/live" {
            @if waiting.is_empty() { p.empty { "No call waits for a decision." } }
            @for (at, call) in waiting.iter().enumerate() { (request(visit, at, call)) }
        }
        @if !decided.is_empty() {
            section aria-labelledby="decided" {
                h2 #decided { "Decided" }
                table.list {
                    caption.hidden { "Calls that were decided, the latest first" }
                    thead { tr { th scope="col" { "Asked (UTC)" } th scope="col" { "State" } th scope="col" { "Tool" } th scope="col" { "By" } th scope="col" { "Reason" } } }
                    tbody { @for call in decided.iter().take(DECIDED) { tr {
                        td { (time(call.asked_ms)) }
                        td { (call.state.as_str()) }
                        td { a href=(address("/ui/tool", [("name", call.tool.as_str())])) { (call.tool) } @if let Some(run) = &call.run { ", " (run_of(run)) } }
                        td { (visit.clean(call.decided_by.as_deref().unwrap_or_default())) }
                        td { (visit.clean(call.reason.as_deref().unwrap_or_default())) }
                    } } }
                }
            }
        }
    };
    page(visit, "Approvals", &content)
}

/// `GET /ui/approvals/live`: the ids of the calls that wait, whenever they have changed, as events. The page then reads what is
/// new of itself.
pub async fn live(visit: &Visit) -> Response {
    let Some(approvals) = visit.approvals() else {
        return problem(None, StatusCode::NOT_FOUND, "There are no news.");
    };
    let until = Instant::now() + MAX_NEWS;
    let events =
        unfold((approvals, None), move |(approvals, mut sent): (SqlApprovalRequests, Option<String>)| async move {
            while Instant::now() < until {
                // While the store cannot be read, nothing is new.
                if let Ok(calls) = approvals.list(Some(ApprovalState::Waiting), MAX_SHOWN).await {
                    let ids = calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>().join(" ");
                    if sent.as_ref() != Some(&ids) {
                        sent = Some(ids.clone());
                        return Some((Ok::<_, Infallible>(Event::default().data(ids)), (approvals, sent)));
                    }
                }
                tokio::time::sleep(LOOK).await;
            }
            None
        });
    Sse::new(events).keep_alive(KeepAlive::new()).into_response()
}

fn run_of(run: &str) -> Markup {
    html! { a href={ "/ui/runs/" (run) } { "run " (short(run)) } }
}

/// Creates the form of a call that waits.
fn request(visit: &Visit, at: usize, call: &ApprovalRequest) -> Markup {
    html! {
        section.pending #{ "approval-" (call.id) } aria-labelledby={ "call-" (at) } {
            h2 #{ "call-" (at) } { code { (call.tool) } span.hidden { " " (call.id) } }
            p {
                @if let Some(client) = &call.client { "Asked by " (visit.clean(client)) ", " }
                (time(call.asked_ms)) " UTC"
                @if let Some(run) = &call.run { ", " (run_of(run)) }
                "; it waits until " (time(call.expires_ms)) "."
                @if call.once { " An approval holds for further calls of this tool by this client." }
            }
            (input_of(visit, call))
            form.decide method="post" action="/ui/approvals" {
                (csrf(visit))
                input type="hidden" name="id" value=(call.id);
                input type="hidden" name="digest" value=(call.input_digest);
                label { "Reason " input name="reason" maxlength="500"; }
                // Nobody approves what was not shown.
                @if call.is_whole() { button name="decision" value="approve" { "Approve " (call.tool) } }
                button.quiet name="decision" value="deny" { "Deny " (call.tool) }
            }
        }
    }
}

/// Shows the input of a call: all of it, or its first page and where the others are.
fn input_of(visit: &Visit, call: &ApprovalRequest) -> Markup {
    let input = visit.hub.secrets().redactor().redact_json(&call.input).into_owned();
    let parsed = if call.is_whole() { json::parse(&input).ok() } else { None };
    html! {
        p.digest { "Input: " (number(i64::try_from(call.input_bytes).unwrap_or(i64::MAX))) " bytes, SHA-256 " code { (call.input_digest) } "." }
        @if let Some(long) = &call.long_members { p.alert { "Long members, which hide what follows them: " (visit.clean(long)) } }
        (value(&parsed.unwrap_or(Value::String(input))))
        @if !call.is_whole() {
            p.alert {
                "This is the beginning. "
                a href={ "/ui/approvals/" (call.id) } { "Read all of it" } " to approve the call."
            }
        }
    }
}

/// `GET /ui/approvals/ID`: a call that waits, with all of its input.
pub async fn show_one(visit: &Visit, id: &str) -> Response {
    let found = match visit.approvals() {
        Some(approvals) => approvals.get(id).await,
        None => Ok(None),
    };
    match found {
        Ok(Some(call)) if call.state == ApprovalState::Waiting => page(visit, "Approval", &request(visit, 0, &call)),
        Ok(Some(call)) => {
            let content = html! { p { "The call is " (call.state.as_str()) "." } (input_of(visit, &call)) };
            page(visit, "Approval", &content)
        }
        Ok(None) => problem(Some(visit), StatusCode::NOT_FOUND, "There is no such call any more."),
        Err(error) => problem(Some(visit), StatusCode::SERVICE_UNAVAILABLE, &error.0),
    }
}

/// `POST /ui/approvals`: decides about a call.
pub async fn decide(visit: &Visit) -> Response {
    let wrong = |text: &str| problem(Some(visit), StatusCode::CONFLICT, text);
    let Some(approvals) = visit.approvals() else { return wrong("There is no store.") };
    let is_approved = match visit.form.get("decision") {
        Some("approve") => true,
        Some("deny") => false,
        Some(_) | None => return problem(Some(visit), StatusCode::BAD_REQUEST, "Approve or deny the call."),
    };
    let reason = visit.form.filled("reason").map(str::to_owned);
    let Some(digest) = visit.form.filled("digest").map(str::to_owned) else {
        return problem(Some(visit), StatusCode::BAD_REQUEST, "The digest of the input is missing.");
    };
    let decision = Decision { digest: Some(digest), is_approved, by: CLIENT.into(), reason };
    let decision = decision.without_secrets(&visit.hub.secrets().redactor());
    match approvals.decide(visit.form.get("id").unwrap_or_default(), &decision).await {
        Ok(Decided::Done(_)) => see_other("/ui/approvals"),
        Ok(Decided::TooLate(call)) => wrong(&format!("It is too late: the call is {}.", call.state.as_str())),
        Ok(Decided::OtherInput(_)) => wrong("The call has another input than the one that was shown: read it again."),
        Ok(Decided::Unknown) => wrong("There is no such call any more."),
        Err(error) => problem(Some(visit), StatusCode::SERVICE_UNAVAILABLE, &error.0),
    }
}
