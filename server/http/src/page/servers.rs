//! MCP servers and other upstreams, and how they are.

use super::Visit;
use super::layout::{number, page, status};
use super::query::address;
use axum::response::Response;
use maud::html;

/// `GET /ui/servers`
pub fn show(visit: &Visit) -> Response {
    let now = visit.hub.status();
    let state = |state: &str| {
        if state == "up" {
            status("ok")
        } else if state == "idle" {
            html! { span.dim { (state) } }
        } else {
            html! { span.status.failed { (state) } }
        }
    };
    let content = html! {
        p.lead {
            "CodeCall " (now.version) ", up for " (number(i64::try_from(now.uptime_seconds).unwrap_or(i64::MAX))) " s. Scripts: "
            (now.runs.active) " running, " (now.runs.waiting) " waiting for tools, " (now.runs.queued) " in the queue, " (now.runs.available) " could begin at once."
        }
        table.list {
            caption.hidden { "Servers" }
            thead { tr {
                th scope="col" { "App" } th scope="col" { "State" } th scope="col" { "Kind" } th.right scope="col" { "Tools" }
                th.right scope="col" { "Waiting for approval" } th.right scope="col" { "Start" } th scope="col" { "Problem" }
            } }
            tbody { @for server in &now.servers { tr {
                td { @if server.app.is_empty() { span.dim { "(none)" } } @else { a href=(address("/ui/tools", [("app", server.app.as_str())])) { (server.app) } } }
                td { (state(&server.state)) }
                td { (server.source) }
                td.right { (server.tools) }
                td.right { @if server.pending > 0 { a href="/ui/quarantine" { (server.pending) } } @else { "0" } }
                td.right { @if let Some(ms) = server.start_ms { (ms) " ms" } }
                td.title {
                    (visit.clean(server.error.as_deref().unwrap_or_default()))
                    @for line in &server.last_output { div { code { (visit.clean(line)) } } }
                    @for oddity in &server.oddities { div { (visit.clean(oddity)) } }
                    @for tool in &server.broken { div { (visit.clean(&tool.error)) } }
                }
            } } }
        }
        @if now.servers.is_empty() { p.empty { "No server is configured." } }
        section { h2 { "Isolation" } ul { @for line in &now.isolation { li { (line) } } } }
    };
    page(visit, "Servers", &content)
}
