//! Threads that give way to others: what takes long must not make what is short wait for a processor.
//!
//! A thread is lowered once and never raised again, which a process without privileges may not do; so a thread that
//! was lowered ends with its work. Elsewhere than on Linux priorities belong to processes, and nothing happens.

#[cfg(target_os = "linux")]
use rustix::{process, thread};
use std::time::Duration;

/// How much nicer (see `nice(2)`) a thread with long work is: beside one of the others it gets a tenth of a processor.
const LOWERED: i32 = 10;

/// A thread of this process.
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    #[cfg(target_os = "linux")]
    id: thread::Pid,
}

impl Thread {
    /// The thread that asks.
    #[must_use]
    pub fn current() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            id: thread::gettid(),
        }
    }

    /// How long it has had a processor; absent where nobody tells.
    #[must_use]
    pub fn processor_time(self) -> Option<Duration> {
        #[cfg(target_os = "linux")]
        {
            let path = format!("/proc/self/task/{}/schedstat", self.id.as_raw_nonzero());
            let told = std::fs::read_to_string(path).ok()?;
            told.split(' ').next()?.parse().map(Duration::from_nanos).ok()
        }
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// Let it give way to others from now on. Where that fails it is as important as they are.
    pub fn lower(self) {
        #[cfg(target_os = "linux")]
        if let Ok(nice) = process::getpriority_process(Some(self.id))
            && let Err(error) = process::setpriority_process(Some(self.id), nice.saturating_add(LOWERED))
        {
            tracing::debug!(%error, "a thread with long work keeps its priority");
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_lowered_and_others_are_not() {
        let nice = |thread: Thread| process::getpriority_process(Some(thread.id)).expect("it is there");
        let before = nice(Thread::current());
        let lowered = std::thread::spawn(move || {
            Thread::current().lower();
            nice(Thread::current())
        });
        assert_eq!(lowered.join().expect("it ends"), (before + LOWERED).min(19));
        assert_eq!(nice(Thread::current()), before);
    }

    #[test]
    fn time_on_a_processor_is_that_of_a_thread() {
        let thread = Thread::current();
        let before = thread.processor_time().expect("Linux tells");
        std::thread::sleep(Duration::from_millis(20));
        let slept = thread.processor_time().expect("Linux tells") - before;
        let mut turns = 0_u64;
        while thread.processor_time().expect("Linux tells") - before < slept + Duration::from_millis(5) {
            turns += 1;
        }
        assert!(slept < Duration::from_millis(10) && turns > 0, "{slept:?}, {turns}");
    }
}
