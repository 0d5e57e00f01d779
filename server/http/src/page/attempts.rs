//! Attempts to log in: each address may send some wrong tokens at once, and then one in a while.
//!
//! Attempts do not wait for each other. A right token does not count.

use super::super::connections::seats::Address;
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many wrong tokens an address may send at once.
const MAX_ATTEMPTS: u32 = 100;
/// How long it takes until it may send one more.
const PERIOD: Duration = Duration::from_millis(400);
/// Number of addresses that are kept. Those that sent nothing for the longest time are forgotten.
const MAX_ADDRESSES: NonZeroUsize = NonZeroUsize::new(4_096).expect("not zero");

/// The attempts of all addresses.
pub struct Attempts(Mutex<LruCache<Option<Address>, Allowance>>);

/// The attempts that an address has left.
struct Allowance {
    left: u32,
    /// Since when nothing was added to it.
    since: Instant,
}

impl Default for Attempts {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_ADDRESSES)))
    }
}

impl Attempts {
    fn lock(&self) -> MutexGuard<'_, LruCache<Option<Address>, Allowance>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an attempt, which counts as wrong until [`Attempts::succeeded`]. Returns whether the address may make it.
    pub fn begin(&self, address: Option<Address>) -> bool {
        self.begin_at(address, Instant::now())
    }

    fn begin_at(&self, address: Option<Address>, now: Instant) -> bool {
        let mut addresses = self.lock();
        let allowance = addresses.get_or_insert_mut(address, || Allowance { left: MAX_ATTEMPTS, since: now });
        let periods = now.saturating_duration_since(allowance.since).as_millis() / PERIOD.as_millis();
        let periods = u32::try_from(periods).unwrap_or(u32::MAX);
        allowance.left = allowance.left.saturating_add(periods).min(MAX_ATTEMPTS);
        allowance.since = if allowance.left == MAX_ATTEMPTS { now } else { allowance.since + PERIOD * periods };
        let is_allowed = allowance.left > 0;
        allowance.left = allowance.left.saturating_sub(1);
        is_allowed
    }

    /// Takes back that an attempt counts as wrong.
    pub fn succeeded(&self, address: Option<Address>) {
        if let Some(allowance) = self.lock().get_mut(&address) {
            allowance.left = (allowance.left + 1).min(MAX_ATTEMPTS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_attempts_of_its_own() {
        let (attempts, began) = (Attempts::default(), Instant::now());
        let [one, two] =
            ["192.0.2.1:1", "192.0.2.2:1"].map(|peer| Some(Address::of(peer.parse().expect("an address"))));
        let allowed = |address, now| (0..1_000).filter(|_| attempts.begin_at(address, now)).count();
        assert_eq!(allowed(one, began), 100);
        assert_eq!(allowed(two, began), 100);
        assert_eq!(allowed(one, began + PERIOD / 2), 0);
        // Half a period more is not lost.
        assert_eq!(allowed(one, began + PERIOD * 5 / 2), 2);
        assert_eq!(allowed(one, began + PERIOD * 3), 1);
        assert!(attempts.begin_at(two, began + PERIOD));
        attempts.succeeded(two);
        assert!(attempts.begin_at(two, began + PERIOD));
        assert_eq!(allowed(one, began + PERIOD * 1_000), 100);
    }
}
