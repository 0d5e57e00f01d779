//! The hub of a server whose configuration can change while it runs.
//!
//! A change makes a new hub, which takes over what has not changed: connections to MCP servers, threads, permits, stores.
//! Requests and runs that have begun go on with the hub they began with; what only that one uses is closed after them.

use super::{Hub, Principal};
use codecall_base::error::Error;
use codecall_config::{Config, UnusableServer};
use futures_util::future::join_all;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;

/// How often a hub that was replaced is looked at, whether its last request has ended.
const LOOK: Duration = Duration::from_millis(200);
/// Sections that are read once: their changes are used after a restart.
const READ_ONCE: [&str; 5] = ["history", "http", "model", "resultStore", "store"];

/// The hub of this moment. Clones share it.
#[derive(Clone)]
pub struct LiveHub(Arc<Shared>);

struct Shared {
    current: watch::Sender<Arc<Hub>>,
    /// Hubs that were replaced, while requests still use them.
    retired: Mutex<Vec<Arc<Hub>>>,
    /// The hubs of clients.
    of_clients: Mutex<Vec<Weak<Shared>>>,
    reloading: tokio::sync::Mutex<()>,
}

/// The changes of a new configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Sections that are different, besides `mcpServers`.
    pub sections: Vec<String>,
    /// Sections of these whose changes are used after a restart.
    pub after_restart: Vec<String>,
    /// Apps that are new.
    pub added: Vec<String>,
    /// Apps whose servers were started again.
    pub restarted: Vec<String>,
    /// Apps that are gone.
    pub removed: Vec<String>,
    /// Why further servers are switched off.
    pub switched_off: Vec<String>,
}

impl Changes {
    /// Whether nothing has changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl std::fmt::Display for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            ("started", &self.added),
            ("started again", &self.restarted),
            ("ended", &self.removed),
            ("switched off", &self.switched_off),
            ("changed", &self.sections),
            ("used after a restart", &self.after_restart),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(what, names)| format!("{what}: {}", names.join(", ")))
            .collect();
        f.write_str(&if parts.is_empty() { "nothing has changed".to_owned() } else { parts.join("; ") })
    }
}

impl From<Arc<Hub>> for LiveHub {
    fn from(hub: Arc<Hub>) -> Self {
        Self(Arc::new(Shared {
            current: watch::Sender::new(hub),
            retired: Mutex::default(),
            of_clients: Mutex::default(),
            reloading: tokio::sync::Mutex::default(),
        }))
    }
}

impl LiveHub {
    /// Returns the hub of this moment. A request uses the same one from start to end.
    #[must_use]
    pub fn get(&self) -> Arc<Hub> {
        Arc::clone(&self.0.current.borrow())
    }

    /// Returns a receiver that sees each new hub.
    #[must_use]
    pub fn replaced(&self) -> watch::Receiver<Arc<Hub>> {
        self.0.current.subscribe()
    }

    /// Uses another configuration from now on. What has not changed goes on as it is.
    ///
    /// # Errors
    /// The errors of [`Hub::start`]. The configuration stays as it was.
    pub async fn reload(&self, config: Config) -> Result<Changes, Error> {
        let _alone = self.0.reloading.lock().await;
        let old = self.get();
        let changes = changes(old.config(), &config);
        if changes.is_empty() {
            return Ok(changes);
        }
        let new = old.successor(config)?;
        self.replace(old, new);
        Ok(changes)
    }

    /// Starts the MCP server or the service of an app again. Calls in progress of it fail. `false`: the configuration has none.
    ///
    /// # Errors
    /// The errors of [`Hub::start`]. The server is closed then.
    pub async fn restart(&self, app: &str) -> Result<bool, Error> {
        let _alone = self.0.reloading.lock().await;
        let old = self.get();
        let Some(upstream) = old.configured.get(app) else { return Ok(false) };
        // Before its successor begins: two of them may want the same port or file.
        upstream.close().await;
        let new = old.with_restarted(app)?;
        self.replace(old, new);
        Ok(true)
    }

    /// Uses another hub from now on.
    fn replace(&self, old: Arc<Hub>, new: Arc<Hub>) {
        self.retired(|retired| retired.push(Arc::clone(&old)));
        self.0.current.send_replace(new);
        tokio::spawn(self.clone().retire(old));
    }

    /// Returns the hub of a client, which follows this one as long as it is used.
    ///
    /// # Errors
    /// The errors of [`Hub::for_principal`].
    pub fn for_principal(&self, principal: Principal) -> Result<Self, Error> {
        let own = Self::from(self.get().for_principal(&principal)?);
        {
            let mut of_clients = self.0.of_clients.lock().unwrap_or_else(PoisonError::into_inner);
            of_clients.retain(|other| other.strong_count() > 0);
            of_clients.push(Arc::downgrade(&own.0));
        }
        let (mut replaced, weak) = (self.replaced(), Arc::downgrade(&own.0));
        tokio::spawn(async move {
            while replaced.changed().await.is_ok() {
                let Some(shared) = weak.upgrade() else { return };
                let base = Arc::clone(&replaced.borrow_and_update());
                match base.for_principal(&principal) {
                    Ok(hub) => drop(shared.current.send_replace(hub)),
                    Err(error) => tracing::error!(client = &*principal.name, "its tools stay as they were: {error}"),
                }
            }
        });
        Ok(own)
    }

    /// Returns the hub of a client that has these permissions; `None`: the client has not been here, or may now use other
    /// tools. Without an owner, it is this hub.
    #[must_use]
    pub fn of_client(&self, owner: Option<&str>, permissions: Option<&str>) -> Option<Arc<Hub>> {
        let own = self.get();
        if own.is_of(owner, permissions) {
            return Some(own);
        }
        let of_clients = self.0.of_clients.lock().unwrap_or_else(PoisonError::into_inner);
        let hubs = of_clients.iter().filter_map(Weak::upgrade).map(|shared| Self(shared).get());
        hubs.into_iter().find(|hub| hub.is_of(owner, permissions))
    }

    /// Waits until nobody uses a hub, then closes what no other hub has.
    async fn retire(self, hub: Arc<Hub>) {
        // The list has one reference, this task the other.
        while Arc::strong_count(&hub) > 2 {
            tokio::time::sleep(LOOK).await;
        }
        let others = self.retired(|retired| {
            retired.retain(|other| !Arc::ptr_eq(other, &hub));
            retired.clone()
        });
        let others: Vec<Arc<Hub>> = others.into_iter().chain([self.get()]).collect();
        hub.close_all_but(&others).await;
    }

    fn retired<T>(&self, then: impl FnOnce(&mut Vec<Arc<Hub>>) -> T) -> T {
        then(&mut self.0.retired.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the hub of this moment, and those that requests still use.
    fn all(&self) -> Vec<Arc<Hub>> {
        let mut all = self.retired(|retired| retired.clone());
        all.push(self.get());
        all
    }

    /// Ends all runs with `POOL_DISPOSED`, and refuses new ones.
    pub fn end_runs(&self) {
        self.all().iter().for_each(|hub| hub.end_runs());
    }

    /// Waits until the requests in progress are answered.
    pub async fn answered(&self) {
        join_all(self.all().iter().map(|hub| hub.answered())).await;
    }

    /// Cancels all runs and closes all upstreams. Child processes have ended when it returns.
    pub async fn close(&self) {
        join_all(self.all().iter().map(|hub| hub.close())).await;
    }
}

fn changes(old: &Config, new: &Config) -> Changes {
    let mut changes = Changes { sections: new.sections.differing(&old.sections), ..Changes::default() };
    changes.after_restart =
        changes.sections.iter().filter(|name| READ_ONCE.contains(&name.as_str())).cloned().collect();
    for (app, server) in &new.upstreams {
        match old.upstreams.get(app) {
            None => changes.added.push(app.clone()),
            Some(before) if before.entry != server.entry => changes.restarted.push(app.clone()),
            Some(_) => {}
        }
    }
    let is_new = |(app, server): &(&String, &UnusableServer)| old.unusable.get(*app) != Some(*server);
    changes.switched_off = new.unusable.iter().filter(is_new).map(|(_, server)| server.reason.clone()).collect();
    let was_off = old.unusable.keys().filter(|app| !new.has_server(app));
    changes.removed =
        old.upstreams.keys().filter(|app| !new.upstreams.contains_key(*app)).chain(was_off).cloned().collect();
    changes
}
