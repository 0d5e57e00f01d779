//! `interaction`: what tools may ask the client that has the run.

use super::duration::Milliseconds;
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// Questions that tools may ask the client that has the run: input of a person, messages of its model, its roots.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct InteractionConfig {
    /// `false`: no client is asked. A tool that asks fails with `INPUT_REQUIRED`.
    pub enabled: bool,
    /// How long a call, and a run, may wait for answers altogether. The other limits of time leave this out.
    #[serde(rename = "maxWaitMs", with = "Milliseconds")]
    pub max_wait: Duration,
    /// When a request of a client that knows tasks is answered with a task, which it asks for the result later. Shorter
    /// requests are answered with their results.
    #[serde(rename = "taskAfterMs", with = "Milliseconds")]
    pub task_after: Duration,
    /// How many questions one call may ask.
    #[schemars(range(min = 1, max = 1_000))]
    pub max_questions: usize,
    /// Longest question in bytes of JSON.
    #[schemars(range(min = 1024))]
    pub max_question_bytes: usize,
}

impl Default for InteractionConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            max_wait: Duration::from_secs(600),
            task_after: Duration::from_secs(10),
            max_questions: 10,
            max_question_bytes: 256 * 1024,
        }
    }
}
