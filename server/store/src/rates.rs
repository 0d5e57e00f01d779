//! Rate limits: token buckets by key.

use crate::database::{Database, Value};
use crate::{BoxFuture, StoreError};
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, RateLimiter as Governor};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::future::ready;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// Buckets in a database, for servers that share it. A bucket is the time at which it is full again, by the clock of the
/// database.
#[derive(Debug)]
pub struct SqlRates {
    database: Database,
    taken: AtomicU64,
}

/// After so many permits, full buckets are deleted.
const SWEEP: u64 = 1_000;

impl SqlRates {
    /// Buckets of a database.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database, taken: AtomicU64::default() }
    }

    /// Takes a permit at a time. Returns how long there is none, in nanoseconds.
    async fn take_at(&self, now: i64, key: &str, quota: Quota) -> Result<Option<Duration>, StoreError> {
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
        let each = quota.window.checked_div(quota.limit.get()).map(nanos).unwrap_or_default();
        if each == 0 {
            return Ok(None);
        }
        // Quotas have buckets of their own, and names may be long.
        let key = Sha256::digest(format!("{} {} {key}", quota.limit, quota.window.as_nanos()));
        let key = crate::state::hex(&key);
        let full = now.saturating_add(each.saturating_mul(quota.limit.get().into()));
        let take = "INSERT INTO rates (key, full_at) VALUES ($1, CAST($2 AS BIGINT))
             ON CONFLICT (key) DO UPDATE SET full_at = CASE WHEN rates.full_at > CAST($3 AS BIGINT)
                 THEN rates.full_at ELSE CAST($3 AS BIGINT) END + CAST($4 AS BIGINT)
             WHERE rates.full_at <= CAST($5 AS BIGINT) RETURNING full_at";
        let last = full.saturating_sub(each);
        let values = [key.as_str().into(), (now + each).into(), now.into(), each.into(), last.into()];
        let failed = |problem| self.database.error(&problem);
        if self.taken.fetch_add(1, Ordering::Relaxed) % SWEEP == SWEEP - 1 {
            self.database.query("DELETE FROM rates WHERE full_at < $1", [now.into()]).await.map_err(failed)?;
        }
        if !self.database.query(take, values).await.map_err(failed)?.is_empty() {
            return Ok(None);
        }
        let read = "SELECT full_at FROM rates WHERE key = $1";
        let rows = self.database.query(read, [key.as_str().into()]).await.map_err(failed)?;
        let full_at = rows.first().and_then(|row| row.first()).map_or(now, Value::int);
        Ok(Some(Duration::from_nanos(u64::try_from(full_at.saturating_sub(last)).unwrap_or_default())))
    }
}

impl RateLimiter for SqlRates {
    fn take<'a>(&'a self, key: &'a str, quota: Quota) -> BoxFuture<'a, Result<Option<Duration>, StoreError>> {
        Box::pin(self.take_at(self.database.now_us().saturating_mul(1_000), key, quota))
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
