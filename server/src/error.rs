//! What stops the server from starting or serving. Failures of tools and scripts are results, not
//! errors of this type.

/// Why the server does not start or go on. The text never holds a value of the configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is wrong; every message names the key.
    #[error("{0}")]
    Config(String),
    /// An upstream could not be used.
    #[error("upstream '{app}': {message}")]
    Upstream {
        /// Its id.
        app: String,
        /// What happened.
        message: String,
    },
    /// Speaking with the client failed.
    #[error("{0}")]
    Protocol(String),
    /// A file could not be read, a pipe broke.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

/// What serde says of a wrong value, without the value (it may be a secret) and with the nearest
/// name for an unknown key. `more` are names that are valid there besides those serde knows.
#[must_use]
pub fn mended(message: &str, more: &[&str]) -> String {
    if let Some((_, expected)) = message.split_once(", expected ")
        && (message.starts_with("invalid type")
            || message.starts_with("invalid value")
            || message.starts_with("invalid length"))
    {
        return format!("wrong value, expected {expected}");
    }
    if let Some((_, expected)) =
        message.strip_prefix("unknown variant `").and_then(|rest| rest.split_once("`, expected "))
    {
        return format!("wrong value, expected {}", expected.replace('`', "'"));
    }
    let Some(rest) = message.strip_prefix("unknown field `") else {
        return message.to_owned();
    };
    let mut quoted = rest.split('`').step_by(2);
    let unknown = quoted.next().unwrap_or_default();
    let known: Vec<&str> = quoted.filter(|name| !name.is_empty()).chain(more.iter().copied()).collect();
    match nearest(unknown, known.iter().copied(), 1).first() {
        Some(near) => format!("unknown key '{unknown}'; did you mean '{near}'?"),
        None => format!("unknown key '{unknown}'; known are {}", known.join(", ")),
    }
}

/// What is wrong with a value, and where; an unknown key tells its place itself.
#[must_use]
pub fn placed(path: &str, problem: &str) -> String {
    if path == "." || problem.starts_with("unknown key") { problem.to_owned() } else { format!("'{path}': {problem}") }
}

/// The names nearest to `name` by edit distance, the nearest first, at most `most`; none that is
/// too far to be meant.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let wanted = name.to_lowercase();
    let mut found: Vec<(f64, &str)> = known
        .map(|candidate| (likeness(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness >= 0.55)
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    found.into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// How alike two names are: the own part counts more than the app, which many share.
fn likeness(wanted: &str, candidate: &str) -> f64 {
    let split = |name: &str| name.split_once([':', '.']).map(|(app, own)| (app.to_owned(), own.to_owned()));
    let (Some((wanted_app, wanted_own)), Some((app, own))) = (split(wanted), split(candidate)) else {
        let own = candidate.split_once(':').map_or(candidate, |(_, own)| own);
        return strsim::normalized_damerau_levenshtein(wanted, own);
    };
    0.3 * strsim::normalized_damerau_levenshtein(&wanted_app, &app)
        + 0.7 * strsim::normalized_damerau_levenshtein(&wanted_own, &own)
}
