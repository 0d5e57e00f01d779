//! Rate limits: token buckets by key.

use crate::{BoxFuture, StoreError};
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, RateLimiter as Governor};
use std::collections::HashMap;
use std::future::ready;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A bucket that contains at most `limit` permits and is refilled evenly within `window`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    /// Number of permits.
    pub limit: NonZeroU32,
    /// The time in which a bucket is refilled. With less than a nanosecond for each permit there is no limit.
    pub window: Duration,
}

/// Buckets of permits, by key.
pub trait RateLimiter: Send + Sync {
    /// Takes a permit from the bucket of this key and quota. `None`: it was taken; otherwise the time until there is one.
    fn take<'a>(&'a self, key: &'a str, quota: Quota) -> BoxFuture<'a, Result<Option<Duration>, StoreError>>;
}

/// Buckets in memory.
#[derive(Default)]
pub struct MemoryRates {
    limiters: Mutex<HashMap<Quota, Arc<DefaultKeyedRateLimiter<String>>>>,
    clock: DefaultClock,
}

impl MemoryRates {
    /// Returns the buckets of a quota; `None` if it sets no limit.
    fn limiter(&self, quota: Quota) -> Option<Arc<DefaultKeyedRateLimiter<String>>> {
        let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(limiter) = limiters.get(&quota) {
            return Some(Arc::clone(limiter));
        }
        let each = quota.window.checked_div(quota.limit.get())?;
        let limiter = Arc::new(Governor::keyed(governor::Quota::with_period(each)?.allow_burst(quota.limit)));
        limiters.insert(quota, Arc::clone(&limiter));
        Some(limiter)
    }
}

impl RateLimiter for MemoryRates {
    fn take<'a>(&'a self, key: &'a str, quota: Quota) -> BoxFuture<'a, Result<Option<Duration>, StoreError>> {
        let wait = self.limiter(quota).and_then(|limiter| {
            let full = limiter.check_key(&key.to_owned()).err()?;
            Some(full.wait_time_from(self.clock.now()))
        });
        Box::pin(ready(Ok(wait)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn take(rates: &MemoryRates, key: &str, limit: u32, window: Duration) -> Option<Duration> {
        let quota = Quota { limit: NonZeroU32::new(limit).expect("not zero"), window };
        rates.take(key, quota).now_or_never().expect("ready").expect("it works")
    }

    #[test]
    fn each_key_has_a_bucket_of_its_own() {
        let rates = MemoryRates::default();
        let minute = Duration::from_secs(60);
        for key in ["a", "b"] {
            for _ in 0..3 {
                assert_eq!(take(&rates, key, 3, minute), None);
            }
            let wait = take(&rates, key, 3, minute).expect("the bucket is empty");
            assert!(wait > Duration::ZERO && wait <= Duration::from_secs(20), "{wait:?}");
        }
        assert_eq!(take(&rates, "a", 100, minute), None, "another quota has another bucket");
    }

    #[test]
    fn a_bucket_fills_again() {
        let rates = MemoryRates::default();
        let window = Duration::from_millis(50);
        assert_eq!(take(&rates, "a", 1, window), None);
        assert!(take(&rates, "a", 1, window).is_some());
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(take(&rates, "a", 1, window), None);
    }

    #[test]
    fn a_window_without_time_limits_nothing() {
        let rates = MemoryRates::default();
        assert!((0..10).all(|_| take(&rates, "a", 1, Duration::ZERO).is_none()));
    }
}
