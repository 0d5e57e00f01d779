//! Work in proportion to data of tools, scripts and clients: what is small is done in place, what is
//! large in threads of its own, under permits, a few at a time and with a low priority, so that nobody who asks
//! for little waits for it.
//!
//! Work cannot be interrupted. Whoever hands it over bounds it first (see [`crate::schema`] for the one
//! kind whose time does not follow from the size of its data).

use crate::priority::Thread;
use crate::tool::ErrorCode;
use serde_json::Value;
use std::panic::resume_unwind;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of JSON that are worked on in place: less than a millisecond.
pub const SMALL: usize = 64 * 1024;
/// Native stack of large work: readers of JSON recurse, as deeply as they allow.
const STACK: usize = 8 << 20;
/// How long large work waits for its permit.
const PATIENCE: Duration = Duration::from_secs(20);

/// Permits for large work, as many as there are processors, at least two.
static PERMITS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    Arc::new(Semaphore::new(processors.max(2)))
});

/// There was no permit for large work in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The server is busy with large data of others; try again later, or with less")]
pub struct Busy;

impl From<Busy> for crate::tool::ToolError {
    fn from(busy: Busy) -> Self {
        Self::new(ErrorCode::ToolTimeout, busy.to_string())
    }
}

/// Do `work` on about `bytes` of JSON.
///
/// # Errors
/// It is large, and there is no permit for it in time.
pub async fn run<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> Result<T, Busy> {
    let _permit = if bytes > SMALL { Some(permit().await?) } else { None };
    Ok(now(bytes, work))
}

/// The same without waiting for a permit, for what is bounded by others already.
pub fn now<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    let is_shared =
        || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes > SMALL && is_shared() { tokio::task::block_in_place(|| elsewhere(work)) } else { work() }
}

/// In a thread of its own. This one waits; in its place in the runtime is another one.
fn elsewhere<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    // Without a thread to be had it is done here.
    let mut work = Some(work);
    let done = std::thread::scope(|scope| {
        let work = &mut work;
        let lowered = move || {
            Thread::current().lower();
            work.take().map(|work| work())
        };
        let thread = std::thread::Builder::new().name("large-work".into()).stack_size(STACK);
        thread.spawn_scoped(scope, lowered).ok()?.join().unwrap_or_else(|panic| resume_unwind(panic))
    });
    match (done, work) {
        (Some(done), _) => done,
        (None, Some(work)) => work(),
        (None, None) => unreachable!("work that is begun ends or panics"),
    }
}

async fn permit() -> Result<OwnedSemaphorePermit, Busy> {
    let permit = tokio::time::timeout(PATIENCE, Arc::clone(&PERMITS).acquire_owned());
    // It is never closed.
    permit.await.map_err(|_| Busy)?.map_err(|_| Busy)
}

/// About as many bytes as the JSON of a value has; more than [`SMALL`] is not counted to its end.
#[must_use]
pub fn weight(value: &Value) -> usize {
    let mut bytes = 0;
    weigh(value, &mut bytes);
    bytes
}

/// About as many bytes as the JSON of an object has.
#[must_use]
pub fn weight_of<'a>(members: impl IntoIterator<Item = (&'a String, &'a Value)>) -> usize {
    let mut bytes = 0;
    for (key, member) in members {
        bytes += key.len() + 4;
        weigh(member, &mut bytes);
        if bytes > SMALL {
            break;
        }
    }
    bytes
}

/// Values nest as deeply as readers of JSON follow, so this may recurse.
fn weigh(value: &Value, bytes: &mut usize) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => *bytes += 8,
        Value::String(text) => *bytes += text.len() + 2,
        Value::Array(items) => {
            *bytes += 2;
            for item in items {
                weigh(item, bytes);
                if *bytes > SMALL {
                    return;
                }
            }
        }
        Value::Object(members) => {
            *bytes += 2;
            for (key, member) in members {
                *bytes += key.len() + 4;
                weigh(member, bytes);
                if *bytes > SMALL {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_large_is_known_without_being_counted() {
        assert_eq!(weight(&json!(null)), 8);
        let small = json!({"a": [1, "two", {"b": null}]});
        assert!((20..60).contains(&weight(&small)), "{}", weight(&small));
        assert!(weight(&json!(vec![1; 1_000_000])) < 2 * SMALL);
        assert!(weight(&json!("x".repeat(SMALL))) > SMALL);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn large_work_leaves_the_thread_to_others() {
        let others = tokio::spawn(async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            std::time::Instant::now()
        });
        let long = || {
            std::thread::sleep(Duration::from_millis(400));
            std::time::Instant::now()
        };
        let ended = tokio::spawn(async move { run(SMALL + 1, long).await }).await.expect("ends").expect("a permit");
        assert!(others.await.expect("ends") < ended);
    }

    #[tokio::test]
    async fn one_thread_does_it_in_place() {
        assert_eq!(run(usize::MAX, || 1).await, Ok(1));
        assert_eq!(now(usize::MAX, || 1), 1);
    }
}
