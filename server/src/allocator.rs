//! The allocator gives back what is freed: a server is as large as what it does, not as what it has done.
//!
//! That of glibc keeps free memory by default: whatever is freed in the middle of an arena, and as much at the end of
//! each as twice the largest block that was ever freed, up to 64 MB; with an arena for each thread that makes a
//! gigabyte after some large scripts. Others (mimalloc, jemalloc) copy a large block that grows or shrinks, which
//! takes twice its memory meanwhile, where glibc has the kernel move its pages: a run would take twice its limit.
//!
//! Here is the only `unsafe` of the repository: two functions of glibc that any thread may call at any time.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub use glibc::{give_back, tune};

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "no crate has mallopt and malloc_trim as safe functions")]
mod glibc {
    use std::fs;
    use std::time::Duration;

    /// A block of so many bytes is a mapping of its own, which goes when it is freed and moves when it grows.
    const MAPPED: libc::c_int = 256 << 10;
    /// So much may be free at the end of an arena.
    const FREE: libc::c_int = 1 << 20;
    /// So many arenas: about one for each thread. Threads with an arena in common wait for each other's locks, which a
    /// thread with a low priority may hold for tens of milliseconds. Each has free memory of its own, which is given
    /// back.
    const ARENAS: libc::c_int = 64;
    /// How often the size of the process is looked at.
    const LOOK: Duration = Duration::from_secs(2);
    /// Growth, in pages of 4 KiB, that is worth looking for free memory: 16 MB.
    const GROWN: u64 = 4096;
    /// What makes it worth looking again soon: 1 MB.
    const GIVEN: u64 = 256;
    /// Longest time between two searches for free memory.
    const LONGEST: Duration = Duration::from_secs(300);

    /// Keep little; before anything else, in every process of the program.
    pub fn tune() {
        // Where somebody has said how it should be, it is so.
        if std::env::vars_os().any(|(name, _)| name.as_encoded_bytes().starts_with(b"MALLOC_")) {
            return;
        }
        for (parameter, value) in
            [(libc::M_MMAP_THRESHOLD, MAPPED), (libc::M_TRIM_THRESHOLD, FREE), (libc::M_ARENA_MAX, ARENAS)]
        {
            // SAFETY: it takes numbers, and refuses those that it does not know.
            unsafe { libc::mallopt(parameter, value) };
        }
    }

    /// Give back what is free in the middle of arenas too: when the process has grown, and afterwards for as long as it
    /// holds less each time, as what was in use then is free later. It runs as long as the process does.
    pub fn give_back() {
        let body = || {
            let (mut least, mut waited, mut wait) = (pages(), Duration::ZERO, LONGEST);
            loop {
                std::thread::sleep(LOOK);
                waited += LOOK;
                let now = pages();
                let has_grown = now > least.saturating_add(GROWN);
                if !has_grown && waited < wait {
                    least = least.min(now);
                    continue;
                }
                // SAFETY: it takes a number, and the locks of the arenas.
                unsafe { libc::malloc_trim(0) };
                least = pages();
                let has_given = now > least.saturating_add(GIVEN);
                wait = if has_grown || has_given { LOOK * 2 } else { (wait * 2).min(LONGEST) };
                waited = Duration::ZERO;
            }
        };
        // Without this thread there is only more memory in use.
        drop(std::thread::Builder::new().name("give-back".into()).stack_size(64 << 10).spawn(body));
    }

    /// Pages that are in memory.
    fn pages() -> u64 {
        let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0)
    }
}

/// Nothing: this allocator has no such settings.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn tune() {}

/// Nothing: this allocator does it by itself.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn give_back() {}
