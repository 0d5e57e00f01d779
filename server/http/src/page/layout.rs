//! The common parts of all pages: head, navigation, assets, small parts.

use super::{Visit, response};
use axum::http::StatusCode;
use axum::response::Response;
use codecall_hub::hub::format_time;
use maud::{DOCTYPE, Markup, html};
use serde_json::Value;

/// The kind of a page.
const HTML: &str = "text/html; charset=utf-8";

/// The pages of the navigation.
const PAGES: [(&str, &str); 9] = [
    ("runs", "Runs"),
    ("charts", "Charts"),
    ("approvals", "Approvals"),
    ("script", "New script"),
    ("tools", "Tools"),
    ("script-tools", "Script tools"),
    ("servers", "Servers"),
    ("quarantine", "Quarantine"),
    ("secrets", "Secrets"),
];

/// Returns the kind and the text of a file that pages load.
pub fn asset(path: &str) -> Option<(&'static str, &'static str)> {
    match path {
        "page.css" => Some(("text/css; charset=utf-8", include_str!("page.css"))),
        "page.js" => Some(("text/javascript; charset=utf-8", include_str!("page.js"))),
        "icon.svg" => Some(("image/svg+xml", include_str!("icon.svg"))),
        _ => None,
    }
}

/// Creates a page of the navigation.
pub fn page(visit: &Visit, title: &str, content: &Markup) -> Response {
    page_with(visit, StatusCode::OK, title, content)
}

/// Does the same with a status.
pub fn page_with(visit: &Visit, status: StatusCode, title: &str, content: &Markup) -> Response {
    let waiting = visit.hub.catalogue().snapshot().pending().len();
    let current = match visit.section.as_str() {
        "tool" => "tools",
        "script-tool" => "script-tools",
        "server" => "servers",
        section => section,
    };
    let head = html! {
        header {
            a.skip href="#content" { "Skip to the content" }
            a.brand href="/ui/runs" { "CodeCall" }
            nav aria-label="Pages" {
                @for (path, name) in PAGES {
                    @if is_shown(visit, path) {
                        a href={ "/ui/" (path) } aria-current=[(path == current).then_some("page")] {
                            (name)
                            @let count = match path { "quarantine" => waiting, "approvals" => visit.waiting, _ => 0 };
                            @if count > 0 { " " span.count { (count) } span.hidden { " waiting" } }
                        }
                    }
                }
            }
            form method="post" action="/ui/logout" { (csrf(visit)) button.quiet { "Log out" } }
        }
    };
    whole(status, title, &head, content)
}

/// Creates a page without navigation.
pub fn bare(status: StatusCode, title: &str, content: &Markup) -> Response {
    let head = html! { header { span.brand { "CodeCall" } } };
    whole(status, title, &head, content)
}

/// Whether a page of the navigation has something to show with this configuration.
fn is_shown(visit: &Visit, path: &str) -> bool {
    match path {
        "quarantine" => visit.hub.catalogue().watch().is_some(),
        "script-tools" => visit.hub.script_tools().is_some(),
        _ => true,
    }
}

fn whole(status: StatusCode, title: &str, head: &Markup, content: &Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – CodeCall" }
                link rel="icon" href="/ui/icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="/ui/page.css";
                script src="/ui/page.js" defer {}
            }
            body {
                (head)
                main #content {
                    h1 { (title) }
                    (content)
                }
            }
        }
    };
    response(status, HTML, page.into_string())
}

/// Creates a page that says what is wrong.
pub fn problem(visit: Option<&Visit>, status: StatusCode, text: &str) -> Response {
    let content = html! { p.alert role="alert" { (text) } p { a href="/ui/" { "Back to the runs" } } };
    match visit {
        Some(visit) => page_with(visit, status, "This did not work", &content),
        None => bare(status, "This did not work", &content),
    }
}

/// Creates the page for what does not exist.
pub fn not_found(visit: &Visit) -> Response {
    problem(Some(visit), StatusCode::NOT_FOUND, "There is nothing at this address.")
}

/// Creates the field by which a form shows that it is one of the page.
pub fn csrf(visit: &Visit) -> Markup {
    csrf_of(&visit.login.csrf)
}

/// Does the same with the token of a login.
pub fn csrf_of(token: &str) -> Markup {
    html! { input type="hidden" name="csrf" value=(token); }
}

/// Writes a time for people and for programs.
pub fn time(ms: i64) -> Markup {
    let text = format_time(ms);
    html! { time datetime={ (text.replace(' ', "T")) "Z" } { (text) } }
}

/// Writes microseconds as a duration that is easy to compare.
pub fn duration(us: i64) -> String {
    match us {
        ..1_000 => format!("{us} µs"),
        1_000..10_000 => format!("{:.1} ms", us as f64 / 1e3),
        10_000..1_000_000 => format!("{} ms", us / 1_000),
        1_000_000..60_000_000 => format!("{:.1} s", us as f64 / 1e6),
        60_000_000.. => format!("{} min {} s", us / 60_000_000, us / 1_000_000 % 60),
    }
}

/// Writes a number with spaces between groups of three digits.
pub fn number(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    if number < 0 { format!("−{text}") } else { text }
}

/// Writes a status: by a word, and by a colour.
pub fn status(status: &str) -> Markup {
    html! { span class=(if status == "ok" { "status ok" } else { "status failed" }) { (status) } }
}

/// Writes a value: a text as it is, anything else as indented JSON.
pub fn value(value: &Value) -> Markup {
    let text = match value {
        Value::String(text) => text.clone(),
        value => serde_json::to_string_pretty(value).unwrap_or_default(),
    };
    // Who uses a keyboard can scroll it.
    html! { pre tabindex="0" { code { (text) } } }
}

/// Writes the lines of a unified diff.
pub fn diff(lines: &[String]) -> Markup {
    html! {
        pre.diff tabindex="0" {
            @for line in lines {
                span class=(match line.as_bytes().first() { Some(b'+') => "added", Some(b'-') => "removed", Some(b'@') => "hunk", _ => "same" }) {
                    (line) "\n"
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(
            [7, 1_234, 12_345, 1_234_567, 61_000_000].map(duration),
            ["7 µs", "1.2 ms", "12 ms", "1.2 s", "1 min 1 s"]
        );
        assert_eq!([0, 999, 1_000, -1_234_567].map(number), ["0", "999", "1\u{202f}000", "−1\u{202f}234\u{202f}567"]);
    }

    #[test]
    fn text_of_others_is_text() {
        let shown = value(&Value::String("<img src=x onerror=alert(1)>".into())).into_string();
        assert!(shown.contains("&lt;img src=x onerror=alert(1)&gt;") && !shown.contains("<img"), "{shown}");
    }
}
