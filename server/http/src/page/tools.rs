//! Tools: found with the index that agents use, shown with their schema, and called through the pipeline.

use super::form::{fields, input};
use super::layout::{csrf, page, page_with, problem, status, value};
use super::query::address;
use super::{Visit, not_found};
use crate::cancel_on_drop;
use axum::http::StatusCode;
use axum::response::Response;
use codecall_hub::meta::{self, AnswerContent};
use codecall_tools::catalogue::Entry;
use codecall_tools::typescript;
use maud::{Markup, html};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Number of tools on a page.
const PAGE: usize = 100;
/// Number of tools that are found.
const FOUND: usize = 50;

/// `GET /ui/tools`
pub async fn list(visit: &Visit) -> Response {
    let query = visit.query.filled("q");
    let app = visit.query.filled("app");
    let skipped = visit.query.filled("skip").and_then(|text| text.parse::<usize>().ok()).unwrap_or_default();
    let snapshot = visit.hub.catalogue().snapshot();
    let mut warnings = Vec::new();
    let mut more = None;
    let rows: Vec<(String, String, Option<f64>)> = match query {
        Some(query) => {
            let mut arguments = json!({"query": query, "topK": FOUND});
            if let Some(app) = app {
                arguments["filter"] = json!({"appIds": [app]});
            }
            let answer = meta::call(&visit.hub, "codecall_search", arguments, None, CancellationToken::new()).await;
            let answer = match answer.map(|answer| answer.content) {
                Some(AnswerContent::Structured(answer)) => answer,
                Some(AnswerContent::Refusal(text)) => json!({"warnings": [text]}),
                None => json!({"warnings": ["The configuration disables the search."]}),
            };
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            warnings.extend(answer["warnings"].as_array().into_iter().flatten().map(text));
            let tools = answer["tools"].as_array().into_iter().flatten();
            tools.map(|tool| (text(&tool["name"]), text(&tool["description"]), tool["score"].as_f64())).collect()
        }
        None => {
            let rows = snapshot.rows().iter().filter(|entry| app.is_none_or(|app| entry.definition.app == app));
            let mut rows = rows.skip(skipped);
            let first = rows.by_ref().take(PAGE);
            let first = first.map(|entry| (entry.name.clone(), entry.definition.description.clone(), None)).collect();
            more = rows.next().map(|_| (skipped + PAGE).to_string());
            first
        }
    };
    let pairs = |skip: &str| {
        let pairs = [("app", app.unwrap_or_default()), ("skip", skip)].map(|(name, text)| (name, text.to_owned()));
        let pairs: Vec<_> = pairs.into_iter().filter(|(_, text)| !text.is_empty()).collect();
        address("/ui/tools", pairs.iter().map(|(name, text)| (*name, text.as_str())))
    };
    let apps: Vec<&str> = snapshot.apps().collect();
    let content = html! {
        form.filters method="get" action="/ui/tools" role="search" aria-label="Find tools" {
            label { "The work of the tool" input name="q" type="search" value=(query.unwrap_or_default()) placeholder="list unpaid invoices"; }
            label { "App" select name="app" {
                option value="" { "any" }
                @for known in &apps { option selected[Some(*known) == app] { (known) } }
            } }
            button { "Find" }
        }
        @for warning in &warnings { p.alert { (warning) } }
        p.dim role="status" { @if query.is_some() { (rows.len()) " tools found" } @else { (snapshot.rows().len()) " tools" } ", as agents see them." }
        table.list.stacked.tools {
            caption.hidden { "Tools" }
            thead { tr { th scope="col" { "Name" } th scope="col" { "Description" } @if query.is_some() { th.right scope="col" { "Score" } } } }
            tbody { @for (name, description, score) in &rows { tr {
                td { a href=(address("/ui/tool", [("name", name.as_str())])) { (name) } }
                td.title { (description.lines().next().unwrap_or_default()) }
                @if query.is_some() { td.right { @if let Some(score) = score { (format!("{score:.2}")) } } }
            } } }
        }
        nav.pages aria-label="Pages of tools" {
            @if skipped > 0 { a href=(pairs(&skipped.saturating_sub(PAGE).to_string())) { "Previous" } }
            @if let Some(more) = &more { a rel="next" href=(pairs(more)) { "Next" } }
        }
    };
    page(visit, "Tools", &content)
}

/// `GET /ui/tool?name=…`, and what a call of it has given.
pub async fn show(visit: &Visit, called: Option<(StatusCode, Markup)>) -> Response {
    let snapshot = visit.hub.catalogue().snapshot();
    let sent = if called.is_some() { &visit.form } else { &visit.query };
    let Some(entry) = sent.get("name").and_then(|name| snapshot.lookup(name)) else { return not_found(visit) };
    let Entry { name, definition, .. } = &**entry;
    let seen = visit.hub.pipeline().result_shapes().of(definition);
    let signature = typescript::signature(definition, seen.as_ref());
    let notes = [
        ("readOnlyHint", "only reads"),
        ("destructiveHint", "may destroy"),
        ("idempotentHint", "may be repeated"),
        ("openWorldHint", "reaches others"),
    ];
    let notes: Vec<&str> = notes
        .into_iter()
        .filter(|(key, _)| definition.annotations.get(*key) == Some(&true.into()))
        .map(|(_, note)| note)
        .collect();
    let typed = visit.form.without_secrets(&visit.hub.secrets().redactor());
    let (code, result) = called.map_or((StatusCode::OK, None), |(code, result)| (code, Some(result)));
    let content = html! {
        p.lead { "App " code { (definition.app) } ", " (definition.source) @for note in notes { ", " (note) } }
        p.text { (definition.description) }
        @if let Some(result) = result { section #result aria-labelledby="result-title" { h2 #result-title { "Result" } (result) } }
        @if visit.may_run {
            section aria-labelledby="call" {
                h2 #call { "Call" }
                form.call method="post" action="/ui/tool" {
                    (csrf(visit))
                    input type="hidden" name="name" value=(name);
                    (fields(&definition.input_schema, &typed))
                    details { summary { "Input as JSON instead" }
                        label for="json" { "A JSON object; what is above is then not used" }
                        textarea #json name="json" rows="5" spellcheck="false" { "\n" (typed.get("json").unwrap_or_default()) }
                    }
                    div.buttons { button { "Call" } }
                }
            }
        }
        section { h2 { "For scripts" } pre tabindex="0" { code { (signature) } } }
        section {
            h2 { "Schemas" }
            details { summary { "Input" } (value(&definition.input_schema)) }
            @if let Some(schema) = &definition.output_schema { details { summary { "Result" } (value(schema)) } }
            @if let Some(seen) = &seen {
                details { summary { "Results that were seen: " (seen.results) } pre tabindex="0" { code { (seen.shape.to_type(typescript::MAX_SEEN_BYTES)) } } }
            }
        }
        p { a href=(address("/ui/runs", [("tool", name.as_str())])) { "Runs that have called it" } }
    };
    page_with(visit, code, name, &content)
}

/// `POST /ui/tool`: calls a tool, as `codecall_invoke` does.
pub async fn call(visit: &Visit) -> Response {
    if !visit.may_run {
        return problem(Some(visit), StatusCode::FORBIDDEN, "Tools cannot be called here: 'http.uiRuns' is off.");
    }
    let name = visit.form.get("name").unwrap_or_default();
    let snapshot = visit.hub.catalogue().snapshot();
    let Some(entry) = snapshot.lookup(name) else { return not_found(visit) };
    let input = match input(&entry.definition.input_schema, &visit.form) {
        Ok(input) => input,
        Err(wrong) => {
            let result = html! { p.alert role="alert" { (visit.clean(&wrong)) } };
            return show(visit, Some((StatusCode::BAD_REQUEST, result))).await;
        }
    };
    let (cancel, _guard) = cancel_on_drop();
    let arguments = json!({"tool": entry.name, "input": input});
    let answer = meta::call(&visit.hub, "codecall_invoke", arguments, None, cancel).await;
    let result = match answer {
        None => html! {
            p.alert role="alert" { "Tools cannot be called without a script: " code { "directCalls.enabled" } " is off. A script can call it:" }
            (value(&Value::String(format!("return await callTool({}, {input})", json!(entry.name)))))
        },
        Some(answer) => match answer.content {
            AnswerContent::Refusal(text) => html! { p.alert role="alert" { (text) } },
            AnswerContent::Structured(answer) => html! {
                p { (status(answer["status"].as_str().unwrap_or_default())) }
                @if answer["error"].is_null() { (value(&answer["result"])) } @else { (value(&answer["error"])) }
                @if answer["error"]["code"] == "APPROVAL_REQUIRED" { p { a href="/ui/approvals" { "Decide about this call" } } }
                @if answer["truncated"]["bytes"].is_number() { p.dim { "The result was cut; it has " (answer["truncated"]["bytes"]) " bytes." } }
            },
        },
    };
    show(visit, Some((StatusCode::OK, result))).await
}
