//! Runs work whose time is proportional to the size of data. Work on small data runs in place. Work on large data runs
//! on threads of its own, with permits and a low priority, so that small requests do not wait for it.
//!
//! Work cannot be interrupted, so the caller limits it first. [`crate::schema`] does that for validation, whose time
//! does not follow from the size of the data.

pub use crate::json::{INLINE_LIMIT, weight, weight_of};
use crate::priority::Thread;
use crate::tool::ErrorCode;
use std::panic::resume_unwind;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Native stack of the threads, in bytes: JSON parsers recurse up to their depth limit.
const STACK_BYTES: usize = 8 << 20;
/// How long large work waits for a permit.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Permits for large work: one for each processor, but at least two.
static PERMITS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    Arc::new(Semaphore::new(processors.max(2)))
});

/// How much JSON large work may process at the same time, in MiB: its values take many times as much memory.
const MEMORY_MIB: u32 = 16;

/// Permits for the memory of large work.
static MEMORY: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(MEMORY_MIB as usize)));

/// Large work got no permit in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The server is busy with large data of other requests; try again later, or with less data")]
pub struct Busy;

impl From<Busy> for crate::tool::ToolError {
    fn from(busy: Busy) -> Self {
        Self::new(ErrorCode::ToolTimeout, busy.to_string())
    }
}

/// Runs `work` on about `bytes` of JSON.
///
/// # Errors
/// The data is large, and there was no permit in time.
pub async fn run<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> Result<T, Busy> {
    let _permits = if bytes > INLINE_LIMIT { Some(acquire_permits(bytes).await?) } else { None };
    Ok(run_without_permit(bytes, work))
}

/// Runs `work` like [`run`], but without a permit: for work whose concurrency is already limited.
pub fn run_without_permit<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> T {
    let is_multi_thread =
        || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes > INLINE_LIMIT && is_multi_thread() { tokio::task::block_in_place(|| on_own_thread(work)) } else { work() }
}

/// Runs work on a new thread. The current thread blocks; the runtime has replaced it by another one.
fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    // If no thread can be started, the work runs here.
    let mut work = Some(work);
    let done = std::thread::scope(|scope| {
        let work = &mut work;
        let run_lowered = move || {
            Thread::current().lower_priority();
            work.take().map(|work| work())
        };
        let thread = std::thread::Builder::new().name("large-work".into()).stack_size(STACK_BYTES);
        thread.spawn_scoped(scope, run_lowered).ok()?.join().unwrap_or_else(|panic| resume_unwind(panic))
    });
    match (done, work) {
        (Some(done), _) => done,
        (None, Some(work)) => work(),
        (None, None) => unreachable!("work that has started returns or panics"),
    }
}

/// Acquires a permit for the time of a processor, and those for the memory of `bytes` of JSON.
async fn acquire_permits(bytes: usize) -> Result<[OwnedSemaphorePermit; 2], Busy> {
    let mib = u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(MEMORY_MIB).min(MEMORY_MIB);
    // The semaphores are never closed.
    let permits = async {
        let memory = Arc::clone(&MEMORY).acquire_many_owned(mib).await?;
        Ok([memory, Arc::clone(&PERMITS).acquire_owned().await?])
    };
    let permits: Result<_, tokio::sync::AcquireError> =
        tokio::time::timeout(PERMIT_TIMEOUT, permits).await.map_err(|_| Busy)?;
    permits.map_err(|_| Busy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn large_work_does_not_block_the_runtime() {
        let others = tokio::spawn(async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            std::time::Instant::now()
        });
        let long = || {
            std::thread::sleep(Duration::from_millis(400));
            std::time::Instant::now()
        };
        let ended =
            tokio::spawn(async move { run(INLINE_LIMIT + 1, long).await }).await.expect("ends").expect("a permit");
        assert!(others.await.expect("ends") < ended);
    }

    #[tokio::test]
    async fn a_single_threaded_runtime_works_in_place() {
        assert_eq!(run(usize::MAX, || 1).await, Ok(1));
        assert_eq!(run_without_permit(usize::MAX, || 1), 1);
    }
}
