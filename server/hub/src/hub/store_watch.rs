//! Whether the store of a server can be used. A server whose store is gone accepts no durable runs, and balancers send it none.

use super::{Hub, LiveHub};
use codecall_store::Database;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often it is looked whether the store can be used.
const LOOK: Duration = Duration::from_secs(2);
/// How long a look may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How the store of a server is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoreStatus {
    /// The file; `store.url`: a database server.
    pub place: String,
    /// Why it cannot be used, and what to do; `None`: it can.
    pub error: Option<String>,
}

/// The state of the store of a server.
#[derive(Debug, Default)]
pub struct StoreWatch(Mutex<Known>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Known {
    /// Nobody looks.
    #[default]
    Unwatched,
    /// The first look is in progress.
    Unknown,
    Usable,
    Unusable(String),
}

impl StoreWatch {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks whether the store can be used, and says what has changed.
    async fn look(&self, database: &Database) {
        let problem = match tokio::time::timeout(TIMEOUT, database.probe()).await {
            Ok(Ok(())) => None,
            // Another process writes much, such as `codecall store vacuum`.
            Ok(Err(codecall_store::database::Problem::Busy)) if *self.known() == Known::Usable => None,
            Ok(Err(problem)) => Some(database.error(&problem).to_string()),
            Err(_) => Some(database.unanswered().to_string()),
        };
        let now = problem.map_or(Known::Usable, Known::Unusable);
        let before = std::mem::replace(&mut *self.known(), now.clone());
        match (before, now) {
            (before, Known::Unusable(problem)) if before != Known::Unusable(problem.clone()) => {
                tracing::error!("{problem}. This server is not ready, and accepts no durable runs.");
            }
            (Known::Unusable(_), Known::Usable) => tracing::warn!("The store can be used again."),
            _ => {}
        }
    }
}

impl Hub {
    /// Returns how the store is; `None`: there is none, or nobody has looked.
    #[must_use]
    pub fn store_status(&self) -> Option<StoreStatus> {
        let error = match &*self.services.store_watch.known() {
            Known::Unwatched | Known::Unknown => return None,
            Known::Usable => None,
            Known::Unusable(problem) => Some(problem.clone()),
        };
        Some(StoreStatus { place: self.database()?.place(), error })
    }

    /// Whether the store can be used, as far as it is known. It can where there is none, or nobody looks.
    #[must_use]
    pub fn is_store_usable(&self) -> bool {
        matches!(&*self.services.store_watch.known(), Known::Unwatched | Known::Usable)
    }

    /// Looks once whether the store can be used.
    pub async fn look_at_store(&self) {
        if let Some(database) = self.database() {
            self.services.store_watch.look(database).await;
        }
    }
}

impl LiveHub {
    /// Looks every few seconds whether the store can be used, which [`Hub::is_ready`] and [`Hub::status`] say.
    pub fn watch_store(&self, cancel: &CancellationToken) {
        let hub = self.get();
        let Some(database) = hub.database().cloned() else { return };
        let watch = std::sync::Arc::clone(&hub.services.store_watch);
        *watch.known() = Known::Unknown;
        let looking = async move {
            loop {
                watch.look(&database).await;
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::spawn(cancel.clone().run_until_cancelled_owned(looking));
    }
}
