//! What stops the server from starting or serving. Failures of tools and scripts are results, not
//! errors of this type.

use crate::text::{cut, nearest};

/// Longest key or place of a wrong value in a message, in bytes.
const LONGEST_SHOWN: usize = 200;

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
/// name for an unknown key.
#[must_use]
pub fn mended(message: &str) -> String {
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
    let known: Vec<&str> = quoted.filter(|name| !name.is_empty()).collect();
    unknown_key(unknown, &known)
}

/// A key that does not exist, with the nearest one that does.
#[must_use]
pub fn unknown_key(unknown: &str, known: &[&str]) -> String {
    match nearest(unknown, known.iter().copied(), 1).first() {
        Some(near) => format!("unknown key '{unknown}'; did you mean '{near}'?"),
        None => format!("unknown key '{}'; known are {}", cut(unknown, LONGEST_SHOWN), known.join(", ")),
    }
}

/// What is wrong with a value, and where; an unknown key tells its place itself.
#[must_use]
pub fn placed(path: &str, problem: &str) -> String {
    if path == "." || problem.starts_with("unknown key") {
        problem.to_owned()
    } else {
        format!("'{}': {problem}", cut(path, LONGEST_SHOWN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_hold_no_more_than_a_piece_of_a_key() {
        let key = "k".repeat(100_000);
        assert!(mended(&format!("unknown field `{key}`, expected `a` or `b`")).len() < 500);
        assert!(placed(&key, "wrong").len() < 500);
    }
}
