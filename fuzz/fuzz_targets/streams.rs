//! A runtime of one thread for all inputs of a target.

use std::cell::RefCell;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Longest time that anything may take; a machine that fuzzes is busy.
pub const TIMEOUT: Duration = Duration::from_secs(15);

thread_local! {
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

/// Run something on the runtime of this target.
///
/// A paused clock stands still while there is something to do, and goes on at once to when somebody wants to be woken:
/// nothing is waited for. Only for what stays on this thread.
pub fn block_on<T>(is_paused: bool, work: impl Future<Output = T>) -> T {
    RUNTIME.with_borrow_mut(|runtime| {
        let runtime = runtime.get_or_insert_with(|| {
            Builder::new_current_thread().enable_all().start_paused(is_paused).build().expect("a runtime")
        });
        runtime.block_on(work)
    })
}
