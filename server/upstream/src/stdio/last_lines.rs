//! The last lines that the child processes of a server have written to stderr, for operators.

use codecall_base::redact::{Redactor, SecretRegistry};
use codecall_base::text::truncate;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many lines are kept.
const MAX_LINES: usize = 40;
/// How much of a line is shown, in bytes.
const MAX_SHOWN_BYTES: usize = 500;

/// The last lines, as they are.
#[derive(Default)]
pub struct LastLines(Mutex<VecDeque<String>>);

impl LastLines {
    /// Adds a line.
    pub fn push(&self, line: String) {
        let mut lines = self.lines();
        lines.push_back(line);
        if lines.len() > MAX_LINES {
            lines.pop_front();
        }
    }

    /// Returns the lines without secrets, also those that were added since.
    pub fn without_secrets(&self, environment: &Redactor, secrets: &SecretRegistry) -> Vec<String> {
        let (mut lines, redactor) = (self.lines().clone(), secrets.redactor());
        for line in &mut lines {
            redactor.redact_string(line);
            environment.redact_string(line);
            // Only now, because a part of a secret would not be found.
            line.truncate(truncate(line, MAX_SHOWN_BYTES).len());
        }
        lines.into()
    }

    fn lines(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
