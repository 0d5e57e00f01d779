//! Stored secrets: their names. Values are never shown.

use super::Visit;
use super::layout::{page, problem, time};
use axum::http::StatusCode;
use axum::response::Response;
use codecall_store::{SecretStore as _, SqlSecrets};
use maud::html;

/// `GET /ui/secrets`
pub async fn show(visit: &Visit) -> Response {
    let Some(database) = visit.hub.database() else {
        return page(visit, "Secrets", &html! { p.alert { "There is no store." } });
    };
    let secrets = match SqlSecrets(database.clone()).list(None).await {
        Ok(secrets) => secrets,
        Err(error) => return problem(Some(visit), StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    };
    let content = html! {
        p.dim { "Values are encrypted and never shown. Change them with " code { "codecall secret set NAME" } "." }
        table.list tabindex="0" {
            caption.hidden { "Secrets" }
            thead { tr { th scope="col" { "Workspace" } th scope="col" { "Name" } th scope="col" { "Stored (UTC)" } th scope="col" { "Changed (UTC)" } } }
            tbody { @for secret in &secrets { tr {
                td { (secret.workspace) } td { code { (secret.name) } } td { (time(secret.created_ms)) } td { (time(secret.changed_ms)) }
            } } }
        }
        @if secrets.is_empty() { p.empty { "No secret is stored." } }
    };
    page(visit, "Secrets", &content)
}
