//! The seam of a durable execution engine, which keeps the journals of runs in place of the store. Its workers evaluate
//! the runs;
//! servers submit them, and ask where they stand. This module does not know which engines exist.

use codecall_base::event::RunId;
use codecall_base::tool::DirectoryId;
use codecall_store::JournalProblem;
use futures_util::future::BoxFuture;
use std::time::Duration;

/// A durable execution engine.
pub trait DurableEngine: Send + Sync {
    /// Submits a run, whose [`Start`](super::Start) is a JSON text. `false`: there is one of its id.
    fn submit<'a>(&'a self, run: &'a RunId, start: &'a str) -> BoxFuture<'a, Result<bool, EngineProblem>>;

    /// Submits a run, and returns where it stands once it has ended or after so long. `Open`: the engine may not have taken it.
    fn run<'a>(&'a self, run: &'a RunId, start: &'a str, wait: Duration)
    -> BoxFuture<'a, Result<Found, EngineProblem>>;

    /// Returns where a run stands, once it has ended or after so long.
    fn find<'a>(&'a self, run: &'a RunId, wait: Duration) -> BoxFuture<'a, Result<Found, EngineProblem>>;

    /// Returns the digest of the request of a run; waits a while for the run to begin.
    fn request<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<String, EngineProblem>>;

    /// Cancels a run, and the calls that it waits for. One that has not begun is cancelled when it begins.
    fn cancel<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), EngineProblem>>;

    /// Returns why a run does not go on at the moment; `None`: it does, or that is not known.
    fn trouble<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Option<String>>;

    /// Returns the digest of a directory of tools that this process has stored not long ago.
    fn stored_tools(&self, directory: DirectoryId) -> Option<String>;

    /// Stores a directory of tools under its digest.
    fn store_tools<'a>(
        &'a self,
        directory: DirectoryId,
        digest: &'a str,
        bytes: &'a [u8],
    ) -> BoxFuture<'a, Result<(), EngineProblem>>;
}

/// Where a run stands at an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It has ended: what its worker has returned.
    Ended(String),
    /// It is open.
    Open,
    /// There is none of this id.
    Unknown,
}

/// Why an engine cannot be used, and what to do. The message contains no address, which may contain a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EngineProblem(pub String);

impl From<EngineProblem> for JournalProblem {
    fn from(problem: EngineProblem) -> Self {
        Self::Engine(problem.0)
    }
}
