//! Tools that are new or have changed and wait for approval, with what has changed.

use super::layout::{csrf, diff, page, problem};
use super::{Visit, see_other};
use axum::http::StatusCode;
use axum::response::Response;
use codecall_tools::catalogue::Pending;
use maud::html;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// `GET /ui/quarantine`
pub fn show(visit: &Visit) -> Response {
    let snapshot = visit.hub.catalogue().snapshot();
    let redactor = visit.hub.secrets().redactor();
    let content = html! {
        @if visit.hub.catalogue().watch().is_none() {
            p.empty { "No tool waits for approval: the configuration has no " code { "quarantine" } "." }
        } @else if snapshot.pending().is_empty() {
            p.empty { "No tool waits for approval." }
        }
        @for (at, tool) in snapshot.pending().iter().enumerate() {
            section.pending aria-labelledby={ "pending-" (at) } {
                h2 #{ "pending-" (at) } { code { (tool.name) } @if tool.approved.is_some() { " has changed" } @else { " is new" } }
                (diff(&tool.diff(&redactor)))
                form method="post" action="/ui/quarantine" {
                    (csrf(visit))
                    input type="hidden" name="name" value=(tool.name);
                    input type="hidden" name="definition" value=(digest(tool));
                    button { "Approve " (tool.name) }
                }
            }
        }
    };
    page(visit, "Quarantine", &content)
}

/// `POST /ui/quarantine`: approves a tool as it was shown.
pub async fn approve(visit: &Visit) -> Response {
    let snapshot = visit.hub.catalogue().snapshot();
    let name = visit.form.get("name").unwrap_or_default();
    let Some(tool) = snapshot.pending().iter().find(|tool| tool.name == name) else {
        return problem(Some(visit), StatusCode::CONFLICT, "This tool does not wait for approval any more.");
    };
    if visit.form.get("definition") != Some(digest(tool).as_str()) {
        return problem(
            Some(visit),
            StatusCode::CONFLICT,
            "The tool has changed since it was shown. Look at it again.",
        );
    }
    if let Some(watch) = visit.hub.catalogue().watch()
        && let Err(error) = watch.approve(&[tool]).await
    {
        return problem(Some(visit), StatusCode::SERVICE_UNAVAILABLE, &error.0);
    }
    visit.hub.catalogue().refresh();
    see_other("/ui/quarantine")
}

/// Identifies what was shown of a tool.
fn digest(tool: &Pending) -> String {
    Sha256::digest(tool.definition.as_bytes()).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
