//! `pool`: how many scripts run at once, and what they share.

use super::duration::Milliseconds;
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// How many scripts run at once, and the limits of each of them that no policy changes.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Pool {
    /// Threads that run long scripts. Short scripts have four times as many.
    #[schemars(range(min = 1, max = 256), extend("x-default" = "processors, at most 4"))]
    pub threads: usize,
    /// Scripts that run at the same time, beside scripts in wait for tools, timers or people. Clients share them.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_runs: usize,
    /// Scripts that have begun and wait for tools, timers or people, at least as many as `maxRuns`. A client begins no
    /// further script while it has as many that have begun as there are free places, of `maxRuns` and these together.
    #[schemars(range(min = 0, max = 1_000_000), extend("x-default" = "1000; in worker processes, `maxRuns`"))]
    pub max_waiting: Option<usize>,
    /// Scripts that wait to run. A further one is refused with `QUEUE_FULL`, or replaces one of the client that
    /// has most.
    pub max_queue: usize,
    /// How long a script waits to run before it fails with `QUEUE_TIMEOUT`.
    #[serde(rename = "queueTimeoutMs", with = "Milliseconds")]
    pub queue_timeout: Duration,
    /// How long a script may occupy a thread without a pause before it fails with `WORKER_TIMEOUT`. The
    /// time limits of a script end it long before.
    #[serde(rename = "watchdogMs", with = "Milliseconds")]
    pub watchdog: Duration,
    /// Memory in bytes that all scripts may use together. Above it the largest one of the client that uses most fails
    /// with `WORKER_MEMORY_EXCEEDED`.
    pub max_memory_bytes: u64,
    /// Unanswered tool calls of one script (`TOO_MANY_PENDING_CALLS`).
    pub max_pending_calls: usize,
    /// Log messages and notifications of one script (`MESSAGE_FLOOD`).
    pub max_messages: u64,
    /// Longest message in bytes that a script sends to the client or to a tool, or that a tool answers
    /// (`MESSAGE_TOO_LARGE`).
    pub max_message_bytes: usize,
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(2, |n| n.get().clamp(1, 4)),
            max_runs: 32,
            max_waiting: None,
            max_queue: 256,
            queue_timeout: Duration::from_secs(30),
            watchdog: Duration::from_secs(30),
            max_memory_bytes: 1024 * 1024 * 1024,
            max_pending_calls: 1_000,
            max_messages: 1_000,
            max_message_bytes: 16 * 1024 * 1024,
        }
    }
}
