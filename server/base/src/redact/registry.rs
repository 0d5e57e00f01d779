//! The secrets of a server. Values can be added and removed while it runs.

use super::{MIN_SECRET_CHARS, Redactor, is_long_enough};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Maximum number of secrets in a registry to which one is added. Each change builds the automaton for all secrets: for
/// 2,000 of 40 bytes that takes about 10 ms, for [`MAX_SECRET_BYTES`] about 150 ms.
pub const MAX_SECRETS: usize = 2_000;

/// Maximum length of all secrets in a registry to which one is added, in bytes.
pub const MAX_SECRET_BYTES: usize = 512 * 1024;

/// The secrets in the logs of this process: those of all registries that have joined them.
static LOG_SECRETS: LazyLock<SecretRegistry> = LazyLock::new(SecretRegistry::default);

/// The secrets of a server, shared by everything that redacts. What leaves the server after a value was added is
/// redacted with it: nobody keeps a [`Redactor`] for longer than one piece of data.
///
/// A value may have several owners. It is redacted until it was removed as often as it was added.
#[derive(Default)]
pub struct SecretRegistry {
    state: Mutex<State>,
    redactor: watch::Sender<Redactor>,
}

#[derive(Default)]
struct State {
    /// The number of owners of each value.
    owners: BTreeMap<String, usize>,
    /// Whether [`LOG_SECRETS`] contains the values too.
    joined_logs: bool,
}

/// Why a secret cannot be added. The message does not contain the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedSecret {
    /// The value would be found by accident.
    #[error(
        "a secret must have at least {MIN_SECRET_CHARS} characters: a shorter value occurs by accident, so it cannot be redacted"
    )]
    TooShort,
    /// Changes would take too long.
    #[error(
        "at most {MAX_SECRETS} secrets of {MAX_SECRET_BYTES} bytes in all can be redacted; remove some before you add more"
    )]
    TooMany,
}

impl std::fmt::Debug for SecretRegistry {
    /// Writes it without the secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretRegistry").field("redactor", &self.redactor()).finish_non_exhaustive()
    }
}

impl SecretRegistry {
    /// Creates a registry of the secrets of a configuration, in any number. Those that are shorter than
    /// [`MIN_SECRET_CHARS`] are ignored.
    #[must_use]
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let registry = Self::default();
        let secrets: Vec<&str> = secrets.into_iter().map(str::trim).filter(|secret| is_long_enough(secret)).collect();
        registry.insert(&mut registry.state(), &secrets);
        registry
    }

    /// Returns the redactor for the secrets of this moment. It is cheap, so take a new one for each piece of data.
    #[must_use]
    pub fn redactor(&self) -> Redactor {
        self.redactor.borrow().clone()
    }

    /// Returns a receiver of the redactors after each change.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Redactor> {
        self.redactor.subscribe()
    }

    /// Adds a secret. When it returns, the secret is redacted. Use [`Self::add_all`] for several: each change takes
    /// time in proportion to all secrets.
    ///
    /// # Errors
    /// The secret is too short, or there are too many.
    pub fn add(&self, secret: &str) -> Result<(), RefusedSecret> {
        self.add_all([secret])
    }

    /// Adds secrets: all, or none if one is refused.
    ///
    /// # Errors
    /// A secret is too short, or there are too many.
    pub fn add_all<'a>(&self, secrets: impl IntoIterator<Item = &'a str>) -> Result<(), RefusedSecret> {
        let secrets: Vec<&str> = secrets.into_iter().map(str::trim).collect();
        if !secrets.iter().all(|secret| is_long_enough(secret)) {
            return Err(RefusedSecret::TooShort);
        }
        let mut state = self.state();
        let added: BTreeSet<&str> =
            secrets.iter().copied().filter(|secret| !state.owners.contains_key(*secret)).collect();
        let bytes: usize = state.owners.keys().map(String::len).chain(added.iter().map(|secret| secret.len())).sum();
        let is_full = state.owners.len() + added.len() > MAX_SECRETS || bytes > MAX_SECRET_BYTES;
        if is_full && !added.is_empty() {
            return Err(RefusedSecret::TooMany);
        }
        self.insert(&mut state, &secrets);
        Ok(())
    }

    /// Adds all secrets of another registry, in any number: those of a configuration that is read again.
    pub fn add_from(&self, other: &Self) {
        if std::ptr::eq(self, other) {
            return;
        }
        let secrets: Vec<String> = other.state().owners.keys().cloned().collect();
        let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
        self.insert(&mut self.state(), &secrets);
    }

    /// Removes a secret of one owner. An unknown value is ignored.
    pub fn remove(&self, secret: &str) {
        self.remove_all([secret]);
    }

    /// Removes secrets of one owner. Unknown values are ignored.
    pub fn remove_all<'a>(&self, secrets: impl IntoIterator<Item = &'a str>) {
        let mut state = self.state();
        let mut removed = Vec::new();
        for secret in secrets.into_iter().map(str::trim) {
            let Some(owners) = state.owners.get_mut(secret) else { continue };
            *owners -= 1;
            if *owners == 0 {
                state.owners.remove(secret);
                removed.push(secret);
            }
        }
        if removed.is_empty() {
            return;
        }
        self.publish(&state);
        if state.joined_logs {
            LOG_SECRETS.remove_all(removed);
        }
    }

    /// Redacts these secrets in the logs of this process too, until the registry is dropped.
    pub fn join_logs(&self) {
        let mut state = self.state();
        if !state.joined_logs {
            let secrets: Vec<&str> = state.owners.keys().map(String::as_str).collect();
            LOG_SECRETS.insert(&mut LOG_SECRETS.state(), &secrets);
            state.joined_logs = true;
        }
    }

    fn insert(&self, state: &mut State, secrets: &[&str]) {
        let mut added = Vec::new();
        for secret in secrets {
            let owners = state.owners.entry((*secret).to_owned()).or_default();
            if *owners == 0 {
                added.push(*secret);
            }
            *owners += 1;
        }
        if added.is_empty() {
            return;
        }
        if state.joined_logs {
            LOG_SECRETS.insert(&mut LOG_SECRETS.state(), &added);
        }
        self.publish(state);
    }

    /// Replaces the redactor. The lock of the state is held, so redactors are published in the order of the changes.
    fn publish(&self, state: &State) {
        self.redactor.send_replace(Redactor::new(state.owners.keys().map(String::as_str)));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SecretRegistry {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.joined_logs {
            LOG_SECRETS.remove_all(state.owners.keys().map(String::as_str));
        }
    }
}

/// Redacts a line of the log of this process.
#[must_use]
pub fn redact_log_line(line: &str) -> Cow<'_, str> {
    LOG_SECRETS.redactor().redact_text(line)
}

#[cfg(test)]
mod tests;
