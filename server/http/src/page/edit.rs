//! Scripts that are written on the page: the editor, its check, and their runs.

use super::layout::{csrf, page, page_with, problem, status, value};
use super::run::failure;
use super::{Visit, response, see_other};
use crate::cancel_on_drop;
use agentscript::{CompileOptions, Dialect, Language, Linker};
use axum::http::StatusCode;
use axum::response::Response;
use codecall_base::json;
use codecall_hub::meta::code_execution_policy;
use codecall_runs::ExecuteRequest;
use maud::{Markup, html};
use serde_json::{Value, json};

/// A script in an editor.
pub struct Draft<'a> {
    pub script: &'a str,
    /// JSON text; empty: none.
    pub parameters: &'a str,
    /// `javascript`, `typescript`; empty: it is detected.
    pub language: &'a str,
    /// Whether it is code of `code_execution`.
    pub is_sync: bool,
    /// The run whose answers it can be replayed with.
    pub replays: Option<&'a str>,
}

/// Creates an editor.
pub fn editor(visit: &Visit, draft: &Draft<'_>) -> Markup {
    html! {
        form.edit method="post" action="/ui/script" data-check="/ui/check" {
            (csrf(visit))
            @if draft.is_sync { input type="hidden" name="sync" value="1"; }
            (text_area(&visit.clean(draft.script), "Script"))
            div.fields {
                label { span { "Parameters (a JSON object, " code { "codecallContext" } ")" }
                    textarea name="parameters" rows="4" spellcheck="false" { "\n" (visit.clean(draft.parameters)) }
                }
                label { "Language"
                    select name="language" {
                        @for (name, shown) in [("", "detected"), ("javascript", "JavaScript"), ("typescript", "TypeScript")] {
                            option value=(name) selected[name == draft.language] { (shown) }
                        }
                    }
                }
            }
            div.buttons {
                @if visit.may_run { button name="action" value="run" { "Run" } }
                @if let Some(id) = draft.replays {
                    button.quiet formaction={ "/ui/runs/" (id) "/replay" } { "Replay with recorded answers" }
                }
                @if !visit.may_run { span.dim { "Scripts cannot be run here: " code { "http.uiRuns" } " is off." } }
            }
        }
    }
}

/// Creates the field of a script, and the list of what is wrong with it.
pub fn text_area(script: &str, label: &str) -> Markup {
    let rows = script.lines().count().clamp(6, 30) + 1;
    html! {
        label for="script-text" { (label) }
        p.dim #script-help { "Tab indents; press Escape first to leave the field with Tab." }
        div.editor {
            textarea #script-text name="script" rows=(rows) spellcheck="false" autocapitalize="off" autocomplete="off" wrap="off"
                aria-describedby="script-help diagnostics" required { "\n" (script) }
        }
        div #diagnostics.diagnostics role="status" aria-live="polite" {}
    }
}

/// `GET /ui/script`
pub fn new_script(visit: &Visit) -> Response {
    let draft = Draft { script: "", parameters: "", language: "", is_sync: false, replays: None };
    page(visit, "New script", &editor(visit, &draft))
}

/// `POST /ui/script`: runs a script, as a client would.
pub async fn run(visit: &Visit) -> Response {
    if !visit.may_run {
        let text = "Scripts cannot be run here: 'http.uiRuns' is off.";
        return problem(Some(visit), StatusCode::FORBIDDEN, text);
    }
    let form = &visit.form;
    let draft = Draft {
        script: form.get("script").unwrap_or_default(),
        parameters: form.get("parameters").unwrap_or_default(),
        language: form.get("language").unwrap_or_default(),
        is_sync: form.get("sync").is_some(),
        replays: None,
    };
    let refuse = |text: &str| {
        let content = html! { p.alert role="alert" { (visit.clean(text)) } (editor(visit, &draft)) };
        page_with(visit, StatusCode::BAD_REQUEST, "New script", &content)
    };
    if draft.script.trim().is_empty() {
        return refuse("The script is empty.");
    }
    let context = match draft.parameters.trim() {
        "" => None,
        text => match json::parse(text) {
            Ok(Value::Object(members)) => Some(Value::Object(members).to_string()),
            Ok(_) => return refuse("The parameters must be a JSON object."),
            Err(error) => return refuse(&format!("The parameters are not JSON: {error}")),
        },
    };
    let config = visit.hub.config();
    let (dialect, policy) = match draft.is_sync {
        true => (Dialect::Sync, code_execution_policy(&config.policy, config.code_execution)),
        false => (Dialect::Async, config.policy.clone()),
    };
    let request = ExecuteRequest {
        language: language(draft.language),
        context: context.or_else(|| draft.is_sync.then(|| "{}".to_owned())),
        dialect,
        ..ExecuteRequest::new(draft.script, policy)
    };
    let (cancel, _guard) = cancel_on_drop();
    let finished = visit.hub.execute(request, None, cancel).await;
    if let Some(history) = visit.hub.history() {
        history.flush().await;
        if matches!(history.store().get(finished.id.as_str()).await, Ok(Some(_))) {
            return see_other(&format!("/ui/runs/{}", finished.id.as_str()));
        }
    }
    // It is not recorded, so this is all that is known of it.
    let outcome = visit.hub.secrets().redactor().redact_json(&finished.to_json()).into_owned();
    let outcome = json::parse(&outcome).unwrap_or(Value::String(outcome));
    let content = html! {
        p.lead { (status(finished.outcome.status().as_str())) " The run is not recorded." }
        @if outcome["error"].is_null() { (value(&outcome["result"])) } @else { (failure(&outcome["error"])) }
        @if !outcome["warnings"].is_null() { h2 { "Warnings" } (value(&outcome["warnings"])) }
        @if !outcome["logs"].is_null() { h2 { "Console" } (value(&outcome["logs"])) }
        h2 { "Edit and run again" }
        (editor(visit, &draft))
    };
    page(visit, "Run", &content)
}

fn language(name: &str) -> Option<Language> {
    match name {
        "javascript" => Some(Language::JavaScript),
        "typescript" => Some(Language::TypeScript),
        _ => None,
    }
}

/// `POST /ui/check`: what is wrong with a script, as JSON.
pub async fn check(visit: &Visit) -> Response {
    let form = &visit.form;
    let script = form.get("script").unwrap_or_default().to_owned();
    let (language, is_sync) = (language(form.get("language").unwrap_or_default()), form.get("sync").is_some());
    let config = visit.hub.config();
    let (dialect, policy) = match is_sync {
        true => (Dialect::Sync, code_execution_policy(&config.policy, config.code_execution)),
        false => (Dialect::Async, config.policy.clone()),
    };
    // Parsing takes more of the native stack than this thread has.
    let checking = move || {
        let options = CompileOptions { language, linker: Linker::new(dialect), ..CompileOptions::for_policy(&policy) };
        let diagnostics = match agentscript::compile(&script, &options) {
            Ok(_) => Vec::new(),
            Err(error) => error.diagnostics,
        };
        let one = |diagnostic: &agentscript::Diagnostic| {
            let location = diagnostic.location(&script);
            json!({
                "line": location.line,
                "column": location.column,
                "message": diagnostic.message,
                "hint": diagnostic.hint,
            })
        };
        Value::from(diagnostics.iter().map(one).collect::<Vec<_>>())
    };
    let (cancel, _guard) = cancel_on_drop();
    match visit.hub.stateless().blocking(cancel, checking).await {
        Ok(diagnostics) => {
            let diagnostics = json!({"diagnostics": diagnostics}).to_string();
            response(StatusCode::OK, "application/json", visit.clean(&diagnostics))
        }
        Err(refusal) => problem(Some(visit), StatusCode::SERVICE_UNAVAILABLE, &refusal.to_string()),
    }
}
