//! Pairs of names and values, of addresses and forms; the filter of runs in them.

use codecall_base::redact::Redactor;
use codecall_base::text::nearest;
use codecall_hub::hub::parse_time;
use codecall_store::{RUN_KINDS, RUN_STATUSES, RunFilter};
use url::form_urlencoded;

/// Pairs of names and values, in order.
#[derive(Clone, Debug, Default)]
pub struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// Parses the query of an address, or a form. Line breaks in values become `\n`, as they were typed.
    pub fn parse(text: &str) -> Self {
        Self(
            form_urlencoded::parse(text.as_bytes())
                .map(|(name, value)| (name.into(), value.replace("\r\n", "\n")))
                .collect(),
        )
    }

    /// Returns the first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns them without secrets, to show them again.
    pub fn without_secrets(&self, secrets: &Redactor) -> Self {
        Self(self.0.iter().map(|(name, value)| (name.clone(), secrets.redact_text(value).into_owned())).collect())
    }

    /// Returns the first value of a name that is not blank, without spaces around it.
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).map(str::trim).filter(|value| !value.is_empty())
    }
}

/// Returns an address with a query.
pub fn address<'a>(path: &str, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// The names of the filters in an address.
pub const FILTERS: [&str; 7] = ["status", "kind", "tool", "client", "text", "since", "until"];

/// Returns the filter of an address.
///
/// # Errors
/// The problem.
pub fn filter(query: &Pairs, limit: usize) -> Result<RunFilter, String> {
    let text = |name: &str| query.filled(name).map(str::to_owned);
    let one_of = |name: &str, known: &[&str]| match query.filled(name) {
        Some(value) if !known.contains(&value) => {
            let near = nearest(value, known.iter().copied(), 1);
            let near = near.first().map(|near| format!("; did you mean “{near}”?"));
            let near = near.unwrap_or_else(|| ".".to_owned());
            Err(format!("“{value}” is no {name} of runs{near} There are {}", known.join(", ")))
        }
        value => Ok(value.map(str::to_owned)),
    };
    let time = |name: &str| {
        let time = |text: &str| {
            parse_time(text).ok_or_else(|| {
                format!("“{text}” is no time; write 30m, 2h, 7d, 2026-11-23, or 2026-11-23T08:00:00Z (UTC)")
            })
        };
        query.filled(name).map(time).transpose()
    };
    let position = |name: &str| query.filled(name).and_then(|text| text.parse().ok());
    Ok(RunFilter {
        status: one_of("status", &RUN_STATUSES)?,
        tool: text("tool"),
        kind: one_of("kind", &RUN_KINDS)?,
        client: text("client"),
        text: text("text"),
        since_ms: time("since")?,
        until_ms: time("until")?,
        after: position("after"),
        before: position("before"),
        limit,
    })
}

/// Returns the address of a page with the filters of another one, and one more pair.
pub fn with_filters(path: &str, query: &Pairs, more: Option<(&str, &str)>) -> String {
    let filters = FILTERS.into_iter().filter_map(|name| Some((name, query.filled(name)?)));
    address(path, filters.chain(more))
}
