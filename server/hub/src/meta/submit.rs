//! Runs that a client submits, to get their outcome later: `POST /v1/runs`.

use super::execute::Execute;
use super::waiting::{outcome_within, run_state};
use super::{Answer, InvalidArguments};
use crate::hub::{Durable, Hub};
use codecall_base::event::RunId;
use codecall_store::{JournalProblem, Submitted};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Maximum length of a key, in bytes.
pub const MAX_KEY_BYTES: usize = 255;

/// Why a run was not submitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSubmitted {
    /// The request is not one.
    #[error("{0}")]
    Invalid(String),
    /// The configuration has no durable runs.
    #[error("Runs are not durable here: set durable.enabled, and do not disable the store")]
    Disabled,
    /// The key was used for another run.
    #[error("The Idempotency-Key was used for another run; use a new one")]
    KeyUsed,
    /// Too many runs are open.
    #[error("Too many runs are open (durable.maxOpen); try again later")]
    Full,
    /// The run cannot be stored.
    #[error("The run cannot be stored: {0}")]
    Unavailable(JournalProblem),
}

impl From<InvalidArguments> for NotSubmitted {
    fn from(invalid: InvalidArguments) -> Self {
        Self::Invalid(invalid.to_string())
    }
}

impl From<JournalProblem> for NotSubmitted {
    fn from(problem: JournalProblem) -> Self {
        Self::Unavailable(problem)
    }
}

/// Stores a run, given by arguments of `codecall_execute`. A server begins it as soon as it can. A request with the key of an
/// earlier one of the same client returns the run of that one.
///
/// # Errors
/// The run is not stored.
pub async fn submit(hub: &Hub, arguments: Value, key: Option<&str>) -> Result<RunId, NotSubmitted> {
    let durable = hub.durable().filter(|_| hub.config().durable.enabled).ok_or(NotSubmitted::Disabled)?;
    let request = Execute.submitted(hub, arguments)?;
    let id = match key {
        Some(key) if key.is_empty() || key.len() > MAX_KEY_BYTES => {
            return Err(NotSubmitted::Invalid(format!("The Idempotency-Key has 1 to {MAX_KEY_BYTES} characters")));
        }
        Some(key) => id_with_key(hub, durable, key).await?,
        None => durable.id_for(hub, RunId::random()),
    };
    match durable.submit(hub, &id, &request).await? {
        Submitted::Stored => Ok(id),
        Submitted::Known if durable.is_same(hub, &id, &request).await? => Ok(id),
        Submitted::Known => Err(NotSubmitted::KeyUsed),
        Submitted::Full => Err(NotSubmitted::Full),
    }
}

/// Returns the id of the run with a key of a client.
///
/// # Errors
/// The store cannot be read.
pub(super) async fn id_with_key(hub: &Hub, durable: &Durable, key: &str) -> Result<RunId, JournalProblem> {
    // A request that an earlier version has got with the key is not made again.
    if let Some(former) = hub.principal().and_then(|principal| principal.former_owner.as_deref()) {
        let id = durable.id_of_owner(Some(former), id_of(Some(former), key));
        if durable.run_state(hub, &id).await?.is_some() {
            return Ok(id);
        }
    }
    Ok(durable.id_for(hub, id_of(hub.principal().map(|principal| &*principal.owner), key)))
}

fn id_of(owner: Option<&str>, key: &str) -> RunId {
    let mut hash = Sha256::new();
    if let Some(owner) = owner {
        hash.update(owner.as_bytes());
    }
    // No name contains it.
    hash.update([0]);
    hash.update(key.as_bytes());
    let digits = hash.finalize()[..16].iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    });
    RunId::parse(&digits).unwrap_or_else(RunId::random)
}

/// Cancels a run of a client. `false`: it has none of this id that is open.
///
/// # Errors
/// The store cannot be used.
pub async fn cancel(hub: &Hub, run: &RunId) -> Result<bool, JournalProblem> {
    match hub.durable() {
        Some(durable) => durable.cancel(hub, run).await,
        None => Ok(false),
    }
}

/// Returns where a run of a client stands, or its outcome if it ends within `wait`; `None`: it has none of this id.
pub async fn look(hub: &Hub, run: &RunId, wait: Duration, cancel: &CancellationToken) -> Option<Answer> {
    match wait.is_zero() {
        true => run_state(hub, run).await,
        false => outcome_within(hub, run, wait, cancel).await,
    }
}
