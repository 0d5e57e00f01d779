//! Runs in progress, above the list of ended ones, and their end by an operator.

use super::Visit;
use super::layout::{csrf_of, problem, time};
use super::run::short;
use super::see_other;
use axum::http::StatusCode;
use axum::response::Response;
use codecall_base::event::RunId;
use codecall_base::redact::Redactor;
use codecall_hub::hub::ActiveRun;
use maud::{Markup, html};

/// Creates the section of the runs in progress. It is hidden while there are none.
pub fn section(visit: &Visit) -> Markup {
    let runs = visit.hub.active_runs();
    let redactor = visit.hub.secrets().redactor();
    html! {
        section #active aria-labelledby="active-title" hidden[runs.is_empty()] {
            h2 #active-title { "In progress" }
            table.list.stacked.active {
                caption.hidden { "Runs in progress, the latest first" }
                thead { tr {
                    th scope="col" { "Since (UTC)" } th scope="col" { "Script" } th scope="col" { "Kind" } th scope="col" { "Client" }
                    th scope="col" { span.hidden { "End it" } }
                } }
                tbody { (rows(&runs, &redactor, visit.may_run.then_some(visit.login.csrf.as_str()))) }
            }
        }
    }
}

/// Creates the rows of runs in progress. `csrf`: the token of the forms; `None`: there are none.
pub fn rows(runs: &[ActiveRun], redactor: &Redactor, csrf: Option<&str>) -> Markup {
    let clean = |text: &str| redactor.redact_text(text).into_owned();
    html! {
        @for run in runs {
            tr #{ "active-" (run.id) } {
                td { (time(run.began_ms)) }
                td.title { code { (clean(&run.title)) } }
                td { (run.kind) }
                td { (clean(run.client.as_deref().unwrap_or_default())) }
                td.right {
                    @if let Some(csrf) = csrf {
                        form method="post" action={ "/ui/runs/" (run.id) "/cancel" } {
                            (csrf_of(csrf))
                            button.quiet { "Cancel" span.hidden { " the run " (short(run.id.as_str())) } }
                        }
                    }
                }
            }
        }
    }
}

/// `POST /ui/runs/ID/cancel`
pub async fn cancel(visit: &Visit, id: &str) -> Response {
    if !visit.may_run {
        return problem(Some(visit), StatusCode::FORBIDDEN, "Runs cannot be cancelled here: 'http.uiRuns' is off.");
    }
    let Some(id) = RunId::parse(id) else { return super::not_found(visit) };
    match visit.hub.cancel_run(&id).await {
        Ok(true) => {
            tracing::info!(run = %id, "a run was cancelled on the page");
            see_other("/ui/runs")
        }
        // It has ended meanwhile: the list has it.
        Ok(false) => see_other("/ui/runs"),
        Err(error) => problem(Some(visit), StatusCode::SERVICE_UNAVAILABLE, &visit.clean(&error)),
    }
}
