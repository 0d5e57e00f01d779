//! What happens in a run and in its tool calls, as it is told to whoever watches.

use crate::tool::ToolError;
use agentscript::Message;
use serde_json::Value;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

/// Identifies a run: 128 random bits, as 32 hexadecimal digits. It stands in log lines, audit records, notifications
/// and `_meta`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunId(Arc<str>);

impl RunId {
    /// A new one.
    #[must_use]
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        // Without a source of randomness it is still another one each time.
        if getrandom::fill(&mut bytes).is_err() {
            let hash = |part: u8| RandomState::new().hash_one(part).to_le_bytes();
            bytes = [hash(0), hash(1)].as_flattened().try_into().unwrap_or_default();
        }
        Self(format!("{:032x}", u128::from_le_bytes(bytes)).into())
    }

    /// Its digits.
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

/// Something that happens in a run.
#[derive(Clone, Debug)]
pub enum RunEvent {
    /// A script begins. All that follows is of its run.
    Started {
        /// The run.
        run: RunId,
    },
    /// The script has said something.
    Message(Message),
    /// A tool call begins.
    CallStarted {
        /// Its full name, or what the caller called it where there is none.
        tool: String,
        /// Number of the call in this process.
        call: u64,
        /// The input, with personal data masked and without secrets.
        input: Arc<Value>,
    },
    /// A tool call has ended.
    CallEnded {
        /// Its full name, or what the caller called it where there is none.
        tool: String,
        /// Number of the call in this process.
        call: u64,
        /// The input, with personal data masked and without secrets.
        input: Arc<Value>,
        /// How long it took.
        duration: Duration,
        /// How it failed.
        error: Option<ToolError>,
    },
    /// The upstream of a tool call has said something of it: without personal data, where they are
    /// masked, and without secrets.
    CallReported {
        /// The tool's full name.
        tool: String,
        /// What it has said.
        report: Report,
    },
}

/// Who is told what happens in a run, as it happens. It must return at once.
pub type Watcher = Option<Arc<dyn Fn(RunEvent) + Send + Sync>>;

/// What is said of a call under way.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// How far it has come.
    Progress {
        /// More than what was told before.
        progress: f64,
        /// What it comes to at the end, where that is known.
        total: Option<f64>,
        /// In words.
        message: Option<String>,
    },
    /// A log message.
    Said(Said),
}

/// A log message.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// `debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert` or `emergency`.
    pub level: String,
    /// Who says it, in the words of the upstream.
    pub logger: Option<String>,
    /// What is said.
    pub data: Value,
}

/// Who is told what is said of a call. Must return at once.
#[derive(Clone, Default)]
pub struct Listener(Option<Arc<dyn Fn(Report) + Send + Sync>>);

impl Listener {
    /// A function that is told.
    #[must_use]
    pub fn new(told: impl Fn(Report) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(told)))
    }

    /// Tell it.
    pub fn tell(&self, report: Report) {
        if let Some(told) = &self.0 {
            told(report);
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "Listener(…)" } else { "Listener(nobody)" })
    }
}
