//! MCP servers and other upstreams: how they are, what they have written to stderr, and their restart.

use super::layout::{csrf, not_found, number, page, problem, status};
use super::query::address;
use super::{Visit, see_other};
use axum::http::StatusCode;
use axum::response::Response;
use codecall_hub::hub::ServerStatus;
use maud::{Markup, html};

/// `GET /ui/servers`
pub fn list(visit: &Visit) -> Response {
    let now = visit.hub.status();
    let content = html! {
        p.lead {
            "CodeCall " (now.version) ", up for " (number(i64::try_from(now.uptime_seconds).unwrap_or(i64::MAX))) " s. Scripts: "
            (now.runs.active) " running, " (now.runs.waiting) " waiting for tools, " (now.runs.queued) " in the queue, " (now.runs.available) " could begin at once."
        }
        table.list.stacked.servers {
            caption.hidden { "Servers" }
            thead { tr {
                th scope="col" { "App" } th scope="col" { "State" } th scope="col" { "Kind" } th.right scope="col" { "Tools" }
                th.right scope="col" { "Waiting for approval" } th.right scope="col" { "Start" } th scope="col" { "Problem" }
            } }
            tbody { @for server in &now.servers { tr {
                td { @if server.app.is_empty() { span.dim { "(none)" } } @else { a href=(address_of(&server.app)) { (server.app) } } }
                td { (state(server)) }
                td { (server.source) }
                td.right { @if server.app.is_empty() { (server.tools) } @else { a href=(tools_of(&server.app)) { (server.tools) } } }
                td.right { @if server.pending > 0 { a href="/ui/quarantine" { (server.pending) } } @else { "0" } }
                td.right { @if let Some(ms) = server.start_ms { (ms) " ms" } }
                td.problem { @for problem in problems(visit, server) { div { (problem) } } }
            } } }
        }
        @if now.servers.is_empty() { p.empty { "No server is configured." } }
        section { h2 { "Isolation" } ul { @for line in &now.isolation { li { (line) } } } }
    };
    page(visit, "Servers", &content)
}

/// `GET /ui/server?name=…`
pub fn show(visit: &Visit) -> Response {
    let name = visit.query.get("name").unwrap_or_default();
    let now = visit.hub.status();
    let Some(server) = now.servers.iter().find(|server| server.app == name && !name.is_empty()) else {
        return not_found(visit);
    };
    let upstream = visit.hub.catalogue().upstreams().find(|upstream| upstream.app() == name);
    let lines = upstream.map(|upstream| upstream.last_lines()).unwrap_or_default();
    let content = html! {
        p.lead {
            (state(server)) " " (server.source) ", " a href=(tools_of(name)) { (server.tools) " tools" }
            @if let Some(ms) = server.start_ms { ", started in " (ms) " ms" }
        }
        @for problem in problems(visit, server) { p.alert { (problem) } }
        @if visit.hub.can_restart(name) && visit.may_run {
            form.buttons method="post" action="/ui/server" {
                (csrf(visit))
                input type="hidden" name="name" value=(name);
                button { "Restart" }
                span.dim { "Calls of its tools that are in progress fail." }
            }
        }
        @if server.source == "mcp" {
            section aria-labelledby="stderr" {
                h2 #stderr { "Last lines of stderr" }
                @if lines.is_empty() { p.empty { "It has written nothing." } } @else {
                    pre.wrap tabindex="0" { @for line in &lines { (visit.clean(line)) "\n" } }
                }
                p { a href=(address_of(name)) { "Load again" } }
            }
        }
    };
    page(visit, name, &content)
}

/// `POST /ui/server`: starts a server again.
pub async fn restart(visit: &Visit) -> Response {
    if !visit.may_run {
        return problem(Some(visit), StatusCode::FORBIDDEN, "Servers cannot be started here: 'http.uiRuns' is off.");
    }
    let name = visit.form.get("name").unwrap_or_default();
    match visit.live.restart(name).await {
        Ok(true) => {
            tracing::info!(app = name, "a server was started again on the page");
            see_other(&address_of(name))
        }
        Ok(false) => not_found(visit),
        Err(error) => problem(Some(visit), StatusCode::SERVICE_UNAVAILABLE, &visit.clean(&error.to_string())),
    }
}

fn address_of(app: &str) -> String {
    address("/ui/server", [("name", app)])
}

fn tools_of(app: &str) -> String {
    address("/ui/tools", [("app", app)])
}

fn state(server: &ServerStatus) -> Markup {
    match server.state.as_str() {
        "up" => status("ok"),
        "failed" => html! { span.status.failed { "failed" } },
        other => html! { span.status.waits { (other) } },
    }
}

/// Returns what is wrong with a server, and what is odd about its tools.
fn problems(visit: &Visit, server: &ServerStatus) -> Vec<String> {
    let broken = server.broken.iter().map(|tool| &tool.error);
    server.error.iter().chain(&server.oddities).chain(broken).map(|text| visit.clean(text)).collect()
}
