//! Requests to a server that are in progress, to see when it is idle.

use std::time::Duration;
use tokio::sync::watch;

/// Counts requests.
#[derive(Default)]
pub struct Activity(watch::Sender<Count>);

#[derive(Clone, Copy, Default)]
struct Count {
    begun: u64,
    in_progress: usize,
}

/// A request in progress.
pub struct Active<'a>(&'a Activity);

impl Activity {
    /// Begins a request, which ends when the guard is dropped.
    pub fn begin(&self) -> Active<'_> {
        self.0.send_modify(|count| {
            count.begun += 1;
            count.in_progress += 1;
        });
        Active(self)
    }

    /// Whether no request is in progress.
    pub fn is_idle(&self) -> bool {
        self.0.borrow().in_progress == 0
    }

    /// Resolves when there was no request for so long.
    pub async fn idle_for(&self, time: Duration) {
        let mut count = self.0.subscribe();
        loop {
            // The sender is `self`.
            let _ = count.wait_for(|count| count.in_progress == 0).await;
            if tokio::time::timeout(time, count.changed()).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| count.in_progress -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use tokio::time::sleep;

    const STEP: Duration = Duration::from_millis(100);

    #[tokio::test]
    async fn requests_put_off_the_idle_time() {
        let activity = Activity::default();
        let began = Instant::now();
        let busy = async {
            let long = activity.begin();
            sleep(STEP * 7).await;
            assert!(!activity.is_idle());
            drop(long);
            sleep(STEP * 4).await;
            // A short one counts, too.
            drop(activity.begin());
        };
        tokio::join!(busy, activity.idle_for(STEP * 5));
        assert!(began.elapsed() >= STEP * 16, "{:?}", began.elapsed());
    }
}
