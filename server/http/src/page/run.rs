//! One run: its calls as a timeline beside its script, what it has used, and its replay.

use super::edit::{Draft, editor};
use super::layout::{duration, number, page, problem, status, time, value};
use super::{Visit, not_found};
use agentscript::stateless::{Played, Step};
use axum::http::StatusCode;
use axum::response::Response;
use codecall_base::json;
use codecall_hub::stateless::{Replay, compact};
use codecall_store::RunSummary;
use maud::{Markup, html};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The width of a timeline, in units of its drawing.
const WIDTH: f64 = 1_000.0;

/// A recorded run, without secrets.
pub struct Recorded {
    pub summary: RunSummary,
    pub detail: Value,
}

impl Visit {
    /// Returns a run of the history, without secrets.
    ///
    /// # Errors
    /// There is none: the response.
    pub async fn recorded(&self, id: &str) -> Result<Recorded, Response> {
        let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(runs) = self.runs().filter(|_| is_id) else { return Err(not_found(self)) };
        let unavailable = |text: &str| problem(Some(self), StatusCode::SERVICE_UNAVAILABLE, text);
        match runs.get(&id.to_lowercase()).await {
            Ok(Some((mut summary, detail))) => {
                // Secrets may have been added since it was recorded.
                let detail = self.hub.secrets().redactor().redact_json(&detail).into_owned();
                let detail = json::parse(&detail).map_err(|_| unavailable("The record of the run is damaged."))?;
                summary.title = self.clean(&summary.title);
                summary.client = summary.client.map(|client| self.clean(&client));
                summary.code = summary.code.map(|code| self.clean(&code));
                Ok(Recorded { summary, detail })
            }
            Ok(None) => {
                let text = "There is no such run: it was not recorded, or was deleted since.";
                Err(problem(Some(self), StatusCode::NOT_FOUND, text))
            }
            Err(error) => Err(unavailable(&error.0)),
        }
    }
}

/// `GET /ui/runs/ID`
pub async fn show(visit: &Visit, id: &str) -> Response {
    let Recorded { summary, detail } = match visit.recorded(id).await {
        Ok(recorded) => recorded,
        Err(response) => return response,
    };
    let script = detail["script"].as_str();
    let error = Some(&detail["error"]).filter(|error| !error.is_null());
    let content = html! {
        p.lead {
            (status(&summary.status)) " "
            @if let Some(code) = &summary.code { code { (code) } " " }
            (summary.kind) @if let Some(client) = &summary.client { ", by " (client) }
            ", " (time(summary.started_ms)) " UTC"
            @if let Some(parent) = &summary.parent { ", called by the run " a href={ "/ui/runs/" (parent) } { (short(parent)) } }
        }
        @if let Some(error) = error { (failure(error)) }
        div.columns {
            div {
                (timeline(&summary, &detail))
                (used(visit, &summary))
                (part("Result", &detail["result"]))
                (part("Parameters", &detail["parameters"]))
                (texts("Warnings", &detail["warnings"]))
                (texts("Console", &detail["logs"]))
            }
            @if let Some(script) = script {
                div { (source(script, error)) }
            }
        }
        @if let Some(script) = script {
            @let draft = Draft {
                script,
                parameters: &parameters(&detail),
                language: detail["language"].as_str().unwrap_or_default(),
                is_sync: summary.kind == "code_execution",
                replays: Some(&summary.id).filter(|_| detail["recording"].is_string()).map(String::as_str),
            };
            section aria-labelledby="edit" {
                h2 #edit { "Edit and run again" }
                (editor(visit, &draft))
            }
        }
    };
    page(visit, &format!("Run {}", short(&summary.id)), &content)
}

/// Returns the beginning of an id, which is enough to tell runs apart.
pub fn short(id: &str) -> &str {
    codecall_base::text::truncate(id, 12)
}

/// Returns the parameters of a run as text, if they can be sent again: those that were cut cannot.
fn parameters(detail: &Value) -> String {
    match &detail["parameters"] {
        Value::Object(members) => serde_json::to_string_pretty(members).unwrap_or_default(),
        _ => String::new(),
    }
}

fn part(name: &str, content: &Value) -> Markup {
    html! {
        @if !content.is_null() {
            section { h2 { (name) } (value(content)) }
        }
    }
}

/// Shows texts, one a line.
fn texts(name: &str, texts: &Value) -> Markup {
    let id = name.to_lowercase();
    html! {
        @if let Some(texts) = texts.as_array() {
            section aria-labelledby=(id) {
                h2 id=(id) { (name) }
                pre tabindex="0" { @for text in texts { (text.as_str().unwrap_or_default()) "\n" } }
            }
        }
    }
}

/// Says why a run has failed.
pub fn failure(error: &Value) -> Markup {
    let text = |name: &str| error[name].as_str().filter(|text| !text.is_empty());
    let location = &error["location"];
    html! {
        div.alert.failure {
            p {
                strong { (text("name").or(text("code")).unwrap_or("Error")) } ": " (text("message").unwrap_or_default())
                @if let Some(line) = location["line"].as_u64() {
                    " (" a href={ "#line-" (line) } { "line " (line) @if let Some(column) = location["column"].as_u64() { ", column " (column) } } ")"
                }
            }
            @if let Some(hint) = text("hint") { p { (hint) } }
            @if let Some(tool) = text("toolName") {
                p { "Tool: " code { (tool) } }
            }
            @if let Some(issues) = error["issues"].as_array() {
                ul { @for issue in issues { li { (issue["message"].as_str().unwrap_or_default()) } } }
            }
            details { summary { "All of the error" } (value(error)) }
        }
    }
}

/// Creates the timeline of the calls: a bar for each, so that those in parallel stand above each other.
fn timeline(summary: &RunSummary, detail: &Value) -> Markup {
    let Some(calls) = detail["calls"].as_array().filter(|calls| !calls.is_empty()) else {
        return html! { section { h2 { "Calls" } p.empty { "It has called no tool." } } };
    };
    let number_of = |call: &Value, name: &str| call[name].as_f64().unwrap_or_default().max(0.0);
    let ends = calls.iter().map(|call| number_of(call, "startMs") + number_of(call, "durationMs"));
    let total = ends.fold(summary.duration_us as f64 / 1e3, f64::max).max(0.001);
    let omitted = detail["omittedCalls"].as_u64().unwrap_or_default();
    html! {
        section aria-labelledby="calls" {
            h2 #calls { "Calls" }
            p.dim { "The bars show when each call was in progress, from 0 to " (duration((total * 1e3) as i64)) ". Open a call for its input and output." }
            ol.timeline {
                @for call in calls {
                    @let (start, took) = (number_of(call, "startMs"), number_of(call, "durationMs"));
                    @let is_ok = call["status"].as_str().is_none_or(|status| status == "ok") && call["error"].is_null();
                    li { details {
                        summary {
                            span.tool { (call["tool"].as_str().or(call["name"].as_str()).unwrap_or_default()) }
                            svg.bar viewBox={ "0 0 " (WIDTH) " 12" } preserveAspectRatio="none" role="img"
                                aria-label={ "from " (format!("{start:.1}")) " to " (format!("{:.1}", start + took)) " ms" } {
                                rect.track x="0" y="0" width=(WIDTH) height="12" {}
                                rect class=(if is_ok { "ok" } else { "failed" }) y="0" height="12"
                                    x=(format!("{:.1}", (start / total * WIDTH).min(WIDTH - 3.0)))
                                    width=(format!("{:.1}", (took / total * WIDTH).max(3.0))) {}
                            }
                            span.right { (duration((took * 1e3) as i64)) }
                            (status(call["status"].as_str().unwrap_or("ok")))
                        }
                        h3 { "Input" } (value(&call["input"]))
                        @if call["error"].is_null() {
                            @if !call["output"].is_null() { h3 { "Output" } (value(&call["output"])) }
                        } @else { h3 { "Error" } (value(&call["error"])) }
                    } }
                }
            }
            @if omitted > 0 { p.dim { (omitted) " further calls are not recorded." } }
        }
    }
}

/// Shows what the run has used of its limits.
fn used(visit: &Visit, summary: &RunSummary) -> Markup {
    let limits = &visit.hub.config().policy.limits;
    let rows = [
        ("Steps", summary.steps, limits.max_steps, ""),
        ("Peak memory", summary.peak_memory_bytes, limits.max_memory_bytes, " bytes"),
        ("Tool calls", summary.tool_calls, limits.max_tool_calls, ""),
        ("Time of the script", summary.script_us / 1_000, limits.timeout_ms, " ms"),
    ];
    let of = |limit: u64| i64::try_from(limit).ok().filter(|limit| *limit > 0 && *limit < i64::MAX / 2);
    html! {
        section aria-labelledby="used" {
            h2 #used { "Used" }
            table.used {
                tr { th scope="row" { "Duration" } td.right { (duration(summary.duration_us)) } td {} }
                @for (name, used, limit, unit) in rows {
                    tr {
                        th scope="row" { (name) }
                        td.right { (number(used)) (unit) }
                        td {
                            @if let Some(limit) = of(limit) {
                                meter min="0" max=(limit) value=(used.min(limit)) aria-label={ (name) " of its limit" } {}
                                " " span.dim { "of " (number(limit)) }
                            }
                        }
                    }
                }
                @if summary.saved_bytes > 0 {
                    tr { th scope="row" { "Not read by a model" } td.right { (number(summary.saved_bytes)) " bytes" } td {} }
                }
            }
        }
    }
}

/// Shows a script with the numbers of its lines. Those where it has failed are marked.
fn source(script: &str, error: Option<&Value>) -> Markup {
    let locations = error.into_iter().flat_map(|error| {
        let issues = error["issues"].as_array().map(Vec::as_slice).unwrap_or_default();
        std::iter::once(error).chain(issues).filter_map(|place| place["location"]["line"].as_u64())
    });
    let failed: Vec<u64> = locations.collect();
    html! {
        section aria-labelledby="script" {
            h2 #script { "Script" }
            ol.source tabindex="0" {
                @for (number, line) in (1_u64..).zip(script.split('\n')) {
                    @let is_failed = failed.contains(&number);
                    li #{ "line-" (number) } class=[is_failed.then_some("failed")] {
                        code { (line) }
                        @if is_failed { " " span.mark { "failed here" } }
                    }
                }
            }
        }
    }
}

/// `POST /ui/runs/ID/replay`: runs a script with the recorded answers; no tool is called.
pub async fn replay(visit: &Visit, id: &str) -> Response {
    let recorded = match visit.recorded(id).await {
        Ok(recorded) => recorded,
        Err(response) => return response,
    };
    let wrong = |text: &str| problem(Some(visit), StatusCode::CONFLICT, text);
    let Some(journal) = recorded.detail["recording"].as_str() else {
        return wrong("The answers of this run were not recorded, so it cannot be replayed.");
    };
    let script = visit.form.get("script").or(recorded.detail["script"].as_str()).unwrap_or_default().to_owned();
    let replay = match Replay::from_history(journal) {
        Ok(replay) => replay.with_script(&script, None),
        Err(invalid) => return wrong(&format!("The record of the run cannot be replayed: {invalid}")),
    };
    let policy = visit.hub.config().policy.clone();
    let played = replay.play(script.clone(), policy, visit.hub.stateless(), CancellationToken::new()).await;
    let (rounds, step) = match played {
        Ok(played) => played,
        Err(refusal) => return problem(Some(visit), StatusCode::SERVICE_UNAVAILABLE, &refusal.to_string()),
    };
    let draft = Draft {
        script: &script,
        parameters: &parameters(&recorded.detail),
        language: recorded.detail["language"].as_str().unwrap_or_default(),
        is_sync: recorded.summary.kind == "code_execution",
        replays: Some(&recorded.summary.id),
    };
    let content = html! {
        p { "The script has run again with the answers of " a href={ "/ui/runs/" (recorded.summary.id) } { "the run " (short(&recorded.summary.id)) } ". No tool was called." }
        (end(visit, &replay, &rounds, &step))
        section aria-labelledby="edit" { h2 #edit { "Edit and run again" } (editor(visit, &draft)) }
    };
    page(visit, &format!("Replay of {}", short(&recorded.summary.id)), &content)
}

/// Shows how a replay has ended.
fn end(visit: &Visit, replay: &Replay, rounds: &[Played], step: &Step) -> Markup {
    let clean = |json: &str| {
        let clean = visit.hub.secrets().redactor().redact_json(json).into_owned();
        json::parse(&clean).unwrap_or(Value::String(clean))
    };
    let calls = rounds.iter().map(|played| played.calls.len()).sum::<usize>();
    html! {
        @match step {
            Step::Done(done) => {
                @let outcome = done.outcome.to_json();
                @let is_same = replay.outcome.as_deref().is_some_and(|recorded| compact(recorded) == compact(&outcome));
                p.lead {
                    (status(done.outcome.status().as_str())) " "
                    @if is_same { "The outcome is as recorded." } @else { "The outcome is not as recorded." }
                    " " (calls) " calls were answered."
                }
                @let shown = clean(&outcome);
                @if shown["error"].is_null() { (part("Result", &shown["result"])) } @else { (failure(&shown["error"])) }
                (part("Warnings", &shown["warnings"]))
                (part("Console", &shown["logs"]))
            }
            Step::Calls(waiting) => {
                p.alert {
                    "The recorded answers end here. The script waits for calls that were not recorded:"
                    @for call in &waiting.new { " " code { (visit.clean(&call.tool)) } }
                }
            }
            Step::Diverged(divergence) => { p.alert { "The script does something else than the run: " (visit.clean(&divergence.message)) } }
            Step::Deadlock(failure) => { p.alert { (visit.clean(&failure.message)) } }
        }
    }
}
