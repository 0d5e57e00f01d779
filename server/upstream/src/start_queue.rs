//! The starts of servers, a few at a time: a server that starts takes a processor for a second. If all start at once, the
//! answers to the client, and the one server that it needs first, wait for all of them.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How long no server starts that nobody needs. Meanwhile the first requests of the client are answered.
const DELAY: Duration = Duration::from_millis(200);
/// How long a server that starts makes others wait: it may also sleep, install a package or hang.
const MAX_TURN: Duration = Duration::from_secs(5);

/// Servers that wait for their turn.
pub struct StartQueue(Mutex<State>);

struct State {
    places: usize,
    taken: usize,
    /// Servers that somebody needs come first, then those that have waited longest.
    waiting: BTreeMap<(Priority, u64), oneshot::Sender<Turn>>,
    next: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    Needed,
    Other,
}

/// The turn of a server. It ends when this is dropped.
pub struct Turn(Arc<StartQueue>);

impl Default for StartQueue {
    /// As many at a time as there are processors.
    fn default() -> Self {
        let places = available_parallelism().map_or(1, NonZero::get);
        Self(Mutex::new(State { places, taken: 0, waiting: BTreeMap::new(), next: 0 }))
    }
}

impl StartQueue {
    /// Sets how many servers start at a time; `None`: as many as there are processors.
    pub fn set_places(self: &Arc<Self>, places: Option<usize>) {
        self.state().places = places.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get));
        self.admit();
    }

    /// Waits for the turn of a server, which comes before those of others once `needed` is cancelled. The turn ends when
    /// `decided` resolves, which is when the server is up or has failed, and in any case soon.
    pub async fn wait(
        self: &Arc<Self>,
        needed: &CancellationToken,
        decided: impl Future<Output = ()> + Send + 'static,
    ) {
        let other = async {
            tokio::time::sleep(DELAY).await;
            self.turn(Priority::Other).await
        };
        let turn = tokio::select! {
            biased;
            () = needed.cancelled() => self.turn(Priority::Needed).await,
            turn = other => turn,
        };
        tokio::spawn(async move {
            let _ = tokio::time::timeout(MAX_TURN, decided).await;
            drop(turn);
        });
    }

    async fn turn(self: &Arc<Self>, priority: Priority) -> Option<Turn> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state();
            let number = state.next;
            state.next += 1;
            state.waiting.insert((priority, number), sender);
        }
        self.admit();
        // A sender is only dropped with its turn sent.
        receiver.await.ok()
    }

    /// Gives the free places to those that wait.
    fn admit(self: &Arc<Self>) {
        loop {
            let sender = {
                let mut state = self.state();
                if state.taken >= state.places {
                    return;
                }
                let Some((_, sender)) = state.waiting.pop_first() else { return };
                if sender.is_closed() {
                    continue;
                }
                state.taken += 1;
                sender
            };
            // If nobody waits for it any more, the turn ends at once, outside of the lock.
            drop(sender.send(Turn(Arc::clone(self))));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.state().taken -= 1;
        self.0.admit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use tokio::time::sleep;

    const START: Duration = Duration::from_secs(1);

    /// Resolves so long after the turn has begun.
    async fn started() {
        sleep(START).await;
    }

    /// Starts a server, and adds its name when its start begins.
    async fn start(queue: &Arc<StartQueue>, needed: &CancellationToken, name: char, begun: &Mutex<String>) {
        queue.wait(needed, started()).await;
        begun.lock().expect("not poisoned").push(name);
        assert!(queue.state().taken <= 2);
    }

    #[tokio::test]
    async fn a_few_at_a_time_and_the_needed_first() {
        let queue = Arc::new(StartQueue::default());
        queue.set_places(Some(2));
        let (nobody, somebody, late) = (CancellationToken::new(), CancellationToken::new(), CancellationToken::new());
        somebody.cancel();
        let (begun, began) = (Mutex::new(String::new()), Instant::now());
        tokio::join!(
            start(&queue, &nobody, 'a', &begun),
            start(&queue, &nobody, 'b', &begun),
            start(&queue, &nobody, 'c', &begun),
            start(&queue, &late, 'd', &begun),
            start(&queue, &somebody, 'e', &begun),
            async {
                sleep(START / 2).await;
                late.cancel();
            },
        );
        let begun = begun.lock().expect("not poisoned");
        assert!(begun.starts_with('e') && begun.find('d') == Some(2), "{begun}");
        assert!(began.elapsed() >= START * 2, "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_turn_that_nobody_waits_for_and_one_that_hangs() {
        let queue = Arc::new(StartQueue::default());
        queue.set_places(Some(1));
        let needed = CancellationToken::new();
        needed.cancel();
        let began = Instant::now();
        queue.wait(&needed, std::future::pending()).await;
        // This one gives up, and takes no turn from the next one.
        assert!(tokio::time::timeout(START / 10, queue.wait(&needed, sleep(START))).await.is_err());
        queue.wait(&needed, std::future::pending()).await;
        assert!((MAX_TURN..MAX_TURN * 2).contains(&began.elapsed()), "{:?}", began.elapsed());
        let began = Instant::now();
        queue.set_places(Some(2));
        queue.wait(&needed, sleep(START)).await;
        assert!(began.elapsed() < MAX_TURN / 2, "{:?}", began.elapsed());
    }
}
