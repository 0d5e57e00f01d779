//! Events of a run and of its tool calls, and the callbacks that receive them.

use crate::tool::ToolError;
use agentscript::Message;
use serde_json::Value;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

/// Identifies a run: 128 random bits, written as 32 hexadecimal digits. Log lines, audit records, notifications and
/// `_meta` contain it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunId(Arc<str>);

impl RunId {
    /// Returns a new random id.
    #[must_use]
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        // If the system has no source of randomness, the hasher's keys still make each id different.
        if getrandom::fill(&mut bytes).is_err() {
            let hash = |part: u8| RandomState::new().hash_one(part).to_le_bytes();
            bytes = [hash(0), hash(1)].as_flattened().try_into().unwrap_or_default();
        }
        Self(format!("{:032x}", u128::from_le_bytes(bytes)).into())
    }

    /// Parses an id; `None` if the text is not 32 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (text.len() == 32 && text.bytes().all(is_digit)).then(|| Self(text.into()))
    }

    /// Returns the hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An event of a run.
#[derive(Clone, Debug)]
pub enum RunEvent {
    /// A script starts. All later events of this sink belong to its run.
    Started {
        /// The id of the run.
        run: RunId,
    },
    /// A run is about to begin that outlives the process: its client finds it by this id, whatever becomes of the answer.
    Durable {
        /// The id of the run.
        run: RunId,
    },
    /// The script has sent a log message or a notification.
    Message(Message),
    /// A tool call starts.
    CallStarted {
        /// The tool's full name; for an unknown tool, the name that the caller used.
        tool: String,
        /// Sequence number of the call in this process.
        call: u64,
        /// The input, with personal data masked and secrets redacted.
        input: Arc<Value>,
    },
    /// A tool call has passed all checks, and is handed to its tool. A call that is refused, or answered by the cache, is not.
    CallReached {
        /// Sequence number of the call in this process.
        call: u64,
    },
    /// The tool has refused a call because there were too many, and the call is made again.
    CallRetried {
        /// Sequence number of the call in this process.
        call: u64,
    },
    /// A tool call has ended.
    CallEnded {
        /// The tool's full name; for an unknown tool, the name that the caller used.
        tool: String,
        /// Sequence number of the call in this process.
        call: u64,
        /// The input, with personal data masked and secrets redacted.
        input: Arc<Value>,
        /// The duration of the call.
        duration: Duration,
        /// The error of a call that failed.
        error: Option<ToolError>,
    },
    /// The upstream has sent progress or a log message about a call. Personal data is masked if masking is configured,
    /// and secrets are redacted.
    CallUpdated {
        /// The tool's full name.
        tool: String,
        /// The update of the upstream.
        update: CallUpdate,
    },
}

/// A callback that receives the events of a run or call; `None` discards them. It must return at once.
pub type EventSink = Option<Arc<dyn Fn(RunEvent) + Send + Sync>>;

/// An update of an upstream on a call before its result.
#[derive(Clone, Debug, PartialEq)]
pub enum CallUpdate {
    /// A progress notification of MCP.
    Progress {
        /// The progress so far; it only grows.
        progress: f64,
        /// The progress at the end, if the upstream knows it.
        total: Option<f64>,
        /// A description for people.
        message: Option<String>,
    },
    /// A log message.
    Log(LogMessage),
}

/// A log message of MCP.
#[derive(Clone, Debug, PartialEq)]
pub struct LogMessage {
    /// `debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert` or `emergency`.
    pub level: String,
    /// The name of the logger, as the upstream calls it.
    pub logger: Option<String>,
    /// The message: any JSON.
    pub data: Value,
}

/// A callback that receives the updates of one call. It must return at once.
#[derive(Clone, Default)]
pub struct UpdateSink(Option<Arc<dyn Fn(CallUpdate) + Send + Sync>>);

impl UpdateSink {
    /// Creates a sink that calls a function for each update.
    #[must_use]
    pub fn new(callback: impl Fn(CallUpdate) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(callback)))
    }

    /// Whether somebody receives the updates.
    #[must_use]
    pub fn is_received(&self) -> bool {
        self.0.is_some()
    }

    /// Passes an update to the callback, if there is one.
    pub fn notify(&self, update: CallUpdate) {
        if let Some(callback) = &self.0 {
            callback(update);
        }
    }
}

impl fmt::Debug for UpdateSink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "UpdateSink(…)" } else { "UpdateSink(none)" })
    }
}
