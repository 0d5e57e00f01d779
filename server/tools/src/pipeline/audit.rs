//! Writes a record of every call, one line of JSON each: a hook.
//!
//! A record that cannot be written to its file is logged with an error, so none is lost silently.

use super::hook::{Hook, Record};
use codecall_base::error::Error;
use codecall_base::files;
use codecall_base::terminal;
use codecall_config::AuditConfig;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};

/// The hook.
pub struct Audit {
    file: Option<Mutex<File>>,
    stderr: bool,
}

impl Audit {
    /// Opens the file of the configuration.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn new(config: &AuditConfig) -> Result<Self, Error> {
        let open = |path: &std::path::PathBuf| {
            files::open_append(path)
                .map(Mutex::new)
                .map_err(|error| Error::Config(format!("audit.file: cannot be opened: {error}")))
        };
        let file = config.file.as_ref().map(open).transpose()?;
        Ok(Self { file, stderr: config.stderr })
    }

    /// Writes one line with one call, so that lines of several processes do not mix.
    fn write(&self, record: &Value) {
        let line = format!("{record}\n");
        if let Some(file) = &self.file {
            let written = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
            if let Err(error) = written {
                tracing::error!(%error, "an audit record cannot be written to its file: {record}");
            }
        }
        if self.stderr {
            let mut stderr = std::io::stderr();
            let shown = if stderr.is_terminal() { terminal::escape_json(&line) } else { line.as_str().into() };
            if stderr.write_all(shown.as_bytes()).is_err() {
                tracing::error!("an audit record cannot be written to stderr: {record}");
            }
        }
    }
}

impl Hook for Audit {
    fn name(&self) -> &'static str {
        "audit"
    }

    fn recorded(&self, record: &Record<'_>) {
        let mut line = json!({
            "time": jiff::Timestamp::now().to_string(),
            "callId": record.id.to_string(),
            "caller": record.context.caller.as_str(),
            "tool": record.name,
            "input": record.input,
            "status": if record.error.is_some() { "error" } else { "ok" },
            "durationMs": (record.duration.as_secs_f64() * 1e6).round() / 1e3,
        });
        if let Some(client) = record.client {
            line["client"] = client.into();
        }
        if let Some(run) = &record.context.run {
            line["runId"] = run.id.as_str().into();
        }
        if let Some(error) = record.error {
            line["error"] = json!({"code": error.code, "message": error.message});
        }
        if let Some(hook) = record.answered_by {
            line["answeredBy"] = hook.into();
        }
        self.write(&line);
    }
}
