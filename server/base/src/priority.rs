//! Lowers the priority of threads with long work, so that short work does not wait for a processor.
//!
//! The priority is never raised again, which would need privileges, so such a thread ends with its work. On systems
//! other than Linux priorities belong to processes, and nothing happens.

#[cfg(target_os = "linux")]
use rustix::{process, thread};
use std::time::Duration;

/// How much the nice value (see `nice(2)`) is raised: next to a thread of normal priority it gets a tenth of a
/// processor.
#[cfg(target_os = "linux")]
const NICE_INCREMENT: i32 = 10;

/// A thread of this process.
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    #[cfg(target_os = "linux")]
    id: thread::Pid,
}

impl Thread {
    /// Returns the current thread.
    #[must_use]
    pub fn current() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            id: thread::gettid(),
        }
    }

    /// Returns the CPU time of the thread; `None` if the system does not provide it.
    #[must_use]
    pub fn cpu_time(self) -> Option<Duration> {
        #[cfg(target_os = "linux")]
        {
            let path = format!("/proc/self/task/{}/schedstat", self.id.as_raw_nonzero());
            let stat = std::fs::read_to_string(path).ok()?;
            stat.split(' ').next()?.parse().map(Duration::from_nanos).ok()
        }
        #[cfg(not(target_os = "linux"))]
        None
    }

    /// Lowers the priority of the thread. If that fails, it keeps its priority.
    pub fn lower_priority(self) {
        #[cfg(target_os = "linux")]
        if let Ok(nice) = process::getpriority_process(Some(self.id))
            && let Err(error) = process::setpriority_process(Some(self.id), nice.saturating_add(NICE_INCREMENT))
        {
            tracing::debug!(%error, "a thread with long work keeps its priority");
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_this_thread_gets_a_lower_priority() {
        let nice = |thread: Thread| process::getpriority_process(Some(thread.id)).expect("it is there");
        let before = nice(Thread::current());
        let lowered = std::thread::spawn(move || {
            Thread::current().lower_priority();
            nice(Thread::current())
        });
        assert_eq!(lowered.join().expect("it ends"), (before + NICE_INCREMENT).min(19));
        assert_eq!(nice(Thread::current()), before);
    }

    #[test]
    fn cpu_time_is_that_of_one_thread() {
        let thread = Thread::current();
        let before = thread.cpu_time().expect("Linux provides it");
        std::thread::sleep(Duration::from_millis(20));
        let slept = thread.cpu_time().expect("Linux provides it") - before;
        let mut iterations = 0_u64;
        while thread.cpu_time().expect("Linux provides it") - before < slept + Duration::from_millis(5) {
            iterations += 1;
        }
        assert!(slept < Duration::from_millis(10) && iterations > 0, "{slept:?}, {iterations}");
    }
}
