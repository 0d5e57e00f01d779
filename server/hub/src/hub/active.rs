//! The runs in progress of a process, for its operators, who can cancel them. Runs that a run has called belong to it.

use super::Hub;
use super::history::{kind, title};
use agentscript::Dialect;
use codecall_base::call;
use codecall_base::event::RunId;
use codecall_base::text::truncate;
use codecall_runs::ExecuteRequest;
use codecall_store::now_ms;
use codecall_tools::pipeline::Pipeline;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// How much of the first line of a script is masked, in bytes: more than a title has, so that a secret at its end is found.
const MAX_LINE_BYTES: usize = 4_096;

/// A run in progress, as operators see it. Personal data and secrets are masked.
#[derive(Clone, Debug)]
pub struct ActiveRun {
    /// The id of the run.
    pub id: RunId,
    /// The first line of the script.
    pub title: String,
    /// The kind of the run, as in the history.
    pub kind: &'static str,
    /// The client that has requested it.
    pub client: Option<String>,
    /// When it was requested, in milliseconds since 1970.
    pub began_ms: i64,
}

/// The runs in progress.
#[derive(Default)]
pub(super) struct ActiveRuns(Mutex<Vec<Arc<Entry>>>);

struct Entry {
    id: RunId,
    script: Arc<str>,
    dialect: Dialect,
    client: Option<Arc<str>>,
    began_ms: i64,
    cancel: CancellationToken,
}

/// Ends the entry of a run when it is dropped.
pub(super) struct Active {
    runs: Arc<ActiveRuns>,
    entry: Arc<Entry>,
}

impl Active {
    /// Returns what an operator cancels, and the client.
    pub(super) fn cancel(&self) -> CancellationToken {
        self.entry.cancel.clone()
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.runs.entries().retain(|other| !Arc::ptr_eq(other, &self.entry));
    }
}

impl ActiveRuns {
    /// Adds a run, which `parent` cancels too.
    pub(super) fn begin(
        self: &Arc<Self>,
        request: &mut ExecuteRequest,
        principal: Option<Arc<str>>,
        parent: &CancellationToken,
    ) -> Active {
        let entry = Arc::new(Entry {
            id: request.id.get_or_insert_with(RunId::random).clone(),
            script: Arc::clone(&request.script),
            dialect: request.dialect,
            client: call::client().or(principal),
            began_ms: now_ms(),
            cancel: parent.child_token(),
        });
        self.entries().push(Arc::clone(&entry));
        Active { runs: Arc::clone(self), entry }
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Arc<Entry>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn shown(&self, pipeline: &Pipeline) -> ActiveRun {
        let masked = |text: &str| match Arc::unwrap_or_clone(pipeline.masked(&Arc::new(text.into()))) {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let line = self.script.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        ActiveRun {
            id: self.id.clone(),
            title: title(&masked(truncate(line, MAX_LINE_BYTES))),
            kind: kind(None, self.dialect),
            client: self.client.as_deref().map(masked),
            began_ms: self.began_ms,
        }
    }
}

impl Hub {
    /// Returns the runs in progress of this process, of all clients, the latest first.
    #[must_use]
    pub fn active_runs(&self) -> Vec<ActiveRun> {
        let entries = self.services.active.entries().clone();
        entries.iter().rev().map(|entry| entry.shown(&self.pipeline)).collect()
    }

    /// Cancels a run in progress of this process, and the calls that it waits for, whoever its client is. `false`: there is none of
    /// this id.
    ///
    /// # Errors
    /// The store, which has the run too, cannot be used.
    pub async fn cancel_run(&self, id: &RunId) -> Result<bool, String> {
        // Otherwise another process would take the run over.
        if let Some(durable) = &self.services.durable
            && durable.cancel_evaluated(id).await.map_err(|problem| problem.to_string())?
        {
            return Ok(true);
        }
        let found = self.services.active.entries().iter().find(|entry| entry.id == *id).cloned();
        found.iter().for_each(|entry| entry.cancel.cancel());
        Ok(found.is_some())
    }
}
