//! Figures of the history as charts: runs, failures, durations, and what models did not have to read.

use super::Visit;
use super::bars::{Layout, Series, chart};
use super::layout::{duration, number, page, problem};
use axum::http::StatusCode;
use axum::response::Response;
use codecall_base::json;
use codecall_base::tool::ToolDefinition;
use codecall_hub::hub::{Hub, format_time};
use codecall_hub::meta;
use codecall_store::{RunFigures, now_ms};
use maud::{Markup, html};
use serde_json::json;

/// The range that is shown: its name, the length of a span in milliseconds, and the number of spans.
const RANGES: [(&str, &str, i64, usize); 4] = [
    ("hour", "Hour", 120_000, 30),
    ("day", "Day", 3_600_000, 24),
    ("week", "Week", 6 * 3_600_000, 28),
    ("month", "30 days", 86_400_000, 30),
];
/// Bytes of a token: the mean of English and JSON with the tokenizers of today.
const BYTES_PER_TOKEN: i64 = 4;

/// `GET /ui/charts`
pub async fn show(visit: &Visit) -> Response {
    let wanted = visit.query.filled("range").unwrap_or("day");
    let range = RANGES.iter().find(|range| range.0 == wanted).unwrap_or(&RANGES[1]);
    let (name, _, span_ms, count) = *range;
    let Some(runs) = visit.runs() else {
        return page(visit, "Charts", &html! { p.alert { "Runs are not recorded, so there are no figures." } });
    };
    // Spans begin at whole hours or days, so that they stay the same when the page is loaded again.
    let end = (now_ms() / span_ms + 1) * span_ms;
    let since = end - span_ms * count as i64;
    let figures = match runs.figures(since, span_ms).await {
        Ok(figures) => figures,
        Err(error) => return problem(Some(visit), StatusCode::SERVICE_UNAVAILABLE, &error.0),
    };
    let mut spans = vec![RunFigures::default(); count];
    for figure in figures {
        if let Some(span) = usize::try_from(figure.span).ok().and_then(|at| spans.get_mut(at)) {
            *span = figure;
        }
    }
    let labels: Vec<String> = (0..count).map(|at| label(since + span_ms * at as i64, span_ms)).collect();
    let of = |value: &dyn Fn(&RunFigures) -> i64| -> Vec<i64> { spans.iter().map(value).collect() };
    let list_bytes = list_bytes(&visit.hub);
    let (results, lists) = (
        of(&|span| span.saved_bytes / BYTES_PER_TOKEN),
        of(&|span| span.scripts.saturating_mul(list_bytes) / BYTES_PER_TOKEN),
    );
    let sum = |values: &[i64]| values.iter().sum::<i64>();
    let (all, failed) = (of(&|span| span.runs), of(&|span| span.failed));
    let content = html! {
        nav.pages aria-label="Range" {
            @for (key, shown, ..) in RANGES {
                a href={ "/ui/charts?range=" (key) } aria-current=[(key == name).then_some("true")] { (shown) }
            }
        }
        dl.totals {
            (total("Runs", sum(&all)))
            (total("Failed", sum(&failed)))
            (total("Tokens not read: results", sum(&results)))
            (total("Tokens not read: lists of tools", sum(&lists)))
        }
        div.charts {
            (chart("Runs", &labels, &[
                Series { name: "ok", class: "ok", values: of(&|span| span.runs - span.failed) },
                Series { name: "failed", class: "failed", values: failed },
            ], Layout::Stacked, number))
            (chart("Duration", &labels, &[
                Series { name: "median", class: "first", values: of(&|span| span.median_us) },
                Series { name: "95 %", class: "second", values: of(&|span| span.p95_us) },
            ], Layout::Grouped, duration))
            (chart("Tokens that models did not read", &labels, &[
                Series { name: "results", class: "first", values: results },
                Series { name: "lists of tools", class: "second", values: lists },
            ], Layout::Stacked, tokens))
        }
        section.text {
            h2 { "The counted data" }
            p { "Results: the bytes of all answers that scripts have got from tools. Their own results and consoles are subtracted, down to 0 for a run." }
            p {
                "Lists of tools: for each script that a client has run, one list of the definitions of all tools (name, description, schema of the input) as they are now, \
                 without that of the meta-tools: now " (number(list_bytes)) " bytes. With the tools in its list, a model would have read that at least once for each run."
            }
            p { (BYTES_PER_TOKEN) " bytes count as a token." }
        }
    };
    page(visit, "Charts", &content)
}

fn total(name: &str, value: i64) -> Markup {
    html! { div { dt { (name) } dd { (number(value)) } } }
}

fn tokens(count: i64) -> String {
    match count {
        ..10_000 => number(count),
        10_000..1_000_000 => format!("{} k", count / 1_000),
        1_000_000.. => format!("{:.1} M", count as f64 / 1e6),
    }
}

/// Names a span by its beginning.
fn label(ms: i64, span_ms: i64) -> String {
    let text = format_time(ms);
    let part = if span_ms >= 86_400_000 { 5..10 } else { 5..16 };
    let part = if span_ms < 3_600_000 { 11..16 } else { part };
    text.get(part).unwrap_or_default().to_owned()
}

/// Returns by how many bytes the list of all tools is longer than that of the meta-tools.
fn list_bytes(hub: &Hub) -> i64 {
    let snapshot = hub.catalogue().snapshot();
    let own = |definition: &ToolDefinition| {
        let list = json!({"name": definition.full_name(), "description": definition.description});
        json::size(&list) + json::size(&definition.input_schema)
    };
    let all: usize = snapshot.rows().iter().map(|entry| own(&entry.definition)).sum();
    let meta = meta::ALL.into_iter().filter(|tool| tool.is_enabled(hub.config()));
    let meta: usize =
        meta.map(|tool| tool.id().len() + tool.description().len() + json::size(&tool.input_schema())).sum();
    i64::try_from(all.saturating_sub(meta)).unwrap_or(i64::MAX)
}
