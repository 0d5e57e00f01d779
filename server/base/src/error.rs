//! Errors that stop the server from starting or serving. A failure of a tool or a script is a result, not an error of
//! this type.

use crate::text::{nearest, truncate};

/// Maximum length of a key or path in a message, in bytes.
const MAX_SHOWN_BYTES: usize = 200;

/// Why the server cannot start or continue. The message never contains a value of the configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is invalid; the message names the key.
    #[error("{0}")]
    Config(String),
    /// An upstream cannot be used.
    #[error("upstream '{app}': {message}")]
    Upstream {
        /// The id of its app.
        app: String,
        /// The reason.
        message: String,
    },
    /// The communication with the client has failed.
    #[error("{0}")]
    Protocol(String),
    /// A file or a pipe cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The path of the file.
        path: String,
        /// The error of the system.
        source: std::io::Error,
    },
}

/// Removes the value from serde's message about a wrong value, because it may be a secret, and suggests the nearest key
/// for an unknown one.
#[must_use]
pub fn sanitize_serde_error(message: &str) -> String {
    if let Some((_, expected)) = message.split_once(", expected ")
        && (message.starts_with("invalid type")
            || message.starts_with("invalid value")
            || message.starts_with("invalid length"))
    {
        // serde's word for a list.
        let expected = if expected == "a sequence" { "a list, such as [\"a\", \"b\"]" } else { expected };
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

/// Returns the message for a key that does not exist, with the nearest one that does.
#[must_use]
pub fn unknown_key(unknown: &str, known: &[&str]) -> String {
    match nearest(unknown, known.iter().copied(), 1).first() {
        Some(near) => format!("unknown key '{unknown}'; did you mean '{near}'?"),
        None => format!("unknown key '{}'; known are {}", truncate(unknown, MAX_SHOWN_BYTES), known.join(", ")),
    }
}

/// Adds the path of a wrong value to a message. A message about an unknown key names the key already, so it gets the path of
/// the object with that key.
#[must_use]
pub fn with_path(path: &str, problem: &str) -> String {
    let unknown = problem.strip_prefix("unknown key '").and_then(|rest| rest.split_once('\''));
    let path = match unknown {
        Some((key, _)) => path.strip_suffix(key).map_or(path, |path| path.trim_end_matches('.')),
        None => path,
    };
    match path {
        "" | "." => problem.to_owned(),
        path => format!("'{}': {problem}", truncate(path, MAX_SHOWN_BYTES)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_object_of_an_unknown_key() {
        assert_eq!(with_path("a[1].b", "wrong value"), "'a[1].b': wrong value");
        assert_eq!(with_path(".", "wrong value"), "wrong value");
        for path in ["a[1].typo", "a[1]"] {
            assert_eq!(with_path(path, "unknown key 'typo'; …"), "'a[1]': unknown key 'typo'; …");
        }
        for path in [".", "typo"] {
            assert_eq!(with_path(path, "unknown key 'typo'; …"), "unknown key 'typo'; …");
        }
    }

    #[test]
    fn long_keys_are_truncated_in_messages() {
        let key = "k".repeat(100_000);
        assert!(sanitize_serde_error(&format!("unknown field `{key}`, expected `a` or `b`")).len() < 500);
        assert!(with_path(&key, "wrong").len() < 500);
    }
}
