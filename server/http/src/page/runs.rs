//! The list of runs, with filters and pages, and its news.

use super::layout::{duration, number, page, page_with, problem, status, time};
use super::query::{FILTERS, filter, with_filters};
use super::{Visit, active};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use codecall_base::event::RunId;
use codecall_base::redact::Redactor;
use codecall_hub::hub::LiveHub;
use codecall_store::{ListedRun, RUN_KINDS, RUN_STATUSES, RunFilter, RunStore, ended_ms, now_us, position};
use futures_util::stream::unfold;
use maud::{Markup, html};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of runs on a page.
const PAGE: usize = 50;
/// How often is looked for new runs.
const LOOK: Duration = Duration::from_millis(700);
/// How far back is looked, in microseconds: other processes may write runs some seconds after their end.
const OVERLAP_US: i64 = 10_000_000;
/// Maximum number of runs that are news at once.
const MAX_NEW: usize = 200;
/// After how long news end; the browser then asks again.
const MAX_NEWS: Duration = Duration::from_secs(600);

impl Visit {
    /// Returns the store of runs.
    pub(super) fn runs(&self) -> Option<&Arc<dyn RunStore>> {
        self.hub.history().map(|history| history.store())
    }
}

/// `GET /ui/runs`
pub async fn list(visit: &Visit) -> Response {
    let Some(runs) = visit.runs() else {
        let content = html! {
            (active::section(visit))
            p.alert { "Runs are not recorded: " code { "history" } " of the configuration is off, or there is no store." }
        };
        return page(visit, "Runs", &content);
    };
    let filters = filters(visit);
    let filter = match filter(&visit.query, PAGE + 1) {
        Ok(filter) => filter,
        Err(wrong) => {
            let content = html! { (filters) p.alert role="alert" { (visit.clean(&wrong)) } };
            return page_with(visit, StatusCode::BAD_REQUEST, "Runs", &content);
        }
    };
    let (found, totals) = futures_util::join!(runs.list(&filter), runs.totals());
    let (mut found, totals) = match (found, totals) {
        (Ok(found), Ok(totals)) => (found, totals),
        (Err(error), _) | (_, Err(error)) => return problem(Some(visit), StatusCode::SERVICE_UNAVAILABLE, &error.0),
    };
    let has_older = found.len() > PAGE;
    found.truncate(PAGE);
    let is_first = filter.before.is_none();
    let older = found.last().filter(|_| has_older).map(|run| run.position.to_string());
    // With an empty list, a run that ends before the browser follows the news is one of them.
    let after = found.first().map_or(0, |run| run.position).to_string();
    let news = with_filters("/ui/runs/live", &visit.query, Some(("after", &after)));
    let lost = visit.hub.history().map_or(0, |history| history.lost());
    let redactor = visit.hub.secrets().redactor();
    let content = html! {
        (active::section(visit))
        (filters)
        @if lost > 0 { p.alert { (lost) " runs could not be recorded; the log says why." } }
        p #news.dim role="status" aria-live="polite" {
            (number(totals.runs)) " runs are recorded."
        }
        table.list.stacked.runs data-news=[is_first.then_some(news)] {
            caption.hidden { "Runs, the latest first" }
            thead { tr {
                th scope="col" { "Ended (UTC)" } th scope="col" { "Status" } th scope="col" { "Script or tool" }
                th scope="col" { "Kind" } th.right scope="col" { "Duration" } th.right scope="col" { "Calls" } th scope="col" { "Client" }
            } }
            tbody { @for run in &found { (row(&redactor, run)) } }
        }
        @if found.is_empty() { p.empty { "No run fits these filters." } }
        nav.pages aria-label="Pages of runs" {
            @if !is_first { a href=(with_filters("/ui/runs", &visit.query, None)) { "Latest runs" } }
            @if let Some(older) = &older {
                a rel="next" href=(with_filters("/ui/runs", &visit.query, Some(("before", older)))) { "Older runs" }
            }
        }
    };
    page(visit, "Runs", &content)
}

/// Creates the form of the filters.
fn filters(visit: &Visit) -> Markup {
    let query = visit.query.without_secrets(&visit.hub.secrets().redactor());
    let value = |name: &str| query.filled(name).unwrap_or_default();
    let select = |name: &str, any: &str, known: &[&str]| {
        let chosen = value(name);
        html! {
            select name=(name) {
                option value="" { (any) }
                @for option in known { option selected[*option == chosen] { (option) } }
                @if !chosen.is_empty() && !known.contains(&chosen) { option selected { (chosen) } }
            }
        }
    };
    let is_filtered = FILTERS.iter().any(|name| !value(name).is_empty());
    html! {
        form.filters method="get" action="/ui/runs" role="search" aria-label="Filter runs" {
            label { "Text" input name="text" type="search" value=(value("text")) placeholder="words, ref*"; }
            label { "Status" (select("status", "any", &RUN_STATUSES)) }
            label { "Kind" (select("kind", "any", &RUN_KINDS)) }
            label { "Tool" input name="tool" value=(value("tool")) placeholder="users:get, users:*"; }
            label { "Client" input name="client" value=(value("client")) placeholder="beginning"; }
            label { "Since" input name="since" value=(value("since")) placeholder="2h, 2026-11-23"; }
            label { "Until" input name="until" value=(value("until")) placeholder="30m, 2026-11-24"; }
            button { "Filter" }
            @if is_filtered { a href="/ui/runs" { "Remove filters" } }
        }
    }
}

/// Creates the row of a run.
fn row(redactor: &Redactor, ListedRun { position, summary }: &ListedRun) -> Markup {
    let clean = |text: &str| redactor.redact_text(text).into_owned();
    let title = clean(&summary.title);
    html! {
        tr #{ "run-" (summary.id) } {
            td { (time(ended_ms(*position))) }
            td { (status(&summary.status)) @if let Some(code) = &summary.code { " " span.code.dim { (clean(code)) } } }
            td.title { a href={ "/ui/runs/" (summary.id) } { @if title.trim().is_empty() { "(empty)" } @else { (title) } } }
            td { (summary.kind) }
            td.right { (duration(summary.duration_us)) }
            td.right { (number(summary.tool_calls)) }
            td { (clean(summary.client.as_deref().unwrap_or_default())) }
        }
    }
}

/// The news of a list. It asks for the hub of each moment: one that it had would live as long as the stream.
struct News {
    runs: Arc<dyn RunStore>,
    live: LiveHub,
    /// The token of the forms of runs in progress; `None`: they have none.
    csrf: Option<String>,
    /// The runs in progress that were sent.
    active: Vec<RunId>,
    filter: RunFilter,
    /// The positions of runs that were sent, or were in the list.
    seen: Vec<i64>,
    until: Instant,
}

/// `GET /ui/runs/live`: the rows of new runs, as events.
pub async fn live(visit: &Visit) -> Response {
    let (Some(runs), Ok(filter)) = (visit.runs(), filter(&visit.query, MAX_NEW)) else {
        return problem(None, StatusCode::NOT_FOUND, "There are no news.");
    };
    // Where the browser has read to before the connection broke.
    let last = visit.headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let after = last.or(filter.after).unwrap_or_else(|| position(now_us()));
    let overlap = position(OVERLAP_US);
    let filter = RunFilter { after: Some(after.saturating_sub(overlap)), ..filter };
    let known = runs.list(&filter).await.unwrap_or_default();
    let known = known.iter().map(|run| run.position).filter(|position| *position < after);
    let seen = known.chain([after]).collect();
    let csrf = visit.may_run.then(|| visit.login.csrf.clone());
    let (runs, live, active) = (Arc::clone(runs), visit.login.hub.clone(), Vec::new());
    let news = News { runs, live, csrf, active, filter, seen, until: Instant::now() + MAX_NEWS };
    let events = unfold(news, move |mut news| async move {
        while Instant::now() < news.until {
            if let Some(event) = news.active_event() {
                return Some((Ok::<_, Infallible>(event), news));
            }
            let latest = news.seen.iter().max().copied().unwrap_or(after);
            news.filter.after = Some(latest.saturating_sub(overlap));
            let mut new = news.runs.list(&news.filter).await.unwrap_or_default();
            new.retain(|run| !news.seen.contains(&run.position));
            if new.is_empty() {
                tokio::time::sleep(LOOK).await;
                continue;
            }
            news.seen.extend(new.iter().map(|run| run.position));
            let latest = news.seen.iter().max().copied().unwrap_or(after);
            news.seen.retain(|position| *position >= latest.saturating_sub(2 * overlap));
            let redactor = news.live.get().secrets().redactor();
            let rows: String = new.iter().map(|run| row(&redactor, run).into_string()).collect();
            // The data of an event has no carriage returns.
            let event = Event::default().id(latest.to_string()).data(rows.replace(['\n', '\r'], " "));
            return Some((Ok(event), news));
        }
        None
    });
    Sse::new(events).keep_alive(KeepAlive::new()).into_response()
}

impl News {
    /// Returns the rows of the runs in progress, if others are in progress than were sent.
    fn active_event(&mut self) -> Option<Event> {
        let hub = self.live.get();
        let runs = hub.active_runs();
        let ids: Vec<RunId> = runs.iter().map(|run| run.id.clone()).collect();
        if ids == self.active {
            return None;
        }
        self.active = ids;
        let rows = active::rows(&runs, &hub.secrets().redactor(), self.csrf.as_deref()).into_string();
        Some(Event::default().event("active").data(rows.replace(['\n', '\r'], " ")))
    }
}
