//! How the calls of one run obey the rate limits of tools. A tool that has answered that there were too many calls is
//! called after the time that it says, and with fewer calls at once. It must not know which errors say so.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How many calls of a tool are active at once after its first refusal. Each further one halves it.
const WIDTH: usize = 4;
/// The longest time of a run that counts: clocks cannot add any.
const MAX_TIME: Duration = Duration::from_secs(365 * 86_400);

/// The tools of a run that have refused calls.
#[derive(Debug)]
pub struct RunRates {
    /// When the run ends.
    end: Instant,
    /// How often a call is made again.
    max_retries: u32,
    tools: Mutex<HashMap<Box<str>, Arc<ToolRate>>>,
}

/// The calls of a tool that has refused some.
#[derive(Debug)]
struct ToolRate {
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug)]
struct State {
    /// How many calls may be active.
    width: usize,
    active: usize,
    /// Before that, no call is made.
    not_before: Instant,
}

/// The turn of a call, until it is dropped.
#[derive(Debug)]
pub struct Turn(Arc<ToolRate>);

impl RunRates {
    /// Creates the rates of a run that ends within a time.
    #[must_use]
    pub fn new(time: Duration, max_retries: u32) -> Arc<Self> {
        Arc::new(Self { end: Instant::now() + time.min(MAX_TIME), max_retries, tools: Mutex::default() })
    }

    /// Returns how often a call is made again.
    #[must_use]
    pub fn max_retries(&self) -> u32 {
        self.max_retries
    }

    /// Notes that a tool has refused a call for a time. Returns whether the run lasts longer.
    pub fn refused(&self, tool: &str, wait: Duration) -> bool {
        let until = Instant::now() + wait.min(MAX_TIME);
        if until >= self.end {
            return false;
        }
        let mut tools = lock(&self.tools);
        let rate = tools.entry(tool.into()).or_insert_with(|| {
            let state = State { width: WIDTH * 2, active: 0, not_before: until };
            Arc::new(ToolRate { state: Mutex::new(state), freed: Notify::new() })
        });
        let mut state = lock(&rate.state);
        state.width = (state.width / 2).max(1);
        state.not_before = state.not_before.max(until);
        true
    }

    /// Waits for the turn of a call, if its tool has refused one in this run.
    ///
    /// # Errors
    /// The run ends before.
    pub async fn turn(&self, tool: &str) -> Result<Option<Turn>, RunEnds> {
        let Some(rate) = lock(&self.tools).get(tool).cloned() else { return Ok(None) };
        loop {
            let mut freed = pin!(rate.freed.notified());
            // From here on, no turn that ends is missed.
            freed.as_mut().enable();
            match rate.take() {
                Take::Turn => return Ok(Some(Turn(Arc::clone(&rate)))),
                Take::At(time) if time >= self.end => return Err(RunEnds),
                Take::At(time) => tokio::time::sleep_until(time).await,
                Take::Later => tokio::time::timeout_at(self.end, freed).await.map_err(|_| RunEnds)?,
            }
        }
    }

    /// Waits until a tool that has refused a call can be called again.
    ///
    /// # Errors
    /// The run ends before.
    pub async fn wait(&self, tool: &str) -> Result<(), RunEnds> {
        let Some(rate) = lock(&self.tools).get(tool).cloned() else { return Ok(()) };
        loop {
            let time = lock(&rate.state).not_before;
            if time <= Instant::now() {
                return Ok(());
            }
            if time >= self.end {
                return Err(RunEnds);
            }
            tokio::time::sleep_until(time).await;
        }
    }
}

/// The run ends before a call has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEnds;

enum Take {
    Turn,
    /// Not before that time.
    At(Instant),
    /// When another call has ended.
    Later,
}

impl ToolRate {
    fn take(&self) -> Take {
        let mut state = lock(&self.state);
        if state.active >= state.width {
            return Take::Later;
        }
        if state.not_before > Instant::now() {
            return Take::At(state.not_before);
        }
        state.active += 1;
        Take::Turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        lock(&self.0.state).active -= 1;
        self.0.freed.notify_waiters();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn a_tool_that_has_refused_a_call_is_called_later_and_less() {
        let rates = RunRates::new(Duration::from_secs(60), 3);
        assert!(rates.turn("users:get").await.is_ok_and(|turn| turn.is_none()));
        let began = Instant::now();
        for _ in 0..3 {
            assert!(rates.refused("users:get", Duration::from_millis(200)));
        }
        assert!(rates.turn("users:list").await.is_ok_and(|turn| turn.is_none()));
        let (active, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let call = || async {
            let _turn = rates.turn("users:get").await.expect("there is time").expect("it has refused calls");
            most.fetch_max(active.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(10)).await;
            active.fetch_sub(1, Ordering::Relaxed);
        };
        tokio::join!(call(), call(), call(), call(), call());
        assert_eq!(most.load(Ordering::Relaxed), 1);
        assert!(began.elapsed() >= Duration::from_millis(250), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn no_call_waits_longer_than_its_run() {
        let rates = RunRates::new(Duration::from_millis(300), 3);
        assert!(!rates.refused("a", Duration::from_millis(400)));
        assert!(rates.turn("a").await.is_ok_and(|turn| turn.is_none()));
        assert!(rates.refused("a", Duration::from_millis(50)));
        let held = [rates.turn("a").await, rates.turn("a").await, rates.turn("a").await, rates.turn("a").await];
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(rates.turn("a").await.err(), Some(RunEnds));
        drop(held);
        assert!(rates.turn("a").await.is_ok_and(|turn| turn.is_some()));
    }
}
